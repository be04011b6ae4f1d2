"""The services that the suite runs for, one per line. `name` is the provider's, and of the file in
the package.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from core.memory.plugins import Plugins
from core.memory.provider import MemoryProvider
from tests.fixtures.provider_harness import plugged
from tests.services.doubles.byterover import ByteRoverDouble
from tests.services.doubles.double import KEY, Double, Fault
from tests.services.doubles.graphiti import GraphitiDouble
from tests.services.doubles.hindsight import HindsightDouble
from tests.services.doubles.honcho import HonchoDouble
from tests.services.doubles.langchain import LangChainDouble, VectorsDouble
from tests.services.doubles.letta import LettaDouble
from tests.services.doubles.mem0 import Mem0Double
from tests.services.doubles.openviking import OpenVikingDouble
from tests.services.doubles.retaindb import RetainDbDouble
from tests.services.doubles.shelf import ShelfDouble
from tests.services.doubles.supermemory import SupermemoryDouble
from tests.services.doubles.zep import ZepDouble


@dataclass(frozen=True, kw_only=True)
class Service:
    """`options` beside `url` and `key`, as in mneme.toml.

    The tools to search and to add, where there are such, and `forget_tool`, the one to delete a
    memory by its id alone. `never`: how it cannot fail, being no server."""

    name: str
    double: Callable[[], Double]
    options: Mapping[str, Any]
    search_tool: str = ""
    add_tool: str = ""
    forget_tool: str = ""
    is_plugin: bool = False
    never: Collection[Fault] = ()
    address: str = "url"
    library: str = ""

    def place(self, home: Path, double: Double) -> None:
        """Copy a plugin into the home. Services of the package need no copy."""
        if home not in double.homes:
            double.homes.append(home)
        if self.is_plugin:
            plugged(home, self.name)

    def made(self, home: Path, double: Double, **options: Any) -> MemoryProvider:
        """Return the provider as the start of the process creates it."""
        self.place(home, double)
        return Plugins(home).create_provider(
            self.name, {**self.table(double), **options}, {"SERVICE_KEY": KEY}
        )

    def table(self, double: Double) -> Mapping[str, Any]:
        """Return the service's table in mneme.toml."""
        return {self.address: double.url, "key": "SERVICE_KEY", **self.options, **double.options}


_MEM0: Mapping[str, Any] = {
    "search_tool": "mem0_search",
    "add_tool": "mem0_add",
    "forget_tool": "mem0_delete",
}
_RETAINDB: Mapping[str, Any] = {
    "search_tool": "retaindb_search",
    "add_tool": "retaindb_remember",
    "forget_tool": "retaindb_forget",
}
_SUPERMEMORY: Mapping[str, Any] = {
    "search_tool": "supermemory_search",
    "add_tool": "supermemory_store",
}
_ZEP: Mapping[str, Any] = {
    "search_tool": "zep_search",
    "add_tool": "zep_add",
    "forget_tool": "zep_delete",
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
    "langchain": Service(
        name="langchain",
        double=LangChainDouble,
        options={},
        search_tool="langchain_search",
        add_tool="langchain_put",
        forget_tool="langchain_delete",
        address="embedder_url",
        library="langgraph.store.sqlite",
    ),
    "zep, cloud": Service(name="zep", double=ZepDouble, options={"deployment": "cloud"}, **_ZEP),
    "zep, graphiti": Service(
        name="zep",
        double=GraphitiDouble,
        options={"deployment": "graphiti"},
        address="llm_url",
        library="graphiti_core",
        **_ZEP,
    ),
    "letta": Service(
        name="letta",
        double=LettaDouble,
        options={},
        search_tool="letta_search",
        add_tool="letta_insert",
        forget_tool="letta_delete",
    ),
    # The examples in docs/extending.md.
    "vectors of langchain": Service(
        name="vectors",
        double=VectorsDouble,
        options={},
        is_plugin=True,
        address="embedder_url",
        library="langchain_core",
    ),
    "shelf": Service(name="shelf", double=ShelfDouble, options={}, is_plugin=True),
}


def each() -> list[ParameterSet]:
    """Return the services as parameters of a test.

    `make test` runs one of them and the example. `make services` runs all, and those of a library
    in the environment that contains it."""
    everyday = ("hindsight", "shelf")
    return [
        pytest.param(name, marks=() if name in everyday else _marks_of(SERVICES[name]))
        for name in SERVICES
    ]


def _marks_of(service: Service) -> Sequence[pytest.MarkDecorator]:
    if not service.library or _is_installed(service.library):
        return [pytest.mark.services]
    return [pytest.mark.services, pytest.mark.skip(f"{service.library} is not here")]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
