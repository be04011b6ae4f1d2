"""Shows and changes the notes and their history, and decides about pending changes: /memory.

`gateway/commands/facts.py` handles the actions of /memory that concern facts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import tzinfo
from typing import TYPE_CHECKING, NamedTuple

from core.errors import Refused, ToolError, UncertainCallError
from core.guard.guard import clean_text, find_suspicion
from core.markup.markdown import escape
from core.notes.curator import PAUSE_AFTER_REJECTION
from core.notes.notebook import ALL_FILES, FILES
from core.review.pending import ANYWAY, quote_operations, split_anyway
from core.store.notes import TOOL_CALL, NoteChange, Operation, PendingNote
from core.store.reviews import MemoryReviews
from core.store.tool_calls import begin_approved_call, end_approved_call
from core.text.normalize import shorten
from core.types import Answer, Button, Command, Form, Inbound, ToolContext
from gateway.commands.facts import FactCommands
from gateway.commands.registry import (
    CommandContext,
    load_specs,
    make_button,
    make_decision_buttons,
    parse_number,
    split_action,
)
from gateway.services import Services
from gateway.texts.catalog import Texts

if TYPE_CHECKING:
    from core.agent.tool_runner import ToolRunner

_CHANGES_PER_PAGE = 10
# Greater than the ids of all changes.
_LAST_CHANGE = 2**62
# The number of a change. The history is shown before or after this change.
_HISTORY_BOUND = re.compile(r"(?P<after>after )?(?P<number>[0-9]{1,12})", re.IGNORECASE)
_MAX_SOURCE_CHARS = 300
_MAX_PENDING_BUTTONS = 8
_MAX_EDITABLE_NOTES = 25
_MAX_LABEL_CHARS = 90
_CHANGING_ACTIONS = ("add", "replace", "remove", "undo", "approve", "reject")
# `"old text" => new text`, `"old text" new text`, or `old text => new text`.
_REPLACEMENT = re.compile(
    r"""\s*(?:["“„](?P<quoted>[^"”“]+)["”“]\s*(?:=>)?|(?P<plain>.*?)=>)(?P<new>.*)""", re.DOTALL
)


class NoteEdit(NamedTuple):
    """A change to a note, as a person typed it in a command."""

    operation: Operation
    # "memory" or "user". Empty if both files may contain the old text.
    target: str
    # The person was warned about the text and wants to keep it anyway.
    is_insisting: bool


def parse_edit(texts: Texts, action: str, text: str) -> NoteEdit:
    """Parse the text after ``/memory add``, ``/memory replace`` or ``/memory remove``.

    Raises Refused if a replacement doesn't include the old text.
    """
    # "--anyway" may come before or after the target.
    text, is_insisting_first = split_anyway(text)
    target, text = _split_target(text)
    text, is_insisting_second = split_anyway(text)
    is_insisting = is_insisting_first or is_insisting_second
    if action == "add":
        return NoteEdit(Operation(action="add", content=text), target or "memory", is_insisting)
    if action == "remove":
        return NoteEdit(Operation(action="remove", old_text=text), target, is_insisting)
    match = _REPLACEMENT.fullmatch(text)
    if match is None:
        raise Refused(texts.REPLACE_USAGE)
    old_text = match["quoted"] or match["plain"]
    operation = Operation(action="replace", content=match["new"].strip(), old_text=old_text.strip())
    return NoteEdit(operation, target, is_insisting)


def _split_target(text: str) -> tuple[str, str]:
    """Split ``user: text`` into the target "user" and the text.

    Without a prefix, the target is "".
    """
    prefix, separator, note = text.partition(":")
    target = prefix.strip().lower()
    if separator and target in FILES:
        return target, note.strip()
    return "", text


