"""The options of a provider as a form: which there are, what may be written into each, and the provider's own value.

Reads a dataclass, never a file or the environment.

An option that nobody may read: a key, a token.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Secret:
    """A value from the environment, kept out of every repr. In mneme.toml stands the name of its variable only."""

    value: str = dataclasses.field(repr=False)


RESERVED = ("enabled", "mode", "sync_every_turns")
"""What every table of a provider has, and none may call its own."""
_KINDS: Mapping[type[Any], str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    Secret: "the name of the environment variable that holds it",
}
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+")
_NUMBER = re.compile(r"[+-]?\d{1,18}")


class OptionForm:
    """The form of `options`, a frozen dataclass, or of no options at all. Raises ConfigError when it is none."""

    def __init__(self, options: type[Any] | None) -> None:
        self._options = options
        self.fields: dict[str, dataclasses.Field[Any]] = {}
        self._kinds: dict[str, type[Any]] = {}
        if options is None:
            return
        if not dataclasses.is_dataclass(options) or not isinstance(options, type):
            raise ConfigError("its options are no dataclass")
        hints = get_type_hints(options)
        for field in dataclasses.fields(options):
            if hints[field.name] not in _KINDS or field.name in RESERVED:
                raise ConfigError(f"its option {field.name} is reserved, or neither str, int, float, bool nor Secret")
            self.fields[field.name] = field
            self._kinds[field.name] = hints[field.name]

    def question(self, name: str) -> str:
        """What to ask for an option: its help and what is to be written."""
        about = str(self.fields[name].metadata.get("help", "")).rstrip(".")
        return f"{name}: {about + ', ' if about else ''}{_KINDS[self._kinds[name]]}"

    def default(self, name: str) -> str | None:
        """The default as it would be written; None when the option must be given."""
        default = self.fields[name].default
        if default is dataclasses.MISSING or isinstance(default, Secret):
            return None if default is dataclasses.MISSING else ""
        return str(default).lower() if isinstance(default, bool) else str(default)

    def read(self, name: str, written: str) -> str | int | float | bool:
        """What was written for an option, as it stands in mneme.toml. Raises ConfigError with what to write instead."""
        if name not in self.fields:
            listed = ", ".join(self.fields) or "none"
            raise ConfigError(f"There is no option {name}; there are {listed}.")
        kind, text = self._kinds[name], written.strip()
        try:
            if kind is bool:
                return _TRUTHS[text.casefold()]
            if kind is int:
                if _NUMBER.fullmatch(text) is None:
                    raise ValueError
                return int(text)
            if kind is float:
                number = float(text)
                if number - number != 0:
                    raise ValueError
                return number
        except (KeyError, ValueError):
            raise ConfigError(f"{name} should be {_KINDS[kind]}.") from None
        if kind is Secret and _VARIABLE.fullmatch(text) is None:
            raise ConfigError(f"{name} should be {_KINDS[kind]}, such as MY_MEMORY_KEY; the secret itself stays there.")
        return text

    def filled(self, table: Mapping[str, Any], variables: Mapping[str, str]) -> Any:
        """The options that a table of mneme.toml gives; secrets come from `variables`. None where there are none.
        Raises ConfigError with all that is wrong."""
        wrong = [f"{name} is not one of its options" for name in table if name not in self.fields]
        values: dict[str, Any] = {}
        for name, field in self.fields.items():
            if name not in table:
                if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                    wrong.append(f"{name} is missing")
                continue
            try:
                values[name] = self._value(name, table[name], variables)
            except ConfigError as error:
                wrong.append(str(error).rstrip("."))
        if wrong:
            raise ConfigError("; ".join(wrong))
        return None if self._options is None else self._options(**values)

    def _value(self, name: str, given: object, variables: Mapping[str, str]) -> object:
        kind = self._kinds[name]
        if kind is Secret:
            variable = self.read(name, str(given))
            if variable not in variables:
                raise ConfigError(f"{name}: the environment variable {variable} is not set")
            return Secret(variables[str(variable)])
        if kind is float and type(given) is int:
            return float(given)
        if type(given) is not kind:
            raise ConfigError(f"{name} should be {_KINDS[kind]}")
        return given
