"""Lets `mneme chat` talk to a running gateway over a socket that only the owner can open.

The two sides exchange JSON objects, one per line. A client sends messages, stops answers and
requests completions. The gateway sends the output of replies. A finished answer counts as delivered
when the client confirms that it has shown the answer. Otherwise the answer waits for the next
client.

Clients that are connected at the same time have separate conversations. The greeting describes and
names the client's conversation ("chat"). After a lost connection, a client joins its conversation
again. If another terminal has it open meanwhile, the client gets a new one, which it's told. A
message may name another conversation, as messages from the page do.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from adapters.terminal.adapter import (
    ADDRESS,
    SECOND_ADDRESS,
    Terminal,
    describe_commands,
    make_inbound,
)
from core.errors import DeliveryError, StoreError
from core.menus.command_specs import CommandSpec
from core.ports import Autocompleter, Clock, DeliveryRecord, InboundSink, Reply
from core.text.normalize import language_data
from core.types import Address, Answer

Json = dict[str, Any]
# The maximum length of a line, which may contain a message or the file of an answer.
MAX_LINE_BYTES = 64 * 2**20
# How long a client may take to show an answer.
CONFIRM_TIMEOUT_S = 20.0
# The pause before a message is admitted again if the store wasn't available.
RETRY_DELAY_S = 1.0
_NO_CLIENT = "no terminal is connected"
# The conversations of clients: "local", "chat", "chat-2", "chat-3" and so on.
_CHAT_ID = re.compile(rf"{ADDRESS.chat_id}|{SECOND_ADDRESS.chat_id}(-[1-9]\d{{0,3}})?")


class LocalTerminals:
    """The terminal as a platform: clients on a socket, and optionally the terminal of this process.

    Each of them has a separate conversation. If this process has no terminal, the first client uses
    the conversation that its terminal would have. `greet` returns the line that greets a person in
    a conversation. `connected` is set whenever a client connects.
    """

    platform = "terminal"
    problem = contact = ""
    accepted_at = 0.0
    hint = language_data("hints", "adapters")["terminal"]

    def __init__(
        self,
        socket: Path,
        clock: Clock,
        greet: Callable[[Address], Awaitable[str]],
        is_incognito: Callable[[Address], bool],
        foreground: Terminal | None = None,
        language: str = "",
    ) -> None:
        self.foreground = foreground
        self._language = language
        self.connected = asyncio.Event()
        self._socket = socket
        self._clock = clock
        self._greet = greet
        self._is_incognito = is_incognito
        self._clients: list[_Client] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Open the terminal of this process, if there is one."""
        if self.foreground is not None:
            await self.foreground.open()

    async def listen(self, sink: InboundSink, commands: Sequence[CommandSpec]) -> None:
        """Serve clients until the input of this process's terminal ends, or until cancelled."""

        def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._serve(reader, writer, sink, commands))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        # This process has the lock of the home, so an old socket belongs to no running process.
        self._socket.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(connect, self._socket, limit=MAX_LINE_BYTES)
        os.chmod(self._socket, 0o600)
        try:
            if self.foreground is not None:
                await self.foreground.listen(sink, commands)
            else:
                await asyncio.Future()
        finally:
            server.close()
            self._socket.unlink(missing_ok=True)

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        """Reply in the terminal of this process, if it has one and no client uses the conversation.

        If this process has no terminal, clients also show answers that waited for an earlier
        terminal.
        """
        if self.foreground is None:
            return _LocalReply(lambda: self._find_client(address) or self._find_client())
        if address == ADDRESS or self._find_client(address) is None:
            return self.foreground.reply(address, reply_to)
        return _LocalReply(lambda: self._find_client(address))

    def show_tools(self, address: Address, names: Sequence[str]) -> None:
        """Show which tools are running for the conversation at this address."""
        if self.foreground is not None and address == ADDRESS:
            self.foreground.show_tools(names)
        for client in self._clients:
            if client.address == address:
                client.send({"type": "tools", "names": list(names)})

    async def close(self) -> None:
        """Disconnect all clients."""
        for client in list(self._clients):
            client.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _find_client(self, address: Address | None = None) -> _Client | None:
        """Return the client that connected last.

        If an address is given, only clients with this conversation count. Returns None if there is
        no such client.
        """
        clients = [client for client in self._clients if address in (None, client.address)]
        return clients[-1] if clients else None

    def _find_free_address(self) -> Address:
        """Return the address of the first conversation that no other terminal has open."""
        used = {client.address for client in self._clients if not client.is_page}
        if self.foreground is None and ADDRESS not in used:
            return ADDRESS
        if SECOND_ADDRESS not in used:
            return SECOND_ADDRESS
        further = (_make_address(f"{SECOND_ADDRESS.chat_id}-{number}") for number in count(2))
        return next(address for address in further if address not in used)

    async def _serve(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        sink: InboundSink,
        commands: Sequence[CommandSpec],
    ) -> None:
        """Serve one client until it disconnects."""
        client = _Client(writer, self._find_free_address())
        self._clients.append(client)
        client.send(
            {
                "type": "welcome",
                "chat": client.address.chat_id,
                "greeting": await self._greet(client.address),
                "commands": list(describe_commands(commands, self._language).items()),
            }
        )
        self.connected.set()
        try:
            while line := await reader.readline():
                await self._handle(json.loads(line), client, sink)
        except (ValueError, OSError, KeyError, TypeError):
            # The line is too long or isn't a JSON object, so the client isn't `mneme chat`.
            pass
        finally:
            self._clients.remove(client)
            client.close()

    async def _handle(self, message: Json, client: _Client, sink: InboundSink) -> None:
        """Handle one message of a client according to its type."""
        match message["type"]:
            case "join":
                await self._join(client, _make_address(str(message["chat"])))
            case "message" | "stop":
                client.is_settled = True
                text = "/stop" if message["type"] == "stop" else str(message["text"])
                if "chat" in message:
                    client.address = _make_address(str(message["chat"]))
                    client.is_page = True
                task = asyncio.create_task(self._answer(text, client, sink))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            case "complete":
                values = await self._complete(str(message["text"]), client.address, sink)
                client.send({"type": "completions", "text": message["text"], "values": values})
            case "shown":
                client.confirm(int(message["id"]))

    async def _join(self, client: _Client, address: Address) -> None:
        """Let a client that has reconnected go on with its conversation.

        A client that hasn't said anything yet gives the conversation up. If another terminal uses
        it, the client keeps the free conversation that it got when it connected.
        """
        others = [other for other in self._clients if other is not client and not other.is_page]
        holder = next((other for other in others if other.address == address), None)
        is_taken = self.foreground is not None and address == ADDRESS
        if holder is not None and holder.is_settled:
            is_taken = True
        client.is_settled = True
        if not is_taken:
            if holder is not None:
                holder.address = client.address
                await self._name_conversation(holder)
            client.address = address
        await self._name_conversation(client)

    async def _name_conversation(self, client: _Client) -> None:
        """Tell a client which conversation it has now."""
        greeting = await self._greet(client.address)
        client.send({"type": "chat", "chat": client.address.chat_id, "greeting": greeting})

    async def _answer(self, text: str, client: _Client, sink: InboundSink) -> None:
        """Admit a message, wait until it's answered, and then inform the client."""
        inbound = make_inbound(text, self._clock, self._language, client.address)
        address = inbound.address
        reply = _LocalReply(
            lambda: client if client.is_open else self._find_client(address) or self._find_client()
        )
        while True:
            try:
                entry_id = await sink.admit(inbound, reply)
                break
            except StoreError:
                await asyncio.sleep(RETRY_DELAY_S)
        if entry_id is not None:
            await sink.serve(entry_id)
        client.send({"type": "done", "incognito": self._is_incognito(inbound.address)})

    async def _complete(self, text: str, address: Address, sink: InboundSink) -> Mapping[str, str]:
        """Return the possible values for an option of a command, with their labels."""
        inbound = make_inbound(text, self._clock, self._language, address)
        if inbound.command is None or not isinstance(sink, Autocompleter):
            return {}
        try:
            return await sink.autocomplete(inbound, inbound.command.arguments)
        except StoreError:
            # Without the store, there are no suggestions.
            return {}


