"""Normalizes text for comparing and indexing, and for showing it in a terminal or a message.

Before a text is normalized, long sequences of combining marks in it are split (`to_normal_form`).
This affects only the forms for comparison. Stored text isn't changed.

Raise `TERMS_VERSION` when a change makes a function of `core/text` return different results. All
indexes are then rebuilt.

A "run" is a sequence of characters in a script without spaces between words: Han, Kana, Thai, Lao,
Khmer or Burmese. Hangul also counts as such a script, because Korean words end with particles
although they have spaces between them.
"""

from __future__ import annotations

import math
import re
import threading
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from itertools import cycle
from typing import Any, Literal

import snowballstemmer  # type: ignore[import-untyped]

TERMS_VERSION = 8

MAX_QUERY_CHARS = 10_000
"""The rest of a longer query is ignored."""
MAX_QUERY_TERMS = 64
MAX_INDEXED_CHARS = 100_000
"""Only this many characters at the beginning of a message are indexed for search.

Indexing a million characters takes half a second, or five seconds if no pair of characters repeats.
During this time, other writes to the database must wait.
"""

MAX_INDEXED_RUN_TOKENS = 150_000
"""At most this many pairs and characters of runs are indexed for a message.

Text in which no pair repeats costs the most.
"""

LONG_TEXT_CHARS = 10_000
"""Texts with fewer characters are indexed fast enough for the event loop."""

# --- Scripts and signs ---

_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0edf\u1000-\u109f\u1100-\u11ff\u1780-\u17d3\u17dc"
    "\u17dd\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\ua9e0-\ua9ff\uaa60-\uaa7f\uac00-\ud7fb\uf900-\ufaff\U00020000-\U0003ffff"
)
"""The letters of scripts without spaces."""
LETTER_CLASS = rf"[^\W_{_UNSPACED}]"
"""Part of a regular expression: a letter or digit of a script with spaces."""
_COMBINING_SIGNS = (
    "\u0300-\u036f\u0483-\u0487\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0900-\u0903"
    "\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u09d7\u09e2\u09e3"
    "\u0a01-\u0a03\u0a3c-\u0a51\u0a70\u0a71\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03"
    "\u0b3c-\u0b57\u0b82\u0bbe-\u0bcd\u0c00-\u0c04\u0c3c-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6"
    "\u0d00-\u0d03\u0d3b-\u0d4d\u0d81-\u0d83\u0dca-\u0ddf\u0f35\u0f37\u0f39\u0f71-\u0f84"
    "\u135d-\u135f\u180b-\u180d\u1ab0-\u1ace\u1dc0-\u1dff\u20d0-\u20dc"
)
"""Signs that belong to the letter before them: vowels of Indian scripts, and accents."""
WORD_PATTERN = re.compile(rf"[^\W_]++(?:[{_COMBINING_SIGNS}]++[^\W_]*+)*+")
"""A word of folded text, exactly as SQLite's tokenizer reads it for the index of messages."""

SCOPE_MARKER = "\ue000"
"""The first character of a word in an index that names a scope.

Folding removes this character from all other text, so a query can't contain such a word.
"""

