"""Decides whether the helper model may be asked if a message requests a change.

`core/review/wishes.py` lets a call run at once if the whole message is a request for it. The helper
model judges other messages, but only if no rule in this module finds a sign against a request:
hearsay, a withdrawal, a condition, or words such as "don't delete". So a helper model that always
agrees does little harm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from core.review.negation import list_refusals, to_plain_pattern
from core.review.phrases import (
    LATIN,
    SENTENCE_END,
    UNSPACED_LANGUAGES,
    count_common_words,
    find_languages,
    has_marker,
    is_question,
    list_plain_words,
    marker,
    mask_quotations,
    split_clauses,
    to_plain,
)
from core.review.wishes import BULLET, find_wishes, is_limited, is_polite
from core.text.normalize import language_data
from core.text.terms import word_terms
from core.types import Effect

MIN_VERB_LETTERS = 6
"""A verb form with fewer letters may be another word."""
# The verbs of a frame that consists of verbs and an item.
_VERB_FRAME = re.compile(r"^\(([^()*]+)\) ?\*$|\(([^()*]+)\)(?:\([^()*]*\)\??)*$")
# Such a frame whose last words aren't particles, such as in "throw * (out|away)".
_WHOLE_VERB_FRAME = re.compile(
    r"^\(([^()*]+)\) ?\*$|^\W{0,2}\*.*?\(([^()*]+)\)(?:\([^()*]*\)\??)*$"
)

# A name such as in "Eve - …", "[Eve] …", "Eve 12:03 …", "From Eve. …" and "…, Eve".
_AUTHOR = re.compile(
    r"^\W*(?:(?i:from|von|de|от)\s+)?[A-Z\u00c0-\u00de\u0410-\u042f]\w+(?:\s+\d\d?:\d\d|\s+[-\u2013\u2014/]\s|\s*[\])>|])"
    r"|^(?i:from|von|de|от)\s+[A-Z\u00c0-\u00de\u0410-\u042f]\w+\W"
    r"|,\s+[A-Z\u00c0-\u00de\u0410-\u042f]\w+\W*$"
)
# The sign between a lead and a request: "Dentist: remind me …", "Eve's mail - remind me …".
_LEAD_SIGN = re.compile(r"(?<!\d)\s?[:\uff1a]\s?(?!\d)|\s[-\u2013\u2014]+\s|\u2014+")
_CLOCK_COLON = re.compile(r"(?<=\d):(?=\d)")


def may_contain_wish(message: str, effect: Effect) -> bool:
    """Return whether a message may contain the sender's own request for an effect.

    Signs against a request are hearsay, a withdrawal, a condition, "don't delete", a question that
    doesn't ask the assistant to do anything, words before a colon that aren't a request, and list
    items. A request to remove or pause something needs a word such as "over" or "delete". Without
    word lists for the language of the message, the result is False.
    """
    if speaks_against_wish(message, effect):
        return False
    languages = find_languages(message)
    if effect not in (Effect.REMOVE, Effect.WEAKEN):
        return True
    if effect is Effect.REMOVE and is_limited(message):
        return False
    plain = to_plain(mask_quotations(message))
    if find_wishes([message], Effect.CHANGE):
        # A request to move a reminder also allows removing the old one.
        return True
    names = ("ends", "denial", "pauses") if effect is Effect.WEAKEN else ("ends", "denial")
    return any(_mentions_end(plain, language, names) for language in languages)


def asks_to_end(message: str) -> bool:
    """Return whether a message has a verb or a frame of a request to end, pause or move an item.

    A verb with a subject isn't a request: "I always forget the insulin".
    """
    if any(find_wishes([message], effect) for effect in (Effect.WEAKEN, Effect.CHANGE)):
        return True
    languages = find_languages(message)
    for sentence in SENTENCE_END.split(mask_quotations(message)):
        for clause, _ in split_clauses(sentence, languages):
            if any(_asks_by_verb(clause, language) for language in languages):
                return True
    return False


def _asks_by_verb(clause: str, language: str) -> bool:
    """Return whether a clause has a verb of a request to end or pause something."""
    text = clause.replace(" ", "") if language in UNSPACED_LANGUAGES else clause
    may_state = not has_marker(clause, "request", (language,))
    for verb in _removal_verb_pattern(language, is_whole=True).finditer(text):
        if not (may_state and _subject_pattern(language).search(text[: verb.start()])):
            return True
    return False


@cache
def _subject_pattern(language: str) -> re.Pattern[str]:
    words = language_data("wishes", "core.review")["subjects"].get(language, "(?!)")
    plain = to_plain_pattern(words)
    is_spaced = language not in UNSPACED_LANGUAGES
    return re.compile(rf"(?<!\w)(?:{plain})(?!\w)" if is_spaced else plain)


def asks_to_resume(message: str) -> bool:
    """Return whether a clause of a message requests to resume an item: "…, turn it back on"."""
    languages = find_languages(message)
    for sentence in SENTENCE_END.split(mask_quotations(message)):
        clauses = [clause for clause, _ in split_clauses(sentence, languages)]
        for clause in (sentence, *clauses):
            if any(wish.table == "resume" for wish in find_wishes([clause], Effect.PLAN)):
                return True
    return False


def says_that_it_ends(message: str) -> bool:
    """Return whether a message has a word such as "over" or "until". "Not" isn't enough.

    A word with a subject isn't, either: "I drop the kids off".
    """
    languages = find_languages(message)
    for sentence in SENTENCE_END.split(mask_quotations(message)):
        for clause, _ in split_clauses(sentence, languages):
            if any(_says_end(clause, language) for language in languages):
                return True
    return False


def _says_end(clause: str, language: str) -> bool:
    text = clause
    if "negation" in language_data("wishes", "core.review")[language]:
        text = marker(language, "negation").sub(" ", clause)
    if marker(language, "pauses").search(text):
        return True
    return any(
        not _subject_pattern(language).search(text[: match.start()])
        for match in marker(language, "ends").finditer(text)
    )


def speaks_against_wish(message: str, effect: Effect) -> bool:
    """Return whether a message contradicts a request, such as by hearsay or a condition.

    It may also end with "Nope."

    If its language is unknown, the result is True.
    """
    if _is_in_other_language(message):
        return True
    languages = find_languages(message)
    if _names_author(message, languages) or _takes_itself_back(message):
        return True
    return any(
        BULLET.match(line)
        or any(
            _speaks_against(sentence, effect, languages)
            for sentence in SENTENCE_END.split(line.strip())
        )
        for line in message.splitlines()
    )


def _names_author(message: str, languages: frozenset[str]) -> bool:
    """Return whether a message has a name before it or behind it, as in a chat or a letter."""
    for match in _AUTHOR.finditer(message.strip()):
        if not is_polite(to_plain(match[0]), languages):
            return True
    return False


def _takes_itself_back(message: str) -> bool:
    """Return whether a message ends with "Nope", "Nein!" or the like after other sentences."""
    sentences = [to_plain(sentence).strip() for sentence in SENTENCE_END.split(message)]
    sentences = [sentence for sentence in sentences if sentence]
    return len(sentences) > 1 and sentences[-1] in list_plain_words("no")


def _is_in_other_language(message: str) -> bool:
    """Return whether a message is probably in a language without word lists.

    This also applies to a text in Latin letters that negates something and has no other common word
    of a known language.
    """
    plain = to_plain(message)
    if _other_words().search(plain) or _other_letters().search(message.casefold()):
        return True
    languages = find_languages(message)
    if not languages <= LATIN or not has_marker(plain, "denial", LATIN):
        return False
    for language in LATIN:
        plain = marker(language, "denial").sub(" ", plain)
    is_known = any(marker(language, "ends").search(plain) for language in languages)
    is_known = is_known or any(
        _removal_verb_pattern(language).search(plain) for language in languages
    )
    return not is_known and not any(count_common_words(plain).values())


@cache
def _other_words() -> re.Pattern[str]:
    words = language_data("wishes", "core.review")["others"]["words"]
    return re.compile(rf"(?<!\w)(?:{to_plain_pattern(words)})(?!\w)")


@cache
def _other_letters() -> re.Pattern[str]:
    return re.compile(f"[{language_data('wishes', 'core.review')['others']['letters']}]")


def _mentions_end(plain: str, language: str, names: Sequence[str]) -> bool:
    """Return whether a text says that something ends, or has a word from the tables `names`.

    The text consists of plain words (`to_plain`).
    """
    if any(marker(language, name).search(plain) for name in names):
        return True
    text = plain.replace(" ", "") if language in UNSPACED_LANGUAGES else plain
    return _removal_verb_pattern(language).search(text) is not None


def _speaks_against(sentence: str, effect: Effect, languages: frozenset[str]) -> bool:
    """Return whether a sentence has a sign against a request for an effect."""
    plain = to_plain(mask_quotations(sentence))
    if _is_hearsay_or_retracted(plain, languages):
        return True
    if is_question(sentence) and not has_marker(plain, "request", languages):
        return True
    clauses = [clause for clause, _ in split_clauses(sentence, languages)]
    if list_refusals(clauses, effect, languages):
        return True
    if effect is Effect.PLAN:
        return False
    if effect is Effect.SEND:
        return has_marker(plain, "denial", languages)
    lead, colon, _ = _CLOCK_COLON.sub(" ", sentence).partition(":")
    if colon and not is_polite(to_plain(lead), languages) and not find_wishes([lead], effect):
        return True
    return _is_conditional(plain, languages) or any(
        _negates_removal(clause, languages) for clause in clauses
    )


def mentions_other_text(plain: str, plain_task: str, languages: Iterable[str]) -> bool:
    """Return whether plain words mention a text such as a mail that a task doesn't mention."""
    return any(
        match[0] not in plain_task
        for language in languages
        for match in _message_pattern(language).finditer(plain)
    )


