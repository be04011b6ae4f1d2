"""Runs the checks of `mneme check`. Each check reports a problem and how to solve it.

Only this module and the composition root import the clients of platforms and of the model.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

from filelock import FileLock, Timeout

from adapters.discord.adapter import check_discord
from adapters.telegram.adapter import check_telegram
from config.settings import PLATFORMS, Settings
from core.agent.context_files import ContextFile, ContextFiles, FileState
from core.errors import (
    ConfigError,
    DeliveryError,
    MnemeError,
    ModelError,
    Sentence,
    StoreDamagedError,
    StoreError,
    load_sentences,
)
from core.memory.provider import MemoryProvider, implements
from core.memory.provider_thread import ProviderThread, translate_foreign_errors
from core.store.mailbox import OutboxCounts
from core.store.ownership.people import TERMINAL
from core.store.sqlite import salvage
from core.store.sqlite.database import Database
from core.store.sqlite.integrity import find_damage
from core.store.sync import PLATFORM as MEMORY
from core.text.normalize import end_sentence, to_single_line
from core.types import LOCAL_SCOPE
from gateway.local.control import ask_gateway
from gateway.media.file_check import check_media
from gateway.scheduler import PLATFORM as SCHEDULER
from gateway.services import STATE_FILE, Services, create_model_client, load_providers
from gateway.sharing.home_lock import LOCK_FILE
from gateway.supervisor import CONNECTED, WallClock
from gateway.texts.catalog import SHELL, Texts
from gateway.upkeep.backups import describe_restore, find_restorable, find_restore_command
from gateway.upkeep.home_checks import (
    CheckResult,
    build_result,
    check_backups,
    check_disk,
    check_home,
    check_installation,
    check_ports,
    check_service,
    check_sqlite,
    describe_settings_problem,
)
from gateway.upkeep.mending import find_plugin_command, find_skill_command, find_store_command

# How long a check waits for a server.
PROBE_TIMEOUT_S = 30.0
# The commands that solve the problem that a probe has found, by the first word of its subject.
_MENDING_COMMANDS = {
    "model": "mneme setup model",
    "telegram": "mneme setup telegram",
    "discord": "mneme setup discord",
    "embeddings": "mneme config edit",
    "web": "mneme config edit",
    "calendar": "mneme config edit",
}
# The keys of errors that say that a model's server can't be reached. In this case, its key may be
# right.
_NETWORK_FAULTS = frozenset({"model_unreached", "model_lost", "model_late"})


class _Naming(TypedDict):
    """The fields of a `CheckResult` for programs."""

    key: str
    values: Mapping[str, object]


class _ModelsFailed(ConfigError):
    """At least one model doesn't answer. `faults` has the key of each such model's error."""

    def __init__(self, message: str, faults: Mapping[str, str]) -> None:
        super().__init__(message)
        self.faults = faults

    @property
    def is_out_of_reach(self) -> bool:
        """Return True if no server can be reached, so that a new key wouldn't help."""
        return _NETWORK_FAULTS.issuperset(self.faults.values())


