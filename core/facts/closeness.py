"""Judge how close a note is to the messages that a person typed.

A note is close if it repeats typed clauses: with the same names and figures in the same order, and
with the same negation, condition and time. Person, units, dates, endings and typos may differ. A
note is refused if it has a name or figure that the person didn't type, or if it changes the meaning
of a clause. For example, it may drop a "not" or an "only if", swap two people, take a question or
hearsay for a statement, or ignore a later correction. Any other note is unclear: only a reader can
decide whether it follows from the messages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from core.facts.alignment import (
    Alignment,
    Source,
    TypedText,
    align,
    changes_links,
    drops_inner_words,
    has_corrected_typo,
    is_taken_back,
    leaves_comment_out,
    markers_of,
    people_of,
    split_all,
)
from core.facts.clauses import (
    Clause,
    Marker,
    SplitSentence,
    Token,
    begins_with,
    changes_unit,
    ends_with,
    has_marker,
    is_relation,
    is_same_word,
    is_span,
    to_latin,
    unspaced_spans,
)
from core.facts.wording import AnalyzedText, evidence_pattern
from core.text.exact_words import Difference, compare_exactly
from core.text.normalize import is_unspaced
from core.text.terms import word_terms

MIN_KEPT_SHARE = 0.34
"""A close note must keep at least this share of the words of the clauses that it repeats."""
MIN_RELATED_SHARE = 0.3
"""The person must have typed at least this share of a note in their language."""
MIN_DENIED_SHARE = 0.33
"""A note of which the person typed less than this share may deny a statement in other words."""
LEAD_WORDS = 2
"""A clause with at most this many words may only introduce an opinion: "I think"."""
ELLIPSIS_WORDS = 5
"""A sentence of at most this many words may continue the one before it."""
LATEST_MESSAGES = 3
"""A note without any typed word is compared with this many messages."""
CORRECTION_MESSAGES = 2
"""A correction comes within this many messages."""
MIN_FUZZY_NAME_LETTERS = 7
"""Names with fewer letters must be typed exactly."""
NAME_STEM_LETTERS = 5
"""Names may differ after this many letters."""

_COMPARED_MARKERS = (
    Marker.CONDITION,
    Marker.HEARSAY,
    Marker.UNREAL,
    Marker.LIMIT,
    Marker.PAST,
    Marker.FUTURE,
)
"""The markers of typed clauses that a note must not drop."""
# A note that replaces another one may change its figure or its person, for example "it's 95 euros
# now" instead of 80. Only a reader can decide whether it may.
_REPLACED = frozenset({"figures", "person", "limit", "past"})


class Support(Enum):
    """How strongly typed messages support a note."""

    # The note repeats the messages.
    CLOSE = "close"
    # The note may follow from the messages.
    UNCLEAR = "unclear"
    # The note has a name or figure that the person didn't type, or contradicts the messages.
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Judgement:
    support: Support
    # The reasons why the note isn't close, such as "denial".
    reasons: frozenset[str] = frozenset()


def judge(content: str, typed: Sequence[TypedText]) -> Judgement:
    """Judge a note by the typed messages, which are given oldest first."""
    notes, sources = split_all(content, typed)
    if not notes or not sources:
        return Judgement(Support.REFUSED, frozenset({"nothing typed"}))
    alignments = [align(note, sources) for note in notes]
    typed_tokens = [source.tokens for source in sources]
    is_other_unit = any(changes_unit(note.tokens, typed_tokens) for note in notes)
    changes: set[str] = {"figure"} if is_other_unit else set()
    for alignment in alignments:
        changes |= _find_untyped(alignment, sources) | _find_changes(alignment, sources)
    is_replacement = any(source.is_accepted for source in sources)
    if changes:
        may_follow = is_replacement and changes <= _REPLACED
        support = Support.UNCLEAR if may_follow else Support.REFUSED
        return Judgement(support, frozenset(changes))
    doubts = set().union(*map(_find_doubts, alignments))
    if any(is_taken_back(alignment, sources) for alignment in alignments):
        doubts.add("joke")
    support = Support.UNCLEAR if doubts else Support.CLOSE
    return Judgement(support, frozenset(doubts))


# --- Untyped names and figures ---


def _find_untyped(alignment: Alignment, sources: Sequence[Source]) -> set[str]:
    """Return the parts of the note that the person never typed.

    The parts are "name", "figure", "span" (a span of time) and "words" (most of the words).
    """
    typed_numbers = _list_numbers(alignment.sources)
    is_foreign = alignment.is_foreign
    is_comparable = not (is_foreign or alignment.has_same_date)
    parts = set()
    for token in alignment.missing:
        may_be_noun = is_foreign and _may_be_noun(token, alignment.note)
        if token.number is not None:
            if token.number not in typed_numbers:
                parts.add("figure")
        elif token.is_name and not (may_be_noun or _is_name_typed(token, sources)):
            parts.add("name")
        elif is_comparable and is_span(token.form):
            parts.add("span")
    if is_comparable and _adds_unspaced_span(alignment):
        parts.add("span")
    if not is_foreign and _has_few_typed_words(alignment):
        parts.add("words")
    return parts


def _may_be_noun(token: Token, note: SplitSentence) -> bool:
    """Return whether a capital letter may only mark a German noun.

    The nouns of a translated note can't be found in the typed text.
    """
    if "de" not in note.languages:
        return False
    naming = r"(?:hei\u00dft|heisst|namens|ist|herr|herrn|frau|von|nach|name)"
    return re.search(rf"\b{naming} {re.escape(token.form)}\b", note.plain) is None


def _list_numbers(sources: Sequence[Source]) -> set[int | None]:
    numbers: set[int | None] = set()
    for source in sources:
        numbers |= AnalyzedText(source.sentence.text).numbers
        numbers |= {token.number for token in source.tokens}
    return numbers


def _has_few_typed_words(alignment: Alignment) -> bool:
    """Return whether the person typed so few words of the note that it must be about something
    else."""
    words = [token for token in alignment.note.tokens if token.number is None]
    missing = [token for token in alignment.missing if token.number is None]
    min_typed_count = MIN_RELATED_SHARE * len(words)
    if len(words) - len(missing) >= min_typed_count:
        return False
    # A related word counts as typed: "born" for "birthday".
    typed = AnalyzedText(" ".join(source.sentence.text for source in alignment.sources))
    unrelated_count = 0
    for token in missing:
        if not any(typed.mentions(term) for term in word_terms(token.form)):
            unrelated_count += 1
    return len(words) - unrelated_count < min_typed_count


def _adds_unspaced_span(alignment: Alignment) -> bool:
    """Return whether the note adds a span such as 每月, in a script without spaces."""
    typed = " ".join(source.sentence.plain for source in alignment.sources)
    return any(span in alignment.note.plain and span not in typed for span in unspaced_spans())


def _is_name_typed(name: Token, sources: Sequence[Source]) -> bool:
    """Return whether the person typed a name.

    It may be in Cyrillic letters, and a long name may have a typo.
    """
    stem = to_latin(name.form)[:NAME_STEM_LETTERS]
    is_long = len(name.form) >= MIN_FUZZY_NAME_LETTERS
    for source in sources:
        for token in source.tokens:
            if to_latin(token.form)[:NAME_STEM_LETTERS] == stem:
                return True
            if is_long and is_same_word(token, name):
                return True
    return False


# --- What says something else ---


def _find_changes(alignment: Alignment, sources: Sequence[Source]) -> set[str]:
    """Return the ways in which the note changes the meaning of the typed clauses that it
    repeats."""
    if not alignment.sources:
        return _find_unaligned_changes(alignment.note, sources)
    checks = (
        ("denial", _is_mostly_typed(alignment) and _changes_denial(alignment)),
        ("person", _changes_person(alignment)),
        ("mixed", _mixes_people(alignment)),
        ("order", _changes_order(alignment) or _changes_relative(alignment)),
        ("figures", _changes_figures(alignment)),
        ("sign", _compare_signs(alignment) is Difference.CHANGED),
        ("universal", _adds_universal(alignment)),
        ("corrected", _is_corrected(alignment, sources)),
    )
    reasons = {name for name, is_changed in checks if is_changed}
    for number, source in enumerate(alignment.sources):
        reasons |= _dropped_markers(alignment, source, alignment.used_clauses(number))
    return reasons


def _find_unaligned_changes(note: SplitSentence, sources: Sequence[Source]) -> set[str]:
    """Return reasons against a note that shares no word with the messages.

    Such a note is in another language, so only the latest messages are considered. The reason is
    "corrected" if one of them is a correction. The reason is "denial" if only the note or only the
    messages deny something.
    """
    last = sources[-1].message
    latest = [source for source in sources if source.message > last - LATEST_MESSAGES]
    if any(source.is_correction for source in latest if source.message > sources[0].message):
        return {"corrected"}
    is_denied = Marker.DENIAL in markers_of(note.clauses)
    denials = {
        Marker.DENIAL in markers_of(source.sentence.clauses)
        for source in latest
        if len(source.tokens) > 1
    }
    may_avoid = Marker.AVOIDANCE in markers_of(note.clauses)
    return {"denial"} if denials == {not is_denied} and not may_avoid else set()


def _dropped_markers(alignment: Alignment, source: Source, used: Sequence[Clause]) -> set[str]:
    """Return the markers of the typed clauses that the note drops, such as a condition."""
    sentence = source.sentence
    typed_markers = markers_of(used)
    if _has_near_condition(sentence, used) and not _is_condition_for_reader(sentence, used):
        typed_markers |= {Marker.CONDITION}
    if _is_attributed(sentence, used):
        typed_markers |= {Marker.HEARSAY}
    compared = set(_COMPARED_MARKERS)
    if alignment.has_same_date:
        compared -= {Marker.FUTURE, Marker.LIMIT, Marker.PAST}
    dropped = typed_markers & compared
    if Marker.JOKE in markers_of(sentence.clauses):
        dropped |= {Marker.JOKE}
    noted = markers_of(alignment.note.clauses)
    reasons = {marker.value for marker in dropped - noted}
    denials = {Marker.REJECTION, Marker.UNTRUE, Marker.DENIAL, Marker.AVOIDANCE, Marker.PAST}
    if _is_rejected(sentence, used) and noted.isdisjoint(denials):
        reasons.add("denial")
    is_question = sentence.is_question or begins_with(sentence.text, "asks", sentence.languages)
    if is_question and used and used[-1] is sentence.clauses[-1]:
        reasons.add("question")
    return reasons


def _has_near_condition(sentence: SplitSentence, used: Sequence[Clause]) -> bool:
    """Return whether a used clause, or one next to it, states a condition."""
    return Marker.CONDITION in markers_of(_with_neighbours(sentence, used))


def _is_condition_for_reader(sentence: SplitSentence, used: Sequence[Clause]) -> bool:
    """Return whether the condition only tells the reader when to pay attention.

    In "I'm colour blind, keep it in mind when you send charts", the condition doesn't limit the
    statement. Only the clause after the used ones may have such a condition.
    """
    if Marker.CONDITION in markers_of(used):
        return False
    last = sentence.clauses.index(used[-1])
    behind = sentence.clauses[last + 1 :]
    others = [clause for clause in _with_neighbours(sentence, used) if clause not in behind]
    if not behind or Marker.CONDITION in markers_of(others):
        return False
    return has_marker(behind[0].text, "attention", sentence.languages)


def _is_mostly_typed(alignment: Alignment) -> bool:
    """Return whether the person typed enough of the note that its negations can be compared."""
    return len(alignment.places) >= MIN_DENIED_SHARE * len(alignment.note.tokens)


def _is_rejected(sentence: SplitSentence, used: Sequence[Clause]) -> bool:
    """Return whether the sentence rejects a used clause: "I deny that …" or "…, that's a lie"."""
    if Marker.REJECTION in markers_of(used):
        return True
    if Marker.UNTRUE in markers_of(_with_neighbours(sentence, used)):
        return True
    return any(
        clause in used and Marker.REJECTION in before.markers
        for before, clause in pairwise(sentence.clauses)
    )


def _compare_signs(alignment: Alignment) -> Difference:
    """Return how the signs, units, decimals and accents of the note differ from the typed ones."""
    texts = [source.sentence.text for source in alignment.sources]
    return compare_exactly(alignment.note.text, texts)


def _adds_universal(alignment: Alignment) -> bool:
    """Return whether the note says "all" or "always" and the typed sentence doesn't."""
    typed = markers_of(alignment.sources[0].sentence.clauses)
    return Marker.UNIVERSAL in markers_of(alignment.note.clauses) - typed


