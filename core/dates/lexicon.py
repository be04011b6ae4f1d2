"""Hold the phrases of a language, and the tokens that they mean.

A lexicon is a file `requests/data/<language>.toml`. Its table `tokens` lists the phrases for each
kind of token; `docs/extending.md` shows how to write one. `tokenizer` splits texts with a lexicon.
`period_lexicon` builds the lexicon with which recall reads periods in all languages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any, NamedTuple
from zoneinfo import available_timezones

from core.dates.tokens import Kind, Token, parse_token_name
from core.text.normalize import plain_form, read_language_data

PACKAGE = "core.dates.requests"
"""The package with the files of the lexicons."""
PREFIX_LETTERS = 3
"""Phrases are found by this many characters at their beginning."""
MAX_ENDING_LETTERS = 5
"""A star at the end of a phrase matches at most this many letters, unless a file says otherwise."""


LATIN_LETTERS = "[a-z]"
_ALTERNATIVES = re.compile(r"\(([^()]*)\)")
_SEPARATOR = re.compile(r"[,\n]")
ASKING_KINDS = frozenset({Kind.REQUEST, Kind.WISHED, Kind.MENTION, Kind.LIST, Kind.OTHER_PERSON})
"""Tokens of a message that asks for a reminder, or about reminders."""
ASIDE_KINDS = frozenset({Kind.HOW, Kind.BLOCK, Kind.CONDITION})
"""Further kinds of tokens that show that a message may be about reminders."""


# --- Lexicons ---


class ShortWeekdays(NamedTuple):
    """Weekdays of one letter, such as Korean 화 and 목. The table `short_weekdays` lists them."""

    days: Mapping[str, int]
    # Matches a weekday and the separators before it.
    item: re.Pattern[str]
    # Matches what may follow the last weekday.
    end: re.Pattern[str]


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """The phrases of a language, and the tokens that they mean."""

    # Empty for a lexicon of several languages.
    language: str = ""
    # Whether days precede months in numbers: 3/5 is 3 May.
    is_day_first: bool = True
    # Whether 3.5 may be 3 May even without a preposition.
    has_point_dates: bool = False
    # Whether a question word may be anywhere in a request for knowledge.
    has_free_questions: bool = False
    # Whether the script has no spaces between words.
    is_unspaced: bool = False
    # Whether "18 hours" may be a clock time, like French "à 18 heures".
    has_hours_as_clock: bool = False
    # Whether clock times in digits, such as "2:30", are often in the afternoon, as in English.
    has_half_days: bool = False
    # Whether words such as "before" follow the time to which they refer.
    has_postpositions: bool = False
    # Whether words end with particles, which are phrases themselves, like the 에 of "9시에".
    has_particles: bool = False
    # A text with one of these letters may be in this language.
    letters: re.Pattern[str] = re.compile(LATIN_LETTERS)
    # Matches a wish to be told when something happens: "tell me if the price falls".
    watches: re.Pattern[str] | None = None
    # Matches words that replace the named day by another one: "not next Tuesday, the one after".
    other_day: re.Pattern[str] | None = None
    # Patterns of the original text and what replaces them: "not next Tuesday, the one after"
    # becomes "the Tuesday after next".
    rewrites: tuple[tuple[re.Pattern[str], str], ...] = ()
    # A star at the end of a phrase matches at most this many letters.
    max_ending_letters: int = MAX_ENDING_LETTERS
    phrases: dict[str, tuple[Token, ...]] = field(default_factory=dict)
    stems: dict[str, tuple[Token, ...]] = field(default_factory=dict)
    # The lengths of the phrases that begin with the same `PREFIX_LETTERS`, longest first.
    lengths: dict[str, list[int]] = field(default_factory=dict)
    # The first characters of all phrases.
    initials: set[str] = field(default_factory=set)
    # Endings that count only after another phrase in the same word.
    particles: frozenset[str] = frozenset()
    # Words to remove at the beginning and the end of a task, and endings to replace.
    task_starts: tuple[str, ...] = ()
    task_ends: tuple[str, ...] = ()
    # Words that don't name a task, such as "something".
    task_placeholders: frozenset[str] = frozenset()
    task_endings: tuple[tuple[str, str], ...] = ()
    # Words of a request that may also be a thing in its task: "a reminder".
    task_things: frozenset[str] = frozenset()
    # Words such as "not" that belong to the beginning of a task: "not to eat".
    task_negations: frozenset[str] = frozenset()
    # Words between a verb and the name of another person: French "à" in "rappelle à Anna".
    before_names: frozenset[str] = frozenset()
    # Given names in the form in which they follow the verb. Other names need a capital letter.
    names: frozenset[str] = frozenset()
    # Matches a word after the name of another person, such as a Russian infinitive.
    after_names: re.Pattern[str] | None = None
    # Matches the person to remind, in languages that name them before the verb: Korean "Anna에게".
    recipients: re.Pattern[str] | None = None
    # Matches words of a task that may take such a person: "call" in "call Anna".
    recipient_tasks: re.Pattern[str] | None = None
    # Whether "in Tuesday" means the Tuesday after the next one, as in Russian.
    skips_weekdays: bool = False
    # Words such as "is" and "works", with which a message tells about a timer.
    timer_statements: frozenset[str] = frozenset()
    # Last characters of a request that may begin a time instead: the 下 of "提醒我下午三点".
    shared_ends: str = ""
    # The task of a request for an alarm, if the request names none.
    alarm: str = ""
    # Weekdays of one letter, which count only in a list or after "every week".
    short_weekdays: ShortWeekdays | None = None
    # Long names of days and months by their first letter: a word with one wrong letter is read as
    # one of these.
    long_names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, phrase: str, tokens: tuple[Token, ...]) -> None:
        """Add a phrase, unless it is already there. A star at its end makes it a stem."""
        self.add_form(plain_phrase(phrase), tokens)

    def add_form(self, form: str, tokens: tuple[Token, ...]) -> None:
        """Add a phrase that is in plain form already. See `add`."""
        table = self.stems if form.endswith("*") else self.phrases
        form = form.removesuffix("*")
        if not form:
            return
        table.setdefault(form, tokens)
        self.initials.add(form[0])
        lengths = self.lengths.setdefault(form[:PREFIX_LETTERS], [])
        if len(form) not in lengths:
            lengths.append(len(form))
            lengths.sort(reverse=True)


@cache
def lexicon_languages() -> tuple[str, ...]:
    """Return the languages with a lexicon. English comes first."""
    names = (entry.name for entry in files(PACKAGE).joinpath("data").iterdir())
    languages = [name.removesuffix(".toml") for name in names if name.endswith(".toml")]
    return tuple(sorted(languages, key=lambda language: (language != "en", language)))


@cache
def load_lexicon(language: str) -> Lexicon:
    """Return the lexicon of one of the `lexicon_languages`."""
    return build_lexicon(language, read_language_data(language, PACKAGE))


def plain_phrase(phrase: str) -> str:
    """Return a phrase in the form in which it is compared with a text. See `plain_form`."""
    return plain_form(phrase.strip())[0]


class Triggers(NamedTuple):
    """The phrases that a message about reminders must contain, in plain form.

    They are a small part of the lexicon. With them, a message is checked without loading the
    lexicons of all languages.
    """

    # A text with one of these letters may be in this language.
    letters: re.Pattern[str]
    # Requests, mentions of reminders, and questions about them. A mention such as "reminder"
    # represents all phrases that contain it.
    asking: frozenset[str]
    # Words of requests that only the rewrites of a lexicon can read: "Bescheid" in "gib mir morgen
    # um 9 Bescheid".
    rewritten: frozenset[str]
    # The phrases of `asking` and `rewritten`, and words such as "don't wake". No phrase begins with
    # another one.
    all: tuple[str, ...]

    def may_concern(self, plain: str) -> bool:
        """Return whether a plain text may be about reminders."""
        return any(phrase in plain for phrase in self.all)


@cache
def load_triggers(language: str) -> Triggers:
    """Return the triggers of one of the `lexicon_languages`."""
    data = read_language_data(language, PACKAGE)
    forms: dict[Kind, set[str]] = {kind: set() for kind in ASKING_KINDS | ASIDE_KINDS}
    for name, phrases in data["tokens"].items():
        kinds = {token.kind for token in parse_token_name(name)} & forms.keys()
        if kinds:
            stems = (form.removesuffix("*") for form in _list_forms(phrases))
            forms[min(kinds)].update(filter(None, stems))
    asking = set().union(*(forms[kind] for kind in ASKING_KINDS))
    aside = set().union(*(forms[kind] for kind in ASIDE_KINDS))
    rewrites = data.get("rewrites", ())
    triggers = ",".join(table.get("trigger", "") for table in rewrites)
    rewritten = set(filter(None, map(plain_phrase, triggers.split(","))))
    boundary = "" if data.get("is_unspaced", False) else r"(?<!\w)"
    mentions = forms[Kind.MENTION]
    mention = re.compile(boundary + f"(?:{'|'.join(map(re.escape, mentions))})")
    asking = mentions | {form for form in asking if not mention.search(form)}
    everything = asking | rewritten | {form for form in aside if not mention.search(form)}
    letters = re.compile(data.get("letters", LATIN_LETTERS))
    phrases = tuple(_drop_longer(everything))
    return Triggers(letters, frozenset(asking), frozenset(rewritten), phrases)


def _list_forms(phrases: str) -> Iterator[str]:
    """Yield the plain forms of phrases. A stem keeps its star.

    A phrase is made plain before its alternatives are written out, because most phrases have many.
    """
    for phrase in _SEPARATOR.split(phrases):
        yield from _expand(plain_phrase(phrase))


def _drop_longer(forms: Iterable[str]) -> Iterator[str]:
    """Yield the forms that don't begin with another one."""
    shorter = None
    for form in sorted(forms):
        if shorter is None or not form.startswith(shorter):
            shorter = form
            yield form


