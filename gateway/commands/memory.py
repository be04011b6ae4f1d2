"""/memory: what is noted for good (see `note_desk.py`), and what is known (see `fact_commands.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.errors import Refused
from core.markup.render import escape
from core.notes.notebook import Notebook
from core.notes.owner_files import OwnerFiles
from core.types import Answer, Command, CommandSpec, Option
from gateway.commands.context import CommandContext
from gateway.commands.facts import ACTIONS, FactCommands
from gateway.commands.notes import NOTE_ACTIONS, NoteDesk

_MEMORY = CommandSpec(
    name="memory",
    description="What is noted and known for good, and what became of it",
    options=(
        Option(
            name="action",
            description="what to do",
            choices=tuple(dict.fromkeys(("list", *NOTE_ACTIONS, *ACTIONS))),
        ),
        Option(name="text", description="the note; user: before it for who you are; old => new to replace"),
    ),
    is_private=True,
)
_TITLES = {"memory": "What I noted", "user": "What I noted about you"}


class MemoryCommands:
    """/memory over notes and facts; `zone` is for dates."""

    specs = (_MEMORY,)

    def __init__(self, notebook: Notebook, charter: OwnerFiles, facts: FactCommands, zone: str) -> None:
        self._notebook = notebook
        self._facts = facts
        self._desk = NoteDesk(notebook, charter, zone)

    def is_reading(self, command: Command) -> bool:
        """Unless it changes a note or a fact."""
        action, text = _action(command)
        return not self._desk.changes_notes(action) and not self._facts.changes_facts(action, text)

    async def run(self, command: Command, caller: CommandContext) -> Answer:
        """See `gateway.commands.registry`."""
        action, text = _action(command)
        if (about := await self._facts.answer(action, text, caller)) is not None:
            return about
        if action in ("", "list"):
            notes = await self._list(caller, [text] if text in _TITLES else list(_TITLES))
            known = await self._facts.page(caller)
            return Answer(text=notes) if text else replace(known, text=f"{notes}\n\n{known.text}")
        if (done := await self._desk.answer(action, text, caller)) is not None:
            return done
        raise Refused(
            "I can list, add, replace and remove notes, show their history, undo a change and say why a note is there "
            "(`/memory add Ana's birthday is on 3 May`), and list, explain, pin, correct and forget facts "
            "(`/memory facts`)."
        )

    async def _list(self, caller: CommandContext, targets: Sequence[str]) -> str:
        sections = []
        for target in targets:
            entries = await self._notebook.entries(caller.scopes, target)
            fullness = await self._notebook.heading(caller.scopes, target)
            listed = "\n".join("- " + escape(entry).replace("\n", "\n  ") for entry in entries) or "Nothing yet."
            sections.append(f"**{_TITLES[target]}** ({fullness})\n\n{listed}")
        if waiting := await self._desk.waiting(caller):
            sections.append(f"{waiting} put aside because they read like orders: `/memory pending`.")
        troubles = await self._notebook.troubles(caller.scopes)
        return "\n\n".join([*sections, *map(escape, troubles)])


def _action(command: Command) -> tuple[str, str]:
    word, _, rest = command.arguments.partition(" ")
    return word.lower(), rest.strip()
