"""Answers questions with quotes when no model is available.

The quotes are the facts and messages that searches returned. Statements that are still true come
first. If the asker said that something has changed, the new statement also answers questions about
the earlier state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from math import ceil

from core.agent.answering.quotes import (
    MIN_RELEVANCE,
    MIN_STEM_CHARS,
    AskedQuestion,
    Quote,
    distinct_words,
    find_acting_person,
    is_distinctive,
    plain_text,
    states_time,
    words_in,
)
from core.agent.answering.updates import (
    MAX_STATEMENTS_WITH_WORD,
    are_about_different_things,
    has_new_value,
    has_other_topic,
    is_about_another_person,
    is_less_specific,
    list_shared_words,
    list_unasked_topics,
    score_new_value,
    share_distinctive_word,
    share_subject,
)
from core.facts.changes import languages_of
from core.facts.wording import split_sentences
from core.search.query import plan_excluded
from core.text.normalize import is_unspaced, words_of
from core.text.terms import names_in, query_terms
from core.types import Json

MAX_QUOTES = 5
MAX_LOOSE = 2
"""At most this many loose answers are shown (`_limit_loose_answers`)."""
# At most this many files are listed below the quotes.
MAX_FILES = 2
MAX_LINES = 24
MAX_QUOTE_CHARS = 320
MAX_DISTANCE = 2
"""Two messages of a conversation are neighbours if there is at most one message between them."""
LINE_CHARS = 100
"""A line of a chat has about this many characters. Longer quotes count as several lines."""
MAX_SEARCHES = 5
"""At most this many searches of messages are made for an answer."""
MAX_FOLLOW_UP_CHARS = 300
MIN_COMPOUND_CHARS = 9
"""A shorter German word isn't treated as a compound."""
MAX_FOLLOW_UP_WORDS = 60
MAX_CLOCK_DISTANCE = timedelta(minutes=1)
"""Messages of this conversation show the time only to the minute."""
MIN_SIGNS = 3.0
"""A later statement ranks above an earlier one if `_count_signs` returns at least this."""
MIN_CLOSER = 1.0
"""A statement belongs to the earlier one that has at least this much more in common with it
(`_measure_closeness`)."""
MAX_SHARED_WORDS = 2
"""At most this many words that two statements share count as signs."""

_UNKNOWN_TIME = datetime.fromtimestamp(0, UTC)


def drop_excluded(question: str, quotes: Iterable[Quote]) -> list[Quote]:
    """Return the quotes that contain no word excluded by the question, as in "python NOT java"."""
    excluded_words = plan_excluded(question).highlights
    if not excluded_words:
        return list(quotes)
    return [quote for quote in quotes if not any(map(words_in(quote.text).contain, excluded_words))]


def choose_follow_up(
    quotes: Sequence[Quote], queries: Sequence[str], *, is_first_round: bool
) -> str:
    """Return the next search for an answer, or "" if the quotes are complete.

    Later statements may share words only with the best one: "my laptop is a ThinkPad", then "the
    ThinkPad gave up, typing this on a Framework". If the best one is itself a change, the search
    also finds the statement to which it belongs. `queries` are the searches that were made.
    """
    if not quotes or not quotes[0].is_askers or len(queries) >= MAX_SEARCHES:
        return ""
    query = follow_up_query(quotes[0])
    if is_first_round or (quotes[0].reading.replaces and query not in queries):
        return query
    return ""


def widen_window(window: int, max_sessions: int, results: Iterable[Json]) -> int:
    """Return how many messages around each match the next search returns.

    If few conversations were found, their windows together are as large as `max_sessions` windows,
    because everything may have been said in one conversation. `results` are the earlier searches.
    """
    sessions = {session["session_id"] for result in results for session in result["sessions"]}
    return window * max_sessions // max(1, min(max_sessions, len(sessions)))


