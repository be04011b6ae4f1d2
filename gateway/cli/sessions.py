"""`mneme sessions`, `export` and `usage`: conversations to look at and to take away, and what they cost."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from core.store.usage import Spending
from core.text.sanitize import on_one_line
from core.types import Answer, Command, Scope, Session
from gateway import texts
from gateway.cli import runtime
from gateway.cli.runtime import AsJson, InScope, Limit, Words, answer_with, joined, say_json, seen, tell, visit
from gateway.commands.registry import CommandContext
from gateway.commands.sessions import find_sessions, list_sessions
from gateway.commands.status import UsageCommands
from gateway.services import Services


def sessions(words: Words = None, limit: Limit = 20, scope: InScope = None, as_json: AsJson = False) -> None:
    """Earlier conversations: the latest, or those with these words; "show 3" shows what was said in number 3."""
    action, *rest = words or ["list"]
    if action == "show":
        if len(rest) != 1 or not rest[0].isdecimal():
            raise typer.BadParameter("write the number of a session", param_hint="show")
        _show(int(rest[0]), scope, as_json)
        return
    text = joined(rest if action == "list" else words)

    async def objects(services: Services, scopes: frozenset[Scope]) -> object:
        return [_object(one) for one in await find_sessions(services, scopes, text, limit)]

    async def listed(services: Services, context: CommandContext) -> Answer:
        return await list_sessions(services, context, text, limit)

    runtime.print_json(objects, scope) if as_json else answer_with(listed, scope)


def _show(session_id: int, scope: str | None, as_json: bool) -> None:
    async def work(services: Services) -> None:
        scopes, zone = await seen(services, scope), runtime.zone_of(services)
        session = await services.conversations.find(session_id, scopes)
        if session is None:
            runtime.fail(f"There is no session {session_id}.")
        messages = await services.transcripts.transcript(session.id, scopes)
        if as_json:
            said = [
                {
                    "message_id": message.id,
                    "role": message.role,
                    "sender": message.sender.name if message.sender else None,
                    "at": message.created_at.isoformat(),
                    "text": message.text,
                }
                for message in messages
            ]
            say_json({**_object(session), "messages": said})
            return
        title = on_one_line(session.title or "without a title")
        tell(f"Session {session.id}, {title}, {texts.moment(session.started_at, zone)}\n")
        for message in messages:
            name = on_one_line(message.sender.name if message.sender else "") or message.role
            tell(f"{message.id}  {texts.moment(message.created_at, zone)}  {name}: {message.text}")

    visit(work)


def export(scope: InScope = None) -> None:
    """Write all history as JSON lines, one message a line.

    Calls of tools and what they returned, and commands, are left out.
    """

    async def work(services: Services) -> None:
        from core.transfer.formats import to_line

        async for record in services.archive.export(await seen(services, scope)):
            runtime.say(to_line(record))

    visit(work)


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


def usage(
    what: Annotated[
        Literal["lately", "months", "sessions"],
        typer.Argument(help="The last 30 days, each of the last twelve months, or each of the latest conversations."),
    ] = "lately",
    limit: Limit = 20,
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """What the model has cost, and how much came from the cache."""

    async def objects(services: Services, scopes: frozenset[Scope]) -> object:
        report = services.usage_report
        if what == "months":
            months = await report.months(scopes)
            return [_spent(spent, month=f"{day:%Y-%m}") for day, spent in months]
        if what == "sessions":
            sessions = await report.sessions(scopes, limit)
            return [_spent(spent, session=one.id, title=one.title) for one, spent in sessions]
        return _spent(await report.lately(scopes))

    if as_json:
        runtime.print_json(objects, scope)
    else:
        arguments = {"lately": "", "months": "months", "sessions": f"sessions {limit}"}[what]
        runtime.chat(UsageCommands, Command(name="usage", arguments=arguments), scope)


def _spent(spending: Spending, **name: object) -> dict[str, object]:
    usage = spending.usage
    return {
        **name,
        "calls": spending.calls,
        "input_tokens": usage.sent,
        "plain_tokens": usage.input,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "cache_write_hour_tokens": usage.cache_write_hour,
        "output_tokens": usage.output,
        "from_cache": round(spending.cached, 4),
        "cost": None if spending.cost is None else round(spending.cost, 6),
        "cost_uncached": None if spending.plain_cost is None else round(spending.plain_cost, 6),
        "currency": spending.prices.currency,
        "unpriced": spending.unpriced,
        "kinds": {kind: part.calls for kind, part in spending.kinds},
        "misses": [{"cause": cause, "times": part.calls, "tokens": part.missed} for cause, part in spending.misses],
    }
