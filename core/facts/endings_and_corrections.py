"""Find the known fact that a message ends or corrects, without a model.

"I sold the Golf" ends "I drive a Golf", and "no, I meant 4 May" corrects a date in a recent
message. The message, or the corrected statement, becomes the fact that replaces the known one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from core.dates.periods_in_text import month_number
from core.facts.changes import languages_of, read_changes
from core.facts.claims import MAX_CLAUSE_CHARS, Claim, extract_claims
from core.facts.patterns import claim_pattern, compile_expressions
from core.facts.wording import AnalyzedText, evidence_pattern, split_sentences
from core.store.facts.facts import Facts
from core.store.facts.rows import Fact, fold_content
from core.text.normalize import fold, is_unspaced, language_data, plain_with_offsets, words_of
from core.text.terms import ME, content_words, names_in
from core.types import Message, Scope

MAX_MESSAGES_BACK = 3
"""A correction may refer to one of this many messages before it."""
MIN_SUBJECT_CHARS = 3
MAX_NAME_CORRECTION_WORDS = 10
MIN_SIMILARITY = 0.6
"""A name may correct another one without naming it only if they share at least this part of their
letters."""
_WORD = r"[^\W\d_]"
# A number with at least two digits, such as a code.
_NUMBERS = (re.compile(r"\d[\d -]*\d"),)
_VALUES = (
    # A day of a month: "5月4日", "4 May", "4. Mai", "May 4".
    (
        re.compile(r"\d{1,2}月\d{1,2}日?"),
        re.compile(rf"\d{{1,2}}\.? ?(?:de )?{_WORD}{{3,}}"),
        re.compile(rf"{_WORD}{{3,}} \d{{1,2}}(?!\d)"),
    ),
    # A time of day: "18:40", "4時".
    (re.compile(r"\d{1,2}[:.h]\d{2}"), re.compile(r"\d{1,2}時(?:\d{1,2}分)?")),
    _NUMBERS,
)
"""The forms of values that a correction can replace, each with its spellings."""


class Successor(NamedTuple):
    """A claim that ends or corrects a known fact, and that fact."""

    claim: Claim
    fact: Fact


def find_successor(
    message: Message, known_facts: Sequence[Fact], earlier_ids: Sequence[int], zone: ZoneInfo
) -> Successor | None:
    """Return the claim that ends or corrects one of the known facts, or None.

    `known_facts` are open facts of the message's sender. `earlier_ids` are the ids of the messages
    before it, the latest first.
    """
    text = " ".join(message.text.split())
    if not _states_change(text):
        return None
    if "correction" in read_changes(text).kinds:
        for fact in known_facts:
            is_recent = fact.message_id in earlier_ids[:MAX_MESSAGES_BACK]
            if is_recent or _shares_subject(fact, text):
                claim = _correct(fact, text, message, zone)
                if claim is not None:
                    return Successor(claim, fact)
    for sentence in split_sentences(text):
        for fact in known_facts:
            if _ends(sentence, fact):
                claim = Claim(
                    content=sentence.strip(),
                    kind=fact.kind,
                    attribute=fact.attribute,
                    value=fold_content(sentence),
                    entities=tuple(names_in(sentence)),
                )
                return Successor(claim, fact)
    return None


async def list_replaced(
    store: Facts, facts: Sequence[Fact], scopes: frozenset[Scope], describe: Callable[[Fact], str]
) -> dict[str, object]:
    """Return the messages of the former facts that `facts` replaced, with the ends of these facts
    and the ids of the facts that replaced them.

    The result is a dict with the key "replaced", or an empty dict if there are no such facts.
    """
    current_ids = [fact.id for fact in facts if fact.is_open]
    given_ids = {fact.id for fact in facts}
    former = await store.find_closed_by(current_ids, scopes)
    ends = [
        {
            "message_id": fact.message_id,
            "ended": describe(fact),
            "replaced_by": fact.closed_by,
        }
        for fact in former
        if fact.message_id and fact.valid_to is not None and fact.id not in given_ids
    ]
    return {"replaced": ends} if ends else {}


def _states_change(text: str) -> bool:
    """Return whether a text is a short, serious statement of a change in the sender's own words."""
    if len(text) > MAX_CLAUSE_CHARS or text.rstrip().endswith(("?", "？")):
        return False
    reading = read_changes(text)
    if not reading.replaces or "other" in reading.kinds:
        return False
    has_quotation = any(sign in text for sign in '"“”„«»')
    is_play = claim_pattern("playful").search(text) is not None
    return not (has_quotation or is_play or _is_hypothetical(text))


def _is_hypothetical(text: str) -> bool:
    return any(evidence_pattern(name).search(text) for name in ("condition", "unreal", "hearsay"))


def _ends(sentence: str, fact: Fact) -> bool:
    """Return whether a sentence says that a fact is over, and names its value."""
    _, _, attribute = (fact.attribute or "").partition("|")
    name = attribute.split("|")[0]
    value = fact.value
    if name in ("like", "allergy", "diet"):
        # In an attribute such as "me|like|coffee", the last part is the value.
        value = attribute.rpartition("|")[2] if "|" in attribute else fact.value
    if not value or not _names_value(sentence, value):
        return False
    plain = plain_with_offsets(fold(sentence))[0].casefold()
    return any(pattern.search(plain) for pattern in _end_patterns(name, languages_of(sentence)))


