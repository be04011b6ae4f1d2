"""Adds receipts to an answer: a list of the model's changes, each with a button to undo it.

The gateway adds one line to the answer ("Noted: … · Reminder 4 removed"), so the model can neither
hide nor invent a change. Changes that wait for the person's approval are listed with buttons to
approve or reject them. All receipts are derived from the stored rows of the turn, so they aren't
lost in a crash.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from core.agent.offline import NO_MODEL
from core.agent.sessions import Turn
from core.errors import TURN_BUDGET_SPENT, Refused
from core.markup.markdown import escape
from core.media.tools import SEND_FILE
from core.review.pending import is_waiting_result
from core.scheduling.tool import read_choices
from core.search.citations import CitedSource, number_citations
from core.store.actions import YES_TO_SEVERAL, ButtonAction, build_yes
from core.store.jobs import Job, is_nothing_new
from core.store.mailbox import OutboxItem
from core.store.messages import find_delivered_answer, has_undelivered_answer
from core.store.notes import TOOL_CALL, NoteChange, PendingNote
from core.store.rows import find_answered_rows, has_answer, split_turns
from core.text.normalize import shorten, to_single_line
from core.tools.switches import CALL_TOOL
from core.types import Account, Address, Answer, Button, Command, File, Json, Message, Scope
from gateway.answers.documents import attach_documents, list_documents
from gateway.answers.sources import LABEL_CHARS, SourceWriter, list_pages
from gateway.commands.registry import (
    assign_button_ids,
    make_button,
    make_button_actions,
    make_decision_buttons,
    make_first_steps,
)
from gateway.commands.time_settings import hint_at_events, hint_at_zone
from gateway.services import Services
from gateway.texts.catalog import Texts, load_offline_texts, load_texts

if TYPE_CHECKING:
    pass

QUOTE_CHARS = 80
# The maximum number of changes of notes in a turn that receipts show.
MAX_CHANGES = 50
MAX_BUTTONS = 8
# For each action of the tool `reminder`: the subcommand of /cron that undoes the action.
_UNDO_OF_JOB_ACTIONS = {"remove": "restore", "pause": "resume", "resume": "pause"}


@dataclass(frozen=True, slots=True)
class Receipt:
    """A change by the model, worded as a clause, and the button that undoes it."""

    text: str
    undo: Button | None = None
    is_new_job: bool = False
    # When a new job is due first.
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """The person who reads an answer, the chat they read it in, and their rights."""

    scope: Scope
    scopes: frozenset[Scope]
    account: Account
    address: Address
    # The key of the outbox item with the answer.
    outbox_item: str
    is_direct: bool = True
    is_owner: bool = False

    def list_unclear_yes(self, waiting: Sequence[object], now: datetime) -> list[ButtonAction]:
        """Return a row that says that a "yes" may be meant for what waits, if anything does."""
        if not waiting:
            return []
        key = self.outbox_item
        return [build_yes(YES_TO_SEVERAL, self.account, self.scope, self.address, key, now)]


@dataclass
class ReceiptWriter:
    """Adds receipts to the answers of turns that changed something."""

    services: Services
    # If there is no model, new users get buttons with things to try.
    is_offline: bool = False

    async def add(
        self, answer: Answer, turn: Turn, rows: Sequence[Message]
    ) -> tuple[Answer, Sequence[ButtonAction]]:
        """Return the answer with receipts, and the rows of their buttons.

        `rows` are the messages of the conversation, up to the end of the turn.
        """
        inbound = turn.entries[-1].inbound
        texts = load_texts(inbound.language)
        if inbound.address.platform == "cron" and is_nothing_new(answer.text):
            # If a watch has no result to report, its answer isn't delivered, so no receipts are
            # added.
            return answer, ()
        reader = _Reader(
            scope=turn.scope,
            scopes=turn.scopes,
            account=inbound.account,
            address=inbound.address,
            outbox_item=turn.outbox_item.key,
            is_direct=inbound.is_direct,
            is_owner=turn.is_owner,
        )
        first_steps = await self._list_first_steps(texts, answer, reader) if self.is_offline else ()
        text, sources = number_citations(answer.text, rows)
        answer, actions = await self._add_lines(
            texts,
            replace(answer, text=text),
            find_answered_rows(rows, turn.message_ids),
            reader,
            cited=sources,
        )
        if not first_steps:
            return answer, actions
        steps = assign_button_ids(first_steps)
        now = self.services.clock.now()
        text = f"{answer.text}\n\n{texts.THINGS_TO_TRY}"
        answer = replace(answer, text=text, buttons=(*answer.buttons, *steps))
        return answer, (*actions, *make_button_actions(steps, reader.scope, reader.account, now))

    async def _list_first_steps(
        self, texts: Texts, answer: Answer, reader: _Reader
    ) -> Sequence[Button]:
        """Return buttons with things to try, if the answer tells a new user that there's no model.

        In the terminal, the greeting lists them instead.
        """
        platform = reader.account.platform
        reason = load_offline_texts(texts.language)[NO_MODEL]
        if not reader.is_direct or platform == "terminal" or reason not in answer.text:
            return ()
        sessions = await self.services.conversations.list_recent(reader.scopes, limit=2)
        if len(sessions) > 1:
            return ()
        return make_first_steps(texts)

    async def _write_sources(
        self,
        texts: Texts,
        cited: Sequence[CitedSource],
        rows: Sequence[Message],
        reader: _Reader,
    ) -> tuple[list[str], list[Button]]:
        """Return the lines with an answer's sources, and the buttons that send the cited files."""
        if not cited and not list_pages(rows):
            return [], []
        zone = self.services.zone_of(await self.services.appointments.zone_of(reader.account))
        return await SourceWriter(self.services, texts, reader.scopes, zone).write(cited, rows)

    async def _add_lines(
        self,
        texts: Texts,
        answer: Answer,
        rows: Sequence[Message],
        reader: _Reader,
        judged_id: int = 0,
        cited: Sequence[CitedSource] = (),
    ) -> tuple[Answer, Sequence[ButtonAction]]:
        """Return an answer with receipts and questions, and the actions of its buttons.

        `judged_id` is the id of a proposed note that now waits for approval. `cited` are the
        sources that the answer cites, in the order of their numbers.
        """
        answer, file_buttons = await self._add_files(texts, answer, rows, reader)
        receipts = await self.list_receipts(texts, rows, reader.scopes)
        pending = await self._list_pending(rows, reader.scopes, judged_id)
        lines = await self._render_receipts(texts, receipts, reader)
        buttons = [*file_buttons, *(item.undo for item in receipts if item.undo is not None)]
        choices = await self._list_choices(texts, rows, reader)
        if choices:
            lines.append(texts.ASK_WHICH_TIME)
            buttons += choices
        for note in pending:
            lines.append(_render_pending(texts, note))
            if not note.scope.is_group or reader.is_owner:
                buttons += make_decision_buttons(texts, note)
        source_lines, source_buttons = await self._write_sources(texts, cited, rows, reader)
        lines += source_lines
        buttons += source_buttons
        if any(_is_over_budget(row) for row in rows):
            lines.append(texts.TURN_BUDGET_SPENT)
        if not lines and not buttons:
            return answer, ()
        labelled_buttons = assign_button_ids(buttons[:MAX_BUTTONS])
        presser = reader.account if reader.is_direct else None
        now = self.services.clock.now()
        actions = make_button_actions(labelled_buttons, reader.scope, presser, now)
        actions += reader.list_unclear_yes([*pending, *choices], now)
        text = "\n\n".join(part for part in (answer.text, "\n".join(lines)) if part)
        return replace(answer, text=text, buttons=(*answer.buttons, *labelled_buttons)), actions

    async def _add_files(
        self, texts: Texts, answer: Answer, rows: Sequence[Message], reader: _Reader
    ) -> tuple[Answer, list[Button]]:
        """Add the files that the model sends.

        Returns the buttons of changes that wait for approval.
        """
        files: list[File] = []
        buttons: list[Button] = []
        for result in _list_sent_files(rows):
            if result["state"] != "sent":
                label = texts.FILE_SEND.format(name=shorten(str(result["name"]), LABEL_CHARS))
                buttons.append(make_button(label, "files", f"send {result['file_id']}"))
                continue
            try:
                file = await self.services.load_file(int(result["file_id"]), reader.scopes)
            except Refused as error:
                answer = replace(answer, text=f"{answer.text}\n\n{texts.word(error)}".strip())
                continue
            if file is not None:
                files.append(file)
        documents = list_documents(rows)
        names = [str(document["name"]) for document in documents if document["state"] == "sent"]
        answer = await attach_documents(self.services, texts, answer, names, reader.account)
        for document in documents:
            if document["state"] != "sent":
                name = str(document["name"])
                label = texts.FILE_SEND.format(name=shorten(name, LABEL_CHARS))
                buttons.append(make_button(label, "files", f"answer {rows[-1].id} {name}"))
        return replace(answer, files=(*answer.files, *files)), buttons

    async def _render_receipts(
        self, texts: Texts, receipts: Sequence[Receipt], reader: _Reader
    ) -> list[str]:
        """Return the line of receipts, and hints about the zone and events of reminders."""
        if not receipts:
            return []
        lines = [texts.RECEIPTS.format(changes=" · ".join(item.text for item in receipts))]
        if any(item.is_new_job for item in receipts):
            is_owner = reader.is_owner
            hint = await hint_at_zone(texts, self.services, reader.account, is_owner=is_owner)
            if hint:
                lines.append(hint.strip())
        if reader.is_owner and reader.is_direct:
            for item in receipts:
                if item.is_new_job:
                    hint = await hint_at_events(texts, self.services, reader.account, item.due_at)
                    lines += filter(None, [hint.strip()])
        return lines

    async def list_receipts(
        self, texts: Texts, rows: Sequence[Message], scopes: frozenset[Scope]
    ) -> list[Receipt]:
        """Return a receipt for each change by the turn's tools that hasn't been undone."""
        since = _find_start(rows)
        if since is None:
            return []
        ids = {row.id for row in rows if row.role == "user"}
        receipts = await self._list_note_receipts(texts, ids, since, scopes)
        receipts += await self._list_fact_receipts(texts, ids, since, scopes)
        receipts += await self._list_job_receipts(texts, rows, ids, since, scopes)
        receipts += _list_event_receipts(texts, rows)
        receipts += self._list_mcp_receipts(texts, rows)
        return receipts + _list_other_receipts(texts, rows)

    def _list_mcp_receipts(self, texts: Texts, rows: Sequence[Message]) -> list[Receipt]:
        """Return a receipt for each call of an MCP tool that may have changed something.

        The receipt has no button, because MCP has no way to undo a call.
        """
        servers = self.services.mcp
        if servers is None:
            return []
        names: dict[str, None] = {}
        for call_id, name in _list_called_names(rows):
            if call_id in _list_done_ids(rows) and servers.is_change(name):
                names[name] = None
        return [Receipt(texts.RECEIPT_MCP.format(tool=escape(name))) for name in names]

    async def _list_note_receipts(
        self, texts: Texts, ids: set[int], since: datetime, scopes: frozenset[Scope]
    ) -> list[Receipt]:
        """Return a receipt for each change of a note or skill that hasn't been undone."""
        changes = await self.services.notes.list_changes(scopes, MAX_CHANGES)
        own_changes = [
            change for change in changes if change.message_id in ids and change.at >= since
        ]
        undone_ids = {change.undoes for change in changes}
        receipts: list[Receipt] = []
        skills: set[str] = set()
        for change in reversed(own_changes):
            if change.id in undone_ids or change.undoes is not None:
                continue
            if change.skill:
                if change.skill[0] in skills:
                    # All files of a skill that were changed together are taken back together.
                    continue
                skills.add(change.skill[0])
            label = texts.RECEIPT_UNDO.format(what=f"{change.id}")
            button = make_button(label, "memory", f"undo {change.id}")
            receipts.append(Receipt(_render_change(texts, change), button))
        return receipts

    async def _list_fact_receipts(
        self, texts: Texts, ids: set[int], since: datetime, scopes: frozenset[Scope]
    ) -> list[Receipt]:
        """Return a receipt for each changed fact."""
        receipts: dict[int, Receipt] = {}
        for fact_id, action in await self.services.facts.list_changed(sorted(ids), since, scopes):
            fact = await self.services.facts.find(fact_id, scopes)
            if fact is None or action not in texts.table("RECEIPT_FACTS"):
                continue
            text = texts.table("RECEIPT_FACTS")[action].format(
                number=fact.id, text=_quote(texts, fact.content)
            )
            button = make_button(
                texts.RECEIPT_UNDO.format(what=f"f{fact.id}"), "memory", f"undo f{fact.id}"
            )
            receipts[fact_id] = Receipt(text, button)
        return list(receipts.values())

    async def _list_job_receipts(
        self,
        texts: Texts,
        rows: Sequence[Message],
        ids: set[int],
        since: datetime,
        scopes: frozenset[Scope],
    ) -> list[Receipt]:
        """Return a receipt for each reminder that the turn set, removed, paused or resumed."""
        receipts: list[Receipt] = []
        for job in await self.services.jobs.list_visible(scopes):
            if _is_set_by(job, ids):
                receipts.append(self._render_job(texts, job, "add", f"remove {job.id}"))
        for action, job_id in _list_job_changes(rows):
            changed_job = await self.services.jobs.find(job_id, scopes)
            if changed_job is not None and _has_changed(changed_job, action, since):
                undo = _UNDO_OF_JOB_ACTIONS[action]
                receipts.append(self._render_job(texts, changed_job, action, f"{undo} {job_id}"))
        return receipts

    def _render_job(self, texts: Texts, job: Job, action: str, undo: str) -> Receipt:
        """Return the receipt of an action on a job, with a button that runs `/cron` and `undo`."""
        text = texts.table("RECEIPT_JOBS")[action].format(
            number=job.id,
            time=texts.describe_time(self.services.appointments, job, is_full=False),
            text=_quote(texts, job.text),
        )
        label = texts.RECEIPT_UNDO.format(what=f"/cron {undo}")
        return Receipt(
            text, make_button(label, "cron", undo), is_new_job=action == "add", due_at=job.next_at
        )

    async def _list_choices(
        self, texts: Texts, rows: Sequence[Message], reader: _Reader
    ) -> list[Button]:
        """Return a button for each time that the person can choose for an ambiguous reminder.

        If the model has set the reminder in the meantime, it needs no buttons.
        """
        commands: list[Command] = []
        for row in rows:
            if row.tool_name == "reminder":
                commands += read_choices(row.text)
        if not commands:
            return []
        ids = {row.id for row in rows if row.role == "user"}
        jobs = await self.services.jobs.list_visible(reader.scopes)
        set_texts = {job.text for job in jobs if _is_set_by(job, ids)}
        appointments = self.services.appointments
        buttons: list[Button] = []
        for command in commands:
            line = command.arguments.removeprefix("add ")
            is_prompt = command.name == "cron"
            reading = await appointments.interpret(
                line, is_prompt=is_prompt, account=reader.account
            )
            if reading.text not in set_texts:
                when = texts.describe_time(appointments, reading, is_full=False)
                text = shorten(reading.text, LABEL_CHARS)
                label = texts.CHOICE_OF_TIME.format(when=when, text=text)
                buttons.append(make_button(label, command.name, command.arguments))
        return buttons

    async def _list_pending(
        self, rows: Sequence[Message], scopes: frozenset[Scope], judged_id: int
    ) -> Sequence[PendingNote]:
        """Return the changes that the turn's tools proposed and that still wait for approval.

        Changes that the helper model hasn't judged yet are left out, except for the note
        `judged_id`.
        """
        since = _find_start(rows)
        if since is None:
            return []
        ids = {row.id for row in rows if row.role == "user"}
        pending = await self.services.notes.list_pending(scopes)
        return [
            note
            for note in pending
            if note.message_id in ids
            and note.at >= since
            and (not note.is_proposed or note.id == judged_id)
        ]

    async def show_verdict(self, note: PendingNote, change_id: int | None) -> bool:
        """Add the receipt of a proposed note, or the question about it, to the answer of its turn.

        The answer is edited. The person gets a notice instead if the answer is in a group, was
        never delivered, or is no longer part of the conversation. `change_id` is the number of the
        change, or None if the note waits for approval. Returns False if the answer can't be edited
        yet: the turn is the latest one and has no answer, or its answer is being delivered.
        """
        texts = self.services.languages.of_scope(note.scope)
        rows = await self._find_turn(note)
        if rows and not has_answer(rows):
            # A restart interrupted the turn. Its answer is edited once it's there.
            return False
        answer_ids = [row.id for row in _list_answers(rows)]
        if await has_undelivered_answer(self.services.database, answer_ids):
            return False
        edit = None
        if rows:
            edit = await self._edit_answer(texts, note, rows, judged_id=0 if change_id else note.id)
        if edit is None:
            await self.services.owner_notices.notify_verdict(note, change_id)
            return True
        item, actions = edit
        if await self.services.outbox.put(item, actions=actions):
            self.services.on_change()
        return True

    async def _find_turn(self, note: PendingNote) -> Sequence[Message]:
        """Return the messages of the turn in a direct chat that proposed a note.

        Returns an empty list if the messages don't exist, or if a later turn began before this one
        was answered.
        """
        if note.scope.is_group or note.message_id is None or note.account is None:
            return ()
        conversations = self.services.conversations
        scopes = frozenset((note.scope,))
        session = await conversations.find_by_message(note.message_id, scopes)
        if session is None:
            return ()
        history = await conversations.load_history(session, scopes)
        turns = split_turns(history)
        for rows in turns:
            if any(row.id == note.message_id for row in rows):
                may_be_shown = rows is turns[-1] or has_answer(rows)
                return rows if may_be_shown else ()
        return ()

    async def _edit_answer(
        self, texts: Texts, note: PendingNote, rows: Sequence[Message], judged_id: int
    ) -> tuple[OutboxItem, Sequence[ButtonAction]] | None:
        """Return an outbox item that edits the answer of a turn, or None if it can't be edited."""
        assert note.account is not None
        services = self.services
        answers = _list_answers(rows)
        delivered = await find_delivered_answer(services.database, [row.id for row in answers])
        if delivered is None:
            return None

        paragraphs = [row.text for row in answers if row.text]
        answer = Answer(text="\n\n".join(paragraphs))
        key = f"verdict:{note.id}"
        reader = _Reader(
            scope=note.scope,
            scopes=frozenset((note.scope,)),
            account=note.account,
            address=delivered.address,
            outbox_item=key,
        )
        answer, actions = await self._add_lines(texts, answer, rows, reader, judged_id)
        item = OutboxItem(
            key=key,
            kind="notice",
            address=delivered.address,
            answer=answer,
            posted=delivered.posted,
            reply_to=delivered.reply_to,
            next_at=services.clock.now(),
        )
        return item, actions


