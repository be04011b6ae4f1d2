"""Recall over a real state.db: the shapes, the filters, the language, and that nobody sees what is
not his."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.search import ranking
from core.search.recall import Recall
from core.search.results import NO_WORDS_NOTE, SOME_WORDS_NOTE
from core.store.query import SearchQuery, SearchResults, TextKind
from core.store.search import chunks
from core.store.sqlite.database import Database
from core.types import Account, Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.search_queries import search_query, with_fields
from tests.fixtures.stored_history import ANA, BEN, ROOM, START, StoredHistory
from tests.fixtures.stores import open_store

MINE = SearchQuery(scopes=frozenset({ANA}))


@pytest.fixture
def stored(database: Database) -> StoredHistory:
    return StoredHistory(database)


@pytest.fixture
def recall(database: Database, clock: SteadyClock) -> Recall:
    return Recall(database, clock)


async def _ask(recall: Recall, text: str, **changes: object) -> SearchResults:
    return await recall.recall(with_fields(MINE, text=text, **changes))


def _account(sender: str) -> Account:
    return Account(platform="discord", user_id=sender)


def _messages(findings: SearchResults) -> list[int]:
    return [hit.message_id for found in findings.sessions for hit in found.matches]


async def test_only_keywords_that_are_not_found_as_typed_are_read_for_periods(
    stored: StoredHistory, recall: Recall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words for periods, and numpy for ranking by words, take long to load."""
    await stored.session(["The ferry leaves at nine."])
    read_texts: list[str] = []

    def find_periods(text: str, today: date) -> tuple[tuple[int, int], ...]:
        read_texts.append(text)
        return ()

    monkeypatch.setattr("core.search.recall.find_periods", find_periods)
    assert (await _ask(recall, "ferry")).sessions
    assert read_texts == []
    assert (await _ask(recall, "ferry yesterday")).sessions
    assert (await _ask(recall, "When does the ferry leave?")).sessions
    assert read_texts == ["ferry yesterday", "When does the ferry leave?"]


@pytest.mark.sqlite
async def test_keywords_found_as_typed_need_no_numpy(stored: StoredHistory, tmp_path: Path) -> None:
    await stored.session(["The ferry leaves at nine."])
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from core.search.recall import Recall\n"
        "from core.store.query import SearchQuery\n"
        "from core.store.sqlite.database import Database\n"
        "from core.types import Scope\n"
        "from gateway.supervisor import WallClock\n"
        "async def search():\n"
        "    async with Database.open(Path(sys.argv[1])) as database:\n"
        "        query = SearchQuery(scopes=frozenset({Scope(key=sys.argv[2])}), text='ferry')\n"
        "        return await Recall(database, WallClock()).recall(query)\n"
        "print(len(asyncio.run(search()).sessions), 'numpy' in sys.modules)"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script, str(tmp_path / "state.db"), ANA.key),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    assert output == b"1 False\n"


async def test_discovery_shows_match_window_and_bookends(
    stored: StoredHistory, recall: Recall
) -> None:
    lines = [f"line {n}" for n in range(30)]
    lines[15] = "We take the ferry from Porto at noon"
    session, *ids = await stored.session(lines, title="Travel", external_id="s-7")
    findings = await _ask(recall, "ferry")
    (found,) = findings.sessions
    assert findings.shape == "discovery"
    assert findings.note is None
    assert findings.took_ms > 0
    assert (found.session.id, found.session.title, found.session.external_id) == (
        session,
        "Travel",
        "s-7",
    )
    assert [hit.message_id for hit in found.matches] == [ids[15]]
    assert found.matches[0].snippet == "We take the >>>ferry<<< from Porto at noon"
    assert found.matches[0].score == found.score > 0
    assert [item.message_id for item in found.window] == ids[10:21]
    assert [item.message_id for item in found.window if item.is_anchor] == [ids[15]]
    assert [item.text for item in found.bookend_start] == lines[:3]
    assert [item.text for item in found.bookend_end] == lines[-3:]
    assert (found.messages_before, found.messages_after) == (10, 9)
    assert found.window[0].sender == "Ana"
    assert found.window[1].sender is None