async def run_checks(
    settings: Settings | None, problems: Sequence[str] = (), texts: Texts = SHELL
) -> list[CheckResult]:
    """Run all checks, and return the results in the order in which a person would fix them.

    `settings` is None if the settings can't be read. `problems` then says why.
    """
    if settings is None:
        unread = [describe_settings_problem(texts, problem) for problem in problems]
        return [*unread, check_installation(texts), check_sqlite(texts)]

    results = [*check_home(texts, settings), check_installation(texts), check_sqlite(texts)]
    results += check_disk(texts, settings.home)
    states: Mapping[str, str] = {}
    live: Mapping[str, Any] | None = None
    queues: dict[str, OutboxCounts] = {}
    try:
        async with Services.open(settings) as services:
            async for result in _check_store(texts, services):
                results.append(result)
            states = await services.load_platform_states()
            live = await asyncio.to_thread(ask_gateway, settings.home, "state")
            if live:
                states = live["platforms"]
                results.append(_describe_process(texts, live))
            queues = await _count_queued_items(services)
            results += await _probe_servers(texts, services)
            results += await _check_context_files(texts, services)
            results += await _check_skills(texts, services)
            results += await check_media(texts, services)
    except StoreError as error:
        results.append(_describe_store_error(texts, error, settings))
    results.append(await asyncio.to_thread(check_backups, texts, settings))
    results += check_service(texts, settings)
    results += check_ports(texts, settings, live)

    probes = {"model": probe_model(texts, settings)}
    for name in PLATFORMS:
        probes[name] = _probe_platform(texts, settings, name)
    for name, counts in queues.items():
        probes[f"memory {name}"] = _probe_memory(texts, settings, name, counts)
    results += await asyncio.gather(
        *(run_probe(subject, probe, texts) for subject, probe in probes.items())
    )
    results = [_apply_gateway_state(texts, result, states) for result in results]
    return [_apply_live_state(texts, result, live) for result in results] if live else results


async def _probe_servers(texts: Texts, services: Services) -> list[CheckResult]:
    """Check each embedding server, search engine, calendar and MCP server by calling it."""
    settings = services.settings
    results = []
    if services.embeddings is not None:
        results.append(await run_probe("embeddings", services.embeddings.probe(), texts))
    if services.web is not None and (settings.web_tools.search or services.web.lacks_claude):
        results.append(await run_probe("web search", services.web.probe(), texts))
    if services.calendars is not None:
        for name in settings.calendar:
            probe = services.calendars.probe(name)
            results.append(await run_probe(f"calendar {name}", probe, texts))
    if services.mcp is not None:
        for name in services.mcp.list_names():
            command = settings.mcp[name].command
            if command and shutil.which(command, path=settings.mcp[name].env.get("PATH")) is None:
                # The check of the home has already named the missing program.
                continue
            results.append(await run_probe(f"mcp {name}", services.mcp.probe(name), texts))
    return results


def _describe_process(texts: Texts, live: Mapping[str, Any]) -> CheckResult:
    """Return a result that describes the running gateway, based on its own report."""
    text = texts.CHECK_PROCESS.format(
        process=live["process"],
        version=live["version"],
        platforms=texts.join_list([name for name in live["platforms"] if name != SCHEDULER])
        or texts.NO_PLATFORM,
        model=live["model"] or texts.NO_MODEL,
        unanswered=texts.format_count(live["unanswered"], "message"),
    )
    return CheckResult(
        subject="process",
        state="right",
        text=text,
        key="process_running",
        values={name: live[name] for name in ("process", "version", "model", "unanswered")},
    )


def _apply_live_state(texts: Texts, result: CheckResult, live: Mapping[str, Any]) -> CheckResult:
    """Mark a result as right if the running gateway uses a key or token that this shell lacks."""
    if result.state != "off":
        return result
    state = live["platforms"].get(result.subject)
    if result.subject == "model" and live["model"]:
        state = live["model"]
    if state is None:
        return result
    return replace(
        result,
        state="right",
        text=texts.LIVE_ONLY.format(state=state),
        key="live_only",
        values={"state": state},
        advice="",
        command="",
    )


async def _count_queued_items(services: Services) -> dict[str, OutboxCounts]:
    """Count the outbox items of each memory service that is switched on."""
    counts = {}
    for name, options in services.settings.memory.providers.items():
        if options.enabled:
            counts[name] = await services.outbox.count_items(f"{MEMORY}:{name}:")
    return counts


