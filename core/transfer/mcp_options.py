"""Converts the options of MCP servers from other programs, and keeps keys out of mneme.toml.

A value that looks like a key becomes a variable of secrets.env. The option then has the placeholder
``${NAME}``.
"""

from __future__ import annotations

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
# The password in a web address, and a parameter of its query.
_PASSWORD = re.compile(r"(?<=://)([^\s/:@]*):([^\s/@]+)(?=@)")
_PARAMETER = re.compile(r"(?<=[?&])([^=&\s]+)=([^&\s#]+)")
_FLAG = re.compile(r"--?([A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)
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
        return moved

    def _move_arguments(self, arguments: Sequence[str]) -> list[str]:
        moved: list[str] = []
        flag = ""
        for argument in arguments:
            match = _FLAG.fullmatch(argument)
            if match is None:
                moved.append(self._move_value(flag or "arg", argument, is_name=bool(flag)))
                flag = ""
            elif match[2] is not None:
                value = self._move_value(match[1], match[2])
                moved.append(f"{argument.partition('=')[0]}={value}")
                flag = ""
            else:
                moved.append(argument)
                flag = match[1] if _SECRET_NAME.search(match[1]) else ""
        return moved

    def _move_value(self, name: str, text: str, *, is_name: bool = True) -> str:
        text = _convert(self.server, text)
        if not text or "${" in text:
            return text
        is_named = is_name and _SECRET_NAME.search(name) is not None
        if is_named or _SECRET_VALUE.match(text):
            return self._keep(name, text)
        moved = self._move_parts(text)
        return self._keep(name, text) if moved == text and holds_key(text) else moved

    def _move_parts(self, text: str) -> str:
        """Replace the password and the keys in the query of a web address."""

        def move_password(match: re.Match[str]) -> str:
            return f"{match[1]}:{self._keep('password', match[2])}"

        def move_parameter(match: re.Match[str]) -> str:
            is_key = _SECRET_NAME.search(match[1]) or _SECRET_VALUE.match(match[2])
            if not is_key or match[2].startswith("${"):
                return match[0]
            return f"{match[1]}={self._keep(match[1], match[2])}"

        if "://" not in text:
            return text
        return _PARAMETER.sub(move_parameter, _PASSWORD.sub(move_password, text))

    def _keep(self, name: str, secret: str) -> str:
        if PLACEHOLDER.fullmatch(secret):
            return secret
        first = variable = name_variable(self.server, name)
        number = 2
        while self.secrets.get(variable, secret) != secret:
            variable = f"{first}_{number}"
            number += 1
        self.secrets[variable] = secret
        return f"${{{variable}}}"


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


def read_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a server in the file of another program, by Mneme's names."""
    keys = ("command", "args", "env", "url", "headers")
    options = {key: entry[key] for key in keys if entry.get(key)}
    if entry.get("disabled") is True or entry.get("enabled") is False:
        options["enabled"] = False
    return options


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