def _list_answers(rows: Sequence[Message]) -> list[Message]:
    """Return the rows of a turn that its answer consists of.

    Results of jobs that were delivered meanwhile don't belong to the answer.
    """
    return [row for row in rows if row.role == "assistant" and row.origin != "job"]


def _is_set_by(job: Job, message_ids: set[int]) -> bool:
    """Return whether the tool `reminder` set a job in the turn of these messages."""
    origin = job.origin or ""
    return any(origin.startswith(f"tool:{message_id}:") for message_id in message_ids)


def _list_sent_files(rows: Sequence[Message]) -> list[Json]:
    """Return the results of the tool `send_file`, without duplicate files."""
    results: dict[int, Json] = {}
    for row in rows:
        if row.role != "tool" or row.tool_name != SEND_FILE:
            continue
        for block in row.blocks or ():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                result = json.loads(block["content"])
                results[int(result["file_id"])] = result
    return list(results.values())


def _find_start(rows: Sequence[Message]) -> datetime | None:
    """Return when the model first called tools in a turn, or None if it called none."""
    return next((row.created_at for row in _list_answers(rows)), None)


def _is_over_budget(row: Message) -> bool:
    """Return whether a tool's result says that the budget of the turn is spent.

    A refused call says so at its beginning. A search or a delegated task says so in its field
    "note".
    """
    if row.role != "tool" or TURN_BUDGET_SPENT not in row.text:
        return False
    if row.text.startswith(TURN_BUDGET_SPENT):
        return bool((row.blocks or ({},))[0].get("is_error"))
    with contextlib.suppress(ValueError):
        result = json.loads(row.text)
        return isinstance(result, dict) and TURN_BUDGET_SPENT in str(result.get("note", ""))
    return False


