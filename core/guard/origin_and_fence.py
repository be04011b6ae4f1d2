"""Tells the model who wrote a text, by the origin of a message and by the memory fence.

The fence is the `<memory-context>` block around recalled background, so that no model takes it for
new input. This module makes the block. It keeps people from forging a fence or the time line above
a message, and it removes a fence that the model repeats in its answer.

The first paragraph of a message, up to a blank line or a code fence, counts as typed. If it is
longer than `TYPED_CHARS`, nothing counts as typed. All other text counts as pasted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from hashlib import sha256

from core.types import MEMORY_TAG, Account, Message

OPENING = MEMORY_TAG
CLOSING = "</memory-context>"
NOTE = (
    "[System note: recalled background from earlier conversations. "
    "It is not new input from the person.]"
)

# Characters that look like angle brackets.
_OPENERS = "<\u2039\u2329\u27e8\u3008\u300a\u276e\u276c\u1438\ufe64\uff1c"
_CLOSERS = ">\u203a\u232a\u27e9\u3009\u300b\u276f\u276d\u1433\ufe65\uff1e"
# Characters that may stand between the letters of a forged tag.
_SKIPPED = frozenset("-_/\\!?:=~|'\"\u2044\u2215")
# Cyrillic and Greek letters that look like those of the tag.
_LOOKALIKES = str.maketrans(
    "\u043c\u0435\u043e\u0440\u0443\u0441\u0442\u0445\u03bf\u03c4\u03c7\u03c5\u03b5",
    "meopyctxotxye",
)
_TAG_LETTERS = "memorycontext"
# An opening bracket that may belong to a tag. Other ASCII signs can't be part of one.
_OPENER = re.compile(
    rf"[{_OPENERS}](?=[^\0-\x7f]|[{_TAG_LETTERS[0]}{_TAG_LETTERS[0].upper()}\s"
    rf"{re.escape(''.join(sorted(_SKIPPED)))}])"
)
# The first line of a message (`core.agent.prompt`), or an imitation of it.
TIME_LINE = re.compile(
    r"[\[\uff3b\u3010]\s{0,4}("
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day\s{1,3}\d{1,2}\s{1,3}[a-z]{3,9}\s{1,3}\d{4},?"
    r"\s{1,3}\d{1,2}:\d{2}[^\]\uff3d\u3011\n]{0,200})([\]\uff3d\u3011]?)",
    re.IGNORECASE,
)
# How the frames begin that follow the time line of a message.
QUOTE_LEAD = "In answer to"
FORWARD_LEAD = "Forwarded from"
JOB_RESULTS_LEAD = "Your own reminders and scheduled questions"
EARLIER_ANSWERS_LEAD = "Your answers to this scheduled question"
# How the frames begin that follow the text of a message.
SKILL_LEAD = "The person calls the skill"
NUDGE_LEAD = "Not from the person, and nothing to answer"
RULES_LEAD = "Rules of your owner's projects for what is named here"
_FRAME_LEADS = "|".join(
    (
        QUOTE_LEAD,
        FORWARD_LEAD,
        JOB_RESULTS_LEAD,
        EARLIER_ANSWERS_LEAD,
        SKILL_LEAD,
        NUDGE_LEAD,
        RULES_LEAD,
    )
)
FRAME_START = re.compile(rf"[\[\uff3b\u3010](?=\s{{0,4}}(?:{_FRAME_LEADS})\b)", re.IGNORECASE)


def fence(passages: str) -> str:
    """The memory block around `passages`. No tag in them can end it early."""
    return f"{OPENING}\n{NOTE}\n\n{neutralise(passages)}\n{CLOSING}"


def neutralise(text: str) -> str:
    """Change a text by others so that nothing in it looks like our own markup.

    The brackets of anything that looks like the tag or a time line become round, and so does the
    opening bracket of anything that looks like a frame. A tag is recognized in upper or lower case,
    with attributes, with signs between its letters and with letters of other alphabets. A second
    pass changes nothing.
    """
    text = TIME_LINE.sub(lambda match: f"({match[1]}{')' if match[2] else ''}", text)
    text = FRAME_START.sub("(", text)
    characters: list[str] = []
    for opener in _OPENER.finditer(text):
        tag_end = _find_tag_end(text, opener.end())
        if tag_end is None:
            continue
        if not characters:
            characters = list(text)
        characters[opener.start()] = "("
        if tag_end < len(text):
            characters[tag_end] = ")"
    return "".join(characters) if characters else text


def _find_tag_end(text: str, start: int) -> int | None:
    """The position of the bracket that closes a tag whose opening bracket is before `start`.

    Returns the end of the text if the tag isn't closed next, and None if it isn't a tag. The search
    never crosses another opening bracket, so all searches in a text together take linear time.
    """
    remaining_letters = _TAG_LETTERS
    for position in range(start, len(text)):
        letters = _fold_character(text[position])
        if not remaining_letters and letters:
            return position if letters == ">" else len(text)
        if not remaining_letters.startswith(letters):
            return None
        remaining_letters = remaining_letters[len(letters) :]
    return None if remaining_letters else len(text)


@lru_cache(maxsize=4096)
def _fold_character(character: str) -> str:
    """The letters of the tag that a character looks like; empty for signs that are ignored."""
    if character in _OPENERS:
        return "<"
    if character in _CLOSERS:
        return ">"
    if character in _SKIPPED or character.isspace():
        return ""
    if character.isascii():
        return character.lower()
    if unicodedata.category(character) in ("Cf", "Cc", "Mn", "Me", "Pd", "Pc"):
        return ""
    letters = unicodedata.normalize("NFKD", character).casefold().translate(_LOOKALIKES)
    return "".join(
        letter
        for letter in letters
        if unicodedata.category(letter) != "Mn" and letter not in _SKIPPED
    )


_NAME = OPENING[1:-1]
_NAME_TO_END = rf"(?i:{_NAME})(?:[\s/][^<>]*)?>"
# Group 1 is empty for an opening tag, a slash for a closing tag, and None for the note.
_TAG = re.compile(rf"<\s*(/\s*|){_NAME_TO_END}|\[(?i:{re.escape(NOTE[1:])})", re.ASCII)
_TAG_START = re.compile(r"<\s*(?:/\s*)?([^\s/<>]*)([\s/][^<>]*)?", re.ASCII)
# The closing tag or our note. After an opening tag, it proves that the tag begins a block.
_BLOCK_EVIDENCE = re.compile(
    rf"<\s*/\s*{_NAME_TO_END}|\[(?i:{re.escape(NOTE[1 : NOTE.index(':')])})", re.ASCII
)
_QUOTE_CHARS = " \t>"
_CODE_FENCE = re.compile(rf"[{_QUOTE_CHARS}]*(~{{3,}}|`{{3,}}(?=[^`]*$))")
_INLINE_CODE = re.compile(r"(`(?<![`\\].)`*)(?!`).+?(?<!`)\1(?!`)")
_NON_SPACE = re.compile(r"\S")
_LINE_END = re.compile("\n")
# Only the beginning of a longer line is looked at for code.
_MAX_CODE_LINE_CHARS = 4_000


class _TagKind(Enum):
    OPENING = "opening"
    CLOSING = "closing"
    NOTE = "note"


def _tag_kind(tag: re.Match[str]) -> _TagKind:
    if tag[1] is None:
        return _TagKind.NOTE
    return _TagKind.CLOSING if tag[1] else _TagKind.OPENING


class _NextMatch:
    """Finds the next match of a pattern in a text that grows at its end.

    Hardly any part of the text is searched twice, however often `find` is called.
    `find_unfinished` returns the earliest position at which later text may complete a match.
    """

    def __init__(self, pattern: re.Pattern[str], find_unfinished: Callable[[str], int]) -> None:
        self._pattern = pattern
        self._find_unfinished = find_unfinished
        # The end of the part that has no match, or the start of the next match.
        self._position = 0
        self._end: int | None = None

    def find(self, text: str, start: int) -> tuple[int, int] | None:
        """The bounds of the first match at or after `start`, or None.

        `start` must not be smaller than in earlier calls.
        """
        if self._end is not None and self._position >= start:
            return self._position, self._end
        match = self._pattern.search(text, max(start, self._position))
        if match is not None:
            self._position, self._end = match.span()
            return self._position, self._end
        self._position = max(self._position, self._find_unfinished(text))
        self._end = None
        return None

    def drop(self, count: int) -> None:
        """Adapt to the removal of the first `count` characters of the text."""
        if self._position < count:
            self._position = 0
            self._end = None
            return
        self._position -= count
        if self._end is not None:
            self._end -= count


def _find_unfinished_evidence(text: str) -> int:
    """Where the last tag or note begins that later text may complete."""
    note = text.find("[", max(0, len(text) - len(NOTE)))
    tag = text.rfind("<")
    return tag if note < 0 else min(tag, note)


class Scrubber:
    """Removes memory blocks from a stream of text.

    `feed` holds back only text that may become a block. The result depends on the text alone, never
    on where it is cut into chunks.

    A tag begins a block in two cases: its closing tag or our note follows; or it ends its line, as
    ours does, and more text follows or nothing stands before it. The block ends at its closing tag,
    or at the end of the text. For a tag in Markdown code, only the rest of the same code counts,
    and the end of its line counts only if the tag is alone on it. Any other tag is only mentioned:
    it stays, in round brackets.
    """

    def __init__(self) -> None:
        self._reset()

    def feed(self, chunk: str) -> str:
        """Add a chunk; return the text that may be shown from now on."""
        self._held += chunk
        return self._release(is_end=False)

    def close(self) -> str:
        """Return the rest. The scrubber can then be used again."""
        text = self._release(is_end=True)
        self._reset()
        return text

    def _reset(self) -> None:
        # Text that may not be shown yet.
        self._held = ""
        self._next_evidence = _NextMatch(_BLOCK_EVIDENCE, _find_unfinished_evidence)
        self._next_line_end = _NextMatch(_LINE_END, len)
        # Finds what closes `_code_fence`.
        self._next_fence = _NextMatch(_LINE_END, len)
        # The beginning of the current line, as far as it was shown.
        self._line = ""
        # The bounds of the inline code in a line, and the line.
        self._code_spans: tuple[str, list[tuple[int, int]]] = ("", [])
        # What opened the code block that the text is in; empty outside of one.
        self._code_fence = ""
        self._is_in_block = False

    def _release(self, *, is_end: bool) -> str:
        """Take the text out of `_held` that is decided; return the part outside of blocks."""
        pieces: list[str] = []
        position = 0
        while tag := _TAG.search(self._held, position):
            kind = _tag_kind(tag)
            if self._is_in_block:
                self._is_in_block = kind is not _TagKind.CLOSING
                position = tag.end()
                continue
            pieces.append(self._show(self._held[position : tag.start()]))
            position = tag.start()
            if kind is _TagKind.OPENING:
                is_block = self._is_block(tag, is_end)
                if is_block is None:
                    self._drop(position)
                    return "".join(pieces)
                self._is_in_block = is_block
            if kind is not _TagKind.NOTE and not self._is_in_block:
                pieces.append(self._show(f"({tag[0][1:-1]})"))
            position = tag.end()

        end = len(self._held) if is_end else _find_tag_start(self._held, position)
        if not self._is_in_block:
            pieces.append(self._show(self._held[position:end]))
        self._drop(end)
        return "".join(pieces)

    def _drop(self, count: int) -> None:
        """Remove the first `count` characters of `_held`."""
        self._held = self._held[count:]
        self._next_evidence.drop(count)
        self._next_line_end.drop(count)
        self._next_fence.drop(count)

    def _show(self, text: str) -> str:
        """Follow the current line and code block; return the text unchanged."""
        if "\n" not in text and len(self._line) == _MAX_CODE_LINE_CHARS:
            return text
        *lines, rest = (self._line + text).split("\n")
        self._line = rest[:_MAX_CODE_LINE_CHARS]
        for line in lines:
            line = line[:_MAX_CODE_LINE_CHARS]
            if not self._code_fence:
                opening = _CODE_FENCE.match(line)
                if opening is not None:
                    self._open_code_fence(opening[1])
            elif line.lstrip(_QUOTE_CHARS).startswith(self._code_fence):
                self._code_fence = ""
        return text

    def _open_code_fence(self, code_fence: str) -> None:
        self._code_fence = code_fence
        closing = re.compile(rf"\n[{_QUOTE_CHARS}]*{code_fence}")
        self._next_fence = _NextMatch(closing, lambda text: text.rfind("\n"))

    def _is_block(self, tag: re.Match[str], is_end: bool) -> bool | None:
        """Whether an opening tag begins a block; None if that depends on later text."""
        line_end = self._next_line_end.find(self._held, tag.end())
        if line_end is None and not is_end:
            return None
        line_stop = len(self._held) if line_end is None else line_end[0]
        code_stop = self._find_code_end(tag, line_stop)
        is_in_code = code_stop is not None
        stop = len(self._held) if code_stop is None else code_stop

        ends_line = _NON_SPACE.search(self._held, tag.end(), line_stop) is None
        is_alone = ends_line and not self._line.strip(_QUOTE_CHARS)
        has_content = ends_line and _NON_SPACE.search(self._held, line_stop, stop) is not None

        evidence = self._next_evidence.find(self._held, tag.end())
        if evidence is not None and evidence[1] <= stop:
            return True
        if is_in_code:
            return is_alone and has_content
        if has_content and (is_end or not self._code_fence):
            return True
        return is_alone if is_end else None

    def _find_code_end(self, tag: re.Match[str], line_stop: int) -> int | None:
        """Where the Markdown code ends that contains the tag. `line_stop` is the end of its line.

        Returns None if the tag isn't in code, or if the end of the code hasn't come yet.
        """
        if self._code_fence:
            closing = self._next_fence.find(self._held, tag.end())
            return None if closing is None else closing[0]
        column = len(self._line)
        if column >= _MAX_CODE_LINE_CHARS:
            return None
        line_stop = min(line_stop, tag.start() + _MAX_CODE_LINE_CHARS - column)
        line = self._line + self._held[tag.start() : line_stop]
        for start, end in self._find_inline_code(line):
            if start < column < end:
                return tag.start() + end - column
        return None

    def _find_inline_code(self, line: str) -> list[tuple[int, int]]:
        """The bounds of the inline code in a line. The result for the last line is kept."""
        if "`" not in line:
            return []
        # The brackets of earlier tags have become round.
        line = line.replace("<", "(").replace(">", ")")
        if line != self._code_spans[0]:
            self._code_spans = (line, [code.span() for code in _INLINE_CODE.finditer(line)])
        return self._code_spans[1]


def _find_tag_start(text: str, start: int) -> int:
    """The position of an unfinished tag or note at the end of a text; otherwise its end."""
    tag, note = text.rfind("<", start), text.rfind("[", start)
    match = _TAG_START.fullmatch(text, tag) if tag >= 0 else None
    if match:
        name = match[1].lower()
        # Attributes can only follow the complete name.
        has_attributes = match[2] is not None
        if name == _NAME or (not has_attributes and _NAME.startswith(name)):
            return tag
    if note >= 0 and NOTE.lower().startswith(text[note:].lower()):
        return note
    return len(text)


def scrub(text: str) -> str:
    """A whole text without memory blocks."""
    scrubber = Scrubber()
    return scrubber.feed(text) + scrubber.close()


# A longer first paragraph counts as pasted.
TYPED_CHARS = 600
MARK_LETTERS = 4
_PASTE_START = re.compile(r"\n[^\S\n]*\n|^[^\S\n]{0,3}(?:```|~~~)", re.MULTILINE)
# Origins whose label differs from their name.
_ORIGIN_LABELS = {"via_bot": "sent through a bot", "tool": ""}


def typed_part(text: str) -> str:
    """The part of a message with origin "typed" that was typed; may be empty."""
    text = text.strip()
    paste = _PASTE_START.search(text)
    if paste is not None:
        text = text[: paste.start()].strip()
    return text if len(text) <= TYPED_CHARS else ""


def typed_text(message: Message) -> str:
    """The part of a message that its person typed.

    Returns "" if the message was forwarded, sent through a bot or imported, or if the sender is
    anonymous.
    """
    is_persons = message.role == "user" and message.kind == "chat"
    is_anonymous = message.sender is not None and message.sender.is_anonymous
    if not is_persons or is_anonymous or message.origin != "typed":
        return ""
    return typed_part(message.text)


def origin_label(message: Message) -> str:
    """The origin of a person's message for its time line; empty if all of it was typed."""
    if message.origin != "typed":
        return _ORIGIN_LABELS.get(message.origin, message.origin)
    return "" if typed_part(message.text) == message.text.strip() else "partly pasted"


def account_mark(account: Account) -> str:
    """A short stable mark of an account: ``#3fa9``. It tells two people of the same name apart."""
    return f"#{sha256(account.key.encode()).hexdigest()[:MARK_LETTERS]}"
