"""Tells who decides about it that something which reads like an order was put aside: once, while anything waits there.

Says where and how to look; what was to be noted is not repeated.
"""

from __future__ import annotations

from datetime import datetime

from core.notes.files import FILES
from core.review.pending import PendingNote
from gateway.owner_notices import LOCAL, Doorbell


class Summons:
    """Rings at `doorbell`: the owner's for a room, the person's own otherwise."""

    def __init__(self, doorbell: Doorbell) -> None:
        self._doorbell = doorbell

    async def call(self, note: PendingNote, began_at: datetime) -> None:
        """Leaves a notice; nothing new where one was left since `began_at`."""
        scope, name = note.scope, FILES[note.target]
        what = f"In {name} stands" if note.is_written else f"For {name} came"
        text = (
            f"{what} something that reads like an order to me: it contains {note.reason}. I do not follow it and leave "
            "it out until you decide"
        )
        look = "`/memory pending` shows it"
        if scope.is_room:
            text = f"About the room `{scope.key}`: {text}"
            look = f"{look} in that room, `mneme memory pending --scope {scope.key}` in a shell"
        key = f"aside:{scope.key}:{began_at.isoformat()}"
        await self._doorbell.tell(key, f"{text}. {look}.", LOCAL if scope.is_room else scope)

    async def call_about(self, name: str, reason: str, digest: str) -> None:
        """The same for a file of the owner's own that is left out; once for what it says."""
        await self._doorbell.tell(
            f"aside:{name}:{digest}",
            f"{name} reads like an order from elsewhere to me: it contains {reason}. I leave it out of the prompts "
            f"until you say that you mean it: `/memory approve {name}`.",
        )