@pytest.mark.parametrize("asked", ["{}", "{} lately", "What did we say about {} lately?"])
@pytest.mark.parametrize(
    ("signed", "word"), [("#holiday", "holiday"), ("C++", "C"), ("C#", "C"), (".NET", "net")]
)
async def test_recall_distinguishes_words_by_an_attached_sign_such_as_c_sharp(
    stored: StoredHistory, recall: Recall, database: Database, asked: str, signed: str, word: str
) -> None:
    wanted, _ = await stored.session(
        [f"They asked lately whether {signed} is what everybody in the other office uses"]
    )
    for _ in range(20):
        await stored.session([f"{word} lately, {word} {word}"])
    assert (await _ask(recall, asked.format(signed))).sessions[0].session.id == wanted
    while await database.write(chunks.index_pending):
        pass
    found = await _ask(recall, asked.format(signed))
    assert found.sessions[0].session.id == wanted
    assert len(found.sessions) == 3
    assert wanted not in {
        one.session.id for one in (await _ask(recall, f"lately -{signed}", sessions=50)).sessions
    }
    assert len((await _ask(recall, f"lately -{signed}", sessions=50)).sessions) == 10


@pytest.mark.parametrize("asked", ["C", "c", " C "])
async def test_search_for_the_letter_c_ranks_plain_c_above_c_plus_plus_and_c_sharp(
    stored: StoredHistory, recall: Recall, asked: str
) -> None:
    with_signs = [
        (await stored.session([text]))[0]
        for text in ("C++ or C#", "they like C# here", "C++, as ever")
    ]
    alone, _ = await stored.session(
        ["The firmware of the old ferry is still written in C, as everything of that time"]
    )
    found = [one.session.id for one in (await _ask(recall, asked, sessions=10)).sessions]
    assert found[0] == alone
    assert sorted(found[1:]) == with_signs


async def test_the_best_sessions_come_first_and_are_limited(
    stored: StoredHistory, recall: Recall
) -> None:
    for n in range(14):
        await stored.session([f"ferry {'and other words ' * n}"])
    assert [found.session.id for found in (await _ask(recall, "ferry")).sessions] == [1, 2, 3]
    assert len((await _ask(recall, "ferry", sessions=10**9)).sessions) == 10
    assert len((await _ask(recall, "ferry", sessions=-5)).sessions) == 1
    flat = (await _ask(recall, "ferry", sessions=1, messages=12)).messages
    assert len(flat) == 12
    assert [hit.score for hit in flat] == sorted((hit.score for hit in flat), reverse=True)


async def test_session_and_its_continuation_are_one_recall_result(
    stored: StoredHistory, recall: Recall
) -> None:
    parent, first = await stored.session(["the ferry at noon"])
    child, second = await stored.session(["ferry"], parent_id=parent)
    other, third = await stored.session(["a ferry elsewhere, much longer than the others are"])
    findings = await _ask(recall, "ferry")
    assert [found.session.id for found in findings.sessions] == [child, other]
    assert _messages(findings) == [second, first, third]


async def test_window_around_a_message_is_clamped_to_its_limits(
    stored: StoredHistory, recall: Recall
) -> None:
    session, *ids = await stored.session([f"line {n}" for n in range(5)])
    for window, expected in ((-3, 1), (0, 1), (1, 3), (10**9, 5)):
        findings = await recall.recall(
            with_fields(MINE, session_id=session, around=ids[2], window=window)
        )
        assert len(findings.sessions[0].window) == expected


async def test_scroll_shows_a_window_and_counts_the_messages_around_it(
    stored: StoredHistory, recall: Recall
) -> None:
    session, *ids = await stored.session([f"line {n}" for n in range(20)])
    findings = await recall.recall(with_fields(MINE, session_id=session, around=ids[8], window=2))
    (found,) = findings.sessions
    assert findings.shape == "scroll"
    assert [item.message_id for item in found.window] == ids[6:11]
    assert (found.messages_before, found.messages_after, found.matches) == (6, 9, ())
    assert (await recall.recall(replace(MINE, around=ids[8]))).sessions[0].session.id == session
    assert (
        await recall.recall(with_fields(MINE, session_id=session, around=10**30))
    ).sessions == ()


