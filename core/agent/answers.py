"""Answers a question with quotes if there is no model. Statements that still hold come first.

The quotes are facts and messages that the tools have found. If the asker said that something has
changed, that statement also answers questions about the earlier state.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import cache
from math import ceil

from core.facts.changes import (
    Reading,
    find_values,
    languages_of,
    read_changes,
    starts_later,
    topic_words_in,
    topics_of,
)
from core.facts.wording import have_same_stem, split_sentences
from core.search.query import plan_excluded
from core.text.normalize import fold, is_unspaced, language_data, plain_with_offsets, words_of
from core.text.terms import content_words, names_in, query_terms, word_terms
from core.types import Json

MAX_QUOTES = 5
MAX_LINES = 24
MAX_QUOTE_CHARS = 320
MAX_DISTANCE = 2
"""Messages of a conversation touch if there is at most one message between them."""
LINE_CHARS = 100
"""A line of a chat has about this many characters. Longer quotes count as several lines."""
MIN_RELEVANCE = 0.5
"""A statement answers a question if it covers at least this share of the question's words."""
NAME_WEIGHT = 2
MIN_STEM_CHARS = 3
"""Words of at most this length have no endings."""
MAX_FOLLOW_UP_CHARS = 300
MIN_COMPOUND_CHARS = 9
"""A shorter German word isn't taken for a compound."""
MAX_FOLLOW_UP_WORDS = 60
MAX_SUBJECT_CHARS = 4
"""The subject of a text without spaces has at most so many characters."""
MIN_SHARED_CHARS = 1
"""A word that two statements have in common must be longer than this."""


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
    # The end of the time in which the statement held, as a clause: "until May 2027, no longer so".
    end: str = ""
    # The share of the question's words that the statement covers, from 0 to 1.
    relevance: float = 0.0
    # Whether it stands below a message of the same conversation that it touches.
    follows: bool = False
    # The later statement that replaced this one.
    replaced_by: Quote | None = None
    reading: Reading = field(init=False)

    def __post_init__(self) -> None:
        self.reading = read_changes(self.text)

    @property
    def is_over(self) -> bool:
        return bool(self.end) or self.replaced_by is not None


