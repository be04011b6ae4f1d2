"""Contains the texts of one language, and formats plurals, lists, dates and numbers in them.

Each language has a file `<language>.toml` in this folder, with the keys of `en.toml`. If a text is
missing, the English text is used. Babel formats dates, numbers, lists and plurals. It isn't loaded
for English, so that Mneme starts fast. No text assumes a gender.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, tzinfo
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from core.dates.schedule import Duration
from core.errors import MnemeError, Report, Sentence, StoreLostError, load_sentences
from core.guard.guard import LIMIT_CHARS, REASONS, inspect_name
from core.markup.markdown import escape
from core.store.mailbox import DeadItem, OutboxCounts
from core.store.notes import Operation
from core.store.usage_limits import Spending, UsedLimit
from core.text.normalize import isolate_title, join_sentences
from core.types import Account
from gateway.texts import dates
from gateway.texts.stored_errors import (
    is_clause,
    load_clause_patterns,
    load_service_patterns,
    read_values,
)
from gateway.texts.text_files import (
    ENGLISH_CODE,
    FilledTexts,
    compile_template,
    find_shell_language,
    list_patterns,
    load_file,
    load_names,
    match_language,
    read_file,
    word_system_error,
)

if TYPE_CHECKING:
    from core.dates.schedule import ParsedSchedule
    from core.scheduling.appointments import Appointments
    from core.scheduling.recurrence_words import ScheduleWords
    from core.search.rendering import ResultWords
    from core.store.facts.rows import Fact
    from core.store.jobs import Job
    from core.tools.calendars import CalendarEvent

# The locale for the dates and numbers of a language if it's named differently from the language.
_LOCALES: Mapping[str, str] = {"en": "en_GB", "zh": "zh_Hans"}
# The keys in `core/errors.toml` of the errors that can be part of a platform's state.
_PLATFORM_ERRORS = (
    "telegram_token_refused",
    "discord_token_refused",
    "discord_intent_refused",
    "discord_unreachable",
)


class Texts:
    """The texts of one language. Each text is an attribute, such as ``texts.NOTE_KEPT``."""

    def __init__(self, language: str = ENGLISH_CODE) -> None:
        self.language = language

    def __getattr__(self, name: str) -> str:
        """Return a text by its key. Raises AttributeError if there is no such text."""
        text = load_catalog(self.language).get(name)
        if not isinstance(text, str):
            raise AttributeError(name)
        return text

    def __getitem__(self, name: str) -> str:
        """Return a text by its key. Raises KeyError if there is no such text."""
        text = load_catalog(self.language)[name]
        if not isinstance(text, str):
            raise KeyError(name)
        return text

    def table(self, name: str) -> Mapping[str, str]:
        """Return a table of texts by their keys."""
        texts: dict[str, str] = load_catalog(self.language)[name]
        return texts

    def tables(self, name: str) -> Mapping[str, Any]:
        """Return a table whose values are tables, such as `commands`."""
        tables: dict[str, Any] = load_catalog(self.language)[name]
        return tables

    def compose(self, key: str, **values: object) -> str:
        """Return the sentence with this key in [CLI], with the values filled in."""
        return self.table("CLI")[key].format(**values)

    @property
    def language_name(self) -> str:
        """Return the language's name as it is written within a sentence, such as "français"."""
        return self.table("LANGUAGE_NAMES").get(self.language, self.LANGUAGE_NAME)

    @property
    def request_language(self) -> str:
        """Return the language's name among the lexicons of `core.dates.requests`: "pt"."""
        return self.language.partition("-")[0]

    @property
    def locale(self) -> str:
        """Return the name of Babel's locale for dates and numbers."""
        return _LOCALES.get(self.language, self.language.replace("-", "_"))

    def pair(self, name: object, value: object) -> str:
        """Return a name, the colon of this language, which French separates, and the value."""
        return f"{name}{self.COLON}{value}"

    def annotate(self, text: object, note: object) -> str:
        """Return a text with a note in the parentheses of this language."""
        return self.WITH_NOTE.format(text=text, note=note)

    def word(self, error: Exception | Sentence) -> str:
        """Return the sentence of an error in this language, or else the error's own sentence."""
        key: str = getattr(error, "key", "")
        template = self.table("errors").get(key) if key else None
        if not isinstance(template, str):
            return str(error)
        values: Mapping[str, object] = getattr(error, "values", {})
        return template.format(**{name: self._word_value(value) for name, value in values.items()})

    def word_report(self, report: Report) -> str:
        """Return the sentences of a report in this language."""
        return join_sentences(map(self.word, report.sentences))

    def word_stored(self, text: str) -> str:
        """Translate a sentence or clause of core that was stored in English."""
        if self.language == ENGLISH_CODE:
            return text
        for key, sentence in load_sentences().items():
            if sentence == text:
                return self.word(Sentence(key))
        for key, pattern in load_clause_patterns().items():
            match = pattern.fullmatch(text)
            if match is not None:
                return self.word(Sentence(key, read_values(match)))
        # Several clauses may be joined. The cause of a suspicion is a value of a clause.
        clauses = text.split("; ")
        if len(clauses) > 1 and all(map(is_clause, clauses)):
            return self.join_list([self.word_stored(clause) for clause in clauses])
        return self.word_suspicion(word_system_error(text, self.table("SYSTEM_ERRORS")))

    def word_marks(self, text: str) -> str:
        """Translate the marks of an incomplete answer, such as "[stopped]"."""
        if self.language == ENGLISH_CODE:
            return text
        paragraphs = text.split("\n\n")
        for place, paragraph in enumerate(paragraphs):
            if paragraph.startswith(("[", "(")):
                paragraphs[place] = self.word_stored(paragraph)
        return "\n\n".join(paragraphs)

    def ask_to_reword(self, suspicion: str) -> str:
        """Return an answer that asks a person to reword a suspicious text."""
        return self.word(Sentence("ask_to_reword", {"suspicion": suspicion}))

    def word_suspicion(self, suspicion: str) -> str:
        """Translate the English reason at the start of `suspicion`. Details may follow it."""
        for key, english in REASONS.items():
            phrase = english.format(most=LIMIT_CHARS)
            if suspicion.startswith(phrase):
                translation = self.table("SUSPICIONS")[key].format(
                    most=self.format_number(LIMIT_CHARS)
                )
                return translation + suspicion.removeprefix(phrase)
        return suspicion

    def _word_value(self, value: object) -> object:
        """Return a value of an error in the form that a sentence of this language needs."""
        if isinstance(value, str):
            return self.word_reason(self.word_stored(value))
        if isinstance(value, list):
            return self.join_alternatives(value)
        if isinstance(value, MnemeError | Sentence):
            return self.word(value)
        if isinstance(value, Duration):
            return self.format_duration(value.seconds)
        if isinstance(value, UsedLimit):
            return self.format_used(value)
        if isinstance(value, datetime):
            return self.schedule_words.format_moment(value)
        if isinstance(value, int) and self.language != ENGLISH_CODE:
            return _Number(value, self)
        return value

    # --- Numbers and plurals ---

    def format_number(self, number: float) -> str:
        """Format a number with separators: ``2,000``, in German ``2.000``."""
        if self.language == ENGLISH_CODE:
            return f"{number:,}"
        from babel.numbers import format_decimal

        return format_decimal(number, locale=self.locale)

    def format_count(self, number: int, noun: str) -> str:
        """Format a number with its noun, a key of [nouns]: ``1 line`` or ``2,000 lines``."""
        return self.choose_plural(self.tables("nouns")[noun], number).format(
            count=self.format_number(number)
        )

    def choose_plural(self, forms: Mapping[str, str], number: int) -> str:
        """Return the form for a number from a table with the plural categories of CLDR."""
        return forms.get(self._plural_category(number), forms["other"])

    def _plural_category(self, number: int) -> str:
        if self.language == ENGLISH_CODE:
            return "one" if number == 1 else "other"
        from babel import Locale

        return Locale.parse(self.locale).plural_form(number)

    # --- Platforms and their states ---

    def name_platform(self, platform: str) -> str:
        """Return the name of a platform at the beginning of a text: ``Telegram``, ``Терминал``."""
        name = self.table("PLATFORMS").get(platform, platform)
        return name[:1].upper() + name[1:]

    def word_state(self, state: str) -> str:
        """Translate a state of a platform or memory that a process stored."""
        for key, english in load_texts(ENGLISH_CODE).table("STATES").items():
            pattern = re.escape(english).replace(r"\{reason\}", "(?P<reason>.*)")
            match = re.fullmatch(pattern.replace(r"\{count\}", r"(?P<count>\d+)"), state, re.DOTALL)
            if match is not None:
                values = match.groupdict()
                if "reason" in values:
                    reason = self.word_reason(values["reason"])
                    values["reason"] = self.word_service_error(reason)
                return self.table("STATES")[key].format(**values)
        return state

    def word_service_error(self, reason: str) -> str:
        """Translate the reason why a memory service fails, which core stored in English."""
        for key, pattern in load_service_patterns().items():
            match = pattern.fullmatch(reason)
            if match is None:
                continue
            values = read_values(match)
            explanation = values.pop("explanation", None)
            sentence = self.word(Sentence(key, values))
            if isinstance(explanation, str):
                return self.pair(sentence, self.word_service_error(explanation))
            return sentence
        return self.word_suspicion(reason)

    def word_reason(self, reason: str) -> str:
        """Translate the reason why a platform fails or rejects a message.

        The platform's own explanation isn't translated.
        """
        for key, pattern in list_patterns("REASONS"):
            match = pattern.fullmatch(reason)
            if match is not None:
                values = match.groupdict()
                if "reason" in values:
                    values["reason"] = self.word_reason(values["reason"])
                return self.table("REASONS")[key].format(**values)
        for key in _PLATFORM_ERRORS:
            match = compile_template(load_sentences()[key]).fullmatch(reason)
            if match is not None:
                return self.word(Sentence(key, match.groupdict()))
        return reason

    # --- Usage ---

    def format_amount(self, spending: Spending, cost: float) -> str:
        """Format a cost: ``$12.34``, in German ``$12,34``. Small amounts get more digits."""
        text = spending.format_amount(cost)
        if self.language == ENGLISH_CODE:
            return text
        from babel.numbers import format_decimal

        currency = spending.prices.currency
        amount = text.removeprefix("under ").removeprefix(currency)
        digits = len(amount.partition(".")[2])
        pattern = f"#,##0.{'0' * digits}"
        number = float(amount.replace(",", ""))
        amount = f"{currency}{format_decimal(number, pattern, locale=self.locale)}"
        return self.AMOUNT_UNDER.format(amount=amount) if text.startswith("under ") else amount

    def format_used(self, usage: UsedLimit) -> str:
        """Return how much of a daily limit is used: ``299 of 300 answers``."""
        if usage.name == "money":
            spending = Spending(sums=(), prices=usage.prices)
            used = self.format_amount(spending, usage.used)
            limit = self.format_amount(spending, usage.limit)
        else:
            used = self.format_number(round(usage.used))
            limit = self.format_number(round(usage.limit))
        return self.table("BUDGETS")[usage.name].format(used=used, limit=limit)

    # --- Lists ---

    def join_list(self, parts: Sequence[str]) -> str:
        """Join parts into a list for a sentence: ``a, b and c``."""
        if len(parts) < 2:
            return "".join(parts)
        if self.language == ENGLISH_CODE:
            return f"{', '.join(parts[:-1])} and {parts[-1]}"
        from babel.lists import format_list

        return format_list(parts, locale=self.locale)

    def join_alternatives(self, parts: Sequence[str]) -> str:
        """Join alternatives for a question: ``a, b or c``."""
        if len(parts) < 2:
            return "".join(parts)
        if self.language == ENGLISH_CODE:
            return f"{', '.join(parts[:-1])} or {parts[-1]}"
        from babel.lists import format_list

        return format_list(parts, style="or", locale=self.locale)

    # --- Days and times ---

    def format_day(self, at: datetime, zone: tzinfo, precision: str = "day") -> str:
        """Format a date, or only its "month" or "year": ``3 March 2026``, ``March 2026``."""
        local = at.astimezone(zone)
        if self.language == ENGLISH_CODE:
            formats = {"year": "%Y", "month": "%B %Y"}
            return f"{local:{formats.get(precision, f'{local.day} %B %Y')}}"
        if precision in ("year", "month"):
            return dates.format_parts(local, "y" if precision == "year" else "yMMMM", self.locale)
        return dates.format_date(local.date(), self.locale)

    def format_weekday(self, local: datetime) -> str:
        """Format a date with its weekday and without the year: ``Tuesday 3 March``."""
        if self.language == ENGLISH_CODE:
            return f"{local:%A} {local.day} {local:%B}"
        return dates.format_weekday(local, self.locale)

    def format_moment(self, at: datetime, zone: tzinfo) -> str:
        """Format a date and time: ``3 May 2026, 10:30``."""
        local = at.astimezone(zone)
        if self.language == ENGLISH_CODE:
            return f"{local.day} {local:%b %Y, %H:%M}"
        return f"{dates.format_parts(local, 'yMMMd', self.locale)}, {local:%H:%M}"

    # --- Results of a search ---

    @property
    def result_words(self) -> ResultWords:
        """Return the words for search results in this language."""
        # Imported here because few messages are searches.
        from core.search.rendering import EnglishWords, load_english_words

        kinds = self.table("FILE_KINDS")
        if self.language == ENGLISH_CODE:
            return EnglishWords(kinds)
        from gateway.texts.result_words import BabelResultWords

        words = load_catalog(self.language).get("recall", {})
        templates = {**load_english_words(), **words}
        return BabelResultWords(templates, self.table("errors"), kinds, self.locale, self.word)

    def format_duration(self, seconds: float) -> str:
        """Format a duration in its two largest units: ``2 hours``, ``1 day 3 hours``."""
        # Imported here because few messages need it.
        from core.dates.schedule import format_duration, split_duration

        if self.language == ENGLISH_CODE:
            return format_duration(seconds)
        from babel.units import format_unit

        parts = split_duration(seconds) or [(0, "second")]
        return " ".join(
            format_unit(count, f"duration-{unit}", length="long", locale=self.locale)
            for count, unit in parts[:2]
        )

    def describe_lateness(self, due_at: datetime, now: datetime, zone: str) -> str:
        """Return a clause that says how late a reminder is. It omits today's date."""
        info = ZoneInfo(zone)
        local = due_at.astimezone(info)
        due = f"{local:%H:%M}"
        if local.date() != now.astimezone(info).date():
            due = self.schedule_words.format_moment(local)
        late_s = (now - due_at).total_seconds()
        if late_s >= 60:
            late_s -= late_s % 60  # Seconds don't matter after the first minute.
        return self.LATE.format(due=due, late=self.format_duration(late_s))

    # --- Reminders ---

    @property
    def schedule_words(self) -> ScheduleWords:
        """Return the words for the times of reminders in this language."""
        # Imported here because few messages are about reminders.
        from core.scheduling.recurrence_words import ENGLISH_WORDS, load_english_words

        if self.language == ENGLISH_CODE:
            return ENGLISH_WORDS
        return _BabelWords(self, load_english_words())

    def describe_time(
        self, appointments: Appointments, planned: Job | ParsedSchedule, *, is_full: bool = True
    ) -> str:
        """Describe when a job is due: ``every Monday at 08:30 (Europe/Lisbon)``."""
        return appointments.describe_time(planned, self.schedule_words, is_full=is_full)

    def describe_job(self, appointments: Appointments, job: Job) -> str:
        """Describe a job in one line: ``7: every Monday at 08:30 (Europe/Lisbon): stand-up``."""
        reason = job.pause_reason and self.word_stored(job.pause_reason)
        return appointments.describe_job(replace(job, pause_reason=reason), self.schedule_words)

    def describe_set_job(
        self, appointments: Appointments, job: Job, *, is_full: bool = True
    ) -> str:
        """Describe a job that was just set or changed, with its time, zone and text."""
        return appointments.describe_receipt(job, self.schedule_words, is_full=is_full)

    def describe_moment(self, at: datetime, zone: str, *, has_zone: bool = True) -> str:
        """Format a moment with its weekday: ``Monday 3 May 2026 at 10:30 (Europe/Lisbon)``."""
        text = self.schedule_words.format_moment(at.astimezone(ZoneInfo(zone)))
        return self.annotate(text, zone) if has_zone else text

    def describe_event(self, event: CalendarEvent, *, has_date: bool = False) -> str:
        """Describe an event of a calendar: ``10:00 to 11:00 Dentist (Rua 1)``."""
        # Imported here because most homes have no calendar.
        from core.tools.agenda import word_event

        return word_event(event, load_offline_texts(self.language), has_date=has_date)

    def word_event_line(self, line: str) -> str:
        """Translate the line of an event with its date, in which a tool reported it."""
        # Imported here because most turns have no event.
        from core.tools.agenda import read_event_line, word_event

        event = read_event_line(line)
        if event is None:
            return line
        return word_event(event, load_offline_texts(self.language), has_date=True)

    # --- Facts ---

    def describe_fact(self, fact: Fact, zone: tzinfo, reader_zone: tzinfo) -> str:
        """Describe a fact in one line, with its period and the day on which it was last stated.

        The period is in `zone`, in which it was read from a message.
        """
        words = self.table("FACT_TIMES")
        parts = []
        if fact.valid_from is not None:
            parts.append(
                words["since"].format(day=self.format_day(fact.valid_from, zone, fact.precision))
            )
        if not fact.is_open:
            end = words["again"]
            if fact.valid_to is not None:
                end = words["until"].format(day=self.format_day(fact.valid_to, zone, "month"))
            parts.append(end)
        parts.append(words["said_on"].format(day=self.format_day(fact.last_said_at, reader_zone)))
        speaker = f"{fact.speaker}: " if fact.scope.is_group and fact.speaker else ""
        return f"{speaker}{fact.content.rstrip(' .')} ({self.SEMICOLON.join(parts)})"

    # --- Sentences of several parts ---

    def render_changes(self, operations: Sequence[Operation]) -> list[str]:
        """Render one line for each removed text, and then one for each added text."""
        old_texts = [operation.old_text for operation in operations if operation.old_text]
        new_texts = [operation.content for operation in operations if operation.content]
        lines = [f"  \N{MINUS SIGN} {self.quote(text)}" for text in old_texts]
        lines += [f"  \\+ {self.quote(text)}" for text in new_texts]
        return lines

    def quote(self, text: str) -> str:
        """Put a text in the quotation marks of this language."""
        return self.QUOTED.format(text=escape(isolate_title(text)))

    def name_conversation(self, title: str | None) -> str:
        """Return the title of a conversation, translated if an import gave it, or "Untitled"."""
        return self.result_words.word_name(title) if title else self.UNTITLED

    def quote_title(self, title: str | None) -> str:
        """Return a title in quotation marks after a space: `` “Ferry”``. Without one, return ""."""
        return f" {self.quote(self.name_conversation(title))}" if title else ""

    def format_person(self, name: str, account: Account) -> str:
        """Format a person: ``**Ana** (Telegram, id `42`)``. A deceptive name gets a warning."""
        clean_name, findings = inspect_name(name)
        names = self.table("NAME_WARNINGS")
        warning = self.join_list([names.get(finding, finding) for finding in findings])
        return self.PERSON.format(
            name=escape(clean_name or account.user_id),
            warning=f"⚠ {warning}; " if findings else "",
            platform=self.name_platform(account.platform),
            id=account.user_id,
        )

    def choose_introduction(self, *, stores_all: bool, is_listed: bool) -> str:
        """Return the text that tells a group which messages are stored and who can read them.

        In a group that isn't listed, only messages of people with access are stored.
        """
        if not stores_all:
            return self.INTRODUCTION
        return self.INTRODUCTION_ALL if is_listed else self.INTRODUCTION_ALL_ALLOWED

    def away_notice(self, age: timedelta) -> str:
        """Return a notice that a message wasn't answered because it's too old."""
        hours = round(age.total_seconds() / 3600)
        if age.days >= 2:
            return self.choose_plural(self.table("AWAY_DAYS"), age.days).format(count=age.days)
        if hours > 1:
            return self.choose_plural(self.table("AWAY_HOURS"), hours).format(count=hours)
        return self.AWAY

    def failure_notice(
        self, error: Exception, incident: str, *, is_kept: bool = True, is_scheduled: bool = False
    ) -> str:
        """Return a notice that a turn failed. The id `incident` finds its details in the log.

        If `is_scheduled`, the turn answers a scheduled question, so there's no message to send
        again.
        """
        reason = self.FAILURE
        if isinstance(error, MnemeError):
            reason = self.word(error)
        if is_scheduled:
            return self.FAILURE_SCHEDULED.format(reason=reason, incident=incident)
        storage = self.FAILURE_SAVED
        if isinstance(error, StoreLostError):
            storage = self.FAILURE_UNCERTAIN
        if not is_kept:
            storage = self.FAILURE_INCOGNITO
        return self.FAILURE_NOTICE.format(reason=reason, storage=storage, incident=incident)

    def unfinished_notice(self, count: int) -> str:
        """Return how many answers the process hasn't finished, or "" if it has finished all."""
        if count == 0:
            return ""
        return self.choose_plural(self.table("UNFINISHED"), count).format(
            count=self.format_number(count)
        )

    def describe_dead_item(self, dead_item: DeadItem, zone: tzinfo) -> str:
        """Describe an undeliverable item by its kind, address, time and error, without its text."""
        item = dead_item.item
        return self.DEAD_ITEM.format(
            id=item.id,
            kind=self.table("OUTBOX_KINDS")[item.kind],
            address=item.address.key,
            moment=self.format_moment(dead_item.dead_at, zone),
            error=self.word_reason(dead_item.error),
        )

    def describe_sync_state(self, counts: OutboxCounts) -> str:
        """Return how many messages a memory service lacks, or "" if it has all of them."""
        clauses = []
        error = self.word_service_error(counts.error)
        waiting_count = counts.held + counts.due
        if waiting_count:
            template = self.choose_plural(self.table("SYNC_WAITING"), waiting_count)
            clause = template.format(count=self.format_number(waiting_count))
            if counts.error and not counts.dead:
                clause += self.SYNC_LAST_ERROR.format(error=error)
            clauses.append(clause)
        if counts.dead:
            template = self.choose_plural(self.table("SYNC_DEAD"), counts.dead)
            clauses.append(template.format(count=self.format_number(counts.dead), error=error))
        return self.SEMICOLON.join(clauses)


