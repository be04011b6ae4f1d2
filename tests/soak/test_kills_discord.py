"""Two hundred and fifty kills on Discord, in a direct chat and in a channel of a server, with 60 ms
between what Discord accepts and its response. Half of the restarts come when a nonce no longer keeps
a message from being posted again. Some of the messages in the direct chat ask for calls of writing tools."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.kill_storm import (
    MARK,
    TOKEN,
    KillStorm,
    answer_all,
    choose_seed,
    discord_place,
    open_system,
)
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.tool_caller import SHARE, ToolCaller

KILLS = 250
"""Together with the other files test_kills_*.py: 1,400."""
KILLS_PER_HOME = 50
SENTENCES = 60
"""A long answer has so many for each message, more than Discord shows in one of its messages."""

pytestmark = pytest.mark.timeout(2400)


def answer_at_length(body: dict[str, Any]) -> ModelReply:
    """Answer like `answer_all`, with many sentences about each token."""
    reply = answer_all(body)
    text = str(reply.blocks[-1].get("text", ""))
    sentences = [
        f"Sentence {number} says something about the message {token}."
        for token in TOKEN.findall(text)
        for number in range(SENTENCES)
    ]
    if not sentences:
        return reply
    block = {"type": "text", "text": "\n\n".join([text, *sentences])}
    return replace(reply, blocks=(block,), chunk_chars=100)


def list_long_damage(storm: KillStorm) -> list[str]:
    """Return the sentences that are missing, or that are there twice without a mark."""
    wrong = []
    for place in storm.places:
        shown = place.list_shown()
        lines = Counter(line for text in shown for line in text.splitlines())
        marked = sum(MARK in text for text in shown)
        for token in storm.said[place.letter]:
            counts = {
                lines[f"Sentence {number} says something about the message {token}."]
                for number in range(SENTENCES)
            }
            if 0 in counts:
                wrong.append(f"a part of the answer to {token} is missing")
            elif counts != {1}:
                wrong.append(f"the answer to {token} is doubled; there are {marked} marks")
        halves = [line for line in lines if line and not line.endswith((".", MARK))]
        wrong += [f"half a sentence: {line}" for line in halves]
    return wrong


@pytest.mark.parametrize("part", range(KILLS // KILLS_PER_HOME))
async def test_kills_while_discord_is_answered_lose_and_double_nothing(
    home: Path, part: int
) -> None:
    is_long = part == 0
    share = 0.0 if is_long else SHARE
    caller = ToolCaller(("a note", "a reminder"), share=share)
    async with open_system(home, answer_at_length if is_long else caller) as live:
        caller.live = live
        channel = await live.discord.channel("general")
        with (home / "mneme.toml").open("a") as settings:
            settings.write(f'[access]\nrooms = ["discord:{channel}"]\n')
        places = (
            discord_place(live, messages=(1, 2)),
            discord_place(live, channel, messages=(0, 2)),
        )
        storm = KillStorm(live=live, seed=choose_seed(), places=places, phrase=caller.phrase)
        await storm.blow(KILLS_PER_HOME)
        assert caller.list_damage() == [], storm.describe()
        await storm.assert_whole(list_long_damage(storm) if is_long else None)
