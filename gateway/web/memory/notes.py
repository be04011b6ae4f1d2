"""Shows notes and instructions with their changes, and changes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from core.errors import Refused
from core.notes.notebook import FILES
from core.store.notes import INSTRUCTIONS, NoteVersion, Operation
from core.types import LOCAL_SCOPE, Answer, Button, Command, Scope
from gateway.commands.memory import MemoryCommands, NoteEdit
from gateway.commands.privacy import quote_phrase
from gateway.commands.registry import CommandContext, make_button
from gateway.web.memory.history import (
    MAX_CHANGES_TRACED,
    fit_entries,
    load_current_notes,
    make_entry,
    trace_changes,
)
from gateway.web.views import (
    PageRequest,
    Run,
    Values,
    check_unchanged,
    read_field,
)


@dataclass(frozen=True, slots=True)
class NoteView:
    """A note for the page, with the change that wrote it, if that is known."""

    target: str
    text: str
    version: NoteVersion | None
    # "right" or "wrong" if a person said so, otherwise "".
    verdict: str


@dataclass(frozen=True, slots=True)
class NoteFileView:
    """A note file for the page: how full it is, and its notes with the change that wrote each."""

    target: str
    usage: str
    entries: Sequence[NoteView]


@dataclass(frozen=True, slots=True)
class InstructionsView:
    """The instructions of one of the person's direct chats."""

    scope: Scope
    # Where the chat is, in the person's language.
    place: str
    text: str
    version: NoteVersion | None
    # "right" or "wrong" if a person said so, otherwise "".
    verdict: str


async def load_note_file(request: PageRequest, target: str) -> NoteFileView:
    notebook = request.services.notebook
    entries = await notebook.entries(request.scopes, target)
    versions = {
        version.after: version for version in await notebook.versions(request.scopes, target)
    }
    verdicts = await notebook.load_verdicts(request.scopes)
    chars, limit = notebook.measure(target, entries)
    texts = request.texts
    usage = texts.NOTE_USAGE.format(
        percent=round(100 * chars / limit),
        chars=texts.format_number(chars),
        limit=texts.format_number(limit),
    )
    views = [
        NoteView(target, entry, versions.get(entry), verdicts.get((target, entry), ""))
        for entry in entries
    ]
    return NoteFileView(target, usage, views)


async def load_note(request: PageRequest) -> Values | None:
    """Return the history of a note, or of a file of a skill, by the number of one of its changes.

    Returns None if there is no such change here.
    """
    notebook = request.services.notebook
    try:
        change = await notebook.find_change(request.scopes, request.number("number"))
    except Refused:
        return None
    # The message that changed one of the owner's skills is in another scope.
    scopes = request.scopes if change.skill else frozenset({change.scope})
    earlier = await notebook.history(scopes, MAX_CHANGES_TRACED, before=change.id)
    later = await notebook.history(scopes, MAX_CHANGES_TRACED, after=change.id)
    changes = trace_changes([*later, change, *earlier], change)
    text = changes[0].after
    note = None
    if change.target in FILES:
        views = (await load_note_file(request, change.target)).entries
        note = next((view for view in views if view.text == text), None)
    notes_now = await load_current_notes(request)
    return {
        "entries": fit_entries([make_entry(request, each, notes_now, {}) for each in changes]),
        "text": text or change.after or change.before or "",
        "note": note,
    }


async def load_instructions(request: PageRequest) -> list[InstructionsView]:
    """Return the instructions of each of the person's direct chats, that of this login first."""
    notebook = request.services.notebook
    views = []
    for scope in _list_direct_scopes(request):
        entries = await notebook.entries(frozenset({scope}), INSTRUCTIONS)
        version, verdict = None, ""
        if entries:
            versions = await notebook.versions(frozenset({scope}), INSTRUCTIONS)
            verdicts = await notebook.load_verdicts(frozenset({scope}))
            version = versions[-1] if versions else None
            verdict = verdicts.get((INSTRUCTIONS, entries[-1]), "")
        place = _name_place(request, scope)
        views.append(InstructionsView(scope, place, "\n\n".join(entries), version, verdict))
    return views


def _list_direct_scopes(request: PageRequest) -> list[Scope]:
    own_scope = request.context.scope
    others = {scope for scope in request.scopes if not scope.is_group}
    return [own_scope, *sorted(others - {own_scope})]


