"""Checks text that is about to be stored.

The guard reports things that honest text doesn't contain: hidden characters, words that imitate
other words, imitations of Mneme's own markup, and the patterns in `data/patterns.toml`, such as
secrets. It doesn't look for the wording of attacks. It only reports its finding, as a phrase that
can follow "it contains". The origin of a text (`core.types.Origin`) decides whether the text is
stored.

A hidden character is invisible, or looks like another one. The joiners of Persian, Indic scripts
and emoji, the marks of Arabic and Hebrew, flags and soft hyphens are allowed. Every check takes
linear time.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby
from typing import Any

import structlog

from core.guard.origin_and_fence import neutralise
from core.text.normalize import language_data, to_normal_form

_DATA = language_data("patterns", "core.guard")
# A longer text is suspicious because of its length alone.
LIMIT_CHARS = 50_000
RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
# Scripts whose letters join, so that joiners are needed: Arabic, Syriac, N'Ko, the scripts of
# India, Tibetan, Khmer, Mongolian and their neighbours.
JOINING = (
    f"{RIGHT_TO_LEFT}\u0900-\u0dff\u0e00-\u109f\u1780-\u18af\u1950-\u19df\u1a00-\u1aaf"
    "\u1b00-\u1c4f\ua800-\ua9ff"
)
# Thai, Lao, Burmese, Khmer and Tai, in which a zero-width space marks where a line may break.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df"
EMOJI = "\u00a9\u00ae\u200d\u203c-\u3299\ufe0f\U0001f000-\U0001faff\U000e007f"

# Characters that change the direction of reading.
_DIRECTION = "\u202a\u202b\u202d\u202e\u2066-\u2068"
_LETTER = "A-Za-z\u00c0-\u052f\u1e00-\u1fff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
# Letters and symbols that look like a space.
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
# Characters that are hidden wherever they occur.
_ALWAYS_HIDDEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u17b4\u17b5\u180e"
    "\u202a\u202b\u202d\u202e\u2060-\u2068\u206a-\u206f"
    "\ufff9-\ufffb\U000e0000-\U000e01ef"
)
_HIDDEN = re.compile(
    # One class of all these characters comes first, so that the search skips plain text quickly.
    # Each condition after it looks back at the character that matched.
    f"[{_ALWAYS_HIDDEN}{_BLANK}\u061c\u200b-\u200f\ufe00-\ufe0f\ufeff]"
    f"(?:(?<=[{_ALWAYS_HIDDEN}])"
    # A joiner that isn't needed by a letter or an emoji next to it.
    f"|(?<=[\u200c\u200d])(?<![{JOINING}].)(?<![{JOINING}][\u200c\u200d].)"
    f"(?![\u200c\u200d]?[{JOINING}])(?!(?<=[{EMOJI}].)[{EMOJI}])"
    # A zero-width space outside of scripts without spaces.
    f"|(?<=\u200b)(?<![{UNSPACED}].)(?![{UNSPACED}])"
    # A direction mark between two letters that read from left to right, or two marks in a row.
    f"|(?<=[\u061c\u200e\u200f])"
    f"(?:(?<=[{_LETTER}].)(?=[{_LETTER}])|(?=[\u061c\u200e\u200f]{{2}}))"
    # Two variation selectors or two blanks in a row, or a byte order mark after another character.
    f"|(?<=[\ufe00-\ufe0f])(?=[\ufe00-\ufe0f])|(?<=[{_BLANK}])(?=[{_BLANK}])|(?<=.\ufeff))",
    re.DOTALL,
)
# Sequences whose hidden characters are needed.
_ALLOWED_SEQUENCES = (
    # Flags such as Scotland's.
    re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"),
    # The selector that chooses among the printed forms of a Han character.
    re.compile("(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"),
    # The marks that an address book puts around a phone number to keep its direction in
    # right-to-left text.
    re.compile(f"[{_DIRECTION}]{{1,4}}[0-9 +()./\u00a0\u2011-]{{3,24}}[\u202c\u2069]{{1,4}}"),
)
# A passage that sets its own direction of reading, from its opening to its closing character.
# Right-to-left text needs such passages. Only the position of the opening character is used.
_BALANCED_DIRECTION = re.compile(
    "([\u2066-\u2068])[^\u2066-\u2069\u202a-\u202e\n]{0,200}\u2069"
    "|([\u202a\u202b])[^\u2066-\u2069\u202a-\u202e\n]{0,200}\u202c"
)
_RIGHT_TO_LEFT = re.compile(f"[{RIGHT_TO_LEFT}]")

# Letters of Cyrillic, Greek, Armenian and Cherokee that are drawn like Latin ones.
LATIN_LIKE = frozenset(_DATA["latin_like"])
# The letters above that are drawn exactly like Latin ones.
_LATIN_TWINS = LATIN_LIKE - set(
    "\u0433\u043a\u043f\u0438\u0432\u043c\u0442\u03b1\u03b9\u03ba\u03c1\u03c4\u03c7"
)
# Latin letters that are drawn like Cyrillic ones.
_CYRILLIC_LIKE = frozenset("aceopxyikmtbhnurABCEHKMOPTXY")
_WORD = re.compile(r"[^\W\d_]{3,100}")
# A Latin letter next to a Greek, Cyrillic, Armenian or Cherokee one.
_MIXED = re.compile("[A-Za-z][\u0370-\u058f\u13a0-\u13f5]|[\u0370-\u058f\u13a0-\u13f5][A-Za-z]")
_WORD_END = re.compile(r"[)\s]")

REASONS: Mapping[str, str] = _DATA["reasons"]

NAME_CHARS = 64
# The maximum number of marks on one letter of a name. Hebrew, Arabic and Burmese need this many.
MAX_MARKS = 3
# Invisible characters that a text may contain. Names don't need them.
_UNSEEN_IN_NAMES = (
    f"[{_BLANK}\u00ad\u034f\u180b\u180c\u180d\u180f\ufeff]|(?<=[^\\W\\d])[\ufe00-\ufe0f]"
)
# Names without right-to-left letters don't need direction marks either.
_UNSEEN_IN_LTR_NAMES = f"{_UNSEEN_IN_NAMES}|[\u061c\u200e\u200f]"
_EAST_ASIAN_ALPHABETS = {
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "KATAKANA-HIRAGANA",
    "HALFWIDTH",
    "HANGUL",
    "BOPOMOFO",
    "IDEOGRAPHIC",
}
# An honest name may mix these letters with another alphabet, because they don't look like letters
# of that alphabet. Each item is the first word of their Unicode names.
_MIXABLE_ALPHABETS = _EAST_ASIAN_ALPHABETS | {"MODIFIER", "FEMININE", "MASCULINE"}


class Pattern:
    """A pattern in `data/patterns.toml`.

    The pattern matches a text with a match of `first`. If `then` is given, a match of `then` must
    follow in the same line. With `is_word`, both must be in the same word. Unlike a single regular
    expression, two separate searches take linear time. Only texts that contain one of `needs`,
    ignoring case, are searched.
    """

    def __init__(self, table: Mapping[str, Any]) -> None:
        """Compile the pattern from a table of the file."""
        flags = re.MULTILINE
        if not table.get("is_case_sensitive"):
            flags |= re.IGNORECASE
        self.name = table["name"]
        self.needs = table["needs"]
        self.first = re.compile(table["first"], flags)
        self.then = re.compile(table["then"], flags) if "then" in table else None
        self.is_word = table.get("is_word", False)

    def is_in(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in a text."""
        match = self.first.search(text)
        if self.then is None:
            return match is not None
        while match is not None:
            start = match.end()
            end = self._end_of_context(text, start)
            if self.then.search(text, start, end):
                return True
            match = self.first.search(text, end)
        return False

    def _end_of_context(self, text: str, start: int) -> int:
        """Return the end of the line or word in which `then` is searched."""
        end = text.find("\n", start)
        if end < 0:
            end = len(text)
        if self.is_word:
            word_end = _WORD_END.search(text, start, end)
            if word_end:
                end = word_end.start()
        return end


