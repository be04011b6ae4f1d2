"""Build the results of a search: sessions with their best matches, and notes.

`core/search/rendering.py` renders the results as Markdown and JSON.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from core.errors import Sentence
from core.store.query import (
    FoundSession,
    Hit,
    MessageMatch,
    SearchQuery,
    SearchResults,
    ShownMessage,
    TextKind,
)
from core.store.rows import to_datetime
from core.store.search.excerpts import (
    BROWSE_MAX,
    MatchedSession,
    MatchRow,
    SessionExcerpts,
    describe_quote,
)
from core.text.normalize import LETTER_CLASS, is_unspaced, plain_with_offsets
from core.types import Session

MAX_SESSIONS = 10
MAX_PAGES = 10
MAX_MESSAGES = 1_000
MAX_MATCHES_SHOWN = 5
"""A session shows at most this many matches."""
MIN_FURTHER_SHARE = 0.5
"""In a search for a turn, a further message of a lineage needs at least this share of the best
message's score."""

MATCH_START = ">>>"
MATCH_END = "<<<"
"""The marks before and after a match in a snippet."""
ELLIPSIS = "…"
"""Marks where a text was cut."""
MARKED_MATCH = re.compile(f"{re.escape(MATCH_START)}(.+?){re.escape(MATCH_END)}")

Notes = tuple[Sentence, ...]
"""Sentences that explain how a query was changed, or why nothing was found."""

SOME_WORDS_NOTE = Sentence("recall_some_words")
NOT_AS_TYPED_NOTE = Sentence("recall_not_as_typed")
LAST_PAGE_NOTE = Sentence("recall_last_page")
NO_WORDS_NOTE = Sentence("recall_no_words")
DAMAGED_INDEX_NOTE = Sentence("recall_damaged_index")
_MAX_LISTED_WORDS = 6
_MAX_WORD_CHARS = 60
# The beginning of a result of `core.tools.web` with a page.
_PAGE_ADDRESS = re.compile(r"\[A web page, [^\n]*\]\nAddress: (https?://[^\s<>]+)\n")


def page_slice(query: SearchQuery, max_sessions: int = MAX_SESSIONS) -> slice:
    """Return the slice of sessions on the requested page, which is empty after `MAX_PAGES`."""
    size = max(1, min(query.limits.sessions, max_sessions))
    start = size * max(0, min(query.limits.page - 1, MAX_PAGES))
    if query.limits.page > MAX_PAGES:
        return slice(start, start)
    return slice(start, start + size)


def build_discovery(
    excerpts: SessionExcerpts,
    query: SearchQuery,
    matches: list[MessageMatch],
    highlights: Sequence[str],
    notes: Notes = (),
    scores: Mapping[int, float] | None = None,
) -> SearchResults:
    """Build the requested page of sessions, and the flat list of the best messages.

    `matches` are messages, best first. `scores` are the scores of the lineages by root id, best
    first. Without `scores`, lineages are ordered by their best message. `highlights` are the words
    to mark in snippets.
    """
    scores = scores or {}
    page = page_slice(query)
    groups = _group_matches(query, matches, scores, page)
    page_groups = groups[page]
    best_messages = matches[: max(0, min(query.limits.messages, MAX_MESSAGES))]

    message_scores = {match.message_id: match.score for match in best_messages}
    for group in page_groups:
        message_scores |= {match.message_id: match.score for match in group}
    session_ids = {group[0].session_id for group in page_groups}
    rows, sessions = excerpts.load_matches(message_scores, session_ids)
    highlighter = Highlighter(highlights)
    hits: dict[int, Hit] = {}
    for row in rows:
        hits[row.message_id] = _build_hit(row, message_scores[row.message_id], highlighter)

    matched_sessions = _match_sessions(page_groups, sessions, hits, scores)
    has_more = len(groups) > page.stop
    return SearchResults(
        query=query.text,
        shape="discovery",
        sessions=tuple(excerpts.load_all_surroundings(matched_sessions)),
        messages=tuple(hits[match.message_id] for match in best_messages),
        notes=join_notes(notes, _last_page_notes(query, has_more=has_more)),
        has_more=has_more and query.limits.page < MAX_PAGES,
    )


def _match_sessions(
    groups: Sequence[Sequence[MessageMatch]],
    sessions: Mapping[int, Session],
    hits: Mapping[int, Hit],
    scores: Mapping[int, float],
) -> list[MatchedSession]:
    """Return the session of each group with its messages. Erased sessions are left out."""
    matched_sessions = []
    for group in groups:
        best = group[0]
        session = sessions.get(best.session_id)
        if session is not None:
            group_hits = tuple(hits[match.message_id] for match in group)
            score = scores.get(best.root_id, best.score)
            matched_sessions.append(MatchedSession(session, best.message_id, group_hits, score))
    return matched_sessions


