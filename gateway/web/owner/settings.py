"""Shows every option with its reason, models, memory services and backups on the page "Settings".

Only the owner sees it. Keys and tokens can't be seen or changed here.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from config.draft import SettingsDraft
from config.locating import find_option
from config.settings import (
    DEFAULTS,
    SETTINGS_FILE,
    Settings,
    SettingsError,
    load_default_options,
    read_options,
)
from core.errors import Refused
from core.store.model_limits import ModelOutages
from core.types import Answer
from gateway.local.control import LIVE_OPTIONS, ask_gateway
from gateway.services import load_providers
from gateway.sharing.home_lock import is_running
from gateway.texts.catalog import Texts
from gateway.texts.settings_problems import word_problem
from gateway.texts.text_files import load_option_reasons
from gateway.upkeep.catalog import find_fault_of_option
from gateway.web.owner.backups import (
    back_up,
    build_restore_command,
    check_backup,
    describe_backup_state,
    list_backups,
    load_backup,
)
from gateway.web.views import (
    Action,
    Page,
    PageRequest,
    Values,
    View,
    read_field,
)

_SECTION = re.compile(r"\[([\w.-]+)\]\s*\Z")
_OPTION = re.compile(r"(\w+) = ")
# A number with a decimal point, or with a decimal comma and at most two digits after it: in
# "1,000", the comma may separate thousands.
_LIMIT = re.compile(r"\d{1,15}(?:\.\d{1,6}|,\d{1,2})?", re.ASCII)
# Where the first sentence of a reason may end. A colon introduces the values of an option.
_NAME_END = re.compile(r"(?<=\.)\s+|(?<=。)|(?<=\S)\s?[:：]\s+|：")
# Shorter names are values, such as "auto".
_MIN_NAME_CHARS = 7
# Reasons explain the values of a yes/no option with these words and a colon.
_STATE = re.compile(r"\b(true|false)(?=\s?[:：])")
MAX_VALUE_CHARS = 2_000
# The limits that have a box for each resource. They come first, because they cost money.
DAY_LIMITS = ("limits.owner_day", "limits.day", "limits.room_day")
# The resource of the daily limits that one card sets for everyone.
MONEY = "money"
# The sections of the settings in groups, each with the key of its text.
GROUPS: Sequence[tuple[str, Sequence[str]]] = (
    ("ANSWERS", ("model", "turn", "sessions", "compression", "context")),
    ("MEMORY", ("memory", "facts", "recall", "skills", "retention")),
    ("PEOPLE", ("owner", "access", "room", "limits")),
    ("CHATS", ("telegram", "discord", "media")),
    ("TASKS", ("web_tools", "cron", "delegation")),
    ("MACHINE", ("general", "usage", "store", "backup", "web", "metrics")),
)


@dataclass(frozen=True, slots=True)
class DescribedOption:
    """An option of default.toml with the comment above it, which explains the option in English."""

    # Such as "model.chat".
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ShownOption:
    """An option with its value in the notation of mneme.toml."""

    path: str
    # The first sentence of the reason in default.toml, and the sentences after it.
    name: str
    reason: str
    value: str
    default: str
    # Whether it's either "true" or "false".
    is_switch: bool
    # Whether mneme.toml sets it.
    is_own: bool
    # Whether a running gateway applies a change at once.
    is_live: bool
    # The limit of each resource but money, if it's a limit of a day.
    parts: Mapping[str, str]
    # The limit of money, if it's a limit of a day.
    money: str


async def load_settings(request: PageRequest) -> Values | None:
    """Return the sections of the settings, and the options of the section in the address.

    Returns None if there is no such section.
    """
    section = request.parameter("section")
    words = request.parameter("q").strip().lower()
    options: Sequence[ShownOption] = ()
    if section or words:
        options = await asyncio.to_thread(_list_options, section, words, request.texts)
        if section and not options:
            return None
    backup, problem = describe_backup_state(request)
    return {
        "groups": GROUPS,
        "section": section,
        "query": words,
        "currency": request.services.settings.usage.currency,
        "options": options,
        "backup": backup,
        "backup_problem": problem,
        "backups": [(record, build_restore_command(record)) for record in list_backups(request)],
        "services": await _list_services(request),
        "day_money": _list_day_money(options),
        "models": await _list_models(request),
    }


def _list_options(section: str, words: str, texts: Texts) -> list[ShownOption]:
    """Return the options of a section, or those that contain all words, with their reasons.

    The daily limits come first.
    """
    reasons = load_option_reasons(texts.language)
    draft = SettingsDraft()
    options, _ = read_options(SETTINGS_FILE, draft.text)
    defaults = load_default_options()
    matches = []
    for option in list_described_options():
        reason = reasons.get(option.path, option.reason)
        text = f"{option.path} {reason}".lower()
        is_chosen = all(word in text for word in words.split())
        if is_chosen and section in ("", option.path.partition(".")[0]):
            described = DescribedOption(option.path, reason)
            matches.append(_show_option(described, options, defaults, draft, texts))
    return sorted(matches, key=lambda option: _rank_option(option.path))


def _rank_option(path: str) -> int:
    return DAY_LIMITS.index(path) if path in DAY_LIMITS else len(DAY_LIMITS)


def _show_option(
    option: DescribedOption,
    options: Mapping[str, Any],
    defaults: Mapping[str, Any],
    draft: SettingsDraft,
    texts: Texts,
) -> ShownOption:
    """Return an option with its name, its values and the rest of its reason."""
    default = find_option(defaults, option.path)
    is_switch = isinstance(default, bool)
    reason = option.reason
    if is_switch:
        words = texts.table("page")
        states = {"true": words["YES"], "false": words["NO"]}
        reason = _STATE.sub(lambda match: states[match[1]], reason)
    parts = _list_parts(option.path, options, defaults)
    name, rest = ("", reason) if option.path in DAY_LIMITS else split_reason(reason)
    return ShownOption(
        path=option.path,
        name=name,
        reason=rest,
        value=_write_value(find_option(options, option.path)),
        default=_write_value(default),
        is_switch=is_switch,
        is_own=find_option(draft.own_options, option.path) is not None,
        is_live=option.path.startswith(LIVE_OPTIONS),
        parts={name: value for name, value in parts.items() if name != MONEY},
        money=parts.get(MONEY, ""),
    )


def split_reason(reason: str) -> tuple[str, str]:
    """Split the reason of an option into its first sentence, which names it, and the rest.

    A colon or a full stop within quotes, code or parentheses doesn't end the sentence.
    """
    for match in _NAME_END.finditer(reason):
        name = reason[: match.start()]
        is_whole = name.count('"') % 2 == 0 and name.count("`") % 2 == 0
        is_whole = is_whole and name.count("(") == name.count(")")
        is_long = len(name) >= _MIN_NAME_CHARS or name.endswith((".", "。"))
        if is_whole and is_long and match.end() < len(reason):
            return name.rstrip(".。"), reason[match.end() :]
    return reason.rstrip(".。"), ""


@cache
def list_described_options() -> Sequence[DescribedOption]:
    """Return the options of default.toml with the comments above them."""
    return tuple(_read_options(DEFAULTS.read_text(encoding="utf-8").splitlines()))


def _read_options(lines: Sequence[str]) -> Iterator[DescribedOption]:
    """Yield the options in the lines of default.toml, each with the comment above it."""
    section = ""
    comment: list[str] = []
    for line in lines:
        if line.startswith("#"):
            comment.append(line.removeprefix("#").strip())
        elif match := _SECTION.match(line):
            section = match[1]
            comment = []
        elif (match := _OPTION.match(line)) and section:
            yield DescribedOption(f"{section}.{match[1]}", " ".join(comment))
            comment = []
        elif not line.strip():
            comment = []


def _write_value(value: object) -> str:
    """Return a value as people type it: a string without quotes, anything else as TOML."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _list_parts(
    path: str, options: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, str]:
    """Return the limits of each resource in a daily limit."""
    if path not in DAY_LIMITS:
        return {}
    limits = dict(_find_table(defaults, path)) | dict(_find_table(options, path))
    return {name: _write_limit(limit) for name, limit in limits.items()}


