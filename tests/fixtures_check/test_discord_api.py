"""The double of Discord behaves where real clients trip: limits, codes, acknowledgements, intents,
resumes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.fixtures.clock import SteadyClock
from tests.fixtures.discord_api import TOKEN, DiscordApi
from tests.fixtures.discord_schema import DiscordSchema, spec_folder

Json = dict[str, Any]

GUILDS, GUILD_MESSAGES, DIRECT_MESSAGES = 1, 1 << 9, 1 << 12
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
async def test_a_wrong_body_is_refused_with_nested_errors(api: DiscordApi, wire: _Wire) -> None:
    channel = await api.channel("general")
    status, said = await wire("POST", f"/channels/{channel}/messages", {"content": 7, "tts": False})
    assert (status, said["code"]) == (400, 50035)
    assert said["errors"]["content"]["_errors"][0]["code"] == "BASE_TYPE_BAD"
    assert len(api.violations) == 1


@needs_specs
def test_the_description_is_found_and_read() -> None:
    schema = DiscordSchema()
    assert schema.is_loaded
    assert schema.request("POST", "/channels/{channel_id}/messages", {"content": "hello"}) == {}
    assert schema.response("GET", "/gateway/bot", 200, {"url": "ws://127.0.0.1"}) != []


async def test_messages_have_their_limits(api: DiscordApi, wire: _Wire) -> None:
    channel = await api.channel("general")
    path = f"/channels/{channel}/messages"
    status, said = await wire("POST", path, {"content": "😀" * 2001})
    assert (status, said["code"]) == (400, 50035)
    assert "2000" in said["errors"]["content"]["_errors"][0]["message"]
    assert (await wire("POST", path, {"content": "😀" * 2000}))[0] == 200
    api.rest.limit_chars = 4000
    assert (await wire("POST", path, {"content": "x" * 4000}))[0] == 200
    assert (await wire("POST", path, {"content": "  "}))[1]["code"] == 50006
    assert (await wire("PATCH", f"{path}/1", {"content": "x"}))[1]["code"] == 10008
    assert (await wire("POST", "/channels/1/messages", {"content": "x"}))[1]["code"] == 10003


async def test_an_enforced_nonce_makes_one_message(api: DiscordApi, wire: _Wire) -> None:
    channel = await api.channel("general")
    body = {"content": "once", "nonce": "n1", "enforce_nonce": True}
    first = await wire("POST", f"/channels/{channel}/messages", body)
    assert await wire("POST", f"/channels/{channel}/messages", body) == first
    assert api.said(channel) == ["once"]


async def test_double_mentions_everyone_unless_the_message_forbids_it(
    api: DiscordApi, wire: _Wire
) -> None:
    channel = await api.channel("general")
    loud = await wire("POST", f"/channels/{channel}/messages", {"content": "@everyone"})
    quiet = await wire(
        "POST",
        f"/channels/{channel}/messages",
        {"content": "@everyone", "allowed_mentions": {"parse": []}},
    )
    assert (loud[1]["mention_everyone"], quiet[1]["mention_everyone"]) == (True, False)


async def test_an_interaction_is_acknowledged_once_and_within_three_seconds(
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


async def test_the_ephemeral_flag_is_fixed_at_the_deferral(
    api: DiscordApi, wire: _Wire, clock: SteadyClock
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    call, token = await _slash(api, wire, channel, ana)
    webhook = f"/webhooks/{api.world.application_id}/{token}"
    assert (await wire("POST", webhook, {"content": "too early"}))[1]["code"] == 10015
    await wire("POST", f"/interactions/{call}/{token}/callback", {"type": 5})
    status, said = await wire(
        "POST", f"{webhook}?wait=true", {"content": "meant to be private", "flags": 64}
    )
    assert (status, said["flags"]) == (200, 0)
    status, said = await wire("POST", f"{webhook}?wait=true", {"content": "private", "flags": 64})
    assert (status, said["flags"]) == (200, 64)
    assert api.said(channel) == ["meant to be private"]
    clock.advance(minutes=15)
    status, said = await wire("PATCH", f"{webhook}/messages/@original", {"content": "x"})
    assert (status, said["code"]) == (401, 50027)


async def test_a_planned_rate_limit_has_its_headers(
    api: DiscordApi, session: aiohttp.ClientSession
) -> None:
    channel = await api.channel("general")
    api.rest.fail("POST", "/messages", 429, retry_after=1.5)
    url = f"{api.rest_url}/channels/{channel}/messages"
    async with session.post(url, json={"content": "x"}) as response:
        assert response.status == 429
        assert response.headers["Retry-After"] == "1.5"
        assert response.headers["X-RateLimit-Bucket"]
        assert (await response.json())["retry_after"] == 1.5
    async with session.post(url, json={"content": "x"}) as response:
        assert response.status == 200
    async with session.post(
        url, json={"content": "x"}, headers={"Authorization": "Bot wrong"}
    ) as response:
        assert response.status == 401


async def test_the_gateway_greets_acknowledges_hides_and_replays(
    api: DiscordApi, session: aiohttp.ClientSession
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    intents = GUILDS | GUILD_MESSAGES | DIRECT_MESSAGES
    identify = {"op": 2, "d": {"token": TOKEN, "intents": intents, "properties": {}}}
    async with session.ws_connect(api.gateway_url) as socket:
        assert (await socket.receive_json())["op"] == 10
        await socket.send_json({"op": 1, "d": None})
        assert (await socket.receive_json())["op"] == 11
        await socket.send_json(identify)
        ready = await socket.receive_json()
        assert ready["t"] == "READY"
        assert (await socket.receive_json())["t"] == "GUILD_CREATE"
        await api.user_says(channel, "hidden", ana)
        await api.user_says(channel, f"{api.mention()} shown", ana)
        assert (await socket.receive_json())["d"]["content"] == ""
        assert (await socket.receive_json())["d"]["content"].endswith("shown")
    await api.user_says(api.dm(ana), "missed", ana)
    async with session.ws_connect(api.gateway_url) as socket:
        await socket.receive_json()
        await socket.send_json(
            {"op": 6, "d": {"token": TOKEN, "session_id": ready["d"]["session_id"], "seq": 4}}
        )
        assert (await socket.receive_json())["d"]["content"] == "missed"
        assert (await socket.receive_json())["t"] == "RESUMED"
        await socket.send_json({"op": 6, "d": {"token": TOKEN, "session_id": "unknown", "seq": 4}})
        answer = await socket.receive_json()
        assert (answer["op"], answer["d"]) == (9, False)


@pytest.mark.parametrize(
    ("token", "intents", "code"), [("wrong", GUILDS, 4004), (TOKEN, 1 << 15, 4014)]
)
async def test_the_gateway_refuses_tokens_and_intents(
    api: DiscordApi, session: aiohttp.ClientSession, token: str, intents: int, code: int
) -> None:
    api.world.is_content_allowed = False
    async with session.ws_connect(api.gateway_url) as socket:
        await socket.receive_json()
        await socket.send_json(
            {"op": 2, "d": {"token": token, "intents": intents, "properties": {}}}
        )
        await socket.receive()
        assert socket.close_code == code
