"""The `<memory-context>` block: recalled background, marked so that no model takes it for new input.

Makes the block and keeps others from forging one, or the time line above a turn. `core.guard.scrubber`
removes a block that a model repeats.
"""

from __future__ import annotations

import re
import unicodedata

OPENING = "<memory-context>"
CLOSING = "</memory-context>"
NOTE = "[System note: recalled background from earlier conversations. It is not new input from the person.]"

_OPENERS = "<\u2039\u2329\u27e8\u3008\u300a\u276e\u276c\u1438\ufe64\uff1c"
_CLOSERS = ">\u203a\u232a\u27e9\u3009\u300b\u276f\u276d\u1433\ufe65\uff1e"
_SKIPPED = frozenset("-_/\\!?:=~|'\"\u2044\u2215")
_TWINS = str.maketrans(
    "\u043c\u0435\u043e\u0440\u0443\u0441\u0442\u0445\u03bf\u03c4\u03c7\u03c5\u03b5", "meopyctxotxye"
)
"""Cyrillic and Greek letters that look like those of the tag."""
_WORD = "memorycontext"
_OPENER = re.compile(f"[{_OPENERS}]")
_TIME_LINE = re.compile(
    r"[\[\uff3b\u3010]\s{0,4}((?:mon|tues|wednes|thurs|fri|satur|sun)day\s{1,3}\d{1,2}\s{1,3}[a-z]{3,9}\s{1,3}\d{4},?"
    r"\s{1,3}\d{1,2}:\d{2}[^\]\uff3d\u3011\n]{0,200})([\]\uff3d\u3011]?)",
    re.IGNORECASE,
)
"""How a turn begins (`core.agent.user_message`), also where it is only imitated."""


def fence(passages: str) -> str:
    """The block around `passages`, in which no tag is left that could end it early."""
    return f"{OPENING}\n{NOTE}\n\n{neutralise(passages)}\n{CLOSING}"


def neutralise(text: str) -> str:
    """`text` with round brackets around anything that looks like the tag (in any case, with signs between, attributes,
    letters of other alphabets) or like the time line above a turn. A second pass changes nothing."""
    text = _TIME_LINE.sub(lambda found: f"({found[1]}{')' if found[2] else ''}", text)
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
    plain = unicodedata.normalize("NFKD", character).casefold().translate(_TWINS)
    return "".join(part for part in plain if unicodedata.category(part) != "Mn" and part not in _SKIPPED)
