"""What was found as it is shown: by session, best first, the matches marked, with the messages around the best one; as
the JSON of ``recall --json`` and as Markdown; and notes about how it was searched."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from itertools import zip_longest
from typing import Any

from core.markup.markdown import escape
from core.store.query import READ_FIRST, FoundSession, Hit, MessageMatch, SearchQuery, SearchResults, ShownMessage
from core.store.rows import moment
from core.store.sqlite.passages import BROWSE_MAX, Passages, answered
from core.text.normalize import LETTER, is_unspaced, plain

SESSIONS_MAX = 10
PAGES_MAX = 10
MESSAGES_MAX = 1_000
MATCHES_SHOWN = 5
ALSO = 0.5
"""For a turn, what is not the best of its conversation has at least this share of the best score of all."""

OPEN, CLOSE, CUT = ">>>", "<<<", "…"
"""Around a match in a snippet; where text was cut."""
_BLANKS = re.compile(r"\s+")
MARKED = re.compile(f"{re.escape(OPEN)}(.+?){re.escape(CLOSE)}")
TITLE_CHARS = 80
QUOTED = 2
"""So many matches of a session are shown in a card."""
UNTITLED = "Untitled"
NOTHING = "Nothing found."
NO_SESSIONS = "Nothing has been said yet."
NO_MESSAGE = "There is no such message here, or not any more."
NO_SESSION = "There is no such conversation here."

LOOSE = "No message has all of that; these have some of the words, best first."
UNTYPED = "That could not be searched as typed; these have some of the words, best first."
PAGE_EMPTY = "There is nothing more on page {page}."
LAST_PAGE = "There are more, but this is the last page: add words or filters."
WORDLESS = "There is no word, number or emoji in that to search for."
DAMAGED = "The search index is damaged or being rebuilt. Ask again in a minute; `mneme check` tells more."
_WORDS_SHOWN, _CHARS_SHOWN = 6, 60


def page_of(query: SearchQuery, most: int = SESSIONS_MAX) -> slice:
    """Which of the sessions, best first, are shown: none behind the last page."""
    limit = max(1, min(query.limit, most))
    start = limit * max(0, min(query.page - 1, PAGES_MAX))
    return slice(start, start + limit if query.page <= PAGES_MAX else start)


def discovery(
    passages: Passages,
    query: SearchQuery,
    found: list[MessageMatch],
    marks: Sequence[str],
    note: str | None = None,
    scores: Mapping[int, float] | None = None,
) -> SearchResults:
    """The best sessions and the flat list of messages, with `marks` in the texts; `scores` order the lineages."""
    scores = scores or {}
    ordered = _by_lineage(found, scores, page_of(query).stop if query.is_turn else MATCHES_SHOWN)
    if query.is_turn and ordered:
        ordered = _apart(ordered)
    page = page_of(query)
    best = ordered[page]
    flat = found[: max(0, min(query.messages, MESSAGES_MAX))]
    scored = {match.message_id: match.score for match in [*flat, *(match for group in best for match in group)]}
    messages, sessions = passages.matching(scored, {group[0].session_id for group in best})
    marker = Highlighter(marks)
    hits = {fields[0]: _hit(session_id, fields, scored[fields[0]], marker) for session_id, fields in messages}
    has_more = len(ordered) > page.stop
    return SearchResults(
        query=query.text,
        shape="discovery",
        sessions=tuple(
            passages.surroundings(
                sessions[group[0].session_id],
                group[0].message_id,
                matches=tuple(hits[match.message_id] for match in group),
                score=scores.get(group[0].root_id, group[0].score),
            )
            for group in best
            if group[0].session_id in sessions
        ),
        messages=tuple(hits[match.message_id] for match in flat),
        note=joined([note, _ending(has_more, query)]),
        has_more=has_more and query.page < PAGES_MAX,
    )


def _apart(ordered: Sequence[Sequence[MessageMatch]]) -> list[list[MessageMatch]]:
    """One of each lineage, and more of those that go on without end, which may be all that was ever said."""
    least = ALSO * ordered[0][0].score
    ranks = enumerate(zip_longest(*ordered))
    return [[match] for rank, row in ranks for match in row if match and (not rank or match.score >= least)]


def _by_lineage(found: Iterable[MessageMatch], roots: Iterable[int], most: int) -> list[list[MessageMatch]]:
    lineages: dict[int, list[MessageMatch]] = {root: [] for root in roots}
    for match in found:
        lineages.setdefault(match.root_id, []).append(match)
    return [group[:most] for group in lineages.values() if group]


def _hit(session_id: int, fields: Sequence[Any], score: float, marker: Highlighter) -> Hit:
    """Marked in its text, or in its tool call where only that matches."""
    message_id, role, created_at, external_id, text, tools, quoted, sender, link = fields
    is_of_tools = tools and (not text or not marker.spans(text))
    return Hit(
        message_id=message_id,
        session_id=session_id,
        role=role,
        snippet=snippet(tools if is_of_tools else text, marker),
        score=score,
        at=moment(created_at),
        external_id=external_id,
        link=link,
        quoted=answered(quoted),
        sender=sender,
    )


def leafed(passages: Passages, query: SearchQuery) -> SearchResults:
    """Without a search: the window around one message, in whichever session that stands; the first and last messages of
    a session; the latest sessions."""
    if query.around is not None:
        session = passages.session(query.around, is_of_message=True)
        shown = () if session is None else (passages.surroundings(session, query.around, bookend=0),)
        return SearchResults(query=query.text, shape="scroll", sessions=shown)
    if query.session is not None:
        session = passages.session(query.session)
        shown = () if session is None else (passages.reading(session),)
        return SearchResults(query=query.text, shape="read", sessions=shown)
    found, has_more = passages.recent(page_of(query, BROWSE_MAX))
    return SearchResults(
        query=query.text,
        shape="browse",
        sessions=tuple(found),
        note=_ending(has_more, query),
        has_more=has_more and query.page < PAGES_MAX,
    )


def _ending(has_more: bool, query: SearchQuery) -> str | None:
    return LAST_PAGE if has_more and query.page == PAGES_MAX else None


def within(results: SearchResults, budget_chars: int) -> SearchResults:
    """The results with long messages cut to one common length, so that all have about `budget_chars`; anchors get 4
    times it."""
    items = [item for found in results.sessions for item in (*found.bookend_start, *found.window, *found.bookend_end)]
    if sum(len(item.text) for item in items) <= budget_chars:
        return results

    def is_over(limit_chars: int) -> bool:
        return sum(min(len(item.text), _limit(item, limit_chars)) for item in items) > budget_chars

    limit_chars = max(20, bisect_left(range(budget_chars), True, key=is_over) - 1)
    return replace(results, sessions=tuple(_shortened(found, limit_chars) for found in results.sessions))


def _limit(item: ShownMessage, limit_chars: int) -> int:
    return 4 * limit_chars if item.is_anchor else limit_chars


def _shortened(found: FoundSession, limit_chars: int) -> FoundSession:
    marked = MARKED.search(found.matches[0].snippet) if found.matches else None

    def cut(item: ShownMessage) -> ShownMessage:
        """The beginning of a long message; of the anchor, the part around the match."""
        text, width = item.text, _limit(item, limit_chars)
        if len(text) <= width:
            return item
        place = text.find(marked[1]) if item.is_anchor and marked else -1
        start, end = excerpt(text, [(place, place + len(marked[1]))] if marked and place >= 0 else [], width)
        return item._replace(text=(CUT if start > 0 else "") + text[start:end] + (CUT if end < len(text) else ""))

    return replace(
        found,
        bookend_start=tuple(map(cut, found.bookend_start)),
        window=tuple(map(cut, found.window)),
        bookend_end=tuple(map(cut, found.bookend_end)),
    )


LOOK_CHARS = 50_000
"""A match is looked for in this much of a text; behind it, text is shown unmarked."""
MARKS = 200
"""At most so many places are compared to find the densest."""
TRIES = 1_000

_WORD = re.compile(f"{LETTER}+")


class Highlighter:
    """Finds terms of a plan (words, ``ferr*``, phrases); runs and emoji are found inside of others."""

    def __init__(self, terms: Iterable[str]) -> None:
        kinds: dict[str, list[str]] = {"run": [], "beginning": [], "word": []}
        for term in sorted(terms, key=len, reverse=True):
            kind = "run" if is_unspaced(term) else "beginning" if term.endswith("*") else "word"
            parts = [re.escape(part) for part in (plain(part)[0] for part in term.rstrip("*").split()) if part]
            if parts:
                kinds[kind].append(("" if kind == "run" else r"[\W_]{1,4}").join(parts))
        # Literals alone: where words begin and end is looked at for what they match, which is ten times as fast.
        groups = [f"(?P<{kind}>{'|'.join(one)})" for kind, one in kinds.items() if one]
        self._terms = re.compile("|".join(groups)) if groups else None

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where terms stand in `text`: (start, end), ascending; those that touch (資料 and 料庫 in 資料庫) as one."""
        compared, origins = plain(text[:LOOK_CHARS])
        found: list[tuple[int, int]] = []
        start = -1
        for _ in range(TRIES):
            match = self._terms.search(compared, start + 1) if self._terms else None
            if match is None or len(found) == MARKS:
                break
            start, end = match.span()
            if match.lastgroup != "run":
                rest = _WORD.match(compared, end)
                if (start > 0 and _WORD.match(compared, start - 1)) or (rest and match.lastgroup == "word"):
                    continue
                end = rest.end() if rest else end
            if found and start <= found[-1][1]:
                found[-1] = (found[-1][0], max(end, found[-1][1]))
            else:
                found.append((start, end))
        if origins is None:
            return found
        behind = [*origins[1:], min(len(text), LOOK_CHARS)]
        return [(origins[start], max(origins[end - 1] + 1, behind[end - 1])) for start, end in found]


