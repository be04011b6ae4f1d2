"""Connects to MCP servers (Model Context Protocol, https://modelcontextprotocol.io).

This is the only module that imports `mcp`, and it is imported when a server is first used. A server
is a program that Mneme starts and talks to over its standard input and output, or a web address
(Streamable HTTP). The first call opens the connection, which then stays open. If it breaks, the
next call opens a new one, after a pause that doubles with each failure.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import gaierror
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx2
import structlog
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import (
    CONNECTION_CLOSED,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    Implementation,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)

from config.field_types import fill_placeholders
from config.tool_options import McpServer
from config.variables import PLACEHOLDER
from core.errors import Sentence, ToolError, UncertainCallError
from core.types import File

CONNECT_TIMEOUT_S = 20.0
MIN_PAUSE_S = 1.0
MAX_PAUSE_S = 60.0
MAX_TOOL_PAGES = 20
# Further files of one result aren't stored.
MAX_FILES = 4
MAX_NAME_CHARS = 80
MAX_REASON_CHARS = 200
# Errors of the SDK and its transports if a server can't be started or reached, or disconnects.
_ERRORS = (OSError, MCPError, httpx2.HTTPError, ValueError, RuntimeError, ExceptionGroup)
_log = structlog.get_logger("mcp")


@dataclass(frozen=True, slots=True)
class ToolDescription:
    """A tool in the words of its server."""

    name: str
    description: str
    schema: Mapping[str, Any]
    is_read_only: bool
    # Whether the tool may delete or overwrite data. If the server doesn't say, the answer is yes.
    is_destructive: bool
    # Whether the tool reaches strangers, as a web search does. If the server doesn't say, the
    # answer is yes.
    is_open: bool


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool: its text, with a placeholder for each file, and the files."""

    text: str
    files: Sequence[File] = ()
    # The number of files that exceed `MAX_FILES`, or whose Base64 is invalid.
    lost_files: int = 0


