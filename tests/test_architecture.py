"""Rules of the house that no linter knows: doors for third-party packages, broad catches, stillness
at import, budgets.

Floors and rooms are contracts of import-linter, complexity is radon's and ruff's
(`pyproject.toml`)."""

from __future__ import annotations

import ast
import fnmatch
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import grimp
import pytest

from tests.bench.shape import FLOORS, measure

ROOT = Path(__file__).resolve().parent.parent
MAX_MODULE_LINES = 700
MAX_MODULES = 14
# Packages that may have more modules than `MAX_MODULES`.
LARGE_PACKAGES: Mapping[str, int] = {"core/store": 20, "gateway": 20, "gateway/commands": 20}

DOORS: Mapping[str, tuple[str, ...]] = {
    "telegram": ("adapters/telegram/*.py",),
    "httpx": (
        "adapters/telegram/*.py",
        "core/media/speaking.py",
        "core/media/speech.py",
        "core/memory/http.py",
        "core/tools/web_client.py",
    ),
    "mem0": ("core/memory/services/mem0.py",),
    "langgraph": ("core/memory/services/langchain.py",),
    "psycopg": ("core/memory/services/langchain.py", "core/store/postgres/*.py"),
    "psycopg_pool": ("core/memory/services/langchain.py",),
    "graphiti_core": ("core/memory/services/_graphiti*.py",),
    "neo4j": ("core/memory/services/_graphiti_graph.py",),
    "discord": ("adapters/discord/*.py",),
    "aiohttp": (
        "adapters/discord/*.py",
        "adapters/telegram/*.py",
        "core/models/connections.py",
        "gateway/web/server.py",
    ),
    "jinja2": ("gateway/web/rendering.py",),
    "markupsafe": ("gateway/web/rendering.py",),
    "yarl": ("adapters/discord/*.py",),
    "openai": ("core/models/sdk.py",),
    "httpx2": ("core/models/connections.py", "core/tools/mcp_client.py"),
    "caldav": ("core/tools/calendars.py",),
    "niquests": ("core/tools/calendars.py",),
    "recurring_ical_events": ("core/tools/calendars.py",),
    "mcp": ("core/tools/mcp_client.py", "core/tools/mcp_server.py"),
    "uvicorn": ("core/tools/mcp_server.py",),
    "aiosqlite": ("core/store/sqlite/*.py",),
    "sqlite3": ("core/store/sqlite/*.py",),
    "icalendar": ("core/dates/calendar_file.py",),
    "PIL": ("core/media/formats/images.py",),
    "pypdf": ("core/media/formats/pdf.py",),
    "docx": ("core/media/formats/office.py",),
    "openpyxl": ("core/media/formats/office.py",),
    "av": ("core/media/formats/recordings.py",),
    "striprtf": ("core/media/formats/texts.py",),
    "trafilatura": ("core/media/formats/web_page.py",),
    "ijson": ("core/transfer/json_stream.py",),
    "prometheus_client": ("gateway/upkeep/metrics.py",),
    "babel": ("gateway/texts/*.py",),
    "pyrage": ("core/transfer/encryption.py",),
    "numpy": ("core/search/ranking.py", "core/search/embeddings.py", "core/facts/hrr.py"),
    "apscheduler": ("gateway/scheduler.py",),
    "cronsim": ("core/dates/schedule.py",),
    "dateparser": ("core/dates/parsing.py",),
    "dateutil": ("core/dates/recurrence.py",),
    "markdown_it": ("core/markup/markdown.py",),
    "segno": ("gateway/cli/setup/dialog.py",),
    "regex": ("core/markup/splitting.py",),
    "typer": ("gateway/cli/*.py",),
    "rich": ("adapters/terminal/*.py", "gateway/cli/*.py"),
    "prompt_toolkit": ("adapters/terminal/*.py", "gateway/cli/*.py"),
    "tomllib": (
        "config/*.py",
        "core/*.py",
        "gateway/installation.py",
        "gateway/texts/*.py",
    ),
    "tomlkit": ("config/files.py",),
    "yaml": ("core/skills/yaml_mapping.py",),
    "snowballstemmer": ("core/text/normalize.py",),
    "pydantic": ("*",),
    "pydantic_core": ("*",),
    "structlog": ("*",),
    "filelock": ("*",),
    "tzlocal": ("*",),
}
ENVIRONMENT_READERS = ("config/variables.py", "config/settings.py")
BROAD_CATCHES = (
    "gateway/admission.py",
    "gateway/turns.py",
    "core/agent/tool_runner.py",
    # The provider runner and its threads.
    "core/memory/manager.py",
    "core/memory/provider_thread.py",
    "gateway/supervisor.py",
    "gateway/web/server.py",
)


