"""Renders templates, Markdown and differences between texts as HTML.

All text is escaped, because the pages show text that strangers wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from zoneinfo import ZoneInfo

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from core.markup.markdown import StyledText, TextEntity, render
from core.search.results import MARKED_MATCH
from core.store.notes import NoteChange
from core.text.normalize import shorten, strip_controls
from gateway.texts.catalog import Texts

FOLDER = Path(__file__).parent
STATIC_FOLDER = FOLDER / "static"
# The elements of the styles. Links, languages and headings are rendered elsewhere, because they
# have attributes.
_ELEMENTS: Mapping[str, str] = {
    "bold": "b",
    "italic": "i",
    "strikethrough": "s",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
    "heading": "span",
    "list_marker": "span",
}
# The signs of bold text, code and headings, which a snippet would otherwise show.
_MARKDOWN_SIGNS = re.compile(r"\*\*|`+|(?m:^)#{1,6} ")
# The line that names a file in a message, as in "[attached document: lease.pdf (2,633 bytes)]". A
# title or a snippet may end within it.
_ATTACHMENT = re.compile(r"\[attached [a-z]+:\s*([^\]\n]*?)(?: \([^()\]\n]*\))?(?:\]|(?=…$)|$)")
# A command that a sentence names, as in "type mneme config set TELEGRAM_BOT_TOKEN".
_SHELL_COMMAND = re.compile(
    r"`?(\b(?:mneme [a-z]+(?: (?:set|edit|retry|setup)\b)?(?: (?:--[a-z-]+|[A-Z][A-Z_]{3,}))*"
    r"|(?:chmod|chown) \S+ \S*[^\s.]))`?",
    re.ASCII,
)
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
MAX_DIFF_CHARS = 20_000
# The front matter of a skill's text, and the names of the values at its beginning.
_FRONT_MATTER = re.compile(r"---\n(.*?)\n---\n+", re.DOTALL)
_FRONT_MATTER_NAME = re.compile(r"(name|description):\s*")
_LINK_SCHEMES = ("http://", "https://", "mailto:")


def create_environment() -> Environment:
    """Create the Jinja environment of the templates."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters["markdown"] = render_markdown
    environment.filters["fixed_markdown"] = render_fixed_markdown
    environment.filters["fixed_line"] = render_fixed_line
    environment.filters["commands"] = render_commands
    environment.filters["snippet"] = render_snippet
    environment.filters["plain"] = strip_controls
    environment.filters["attachments"] = shorten_attachments
    environment.filters["shorten"] = shorten
    environment.globals["static"] = {
        path.name: f"/static/{path.name}?{_fingerprint(path)}" for path in STATIC_FOLDER.iterdir()
    }
    return environment


class Moments:
    """Formats dates and times for a person. Templates use it as `when`."""

    def __init__(self, texts: Texts, zone: ZoneInfo) -> None:
        self._texts = texts
        self._zone = zone

    def moment(self, at: datetime | None) -> Markup:
        """Return a `time` element with date and time."""
        if at is None:
            return Markup("")
        return Markup('<time datetime="{}">{}</time>').format(
            at.isoformat(timespec="seconds"), self._texts.format_moment(at, self._zone)
        )

    def day(self, at: datetime | None) -> Markup:
        """Return a `time` element with the date."""
        if at is None:
            return Markup("")
        local = at.astimezone(self._zone)
        return Markup('<time datetime="{}">{}</time>').format(
            local.date().isoformat(), self._texts.result_words.format_day(local)
        )


def render_markdown(markdown: str) -> Markup:
    """Render the Markdown of an answer as HTML."""
    styled = render(strip_controls(markdown))
    return Markup('<div class="prose">{}</div>').format(_render_span(styled, 0, len(styled.text)))


@lru_cache(maxsize=2_000)
def render_fixed_markdown(markdown: str) -> Markup:
    """Render the Markdown of one of Mneme's own texts, such as a help text, and cache the HTML.

    Don't pass people's texts, because they would stay in memory after they are erased.
    """
    return render_markdown(markdown)


@lru_cache(maxsize=2_000)
def render_fixed_line(markdown: str) -> Markup:
    """Render a line of one of Mneme's own texts without an element around it, for a label."""
    styled = render(markdown)
    return _render_span(styled, 0, len(styled.text))


