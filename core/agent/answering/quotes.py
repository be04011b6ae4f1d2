"""Analyses questions and the statements that may answer them, so that both can be compared.

A question has words of topics and other words. A topic word, such as "live" of the topic "home",
matches any statement with that topic. All other words must occur in the statement. Names count more
than other words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, lru_cache

from core.dates.periods_in_text import find_periods, month_number
from core.facts.changes import (
    Reading,
    begins_with_action,
    count_filler_chars,
    find_actor,
    find_subject,
    find_values,
    languages_of,
    read_changes,
    reports_own_words,
    separate_speaker,
    starts_later,
    topic_words_in,
    topics_of,
    topics_of_people,
)
from core.facts.wording import extract_own_words, have_same_stem
from core.text.languages import latin_stop_words
from core.text.normalize import fold, is_unspaced, language_data, plain_with_offsets, words_of
from core.text.pastes import QUOTATION, TYPED_CHARS
from core.text.terms import content_words, names_in, query_terms, word_terms

NAME_WEIGHT = 2
ATTRIBUTE_WEIGHT = 0.5
NARROW_TOPICS = frozenset(("rent", "boss", "code", "shift"))
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
PERSONAL_TOPICS = frozenset(("home", "work"))
"""Topics in which each person has their own state, such as a home."""
NAME_CHARS = 2
"""Most given names without spaces have this many characters."""
MIN_ROOT_CHARS = 6
"""A longer word may be derived from a word with at least this many letters."""
MIN_RELEVANCE = 0.5
"""A statement answers a question if it covers at least this share of the question's words."""
MIN_QUOTED_RUN_CHARS = 8
"""A quotation without spaces of at least this many characters is a sentence, not a name."""
MAX_CACHED_TEXTS = 500
SPACED_LANGUAGES = ("german", "french", "spanish", "portuguese", "turkish")
"""Languages with stop words of their own. English ones are always ignored."""
PRONOUNS = ("he", "she", "er", "sie", "il", "elle")
_SUBJECT_LANGUAGES = (("english",), ("german",), ("french",))
"""Languages in which every sentence has a subject."""
_INNER_NAME = re.compile(r"(?<=[\w,] )[A-Z][a-z]{2,}(?!\w)")
_INNER_NOUN = re.compile(r"(?<=[\w,] )[A-ZÄÖÜ]\w+")
CLAUSE_BREAK = re.compile(r"[,;，、。]\s*|\s(?:and|und|et|y|e|и|ve)\s")
_PARAGRAPH_END = re.compile(r"\n\s*\n")
_POSSESSIVE_NAME = re.compile(r"\w+['’]s ")
_FURTHER_NAMES = re.compile(r"^(?: [^\W\d_a-zß-öø-ÿа-яё]\w+)+")
"""Further names of a person: " Львовна" after "Марина"."""
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
    # Whether the text is a note. Its time isn't known.
    is_note: bool = False
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
        self.topic_words = _drop_parts_of_narrow(topic_words_in(text))
        self.topics = {topic for topics in self.topic_words.values() for topic in topics}
        self.names = {name.casefold() for name in names_in(text)}
        # The question has no subject in the first person, in a language that needs one.
        self.is_impersonal = languages_of(text) in _SUBJECT_LANGUAGES and not (
            {"speaker", "other"} & self.reading.kinds
        )
        self.asks_for_person = _who_pattern().search(plain_text(text)) is not None
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

        The same goes for words with which speakers refer to themselves. Without the spaces, the
        last character of a topic word and the character after it would form a word.
        """
        text = separate_speaker(text)
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
        for topic in self.topic_words:
            if word in topic.replace("'", " ").split():
                # "Was macht Kilian beruflich?" asks for Kilian's work.
                return " " not in topic or word not in self.names
        return False

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

    def is_only_quoted(self, quote: Quote) -> bool:
        """Return whether a message answers the question only in words that it quotes.

        "Nadia wrote: “I live in Bath”" says where Nadia lives. It's about the asker only if they
        say the same in their own words, or quote themselves.
        """
        own_words = find_own_words(quote.text)
        if own_words == quote.text.strip() or reports_own_words(own_words):
            return False
        if any(map(words_in(own_words).contain, self.words)):
            return False
        own_reading = read_changes(own_words)
        is_about_asker = "speaker" in own_reading.kinds and "other" not in own_reading.kinds
        return not is_about_asker or own_reading.topics.isdisjoint(self.topics)

    def compute_penalty(self, quote: Quote, others: Sequence[Quote]) -> int:
        """Return 0 for a statement about the asker's present state, and more for another statement.

        A statement about an earlier, later or limited time, or about an imagined case, gets a
        penalty of 1, unless the question asks about that time or case. It is 2 for a statement
        about another person.
        """
        if self._is_about_another_person(quote, others) or self._is_answered_for_another(quote):
            return 2
        kinds = quote.reading.kinds
        unasked_topics = (NARROW_TOPICS & quote.reading.topics) - self.topics
        has_only_topics = self.asks_for_own_state() or not self.words
        if has_only_topics and unasked_topics and "speaker" not in kinds:
            # "The code at work is 5528" doesn't say where the asker works.
            return 1
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
        if not self._is_about_asker() or self._names_subject_of(quote):
            return False
        if self.asks_for_own_state() and self._has_other_subject(quote, others):
            return True
        if "other" in quote.reading.kinds:
            return self._omits_person(quote.reading.person) and not self._begins_with_asked(quote)
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

    def _begins_with_asked(self, quote: Quote) -> bool:
        """Return whether a statement names the asked person before another one.

        "The vet is Joe, she loves him" answers "who is my vet?".
        """
        if not self.asks_for_person:
            return False
        before, _, _ = plain_text(quote.text).partition(quote.reading.person)
        return any(map(words_in(before).contain, self.topic_words))

    def _is_answered_for_another(self, quote: Quote) -> bool:
        """Return whether only a clause about another person has the topic of a question about the
        asker's own home or work: "Tasha and I are a couple, she's a nurse"."""
        names_other = bool(self.words) or not self.topics <= PERSONAL_TOPICS
        if not self.asks_for_own_state() or names_other:
            return False
        clauses = [
            read_changes(clause)
            for clause in CLAUSE_BREAK.split(quote.text)
            if not self.topics.isdisjoint(topics_of(clause))
        ]
        return bool(clauses) and all(
            "other" in clause.kinds and "speaker" not in clause.kinds for clause in clauses
        )

    def _has_other_subject(self, quote: Quote, others: Sequence[Quote]) -> bool:
        """Return whether a statement has a subject that isn't the asker, such as a person.

        "Sam has moved to Bristol" isn't about the asker's home, whoever Sam is.
        """
        if "speaker" in quote.reading.kinds:
            return False
        name = find_acting_person(quote.text)
        if name and not words_in(self.text).contain(name):
            return True
        if any(_introduces_actor(other, quote) for other in others if other is not quote):
            return True
        subject = find_subject(quote.text)
        return bool(subject) and topics_of(subject).isdisjoint(self.topics)

    def _names_subject_of(self, quote: Quote) -> bool:
        """Return whether a statement contains a name or the subject of the question.

        In a German question in the first person, the nouns don't count as names.
        """
        words = words_in(quote.text)
        if self.unspaced_subject and words.contain(self.unspaced_subject):
            return True
        is_own = "speaker" in self.reading.kinds
        if is_own and languages_of(self.text) == ("german",):
            return False
        if any(map(words.contain, self.subjects)):
            return True
        return not is_own and bool(self.actor) and words.contain(self.actor)

    def asks_for_own_state(self) -> bool:
        """Return whether the question is about the asker's own home or work.

        "Who is my accountant?" is about a person.
        """
        if "speaker" not in self.reading.kinds or PERSONAL_TOPICS.isdisjoint(self.topics):
            return False
        return not self.asks_for_person

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
        if any(word in self.subjects for word in words_of(person)):
            return False
        return not any(map(words_in(self.text).contain, person_words))