class MemoryCommands:
    specs = load_specs("memory")

    def __init__(self, services: Services, tool_runner: ToolRunner | None = None) -> None:
        self._services = services
        # Runs calls of external tools that the person has approved. None in a shell.
        self._tool_runner = tool_runner
        # The approved calls of external tools that are running.
        self._running_approvals: set[str] = set()
        self._notebook = services.notebook
        self._facts = FactCommands(services)

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Run the action named by the first word. Without words, list the notes and facts.

        Raises Refused if there is no such action.
        """
        texts = context.texts
        action, text = split_action(command.arguments)
        fact_answer = await self._facts.answer_memory_command(action, text, context)
        if fact_answer is not None:
            return fact_answer
        if action in _CHANGING_ACTIONS:
            # If this command already made its change before a crash, report the change again.
            report = await self._notebook.describe_applied(context.author, context.scopes)
            if report is not None:
                return Answer(text=_escape_lines(texts.word_report(report)))
        match action:
            case "" | "list":
                return await self._list(text, context)
            case "add" | "replace" | "remove":
                return await self.change(parse_edit(texts, action, text), context)
            case "history":
                return await self._show_history(text, context)
            case "why":
                return await self._explain(text, context)
            case "undo":
                return await self._undo(text, context)
            case "pending":
                return await self._list_pending(context)
            case "pin" | "unpin":
                return await self._pin(text, context, is_pinned=action == "pin")
            case "right" | "wrong":
                return await self._judge(text, context, is_right=action == "right")
            case "approve" | "reject":
                return await self._decide(text, context, is_approved=action == "approve")
        raise Refused(texts.MEMORY_USAGE)

    async def _list(self, text: str, context: CommandContext) -> Answer:
        """List the notes and the facts.

        If `text` is "memory" or "user", list only that file's notes.
        """
        targets = [text] if text in FILES else list(FILES)
        notes = await self._render_notes(context, targets)
        buttons = await self._make_edit_buttons(context, targets)
        if text:
            return Answer(text=notes, buttons=buttons)
        facts = await self._facts.render_page(context)
        text = f"{notes}\n\n{facts.text}"
        return replace(facts, text=text, buttons=(*facts.buttons, *buttons), is_page=False)

    async def _make_edit_buttons(
        self, context: CommandContext, targets: Sequence[str]
    ) -> tuple[Button, ...]:
        """Return an edit form for each note that has only one line."""
        buttons = []
        for target in targets:
            for entry in await self._notebook.entries(context.scopes, target):
                if not _is_editable(entry):
                    continue
                button = _make_edit_button(context.texts, target, entry)
                label = shorten(entry, _MAX_LABEL_CHARS)
                buttons.append(replace(button, label=label, menu=context.texts.CHANGE_NOTE))
        return tuple(buttons[:_MAX_EDITABLE_NOTES])

    async def _render_notes(self, context: CommandContext, targets: Sequence[str]) -> str:
        """Render the notes, the number of pending changes, and problems with the note files."""
        texts = context.texts
        sections = []
        for target in targets:
            entries = await self._notebook.entries(context.scopes, target)
            versions = await self._notebook.versions(context.scopes, target)
            pinned_entries = {version.after for version in versions if version.is_pinned}
            lines = []
            for entry in entries:
                mark = "📌 " if entry in pinned_entries else ""
                lines.append(f"- {mark}" + escape(entry).replace("\n", "\n  "))
            title = texts.table("NOTE_TITLES")[target]
            usage = texts.NOTE_USAGE.format(**self._measure(texts, target, entries))
            sections.append(f"**{title}** ({usage})\n\n" + ("\n".join(lines) or texts.NOTHING_YET))
        pending = await self._notebook.review.list_pending(context.scopes)
        if pending:
            sections.append(texts.PENDING_NOTES.format(number=len(pending)))
        problems = await self._notebook.list_problems(context.scopes)
        sections += [escape(texts.word(problem)) for problem in problems]
        return "\n\n".join(sections)

    async def change(self, edit: NoteEdit, context: CommandContext) -> Answer:
        """Add, replace or remove a note.

        If the text looks suspicious, the person is asked for confirmation first. Members of a group
        may only change their own notes. Raises Refused if the change isn't allowed or isn't
        possible.
        """
        texts = context.texts
        operation, target, is_insisting = edit
        author = replace(context.author, is_insisting=is_insisting)
        if author.origin == "typed" and not is_insisting and not context.is_shell:
            reason = find_suspicion(clean_text(operation.content))
            if reason:
                return Answer(
                    text=texts.ask_to_reword(reason), buttons=(_make_anyway_button(texts, edit),)
                )

        if operation.action != "add" and (context.is_member or not target):
            target = await self._find_changeable_note(operation.old_text, target, context)
        operations = [operation]
        if operation.action == "replace":
            entries = await self._notebook.entries(context.scopes, target)
            operations = [_complete_replacement(operation, entries)]
        if operation.action == "remove":
            # The person may change this note, so the removal needs no approval.
            author = replace(author, origin="typed")
        elif context.is_member:
            sender_name = context.inbound.sender.name
            operations = quote_operations(sender_name, context.account, operations)
        with _escape_refusals(context.texts):
            report = await self._notebook.apply(
                context.scope, context.scopes, target, operations, author
            )
        return Answer(text=_escape_lines(texts.word_report(report)))

    async def _find_changeable_note(
        self, note_text: str, target: str, context: CommandContext
    ) -> str:
        """Return the target with the only note that contains a text.

        Raises Refused if no note or several notes contain it, or if another member wrote the note.
        """
        targets = [target] if target else FILES
        with _escape_refusals(context.texts):
            target, _, change = await self._notebook.find_note(context.scopes, note_text, targets)
        if not context.can_change(change.account if change else None):
            raise Refused(context.texts.AUTHOR_CHANGES)
        return target

    async def _list_pending(self, context: CommandContext) -> Answer:
        """List the pending changes, with buttons to approve or reject each.

        In a long list, the last entries have no buttons.
        """
        texts = context.texts
        pending_notes = await self._notebook.review.list_pending(context.scopes)
        if not pending_notes:
            return Answer(text=texts.NOTHING_PENDING)
        zone = self._services.zone_of(context.zone)
        lines = [texts.PENDING]
        buttons: list[Button] = []
        for note in pending_notes:
            lines.append("- " + texts.pair(note.id, describe_pending(texts, note, zone)))
            lines += render_pending_changes(texts, note)
            buttons += make_decision_buttons(texts, note)
        text = "\n".join([*lines, "", texts.PENDING_HINT])
        return Answer(text=text, buttons=tuple(buttons[:_MAX_PENDING_BUTTONS]))

    async def _decide(self, text: str, context: CommandContext, *, is_approved: bool) -> Answer:
        """Approve the pending change with the number in `text`, or reject one or several.

        In a group, only the owner may approve a change. Its author may also reject it. After the
        rejection of a draft, no new draft is made for a while. Raises Refused if the change isn't
        pending or this person may not decide about it.
        """
        texts = context.texts
        pending_notes = await self._notebook.review.list_pending(context.scopes)
        numbers = self._parse_numbers(text, pending_notes, context)
        if not numbers or (is_approved and len(numbers) > 1):
            action = "approve" if is_approved else "reject"
            raise Refused(texts.DECIDE_USAGE.format(action=action))
        notes_by_id = {note.id: note for note in pending_notes}
        notes: list[PendingNote] = []
        for number in numbers:
            note = notes_by_id.get(number)
            if note is None:
                raise Refused(texts.NO_PENDING_NUMBER.format(number=number))
            if not context.can_change(None if is_approved else note.account):
                raise Refused(texts.OWNER_DECIDES)
            notes.append(note)
        if is_approved:
            return await self._approve_and_report(notes[0], context)
        for note in notes:
            await self._reject(note)
        if len(notes) == 1:
            return Answer(text=texts.REJECTED)
        return Answer(
            text=texts.REJECTED_SEVERAL.format(numbers=texts.join_list([*map(str, numbers)]))
        )

    def _parse_numbers(
        self, text: str, pending_notes: Sequence[PendingNote], context: CommandContext
    ) -> list[int]:
        """Return the numbers in a text such as "3 4", or [] for any other text.

        "all" stands for all changes that this person may reject.
        """
        if text.strip().lower() == "all":
            return [note.id for note in pending_notes if context.can_change(note.account)]
        numbers = [parse_number(word) for word in text.replace(",", " ").split()]
        return list(dict.fromkeys(filter(None, numbers))) if all(numbers) else []

    async def _approve_and_report(self, note: PendingNote, context: CommandContext) -> Answer:
        with _escape_refusals(context.texts):
            report = await self._approve(note, context)
        if self._is_lookup(note):
            return Answer(text="", asks_again=_pass_on(report, context))
        return Answer(text=_escape_lines(report))

    async def _reject(self, note: PendingNote) -> None:
        if note.target != TOOL_CALL:
            await MemoryReviews(self._services.database).record_rejection(note)
        await self._services.notes.drop(note.id)
        if note.is_draft:
            next_review_at = self._services.clock.now() + PAUSE_AFTER_REJECTION
            await self._services.notes.mark_reviewed(note.scope, next_review_at)

    async def _approve(self, note: PendingNote, context: CommandContext) -> str:
        """Apply a pending change, and return a sentence about the result.

        A pending tool call runs now. Raises Refused if the change can't be applied. A failed tool
        call stays pending, unless it may have had an effect.
        """
        texts = context.texts
        if note.target != TOOL_CALL:
            return await self._services.approve_pending(
                note, context.scopes, context.epoch, context.texts
            )
        if self._tool_runner is None:
            raise Refused(texts.APPROVE_IN_CHAT)
        operation = note.operations[0]
        session = context.session
        if not session.id:
            # The local page isn't a conversation, so the call belongs to the conversation that
            # proposed it.
            origin = replace(session, address=note.address or session.address, scope=note.scope)
            stored_session = await self._services.conversations.ensure(origin)
            session = replace(session, id=stored_session.id)
        tool_context = ToolContext(
            session=session,
            scope=note.scope,
            scopes=context.scopes | {note.scope},
            sender=context.inbound.sender,
            now=self._services.clock.now(),
            message_id=note.message_id,
            epoch=context.epoch,
        )
        try:
            report = await self._run_approved_call(note, operation, tool_context)
        except ToolError as error:
            reason = texts.word(error)
            if not isinstance(error, UncertainCallError) or self._is_lookup(note):
                raise Refused(texts.CANNOT_BE_DONE.format(reason=reason)) from error
            report = texts.APPROVED_CALL_UNKNOWN.format(reason=reason)
        await self._services.notes.drop(note.id)
        return report

    async def _run_approved_call(
        self, note: PendingNote, operation: Operation, context: ToolContext
    ) -> str:
        """Run a pending tool call, and return its result.

        If a restart interrupted the call of an external tool, the call may have had an effect, so
        it isn't repeated. Raises ToolError if the call fails.
        """
        texts = self._services.languages.of_scope(context.scope, context.account)
        assert self._tool_runner is not None
        arguments = json.loads(operation.content)
        tool = self._tool_runner.tools.get(operation.path)
        if tool is None or not tool.is_external or tool.is_lookup or context.session.is_incognito:
            return await self._tool_runner.run_approved(operation.path, arguments, context)
        approval = f"approved:{note.id}:{note.at.timestamp()}"
        if approval in self._running_approvals:
            raise Refused(texts.APPROVED_CALL_RUNS)
        database = self._services.database
        self._running_approvals.add(approval)
        try:
            is_first = await database.write(
                lambda connection: begin_approved_call(connection, context.session.id, approval)
            )
            if not is_first:
                return texts.APPROVED_CALL_CUT
            return await self._tool_runner.run_approved(operation.path, arguments, context)
        finally:
            self._running_approvals.discard(approval)
            await database.write(lambda connection: end_approved_call(connection, approval))

    def _is_lookup(self, note: PendingNote) -> bool:
        """Return whether a pending item is a tool call that only looks something up."""
        if note.target != TOOL_CALL or self._tool_runner is None:
            return False
        tool = self._tool_runner.tools.get(note.operations[0].path)
        return tool is not None and tool.is_lookup

    async def _pin(self, text: str, context: CommandContext, *, is_pinned: bool) -> Answer:
        """Pin or unpin a note. `text` is part of the note, or the number of one of its changes.

        Raises Refused for members of a group, and if there is no such note.
        """
        texts = context.texts
        text = await self._find_note_text(text, context)
        with _escape_refusals(context.texts):
            entry = await self._notebook.pin(context.scopes, text, is_pinned=is_pinned)
        template = texts.NOTE_PINNED if is_pinned else texts.NOTE_UNPINNED
        return Answer(text=template.format(note=escape(entry)))

    async def _judge(self, text: str, context: CommandContext, *, is_right: bool) -> Answer:
        """Record that a note is right or wrong. A wrong note can be corrected or removed.

        `text` is part of the note, or the number of one of its changes. Raises Refused for members
        of a group, and if there is no such note.
        """
        texts = context.texts
        text = await self._find_note_text(text, context)
        with _escape_refusals(context.texts):
            target, entry = await self._notebook.judge(
                context.scopes, text, context.author, is_right=is_right
            )
        if is_right:
            return Answer(text=texts.NOTE_RIGHT.format(note=escape(entry)))
        remove = make_button(texts.BUTTON_REMOVE, "memory", f"remove {target}: {entry}")
        buttons = (
            [] if "\n" in entry or "=>" in entry else [_make_edit_button(texts, target, entry)]
        )
        text = texts.NOTE_WRONG.format(note=escape(entry))
        return Answer(text=text, buttons=(*buttons, remove))

    async def _find_note_text(self, text: str, context: CommandContext) -> str:
        """Return the note that the change with the number `text` wrote, or else `text` itself.

        Raises Refused for members of a group, and if there is no such change.
        """
        if not context.can_change(None):
            raise Refused(context.texts.OWNER_DECIDES)
        number = parse_number(text)
        if number is None:
            return text
        change = await self._notebook.find_change(context.scopes, number)
        return change.after or ""

    async def _undo(self, text: str, context: CommandContext) -> Answer:
        """Undo the change whose number is `text`, or the latest change that can be undone.

        Raises Refused if there is no such change, if its note was changed later, or if the change
        belongs to another member of the group.
        """
        texts = context.texts
        number = parse_number(text)
        if number is None and text:
            raise Refused(texts.UNDO_USAGE)
        change = await self._notebook.find_change(context.scopes, number)
        if not context.can_change(None if change.skill else change.account):
            raise Refused(texts.AUTHOR_UNDOES)
        if change.skill:
            report = await self._services.skills.undo(change, context.author)
            return Answer(text=escape(texts.word_report(report)))
        with _escape_refusals(context.texts):
            report = await self._notebook.undo(
                change, context.scope, context.scopes, context.author
            )
        return Answer(text=_escape_lines(texts.word_report(report)))

    async def _show_history(self, text: str, context: CommandContext) -> Answer:
        """Show a page of the changes, latest first.

        `text` is empty for the first page. ``12`` shows the changes before change 12, and ``after
        12`` the page of newer changes.
        """
        texts = context.texts
        match = _HISTORY_BOUND.fullmatch(text)
        is_back = match is not None and bool(match["after"])
        number = int(match["number"]) if match else 0
        bounds = {"after": number} if is_back else {"before": number or _LAST_CHANGE}
        limit = _CHANGES_PER_PAGE + 1
        changes = await self._notebook.history(context.scopes, limit, **bounds)
        has_more = len(changes) == limit
        changes = changes[-_CHANGES_PER_PAGE:] if is_back else changes[:_CHANGES_PER_PAGE]
        if not changes:
            return Answer(text=texts.NOTHING_OLDER if number else texts.NOTHING_CHANGED)
        zone = self._services.zone_of(context.zone)
        lines = [f"- {self._render_change(texts, change, zone)}" for change in changes]
        buttons: list[Button] = []
        if has_more if is_back else number:
            buttons.append(
                make_button(texts.BUTTON_BACK, "memory", f"history after {changes[0].id}")
            )
        if is_back or has_more:
            buttons.append(make_button(texts.BUTTON_OLDER, "memory", f"history {changes[-1].id}"))
        text = "\n".join([*lines, "", texts.HISTORY_HINT])
        return Answer(text=text, buttons=tuple(buttons), is_page=True)

    async def _explain(self, text: str, context: CommandContext) -> Answer:
        """Show which change created a note, and which message caused that change."""
        texts = context.texts
        with _escape_refusals(context.texts):
            _, entry, change = await self._notebook.find_note(context.scopes, text)
        if change is None:
            return Answer(text=texts.NOTE_UNKNOWN.format(note=texts.quote(entry)))
        zone = self._services.zone_of(context.zone)
        rendered = self._render_change(texts, change, zone)
        paragraphs = [texts.quote(entry), texts.NOTE_CHANGE.format(change=rendered)]
        if change.source_text:
            template = texts.NOTE_SAID if change.message_id is not None else texts.NOTE_TYPED
            source = texts.quote(shorten(change.source_text, _MAX_SOURCE_CHARS))
            sender = escape(change.sender or texts.NOTE_SENDER)
            paragraphs.append(template.format(sender=sender, text=source))
        return Answer(text="\n\n".join(paragraphs))

    def _render_change(self, texts: Texts, change: NoteChange, zone: tzinfo) -> str:
        """Render one line of the history: number, time, file, action, author and texts."""
        head = texts.pair(change.id, ", ".join(self._describe_change(texts, change, zone)))
        if change.skill:
            return escape(head)

        link = f" ({change.link})" if change.link else ""
        before = texts.quote(change.before or "")
        after = texts.quote(change.after or "")
        if change.before == change.after:
            return texts.pair(head, f"{after}{link}")
        if change.before is None:
            return texts.pair(head, f"+ {after}{link}")
        if change.after is None:
            return texts.pair(head, f"- {before}{link}")
        return texts.pair(head, f"{before} → {after}{link}")

    def _describe_change(self, texts: Texts, change: NoteChange, zone: tzinfo) -> list[str]:
        """Return the time, the file or skill, the action, the author and the place of a change."""
        words = texts.table("HISTORY")
        parts = [
            texts.format_moment(change.at, zone),
            "/".join(change.skill or (ALL_FILES.get(change.target, ""),)),
        ]
        if change.undoes is None:
            parts.append(texts.table("NOTE_DONE")[change.action])
        else:
            parts.append(words["undone"].format(number=change.undoes))
        if change.account is not None:
            parts.append(words["by"].format(account=change.account.key))
        if change.is_insisted:
            parts.append(words["approved"])
        channel = _find_channel(change)
        if channel:
            parts.append(words[channel])
        return parts

    def _measure(self, texts: Texts, target: str, entries: Sequence[str]) -> dict[str, object]:
        """Return how full a note file is: its percentage, characters and limit as text values."""
        size, limit = self._notebook.measure(target, entries)
        return {
            "percent": round(100 * size / limit),
            "chars": texts.format_number(size),
            "limit": texts.format_number(limit),
        }


def _make_anyway_button(texts: Texts, edit: NoteEdit) -> Button:
    """Return a button that repeats the command and skips the warning."""
    operation = edit.operation
    words = [operation.action, ANYWAY]
    if edit.target:
        words.append(f"{edit.target}:")
    if operation.old_text:
        words += [operation.old_text, "=>"]
    words.append(operation.content)
    return make_button(texts.BUTTON_KEEP_ANYWAY, "memory", " ".join(words))


def _is_editable(entry: str) -> bool:
    """Return whether a form can replace a note: it has one line, and doesn't contain "=>"."""
    return "\n" not in entry and "=>" not in entry


