"""Tells a gateway the changes of a life day by day, and checks whether its answers begin with the
current state.

Each line of the file is an object with `said` (pairs of a day and a message), `question`, `now` and
`old` (regular expressions), `kind` and `lang`, and optionally `ask` (the day of the question),
`same` (the messages belong to one conversation) and `all` (each of these must be shown).

Without a model, the rules read the messages. With the scripted helper, a model behind a real
Messages API on loopback reads them. Its operations are made from the texts in `said` and from the
kind of the change, never from `question`, `now` or `old`. The answer is the one without a model.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from core.agent.offline import OfflineModel
from core.models.claude import Claude
from core.types import Json
from gateway import services
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.messages_api import MessagesApi

FIRST_DAY = date(2026, 2, 2)
HOUR = time(18, tzinfo=UTC)
DAYS_UNTIL_ASKED = 3
KEY = "sk-ant-bench"
REPLACING_KINDS = frozenset(
    (
        *("moved", "job", "partner", "contact", "car", "pet", "health", "habit", "membership"),
        *("name", "school", "preference", "plan", "number", "plain_contradiction"),
        *("correction_next", "correction_later", "back_forth"),
    )
)
ENDING_KINDS = frozenset({"ended"})
_ITEM = re.compile(r"- (?P<text>.*?)(?: \((?P<notes>[^()]*)\))?$")
_OVER = re.compile(r"no longer so")


@dataclass(frozen=True, slots=True)
class Shown:
    """A line of an answer."""

    text: str
    is_over: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the answer to a row shows first."""

    kind: str
    lang: str
    is_right: bool
    is_stale: bool
    # Whether old and new are both shown, and then whether the new one comes first.
    has_both: bool
    is_newer_first: bool
    answer: str