def _make_address(chat_id: str) -> Address:
    """Return the address of a client's conversation. Raises ValueError if the id is invalid."""
    if not _CHAT_ID.fullmatch(chat_id):
        raise ValueError(chat_id)
    return Address(platform=ADDRESS.platform, chat_id=chat_id)


class _Client:
    """A connected `mneme chat`."""

    def __init__(self, writer: asyncio.StreamWriter, address: Address) -> None:
        self.is_open = True
        # The conversation of the client.
        self.address = address
        # Whether the client has spoken in its conversation, or has joined it again.
        self.is_settled = False
        # The page connects for a single message. A terminal may have the same conversation open.
        self.is_page = False
        self._writer = writer
        self._confirmations: dict[int, asyncio.Future[None]] = {}

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message. Does nothing if the connection is lost."""
        if self.is_open:
            self._writer.write(json.dumps(message).encode() + b"\n")

    async def deliver(self, message: Mapping[str, Any], reply_id: int) -> None:
        """Send an answer, and wait until it's shown. Raises DeliveryError if it isn't shown."""
        confirmation: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._confirmations[reply_id] = confirmation
        self.send(message)
        try:
            async with asyncio.timeout(CONFIRM_TIMEOUT_S):
                await confirmation
        except (TimeoutError, ConnectionError) as error:
            raise DeliveryError(_NO_CLIENT, is_unreachable=True) from error
        finally:
            self._confirmations.pop(reply_id, None)

    def confirm(self, reply_id: int) -> None:
        confirmation = self._confirmations.get(reply_id)
        if confirmation is not None and not confirmation.done():
            confirmation.set_result(None)

    def close(self) -> None:
        self.is_open = False
        for confirmation in self._confirmations.values():
            if not confirmation.done():
                confirmation.set_exception(ConnectionError())
        with contextlib.suppress(OSError):
            self._writer.close()


class _LocalReply:
    """A `Reply` that a client shows. `find_client` returns the client, or None if there is none."""

    def __init__(self, find_client: Callable[[], _Client | None]) -> None:
        self._find_client = find_client
        self._id = id(self)
        self._text = ""

    def begin(self, record: DeliveryRecord) -> None:
        self._send({"type": "begin", "id": self._id})

    def show(self, text: str) -> None:
        """Send the text so far, or only the part that is new."""
        if text.startswith(self._text) and self._text:
            part = {"type": "more", "id": self._id, "text": text[len(self._text) :]}
        else:
            part = {"type": "show", "id": self._id, "text": text}
        self._text = text
        self._send(part)

    async def finish(self, answer: Answer) -> None:
        client = self._find_client()
        if client is None:
            raise DeliveryError(_NO_CLIENT, is_unreachable=True)
        buttons = [
            [button.label, button.command.name, button.command.arguments]
            for button in answer.buttons
        ]
        files = [[file.name, base64.b64encode(file.content).decode()] for file in answer.files]
        message = {
            "type": "answer",
            "id": self._id,
            "text": answer.text,
            "buttons": buttons,
            "files": files,
        }
        await client.deliver(message, self._id)

    async def abandon(self, *, is_withdrawn: bool = False) -> None:
        self._send({"type": "abandon", "id": self._id})

    def _send(self, message: Mapping[str, Any]) -> None:
        client = self._find_client()
        if client is not None:
            client.send(message)
