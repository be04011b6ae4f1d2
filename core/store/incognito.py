"""Conversations that are held in memory only, beside those that are written down, and gone with the process or with
`/incognito off`. They differ by `Session.is_incognito` alone; the ids of their sessions and messages are negative.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from typing import Any

from core.errors import StaleReadError
from core.store.rows import turns
from core.types import Address, Json, Message, Scope, Session


@dataclass(slots=True)
class IncognitoConversation:
    """What is held of one conversation; `session` is None until the first message."""

    session: Session | None = None
    rows: list[Message] = field(default_factory=list)
    undone: dict[str, Collection[int]] = field(default_factory=dict)
    back: dict[str, Collection[int]] = field(default_factory=dict)
    """By the command that did it, the ids of what is undone, and of what was brought back."""

    def find(self, external_id: str | None) -> Message | None:
        return next((row for row in self.rows if external_id is not None and row.external_id == external_id), None)

    def change(self, **values: Any) -> None:
        if self.session is not None:
            self.session = replace(self.session, **values)

    def amend(self, known: Message, text: str | None) -> None:
        """As `Conversations.amend`; what quotes it goes on without."""
        kind = known.kind if text is not None else "command"
        if text is None or known.kind == "chat":
            self.rows[self.rows.index(known)] = replace(known, kind=kind, text=text or "", blocks=None, sent=None)
        for place, row in enumerate(self.rows):
            if row.quoted is not None and row.quoted.message_id == known.id:
                self.rows[place] = replace(row, quoted=None, sent=None)

    def undoable(self) -> list[Message]:
        """As `lineage.undoable`."""
        own = takewhile(lambda row: row.kind != "summary", reversed(self._shown()))
        return [row for row in own if row.kind in ("chat", "quote") or not row.text][::-1]

    def undo(self, origin: str, ids: Collection[int]) -> Sequence[Message]:
        """As `lineage.undo`."""
        return self._of(self.undone.setdefault(origin, ids))

    def bring_back(self, origin: str) -> Sequence[Message]:
        """As `lineage.bring_back`."""
        if origin not in self.back:
            back: Collection[int] = ()
            while self.undone and not self._of(back):
                _, back = self.undone.popitem()
            self.back[origin] = back
            turn = next((turn for turn in turns(self.undoable()) if any(row.id in back for row in turn)), ())
            if all(row.role != "user" for row in self._of(back)):
                self.undo(origin, [row.id for row in turn if row.role != "user" and row.id not in back])
        return self._of(self.back[origin])

    def history(self, scopes: frozenset[Scope]) -> list[Message]:
        is_seen = self.session is not None and self.session.scope in scopes
        return [row for row in self._shown() if is_seen and row.kind in ("chat", "quote", "summary")]

    def _of(self, ids: Collection[int]) -> list[Message]:
        return [row for row in self.rows if row.id in ids]

    def _shown(self) -> list[Message]:
        hidden = {id_ for ids in self.undone.values() for id_ in ids}
        return [row for row in self.rows if row.id not in hidden]


class IncognitoRegistry:
    """The conversations that are incognito in this process; the two addresses of a chat that has moved share one."""

    def __init__(self) -> None:
        self.conversations: dict[Address, IncognitoConversation] = {}
        self._ids = count(-(2**62))  # in order, and nobody's in state.db

    def is_named(self, platform: str, raw: str) -> bool:
        """Whether what a platform sent, as JSON, holds the number of an incognito chat or thread."""
        numbers = {*re.findall(r"-?\d+", raw)}
        held = (one for one in self.conversations if one.platform == platform)
        return any(one.chat_id in numbers or one.thread_id in numbers for one in held)

    def of(self, session_id: int) -> IncognitoConversation | None:
        held = self.conversations.values()
        return next((one for one in held if one.session and one.session.id == session_id), None)

    def move(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        for address, held in list(self.conversations.items()):
            if (address.platform, address.chat_id) == (platform, old_chat_id):
                self.conversations.setdefault(replace(address, chat_id=new_chat_id), held)

    def open(self, held: IncognitoConversation, session: Session) -> Session:
        """Opens `session` in place of the one before it, of which nothing stays."""
        held.rows, held.session = [], replace(session, id=next(self._ids), is_incognito=True)
        return held.session

    def compress(self, session: Session, summary: Message | None, sent: Mapping[int, tuple[Json, ...]]) -> Session:
        """As `Conversations.create`, for a compression; of what is not carried over nothing is left."""
        held = self.of(session.parent_id or 0)
        if held is None:
            raise StaleReadError("The conversation has ended meanwhile.")
        rows = [replace(row, sent=sent.get(row.id, row.sent)) for row in held.rows if row.kind != "summary"]
        head = [row for row in rows if (session.head_from or 0) <= row.id <= (session.head_until or 0)]
        tail = [row for row in rows if session.opens_at is not None and row.id >= session.opens_at]
        held.session = replace(session, id=next(self._ids), is_incognito=True)
        own = [] if summary is None else [replace(summary, id=next(self._ids), session_id=held.session.id)]
        held.rows = [*head, *own, *tail]
        return held.session

    def append(self, message: Message) -> Message:
        held = self.of(message.session_id)
        if held is not None and (known := held.find(message.external_id)):
            return known
        stored = replace(message, id=next(self._ids))
        if held is not None and held.session is not None:
            # It has not ended meanwhile.
            held.rows.append(stored)
            held.change(messages=held.session.messages + (stored.kind == "chat"), last_at=stored.created_at)
        return stored

    def invalidate(self) -> None:
        """Drops prompts, sent forms of questions with what they quote, summaries and results of tools: they may repeat
        what was erased."""
        for held in self.conversations.values():
            held.change(system_prompt="")
            held.rows = [
                replace(row, sent=None, quoted=None)
                for row in held.rows
                if row.role != "tool" and row.kind != "summary"
            ]