def _names_value(sentence: str, value: str) -> bool:
    """Return whether a sentence contains a word of a value, apart from articles and short words."""
    text = AnalyzedText(sentence)
    if is_unspaced(value):
        return value in text.plain
    return any(len(word) > 2 and text.has_name(word) for word in value.split())


def _end_patterns(attribute: str, languages: Sequence[str]) -> list[re.Pattern[str]]:
    """Return the expressions that end facts about an attribute, in any of the languages."""
    patterns = []
    for group, lists in _ends_data().items():
        if attribute not in str(lists["attributes"]).split():
            continue
        patterns += [_compile(group, language) for language in languages]
    return patterns


@cache
def _compile(group: str, language: str) -> re.Pattern[str]:
    return compile_expressions(_ends_data()[group][language], language)


@cache
def _ends_data() -> Mapping[str, Mapping[str, Sequence[str]]]:
    data: Mapping[str, Mapping[str, Sequence[str]]] = language_data("ends", "core.facts")
    return data


def _correct(fact: Fact, text: str, message: Message, zone: ZoneInfo) -> Claim | None:
    """Return a fact's statement with the corrected value, or None.

    The new value must be of the same kind as the old one: a day, a time, another number, or a name.
    """
    for old, new in _find_corrections(fact.content, text):
        content = fact.content.replace(old, new)
        for claim in extract_claims(content, message.created_at, zone, is_request=True):
            if _have_same_subject(claim.attribute, fact.attribute):
                return replace(claim, is_requested=False)
        names = tuple(names_in(content))
        value = fold_content(content) if fact.attribute else ""
        return Claim(
            content=content, kind=fact.kind, attribute=fact.attribute, value=value, entities=names
        )
    return None


def _have_same_subject(attribute: str | None, other: str | None) -> bool:
    """Return whether two attributes are equal, apart from a name at the end: "me|sister|ana"."""
    if attribute == other:
        return True
    if not attribute or not other:
        return False
    without_name = attribute.rpartition("|")[0]
    return without_name == other.rpartition("|")[0] and without_name != ME


def _shares_subject(fact: Fact, text: str) -> bool:
    """Return whether a text contains a word of a fact.

    Numbers, months and short words don't count.
    """
    corrected = AnalyzedText(text)
    words = [word.casefold() for word in words_of(fact.content)]
    subjects = [word for word in content_words(words) if not month_number(word)]
    return any(
        len(word) >= MIN_SUBJECT_CHARS and not word[0].isdigit() and corrected.has_name(word)
        for word in subjects
    )


def _find_corrections(content: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the values in a statement that a text may correct, each with its new value."""
    for spellings in _VALUES:
        old = _find_value(spellings, content)
        new = _find_value(spellings, text, excluded=old)
        if old is None or new is None:
            continue
        # "no, at 11" corrects a reminder, not the code of a door.
        is_number = spellings is _NUMBERS
        if not is_number or _is_clock_time(new, text) == _is_clock_time(old, content):
            yield old, new
    yield from _find_name_correction(content, text)


def _is_clock_time(number: str, text: str) -> bool:
    """Return whether a number in a text is a time of day, such as "at 11"."""
    pattern: str = language_data("changes", "core.facts")["shared"]["clock_time"]
    pattern = pattern.replace("{value}", re.escape(number))
    return re.search(pattern, text, re.IGNORECASE) is not None


def _find_name_correction(content: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the name in a statement that a text corrects, with the right name.

    "not Patel, it's Dr Patil" contains both names. "ah no, Marleen" contains only the right name,
    which must resemble the wrong one.
    """
    old_words = _name_words(content)
    new_words = [word for word in _name_words(text) if word not in old_words]
    if not new_words or len(words_of(text)) > MAX_NAME_CORRECTION_WORDS:
        return
    named_words = [word for word in old_words if word in words_of(text)]
    for old in named_words or old_words:
        best = max(new_words, key=lambda new: SequenceMatcher(None, old, new).ratio())
        if named_words or SequenceMatcher(None, old, best).ratio() >= MIN_SIMILARITY:
            yield old, best
            return


def _name_words(text: str) -> list[str]:
    """Return the words of the names in a text, without titles such as "Dr"."""
    # The first word of a text has a capital in any case, so a word is put before it.
    names = " ".join(names_in(f"x {text}"))
    common = {word.casefold() for word in _correction_words()}
    return [
        word
        for word in words_of(names)
        if len(word) >= MIN_SUBJECT_CHARS and plain_with_offsets(word)[0].casefold() not in common
    ]


@cache
def _correction_words() -> frozenset[str]:
    """Return the capitalised words that begin corrections and aren't names, like "Sorry"."""
    words: str = language_data("changes", "core.facts")["shared"]["correction_words"]
    return frozenset(words.split())


def _find_value(
    spellings: Sequence[re.Pattern[str]], text: str, excluded: str | None = None
) -> str | None:
    """Return the last value of a kind in a text that isn't in `excluded`, or None.

    A word next to a number must be a month.
    """
    for spelling in spellings:
        for value in reversed(spelling.findall(text)):
            words = re.findall(rf"{_WORD}{{3,}}", value)
            if value != excluded and all(month_number(word.casefold()) for word in words):
                return str(value)
    return None
