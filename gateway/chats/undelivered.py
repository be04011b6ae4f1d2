"""Notifies people in another chat when a message to them couldn't be delivered.

A direct chat belongs to one person, so the notice repeats the undelivered text. The text of a group
stays in the group, so the notice only names the group. It goes to the direct chat of the person who
asked, or to the owner if the person has none.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping

from core.errors import ChatRefused, MnemeError
from core.store.mailbox import OutboxItem
from core.store.message_ids import load_author
from core.types import Answer, Scope
from gateway.chats.admins import ChatAdmins
from gateway.services import Services
from gateway.texts.catalog import Texts

# The keys of reminders and of answers to scheduled questions contain the number of the job.
_JOB_KEY = re.compile(r"(?:job:|turn:cron:\d+:message:)(\d+)[:@]")
_KINDS = frozenset({"answer", "reminder"})


class UndeliveredNotices:
    """Queues one notice for each answer or reminder that couldn't be delivered.

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

    async def tell(self, item: OutboxItem, error: MnemeError) -> None:
        """Notify the recipient of an undeliverable item in another chat, if one is known."""
        if item.kind == "memory":
            await self._report_abandoned_task(item.key)
        item = await self._services.outbox.find(item)
        is_incognito = self._services.inbox.is_incognito(item.address)
        # A private answer in a group is shown with the person's next answer.
        is_shown_later = (item.reply_to or "").startswith("@")
        if item.kind not in _KINDS or item.answer is None or is_incognito or is_shown_later:
            return
        person = await self._find_person(item)
        if person is None:
            return
        is_own = await self._is_direct(item, person)
        excluded_platform = item.address.platform if is_own else ""
        chat = await self._services.find_private_chat(person, excluded_platform)
        if chat is None and not is_own:
            await self._notify_owner(item, error)
        if chat is None or chat[0] == item.address:
            return
        texts = self._services.languages.of_scope(chat[1])
        values = await self._list_values(texts, item, error)
        notice = OutboxItem(
            key=f"undelivered:{item.key}",
            kind="notice",
            address=chat[0],
            answer=Answer(text=_render_notice(texts, item, values, is_own=is_own)),
            next_at=self._services.clock.now(),
        )
        # The notice is erased with the message that it repeats.
        if await self._services.outbox.put(notice, sibling_key=item.key):
            self._services.on_change()

    async def _notify_owner(self, item: OutboxItem, error: MnemeError) -> None:
        """Tell the owner that messages to a group fail, once a day for each group or topic."""
        owner_notices = self._services.owner_notices
        texts = await owner_notices.load_texts()
        values = await self._list_values(texts, item, error)
        text = texts.UNDELIVERED_FOR_OWNER.format(**values)
        key = f"undelivered:{item.address.key}:{self._services.clock.now():%Y-%m-%d}"
        await owner_notices.notify(key, text)

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
    texts: Texts, item: OutboxItem, values: Mapping[str, str], *, is_own: bool
) -> str:
    """Return a notice that says what wasn't delivered, where, and what to do.

    If `is_own`, the notice repeats the undelivered text.
    """
    if not is_own or item.answer is None:
        return texts.UNDELIVERED_IN_GROUP.format(**values)
    return f"{texts.UNDELIVERED_TO_YOU.format(**values)}\n\n{item.answer.text}"
