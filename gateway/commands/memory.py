"""/memory: the curated notes, what became of them, and what waits for a decision; facts are in `facts`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TypeVar

from core.errors import Refused
from core.guard.guard import cleaned, suspicion
from core.markup.markdown import escape
from core.notes.curator import AFTER_A_NO
from core.notes.notebook import ALL_FILES, FILES
from core.review.pending import ANYWAY, doubt, insisting, quoted
from core.store.notes import NoteChange, Operation, PendingNote
from core.text.normalize import shortened
from core.types import Answer, Button, Command
from gateway import texts
from gateway.commands.facts import FactCommands
from gateway.commands.registry import CommandContext, announced, button, number_in
from gateway.services import Services

T = TypeVar("T")
PAGE = 10
SAID_CHARS = 300
BUTTONS = 8
_CHANGING = ("add", "replace", "remove", "undo", "approve", "reject")
_REPLACEMENT = re.compile(r"""\s*(?:["“„](?P<quoted>[^"”“]+)["”“]\s*(?:=>)?|(?P<plain>.*?)=>)(?P<new>.*)""", re.DOTALL)


def edit_of(action: str, text: str) -> tuple[Operation, str, bool]:
    """What follows /memory add, replace or remove: the change, its target (memory, user, or empty for the one that has
    the old text), and whether the person insists. Raises Refused."""
    text, is_first = insisting(text)
    target, text = _target(text)
    rest, is_second = insisting(text)
    is_insisting = is_first or is_second
    if action == "add":
        return Operation(action="add", content=rest), target or "memory", is_insisting
    if action == "remove":
        return Operation(action="remove", old_text=rest), target, is_insisting
    found = _REPLACEMENT.fullmatch(rest)
    if found is None:
        raise Refused(texts.REPLACE_USAGE)
    old, new = (found["quoted"] or found["plain"]).strip(), found["new"].strip()
    return Operation(action="replace", content=new, old_text=old), target, is_insisting


