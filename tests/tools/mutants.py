"""Breaks the code in small ways, and counts how many of these mutants the tests catch.

``python -m tests.tools.mutants [COUNT] [SEED]`` makes COUNT mutants (200) of core/store, core/facts,
core/agent and core/search in a copy of the checkout, one after the other, and runs the quick tests of
the same room for each. The same seed makes the same mutants as long as the code doesn't change. It
prints each mutant that survives, and a table at the end.
"""

from __future__ import annotations

import ast
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("store", "facts", "agent", "search")
DEFAULT_COUNT = 200
DEFAULT_SEED = 39
TIMEOUT_S = 900.0
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".mypy_cache", ".ruff_cache", "__pycache__")
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one expression. The positions are in the lines of the file."""

    path: Path
    line: int
    start: int
    end: int
    before: str
    after: str

    @property
    def room(self) -> str:
        return self.path.parts[1]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before} -> {self.after}"


def list_mutants(path: Path) -> Iterator[Mutant]:
    """Yield the mutants of a module: comparisons, `and` and `or`, `not`, and small numbers."""
    source = (ROOT / path).read_text(encoding="utf-8")
    lines = source.encode().splitlines()
    tree = ast.parse(source)
    # Python 3.11 knows no positions within f-strings.
    formatted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    skipped = {id(part) for node in formatted for part in ast.walk(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or node.lineno != node.end_lineno or id(node) in skipped:
            continue
        after, end = _change(node), node.end_col_offset
        if after and end is not None:
            before = lines[node.lineno - 1][node.col_offset : end].decode()
            yield Mutant(path, node.lineno, node.col_offset, end, before, after)


def _change(node: ast.expr) -> str:
    """Return the changed source of an expression, or an empty text if it isn't changed."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        changed = ast.Compare(node.left, [_COMPARISONS[type(node.ops[0])]()], node.comparators)
        return f"({ast.unparse(changed)})"
    if isinstance(node, ast.BoolOp):
        operator = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return f"({ast.unparse(ast.BoolOp(operator, node.values))})"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"({ast.unparse(node.operand)})"
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return str(node.value + 1)
    return ""


def choose_mutants(count: int, seed: int) -> list[Mutant]:
    """Return an equal number of mutants for each room."""
    chance = random.Random(seed)
    chosen: list[Mutant] = []
    for room in ROOMS:
        paths = sorted((ROOT / "core" / room).rglob("*.py"))
        mutants = [mutant for path in paths for mutant in list_mutants(path.relative_to(ROOT))]
        chosen += chance.sample(mutants, count // len(ROOMS))
    return chosen


def is_caught(mutant: Mutant, copy: Path) -> bool:
    """Run the quick tests of the room on a mutant. A run without an end counts as caught."""
    file = copy / mutant.path
    source = file.read_bytes()
    lines = source.splitlines(keepends=True)
    line = lines[mutant.line - 1]
    lines[mutant.line - 1] = line[: mutant.start] + mutant.after.encode() + line[mutant.end :]
    file.write_bytes(b"".join(lines))
    options = ("-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", "-n", "0")
    command = (sys.executable, "-m", "pytest", *options, f"tests/{mutant.room}")
    try:
        done = subprocess.run(
            command, cwd=copy, capture_output=True, timeout=TIMEOUT_S, check=False
        )
        return done.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_bytes(source)


def main(count: int, seed: int) -> None:
    made: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "checkout"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
        for mutant in choose_mutants(count, seed):
            made[mutant.room] += 1
            if is_caught(mutant, copy):
                caught[mutant.room] += 1
            else:
                sys.stdout.write(f"survives: {mutant}\n")
                sys.stdout.flush()
    sys.stdout.write("\n| room | mutants | caught |\n| --- | --- | --- |\n")
    for room in ROOMS:
        sys.stdout.write(f"| {room} | {made[room]} | {caught[room]} |\n")


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    main(*(numbers + [DEFAULT_COUNT, DEFAULT_SEED][len(numbers) :]))
