"""Continues a conversation on the page "Chat", over the same socket as `mneme chat`.

Its messages count as the owner's messages from the terminal of this machine. The page itself
doesn't process them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import mimetypes
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass

from adapters.terminal.adapter import ADDRESS
from adapters.terminal.local import MAX_LINE_BYTES
from core.errors import Refused
from core.types import Answer, File, Json
from gateway.local.sockets import find_socket
from gateway.sharing.home_lock import is_running
from gateway.web.conversations import FileLink, make_lines
from gateway.web.logins import Login, keep_file
from gateway.web.rendering import render_markdown
from gateway.web.views import (
    Page,
    PageRequest,
    Values,
    View,
    is_number,
    is_picture,
    read_field,
)

# If there are earlier messages, a link shows them, so that the field for the next message is
# visible.
MESSAGES_SHOWN = 6
_LAST_ID = 2**62


@dataclass(frozen=True, slots=True)
class ChatEvent:
    """An update while a message is being answered.

    `kind` is "text" for the answer so far, "answer" for the complete answer in Markdown, "refused"
    for the reason why the message wasn't sent, or "tools".
    """

    kind: str
    text: str
    reply: int = 0
    # The labels of buttons, and what they type.
    buttons: tuple[tuple[str, str], ...] = ()
    files: tuple[File, ...] = ()


async def load_chat(request: PageRequest) -> Values | None:
    """Return the latest messages of the terminal's conversation, or of another one to continue.

    Returns None for people other than the owner.
    """
    if not request.context.is_owner:
        return None
    conversations = request.services.conversations
    session = await conversations.find_open(ADDRESS)
    resumed = None
    if number := request.number("session"):
        resumed = await conversations.find(number, request.scopes)
        if resumed is not None and session is not None and resumed.id == session.id:
            resumed = None
    conversation = resumed or session
    messages = []
    if conversation is not None:
        messages = await conversations.load_transcript_page(
            conversation.id, request.scopes, _LAST_ID, MESSAGES_SHOWN + 1, is_later=False
        )
    return {
        "session": conversation,
        "resumed": resumed,
        "terminal": session,
        "has_earlier": len(messages) > MESSAGES_SHOWN,
        "lines": await make_lines(request, messages[-MESSAGES_SHOWN:]),
        "is_answered": await asyncio.to_thread(is_running, request.services.settings.home),
    }


async def send_message(request: PageRequest, form: Mapping[str, str]) -> AsyncIterator[ChatEvent]:
    """Send a message to the running gateway, and yield its updates.

    If the form names a conversation, that conversation is continued first. Raises Refused for
    people other than the owner, and if no gateway is running.
    """
    if not request.context.is_owner:
        raise Refused(request.words["NOT_FOUND"])
    text = read_field(request, form, "text")
    try:
        async with _connect(request) as client:
            if is_number(form.get("session", "")):
                async for _ in client.send(f"/sessions {form['session']}"):
                    pass
            async for event in client.send(text):
                yield event
    except (OSError, ValueError, KeyError) as error:
        raise Refused(request.words["NOT_RUNNING"]) from error


@asynccontextmanager
async def _connect(request: PageRequest) -> AsyncIterator[_ChatClient]:
    """Connect to the socket of the running gateway."""
    socket = find_socket(request.services.settings.home, "chat")
    reader, writer = await asyncio.open_unix_connection(socket, limit=MAX_LINE_BYTES)
    try:
        # The gateway greets each client.
        await reader.readline()
        yield _ChatClient(reader, writer)
    finally:
        writer.close()


class _ChatClient:
    """A connection to the chat socket.

    Its messages are described in `adapters/terminal/local.py`.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        # The answers so far, by the ids of their replies.
        self._texts: dict[int, str] = {}

    async def send(self, text: str) -> AsyncIterator[ChatEvent]:
        """Send a message, and yield updates until it's answered."""
        self._write({"type": "message", "text": text, "chat": ADDRESS.chat_id})
        while line := await self._reader.readline():
            message = json.loads(line)
            if message["type"] == "done":
                return
            event = self._read(message)
            if event is not None:
                yield event
        raise OSError("the connection was lost")

    def _read(self, message: Json) -> ChatEvent | None:
        """Convert a message of the gateway to an update. A complete answer is confirmed."""
        match message["type"]:
            case "show" | "more":
                reply = message["id"]
                before = self._texts.get(reply, "") if message["type"] == "more" else ""
                self._texts[reply] = before + message["text"]
                return ChatEvent("text", self._texts[reply], reply)
            case "answer":
                self._write({"type": "shown", "id": message["id"]})
                buttons = tuple(
                    (label, f"/{name} {arguments}".rstrip())
                    for label, name, arguments in message["buttons"]
                )
                files = tuple(_read_file(*file) for file in message["files"])
                return ChatEvent("answer", message["text"], message["id"], buttons, files)
            case "tools":
                return ChatEvent("tools", ", ".join(message["names"]))
        return None

    def _write(self, message: Json) -> None:
        self._writer.write(json.dumps(message).encode() + b"\n")


def _read_file(name: str, encoded: str) -> File:
    """Return a file of an answer. Its media type is guessed from its name."""
    media_type, _ = mimetypes.guess_type(name)
    content = base64.b64decode(encoded)
    return File(name=name, content=content, mime=media_type or "application/octet-stream")


async def load_sent_file(request: PageRequest) -> File | None:
    """Return a file that was attached to an answer on this page, or None if it's gone."""
    return request.login.files.get(request.parameter("file"))


def link_files(login: Login, files: Sequence[File]) -> list[FileLink]:
    """Store the files of an answer, and return links to them."""
    return [
        FileLink(f"/chat/files/{keep_file(login, file)}", file.name, is_picture(file.mime))
        for file in files
    ]


def format_event(event: ChatEvent, login: Login) -> bytes:
    """Return an update of the chat as a JSON line. A complete answer is rendered as HTML."""
    is_rendered = event.kind in ("answer", "refused")
    line = {
        "kind": event.kind,
        "reply": event.reply,
        "text": "" if is_rendered else event.text,
        "html": str(render_markdown(event.text)) if is_rendered else "",
        "buttons": event.buttons,
        "files": [asdict(link) for link in link_files(login, event.files)],
    }
    return json.dumps(line).encode() + b"\n"


async def wait_for_answer(events: AsyncIterator[ChatEvent]) -> Answer | None:
    """Wait until a message is answered. Returns the answer only if it has files.

    Other answers are shown as part of the conversation.
    """
    answer = None
    async for event in events:
        if event.files:
            answer = Answer(text=event.text, files=event.files)
    return answer


PAGE = Page(
    "chat",
    views=(
        View("/chat", "chat.html", load_chat),
        View("/chat/files/{file}", "", load_sent_file),
    ),
)
