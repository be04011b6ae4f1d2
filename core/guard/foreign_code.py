"""Runs plugins.

A plugin is Python code in the home: one file, or a folder with `__init__.py`. If other users of the
machine can write to one of its files, the plugin is rejected. Compiled files next to the source are
ignored, so exactly the source that was checked is run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from config.files import find_unsafe_permissions
from core.errors import ConfigError

PREFIX = "mneme_plugin_"


def run_file(name: str, path: Path) -> ModuleType:
    """Run a file, even if it has run before, and return its module.

    Raises ConfigError if other users can write to the file or to any file in its package. Errors
    that the code raises are passed on.
    """
    is_package = path.name == "__init__.py"
    for checked_path in (path, *(_walk(path.parent) if is_package else ())):
        if unsafe := find_unsafe_permissions(checked_path):
            raise ConfigError("plugin_unsafe", path=str(unsafe.path), command=unsafe.command)
    module_name = PREFIX + name
    _unload(module_name)
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
    loader = _SourceLoader(module_name, str(path))
    spec = spec_from_file_location(
        module_name,
        path,
        loader=loader,
        submodule_search_locations=[str(path.parent)] if is_package else None,
    )
    assert spec is not None
    module = module_from_spec(spec)
    # Dataclasses look up their module in `sys.modules` while it runs.
    sys.modules[module_name] = module
    loader.exec_module(module)
    return module


def _unload(module_name: str) -> None:
    """Remove a module and its submodules from `sys.modules`."""
    for name in list(sys.modules):
        if name == module_name or name.startswith(f"{module_name}."):
            del sys.modules[name]


class _SourceLoader(SourceFileLoader):
    """A loader that always compiles the source. It neither reads nor writes compiled files."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


class _Finder:
    """Finds the submodules of a plugin, including those imported after the plugin was loaded."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a submodule of a plugin, or None for any other module."""
        if not name.startswith(PREFIX):
            return None
        for folder in path or ():
            spec = FileFinder(folder, (_SourceLoader, [".py"])).find_spec(name)
            if spec is not None:
                return spec
        return None


def _walk(folder: Path) -> Iterator[Path]:
    """Yield all files and folders below a folder, except hidden ones and compiled Python.

    Links to folders are followed, and each folder is entered only once.
    """
    visited_folders: set[Path] = set()
    pending = [folder]
    while pending:
        current = pending.pop()
        real_path = current.resolve()
        if real_path in visited_folders:
            continue
        visited_folders.add(real_path)
        for child in sorted(current.iterdir()):
            if child.name.startswith(".") or child.name == "__pycache__":
                continue
            yield child
            if child.is_dir():
                pending.append(child)
