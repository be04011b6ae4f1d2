"""Marks text for the model: the fence around recalled background, and the origin of messages.

The fence is the `<memory-context>` block, which separates recalled background from new input. This
module builds the block (`fence`), prevents people from forging it (`neutralise`), and removes a
block that the model repeats in its answer (`Scrubber`).

The origin says who wrote a text. In a person's message, the first paragraph counts as typed, and
the rest as pasted. The paragraph ends at a blank line or a code block. Quoted lines also count as
pasted, and so does text after an introduction such as "look at this:"
(`core/text/data/pastes.toml`). If the first paragraph is longer than `TYPED_CHARS`, the whole
message counts as pasted. Text that a platform inserts never counts as typed. Some text may have
been pasted without a clear sign. Mneme answers it like typed text, but the approval gate treats it
as foreign.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

from core.text import frames, pastes
from core.text.normalize import to_normal_form
from core.text.pastes import TYPED_CHARS
from core.types import MEMORY_TAG, Account, Json, Message, Origin

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
# character outside of ASCII, which may look like such a sign.
_OPENER = re.compile(
    rf"[{_OPENERS}](?=[^\0-\x7f]|[{_TAG_LETTERS[0]}{_TAG_LETTERS[0].upper()}\s"
    rf"{re.escape(''.join(sorted(_SKIPPED)))}])"
)
# The time line at the beginning of a message (`core.agent.prompt`), or an imitation:
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
FILE_LEAD = frames.FILE_LEAD
# The end of the text of a watch, which Mneme adds. It counts neither as typed nor as pasted.
WATCH_INSTRUCTION = ' (If there is nothing to tell, answer with exactly "NOTHING NEW".)'
_FRAME_LEADS = "|".join(
    (
        QUOTE_LEAD,
        FORWARD_LEAD,
        JOB_RESULTS_LEAD,
        EARLIER_ANSWERS_LEAD,
        SKILL_LEAD,
        NUDGE_LEAD,
        RULES_LEAD,
        FILE_LEAD,
    )
)
# The opening bracket of a frame, or of an imitation.
FRAME_START = re.compile(rf"[\[\uff3b\u3010](?=\s{{0,4}}(?:{_FRAME_LEADS})\b)", re.IGNORECASE)


def fence(passages: str) -> str:
    """Build the memory block with `passages`. A tag in the passages can't end the block early."""
    return f"{OPENING}\n{NOTE}\n\n{neutralise(passages)}\n{CLOSING}"


def neutralise(text: str) -> str:
    """Return a text without parts that look like Mneme's own markup.

    The brackets of a forged tag or time line, and the opening bracket of a forged frame, become
    round. For example, "<memory-context>" becomes "(memory-context)". Forged tags are recognized
    even in upper case, with attributes, with signs between their letters, or with letters of other
    alphabets. Calling this function again doesn't change the result.
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
    """Return the position of the closing bracket of the tag that opens before `start`.

    If other text follows the letters of the tag, such as attributes, the end of the text is
    returned. Returns None if the letters don't spell our tag. The search stops at the next opening
    bracket, so all searches in a text together take linear time.
    """
    remaining_letters = _TAG_LETTERS
    for position in range(start, len(text)):
        letters = _fold_character(text[position])
        # After the whole name of the tag, the first character that isn't ignored decides.
        if not remaining_letters and letters:
            return position if letters == ">" else len(text)
        if not remaining_letters.startswith(letters):
            return None
        remaining_letters = remaining_letters[len(letters) :]
    return None if remaining_letters else len(text)


@lru_cache(maxsize=4096)
def _fold_character(character: str) -> str:
    """Return the ASCII letters or the bracket that a character looks like.

    The result is empty for characters that are ignored in a tag.
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
    letters = to_normal_form("NFKD", character).casefold().translate(_LOOKALIKES)
    return "".join(
        letter
        for letter in letters
        if unicodedata.category(letter) != "Mn" and letter not in _SKIPPED
    )