def find_suspicion(text: str) -> str | None:
    """Return a noun phrase for the suspicious part of a text, such as "a password", or None."""
    if len(text) > LIMIT_CHARS:
        return REASONS["length"].format(most=LIMIT_CHARS)
    hidden_at = next(_find_hidden(text), None)
    if hidden_at is not None:
        return _describe_hidden(text[hidden_at])
    if neutralise(text) != text:
        return REASONS["forgery"]
    if word := find_mixed_word(text):
        return f"{REASONS['lookalike']} (“{word[:40]}”)"
    lower_text = text.lower()
    for pattern in _patterns():
        if any(need in lower_text for need in pattern.needs) and pattern.is_in(text):
            return REASONS[pattern.name]
    return None


def holds_key(text: str) -> bool:
    """Return whether a text has the form of a key, or of a link with a secret in it."""
    return find_suspicion(text) == REASONS["secret"]


def _describe_hidden(character: str) -> str:
    """Return a phrase for a hidden character, including its code point."""
    if unicodedata.category(character) == "Cc":
        reason = REASONS["control"]
    elif re.match(f"[{_DIRECTION}]", character):
        reason = REASONS["direction"]
    else:
        reason = REASONS["invisible"]
    return f"{reason} (U+{ord(character):04X})"


def clean_text(text: str) -> str:
    """Return `text` without hidden characters, and with neutralised imitations of our markup."""
    hidden_positions = set(_find_hidden(text))
    if hidden_positions:
        text = "".join(
            character for index, character in enumerate(text) if index not in hidden_positions
        )
    return neutralise(text)


