"""What counts as repeating: the words that were asked for, or a longer stretch of what was said."""

from __future__ import annotations

import json

import pytest

from core.privacy.forgetting import Quoting
from core.search.query import parse


@pytest.mark.parametrize(
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
def test_words_are_found_as_recall_finds_them(query: str, text: str, is_there: bool) -> None:
    assert Quoting(parse(query).terms).has_words(text) is is_there


def test_words_are_found_behind_the_escapes_of_json() -> None:
    inner = json.dumps({"text": "said:\nPorto\tis"}, ensure_ascii=False)
    assert Quoting(("Porto",)).has_words(json.dumps([{"content": inner}], ensure_ascii=False))


@pytest.mark.parametrize(
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
def test_words_are_found_in_whatever_they_are_written(text: str) -> None:
    assert Quoting(("königsbrück",)).has_words(text)
    assert not Quoting(("königsbrücken",)).has_words(text)


def test_a_sign_of_two_units_is_read_behind_its_escapes() -> None:
    assert Quoting(("🦜",)).has_words(json.dumps("a 🦜 b"))
    assert Quoting((), ["the 🦜 sits in the old Königsbrücker tree"]).repeats(
        json.dumps("He said: the 🦜 sits in the old Königsbrücker tree.")
    )


def test_any_of_the_words_is_enough_where_that_was_asked() -> None:
    assert Quoting(("ferry", "boat"), is_any=True).has_words("a boat")
    assert not Quoting(("ferry", "boat")).has_words("a boat")
    assert Quoting(("ferry", "boat")).has_words("a boat", None, "the ferry"), "parts of one row belong together"
    assert not Quoting(()).has_words("a boat")


def test_a_longer_stretch_is_a_quotation_and_a_shorter_one_is_not() -> None:
    quoting = Quoting((), ["My passport lies in the blue drawer of the bedroom", "我们搬到了波尔图附近的海边小镇上"])
    assert quoting.repeats("You said: “My passport LIES in the blue… drawer”")
    assert quoting.repeats("他们搬到了波尔图附近的海边小镇上了")
    assert not quoting.repeats("It lies in the other drawer of the kitchen")
    assert not quoting.repeats("passport", None, "")
    assert not Quoting((), ["ok", "yes it is so"]).repeats("ok yes it is so")


def test_a_copy_is_told_by_something_short_that_it_holds_as_a_whole() -> None:
    quoting = Quoting((), ["Zanzibar is mine", "ok"])
    assert quoting.copies("**1. Untitled** > **Zanzibar** is mine (session 1)")
    assert not quoting.repeats("> Zanzibar is mine")
    assert not quoting.copies("Zanzibar is ours, ok")
    assert quoting.copies(" ok\n"), "the whole text, however short"
