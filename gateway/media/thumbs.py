"""Treats a thumb reaction to an answer as feedback about the facts in that answer.

If the answer reports a single change, a thumb down undoes the change. Otherwise, it isn't clear
which fact is wrong, so the person is asked to pick it before its trust is lowered. A thumb up
raises the trust in all these facts at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.markup.markdown import escape
from core.store.facts.feedback import VERDICTS, Thumb
from core.store.facts.rows import Fact
from core.store.mailbox import OutboxItem
from core.store.notes import Author
from core.store.rows import find_last_turn
from core.types import Answer, Command, Inbound, Scope, Scopes
from gateway.commands.registry import assign_button_ids, make_button, make_button_actions
from gateway.receipts import ReceiptWriter
from gateway.services import Services
from gateway.texts.catalog import Texts, load_texts

MAX_BUTTONS = 5


@dataclass(eq=False)
class ThumbReader:
    """Records thumb reactions, and changes the trust in facts accordingly."""

    services: Services
    # Called when an item of the outbox is due.
    on_change: Callable[[], None]

    async def record(self, inbound: Inbound, scope: Scope, scopes: Scopes, is_owner: bool) -> None:
        """Record that a person put a thumb on an answer, or removed it.

        In a group, only the owner and the person who stated a fact can change its trust.
        """
        texts = load_texts(inbound.language)
        thumb: Thumb = inbound.text if inbound.text in VERDICTS else ""  # type: ignore[assignment]
        facts = await self.services.feedback.record(
            inbound.address, inbound.message_id, inbound.account, thumb, scopes
        )
        own_facts = [
            fact
            for fact in facts or ()
            if is_owner or not fact.scope.is_group or fact.account == inbound.account
        ]
        if thumb == "up":
            author = Author(account=inbound.account, origin="typed")
            for fact in own_facts:
                if not fact.is_pinned:
                    await self.services.facts.record_feedback(
                        fact.id, scopes, is_right=True, by=author
                    )
        elif thumb == "down" and own_facts:
            await self._ask(texts, inbound, scope, own_facts[:MAX_BUTTONS])

    async def find_undo(self, inbound: Inbound, scopes: Scopes) -> Command | None:
        """Return the command that undoes the only change reported by an answer.

        Returns None if the reaction isn't a thumb down, or if the answer reports no change or
        several.
        """
        answer = await self.services.feedback.find_answer(
            inbound.address, inbound.message_id, scopes
        )
        if inbound.text != "down" or answer is None:
            return None
        message_id, session_id = answer
        session = await self.services.conversations.find(session_id, scopes)
        if session is None:
            return None
        history = await self.services.conversations.load_history(session, scopes)
        rows = [row for row in history if row.id is not None and row.id <= message_id]
        texts = load_texts(inbound.language)
        receipts = await ReceiptWriter(self.services).list_receipts(
            texts, find_last_turn(rows), scopes
        )
        buttons = [receipt.undo for receipt in receipts if receipt.undo is not None]
        if len(buttons) != 1:
            return None
        return buttons[0].command

    async def _ask(
        self, texts: Texts, inbound: Inbound, scope: Scope, facts: Sequence[Fact]
    ) -> None:
        """Ask which of the facts is wrong, with a button for each fact."""
        lines = [f"- **f{fact.id}** {escape(fact.content)}" for fact in facts]
        buttons = assign_button_ids(
            [
                make_button(
                    texts.THUMB_WRONG.format(name=f"f{fact.id}"), "memory", f"wrong f{fact.id}"
                )
                for fact in facts
            ]
        )
        now = self.services.clock.now()
        await self.services.actions.add(make_button_actions(buttons, scope, inbound.account, now))
        answer = Answer(text="\n".join([texts.THUMB_DOWN, "", *lines]), buttons=buttons)
        item = OutboxItem(
            key=f"thumb:{inbound.address.key}:{inbound.message_id}:{inbound.account.key}",
            kind="notice",
            address=inbound.address,
            answer=answer,
            next_at=now,
        )
        if await self.services.outbox.put(item):
            self.on_change()
