"""The files of the languages: complete, with the same placeholders, within the platforms' limits.

A rule here is parametrised over the files that exist, so that a new language needs no new test.
"""

from __future__ import annotations

import ast
import re
import string
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints
from unicodedata import category
from zoneinfo import ZoneInfo

import discord
import pytest
from babel import Locale
from pydantic import TypeAdapter, ValidationError
from telegram.error import BadRequest, Conflict, Forbidden, InvalidToken
from typer.main import get_command

from adapters.discord.commands import command_payloads
from adapters.discord.errors import EXPIRED_INTERACTION, translate_errors
from adapters.discord.errors import describe_error as describe_discord_error
from adapters.telegram.errors import describe_error as describe_telegram_error
from adapters.telegram.errors import describe_network_error, to_delivery_error
from adapters.terminal.adapter import make_inbound
from config.settings import GeneralOptions, Settings, SettingsError
from core.agent.offline import ENGLISH_TEXTS
from core.dates.requests.reader import read_request
from core.errors import DeliveryError, Sentence, load_sentences, word_clause
from core.scheduling.recurrence_words import describe_recurrences, load_english_words
from core.search.rendering import load_english_words as load_result_words
from gateway.cli.main import app, word_help
from gateway.commands.menus.specs import translate_specs
from gateway.commands.registry import list_all_specs
from gateway.texts.catalog import (
    ENGLISH,
    list_languages,
    load_catalog,
    load_texts,
)
from gateway.texts.settings_problems import word_problem, word_settings_error
from gateway.texts.text_files import load_names, read_file
from tests.fixtures.clock import SteadyClock
from tests.fixtures.tables import each_row

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "gateway" / "texts"
TRANSLATIONS = [code for code in list_languages() if code != "en"]
# Keys that are put together from a value, such as "effect_read".
COMPOSED_KEYS = ("effect_", "format_", "level_", "mcp_people_", "state_")
# The values of clauses that are numbers.
NUMBERS = {"number", "percent", "chars", "limit", "minutes"}
# How many texts a language may still lack. English is shown for them. Lower the numbers only.
MAX_MISSING: Mapping[str, int] = {}
# Labels of buttons: more than this is cut on a phone.
MAX_LABEL_CHARS = 40
PLURALS = {"zero", "one", "two", "few", "many", "other"}
# English sentences that stay in code, by module, each with its reason.
SENTENCES_IN_CODE: Mapping[str, tuple[int, str]] = {
    "adapters/discord/adapter.py": (1, "the result of a probe, which [REASONS] words"),
    "adapters/discord/client.py": (1, "errors of the platform, for the log"),
    "adapters/discord/errors.py": (12, "errors of the platform, which [REASONS] words"),
    "adapters/discord/files.py": (4, "errors of files, for the log and the model"),
    "adapters/telegram/adapter.py": (1, "the result of a probe, which [REASONS] words"),
    "adapters/telegram/errors.py": (3, "errors of the platform, which [REASONS] words"),
    "adapters/telegram/files.py": (5, "errors of files, for the log and the model"),
    "adapters/telegram/messages.py": (2, "errors of the platform, which [REASONS] words"),
    "gateway/cli/main.py": (1, "a sentence of the library that is replaced"),
    "gateway/installation.py": (2, "no package is loaded yet, so no language is known"),
    "gateway/scheduler.py": (1, "an internal error, for the log"),
    "gateway/turns.py": (1, "an internal error that repeats the turn, for nobody"),
    "gateway/upkeep/metrics.py": (10, "descriptions of metrics, which a program reads"),
}


# English sentences of raised errors in core that have no key, by module or package, each with its reason.
ERRORS_IN_CORE: Mapping[str, tuple[int, str]] = {
    "core/agent": (3, "internal errors"),
    "core/media": (12, "errors of files, for the log; people read the notes of the file"),
    "core/search": (1, "errors of models, for the log"),
    "core/store": (2, "internal errors"),
}
# Errors that only the model or the log gets.
MODEL_ERRORS = {"ToolError", "ValueError", "TypeError"}


def load_file(language: str) -> Mapping[str, Any]:
    return tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))


