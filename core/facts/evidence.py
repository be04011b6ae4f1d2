"""Whether people have said what a model wants to keep, and who: looked up in what they typed, never in a summary.

Strict with names and figures: each must have been said. Lenient with the wording: most of the words, or others that are
said of the same thing.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from core.dates.mentions import month_of
from core.errors import ToolError
from core.facts.claims import sign
from core.guard.fence import said as typed
from core.guard.fence import typed_part
from core.store.sessions import Conversations
from core.text.normalize import fold, is_unspaced, language_data, plain, words_of
from core.text.terms import ME, entity_key, hint_words, kin_words, names_in, stop_words, word_terms
from core.types import Message, Scope, ToolContext

WORDS, WORDS_OF_FEW, WORDS_BESIDE = 0.7, 0.85, 0.3
"""The part of a statement's words that must have been said; of no more than `FEW` words; beside names and figures that
were."""
FEW = 5
LOOKED_AT = 100
"""Of the latest messages of people."""
EARLIER = 30
"""A name may come from so many messages of the same person before."""
AS_A_QUESTION = 0.6
"""A question of which a statement holds so much supports nothing."""
ENGLISH, ENGLISH_ACCENTED = 0.3, 0.5
"""The part of English stop words from which on a text counts as English; the second where a word has an accent, since
others say "me" and "a" too."""
FOREIGN_WORDS = 2
"""Words for each name and figure of a statement that may be of another language than the message."""
AFFIRMED_WORDS = 5
"""A longer message is no mere yes."""
_FIGURE = re.compile(r"\d+")
_SENTENCE = re.compile(r"(?<=[.!?;。！？])\s*(?=\D)|\n+")
_BEGINNING = re.compile(r"(?:\A|(?<=[.!?;。！？\n]))\s*(?=\S)")
_QUOTED = re.compile(r"[“”\"«„「][^“”\"»」\n]{20,}[“”\"»」]")
"""A quotation of more than a name."""
_data = partial(language_data, "evidence", "core.facts")
KIN = "|".join(kin_words())
_KIN = re.compile(rf"\W*(?:s\s+)?(?:my |our |their )?(?P<kin>{KIN})\b(?! (?:is|are|name)\b)", re.IGNORECASE)
_OF_KIN = re.compile(rf"\b(?:my|our) ({KIN})['’]s\b", re.IGNORECASE)


class _Text:
    """`digits`: all its digits in a row; `groups`: the attributes it speaks of."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.plain = plain(fold(text))[0]
        self.words, self.terms = frozenset(words_of(self.plain)), frozenset(word_terms(text))
        self.figures, self.digits = figures_of(self.plain), "".join(_FIGURE.findall(self.plain))
        self.groups = _groups(self.terms)

    def has_name(self, name: str) -> bool:
        key = entity_key(name)
        if key and is_unspaced(key):
            return key.replace(" ", "") in self.plain.replace(" ", "")
        is_same = _is_like if name.islower() else _is_form
        return all(word in self.words or any(is_same(word, held) for held in self.words) for word in key.split())

    def has_word(self, term: str) -> bool:
        """Whether it holds a word in some form, or the number that the word is."""
        is_held = term in self.terms or any(_is_like(term, held) for held in self.terms)
        return is_held or _counted().get(term, -1) in self.figures

    def speaks_of(self, term: str) -> bool:
        """Whether it holds the word, or another that is said of the same thing."""
        return self.has_word(term) or not self.groups.isdisjoint(_groups([term]))

    def has_figure(self, figure: str) -> bool:
        """Whether a number is in it: in figures, in words, or as a part of a long one that is grouped otherwise."""
        return int(figure) in self.figures or (len(figure) > 3 and figure in self.digits)


