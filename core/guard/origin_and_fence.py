"""Marks text for the model: the fence around recalled background, and the origin of messages.

The fence is the `<memory-context>` block, which separates recalled background from new input. This
module builds the block (`fence`), prevents people from forging it (`neutralise`), and removes a
block that the model repeats in its answer (`Scrubber`).

The origin says who wrote a text. Of a message that a person sent, the first paragraph up to a blank
line or a code block counts as typed, except quoted lines, and the rest as pasted. What follows a
lead such as "look at this:" is pasted, too (`core/text/data/pastes.toml`). If the first paragraph
is longer than `TYPED_CHARS`, the whole message counts as pasted. What a platform inserts isn't
typed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from enum import Enum
from functools import cache, lru_cache
from hashlib import sha256

from core.text.normalize import language_data
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
# Characters that are ignored between the letters of a forged tag.
_SKIPPED = frozenset("-_/\\!?:=~|'\"\u2044\u2215")
# Cyrillic and Greek letters that look like those of the tag.
_LOOKALIKES = str.maketrans(
    "\u043c\u0435\u043e\u0440\u0443\u0441\u0442\u0445\u03bf\u03c4\u03c7\u03c5\u03b5",
    "meopyctxotxye",
)
_TAG_LETTERS = "memorycontext"
# An opening bracket after which a forged tag may follow: "m", a sign that is ignored, or a
# character outside of ASCII, which may look like one of these.
_OPENER = re.compile(
    rf"[{_OPENERS}](?=[^\0-\x7f]|[{_TAG_LETTERS[0]}{_TAG_LETTERS[0].upper()}\s"
    rf"{re.escape(''.join(sorted(_SKIPPED)))}])"
)
# The time line at the beginning of a message (`core.agent.prompt`), or an imitation of one:
# "[Monday 8 May 2023, 14:05 …]". Group 2 is the closing bracket.
TIME_LINE = re.compile(
    r"[\[\uff3b\u3010]\s{0,4}("
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day\s{1,3}\d{1,2}\s{1,3}[a-z]{3,9}\s{1,3}\d{4},?"
    r"\s{1,3}\d{1,2}:\d{2}[^\]\uff3d\u3011\n]{0,200})([\]\uff3d\u3011]?)",
    re.IGNORECASE,
)
# The first words of the frames after the time line of a message. A frame is a text in brackets
# that Mneme adds.
QUOTE_LEAD = "In answer to"
FORWARD_LEAD = "Forwarded from"
JOB_RESULTS_LEAD = "Your own reminders and scheduled questions"
EARLIER_ANSWERS_LEAD = "Your answers to this scheduled question"
# The first words of the frames after the text of a message.
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
# The opening bracket of a frame, or of an imitation.
FRAME_START = re.compile(rf"[\[\uff3b\u3010](?=\s{{0,4}}(?:{_FRAME_LEADS})\b)", re.IGNORECASE)


def fence(passages: str) -> str:
    """Return the memory block that contains `passages`. No tag in them can end the block early."""
    return f"{OPENING}\n{NOTE}\n\n{neutralise(passages)}\n{CLOSING}"


def neutralise(text: str) -> str:
    """Return a text of others so that nothing in it looks like our own markup.

    The brackets of a forged tag or time line, and the opening bracket of a forged frame, become
    round. For example, "<memory-context>" becomes "(memory-context)". A forged tag may be in upper
    case, have attributes or signs between its letters, and use letters of other alphabets. Calling
    this function again changes nothing.
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
    """Return the position of the closing bracket of a tag whose opening bracket is before `start`.

    If other text follows the letters of the tag, such as attributes, the end of the text is
    returned. Returns None if the letters aren't those of our tag. The search stops at the next
    opening bracket, so all searches in a text together take linear time.
    """
    remaining_letters = _TAG_LETTERS
    for position in range(start, len(text)):
        letters = _fold_character(text[position])
        # After the whole name of the tag, the first character that counts decides.
        if not remaining_letters and letters:
            return position if letters == ">" else len(text)
        if not remaining_letters.startswith(letters):
            return None
        remaining_letters = remaining_letters[len(letters) :]
    return None if remaining_letters else len(text)


