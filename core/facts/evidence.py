"""What people themselves have said in a conversation, as evidence: which of their messages supports a statement.

Strict with names and figures: each must have been said. Lenient with the wording: most of the words, or others that are
said of the same thing. Knows no truth: only whether somebody has said it, and who. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from core.facts import speech
from core.facts.claims import is_first_person
from core.facts.numerals import figures_of, month_of
from core.facts.patterns import KIN
from core.facts.rules import LIMIT_CHARS
from core.text.attributes import ME, hint_words
from core.text.names import entity_key, names_in
from core.text.normalize import fold, is_unspaced, plain, words_of
from core.text.terms import stop_words, terms_of
from core.types import Message

WORDS, WORDS_BESIDE = 0.5, 0.3
"""At least this part of the words of a statement must have been said; where its names and figures were, the second."""
LOOKED_AT = 100
"""So many messages of people are looked at, the latest."""
EARLIER = 30
"""From so many messages of the same person before it a name may be taken that a message only points at."""
AS_A_QUESTION = 0.6
"""A question of which a statement holds so much says nothing; one that merely mentions it does."""
ENGLISH, ENGLISH_ACCENTED = 0.3, 0.5
"""From this part of English filling words on a text counts as English; where a word has an accent, the second, since
others say "me" and "a" too."""
_NAMING = frozenset(("name", "call", "heiss", "nom", "nombr", "nome", "llama", "chama", "名字", "名前"))
_FIGURE = re.compile(r"\d+")
_SENTENCE = re.compile(r"(?<=[.!?;。！？])\s*(?=\D)|\n+")
_BEGINNING = re.compile(r"(?:\A|(?<=[.!?;。！？\n]))\s*(?=\S)")
_CLAUSE = re.compile(
    r"[,:;，、]\s*|\s+(?:and|but|und|aber|sondern|et|mais|pero|y|mas|e|и|но|because|weil|so)\s+", re.IGNORECASE
)
_QUOTED = re.compile(r"```.*?(?:```|\Z)|[“”\"«„「][^“”\"»」\n]{20,}[“”\"»」]", re.DOTALL)
"""Code, and quotations of more than a name."""
_USER = re.compile(
    r"\b(?:(?:the|der|die|le|la|el|o|a) )?(?:users?|persons?|writer|speaker|nutzer\w*|benutzer\w*|"
    r"usuari[oa]|usuári[oa]|utilisat\w+|utente|пользовател\w*)(?:['’]s)?\b|用户|用戶|ユーザー|사용자",
    re.IGNORECASE,
)
"""How a statement names whom the model talks to."""
_KIN = re.compile(rf"\W*(?:s\s+)?(?:my |our |their )?(?P<kin>{KIN})\b(?! (?:is|are|name)\b)", re.IGNORECASE)
_OF_KIN = re.compile(rf"\b(?:my|our) ({KIN})['’]s\b", re.IGNORECASE)
_UNSPACED_KIN = re.compile(
    r"\W*[的の]?(?:妹|姐|姊|弟|哥|兄|姉|妈|媽|母|爸|父|丈夫|妻|夫|老公|老婆|朋友|友|同事|女儿|女兒|娘|儿子|兒子|息子)"
)
"""How it goes on where it is about somebody of theirs."""


@dataclass(frozen=True, slots=True)
class _Clause:
    """A part of a sentence. `is_asked`: its sentence ends as a question and begins with none of what asks a favour."""

    text: str
    terms: frozenset[str]
    is_asked: bool


@dataclass(frozen=True, slots=True)
class _Heard:
    """A text made ready to be compared. `digits` are all its digits in a row, `groups` the attributes it speaks of."""

    plain: str
    words: frozenset[str]
    terms: frozenset[str]
    figures: frozenset[int]
    digits: str
    groups: frozenset[str]

    @classmethod
    def of(cls, text: str) -> _Heard:
        compared = plain(fold(text))[0]
        words, terms = frozenset(words_of(compared)), frozenset(terms_of(text))
        return cls(compared, words, terms, figures_of(compared), "".join(_FIGURE.findall(compared)), _groups(terms))

    def has_name(self, name: str) -> bool:
        """Whether it holds every word of a name, perhaps inflected."""
        key = entity_key(name)
        if key and is_unspaced(key):
            return key.replace(" ", "") in self.plain.replace(" ", "")
        is_same = _is_like if name.islower() else _is_form
        return all(word in self.words or any(is_same(word, held) for held in self.words) for word in key.split())

    def has_word(self, term: str) -> bool:
        """Whether it holds a word in some form, or the number that the word is."""
        is_held = term in self.terms or any(_is_like(term, held) for held in self.terms)
        return is_held or speech.numbers().get(term, -1) in self.figures

    def speaks_of(self, term: str) -> bool:
        """Whether it holds the word, or another that is said of the same thing."""
        return self.has_word(term) or not self.groups.isdisjoint(_groups([term]))


@dataclass(frozen=True, slots=True)
class _Said:
    """A statement. `names` and `figures` must have been said, of `words` most."""

    names: tuple[str, ...]
    figures: tuple[str, ...]
    words: tuple[str, ...]
    content: str

    @classmethod
    def of(cls, content: str, names: Iterable[str]) -> _Said:
        text = " ".join(_USER.sub(" ", content).split())
        found = names_in(text)
        if found and text.startswith(found[0]) and " " not in found[0]:
            # The capital may be that of the sentence.
            found = found[1:]
        strict = [name for name in (*names, *found) if not _FIGURE.search(name)]
        figures = _FIGURE.findall(fold(" ".join((text, *names))))
        named = {term for name in strict for term in terms_of(name)}
        words = [term for term in terms_of(text) if term not in named and not term.isdecimal() and not month_of(term)]
        months = [str(month) for word in words_of(plain(text)[0]) if (month := month_of(word))]
        nobody = ("", *speech.NOBODY_IN_PARTICULAR)
        return cls(
            tuple(dict.fromkeys(name for name in strict if entity_key(name) not in nobody)),
            tuple(dict.fromkeys([*figures, *months])),
            tuple(term for term in dict.fromkeys(words) if term not in nobody),
            text,
        )


class Evidence:
    """`rows`: a conversation as the model reads it, oldest first."""

    def __init__(self, rows: Sequence[Message]) -> None:
        self._rows = rows
        self._own = [index for index, row in enumerate(rows) if is_own(row)][-LOOKED_AT:]
        self._ready: dict[int, _Heard] = {}

    def support(self, content: str, names: Sequence[str] = (), *, is_own_affair: bool = False) -> Message | None:
        """The message that supports a statement best, the latest of several; None where nobody has said it. `names`
        are those that it holds, with the value of its attribute; `is_own_affair`: it is told of who speaks."""
        said = _Said.of(content, names)
        best: tuple[int, Message] | None = None
        for index in self._own:
            score = self._score(said, index, is_own_affair=is_own_affair)
            if score and (best is None or score >= best[0]):
                best = (score, self._rows[index])
        return None if best is None else best[1]

    def is_supported(self, row: Message, content: str, names: Sequence[str] = (), *, is_own_affair: bool) -> bool:
        """Whether this one of the rows supports a statement."""
        indexes = [index for index in self._own if self._rows[index] is row]
        said = _Said.of(content, names)
        return any(self._score(said, index, is_own_affair=is_own_affair) for index in indexes)

    def unsaid(self, content: str, names: Sequence[str] = ()) -> list[str]:
        """The names and figures of a statement that nobody here has said."""
        said = _Said.of(content, names)
        heard = [self._heard(index) for index in self._own]
        missing = [name for name in said.names if not any(one.has_name(name) for one in heard)]
        return missing + [figure for figure in said.figures if not any(_has_figure(one, figure) for one in heard)]

    def _score(self, said: _Said, index: int, *, is_own_affair: bool) -> int:
        """How much of a statement a message says itself; 0 where it does not support it."""
        row = self._rows[index]
        text = own_words(row.text)
        asked = self._question_before(index)
        is_yes = bool(asked) and len(text.split()) <= speech.AFFIRMED_WORDS and bool(speech.AFFIRMED.match(text))
        own = _Heard.of(f"{text}\n{asked}") if is_yes else self._heard(index)
        frame = _Heard.of(asked)
        named = [name for name in said.names if own.has_name(name) or self._is_speaker(row, name)]
        counted = [figure for figure in said.figures if _has_figure(own, figure)]
        direct = [term for term in said.words if own.has_word(term)]
        score = len(named) + len(counted) + len(direct)
        if not score or not terms_of(said.content) or not self._is_complete(said, index, named, counted, (own, frame)):
            return 0
        is_telling = bool(named or counted)
        # Beside a name, "à" and "в" are in every second sentence.
        words = [term for term in said.words if not is_telling or len(term) > 2 or is_unspaced(term)]
        meant = [term for term in words if own.speaks_of(term) or frame.has_word(term)]
        if named and speech.NAMED.search(text):
            meant += [term for term in words if term in _NAMING]
        # Of other languages it is not known which words are said of the same thing; that it is told of oneself is.
        is_foreign = is_telling and not _is_english(text) and (is_first_person(text) or not is_own_affair)
        if len(meant) < (WORDS_BESIDE if is_telling else WORDS) * len(words) and not is_foreign:
            return 0
        return score if is_yes or _is_stated(said, text, is_own_affair=is_own_affair) else 0

    def _is_complete(
        self, said: _Said, index: int, named: Sequence[str], counted: Sequence[str], heard: tuple[_Heard, _Heard]
    ) -> bool:
        """Whether all names and figures were said: there, in the question before, or by the same person shortly
        before where the message names nobody else."""
        own, frame = heard
        names = [name for name in said.names if name not in named and not frame.has_name(name)]
        figures = [one for one in said.figures if one not in counted and not _has_figure(frame, one)]
        row = self._rows[index]
        figures = [one for one in figures if not _is_worked_out(one, said, row, own)]
        if not names and not figures:
            return True
        before = self._before(index)
        if any(not any(_has_figure(one, figure) for one in before[-2:]) for figure in figures):
            return False
        others = [name for name in names_in(own_words(row.text)) if not _Heard.of(said.content).has_name(name)]
        return not (names and others) and all(any(one.has_name(name) for one in before) for name in names)

    def _heard(self, index: int) -> _Heard:
        if index not in self._ready:
            self._ready[index] = _Heard.of(own_words(self._rows[index].text))
        return self._ready[index]

    def _before(self, index: int) -> list[_Heard]:
        sender = self._rows[index].sender
        earlier = [one for one in self._own if one < index and self._rows[one].sender == sender]
        return [self._heard(one) for one in earlier[-EARLIER:]]

    def _question_before(self, index: int) -> str:
        """What the assistant asked just before a message; empty where it asked nothing."""
        for row in reversed(self._rows[:index]):
            if row.role == "assistant" and row.text.strip():
                sentences = _SENTENCE.split(row.text[-LIMIT_CHARS:])
                return " ".join(one for one in sentences if one.rstrip(' *_”"').endswith(("?", "？")))
            if row.role != "user":
                break
        return ""

    @staticmethod
    def _is_speaker(row: Message, name: str) -> bool:
        return row.sender is not None and _Heard.of(row.sender.name).has_name(name)


def proper(names: Iterable[str]) -> list[str]:
    """Those of `names` that are more than a word of every day: written with a capital or figures, or in a script that
    has none."""
    return [name for name in names if not name.isascii() or any(one.isupper() or one.isdigit() for one in name)]


def subject_of(about: str, content: str, row: Message) -> str | None:
    """Whom a statement out of `row` is about, as the subject of an attribute: ``me``, the key of a name, ``my sister``;
    None where it is somebody else than `about` says, and unclear who."""
    key = entity_key(about)
    if about.casefold() in (ME, "the writer", "i", "user", "the user") or not key:
        return whose(content)
    speaker = entity_key(row.sender.name) if row.sender else ""
    is_speaker = key in (speaker, speaker.split(" ")[0]) and not _Heard.of(own_words(row.text)).has_name(about)
    return ME if is_speaker else key


def whose(content: str) -> str | None:
    """Whom a statement about the person is about after all: ``me``, ``my sister``, or None for another of theirs."""
    told = _USER.sub(" ", content, count=1)
    if (kin := _KIN.match(told)) is not None:
        return entity_key(f"my {kin['kin']}")
    return None if _UNSPACED_KIN.match(told) or speech.OTHER_SUBJECT.match(told) else ME


def is_own(row: Message) -> bool:
    """Whether a row is something that a person said in earnest to be heard."""
    is_person = row.role == "user" and row.kind == "chat" and not (row.sender and row.sender.is_nobody)
    return is_person and row.origin == "typed" and bool(row.text.strip())


def own_words(text: str) -> str:
    """A message without code, quotations, the lines that quote others and what is handed over to be worked on, and no
    more of it than somebody types."""
    text = _QUOTED.sub(" ", text)
    lines = (line for line in text.splitlines() if not line.lstrip().startswith((">", "[attached ")))
    kept = "\n".join(lines).strip()[:LIMIT_CHARS]
    begins = (sentence.end() for sentence in _BEGINNING.finditer(kept))
    handed = next((place for place in begins if speech.HANDED_OVER.match(kept, place)), len(kept))
    return kept[:handed].rstrip()


def _is_stated(said: _Said, text: str, *, is_own_affair: bool) -> bool:
    """Whether the clause that says most of a statement says it as one: not as a question, not on a condition, not the
    other way round, and of the same person."""
    statement = _Heard.of(said.content)
    clauses = list(_clauses(text))
    shares = [sum(statement.speaks_of(term) for term in clause.terms) for clause in clauses]
    most = max(shares, default=0)
    best = [clause for clause, share in zip(clauses, shares, strict=True) if share == most]
    return not best or any(_is_meant(clause, most, said, is_own_affair=is_own_affair) for clause in best)


def _is_meant(clause: _Clause, share: int, said: _Said, *, is_own_affair: bool) -> bool:
    if clause.is_asked and share >= AS_A_QUESTION * len(clause.terms):
        return False
    if speech.SUPPOSED.match(clause.text) or not _agrees(clause.text, said.content):
        return False
    stated = speech.SAYING.sub(" ", clause.text)
    if any(mood.search(stated) and not told.search(said.content) for mood, told in speech.MOODS):
        return False
    if not is_own_affair:
        return True
    statement = _Heard.of(said.content)
    if any(not statement.has_name(owner) for owner in speech.OF_ANOTHER.findall(clause.text)):
        return False
    if any(not statement.has_word(term) for kin in _OF_KIN.findall(clause.text) for term in terms_of(kin)):
        return False
    ordered = speech.ORDERED.match(clause.text)
    if speech.TO_THE_ASSISTANT.match(clause.text) or (ordered and not is_first_person(clause.text[ordered.end() :])):
        return False
    other = speech.OTHER_SUBJECT.match(clause.text)
    if other is None:
        return True
    # "My sister moved to Porto" says nothing of who speaks, unless the statement speaks of the sister too.
    who = terms_of(other["kin"] or other["name"] or other["unspaced"] or "")
    is_named = bool(who) and all(statement.has_word(term) for term in who)
    return is_named or (other["name"] is None and whose(said.content) != ME)


def _agrees(one: str, other: str) -> bool:
    """Whether both affirm or both deny. A second denial, or a word like "avoid" in one of them, turns it round."""
    (hard, soft), (hard_too, soft_too) = _denials(one), _denials(other)
    return max(hard, hard_too) > 1 or soft != soft_too or bool(hard) == bool(hard_too)


def _denials(text: str) -> tuple[int, set[str]]:
    kept = speech.NO_AT_FIRST.sub("", speech.KEPT_IN_MIND.sub(" ", text))
    return len(speech.DENIED.findall(kept)), {word.casefold()[:5] for word in speech.TURNED_AWAY.findall(kept)}


def _clauses(text: str) -> Iterable[_Clause]:
    for sentence in _SENTENCE.split(text):
        parts = [part for part in _CLAUSE.split(speech.NO_AT_FIRST.sub("", sentence)) if part.strip()]
        is_asking = sentence.rstrip().endswith(("?", "？", "吗", "か")) and not speech.REQUESTED.search(sentence)
        for place, part in enumerate(parts, 1):
            yield _Clause(part, frozenset(terms_of(part)), is_asking and place == len(parts))


def _has_figure(heard: _Heard, figure: str) -> bool:
    """Whether a number was said: in figures, in words, or as a part of a long one that is grouped otherwise."""
    return int(figure) in heard.figures or (len(figure) > 3 and figure in heard.digits)


def _is_worked_out(figure: str, said: _Said, row: Message, own: _Heard) -> bool:
    """Whether a figure is that of a date which was told from the day it was said on, or of the year of a day."""
    number = int(figure)
    if row.created_at.year - number in own.figures and speech.RELATIVE.search(own.plain):
        return True
    if abs(number - row.created_at.year) <= 1:
        return any(one in own.figures for one in map(int, said.figures)) or bool(speech.RELATIVE.search(own.plain))
    return number <= 31 and bool(speech.RELATIVE.search(own.plain))


@lru_cache(maxsize=1)
def _words_of_attributes() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for attribute, words in hint_words().items():
        for term in terms_of(words):
            found.setdefault(term, set()).add(attribute)
    return {term: frozenset(attributes) for term, attributes in found.items()}


def _groups(terms: Iterable[str]) -> frozenset[str]:
    known = _words_of_attributes()
    return frozenset(attribute for term in terms for attribute in known.get(term, ()))


def _is_form(one: str, other: str) -> bool:
    """Whether two words may be one name in two cases: ``Anna`` and ``Annas``, ``Москва`` and ``Москве``."""
    if one.isascii() and other.isascii():
        short, long = sorted((one, other), key=len)
        return len(short) > 2 and long in (short + "s", short + "es")
    shared = _shared(one, other)
    return shared > 2 and len(one) - shared <= 2 and len(other) - shared <= 2


def _is_like(one: str, other: str) -> bool:
    """Whether two words may be forms of one: the same beginning, and not much more."""
    shared = _shared(one, other)
    return shared > 3 and len(one) - shared <= 3 and len(other) - shared <= 3


def _shared(one: str, other: str) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _is_english(text: str) -> bool:
    words = words_of(plain(text)[0])
    is_accented = any(not word.isascii() and word.islower() for word in words_of(text))
    known = stop_words()
    return sum(word in known for word in words) >= (ENGLISH_ACCENTED if is_accented else ENGLISH) * len(words)