class MemoryCommands:
    specs = announced("memory")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._notebook = services.notebook
        self._facts = FactCommands(services)
        self._zone = services.zone

    async def run(self, command: Command, context: CommandContext) -> Answer:
        word, _, rest = command.arguments.partition(" ")
        action, text = word.lower(), rest.strip()
        if (about := await self._facts.answer(action, text, context)) is not None:
            return about
        if action in _CHANGING and (done := await self._notebook.done(context.author, context.scopes)) is not None:
            return Answer(text=_plainly(done))
        match action:
            case "" | "list":
                notes = await self._list(context, [text] if text in FILES else list(FILES))
                known = await self._facts.page(context)
                return Answer(text=notes) if text else replace(known, text=f"{notes}\n\n{known.text}")
            case "add" | "replace" | "remove":
                return await self._change(*edit_of(action, text), context)
            case "history":
                return await self._history(text, context)
            case "why":
                _, entry, change = await _legible(self._notebook.find(context.scopes, text))
                return Answer(text=self._explained(entry, change))
            case "undo":
                return await self._undo(text, context)
            case "pending":
                return await self._pending(context)
            case "pin" | "unpin":
                return await self._pin(text, context, is_pinned=action == "pin")
            case "approve" | "reject":
                return await self._decide(text, context, is_approved=action == "approve")
        raise Refused(texts.MEMORY_USAGE)

    async def _list(self, context: CommandContext, targets: Sequence[str]) -> str:
        """The notes of these targets, how many more wait, and what is wrong with their files."""
        sections = []
        for target in targets:
            entries = await self._notebook.entries(context.scopes, target)
            fullness = self._notebook.heading(target, entries)
            pinned = {one.after for one in await self._notebook.versions(context.scopes, target) if one.is_pinned}
            marks = ("- 📌 " if entry in pinned else "- " for entry in entries)
            shown = (escape(entry).replace("\n", "\n  ") for entry in entries)
            lines = "\n".join(map("".join, zip(marks, shown, strict=True))) or texts.NOTHING_YET
            sections.append(f"**{texts.table('NOTE_TITLES')[target]}** ({fullness})\n\n{lines}")
        if number := len(await self._notebook.review.waiting(context.scopes)):
            sections.append(texts.PENDING_NOTES.format(number=number))
        return "\n\n".join([*sections, *map(escape, await self._notebook.troubles(context.scopes))])

    async def _change(self, edit: Operation, target: str, is_insisting: bool, context: CommandContext) -> Answer:
        """Adds, replaces or removes a note. What looks wrong is asked about first; a member of a room changes only
        notes of their own."""
        author = replace(context.author, is_insisting=is_insisting)
        wanted, action, new, old = [edit], edit.action, edit.content, edit.old_text
        is_asked = author.origin == "typed" and not is_insisting and not context.is_shell
        if is_asked and (reason := suspicion(cleaned(new))):
            return Answer(text=doubt(reason), buttons=(_anyway(edit, target),))
        if action != "add" and (context.is_member or not target):
            found = self._notebook.find(context.scopes, old, [target] if target else FILES)
            target, _, change = await _legible(found)
            if not context.may_change(change.account if change else None):
                raise Refused(texts.AUTHOR_CHANGES)
        if action == "replace":
            entries = await self._notebook.entries(context.scopes, target)
            wanted = [replace(edit, content=_with(new, old, entries))]
        if action == "remove":
            author = replace(author, origin="typed")  # whoever noted it takes it back
        elif context.is_member:
            wanted = quoted(context.inbound.sender.name, context.account, wanted)
        return await _told(self._notebook.apply(context.scope, context.scopes, target, wanted, author))

    async def _pending(self, context: CommandContext) -> Answer:
        waiting = await self._notebook.review.waiting(context.scopes)
        if not waiting:
            return Answer(text=texts.NOTHING_PENDING)
        lines, buttons = [texts.PENDING], list[Button]()
        for note in waiting:
            who = "" if note.account is None else f", for {note.account.key}"
            place = ALL_FILES.get(note.target) or texts.table("PENDING_KINDS")[note.target]
            lines.append(f"- {note.id}: {texts.moment(note.at, self._zone)}, {place}{who}; {escape(note.reason)}")
            lines += texts.difference(note.operations) if note.is_draft else ()
            for one in () if note.is_draft else note.operations:
                content, old_text = escape(one.content), escape(" ".join(filter(None, (one.path, one.old_text))))
                old = f" “{old_text}” →" if one.action == "replace" else f" “{old_text}”" if old_text else ""
                lines.append(f"  {one.action}{old}{f' “{content}”' if content else ''}")
            buttons += decision(note)
        return Answer(text="\n".join([*lines, "", texts.PENDING_HINT]), buttons=tuple(buttons[:BUTTONS]))

    async def _decide(self, text: str, context: CommandContext, *, is_approved: bool) -> Answer:
        if (number := number_in(text)) is None:
            raise Refused(texts.DECIDE_USAGE)
        waiting = {note.id: note for note in await self._notebook.review.waiting(context.scopes)}
        if (note := waiting.get(number)) is None:
            raise Refused(f"Nothing with the number {number} waits here. `/memory pending` lists what does.")
        if not context.may_change(None if is_approved else note.account):
            raise Refused(texts.OWNER_DECIDES)
        if is_approved:
            return await _told(self._services.approve(note, context.scopes, context.epoch))
        await self._services.notes.drop(note.id)
        if note.is_draft:
            await self._services.notes.reviewed(note.scope, self._services.clock.now() + AFTER_A_NO)
        return Answer(text="Rejected: it is gone.")

    async def _pin(self, text: str, context: CommandContext, *, is_pinned: bool) -> Answer:
        """By a part of its text, or the number of the change that made it."""
        if not context.may_change(None):
            raise Refused(texts.OWNER_DECIDES)
        if (number := number_in(text)) is not None:
            text = (await self._notebook.change(context.scopes, number)).after or ""
        entry = await _legible(self._notebook.pin(context.scopes, text, is_pinned=is_pinned))
        return Answer(text=(texts.NOTE_PINNED if is_pinned else texts.NOTE_UNPINNED).format(note=escape(entry)))

    async def _undo(self, text: str, context: CommandContext) -> Answer:
        if (number := number_in(text)) is None and text:
            raise Refused(texts.UNDO_USAGE)
        change = await self._notebook.change(context.scopes, number)
        if not context.may_change(None if change.skill else change.account):
            raise Refused(texts.AUTHOR_UNDOES)
        if change.skill:
            return Answer(text=escape(await self._services.skills.undo(change, context.author)))
        return await _told(self._notebook.undo(change, context.scope, context.scopes, context.author))

    async def _history(self, text: str, context: CommandContext) -> Answer:
        page = max(1, int(text[:6])) if text.isdecimal() else 1
        changes = await self._notebook.history(context.scopes, PAGE + 1, PAGE * (page - 1))
        if not changes:
            return Answer(text=texts.NOTHING_CHANGED if page == 1 else texts.NOTHING_OLDER)
        lines = [f"- {self._line(change)}" for change in changes[:PAGE]]
        more = button("Older", "memory", f"history {page + 1}")
        return Answer(text="\n".join([*lines, "", texts.HISTORY_HINT]), buttons=(more,) if len(changes) > PAGE else ())

    def _explained(self, entry: str, change: NoteChange | None) -> str:
        if change is None:
            return f"“{escape(entry)}” stands in the file; who put it there is not known."
        lines = [f"“{escape(entry)}”", f"Change {self._line(change)}"]
        if change.said:
            did = "said" if change.message_id is not None else "typed"
            said = escape(shortened(change.said, SAID_CHARS))
            lines.append(f"From what {escape(change.sender or 'the person')} {did}: “{said}”")
        return "\n\n".join(lines)

    def _line(self, change: NoteChange) -> str:
        done = texts.table("NOTE_DONE")[change.action] if change.undoes is None else f"change {change.undoes} undone"
        who = "" if change.account is None else f", by {change.account.key}"
        asked = ", after a yes" if change.is_insisted else ""
        at = texts.moment(change.at, self._zone)
        place = "/".join(change.skill or (ALL_FILES.get(change.target, ""),))
        head = f"{change.id}: {at}, {place}, {done}{who}{asked}{_way(change)}"
        if change.skill:
            return escape(head)
        before, after = (None if text is None else escape(text) for text in (change.before, change.after))
        link = f" ({change.link})" if change.link else ""
        if before is None or after is None:
            return f"{head}: {'+' if before is None else '-'} “{before or after}”{link}"
        return f"{head}: “{before}” → “{after}”{link}"


