"""Tells which facts say the same, and which nearly the same. Pure.

The same is what differs by filling words, accents and case alone: the order of words, numbers, names, tenses, words
like "not" and "to" all count. What is only alike is a matter for a person.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence

from core.records import Fact
from core.text.names import entity_key
from core.text.normalize import fold, plain, words_of
from core.text.terms import terms_of

ALIKE = 0.8
"""Jaccard similarity of terms from which on two facts are shown as nearly the same."""
TERMS_LEAST = 4
"""Shorter facts are alike by accident."""
_FILLING_WORDS = "a an the now nowadays currently really very also too just actually please btw"
_FILLING = frozenset(_FILLING_WORDS.split())


def the_same(facts: Sequence[Fact]) -> list[list[Fact]]:
    """Groups of two or more open facts of one person that say the same, in the order they came in."""
    groups: defaultdict[Hashable, list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.is_open:
            groups[(*_place(fact), fact.valid_from, _key(fact.content))].append(fact)
    return [group for group in groups.values() if len(group) > 1]


def alike(facts: Sequence[Fact]) -> Iterator[tuple[Fact, Fact]]:
    """Pairs that say nearly the same, the one that came in earlier first."""
    groups: defaultdict[Hashable, list[tuple[Fact, frozenset[str]]]] = defaultdict(list)
    for fact in facts:
        terms = frozenset(terms_of(fact.content))
        if fact.is_open and len(terms) >= TERMS_LEAST:
            names = frozenset(map(entity_key, fact.entities))
            numbers = frozenset(term for term in terms if term.isdecimal())
            groups[(*_place(fact), names, numbers)].append((fact, terms))
    for group in groups.values():
        for place, (fact, terms) in enumerate(group):
            for other, others in group[place + 1 :]:
                if len(terms & others) >= ALIKE * len(terms | others) and _key(fact.content) != _key(other.content):
                    yield fact, other


def kept_of(group: Sequence[Fact]) -> tuple[Fact, list[Fact]]:
    """Of facts that say the same the one to keep, and those it may take the place of: never what a person has written
    or pinned, nor what began at another time."""
    keep = max(
        group,
        key=lambda fact: (fact.origin == "person", fact.is_pinned, fact.valid_from is not None, fact.trust, fact.id),
    )
    drop = [
        fact
        for fact in group
        if fact.id != keep.id
        and fact.origin != "person"
        and not fact.is_pinned
        and fact.valid_from in (None, keep.valid_from)
        and fact.scope == keep.scope
        and fact.account == keep.account
    ]
    return keep, drop


def _place(fact: Fact) -> tuple[Hashable, ...]:
    return fact.scope, fact.account, fact.kind, fact.attribute, fact.value


def _key(content: str) -> tuple[str, ...]:
    return tuple(word for word in words_of(plain(fold(content))[0]) if word not in _FILLING)