def _group_matches(
    query: SearchQuery,
    matches: Sequence[MessageMatch],
    scores: Mapping[int, float],
    page: slice,
) -> list[list[MessageMatch]]:
    """Divide the matches into groups. Each group becomes one result.

    A group is a lineage. In a search for a turn, a group is a single message.
    """
    if query.kind is TextKind.TURN:
        return _spread_lineages(_group_by_lineage(matches, scores, page.stop))
    return _group_by_lineage(matches, scores, MAX_MATCHES_SHOWN)


def _group_by_lineage(
    matches: Iterable[MessageMatch], root_ids: Iterable[int], max_matches: int
) -> list[list[MessageMatch]]:
    """Return the first matches of each lineage, at most `max_matches` per lineage.

    The lineages in `root_ids` come first, in this order. Other lineages follow, ordered by their
    best match.
    """
    groups: dict[int, list[MessageMatch]] = {root_id: [] for root_id in root_ids}
    for match in matches:
        groups.setdefault(match.root_id, []).append(match)
    return [group[:max_matches] for group in groups.values() if group]


def _spread_lineages(groups: Sequence[Sequence[MessageMatch]]) -> list[list[MessageMatch]]:
    """Return a group for each message: the best of each lineage, then the second best, and so on.

    A lineage has several groups if the scores of its messages are high enough. Otherwise, a
    conversation that never ends would have a single result, because all its messages belong to one
    lineage.
    """
    if not groups:
        return []
    min_score = MIN_FURTHER_SHARE * groups[0][0].score
    spread = [[group[0]] for group in groups]
    for rank in range(1, max(map(len, groups))):
        for group in groups:
            if rank < len(group) and group[rank].score >= min_score:
                spread.append([group[rank]])
    return spread


def _build_hit(row: MatchRow, score: float, highlighter: Highlighter) -> Hit:
    """Build a hit with a snippet of its text.

    If the text doesn't contain the words, the snippet shows the tool call.
    """
    source = row.text
    if row.tool_call and (not row.text or not highlighter.find_spans(row.text)):
        source = row.tool_call
    return Hit(
        message_id=row.message_id,
        session_id=row.session_id,
        role=row.role,
        snippet=make_snippet(source, highlighter),
        score=score,
        at=to_datetime(row.created_at),
        external_id=row.external_id,
        link=row.link or _find_page_address(row),
        quoted=describe_quote(row.quote),
        sender=row.sender,
        origin=row.origin,
    )


def _find_page_address(row: MatchRow) -> str | None:
    """Return the address of a web page that a tool read, or None for other messages."""
    match = _PAGE_ADDRESS.match(row.text) if row.role == "tool" else None
    return match[1] if match else None


def load_without_search(excerpts: SessionExcerpts, query: SearchQuery) -> SearchResults:
    """Return the results of a query without words.

    The results are the messages around `query.around`, the first and last messages of one session,
    or the latest sessions.
    """
    if query.around is not None:
        session = excerpts.find_session(query.around, is_of_message=True)
        sessions: tuple[FoundSession, ...] = ()
        if session is not None:
            sessions = (excerpts.load_surroundings(session, query.around, bookend=0),)
        return SearchResults(query=query.text, shape="scroll", sessions=sessions)

    if query.filters.session_id is not None:
        session = excerpts.find_session(query.filters.session_id)
        sessions = () if session is None else (excerpts.load_overview(session),)
        return SearchResults(query=query.text, shape="read", sessions=sessions)

    recent, has_more = excerpts.list_recent(page_slice(query, BROWSE_MAX))
    return SearchResults(
        query=query.text,
        shape="browse",
        sessions=tuple(recent),
        notes=_last_page_notes(query, has_more=has_more),
        has_more=has_more and query.limits.page < MAX_PAGES,
    )


def _last_page_notes(query: SearchQuery, *, has_more: bool) -> Notes:
    """Return a note if more results exist after the last page that a query can ask for."""
    return (LAST_PAGE_NOTE,) if has_more and query.limits.page == MAX_PAGES else ()


ANCHOR_FACTOR = 4
"""An anchor may be this many times as long as other messages."""
MIN_MESSAGE_CHARS = 20


def shorten_to_budget(results: SearchResults, budget_chars: int) -> SearchResults:
    """Cut long messages to a common length, so that all texts together have about `budget_chars`.

    Anchors, the messages that match, may be `ANCHOR_FACTOR` times as long. They are cut around the
    match.
    """
    messages: list[ShownMessage] = []
    for result in results.sessions:
        messages += [*result.bookend_start, *result.window, *result.bookend_end]
    if sum(len(message.text) for message in messages) <= budget_chars:
        return results

    def exceeds_budget(length_chars: int) -> bool:
        total_chars = 0
        for message in messages:
            total_chars += min(len(message.text), _max_chars(message, length_chars))
        return total_chars > budget_chars

    # Find the shortest length that exceeds the budget, by binary search. One character less fits.
    length_chars = bisect_left(range(budget_chars), True, key=exceeds_budget) - 1
    length_chars = max(MIN_MESSAGE_CHARS, length_chars)
    return replace(
        results,
        sessions=tuple(_shorten_session(result, length_chars) for result in results.sessions),
    )


