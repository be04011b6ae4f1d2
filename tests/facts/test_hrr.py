"""Holographic vectors: what is bound is found again by its role, and by nothing else."""

from __future__ import annotations

import pytest

from core.facts import hrr


def test_vector_symbol_is_deterministic_and_dissimilar_to_every_other_symbol() -> None:
    assert hrr.make_symbol("porto") is hrr.make_symbol("porto")
    hrr.make_symbol.cache_clear()
    first = hrr.make_symbol("porto").copy()
    hrr.make_symbol.cache_clear()
    assert hrr.similarity(first, hrr.make_symbol("porto")) == pytest.approx(1, abs=1e-5)
    assert abs(hrr.similarity(hrr.make_symbol("porto"), hrr.make_symbol("lisbon"))) < 0.1
    assert hrr.make_symbol("\ud800").shape == (hrr.PHASES,)


def test_bound_pair_of_vectors_is_similar_to_neither_part() -> None:
    one, other = hrr.make_symbol("role"), hrr.make_symbol("porto")
    pair = one * other
    assert abs(hrr.similarity(pair, one)) < 0.1
    assert abs(hrr.similarity(pair, other)) < 0.1


def test_vector_bundle_of_32_symbols_is_similar_to_its_parts_only() -> None:
    parts = [hrr.make_symbol(f"part {number}") for number in range(32)]
    together = hrr.bundle(parts)
    assert together is not None
    inside = min(hrr.similarity(together, part) for part in parts)
    outside = max(
        hrr.similarity(together, hrr.make_symbol(f"other {number}")) for number in range(200)
    )
    assert inside > outside
    assert hrr.bundle([]) is None


def test_hrr_question_must_be_bound_to_the_role_it_asks_for() -> None:
    fact = hrr.encode(["live"], ["porto"])
    bound, unbound = hrr.encode([], ["porto"]), hrr.make_symbol("porto")
    wrong = hrr.encode(["porto"], [])
    assert fact is not None
    assert bound is not None
    assert wrong is not None
    assert hrr.similarity(fact, bound) > 0.5
    assert abs(hrr.similarity(fact, unbound)) < 0.1
    assert abs(hrr.similarity(fact, wrong)) < 0.1


def test_vector_of_a_question_is_most_similar_to_the_fact_that_answers_it() -> None:
    facts = [hrr.encode(["live"], ["ana", "porto"]), hrr.encode(["like", "tea"], ["ana"])]
    facts.append(hrr.encode(["like", "tea"], ["ben"]))
    asked = hrr.encode(["like"], ["ana"])
    assert asked is not None
    near = [hrr.similarity(asked, fact) for fact in facts if fact is not None]
    assert near.index(max(near)) == 1
    assert hrr.encode([], []) is None
