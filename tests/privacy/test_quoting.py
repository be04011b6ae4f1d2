"""What counts as repeating: the words that were asked for, or a longer stretch of what was said."""

from __future__ import annotations

import json

from core.privacy.quotes import QuoteMatcher
from core.search.query import plan_typed
from tests.fixtures.tables import each_row


@each_row(
    ("query", "text", "is_there"),
    [
        ("porto", "We live in Porto.", True),
        ("porto", "A Portofino holiday", False),
        ("porto*", "A Portofino holiday", True),
        ("ferry porto", "the ferry", False),
        ("ferry porto", "PORTO has no ferry", True),
        ('"blue drawer"', "in the blue, drawer", True),
        ('"blue drawer"', "a drawer that is blue", False),
        ("core/search/recall.py", "see core/search/recall.py:7", True),
        ("波尔图", "我们搬到了波尔图附近", True),
        ("Zoë", "zoe said so", True),
        ("🛶", "by 🛶!", True),
    ],
)
def test_quote_matcher_finds_words_like_recall(query: str, text: str, is_there: bool) -> None:
    assert QuoteMatcher(plan_typed(query).highlights).has_words(text) is is_there


def test_words_are_found_behind_the_escapes_of_json() -> None:
    inner = json.dumps({"text": "said:\nPorto\tis"}, ensure_ascii=False)
    assert QuoteMatcher(("Porto",)).has_words(json.dumps([{"content": inner}], ensure_ascii=False))


@each_row(
    "text",
    [
        json.dumps({"where": "in Königsbrück, ja"}),
        json.dumps(json.dumps({"where": "in\nKönigsbrück"})),
        "KONIGSBRUCK",
        "\uff2bönigsbrück",
        "**Königs**brück",
        "Ko\u0308nigsbru\u0308ck",
    ],
)
def test_quote_matcher_finds_words_in_json_markup_and_escaped_text(text: str) -> None:
    assert QuoteMatcher(("königsbrück",)).has_words(text)
    assert not QuoteMatcher(("königsbrücken",)).has_words(text)


def test_quote_matcher_finds_an_emoji_escaped_in_json() -> None:
    assert QuoteMatcher(("🦜",)).has_words(json.dumps("a 🦜 b"))
    assert QuoteMatcher((), ["the 🦜 sits in the old Königsbrücker tree"]).has_passage(
        json.dumps("He said: the 🦜 sits in the old Königsbrücker tree.")
    )


def test_any_of_the_words_is_enough_where_that_was_asked() -> None:
    assert QuoteMatcher(("ferry", "boat"), is_any=True).has_words("a boat")
    assert not QuoteMatcher(("ferry", "boat")).has_words("a boat")
    assert QuoteMatcher(("ferry", "boat")).has_words("a boat", None, "the ferry"), (
        "parts of one row belong together"
    )
    assert not QuoteMatcher(()).has_words("a boat")


def test_a_longer_stretch_is_a_quotation_and_a_shorter_one_is_not() -> None:
    quoting = QuoteMatcher(
        (),
        ["My passport lies in the blue drawer of the bedroom", "我们搬到了波尔图附近的海边小镇上"],
    )
    assert quoting.has_passage("You said: “My passport LIES in the blue… drawer”")
    assert quoting.has_passage("他们搬到了波尔图附近的海边小镇上了")
    assert not quoting.has_passage("It lies in the other drawer of the kitchen")
    assert not quoting.has_passage("passport", None, "")
    assert not QuoteMatcher((), ["ok", "yes it is so"]).has_passage("ok yes it is so")


def test_quote_matcher_finds_a_copy_of_a_short_message_only_if_it_is_quoted_whole() -> None:
    quoting = QuoteMatcher((), ["Zanzibar is mine", "ok"])
    assert quoting.has_copy("**1. Untitled** > **Zanzibar** is mine (session 1)")
    assert not quoting.has_passage("> Zanzibar is mine")
    assert not quoting.has_copy("Zanzibar is ours, ok")
    assert quoting.has_copy(" ok\n"), "the whole text, however short"