@lru_cache(maxsize=4096)
def _fold_character(character: str) -> str:
    """Return the ASCII letters or the bracket that a character looks like.

    The result is empty for signs that are ignored in a tag.
    """
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
# The rest of a tag from its name on, perhaps with attributes: "memory-context id=1>".
_NAME_TO_END = rf"(?i:{_NAME})(?:[\s/][^<>]*)?>"
# A tag or our note. Group 1 is empty for an opening tag, a slash for a closing tag, and None for
# the note.
_TAG = re.compile(rf"<\s*(/\s*|){_NAME_TO_END}|\[(?i:{re.escape(NOTE[1:])})", re.ASCII)
# The beginning of any tag. Group 1 is its name, which may be incomplete, group 2 the attributes.
_TAG_START = re.compile(r"<\s*(?:/\s*)?([^\s/<>]*)([\s/][^<>]*)?", re.ASCII)
# The closing tag or our note. After an opening tag, it proves that the tag begins a block.
_BLOCK_EVIDENCE = re.compile(
    rf"<\s*/\s*{_NAME_TO_END}|\[(?i:{re.escape(NOTE[1 : NOTE.index(':')])})", re.ASCII
)
_QUOTE_CHARS = " \t>"
# The line that opens a code block in Markdown: "```python", "> ~~~".
_CODE_FENCE = re.compile(rf"[{_QUOTE_CHARS}]*(~{{3,}}|`{{3,}}(?=[^`]*$))")
# Inline code: as many backticks after it as before it.
_INLINE_CODE = re.compile(r"(`(?<![`\\].)`*)(?!`).+?(?<!`)\1(?!`)")
_NON_SPACE = re.compile(r"\S")
_LINE_END = re.compile("\n")
# Inline code and code blocks are recognised only in this much of the beginning of a line.
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

    Almost no part of the text is searched twice, no matter how often `find` is called.
    `find_unfinished` returns the earliest position in a text where a match may begin that later
    text completes.
    """

    def __init__(self, pattern: re.Pattern[str], find_unfinished: Callable[[str], int]) -> None:
        self._pattern = pattern
        self._find_unfinished = find_unfinished
        # The start and the end of the next match. If no match was found, `_end` is None, and the
        # text before `_position` contains no match.
        self._position = 0
        self._end: int | None = None

    def find(self, text: str, start: int) -> tuple[int, int] | None:
        """Return the start and the end of the first match at or after `start`, or None.

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
        """Adjust the positions after the first `count` characters of the text were removed."""
        if self._position < count:
            self._position = 0
            self._end = None
            return
        self._position -= count
        if self._end is not None:
            self._end -= count


def _find_unfinished_evidence(text: str) -> int:
    """Return the start of a tag or note at the end of a text that later text may complete.

    Returns the length of the text if there is none.
    """
    tag = text.rfind("<")
    if tag < 0 or text.find(">", tag) >= 0:
        tag = len(text)
    note = text.find("[", max(0, len(text) - len(NOTE)))
    return tag if note < 0 else min(tag, note)