_RUN = re.compile(f"[{_UNSPACED}]+")
_ASCII_AND_RUNS = re.compile(f"[\0-\x7f{_UNSPACED}]*")
"""Text in which each character is folded independently of its neighbours."""
_RUN_OR_SYMBOL = re.compile(
    f"([{_UNSPACED}]+)|([\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff])"
)
"""Group 1 is a run, group 2 a symbol or emoji."""
_MAY_HAVE_RUNS = re.compile("[\u0e01-\u1dff\u2300-\U0010ffff]")
"""A character in the Unicode blocks of runs, symbols and composed characters.

Most text in scripts with spaces has no such character, so this quick search saves slower ones.
"""
_COMPOSED = re.compile(
    "[\u1100-\u115f\ua960-\ua97c][\u1160-\u11a7\ud7b0-\ud7c6][\u11a8-\u11ff\ud7cb-\ud7fb]?"
    "|[\uffa1-\uffbe][\uffc2-\uffdc]"
    "|[\u3046-\u3062\u304b-\u307b\u30a6-\u30db\u30ef-\u30f2\uff73-\uff8e\uff9c]"
    "[\u3099\u309a\uff9e\uff9f]"
)
"""Characters that NFKC composes into one: the letters of Hangul, and Kana with a sound mark.

For example, "か" and a sound mark become "が".
"""
_COMPOSED_OR_ONE = re.compile(f"{_COMPOSED.pattern}|.", re.DOTALL)
_ACCENTS = re.compile("[\u0300-\u036f]")
_RECENT_SIGNS = re.compile("[^\\w\0-\u057f\u0900-\u2064]")
"""Signs that SQLite's tokenizer may not know yet, such as new emoji and currencies.

The tokenizer treats an unknown sign as a letter, so ``thanks🥰`` would be one word.
"""
_SIGNED_WORD = re.compile(
    # "#holiday"
    rf"(?<![\w#/&.])(#)({WORD_PATTERN.pattern})"
    # ".NET"
    rf"|(?<!\S)(\.)([^\W\d_]{WORD_PATTERN.pattern})"
    # "C++", "C#"
    r"|(?<!\w)([^\W_]++)(\+\+(?!\+)|#(?![\w#]))"
)
"""A word whose meaning depends on a sign."""


@lru_cache(maxsize=32)
def language_data(name: str, package: str = "core.text") -> Mapping[str, Any]:
    """Return the content of `data/<name>.toml` in a package: word lists, patterns or texts."""
    return read_language_data(name, package)


def read_language_data(name: str, package: str) -> Mapping[str, Any]:
    """Read the same data as `language_data`, without keeping it in memory."""
    return tomllib.loads(files(package).joinpath("data", f"{name}.toml").read_text("utf-8"))


# --- Normal forms ---

NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]
MAX_NONSTARTERS = 30
"""How many combining marks may follow each other, as in Unicode's Stream-Safe Text Format (UAX 15).

Normalization sorts marks in a row, which takes quadratic time. For 180,000 marks it took 24
seconds, during which no other thread could run.
"""
GRAPHEME_JOINER = "\u034f"
"""An invisible character that separates two sequences of marks. It doesn't change words or
letters."""
NORMALIZED_PIECE_CHARS = 8_000
"""Longer texts are normalized in pieces of about this length, each in at most 10 ms."""
_MAX_MARKS_IN_LETTER = 3
"""A composed letter decomposes to a plain letter and at most this many marks."""
_CERTAINLY_SAFE = MAX_NONSTARTERS - _MAX_MARKS_IN_LETTER
"""This many marks in a row are safe after any letter."""
_BLOCKS_WITH_MARKS = (
    (0x0300, 0x3100),
    (0xA66F, 0xABF0),
    (0xFB1E, 0xFB1F),
    (0xFE20, 0xFE30),
    (0x101FD, 0x11F50),
    (0x16AF0, 0x16FF2),
    (0x1BC9E, 0x1BC9F),
    (0x1CF00, 0x1D245),
    (0x1E000, 0x1E960),
)
_DECOMPOSED_TO_MARKS = "\u0f73\u0f75\u0f81\uff9e\uff9f"
"""Characters that aren't marks themselves, but that normalization replaces with marks."""


