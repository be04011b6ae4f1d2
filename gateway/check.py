"""What `mneme check` finds out: what is right, what is wrong, and what to do about it. Repairs nothing.

Names no platform and no model: what can be asked outside comes as probes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from config.settings import ENVIRONMENT
from core.errors import ConfigError, MnemeError, StoreError
from core.store.sqlite import health
from core.store.sqlite.database import Database
from core.store.sqlite.fact_index import FactIndex
from gateway.finding import Finding
from gateway.packages import assert_own_packages

PROBE_S = 30.0
RESTORE = "Stop Mneme and restore a backup; where only the indexes are damaged, mneme check --repair is enough."

Probe = Callable[[], Awaitable[str]]
"""Asks something outside; a sentence says what was found, a MnemeError what is wrong."""


class _Indexed(Protocol):
    """What the check needs of recall."""

    async def verify(self) -> list[str]:
        """What is wrong with the indexes; empty when they agree with the messages."""


class Checkup:
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

    async def run(self) -> list[Finding]:
        """Everything, in the order in which a person would put it right."""
        found = [*self._settings(), self._packages(), self._sqlite()]
        if self._home is not None:
            found += [finding async for finding in self._store()]
        found += await asyncio.gather(*(self._ask(subject, probe) for subject, probe in self._probes.items()))
        return found

    def _settings(self) -> list[Finding]:
        if self._home is None:
            return [
                Finding(subject="settings", state="wrong", text=problem, advice=_remedy(problem))
                for problem in self._problems
            ]
        found = [Finding(subject="settings", state="right", text=f"They are complete; the home is {self._home}.")]
        for path, mode in ((self._home, 0o700), (self._home / "mneme.toml", 0o600)):
            if path.exists() and path.stat().st_mode & 0o077:
                text = f"{path} can be read by others on this machine."
                found.append(Finding(subject="privacy", state="wrong", text=text, advice=f"chmod {mode:o} {path}"))
        return found

    def _packages(self) -> Finding:
        try:
            assert_own_packages()
        except ConfigError as error:
            return Finding(subject="packages", state="wrong", text=str(error))
        return Finding(subject="packages", state="right", text="They are Mneme's own, from one folder.")

    def _sqlite(self) -> Finding:
        if missing := health.missing_features():
            return Finding(
                subject="sqlite",
                state="wrong",
                text=f"SQLite {health.version()} lacks {', '.join(missing)}.",
                advice="Use a Python that was built with a newer SQLite; those from python.org are.",
            )
        return Finding(
            subject="sqlite", state="right", text=f"Version {health.version()} with full-text and trigram search."
        )

    async def _store(self) -> AsyncIterator[Finding]:
        try:
            async with self._opened() as (database, recall):
                wrong = await health.damage(database)
                yield Finding(
                    subject="state.db",
                    state="wrong" if wrong else "right",
                    text=f"{database.path} is damaged: {'; '.join(wrong)}" if wrong else f"{database.path} is whole.",
                    advice=RESTORE if wrong else "",
                )
                stale = await recall.verify()
                yield Finding(
                    subject="search index",
                    state="wrong" if stale else "right",
                    text=" ".join(stale) if stale else "It agrees with the messages.",
                    advice="It is rebuilt while Mneme runs, or now: mneme check --repair." if stale else "",
                )
                astray = await FactIndex(database).verify()
                yield Finding(
                    subject="facts index",
                    state="wrong" if astray else "right",
                    text=" ".join(astray) if astray else "It agrees with the facts, and so do their names.",
                    advice="Build it anew: mneme check --repair." if astray else "",
                )
        except StoreError as error:
            text, is_known, _ = str(error).partition(" Run `mneme check`")
            yield Finding(subject="state.db", state="wrong", text=text, advice=RESTORE if is_known else "")

    async def _ask(self, subject: str, probe: Probe | None) -> Finding:
        if probe is None:
            return Finding(subject=subject, state="off", text="It is not set up.", advice=self._advice.get(subject, ""))
        try:
            async with asyncio.timeout(PROBE_S):
                return Finding(subject=subject, state="right", text=await probe())
        except TimeoutError:
            text = f"There was no answer within {PROBE_S:.0f} s."
            return Finding(subject=subject, state="wrong", text=text, advice="Check the network and the address.")
        except MnemeError as error:
            return Finding(subject=subject, state="wrong", text=str(error))


def _remedy(problem: str) -> str:
    """Where to put a problem of the settings right: its first word is an option, or the variable that it came from."""
    name = problem.partition(":")[0]
    return f"Set {name}." if name in ENVIRONMENT.values() else "Put it right in mneme.toml."
