"""The model's tool `reminder` through the gateway, with a server that speaks the Messages API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from core.models.claude import Claude
from core.store.jobs import Job
from core.types import Answer, Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

pytestmark = pytest.mark.slow

OWN = frozenset({Scope.account("telegram", "42")})
AT_TEN = {"action": "add", "moment": "2030-01-07T10:00", "task": "call Ana"}


@asynccontextmanager
async def _open(home: Path, api: MessagesApi) -> AsyncIterator[GatewayHarness]:
    claude = Claude(api_key="k", base_url=api.url, clock=SteadyClock())
    try:
        async with open_gateway(home, claude) as harness:
            yield harness
    finally:
        await claude.close()


def _script(*calls: dict[str, str]) -> MessagesApi:
    replies = [ModelReply.call(("reminder", call)) for call in calls]
    return MessagesApi([*replies, ModelReply.say("Done.")])


async def _ask(harness: GatewayHarness, text: str) -> Answer:
    answer = (await harness.say(text)).answer
    assert answer is not None
    return answer


async def _jobs(harness: GatewayHarness) -> Sequence[Job]:
    return await harness.services.jobs.list_visible(OWN)


async def test_reminder_whose_time_matches_the_typed_time_is_set_with_a_confirmation(
    home: Path,
) -> None:
    async with _script(AT_TEN) as api, _open(home, api) as harness:
        answer = await _ask(harness, "Remind me on 7 January 2030 at 10:00 to call Ana")
        assert answer.text == (
            "Done.\n\n✓ Reminder 1 set, Monday 7 January 2030 at 10:00: “call Ana”"
        )
        assert api.refusals == []


async def test_reminder_whose_time_differs_from_the_typed_time_is_set_by_a_button(
    home: Path,
) -> None:
    async with _script(AT_TEN) as api, _open(home, api) as harness:
        answer = await _ask(harness, "Erinnere mich am 7. Januar 2030 um 11 Uhr an call Ana")
        assert await _jobs(harness) == []
        assert answer.text.endswith("Which one is right?")
        labels = [button.label for button in answer.buttons]
        assert labels == [
            "Monday 7 January 2030 at 11:00: call Ana",
            "Monday 7 January 2030 at 10:00: call Ana",
        ]
        await harness.say(answer.buttons[0].id, kind="action")
        (job,) = await _jobs(harness)
        assert (job.text, f"{job.schedule.at:%H:%M}") == ("call Ana", "11:00")
        assert api.refusals == []


async def test_choice_disappears_if_the_model_sets_the_time_of_the_words_after_all(
    home: Path,
) -> None:
    at_eleven = {**AT_TEN, "moment": "2030-01-07T11:00"}
    async with _script(AT_TEN, at_eleven) as api, _open(home, api) as harness:
        answer = await _ask(harness, "Remind me on 7 January 2030 at 11:00 to call Ana")
        assert "Which one is right?" not in answer.text
        assert [f"{job.schedule.at:%H:%M}" for job in await _jobs(harness)] == ["11:00"]


async def test_recurrence_in_the_schema_is_set_as_an_rrule(home: Path) -> None:
    wish = {**AT_TEN, "recurrence": "FREQ=WEEKLY;BYDAY=MO"}
    async with _script(wish) as api, _open(home, api) as harness:
        await _ask(harness, "From 7 January 2030 on, remind me every Monday at 10:00 to call Ana")
        (job,) = await _jobs(harness)
        assert job.schedule.recurrences == (
            "DTSTART;TZID=Europe/Lisbon:20300107T100000\nRRULE:FREQ=WEEKLY;BYDAY=MO",
        )
