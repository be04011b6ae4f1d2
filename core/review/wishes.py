"""Recognizes messages that consist only of a request, such as "Please remove the dentist reminder".

Such a message is one short line without quotations. It contains only polite words, a verb and the
name of an item. If there are more words, such as a comment ("…, begs Eve"), a negation, a condition
or a second request, these rules don't apply. `data/wishes.toml` lists the forms of requests as
frames. `core/review/naming.py` checks whether the words name one item and have no other content.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from core.review.negation import list_refusals, to_plain_pattern
from core.review.phrases import (
    LANGUAGES,
    UNSPACED_LANGUAGES,
    filler_words,
    find_languages,
    gap_of,
    has_marker,
    is_question,
    mask_quotations,
    to_plain,
    unmask,
)
from core.text.normalize import language_data
from core.text.pastes import QUOTATION
from core.types import Effect

MAX_WISH_CHARS = 160
"""If a message is longer, it contains more than a request, and may be a paste."""
MAX_LEADS = 6
MAX_TAILS = 3
"""The maximum number of polite words before and after a frame, so that matching is fast."""

# An item of a list, which is rarely typed as a request.
BULLET = re.compile(r"\s*(?:[-*\u2022\u2013\u2014>]|\d+[.)])\s")
# A sign that may cross out a request, or change its meaning, as in "~~delete it~~". Friendly emojis
# don't.
_FRIENDLY = "\U0001f600\U0001f601\U0001f603\U0001f604\U0001f642\U0001f60a"
_FRIENDLY += "\U0001f44c\U0001f44d\U0001f64f\u2764\ufe0f"
_SIGN = re.compile(
    rf"[^\w\s{_FRIENDLY}'\u2019.,!?:;#\u2116\"\u2018\u201a\u201c-\u201e\u00ab\u00bb\u2039\u203a\u00bf\u00a1\u3001\u3002"
    r"\u300a-\u300f\uff01\uff0c\uff1a\uff1b\uff1f-]|(?<!\w)-|-(?!\w)"
)
# A verb that reports what the person did: "Borré …", "Annulé …", "Excluí …", and the Chinese verbs
# for deleting, cancelling, pausing and so on with the ending for a completed action.
_PAST_VERB = re.compile(
    r"\W*[^\W\d_]+[\u00e9\u00ed](?!\w)"
    r"|\W*(?:\u5220\u9664|\u79fb\u9664|\u53d6\u6d88|\u6e05\u9664|\u6682\u505c|\u505c\u6b62|\u505c\u7528|\u5173\u95ed)\u4e86(?!.*\u5427\W*$)"
)
# The end of a Chinese question whether something has been done.
_PAST_QUESTION = re.compile(r"\u4e86(?:\u5417|\u55ce|\u4e48|\u6ca1|\u6c92)[^\w]*$")
# Numbers that aren't the number of an item: "reminder 1.5", "1:30".
_OTHER_NUMBER = re.compile(r"\d[.,:\uff1a-]\d")
# The Unicode categories of brackets, quotation marks and dashes.
_MARKS = frozenset({"Pi", "Pf", "Ps", "Pe", "Pd"})
# The tables of frames that show the wish for an effect.
_TABLES = {
    Effect.CHANGE: ("change", "remove"),
    Effect.WEAKEN: ("weaken", "remove", "stated"),
    Effect.REMOVE: ("remove", "stated"),
    Effect.PLAN: ("plan", "resume"),
}


@dataclass(frozen=True, slots=True)
class Wish:
    """A request for a change: a whole message, or a question to which the person said yes."""

    # The words that name the item, in lower case and without accents.
    object: str
    # The table of its frame.
    table: str
    # The language of its frame.
    language: str
    # Whether the frame itself is about reminders, such as "stop reminding me to *".
    is_about_reminders: bool = False


def find_wishes(
    messages: Sequence[str], effect: Effect, questions: Sequence[str] = ()
) -> list[Wish]:
    """Return the requests for an effect that the typed messages can be read as.

    Messages that are answered together count as one text. `questions` are questions of the
    assistant to which the person said yes. Each of them is a separate request.
    """
    tables = _TABLES.get(effect, ())
    wishes = _read_wish(" ".join(messages), tables, is_offer=False)
    for question in questions:
        wishes += _read_wish(question, tables, is_offer=True)
    return wishes


def is_short_line(text: str, known: str = "") -> bool:
    """Return whether a text is one short line whose quotations are all from the text `known`."""
    known_words = to_plain(known)
    quotes_known = all(to_plain(match[0]) in known_words for match in QUOTATION.finditer(text))
    return quotes_known and is_single_line(text)


def is_single_line(text: str) -> bool:
    """Return whether a text is one short line, apart from lines such as "hi" and "thanks"."""
    if len(text) > MAX_WISH_CHARS or BULLET.match(text):
        return False
    lines = [line for line in text.splitlines() if line.strip()]
    languages = find_languages(text)
    return len(lines) <= 1 or sum(not is_polite(to_plain(line), languages) for line in lines) <= 1


def _read_wish(text: str, tables: Sequence[str], *, is_offer: bool) -> list[Wish]:
    """Return the request that each frame finds in the text. A frame must match the whole text."""
    if len(text) > MAX_WISH_CHARS:
        return []
    plain = to_plain(mask_quotations(text))
    languages = find_languages(text)
    if not _may_be_wish(text, plain, languages, is_offer=is_offer):
        return []
    tables = _drop_excessive_tables(text, plain, tables, languages)
    if "plan" in tables and list_refusals([plain], Effect.PLAN, languages):
        return []
    quotations = [to_plain(match[0]) for match in QUOTATION.finditer(text)]
    wishes: list[Wish] = []
    for language in LANGUAGES:
        if language in languages:
            for table in tables:
                wishes += _match_table(plain, table, language, is_offer=is_offer)
    return [replace(wish, object=unmask(wish.object, quotations)) for wish in wishes]


def _drop_excessive_tables(
    text: str, plain: str, tables: Sequence[str], languages: frozenset[str]
) -> Sequence[str]:
    """Return the tables without those that do more than a text with a limit asks for.

    A pause is right for "turn it off for now", but nothing is removed for now.
    """
    allowed: tuple[str, ...] = ("plan", "change")
    if _OTHER_NUMBER.search(text) or _has_words_of("dated", plain, languages):
        return [table for table in tables if table in allowed]
    if _has_words_of("limited", plain, languages):
        return [table for table in tables if table in (*allowed, "weaken")]
    return tables


def _may_be_wish(text: str, plain: str, languages: frozenset[str], *, is_offer: bool) -> bool:
    """Return whether a text isn't marked, and doesn't ask, quote, offer or report."""
    if not is_single_line(text) or is_marked(text) or _PAST_VERB.match(text):
        return False
    if _PAST_QUESTION.search(text):
        return False
    return is_offer or not (is_bare_question(text) or _has_words_of("offered", plain, languages))


def is_marked(text: str) -> bool:
    """Return whether marks in a text may strike it out or quote it, as in "~~send it~~"."""
    return _SIGN.search(text) is not None or _is_enclosed(text)


def is_bare_question(text: str) -> bool:
    """Return whether a text has a question mark, and no words such as "can you"."""
    has_mark = is_question(text) or "?" in text or "\uff1f" in text
    return has_mark and not has_marker(
        to_plain(mask_quotations(text)), "request", find_languages(text)
    )


def _is_enclosed(text: str) -> bool:
    """Return whether a bracket, a dash or a mark of an unknown quotation is at an end of a text."""
    own_text = mask_quotations(text).strip()
    ends = {own_text[:1], own_text[-1:]}
    return any(end and unicodedata.category(end) in _MARKS for end in ends)


def is_limited(text: str) -> bool:
    """Return whether a text limits what it asks for in time, as in "delete it for now"."""
    languages = find_languages(text)
    plain = to_plain(mask_quotations(text))
    return any(_has_words_of(name, plain, languages) for name in ("limited", "dated"))


def asks_to_tell(plain: str) -> bool:
    """Return whether the plain words of a task show that "remind me" asks to be told something."""
    words = language_data("wishes", "core.review")["telling"]["words"]
    return re.match(rf"(?:{to_plain_pattern(words)})(?!\w)", plain) is not None


def mentions_several(plain: str, languages: Iterable[str]) -> bool:
    """Return whether plain words may mean several things: "both", "all", "the notes"."""
    return _has_words_of("several", plain, languages)


def _has_words_of(name: str, plain: str, languages: Iterable[str]) -> bool:
    """Return whether a text has words from the table `name` for one of the languages."""
    patterns = language_data("wishes", "core.review")[name]
    text = plain.replace(" ", "") if "ja" in languages else plain
    for language in languages:
        pattern = to_plain_pattern(patterns.get(language, "(?!)"))
        if name == "several" and language not in ("zh", "ja", "ko"):
            pattern = rf"(?<!\w)(?:{pattern})(?!\w)"
        if re.search(pattern, text):
            return True
    return False


# --- Frames ---


def _match_table(plain: str, table: str, language: str, *, is_offer: bool) -> Iterable[Wish]:
    """Return a request for each frame in a table that matches plain words.

    Polite words before and after the frame are allowed.
    """
    text = plain.replace(" ", "") if language in UNSPACED_LANGUAGES else plain
    bodies = _list_without_polite_words(
        text, language, _lead_pattern(language, has_time=table == "plan", is_offer=is_offer)
    )
    wishes: dict[str, Wish] = {}
    for frame in _compile_frames(language, table):
        for body in bodies:
            match = frame.fullmatch(body)
            if match is not None:
                words = " ".join(filter(None, match.groups()))
                is_about_reminders = _reminding_pattern().search(frame.pattern) is not None
                wishes[words] = Wish(words, table, language, is_about_reminders)
    denials = (language, "en")
    return [wish for words, wish in wishes.items() if not has_marker(words, "denial", denials)]


@cache
def _reminding_pattern() -> re.Pattern[str]:
    """Return a pattern for the stems of verbs such as "remind" in all languages."""
    return re.compile(
        to_plain_pattern(language_data("wishes", "core.review")["reminding"]["stems"])
    )


def _list_without_polite_words(text: str, language: str, leads: re.Pattern[str]) -> list[str]:
    """Return each version of a text with some of the polite words at its ends cut off.

    The versions with the most words cut off at the start come first.
    """
    starts = [0]
    lead = leads.match(text)
    while lead is not None and len(starts) <= MAX_LEADS:
        starts.append(lead.end())
        lead = leads.match(text, lead.end())
    tails = _tail_pattern(language)
    ends = [len(text)]
    tail = tails.search(text)
    while tail is not None and len(ends) <= MAX_TAILS:
        ends.append(tail.start())
        tail = tails.search(text, 0, tail.start())
    return [text[start:end] for start in reversed(starts) for end in ends if start < end]


def drop_polite_ends(plain: str, language: str) -> str:
    """Return plain words without the polite words at both ends."""
    leads = _lead_pattern(language, has_time=False, is_offer=False)
    return min(_list_without_polite_words(plain, language, leads), key=len, default=plain)


@cache
def _lead_pattern(language: str, *, has_time: bool, is_offer: bool) -> re.Pattern[str]:
    """Return a pattern for a polite phrase before a frame and, with `has_time`, a word of time."""
    phrases = _join_phrases(language, ("lead", "request", *(("offer",) if is_offer else ())))
    if has_time:
        phrases = f"{phrases}|{_time_words(language)}"
    return re.compile(f"(?:{phrases}){gap_of(language)}")


@cache
def _tail_pattern(language: str) -> re.Pattern[str]:
    return re.compile(f"{gap_of(language)}(?:{_join_phrases(language, ('tail',))})$")


@cache
def _compile_frames(language: str, table: str) -> tuple[re.Pattern[str], ...]:
    """Return the patterns for the frames in a table."""
    patterns = []
    for frame in language_data("wishes", "core.review")[language][table]:
        body = to_plain_pattern(frame)
        if table == "plan" and body.endswith("*"):
            body = f"{body[:-2]}(?: *)?" if gap_of(language) else f"{body[:-1]}(?:*)?"
        body = body.replace("(", "(?:").replace("(?:?:", "(?:").replace("*", "\0")
        body = _restore_repeats(body)
        body = body.replace("\0", "(.+?)" if not body.endswith("\0") else "(.+)")
        patterns.append(re.compile(body))
    return tuple(patterns)


def _restore_repeats(body: str) -> str:
    """Return a frame in which "word*" and ".*" are regular expressions, not placeholders."""
    return body.replace("\\w\0", "\\w*").replace(".\0", ".*")


@cache
def _join_phrases(language: str, tables: tuple[str, ...]) -> str:
    data = language_data("wishes", "core.review")[language]
    phrases = {to_plain_pattern(phrase) for table in tables for phrase in data[table]}
    ordered = sorted(phrases, key=len, reverse=True)
    return "|".join(phrase.replace("(", "(?:").replace("(?:?:", "(?:") for phrase in ordered)


@cache
def _time_words(language: str) -> str:
    """Return a pattern for a word of time before a request to plan something."""
    if language in UNSPACED_LANGUAGES:
        return r"\d+|[\u4e00-\u9fff]{1,12}?(?=\u63d0\u9192|\u53eb|\u544a\u8bc9|\u901a\u77e5)"
    every = map(to_plain, language_data("wishes", "core.review")[language]["all"])
    known = sorted(filler_words(language).union(every), key=len, reverse=True)
    return "|".join([r"\d+\w*", *map(re.escape, known)])


@cache
def is_polite(plain: str, languages: frozenset[str]) -> bool:
    """Return whether plain words only accompany a request: "please", "could you", "thanks"."""
    for language in languages:
        gap = gap_of(language)
        text = plain.replace(" ", "") if not gap else plain
        phrases = _join_phrases(language, ("lead", "request", "tail"))
        if re.fullmatch(rf"(?:(?:{phrases})(?:{gap}|$)){{1,{MAX_LEADS}}}", text):
            return True
    return False
