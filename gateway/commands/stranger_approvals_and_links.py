"""Gives and ends access, and links accounts: /whoami, /approve, /people, /link and /unlink.

Linked accounts count as one person. Both sides confirm a link, each in a direct chat. If one side
has no access yet, the owner also has to confirm. The owner's own accounts can't be linked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from core.errors import Refused
from core.markup.markdown import escape
from core.store.actions import ButtonAction, build_question
from core.store.mailbox import OutboxItem
from core.store.ownership.links import Link, NamedAccount
from core.store.ownership.people import TERMINAL, KnownAccount
from core.types import Account, Address, Answer, Button, Command, Scope
from gateway.commands.registry import CommandContext, load_specs, make_button, make_yes_button
from gateway.services import Services, load_persons
from gateway.texts.catalog import Texts

# The arguments of a confirmed /link: this prefix and the digest of the link. They can't be confused
# with a code, because a code never contains an S.
_CONFIRMED_LINK_PREFIX = "yes "
# "telegram:42".
ACCOUNT_KEY = re.compile(r"(telegram|discord):([1-9][0-9]{0,19})")


class AccountCommands:
    specs = load_specs("approve", "people", "whoami", "link", "unlink")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._links = services.links
        self._now = services.clock.now

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Check that this person may use the command in this chat, and run it.

        Only the owner can use /approve and /people, and only where no one else can read the answer.
        /link and /unlink work in direct chats, /whoami everywhere. Raises Refused if the command
        isn't allowed here.
        """
        texts = context.texts
        arguments = command.arguments.strip()
        if command.name == "whoami":
            return _describe_sender(texts, context)
        if command.name in ("approve", "people"):
            if not context.is_owner:
                raise Refused(texts.ONLY_THE_OWNER_LETS_IN)
            if context.is_answer_public:
                raise Refused(texts.NOT_IN_A_ROOM)
            if command.name == "approve":
                return await approve_code(texts, self._services, arguments)
            return await self._manage_people(context, arguments)
        if context.scope.is_group or not context.inbound.is_direct:
            raise Refused(texts.DIRECT_ONLY.format(name=command.name))
        if command.name == "unlink":
            return await self._unlink(context, arguments)
        return await self._link(context, arguments)

    async def _manage_people(self, context: CommandContext, arguments: str) -> Answer:
        """Run /people: list everyone, or end the access of an account or a person.

        "revoke" ends the access of one account. Any other action ends the access of all accounts of
        the person. Raises Refused if the arguments are wrong, or if the account belongs to the
        owner.
        """
        texts = context.texts
        action, _, account_key = arguments.partition(" ")
        if action in ("", "list"):
            return await self._list_people(texts, self._services.zone_of(context.zone))
        confirmations = texts.table("PEOPLE_DONE")
        if action not in confirmations:
            raise Refused(texts.PEOPLE_USAGE)
        match = ACCOUNT_KEY.fullmatch(account_key)
        if match is None:
            raise Refused(texts.PEOPLE_WHO)

        account = Account(platform=match[1], user_id=match[2])
        # The account itself comes first, followed by its linked accounts.
        targets = await self._links.list_accounts(account)
        if not targets:
            targets = [NamedAccount(account=account, name="")]
        if action == "revoke":
            targets = targets[:1]
        accounts = [target.account for target in targets]
        settings = self._services.settings
        known = await self._services.people.list_accounts(settings.access.people)
        is_known = any(entry.account in accounts for entry in known)
        is_known = is_known or account.key in settings.access.people
        if action != "block" and not is_known:
            raise Refused(texts.PEOPLE_UNKNOWN.format(account=account.key))
        if TERMINAL in accounts:
            raise Refused(texts.PEOPLE_IS_YOU)
        await self._services.removals.remove(accounts, self._now(), is_blocked=action == "block")
        self._services.on_change()

        text = confirmations[action].format(names=texts.join_list(_format_names(texts, targets)))
        listed_keys = (*settings.access.people, *settings.owner.accounts)
        remaining = [f"`{account.key}`" for account in accounts if account.key in listed_keys]
        if remaining:
            text += " " + texts.PEOPLE_IN_SETTINGS.format(accounts=texts.join_list(remaining))
        return Answer(text=text, has_erased_data=True)

    async def _list_people(self, texts: Texts, zone: ZoneInfo) -> Answer:
        """List everyone who has or had access, and the groups in the settings.

        Each person and each group gets one line. People who only wrote in groups aren't listed.
        """
        services = self._services
        today = self._now().astimezone(services.zone)
        month_start = today.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        lines = []
        for accounts in await load_persons(services.people, services.settings.access.people):
            line = await self._describe_person(texts, accounts, month_start, zone)
            if line is not None:
                lines.append(line)
        lines += [texts.PEOPLE_ROOM.format(room=room) for room in services.settings.access.rooms]
        return Answer(text="\n".join(lines))

    async def _describe_person(
        self,
        texts: Texts,
        accounts: Sequence[KnownAccount],
        month_start: datetime,
        zone: ZoneInfo,
    ) -> str | None:
        """Return the line of a person in the list, or None if they never had access.

        The line says why they have access, when they last wrote, and what they cost this month.
        """
        reasons = texts.table("PEOPLE_WHY")
        details = []
        for account in accounts:
            if account.why:
                day = texts.format_day(account.at, zone) if account.at else None
                details.append(reasons[account.why].format(day=day))
        if not details:
            return None

        seen_times = [account.seen_at for account in accounts if account.seen_at]
        if seen_times:
            moment = texts.format_moment(max(seen_times), zone)
            details.append(texts.LAST_SEEN.format(moment=moment))
        usage = await self._describe_usage(texts, accounts, month_start)
        if usage:
            details.append(usage)
        names = texts.join_list(_format_names(texts, accounts))
        return "- " + texts.pair(names, texts.SEMICOLON.join(dict.fromkeys(details)))

    async def _describe_usage(
        self, texts: Texts, accounts: Sequence[KnownAccount], month_start: datetime
    ) -> str:
        """Return how many model calls a person made this month and their cost, or "" if none."""
        scopes = frozenset(
            Scope.account(member.account.platform, member.account.user_id) for member in accounts
        )
        spending = await self._services.usage_log.load_spending(scopes, since=month_start)
        if not spending.calls:
            return ""
        calls = texts.format_count(spending.calls, "model call")
        usage = texts.CALLS_THIS_MONTH.format(calls=calls)
        if spending.cost is None:
            return usage
        return texts.annotate(usage, texts.format_amount(spending, spending.cost))

    async def _link(self, context: CommandContext, arguments: str) -> Answer:
        """Run one step of /link: offer a code, use a code, or confirm a link."""
        texts = context.texts
        address = context.inbound.address
        if not arguments:
            code = await self._links.offer(context.account, address, context.scope, self._now())
            text = texts.LINK_CODE.format(code=code)
            # The first account in the list is the account of this person.
            linked_accounts = (await self._links.list_accounts(context.account))[1:]
            if linked_accounts:
                others = texts.join_list(_format_names(texts, linked_accounts))
                text += texts.LINKED_WITH.format(others=others)
            return Answer(text=text, stored_text=texts.LINK_CODE_KEPT)

        if arguments.startswith(_CONFIRMED_LINK_PREFIX):
            if context.is_typed_command:
                # Only "yes" and the button below the question confirm a link.
                raise Refused("link_expired")
            digest = arguments.removeprefix(_CONFIRMED_LINK_PREFIX)
            return await self._confirm_link(context, digest)

        claimer = NamedAccount(account=context.account, name=context.inbound.sender.name)
        link = await self._links.claim(arguments, claimer, address, self._now())
        return Answer(
            text=_ask_to_link(texts, link.offering_accounts, link.claiming_accounts),
            confirm_command=_confirm_link_command(link),
        )

    async def _confirm_link(self, context: CommandContext, digest: str) -> Answer:
        """Record the confirmation of one side, and ask the other side or the owner to confirm."""
        texts = context.texts
        link = await self._links.confirm(digest, context.account, self._now())
        if link.is_joined:
            answer = Answer(text=texts.LINK_JOINED)
            key = f"link:{link.digest}:joined"
            await _send_notice(self._services, key, link.claiming_address, answer)
            return answer

        if link.token:
            notices = self._services.owner_notices
            owner_texts = await notices.load_texts()
            buttons = _make_link_buttons(owner_texts, link.token)
            question = _ask_owner(owner_texts, link)
            await notices.notify(f"link:{link.token}", question, buttons=buttons)
            return Answer(text=texts.LINK_WAITS)

        await self._ask_offering_side(texts, link, context.idempotency_key)
        offering_name = _format_names(texts, link.offering_accounts)[0]
        return Answer(text=texts.LINK_ASKED.format(other=offering_name))

    async def _ask_offering_side(self, texts: Texts, link: Link, idempotency_key: str) -> None:
        """Ask the person who created the code to confirm the link."""
        key = f"link:{link.digest}:asked:{idempotency_key}"
        account = link.offering_accounts[0].account
        command = _confirm_link_command(link)
        question = build_question(command, account, link.scope, link.address, key, self._now())
        # The question becomes valid when the notice is delivered, so an earlier message can't
        # cancel it.
        question = replace(question, outbox_item=key)
        text = _ask_to_link(texts, link.claiming_accounts, link.offering_accounts)
        await _send_notice(self._services, key, link.address, Answer(text=text), question)

    async def _unlink(self, context: CommandContext, key: str) -> Answer:
        """Unlink one of the person's accounts. An empty `key` means the account that is asking.

        Raises Refused if the person has no such account, or if the account isn't linked.
        """
        texts = context.texts
        accounts = {"": context.account, context.account.key: context.account}
        for linked_account in await self._links.list_accounts(context.account):
            accounts.setdefault(linked_account.account.key, linked_account.account)
        account = accounts.get(key)
        if account is None:
            raise Refused(texts.NO_SUCH_ACCOUNT)
        if not await self._links.unlink(account):
            raise Refused(texts.NOT_LINKED)
        return Answer(text=texts.UNLINKED.format(account=account.key), has_erased_data=True)


