"""Parse the text of a search: filters such as ``role:assistant``, and words.

`extract_filters` moves the filters from the text to fields of the query. `plan_typed` and
`plan_any_word` turn the remaining words into a plan for the text indexes. By default, a message
must contain all words. ``OR`` has the lowest precedence, ``NOT`` or a leading ``-`` excludes a
word, ``"..."`` is a phrase, and ``word*`` is a prefix.

Every text is valid: these functions raise no exceptions for any query. An invalid filter is
searched as words, and a note says so. A time in a plain sentence is never a filter, because people
misremember times. See docs/recall.md for the whole syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice
from typing import NamedTuple, cast, get_args
from zoneinfo import ZoneInfo

from core.dates import period_name
from core.errors import Sentence
from core.store.query import (
    FILE_KINDS,
    Clause,
    Phrase,
    SearchFilters,
    SearchPlan,
    SearchQuery,
    TextKind,
)
from core.text.normalize import (
    MAX_QUERY_TERMS,
    WORD_PATTERN,
    clean_query,
    comparison_form,
    pairs_of,
    signed_terms,
    split_by_script,
    symbol_token,
    words_of,
)
from core.text.runs import drop_covered_characters, question_run_terms
from core.text.terms import content_words
from core.text.variants import inflected_forms
from core.types import Role

MAX_PHRASE_WORDS = 16
"""Only this many words at the beginning of a phrase are searched.

The cost of a phrase grows with each word. A text with punctuation instead of spaces, such as a
path, is also a phrase.
"""
MIN_QUESTION_WORDS = 3
"""A text with fewer words consists of keywords and isn't a question."""
SHORT_QUERY_WEIGHT = 5
"""A single letter has this many times the usual weight, so "C" ranks before "C++" and "C#"."""

_OPERATOR = re.compile(r'"|(?:^|\s)(?:OR|AND|NOT|-\w\S*|\w\S*\*)(?=\s|$)')
"""A quotation mark or an operator: ``OR``, ``-bus``, ``ferr*``."""
_BLANK = re.compile(r"\s")
_BLANK_SEARCH_CHARS = 64
# A word as in a sentence, with punctuation around it: "(don't", "well-known,".
_PLAIN_WORD = re.compile(
    rf"['’(]*{WORD_PATTERN.pattern}(?:['’-]{WORD_PATTERN.pattern})*['’).,;:!?…]*"
)
_TOKEN = re.compile(r'(?P<minus>-?)"(?P<phrase>[^"]*)"(?P<star>\*?)|(?P<word>[^\s"]+)')
"""A phrase such as ``-"by the sea"`` or ``"by the se"*``, or a word."""


class _Token(NamedTuple):
    """A word, a phrase or the operator ``OR`` of a typed query."""

    # The token as typed, with quotation marks, minus and asterisk.
    source: str
    # The text without quotation marks, minus and asterisk.
    text: str
    is_or: bool = False
    is_prefix: bool = False
    is_excluded: bool = False


def plan_typed(text: str) -> SearchPlan:
    """Plan a search for all words of a text that follows the text's operators.

    The plan is empty if the text has no words, or only excluded words.
    """
    alternatives: list[list[Clause]] = [[]]
    # The number of words that each clause looks up. All clauses share a limit.
    clause_sizes: dict[Clause, int] = {}
    for token in _tokens(clean_query(text)):
        if token.is_or:
            alternatives.append([])
            continue
        clause = _clause(token)
        if clause is None or clause in alternatives[-1]:
            continue
        # A clause that is already looked up for another alternative costs nothing.
        if clause in clause_sizes or sum(clause_sizes.values()) < MAX_QUERY_TERMS:
            words = sum(len(highlight.split()) for highlight in clause.highlights)
            clause_sizes[clause] = max(1, words)
            alternatives[-1].append(clause)

    letter = text.strip()
    if len(letter) == 1 and letter.isascii() and letter.isalpha():
        signed_letter = Phrase((*signed_terms(f"{letter}++"), *signed_terms(f"{letter}#")))
        # This alternative matches "C" but not "C++" or "C#". Its repeated clause ranks it first.
        letter_alone = [
            *alternatives[0] * SHORT_QUERY_WEIGHT,
            Clause((signed_letter,), is_excluded=True),
        ]
        alternatives.insert(0, letter_alone)
    # An alternative must contain a clause that isn't excluded.
    return _plan(
        clauses for clauses in alternatives if not all(clause.is_excluded for clause in clauses)
    )


