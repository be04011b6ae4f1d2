"""Find the typed sentences from which a note takes its words.

`core/facts/closeness.py` then compares each clause of the note with the clauses that it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from core.dates.periods_in_text import find_periods, month_number
from core.facts.clauses import (
    COMMENT_WORDS,
    Clause,
    Marker,
    SplitSentence,
    Token,
    ahead_pattern,
    begins_with,
    find_languages,
    has_marker,
    is_same_word,
    is_span,
    is_typo,
    list_links,
    span_days,
    split_statement,
    takes_back,
)
from core.facts.wording import evidence_pattern, numbers_in
from core.text.normalize import is_unspaced

LANGUAGE_CHARS = 5_000
"""The language of the messages is detected from their last characters, up to this many."""
MAX_SOURCES = 3
"""A sentence of a note may combine this many typed sentences."""
NEAR_MESSAGES = 4
"""A note may combine two messages if at most this many messages lie between them."""
DAYS_OF_WEEK = 7
MIN_YEAR = 1900

_ANY_DAY = date(2024, 1, 1)
# A clause with one of these markers is about the sender, or gives the reason for the message ("in
# case I ask").
_OWN_MARKERS = frozenset({Marker.FIRST_PERSON, Marker.CONDITION})
# The marks between a comment and the statement that follows or precedes it.
_BEFORE = r"{}\s*[-\u2013\u2014]\s"
_BEHIND = r"[,;(\u2013\u2014\uff0c\u3001]\s*(?:\w+\s+)?{}"
_DATE_SIGNS = frozenset("年月日曜周星期")


@dataclass(frozen=True, slots=True)
class TypedText:
    """The text of a message that a person typed, and the day on which they typed it."""

    text: str
    day: date
    # The question of the assistant that the message answers. A note may use its words, but not its
    # names and figures.
    question: str = ""
    # True for an accepted note that the new note replaces. False for a message.
    is_accepted: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A sentence that a person typed, and its position in the conversation."""

    sentence: SplitSentence
    number: int
    message: int
    day: date
    question: tuple[Token, ...] = ()
    is_accepted: bool = False

    @property
    def tokens(self) -> tuple[Token, ...]:
        return self.sentence.tokens

    @property
    def is_correction(self) -> bool:
        """Return whether the sentence corrects an earlier one: "no, it's Thursday"."""
        return self.begins_with_correction or has_marker(
            self.sentence.text, "correction", self.sentence.languages
        )

    @property
    def begins_with_correction(self) -> bool:
        return begins_with(self.sentence.text, "correction", self.sentence.languages)

    def find_clause(self, position: int) -> int:
        """Return the index of the clause that contains the token at `position`."""
        start = 0
        for number, clause in enumerate(self.sentence.clauses):
            start += len(clause.tokens)
            if position < start:
                return number
        return len(self.sentence.clauses) - 1

    def are_in_same_clause(self, position: int, other_position: int) -> bool:
        return self.find_clause(position) == self.find_clause(other_position)

    def contains(self, word: Token) -> bool:
        return any(is_same_word(word, token) for token in self.tokens)


@dataclass(frozen=True, slots=True)
class Place:
    """The origin of a word of the note: the index of a source, and a position in its tokens."""

    source: int
    position: int


