"""Each line of the table of servers in docs/models.md, tried as a person tries it: check, then chat.

A double of the server's API stands at the address. It refuses everything that its API refuses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from gateway.services import create_model_client
from tests.config.test_model_servers import SERVERS, read_row
from tests.fixtures.chat_api import ChatApi
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.sweeps import list_cases

pytestmark = pytest.mark.slow

KEY = "sk-presets"


def answer(body: dict[str, Any]) -> ModelReply:
    """Look the ferry up, and then say so. A question without tools gets a plain answer."""
    last = body["messages"][-1]
    if not body.get("tools"):
        return ModelReply.say("Hello.")
    blocks = last["content"] if isinstance(last["content"], list) else []
    is_result = last["role"] == "tool" or any(b["type"] == "tool_result" for b in blocks)
    if is_result:
        return ModelReply.say("I have looked.")
    return ModelReply.call(("session_search", {"query": "ferry"}), text="Let me see.")


@pytest.mark.parametrize("name", list_cases(SERVERS, "anthropic", "openai", "ollama"))
async def test_documented_settings_line_of_each_model_server_answers_with_tools(
    home: Path, name: str
) -> None:
    line = read_row(name)[2].strip("`")
    key = SERVERS[name].get("key", "")
    form = MessagesApi if SERVERS[name]["api"] == "messages" else ChatApi
    # The doubles know the names of these two vendors' models. Others accept any name.
    is_local = name not in ("anthropic", "openai")
    traits: dict[str, Any] = {"is_local": is_local}
    if SERVERS[name].get("cache_breakpoints"):
        traits["caches_marked"] = True
    async with form(answer, key=KEY if key else None, **traits) as api:
        options = f'[model]\n{line}\n[model.servers.{name}]\nurl = "{api.url}"\n'
        (home / "mneme.toml").write_text(options)
        variables = {key: KEY} if key else {}
        settings = Settings.load({"MNEME_HOME": str(home), **variables})
        assert (settings.has_model, settings.advice) == (True, "")
        client = create_model_client(settings, SteadyClock())
        assert client is not None
        try:
            for model in (settings.model.chat, settings.model.helper):
                assert "answers at http://127.0.0.1" in str(await client.probe(model))
            async with open_gateway(home, client, options, client, variables) as chat:
                for number in range(2):
                    reply = await chat.say(f"When does ferry {number} leave?")
                    assert reply.text.endswith("I have looked.")
                shown = (await chat.say("/model")).text
                assert shown.startswith(f"`{settings.model.chat}` answers here.")
        finally:
            await client.close()
    assert api.refusals == []