class ScriptedHelper:
    """A helper model that adds the fact of a first message, and replaces or ends earlier facts."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, body: dict[str, Any]) -> str:
        lines = [json.loads(line) for line in _lines_of(body) if line.startswith('{"')]
        held = [line["fact"] for line in lines if "fact" in line]
        messages = [line for line in lines if "message" in line]
        if not messages:
            return "A talk"
        return json.dumps(
            [self._operate(message, held, len(messages)) for message in messages],
            ensure_ascii=False,
        )

    def _operate(self, message: Json, held: Sequence[int], count: int) -> Json:
        operation = {"op": "add", "message": message["message"], "content": message["text"]}
        operation |= {"kind": "identity", "quote": message["text"]}
        if held and self.kind in REPLACING_KINDS | ENDING_KINDS:
            operation["op"] = "end" if self.kind in ENDING_KINDS else "replace"
            operation["fact"] = held[-1]
        return operation


def report(path: Path, model: str | None) -> str:
    """Markdown tables by kind and by language."""
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    verdicts = asyncio.run(_judge_rows(rows, has_helper=model == "scripted"))
    tables = [
        _table(verdicts, "all", lambda verdict: "all"),
        _table(verdicts, "kind", lambda verdict: verdict.kind),
        _table(verdicts, "language", lambda verdict: verdict.lang),
    ]
    return "\n\n".join(tables)


async def _judge_rows(rows: Sequence[dict[str, Any]], *, has_helper: bool) -> list[Verdict]:
    return [await judge(row, has_helper=has_helper) for row in rows]


async def judge(row: dict[str, Any], *, has_helper: bool) -> Verdict:
    """Send the messages and the question of a row to a new gateway, and judge the answer."""
    clock = SteadyClock(_moment(0))
    # Services make their own clock.
    wall_clock = vars(services)["WallClock"]
    vars(services)["WallClock"] = lambda: clock
    async with MessagesApi(ScriptedHelper(row["kind"]), key=KEY) as api:
        claude = Claude(api_key=KEY, base_url=api.url, clock=clock)
        try:
            with tempfile.TemporaryDirectory() as folder:
                async with open_gateway(
                    Path(folder), OfflineModel("UTC"), titles=claude if has_helper else None
                ) as harness:
                    answer = await _tell(harness, clock, row)
        finally:
            await claude.close()
            vars(services)["WallClock"] = wall_clock
    return _judge_answer(row, answer)


async def _tell(harness: GatewayHarness, clock: SteadyClock, row: dict[str, Any]) -> str:
    """Send the messages of a row on their days, and return the answer to its question."""
    for day, messages in groupby(row["said"], key=lambda said: said[0]):
        clock.moment = _moment(day)
        for number, (_, text) in enumerate(messages):
            if not row.get("same") or number == 0:
                await harness.say("/new")
            await harness.say(text)
            clock.advance(seconds=40)
        clock.advance(minutes=2)
        await harness.memory.tend()
    last_day = row["said"][-1][0]
    day = row.get("ask", last_day if row.get("same") else last_day + DAYS_UNTIL_ASKED)
    clock.moment = max(clock.moment, _moment(day))
    await harness.say("/new")
    return (await harness.say(row["question"])).text


def _moment(day: int) -> datetime:
    return datetime.combine(FIRST_DAY + timedelta(days=day), HOUR)


def _judge_answer(row: dict[str, Any], answer: str) -> Verdict:
    items = [_read_item(match) for match in map(_ITEM.fullmatch, answer.splitlines()) if match]
    first = items[0] if items else Shown("", is_over=False)
    now, old = row["now"], row.get("old") or "(?!)"
    is_right = _fits(now, first.text) and not first.is_over
    if row["kind"] == "ended" and first.is_over and _fits(old, first.text):
        is_right = True
    if row.get("all"):
        is_right = is_right and all(_is_current(items, text) for text in row["all"])
    new_at = _find(items, now)
    old_at = _find(items, old)
    return Verdict(
        kind=row["kind"],
        lang=row["lang"],
        is_right=is_right,
        is_stale=not is_right and _fits(old, first.text) and not first.is_over,
        has_both=new_at is not None and old_at is not None and new_at != old_at,
        is_newer_first=new_at is not None and old_at is not None and new_at < old_at,
        answer=answer,
    )


def judge_text(row: dict[str, Any], first: str) -> tuple[bool, bool]:
    """Return whether the best message of a searcher has the current state, and whether it has the
    former one.
    """
    is_right = _fits(row["now"], first)
    return is_right, not is_right and _fits(row.get("old") or "(?!)", first)


def _read_item(match: re.Match[str]) -> Shown:
    return Shown(match["text"], is_over=bool(_OVER.search(match["notes"] or "")))


def _is_current(items: Sequence[Shown], text: str) -> bool:
    return any(_fits(re.escape(text), item.text) and not item.is_over for item in items)


def _find(items: Sequence[Shown], pattern: str) -> int | None:
    return next((at for at, item in enumerate(items) if _fits(pattern, item.text)), None)


def _fits(pattern: str | list[str], text: str) -> bool:
    expression = pattern if isinstance(pattern, str) else "|".join(map(re.escape, pattern))
    return re.search(expression, text, re.IGNORECASE) is not None


def _table(verdicts: Sequence[Verdict], title: str, key: Callable[[Verdict], str]) -> str:
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(key(verdict), []).append(verdict)
    lines = [f"| {title} | rows | right first | stale first | newer first of both |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for name, group in groups.items():
        counts = Counter[str]()
        for verdict in group:
            counts["right"] += verdict.is_right
            counts["stale"] += verdict.is_stale
            counts["both"] += verdict.has_both
            counts["newer"] += verdict.has_both and verdict.is_newer_first
        right = f"{counts['right']} ({100 * counts['right'] / len(group):.0f} %)"
        newer = f"{counts['newer']} of {counts['both']}"
        lines.append(f"| {name} | {len(group)} | {right} | {counts['stale']} | {newer} |")
    return "\n".join(lines)


def _lines_of(body: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the last user message."""
    content = body["messages"][-1]["content"]
    blocks = [content] if isinstance(content, str) else [block.get("text", "") for block in content]
    for block in blocks:
        yield from block.splitlines()