def _describe_store_error(texts: Texts, error: StoreError, settings: Settings) -> CheckResult:
    """Describe why state.db can't be used.

    If it's damaged or missing, suggest restoring a backup.
    """
    text = _word_store_error(texts, error)
    command = find_store_command(settings, error)
    advice = texts.compose("run", command=command) if command else ""
    if settings.store.url:
        return CheckResult(
            subject="postgresql",
            state="wrong",
            text=text,
            advice=advice,
            command=command,
            **_name_error(error),
        )
    path = settings.home / STATE_FILE
    is_disk_full = error.key in ("store_disk_full", "store_disk_fault")
    if is_disk_full:
        advice = texts.compose("space_advice", command=command)
    elif isinstance(error, StoreDamagedError) or not _has_state(settings.home):
        is_lost = not _has_state(settings.home)
        backup = find_restorable(settings)
        advice = describe_restore(settings, backup, texts, is_lost=is_lost)
        command = find_restore_command(backup, is_lost=is_lost)
    elif error.key in ("store_newer", "pg_newer"):
        # The text already names the command.
        advice = ""
    return CheckResult(
        subject="state.db",
        state="wrong",
        text=text,
        advice=advice,
        where=str(path),
        command=command,
        **_name_error(error),
    )


def _name_error(error: MnemeError) -> _Naming:
    """Return the key and the values of a result that reports an error."""
    if isinstance(error, _ModelsFailed):
        return {"key": "models_failed", "values": {"models": error.faults}}
    if error.key in load_sentences():
        return {"key": error.key, "values": error.values}
    if isinstance(error.__cause__, MnemeError):
        return _name_error(error.__cause__)
    return {"key": "failed", "values": {}}


def _word_store_error(texts: Texts, error: MnemeError) -> str:
    """Return the text of an error of the store, without the advice to run `mneme check`."""
    if isinstance(error, StoreDamagedError) and error.values:
        values = error.values
        return texts.compose("damaged", path=values["path"], reason=values["text"])
    return texts.word(error)


def _has_state(home: Path) -> bool:
    path = home / STATE_FILE
    return path.exists() and path.stat().st_size > 0


def _apply_gateway_state(
    texts: Texts, result: CheckResult, states: Mapping[str, str]
) -> CheckResult:
    """Mark a result as wrong if the running gateway reports a problem with its subject."""
    state = states.get(result.subject, CONNECTED)
    if result.state != "right" or state == CONNECTED:
        return result
    report = texts.compose("gateway_reports", state=texts.word_state(state))
    text = f"{result.text} {report}"
    command = _find_command(result.subject)
    return replace(
        result,
        state="wrong",
        text=text,
        key="gateway_reports",
        values={"state": state},
        command=command,
    )


async def run_probe(
    subject: str, probe: Awaitable[Sentence | str | None], texts: Texts = SHELL
) -> CheckResult:
    """Await the probe of a server or service, and return its result.

    The probe returns the text of the result, or None if the subject isn't set up. If the probe
    raises MnemeError or takes longer than `PROBE_TIMEOUT_S`, the result is "wrong".
    """
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            finding = await probe
    except TimeoutError:
        return CheckResult(
            subject=subject,
            state="wrong",
            text=texts.compose("no_answer", seconds=f"{PROBE_TIMEOUT_S:.0f}"),
            key="no_answer",
            values={"seconds": PROBE_TIMEOUT_S},
            advice=texts.compose("check_network"),
            command="mneme check",
        )
    except MnemeError as error:
        advice, command = _advise(texts, subject, error)
        return CheckResult(
            subject=subject,
            state="wrong",
            text=end_sentence(texts.word_reason(texts.word_stored(texts.word(error)))),
            advice=advice,
            command=command,
            **_name_error(error),
        )
    if finding is None:
        return CheckResult(
            subject=subject,
            state="off",
            text=texts.compose("not_set_up"),
            key="not_set_up",
            advice=texts.table("SET_UP").get(subject, ""),
            command=_find_command(subject),
        )
    text = texts.word(finding) if isinstance(finding, Sentence) else finding
    return CheckResult(subject=subject, state="right", text=text, key="works")


