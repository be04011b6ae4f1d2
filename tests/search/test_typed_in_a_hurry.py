"""What people type when they are in a hurry, and what they search for besides words, among much
that is like it."""

from __future__ import annotations

import random

import pytest

from core.search.recall import Recall
from core.store.query import SearchQuery
from core.store.sqlite.database import Database
from tests.bench.hurry import STRENGTHS, hurried, slip
from tests.fixtures.clock import SteadyClock
from tests.fixtures.stored_history import ANA, StoredHistory

SAID = {
    "name": "Bartholomew Kowalczyk lent me his bicycle for the weekend",
    "lisbon": "We walked through Lisbon and ate custard tarts at the harbour",
    "path": "The bug sits in core/store/recall.py, in the part that merges",
    "other path": "Nothing was wrong in core/store/rows.py after all",
    "url": "Read https://docs.python.org/3/library/asyncio.html before you start",
    "phone": "Call the plumber at +351 912 345 678 before noon",
    "other phone": "The bakery is 213456789, they open early",
    "hashtag": "posted it under #holiday2024 for everybody",
    "thumbs": "all good from my side \U0001f44d\U0001f3fd",
    "heart": "the new curtains \u2764\ufe0f",
    "version": "We upgraded the server to v2.3.1 and it calmed down",
    "other version": "The phone still runs v2.3.7, which is fine",
    "code": "foo_bar() raises when the list is empty",
    "mail": "Write to ana.silva@example.com about the lease",
    "money": "The deposit was €1,200 and they keep it until autumn",
    "other money": "The insurance came to 3400 a year",
    "seven": "Dinner is at 7pm at her mother's",
    "evening": "The concert begins at 20:30 and not a minute later",
    "icecream": "homemade icecream with pistachios for the children",
    "website": "The web site of the museum was down again",
    "birthday": "Her grandmother celebrates her birthday in the village hall",
    "adoption": "The adoption papers were signed at the court",
}
OTHERS = (
    "weather report region garden letter window carpet number minute server papers phone list open"
)
ASKED = [
    ("bartholemew", "name"),
    ("Batrholomew bicycle", "name"),
    ("kowalczik", "name"),
    ("artholomew", "name"),
    ("whos lending me a bicyle", "name"),
    ("lisbno", "lisbon"),
    ("Kisbon harbour", "lisbon"),
    ("isbon", "lisbon"),
    ("custrad tarts", "lisbon"),
    ("core/store/recall.py", "path"),
    ("store/recall.py", "path"),
    ("recall.py", "path"),
    ("core/store/recal.py", "path"),
    ("core/store/rows.py", "other path"),
    ("https://docs.python.org/3/library/asyncio.html", "url"),
    ("docs.python.org asyncio", "url"),
    ("docs.pyhton.org", "url"),
    ("+351 912 345 678", "phone"),
    ("912345678", "phone"),
    ("912 345 678", "phone"),
    ("whats the number of the plumbr", "phone"),
    ("213 456 789", "other phone"),
    ("+351 213 456 789", "other phone"),
    ("#holiday2024", "hashtag"),
    ("holiday2024", "hashtag"),
    ("\U0001f44d", "thumbs"),
    ("\U0001f44d\U0001f3fb", "thumbs"),
    ("\u2764", "heart"),
    ("\u2764\ufe0f", "heart"),
    ("v2.3.1", "version"),
    ("version 2.3.1 server", "version"),
    ("v2.3.7", "other version"),
    ("foo_bar()", "code"),
    ("foo_bar", "code"),
    ("foo_bar empyt list", "code"),
    ("ana.silva@example.com", "mail"),
    ("ana.silva@exmaple.com", "mail"),
    ("€1,200", "money"),
    ("1200", "money"),
    ("1.200", "money"),
    ("3,400", "other money"),
    ("7pm", "seven"),
    ("19:00", "seven"),
    ("7 pm dinner", "seven"),
    ("20:30", "evening"),
    ("8:30pm", "evening"),
    ("ice cream", "icecream"),
    ("pistachio ice creams", "icecream"),
    ("website museum", "website"),
    ("website", "website"),
    ("whens her grandmothers brithday", "birthday"),
    ("when did they adopt", "adoption"),
    ("adption papers", "adoption"),
]


@pytest.fixture
async def told(database: Database) -> tuple[Recall, dict[int, str]]:
    """A store with one conversation for each line, and as many about nothing of it."""
    stored = StoredHistory(database)
    names: dict[int, str] = {}
    chance = random.Random(7)
    for name, text in SAID.items():
        names[(await stored.session([text, "Noted"]))[0]] = name
        await stored.session(
            [" ".join(chance.choices(OTHERS.split(), k=9)), "Thanks for telling me"]
        )
    recall = Recall(database, SteadyClock())
    while await recall.tend():
        pass
    return recall, names


async def test_query_typed_in_a_hurry_finds_its_session(
    told: tuple[Recall, dict[int, str]],
) -> None:
    recall, names = told
    missed = []
    for typed, wanted in ASKED:
        findings = await recall.recall(SearchQuery(scopes=frozenset({ANA}), text=typed))
        found = [names.get(one.session.id) for one in findings.sessions]
        if found[:1] != [wanted]:
            missed.append((typed, found))
    assert not missed, "\n".join(map(str, missed))


async def test_search_for_an_unknown_long_number_finds_no_messages_with_its_parts(
    told: tuple[Recall, dict[int, str]],
) -> None:
    recall, _ = told
    for typed in ("999888777", "5550001234", "12345678901234567890", "23:59"):
        assert (
            await recall.recall(SearchQuery(scopes=frozenset({ANA}), text=typed))
        ).sessions == (), typed


def test_the_benchmark_types_the_same_each_time() -> None:
    text = "When did Ana's mother visit the Lisbon harbour, and who was with her?"
    typed = {strength: hurried(text, "q1", strength) for strength in STRENGTHS}
    assert typed == {strength: hurried(text, "q1", strength) for strength in STRENGTHS}
    assert typed["typed"] == text
    assert typed["light"] == "when did anas mother visit the lisbon harbour and who was with her"
    assert typed["words"] == "anas mother visit lisbon harbour"
    assert len({*typed.values()}) == len(STRENGTHS)
    assert len(typed["heavy"].split()) < len(typed["medium"].split())


def test_simulated_typing_slip_changes_a_word_by_at_most_one_letter() -> None:
    chance = random.Random(1)
    slipped = {slip("harbour", chance) for _ in range(200)}
    assert {len(word) for word in slipped} == {6, 7, 8}
    assert "harbour" not in slipped
