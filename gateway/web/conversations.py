"""Lists conversations and shows transcripts on the page "Conversations".

Also renames and forgets.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time

from core.dates.schedule import resolve_wall_time
from core.errors import Refused
from core.store.media.files import AttachedFile
from core.store.query import Hit, ResultLimits, SearchQuery
from core.types import Answer, File, Message, Session
from gateway.commands.sessions import set_title
from gateway.texts.catalog import Texts
from gateway.web.rendering import measure_html, render_markdown, render_said, shorten_attachments
from gateway.web.views import (
    Action,
    Page,
    PageRequest,
    Values,
    View,
    is_number,
    is_picture,
    read_field,
    run_command,
)

SESSIONS_PER_PAGE = 30
MESSAGES_PER_PAGE = 40
# The message in the address is shown after this many earlier ones.
MESSAGES_BEFORE = 10
# A longer message is cut, and a separate page shows the whole message.
MAX_MESSAGE_CHARS = 3_000
MAX_CALL_CHARS = 2_000
# All calls of a message together. Each is shown to its share of that.
MAX_CALLS_CHARS = 8_000
# A page ends before its messages have more bytes of HTML.
MAX_LINES_BYTES = 100_000
# What a message, a call and a file have besides their texts.
FRAME_BYTES = 500
# A complete message is shown in parts of so many characters.
WHOLE_CHARS = 25_000
MAX_HITS = 20
MAX_QUOTE_CHARS = 300
VIEW_TYPE = "image/jpeg"
SAVED_TYPE = "application/octet-stream"
_LAST_ID = 2**62
_MONTH = re.compile(r"(19[7-9]\d|2\d{3})-(0[1-9]|1[0-2])", re.ASCII)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call or its result, for a transcript."""

    name: str
    text: str
    is_result: bool


@dataclass(frozen=True, slots=True)
class FileLink:
    """A link to a file that can be viewed or saved."""

    link: str
    name: str
    # Whether the browser shows it.
    is_picture: bool
    # The scaled copy of a picture, which the browser shows, or an empty text.
    view: str = ""
    # The picture as it was sent, which may contain its location. Empty for people other than the
    # owner.
    original: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A message of a transcript: its text, which may be shortened, and its tool calls."""

    message: Message
    # Its text as HTML.
    html: str
    is_cut: bool
    calls: Sequence[ToolCall]
    files: Sequence[FileLink] = ()
    is_anchor: bool = False

    @property
    def size_bytes(self) -> int:
        """Return the approximate size of the message's HTML in bytes."""
        quote = self.message.quote.text if self.message.quote else ""
        texts = [quote[:MAX_QUOTE_CHARS], *(call.text for call in self.calls)]
        frames = FRAME_BYTES * (1 + len(self.calls) + len(self.files))
        return frames + len(self.html.encode()) + sum(map(measure_html, texts))


@dataclass(slots=True)
class Branches:
    """A conversation in the list, with its branches that are on the same page."""

    session: Session
    branches: list[Branches] = field(default_factory=list)


async def load_conversations(request: PageRequest) -> Values:
    """Return one page of the conversations, latest first.

    If the address contains words, only conversations whose titles contain the words are returned.
    If it contains a month, the list begins with the last conversation of that month.
    """
    conversations = request.services.conversations
    words = request.parameter("q").strip()[:200]
    month = request.parameter("month")
    before = _make_bound(request, month)
    if is_number(request.parameter("before")):
        before = await conversations.find(request.number("before"), request.scopes)
    sessions = await conversations.list_recent(
        request.scopes, SESSIONS_PER_PAGE + 1, words or None, before=before
    )
    has_more = len(sessions) > SESSIONS_PER_PAGE
    sessions = sessions[:SESSIONS_PER_PAGE]
    return {
        "query": words,
        "month": month if before is not None else "",
        "tree": await _build_tree(request, sessions),
        "before": sessions[-1].id if has_more else None,
        "is_first": before is None,
    }


