"""The Messages API on loopback: strict where the real one is, with its prefix cache, answering as it is told.

Speaks real HTTP, so that any process may talk to it. What may be sent is judged in `messages_rules`, what it costs in
`prefix_cache`; answers come from a brain or a script. Everything that happened can be looked up afterwards.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, get_args

from aiohttp import web
from anthropic.types import ModelParam

from core.ports import Clock
from core.types import Usage
from tests.doubles.diagnosis import Diagnosis
from tests.doubles.echo_brain import echo
from tests.doubles.messages_rules import MAX_BYTES, Refusal, check, parse
from tests.doubles.messages_stream import completed, events_of, message_of, on_wire, stop_reason_of
from tests.doubles.model_reply import ModelReply
from tests.doubles.prefix_cache import PrefixCache, tokens_in

Reply = ModelReply | str | list[dict[str, Any]]
Brain = Callable[[dict[str, Any]], Reply]

KNOWN_MODELS = tuple(get_args(get_args(ModelParam)[0]))
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class MessagesApi:
    """Use as ``async with MessagesApi(brain) as api`` and point the client to `api.url`.

    brain: a function of the request body, or an iterable of replies that are given one after the other; what is asked
    beyond its end is refused. A reply is a `ModelReply`, a text, or a list of content blocks.
    key: the only key that is accepted (None: any). prefill_models: those that continue an assistant message.
    is_local: behaves as local servers do: any key, any model, no list of models, no cache.
    takes_marks: False refuses cache_control, as some proxies do; says_why: False likewise diagnostics.
    """

    def __init__(
        self,
        brain: Brain | Iterable[Reply] = echo,
        *,
        key: str | None = None,
        clock: Clock | None = None,
        minimum_tokens: int = 0,
        window_tokens: int = 200_000,
        prefill_models: Iterable[str] = (),
        is_local: bool = False,
        takes_marks: bool = True,
        says_why: bool = True,
    ) -> None:
        self.url = ""
        self.requests: list[dict[str, Any]] = []
        """Every body that could be read, refused or not."""
        self.headers: list[dict[str, str]] = []
        """The headers of every call of /v1/messages, names in lower case."""
        self.refusals: list[str] = []
        """What was refused by the rules (not what a script made fail)."""
        self.notes: list[str] = []
        """What was accepted and is still odd."""
        self.usages: list[dict[str, Any]] = []
        """The usage of every answered request."""
        self.disconnects = 0
        """How often a client went away in the middle of a stream."""
        self.changed = asyncio.Condition()
        """Notified whenever something begins or ends: a request came, a stream is held, a client is gone."""
        self.held = 0
        """How many streams wait for their `hold` now."""
        self._script = None if callable(brain) else deque(brain)
        self._brain: Brain = brain if callable(brain) else self._next
        self._key = key
        self._cache = PrefixCache(clock or _WallClock(), minimum_tokens)
        self._window_tokens = window_tokens
        self._prefill_models = frozenset(prefill_models)
        self._is_local = is_local
        self._takes_marks = takes_marks
        self._diagnosis = Diagnosis() if says_why else None
        self._paused: set[str] = set()
        self._count = 0
        self._is_closing = False
        self._runner: web.AppRunner | None = None

    @property
    def totals(self) -> Usage:
        """The sum of all usages."""
        total = Usage()
        for usage in self.usages:
            total += Usage(
                input=usage["input_tokens"],
                output=usage["output_tokens"],
                cache_read=usage.get("cache_read_input_tokens", 0),
                cache_write=usage.get("cache_creation_input_tokens", 0),
                cache_write_hour=usage.get("cache_creation", {}).get("ephemeral_1h_input_tokens", 0),
            )
        return total

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=MAX_BYTES + 1024)
        app.router.add_post("/v1/messages", self._messages)
        if not self._is_local:
            app.router.add_get("/v1/models", self._models)
            app.router.add_get("/v1/models/{id}", self._model)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closing = True
        if self._runner is not None:
            await self._runner.cleanup()

    async def until(self, is_so: Callable[[], bool], timeout_s: float = 5.0) -> None:
        """Waits for something to be so, for instance ``lambda: api.held``."""
        async with asyncio.timeout(timeout_s), self.changed:
            await self.changed.wait_for(is_so)

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self._count += 1
        message_id = f"msg_{self._count:06d}"
        try:
            body = parse(await request.read())
            self.requests.append(body)
            await self._notify()
            self._admit(request)
            self._judge(body)
            reply = self._reply(body)
        except Refusal as refusal:
            self.refusals.append(f"{refusal.status} {refusal.kind}: {refusal}")
            return _error(refusal.status, refusal.kind, str(refusal))
        if reply.body is not None:
            return web.Response(text=reply.body, status=reply.status, content_type="text/html", headers=reply.headers)
        if reply.status != 200:
            kind = reply.error or _KINDS.get(reply.status, "api_error")
            return _error(reply.status, kind, reply.words, reply.code, dict(reply.headers))
        blocks = completed(reply, message_id)
        message = message_of(reply, blocks, message_id, body["model"], self._input_usage(body))
        if self._diagnosis is not None and "diagnostics" in body:
            message["diagnostics"] = self._diagnosis.of(body, message_id)
        if stop_reason_of(reply) == "pause_turn" and blocks:
            self._paused.add(json.dumps(_given_back(blocks[-1])))
        self.usages.append(message["usage"])
        if not body.get("stream"):
            return web.json_response(message, headers={"request-id": f"req_{self._count:06d}"})
        return await self._play(request, reply, message)

    def _admit(self, request: web.Request) -> None:
        """Key, version and beta headers. The SDK sends its key as a bearer; the documented header is x-api-key."""
        if "anthropic-beta" in request.headers:
            raise Refusal(f"Unexpected value(s) `{request.headers['anthropic-beta']}` for the `anthropic-beta` header")
        if self._is_local:
            return
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        given = request.headers.get("x-api-key") or (bearer if scheme.lower() == "bearer" else "")
        if not given:
            raise Refusal("x-api-key header is required", 401, "authentication_error")
        if self._key is not None and given != self._key:
            raise Refusal("invalid x-api-key", 401, "authentication_error")
        if "anthropic-version" not in request.headers:
            raise Refusal("anthropic-version: header is required")

    def _judge(self, body: dict[str, Any]) -> None:
        if not self._takes_marks and "cache_control" in json.dumps(body):
            raise Refusal("messages.0.content.0.text.cache_control: Extra inputs are not permitted")
        if self._diagnosis is None and "diagnostics" in body:
            raise Refusal("diagnostics: Extra inputs are not permitted")
        takes_prefill = body.get("model") in self._prefill_models
        self.notes += check(body, takes_prefill=takes_prefill, paused=self._paused)
        if not self._is_local and body["model"] not in KNOWN_MODELS:
            raise Refusal(f"model: {body['model']}", 404, "not_found_error")
        if (tokens := tokens_in(body)) > self._window_tokens:
            raise Refusal(f"prompt is too long: {tokens} tokens > {self._window_tokens} maximum")

    def _reply(self, body: dict[str, Any]) -> ModelReply:
        reply = self._brain(body)
        if isinstance(reply, str):
            reply = ModelReply.say(reply)
        if isinstance(reply, list):
            reply = ModelReply(blocks=tuple(reply))
        # Nothing is generated where nothing may be: such a request warms the cache.
        return ModelReply(stop_reason="max_tokens") if body["max_tokens"] == 0 and reply.status == 200 else reply

    def _next(self, body: dict[str, Any]) -> Reply:
        if not self._script:
            raise Refusal("the script of this double has ended")
        return self._script.popleft()

    def _input_usage(self, body: dict[str, Any]) -> dict[str, Any]:
        if self._is_local:
            return {"input_tokens": tokens_in(body)}
        return {**self._cache.account(body), "service_tier": "standard"}

    async def _play(self, request: web.Request, reply: ModelReply, message: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"content-type": "text/event-stream; charset=utf-8", "request-id": f"req_{self._count:06d}"}
        )
        await response.prepare(request)
        try:
            for number, event in enumerate(events_of(reply, message)):
                if number == reply.after_events:
                    await self._hold(reply)
                    if reply.fault is not None:
                        return await self._strike(request, response, reply)
                await self._write(response, on_wire(event, reply.is_utf16), reply.wire_bytes)
            await response.write_eof()
        except (asyncio.CancelledError, ConnectionError):
            if not self._is_closing:
                self.disconnects += 1
                await self._notify()
            raise
        return response

    async def _hold(self, reply: ModelReply) -> None:
        if reply.hold is None:
            return
        self.held += 1
        try:
            await self._notify()
            await reply.hold.wait()
        finally:
            self.held -= 1

    async def _strike(
        self, request: web.Request, response: web.StreamResponse, reply: ModelReply
    ) -> web.StreamResponse:
        if reply.fault == "cut":
            if request.transport is not None:
                request.transport.abort()
            return response
        if reply.fault == "error":
            kind = reply.error or "overloaded_error"
            data = {"type": "error", "error": {"type": kind, "message": reply.words}}
            await response.write(on_wire(("error", data)))
        if reply.fault == "garble":
            await response.write(b'event: content_block_delta\ndata: {"type": "content_block_del\n\n')
        await response.write_eof()
        return response

    @staticmethod
    async def _write(response: web.StreamResponse, data: bytes, wire_bytes: int | None) -> None:
        size = wire_bytes or len(data)
        for start in range(0, len(data), size):
            await response.write(data[start : start + size])

    async def _notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def _models(self, request: web.Request) -> web.Response:
        data = [_model_info(name) for name in KNOWN_MODELS]
        return web.json_response(
            {"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]}
        )

    async def _model(self, request: web.Request) -> web.Response:
        try:
            self._admit(request)
        except Refusal as refusal:
            return _error(refusal.status, refusal.kind, str(refusal))
        name = request.match_info["id"]
        if name not in KNOWN_MODELS:
            return _error(404, "not_found_error", f"model: {name}")
        return web.json_response(_model_info(name))


class _WallClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


def _given_back(block: dict[str, Any]) -> dict[str, Any]:
    """A block as a client sends it back."""
    form = {key: value for key, value in block.items() if key != "citations"}
    return {**form, "text": form["text"].rstrip()} if form["type"] == "text" else form


def _error(
    status: int, kind: str, words: str, code: str | None = None, headers: dict[str, str] | None = None
) -> web.Response:
    error: dict[str, Any] = {"type": kind, "message": words}
    if code:
        error["details"] = {"error_code": code}
    body = {"type": "error", "error": error, "request_id": "req_error"}
    return web.json_response(body, status=status, headers=headers)


def _model_info(name: str) -> dict[str, Any]:
    is_old = name.startswith("claude-sonnet-4-5")
    return {
        "id": name,
        "type": "model",
        "display_name": name.replace("-", " ").title(),
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "deprecated" if is_old else "active",
        "retires_at": "2026-11-30T00:00:00Z" if is_old else None,
        "max_input_tokens": 200_000,
        "max_tokens": 64_000,
    }
