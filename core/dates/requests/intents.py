"""Decide whether a message asks for a reminder, asks about reminders, or only mentions one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from itertools import pairwise

from core.dates.lexicon import load_triggers
from core.dates.requests.sentence import ALARM, ASKING, GLUE, Cluster, Sentence
from core.dates.requests.timers import is_timer
from core.dates.tokens import Kind

_QUOTE = re.compile(r'"[^"]*"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|「[^」]*」|『[^』]*』')

MAX_SUBJECT_WORDS = 3
_BEFORE_TASK = (Kind.FROM, Kind.OF, Kind.TO)
"""Words such as "to", which may precede a task."""
_AFTER_NAMES = (Kind.TO, Kind.OF, Kind.AT_OR_TO, Kind.COMMA)
MAYBE_PAST = 3
"""The number of a REQUEST that may also be a statement about the past: "I set a reminder"."""


class Intent(Enum):
    """What a person wants with a message about reminders."""

    SET = "set"
    QUESTION_ABOUT_REMINDERS = "question about reminders"
    # Asks how reminders work, or how to set one.
    HOW = "how"
    # Asks for a message only if something happens: "tell me only if it rains".
    WATCH = "watch"
    # Asks to remind another person: "remind Anna tomorrow at 9".
    OTHER_PERSON = "other person"
    # Tells about a reminder, refuses one, or quotes one.
    STORY = "story"
    NONE = "none"


class IntentReader:
    """Decides the intent of a message."""

    def __init__(self, sentence: Sentence, clusters: Sequence[Cluster]) -> None:
        self._sentence = sentence
        self._tokens = sentence.tokens
        self._lexicon = sentence.lexicon
        self._clusters = clusters

    def decide(self) -> Intent:
        """Return the intent of the message."""
        kinds = {token.kind for token in self._tokens}
        if self.find_other_person() is not None:
            return Intent.STORY if self._quotes() else Intent.OTHER_PERSON
        if Kind.OTHER_PERSON in kinds or self._is_blocked() or self._is_about_person():
            return Intent.STORY
        if self._names_condition():
            return Intent.STORY if self._quotes() else Intent.WATCH
        if Kind.LIST in kinds or self._asks_question():
            return Intent.QUESTION_ABOUT_REMINDERS
        if self._asks_how():
            return Intent.HOW
        return self._decide_request()

    def _names_condition(self) -> bool:
        """Return whether the message names a condition: "tell me only if it rains".

        Some conditions count only in a request, such as "if it rains". A wish such as "tell me if
        the price falls" counts only without a time. Japanese "9時になったら教えて" means "tell me
        at 9".
        """
        is_request = any(token.kind is Kind.REQUEST for token in self._tokens)
        if any(
            token.kind is Kind.CONDITION and (not token.number or is_request)
            for token in self._tokens
        ):
            return True
        parts = [cluster.parts for cluster in self._clusters]
        has_clock = any(token.kind in (Kind.CLOCK, Kind.OCLOCK) for token in self._tokens)
        if has_clock or any(part.has_day or part.clocks or part.part for part in parts):
            return False
        watches = self._lexicon.watches
        return watches is not None and watches.search(self._sentence.text.plain) is not None

    def find_other_person(self) -> int | None:
        """Return the index of the verb in "remind Anna tomorrow at 9", or None in other messages.

        The verb begins the message, perhaps after a time. In some languages, it ends the message.
        """
        starts = {cluster.start: cluster.end for cluster in self._clusters}
        index = 0
        while index < len(self._tokens):
            token = self._tokens[index]
            if index in starts:
                index = starts[index]
            elif token.kind in GLUE | {Kind.POLITE} or self._sentence.is_punctuation(token):
                index += 1
            else:
                break
        for position, token in enumerate(self._tokens):
            is_place = position == index or self._lexicon.has_postpositions
            if token.kind is Kind.OTHER_PERSON and is_place and not token.number:
                return position
        return index if self._precedes_name(index) else self._find_verb_of_recipient()

    def _find_verb_of_recipient(self) -> int | None:
        """Return the index of the verb in Korean "Anna에게 내일 9시에 알려줘", or None.

        The person begins the message or follows a time. They aren't to be reminded if a word of the
        task may take them: "call" in "remind me to call Anna".
        """
        pattern = self._lexicon.recipients
        match = pattern.search(self._sentence.text.plain) if pattern is not None else None
        if match is None or not self._begins_request(match.start()):
            return None
        for index, token in enumerate(self._tokens):
            if token.kind is Kind.REQUEST and token.start >= match.end():
                task = self._sentence.text.plain[match.end() : token.start]
                verbs = self._lexicon.recipient_tasks
                return index if verbs is None or not verbs.search(task) else None
        return None

    def _begins_request(self, position: int) -> bool:
        """Return whether only times precede a position of the plain text."""
        times: set[int] = set()
        for cluster in self._clusters:
            times.update(range(cluster.start, cluster.end))
        return all(
            index in times
            or token.kind in GLUE | {Kind.POLITE}
            or self._sentence.is_punctuation(token)
            for index, token in enumerate(self._tokens)
            if token.start < position
        )

    def _precedes_name(self, verb: int) -> bool:
        """Return whether a token is a verb such as "remind", and a name follows it.

        The name is in the lexicon or begins with a capital letter. A time, a word such as "to", or
        nothing follows it. "Anna's" begins a task.
        """
        if verb + 1 >= len(self._tokens):
            return False
        token = self._tokens[verb]
        is_single_word = " " not in self._word(verb)
        is_verb = token.kind in ASKING and token.number != ALARM and is_single_word
        if not is_verb and token.kind is not Kind.OTHER_PERSON:
            return False
        name = verb + 1
        while name + 1 < len(self._tokens) and self._tokens[name].kind is Kind.POLITE:
            name += 1
        following = self._tokens[name]
        if self._word(name) in self._lexicon.before_names and name + 1 < len(self._tokens):
            name += 1
            following = self._tokens[name]
        is_name = self._is_name(name) or self._has_infinitive(name + 1)
        if following.kind is not Kind.OTHER or not is_name:
            return False
        return token.kind is Kind.OTHER_PERSON or self._may_follow_name(name + 1)

    def _is_name(self, index: int) -> bool:
        """Return whether a word may be the name of a person. "Anna's" isn't."""
        text, token = self._sentence.text, self._tokens[index]
        is_capital = text.original[text.locate(token.start) :][:1].isupper()
        is_possessive = text.plain.startswith(("'", "’"), token.end)
        is_known = self._word(index) in self._lexicon.names
        return (is_capital or is_known) and not is_possessive

    def _has_infinitive(self, index: int) -> bool:
        """Return whether "to" and a word follow, as in "remind anna at 9 to eat"."""
        ends = {cluster.start: cluster.end for cluster in self._clusters}
        index = ends.get(index, index)
        if self._lexicon.language != "en" or index + 1 >= len(self._tokens):
            return False
        return self._word(index) == "to" and self._tokens[index + 1].kind is Kind.OTHER

    def _may_follow_name(self, index: int) -> bool:
        """Return whether a token may follow the name of a person to remind, or nothing does."""
        if index >= len(self._tokens):
            return True
        token = self._tokens[index]
        is_time = any(cluster.start == index for cluster in self._clusters)
        pattern = self._lexicon.after_names
        if pattern is not None and pattern.search(self._word(index)):
            return True
        return is_time or token.kind in _AFTER_NAMES or self._sentence.is_punctuation(token)

    def _word(self, index: int) -> str:
        token = self._tokens[index]
        return self._sentence.text.plain[token.start : token.end].strip()

    def _is_blocked(self) -> bool:
        """Return whether the message has words that exclude a request.

        Examples are "don't remind me", and "translate" before a request.
        """
        for token in self._tokens:
            if token.kind is Kind.BLOCK:
                return True
            if token.kind in ASKING:
                break
        return any(token.kind is Kind.BLOCK and not token.number for token in self._tokens)

    def _is_about_person(self) -> bool:
        """Return whether a person in the message reminds, or has set a reminder: "I set an alarm".

        A time may separate the person from the verb.
        """
        for subject, verb in pairwise(self._tokens):
            if subject.kind is Kind.PERSON and subject.number == 1 and verb.kind is Kind.REQUEST:
                return True
        if self._has_subject_in_past():
            return True
        if not self._tokens or self._tokens[0].kind is not Kind.PERSON or self._tokens[0].number:
            return False
        index = 1
        ends = {cluster.start: cluster.end for cluster in self._clusters}
        while index < len(self._tokens) and (
            index in ends or self._tokens[index].kind in (GLUE | {Kind.POLITE}) - {Kind.COMMA}
        ):
            index = ends.get(index, index + 1)
        return index < len(self._tokens) and self._tokens[index].kind in ASKING

    def _has_subject_in_past(self) -> bool:
        """Return whether the message says who set a reminder: "My sister set one"."""
        for index, token in enumerate(self._tokens[: MAX_SUBJECT_WORDS + 1]):
            if token.kind is Kind.REQUEST and token.number == MAYBE_PAST:
                return index > 0
            if token.kind not in (Kind.OTHER, Kind.THE) or self._sentence.is_punctuation(token):
                return False
        return False

    def _asks_how(self) -> bool:
        """Return whether the message asks how to set a reminder, or how reminders work."""
        asks = any(
            token.kind is Kind.HOW
            and (not token.number or self._sentence.neighbour(index, -1) is None)
            for index, token in enumerate(self._tokens)
        )
        return asks and self._names_reminders()

    def _names_reminders(self) -> bool:
        """Return whether the message has a word for a reminder: "how do reminders work?"."""
        plain = self._sentence.text.plain
        phrases = load_triggers(self._lexicon.language).asking
        return any(phrase in plain for phrase in phrases)

    def _asks_question(self) -> bool:
        """Return whether the message starts with a question: "why do you remind me".

        Returns False for questions with "how" and about an alarm device.
        """
        for index, token in enumerate(self._tokens):
            is_first = self._sentence.neighbour(index, -1) is None
            if token.kind is Kind.HOW:
                return False
            if token.kind is Kind.QUESTION and is_first:
                return not self._has_break(index) and not self._is_about_device()
        return False

    def _is_about_device(self) -> bool:
        """Return whether the message's only alarm is a device: "what's the alarm code?"."""
        asking = [token for token in self._tokens if token.kind in ASKING]
        is_alarm = all(token.kind is Kind.MENTION and token.number == ALARM for token in asking)
        return is_alarm and self._has_other_words()

    def _has_break(self, start: int) -> bool:
        """Return whether a comma or another mark comes between a token and the next request."""
        for token in self._tokens[start:]:
            if token.kind in ASKING:
                return False
            if token.kind in (Kind.COMMA, Kind.COLON) or self._sentence.is_punctuation(token):
                return True
        return True

    def _decide_request(self) -> Intent:
        """Return the intent of a message that has no words that exclude a request."""
        asking = [index for index, token in enumerate(self._tokens) if token.kind in ASKING]
        requests = [index for index in asking if self._is_asking(index)]
        if not requests:
            return Intent.STORY if asking else Intent.NONE
        if self._are_quoted(requests):
            return Intent.STORY
        has_time = any(cluster.parts.is_time for cluster in self._clusters)
        if not has_time and any(self._asks_for_knowledge(index) for index in requests):
            return Intent.NONE
        return Intent.SET

    def _is_asking(self, index: int) -> bool:
        """Return whether a token asks for a reminder.

        A MENTION asks for a reminder only in some positions.
        """
        if self._tokens[index].kind is Kind.REQUEST:
            return True
        if self._tells(index):
            return False
        if is_timer(self._sentence, index, self._clusters):
            return True
        if self._tokens[index].number == ALARM and self._has_other_words():
            return False
        before, after = self._sentence.neighbour(index, -1), self._sentence.neighbour(index + 1, 1)
        follows_time = any(
            self._sentence.neighbour(cluster.end, 1) is Kind.MENTION for cluster in self._clusters
        )
        is_begin = before is None or before in ASKING or self._follows_break(index)
        has_time = any(cluster.parts.is_time for cluster in self._clusters)
        return is_begin or follows_time or (after is None and has_time)

    def _tells(self, mention: int) -> bool:
        """Return whether the message tells about the reminder that it mentions: "it was sent".

        The "cancel" of "a reminder to cancel the trial" belongs to the task.
        """
        for index, token in enumerate(self._tokens):
            is_in_task = index > mention and self._tokens[index - 1].kind in _BEFORE_TASK
            if token.kind is Kind.TOLD and not is_in_task:
                return True
        return False

    def _has_other_words(self) -> bool:
        """Return whether a message contains more than a time: "the alarm at 6 broke"."""
        time_indexes: set[int] = set()
        for cluster in self._clusters:
            time_indexes.update(range(cluster.start, cluster.end))
        for index, token in enumerate(self._tokens):
            is_word = token.kind is Kind.OTHER and not self._sentence.is_punctuation(token)
            if is_word and index not in time_indexes:
                before = self._tokens[index - 1].kind if index else None
                return before not in (Kind.FOR, Kind.TO, Kind.COMMA, Kind.COLON, Kind.AT_OR_TO)
        return False

    def _follows_break(self, index: int) -> bool:
        """Return whether a comma, a colon or another punctuation mark precedes the token."""
        while index > 0 and self._tokens[index - 1].kind is Kind.POLITE:
            index -= 1
        if index == 0:
            return True
        token = self._tokens[index - 1]
        return token.kind in (Kind.COMMA, Kind.COLON) or self._sentence.is_punctuation(token)

    def _asks_for_knowledge(self, index: int) -> bool:
        """Return whether a question follows the request: "remind me, who wrote Dune?"."""
        if self._lexicon.has_free_questions:
            return any(token.kind is Kind.QUESTION for token in self._tokens)
        return self._sentence.neighbour(index + 1, 1) is Kind.QUESTION

    def _are_quoted(self, requests: Sequence[int]) -> bool:
        """Return whether all requests are quoted, and no time is outside of the quotes."""
        quotes = self._quotes()
        quoted_requests = [index for index in requests if self._is_within(quotes, index)]
        if not quoted_requests:
            return False
        has_own_time = any(
            cluster.parts.is_time and not self._is_within(quotes, cluster.start)
            for cluster in self._clusters
        )
        return len(quoted_requests) == len(requests) or not has_own_time

    def _quotes(self) -> list[tuple[int, int]]:
        """Return the positions of quotations in the plain text.

        If the whole text is a quotation, return none.
        """
        plain = self._sentence.text.plain
        spans = [match.span() for match in _QUOTE.finditer(plain)]
        outside = _QUOTE.sub("", plain)
        return spans if any(map(str.isalnum, outside)) else []

    def _is_within(self, spans: Sequence[tuple[int, int]], index: int) -> bool:
        start = self._tokens[index].start
        return any(begin <= start < end for begin, end in spans)