def _drop_parts_of_narrow(words: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the topic words of a question, without those inside the word of a narrow topic.

    "What's my rent?" asks for the rent, so "rent" isn't also a word about the home.
    """
    narrow_words = [word for word, topics in words.items() if topics & NARROW_TOPICS]
    return {
        word: topics
        for word, topics in words.items()
        if not any(word != narrow and word in narrow for narrow in narrow_words)
    }


def _introduces_actor(other: Quote, quote: Quote) -> bool:
    """Return whether another statement introduces the person who begins a text without spaces.

    After "表哥志远住在武汉", "志远搬去深圳了" is about the cousin.
    """
    person, plain = other.reading.person, plain_text(other.text)
    if not person or not is_unspaced(person) or not plain.startswith(person):
        return False
    name = plain[len(person) :][:NAME_CHARS]
    return len(name) == NAME_CHARS and plain_text(quote.text).startswith(name)


def find_acting_person(text: str) -> str:
    """Return the name of the person who acts at the beginning of a message, or "".

    The name is in plain form: "jake" for "Jake moved in next door". "Bristol is home now" also
    begins with a name, but is about the writer, so the result is "".
    """
    article = _ARTICLE.match(text) if "portuguese" in languages_of(text) else None
    begin = article.end() if article is not None else 0
    begin += count_filler_chars(text[begin:])
    name = find_opening_name(text[begin:])
    if name is not None:
        following = _FURTHER_NAMES.sub("", text[begin + len(name) :])
        if begins_with_action(following):
            return plain_text(name)
        if _POSSESSION.match(following) and "speaker" not in read_changes(text).kinds:
            return plain_text(name)
    return find_actor(text)


def states_time(quote: Quote) -> bool:
    """Return whether a statement names a day, a month or a time of day."""
    if not find_values(quote.text).keys().isdisjoint(("weekday", "time")):
        return True
    return bool(find_periods(quote.text, quote.at.date()))


def find_opening_name(text: str) -> str | None:
    """Return the name that a message begins with, or None."""
    languages = languages_of(text)
    title = _titles().match(text)
    if title is not None:
        return title[1]
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
def find_own_words(text: str) -> str:
    """Return a message without the sentences that it quotes or introduces ("Nadia wrote: …").

    Long paragraphs are kept, because they may be stories of the writer.
    """
    paragraphs = [
        paragraph if len(paragraph) > TYPED_CHARS else extract_own_words(paragraph)
        for paragraph in _PARAGRAPH_END.split(text.strip())
    ]
    return QUOTATION.sub(_drop_quoted_run, "\n\n".join(paragraphs)).strip()


def _drop_quoted_run(quotation: re.Match[str]) -> str:
    unspaced_count = sum(map(is_unspaced, quotation[0]))
    return " " if unspaced_count >= MIN_QUOTED_RUN_CHARS else quotation[0]


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
            and (
                have_same_stem(word, own)
                or word.endswith(own)
                or own.endswith(word)
                or _are_derived(word, own)
            )
            # "Fridays" is no form of "fridge".
            and find_values(word) == find_values(own)
            for own in self._words
        )


def _are_derived(word: str, other: str) -> bool:
    """Return whether a longer word begins with the other: "entrena" and "entrenamiento"."""
    shorter, longer = sorted((word, other), key=len)
    return len(shorter) >= MIN_ROOT_CHARS and longer.startswith(shorter)


def distinct_words(text: str) -> list[str]:
    """Return the words that show the subject of a text, in plain form.

    Text without spaces is divided into pairs of characters.
    """
    words = content_words([word.casefold() for word in words_of(text) if not is_unspaced(word)])
    plain_words = [plain_text(word) for word in words]
    unspaced_terms = [term for term in query_terms(text) if is_unspaced(term)]
    ignored_words = _common_words() | _stop_words_of(languages_of(text))
    return [word for word in (*plain_words, *unspaced_terms) if word not in ignored_words]


@cache
def _stop_words_of(languages: tuple[str, ...]) -> frozenset[str]:
    """Return the stop words of a text's language, or none if its language is uncertain."""
    if len(languages) != 1 or languages[0] not in SPACED_LANGUAGES:
        return frozenset()
    return latin_stop_words(languages[0])


@cache
def _common_words() -> frozenset[str]:
    """Return words that occur in questions about anything, such as "still"."""
    words: str = language_data("changes", "core.facts")["common"]["words"]
    return frozenset(words.split())


@cache
def _time_words() -> frozenset[str]:
    """Return words about time, such as "week", that two statements may share by chance."""
    words: str = language_data("changes", "core.facts")["common"]["time"]
    return frozenset(fold(words).split())


@cache
def _german_nouns() -> re.Pattern[str]:
    """Return a pattern for nouns that begin German messages without an article."""
    return re.compile("|".join(language_data("changes", "core.facts")["german"]["nouns"]))


@cache
def _who_pattern() -> re.Pattern[str]:
    """Return a pattern for a question word that asks for a person."""
    return re.compile(language_data("changes", "core.facts")["common"]["who"])


@cache
def _titles() -> re.Pattern[str]:
    """Return a pattern for a title and a name at the beginning of a text: "Frau Obermeier"."""
    titles: str = language_data("changes", "core.facts")["common"]["titles"]
    return re.compile(rf"(?i:{'|'.join(titles.split())})\.? ([^\W\d_a-z]\w+)")


@cache
def _question_characters() -> frozenset[str]:
    """Return the characters that form question words in languages without spaces."""
    characters: str = language_data("changes", "core.facts")["common"]["question_characters"]
    return frozenset(fold(characters))


def is_distinctive(word: str, quote: Quote) -> bool:
    """Return whether a word shows the subject of a statement, unlike words such as "day".

    Names and words of at least `MIN_DISTINCTIVE_CHARS` characters do, unless they are about time,
    like "week".
    """
    if word in _time_words():
        return False
    if is_unspaced(word):
        return len(word) > MIN_SHARED_CHARS
    if len(word) >= MIN_DISTINCTIVE_CHARS:
        return True
    return any(word in plain_text(name).split() for name in names_in(f"x {quote.text}"))


def plain_text(text: str) -> str:
    return plain_with_offsets(fold(text))[0].casefold()