class AskedQuestion:
    """A question, analysed so that statements can be compared with it."""

    def __init__(self, text: str, now: datetime) -> None:
        self.text = text
        self.now = now
        self.reading = read_changes(text)
        self.topic_words = topic_words_in(text)
        self.topics = {topic for topics in self.topic_words.values() for topic in topics}
        self.names = {name.casefold() for name in names_in(text)}
        # The words that belong to no topic. They must occur in a statement literally.
        self.words = [
            word
            for word in _content_words(self._separate_topics(text))
            if not self._is_of_topic(word)
        ]

    def _separate_topics(self, text: str) -> str:
        """Return a text with spaces around topic words that are written without spaces.

        Otherwise, the last letter of one and the first letter of the next would form a word.
        """
        for topic_word in self.topic_words:
            if is_unspaced(topic_word) and len(topic_word) > 1:
                text = text.replace(topic_word, f" {topic_word} ")
        return text

    def _is_of_topic(self, word: str) -> bool:
        """Whether a word is one of the topic words, or a part of one without spaces.

        Parts of a question word, such as "哪", count as well.
        """
        if is_unspaced(word):
            if len(word) == 1 or not _question_characters().isdisjoint(word):
                return True
            return any(word in topic or topic in word for topic in self.topic_words)
        return any(word in topic.split() for topic in self.topic_words)

    @property
    def unspaced_subject(self) -> str:
        """The word without spaces with which the question begins, or "" if a topic begins it."""
        word = next((word for word in self.words if is_unspaced(word)), "")
        start = _plain(self.text).find(word)
        begins = [_plain(self.text).find(topic) for topic in self.topic_words]
        return "" if any(0 <= begin < start for begin in begins) else word

    def find_missing(self, text: str) -> list[str]:
        """Return the words without a topic that a text doesn't contain."""
        words = _Words(text)
        return [word for word in self.words if not words.contain(word)]

    def measure(self, quote: Quote) -> float:
        """Return the share of the question's words that a statement covers, from 0 to 1.

        A name counts more than other words.
        """
        weights = {word: NAME_WEIGHT if self.is_name(word) else 1 for word in self.words}
        total = sum(weights.values()) + len(self.topic_words)
        if not total:
            return 0.0
        missing = self.find_missing(quote.text)
        covered_weight = sum(weight for word, weight in weights.items() if word not in missing)
        topics = quote.reading.topics
        covered_weight += sum(not topics.isdisjoint(word) for word in self.topic_words.values())
        return covered_weight / total

    def is_name(self, word: str) -> bool:
        """Whether a word of the question is a part of a name, or a word without spaces."""
        if is_unspaced(word):
            return len(word) > 1
        # In German, every noun has a capital letter.
        if languages_of(self.text) == ("german",):
            return False
        return any(word in _plain(name) for name in self.names)

    def penalty(self, quote: Quote, others: Sequence[Quote]) -> int:
        """Return 0 for a statement about the asker's present, or more for another statement.

        The penalty is 1 for a statement about the past, a later or limited time, or an unreal case,
        unless the question asks for that. It is 2 for a statement about another person.
        """
        if self._is_about_other(quote, others):
            return 2
        kinds = quote.reading.kinds
        if starts_later(quote.text, quote.at.date(), self.now.date()) and self._asks_for_state():
            return 1
        for kind in ("unreal", "past", "temporary"):
            if kind in kinds and kind not in self.reading.kinds:
                return 1
        return 0

    def _asks_for_state(self) -> bool:
        """Whether the question asks for a state, and not for a plan."""
        return bool(self.topics) and "plan" not in self.topics and "when" not in self.reading.kinds

    def _is_about_asker(self) -> bool:
        """Whether the question is about its asker, or names nobody."""
        if "speaker" in self.reading.kinds or languages_of(self.text) == ("german",):
            return True
        return "other" not in self.reading.kinds and not self.names

    def _is_about_other(self, quote: Quote, others: Sequence[Quote]) -> bool:
        """Whether a statement is about a person whom neither question nor asker mention."""
        if not self._is_about_asker():
            return False
        question_words = _Words(self.text)
        if "other" in quote.reading.kinds:
            person = quote.reading.person
            if not self.topics.isdisjoint(topics_of(person)):
                # "My son" belongs to "what are my children called?".
                return False
            # "my cousin" is in "when is my cousin's birthday?", but "my" alone isn't.
            person_words = _content_words(person) if is_unspaced(person) else words_of(person)[-1:]
            return not any(map(question_words.contain, person_words))
        if "speaker" in quote.reading.kinds:
            return False
        opening_name = _find_opening_name(quote.text)
        if opening_name is None:
            return False
        name = _plain(opening_name)
        if question_words.contain(name):
            return False
        return not any(_Words(other.text).contain(name) for other in others if other is not quote)


_OPENING_WORD = re.compile(r"[^\W\d_]+")
_GERMAN_SUBJECT = re.compile(r"([A-ZÄÖÜ]\w+) (?:hat|ist|war|\w{2,}t)(?!\w)")
"""A name and a verb: "Jonas fährt". Most nouns have an article or other words around them."""


def _find_opening_name(text: str) -> str | None:
    """Return the name with which a message begins, or None."""
    languages = languages_of(text)
    if languages == ("german",):
        match = _GERMAN_SUBJECT.match(text)
        name = match[1] if match is not None else None
    else:
        match = _OPENING_WORD.match(text)
        is_name = match is not None and match[0][0].isupper() and names_in(f"x {text}")
        name = match[0] if match is not None and is_name else None
    if name is None or ("german" in languages and _german_nouns().fullmatch(_plain(name))):
        return None
    return name


def drop_excluded(question: str, quotes: Iterable[Quote]) -> list[Quote]:
    """Return the quotes without the words that a question excludes: "python NOT java"."""
    excluded_words = plan_excluded(question).highlights
    return [
        quote
        for quote in quotes
        if not excluded_words or not any(map(_Words(quote.text).contain, excluded_words))
    ]


