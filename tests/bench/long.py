"""What a conversation without end costs, and what is left of what was said in it after three compressions.

Cost: one long conversation through the house, against the strict double of the Messages API; what a sliding window of
the same size and no compression would cost follows from the same turns by the cache's own rules. Faithfulness: facts
are planted in scripted conversations, which are condensed by a helper that leaves out most of them on purpose; at the
end they are asked for plainly, and it is looked at what the model is then given. No model judges anything.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

from core.guard.fence import OPENING
from core.models.claude import Claude
from core.types import Completion, Request, Usage
from tests.bench.cache import KEY, READ, SUBJECTS, WRITE, counts, price
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.messages_api import MessagesApi

TURNS, CONVERSATIONS, MESSAGES = 2_000, 30, 420
WINDOW = 24_000
THRESHOLD = 0.75
PARTS = 4
COMPRESSIONS = 3
KEPT = 0.3
"""The share of the planted facts that the helper repeats."""
READ_SHARE = 0.5
"""The share of them that it reads as facts."""
EACH = 2
"""So many facts of a kind are planted in a conversation."""

NAMES = ("Orsolya Nemeth", "Tadhg Brannigan", "Ingrid Solheim", "Matteo Farinelli", "Yusra Haddad", "Pilar Ochoa")
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
    """`said` in the message `at`, counted from 0; a plain `question` asks for its `value`."""

    kind: str
    at: int
    said: str
    question: str
    value: str


@dataclass(kw_only=True)
class Found:
    """Of one kind, how many facts were planted, and where each is found in the end."""

    planted: int = 0
    window: int = 0
    prefetch: int = 0
    answered: int = 0
    recall: int = 0
    memory: int = 0
    reachable: int = 0
    sliding: int = 0


@dataclass
class Talker:
    """Fills the role Model: says little, keeps the last request; condenses and reads facts as it is told."""

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
        return Completion(blocks=(block,), text=text, stop_reason="end_turn", usage=Usage(), model=request.model)


def _texts(request: Request) -> str:
    return "\n".join(block["text"] for turn in request.messages for block in turn["content"])


def plant(chance: random.Random, messages: int) -> list[Planted]:
    """Facts of all kinds, somewhere before the last tenth of a conversation; decisions twice."""
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
            planted.append(Planted(kind=kind, at=at, said=text, question=question.format(thing=thing), value=value))
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
    return chance.choice(SMALL_TALK).format(subject=chance.choice(SUBJECTS), thing=chance.choice(things))


def lossy(planted: Sequence[Planted], chance: random.Random) -> Callable[[str], str]:
    """Summaries that repeat few of the facts in what they are given; what they leave out once is gone from them."""

    def summary(given: str) -> str:
        kept = [one.said for one in planted if one.said in given and chance.random() < KEPT]
        return "\n".join(["## Goal", "- Look after the house.", "## Decisions", *(f"- {one}" for one in kept)])

    return summary


def forgetful(planted: Sequence[Planted], chance: random.Random) -> Callable[[str], str]:
    """Reads half of the facts out of what was said."""

    def facts(given: str) -> str:
        lines = [json.loads(line) for line in given.splitlines() if line.startswith("{")]
        told = [
            {"message": line["message"], "content": one.said, "kind": "project", "value": one.value or None}
            for line in lines
            for one in planted
            if one.said == line["text"] and chance.random() < READ_SHARE
        ]
        return json.dumps(told)

    return facts


async def converse(home: Path, seed: int, messages: int) -> tuple[Counter[str], dict[str, Found]]:
    """One conversation, condensed three times, and then what is left of it; with what was condensed and recalled."""
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
        said = [(row["text"], row["chars"]) for row in await harness.services.database.fetch_all(_SAID)]
        known = [row["content"] for row in await harness.services.database.fetch_all("SELECT content FROM facts")]
        facts = [one for one in planted if one.kind]
        for one in facts:
            await _ask(harness, model, one, found[one.kind], window, _tail(said, len(window)), "\n".join(known))
    return Counter(compressions=len(helper.condensed)), found


_SAID = "SELECT text, COALESCE(length(sent), length(text)) AS chars FROM messages WHERE kind = 'chat' ORDER BY id"


def _tail(said: Sequence[tuple[str, int]], chars: int) -> str:
    """What a window of as many characters would hold of the same conversation."""
    tail: list[str] = []
    for text, sent_chars in reversed(said):
        chars -= sent_chars
        if chars < 0:
            break
        tail.append(text)
    return "\n".join(tail)


async def _ask(
    harness: GatewayHarness, model: Talker, one: Planted, found: Found, window: str, tail: str, known: str
) -> None:
    recalled = (await harness.say(f"/recall {one.question}")).text
    await harness.say(one.question)
    assert model.last is not None
    fence = "".join(block["text"] for block in model.last.messages[-1]["content"] if block["text"].startswith(OPENING))
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
    """A Markdown table: by kind, where what was planted is found, beside a sliding window."""
    total, done = {kind: Found() for kind in KINDS}, Counter[str]()
    for seed in range(conversations):
        place = home / f"talk{seed}"
        place.mkdir()
        counted, found = await converse(place, seed, messages)
        done += counted
        for kind, one in found.items():
            for name in Found.__dataclass_fields__:
                setattr(total[kind], name, getattr(total[kind], name) + getattr(one, name))
    total["all"] = Found(
        **{name: sum(getattr(one, name) for one in total.values()) for name in Found.__dataclass_fields__}
    )
    lines = [
        f"{conversations} conversations of {messages} messages, {done['compressions']} compressions by a helper that "
        f"repeats {100 * KEPT:.0f} % of the facts it is given",
        "",
        "| facts | asked | in the window | brought by prefetch | window or prefetch | found by /recall | "
        "in memory | unreachable | sliding window has |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for kind, one in total.items():
        shares = (one.window, one.prefetch, one.answered, one.recall, one.memory)
        cells = " | ".join(f"{100 * share / one.planted:.1f} %" for share in shares)
        gone, slid = one.planted - one.reachable, 100 * one.sliding / one.planted
        lines.append(f"| {kind} | {one.planted} | {cells} | {gone} | {slid:.1f} % |")
    return "\n".join(lines)


async def cost(home: Path, turns: int) -> str:
    """A Markdown table: the input that a turn costs over a long conversation, a quarter of it at a time."""
    chance = random.Random(7)
    helper = Talker(lossy((), chance))
    ends: list[int] = []
    async with MessagesApi(key=KEY) as api:
        claude = Claude(api_key=KEY, base_url=api.url, clock=SteadyClock())
        options = f"[model]\nwindow_tokens = {WINDOW}\n"
        try:
            async with open_gateway(home, claude, options, titles=helper) as harness:
                for number in range(turns):
                    await harness.say(f"{number}: {small_talk(chance)} {small_talk(chance)}")
                    ends.append(len(api.usages))
                services = harness.services
                made = await services.database.fetch_one("SELECT count(*) AS many FROM messages WHERE kind = 'summary'")
                assert made is not None
        finally:
            await claude.close()
        spent = [price([one]) * sum(counts([one])) for one in api.usages]
        sizes = [sum(counts([one])) for one in api.usages]
        anew = sum(_is_anew(*pair) for pair in pairwise(api.usages))
    by_turn = [sum(spent[first:last]) for first, last in pairwise([0, *ends])]
    last = [sizes[end - 1] for end in ends]
    first, grown = sizes[0], [max(0, after - before) for before, after in pairwise(last)]
    steady = mean(one for one in grown if one)
    endless = [READ * (first + steady * number) + WRITE * steady for number in range(turns)]
    # A window that drops the oldest turn for each new one keeps nothing in the cache but the prompt and the tools.
    prompt = first - steady
    full = READ * prompt + WRITE * (THRESHOLD * WINDOW - prompt)
    sliding = [full if first + steady * number > THRESHOLD * WINDOW else plain for number, plain in enumerate(endless)]
    rows: list[tuple[str, Sequence[float]]] = [
        ("condensed", by_turn),
        ("a sliding window, one turn in and one out", sliding),
        ("never shortened", endless),
    ]
    lines = [
        f"{turns:,} turns, a window of {WINDOW:,} tokens; {made['many']:,} compressions of {len(helper.condensed):,} "
        f"summaries; {anew:,} requests of the conversation found less in the cache than the one before had sent; "
        f"{len(api.refusals)} refused",
        "",
        f"| input of a turn | {' | '.join(f'quarter {number + 1}' for number in range(PARTS))} | in all |",
        "|---|" + "---|" * (PARTS + 1),
    ]
    for name, costs in rows:
        size = max(1, turns // PARTS)
        cells = [mean(costs[size * number : size * (number + 1)]) for number in range(PARTS)]
        lines.append(f"| {name} | {' | '.join(f'{cell:,.0f}' for cell in cells)} | {sum(costs):,.0f} |")
    return "\n".join(lines)


def _is_anew(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether a request found less in the cache than all that the one before had sent."""
    return counts([after])[0] < sum(counts([before]))


async def measure(home: Path, turns: int = TURNS, conversations: int = CONVERSATIONS, messages: int = MESSAGES) -> str:
    """Both tables."""
    (home / "cost").mkdir()
    return f"{await faithfulness(home, conversations, messages)}\n\n{await cost(home / 'cost', turns)}"
