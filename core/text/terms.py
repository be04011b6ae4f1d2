"""Text as the terms that ranking counts: stems without stop words, pairs of unspaced characters, emoji; and the names
in it. Pure.

English is stemmed by Porter's algorithm (Program 14, 1980), irregular forms first: about one point at hit@1 on LoCoMo;
what is in a script of its own as `languages` has it.
Of runs of unspaced scripts the terms are pairs, for Han also single characters, for Thai pairs of syllables; of a
question the words that only ask or join are cut out, or ``什么时候`` would outweigh what is asked for. Names are
known by their capitals in a statement; in a question any words may be one. `normalize.VERSION` also counts for this
file.
"""

from __future__ import annotations

import calendar
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import date
from functools import lru_cache
from itertools import chain
from operator import add

from core.text import normalize
from core.text.languages import WORDS_LOOKED_AT, languages_of, latin_stem, script_stem, telling
from core.text.normalize import (
    bare,
    clean,
    fold,
    is_unspaced,
    language_data,
    parted,
    plain,
    signed_terms,
    stemmer,
    symbol_token,
    words_of,
)

_PLAIN = bytes(code if chr(code).isascii() and chr(code).isalnum() else 32 for code in range(256)).lower()
"""For ASCII, one pass over the bytes instead of a regular expression: six times as fast, and ranking reads much."""
_SIGNED_LATIN = re.compile("[\u00df-\u024f\u1e00-\u1eff]")
_START = re.compile(r"(?:^|[.:?!\u2026]\s|\n)\W{0,9}+\w")
"""The first letter of a sentence: of a question it is made small, since a capital there tells no name."""
_WHEN = re.compile(r"\b(?:when|how long|what (?:date|day|month|year|time))\b", re.IGNORECASE)


@lru_cache(maxsize=1)
def stop_words() -> frozenset[str]:
    """English words too common to tell one message from another."""
    return frozenset(language_data("words")["stop_words"].split())


def telling_words(words: Sequence[str]) -> list[str]:
    """Of words in small letters those that tell a message from others, in the language they are in."""
    languages = () if telling().isdisjoint(words) else languages_of(words)
    return [word for word in words if (_forms_of(word, languages) if languages else _term(word))]


@lru_cache(maxsize=1)
def irregular_forms() -> Mapping[str, str]:
    """Each irregular form of an English word and the base it belongs to."""
    families = [family.split() for family in language_data("words")["irregular_forms"]]
    return {form: family[0] for family in families for form in family[1:]}


def stem(word: str) -> str:
    """The common form of a word in lower case; words of other alphabets, numbers and short words stay as they are."""
    word = irregular_forms().get(word, word)
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    return stemmer("porter")(word)


def terms_of(text: str) -> list[str]:
    """The terms of a text in order, repeated, without stop words; other forms of a word and those of signed words
    (``C++``) at the end."""
    if text.isascii():
        words = text.encode().translate(_PLAIN).decode().split()
        if telling().isdisjoint(words[:WORDS_LOOKED_AT]):
            return [*filter(None, map(_term, words)), *signed_terms(text)]
        return _spaced_terms(words, text)
    spaced, runs = parted(text)
    return [*_spaced_terms(words_of(spaced.casefold()), spaced), *_unspaced_terms(runs, run_terms)]


def query_terms(text: str) -> list[str]:
    """The different terms of a query, at most `LIMIT_TERMS`, without words that only ask unless nothing is left."""
    typed = _START.sub(lambda match: match[0].lower(), clean(text))
    if typed.isascii():
        return list(dict.fromkeys(terms_of(typed)))[: normalize.LIMIT_TERMS]
    words, runs = parted(typed)
    spaced = _spaced_terms(words_of(words.casefold()), words)
    terms = [*spaced, *_unspaced_terms(runs, asked_terms)] or _unspaced_terms(runs, run_terms)
    return list(dict.fromkeys(sorted(terms, key=lambda term: len(term) == 1)))[: normalize.LIMIT_TERMS]


def other_forms(text: str) -> dict[str, str]:
    """Of the terms of a query those that are another form of one, and which: its English stem, where it is in another
    language. Of none (empty) what only begins a query that is no question: ``Hans phone number``."""
    folded = parted(clean(text))[0]
    forms = _forms(words_of(folded.casefold()), folded) or []
    begins = {first: "" for first, *_ in forms[:1] if not (is_question(text) or first in query_terms(text))}
    return {other: main for main, *others in forms for other in others} | begins


def _spaced_terms(words: list[str], text: str) -> list[str]:
    """Of words in small letters, and the folded text that has them."""
    forms = _forms(words, text)
    if forms is None:
        return [*filter(None, map(_term, words)), *signed_terms(text)]
    return [*(one[0] for one in forms), *chain.from_iterable(one[1:] for one in forms), *signed_terms(text)]