def _make_edit_button(texts: Texts, target: str, entry: str) -> Button:
    """Return a button with a form that replaces a note of one line."""
    button = make_button(texts.table("FACT_BUTTONS")["correct"], "memory", "")
    command = replace(button.command, arguments=f"replace {target}: {entry} =>")
    form = Form(title=texts.CHANGE_NOTE, value=entry, is_needed=True)
    return replace(button, command=command, form=form)


def describe_pending(texts: Texts, note: PendingNote, zone: tzinfo) -> str:
    """Return when a pending change was proposed, what it would change, and why it waits."""
    place = ALL_FILES.get(note.target) or texts.table("PENDING_KINDS")[note.target]
    if note.account is not None:
        place = texts.PENDING_FOR.format(place=place, account=note.account.key)
    reason = escape(texts.word_stored(note.reason))
    return texts.SEMICOLON.join((f"{texts.format_moment(note.at, zone)}, {place}", reason))


def render_pending_changes(texts: Texts, note: PendingNote) -> list[str]:
    """Return one line of Markdown for each operation of a pending change."""
    if note.is_draft:
        return texts.render_changes(note.operations)
    return [_render_operation(texts, operation) for operation in note.operations]


def _render_operation(texts: Texts, operation: Operation) -> str:
    """Render a pending operation, such as ``replace “old text” → “new text”``."""
    line = f"  {texts.table('OPERATIONS').get(operation.action, operation.action)}"
    old_text = " ".join(part for part in (operation.path, operation.old_text) if part)
    if operation.action == "replace":
        line += f" {texts.quote(old_text)} →"
    elif old_text:
        line += f" {texts.quote(old_text)}"
    if operation.content:
        line += f" {texts.quote(operation.content)}"
    return line