def build_lexicon(language: str, data: Mapping[str, Any]) -> Lexicon:
    """Build a lexicon from the content of its file.

    If a phrase is listed twice, its first meaning counts.
    """
    task = data.get("task", {})
    particles = [plain_phrase(form) for form in data.get("particles", "").split(",")]
    lexicon = Lexicon(
        language=language,
        is_day_first=data.get("is_day_first", True),
        has_point_dates=data.get("has_point_dates", False),
        has_free_questions=data.get("has_free_questions", False),
        is_unspaced=data.get("is_unspaced", False),
        has_hours_as_clock=data.get("has_hours_as_clock", False),
        has_half_days=data.get("has_half_days", False),
        skips_weekdays=data.get("skips_weekdays", False),
        has_postpositions=data.get("has_postpositions", False),
        has_particles=any(particles),
        letters=re.compile(data.get("letters", LATIN_LETTERS)),
        watches=_compile(data.get("watches")),
        other_day=_compile(data.get("other_day")),
        rewrites=tuple(_read_rewrite(table) for table in data.get("rewrites", ())),
        particles=frozenset(particles),
        task_starts=tuple(map(plain_phrase, task.get("starts", ()))),
        task_ends=tuple(map(plain_phrase, task.get("ends", ()))),
        task_placeholders=frozenset(map(plain_phrase, task.get("placeholders", ()))),
        task_endings=tuple(task.get("endings", {}).items()),
        task_things=frozenset(map(plain_phrase, task.get("things", ()))),
        task_negations=frozenset(map(plain_phrase, task.get("negations", ()))),
        before_names=frozenset(map(plain_phrase, task.get("before_names", ()))),
        names=frozenset(map(plain_phrase, task.get("names", "").split(","))),
        after_names=re.compile(task["after_names"]) if "after_names" in task else None,
        recipients=_compile(task.get("recipients")),
        recipient_tasks=_compile(task.get("recipient_tasks")),
        timer_statements=frozenset(map(plain_phrase, task.get("timer_statements", ()))),
        shared_ends=data.get("shared_ends", ""),
        alarm=task.get("alarm", ""),
        short_weekdays=_read_short_weekdays(data.get("short_weekdays", {})),
    )
    _add_tokens(lexicon, data["tokens"])
    for particle in filter(None, particles):
        _add_form(lexicon, particle, (Token(Kind.FILLER),))
    _add_table(lexicon, data.get("numbers", {}), lambda key: Token(Kind.NUMBER, float(key)))
    _add_table(lexicon, data.get("cities", {}), lambda key: Token(Kind.CITY, zone=key))
    _add_table(lexicon, data.get("zones", {}), lambda key: Token(Kind.ZONE, zone=key))
    for form, city in _list_zone_cities():
        lexicon.add_form(form, city)
    return lexicon


