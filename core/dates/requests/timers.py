"""Recognise a timer in a few words without prepositions: "timer 9 minutes pasta".

Such a message consists of the word for a timer or an alarm, a length or a clock time right next to
it, and a short task. A longer message may only tell about a timer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.dates.lexicon import lexicon_languages, load_lexicon, load_triggers
from core.dates.requests.grammar import TIMER_LENGTH, read_span
from core.dates.requests.sentence import ALARM, Cluster, Sentence
from core.dates.tokens import Kind, Token, compile_grammar, kinds_of

MAX_TASK_WORDS = 3
MAX_TASK_CHARS = 10
"""The longest task in a script without spaces."""
_TASK = """
    (?P<task> [^ number clock told question block person how list condition wish mention request
        vague no until except every repeat ago last ]* )
"""
_MARKS = "[comma colon to filler of from for polite]*"
_WHOLE_MESSAGES = (
    f"polite* mention {_MARKS} (?P<length> {TIMER_LENGTH} ) {_TASK}",
    f"polite* mention {_MARKS} {_TASK} (?P<length> {TIMER_LENGTH} ) polite*",
    f"polite* (?P<length> {TIMER_LENGTH} ) {_MARKS} mention {_TASK}",
    f"polite* {_TASK} mention {_MARKS} (?P<length> {TIMER_LENGTH} ) polite*",
    f"polite* {_TASK} (?P<length> {TIMER_LENGTH} ) {_MARKS} mention polite*",
)
_TIMERS = tuple(compile_grammar(pattern) for pattern in _WHOLE_MESSAGES)
_BEFORE_TIME = (Kind.AT, Kind.AT_OR_TO, Kind.ON, Kind.THE, Kind.IN)


def is_timer(sentence: Sentence, mention: int, clusters: Sequence[Cluster]) -> bool:
    """Return whether the whole message is a timer. `mention` is the index of its MENTION."""
    tokens = sentence.tokens
    if tokens[mention].number != ALARM or sentence.text.plain.rstrip().endswith(("?", "？")):
        return False
    kinds = kinds_of(tokens)
    for pattern in _TIMERS:
        match = pattern.fullmatch(kinds)
        if match is not None and _is_short(match, sentence):
            length = read_span(tokens[match.start("length") : match.end("length")])
            return bool(length.seconds)
    return _is_alarm_at_clock(sentence, mention, clusters)


def _is_alarm_at_clock(sentence: Sentence, mention: int, clusters: Sequence[Cluster]) -> bool:
    """Return whether the message is like "alarm 7am gym"."""
    for cluster in clusters:
        is_next = mention == 0 and cluster.start == 1
        if not is_next or not cluster.parts.has_clock:
            continue
        if sentence.tokens[1].kind in _BEFORE_TIME:
            return False  # "Alarm at 6 annoyed everyone."
        rest = sentence.tokens[cluster.end :]
        return _is_task(rest, sentence)
    return False


def _is_short(match: re.Match[str], sentence: Sentence) -> bool:
    return _is_task(sentence.tokens[match.start("task") : match.end("task")], sentence)


def _is_task(tokens: Sequence[Token], sentence: Sentence) -> bool:
    """Return whether tokens may be the task of a timer: a few words that don't tell about it."""
    words = [token for token in tokens if not sentence.is_punctuation(token)]
    texts = [sentence.text.plain[token.start : token.end].strip() for token in words]
    if any(token.kind is Kind.TOLD for token in words):
        return False
    if sentence.lexicon.is_unspaced:
        task = "".join(texts)
        tells = any(statement in task for statement in sentence.lexicon.timer_statements)
        return not tells and len(task) <= MAX_TASK_CHARS
    return len(words) <= MAX_TASK_WORDS and not _tells(texts, sentence.text.plain)


def _tells(words: Sequence[str], plain: str) -> bool:
    """Return whether one of the words is like "is" or "works" in a language of the message.

    Several languages have the word "timer", so the message may be in any of them.
    """
    return any(
        not load_lexicon(language).timer_statements.isdisjoint(words)
        for language in lexicon_languages()
        if load_triggers(language).letters.search(plain)
    )
