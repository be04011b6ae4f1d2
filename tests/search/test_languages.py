"""Questions in several languages to one history, where people mix them."""

# ruff: noqa: RUF001
from __future__ import annotations

import pytest

from core.search.recall import Recall
from core.store.query import SearchQuery
from core.store.sqlite.database import Database
from tests.fixtures.clock import SteadyClock
from tests.fixtures.search_queries import search_query
from tests.fixtures.stored_history import ANA, StoredHistory

SAID = {
    "bills": "Die Rechnungen vom Zahnarzt sind gestern mit der Post gekommen",
    "dinner": "Essen fertig!",
    "ferry": "Wir nehmen die Ferry nach Lissabon, das booking hat Carlos gemacht",
    "meeting": "Sorry, running late for the meeting with Carlos, bin gleich da",
    "standup": "The standup moves to nine because the office opens later",
    "books": "وصلت الكتب الجديدة إلى المكتبة صباح اليوم",
    "train": "Мы купили билеты на поезд до Казани для всей семьи",
    "ship": "Πήγαμε με τα πλοία στη Θεσσαλονίκη και βρέχει",
    "sweets": "मैंने बच्चों के लिए मिठाइयाँ और किताबें खरीदीं",
    "keys": "Anahtarları Mehmet'in evinde unuttuk ama sonra bulduk",
    "sold": "Tôi đã bán chiếc xe máy cũ của bố ở Huế",
    "table": "Cái bàn mới của chúng ta rất đẹp và rẻ",
    "beach": "As crianças não foram à praia com os vizinhos",
}
ASKED = [
    ("Wann kam die Rechnung vom Zahnarzt?", "bills"),
    ("when did the rechnungen come", "bills"),
    ("Wann war das Essen fertig?", "dinner"),
    ("Wer hat das Booking für die Ferry gemacht?", "ferry"),
    ("Who made the booking for the ferry?", "ferry"),
    ("Mit wem war das Meeting von Carlos?", "meeting"),
    ("When does the office open?", "standup"),
    ("متى وصل كتاب جديد للمكتبة؟", "books"),
    ("Куда у нас был билет на поезд?", "train"),
    ("Πού πήγε το πλοίο;", "ship"),
    ("बच्चे के लिए कौन सी मिठाई खरीदी?", "sweets"),
    ("Mehmet'in evinde hangi anahtar unutuldu?", "keys"),
    ("Ai đã bán xe máy?", "sold"),
    ("ai ban xe may", "sold"),
    ("Cái bàn của ai?", "table"),
    ("Onde estava a criança e o vizinho?", "beach"),
]


@pytest.fixture
async def told(database: Database) -> tuple[Recall, dict[int, str]]:
    """A store with one conversation for each line."""
    stored = StoredHistory(database)
    names = {(await stored.session([text, "👍"]))[0]: name for name, text in SAID.items()}
    recall = Recall(database, SteadyClock())
    while await recall.tend():
        pass
    return recall, names


async def test_recall_question_finds_messages_in_the_same_language(
    told: tuple[Recall, dict[int, str]],
) -> None:
    recall, names = told
    missed = []
    for typed, wanted in ASKED:
        findings = await recall.recall(SearchQuery(scopes=frozenset({ANA}), text=typed))
        found = [names[one.session.id] for one in findings.sessions]
        if found[:1] != [wanted]:
            missed.append((typed, found))
    assert not missed, "\n".join(map(str, missed))


NAMED = [
    "Ben heeft de fiets gekocht in het dorp",
    "Anna heeft de fiets verkocht in de stad",
    "Hans har målat båten och huset i fredags",
    "Karin har målat båten och huset i fredags",
    "Mia ha comprato la bicicletta per la casa",
    "Anna ha venduto la bicicletta per la casa",
]


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("Wat heeft Ben met de fiets gedaan?", 0),
        ("What did Ben do with the fiets?", 0),
        ("Wat heeft Anna met de fiets gedaan?", 1),
        ("Vad har Hans gjort med båten?", 2),
        ("Hans båten huset målat", 2),
        ("Karin båten huset målat", 3),
        ("Che cosa ha fatto Mia con la bicicletta?", 4),
    ],
)
async def test_person_named_like_a_stop_word_is_found(
    database: Database, asked: str, wanted: int
) -> None:
    stored = StoredHistory(database)
    sessions = [
        (await stored.session([text, "ok"]))[0]
        for text in (*NAMED, "Dit is een verhaal over de tuin")
    ]
    recall = Recall(database, SteadyClock())
    while await recall.tend():
        pass
    findings = await recall.recall(SearchQuery(scopes=frozenset({ANA}), text=asked))
    assert findings.sessions[0].session.id == sessions[wanted]


async def test_sender_named_like_a_stop_word_is_found(database: Database) -> None:
    stored = StoredHistory(database)
    for sender in ("Anna", "Anna", "Ben", "Anna", "Anna"):
        await stored.session(
            ["ik heb de fiets verkocht voor 9 euro en dat was goed", "ok"], sender=sender
        )
    recall = Recall(database, SteadyClock())
    while await recall.tend():
        pass
    asked = search_query(
        scopes=frozenset({ANA}), text="Wat heeft Ben voor de fiets gekregen?", messages=1
    )
    assert (await recall.recall(asked)).messages[0].sender == "Ben"