# Replaces a tag that an answer only mentions. This text can't become part of another tag.
_MENTION = "memory context"
_HYPHENS = "-_\u00ad\u2010-\u2015\u2212\ufe63\uff0d"
_NAME = rf"memory[{_HYPHENS}]context"
# A tag in brackets of any kind, or our note. Text after the name belongs to the block. Group 1 is
# the slash of a closing tag, which ends at its bracket, and group 2 is our note.
_TAG = re.compile(
    rf"(?:[{_OPENERS}]\s{{0,4}}(/\s{{0,4}})?{_NAME}(?![\w-])(?(1)[^{_OPENERS}{_CLOSERS}()\[\n]{{0,200}}\s{{0,4}})[{_CLOSERS}]?"
    rf"|\(\s{{0,4}}(/\s{{0,4}})?{_NAME}\s{{0,4}}\)"
    rf"|(\[{re.escape(NOTE[1:])}))",
    re.IGNORECASE,
)
# Matches text that later text may complete to a tag.
_UNFINISHED_TAG = re.compile(
    rf"[{_OPENERS}(]\s{{0,4}}(?:/\s{{0,4}})?(?:m?e?m?o?r?y?|memory[{_HYPHENS}][a-z]{{0,7}}\s{{0,4}})"
    rf"|[{_OPENERS}]\s{{0,4}}/\s{{0,4}}{_NAME}[^{_OPENERS}{_CLOSERS}()\[\n]{{0,200}}\s{{0,4}}",
    re.IGNORECASE,
)
_TAG_BRACKET = re.compile(f"[{_OPENERS}(]")
# The first character of any tag or note.
_TAG_START = re.compile(rf"[{_OPENERS}(\[]")
# The beginning of any tag up to its complete name.
_TAG_NAME = re.compile(rf"[{_OPENERS}(]\s{{0,4}}(?:/\s{{0,4}})?{_NAME}", re.IGNORECASE)
# The maximum length of an unfinished tag, including a closing tag with attributes.
_MAX_UNFINISHED_CHARS = 240
# How many of the last shown characters are searched for a tag that new text completes.
_TAIL_CHARS = 40
# The number of passes. A removed block may be inside a tag, which may be inside another tag, and
# each pass removes one level.
_PASSES = 3


class Scrubber:
    """Removes memory blocks from a stream of text.

    `feed` holds back only text that may be part of a block. The result doesn't depend on how the
    text is cut into chunks.

    A block begins at an opening tag, and ends at its closing tag or at the end of the text. Blocks
    may be nested. Tags may have round brackets, as `neutralise` writes them. If a removed block was
    inside a tag, the two halves of this tag also count as a tag. A tag alone in inline code is only
    mentioned. The name of such a tag is kept, without brackets.
    """

    def __init__(self) -> None:
        self._reset()

    def feed(self, chunk: str) -> str:
        """Add a chunk, and return the text that can be shown now."""
        for remover in self._removers:
            chunk = remover.feed(chunk)
        return self._take_text_to_show(chunk)

    def close(self) -> str:
        """End the text, and return the rest of the text. The scrubber can then be used again."""
        remaining_text = ""
        for remover in self._removers:
            remaining_text = remover.feed(remaining_text) + remover.close()
        remaining_text = self._take_text_to_show(remaining_text)
        self._reset()
        return remaining_text

    def _reset(self) -> None:
        self._removers = [_BlockRemover() for _ in range(_PASSES)]
        # The last characters of the shown text.
        self._tail = ""

    def _take_text_to_show(self, text: str) -> str:
        """Return the text to show next.

        If the text would complete a tag whose beginning was shown already, the last letter of the
        tag's name is left out.
        """
        if not text:
            return ""
        visible_text = self._tail + text
        while tag := _TAG_NAME.search(visible_text):
            visible_text = visible_text[: tag.end() - 1] + visible_text[tag.end() :]
        text = visible_text[len(self._tail) :]
        self._tail = visible_text[-_TAIL_CHARS:]
        return text


