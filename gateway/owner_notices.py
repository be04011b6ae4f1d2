"""Tells the owner what he has to know, where he talks to us: that a stranger asks to be let in, so that he sees who it
is before he is given a code; that a memory is out of order, or something is put aside until he decides."""

from __future__ import annotations

from collections.abc import Callable

from core.markup.render import escape
from core.ports import Clock, Outbox, People, Transcripts
from core.records import Pairing, Parcel
from core.store import epoch
from core.types import Answer, Scope

LOCAL = Scope.account("terminal", "local")
LOOKED_AT = 20
"""Among so many of the owner's latest conversations a place is looked for where he can be told."""


class Doorbell:
    """Rings where the owner talked last, in private; at the terminal only when there is no other place. `on_wake` tells
    the courier."""

    def __init__(
        self, people: People, transcripts: Transcripts, outbox: Outbox, clock: Clock, on_wake: Callable[[], None]
    ) -> None:
        self._people = people
        self._transcripts = transcripts
        self._outbox = outbox
        self._clock = clock
        self._on_wake = on_wake

    async def ring(self, pairing: Pairing) -> None:
        """Leaves a notice with platform, name and id in the outbox; the code is not in it: the stranger has to give it
        away himself. Nobody to tell is no error: `mneme approve` lists who waits."""
        account = pairing.account
        who = f"**{escape(pairing.name)}** ({account.platform.title()}, id `{account.user_id}`)"
        await self.tell(
            f"pairing:{account.key}:{pairing.expires_at.isoformat()}",
            f"{who} asks to be let in. If you want that, ask for the code that was shown there and send "
            "`/approve CODE`. Otherwise do nothing.",
        )

    async def tell(self, key: str, text: str, scope: Scope = LOCAL) -> None:
        """Leaves a notice in the outbox, once for each `key`: to the owner, or to the person whose `scope` it is. It is
        in our own words, so it is left also when something was forgotten that the running turn has read."""
        with epoch.holding(None):
            await self._left(key, text, scope)

    async def _left(self, key: str, text: str, scope: Scope) -> None:
        sessions = await self._transcripts.recent(await self._people.scopes(scope), LOOKED_AT)
        places = [session.address for session in sessions if not session.scope.is_room]
        places.sort(key=lambda address: address.platform == "terminal")
        if not places:
            return
        held = await self._outbox.hold(Parcel(key=key, kind="notice", address=places[0]))
        if held.answer is None and not held.is_over:
            await self._outbox.fill(key, Answer(text=text), self._clock.now())
            self._on_wake()
