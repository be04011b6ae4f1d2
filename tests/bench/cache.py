"""Measures what the prompt cache saves in a long session, with a strict test double of the Messages
API.

The session contains skills, notes, replies, forwarded messages and results of jobs. It runs twice:
with the memory blocks frozen in the prompt, as Mneme does it, and with the blocks rendered again
from the files before each request. Then it runs with pauses, with cache lifetimes of five minutes
and an hour. Finally, ten conversations begin in one chat, with and without the time of the
conversation in the prompt.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from core.agent.prompt import MANY_TOOL_CALLS
from core.dates.schedule import Schedule
from core.guard.origin_and_fence import (
    FORWARD_LEAD,
    JOB_RESULTS_LEAD,
    NUDGE_LEAD,
    OPENING,
    QUOTE_LEAD,
    SKILL_LEAD,
)
from core.models.claude import Claude
from core.ports import Model
from core.store.jobs import Job
from core.store.mailbox import OutboxItem
from core.store.usage_limits import Spending
from core.types import Answer, Completion, Quote, Request
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.prefix_cache import bare, blocks_of, tokens_of
from tests.fixtures.skill_folders import skill_text

TURNS = 50
KEY = "sk-ant-bench"
READ, WRITE, WRITE_HOUR = 0.1, 1.25, 2.0
"""The price of a token read from the cache, or written to it for five minutes or an hour, in units
of a plain one."""
CONVERSATIONS = 10
PAUSE_EVERY, PAUSE = 10, timedelta(minutes=20)
HOUR = '[model]\ncache = "1h"\n'
SUBJECTS = (
    *("ferry", "kayak", "lighthouse", "bakery", "orchard", "harbour", "chapel", "museum"),
    *("sailing boat", "market", "library", "windmill", "vineyard", "cable car"),
)
SKILLS = ("journey", "birthday", "delivery")
FACTS = (
    "My name is Rui.",
    "I live in Lisbon.",
    "My sister Ana lives in Porto.",
    "Ana's birthday is on 3 May.",
    "I prefer tea to coffee.",
    "I work at the port of Lisbon.",
)


def asked(number: int) -> str:
    """Return the person's message of a turn.

    Every third message causes parallel tool calls, and every fifth adds a note. Some call a skill
    by its name, some make the model read a skill, and some cause so many calls that the model is
    reminded to save a procedure.
    """
    subject = SUBJECTS[number % len(SUBJECTS)]
    text = f"Turn {number}: what do we know about the {subject} of Ana's village, and does she know of it in Porto?"
    if number % 12 == 4:
        text = f"/{SKILLS[number % len(SKILLS)]} {text}"
    if number % 12 == 10:
        text += f' [call skill_view {{"name": "{SKILLS[number % len(SKILLS)]}"}}]'
    if number % 16 == 13:
        text += " [call skills_list {}]" * MANY_TOOL_CALLS
    if number % 3 == 0:
        text += ' [call session_search {"query": "lighthouse"}] [call session_search {"query": "kayak"}]'
    if number % 5 == 0:
        note = {
            "target": "memory",
            "action": "add",
            "content": f"Rui's boat lies at berth {100 + number} in Vigo.",
        }
        text = f"{note['content']} {text} [call memory {json.dumps(note)}]"
    return text


def around(number: int) -> dict[str, Any]:
    """Return what a message replies to or forwards. Every fourth one is a reply."""
    if number % 16 == 7:
        return {"origin": "forwarded", "quote": Quote(kind="forward", name="Ben")}
    return {"reply_to": f"turn{number - 2}"} if number % 4 == 3 else {}


async def remember(home: Path) -> None:
    """Add skills, facts and an earlier conversation, without a call of the model."""
    for name in SKILLS:
        folder = home / "skills" / name
        folder.mkdir(parents=True)
        steps = "\n".join(
            f"{step}. Look up what was said about the {subject}."
            for step, subject in enumerate(SUBJECTS)
        )
        (folder / "SKILL.md").write_text(
            skill_text(name, f"What to do about a {name}.", steps), encoding="utf-8"
        )
    async with open_gateway(home) as harness:
        for number, subject in enumerate(SUBJECTS):
            text = f"The {subject} of Ana's village opens at {8 + number % 4} and costs {3 + number} euros."
            await harness.say(text, message_id=f"past{number}")
        for number, fact in enumerate(FACTS):
            await harness.say(fact, message_id=f"fact{number}")
        await harness.say("/new", message_id="new")


async def deliver(harness: GatewayHarness, number: int) -> None:
    """Deliver a reminder to the conversation."""
    services, chat = harness.services, harness.inbound("")
    now = services.clock.now()
    schedule, text = Schedule(zone="Europe/Lisbon", at=now), f"call Ana about turn {number}"
    planned = Job(
        schedule=schedule,
        text=text,
        target=chat.address,
        scope=chat.scope,
        created_at=now,
        next_at=now,
    )
    key = f"job:{(await services.jobs.add(planned)).id}:{now.isoformat()}"
    await services.outbox.put(
        OutboxItem(key=key, kind="reminder", address=chat.address, answer=Answer(text=text))
    )
    await services.outbox.mark_done(key, (f"{90_000 + number}",))


async def converse(
    home: Path,
    api: MessagesApi,
    turns: int = TURNS,
    files: Path | None = None,
    options: str = "",
    pausing: SteadyClock | None = None,
) -> Spending:
    """Run the whole session with a restart in the middle. Return the usage that Mneme recorded.

    `files` is the home whose notes are rendered again into each prompt. `options` are settings. In
    `pausing`, the clock of the server moves between some turns.
    """
    await remember(home)
    for first, last in ((0, turns // 2), (turns // 2, turns)):
        claude = Claude(api_key=KEY, base_url=api.url, clock=SteadyClock())
        try:
            model = claude if files is None else Naive(claude, partial(_notes_in, files))
            async with open_gateway(home, model, options) as harness:
                for number in range(first, last):
                    if pausing is not None and number and number % PAUSE_EVERY == 0:
                        pausing.advance(minutes=PAUSE.total_seconds() / 60)
                    if number % 6 == 5:
                        await deliver(harness, number)
                    await harness.say(asked(number), message_id=f"turn{number}", **around(number))
                address = harness.inbound("").address
                session = await harness.services.conversations.find_open(address)
                assert session is not None
                spending = await harness.services.usage_log.load_spending(
                    frozenset({session.scope}), session_id=session.id
                )
        finally:
            await claude.close()
    return spending


async def begin_anew(
    home: Path, api: MessagesApi, *, has_minute: bool = False
) -> list[dict[str, Any]]:
    """Begin several conversations in one chat, and return the usage of their first requests.

    With `has_minute`, the prompt contains the time at which the conversation began.
    """
    await remember(home)
    claude, minute = Claude(api_key=KEY, base_url=api.url, clock=SteadyClock()), 0
    model = (
        Naive(claude, lambda: f"This conversation began at 12:{minute:02d}.")
        if has_minute
        else claude
    )
    try:
        async with open_gateway(home, model) as harness:
            for minute in range(CONVERSATIONS):
                for number in (1, 2):
                    await harness.say(asked(number), message_id=f"{minute}-{number}")
                await harness.say("/new", message_id=f"{minute}-new")
    finally:
        await claude.close()
    return [
        usage
        for body, usage in zip(api.requests, api.usages, strict=True)
        if len(body["messages"]) == 1
    ]


class Naive:
    """A model that adds the current result of `added` to each prompt, and then calls `model`."""

    def __init__(self, model: Model, added: Callable[[], str]) -> None:
        self._model = model
        self._added = added

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        """See `core.ports.Model`."""
        (prompt,) = request.system
        system = ({**prompt, "text": f"{prompt['text']}\n\n{self._added()}"},)
        return await self._model.complete(replace(request, system=system), on_text, on_wait)


def _notes_in(home: Path) -> str:
    notes = "\n\n".join(path.read_text() for path in sorted((home / "memories").rglob("*.md")))
    return f"# Your notes as they are now\n{notes}"


def share(usages: Sequence[dict[str, Any]]) -> float:
    """Return the share of the input tokens after the first turn that was read from the cache."""
    read, written, plain = counts(usages[1:])
    return read / (read + written + plain)


def price(usages: Sequence[dict[str, Any]]) -> float:
    """Return the price of the input, relative to the price of the same input without a cache."""
    read, written, plain = counts(usages)
    hour = sum(int(usage["cache_creation"]["ephemeral_1h_input_tokens"]) for usage in usages)
    return (plain + READ * read + WRITE * (written - hour) + WRITE_HOUR * hour) / (
        read + written + plain
    )


def counts(usages: Sequence[dict[str, Any]]) -> tuple[int, int, int]:
    """Return the input tokens that were read from the cache, written to it, and neither."""
    names = ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens")
    read, written, plain = (sum(int(usage[name]) for usage in usages) for name in names)
    return read, written, plain


def parts(bodies: Sequence[dict[str, Any]]) -> Counter[str]:
    """Return the number of tokens that requests sent for the first time, by their kind.

    The requests extend one another.
    """
    found: Counter[str] = Counter()
    known = 0
    for body in bodies:
        row = [(place, bare(block)) for place, block in blocks_of(body)]
        for place, block in row[known:]:
            found[_part(place, block)] += tokens_of(block)
        known = len(row)
    return found


def _part(place: str, block: dict[str, Any]) -> str:
    if place in ("tools", "system"):
        return "tools and prompt"
    if place == "assistant":
        return "answers and calls"
    if block["type"] == "tool_result":
        return "results of tools"
    if OPENING in block["text"]:
        return "memory fences"
    if block["text"].startswith((f"[{SKILL_LEAD}", f"[{NUDGE_LEAD}")):
        return "skills called, and reminders of them"
    if block["text"].startswith((f"[{QUOTE_LEAD}", f"[{FORWARD_LEAD}")):
        return "replies and forwards"
    if block["text"].startswith(f"[{JOB_RESULTS_LEAD}"):
        return "results of jobs"
    return "time lines" if block["text"].startswith("[") else "what was said"


async def measure(home: Path) -> str:
    """Return Markdown tables.

    They show the share of the input read from the cache after the first turn, its price relative to
    the same input without a cache, why prefixes were missing, and which tokens were sent again.
    """
    lines = [
        "| memory in the prompt | requests | input tokens | from the cache after turn 1 | price, to uncached | "
        "missed | refused |",
        "|---|---|---|---|---|---|---|",
    ]
    anew: Counter[str] = Counter()
    for name, is_naive, is_pausing, options in (
        ("frozen", False, False, ""),
        ("rendered at each write", True, False, ""),
        ("frozen, four pauses of 20 minutes, kept for 5 minutes", False, True, ""),
        ("frozen, four pauses of 20 minutes, kept for an hour", False, True, HOUR),
    ):
        place = home / name.replace(" ", "-")
        place.mkdir()
        clock = SteadyClock() if is_pausing else None
        async with MessagesApi(key=KEY, clock=clock) as api:
            spending = await converse(
                place, api, files=place if is_naive else None, options=options, pausing=clock
            )
        anew = anew or parts([body for body in api.requests if body.get("tools")])
        missed = ", ".join(
            f"{cause} {part.calls}x {part.missed_tokens:,}"
            for cause, part in spending.by_miss_cause
        )
        lines.append(
            f"| {name} | {len(api.usages)} | {sum(counts(api.usages)):,} | {100 * share(api.usages):.1f} % | "
            f"{price(api.usages):.3f}x | {missed} | {len(api.refusals)} |"
        )
    lines.append(
        "\nOnly the server's clock goes on in a pause, so the books here take it for an eviction."
    )
    total = sum(anew.values())
    lines += ["", "| frozen: sent for the first time, once each | tokens | part |", "|---|---|---|"]
    lines += [
        f"| {part} | {tokens:,} | {100 * tokens / total:.1f} % |"
        for part, tokens in anew.most_common()
    ]
    lines += [
        "",
        f"| the prompt over {CONVERSATIONS} `/new` in one chat | tokens of the first requests | from the cache "
        "after the first conversation | price, to uncached | refused |",
        "|---|---|---|---|---|",
    ]
    for name, has_minute in (
        ("without a time", False),
        ("with the minute at which each began", True),
    ):
        place = home / name.replace(" ", "-")
        place.mkdir()
        async with MessagesApi(key=KEY) as api:
            first = await begin_anew(place, api, has_minute=has_minute)
        lines.append(
            f"| {name} | {sum(counts(first)):,} | {100 * share(first):.1f} % | {price(first):.3f}x | "
            f"{len(api.refusals)} |"
        )
    return "\n".join(lines)