class _BlockRemover:
    """Removes blocks from a stream of text in one pass.

    The text around a block may form a new tag.
    """

    def __init__(self) -> None:
        # Text that can't be shown yet.
        self._held = ""
        # How many blocks are open.
        self._depth = 0
        # The last character that was returned.
        self._last = ""

    def feed(self, chunk: str) -> str:
        if not self._held and not self._depth and _TAG_START.search(chunk) is None:
            # Nearly every chunk contains no tag.
            self._last = chunk[-1:] or self._last
            return chunk
        self._held += chunk
        return self._process_held_text(is_end=False)

    def close(self) -> str:
        return self._process_held_text(is_end=True) if self._held else ""

    def _process_held_text(self, *, is_end: bool) -> str:
        """Process the tags in `_held`, and return the text outside of blocks.

        Text stays in `_held` if its meaning depends on the next characters. With `is_end`, no more
        text arrives, so all text is processed.
        """
        pieces: list[str] = []
        position = 0
        for tag in _TAG.finditer(self._held):
            if not is_end and self._is_open_ended(tag):
                self._keep_outside_blocks(self._held[position : tag.start()], pieces)
                self._held = self._held[tag.start() :]
                return "".join(pieces)
            self._keep_outside_blocks(self._held[position : tag.start()], pieces)
            position = tag.end()
            self._handle_tag(tag, pieces)
        end = len(self._held) if is_end else _find_tag_start(self._held, position)
        self._keep_outside_blocks(self._held[position:end], pieces)
        self._held = self._held[end:]
        return "".join(pieces)

    def _keep_outside_blocks(self, text: str, pieces: list[str]) -> None:
        """Add a text to the pieces unless it's inside a block."""
        if text and not self._depth:
            pieces.append(text)
            self._last = text[-1]

    def _is_open_ended(self, tag: re.Match[str]) -> bool:
        """Return whether the next character may continue the tag.

        That character may also be the backtick after a tag that is only mentioned.
        """
        if tag.end() < len(self._held) or _is_note(tag):
            return False
        return not self._depth or tag[0][-1] not in _CLOSERS + ")"

    def _handle_tag(self, tag: re.Match[str], pieces: list[str]) -> None:
        """Enter or leave a block, or keep the name of a tag that is only mentioned."""
        if _is_note(tag):
            return
        is_mention = self._last == "`" and self._held.startswith("`", tag.end())
        if is_mention and not self._depth:
            self._keep_outside_blocks(_MENTION, pieces)
        elif not _is_closing(tag):
            self._depth += 1
        elif self._depth:
            self._depth -= 1


def _is_closing(tag: re.Match[str]) -> bool:
    return bool(tag[1] or tag[2])


def _is_note(tag: re.Match[str]) -> bool:
    return tag[3] is not None


def _find_tag_start(text: str, start: int) -> int:
    """Return where an unfinished tag or note at the end of a text begins.

    Returns the length of the text if there is no such tag or note.
    """
    end = len(text)
    floor = max(start, end - _MAX_UNFINISHED_CHARS)
    note = text.rfind("[", max(start, end - len(NOTE)))
    note_start = end
    if note >= 0 and NOTE.lower().startswith(text[note:].lower()):
        note_start = note
    brackets = [match.start() for match in _TAG_BRACKET.finditer(text, floor)]
    if brackets and _UNFINISHED_TAG.fullmatch(text, brackets[-1]):
        return min(note_start, brackets[-1])
    return note_start


def scrub(text: str) -> str:
    """Return a complete text without its memory blocks."""
    scrubber = Scrubber()
    return scrubber.feed(text) + scrubber.close()


# The model's mark for a message, a fact or a part of a file that it cites, with the spaces before
# it: "[message 412]", "[fact 3]", "[file 12, page 7]". People don't see marks.
# A match starts only at the first of several spaces, so the time is linear.
CITATION = re.compile(
    r"(?<![^\S\n])(?P<space>[^\S\n]*)\[(?:message (?P<message_id>\d{1,18})"
    r"|fact (?P<fact_id>\d{1,18})"
    r"|file (?P<file_id>\d{1,18})(?:, (?P<part>[^\[\]\n]{1,80}))?)\]"
)
# The beginning of a mark at the end of a text that is still arriving.
_UNFINISHED_CITATION = re.compile(
    r"(?<![^\S\n])[^\S\n]*\[(?:m|me|mes|mess|messa|messag|message(?: \d{0,18})?"
    r"|f|fa|fac|fact(?: \d{0,18})?"
    r"|fi|fil|file(?: \d{0,18}|(?: \d{1,18},(?: [^\[\]\n]{0,80})?))?)?\Z"
)