@cache
def _patterns() -> tuple[Pattern, ...]:
    return tuple(map(Pattern, _DATA["pattern"]))


def find_mixed_word(text: str) -> str | None:
    """Return the first word that imitates another word by mixing two alphabets, or None.

    An example is "paypal" with a Cyrillic "p". A foreign word with an ending in the alphabet of the
    sentence, such as "Telegram" with a Cyrillic ending, isn't an imitation.
    """
    if text.isascii() or _MIXED.search(text) is None:
        return None
    for match in _WORD.finditer(text):
        word = match[0]
        if word.isascii():
            continue
        runs = [(alphabet, "".join(letters)) for alphabet, letters in groupby(word, _alphabet)]
        if _is_imitation(runs):
            return word
    return None


def inspect_name(name: str) -> tuple[str, list[str]]:
    """Return a form of a name that is safe to show, and reasons why it may imitate another name.

    The name is on one short line, and each hidden character is replaced with its code point. The
    reasons are phrases such as "invisible characters". An ordinary name has none.
    """
    normal_name = to_normal_form("NFC", " ".join(name[: 4 * NAME_CHARS].split()))
    plain_name = _limit_marks(normal_name)
    is_rtl = _RIGHT_TO_LEFT.search(plain_name) is not None
    unseen = _UNSEEN_IN_NAMES if is_rtl else _UNSEEN_IN_LTR_NAMES
    hidden_positions = {*_find_hidden(plain_name)}
    hidden_positions |= {match.start() for match in re.finditer(unseen, plain_name)}
    letters = {character for character in plain_name if character.isalpha()}
    is_cut = len(plain_name) > NAME_CHARS or len(name) > 4 * NAME_CHARS

    reasons: list[str] = []
    if len(_list_alphabets(plain_name)) > 1:
        reasons.append("letters of two alphabets")
    if letters and letters <= _LATIN_TWINS:
        reasons.append("letters that look like Latin ones")
    if hidden_positions:
        reasons.append("invisible characters")
    if plain_name != normal_name:
        reasons.append("stacked signs")
    if is_cut:
        reasons.append("cut")

    signs = list(plain_name)
    for index in hidden_positions:
        signs[index] = f"\u2039U+{ord(plain_name[index]):04X}\u203a"
    shown_name = "".join(signs[:NAME_CHARS])
    return (f"{shown_name}…" if is_cut else shown_name), reasons


def _limit_marks(name: str) -> str:
    """Return the name with at most `MAX_MARKS` combining marks on each letter."""
    characters: list[str] = []
    marks = 0
    for character in name:
        if unicodedata.category(character) in ("Mn", "Me"):
            marks += 1
        else:
            marks = 0
        if marks <= MAX_MARKS:
            characters.append(character)
    return "".join(characters)


