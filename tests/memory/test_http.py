"""The way to a memory service: what is sent and taken, how long and how often, and what is said of
a failure."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp import web

from core.errors import ConfigError, DeliveryError, MnemeError, Refused
from core.memory import http
from core.memory.http import SEARCH, JsonService, objects, segment, text_of
from tests.fixtures.tables import each_row

SECRET = "s3cret-of-the-service"
Answer = Callable[[web.Request], Any]


@asynccontextmanager
async def served(answer: Answer) -> AsyncIterator[tuple[JsonService, list[web.Request]]]:
    """A service that gives this answer to everything, and what it was asked."""
    asked: list[web.Request] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(request)
        await request.read()
        given = answer(request)
        return given if isinstance(given, web.StreamResponse) else web.json_response(given)

    runner = web.AppRunner(app := web.Application(), shutdown_timeout=0.1)
    app.router.add_route("*", "/{path:.*}", handler)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    service = JsonService(
        "mem", f"http://127.0.0.1:{runner.addresses[0][1]}/api", {"Authorization": SECRET}
    )
    try:
        yield service, asked
    finally:
        await service.close()
        await runner.cleanup()


@each_row(
    "url",
    [
        "",
        "mem",
        "ftp://mem",
        "http://",
        "https://me:pw@mem",
        "https://mem?key=1",
        "https://mem#a",
        "http://a:b",
    ],
)
def test_memory_service_url_that_is_not_http_or_contains_a_key_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="should be an address"):
        JsonService("mem", url)


@each_row(
    ("host", "is_near"), [("127.0.0.1", True), ("localhost", True), ("[::1]", True), ("a.b", False)]
)
def test_service_on_this_machine_is_called_without_a_proxy(host: str, is_near: bool) -> None:
    assert JsonService("mem", f"http://{host}:1/x").is_loopback == is_near


async def test_service_call_sends_json_with_the_key_to_a_path_below_the_address() -> None:
    async with served(lambda request: {"ok": request.path_qs}) as (service, asked):
        answer = await service.call(
            "POST", "/v1/add", {"text": "tea \ud800 ☕"}, params={"page": 2}
        )
        assert answer == {"ok": "/api/v1/add?page=2"}
        assert asked[0].headers["Authorization"] == SECRET
        assert json.loads(await asked[0].text()) == {"text": "tea ? ☕"}
        assert await service.call("GET", "/v1/add") == {"ok": "/api/v1/add"}
        assert "Content-Type" not in asked[1].headers


@pytest.mark.parametrize(
    ("status", "kind", "is_permanent", "said"),
    [
        (400, Refused, None, "mem refuses it (HTTP status 400)"),
        (401, DeliveryError, True, "mem: the key is not accepted"),
        (403, Refused, None, "mem refuses it (HTTP status 403)"),
        (404, Refused, None, "mem refuses it (HTTP status 404): is its url right?"),
        (422, Refused, None, "mem refuses it (HTTP status 422)"),
        (408, DeliveryError, False, "mem is out of order (HTTP status 408)"),
        (429, DeliveryError, False, "mem gets too many calls (HTTP status 429)"),
        (500, DeliveryError, False, "mem is out of order (HTTP status 500)"),
        (304, DeliveryError, False, "mem is out of order (HTTP status 304)"),
    ],
)
async def test_http_error_of_a_memory_service_is_reported_without_text_from_the_service(
    status: int, kind: type[MnemeError], is_permanent: bool | None, said: str
) -> None:
    text = json.dumps({"detail": f"what Ana said, and {SECRET}"})
    async with served(lambda _: web.Response(status=status, text=text)) as (service, asked):
        with pytest.raises(kind) as raised:
            await service.call("GET", "/v1/one", {"text": "what Ana said"})
        assert str(raised.value) == said
        assert getattr(raised.value, "is_permanent", None) == is_permanent
        assert len(asked) == 1


async def test_missing_item_of_a_memory_service_may_be_accepted_as_deleted() -> None:
    async with served(lambda _: web.json_response({}, status=404)) as (service, _):
        assert await service.call("DELETE", "/v1/one", missing=None) is None
        with pytest.raises(Refused):
            await service.call("DELETE", "/v1/one")


@pytest.mark.parametrize(
    ("header", "least_s", "most_s"),
    [
        ("7", 7, 7),
        ("86400", 3600, 3600),
        ("in 20 minutes", 1100, 1200),
        ("soon", None, None),
        ("nan", None, None),
        ("-5", None, None),
    ],
)
async def test_service_that_asks_for_a_pause_is_not_called_until_its_end(
    header: str, least_s: float | None, most_s: float | None
) -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(minutes=20))
    limited = web.Response(
        status=429, headers={"Retry-After": at if header == "in 20 minutes" else header}
    )
    async with served(lambda _: limited) as (service, asked):
        with pytest.raises(DeliveryError) as raised:
            await service.call("GET", "/")
        wait_s = raised.value.retry_after_s
        if least_s is None or most_s is None:
            assert wait_s is None
            return
        assert wait_s is not None
        assert least_s <= wait_s <= most_s
        with pytest.raises(DeliveryError, match="asked for a pause") as again:
            await service.call("GET", "/")
        assert again.value.retry_after_s == pytest.approx(wait_s, abs=2)
        assert len(asked) == 1


async def test_a_redirect_is_followed_on_its_own_host_only() -> None:
    def answer(request: web.Request) -> Any:
        if request.path == "/api/near":
            raise web.HTTPTemporaryRedirect("/api/here")
        if request.path == "/api/far":
            raise web.HTTPTemporaryRedirect("http://127.0.0.2:9/here")
        if request.path == "/api/round":
            raise web.HTTPTemporaryRedirect("/api/round")
        return {"method": request.method}

    async with served(answer) as (service, asked):
        assert await service.call("POST", "/near", {"text": "tea"}) == {"method": "POST"}
        assert await asked[1].text() == '{"text": "tea"}'
        with pytest.raises(DeliveryError, match="another host"):
            await service.call("GET", "/far")
        with pytest.raises(DeliveryError, match="in a circle"):
            await service.call("GET", "/round")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{", "application/json"),
        ("[" * 100_000, "application/json"),
        ("{}", "text/html"),
        ("9" * 5_000, "text/json"),
    ],
)
async def test_service_answer_without_json_is_a_delivery_error(text: str, kind: str) -> None:
    async with served(lambda _: web.Response(text=text, content_type=kind)) as (service, _):
        with pytest.raises(DeliveryError, match="doesn't answer with JSON"):
            await service.call("GET", "/")


async def test_empty_http_response_of_a_memory_service_is_returned_as_none() -> None:
    async with served(lambda _: web.Response(status=204)) as (service, _):
        assert await service.call("DELETE", "/") is None


async def test_request_and_response_bodies_of_a_memory_service_are_limited_in_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "REQUEST_BYTES", 100)
    monkeypatch.setattr(http, "ANSWER_BYTES", 100)
    async with served(lambda _: {"text": "x" * 100}) as (service, asked):
        with pytest.raises(Refused, match="over 100 bytes"):
            await service.call("POST", "/", {"text": "x" * 100})
        assert asked == []
        with pytest.raises(DeliveryError, match="over 100 bytes"):
            await service.call("GET", "/")


@pytest.mark.parametrize(
    ("method", "is_repeatable", "tries"),
    [
        ("GET", None, 2),
        ("DELETE", None, 2),
        ("PUT", None, 2),
        ("POST", None, 1),
        ("POST", True, 2),
        ("GET", False, 1),
    ],
)
async def test_repeatable_call_is_tried_once_more(
    method: str, is_repeatable: bool | None, tries: int
) -> None:
    def answer(request: web.Request) -> Any:
        assert request.transport is not None
        request.transport.abort()
        return {}

    async with served(answer) as (service, asked):
        with pytest.raises(DeliveryError, match="cannot be reached") as raised:
            await service.call(method, "/", is_repeatable=is_repeatable)
        assert len(asked) == tries
        assert "127.0.0.1" not in str(raised.value)


async def test_service_that_does_not_listen_is_reported_as_unreachable() -> None:
    service = JsonService("mem", "http://127.0.0.1:9")
    with pytest.raises(DeliveryError, match=r"mem cannot be reached \(ConnectError\): does it run"):
        await service.call("GET", "/", call_timeout=SEARCH)
    await service.close()


@each_row("name", ["", ".", "..", "a/b", "a b", "a?b", "a#b", "é" * 301, "a\n", "a%2Fb"])
def test_odd_service_id_is_refused_as_a_part_of_a_url_path(name: str) -> None:
    with pytest.raises(DeliveryError):
        segment(name)


def test_valid_service_id_is_escaped_as_a_part_of_a_url_path() -> None:
    assert segment("a1-B_2.c") == "a1-B_2.c"
    assert segment("viking:1") == "viking%3A1"


@each_row(
    "answer",
    [None, [], {"results": None}, {"results": {}}, {"results": [1]}, {"results": ["a"]}, 7],
)
def test_memory_service_response_without_the_expected_list_is_an_error(answer: Any) -> None:
    with pytest.raises(DeliveryError, match="has no list"):
        objects(answer, "results")


def test_fields_of_a_service_answer_are_found_by_their_names() -> None:
    answer = {"data": {"results": [{"id": "a", "n": 7}]}}
    (one,) = objects(answer, "data", "results")
    assert text_of(one, "n", "name", "id") == "a"
    assert text_of(one, "n") == text_of(None, "id") == text_of("id", "id") == ""


async def test_sixty_calls_at_once_wait_for_the_connections_that_the_file_limit_allows() -> None:
    peers: set[object] = set()

    def answer(request: web.Request) -> dict[str, str]:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return {"path": request.path}

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with served(answer) as (service, _):
        resource.setrlimit(resource.RLIMIT_NOFILE, (91, limits[1]))
        try:
            calls = (service.call("GET", f"notes/{number}") for number in range(60))
            answers = await asyncio.gather(*calls)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert [each["path"] for each in answers] == [f"/api/notes/{number}" for number in range(60)]
    assert 1 <= len(peers) <= (91 - 27) // 4
