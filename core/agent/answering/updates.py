"""Compares two statements of a person: does the newer one update the older one?

A newer statement updates an older one about the same subject. The functions differ in how sure they
are: `share_subject` is needed to mark a statement as replaced, and `are_about_different_things`
rules an update out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from core.agent.answering.quotes import (
    ATTRIBUTE_TOPICS,
    CLAUSE_BREAK,
    MIN_RELEVANCE,
    MIN_SHARED_CHARS,
    NARROW_TOPICS,
    PERSONAL_TOPICS,
    AskedQuestion,
    Quote,
    distinct_words,
    find_acting_person,
    find_opening_name,
    is_distinctive,
    plain_text,
    states_time,
    words_in,
)
from core.facts.changes import find_values, topics_of
from core.text.normalize import is_unspaced
from core.text.terms import names_in

REPEATED_TOPICS = frozenset(("rent",))
"""A new statement about one of these topics names it, unlike "Karim replaces her", about a boss."""
MAX_LENGTH_DIFFERENCE = 2
"""Two numbers may be values of the same thing if their lengths differ by at most this."""
MAX_SUBJECT_CHARS = 4
"""The subject of a text without spaces has at most this many characters."""
MIN_ATTRIBUTE_CHARS = 3
"""A topic word without spaces names an attribute if it has at least this many characters."""
MAX_STATEMENTS_WITH_WORD = 3
"""A word that occurs in more statements doesn't count as shared by two of them."""


