"""History in and out: taken once however often it comes, bad lines refused by number, nothing seen
out of scope."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.search.recall import Recall
from core.store import archive as archive_module
from core.store.archive import Archive, ImportReport
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.transfer.formats import format_line, parse_line, read_lines
from core.types import LOCAL_SCOPE, Address, Message, Scope, Sender, Session
from tests.fixtures.clock import SteadyClock
from tests.fixtures.search_queries import search_query

HOME_SCOPES = frozenset({LOCAL_SCOPE})


def line(text: str = "hello", **values: Any) -> str:
    fields = {"session": "s1", "role": "user", "text": text, "at": "2026-05-03T10:00:00"} | values
    return json.dumps({key: value for key, value in fields.items() if value is not None})


async def take(database: Database, lines: Iterable[str | bytes]) -> ImportReport:
    return await Archive(database).import_records(read_lines(lines), lambda _: None)


async def exported(
    database: Database, scopes: frozenset[Scope] = HOME_SCOPES
) -> list[dict[str, Any]]:
    return [json.loads(format_line(one)) async for one in Archive(database).export(scopes)]


async def sessions(database: Database) -> list[dict[str, Any]]:
    def work(connection: sqlite3.Connection) -> list[dict[str, Any]]:
        return [dict(row) for row in connection.execute("SELECT * FROM sessions ORDER BY id")]

    return await database.read(work)


async def test_imported_session_is_ended_and_has_a_title(database: Database) -> None:
    report = await take(
        database,
        [
            line("Where does Ana live?  " + "long " * 30, id="m1", sender="Tom"),
            line("In Porto.", id="m2", role="assistant", at="2026-05-03T12:30:00+02:00"),
        ],
    )
    assert report == ImportReport(line_count=2, imported_count=2, session_ids={1})
    (session,) = await sessions(database)
    assert session["external_id"] == "s1"
    assert session["end_reason"] == "import"
    assert session["title"].startswith("Where does Ana live? long")
    assert len(session["title"]) < 70
    assert session["message_count"] == 2
    assert datetime.fromtimestamp(session["ended_at"], UTC) == datetime(
        2026, 5, 3, 10, 30, tzinfo=UTC
    )
    first, second = await exported(database)
    assert (first["sender"], first["id"], first["platform"]) == ("Tom", "m1", "terminal")
    assert "chat" not in first, "the session's name stands for it"
    assert first["scope"] == "account:terminal:local"
    assert second["at"] == "2026-05-03T10:30:00+00:00"


async def test_imported_message_is_in_the_text_index(database: Database) -> None:
    await take(database, [line("the ferry leaves at noon")])

    def work(connection: sqlite3.Connection) -> int:
        found = connection.execute(
            "SELECT COUNT(*) FROM messages_fts WHERE messages_fts MATCH 'ferry'"
        )
        return int(found.fetchone()[0])

    assert await database.read(work) == 1


async def test_imported_line_with_an_id_is_a_duplicate_if_session_and_id_match(
    database: Database,
) -> None:
    lines = [line("one", id="1"), line("two", id="2"), line("other session", session="s2", id="1")]
    assert (await take(database, lines)).imported_count == 3
    again = await take(database, [*lines, line("three", id="3")])
    assert (again.imported_count, again.known_count, len(again.session_ids)) == (1, 3, 2)


async def test_equal_ids_of_two_sessions_in_one_chat_are_two_messages(database: Database) -> None:
    lines = [
        line("one", session=name, id="1", platform="telegram", chat="42") for name in ("s1", "s2")
    ]
    assert (await take(database, lines)).imported_count == 2
    other_scope = line("one", session="s1", id="1", scope="account:telegram:42")
    assert (await take(database, [other_scope])).imported_count == 1


async def test_imported_line_without_an_id_is_a_duplicate_if_time_role_sender_and_text_match(
    database: Database,
) -> None:
    assert (await take(database, [line("ok"), line("ok", sender="Ana")])).imported_count == 2
    again = await take(database, [line("ok"), line("ok", sender="Ana"), line("ok")])
    assert (again.imported_count, again.known_count) == (0, 3)
    assert (
        await take(database, [line("ok", role="assistant"), line("ok", at="2026-05-03T10:00:01")])
    ).imported_count == 2
    assert len(await exported(database)) == 4


async def test_import_accepts_lines_of_several_sessions_in_any_order_and_in_batches(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_module, "BATCH_RECORDS", 3)
    lines = [line(f"{number}", session=f"s{number % 2}") for number in range(20)]
    assert (await take(database, lines)).imported_count == 20
    again = await take(database, lines * 2)
    assert (again.imported_count, again.known_count) == (0, 40)
    assert [session["message_count"] for session in await sessions(database)] == [10, 10]


async def test_imported_messages_are_ordered_by_their_times(database: Database) -> None:
    await take(
        database,
        [line("second", at="2026-05-03T11:00:00"), line("first", at="2026-05-03T10:00:00Z")],
    )
    assert [one["text"] for one in await exported(database)] == ["first", "second"]


async def test_older_history_that_comes_later_is_read_first(
    database: Database, clock: SteadyClock
) -> None:
    recall = Recall(database, clock)
    newer = [line(f"newer ferry {number}", id=f"n{number}") for number in range(40)]
    older = [
        line(f"older boat {number}", id=f"o{number}", at="2026-05-02T10:00:00")
        for number in range(40)
    ]
    await take(database, newer)
    while await recall.tend():
        pass
    await take(database, older)
    (session,) = await sessions(database)
    texts = [
        one.text
        for one in await Conversations(database, clock).load_transcript(session["id"], HOME_SCOPES)
    ]
    assert texts == [f"older boat {number}" for number in range(40)] + [
        f"newer ferry {number}" for number in range(40)
    ]
    while await recall.tend():
        pass
    assert await recall.verify() == []
    (found,) = (
        await recall.recall(search_query(text='"boat 7"', scopes=HOME_SCOPES, window=1))
    ).sessions
    assert [item.text for item in found.window] == ["older boat 6", "older boat 7", "older boat 8"]


async def test_message_imported_late_is_placed_after_messages_already_sent_to_a_model(
    database: Database, clock: SteadyClock
) -> None:
    await take(database, [line("newer", id="1")])
    (row,) = await sessions(database)
    conversations = Conversations(database, clock)
    session = await conversations.reopen(row["id"], clock.now())
    said = Message(role="user", text="and now", session_id=session.id, created_at=clock.now())
    await conversations.append([said])
    before = await conversations.load_history(session, HOME_SCOPES)
    await take(database, [line("older", id="0", at="2026-05-02T10:00:00")])
    after = await conversations.load_history(session, HOME_SCOPES)
    assert after[: len(before)] == before
    assert [one.text for one in after] == ["newer", "and now", "older"]


async def test_title_of_an_imported_session_is_its_earliest_message(database: Database) -> None:
    await take(database, [line("second", at="2026-05-03T11:00:00"), line("first")])
    assert (await sessions(database))[0]["title"] == "first"


async def test_invalid_import_line_is_refused_with_its_number_and_the_rest_imported(
    database: Database,
) -> None:
    bad: list[str | bytes] = [
        "{",
        "[]",
        b'{"session": "\xff"}',
        "[" * 100_000,
        line(session=None),
        line(role="system"),
        line(text="  "),
        line(text=3),  # type: ignore[arg-type]
        line(at="yesterday"),
        line(at="0001-01-01T00:00:00+09:00"),
        line(at=None),
        line(scope="everyone"),
        line(id=7),
        line() + "," + line(),
        line() + line(),
    ]
    report = await take(
        database, ["\ufeff" + line("first"), "", *bad, "   \n", line("last") + "\r\n"]
    )
    assert (report.imported_count, report.refused_count) == (2, len(bad))
    assert [reason.partition(":")[0] for reason in report.reasons] == [
        f"line {n + 3}" for n in range(len(bad))
    ]
    assert [one["text"] for one in await exported(database)] == ["first", "last"]


async def test_odd_text_never_breaks_an_import(database: Database) -> None:
    odd = [
        '{"session":"s","role":"user","text":"\\ud83d and \\u0000 nul","at":"2026-05-03"}',
        line("修改youer服务端 🎉"),
    ]
    assert (await take(database, odd)).imported_count == 2
    assert (await take(database, odd)).known_count == 2


async def test_import_accepts_every_json_that_the_standard_parser_accepts(
    database: Database,
) -> None:
    deep = "[" * 500 + "]" * 500
    odd: list[str | bytes] = [
        line("half an emoji", sender="\ud83d"),
        line("first").replace(
            '"text"', f'"more": [NaN, -Infinity, {deep}], "text": "zeroth", "text"'
        ),
        line("wide").encode("utf-16"),
        line("blanks").replace(",", " \t,\r "),
    ]
    report = await take(database, odd)
    assert (report.imported_count, report.reasons) == (4, [])
    found = [(one["text"], one.get("sender")) for one in await exported(database)]
    assert found == [("half an emoji", "\ufffd"), ("first", None), ("wide", None), ("blanks", None)]


async def test_imported_quotes_keep_their_position_and_are_not_counted_as_messages(
    database: Database,
) -> None:
    kinds = ["quote", None, "quote", None, None]
    lines = [
        line(str(number), id=str(number), kind=kind, role="assistant")
        for number, kind in enumerate(kinds)
    ]
    assert (await take(database, lines[1:3])).imported_count == 2
    again = await take(database, [*lines, *lines])
    assert (again.imported_count, again.known_count) == (3, 7)
    assert [(one["text"], one.get("kind")) for one in await exported(database)] == [
        ("1", None), ("2", "quote"), ("0", "quote"), ("3", None), ("4", None)
    ]  # fmt: skip
    assert [session["message_count"] for session in await sessions(database)] == [3]


async def test_export_imported_into_another_home_exports_the_same_lines(
    database: Database, tmp_path: Path
) -> None:
    scope = Scope.group("telegram", "-1001")
    await take(
        database,
        [
            line(
                "a",
                title="Trip",
                platform="telegram",
                chat="-1001/7",
                scope=scope.key,
                sender="Ana",
                id="1",
            ),
            line(
                "b",
                title="Trip",
                platform="telegram",
                chat="-1001/7",
                scope=scope.key,
                role="assistant",
            ),
            line("mine"),
        ],
    )
    every = frozenset({scope, LOCAL_SCOPE})
    out = [format_line(one) async for one in Archive(database).export(every)]
    async with Database.open(tmp_path / "other.db") as other:
        assert (await take(other, out)).imported_count == 3
        assert [format_line(one) async for one in Archive(other).export(every)] == out
    parsed = parse_line(out[0])
    assert parsed.conversation.address == Address(
        platform="telegram", chat_id="-1001", thread_id="7"
    )


async def test_export_shows_the_given_scopes_only(database: Database) -> None:
    await take(database, [line("mine"), line("hers", session="s2", scope="account:telegram:7")])
    assert [one["text"] for one in await exported(database)] == ["mine"]
    assert await exported(database, frozenset()) == []
    assert await exported(database, frozenset({Scope.account("telegram", "8")})) == []


async def test_reimported_export_matches_its_own_sessions_and_leaves_out_tool_messages(
    database: Database, clock: SteadyClock
) -> None:
    conversations = Conversations(database, clock)
    session = await conversations.create(
        Session(
            address=Address(platform="terminal", chat_id="local"),
            scope=LOCAL_SCOPE,
            started_at=clock.now(),
        )
    )
    use = {"type": "tool_use", "id": "t1", "name": "reminder", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
    await conversations.append(
        [
            Message(
                role="user",
                text="remind me",
                session_id=session.id,
                created_at=clock.now(),
                external_id="x1",
                sender=Sender(id="local", name="Tom"),
            ),
            Message(
                role="assistant",
                text="Yes.",
                session_id=session.id,
                created_at=clock.now(),
                blocks=({"type": "text", "text": "Yes."}, use),
                tools="reminder",
            ),
            Message(
                role="tool",
                text="done",
                session_id=session.id,
                created_at=clock.now(),
                blocks=(result,),
            ),
            Message(
                role="user",
                text="/new",
                session_id=session.id,
                created_at=clock.now(),
                kind="command",
            ),
        ]
    )
    out = await exported(database)
    assert [one["text"] for one in out] == ["remind me", "Yes."]
    report = await take(database, [json.dumps(one) for one in out])
    assert (report.imported_count, report.known_count) == (0, 2)
    foreign = [json.dumps(one | {"scope": "account:telegram:7"}) for one in out]
    assert (await take(database, foreign)).imported_count == 2, (
        "another scope's line must not meet this session"
    )


async def test_answer_that_quotes_history_is_exported_and_imported_but_not_searchable(
    database: Database, clock: SteadyClock, tmp_path: Path
) -> None:
    conversations = Conversations(database, clock)
    session = await conversations.create(
        Session(
            address=Address(platform="terminal", chat_id="local"),
            scope=LOCAL_SCOPE,
            started_at=clock.now(),
        )
    )
    asked = Message(
        role="user", text="When is the ferry?", session_id=session.id, created_at=clock.now()
    )
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "ferry"}
    call = {"type": "tool_use", "id": "t1", "name": "session_search", "input": {}}
    await conversations.append(
        [
            asked,
            replace(asked, role="assistant", text="", blocks=(call,)),
            replace(asked, role="tool", text="ferry", kind="quote", blocks=(result,)),
            replace(asked, role="assistant", text="You said: the ferry is at noon.", kind="quote"),
            replace(asked, text="gone", kind="command", external_id="x"),
        ]
    )
    await conversations.amend(session.address, "x", None)
    archive = Archive(database)
    out = [format_line(one) async for one in archive.export(HOME_SCOPES)]
    assert [json.loads(one)["text"] for one in out] == [
        "When is the ferry?",
        "You said: the ferry is at noon.",
    ]
    assert set(json.loads(out[1])) <= {
        "session",
        "platform",
        "chat",
        "scope",
        "role",
        "text",
        "at",
        "kind",
    }
    again = await take(database, out)
    assert (again.imported_count, again.known_count) == (0, 2)
    async with Database.open(tmp_path / "other.db") as other:
        assert (await take(other, out)).imported_count == 2
        assert (await take(other, out)).known_count == 2
        (there,) = await sessions(other)
        shown = await Conversations(other, clock).load_transcript(there["id"], HOME_SCOPES)
        assert [(one.role, one.kind) for one in shown] == [("user", "chat"), ("assistant", "quote")]
        found = await Recall(other, clock).recall(
            search_query(text="ferry", scopes=HOME_SCOPES, messages=9)
        )
        assert [hit.role for hit in found.messages] == ["user"]
        assert there["message_count"] == 1
        back = [format_line(one) async for one in Archive(other).export(HOME_SCOPES)]
        titles = [{**json.loads(one), "title": None} for one in back]
        assert titles == [{**json.loads(one), "title": None} for one in out]
    assert (await take(database, back)).known_count == 2


async def test_import_reports_its_progress_every_thousand_lines(database: Database) -> None:
    heard: list[int] = []
    await Archive(database).import_records(
        read_lines([line(str(number)) for number in range(2500)]), heard.append
    )
    assert heard == [1000, 2000, 2500]


async def test_a_long_export_is_whole_and_in_order(database: Database) -> None:
    count = archive_module.PAGE_MESSAGES + 3
    await take(database, [line(str(number), session=f"s{number % 3}") for number in range(count)])
    assert len({(one["session"], one["text"]) for one in await exported(database)}) == count


@pytest.mark.slow
@given(st.text(), st.text(), st.datetimes())
def test_any_generated_transfer_line_is_either_parsed_losslessly_or_refused(
    session: str, text: str, at: datetime
) -> None:
    try:
        parsed = parse_line(
            json.dumps({"session": session, "role": "user", "text": text, "at": at.isoformat()})
        )
    except ValueError:
        assert not session or not text.strip()
        return
    assert parse_line(format_line(parsed)) == parsed
