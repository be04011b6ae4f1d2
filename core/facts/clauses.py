"""Split sentences into clauses and words, and find the words that change what a clause means.

Such words give a clause a marker: for a denial, a condition, hearsay and so on.
`data/closeness.toml` has the words of each language. `core/facts/closeness.py` compares the clauses
of a note with those that a person typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache, partial
from itertools import pairwise

from core.facts.wording import evidence_pattern, numbers_in
from core.text.normalize import (
    fold,
    is_unspaced,
    language_data,
    plain_with_offsets,
    to_normal_form,
)
from core.text.terms import english_relation_words, irregular_forms, relation_words

MAX_SENTENCE_CHARS = 1_000
"""Only this many characters of a sentence are compared."""
MIN_TYPO_LETTERS = 4
"""Shorter words must match exactly, because one different letter makes another word."""
MIN_TWO_TYPOS_LETTERS = 8
MIN_TYPO_NAME_LETTERS = 6
"""Shorter names such as "Lena" and "Lina" are different names."""

_TOKEN = re.compile(
    r"(?P<number>\d+)(?:st|nd|rd|th|er|re|º|ª)?(?!\w)|\d+|[^\W\d_]+(?:[²³])?|[€$£¥%°]"
)
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:[,.]\d{3})+(?![\d.,]*\d)")
_KILO = re.compile(r"(?<![\w.,])(\d{1,4}(?:[.,]\d)?)k\b")
_UNSPACED_AHEAD = re.compile(
    r"(?P<count>\d+|[\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341\u4e24]{1,3})\u4e2a?"
    r"(?P<span>\u5929|\u5468|\u65e5|\u661f\u671f|\u9031)\u9593?\u4e4b?(?:\u540e|\u5f8c)"
)
# A unit between a number and a script without spaces: "12kg\u3067\u3059".
_GLUED_UNIT = re.compile(r"(\d)([A-Za-z%]{1,3})(?=[\u3041-\u9fff])")
_HIRAGANA = re.compile("[\u3041-\u309f]")
_RUN_PART = re.compile("[\u30a1-\u30fa\u30fc-\u30ff]+|[A-Za-z\u00c0-\u024f]+|.")
_CYRILLIC = re.compile("[\u0400-\u052f]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_KANA = re.compile("[\u3041-\u30ff]")
_SCRIPT_LANGUAGES = (
    ("ko", _HANGUL),
    ("ja", _KANA),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("ru", re.compile("[\u0400-\u052f]")),
)
_LATIN_LANGUAGES = ("en", "de", "fr", "es", "pt", "it", "tr")
_UNSPACED_LANGUAGES = frozenset({"zh", "ja"})
_CLAUSE_END = re.compile(r"(?<!\d)[,:](?!\d)|(?<=\d), |[;—–()，、：；（）]|\s-\s")
_SENTENCE_BREAK = re.compile(r"(?<=[.!?;。！？；])(?<!\d[.])(?<!\b[A-Za-z][.])\s*(?=\D)|\n+")
COMMENT_WORDS = 4
"""A comment on a statement has at most this many words that carry meaning."""
MAX_COMMENT_CHARS = 80
"""A longer sentence isn't a comment."""
_NOUN_LEADS = frozenset(
    [
        "der",
        "die",
        "das",
        "den",
        "dem",
        "des",
        "ein",
        "eine",
        "einen",
        "einem",
        "einer",
        "eines",
        "mein",
        "meine",
        "meinen",
        "meinem",
        "meiner",
        "kein",
        "keine",
        "keinen",
        "im",
        "am",
        "zum",
        "zur",
        "vom",
        "beim",
        "ins",
        "ans",
        "hat",
        "haben",
        "hatte",
        "gegen",
        "ohne",
        "vor",
        "mehr",
        "viel",
        "wenig",
        "sehr",
        "spielt",
        "isst",
        "trinkt",
        "lernt",
        "spricht",
        "braucht",
        "macht",
        "singt",
        "mag",
        "keinen",
        "nur",
        "und",
        "als",
    ]
)
"""In German, a word with a capital after one of these is a noun, not a name."""
_PREPOSITIONS = frozenset(
    [
        "mit",
        "in",
        "aus",
        "bei",
        "nach",
        "von",
        "für",
        "zu",
        "with",
        "at",
        "from",
        "to",
        "for",
        "on",
        "of",
    ]
)
"""In German, a capitalized word after one of these is a noun and not a name."""
_SPLIT_LETTERS = frozenset("cdjlmnstu")
"""Letters before or after an apostrophe. They aren't words."""
_UNSPACED_TWO = ("\u4e24", "\u5169", "\u4fe9")
"""The form of "two" that Chinese uses for counting."""
_data = partial(language_data, "closeness", "core.facts")


