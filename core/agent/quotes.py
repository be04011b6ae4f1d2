"""Analyses questions and the statements that may answer them, so that both can be compared.

A question has words of topics and other words. A topic word, such as "live" of the topic "home",
matches any statement with that topic. All other words must occur in the statement. Names count more
than other words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, lru_cache

from core.dates.periods_in_text import month_number
from core.facts.changes import (
    Reading,
    begins_with_action,
    find_actor,
    find_values,
    languages_of,
    read_changes,
    starts_later,
    topic_words_in,
    topics_of,
    topics_of_people,
)
from core.facts.wording import have_same_stem
from core.text.normalize import fold, is_unspaced, language_data, plain_with_offsets, words_of
from core.text.terms import content_words, names_in, query_terms, word_terms

NAME_WEIGHT = 2
ATTRIBUTE_WEIGHT = 0.5
NARROW_TOPICS = frozenset(("rent",))
"""The words of these topics also belong to a wider topic, such as home."""
PEOPLE_TOPICS = frozenset(("partner", "children", "siblings"))
"""In these topics, a statement about one person ("my son") answers questions about the group ("my
children")."""
ATTRIBUTE_TOPICS = frozenset(("name",))
"""These topics count less than the person whose attribute they are: "what's my daughter's
name?"."""
MIN_STEM_CHARS = 3
"""Words of at most this length have no endings."""
MIN_SHARED_CHARS = 1
"""A word without spaces that two statements have in common must be longer than this."""
MIN_DISTINCTIVE_CHARS = 4
"""A word that isn't a name must be at least this long to show the subject of a statement."""
MAX_LENGTH_DIFFERENCE = 2
"""Two numbers may be values of the same thing if their lengths differ by at most this."""
PERSONAL_TOPICS = frozenset(("home", "work"))
"""Topics in which each person has their own state, such as a home."""
MAX_SUBJECT_CHARS = 4
"""The subject of a text without spaces has at most this many characters."""
MAX_STATEMENTS_WITH_WORD = 3
"""A word that occurs in more statements doesn't count as shared by two of them."""
MIN_RELEVANCE = 0.5
"""A statement answers a question if it covers at least this share of the question's words."""
MAX_CACHED_TEXTS = 500
PRONOUNS = ("he", "she", "er", "sie", "il", "elle")
_SUBJECT_LANGUAGES = (("english",), ("german",), ("french",))
"""Languages in which every sentence has a subject."""
_INNER_NAME = re.compile(r"(?<=[\w,] )[A-Z][a-z]{2,}(?!\w)")
_INNER_NOUN = re.compile(r"(?<=[\w,] )[A-ZÄÖÜ]\w+")
_POSSESSIVE_NAME = re.compile(r"\w+['’]s ")
_POSSESSION = re.compile(r"['’]s ")
_ARTICLE = re.compile(r"[oOaA] (?=[A-ZÁÂÉÊÍÓÔÚ])")
"""The Portuguese article before a name."""
_OPENING_WORD = re.compile(r"[^\W\d_]+")
_GERMAN_SUBJECT = re.compile(r"([A-ZÄÖÜ]\w+) (?:hat|ist|war|\w{2,}t)(?!\w)")
"""A name and a verb: "Jonas fährt". Most nouns have an article or other words around them."""


@dataclass(eq=False, slots=True)
class Quote:
    """A message or fact that may answer a question."""

    text: str
    at: datetime
    # The speaker as the subject of a sentence: "You", "I", "Ben".
    speaker: str
    # Whether the asker typed the text.
    is_askers: bool = False
    session_id: int | None = None
    message_id: int | None = None
    # The rank in the results of the search, or None if the search didn't match this message.
    rank: int | None = None
    # When the statement stopped being true, as a clause: "until May 2027, no longer so".
    end: str = ""
    # The share of the question's words that the statement covers, from 0 to 1.
    relevance: float = 0.0
    # The same share without the relevance that it takes over from a replaced statement.
    coverage: float = 0.0
    # The number of the question's words that the statement, or one that it replaces, contains.
    word_count: int = 0
    # Whether the quote is listed below a neighbouring message of the same conversation.
    follows: bool = False
    # The later statement that replaced this one.
    replaced_by: Quote | None = None
    # Whether a later statement about the same subject ranks above this one.
    is_outranked: bool = False
    reading: Reading = field(init=False)

    def __post_init__(self) -> None:
        self.reading = read_changes(self.text)

    @property
    def is_over(self) -> bool:
        return bool(self.end) or self.replaced_by is not None


def _find_inner_names(text: str) -> list[str]:
    """Return the capitalized words inside a question, in plain form, without days and months.

    `names_in` leaves out names that are also words of another language, such as "Ella". This
    function finds them.
    """
    if languages_of(text) == ("german",):
        return []
    words = [plain_text(match[0]) for match in _INNER_NAME.finditer(text)]
    return [word for word in words if not month_number(word) and not find_values(word)]


class AskedQuestion:
    """A question with its words, names and topics. It measures how well quotes answer it."""

    def __init__(self, text: str, now: datetime) -> None:
        self.text = text
        self.now = now
        self.reading = read_changes(text)
        self.topic_words = topic_words_in(text)
        self.topics = {topic for topics in self.topic_words.values() for topic in topics}
        self.names = {name.casefold() for name in names_in(text)}
        # The question has no subject in the first person, in a language that needs one.
        self.is_impersonal = languages_of(text) in _SUBJECT_LANGUAGES and not (
            {"speaker", "other"} & self.reading.kinds
        )
        # The words that belong to no topic. They must occur in a statement literally.
        self.words = [
            word
            for word in distinct_words(self._separate_topics(text))
            if not self._is_topic_word(word)
        ]
        # The person at the beginning of a question, in a language that marks subjects.
        self.actor = find_actor(text)
        if self.actor and self.actor not in self.words:
            self.words.append(self.actor)
        for name in _find_inner_names(text):
            self.names.add(name)
            if name not in self.words:
                self.words.append(name)

    def _separate_topics(self, text: str) -> str:
        """Return a text with spaces around topic words of languages that don't use spaces.

        Without the spaces, the last character of a topic word and the character after it would form
        a word.
        """
        for topic_word in self.topic_words:
            if is_unspaced(topic_word) and len(topic_word) > 1:
                text = text.replace(topic_word, f" {topic_word} ")
        return text

    def _is_topic_word(self, word: str) -> bool:
        """Return whether a word is a topic word or, in text without spaces, a part of one.

        Parts of a question word, such as "哪", count as well.
        """
        if is_unspaced(word):
            if len(word) == 1 or not _question_characters().isdisjoint(word):
                return True
            return any(word in topic or topic in word for topic in self.topic_words)
        return any(word in topic.replace("'", " ").split() for topic in self.topic_words)

    @property
    def subjects(self) -> list[str]:
        """The names in the question. In German, nouns count as well."""
        if languages_of(self.text) == ("german",):
            inner = {plain_text(match[0]) for match in _INNER_NOUN.finditer(self.text)}
            return [word for word in self.words if word in inner]
        return [word for word in self.words if self.is_name(word) and not is_unspaced(word)]

    @property
    def unspaced_subject(self) -> str:
        """The first word of a question without spaces.

        It's "" if the question begins with a topic word.
        """
        word = next((word for word in self.words if is_unspaced(word)), "")
        start = plain_text(self.text).find(word)
        begins = [plain_text(self.text).find(topic) for topic in self.topic_words]
        return "" if any(0 <= begin < start for begin in begins) else word

    def find_missing(self, text: str) -> list[str]:
        """Return the words of the question that aren't topic words and that a text doesn't
        contain."""
        words = words_in(text)
        return [word for word in self.words if not words.contain(word)]

    def measure_coverage(self, quote: Quote) -> float:
        """Return the share of the question's words that a statement covers, from 0 to 1.

        A name counts more than other words.
        """
        weights = {word: NAME_WEIGHT if self.is_name(word) else 1 for word in self.words}
        topic_weights = {
            word: ATTRIBUTE_WEIGHT if topics <= ATTRIBUTE_TOPICS else 1
            for word, topics in self.topic_words.items()
        }
        total = sum(weights.values()) + sum(topic_weights.values())
        if not total:
            return 0.0
        missing = self.find_missing(quote.text)
        covered_weight: float = sum(
            weight for word, weight in weights.items() if word not in missing
        )
        topics = self._find_topics(quote)
        covered_weight += sum(
            topic_weights[word]
            for word, word_topics in self.topic_words.items()
            if not word_topics.isdisjoint(topics)
        )
        return covered_weight / total

    def count_topic_words(self, quote: Quote) -> int:
        """Return how many of the question's topic words occur in a statement.

        "My boss is Ingrid" has the topic of "who is my dentist?", but not its word.
        """
        words = words_in(quote.text)
        return sum(map(words.contain, self.topic_words))

    def count_words(self, quote: Quote) -> int:
        """Return how many of the question's words that belong to no topic a statement contains."""
        return len(self.words) - len(self.find_missing(quote.text))

    def _find_topics(self, quote: Quote) -> Collection[str]:
        """Return the topics of a statement that count for the question.

        A narrow topic counts only if the question has it, too: the price of the rent doesn't answer
        where a person lives.
        """
        unasked_topics = (NARROW_TOPICS & quote.reading.topics) - self.topics
        if not unasked_topics:
            return quote.reading.topics
        topic_words = topic_words_in(quote.text)
        narrow_words = [word for word, topics in topic_words.items() if topics & unasked_topics]
        remaining = [
            topics
            for word, topics in topic_words.items()
            if not any(word in narrow_word for narrow_word in narrow_words)
        ]
        return frozenset().union(*remaining)

    def is_name(self, word: str) -> bool:
        """Return whether a word of the question is part of a name, or is written without spaces."""
        if is_unspaced(word):
            return len(word) > 1
        # In German, every noun has a capital letter.
        if languages_of(self.text) == ("german",):
            return False
        return any(word in plain_text(name) for name in self.names)

    def compute_penalty(self, quote: Quote, others: Sequence[Quote]) -> int:
        """Return 0 for a statement about the asker's present state, and more for another statement.

        A statement about an earlier, later or limited time, or about an imagined case, gets a
        penalty of 1, unless the question asks about that time or case. It is 2 for a statement
        about another person.
        """
        if self._is_about_another_person(quote, others):
            return 2
        kinds = quote.reading.kinds
        if starts_later(quote.text, quote.at.date(), self.now.date()) and self._asks_for_state():
            return 1
        for kind in ("unreal", "past", "temporary"):
            if kind in kinds and kind not in self.reading.kinds:
                return 1
        return 0

    def _asks_for_state(self) -> bool:
        """Return whether the question asks for a present state rather than a plan."""
        return "plan" not in self.topics and self.reading.kinds.isdisjoint(("when", "start"))

    def _is_about_asker(self) -> bool:
        """Return whether the question is about its asker or names no person."""
        if "speaker" in self.reading.kinds or languages_of(self.text) == ("german",):
            return True
        return "other" not in self.reading.kinds and not self.names

    def _is_about_another_person(self, quote: Quote, others: Sequence[Quote]) -> bool:
        """Return whether a statement is about a person other than the asker and those in the
        question."""
        if not self._is_about_asker():
            return False
        if "speaker" not in self.reading.kinds:
            words = words_in(quote.text)
            if any(map(words.contain, self.subjects)):
                return False
            if self.actor and words.contain(self.actor):
                return False
        if "other" in quote.reading.kinds:
            return self._omits_person(quote.reading.person)
        if "speaker" in quote.reading.kinds:
            return False
        if self.is_impersonal and not _POSSESSIVE_NAME.match(quote.text):
            return False
        opening_name = find_opening_name(quote.text)
        if opening_name is None:
            return False
        name = plain_text(opening_name)
        if words_in(self.text).contain(name):
            return False
        return not any(
            name in words_of(plain_text(other.text)) for other in others if other is not quote
        )

    def _omits_person(self, person: str) -> bool:
        """Return whether a person, such as "my cousin" or "she", is missing from the question."""
        # "My boss" belongs to "who is my manager?", but not to "where do I work?".
        asked_topics = (self.topics & PEOPLE_TOPICS) | topics_of_people(self.text)
        if not asked_topics.isdisjoint(topics_of(person)):
            return False
        if self.is_impersonal and person in PRONOUNS:
            return False
        # "my cousin" is in "when is my cousin's birthday?", but "my" alone isn't.
        # In "엄마 주치의", the person comes first; in "le médecin de maman", last.
        person_words = distinct_words(person)[:1] if is_unspaced(person) else words_of(person)[-1:]
        return not any(map(words_in(self.text).contain, person_words))


def find_acting_person(text: str) -> str:
    """Return the name of the person who acts at the beginning of a message, or "".

    The name is in plain form: "jake" for "Jake moved in next door". "Bristol is home now" also
    begins with a name, but is about the writer, so the result is "".
    """
    article = _ARTICLE.match(text) if "portuguese" in languages_of(text) else None
    begin = article.end() if article is not None else 0
    name = find_opening_name(text[begin:])
    if name is not None:
        following = text[begin + len(name) :]
        if begins_with_action(following):
            return plain_text(name)
        if _POSSESSION.match(following) and "speaker" not in read_changes(text).kinds:
            return plain_text(name)
    return find_actor(text)


def find_opening_name(text: str) -> str | None:
    """Return the name that a message begins with, or None."""
    languages = languages_of(text)
    if languages == ("german",):
        match = _GERMAN_SUBJECT.match(text)
        name = match[1] if match is not None else None
    else:
        match = _OPENING_WORD.match(text)
        is_name = match is not None and match[0][0].isupper() and names_in(f"x {text}")
        name = match[0] if match is not None and is_name else None
    if name is None or ("german" in languages and _german_nouns().fullmatch(plain_text(name))):
        return None
    # "Skoda is sold" begins with a car.
    if topics_of(name):
        return None
    return name


@lru_cache(maxsize=MAX_CACHED_TEXTS)
def words_in(text: str) -> Words:
    """Return the words of a text. The latest results are cached."""
    return Words(text)


class Words:
    """The words of a text, with a test for a word in any of its forms."""

    def __init__(self, text: str) -> None:
        self._plain = plain_text(text)
        self._words = words_of(self._plain)
        self._terms = frozenset(word_terms(text))

    def contain(self, word: str) -> bool:
        """Return whether the text contains a form of a word.

        The last part of a compound counts as a match: "Garten" matches "Schrebergarten".
        """
        if is_unspaced(word):
            return word in self._plain
        if word in self._words or not self._terms.isdisjoint(word_terms(word)):
            return True
        return any(
            len(own) > MIN_STEM_CHARS
            and len(word) > MIN_STEM_CHARS
            and (have_same_stem(word, own) or word.endswith(own) or own.endswith(word))
            # "Fridays" is no form of "fridge".
            and find_values(word) == find_values(own)
            for own in self._words
        )


def distinct_words(text: str) -> list[str]:
    """Return the words that show the subject of a text, in plain form.

    Text without spaces is divided into pairs of characters.
    """
    words = content_words([word.casefold() for word in words_of(text) if not is_unspaced(word)])
    plain_words = [plain_text(word) for word in words]
    unspaced_terms = [term for term in query_terms(text) if is_unspaced(term)]
    return [word for word in (*plain_words, *unspaced_terms) if word not in _common_words()]


@cache
def _common_words() -> frozenset[str]:
    """Return words that occur in questions about anything, such as "still"."""
    words: str = language_data("changes", "core.facts")["common"]["words"]
    return frozenset(words.split())


@cache
def _german_nouns() -> re.Pattern[str]:
    """Return a pattern for nouns that begin German messages without an article."""
    return re.compile("|".join(language_data("changes", "core.facts")["german"]["nouns"]))


@cache
def _question_characters() -> frozenset[str]:
    """Return the characters that form question words in languages without spaces."""
    characters: str = language_data("changes", "core.facts")["common"]["question_characters"]
    return frozenset(fold(characters))


def is_distinctive(word: str, quote: Quote) -> bool:
    """Return whether a word shows the subject of a statement, unlike words such as "day".

    Names and words of at least `MIN_DISTINCTIVE_CHARS` characters do.
    """
    if is_unspaced(word):
        return len(word) > MIN_SHARED_CHARS
    if len(word) >= MIN_DISTINCTIVE_CHARS:
        return True
    return any(word in plain_text(name).split() for name in names_in(f"x {quote.text}"))


def plain_text(text: str) -> str:
    return plain_with_offsets(fold(text))[0].casefold()


def are_about_different_things(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Return whether a newer statement can't update an older one, because the subjects differ."""
    return (
        _differ_in_narrow_topic(question, newer, older)
        or _omits_person_of_question(question, newer, older)
        or _adds_name_of_question(question, newer, older)
        or is_about_another_person(newer, older)
        or is_less_specific(question, newer, older)
    )


def list_shared_words(
    question: AskedQuestion, newer: Quote, older: Quote, own: Sequence[Quote]
) -> list[str]:
    """Return the distinctive words that both statements contain and the question doesn't."""
    newer_words = words_in(newer.text)
    shared = [
        word
        for word in dict.fromkeys(distinct_words(older.text))
        if is_distinctive(word, older) and newer_words.contain(word) and word not in question.words
    ]
    return [
        word
        for word in shared
        if sum(words_in(other.text).contain(word) for other in own) <= MAX_STATEMENTS_WITH_WORD
    ]


def score_new_value(newer: Quote, older: Quote) -> float:
    """Score the new values in the newer of two statements.

    Returns 1.5 if it has another day, time or number than the older one, 1 if it has another name,
    and 0 if it has no new value.
    """
    old_values = find_values(older.text)
    for form, values in find_values(newer.text).items():
        if form in old_values and not values <= old_values[form]:
            return 1.5
    # The first word of a text has a capital in any case, so a word is put before it.
    old_names = set(names_in(f"x {older.text}"))
    new_names = set(names_in(f"x {newer.text}"))
    has_new_name = bool(old_names) and not new_names <= old_names
    return 1.0 if has_new_name else 0.0


def has_new_value(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Return whether a relevant statement gives another day, time or number than an older one.

    The result is False if the statements have only names in common: Zoe's birthday is no new value
    of her age.
    """
    if newer.relevance < MIN_RELEVANCE or not newer.reading.holds:
        return False
    if not _share_more_than_names(question, newer, older):
        return False
    if "addition" in newer.reading.kinds:
        return False
    old_values = find_values(older.text)
    new_values = find_values(newer.text)
    return any(
        not values <= old_values[form] and _have_similar_lengths(values, old_values[form])
        for form, values in new_values.items()
        if form in old_values
    )


def _share_more_than_names(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Return whether two statements share the topics of the question, or a word but its names."""
    asked_topics = older.reading.topics & question.topics
    if asked_topics and asked_topics <= newer.reading.topics:
        return True
    newer_words = words_in(newer.text)
    return any(
        newer_words.contain(word) and word.isalpha() and not question.is_name(word)
        for word in distinct_words(older.text)
        if is_distinctive(word, older) and word not in question.topic_words
    )


def _have_similar_lengths(values: Collection[str], others: Collection[str]) -> bool:
    """Return whether a value is about as long as one of the others.

    A six-digit code, for example, isn't a new hour.
    """
    return any(
        abs(len(value) - len(other)) <= MAX_LENGTH_DIFFERENCE
        for value in values
        for other in others
    )


def share_subject(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Return whether two statements are about the same subject.

    "Maya has quit piano" replaces "Maya and Finn take piano" only in answers about Maya.
    """
    newer_words = words_in(newer.text)
    missing = _list_omitted_words(question, newer, older)
    if _differ_in_narrow_topic(question, newer, older):
        return False
    if question.unspaced_subject in missing:
        return _names_former_value(question, newer, older)
    if _omits_person_of_question(question, newer, older) or _adds_name_of_question(
        question, newer, older
    ):
        return False
    common_topics = newer.reading.topics & older.reading.topics & question.topics
    if common_topics and not missing:
        return True
    shared = [
        word
        for word in distinct_words(older.text)
        if newer_words.contain(word) and (word in question.words or is_distinctive(word, older))
    ]
    # A shared word of the question also shows a shared subject.
    if any(word in question.words for word in shared):
        return True
    # A statement with another topic must share two words instead of one.
    min_shared = 2 if has_other_topic(question, newer, older) else 1
    return len(shared) >= min_shared


def _list_omitted_words(question: AskedQuestion, newer: Quote, older: Quote) -> list[str]:
    """Return the question's words that the older statement contains and the newer one doesn't."""
    older_words = words_in(older.text)
    return [word for word in question.find_missing(newer.text) if older_words.contain(word)]


def _omits_person_of_question(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Return whether the newer statement isn't about the person in the question.

    "Sam dropped scouts" isn't about Ella, but "swimming moved to Tuesdays" may be. In text without
    spaces, the first word of the question is taken for its subject.
    """
    missing = _list_omitted_words(question, newer, older)
    if question.unspaced_subject in missing:
        return True
    if not any(word in missing for word in question.subjects):
        return False
    if "speaker" in newer.reading.kinds and "other" in older.reading.kinds:
        return True
    if not any(map(question.is_name, missing)):
        return False
    return _is_about_person(newer, older) or not share_distinctive_word(newer, older)


def is_about_another_person(newer: Quote, older: Quote) -> bool:
    """Return whether a newer statement begins with a person whom the older one doesn't name.

    The result is also True if the newer statement is about the asker's own home or work, and the
    older one is about another person's.
    """
    name = find_acting_person(newer.text)
    if name:
        return not words_in(older.text).contain(name)
    if "speaker" not in newer.reading.kinds or older.reading.topics.isdisjoint(PERSONAL_TOPICS):
        return False
    name = find_acting_person(older.text)
    return bool(name) and not words_in(newer.text).contain(name)


def is_less_specific(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Return whether only the older statement has a topic word of the question.

    "My boss is Ingrid" doesn't update "my dentist is Ana" in answers about the dentist. The result
    is False if the newer statement mentions a change or shares a distinctive word with the older
    one.
    """
    if not newer.reading.kinds.isdisjoint(("change", "correction")):
        return False
    newer_words, older_words = words_in(newer.text), words_in(older.text)
    missing = [
        word
        for word in question.topic_words
        if older_words.contain(word) and not newer_words.contain(word)
    ]
    return bool(missing) and not share_distinctive_word(newer, older, question.topic_words)


def share_distinctive_word(newer: Quote, older: Quote, ignored: Collection[str] = ()) -> bool:
    newer_words = words_in(newer.text)
    return any(
        newer_words.contain(word)
        for word in distinct_words(older.text)
        if word not in ignored and is_distinctive(word, older)
    )


def _adds_name_of_question(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Return whether the newer statement has a name from the question that the older one lacks.

    The result is False if the statements share a distinctive word.
    """
    older_words = words_in(older.text)
    newer_words = words_in(newer.text)
    is_added = any(
        newer_words.contain(word) and not older_words.contain(word) for word in question.subjects
    )
    return is_added and not share_distinctive_word(newer, older)


def _is_about_person(newer: Quote, older: Quote) -> bool:
    """Return whether the newer statement is about a person, or has a name from the older one."""
    if "other" in newer.reading.kinds or find_opening_name(newer.text) is not None:
        return True
    newer_words = words_in(newer.text)
    names = (plain_text(name) for name in names_in(f"x {older.text}"))
    return any(newer_words.contain(word) for name in names for word in name.split())


def _differ_in_narrow_topic(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Return whether some, but not all, of the question and the statements have a narrow topic.

    The rent, for example, is a narrow topic.
    """
    new_topics, old_topics = newer.reading.topics, older.reading.topics
    for topic in NARROW_TOPICS & (new_topics | old_topics):
        is_asked = topic in question.topics
        if is_asked != (topic in new_topics) or is_asked != (topic in old_topics):
            return True
    return False


def has_other_topic(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Return whether a newer statement has topics, but none from the question or the older one."""
    topics = newer.reading.topics
    return bool(topics) and topics.isdisjoint(question.topics | older.reading.topics)


def _names_former_value(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Return whether a newer statement names the old value and the new one: "桂林不去了,改去三亚".

    The first characters of the older statement are its subject, so they don't count as a value.
    """
    if "swap" not in newer.reading.kinds:
        return False
    newer_words = words_in(newer.text)
    start = plain_text(older.text)[:MAX_SUBJECT_CHARS]
    return any(
        newer_words.contain(word)
        for word in distinct_words(older.text)
        if len(word) > MIN_SHARED_CHARS and word not in start and word not in question.words
    )