WIDTH_CHARS = 200


def snippet(text: str, marker: Highlighter, width_chars: int = WIDTH_CHARS) -> str:
    """About `width_chars` on one line, where most different terms stand close together, marked; else the beginning."""
    spans = marker.spans(text)
    start, end = excerpt(text, spans, width_chars)
    parts = [CUT if start > 0 else ""]
    position = start
    for first, last in spans:
        if first >= position and last <= end:
            parts += [text[position:first], OPEN, text[first:last], CLOSE]
            position = last
    parts += [text[position:end], CUT if end < len(text) else ""]
    return " ".join("".join(parts).split())


def excerpt(text: str, spans: Sequence[tuple[int, int]], width_chars: int) -> tuple[int, int]:
    """The part of a text to show, (start, end): around the densest marks, cut between words where a blank is near."""
    if len(text) <= width_chars:
        return 0, len(text)
    first, last = _densest(text, spans, width_chars)
    room = max(0, width_chars - (last - first))
    start = max(0, first - room // 4)
    end = min(len(text), start + width_chars)
    start = max(0, min(start, end - width_chars))
    if start > 0:
        blank = text.find(" ", start, min(first, start + 20) + 1)
        start = blank + 1 if blank >= 0 else start
    if end < len(text):
        blank = text.rfind(" ", max(last, end - 20), end)
        end = blank if blank > 0 else end
    return start, end


def _densest(text: str, spans: Sequence[tuple[int, int]], width_chars: int) -> tuple[int, int]:
    best, best_count = (0, 0), 0
    ends, said = [end for _, end in spans], [text[start:end].casefold() for start, end in spans]
    for index, (start, _) in enumerate(spans):
        stop = max(index + 1, bisect_right(ends, start + width_chars))
        count = len(set(said[index:stop]))
        if count > best_count:
            best, best_count = (start, min(ends[stop - 1], start + width_chars)), count
    return best


def to_json(findings: SearchResults) -> dict[str, Any]:
    """The documented object of ``recall --json``; times in ISO 8601, UTC."""
    shown = {
        "query": findings.query,
        "shape": findings.shape,
        "took_ms": findings.took_ms,
        "sessions": list(map(_session, findings.sessions)),
        "messages": list(map(_message, findings.messages)),
        "has_more": findings.has_more,
        "note": findings.note,
    }
    return _unusual(shown)


def to_markdown(findings: SearchResults, zone: tzinfo) -> str:
    """Cards, or who said what for one conversation; never empty."""
    if not findings.sessions:
        return escape(no_results(findings))
    if findings.shape in ("scroll", "read"):
        shown = [_conversation(found, findings.shape, zone) for found in findings.sessions]
    else:
        shown = [_card(number, found, zone) for number, found in enumerate(findings.sessions, 1)]
    return "\n\n".join([f"_{escape(findings.note)}_", *shown] if findings.note is not None else shown)


def no_results(findings: SearchResults) -> str:
    nothing = {"scroll": NO_MESSAGE, "read": NO_SESSION}.get(findings.shape, NOTHING)
    if findings.shape == "browse" and findings.note is None:
        nothing = NO_SESSIONS
    return nothing if findings.note is None else f"{nothing} {findings.note}"


_USUAL = {"messages": [], "has_more": False, "origin": "typed"}
_USUAL |= dict.fromkeys(["note", "external_session", "summary", "preview", "external_id", "link", "quoted"])
"""Fields that are left out where they have this value."""


def _unusual(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in _USUAL or value != _USUAL[name]}


def _session(found: FoundSession) -> dict[str, Any]:
    session = found.session
    fields = {
        "session_id": session.id,
        "title": session.title,
        "started_at": session.started_at.isoformat(),
        "platform": session.address.platform,
        "score": round(found.score, 6),
        "matches": list(map(_message, found.matches)),
        "bookend_start": list(map(_message, found.bookend_start)),
        "window": list(map(_message, found.window)),
        "bookend_end": list(map(_message, found.bookend_end)),
        "messages_before": found.messages_before,
        "messages_after": found.messages_after,
        "external_session": session.external_id,
        "summary": found.summary,
        "preview": found.preview,
    }
    return _unusual(fields)


def _message(item: Hit | ShownMessage) -> dict[str, Any]:
    fields = item._asdict() | {"at": item.at.isoformat()}
    if isinstance(item, Hit):
        fields |= {"score": round(item.score, 6)}
        del fields["sender"]
    return _unusual({name: value for name, value in fields.items() if name not in ("session_id", "sender_id")})


def _head(number: str, found: FoundSession, at: datetime) -> str:
    session = found.session
    title = session.title or found.preview or UNTITLED
    if len(title) > TITLE_CHARS:
        blank = title.rfind(" ", 0, TITLE_CHARS)
        title = title[: blank if blank > TITLE_CHARS // 2 else TITLE_CHARS] + CUT
    platform = session.address.platform
    return f"**{number}{_plain(title)}** · {at:%a %-d %b %Y, %H:%M} · {platform} · session {session.id}"


def _card(number: int, found: FoundSession, zone: tzinfo) -> str:
    title, preview, matches = found.session.title, found.preview or "", found.matches[:QUOTED]
    lines = [_head(f"{number}. ", found, _at(found).astimezone(zone)), *(f"> {_matching(hit)}" for hit in matches)]
    lines += [f"> {_answering(hit.quoted)}" for hit in matches if hit.quoted][:1]
    if not found.matches and title and preview and not preview.startswith(title.rstrip(CUT)):
        lines.append(f"> {_plain(preview)}")
    return "\n".join([*lines, "", found.summary.strip()] if found.summary else lines)


def _conversation(found: FoundSession, shape: str, zone: tzinfo) -> str:
    """Who said what; the day stands in the head and where it changes."""
    best_at = _at(found).astimezone(zone)
    lines = [_head("", found, best_at)]
    if found.summary:
        lines += ["", found.summary.strip(), ""]
    if found.messages_before:
        lines.append(f"({found.messages_before} earlier)")
    day = best_at.date()
    for index, item in enumerate(found.window):
        if shape == "read" and found.messages_after and index == READ_FIRST:
            lines.append(f"({found.messages_after} more in between)")
        at = item.at.astimezone(zone)
        when = f"{at:%-d %b, %H:%M}" if at.date() != day else f"{at:%H:%M}"
        day = at.date()
        who = _plain(item.sender or ("Mneme" if item.role == "assistant" else item.role))
        line = f"{when} {who}: {_plain(item.text)}"
        quoted = f" {_answering(item.quoted)}" if item.quoted else ""
        lines.append(f"- **{line}**{_opened(item.link)}{quoted}" if item.is_anchor else f"- {line}")
    if shape == "scroll" and found.messages_after:
        lines.append(f"({found.messages_after} more)")
    return "\n".join(lines)


def _at(found: FoundSession) -> datetime:
    """When the best match was said; the anchor of a scroll; else when the session was last spoken in."""
    said = [hit.at for hit in found.matches] + [item.at for item in found.window if item.is_anchor]
    return said[0] if said else found.session.last_at or found.session.started_at


def _matching(hit: Hit) -> str:
    parts = enumerate(MARKED.split(hit.snippet))
    return "".join(f"**{_plain(part)}**" if index % 2 else _plain(part) for index, part in parts) + _opened(hit.link)


def _answering(quoted: str) -> str:
    return f"↩ {_plain(quoted)}"


def _opened(link: str | None) -> str:
    return f" [open]({link})" if link else ""


def _plain(text: str) -> str:
    """Text on one line that Markdown shows as it stands, also in the middle of a line: a blank in front stays."""
    line = _BLANKS.sub(" ", text)
    return (" " if line.startswith(" ") else "") + escape(line.lstrip())


def nothing(words: Sequence[str], *, is_typed: bool, is_limited: bool, is_wider: bool) -> str:
    """What was tried in vain: any of `words`, all of them first (`is_typed`), within filters (`is_limited`) that hide
    something (`is_wider`) or not."""
    listed = ", ".join(_shown(word.rstrip("*")) for word in words[:_WORDS_SHOWN])
    asked = f"any of its words ({listed}{'…' * (len(words) > _WORDS_SHOWN)})" if len(words) != 1 else f"“{listed}”"
    tried = f"I looked for it as typed and for {asked}" if is_typed and len(words) > 1 else f"I looked for {asked}"
    if not words:
        tried = "I looked through the latest conversations"
    within = ", within the limits that you gave" if is_limited else ""
    return f"{tried}{within}." + (" Without these limits there is something." if is_wider else "")


def respelled(words: Mapping[str, str]) -> str:
    """Which words were never said, and which were taken instead."""
    return " ".join(f"“{_shown(typed)}” was never said; I looked for “{known}” too." for typed, known in words.items())


def joined(sentences: Iterable[str | None]) -> str | None:
    """All of them in order, each once; None where there are none."""
    return " ".join(dict.fromkeys(sentence for sentence in sentences if sentence)) or None


def _shown(word: str) -> str:
    return word if len(word) <= _CHARS_SHOWN else word[: _CHARS_SHOWN - 1] + "…"
