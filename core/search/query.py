"""What a person types becomes a plan for the text indexes. Pure; any text gives a plan, none raises.

Words (all of them), ``OR``, ``NOT`` or a leading ``-``, ``"a phrase"``, ``prefix*``; OR binds loosest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, product

from core.store.query import Clause, Phrase, Route, SearchPlan
from core.text.cjk import apart, asked_terms
from core.text.normalize import WORD, bare, pairs_of, pieces, signed_terms, symbol_token, words_of
from core.text.spelling import forms_of
from core.text.terms import LIMIT_TERMS, clean, stop_words

LIMIT_PHRASE = 16
"""What is in quotes, or has signs where others have blanks, is looked for by so many of its first words. A common word
costs a look at all that has it, also for the hundredth time."""
QUESTION_WORDS = 3
"""Two words are asked for together."""

_OPERATOR = re.compile(r'"|(?:^|\s)(?:OR|AND|NOT|-\w\S*|\w\S*\*)(?=\s|$)')
_BLANK = re.compile(r"\s")
_PLAIN = re.compile(rf"['’(]*{WORD.pattern}(?:['’-]{WORD.pattern})*['’).,;:!?…]*")
_TOKEN = re.compile(r'(-?)"([^"]*)"(\*?)|([^\s"]+)')


@dataclass(frozen=True, slots=True)
class _Term:
    """A quoted or bare term, cut into parts that each belong to one route. All of them have to match."""

    parts: tuple[tuple[Route, Phrase], ...]
    marks: tuple[str, ...]
    is_excluded: bool


def parse(text: str) -> SearchPlan:
    """The plan of a query; `is_typed` is False where there are only words to leave out, or none at all."""
    alternatives = _alternatives(clean(text))
    asked = [terms for terms in alternatives if not all(term.is_excluded for term in terms)]
    if not asked:
        return SearchPlan(is_typed=False)
    wanted = [term for terms in asked for term in terms if not term.is_excluded]
    return SearchPlan(
        alternatives=tuple(map(_clauses, islice(_split(asked), LIMIT_TERMS))),
        ranking=_ranking(part for term in wanted for part in term.parts),
        terms=_unique(mark for term in wanted for mark in term.marks),
    )


def _alternatives(text: str) -> list[list[_Term]]:
    alternatives: list[list[_Term]] = [[]]
    is_excluded = False
    count = 0
    for token in _TOKEN.finditer(text):
        bare = token[4]
        if bare == "OR":
            alternatives.append([])
            continue
        if bare in ("AND", "NOT"):
            is_excluded = bare == "NOT"
            continue
        if bare is None:
            term = _term(token[2], is_excluded or bool(token[1]), bool(token[3]))
        else:
            term = _bare(bare, is_excluded)
        is_excluded = False
        if term is not None and count < LIMIT_TERMS and term not in alternatives[-1]:
            count += max(1, sum(len(mark.split()) for mark in term.marks))
            alternatives[-1].append(term)
    return alternatives


def any_of(text: str) -> SearchPlan:
    """The plan for any of the words but stop words; unspaced scripts count by pairs, without words that only ask."""
    cut = pieces(clean(text))
    spaced = " ".join(_of_kind(cut, "words"))
    runs, symbols = _of_kind(cut, "run"), _of_kind(cut, "symbol")
    typed = [word.casefold() for word in words_of(spaced)]
    words = [word for word in typed if word not in stop_words()]
    asked = apart(list(chain.from_iterable(map(asked_terms, runs))))
    if not asked and not words and not symbols:
        asked, words = runs, [] if runs else typed
    words = list(_unique(words))[:LIMIT_TERMS]
    run_pairs = list(chain.from_iterable(pairs_of(term) or [term] for term in asked))
    pairs = _unique([*run_pairs, *map(symbol_token, symbols)])[:LIMIT_TERMS]
    spoken = _unique([*words, *signed_terms(spaced)])[:LIMIT_TERMS]
    return SearchPlan(
        ranking=_ranking(
            [*(("words", Phrase((word,))) for word in spoken), *(("pairs", Phrase((pair,))) for pair in pairs)]
        ),
        terms=_unique([*words, *[*run_pairs, *symbols][:LIMIT_TERMS]]),
        is_typed=False,
        is_loose=True,
    )


def _of_kind(cut: Iterable[tuple[str, str]], wanted: str) -> list[str]:
    return [part for kind, part in cut if kind == wanted]


def inflected(text: str) -> SearchPlan:
    """`parse`, but plain words match in any of their forms; `terms` has the forms of a word with bars between."""
    plan, typed = parse(text), clean(text)
    words = typed.split()
    routes = [clause.route for clauses in plan.alternatives for clause in clauses]
    if _OPERATOR.search(typed) or routes != ["words"] or list(plan.terms) != words:
        return plan
    phrases = tuple(Phrase(forms_of(bare(word))) for word in words)
    return SearchPlan(
        alternatives=((Clause("words", phrases),),),
        ranking=(("words", phrases),),
        terms=tuple("|".join(phrase.texts) for phrase in phrases),
    )


def asked_for(text: str) -> str:
    """The text without operators and what they exclude, for a search by any of its words."""
    kept: list[str] = []
    is_excluded = False
    for token in _TOKEN.finditer(clean(text)):
        bare = token[4]
        if bare in ("AND", "NOT"):
            is_excluded = bare == "NOT"
            continue
        is_left = is_excluded or bool(token[1]) or (bare is not None and re.match("-(?!-)", bare) is not None)
        is_excluded = False
        if not is_left and bare != "OR":
            kept.append(token[0])
    return " ".join(kept)


def is_question(text: str) -> bool:
    """Whether any of the words may answer: three plain words or more, or (four unspaced characters) a question mark."""
    whole = clean(text)
    if _OPERATOR.search(whole):
        return False
    cut = pieces(whole)
    size = sum(len(words_of(part)) if kind == "words" else len(part) - 1 for kind, part in cut)
    if size < QUESTION_WORDS:
        return False
    if whole.rstrip()[-1:] in ("?", "\u061f"):
        return True
    words = whole.split()
    is_plain = all(kind == "words" for kind, _ in cut) and all(map(_PLAIN.fullmatch, words))
    return is_plain and not all(word.isdecimal() for word in words)


def route(kind: str, part: str) -> Route:
    """The three-path dispatch: words, three or more characters of an unspaced script, or fewer (and emoji)."""
    if kind == "words":
        return "words"
    return "trigram" if kind == "run" and len(part) >= 3 else "pairs"


def _bare(text: str, is_excluded: bool) -> _Term | None:
    if text.startswith("-") and not text.startswith("--"):
        is_excluded, text = True, text[1:]
    is_prefix = text.endswith("*") and not text.startswith("*")
    return _term(text.rstrip("*") if is_prefix else text, is_excluded, is_prefix)


def _term(text: str, is_excluded: bool, is_prefix: bool) -> _Term | None:
    parts: list[tuple[Route, Phrase]] = []
    marks: list[str] = []
    cut = pieces(text)
    for index, (kind, part) in enumerate(cut):
        chosen = route(kind, part)
        if chosen == "words":
            head = _head(part)
            is_open = is_prefix and index == len(cut) - 1 and head == part
            part = head
            parts.append(("words", Phrase(_word(part, is_excluded), is_open)))
            marks.append(" ".join(words_of(part)) + ("*" if is_open else ""))
        else:
            texts = [part] if chosen == "trigram" else (pairs_of(part) or [part])
            parts += [(chosen, Phrase((one if kind == "run" else symbol_token(one),))) for one in texts]
            marks.append(part)
    return _Term(tuple(dict.fromkeys(parts)), tuple(marks), is_excluded) if parts else None


def _word(part: str, is_excluded: bool) -> tuple[str, ...]:
    """A word or a phrase; with a sign (``C++``) both forms are wanted, and only the signed one is excluded."""
    signed = signed_terms(part)
    if len(signed) != 1 or len(words_of(part)) > 1:
        return (part,)
    return (signed[0],) if is_excluded else (part, signed[0])


def _head(part: str) -> str:
    """The first words of a long phrase, up to a blank where one is near: a word must not be cut."""
    words = list(islice(WORD.finditer(part), LIMIT_PHRASE))
    if len(words) < LIMIT_PHRASE:
        return part
    end = words[-1].end()
    blank = _BLANK.search(part, end, end + 64)
    return part[: end if blank is None else blank.start()]


def _split(alternatives: Iterable[Sequence[_Term]]) -> Iterator[Sequence[_Term]]:
    """Excluded terms by route: where ``修改redis`` is not, there is either no 修改 or no redis."""
    for terms in alternatives:
        yield from product(*([term] if not term.is_excluded else _by_route(term) for term in terms))


def _by_route(term: _Term) -> list[_Term]:
    routes = dict.fromkeys(path for path, _ in term.parts)
    return [replace(term, parts=tuple(part for part in term.parts if part[0] == path)) for path in routes]


def _clauses(terms: Sequence[_Term]) -> tuple[Clause, ...]:
    wanted = _ranking(part for term in terms if not term.is_excluded for part in term.parts)
    return (
        *(Clause(path, phrases) for path, phrases in wanted),
        *(Clause(path, phrases, True) for term in terms if term.is_excluded for path, phrases in _ranking(term.parts)),
    )


def _ranking(parts: Iterable[tuple[Route, Phrase]]) -> tuple[tuple[Route, tuple[Phrase, ...]], ...]:
    by_route: dict[Route, dict[Phrase, None]] = {}
    for path, phrase in parts:
        by_route.setdefault(path, {})[phrase] = None
    return tuple((path, tuple(phrases)) for path, phrases in by_route.items())


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
