"""/incognito: a conversation of which nothing is written down; and what is said after a restart that ended one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from core.errors import Refused
from core.ports import Clock
from core.privacy.incognito import IncognitoConversations
from core.store.outbox import Outbox, OutboxItem
from core.types import Address, Answer, Command, CommandSpec, Option
from gateway.commands.context import CommandContext

_INCOGNITO = CommandSpec(
    name="incognito",
    description="A conversation of which nothing is kept; off ends it",
    options=(Option(name="state", description="on or off", choices=("on", "off")),),
)
BEGUN = (
    "From here on nothing is written down: what we say lives in memory only, until `/incognito off`, `/new` or a "
    "restart of mine. I note nothing, learn nothing, and cannot find it again; the model and this platform see it as "
    "always. Each answer says that it is incognito."
)
ENDED = "Incognito is over: what was said is gone, and nothing of it was written down. We are where we were before it."
LOST = (
    "I was restarted, and with that our incognito conversation has ended: nothing of it is left, also not what you "
    "wrote last. From here on I keep again what we say; `/incognito` begins another."
)


class _Marks(Protocol):
    async def left_over(self) -> Sequence[Address]: ...

    async def remove(self, address: Address) -> None: ...


class IncognitoCommands:
    """Begins and ends what `conversations` holds in memory only."""

    specs = (_INCOGNITO,)

    def __init__(self, conversations: IncognitoConversations, clock: Clock) -> None:
        self._conversations = conversations
        self._clock = clock

    def is_reading(self, command: Command) -> bool:
        """It changes what becomes of the next message."""
        return False

    async def run(self, command: Command, caller: CommandContext) -> Answer:
        """See `gateway.commands.registry`."""
        state = command.arguments.strip().lower()
        if state not in ("", "on", "off"):
            raise Refused("Say `/incognito on` or `/incognito off`.")
        if caller.scope.is_room and not caller.is_owner:
            raise Refused("In a room only my owner can begin or end an incognito conversation.")
        if state == "off":
            return await self._end(caller)
        if caller.session.is_incognito:
            return Answer(text="This conversation is incognito already. `/incognito off` ends it.")
        await self._conversations.begin(caller.inbound.address)
        return Answer(text=BEGUN)

    async def _end(self, caller: CommandContext) -> Answer:
        if not caller.session.is_incognito:
            raise Refused("This conversation is not incognito.")
        await self._conversations.end(caller.session.id, "new", self._clock.now())
        return Answer(text=ENDED)


async def tell_of_restart(marks: _Marks, outbox: Outbox, clock: Clock) -> None:
    """At the start of a process: says where an incognito conversation has ended with the one before."""
    for address in await marks.left_over():
        key = f"incognito:{address.key}:{clock.now().isoformat()}"
        await outbox.hold(OutboxItem(key=key, kind="notice", address=address))
        await outbox.fill(key, Answer(text=LOST), clock.now())
        await marks.remove(address)