def follow_up_query(quote: Quote) -> str:
    """Build a search query for later statements about the subject of a quote.

    The query is a question with the quote's words, because a question finds messages with any of
    its words. For German, the query also has the possible last parts of compounds, so that
    "Schrebergarten" finds "der Garten ist gekündigt". For text without spaces, the query has all
    pairs of characters.
    """
    text = quote.text[:MAX_FOLLOW_UP_CHARS]
    unspaced_terms = [term for term in query_terms(text) if is_unspaced(term) and len(term) > 1]
    if unspaced_terms:
        return " OR ".join(unspaced_terms[:MAX_FOLLOW_UP_WORDS])
    words = [word.casefold() for word in words_of(text)]
    if languages_of(text) == ("german",):
        words += _list_compound_endings(words)
    return f"{' '.join(dict.fromkeys(words[:MAX_FOLLOW_UP_WORDS]))}?"


def _list_compound_endings(words: Iterable[str]) -> list[str]:
    """Return the possible last parts of German compounds: "garten" for "schrebergarten"."""
    endings: list[str] = []
    for word in words:
        if len(word) >= MIN_COMPOUND_CHARS:
            starts = range(MIN_STEM_CHARS, len(word) - MIN_STEM_CHARS)
            endings += [word[start:] for start in starts]
    return endings


def rank_quotes(question: AskedQuestion, quotes: Iterable[Quote]) -> list[Quote]:
    """Return the quotes to show, best first.

    The asker's statements that answer the question come first. Among them, statements that are
    still true come before the others. Other messages follow in the order of the search results.
    """
    quotes = list(quotes)
    for quote in quotes:
        quote.coverage = quote.relevance = question.measure_coverage(quote)
        quote.word_count = question.count_words(quote)
    own_quotes = [quote for quote in quotes if quote.is_askers]
    answers = _rank_answers(
        question, [quote for quote in own_quotes if not question.is_only_quoted(quote)]
    )
    other_quotes = [quote for quote in quotes if quote not in answers and quote.rank is not None]
    if answers:
        is_answered = answers[0].coverage == 1
        min_relevance = MIN_RELEVANCE if is_answered else 0
        other_quotes = [
            quote
            for quote in other_quotes
            if quote.relevance > 0 and quote.relevance >= min_relevance
        ]
        answers = _limit_loose_answers(question, answers)
    other_quotes.sort(key=lambda quote: quote.rank or 0)
    free_places = max(0, MAX_QUOTES - len(answers))
    shown_quotes = _group_neighbours(other_quotes[:free_places])
    return [*answers, *shown_quotes, *other_quotes[free_places:]]


def _distance_from_asker(question: AskedQuestion, quote: Quote) -> int:
    """Return how far a quote is from the asker's own state, from 0 to 2.

    The distance is 0 if the question asks who someone is or isn't about the asker, or if the quote
    is about its writer. It is
    2 if the quote is about a person whom the question doesn't name, and 1 otherwise.
    """
    if "speaker" not in question.reading.kinds or "speaker" in quote.reading.kinds:
        return 0
    if question.asks_for_person:
        return 0
    name = find_acting_person(quote.text)
    return 2 if name and not words_in(question.text).contain(name) else 1


def _limit_loose_answers(question: AskedQuestion, answers: Sequence[Quote]) -> list[Quote]:
    """Return the answers, but at most `MAX_LOOSE` loose ones.

    A loose answer has fewer of the question's topic words than the best answer, and shares no
    distinctive word with it.
    """
    best = answers[0]
    named_count = question.count_topic_words(best)
    result: list[Quote] = []
    loose_count = 0
    for quote in answers:
        is_loose = not quote.is_over and question.count_topic_words(quote) < named_count
        if is_loose and not share_distinctive_word(best, quote):
            loose_count += 1
            if loose_count > MAX_LOOSE:
                continue
        result.append(quote)
    return result


