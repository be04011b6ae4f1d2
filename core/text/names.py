"""Names of persons, places and things in a text: those that a statement holds, those that a question may mean. Pure.

A name is known by its capitals in a statement; in a question any words may be one, because people type in a hurry.
"""

from __future__ import annotations

import re

from core.dates.scanner import MONTHS, WEEKDAYS
from core.search.query import STOPWORDS
from core.text.normalize import fold, plain, words_of

NAME_WORDS = 4
"""No name that is looked for has more words."""
LOOKED_AT = 60
MOST = 8
NAME_CHARS = 80
_WORD = re.compile(r"[^\W\d_][\w’'-]*")
_BEGINNINGS = """
i i'm i've i'd i'll im ive hi hey hello dear ok okay yes no please thanks remember note today yesterday tomorrow
tonight mr mrs ms dr sir everyone everybody someone somebody people monday's btw fyi also there's that's it's we're
we've let's ich du er sie es wir ihr mein meine meiner dein deine der die das den dem des ein eine einen einem und
oder aber am im eu ele ela nós meu minha o os um uma e ou mas no na em de do da yo él ella nosotros mi el la los las
un una y pero en je j'ai j'habite tu il elle nous mon ma mes le les une et ou mais au aux du à
"""
_ORDINARY = frozenset(_BEGINNINGS.split())


def entity_key(name: str) -> str:
    """The form in which two spellings of a name are one: lower case, without accents, signs and possessive s."""
    words = words_of(plain(name)[0])
    if len(words) > 1 and words[-1] == "s":
        words = words[:-1]
    return " ".join(words)


def names_in(text: str) -> tuple[str, ...]:
    """The names that a statement holds, as written, at most `MOST`: words with a capital that stand together, where
    they are no weekday, month or beginning of a sentence that is an ordinary word."""
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
    """Moves the words of a name that is over to the names."""
    name = " ".join(parts)[:NAME_CHARS]
    if name and name not in found:
        found.append(name)
    parts.clear()


def _is_name(word: str) -> bool:
    low = word.casefold().replace("’", "'")
    is_ordinary = low in STOPWORDS or low in _ORDINARY or low in WEEKDAYS or low in MONTHS
    return word[:1].isupper() and len(word) > 1 and not is_ordinary


def keys_in(text: str) -> tuple[str, ...]:
    """Everything in a question that may be the key of a name: its first words, one to four at a time, longest first;
    ordinary words alone are none."""
    words = words_of(plain(text[:2000])[0])[:LOOKED_AT]
    keys = [
        " ".join(words[start : start + size])
        for size in range(NAME_WORDS, 0, -1)
        for start in range(len(words) - size + 1)
        if size > 1 or words[start] not in STOPWORDS
    ]
    return tuple(dict.fromkeys(keys))