class Marker(Enum):
    """A property that changes what a clause means. The values are keys of the word lists."""

    DENIAL = "denial"
    AVOIDANCE = "avoidance"
    CONDITION = "condition"
    HEARSAY = "hearsay"
    UNREAL = "unreal"
    PAST = "past"
    FUTURE = "future"
    UNIVERSAL = "universal"
    LIMIT = "limit"
    FIRST_PERSON = "first_person"
    THIRD_PERSON = "third_person"
    PRONOUN = "pronoun"
    NAMING = "naming"
    JOKE = "joke"
    REJECTION = "rejection"
    UNTRUE = "untrue"
    RELATIVE = "relative"
    RELATIVE_OBJECT = "relative_object"
    OTHER_SUBJECT = "other_subject"


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number or a character that carries meaning."""

    form: str
    # Whether the word is a name: it has a capital letter and isn't at the beginning.
    is_name: bool = False
    # The number, if the token is one in digits or in words.
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    text: str
    tokens: tuple[Token, ...]
    markers: frozenset[Marker]
    # The names and relations ("sister") among the first words.
    people: frozenset[str]


@dataclass(frozen=True, slots=True)
class SplitSentence:
    text: str
    clauses: tuple[Clause, ...]
    is_question: bool
    languages: frozenset[str]

    @property
    def tokens(self) -> tuple[Token, ...]:
        tokens: list[Token] = []
        for clause in self.clauses:
            tokens += clause.tokens
        return tuple(tokens)

    @property
    def plain(self) -> str:
        return _plain(self.text)


def split_statement(text: str, languages: frozenset[str] | None = None) -> list[SplitSentence]:
    """Split a text into sentences and clauses."""
    sentences = []
    for part in _SENTENCE_BREAK.split(_write_numbers(text)):
        sentence = part[:MAX_SENTENCE_CHARS].strip()
        if sentence:
            sentences.append(_split_sentence(sentence, choose_languages(sentence, languages)))
    return sentences


def takes_back(sentence: SplitSentence) -> bool:
    """Return whether a short sentence takes back the ones before it: "Just kidding", "Not!"."""
    if len(sentence.tokens) > COMMENT_WORDS:
        return False
    markers = {marker for clause in sentence.clauses for marker in clause.markers}
    is_one_word = len(re.findall(r"\w+", sentence.text)) == 1
    is_denial = is_one_word and not markers.isdisjoint((Marker.DENIAL, Marker.UNTRUE))
    return is_denial or Marker.JOKE in markers


def count_taken_back(sentences: Sequence[str]) -> int:
    """Return how many sentences at the beginning of a message a later sentence takes back."""
    languages: frozenset[str] | None = None
    for number in range(len(sentences) - 1, 0, -1):
        sentence = sentences[number].strip()
        if not 0 < len(sentence) <= MAX_COMMENT_CHARS:
            continue
        if languages is None:
            languages = find_languages(" ".join(sentences))
        if takes_back(_split_sentence(sentence, choose_languages(sentence, languages))):
            return number
    return 0


def _write_numbers(text: str) -> str:
    """Convert numbers in a text: "1,200" and "1.2k" to 1200, and "square metres" to one word."""
    text = _THOUSANDS.sub(lambda match: re.sub("[,.\u00a0 ]", "", match[0]), text)
    text = _KILO.sub(lambda match: f"{float(match[1].replace(',', '.')) * 1000:.0f}", text)
    text = _GLUED_UNIT.sub(r"\1 \2 ", text)
    for word, pattern in _data()["written"].items():
        text = re.sub(pattern, word, text, flags=re.IGNORECASE)
    return text


def choose_languages(text: str, likely: frozenset[str] | None = None) -> frozenset[str]:
    """Return the languages of a text.

    If several languages are possible, return the likely ones. One common word isn't enough for a
    language: "Ben" is a name, but also a Turkish word.
    """
    possible = find_languages(text)
    if not likely or _find_script_language(text):
        return possible
    latin = likely.intersection(_LATIN_LANGUAGES)
    is_about_user = evidence_pattern("user").search(text) is not None
    if latin and not is_about_user and max(_count_common_words(text).values()) <= 1:
        return possible & latin or latin
    return possible & likely or possible


@lru_cache(maxsize=500)
def find_languages(text: str) -> frozenset[str]:
    """Return the languages that a text may be written in, by its script and common words."""
    script = _find_script_language(text)
    if script:
        return frozenset({script})
    counts = _count_common_words(text)
    max_count = max(counts.values())
    return frozenset(language for language, count in counts.items() if count == max_count)


def _without_common_names(text: str) -> str:
    """Return a text without names like "Ben", which are common words in another language."""
    return re.sub(
        r"\b[A-Z][a-z]+\b", lambda word: "" if _is_common_name(word[0]) else word[0], text
    )


def _is_common_name(word: str) -> bool:
    return word[:1].isupper() and word.lower() in _data()["names"]["words"].split()


def _find_script_language(text: str) -> str:
    """Return the language of a text that isn't in Latin letters, or ""."""
    for language, script in _SCRIPT_LANGUAGES:
        if script.search(text):
            return language
    return ""