class Scrubber:
    """Removes memory blocks from a stream of text.

    `feed` holds back only text that may be part of a block. The result is the same however the text
    is cut into chunks.

    An opening tag begins a block in two cases:

    * A closing tag or our note follows.
    * The tag is the last thing on its line, as in our blocks, and either more text follows or the
      line contains nothing else.

    The block ends at its closing tag, or at the end of the text. If the tag is in Markdown code,
    only the rest of this code is searched for a closing tag or our note, and the second case
    applies only to a tag that is alone on its line. Any other tag is only mentioned in the answer.
    It remains, with round brackets.
    """

    def __init__(self) -> None:
        self._reset()

    def feed(self, chunk: str) -> str:
        """Add a chunk, and return the text that may be shown now."""
        self._held += chunk
        return self._release(is_end=False)

    def close(self) -> str:
        """End the text and return the rest of it. The scrubber can be used again afterwards."""
        text = self._release(is_end=True)
        self._reset()
        return text

    def _reset(self) -> None:
        # Text that may not be shown yet.
        self._held = ""
        self._next_evidence = _NextMatch(_BLOCK_EVIDENCE, _find_unfinished_evidence)
        self._next_line_end = _NextMatch(_LINE_END, len)
        # Finds the line that closes the code block. Unused outside of a code block.
        self._next_fence = _NextMatch(_LINE_END, len)
        # The part of the current line that was shown, up to `_MAX_CODE_LINE_CHARS`.
        self._line = ""
        # The last line that was searched for inline code, and the bounds of the code in it.
        self._code_spans: tuple[str, list[tuple[int, int]]] = ("", [])
        # The backticks or tildes that opened the current code block. Empty outside of a block.
        self._code_fence = ""
        self._is_in_block = False

    def _release(self, *, is_end: bool) -> str:
        """Process the tags in `_held`, and return the text that may be shown.

        What can't be decided before more text arrives stays in `_held`. With `is_end`, no more text
        arrives, so nothing stays.
        """
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
                    # Only later text can tell, so this tag and the text after it are held back.
                    self._drop(position)
                    return "".join(pieces)
                self._is_in_block = is_block
            if kind is not _TagKind.NOTE and not self._is_in_block:
                # The tag is only mentioned.
                pieces.append(self._show(f"({tag[0][1:-1]})"))
            position = tag.end()

        end = len(self._held) if is_end else _find_tag_start(self._held, position)
        if not self._is_in_block:
            pieces.append(self._show(self._held[position:end]))
        self._drop(end)
        return "".join(pieces)

    def _drop(self, count: int) -> None:
        """Remove the first `count` characters of `_held`, and adjust the next matches."""
        self._held = self._held[count:]
        self._next_evidence.drop(count)
        self._next_line_end.drop(count)
        self._next_fence.drop(count)

    def _show(self, text: str) -> str:
        """Update `_line` and `_code_fence` for a text that is shown, and return the text."""
        if "\n" not in text and len(self._line) == _MAX_CODE_LINE_CHARS:
            # The rest of a long line changes nothing.
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
        """Begin a code block, which a line with the same backticks or tildes will close."""
        self._code_fence = code_fence
        closing = re.compile(rf"\n[{_QUOTE_CHARS}]*{code_fence}")
        self._next_fence = _NextMatch(closing, lambda text: text.rfind("\n"))

    def _is_block(self, tag: re.Match[str], is_end: bool) -> bool | None:
        """Return whether an opening tag begins a block, or None if that depends on later text."""
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
        """Return the position where the Markdown code that contains the tag ends.

        `line_stop` is the end of the tag's line. Returns None if the tag isn't in code, or if the
        end of the code hasn't arrived yet.
        """
        if self._code_fence:
            closing = self._next_fence.find(self._held, tag.end())
            return None if closing is None else closing[0]
        # Everything before the tag was shown, so this is the place of the tag in its line.
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
        """Return the start and the end of each inline code in a line.

        The result for the last line is cached, because a line may contain many tags.
        """
        if "`" not in line:
            return []
        # Earlier tags of the line were shown with round brackets. All brackets become round here,
        # so that the line equals the cached one.
        line = line.replace("<", "(").replace(">", ")")
        if line != self._code_spans[0]:
            self._code_spans = (line, [code.span() for code in _INLINE_CODE.finditer(line)])
        return self._code_spans[1]


def _find_tag_start(text: str, start: int) -> int:
    """Return the position of an unfinished tag or note at the end of a text.

    Returns the length of the text if neither is there.
    """
    tag = text.rfind("<", start)
    note = text.rfind("[", start)
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
    """Return a whole text without memory blocks."""
    scrubber = Scrubber()
    return scrubber.feed(text) + scrubber.close()


# A longer first paragraph counts as pasted.
TYPED_CHARS = 600
MARK_LETTERS = 4
# A blank line, or the line that opens a code block.
_PASTE_START = re.compile(r"\n[^\S\n]*\n|^[^\S\n]{0,3}(?:```|~~~)", re.MULTILINE)
# Origins whose label differs from their name.
_ORIGIN_LABELS = {"via_bot": "sent through a bot", "tool": ""}


# Text that a platform inserted into a message: a name in a mention, the file of an attachment, the
# address of a link, a place or a contact. Adapters write it with `insertion`.
_INSERTION = re.compile(
    r"[@#]?\{[^{}\n]{0,500}\}|(?<![\w.])@[\w.-]+|(?<![\w.])#[^\W\d][\w-]*"
    r"|^\[attached [^\n]*\]$",
    re.MULTILINE,
)
_SPACES = re.compile(r"[^\S\n]{2,}")
_QUOTED_LINE = re.compile(r"^[^\S\n]*[>»|][^\n]*$", re.MULTILINE)
_LINE_BREAK = re.compile(r"\n\s*")


def insertion(text: str, sign: str = "") -> str:
    """Return a text that a platform inserts into a message, so that it doesn't count as typed.

    A mention of one word stays readable: "@Ana". Any other text gets braces: "@{Ana and Ben}".
    """
    line = " ".join(text.split())
    if sign and re.fullmatch(r"[^\W\d][\w.-]*", line):
        return sign + line
    return f"{sign}{{{line.replace('{', '(').replace('}', ')')}}}"


