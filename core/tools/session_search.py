"""The tool `session_search`: the model looks into what was said before. One face of `Recall`."""

from __future__ import annotations

import json
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field

from core.errors import StoreError, ToolError
from core.models.content_blocks import parsed
from core.search import filters
from core.search.recall import HistorySearch
from core.search.results import no_results, to_json
from core.store.query import DEFAULT_ROLES, FoundSession, SearchQuery
from core.types import Account, Json, Payer, Role, Scope, Tool, ToolContext

BUDGET_CHARS = 6_000
BUDGET_RANGE = (500, 50_000)
BROWSE_SESSIONS = 10
PATIENCE_S = 120.0  # longer than the model calls of `core.search.expansion` together, so that no result is lost

_DESCRIPTION = (
    "Searches everything that was said in earlier conversations, and earlier in this one where you no longer see it. "
    "With query: the best sessions, each with the matching passages (the match between >>> and <<<), the messages "
    "around the best one, and how the session began and ended. With session_id and around_message_id: more messages "
    "around one of them. With session_id alone: how that session began and ended. With nothing: the latest sessions. "
    "A query may be a plain question or several words; two words are both required. Or write OR, -word, "
    '"a phrase", prefix*. Filters narrow '
    "it before the best are chosen; without a query they list what is newest. Use them only for what the person is "
    "sure of: people misremember dates. Try other words, or expand, before you say that something was never mentioned. "
    "When a long conversation has to be told in short, summarize."
)


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str = Field(default="", description="What to look for. Empty: the latest sessions.")
    role_filter: list[Role] | None = Field(
        default=None, description="Whose messages to search: user, assistant, tool; user and assistant when left out."
    )
    before: str | None = Field(
        default=None, description='Said before this time: "2026-05-01", "May", "last week", "two months ago".'
    )
    after: str | None = Field(default=None, description="Said in this time or later; written like before.")
    title: str | None = Field(default=None, description="A part of the session's title.")
    sender: str | None = Field(
        default=None, description='Who said it: a name, "user" for the person you talk to, "assistant" for yourself.'
    )
    platform: list[str] | None = Field(
        default=None, description="Where it was said: telegram, discord, terminal, cron, import."
    )
    limit: int = Field(default=3, description="How many sessions, 1 to 10.")
    page: int = Field(default=1, description="The next sessions: 2, 3, … where the last result has_more.")
    expand: bool = Field(
        default=False, description="Also search for what another model makes of the question; takes seconds."
    )
    summarize: bool = Field(
        default=False,
        description="Add a summary to each session, written by another model for this query; takes up to 90 seconds.",
    )
    session_id: int | None = Field(default=None, description="Look into this session only.")
    around_message_id: int | None = Field(default=None, description="Show what stands around this message.")
    window: int = Field(default=5, description="How many messages on each side of it, up to 100.")
    budget_chars: int = Field(default=BUDGET_CHARS, description="About how much text to show; long messages are cut.")


def session_search(recall: HistorySearch, zone: str = "UTC") -> Tool:
    """Answers with the JSON of ``recall --json``, its texts cut to `budget_chars`; dates are those of `zone` (IANA
    name)."""
    place = ZoneInfo(zone)

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
        description=_DESCRIPTION,
        schema=_Arguments.model_json_schema(),
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
        query = filters.by(query, asked.sender)
    for key, value in (("before", asked.before), ("after", asked.after)):
        if value and value.strip():
            timed = filters.timed(query, key, value, context.now, zone)
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