def load_english() -> Mapping[str, Any]:
    """Return all English texts, also those of core: errors, reminders, answers without a model."""
    return {
        **load_catalog("en"),
        "offline": ENGLISH_TEXTS,
        "schedules": load_english_words(),
        "recall": load_result_words(),
    }


def is_plural(value: object) -> bool:
    return isinstance(value, dict) and "other" in value and set(value) <= PLURALS


def list_texts(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield each text with its dotted key. The forms of a plural share one key."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if is_plural(value):
            yield from ((name, text) for text in value.values())
        elif isinstance(value, dict):
            yield from list_texts(value, f"{name}.")
        elif isinstance(value, str):
            yield name, value


def list_plurals(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, set[str]]]:
    for key, value in table.items():
        if is_plural(value):
            yield f"{prefix}{key}", set(value)
        elif isinstance(value, dict):
            yield from list_plurals(value, f"{prefix}{key}.")


def list_placeholders(text: str) -> set[str]:
    return {name.split(".")[0] for _, name, _, _ in string.Formatter().parse(text) if name}


LANGUAGE_OPTION: TypeAdapter[str] = TypeAdapter(
    get_type_hints(GeneralOptions, include_extras=True)["language"]
)


def test_english_text_parses_only_its_own_table(monkeypatch: pytest.MonkeyPatch) -> None:
    file = read_file("en")
    monkeypatch.setattr("gateway.texts.catalog.load_file", lambda language: file)
    catalog = load_catalog.__wrapped__("en")
    parsed: list[str] = []
    parse = tomllib.loads

    def record(text: str) -> dict[str, Any]:
        parsed.append(text.partition("\n")[0])
        return parse(text)

    monkeypatch.setattr(tomllib, "loads", record)
    assert catalog["FILE_KINDS"]["photo"] == "photo"
    assert parsed == ["[FILE_KINDS]"]


@each_row("language", ["auto", *list_languages(), "de-AT", "it"])
def test_settings_take_the_code_of_a_language(language: str) -> None:
    assert LANGUAGE_OPTION.validate_python(language) == language


@each_row("language", ["German", "xx"])
def test_settings_refuse_a_language_that_does_not_exist(language: str) -> None:
    with pytest.raises(ValidationError, match='should be "auto", "en"'):
        LANGUAGE_OPTION.validate_python(language)


def test_language_of_the_settings_comes_before_that_of_the_shell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "fr_FR.UTF-8")
    assert make_inbound("Hi", SteadyClock()).language == "fr_FR"
    assert make_inbound("Hi", SteadyClock(), "ko").language == "ko"


def test_every_language_of_the_list_has_its_own_name_and_a_locale() -> None:
    for code in load_names():
        assert Locale.parse(load_texts(code).locale)


@each_row("language", list_languages())
def test_language_file_read_table_by_table_has_all_texts_of_the_file(language: str) -> None:
    content, file = load_file(language), read_file(language)
    assert {name: file[name] for name in sorted(content, reverse=True)} == content
    assert dict(read_file(language)) == content
    assert len(read_file(language)) == len(content)
    assert "no_such_table" not in file


def test_several_threads_can_read_the_same_table_of_a_language() -> None:
    tables = ["commands", "CLI", "errors", "page", "BUTTON_CHANGE"] * 4
    content = load_file("de")
    for _ in range(5):
        with ThreadPoolExecutor(len(tables)) as threads:
            results = threads.map(read_file("de").__getitem__, tables)
            assert [*results] == [content[name] for name in tables]


@each_row("language", TRANSLATIONS)
def test_each_language_file_has_the_text_keys_of_the_english_one(language: str) -> None:
    own = {name for name, _ in list_texts(load_file(language))}
    english = {name for name, _ in list_texts(load_english())}
    # The words of a language for commands exist only there.
    unknown = {name for name in own - english if not name.startswith("aliases.")}
    assert unknown == set()
    missing = english - own
    assert len(missing) <= MAX_MISSING.get(language, 0), sorted(missing)


@each_row("language", TRANSLATIONS)
def test_a_translation_has_the_placeholders_of_the_english_text(language: str) -> None:
    english: dict[str, set[str]] = {}
    for name, text in list_texts(load_english()):
        english.setdefault(name, set()).update(list_placeholders(text))
    wrong = {
        name
        for name, text in list_texts(load_file(language))
        # A form such as "one" may leave out its number.
        if name in english and list_placeholders(text) - {"count"} != english[name] - {"count"}
    }
    assert wrong == set()