def _max_chars(message: ShownMessage, length_chars: int) -> int:
    return ANCHOR_FACTOR * length_chars if message.is_anchor else length_chars


def _shorten_session(result: FoundSession, length_chars: int) -> FoundSession:
    """Cut the messages of a session. The anchor is cut around its match."""
    match = MARKED_MATCH.search(result.matches[0].snippet) if result.matches else None
    matched_text = match[1] if match else ""

    def shorten(message: ShownMessage) -> ShownMessage:
        """Return the message, cut if it is too long."""
        text = message.text
        max_chars = _max_chars(message, length_chars)
        if len(text) <= max_chars:
            return message
        spans = []
        if message.is_anchor and matched_text and matched_text in text:
            start = text.find(matched_text)
            spans.append((start, start + len(matched_text)))
        return message._replace(text=_cut_excerpt(text, *find_excerpt(text, spans, max_chars)))

    return replace(
        result,
        bookend_start=tuple(map(shorten, result.bookend_start)),
        window=tuple(map(shorten, result.window)),
        bookend_end=tuple(map(shorten, result.bookend_end)),
    )


def _cut_excerpt(text: str, start: int, end: int) -> str:
    """Return part of a text, with an ellipsis at each end that was cut."""
    head = ELLIPSIS if start > 0 else ""
    tail = ELLIPSIS if end < len(text) else ""
    return head + text[start:end] + tail


SEARCHED_CHARS = 50_000
"""Matches are highlighted only in this many characters at the beginning of a text."""
MAX_SPANS = 200
"""At most this many matches of a text are highlighted."""
MAX_TRIES = 1_000
"""The search for matches stops after this many tries. A try that matches only part of a longer word
also counts."""

_LETTERS = re.compile(f"{LETTER_CLASS}+")


