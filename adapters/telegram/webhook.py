"""Receives updates by a webhook: an HTTP server to which Telegram sends each update.

A proxy with a certificate for the public address forwards Telegram's requests to this server. Each
request has the secret token that was given to Telegram. Requests without it are refused. A request
is confirmed only after its update is stored, so Telegram repeats an update that couldn't be stored.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from core.errors import ConfigError
from core.types import Json

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"
# This many update ids are remembered. If an update arrives again, it's only confirmed.
MAX_KNOWN_UPDATES = 1000
MAX_BODY_BYTES = 4_000_000

_log = structlog.get_logger(__name__)

# A function that admits the updates with these ids, and returns the ids that Telegram must send
# again.
Receive = Callable[[Mapping[int, Json]], Awaitable[set[int]]]


class WebhookServer:
    """The webhook server of one process. Each process generates its own `secret`."""

    def __init__(self, receive: Receive) -> None:
        self.secret = secrets.token_urlsafe(32)
        self._receive = receive
        self._known_ids: deque[int] = deque(maxlen=MAX_KNOWN_UPDATES)
        # Updates are admitted one by one, in the order in which they arrive.
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def listen(self, url: str, address: str) -> AsyncIterator[None]:
        """Serve the path of `url` at an address such as ``127.0.0.1:8443``.

        Raises ConfigError if the address can't be used.
        """
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_post(urlsplit(url).path or "/", self._handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        host, _, port = address.rpartition(":")
        try:
            await web.TCPSite(runner, host.strip("[]"), int(port)).start()
        except OSError as error:
            await runner.cleanup()
            reason = error.strerror or str(error)
            raise ConfigError("webhook_port_refused", address=address, reason=reason) from error
        try:
            yield
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        """Admit one update, and confirm the request if the update is stored."""
        token = request.headers.get(SECRET_HEADER, "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(token, self.secret.encode()):
            _log.warning("telegram.webhook_refused", reason="the secret token is wrong")
            return web.Response(status=HTTPStatus.FORBIDDEN)
        try:
            raw = await request.json()
            update_id = int(raw["update_id"])
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
            _log.warning("telegram.webhook_refused", reason="it isn't an update")
            return web.Response(status=HTTPStatus.BAD_REQUEST)
        async with self._lock:
            if update_id not in self._known_ids:
                if await self._receive({update_id: raw}):
                    return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE)
                self._known_ids.append(update_id)
        return web.Response()
