"""Why a prefix missed, through the whole house against the strict double: what the books say agrees
with the server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from core.models.claude import Claude
from core.types import Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.scripted_model import ScriptedModel

pytestmark = pytest.mark.slow

MINE = frozenset({Scope.account("telegram", "42")})


@asynccontextmanager
async def _services(
    home: Path, api: MessagesApi, options: str = ""
) -> AsyncIterator[GatewayHarness]:
    claude = Claude(api_key="k", base_url=api.url, clock=SteadyClock())
    try:
        async with open_gateway(home, claude, options) as harness:
            yield harness
    finally:
        await claude.close()


async def _causes(harness: GatewayHarness) -> dict[str, int]:
    return {
        cause: part.calls
        for cause, part in (await harness.services.usage_log.load_spending(MINE)).by_miss_cause
    }


async def test_an_edit_and_an_erasure_miss_once_each(home: Path) -> None:
    async with MessagesApi() as api, _services(home, api) as harness:
        await harness.say("The ferry leaves at nine.", message_id="m1")
        await harness.say("My dog is called Zorro.", message_id="m2")
        await harness.say("Good.", message_id="m3")
        assert await _causes(harness) == {"first": 1}
        await harness.say("The ferry leaves at ten.", message_id="m1", kind="edit")
        for text in ("And now?", "Thanks for that."):
            await harness.say(text)
        assert await _causes(harness) == {"first": 1, "edit": 1}
        await harness.say("/forget Zorro")
        await harness.say("yes")
        for text in ("What do you know?", "Thanks again for that."):
            await harness.say(text)
        assert "Zorro" not in str(api.requests[-1])
        assert await _causes(harness) == {"first": 1, "edit": 1, "forget": 1}
        assert api.refusals == []


async def test_undo_retry_and_branch_cause_at_most_one_prompt_cache_miss_each(home: Path) -> None:
    async with MessagesApi() as api, _services(home, api) as harness:
        for number in range(4):
            await harness.say(f"The ferry {number} leaves at nine. " + "It is a long story. " * 60)
        for command in ("/undo", "/retry", "/undo back", "/branch"):
            before = sum((await _causes(harness)).values())
            await harness.say(command)
            for text in ("And now?", "Thanks."):
                await harness.say(text)
            causes = await _causes(harness)
            assert sum(causes.values()) - before <= 1, command
        assert set(causes) <= {"first", "undo", "branch"}
        assert "undo" in causes
        assert api.refusals == []


async def test_restart_between_messages_causes_no_cache_miss(home: Path) -> None:
    async with MessagesApi() as api:
        for number, text in enumerate(("The ferry leaves at nine.", "And back?", "Good.")):
            async with _services(home, api) as harness:
                await harness.say(text, message_id=f"m{number}")
                causes = await _causes(harness)
    assert causes == {"first": 1}
    assert len(api.usages) == 3


async def test_long_conversation_misses_the_prompt_cache_only_at_its_compression(
    home: Path,
) -> None:
    async with (
        MessagesApi() as api,
        _services(home, api, "[model]\nwindow_tokens = 12000\n") as harness,
    ):
        for number in range(5):
            await harness.say(f"[long 9000] {number}")
        causes = await _causes(harness)
    assert causes["first"] == 1
    assert causes["compression"] >= 1
    assert set(causes) == {"first", "compression"}


async def test_every_kind_of_model_call_is_in_the_usage_log(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(), titles=ScriptedModel()) as harness:
        await harness.say("My sister Ana lives in Porto and takes the ferry.")
        await harness.say("/new")
        await harness.say("/recall --summary --expand where does Ana live")
        kinds = {
            kind: part.calls
            for kind, part in (await harness.services.usage_log.load_spending(MINE)).by_kind
        }
    assert kinds == {"chat": 1, "title": 1, "facts": 1, "deep": 1, "summary": 1}