class _Statement:
    """`names` and `figures` must have been said, of `words` most. `is_own_affair`: it is about who speaks."""

    def __init__(self, content: str, names: Iterable[str], *, is_own_affair: bool = False) -> None:
        self.is_own_affair = is_own_affair
        self.content = " ".join(pattern("user").sub(" ", content).split())
        self.text = _Text(self.content)
        nobody = ("", *_data()["words"]["nobody"])
        strict = [name for name in (*names, *_names_within(self.content)) if not _FIGURE.search(name)]
        months = [word for word in words_of(plain(self.content)[0]) if month_of(word)]
        figures = _FIGURE.findall(fold(" ".join((self.content, *names))))
        figures += map(str, filter(None, map(month_of, months)))
        named = {term for name in (*strict, *months) for term in word_terms(name)}
        words = (one for one in word_terms(self.content) if not (one in named or one in nobody or one.isdecimal()))
        self.names = tuple(dict.fromkeys(name for name in strict if entity_key(name) not in nobody))
        self.figures, self.words = tuple(dict.fromkeys(figures)), tuple(dict.fromkeys(words))

    def held_by(self, text: _Text) -> set[str]:
        names, figures = filter(text.has_name, self.names), filter(text.has_figure, self.figures)
        return {*names, *figures, *filter(text.has_word, self.words)}


class _Heard:
    """A message beside a statement. `own`: what it says itself, with the question before where it is a mere yes;
    `frame`: the question that it answers; `held`: what it has of the statement, also by who says it."""

    def __init__(self, said: _Statement, own: _Text, asked: _Text, speaker: _Text) -> None:
        self.text = own.text
        is_short = bool(asked.text) and len(own.text.split()) <= AFFIRMED_WORDS
        self.is_yes = is_short and pattern("affirmed").match(own.text) is not None
        # An answer says something of the statement that stands not in the question.
        is_answer = self.is_yes or not said.held_by(own) <= said.held_by(asked)
        self.own = _Text(f"{own.text}\n{asked.text}") if self.is_yes else own
        self.frame = asked if is_answer else _Text("")
        self.held = said.held_by(self.own) | set(filter(speaker.has_name, said.names))


class Evidence:
    """`rows`: a conversation as the model reads it, oldest first."""

    def __init__(self, rows: Sequence[Message]) -> None:
        self._rows = rows
        self._own = [index for index, row in enumerate(rows) if typed(row)][-LOOKED_AT:]
        self._read = cache(_Text)

    def support(
        self, content: str, names: Sequence[str] = (), *, is_own_affair: bool = False, row: Message | None = None
    ) -> Message | None:
        """The message that supports a statement best, the latest of several; only `row` where it is given. `names`:
        those in it, with the value of its attribute; `is_own_affair`: it is about who speaks."""
        said = _Statement(content, names, is_own_affair=is_own_affair)
        indexes = self._own if row is None else [index for index in self._own if self._rows[index] is row]
        score, best = max(((self._score(said, index), index) for index in indexes), default=(0, 0))
        return self._rows[best] if score else None

    def bears_out(self, content: str) -> bool:
        """Whether each sentence of a note was said, if not in one message."""
        parts = [part for part in _SENTENCE.split(content) if word_terms(part)]
        is_own_affair = pattern("user").match(content) is not None and whose(content) == ME
        return bool(parts) and all(self.support(part, is_own_affair=is_own_affair) for part in parts)

    def missing(self, content: str, names: Sequence[str] = ()) -> str:
        """What of a statement nobody has typed, as a clause for who decides about it."""
        said = _Statement(content, names)
        held = set[str]().union(*(said.held_by(self._text(index)) for index in self._own))
        unsaid = [f"“{one[:80]}”" for one in (*said.names, *said.figures) if one not in held]
        return f"nobody here has typed {' or '.join(unsaid[:5]) or 'that'}"

    def _score(self, said: _Statement, index: int) -> int:
        """How much of a statement a message says itself; 0 where it does not support it."""
        sender, asked = self._rows[index].sender, self._read(self._question_before(index))
        heard = _Heard(said, self._text(index), asked, self._read(sender.name if sender else ""))
        if not heard.held or not said.text.terms or not self._is_complete(said, index, heard):
            return 0
        is_stated = heard.is_yes or _is_stated(said, heard.text)
        return len(heard.held) if is_stated and _is_worded(said, heard) else 0

    def _is_complete(self, said: _Statement, index: int, heard: _Heard) -> bool:
        """Whether all names and figures were said: there, in the question before, or by the same person shortly
        before where the message names nobody else."""
        held = heard.held | said.held_by(heard.frame)
        names, figures = set(said.names) - held, set(said.figures) - held
        figures = {one for one in figures if not _is_worked_out(one, said, self._rows[index], heard.own)}
        if not names and not figures:
            return True
        sender = self._rows[index].sender
        earlier = [one for one in self._own if one < index and self._rows[one].sender == sender]
        before = [said.held_by(self._text(one)) for one in earlier[-EARLIER:]]
        if not figures <= set().union(*before[-2:]):
            return False
        names_others = names and any(not said.text.has_name(name) for name in names_in(heard.text))
        return not names_others and names <= set().union(*before)

    def _text(self, index: int) -> _Text:
        return self._read(own_words(self._rows[index].text))

    def _question_before(self, index: int) -> str:
        """What the assistant asked just before a message; empty where it asked nothing."""
        for row in reversed(self._rows[:index]):
            if row.role == "assistant" and row.text.strip():
                sentences = _SENTENCE.split(row.text[-2_000:])
                return " ".join(one for one in sentences if one.rstrip(' *_”"').endswith(("?", "？")))
            if row.role != "user":
                break
        return ""


