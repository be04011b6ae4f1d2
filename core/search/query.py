"""What a person types as a query: its filters (``ferry role:assistant before:last week``), and a plan of its words for
the text indexes. Pure; any text gives a plan, none raises. docs/recall.md has all of it.

Words (all of them), ``OR``, ``NOT`` or a leading ``-``, ``"a phrase"``, ``prefix*``; OR binds loosest. A filter that
cannot be understood stays a word, and a note says so; times that a plain sentence mentions never filter: people
misremember.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice
from typing import NamedTuple, cast, get_args
from zoneinfo import ZoneInfo

from core.dates import periods
from core.store.query import DEFAULT_ROLES, Clause, Phrase, SearchPlan, SearchQuery
from core.text import normalize
from core.text.normalize import LIMIT_TERMS, WORD, bare, clean, pairs_of, pieces, signed_terms, symbol_token, words_of
from core.text.terms import apart, asked_terms, telling_words
from core.text.variants import forms_of
from core.types import Role

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
    sizes: dict[Clause, int] = {}
    for token, is_excluded in _tokens(clean(text)):
        if token[4] == "OR":
            alternatives.append([])
            continue
        clause = _bare(token[4], is_excluded) if token[4] else _clause(token[2], is_excluded, bool(token[3]))
        if clause is None or clause in alternatives[-1]:
            continue
        if clause in sizes or sum(sizes.values()) < LIMIT_TERMS:
            sizes[clause] = max(1, sum(len(mark.split()) for mark in clause.marks))
            alternatives[-1].append(clause)
    if len(text := text.strip()) == 1 and text.isascii() and text.isalpha():
        # What has C alone counts for more, so it comes before C++ and C#.
        signed = Phrase((*signed_terms(f"{text}++"), *signed_terms(f"{text}#")))
        alternatives.insert(0, [*alternatives[0] * 5, Clause((signed,), is_excluded=True)])
    return _plan(one for one in alternatives if not all(clause.is_excluded for clause in one))


def _plan(asked: Iterable[Iterable[Clause]]) -> SearchPlan:
    alternatives = tuple(dict.fromkeys(map(tuple, asked)))  # of the same one twice each costs a look-up
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
    words = telling_words(typed)
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
            words, signed = words_of(head), signed_terms(head)
            forms = [head]
            if len(signed) == 1 and len(words) <= 1:
                # With a sign (C++) both forms are wanted, and only the signed one is excluded.
                forms = signed if is_excluded else [head, *signed]
            phrases.append(Phrase(tuple(forms), is_open))
            marks.append(" ".join(words) + ("*" if is_open else ""))
        else:
            run = " ".join(pairs_of(part)[:LIMIT_TERMS]) or part
            phrases.append(Phrase((run if kind == "run" else symbol_token(part),)))
            marks.append(part)
    return Clause(tuple(dict.fromkeys(phrases)), tuple(marks), is_excluded) if phrases else None


def _head(part: str) -> str:
    """The first words of a long phrase, up to a blank where one is near: a word must not be cut."""
    words = list(islice(WORD.finditer(part), LIMIT_PHRASE))
    if len(words) < LIMIT_PHRASE:
        return part
    end = words[-1].end()
    blank = _BLANK.search(part, end, end + 64)
    return part[: end if blank is None else blank.start()]


_ME = frozenset({"me", "myself", "i", "user"})
_YOU = frozenset({"you", "yourself", "assistant", "bot", "mneme"})
_PLATFORMS = {"telegram", "discord", "terminal", "cron", "import", "slack", "web", "chatgpt", "claude", "hermes"}
"""What ``on:`` takes for a platform without doubt; ``platform:`` takes any name."""
_TIMES = frozenset({"before", "until", "after", "since", "during"})
_LIKE_ASCII = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2033": '"', "\uff1a": ":"})
"""Each for one character, so that places in the text stay."""
LOOK_CHARS = 10_000
VALUE_CHARS = 200
_SHOWN_CHARS = 40
_NAME = re.compile(r"[\w.-]{1,40}")
_NUMBER = re.compile(r"#?(\d{1,18})", re.ASCII)
_PIECE = re.compile(
    r'"[^"]*"|(?<!\S)(?P<minus>-?)(?P<key>role|platform|on|title|from|in|before|until|after|since|during|page|around):'
    r'(?:"(?P<quoted>[^"]*)"|(?P<bare>[^\s"]*))',
    re.IGNORECASE,
)
_WORD = re.compile(r"\s{0,8}([^\s\"]{1,40})")


class Filters(NamedTuple):
    """The query without its filters' text; `notes` are sentences about what was not understood."""

    query: SearchQuery
    notes: tuple[str, ...] = ()


