"""The densest part of a long conversation: never too long, always with the phrase, a quarter of it before."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.search.best_passage import EARLIER, LATER, densest, passage

pytestmark = pytest.mark.slow

FILLER = "nothing of any interest was said about this today"
MARKS_CHARS = len(EARLIER) + len(LATER)
Lines = list[tuple[str, str]]


def talk(**said: str) -> Lines:
    """A hundred messages of filler, about 6,500 characters; `said` under their numbers (``n50="…"``)."""
    return [(f"[{number:02}] Ana: ", said.get(f"n{number}", f"{FILLER} {number}")) for number in range(100)]


def body(part: str) -> str:
    """A passage without its marks."""
    return part.removeprefix(EARLIER).removesuffix(LATER)


def test_what_is_short_enough_stays_whole() -> None:
    lines = [("Ana: ", "the ferry"), ("Assistant: ", "noted")]
    assert passage(lines, "anything", 100) == "Ana: the ferry\nAssistant: noted"
    assert passage([], "anything", 100) == ""


def test_the_phrase_comes_before_words_that_stand_close_and_these_before_single_ones() -> None:
    scattered = {"n5": "ferry", "n6": "ferry ferry ferry", "n7": "ferry"}
    near = {"n80": "a ferry by night"}
    exact = {"n40": "the Night-Ferry it is"}
    assert "the Night-Ferry it is" in passage(talk(**scattered, **near, **exact), "night ferry", 1000)
    assert "a ferry by night" in passage(talk(**scattered, **near), "night ferry", 1000)
    assert "ferry ferry ferry" in passage(talk(**scattered), "night ferry", 1000)


def test_of_close_words_most_different_ones_win() -> None:
    lines = talk(n10="ferry Lisbon", n11="ferries Lisbon", n70="the ferries to Lisbon leave at noon")
    assert "leave at noon" in passage(lines, "When does the ferry to Lisbon leave?", 800)
    twice = talk(n10="ferry, ferries, ferry", n70="ferry and Lisbon")
    assert "and Lisbon" in passage(twice, "ferry lisbon", 800), "two forms of one word are one word"


def test_what_is_excluded_is_not_looked_for_and_a_quoted_phrase_is() -> None:
    lines = talk(n10="a car, a car, a red car", n60="the ferry")
    assert "the ferry" in passage(lines, "ferry -car", 500)
    quoted = talk(n10="ferry by night", n60="the night ferry at nine")
    assert "at nine" in passage(quoted, 'lisbon "night ferry"', 500)


def test_where_no_word_stands_what_recall_found_counts_and_else_the_beginning() -> None:
    lines = talk(n77="Lisboa")
    assert "Lisboa" in passage(lines, "Lisbno", 500, found=[77, 2000])
    assert passage(lines, "Lisbno", 500).startswith("[00] Ana: ")


def test_names_and_dates_before_a_message_are_not_looked_at() -> None:
    lines = [(f"[May {number}] Ana: ", FILLER) for number in range(50)] + [("[May 50] Ben: ", "Ana moves in May")]
    assert "Ana moves in May" in passage(lines, "Ana in May", 500)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("缓存策略", "我们讨论缓存策略的问题"),
        ("修改youer服务端", "请修改youer服务端的配置"),
        ("Straße", "in der STRASSE"),
        ("ferr*", "ferries"),
    ],
)
def test_other_scripts_and_prefixes(asked: str, said: str) -> None:
    assert said in passage(talk(n66=said), asked, 500)


def test_a_quarter_lies_before_the_place_and_both_ends_are_whole_messages() -> None:
    lines = talk(n50="the night ferry")
    limit = 2000
    part = passage(lines, "night ferry", limit)
    inside = body(part)
    share = inside.index("night ferry") / (limit - MARKS_CHARS)
    assert 0.18 <= share <= 0.25
    assert len(part) >= 0.88 * limit
    shown = inside.split("\n")
    assert {"\n".join([head + text]) for head, text in lines} >= set(shown), "every line shown is a whole message"
    assert part.startswith(EARLIER)
    assert part.endswith(LATER)


def test_near_the_ends_nothing_is_wasted() -> None:
    first, last = passage(talk(n0="ferry"), "ferry", 1000), passage(talk(n99="ferry"), "ferry", 1000)
    assert first.startswith("[00] Ana: ferry")
    assert last.endswith("[99] Ana: ferry")
    assert min(len(first), len(last)) > 850


def test_one_endless_message_is_cut_between_words() -> None:
    lines = [("Ana: ", "word " * 20_000 + "the night ferry leaves " + "word " * 20_000)]
    inside = body(passage(lines, "night ferry", 1000))
    assert "the night ferry leaves" in inside
    assert set(inside.split()) <= {"word", "the", "night", "ferry", "leaves"}
    for size in range(49_950, 50_050, 7):
        across = [("Ana: ", "x" * size + " the night ferry leaves " + "word " * 500)]
        assert "the night ferry leaves" in passage(across, "night ferry", 1000), "across the border of two pieces"
    unspaced = [("Ana: ", "字" * 3000 + "缓存策略" + "字" * 3000)]
    assert "缓存策略" in passage(unspaced, "缓存策略", 500)


@settings(deadline=None)
@given(
    before=st.lists(st.text(max_size=60), max_size=40),
    after=st.lists(st.text(max_size=60), max_size=40),
    limit_chars=st.integers(200, 2000),
)
def test_never_longer_than_the_limit_and_the_phrase_is_in_it(
    before: list[str], after: list[str], limit_chars: int
) -> None:
    said = [*before, "so we take the zebra ferry then", *after]
    lines = [(f"{number}: ", text) for number, text in enumerate(said)]
    part = passage(lines, "zebra ferry", limit_chars)
    assert len(part) <= limit_chars
    assert "zebra ferry" in part
    assert body(part) in "\n".join(head + text for head, text in lines)


@settings(deadline=None)
@given(
    gaps=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 30)), max_size=40),
    tail=st.integers(0, 500),
    limit_chars=st.integers(1, 800),
)
def test_the_densest_part_is_the_best_of_all_that_could_be_chosen(
    gaps: list[tuple[int, int]], tail: int, limit_chars: int
) -> None:
    places: list[tuple[int, int]] = []
    at = 0
    for gap, size in gaps:
        places.append((at + gap, at + gap + size))
        at = places[-1][1]
    total = at + tail
    start, end = densest(places, total, limit_chars)

    def held(first: int) -> int:
        return sum(first <= a and b <= first + limit_chars for a, b in places)

    assert 0 <= start <= end <= total
    assert end - start == min(limit_chars, total)
    allowed = [max(0, min(a - limit_chars // 4, total - limit_chars)) for a, _ in places]
    assert held(start) == max(map(held, allowed), default=0)
    assert not places or start in allowed