def hide_citations(text: str, *, is_finished: bool = True) -> str:
    """Return an answer without its citation marks for messages, facts and files.

    Unless the answer `is_finished`, the beginning of a mark at the end is also left out.
    """
    if "[" not in text:
        return text
    text = CITATION.sub("", text)
    return text if is_finished else _UNFINISHED_CITATION.sub("", text)


def scrub_blocks(blocks: Sequence[Json]) -> tuple[Json, ...]:
    """Return the blocks without memory fences that the model copied from its context.

    Later requests send the blocks back to the model.
    """
    scrubber = Scrubber()
    clean: list[dict[str, Any]] = [dict(block) for block in blocks]
    texts = [block for block in clean if block.get("type") == "text"]
    for block in texts:
        block["text"] = scrubber.feed(block["text"])
    if texts:
        texts[-1]["text"] += scrubber.close()
    for block in clean:
        if block.get("type") == "tool_use":
            block["input"] = _scrub_values(block["input"])
    return tuple(block for block in clean if block.get("type") != "text" or block["text"].strip())


def _scrub_values(value: Any) -> Any:
    """Return the arguments of a tool without memory fences in their texts."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Mapping):
        return {key: _scrub_values(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_scrub_values(item) for item in value]
    return value


MARK_LETTERS = 4
# Origins whose label differs from their name.
_ORIGIN_LABELS = {
    "via_bot": "sent through a bot",
    "tool": "",
    "spoken": "a voice note, transcribed, so some words may be wrong",
}


# Text that a platform inserted into a message: a name in a mention, the file of an attachment, the
# address of a link, a place or a contact. Adapters write it with `insertion`.
_INSERTION = re.compile(
    r"[@#]?\{[^{}\n]*\}|(?<![\w.])@[\w.-]+|(?<![\w.])#[^\W\d][\w-]*"
    r"|^\[attached [^\n]*\]$",
    re.MULTILINE,
)
_SPACES = re.compile(r"[^\S\n]{2,}")
# Line breaks that other programs write: form feeds, U+2028 and so on, and a single "\r".
_OTHER_LINE_BREAK = re.compile(r"\r(?!\n)|[\v\f\x1c-\x1e\x85\u2028\u2029]")
# A text without these signs has no pasted part.
_PASTE_SIGN = re.compile(r"[\n:\uff1a`~]")
# A text without these signs doesn't show an author: a name before a time, a signature.
_AUTHOR_SIGN = re.compile(
    r"[\n:\uff1a`<~]|\d\.\d\d|\s[-\u2013\u2014]|[.!?,;\u3002\uff0c\u3001]\s*[^\W\d]|[.!?]\s*\("
)


def insertion(text: str, sign: str = "") -> str:
    """Return a text that a platform inserts, marked so that it doesn't count as typed.

    A mention of one word stays readable: "@Ana". Any other text gets braces: "@{Ana and Ben}".
    """
    line = " ".join(text.split())
    if sign and re.fullmatch(r"[^\W\d][\w.-]*", line):
        return sign + line
    return f"{sign}{{{line.replace('{', '(').replace('}', ')')}}}"


def typed_part(text: str, *, with_doubtful: bool = False, sender_name: str = "") -> str:
    """Return the typed part of a message with the origin "typed", without insertions.

    The part ends before text that looks pasted: a blank line or a code block, the text after an
    introduction such as "look at this:", and the lines below a question about them. Quoted lines
    are left out. If the part is so long that it counts as pasted, the result is empty. Lines that
    may be pasted, such as a claim below a heading, are included only `with_doubtful`. The same
    applies to a text that names an author other than the sender.
    """
    if len(text) > _MAX_CACHED_CHARS:
        return _find_typed_part(text, with_doubtful, sender_name)
    return _find_cached_typed_part(text, with_doubtful, sender_name)


def _find_typed_part(text: str, with_doubtful: bool, sender_name: str) -> str:
    text = _unify_line_breaks(text.strip().removesuffix(WATCH_INSTRUCTION))
    has_paste_sign = _PASTE_SIGN.search(text) is not None
    if has_paste_sign:
        text = text[: pastes.find_paste(text)]
    unquoted_text = pastes.QUOTED_LINE.sub("", text).strip()
    if len(unquoted_text) > TYPED_CHARS:
        return ""
    if not with_doubtful and _AUTHOR_SIGN.search(unquoted_text) is not None:
        unquoted_text = unquoted_text[: pastes.find_doubt(unquoted_text, sender_name)].strip()
    return _SPACES.sub(" ", _INSERTION.sub(" ", unquoted_text)).strip()


# The typed parts of longer messages aren't kept in memory.
_MAX_CACHED_CHARS = 2 * TYPED_CHARS
# During a turn, the typed part of the same message is needed about eight times.
_find_cached_typed_part = lru_cache(maxsize=100)(_find_typed_part)


def _unify_line_breaks(text: str) -> str:
    """Return a text of the same length in which each line break is a line feed."""
    return _OTHER_LINE_BREAK.sub("\n", text)


def list_insertions(text: str) -> list[str]:
    """Return the quoted lines and the texts inserted by a platform in a message."""
    text = _unify_line_breaks(text)
    matches = [*pastes.QUOTED_LINE.finditer(text), *_INSERTION.finditer(text)]
    return [match[0] for match in matches]


def is_partly_pasted(text: str) -> bool:
    """Return whether a part of a message looks pasted."""
    text = _unify_line_breaks(text.strip().removesuffix(WATCH_INSTRUCTION))
    if len(text) > TYPED_CHARS:
        return True
    if _PASTE_SIGN.search(text) is not None and pastes.find_paste(text) < len(text):
        return True
    return pastes.QUOTED_LINE.search(text) is not None


def find_foreign_start(text: str, sender_name: str = "") -> int:
    """Return the position in a message at which pasted or possibly pasted text begins.

    Returns the length of the message if there is no such text.
    """
    text = _unify_line_breaks(text)
    if _AUTHOR_SIGN.search(text) is None:
        return len(text)
    end = len(text) if _PASTE_SIGN.search(text) is None else pastes.find_paste(text)
    return pastes.find_doubt(text[:end], sender_name)


def find_edited_origin(origin: Origin, old_text: str, new_text: str) -> Origin:
    """Return the origin of a person's message after an edit.

    If the edit removes all foreign text, the message counts as pasted, because an answer may repeat
    the removed text.
    """
    if origin in ("typed", "spoken") and _has_foreign(old_text) and not _has_foreign(new_text):
        return "pasted"
    return origin


def _has_foreign(text: str) -> bool:
    """Return whether a message has foreign text. Mentions of one word don't count."""
    text = text.strip()
    if is_partly_pasted(text) or find_foreign_start(text) < len(text):
        return True
    return any(" " in inserted for inserted in list_insertions(text))


