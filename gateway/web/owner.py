"""Shows the pages "People" and "Settings", which only the owner can see.

They contain the people who have or request access, every option with its reason, backups, and the
memory services. Keys and tokens can't be seen or changed here.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from config.draft import SettingsDraft
from config.locating import find_option
from config.settings import (
    DEFAULTS,
    SETTINGS_FILE,
    SettingsError,
    load_default_options,
    read_options,
)
from core.errors import MnemeError, Refused
from core.store.model_limits import ModelOutages
from core.store.ownership.people import TERMINAL, KnownAccount
from core.store.usage_limits import Spending
from core.transfer.backup import verify_backup
from core.types import LOCAL_SCOPE, Account, Answer, BillingScope, Scope
from gateway.commands.approvals_and_links import ACCOUNT_KEY
from gateway.local.control import ask_gateway
from gateway.services import is_running, load_providers
from gateway.texts.catalog import Texts
from gateway.texts.settings_problems import word_problem
from gateway.texts.text_files import load_option_reasons
from gateway.upkeep.backups import describe_backups, run_backup
from gateway.upkeep.catalog import BackupCatalog, BackupRecord, find_fault_of_option
from gateway.web.views import (
    Action,
    Page,
    PageRequest,
    Values,
    View,
    read_field,
    run_command,
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
MAX_BACKUPS = 20
# The limits that have a box for each resource. They come first, because they cost money.
DAY_LIMITS = ("limits.owner_day", "limits.day", "limits.room_day")
# The first box of a limit.
_FIRST_RESOURCE = "money"
# The sections of the settings in groups, each with the key of its text.
GROUPS: Sequence[tuple[str, Sequence[str]]] = (
    ("ANSWERS", ("model", "turn", "sessions", "compression", "context")),
    ("MEMORY", ("memory", "facts", "recall", "skills", "retention")),
    ("PEOPLE", ("owner", "access", "room", "limits")),
    ("CHATS", ("telegram", "discord", "media")),
    ("TASKS", ("web", "cron", "delegation")),
    ("MACHINE", ("general", "usage", "store", "backup", "page", "metrics")),
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
    # The limit of each resource, if it's a limit of a day.
    parts: Mapping[str, str]


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
    backup, problem = _describe_backups(request)
    return {
        "groups": GROUPS,
        "section": section,
        "query": words,
        "currency": request.services.settings.usage.currency,
        "options": options,
        "backup": backup,
        "backup_problem": problem,
        "backups": _list_backups(request),
        "services": await _list_services(request),
        "models": await _list_models(request),
    }


def _describe_backups(request: PageRequest) -> tuple[str, str]:
    """Return a sentence about the last backup, and its problem or ""."""
    services = request.services
    return describe_backups(services.settings, services.clock.now(), request.texts)


def _list_backups(request: PageRequest) -> list[BackupRecord]:
    """Return the backups that exist, latest first."""
    records = BackupCatalog(request.services.settings.home).load().records
    backups = [record for record in records if record.kind == "backup" and record.state == "there"]
    return backups[::-1][:MAX_BACKUPS]


def _find_backup(request: PageRequest, name: str) -> BackupRecord | None:
    return next((record for record in _list_backups(request) if record.path.name == name), None)


async def load_backup(request: PageRequest) -> Path | None:
    """Return the file of a backup for download, or None if it doesn't exist."""
    record = _find_backup(request, request.parameter("backup"))
    return None if record is None else record.path


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
    name, rest = ("", reason) if option.path in DAY_LIMITS else split_reason(reason)
    return ShownOption(
        path=option.path,
        name=name,
        reason=rest,
        value=_write_value(find_option(options, option.path)),
        default=_write_value(default),
        is_switch=is_switch,
        is_own=find_option(draft.own_options, option.path) is not None,
        parts=_list_parts(option.path, options, defaults),
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
    """Return the limits of each resource in a daily limit. Money is first."""
    if path not in DAY_LIMITS:
        return {}
    limits = dict(_find_table(defaults, path)) | dict(_find_table(options, path))
    names = sorted(limits, key=lambda name: name != _FIRST_RESOURCE)
    return {name: _write_limit(limits[name]) for name in names}


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


async def set_option(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Set an option to the value that the owner typed. Raise Refused if it's invalid."""
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


def _read_limits(request: PageRequest, form: Mapping[str, str], path: str) -> dict[str, float]:
    """Return the daily limits in a form. An empty field means no limit.

    Raises Refused if a field isn't a number.
    """
    limits: dict[str, float] = {}
    for name in _find_table(load_default_options(), path):
        typed = form.get(f"limit-{name}", "").strip() or "0"
        if not _LIMIT.fullmatch(typed):
            currency = request.services.settings.usage.currency
            label = request.words[f"LIMIT_{name.upper()}"].format(currency=currency)
            raise Refused(request.words["FIELD_NUMBER"].format(field=label))
        typed = typed.replace(",", ".")
        limits[name] = float(typed) if "." in typed else int(typed)
    return limits


async def reset_option(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Reset an option to its default. Raise Refused if there is no such option."""
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
    """Change mneme.toml. Raise Refused with the problem if the new settings are invalid."""
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
    if not is_running(home):
        return words["SAVED"].format(option=path)
    report = await asyncio.to_thread(ask_gateway, home, "reload")
    if report is None or report.get("problems") or report["restart"]:
        return words["SAVED_FOR_RESTART"].format(option=path)
    return words["SAVED_NOW"].format(option=path)


async def back_up(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Make a backup in the configured folder. Raise Refused if it fails."""
    failure = await run_backup(request.services.settings)
    if failure:
        raise Refused(failure)
    sentence, problem = _describe_backups(request)
    return Answer(text=problem or sentence)


async def check_backup(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Read a whole backup, and return whether it could be restored. Nothing is restored."""
    name = read_field(request, form, "backup")
    record = _find_backup(request, name)
    if record is None:
        raise Refused(request.words["NOT_FOUND"])
    if record.is_encrypted:
        raise Refused(request.words["BACKUP_ENCRYPTED"])

    def check() -> None:
        with TemporaryDirectory() as scratch:
            verify_backup(record.path, Path(scratch))

    try:
        await asyncio.to_thread(check)
    except OSError as error:
        raise Refused(str(error)) from error
    except MnemeError as error:
        raise Refused(request.texts.word(error)) from error
    return Answer(text=request.words["BACKUP_RIGHT"].format(name=name))


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
        Action("reset-option", reset_option),
        Action("back-up", back_up),
        Action("check-backup", check_backup),
        Action("test-service", test_service),
        Action("test-models", test_models),
    ),
    is_for_owner=True,
)


# --- People ---


@dataclass(frozen=True, slots=True)
class Person:
    """A person with their linked accounts, as the page "People" shows them."""

    accounts: Sequence[KnownAccount]
    # When one of the accounts wrote last in a private chat.
    seen_at: datetime | None
    # Since the beginning of the month.
    spending: Spending
    # What they have used today of each of their limits, in words.
    limits: Sequence[str]

    @property
    def is_owner(self) -> bool:
        return any(account.account.platform == "terminal" for account in self.accounts)


async def load_people(request: PageRequest) -> Values:
    """Return everyone who has access, and everyone who requests it."""
    services = request.services
    now = services.clock.now()
    listed = services.settings.access.people
    accounts = await services.people.list_accounts(listed)
    people = []
    for _, group in groupby(accounts, key=lambda account: account.person_id):
        members = list(group)
        if any(member.why for member in members):
            people.append(await _load_person(request, members, now))
    return {
        "people": people,
        "groups": services.settings.access.rooms,
        "requests": await services.people.list_pending(now),
        "describe_access": lambda account: _describe_access(request, account),
    }


def _describe_access(request: PageRequest, account: KnownAccount) -> str:
    """Return why an account has access or has lost it, and since when."""
    day = request.texts.format_day(account.at, request.zone) if account.at else None
    return request.texts.table("PEOPLE_WHY")[account.why].format(day=day).replace("`", "")


async def _load_person(
    request: PageRequest, members: Sequence[KnownAccount], now: datetime
) -> Person:
    scopes = frozenset(
        Scope.account(member.account.platform, member.account.user_id) for member in members
    )
    spending, _ = await request.services.usage_log.load_month(scopes, now)
    seen_times = [member.seen_at for member in members if member.seen_at is not None]
    limits = await _describe_limits(request, members[0].account, now)
    return Person(members, max(seen_times, default=None), spending, limits)


async def _describe_limits(request: PageRequest, account: Account, now: datetime) -> list[str]:
    """Return what a person has used today of each limit, such as "3 of 300 answers"."""
    scope = LOCAL_SCOPE if account == TERMINAL else Scope.account(account.platform, account.user_id)
    payer = BillingScope(scope=scope, user_id=account.user_id)
    budgets = await request.services.usage_log.load_budgets(payer, now)
    return [
        request.texts.format_used(budget.usage_of(name))
        for budget in budgets
        for name in budget.limited_names
    ]


async def add_person(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Let a person in by their account, such as "telegram:42". Raise Refused if it isn't one."""
    match = ACCOUNT_KEY.fullmatch(read_field(request, form, "text").lower())
    if match is None:
        raise Refused(request.words["NO_ACCOUNT"])
    services = request.services
    account = Account(platform=match[1], user_id=match[2])
    await services.people.give_access(account, services.clock.now(), "page")
    services.on_change()
    return Answer(text=request.words["PERSON_ADDED"].format(account=account.key))


PEOPLE = Page(
    "people",
    views=(View("/people", "people.html", load_people),),
    actions=(
        Action("add-person", add_person),
        Action("approve-person", run_command("approve", "{code}")),
        Action("remove-person", run_command("people", "remove {account}")),
        Action("block-person", run_command("people", "block {account}")),
        Action("revoke-account", run_command("people", "revoke {account}")),
    ),
    is_for_owner=True,
)