def _group_neighbours(quotes: Sequence[Quote]) -> list[Quote]:
    """Group messages of a conversation that have at most one message between them.

    A group is ranked where its best message was. The other messages of the group follow in the
    order in which they were written.
    """
    remaining = list(quotes)
    grouped: list[Quote] = []
    while remaining:
        group = [remaining.pop(0)]
        for quote in sorted(remaining, key=lambda quote: quote.message_id or 0):
            if any(_are_neighbours(quote, other) for other in group):
                group.append(quote)
                quote.follows = True
                remaining.remove(quote)
        grouped += group
    return grouped


def _are_neighbours(quote: Quote, other: Quote) -> bool:
    """Return whether two messages of a conversation have at most one message between them."""
    if quote.session_id is None or quote.session_id != other.session_id:
        return False
    if quote.message_id is None or other.message_id is None:
        return False
    return abs(quote.message_id - other.message_id) <= MAX_DISTANCE


def _rank_answers(question: AskedQuestion, statements: list[Quote]) -> list[Quote]:
    """Return the asker's statements that answer the question, best first."""
    statements.sort(key=lambda quote: quote.at)
    penalties = {id(quote): question.compute_penalty(quote, statements) for quote in statements}
    for index, quote in enumerate(statements):
        if not penalties[id(quote)]:
            _mark_replaced(question, quote, statements[:index], penalties)
    for index, quote in enumerate(statements):
        may_update = quote.reading.holds and "addition" not in quote.reading.kinds
        if may_update and not penalties[id(quote)] and not quote.is_over:
            _rank_above_earlier(question, quote, statements[:index], statements)
    answers = [quote for quote in statements if quote.relevance >= MIN_RELEVANCE]
    # A statement that replaces an answer is itself an answer.
    for quote in list(answers):
        if quote.replaced_by is not None and quote.replaced_by not in answers:
            answers.append(quote.replaced_by)

    answers.sort(key=lambda quote: _sort_key(question, quote, penalties[id(quote)]))
    return _put_successors_first(answers)


def _put_successors_first(answers: Sequence[Quote]) -> list[Quote]:
    """Return answers in an order where each replaced one stands after what replaced it.

    "Coco died" may rank lower than "mum has a poodle called Coco", because it names no dog.
    """
    ordered: list[Quote] = []
    for quote in answers:
        chain = [quote]
        while chain[-1].replaced_by is not None and chain[-1].replaced_by not in chain:
            chain.append(chain[-1].replaced_by)
        ordered += [link for link in reversed(chain) if link not in ordered]
    return ordered


def _sort_key(
    question: AskedQuestion, quote: Quote, penalty: int
) -> tuple[bool, bool, int, bool, int, bool, bool, int, int, bool, int, float]:
    """Return a key that sorts the best statement first.

    Statements about the asker come before those about others. Then come statements that are still
    true, then relevant ones, then those with a day or a time if the question asks when, and then
    the latest.
    """
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
        "when" in question.reading.kinds and not states_time(quote),
        distance > 1,
        -quote.word_count,
        -question.count_topic_words(quote),
        bool(list_unasked_topics(question, quote)) and not quote.reading.replaces,
        distance,
        -quote.at.timestamp(),
    )


def add_facts(
    quotes: dict[object, Quote],
    facts: Sequence[Json],
    replaced: Sequence[Json],
    texts: Mapping[str, str],
) -> None:
    """Add facts to `quotes`, which maps the ids of messages to quotes.

    If the id of a message is unknown, the key is its text. If `quotes` already contains the message
    that a fact was read from, the message's quote only gets the end of the fact, such as "until May
    2027". A second fact from the same message is treated in the same way. `replaced` are former
    facts, whose ends are also copied to the quotes of their messages. The quote of a former fact is
    linked to the quote of the fact that replaced it.
    """
    sources = _find_sources(quotes, facts)
    current = {fact["message_id"] for fact in facts if fact["is_current"]}
    quotes_by_fact: dict[int, Quote] = {}
    for rank, fact in enumerate(facts):
        message_id = fact["message_id"]
        end = "" if fact["is_current"] else fact["ended"]
        key = sources.setdefault(message_id, ("fact", fact["fact_id"]))
        if key not in quotes:
            author = fact.get("who")
            at = datetime.fromisoformat(fact["said_at"])
            speaker = author or texts["speaker_you"]
            quotes[key] = Quote(fact["content"], at, speaker, is_askers=author is None, rank=rank)
        if end and message_id not in current:
            quotes[key].end = end
        quotes_by_fact[fact["fact_id"]] = quotes[key]
    for fact in facts:
        _link_successor(quotes_by_fact[fact["fact_id"]], fact, quotes_by_fact)
    for former in replaced:
        former_quote = quotes.get(former["message_id"])
        if former_quote is not None and former["message_id"] not in current:
            former_quote.end = former["ended"]
            _link_successor(former_quote, former, quotes_by_fact)


