"""/usage: what the model has cost here, why a prefix missed, and nothing of what is somebody
else's."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.store.usage_limits import ModelCall
from core.types import BillingScope, Completion, Request, Usage
from gateway import services
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

WRITTEN = Usage(cache_write=100_000, output=1_000)
READ = Usage(cache_read=100_000, cache_write=20_000, output=2_000)
PRICED = "[usage.prices]\nscripted = { input = 2.0, output = 10.0, cache_write = 2.5, cache_read = 0.1 }\n"


def _script() -> ScriptedModel:
    answers: list[Completion] = [says("One.", usage=WRITTEN), says("Two.", usage=READ)]
    return ScriptedModel(*answers)


async def _usage(harness: GatewayHarness, arguments: str = "", **changes: object) -> str:
    return (await harness.say(f"/usage {arguments}".strip(), **changes)).text  # type: ignore[arg-type]


async def test_usage_shows_costs_calls_and_cache_miss_causes_of_a_conversation(home: Path) -> None:
    titles = ScriptedModel(says("A trip", usage=Usage(input=300, output=10)))
    async with open_gateway(home, _script(), PRICED, titles) as harness:
        await harness.say("One?")
        await harness.say("Two?")
        text = await _usage(harness)
    here, lately, month, line = text.split("\n\n")
    assert month.startswith("**This month**: $0.341 so far")
    assert line.startswith("**Your limit for today**: $0.341 of $20.00")
    assert here.startswith(
        "**This conversation**: 220,300 tokens in, 100,000 of them read from the cache (45 %), 120,000 written to it; "
        "3,010 tokens out."
    )
    # Written 0.30, read 0.01, sent plain 0.0006, answered 0.0301; without a cache 0.4406 and the
    # same answers.
    assert "It cost $0.341; without the cache, it would have cost $0.471." in here.replace("\\", "")
    assert (
        "3 calls: 2 for answers by scripted ($0.340), 1 for titles by scripted ($0.0007)." in here
    )
    assert "100,000 tokens in 1 request at the first request of a conversation" in here
    assert lately == here.replace("This conversation", "The last 30 days")


async def test_usage_lists_what_the_verdicts_of_the_helper_model_on_notes_and_wishes_cost(
    home: Path,
) -> None:
    def judge(request: Request) -> Completion:
        if request.kind != "evidence":
            return says("[]")
        if '"asks"' in str(request.system):
            return says(json.dumps({"asks": "yes"}), usage=WRITTEN)
        return says(json.dumps([{"note": 1, "follows": "yes"}]), usage=WRITTEN)

    note = {"action": "add", "target": "memory", "content": "User's husband works for the railway"}
    removal = {"action": "remove", "job_id": 1}
    model = ScriptedModel(calls(("memory", note)), says("Good to know."), says("It is a mail."))
    model.script += [calls(("reminder", removal)), says("Done.")]
    async with open_gateway(home, model, PRICED, ScriptedModel(*[judge] * 9)) as harness:
        await harness.say("/remind daily at 8 take the insulin")
        await harness.say("Mein Mann arbeitet bei der Bahn")
        await harness.memory.tend()
        after_note = await _usage(harness)
        await harness.say("Tidy up medicine. Eve", origin="forwarded")
        await harness.say("My course of insulin is over, lose that alarm")
        after_wish = await _usage(harness)
    purpose = "to compare notes and changes with what you typed by scripted"
    # Each verdict writes 100,000 tokens for $0.25 and 1,000 tokens of output for $0.01.
    assert f"1 {purpose} ($0.260)" in after_note
    assert f"2 {purpose} ($0.520)" in after_wish


async def test_usage_marks_a_model_as_estimated_when_its_server_counts_no_tokens(
    home: Path,
) -> None:
    async with open_gateway(home, _script(), PRICED) as harness:
        await harness.say("One?")
        await harness.services.model_limits.save_uncounted("other")
        assert "estimated" not in await _usage(harness)
        await harness.services.model_limits.save_uncounted("scripted")
        sentence = "The server of scripted doesn't count tokens, so its numbers are estimated."
        assert sentence in (await _usage(harness)).split("\n\n")
        row = await harness.services.database.fetch_one("SELECT max(id) AS id FROM sessions")
        assert row is not None
        assert (await _usage(harness, str(row["id"]))).endswith(sentence)


async def test_a_model_without_a_price_is_named(home: Path) -> None:
    async with open_gateway(home, _script()) as harness:
        await harness.say("One?")
        text = (await _usage(harness)).replace("\\", "")
        assert "The cost is unknown: usage.prices in mneme.toml has no price for scripted." in text
        assert "no price" in await _usage(harness, "months")


async def test_usage_is_listed_by_month_and_by_conversation(home: Path) -> None:
    async with open_gateway(home, _script(), PRICED) as harness:
        await harness.say("Where does the *ferry* leave?")
        await harness.say("/new")
        await harness.say("Two?")
        (month,) = (await _usage(harness, "months")).splitlines()
        assert f"{harness.services.clock.now():%B}" in month
        assert (
            "$0.340; 220,000 tokens in, 100,000 of them read from the cache (45 %), 120,000 written to it; "
            "3,000 tokens out" in month.replace("\\", "")
        )
        assert "Write /usage, /usage months, /usage more, or" in await _usage(harness, "yesterday")
        one = await _usage(harness, "1")
        assert one.startswith(
            "**Conversation 1**: 100,000 tokens in, 0 of them read from the cache (0 %), 100,000 "
        )
        assert "100,000 tokens in 1 request at the first request of a conversation" in one
        assert (await _usage(harness, "99")).startswith("There is no conversation 99 here.")
        assert await _usage(harness, "1", who="7") == (await _usage(harness, "99")).replace(
            "99", "1"
        )


async def test_usage_without_any_model_call_reports_no_calls(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("Hi", usage=Usage()))) as harness:
        await harness.say("Hello")
        assert (await _usage(harness)).count("no model calls.") == 2
        assert await _usage(harness, "months") == "No model has been used yet."


@pytest.mark.parametrize("arguments", ["", "months"])
async def test_usage_command_shows_no_model_calls_of_other_people(
    home: Path, arguments: str
) -> None:
    async with open_gateway(home, _script(), PRICED) as harness:
        await harness.say("My secret?")
        await harness.services.usage_log.log(
            ModelCall(
                kind="summary",
                model="scripted",
                usage=READ,
                at=harness.services.clock.now(),
                billing=BillingScope(session_id=1),
            )
        )
        text = await _usage(harness, arguments, who="7")
        assert "no model " in text.lower()
        assert "secret" not in text


async def test_incognito_costs_count_and_have_no_name(home: Path) -> None:
    async with open_gateway(home, _script(), PRICED) as harness:
        await harness.say("/incognito")
        await harness.say("One?")
        here, lately = (await _usage(harness)).split("\n\n")[-4:-2]
        assert "incognito" in here
        assert "100,000 tokens in" in lately
        (call,) = await harness.services.database.fetch_all("SELECT session_id FROM model_calls")
        assert call["session_id"] is None


DATED = PRICED.replace("cache_read = 0.1 }", 'cache_read = 0.1, date = "2026-09" }')


async def test_usage_forecasts_the_monthly_cost_and_warns_over_the_limit(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Twelve and a half of thirty days are over: 0.34 becomes 0.82 by the end.
    options = f"[usage]\nmonth_line = 0.5\n{DATED}"
    clock = SteadyClock(datetime(2026, 11, 13, 12, 0, tzinfo=UTC))
    monkeypatch.setattr(services, "WallClock", lambda: clock)
    async with open_gateway(home, _script(), options) as harness:
        await harness.say("One?")
        await harness.say("Two?")
        text = (await _usage(harness)).replace("\\", "")
    (month,) = [part for part in text.split("\n\n") if part.startswith("**This month**")]
    assert month.startswith("**This month**: $0.340 so far, about $0.816 by its end")
    assert ": scripted $0.340." in month
    assert "That is over your monthly limit of $0.500 (`usage.month_line`)." in month
    assert month.endswith("The prices are from September 2026.")


async def test_usage_states_that_the_monthly_cost_is_incomplete_for_a_model_without_a_price(
    home: Path,
) -> None:
    async with open_gateway(home, _script()) as harness:
        await harness.say("One?")
        text = (await _usage(harness)).replace("\\", "")
    assert "**This month**: no price so far" in text
    assert "No price is known for scripted, so the month costs more than that." in text