def follow_up_query(quote: Quote) -> str:
    """Return a search for later statements about a quote: a question with its words.

    A question finds messages with any of its words. Of a German compound, the search also has the
    possible last words: "Schrebergarten" is followed by "der Garten ist gekündigt". Text without
    spaces is searched for any pair of its characters.
    """
    text = quote.text[:MAX_FOLLOW_UP_CHARS]
    unspaced_terms = [term for term in query_terms(text) if is_unspaced(term) and len(term) > 1]
    if unspaced_terms:
        return " OR ".join(unspaced_terms[:MAX_FOLLOW_UP_WORDS])
    words = [word.casefold() for word in words_of(text)]
    if languages_of(text) == ("german",):
        words += [
            word[start:]
            for word in words
            if len(word) >= MIN_COMPOUND_CHARS
            for start in range(MIN_STEM_CHARS, len(word) - MIN_STEM_CHARS)
        ]
    return f"{' '.join(dict.fromkeys(words[:MAX_FOLLOW_UP_WORDS]))}?"


def rank_quotes(question: AskedQuestion, quotes: Iterable[Quote]) -> list[Quote]:
    """Return the quotes to show, best first.

    Statements of the asker that cover the question come first, and among them those that still
    hold. Other messages follow in the order of the search results.
    """
    quotes = list(quotes)
    for quote in quotes:
        quote.relevance = question.measure(quote)
    answers = _find_answers(question, [quote for quote in quotes if quote.is_askers])
    rest = [quote for quote in quotes if quote not in answers and quote.rank is not None]
    if answers:
        rest = [quote for quote in rest if quote.relevance]
    rest.sort(key=lambda quote: quote.rank or 0)
    room = max(0, MAX_QUOTES - len(answers))
    return [*answers, *_group_touching(rest[:room]), *rest[room:]]


def _group_touching(quotes: Sequence[Quote]) -> list[Quote]:
    """Move messages of the same conversation together if they nearly follow each other.

    The best message of a group stays first, and the others follow in their order.
    """
    remaining = list(quotes)
    grouped: list[Quote] = []
    while remaining:
        group = [remaining.pop(0)]
        for quote in sorted(remaining, key=lambda quote: quote.message_id or 0):
            if any(_touch(quote, other) for other in group):
                group.append(quote)
                quote.follows = True
                remaining.remove(quote)
        grouped += group
    return grouped


def _touch(quote: Quote, other: Quote) -> bool:
    """Whether two messages of a conversation have at most one message between them."""
    if quote.session_id is None or quote.session_id != other.session_id:
        return False
    if quote.message_id is None or other.message_id is None:
        return False
    return abs(quote.message_id - other.message_id) <= MAX_DISTANCE


def _find_answers(question: AskedQuestion, own: list[Quote]) -> list[Quote]:
    """Return the statements of the asker that answer the question, best first."""
    own.sort(key=lambda quote: quote.at)
    penalties = {id(quote): question.penalty(quote, own) for quote in own}
    for index, quote in enumerate(own):
        if not penalties[id(quote)]:
            _replace_earlier(question, quote, own[:index], penalties)
    answers = [quote for quote in own if quote.relevance >= MIN_RELEVANCE]
    # A statement that replaced an answer is an answer, too.
    for quote in list(answers):
        if quote.replaced_by is not None and quote.replaced_by not in answers:
            answers.append(quote.replaced_by)

    def order(quote: Quote) -> tuple[bool, bool, int, int, float]:
        """Sort by what holds, then by relevance, and the latest first. Others' come last."""
        penalty = penalties[id(quote)]
        relevance = round(2 * quote.relevance)
        if "still" in question.reading.kinds:
            # "Do we still have Clover?" asks for the latest statement about Clover.
            relevance = 2
        return penalty > 1, quote.is_over, penalty, -relevance, -quote.at.timestamp()

    return sorted(answers, key=order)


