"""/recall and /memory: what was said, and what is noted."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from core.errors import Refused
from core.findings import to_markdown
from core.memory.notebook import Notebook
from core.ports import Recall
from core.records import Author
from core.search import Query
from core.types import Answer, Command, CommandSpec, Option
from gateway.caller import Caller

_RECALL = CommandSpec(
    name="recall",
    description="Find what was said, in your own words",
    options=(
        Option(
            name="query",
            description="words; also from:Ana on:telegram before:May after:2026-05-01 title:trip role:tool in:12",
        ),
    ),
    is_private=True,
)
_MEMORY = CommandSpec(
    name="memory",
    description="What is noted for good: list, add, replace, remove",
    options=(
        Option(name="action", description="what to do", choices=("list", "add", "replace", "remove")),
        Option(name="text", description="the note; user: before it for who you are; old => new to replace"),
    ),
    is_private=True,
)
_TITLES = {"memory": "What I noted", "user": "What I noted about you"}
LIMIT = 5


class RecallCommands:
    """`zone` is the IANA name for the dates that are shown."""

    specs = (_RECALL, _MEMORY)

    def __init__(self, recall: Recall, notebook: Notebook, zone: str) -> None:
        self._recall = recall
        self._notebook = notebook
        self._zone = ZoneInfo(zone)

    def is_reading(self, command: Command) -> bool:
        """/recall always is; /memory unless it changes a note."""
        return command.name == "recall" or _action(command)[0] not in ("add", "replace", "remove")

    async def run(self, command: Command, caller: Caller) -> Answer:
        """See `gateway.family`."""
        if command.name == "recall":
            findings = await self._recall.recall(
                Query(text=command.arguments, scopes=caller.scopes, asker=caller.account, limit=LIMIT)
            )
            return Answer(text=to_markdown(findings, self._zone))
        action, text = _action(command)
        if action in ("", "list"):
            return Answer(text=await self._list(caller, [text] if text in _TITLES else list(_TITLES)))
        author = Author(account=caller.account)
        target, text = _target(text)
        if action == "add":
            return Answer(text=await self._notebook.add(caller.scope, caller.scopes, target or "memory", text, author))
        if action == "replace":
            old, separator, new = text.partition("=>")
            if not separator:
                raise Refused("Say what to replace and with what: `/memory replace lives in Lisbon => lives in Porto`.")
            target = target or await self._notebook.target_of(caller.scopes, old)
            return Answer(text=await self._notebook.replace(caller.scope, caller.scopes, target, old, new, author))
        if action == "remove":
            target = target or await self._notebook.target_of(caller.scopes, text)
            return Answer(text=await self._notebook.remove(caller.scope, caller.scopes, target, text, author))
        raise Refused("I can list, add, replace and remove notes: `/memory add Ana's birthday is on 3 May`.")

    async def _list(self, caller: Caller, targets: Sequence[str]) -> str:
        sections = []
        for target in targets:
            entries = await self._notebook.entries(caller.scopes, target)
            fullness = await self._notebook.heading(caller.scopes, target)
            listed = "\n".join(f"- {entry}" for entry in entries) or "Nothing yet."
            sections.append(f"**{_TITLES[target]}** ({fullness})\n\n{listed}")
        return "\n\n".join(sections)


def _action(command: Command) -> tuple[str, str]:
    word, _, rest = command.arguments.partition(" ")
    return word.lower(), rest.strip()


def _target(text: str) -> tuple[str, str]:
    head, separator, rest = text.partition(":")
    return (head.strip().lower(), rest.strip()) if separator and head.strip().lower() in _TITLES else ("", text)
