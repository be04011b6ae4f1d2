"""Asking a server why its cache missed: what it says, and servers that do not take the question."""

from __future__ import annotations

from typing import Any

import pytest

from core.models.claude import Claude
from core.types import Completion, Request
from tests.fixtures.clock import SteadyClock
from tests.fixtures.messages_api import MessagesApi

MARK = {"type": "ephemeral"}


def _request(system: str = "You are Mneme.", said: str = "Hello", **changes: Any) -> Request:
    turn = {"role": "user", "content": [{"type": "text", "text": said, "cache_control": MARK}]}
    block = {"type": "text", "text": system}
    return Request(**{"system": (block,), "messages": (turn,), "model": "claude-sonnet-5-5", **changes})


async def _asked(claude: Claude, request: Request) -> Completion:
    return await claude.complete(request, lambda _: None, lambda _: None)


TOOL = {"name": "clock", "description": "The time.", "input_schema": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("changed", "miss"),
    [
        ({}, None),
        ({"model": "claude-haiku-5-5"}, "model"),
        ({"system": "You are somebody else."}, "system"),
        ({"tools": (TOOL,)}, "tools"),
        ({"said": "Good day"}, "messages"),
        ({"previous_id": "msg_of_another_server"}, None),
    ],
)
async def test_what_has_changed_since_the_answer_that_is_named(changed: dict[str, Any], miss: str | None) -> None:
    async with MessagesApi() as api:
        claude = Claude(api_key="k", base_url=api.url, clock=SteadyClock(), says_why=True)
        try:
            first = await _asked(claude, _request())
            second = await _asked(claude, _request(**{"previous_id": first.id, **changed}))
        finally:
            await claude.close()
        assert first.id == "msg_000001"
        assert (first.miss, second.miss) == (None, miss)
        assert api.requests[0]["diagnostics"] == {"previous_message_id": None}, "only who asks is remembered"
        assert not api.refusals


async def test_only_the_official_server_is_asked_unless_it_is_said() -> None:
    async with MessagesApi() as api:
        claude = Claude(api_key="k", base_url=api.url, clock=SteadyClock())
        try:
            await _asked(claude, _request(previous_id="msg_1"))
        finally:
            await claude.close()
        assert "diagnostics" not in api.requests[0]


async def test_a_title_asks_for_no_reason() -> None:
    async with MessagesApi() as api:
        claude = Claude(api_key="k", base_url=api.url, clock=SteadyClock(), says_why=True)
        try:
            await _asked(claude, _request(kind="title"))
        finally:
            await claude.close()
        assert "diagnostics" not in api.requests[0]


async def test_a_server_that_does_not_take_the_question_is_asked_without_it_from_then_on() -> None:
    async with MessagesApi(says_why=False) as api:
        claude = Claude(api_key="k", base_url=api.url, clock=SteadyClock(), says_why=True)
        try:
            for _ in range(2):
                assert (await _asked(claude, _request(previous_id="msg_1"))).text == "You said: Hello"
        finally:
            await claude.close()
        assert ["diagnostics" in body for body in api.requests] == [True, False, False]
        assert "cache_control" in str(api.requests[-1]["messages"]), "the cache is still used"