def _advise(texts: Texts, subject: str, error: MnemeError) -> tuple[str, str]:
    """Return advice for the subject of a failed probe, and the command that repairs it.

    If a platform can't be reached, the advice doesn't mention its token, which may be right.
    """
    command = _find_command(subject)
    kind = subject.partition(" ")[0]
    if kind == "memory":
        plugin_command = find_plugin_command(error)
        if plugin_command:
            return texts.compose("run", command=plugin_command), plugin_command
        # The text already contains the advice.
        return "", command
    is_out_of_reach = isinstance(error, DeliveryError) or (
        isinstance(error, _ModelsFailed) and error.is_out_of_reach
    )
    if is_out_of_reach and kind in texts.table("MEND"):
        return texts.compose("network_fault"), "mneme check"
    advice = texts.table("MEND").get(kind, "")
    if not advice and command:
        advice = texts.compose("run", command=command)
    return advice, command


def _find_command(subject: str) -> str:
    """Return the command that sets a subject up again, or "" if there is none."""
    kind, _, name = subject.partition(" ")
    if kind == "memory":
        return f"mneme memory setup {name}"
    if kind == "mcp":
        return f"mneme mcp test {name}"
    return _MENDING_COMMANDS.get(kind, "")


async def repair_indexes(settings: Settings, texts: Texts = SHELL) -> CheckResult:
    """Repair a damaged state.db, rebuild the text indexes and delete dead letters."""
    try:
        report = await _repair_file(texts, settings)
        async with Services.open(settings) as services:
            message_count = await services.recall.rebuild()
            while await services.recall.tend():
                pass
            await services.inbox.delete_dead_letters()
    except MnemeError as error:
        text = _word_store_error(texts, error)
        return CheckResult(subject="repair", state="wrong", text=text, **_name_error(error))
    messages = texts.format_count(message_count, "message")
    text = f"{report} {texts.compose('indexes_rebuilt', messages=messages)}".strip()
    return CheckResult(
        subject="repair",
        state="right",
        text=text,
        key="repaired",
        values={"messages": message_count},
    )


async def _repair_file(texts: Texts, settings: Settings) -> str:
    """Copy the readable rows of a damaged state.db to a new file, and return a report.

    The report is empty if state.db isn't damaged. Raises StoreError if the file can't be repaired,
    and ConfigError if Mneme is running.
    """
    path = settings.home / STATE_FILE
    if settings.store.url or not path.exists() or not path.stat().st_size:
        return ""
    if not await asyncio.to_thread(salvage.find_file_damage, path):
        return ""
    try:
        with FileLock(settings.home / LOCK_FILE).acquire(timeout=0):
            report = await asyncio.to_thread(salvage.repair, path, WallClock().now())
    except Timeout as error:
        raise ConfigError(texts.REPAIR_NEEDS_STOP) from error
    lost_rows = ", ".join(
        texts.pair(name, _describe_count(texts, count)) for name, count in report.lost.items()
    )
    lost = texts.compose("rows_lost", rows=lost_rows) if lost_rows else texts.compose("none_lost")
    return texts.REPAIRED.format(
        saved=texts.format_count(sum(report.saved.values()), "row"),
        lost=lost,
        path=report.damaged_path,
    )


def _describe_count(texts: Texts, lost_count: int | None) -> str:
    if lost_count is None:
        return texts.compose("unknown_rows")
    return texts.compose("at_most", rows=texts.format_count(lost_count, "row"))


async def _check_database(texts: Texts, services: Services) -> CheckResult:
    """Check state.db for damage. If the store is in PostgreSQL, check that its server answers."""
    database = services.database
    if isinstance(database, Database):
        damage = await find_damage(database)
        problems = []
        backup = None
        if damage:
            reason = "; ".join(map(texts.word_stored, damage))
            problems.append(texts.compose("damaged", path=database.name, reason=reason))
            backup = await asyncio.to_thread(find_restorable, services.settings)
        advice = describe_restore(services.settings, backup, texts)
        right = texts.compose("undamaged", path=database.name)
        return build_result(
            "state.db",
            problems,
            advice,
            right,
            keys=("damaged", "undamaged"),
            values={"path": database.name},
            command=find_restore_command(backup),
        )
    # Imported here because psycopg is an extra.
    from core.store.postgres.schema import describe_server

    server = await database.read(describe_server)
    right = texts.compose("database_answers", name=database.name, server=server)
    return CheckResult(
        subject="postgresql",
        state="right",
        text=right,
        key="database_answers",
        values={"name": database.name, "server": server},
    )


