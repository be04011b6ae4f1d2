"""Keeps the keys in the options of MCP servers out of mneme.toml.

A value that looks like a key becomes a variable of secrets.env. The option then has the placeholder
``${NAME}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from config.variables import PLACEHOLDER
from core.guard.guard import holds_key

HIDDEN = "***"
# The value of a variable, header, argument or parameter with such a name is a key.
_SECRET_NAME = re.compile(
    r"key|token|secret|passw|pwd|auth|cookie|credential|(?:^|[_-])pat(?:$|[_-])", re.IGNORECASE
)
# The beginnings of keys of well-known services, and of the header Authorization.
_SECRET_VALUE = re.compile(
    r"(?:gh[a-z]_|github_pat_|glpat-|sk-|pk_|sk_|rk_|xox[a-z]-|xapp-|AKIA|AIza|eyJ|ya29\.|hf_|npm_|"
    r"ntn_|secret_|lin_api_|Bearer |Basic )\S{6}"
)
# The user and the password in a web address, a parameter of its query or fragment, and a part of
# its path that looks like a key: random letters and digits, as services with private addresses use.
_USER = re.compile(r"(?<=://)([^\s/:@?#]*)(?::([^\s/?#]*))?(?=@)")
_PARAMETER = re.compile(r"(?<=[?&#])([^=&#\s]+)=([^&\s#]+)")
_PATH_KEY = re.compile(
    r"(?<=[^/:]/)(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-f]{24,}"
    r"|(?=[\w-]*\d)(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[\w-]{20,})(?=[/?#]|$)"
)
# Users shorter than this are names of people, if an address has no password.
_MIN_USER_KEY_CHARS = 16
_FLAG = re.compile(r"--?([A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)
# The short options of docker and curl whose value follows without a space.
_SHORT_FLAG = re.compile(r"-(e(?=[A-Z_][\w]*=)|H(?=[\w-]+:))(.+)", re.DOTALL)
# A variable with its value, as after `docker run -e`.
_ASSIGNMENT = re.compile(r"([A-Za-z_][\w.-]*)(=)(.+)", re.DOTALL)
# A header with its value, as after `mcp-remote --header`.
_HEADER = re.compile(r"([A-Za-z][\w-]*)(:[ \t]*)([^\s/].*)", re.DOTALL)
_HEADER_FLAGS = ("header", "headers", "H")
# An option, a variable or a header with a key inside of a command for a shell.
_SHELL_PART = re.compile(
    rf"""(?<![\w?&\#/-])(?:
      --?(?=[\w.-]*(?:{_SECRET_NAME.pattern}))(?P<option>[A-Za-z][\w.-]*)(?:=|\ +)
      | (?P<variable>[A-Za-z_]\w*)= | (?P<header>[A-Za-z][\w-]*):\ *
    )(?P<value>(?:(?:Bearer|Basic|Token)\ +)?(?!-)[^\s"';|&]+|"[^"]*"|'[^']*')""",
    re.VERBOSE | re.IGNORECASE,
)
# The placeholders of other programs.
_FOREIGN_PLACEHOLDER = re.compile(r"\$\{(env|input):([^}]+)\}")


@dataclass
class SecretMover:
    """Replaces the keys in the options of one server with placeholders."""

    server: str
    # The keys by the names of their new variables.
    secrets: dict[str, str] = field(default_factory=dict)

    def move(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options with placeholders in place of keys."""
        moved: dict[str, Any] = {}
        for key, value in options.items():
            if key in ("env", "headers") and isinstance(value, Mapping):
                moved[key] = {
                    name: self._move_value(name, _to_text(each))
                    for name, each in value.items()
                    if each is not None
                }
            elif key == "args" and isinstance(value, list | tuple):
                moved[key] = self._move_arguments([_to_text(each) for each in value])
            elif key == "url" and isinstance(value, str):
                moved[key] = self._move_parts(_convert(self.server, value))
            else:
                moved[key] = value
        if isinstance(moved.get("args"), list) and isinstance(moved.get("env"), dict):
            moved["args"] = [_fill_own_variables(each, moved["env"]) for each in moved["args"]]
        return moved

    def keep(self, name: str, secret: str) -> str:
        """Store a key, and return its placeholder. A placeholder is returned as it is."""
        if not secret or PLACEHOLDER.fullmatch(secret):
            return secret
        first = variable = name_variable(self.server, name)
        number = 2
        while self.secrets.get(variable, secret) != secret:
            variable = f"{first}_{number}"
            number += 1
        self.secrets[variable] = secret
        return f"${{{variable}}}"

    def _move_arguments(self, arguments: Sequence[str]) -> list[str]:
        moved: list[str] = []
        flag = ""
        for argument in arguments:
            if match := _SHORT_FLAG.fullmatch(argument):
                moved.append(f"-{match[1]}{self._move_argument(match[1], match[2])}")
                flag = ""
            elif (match := _FLAG.fullmatch(argument)) is None:
                moved.append(self._move_argument(flag, argument))
                flag = ""
            elif match[2] is None:
                moved.append(argument)
                flag = match[1]
            else:
                value = self._move_argument(match[1], match[2])
                moved.append(f"{argument.partition('=')[0]}={value}")
                flag = ""
        return moved

    def _move_argument(self, flag: str, text: str) -> str:
        """Move the keys of an argument. `flag` is the option before it, or ""."""
        text = _convert(self.server, text)
        pair = _ASSIGNMENT.fullmatch(text)
        if pair is None and "://" not in text:
            pair = _HEADER.fullmatch(text)
            if pair and flag not in _HEADER_FLAGS and not _is_header_with_key(pair[1]):
                pair = None
        if pair is None or _SECRET_NAME.search(flag):
            is_name = _SECRET_NAME.search(flag) is not None
            return self._move_value(flag if is_name else "arg", text, is_name=is_name)
        return f"{pair[1]}{pair[2]}{self._move_value(pair[1], pair[3])}"

    def _move_value(self, name: str, text: str, *, is_name: bool = True) -> str:
        text = _convert(self.server, text)
        if not text:
            return text
        if "${" in text:
            return self._move_parts(text)
        is_named = is_name and _SECRET_NAME.search(name) is not None
        if is_named or _SECRET_VALUE.match(text):
            return self.keep(name, text)
        moved = self._move_parts(text)
        return self.keep(name, text) if moved == text and holds_key(text) else moved

    def _move_parts(self, text: str) -> str:
        """Replace the keys in JSON, in web addresses and in a command for a shell."""
        if text.lstrip()[:1] in ("{", "[", '"'):
            try:
                value = json.loads(text)
            except ValueError:
                pass
            else:
                moved = self._move_json("arg", value)
                return text if moved == value else json.dumps(moved, ensure_ascii=False)
        if "://" in text:
            text = self._move_parts_of_address(text)
        return _SHELL_PART.sub(self._move_shell_part, text) if " " in text else text

    def _move_json(self, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._move_json(key, each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._move_json(name, each) for each in value]
        if not isinstance(value, str):
            return value
        moved = self._move_value(name, value)
        # The variable is inserted into the text of the JSON, so its quotes must be escaped.
        escaped = json.dumps(value, ensure_ascii=False)[1:-1]
        is_whole = PLACEHOLDER.fullmatch(moved) is not None and moved != value
        return self.keep(name, escaped) if is_whole and escaped != value else moved

    def _move_parts_of_address(self, text: str) -> str:
        """Replace the user, the password and the keys in the path and query of a web address."""

        def move_user(match: re.Match[str]) -> str:
            user, password = match[1], match[2]
            if _SECRET_VALUE.match(user) or (
                not password and len(user) >= _MIN_USER_KEY_CHARS and "${" not in user
            ):
                user = self.keep("user", user)
            return user if password is None else f"{user}:{self.keep('password', password)}"

        def move_parameter(match: re.Match[str]) -> str:
            is_key = _SECRET_NAME.search(match[1]) or _SECRET_VALUE.match(match[2])
            if not is_key or match[2].startswith("${"):
                return match[0]
            return f"{match[1]}={self.keep(match[1], match[2])}"

        text = _PARAMETER.sub(move_parameter, _USER.sub(move_user, text))
        return _PATH_KEY.sub(lambda match: self.keep("path", match[0]), text)

    def _move_shell_part(self, match: re.Match[str]) -> str:
        name = match["option"] or match["variable"] or match["header"]
        value = match["value"]
        is_key = _is_header_with_key(name) if match["header"] else _SECRET_NAME.search(name)
        if not is_key or "${" in value:
            return match[0]
        start = match[0].removesuffix(value)
        if value[0] in "\"'":
            return f"{start}{value[0]}{self.keep(name, value[1:-1])}{value[0]}"
        return f"{start}{self.keep(name, value)}"


def _is_header_with_key(name: str) -> bool:
    """Return whether a header has a key, as opposed to a name before a colon in other arguments."""
    lower_name = name.lower()
    is_usual = lower_name in ("authorization", "proxy-authorization", "cookie", "api-key", "apikey")
    return is_usual or (lower_name.startswith("x-") and _SECRET_NAME.search(name) is not None)


def _fill_own_variables(argument: str, environment: Mapping[str, str]) -> str:
    """Replace each ``${NAME}`` that the server itself would fill from its environment.

    Mneme fills the placeholders of arguments before the server starts.
    """
    return PLACEHOLDER.sub(lambda match: environment.get(match[1], match[0]), argument)


def name_variable(server: str, name: str) -> str:
    """Return the variable of secrets.env for a key of a server."""
    return re.sub(r"[^A-Z0-9]+", "_", f"MCP_{server}_{name}".upper()).rstrip("_")


def list_own_variables(server: str, options: object) -> list[str]:
    """Return the variables in the options of a server that `SecretMover` named."""
    prefix = name_variable(server, "x")[:-1]
    names = PLACEHOLDER.findall(repr(options))
    return [name for name in dict.fromkeys(names) if name.startswith(prefix)]


def hide_keys(server: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options in which each key is replaced by `HIDDEN`, to be shown."""
    mover = SecretMover(server)
    moved = mover.move(options)
    placeholders = [f"${{{name}}}" for name in mover.secrets]

    def hide(value: Any) -> Any:
        if isinstance(value, str):
            for placeholder in placeholders:
                value = value.replace(placeholder, HIDDEN)
            return value
        return [hide(each) for each in value] if isinstance(value, list) else value

    return {key: hide(value) for key, value in moved.items()}


def _to_text(value: object) -> str:
    """Return a value of a JSON file as text. True and false are written as in JSON."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _convert(server: str, text: str) -> str:
    """Return a text with Mneme's placeholders in place of ``${env:NAME}`` and ``${input:name}``."""

    def convert(match: re.Match[str]) -> str:
        if match[1] == "input":
            return f"${{{name_variable(server, match[2])}}}"
        return f"${{{re.sub('[^A-Z0-9_]', '_', match[2].upper())}}}"

    return _FOREIGN_PLACEHOLDER.sub(convert, text)