class _Number(int):
    """A number in a sentence. ``{chars:,}`` formats it with the separators of the language."""

    def __new__(cls, number: int, texts: Texts) -> _Number:
        self = super().__new__(cls, number)
        self._texts = texts
        return self

    _texts: Texts

    def __format__(self, spec: str) -> str:
        if spec == ",":
            return self._texts.format_number(int(self))
        return format(int(self), spec)


class _BabelWords:
    """Dates, plurals and lists of a language other than English, formatted by Babel."""

    def __init__(self, texts: Texts, english: Mapping[str, Any]) -> None:
        self._texts = texts
        self._templates = {**english, **load_catalog(texts.language).get("schedules", {})}

    @property
    def templates(self) -> Mapping[str, Any]:
        return self._templates

    def choose_plural(self, forms: Mapping[str, str], number: int) -> str:
        return self._texts.choose_plural(forms, number)

    def join_list(self, parts: Sequence[str]) -> str:
        return self._texts.join_list(parts)

    def join_alternatives(self, parts: Sequence[str]) -> str:
        return self._texts.join_alternatives(parts)

    def format_date(self, day: date) -> str:
        return dates.format_date(day, self._texts.locale)

    def format_month_day(self, month: int, day: int) -> str:
        # A leap year has every day.
        return dates.format_parts(datetime(2028, month, day), "MMMMd", self._texts.locale)  # noqa: DTZ001

    def format_full_date(self, day: date) -> str:
        return dates.format_date(day, self._texts.locale, "full")

    def format_moment(self, local: datetime, *, has_seconds: bool = False) -> str:
        clock = f"{local:%H:%M}"
        if has_seconds and local.second:
            clock = f"{local:%H:%M:%S}"
        text: str = self._templates["moment"].format(
            day=self.format_full_date(local.date()), clock=clock
        )
        return text