def _is_worded(said: _Statement, heard: _Heard) -> bool:
    """Whether enough of the words of a statement were said."""
    # Of who speaks the name is known without a word.
    anchors = len(heard.held & {*said.figures, *filter(heard.own.has_name, said.names)})
    # Beside a name, "à" and "в" are in every second sentence.
    words = [term for term in said.words if not anchors or len(term) > 2 or is_unspaced(term)]
    unsaid = _unsaid(words, said, heard)
    share = WORDS_BESIDE if anchors else WORDS_OF_FEW if len(words) <= FEW else WORDS
    if len(words) - len(unsaid) >= share * len(words):
        return True
    # Of other languages it is not known which words are said of the same thing; that it is told of oneself is.
    if _is_english(heard.text) or (said.is_own_affair and not sign("first_person").search(heard.text)):
        return False
    return len(unsaid) <= FOREIGN_WORDS * anchors


def _unsaid(words: Iterable[str], said: _Statement, heard: _Heard) -> list[str]:
    is_naming = not heard.held.isdisjoint(said.names) and pattern("named").search(heard.text)
    naming = _data()["words"]["naming"] if is_naming else ()
    return [one for one in words if not (one in naming or heard.own.speaks_of(one) or heard.frame.has_word(one))]


def _names_within(text: str) -> Sequence[str]:
    """Without a first word, whose capital says nothing."""
    found = names_in(text)
    return found[1:] if found and text.startswith(found[0]) and " " not in found[0] else found


def subject_of(about: str, content: str, row: Message) -> str | None:
    """Whom a statement out of `row` is about, as the subject of an attribute: ``me``, the key of a name, ``my sister``;
    None where that is unclear."""
    key = entity_key(about)
    if about.casefold() in (ME, "the writer", "i", "user", "the user") or not key:
        return whose(content)
    speaker = entity_key(row.sender.name) if row.sender else ""
    is_speaker = key in (speaker, speaker.split(" ")[0]) and not _Text(own_words(row.text)).has_name(about)
    return ME if is_speaker else key


def whose(content: str) -> str | None:
    """Whom a statement about the person is about after all: ``me``, ``my sister``, or None for another of theirs."""
    told = pattern("user").sub(" ", content, count=1)
    if (kin := _KIN.match(told)) is not None:
        return entity_key(f"my {kin['kin']}")
    return None if pattern("unspaced_kin").match(told) or pattern("other_subject").match(told) else ME


