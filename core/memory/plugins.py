"""Finds memory providers by name, in the package as core/memory/services/NAME.py and in the home as plugins/NAME.py or
plugins/NAME/, and makes them of their options.

A broken plugin, and one that others can write, is a ConfigError, never a crash. It runs with all our rights.
"""

import importlib
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from config.files import OptionForm
from core.errors import ConfigError
from core.guard.foreign_code import run_file
from core.memory.manager import foreign
from core.memory.provider import MemoryProvider

PACKAGE = Path(__file__).with_name("services")
BUILT_IN = ("notes", "history", "facts")
TAKEN = (*BUILT_IN, "memory")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_OLD_MODULES = {
    "core.memory.forgotten": "core.memory.provider",
    "core.memory.secret": "core.memory.provider",
    "core.memory.options": "core.memory.provider",
    "core.records": "core.store.notes",
}
"""Modules that plugins of earlier versions import, and where their classes are now."""


class Plugins:
    """Providers under `home`/plugins, and the services of the package."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "plugins"

    def names(self) -> list[str]:
        """Sorted; nothing is run for it."""
        found = {path.stem for folder in (self._folder, PACKAGE) for path in folder.glob("*.py")}
        found |= {path.parent.name for path in self._folder.glob("*/__init__.py")}
        return sorted(name for name in found if _NAME.fullmatch(name) and name not in TAKEN)

    def form(self, name: str) -> OptionForm:
        """Raises ConfigError."""
        return self._loaded(name)[1]

    def made(self, name: str, table: Mapping[str, Any], variables: Mapping[str, str]) -> MemoryProvider:
        """Raises ConfigError."""
        kind, form = self._loaded(name)
        with foreign(f"The memory {name}"):
            try:
                options = form.filled(table, variables)
            except ValueError as error:
                remedy = f"`mneme memory setup {name}` sets it up"
                raise ConfigError(f"The memory {name} is off: {error}. {remedy}.") from error
            provider = kind() if kind.options is None else kind(options)  # type: ignore[call-arg]
            if provider.name != name:
                raise ConfigError(f"The name of {kind.__name__} should be “{name}”, like its file.")
        return provider

    def _loaded(self, name: str) -> tuple[type[MemoryProvider], OptionForm]:
        """The provider class in the file or folder of this name, which is run for it, and its options. Raises
        ConfigError."""
        if name in TAKEN:
            raise ConfigError(f"The memory {name} is built in: it is always on and has no table of its own.")
        places = (self._folder / f"{name}.py", self._folder / name / "__init__.py", PACKAGE / f"{name}.py")
        path = next(filter(Path.is_file, places), None) if _NAME.fullmatch(name) else None
        if path is None:
            place = f"{self._folder}/NAME.py or {self._folder}/NAME/__init__.py, in small letters, digits and _"
            raise ConfigError(f"There is no memory provider {name[:40]}; put it into {place}.")
        with foreign(f"The memory provider {path}"):
            module = _module(name, path)
            classes = {one for one in vars(module).values() if isinstance(one, type)}
            own = [one for one in classes if f"{one.__module__}.".startswith(f"{module.__name__}.")]
            kinds = [one for one in own if issubclass(one, MemoryProvider)]
            if len(kinds) != 1:
                raise ConfigError(f"{path} should have one class of MemoryProvider; it has {len(kinds)}.")
            return kinds[0], OptionForm(kinds[0].options)


def _module(name: str, path: Path) -> ModuleType:
    if path.parent == PACKAGE:
        return importlib.import_module(f"core.memory.services.{name}")
    sys.modules |= {old: importlib.import_module(new) for old, new in _OLD_MODULES.items()}
    return run_file(name, path)
