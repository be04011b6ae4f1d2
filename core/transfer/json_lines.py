"""JSON lines, the format of `mneme export`: each line is read or refused with its number. Knows no table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from core.records import Skipped
from core.transfer.record import HOME, Chronicle
from core.types import Scope


def read(lines: Iterable[bytes | str], scope: Scope = HOME) -> Iterator[Chronicle | Skipped | None]:
    """One thing for each line, None for a blank one. `scope` is that of lines which name none."""
    for number, line in enumerate(lines, start=1):
        if number == 1:
            line = _without_mark(line)
        if not line.strip():
            yield None
            continue
        try:
            yield Chronicle.parse(line, scope)
        except ValueError as error:
            yield Skipped(reason=str(error), line=number)


def _without_mark(line: bytes | str) -> bytes | str:
    """The mark that some editors put in front of a file is no part of it."""
    return line.removeprefix(b"\xef\xbb\xbf") if isinstance(line, bytes) else line.removeprefix("\ufeff")