@lru_cache(maxsize=1)
def _mark_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return patterns for a possible mark, for many possible marks, and for many marks in a row.

    A character class with many characters above U+FFFF is slow. So for these characters, the first
    two patterns contain whole blocks, in which some characters aren't marks.
    """
    marks = [
        chr(code)
        for first, end in _BLOCKS_WITH_MARKS
        for code in range(first, end)
        if unicodedata.combining(chr(code))
    ]
    marks += _DECOMPOSED_TO_MARKS
    possible_marks = "".join(mark for mark in marks if mark < "\U00010000")
    possible_marks += "".join(
        f"{chr(first)}-{chr(end - 1)}" for first, end in _BLOCKS_WITH_MARKS if first > 0xFFFF
    )
    return (
        re.compile(f"[{possible_marks}]"),
        re.compile(f"[{possible_marks}]{{{_CERTAINLY_SAFE + 1},}}"),
        re.compile(f"[{''.join(marks)}]{{{_CERTAINLY_SAFE + 1},}}"),
    )


def make_stream_safe(text: str) -> str:
    """Return the text in Unicode's Stream-Safe Text Format, in linear time.

    A `GRAPHEME_JOINER` is inserted wherever more than `MAX_NONSTARTERS` combining marks would
    follow each other.
    """
    possible_mark, long_possible_run, long_run = _mark_patterns()
    # The slice takes every 28th character. A sequence of 28 marks would contain one of these.
    if not possible_mark.search(text[_CERTAINLY_SAFE :: _CERTAINLY_SAFE + 1]):
        return text
    parts: list[str] = []
    position = 0
    for possible_run in long_possible_run.finditer(text):
        for run in long_run.finditer(text, possible_run.start(), possible_run.end()):
            parts.append(text[position : run.start()])
            parts.append(_cut_run(run[0], text[max(0, run.start() - 1) : run.start()]))
            position = run.end()
    parts.append(text[position:])
    return "".join(parts)


def _cut_run(run: str, letter: str) -> str:
    """Split a sequence of marks after `letter` into safe parts, with joiners between them.

    The marks that `letter` itself decomposes to are counted too.
    """
    # Each of these four marks decomposes to two marks.
    for mark in "\u0344\u0f73\u0f75\u0f81":
        run = run.replace(mark, unicodedata.normalize("NFD", mark))
    letter_marks = sum(map(bool, map(unicodedata.combining, unicodedata.normalize("NFKD", letter))))
    first_end = MAX_NONSTARTERS - letter_marks
    parts = [run[:first_end]]
    for start in range(first_end, len(run), MAX_NONSTARTERS):
        parts.append(run[start : start + MAX_NONSTARTERS])
    return GRAPHEME_JOINER.join(parts)


def to_normal_form(form: NormalForm, text: str) -> str:
    """Return the text in a normal form of Unicode, in linear time.

    Long sequences of marks are split. Use this function instead of `unicodedata.normalize` for any
    text that may be long.
    """
    if text.isascii():
        return text
    pieces = _split_for_normalization(make_stream_safe(text))
    return "".join([unicodedata.normalize(form, piece) for piece in pieces])


def _split_for_normalization(text: str) -> Iterator[str]:
    """Yield pieces of a text that can be normalized separately.

    Normalizing a whole long text would stop all threads for up to 0.1 s. A piece ends where the
    next character can't combine with the one before.
    """
    start = 0
    while len(text) - start > NORMALIZED_PIECE_CHARS:
        end = start + NORMALIZED_PIECE_CHARS
        while end < len(text) and not _never_combines(text[end]):
            end += 1
        yield text[start:end]
        start = end
    yield text[start:]


def _never_combines(character: str) -> bool:
    """Return whether normalization never combines a character with the one before.

    Only marks, and the vowels and final consonants of Hangul, are combined.
    """
    first = unicodedata.normalize("NFKD", character)[0]
    is_mark = unicodedata.category(first).startswith("M") and first != GRAPHEME_JOINER
    return not is_mark and not "\u1160" <= first <= "\u11ff"


def without_marks(text: str) -> str:
    """Return the text in NFKD without combining marks and without `GRAPHEME_JOINER`."""
    letters_and_marks = to_normal_form("NFKD", text).replace(GRAPHEME_JOINER, "")
    return "".join(sign for sign in letters_and_marks if not unicodedata.combining(sign))


# --- Folding ---

_DROPPED_SIGNS = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640"
    "\u064b-\u065f\u0670\u00ad\ue000"
)
"""Hebrew points, Arabic vowels and tatweel, the soft hyphen, and `SCOPE_MARKER`."""
_DIGITS = "٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹०१२३४५६७८९০১২৩৪৫৬৭৮৯๐๑๒๓๔๕๖๗๘๙"
"""Arabic, Persian, Hindi, Bengali and Thai digits, ten of each."""
_SIGNED_LETTERS = "ёЁάέήίόύώΆΈΉΊΌΎΏΐΰϊϋΪΫأإآٱىیکةøØłŁđĐıİ"
_PLAIN_LETTERS = "еЕαεηιουωΑΕΗΙΟΥΩιυιυΙΥااااييكهoOlLdDiI"  # noqa: RUF001
"""Letters that people often write without their sign, and the same letters without it.