@each_row("language", list_languages())
def test_plurals_have_the_categories_that_the_language_needs(language: str) -> None:
    rules = Locale.parse(load_texts(language).locale).plural_form
    # Spanish, French and Portuguese have "many" for millions only, which "other" may stand for.
    needed = {rules(number) for number in (*range(201), 1_000_000)}
    if language in ("es", "fr", "pt-BR"):
        needed -= {"many"}
    plurals = dict(list_plurals(load_file(language)))
    assert {name: needed - forms for name, forms in plurals.items() if needed - forms} == {}


@each_row("language", list_languages())
def test_texts_keep_the_limits_of_the_platforms(language: str) -> None:
    catalog = load_catalog(language)
    for name, command in catalog["commands"].items():
        assert 1 <= len(command["description"]) <= 100, name
        assert len(command.get("menu", "")) <= 32, name
        for option, text in command.get("options", {}).items():
            assert 1 <= len(text) <= 100, f"{name} {option}"
    for name, text in catalog.items():
        if name.startswith("BUTTON_"):
            assert len(text) <= MAX_LABEL_CHARS, name


def test_no_text_of_a_language_has_a_control_character() -> None:
    wrong = [
        (path.relative_to(FOLDER).as_posix(), key, text)
        for path in sorted(FOLDER.rglob("*.toml"))
        for key, text in list_texts(tomllib.loads(path.read_text(encoding="utf-8")))
        if any(category(character) == "Cc" and character != "\n" for character in text)
    ]
    assert wrong == []


def test_french_signs_stay_on_the_line_of_the_word_before() -> None:
    breaking = re.compile(r"(?<=\S) [:;?!»](?!\w)|« ")
    assert not [
        (key, text)
        for key, text in list_texts(load_file("fr"))
        # Examples in backticks are typed as they are.
        if breaking.search(re.sub(r"`[^`]*`", "`", text))
    ]


def raise_of_discord(status: int, message: str) -> str:
    """Return the error of the adapter if Discord answers with this status."""
    response = SimpleNamespace(status=status, reason="", method="POST", headers={})
    with pytest.raises(DeliveryError) as caught, translate_errors(is_post=True):
        raise discord.HTTPException(response, {"code": 0, "message": message})  # type: ignore[arg-type]
    return str(caught.value)


PLATFORM_REASONS: Mapping[str, Callable[[], str]] = {
    "Telegram's refusal": lambda: str(to_delivery_error(BadRequest("Wrong type"))),
    "blocked bot": lambda: str(to_delivery_error(Forbidden("bot was blocked by the user"))),
    "Telegram's gateway": lambda: "Telegram answers with status 502",
    "login page": lambda: "the answer with status 200 isn't from a Bot API",
    "token of Telegram": lambda: describe_telegram_error(InvalidToken("Not Found")),
    "two processes": lambda: describe_telegram_error(Conflict("terminated by other request")),
    "webhook": lambda: describe_telegram_error(Conflict("webhook is active")),
    "time": lambda: describe_network_error(TimeoutError(), "https://api.telegram.org"),
    "Discord's refusal": lambda: raise_of_discord(400, "Invalid Form Body"),
    "Discord's outage": lambda: raise_of_discord(503, "Down"),
    "Discord's limit": lambda: raise_of_discord(429, "Slow down"),
    "Discord's time": lambda: describe_discord_error(TimeoutError()),
    "broken connection": lambda: describe_discord_error(RuntimeError()),
    "expired interaction": lambda: EXPIRED_INTERACTION,
    "missing intent": lambda: str(Sentence("discord_intent_refused")),
    "token of Discord": lambda: str(Sentence("discord_token_refused")),
    "unreachable Discord": lambda: str(Sentence("discord_unreachable", {"reason": "x"})),
    "wrong token": lambda: str(
        Sentence("telegram_token_refused", {"root": "https://a.b", "reason": "x"})
    ),
}