def _make_bound(request: PageRequest, month: str) -> Session | None:
    """Return a bound that the conversations of a month such as "2026-04" and earlier ones precede.

    Returns None if the text isn't a month.
    """
    match = _MONTH.fullmatch(month)
    if match is None:
        return None
    year, number = int(match[1]), int(match[2])
    first_day = date(year + number // 12, number % 12 + 1, 1)
    start = resolve_wall_time(datetime.combine(first_day, time()), request.zone)
    context = request.context
    return Session(address=context.inbound.address, scope=context.scope, started_at=start)


async def _build_tree(request: PageRequest, sessions: Sequence[Session]) -> list[Branches]:
    """Return the conversations as a tree: each branch is below the one it branched off from."""
    nodes = {session.root_id or session.id: Branches(session) for session in sessions}
    tree = []
    for root_id, node in nodes.items():
        parent = await _find_branched_root(request, node.session)
        if parent is not None and parent in nodes and parent != root_id:
            nodes[parent].branches.append(node)
        else:
            tree.append(node)
    return tree


async def _find_branched_root(request: PageRequest, session: Session) -> int | None:
    """Return the id of the conversation that another one branched off from, or None."""
    conversations = request.services.conversations
    first: Session | None = session
    if session.root_id not in (None, session.id):
        first = await conversations.find(session.root_id or session.id, request.scopes)
    if first is None or first.parent_id is None:
        return None
    parent = await conversations.find(first.parent_id, request.scopes)
    return None if parent is None else parent.root_id or parent.id


async def load_conversation(request: PageRequest) -> Values | None:
    """Return part of a transcript, or None if this person can't see the conversation.

    The address may name the message to begin at (`from`), to end before (`before`), or to show in
    the middle (`at`). Otherwise, the latest messages are shown.
    """
    session = await _find_session(request)
    if session is None:
        return None
    messages, has_earlier, has_later = await _load_messages(request, session)
    anchor = request.number("at")
    lines = await make_lines(request, messages, anchor)
    first, last = _fit_lines(lines, _find_first_line(request, lines))
    relatives = await request.services.conversations.list_relatives(session, request.scopes)
    root = session.root_id or session.id
    words = request.parameter("q").strip()[:200]
    return {
        "session": session,
        "lines": lines[first:last],
        "has_earlier": has_earlier or first > 0,
        "has_later": has_later or last < len(lines),
        "parts": [other for other in relatives if (other.root_id or other.id) == root],
        "others": [other for other in relatives if (other.root_id or other.id) != root],
        "query": words,
        "hits": await _search(request, session, words) if words else [],
        "can_chat": request.context.is_owner,
    }


async def _find_session(request: PageRequest) -> Session | None:
    return await request.services.conversations.find(request.number("session"), request.scopes)


async def _load_messages(
    request: PageRequest, session: Session
) -> tuple[list[Message], bool, bool]:
    """Return one page of messages, and whether earlier and later ones exist."""

    async def load(bound: int, limit: int, *, is_later: bool) -> list[Message]:
        return await request.services.conversations.load_transcript_page(
            session.id, request.scopes, bound, limit, is_later=is_later
        )

    limit = MESSAGES_PER_PAGE
    at = request.number("at")
    start = request.number("from")
    if at:
        earlier = await load(at, MESSAGES_BEFORE + 1, is_later=False)
        later = await load(at, limit - MESSAGES_BEFORE + 1, is_later=True)
        has_later = len(later) > limit - MESSAGES_BEFORE
        messages = [*earlier[-MESSAGES_BEFORE:], *later[: limit - MESSAGES_BEFORE]]
        return messages, len(earlier) > MESSAGES_BEFORE, has_later
    if start:
        later = await load(start, limit + 1, is_later=True)
        has_earlier = bool(await load(start, 1, is_later=False))
        return later[:limit], has_earlier, len(later) > limit
    bound = request.number("before") or _LAST_ID
    earlier = await load(bound, limit + 1, is_later=False)
    has_later = bound != _LAST_ID and bool(await load(bound, 1, is_later=True))
    return earlier[-limit:], len(earlier) > limit, has_later


def _find_first_line(request: PageRequest, lines: Sequence[Line]) -> int:
    """Return the index of the line that is on the page in any case."""
    if request.number("at"):
        return next((place for place, line in enumerate(lines) if line.is_anchor), 0)
    return 0 if request.number("from") else len(lines) - 1


def _fit_lines(lines: Sequence[Line], place: int) -> tuple[int, int]:
    """Return the bounds of the lines around a line that are small enough for one page."""
    first, last = place, place + 1
    total = sum(line.size_bytes for line in lines[first:last])
    has_room = True
    while has_room:
        has_room = False
        for candidate in (last, first - 1):
            if not 0 <= candidate < len(lines):
                continue
            size = lines[candidate].size_bytes
            if total + size <= MAX_LINES_BYTES:
                total += size
                first, last = min(first, candidate), max(last, candidate + 1)
                has_room = True
    return max(first, 0), last


async def make_lines(
    request: PageRequest, messages: Sequence[Message], anchor: int = 0
) -> list[Line]:
    """Convert messages to lines of the transcript, with their files."""
    links: dict[int | None, list[FileLink]] = {}
    ids = [message.id for message in messages]
    for file in await request.services.files.load_by_message_ids(ids, request.scopes):
        if file.content is not None:
            links.setdefault(file.message_id, []).append(_link_file(request, file))
    lines = []
    for message in messages:
        lines.append(_make_line(message, links.get(message.id, ()), anchor, request.texts))
        # Rendering long messages doesn't delay the answers of chats.
        await asyncio.sleep(0)
    return lines


def _link_file(request: PageRequest, file: AttachedFile) -> FileLink:
    link = f"/files/{file.id}"
    media_type = file.content.type if file.content else ""
    if not is_picture(media_type):
        return FileLink(link, file.name, is_picture=False)
    original = f"{link}/original" if _may_save_original(request, file) else ""
    return FileLink(link, file.name, is_picture=True, view=f"{link}/view", original=original)


def _make_line(message: Message, files: Sequence[FileLink], anchor: int, texts: Texts) -> Line:
    calls = _list_calls(message)
    is_result = message.role == "tool" and message.blocks is not None
    text = "" if is_result else _drop_links(message.text, files)
    html = ""
    if text and message.role == "assistant":
        html = render_markdown(text[:MAX_MESSAGE_CHARS])
    elif text:
        html = render_said(texts.result_words.word_text(text[:MAX_MESSAGE_CHARS]))
    return Line(
        message,
        html,
        len(text) > MAX_MESSAGE_CHARS,
        calls,
        files,
        message.id == anchor,
    )


def _drop_links(text: str, files: Sequence[FileLink]) -> str:
    """Return a text without the lines that name the files which are linked below it."""
    links = {f"📄 {file.name}" for file in files}
    lines = text.split("\n")
    return "\n".join(line for line in lines if shorten_attachments(line) not in links)


def _list_calls(message: Message) -> list[ToolCall]:
    """Return the tool calls and tool results in a message."""
    calls = []
    blocks = [block for block in message.blocks or () if block.get("type") == "tool_use"]
    limit = min(MAX_CALL_CHARS, MAX_CALLS_CHARS // max(1, len(blocks)))
    for block in blocks:
        arguments = json.dumps(block.get("input"), ensure_ascii=False, indent=1)
        calls.append(ToolCall(str(block.get("name")), arguments[:limit], False))
    if message.role == "tool" and message.blocks is not None:
        calls.append(ToolCall(message.tool_name or "", message.text[:MAX_CALL_CHARS], True))
    return calls


async def _search(request: PageRequest, session: Session, words: str) -> Sequence[Hit]:
    """Search within a conversation, in the query language of the page "Recall"."""
    query = SearchQuery(
        text=f"in:{session.id} {words}",
        scopes=request.scopes,
        asker=request.context.account,
        limits=ResultLimits(messages=MAX_HITS),
    )
    results = await request.services.recall.recall(query)
    hits = {hit.message_id: hit for result in results.sessions for hit in result.matches}
    hits |= {hit.message_id: hit for hit in results.messages}
    return sorted(hits.values(), key=lambda hit: hit.message_id)


async def load_at(request: PageRequest) -> Values | None:
    """Return the transcript around a message, or None if this person can't see it."""
    message_id = request.number("message")
    session = await request.services.conversations.find_by_message(message_id, request.scopes)
    if session is None:
        return None
    return await load_conversation(request.with_parameters(session=session.id, at=message_id))


async def load_message(request: PageRequest) -> Values | None:
    """Return a complete message, or None if this person can't see it."""
    session, message = await find_message(request, request.number("message"))
    if message is None:
        return None
    parts = max(1, -(-len(message.text) // WHOLE_CHARS))
    part = min(max(1, request.number("part", 1)), parts)
    start = (part - 1) * WHOLE_CHARS
    text = message.text[start : start + WHOLE_CHARS]
    return {"session": session, "message": message, "text": text, "part": part, "parts": parts}


async def find_message(
    request: PageRequest, message_id: int
) -> tuple[Session | None, Message | None]:
    """Return a message and its conversation. The message is None if this person can't see it."""
    conversations = request.services.conversations
    session = await conversations.find_by_message(message_id, request.scopes)
    if session is None:
        return None, None
    messages = await conversations.load_transcript_page(
        session.id, request.scopes, message_id, 1, is_later=True
    )
    is_there = bool(messages) and messages[0].id == message_id
    return session, messages[0] if is_there else None


async def export_conversation(request: PageRequest) -> File | None:
    """Return a conversation as a JSON Lines file, or None if this person can't see it."""
    session = await _find_session(request)
    if session is None:
        return None
    messages = await request.services.conversations.load_transcript(session.id, request.scopes)
    lines = []
    for message in messages:
        line = {
            "session": session.id,
            "title": session.title,
            "at": message.created_at.isoformat(),
            "role": message.role,
            "sender": message.sender_name or None,
            "text": message.text,
        }
        lines.append(json.dumps(line, ensure_ascii=False))
    content = "".join(f"{line}\n" for line in lines)
    return File(name=f"conversation-{session.id}.jsonl", content=content.encode())


async def load_file(request: PageRequest) -> File | None:
    """Return a file as a chat would send it: without the place where a picture or video was taken.

    Returns None if the file isn't kept, or isn't visible. Raises Refused if the position can't be
    removed.
    """
    return await request.services.load_file(request.number("file"), request.scopes)


async def load_view(request: PageRequest) -> File | None:
    """Return the scaled copy of a picture, or the picture itself if there is no copy.

    Returns None if the person has no such file.
    """
    file = await request.services.files.find(request.number("file"), request.scopes)
    if file is None or file.content is None:
        return None
    read = request.services.media_folder.read_view
    content = await asyncio.to_thread(read, file.content.hash)
    if content is None:
        return await load_file(request)
    return File(name=f"{file.name}.jpg", content=content, mime=VIEW_TYPE)


def _may_save_original(request: PageRequest, file: AttachedFile) -> bool:
    """Return whether a file may be saved with its position.

    That's so for the files of the owner's own chats, in a browser on Mneme's machine, because they
    don't leave it. Files of groups were sent by other people.
    """
    return request.context.is_owner and request.is_local and not file.scope.is_group


async def load_original(request: PageRequest) -> File | None:
    """Return a file with the bytes that were sent, or None if it may not be saved like that."""
    file = await request.services.files.find(request.number("file"), request.scopes)
    if file is None or file.content is None or not _may_save_original(request, file):
        return None
    read = request.services.media_folder.read
    content = await asyncio.to_thread(read, file.content.hash)
    if content is None:
        return None
    # The browser saves it, whatever it is.
    return File(name=file.name, content=content, mime=SAVED_TYPE)


async def rename(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Set the title of a conversation, like /title. Raises Refused if it doesn't exist."""
    session_id = int(read_field(request, form, "session"))
    title = " ".join(read_field(request, form, "title").split())
    session = await request.services.conversations.find(session_id, request.scopes)
    if session is None:
        raise Refused(request.words["NOT_FOUND"])
    return await set_title(request.services, request.context, session, title)


PAGE = Page(
    "conversations",
    views=(
        View("/conversations", "conversations.html", load_conversations, is_streamed=True),
        View("/conversations/{session}", "conversation.html", load_conversation),
        View("/conversations/{session}/export", "", export_conversation),
        View("/conversations/at/{message}", "conversation.html", load_at),
        View("/messages/{message}", "message.html", load_message),
        View("/files/{file}", "", load_file),
        View("/files/{file}/view", "", load_view),
        View("/files/{file}/original", "", load_original),
    ),
    actions=(
        Action("rename", rename),
        Action("forget-conversation", run_command("forget", "in:{session}")),
    ),
)