async def test_recall_around_a_message_includes_continued_sessions_of_its_lineage(
    stored: StoredHistory, recall: Recall
) -> None:
    parent, first = await stored.session(["the ferry"])
    child, _second = await stored.session(["later"], parent_id=parent)
    findings = await recall.recall(with_fields(MINE, session_id=child, around=first))
    assert [found.session.id for found in findings.sessions] == [parent]


async def test_reading_a_long_session_shows_its_beginning_and_end(
    stored: StoredHistory, recall: Recall
) -> None:
    session, *ids = await stored.session([f"line {n}" for n in range(50)])
    findings = await recall.recall(with_fields(MINE, session_id=session))
    (found,) = findings.sessions
    assert findings.shape == "read"
    assert [item.message_id for item in found.window] == ids[:20] + ids[-10:]
    assert (found.messages_before, found.messages_after) == (0, 20)
    short, *few = await stored.session(["a", "b"])
    assert [
        item.message_id
        for item in (await recall.recall(with_fields(MINE, session_id=short))).sessions[0].window
    ] == few


async def test_recall_without_words_lists_sessions_newest_first_with_previews(
    stored: StoredHistory, recall: Recall
) -> None:
    first = (await stored.session(["How do I get\nto Porto?", "By ferry."], title="Travel"))[0]
    second = (await stored.session(["What about the train?"]))[0]
    await stored.session([])
    await stored.session([("tool", "only a tool")])
    findings = await recall.recall(with_fields(MINE, sessions=10))
    assert findings.shape == "browse"
    assert [found.session.id for found in findings.sessions] == [second, first]
    assert [found.preview for found in findings.sessions] == [
        "What about the train?",
        "How do I get to Porto?",
    ]
    assert len((await recall.recall(with_fields(MINE, sessions=1))).sessions) == 1
    await stored.say(first, "Thanks")
    assert (await recall.recall(with_fields(MINE, sessions=1))).sessions[0].session.id == first


async def test_browse_shows_the_last_of_a_lineage(stored: StoredHistory, recall: Recall) -> None:
    parent = (await stored.session(["one"]))[0]
    child = (await stored.session(["two"], parent_id=parent))[0]
    assert [found.session.id for found in (await recall.recall(MINE)).sessions] == [child]


async def test_recall_filters_are_applied_before_the_result_limit(
    stored: StoredHistory, recall: Recall
) -> None:
    _early, a = await stored.session(
        ["ferry one"], platform="telegram", title="\uff34ravel plans", sender="Ana"
    )
    late, b, c, d = await stored.session(
        ["ferry two", "ferry three", ("tool", "ferry four")],
        platform="discord",
        title="Work",
        sender="Börje",
    )

    async def ids(**changes: object) -> list[int]:
        return sorted(_messages(await _ask(recall, "ferry", **changes)))

    assert await ids() == [a, b, c]
    assert await ids(roles=("tool",)) == [d]
    assert await ids(roles=("user", "assistant", "tool"), platforms=("discord",)) == [b, c, d]
    assert await ids(platforms=("telegram",)) == [a]
    assert await ids(title="travel") == [a]
    assert await ids(sender="BÖRJE") == [b]
    assert await ids(session_id=late) == [b, c]
    middle = datetime.fromtimestamp(START, UTC) + timedelta(seconds=90)
    assert await ids(before=middle) == [a]
    assert await ids(after=middle) == [b, c]
    assert (
        await ids(session_id=10**40)
        == await ids(title="\ud800")
        == await ids(sender="nobody")
        == []
    )
    for n in range(60):
        await stored.session([f"ferry {n}"], platform="cron")
    assert await ids(platforms=("discord",), sessions=1) == [b, c]


async def test_words_are_all_required_and_operators_mean_what_they_say(
    stored: StoredHistory, recall: Recall
) -> None:
    _, both = await stored.session(["the ferry to Porto"])
    _, one = await stored.session(["the train to Porto"])
    _, two = await stored.session(["Lisbon by ferries"])

    async def ids(text: str) -> list[int]:
        findings = await _ask(recall, text)
        assert findings.note is None
        return sorted(_messages(findings))

    assert await ids("ferry porto") == [both]
    assert await ids("ferry AND porto") == [both]
    assert await ids("train OR lisbon") == [one, two]
    assert await ids("porto -ferry") == await ids("porto NOT ferry") == [one]
    assert await ids('"to porto"') == [both, one]
    assert await ids("ferr*") == [both, two]
    assert await ids("PÓRTO -train") == [both]