def _name_place(request: PageRequest, scope: Scope) -> str:
    """Return where a direct chat is: the name of its platform, or the terminal and this page."""
    if scope == LOCAL_SCOPE:
        return request.words["INSTRUCTIONS_HERE"]
    _, platform, _ = scope.key.split(":", 2)
    return platform.title()


def _enter_chat(request: PageRequest, form: Mapping[str, str]) -> CommandContext:
    """Return the context for a command in the direct chat that a form names.

    Raises Refused if it isn't one of this person's.
    """
    key = read_field(request, form, "scope")
    scope = next((each for each in _list_direct_scopes(request) if each.key == key), None)
    if scope is None:
        raise Refused(request.words["WRONG_FIELD"])
    return replace(request.context, scope=scope)


async def set_instructions(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Set the instructions of a direct chat, like `/instructions set`.

    Raises Refused if they were changed elsewhere after the page was shown.
    """
    text = read_field(request, form, "text")
    context = _enter_chat(request, form)
    entries = await request.services.notebook.entries(frozenset({context.scope}), INSTRUCTIONS)
    check_unchanged(request, form, "\n\n".join(entries))
    command = Command(name="instructions", arguments=f"set {text}")
    answer = await request.commands.run(command, context)
    # A question has buttons.
    return answer if answer.buttons else Answer(text=request.words["INSTRUCTIONS_SAVED"])


async def forget_instructions(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Ask whether to erase the instructions of a direct chat, like `/forget`.

    Raises Refused if the chat has none.
    """
    context = _enter_chat(request, form)
    entries = await request.services.notebook.entries(frozenset({context.scope}), INSTRUCTIONS)
    if not entries:
        raise Refused(request.texts.NO_INSTRUCTIONS)
    return await ask_to_forget(request, entries[0])


def run_in_chat(action: str) -> Run:
    """Return the function of a form that runs an action of `/instructions` in a direct chat."""

    async def run(request: PageRequest, form: Mapping[str, str]) -> Answer:
        context = _enter_chat(request, form)
        return await request.commands.run(Command(name="instructions", arguments=action), context)

    return run


async def add_note(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Add a note to a file, like `/memory add`."""
    operation = Operation(action="add", content=read_field(request, form, "text"))
    return await _change_note(request, form, operation)


async def replace_note(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Replace a note, like `/memory replace`."""
    new_text = read_field(request, form, "text")
    _, old_text = await _find_note(request, form)
    operation = Operation(action="replace", old_text=old_text, content=new_text)
    return await _change_note(request, form, operation)


async def forget_note(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Ask whether to erase a note with all that repeats it, like `/forget`.

    A button of the question only takes the note out, which can be undone. Raises Refused if the
    note was changed meanwhile.
    """
    target, note = await _find_note(request, form)
    label = request.words["TAKE_OUT"]
    return await ask_to_forget(
        request, note, make_button(label, "memory", f"remove {target}: {note}")
    )


async def ask_to_forget(request: PageRequest, text: str, *buttons: Button) -> Answer:
    """Ask whether to erase a text with all that repeats it, like `/forget`.

    `buttons` are the other answers to the question.
    """
    command = Command(name="forget", arguments=quote_phrase(text))
    answer = await request.commands.run(command, request.context)
    return replace(answer, buttons=(*answer.buttons, *buttons))


async def _find_note(request: PageRequest, form: Mapping[str, str]) -> tuple[str, str]:
    """Return the file and the text of the note that a form names.

    Raises Refused if there is no such file, or if the note isn't there any more.
    """
    note = read_field(request, form, "note")
    target = form.get("target", "")
    if target not in FILES:
        raise Refused(request.words["WRONG_FIELD"])
    if note not in await request.services.notebook.entries(request.scopes, target):
        raise Refused(request.words["NOTE_GONE"])
    return target, note


async def _change_note(
    request: PageRequest, form: Mapping[str, str], operation: Operation
) -> Answer:
    """Change a note through the chat command's code. Raises Refused if that isn't possible."""
    target = form.get("target", "")
    if target not in FILES:
        raise Refused(request.words["WRONG_FIELD"])
    edit = NoteEdit(operation, target, is_insisting=False)
    # As in a chat: a suspicious text gets a question with a button.
    context = replace(request.context, is_shell=False)
    return await MemoryCommands(request.services).change(edit, context)
