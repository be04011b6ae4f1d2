"""The process is killed before each write of a turn in which the model calls a tool that writes.

After the next start the tool's effect is there once, and the model was told the truth about it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from core.agent.prompt import INTERRUPTED_RESULT
from core.agent.tool_runner import ALREADY_DONE, NOT_DONE, STILL_WAITING
from core.types import Json
from tests.end_to_end.test_command_kills import SPREAD, column, kills
from tests.fixtures.echo_model import said
from tests.fixtures.live_system import KEY, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.tool_calls import CALLS, ToolCall, memory_file

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

MAX_PASSES = 4

WAITING_REMINDER = ToolCall(
    "My friend sent me this:\n> Don't forget the tea at 9\nWhat do you say, number {}",
    "reminder",
    lambda text, number: {"action": "add", "moment": "2030-01-01T09:00", "task": f"tea {number}"},
    lambda live, number: len(
        live.query(f"SELECT 1 FROM pending_notes WHERE operations LIKE '%tea {number}\"%'")
    ),
)
"""A reminder that no person asked for, so it waits for a yes."""
HAND_EDITS = "SELECT after FROM note_changes WHERE action = 'edited'"


class Caller:
    """A model that calls a tool, again if it wasn't carried out, and then says "Done."."""

    def __init__(self, call: ToolCall) -> None:
        self._call = call
        self.live: LiveSystem | None = None
        self.results: list[str] = []
        # Results that said something else than what had happened by then.
        self.untruths: list[str] = []

    def __call__(self, body: dict[str, Any]) -> ModelReply:
        if not body.get("tools"):
            return ModelReply.say("[]")
        assert self.live is not None
        text = next(
            said(message["content"])
            for message in reversed(body["messages"])
            if message["role"] == "user" and message["content"][0]["type"] != "tool_result"
        )
        (number,) = re.findall(r"\d+$", text)
        last = body["messages"][-1]["content"]
        result = next((block for block in last if block["type"] == "tool_result"), None)
        if result is not None:
            content = str(result.get("content"))
            self.results.append(content)
            if self._call.count(self.live, number) != (0 if content == NOT_DONE else 1):
                self.untruths.append(content)
            if content != NOT_DONE:
                return ModelReply.say("Done.")
        return ModelReply.call((self._call.tool, self._call.arguments(text, number)))


@asynccontextmanager
async def calling(home: Path, call: ToolCall) -> AsyncIterator[tuple[LiveSystem, Caller]]:
    caller = Caller(call)
    async with LiveSystem.open(home, MessagesApi(caller, key=KEY)) as live:
        caller.live = live
        await live.start()
        yield live, caller
        assert live.model.refusals == []
        assert caller.untruths == []


def list_kill_cases(names: Iterable[str], kept: str) -> list[ParameterSet]:
    """Return a name with a spread of kills for `make test`, and all with every kill for sweeps."""
    every = [pytest.param(name, 1, id=name, marks=pytest.mark.sweep) for name in names]
    return [pytest.param(kept, SPREAD, id=f"{kept}, some writes"), *every]


async def kill_before_effects(
    live: LiveSystem, results: list[str], *lines: str, step: int
) -> AsyncIterator[int]:
    """Kill as `kills` does, until a kill has come between a call and its effect.

    Each pass begins one write later. Work after earlier turns writes, too. On a busy machine the
    passes over all writes may therefore miss that moment, and others follow.
    """
    count = 0
    for number in range(MAX_PASSES * step):
        earlier = count
        async for count in kills(live, *lines, tries=earlier, first=number % step, step=step):
            yield count
        if NOT_DONE in results:
            return
        live.kill_file.unlink(missing_ok=True)
        await live.kill()
        await live.start()


@pytest.mark.parametrize(("name", "step"), list_kill_cases(CALLS, "a note"))
async def test_tool_killed_at_any_write_takes_effect_once_and_is_reported_truly(
    home: Path, name: str, step: int
) -> None:
    call = CALLS[name]
    async with calling(home, call) as (live, caller):
        tries = 0
        async for tries in kill_before_effects(live, caller.results, call.text, step=step):
            assert call.count(live, str(tries - 1)) == 1, caller.results
        assert tries > 3
        assert NOT_DONE in caller.results
        assert INTERRUPTED_RESULT not in caller.results
        assert column(live, HAND_EDITS) == []
        assert STILL_WAITING not in caller.results


async def test_tool_killed_after_its_change_is_stored_is_not_called_done_while_it_waits_for_a_yes(
    home: Path,
) -> None:
    async with calling(home, WAITING_REMINDER) as (live, caller):
        live.kill_file.write_text("INTO pending_notes")
        live.tells_telegram(WAITING_REMINDER.text.format(1))
        await live.until(lambda: live.is_gone)
        live.kill_file.unlink()
        await live.kill()
        await live.start()
        await live.until(lambda: caller.results != [])
        assert caller.results == [STILL_WAITING]
        assert WAITING_REMINDER.count(live, "1") == 1
        assert live.query("SELECT 1 FROM jobs") == []


async def test_tool_killed_after_its_change_is_stored_is_called_done(home: Path) -> None:
    call = CALLS["a reminder"]
    async with calling(home, call) as (live, caller):
        live.kill_file.write_text("INTO jobs")
        live.tells_telegram(call.text.format(1))
        await live.until(lambda: live.is_gone)
        live.kill_file.unlink()
        await live.kill()
        await live.start()
        await live.until(lambda: caller.results != [])
        assert caller.results == [ALREADY_DONE]
        assert call.count(live, "1") == 1