def plan_any_word(text: str) -> SearchPlan:
    """Plan a search for any word of a text, except stop words.

    Text in a script without spaces is searched by pairs of characters, except pairs that only mark
    a question. If the text has only stop words, they are searched.
    """
    parts: dict[str, list[str]] = {"words": [], "run": [], "symbol": []}
    for kind, part in split_by_script(clean_query(text)):
        parts[kind].append(part)
    spaced_text = " ".join(parts["words"])
    runs = parts["run"]
    symbols = parts["symbol"]

    typed_words = [word.casefold() for word in words_of(spaced_text)]
    words = content_words(typed_words)
    run_terms = drop_covered_characters(list(chain.from_iterable(map(question_run_terms, runs))))
    if not run_terms and not words and not symbols:
        # The text has only stop words, or only characters that mark a question.
        run_terms = runs
        words = [] if runs else typed_words

    # The texts to highlight for each term. Terms of words with a sign ("C++") have none, because
    # the word without the sign is highlighted.
    highlights: dict[str, tuple[str, ...]] = dict.fromkeys(signed_terms(spaced_text), ())
    for word in words[:MAX_QUERY_TERMS]:
        highlights[word] = (word,)
    unspaced_terms = _unspaced_terms(run_terms, symbols)
    highlights |= dict(islice(unspaced_terms.items(), MAX_QUERY_TERMS))
    return _plan([Clause((Phrase((term,)),), texts)] for term, texts in highlights.items())


