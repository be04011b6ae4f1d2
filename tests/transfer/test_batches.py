"""Cutting an import into transactions: nothing lost, nothing twice, sessions whole where they can be."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.transfer import archive
from core.transfer.archive import cut
from core.transfer.record import TransferRecord
from core.types import Address

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def _line(session: int, number: int, length: int) -> TransferRecord:
    address = Address(platform="terminal", chat_id="1")
    at = NOON - timedelta(seconds=number)
    return TransferRecord(session=str(session), role="user", text="x" * length, at=at, address=address, id=str(number))


@given(st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=25), max_size=12), st.integers(1, 9))
def test_every_line_is_in_one_batch_and_no_batch_is_long(lengths: list[list[int]], most: int) -> None:
    sessions = [[_line(place, n, length) for n, length in enumerate(one)] for place, one in enumerate(lengths)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive, "LINES", most)
        patch.setattr(archive, "CHARS", 50)
        made = list(cut(sessions))
    flat = [line for batch in made for piece in batch for line in piece]
    assert flat == [line for session in sessions for line in reversed(session)], "each session by its times"
    for batch in made:
        sizes = [len(line.text) for piece in batch for line in piece]
        assert 0 < len(sizes) <= most
        assert sum(sizes[:-1]) < 50
        assert max(Counter(piece[0].session for piece in batch).values()) == 1
    pieces = Counter(piece[0].session for batch in made for piece in batch)
    for session in sessions:
        fits = len(session) <= most and sum(len(line.text) for line in session) < 50
        assert (pieces[session[0].session] == 1) >= fits, "only what is too much alone comes in pieces"
