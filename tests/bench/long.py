"""Measures what a very long conversation costs, and how much of it is available after three
compressions.

Cost: one long conversation runs against a strict test double of the Messages API three times: with
compression, with a sliding window of the same size, and complete.

Faithfulness: scripted conversations contain planted facts. The helper model that compresses them
leaves out most of the facts. At the end, each fact is asked for in plain words, and the benchmark
looks for it in the text that the model gets. No model judges the answers.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean
from typing import Any

from core.guard.origin_and_fence import OPENING
from core.models.claude import Claude
from core.ports import Model
from core.types import Completion, Json, Request, Usage
from tests.bench.cache import KEY, SUBJECTS, counts, price
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.prefix_cache import tokens_of

TURNS, CONVERSATIONS, MESSAGES = 2_000, 30, 420
TUNED = 3
"""On the first of the conversations recall and compression were tuned; the others are told
apart."""
WINDOW, ENDLESS = 24_000, 10**8
THRESHOLD = 0.75
PARTS = 4
COMPRESSIONS = 3
KEPT = 0.3
"""The share of the planted facts that the helper repeats."""
READ_SHARE = 0.5
"""The share of them that it reads as facts."""
EACH = 2
"""So many facts of a kind are planted in a conversation."""

NAMES = (
    "Orsolya Nemeth",
    "Tadhg Brannigan",
    "Ingrid Solheim",
    "Matteo Farinelli",
    "Yusra Haddad",
    "Pilar Ochoa",
)
COLOURS = ("ochre", "turquoise", "burgundy", "ivory", "cobalt", "sage", "maroon", "lilac")
THINGS = ("accordion", "sextant", "microscope", "tarpaulin", "wheelbarrow", "samovar")
KINDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "names": (
        "The {thing} is called {value}, by the way.",
        "What is the name of the {thing}?",
        ("plumber", "notary", "gardener", "dentist"),
    ),
    "numbers": (
        "The permit for the {thing} has the number {value}.",
        "Which number does the permit for the {thing} have?",
        ("jetty", "scaffold", "chimney", "moorings"),
    ),
    "dates": (
        "The survey of the {thing} is on {value}.",
        "When is the survey of the {thing}?",
        ("roof", "cellar", "well", "attic"),
    ),
    "decisions, changed": (
        "We changed our mind about the {thing}: we paint them {value}, not {other}.",
        "In which colour do we paint the {thing}?",
        ("shutters", "railings", "window frames", "garden benches"),
    ),
    "promises": (
        "I promised {thing} to bring back the {value} before winter.",
        "What did I promise {thing}?",
        ("Clara", "Benedikt", "Ludmila", "Rosalind"),
    ),
    "paths": (
        "The drawings of the {thing} are in /srv/plans/{value}/final.dwg now.",
        "Where are the drawings of the {thing}?",
        ("dormer", "staircase", "conservatory", "veranda"),
    ),
}
"""By kind: how a fact is said, what asks for it, and what it may be about."""
SMALL_TALK = (
    "We walked past the {subject} this morning, and it was lovely.",
    "What do people usually do at a {subject} when it rains?",
    "I would rather talk about the {subject} another day.",
    "The {thing} kept me busy for hours again.",
    "Somebody asked about the {thing}, but I had no answer at hand.",
)


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A fact in the message number `at`, counted from 0.

    `said` is its sentence. `question` asks in plain words for `value`.
    """

    kind: str
    at: int
    said: str
    question: str
    value: str