@each_row("language", TRANSLATIONS)
@each_row("name", PLATFORM_REASONS)
def test_reason_of_a_platform_is_worded_in_the_language(language: str, name: str) -> None:
    reason = PLATFORM_REASONS[name]()
    texts = load_texts(language)
    worded = texts.word_reason(reason)
    assert ENGLISH.word_reason(reason) == reason
    assert worded != reason
    state = texts.word_state(f"out of reach ({reason}), trying again")
    assert worded in state
    assert "{" not in worded


@pytest.mark.parametrize("language", TRANSLATIONS)
def test_mistakes_in_the_settings_are_worded_in_the_language(tmp_path: Path, language: str) -> None:
    (tmp_path / "mneme.toml").write_text(
        'model.tries = "x"\nturn.gathr_s = 1\nturn.while_answering = "wait"\nowner = 1\n'
        'telegram.enabled = true\ndiscord_token = "x"\nmodel.chat = "nowhere/x"\n'
    )
    with pytest.raises(SettingsError) as caught:
        Settings.load({"MNEME_HOME": str(tmp_path)})
    texts = load_texts(language)
    assert len(caught.value.problems) >= 6
    for problem in caught.value.problems:
        assert word_problem(texts, problem) != problem
        assert word_problem(ENGLISH, problem).replace(",", " or") == problem.replace(",", " or")
    text = word_settings_error(texts, caught.value)
    assert "mneme.toml" in text
    assert "should" not in text


DISCORD_LOCALES = {"de", "es-ES", "es-419", "fr", "ja", "ko", "pt-BR", "ru", "tr", "zh-CN"}


