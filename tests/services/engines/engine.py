"""The real engines: where they lie, how each is started, and with which options it is reached."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.services.model_server import mem0_facts, model_server

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
ROOT = Path(os.environ.get("MNEME_SERVICES") or CACHE / "mneme-services")


@dataclass(frozen=True, kw_only=True)
class Running:
    """One that is up: the options of its provider, and the variables that they name."""

    options: Mapping[str, Any]
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Engine:
    """`missing` says why it cannot run here; empty where it can. `running` starts it, with files of its own."""

    name: str
    missing: Callable[[], str]
    running: Callable[[Path], AbstractAsyncContextManager[Running]]
    search_tool: str = ""
    add_tool: str = ""


def _no_mem0() -> str:
    return "" if find_spec("mem0") else f"run these tests by {ROOT}/mem0/bin/python, as `make services` does"


@asynccontextmanager
async def _mem0(folder: Path) -> AsyncIterator[Running]:
    async with model_server(mem0_facts, 64) as url:
        yield Running(options={"deployment": "embedded", "llm_url": url, "embedder_dims": 64})


ENGINES: Mapping[str, Engine] = {
    "mem0": Engine(name="mem0", missing=_no_mem0, running=_mem0, search_tool="mem0_search", add_tool="mem0_add"),
}