class Highlighter:
    """Finds words, prefixes (``ferr*``) and phrases in a text.

    It also finds emoji and words of scripts without spaces inside longer words.
    """

    def __init__(self, terms: Iterable[str]) -> None:
        """Compile all terms into one pattern. Longer terms come first."""
        patterns: dict[str, list[str]] = {"unspaced": [], "prefix": [], "word": []}
        for term in sorted(terms, key=len, reverse=True):
            kind = "word"
            if is_unspaced(term):
                kind = "unspaced"
            elif term.endswith("*"):
                kind = "prefix"
            words = [plain_with_offsets(word)[0] for word in term.rstrip("*").split()]
            separator = "" if kind == "unspaced" else r"[\W_]{1,4}"
            pattern = separator.join(re.escape(word) for word in words if word)
            if pattern:
                patterns[kind].append(pattern)
        # The pattern contains only literals. `_match_end` checks the word boundaries of each match,
        # which is ten times as fast as checking them in the pattern.
        groups = [f"(?P<{kind}>{'|'.join(texts)})" for kind, texts in patterns.items() if texts]
        self._pattern = re.compile("|".join(groups)) if groups else None

    def find_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end of each match in a text, in order.

        Matches that overlap or touch become one span: 資料 and 料庫 in 資料庫. In a long text, or
        in one with many matches, some of them are left out.
        """
        if self._pattern is None:
            return []
        plain, offsets = plain_with_offsets(text[:SEARCHED_CHARS])
        spans: list[tuple[int, int]] = []
        start = -1
        for _ in range(MAX_TRIES):
            # Matches may overlap, so the next match may begin right after the start of this one.
            match = self._pattern.search(plain, start + 1)
            if match is None or len(spans) == MAX_SPANS:
                break
            start = match.start()
            end = _match_end(match)
            if end is None:
                continue
            if spans and start <= spans[-1][1]:
                # The match overlaps or touches the last span, so the span is extended.
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            else:
                spans.append((start, end))
        if offsets is None:
            return spans
        # Convert the positions in `plain` to positions in `text`. A character of `text` may be
        # several characters in `plain`, or none.
        next_offsets = [*offsets[1:], min(len(text), SEARCHED_CHARS)]
        return [
            (offsets[start], max(offsets[end - 1] + 1, next_offsets[end - 1]))
            for start, end in spans
        ]


def _match_end(match: re.Match[str]) -> int | None:
    """Return the end of a match, or None if the match is only part of a word.

    The match of a prefix extends to the end of its word. In scripts without spaces, every match
    counts.
    """
    start, end = match.span()
    if match.lastgroup == "unspaced":
        return end
    if start > 0 and _LETTERS.match(match.string, start - 1):
        return None
    following_letters = _LETTERS.match(match.string, end)
    if following_letters is None:
        return end
    return following_letters.end() if match.lastgroup == "prefix" else None


SNIPPET_CHARS = 200
NEAR_BLANK_CHARS = 20
"""A text is cut at a space if there is one within this distance."""


def make_snippet(text: str, highlighter: Highlighter, width_chars: int = SNIPPET_CHARS) -> str:
    """Return about `width_chars` characters of a text on one line, with the matches marked.

    The snippet shows the part with the largest number of distinct matches. Without matches, it
    shows the beginning of the text.
    """
    spans = highlighter.find_spans(text)
    start, end = find_excerpt(text, spans, width_chars)
    parts = [ELLIPSIS if start > 0 else ""]
    position = start
    for first, last in spans:
        if first >= position and last <= end:
            parts += [text[position:first], MATCH_START, text[first:last], MATCH_END]
            position = last
    parts += [text[position:end], ELLIPSIS if end < len(text) else ""]
    return " ".join("".join(parts).split())


def find_excerpt(text: str, spans: Sequence[tuple[int, int]], width_chars: int) -> tuple[int, int]:
    """Return the start and end of the part of a text to show.

    The part contains the densest group of spans, with a quarter of the remaining width before it.
    It begins and ends between words if there is a space nearby.
    """
    if len(text) <= width_chars:
        return 0, len(text)
    first, last = _densest_part(text, spans, width_chars)
    free_chars = max(0, width_chars - (last - first))
    start = max(0, first - free_chars // 4)
    end = min(len(text), start + width_chars)
    # Near the end of the text, the part begins earlier, so that it still has the full width.
    start = max(0, min(start, end - width_chars))
    if start > 0:
        blank = text.find(" ", start, min(first, start + NEAR_BLANK_CHARS) + 1)
        start = blank + 1 if blank >= 0 else start
    if end < len(text):
        blank = text.rfind(" ", max(last, end - NEAR_BLANK_CHARS), end)
        end = blank if blank > 0 else end
    return start, end


def _densest_part(text: str, spans: Sequence[tuple[int, int]], width_chars: int) -> tuple[int, int]:
    """Return the part of at most `width_chars` characters with the most distinct matches.

    If several parts are equally good, return the first.
    """
    best_part = (0, 0)
    best_count = 0
    ends = [end for _, end in spans]
    matches = [text[start:end].casefold() for start, end in spans]
    for index, (start, _) in enumerate(spans):
        # The spans from `index` to `stop` fit into the width if the part begins with this span.
        max_end = start + width_chars
        stop = max(index + 1, bisect_right(ends, max_end))
        count = len(set(matches[index:stop]))
        if count > best_count:
            best_part = (start, min(ends[stop - 1], max_end))
            best_count = count
    return best_part


def describe_attempts(
    words: Sequence[str], *, is_typed: bool, is_limited: bool, is_wider: bool
) -> Notes:
    """Write notes that say what was tried in a search without results.

    The search looked for any of the `words`. With `is_typed`, it first looked for the text as
    typed. With `is_limited`, the query has filters. With `is_wider`, there are results without the
    filters.
    """
    word_list = ", ".join(_shorten_word(word.rstrip("*")) for word in words[:_MAX_LISTED_WORDS])
    if len(words) > _MAX_LISTED_WORDS:
        word_list += "…"
    if not words:
        key = "recall_looked_latest"
    elif len(words) == 1:
        key = "recall_looked_word"
    else:
        key = "recall_looked_typed" if is_typed else "recall_looked_words"
    limits = Sentence("recall_within_filters") if is_limited else ""
    values: dict[str, object] = {"limits": limits}
    if words:
        values["words"] = word_list
    attempt = Sentence(key, values)
    return (attempt, Sentence("recall_wider")) if is_wider else (attempt,)


def describe_corrections(corrections: Mapping[str, str]) -> Notes:
    """Write notes about words that no message contains, and about their replacements."""
    return tuple(
        Sentence("recall_correction", {"word": _shorten_word(word), "words": words})
        for word, words in corrections.items()
    )


def join_notes(*parts: Notes) -> Notes:
    """Join notes in order, without duplicates."""
    notes: list[Sentence] = []
    for note in chain.from_iterable(parts):
        if note not in notes:
            notes.append(note)
    return tuple(notes)


def _shorten_word(word: str) -> str:
    if len(word) <= _MAX_WORD_CHARS:
        return word
    return word[: _MAX_WORD_CHARS - 1] + ELLIPSIS