def add_notes(quotes: dict[object, Quote], notes: Iterable[str], texts: Mapping[str, str]) -> None:
    """Add notes to `quotes`, except those whose words another quote contains.

    As nobody knows when a note was last true, it counts as older than every message.
    """
    quoted = [_plain_words(quote.text) for quote in quotes.values()]
    for note in notes:
        words = _plain_words(note)
        if not any(words in text for text in quoted):
            quotes["note", note] = Quote(
                note, _UNKNOWN_TIME, texts["speaker_you"], is_askers=True, is_note=True
            )


def _find_sources(quotes: Mapping[object, Quote], facts: Sequence[Json]) -> dict[int, object]:
    """Return the key of the quote of the message that each fact was read from, by message id."""
    sources: dict[int, object] = {}
    for fact in facts:
        for key, quote in quotes.items():
            if key == fact["message_id"] or (isinstance(key, str) and _is_source(quote, fact)):
                sources.setdefault(fact["message_id"], key)
    return sources


def _link_successor(quote: Quote, former: Json, quotes_by_fact: Mapping[int, Quote]) -> None:
    """Set the quote that replaced the quote of a former fact, if it was found, too.

    Quotes of current facts are left unchanged.
    """
    successor = quotes_by_fact.get(former.get("replaced_by") or 0)
    if quote.end and successor is not None and successor is not quote and not successor.end:
        quote.replaced_by = successor


def _is_source(quote: Quote, fact: Json) -> bool:
    """Return whether a fact was read from this message, whose id isn't known.

    This is true if the message contains the fact. The result is also True if both are from the same
    minute and the message has all words of the fact: "My daughter is Asha" was read from "my
    daughter Asha is 7".
    """
    if _plain_words(fact["content"]) in _plain_words(quote.text):
        return True
    distance = abs(datetime.fromisoformat(fact["said_at"]) - quote.at)
    words = words_in(quote.text)
    return distance <= MAX_CLOCK_DISTANCE and all(
        words.contain(word) for word in distinct_words(fact["content"])
    )


def _mark_replaced(
    question: AskedQuestion, quote: Quote, earlier: Sequence[Quote], penalties: dict[int, int]
) -> None:
    """Mark the earlier statements that a newer statement replaces.

    A newer statement replaces an earlier one about the same subject if it mentions a change or
    gives another value. The newer statement then becomes at least as relevant as the replaced one.
    """
    is_correction = "correction" in quote.reading.kinds
    for position, other in enumerate(reversed(earlier)):
        # A correction that directly follows needn't repeat its subject.
        is_close = position == 0 and other.session_id == quote.session_id
        if not other.relevance or penalties[id(other)] > 1:
            continue
        if not quote.reading.replaces and not has_new_value(question, quote, other):
            continue
        if is_about_another_person(quote, other) or is_less_specific(question, quote, other):
            continue
        if _belongs_to_another(quote, other, earlier):
            continue
        if _shares_only_common_name(question, quote, other, earlier):
            continue
        if not (is_correction and is_close) and not share_subject(question, quote, other):
            continue
        quote.relevance = max(quote.relevance, other.relevance)
        quote.word_count = max(quote.word_count, other.word_count)
        if not penalties[id(other)]:
            other.replaced_by = quote