@dataclass(frozen=True)
class Change:
    """What a person says about the effect of an earlier call, with a number for ``{}``."""

    # The key in CALLS of the call that makes what is changed.
    earlier: str
    text: str
    tool: str
    arguments: Callable[[LiveSystem, str], Json]
    # Whether the change was made, by its number.
    is_made: Callable[[LiveSystem, str], bool]
    # How often a change is stored, by its number.
    count: Callable[[LiveSystem, str], int]


def read_number(live: LiveSystem, statement: str) -> int:
    ((number,),) = live.query(statement)
    return int(str(number))


def count_patches(live: LiveSystem, number: str) -> int:
    statement = (
        f"SELECT 1 FROM note_changes WHERE target LIKE 'skill:%skill-{number}:%' AND before <> ''"
    )
    return len(live.query(statement))


def has_skill(live: LiveSystem, number: str, words: str) -> bool:
    paths = live.home.glob(f"**/skill-{number}/SKILL.md")
    return any(words in path.read_text() for path in paths)


CHANGES = {
    "a changed note": Change(
        "a note",
        "Change the note that I like tea {0}: I like coffee {0}",
        "memory",
        lambda live, number: {
            "target": "memory",
            "action": "replace",
            "old_text": f"I like tea {number}",
            "content": f"I like coffee {number}",
        },
        lambda live, number: (
            f"I like coffee {number}\n" in memory_file(live) + "\n"
            and f"I like tea {number}\n" not in memory_file(live) + "\n"
        ),
        lambda live, number: len(
            live.query(
                "SELECT 1 FROM note_changes WHERE action = 'replace' "
                f"AND before LIKE '%I like tea {number}'"
            )
        ),
    ),
    "a removed reminder": Change(
        "a reminder",
        "Remove the reminder to buy tea {}",
        "reminder",
        lambda live, number: {
            "action": "remove",
            "job_id": read_number(live, f"SELECT id FROM jobs WHERE text = 'tea {number}'"),
        },
        lambda live, number: (
            live.query(f"SELECT ended_at IS NOT NULL FROM jobs WHERE text = 'tea {number}'")
            == [(1,)]
        ),
        lambda live, number: 1,
    ),
    "a removed fact": Change(
        "a fact",
        "Remove the fact that my bike has the number {}",
        "facts",
        lambda live, number: {
            "mode": "remove",
            "fact_id": read_number(
                live,
                f"SELECT id FROM facts WHERE content = 'My bike has the number {number}'",
            ),
        },
        lambda live, number: (
            live.query(
                "SELECT valid_to IS NOT NULL FROM facts "
                f"WHERE content = 'My bike has the number {number}'"
            )
            == [(1,)]
        ),
        lambda live, number: len(
            live.query(
                "SELECT 1 FROM fact_changes JOIN facts ON facts.id = fact_id WHERE "
                f"action = 'remove' AND facts.content = 'My bike has the number {number}'"
            )
        ),
    ),
    "a changed skill": Change(
        "a skill",
        "Change “Open the door” in the skill number {0} to “Close the door {0}”",
        "skill_manage",
        lambda live, number: {
            "action": "patch",
            "name": f"skill-{number}",
            "old_text": "Open the door",
            "content": f"Close the door {number}",
        },
        lambda live, number: has_skill(live, number, f"Close the door {number}"),
        lambda live, number: count_patches(live, number),
    ),
}


class Changer:
    """A model that first makes what is changed, and then changes it until that was carried out."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self.live: LiveSystem | None = None
        self.results: list[str] = []
        # Results that said something else than what had happened by then.
        self.untruths: list[str] = []

    def __call__(self, body: dict[str, Any]) -> ModelReply:
        if not body.get("tools"):
            return ModelReply.say("[]")
        assert self.live is not None
        text = next(
            said(message["content"])
            for message in reversed(body["messages"])
            if message["role"] == "user" and message["content"][0]["type"] != "tool_result"
        )
        (number,) = set(re.findall(r"\d+\b", text.partition("9:00")[2] or text))
        earlier = CALLS[self._change.earlier]
        is_earlier = text == earlier.text.format(number)
        last = body["messages"][-1]["content"]
        result = next((block for block in last if block["type"] == "tool_result"), None)
        if result is not None:
            content = str(result.get("content"))
            if not is_earlier:
                self.results.append(content)
                if (content == NOT_DONE) == self._change.is_made(self.live, number):
                    self.untruths.append(content)
            if content != NOT_DONE:
                return ModelReply.say("Done.")
        if is_earlier:
            return ModelReply.call((earlier.tool, earlier.arguments(text, number)))
        return ModelReply.call((self._change.tool, self._change.arguments(self.live, number)))


@pytest.mark.sweep
@pytest.mark.parametrize("name", CHANGES)
async def test_tool_killed_at_any_write_of_a_change_makes_it_once_and_is_reported_truly(
    home: Path, name: str
) -> None:
    change = CHANGES[name]
    changer = Changer(change)
    async with LiveSystem.open(home, MessagesApi(changer, key=KEY)) as live:
        changer.live = live
        await live.start()
        tries = 0
        lines = change.text, CALLS[change.earlier].text
        async for tries in kill_before_effects(live, changer.results, *lines, step=1):
            number = str(tries - 1)
            assert change.is_made(live, number), changer.results
            assert change.count(live, number) == 1, changer.results
        assert live.model.refusals == []
        assert tries > 3
        assert NOT_DONE in changer.results
        assert changer.untruths == []
        assert column(live, HAND_EDITS) == []