class McpConnection:
    """A connection to one server."""

    def __init__(self, name: str, options: McpServer, variables: Mapping[str, str]) -> None:
        """`variables` are the values for ``${NAME}`` in the options of the server."""
        self.name = name
        self._options = options
        self._variables = variables
        self._folder = Path(options.cwd).expanduser() if options.cwd else None
        self._lock = asyncio.Lock()
        self._client: Client | None = None
        self._owner_task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        # A server that may answer slowly may start slowly, too.
        self._connect_timeout_s = max(CONNECT_TIMEOUT_S, options.timeout_s)
        self._pause_s = 0.0
        self._may_connect_at = 0.0

    async def list_tools(self) -> list[ToolDescription]:
        """Return all tools of the server. Raises ToolError if the server can't be reached."""
        client = await self._connect()
        tools: list[ToolDescription] = []
        cursor: str | None = None
        try:
            async with asyncio.timeout(self._options.timeout_s):
                for _ in range(MAX_TOOL_PAGES):
                    page = await client.list_tools(cursor=cursor)
                    tools += map(_describe, page.tools)
                    cursor = page.next_cursor
                    if cursor is None:
                        break
        except (*_ERRORS, TimeoutError) as error:
            await self._drop(client)
            raise ToolError("mcp_lists_no_tools", name=self.name) from error
        return tools

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool, and return its result.

        Raises ToolError if the call fails, and UncertainCallError if it may have been carried out.
        """
        client = await self._connect()
        timeout_s = self._options.timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                result = await client.call_tool(tool, dict(arguments))
        except TimeoutError as error:
            raise UncertainCallError(
                "mcp_no_result", name=self.name, seconds=f"{timeout_s:g}"
            ) from error
        except MCPError as error:
            if error.error.code == CONNECTION_CLOSED:
                await self._drop(client)
                raise UncertainCallError("mcp_broke_off", name=self.name) from error
            reason = error.error.message
            raise ToolError("mcp_refused", name=self.name, reason=reason) from error
        except _ERRORS as error:
            await self._drop(client)
            raise UncertainCallError("mcp_broke_off", name=self.name) from error
        text = render_content(result)
        if result.is_error:
            if text:
                raise ToolError(text)
            raise ToolError("mcp_error_without_text", name=self.name)
        return await asyncio.to_thread(_decode_result, tool, text, result)

    async def close(self) -> None:
        """Close the connection. If Mneme started the server, end the server."""
        async with self._lock:
            await self._disconnect()

    async def _drop(self, client: Client) -> None:
        """Close a client that failed, unless another call has already opened a new one."""
        async with self._lock:
            if self._client is client:
                await self._disconnect()

    async def _connect(self) -> Client:
        """Return the open client, or open a new one. Raises ToolError if that fails."""
        async with self._lock:
            if self._client is not None and self._owner_task is not None:
                if not self._owner_task.done():
                    return self._client
                self._client = None
            now = asyncio.get_running_loop().time()
            if now < self._may_connect_at:
                raise ToolError("mcp_pauses", name=self.name)
            try:
                self._client = await self._start()
            except (*_ERRORS, TimeoutError) as error:
                self._pause_s = min(MAX_PAUSE_S, max(MIN_PAUSE_S, 2 * self._pause_s))
                self._may_connect_at = asyncio.get_running_loop().time() + self._pause_s
                _log.warning("an MCP server can't be reached", server=self.name)
                reason = self._describe_failure(error)
                raise ToolError("mcp_unreached", name=self.name, reason=reason) from error
            self._pause_s = 0.0
            return self._client

    def _describe_failure(self, error: BaseException) -> str | Sentence:
        """Return the reason for a failed connection as a clause."""
        if isinstance(error, TimeoutError):
            return Sentence("service_timed_out", {"seconds": f"{self._connect_timeout_s:.0f}"})
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, OSError) and error.filename:
            values = {"sentence": str(error.filename), "words": error.strerror}
            return Sentence("with_explanation", values)
        if isinstance(error, httpx2.TransportError):
            return _find_system_error(error) or type(error).__name__
        reason = " ".join(str(error).split())[:MAX_REASON_CHARS].rstrip(".")
        return reason or type(error).__name__

    async def _start(self) -> Client:
        """Open a client in a separate task, which also closes the client.

        The SDK requires that the same task opens and closes a client.
        """
        ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._owner_task = asyncio.create_task(self._keep_open(ready, self._closing))
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                return await ready
        except BaseException:
            self._owner_task.cancel()
            raise

    async def _keep_open(self, ready: asyncio.Future[Client], closing: asyncio.Event) -> None:
        try:
            async with self._open_client() as client:
                ready.set_result(client)
                await closing.wait()
        except (*_ERRORS, ToolError) as error:
            if not ready.done():
                ready.set_exception(error)

    @asynccontextmanager
    async def _open_client(self) -> AsyncIterator[Client]:
        """Connect to a web address, or start a program and connect to it."""
        async with AsyncExitStack() as stack:
            if self._options.url:
                http_client = httpx2.AsyncClient(
                    headers=self._fill_variables(self._options.headers),
                    timeout=httpx2.Timeout(self._connect_timeout_s, read=self._options.timeout_s),
                )
                await stack.enter_async_context(http_client)
                url = self._fill_variables({"url": self._options.url})["url"]
                transport = streamable_http_client(url, http_client=http_client)
            else:
                parameters = StdioServerParameters(
                    command=self._options.command,
                    args=[self._fill_variables({"": each})[""] for each in self._options.args],
                    env=self._fill_variables(self._options.env),
                    cwd=self._folder,
                )
                # The standard error of a server must not appear in the person's terminal.
                null_device = await asyncio.to_thread(open, os.devnull, "w", encoding="utf-8")
                error_log = stack.enter_context(null_device)
                transport = stdio_client(parameters, error_log)
            client_info = Implementation(name="mneme", version="1")
            yield await stack.enter_async_context(Client(transport, client_info=client_info))

    def _fill_variables(self, values: Mapping[str, str]) -> dict[str, str]:
        """Replace each ``${NAME}`` with its variable. Raises ToolError if a variable isn't set."""
        for value in values.values():
            for match in PLACEHOLDER.finditer(value):
                if match[1] not in self._variables:
                    reason = Sentence("variable_not_set", {"name": match[1]})
                    raise ToolError("mcp_not_started", name=self.name, reason=reason)
        return {name: fill_placeholders(value, self._variables) for name, value in values.items()}

    async def _disconnect(self) -> None:
        """End the task that owns the client. After a timeout, cancel the task."""
        self._client = None
        task = self._owner_task
        self._owner_task = None
        if task is not None:
            self._closing.set()
            _, running = await asyncio.wait([task], timeout=CONNECT_TIMEOUT_S)
            for each in running:
                each.cancel()
                with contextlib.suppress(asyncio.CancelledError, *_ERRORS):
                    await each