def read_filters(query: SearchQuery, now: datetime, zone: ZoneInfo) -> Filters:
    """Takes the filters out of the query's text; dates are those of `zone`. A query of prose comes back as it is."""
    text = query.text[:LOOK_CHARS].translate(_LIKE_ASCII)
    if query.is_prose or ":" not in text:
        return Filters(query)
    narrowed, notes, kept = query, list[str](), list[str]()
    position = 0
    while (found := _PIECE.search(text, position)) is not None:
        taken = _taken(narrowed, found, found["key"].lower(), now, zone) if found["key"] else ""
        if isinstance(taken, tuple):
            kept.append(query.text[position : found.start()])
            narrowed, position = taken
        else:
            notes += [taken] if taken else []
            kept.append(query.text[position : found.end()])
            position = found.end()
    words = "".join([*kept, query.text[position:]])
    return Filters(replace(narrowed, text=words if words.strip() else ""), tuple(notes[:3]))


def unlimited(query: SearchQuery) -> SearchQuery:
    """The same words without any filter, from the first page on."""
    return replace(
        query, roles=DEFAULT_ROLES, platforms=(), title=None, sender=None, is_own=False, before=None, after=None,
        session=None, page=1,
    )  # fmt: skip


def next_page(text: str) -> str:
    """The typed text for the page behind the one it asks for; the page stands in front, where nothing hides it."""
    page = 1

    def kept(found: re.Match[str]) -> str:
        nonlocal page
        is_page = (found["key"] or "").lower() == "page" and not found["minus"]
        if not is_page or not (number := _number(_value(found))):
            return found[0]
        page = number
        return ""

    rest = _PIECE.sub(kept, text[:LOOK_CHARS].translate(_LIKE_ASCII)) + text[LOOK_CHARS:]
    return f"page:{page + 1} {rest.strip()}".rstrip()


def said_by(query: SearchQuery, name: str) -> SearchQuery:
    """The query for what `name` said: a person's name, "me" for whoever asks, "you" for the assistant."""
    name = name.strip().removeprefix("@")
    if name.casefold() in _ME:
        return replace(query, roles=("user",), is_own=True, sender=None)
    if name.casefold() in _YOU:
        return replace(query, roles=("assistant",), is_own=False, sender=None)
    return replace(query, sender=name, is_own=False)


def within_time(query: SearchQuery, key: str, value: str, now: datetime, zone: ZoneInfo) -> SearchQuery | None:
    """The query narrowed by a time, besides what it asks already; None where `value` names none. ``before`` ends where
    it begins, ``until`` where it ends."""
    found = periods.read(value, now, zone)
    if found is None:
        return None
    start, end = found
    after = None if key in ("before", "until") else start
    before = {"before": start, "until": end, "on": end, "in": end, "during": end}.get(key)
    after = max(filter(None, (query.after, after)), default=None)
    return replace(query, after=after, before=min(filter(None, (query.before, before)), default=None))


def _taken(
    query: SearchQuery, found: re.Match[str], key: str, now: datetime, zone: ZoneInfo
) -> tuple[SearchQuery, int] | str:
    """The query narrowed by a filter, and where that ends in the text; a note where it is words."""
    value, typed = _value(found), _shown(found[0])
    if found["minus"]:
        return f"Filters cannot be turned round with a minus; “{typed}” was taken as words."
    if not value:
        return f"There is nothing behind “{typed}”, so it was taken as a word."
    if key in _TIMES or key == "on" or (key == "in" and _number(value) is None):
        for words, end in reversed(list(_words_behind(found, value))):
            if (narrowed := within_time(query, key, words, now, zone)) is not None:
                return narrowed, end
    if (named := _named(query, key, value)) is None:
        unknown = normalize.language_data("filters", "core.search")
        return f"“{_shown(value)}” {unknown.get(key) or unknown['date']}; “{typed}” was taken as words."
    return named, found.end()


def _words_behind(found: re.Match[str], value: str) -> Iterator[tuple[str, int]]:
    """The value and, where it has no quotes, with as many words behind it as a time may have; each with its end."""
    end = found.end()
    yield value, end
    for _ in range(0 if found["quoted"] is not None else periods.WORDS - 1):
        word = _WORD.match(found.string, end)
        if word is None or _PIECE.match(found.string, word.start(1)):
            return
        value, end = f"{value} {word[1]}", word.end()
        yield value, end


def _named(query: SearchQuery, key: str, value: str) -> SearchQuery | None:
    """The query narrowed by what is no time; None where the value names nothing."""
    number = _number(value)
    names = tuple(dict.fromkeys(name.strip().casefold() for name in value.split(",") if name.strip()))
    match key:
        case "title":
            return replace(query, title=value)
        case "from":
            return said_by(query, value)
        case "role" if names and set(names) <= set(get_args(Role)):
            return replace(query, roles=cast(tuple[Role, ...], names))
        case "on" | "platform" if names and all(map(_NAME.fullmatch, names)):
            if key == "platform" or _PLATFORMS.issuperset(names):
                return replace(query, platforms=tuple(dict.fromkeys([*query.platforms, *names])))
        case "in" if number:
            return replace(query, session=number)
        case "page" if number:
            return replace(query, page=number)
        case "around" if number:
            return replace(query, around=number)
    return None


def _value(found: re.Match[str]) -> str:
    return (found["quoted"] if found["quoted"] is not None else found["bare"]).strip()[:VALUE_CHARS]


def _number(value: str) -> int | None:
    found = _NUMBER.fullmatch(value)
    return int(found[1]) if found is not None else None


def _shown(text: str) -> str:
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ").split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