def _read_rewrite(table: Mapping[str, str]) -> tuple[re.Pattern[str], str]:
    """Return the pattern and the replacement of one of the tables `rewrites`."""
    return re.compile(table["pattern"], re.I), table["replacement"]


def _compile(pattern: str | None) -> re.Pattern[str] | None:
    """Compile a pattern for texts in plain form."""
    return None if pattern is None else re.compile(plain_phrase(pattern))


def _add_tokens(lexicon: Lexicon, table: Mapping[str, str]) -> None:
    """Add the phrases of the table `tokens`."""
    for name, phrases in table.items():
        tokens = parse_token_name(name)
        for form in _list_forms(phrases):
            _add_form(lexicon, form, tokens)


@cache
def _list_zone_cities() -> Sequence[tuple[str, tuple[Token, ...]]]:
    """Return the plain names of the cities in the names of time zones, for all lexicons."""
    cities = []
    for zone in available_timezones():
        area, _, city = zone.rpartition("/")
        if area and area not in ("Etc", "SystemV", "US"):
            cities.append((plain_phrase(city.replace("_", " ")), (Token(Kind.CITY, zone=zone),)))
    return cities


def _add_table(
    lexicon: Lexicon, table: Mapping[str, str], make_token: Callable[[str], Token]
) -> None:
    """Add the phrases of a table in which each key means one token."""
    for key, phrases in table.items():
        for phrase in phrases.split(","):
            _add_form(lexicon, plain_phrase(phrase), (make_token(key),))


