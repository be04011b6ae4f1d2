"""Render search results as Markdown for people, and as JSON for programs (``recall --json``)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from core.errors import Sentence
from core.markup.markdown import escape
from core.search.results import ELLIPSIS, MARKED_MATCH, MATCH_END, MATCH_START
from core.store.query import (
    MAX_FIRST_MESSAGES,
    FileHit,
    FoundSession,
    Hit,
    NoteHit,
    SearchResults,
    Shape,
    ShownMessage,
)
from core.text.normalize import isolate_title, join_sentences, shorten

TITLE_CHARS = 80
MAX_NOTE_CHARS = 500
"""A longer note is cut."""
MAX_CARD_MATCHES = 2
"""A card shows at most this many matches of its session."""
# Kinds of files whose names on the platform are meaningless.
NAMELESS_KINDS = frozenset({"voice", "video", "video_note"})
# The labels that the decoders give to parts of a file. A chapter may have a heading after it.
_NUMBERED_PART = re.compile(r"(?P<part>page|line|chapter|slide) (?P<number>\d+)(?=,|\Z)")
# The source of a forwarded message: see `describe_quote`.
_FORWARD = re.compile(r"forwarded(?: from (?P<name>.+))?")
_BLANKS = re.compile(r"\s+")
# The words of imports for kinds that have another name here.
_KINDS: Mapping[str, str] = {
    "voice message": "voice",
    "video message": "video_note",
    "video note": "video_note",
    "audio file": "audio",
    "picture": "image",
    "attachment": "file",
}
_IMPORTED_KINDS = (
    "photo|image|picture|video|video message|voice message|animation|sticker|audio|audio file|file"
    "|attachment|contact|location|poll"
)
# Names that adapters give to files without one.
_DEFAULT_NAMES = frozenset(
    {"photo.jpg", "animation.mp4", "document", "voice.ogg", "audio", "video.mp4", "sticker"}
)
_SIGNS: Mapping[str, str] = {"contact": "👤", "location": "📍", "poll": "📊"}
_MARK = f"(?:{MATCH_START}|{MATCH_END})?"
# The end of a line. A title or a snippet may end within it.
_END = rf"(?:\]|(?={ELLIPSIS})|$)"
_ATTACHED = re.compile(
    rf"\[{_MARK}attached{_MARK} {_MARK}(?P<kind>[a-z]+(?: [a-z]+)?){_MARK}: (?P<name>[^\[\]\n]*?)"
    rf"(?: \([^()\[\]\n]*(?:\)(?={_END})|(?={ELLIPSIS})|$))?{_END}",
    re.MULTILINE,
)
_IMPORTED = re.compile(
    rf"^\[{_MARK}(?P<kind>{_IMPORTED_KINDS}){_MARK}(?:: (?P<name>[^\[\]\n]+?))?{_END}", re.MULTILINE
)
_FORWARDED = re.compile(
    rf"^\[{_MARK}forwarded{_MARK} {_MARK}from{_MARK} (?P<name>[^\[\]\n]+?){_END}", re.MULTILINE
)
_OMITTED_VALUES: dict[str, Any] = {
    "messages": [],
    "files": [],
    "notes": [],
    "has_more": False,
    "origin": "typed",
    "note": None,
    "external_session": None,
    "summary": None,
    "preview": None,
    "external_id": None,
    "link": None,
    "quoted": None,
}
"""A field of the JSON is left out if it has this value."""


def to_json(results: SearchResults) -> dict[str, Any]:
    """Return the results as the object that docs/recall.md describes.

    Times are in ISO 8601, UTC.
    """
    return _omit_defaults(
        {
            "query": results.query,
            "shape": results.shape,
            "took_ms": results.took_ms,
            "sessions": list(map(_session_fields, results.sessions)),
            "messages": list(map(_message_fields, results.messages)),
            "files": [file._asdict() | {"at": file.at.isoformat()} for file in results.files],
            "notes": [note._asdict() for note in results.note_hits],
            "has_more": results.has_more,
            "note": results.note,
        }
    )


def _omit_defaults(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in fields.items()
        if name not in _OMITTED_VALUES or value != _OMITTED_VALUES[name]
    }


def _session_fields(result: FoundSession) -> dict[str, Any]:
    """Return the JSON fields of a session. Each message appears only once."""
    session = result.session
    window_ids = {message.message_id for message in result.window}
    first = [message for message in result.bookend_start if message.message_id not in window_ids]
    first_ids = {message.message_id for message in first}
    last = [
        message
        for message in result.bookend_end
        if message.message_id not in window_ids | first_ids
    ]
    return _omit_defaults(
        {
            "session_id": session.id,
            "title": session.title,
            "started_at": session.started_at.isoformat(),
            "platform": session.address.platform,
            "score": round(result.score, 6),
            "matches": list(map(_message_fields, result.matches)),
            "bookend_start": list(map(_message_fields, first)),
            "window": list(map(_message_fields, result.window)),
            "bookend_end": list(map(_message_fields, last)),
            "messages_before": result.messages_before,
            "messages_after": result.messages_after,
            "external_session": session.external_id,
            "summary": result.summary,
            "preview": result.preview,
        }
    )


def _message_fields(message: Hit | ShownMessage) -> dict[str, Any]:
    """Return the JSON fields of a message, without ids that programs don't need."""
    fields = message._asdict()
    fields["at"] = message.at.isoformat()
    if isinstance(message, Hit):
        fields["score"] = round(message.score, 6)
        del fields["session_id"], fields["sender"], fields["origin"]
    else:
        del fields["sender_id"]
    return _omit_defaults(fields)


