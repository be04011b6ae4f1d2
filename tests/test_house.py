"""The fuses of the house: rules of its design that are checked on the syntax tree, without importing anything.

Each returns one line, with the remedy, for each place where it blows; it is tried on the project and on bad samples.
"""

from __future__ import annotations

import ast
import fnmatch
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLOORS = {"config": 0, "core": 1, "adapters": 2, "gateway": 3}
SEEN_BY_ADAPTERS = {f"core.{stem}" for stem in ("types", "records", "ports", "errors", "markup", "painter")}

LINES_A_FILE = 400
LINES_A_FUNCTION = 60
PARAMETERS = 7
METHODS_A_PROTOCOL = 12

DOORS: Mapping[str, tuple[str, ...]] = {
    "telegram": ("adapters/telegram*.py",),
    "httpx": ("adapters/telegram*.py",),
    "discord": ("adapters/discord*.py",),
    "aiohttp": ("adapters/discord*.py",),
    "yarl": ("adapters/discord*.py",),
    "anthropic": ("core/claude.py",),
    "httpx2": ("core/claude.py",),
    "aiosqlite": ("core/store/*.py",),
    "sqlite3": ("core/store/*.py",),
    "ijson": ("core/histories/json_stream.py",),
    "numpy": ("core/memory/hrr.py",),
    "apscheduler": ("gateway/cron.py",),
    "cronsim": ("core/schedule.py",),
    "cron_descriptor": ("core/schedule.py",),
    "dateparser": ("core/schedule.py",),
    "markdown_it": ("core/markup*.py",),
    "typer": ("gateway/cli.py", "gateway/cli_*.py"),
    "rich": ("adapters/terminal*.py", "gateway/cli.py", "gateway/cli_*.py"),
    "prompt_toolkit": ("adapters/terminal*.py", "gateway/cli.py", "gateway/cli_*.py"),
    "pydantic_settings": ("config/settings.py",),
    "tomllib": ("config/settings.py", "config/options_file.py"),
    "tenacity": ("*",),
    "pydantic": ("*",),
    "structlog": ("*",),
    "filelock": ("*",),
    "tzlocal": ("*",),
}
BROAD_CATCHES = ("gateway/router.py", "core/toolbox.py", "core/memory/seat.py", "gateway/supervisor.py")
MANY_CLASSES = ("types", "search", "records", "ports", "errors", "settings")
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base"}
# fmt: off
HARMLESS_CALLS = {
    "compile", "get_logger", "getLogger", "timedelta","frozenset", "tuple", "dict", "set", "list", "len", "range",
    "sorted", "str", "int", "float", "join", "split", "format", "strip", "casefold", "lower", "encode",
    "resolve", "with_name", "max", "fromkeys", "maketrans", "field", "attrgetter", "itemgetter", "escape", "keys",
    "values", "items", "union", "visible", "chr", "ord", "bytes", "fromhex", "isascii", "isalnum",
}
# fmt: on
"""Functions that a constant may be made with; classes, told by their capital, are always fine."""