async def test_query_not_found_as_typed_is_searched_by_any_of_its_words(
    stored: StoredHistory, recall: Recall
) -> None:
    _, best = await stored.session(["We decided to take the ferry"])
    _, _other = await stored.session(["The train was late"])
    for typed, note in (
        ("What about the ferry or the bus?", None),
        ("ferry bus unicorn", None),
        ("ferry bus", str(SOME_WORDS_NOTE)),
    ):
        findings = await _ask(recall, typed)
        assert _messages(findings) == [best]
        assert findings.note == note
    assert findings.sessions[0].matches[0].snippet == "We decided to take the >>>ferry<<<"
    for text in ('"', "*", "%", "+++", "AND"):
        findings = await _ask(recall, text)
        assert (findings.sessions, findings.note) == ((), str(NO_WORDS_NOTE))
    assert (await _ask(recall, "absent")).sessions == ()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("don't", "I don't know"),
        ("c++", "written in C++ and Rust"),
        ("a-b", "the a-b test"),
        ("100%", "it is 100% sure"),
        ("foo:bar", "set foo:bar there"),
        ("/etc/hosts", "edit /etc/hosts first"),
        ("#ferry", "see #ferry"),
        ("👍", "well done 👍🏽!"),
        ("party🎉", "a party🎉 tonight"),
        ("résumé", "my resume is here"),
        ("北", "去北京"),
        ("京", "去北京"),
        ("北京", "去北京吧"),
        ("服务端", "修改youer服务端"),
        ("youer", "修改youer服务端"),
        ("修改youer服务端", "修改youer服务端"),
        ("Redis缓存", "把缓存放进 redis"),
        ("ﾃｽﾄ", "テストです"),
        ("회의", "내일 회의가 있다"),
        ("ทำงาน", "ที่ทำงานของฉัน"),
        ("कोड", "यह कोड है"),
        ("كتاب", "هذا كِتَاب"),
        ("ПРИВЕТ", "привет, мир"),
        ("core/search/recall.py", "look at core/search/recall.py, line 3"),
        ("recall.py", "look at core/search/recall.py, line 3"),
        ("C:\\temp", "put it into C:\\temp\\new"),
        ("C:\\temp\\new", "put it into C:\\temp\\new"),
        ("https://x.org/a?b=c", "see https://x.org/a?b=c&d=e for more"),
        ("x.org", "see https://x.org/a?b=c&d=e for more"),
        ("#holiday", "the best #holiday ever"),
        ("v2.3.1", "update to v2.3.1 now"),
        ("2.3.1", "version 2.3.1 is out"),
        ("snake_case_name", "call snake_case_name(x) twice"),
        ("snake_case_name(x)", "call snake_case_name(x) twice"),
        ("self.assertEqual(a, b)", "then self.assertEqual(a, b) fails"),
        ("+351 912 345 678", "her number is +351 912 345 678"),
        ("+351912345678", "her number is +351912345678"),
        ("€1,299.50", "it costs €1,299.50 in all"),
        ("ana@example.org", "write to ana@example.org"),
        ("@ana_b", "ask @ana_b about it"),
        ("192.168.0.1", "the router is 192.168.0.1"),
        ("3f2b9c1e-77aa", "commit 3f2b9c1e-77aa-4f broke it"),
        ("git push --force", "never git push --force"),
        ("--verbose", "run it with --verbose"),
        ("12:30", "the train at 12:30"),
        ("2026-05-03", "on 2026-05-03 we go"),
        ("$HOME/.config", "it is in $HOME/.config"),
        ("<div class=x>", "the <div class=x> is wrong"),
        ("x == y", "where x == y holds"),
        ("🛶", "we rowed 🛶 all day"),
        ("⏰", "set an ⏰ please"),
        ("▶️", "press ▶️ there"),
        ("❤️", "with ❤️"),
        ("👨‍👩‍👧", "the 👨‍👩‍👧 came"),
        ("🇵🇹", "to 🇵🇹 by train"),
        ("1️⃣", "first 1️⃣ then two"),
        ("thanks", "thanks🥰"),
        ("great", "well👍🏽great"),
        ("100", "it costs 100₽"),
        ("100₽", "it costs 100₽"),
        ("ana", "ask \u2068Ana\u2069 about it"),
    ],
)
async def test_message_is_found_by_other_spellings_of_its_words(
    stored: StoredHistory, recall: Recall, typed: str, said: str
) -> None:
    await stored.session(["something else entirely"])
    _, message = await stored.session([said])
    findings = await _ask(recall, typed)
    assert _messages(findings) == [message]
    assert findings.note is None
    assert ">>>" in findings.sessions[0].matches[0].snippet


