"""What the prefix cache saves over a long session, measured against the strict double of the Messages API."""

from __future__ import annotations

import json
from pathlib import Path

from core.claude import Claude
from tests.doubles.clock import SteadyClock
from tests.doubles.corridor import open_corridor
from tests.doubles.messages_api import MessagesApi

TURNS = 50
KEY = "sk-ant-bench"
READ, WRITE = 0.1, 1.25
"""The price of a token read from or written to the cache, in units of a plain input token."""


def asked(number: int) -> str:
    """What the person says in a turn: every third calls tools side by side, every fifth keeps a note."""
    text = f"Turn {number}: what do we know about the ferry, the kayak and the lighthouse of Ana's village?"
    if number % 3 == 0:
        text += ' [call session_search {"query": "lighthouse"}] [call session_search {"query": "kayak"}]'
    if number % 5 == 0:
        note = {"target": "memory", "action": "add", "content": f"Turn {number} was about the ferry."}
        text += f" [call memory {json.dumps(note)}]"
    return text


async def converse(home: Path, api: MessagesApi, turns: int = TURNS) -> None:
    """Holds the whole session, in two lives of the house."""
    for first, last in ((0, turns // 2), (turns // 2, turns)):
        claude = Claude(api_key=KEY, base_url=api.url, clock=SteadyClock())
        try:
            async with open_corridor(home, claude) as corridor:
                for number in range(first, last):
                    await corridor.say(asked(number), message_id=f"turn{number}")
        finally:
            await claude.close()


async def measure(home: Path) -> str:
    """A Markdown table: the share of input read from the cache after turn 1, and the price against sending it plain."""
    async with MessagesApi(key=KEY) as api:
        await converse(home, api)
    usages = api.usages[1:]
    read = sum(usage["cache_read_input_tokens"] for usage in usages)
    written = sum(usage["cache_creation_input_tokens"] for usage in usages)
    plain = sum(usage["input_tokens"] for usage in usages)
    sent = read + written + plain
    price = (plain + READ * read + WRITE * written) / sent
    return (
        "| requests | input tokens | read from cache | price, to the same uncached | refused |\n|---|---|---|---|---|\n"
        f"| {len(api.usages)} | {sent:,} | {100 * read / sent:.1f} % | {price:.2f}x | {len(api.refusals)} |"
    )