class ResultWords(Protocol):
    """The words of one language in which results are rendered."""

    @property
    def templates(self) -> Mapping[str, str]:
        """The texts of this language by the keys of `data/results.toml`."""

    def word(self, sentence: Sentence) -> str:
        """Return a sentence translated into this language."""

    def word_name(self, name: str) -> str:
        """Return the name of a sender or the title of a conversation, translated if it's ours."""

    def word_text(self, text: str) -> str:
        """Return the text of a message, with the lines that Mneme inserted translated."""

    def format_time(self, at: datetime) -> str:
        """Format the time of a session: ``Fri 20 Nov 2026, 09:30``."""

    def format_day(self, at: datetime) -> str:
        """Format the day of a file: ``20 Nov 2026``."""

    def format_short_day(self, at: datetime) -> str:
        """Format the day of a message without the year: ``20 Nov``."""


class EnglishWords:
    """The English words. `kinds` has the words for kinds of files."""

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds

    @property
    def templates(self) -> Mapping[str, str]:
        return load_english_words()

    def word(self, sentence: Sentence) -> str:
        return str(sentence)

    def word_name(self, name: str) -> str:
        return self.word_text(name)

    def word_text(self, text: str) -> str:
        return name_attachments(text, self._kinds, self.templates["forwarded_from"])

    def format_time(self, at: datetime) -> str:
        return f"{at:%a %-d %b %Y, %H:%M}"

    def format_day(self, at: datetime) -> str:
        return f"{at:%-d %b %Y}"

    def format_short_day(self, at: datetime) -> str:
        return f"{at:%-d %b}"


ENGLISH_WORDS: ResultWords = EnglishWords({})


@cache
def load_english_words() -> Mapping[str, str]:
    """Return the English texts by their keys."""
    path = Path(__file__).parent / "data" / "results.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def name_attachments(text: str, kinds: Mapping[str, str], forwarded_from: str) -> str:
    """Return a text with a sign and a name in place of each line for an attachment.

    "[attached photo: boat.jpg (20 bytes)]" becomes "📎 boat.jpg". Messages are stored with such
    lines, because the model and the search read them. Imports store lines such as "[photo]". A file
    without a name of its own is named by its kind. `kinds` has the words for kinds, and
    `forwarded_from` is a template such as "forwarded from {name}".
    """
    if "[" not in text:
        return text

    def name(match: re.Match[str]) -> str:
        kind = _KINDS.get(match["kind"], match["kind"])
        file_name = match["name"] or ""
        bare_name = file_name.replace(MATCH_START, "").replace(MATCH_END, "")
        if kind == "voice" or not bare_name or bare_name in _DEFAULT_NAMES:
            file_name = kinds.get(kind, kind.replace("_", " "))
        return f"{_SIGNS.get(kind, '📎')} {file_name}"

    def word_forward(match: re.Match[str]) -> str:
        return f"↪ {forwarded_from.format(name=match['name'])}"

    return _FORWARDED.sub(word_forward, _IMPORTED.sub(name, _ATTACHED.sub(name, text)))