async def test_search_operators_combine_words_of_latin_and_chinese_scripts(
    stored: StoredHistory, recall: Recall
) -> None:
    _, both = await stored.session(["redis 缓存 is full"])
    _, one = await stored.session(["redis is full"])
    _, two = await stored.session(["数据库备份 is done"])
    assert _messages(await _ask(recall, "redis -缓存")) == [one]
    assert _messages(await _ask(recall, 'redis -"redis 缓存"')) == [one]
    assert sorted(_messages(await _ask(recall, "缓存 OR 数据库"))) == [both, two]
    assert _messages(await _ask(recall, "redis AND 缓存 AND full")) == [both]
    assert _messages(await _ask(recall, "redis 缓存 full")) == [both]
    loose = await _ask(recall, "缓存的数据库 redis")
    assert loose.note == str(SOME_WORDS_NOTE)
    assert sorted(_messages(loose)) == [both, one, two]


async def test_recall_leaves_out_messages_already_in_the_prompt(
    stored: StoredHistory, recall: Recall
) -> None:
    session, *ids = await stored.session(["ferry one", "ferry two", "ferry three"])
    hidden = ((session, ids[1], 2**63 - 1),)
    findings = await _ask(recall, "ferry", hidden=hidden, messages=9)
    assert _messages(findings) == [ids[0]] == [hit.message_id for hit in findings.messages]
    (found,) = findings.sessions
    assert [
        item.message_id for item in (*found.window, *found.bookend_start, *found.bookend_end)
    ] == [ids[0]] * 3
    assert (found.messages_before, found.messages_after) == (0, 0)
    everything = ((session, 0, 2**63 - 1),)
    assert (await _ask(recall, "ferry", hidden=everything)).sessions == ()
    assert (await recall.recall(replace(MINE, hidden=everything))).sessions == ()
    assert len((await recall.recall(replace(MINE, hidden=hidden))).sessions) == 1


async def test_recall_of_another_scopes_messages_is_answered_like_missing_ones(
    stored: StoredHistory, recall: Recall
) -> None:
    session, *ids = await stored.session(
        ["my ferry 数据库 缓存", "secret"], scope=ANA, title="ferry"
    )
    await stored.session(["room ferry"], scope=ROOM)
    for scopes in (frozenset({BEN}), frozenset({ROOM}), frozenset[Scope]()):
        asked = [
            search_query(scopes=scopes, text="my ferry", messages=50, sessions=10),
            search_query(scopes=scopes, text="数据库", messages=50),
            search_query(scopes=scopes, text="缓存", messages=50),
            search_query(scopes=scopes, text="secret OR 数据库", messages=50),
            search_query(scopes=scopes, text="my secret question about something", messages=50),
            search_query(scopes=scopes, text="ferry", session_id=session),
            search_query(scopes=scopes, session_id=session),
            search_query(scopes=scopes, session_id=session, around=ids[0]),
            SearchQuery(scopes=scopes, around=ids[0]),
            SearchQuery(scopes=scopes),
        ]
        for query in asked:
            findings = await recall.recall(query)
            assert session not in [found.session.id for found in findings.sessions]
            assert not set(ids) & {hit.message_id for hit in findings.messages}
            shown = [item for found in findings.sessions for item in found.window]
            assert not set(ids) & {item.message_id for item in shown}
        absent = await recall.recall(search_query(scopes=scopes, session_id=session, around=10**6))
        present = await recall.recall(
            search_query(scopes=scopes, session_id=session, around=ids[0])
        )
        assert replace(absent, took_ms=0) == replace(present, took_ms=0)


