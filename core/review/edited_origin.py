"""Finds the origin of a message after an edit.

An edit may remove a text that the person pasted or retyped. The answer may repeat that text, so the
message then counts as pasted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from core.guard.foreign_texts import list_foreign_texts
from core.guard.origin_and_fence import find_edited_origin, typed_part
from core.ports import EditJudge
from core.review.repetition import repeats
from core.review.transcript import MAX_EARLIER
from core.store.sessions import Conversations
from core.types import Inbound, Message, Origin, Scope


async def make_edit_judge(
    conversations: Conversations, inbound: Inbound, scope: Scope
) -> EditJudge:
    """Return the function that finds the origin of a stored message after the edit `inbound`.

    `scope` is the scope of the message's chat. The text before the edit is compared with the
    foreign texts of all conversations that the person can see.
    """
    question = await conversations.load_question(inbound.address, inbound.message_id)
    if question is None or question.is_command:
        return find_edited_origin
    typed = typed_part(question.text, sender_name=inbound.sender.name)
    recent = await conversations.list_recent(frozenset((scope,)), 1)
    scopes = frozenset((scope,)).union(*(each.prompt.visible_scopes for each in recent))
    latest = await conversations.list_latest_from_outside(scopes, MAX_EARLIER)
    # Comparing long texts takes long, so it runs in a thread.
    is_repetition = await asyncio.to_thread(_repeats_foreign_text, typed, latest)

    def find_origin(origin: Origin, old_text: str, new_text: str) -> Origin:
        if is_repetition and origin in ("typed", "spoken") and old_text != new_text:
            return "pasted"
        return find_edited_origin(origin, old_text, new_text)

    return find_origin


def _repeats_foreign_text(typed: str, latest: Sequence[Message]) -> bool:
    return bool(typed) and repeats(typed, list_foreign_texts(latest))
