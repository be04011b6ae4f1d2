"""At each token, only the rules that name its kind are tried, and none that matches is left out."""

from __future__ import annotations

import random

import pytest

from core.dates.requests import clocks, days, grammar, rhythms
from core.dates.tokens import Kind, Rules

MODULES = (clocks, days, grammar, rhythms)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_rules_tried_for_a_kind_match_the_same_tokens_as_all_rules(module: object) -> None:
    rules: Rules[object, object] = module.RULES  # type: ignore[attr-defined]
    every_rule = rules._compiled_rules
    chance = random.Random(26)
    match_count = 0
    for _ in range(300):
        kinds = "".join(chance.choices([kind.value for kind in Kind], k=6))
        kinds = kinds[:2] + Kind.NUMBER.value + kinds[2:]
        for position in range(len(kinds)):
            matches = [(pattern, pattern.match(kinds, position)) for pattern, _ in every_rule]
            expected = [
                (pattern.pattern, match.end())
                for pattern, match in matches
                if match is not None and match.end() > position
            ]
            found = rules.match(kinds, position)
            assert [(match.re.pattern, match.end()) for match, _ in found] == expected
            match_count += len(expected)
    assert match_count > 0


def test_rule_for_any_kind_is_tried_for_kinds_that_it_does_not_name() -> None:
    rules: Rules[None, str] = Rules()
    rules.add("at .")(lambda match, context: "any")
    rules.add("[^ number ] at")(lambda match, context: "not a number")
    rules.add("number at")(lambda match, context: "number")
    kinds = Kind.COMMA.value + Kind.AT.value + Kind.COLON.value
    assert [match.span() for match, _ in rules.match(kinds, 0)] == [(0, 2)]
    assert [match.span() for match, _ in rules.match(kinds, 1)] == [(1, 3)]