async def test_recall_with_several_scopes_searches_all_of_them_together(
    stored: StoredHistory, recall: Recall
) -> None:
    mine = (await stored.session(["ferry"], scope=ANA))[0]
    room = (await stored.session(["ferry boat"], scope=ROOM))[0]
    await stored.session(["ferry"], scope=BEN)
    query = SearchQuery(scopes=frozenset({ANA, ROOM}), text="ferry")
    assert {found.session.id for found in (await recall.recall(query)).sessions} == {mine, room}
    browsed = await recall.recall(search_query(scopes=frozenset({ANA, ROOM}), sessions=10))
    assert [found.session.id for found in browsed.sessions] == [room, mine]


async def test_question_about_what_i_said_ranks_the_persons_own_messages_first(
    stored: StoredHistory, recall: Recall
) -> None:
    echoed = "the boiler needs a new valve, so have the boiler valve replaced"
    _, own, answer = await stored.session(["the boiler needs a new valve", echoed])
    query = search_query(
        scopes=frozenset({ANA}), messages=5, text="what was wrong with the boiler valve?"
    )
    asked = [hit.message_id for hit in (await recall.recall(query)).messages]
    told = [
        hit.message_id
        for hit in (
            await recall.recall(replace(query, text=f"what did I say, {query.text}"))
        ).messages
    ]
    assert (asked, told) == ([answer, own], [own, answer])


async def test_my_in_a_group_question_prefers_messages_of_the_person_who_asks(
    stored: StoredHistory, recall: Recall
) -> None:
    session, *_ = await stored.session(scope=ROOM, platform="discord")
    theirs = await stored.say(session, "the ferry to Porto, the ferry", sender="2")
    await stored.say(session, "nothing", role="assistant")
    await stored.say(session, "nothing", role="assistant")
    own = await stored.say(session, "a ferry to Porto for the whole family", sender="1")
    query = search_query(scopes=frozenset({ROOM}), messages=2, text="which ferry to Porto is mine?")
    for asker, first in ((_account("1"), own), (_account("2"), theirs), (None, theirs)):
        assert (await recall.recall(replace(query, asker=asker))).messages[0].message_id == first


async def test_recall_never_shows_commands_and_quotes(
    stored: StoredHistory, recall: Recall
) -> None:
    session, first = await stored.session(["ferry"])
    hidden = [
        await stored.say(session, f"ferry {kind}", kind=kind)
        for kind in ("command", "quote", "notice")
    ]
    findings = await _ask(recall, "ferry", messages=50)
    assert _messages(findings) == [first]
    assert [item.message_id for item in findings.sessions[0].window] == [first]
    for message in hidden:
        assert (
            await recall.recall(with_fields(MINE, session_id=session, around=message))
        ).sessions == ()


async def test_recall_by_role_can_be_centred_on_a_tool_message(
    stored: StoredHistory, recall: Recall
) -> None:
    _session, first, tool, last = await stored.session(
        ["ask", ("tool", "ferry timetable"), ("assistant", "done")]
    )
    (found,) = (await _ask(recall, "timetable", roles=("tool",))).sessions
    assert [(item.message_id, item.is_anchor) for item in found.window] == [
        (first, False),
        (tool, True),
        (last, False),
    ]


TYPED = st.one_of(
    st.text(max_size=40),
    st.lists(
        st.sampled_from(
            [
                "ferry",
                "OR",
                "NOT",
                "-",
                '"',
                "*",
                "数据库",
                "缓",
                "👍",
                "a-b",
                "\ud800",
                "\0",
                "\ue0001",
            ]
        ),
        max_size=8,
    ).map(" ".join),
)


