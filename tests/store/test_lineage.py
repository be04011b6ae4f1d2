"""One conversation of several sessions: listed once, gone on with at its end, and undone without
being lost."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.search.recall import Recall
from core.store.engine import Database
from core.store.lineage import MAX_HOPS, UndoRequest
from core.store.query import SearchQuery
from core.store.sessions import Conversations
from core.types import Address, EndReason, Session, SessionEnd
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import ANA, BOB, NOON, message, session
from tests.fixtures.search_queries import search_query

MINE = frozenset((ANA,))


@pytest.fixture
def conversations(database: Database, clock: SteadyClock) -> Conversations:
    return Conversations(database, clock)


@pytest.fixture
def recall(database: Database, clock: SteadyClock) -> Recall:
    return Recall(database, clock)


async def _parts(
    conversations: Conversations, *endings: EndReason, title: str = "Trip"
) -> list[Session]:
    """A session and those that continue it, with two messages each, an hour apart."""
    made: list[Session] = []
    for number, ending in enumerate(("new", *endings)):
        at = NOON + timedelta(hours=number)
        opens = session(title=title, started_at=at, parent_id=made[-1].id if made else None)
        made.append(await conversations.create(opens, ending))
        await conversations.append(
            [
                message(
                    made[-1].id,
                    f"The ferry of part {number + 1}",
                    created_at=at,
                    external_id=f"m{number}",
                ),
                message(made[-1].id, f"Noted, part {number + 1}", created_at=at, role="assistant"),
            ]
        )
    return made


async def _tip(conversations: Conversations, session_id: int) -> int | None:
    found = await conversations.find_tip(session_id, MINE)
    return None if found is None else found.id


async def test_conversation_of_several_sessions_is_listed_once_with_all_its_messages(
    conversations: Conversations,
) -> None:
    parts = await _parts(conversations, "compression", "length", "idle", "daily")
    (listed,) = await conversations.list_recent(MINE, 10)
    assert (listed.id, listed.messages) == (parts[-1].id, 10)
    assert [found.id for found in await conversations.list_recent(MINE, 10, "trip")] == [
        parts[-1].id
    ]
    assert [
        found.id for found in await conversations.list_recent(MINE, 10, roots=[parts[0].id])
    ] == [parts[-1].id]
    assert await conversations.list_recent(MINE, 10, roots=[]) == []


async def test_continuing_any_part_of_a_split_session_continues_its_last_part(
    conversations: Conversations,
) -> None:
    parts = await _parts(conversations, "compression", "length", "idle", "daily")
    assert {await _tip(conversations, part.id) for part in parts} == {parts[-1].id}
    assert await conversations.find_tip(parts[0].id, frozenset((BOB,))) is None
    assert await _tip(conversations, 10**30) is None


async def test_branch_delegation_or_session_at_another_address_is_not_a_continuation(
    conversations: Conversations,
) -> None:
    first, branch = await _parts(conversations, "branch")
    desk = Address(platform="terminal", chat_id="local")
    await conversations.create(session(parent_id=branch.id, address=desk))
    await conversations.create(
        session(parent_id=branch.id, is_delegated=True, end=SessionEnd(at=NOON))
    )
    assert (await _tip(conversations, first.id), await _tip(conversations, branch.id)) == (
        first.id,
        branch.id,
    )
    assert [found.id for found in await conversations.list_recent(MINE, 10)] == [
        branch.id,
        first.id,
    ]
    assert branch.root_id == branch.id


async def test_a_branch_made_before_a_compression_does_not_lead_astray(
    conversations: Conversations,
) -> None:
    first, branch = await _parts(conversations, "branch")
    await conversations.reopen(first.id, NOON)
    child = await conversations.create(session(parent_id=first.id), "compression")
    assert (await _tip(conversations, first.id), await _tip(conversations, branch.id)) == (
        child.id,
        branch.id,
    )


async def test_search_for_a_sessions_last_part_terminates_on_a_cycle_and_a_very_long_chain(
    conversations: Conversations, database: Database
) -> None:
    parts = await _parts(conversations, "compression", "compression")
    await database.execute("UPDATE sessions SET parent_id = :last, end_reason = 'compression' WHERE id = :first",
                           {"last": parts[-1].id, "first": parts[0].id})  # fmt: skip
    await database.execute("UPDATE sessions SET end_reason = 'compression'", {})
    assert {await _tip(conversations, part.id) for part in parts} == {parts[-1].id}
    last = parts[-1].id
    for _ in range(MAX_HOPS + 5):
        last = (await conversations.create(session(parent_id=last), "compression")).id
    assert await _tip(conversations, last - MAX_HOPS) == last
    assert await _tip(conversations, parts[0].id) == parts[0].id + MAX_HOPS


async def test_recall_finds_a_compressed_session_once_with_start_and_end_of_its_whole_lineage(
    conversations: Conversations, recall: Recall
) -> None:
    parts = await _parts(conversations, "compression", "compression", "compression")
    found = await recall.recall(SearchQuery(text="ferry part 2", scopes=MINE))
    (whole,) = found.sessions
    assert [item.text for item in whole.bookend_start] == [
        "The ferry of part 1",
        "Noted, part 1",
        "The ferry of part 2",
    ]
    assert [item.text for item in whole.bookend_end] == [
        "Noted, part 3",
        "The ferry of part 4",
        "Noted, part 4",
    ]
    assert {item.text for item in whole.window} == {"The ferry of part 2", "Noted, part 2"}
    read = await recall.recall(search_query(scopes=MINE, session_id=parts[2].id))
    assert len(read.sessions[0].window) == 8
    browsed = await recall.recall(SearchQuery(scopes=MINE))
    assert [one.session.id for one in browsed.sessions] == [parts[-1].id]


async def test_session_in_the_window_of_the_model_does_not_end_the_lineage(
    conversations: Conversations, recall: Recall
) -> None:
    parts = await _parts(conversations, "compression", "compression")
    hidden = ((parts[2].id, 0, 2**63 - 1),)
    (found,) = (
        await recall.recall(SearchQuery(text="ferry part 1", scopes=MINE, hidden=hidden))
    ).sessions
    assert [item.text for item in found.bookend_end] == [
        "Noted, part 1",
        "The ferry of part 2",
        "Noted, part 2",
    ]


async def _found(recall: Recall, text: str) -> set[str]:
    findings = await recall.recall(search_query(text=text, scopes=MINE, messages=50, sessions=10))
    return {hit.snippet.replace(">>>", "").replace("<<<", "") for hit in findings.messages}


async def test_undone_message_is_hidden_and_redo_restores_its_place(
    conversations: Conversations, recall: Recall
) -> None:
    first, second = await _parts(conversations, "compression")
    for number in range(40):
        await conversations.append([message(second.id, f"filler {number}")])
    while await recall.tend():
        pass
    said = await conversations.load_transcript(second.id, MINE)
    mine = [row.id for row in said[:2]]
    undone = await conversations.undo(UndoRequest(session=second, origin="u1", at=NOON), mine)
    assert [row.id for row in undone] == mine
    assert (
        await conversations.undo(UndoRequest(session=second, origin="u1", at=NOON), [said[5].id])
        == undone
    )
    assert await conversations.load_transcript(second.id, MINE) == said[2:]
    assert mine[0] not in [row.id for row in await conversations.load_history(second, MINE)]
    assert "The ferry of part 2" not in await _found(recall, "ferry part")
    assert "The ferry of part 2" not in await _found(recall, "where is the ferry of part 2?")
    assert (await conversations.find(second.id, MINE) or second).messages == 40
    while await recall.tend():
        pass
    back = await conversations.redo(UndoRequest(session=second, origin="b1", at=NOON))
    assert [row.id for row in back] == mine
    assert await conversations.redo(UndoRequest(session=second, origin="b1", at=NOON)) == back
    assert await conversations.redo(UndoRequest(session=second, origin="b2", at=NOON)) == []
    assert await conversations.load_transcript(second.id, MINE) == said
    assert "The ferry of part 2" in await _found(recall, "where is the ferry of part 2?")
    while await recall.tend():
        pass
    assert "The ferry of part 2" in await _found(recall, "where is the ferry of part 2?")
    assert await recall.verify() == []
    assert first.id


async def test_restored_earlier_answer_replaces_the_later_answer(
    conversations: Conversations,
) -> None:
    (made,) = await _parts(conversations)
    question, answer = await conversations.load_transcript(made.id, MINE)
    await conversations.undo(UndoRequest(session=made, origin="r1", at=NOON), [answer.id])
    await conversations.append([message(made.id, "Better", role="assistant")])
    for origin, text in (("b1", "Noted, part 1"), ("b2", "Better"), ("b3", "Noted, part 1")):
        await conversations.redo(
            UndoRequest(session=made, origin=origin, at=NOON + timedelta(hours=int(origin[1])))
        )
        assert [row.text for row in await conversations.load_history(made, MINE)] == [
            question.text,
            text,
        ]