@lru_cache(maxsize=500)
def _count_common_words(text: str) -> Mapping[str, int]:
    """Count a text's common words per language with Latin letters."""
    plain = _plain(_without_common_names(text)).replace("’", "'")
    # A call of findall would stop all other threads until the end of a long text.
    words = {match[0] for match in re.finditer(r"[^\W\d_]+", plain)} - _SPLIT_LETTERS
    words |= {match[0] for match in re.finditer(r"[\w']+", plain)}
    return {language: len(words & _common_words(language)) for language in _LATIN_LANGUAGES}


@cache
def _function_words(language: str) -> frozenset[str]:
    """Return a language's words that carry no meaning of their own."""
    return frozenset(map(_plain, _data()[language]["function"].split()))


@cache
def list_links(language: str) -> frozenset[str]:
    """Return small words such as "to", which show how the next word relates to the others."""
    return frozenset(map(_plain, _data()[language].get("links", "").split()))


@cache
def _common_words(language: str) -> frozenset[str]:
    """Return the words that identify a language."""
    table = _data()[language]
    phrases = ",".join(table[name] for name in ("denial", "condition", "first_person")).split(",")
    return _function_words(language) | {_plain(phrase.strip(" *^")) for phrase in phrases}


@cache
def marker_pattern(language: str, name: str) -> re.Pattern[str]:
    """Compile a language's list of phrases.

    A star in a phrase matches any ending or beginning.
    """
    phrases = [_plain(phrase) for phrase in _data()[language][name].split(",")]
    alternatives = [
        re.escape(phrase.strip()).replace(r"\*", r"\w*").replace(r"\^", r"^\W*")
        for phrase in sorted(phrases, key=len, reverse=True)
        if phrase.strip()
    ]
    joined = "|".join(alternatives)
    return re.compile(joined if language in _UNSPACED_LANGUAGES else rf"(?<!\w)(?:{joined})(?!\w)")


def has_marker(text: str, name: str, languages: Iterable[str]) -> bool:
    """Return whether a text contains a phrase of the list `name` in one of the languages.

    Phrases of the list "plain" don't count. They are idioms that only look like a marker.
    """
    normalized_text = _plain(text)
    for language in languages:
        if name not in _data()[language]:
            continue
        searched_text = normalized_text
        if "plain" in _data()[language]:
            searched_text = marker_pattern(language, "plain").sub(" ", normalized_text)
        if marker_pattern(language, name).search(searched_text):
            return True
    return False


def begins_with(text: str, name: str, languages: Iterable[str]) -> bool:
    """Return whether a text begins with a phrase of the list `name` in one of the languages."""
    plain = _plain(text).lstrip(" .,…-–—*¡¿'\"")
    return any(marker_pattern(language, name).match(plain) for language in languages)