def to_markdown(results: SearchResults, zone: tzinfo, words: ResultWords = ENGLISH_WORDS) -> str:
    """Render the results as Markdown. The text is never empty."""
    if not has_results(results):
        return escape(describe_no_results(results, words))
    return "\n\n".join(list_parts(results, zone, words))


def list_parts(
    results: SearchResults, zone: tzinfo, words: ResultWords = ENGLISH_WORDS
) -> list[str]:
    """Render the results in parts, as Markdown.

    Depending on the shape, a part is a card for one session, or the messages of one conversation.
    Explanations, files and the person's notes come first. If nothing was found, there are no parts.
    """
    if not has_results(results):
        return []
    if results.shape in ("scroll", "read"):
        parts = [
            _render_conversation(result, results.shape, zone, words) for result in results.sessions
        ]
    else:
        parts = [
            _render_card(number, result, zone, words)
            for number, result in enumerate(results.sessions, 1)
        ]
    if results.note_hits:
        parts.insert(0, _render_notes(results.note_hits, words))
    if results.files:
        parts.insert(0, "\n".join(_render_file(file, zone, words) for file in results.files))
    if results.notes:
        notes = join_sentences(map(words.word, results.notes))
        parts.insert(0, f"_{escape(notes)}_")
    return parts


def has_results(results: SearchResults) -> bool:
    """Return whether a search found anything."""
    return bool(results.sessions or results.files or results.note_hits)


def _render_notes(notes: Sequence[NoteHit], words: ResultWords) -> str:
    """Render notes as quotations below a heading, without dates, as they have none."""
    quotations = [f"> {_escape_line(shorten(note.text, MAX_NOTE_CHARS))}" for note in notes]
    return "\n\n".join([f"📝 **{words.templates['from_notes']}**", *quotations])


def describe_file(file: FileHit, words: ResultWords = ENGLISH_WORDS) -> str:
    """Name a file and the place of the words in it: "contract.pdf, page 7"."""
    key = file.kind.replace(" ", "_")
    name = words.templates[key] if key in NAMELESS_KINDS else _escape_line(file.name)
    return f"{name}, {_escape_line(word_place(file.place, words))}" if file.place else name


def word_place(label: str, words: ResultWords) -> str:
    """Return the label of a part of a file in other words: "Seite 7" for "page 7".

    A heading, the name of a sheet or a time stays as it is.
    """
    match = _NUMBERED_PART.match(label)
    if match is None:
        return label
    return words.templates[match["part"]].format(number=match["number"]) + label[match.end() :]


def _render_file(file: FileHit, zone: tzinfo, words: ResultWords) -> str:
    """Render a file as lines: its name, the place, the day, and the text around the words."""
    at = file.at.astimezone(zone)
    line = f"📎 **{describe_file(file, words)}** · {words.format_day(at)}"
    return f"{line}\n> {_escape_line(file.snippet)}" if file.snippet else line


def describe_no_results(results: SearchResults, words: ResultWords = ENGLISH_WORDS) -> str:
    """Say in one sentence that nothing was found, and add the notes of the results."""
    key = "nothing"
    if results.shape == "scroll":
        key = "no_message"
    elif results.shape == "read":
        key = "no_session"
    elif results.shape == "browse" and not results.notes:
        key = "no_sessions"
    return join_sentences([words.templates[key], *map(words.word, results.notes)])


def _render_card(number: int, result: FoundSession, zone: tzinfo, words: ResultWords) -> str:
    """Render a session with its first matches, and the message that a match replies to.

    A session without matches shows its preview, unless its title says the same. A summary comes
    last.
    """
    at = _time_of(result).astimezone(zone)
    lines = [_render_heading(f"{number}. ", result, at, words)]
    matches = result.matches[:MAX_CARD_MATCHES]
    lines += [f"> {_render_match(hit, words)}" for hit in matches]
    quotes = [hit.quoted for hit in matches if hit.quoted]
    if quotes:
        lines.append(f"> {_render_quote(quotes[0], words)}")
    title = result.session.title or ""
    preview = result.preview or ""
    repeats_title = preview.startswith(title.rstrip(ELLIPSIS))
    if not result.matches and title and preview and not repeats_title:
        lines.append(f"> {_escape_line(words.word_text(preview))}")
    if result.summary:
        lines += ["", result.summary.strip()]
    return "\n".join(lines)