def _render_span(styled: StyledText, start: int, end: int, first: int = 0) -> Markup:
    """Render part of a text with its formatting entities, from entity number `first` on."""
    pieces: list[Markup] = []
    position = start
    number = first
    while number < len(styled.entities) and styled.entities[number].offset < end:
        entity = styled.entities[number]
        if entity.offset < position:
            # The entity is inside another entity that is already rendered.
            number += 1
            continue
        pieces.append(escape(styled.text[position : entity.offset]))
        inner = _render_span(styled, entity.offset, entity.end, number + 1)
        pieces.append(_wrap(entity, inner))
        position = entity.end
        number += 1
    pieces.append(escape(styled.text[position:end]))
    return Markup("").join(pieces)


def _wrap(entity: TextEntity, inner: Markup) -> Markup:
    """Return the HTML element of an entity around its content."""
    if entity.kind == "text_link":
        url = entity.url or ""
        if not url.lower().startswith(_LINK_SCHEMES):
            return inner
        return Markup('<a href="{}" rel="noreferrer noopener">{}</a>').format(url, inner)
    element = Markup(_ELEMENTS[entity.kind])
    return Markup("<{0}>{1}</{0}>").format(element, inner)


def measure_html(text: str) -> int:
    """Return how many bytes a text has when it's escaped."""
    return len(escape(text).encode("utf-8", "replace"))


def count_fitting(sizes_bytes: Iterable[int], limit_bytes: int) -> int:
    """Return how many of the first items fit together. The first one always does."""
    total = 0
    count = 0
    for size in sizes_bytes:
        total += size
        if count and total > limit_bytes:
            break
        count += 1
    return count


def render_said(text: str) -> Markup:
    """Render a person's text, with its own direction and its line breaks."""
    return Markup('<div class="said" dir="auto">{}</div>').format(
        strip_controls(shorten_attachments(text))
    )


def shorten_attachments(text: str) -> str:
    """Return a text whose files are named as in ``📄 lease.pdf``.

    A file whose name is cut off is left out.
    """
    return _ATTACHMENT.sub(lambda match: f"📄 {match[1]}" if match[1] else "", text)


def render_snippet(snippet: str, is_markdown: bool = False) -> Markup:
    """Render a search snippet with its matches marked. Markdown characters are removed."""
    text = shorten_attachments(strip_controls(snippet))
    if is_markdown:
        text = _MARKDOWN_SIGNS.sub("", text)
    pieces: list[Markup] = []
    position = 0
    for match in MARKED_MATCH.finditer(text):
        pieces.append(escape(text[position : match.start()]))
        pieces.append(Markup("<mark>{}</mark>").format(match[1]))
        position = match.end()
    pieces.append(escape(text[position:]))
    return Markup("").join(pieces)


def render_commands(sentence: str) -> Markup:
    """Render a sentence with its shell commands as code."""
    text = strip_controls(sentence)
    pieces: list[Markup] = []
    position = 0
    for match in _SHELL_COMMAND.finditer(text):
        pieces.append(escape(text[position : match.start()]))
        pieces.append(Markup("<code>{}</code>").format(match[1]))
        position = match.end()
    pieces.append(escape(text[position:]))
    return Markup("").join(pieces)


@dataclass(frozen=True, slots=True)
class ChangedWords:
    """A sequence of words in a diff. `kind` is "same", "del" or "ins"."""

    kind: str
    text: str


def diff_change(change: NoteChange) -> Sequence[ChangedWords]:
    """Return the word diff of a change. It's empty for a verdict on a skill, which may be long."""
    if change.skill is not None and change.before == change.after:
        return ()
    before, after = change.before or "", change.after or ""
    if change.skill is not None:
        before, after = _describe_skill_text(before), _describe_skill_text(after)
    return diff_words(before, after)


def _describe_skill_text(text: str) -> str:
    """Return the text of a skill for people: its name, its description and its steps."""
    match = _FRONT_MATTER.match(text)
    if match is None:
        return text
    lines = [_FRONT_MATTER_NAME.sub("", line) for line in match[1].splitlines()]
    return "\n".join([*lines, text[match.end() :]])


def diff_words(before: str, after: str) -> list[ChangedWords]:
    """Return a word diff of two texts. If they are long, the whole text counts as changed."""
    if len(before) + len(after) > MAX_DIFF_CHARS:
        return [ChangedWords("del", before), ChangedWords("ins", after)]
    old_words = _WORDS.findall(before)
    new_words = _WORDS.findall(after)
    runs = []
    for _, start, end, new_start, new_end in SequenceMatcher(
        None, old_words, new_words, False
    ).get_opcodes():
        old_text = "".join(old_words[start:end])
        new_text = "".join(new_words[new_start:new_end])
        if old_text == new_text:
            runs.append(ChangedWords("same", old_text))
            continue
        runs.append(ChangedWords("del", old_text))
        runs.append(ChangedWords("ins", new_text))
    return [run for run in runs if run.text]


def _fingerprint(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:12]
