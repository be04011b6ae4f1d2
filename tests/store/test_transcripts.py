"""What people see of sessions."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.store.engine import Database
from core.store.sessions import Conversations
from core.types import Address
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import ANA, BOB, NOON, message, opened, session

MINE = frozenset((ANA,))


@pytest.fixture
def conversations(database: Database, clock: SteadyClock) -> Conversations:
    return Conversations(database, clock)


async def _listed(
    conversations: Conversations, text: str | None = None, limit: int = 10
) -> list[str | None]:
    return [found.title for found in await conversations.list_recent(MINE, limit, text)]


async def test_recent_sessions_list_only_sessions_with_messages_newest_first(
    conversations: Conversations,
) -> None:
    for hour, title in enumerate(("oldest", "middle", "newest")):
        made = await conversations.create(
            session(title=title, address=Address(platform="terminal", chat_id=title))
        )
        await conversations.append([message(made.id, created_at=NOON + timedelta(hours=hour))])
    await conversations.create(session(title="empty"))
    commands = await conversations.create(session(title="commands only"))
    await conversations.append([message(commands.id, "/help", kind="command")])
    await opened(
        conversations, "theirs", scope=BOB, address=Address(platform="discord", chat_id="1")
    )
    assert await _listed(conversations) == ["newest", "middle", "oldest"]
    assert await _listed(conversations, limit=2) == ["newest", "middle"]
    assert await _listed(conversations, limit=10**30) == ["newest", "middle", "oldest"]
    assert await _listed(conversations, limit=-1) == []
    (newest,) = await conversations.list_recent(MINE, 1)
    assert newest == await conversations.find(newest.id, MINE)


async def test_recent_sessions_are_filtered_by_their_title(conversations: Conversations) -> None:
    await opened(conversations, "about the FERRY", "and 100% of it_all", title="Porto")
    await opened(conversations, "Паром в Порту", title="Жёлтый 50%")
    await opened(conversations, "", "nothing", "ferry")
    assert await _listed(conversations, " pORTO ") == ["Porto"]
    assert await _listed(conversations, "ЖЁЛТЫЙ") == ["Жёлтый 50%"]
    assert await _listed(conversations, "%") == ["Жёлтый 50%"]
    for absent in ("ferry", "_", "100%", "\ud800", "\0", "' OR 1=1 --"):
        assert await _listed(conversations, absent) == []
    assert len(await _listed(conversations, "  ")) == 3


async def test_transcript_contains_only_messages_that_the_person_may_read(
    conversations: Conversations,
) -> None:
    made = await opened(conversations)
    sent = ({"type": "text", "text": "<memory-context>"},)
    await conversations.append(
        [
            message(made.id, kind, kind=kind, sent_blocks=sent)
            for kind in ("chat", "quote", "command", "notice")
        ]
    )
    result = ({"type": "tool_result", "tool_use_id": "t1", "content": "found"},)
    call = ({"type": "tool_use", "id": "t1", "name": "session_search", "input": {}},)
    await conversations.append(
        [
            message(made.id, "", role="assistant", blocks=call),
            message(made.id, "found", role="tool", blocks=result, kind="quote"),
            message(made.id, "done", role="tool", blocks=result),
            message(made.id, "You said so.", role="assistant", kind="quote"),
            message(made.id, "", role="assistant", kind="quote"),
        ]
    )
    shown, answer = await conversations.load_transcript(made.id, MINE)
    assert (shown.text, shown.sent_blocks) == ("chat", None)
    assert (answer.text, answer.kind) == ("You said so.", "quote"), "it is what the assistant said"
    assert await conversations.load_transcript(10**30, MINE) == []