async def approve_code(
    texts: Texts, services: Services, arguments: str, *, as_owner: bool = False, by: str = "chat"
) -> Answer:
    """Run /approve: give access to the person who got the code, or link two accounts.

    With `as_owner`, the account becomes one of the owner's. "no CODE" rejects a link. Without
    arguments, everyone who is waiting is listed. `by` is stored with the approval: "chat" or "cli".
    Raises Refused if the code is invalid.
    """
    if not arguments:
        return await _list_waiting(texts, services)
    now = services.clock.now()
    if not as_owner:
        first_word, _, remaining_words = arguments.partition(" ")
        is_yes = first_word.lower() != "no"
        link = await services.links.decide(
            arguments if is_yes else remaining_words, now, is_yes=is_yes
        )
        if link is not None:
            return await _announce_decision(texts, services, link)

    pairing = await services.people.approve(arguments, now, as_owner, by)
    if pairing is None:
        raise Refused(texts.WRONG_CODE)
    services.on_change()
    template = texts.APPROVED_OWNER if as_owner else texts.APPROVED_PERSON
    person = texts.format_person(pairing.name, pairing.account)
    return Answer(text=template.format(person=person))


async def _list_waiting(texts: Texts, services: Services) -> Answer:
    """List the people and the links that wait for the owner's approval."""
    now = services.clock.now()
    pairings = await services.people.list_pending(now)
    lines = [texts.format_person(pairing.name, pairing.account) for pairing in pairings]
    lines += [_ask_owner(texts, link) for link in await services.links.list_for_owner(now)]
    if not lines:
        return Answer(text=texts.NOBODY_WAITS)
    return Answer(text="\n- ".join([texts.WAITING_FOR_APPROVAL, *lines]))


