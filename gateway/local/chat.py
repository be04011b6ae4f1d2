"""Shows a conversation of a running gateway, and sends typed text to it: `mneme chat`.

If the gateway stops, the chat waits until it runs again, and reconnects.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.terminal.adapter import HISTORY_FILE, is_exit, save_file
from adapters.terminal.local import MAX_LINE_BYTES
from adapters.terminal.pipe import TerminalPipe
from core.errors import ConfigError
from core.ports import Reply
from core.types import Answer, Button, Command, File
from gateway.local.sockets import find_socket
from gateway.texts.catalog import SHELL as texts

if TYPE_CHECKING:
    from adapters.terminal.screen import TerminalScreen

Json = dict[str, Any]
# The interval between attempts to restore a lost connection.
RETRY_S = 0.3
# A gateway that has just started opens its socket within this time.
START_TIMEOUT_S = 15.0
COMPLETION_TIMEOUT_S = 1.0


class LocalChat:
    """A chat session with the gateway that runs in this home."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._socket = find_socket(home, "chat")
        self._writer: asyncio.StreamWriter | None = None
        self._connected = asyncio.Event()
        # Set when the running message is answered, or when the connection is lost.
        self._done = asyncio.Event()
        self._is_incognito = False
        # The name of the conversation, to join it again after a lost connection.
        self._chat = ""
        self._replies: dict[int, Reply] = {}
        self._texts: dict[int, str] = {}
        self._completions: dict[str, asyncio.Future[Json]] = {}
        self._is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self._screen: TerminalPipe | TerminalScreen = self._create_screen()

    def _create_screen(self) -> TerminalPipe | TerminalScreen:
        """Return a prompt for a person, or a pipe if a program uses the chat."""
        save = partial(save_file, self._home, word=texts.word)
        if not self._is_terminal:
            return TerminalPipe(sys.stdin, sys.stdout, save, texts.word)
        from adapters.terminal.screen import TerminalScreen

        return TerminalScreen(
            sys.stdin,
            sys.stdout,
            self._home / HISTORY_FILE,
            save,
            lambda: self._is_incognito,
            texts.word,
        )

    async def run(self) -> None:
        """Chat until the person leaves or the input ends.

        Raises ConfigError if the running process doesn't serve chats. If a program uses the chat,
        it's also raised when the gateway stops.
        """
        reader = await self._connect(START_TIMEOUT_S)
        if reader is None:
            raise ConfigError(texts.RUNS_ALREADY.format(home=self._home))
        welcome = json.loads(await reader.readline())
        self._chat = welcome["chat"]
        self._connected.set()
        self._screen.welcome(dict(welcome["commands"]), welcome["greeting"], self._complete)
        listening = asyncio.create_task(self._listen(reader))
        conversation = asyncio.create_task(self._converse())
        try:
            await asyncio.wait([listening, conversation], return_when=asyncio.FIRST_COMPLETED)
            for task in (listening, conversation):
                if task.done():
                    task.result()
        finally:
            listening.cancel()
            conversation.cancel()
            await asyncio.gather(listening, conversation, return_exceptions=True)
            if self._writer is not None:
                self._writer.close()

    async def _converse(self) -> None:
        """Read messages from the screen and send them one by one."""
        while (text := await self._screen.read_message()) is not None:
            if is_exit(text):
                return
            await self._connected.wait()
            self._done.clear()
            self._send({"type": "message", "text": text})
            has_left = await self._screen.wait_for_answer(self._done.wait(), self._stop)
            if has_left:
                return

    async def _stop(self) -> None:
        self._send({"type": "stop"})

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """Handle messages from the gateway. Reconnect when the connection is lost.

        Raises ConfigError instead if a program uses the chat, because a program can't wait.
        """
        while True:
            with contextlib.suppress(OSError, ValueError):
                while line := await reader.readline():
                    await self._handle(json.loads(line))
            self._connected.clear()
            await self._abandon_replies()
            if not self._is_terminal:
                raise ConfigError(texts.CHAT_LOST)
            await self._print(texts.CHAT_LOST)
            self._done.set()
            new_reader = await self._connect(None)
            assert new_reader is not None
            reader = new_reader
            await reader.readline()
            self._send({"type": "join", "chat": self._chat})
            self._connected.set()
            await self._print(texts.CHAT_BACK)

    async def _connect(self, timeout_s: float | None) -> asyncio.StreamReader | None:
        """Connect to the gateway. Retry until it succeeds or `timeout_s` has passed.

        Returns None after that.
        """
        loop = asyncio.get_running_loop()
        end = None if timeout_s is None else loop.time() + timeout_s
        while True:
            try:
                reader, self._writer = await asyncio.open_unix_connection(
                    self._socket, limit=MAX_LINE_BYTES
                )
            except OSError:
                if end is not None and loop.time() > end:
                    return None
                await asyncio.sleep(RETRY_S)
            else:
                return reader

    def _send(self, message: Json) -> None:
        if self._writer is not None:
            self._writer.write(json.dumps(message).encode() + b"\n")

    async def _handle(self, message: Json) -> None:
        """Handle one message of the gateway."""
        match message["type"]:
            case "begin":
                self._reply(message["id"])
            case "show" | "more":
                self._show(message)
            case "answer":
                await self._finish(message)
            case "abandon":
                reply = self._replies.pop(message["id"], None)
                if reply is not None:
                    await reply.abandon()
            case "tools":
                self._screen.show_tools(message["names"])
            case "chat":
                # After a restart, another terminal may have this client's conversation.
                if message["chat"] != self._chat:
                    self._chat = message["chat"]
                    await self._print(message["greeting"])
            case "done":
                self._is_incognito = message["incognito"]
                self._done.set()
            case "completions":
                waiting = self._completions.pop(message["text"], None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(message["values"])

    def _reply(self, reply_id: int) -> Reply:
        """Return the reply with this id. Begin it if it's new."""
        reply = self._replies.get(reply_id)
        if reply is None:
            reply = self._begin_reply()
            self._replies[reply_id] = reply
        return reply

    def _begin_reply(self) -> Reply:
        """Begin a reply on the screen that isn't recorded in a store."""
        # Imported here because it takes a while, and the prompt doesn't need it.
        from gateway.delivery import PostedRecord

        reply = self._screen.reply()
        reply.begin(PostedRecord(""))
        return reply

    def _show(self, message: Json) -> None:
        reply_id = message["id"]
        before = self._texts.get(reply_id, "") if message["type"] == "more" else ""
        self._texts[reply_id] = before + message["text"]
        self._reply(reply_id).show(self._texts[reply_id])

    async def _finish(self, message: Json) -> None:
        """Show a finished answer, and confirm to the gateway that it was shown."""
        buttons = tuple(
            Button(label=label, command=Command(name=name, arguments=arguments))
            for label, name, arguments in message["buttons"]
        )
        files = tuple(
            File(name=name, content=base64.b64decode(content)) for name, content in message["files"]
        )
        reply = self._reply(message["id"])
        await reply.finish(Answer(text=message["text"], buttons=buttons, files=files))
        self._replies.pop(message["id"], None)
        self._texts.pop(message["id"], None)
        self._send({"type": "shown", "id": message["id"]})

    async def _abandon_replies(self) -> None:
        for reply in self._replies.values():
            await reply.abandon()
        self._replies.clear()
        self._texts.clear()

    async def _print(self, text: str) -> None:
        reply = self._begin_reply()
        await reply.finish(Answer(text=text))

    async def _complete(self, text: str) -> Json:
        """Return completions for the option that is being typed, with their labels."""
        if not self._connected.is_set():
            return {}
        waiting: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._completions[text] = waiting
        self._send({"type": "complete", "text": text})
        try:
            async with asyncio.timeout(COMPLETION_TIMEOUT_S):
                return await waiting
        except TimeoutError:
            return {}
        finally:
            self._completions.pop(text, None)
