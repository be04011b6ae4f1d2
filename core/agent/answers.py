"""Answers a question with quotes if there is no model. Statements that still hold come first.

The quotes are facts and messages that the tools have found. If the asker said that something has
changed, that statement also answers questions about the earlier state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from math import ceil

from core.agent.quotes import (
    MIN_SHARED_CHARS,
    MIN_STEM_CHARS,
    NARROW_TOPICS,
    AskedQuestion,
    Quote,
    distinct_words,
    find_opening_name,
    find_somebody,
    is_distinctive,
    plain_text,
    words_in,
)
from core.facts.changes import find_values, languages_of
from core.facts.wording import split_sentences
from core.search.query import plan_excluded
from core.text.normalize import is_unspaced, words_of
from core.text.terms import names_in, query_terms
from core.types import Json

MAX_QUOTES = 5
MAX_LOOSE = 2
"""So many statements that share only the topic of the best answer are shown below it."""
MAX_LINES = 24
MAX_QUOTE_CHARS = 320
MAX_DISTANCE = 2
"""Messages of a conversation touch if there is at most one message between them."""
LINE_CHARS = 100
"""A line of a chat has about this many characters. Longer quotes count as several lines."""
MIN_RELEVANCE = 0.5
"""A statement answers a question if it covers at least this share of the question's words."""
MAX_FOLLOW_UP_CHARS = 300
MIN_COMPOUND_CHARS = 9
"""A shorter German word isn't taken for a compound."""
MAX_FOLLOW_UP_WORDS = 60
MAX_LENGTH_DIFFERENCE = 2
"""A number with so many digits more or less may be a new value of the same thing."""
PERSONAL_TOPICS = frozenset(("home", "work"))
"""Topics in which everybody has a state of their own."""
MAX_SUBJECT_CHARS = 4
"""The subject of a text without spaces has at most so many characters."""
MAX_CLOCK_DISTANCE = timedelta(minutes=1)
"""The time of a message of this conversation is known to the minute."""
MIN_SIGNS = 3.0
"""A later statement stands before an earlier one if `_count_signs` returns at least this."""
MAX_SHARED_WORDS = 2
"""More words that two statements share are no further sign."""
MAX_STATEMENTS_WITH_WORD = 3
"""A word in more statements doesn't show that two of them are about the same thing."""