@dataclass(frozen=True)
class Source:
    """One file of the product: its path from the root with slashes, and its syntax tree."""

    path: PurePosixPath
    tree: ast.Module
    # All nodes of the tree. A rule reads them several times.
    nodes: Sequence[ast.AST]

    def imports(self) -> Iterator[tuple[int, str]]:
        """Line and dotted name of everything imported, at any depth; ``from a import b`` counts as
        ``a.b``."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from (
                    (node.lineno, f"{'.' * node.level}{node.module or ''}.{a.name}")
                    for a in node.names
                )


Rule = Callable[[Sequence[Source]], Iterator[str]]


def source(path: str, text: str) -> Source:
    tree = ast.parse(text, path)
    return Source(PurePosixPath(path), tree, tuple(ast.walk(tree)))


def doors(sources: Sequence[Source]) -> Iterator[str]:
    """Each third-party package and the environment come in at one place; tests and mocks never."""
    for file in sources:
        for line, name in file.imports():
            package = name.split(".")[0]
            if package in DOORS:
                if not any(fnmatch.fnmatch(str(file.path), door) for door in DOORS[package]):
                    yield f"{file.path}:{line} imports {package}: its door is {' or '.join(DOORS[package])}, ask there"
            elif package not in FLOORS and package not in sys.stdlib_module_names:
                yield f"{file.path}:{line} imports {name}: give the package a door here and in pyproject.toml"
        if str(file.path) not in ENVIRONMENT_READERS:
            for line in _environment(file):
                yield f"{file.path}:{line} reads the environment: make it a setting in config/settings.py"


def _environment(file: Source) -> Iterator[int]:
    for node in file.nodes:
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "os"
        ):
            if node.attr in ("environ", "environb", "getenv"):
                yield node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            yield from (
                node.lineno
                for alias in node.names
                if alias.name in ("environ", "environb", "getenv")
            )


def catches(sources: Sequence[Source]) -> Iterator[str]:
    """Everything is caught in five places only."""
    for file in sources:
        if str(file.path) in BROAD_CATCHES:
            continue
        for node in file.nodes:
            if (
                isinstance(node, ast.ExceptHandler)
                and _is_broad(node.type)
                and not _raises_again(node)
            ):
                yield f"{file.path}:{node.lineno} catches everything: name what can go wrong (core/errors.py)"
            elif isinstance(node, ast.Call) and _suppresses_all(node):
                yield f"{file.path}:{node.lineno} suppresses everything: name what can go wrong (core/errors.py)"


def _suppresses_all(call: ast.Call) -> bool:
    return ast.unparse(call.func).endswith("suppress") and any(
        _is_broad(kind) for kind in call.args
    )


def _is_broad(kind: ast.expr | None) -> bool:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(one is None or ast.unparse(one) in ("Exception", "BaseException") for one in kinds)


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def stillness(sources: Sequence[Source]) -> Iterator[str]:
    """Importing a module runs no loop and no bare call; no function keeps state in a global."""
    for file in sources:
        for node in file.tree.body:
            is_call = isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)
            if is_call or isinstance(node, ast.For | ast.While | ast.With):
                yield f"{file.path}:{node.lineno} runs at import: move it into a function that somebody calls"
        for inner in file.nodes:
            if isinstance(inner, ast.Global):
                yield f"{file.path}:{inner.lineno} keeps state in a global: give it to an object that has an owner"


SQLITE_WORDS = re.compile(
    r"\b(?:MATCH|PRAGMA|json_each|rowid|bm25\(|INSERT OR|UPDATE OR|REPLACE INTO|printf\(|julianday)"
    r"|->> '\$"
)


def dialect(sources: Sequence[Source]) -> Iterator[str]:
    """What only SQLite words so stands in core/store/sqlite/ and nowhere else; docstrings may talk
    about it. `core/store/engine.py` has the expressions that are translated for PostgreSQL."""
    for file in sources:
        translators = ("core/store/engine.py", "core/store/postgres/dialect.py")
        if str(file.path).startswith(("core/store/sqlite/", *translators)):
            continue
        documentation = {id(node.value) for node in file.nodes if isinstance(node, ast.Expr)}
        for node in file.nodes:
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in documentation
            ):
                for word in SQLITE_WORDS.findall(node.value):
                    yield f"{file.path}:{node.lineno} says {word}: word it in core/store/sqlite/"


ENGINES = ("core.store.sqlite", "core.store.postgres")
ENGINE_PLACES = (
    # Files of SQLite that aren't the store: backups, and state of other programs.
    *("core/transfer/backup.py", "core/transfer/hermes.py", "core/transfer/source.py"),
    "core/memory/services/langchain.py",
    # Places that open a store, or look after its files.
    *("gateway/app.py", "gateway/check.py", "gateway/process.py", "gateway/services.py"),
    *("gateway/store_watch.py", "gateway/cli/backups.py", "gateway/sharing/membership.py"),
    "gateway/upkeep/*.py",
)
"""The modules that may know which engine is in use. All others use the roles of
`core/store/engine.py`."""


def engines(sources: Sequence[Source]) -> Iterator[str]:
    """Only named places know an engine."""
    for file in sources:
        path = str(file.path)
        if path.startswith(("core/store/sqlite/", "core/store/postgres/")):
            continue
        if any(fnmatch.fnmatch(path, place) for place in ENGINE_PLACES):
            continue
        for line, name in file.imports():
            if name.startswith(ENGINES):
                yield f"{path}:{line} imports {name}: use a role of core/store/engine.py"


NORMALIZER = "core/text/normalize.py"


def normal_forms(sources: Sequence[Source]) -> Iterator[str]:
    """Only one module normalizes with `unicodedata`, which takes quadratic time for many marks."""
    names = ("normalize", "is_normalized")
    for file in sources:
        if str(file.path) == NORMALIZER:
            continue
        lines = [
            line for line, name in file.imports() if name in {f"unicodedata.{n}" for n in names}
        ]
        lines += [
            node.lineno
            for node in file.nodes
            if isinstance(node, ast.Attribute)
            and node.attr in names
            and ast.unparse(node.value) == "unicodedata"
        ]
        for line in lines:
            yield f"{file.path}:{line} normalizes directly: use to_normal_form of {NORMALIZER}"


BAD_SAMPLES: Sequence[tuple[Rule, str, str]] = (
    (doors, "core/agent/prompt.py", "import anthropic\n"),
    (doors, "gateway/app.py", "from telegram.ext import Application\n"),
    (doors, "core/agent/prompt.py", "import left_pad\n"),
    (doors, "core/agent/prompt.py", "from tests.fixtures.clock import SteadyClock\n"),
    (doors, "core/agent/prompt.py", "from . import types\n"),
    (doors, "core/agent/prompt.py", "import os\n\nHOME = os.environ['HOME']\n"),
    (doors, "core/agent/prompt.py", "from os import getenv\n"),
    (catches, "core/agent/prompt.py", "try:\n    x()\nexcept Exception:\n    pass\n"),
    (catches, "core/agent/prompt.py", "try:\n    x()\nexcept:\n    pass\n"),
    (
        catches,
        "core/agent/prompt.py",
        "try:\n    x()\nexcept (ValueError, BaseException) as e:\n    log(e)\n",
    ),
    (catches, "core/agent/prompt.py", "with contextlib.suppress(Exception):\n    x()\n"),
    (doors, "core/store/jobs.py", "import sqlite3\n"),
    (engines, "core/store/jobs.py", "from core.store.sqlite.database import Database\n"),
    (engines, "core/search/recall.py", "from core.store import postgres\n"),
    (dialect, "core/store/jobs.py", "RISK = 'INSERT OR IGNORE INTO jobs (id) VALUES (:id)'\n"),
    (dialect, "core/store/jobs.py", "KIND = \"SELECT quoted ->> '$.kind' FROM messages\"\n"),
    (
        dialect,
        "core/store/jobs.py",
        "DUE = 'SELECT id FROM jobs WHERE id IN (SELECT value FROM json_each(:ids))'\n",
    ),
    (dialect, "core/search/recall.py", "FOUND = f'FROM {table} WHERE {table} MATCH :words'\n"),
    (dialect, "gateway/check.py", "WHOLE = 'PRAGMA quick_check'\n"),
    (dialect, "core/store/facts/facts.py", "LAST = 'SELECT MAX(rowid) FROM facts'\n"),
    (normal_forms, "core/facts/facts.py", "from unicodedata import normalize\n"),
    (
        normal_forms,
        "core/facts/facts.py",
        "import unicodedata\n\nX = unicodedata.normalize('NFC', Y)\n",
    ),
    (normal_forms, "core/review/searches.py", "from unicodedata import is_normalized\n"),
    (stillness, "core/agent/prompt.py", "print('hello')\n"),
    (stillness, "core/agent/prompt.py", "for name in NAMES:\n    pass\n"),
    (stillness, "core/agent/prompt.py", "def f():\n    global STORE\n    STORE = 1\n"),
)


def list_product_files() -> list[str]:
    files = [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py"))]
    return [path.relative_to(ROOT).as_posix() for path in files]


def read_product() -> list[Source]:
    return [source(name, (ROOT / name).read_text("utf-8")) for name in list_product_files()]


def test_product_modules_keep_all_architecture_rules() -> None:
    """One test, because each parallel test process would parse the product again."""
    product = read_product()
    assert len(product) > 150
    for rule in (doors, engines, catches, dialect, normal_forms, stillness):
        broken = list(rule(product))
        assert not broken, f"{(rule.__doc__ or '').strip()}\n" + "\n".join(broken)


@pytest.mark.parametrize(("rule", "path", "text"), BAD_SAMPLES)
def test_each_architecture_rule_detects_its_violation(rule: Rule, path: str, text: str) -> None:
    assert len(list(rule([source(path, text)]))) == 1


def test_modules_stay_within_the_line_limit_and_functions_within_the_complexity_limit() -> None:
    shape = measure()
    assert not {name: lines for name, lines in shape.modules.items() if lines > MAX_MODULE_LINES}
    assert set(shape.loose) <= {
        "core/__init__.py",
        "core/types.py",
        "core/errors.py",
        "core/ports.py",
    }
    assert not shape.complex


def find_large_packages(paths: Iterable[PurePosixPath]) -> dict[str, int]:
    """Return the number of modules of each package that has too many. `__init__.py` isn't counted."""
    counts = Counter(str(path.parent) for path in paths if path.name != "__init__.py")
    return {
        package: count
        for package, count in counts.items()
        if count > LARGE_PACKAGES.get(package, MAX_MODULES)
    }