@dataclass(frozen=True, slots=True)
class Alignment:
    """A sentence of a note, and the typed sentences that its words come from."""

    note: SplitSentence
    sources: Sequence[Source]
    # The origin of each word of the note, by the word's index.
    places: Mapping[int, Place]
    # The words of the note that no source contains.
    missing: Sequence[Token]
    # Whether the note names the date that a source means by "tomorrow".
    has_same_date: bool

    @property
    def is_foreign(self) -> bool:
        """Whether the note is in another language than its sources.

        If so, their words can't be compared.
        """
        typed: frozenset[str] = frozenset()
        for source in self.sources:
            typed |= source.sentence.languages
        return self.note.languages.isdisjoint(typed)

    @property
    def is_corrected_inside(self) -> bool:
        """Return whether any of the sources is a correction."""
        return any(source.is_correction for source in self.sources)

    def used_clauses(self, number: int, indexes: Sequence[int] | None = None) -> list[Clause]:
        """Return the clauses of a source from which the note takes words.

        With `indexes`, consider only these words of the note.
        """
        source = self.sources[number]
        clause_numbers = set()
        for index, place in self.places.items():
            if place.source == number and (indexes is None or index in indexes):
                clause_numbers.add(source.find_clause(place.position))
        return [source.sentence.clauses[clause] for clause in sorted(clause_numbers)]

    def all_used_clauses(self, indexes: Sequence[int] | None = None) -> list[Clause]:
        """Return the clauses of all sources from which the note takes words."""
        clauses: list[Clause] = []
        for number in range(len(self.sources)):
            clauses += self.used_clauses(number, indexes)
        return clauses

    def note_clauses(self) -> Iterator[tuple[Clause, list[int]]]:
        """Yield each clause of the note, with the indexes of its words."""
        start = 0
        for clause in self.note.clauses:
            end = start + len(clause.tokens)
            yield clause, list(range(start, end))
            start = end

    def positions_in(self, number: int) -> list[int]:
        """Return the positions of the note's words in a source, in the order of the note."""
        places = [place for _, place in sorted(self.places.items())]
        return [place.position for place in places if place.source == number]

    def list_names(self) -> list[Token]:
        """List the names in the note and its sources.

        A name at the beginning of a sentence is recognised by its other occurrences. The note's
        first word may also be a name.
        """
        tokens = [*self.note.tokens]
        for source in self.sources:
            tokens += source.tokens
        names = [token for token in tokens if token.is_name]
        word = re.match(r"\W*(\w+)", self.note.text)
        if word and word[1][0].isupper() and self.note.tokens[:1]:
            first = self.note.tokens[0]
            if first.form == word[1].casefold():
                names.append(first)
        return names

    def list_figures(self, indexes: Sequence[int]) -> set[int]:
        """Return the figures among these words of the note, except those of a repeated date."""
        tokens = self.note.tokens
        figures = set()
        for index in indexes:
            number = tokens[index].number
            is_repeated_date = self.has_same_date and is_date_number(tokens, index)
            if number is not None and not is_repeated_date:
                figures.add(number)
        return figures


def split_all(content: str, typed: Sequence[TypedText]) -> tuple[list[SplitSentence], list[Source]]:
    """Split a note and the typed messages into sentences.

    Returns the sentences of the note, and those of the messages as sources.
    """
    languages = _find_likely_languages(content, typed)
    sources: list[Source] = []
    for message, text in enumerate(typed):
        question_tokens: list[Token] = []
        for sentence in split_statement(text.question, languages):
            question_tokens += sentence.tokens
        question = tuple(question_tokens)
        for sentence in split_statement(text.text, languages):
            source = Source(sentence, len(sources), message, text.day, question, text.is_accepted)
            sources.append(source)
    notes = [sentence for sentence in split_statement(content, languages) if sentence.tokens]
    return notes, sources


def _find_likely_languages(content: str, typed: Sequence[TypedText]) -> frozenset[str]:
    """Return the languages of the messages.

    Prefer languages in which the note may also be written.
    """
    messages = " ".join(text.text for text in typed)[-LANGUAGE_CHARS:]
    languages = find_languages(messages)
    common_languages = languages & find_languages(f"{messages} {content}")
    return common_languages or languages


def align(note: SplitSentence, sources: Sequence[Source]) -> Alignment:
    """Choose up to `MAX_SOURCES` typed sentences that together contain most words of a note.

    Each step chooses the sentence with the most words that are still missing. If several are
    equally good, it chooses the latest.
    """
    remaining = set(range(len(note.tokens)))
    note_sources: list[Source] = []
    places: dict[int, Place] = {}
    while remaining and len(note_sources) < MAX_SOURCES:
        candidates = [source for source in sources if _may_join(source, note_sources)]
        best, positions = _find_best(note, remaining, candidates)
        if best is None:
            break
        for index, position in positions.items():
            places[index] = Place(len(note_sources), position)
        note_sources.append(best)
        remaining -= positions.keys()
    has_same_date = _has_same_date(note, note_sources or sources[-1:])
    missing = []
    for index in sorted(remaining):
        is_repeated_date = has_same_date and _is_of_date(note.tokens, index)
        if not is_repeated_date and not _is_in_question(note.tokens[index], note_sources):
            missing.append(note.tokens[index])
    return Alignment(note, note_sources, places, missing, has_same_date)


