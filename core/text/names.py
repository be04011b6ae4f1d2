"""Names, known by their capitals in a statement (in a question any words may be one), and attributes of facts. Pure."""

from __future__ import annotations

import calendar
import re
from functools import lru_cache

from core.text.normalize import fold, language_data, plain, words_of
from core.text.terms import stop_words, terms_of

NAME_WORDS = 4
"""No name that is looked for has more words."""
LOOKED_AT = 60
MOST = 8
NAME_CHARS = 80
_WORD = re.compile(r"[^\W\d_][\w’'-]*")


@lru_cache(maxsize=1)
def _ordinary() -> frozenset[str]:
    """Days, months and words that often begin a sentence."""
    days = {name.lower() for name in (*calendar.day_name, *calendar.month_name) if name}
    return stop_words() | days | frozenset(language_data("words")["sentence_beginnings"].split())


def entity_key(name: str) -> str:
    """The form in which two spellings of a name are one: lower case, without accents, signs and possessive s."""
    words = words_of(plain(name)[0])
    if len(words) > 1 and words[-1] == "s":
        words = words[:-1]
    return " ".join(words)


def names_in(text: str) -> tuple[str, ...]:
    """The names in a statement as written, at most `MOST`: neighbouring words with capitals that are not ordinary
    words."""
    found: list[str] = []
    parts: list[str] = []
    end = -1
    for match in _WORD.finditer(fold(text)[:2000]):
        is_near = bool(parts) and match.string[end : match.start()] == " "
        word = re.sub(r"[’']s$|[’']$", "", match[0])
        if not is_near:
            _keep(found, parts)
        if _is_name(word):
            parts.append(word)
        else:
            _keep(found, parts)
        end = match.end()
        if word != match[0]:
            # "Ana's": the name is over.
            _keep(found, parts)
    _keep(found, parts)
    return tuple(found[:MOST])


def _keep(found: list[str], parts: list[str]) -> None:
    name = " ".join(parts)[:NAME_CHARS]
    if name and name not in found:
        found.append(name)
    parts.clear()


def _is_name(word: str) -> bool:
    low = word.casefold().replace("’", "'")
    return word[:1].isupper() and len(word) > 1 and low not in _ordinary()


def keys_in(text: str) -> tuple[str, ...]:
    """All that may be the key of a name in a question: one to four words, longest first, not stop words alone."""
    words = words_of(plain(text[:2000])[0])[:LOOKED_AT]
    keys = [
        " ".join(words[start : start + size])
        for size in range(NAME_WORDS, 0, -1)
        for start in range(len(words) - size + 1)
        if size > 1 or words[start] not in stop_words()
    ]
    return tuple(dict.fromkeys(keys))


ME = "me"
"""Attributes are ``subject|what``, such as ``me|home`` or ``ana|birthday``; `data/attributes.toml` has their words."""


def hint_words() -> dict[str, str]:
    """By attribute, the words that a question about it has and its answer has not."""
    found: dict[str, str] = language_data("attributes")["hints"]
    return found


def kin_words() -> tuple[str, ...]:
    """Who belongs to somebody: ``sister``, ``dog``, ``doctor``."""
    return tuple(language_data("attributes")["kin"]["one"] + language_data("attributes")["kin"]["several"])


def is_several(kin: str) -> bool:
    return kin in language_data("attributes")["kin"]["several"]


@lru_cache(maxsize=1000)
def hints_of(attribute: str | None) -> tuple[str, ...]:
    """The terms of the hints of ``subject|what`` or ``subject|what|more``; none where nothing is known."""
    what = (attribute or "").split("|")
    return tuple(dict.fromkeys(terms_of(hint_words().get(what[1], "")))) if len(what) > 1 else ()


def attribute_of(subject: str, what: str, more: str = "") -> str:
    return "|".join(part for part in (subject or ME, what, more) if part).casefold()