def _list_alphabets(name: str) -> set[str]:
    """Return the alphabets of a name's letters: the first words of their Unicode names.

    Bold, wide and other special forms of a letter also count as the ordinary letter.
    """
    characters = {*name, *to_normal_form("NFKC", name)}
    alphabets = {
        unicodedata.name(character, "").split(" ")[0]
        for character in characters
        if character.isalpha()
    }
    return alphabets - _MIXABLE_ALPHABETS


def _find_hidden(text: str) -> Iterator[int]:
    """Yield the positions of hidden characters."""
    if text.isascii() and text.isprintable():
        return
    allowed_positions: set[int] | None = None
    for match in _HIDDEN.finditer(text):
        if allowed_positions is None:
            allowed_positions = _find_allowed(text)
        if match.start() not in allowed_positions:
            yield match.start()


def _find_allowed(text: str) -> set[int]:
    """Return the positions of characters that match `_HIDDEN` but are needed in this text."""
    allowed_positions: set[int] = set()
    for pattern in _ALLOWED_SEQUENCES:
        for match in pattern.finditer(text):
            allowed_positions.update(range(match.start(), match.end()))
    if _RIGHT_TO_LEFT.search(text):
        allowed_positions.update(match.start() for match in _BALANCED_DIRECTION.finditer(text))
    return allowed_positions


def _alphabet(letter: str) -> str:
    """Return "latin" for a Latin letter, "other" for a similar alphabet, or ""."""
    if letter < "\u0370":
        return "latin"
    return "other" if letter < "\u0590" or "\u13a0" <= letter <= "\u13f5" else ""


def _is_imitation(runs: list[tuple[str, str]]) -> bool:
    """Return whether a word imitates another word.

    `runs` are pairs of an alphabet and letters, one for each piece of the word that is written in a
    single alphabet.
    """
    if len(runs) == 1 or any(not alphabet for alphabet, _ in runs):
        return False
    lookalikes = {"latin": _CYRILLIC_LIKE, "other": LATIN_LIKE}
    # For each run, whether all its letters are drawn like letters of the other alphabet.
    could_imitate = [lookalikes[alphabet].issuperset(letters) for alphabet, letters in runs]
    if len(runs) > 2:
        return any(could_imitate)
    # With one change of alphabet, a foreign beginning is an imitation ("p" of "paypal"), but a
    # foreign ending is grammar.
    _, ending = runs[1]
    return could_imitate[0] and ending.islower() and len(ending) > 2


SERVICE_LINES = 12
SERVICE_LINE_CHARS = 600
SERVICE_TEXT_CHARS = 4_000
# A first word with a digit: "m123 ".
_TOKEN = re.compile(r"\S*\d\S* ")
_log = structlog.get_logger("memory")


def clean_service_lines(name: str, result: Any) -> list[str]:
    """Return the lines from an external memory provider without suspicious ones.

    Long lines are cut. Each line begins with the provider's name and a token, such as "mem0:m123 ".
    A line without a token gets a checksum as its token.
    """
    texts = result[:SERVICE_LINES] if isinstance(result, (list, tuple)) else [[result]]
    lines: list[str] = []
    for text in texts:
        line = " ".join(clean_service_text(name, text, SERVICE_LINE_CHARS).split())
        if line:
            token = "" if _TOKEN.match(line) else f"{zlib.crc32(line.encode()):08x} "
            lines.append(f"{name}:{token}{line}")
    return lines


def clean_service_text(name: str, value: Any, limit_chars: int = SERVICE_TEXT_CHARS) -> str:
    """Return the beginning of a text from an external memory provider, or "" if it's suspicious.

    Lone surrogates are replaced, because they can't be sent. If the value isn't a text, the result
    is empty. All omissions are logged, except that of None.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        reason: str | None = f"it has the type {type(value).__name__}, not text"
        text = ""
    else:
        text = value[:limit_chars].encode("utf-8", "replace").decode("utf-8").replace("\0", "")
        reason = find_suspicion(text)
    if reason is not None:
        _log.warning("text of a memory service left out", provider=name, reason=reason)
        return ""
    return neutralise(text.strip())