async def _check_store(texts: Texts, services: Services) -> AsyncIterator[CheckResult]:
    """Yield the results for state.db one by one, because a later check may raise StoreError."""
    yield await _check_database(texts, services)
    if services.restore_report:
        yield CheckResult(
            subject="backup", state="right", text=services.restore_report, key="restored"
        )
    yield build_result(
        "search index",
        [texts.word_stored(problem) for problem in await services.recall.verify()],
        texts.compose("index_advice"),
        texts.compose("index_right"),
        keys=("index_wrong", "index_right"),
        values={},
        command="mneme check --repair",
    )
    letters = await services.inbox.list_dead_letters()
    if letters:
        zone = await services.load_zone(TERMINAL)
        descriptions = []
        for at, platform, error in letters:
            moment = texts.format_moment(at, zone)
            descriptions.append(texts.pair(f"{moment} {platform}", error))
        yield CheckResult(
            subject="set aside",
            state="wrong",
            text=texts.SEMICOLON.join(descriptions),
            key="set_aside",
            values={"messages": [{"at": at, "platform": name} for at, name, _ in letters]},
            advice=texts.DEAD_LETTERS,
            command="mneme check --repair",
        )
    dead_items = await services.outbox.list_dead()
    if dead_items:
        zone = await services.load_zone(TERMINAL)
        descriptions = [texts.describe_dead_item(item, zone) for item in dead_items]
        numbers = [dead_item.item.id for dead_item in dead_items]
        yield CheckResult(
            subject="outbox",
            state="wrong",
            text=texts.SEMICOLON.join(descriptions),
            key="undelivered",
            values={"numbers": numbers},
            advice=texts.UNDELIVERED_ADVICE,
            command=f"mneme outbox retry {numbers[-1]}",
        )


async def _check_context_files(texts: Texts, services: Services) -> list[CheckResult]:
    """Report for each folder which context files are read and which are ignored.

    The home is left out if it has no context files.
    """
    settings = services.settings
    context_files = ContextFiles(settings.home, settings.context, settings.chats, services.notebook)
    results = []
    for folder in context_files.folders:
        files = await context_files.read_folder(folder)
        if folder == settings.home and not files:
            continue
        # A folder that can't be read is reported as a file with its own path.
        problems = [
            texts.pair(folder, end_sentence(texts.word(file.reason)))
            for file in files
            if file.path == folder and file.reason is not None
        ]
        summary = _summarize_files(texts, files, folder, settings.context.file_chars)
        right = texts.pair(folder, end_sentence(summary or texts.NO_FILES))
        results.append(
            build_result(
                "context files",
                problems,
                texts.NO_FOLDER,
                right,
                keys=("folder_unreadable", "folder_read"),
                values={
                    "path": folder,
                    "files": {str(file.path): file.state for file in files},
                },
                command="mneme config edit",
            )
        )
    return results


async def _check_skills(texts: Texts, services: Services) -> list[CheckResult]:
    """Report each folder that isn't a valid skill."""
    home = services.settings.home
    scopes = await services.people.load_visible_scopes(LOCAL_SCOPE)
    _, problems = await services.skills.list_skills(scopes)
    results = []
    for problem in problems:
        command = find_skill_command(home, problem)
        results.append(
            CheckResult(
                subject="skills",
                state="wrong",
                text=texts.word(problem),
                key=problem.key,
                values=problem.values,
                advice=texts.compose("run", command=command),
                where=str(problem.values.get("place", "")),
                command=command,
            )
        )
    return results


