"""What recall found, as JSON and as Markdown."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from core.errors import Sentence
from core.search.rendering import to_json, to_markdown
from core.search.results import shorten_to_budget
from core.store.query import FoundSession, Hit, SearchResults, ShownMessage
from core.types import Address, Scope, Session
from tests.fixtures.tables import each_row

AT = datetime(2026, 5, 8, 21, 30, tzinfo=UTC)
SESSION = Session(
    id=7,
    address=Address(platform="telegram", chat_id="42"),
    scope=Scope.account("telegram", "42"),
    started_at=AT,
    title="Ferry [plans]",
)
HIT = Hit(
    message_id=3,
    session_id=7,
    role="user",
    snippet="…take the >>>ferry<<< to *Porto*",
    score=1.25,
    at=AT + timedelta(hours=1),
)


def _item(number: int, text: str, is_anchor: bool = False) -> ShownMessage:
    return ShownMessage(
        message_id=number, role="user", sender="Ana", at=AT, text=text, is_anchor=is_anchor
    )


FOUND = FoundSession(
    session=SESSION,
    score=1.25,
    matches=(HIT,),
    bookend_start=(_item(1, "hello"),),
    window=(_item(2, "before"), _item(3, "take the ferry to Porto", is_anchor=True)),
    bookend_end=(_item(9, "bye"),),
    messages_before=1,
    messages_after=6,
)
FINDINGS = SearchResults(
    query="ferry \ud800", shape="discovery", sessions=(FOUND,), messages=(HIT,), took_ms=1.5
)


def test_recall_json_has_the_documented_shape() -> None:
    match = {
        "message_id": 3,
        "role": "user",
        "at": "2026-05-08T22:30:00+00:00",
        "snippet": HIT.snippet,
        "score": 1.25,
    }
    item = {
        "message_id": 1,
        "role": "user",
        "sender": "Ana",
        "at": "2026-05-08T21:30:00+00:00",
        "text": "hello",
        "is_anchor": False,
    }
    result = to_json(FINDINGS)
    assert list(result) == ["query", "shape", "took_ms", "sessions", "messages"]
    assert result["messages"] == [match]
    (session,) = result["sessions"]
    assert session["matches"] == [match]
    assert session["bookend_start"] == [item]
    assert [entry["is_anchor"] for entry in session["window"]] == [False, True]
    assert {
        name: session[name] for name in ("session_id", "title", "started_at", "platform", "score")
    } == {
        "session_id": 7,
        "title": "Ferry [plans]",
        "started_at": "2026-05-08T21:30:00+00:00",
        "platform": "telegram",
        "score": 1.25,
    }
    assert (session["messages_before"], session["messages_after"]) == (1, 6)
    assert "preview" not in session
    assert "external_session" not in session
    json.dumps(result)


def test_recall_json_has_links_only_for_messages_that_have_one() -> None:
    window = (_item(1, "x")._replace(link="https://t.me/c/1/1"), _item(2, "y"))
    found = replace(FOUND, matches=(HIT._replace(link="https://t.me/c/1/3"),), window=window)
    (session,) = to_json(replace(FINDINGS, sessions=(found,)))["sessions"]
    assert session["matches"][0]["link"] == "https://t.me/c/1/3"
    assert [entry.get("link") for entry in session["window"]] == ["https://t.me/c/1/1", None]


def test_recall_json_includes_external_ids_and_notes() -> None:
    found = replace(
        FOUND, session=replace(SESSION, external_id="s1"), matches=(HIT._replace(external_id="m1"),)
    )
    result = to_json(
        replace(
            FINDINGS,
            sessions=(replace(found, preview="p"),),
            messages=(),
            notes=(Sentence("Said so."),),
        )
    )
    session = result["sessions"][0]
    assert (
        session["external_session"],
        session["preview"],
        session["matches"][0]["external_id"],
    ) == ("s1", "p", "m1")
    assert result["note"] == "Said so."
    assert "messages" not in result


def test_markdown_shows_title_time_and_the_match_in_bold() -> None:
    assert to_markdown(FINDINGS, ZoneInfo("Europe/Lisbon")) == (
        "**1. Ferry \\[plans\\]** · Fri 8 May 2026, 23:30 · telegram · session 7\n> …take the **ferry** to \\*Porto\\*"
    )


def test_a_card_has_the_link_of_each_match_and_the_summary() -> None:
    linked = HIT._replace(
        snippet="see &lt; https://x.org/a_b >>>C++<<<", link="https://t.me/c/5/6/7"
    )
    found = replace(FOUND, matches=(HIT, linked, HIT), summary="They took it.\n\n- at nine\n")
    _, *quoted, blank, first, _, item = to_markdown(
        replace(FINDINGS, sessions=(found,)), UTC
    ).splitlines()
    assert quoted == [
        "> …take the **ferry** to \\*Porto\\*",
        "> see \\&lt; https://x.org/a_b **C++** [open](https://t.me/c/5/6/7)",
    ]
    assert (blank, first, item) == ("", "They took it.", "- at nine")


def test_recall_markdown_shows_scroll_read_and_browse_results() -> None:
    window = (
        _item(2, "before")._replace(at=AT - timedelta(days=1)),
        _item(3, "take *the* ferry", is_anchor=True)._replace(link="https://t.me/c/5/7"),
        _item(4, "after"),
        _item(5, "later")._replace(at=AT + timedelta(days=1)),
    )
    scrolled = replace(
        FINDINGS, shape="scroll", sessions=(replace(FOUND, window=window, matches=()),)
    )
    assert to_markdown(scrolled, UTC).splitlines() == [
        "**Ferry \\[plans\\]** · Fri 8 May 2026, 21:30 · telegram · session 7",
        "(1 earlier)",
        "- 7 May, 21:30 Ana: before",
        "- **8 May, 21:30 Ana: take \\*the\\* ferry** [open](https://t.me/c/5/7)",
        "- 21:30 Ana: after",
        "- 9 May, 21:30 Ana: later",
        "(6 more)",
    ]
    session = FoundSession(
        session=SESSION, window=tuple(_item(n, f"line {n}") for n in range(30)), messages_after=4
    )
    read = to_markdown(replace(FINDINGS, shape="read", sessions=(session,)), UTC).splitlines()
    assert read[20:23] == ["- 21:30 Ana: line 19", "(4 more in between)", "- 21:30 Ana: line 20"]
    assert read[-1] == "- 21:30 Ana: line 29"
    browse = replace(
        FINDINGS,
        shape="browse",
        sessions=(FoundSession(session=SESSION, preview="How do I _get_ there?"),),
    )
    assert to_markdown(browse, UTC).splitlines()[1] == "> How do I \\_get\\_ there?"
    repeated = FoundSession(
        session=replace(SESSION, title="How do I…"), preview="How do I _get_ there?"
    )
    assert len(to_markdown(replace(browse, sessions=(repeated,)), UTC).splitlines()) == 1


def test_empty_recall_result_is_shown_as_one_sentence() -> None:
    assert to_markdown(replace(FINDINGS, sessions=()), UTC) == "Nothing found."
    assert (
        to_markdown(replace(FINDINGS, sessions=(), notes=(Sentence("No word."),)), UTC)
        == "Nothing found. No word."
    )
    assert (
        to_markdown(replace(FINDINGS, shape="browse", sessions=()), UTC)
        == "There are no conversations yet."
    )
    assert to_markdown(replace(FINDINGS, notes=(Sentence("Any word."),)), UTC).startswith(
        "_Any word._\n\n**1. Ferry"
    )
    gone = to_markdown(replace(FINDINGS, shape="scroll", sessions=()), UTC)
    assert gone == "There is no such message here. It may have been erased."
    assert (
        to_markdown(replace(FINDINGS, shape="read", sessions=()), UTC)
        == "There is no such conversation here."
    )


def test_a_budget_cuts_long_messages_around_the_match() -> None:
    long = "word " * 400
    window = (
        _item(1, long),
        _item(2, "short"),
        _item(3, long + "take the ferry now " + long, is_anchor=True),
    )
    findings = replace(FINDINGS, sessions=(replace(FOUND, window=window),))
    cut = shorten_to_budget(findings, 1000).sessions[0]
    assert cut.window[1].text == "short"
    assert cut.window[0].text.endswith("word…")
    assert cut.window[2].text.startswith("…word")
    assert "take the ferry now" in cut.window[2].text
    assert (
        sum(len(item.text) for item in (*cut.bookend_start, *cut.window, *cut.bookend_end)) <= 1010
    )
    assert shorten_to_budget(FINDINGS, 1000) is FINDINGS


@each_row(
    "moment",
    [
        AT,
        AT.replace(microsecond=7),
        AT.replace(second=5, microsecond=120_000),
        datetime(999, 1, 2, 3, 4, 5, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        AT.astimezone(ZoneInfo("Europe/Lisbon")),
    ],
)
def test_times_are_written_as_python_writes_them(moment: datetime) -> None:
    found = replace(
        FOUND, session=replace(SESSION, started_at=moment), matches=(HIT._replace(at=moment),)
    )
    found = replace(found, window=(_item(1, "at nine")._replace(at=moment),))
    told = to_json(replace(FINDINGS, sessions=(found,)))["sessions"][0]
    assert {told["started_at"], told["matches"][0]["at"], told["window"][0]["at"]} == {
        moment.isoformat()
    }