def _is_attributed(sentence: SplitSentence, used: Sequence[Clause]) -> bool:
    """Return whether a short clause such as "my neighbour thinks" comes before a used clause."""
    for before, clause in pairwise(sentence.clauses):
        if clause not in used or Marker.HEARSAY not in before.markers:
            continue
        is_lead = not is_unspaced(before.text[-1:]) or ends_with(
            before.text, "hearsay", sentence.languages
        )
        # "告诉Ben": each character is a token.
        is_short = len(before.tokens) <= LEAD_WORDS or (
            is_unspaced(before.text[:1]) and begins_with(before.text, "hearsay", sentence.languages)
        )
        if is_lead and is_short:
            return True
    return False


def _with_neighbours(sentence: SplitSentence, used: Sequence[Clause]) -> list[Clause]:
    """Return the used clauses together with the clauses right before and after them."""
    clauses = sentence.clauses
    neighbours = []
    for index, clause in enumerate(clauses):
        if any(near in used for near in clauses[max(0, index - 1) : index + 2]):
            neighbours.append(clause)
    return neighbours


def _changes_denial(alignment: Alignment, *, is_strict: bool = False) -> bool:
    """Return whether only the note or only the typed clauses are negated.

    "Doesn't like" and "dislikes" count as equal, unless `is_strict` is set.
    """
    for clause, indexes in alignment.note_clauses():
        typed_clauses = alignment.all_used_clauses(indexes)
        if not typed_clauses:
            continue
        is_denied = Marker.DENIAL in clause.markers
        typed_denials = {Marker.DENIAL in typed.markers for typed in typed_clauses}
        avoids = Marker.AVOIDANCE in clause.markers
        differs_in_avoidance = avoids != (Marker.AVOIDANCE in markers_of(typed_clauses))
        if is_denied not in typed_denials and (is_strict or not differs_in_avoidance):
            return True
        if len(typed_denials) > 1 and not is_denied:
            return True
    return False


