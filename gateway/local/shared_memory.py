"""Connects the MCP server for other programs (`core/tools/mcp_server.py`) to the memory.

A program can read the scopes that the person has chosen. If it proposes to store a text, the text
waits until the person confirms it in a chat.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import TYPE_CHECKING

from core.errors import Refused
from core.facts.claims import count_sentences
from core.guard.guard import clean_text, find_suspicion
from core.search.rendering import to_json
from core.store.facts.rows import Fact
from core.store.notes import FACT, Author, Operation
from core.store.query import ResultLimits, SearchQuery
from core.text.normalize import to_single_line
from core.types import Json
from gateway.commands.facts import FactCommands
from gateway.commands.registry import CommandContext
from gateway.commands.sessions import find_sessions, session_to_json
from gateway.services import Services
from gateway.texts.catalog import SHELL as texts

if TYPE_CHECKING:
    from core.tools.mcp_server import SharedMemory

RECALLED_SESSIONS = 5
MIN_FACT_CHARS = 3
# At most this many proposals of programs wait in a scope, so that other changes find room.
MAX_PROPOSALS = 10


async def serve_memory(
    services: Services,
    load_context: Callable[[], Awaitable[CommandContext]],
    port: int | None,
    key: str,
) -> None:
    """Serve the memory until the other program exits or this program is stopped.

    `load_context` returns the scopes, which may change while the server runs. Without a port, the
    server uses standard input and output.
    """
    # Imported here because it loads the SDK.
    from core.tools.mcp_server import build_server, serve_http, serve_stdio

    server = build_server(_build_memory(services, load_context), version("mneme-gateway"))
    if port is None:
        await serve_stdio(server)
    else:
        await serve_http(server, port, key)


def _build_memory(
    services: Services, load_context: Callable[[], Awaitable[CommandContext]]
) -> SharedMemory:
    """Build the functions that another program can call."""
    from core.tools.mcp_server import SharedMemory

    facts = FactCommands(services)

    async def recall(query: str) -> Json:
        context = await load_context()
        limits = ResultLimits(sessions=RECALLED_SESSIONS)
        return to_json(
            await services.recall.recall(
                SearchQuery(scopes=context.scopes, text=query, limits=limits)
            )
        )

    async def find_facts(query: str, limit: int) -> list[Json]:
        context = await load_context()
        matches = await facts.find_facts(query, context, limit)
        return [_fact_to_json(fact, facts) for fact in matches]

    async def list_sessions(query: str, limit: int) -> list[Json]:
        context = await load_context()
        sessions = await find_sessions(services, context.scopes, query, limit)
        return [session_to_json(session) for session in sessions]

    async def propose_fact(content: str, program: str) -> str:
        return await _propose_fact(services, await load_context(), content, program)

    return SharedMemory(
        recall=recall,
        find_facts=find_facts,
        list_sessions=list_sessions,
        propose_fact=propose_fact,
    )


async def _propose_fact(
    services: Services, context: CommandContext, content: str, program: str
) -> str:
    """Store a fact that waits for confirmation, and return a sentence for the program.

    Each fact is confirmed separately. Raises Refused if the text has several sentences, if it looks
    suspicious, or if too many facts are already waiting.
    """
    text = to_single_line(clean_text(content)).strip()
    if suspicion := find_suspicion(text):
        raise Refused(texts.MCP_REFUSED.format(suspicion=suspicion))
    if len(text) < MIN_FACT_CHARS or count_sentences(text) > 1:
        raise Refused(texts.MCP_EMPTY)
    pending_notes = await services.notebook.review.list_pending(frozenset({context.scope}))
    if sum(_is_of_program(note.reason) for note in pending_notes) >= MAX_PROPOSALS:
        raise Refused(texts.MCP_FULL.format(count=MAX_PROPOSALS))
    author = Author(account=context.account, address=context.inbound.address)
    reason = texts.MCP_ASKS.format(program=program) if program else texts.MCP_ASKS_UNNAMED
    await services.notebook.review.put_aside(
        context.scope, FACT, [Operation(action="add", content=text)], author, reason
    )
    return texts.MCP_WAITS


def _is_of_program(reason: str) -> bool:
    """Return whether a change waits because a program asked for it."""
    start, end = texts.MCP_ASKS.split("{program}")
    is_named = reason.startswith(start) and reason.endswith(end)
    return is_named or reason == texts.MCP_ASKS_UNNAMED


def _fact_to_json(fact: Fact, facts: FactCommands) -> Json:
    return {
        "fact_id": fact.id,
        "content": fact.content,
        "is_current": fact.is_open,
        "when": ", ".join(facts.known_facts.describe_span(fact)),
        "said_at": fact.last_said_at.isoformat(),
        "message_id": fact.message_id,
    }