def _expand(phrase: str) -> list[str]:
    """Return all phrases that a phrase with alternatives means: "(set|add) a (new|) alarm".

    Alternatives may contain alternatives. Words are separated by single spaces.
    """
    if "(" not in phrase:
        return [" ".join(phrase.split())]
    # The innermost alternatives have odd indexes, and the text around them even ones.
    parts = _ALTERNATIVES.split(phrase)
    choices = [part.split("|") if index % 2 else [part] for index, part in enumerate(parts)]
    phrases = ["".join(chosen) for chosen in product(*choices)]
    return [form for variant in phrases for form in _expand(variant)]


def _read_short_weekdays(table: Mapping[str, str]) -> ShortWeekdays | None:
    """Read the table `short_weekdays` of a lexicon. Returns None if there is none."""
    if not table:
        return None
    letters = table["letters"]
    item = re.compile(f"(?:{table['separators']})*([{letters}])(?:{table.get('suffix', '')})?")
    days = {letter: day for day, letter in enumerate(letters)}
    return ShortWeekdays(days, item, re.compile(table["end"]))


def _add_form(lexicon: Lexicon, form: str, tokens: tuple[Token, ...]) -> None:
    """Add a phrase in plain form, its abbreviation with a full stop, and its name for correcting
    mistypings.
    """
    lexicon.add_form(form, tokens)
    if not form.isalpha():
        return
    if tokens[0].kind in _ABBREVIATED and len(form) <= MAX_ABBREVIATION:
        lexicon.add_form(f"{form}.", tokens)
    if tokens[0].kind in _CORRECTABLE and len(form) >= MIN_CORRECTABLE:
        lexicon.long_names.setdefault(form[0], []).append(form)


_ABBREVIATED = {Kind.WEEKDAY, Kind.MONTH}
MAX_ABBREVIATION = 4
"""Names of days and months with at most this many letters may end with a full stop: "Dec. 3"."""
_CORRECTABLE = {Kind.WEEKDAY, Kind.WEEKDAYS, Kind.MONTH, Kind.RELATIVE}
MIN_CORRECTABLE = 7
"""Words with at least this many letters are read as a day or month with one wrong letter."""
