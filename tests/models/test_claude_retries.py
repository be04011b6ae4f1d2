"""What happens when a model call fails: sentences, what is tried again and how long after, broken
streams, reach."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from core.errors import ModelError
from core.models.claude import Claude
from tests.fixtures.clock import SteadyClock
from tests.fixtures.messages_api import MessagesApi, Reply
from tests.fixtures.model_reply import ModelReply
from tests.models.test_claude import KEY, SENTENCE, Caller, calling

pytestmark = pytest.mark.slow

ERRORS = [
    (ModelReply.fail(400, "messages: bad"), "refused the request (400): messages: bad.", False),
    (ModelReply.fail(400, "Your credit balance is too low"), "cannot pay", False),
    (ModelReply.fail(400, "prompt is too long: 9 tokens > 8 maximum"), "too large", False),
    (ModelReply.fail(401, "invalid"), "does not accept the key", False),
    (ModelReply.fail(402, "pay"), "cannot pay", False),
    (ModelReply.fail(403, "no"), "have permission", False),
    (ModelReply.fail(404, "model: claude-sonnet-5-5"), "no model named claude-sonnet-5-5", False),
    (ModelReply(status=404, body="<html>nothing</html>"), "no Messages API", False),
    (ModelReply.fail(408), "waited too long", True),
    (ModelReply.fail(409), "conflicting", True),
    (ModelReply.fail(413), "too large", False),
    (ModelReply.fail(422, "what"), "refused the request (422): what", False),
    (ModelReply.fail(429), "rate limit", True),
    (ModelReply.fail(429, code="enforced_spend_limit_reached"), "spending limit", False),
    (ModelReply.fail(500), "internal error (500)", True),
    (ModelReply(status=502, body="<html>bad gateway</html>"), "internal error (502)", True),
    (ModelReply.fail(503), "out of service", True),
    (ModelReply.fail(504), "too long to answer", True),
    (ModelReply.fail(529), "overloaded", True),
]


@pytest.mark.parametrize(("reply", "sentence", "is_retryable"), ERRORS)
async def test_each_model_api_error_becomes_its_sentence_and_is_retried_only_if_retryable(
    reply: ModelReply, sentence: str, is_retryable: bool
) -> None:
    async with calling([reply] * 5) as (api, caller):
        error = await caller.fail()
    assert sentence in str(error)
    assert str(error).endswith(".")
    assert error.is_retryable is is_retryable
    assert error.__cause__ is None, "a traceback would show what the server repeats of a message"
    assert len(api.requests) == (5 if is_retryable else 1)
    assert len(caller.waits) == (4 if is_retryable else 0)


async def test_failed_model_call_reports_its_reason_and_the_time_of_the_retry() -> None:
    replies: list[Reply] = [
        ModelReply.fail(529, retry_after="4"),
        ModelReply.fail(429, retry_after_ms="1500"),
        "Here.",
    ]
    async with calling(replies) as (_, caller):
        assert (await caller.ask()).text == "Here."
    assert caller.waits == [
        "The model is overloaded. Trying again in 4 s (2 of 5).",
        "The model's rate limit is reached. Trying again in 2 s (3 of 5).",
    ]
    assert caller.slept == [4.0, 1.5]


async def test_retry_waits_as_long_as_the_model_server_asks() -> None:
    replies = [ModelReply.fail(503, retry_after="9"), ModelReply.fail(503, retry_after="?")]
    async with calling([*replies, "Here."]) as (_, caller):
        assert (await caller.ask()).text == "Here."
    assert caller.slept[0] == 9.0
    assert 2 <= caller.slept[1] <= 3


async def test_retry_pauses_double_when_the_model_server_states_no_retry_time() -> None:
    async with calling([ModelReply.fail(500)] * 5) as (_, caller):
        await caller.fail()
    for pause_s, least_s in zip(caller.slept, (1, 2, 4, 8), strict=True):
        assert least_s <= pause_s <= least_s + 1


async def test_retries_pause_increasingly_even_if_the_model_server_asks_for_no_pause() -> None:
    now = [ModelReply.fail(429, retry_after="0"), ModelReply.fail(429, retry_after_ms="30")] * 2
    async with calling([*now, "Here."]) as (_, caller):
        assert (await caller.ask()).text == "Here."
    assert caller.slept == [0.5, 1.0, 2.0, 4.0]


@pytest.mark.parametrize("after_events", [0, 1, 6])
async def test_a_call_that_hangs_is_tried_a_second_time_within_the_patience(
    after_events: int,
) -> None:
    silent = ModelReply.say(SENTENCE, hold=asyncio.Event(), after_events=after_events)
    async with calling([silent, "Here."], timeout_s=2.4) as (_, caller), asyncio.timeout(2.0):
        assert (await caller.ask()).text == "Here."
    assert caller.waits == ["The model took too long to answer. Trying again in 2 s (2 of 5)."]


async def test_retries_end_when_the_time_limit_is_reached() -> None:
    replies = [ModelReply.fail(429, retry_after="50")] * 5
    async with calling(replies) as (api, caller):
        error = await caller.fail()
    assert len(api.requests) == 3
    assert error.retry_after_s == 50
    async with calling([ModelReply.fail(429, retry_after="3600")]) as (api, caller):
        assert (await caller.fail()).retry_after_s == 3600
    assert not caller.waits


async def test_should_retry_header_of_the_model_server_decides_about_a_retry() -> None:
    async with calling([ModelReply.fail(429, x_should_retry="false")]) as (_, caller):
        assert not (await caller.fail()).is_retryable
    async with calling([ModelReply.fail(400, x_should_retry="true"), "Here."]) as (_, caller):
        assert (await caller.ask()).text == "Here."


@pytest.mark.parametrize("fault", ["cut", "error", "end", "garble"])
async def test_broken_claude_stream_is_requested_again_once_and_fails_at_the_second_break(
    fault: Any,
) -> None:
    broken = ModelReply.say(SENTENCE * 3, fault=fault, after_events=7)
    async with calling([broken, "Whole."]) as (_, caller):
        assert (await caller.ask()).text == "Whole."
    assert SENTENCE.startswith(caller.texts[0])
    assert caller.texts[-1] == "Whole."
    assert len(caller.waits) == 1
    assert caller.waits[0].endswith(" s (2 of 5).")
    async with calling([broken, broken, "Never."]) as (api, caller):
        error = await caller.fail()
    assert error.is_retryable
    assert len(api.requests) == 2
    assert sum(len(text) < len(before) for before, text in pairwise(caller.texts)) == 1, (
        "the second try starts over"
    )


async def test_a_broken_stream_and_a_refused_connection_count_together() -> None:
    broken = ModelReply.say(SENTENCE, fault="error", after_events=5)
    busy = ModelReply.fail(529)
    async with calling([busy, broken, busy, busy, busy, "Never."]) as (api, caller):
        await caller.fail()
    assert len(api.requests) == 5
    assert [wait.split(" Try")[0] for wait in caller.waits] == ["The model is overloaded."] * 4


async def test_an_overload_before_the_first_word_is_tried_as_any_overload() -> None:
    early = ModelReply.say(SENTENCE, fault="error", after_events=1)
    async with calling([early, early, early, "Here."]) as (_, caller):
        assert (await caller.ask()).text == "Here."
    assert caller.texts == ["Here."]


async def test_permanent_error_in_a_claude_stream_is_raised_without_a_retry() -> None:
    broken = ModelReply.say(
        SENTENCE, fault="error", error="invalid_request_error", words="no", after_events=5
    )
    async with calling([broken]) as (api, caller):
        error = await caller.fail()
    assert "refused the request (400): no" in str(error)
    assert len(api.requests) == 1


async def test_an_answer_that_ended_without_its_last_event_is_taken() -> None:
    reply = ModelReply.say("Short", fault="end", after_events=6)
    async with calling([reply]) as (_, caller):
        assert (await caller.ask()).text == "Short"


async def test_claude_answer_with_an_unknown_block_kind_is_an_error_without_retry() -> None:
    async with calling([[{"type": "hologram", "data": "x"}]]) as (_, caller):
        error = await caller.fail()
    assert "unknown kind (hologram)" in str(error)
    assert not error.is_retryable


async def test_arguments_that_are_not_an_object_are_unreadable() -> None:
    call: list[dict[str, Any]] = [{"type": "tool_use", "name": "memory", "input": [1]}]
    async with calling([call, "Better."]) as (_, caller):
        assert (await caller.ask()).text == "Better."


async def test_web_page_in_place_of_a_model_server_is_reported_as_another_api() -> None:
    async with calling([ModelReply(body="<html>Welcome to nginx</html>")] * 5) as (_, caller):
        error = await caller.fail()
    assert "does not speak the Messages API" in str(error)


async def test_server_that_cannot_be_reached_is_a_retryable_error() -> None:
    async with MessagesApi() as api:
        url = api.url
    caller = Caller(url, tries=2)
    error = await caller.fail()
    await caller.claude.close()
    assert "cannot be reached" in str(error)
    assert error.is_retryable
    assert caller.waits == [
        "The model's server cannot be reached. Check the network, and ANTHROPIC_BASE_URL if it is "
        "set. Trying again in 2 s (2 of 2)."
    ]


async def test_model_server_that_sends_no_http_or_closes_the_connection_is_retried() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answers.pop())
        writer.close()

    answers = [b"", b"220 mail at your service\r\n\r\n"]
    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        caller = Caller(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", tries=2)
        error = await caller.fail()
        await caller.claude.close()
    assert not answers
    assert error.is_retryable
    assert caller.waits == ["The connection to the model was lost. Trying again in 2 s (2 of 2)."]


@pytest.mark.parametrize("after_events", [0, 6])
async def test_model_server_that_stops_sending_ends_in_a_retryable_timeout_error(
    after_events: int,
) -> None:
    reply = ModelReply.say(SENTENCE, hold=asyncio.Event(), after_events=after_events)
    async with calling([reply], timeout_s=0.2, tries=1) as (_, caller):
        error = await caller.fail()
    assert str(error) == "The model took too long to answer."
    assert error.is_retryable


async def test_claude_probe_reports_the_reachable_model_and_an_unknown_model_or_refused_key() -> (
    None
):
    async with MessagesApi(["Hi"], key=KEY) as api:
        claude = Claude(api_key=KEY, base_url=api.url, clock=SteadyClock())
        assert (
            str(await claude.probe("claude-sonnet-5-5"))
            == f"claude-sonnet-5-5 answers at {api.url}."
        )
        with pytest.raises(ModelError, match="no model named claude-sonnet-9"):
            await claude.probe("claude-sonnet-9")
        await claude.close()
        stranger = Claude(api_key="wrong", base_url=api.url, clock=SteadyClock())
        with pytest.raises(ModelError, match="does not accept the key"):
            await stranger.probe("claude-sonnet-5-5")
        await stranger.close()


async def test_probe_of_a_local_model_server_requests_a_short_answer() -> None:
    async with MessagesApi(["Hi"], is_local=True) as api:
        claude = Claude(api_key=None, base_url=api.url, clock=SteadyClock())
        assert str(await claude.probe("llama")) == f"llama answers at {api.url}."
        assert api.requests[0]["max_tokens"] == 1
        await claude.close()
    gone = Claude(api_key=None, base_url=api.url, clock=SteadyClock())
    with pytest.raises(ModelError, match="cannot be reached"):
        await gone.probe("llama")
    await gone.close()
