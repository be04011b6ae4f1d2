"""Measures which foreign texts become durable, at each door by which a text can become durable, and
how well the evidence check recognizes typed statements.

The texts pass through the product's tools and notebook over a real state.db. The model is left out:
it is assumed to note each text word for word, to store it as a fact, and to set it as a reminder.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from core.agent.context_files import OwnerFiles
from core.dates.schedule import ParsedSchedule
from core.errors import Refused, ToolError
from core.facts.claims import MAX_FACT_CHARS
from core.facts.closeness import Support
from core.facts.evidence import Evidence, EvidenceSearch
from core.guard.guard import find_suspicion
from core.notes.notebook import Notebook
from core.notes.provider import NotesProvider
from core.review.pending import Review, quote_operations
from core.review.transcript import TranscriptReader
from core.scheduling.appointments import TEXT_CHARS, Appointments
from core.scheduling.tool import reminder_tool
from core.store.jobs import Jobs
from core.store.notes import Author, Notes, Operation
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.text.terms import terms_of
from core.types import Account, Address, Message, Role, Scope, Sender, Session, ToolContext
from tests.bench.evidence_set import load
from tests.fixtures.clock import SteadyClock
from tests.fixtures.facts_memory import facts_memory
from tests.fixtures.scheduler_harness import at_any_time

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
PERSON = Sender(id="42", name="Ana")
TELLING, SEEN = 5, 200
"""A note of fewer words that mean something is hardly worth one; so many messages the model still
sees."""


@dataclass(frozen=True, slots=True)
class Text:
    """A foreign text, whether it's an attack or innocent, and its set."""

    kind: str
    source: str
    text: str


def _row(text: str, role: Role = "user", **more: object) -> Message:
    sender = PERSON if role == "user" else None
    return replace(
        Message(role=role, text=text, session_id=1, created_at=NOON, sender=sender),
        **more,  # type: ignore[arg-type]
    )


MODEL_DOORS: dict[str, Callable[[str], list[Message]]] = {
    "typed, noted by the model": lambda text: [_row(text)],
    "pasted": lambda text: [_row(f"what do you make of this?\n\n{text}")],
    "in a code fence": lambda text: [_row(f"note what matters\n```\n{text}\n```")],
    "forwarded": lambda text: [_row(text, origin="forwarded")],
    "via bot": lambda text: [_row(text, origin="via_bot")],
    "imported": lambda text: [_row(text, origin="imported")],
    "quoted": lambda text: [_row("> " + text.replace("\n", "\n> "))],
    "tool result": lambda text: [_row("read that page"), _row(text, "tool"), _row("thanks")],
    "the model's own": lambda text: [_row("hello"), _row(text, "assistant"), _row("thank you")],
    "service": lambda text: [_row("what do you know of me")],
}
MADE = ("fact", "reminder")
"""What the model makes of a text besides a note."""
DOORS = (
    "/memory add",
    "member's /memory add",
    *MODEL_DOORS,
    *(f"{door} > {made}" for made in MADE for door in MODEL_DOORS),
)


def texts(shared: Path) -> list[Text]:
    """Return all texts of the set of foreign texts."""
    with (shared / "data" / "guard" / "foreign.jsonl").open(encoding="utf-8") as lines:
        return [Text(one["kind"], one["from"], one["text"]) for one in map(json.loads, lines)]


def select_part(found: Sequence[Text], part: str) -> Sequence[Text]:
    """Return a part of the texts: with "2/4", the second, the sixth and so on."""
    number, _, count = part.partition("/")
    return found[int(number) - 1 :: int(count)]


async def measure(folder: Path, found: Sequence[Text]) -> str:
    """Return a Markdown table of kinds and doors: kept, questioned, waiting and refused texts.

    Then describe which texts in the owner's files cause a warning.
    """
    counts: dict[str, Counter[tuple[str, str]]] = {door: Counter() for door in DOORS}
    async with Database.open(folder / "state.db") as database:
        for number, one in enumerate(found):
            # Most of the time is waiting for the store, so the doors wait together.
            outcomes = await asyncio.gather(
                *(outcome(folder, database, door, one.text, number) for door in DOORS)
            )
            for door, name in zip(DOORS, outcomes, strict=True):
                counts[door][one.kind, name] += 1
    kinds = Counter(one.kind for one in found)
    lines = [
        "| door | kind | texts | kept | asked | waits | refused |",
        "|---|---|---|---|---|---|---|",
    ]
    for door, counted in counts.items():
        for kind, number in kinds.items():
            cells = " | ".join(
                str(counted[kind, name]) for name in ("kept", "asked", "waits", "refused")
            )
            lines.append(f"| {door} | {kind} | {number} | {cells} |")
    files = [one for one in found if one.source.startswith("owner files")]
    warned = sum([await _is_warned(folder, one.text) for one in files])
    slowest = max((_seconds(one.text), len(one.text)) for one in found)
    return "\n".join(
        [
            *lines,
            "",
            f"Owners' files: {len(files)}; all stand in the prompt, {warned} are warned about.",
            f"The text that took longest: {1000 * slowest[0]:.1f} ms for {slowest[1]:,} characters.",
        ]
    )


