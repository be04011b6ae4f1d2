"""The tool `session_search`: the model looks into what was said before. One face of `Recall`."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import StoreError, ToolError
from core.findings import to_json
from core.ports import Recall
from core.types import Json, Query, Role, Tool, ToolContext

BUDGET_CHARS = 6_000
BROWSE_SESSIONS = 10

_DESCRIPTION = (
    "Searches everything that was said in earlier conversations, and earlier in this one where you no longer see it. "
    "With query: the best sessions, each with the matching passages (the match between >>> and <<<), the messages "
    "around the best one, and how the session began and ended. With session_id and around_message_id: more messages "
    "around one of them. With session_id alone: how that session began and ended. With nothing: the latest sessions. "
    'A query may be a plain question; words are all required, or else OR, -word, "a phrase", prefix*. Try other words '
    "before you say that something was never mentioned."
)


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str = Field(default="", description="What to look for. Empty: the latest sessions.")
    role_filter: list[Literal["user", "assistant", "tool"]] | str | None = Field(
        default=None, description="Whose messages to search: user, assistant, tool; user and assistant when left out."
    )
    limit: int = Field(default=3, description="How many sessions, 1 to 10.")
    session_id: int | None = Field(default=None, description="Look into this session only.")
    around_message_id: int | None = Field(default=None, description="Show what stands around this message.")
    window: int = Field(default=5, description="How many messages on each side of it, up to 100.")


def session_search(recall: Recall) -> Tool:
    """The tool over `recall`. Returns the JSON of ``recall --json`` with its texts cut to about 6,000 characters."""

    async def run(arguments: Json, context: ToolContext) -> str:
        try:
            asked = _Arguments.model_validate({name: value for name, value in arguments.items() if value is not None})
        except ValidationError as error:
            first = error.errors()[0]
            raise ToolError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        query = _query(asked, context)
        try:
            findings = await recall.recall(query)
        except StoreError as error:
            raise ToolError(f"The history cannot be searched just now: {error}") from error
        return json.dumps(_told(to_json(findings), query), ensure_ascii=False)

    return Tool(
        name="session_search", description=_DESCRIPTION, schema=_Arguments.model_json_schema(), run=run, is_quote=True
    )


def _query(asked: _Arguments, context: ToolContext) -> Query:
    is_browsing = not asked.query.strip() and asked.session_id is None and asked.around_message_id is None
    limit = BROWSE_SESSIONS if is_browsing and "limit" not in asked.model_fields_set else asked.limit
    return Query(
        scopes=context.scopes,
        text=asked.query,
        roles=_roles(asked.role_filter),
        limit=limit,
        session=asked.session_id,
        around=asked.around_message_id,
        window=asked.window,
        budget_chars=BUDGET_CHARS,
        hidden=context.window,
    )


def _roles(asked: list[Literal["user", "assistant", "tool"]] | str | None) -> tuple[Role, ...]:
    """Models write a list or a comma-separated line; both are understood."""
    if asked is None or not asked:
        return ("user", "assistant")
    names = [name.strip().lower() for name in asked.split(",")] if isinstance(asked, str) else asked
    known: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ToolError(f"role_filter: there is no role {unknown[0]!r}; use user, assistant or tool.")
    return tuple(known[name] for name in names)


def _told(result: dict[str, object], query: Query) -> dict[str, object]:
    """An empty result says what to try, so that the model does not take it for an error."""
    if not result["sessions"] and "note" not in result:
        result["note"] = (
            "Nothing found; try other words, fewer words, or OR between them."
            if query.text.strip()
            else "There is no such session or message."
            if query.session is not None or query.around is not None
            else "There are no earlier sessions."
        )
    return result
