"""The memory provider over history: before a turn, what earlier conversations hold on the subject, within its
scopes."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from core.memory.provider import MemoryProvider
from core.search.recall import HistorySearch
from core.store.query import FoundSession, SearchQuery
from core.types import ToolContext

PASSAGES = 4
"""How many remembered messages a turn is given at most."""
PASSAGE_CHARS = 280


class HistoryProvider(MemoryProvider):
    """Gives lines ``m<message id> <date>, <session title>: <who> (<origin>): <text>``; `zone` is for dates."""

    name = "history"

    def __init__(self, recall: HistorySearch, zone: str) -> None:
        self._recall = recall
        self._zone = ZoneInfo(zone)

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        findings = await self._recall.recall(
            SearchQuery(
                text=text[:2000],
                scopes=context.scopes,
                limit=PASSAGES,
                window=0,
                hidden=context.window,
                is_prose=True,
            )
        )
        return [line for found in findings.sessions if (line := self._line(found))]

    def _line(self, found: FoundSession) -> str:
        anchor = next((item for item in found.window if item.is_anchor), None)
        if anchor is None:
            return ""
        text = " ".join(anchor.text.split())
        if len(text) > PASSAGE_CHARS:
            text = text[:PASSAGE_CHARS].rsplit(" ", 1)[0] + " …"
        who = "you" if anchor.role == "assistant" else anchor.sender or "the person"
        if anchor.role == "user" and anchor.origin != "typed":
            who = f"{who} ({anchor.origin.replace('_', ' ')})"
        title = f", “{found.session.title}”" if found.session.title else ""
        local = anchor.at.astimezone(self._zone)
        return f"m{anchor.message_id} {local.day} {local:%B %Y}{title}: {who}: {text}"
