"""`mneme recall`: one query as a table or JSON, or a stream of queries, one JSON object each."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated

import typer

from core.errors import MnemeError, Refused
from core.search import filters
from core.search.recall import HistorySearch
from core.search.results import CLOSE, OPEN, no_results, to_json, to_markdown
from core.store.query import SearchQuery
from core.types import Payer
from gateway.cli.runtime import OWN, AsJson, InScope, joined, say_json, seen, show, tell, visit, zone_of
from gateway.services import Services

STREAM = "-"


def recall(  # noqa: PLR0913  The options are read off the signature.
    query: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to look for, in your own words; filters may stand in it (from:Ana before:May on:telegram); "
            "- reads one query a line."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10, help="How many sessions.")] = 3,
    page: Annotated[int, typer.Option(min=1, help="Which part of them: 2 are the next.")] = 1,
    messages: Annotated[int, typer.Option(min=0, max=1000, help="Add the N best messages over all sessions.")] = 0,
    session: Annotated[int | None, typer.Option(help="Look into one session only.")] = None,
    around: Annotated[int | None, typer.Option(help="Show what stands around this message.")] = None,
    window: Annotated[int, typer.Option(min=0, max=100, help="How many messages on each side.")] = 5,
    role: Annotated[str, typer.Option(help="user, assistant, tool, separated by commas.")] = "user,assistant",
    before: Annotated[str | None, typer.Option(metavar="TIME", help="Said before: 2026-05-01, May, last week.")] = None,
    after: Annotated[str | None, typer.Option(metavar="TIME", help="Said in this time or later.")] = None,
    title: Annotated[str | None, typer.Option(help="A part of the conversation's title.")] = None,
    sender: Annotated[str | None, typer.Option("--from", metavar="NAME", help="Who said it; also me or you.")] = None,
    platform: Annotated[str | None, typer.Option(help="telegram, discord, terminal, …, separated by commas.")] = None,
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
    if not (roles := filters.roles_of(role)):
        raise typer.BadParameter("write user, assistant or tool, separated by commas", param_hint="--role")
    wanted = SearchQuery(
        scopes=frozenset(),
        text="" if text == STREAM else text,
        roles=roles,
        platforms=filters.names_in(platform or ""),
        title=title,
        session=session,
        around=around,
        window=window,
        limit=limit,
        page=page,
        messages=messages,
        is_summarized=summary,
        is_expanded=expand,
        payer=Payer(scope=OWN),
    )
    if sender is not None:
        wanted = filters.by(wanted, sender)

    async def work(services: Services) -> None:
        asked = replace(wanted, scopes=await seen(services, scope))
        for key, value in (("before", before), ("after", after)):
            if value is None:
                continue
            timed = filters.timed(asked, key, value, services.clock.now(), zone_of(services))
            if timed is None:
                raise typer.BadParameter("write a time like 2026-05-01, May or last week", param_hint=f"--{key}")
            asked = timed
        async with _searching(services, asked) as search:
            if text == STREAM:
                await _stream(search, asked)
                return
            results = await search.recall(asked)
        if not results.sessions and results.shape in ("read", "scroll"):
            raise Refused(no_results(results))
        if as_json:
            say_json(to_json(results))
            return
        show(to_markdown(results, zone_of(services), is_wide=True))
        for hit in results.messages:
            tell(f"{hit.message_id} {hit.snippet.replace(OPEN, '').replace(CLOSE, '')}")

    visit(work)


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
