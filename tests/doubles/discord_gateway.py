"""The gateway side of the double: websocket sessions that are identified, kept alive, resumed and fed with events.

Speaks zlib-stream like the real one. Faults are switches: lost acks, refused tokens and intents, dropped sockets.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

from aiohttp import WSMsgType, web

from tests.doubles.discord_world import CONTENT_INTENT, DiscordWorld

Json = dict[str, Any]

GUILD_MESSAGES, DIRECT_MESSAGES = 1 << 9, 1 << 12


class DiscordGateway:
    """One websocket endpoint; at most one session listens at a time, as one token has one shard here."""

    def __init__(self, world: DiscordWorld, token: str, notify: Callable[[], None]) -> None:
        self.world = world
        self.token = token
        self.url = ""
        self.identifies: list[Json] = []
        self.resumes: list[Json] = []
        self.heartbeats = 0
        self.is_acking = True
        self.heartbeat_interval_ms = 41_250
        self.sessions: dict[str, _Session] = {}
        self._notify = notify
        self._open: list[_Socket] = []

    @property
    def is_connected(self) -> bool:
        """Whether a session is identified and its socket is open."""
        return any(session.socket is not None for session in self.sessions.values())

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        response = web.WebSocketResponse()
        await response.prepare(request)
        socket = _Socket(response, is_compressed=request.query.get("compress") == "zlib-stream")
        self._open.append(socket)
        try:
            await socket.send({"op": 10, "d": {"heartbeat_interval": self.heartbeat_interval_ms}, "s": None, "t": None})
            async for frame in response:
                if frame.type is WSMsgType.TEXT:
                    await self._take(socket, json.loads(frame.data))
        finally:
            self._open.remove(socket)
            for session in self.sessions.values():
                if session.socket is socket:
                    session.socket = None
            self._notify()
        return response

    async def _take(self, socket: _Socket, message: Json) -> None:
        if message["op"] == 1:
            self.heartbeats += 1
            if self.is_acking:
                await socket.send({"op": 11, "d": None, "s": None, "t": None})
        elif message["op"] == 2:
            await self._identify(socket, message["d"])
        elif message["op"] == 6:
            await self._resume(socket, message["d"])
        self._notify()

    async def _identify(self, socket: _Socket, asked: Json) -> None:
        self.identifies.append(asked)
        if asked["token"] != self.token:
            await socket.close(4004)
            return
        if asked["intents"] & CONTENT_INTENT and not self.world.is_content_allowed:
            await socket.close(4014)
            return
        session = _Session(self.world.snowflake(), asked["intents"], socket)
        self.sessions = {session.id: session}
        await session.send(
            "READY",
            {
                "v": 10,
                "user": self.world.bot,
                "guilds": [{"id": self.world.guild_id, "unavailable": True}],
                "session_id": session.id,
                "resume_gateway_url": self.url,
                "shard": [0, 1],
                "application": {"id": self.world.application_id, "flags": 0},
                "private_channels": [],
            },
        )
        await session.send("GUILD_CREATE", self.world.guild())

    async def _resume(self, socket: _Socket, asked: Json) -> None:
        self.resumes.append(asked)
        session = self.sessions.get(asked["session_id"])
        if session is None or asked["token"] != self.token:
            await socket.send({"op": 9, "d": False, "s": None, "t": None})
            return
        session.socket = socket
        for frame in session.log:
            if frame["s"] > (asked["seq"] or 0):
                await socket.send(frame)
        await session.send("RESUMED", {})

    async def message(self, event: str, post: Json) -> None:
        """Tells sessions that asked for it about a message, each in the form that its intents allow."""
        is_guild = "guild_id" in self.world.channels[post["channel_id"]]
        for session in self.sessions.values():
            if session.intents & (GUILD_MESSAGES if is_guild else DIRECT_MESSAGES):
                await session.send(event, self.world.event(post, session.intents))
        self._notify()

    async def dispatch(self, event: str, data: Any) -> None:
        """Sends any event as it stands, also a malformed one."""
        for session in self.sessions.values():
            await session.send(event, data)
        self._notify()

    async def drop(self) -> None:
        """Cuts every connection without a closing word, as a failing network does."""
        for socket in list(self._open):
            socket.abort()

    async def order(self, op: int, data: Any = None) -> None:
        """Op 7 asks the client to reconnect, op 9 says that the session is invalid (`data`: may it resume)."""
        if op == 9 and not data:
            self.sessions.clear()
        for socket in list(self._open):
            await socket.send({"op": op, "d": data, "s": None, "t": None})


class _Socket:
    def __init__(self, response: web.WebSocketResponse, *, is_compressed: bool) -> None:
        self._response = response
        self._deflate = zlib.compressobj() if is_compressed else None

    async def send(self, frame: Json) -> None:
        text = json.dumps(frame)
        try:
            if self._deflate is None:
                await self._response.send_str(text)
            else:
                data = self._deflate.compress(text.encode()) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
                await self._response.send_bytes(data)
        except ConnectionError:
            pass  # the other side has gone; what was sent stays in the log for its resume

    async def close(self, code: int) -> None:
        await self._response.close(code=code)

    def abort(self) -> None:
        transport = self._response._req.transport if self._response._req is not None else None
        if transport is not None:
            transport.abort()


class _Session:
    def __init__(self, session_id: str, intents: int, socket: _Socket) -> None:
        self.id = session_id
        self.intents = intents
        self.socket: _Socket | None = socket
        self.log: list[Json] = []

    async def send(self, event: str, data: Any) -> None:
        frame = {"op": 0, "t": event, "s": len(self.log) + 1, "d": data}
        self.log.append(json.loads(json.dumps(frame)))
        if self.socket is not None:
            await self.socket.send(frame)