def _changes_person(alignment: Alignment) -> bool:
    """Return whether the note ascribes a typed statement to another person."""
    begins_with_user = evidence_pattern("user").match(alignment.note.text) is not None
    if begins_with_user and len(alignment.sources) == 1:
        markers = markers_of(alignment.all_used_clauses())
        if Marker.THIRD_PERSON in markers and Marker.FIRST_PERSON not in markers:
            return True
        if _describes_other_as_user(alignment):
            return True
    for number, source in enumerate(alignment.sources):
        for clause in alignment.used_clauses(number):
            if not _names_people_of(alignment, clause):
                return True
            if _reassigns_own_clause(alignment, source, clause):
                return True
    return False


def _reassigns_own_clause(alignment: Alignment, source: Source, clause: Clause) -> bool:
    """Return whether a note about someone else uses a clause that is about the user.

    The clause may be used if it is a correction or has a pronoun.
    """
    is_about_user = evidence_pattern("user").search(alignment.note.text) is not None
    is_linked = source.is_correction or Marker.PRONOUN in clause.markers
    is_combined = len(alignment.sources) > 1
    return (
        is_combined
        and Marker.FIRST_PERSON in clause.markers
        and not is_about_user
        and not is_linked
    )


def _describes_other_as_user(alignment: Alignment) -> bool:
    """Return whether the note says about the user what the person typed about "the guy" or
    "somebody"."""
    source = alignment.sources[0]
    first = source.sentence.clauses[0]
    is_own = Marker.FIRST_PERSON in markers_of(source.sentence.clauses)
    is_possessive = begins_with(alignment.note.text, "user_possessive", alignment.note.languages)
    if is_own or is_possessive or alignment.is_foreign or source.is_correction:
        return False
    return Marker.OTHER_SUBJECT in first.markers and first in alignment.used_clauses(0)