def _render_conversation(
    result: FoundSession, shape: Shape, zone: tzinfo, words: ResultWords
) -> str:
    """Render all messages of a session's window.

    A message shows its date if the previous message was sent on another day. Lines such as "(3
    earlier)" count the messages that are left out.
    """
    at = _time_of(result).astimezone(zone)
    lines = [_render_heading("", result, at, words)]
    if result.summary:
        lines += ["", result.summary.strip(), ""]
    if result.messages_before:
        lines.append(words.templates["earlier"].format(count=result.messages_before))
    day = at.date()
    for index, message in enumerate(result.window):
        if shape == "read" and result.messages_after and index == MAX_FIRST_MESSAGES:
            lines.append(words.templates["between"].format(count=result.messages_after))
        at = message.at.astimezone(zone)
        time = f"{at:%H:%M}"
        if at.date() != day:
            time = f"{words.format_short_day(at)}, {time}"
        day = at.date()
        lines.append(_render_message(message, time, words))
    if shape == "scroll" and result.messages_after:
        lines.append(words.templates["more"].format(count=result.messages_after))
    return "\n".join(lines)


def _render_message(message: ShownMessage, time: str, words: ResultWords) -> str:
    """Render a message as a list item.

    The anchor is bold. The item ends with the link to the message and the beginning of the message
    that it replies to.
    """
    sender = words.word_name(message.sender or "")
    if not sender:
        sender = words.templates.get(message.role, message.role)
    line = f"{time} {_escape_line(sender)}: {_escape_line(words.word_text(message.text))}"
    if not message.is_anchor:
        return f"- {line}"
    quote = f" {_render_quote(message.quoted, words)}" if message.quoted else ""
    return f"- **{line}**{_render_link(message.link, words)}{quote}"


def _render_heading(number: str, result: FoundSession, at: datetime, words: ResultWords) -> str:
    """Render the title, time, platform and id of a session. A long title is cut between words."""
    session = result.session
    title = words.word_name(session.title or "") or words.word_text(result.preview or "")
    title = title or words.templates["untitled"]
    if len(title) > TITLE_CHARS:
        end = title.rfind(" ", 0, TITLE_CHARS)
        if end <= TITLE_CHARS // 2:
            end = TITLE_CHARS
        title = title[:end] + ELLIPSIS
    time = words.format_time(at)
    platform = session.address.platform
    name = words.templates["session"].format(number=session.id)
    return f"**{number}{isolate_title(_escape_line(title))}** · {time} · {platform} · {name}"


def _time_of(result: FoundSession) -> datetime:
    """Return the time of the best match, or else of the anchor, or else of the last message."""
    if result.matches:
        return result.matches[0].at
    for message in result.window:
        if message.is_anchor:
            return message.at
    return result.session.last_at or result.session.started_at


def _render_match(hit: Hit, words: ResultWords) -> str:
    """Render a match as its snippet, with the matching words in bold, and its link."""
    text = ""
    # The pattern has a group, so `split` returns the texts between the matches at even indexes and
    # the matches at odd ones.
    for index, part in enumerate(MARKED_MATCH.split(words.word_text(hit.snippet))):
        is_match = index % 2 == 1
        text += f"**{_escape_line(part)}**" if is_match else _escape_line(part)
    if hit.role == "tool" and hit.link:
        # The result of a tool has a link only if the tool read a web page.
        label = words.templates["read_from"].format(host=urlsplit(hit.link).hostname or hit.link)
        return f"{text} [{escape(label)}](<{hit.link}>)"
    return text + _render_link(hit.link, words)


def word_quote(quote: str, words: ResultWords) -> str:
    """Return the text of `describe_quote` in other words: "weitergeleitet von Ana"."""
    forward = _FORWARD.fullmatch(quote)
    if forward is None:
        return words.word_text(quote)
    key = "forwarded_from" if forward["name"] else "forwarded"
    return words.templates[key].format(name=forward["name"])


def _render_quote(quote: str, words: ResultWords) -> str:
    return f"↩ {_escape_line(word_quote(quote, words))}"


def _render_link(link: str | None, words: ResultWords) -> str:
    return f" [{words.templates['open']}]({link})" if link else ""


def _escape_line(text: str) -> str:
    """Escape a text for Markdown, and join its lines. A leading space is kept."""
    line = _BLANKS.sub(" ", text)
    markdown = escape(line.lstrip())
    return f" {markdown}" if line.startswith(" ") else markdown
