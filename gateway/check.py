"""What `mneme check` finds out: what is right, what is wrong, and what to do about it. Repairs nothing.

Names no platform and no model: what can be asked outside comes as probes.

One thing that `mneme check` looked at.
How a memory service stands with what it is to be told, in one sentence: for /status, `mneme check` and
`mneme memory providers`.
What `mneme check` asks the memory services of one's choice: whether each can be loaded, has its options, is
available, and has taken what it was told.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from config.settings import ENVIRONMENT, Settings
from core.errors import ConfigError, MnemeError, StoreError
from core.memory.plugins import foreign
from core.memory.provider import MemoryProvider
from core.memory.provider_thread import ProviderThread
from core.store.sqlite import erase_bytes
from core.store.sqlite.database import Database
from core.store.sqlite.fact_index import FactIndex
from core.store.sync import Backfill, QueueCounts, SyncQueue
from gateway.packages import assert_own_packages
from gateway.services import Services, examined


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """`state`: right, wrong, or off (not set up, which is nobody's fault). `advice`: what to do, where there is
    anything to do."""

    subject: str
    state: Literal["right", "wrong", "off"]
    text: str
    advice: str = ""


PROBE_S = 30.0
RESTORE = "Stop Mneme and restore a backup; where only the indexes are damaged, mneme check --repair is enough."

Probe = Callable[[], Awaitable[str]]
"""Asks something outside; a sentence says what was found, a MnemeError what is wrong."""


class _Indexed(Protocol):
    """What the check needs of recall."""

    async def verify(self) -> list[str]:
        """What is wrong with the indexes; empty when they agree with the messages."""


class HealthCheck:
    """`home` is None when the settings could not be read; `problems` are then what is wrong with them. `opened` opens
    state.db with its recall. `probes` are by subject; None for what is not set up, which `advice` tells how to do."""

    def __init__(
        self,
        *,
        home: Path | None,
        problems: Sequence[str],
        opened: Callable[[], AbstractAsyncContextManager[tuple[Database, _Indexed]]],
        probes: Mapping[str, Probe | None],
        advice: Mapping[str, str],
    ) -> None:
        self._home = home
        self._problems = problems
        self._opened = opened
        self._probes = probes
        self._advice = advice

    async def run(self) -> list[CheckResult]:
        """Everything, in the order in which a person would put it right."""
        found = [*self._settings(), self._packages(), self._sqlite()]
        if self._home is not None:
            found += [finding async for finding in self._store()]
        found += await asyncio.gather(*(self._ask(subject, probe) for subject, probe in self._probes.items()))
        return found

    def _settings(self) -> list[CheckResult]:
        if self._home is None:
            return [
                CheckResult(subject="settings", state="wrong", text=problem, advice=_remedy(problem))
                for problem in self._problems
            ]
        found = [CheckResult(subject="settings", state="right", text=f"They are complete; the home is {self._home}.")]
        for path, mode in ((self._home, 0o700), (self._home / "mneme.toml", 0o600)):
            if path.exists() and path.stat().st_mode & 0o077:
                text = f"{path} can be read by others on this machine."
                found.append(CheckResult(subject="privacy", state="wrong", text=text, advice=f"chmod {mode:o} {path}"))
        return found

    def _packages(self) -> CheckResult:
        try:
            assert_own_packages()
        except ConfigError as error:
            return CheckResult(subject="packages", state="wrong", text=str(error))
        return CheckResult(subject="packages", state="right", text="They are Mneme's own, from one folder.")

    def _sqlite(self) -> CheckResult:
        if missing := erase_bytes.missing_features():
            return CheckResult(
                subject="sqlite",
                state="wrong",
                text=f"SQLite {erase_bytes.version()} lacks {', '.join(missing)}.",
                advice="Use a Python that was built with a newer SQLite; those from python.org are.",
            )
        return CheckResult(
            subject="sqlite", state="right", text=f"Version {erase_bytes.version()} with full-text and trigram search."
        )

    async def _store(self) -> AsyncIterator[CheckResult]:
        try:
            async with self._opened() as (database, recall):
                wrong = await erase_bytes.damage(database)
                yield CheckResult(
                    subject="state.db",
                    state="wrong" if wrong else "right",
                    text=f"{database.path} is damaged: {'; '.join(wrong)}" if wrong else f"{database.path} is whole.",
                    advice=RESTORE if wrong else "",
                )
                stale = await recall.verify()
                yield CheckResult(
                    subject="search index",
                    state="wrong" if stale else "right",
                    text=" ".join(stale) if stale else "It agrees with the messages.",
                    advice="It is rebuilt while Mneme runs, or now: mneme check --repair." if stale else "",
                )
                astray = await FactIndex(database).verify()
                yield CheckResult(
                    subject="facts index",
                    state="wrong" if astray else "right",
                    text=" ".join(astray) if astray else "It agrees with the facts, and so do their names.",
                    advice="Build it anew: mneme check --repair." if astray else "",
                )
        except StoreError as error:
            text, is_known, _ = str(error).partition(" Run `mneme check`")
            yield CheckResult(subject="state.db", state="wrong", text=text, advice=RESTORE if is_known else "")

    async def _ask(self, subject: str, probe: Probe | None) -> CheckResult:
        if probe is None:
            return CheckResult(
                subject=subject, state="off", text="It is not set up.", advice=self._advice.get(subject, "")
            )
        try:
            async with asyncio.timeout(PROBE_S):
                return CheckResult(subject=subject, state="right", text=await probe())
        except TimeoutError:
            text = f"There was no answer within {PROBE_S:.0f} s."
            return CheckResult(subject=subject, state="wrong", text=text, advice="Check the network and the address.")
        except MnemeError as error:
            return CheckResult(subject=subject, state="wrong", text=str(error))


def _remedy(problem: str) -> str:
    """Where to put a problem of the settings right: its first word is an option, or the variable that it came from."""
    name = problem.partition(":")[0]
    return f"Set {name}." if name in ENVIRONMENT.values() else "Put it right in mneme.toml."


async def standing(satchel: SyncQueue, name: str) -> str:
    """What waits for a service, what was given up, how much of the past is told; empty when all is told."""
    arrears, past = await satchel.counts(name), await satchel.backfill(name)
    return "; ".join(filter(None, (waiting(arrears), given_up(arrears), _past(past))))


def waiting(arrears: QueueCounts) -> str:
    """``3 messages wait (the last try: …)``; empty for none."""
    if not arrears.waiting:
        return ""
    tried = f" (the last try: {arrears.reason})" if arrears.reason and not arrears.dead else ""
    return f"{_counted(arrears.waiting)} wait{'s' * (arrears.waiting == 1)} to be delivered{tried}"


def given_up(arrears: QueueCounts) -> str:
    """``1 message was given up (…)``; empty for none."""
    if not arrears.dead:
        return ""
    return f"{_counted(arrears.dead)} {'was' if arrears.dead == 1 else 'were'} given up ({arrears.reason})"


def _past(past: Backfill | None) -> str:
    if past is None:
        return ""
    return f"of the past {(past.next_id - 1) * 100 // max(past.last_id, 1)} % is on its way"


def _counted(number: int) -> str:
    return f"{number:,} message{'' if number == 1 else 's'} to it"


AVAILABLE_S = 5.0


def provider_probes(settings: Settings) -> dict[str, Probe]:
    """A probe for each service that the settings switch on, by subject."""
    named = [name for name, table in settings.memory.providers.items() if table.enabled]
    return {f"memory {name}": partial(_probe, settings, name) for name in named}


async def _probe(settings: Settings, name: str) -> str:
    found, wrong = await asyncio.to_thread(examined, settings)
    if name in wrong:
        raise ConfigError(wrong[name])
    await _available(next(one for one in found if one.name == name))
    async with Services.open(settings) as services:
        errands = SyncQueue(services.database, services.clock)
        arrears = await errands.counts(name)
        if arrears.dead:
            raise ConfigError(f"{given_up(arrears).capitalize()}. `mneme memory sync {name}` sends it again.")
        still = await standing(errands, name)
    return f"It can be used; {still}." if still else "It can be used, and has taken all that it was told."


async def _available(provider: MemoryProvider) -> None:
    """Raises ConfigError unless the provider says in time that it has what it needs."""
    apart = ProviderThread(provider.name)
    try:
        async with asyncio.timeout(AVAILABLE_S):
            with foreign(f"The memory {provider.name}"):
                is_available = await apart.run(provider.is_available)
    except TimeoutError as error:
        raise ConfigError(f"It did not say within {AVAILABLE_S:g} s whether it is available.") from error
    finally:
        await apart.close()
    if not is_available:
        raise ConfigError(f"It says that it is not available. `mneme memory setup {provider.name}` sets it up.")