def decision(note: PendingNote) -> tuple[Button, ...]:
    """Yes and no to what waits."""
    return tuple(button(f"{word} {note.id}", "memory", f"{word.lower()} {note.id}") for word in ("Approve", "Reject"))


def _anyway(edit: Operation, target: str) -> Button:
    words = [f"{target}:"] * bool(target) + [edit.old_text, "=>"] * bool(edit.old_text)
    return button("Keep it anyway", "memory", " ".join([edit.action, ANYWAY, *words, edit.content]))


def _way(change: NoteChange) -> str:
    if change.message_id is not None:
        return ", from a message"
    if change.address is not None:
        return f", typed in {'a room' if change.scope.is_room else 'a direct chat'}"
    return "" if change.account is None else ", on the command line"


async def _legible(work: Awaitable[T]) -> T:
    """Awaits `work`; a refusal that quotes notes shows them letter by letter."""
    try:
        return await work
    except Refused as refusal:
        raise Refused(_plainly(str(refusal))) from refusal


async def _told(work: Awaitable[str]) -> Answer:
    return Answer(text=_plainly(await _legible(work)))


def _with(new: str, old: str, entries: Sequence[str]) -> str:
    """The note with `new` in the place of `old`; `new` alone where it says the beginning of the note again."""
    before, _, after = next((entry for entry in entries if old in entry), old).partition(old)
    return new if before.strip() and new.startswith(before.strip()) else f"{before}{new}{after}"


def _plainly(sentences: str) -> str:
    """The notebook's sentences as Markdown that shows them letter by letter; lists stay lists."""
    return "\n".join(
        f"- {escape(line[2:])}" if line.startswith("- ") else escape(line) for line in sentences.split("\n")
    )


def _target(text: str) -> tuple[str, str]:
    head, separator, rest = text.partition(":")
    return (head.strip().lower(), rest.strip()) if separator and head.strip().lower() in FILES else ("", text)
