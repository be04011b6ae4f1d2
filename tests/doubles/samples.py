"""Values that tests of the store begin with: an address, a scope, sessions and messages of one person."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from core.store.conversations import Conversations
from core.types import Address, Inbound, Message, Scope, Sender, Session

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CHAT = Address(platform="telegram", chat_id="42")
ANA = Scope.account("telegram", "42")
BOB = Scope.account("telegram", "7")
SPEAKER = Sender(id="42", name="Ana")


def session(**changes: Any) -> Session:
    """A session of Ana in her direct chat, started at noon."""
    return Session(**{"address": CHAT, "scope": ANA, "started_at": NOON, **changes})


def message(session_id: int, text: str = "hello", **changes: Any) -> Message:
    """Something Ana said at noon."""
    return Message(
        **{"role": "user", "text": text, "session_id": session_id, "created_at": NOON, "sender": SPEAKER, **changes}
    )


def inbound(message_id: str = "1", **changes: Any) -> Inbound:
    """A message of Ana's as an adapter gives it."""
    return Inbound(
        **{
            "kind": "message",
            "address": CHAT,
            "scope": ANA,
            "sender": SPEAKER,
            "text": "hello",
            "message_id": message_id,
            "sent_at": NOON,
            "is_direct": True,
            **changes,
        }
    )


async def opened(conversations: Conversations, *texts: str, **changes: Any) -> Session:
    """A new session with these messages in it, as it stands afterwards."""
    made = await conversations.create(session(**changes))
    await conversations.append([message(made.id, text) for text in texts])
    found = await conversations.find(made.id, frozenset((made.scope,)))
    assert found is not None
    return found
