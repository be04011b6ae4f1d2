"""The forms of a word that whoever names it means as well: ferry and ferries, Москва and Москве. Pure.

Only endings of number and case, so that nothing else is meant: who says Reading does not mean to read.
"""

from __future__ import annotations

import re

from core.search.query import clean, has_operators, parse
from core.store.query import SearchPlan
from core.store.sqlite.text_index import bare

SHORTEST = 4
"""Letters of a word that is taken for the singular of another."""
_CYRILLIC = re.compile("[\u0430-\u044f\u0451]{3,}")
_CASES = "а я е у ю ы и о ь й ой ей ом ем ам ям ах ях ов ев ою ею ами ями ием ия ии ию"  # noqa: RUF001
_ENDINGS = ("", *_CASES.split())


def forms_of(word: str) -> tuple[str, ...]:
    """All forms of a folded word, itself first; only itself where nothing is known of its script."""
    if _CYRILLIC.fullmatch(word):
        found = _cases(word)
    elif word.isascii() and word.isalpha() and len(word) >= SHORTEST - 1:
        found = _numbers(word)
    else:
        found = []
    return tuple(dict.fromkeys((word, *found)))


def inflected(text: str) -> SearchPlan:
    """The plan of `core.search.query.parse` that is content with any form of each word, where there are plain words
    alone. `terms` has all forms of a word as one, with bars between them."""
    plan, words = parse(text), clean(text).split()
    if has_operators(text) or plan.single is None or plan.single[0] != "words" or list(plan.terms) != words:
        return plan
    groups = [forms_of(bare(word)) for word in words]
    expressions = [" OR ".join(f'"{form}"' for form in group) for group in groups]
    whole = " AND ".join(f"({expression})" for expression in expressions)
    return SearchPlan(
        alternatives=((("words", whole, False),),),
        ranking=(("words", " OR ".join(expressions)),),
        terms=tuple("|".join(group) for group in groups),
    )


def _numbers(word: str) -> list[str]:
    found = [f"{word}s", f"{word}es"]
    if word.endswith("y"):
        found.append(f"{word[:-1]}ies")
    if word.endswith("ies"):
        found.append(f"{word[:-3]}y")
    found += [word[: -len(ending)] for ending in ("s", "es") if word.endswith(ending)]
    return [form for form in found if len(form) >= SHORTEST]


def _cases(word: str) -> list[str]:
    """What its ending is cannot be told for sure, so whatever may be one is taken for it."""
    fitting = [ending for ending in _ENDINGS if word.endswith(ending) and len(word) - len(ending) >= SHORTEST - 1]
    return [word[: len(word) - len(one)] + ending for one in fitting for ending in _ENDINGS]