def _list_job_changes(rows: Sequence[Message]) -> list[tuple[str, int]]:
    """Return the action and the job of each call that changes a job, without duplicates."""
    changes: dict[tuple[str, int], None] = {}
    for call in _list_calls(rows, "reminder"):
        action, job_id = str(call.get("action")), call.get("job_id")
        if action in _UNDO_OF_JOB_ACTIONS and isinstance(job_id, int):
            changes[action, job_id] = None
    return list(changes)


def _has_changed(job: Job, action: str, since: datetime) -> bool:
    """Return whether the state of a job shows that an action was carried out."""
    if action == "remove":
        return _is_after(job.ended_at, since)
    if action == "pause":
        return _is_after(job.paused_at, since)
    return job.paused_at is None


def _is_after(at: datetime | None, since: datetime) -> bool:
    return at is not None and at >= since


def _list_calls(rows: Sequence[Message], name: str) -> list[Json]:
    """Return the arguments of all calls of a tool."""
    calls = []
    for row in rows:
        for block in row.blocks or () if row.role == "assistant" else ():
            if block.get("type") == "tool_use" and block.get("name") == name:
                calls.append(block.get("input") or {})
    return calls


def _list_called_names(rows: Sequence[Message]) -> list[tuple[str, str]]:
    """Return the tool of each call by the call's id.

    For a call of `call_tool`, it's the tool named in the arguments.
    """
    names = []
    for row in rows:
        if row.role != "assistant":
            continue
        for block in row.blocks or ():
            if block.get("type") != "tool_use":
                continue
            name = block["name"]
            if name == CALL_TOOL:
                name = (block.get("input") or {}).get("tool_name") or name
            names.append((str(block["id"]), str(name)))
    return names


