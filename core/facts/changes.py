"""Recognise statements about change in a message: what began, ended, or never came true.

`data/changes.toml` has the expressions of ten languages, and `data/topics.toml` the words of each
topic. Only the lists of the message's own language are searched, because "he", for example, is a
person in English and a verb in Spanish.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, lru_cache
from itertools import zip_longest
from typing import Literal, get_args

from core.dates.periods_in_text import find_periods
from core.facts.patterns import UNSPACED_LANGUAGES, compile_expressions
from core.facts.wording import is_english
from core.text.languages import detect_languages, latin_stop_words
from core.text.normalize import fold, language_data, plain_with_offsets, words_of
from core.text.terms import stop_words

ChangeKind = Literal[
    "change",
    "swap",
    "temporary",
    "past",
    "unreal",
    "start",
    "correction",
    "addition",
    "other",
    "speaker",
    "still",
    "when",
]
"""The kinds of statements about change. See the top of `data/changes.toml`."""
ExpressionList = Literal["filler", "predicate", "weekday", "age", "own_report", "begun", "lately"]
"""The other lists of expressions in `data/changes.toml`."""
MAX_TEXT_CHARS = 600
"""Longer messages are stories, so only their beginning is read."""
MAX_QUERY_WORDS = 120
NAMES = "names"
"""The key of a topic's names that are spelled the same in all languages, such as car brands."""
NEGATED_TOPIC = "dislike"
"""The expressions of this topic may contain words of other topics."""
MIN_CERTAIN_WORDS = 5
"""A shorter text in Latin letters without typical words may be in any language."""
MAX_AMBIGUOUS_CHARS = 2
"""A pronoun of at most this length may be another word in another language."""
PHONE_DIGITS = 7
"""A number with at least this many digits may be a telephone number."""
FUTURE_DAYS = 330
"""A day without a year means a day that is at most this many days after the message."""

MAX_DAY_DISTANCE = 14
"""A day within this many characters of "moved" is the day to which something is moved."""
MAX_MONTH_SHIFT = 31
"""If the day moves, the beginning of its week or month moves by about as many days, give or take
this many."""