def _unspaced_terms(runs: Iterable[str], symbols: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the index terms of text without spaces, and for each term the texts to highlight."""
    terms: dict[str, tuple[str, ...]] = {}
    for run in runs:
        for pair in pairs_of(run) or [run]:
            terms[pair] = (pair,)
    for symbol in symbols:
        terms[symbol_token(symbol)] = (symbol,)
    return terms


def plan_inflected(text: str) -> SearchPlan:
    """Plan a search like `plan_typed`, but let plain words also match their inflected forms.

    The highlights contain all forms of a word, separated by bars: ``ferry|ferries``. If the text
    has operators, symbols or scripts without spaces, return the plan of `plan_typed`.
    """
    plan = plan_typed(text)
    query = clean_query(text)
    words = query.split()
    is_plain = all(kind == "words" for kind, _ in split_by_script(query))
    if not words or _OPERATOR.search(query) or not is_plain or list(plan.highlights) != words:
        return plan
    clauses = []
    for word in words:
        forms = inflected_forms(comparison_form(word))
        clauses.append(Clause((Phrase(forms),), ("|".join(forms),)))
    return _plan([clauses])


def plan_excluded(text: str) -> SearchPlan:
    """Plan a search for messages with any of the words that a query excludes."""
    alternatives = []
    for token in _tokens(clean_query(text)):
        clause = _clause(token) if token.is_excluded else None
        if clause is not None:
            alternatives.append([clause._replace(is_excluded=False)])
    return _plan(alternatives)


def strip_operators(text: str) -> str:
    """Return a text without operators and excluded words."""
    return " ".join(
        token.source
        for token in _tokens(clean_query(text))
        if not token.is_excluded and not token.is_or
    )


def is_question(text: str) -> bool:
    """Return whether a text is a question or sentence, not a list of keywords.

    A question has at least three words, or four characters in a script without spaces. It must end
    with a question mark or consist of plain words that aren't all numbers. A text with operators is
    never a question.
    """
    query = clean_query(text)
    if _OPERATOR.search(query):
        return False
    parts = split_by_script(query)
    # Four characters without spaces have three pairs, which count like three words.
    size = 0
    for kind, part in parts:
        size += len(words_of(part)) if kind == "words" else len(part) - 1
    if size < MIN_QUESTION_WORDS:
        return False
    if query.rstrip().endswith(("?", "\u061f")):
        return True
    words = query.split()
    has_only_words = all(kind == "words" for kind, _ in parts)
    is_plain = has_only_words and all(map(_PLAIN_WORD.fullmatch, words))
    return is_plain and not all(word.isdecimal() for word in words)


def _plan(alternatives: Iterable[Iterable[Clause]]) -> SearchPlan:
    """Build a plan from alternatives, and drop duplicates."""
    unique = tuple(dict.fromkeys(map(tuple, alternatives)))
    highlights: dict[str, None] = {}
    for clauses in unique:
        for clause in clauses:
            if not clause.is_excluded:
                highlights.update(dict.fromkeys(clause.highlights))
    return SearchPlan(unique, tuple(highlights))


def _tokens(text: str) -> Iterator[_Token]:
    """Split a query into words, phrases and ``OR``.

    ``NOT`` marks the next token as excluded. ``AND`` is skipped, because all words must match.
    """
    is_excluded = False
    for match in _TOKEN.finditer(text):
        word = match["word"]
        if word in ("AND", "NOT"):
            is_excluded = word == "NOT"
            continue
        if word == "OR":
            yield _Token(word, word, is_or=True)
        elif word is not None:
            yield _word_token(word, is_excluded)
        else:
            yield _Token(
                match[0],
                match["phrase"],
                is_prefix=bool(match["star"]),
                is_excluded=is_excluded or bool(match["minus"]),
            )
        is_excluded = False


def _word_token(source: str, is_excluded: bool) -> _Token:
    """Build the token of a word, without the minus before it and the asterisk after it."""
    text = source
    if text.startswith("-") and not text.startswith("--"):
        is_excluded = True
        text = text[1:]
    is_prefix = text.endswith("*") and not text.startswith("*")
    if is_prefix:
        text = text.rstrip("*")
    return _Token(source, text, is_prefix=is_prefix, is_excluded=is_excluded)


def _clause(token: _Token) -> Clause | None:
    """Return the clause for a word or phrase, or None if it has no letter, digit or symbol.

    Words in scripts with spaces are searched as typed, and scripts without spaces by pairs of
    characters. Symbols such as emoji are searched by special terms (see `symbol_token`).
    """
    phrases: list[Phrase] = []
    highlights: list[str] = []
    parts = split_by_script(token.text)
    for index, (kind, part) in enumerate(parts):
        if kind == "words":
            is_last = index == len(parts) - 1
            phrase, highlight = _word_phrase(part, token, is_last=is_last)
        elif kind == "run":
            pairs = " ".join(pairs_of(part)[:MAX_QUERY_TERMS])
            phrase, highlight = Phrase((pairs or part,)), part
        else:
            phrase, highlight = Phrase((symbol_token(part),)), part
        phrases.append(phrase)
        highlights.append(highlight)
    if not phrases:
        return None
    return Clause(tuple(dict.fromkeys(phrases)), tuple(highlights), token.is_excluded)


def _word_phrase(part: str, token: _Token, *, is_last: bool) -> tuple[Phrase, str]:
    """Return the phrase for words in a script with spaces, and the text to highlight.

    A word with a sign ("C++") also matches without the sign ("C"). But the exclusion "-C++" doesn't
    exclude "C".
    """
    head = _first_words(part)
    words = words_of(head)
    signed_forms = signed_terms(head)
    forms = [head]
    if len(signed_forms) == 1 and len(words) <= 1:
        forms = signed_forms if token.is_excluded else [head, *signed_forms]
    is_prefix = token.is_prefix and is_last and head == part
    highlight = " ".join(words)
    if is_prefix:
        highlight += "*"
    return Phrase(tuple(forms), is_prefix), highlight


def _first_words(phrase: str) -> str:
    """Return the first `MAX_PHRASE_WORDS` words of a phrase.

    If there is a space nearby, the phrase is cut there, so that a word with punctuation stays
    whole.
    """
    words = list(islice(WORD_PATTERN.finditer(phrase), MAX_PHRASE_WORDS))
    if len(words) < MAX_PHRASE_WORDS:
        return phrase
    end = words[-1].end()
    blank = _BLANK.search(phrase, end, end + _BLANK_SEARCH_CHARS)
    return phrase[: end if blank is None else blank.start()]


MAX_FILTER_TEXT_CHARS = 10_000
"""Filters are recognized only in this many characters at the beginning of a query."""
MAX_VALUE_CHARS = 200
# The sentence about an invalid value, for the filters that don't take dates.
_INVALID_VALUES: Mapping[str, str] = {
    "role": "filter_role",
    "platform": "filter_platform",
    "on": "filter_on",
    "in": "filter_in",
    "has": "filter_has",
    "page": "filter_page",
    "around": "filter_around",
}
MAX_NOTES = 3

_MAX_QUOTED_CHARS = 40
_ASKER_NAMES = frozenset({"me", "myself", "i", "user"})
_ASSISTANT_NAMES = frozenset({"you", "yourself", "assistant", "bot", "mneme"})
_PLATFORMS = frozenset(
    [
        "telegram",
        "discord",
        "terminal",
        "cron",
        "import",
        "slack",
        "web",
        "chatgpt",
        "claude",
        "hermes",
    ]
)
"""The values of ``on:`` that are platforms. All other values of ``on:`` are days. ``platform:``
accepts any name."""
_TIME_KEYS = frozenset({"before", "until", "after", "since", "during"})
_ASCII_PUNCTUATION = str.maketrans(
    {"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2033": '"', "\uff1a": ":"}
)
"""Replaces typographic quotation marks and colons with ASCII. Positions in the text don't
change."""
_NAME = re.compile(r"[\w.-]{1,40}")
_NUMBER = re.compile(r"#?(\d{1,18})", re.ASCII)
"""The number of a session, message or page: ``12`` or ``#12``."""
_FILTER = re.compile(
    r'"[^"]*"'
    r"|(?<!\S)(?P<minus>-?)"
    r"(?P<key>role|platform|on|title|from|has|in|before|until|after|since|during|page|around):"
    r'(?:"(?P<quoted>[^"]*)"|(?P<bare>[^\s"]*))',
    re.IGNORECASE,
)
"""Matches a filter such as ``from:ana`` or ``title:"sea trip"``, or a whole quoted phrase.

The pattern also matches phrases, so that the text inside a phrase is never read as a filter.
"""
_FILE_NAME = re.compile(r".*\w\.[A-Za-z]\w{0,7}")
"""The name of a file: ``contract.pdf``."""
_NEXT_WORD = re.compile(r"\s{0,8}([^\s\"]{1,40})")
# A word of a time has a letter, a digit, or a dash of a range.
_WORD_OF_TIME = re.compile(r"[\w\-\u2013\u2014]")


class FilteredQuery(NamedTuple):
    """A query whose filters were moved from its text to its fields, with notes."""

    query: SearchQuery
    # A sentence about each filter that couldn't be understood.
    notes: tuple[Sentence, ...] = ()


class _FilterOutcome(NamedTuple):
    """A query after an attempt to apply one filter, with a note if the filter wasn't applied."""

    query: SearchQuery
    # The position in the text where the filter ends.
    end: int
    # Says why the filter stays in the text as words. None if the filter was applied.
    note: Sentence | None = None


def extract_filters(query: SearchQuery, now: datetime, zone: ZoneInfo) -> FilteredQuery:
    """Move the filters from the text of a typed query to its fields.

    Dates are in the time zone `zone`. Other kinds of queries are returned unchanged.
    """
    text = query.text[:MAX_FILTER_TEXT_CHARS].translate(_ASCII_PUNCTUATION)
    if query.kind is not TextKind.TYPED or ":" not in text:
        return FilteredQuery(query)
    narrow_query = query
    notes: list[Sentence] = []
    words: list[str] = []
    position = 0
    while (match := _FILTER.search(text, position)) is not None:
        # `translate` keeps the length, so positions in `text` are the same in `query.text`.
        words.append(query.text[position : match.start()])
        position = match.end()
        # A match without a key is a quoted phrase, which stays in the text.
        if match["key"] is not None:
            outcome = _apply_filter(narrow_query, match, now, zone)
            if outcome.note is None:
                narrow_query, position = outcome.query, outcome.end
                continue
            notes.append(outcome.note)
        words.append(query.text[match.start() : match.end()])
    remaining = "".join([*words, query.text[position:]])
    if not remaining.strip():
        remaining = ""
    return FilteredQuery(replace(narrow_query, text=remaining), tuple(notes[:MAX_NOTES]))


def remove_filters(query: SearchQuery) -> SearchQuery:
    """Return a copy of a query without filters, set to its first page."""
    return replace(query, filters=SearchFilters(), limits=replace(query.limits, page=1))


def text_for_next_page(text: str) -> str:
    """Return a typed query with a ``page:`` filter for its next page.

    The filter comes first, because after an unclosed quotation mark it would be part of a phrase.
    """
    page, text_without_page = split_page(text)
    return f"page:{page + 1} {text_without_page}".rstrip()


def split_page(text: str) -> tuple[int, str]:
    """Return the page that a typed query asks for, and the query without its ``page:`` filter."""
    head = text[:MAX_FILTER_TEXT_CHARS].translate(_ASCII_PUNCTUATION)
    page = 1
    parts: list[str] = []
    position = 0
    for match in _FILTER.finditer(head):
        is_page = (match["key"] or "").lower() == "page" and not match["minus"]
        number = _parse_number(_filter_value(match)) if is_page else None
        if number:
            page = number
            parts.append(head[position : match.start()])
            position = match.end()
    parts += [head[position:], text[MAX_FILTER_TEXT_CHARS:]]
    return page, "".join(parts).strip()


def split_filters(text: str) -> tuple[str, list[str]]:
    """Return a typed query without its filters, and the filters as typed.

    The filter ``page:`` is dropped.
    """
    head = text[:MAX_FILTER_TEXT_CHARS].translate(_ASCII_PUNCTUATION)
    words: list[str] = []
    filters: list[str] = []
    position = 0
    for match in _FILTER.finditer(head):
        if match["key"] is None:
            continue
        words.append(text[position : match.start()])
        position = match.end()
        if match["key"].lower() != "page":
            filters.append(text[match.start() : match.end()])
    words.append(text[position:])
    return " ".join("".join(words).split()), filters


def filter_by_speaker(query: SearchQuery, name: str) -> SearchQuery:
    """Limit a query to the messages of one speaker.

    `name` is a name, "me" for the asker, or "you" for the assistant.
    """
    name = name.strip().removeprefix("@")
    key = name.casefold()
    if key in _ASKER_NAMES:
        filters = replace(query.filters, roles=("user",), is_askers_own=True, sender=None)
    elif key in _ASSISTANT_NAMES:
        filters = replace(query.filters, roles=("assistant",), is_askers_own=False, sender=None)
    else:
        filters = replace(query.filters, sender=name, is_askers_own=False)
    return replace(query, filters=filters)


def filter_by_time(
    query: SearchQuery, key: str, value: str, now: datetime, zone: ZoneInfo
) -> SearchQuery | None:
    """Limit a query to a time. Returns None if `value` isn't a time.

    `key` is the name of the filter, such as "before". "before:may" ends the search when May begins,
    and "until:may" when May ends. Earlier limits of the query still apply.
    """
    period = period_name.read_period(value, now, zone)
    if period is None:
        from core.dates.coming_day import read_coming_day

        period = read_coming_day(value, now, zone)
    if period is None:
        return None
    start, end = period
    after = query.filters.after
    before = query.filters.before
    if key not in ("before", "until"):
        after = start if after is None else max(after, start)
    if key == "before":
        before = start if before is None else min(before, start)
    elif key in ("until", "on", "in", "during"):
        before = end if before is None else min(before, end)
    return replace(query, filters=replace(query.filters, after=after, before=before))


def _apply_filter(
    query: SearchQuery, match: re.Match[str], now: datetime, zone: ZoneInfo
) -> _FilterOutcome:
    """Limit a query by a filter in its text, or explain why the filter is searched as words."""
    key = match["key"].lower()
    value = _filter_value(match)
    source = _quote(match[0])
    if match["minus"]:
        note = Sentence("filter_negated", {"source": source})
        return _FilterOutcome(query, match.end(), note)
    if not value:
        note = Sentence("filter_empty", {"source": source})
        return _FilterOutcome(query, match.end(), note)

    may_be_time = key in _TIME_KEYS or key == "on"
    if key == "in":
        may_be_time = _parse_number(value) is None
    if may_be_time:
        # Times may have several words. In "since:3 May I", the longest time is "3 May".
        for words, end in reversed(list(_extend_value(match, value))):
            narrow_query = filter_by_time(query, key, words, now, zone)
            if narrow_query is not None:
                return _FilterOutcome(narrow_query, end)

    narrow_query = _filter_by_value(query, key, value)
    if narrow_query is None:
        values = {"value": _quote(value), "source": source}
        note = Sentence(_INVALID_VALUES.get(key, "filter_date"), values)
        return _FilterOutcome(query, match.end(), note)
    return _FilterOutcome(narrow_query, match.end())


def _extend_value(match: re.Match[str], value: str) -> Iterator[tuple[str, int]]:
    """Yield the value of a time filter: first alone, then with the words after it.

    Each value is paired with the position in the text where it ends. A quoted value isn't extended,
    and no value extends beyond the next filter or a word of signs, such as "|" in a table.
    """
    end = match.end()
    yield value, end
    if match["quoted"] is not None:
        return
    for _ in range(period_name.MAX_PERIOD_WORDS - 1):
        word = _NEXT_WORD.match(match.string, end)
        if word is None or _FILTER.match(match.string, word.start(1)):
            return
        if not _WORD_OF_TIME.search(word[1]):
            return
        value = f"{value} {word[1]}"
        end = word.end()
        yield value, end


def _filter_by_value(query: SearchQuery, key: str, value: str) -> SearchQuery | None:
    """Limit a query by a filter that isn't a time.

    Returns None if the filter's value is invalid.
    """
    number = _parse_number(value)
    names = tuple(
        dict.fromkeys(name.strip().casefold() for name in value.split(",") if name.strip())
    )
    filters = query.filters
    match key:
        case "title":
            return replace(query, filters=replace(filters, title=value))
        case "from":
            return filter_by_speaker(query, value)
        case "role" if names and set(names) <= set(get_args(Role)):
            roles = cast(tuple[Role, ...], names)
            return replace(query, filters=replace(filters, roles=roles))
        case "on" | "platform" if names and all(map(_NAME.fullmatch, names)):
            if key == "platform" or _PLATFORMS.issuperset(names):
                platforms = tuple(dict.fromkeys([*filters.platforms, *names]))
                return replace(query, filters=replace(filters, platforms=platforms))
        case "in" if number:
            return replace(query, filters=replace(filters, session_id=number))
        case "page" if number:
            return replace(query, limits=replace(query.limits, page=number))
        case "around" if number:
            return replace(query, around=number)
    return _filter_by_file(query, key, value)


def _filter_by_file(query: SearchQuery, key: str, value: str) -> SearchQuery | None:
    """Limit a query to messages with files of a kind or name.

    Returns None if the value is invalid.
    """
    kind = value.casefold()
    if key == "has" and kind in FILE_KINDS:
        return replace(query, filters=replace(query.filters, file_kind=kind))
    if key == "in" and _FILE_NAME.fullmatch(value):
        return replace(query, filters=replace(query.filters, file_name=value))
    return None


def _filter_value(match: re.Match[str]) -> str:
    value = match["quoted"] if match["quoted"] is not None else match["bare"]
    return value.strip()[:MAX_VALUE_CHARS]


def _parse_number(value: str) -> int | None:
    match = _NUMBER.fullmatch(value)
    return int(match[1]) if match is not None else None


def _quote(text: str) -> str:
    """Return the beginning of a typed text on one line, for use in a note."""
    valid = text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
    line = " ".join(valid.split())
    if len(line) <= _MAX_QUOTED_CHARS:
        return line
    return line[: _MAX_QUOTED_CHARS - 1] + "…"
