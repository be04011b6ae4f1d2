"""A process without memory services imports none of them, and none of their libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ("mem0", "langgraph", "langchain_core", "graphiti_core", "kuzu", "neo4j", "psycopg")


def imported_by(statements: str, *names: str) -> set[str]:
    """The modules with these names, or below them, that the statements import."""
    script = f"import sys\n{statements}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True
    )
    modules = done.stdout.split()
    return {name for name in names for one in modules if f"{one}.".startswith(f"{name}.")}


def test_start_imports_no_memory_service() -> None:
    start = "import gateway.app, gateway.cli.main"
    assert (
        imported_by(start, "core.memory.services", "core.memory.model_server", *LIBRARIES) == set()
    )


def run_chat(home: Path, said: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, "-m", "gateway.cli.main", "chat"],
        input=said,
        env={"PATH": os.environ["PATH"], "MNEME_HOME": str(home)},
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )


def test_conversation_without_a_memory_service_imports_none(home: Path) -> None:
    said = "The boat is called Molly.\nWhat is the boat called?\n"
    done = run_chat(home, said, "-X", "importtime")
    assert "Molly" in done.stdout
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "core.memory.manager" in modules
    of_services = ("core.memory.services", "core.memory.service", "core.memory.model_server")
    assert {name for name in modules if name.startswith((*of_services, *LIBRARIES))} == set()


PLUGIN = """
import sys
from core.memory.provider import MemoryProvider

class Watcher(MemoryProvider):
    name = "watcher"

    async def is_available(self):
        numpy = sys.modules.get("numpy")
        is_whole = numpy is not None and not numpy.__spec__._initializing
        print("numpy is whole" if is_whole else "numpy is missing or partial", file=sys.stderr)
        return True

    async def prefetch(self, text, context):
        return []
"""


def test_numpy_is_imported_before_the_threads_of_memory_services_start(home: Path) -> None:
    (home / "plugins").mkdir(mode=0o700)
    (home / "plugins" / "watcher.py").write_text(PLUGIN)
    (home / "mneme.toml").write_text("[memory.providers.watcher]\n")
    done = run_chat(home, "The boat is called Molly.\n")
    assert "numpy is whole" in done.stderr


def test_list_of_services_imports_no_library() -> None:
    listed = (
        "from pathlib import Path\nfrom core.memory.plugins import Plugins\n"
        "plugins = Plugins(Path('nowhere'))\n"
        "[plugins.load_form(name) for name in plugins.names()]"
    )
    names = ("core.memory.services.zep", "core.memory.services.langchain", *LIBRARIES)
    assert imported_by(listed, *names) == set(names[:2])