def ends_with(text: str, name: str, languages: Iterable[str]) -> bool:
    """Return whether a text ends with a phrase of the list `name` in one of the languages."""
    plain = _plain(text)
    for language in languages:
        for match in marker_pattern(language, name).finditer(plain):
            if match.end() == len(plain):
                return True
    return False


@lru_cache(maxsize=2_000)
def _split_sentence(sentence: str, languages: frozenset[str]) -> SplitSentence:
    """Split a sentence into clauses, without words for the person such as "the user"."""
    without_user = evidence_pattern("user").sub(" ", sentence)
    clauses: list[Clause] = []
    separator = evidence_pattern("clause_joint")
    for part in _CLAUSE_END.split(without_user):
        for text in separator.split(part):
            if text.strip():
                clauses.append(_read_clause(text.strip(), languages, is_first=not clauses))
    is_question = sentence.rstrip(" )*_\"'”").endswith(("?", "？"))
    is_request = evidence_pattern("request").search(sentence) is not None
    return SplitSentence(sentence, tuple(clauses), is_question and not is_request, languages)


def _read_clause(text: str, languages: frozenset[str], *, is_first: bool) -> Clause:
    markers = frozenset(marker for marker in Marker if has_marker(text, marker.value, languages))
    tokens = tuple(_read_tokens(text, languages, is_first=is_first))
    people = _find_people(text, tokens)
    if languages & _UNSPACED_LANGUAGES:
        head = _plain(text)[:4]
        people += [word for word in _unspaced_relations() if word in head]
    return Clause(text, tokens, markers, frozenset(people))


def _find_people(text: str, tokens: Sequence[Token]) -> list[str]:
    """Return the people at the beginning of a clause, such as "my brother Theo lives …"."""
    people: list[str] = []
    if _plain(text).split(" ", 1)[0] in _PREPOSITIONS:
        return people
    for token in tokens[:2]:
        if not token.is_name and not is_relation(token.form):
            break
        people.append(token.form)
    return people


def _read_tokens(text: str, languages: frozenset[str], *, is_first: bool) -> list[Token]:
    """Return the words of a clause that carry meaning, in order.

    At the beginning of a sentence (`is_first`), a capital letter alone doesn't make a word a name.
    """
    function_words = frozenset().union(*map(_function_words, languages))
    # A capitalized word such as "Sue" must be a function word of all possible languages.
    sure_words = frozenset.intersection(*map(_function_words, languages))
    tokens: list[Token] = []
    previous = ""
    for match in _TOKEN.finditer(fold(text)):
        word = match["number"] or match[0]
        form = _plain(word)
        is_unit = previous.isdecimal() and form in _units()
        if is_unspaced(word) and not _HANGUL.search(word):
            tokens += _read_run(word, function_words)
        elif (
            is_unit
            or _is_common_name(word)
            or form not in (sure_words if word[0].isupper() else function_words)
        ):
            is_inside = bool(previous) or not is_first
            is_subject = _begins_like_subject(text[match.end() :], languages)
            is_name = (is_inside or is_subject) and _looks_like_name(word, previous, languages)
            tokens.append(Token(form, is_name, _number_of(form)))
        previous = form
    return tokens


def _begins_like_subject(rest: str, languages: frozenset[str]) -> bool:
    """Return whether the text after a word shows that it's a name: "Eve's", "Eve may"."""
    if rest.startswith(("'s", "’s")):
        return True
    return rest.startswith(" ") and begins_with(rest, "subject_verb", languages)


def _read_run(run: str, function_words: frozenset[str]) -> list[Token]:
    """Return the characters, Katakana words and Latin words of a run of text without spaces.

    A Latin word with a capital letter is a name, as in "\u4e0a\u53f8\u306eEve".
    """
    tokens: list[Token] = []
    for part in _RUN_PART.findall(run):
        form = _plain(part)
        if not _HIRAGANA.fullmatch(part) and form not in function_words:
            is_name = _looks_like_name(part, "", frozenset())
            tokens.append(Token(form, is_name, _number_of(part)))
    return tokens