def typed_text(message: Message, *, with_speech: bool = False) -> str:
    """Return the part of a message that its sender typed or, `with_speech`, said.

    The result is empty if the message was forwarded, sent through a bot or imported, if its sender
    is anonymous, or if it isn't a person's message.
    """
    is_persons = message.role == "user" and message.kind == "chat"
    is_anonymous = message.sender is not None and message.sender.is_anonymous
    is_own = message.origin == "typed" or (with_speech and message.origin == "spoken")
    if not is_persons or is_anonymous or not is_own:
        return ""
    return typed_part(message.text, sender_name=message.sender_name)


def origin_label(message: Message) -> str:
    """Return the origin of a person's message for its time line, such as "partly pasted".

    The result is empty if the whole message was typed.
    """
    if message.origin != "typed":
        return _ORIGIN_LABELS.get(message.origin, message.origin)
    if is_partly_pasted(message.text):
        return "partly pasted"
    text = message.text.strip()
    is_typed = find_foreign_start(text, message.sender_name) == len(text)
    return "" if is_typed else "may be partly pasted"


def account_mark(account: Account) -> str:
    """Return a short hash of an account, such as ``#3fa9``.

    The mark distinguishes people with the same name.
    """
    return f"#{sha256(account.key.encode()).hexdigest()[:MARK_LETTERS]}"
