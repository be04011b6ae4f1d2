"""Two hundred and fifty kills while the model calls tools that write: notes, facts, reminders and
skills. Each call takes effect once, and the model is never told the opposite of what happened."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from core.agent.prompt import INTERRUPTED_RESULT
from core.agent.tool_runner import NOT_DONE, STOPPED_NOT_DONE
from tests.fixtures.echo_model import FENCE
from tests.fixtures.kill_storm import (
    TOKEN,
    KillStorm,
    Place,
    choose_seed,
    discord_place,
    open_system,
    telegram_place,
)
from tests.fixtures.live_system import LiveSystem
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.tool_calls import CALLS, ToolCall

KILLS = 250
"""Together with the other files test_kills_*.py: 1,400."""
MIXES = (
    ("a note",),
    ("a fact",),
    ("a reminder",),
    ("a skill",),
    ("a note", "a fact", "a reminder"),
)
"""The kinds of calls in each home. A skill waits for a yes if the conversation has anything but what
a person typed there."""
ROOM = "[memory]\nmemory_chars = 20000\n[skills]\nindex_chars = 40000\n"
"""Room for the notes and skills of a home."""

pytestmark = pytest.mark.timeout(2400)


class ToolCaller:
    """A model that calls a tool for each sentence of a person, again if it wasn't carried out, and
    then names all sentences that it answers.

    `faults` has a sentence for each result that isn't true.
    """

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.live: LiveSystem | None = None

    def __call__(self, body: dict[str, Any]) -> ModelReply:
        if not body.get("tools"):
            return ModelReply.say("[]")
        turn = _current_turn(body["messages"])
        sentences = _read_sentences(turn)
        done = self._judge_results(turn)
        missing = [(call, token) for call, token in sentences if token not in done]
        if missing:
            return ModelReply.call(
                *(
                    (call.tool, call.arguments(call.text.format(token), token))
                    for call, token in missing
                )
            )
        tokens = " ".join(token for _, token in sentences)
        return ModelReply.say(f"Answer to {tokens}.", chunk_chars=7)

    def _judge_results(self, turn: list[dict[str, Any]]) -> set[str]:
        """Return the tokens whose calls are said to be done, and note the results that aren't
        true now."""
        tokens: dict[str, str] = {}
        done: set[str] = set()
        for block in _list_blocks(turn):
            if block["type"] == "tool_use":
                (tokens[block["id"]],) = set(TOKEN.findall(str(block["input"])))
            elif block["type"] == "tool_result":
                token, result = tokens[block["tool_use_id"]], str(block.get("content"))
                is_latest = block in turn[-1]["content"]
                if is_latest:
                    self._judge(token, result)
                if not is_denial(result):
                    done.add(token)
        return done

    def _judge(self, token: str, result: str) -> None:
        """Note a fault if a result doesn't say what is true."""
        assert self.live is not None
        count = count_effects(self.live, token)
        if is_denial(result) and count:
            self.faults.append(f"{token} was denied, and happened")
        elif INTERRUPTED_RESULT in result:
            self.faults.append(f"{token}: {result}")
        elif not is_denial(result) and count != 1:
            self.faults.append(f"{token} has {count} effects, and the model was told: {result}")


def is_denial(result: str) -> bool:
    """Return whether a result says that its call wasn't carried out."""
    return NOT_DONE in result or STOPPED_NOT_DONE in result


def count_effects(live: LiveSystem, token: str) -> int:
    """Return how often the call for a sentence has taken effect."""
    return sum(call.count(live, token) for call in CALLS.values())


def _current_turn(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages after the last complete answer."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        has_calls = any(block["type"] == "tool_use" for block in _list_blocks([message]))
        if message["role"] == "assistant" and not has_calls:
            return messages[index + 1 :]
    return messages


def _list_blocks(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for message in messages:
        content = message["content"]
        blocks += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return blocks


def _read_sentences(turn: list[dict[str, Any]]) -> list[tuple[ToolCall, str]]:
    """Return the calls that people asked for in a turn, each with its token."""
    texts = [
        block["text"]
        for block in _list_blocks([message for message in turn if message["role"] == "user"])
        if block["type"] == "text" and not block["text"].startswith(FENCE)
    ]
    sentences: list[tuple[ToolCall, str]] = []
    for call in CALLS.values():
        pattern = re.escape(call.text).replace(r"\{\}", rf"({TOKEN.pattern})")
        sentences += [(call, token) for token in re.findall(pattern, "\n".join(texts))]
    return sentences


@pytest.mark.parametrize("names", MIXES, ids=" and ".join)
async def test_tool_calls_interrupted_by_kills_take_effect_once_and_are_reported_correctly(
    home: Path, names: tuple[str, ...]
) -> None:
    def phrase_wish(token: str, chance: random.Random) -> str:
        return CALLS[chance.choice(names)].text.format(token)

    caller = ToolCaller()
    async with open_system(home, caller, ROOM) as live:
        caller.live = live
        places: tuple[Place, ...] = (telegram_place(live, messages=(1, 2)),)
        if "a skill" not in names:
            places += (discord_place(live, messages=(0, 1)),)
        storm = KillStorm(live=live, seed=choose_seed(), places=places, phrase=phrase_wish)
        await storm.blow(KILLS // len(MIXES))
        tokens = [token for said in storm.said.values() for token in said]
        counts = {token: count_effects(live, token) for token in tokens}
        assert caller.faults == [], storm.describe()
        assert {token: count for token, count in counts.items() if count != 1} == {}
        await storm.assert_whole()