def _list_done_ids(rows: Sequence[Message]) -> set[str]:
    """Return the ids of the calls that were carried out."""
    ids = set()
    for row in rows:
        if row.role != "tool" or is_waiting_result(row.text):
            continue
        for block in row.blocks or ():
            if not block.get("is_error"):
                ids.add(str(block.get("tool_use_id")))
    return ids


def _list_event_receipts(texts: Texts, rows: Sequence[Message]) -> list[Receipt]:
    """Return a receipt for each event that the model added to a calendar."""
    results = [row.text for row in rows if row.role == "tool" and row.tool_name == "calendar"]
    if not results:
        return []
    # Imported here because most turns add no event.
    from core.tools.agenda import read_added_event

    receipts = []
    for event in filter(None, map(read_added_event, results)):
        line, uid, calendar = event
        text = texts.word_event_line(line)
        label = texts.RECEIPT_UNDO.format(what=shorten(text, LABEL_CHARS))
        button = make_button(label, "agenda", f"undo {uid} {calendar}")
        receipts.append(Receipt(texts.RECEIPT_EVENT.format(event=_quote(texts, text)), button))
    return receipts


def _list_other_receipts(texts: Texts, rows: Sequence[Message]) -> list[Receipt]:
    """Return a receipt for each call of an external tool that changed something.

    It has no button, because memory services have no way to undo a change.
    """
    names = texts.table("RECEIPT_SERVICES")
    receipts: dict[str, Receipt] = {}
    for row in rows:
        is_done = row.role == "tool" and not (row.blocks or ({},))[0].get("is_error")
        name = row.tool_name or ""
        if not is_done or is_waiting_result(row.text):
            continue
        for suffix, text in names.items():
            if name.endswith(suffix):
                receipts[name] = Receipt(text.format(tool=name))
    return list(receipts.values())


