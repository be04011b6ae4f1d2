"""Takes the disguise off a text: gives the forms in which its words may be meant, for patterns to be tried on.

Pure. The first form is the text as a reader sees it, folded; the others are there only when the text holds what they
undo: letters that look like others, markup inside words, digits for letters, letters set apart, swapped or turned.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator

from core.guard.lookalikes import FROM_LEET, TO_CYRILLIC, TO_LATIN

_SOFT_BREAK = re.compile(r"(?<=[^\W_]) ?\n[> ]{0,4}(?=[^\W_])")
"""Where a line was wrapped inside a sentence; a list or a heading begins otherwise."""

_TORN = re.compile(r"(?<=[^\W\d_])\n(?=[^\W\d_])")
_TORN_CHARS = 18
"""Where words were torn over lines, lines are short; a poem or a list has longer ones."""

_BLANKS = re.compile(r"[^\S\n]+")
_ACCENTS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")
_ARABIC_MARKS = re.compile("[\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]")
_ARABIC = str.maketrans(
    "\u0622\u0623\u0625\u0671\u0649\u06cc\u0626\u06a9\u0629\u06c0\u0624",
    "\u0627\u0627\u0627\u0627\u064a\u064a\u064a\u0643\u0647\u0647\u0648",
)
"""Alef with and without hamza, the yeh and kaf of Arabic and Persian, teh marbuta: written either way."""

_PLAIN = str.maketrans(
    "\u2018\u2019\u201b\u02bc\u0060\u00b4\u2028\u2029\x85\x0b\x0c\u00f8\u0142\u0111\u0131\u0451",
    "''''''\n\n\n\n\nold\u0069\u0435",
)
_SHORT = (
    (re.compile(r"\b(?:can't|cant|cannot)\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\b(d(?:o|oes|id)|must|should|would|could|is|are|was|were|ha(?:ve|s)|need|shall)n'?t\b"), r"\1 not"),
    (re.compile(r"\b(you|they|we)'?re\b(?<!were)"), r"\1 are"),
    (re.compile(r"\b(you|they|we|i)'ve\b"), r"\1 have"),
    (re.compile(r"\b(it|that|what|here|there)'s\b"), r"\1 is"),
)

_MARKED = re.compile(r"(?<=[^\W_])[*_~^|\\]{1,4}(?=[^\W_])|(?<=\w)</?[bisu]>(?=\w)")
_JOINED = re.compile(r"(?<=[^\W_])[_\-.+/|=~*,;:#\u2013\u2014\u2026!?]{1,4}(?=[^\W_])")
_QUOTED = re.compile(r"[\"\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a()\[\]{}*_~]")
_TALL_I = re.compile(r"(?<=[^\W\d_A-Z])I(?=[^\W\d_A-Z])")
"""A capital I inside a word of small letters: it looks like an l."""

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_HUMPS = re.compile(r"\b[A-Za-z][a-z]+(?:[A-Z][a-z]+){2,}")
_LEET = re.compile(r"[a-z][0-9@$!|\u20ac]+[a-z]|\b[013457@$]+[a-z]{2}|[a-z]{2}[013457@$]+\b")
_APART = re.compile(r"(?<![^\W_])(?:[^\W\d_](?:[ .\-_*/|,\u00b7\u3000]{1,4}|\n)){6,}[^\W\d_](?![^\W_])")
_NEAR = re.compile(r"(?<![^\W_])(?:[^\W\d_][ .\-_*/|]){3,}[^\W\d_](?![^\W_])")
_GAPS = re.compile(r"[\W_]+")
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_CJK_APART = re.compile(rf"(?:[{_UNSPACED}][ .\-_*/|,\u00b7\u3000]+){{3,}}[{_UNSPACED}]")
_CYRILLIC_WORD = re.compile("[a-z\u0400-\u04ff]+")
_ONLY_CYRILLIC = re.compile("[\u0431\u0433\u0434\u0436\u0437\u0438\u0439\u043b\u043f\u0444\u0446-\u044f]")
_WORD = re.compile(r"\b[a-z]{1,14}\b")

_TURNED = re.compile("erongi|drageretsid|snoitcurtsn|tpmorp|tegrof|laever|suoiverp|diputs|etucexe|drowssap")
_ROT13 = re.compile("vtaber|vafgehpgvba|cebzcg|qvfertneq|sbetrg|erirny|cerivbhf|cnffjbeq|rkrphgr|flfgrz")
_OFTEN_SCRAMBLED = (
    "ignore disregard forget override bypass previous instructions instruction system prompt prompts reveal guidelines "
    "execute command password passwords secret secrets everything unrestricted assistant"
)
_SCRAMBLED = {(word[0], word[-1], "".join(sorted(word[1:-1]))): word for word in _OFTEN_SCRAMBLED.split()}
"""Words by their first and last letter and the sorted rest: ``ignroe`` is read as easily as ``ignore``."""

_SHORTEST_SCRAMBLED = 5

_IN_HASTE = {"u": "you", "ur": "your", "pls": "please", "plz": "please", "prev": "previous", "r": "are"}
_HASTY = _IN_HASTE | {
    word[:at] + word[at + 1 :]: word
    for word in _OFTEN_SCRAMBLED.split()
    if len(word) > 5 and word != "reveal"
    for at in range(1, len(word))
    if word[at] != "s" or at < len(word) - 1
}
"""Words as they are typed in haste, short or with a letter left out."""


def seen(text: str) -> str:
    """The characters that are drawn, in their plain shapes (NFKC); case and accents as they are."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", "".join(sign for sign in text if unicodedata.category(sign) != "Cf"))