def add_facts(
    quotes: dict[object, Quote], facts: Sequence[Json], replaced: Sequence[Json] = ()
) -> None:
    """Add facts to `quotes`, whose keys are ids of messages or texts.

    If the message of a fact is among the quotes, the fact isn't added, and only its end is copied
    to the quote. Of several facts from one message, the first is added. The quotes of the messages
    `replaced` get the ends of what they said.
    """
    sources: dict[int, object] = {}
    for fact in facts:
        message_id = fact["message_id"]
        content = _plain_words(fact["content"])
        for key, quote in quotes.items():
            if key == message_id or (isinstance(key, str) and content in _plain_words(quote.text)):
                sources.setdefault(message_id, key)
    current = {fact["message_id"] for fact in facts if fact["is_current"]}
    for rank, fact in enumerate(facts):
        message_id = fact["message_id"]
        end = "" if fact["is_current"] else fact["ended"]
        key = sources.setdefault(message_id, ("fact", fact["fact_id"]))
        if key not in quotes:
            who = fact.get("who")
            at = datetime.fromisoformat(fact["said_at"])
            quote = Quote(fact["content"], at, who or "You", is_askers=who is None, rank=rank)
            quotes[key] = quote
        if end and message_id not in current:
            quotes[key].end = end
    _end_replaced(quotes, replaced, current)


def _end_replaced(
    quotes: dict[object, Quote], replaced: Sequence[Json], current: Collection[object]
) -> None:
    """Say until when the messages held that later facts replaced, unless they are `current`."""
    for former in replaced:
        quote = quotes.get(former["message_id"])
        if quote is not None and former["message_id"] not in current:
            quote.end = former["ended"]


def _replace_earlier(
    question: AskedQuestion, quote: Quote, earlier: Sequence[Quote], penalties: dict[int, int]
) -> None:
    """Mark the earlier statements that a newer statement replaces.

    A newer statement replaces others if it tells of a change, or gives another value.
    The newer statement then covers as many of the question's words as the replaced one.
    """
    is_correction = "correction" in quote.reading.kinds
    for position, other in enumerate(reversed(earlier)):
        # A correction in the next message needn't name its subject.
        is_close = position == 0 and other.session_id == quote.session_id
        if not other.relevance or penalties[id(other)] > 1:
            continue
        if not quote.reading.replaces and not _has_new_value(quote, other):
            continue
        if not (is_correction and is_close) and not _share_subject(question, quote, other):
            continue
        quote.relevance = max(quote.relevance, other.relevance)
        if not penalties[id(other)]:
            other.replaced_by = quote


def _has_new_value(newer: Quote, older: Quote) -> bool:
    """Whether a relevant statement gives another day, time or number than an older one."""
    if newer.relevance < MIN_RELEVANCE or not newer.reading.holds:
        return False
    if "addition" in newer.reading.kinds:
        return False
    old_values = find_values(older.text)
    new_values = find_values(newer.text)
    return any(
        not values <= old_values[form] for form, values in new_values.items() if form in old_values
    )