def _languages(words: list[str], text: str) -> tuple[str, ...]:
    letters = set() if text.isascii() else set(_SIGNED_LATIN.findall(text.casefold()))
    return languages_of(words, letters) if letters or not telling().isdisjoint(words) else ()


def _forms(words: list[str], text: str) -> list[tuple[str, ...]] | None:
    """The terms of each word but stop words, its stem in the text's language first; None where that is English."""
    languages = _languages(words, text)
    typed = words_of(text) if languages else []
    said = set(typed)
    forms = {word: _forms_of(word.casefold(), languages) or _name(word, said, text) for word in said}
    return [forms[word] for word in typed if forms[word]] if languages else None


@lru_cache(maxsize=20_000)
def _forms_of(word: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    """What is too common in English may be a word here: Romanian ``an`` is a year."""
    term = _term(word)
    if not word.isalpha() or not bare(word).isascii():
        return (term,) if term else ()
    stems = [latin_stem(language, word) for language in languages]
    if not all(stems) or (len(word) == 1 and not term):
        return ()
    return tuple(dict.fromkeys(filter(None, [*stems, term])))


def _name(word: str, said: Set[str], text: str) -> tuple[str, ...]:
    """The term of a stop word with a capital, which may be a name: Ben, which is "am" in Dutch. What is said in small
    letters too is none but within a sentence."""
    small = word.lower()
    if small == word or not word[1:].islower() or small in language_data("languages")["polite"]:
        return ()
    if small in said and not re.search(rf"{word}(?<=[\w,;]\s{word})\b", text):
        return ()
    return tuple(filter(None, [_term(small)]))


def _unspaced_terms(parts: list[tuple[str, str]], terms_of_run: Callable[[str], Sequence[str]]) -> list[str]:
    return [term for run, symbol in parts for term in (terms_of_run(run) if run else [symbol_token(symbol)])]


def word_terms(text: str) -> list[str]:
    """As `terms_of`, for words and names that stand in no sentence: the same in all languages."""
    words, runs = parted(text)
    return [
        *filter(None, map(_term, words_of(words.casefold()))),
        *signed_terms(words),
        *_unspaced_terms(runs, run_terms),
    ]


@lru_cache(maxsize=10_000)
def name_terms(name: str) -> tuple[str, ...]:
    return tuple(word_terms(name))


@lru_cache(maxsize=10_000)
def date_terms(day: date) -> tuple[str, ...]:
    """A day in words, as people ask for it: ``Monday 8 May 2023``. Worth two points at hit@1."""
    return tuple(word_terms(f"{day:%A} {day.day} {day:%B} {day.year}"))


@lru_cache(maxsize=1)
def _names_of_days() -> frozenset[str]:
    return frozenset(word_terms(" ".join([*calendar.day_name, *calendar.month_name])))


def names_day(term: str) -> bool:
    """Whether it may be one of `date_terms`."""
    return term.isdecimal() or term in _names_of_days()


def asks_when(text: str) -> bool:
    folded = fold(text[:2000])
    return _WHEN.search(folded) is not None or (not text.isascii() and _any_of("when").search(folded) is not None)


def is_of_oneself(text: str) -> bool:
    """Whether people speak of themselves in it: ``my dentist``, ``habe ich``. Where a language leaves the word for I
    out, that is not seen."""
    known = language_data("words")["first_person"]
    spaced, runs = parted(text[:2000])
    words = words_of(spaced.casefold())
    languages = _languages(words, spaced) or ("english",)
    own = " ".join(known.get(name, "") for name in (*languages, "scripts")).split()
    return not set(words).isdisjoint(own) or any(re.search(known["unspaced"], run) for run, _ in runs)


def is_question(text: str) -> bool:
    return text.rstrip()[-1:] in ("?", "\uff1f", "\u061f")


@lru_cache(maxsize=1)
def moment_terms() -> frozenset[str]:
    """Terms of messages that say when something was."""
    return frozenset([*word_terms(language_data("words")["moment_words"]), *language_data("cjk")["moments"].split()])


def marks_of(terms: list[str]) -> list[str]:
    """What to mark in a message where these terms count: words that begin with the stem, and its irregular forms."""
    forms = [form for form, base in _irregular_stems().items() if base in terms]
    stems = [term[:-1] if term.isascii() and term.endswith("i") else term for term in apart(terms)]
    return [
        *forms,
        *(f"{part}*" if len(part) > 3 and part.isalpha() and not is_unspaced(part) else part for part in stems),
    ]


@lru_cache(maxsize=1)
def _irregular_stems() -> Mapping[str, str]:
    return {form: stem(base) for form, base in irregular_forms().items()}


@lru_cache(maxsize=100_000)
def _term(word: str) -> str:
    """The term of a word in lower case; empty for a stop word."""
    if word in stop_words():
        return ""
    if not word.isascii():
        decomposed = unicodedata.normalize("NFKD", fold(word))
        plainest = "".join(character for character in decomposed if not unicodedata.combining(character))
        return stem(plainest) if plainest.isascii() else script_stem(word)
    return stem(word)


SMALLTALK_CHARS = 80
"""A longer message is no small talk."""
_DRAWN_OUT = re.compile(r"(.)\1{2,}")


def is_smalltalk(text: str) -> bool:
    """Whether it is only "ok", "thanks!", "👍" or the like (`data/smalltalk.toml`), or empty. A word that may also be a
    name, or a question, is none: searching for nothing costs less than not searching."""
    if len(text) > SMALLTALK_CHARS:
        return False
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    kept = "".join(sign if unicodedata.category(sign)[0] in "LMN" or sign == "'" else " " for sign in folded)
    # What is left of an emoji is a mark without a letter.
    said = " ".join(word.strip("'") for word in kept.split() if any(map(str.isalnum, word)))
    known, phrases, fillers = _smalltalk()
    rest = phrases.sub("", said).split()
    return all(word in known or _DRAWN_OUT.sub(r"\1", word) in known or fillers.fullmatch(word) for word in rest)


@lru_cache(maxsize=1)
def _smalltalk() -> tuple[frozenset[str], re.Pattern[str], re.Pattern[str]]:
    """Small words, phrases, and what may stand for a word: laughter, or pieces of a script without spaces."""
    data = language_data("smalltalk")
    # Possessive: a long row of pieces that ends in something else is not tried in every cut.
    pieces = rf"(?:{_any(data['pieces'].casefold().split())})++"
    phrases = re.compile(rf"(?<!\S)(?:{_any(data['phrases'])})(?!\S)")
    return frozenset(data["words"].casefold().split()), phrases, re.compile(rf"{data['laughter']}|{pieces}")


def _any(texts: Iterable[str]) -> str:
    """Longer ones first."""
    return "|".join(sorted(map(re.escape, texts), key=len, reverse=True))


_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
_HIRAGANA = "\u3041-\u3096\u309d-\u309f"
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7fb"
_SOUTHERN = "\u0e01-\u0edf\u1000-\u109f\u1780-\u17dd\ua9e0-\ua9ff\uaa60-\uaa7f"

_SCRIPT = re.compile(f"([{_HANGUL}]+)|([{_SOUTHERN}]+)|[^{_HANGUL}{_SOUTHERN}]+")
_CLUSTER = re.compile(
    "[\u0e40-\u0e44\u0ec0-\u0ec4]?."
    "(?:[\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebd\u0ec8-\u0ece\u102b-\u1038\u103a-\u103e\u1056-\u1060\u17b4-\u17d1"
    "\u17d3\u17dd]|[\u1039\u17d2].)*+"
)
"""A consonant with its vowels and tone marks (and what is written below it): about a syllable."""

_KANA = re.compile(f"[{_HIRAGANA}\u30a1-\u30ff]")
_ALIKE = re.compile(f"([{_HAN}]+)|([{_HIRAGANA}]+)|[^{_HAN}{_HIRAGANA}]+")
_LAST = re.compile("(?:んだ|のだ|のか|だ|か)$")
_OTHER = re.compile(f"[{_HANGUL}{_SOUTHERN}]")
_NOT_HAN = re.compile(f"[^{_HAN}]+")


def run_terms(run: str) -> list[str]:
    """The terms of a run as the index holds it."""
    if _OTHER.search(run) is None:
        return _eastern(run)
    terms: list[str] = []
    for match in _SCRIPT.finditer(run):
        if match[1]:
            terms += _korean(match[1])
        elif match[2]:
            terms += _pairs(_CLUSTER.findall(match[2]))
        else:
            terms += _eastern(match[0])
    return terms


def _eastern(run: str) -> list[str]:
    if len(run) < 2:
        return [run]
    return [*map(add, run, run[1:]), *_NOT_HAN.sub("", run)]


@lru_cache(maxsize=20_000)
def _korean(word: str) -> tuple[str, ...]:
    """Korean is written with spaces, so a run is a word with what hangs on it, and comes again."""
    stem = _korean_stem(word) if len(word) > 1 else ""
    return (*_pairs(word), *([stem] if len(stem) == 1 else []))


@lru_cache(maxsize=256)
def asked_terms(run: str) -> tuple[str, ...]:
    """The terms of a run as a question asks for them, without words that only ask; may be empty."""
    pairs: list[str] = []
    singles: list[str] = []
    for match in _SCRIPT.finditer(run):
        part = match[0]
        if match[1]:
            stem = _korean_stem(part)
            if _korean_filler().fullmatch(part) is None and _korean_filler().fullmatch(stem) is None:
                pairs += _pairs(part if len(part) < 3 else stem)
                singles += [stem] if len(stem) == 1 else []
        elif match[2]:
            for words in _any_of("thai").split(part):
                pairs += _pairs(_CLUSTER.findall(words))
        elif _KANA.search(part):
            for words in _any_of("japanese").split(part):
                _japanese(_LAST.sub("", words), pairs, singles)
        else:
            for words in _chinese().sub(lambda match: match[1] or " ", part).split():
                pairs += _pairs(words)
                singles += _NOT_HAN.sub("", words)
    return (*pairs, *(one for one in singles if one not in _plain_han()))


def apart(terms: Sequence[str]) -> list[str]:
    """The terms without single characters that stand in one of the pairs, which would be too much to show."""
    words = [term for term in terms if len(term) == 2 and _plain_han().isdisjoint(term) and not _NOT_HAN.search(term)]
    inside = set("".join(words))
    return [term for term in terms if term not in inside]


def _japanese(words: str, pairs: list[str], singles: list[str]) -> None:
    """Han and Katakana as they are; of Hiragana what is neither particle nor ending."""
    previous = ""
    for match in _ALIKE.finditer(words):
        part = match[0]
        if not match[2]:
            pairs += _pairs(part) if len(part) > 1 else []
            singles += _NOT_HAN.sub("", part)
        else:
            particle = _any_of("japanese_particles").match(part) if previous else None
            rest = part[particle.end() :] if particle else part
            if previous and rest == part:
                # The ending of a verb: its first sign tells 取り from 取る.
                pairs.append(previous + part[0])
            elif len(rest) > 1:
                pairs += _pairs(rest)
        previous = part[-1]


def _pairs(units: str | list[str]) -> list[str]:
    return [*map(add, units, units[1:])] or list(units)


def _korean_stem(word: str) -> str:
    """A word without the particle or ending behind it; one letter only of a word of two."""
    for ending in _longest_first("korean_endings"):
        if word.endswith(ending) and len(word) > len(ending) + (len(ending) == 1 and len(word) > 2):
            return word[: -len(ending)]
    return word


@lru_cache(maxsize=1)
def _chinese() -> re.Pattern[str]:
    return re.compile(f"({_any_of('chinese_kept').pattern})|{_any_of('chinese').pattern}")


@lru_cache(maxsize=1)
def _korean_filler() -> re.Pattern[str]:
    return re.compile(f"{_any_of('korean').pattern}|(?:{_any_of('korean_asking').pattern}).{{0,4}}")


@lru_cache(maxsize=1)
def _plain_han() -> frozenset[str]:
    return frozenset(language_data("cjk")["plain_han"].split())


@lru_cache(maxsize=16)
def _longest_first(words: str) -> tuple[str, ...]:
    return tuple(sorted(language_data("cjk")[words].split(), key=len, reverse=True))


@lru_cache(maxsize=16)
def _any_of(words: str) -> re.Pattern[str]:
    return re.compile("|".join(_longest_first(words)))


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
    names: list[list[str]] = [[]]
    end = -1
    for match in _WORD.finditer(fold(text)[:2000]):
        word = re.sub(r"[’']s$|[’']$", "", match[0])
        is_name = word[:1].isupper() and len(word) > 1 and word.casefold().replace("’", "'") not in _ordinary()
        if not is_name or match.string[end : match.start()] != " ":
            names.append([])
        if is_name:
            names[-1].append(word)
        end = match.end()
        if word != match[0]:
            # "Ana's": the name is over.
            names.append([])
    found = dict.fromkeys(" ".join(parts)[:NAME_CHARS] for parts in names if parts)
    return tuple(found)[:MOST]


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


@lru_cache(maxsize=1)
def english_kin() -> Mapping[str, str]:
    """Who belongs to somebody, as a word of any language that is compared: the English word."""
    abroad = language_data("attributes")["kin_abroad"].values()
    known = {word: english for words in abroad for english, said in words.items() for word in said.split()}
    return {plain(word)[0]: english for word, english in (known | {one: one for one in kin_words()}).items()}


def is_several(kin: str) -> bool:
    return kin in language_data("attributes")["kin"]["several"]


@lru_cache(maxsize=1000)
def hints_of(attribute: str | None) -> tuple[str, ...]:
    """The terms of the hints of ``subject|what`` or ``subject|what|more``; none where nothing is known."""
    what = (attribute or "").split("|")
    return tuple(dict.fromkeys(terms_of(hint_words().get(what[1], "")))) if len(what) > 1 else ()


def attribute_of(subject: str, what: str, more: str = "") -> str:
    return "|".join(part for part in (subject or ME, what, more) if part).casefold()