def _looks_like_name(word: str, previous: str, languages: frozenset[str]) -> bool:
    is_capitalized = len(word) > 1 and word[0].isupper()
    return is_capitalized and not ("de" in languages and previous in _NOUN_LEADS)


def _number_of(form: str) -> int | None:
    if form.isdecimal():
        return int(form[:40])
    if form in _UNSPACED_TWO:
        return 2
    numbers = numbers_in(form) if len(form) > 1 or is_unspaced(form) else frozenset()
    return min(numbers) if len(numbers) == 1 and form not in ("may", "march", "second") else None


# --- Words that mean the same ---


def is_relation(form: str) -> bool:
    """Return whether a word is a relation, such as "sister", in any language."""
    return form in _relation_forms()


@cache
def _relation_forms() -> frozenset[str]:
    words = [*relation_words(), *english_relation_words()]
    plurals = [f"{word}s" for word in relation_words()]
    return frozenset(map(_plain, words + plurals)) | _function_free_relations()


@cache
def _function_free_relations() -> frozenset[str]:
    return frozenset(map(_plain, _data()["people"]["words"].split()))


@cache
def _unspaced_relations() -> tuple[str, ...]:
    return tuple(word for word in _relation_forms() if is_unspaced(word) and len(word) > 0)


def is_same_word(word: Token, other: Token) -> bool:
    """Return whether two words mean the same, apart from endings, units and small typos."""
    if word.number is not None or other.number is not None:
        return word.number == other.number
    if word.form == other.form:
        return True
    are_names = word.is_name and other.is_name
    is_short = len(word.form) < MIN_TYPO_NAME_LETTERS
    if are_names and is_short and not _share_stem(word.form, other.form):
        return False
    return _are_alike(word.form, other.form)


def is_typo(word: Token, other: Token, *, are_names: bool) -> bool:
    """Return whether two words that count as the same may be different words.

    They may if they differ in more than an ending. Names in Latin letters only get an "s".
    """
    form, other_form = word.form, other.form
    if word.number is not None or form == other_form or is_unspaced(form):
        return False
    unit = _unit_of(form)
    if unit is not None and unit == _unit_of(other_form):
        return False
    short, long = sorted((form, other_form), key=len)
    if are_names and not _CYRILLIC.search(form):
        return long != f"{short}s"
    if f"{short.removesuffix('y')}ies" == long:
        return False
    return _base_of(form) != _base_of(other_form) and not _share_stem(form, other_form)


@lru_cache(maxsize=20_000)
def _are_alike(form: str, other: str) -> bool:
    """Return whether two different words mean the same, apart from names and numbers."""
    if _unit_of(form) is not None and _unit_of(form) == _unit_of(other):
        return True
    if is_unspaced(form) or is_unspaced(other):
        return bool(_HANGUL.search(form)) and len(form) > 1 and form[:2] == other[:2]
    if _base_of(form) == _base_of(other) or _share_stem(form, other):
        return True
    if form.removesuffix("ies") + "y" == other or other.removesuffix("ies") + "y" == form:
        return True
    return _is_typo(form, other)


def _share_stem(form: str, other: str) -> bool:
    """Return whether two words differ only in a short ending."""
    short, long = sorted((form, other), key=len)
    stem_length = 0
    while stem_length < len(short) and short[stem_length] == long[stem_length]:
        stem_length += 1
    if stem_length < 3 or len(long) - stem_length > 4:
        return False
    short_ending = len(short) - stem_length
    return short_ending <= 1 or (stem_length >= 4 and short_ending <= 3)


def _base_of(word: str) -> str:
    return irregular_forms().get(word, word)


@cache
def _units() -> Mapping[str, str]:
    units: dict[str, str] = {}
    for group in ("same", "spans"):
        for line in _data()["units"][group]:
            words = [_plain(word) for word in line.split()]
            units.update((word, words[0]) for word in words)
    return units


def _unit_of(form: str) -> str | None:
    return _units().get(form)


@cache
def _measures() -> Mapping[str, str]:
    """Return what each unit measures, as the line of the units that measure the same."""
    return {unit: line for line in _data()["units"]["measures"] for unit in line.split()}


