"""Notifies people in another chat when an answer or a reminder for them couldn't be delivered.

A direct chat belongs to one person, so the notice repeats the undelivered text. The text of a group
stays in the group, so the notice only names the group. It goes to the direct chat of the person who
asked. If the person has none, the owner gets a notice that names the person, once a day for each
person and group or topic.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping

from core.errors import ChatRefused, MnemeError
from core.store.mailbox import Notice, OutboxItem
from core.store.message_ids import load_author
from core.types import Account, Answer, Scope
from gateway.chats.admins import ChatAdmins
from gateway.services import Services
from gateway.texts.catalog import Texts

# The keys of reminders and of answers to scheduled questions contain the number of the job.
_JOB_KEY = re.compile(r"(?:job:|turn:cron:\d+:message:)(\d+)[:@]")
_KINDS = frozenset({"answer", "reminder"})


class UndeliveredNotices:
    """Prepares one notice for each answer or reminder that couldn't be delivered.

    `report_abandoned_task` is called with the key of each item that will never be delivered to a
    memory service.
    """

    def __init__(
        self,
        services: Services,
        admins: ChatAdmins,
        report_abandoned_task: Callable[[str], Awaitable[None]],
    ) -> None:
        self._services = services
        self._admins = admins
        self._report_abandoned_task = report_abandoned_task

    async def prepare(self, item: OutboxItem, error: MnemeError) -> Notice | None:
        """Return a notice for the recipient of an undeliverable item, or None if none is needed.

        It goes to another chat of the recipient, or to the owner.
        """
        if item.kind == "memory":
            await self._report_abandoned_task(item.key)
        item = await self._services.outbox.find(item)
        is_incognito = self._services.inbox.is_incognito(item.address)
        # A private answer in a group is shown with the person's next answer.
        is_shown_later = (item.reply_to or "").startswith("@")
        if item.kind not in _KINDS or item.answer is None or is_incognito or is_shown_later:
            return None
        person = await self._find_person(item)
        if person is None:
            return None
        is_direct = await self._is_direct(item, person)
        excluded_platform = item.address.platform if is_direct else ""
        chat = await self._services.find_private_chat(person, excluded_platform)
        if chat is None:
            return None if is_direct else await self._prepare_for_owner(item, error, person)
        address, scope = chat
        if address == item.address:
            return None
        texts = self._services.languages.of_scope(scope)
        values = await self._list_values(texts, item, error)
        notice = OutboxItem(
            key=f"undelivered:{item.key}",
            kind="notice",
            address=address,
            answer=Answer(text=_render_notice(texts, item, values, is_direct=is_direct)),
            next_at=self._services.clock.now(),
        )
        # The notice is erased with the message that it repeats.
        return Notice(item=notice, sibling_key=item.key)

    async def _prepare_for_owner(
        self, item: OutboxItem, error: MnemeError, person: Scope
    ) -> Notice | None:
        """Return a notice that tells the owner which group a message was for.

        The owner gets one notice a day for each person and group or topic.
        """
        owner_notices = self._services.owner_notices
        texts = await owner_notices.load_texts()
        values = await self._list_values(texts, item, error)
        text = texts.UNDELIVERED_FOR_OWNER.format(
            person=await self._load_name(texts, person), **values
        )
        day = f"{self._services.clock.now():%Y-%m-%d}"
        return await owner_notices.prepare_notice(
            f"undelivered:{item.address.key}:{person.key}:{day}", text
        )

    async def _load_name(self, texts: Texts, person: Scope) -> str:
        """Return the name of a person as a quotation, or the key of the account."""
        platform, _, user_id = person.key.removeprefix("account:").partition(":")
        account = Account(platform=platform, user_id=user_id)
        for named_account in await self._services.links.list_accounts(account):
            if named_account.name:
                return texts.quote(named_account.name)
        return f"`{account.key}`"

    async def _list_values(
        self, texts: Texts, item: OutboxItem, error: MnemeError
    ) -> dict[str, str]:
        """Return the values for the text of a notice: the chat, the platform and what to do."""
        cause = error.cause if isinstance(error, ChatRefused) else "other"
        name = await self._admins.load_place_name(item.address)
        return {
            "place": texts.quote(name) if name else f"`{item.address.key}`",
            "platform": texts.name_platform(item.address.platform),
            "advice": texts.table("UNDELIVERED_CAUSES")[cause],
        }

    async def _find_person(self, item: OutboxItem) -> Scope | None:
        """Return the scope of the recipient's direct chat, or None if it isn't known."""
        match = _JOB_KEY.match(item.key)
        if match is not None:
            job = await self._services.jobs.get(int(match[1]))
            if job is None:
                return None
            if job.scope.is_group and job.account is not None:
                return Scope.account(job.account.platform, job.account.user_id)
            return job.scope
        _, _, message_id = item.key.removeprefix(f"turn:{item.address.key}:").partition(":")
        return await load_author(self._services.database, item.address, message_id)

    async def _is_direct(self, item: OutboxItem, person: Scope) -> bool:
        """Return whether an item was addressed to a direct chat of this person."""
        chats = await self._services.people.list_private_chats(person)
        return any(address == item.address for address, _ in chats)


def _render_notice(
    texts: Texts, item: OutboxItem, values: Mapping[str, str], *, is_direct: bool
) -> str:
    """Return a notice that says what wasn't delivered, where, and what to do.

    If the item was for a direct chat, the notice repeats the undelivered text.
    """
    if not is_direct or item.answer is None:
        return texts.UNDELIVERED_IN_GROUP.format(**values)
    return f"{texts.UNDELIVERED_TO_YOU.format(**values)}\n\n{item.answer.text}"
