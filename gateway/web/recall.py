"""Searches the history on the page "Recall", with the query language of /recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from urllib.parse import quote

from core.search.note_search import add_notes
from core.search.query import extract_filters, split_filters, text_for_next_page
from core.search.rendering import NAMELESS_KINDS, word_place, word_quote
from core.store.query import FileHit, ResultLimits, SearchQuery, SearchResults
from core.text.normalize import shorten
from gateway.web.rendering import shorten_attachments
from gateway.web.views import Page, PageRequest, Values, View

MAX_SESSIONS = 10
MAX_QUERY_CHARS = 1_000
MAX_RESULT_CHARS = 20_000
MAX_NAMES = 4
MAX_TITLE_CHARS = 40
# The periods of chips, in days, and the keys of their texts.
PERIODS = ((7, "CHIP_WEEK"), (30, "CHIP_MONTH"), (365, "CHIP_YEAR"))
FILE_CHIPS = (
    ("has:photo", "CHIP_PHOTO"),
    ("has:voice", "CHIP_VOICE"),
    ("has:file", "CHIP_FILE"),
    ("has:video", "CHIP_VIDEO"),
)
# The keys of filters that the help explains, with an example of each.
HELP = (
    ("from:", "from:ana", "HELP_FROM"),
    ("has:", "has:photo", "HELP_HAS"),
    ("since:", "since:may", "HELP_SINCE"),
    ("before:", "before:2026-05-01", "HELP_BEFORE"),
    ("on:", "on:telegram", "HELP_ON"),
    ("title:", "title:trip", "HELP_TITLE"),
    ("in:", "in:12", "HELP_IN"),
    ('"', '"the gate code"', "HELP_PHRASE"),
    ("-", "-work", "HELP_WITHOUT"),
)


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that can be added or removed with one click."""

    label: str
    link: str
    # Whether the filter is active. Then the link removes it.
    is_on: bool = False


async def load_recall(request: PageRequest) -> Values:
    """Search for the words in the address. Without words, return the latest conversations."""
    text = request.parameter("q").strip()[:MAX_QUERY_CHARS]
    query = SearchQuery(
        text=text,
        scopes=request.scopes,
        asker=request.context.account,
        limits=ResultLimits(sessions=MAX_SESSIONS, budget_chars=MAX_RESULT_CHARS),
    )
    results = await request.services.recall.recall(query)
    results = await add_notes(results, request.services.notebook, query)
    next_query = text_for_next_page(text) if results.has_more else ""
    words, filters = split_filters(text)
    chips = _list_chips(request, words, filters, results)
    return {
        "query": text,
        "results": results,
        "next_query": next_query,
        "notes": [request.texts.word(note) for note in results.notes],
        "in_use": _list_removing_chips(words, filters, chips),
        "chips": chips,
        "help": HELP,
        "name_file": partial(_name_file, request),
        "name_place": partial(word_place, words=request.texts.result_words),
        "word_quote": partial(word_quote, words=request.texts.result_words),
    }


def _name_file(request: PageRequest, file: FileHit) -> str:
    """Return the name of a file, or the word for its kind if it has no name of its own."""
    key = file.kind.replace(" ", "_")
    return request.texts.result_words.templates[key] if key in NAMELESS_KINDS else file.name


def _list_removing_chips(
    words: str, filters: Sequence[str], groups: Sequence[tuple[str, Sequence[Chip]]]
) -> list[Chip]:
    """Return a chip to remove each active filter that has no chip in a group."""
    in_groups = {chip.link for _, chips in groups for chip in chips if chip.is_on}
    chips = []
    for removed in filters:
        link = _link(words, [other for other in filters if other != removed])
        if link not in in_groups:
            chips.append(Chip(removed, link, is_on=True))
    return chips