def own_words(text: str) -> str:
    """What was typed, without quotations, lines that quote others and what is handed over to be worked on."""
    lines = _QUOTED.sub(" ", typed_part(text)).splitlines()
    kept = "\n".join(line for line in lines if not line.lstrip().startswith((">", "[att"))).strip()
    begins = (sentence.end() for sentence in _BEGINNING.finditer(kept))
    handed = next((place for place in begins if sign("handed_over").match(kept, place)), len(kept))
    return kept[:handed].rstrip()


def figures_of(compared: str) -> frozenset[int]:
    """All numbers of a text, also those in words, of months, and in Han figures; a word that may be one counts."""
    found = {int(figure) for figure in re.findall(r"\d{1,40}", compared)}
    for word in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)?", compared):
        number = _counted().get(word) or month_of(word)
        found |= {number} if number else set()
    found |= {int(hour) % 12 for hour in re.findall(r"\b(1[3-9]|2[0-3])[:.h]?\d?", compared)}
    found |= {minutes for word, minutes in _data()["parts_of_an_hour"].items() if word in compared}
    return frozenset(found | {_han(run) for run in re.findall(r"[〇一二三四五六七八九十]{1,40}", compared)})


def _han(run: str) -> int:
    """``二十三`` is 23, ``二〇二六`` 2026."""
    digits = [int(unicodedata.numeric(sign)) for sign in run]
    if 10 not in digits:
        return int("".join(map(str, digits)))
    place = digits.index(10)
    return 10 * (digits[place - 1] if place else 1) + sum(digits[place + 1 : place + 2])


def _is_stated(said: _Statement, text: str) -> bool:
    """Whether the clause that says most of a statement says it as one: not as a question, not on a condition, not the
    other way round, and of the same person."""
    clauses = []
    for sentence in _SENTENCE.split(text):
        parts = [part for part in pattern("clause").split(pattern("no_at_first").sub("", sentence)) if part.strip()]
        is_asking = sentence.rstrip().endswith(("?", "？", "吗", "か")) and not pattern("requested").search(sentence)
        for place, part in enumerate(parts, 1):
            terms = frozenset(word_terms(part))
            share = sum(said.text.speaks_of(term) for term in terms)
            is_asked = is_asking and place == len(parts) and share >= AS_A_QUESTION * len(terms)
            clauses.append((share, part, is_asked))
    most = max((share for share, _, _ in clauses), default=0)
    best = [(part, is_asked) for share, part, is_asked in clauses if share == most]
    return not best or any(not is_asked and _is_meant(part, said) for part, is_asked in best)


def _is_meant(clause: str, said: _Statement) -> bool:
    (hard, soft), (hard_too, soft_too) = _denials(clause), _denials(said.content)
    # A second denial, or a word like "avoid" in one of them, turns it round.
    agrees = max(hard, hard_too) > 1 or soft != soft_too or bool(hard) == bool(hard_too)
    if pattern("supposed").match(clause) or not agrees:
        return False
    stated = pattern("saying").sub(" ", clause)
    moods = (("unreal", "unreal_told"), ("hearsay", "hearsay"), ("over", "over_told"))
    if any(pattern(mood).search(stated) and not pattern(told).search(said.content) for mood, told in moods):
        return False
    return not said.is_own_affair or _is_of_the_speaker(clause, said)


def _is_of_the_speaker(clause: str, said: _Statement) -> bool:
    """ "My sister moved to Porto" says nothing of who speaks, unless the statement speaks of the sister too."""
    ordered = pattern("ordered").match(clause)
    is_order = ordered is not None and not sign("first_person").search(clause[ordered.end() :])
    if is_order or pattern("to_the_assistant").match(clause):
        return False
    kin = [term for found in _OF_KIN.findall(clause) for term in word_terms(found)]
    named = pattern("of_another").findall(clause)
    if not all(map(said.text.has_name, named)) or not all(map(said.text.has_word, kin)):
        return False
    other = pattern("other_subject").match(clause)
    if other is None:
        return True
    who = word_terms(other["kin"] or other["name"] or other["unspaced"] or "")
    is_named = bool(who) and all(map(said.text.has_word, who))
    return is_named or (other["name"] is None and whose(said.content) != ME)


