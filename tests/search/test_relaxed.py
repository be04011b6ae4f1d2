"""Recall with filters, without words, with slips of the pen, and what it says about all that."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.search import results
from core.search.recall import Recall
from core.search.rendering import to_markdown
from core.store.query import SearchQuery, SearchResults, TextKind
from core.store.sqlite.database import Database
from core.types import Account, Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.search_queries import search_query, with_fields
from tests.fixtures.stored_history import ANA, BEN, ROOM, START, StoredHistory

MINE = SearchQuery(scopes=frozenset({ANA}))
BEGUN = datetime.fromtimestamp(START, UTC)


@pytest.fixture
def stored(database: Database) -> StoredHistory:
    return StoredHistory(database)


@pytest.fixture
def clock() -> SteadyClock:
    """An hour after the first message."""
    return SteadyClock(BEGUN + timedelta(hours=1))


@pytest.fixture
def recall(database: Database, clock: SteadyClock) -> Recall:
    return Recall(database, clock, "Europe/Lisbon")


async def _ask(recall: Recall, text: str, **changes: object) -> SearchResults:
    return await recall.recall(with_fields(MINE, text=text, **changes))


def _messages(findings: SearchResults) -> list[int]:
    return sorted(hit.message_id for found in findings.sessions for hit in found.matches)


async def _chunked(recall: Recall) -> None:
    while await recall.tend():
        pass


async def test_typed_recall_filters_are_applied_before_the_result_limit(
    stored: StoredHistory, recall: Recall
) -> None:
    first, a, b = await stored.session(["ferry asked", "ferry answered"], title="Trip to Porto")
    _, c = await stored.session(
        ["ferry by Börje"], platform="discord", sender="Börje Diana", title="Work"
    )
    for n in range(50):
        await stored.session([f"ferry {n} ferry ferry"], platform="cron", sender="Zoe")
    for text, expected in (
        ("ferry role:assistant", [b]),
        ("ferry on:telegram", [a, b]),
        ("platform:discord ferry", [c]),
        ("ferry title:porto", [a, b]),
        ('title:"trip to" ferry from:ana', [a]),
        ("ferry from:borje", [c]),
        ("ferry from:diana", [c]),
        ("ferry from:an", [a]),
        (f"in:{first} ferry", [a, b]),
        ("ferry in:10000", []),
        ("What about the ferry? on:discord", [c]),
    ):
        findings = await _ask(recall, text)
        assert _messages(findings) == expected, text
        assert findings.query == text
    assert _messages(
        await _ask(recall, f"ferry before:{BEGUN + timedelta(seconds=120):%Y-%m-%dT%H:%M}")
    ) == [a]
    assert len(_messages(await _ask(recall, "ferry on:yesterday"))) == 0
    assert len((await _ask(recall, "ferry on:today", sessions=10)).sessions) == 10


async def test_query_of_only_filters_lists_the_newest_messages(
    stored: StoredHistory, recall: Recall
) -> None:
    first, a, b = await stored.session(["ferry asked", "ferry answered"], title="Trip")
    second, c, tool = await stored.session(
        ["train", ("tool", "timetable")], platform="discord", sender="Ben"
    )
    by_role = await _ask(recall, "role:assistant")
    assert (by_role.shape, _messages(by_role)) == ("discovery", [b])
    assert by_role.sessions[0].matches[0].snippet == "ferry answered"
    assert _messages(await _ask(recall, "role:tool")) == [tool]
    assert [
        found.session.id for found in (await _ask(recall, "role:user,assistant,tool")).sessions
    ] == [second, first]
    assert _messages(await _ask(recall, "from:ben")) == [c]
    assert _messages(await _ask(recall, "from:ana title:trip")) == [a]
    assert _messages(await _ask(recall, "from:ana on:discord")) == []
    listed = await _ask(recall, "on:discord")
    assert (listed.shape, [found.session.id for found in listed.sessions]) == ("browse", [second])
    assert (await _ask(recall, f"in:{first}")).shape == "read"
    assert [found.session.id for found in (await _ask(recall, "title:TRIP")).sessions] == [first]


async def test_query_of_excluded_words_only_finds_nothing(
    stored: StoredHistory, recall: Recall
) -> None:
    await stored.session(["the ferry and redis"])
    for text in ("-ferry", "NOT ferry", "-修改redis", '-"the train"'):
        findings = await _ask(recall, text)
        assert (findings.sessions, findings.note) == ((), str(results.NO_WORDS_NOTE)), text


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_recall_finds_other_spellings_of_numbers_and_names(
    stored: StoredHistory, recall: Recall, is_chunked: bool
) -> None:
    number, *_ = await stored.session(["call me at +351 912 345 678"])
    name, *_ = await stored.session(["getUserById fails with ABC-1234"])
    egg, *_ = await stored.session(["たまごを買った"])
    sight, *_ = await stored.session(["左眼四百五十度"])
    price, *_ = await stored.session(["房租3000块"])
    commit, *_ = await stored.session(["since f861fbd0c3dd24916e4ec7cf77d3db5294cc9fd4"])
    for _ in range(20 * is_chunked):
        await stored.session(["about something else", "and nothing"])
    if is_chunked:
        await _chunked(recall)
    for text, expected in (
        ("912345678", number), ("abc1234", name), ("ABC 1234", name), ("get user by id", name),
        ("タマゴ", egg), ("450度", sight), ("三千块", price), ("f861fbd*", commit),
    ):  # fmt: skip
        findings = await _ask(recall, text)
        assert [found.session.id for found in findings.sessions][:1] == [expected], text
    assert ">>>たまご<<<" in (await _ask(recall, "タマゴ")).sessions[0].matches[0].snippet


async def test_word_inside_a_compound_is_found_without_a_spelling_correction(
    stored: StoredHistory, recall: Recall
) -> None:
    mode, *_ = await stored.session(["因为StrictMode的问题"])
    await stored.session(["要比较Model的价格"])
    findings = await _ask(recall, "strict mode")
    assert findings.sessions[0].session.id == mode
    assert findings.note == str(results.SOME_WORDS_NOTE)
    assert (
        (await _ask(recall, "modle")).note
        == f"{results.SOME_WORDS_NOTE} No message contains “modle”, so I also looked for “model”."
    )


async def test_recall_with_only_a_time_filter_lists_the_sessions_of_that_time(
    stored: StoredHistory, recall: Recall
) -> None:
    old = (await stored.session(["one"]))[0]
    await stored.execute("UPDATE messages SET created_at = :at", at=START - 40 * 86400)
    await stored.execute("UPDATE sessions SET started_at = :at", at=START - 40 * 86400)
    # The session goes on today: its lifetime spans last week, but nothing was said then.
    await stored.say(old, "two")
    assert [found.session.id for found in (await _ask(recall, "on:today")).sessions] == [old]
    assert (await _ask(recall, "during:last week")).sessions == ()
    assert [found.session.id for found in (await _ask(recall, "before:last week")).sessions] == [
        old
    ]
    await stored.session(["goes on"], parent_id=old)
    assert [found.session.id for found in (await _ask(recall, "before:last week")).sessions] == [
        old
    ]


async def test_me_and_you_in_a_query_filter_by_sender(
    stored: StoredHistory, recall: Recall
) -> None:
    _, a, b = await stored.session(["my ferry", "your ferry"])
    _, c, d = await stored.session(
        ["room ferry", "answer in the room, ferry"], scope=ROOM, platform="discord", sender="9"
    )
    e = await stored.say(2, "another's ferry", sender="8")
    everywhere = frozenset({ANA, ROOM})
    asked = replace(MINE, scopes=everywhere, asker=Account(platform="discord", user_id="9"))

    async def found(text: str, query: SearchQuery = asked) -> list[int]:
        return _messages(await recall.recall(replace(query, text=text)))

    assert await found("ferry from:me") == await found("from:me") == [a, c]
    assert await found("ferry from:you") == await found("from:you") == [b, d]
    assert await found("from:me", replace(asked, asker=None)) == [a]
    assert await found("from:me", replace(asked, asker=None, scopes=frozenset({ROOM}))) == []
    assert await found("from:me", replace(asked, scopes=frozenset({ROOM}))) == [c]
    linked = frozenset({ROOM, Scope.account("discord", "8")})
    assert await found("from:me", replace(asked, asker=None, scopes=linked)) == [e]


async def test_filter_does_not_reach_other_scopes(stored: StoredHistory, recall: Recall) -> None:
    session, *_ = await stored.session(["the Lisbon ferry", "answered"], title="Trip", sender="Ana")
    await _chunked(recall)
    for scopes in (frozenset({BEN}), frozenset({ROOM}), frozenset[Scope]()):
        for text in (
            "from:ana", "role:assistant", "role:user,tool", "title:trip", "on:telegram", f"in:{session}", "before:2030",
            "ferry from:ana", "Lisbno", "What about Lisbno?", f"in:{session} ferry", "from:me", "lisbon title:trip",
        ):  # fmt: skip
            findings = await recall.recall(
                search_query(
                    scopes=scopes,
                    text=text,
                    messages=9,
                    asker=Account(platform="telegram", user_id="1"),
                )
            )
            assert not findings.sessions, text
            assert not findings.messages, text
            assert "Lisbon" not in (findings.note or "").replace("lisbon", "")
            assert "there is something" not in (findings.note or "")


@pytest.mark.parametrize("is_tended", [True, False])
async def test_misspelt_search_word_finds_messages_with_the_correct_spelling(
    stored: StoredHistory, recall: Recall, is_tended: bool
) -> None:
    _, a = await stored.session(["Ana met Bartholomew in Lisbon, near the restaurant"])
    await stored.session(["Lisbet is a secret"], scope=BEN)
    for n in range(20):
        await stored.session([f"weather {n}", f"report {n}"])
    if is_tended:
        await _chunked(recall)
    for typed, wrong, known in (
        ("Lisbno", "Lisbno", "Lisbon"),
        ("who met Bartholemew?", "Bartholemew", "Bartholomew"),
        ("lisbon resturant", "resturant", "restaurant"),
    ):
        findings = await _ask(recall, typed)
        assert _messages(findings)[0] == a
        assert f"No message contains “{wrong}”, so I also looked for “{known.lower()}”." in (
            findings.note or ""
        )
        assert f">>>{known}<<<" in findings.sessions[0].matches[0].snippet
    private = await _ask(recall, "Lisbeth")
    assert (private.sessions, private.note) == ((), "I looked for “lisbeth”.")
    assert (await _ask(recall, "xyz")).sessions == ()


async def test_recall_without_a_result_lists_the_searches_it_tried(
    stored: StoredHistory, recall: Recall
) -> None:
    await stored.session(["the ferry"])
    for text, note in (
        ("absent", "I looked for “absent”."),
        ("absent unicorn", "I looked for the text as typed and for any of its words (absent, unicorn)."),
        ("What about the absent unicorn?", "I looked for any of its words (absent, unicorn)."),
        ("absent on:discord", "I looked for “absent”, within your filters."),
        ("ferry on:discord",
         "I looked for “ferry”, within your filters. Without the filters, there are results."),
        ("from:ben", "I looked through the latest conversations, within your filters. "
         "Without the filters, there are results."),
        ("role:banana x", "“banana” isn't a role (user, assistant or tool), so I searched for “role:banana” as words. "
         "I looked for the text as typed and for any of its words (role, banana, x)."),
    ):  # fmt: skip
        findings = await _ask(recall, text)
        assert (findings.sessions, findings.note) == ((), note)
        assert to_markdown(findings, UTC).startswith("Nothing found. ")
    assert (await recall.recall(SearchQuery(scopes=frozenset({BEN})))).note is None


async def test_plain_prose_is_searched_by_words_without_filters(
    stored: StoredHistory, recall: Recall
) -> None:
    _, a = await stored.session(["the ferry role assistant"])
    findings = await _ask(recall, "ferry role:assistant", kind=TextKind.PLAIN)
    assert (_messages(findings), findings.note) == ([a], None)


async def test_excluded_word_is_not_offered_by_a_relaxed_search(
    stored: StoredHistory, recall: Recall
) -> None:
    _, _car = await stored.session(["No car, just the bikes"])
    for typed in ("boat -car", "boat NOT car", 'boat -"just the bikes"'):
        findings = await _ask(recall, typed)
        assert findings.sessions == ()
        assert findings.note == "I looked for “boat”."


@pytest.mark.parametrize("typed", ["елка", "θαλασσα", "احمد", "da nang", "lodz", "दिल्ली कब जाएंगे?"])
async def test_recall_finds_words_typed_without_their_accents(
    stored: StoredHistory, recall: Recall, typed: str
) -> None:
    _, said = await stored.session(["Ёлка, θάλασσα, أحمد, Đà Nẵng, Łódź, हम दिल्ली कब जाएंगे"])
    findings = await _ask(recall, typed)
    assert [hit.message_id for found in findings.sessions for hit in found.matches] == [said]
    assert findings.note is None
    assert ">>>" in findings.sessions[0].matches[0].snippet


async def test_a_slip_in_a_very_long_text_is_harmless(
    stored: StoredHistory, recall: Recall
) -> None:
    _, a = await stored.session(["the ferry to Lisbon"])
    for text in ("lisbno " + "absenter " * 2_000, "lisbno? " + "z" * 20_000):
        assert _messages(await _ask(recall, text)) == [a]


@pytest.mark.parametrize(
    ("told", "question"),
    [
        ("The plumber is called Pilar Ochoa.", "What is the name of the plumber?"),
        ("The plumber's name is Pilar Ochoa.", "What is the plumber called?"),
    ],
)
async def test_recall_finds_a_name_in_any_phrasing_that_introduces_it(
    stored: StoredHistory, recall: Recall, told: str, question: str
) -> None:
    for number in range(12):
        await stored.session(
            [f"The plumber kept me busy for {number} hours again.", "I see.", "So be it."] * 3
        )
    _, *messages = await stored.session(
        ["Good morning.", "Hello.", told, "I see.", "Somebody asked about the plumber."]
    )
    await _chunked(recall)
    found = await _ask(recall, question, sessions=3)
    assert messages[2] in [hit.message_id for one in found.sessions for hit in one.matches]
