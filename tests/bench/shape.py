"""Measures the size of the product: lines, files, modules and complexity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from radon.complexity import cc_visit  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[2]
FLOORS = ("config", "core", "adapters", "gateway")
COMPLEX = 15
"""Cyclomatic complexity (McCabe 1976, as radon counts it) above which a function is listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The size of the product.

    `modules` has the lines of each Python file by its path, and `loose` the lines of the files
    directly in core/. `complex` has the functions above `COMPLEX` with their complexity, worst
    first.
    """

    modules: Mapping[str, int]
    loose: Sequence[str]
    complex: Sequence[tuple[str, int]]

    @property
    def lines(self) -> int:
        return sum(self.modules.values())


def measure(root: Path = ROOT) -> Shape:
    """Return the shape of the four packages under `root`."""
    modules, worst = {}, []
    for path in sorted(path for floor in FLOORS for path in (root / floor).rglob("*.py")):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        modules[name] = text.count("\n")
        worst += [
            (f"{name}:{block.lineno} {block.fullname}", block.complexity)
            for block in cc_visit(text)
            if block.letter != "C" and block.complexity > COMPLEX
        ]
    return Shape(
        modules=modules,
        loose=[name for name in modules if name.count("/") == 1 and name.startswith("core/")],
        complex=sorted(worst, key=lambda one: -one[1]),
    )


def report() -> str:
    """Return the Markdown of `make bench -- --only shape`."""
    shape = measure()
    rooms: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for name, lines in shape.modules.items():
        room = (
            "/".join(name.split("/")[:2]) if name.startswith("core/") else name.rpartition("/")[0]
        )
        rooms[room] += lines
        files[room] += 1
    largest = sorted(shape.modules.items(), key=lambda one: -one[1])[:5]
    rows = [f"| {room} | {lines:,} | {files[room]} |" for room, lines in sorted(rooms.items())]
    return "\n".join(
        [
            "| room | lines | files |",
            "| --- | ---: | ---: |",
            *rows,
            f"| **all** | **{shape.lines:,}** | **{len(shape.modules)}** |",
            "",
            "Largest modules: " + ", ".join(f"{name} {lines}" for name, lines in largest) + ".",
            f"Loose in core/: {', '.join(shape.loose)}.",
            f"Functions above complexity {COMPLEX}: {len(shape.complex)}"
            + "".join(f"\n* {name}: {complexity}" for name, complexity in shape.complex),
        ]
    )