def _names_people_of(alignment: Alignment, clause: Clause) -> bool:
    """Return whether the note names the people at the beginning of a typed clause.

    If the note is in another language, relations such as "my sister" may be missing.
    """
    for person in clause.people:
        if _is_mentioned(person, alignment.note):
            continue
        if not (alignment.is_foreign and is_relation(person)):
            return False
    return True


def _is_mentioned(person: str, note: SplitSentence) -> bool:
    if is_unspaced(person):
        # The note may lack the "my" (我) of "my sister" in a script without spaces.
        return person.lstrip("\u6211") in note.text
    person_token = Token(person)
    return any(token.form == person or is_same_word(token, person_token) for token in note.tokens)


def _mixes_people(alignment: Alignment) -> bool:
    """Return whether the note joins sentences that begin with different people."""
    first_people = people_of(alignment.used_clauses(0))
    for number in range(1, len(alignment.sources)):
        people = people_of(alignment.used_clauses(number))
        if first_people and people and first_people.isdisjoint(people):
            return True
    return _links_name_to_other_sentence(alignment)


def _links_name_to_other_sentence(alignment: Alignment) -> bool:
    """Return whether the note links a name in one sentence to a statement in another.

    For example, "Ana called. The dog is ill." doesn't say that the dog is Ana's.
    """
    if len(alignment.sources) < 2 or alignment.is_corrected_inside:
        return False
    ordered = sorted(alignment.sources, key=lambda source: source.number)
    first, last = ordered[0], ordered[-1]
    if _continues_previous(last) or Marker.OTHER_SUBJECT not in last.sentence.clauses[0].markers:
        return False
    for token in alignment.note.tokens:
        if token.is_name and first.contains(token) and not last.contains(token):
            return True
    return False