def _rank_above_earlier(
    question: AskedQuestion, quote: Quote, earlier: Sequence[Quote], own: Sequence[Quote]
) -> None:
    """Rank a statement above the earlier ones that it probably updates.

    The earlier statements aren't marked as replaced, because the update isn't certain.
    """
    for other in earlier:
        if other.is_over or other.relevance < MIN_RELEVANCE:
            continue
        if _belongs_to_another(quote, other, earlier):
            continue
        if _shares_only_common_name(question, quote, other, earlier):
            continue
        if _count_signs(question, quote, other, own) >= MIN_SIGNS:
            other.is_outranked = True
            quote.relevance = max(quote.relevance, other.relevance)
            quote.word_count = max(quote.word_count, other.word_count)


def _belongs_to_another(newer: Quote, older: Quote, earlier: Sequence[Quote]) -> bool:
    """Return whether a newer statement updates another one of the earlier statements.

    "Zoe's dance class moved to Friday" belongs to "Zoe's dance class is on Wednesday", so it
    doesn't update "Zoe's birthday is on 14 November". A statement belongs to the earlier ones with
    which it has most in common. The result is False if one of the two earlier statements replaced
    the other, because both are about the same thing.
    """
    closeness = _measure_closeness(newer, older)
    return any(
        _measure_closeness(newer, other) >= closeness + MIN_CLOSER
        and other.replaced_by is not older
        and older.replaced_by is not other
        for other in earlier
        if other is not older
    )


def _shares_only_common_name(
    question: AskedQuestion, newer: Quote, older: Quote, earlier: Sequence[Quote]
) -> bool:
    """Return whether two statements have only a name in common that many statements contain.

    After five statements about Leo, "they changed Leo's training" doesn't update his age.
    """
    if newer.reading.topics & older.reading.topics & question.topics:
        return False
    newer_words = words_in(newer.text)
    shared = [
        word
        for word in distinct_words(older.text)
        if newer_words.contain(word) and is_distinctive(word, older)
    ]
    return bool(shared) and all(
        question.is_name(word)
        and sum(words_in(other.text).contain(word) for other in earlier) > MAX_STATEMENTS_WITH_WORD
        for word in shared
    )


def _measure_closeness(newer: Quote, older: Quote) -> float:
    """Return how much two statements have in common.

    A name counts 2, another word 1 and a topic 0.5. Words that announce the change and short words
    don't count. In scripts without spaces, words are pairs of characters.
    """
    words = words_in(newer.text)
    changes = words_in(" ".join(newer.reading.change_words))
    names = {word for name in names_in(f"x {older.text}") for word in words_of(plain_text(name))}
    closeness = 0.5 * len(newer.reading.topics & older.reading.topics)
    for word in distinct_words(older.text):
        if words.contain(word) and not changes.contain(word) and is_distinctive(word, older):
            closeness += 2 if word in names else 1
    return closeness


def _count_signs(
    question: AskedQuestion, newer: Quote, older: Quote, own: Sequence[Quote]
) -> float:
    """Return how many signs show that a newer statement updates an older one.

    The signs are common words and topics, words of the question, a word that announces a change,
    and another value of the same form. If the statements have nothing in common, the result is 0.
    """
    if are_about_different_things(question, newer, older):
        return 0.0
    if not newer.reading.announces_change and not newer.coverage:
        return 0.0
    shared_count = len(list_shared_words(question, newer, older, own))
    has_common_topic = bool(newer.reading.topics & older.reading.topics & question.topics)
    if not shared_count and not newer.coverage and not has_common_topic:
        return 0.0
    signs = 2.0 * min(MAX_SHARED_WORDS, shared_count) + 2.0 * newer.coverage
    if not shared_count and newer.coverage < older.coverage:
        signs -= 2
    if has_other_topic(question, newer, older):
        signs -= 2
    if newer.reading.announces_change:
        signs += 2
    elif "speaker" in older.reading.kinds - newer.reading.kinds:
        signs -= 1
    if has_common_topic:
        signs += 1
    if "speaker" in newer.reading.kinds:
        signs += 1
    return signs + score_new_value(newer, older)


