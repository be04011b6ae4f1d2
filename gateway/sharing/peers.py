"""Passes events from the front to the gateway that works on their chat, over a socket in the home.

Both sides exchange JSON objects, one per line, in order. An event counts as admitted when the other
gateway has stored it. Its text isn't stored on the way, so incognito chats stay incognito. If the
connection is lost, the other gateway answers the events that it has admitted so far.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import structlog

from core.errors import PAYLOAD_ERRORS, DeliveryError, MnemeError, StoreError
from core.ports import InboundSink, SharedAdapter
from core.store.rows import dump_inbound, load_inbound
from core.types import Inbound

Json = dict[str, Any]
# How long a gateway may take to store an event.
ADMIT_TIMEOUT_S = 10.0
# The maximum length of a line, which contains a whole event.
MAX_LINE_BYTES = 8 * 2**20
_log = structlog.get_logger("sharing")


class PeerLostError(Exception):
    """The connection to another gateway is lost, so the event may not be stored."""


class EventServer:
    """Admits the events that the front passes to this gateway.

    `adapters` are the platforms on which this gateway can answer. While `is_leaving` returns True,
    events are only stored, and the gateway that takes over the chats answers them. `on_chat` is
    called with each event before it's admitted.
    """

    def __init__(
        self,
        path: Path,
        sink: InboundSink,
        adapters: Mapping[str, SharedAdapter],
        is_leaving: Callable[[], bool],
        on_chat: Callable[[Inbound], None],
    ) -> None:
        self._path = path
        self._sink = sink
        self._adapters = adapters
        self._is_leaving = is_leaving
        self._on_chat = on_chat

    async def run(self) -> None:
        """Admit events until cancelled."""
        self._path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(
            self._serve_front, self._path, limit=MAX_LINE_BYTES
        )
        os.chmod(self._path, 0o600)
        try:
            await asyncio.Future()
        finally:
            server.close()
            self._path.unlink(missing_ok=True)

    async def _serve_front(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Handle the lines of the front until it disconnects."""
        admitted: list[int] = []
        try:
            while line := await reader.readline():
                request: Json = json.loads(line)
                if "serve" in request:
                    admitted.remove(request["serve"])
                    self._serve(request["serve"])
                    continue
                answer = await self._admit(request["admit"])
                if answer.get("entry") is not None:
                    admitted.append(answer["entry"])
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError, LookupError) as error:
            _log.warning("the connection of the front failed", error=type(error).__name__)
        finally:
            for entry_id in admitted:
                self._serve(entry_id)
            with contextlib.suppress(OSError):
                writer.close()

    async def _admit(self, encoded: str) -> Json:
        """Admit an event, and return its entry's id or the error for the front."""
        try:
            inbound = load_inbound(encoded)
            self._on_chat(inbound)
            reply = self._adapters[inbound.address.platform].reply_to_event(inbound)
            return {"entry": await self._sink.admit(inbound, reply)}
        except StoreError as error:
            return {"store_error": str(error)}
        except (MnemeError, RuntimeError, OSError, *PAYLOAD_ERRORS) as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def _serve(self, entry_id: int) -> None:
        """Answer an admitted event, unless this gateway is about to end."""
        if not self._is_leaving():
            # The awaitable only says when the event is answered.
            task = asyncio.ensure_future(self._sink.serve(entry_id))
            task.add_done_callback(lambda _: None)


class Peer:
    """The front's connection to another gateway. `on_lost` is called when it's lost."""

    def __init__(
        self,
        number: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_lost: Callable[[], None],
    ) -> None:
        self.number = number
        self.is_lost = False
        self._reader = reader
        self._writer = writer
        self._on_lost = on_lost
        # The requests that weren't answered yet, oldest first.
        self._requests: deque[asyncio.Future[Json]] = deque()
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, number: int, path: Path, on_lost: Callable[[], None]) -> Peer:
        """Connect to a gateway. Raises OSError if no process listens on its socket."""
        reader, writer = await asyncio.open_unix_connection(path, limit=MAX_LINE_BYTES)
        return cls(number, reader, writer, on_lost)

    async def _read(self) -> None:
        """Read answers until the connection ends."""
        try:
            while line := await self._reader.readline():
                request = self._requests.popleft()
                if not request.done():
                    request.set_result(json.loads(line))
        except (OSError, ValueError, IndexError) as error:
            _log.warning("a gateway's answer is unreadable", error=type(error).__name__)
        finally:
            self.is_lost = True
            self._writer.close()
            for request in self._requests:
                if not request.done():
                    request.set_exception(PeerLostError())
            self._requests.clear()
            self._on_lost()

    async def admit(self, inbound: Inbound) -> int | None:
        """Let the gateway store an event, and return the id of the inbox entry.

        Raises PeerLostError if the connection is lost. Raises StoreError if the event isn't stored
        in time, and DeliveryError if the event can't be handled.
        """
        if self.is_lost:
            raise PeerLostError
        request: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._requests.append(request)
        self._send({"admit": dump_inbound(inbound)})
        try:
            async with asyncio.timeout(ADMIT_TIMEOUT_S):
                answer = await request
        except TimeoutError as error:
            # A late answer would be taken for the answer to another request.
            self.close()
            raise StoreError("another gateway hasn't stored the event in time") from error
        if "store_error" in answer:
            raise StoreError(answer["store_error"])
        if "error" in answer:
            raise DeliveryError(answer["error"])
        return None if answer["entry"] is None else int(answer["entry"])

    def serve(self, entry_id: int) -> None:
        """Let the gateway answer an event that it has admitted."""
        self._send({"serve": entry_id})

    def _send(self, request: Json) -> None:
        if not self.is_lost:
            self._writer.write(json.dumps(request).encode() + b"\n")

    def close(self) -> None:
        """End the connection."""
        self._task.cancel()
