"""Runs the recall benchmark with one call of the helper model per question (the deep search).

The environment and the settings name the model. ``make bench -- --only recall --model`` compares it
with a search by words alone. It can also be run as ``run.py DATA --plugin
tests/bench/expanded.py:Deep``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from config.settings import Settings
from core.search.expansion import ExpandedRecall
from core.store.query import SearchResults
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from gateway.services import create_model_client
from tests.bench.locomo import LIMIT, SCOPE, SESSIONS, Mneme
from tests.fixtures.clock import SteadyClock
from tests.fixtures.search_queries import search_query


class Deep(Mneme):
    """A searcher that makes one call per question, although the harness asks two questions about a
    text.
    """

    name = "mneme, deep"

    async def _index(self, sessions: Sequence[Mapping[str, Any]]) -> None:
        await super()._index(sessions)
        settings, clock = Settings.load(), SteadyClock()
        model = create_model_client(settings, clock)
        if model is None:
            raise SystemExit(
                "Set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL: this measures what a model adds."
            )
        self._stack.push_async_callback(model.close)
        path = Path(self._folder.name) / "state.db"
        database = await self._stack.enter_async_context(Database.open(path))
        conversations, zone = Conversations(database, clock), ZoneInfo("UTC")
        self._research = ExpandedRecall(
            self._recall, conversations, model, settings.model.helper, clock, zone
        )

    def _ask(self, text: str, count: int) -> SearchResults:
        if self._last is None or self._last[0] != text:
            query = search_query(
                scopes=frozenset({SCOPE}),
                text=text,
                sessions=SESSIONS,
                messages=LIMIT,
                is_expanded=True,
                is_reranked=True,
            )
            self._last = (text, count, self._runner.run(self._research.recall(query)))
        findings = self._last[2]
        return replace(findings, messages=findings.messages[:count])