def test_packages_of_the_product_have_few_modules() -> None:
    assert find_large_packages(map(PurePosixPath, list_product_files())) == {}


@pytest.mark.parametrize(("package", "limit"), [("core/agent", 14), ("core/store", 20)])
def test_package_over_the_limit_of_modules_is_reported(package: str, limit: int) -> None:
    paths = [PurePosixPath(package, f"module_{number}.py") for number in range(limit)]
    paths.append(PurePosixPath(package, "__init__.py"))
    assert find_large_packages(paths) == {}
    paths.append(PurePosixPath(package, "one_more.py"))
    assert find_large_packages(paths) == {package: limit + 1}


def find_import_cycles(graph: grimp.ImportGraph) -> list[str]:
    """Return the imports that close a cycle, as ``a -> b``: b leads back to a."""
    closing = []
    for module in sorted(graph.modules):
        for imported in sorted(graph.find_modules_directly_imported_by(module)):
            if graph.chain_exists(importer=imported, imported=module):
                closing.append(f"{module} -> {imported}")
    return closing


def test_product_modules_have_no_import_cycles() -> None:
    """Imports for type checking count, too: a reader follows them like any other."""
    graph = grimp.build_graph(*FLOORS, exclude_type_checking_imports=False, cache_dir=None)
    assert len(graph.modules) > 150
    assert find_import_cycles(graph) == []


def test_import_cycle_of_modules_is_found() -> None:
    graph = grimp.ImportGraph()
    for importer, imported in (("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")):
        graph.add_import(importer=importer, imported=imported)
    assert find_import_cycles(graph) == ["a -> b", "b -> c", "c -> a"]


def test_distributed_files_name_no_home_folder_and_no_package_index() -> None:
    """Neither a home folder nor a package index belongs into a file that everybody gets."""
    traces = ("/root/", "/home/", "/Users/", "find-links", "extra-index")
    kept = (
        "Makefile",
        "setup.sh",
        "constraints.txt",
        "pyproject.toml",
        ".ci/run",
        "config/default.toml",
        "LICENSE",
    )
    for name in kept:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not [trace for trace in traces if trace in text], name