def typed_part(text: str) -> str:
    """Return the typed part of a message with the origin "typed", without insertions.

    It ends before what looks pasted: a blank line or a code block, the text after a lead such as
    "look at this:", and the lines below a question about them. Quoted lines are left out. The
    result is empty if the part is so long that it counts as pasted.
    """
    text = text.strip()
    typed = _QUOTED_LINE.sub("", text[: find_paste(text)]).strip()
    if len(typed) > TYPED_CHARS:
        return ""
    return _SPACES.sub(" ", _INSERTION.sub(" ", typed)).strip()


def list_insertions(text: str) -> list[str]:
    """Return the quoted lines of a message and the texts in it that a platform inserted."""
    matches = [*_QUOTED_LINE.finditer(text), *_INSERTION.finditer(text)]
    return [match[0] for match in matches]


def is_partly_pasted(text: str) -> bool:
    """Return True if a part of a message looks pasted."""
    text = text.strip()
    if find_paste(text) < len(text) or len(text) > TYPED_CHARS:
        return True
    return _QUOTED_LINE.search(text) is not None


def find_paste(text: str) -> int:
    """Return the position at which the pasted part of a message begins, or its length."""
    paste = _PASTE_START.search(text)
    end = len(text) if paste is None else paste.start()
    # The words of pastes are only looked for where there may be one.
    if ":" in text[:end] or "\uff1a" in text[:end]:
        end = min(end, _find_end_of_lead(text[:end]))
    if "\n" in text[:end]:
        end = min(end, _find_pasted_lines(text[:end]))
    return end


def _find_end_of_lead(text: str) -> int:
    """Return the position after a lead with a colon ("my friend sent me:"), or the length."""
    for colon in _COLON.finditer(text):
        line = text[text.rfind("\n", 0, colon.start()) + 1 : colon.start()]
        sentence = _SENTENCE.split(_fold_apostrophes(line))[-1]
        if _matches("leads", sentence) and not _matches("requests", sentence):
            return colon.end()
    return len(text)


def _find_pasted_lines(text: str) -> int:
    """Return the position of the first line that looks pasted below a typed line, or the length."""
    for line_break in _LINE_BREAK.finditer(text):
        above = text[: line_break.start()].rpartition("\n")[2].strip()
        below = text[line_break.end() :]
        if below.startswith(("[attached ", ">")) or above.startswith((">", "[attached ")):
            continue
        if _is_pasted_below(_fold_apostrophes(above), _fold_apostrophes(below)):
            return line_break.start()
    return len(text)


def _is_pasted_below(above: str, below: str) -> bool:
    """Return True if the text below a line doesn't look typed together with it."""
    if re.match(r"https?://|[\"“„«「『]", below) or _matches("openings", below, is_start=True):
        return True
    if _matches("requests", above):
        return False
    has_lead = above.endswith((":", "\uff1a")) and _matches("leads", above)
    if has_lead or _matches("abouts", above):
        return True
    return above.endswith(("?", "\uff1f")) and not _matches("first_person", below)


_COLON = re.compile(r"[:\uff1a](?=\s*\S)(?!//)(?!\d\d)")
_SENTENCE = re.compile(r"[.!?;\n\u3002\uff01\uff1f]\s*")


def _fold_apostrophes(text: str) -> str:
    return text.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def _matches(table: str, text: str, *, is_start: bool = False) -> bool:
    """Return True if a text in lower case contains, or begins with, a pattern of pastes.toml."""
    pattern = _paste_pattern(table)
    match = pattern.match(text) if is_start else pattern.search(text)
    return match is not None


@cache
def _paste_pattern(table: str) -> re.Pattern[str]:
    patterns = language_data("pastes")[table].values()
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.MULTILINE)


def typed_text(message: Message) -> str:
    """Return the part of a message that its sender typed.

    The result is empty if the message was forwarded, sent through a bot or imported, if its sender
    is anonymous, or if it isn't a person's message.
    """
    is_persons = message.role == "user" and message.kind == "chat"
    is_anonymous = message.sender is not None and message.sender.is_anonymous
    if not is_persons or is_anonymous or message.origin != "typed":
        return ""
    return typed_part(message.text)


def origin_label(message: Message) -> str:
    """Return the origin of a person's message for its time line, such as "partly pasted".

    The result is empty if the whole message was typed.
    """
    if message.origin != "typed":
        return _ORIGIN_LABELS.get(message.origin, message.origin)
    return "partly pasted" if is_partly_pasted(message.text) else ""


def account_mark(account: Account) -> str:
    """Return a short hash of an account, such as ``#3fa9``, to distinguish people by more than
    their name.
    """
    return f"#{sha256(account.key.encode()).hexdigest()[:MARK_LETTERS]}"