def _list_chips(
    request: PageRequest, words: str, filters: Sequence[str], results: SearchResults
) -> list[tuple[str, list[Chip]]]:
    """Return groups of chips that add or remove filters, by the label of the group.

    A chip replaces the active filters with the same key, so another kind of file is one click away.
    """
    groups = []
    for label, choices in _list_choices(request, results).items():
        chips = [Chip(text, *_toggle(words, filters, choice)) for choice, text in choices]
        if chips:
            groups.append((request.words[label], chips))
    return groups


def _toggle(words: str, filters: Sequence[str], choice: str) -> tuple[str, bool]:
    """Return a link that adds a filter, or removes it if it's active, and whether it is."""
    if choice in filters:
        return _link(words, [other for other in filters if other != choice]), True
    key = choice.partition(":")[0]
    others = [other for other in filters if other.partition(":")[0].lower() != key]
    return _link(words, [*others, choice]), False


def _list_choices(
    request: PageRequest, results: SearchResults
) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return the filters of each group with their texts, by the key of the group.

    The platforms and conversations are those in the results. The people are the senders in the
    results, and also "me" and the assistant. People are listed only for groups and imported
    conversations.
    """
    texts = request.words
    today = request.services.clock.now().astimezone(request.zone).date()
    names = _list_senders(results)[:MAX_NAMES]
    platforms = sorted({result.session.address.platform for result in results.sessions})
    return {
        "GROUP_FILES": [(choice, texts[key]) for choice, key in FILE_CHIPS],
        "GROUP_TIME": [
            (f"since:{today - timedelta(days=days)}", texts[key]) for days, key in PERIODS
        ],
        "GROUP_PEOPLE": [
            ("from:me", texts["CHIP_ME"]),
            ("from:you", texts["CHIP_ASSISTANT"]),
            *((f'from:"{name}"', request.texts.result_words.word_name(name)) for name in names),
        ],
        "GROUP_PLATFORM": [
            *(
                (f"platform:{platform}", request.texts.name_platform(platform))
                for platform in platforms
            ),
            *(
                (
                    f"in:{result.session.id}",
                    shorten(
                        shorten_attachments(request.texts.name_conversation(result.session.title)),
                        MAX_TITLE_CHARS,
                    ),
                )
                for result in results.sessions[:MAX_NAMES]
                if result.session.title
            ),
        ],
    }


def _list_senders(results: SearchResults) -> list[str]:
    """Return the names of the senders in groups and imported conversations, without repetitions.

    Names with quotation marks are left out, because a filter can't contain them.
    """
    names = {}
    for result in results.sessions:
        for hit in result.matches:
            has_other_people = result.session.scope.is_group or hit.origin == "imported"
            if hit.sender and has_other_people and '"' not in hit.sender:
                names[hit.sender] = True
    return list(names)


def _link(words: str, filters: Sequence[str]) -> str:
    return f"/recall?q={quote(' '.join([*filters, words]).strip())}"


async def load_reading(request: PageRequest) -> Values:
    """Return how a query is parsed while it's typed, and filters that match its last word.

    This doesn't search.
    """
    text = request.parameter("q")[:MAX_QUERY_CHARS]
    query = SearchQuery(text=text, scopes=request.scopes)
    outcome = extract_filters(query, request.services.clock.now(), request.zone)
    words = text.split()
    last = words[-1].lower() if words and not text.endswith(" ") else ""
    suggested = [entry for entry in HELP if last and entry[0].startswith(last.partition(":")[0])]
    filters = outcome.query.filters
    return {
        "words": outcome.query.text.strip(),
        "after": filters.after,
        "before": filters.before,
        "notes": [request.texts.word(note) for note in outcome.notes],
        "zone": request.zone,
        "suggested": [entry for entry in suggested if last not in ("-", '"')][:3],
    }


PAGE = Page(
    "recall",
    views=(
        View("/recall", "recall.html", load_recall, is_streamed=True),
        View("/recall/reading", "recall_reading.html", load_reading),
    ),
)
