"""Rankings into one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from core.search.ranking import DAMPING, fused

RANKINGS = st.lists(st.tuples(st.floats(0.1, 5), st.lists(st.integers(0, 20), unique=True)), max_size=6)


def test_places_are_worth_what_the_formula_says() -> None:
    scores = fused([(2.0, ["a", "b"]), (1.0, ["b", "c", "b"])])
    assert scores == {
        "b": 2.0 / (DAMPING + 2) + 1.0 / (DAMPING + 1),
        "a": 2.0 / (DAMPING + 1),
        "c": 1.0 / (DAMPING + 2),
    }
    assert list(scores) == ["b", "a", "c"]


def test_one_ranking_keeps_its_order_and_of_equals_the_first_named_leads() -> None:
    assert list(fused([(1.0, [3, 1, 2])])) == [3, 1, 2]
    assert list(fused([(1.0, ["x"]), (1.0, ["y"])])) == ["x", "y"]
    assert fused([]) == {}


@settings(deadline=None)
@given(RANKINGS)
def test_all_things_are_kept_best_first(rankings: list[tuple[float, list[int]]]) -> None:
    scores = fused(rankings)
    assert set(scores) == {thing for _, things in rankings for thing in things}
    values = list(scores.values())
    assert values == sorted(values, reverse=True)


@settings(deadline=None)
@given(RANKINGS, st.integers(0, 20))
def test_another_first_place_never_hurts(rankings: list[tuple[float, list[int]]], thing: int) -> None:
    before = list(fused(rankings))
    after = list(fused([*rankings, (1.0, [thing])]))
    assert thing not in before or after.index(thing) <= before.index(thing)
