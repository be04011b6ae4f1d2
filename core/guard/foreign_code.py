"""Runs what the owner has put into the home as Python: a file, or a folder with `__init__.py` as a package.

What is run is what was looked at: nothing that others on the machine can write, nor what lies compiled beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from config.files import others_can_write
from core.errors import ConfigError

PREFIX = "mneme_plugin_"


def run_file(name: str, path: Path) -> ModuleType:
    """The module, made anew. Raises ConfigError for what others can write, and what the code raises."""
    is_folder = path.name == "__init__.py"
    for part in (path, *(_parts(path.parent) if is_folder else ())):
        if reason := others_can_write(part):
            raise ConfigError(reason)
    full = PREFIX + name
    for known in [one for one in sys.modules if f"{one}.".startswith(f"{full}.")]:
        del sys.modules[known]
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
    loader = _Source(full, str(path))
    places = [str(path.parent)] if is_folder else None
    spec = spec_from_file_location(full, path, loader=loader, submodule_search_locations=places)
    assert spec is not None
    # A dataclass looks up the module that it stands in.
    sys.modules[full] = module = module_from_spec(spec)
    loader.exec_module(module)
    return module


class _Source(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


class _Finder:
    """Of the modules of a folder, also when they are imported later."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        places = path or () if name.startswith(PREFIX) else ()
        found = (FileFinder(place, (_Source, [".py"])).find_spec(name) for place in places)
        return next((spec for spec in found if spec is not None), None)


def _parts(folder: Path) -> Iterator[Path]:
    """All that lies in it, also behind links, but for what is hidden and what Python has compiled."""
    seen, waiting = set[Path](), [folder]
    while waiting:
        place = waiting.pop()
        if place.resolve() not in seen:
            seen.add(place.resolve())
            parts = [one for one in sorted(place.iterdir()) if one.name[0] != "." and one.name != "__pycache__"]
            yield from parts
            waiting += filter(Path.is_dir, parts)
