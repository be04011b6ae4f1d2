"""Finds memory providers by name, in the package as core/memory/services/NAME.py and in the home as plugins/NAME.py,
and fills their options from mneme.toml.

A broken plugin is a ConfigError, never a crash. It runs with all our rights: who can write to the home can do all
that Mneme can.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import re
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, get_type_hints

from core.errors import ConfigError, MnemeError
from core.memory.guarded_provider import foreign
from core.memory.provider import MemoryProvider, Secret

T = TypeVar("T")

LOADING_S = 30.0
"""To load a plugin, and to make its provider: some bring large libraries."""
PACKAGE = Path(__file__).with_name("services")
BUILT_IN = ("notes", "history", "facts")
RESERVED = ("enabled", "mode", "sync_every_turns")
"""Keys of every provider's table."""
_TAKEN = (*BUILT_IN, "memory")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_KINDS: Mapping[type[Any], str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    Secret: "the name of the environment variable that holds it",
}
_OLD_MODULES = {
    "core.memory.forgotten": "core.memory.provider",
    "core.memory.secret": "core.memory.provider",
    "core.memory.options": "core.memory.provider",
    "core.records": "core.store.notes",
}
"""Modules that plugins of earlier versions import, and where their classes are now."""
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?")


class OptionForm:
    """What may be written into each option of a provider. `options`: a dataclass, or None. Raises ConfigError when it
    is malformed."""

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
        about = str(self.fields[name].metadata.get("help", "")).rstrip(".")
        return f"{name}: {about + ', ' if about else ''}{_KINDS[self._kinds[name]]}"

    def default(self, name: str) -> str | None:
        """As it would be written; None when the option must be given."""
        default = self.fields[name].default
        if default is dataclasses.MISSING or isinstance(default, Secret):
            return None if default is dataclasses.MISSING else ""
        return str(default).lower() if isinstance(default, bool) else str(default)

    def read(self, name: str, written: str) -> str | int | float | bool:
        """The value for mneme.toml. Raises ConfigError with what to write instead."""
        if name not in self.fields:
            raise ConfigError(f"There is no option {name}; there are {', '.join(self.fields) or 'none'}.")
        kind, text = self._kinds[name], written.strip()
        if kind is Secret and _VARIABLE.fullmatch(text) is None:
            raise ConfigError(f"{name} should be {_KINDS[kind]}, such as MY_MEMORY_KEY; the secret itself stays there.")
        if kind is bool and text.casefold() in _TRUTHS:
            return _TRUTHS[text.casefold()]
        if kind is int and _WHOLE.fullmatch(text):
            return int(text)
        if kind is float and _NUMBER.fullmatch(text):
            return float(text)
        if kind in (bool, int, float):
            raise ConfigError(f"{name} should be {_KINDS[kind]}.")
        return text

    def filled(self, table: Mapping[str, Any], variables: Mapping[str, str]) -> Any:
        """Options from a table of mneme.toml, secrets from `variables`. Raises ConfigError with all that is wrong."""
        wrong = [f"{name} is not one of its options" for name in table if name not in self.fields]
        values: dict[str, Any] = {}
        for name, field in self.fields.items():
            if name in table:
                try:
                    values[name] = self._value(name, table[name], variables)
                except ConfigError as error:
                    wrong.append(str(error).rstrip("."))
            elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                wrong.append(f"{name} is missing")
        if wrong:
            raise ConfigError("; ".join(wrong))
        return None if self._options is None else self._options(**values)

    def _value(self, name: str, given: object, variables: Mapping[str, str]) -> object:
        kind = self._kinds[name]
        if kind is Secret:
            variable = str(self.read(name, str(given)))
            if variable not in variables:
                raise ConfigError(f"{name}: the environment variable {variable} is not set")
            return Secret(variables[variable])
        if kind is float and type(given) is int:
            return float(given)
        if type(given) is not kind:
            raise ConfigError(f"{name} should be {_KINDS[kind]}")
        return given


