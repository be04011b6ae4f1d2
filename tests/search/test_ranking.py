"""Messages and sessions in order, and rankings joined."""

from __future__ import annotations

from datetime import date

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.search import ranking
from core.search.fusion import DAMPING, fuse_rankings
from core.search.ranking import compute_idf, rank
from core.store.query import CandidateMessage
from core.text.terms import date_terms, is_question, moment_terms, query_terms, terms_of
from tests.fixtures.tables import each_row


def _lines(
    session_id: int, *texts: str, day: date = date(2023, 5, 8), name: str = "Ana"
) -> list[CandidateMessage]:
    return [
        CandidateMessage(
            message_id=session_id * 100 + number,
            session_id=session_id,
            chunk=0,
            terms=tuple(terms_of(text)),
            name_terms=tuple(terms_of(name)),
            day_terms=date_terms(day),
            is_question=is_question(text),
            is_candidate=True,
        )
        for number, text in enumerate(texts)
    ]


def _order(
    text: str, *sessions: list[CandidateMessage], moments: frozenset[str] = frozenset()
) -> tuple[list[int], list[int]]:
    terms = query_terms(text)
    counts = {
        term: sum(
            any(term in (*one.terms, *one.name_terms, *one.day_terms) for one in s)
            for s in sessions
        )
        for term in terms
    }
    scores, matches = rank(
        compute_idf(counts, len(sessions)), {s[0].session_id: s for s in sessions}, moments
    )
    return list(scores), [match.message_id for match in matches]


def test_session_and_message_with_the_rarer_words_rank_first() -> None:
    first = _lines(1, "we spoke of boats", "nothing here", "and nothing there")
    second = _lines(2, "hello", "the ferry to Porto leaves at noon", "thanks")
    assert _order("When does the ferry to Porto leave?", first, second) == ([2], [201, 202, 200])


def test_answer_is_ranked_by_the_words_of_the_question_before_it() -> None:
    lines = _lines(1, "x", "Which ferry did you take?", "The one at noon from the old harbour", "y")
    lines[2] = lines[2]._replace(name_terms=("cleo",))
    messages = _order("Which ferry did Ben take?", lines)[1]
    assert messages[:2] == [102, 101]


def test_question_that_names_a_month_ranks_sessions_of_that_month_first() -> None:
    early = _lines(1, "lunch with Ben", day=date(2023, 5, 8))
    late = _lines(2, "lunch with Ben", day=date(2023, 7, 9))
    assert _order("What about lunch in July?", early, late)[0][0] == 2


def test_question_about_a_time_ranks_messages_that_name_a_time_higher() -> None:
    lines = _lines(1, "ferry trip fine", "x", "y", "z", "ferry trip yesterday")
    assert _order("ferry trip", lines)[1][0] == 100
    assert _order("When was the ferry trip?", lines, moments=moment_terms())[1][0] == 104


def _by_time(*days: date, asked: date) -> list[int]:
    """Sessions that say the same on these days, 0 the first, by a question that names `asked`."""
    said = [_lines(number, "the ferry", day=day) for number, day in enumerate(days)]
    lines = {
        number: [one._replace(day_number=day.toordinal()) for one in said[number]]
        for number, day in enumerate(days)
    }
    return list(
        rank(compute_idf({"ferri": 1}, 9), lines, periods=[(asked.toordinal(), asked.toordinal())])[
            0
        ]
    )


def test_message_of_the_named_time_is_ranked_first() -> None:
    asked = date(2023, 5, 8)
    assert _by_time(date(2023, 1, 8), asked, asked=asked)[0] == 1
    assert _by_time(date(2023, 1, 8), date(2023, 5, 11), asked=asked)[0] == 1
    assert _by_time(date(2023, 5, 7), date(2023, 5, 9), asked=asked)[0] == 1


def test_speakers_name_in_a_question_weighs_more_than_a_matching_word() -> None:
    ferry, said = (
        _lines(1, "the ferry leaves", name="Cleo"),
        _lines(2, "the boat leaves", name="Ben"),
    )
    assert _order("Ben, the ferry?", ferry, said)[0][0] == 2


def test_of_two_messages_alike_that_of_the_better_session_comes_first() -> None:
    lesser = _lines(1, "x", "y", "z", "w", "the ferry")
    better = _lines(2, "the ferry to Porto", "y", "z", "w", "the ferry")
    assert [one for one in _order("ferry to Porto", lesser, better)[1] if one % 100 == 4] == [
        204,
        104,
    ]


def test_question_ranks_below_a_statement_of_the_same_words() -> None:
    asked, said = (
        _lines(1, "A ferry with dogs, cats and birds?"),
        _lines(2, "A ferry with dogs, cats and birds."),
    )
    assert _order("ferry", asked, said)[1] == [200, 100]


def test_excluded_message_helps_rank_its_neighbour_but_is_not_a_result() -> None:
    asked, answered = _lines(1, "Which ferry?", "At noon")
    messages = _order("ferry", [asked._replace(is_candidate=False), answered])[1]
    assert messages == [101]


def test_ranking_of_no_candidates_is_empty() -> None:
    assert rank({}, {}) == ({}, [])
    assert _order("ferry", _lines(1, "boat")) == ([], [])


def test_weights_of_frequent_terms_are_never_negative() -> None:
    assert all(
        weight >= 0 for weight in compute_idf({"a": 0, "b": 5, "c": 10, "d": 99}, 10).values()
    )


