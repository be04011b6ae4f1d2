"""Recognise short answers and requests about reminders, with the phrases of `data/dialogue.toml`.

Phrases are compared in plain form: in lower case, without accents and punctuation. In scripts
without spaces, a phrase may be part of a longer run of letters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

from core.text.normalize import language_data, plain_with_offsets

# A longer message is never a short answer.
MAX_ANSWER_CHARS = 80
_SEPARATORS = re.compile(r"[^\w']+|_")
_CLAUSE_END = re.compile(
    r"[,;.!:，、。！；]+(?=\s|$|[^\d\s])|\s[-–—]+\s|\n|(?<=[ただ]から)(?=.)|(?<=니까)\s"
)
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
# The rejected hour of Portuguese "9 não, 11".
_DENIED_NUMBER = re.compile(
    r"^[^\d\n]{0,20}\d{1,2}(?:[:h.]\d\d)?h?(?: uhr)? (?:não|no|nicht|not|не|pas|değil)[,;. ]+"
    r"(?=\D{0,8}\d)",
    re.IGNORECASE,
)
_LEADS = re.compile(r"^(?:(?:please|pls|can you|could you|bitte|kannst du|no|ok|hey) )+")
_THUMBS = {"👍": "yes", "👎": "no"}


def plain_words(text: str) -> str:
    """Return the words of a text in plain form, separated by single spaces."""
    plain, _ = plain_with_offsets(text.replace("’", "'"))
    return " ".join(_SEPARATORS.sub(" ", plain).split())


def is_answer(kind: str, text: str) -> bool:
    """Return whether a message consists only of phrases of a table and filler words.

    The message must contain at least one phrase, such as "cancel". A thumb up counts as a yes, and
    a thumb down as a no.
    """
    if len(text) > MAX_ANSWER_CHARS:
        return False
    words = plain_words(text)
    if not words:
        return any(kind == meaning and thumb in text for thumb, meaning in _THUMBS.items())
    other_words, count = _pattern(kind).subn(" ", words)
    return count > 0 and not _pattern("fillers").sub(" ", other_words).strip()


def split_clauses(text: str) -> tuple[str, str]:
    """Split a message after its first clause: "not Sunday" and "Saturday"."""
    first, _, following = _CLAUSE_END.sub("\n", text.strip(), count=1).partition("\n")
    return first, following.strip()


def drop_denied(text: str) -> str:
    """Return a correction without its "no" and the time that it rejects.

    "not Sunday, Saturday" becomes "Saturday".
    """
    text = _DENIED_NUMBER.sub("", text)
    named_time = _words_after("instead_of", text)
    if named_time:
        return named_time
    first, following = split_clauses(text)
    if not following:
        return text
    words = plain_words(first)
    is_denied = any(_begins_with(phrase, words) for phrase in list_phrases("denial"))
    return following if is_denied or is_answer("no", first) else text


def _begins_with(phrase: str, words: str) -> bool:
    return words.startswith(phrase if _UNSPACED.search(phrase) else f"{phrase} ")


def find_phrase(kind: str, text: str) -> bool:
    """Return whether a text contains a phrase of a table."""
    return _pattern(kind).search(plain_words(text)) is not None


def split_command(kind: str, text: str) -> str | None:
    """Return the rest of a request after its phrase: "the dentist" for "cancel the dentist".

    The phrase must be at the beginning or the end of the message. Returns None without one. The
    result is in plain form.
    """
    words = _LEADS.sub("", plain_words(text))
    for pattern in (_edge_pattern(kind, at_end=False), _edge_pattern(kind, at_end=True)):
        match = pattern.search(words)
        if match is not None:
            name = f"{words[: match.start()]} {words[match.end() :]}"
            return " ".join(name.split())
    return None


def strip_lead(text: str) -> str:
    """Return a task without words such as "to" at its beginning."""
    words = text.split()
    for count in range(min(4, len(words) - 1), 0, -1):
        if plain_words(" ".join(words[:count])) in list_phrases("task_lead"):
            return " ".join(words[count:])
    return text


def drop_leads(kind: str, text: str) -> str | None:
    """Return a text without the phrases of a table at its beginning: "at 10" for "no, at 10".

    Returns None if the text doesn't begin with such a phrase.
    """
    shorter = _drop_lead(kind, text)
    if shorter is None:
        return None
    while (still_shorter := _drop_lead(kind, shorter)) is not None:
        shorter = still_shorter
    return shorter


def _drop_lead(kind: str, text: str) -> str | None:
    """Return a text without one phrase of a table at its beginning, or None."""
    plain, offsets = plain_with_offsets(text.replace("’", "'"))
    for phrase in list_phrases(kind):
        if not plain.startswith(phrase):
            continue
        end = len(phrase)
        if _UNSPACED.search(phrase) or not plain[end : end + 1].isalnum():
            original_end = end if offsets is None else (offsets[end : end + 1] or [len(text)])[0]
            return text[original_end:].lstrip(" ,.:!?、，。！…")
    return None


def drop_phrases(kind: str, text: str) -> str:
    """Return the plain words of a text, without the phrases of a table and filler words."""
    words = _pattern(kind).sub(" ", plain_words(text))
    return " ".join(_pattern("fillers").sub(" ", words).split())


def strip_name(words: str) -> str:
    """Return a reminder's name in plain form, without words such as "the" and "my"."""
    return " ".join(_pattern("around").sub(" ", words).split())