def are_about_different_things(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Return whether a newer statement can't update an older one, because the subjects differ."""
    return (
        _is_another_persons_act(question, newer)
        or _keeps_asked_time(question, newer, older)
        or _differ_in_narrow_topic(question, newer, older)
        or _omits_person_of_question(question, newer, older)
        or _adds_name_of_question(question, newer, older)
        or is_about_another_person(newer, older)
        or is_less_specific(question, newer, older)
        or _updates_other_clause(question, newer, older)
        or _has_unasked_topic(question, newer, older)
    )


def _has_unasked_topic(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Return whether a statement without a change has a topic that only it has.

    "There's an old Golf outside our house" is about a car, so it doesn't update where we live.
    """
    if newer.reading.announces_change:
        return False
    return bool(list_unasked_topics(question, newer) - older.reading.topics)


def list_unasked_topics(question: AskedQuestion, quote: Quote) -> frozenset[str]:
    """Return the topics of a statement that the question doesn't have, apart from names."""
    return quote.reading.topics - question.topics - ATTRIBUTE_TOPICS


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
    missing = _list_omitted_words(question, newer, older)
    if _differ_in_narrow_topic(question, newer, older):
        return False
    if _is_another_persons_act(question, newer) or _keeps_asked_time(question, newer, older):
        return False
    if _updates_other_clause(question, newer, older):
        return False
    if question.unspaced_subject in missing:
        repeats = _repeats_attribute(question, newer, older)
        return repeats or _names_former_value(question, newer, older)
    if _omits_person_of_question(question, newer, older):
        return False
    if _adds_name_of_question(question, newer, older):
        return False
    common_topics = newer.reading.topics & older.reading.topics & question.topics
    return bool(common_topics and not missing) or _share_words(question, newer, older)


def _is_another_persons_act(question: AskedQuestion, newer: Quote) -> bool:
    """Return whether a person acts whom a question about the asker's home or work doesn't name.

    "Ole gave me my tent back" doesn't end "I live in Lübeck with Ole".
    """
    is_about_home = "speaker" in question.reading.kinds and "home" in question.topics
    if not (is_about_home or question.asks_for_own_state()):
        return False
    if not newer.reading.topics.isdisjoint(question.topics):
        return False
    name = find_acting_person(newer.text)
    return bool(name) and not words_in(question.text).contain(name)


def _keeps_asked_time(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Return whether a newer statement names another person, but no other time that is asked for.

    "Physio is with Becca now" leaves the day of "physio is on Mondays with Ewan" as it was.
    """
    if "when" not in question.reading.kinds or not states_time(older):
        return False
    return not states_time(newer) and score_new_value(newer, older) > 0


def _share_words(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Return whether two statements have enough words in common to be about the same subject.

    One word is enough, or a word of the question. If the newer statement has another topic, it
    needs two words, and a name of the question isn't enough: Lívia's teacher and Lívia's swimming.
    """
    newer_words = words_in(newer.text)
    is_elsewhere = has_other_topic(question, newer, older)
    shared_count = 0
    for word in distinct_words(older.text):
        is_asked = word in question.words
        if not newer_words.contain(word) or not (is_asked or is_distinctive(word, older)):
            continue
        if is_asked and not (is_elsewhere and question.is_name(word)):
            return True
        shared_count += 1
    return shared_count >= (2 if is_elsewhere else 1)


def _updates_other_clause(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Return whether a newer statement is about a clause that doesn't answer the question.

    "She left the DVLA" updates only the second half of "Carys lives in Swansea and works for the
    DVLA".
    """
    newer_topics = newer.reading.topics - ATTRIBUTE_TOPICS
    older_topics = older.reading.topics - ATTRIBUTE_TOPICS
    if question.topics.isdisjoint(older_topics) or not question.topics.isdisjoint(newer_topics):
        return False
    if newer_topics & older_topics:
        # "We've swapped the Golf" updates only the car in "there's a Golf outside our house".
        return True
    asked: list[str] = []
    others: list[str] = []
    for clause in CLAUSE_BREAK.split(older.text):
        # "A poodle, called Coco": the name belongs to the poodle.
        clause_topics = topics_of(clause) - ATTRIBUTE_TOPICS
        if clause_topics:
            is_asked = not clause_topics.isdisjoint(question.topics)
            (asked if is_asked else others).append(clause)
    return _share_new_word(question, newer, others) and not _share_new_word(question, newer, asked)


def _share_new_word(question: AskedQuestion, newer: Quote, clauses: Iterable[str]) -> bool:
    """Return whether a statement has a distinctive word of the clauses that the question lacks."""
    newer_words = words_in(newer.text)
    for clause in clauses:
        for word in distinct_words(clause):
            is_new = word not in question.words and is_distinctive(word, newer)
            if is_new and newer_words.contain(word):
                return True
    return False


def _repeats_attribute(question: AskedQuestion, newer: Quote, older: Quote) -> bool:
    """Return whether both statements name the asked attribute, such as 暗証番号, the code.

    A short word counts if the newer statement begins with it: "薬は10mgに増えた".
    """
    newer_words, older_words = words_in(newer.text), words_in(older.text)
    start = plain_text(newer.text)
    for word in question.topic_words:
        is_attribute = len(word) >= MIN_ATTRIBUTE_CHARS or start.startswith(word)
        is_in_both = newer_words.contain(word) and older_words.contain(word)
        if is_unspaced(word) and is_attribute and is_in_both:
            return True
    return False


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
    if "speaker" in newer.reading.kinds:
        # "I'm at Bosch now" doesn't update where Malte works.
        is_asked_of_other = "speaker" not in question.reading.kinds
        is_personal = not PERSONAL_TOPICS.isdisjoint(question.topics)
        if "other" in older.reading.kinds or (is_asked_of_other and is_personal):
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
    if newer.reading.announces_change:
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
        is_in_new, is_in_old = topic in new_topics, topic in old_topics
        if topic not in question.topics:
            # "The landlord reset the garage door" isn't about the rent.
            is_named_only = is_in_new and not is_in_old and share_distinctive_word(newer, older)
            if not is_named_only:
                return True
            continue
        has_other_topic = bool(new_topics & old_topics & question.topics)
        if topic in REPEATED_TOPICS and not (is_in_new and is_in_old) and not has_other_topic:
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