_LATIN = ("english", "german", "french", "spanish", "portuguese", "turkish")
_OWN_LANGUAGES = frozenset((*UNSPACED_LANGUAGES, *_LATIN, "russian"))
_HANGUL = re.compile("[\uac00-\ud7a3]")
_KANA = re.compile("[\u3040-\u30ff]")
_HAN = re.compile("[\u4e00-\u9fff]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_TITLE = re.compile(r"(?<!eine )(?<!einer )\b(?:Frau|Herrn?) (?=[A-ZÄÖÜ])")
"""The German title before a name. In "meine Frau Petra", the word means the wife."""
_SPACED_WORD = re.compile(r"\S+\s+")
_INNER_NAME = re.compile(r"(?<=[\w,;:] )[^\W\d_a-zß-öø-ÿа-яё]\w+")
_PHONE = re.compile(rf"(?:\d[ ()/.-]?){{{PHONE_DIGITS},}}")
_CLOCK = re.compile(r"\d{1,2}(?:[:.h]\d{2}| ?(?:uhr|h|am|pm|時|时|点|點|시)(?![a-z]))")
_FIGURE = re.compile(r"\d[\d.,-]*")
WEEKDAY_CHARS = 6
"""Weekdays of a language differ in their first letters, so endings are ignored after this many."""
MIN_INFLECTED_CHARS = 4
"""Words of topics with at least this many letters may have endings."""
_ENDINGS = {
    "english": "s?",
    "german": "(?:e|en|er|es|n|s)?",
    "french": "[sx]?",
    "spanish": "(?:e?s)?",
    "portuguese": "(?:e?s)?",
    "russian": r"\w{0,3}",
    "turkish": r"\w{0,6}",
}
"""The endings of nouns in the languages whose lists of topics have words with spaces."""
_MAIL = re.compile(r"\S+@\S+\.\w")


@dataclass(frozen=True, slots=True)
class Reading:
    """The statements of a message about change, and the topics that it mentions."""

    kinds: frozenset[ChangeKind]
    topics: frozenset[str]
    # The person at the beginning of the message, if it isn't the writer: "my cousin".
    person: str = ""
    # The expressions that announce a change: "moved".
    change_words: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the message describes a lasting state that is real and hasn't ended."""
        return self.kinds.isdisjoint(("temporary", "past", "unreal"))

    @property
    def announces_change(self) -> bool:
        """Whether the message says that something changes or was said wrongly."""
        return not self.kinds.isdisjoint(("change", "correction"))

    @property
    def replaces(self) -> bool:
        """Whether the message says that a new state replaces an earlier one."""
        changes = "change" in self.kinds and "addition" not in self.kinds
        return self.holds and (changes or "correction" in self.kinds)


@lru_cache(maxsize=500)
def read_changes(text: str) -> Reading:
    """Read the statements of a message about change, in any of the ten languages."""
    plain = _plain(text)
    languages = languages_of(text)
    kinds: set[ChangeKind] = set()
    person = ""
    for kind in get_args(ChangeKind):
        for language in languages:
            searched = _plain(_drop_inner_names(text, language)) if kind == "speaker" else plain
            match = _find(searched, kind, language)
            # Another person is the subject only at the beginning of a message.
            is_certain = len(languages) == 1 or language in UNSPACED_LANGUAGES
            if match and (kind != "other" or _is_opening(match, language, is_certain=is_certain)):
                kinds.add(kind)
                if kind == "other":
                    person = match[0]
                break
    if "swap" in kinds:
        # "Swapped Whitby for a week in Bamburgh" isn't about a temporary stay.
        kinds.discard("temporary")
        kinds.add("change")
    return Reading(frozenset(kinds), topics_of(text), person, _change_words(plain, languages))


def _drop_inner_names(text: str, language: str) -> str:
    """Return a text without capitalized words inside of sentences.

    In "¿cuántos años tiene Leo?", "Leo" isn't the Spanish verb. English and German texts are
    returned unchanged, because "I" and nouns have capitals.
    """
    if language in ("english", "german") or language in UNSPACED_LANGUAGES:
        return text
    return _INNER_NAME.sub(" ", text)


def separate_speaker(text: str) -> str:
    """Return a text with spaces in place of the words for "I" and "my" in scripts without spaces.

    Otherwise, "うちの車" would begin with a word that other statements about the car lack.
    """
    for language in languages_of(text):
        if language in ("chinese", "japanese"):
            text = _speaker_prefix(language).sub(" ", text)
    return text


@cache
def _speaker_prefix(language: str) -> re.Pattern[str]:
    lists = language_data("changes", "core.facts")[language]
    return re.compile(rf"(?:{'|'.join(lists['speaker'])})(?:们|家)?(?:的|の|は)?")


def _change_words(plain: str, languages: Iterable[str]) -> tuple[str, ...]:
    """Return the expressions of change in a text."""
    words: list[str] = []
    for language in languages:
        words += [match[0] for match in _change_pattern(language, "change").finditer(plain)]
    return tuple(words)


def _find(plain: str, kind: ChangeKind, language: str) -> re.Match[str] | None:
    """Find an expression of this kind in a text.

    A period in which something began doesn't count as a stay. Returns None if there is none.
    """
    for match in _change_pattern(language, kind).finditer(plain):
        if kind != "temporary" or not _is_beginning(match, language):
            return match
    return None


def _is_beginning(period: re.Match[str], language: str) -> bool:
    """Return whether a period says when something began: "from this week", "started this week"."""
    if _since_pattern().search(period.string[: period.start()]):
        return True
    is_lately = _change_pattern(language, "lately").fullmatch(period[0]) is not None
    return is_lately and _change_pattern(language, "begun").search(period.string) is not None


@cache
def _companions_pattern() -> re.Pattern[str]:
    return re.compile(language_data("changes", "core.facts")["common"]["companions"])


@cache
def _since_pattern() -> re.Pattern[str]:
    expressions: list[str] = language_data("changes", "core.facts")["shared"]["since"]
    return re.compile(rf"(?<!\w)(?:{'|'.join(expressions)}) ?$")


def _is_opening(match: re.Match[str], language: str, *, is_certain: bool) -> bool:
    """Return whether a message begins with a person, perhaps after words such as "by the way".

    A person followed by a verb is a subject at any place: "looks like my sister is". In Spanish,
    "he" is a verb and "el" an article.
    """
    if _is_subject(match, language):
        return True
    if words_of(_change_pattern(language, "filler").sub(" ", match.string[: match.start()])):
        return False
    return is_certain or len(match[0]) > MAX_AMBIGUOUS_CHARS


def _is_subject(match: re.Match[str], language: str) -> bool:
    """Return whether the match is the first person in a message, followed by a verb."""
    if language not in _LATIN or len(match[0]) <= MAX_AMBIGUOUS_CHARS:
        return False
    before, after = match.string[: match.start()], match.string[match.end() :]
    if _change_pattern(language, "speaker").search(before):
        return False
    return _change_pattern(language, "predicate").match(after) is not None


def reports_own_words(text: str) -> bool:
    """Return whether a text says that its writer said or wrote something: "I told them"."""
    plain = _plain(text)
    return any(
        _change_pattern(language, "own_report").search(plain) for language in languages_of(text)
    )


def begins_with_action(text: str) -> bool:
    """Return whether a text begins with another person's verb, except "is": " moved to Leeds".

    Companions may come before the verb: " and the kids have moved".
    """
    copulas: str = language_data("changes", "core.facts")["common"]["copulas"]
    plain = f" {_plain(text).lstrip()}"
    companions = _companions_pattern().match(plain)
    if companions is not None and "speaker" not in read_changes(companions[0]).kinds:
        plain = plain[companions.end() :]
    for language in languages_of(text):
        match = _change_pattern(language, "predicate").match(plain)
        if match is not None and match[0].split()[-1] not in copulas.split():
            return True
    return False


def count_filler_chars(text: str) -> int:
    """Return the length of the words such as "so" or "btw" before the subject of a text."""
    start = 0
    languages = languages_of(text)
    for word in _SPACED_WORD.finditer(text):
        plain_word = _plain(word[0]).strip(" ,.!:")
        if not any(
            _change_pattern(language, "filler").fullmatch(plain_word) for language in languages
        ):
            break
        start = word.end()
    return start


def find_actor(text: str) -> str:
    """Return the other person whose name begins a text.

    Returns "" if the text begins with something else, such as a word of a topic, or if its language
    doesn't mark subjects.
    """
    subject = find_subject(text)
    return "" if topics_of(subject) else subject


def find_subject(text: str) -> str:
    """Return the subject that begins a text, or "" if its language doesn't mark subjects."""
    plain = _plain(text)
    for language in languages_of(text):
        patterns: Mapping[str, str] = language_data("changes", "core.facts")["actors"]
        match = re.match(patterns[language], plain) if language in patterns else None
        if match is not None:
            return match[1]
    return ""


@lru_cache(maxsize=500)
def topics_of(text: str) -> frozenset[str]:
    """Return the topics that a text mentions, such as "home"."""
    return frozenset().union(*topic_words_in(text).values())


def topics_of_people(text: str) -> frozenset[str]:
    """Return the topics of the people that a text mentions, such as work for "my boss"."""
    plain = _plain(text)
    topics: set[str] = set()
    for language in languages_of(text):
        for match in _change_pattern(language, "other").finditer(plain):
            topics |= topics_of(match[0])
    return frozenset(topics)


def topic_words_in(text: str) -> dict[str, set[str]]:
    """Return the words of a text that belong to topics, each with its topics.

    A word within a negated expression doesn't count: "like" in "don't like".
    """
    plain = _plain(_TITLE.sub("", text))
    words: dict[str, set[str]] = {}
    for language in languages_of(text):
        for topic, pattern in _topic_patterns(language).items():
            for match in pattern.finditer(plain):
                words.setdefault(match[0].strip(), set()).add(topic)
        age = _change_pattern(language, "age").search(plain)
        if age is not None:
            words.setdefault(age[0].strip(), set()).add("age")
    for phrase in [phrase for phrase, topics in words.items() if topics == {NEGATED_TOPIC}]:
        for part in words_of(phrase.replace("'", " ")):
            if part != phrase:
                words.pop(part, None)
    for verb in _list_rescheduling_verbs(text, plain):
        words.pop(verb, None)
    if _MAIL.search(text):
        words.setdefault("@", set()).add("email")
    if _PHONE.search(text):
        words.setdefault("#", set()).add("phone")
    return _choose_topics(words)


def _list_rescheduling_verbs(text: str, plain: str) -> list[str]:
    """Return the verbs of a text that move something to another day: "choir moved to Thursday"."""
    verbs = []
    for match in _movement_pattern().finditer(plain):
        nearby = plain[max(0, match.start() - MAX_DAY_DISTANCE) : match.end() + MAX_DAY_DISTANCE]
        patterns = [_change_pattern(language, "weekday") for language in languages_of(text)]
        if any(pattern.search(nearby) for pattern in patterns):
            verbs.append(match[0])
    return verbs


@cache
def _movement_pattern() -> re.Pattern[str]:
    return re.compile(language_data("changes", "core.facts")["common"]["movement"])


def _choose_topics(words: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return words with their topics, where an ambiguous word has the topics of the clear ones.

    "Lease" may be about a home or a car. Next to "Fabia", it is about the car. Topics of one topic
    word that contains the other, such as "rent" and "my rent", are all kept.
    """
    clear_topics: set[str] = set()
    for topics in words.values():
        if len(topics) == 1:
            clear_topics |= topics
    return {
        word: topics & clear_topics if len(topics) > 1 and topics & clear_topics else topics
        for word, topics in words.items()
    }


def topic_query(text: str) -> str:
    """Return a search for all words of a text's topics, or "" if it has no topic.

    Only languages in which the text names a topic contribute words.
    """
    plain = _plain(text)
    lists: list[list[str]] = []
    for language in languages_of(text):
        for topic, pattern in _topic_patterns(language).items():
            if pattern.search(plain):
                words_by_language = _topic_words()[topic]
                lists.append(words_by_language[language].replace("_", " ").split())
                names = words_by_language.get(NAMES, "").split()
                # Names in the script of the question come first.
                names.sort(key=lambda name: name.isascii() != plain.isascii())
                lists.append(names)
    # The first words of each topic come first, because the number of words is limited.
    words: list[str] = []
    for words_at_position in zip_longest(*lists):
        words += filter(None, words_at_position)
    return " OR ".join(list(dict.fromkeys(words))[:MAX_QUERY_WORDS])


@lru_cache(maxsize=500)
def languages_of(text: str) -> tuple[str, ...]:
    """Return the languages that a text may be written in, among those with word lists."""
    if _HANGUL.search(text):
        return ("korean",)
    if _KANA.search(text):
        return ("japanese",)
    if _HAN.search(text):
        return ("chinese", "japanese")
    if _CYRILLIC.search(text):
        return ("russian",)
    words = [word.casefold() for word in words_of(text)]
    accents = {character for character in text.casefold() if ord(character) > 127}
    detected = detect_languages(words, accents)
    if len(detected) == 1 and detected[0] in _OWN_LANGUAGES:
        return detected
    is_certain = len(words) >= MIN_CERTAIN_WORDS and text.isascii() and is_english(text)
    if is_certain and _has_english_word(words):
        return ("english",)
    return _find_likely_languages(_plain(text), words, accents)


def _find_likely_languages(
    plain: str, words: Sequence[str], accents: Collection[str]
) -> tuple[str, ...]:
    """Return the languages in Latin letters that a short text shows most signs of.

    A sign is a stop word, a letter with an accent, or an expression of the language's lists:
    "passe au mercredi" is French, although "passe" may also be Spanish. If no language has a sign,
    all languages are returned.
    """
    signs = {language: _count_signs(language, plain, words, accents) for language in _LATIN}
    most = max(signs.values())
    if not most:
        return _LATIN
    return tuple(language for language in _LATIN if signs[language] == most)


def _count_signs(language: str, plain: str, words: Sequence[str], accents: Collection[str]) -> int:
    """Return how many signs of a language a text has (see `_find_likely_languages`)."""
    language_words, letters = stop_words(), ""
    if language != "english":
        language_words = latin_stop_words(language)
        letters = language_data("languages")["latin"][language]["letters"]
    signs = {word for word in words if word in language_words}
    signs |= {letter for letter in accents if letter in letters}
    patterns = [_change_pattern(language, kind) for kind in get_args(ChangeKind)]
    patterns += [_change_pattern(language, "weekday"), *_topic_patterns(language).values()]
    for pattern in patterns:
        matches = (match[0].strip() for match in pattern.finditer(plain))
        signs |= {match for match in matches if len(match) > MAX_AMBIGUOUS_CHARS}
    return len(signs)


def _has_english_word(words: Iterable[str]) -> bool:
    """Return whether one of the words is a stop word only in English.

    "he" and "a" don't count, because they are also Spanish words.
    """
    shared_words: str = language_data("changes", "core.facts")["shared"]["words"]
    return not (stop_words() & set(words)) <= set(shared_words.split())


def find_values(text: str) -> dict[str, frozenset[str]]:
    """Return the weekdays, times and other numbers of a text, by their kind.

    For "choir is on Mondays at 7:30", the result is ``{"weekday": {"monday"}, "time": {"7:30"}}``.
    """
    plain = _plain(text)
    weekdays: set[str] = set()
    for language in languages_of(text):
        pattern = _change_pattern(language, "weekday")
        weekdays |= {match[0][:WEEKDAY_CHARS] for match in pattern.finditer(plain)}
    times = frozenset(_CLOCK.findall(plain))
    numbers = frozenset(_FIGURE.findall(_CLOCK.sub(" ", plain)))
    values = {"weekday": frozenset(weekdays), "time": times, "number": numbers}
    return {form: matches for form, matches in values.items() if matches}


def starts_later(text: str, said_on: date, today: date) -> bool:
    """Return whether a message names a day after `today` from which it holds: "from 1 April"."""
    if "start" not in read_changes(text).kinds:
        return False
    horizon = said_on + timedelta(days=FUTURE_DAYS)
    # The message is read twice: "this week" is relative to the day of the message, and a day
    # without a year, such as "1 April", is the next one.
    early, late = (
        [date.fromordinal(first) for first, _ in find_periods(text, at)]
        for at in (said_on, horizon)
    )
    first_days = [
        first if abs((last - first).days - FUTURE_DAYS) <= MAX_MONTH_SHIFT else last
        for first, last in zip(early, late, strict=False)
    ]
    return any(first > max(today, said_on) for first in first_days if first <= horizon)


def _plain(text: str) -> str:
    return plain_with_offsets(fold(text[:MAX_TEXT_CHARS]))[0].casefold()


@cache
def _change_pattern(language: str, kind: ChangeKind | ExpressionList) -> re.Pattern[str]:
    expressions = language_data("changes", "core.facts")[language][kind]
    return compile_expressions(expressions, language)


@cache
def _topic_patterns(language: str) -> Mapping[str, re.Pattern[str]]:
    """Return a language's pattern for the words of each topic, by topic."""
    patterns = {}
    for topic, words_by_language in _topic_words().items():
        words = words_by_language[language].split()
        names = words_by_language.get(NAMES, "").split()
        if language in UNSPACED_LANGUAGES:
            # Short names such as "rio" would be found inside of other words.
            names = [name for name in names if not name.isascii()]
        expressions = [_word_expression(word, language) for word in words + names]
        patterns[topic] = compile_expressions(expressions, language)
    return patterns


def _word_expression(word: str, language: str) -> str:
    """Return the regular expression for a topic word: `*` means any ending, and `_` a space.

    Longer words may always have the endings of their language.
    """
    plain = re.escape(_plain(word.replace("_", " ")))
    expression = plain.replace(r"\*", r"\w*")
    if len(word) >= MIN_INFLECTED_CHARS and word[-1].isalpha():
        expression += _ENDINGS.get(language, "")
    return expression


@cache
def _topic_words() -> Mapping[str, Mapping[str, str]]:
    words: Mapping[str, Mapping[str, str]] = language_data("topics", "core.facts")
    return words