def meant_words(text: str) -> str | None:
    """Return the corrected words in a message: "Anna" for "sorry, I meant Anna".

    Returns None if the message doesn't contain a correction.
    """
    return _words_after("meant", text)


def _words_after(kind: str, text: str) -> str | None:
    """Return the words after a phrase of the table `kind`, or None if there are none."""
    plain, offsets = plain_with_offsets(text.replace("’", "'"))
    for phrase in list_phrases(kind):
        index = plain.find(phrase)
        is_unspaced = _UNSPACED.search(phrase) is not None
        is_word = index == 0 or is_unspaced or (index > 0 and not plain[index - 1].isalpha())
        if index >= 0 and is_word:
            end = index + len(phrase)
            original_end = end if offsets is None else (offsets[end : end + 1] or [len(text)])[0]
            return text[original_end:].strip(" ,:.!?。") or None
    return None


@cache
def list_phrases(kind: str) -> tuple[str, ...]:
    """Return the phrases of a table of `data/dialogue.toml` in plain form, longest first."""
    data: Any = language_data("dialogue", "core.scheduling")[kind]
    texts: Sequence[str] = [data] if isinstance(data, str) else list(data.values())
    phrases: set[str] = set()
    for text in texts:
        phrases.update(map(plain_words, re.split(r"[,\n]", text)))
    return tuple(sorted(filter(None, phrases), key=lambda phrase: (-len(phrase), phrase)))


def list_sentences(kind: str) -> tuple[str, ...]:
    """Return the sentences of a table of `data/dialogue.toml`, unchanged and in order."""
    data: Mapping[str, Sequence[str]] = language_data("dialogue", "core.scheduling")[kind]
    return tuple(chain.from_iterable(data.values()))


def list_templates(kind: str) -> Sequence[str]:
    """Return the templates of a table of `data/dialogue.toml`, such as "saat {}"."""
    data: Mapping[str, str] = language_data("dialogue", "core.scheduling")[kind]
    return tuple(data.values())


@cache
def _pattern(kind: str) -> re.Pattern[str]:
    """Return a pattern that matches a table's phrases as whole words."""
    return re.compile("|".join(map(_whole, list_phrases(kind))))


@cache
def _edge_pattern(kind: str, *, at_end: bool) -> re.Pattern[str]:
    alternatives = "|".join(map(_whole, list_phrases(kind)))
    return re.compile(f"(?:{alternatives})$" if at_end else f"^(?:{alternatives})")


def _whole(phrase: str) -> str:
    """Return a pattern that matches a phrase, but not within a longer word."""
    pattern = re.escape(phrase)
    if _UNSPACED.search(phrase):
        return pattern
    return rf"(?<![\w']){pattern}(?![\w'])"