SQLite's tokenizer treats the two forms as different letters. The Arabic letters are those of
Lucene's ArabicNormalizer (after Larkey et al., 2002), and the Persian kaf and yeh.
"""
_WIDE_PUNCTUATION = (
    ("\uff0c", ","),
    ("\uff1f", "?"),
    ("\uff01", "!"),
    ("\uff1a", ":"),
    ("\u3000", " "),
)
"""Punctuation that is replaced before NFKC, with the same characters that NFKC would use.

Afterwards, most text is in normal form already, which `unicodedata.normalize` finds out in a tenth
of the time that a conversion takes.
"""
_PLAIN_QUOTES = str.maketrans(
    {"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2033": '"', "\0": " "}
)


@lru_cache(maxsize=1)
def folding_replacements() -> tuple[re.Pattern[str], Mapping[str, str]]:
    """Return a pattern for all characters that `fold` replaces, and their replacements.

    Traditional, Japanese and variant Han characters are replaced with the simplified characters of
    OpenCC. Characters that match the pattern but have no replacement are removed.
    """
    # In the file, each character is followed by its replacement.
    pairs = "".join(files("core.text").joinpath("data", "han.txt").read_text("utf-8").split())
    replacements = dict(zip(pairs[::2], pairs[1::2], strict=True))
    replacements.update(zip(_SIGNED_LETTERS, _PLAIN_LETTERS, strict=True))
    replacements.update(zip(_DIGITS, "0123456789" * 5, strict=True))
    return re.compile(f"[{_DROPPED_SIGNS}{''.join(replacements)}]"), replacements


def fold(text: str) -> str:
    """Return the text in NFKC, with plain letters, simplified Han characters and digits 0 to 9.

    Case and Latin accents don't change. `comparison_form` removes them.
    """
    if text.isascii():
        return text
    pieces = _split_for_normalization(make_stream_safe(text))
    return "".join([_fold_piece(piece) for piece in pieces])


def _fold_piece(text: str) -> str:
    """Fold a text that is stream-safe and short."""
    for wide, narrow in _WIDE_PUNCTUATION:
        text = text.replace(wide, narrow)
    pattern, replacements = folding_replacements()
    normal = unicodedata.normalize("NFKC", text)
    return pattern.sub(lambda match: replacements.get(match[0], ""), normal)


def clean_query(text: str) -> str:
    """Return a typed query, folded and cut to `MAX_QUERY_CHARS`.

    Typographic quotes become plain ones. Characters that SQLite rejects (lone surrogates, NUL) are
    replaced.
    """
    valid = text[:MAX_QUERY_CHARS].encode("utf-8", "replace").decode("utf-8")
    return fold(valid.translate(_PLAIN_QUOTES))[:MAX_QUERY_CHARS]


def comparison_form(text: str | None) -> str:
    """Return the form in which names and titles are compared.

    It's folded, in lower case and without accents.
    """
    folded_text = fold(text or "")
    if not folded_text.isascii():
        letters_and_signs = to_normal_form("NFD", folded_text)
        folded_text = to_normal_form("NFC", _ACCENTS.sub("", letters_and_signs))
    return folded_text.casefold()


@lru_cache(maxsize=4096)
def _plain_character(character: str) -> str:
    """Return a character folded and in lower case, without its diacritics.

    `character` may be several characters that NFKC composes into one.
    """
    folded_text = fold(character)
    if _RUN.match(folded_text):
        return folded_text
    return (without_marks(folded_text) or folded_text).lower()


def plain_with_offsets(text: str) -> tuple[str, list[int] | None]:
    """Return a plain form of a text, and for each of its characters the index in `text`.

    The plain form is folded, in lower case and without accents. The indexes show where a match in
    it is in `text`. If all characters have the same index in both texts, None is returned in place
    of the indexes.
    """
    if text.isascii():
        return text.lower(), None
    if _ASCII_AND_RUNS.fullmatch(text) and unicodedata.is_normalized("NFKC", text):
        return fold(text).lower(), None
    if not _MAY_HAVE_RUNS.search(text) or not _COMPOSED.search(text):
        # A loop in C would stop all other threads until the end of a long text.
        parts = [_plain_character(character) for character in text]
        plain = "".join(parts)
        if len(plain) == len(text) and "" not in parts:
            return plain, None
        return plain, [start for start, part in enumerate(parts) for _ in part]
    plain_parts: list[str] = []
    offsets: list[int] = []
    for match in _COMPOSED_OR_ONE.finditer(text):
        part = _plain_character(match[0])
        plain_parts.append(part)
        offsets += [match.start()] * len(part)
    return "".join(plain_parts), offsets


def plain_form(text: str) -> tuple[str, list[int] | None]:
    """Return a text in lower case and without accents, with a single space between words.

    The second result lists the index in `text` for each character, or is None if all indexes are
    the same in both texts.
    """
    plain, offsets = plain_with_offsets(text)
    # The last letter of a Greek word, and the apostrophe.
    plain = plain.replace("\u03c2", "\u03c3").replace("\u2019", "'")
    if not _OTHER_SPACE.search(plain):
        return plain, offsets
    characters: list[str] = []
    positions: list[int] = []
    for index, character in enumerate(plain):
        if character.isspace():
            if characters and characters[-1] == " ":
                continue
            character = " "
        characters.append(character)
        positions.append(index if offsets is None else offsets[index])
    return "".join(characters), positions


_OTHER_SPACE = re.compile(r"[^\S ]|\s\s")


# --- Words, runs and symbols ---


def words_of(text: str) -> list[str]:
    """Return the words of a folded text, without changing their case."""
    if len(text) < LONG_TEXT_CHARS:
        return WORD_PATTERN.findall(text)
    # `findall` in a long text would stop all other threads for several milliseconds.
    return [match[0] for match in WORD_PATTERN.finditer(text)]


def is_unspaced(text: str) -> bool:
    """Return whether a folded text begins with a run or a symbol.

    A search finds such a text anywhere, even inside a word.
    """
    return _RUN_OR_SYMBOL.match(text) is not None


def split_unspaced(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Fold a text, and separate its runs and symbols from its words.

    Returns the folded text with a space in place of each run and symbol, and a list of the runs and
    symbols in order: a run as ``(run, "")``, a symbol as ``("", symbol)``.
    """
    folded_text = fold(text)
    if not _MAY_HAVE_RUNS.search(folded_text):
        return folded_text, []
    matches = _RUN_OR_SYMBOL.finditer(folded_text)
    parts = [(match[1] or "", match[2] or "") for match in matches]
    return _RUN_OR_SYMBOL.sub(" ", folded_text), parts