def _find_best(
    note: SplitSentence, remaining: set[int], candidates: Sequence[Source]
) -> tuple[Source | None, dict[int, int]]:
    """Find the candidate that contains most of the `remaining` words of the note.

    Returns it with the positions of these words, by their index. If several are equally good,
    return the latest.
    """
    best: Source | None = None
    best_positions: dict[int, int] = {}
    for source in candidates:
        positions = _match(note.tokens, remaining, source.tokens)
        if positions and len(positions) >= len(best_positions):
            best, best_positions = source, positions
    return best, best_positions


def _may_join(source: Source, note_sources: Sequence[Source]) -> bool:
    """Return whether a source is close enough to the first chosen one to be about the same
    thing."""
    if not note_sources:
        return True
    distance = abs(source.message - note_sources[0].message)
    return source not in note_sources and distance <= NEAR_MESSAGES


def _match(note: Sequence[Token], indexes: set[int], typed: Sequence[Token]) -> dict[int, int]:
    """Map each of these words of the note to its position in a typed sentence.

    Words that the sentence lacks are left out. Each typed word is used once. If a word occurs
    several times, use the occurrence after the previous match.
    """
    positions: dict[int, int] = {}
    last = -1
    for index in sorted(indexes):
        candidates = _find_positions(note[index], typed, set(positions.values()))
        if candidates:
            later = [position for position in candidates if position > last]
            last = min(later) if later else candidates[0]
            positions[index] = last
    return positions


def _find_positions(token: Token, typed: Sequence[Token], used_positions: set[int]) -> list[int]:
    """Return the unused positions of a word. Prefer positions with exactly the same spelling."""
    positions = [
        position
        for position, typed_token in enumerate(typed)
        if position not in used_positions and is_same_word(token, typed_token)
    ]
    exact = [position for position in positions if typed[position].form == token.form]
    return exact or positions


def is_certain(token: Token) -> bool:
    """Return whether a word is a name or a figure. The person must have typed it."""
    return token.is_name or token.number is not None


def _find_days_ahead(source: Source) -> list[int]:
    """Return the days (ordinals) that a sentence means by "in a week" or "in three days"."""
    sentence = source.sentence
    days: list[int] = []
    for language in sentence.languages:
        for match in ahead_pattern(language).finditer(sentence.plain):
            words = (match["span"], match["count"])
            length = next(filter(None, map(span_days, words)), None)
            if length is not None:
                count = max(numbers_in(match["count"]), default=1)
                days.append(source.day.toordinal() + count * length)
    return days


def _is_in_question(token: Token, sources: Sequence[Source]) -> bool:
    """Return whether a word comes from the question that a source answers.

    Names and figures don't count, because the person must have typed them.
    """
    if is_certain(token):
        return False
    for source in sources:
        for question_token in source.question:
            if not is_certain(question_token) and is_same_word(token, question_token):
                return True
    return False