def _changes_order(alignment: Alignment) -> bool:
    """Return whether the note swaps two names, people or figures of a typed clause."""
    names = alignment.list_names()
    for number, source in enumerate(alignment.sources):
        positions = alignment.positions_in(number)
        names_and_figures = [
            position for position in positions if _is_name_or_figure(source.tokens[position], names)
        ]
        for position, next_position in pairwise(names_and_figures):
            if position > next_position and _swap_changes_meaning(source, position, next_position):
                return True
        characters = [
            position for position in positions if _is_unspaced_word(source.tokens[position])
        ]
        for position, next_position in pairwise(characters):
            if position > next_position and source.are_in_same_clause(position, next_position):
                return True
    return False


def _changes_relative(alignment: Alignment) -> bool:
    """Return whether the note swaps the people of a relative clause.

    In "Ana, who owes Ben", Ana owes. In "Ana, whom Ben owes", Ben owes.
    """
    names = alignment.list_names()
    for number, source in enumerate(alignment.sources):
        people_positions = [
            position
            for position in alignment.positions_in(number)
            if source.tokens[position].number is None
            and _is_name_or_figure(source.tokens[position], names)
        ]
        for position, next_position in pairwise(people_positions):
            marker = _find_relative_marker(source, position, next_position)
            if marker is Marker.RELATIVE_OBJECT and position < next_position:
                return True
            if marker is Marker.RELATIVE and position > next_position:
                return True
    return False


def _find_relative_marker(source: Source, position: int, other_position: int) -> Marker | None:
    """Return the marker that joins the later word's clause to the earlier word's, or None."""
    first, last = sorted((source.find_clause(position), source.find_clause(other_position)))
    if last != first + 1:
        return None
    markers = source.sentence.clauses[last].markers
    if Marker.RELATIVE_OBJECT in markers:
        return Marker.RELATIVE_OBJECT
    return Marker.RELATIVE if Marker.RELATIVE in markers else None


def _is_name_or_figure(token: Token, names: Sequence[Token]) -> bool:
    if token.number is not None or is_relation(token.form):
        return True
    return any(is_same_word(token, name) for name in names)


def _is_unspaced_word(token: Token) -> bool:
    return token.number is None and is_unspaced(token.form)


def _swap_changes_meaning(source: Source, position: int, other_position: int) -> bool:
    """Return whether swapping two words changes the meaning of their clause.

    In "my sister is called Ana", it doesn't.
    """
    if not source.are_in_same_clause(position, other_position):
        return False
    clause = source.sentence.clauses[source.find_clause(position)]
    is_first_relation = is_relation(source.tokens[position].form)
    is_other_relation = is_relation(source.tokens[other_position].form)
    names_relation = is_first_relation != is_other_relation
    return not (Marker.NAMING in clause.markers and names_relation)


def _changes_figures(alignment: Alignment) -> bool:
    """Return whether the note combines a typed word with the figure of another clause.

    After "Tea at 8, call at 9", the note "Tea at 9" does so.
    """
    if alignment.is_corrected_inside:
        return False
    for _, indexes in alignment.note_clauses():
        figures = alignment.list_figures(indexes)
        if not figures:
            continue
        for index in indexes:
            place = alignment.places.get(index)
            if place is None:
                continue
            source = alignment.sources[place.source]
            if _has_different_figures(source, place.position, figures):
                return True
    return False


def _has_different_figures(source: Source, position: int, figures: set[int]) -> bool:
    """Return whether a word occurs in only one clause, and the figures of that clause aren't
    `figures`."""
    word = source.tokens[position]
    if word.number is not None:
        return False
    home = source.find_clause(position)
    for number, clause in enumerate(source.sentence.clauses):
        if number != home and any(is_same_word(word, token) for token in clause.tokens):
            return False
    home_figures = {token.number for token in source.sentence.clauses[home].tokens} - {None}
    return bool(home_figures) and home_figures.isdisjoint(figures)