def split_by_script(text: str) -> list[tuple[str, str]]:
    """Split a folded text into words, runs and symbols, in order.

    Each part is ``("words", part)``, ``("run", part)`` or ``("symbol", part)``. Parts without a
    letter, digit or symbol are left out.
    """
    if text.isascii():
        return [("words", text)] if WORD_PATTERN.search(text) else []
    parts: list[tuple[str, str]] = []
    # The pattern has two groups, so `split` returns text, group 1 and group 2 in turn.
    for kind, part in zip(cycle(("words", "run", "symbol")), _RUN_OR_SYMBOL.split(text)):
        if not part:
            continue
        if kind != "words":
            parts.append((kind, part))
            continue
        words = _RECENT_SIGNS.sub(_keep_combining, part)
        if WORD_PATTERN.search(words):
            parts.append((kind, words))
    return parts


def _keep_combining(match: re.Match[str]) -> str:
    """Return a sign that combines with the letter before it unchanged, or a space otherwise."""
    return match[0] if unicodedata.category(match[0]) in ("Mn", "Mc") else " "


def pairs_of(run: str) -> list[str]:
    """Return all pairs of neighbouring characters in a run: "ab" and "bc" for "abc"."""
    return [run[index : index + 2] for index in range(len(run) - 1)]


def symbol_token(symbol: str) -> str:
    """Return a sign or emoji as a token with its code point: ``u1f44d`` for ``👍``.

    SQLite's tokenizer knows the letters and digits of this token, but it may not know the emoji.
    """
    return f"u{ord(symbol):x}"