@dataclass(frozen=True)
class Source:
    """One file: its path from the root with slashes, its text, its tree."""

    path: PurePosixPath
    text: str
    tree: ast.Module

    @property
    def floor(self) -> str:
        return self.path.parts[0]

    @property
    def is_product(self) -> bool:
        return self.floor in FLOORS

    def imports(self) -> Iterator[tuple[int, str]]:
        """Line and dotted name of everything imported, at any depth; ``from a import b`` counts as ``a.b``."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


Fuse = Callable[[Sequence[Source]], Iterator[str]]


def source(path: str, text: str) -> Source:
    return Source(PurePosixPath(path), text, ast.parse(text, path))


def floors(sources: Sequence[Source]) -> Iterator[str]:
    """Imports point down; adapters see little of core and nothing of each other."""
    for file in sources:
        if not file.is_product:
            continue
        for line, name in file.imports():
            other = name.split(".")[0]
            where = f"{file.path}:{line} imports {name}"
            if other == "":
                yield f"{where}: write imports absolutely"
            elif other == "tests":
                yield f"{where}: the product never needs its tests"
            elif other in FLOORS and FLOORS[other] > FLOORS[file.floor]:
                yield f"{where}, a floor above: take a port from core/ports.py and let gateway/app.py fill it"
            elif file.floor == "adapters" and other == "core" and ".".join(name.split(".")[:2]) not in SEEN_BY_ADAPTERS:
                yield f"{where}: an adapter takes from core only {', '.join(sorted(SEEN_BY_ADAPTERS))}"
            elif (
                file.floor == "adapters"
                and other == "adapters"
                and _family(name.split(".")[1]) != _family(file.path.stem)
            ):
                yield f"{where}, another adapter: what both need belongs into core"


def _family(stem: str) -> str:
    return stem.split("_")[0]


def doors(sources: Sequence[Source]) -> Iterator[str]:
    """Each third-party package, the environment, TOML and SQLite come in at one place."""
    for file in sources:
        if not file.is_product:
            continue
        for line, name in file.imports():
            package = name.split(".")[0]
            if package in DOORS:
                if not any(fnmatch.fnmatch(str(file.path), door) for door in DOORS[package]):
                    yield f"{file.path}:{line} imports {package}: its door is {' or '.join(DOORS[package])}, ask there"
            elif package and package not in FLOORS and package not in sys.stdlib_module_names:
                yield f"{file.path}:{line} imports {package}, which has no door: give it one here and in pyproject.toml"
        if str(file.path) != "config/settings.py":
            for line in _environment(file):
                yield f"{file.path}:{line} reads the environment: make it a setting in config/settings.py"


def _environment(file: Source) -> Iterator[int]:
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            if node.attr in ("environ", "environb", "getenv"):
                yield node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            yield from (node.lineno for alias in node.names if alias.name in ("environ", "environb", "getenv"))


def one_class(sources: Sequence[Source]) -> Iterator[str]:
    """A file has one public class at most, and shares its name."""
    for file in sources:
        if not file.is_product or file.path.stem in MANY_CLASSES:
            continue
        public = [node.name for node in file.tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"]
        if len(public) > 1:
            yield f"{file.path} has {len(public)} public classes ({', '.join(public)}): each deserves a file of its own"
        elif public and public[0].casefold() not in _class_names(file.path):
            yield f"{file.path} holds {public[0]}: name the file after its class, or the class after its file"


def _class_names(path: PurePosixPath) -> set[str]:
    """What the class of a file may be called: agent.py holds Agent, memory/provider.py Provider or MemoryProvider."""
    stem = path.stem.replace("_", "").casefold()
    return {stem, path.parent.name.casefold() + stem}


def sizes(sources: Sequence[Source]) -> Iterator[str]:
    """Files, functions and parameter lists stay readable at one sitting."""
    for file in sources:
        lines = file.text.count("\n")
        if lines > LINES_A_FILE:
            yield f"{file.path} has {lines} lines ({LINES_A_FILE} at most): find the noun that wants to be its own file"
        for function in file.functions():
            where = f"{file.path}:{function.lineno} {function.name}"
            length = (function.end_lineno or function.lineno) - function.lineno + 1
            if length > LINES_A_FUNCTION:
                yield f"{where} has {length} lines ({LINES_A_FUNCTION} at most): name its steps and call them"
            if file.is_product and (count := _parameters(function)) > PARAMETERS:
                yield f"{where} has {count} parameters ({PARAMETERS} at most): pass one value that holds them"


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    arguments = function.args
    named = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
    extra = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    is_bound = bool(named) and named[0].arg in ("self", "cls")
    return len(named) + len(extra) - is_bound


def protocols(sources: Sequence[Source]) -> Iterator[str]:
    """A role is the size of a hand."""
    for file in sources:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases):
                methods = sum(isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) for item in node.body)
                if methods > METHODS_A_PROTOCOL:
                    yield f"{file.path}:{node.lineno} {node.name} has {methods} methods: it is two roles, part them"


def names(sources: Sequence[Source]) -> Iterator[str]:
    """A file is called by what it is."""
    for file in sources:
        if bad := FORBIDDEN_NAMES & {*file.path.stem.split("_"), *file.path.parts[:-1]}:
            yield f"{file.path}: {', '.join(sorted(bad))} says nothing; name the thing that it holds"


def stems(sources: Sequence[Source]) -> Iterator[str]:
    """A name means one file."""
    special = {"__init__", "__main__", "conftest"}
    counted = Counter(file.path.stem for file in sources if file.path.stem not in special)
    for stem, count in counted.items():
        if count > 1:
            paths = ", ".join(str(file.path) for file in sources if file.path.stem == stem)
            yield f"{paths} share a name: rename one by what sets it apart"


def catches(sources: Sequence[Source]) -> Iterator[str]:
    """Everything is caught in four places only."""
    for file in sources:
        if not file.is_product or str(file.path) in BROAD_CATCHES:
            continue
        for node in ast.walk(file.tree):
            if isinstance(node, ast.ExceptHandler) and _is_broad(node) and not _raises_again(node):
                yield f"{file.path}:{node.lineno} catches everything: name what can go wrong (core/errors.py)"
            elif isinstance(node, ast.Call) and _suppresses_all(node):
                yield f"{file.path}:{node.lineno} suppresses everything: name what can go wrong (core/errors.py)"


def _is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or ast.unparse(kind) in ("Exception", "BaseException") for kind in kinds)


def _suppresses_all(call: ast.Call) -> bool:
    is_suppress = ast.unparse(call.func).endswith("suppress")
    return is_suppress and any(ast.unparse(kind) in ("Exception", "BaseException") for kind in call.args)


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def stillness(sources: Sequence[Source]) -> Iterator[str]:
    """Importing a module does nothing but define; no function keeps state in a global."""
    for file in sources:
        if not file.is_product:
            continue
        own = {node.name: node for node in file.tree.body if isinstance(node, ast.FunctionDef)}
        for statement in file.tree.body:
            if not _is_definition(statement, own):
                yield f"{file.path}:{statement.lineno} runs at import: move it into a function that somebody calls"
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Global):
                yield f"{file.path}:{node.lineno} keeps state in a global: give it to an object that has an owner"


def _is_definition(node: ast.stmt, own: Mapping[str, ast.FunctionDef]) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        test = ast.unparse(node.test)
        return test in ("TYPE_CHECKING", "__name__ == '__main__'") or test.startswith("sys.version_info")
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return node.value is None or _is_constant(node.value, own)
    return False


def _is_constant(node: ast.AST, own: Mapping[str, ast.FunctionDef]) -> bool:
    """Whether everything called below a node only computes: classes, harmless functions, functions of this file that
    do the same."""
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        path = ast.unparse(call.func).split(".")
        name, is_class = path[-1], any(part.lstrip("_")[:1].isupper() for part in path[-2:])
        if name in own:
            others = {other: function for other, function in own.items() if other != name}
            if not _is_constant(own[name], others):
                return False
        elif not (is_class or name in HARMLESS_CALLS):
            return False
    return True


def realness(sources: Sequence[Source]) -> Iterator[str]:
    """Tests use real parts; the product has no use for stand-ins."""
    for file in sources:
        for line, name in file.imports():
            if name.startswith(("unittest.mock", "mock.")):
                yield f"{file.path}:{line} imports a mock: use the real part, or a double in tests/doubles at the wire"


BAD_SAMPLES: Sequence[tuple[Fuse, Mapping[str, str]]] = (
    (floors, {"core/agent.py": "from gateway.router import Router\n"}),
    (floors, {"config/settings.py": "def load():\n    import core.errors\n"}),
    (floors, {"adapters/discord.py": "from core.agent import Agent\n"}),
    (floors, {"adapters/discord.py": "from core import agent\n"}),
    (floors, {"adapters/discord.py": "from adapters.telegram import Telegram\n"}),
    (floors, {"core/agent.py": "from . import types\n"}),
    (floors, {"core/agent.py": "from tests.doubles.clock import SteadyClock\n"}),
    (doors, {"core/agent.py": "import anthropic\n"}),
    (doors, {"gateway/app.py": "from telegram.ext import Application\n"}),
    (doors, {"core/agent.py": "import left_pad\n"}),
    (doors, {"core/agent.py": "import os\n\nHOME = os.environ['HOME']\n"}),
    (doors, {"core/agent.py": "from os import getenv\n"}),
    (one_class, {"core/agent.py": "class Agent: ...\nclass Turn: ...\n"}),
    (one_class, {"core/agent.py": "class Turn: ...\n"}),
    (sizes, {"core/agent.py": "\n" * 401}),
    (sizes, {"core/agent.py": "async def turn():\n" + "    pass\n" * 60}),
    (sizes, {"core/agent.py": "class Agent:\n    def turn(self, a, b, c, d, *e, f, g, **h): ...\n"}),
    (
        protocols,
        {"core/ports.py": "class Store(Protocol):\n" + "".join(f"    def m{n}(self): ...\n" for n in range(13))},
    ),
    (names, {"core/utils.py": ""}),
    (names, {"gateway/session_manager.py": ""}),
    (names, {"core/common/text.py": ""}),
    (stems, {"core/agent.py": "", "gateway/agent.py": ""}),
    (catches, {"core/agent.py": "try:\n    x()\nexcept Exception:\n    pass\n"}),
    (catches, {"core/agent.py": "try:\n    x()\nexcept:\n    pass\n"}),
    (catches, {"core/agent.py": "try:\n    x()\nexcept (ValueError, BaseException) as e:\n    log(e)\n"}),
    (catches, {"core/agent.py": "with contextlib.suppress(Exception):\n    x()\n"}),
    (stillness, {"core/agent.py": "print('hello')\n"}),
    (stillness, {"core/agent.py": "STORE = connect()\n"}),
    (stillness, {"core/agent.py": "def _made():\n    return open('x')\nSTORE = _made()\n"}),
    (stillness, {"core/agent.py": "for name in NAMES:\n    pass\n"}),
    (stillness, {"core/agent.py": "def f():\n    global STORE\n    STORE = 1\n"}),
    (realness, {"tests/test_agent.py": "from unittest.mock import Mock\n"}),
)
GOOD_SAMPLES: Sequence[tuple[Fuse, Mapping[str, str]]] = (
    (floors, {"adapters/telegram_polling.py": "from adapters.telegram import x\nfrom core.types import Inbound\n"}),
    (floors, {"core/agent.py": "from config.settings import Settings\n", "tests/test_a.py": "import gateway.app\n"}),
    (doors, {"core/claude.py": "import anthropic\n", "config/settings.py": "import os\nos.environ\n"}),
    (
        one_class,
        {"core/ports.py": "class A: ...\nclass B: ...\n", "core/memory/hrr.py": "class HRR: ...\nclass _B: ...\n"},
    ),
    (sizes, {"core/agent.py": "class Agent:\n    def turn(self, a, b, c, d, *, e, f, g): ...\n"}),
    (catches, {"core/store/database.py": "try:\n    x()\nexcept BaseException:\n    undo()\n    raise\n"}),
    (catches, {"gateway/router.py": "try:\n    x()\nexcept Exception:\n    pass\n"}),
    (
        stillness,
        {"core/agent.py": '"""Doc."""\nimport re\nWORD = re.compile("a")\nA: int\nif TYPE_CHECKING:\n    import b\n'},
    ),
)
FUSES = tuple(dict.fromkeys(fuse for fuse, _ in BAD_SAMPLES))


@pytest.fixture(scope="module")
def project() -> list[Source]:
    """All our sources: the four floors and the tests."""
    files = [path for folder in (*FLOORS, "tests") for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 20
    return [source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in files]


def _label(value: object) -> str:
    return ",".join(value) if isinstance(value, dict) else str(getattr(value, "__name__", ""))


@pytest.mark.parametrize("fuse", FUSES, ids=_label)
def test_fuse_holds(fuse: Fuse, project: list[Source]) -> None:
    blown = list(fuse(project))
    assert not blown, f"{(fuse.__doc__ or '').strip()}\n" + "\n".join(blown)


@pytest.mark.parametrize(("fuse", "sample"), BAD_SAMPLES, ids=_label)
def test_fuse_blows(fuse: Fuse, sample: Mapping[str, str]) -> None:
    blown = list(fuse([source(path, text) for path, text in sample.items()]))
    assert len(blown) == 1, blown
    assert ":" in blown[0], "the message says no remedy"


@pytest.mark.parametrize(("fuse", "sample"), GOOD_SAMPLES, ids=_label)
def test_fuse_lets_the_good_pass(fuse: Fuse, sample: Mapping[str, str]) -> None:
    assert not list(fuse([source(path, text) for path, text in sample.items()]))


def test_no_file_speaks_of_a_machine() -> None:
    """Neither a home folder nor a package index belongs into a file that everybody gets."""
    traces = ("/root/", "/home/", "/Users/", "find-links", "extra-index")
    kept = ("Makefile", "setup.sh", "constraints.txt", "pyproject.toml", ".ci/run", "config/default.toml", "LICENSE")
    for name in kept:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not [trace for trace in traces if trace in text], name