def _is_corrected(alignment: Alignment, sources: Sequence[Source]) -> bool:
    """Return whether the note ignores a correction in one of the next messages."""
    used_messages = {source.message for source in alignment.sources}
    first = min(used_messages)
    people = people_of(alignment.all_used_clauses())
    for source in sources:
        is_next = first < source.message <= first + CORRECTION_MESSAGES
        if not is_next or source.message in used_messages:
            continue
        if source.tokens and source.is_correction and not _is_about_other_people(source, people):
            return True
    return False


def _is_about_other_people(source: Source, people: frozenset[str]) -> bool:
    """Return whether a correction begins with other people: "My son moved to …"."""
    others = source.sentence.clauses[0].people
    return bool(others) and others.isdisjoint(people) and not source.begins_with_correction


# --- Doubts about notes that may follow ---


def _find_doubts(alignment: Alignment) -> set[str]:
    """Return reasons why the note may not follow from the messages, although it changes no typed
    clause."""
    if not alignment.sources:
        return {"words"}
    used = alignment.all_used_clauses()
    added = markers_of(alignment.note.clauses) - markers_of(used)
    checks = (
        ("language", alignment.is_foreign),
        ("sign", _compare_signs(alignment) is not Difference.NONE),
        ("denial", _changes_denial(alignment, is_strict=True)),
        ("person", _mixes_third_person(alignment)),
        ("avoidance", _drops_avoidance(alignment)),
        ("words", bool(alignment.missing) or has_corrected_typo(alignment)),
        ("links", changes_links(alignment)),
        ("left out", _leaves_much_out(alignment) or drops_inner_words(alignment)),
        ("combined", _joins_separate_sentences(alignment)),
        ("order", _count_descents(alignment) > 1),
        ("comment", leaves_comment_out(alignment)),
        ("adds", not added.isdisjoint(_COMPARED_MARKERS)),
        ("condition", _leaves_condition_out(alignment)),
    )
    return {name for name, is_doubtful in checks if is_doubtful}


def _mixes_third_person(alignment: Alignment) -> bool:
    """Return whether a note about the user mixes their statement with one about someone else."""
    if len(alignment.sources) > 1:
        return False
    markers = markers_of(alignment.all_used_clauses())
    is_about_user = evidence_pattern("user").match(alignment.note.text) is not None
    return is_about_user and {Marker.FIRST_PERSON, Marker.THIRD_PERSON} <= markers


def _drops_avoidance(alignment: Alignment) -> bool:
    """Return whether the note drops a word like "without" or "hates"."""
    avoids = {Marker.AVOIDANCE, Marker.DENIAL}
    is_avoided = Marker.AVOIDANCE in markers_of(alignment.all_used_clauses())
    return is_avoided and markers_of(alignment.note.clauses).isdisjoint(avoids)


def _leaves_much_out(alignment: Alignment) -> bool:
    """Return whether the note uses only a few words of a typed clause."""
    if alignment.is_corrected_inside or alignment.has_same_date:
        return False
    for number in range(len(alignment.sources)):
        typed = sum(len(clause.tokens) for clause in alignment.used_clauses(number))
        if len(alignment.positions_in(number)) < MIN_KEPT_SHARE * typed:
            return True
    return False


def _leaves_condition_out(alignment: Alignment) -> bool:
    """Return whether the note drops a condition next to a clause that it uses."""
    if Marker.CONDITION in markers_of(alignment.note.clauses):
        return False
    return any(
        _has_near_condition(source.sentence, alignment.used_clauses(number))
        for number, source in enumerate(alignment.sources)
    )


def _joins_separate_sentences(alignment: Alignment) -> bool:
    """Return whether the note joins sentences that don't continue each other."""
    if alignment.is_corrected_inside:
        return False
    first = min(source.number for source in alignment.sources)
    return any(
        source.number > first and not _continues_previous(source) for source in alignment.sources
    )


def _continues_previous(source: Source) -> bool:
    """Return whether a sentence continues the previous one.

    A sentence continues the previous one if it is short, or if it starts with a pronoun.
    """
    first = source.sentence.clauses[0]
    if Marker.PRONOUN in first.markers:
        return True
    has_subject = Marker.FIRST_PERSON in first.markers or bool(first.people)
    return len(source.tokens) <= ELLIPSIS_WORDS and not has_subject


def _count_descents(alignment: Alignment) -> int:
    """Count the pairs of neighbouring words in the note that were typed in the opposite order."""
    descents = 0
    for number in range(len(alignment.sources)):
        for position, next_position in pairwise(alignment.positions_in(number)):
            if position > next_position:
                descents += 1
    return descents