class Plugins:
    """Providers under `home`/plugins, and the services of the package."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "plugins"
        self._kinds: dict[str, type[MemoryProvider]] = {}

    def names(self) -> list[str]:
        """Sorted; nothing is run for it."""
        found = {path.stem for folder in (self._folder, PACKAGE) for path in folder.glob("*.py")}
        return sorted(name for name in found if _NAME.fullmatch(name) and name not in _TAKEN)

    def kind(self, name: str) -> type[MemoryProvider]:
        """The provider class in the file of this name, which is run once. Raises ConfigError."""
        if name not in self._kinds:
            self._kinds[name] = self._loaded(name)
        return self._kinds[name]

    def form(self, name: str) -> OptionForm:
        """Raises ConfigError."""
        kind = self.kind(name)
        try:
            return OptionForm(kind.options)
        except ConfigError as error:
            raise ConfigError(f"The memory {name} cannot be used: {error}.") from error

    def made(self, name: str, table: Mapping[str, Any], variables: Mapping[str, str]) -> MemoryProvider:
        """Raises ConfigError."""
        kind, form = self.kind(name), self.form(name)
        try:
            options = form.filled(table, variables)
        except ConfigError as error:
            raise ConfigError(f"The memory {name} is off: {error}. `mneme memory setup {name}` sets it up.") from error

        def make() -> MemoryProvider:
            provider = kind() if kind.options is None else kind(options)  # type: ignore[call-arg]
            if provider.name != name:
                raise ConfigError(f"The name of {kind.__name__} should be “{name}”, like its file.")
            return provider

        return _in_time(f"The memory {name}", make)

    def _loaded(self, name: str) -> type[MemoryProvider]:
        if name in _TAKEN:
            raise ConfigError(f"The memory {name} is built in: it is always on and has no table of its own.")
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{name[:40]!r} is no name of a memory provider: small letters, digits and _ only.")
        path = next((path for path in (self._folder / f"{name}.py", PACKAGE / f"{name}.py") if path.is_file()), None)
        if path is None:
            raise ConfigError(f"There is no memory provider {name}; put it into {self._folder / f'{name}.py'}.")
        module = _in_time(f"The memory provider {path}", lambda: _module(name, path))
        kinds = [
            kind
            for kind in vars(module).values()
            if isinstance(kind, type) and issubclass(kind, MemoryProvider) and kind.__module__ == module.__name__
        ]
        if len(kinds) != 1:
            raise ConfigError(f"{path} should have one class of MemoryProvider; it has {len(kinds)}.")
        _check(kinds[0], name, path)
        return kinds[0]


def _check(kind: type[MemoryProvider], name: str, path: Path) -> None:
    """Raises ConfigError where a class does not fit the interface."""
    if lacking := sorted(getattr(kind, "__abstractmethods__", ())):
        raise ConfigError(f"{path}: {kind.__name__} lacks {', '.join(lacking)}.")
    given = inspect.getattr_static(kind, "name")
    # A property has its value once there is an instance.
    if given != name and not isinstance(given, property):
        raise ConfigError(f"{path}: the name of {kind.__name__} should be “{name}”, like its file.")
    for hook, ours in inspect.getmembers(MemoryProvider, inspect.iscoroutinefunction):
        theirs = getattr(kind, hook)
        if not inspect.iscoroutinefunction(theirs):
            raise ConfigError(f"{path}: {hook} should be async.")
        if len(inspect.signature(theirs).parameters) != len(inspect.signature(ours).parameters):
            raise ConfigError(f"{path}: {hook} should be written {hook}{inspect.signature(ours)}.")


def _in_time(what: str, work: Callable[[], T]) -> T:
    """Runs foreign code in a thread, which is left behind when it does not end. Raises ConfigError about `what`."""
    done: list[T] = []
    wrong: list[MnemeError] = []

    def run() -> None:
        try:
            with foreign(what):
                done.append(work())
        except MnemeError as error:
            wrong.append(error)

    thread = threading.Thread(target=run, name=what, daemon=True)
    thread.start()
    thread.join(LOADING_S)
    if wrong:
        raise wrong[0]
    if not done:
        raise ConfigError(f"{what} cannot be used: it was not ready within {LOADING_S:g} s")
    return done[0]


def _module(name: str, path: Path) -> ModuleType:
    if path.parent == PACKAGE:
        return importlib.import_module(f"core.memory.services.{name}")
    known = f"mneme_plugin_{name}"
    spec = importlib.util.spec_from_file_location(known, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} cannot be loaded.")
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks up the module that it stands in.
    sys.modules[known] = module
    aliases = {old: importlib.import_module(new) for old, new in _OLD_MODULES.items() if old not in sys.modules}
    sys.modules.update(aliases)
    try:
        spec.loader.exec_module(module)
    except SystemExit as error:
        raise ConfigError(f"{path} ends the process when it is loaded; that is not for a plugin to do.") from error
    finally:
        for old in aliases:
            sys.modules.pop(old, None)
    return module
