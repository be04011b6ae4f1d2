"""What the prefix cache saves over a long session, measured against the strict double of the Messages API.

The same session is held twice: with the memory blocks frozen in its prompt, as Mneme does, and with the blocks rendered
anew from the files before each request, as one would do it first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.claude import Claude
from core.ports import Model
from core.records import Spending
from core.types import Completion, Request
from tests.doubles.clock import SteadyClock
from tests.doubles.corridor import open_corridor
from tests.doubles.messages_api import MessagesApi

TURNS = 50
KEY = "sk-ant-bench"
READ, WRITE = 0.1, 1.25
"""The price of a token read from or written to the cache, in units of a plain input token."""
SUBJECTS = (
    *("ferry", "kayak", "lighthouse", "bakery", "orchard", "harbour", "chapel", "museum"),
    *("sailing boat", "market", "library", "windmill", "vineyard", "cable car"),
)
FACTS = (
    "My name is Rui.",
    "I live in Lisbon.",
    "My sister Ana lives in Porto.",
    "Ana's birthday is on 3 May.",
    "I prefer tea to coffee.",
    "I work at the port of Lisbon.",
)


def asked(number: int) -> str:
    """What the person says in a turn: every third calls tools side by side, every fifth keeps a note."""
    subject = SUBJECTS[number % len(SUBJECTS)]
    text = f"Turn {number}: what do we know about the {subject} of Ana's village, and does she know of it in Porto?"
    if number % 3 == 0:
        text += ' [call session_search {"query": "lighthouse"}] [call session_search {"query": "kayak"}]'
    if number % 5 == 0:
        note = {"target": "memory", "action": "add", "content": f"Turn {number} was about the {subject}."}
        text += f" [call memory {json.dumps(note)}]"
    return text


async def remember(home: Path) -> None:
    """Gives the house a past that memory has something to say of: facts, and an earlier conversation. Asks no model."""
    async with open_corridor(home) as corridor:
        for number, subject in enumerate(SUBJECTS):
            text = f"The {subject} of Ana's village opens at {8 + number % 4} and costs {3 + number} euros."
            await corridor.say(text, message_id=f"past{number}")
        for number, fact in enumerate(FACTS):
            await corridor.say(fact, message_id=f"fact{number}")
        await corridor.say("/new", message_id="new")


async def converse(home: Path, api: MessagesApi, turns: int = TURNS, files: Path | None = None) -> Spending:
    """Holds the whole session, in two lives of the house; returns what its own books say of it. `files`: the home
    whose notes are rendered anew into each prompt."""
    await remember(home)
    for first, last in ((0, turns // 2), (turns // 2, turns)):
        claude = Claude(api_key=KEY, base_url=api.url, clock=SteadyClock(), says_why=True)
        try:
            async with open_corridor(home, claude if files is None else Naive(claude, files)) as corridor:
                for number in range(first, last):
                    await corridor.say(asked(number), message_id=f"turn{number}")
                address = corridor.inbound("").address
                session = await corridor.house.conversations.current(address)
                assert session is not None
                spending = await corridor.house.books.session(session.id, frozenset({session.scope}))
        finally:
            await claude.close()
    return spending


class Naive:
    """Fills the role Model: in front of `model`, it puts what the note files in `home` hold now into each prompt."""

    def __init__(self, model: Model, home: Path) -> None:
        self.name = model.name
        self._model = model
        self._home = home

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        """See `core.ports.Model`."""
        notes = "\n\n".join(path.read_text() for path in sorted((self._home / "memories").rglob("*.md")))
        (prompt,) = request.system
        system = ({**prompt, "text": f"{prompt['text']}\n\n# Your notes as they are now\n{notes}"},)
        return await self._model.complete(replace(request, system=system), on_text, on_wait)


def share(usages: Sequence[dict[str, Any]]) -> float:
    """Which part of the input after the first turn was read from the cache."""
    read, written, plain = counts(usages[1:])
    return read / (read + written + plain)


def price(usages: Sequence[dict[str, Any]]) -> float:
    """What all the input costs, in units of the same input sent without a cache."""
    read, written, plain = counts(usages)
    return (plain + READ * read + WRITE * written) / (read + written + plain)


def counts(usages: Sequence[dict[str, Any]]) -> tuple[int, int, int]:
    """The input tokens that were read from the cache, written to it, and neither."""
    names = ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens")
    read, written, plain = (sum(int(usage[name]) for usage in usages) for name in names)
    return read, written, plain


async def measure(home: Path) -> str:
    """A Markdown table: the share of input read from the cache after turn 1, the price against sending it plain, and
    why a prefix was not there."""
    lines = [
        "| memory in the prompt | requests | input tokens | from the cache after turn 1 | price, to uncached | "
        "missed | refused |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, is_naive in (("frozen", False), ("rendered at each write", True)):
        place = home / f"naive-{is_naive}"
        place.mkdir()
        async with MessagesApi(key=KEY) as api:
            spending = await converse(place, api, files=place if is_naive else None)
        missed = ", ".join(f"{miss.cause} {miss.times}x {miss.tokens:,}" for miss in spending.misses)
        lines.append(
            f"| {name} | {len(api.usages)} | {sum(counts(api.usages)):,} | {100 * share(api.usages):.1f} % | "
            f"{price(api.usages):.3f}x | {missed} | {len(api.refusals)} |"
        )
    return "\n".join(lines)
