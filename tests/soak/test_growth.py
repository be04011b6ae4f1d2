"""Two hundred people talk to the real process for half an hour after its warm-up. Its memory, its
log, its descriptors and its threads don't grow.

Memory is all of the resident memory, also that of files such as libraries. "Doesn't grow" means:
the slope over the medians of the 30 minutes is within three times their scatter around it, or below
1 % of the memory (5 % of the log, the descriptors and the threads). Everybody has a past in the
store, as in a home that has been in use: without it, each message would recall more than the one
before. In the warm-up, everybody has once begun a new session and talked in it, and the caches are
full. On a slow machine, it is longer. A cache with a bound that is reached only later would be
found here, too: its bound is then too large.

`SOAK_MINUTES` in the environment shortens the half hour and the warm-up. Below 13 the caches fill
while memory is watched, so it grows. The medians of each minute are printed; ``pytest -rP`` shows
them."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from string import ascii_lowercase
from typing import Any

import pytest

from tests.fixtures.command_line import good
from tests.fixtures.live_system import KEY, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

MINUTES = int(os.environ.get("SOAK_MINUTES", "30"))
WARM_UP_MINUTES = min(12, MINUTES)
PEOPLE = range(5001, 5201)
MESSAGES_PER_S = 6.0
MAX_UNANSWERED = 10
"""On a slow machine, people wait until no more than so many messages have no answer. Each answer
that is being written has connections, so their number would grow with the load of the machine."""
ANSWER_S = 300.0
SESSION_MESSAGES = 15
"""So many messages later, people begin a new session, as they do on another day."""
WARM_UP_MESSAGES = len(PEOPLE) * (SESSION_MESSAGES + 5)
SAMPLE_S = 5.0
SAMPLES_PER_MINUTE = 12
NOISE = {"rss_kb": 0.01, "log_kb": 0.05, "descriptors": 0.05, "threads": 0.05}
"""A growth below this share of the median is noise, however steady."""
WORDS = (
    "ferry",
    "harbour",
    "lantern",
    "albatross",
    "Lisbon",
    "doctor",
    "appointment",
    "Marta",
    "invoice",
    "concert",
    "garden",
    "recipe",
    "saffron",
    "train",
    "platform",
    "passport",
)
PAST_SESSIONS = 8
PAST_BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)
"""So many sessions everybody has had before, one a week from this day on."""
NEW_WORDS = 4
"""So many words of each message are new, so the caches of words are full after the warm-up."""
ANSWER = "That is on the list.\n\n* One\n* **Two**"
OPTIONS = f"""
[access]
people = [{", ".join(f'"telegram:{person}"' for person in PEOPLE)}]
[limits]
turns_per_minute = 100000
commands_per_minute = 100000
[limits.day]
[model]
window_tokens = 20000
"""


def answer(body: dict[str, Any]) -> ModelReply:
    """Talks, and is no help with titles, summaries and facts: these are made by rules."""
    return ModelReply.say(ANSWER if body.get("tools") else "Na")


def phrase_message(chance: random.Random) -> str:
    """Return words that all people use, with a few that nobody has used before."""
    known = chance.choices(WORDS, k=12)
    new = ["".join(chance.choices(ascii_lowercase, k=7)) for _ in range(NEW_WORDS)]
    return f"{' '.join(known + new)} {chance.randrange(100_000)}"


def write_past() -> Iterator[str]:
    """Yield the messages that people have sent and got before, as lines for an import."""
    chance = random.Random(16)
    for person, week in itertools.product(PEOPLE, range(PAST_SESSIONS)):
        begin = PAST_BEGIN + timedelta(weeks=week)
        for number in range(SESSION_MESSAGES):
            for role, text in (("user", phrase_message(chance)), ("assistant", ANSWER)):
                line = {
                    "session": f"{person} week {week}",
                    "scope": f"account:telegram:{person}",
                    "role": role,
                    "text": text,
                    "at": (begin + timedelta(minutes=number)).isoformat(),
                }
                yield json.dumps(line)


class Crowd:
    """People who write one after the other, and the figures of the process meanwhile."""

    def __init__(self, live: LiveSystem) -> None:
        self.live = live
        self.series: dict[str, list[float]] = {name: [] for name in NOISE}
        self._chance = random.Random(26)
        self.sent = 0

    async def talk(self) -> None:
        """Write until cancelled."""
        for person in itertools.cycle(PEOPLE):
            self.live.telegram.user_says(person, self._next_text())
            await asyncio.sleep(1 / MESSAGES_PER_S)
            await self.live.until(lambda: self.count_unanswered() <= MAX_UNANSWERED, ANSWER_S)
            self._clear_doubles()

    def _next_text(self) -> str:
        self.sent += 1
        if self.sent // len(PEOPLE) % SESSION_MESSAGES == SESSION_MESSAGES - 1:
            return "/new"
        return phrase_message(self._chance)

    def count_unanswered(self) -> int:
        """How many people have written since their last answer."""
        histories = [history for history in self.live.telegram.history.values() if history]
        last = [next(reversed(history.values())) for history in histories]
        return sum(not message["from"]["is_bot"] for message in last)

    def _clear_doubles(self) -> None:
        """What the doubles remember would take this process hundreds of megabytes."""
        telegram, model = self.live.telegram, self.live.model
        del telegram.calls[:], telegram.drafts[:], telegram.paths[:]
        del model.requests[:], model.headers[:], model.usages[:]

    async def sample(self, minutes: int) -> None:
        """Take the figures for so many minutes."""
        for _ in range(minutes * SAMPLES_PER_MINUTE):
            await asyncio.sleep(SAMPLE_S)
            for name, figure in self._read_figures().items():
                self.series[name].append(figure)

    def _read_figures(self) -> dict[str, float]:
        assert self.live.process is not None
        folder = Path(f"/proc/{self.live.process.pid}")
        lines = (folder / "status").read_text().splitlines()
        status = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
        log = self.live.home / "state.db-wal"
        return {
            "rss_kb": float(status["VmRSS"][0]),
            "log_kb": log.stat().st_size / 1024 if log.exists() else 0.0,
            "descriptors": float(len(os.listdir(folder / "fd"))),
            "threads": float(status["Threads"][0]),
        }


def take_medians(series: Sequence[float]) -> list[float]:
    """The median of each minute, which no single peak moves."""
    starts = range(0, len(series), SAMPLES_PER_MINUTE)
    return [median(series[start : start + SAMPLES_PER_MINUTE]) for start in starts]


def measure_growth(series: Sequence[float]) -> tuple[float, float]:
    """How much a series grows from its begin to its end by the median slope of all pairs of its
    points (Theil and Sen), and the noise: the median distance of its points from that line, times
    three."""
    points = list(enumerate(series))
    slope = median((b - a) / (j - i) for (i, a), (j, b) in itertools.combinations(points, 2))
    level = median(figure - slope * number for number, figure in points)
    distance = median(abs(figure - level - slope * number) for number, figure in points)
    return slope * (len(points) - 1), 3 * distance


def is_growing(name: str, series: Sequence[float]) -> bool:
    """Whether a series grows by more than its noise, and by more than anybody notices."""
    growth, noise = measure_growth(series)
    return growth > max(noise, NOISE[name] * median(series))


def test_detection_of_memory_growth_ignores_noise_and_shrinking() -> None:
    chance = random.Random(1)
    flat = [150_000 + chance.gauss(0, 500) for _ in range(30)]
    assert not is_growing("rss_kb", flat)
    assert is_growing("rss_kb", [figure + 150 * minute for minute, figure in enumerate(flat)])
    assert not is_growing("rss_kb", [figure - 150 * minute for minute, figure in enumerate(flat)])
    assert is_growing("descriptors", [20 + minute // 5 for minute in range(30)])
    assert not is_growing("descriptors", [20, 24] * 15)


@pytest.mark.timeout(60 * (MINUTES + 3 * WARM_UP_MINUTES) + 600)
async def test_process_does_not_grow_while_200_people_talk_to_it(home: Path) -> None:
    model = MessagesApi(answer, key=KEY, is_local=True)
    async with LiveSystem.open(home, model, OPTIONS, gathers=True) as live:
        past = home.parent / "past.jsonl"
        past.write_text("\n".join(write_past()))
        await asyncio.to_thread(good, home, "import", str(past))
        await live.start(is_fresh=True)
        crowd = Crowd(live)
        talking = asyncio.create_task(crowd.talk())
        await crowd.sample(WARM_UP_MINUTES)
        while MINUTES > WARM_UP_MINUTES and crowd.sent < WARM_UP_MESSAGES:
            await crowd.sample(1)
        warm_up = {name: take_medians(series) for name, series in crowd.series.items()}
        for series in crowd.series.values():
            series.clear()
        await crowd.sample(MINUTES)
        talking.cancel()
        await asyncio.wait([talking])
        await live.until(lambda: crowd.count_unanswered() == 0, ANSWER_S)
        assert await live.stop() == 0
        medians = {name: take_medians(series) for name, series in crowd.series.items()}
        for name, series in medians.items():
            growth, noise = measure_growth(series)
            print(f"{name}: growth {growth:.1f}, noise {noise:.1f}")  # noqa: T201  Asked for.
            print(f"  warm-up {warm_up[name]}\n  after it {series}")  # noqa: T201  Asked for.
        assert [name for name, series in medians.items() if is_growing(name, series)] == []
        assert live.query("PRAGMA integrity_check") == [("ok",)]
