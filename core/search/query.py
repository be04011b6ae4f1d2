"""What a person types becomes a plan for the text indexes. Pure; any text gives a plan, none raises.

Words (all of them), ``OR``, ``NOT`` or a leading ``-``, ``"a phrase"``, ``prefix*``; OR binds loosest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from core.store.query import Clause, Phrase, SearchPlan
from core.text.cjk import apart, asked_terms
from core.text.normalize import LIMIT_TERMS, WORD, bare, clean, pairs_of, pieces, signed_terms, symbol_token, words_of
from core.text.terms import stop_words
from core.text.variants import forms_of

LIMIT_PHRASE = 16
"""What is in quotes, or has signs where others have blanks, is looked for by so many of its first words. A common word
costs a look at all that has it, also for the hundredth time."""
QUESTION_WORDS = 3
"""Two words are asked for together."""

_OPERATOR = re.compile(r'"|(?:^|\s)(?:OR|AND|NOT|-\w\S*|\w\S*\*)(?=\s|$)')
_BLANK = re.compile(r"\s")
_PLAIN = re.compile(rf"['’(]*{WORD.pattern}(?:['’-]{WORD.pattern})*['’).,;:!?…]*")
_TOKEN = re.compile(r'(-?)"([^"]*)"(\*?)|([^\s"]+)')


def parse(text: str) -> SearchPlan:
    """The plan of a query; empty where there are only words to leave out, or none at all."""
    alternatives: list[list[Clause]] = [[]]
    count = 0
    for token, is_excluded in _tokens(clean(text)):
        if token[4] == "OR":
            alternatives.append([])
            continue
        clause = _bare(token[4], is_excluded) if token[4] else _clause(token[2], is_excluded, bool(token[3]))
        if clause is not None and count < LIMIT_TERMS and clause not in alternatives[-1]:
            count += max(1, sum(len(mark.split()) for mark in clause.marks))
            alternatives[-1].append(clause)
    if len(text := text.strip()) == 1 and text.isascii() and text.isalpha():
        # What has C alone counts for more, so it comes before C++ and C#.
        signed = Phrase((*signed_terms(f"{text}++"), *signed_terms(f"{text}#")))
        alternatives.insert(0, [*alternatives[0] * 5, Clause((signed,), is_excluded=True)])
    return _plan(one for one in alternatives if not all(clause.is_excluded for clause in one))


def _plan(asked: Iterable[Iterable[Clause]]) -> SearchPlan:
    alternatives = tuple(map(tuple, asked))
    wanted = [clause for clauses in alternatives for clause in clauses if not clause.is_excluded]
    return SearchPlan(alternatives, tuple(dict.fromkeys(mark for clause in wanted for mark in clause.marks)))


def _tokens(text: str) -> Iterator[tuple[re.Match[str], bool]]:
    """Words, quotations and ``OR``, and whether one is to be left out."""
    is_excluded = False
    for token in _TOKEN.finditer(text):
        if token[4] in ("AND", "NOT"):
            is_excluded = token[4] == "NOT"
            continue
        yield token, is_excluded or bool(token[1])
        is_excluded = False


def any_of(text: str) -> SearchPlan:
    """The plan for any of the words but stop words; unspaced scripts count by pairs, without words that only ask."""
    kinds: dict[str, list[str]] = {"words": [], "run": [], "symbol": []}
    for kind, part in pieces(clean(text)):
        kinds[kind].append(part)
    spaced, runs, symbols = " ".join(kinds["words"]), kinds["run"], kinds["symbol"]
    typed = [word.casefold() for word in words_of(spaced)]
    words = [word for word in typed if word not in stop_words()]
    asked = apart(list(chain.from_iterable(map(asked_terms, runs))))
    if not asked and not words and not symbols:
        asked, words = runs, [] if runs else typed
    marks: dict[str, tuple[str, ...]] = dict.fromkeys(signed_terms(spaced), ())
    marks |= {word: (word,) for word in words[:LIMIT_TERMS]}
    pairs = {pair: (pair,) for term in asked for pair in pairs_of(term) or [term]}
    pairs |= {symbol_token(symbol): (symbol,) for symbol in symbols}
    marks |= dict(islice(pairs.items(), LIMIT_TERMS))
    return _plan([Clause((Phrase((word,)),), mark)] for word, mark in marks.items())


def inflected(text: str) -> SearchPlan:
    """`parse`, but plain words match in any of their forms; the marks are the forms of a word with bars between."""
    plan, typed = parse(text), clean(text)
    words = typed.split()
    is_plain = all(kind == "words" for kind, _ in pieces(typed))
    if not words or _OPERATOR.search(typed) or not is_plain or list(plan.terms) != words:
        return plan
    forms = [forms_of(bare(word)) for word in words]
    return _plan([[Clause((Phrase(one),), ("|".join(one),)) for one in forms]])


def asked_for(text: str) -> str:
    """The text without operators and what they exclude, for a search by any of its words."""
    return " ".join(
        token[0]
        for token, is_excluded in _tokens(clean(text))
        if not is_excluded and token[4] != "OR" and not re.match("-(?!-)", token[4] or "")
    )


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


def _bare(text: str, is_excluded: bool) -> Clause | None:
    if text.startswith("-") and not text.startswith("--"):
        is_excluded, text = True, text[1:]
    is_prefix = text.endswith("*") and not text.startswith("*")
    return _clause(text.rstrip("*") if is_prefix else text, is_excluded, is_prefix)


def _clause(text: str, is_excluded: bool, is_prefix: bool) -> Clause | None:
    """Words as they stand, runs by their pairs one behind the other, symbols by their tokens."""
    phrases: list[Phrase] = []
    marks: list[str] = []
    cut = pieces(text)
    for index, (kind, part) in enumerate(cut):
        if kind == "words":
            head = _head(part)
            is_open = is_prefix and index == len(cut) - 1 and head == part
            phrases.append(Phrase(_word(head, is_excluded), is_open))
            marks.append(" ".join(words_of(head)) + ("*" if is_open else ""))
        else:
            phrases.append(Phrase((_unspaced(part) if kind == "run" else symbol_token(part),)))
            marks.append(part)
    return Clause(tuple(dict.fromkeys(phrases)), tuple(marks), is_excluded) if phrases else None


def _unspaced(run: str) -> str:
    return " ".join(pairs_of(run)[:LIMIT_TERMS]) or run


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
