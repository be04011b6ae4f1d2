"""The double of Discord refuses wrong bodies and second answers, as Discord does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.fixtures.clock import SteadyClock
from tests.fixtures.discord_api import TOKEN, DiscordApi
from tests.fixtures.discord_schema import spec_folder

pytestmark = pytest.mark.slow

needs_specs = pytest.mark.skipif(
    not (spec_folder() / "discord-openapi.json").is_file(),
    reason="Discord's OpenAPI description is not on this machine",
)


@pytest.fixture
async def api(clock: SteadyClock) -> AsyncIterator[DiscordApi]:
    async with DiscordApi(clock) as double:
        yield double


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers={"Authorization": f"Bot {TOKEN}"}) as opened:
        yield opened


class _Wire:
    """Requests as any client makes them."""

    def __init__(self, api: DiscordApi, session: aiohttp.ClientSession) -> None:
        self._api = api
        self._session = session

    async def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        async with self._session.request(method, self._api.rest_url + path, json=body) as response:
            return response.status, await response.json() if response.status != 204 else None

    async def succeed(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = await self(method, path, body)
        assert status < 300, (method, path, answer)
        return answer


@pytest.fixture
def wire(api: DiscordApi, session: aiohttp.ClientSession) -> _Wire:
    return _Wire(api, session)


async def _slash(api: DiscordApi, wire: _Wire, channel: str, user: str) -> tuple[str, str]:
    command = {"name": "help", "description": "What I can do", "type": 1}
    assert (await wire("PUT", f"/applications/{api.world.application_id}/commands", [command]))[
        0
    ] == 200
    call = await api.slash(channel, user, "help")
    return call, api.interactions.calls[call].token


@needs_specs
async def test_double_refuses_a_wrong_body_with_nested_errors(api: DiscordApi, wire: _Wire) -> None:
    channel = await api.channel("general")
    status, said = await wire("POST", f"/channels/{channel}/messages", {"content": 7, "tts": False})
    assert (status, said["code"]) == (400, 50035)
    assert said["errors"]["content"]["_errors"][0]["code"] == "BASE_TYPE_BAD"
    assert len(api.violations) == 1


async def test_double_takes_one_answer_to_an_interaction_within_three_seconds(
    api: DiscordApi, wire: _Wire, clock: SteadyClock
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    call, token = await _slash(api, wire, channel, ana)
    path = f"/interactions/{call}/{token}/callback"
    assert (await wire("POST", path, {"type": 5}))[0] == 204
    status, said = await wire("POST", path, {"type": 5})
    assert (status, said["code"]) == (400, 40060)
    late, token = await _slash(api, wire, channel, ana)
    clock.advance(seconds=3)
    status, said = await wire("POST", f"/interactions/{late}/{token}/callback", {"type": 5})
    assert (status, said["code"]) == (404, 10062)


@needs_specs
async def test_each_route_of_the_double_takes_and_returns_what_discord_describes(
    api: DiscordApi, wire: _Wire
) -> None:
    ana, channel = api.user("Ana"), await api.channel("general")
    application, guild = api.world.application_id, api.world.guild_id
    thread = await api.thread(channel, "Plans", ana)
    command = {"name": "hello", "description": "Says hello", "type": 1}
    for path in ("/users/@me", "/oauth2/applications/@me", "/applications/@me", "/gateway"):
        await wire.succeed("GET", path)
    for path in ("/gateway/bot", f"/guilds/{guild}/threads/active", f"/channels/{channel}"):
        await wire.succeed("GET", path)
    await wire.succeed("GET", f"/guilds/{guild}/members/{ana}")
    call, token = await _slash(api, wire, channel, ana)
    await wire.succeed("POST", f"/applications/{application}/commands", command)
    await wire.succeed("GET", f"/applications/{application}/commands?with_localizations=true")
    await wire.succeed("POST", "/users/@me/channels", {"recipient_id": ana})
    await wire.succeed("PATCH", f"/channels/{thread}", {"archived": False})
    await wire.succeed("POST", f"/channels/{channel}/typing")
    posted = await wire.succeed("POST", f"/channels/{channel}/messages", {"content": "Hello"})
    message = f"/channels/{channel}/messages/{posted['id']}"
    await wire.succeed("GET", f"/channels/{channel}/messages?limit=5&before={posted['id']}")
    await wire.succeed("GET", message)
    await wire.succeed("PATCH", message, {"content": "Goodbye"})
    await wire.succeed("PUT", f"{message}/reactions/👀/@me")
    await wire.succeed("DELETE", f"{message}/reactions/👀/@me")
    await wire.succeed("POST", f"{message}/threads", {"name": "Boats"})
    await wire.succeed("DELETE", message)
    await wire.succeed("POST", f"/interactions/{call}/{token}/callback", {"type": 5})
    webhook = f"/webhooks/{application}/{token}"
    await wire.succeed("PATCH", f"{webhook}/messages/@original", {"content": "Hello"})
    await wire.succeed("GET", f"{webhook}/messages/@original")
    await wire.succeed("POST", f"{webhook}?wait=true", {"content": "And more"})
    await wire.succeed("DELETE", f"{webhook}/messages/@original")
    assert api.violations == []
    assert {(request["method"], request["route"]) for request in api.requests} == set(
        api.rest.table
    )
    assert all(api.rest.schema.knows(*route) for route in api.rest.table)


@needs_specs
async def test_double_records_unknown_routes_and_parameters(api: DiscordApi, wire: _Wire) -> None:
    channel = await api.channel("general")
    assert (await wire("GET", f"/channels/{channel}/messages?limit=500"))[0] == 200
    assert (await wire("GET", f"/channels/{channel}/messages?colour=red"))[0] == 200
    assert (await wire("GET", f"/channels/{channel}/pins/now"))[0] == 404
    problems = ("'500' isn't valid", "colour: no such parameter", "no such route")
    assert all(
        problem in violation for problem, violation in zip(problems, api.violations, strict=True)
    )


@needs_specs
async def test_double_records_messages_and_suggestions_that_discord_does_not_have(
    api: DiscordApi, wire: _Wire
) -> None:
    ana, channel = api.user("Ana"), await api.channel("general")
    await api.user_says(channel, "hello", ana, flags="none", colour="red")
    await api.user_says(channel, "hello", ana)
    assert [problem.partition(": ")[0] for problem in api.violations] == ["MessageResponse"]
    await _slash(api, wire, channel, ana)
    typed = {"id": "1", "name": "help", "type": 1, "options": []}
    payload = api.interactions.open(4, channel, ana, typed)
    path = f"/interactions/{payload['id']}/{payload['token']}/callback"
    unnamed = {"type": 8, "data": {"choices": [{"name": "", "value": "x"}]}}
    assert (await wire("POST", path, unnamed))[0] == 400
    named = {"type": 8, "data": {"choices": [{"name": "X", "value": "x"}]}}
    assert (await wire("POST", path, named))[0] == 204