async def _announce_decision(texts: Texts, services: Services, link: Link) -> Answer:
    """Notify both sides of a link of the owner's decision. Returns the answer for the owner."""
    notice = Answer(text=texts.LINK_JOINED if link.is_joined else texts.LINK_REFUSED)
    for side, address in (("offered", link.address), ("claimed", link.claiming_address)):
        key = f"link:{link.digest}:{side}:{link.is_joined}"
        await _send_notice(services, key, address, notice)
    text = texts.LINK_DONE if link.is_joined else texts.LINK_NOT_DONE
    return Answer(text=text.format(**format_sides(texts, link)))


async def _send_notice(
    services: Services,
    key: str,
    address: Address,
    answer: Answer,
    question: ButtonAction | None = None,
) -> None:
    """Put a notice into the outbox, once per `key`.

    If `question` is given, the notice gets a "Yes" button that answers it.
    """
    item = await services.outbox.find(OutboxItem(key=key, kind="notice", address=address))
    if item.answer is not None or item.is_over:
        return
    if question is not None:
        await services.actions.add([question])
        texts = services.languages.of_address(address)
        answer = replace(answer, buttons=(make_yes_button(texts, question),))
    await services.outbox.put(replace(item, answer=answer, next_at=services.clock.now()))
    services.on_change()