@dataclass(kw_only=True)
class Found:
    """The number of planted facts of a kind, and how many are found in each place at the end."""

    planted: int = 0
    window: int = 0
    prefetch: int = 0
    answered: int = 0
    recall: int = 0
    memory: int = 0
    reachable: int = 0
    sliding: int = 0

    def __add__(self, other: Found) -> Found:
        names = Found.__dataclass_fields__
        return Found(**{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass
class Talker:
    """A model that answers briefly, keeps its last request, and compresses and reads facts as
    configured.
    """

    summary: Callable[[str], str] = str
    facts: Callable[[str], str] = lambda given: "[]"
    last: Request | None = None
    condensed: list[str] = field(default_factory=list)

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        """See `core.ports.Model`."""
        text = "I see."
        if request.kind == "title":
            text = "A house by the sea"
        elif request.kind == "facts":
            text = self.facts(_texts(request))
        elif request.kind == "compression" and not request.tools:
            given = _texts(request)
            self.condensed.append(given)
            text = self.summary(given)
        elif request.kind == "chat":
            self.last = request
        block = {"type": "text", "text": text}
        return Completion(
            blocks=(block,), text=text, stop_reason="end_turn", usage=Usage(), model=request.model
        )


def _texts(request: Request) -> str:
    return "\n".join(block["text"] for turn in request.messages for block in turn["content"])


def plant(chance: random.Random, messages: int) -> list[Planted]:
    """Return facts of all kinds for the first nine tenths of a conversation, with each decision
    twice.
    """
    planted = []
    places = chance.sample(range(2, messages // 2 * 9 // 10), EACH * len(KINDS) + EACH)
    for kind, (said, question, things) in KINDS.items():
        for thing, value in zip(chance.sample(things, EACH), _values(kind, chance), strict=True):
            at, other = places.pop(), chance.choice([one for one in COLOURS if one != value])
            if kind.startswith("decisions"):
                first, at = sorted((at, places.pop()))
                text = f"We decided to paint the {thing} {other}."
                planted.append(Planted(kind="", at=first, said=text, question="", value=""))
            text = said.format(thing=thing, value=value, other=other)
            planted.append(
                Planted(
                    kind=kind, at=at, said=text, question=question.format(thing=thing), value=value
                )
            )
    return planted


def _values(kind: str, chance: random.Random) -> list[str]:
    if kind == "numbers":
        return [f"{number}" for number in chance.sample(range(20_000, 90_000), EACH)]
    if kind == "dates":
        return [f"{day} March 2027" for day in chance.sample(range(2, 29), EACH)]
    if kind == "paths":
        return [f"lot{number}" for number in chance.sample(range(100, 999), EACH)]
    pool = {"names": NAMES, "promises": THINGS}.get(kind, COLOURS)
    return chance.sample(pool, EACH)


def small_talk(chance: random.Random) -> str:
    things = [thing for _, _, some in KINDS.values() for thing in some]
    return chance.choice(SMALL_TALK).format(
        subject=chance.choice(SUBJECTS), thing=chance.choice(things)
    )


def lossy(planted: Sequence[Planted], chance: random.Random) -> Callable[[str], str]:
    """Return a function that writes summaries with few of the facts.

    Facts that a summary leaves out are lost.
    """

    def summary(given: str) -> str:
        kept = [one.said for one in planted if one.said in given and chance.random() < KEPT]
        return "\n".join(
            ["## Goal", "- Look after the house.", "## Decisions", *(f"- {one}" for one in kept)]
        )

    return summary


def forgetful(planted: Sequence[Planted], chance: random.Random) -> Callable[[str], str]:
    """Return a function that reads half of the facts in a text."""

    def facts(given: str) -> str:
        lines = [json.loads(line) for line in given.splitlines() if line.startswith("{")]
        told = [
            {
                "message": line["message"],
                "content": one.said,
                "kind": "project",
                "value": one.value or None,
            }
            for line in lines
            for one in planted
            if one.said == line["text"] and chance.random() < READ_SHARE
        ]
        return json.dumps(told)

    return facts


async def converse(home: Path, seed: int, messages: int) -> tuple[Counter[str], dict[str, Found]]:
    """Run a conversation with three compressions.

    Returns the number of compressions, and the results by the kind of the facts.
    """
    chance = random.Random(seed)
    planted = plant(chance, messages)
    by_place = {one.at: one.said for one in planted}
    helper, model = Talker(lossy(planted, chance), forgetful(planted, chance)), Talker()
    found = {kind: Found() for kind in KINDS}
    every = messages // 2 // (COMPRESSIONS + 1) + 1
    async with open_gateway(home, model, titles=helper) as harness:
        for number in range(messages // 2):
            if number and number % every == 0:
                await harness.say("/compress")
            await harness.say(by_place.get(number) or small_talk(chance))
        await harness.memory.tend()
        assert model.last is not None
        window = _texts(model.last)
        said = [
            (row["text"], row["chars"]) for row in await harness.services.database.fetch_all(_SAID)
        ]
        known = [
            row["content"]
            for row in await harness.services.database.fetch_all("SELECT content FROM facts")
        ]
        facts = [one for one in planted if one.kind]
        for one in facts:
            await _ask(
                harness,
                model,
                one,
                found[one.kind],
                window,
                _tail(said, len(window)),
                "\n".join(known),
            )
    return Counter(compressions=len(helper.condensed)), found


_SAID = "SELECT text, COALESCE(length(sent), length(text)) AS chars FROM messages WHERE kind = 'chat' ORDER BY id"


def _tail(said: Sequence[tuple[str, int]], chars: int) -> str:
    """Return the end of the conversation that a window with as many characters would contain."""
    tail: list[str] = []
    for text, sent_chars in reversed(said):
        chars -= sent_chars
        if chars < 0:
            break
        tail.append(text)
    return "\n".join(tail)


async def _ask(
    harness: GatewayHarness,
    model: Talker,
    one: Planted,
    found: Found,
    window: str,
    tail: str,
    known: str,
) -> None:
    recalled = (await harness.say(f"/recall {one.question}")).text
    await harness.say(one.question)
    assert model.last is not None
    fence = "".join(
        block["text"]
        for block in model.last.messages[-1]["content"]
        if block["text"].startswith(OPENING)
    )
    # Each is asked as if the ones before it had not been.
    await harness.say("/undo")
    places = {
        "window": one.value in window,
        "prefetch": one.value in fence,
        "recall": one.value in recalled,
        "memory": one.value in known,
        "sliding": one.value in tail,
    }
    places["answered"] = places["window"] or places["prefetch"]
    places["reachable"] = places["answered"] or places["recall"] or places["memory"]
    for name, is_there in {**places, "planted": True}.items():
        setattr(found, name, getattr(found, name) + is_there)


async def faithfulness(home: Path, conversations: int, messages: int) -> str:
    """Return a Markdown table of where the facts of each kind are found, with a sliding window."""
    total, done = {kind: Found() for kind in KINDS}, Counter[str]()
    unseen = Found()
    for seed in range(conversations):
        place = home / f"talk{seed}"
        place.mkdir()
        counted, found = await converse(place, seed, messages)
        done += counted
        for kind, one in found.items():
            total[kind] += one
            unseen += one if seed >= TUNED else Found()
    whole = sum(total.values(), Found())
    lines = [
        f"{conversations} conversations of {messages} messages, {done['compressions']} compressions by a helper that "
        f"repeats {100 * KEPT:.0f} % of the facts it is given",
        "",
        "| facts | asked | in the window | brought by prefetch | window or prefetch | found by /recall | "
        "in memory | unreachable | sliding window has |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    apart = {f"all but the {TUNED} that were tuned on": unseen} if unseen.planted else {}
    for kind, one in {**total, "all": whole, **apart}.items():
        shares = (one.window, one.prefetch, one.answered, one.recall, one.memory)
        cells = " | ".join(f"{100 * share / one.planted:.1f} %" for share in shares)
        gone, slid = one.planted - one.reachable, 100 * one.sliding / one.planted
        lines.append(f"| {kind} | {one.planted} | {cells} | {gone} | {slid:.1f} % |")
    return "\n".join(lines)


class Sliding:
    """A model that drops the oldest messages from each request, and then calls `model`."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        """See `core.ports.Model`."""
        left = THRESHOLD * WINDOW - sum(map(tokens_of, (*request.tools, *request.system)))
        kept: list[Json] = []
        for turn in reversed(request.messages):
            left -= sum(map(tokens_of, turn["content"]))
            if left < 0:
                break
            kept.append(turn)
        if kept[-1]["role"] != "user":
            kept.pop()
        return await self._model.complete(
            replace(request, messages=tuple(kept[::-1])), on_text, on_wait
        )


@dataclass(kw_only=True)
class Held:
    """The costs of one long conversation.

    They are the input tokens of its turns and those of the helper model, the number of
    compressions, and the number of requests that read less from the cache than the previous one had
    sent.
    """

    by_turn: list[float] = field(default_factory=list)
    helper: float = 0.0
    compressions: int = 0
    anew: int = 0
    refused: int = 0


async def hold(
    home: Path, turns: int, window: int, wrap: Callable[[Model], Model] = lambda model: model
) -> Held:
    """Run the conversation with a model of this context window."""
    chance, held = random.Random(7), Held()
    before: dict[str, Any] = {}
    async with (
        MessagesApi(key=KEY, window_tokens=ENDLESS) as api,
        MessagesApi(helping, key=KEY) as side,
    ):
        claude, helper = (
            Claude(api_key=KEY, base_url=one.url, clock=SteadyClock()) for one in (api, side)
        )
        try:
            async with open_gateway(
                home, wrap(claude), f"[model]\nwindow_tokens = {window}\n", titles=helper
            ) as harness:
                for number in range(turns):
                    await harness.say(f"{number}: {small_talk(chance)} {small_talk(chance)}")
                    spent = [
                        price([one]) * sum(counts([one])) for one in (*api.usages, *side.usages)
                    ]
                    held.by_turn.append(sum(spent))
                    held.helper += sum(spent[len(api.usages) :])
                    for one in api.usages:
                        held.anew += bool(before) and counts([one])[0] < sum(counts([before]))
                        before = one
                    for kept in (api.usages, side.usages, api.requests, side.requests):
                        kept.clear()
                made = await harness.services.database.fetch_one(_SUMMARIES)
                held.compressions, held.refused = (
                    made["many"] if made else 0,
                    len(api.refusals) + len(side.refusals),
                )
        finally:
            await claude.close()
            await helper.close()
    return held


_SUMMARIES = "SELECT count(*) AS many FROM messages WHERE kind = 'summary'"


def helping(body: dict[str, Any]) -> str:
    """Return a summary of the maximum length, so that each turn sends the longest possible one."""
    order = body["system"][0]["text"]
    if "You condense" not in order:
        return "A house by the sea" if "title" in order else "[]"
    asked = json.dumps(body["messages"][-1]["content"][-1])
    size = int(asked.rpartition("at most ")[2].partition(" characters")[0].replace(",", ""))
    text = "## Goal\n- Look after the house.\n## Decisions\n"
    return text + "- the ferry, the kayak and the lighthouse\n" * ((size - len(text)) // 42)


async def cost(home: Path, turns: int) -> str:
    """Return a Markdown table of the input per turn in each quarter of a long conversation."""
    condensed = await hold(home / "condensed", turns, WINDOW)
    rows = {
        "condensed": condensed,
        "a sliding window, the oldest out for each that comes": await hold(
            home / "sliding", turns, ENDLESS, Sliding
        ),
        "never shortened": await hold(home / "endless", turns, ENDLESS),
    }
    size = max(1, turns // PARTS)
    lines = [
        f"{turns:,} turns, a window of {WINDOW:,} tokens; {condensed.compressions:,} compressions; {condensed.anew:,} "
        f"requests of the conversation found less in the cache than the one before had sent; "
        f"{sum(one.refused for one in rows.values())} refused",
        "",
        f"| input of a turn | {' | '.join(f'quarter {number + 1}' for number in range(PARTS))} | in all | "
        "of that the helper |",
        "|---|" + "---|" * (PARTS + 2),
    ]
    for name, one in rows.items():
        quarters = [
            mean(one.by_turn[size * number : size * (number + 1)]) for number in range(PARTS)
        ]
        cells = " | ".join(f"{cell:,.0f}" for cell in (*quarters, sum(one.by_turn), one.helper))
        lines.append(f"| {name} | {cells} |")
    return "\n".join(lines)


async def measure(
    home: Path, turns: int = TURNS, conversations: int = CONVERSATIONS, messages: int = MESSAGES
) -> str:
    """Return both tables."""
    for name in ("condensed", "sliding", "endless"):
        (home / "cost" / name).mkdir(parents=True)
    return (
        f"{await faithfulness(home, conversations, messages)}\n\n{await cost(home / 'cost', turns)}"
    )
