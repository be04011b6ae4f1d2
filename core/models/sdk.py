"""Loads the part of OpenAI's SDK that sends requests, without the types of its API.

``import openai`` loads about 470 types and the clients of other platforms. Mneme doesn't use them.
This module loads the SDK's client first, and leaves the packages with these types empty. If other
code needs a name that is missing in such a package, the rest of the package is loaded. A memory
service with ``from openai import OpenAI`` is an example. The loaded parts stay the same objects.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["openai"]

_PACKAGES = ("openai", "openai.types", "openai.lib")
# The modules of the SDK to load, with the names that the package itself also has.
_PARTS = {
    "openai._types": ("Omit",),
    "openai._exceptions": (
        "APIConnectionError",
        "APIError",
        "APIResponseValidationError",
        "APIStatusError",
        "OpenAIError",
    ),
    "openai._base_client": ("DefaultAioHttpClient",),
    "openai._client": ("AsyncOpenAI", "AsyncStream", "Timeout"),
}
_lock = RLock()


class _PostponedPackage(ModuleType):
    """A package whose own code runs only when a name is missing.

    Its modules can be imported before.
    """

    def __getattr__(self, name: str) -> Any:
        with _lock:
            if type(self) is _PostponedPackage:
                self.__class__ = ModuleType  # type: ignore[assignment]
                self.__spec__.loader.exec_module(self)  # type: ignore[union-attr]
        return getattr(self, name)


def _load_openai() -> ModuleType:
    """Return the SDK.

    The whole SDK is loaded if it was imported before, or if it has another structure.
    """
    if "openai" in sys.modules:
        return import_module("openai")
    packages: list[ModuleType] = []
    search_path = None
    for name in _PACKAGES:
        spec = PathFinder.find_spec(name, search_path)
        if spec is None:
            continue
        search_path = search_path or spec.submodule_search_locations
        package = module_from_spec(spec)
        sys.modules[name] = package
        if packages:
            setattr(packages[0], name.rpartition(".")[2], package)
        packages.append(package)
    try:
        for part, names in _PARTS.items():
            module = import_module(part)
            for name in names:
                setattr(packages[0], name, getattr(module, name))
    except (ImportError, AttributeError):
        pass
    for package in packages:
        package.__class__ = _PostponedPackage
    return import_module("openai")


if TYPE_CHECKING:
    import openai
else:
    openai = _load_openai()