@cache
def load_catalog(language: str) -> Mapping[str, Any]:
    """Return the texts of a language by their keys. English texts fill the gaps."""
    if language == ENGLISH_CODE:
        # The English sentences of errors are in core, because the log and the model read them.
        return FilledTexts({"errors": load_sentences()}, load_file(language))
    return FilledTexts(load_file(language), load_catalog(ENGLISH_CODE))


def read_catalog(language: str) -> Mapping[str, Any]:
    """Return the texts of a language other than English without keeping them in memory."""
    return FilledTexts(read_file(language), load_catalog(ENGLISH_CODE))


# The words for kinds of files, and for places in them, that answers without a model use.
_FILE_WORDS = ("voice", "video", "video_note", "page", "line", "chapter", "slide")


@lru_cache(maxsize=64)
def load_offline_texts(code: str) -> Mapping[str, str]:
    """Return the texts that are used without a model. The English ones are in core."""
    # Imported here because a shell starts faster without it.
    from core.agent.offline import ENGLISH_TEXTS
    from core.search.rendering import load_english_words

    catalog = load_catalog(load_texts(code).language)
    words = {**load_english_words(), **catalog.get("recall", {})}
    file_words = {key: words[key] for key in _FILE_WORDS}
    return {**file_words, **ENGLISH_TEXTS, **catalog.get("offline", {})}


@lru_cache(maxsize=64)
def load_texts(code: str) -> Texts:
    """Return the texts of a language such as ``de`` or ``de-AT``, or English if it's unknown."""
    return Texts(match_language(code) or ENGLISH_CODE)


def word_sentence(language: str, sentence: Sentence) -> str:
    """Return a sentence of core in a language."""
    return load_texts(language).word(sentence)


@cache
def list_languages() -> tuple[str, ...]:
    """Return the languages that have a file. English is first."""
    return tuple(load_names())


class _ShellTexts(Texts):
    """The texts in the language of the shell, which LC_ALL, LC_MESSAGES or LANG determines."""

    def __init__(self) -> None:
        """Create the texts without reading a variable. The language is determined at first use."""

    @property
    def language(self) -> str:  # type: ignore[override]
        """Return the language of the shell, or English if Mneme has no texts in that language."""
        return find_shell_language()


ENGLISH = load_texts(ENGLISH_CODE)
# The texts of commands in a shell, and of a process that speaks to the shell that started it.
SHELL = _ShellTexts()
