"""Whether the code that runs is ours: our four top-level names are common words that another distribution may own."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from importlib.metadata import packages_distributions
from pathlib import Path

from core.errors import ConfigError

NAMES = ("config", "core", "adapters", "gateway")
DISTRIBUTION = "mneme-gateway"
_REMEDY = "Install Mneme into a virtual environment of its own; `make run` does."


def folders() -> dict[str, Path]:
    """Where each of our packages was loaded from."""
    return {name: Path(next(iter(importlib.import_module(name).__path__))).resolve().parent for name in NAMES}


def intruders(owners: Mapping[str, list[str]] | None = None) -> dict[str, list[str]]:
    """Other installed distributions that own one of our names. `owners` stands in for what is installed."""
    installed = _owners() if owners is None else owners
    others = {name: sorted({owner for owner in installed.get(name, []) if owner != DISTRIBUTION}) for name in NAMES}
    return {name: owning for name, owning in others.items() if owning}


def _owners() -> Mapping[str, list[str]]:
    """What is installed, by package; not asked, since that takes a while, where nothing else can own our names: no
    other folder of the path has them, and ours is not one that distributions share."""
    ours = folders()["gateway"]
    others = [Path(entry) for entry in sys.path if entry and Path(entry).resolve() != ours]
    is_shared = next(ours.glob("*.dist-info"), None) is not None or any(
        (folder / name).is_dir() or (folder / f"{name}.py").exists() for folder in others for name in NAMES
    )
    return packages_distributions() if is_shared else {}


def assert_own_packages(places: dict[str, Path] | None = None, owners: Mapping[str, list[str]] | None = None) -> None:
    """Raises ConfigError with one sentence when a package of ours is shadowed, or could be at the next start."""
    found = folders() if places is None else places
    if len(set(found.values())) > 1:
        names = ", ".join(f"{name} from {folder}" for name, folder in found.items())
        raise ConfigError(
            f"Mneme's packages do not come from one folder ({names}): something else is called the same. {_REMEDY}"
        )
    if others := intruders(owners):
        names = "; ".join(f"{name} by {', '.join(owning)}" for name, owning in others.items())
        raise ConfigError(f"Packages with the names of Mneme's are installed here too ({names}). {_REMEDY}")