def _describe_sender(texts: Texts, context: CommandContext) -> Answer:
    """Return the answer to /whoami: a person's name and ids, and who sees their messages."""
    account = context.account
    words = texts.table("WHOAMI_WORDS")
    identity = texts.WHOAMI.format(
        name=escape(context.inbound.sender.name),
        role=words["owner" if context.is_owner else "person"],
        platform=texts.name_platform(account.platform),
        id=account.key,
        chat=context.inbound.address.key,
    )
    storage = texts.WHOAMI_STORED.format(
        audience=words["group" if context.scope.is_group else "alone"], scope=context.scope.key
    )
    if len(context.scopes) > 1:
        storage += f" {texts.WHOAMI_SCOPES.format(count=len(context.scopes))}"
    return Answer(text=f"{identity}\n\n{storage}")


def _confirm_link_command(link: Link) -> Command:
    return Command(name="link", arguments=f"{_CONFIRMED_LINK_PREFIX}{link.digest}")


def _ask_to_link(texts: Texts, other: Sequence[NamedAccount], own: Sequence[NamedAccount]) -> str:
    """Return the question for one side of a link.

    `other` are the accounts of the other side, and `own` those of the person who is asked. The
    first account in each list is the one to be linked.
    """
    first, *others = _format_names(texts, other)
    more = texts.LINK_OTHERS.format(others=texts.join_list(others)) if others else ""
    reach = texts.LINK_HERE
    if len(own) > 1:
        own_others = texts.join_list(_format_names(texts, own)[1:])
        reach = texts.LINK_HERE_AND.format(others=own_others)
    return texts.LINK_QUESTION.format(other=first, more=more, reach=reach)


def _make_link_buttons(texts: Texts, token: str) -> tuple[Button, ...]:
    return (
        make_button(texts.BUTTON_LINK, "approve", token),
        make_button(texts.BUTTON_NO, "approve", f"no {token}"),
    )


def _ask_owner(texts: Texts, link: Link) -> str:
    return texts.LINK_FOR_OWNER.format(code=link.token, **format_sides(texts, link))


def format_sides(texts: Texts, link: Link) -> dict[str, str]:
    """Return the names of the two persons of a link, by the placeholders of the texts."""
    return {
        "offered": texts.join_list(_format_names(texts, link.offering_accounts)),
        "claimed": texts.join_list(_format_names(texts, link.claiming_accounts)),
    }


def _format_names(texts: Texts, accounts: Iterable[NamedAccount | KnownAccount]) -> list[str]:
    return [texts.format_person(account.name, account.account) for account in accounts]
