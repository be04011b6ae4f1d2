"""Finds memory providers by name: in the package, as core/memory/services/NAME.py, and in the home, as plugins/NAME.py.

Loads only what is asked for. A plugin that is broken is a sentence, never a crash; it runs with all our rights, so who
can write to the home can do everything that Mneme can.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from core.errors import ConfigError, MnemeError
from core.memory.guarded_provider import foreign
from core.memory.options import OptionForm
from core.memory.provider import MemoryProvider

T = TypeVar("T")

LOADING_S = 30.0
"""How long a plugin may take to be loaded, and to be made: some bring large libraries."""
PACKAGE = Path(__file__).with_name("services")
BUILT_IN = ("notes", "history", "facts")
"""What is always there and is no choice."""
_TAKEN = (*BUILT_IN, "memory")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_SERVICE = re.compile(r"^class \w+\((?:\w+\.)*MemoryProvider\):", re.MULTILINE)
_CHOICE = re.compile(r"^    name = [\"'](\w+)[\"']", re.MULTILINE)


class Plugins:
    """Providers under `home`/plugins, and the services of the package."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "plugins"
        self._kinds: dict[str, type[MemoryProvider]] = {}

    def names(self) -> list[str]:
        """Those that could be loaded, in order; nothing is run for it."""
        found = {path.stem for path in self._folder.glob("*.py")}
        found |= {path.stem for path in PACKAGE.glob("*.py") if _is_service(path)}
        return sorted(name for name in found if _NAME.fullmatch(name) and name not in _TAKEN)

    def kind(self, name: str) -> type[MemoryProvider]:
        """The provider class in the file of this name, which is run once. Raises ConfigError that says what is wrong
        with it."""
        if name not in self._kinds:
            self._kinds[name] = self._loaded(name)
        return self._kinds[name]

    def _loaded(self, name: str) -> type[MemoryProvider]:
        if name in _TAKEN:
            raise ConfigError(f"The memory {name} is built in: it is always on and has no table of its own.")
        path = self._path(name)
        module = _within(f"The memory provider {path}", lambda: _module(name, path))
        kinds = [
            kind
            for kind in vars(module).values()
            if isinstance(kind, type) and issubclass(kind, MemoryProvider) and kind.__module__ == module.__name__
        ]
        if len(kinds) != 1:
            raise ConfigError(f"{path} should have one class of MemoryProvider; it has {len(kinds)}.")
        if lacking := sorted(getattr(kinds[0], "__abstractmethods__", ())):
            raise ConfigError(f"{path}: {kinds[0].__name__} lacks {', '.join(lacking)}.")
        self._check(kinds[0], name, path)
        return kinds[0]

    def form(self, name: str) -> OptionForm:
        """The options of a provider. Raises ConfigError."""
        kind = self.kind(name)
        try:
            return OptionForm(kind.options)
        except ConfigError as error:
            raise ConfigError(f"The memory {name} cannot be used: {error}.") from error

    def made(self, name: str, table: Mapping[str, Any], variables: Mapping[str, str]) -> MemoryProvider:
        """The provider with the options that a table of mneme.toml gives. Raises ConfigError."""
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

        return _within(f"The memory {name}", make)

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{name[:40]!r} is no name of a memory provider: small letters, digits and _ only.")
        for path in (self._folder / f"{name}.py", PACKAGE / f"{name}.py"):
            if path.is_file() and (path.parent != PACKAGE or _is_service(path)):
                return path
        raise ConfigError(f"There is no memory provider {name}; put it into {self._folder / f'{name}.py'}.")

    @staticmethod
    def _check(kind: type[MemoryProvider], name: str, path: Path) -> None:
        given = inspect.getattr_static(kind, "name")
        # A property says its name once there is a provider.
        if given != name and not isinstance(given, property):
            raise ConfigError(f"{path}: the name of {kind.__name__} should be “{name}”, like its file.")
        for hook, ours in inspect.getmembers(MemoryProvider, inspect.iscoroutinefunction):
            theirs = getattr(kind, hook)
            if not inspect.iscoroutinefunction(theirs):
                raise ConfigError(f"{path}: {hook} should be async.")
            if len(inspect.signature(theirs).parameters) != len(inspect.signature(ours).parameters):
                raise ConfigError(f"{path}: {hook} should be written {hook}{inspect.signature(ours)}.")


def _within(what: str, work: Callable[[], T]) -> T:
    """What `work`, code of somebody else, gives in time; its thread is left behind when it does not end. Raises
    ConfigError about `what`."""
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


def _is_service(path: Path) -> bool:
    """Whether a file of the package holds a provider that is not built in."""
    text = path.read_text(encoding="utf-8")
    named = _CHOICE.search(text)
    return bool(_SERVICE.search(text)) and named is not None and named[1] == path.stem


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
    try:
        spec.loader.exec_module(module)
    except SystemExit as error:
        raise ConfigError(f"{path} ends the process when it is loaded; that is not for a plugin to do.") from error
    return module
