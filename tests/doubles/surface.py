"""Every way in which something kept can be seen or changed: the rows of the table of who sees what.

A row is a list of things said or done, one after the other. ``{fact}`` and the like stand for what an animal has (see
`Menagerie.named`). To add a way is to add a line; `tests/test_wrong_person.py` fails while a command or tool has none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Tool = tuple[str, Mapping[str, Any]]
Step = str | Tool
"""A line that is typed; or a tool that the model uses, with its arguments."""

ASKED = "Who is the captain of the ferry at the pier?"


@dataclass(frozen=True, kw_only=True)
class Surface:
    """`is_whole`: all that may be seen is seen here, not only nothing else. `is_own`: with what is one's own the steps
    are done as well; otherwise only with what is not. `how`: the steps are typed, presses of buttons, answers to a
    message, questions of a schedule, or an export (which holds one's own words in rooms too)."""

    steps: tuple[Step, ...]
    is_whole: bool = False
    is_own: bool = False
    how: str = "typed"

    @property
    def is_naming(self) -> bool:
        """Whether something of somebody is named."""
        return any(map(self.names, self.steps))

    def names(self, step: Step) -> bool:
        """Whether it is in this step."""
        return re.search(r"\{[a-z]+\}", str(step)) is not None or self.how == "reply"


def whole(*steps: Step, how: str = "typed") -> Surface:
    """All that may be seen, and nothing else."""
    return Surface(steps=steps, is_whole=True, is_own=True, how=how)


def part(*steps: Step, how: str = "typed") -> Surface:
    """Nothing but what may be seen."""
    return Surface(steps=steps, how=how)


def _facts(mode: str, **more: object) -> Tool:
    return ("facts", {"mode": mode, "names": ["ferry"], **more})


def _notes(action: str, **more: object) -> Tool:
    return ("memory", {"target": "memory", "action": action, **more})


SURFACES: Mapping[str, Surface] = {
    "export": whole("/export", how="export"),
    "recall": whole("/recall ferry", "/recall pier captain called"),
    "recall, filters": part(
        "/recall ferry from:me",
        "/recall ferry platform:telegram",
        "/recall ferry before:2099",
        "/recall title:ferry",
        "/recall ferry after:2020",
        "/recall ferry role:assistant",
        "/recall ferry --summary",
        "/recall ferry --expand",
        "/recall",
    ),
    "sessions": whole("/sessions", "/sessions ferry"),
    "prefetch": whole("/new", ASKED),
    "incognito": part("/incognito", ASKED, "/incognito on", "/incognito off"),
    "scheduled question": whole(ASKED, how="cron"),
    "notes": whole("/memory", "/memory list"),
    "notes, pages": part("/memory history", "/memory pending"),
    "notes, aside": whole("/memory pending"),
    "notes, history": whole("/memory history"),
    "facts": whole("/memory facts", "/memory changes"),
    "reminders": whole("/cron", "/cron list"),
    "usage": part("/usage", "/usage months"),
    "usage, sessions": whole("/usage sessions"),
    "the house": part(
        "/help", "/help recall", "/status", "/whoami", "/approve", "/approve XXXXXXXX", "/stop", "/title"
    ),
    "tool: search": whole(("session_search", {"query": "ferry"}), ("session_search", {})),
    "tool: facts": whole(("facts", {"mode": "search", "query": "who does the ferry belong to"}), _facts("probe")),
    "tool: facts, other modes": part(_facts("related"), _facts("reason"), _facts("contradict", query="ferry")),
    "tool: notes": whole(_notes("list")),
    "tool: reminders": whole(("reminder", {"action": "list"})),
    "resume": Surface(steps=("/sessions {session}", "go on"), is_own=True),
    "forget, other people's": part(
        "/forget --confirmed {token}", "/forget {animal}", "yes", '/forget "feed the {animal}"', "yes"
    ),
    "recall, other people's words": part("/recall {animal}", "/recall title:{animal}", "/recall from:{animal} ferry"),
    "recall, deep links": part("/recall around:{message}", "/recall in:{session}", "/recall ferry in:{session}"),
    "sessions, by words": part("/sessions {animal}"),
    "notes, by words": part(
        "/memory why {animal}",
        "/memory replace {animal} => the ferry is gone",
        "/memory remove {animal}",
        "/memory replace the ferry pier shows a {animal} => the ferry is gone",
    ),
    "notes, by number": part("/memory undo {note}", "/memory approve {pending}", "/memory reject {pending}"),
    "facts, by number": part(
        "/memory why f{fact}",
        "/memory pin f{fact}",
        "/memory unpin f{fact}",
        "/memory right f{fact}",
        "/memory wrong f{fact}",
        "/memory correct f{fact}",
        "/memory correct f{fact} the ferry sank",
        "/memory forget f{fact}",
        "yes",
        "/memory forget f{fact} --confirmed x",
        "/memory undo f{fact}",
        "/memory undo c{change}",
    ),
    "reminders, by number": part("/cron pause {job}", "/cron resume {job}", "/cron remove {job}"),
    "linking": part("/link XXXXXXXX", "/link yes 1", "/unlink {account}"),
    "tool: search by number": part(
        ("session_search", {"session_id": "{session}"}),
        ("session_search", {"session_id": "{session}", "around_message_id": "{message}"}),
        ("session_search", {"around_message_id": "{message}"}),
        ("session_search", {"query": "{animal}"}),
        ("session_search", {"query": "ferry", "title": "{animal}"}),
    ),
    "tool: facts by name": part(
        _facts("probe", names=["{animal}"]),
        _facts("reason", names=["ferry", "{animal}"]),
        _facts("feedback", fact_id="{fact}", is_right=False),
    ),
    "tool: notes by words": part(
        _notes("remove", old_text="{animal}"),
        _notes("replace", old_text="{animal}", content="The ferry is gone."),
    ),
    "tool: reminders by number": part(
        ("reminder", {"action": "pause", "job_id": "{job}"}),
        ("reminder", {"action": "resume", "job_id": "{job}"}),
        ("reminder", {"action": "remove", "job_id": "{job}"}),
    ),
    "buttons": part("{button}", "{question}", how="press"),
    "answers to a message": part("/remember", how="reply"),
    "forget": part("/forget ferry", "no"),
    "writing": part(
        "/remember The buoy is green",
        "/memory add the buoy is green",
        "/remind tomorrow at 10 paint the buoy",
        "/cron add tomorrow at 11 | what about the buoy?",
        "/forget ferry",
        _notes("add", content="The buoy is green."),
        ("remember_this", {"content": "The buoy is green."}),
        ("reminder", {"action": "add", "when": "tomorrow at 12", "text": "paint the buoy"}),
    ),
    "forgetting all": part("/forget ferry", "yes"),
}
"""In this order: what is said here is kept, and what names others or changes something would be met afterwards."""
