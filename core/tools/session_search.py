"""The tool `session_search`: the model looks into what was said before. One face of `Recall`."""

from __future__ import annotations

import json
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict

from core.errors import StoreError, ToolError
from core.memory.provider import parsed
from core.search.query import said_by, within_time
from core.search.recall import HistorySearch
from core.search.results import no_results, to_json
from core.store.query import DEFAULT_ROLES, FoundSession, SearchQuery
from core.text.normalize import language_data
from core.types import Account, Json, Payer, Role, Scope, Tool, ToolContext

BUDGET_CHARS = 6_000
BUDGET_RANGE = (500, 50_000)
BROWSE_SESSIONS = 10
PATIENCE_S = 120.0  # longer than the model calls of `core.search.expansion` together, so that no result is lost


# What they mean is told to the model by `core/search/data/prompts.toml`; a docstring would be told too.
class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str = ""
    role_filter: list[Role] | None = None
    before: str | None = None
    after: str | None = None
    title: str | None = None
    sender: str | None = None
    platform: list[str] | None = None
    limit: int = 3
    page: int = 1
    expand: bool = False
    summarize: bool = False
    session_id: int | None = None
    around_message_id: int | None = None
    window: int = 5
    budget_chars: int = BUDGET_CHARS


def session_search(recall: HistorySearch, zone: str = "UTC") -> Tool:
    """Answers with the JSON of ``recall --json``, its texts cut to `budget_chars`; dates are those of `zone` (IANA
    name)."""
    place = ZoneInfo(zone)
    told = language_data("prompts", "core.search")
    schema = _Arguments.model_json_schema()
    for name, about in schema["properties"].items():
        schema["properties"][name] = dict(sorted({**about, "description": told["arguments"][name]}.items()))

    async def run(arguments: Json, context: ToolContext) -> str:
        asked = parsed(_Arguments, arguments)
        query = _query(asked, context, place)
        try:
            findings = await recall.recall(query)
        except StoreError as error:
            raise ToolError(f"The history cannot be searched just now: {error}") from error
        result = to_json(findings)
        for found, shown in zip(findings.sessions, result["sessions"], strict=True):
            _mark_own(found, shown, context)
        if not findings.sessions:
            result["note"] = no_results(findings)
        return json.dumps(result, ensure_ascii=False)

    return Tool(
        name="session_search",
        description=told["session_search"],
        schema=schema,
        run=run,
        is_quote=True,
        is_reading=True,
        patience_s=PATIENCE_S,
    )


def _query(asked: _Arguments, context: ToolContext, zone: ZoneInfo) -> SearchQuery:
    is_browsing = not asked.query.strip() and asked.session_id is None and asked.around_message_id is None
    limit = BROWSE_SESSIONS if is_browsing and "limit" not in asked.model_fields_set else asked.limit
    query = SearchQuery(
        scopes=context.scopes,
        asker=Account(platform=context.session.address.platform, user_id=context.sender.id),
        text=asked.query,
        roles=tuple(asked.role_filter or DEFAULT_ROLES),
        platforms=tuple(name.strip().casefold() for name in asked.platform or ()),
        title=asked.title,
        limit=limit,
        page=asked.page,
        is_expanded=asked.expand,
        is_summarized=asked.summarize,
        session=asked.session_id,
        around=asked.around_message_id,
        window=asked.window,
        budget_chars=max(BUDGET_RANGE[0], min(asked.budget_chars, BUDGET_RANGE[1])),
        hidden=context.window,
        payer=Payer(session_id=context.session.id, scope=context.scope),
    )
    if asked.sender and asked.sender.strip():
        query = said_by(query, asked.sender)
    for key, value in (("before", asked.before), ("after", asked.after)):
        if value and value.strip():
            timed = within_time(query, key, value, context.now, zone)
            if timed is None:
                raise ToolError(f"{key}: {value[:40]!r} is no time I can read; write 2026-05-01, 2026-05 or last week.")
            query = timed
    return query


def _mark_own(found: FoundSession, shown: dict[str, Any], context: ToolContext) -> None:
    """Marks with `is_asker` what the asker said, here or in a private conversation of their own."""
    own = {Scope.account(context.session.address.platform, context.sender.id)}
    if not context.scope.is_room:
        own.update(scope for scope in context.scopes if not scope.is_room)
    platform = found.session.address.platform
    for name in ("bookend_start", "window", "bookend_end"):
        for item, entry in zip(getattr(found, name), shown[name], strict=True):
            said_by = Scope.account(platform, item.sender_id) if item.sender_id else found.session.scope
            if item.role == "user" and item.origin != "imported" and said_by in own:
                entry["is_asker"] = True
