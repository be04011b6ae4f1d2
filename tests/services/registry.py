"""The services that the suite runs for: a line each. `name` is the provider's, and of the file in
the package."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from core.memory.plugins import Plugins
from core.memory.provider import MemoryProvider
from tests.fixtures.provider_harness import plugged
from tests.services.doubles.byterover import ByteRoverDouble
from tests.services.doubles.double import KEY, Double, Fault
from tests.services.doubles.hindsight import HindsightDouble
from tests.services.doubles.honcho import HonchoDouble
from tests.services.doubles.mem0 import Mem0Double
from tests.services.doubles.openviking import OpenVikingDouble
from tests.services.doubles.retaindb import RetainDbDouble
from tests.services.doubles.shelf import ShelfDouble
from tests.services.doubles.supermemory import SupermemoryDouble


@dataclass(frozen=True, kw_only=True)
class Service:
    """`options` beside `url` and `key`, as in mneme.toml. The tools to search and to add, where
    there are such. `never`: how it cannot fail, being no server."""

    name: str
    double: Callable[[], Double]
    options: Mapping[str, Any]
    search_tool: str = ""
    add_tool: str = ""
    is_plugin: bool = False
    never: Collection[Fault] = ()

    def place(self, home: Path) -> None:
        """Puts a plugin into the home; what is in the package is there."""
        if self.is_plugin:
            plugged(home, self.name)

    def made(self, home: Path, double: Double, **options: Any) -> MemoryProvider:
        """The provider, as a start of the process makes it."""
        self.place(home)
        return Plugins(home).create_provider(
            self.name, {**self.table(double), **options}, {"SERVICE_KEY": KEY}
        )

    def table(self, double: Double) -> Mapping[str, Any]:
        """Of mneme.toml."""
        return {"url": double.url, "key": "SERVICE_KEY", **self.options, **double.options}


_MEM0: Mapping[str, Any] = {"search_tool": "mem0_search", "add_tool": "mem0_add"}
_RETAINDB: Mapping[str, Any] = {"search_tool": "retaindb_search", "add_tool": "retaindb_remember"}
_SUPERMEMORY: Mapping[str, Any] = {
    "search_tool": "supermemory_search",
    "add_tool": "supermemory_store",
}
SERVICES: Mapping[str, Service] = {
    "mem0, platform": Service(
        name="mem0",
        double=partial(Mem0Double, is_platform=True),
        options={"deployment": "platform"},
        **_MEM0,
    ),
    "mem0, self-hosted": Service(
        name="mem0",
        double=partial(Mem0Double, is_platform=False),
        options={"deployment": "self_hosted"},
        **_MEM0,
    ),
    "hindsight": Service(
        name="hindsight",
        double=HindsightDouble,
        options={},
        search_tool="hindsight_recall",
        add_tool="hindsight_retain",
    ),
    "openviking": Service(
        name="openviking",
        double=OpenVikingDouble,
        options={},
        search_tool="viking_search",
        add_tool="viking_remember",
    ),
    "retaindb, cloud": Service(name="retaindb", double=RetainDbDouble, options={}, **_RETAINDB),
    "retaindb, local": Service(
        name="retaindb", double=partial(RetainDbDouble, is_local=True), options={}, **_RETAINDB
    ),
    "honcho": Service(name="honcho", double=HonchoDouble, options={}, search_tool="honcho_search"),
    "supermemory, ns": Service(
        name="supermemory",
        double=partial(SupermemoryDouble, dialect="ns"),
        options={"api": "ns"},
        **_SUPERMEMORY,
    ),
    "supermemory, v4": Service(
        name="supermemory",
        double=partial(SupermemoryDouble, dialect="v4"),
        options={"api": "v4"},
        **_SUPERMEMORY,
    ),
    "byterover": Service(
        name="byterover",
        double=ByteRoverDouble,
        options={"model": "stub"},
        search_tool="brv_search",
        add_tool="brv_curate",
        never=("refusing", "limited", "astray"),
    ),
    # The example in docs/extending.md.
    "shelf": Service(name="shelf", double=ShelfDouble, options={}, is_plugin=True),
}


def each() -> list[ParameterSet]:
    """As parameters of a test: `make test` takes one of them, and the example; `make services`
    all."""
    everyday = ("hindsight", "shelf")
    return [
        pytest.param(name, marks=() if name in everyday else pytest.mark.services)
        for name in SERVICES
    ]
