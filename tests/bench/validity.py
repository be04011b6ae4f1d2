"""Tells Graphiti the rows of `tests.bench.changes`, and checks whether its first fact has the
current state.

The model of Graphiti is scripted: each message is a fact, and a message that replaces or ends
something contradicts every earlier fact of its row, as with the scripted helper of the changes. Its
embeddings represent words, so every fact counts as similar, and those with more words of the
question come first. With `--ignore-ends`, the order of the facts ignores when they ended. It runs
in the environment that has the library: ``python -m tests.bench.validity FILE [--ignore-ends]``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from datetime import datetime, time, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from core.memory.plugins import Plugins
from core.memory.service import RemoteMemory, RemoteService, SyncItem
from core.memory.services import _graphiti, _graphiti_graph
from core.types import Scope
from tests.bench.changes import (
    ENDING_KINDS,
    FIRST_DAY,
    HOUR,
    REPLACING_KINDS,
    judge_text,
)
from tests.services.model_server import graphiti_facts, model_server

SPACE = Scope.account("telegram", "1")
LIMIT = 8


def script_model(body: dict[str, Any], *, is_change: bool) -> str:
    """Answer Graphiti. Each message is one fact, and a change contradicts all earlier ones."""
    asked = str(body["messages"][-1]["content"])
    _, _, schema = asked.rpartition("in the following format:")
    if not schema or json.loads(schema).get("title") != "EdgeDuplicate":
        return graphiti_facts(body)
    known = asked.partition("<NEW FACT>")[0]
    indices = [int(index) for index in re.findall(r"'idx': (\d+), 'fact'", known)]
    return json.dumps({"duplicate_facts": [], "contradicted_facts": indices if is_change else []})


async def judge(row: dict[str, Any], *, is_ignoring_ends: bool) -> tuple[bool, bool]:
    """Return whether the first fact has the current state, and whether it has the former one."""
    is_change = row["kind"] in REPLACING_KINDS | ENDING_KINDS
    with TemporaryDirectory() as folder:
        async with model_server(lambda body: script_model(body, is_change=is_change)) as url:
            options = {"deployment": "graphiti", "llm_url": url}
            provider = Plugins(Path(folder)).create_provider("zep", options, {})
            assert isinstance(provider, RemoteService)
            await provider.initialize(Path(folder))
            try:
                for number, (day, text) in enumerate(row["said"]):
                    lines = [("user", " ".join(text.split()))]
                    at = _moment(day) + timedelta(seconds=40 * number)
                    item = SyncItem(key=f"{number:032d}", kind="turn", lines=lines, at=at)  # type: ignore[arg-type]
                    await provider.sync_item(SPACE, item)
                memories = await _search(provider, row["question"], is_ignoring_ends)
            finally:
                await provider.shutdown()
    first = memories[0] if memories else RemoteMemory(id="", text="")
    is_right, is_stale = judge_text(row, first.text)
    is_over = bool(first.until) and not is_ignoring_ends
    if is_over and row["kind"] in ENDING_KINDS and is_stale:
        return True, False
    return is_right and not is_over, is_stale and not is_over


async def _search(
    provider: RemoteService, question: str, is_ignoring_ends: bool
) -> list[RemoteMemory]:
    if is_ignoring_ends:
        return list(await provider.find(provider.space(SPACE), question, LIMIT))
    return list(await provider.search(question, [SPACE], LIMIT))


def _moment(day: int) -> datetime:
    return datetime.combine(FIRST_DAY + timedelta(days=day), time(HOUR.hour, tzinfo=HOUR.tzinfo))


async def main(path: Path, *, is_ignoring_ends: bool) -> None:
    for module in (_graphiti, _graphiti_graph):
        vars(module)["MIN_SIMILARITY"] = -1.0
    lines = await asyncio.to_thread(path.read_text, "utf-8")
    rows = [json.loads(line) for line in lines.splitlines() if line.strip()]
    verdicts = [await judge(row, is_ignoring_ends=is_ignoring_ends) for row in rows]
    right, stale = (sum(column) for column in zip(*verdicts, strict=True))
    sys.stdout.write(f"{len(rows)} rows: right first {right}, stale first {stale}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--ignore-ends", action="store_true")
    given = parser.parse_args()
    asyncio.run(main(given.file, is_ignoring_ends=given.ignore_ends))