def _summarize_files(
    texts: Texts, files: Sequence[ContextFile], folder: Path, max_chars: int
) -> str:
    """List files by state: ``read A.md (cut in the middle); not read B.md (a link)``."""
    names_by_state: dict[FileState, list[str]] = {"read": [], "offered": [], "not read": []}
    for file in files:
        path = file.path.relative_to(folder) if file.path.is_relative_to(folder) else file.path
        note = "" if file.reason is None else texts.word(file.reason).rstrip(".。")
        if file.state == "read" and len(file.text) > max_chars:
            note = texts.compose("cut_in_the_middle")
        names_by_state[file.state].append(texts.annotate(path, note) if note else str(path))
    return texts.SEMICOLON.join(
        f"{texts.table('FILE_STATES')[state]} {', '.join(names)}"
        for state, names in names_by_state.items()
        if names
    )


async def probe_model(texts: Texts, settings: Settings) -> str | None:
    """Call the chat model, its fallbacks, the other models on offer, and the helper models.

    Returns a sentence for each model, or None if no model is set up.
    """
    client = create_model_client(settings, WallClock())
    if client is None:
        return None
    answers: list[str] = []
    # The models that don't answer, grouped by error, so that no sentence is repeated.
    failures: dict[str, list[str]] = {}
    faults: dict[str, str] = {}
    try:
        options = settings.model
        helpers = (options.helper, *options.helper_fallbacks)
        for name in dict.fromkeys((*options.offered_models, *helpers)):
            try:
                answers.append(texts.word(await client.probe(name)))
            except ModelError as error:
                failures.setdefault(texts.word(error), []).append(name)
                faults[name] = error.key
    finally:
        await client.close()
    if failures:
        problems = [texts.pair(", ".join(names), failure) for failure, names in failures.items()]
        raise _ModelsFailed(" ".join([*problems, *answers]), faults)
    return " ".join(answers)


async def _probe_platform(texts: Texts, settings: Settings, name: str) -> str | None:
    """Check the token of a platform. Returns None if there is no token."""
    token = settings.platform_tokens.get(name)
    if token is None:
        return None
    if name == "telegram":
        sentence = await check_telegram(token, settings.telegram_api_url)
    else:
        has_content = settings.discord.message_content
        url = settings.discord_api_url
        sentence = await check_discord(token, url, has_message_content=has_content)
    return texts.word_reason(sentence)


async def _probe_memory(texts: Texts, settings: Settings, name: str, counts: OutboxCounts) -> str:
    """Return a sentence about a memory service and its pending and failed outbox items.

    Raises ConfigError if the service can't be used, or if items have failed permanently.
    """
    providers, problems = await asyncio.to_thread(load_providers, settings)
    if name in problems:
        raise problems[name]
    provider = next(provider for provider in providers if provider.name == name)
    sync_state = texts.describe_sync_state(counts)
    sync_sentence = f" {sync_state[0].upper()}{sync_state[1:]}." if sync_state else ""
    try:
        report = await probe_provider(provider, texts)
    except MnemeError as error:
        text = f"{end_sentence(texts.word(error))}{sync_sentence}"
        raise ConfigError(text) from error
    if counts.dead:
        sentence = f"{report}." if report else ""
        hint = texts.compose("sync_again", name=name)
        raise ConfigError(f"{sentence}{sync_sentence} {hint}".strip())
    works = texts.compose("usable")
    if report:
        works = texts.compose("usable_as", report=report)
    return f"{works}{texts.SEMICOLON}{sync_state or texts.compose('nothing_to_send')}."


async def probe_provider(provider: MemoryProvider, texts: Texts = SHELL) -> str:
    """Return the description that a memory provider gives of itself, or "" if it has no probe.

    Raises MnemeError if the provider isn't available.
    """
    thread = ProviderThread(provider.name)
    try:
        with translate_foreign_errors(provider.name):
            if not await thread.run(provider.is_available):
                raise ConfigError(texts.compose("provider_missing", name=provider.name))
            if not implements(provider, "probe"):
                return ""
            try:
                finding = await thread.run(provider.probe)
            finally:
                await thread.run(provider.shutdown)
            text = texts.word(finding) if isinstance(finding, Sentence) else finding
            return to_single_line(text)
    finally:
        await thread.close()
