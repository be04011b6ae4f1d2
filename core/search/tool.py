"""The tool `session_search`, with which the model searches earlier conversations."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from core.errors import StoreError, ToolError
from core.guard.tool_definitions import ToolArguments, build_tool
from core.search.query import filter_by_speaker, filter_by_time
from core.search.recall import HistorySearch
from core.search.rendering import describe_no_results, to_json
from core.store.query import (
    DEFAULT_ROLES,
    FoundSession,
    ModelHelp,
    ResultLimits,
    SearchFilters,
    SearchQuery,
)
from core.types import BillingScope, Effect, Role, Scope, Tool, ToolContext

NO_EARLIER_SESSIONS = "This is the first conversation. There are no earlier ones."
BUDGET_CHARS = 6_000
MIN_BUDGET_CHARS = 500
MAX_BUDGET_CHARS = 50_000
BROWSE_SESSIONS = 10
"""This many recent sessions are listed if the model sets neither words nor a limit."""
TIMEOUT_S = 120.0
"""The timeout of the tool. It is longer than all model calls of `ExpandedRecall` together, so that
no result is lost."""


# The arguments of the tool. They are described to the model in `data/prompts.toml`. This is a
# comment because a docstring would become part of the tool's schema.
class _Arguments(ToolArguments):
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
    rerank: bool = False
    summarize: bool = False
    session_id: int | None = None
    around_message_id: int | None = None
    window: int = 5
    budget_chars: int = BUDGET_CHARS


def session_search(recall: HistorySearch, zone: str = "UTC") -> Tool:
    """Build the tool `session_search`, which returns the same JSON as ``recall --json``.

    Its argument `budget_chars` limits the length of the messages in the JSON. `zone` is the IANA
    time zone for dates in the arguments.
    """
    time_zone = ZoneInfo(zone)

    async def run(arguments: _Arguments, context: ToolContext) -> str:
        """Search on behalf of the person, and return the results as JSON.

        Raises ToolError if the arguments are wrong or the store fails.
        """
        query = _build_query(arguments, context, time_zone)
        try:
            results = await recall.recall(query)
        except StoreError as error:
            raise ToolError(f"The history can't be searched right now: {error}") from error
        answer = to_json(results)
        for session, entry in zip(results.sessions, answer["sessions"], strict=True):
            _mark_askers_own(session, entry, context)
        if not results.sessions:
            is_first = results.shape == "browse" and context.window
            answer["note"] = NO_EARLIER_SESSIONS if is_first else describe_no_results(results)
        return json.dumps(answer, ensure_ascii=False)

    return build_tool(
        "session_search",
        _Arguments,
        run,
        "core.search",
        Effect.READ,
        is_quote=True,
        is_read_only=True,
        timeout_s=TIMEOUT_S,
    )


def _build_query(arguments: _Arguments, context: ToolContext, zone: ZoneInfo) -> SearchQuery:
    """Build the query that the arguments describe, for the person in this conversation.

    Raises ToolError if `before` or `after` isn't a time.
    """
    query = SearchQuery(
        scopes=context.scopes,
        asker=context.account,
        text=arguments.query,
        filters=SearchFilters(
            roles=tuple(arguments.role_filter or DEFAULT_ROLES),
            platforms=tuple(name.strip().casefold() for name in arguments.platform or ()),
            title=arguments.title,
            session_id=arguments.session_id,
        ),
        limits=ResultLimits(
            sessions=_session_limit(arguments),
            page=arguments.page,
            window=arguments.window,
            budget_chars=max(MIN_BUDGET_CHARS, min(arguments.budget_chars, MAX_BUDGET_CHARS)),
        ),
        help=ModelHelp(
            is_expanded=arguments.expand,
            is_reranked=arguments.rerank,
            is_summarized=arguments.summarize,
            billing=BillingScope(
                session_id=context.session.id,
                scope=context.scope,
                user_id=context.sender.id,
                budget=context.budget,
            ),
        ),
        around=arguments.around_message_id,
        hidden=context.window,
        is_incognito=context.session.is_incognito,
    )
    if arguments.sender and arguments.sender.strip():
        query = filter_by_speaker(query, arguments.sender)
    for key, value in (("before", arguments.before), ("after", arguments.after)):
        if value and value.strip():
            query = _limit_by_time(query, key, value, context.now, zone)
    return query


def _limit_by_time(
    query: SearchQuery, key: str, value: str, now: datetime, zone: ZoneInfo
) -> SearchQuery:
    """Return the query limited by a time. Raises ToolError if `value` isn't a time."""
    limited_query = filter_by_time(query, key, value, now, zone)
    if limited_query is None:
        raise ToolError(
            f"{key}: {value[:40]!r} isn't a time I understand. "
            "Write 2026-05-01, 2026-05 or last week."
        )
    return limited_query


def _session_limit(arguments: _Arguments) -> int:
    """Return the argument `limit`, or `BROWSE_SESSIONS` for a list of recent sessions."""
    is_browsing = (
        not arguments.query.strip()
        and arguments.session_id is None
        and arguments.around_message_id is None
    )
    if is_browsing and "limit" not in arguments.model_fields_set:
        return BROWSE_SESSIONS
    return arguments.limit


def _mark_askers_own(session: FoundSession, entry: dict[str, Any], context: ToolContext) -> None:
    """Set `is_asker` on the messages of a session that the asker sent.

    In a group, only messages from the asker's account on that platform count. In a private
    conversation, messages from all linked accounts count.
    """
    own_scopes = {Scope.account(context.session.address.platform, context.sender.id)}
    if not context.scope.is_group:
        own_scopes.update(scope for scope in context.scopes if not scope.is_group)
    platform = session.session.address.platform
    for part in ("bookend_start", "window", "bookend_end"):
        messages = {message.message_id: message for message in getattr(session, part)}
        for fields in entry[part]:
            message = messages[fields["message_id"]]
            sender_scope = session.session.scope
            if message.sender_id:
                sender_scope = Scope.account(platform, message.sender_id)
            is_typed_here = message.role == "user" and message.origin != "imported"
            if is_typed_here and sender_scope in own_scopes:
                fields["is_asker"] = True