def rank_matches(result: Json) -> dict[int, int]:
    """Return the rank of each message that the search matched, starting at 0 for the best."""
    scores: dict[int, float] = {}
    for session in result["sessions"]:
        for item in session["window"]:
            if item.get("is_anchor"):
                scores[item["message_id"]] = session.get("score", 0.0)
        for match in session.get("matches", ()):
            scores[match["message_id"]] = match["score"]
    keys_by_rank = sorted(scores, key=lambda key: -scores[key])
    return {key: rank for rank, key in enumerate(keys_by_rank)}


def name_speaker(item: Json, texts: Mapping[str, str]) -> str:
    """Return the speaker of a search result.

    Examples: "I", "You", "Ana", "Someone (forwarded by Ana)".
    """
    if item["role"] == "assistant":
        return texts["speaker_i"]
    is_askers = bool(item.get("is_asker"))
    name = texts["speaker_you"] if is_askers else item.get("sender") or texts["speaker_unknown"]
    origin = str(item.get("origin") or "typed")
    if origin == "typed":
        return str(name)
    if origin != "forwarded":
        return texts["speaker_of"].format(name=name, origin=texts[f"origin_{origin}"])
    if is_askers:
        return texts["speaker_forwarded_by_you"]
    return texts["speaker_forwarded"].format(name=name)


def _plain_words(text: str) -> str:
    return " ".join(words_of(plain_text(text)))


def render_quotes(
    question: AskedQuestion, quotes: Sequence[Quote], zone: tzinfo, texts: Mapping[str, str]
) -> str:
    """Return the quotes as a list of at most `MAX_QUOTES` items and about `MAX_LINES` lines.

    For example: ``- You said on 3 May: “My sister Ana lives in Porto.” (session 7)``. `texts` is
    the table `[texts]` of `offline.toml` in one language.
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


def render_files(files: Sequence[Json], texts: Mapping[str, str]) -> str:
    """Return the files that a search found as a list of at most `MAX_FILES` items.

    For example: ``- contract.pdf, page 7: “Pets are allowed.” (/files send 1)``. A file without a
    text around the words isn't listed.
    """
    lines = []
    for file in files[:MAX_FILES]:
        snippet = " ".join(file["snippet"].split())
        if snippet:
            name = texts.get(file["kind"], file["name"])
            speaker = ", ".join(filter(None, (name, _word_place(file, texts))))
            line = texts["quote_below"].format(speaker=speaker, text=snippet)
            command = f"`/files send {file['file_id']}`"
            lines.append(f"- {line}{texts['notes'].format(notes=command)}")
    return "\n".join(lines)


def _word_place(file: Json, texts: Mapping[str, str]) -> str:
    """Return the place of a search's words in a file, such as "Seite 7"."""
    part, _, number = file["place"].partition(" ")
    return texts[part].format(number=number) if part in texts else str(file["place"])


def _render_quote(
    question: AskedQuestion, quote: Quote, zone: tzinfo, texts: Mapping[str, str]
) -> str:
    """Return a quote with its day, its end and the number of its session.

    If the quote belongs to the message listed above it, the day and the session are left out.
    """
    text = _shorten_quote(question, quote.text)
    if quote.is_note:
        return texts["quote_noted"].format(text=text)
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
    """Return a day in words: "3 May", or with `has_year` "3 May 2026"."""
    template = texts["day_with_year" if has_year else "day"]
    return template.format(day=at.day, month=_name_month(at, texts), year=at.year)


def _shorten_quote(question: AskedQuestion, text: str) -> str:
    """Return a message on one line.

    A message longer than `MAX_QUOTE_CHARS` is cut to its most relevant sentence and the sentences
    after that.
    """
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
