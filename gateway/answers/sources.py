"""Writes the lines below an answer that name its sources: messages, facts, files and web pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, tzinfo
from typing import TYPE_CHECKING

from core.markup.markdown import escape
from core.review.repetition import shares_words
from core.search.citations import (
    CitedFact,
    CitedFile,
    CitedMessage,
    CitedSource,
    RecalledMessage,
)
from core.search.rendering import word_place
from core.store.query import ResultLimits, SearchFilters, SearchQuery
from core.text.normalize import shorten, to_single_line
from core.text.terms import query_terms
from core.types import Button, Message, Scope
from gateway.commands.registry import make_button
from gateway.services import Services
from gateway.texts.catalog import Texts

if TYPE_CHECKING:
    from core.store.media.files import AttachedFile
    from core.tools.web import Source

# The sources fill at most this many lines. If there are more sources than lines, the last one names
# several, in a short form without a quote, and counts those that aren't named.
MAX_LINES = 3
MAX_NAMED = 5
MAX_TITLE_CHARS = 80
MAX_QUOTE_CHARS = 60
MAX_SHORT_TITLE_CHARS = 24
# The label of a button shows at most this many characters of a file name.
LABEL_CHARS = 20
# A fact is attributed to a page that contains at least this share of the fact's words.
MIN_PAGE_SHARE = 0.8
# At most this many conversations are searched for the page of a fact.
SEARCHED_SESSIONS = 5


@dataclass(frozen=True, slots=True)
class SourceWriter:
    """Writes the sources of an answer. It shows only what a reader of `scopes` may see."""

    services: Services
    texts: Texts
    scopes: frozenset[Scope]
    # The reader's time zone.
    zone: tzinfo
    # Titles are shortened, and quotes are left out.
    is_short: bool = False

    async def write(
        self, cited: Sequence[CitedSource], rows: Sequence[Message]
    ) -> tuple[list[str], list[Button]]:
        """Return the lines with an answer's sources, and the buttons that send the cited files.

        The lines list the `cited` sources, whose numbers the answer contains, and then the web
        pages read in the turn. `rows` are the messages of the turn. Without sources, both lists are
        empty.
        """
        sources: list[CitedSource | Source] = list(cited)
        items = [await self._render(source) for source in cited]
        for page in list_pages(rows):
            item = self.render_page(page)
            if item not in items:
                sources.append(page)
                items.append(item)
        if not items:
            return [], []
        file_ids = dict.fromkeys(
            source.file_id for source in cited if isinstance(source, CitedFile)
        )
        buttons: list[Button] = []
        for file_id in file_ids:
            buttons += await self._list_buttons(file_id)
        return await self._fill_lines(sources, items), buttons

    async def _fill_lines(
        self, sources: Sequence[CitedSource | Source], items: list[str]
    ) -> list[str]:
        """Return at most `MAX_LINES` lines with the numbered `items` of the `sources`."""
        if len(items) > MAX_LINES:
            short_writer = replace(self, is_short=True)
            for index in range(MAX_LINES - 1, min(len(items), MAX_NAMED)):
                items[index] = await short_writer._render(sources[index])
        numbered = [f"{number}. {item}" for number, item in enumerate(items, start=1)]
        last_items = numbered[MAX_LINES - 1 : MAX_NAMED]
        if len(items) > MAX_NAMED:
            last_items.append(self.texts.SOURCES_MORE.format(count=len(items) - MAX_NAMED))
        lines = numbered[: MAX_LINES - 1]
        if last_items:
            lines.append(" · ".join(last_items))
        lines[0] = self.texts.SOURCES.format(sources=lines[0])
        return lines

    async def _render(self, source: CitedSource | Source) -> str:
        """Return the text of one source."""
        match source:
            case CitedMessage():
                return await self._render_message(source)
            case RecalledMessage():
                message = await self._load_message(source.message_id)
                return self.texts.SOURCE_GONE if message is None else self._render_quote(message)
            case CitedFact():
                return await self._render_fact(source.fact_id)
            case CitedFile():
                file = await self.services.files.find(source.file_id, self.scopes)
                return await self._render_file(source, file)
        return self.render_page(source)

    async def _render_message(self, message: CitedMessage) -> str:
        """Return a message's date and text, or the web page that a tool's message contains."""
        if message.role == "tool":
            ids = [message.message_id]
            rows = await self.services.conversations.load_messages(ids, self.scopes)
            for page in list_pages(rows):
                return self.render_page(page)
        return self._render_quote(message)

    def _render_quote(self, message: CitedMessage) -> str:
        """Return a message's date and text, with a link or a command that opens it."""
        command = f"/sessions m{message.message_id}"
        return self._quote(message.at, message.text, message.link, command)

    def _quote(self, at: datetime, text: str, link: str | None, command: str) -> str:
        day = self.texts.format_day(at, self.zone)
        place = f"[{day}](<{link}>)" if link else day
        if self.is_short:
            return place if link else f"{place} (`{command}`)"
        line = to_single_line(self.texts.result_words.word_text(text))
        quote = self.texts.quote(shorten(line, MAX_QUOTE_CHARS))
        return self.texts.pair(place, quote if link else f"{quote} (`{command}`)")

    async def _render_fact(self, fact_id: int) -> str:
        """Return a fact with the date and link of its message, or with its web page."""
        fact = await self.services.facts.find(fact_id, self.scopes)
        if fact is None:
            return self.texts.SOURCE_GONE
        if fact.message_id is not None:
            message = await self._load_message(fact.message_id)
            if message is not None:
                return self._render_quote(message._replace(text=fact.content))
        page = await self._find_page(fact.content)
        if page is not None:
            if self.is_short:
                return self.render_page(page)
            quote = self.texts.quote(shorten(fact.content, MAX_QUOTE_CHARS))
            return self.texts.pair(self.render_page(page), quote)
        return self._quote(fact.last_said_at, fact.content, None, f"/memory why f{fact.id}")

    async def _load_message(self, message_id: int) -> CitedMessage | None:
        """Return a message with its link, or None if the message no longer exists."""
        query = SearchQuery(
            scopes=self.scopes, around=message_id, limits=ResultLimits(window=1), text=""
        )
        results = await self.services.recall.recall(query)
        for session in results.sessions:
            for message in session.window:
                if message.message_id == message_id:
                    return CitedMessage(message_id, message.at, message.text, message.link)
        return None

    async def _find_page(self, content: str) -> Source | None:
        """Search the history for the web page that a fact was taken from.

        Returns None if none matches.
        """
        query = SearchQuery(
            scopes=self.scopes,
            text=" OR ".join(query_terms(content)),
            filters=SearchFilters(roles=("tool", "user")),
            limits=ResultLimits(sessions=SEARCHED_SESSIONS),
        )
        results = await self.services.recall.recall(query)
        ids = [hit.message_id for session in results.sessions for hit in session.matches]
        rows = await self.services.conversations.load_messages(ids, self.scopes)
        for row in rows:
            if shares_words(content, row.text, MIN_PAGE_SHARE):
                for page in list_pages([row]):
                    return page
        return None

    @property
    def _max_title_chars(self) -> int:
        return MAX_SHORT_TITLE_CHARS if self.is_short else MAX_TITLE_CHARS

    def render_page(self, page: Source) -> str:
        """Return the title of a web page as a link, with the day on which it was read."""
        title = escape(shorten(page.title, self._max_title_chars))
        read_on = datetime.combine(page.read_on, time(), self.zone)
        day = self.texts.format_day(read_on, self.zone)
        return self.texts.SOURCE.format(title=title, url=page.url, day=day)

    async def _render_file(self, source: CitedFile, file: AttachedFile | None) -> str:
        """Return the name of a cited file and the cited part, such as "contract.pdf, page 7"."""
        if file is None:
            return self.texts.NO_SUCH_FILE
        name = escape(shorten(to_single_line(file.name), self._max_title_chars))
        if not source.label or file.content is None:
            return name
        parts = await self.services.files.load_parts(file.content.hash)
        is_label = any(part.label == source.label for part in parts)
        place = escape(word_place(source.label, self.texts.result_words))
        return self.texts.COMMA.join([name, place]) if is_label else name

    async def _list_buttons(self, file_id: int) -> list[Button]:
        file = await self.services.files.find(file_id, self.scopes)
        if file is None:
            return []
        label = self.texts.FILE_SEND.format(name=shorten(file.name, LABEL_CHARS))
        return [make_button(label, "files", f"send {file.id}")]


def list_pages(rows: Sequence[Message]) -> list[Source]:
    """Return the web pages that were read in a turn, without duplicates.

    If a look-up needed approval, its result is stored as a pasted message: one sentence, followed
    by the text of the page.
    """
    results = [row.text for row in rows if row.role == "tool" and row.tool_name == "web_fetch"]
    pastes = [row.text for row in rows if row.role == "user" and row.origin == "pasted"]
    results += [text.partition("\n\n")[2] for text in pastes]
    if not results:
        return []
    # Imported here because most turns read no page.
    from core.tools.web import read_source

    pages = {page.url: page for page in map(read_source, results) if page is not None}
    return list(pages.values())
