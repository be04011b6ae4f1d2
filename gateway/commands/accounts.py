"""/whoami, /approve, /people, /link and /unlink: who somebody is, who is let in and out, one person on many platforms.

To a link both sides say yes, in direct chats, and the owner where it lets somebody in; it is never with the owner.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from core.errors import Refused
from core.markup.markdown import escape
from core.store.actions import question
from core.store.links import Link, NamedAccount
from core.store.mailbox import OutboxItem
from core.store.people import TERMINAL
from core.types import Account, Address, Answer, Command, Scope
from gateway import texts
from gateway.commands.registry import CommandContext, announced, button, yes_button
from gateway.owner_notices import OwnerNotices
from gateway.services import Services

_AGREED = "yes "
"""What the arguments of a confirmed /link begin with; the digest of the link follows. No code has an S."""
_ACCOUNT = re.compile(r"(telegram|discord):([1-9][0-9]{0,19})")


class AccountCommands:
    """The other side of a link is told through the outbox."""

    specs = announced("approve", "people", "whoami", "link", "unlink")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._links = services.links
        self._now = services.clock.now

    async def run(self, command: Command, context: CommandContext) -> Answer:
        words = command.arguments.strip()
        if command.name == "whoami":
            return _whoami(context)
        if command.name in ("approve", "people"):
            if not context.is_owner:
                raise Refused(texts.ONLY_THE_OWNER_LETS_IN)
            if context.is_public:
                raise Refused(texts.NOT_IN_A_ROOM)
            return await (let_in(self._services, words) if command.name == "approve" else self._people(words))
        if context.scope.is_room or not context.inbound.is_direct:
            raise Refused(f"/{command.name} works in a direct chat with me only.")
        if command.name == "unlink":
            return await self._part(context, words)
        if not words:
            code = await self._links.offer(context.account, context.inbound.address, context.scope, self._now())
            others = _names((await self._links.accounts(context.account))[1:])
            linked = texts.LINKED_WITH.format(others=texts.listed(others)) if others else ""
            return Answer(text=texts.LINK_CODE.format(code=code) + linked, kept=texts.LINK_CODE_KEPT)
        if words.startswith(_AGREED):
            return await self._agree(context, words.removeprefix(_AGREED))
        me = NamedAccount(account=context.account, name=context.inbound.sender.name)
        link = await self._links.claim(words, me, context.inbound.address, self._now())
        return Answer(text=_question(link.offered, link.claimed), confirm=_yes(link))

    async def _people(self, words: str) -> Answer:
        action, _, who = words.partition(" ")
        if action in ("", "list"):
            return await self._list()
        if action not in (done := texts.table("PEOPLE_DONE")):
            raise Refused(texts.PEOPLE_USAGE)
        if (named := _ACCOUNT.fullmatch(who)) is None:
            raise Refused(texts.PEOPLE_WHO)
        account = Account(platform=named[1], user_id=named[2])
        linked = await self._links.accounts(account) or [NamedAccount(account=account, name="")]
        gone = linked[:1] if action == "revoke" else linked
        if any(one.account == TERMINAL for one in gone):
            raise Refused(texts.PEOPLE_IS_YOU)
        removed, settings = [one.account for one in gone], self._services.settings
        await self._services.removals.remove(removed, self._now(), is_blocked=action == "block")
        self._services.on_change()
        left = [f"`{one.key}`" for one in removed if one.key in (*settings.access.people, *settings.owner.accounts)]
        stays = " " + texts.PEOPLE_IN_SETTINGS.format(accounts=texts.listed(left)) if left else ""
        return Answer(text=done[action].format(names=texts.listed(_names(gone))) + stays, has_erased=True)

    async def _list(self) -> Answer:
        """Without those who are met in rooms alone, or were never let in."""
        services, zone, reasons = self._services, self._services.zone, texts.table("PEOPLE_WHY")
        month = self._now().astimezone(zone).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        found, lines = await services.people.known(services.settings.access.people), []
        for _, group in groupby(found, key=lambda one: one.person_id):
            person = list(group)
            said = [reasons[one.why].format(day=one.at and texts.day(one.at, zone)) for one in person if one.why]
            if not said:
                continue
            if seen := [one.seen_at for one in person if one.seen_at]:
                said.append(f"last seen {texts.moment(max(seen), zone)}")
            scopes = frozenset(Scope.account(one.account.platform, one.account.user_id) for one in person)
            spent = await services.usage_log.spent(scopes, since=month)
            if spent.calls:
                cost = f" ({spent.amount(spent.cost)})" if spent.cost is not None else ""
                said.append(f"this month {texts.counted(spent.calls, 'model call')}{cost}")
            names = [texts.person(one.name, one.account) for one in person]
            lines.append(f"- {texts.listed(names)}: {'; '.join(dict.fromkeys(said))}")
        lines += [texts.PEOPLE_ROOM.format(room=room) for room in services.settings.access.rooms]
        return Answer(text="\n".join(lines))

    async def _agree(self, context: CommandContext, digest: str) -> Answer:
        link = await self._links.agree(digest, context.account, self._now())
        if link.is_joined:
            joined = Answer(text=texts.LINK_JOINED)
            await _send(self._services, f"link:{link.digest}:joined", link.claimed_address, joined)
            return joined
        if link.token:
            buttons = button("Link them", "approve", link.token), button("No", "approve", f"no {link.token}")
            await OwnerNotices(self._services).tell(f"link:{link.token}", _for_owner(link), buttons=buttons)
            return Answer(text=texts.LINK_WAITS)
        key = f"link:{link.digest}:asked:{context.origin}"
        asked = Answer(text=_question(link.claimed, link.offered))
        await _send(self._services, key, link.address, asked, link)
        return Answer(text=texts.LINK_ASKED.format(other=_names(link.offered)[0]))

    async def _part(self, context: CommandContext, name: str) -> Answer:
        named = {one.account.key: one.account for one in await self._links.accounts(context.account)}
        named[""] = named[context.account.key] = context.account
        if name not in named:
            raise Refused(texts.NO_SUCH_ACCOUNT)
        if not await self._links.unlink(named[name]):
            raise Refused(texts.NOT_LINKED)
        return Answer(text=texts.UNLINKED.format(account=named[name].key), has_erased=True)


async def _send(services: Services, key: str, address: Address, answer: Answer, asking: Link | None = None) -> None:
    """Once for each key; with the question of `asking` to who offered its code."""
    item = await services.outbox.find(OutboxItem(key=key, kind="notice", address=address))
    if item.answer is not None or item.is_over:
        return
    now = services.clock.now()
    if asking is not None:
        yes = question(_yes(asking), asking.offered[0].account, asking.scope, address, key, now)
        # Until it has arrived there, no message says yes to it, and none cancels it.
        await services.actions.add([replace(yes, outbox_item=key)])
        answer = replace(answer, buttons=(yes_button(yes),))
    await services.outbox.put(replace(item, answer=answer, next_at=now))
    services.on_change()


async def let_in(services: Services, words: str, *, as_owner: bool = False, by: str = "chat") -> Answer:
    """Lets in whoever was shown this code, as the owner where `as_owner`, or has two accounts linked; lists who waits
    without one. Behind a no the link is called off."""
    now, (first, _, rest) = services.clock.now(), words.partition(" ")
    if not words:
        waiting = [texts.person(one.name, one.account) for one in await services.people.pending(now)]
        waiting += map(_for_owner, await services.links.for_owner(now))
        return Answer(text="\n- ".join(["Waiting to be let in:", *waiting]) if waiting else texts.NOBODY_WAITS)
    is_yes = first.lower() != "no"
    link = None if as_owner else await services.links.decide(words if is_yes else rest, now, is_yes=is_yes)
    if link is not None:
        return await _decided(services, link)
    pairing = await services.people.approve(words, now, as_owner, by)
    if pairing is None:
        raise Refused(texts.WRONG_CODE)
    services.on_change()
    role = "is yours now and sees what you see" if as_owner else "may talk to me now, with a memory apart from yours"
    return Answer(text=f"{texts.person(pairing.name, pairing.account)} {role}.")


async def _decided(services: Services, link: Link) -> Answer:
    """Tells both sides what the owner decided."""
    told = texts.LINK_JOINED if link.is_joined else texts.LINK_REFUSED
    for side, address in (("offered", link.address), ("claimed", link.claimed_address)):
        await _send(services, f"link:{link.digest}:{side}:{link.is_joined}", address, Answer(text=told))
    text = texts.LINK_DONE if link.is_joined else texts.LINK_NOT_DONE
    return Answer(text=text.format(**_sides(link)))


def _whoami(context: CommandContext) -> Answer:
    account, scope, place = context.account, context.scope, context.inbound.address
    role = "my owner" if context.is_owner else "somebody I talk to"
    whose, seen = "this room" if scope.is_room else "you alone", len(context.scopes)
    reach = f" What I know here comes from {seen} of your accounts and rooms." if seen > 1 else ""
    who = f"You are {escape(context.inbound.sender.name)}, {role}. Your id on {account.platform.title()} is"
    kept = f"What is said here is kept for {whose} (`{scope.key}`).{reach}"
    return Answer(text=f"{who} `{account.key}`; this place is `{place.key}`.\n\n{kept}")


def _yes(link: Link) -> Command:
    return Command(name="link", arguments=f"{_AGREED}{link.digest}")


def _question(other: Sequence[NamedAccount], own: Sequence[NamedAccount]) -> str:
    """To the side `own` about the side `other`: in each the account that was asked first."""
    first, *others = _names(other)
    more = f" It is linked with {texts.listed(others)}." if others else ""
    reach = f"here and on {texts.listed(_names(own)[1:])}" if len(own) > 1 else "here"
    return texts.LINK_QUESTION.format(other=first, more=more, reach=reach)


def _for_owner(link: Link) -> str:
    return texts.LINK_FOR_OWNER.format(code=link.token, **_sides(link))


def _sides(link: Link) -> dict[str, str]:
    return {"offered": texts.listed(_names(link.offered)), "claimed": texts.listed(_names(link.claimed))}


def _names(accounts: Sequence[NamedAccount]) -> list[str]:
    return [texts.person(one.name, one.account) for one in accounts]
