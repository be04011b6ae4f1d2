"""200 everyday requests through the real gateway: how many wait for a tap.

The model makes the right call for each. Run with -s to print the requests that wait.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from core.dates.schedule import ParsedSchedule, Schedule
from core.types import Completion, Request
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.web_pages import loopback_client, serve_pages

pytestmark = [pytest.mark.sweep, pytest.mark.timeout(1500)]

DATA = Path(__file__).parent / "data" / "everyday.txt"
MAX_SHARE = 0.02
# The share that waits if there is no helper model. Each of them costs one tap.
MAX_SHARE_WITHOUT_HELPER = 0.35
MAIL = "The ferry is late today, and the harbour is closed. Eve"
NOTE = "note: "
Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Row:
    """A request: its kind, the thing it's about, what the model makes of it, and its words."""

    kind: str
    thing: str
    result: str
    text: str


def read_rows() -> list[Row]:
    lines = DATA.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line and not line.startswith("#")]
    return [Row(*(part.strip() for part in row.split("|", 3))) for row in rows]


def agree(request: Request) -> Completion:
    """A helper that is right, because all requests are honest."""
    if request.kind != "evidence":
        return says("[]")
    if '"asks"' in str(request.system):
        return says('{"asks": "yes"}')
    return says(json.dumps([{"note": number, "follows": "yes"} for number in range(1, 9)]))


def build_schedule(words: str, now: datetime) -> dict[str, str]:
    """Return the arguments for "daily 08:00", "weekly MO 18:00", "tomorrow 09:30" or "in 20m"."""
    kind, _, rest = words.partition(" ")
    if kind == "in":
        moment = now + timedelta(minutes=int(rest.removesuffix("m")))
        return {"moment": f"{moment:%Y-%m-%dT%H:%M}"}
    hour, _, minute = rest.split()[-1].partition(":")
    if kind == "tomorrow":
        return {"moment": f"{now + timedelta(days=1):%Y-%m-%d}T{hour}:{minute}"}
    days = f"WEEKLY;BYDAY={rest.split()[0]}" if kind == "weekly" else "DAILY"
    return {"recurrence": f"FREQ={days};BYHOUR={int(hour)};BYMINUTE={int(minute)}"}


class Household:
    """A gateway in which each request finds the thing that it's about."""

    def __init__(self, harness: GatewayHarness, model: ScriptedModel) -> None:
        self.harness = harness
        self.model = model
        self.scopes = frozenset((harness.inbound("").scope,))

    async def forget(self) -> None:
        """Hide what was said, so that no later request recalls it, and end all reminders."""
        hide = "UPDATE messages SET kind = 'undone' WHERE kind = 'chat'"
        await self.harness.services.database.write_indexed(
            lambda connection: connection.execute(hide).rowcount
        )

    async def set_reminder(self, text: str) -> int:
        at = self.harness.services.clock.now() + timedelta(days=300)
        reading = ParsedSchedule(
            schedule=Schedule(zone="Europe/Lisbon", at=at), text=text, is_certain=True
        )
        inbound = self.harness.inbound("")
        job = await self.harness.services.appointments.add_job(
            reading, inbound.address, inbound.scope, account=inbound.account, origin=None
        )
        return job.id

    async def list_calls(self, row: Row) -> list[Call]:
        """Prepare a request, and return the calls that the model makes for it."""
        thing = row.thing.removeprefix(NOTE)
        if row.kind == "change" or row.thing.startswith(NOTE):
            await self.harness.say(f"/memory add {thing}")
            action = "replace" if row.kind == "change" else "remove"
            change = {"target": "memory", "action": action, "old_text": thing}
            return [("memory", change | ({"content": row.result} if row.result else {}))]
        if row.kind == "add":
            note = {"target": "memory", "action": "add", "content": row.result}
            return [("memory", note)]
        if row.kind == "search":
            return [("web_search", {"query": row.result})]
        if row.kind == "fetch":
            return [("web_fetch", {"url": row.result})]
        zone = await self.harness.services.appointments.zone_of(None)
        now = self.harness.services.clock.now().astimezone(ZoneInfo(zone))
        if row.kind == "plan":
            words, _, task = row.result.partition("; ")
            return [("reminder", {"action": "add", "task": task, **build_schedule(words, now)})]
        number = await self.set_reminder(thing)
        if row.kind == "move":
            new = {"action": "add", "task": thing, **build_schedule(row.result, now)}
            return [("reminder", {"action": "remove", "job_id": number}), ("reminder", new)]
        return [("reminder", {"action": row.kind, "job_id": number})]

    async def count_waiting(self) -> int:
        """Return how many changes wait for a tap. The helper model judges proposed ones itself."""
        pending = await self.harness.services.notebook.review.list_pending(self.scopes)
        return sum(not note.is_proposed for note in pending)

    async def waits(self, row: Row) -> bool:
        """Say a request in a conversation of its own, and return whether it waits for a tap."""
        wanted = await self.list_calls(row)
        jobs = await self.harness.services.jobs.list_visible(self.scopes)
        waiting = await self.count_waiting()
        self.model.script = [calls(*wanted), says("Done.")]
        await self.harness.say(row.text)
        await self.forget()
        is_changed = await self.harness.services.jobs.list_visible(self.scopes) != jobs
        is_about_job = wanted[0][0] == "reminder"
        return await self.count_waiting() > waiting or (is_about_job and not is_changed)


@asynccontextmanager
async def open_household(
    home: Path, helper: ScriptedModel | None = None
) -> AsyncIterator[Household]:
    model = ScriptedModel()
    async with serve_pages() as pages:
        options = (
            f'[web_tools]\nsearch = "searxng"\nsearxng_url = "http://127.0.0.1:{pages.port}"\n'
        )
        async with open_gateway(home, model, options, helper) as harness:
            assert harness.services.web is not None
            harness.services.web.client = loopback_client()
            yield Household(harness, model)


async def list_waiting(household: Household, *, after_mail: bool) -> list[str]:
    """Return the requests that wait for a tap, each in a conversation of its own."""
    waiting = []
    for row in read_rows():
        await household.harness.say("/new")
        if after_mail:
            household.model.script = [says("It is about a ferry.")]
            await household.harness.say(MAIL, origin="forwarded")
        if await household.waits(row):
            waiting.append(f"{row.kind}: {row.text}")
    print(f"\n{len(waiting)} of {len(read_rows())} wait: {waiting}")  # noqa: T201
    return waiting


def test_there_are_two_hundred_requests() -> None:
    assert len(read_rows()) == 200


async def test_at_most_two_percent_wait_without_foreign_text_and_without_a_helper_model(
    home: Path,
) -> None:
    async with open_household(home) as household:
        waiting = await list_waiting(household, after_mail=False)
    assert len(waiting) <= MAX_SHARE * len(read_rows())


async def test_at_most_two_percent_wait_after_a_forward_with_a_correct_helper_model(
    home: Path,
) -> None:
    async with open_household(home, ScriptedModel(*[agree] * 9_999)) as household:
        waiting = await list_waiting(household, after_mail=True)
    assert len(waiting) <= MAX_SHARE * len(read_rows())


async def test_some_wait_after_a_forward_without_a_helper_model(home: Path) -> None:
    async with open_household(home) as household:
        waiting = await list_waiting(household, after_mail=True)
    assert len(waiting) <= MAX_SHARE_WITHOUT_HELPER * len(read_rows())