@pytest.mark.slow
async def test_recall_of_any_typed_text_never_raises(tmp_path: Path, clock: SteadyClock) -> None:
    asked: list[SearchQuery] = []

    @settings(suppress_health_check=list(HealthCheck))
    @given(
        TYPED,
        st.integers(),
        st.integers(),
        st.one_of(st.none(), st.integers()),
        st.one_of(st.none(), st.integers()),
    )
    def collect(
        text: str, limit: int, window: int, session: int | None, around: int | None
    ) -> None:
        asked.append(
            with_fields(
                MINE,
                text=text,
                sessions=limit,
                window=window,
                session_id=session,
                around=around,
                messages=limit,
            )
        )

    collect()
    async with open_store(tmp_path / "state.db") as database:
        stored = StoredHistory(database)
        await stored.session(["the ferry 数据库 👍", "a-b"])
        await stored.session(["other ferry"], scope=BEN)
        recall = Recall(database, clock)
        for query in asked:
            findings = await recall.recall(query)
            assert findings.query == query.text
            assert all(found.session.scope == ANA for found in findings.sessions)
        assert await recall.verify() == []
        assert (
            await database.read(
                lambda c: c.execute("SELECT COUNT(*) FROM state_meta").fetchone()[0]
            )
        ) >= 1


async def test_question_of_a_megabyte_is_answered(stored: StoredHistory, recall: Recall) -> None:
    await stored.session(["the ferry 数据库"])
    for text in ('"' * 1_000_000, "ferry " * 200_000, "数" * 1_000_000, "((((" * 250_000 + "ferry"):
        # Work that grows faster than the text would run into the time limit of the test.
        findings = await _ask(recall, text)
        assert findings.took_ms > 0


async def test_a_delegated_session_is_found_only_where_it_is_asked_for(
    stored: StoredHistory, recall: Recall, database: Database
) -> None:
    parent, *_ = await stored.session(["Compare the ferries", "The blue one is cheaper"])
    child, task, *_ = await stored.session(
        ["Compare the ferries", "Both sail"], parent_id=parent, is_delegated=True
    )
    for _ in ("before the chunks are made", "from them"):
        for text in ("ferries", "which ferries sail", "role:user", "", f"in:{parent} ferries"):
            assert [one.session.id for one in (await _ask(recall, text)).sessions] == [parent], text
        for text in ("ferries", "which ferries did we compare", "role:user"):
            assert _messages(await _ask(recall, f"in:{child} {text}"))[0] == task, text
        assert (await _ask(recall, f"in:{child}")).sessions[0].session.is_delegated
        turn = await _ask(recall, "Which ferries sail, then?", kind=TextKind.TURN)
        assert {one.session.id for one in turn.sessions} <= {parent}
        while await database.write(chunks.index_pending):
            pass


# PostgreSQL is never asked in the thread of the event loop.
@pytest.mark.sqlite
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("ferry at ten " * 10_000, id="very long"),
        # Words with accents that were never seen before take ten times as long as others.
        pytest.param("ferry at ten" + "".join(f" é{n:x}ñ" for n in range(1_500)), id="new words"),
    ],
)
async def test_turn_with_much_text_to_read_is_searched_off_the_event_loop(
    recall: Recall, stored: StoredHistory, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Finding the words of long messages takes long, and nothing can interrupt it."""
    searching_threads: list[str] = []
    rank = ranking.rank

    def watched_rank(*arguments: Any) -> Any:
        searching_threads.append(threading.current_thread().name)
        return rank(*arguments)

    monkeypatch.setattr(ranking, "rank", watched_rank)
    await stored.session(["The ferry leaves at nine", "Thank you"])
    await _ask(recall, "When does the ferry leave?", kind=TextKind.TURN)
    long_session, *_ = await stored.session([text, "Thank you"])
    results = await _ask(recall, "Which ferry is at ten?", kind=TextKind.TURN)
    assert results.sessions[0].session.id == long_session
    assert searching_threads[0] == threading.main_thread().name
    assert searching_threads[1:] != []
    assert threading.main_thread().name not in searching_threads[1:]


async def test_a_search_for_any_word_leaves_out_what_the_query_excludes(
    stored: StoredHistory, recall: Recall
) -> None:
    await stored.session(["python and java compared"])
    session, *_ = await stored.session(["a python book about snakes"])
    for query in ("python venom NOT java", "python venom -java"):
        found = await _ask(recall, query)
        assert [result.session.id for result in found.sessions] == [session]
    nothing = await _ask(recall, "java venom NOT python")
    assert nothing.sessions == ()
