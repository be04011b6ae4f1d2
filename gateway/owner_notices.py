"""Sends unrequested notices: a stranger wants access, a note needs a decision, and so on.

Each notice is sent once, to the owner or to the person whose notes or limits it concerns. A notice
is sent to the private chat in which that person last wrote.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import tzinfo
from hashlib import sha256
from typing import TYPE_CHECKING

import structlog

from config.model_options import ModelOptions
from config.settings import LimitedResource
from core.errors import StoreError
from core.markup.markdown import escape
from core.notes.notebook import ALL_FILES
from core.ports import Clock
from core.store import rows
from core.store.actions import YES_TO_SEVERAL, build_yes
from core.store.jobs import Job
from core.store.mailbox import Notice, Outbox, OutboxItem
from core.store.notes import PendingNote
from core.store.ownership.people import TERMINAL
from core.store.ownership.removal import removal_reason
from core.store.usage_limits import Budget
from core.types import LOCAL_SCOPE, Address, Answer, Button, Scope
from gateway.commands.registry import (
    assign_button_ids,
    make_button,
    make_button_actions,
    make_decision_buttons,
)
from gateway.supervisor import CONNECTED, OFF
from gateway.texts.catalog import ENGLISH, Texts
from gateway.texts.languages import Languages

if TYPE_CHECKING:
    from core.facts.extraction import Closing
    from core.memory.manager import MemoryNotice
    from core.store.facts.rows import Fact

# A function that finds the private chat of a scope's person. The second argument names an excluded
# platform.
FindPrivateChat = Callable[[Scope, str], Awaitable[tuple[Address, Scope] | None]]
_log = structlog.get_logger("owner_notices")
_TERMINAL_ADDRESS = Address(platform=TERMINAL.platform, chat_id=TERMINAL.user_id)
# The verb for a pending item, by its target. For other targets, the verb is "note".
_PENDING_KINDS = {
    "fact": "fact",
    "remind": "plan",
    "cron": "plan",
    "skill": "skill",
    "job": "job",
}


class OwnerNotices:
    """Puts notices into the outbox. `on_change` is called after each notice."""

    def __init__(
        self,
        find_private_chat: FindPrivateChat,
        outbox: Outbox,
        clock: Clock,
        zone: tzinfo,
        on_change: Callable[[], None],
        languages: Languages | None = None,
    ) -> None:
        # If this is None, all notices are in English.
        self._languages = languages
        self._find_private_chat = find_private_chat
        self._outbox = outbox
        self._clock = clock
        self._zone = zone
        self._on_change = on_change

    async def notify(
        self,
        key: str,
        text: str,
        scope: Scope = LOCAL_SCOPE,
        excluded_platform: str = "",
        buttons: Sequence[Button] = (),
        *,
        is_for_terminal: bool = False,
        asks: bool = False,
    ) -> None:
        """Send a notice to the person of `scope`, or to the owner if the scope is a group.

        Only one notice is sent per `key`. If the person has no private chat on a platform other
        than `excluded_platform`, the notice isn't sent. If `is_for_terminal`, the notice is shown
        in the terminal. If the notice `asks` for a decision, a "yes" after it may be meant for it.
        """
        chat: tuple[Address, Scope] | None = (_TERMINAL_ADDRESS, LOCAL_SCOPE)
        if not is_for_terminal:
            chat = await self._find_private_chat(scope, excluded_platform)
        if chat is None:
            return
        address, chat_scope = chat
        now = self._clock.now()
        answer = Answer(text=text, buttons=assign_button_ids(buttons))
        account = rows.parse_account(chat_scope.key.partition(":")[2])
        actions = make_button_actions(answer.buttons, chat_scope, account, now)
        if asks and account is not None:
            actions.append(build_yes(YES_TO_SEVERAL, account, chat_scope, address, key, now))
        notice = OutboxItem(key=key, kind="notice", address=address, answer=answer, next_at=now)
        if await self._outbox.put(notice, actions=actions):
            self._on_change()

    async def prepare_notice(self, key: str, text: str) -> Notice | None:
        """Return a notice for the owner, without storing it, or None if no private chat is known.

        The caller stores it in one transaction with what it is about. Raises StoreError if the
        chat can't be read.
        """
        chat = await self._find_private_chat(LOCAL_SCOPE, "")
        if chat is None:
            return None
        answer, now = Answer(text=text), self._clock.now()
        return Notice(
            item=OutboxItem(key=key, kind="notice", address=chat[0], answer=answer, next_at=now)
        )

    async def load_texts(self, scope: Scope = LOCAL_SCOPE, excluded_platform: str = "") -> Texts:
        """Return the texts in the language of a notice's recipient. See `notify`."""
        if self._languages is None:
            return ENGLISH
        try:
            chat = await self._find_private_chat(scope, excluded_platform)
        except StoreError:
            return ENGLISH
        return ENGLISH if chat is None else self._languages.of_scope(chat[1])

    async def prepare_dead_letter(self, platform: str) -> Notice | None:
        """Return the owner's notice that an event couldn't be handled, once a day per platform.

        If the owner's chat can't be read, there is no notice, so that the event is still set aside.
        """
        texts = await self.load_texts()
        key = f"dead:{platform}:{self._clock.now():%Y-%m-%d}"
        text = texts.SET_ASIDE.format(platform=texts.name_platform(platform))
        try:
            return await self.prepare_notice(key, text)
        except StoreError as error:
            _log.error("the owner cannot be told of a dead letter", error=error)
            return None

    async def notify_retired_model(self, options: ModelOptions, model: str, successor: str) -> None:
        """Tell the owner once that a model is missing from its server or was removed there."""
        texts = await self.load_texts()
        advice = texts.MODEL_SUCCESSOR.format(model=successor) if successor else texts.MODEL_CHOOSE
        is_helper = model not in options.offered_models
        substitute = options.find_substitute(model)
        if substitute:
            meanwhile = texts.HELPER_MEANWHILE if is_helper else texts.MODEL_MEANWHILE
        else:
            meanwhile = texts.NO_HELPER_MEANWHILE if is_helper else texts.NO_MODEL_MEANWHILE
        text = texts.MODEL_RETIRED.format(
            model=model, advice=advice, meanwhile=meanwhile.format(model=substitute)
        )
        await self.notify(f"retired:{model}", text)

    async def notify_missed(self, address: Address, name: str = "") -> None:
        """Tell the owner that messages weren't read after an outage, once a day per address.

        `name` is the name of the channel, or "" if it isn't known.
        """
        texts = await self.load_texts()
        key = f"missed:{address.key}:{self._clock.now():%Y-%m-%d}"
        platform = texts.name_platform(address.platform)
        place = texts.quote(name) if name else f"`{address.key}`"
        text = texts.MISSED.format(platform=platform, place=place)
        await self.notify(key, text)

    async def notify_memory_problem(self, kind: MemoryNotice, name: str, reason: str) -> None:
        """Tell the owner about a problem of a memory provider, once a day per provider and kind."""
        texts = await self.load_texts()
        text = texts.MEMORY_DOWN if kind == "down" else texts.MEMORY_KEEPS
        key = f"memory-{kind}:{name}:{self._clock.now().date()}"
        await self.notify(key, text.format(name=name, reason=texts.word_service_error(reason)))

    async def notify_budget(self, budget: Budget, name: LimitedResource) -> None:
        """Tell a person that a daily limit is nearly reached, once a day per limit.

        For a group, the owner gets the notice. The owner gets another one after raising their own
        limit.
        """
        texts = await self.load_texts(budget.scope if not budget.is_owner_line else LOCAL_SCOPE)
        day = self._clock.now().astimezone(self._zone).date()
        if budget.is_owner_line:
            used = texts.format_used(budget.usage_of(name))
            text = texts.OWNER_LINE_NEAR.format(used=used)
            await self.notify(f"limit:owner:{name}:{budget.limits[name]:.0f}:{day}", text)
            return
        used = texts.format_used(budget.usage_of(name))
        text = texts.LIMIT_NEAR.format(used=used)
        if budget.scope.is_group:
            text = texts.GROUP_LIMIT_NEAR.format(group=budget.scope.key, used=used)
        await self.notify(f"limit:{budget.scope.key}:{name}:{day}", text, budget.scope)

    async def notify_outage(self, platform: str, state: str) -> None:
        """Tell the owner, on another platform, that a platform is down or connected again."""
        texts = await self.load_texts(excluded_platform=platform)
        reason = texts.word_state(state)
        if state == CONNECTED:
            text = texts.BACK
        elif state.startswith("given up"):
            text = texts.GIVEN_UP
        elif state.startswith(OFF):
            text = texts.TURNED_OFF
            reason = texts.word_reason(state.removeprefix(OFF))
        else:
            text = texts.DEAD
        await self.notify(
            f"outage:{platform}:{self._clock.now().isoformat()}",
            text.format(platform=texts.name_platform(platform), state=reason),
            excluded_platform=platform,
        )

    async def notify_paused_job(self, job: Job, reason: str) -> None:
        """Tell the author of a paused job, or the owner if the author has lost access."""
        key = f"paused:{job.id}:{job.next_at}"
        is_for_owner = reason == removal_reason() and not job.scope.is_group
        recipient = LOCAL_SCOPE if is_for_owner else job.scope
        texts = await self.load_texts(recipient)
        whose = _of_group(texts, job.scope)
        if is_for_owner:
            whose = texts.OF_CHAT.format(chat=job.scope.key)
        own_reason = texts.word_stored(reason)
        text = texts.JOB_PAUSED.format(number=job.id, room=whose, reason=own_reason)
        await self.notify(key, text, recipient)

    async def notify_pending(self, note: PendingNote) -> None:
        """Tell a person that a change waits for their approval. For a group, tell the owner.

        A draft in a person's own scope is shown with buttons to approve or reject it. Of all other
        changes, only the first is announced. The next announcement follows after the person has
        decided.
        """
        texts = await self.load_texts(note.scope)
        if note.is_draft and not note.scope.is_group:
            lines = [texts.DRAFT.format(reason=escape(texts.word_stored(note.reason))), ""]
            lines += texts.render_changes(note.operations)
            buttons = make_decision_buttons(texts, note)
            await self.notify(
                f"draft:{note.id}", "\n".join(lines), note.scope, buttons=buttons, asks=True
            )
            return
        first = f"draft:{note.id}" if note.is_draft else (note.began_at or note.at).isoformat()
        await self.notify(
            f"aside:{note.scope.key}:{first}", _render_pending(texts, note), note.scope, asks=True
        )

    async def notify_verdict(self, note: PendingNote, change_id: int | None) -> None:
        """Tell a person that a proposed note was added, or ask the person to approve or reject it.

        For a group, the owner gets the notice. If the note was proposed in the terminal, the notice
        is shown there. `change_id` is the number of the change, or None if the note wasn't added.
        The notice has buttons to undo the note, or to approve or reject it.
        """
        texts = await self.load_texts(note.scope)
        key = f"verdict:{note.id}"
        is_local = note.account == TERMINAL
        changes = texts.render_changes(note.operations)
        if change_id is None:
            text = "\n".join([f"{texts.NOTE_ASKED}{_of_group(texts, note.scope)}", *changes])
            buttons = make_decision_buttons(texts, note)
            await self.notify(
                key, text, note.scope, buttons=buttons, is_for_terminal=is_local, asks=True
            )
            return
        contents = [operation.content for operation in note.operations if operation.content]
        text = texts.NOTE_KEPT.format(note=escape(" · ".join(contents)))
        buttons = (make_button(texts.BUTTON_TAKE_BACK, "memory", f"undo {change_id}"),)
        text += _of_group(texts, note.scope)
        await self.notify(key, text, note.scope, buttons=buttons, is_for_terminal=is_local)

    async def notify_closing(self, fact: Fact, successor: Fact, closing: Closing) -> None:
        """Show a person which fact replaced another, or ask whether something has changed.

        The buttons undo the change, or say whether the earlier fact is still true.
        """
        texts = await self.load_texts(fact.scope)
        values = {"before": escape(fact.content), "after": escape(successor.content)}
        if closing != "plain":
            text = texts.table("FACT_RECEIPTS")[closing].format(**values)
            buttons = [make_button(texts.BUTTON_TAKE_BACK, "memory", f"restore f{fact.id}")]
        else:
            text = texts.FACT_HAS_CHANGED.format(**values)
            buttons = [
                make_button(texts.BUTTON_HAS_CHANGED, "memory", f"right f{successor.id}"),
                make_button(texts.BUTTON_BOTH_HOLD, "memory", f"undo f{fact.id}"),
            ]
        key = f"closed:f{fact.id}:f{successor.id}"
        await self.notify(key, text, fact.scope, buttons=buttons, asks=closing == "plain")

    async def notify_review(self, notes: Sequence[PendingNote], message_id: int) -> None:
        """Send a person the proposals of a memory review as one list with buttons.

        `message_id` is the id of the last reviewed message. If nothing waited before, this list
        replaces the usual announcement of waiting changes.
        """
        texts = await self.load_texts(notes[0].scope)
        first = notes[0]
        lines = [texts.REVIEW_PROPOSES]
        buttons: list[Button] = []
        for note in notes:
            kind = texts.table("RECEIPT_PENDING").get(note.target)
            kind = kind or texts.table("RECEIPT_PENDING")["memory"]
            reason = escape(texts.word_stored(note.reason))
            lines.append("- " + texts.pair(note.id, texts.SEMICOLON.join((kind, reason))))
            lines += texts.render_changes(note.operations)
            buttons += make_decision_buttons(texts, note)
        key = f"review:{first.scope.key}:{message_id}"
        if first.began_at == first.at:
            key = f"aside:{first.scope.key}:{first.at.isoformat()}"
        text = "\n".join([*lines, "", texts.REVIEW_HINT])
        await self.notify(key, text, first.scope, buttons=buttons, asks=True)

    async def warn_about_note(self, scope: Scope, target: str, reason: str, entry: str) -> None:
        """Warn about a suspicious note that was written into the file by hand. The note stays."""
        texts = await self.load_texts(scope)
        digest = sha256(entry.encode("utf-8", "replace")).hexdigest()
        name = f"{ALL_FILES[target]}{_of_group(texts, scope)}"
        text = texts.NOTE_BY_HAND.format(name=name, reason=texts.word_suspicion(reason))
        await self.notify(f"warned:{scope.key}:{digest}", text, scope)

    async def warn_about_file(self, name: str, reason: str, digest: str) -> None:
        """Warn the owner about one of their own files, once per content of the file."""
        texts = await self.load_texts()
        text = texts.OWNER_FILE.format(name=name, reason=texts.word_suspicion(reason))
        await self.notify(f"warned:{name}:{digest}", text)


def _render_pending(texts: Texts, note: PendingNote) -> str:
    """Return a notice that says why a change waits for approval, and which command shows it."""
    kinds = texts.table("PENDING_ASK")
    text = kinds[_PENDING_KINDS.get(note.target, "note")].format(
        reason=escape(texts.word_stored(note.reason))
    )
    if note.scope.is_group:
        text = texts.PENDING_IN_GROUP.format(group=note.scope.key, text=text)
    return text


def _of_group(texts: Texts, scope: Scope) -> str:
    return texts.OF_GROUP.format(group=scope.key) if scope.is_group else ""
