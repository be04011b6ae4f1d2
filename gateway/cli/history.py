"""`mneme recall`, `sessions` and `export`: what was said, to be found, looked at and taken away."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated

import typer

from core.errors import MnemeError, Refused
from core.search.recall import HistorySearch
from core.search.results import CLOSE, OPEN, no_results, to_json, to_markdown
from core.store.query import SearchQuery
from core.types import Answer, Payer, Session
from gateway.cli.runtime import (
    OWN,
    AsJson,
    InScope,
    Limit,
    Words,
    joined,
    say,
    say_json,
    show,
    tell,
    visit,
)
from gateway.commands.registry import CommandContext
from gateway.commands.sessions import find_sessions, list_sessions
from gateway.services import Services

STREAM = "-"


def add_commands(root: typer.Typer) -> None:
    for command in (recall, sessions, export):
        root.command(command.__name__)(command)


def recall(  # noqa: PLR0913  The options are read off the signature.
    query: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to look for, in your own words; filters may stand in it (from:Ana before:May on:telegram in:12 "
            "around:345 page:2); - reads one query a line."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10, help="How many sessions.")] = 3,
    messages: Annotated[int, typer.Option(min=0, max=1000, help="Add the N best messages over all sessions.")] = 0,
    window: Annotated[int, typer.Option(min=0, max=100, help="How many messages on each side of around:345.")] = 5,
    summary: Annotated[
        bool, typer.Option("--summary", help="Add a summary to each session, by the model; takes up to 90 seconds.")
    ] = False,
    expand: Annotated[
        bool, typer.Option("--expand", help="Also search for what the model makes of the question; takes seconds.")
    ] = False,
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """Find what was said, in your own words.

    Sessions with the best match and what stands around it; without a query, the latest ones.
    """
    text = joined(query)

    async def work(services: Services, context: CommandContext) -> Answer | None:
        asked = SearchQuery(
            scopes=context.scopes,
            text=text,
            window=window,
            limit=limit,
            messages=messages,
            is_summarized=summary,
            is_expanded=expand,
            payer=Payer(scope=OWN),
        )
        async with _searching(services, asked) as search:
            if text == STREAM:
                await _stream(search, asked)
                return None
            results = await search.recall(asked)
        if not results.sessions and results.shape in ("read", "scroll"):
            raise Refused(no_results(results))
        if as_json:
            say_json(to_json(results))
            return None
        show(to_markdown(results, services.zone, is_wide=True))
        for hit in results.messages:
            tell(f"{hit.message_id} {hit.snippet.replace(OPEN, '').replace(CLOSE, '')}")
        return None

    visit(work, scope)


@asynccontextmanager
async def _searching(services: Services, query: SearchQuery) -> AsyncIterator[HistorySearch]:
    """What answers the query; a model helps only where that is asked for."""
    if not (query.is_expanded or query.is_summarized):
        yield services.recall
        return
    from core.models.wrappers import MeteredModel
    from core.search.expansion import ExpandedRecall
    from gateway.services import client

    settings = services.settings
    model = client(settings, services.clock)
    try:
        helper = None if model is None else MeteredModel(model, services.usage_log, services.clock)
        yield ExpandedRecall(
            services.recall, services.transcripts, helper, settings.model.helper, services.clock, settings.general.zone
        )
    finally:
        if model is not None:
            await model.close()


async def _stream(search: HistorySearch, query: SearchQuery) -> None:
    """One JSON object for each line, also a blank one; what fails says so in ``error``."""
    for line in sys.stdin.buffer:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        try:
            say_json(to_json(await search.recall(replace(query, text=text))))
        except MnemeError as error:
            say_json({"query": text, "error": str(error)})


def sessions(words: Words = None, limit: Limit = 20, scope: InScope = None, as_json: AsJson = False) -> None:
    """Earlier conversations: the latest, or those with these words; `mneme recall in:3` shows number 3."""
    text = joined(words[1:] if words and words[0] == "list" else words)

    async def work(services: Services, context: CommandContext) -> Answer | None:
        if not as_json:
            return await list_sessions(services, context, text, limit)
        say_json([_object(one) for one in await find_sessions(services, context.scopes, text, limit)])
        return None

    visit(work, scope)


def export(scope: InScope = None) -> None:
    """Write all history as JSON lines, one message a line.

    Calls of tools and what they returned, and commands, are left out.
    """

    async def work(services: Services, context: CommandContext) -> None:
        from core.transfer.formats import to_line

        async for record in services.archive.export(context.scopes):
            say(to_line(record))

    visit(work, scope)


def _object(session: Session) -> dict[str, object]:
    return {
        "session_id": session.id,
        "external_session": session.external_id,
        "title": session.title,
        "platform": session.address.platform,
        "address": session.address.key,
        "scope": session.scope.key,
        "started_at": session.started_at.isoformat(),
        "last_at": session.last_at.isoformat() if session.last_at else None,
        "ended_at": session.ended_at.isoformat() if session.ended_at else None,
        "messages": session.messages,
    }