def folded(text: str) -> str:
    """What patterns for words are written against: small letters without accents, Arabic in one spelling, English
    contractions in full, one blank between words, wrapped lines joined."""
    text = seen(text).casefold().translate(_PLAIN).replace("\r\n", "\n")
    if not text.isascii():
        text = _ACCENTS.sub("", unicodedata.normalize("NFKC", text))
        text = "".join(map(_bare, text)).replace("\u00e6", "ae").replace("\u0153", "oe")
        text = _ARABIC_MARKS.sub("", text).translate(_ARABIC)
    text = _SOFT_BREAK.sub(" ", _BLANKS.sub(" ", text))
    for pattern, full in _SHORT:
        text = pattern.sub(full, text)
    return text


def _bare(sign: str) -> str:
    """A Latin or Greek letter without its accents; anything else as it is, for there they are letters."""
    parts = unicodedata.decomposition(sign)
    while parts and parts[0] != "<":
        first = parts.split()[0]
        if int(first, 16) >= 0x400:
            break
        sign = chr(int(first, 16))
        parts = unicodedata.decomposition(sign)
    return sign


def readings(text: str) -> Iterator[str]:
    """The folded text, then of each other form that it may be read in the lines that are not known yet."""
    first = folded(text)
    known = set(first.split("\n"))
    yield first
    for other in _others(text, first):
        if lines := [line for line in other.split("\n") if line not in known]:
            known.update(lines)
            yield "\n".join(lines)


def _others(text: str, first: str) -> Iterator[str]:
    latin = first
    if not first.isascii():
        latin = folded(seen(text).translate(TO_LATIN))
        yield latin
        yield _CYRILLIC_WORD.sub(_cyrillic, first)
        if _CJK_APART.search(first):
            yield _CJK_APART.sub(lambda found: _GAPS.sub("", found[0]), first)
    if _MARKED.search(latin):
        yield _MARKED.sub("", latin)
    if _NEAR.search(latin):
        yield _NEAR.sub(lambda found: _GAPS.sub("", found[0]), latin)
    yield _QUOTED.sub("", _JOINED.sub(" ", latin))
    if _TALL_I.search(text):
        yield folded(_TALL_I.sub("l", seen(text)).translate(TO_LATIN))
    if _HUMPS.search(text):
        yield folded(_HUMP.sub(" ", text))
    if _LEET.search(latin):
        for one in ("i", "l"):
            yield latin.translate(FROM_LEET | {ord("1"): one})
    if len(_TORN.findall(text)) > 1 and max(map(len, text.split("\n"))) <= _TORN_CHARS:
        yield folded(_TORN.sub("", text))
    yield _WORD.sub(_unscrambled, latin)
    if _TURNED.search(latin):
        yield latin[::-1]
    if _ROT13.search(latin):
        yield codecs.encode(latin, "rot13")


def set_apart(text: str) -> Iterator[str]:
    """Runs of single letters (``i g n o r e``), joined without blanks: words of them have no borders any more."""
    for found in _APART.finditer(seen(text)):
        yield folded(_GAPS.sub("", found[0]).translate(TO_LATIN))
        yield folded(_GAPS.sub("", found[0]))


def joined(text: str) -> str:
    """The folded text without blanks and signs: words that were torn by blanks are whole again."""
    return _GAPS.sub("", folded(text))


def _cyrillic(word: re.Match[str]) -> str:
    return word[0].translate(TO_CYRILLIC) if _ONLY_CYRILLIC.search(word[0]) else word[0]


def _unscrambled(word: re.Match[str]) -> str:
    letters = word[0]
    if len(letters) < _SHORTEST_SCRAMBLED:
        return _HASTY.get(letters, letters)
    return _HASTY.get(letters) or _SCRAMBLED.get((letters[0], letters[-1], "".join(sorted(letters[1:-1]))), letters)
