"""Which modules a client of each API loads, and what its connection sends."""

from __future__ import annotations

import subprocess
import sys

import pytest

from core.models.connections import ServerConnection
from core.models.failures import ModelFailure, ServerNames
from tests.fixtures.chat_api import ChatApi
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.sweeps import keep_first

FAMILIES = {
    "messages": "core.models.claude",
    "chat-completions": "core.models.chat_completions",
}
PROGRAM = """
import sys
from config.settings import Settings
from gateway.services import create_model_client
settings = Settings.load({variables})
client = create_model_client(settings, None)
print(*sorted(name for name in {names} if name in sys.modules))
"""


def list_loaded(home: str, options: str, names: tuple[str, ...], **variables: str) -> list[str]:
    """Return those of the modules that a process with these settings loads for its models."""
    with open(f"{home}/mneme.toml", "w", encoding="utf-8") as file:
        file.write(options)
    program = PROGRAM.format(variables={"MNEME_HOME": home, **variables}, names=names)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize("api", keep_first(1, FAMILIES))
def test_client_of_one_model_api_imports_neither_the_other_client_nor_sdk_types(
    tmp_path_factory: pytest.TempPathFactory, api: str
) -> None:
    home = str(tmp_path_factory.mktemp("home"))
    server = f'[model.servers.own]\napi = "{api}"\nurl = "http://127.0.0.1:9"\n'
    names = (
        *FAMILIES.values(),
        "anthropic",
        "openai.types.chat",
        "openai.types.responses",
        "openai.resources",
        "openai.lib.azure",
    )
    loaded = list_loaded(home, f'[model]\nchat = "own/m"\n{server}', names)
    assert loaded == [FAMILIES[api]]


WHOLE_SDK = """
import sys
from core.models.connections import ServerConnection, openai
few = sum(name.startswith("openai.types") for name in sys.modules)
from openai import AsyncOpenAI, BadRequestError, AzureOpenAI
import openai.types.chat
assert issubclass(openai.types.chat.ChatCompletion, openai.BaseModel)
assert openai.types.Batch
assert issubclass(BadRequestError, openai.APIError) and openai.__version__
client = AsyncOpenAI(api_key="k", base_url="http://127.0.0.1:9")
assert isinstance(client.chat.completions, openai.resources.chat.AsyncCompletions)
print(few, len([name for name in sys.modules if name.startswith("openai.types")]))
"""


@pytest.mark.slow
def test_rest_of_the_sdk_is_loaded_when_something_else_needs_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WHOLE_SDK], capture_output=True, text=True, timeout=120, check=True
    )
    few, all_of_them = map(int, done.stdout.split())
    assert few < 40 < 400 < all_of_them


@pytest.mark.slow
def test_process_without_a_model_loads_no_client(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home = str(tmp_path_factory.mktemp("home"))
    names = (*FAMILIES.values(), "core.models.connections", "anthropic", "openai", "httpx2")
    assert list_loaded(home, "", names) == []


async def test_organization_in_the_environment_is_sent_to_no_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-private")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-private")
    async with MessagesApi(["Hi"], is_local=True) as api:
        connection = ServerConnection(api.url, "some-key", ServerNames(), 10.0)
        await connection.fetch("/v1/models/llama")
        with pytest.raises(ModelFailure):
            await connection.stream(
                "/v1/messages", b"{}", "llama", 5.0, lambda _: "", lambda _: None
            )
        await connection.close()
    headers = api.headers[-1]
    assert headers["authorization"] == "Bearer some-key"
    assert not any("private" in value for value in headers.values())


async def test_missing_path_is_fetched_as_nothing() -> None:
    async with ChatApi(["Hi"]) as api:
        connection = ServerConnection(api.url, "some-key", ServerNames(), 10.0)
        assert await connection.fetch("/nowhere") is None
        await connection.close()