def test_question_mark_of_several_scripts_makes_a_question() -> None:
    assert all(is_question(text) for text in ("so? ", "\u5417\uff1f", "\u0645\u0627\u061f"))
    assert not is_question("no? yes.")


def test_message_by_the_named_person_is_ranked_first() -> None:
    lines = [
        *_lines(1, "the ferry", "x", "y", "z"),
        *_lines(1, "the ferry", "x", "y", "z", name="Ben"),
    ]
    both = [one._replace(message_id=number) for number, one in enumerate(lines)]
    assert _order("What did Ben say about the ferry?", both)[1][0] == 4
    assert _order("What did Ana say about the ferry?", both)[1][0] == 0


def test_message_with_the_questions_words_next_to_each_other_ranks_higher() -> None:
    apart = "night falls and we go home by the slow ferry"
    lines = _lines(1, apart, "x", "y", "z", "we go home by the slow night ferry and wait")
    assert _order("night ferry", lines)[1][0] == 104


def test_message_with_a_related_word_ranks_below_one_with_the_same_word() -> None:
    lines = _lines(1, "hello there", "x", "y", "z", "a photographer", "x", "y", "z", "photography")
    assert _order("photography", lines)[1][0] == 108
    assert 104 in _order("photography", lines)[1]


def test_thai_syllable_pairs_are_not_matched_to_related_words() -> None:
    assert _order("เมาเละ", _lines(1, "เมาเลา", "x"))[1] == []


def test_short_session_with_one_match_ranks_above_a_long_repetitive_session() -> None:
    note = _lines(1, "the ferry to Porto leaves at noon")
    talk = _lines(2, *["the ferry to Porto is late again", "it leaves soon"] * 6)
    assert _order("When does the ferry to Porto leave?", talk, note)[0] == [1, 2]


def test_a_long_message_is_as_good_as_the_part_that_answers() -> None:
    def long(*places: int) -> str:
        asked = dict(zip(places, ("ferry", "harbour", "ticket"), strict=True))
        return " ".join(asked.get(number, f"word{number}") for number in range(240))

    sessions, messages = _order(
        "ferry harbour ticket", _lines(1, long(0, 120, 239)), _lines(2, long(125, 130, 135))
    )
    assert sessions == [2, 1]
    assert messages == [200, 100]


REPEATED = "When does the night ferry to Porto leave?"


def test_earlier_copy_of_the_question_ranks_below_the_answer_that_followed_it() -> None:
    answer = "At noon from pier nine, and tickets are sold there"
    lines = _lines(1, "hello", "good morning", REPEATED, answer, "thanks", "bye")
    lines[3] = lines[3]._replace(name_terms=("cleo",))
    assert _order(REPEATED, lines)[1][:2] == [103, 102]


def test_message_after_an_own_question_is_not_ranked_as_its_answer() -> None:
    asked = _lines(1, "The ferry to Porto is late", REPEATED, "Remember that the code is 4711")
    assert _order(REPEATED, asked)[1][0] == 100


def test_a_question_that_was_asked_before_comes_behind_its_answer_elsewhere() -> None:
    asked = _lines(1, REPEATED, "No idea, ask Ben")
    answered = _lines(2, "x", "The ferry to Porto leaves at nine every night", "y")
    sessions, messages = _order(REPEATED, asked, answered)
    assert sessions == [2, 1]
    assert messages[0] == 201
    assert 100 in messages


def test_similar_question_about_something_else_is_not_ranked_as_a_repetition() -> None:
    lines = _lines(1, "x", "Does the ferry to Faro leave from the new pier?", "At ten", "y")
    assert _order(REPEATED, lines)[1][:2] == [101, 102]


RANKINGS = st.lists(
    st.tuples(st.floats(0.1, 5), st.lists(st.integers(0, 20), unique=True)), max_size=6
)


def test_fused_ranking_scores_follow_the_reciprocal_rank_formula() -> None:
    scores = fuse_rankings([(2.0, ["a", "b"]), (1.0, ["b", "c", "b"])])
    assert scores == {
        "b": 2.0 / (DAMPING + 2) + 1.0 / (DAMPING + 1),
        "a": 2.0 / (DAMPING + 1),
        "c": 1.0 / (DAMPING + 2),
    }
    assert list(scores) == ["b", "a", "c"]


def test_fused_ranking_keeps_the_order_and_prefers_the_first_named() -> None:
    assert list(fuse_rankings([(1.0, [3, 1, 2])])) == [3, 1, 2]
    assert list(fuse_rankings([(1.0, ["x"]), (1.0, ["y"])])) == ["x", "y"]
    assert fuse_rankings([]) == {}


@given(RANKINGS)
def test_fused_ranking_keeps_all_items_best_first(rankings: list[tuple[float, list[int]]]) -> None:
    scores = fuse_rankings(rankings)
    assert set(scores) == {thing for _, things in rankings for thing in things}
    values = list(scores.values())
    assert values == sorted(values, reverse=True)


@given(RANKINGS, st.integers(0, 20))
def test_additional_first_place_never_lowers_a_result_in_the_fused_ranking(
    rankings: list[tuple[float, list[int]]], thing: int
) -> None:
    before = list(fuse_rankings(rankings))
    after = list(fuse_rankings([*rankings, (1.0, [thing])]))
    assert thing not in before or after.index(thing) <= before.index(thing)


@each_row("count", [1, 2, 3, 4, 9, 10])
def test_median_is_that_of_numpy(count: int) -> None:
    numbers = np.array([(7 * number) % 10 + 0.5 for number in range(count)])
    assert ranking._median(numbers) == np.median(numbers)