def _find_table(options: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    table = find_option(options, path)
    return table if isinstance(table, Mapping) else {}


def _write_limit(limit: float | str) -> str:
    """Return a limit without trailing zeros. "off" becomes 0."""
    if isinstance(limit, str):
        return "0"
    return str(int(limit)) if limit == int(limit) else str(limit)


async def _list_services(request: PageRequest) -> list[tuple[str, str]]:
    """Return the memory services that are on, with the state of their queues."""
    services = []
    for name, options in request.services.settings.memory.providers.items():
        if options.enabled:
            counts = await request.services.outbox.count_items(f"memory:{name}:")
            services.append((name, request.texts.describe_sync_state(counts)))
    return services


async def _list_models(request: PageRequest) -> list[tuple[str, str, str]]:
    """Return each model with its task, and why it's out of reach or an empty text."""
    settings, words = request.services.settings, request.words
    if not settings.has_model:
        return []
    outages = ModelOutages(request.services.database)
    await outages.load()
    reasons = {name: request.texts.word(reason) for name, reason in outages.list_reasons().items()}
    chat, *fallbacks = settings.model.chat_models
    tasks = [(chat, words["MODEL_CHAT"])]
    tasks += [(name, words["MODEL_FALLBACK"]) for name in fallbacks]
    tasks.append((settings.model.helper, words["MODEL_HELPER"]))
    tasks += [(name, words["MODEL_HELPER_FALLBACK"]) for name in settings.model.helper_fallbacks]
    return [(name, task, reasons.get(name, "")) for name, task in tasks if name]


def _list_day_money(options: Sequence[ShownOption]) -> list[tuple[str, str]]:
    """Return all limits of money for a day by their options, if one of them is on the page."""
    money = {option.path: option.money for option in options if option.path in DAY_LIMITS}
    if not money:
        return []
    own_options, _ = read_options(SETTINGS_FILE, SettingsDraft().text)
    defaults = load_default_options()
    return [(path, _list_parts(path, own_options, defaults)[MONEY]) for path in DAY_LIMITS]


async def set_day_money(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Set the limits of money for a day, of the owner, each other person and each group.

    Raises Refused if one isn't a number.
    """
    amounts = {path: _read_limit(request, form, path, MONEY) for path in DAY_LIMITS}

    def write() -> None:
        draft = SettingsDraft()
        options, _ = read_options(SETTINGS_FILE, draft.text)
        for path, amount in amounts.items():
            table = _find_table(options, path)
            if float(_write_limit(table[MONEY])) != amount:
                draft.set_option(path, {**table, MONEY: amount})
        draft.write()

    await _change(write, request.texts)
    currency = request.services.settings.usage.currency
    return Answer(
        text=await _describe_effect(request, request.words["DAY_MONEY"].format(currency=currency))
    )


async def set_option(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Set an option to the value that the owner typed. Raises Refused if it's invalid."""
    path = read_field(request, form, "option")
    typed = form.get("value", "").strip()
    if path not in {option.path for option in list_described_options()}:
        raise Refused(request.words["WRONG_FIELD"])
    if len(typed) > MAX_VALUE_CHARS:
        words = request.words
        limit = request.texts.format_number(MAX_VALUE_CHARS)
        raise Refused(words["FIELD_LONG"].format(field=words["FIELD_VALUE"], limit=limit))
    limits = _read_limits(request, form, path) if path in DAY_LIMITS else {}

    def write() -> None:
        draft = SettingsDraft()
        if limits:
            draft.set_option(path, limits)
        else:
            draft.set_typed_option(path, typed)
        if fault := find_fault_of_option(draft, path, request.texts):
            raise Refused(fault.partition("\n")[0])
        draft.write()

    await _change(write, request.texts)
    return Answer(text=await _describe_effect(request, path))


def _read_limits(
    request: PageRequest, form: Mapping[str, str], path: str
) -> dict[str, float | str]:
    """Return a daily limit with the values in a form. Values that it doesn't have stay.

    Raises Refused if a field isn't a number.
    """
    options, _ = read_options(SETTINGS_FILE, SettingsDraft().text)
    limits: dict[str, float | str] = dict(_find_table(options, path))
    for name in limits:
        if f"limit-{name}" in form:
            limits[name] = _read_limit(request, form, path, name)
    return limits


def _read_limit(request: PageRequest, form: Mapping[str, str], path: str, name: str) -> float:
    """Return a limit in a form. An empty field means no limit.

    The field has the name of the option if the form sets a resource of several options. Raises
    Refused if it isn't a number.
    """
    field = path if name == MONEY else f"limit-{name}"
    typed = form.get(field, "").strip() or "0"
    if not _LIMIT.fullmatch(typed):
        currency = request.services.settings.usage.currency
        label = request.words[f"LIMIT_{name.upper()}"].format(currency=currency)
        raise Refused(request.words["FIELD_NUMBER"].format(field=label))
    typed = typed.replace(",", ".")
    return float(typed) if "." in typed else int(typed)


async def reset_option(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Reset an option to its default. Raises Refused if there is no such option."""
    path = read_field(request, form, "option")
    if path not in {option.path for option in list_described_options()}:
        raise Refused(request.words["WRONG_FIELD"])

    def write() -> None:
        draft = SettingsDraft()
        # Otherwise the default already applies, such as after a reset in another tab.
        if find_option(draft.own_options, path) is not None:
            draft.remove_option(path)
            draft.write()

    await _change(write, request.texts)
    return Answer(text=await _describe_effect(request, path))


async def _change(write: Callable[[], None], texts: Texts) -> None:
    """Change mneme.toml. Raises Refused with the problem if the new settings are invalid."""
    try:
        await asyncio.to_thread(write)
    except SettingsError as error:
        problems = [word_problem(texts, problem) for problem in error.located_problems]
        raise Refused(problems[0]) from error
    except (KeyError, ValueError, OSError) as error:
        raise Refused(str(error)) from error


async def _describe_effect(request: PageRequest, path: str) -> str:
    """Return when a changed option takes effect: now, or after the next start."""
    home = request.services.settings.home
    words = request.words
    _apply_limits(request)
    if not is_running(home):
        return words["SAVED"].format(option=path)
    report = await asyncio.to_thread(ask_gateway, home, "reload")
    if report is None or report.get("problems") or report["restart"]:
        return words["SAVED_FOR_RESTART"].format(option=path)
    return words["SAVED_NOW"].format(option=path)


def _apply_limits(request: PageRequest) -> None:
    """Let this process use the changed limits, too, if it isn't the one that answers messages."""
    # Settings that are invalid elsewhere are reported by the page that shows them.
    with suppress(SettingsError):
        settings = Settings.load()
        request.services.usage_log.set_options(settings.usage, settings.limits)


async def test_service(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Call a memory service once, and return its answer or its problem."""
    # Imported here because few people look at this.
    from gateway.check import probe_provider, run_probe

    name = read_field(request, form, "service")
    providers, problems = load_providers(request.services.settings)
    provider = next((candidate for candidate in providers if candidate.name == name), None)
    if provider is None:
        if name in problems:
            raise Refused(request.texts.word(problems[name]))
        raise Refused(request.words["WRONG_FIELD"])
    result = await run_probe(name, probe_provider(provider, request.texts), request.texts)
    return Answer(text=f"{result.text} {result.advice}".strip())


async def test_models(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Ask the models for a word, and show whether they answer or what the problem is."""
    # Imported here because few people look at this.
    from gateway.check import probe_model, run_probe

    texts = request.texts
    probe = probe_model(texts, request.services.settings)
    result = await run_probe("model", probe, texts)
    return Answer(text=f"{result.text} {result.advice}".strip())


SETTINGS = Page(
    "settings",
    views=(
        View("/settings", "settings.html", load_settings),
        View("/settings/{section}", "settings.html", load_settings),
        View("/settings/backups/{backup}", "", load_backup),
    ),
    actions=(
        Action("set-option", set_option),
        Action("set-day-money", set_day_money),
        Action("reset-option", reset_option),
        Action("back-up", back_up),
        Action("check-backup", check_backup),
        Action("test-service", test_service),
        Action("test-models", test_models),
    ),
    is_for_owner=True,
)
