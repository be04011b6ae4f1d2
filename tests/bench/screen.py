"""Measures how often an answer without a model shows the evidence for a question.

``python -m tests.bench --only screen``. The questions of LoCoMo's development half are asked as
typed, over the five conversations in one store. `OfflineModel` searches and answers as in a
conversation. An answer has at most five messages in 24 lines, which is the first screen of a chat.
It shows the evidence if it contains the beginning of an evidence message. The share counts only
questions for which an evidence message is among the first ten messages of recall.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import Any

from core.agent.answering.answers import LINE_CHARS
from core.agent.offline import OfflineModel
from core.search.tool import session_search
from core.types import Address, Json, Request, Sender, Session, ToolContext
from tests.bench.locomo import SCOPE, Mneme
from tests.bench.recall import RecallSet, read

ASKED_AT = datetime(2026, 11, 28, 12, tzinfo=UTC)
COMPARED_CHARS = 60
"""A message is shown if so many of its first characters are."""
FIRST_MESSAGES = 10
MAX_STEPS = 8


@dataclass(frozen=True, slots=True)
class Screen:
    """The answer to a question."""

    is_among_first: bool
    is_shown: bool
    lines: int
    text: str


class ScreenSearcher(Mneme):
    """Mneme's searcher with the model that answers by rules."""

    def answer(self, question: str) -> str:
        """Return the answer to a question in a new conversation."""
        return self._runner.run(self._answer(question))

    async def _answer(self, question: str) -> str:
        tool = session_search(self._recall)
        session = Session(
            id=10**6,
            address=Address(platform="terminal", chat_id="1"),
            scope=SCOPE,
            started_at=ASKED_AT,
        )
        context = ToolContext(
            session=session,
            scope=SCOPE,
            scopes=frozenset({SCOPE}),
            sender=Sender(id="owner", name="Owner"),
            now=ASKED_AT,
        )
        messages: list[Json] = [_say(f"[{ASKED_AT:%A %-d %B %Y, %H:%M} UTC]", question)]
        for _ in range(MAX_STEPS):
            request = Request(system=(), messages=tuple(messages), tools=({"name": tool.name},))
            completion = await OfflineModel("UTC").complete(request, _ignore, _ignore)
            calls = [block for block in completion.blocks if block["type"] == "tool_use"]
            if not calls:
                return completion.text
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": call["id"],
                    "content": await tool.run(call["input"], context),
                }
                for call in calls
            ]
            messages.append({"role": "assistant", "content": list(completion.blocks)})
            messages.append({"role": "user", "content": results})
        raise RuntimeError("The model without a model didn't answer.")


def _ignore(_: Any) -> None:
    """Ignore a part of the answer, which is complete at once."""


def _say(*texts: str) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def measure(one: RecallSet, *, limit: int | None = None) -> list[Screen]:
    """Ask the questions of a set that have messages as evidence."""
    searcher = ScreenSearcher()
    texts = {said["id"]: said["text"] for session in one.sessions for said in session["messages"]}
    try:
        searcher.index(one.sessions)
        asked = [query for query in one.queries if query["messages"]][:limit]
        return [_judge(searcher, query, texts) for query in asked]
    finally:
        searcher.close()


def _judge(searcher: ScreenSearcher, query: Mapping[str, Any], texts: Mapping[str, str]) -> Screen:
    first = {message for _, message in searcher.search(query["text"], FIRST_MESSAGES)}
    text = searcher.answer(query["text"])
    plain = " ".join(text.split())
    evidence = [" ".join(texts[key].split())[:COMPARED_CHARS] for key in query["messages"]]
    return Screen(
        is_among_first=not first.isdisjoint(query["messages"]),
        is_shown=any(beginning in plain for beginning in evidence),
        lines=sum(ceil(len(line) / LINE_CHARS) for line in text.splitlines() if line),
        text=text,
    )


def report(shared: Path, names: Sequence[str] = ("locomo",)) -> Iterator[str]:
    """Yield the lines of the table, one per set."""
    yield "| set | questions | among the first ten | shown of these | shown of all | lines |"
    yield "|---|---|---|---|---|---|"
    for name in names:
        screens = measure(read(shared, name))
        first = [screen for screen in screens if screen.is_among_first]
        shown_of_first = 100 * statistics.fmean(screen.is_shown for screen in first)
        shown_of_all = 100 * statistics.fmean(screen.is_shown for screen in screens)
        lines = f"{statistics.median(screen.lines for screen in screens):.0f}"
        most = max(screen.lines for screen in screens)
        yield (
            f"| {name} | {len(screens)} | {len(first)} | {shown_of_first:.1f} % | "
            f"{shown_of_all:.1f} % | {lines}, at most {most} |"
        )
