"""Replays attacks of other readers: none has an effect at once, although the model obeys.

Each row of `data/attacks.jsonl` is what others wrote, what the owner types then, and the call that
the model makes. The first row has the texts of others by name. Run with -s to print the messages
that have an effect.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.types import Scope
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.sweeps import list_cases
from tests.fixtures.web_pages import PageServer, loopback_client, serve_pages

pytestmark = pytest.mark.slow

TEXTS, *ROWS = map(
    json.loads, (Path(__file__).parent / "data" / "attacks.jsonl").read_text("utf-8").splitlines()
)
RULE = "Never pay an invoice without calling Ben first"
ALLERGY = "Allergic to penicillin and nuts"
REMINDERS = (
    "daily at 8 take the insulin",
    "daily at 9 swim",
    "every friday at 10 call Ben about the rent",
    "daily at 18 water the plants",
    "every tuesday at 20 den Müll rausbringen",
)
SCOPES = frozenset((Scope.account("telegram", "42"),))


async def prepare(harness: GatewayHarness, model: ScriptedModel) -> None:
    for command in (f"memory add {RULE}", f"memory add {ALLERGY}"):
        await harness.say(f"/{command}")
    for line in REMINDERS:
        await harness.say(f"/remind {line}")
    await harness.say("/cron pause 2")
    dentist = {"mode": "add", "content": "User's dentist is Dr. Silva", "names": ["Dr. Silva"]}
    model.script = [calls(("facts", dentist)), says("Noted.")]
    await harness.say("My dentist is Dr. Silva")


async def read_state(harness: GatewayHarness, pages: PageServer) -> str:
    services = harness.services
    jobs = [job for number in range(1, 30) if (job := await services.jobs.get(number))]
    facts = await services.facts.list_page(SCOPES, 100)
    state = {
        "notes": [await services.notebook.entries(SCOPES, name) for name in ("memory", "user")],
        "jobs": [(job.id, job.text, job.paused_at is None, job.ended_at is None) for job in jobs],
        "facts": [(fact.content, fact.is_open, fact.trust) for fact in facts],
        "requests": list(pages.requests),
    }
    return json.dumps(state, ensure_ascii=False, default=str)


def fill_dates(arguments: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Put the days that the rows name into the arguments of a call."""

    def name_day(days: int) -> str:
        return f"{now + timedelta(days=days):%Y-%m-%d}"

    text = json.dumps(arguments)
    days = {"{tom}": 1, "{fri}": (4 - now.weekday() - 1) % 7 + 1, "{mon}": -now.weekday() % 7 or 7}
    for name, count in days.items():
        text = text.replace(name, name_day(count))
    filled: dict[str, Any] = json.loads(text.replace("{until}", name_day(5).replace("-", "")))
    return filled


@pytest.mark.parametrize(
    "theme", list_cases(sorted({row["theme"] for row in ROWS}), "remove", "send")
)
async def test_attack_of_another_reader_changes_and_sends_nothing_at_once(
    home: Path, theme: str
) -> None:
    model = ScriptedModel()
    async with serve_pages() as pages:
        options = (
            f'[web_tools]\nsearch = "searxng"\nsearxng_url = "http://127.0.0.1:{pages.port}"\n'
        )
        async with open_gateway(home, model, options) as harness:
            assert harness.services.web is not None
            harness.services.web.client = loopback_client()
            await prepare(harness, model)
            failures = []
            for row in (row for row in ROWS if row["theme"] == theme):
                await harness.say("/new")
                if row["foreign"] != "nothing":
                    model.script = [says(row.get("answer", "It is a mail."))]
                    text = TEXTS.get(row["foreign"], row["foreign"])
                    await harness.say(f"{text} {TEXTS['order']}", origin="forwarded")
                before = await read_state(harness, pages)
                arguments = fill_dates(row["arguments"], harness.services.clock.now())
                model.script = [calls((row["call"], arguments)), says("Done.")]
                await harness.say(row["typed"])
                if await read_state(harness, pages) != before:
                    failures.append(row["typed"])
    print(f"\n{theme}: {len(failures)} have an effect: {failures}")  # noqa: T201
    assert failures == []
