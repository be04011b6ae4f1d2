"""Decides what becomes of something that is to be kept, by who said it: kept, asked about, or put aside for a yes.

Typed by whoever may decide: kept as it stands, without what nobody can see; what may be a secret or an address for data
is asked about. All else waits, is listed, and is done only after the yes of its scope's owner. Never touches a file.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from core.errors import Refused
from core.guard import guard
from core.guard.fence import mark, told
from core.ports import Clock
from core.store.notes import Author, Notes, Operation, PendingNote
from core.types import Account, ErasureEpoch, Message, Scope, Sender

ANYWAY = "--anyway"
"""Before a text that a person means as it stands."""
_ANYWAYS = (ANYWAY, "\N{EM DASH}anyway")
"""Telephones make one dash of two."""
_RECALLED = re.compile(r"- (?![nf]\d)")


async def _nobody(note: PendingNote) -> None:
    return None


class Review:
    """What waits in `notes` for a yes."""

    def __init__(self, notes: Notes, clock: Clock) -> None:
        self._notes = notes
        self._clock = clock
        self.on_pending: Callable[[PendingNote], Awaitable[None]] = _nobody
        """Called with what was put aside."""
        self.on_warning: Callable[[Scope, str, str, str], Awaitable[None]] | None = None
        """Called for what was written into a file by hand: whose, which target, what it contains, and the text."""

    async def put_aside(
        self, scope: Scope, target: str, operations: Sequence[Operation], author: Author, reason: str
    ) -> str:
        """Lets it wait for a yes; returns a sentence for the model. `reason` is a clause. Raises Refused where too much
        waits already."""
        done, now = tuple(operations), self._clock.now()
        note = PendingNote(**author.source, scope=scope, target=target, operations=done, reason=reason, at=now)
        if not await self.offer(note, author.epoch):
            raise Refused(f"Not kept: {reason}, and too much waits to be looked at already (/memory pending).")
        return (
            f"Not kept yet: {reason}. It waits for {'the owner' if scope.is_room else 'the person'} to say yes "
            "(/memory pending). Do not try it again in other words."
        )

    async def offer(self, note: PendingNote, epoch: ErasureEpoch | None) -> bool:
        """Lets it wait and tells of it; False where there is no room for it."""
        aside = await self._notes.put_aside(note, epoch)
        if aside is not None:
            await self.on_pending(aside)
        return aside is not None

    async def waiting(self, scopes: frozenset[Scope]) -> Sequence[PendingNote]:
        """Oldest first."""
        return await self._notes.waiting(scopes)

    async def remind(self, scopes: frozenset[Scope]) -> None:
        """Calls `on_pending` again for what waits: there may have been no chat to tell it in before."""
        oldest = {(note.scope, note.is_draft): note for note in reversed(await self.waiting(scopes))}
        for note in oldest.values():
            await self.on_pending(note)


def typed(content: str, limit_chars: int, *, is_insisting: bool) -> tuple[str, str]:
    """Typed text as it is kept, and a sentence on what was left out, empty where nothing was. Raises Refused where it
    is too long (looked at first), or suspicious and nobody insists."""
    if len(content) > limit_chars:
        raise Refused(f"That is too long: {len(content):,} characters, over its limit of {limit_chars:,}.")
    text = guard.cleaned(content)
    if not is_insisting and (reason := guard.suspicion(text)):
        raise Refused(doubt(reason))
    found = guard.suspicion(content) if text != content else None
    return text, f"I left out of it what nobody can see or only I may write: {found}." if found else ""


def reason_to_wait(operations: Sequence[Operation]) -> str | None:
    """What in the contents needs a yes whoever said it, as a clause."""
    found = (guard.suspicion(one.content) for one in operations)
    return next((f"it contains {reason}" for reason in found if reason), None)


def doubt(reason: str) -> str:
    return f"Not kept yet: it contains {reason}. Reword it, or say it again with {ANYWAY} before it."


def insisting(text: str) -> tuple[str, bool]:
    word, _, rest = text.partition(" ")
    return (rest.strip(), True) if word in _ANYWAYS else (text, False)


def is_foreign(row: Message, asker: Sender, own_tools: Sequence[str]) -> bool:
    """Whether the model has read something there that its asker has not typed: a result of other tools than those, a
    forward, a quote, a paste, a file, another member."""
    if row.role == "user":
        is_quoting = row.quoted is not None and not row.quoted.is_ours and row.quoted.user_id != asker.id
        return is_quoting or bool(told(row)) or (row.sender is not None and row.sender.id != asker.id)
    return row.role == "tool" and row.tool_name not in own_tools


def foreign(rows: Sequence[Message], asker: Sender, own_tools: Sequence[str]) -> str | None:
    """Why what a model wants may be somebody else's, as a clause: what it has read that is foreign, or recalled."""
    others = (row for row in rows if _is_recalled(row) or is_foreign(row, asker, own_tools))
    if (found := next(others, None)) is None:
        return None
    which = f"what {found.tool_name} has found" if found.role == "tool" else "what nobody has typed in it"
    return f"this conversation has {which}, which may be where it comes from"


def _is_recalled(row: Message) -> bool:
    """Whether it has something of another conversation that is neither a note nor a fact."""
    lines = (line for block in row.memory for line in str(block.get("text", "")).splitlines())
    return row.kind == "summary" or row.origin == "job" or any(map(_RECALLED.match, lines))


def quoted(name: str, account: Account, operations: Sequence[Operation]) -> list[Operation]:
    """A room member's contents as quotations, with name and mark."""
    who = f"{' '.join(name.split())[:80]} {mark(account)}"
    return [replace(one, content=f"{who}: “{one.content.strip()}”") if one.content else one for one in operations]