def _render_change(texts: Texts, change: NoteChange) -> str:
    if change.skill:
        folder = change.skill[0].rpartition("/")[2]
        action = "delete" if change.action == "delete" else "keep"
        return texts.table("RECEIPT_SKILLS")[action].format(name=escape(folder))
    return texts.table("RECEIPT_NOTES")[change.action].format(
        before=_quote(texts, change.before or ""), after=_quote(texts, change.after or "")
    )


def _render_pending(texts: Texts, note: PendingNote) -> str:
    """Return a line that says which change waits for approval, and why."""
    kind = texts.table("RECEIPT_PENDING").get(note.target, texts.table("RECEIPT_PENDING")["memory"])
    parts = []
    for operation in note.operations:
        content = operation.content or operation.old_text or operation.path
        if note.target == TOOL_CALL:
            # The whole call is shown, because all of it may leave the machine.
            name = escape(operation.path)
            parts.append(f"{name} {texts.quote(to_single_line(content))}")
            continue
        verb = texts.table("RECEIPT_VERBS").get(operation.action, operation.action)
        parts.append(f"{verb} {_quote(texts, content)}")
    return texts.RECEIPT_WAITS.format(
        number=note.id,
        kind=kind,
        changes=texts.SEMICOLON.join(parts),
        reason=escape(texts.word_stored(note.reason)),
    )


def _quote(texts: Texts, text: str) -> str:
    return texts.quote(shorten(to_single_line(text), QUOTE_CHARS))
