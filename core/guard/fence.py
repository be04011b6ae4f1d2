"""The `<memory-context>` block: recalled background, marked so that no model takes it for new input.

Makes the block and keeps others from forging one. `core.guard.scrubber` removes a block that a model repeats.
"""

from __future__ import annotations

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


def fence(passages: str) -> str:
    """The block around `passages`, in which no tag is left that could end it early."""
    return f"{OPENING}\n{NOTE}\n\n{neutralise(passages)}\n{CLOSING}"


def neutralise(text: str) -> str:
    """`text` with round brackets around anything that looks like the tag: in any case, with spaces, invisible
    characters or slashes inside, with attributes, with brackets or letters of other alphabets. The rest stays as it
    is; a second pass changes nothing."""
    if not any(opener in text for opener in _OPENERS):
        return text
    folded, places = _folded(text)
    characters = list(text)
    found = folded.find("<" + _WORD)
    while found >= 0:
        characters[places[found]] = "("
        end = found + 1 + len(_WORD)
        if folded[end : end + 1] == ">":
            characters[places[end]] = ")"
        found = folded.find("<" + _WORD, end)
    return "".join(characters)


def _folded(text: str) -> tuple[str, list[int]]:
    """What the eye reads: letters in one case and alphabet, brackets of one kind, nothing invisible; and for each
    character of it the place in the text that it comes from."""
    folded: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for seen in _seen(character):
            folded.append(seen)
            places.append(place)
    return "".join(folded), places


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
