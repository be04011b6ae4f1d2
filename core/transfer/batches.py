"""What an import stores in one transaction: whole sessions, as many as a writer beside it may wait for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from core.transfer.record import Chronicle

Batch = Sequence[Sequence[Chronicle]]
"""Lines of some sessions, each session's in the order of their times."""

LINES = 500
CHARS = 500_000
"""A transaction has at most so many lines, and ends with the line that makes it so long. It then takes some 30 ms."""


def cut(sessions: Iterable[Sequence[Chronicle]]) -> Iterator[Batch]:
    """Sessions as batches; in pieces only where one alone is too much. No batch has two pieces of one session."""
    batch: list[Sequence[Chronicle]] = []
    count = chars = 0
    for session in sessions:
        for piece in _pieces(sorted(session, key=lambda line: line.at)):
            size = sum(len(line.text) for line in piece)
            if batch and (count + len(piece) > LINES or chars + size > CHARS):
                yield batch
                batch, count, chars = [], 0, 0
            batch.append(piece)
            count, chars = count + len(piece), chars + size
            if len(piece) < len(session):
                yield batch
                batch, count, chars = [], 0, 0
    if batch:
        yield batch


def _pieces(lines: Sequence[Chronicle]) -> Iterator[Sequence[Chronicle]]:
    piece: list[Chronicle] = []
    chars = 0
    for line in lines:
        piece.append(line)
        chars += len(line.text)
        if len(piece) == LINES or chars >= CHARS:
            yield piece
            piece, chars = [], 0
    if piece:
        yield piece