def _find_channel(change: NoteChange) -> str:
    """Return the place where a change was made, as a key of the text table ``HISTORY``, or ""."""
    if change.message_id is not None:
        return "message"
    if change.address is not None:
        return "group" if change.scope.is_group else "direct"
    return "shell" if change.account is not None else ""


def _complete_replacement(operation: Operation, entries: Sequence[str]) -> Operation:
    """Return the operation with the whole new text of the note as its content.

    People usually type only the part to replace: "tea" => "coffee" in "Ana likes tea". If the new
    text repeats the beginning of the note ("Ana likes coffee"), it's already the whole text.
    """
    old_text = operation.old_text
    new_text = operation.content
    for entry in entries:
        if old_text in entry:
            before, _, after = entry.partition(old_text)
            is_whole_text = before.strip() and new_text.startswith(before.strip())
            if not is_whole_text:
                return replace(operation, content=f"{before}{new_text}{after}")
            break
    return operation


@contextmanager
def _escape_refusals(texts: Texts) -> Iterator[None]:
    """Translate and escape the text of a Refused error, because it may quote notes."""
    try:
        yield
    except Refused as refusal:
        raise Refused(_escape_lines(texts.word(refusal))) from refusal


def _escape_lines(text: str) -> str:
    """Escape a text for Markdown. Lines that begin with ``- `` stay list items."""
    lines = []
    for line in text.split("\n"):
        if line.startswith("- "):
            lines.append(f"- {escape(line[2:])}")
        else:
            lines.append(escape(line))
    return "\n".join(lines)


def _pass_on(result: str, context: CommandContext) -> Inbound:
    """Return a message that contains the result of an approved look-up, for the model to answer."""
    texts = context.texts
    return replace(
        context.inbound,
        kind="message",
        text=texts.APPROVED_LOOKUP.format(result=result),
        origin="pasted",
        command=None,
    )