@cache
def _message_pattern(language: str) -> re.Pattern[str]:
    words = to_plain_pattern(language_data("wishes", "core.review")["messages"][language])
    is_spaced = language not in UNSPACED_LANGUAGES and language != "ko"
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)" if is_spaced else words)


def split_lead(sentence: str) -> tuple[str, str, str]:
    """Split a sentence at its first colon or dash, as `str.partition` does."""
    match = _LEAD_SIGN.search(sentence)
    if match is None:
        return sentence, "", ""
    return sentence[: match.start()], match[0], sentence[match.end() :]


def _is_hearsay_or_retracted(plain: str, languages: frozenset[str]) -> bool:
    """Return whether a sentence reports another person's request, or withdraws its own."""
    return any(has_marker(plain, name, languages) for name in ("hearsay", "retract"))


def _is_conditional(plain: str, languages: frozenset[str]) -> bool:
    """Return whether a sentence requests something only under a condition, or not now."""
    return any(has_marker(plain, name, languages) for name in ("condition", "not_now"))


def _negates_removal(clause: str, languages: frozenset[str]) -> bool:
    """Return whether a clause negates a verb that requests a removal or a pause."""
    return any(
        marker(language, "denial").search(clause) and _removal_verb_pattern(language).search(clause)
        for language in languages
    )


