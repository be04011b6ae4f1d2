"""llama.cpp's own server, with a small model of random weights, in both forms of API that it has.

Its answers mean nothing. The tests check that it accepts all requests of Mneme, and that Mneme
understands its refusals.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from core.agent.offline import OfflineModel
from core.errors import ModelError
from core.models.wrappers import FallbackModel, ModelRouter
from core.types import Completion, Request
from gateway.services import create_model_client
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.tiny_llama import write_tiny_llama
from tests.services.engines.engine import ROOT, free_port, installed, program

pytestmark = [pytest.mark.services, pytest.mark.slow]

BINARY = "bin/llama-server-vulkan"
# A multiple of 256, as the server rounds it.
WINDOW_TOKENS = 61_440
TURNS = 6
PICTURE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
}
TOOL = {
    "name": "look",
    "description": "Looks something up.",
    "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a server."""
    if why := installed("llama", BINARY):
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("llama")
    write_tiny_llama(folder / "tiny.gguf")
    port = free_port()
    command = [str(ROOT / "llama" / BINARY), "--model", str(folder / "tiny.gguf"), "--jinja"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--parallel", "1", "--threads", "1"]
    command += ["--ctx-size", str(WINDOW_TOKENS)]
    with program(command, folder, f"http://127.0.0.1:{port}/v1/models"):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(params=["messages", "chat-completions"])
def options(request: pytest.FixtureRequest, server: str) -> str:
    """Return the settings for the server, with each form of API."""
    url = server if request.param == "messages" else f"{server}/v1"
    return (
        '[model]\nchat = "own/tiny"\nmax_tokens = 40\n'
        f'[model.servers.own]\napi = "{request.param}"\nurl = "{url}"\n'
    )


@asynccontextmanager
async def connecting(home: Path, options: str) -> AsyncIterator[ModelRouter]:
    (home / "mneme.toml").write_text(options)
    client = create_model_client(Settings.load({"MNEME_HOME": str(home)}), SteadyClock())
    assert client is not None
    try:
        yield client
    finally:
        await client.close()


async def ask(client: ModelRouter, *contents: Any, **fields: Any) -> Completion:
    """Ask with these messages, which alternate between the person and the assistant."""
    roles = ("user", "assistant")
    messages = tuple(
        {"role": roles[number % 2], "content": content} for number, content in enumerate(contents)
    )
    request = Request(
        system=({"type": "text", "text": "You are Mneme."},),
        messages=messages,
        model="own/tiny",
        max_tokens=20,
    )
    return await client.complete(replace(request, **fields), lambda _: None, lambda _: None)


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


async def test_probe_and_list_of_models_work(home: Path, options: str) -> None:
    async with connecting(home, options) as client:
        assert str(await client.probe("own/tiny")).startswith("tiny answers at http://127.0.0.1:")
        # The server has one model, which any name selects.
        assert await client.fetch_window_tokens("own/tiny") == WINDOW_TOKENS


async def test_conversation_with_all_tools_is_never_refused_and_mostly_read_from_the_cache(
    home: Path, options: str
) -> None:
    async with (
        connecting(home, options) as client,
        open_gateway(
            home, FallbackModel(client, OfflineModel("UTC"), SteadyClock()), options
        ) as chat,
    ):
        for number in range(TURNS):
            answer = await chat.say(f"The ferry {number} leaves at nine.")
            assert "saved" not in answer.text, "the offline model has answered"
    tokens = client.tally.tokens
    assert client.tally.outcomes["own/tiny", "answered"] == TURNS
    assert set(client.tally.outcomes) == {("own/tiny", "answered")}
    # All but the first request are read from the cache.
    assert tokens["cache_read"] > (1 - 1.5 / TURNS) * (tokens["input"] + tokens["cache_read"])


async def test_calls_of_another_model_and_their_results_are_accepted(
    home: Path, options: str
) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"query": "ferry"}}
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "other"}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": text("Nine.")}
    async with connecting(home, options) as client:
        for tools in ((TOOL,), ()):
            completion = await ask(
                client,
                text("When?"),
                [thinking, *text("Let me see."), call],
                [result, *text("Well?")],
                tools=tools,
                effort="low",
            )
            assert completion.usage.output > 0
        assert client.tally.outcomes["own/tiny", "refused"] == 0


async def test_picture_is_left_out_of_requests_after_the_llama_server_has_refused_a_picture(
    home: Path, options: str
) -> None:
    async with connecting(home, options) as client:
        completion = await ask(client, [PICTURE, *text("What is it?")])
    assert completion.text.startswith("_own/tiny can't see pictures")


async def test_too_long_conversation_is_recognised_with_the_size_of_the_window(
    home: Path, options: str
) -> None:
    async with connecting(home, options) as client:
        with pytest.raises(ModelError) as caught:
            await ask(client, text("a" * (WINDOW_TOKENS + 100)))
    assert caught.value.status == 413
    assert getattr(caught.value, "window_tokens", None) == WINDOW_TOKENS