def _share_subject(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Whether a newer statement is about the same thing as an older one.

    "Maya has quit piano" replaces "Maya and Finn take piano" only in answers about Maya.
    """
    newer_words = _Words(newer.text)
    older_words = _Words(older.text)
    missing = [word for word in question.find_missing(newer.text) if older_words.contain(word)]
    if any(question.is_name(word) and not is_unspaced(word) for word in missing):
        return False
    # In text without spaces, the question begins with its subject.
    if question.unspaced_subject in missing:
        return _names_former_value(question, newer, older)
    common_topics = newer.reading.topics & older.reading.topics & question.topics
    if common_topics and not missing:
        return True
    own_words = [word for word in _content_words(older.text) if len(word) > MIN_SHARED_CHARS]
    return any(map(newer_words.contain, own_words))


def _names_former_value(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Whether a newer statement names what ended and what holds instead: "桂林不去了,改去三亚".

    A word at the beginning of the older statement is what it is about, and no value.
    """
    if "swap" not in newer.reading.kinds:
        return False
    newer_words = _Words(newer.text)
    start = _plain(older.text)[:MAX_SUBJECT_CHARS]
    return any(
        newer_words.contain(word)
        for word in _content_words(older.text)
        if len(word) > MIN_SHARED_CHARS and word not in start and word not in question.words
    )


class _Words:
    """The words of a text, compared without regard to their endings."""

    def __init__(self, text: str) -> None:
        self._plain = _plain(text)
        self._words = words_of(self._plain)
        self._terms = frozenset(word_terms(text))

    def contain(self, word: str) -> bool:
        """Whether the text contains a form of a word.

        The last part of a compound counts, too: "Garten" and "Schrebergarten".
        """
        if is_unspaced(word):
            return word in self._plain
        if not self._terms.isdisjoint(word_terms(word)):
            return True
        return any(
            len(own) > MIN_STEM_CHARS
            and len(word) > MIN_STEM_CHARS
            and (have_same_stem(word, own) or word.endswith(own) or own.endswith(word))
            for own in self._words
        )


def _content_words(text: str) -> list[str]:
    """Return the words of a text that distinguish it, in plain form.

    Text without spaces is divided into pairs of characters.
    """
    words = content_words([word.casefold() for word in words_of(text) if not is_unspaced(word)])
    plain_words = [_plain(word) for word in words]
    unspaced_terms = [term for term in query_terms(text) if is_unspaced(term)]
    return [word for word in (*plain_words, *unspaced_terms) if word not in _common_words()]


@cache
def _common_words() -> frozenset[str]:
    """Return words that occur in questions about anything, such as "still"."""
    words: str = language_data("changes", "core.facts")["common"]["words"]
    return frozenset(words.split())


@cache
def _german_nouns() -> re.Pattern[str]:
    """Return a pattern for nouns with which German messages begin without an article."""
    return re.compile("|".join(language_data("changes", "core.facts")["german"]["nouns"]))


@cache
def _question_characters() -> frozenset[str]:
    """Return characters of question words of languages without spaces."""
    characters: str = language_data("changes", "core.facts")["common"]["question_characters"]
    return frozenset(fold(characters))


def _plain_words(text: str) -> str:
    return " ".join(words_of(_plain(text)))


def _plain(text: str) -> str:
    return plain_with_offsets(fold(text))[0].casefold()


def render_quotes(question: AskedQuestion, quotes: Sequence[Quote], zone: tzinfo) -> str:
    """Return the quotes as a list, at most `MAX_QUOTES` of them in `MAX_LINES` lines.

    For example: ``- You said on 3 May: “My sister Ana lives in Porto.” (session 7)``.
    """
    lines: list[str] = []
    remaining_lines = MAX_LINES
    for quote in quotes[:MAX_QUOTES]:
        line = _render_quote(question, quote, zone)
        remaining_lines -= ceil(len(line) / LINE_CHARS)
        if lines and remaining_lines < 0:
            break
        lines.append(line)
    return "\n".join(lines)


def _render_quote(question: AskedQuestion, quote: Quote, zone: tzinfo) -> str:
    """Return a quote as an item of a list, with its day, its end and its session.

    A message below another one of the same conversation has neither day nor session.
    """
    if quote.follows and not quote.is_over:
        return f"- {quote.speaker}: “{_shorten(question, quote.text)}”"
    notes = []
    if quote.end:
        notes.append(quote.end)
    elif quote.replaced_by is not None:
        end = quote.replaced_by.at.astimezone(zone)
        notes.append(f"until {end:%B %Y}, no longer so")
    if quote.session_id is not None:
        notes.append(f"session {quote.session_id}")
    tail = f" ({'; '.join(notes)})" if notes else ""
    day = _format_day(quote.at.astimezone(zone), question.now.astimezone(zone))
    return f"- {quote.speaker} said on {day}: “{_shorten(question, quote.text)}”{tail}"


def _format_day(at: datetime, now: datetime) -> str:
    """Return a day, without its year if it lies in the last months: "3 May"."""
    return f"{at.day} {at:%B}" if at.year == now.year else f"{at.day} {at:%B %Y}"


def _shorten(question: AskedQuestion, text: str) -> str:
    """Return a message on one line. Of a long message, the sentences around the best remain."""
    line = " ".join(text.split())
    if len(line) <= MAX_QUOTE_CHARS:
        return line
    sentences = [sentence.strip() for sentence in split_sentences(text) if sentence.strip()]
    best = min(
        range(len(sentences)), key=lambda index: len(question.find_missing(sentences[index]))
    )
    passage = " ".join(sentences[best].split())
    following = best + 1
    while following < len(sentences) and len(passage) + len(sentences[following]) < MAX_QUOTE_CHARS:
        passage = f"{passage} {' '.join(sentences[following].split())}"
        following += 1
    start = "… " if best else ""
    end = " …" if following < len(sentences) or len(passage) > MAX_QUOTE_CHARS else ""
    return f"{start}{passage[:MAX_QUOTE_CHARS]}{end}"
