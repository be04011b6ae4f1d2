"""What whoever is not let in may do: ask to be let in, and link with an account that is. Nothing of it is kept but what
the pairing or the link needs.
"""

from __future__ import annotations

from core.errors import Refused
from core.ports import Clock, Reply
from core.types import Answer, Command, Inbound, Scope, Session
from gateway import excuses
from gateway.access import Access
from gateway.commands.context import Caller
from gateway.commands.registry import Commands
from gateway.delivery import Post


class Doorstep:
    """Answers strangers; `commands` knows /link, the only command that is theirs."""

    def __init__(self, access: Access, commands: Commands, post: Post, clock: Clock) -> None:
        self._access = access
        self._commands = commands
        self._post = post
        self._clock = clock

    async def answer(self, inbound: Inbound, reply: Reply, scope: Scope) -> None:
        """To a stranger's event in his direct chat, whose scope is `scope`: at most a question or a code."""
        if inbound.kind not in ("message", "action"):
            return
        command = await self._commands.confirmed(inbound) or inbound.command
        if command is not None and command.name == "link" and command.arguments.strip():
            await self._post.tell(inbound, reply, await self._linked(command, inbound, scope))
        elif inbound.kind == "message":
            pairing = await self._access.pair(inbound)
            if pairing is not None:
                await self._post.tell(inbound, reply, excuses.unknown(pairing.code))

    async def _linked(self, command: Command, inbound: Inbound, scope: Scope) -> Answer:
        caller = Caller(
            inbound=inbound,
            scope=scope,
            scopes=frozenset((scope,)),
            session=Session(address=inbound.address, scope=scope, started_at=self._clock.now()),
            is_owner=False,
        )
        try:
            answer = await self._commands.run(command, caller)
        except Refused as refusal:
            answer = Answer(text=str(refusal))
        return await self._commands.prepared(answer, command, caller)