def changes_unit(note: Sequence[Token], typed_texts: Iterable[Sequence[Token]]) -> bool:
    """Return whether a figure was typed only with other units of its measure: 5 mg for "5 g"."""
    typed = {quantity for tokens in typed_texts for quantity in _list_quantities(tokens)}
    measured = {(number, measure) for number, _, measure in typed}
    return any(
        (number, measure) in measured and (number, unit, measure) not in typed
        for number, unit, measure in _list_quantities(note)
    )


def _list_quantities(tokens: Sequence[Token]) -> Iterator[tuple[int, str, str]]:
    """Return the figures with a unit behind them: the number, the unit and what it measures."""
    for figure, unit_token in pairwise(tokens):
        unit = _unit_of(unit_token.form) or ""
        if figure.number is not None and unit in _measures():
            yield figure.number, unit, _measures()[unit]


@cache
def _span_words() -> frozenset[str]:
    words: list[str] = []
    for line in _data()["units"]["spans"]:
        words += line.split()
    return frozenset(map(_plain, words))


def is_span(form: str) -> bool:
    """Return whether a word is a span of time, such as "week" or "daily"."""
    return form in _span_words()


def span_days(form: str | None) -> int | None:
    """Return the number of days in a span such as "week".

    Returns None if the number varies, or if the word isn't a span.
    """
    return {"day": 1, "\u5929": 1, "week": 7, "\u5468": 7}.get(_unit_of(form or "") or form or "")


@cache
def ahead_pattern(language: str) -> re.Pattern[str]:
    """Return a pattern for a time from now, such as "in two weeks"."""
    if language in _UNSPACED_LANGUAGES:
        return re.compile(
            r"(?P<count>\d+|[\u4e00-\u5341\u4e24]{1,3})\u4e2a?(?P<span>\u5929|\u5468|\u65e5|\u661f\u671f|\u9031)\u9593?\u4e4b?(?:\u540e|\u5f8c)"
        )
    phrases = _data()[language].get("ahead", "")
    leads = "|".join(_plain(phrase.strip()) for phrase in phrases.split(","))
    if not leads:
        return re.compile(r"(?!)(?P<count>)(?P<span>)")
    return re.compile(rf"(?<!\w)(?:{leads}) (?P<count>\w+)(?: (?P<span>\w+))?")


@cache
def unspaced_spans() -> tuple[str, ...]:
    """Return the spans of time in scripts without spaces, such as 每月."""
    return tuple(word for word in _span_words() if is_unspaced(word) and len(word) > 1)


def _is_typo(form: str, other: str) -> bool:
    """Return whether one word is the other with a wrong, missing, added or swapped letter.

    Long words may have two such mistakes.
    """
    shorter, longer = sorted((len(form), len(other)))
    if shorter < MIN_TYPO_LETTERS or longer - shorter > 2 or form[0] != other[0]:
        return False
    max_edits = 2 if shorter >= MIN_TWO_TYPOS_LETTERS else 1
    if _count_edits(form, other) <= max_edits:
        return True
    if longer <= MIN_TYPO_LETTERS:
        return False
    # The corrected word may have another ending, too.
    return (
        _count_edits(form, other[:-1]) <= max_edits or _count_edits(form[:-1], other) <= max_edits
    )


def _count_edits(form: str, other: str) -> int:
    """Return the number of edits between two words. Two swapped letters are one edit."""
    row_before: list[int] = []
    row = list(range(len(other) + 1))
    for index, letter in enumerate(form, 1):
        current = [index]
        for position, target in enumerate(other, 1):
            substitution = 0 if letter == target else 1
            cost = min(
                row[position] + 1, current[position - 1] + 1, row[position - 1] + substitution
            )
            is_swap = index > 1 and position > 1 and letter == other[position - 2]
            if is_swap and form[index - 2] == target:
                cost = min(cost, row_before[position - 2] + 1)
            current.append(cost)
        row_before = row
        row = current
    return row[-1]


def to_latin(form: str) -> str:
    """Write a Cyrillic word in Latin letters, as English texts do.

    Other words are returned unchanged.
    """
    letters: Mapping[str, str] = _data()["latin_letters"]
    return "".join(letters.get(letter, letter) for letter in form)


@lru_cache(maxsize=5_000)
def _plain(text: str) -> str:
    return to_normal_form("NFC", plain_with_offsets(fold(text))[0])