def list_payloads(payloads: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the payloads whose names must differ: of commands, of actions, and of options."""
    siblings = list(payloads)
    yield siblings
    for payload in siblings:
        yield from list_payloads(payload.get("options", ()))


def build_discord_commands() -> list[Mapping[str, Any]]:
    specs = translate_specs(tuple(list_all_specs().values()))
    return [payload for spec in specs for payload in command_payloads(spec)]


def list_choices() -> Iterator[Mapping[str, Any]]:
    for siblings in list_payloads(build_discord_commands()):
        for entry in siblings:
            yield from entry.get("choices", ())


def test_commands_actions_and_options_on_discord_are_described_in_every_language() -> None:
    entries = [e for siblings in list_payloads(build_discord_commands()) for e in siblings]
    assert len(entries) > 100
    for entry in entries:
        # An entry in the menu of a message has no description.
        key = "description" if "description" in entry else "name"
        assert entry[f"{key}_localizations"].keys() == DISCORD_LOCALES, entry["name"]


def test_actions_options_and_choices_on_discord_have_a_name_in_every_language() -> None:
    # A language needn't have an own name for a command.
    commands, *options = list_payloads(build_discord_commands())
    entries = [entry for siblings in options for entry in siblings]
    for entry in [*entries, *list_choices()]:
        assert entry["name_localizations"].keys() == DISCORD_LOCALES, entry["name"]
    translated = [command for command in commands if "name_localizations" in command]
    assert len(translated) > 40


@each_row("locale", ["", *sorted(DISCORD_LOCALES)])
def test_names_on_discord_have_allowed_characters_and_are_unique(locale: str) -> None:
    payloads = [command for command in build_discord_commands() if command["type"] == 1]
    for siblings in list_payloads(payloads):
        names = [entry.get("name_localizations", {}).get(locale) for entry in siblings]
        shown = [name or entry["name"] for name, entry in zip(names, siblings, strict=True)]
        assert len(set(shown)) == len(shown), shown
        for name in shown:
            assert re.fullmatch(r"[-_'\w]{1,32}", name), name
            assert name == name.lower()
    for choice in list_choices():
        assert 1 <= len(choice["name_localizations"].get(locale, choice["name"])) <= 100


def count_chars(payload: Mapping[str, Any]) -> int:
    """Count the characters of a command as Discord does: the longest of each text's translations."""
    total = len(str(payload.get("value", "")))
    for key in ("name", "description"):
        translations = payload.get(f"{key}_localizations", {}).values()
        total += max(map(len, [payload.get(key, ""), *translations]))
    return total + sum(map(count_chars, [*payload.get("options", ()), *payload.get("choices", ())]))


def test_commands_on_discord_are_as_large_as_discord_allows() -> None:
    commands = build_discord_commands()
    assert len([command for command in commands if command["type"] == 1]) <= 100
    for command in commands:
        assert count_chars(command) <= 8000, command["name"]
        assert len(command.get("options", ())) <= 25


@each_row("language", list_languages())
def test_dates_counts_and_lists_are_formatted(language: str) -> None:
    texts = load_texts(language)
    at = datetime(2026, 5, 3, 10, 30, tzinfo=UTC)
    assert "2026" in texts.format_day(at, UTC)
    assert "10:30" in texts.format_moment(at, UTC)
    assert "3" in texts.format_weekday(at)
    assert "5" in texts.format_count(5, "message")
    assert texts.join_list(["a", "b", "c"]).count("b") == 1


# The order and the signs of each language; in French, the first day of a month is "1er".
WEEKDAYS = {
    "de": "Dienstag, 1. Dezember",
    "es": "martes, 1 de diciembre",
    "fr": "mardi 1er décembre",
    "ja": "12月1日火曜日",
    "ko": "12월 1일 화요일",
    "pt-BR": "terça-feira, 1 de dezembro",
    "ru": "вторник, 1 декабря",
    "tr": "1 Aralık Salı",  # noqa: RUF001
    "zh": "12月1日星期二",
}


@each_row("language", sorted(WEEKDAYS))
def test_weekdays_and_dates_are_in_the_order_of_the_language(language: str) -> None:
    day = datetime(2026, 12, 1, tzinfo=UTC)
    assert load_texts(language).format_weekday(day) == WEEKDAYS[language]


def test_first_day_of_a_month_is_an_ordinal_number_in_french() -> None:
    french = load_texts("fr")
    first, eleventh = datetime(2026, 12, 1, 1, 10, tzinfo=UTC), datetime(2026, 3, 11, tzinfo=UTC)
    assert french.format_day(first, UTC) == "1er décembre 2026"
    assert french.format_moment(first, UTC) == "1er déc. 2026, 01:10"
    assert french.format_day(eleventh, UTC) == "11 mars 2026"


def test_a_colon_has_the_spaces_of_the_language() -> None:
    pairs = {code: load_texts(code).pair("web", 2) for code in ("de", "en", "fr", "zh")}
    assert pairs == {
        "de": "web: 2",
        "en": "web: 2",
        "fr": "web\N{NO-BREAK SPACE}: 2",
        "zh": "web：2",
    }


def test_german_texts_format_dates_lists_and_numbers_in_german() -> None:
    german = load_texts("de")
    at = datetime(2026, 3, 3, 10, 30, tzinfo=UTC)
    assert german.format_day(at, UTC) == "3. März 2026"
    assert german.format_weekday(at) == "Dienstag, 3. März"
    assert german.join_list(["a", "b", "c"]) == "a, b und c"
    assert german.format_number(2000) == "2.000"
    assert ENGLISH.format_number(2000) == "2,000"


RULES = {
    "weekday": "FREQ=WEEKLY;BYDAY=MO",
    "weekdays": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
    "weekend in months": "FREQ=WEEKLY;BYDAY=SA,SU;BYMONTH=6,7",
    "every other week": "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU",
    "days of a month": "FREQ=MONTHLY;BYMONTHDAY=1,15",
    "last day": "FREQ=MONTHLY;BYMONTHDAY=-1",
    "third Thursday": "FREQ=MONTHLY;BYDAY=3TH;COUNT=5",
    "last Sunday": "FREQ=MONTHLY;BYDAY=-1SU",
    "Friday the 13th": "FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR",
    "short months": "FREQ=MONTHLY;BYMONTHDAY=28,29,30,31;BYSETPOS=-1",
    "two months": "FREQ=MONTHLY;BYMONTH=1,7;BYMONTHDAY=1",
    "year": "FREQ=YEARLY;BYMONTH=5;BYMONTHDAY=3",
    "minutes": "FREQ=MINUTELY;INTERVAL=90",
    "hours": "FREQ=DAILY;BYHOUR=8,9,10,11,12,13,14,15;BYMINUTE=0",
    "several times": "FREQ=DAILY;BYHOUR=8,9,10,11,12,13,15;BYMINUTE=0;UNTIL=20261231T000000Z",
    "one day": "FREQ=DAILY;COUNT=1",
}


@each_row("language", TRANSLATIONS)
@each_row("name", RULES)
def test_recurrence_is_worded_without_an_english_word(language: str, name: str) -> None:
    rule = f"DTSTART;TZID=Europe/Lisbon:20261123T083000\nRRULE:{RULES[name]}"
    words = load_texts(language).schedule_words
    text = describe_recurrences((rule,), "Europe/Lisbon", words)
    assert text
    assert "{" not in text
    english = {
        "every",
        "and",
        "the",
        "between",
        "until",
        "times",
        "last",
        "monday",
        "friday",
        "may",
    }
    assert not english & set(re.findall(r"[^\W\d_]+", text.lower())), text


@each_row(
    ("language", "text"),
    [
        ("de", "jeden Montag um 08:30"),
        ("es", "cada lunes a las 08:30"),
        ("fr", "chaque lundi à 08:30"),
        ("pt-BR", "toda segunda-feira às 08:30"),
        ("ru", "по понедельникам в 08:30"),
        ("tr", "her pazartesi saat 08:30"),
        ("zh", "每周一 08:30"),
        ("ja", "毎週月曜日 08:30"),
        ("ko", "매주 월요일 08:30"),
    ],
)
def test_weekly_reminder_is_worded_in_each_language(language: str, text: str) -> None:
    rule = "DTSTART;TZID=Europe/Lisbon:20261123T083000\nRRULE:FREQ=WEEKLY;BYDAY=MO"
    words = load_texts(language).schedule_words
    assert describe_recurrences((rule,), "Europe/Lisbon", words) == text


# Clauses as they are stored, with one clause inside another, and their German form.
STORED_CLAUSES = {
    "fact 3 is pinned, and a pinned item is never changed without approval": (
        "Tatsache 3 ist angeheftet, und Angeheftetes ändere ich nie ohne dein Ja"
    ),
    "this conversation contains a result of web_search, and the idea may come from that": (
        "in diesem Gespräch steht ein Ergebnis von web_search, und die Idee kann daher kommen"
    ),
    "it contains invisible characters (U+200B)": "darin ist unsichtbare Zeichen (U+200B)",
    "two notes contradict each other; MEMORY.md is 86 % full, 1,030/1,200 characters; "
    "nothing is lost": (
        "zwei Notizen widersprechen sich und MEMORY.md ist zu 86 % voll, 1.030/1.200 Zeichen; "
        "nichts geht verloren"
    ),
    "no one here has typed “Porto” or “5”": "das hat hier niemand geschrieben: “Porto” oder “5”",
    "[stopped]": "[angehalten]",
    "[stopped after 40 rounds of tools; say “go on” to continue]": (
        "[nach 40 Runden mit Werkzeugen angehalten; mit „weiter“ geht es weiter]"
    ),
    "a reason of an extension": "a reason of an extension",
}


@each_row("stored", STORED_CLAUSES)
def test_stored_clause_is_worded_with_its_values(stored: str) -> None:
    assert load_texts("de").word_stored(stored) == STORED_CLAUSES[stored]
    assert load_texts("en").word_stored(stored) == stored


@each_row("language", TRANSLATIONS)
def test_every_stored_clause_is_worded_in_the_language(language: str) -> None:
    """Why a change waits, where a text comes from, what a change is about, what isn't copied."""
    prefixes = ("waits_", "source_", "label_", "left_out_", "import_", "archive_")
    keys = [key for key in load_sentences() if key.startswith(prefixes)]
    assert len(keys) > 50
    texts = load_texts(language)
    for key in keys:
        names = list_placeholders(load_sentences()[key])
        values = {name: 7 if name in NUMBERS else f"<{name}>" for name in names}
        clause = word_clause(key, **values)
        worded = texts.word_stored(clause)
        assert worded == texts.word(Sentence(key, values)), key
        assert worded != clause, key


# Errors of memory services as they are stored, and their German form.
SERVICE_ERRORS = {
    "mem0 gave no answer within 8 s": "mem0 hat in 8 s nicht geantwortet",
    "letta failed: no answer within 0.15 s": "letta ist gescheitert: keine Antwort in 0.15 s",
    "zep is out of order: zep failed: boom: 7": (
        "zep ist außer Betrieb: zep ist gescheitert: boom: 7"
    ),
    "the text for mem0 is over 1,000,000 bytes long": (
        "der Text für mem0 ist länger als 1.000.000 Bytes"
    ),
    "the server at the url of zep isn't zep: is its url right?": (
        "der Server an der url von zep ist nicht zep: Stimmt die url?"
    ),
    "a reason of a plugin": "a reason of a plugin",
}


@each_row("stored", SERVICE_ERRORS)
def test_stored_error_of_a_memory_service_is_worded_with_its_values(stored: str) -> None:
    assert load_texts("de").word_service_error(stored) == SERVICE_ERRORS[stored]
    assert load_texts("en").word_service_error(stored) == stored


@each_row("language", TRANSLATIONS)
def test_every_error_of_memory_services_is_worded_in_the_language(language: str) -> None:
    keys = [key for key in load_sentences() if key.startswith("service_")]
    texts = load_texts(language)
    for key in keys:
        names = list_placeholders(load_sentences()[key])
        values = {name: 7 if name == "limit" else f"<{name}>" for name in names}
        error = word_clause(key, **values)
        assert texts.word_service_error(error) == texts.word(Sentence(key, values)) != error, key


def test_an_unknown_code_gets_english_and_a_region_its_language() -> None:
    assert load_texts("nl").language == "en"
    assert load_texts("").language == "en"
    assert load_texts("de_CH").language == "de"
    assert load_texts("pt-PT").language == "pt-BR"
    assert load_texts("zh-hans").language == "zh"


@pytest.mark.slow
def test_python_code_contains_no_english_sentence_for_people_beyond_the_allowed_ones() -> None:
    counts: Counter[str] = Counter()
    for folder in ("adapters", "gateway"):
        for path in (ROOT / folder).rglob("*.py"):
            counts[path.relative_to(ROOT).as_posix()] += len(list(list_sentences(path)))
    allowed = {name: count for name, (count, _) in SENTENCES_IN_CODE.items()}
    others = {name: count for name, count in counts.items() if count != allowed.get(name, 0)}
    assert others == {}, "put the sentence into gateway/texts/en.toml"


@pytest.mark.slow
def test_errors_of_core_and_settings_have_keys_beyond_the_allowed_sentences() -> None:
    counts: Counter[str] = Counter()
    for folder in ("core", "config"):
        for path in (ROOT / folder).rglob("*.py"):
            package = "/".join(path.relative_to(ROOT).parts[:2])
            counts[package] += len(list(list_raised_sentences(path.read_text("utf-8"))))
    allowed = {name: count for name, (count, _) in ERRORS_IN_CORE.items()}
    assert +counts == allowed, "give the error a key, and its sentence a place in core/errors.toml"


@each_row(
    "line",
    [
        'print("Nothing was found here.")',
        'x = f"You have {count} of these reminders."',
        'raise Refused("This can not be done.")',
        'lines = ["a", "Write me again tomorrow"]',
        'run(text="Please try again later")',
    ],
)
def test_english_sentence_in_code_is_noticed(tmp_path: Path, line: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(f'"""A docstring is not for people."""\n{line}\n')
    assert len(list(list_sentences(path))) == 1


def test_raised_sentence_is_noticed_and_a_key_is_not() -> None:
    code = 'raise StoreError(f"There is no {x} in here")\nraise Refused("no_such_fact", id=3)\n'
    assert list(list_raised_sentences(code)) == ["There is no x in here"]


def list_raised_sentences(code: str) -> Iterator[str]:
    """Yield the English sentences of errors that people may read, in code that raises them."""
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
            continue
        if not node.exc.args or ast.unparse(node.exc.func) in MODEL_ERRORS:
            continue
        message = node.exc.args[0]
        parts = message.values if isinstance(message, ast.JoinedStr) else [message]
        literals = [part.value for part in parts if isinstance(part, ast.Constant)]
        strings = [literal for literal in literals if isinstance(literal, str)]
        text = " ".join(" x ".join(strings).split())
        if re.search(r"[A-Za-z']+ [a-z']+", text):
            yield text


def test_every_command_line_text_key_is_used_and_every_used_key_exists() -> None:
    # The notes about an import name their texts in `core.transfer`.
    paths = [*(ROOT / "gateway").rglob("*.py"), *(ROOT / "core" / "transfer").rglob("*.py")]
    code = "".join(path.read_text(encoding="utf-8") for path in paths)
    named = set(re.findall(r"""["']([a-z_]+)["']""", code))
    keys = set(load_file("en")["CLI"])
    composed = {key for key in keys if key.startswith(COMPOSED_KEYS)}
    assert keys - composed - named == set()
    assert set(re.findall(r"""compose\(\s*["']([a-z_]+)["']""", code)) - keys == set()


@pytest.mark.parametrize("language", list_languages())
def test_help_of_every_command_and_option_is_in_the_language(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", f"{language.replace('-', '_')}.UTF-8")
    root = get_command(app())
    word_help(root)
    texts = dict(list_texts(load_file(language)))
    values = set(load_file(language)["CLI_HELP"]["values"].values())
    commands = list(list_commands(root, ""))
    assert len(commands) > 70
    for path, command in commands:
        actions = path.partition(".")[0].upper()
        own = texts.get(f"CLI_HELP.commands.{path or 'mneme'}")
        assert command.help == own or f"{actions}_ACTIONS.{path.partition('.')[2]}" in texts, path
        for option in command.params:
            text = getattr(option, "help", None)
            names = (f"{path}.{option.name}", str(option.name))
            assert text in [texts.get(f"CLI_HELP.options.{name}") for name in names], option.name
            has_free_value = not option.type_descriptor.is_choice
            has_free_value &= not getattr(option, "is_flag", False)
            assert not has_free_value or option.metavar in values, f"{path}.{option.name}"


def test_docstring_of_each_command_is_its_english_help() -> None:
    helps = load_file("en")["CLI_HELP"]["commands"]
    docstrings = {
        path: " ".join((command.callback.__doc__ or "").split())
        for path, command in list_commands(get_command(app()), "")
        if path in helps and command.callback is not None
    }
    assert len(docstrings) > 40
    assert docstrings == {path: " ".join(helps[path].split()) for path in docstrings}


def list_commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, subcommand in getattr(command, "commands", {}).items():
        yield from list_commands(subcommand, f"{path}.{name}".lstrip("."))


def list_sentences(path: Path) -> Iterator[str]:
    """Yield the strings of a module that read like an English sentence for people."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[int] = set()
    for node in ast.walk(tree):
        # Docstrings, lines of the log and assertions aren't for people.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        is_log = isinstance(node, ast.Call) and "log" in ast.unparse(node.func).lower()
        if is_log or isinstance(node, ast.Assert):
            skipped |= {id(child) for child in ast.walk(node)}
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(child) for child in ast.walk(node) if child is not node}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        text = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
            text = " ".join(" x ".join(str(part) for part in parts).split())
        if re.search(r"(?<![`/])\b[A-Z][a-z']+ [a-z']+ [a-z']+", text):
            yield text


@pytest.mark.slow
@each_row("code", list_languages())
def test_examples_of_reminders_are_read_as_requests(code: str) -> None:
    quote = re.compile(r"[“„«「]\s*([^”“»」]+?)\s*[”“»」]")
    texts = load_file(code)
    examples = quote.findall(texts["HOW_TO_REMIND"])[:2]
    examples += quote.findall(texts["NO_REMINDERS_YET"] + texts["WATCH_NEEDS_MODEL"])
    assert len(examples) == 4
    for example in examples:
        reading = read_request(example, datetime.now(UTC), ZoneInfo("Europe/Lisbon"))
        assert reading.is_complete, example
        assert reading.language == code[:2], example


def test_every_option_that_people_type_has_a_name_in_the_help() -> None:
    path = ROOT / "gateway" / "commands" / "data" / "commands.toml"
    commands = tomllib.loads(path.read_text(encoding="utf-8"))
    options = [option for table in commands.values() for option in table.get("options", ())]
    for table in commands.values():
        options += [
            option
            for action in table.get("actions", ())
            for option in action.get("options", ())
            if isinstance(option, dict)
        ]
    names = {option["name"] for option in options if not option.get("prefix")}
    assert names
    assert names - set(load_file("en")["OPTION_NAMES"]) == set()