def _is_of_date(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a word is part of a date, such as "3" next to "March"."""
    token = tokens[index]
    if token.number is not None and month_number(token.form) is None:
        return is_date_number(tokens, index)
    return _is_date_word(token)


def is_date_number(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a number is a year, or a day or month next to another part of a date."""
    number = tokens[index].number
    if number is None or number > 31:
        return number is not None and number > MIN_YEAR
    neighbours = [*tokens[max(0, index - 1) : index], *tokens[index + 1 : index + 2]]
    for token in neighbours:
        if token.number is not None and month_number(token.form) is None:
            if token.number > MIN_YEAR:
                return True
        elif _is_date_word(token) and (token.form in _DATE_SIGNS or not is_span(token.form)):
            return True
    return False


def _has_same_date(note: SplitSentence, sources: Sequence[Source]) -> bool:
    """Return whether the note has the date that a source means by "tomorrow" or "on Wednesday"."""
    for source in sources:
        note_periods = set(find_periods(note.text, source.day))
        if note_periods and note_periods & _find_meant_periods(source):
            return True
    return False


def _find_meant_periods(source: Source) -> set[tuple[int, int]]:
    """Return the periods that a sentence may mean, as ordinals of their first and last days.

    A weekday may mean the last such day, the next one, or the day a week after the next one.
    """
    periods = set(find_periods(source.sentence.text, source.day))
    periods |= {(day, day) for day in _find_days_ahead(source)}
    today = source.day.toordinal()
    is_next = has_marker(source.sentence.text, "next", source.sentence.languages)
    week_later = {
        (first + DAYS_OF_WEEK, last + DAYS_OF_WEEK)
        for first, last in periods
        if last < today or is_next
    }
    return periods | week_later


def _is_date_word(token: Token) -> bool:
    if is_span(token.form) or token.form in _DATE_SIGNS:
        return True
    # "1 after 2024" is a date of more than a day.
    days = find_periods(f"1 {token.form} 2024", _ANY_DAY)
    return any(first == last for first, last in days) or bool(find_periods(token.form, _ANY_DAY))


def markers_of(clauses: Sequence[Clause]) -> frozenset[Marker]:
    return frozenset().union(*(clause.markers for clause in clauses))


def people_of(clauses: Sequence[Clause]) -> frozenset[str]:
    return frozenset().union(*(clause.people for clause in clauses))


# --- Words that the note changes ---


def drops_inner_words(alignment: Alignment) -> bool:
    """Return whether the note drops a word of a clause that it uses, as in "half sister".

    The word is between others, or before them: "the fake Eve is my boss". A name may also be behind
    them, because it may limit the statement: "Eve may read my mail from Ben".
    """
    if alignment.is_corrected_inside:
        return False
    for number, source in enumerate(alignment.sources):
        previous = -1
        for position in sorted(alignment.positions_in(number)):
            dropped = [
                place
                for place in range(previous + 1, position)
                if source.are_in_same_clause(place, position)
            ]
            is_date = alignment.has_same_date and bool(dropped) and _is_date(source, dropped)
            if dropped and not is_date and not _is_lead(source, dropped[0]):
                return True
            previous = position
        if previous >= 0 and _has_name_behind(source, previous):
            return True
    return False


def _has_name_behind(source: Source, position: int) -> bool:
    """Return whether a name follows a word in its clause."""
    return any(
        source.tokens[place].is_name and source.are_in_same_clause(place, position)
        for place in range(position + 1, len(source.tokens))
    )


def _is_lead(source: Source, position: int) -> bool:
    """Return whether a word begins a clause that a note may repeat without it.

    Examples are "you should know that I swim" and "Languages that I speak: Dutch".
    """
    clause = source.sentence.clauses[source.find_clause(position)]
    is_first = clause.tokens[:1] == (source.tokens[position],)
    is_heading = f"{clause.text}:" in source.sentence.text
    return is_first and (is_heading or begins_with(clause.text, "plain", source.sentence.languages))


def _is_date(source: Source, positions: Sequence[int]) -> bool:
    """Return whether words of a source may be a date, such as "last year" and "in a week".

    In scripts without spaces, a part of a date isn't recognized, so any word may be one.
    """
    forms = [source.tokens[position].form for position in positions]
    if all(_is_of_date(source.tokens, position) for position in positions):
        return True
    is_ahead = any(map(is_span, forms)) and bool(_find_days_ahead(source))
    following = [token.form for token in source.tokens[positions[-1] + 1 :][:1]]
    phrases = (" ".join(forms), " ".join(forms + following))
    return (
        is_ahead or is_unspaced(forms[0]) or any(find_periods(each, source.day) for each in phrases)
    )


@dataclass(frozen=True, slots=True)
class _Link:
    """A small word with the words before and behind it."""

    before: str
    link: str
    word: str

    def is_between(self, forms: Collection[str]) -> bool:
        return self.before in forms and self.word in forms

    def is_among(self, others: Sequence[_Link]) -> bool:
        """Return whether the same small word stands before the word, perhaps in another form."""
        return any(self.link == other.link and self._has_word_of(other) for other in others)

    def is_moved_in(self, typed: Sequence[_Link]) -> bool:
        """Return whether the typed word has another small word, or another word has this one."""
        is_near = any(self.link == other.link or self._has_word_of(other) for other in typed)
        return is_near and not self.is_among(typed)

    def _has_word_of(self, other: _Link) -> bool:
        return is_same_word(Token(self.word), Token(other.word))


def changes_links(alignment: Alignment) -> bool:
    """Return whether the note has another small word before a word than the person typed.

    Such words show who does what to whom: "from Ana" and "for Ana". The list `links` has them. A
    list may need one that wasn't typed: "allergic to cats" for "allergies: cats".
    """
    if alignment.is_foreign or alignment.is_corrected_inside:
        return False
    noted = _list_links(alignment.note)
    typed: list[_Link] = []
    for number, source in enumerate(alignment.sources):
        links = _list_links(source.sentence)
        forms = {source.tokens[position].form for position in alignment.positions_in(number)}
        if any(link.is_between(forms) and not link.is_among(noted) for link in links):
            return True
        typed += links
    return any(
        link.is_moved_in(typed) and not (alignment.has_same_date and link.word.isdecimal())
        for link in noted
    )


def _list_links(sentence: SplitSentence) -> list[_Link]:
    """Return the small words of a sentence that the list `links` has."""
    forms = {token.form for token in sentence.tokens}
    links = {word for language in sentence.languages for word in list_links(language)}
    sentence_links: list[_Link] = []
    before, link = "", ""
    for word in re.findall(r"[^\W\d_]+|\d+", evidence_pattern("user").sub(" ", sentence.plain)):
        if word in links and word not in forms:
            link = word
        elif word in forms:
            if link:
                sentence_links.append(_Link(before, link, word))
            before, link = word, ""
    return sentence_links


def has_corrected_typo(alignment: Alignment) -> bool:
    """Return whether a word of the note equals a typed word only if the typed word has a typo.

    Such a word may be another one: the person typed "sails" or "Christine", and the note has
    "sells" or "Christian".
    """
    names = {token.form for token in alignment.list_names()}
    for index, place in alignment.places.items():
        token = alignment.note.tokens[index]
        source = alignment.sources[place.source]
        typed = source.tokens[place.position]
        is_first = place.position == 0 and typed.form == source.sentence.plain.split(" ", 1)[0]
        are_names = token.form in names and (typed.is_name or is_first)
        if is_typo(token, typed, are_names=are_names):
            return True
    return False


# --- Comments ---


def leaves_comment_out(alignment: Alignment) -> bool:
    """Return whether the note leaves out a few words that may say who spoke, or that it's a joke.

    Such words come after a comma (", reads the leaflet") or before a dash ("from the board - ").
    The sender doesn't speak of themselves in them.
    """
    for number, source in enumerate(alignment.sources):
        sentence = source.sentence
        places = [sentence.clauses.index(clause) for clause in alignment.used_clauses(number)]
        for place, clause in enumerate(sentence.clauses):
            is_unused = not min(places) <= place <= max(places)
            if is_unused and _may_comment(clause, sentence, alignment.note):
                set_off = _BEHIND if place > max(places) else _BEFORE
                if re.search(set_off.format(re.escape(clause.text)), sentence.text):
                    return True
    return False


def _may_comment(clause: Clause, sentence: SplitSentence, note: SplitSentence) -> bool:
    """Return whether a clause is short, has no word of the note, and isn't about the sender."""
    if not 0 < len(clause.tokens) <= COMMENT_WORDS or not clause.markers.isdisjoint(_OWN_MARKERS):
        return False
    if begins_with(clause.text, "plain", sentence.languages):
        return False
    return not any(
        token.number is not None or any(is_same_word(token, other) for other in note.tokens)
        for token in clause.tokens
    )


def is_taken_back(alignment: Alignment, sources: Sequence[Source]) -> bool:
    """Return whether a short sentence after the used ones takes them back: "Just kidding", "Not!".

    The sentence must be in the same message.
    """
    last = max((source.number for source in alignment.sources), default=0)
    messages = {source.message for source in alignment.sources}
    for source in sources:
        is_behind = source.message in messages and source.number > last
        if is_behind and takes_back(source.sentence):
            return True
    return False