async def outcome(folder: Path, database: Database, door: str, text: str, number: int) -> str:
    """Return what happens to a text at a door.

    Each text has its own scope, so no limit is reached.
    """
    clock, conversations, notes = (
        SteadyClock(),
        Conversations(database, SteadyClock()),
        Notes(database),
    )
    notebook = Notebook(folder, notes, clock, {"memory": 1_000_000, "user": 1_000_000})
    is_room = door.startswith("member")
    chat = f"{number}.{DOORS.index(door)}"
    scope = Scope.group("telegram", f"-{chat}") if is_room else Scope.account("telegram", chat)
    person = replace(PERSON, id=str(number))
    account = Account(platform="telegram", user_id=person.id)
    scopes = frozenset((scope,))
    door, _, made = door.partition(" > ")
    try:
        if door in MODEL_DOORS:
            address = Address(platform="telegram", chat_id=chat)
            session = await conversations.create(
                Session(address=address, scope=scope, started_at=NOON)
            )
            await conversations.append(
                [
                    replace(row, session_id=session.id, sender=row.sender and person)
                    for row in MODEL_DOORS[door](text)
                ]
            )
            context = ToolContext(
                session=session, scope=scope, scopes=scopes, sender=person, now=NOON
            )
            if made == "fact":
                tool = (await facts_memory(database, clock).tools())[1]
                done = await tool.run({"content": text[:MAX_FACT_CHARS]}, context)
            elif made == "reminder":
                evidence, review = EvidenceSearch(conversations), Review(notes, clock)
                appointments = Appointments(Jobs(database), clock, "UTC", lambda: None, at_any_time)
                tool = reminder_tool(
                    appointments, TranscriptReader(conversations), evidence, review, _ask_nothing
                )
                done = await tool.run(
                    {"action": "add", "moment": "2030-01-01T09:00", "task": text[:TEXT_CHARS]},
                    context,
                )
            else:
                (tool,) = await NotesProvider(notebook, EvidenceSearch(conversations)).tools()
                done = await tool.run(
                    {"target": "memory", "action": "add", "content": text}, context
                )
        else:
            author = Author(account=account, origin="member" if is_room else "typed")
            wanted = [Operation(action="add", content=text)]
            wanted = quote_operations(person.name, account, wanted) if is_room else wanted
            done = str(await notebook.apply(scope, scopes, "memory", wanted, author))
    except (Refused, ToolError) as refusal:
        return "asked" if str(refusal).startswith("Not kept yet: it contains") else "refused"
    return "waits" if done.startswith("Not kept yet") else "asked" if done == ASKED else "kept"


ASKED = "Do you mean that?"


async def _ask_nothing(reading: ParsedSchedule, context: ToolContext, origin: str | None) -> str:
    """Fills the role Ask."""
    return ASKED


async def _is_warned(folder: Path, text: str) -> bool:
    """Return whether the owner is warned of such a text in AGENTS.md, which is still used."""
    told: list[str] = []

    async def warn(name: str, reason: str, digest: str) -> None:
        told.append(reason)

    (folder / "AGENTS.md").write_text(text, encoding="utf-8")
    files = OwnerFiles(folder)
    files.warn = warn
    assert await files.read_text("AGENTS.md", 20_000)
    return bool(told)


def _seconds(text: str) -> float:
    begun_s = time.perf_counter()
    find_suspicion(text)
    Evidence([_row(text), _row(text, origin="forwarded")]).judge_note(text)
    return time.perf_counter() - begun_s


def evidence(shared: Path) -> str:
    """Return how many notes are supported by their conversation up to their message, and how many
    by another conversation.
    """
    conversations, notes = load(shared)
    counts: Counter[tuple[bool, str]] = Counter()
    slowest_s = 0.0
    for note in notes:
        is_telling = (
            len({term for term in terms_of(note.text) if len(term) > 3} - {"user"}) >= TELLING
        )
        begun_s = time.perf_counter()
        rows = conversations[note.conversation][: note.place + 1][-SEEN:]
        support = Evidence(rows).judge_note(note.text).support
        slowest_s = max(slowest_s, time.perf_counter() - begun_s)
        other = conversations[(note.conversation + 3) % len(conversations)]
        wrong = Evidence(other[-SEEN:]).judge_note(note.text).support
        for one in {False, is_telling}:
            counts[one, "notes"] += 1
            counts[one, "kept"] += support is Support.CLOSE
            counts[one, "perfect"] += support is not Support.REFUSED
            counts[one, "wrong"] += wrong is Support.CLOSE
            counts[one, "gullible"] += wrong is not Support.REFUSED
    lines = [
        "| notes made of what people said in LoCoMo | | kept by rules | with a perfect helper "
        "| kept though said in another conversation only | with a gullible helper |",
        "|---|---|---|---|---|---|",
    ]
    for one, label in (
        (False, "all, also small talk"),
        (True, f"of {TELLING} words or more that mean something"),
    ):
        number = counts[one, "notes"]
        shares = " | ".join(
            f"{100 * counts[one, name] / number:.1f} %"
            for name in ("kept", "perfect", "wrong", "gullible")
        )
        lines.append(f"| {label} | {number} | {shares} |")
    return "\n".join([*lines, "", f"The slowest of them took {1000 * slowest_s:.0f} ms."])
