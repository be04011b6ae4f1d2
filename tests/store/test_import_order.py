"""Renumbering: any order comes right in steps of which each may be the last, and nothing but the id changes."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.store import archive
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.types import Usage
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import NOON, message, session


@given(st.permutations(range(1, 30)), st.integers(1, 31))
def test_every_step_moves_within_itself_and_all_together_sort(order: list[int], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive, "STEP_MESSAGES", size)
        stored = {3 * place: number for place, number in enumerate(order)}
        by_time = sorted(stored, key=stored.__getitem__)
        for step in archive.steps(list(zip(by_time, sorted(stored), strict=True))):
            assert {old for old, _ in step} == {new for _, new in step}
            assert len(step) <= 2 * size
            stored |= {new: stored[old] for old, new in step}
    assert [stored[place] for place in sorted(stored)] == sorted(order)


async def test_a_message_keeps_all_but_its_id(database: Database, clock: SteadyClock) -> None:
    conversations = Conversations(database, clock)
    made = await conversations.create(session(ended_at=NOON, end_reason="import"))
    usage = Usage(input=1, output=2, cache_read=3, cache_write=4)
    late = message(made.id, "late", created_at=NOON + timedelta(hours=1), external_id="9", usage=usage)
    block = {"type": "tool_use", "id": "t", "name": "memory", "input": {}}
    early = message(made.id, "early", role="assistant", blocks=(block,), tools="memory", created_at=NOON)
    stored = await conversations.append([late, early])

    def work(connection: sqlite3.Connection) -> int:
        found = archive.disordered(connection, [made.id])
        for step in archive.steps(found[made.id]):
            archive.renumber(connection, step)
        assert archive.disordered(connection, [made.id]) == {}
        return len(found)

    assert await database.write(work) == 1
    ids = sorted(one.id for one in stored)
    first, second = await conversations.history(made, frozenset((made.scope,)))
    assert (first.text, second.text, [first.id, second.id]) == ("early", "late", ids)
    for now, before in ((first, stored[1]), (second, stored[0])):
        assert (now.blocks, now.tools, now.external_id, now.usage, now.sender, now.created_at) == (
            before.blocks,
            before.tools,
            before.external_id,
            before.usage,
            before.sender,
            before.created_at,
        )
