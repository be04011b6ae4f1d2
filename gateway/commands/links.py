"""/link and /unlink: one person on several platforms. Both sides say yes, in direct chats; never the owner."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.errors import Refused
from core.markup.render import escape
from core.ports import Clock
from core.store.links import Link, Links, NamedAccount
from core.store.outbox import Outbox, OutboxItem
from core.types import Account, Address, Answer, Command, CommandSpec, Option
from gateway.commands.confirmations import Confirmations
from gateway.commands.context import CommandContext

_LINK = CommandSpec(
    name="link",
    description="Be one person with your account on another platform",
    options=(Option(name="code", description="the code that I gave you there; without one I give you a code"),),
    is_private=True,
)
_UNLINK = CommandSpec(
    name="unlink",
    description="Part this account from your others at once",
    options=(Option(name="account", description="another account of yours to part, like discord:77"),),
    is_private=True,
)
_AGREED = "yes "
"""What the arguments of a confirmed /link begin with; the token of the link follows. No code has an S."""
ASKED = "link:asked:"
"""How the key of a question to who offered the code begins; the number of the link follows, and which yes it is of."""


class LinkCommands:
    """Over `kinship`. The other side is told through the outbox; `on_wake` is called then."""

    specs = (_LINK, _UNLINK)

    def __init__(
        self,
        kinship: Links,
        confirmations: Confirmations,
        outbox: Outbox,
        clock: Clock,
        on_wake: Callable[[], None],
    ) -> None:
        self._kinship = kinship
        self._confirmations = confirmations
        self._outbox = outbox
        self._clock = clock
        self._on_wake = on_wake

    def is_reading(self, command: Command) -> bool:
        """Both change what may be seen."""
        return False

    async def run(self, command: Command, caller: CommandContext) -> Answer:
        """See `gateway.commands.registry`."""
        if caller.scope.is_room or not caller.inbound.is_direct:
            raise Refused(f"/{command.name} works in a direct chat with me only.")
        words = command.arguments.strip()
        if command.name == "unlink":
            return await self._part(caller, words)
        if not words:
            return await self._offer(caller)
        if words.startswith(_AGREED):
            return await self._agree(caller, words.removeprefix(_AGREED))
        return await self._claim(caller, words)

    async def _offer(self, caller: CommandContext) -> Answer:
        code = await self._kinship.offer(caller.account, caller.inbound.address, caller.scope, self._clock.now())
        others = (await self._kinship.kin(caller.account))[1:]
        linked = f"\n\nYou are one person with {_listed(others)} already; `/unlink` parts you." if others else ""
        return Answer(
            text=f"Your code is `{code}`. Within ten minutes send me `/link {code}` in a direct chat on the other "
            "platform; then I ask on both sides. Show it to nobody: whoever is linked with you sees everything you "
            f"said here.{linked}",
            kept="A code to be linked by.",
        )

    async def _claim(self, caller: CommandContext, code: str) -> Answer:
        me = NamedAccount(account=caller.account, name=caller.inbound.sender.name)
        link = await self._kinship.claim(code, me, caller.inbound.address, self._clock.now())
        return Answer(text=_question(link.offered, link.claimed), confirm=_yes(link))

    async def undelivered(self, key: str) -> None:
        """The question in the parcel of this key (see `ASKED`) did not arrive: the other side is told, and the link is
        called off."""
        number = key.removeprefix(ASKED).partition(":")[0]
        link = await self._kinship.asked(int(number)) if number.isdecimal() else None
        if link is None:
            return
        told = (
            f"I could not ask {_listed(link.offered[:1])}: my message does not arrive there. Nothing is linked. See "
            "that I may write to you there, then begin anew with `/link`."
        )
        await self._tell(f"link:{link.id}:undelivered:{key}", link.claimed_address, Answer(text=told))
        await self._kinship.call_off(link.id)

    async def _agree(self, caller: CommandContext, token: str) -> Answer:
        link = await self._kinship.agree(token, caller.account, self._clock.now())
        if not link.is_joined:
            await self._ask(link, caller.origin)
            return Answer(
                text=f"I have asked {_listed(link.offered[:1])}. With a yes there, within ten minutes, you are one."
            )
        joined = "You are one person now: what was said to me on any of these accounts is yours on all of them"
        told = f"{joined}. `/unlink` parts an account again, at once; each keeps what was said to it."
        await self._tell(f"link:{link.id}:joined", link.claimed_address, Answer(text=told))
        return Answer(text=told)

    async def _part(self, caller: CommandContext, name: str) -> Answer:
        own = caller.account
        parted = await self._other(own, name) if name and name != own.key else own
        others = await self._kinship.part(parted)
        if not others:
            raise Refused("This account is linked with no other. `/link` begins that.")
        return Answer(
            text=f"Parted: `{parted.key}` is on its own again and sees only what was said there. What was said to the "
            "others stays with them."
        )

    async def _other(self, own: Account, name: str) -> Account:
        for one in await self._kinship.kin(own):
            if one.account.key == name:
                return one.account
        raise Refused("You have no such account. Name it as in `/unlink discord:77`; `/link` lists yours.")

    async def _ask(self, link: Link, origin: str) -> None:
        """The question to who offered the code, once for each yes of the other side."""
        key = f"{ASKED}{link.id}:{origin}"
        held = await self._outbox.hold(OutboxItem(key=key, kind="notice", address=link.address))
        if held.answer is None and not held.is_over:
            button = await self._confirmations.lay(_yes(link), link.offered[0].account, link.scope, link.address, key)
            answer = Answer(text=_question(link.claimed, link.offered), buttons=(button,))
            await self._outbox.fill(key, answer, self._clock.now())
            self._on_wake()

    async def _tell(self, key: str, address: Address, answer: Answer) -> None:
        held = await self._outbox.hold(OutboxItem(key=key, kind="notice", address=address))
        if held.answer is None and not held.is_over:
            await self._outbox.fill(key, answer, self._clock.now())
            self._on_wake()


def _yes(link: Link) -> Command:
    return Command(name="link", arguments=f"{_AGREED}{link.token}")


def _question(other: Sequence[NamedAccount], own: Sequence[NamedAccount]) -> str:
    """To the side `own` about the side `other`."""
    more = f" With it come {_listed(other[1:])}." if len(other) > 1 else ""
    reach = "here" if len(own) == 1 else f"here and on {_listed(own[1:])}"
    return (
        f"Is {_listed(other[:1])} you as well?{more} Once linked, it will see everything you said {reach}, and you "
        "everything it said there. Say **yes** only if both are yours; anything else calls it off."
    )


def _listed(accounts: Sequence[NamedAccount]) -> str:
    """``**Ana** (Telegram, id `42`)``."""
    told = [
        f"**{escape(one.name or one.account.user_id)}** ({one.account.platform.title()}, id `{one.account.user_id}`)"
        for one in accounts
    ]
    return " and ".join(told)