@cache
def _list_removal_verbs(language: str, *, is_whole: bool = False) -> frozenset[str]:
    """Return the verbs in frames such as "(delete|drop) *", which request a removal or a pause.

    With `is_whole`, the particles of verbs such as "throw out" are left out.
    """
    data = language_data("wishes", "core.review")[language]
    frame_pattern = _WHOLE_VERB_FRAME if is_whole else _VERB_FRAME
    verbs: set[str] = set()
    for frame in (*data["remove"], *data["weaken"]):
        match = frame_pattern.search(to_plain_pattern(frame))
        if match:
            verbs |= {verb for verb in (match[1] or match[2]).split("|") if verb}
    return frozenset(verbs)


@cache
def _removal_verb_pattern(language: str, *, is_whole: bool = False) -> re.Pattern[str]:
    """Return a pattern that matches the verbs of `_list_removal_verbs`."""
    verbs = _list_removal_verbs(language, is_whole=is_whole)
    joined = "|".join(sorted(map(re.escape, verbs), key=len, reverse=True))
    if language == "tr":
        return re.compile(rf"(?<!\w)(?:{joined})")
    is_spaced = language not in UNSPACED_LANGUAGES and language != "ko"
    return re.compile(rf"(?<!\w)(?:{joined})(?!\w)" if is_spaced else f"(?:{joined})")


def speaks_against_change(message: str, names: Callable[[str], bool], known: str) -> bool:
    """Return whether a message asks to keep an item, or is about a text.

    "Her line about the swim" is about a text. `names` returns whether a clause has words of the
    item. The words of `known`, which is the text of the item, don't count as signs. Two verbs that
    request a removal in one clause also speak against the request.
    """
    languages = find_languages(message)
    has_verb = False
    for sentence in SENTENCE_END.split(message):
        for clause, _ in split_clauses(mask_quotations(sentence), languages):
            verb_count = max(count_removal_verbs(clause, known, code) for code in languages)
            if verb_count > 1 or _has_unknown_marker(clause, "texts", known, languages):
                return True
            is_left_out = has_verb and _begins_with_denial(clause, languages)
            is_kept = is_left_out or _has_unknown_marker(clause, "keeps", known, languages)
            if is_kept and names(clause):
                return True
            has_verb = has_verb or verb_count > 0
    return False


def _has_unknown_marker(clause: str, name: str, known: str, languages: Iterable[str]) -> bool:
    """Return whether a clause has a word from a table that isn't in the text `known`."""
    known_words = to_plain(known)
    return any(
        match[0] not in known_words
        for language in languages
        for match in marker(language, name).finditer(clause)
    )


def _begins_with_denial(clause: str, languages: Iterable[str]) -> bool:
    return any(marker(language, "denial").match(clause) for language in languages)


def count_removal_verbs(clause: str, known: str, language: str) -> int:
    """Return how many verbs in a clause request a removal or a pause.

    Words that are also in the text `known` aren't counted.
    """
    known_words = to_plain(known)
    matches = [match[0] for match in _removal_verb_pattern(language).finditer(clause)]
    if language in UNSPACED_LANGUAGES or language in ("ko", "tr"):
        return len({verb for verb in matches if verb not in known_words})
    terms = _removal_verb_stems(language)
    return sum(
        not terms.isdisjoint(word_terms(word))
        for word in clause.split()
        if word not in known_words and (word in matches or len(word) >= MIN_VERB_LETTERS)
    )


@cache
def _removal_verb_stems(language: str) -> frozenset[str]:
    """Return the stems of the verbs that request a removal or a pause."""
    verbs = _list_removal_verbs(language)
    return frozenset(term for verb in verbs if " " not in verb for term in word_terms(verb))