def signed_terms(text: str) -> list[str]:
    """Return the terms of words with a sign, such as "C++", "#12" and ".net".

    For example, ``C++`` has the term ``cu2bu2b``, and ``#12`` has the term ``u2312``.
    """
    # Most texts have no sign. Looking for one character first is quicker than for two.
    has_sign = "#" in text or " ." in text or text[:1] == "." or ("+" in text and "++" in text)
    if not has_sign:
        return []
    terms = []
    for match in _SIGNED_WORD.finditer(text.casefold()):
        term = ""
        for part in match.groups(""):
            is_sign = part in ("#", ".", "++")
            term += "".join(map(symbol_token, part)) if is_sign else part
        terms.append(term)
    return terms


def indexed_words(text: str | None) -> str:
    """Return the words and tokens that the index of messages contains for a text.

    The result begins with the text without its runs and symbols. They are followed by the pairs and
    single characters of the runs, the tokens of the symbols, and the terms of words with a sign,
    separated by spaces. Only the first `MAX_INDEXED_CHARS` characters of the text count.
    """
    if not text:
        return ""
    text = text[:MAX_INDEXED_CHARS]
    return _list_words(text) if len(text) < LONG_TEXT_CHARS else _list_words_of_long(text)


def prepare_indexed_words(texts: Iterable[str]) -> None:
    """Let `indexed_words` return the words of long texts at once, while other writes wait."""
    for text in texts:
        indexed_words(text)


def _list_words(text: str) -> str:
    tokens: list[str] = []
    if not text.isascii():
        text, parts = split_unspaced(text)
        text = _RECENT_SIGNS.sub(_keep_combining, text)
        for run, symbol in parts:
            if run:
                run = run[: max(0, MAX_INDEXED_RUN_TOKENS - len(tokens)) // 2]
                tokens += pairs_of(run)
                tokens += run
            else:
                tokens.append(symbol_token(symbol))
    tokens += signed_terms(text)
    return " ".join([text, *tokens]) if tokens else text


_list_words_of_long = lru_cache(maxsize=4)(_list_words)


# --- Text to show ---

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters except tab and new line, and signs that change the direction of text."""


# Words of a script that runs from right to left, with the spaces and marks between them.
_RIGHT_TO_LEFT = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
_RIGHT_TO_LEFT_RUN = re.compile(rf"{_RIGHT_TO_LEFT}+(?:[ ,.!?'’\-\d]{{1,12}}{_RIGHT_TO_LEFT}+)*")


def isolate_right_to_left(text: str) -> str:
    """Return a text for a terminal with right-to-left words in isolates (U+2068, U+2069).

    Otherwise, digits and marks next to Hebrew or Arabic words would change their order. Lines that
    begin with such words aren't changed.
    """
    if text.isascii() or not _RIGHT_TO_LEFT_RUN.search(text):
        return text
    return "\n".join(
        line
        if re.match(_RIGHT_TO_LEFT, line)
        else _RIGHT_TO_LEFT_RUN.sub("\u2068\\g<0>\u2069", line)
        for line in text.split("\n")
    )


def isolate_title(title: str) -> str:
    """Return a title, in isolates if it has right-to-left words.

    Otherwise, the numbers and dates next to it in a list would change their order.
    """
    has_right_to_left = not title.isascii() and _RIGHT_TO_LEFT_RUN.search(title) is not None
    return f"\u2068{title}\u2069" if has_right_to_left else title


def strip_controls(text: str) -> str:
    """Return the text without characters that control a terminal. Every line ends with "\\n"."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n"))


