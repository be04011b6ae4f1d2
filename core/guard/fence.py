"""What tells the model who said a text: the origin of a message, and the `<memory-context>` block around recalled
background, so that no model takes it for new input.

Makes the block, keeps others from forging one or the time line above a turn, and keeps ours out of an answer that
repeats it, wherever the stream is cut. Typed is what stands before the first blank line or code fence of a message that
came as typed, and nothing where that is longer than people type. All else is pasted.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import sha256

from core.types import MEMORY, Account, Message

OPENING = MEMORY
CLOSING = "</memory-context>"
NOTE = "[System note: recalled background from earlier conversations. It is not new input from the person.]"

_OPENERS = "<\u2039\u2329\u27e8\u3008\u300a\u276e\u276c\u1438\ufe64\uff1c"
_CLOSERS = ">\u203a\u232a\u27e9\u3009\u300b\u276f\u276d\u1433\ufe65\uff1e"
_SKIPPED = frozenset("-_/\\!?:=~|'\"\u2044\u2215")
_TWIN = str.maketrans("\u043c\u0435\u043e\u0440\u0443\u0441\u0442\u0445\u03bf\u03c4\u03c7\u03c5\u03b5", "meopyctxotxye")
"""Cyrillic and Greek letters that look like those of the tag."""
_WORD = "memorycontext"
_OPENER = re.compile(f"[{_OPENERS}]")
TIME_LINE = re.compile(
    r"[\[\uff3b\u3010]\s{0,4}((?:mon|tues|wednes|thurs|fri|satur|sun)day\s{1,3}\d{1,2}\s{1,3}[a-z]{3,9}\s{1,3}\d{4},?"
    r"\s{1,3}\d{1,2}:\d{2}[^\]\uff3d\u3011\n]{0,200})([\]\uff3d\u3011]?)",
    re.IGNORECASE,
)
"""How a turn begins (`core.agent.prompt`), also where it is only imitated."""
ANSWERING, FORWARDED = "In answer to", "Forwarded from"
DELIVERED, ANSWERED = "Your own reminders and scheduled questions", "Your answers to this scheduled question"
CALLED, NUDGED = "The person calls the skill", "Not from the person, and nothing to answer"
APPLYING = "Rules of your owner's projects for what is named here"
"""How the frames behind the line above a turn begin, and those behind its text."""
_FRAMES = "|".join((ANSWERING, FORWARDED, DELIVERED, ANSWERED, CALLED, NUDGED, APPLYING))
FRAME = re.compile(rf"[\[\uff3b\u3010](?=\s{{0,4}}(?:{_FRAMES})\b)", re.IGNORECASE)


def fence(passages: str) -> str:
    """The block around `passages`, in which no tag is left that could end it early."""
    return f"{OPENING}\n{NOTE}\n\n{neutralise(passages)}\n{CLOSING}"


def neutralise(text: str) -> str:
    """`text` with round brackets around anything that looks like the tag (in any case, with signs between, attributes,
    letters of other alphabets) or like the time line above a turn, and for one that opens what looks like a frame. A
    second pass changes nothing."""
    text = TIME_LINE.sub(lambda found: f"({found[1]}{')' if found[2] else ''}", text)
    text = FRAME.sub("(", text)
    characters: list[str] = []
    for opener in _OPENER.finditer(text):
        if (end := _end_of_tag(text, opener.end())) is not None:
            characters = characters or list(text)
            characters[opener.start()] = "("
            if end < len(text):
                characters[end] = ")"
    return "".join(characters) if characters else text


def _end_of_tag(text: str, at: int) -> int | None:
    """Where the tag that begins before `at` is closed, the end of the text where that is not next; None when it is no
    tag. Reads on as long as it may be one, which never crosses another opener: all of them together are linear."""
    left = _WORD
    for place in range(at, len(text)):
        seen = _seen(text[place])
        if not left and seen:
            return place if seen == ">" else len(text)
        if not left.startswith(seen):
            return None
        left = left[len(seen) :]
    return None if left else len(text)


def _seen(character: str) -> str:
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
    plain = unicodedata.normalize("NFKD", character).casefold().translate(_TWIN)
    return "".join(part for part in plain if unicodedata.category(part) != "Mn" and part not in _SKIPPED)


_NAME = OPENING[1:-1]
_NAME_TO_END = rf"(?i:{_NAME})(?:[\s/][^<>]*)?>"
_TAG = re.compile(rf"<\s*(/\s*|){_NAME_TO_END}|\[(?i:{re.escape(NOTE[1:])})", re.ASCII)
_TAG_BEGINS = re.compile(r"<\s*(?:/\s*)?([^\s/<>]*)([\s/][^<>]*)?", re.ASCII)
_ECHO = re.compile(rf"<\s*/\s*{_NAME_TO_END}|\[(?i:{re.escape(NOTE[1 : NOTE.index(':')])})", re.ASCII)
_QUOTED = " \t>"
_CODE_FENCE = re.compile(rf"[{_QUOTED}]*(~{{3,}}|`{{3,}}(?=[^`]*$))")
_INLINE_CODE = re.compile(r"(`(?<![`\\].)`*)(?!`).+?(?<!`)\1(?!`)")


class Scrubber:
    """Feed it chunks; it gives what may be shown, and holds back only what may become a block. What it decides depends
    on the text alone, never on the cuts.

    A tag begins a block if its closing tag or our note follows, or if it ends its line, as ours does, and more follows
    or nothing stood before it; the block goes up to its closing tag or the end. In Markdown code only the same code
    counts, and a line end only behind a tag alone on its line. Any other tag is talked about: it stays, in round
    brackets."""

    def __init__(self) -> None:
        self._begin()

    def feed(self, chunk: str) -> str:
        """What may be shown now and was not yet."""
        self._held += chunk
        return self._run(is_end=False)

    def close(self) -> str:
        """The rest; the scrubber is then as new."""
        shown = self._run(is_end=True)
        self._begin()
        return shown

    def _begin(self) -> None:
        self._held = self._line = self._code_fence = ""
        """What may not be shown yet; what of the present line was; what opened the code block that it is in."""
        self._is_in_block = False

    def _run(self, *, is_end: bool) -> str:
        shown: list[str] = []
        at = 0
        while found := _TAG.search(self._held, at):
            is_block: bool | None = not found[1]
            if not self._is_in_block:
                shown.append(self._show(self._held[at : found.start()]))
                at = found.start()
                is_block = found[1] == "" and self._is_block(found, is_end)
                if is_block is None:
                    break
                if not is_block and found[1] is not None:
                    shown.append(self._show(f"({found[0][1:-1]})"))
            self._is_in_block, at = bool(is_block), found.end()
        end = at if found else len(self._held) if is_end else _tag_may_begin(self._held, at)
        rest, self._held = self._held[at:end], self._held[end:]
        return "".join([*shown, "" if self._is_in_block else self._show(rest)])

    def _show(self, text: str) -> str:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            if not self._code_fence:
                self._code_fence = opened[1] if (opened := _CODE_FENCE.match(line)) else ""
            elif line.lstrip(_QUOTED).startswith(self._code_fence):
                self._code_fence = ""
        return text

    def _is_block(self, tag: re.Match[str], is_end: bool) -> bool | None:
        """Whether this opening tag begins a block; None when more has to be seen."""
        after = self._held[tag.end() :]
        line, newline, _ = after.partition("\n")
        if not newline and not is_end:
            return None
        is_alone = not line.strip() and not self._line.strip(_QUOTED)
        code = self._code_after(tag[0], after)
        following = after if code is None else code
        goes_on = not line.strip() and bool(following.partition("\n")[2].strip())
        if _ECHO.search(following) or (goes_on and code is None and (is_end or not self._code_fence)):
            return True
        if code is not None:
            return is_alone and goes_on
        return is_alone if is_end else None

    def _code_after(self, tag: str, after: str) -> str | None:
        """The rest of the Markdown code that the tag is in; None where it is in none, or in one with no end yet."""
        if self._code_fence:
            closed = re.search(rf"\n[{_QUOTED}]*{self._code_fence}", after)
            return after[: closed.start()] if closed else None
        begin = len(self._line)
        for code in _INLINE_CODE.finditer(self._line + tag + after.partition("\n")[0]):
            if code.start() < begin < code.end():
                return after[: code.end() - begin - len(tag)]
        return None


def _tag_may_begin(text: str, at: int) -> int:
    """Where the end of a text may be the beginning of a tag; its end where none may."""
    tag, note = text.rfind("<", at), text.rfind("[", at)
    begun = _TAG_BEGINS.fullmatch(text, tag) if tag >= 0 else None
    if begun and (begun[1].lower() == _NAME if begun[2] else _NAME.startswith(begun[1].lower())):
        return tag
    return note if note >= 0 and NOTE.lower().startswith(text[note:].lower()) else len(text)


def scrub(text: str) -> str:
    """The whole of a text without our blocks."""
    scrubber = Scrubber()
    return scrubber.feed(text) + scrubber.close()


TYPED_CHARS = 600
"""A longer first paragraph is pasted."""
MARK_LETTERS = 4
_PASTED = re.compile(r"\n[^\S\n]*\n|^[^\S\n]{0,3}(?:```|~~~)", re.MULTILINE)
_TOLD = {"forwarded": "forwarded", "via_bot": "sent through a bot", "imported": "imported", "tool": ""}


def typed_part(text: str) -> str:
    """What of a message that came as typed was typed; empty where nothing was."""
    text = text.strip()
    found = _PASTED.search(text)
    typed = (text if found is None else text[: found.start()]).strip()
    return typed if len(typed) <= TYPED_CHARS else ""


def said(message: Message) -> str:
    """What a person has typed of a message; empty for what is forwarded, sent through a bot, imported or a bot's."""
    is_own = message.role == "user" and message.kind == "chat" and not (message.sender and message.sender.is_nobody)
    return typed_part(message.text) if is_own and message.origin == "typed" else ""


def told(message: Message) -> str:
    """The origin of a person's message for the line above it; empty where all of it was typed."""
    if message.origin != "typed":
        return _TOLD.get(message.origin, message.origin)
    return "" if typed_part(message.text) == message.text.strip() else "partly pasted"


def mark(account: Account) -> str:
    """A short name of an account that is always the same, so that two people of one name are two: ``#3fa9``."""
    return f"#{sha256(account.key.encode()).hexdigest()[:MARK_LETTERS]}"
