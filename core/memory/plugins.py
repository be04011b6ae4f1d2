"""Finds memory providers by name, in the package as core/memory/services/NAME.py and in the home as plugins/NAME.py,
and fills their options from mneme.toml.

A broken plugin is a ConfigError, never a crash. It runs with all our rights: who can write to the home can do all
that Mneme can.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
import sys
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from pydantic import FiniteFloat, TypeAdapter, ValidationError

from core.errors import ConfigError
from core.memory.manager import foreign
from core.memory.provider import MemoryProvider, Secret

PACKAGE = Path(__file__).with_name("services")
BUILT_IN = ("notes", "history", "facts")
TAKEN = (*BUILT_IN, "memory")
RESERVED = ("enabled", "mode", "sync_every_turns")
"""Keys of every provider's table, or once so."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+")
_KINDS: Mapping[type[Any], tuple[str, TypeAdapter[Any]]] = {
    str: ("a text", TypeAdapter(str)),
    int: ("a whole number", TypeAdapter(int)),
    float: ("a number", TypeAdapter(FiniteFloat)),
    bool: ("true or false", TypeAdapter(bool)),
    Secret: ("the name of the environment variable that holds it", TypeAdapter(str)),
}


_OLD_MODULES = {
    "core.memory.forgotten": "core.memory.provider",
    "core.memory.secret": "core.memory.provider",
    "core.memory.options": "core.memory.provider",
    "core.records": "core.store.notes",
}
"""Modules that plugins of earlier versions import, and where their classes are now."""


class OptionForm:
    """What may be written into each option of a provider. Raises TypeError for what is no dataclass of them."""

    def __init__(self, options: type[Any] | None) -> None:
        if options is not None and not dataclasses.is_dataclass(options):
            raise TypeError("its options are no dataclass")
        self._options = options
        self.fields = {one.name: one for one in dataclasses.fields(options)} if options else {}
        self._kinds = get_type_hints(options) if options else {}
        missing = dataclasses.MISSING
        self.required = [name for name, one in self.fields.items() if one.default is one.default_factory is missing]
        if odd := [name for name in self.fields if self._kinds[name] not in _KINDS or name in RESERVED]:
            raise TypeError(f"its option {odd[0]} is reserved, or neither str, int, float, bool nor Secret")

    def question(self, name: str) -> str:
        about = str(self.fields[name].metadata.get("help", "")).rstrip(".")
        return f"{name}: {about + ', ' if about else ''}{_KINDS[self._kinds[name]][0]}"

    def read(self, name: str, given: object) -> str | int | float | bool:
        """The value for mneme.toml. Raises ConfigError with what to write instead."""
        if name not in self.fields:
            raise ConfigError(f"There is no option {name}; there are {', '.join(self.fields) or 'none'}.")
        about, adapter = _KINDS[self._kinds[name]]
        if self._kinds[name] is Secret and not _VARIABLE.fullmatch(str(given).strip()):
            raise ConfigError(f"{name} should be {about}, such as MY_MEMORY_KEY; the secret itself stays there.")
        try:
            value: str | int | float | bool = adapter.validate_python(given)
        except ValidationError as error:
            raise ConfigError(f"{name} should be {about}.") from error
        return value.strip() if isinstance(value, str) else value

    def filled(self, table: Mapping[str, Any], variables: Mapping[str, str]) -> Any:
        """Options from a table of mneme.toml, secrets from `variables`. Raises ConfigError with all that is wrong."""
        wrong = [f"{name} is missing" for name in self.required if name not in table]
        values: dict[str, Any] = {}
        for name, given in table.items():
            try:
                values[name] = self.read(name, given)
                if self._kinds[name] is Secret:
                    values[name] = Secret(variables[values[name]])
            except ConfigError as error:
                wrong.append(str(error).rstrip("."))
            except KeyError:
                wrong.append(f"{name}: the environment variable {values[name]} is not set")
        if wrong:
            raise ConfigError("; ".join(wrong))
        return None if self._options is None else self._options(**values)


class Plugins:
    """Providers under `home`/plugins, and the services of the package."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "plugins"

    def names(self) -> list[str]:
        """Sorted; nothing is run for it."""
        found = {path.stem for folder in (self._folder, PACKAGE) for path in folder.glob("*.py")}
        return sorted(name for name in found if _NAME.fullmatch(name) and name not in TAKEN)

    def form(self, name: str) -> OptionForm:
        """Raises ConfigError."""
        return self._loaded(name)[1]

    def made(self, name: str, table: Mapping[str, Any], variables: Mapping[str, str]) -> MemoryProvider:
        """Raises ConfigError."""
        kind, form = self._loaded(name)
        try:
            options = form.filled(table, variables)
        except ConfigError as error:
            raise ConfigError(f"The memory {name} is off: {error}. `mneme memory setup {name}` sets it up.") from error
        with foreign(f"The memory {name}"):
            provider = kind() if kind.options is None else kind(options)  # type: ignore[call-arg]
            if provider.name != name:
                raise ConfigError(f"The name of {kind.__name__} should be “{name}”, like its file.")
        return provider

    def _loaded(self, name: str) -> tuple[type[MemoryProvider], OptionForm]:
        """The provider class in the file of this name, which is run for it, and its options. Raises ConfigError."""
        if name in TAKEN:
            raise ConfigError(f"The memory {name} is built in: it is always on and has no table of its own.")
        path = next((path for path in (self._folder / f"{name}.py", PACKAGE / f"{name}.py") if path.is_file()), None)
        if path is None or not _NAME.fullmatch(name):
            file = self._folder / "NAME.py"
            raise ConfigError(f"There is no memory provider {name[:40]!r}; put it into {file}, in small letters.")
        with foreign(f"The memory provider {path}"):
            module = _module(name, path)
            own = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]
            kinds = [one for one in own if issubclass(one, MemoryProvider)]
            if len(kinds) != 1:
                raise ConfigError(f"{path} should have one class of MemoryProvider; it has {len(kinds)}.")
            return kinds[0], OptionForm(kinds[0].options)


def _module(name: str, path: Path) -> ModuleType:
    if path.parent == PACKAGE:
        return importlib.import_module(f"core.memory.services.{name}")
    loader = SourceFileLoader(f"mneme_plugin_{name}", str(path))
    module = ModuleType(loader.name)
    module.__file__ = loader.path
    # A dataclass looks up the module that it stands in.
    sys.modules[loader.name] = module
    sys.modules |= {old: importlib.import_module(new) for old, new in _OLD_MODULES.items()}
    loader.exec_module(module)
    return module
