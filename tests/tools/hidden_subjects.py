"""Lists test functions whose names hide their subject or their outcome.

``python -m tests.tools.hidden_subjects [COUNT]`` prints one line for each: the file, the name and
why. With a number, it prints so many names at random instead, to be read without their files.
"""

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
MIN_WORDS = 5
# Words that stand for a subject that only the file or the test names.
PRONOUNS = {"it", "they", "this", "that", "those", "these", "what", "who", "whoever", "whatever"}
STARTS = PRONOUNS | {"one", "others", "nobody", "somebody", "everybody", "nothing", "all", "both"}


def list_tests() -> Iterator[tuple[Path, str]]:
    """Yield each test function of the suite with its file."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else ""
            if name.startswith("test_"):
                yield path.relative_to(TESTS), name


def find_fault(name: str) -> str:
    """Return why a name hides its subject, or an empty text."""
    words = name.removeprefix("test_").split("_")
    if len(words) < MIN_WORDS:
        return f"{len(words)} words"
    start = words[1] if words[0] in ("a", "an", "the") else words[0]
    if start in STARTS:
        return f"begins with “{start}”"
    return ""


def main(count: int) -> None:
    tests = list(list_tests())
    if count:
        chosen = random.SystemRandom().sample(tests, count)
        sys.stdout.write("".join(f"{name}\n" for _, name in chosen))
        return
    faults = [(path, name, find_fault(name)) for path, name in tests]
    lines = [f"{path}: {name} ({fault})\n" for path, name, fault in faults if fault]
    sys.stdout.write(f"{''.join(lines)}{len(lines)} of {len(tests)} test functions\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