def drop_excluded(question: str, quotes: Iterable[Quote]) -> list[Quote]:
    """Return the quotes without the words that a question excludes: "python NOT java"."""
    excluded_words = plan_excluded(question).highlights
    return [
        quote
        for quote in quotes
        if not excluded_words or not any(map(words_in(quote.text).contain, excluded_words))
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
        quote.coverage = quote.relevance = question.measure(quote)
    answers = _find_answers(question, [quote for quote in quotes if quote.is_askers])
    rest = [quote for quote in quotes if quote not in answers and quote.rank is not None]
    if answers:
        is_answered = answers[0].coverage == 1
        least = MIN_RELEVANCE if is_answered else 0
        rest = [quote for quote in rest if quote.relevance > 0 and quote.relevance >= least]
        answers = _drop_loose(question, answers)
    rest.sort(key=lambda quote: quote.rank or 0)
    room = max(0, MAX_QUOTES - len(answers))
    return [*answers, *_group_touching(rest[:room]), *rest[room:]]


def _distance_from_asker(question: AskedQuestion, quote: Quote) -> int:
    """Return 0 for the asker's own state in a question about it, 2 for another person's state."""
    if "speaker" not in question.reading.kinds or "speaker" in quote.reading.kinds:
        return 0
    name = find_somebody(quote.text)
    return 2 if name and not words_in(question.text).contain(name) else 1


def _drop_loose(question: AskedQuestion, answers: Sequence[Quote]) -> list[Quote]:
    """Return the answers, without most answers that share only the topic with the best one."""
    best = answers[0]
    named_count = question.count_named(best)
    result: list[Quote] = []
    loose_count = 0
    for quote in answers:
        is_loose = not quote.is_over and question.count_named(quote) < named_count
        if is_loose and not _share_distinctive_word(best, quote):
            loose_count += 1
            if loose_count > MAX_LOOSE:
                continue
        result.append(quote)
    return result


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
    for index, quote in enumerate(own):
        if not penalties[id(quote)] and not quote.is_over:
            _outrank_earlier(question, quote, own[:index], own)
    answers = [quote for quote in own if quote.relevance >= MIN_RELEVANCE]
    # A statement that replaced an answer is an answer, too.
    for quote in list(answers):
        if quote.replaced_by is not None and quote.replaced_by not in answers:
            answers.append(quote.replaced_by)

    def order(quote: Quote) -> tuple[bool, bool, int, bool, int, bool, int, int, float]:
        """Sort by whether a statement still holds, by relevance and by date, the latest first.

        Statements of others come last.
        """
        penalty = penalties[id(quote)]
        relevance = round(2 * quote.relevance)
        distance = _distance_from_asker(question, quote)
        if "still" in question.reading.kinds:
            # "Do we still have Clover?" asks for the latest statement about Clover.
            relevance = 2
        return (
            penalty > 1,
            quote.is_over,
            penalty,
            quote.is_outranked,
            -relevance,
            distance > 1,
            -question.count_named(quote),
            distance,
            -quote.at.timestamp(),
        )

    return sorted(answers, key=order)


def add_facts(
    quotes: dict[object, Quote],
    facts: Sequence[Json],
    replaced: Sequence[Json],
    texts: Mapping[str, str],
) -> None:
    """Add facts to `quotes`, whose keys are ids of messages or texts.

    If the message of a fact is among the quotes, the fact isn't added, and only its end is copied
    to the quote. Of several facts from one message, the first is added. The quotes of the messages
    `replaced` get the ends of what they said.
    """
    sources: dict[int, object] = {}
    for fact in facts:
        message_id = fact["message_id"]
        for key, quote in quotes.items():
            if key == message_id or (isinstance(key, str) and _is_source(quote, fact)):
                sources.setdefault(message_id, key)
    current = {fact["message_id"] for fact in facts if fact["is_current"]}
    for rank, fact in enumerate(facts):
        message_id = fact["message_id"]
        end = "" if fact["is_current"] else fact["ended"]
        key = sources.setdefault(message_id, ("fact", fact["fact_id"]))
        if key not in quotes:
            who = fact.get("who")
            at = datetime.fromisoformat(fact["said_at"])
            speaker = who or texts["speaker_you"]
            quotes[key] = Quote(fact["content"], at, speaker, is_askers=who is None, rank=rank)
        if end and message_id not in current:
            quotes[key].end = end
    _end_replaced(quotes, replaced, current)


def _is_source(quote: Quote, fact: Json) -> bool:
    """Whether a fact was read in a message of this conversation, whose id isn't known.

    The message contains the fact, or it's of the same time and has the words of the fact: "My
    daughter is Asha" was read in "my daughter Asha is 7".
    """
    if _plain_words(fact["content"]) in _plain_words(quote.text):
        return True
    distance = abs(datetime.fromisoformat(fact["said_at"]) - quote.at)
    words = words_in(quote.text)
    return distance <= MAX_CLOCK_DISTANCE and all(
        words.contain(word) for word in distinct_words(fact["content"])
    )


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
        if _is_about_another_person(quote, other) or _is_less_specific(question, quote, other):
            continue
        if not (is_correction and is_close) and not _share_subject(question, quote, other):
            continue
        quote.relevance = max(quote.relevance, other.relevance)
        if not penalties[id(other)]:
            other.replaced_by = quote


def _outrank_earlier(
    question: AskedQuestion, quote: Quote, earlier: Sequence[Quote], own: Sequence[Quote]
) -> None:
    """Put a statement before earlier ones that it probably follows, without calling them over."""
    for other in earlier:
        if other.is_over or other.relevance < MIN_RELEVANCE:
            continue
        if _count_signs(question, quote, other, own) >= MIN_SIGNS:
            other.is_outranked = True
            quote.relevance = max(quote.relevance, other.relevance)


def _count_signs(
    question: AskedQuestion, newer: Quote, older: Quote, own: Sequence[Quote]
) -> float:
    """Return how strongly a newer statement seems to follow an older one, in points.

    The points count words and topics in common, words of the question, a word of change, and
    another value of the same form. Without anything in common there are none.
    """
    if not newer.reading.holds or "addition" in newer.reading.kinds:
        return 0.0
    if _are_about_different_things(question, newer, older):
        return 0.0
    shared_count = len(_list_shared_words(question, newer, older, own))
    has_common_topic = bool(newer.reading.topics & older.reading.topics & question.topics)
    if not shared_count and not newer.coverage and not has_common_topic:
        return 0.0
    signs = 2.0 * min(MAX_SHARED_WORDS, shared_count) + 2.0 * newer.coverage
    if not shared_count and newer.coverage < older.coverage:
        signs -= 2
    if _has_other_topic(question, newer, older):
        signs -= 2
    if not newer.reading.kinds.isdisjoint(("change", "correction")):
        signs += 2
    if has_common_topic:
        signs += 1
    if "speaker" in newer.reading.kinds:
        signs += 1
    return signs + _weigh_new_value(newer, older)


def _are_about_different_things(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Whether a newer statement can't follow an older one, because its subject is another."""
    return (
        _differ_in_narrow_topic(question, newer, older)
        or _leaves_out_subject(question, newer, older)
        or _adds_subject(question, newer, older)
        or _is_about_another_person(newer, older)
        or _is_less_specific(question, newer, older)
    )


def _list_shared_words(
    question: AskedQuestion, newer: Quote, older: Quote, own: Sequence[Quote]
) -> list[str]:
    """Return the distinctive words of both statements that the question doesn't contain."""
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


def _weigh_new_value(newer: Quote, older: Quote) -> float:
    """Return points for another day, time, number or name than in the older statement."""
    old_values = find_values(older.text)
    for form, values in find_values(newer.text).items():
        if form in old_values and not values <= old_values[form]:
            return 1.5
    # The first word of a text has a capital in any case, so a word is put before it.
    old_names = set(names_in(f"x {older.text}"))
    new_names = set(names_in(f"x {newer.text}"))
    return 1.0 if old_names and new_names - old_names else 0.0


def _has_new_value(newer: Quote, older: Quote) -> bool:
    """Whether a relevant statement gives another day, time or number than an older one."""
    if newer.relevance < MIN_RELEVANCE or not newer.reading.holds:
        return False
    if "addition" in newer.reading.kinds:
        return False
    old_values = find_values(older.text)
    new_values = find_values(newer.text)
    return any(
        not values <= old_values[form] and _are_alike(values, old_values[form])
        for form, values in new_values.items()
        if form in old_values
    )


def _are_alike(values: Collection[str], others: Collection[str]) -> bool:
    """Whether a value is about as long as one of the others: a code isn't a new hour."""
    return any(
        abs(len(value) - len(other)) <= MAX_LENGTH_DIFFERENCE
        for value in values
        for other in others
    )


def _share_subject(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Whether a newer statement is about the same thing as an older one.

    "Maya has quit piano" replaces "Maya and Finn take piano" only in answers about Maya.
    """
    newer_words = words_in(newer.text)
    missing = _list_left_out(question, newer, older)
    if _differ_in_narrow_topic(question, newer, older):
        return False
    if question.unspaced_subject in missing:
        return _names_former_value(question, newer, older)
    if _leaves_out_subject(question, newer, older) or _adds_subject(question, newer, older):
        return False
    common_topics = newer.reading.topics & older.reading.topics & question.topics
    if common_topics and not missing:
        return True
    shared = [
        word
        for word in distinct_words(older.text)
        if newer_words.contain(word) and (word in question.words or is_distinctive(word, older))
    ]
    # A word of the question shows the subject, too.
    is_asked = any(word in question.words for word in shared)
    return is_asked or len(shared) > _has_other_topic(question, newer, older)


def _list_left_out(question: AskedQuestion, newer: Quote, older: Quote) -> list[str]:
    """Return the words of the question that only the older statement contains."""
    older_words = words_in(older.text)
    return [word for word in question.find_missing(newer.text) if older_words.contain(word)]


def _leaves_out_subject(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Whether the newer statement isn't about the person of the question.

    "Sam dropped scouts" isn't about Ella, but "swimming moved to Tuesdays" may be. In text without
    spaces, the question begins with its subject.
    """
    missing = _list_left_out(question, newer, older)
    if question.unspaced_subject in missing:
        return True
    if not any(word in missing for word in question.subjects):
        return False
    if "speaker" in newer.reading.kinds and "other" in older.reading.kinds:
        return True
    if not any(map(question.is_name, missing)):
        return False
    return _names_somebody(newer, older) or not _share_distinctive_word(newer, older)


def _is_about_another_person(newer: Quote, older: Quote) -> bool:
    """Whether a newer statement begins with a person whom the older one doesn't name.

    The asker's own move doesn't follow another person's move, either.
    """
    name = find_somebody(newer.text)
    if name:
        return not words_in(older.text).contain(name)
    if "speaker" not in newer.reading.kinds or older.reading.topics.isdisjoint(PERSONAL_TOPICS):
        return False
    name = find_somebody(older.text)
    return bool(name) and not words_in(newer.text).contain(name)


def _is_less_specific(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Whether only the older statement has a word of the question's topic: "dentist", not "boss".

    A newer statement that tells of a change, or that shares another word with the older one, needs
    no such word.
    """
    if not newer.reading.kinds.isdisjoint(("change", "correction")):
        return False
    newer_words, older_words = words_in(newer.text), words_in(older.text)
    missing = [
        word
        for word in question.topic_words
        if older_words.contain(word) and not newer_words.contain(word)
    ]
    return bool(missing) and not _share_distinctive_word(newer, older)


def _share_distinctive_word(newer: Quote, older: Quote) -> bool:
    newer_words = words_in(newer.text)
    return any(
        newer_words.contain(word)
        for word in distinct_words(older.text)
        if is_distinctive(word, older)
    )


def _adds_subject(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Whether only the newer statement has a name of the question, and they share no word."""
    older_words = words_in(older.text)
    newer_words = words_in(newer.text)
    is_added = any(
        newer_words.contain(word) and not older_words.contain(word) for word in question.subjects
    )
    return is_added and not _share_distinctive_word(newer, older)


def _names_somebody(newer: Quote, older: Quote) -> bool:
    """Whether the newer statement is about a person, or has a name of the older one."""
    if "other" in newer.reading.kinds or find_opening_name(newer.text) is not None:
        return True
    newer_words = words_in(newer.text)
    names = (plain_text(name) for name in names_in(f"x {older.text}"))
    return any(newer_words.contain(word) for name in names for word in name.split())


def _differ_in_narrow_topic(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Whether only one of two statements has a narrow topic, such as rent, unlike the question."""
    new_topics, old_topics = newer.reading.topics, older.reading.topics
    for topic in NARROW_TOPICS & (new_topics | old_topics):
        is_asked = topic in question.topics
        if is_asked != (topic in new_topics) or is_asked != (topic in old_topics):
            return True
    return False


def _has_other_topic(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Whether a newer statement has a topic, but none of the question and the older one."""
    topics = newer.reading.topics
    return bool(topics) and topics.isdisjoint(question.topics | older.reading.topics)


def _names_former_value(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Whether a newer statement names the old state and the new one: "桂林不去了,改去三亚".

    A word at the beginning of the older statement is what it is about, and no value.
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


def _plain_words(text: str) -> str:
    return " ".join(words_of(plain_text(text)))


def render_quotes(
    question: AskedQuestion, quotes: Sequence[Quote], zone: tzinfo, texts: Mapping[str, str]
) -> str:
    """Return the quotes as a list, at most `MAX_QUOTES` of them in `MAX_LINES` lines.

    For example: ``- You said on 3 May: “My sister Ana lives in Porto.” (session 7)``. `texts` are
    the words of one language, by the keys of `[texts]` in `offline.toml`.
    """
    lines: list[str] = []
    remaining_lines = MAX_LINES
    for quote in quotes[:MAX_QUOTES]:
        line = f"- {_render_quote(question, quote, zone, texts)}"
        remaining_lines -= ceil(len(line) / LINE_CHARS)
        if lines and remaining_lines < 0:
            break
        lines.append(line)
    return "\n".join(lines)


def _render_quote(
    question: AskedQuestion, quote: Quote, zone: tzinfo, texts: Mapping[str, str]
) -> str:
    """Return a quote with its day, its end and its session.

    A message below another one of the same conversation has neither day nor session.
    """
    text = _shorten(question, quote.text)
    if quote.follows and not quote.is_over:
        return texts["quote_below"].format(speaker=quote.speaker, text=text)
    notes = []
    if quote.end:
        notes.append(quote.end)
    elif quote.replaced_by is not None:
        end = quote.replaced_by.at.astimezone(zone)
        notes.append(texts["over_since"].format(month=_name_month(end, texts), year=end.year))
    if quote.session_id is not None:
        notes.append(texts["session"].format(number=quote.session_id))
    at, now = quote.at.astimezone(zone), question.now.astimezone(zone)
    return texts["quote"].format(
        speaker=quote.speaker,
        day=_format_day(at, texts, has_year=at.year != now.year),
        text=text,
        notes=texts["notes"].format(notes="; ".join(notes)) if notes else "",
    )


def _name_month(at: datetime, texts: Mapping[str, str]) -> str:
    return texts["months"].split(", ")[at.month - 1]


def _format_day(at: datetime, texts: Mapping[str, str], *, has_year: bool) -> str:
    """Return a day, without its year if it was in the last months: "3 May"."""
    template = texts["day_with_year" if has_year else "day"]
    return template.format(day=at.day, month=_name_month(at, texts), year=at.year)


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
