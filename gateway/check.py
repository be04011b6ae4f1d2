"""What `mneme check` finds out: what is right, what is wrong, and what to do about it.

Besides the composition root the only place that names the clients of platforms and of the model.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from adapters.discord.adapter import check_discord
from adapters.telegram.adapter import check_telegram
from config.settings import ENVIRONMENT, PLATFORMS, Settings
from core.agent.context_files import ContextFiles, FileState
from core.errors import ConfigError, MnemeError, StoreError
from core.memory.manager import ProviderThread, foreign, implements
from core.memory.provider import MemoryProvider
from core.store.mailbox import OutboxCounts
from core.store.sqlite import database as sqlite
from core.store.sync import PLATFORM as MEMORY
from core.text.normalize import on_one_line
from gateway import texts
from gateway.services import STATE, Services, WallClock, chosen, client
from gateway.supervisor import CONNECTED

PROBE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """`state` is off where something is not set up; `advice` says what to do."""

    subject: str
    state: Literal["right", "wrong", "off"]
    text: str
    advice: str = ""


async def check(settings: Settings | None, problems: Sequence[str] = ()) -> list[CheckResult]:
    """All results, in the order in which a person would put things right. `settings` is None when they could not be
    read because of `problems`."""
    if settings is None:
        return [*map(_problem, problems), _sqlite()]
    results = [*_home(settings), _sqlite()]
    states: Mapping[str, str] = {}
    queues: dict[str, OutboxCounts] = {}
    try:
        async with Services.open(settings) as services:
            async for result in _store(services):
                results.append(result)
            states = await services.platforms()
            for name, table in settings.memory.providers.items():
                if table.enabled:
                    queues[name] = await services.outbox.counts(f"{MEMORY}:{name}:")
            if services.embeddings is not None:
                results.append(await ask("embeddings", services.embeddings.probe()))
            results += await _context_files(services)
    except StoreError as error:
        text, is_known, _ = str(error).partition(" Run `mneme check`")
        advice = texts.RESTORE if is_known else ""
        results.append(CheckResult(subject="state.db", state="wrong", text=text, advice=advice))
    probes = {"model": _model(settings), **{name: _platform(settings, name) for name in PLATFORMS}}
    probes |= {f"memory {name}": _provider(settings, name, counts) for name, counts in queues.items()}
    results += await asyncio.gather(*(ask(subject, probe) for subject, probe in probes.items()))
    # What is right by itself may still not work for the gateway that runs now.
    return [
        replace(result, state="wrong", text=f"{result.text} For the running gateway it is {state}.")
        if result.state == "right" and (state := states.get(result.subject, CONNECTED)) != CONNECTED
        else result
        for result in results
    ]


async def ask(subject: str, probe: Awaitable[str | None]) -> CheckResult:
    """What came of asking something outside: a sentence, None for what is not set up, MnemeError for what is wrong."""
    try:
        async with asyncio.timeout(PROBE_S):
            text = await probe
    except TimeoutError:
        text = f"There was no answer within {PROBE_S:.0f} s."
        return CheckResult(subject=subject, state="wrong", text=text, advice="Check the network and the address.")
    except MnemeError as error:
        return CheckResult(subject=subject, state="wrong", text=str(error))
    if text is None:
        advice = texts.table("SET_UP").get(subject, "")
        return CheckResult(subject=subject, state="off", text="It is not set up.", advice=advice)
    return CheckResult(subject=subject, state="right", text=text)


async def repaired(settings: Settings) -> CheckResult:
    """Builds the text indexes anew."""
    try:
        async with Services.open(settings) as services:
            messages = await services.recall.rebuild()
            while await services.recall.tend():
                pass
            await services.inbox.drop_dead_letters()
    except MnemeError as error:
        return CheckResult(subject="repair", state="wrong", text=str(error).partition(" Run `mneme check`")[0])
    held = texts.counted(messages, "message")
    return CheckResult(subject="repair", state="right", text=f"The text indexes were built anew from {held}.")


def _problem(text: str) -> CheckResult:
    name = text.partition(":")[0]
    advice = f"Set {name}." if name in ENVIRONMENT.values() else "Put it right in mneme.toml."
    return CheckResult(subject="settings", state="wrong", text=text, advice=advice)


def _home(settings: Settings) -> list[CheckResult]:
    home = settings.home
    wrong: dict[str, str] = {}
    is_open = bool(home.stat().st_mode & 0o077)
    for path, mode in ((home, 0o700), (home / "mneme.toml", 0o600)):
        if is_open and path.exists() and path.stat().st_mode & 0o077:
            wrong[f"{path} can be read by others on this machine."] = f"chmod {mode:o} {path}"
    plugins = home / "plugins"
    folders = [path.parent for path in sorted(plugins.glob("*/__init__.py"))]
    for path in (home, home / STATE, plugins, *folders, *sorted(plugins.rglob("*.py"))):
        if path.is_symlink():
            wrong[f"{path} is a link to {path.resolve()}: who can change that decides what is used."] = texts.NO_LINK
        elif path.exists() and (owner := path.stat().st_uid) != (own := os.geteuid()):
            wrong[f"{path} belongs to another user ({owner}), who can replace it."] = f"chown {own} {path}"
    complete = f"They are complete; the home is {home}."
    results = [CheckResult(subject="settings", state="right", text=complete, advice=settings.advice)]
    results += [CheckResult(subject="privacy", state="wrong", text=text, advice=wrong[text]) for text in wrong]
    return results


def _sqlite() -> CheckResult:
    version, oldest = (".".join(map(str, one)) for one in (sqlite.VERSION, sqlite.OLDEST))
    lacks = [f"SQLite {version} is older than {oldest}."] if sqlite.VERSION < sqlite.OLDEST else []
    advice = "Use a Python that was built with a newer SQLite; those from python.org are."
    return _result("sqlite", lacks, advice, f"Version {version}.")


async def _store(services: Services) -> AsyncIterator[CheckResult]:
    path = services.database.path
    damage = await sqlite.damage(services.database)
    wrong = [f"{path} is damaged: {'; '.join(damage)}"] if damage else []
    yield _result("state.db", wrong, texts.RESTORE, f"{path} is whole.")
    if services.restored:
        yield CheckResult(subject="backup", state="right", text=services.restored)
    yield _result(
        "search index",
        await services.recall.verify(),
        "It is rebuilt while Mneme runs, or now: mneme check --repair.",
        "It agrees with the messages and facts.",
    )
    if letters := await services.inbox.dead_letters():
        listed = [f"{texts.moment(at, services.zone)} {platform}: {error}" for at, platform, error in letters]
        yield _result("set aside", ["; ".join(listed)], texts.DEAD_LETTERS, "")


async def _context_files(services: Services) -> list[CheckResult]:
    """Of each folder, what is read of it and what is not."""
    settings = services.settings
    files = ContextFiles(settings.home, settings.context, settings.chats, services.notebook)
    results = []
    for folder in files.folders:
        found = await files.read(folder)
        parts: dict[FileState, list[str]] = {"read": [], "offered": [], "not read": []}
        for one in found:
            place = one.path.relative_to(folder) if one.path.is_relative_to(folder) else one.path
            is_cut = one.state == "read" and len(one.text) > settings.context.file_chars
            why = "cut in the middle" if is_cut else one.reason
            parts[one.state].append(f"{place} ({why})" if why else str(place))
        text = "; ".join(f"{state} {', '.join(names)}" for state, names in parts.items() if names)
        wrong = [f"{folder}: {one.reason}." for one in found if one.path == folder]
        if found or folder != settings.home:
            results.append(_result("context files", wrong, texts.NO_FOLDER, f"{folder}: {text or texts.NO_FILES}."))
    return results


def _result(subject: str, wrong: Sequence[str], advice: str, right: str) -> CheckResult:
    text, advice = (" ".join(wrong), advice) if wrong else (right, "")
    return CheckResult(subject=subject, state="wrong" if wrong else "right", text=text, advice=advice)


async def _model(settings: Settings) -> str | None:
    claude = client(settings, WallClock())
    if claude is None:
        return None
    try:
        return " ".join([await claude.reach(name) for name in {settings.model.chat: 0, settings.model.helper: 0}])
    finally:
        await claude.close()


async def _platform(settings: Settings, name: str) -> str | None:
    if (token := settings.platforms.get(name)) is None:
        return None
    if name == "telegram":
        return await check_telegram(token, settings.telegram_api_url)
    has_content = settings.discord.message_content
    return await check_discord(token, settings.discord_api_url, has_message_content=has_content)


async def _provider(settings: Settings, name: str, counts: OutboxCounts) -> str | None:
    found, wrong = await asyncio.to_thread(chosen, settings)
    if name in wrong:
        raise ConfigError(wrong[name])
    queue = texts.sync_state(counts)
    waits = f" {queue[0].upper()}{queue[1:]}." if queue else ""
    try:
        said = await probed(next(one for one in found if one.name == name))
    except MnemeError as error:
        raise ConfigError(f"{str(error).rstrip('.')}.{waits}".replace("?.", "?")) from error
    if counts.dead:
        raise ConfigError(f"{said and f'{said}.'}{waits} `mneme memory sync {name}` sends it again.".strip())
    return f"It can be used{said and ': '}{said}; {queue or 'it has taken all that it was told'}."


async def probed(provider: MemoryProvider) -> str:
    """What a memory says of itself; empty where it says nothing. Raises MnemeError."""
    thread = ProviderThread(provider.name)
    try:
        with foreign(f"The memory {provider.name}"):
            if not await thread.run(provider.is_available):
                raise ConfigError(f"It says that it is not available. `mneme memory setup {provider.name}` sets it up.")
            if not implements(provider, "probe"):
                return ""
            try:
                return on_one_line(await thread.run(provider.probe))
            finally:
                await thread.run(provider.shutdown)
    finally:
        await thread.close()