def render_content(result: CallToolResult) -> str:
    """Return the texts of a result, with placeholders for its files.

    If a result has only data, the text is its JSON.
    """
    if not result.content and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(_render_block(block) for block in result.content)


def _render_block(block: ContentBlock) -> str:
    """Return the text of a part of a result, or a placeholder."""
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, ResourceLink):
        return " ".join(filter(None, [f"[link: {block.name}]", block.uri, block.description]))
    if isinstance(block, EmbeddedResource):
        heading = f"[resource: {block.resource.uri}]"
        if isinstance(block.resource, TextResourceContents):
            return f"{heading}\n{block.resource.text}"
        return heading
    return f"[{block.type}]"


def _find_system_error(error: BaseException) -> str:
    """Return the operating system's words for the cause of an error, or "" if it isn't the cause.

    For example: ``Connection refused``. The words for a host without an address aren't among them.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        elif isinstance(cause, OSError) and cause.errno and not isinstance(cause, gaierror):
            return os.strerror(cause.errno)
        else:
            cause = cause.__cause__ or cause.__context__
    return ""


def _decode_result(tool: str, text: str, result: CallToolResult) -> ToolResult:
    """Return the text of a result with its first files."""
    files: list[File] = []
    lost_files = 0
    for block in result.content:
        data = _find_data(block)
        if data is None:
            continue
        try:
            content = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            content = b""
        if content and len(files) < MAX_FILES:
            files.append(_build_file(tool, block, content))
        else:
            lost_files += 1
    return ToolResult(text, files, lost_files)


def _find_data(block: ContentBlock) -> str | None:
    """Return the Base64 of a file in a result, or None if the block isn't a file."""
    if isinstance(block, ImageContent | AudioContent):
        return block.data
    if isinstance(block, EmbeddedResource) and isinstance(block.resource, BlobResourceContents):
        return block.resource.blob
    return None


def _build_file(tool: str, block: ContentBlock, content: bytes) -> File:
    """Return the file in a block of a tool's result, named after its address or after the tool."""
    if isinstance(block, EmbeddedResource):
        name = unquote(urlsplit(str(block.resource.uri)).path).rpartition("/")[2]
        mime = block.resource.mime_type or "application/octet-stream"
        # The end of a long name has the extension.
        name = name[-MAX_NAME_CHARS:].strip(". ") or tool
        return File(name=name, content=content, mime=mime, is_document=True)
    assert isinstance(block, ImageContent | AudioContent)
    # The extension is chosen from the type of the bytes.
    return File(name=tool.replace(".", "_"), content=content, mime=block.mime_type)


def _describe(tool: Tool) -> ToolDescription:
    """Return the description of a tool. Missing hints count as the less safe value."""
    hints = tool.annotations
    is_read_only = hints is not None and hints.read_only_hint is True
    is_harmless = hints is not None and hints.destructive_hint is False
    is_closed = hints is not None and hints.open_world_hint is False
    return ToolDescription(
        name=tool.name,
        description=tool.description or tool.name,
        schema=tool.input_schema,
        is_read_only=is_read_only,
        is_destructive=not is_read_only and not is_harmless,
        is_open=not is_closed,
    )