# Half of a surrogate pair. It can't be encoded as UTF-8.
_SURROGATE = re.compile("[\ud800-\udfff]")


def make_well_formed(text: str) -> str:
    """Return the text with "\n" as its only line break, and with valid characters only.

    NUL and lone surrogates are replaced, because platforms reject them.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    return _replace_surrogates(text)


def _replace_surrogates(text: str) -> str:
    """Join the halves of surrogate pairs, and replace single halves."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def make_json_safe(value: Any) -> Any:
    """Return a JSON value that every parser accepts.

    Halves of surrogate pairs are joined or replaced. Infinite numbers and NaN become null.
    """
    if isinstance(value, str):
        return _replace_surrogates(value)
    if isinstance(value, Mapping):
        return {make_json_safe(key): make_json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [make_json_safe(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def is_cjk(character: str) -> bool:
    """Return whether a character belongs to an East Asian script or its punctuation."""
    is_wide = character >= "\u1100" and unicodedata.east_asian_width(character) in "WF"
    return is_wide and unicodedata.category(character) not in ("So", "Sk")


def to_single_line(text: str) -> str:
    """Return a name or a title on one line, without control characters."""
    return " ".join(strip_controls(text).split())


def join_sentences(sentences: Iterable[str]) -> str:
    """Join sentences with spaces, but without one after a full-width mark such as ``。``."""
    text = ""
    for sentence in filter(None, sentences):
        gap = "" if not text or text.endswith(_WIDE_ENDS) else " "
        text += gap + sentence
    return text


_WIDE_ENDS = ("。", "！", "？", "」", "）")
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")


def end_sentence(text: str) -> str:
    """Return a text with a full stop, unless it already ends like a sentence or is empty."""
    if not text or text.endswith((*_SENTENCE_ENDS, *_WIDE_ENDS)):
        return text
    last = text[-1]
    # Korean sentences end with an ordinary full stop, although their letters are wide.
    is_wide = unicodedata.east_asian_width(last) in "WF" and "HANGUL" not in unicodedata.name(last)
    return f"{text}{'。' if is_wide else '.'}"


def quote_at_end(text: str) -> str:
    """Return a quotation for the end of a sentence, with a full stop after it if necessary.

    For example: “text”. or “Text!”
    """
    return f"“{text}”" if text.endswith(_SENTENCE_ENDS) else f"“{text}”."


def shorten(text: str, limit_chars: int) -> str:
    """Return the text on one line. A text that is too long is cut after a word and gets " …"."""
    line = " ".join(text.split())
    if len(line) <= limit_chars:
        return line
    return line[:limit_chars].rsplit(" ", 1)[0] + " …"


# --- Stemming ---

STEMMER_NAMES = frozenset(snowballstemmer.algorithms())
_STEMMER_LOCK = threading.Lock()
"""A stemmer isn't thread-safe, and searches run in several threads."""


@lru_cache(maxsize=64)
def stemmer(name: str) -> Callable[[str], str]:
    """Return the thread-safe function of a Snowball stemmer, which takes a word in lower case.

    With PyStemmer installed, it's 15 times as fast.
    """
    stem_word = snowballstemmer.stemmer(name).stemWord

    def stem(word: str) -> str:
        with _STEMMER_LOCK:
            return str(stem_word(word))

    return stem
