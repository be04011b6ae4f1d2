"""The corpus of the guard: what must not enter the system prompt and what must, in files of one text a line.

The held-out files were written before the patterns and are only ever counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "corpus"

_ESCAPE = re.compile(r"\\(?:\\|n|x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")


@dataclass(frozen=True, slots=True)
class Sample:
    """`language` is a code of two letters, xx where no language is spoken; `kind` a word of the corpus."""

    language: str
    kind: str
    text: str


def samples(name: str) -> list[Sample]:
    """What stands in ``tests/corpus/{name}.txt``, in order."""
    found = []
    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").split("\n"):
        if line and not line.startswith("#"):
            head, _, text = line.partition(": ")
            language, kind = head.split(" ")
            found.append(Sample(language, kind, _ESCAPE.sub(_unescaped, text)))
    return found


def _unescaped(found: re.Match[str]) -> str:
    if code := found[1] or found[2] or found[3]:
        return chr(int(code, 16))
    return "\n" if found[0] == "\\n" else "\\"