def _denials(text: str) -> tuple[int, set[str]]:
    kept = pattern("no_at_first").sub("", pattern("kept_in_mind").sub(" ", text))
    return len(pattern("denied").findall(kept)), {w.casefold()[:5] for w in pattern("turned_away").findall(kept)}


def _is_worked_out(figure: str, said: _Statement, row: Message, own: _Text) -> bool:
    """Whether a figure is that of a date which was told from the day it was said on, or of the year of a day."""
    number, year = int(figure), row.created_at.year
    is_relative = pattern("relative").search(own.plain) is not None
    if abs(number - year) <= 1:
        return is_relative or any(int(one) in own.figures for one in said.figures)
    return is_relative and (number <= 31 or year - number in own.figures)


def _is_form(one: str, other: str) -> bool:
    """Whether two words may be one name in two cases: ``Anna`` and ``Annas``, ``Москва`` and ``Москве``."""
    if one.isascii() and other.isascii():
        short, long = sorted((one, other), key=len)
        return len(short) > 2 and long in (short + "s", short + "es")
    return _is_like(one, other, shortest=2, ending=2)


def _is_like(one: str, other: str, shortest: int = 3, ending: int = 3) -> bool:
    """Whether two words differ in their endings only."""
    same = max(shortest + 1, len(one) - ending, len(other) - ending)
    return one[:same] == other[:same]


def _is_english(text: str) -> bool:
    words = words_of(plain(text)[0])
    is_accented = any(not word.isascii() and word.islower() for word in words_of(text))
    known = stop_words()
    return sum(word in known for word in words) >= (ENGLISH_ACCENTED if is_accented else ENGLISH) * len(words)


def _groups(terms: Iterable[str]) -> frozenset[str]:
    held = set(terms)
    return frozenset(attribute for attribute, words in _hints().items() if not words.isdisjoint(held))


@cache
def _hints() -> dict[str, frozenset[str]]:
    return {attribute: frozenset(word_terms(words)) for attribute, words in hint_words().items()}


@cache
def _counted() -> Mapping[str, int]:
    """The numbers in words, each line one more than the one before."""
    lines = enumerate(_data()["words"]["counted"], 1)
    return {plain(word)[0]: number for number, line in lines for word in line.split()}


@cache
def pattern(name: str) -> re.Pattern[str]:
    """A pattern of `data/evidence.toml`."""
    return re.compile(_data()["patterns"][name].replace("\n", ""), re.IGNORECASE)


@dataclass
class EvidenceSearch:
    """In what the model reads."""

    conversations: Conversations

    async def evidence(self, context: ToolContext, beside: Sequence[str] = ()) -> Evidence:
        """Of the conversation as the model reads it; notes `beside` count as said."""
        noted = [Message(role="user", text=entry, session_id=0, created_at=context.now) for entry in beside]
        return Evidence([*await self.conversations.history(context.session, context.scopes), *noted])

    async def unsaid(self, contents: Sequence[str], context: ToolContext, beside: Sequence[str] = ()) -> str | None:
        """Why people have not typed `contents`, as a clause; None where they have, or notes `beside` say so."""
        evidence = await self.evidence(context, beside)
        unsaid = (evidence.missing(one) for one in contents if not evidence.bears_out(one))
        return await asyncio.to_thread(next, unsaid, None)

    async def place(self, source: Message, context: ToolContext) -> tuple[Scope, str]:
        """Whose a message of the conversation is, and its platform: a conversation that goes on here may have begun
        elsewhere, and what was said there belongs there. Raises ToolError when it is gone."""
        if source.session_id == context.session.id:
            return context.scope, context.session.address.platform
        session = await self.conversations.find(source.session_id, context.scopes)
        if session is None:
            raise ToolError("The message that says so was deleted. Do not keep it.")
        return session.scope, session.address.platform
