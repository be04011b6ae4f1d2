"""The verdict about a proposed note is added to the answer of its turn, also after a kill."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from core.agent.tool_runner import NOT_DONE
from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TYPED = "Mein Mann arbeitet bei der Bahn"
NOTE = "User's husband works for the railway."
ANSWER = "Gut zu wissen."
RECEIPT = f"✓ Noted: “{NOTE}”"
QUESTION = f"Waiting for your tap, number 1: a note: add “{NOTE}”."


class Judge:
    """A model that notes what was said, and a helper that gives a verdict."""

    def __init__(self, verdict: str) -> None:
        self.verdict = verdict
        self.judged = 0
        self.is_silent = False

    def __call__(self, body: dict[str, Any]) -> ModelReply:
        if not body.get("tools"):
            if "follows" not in str(body["system"]):
                return ModelReply.say("[]")
            self.judged += 1
            # After a kill, the notes of several messages may be judged together.
            notes = re.findall(r'{"note": (\d+),', str(body["messages"][-1]["content"]))
            verdicts = [{"note": int(note), "follows": self.verdict} for note in notes]
            return ModelReply.say(json.dumps(verdicts))
        last = body["messages"][-1]["content"]
        results = [str(block["content"]) for block in last if block["type"] == "tool_result"]
        if results and NOT_DONE not in results:
            return ModelReply.say(ANSWER)
        if results:
            last = next(
                message["content"]
                for message in reversed(body["messages"])
                if TYPED in str(message["content"]) and message["role"] == "user"
            )
        if TYPED not in str(last):
            return ModelReply.say("Ok.")
        numbers = re.findall(r"Bahn (\d+)", str(last))
        content = NOTE.replace("railway.", f"railway, line {numbers[-1]}.") if numbers else NOTE
        arguments = {"target": "memory", "action": "add", "content": content}
        return ModelReply.call(("memory", arguments))


@asynccontextmanager
async def living(home: Path, verdict: str) -> AsyncIterator[tuple[LiveSystem, Judge]]:
    judge = Judge(verdict)
    async with LiveSystem.open(home, MessagesApi(judge, key=KEY)) as live:
        await live.start()
        yield live, judge


def telegram(live: LiveSystem) -> list[str]:
    return list(live.telegram.texts(PERSON))


def discord(live: LiveSystem) -> list[str]:
    return live.discord.said(live.channel)


Shown = Callable[[LiveSystem], list[str]]


async def say(live: LiveSystem, shown: Shown) -> None:
    if shown is telegram:
        live.tells_telegram(TYPED)
    else:
        await live.tells_discord(TYPED)


@pytest.mark.parametrize("shown", [telegram, discord])
@pytest.mark.parametrize(("verdict", "line"), [("yes", RECEIPT), ("unclear", QUESTION)])
async def test_verdict_is_added_to_the_answer_on_each_platform(
    home: Path, shown: Shown, verdict: str, line: str
) -> None:
    async with living(home, verdict) as (live, _):
        await say(live, shown)
        await live.until(lambda: any(line in text for text in shown(live)))
        answers = [text for text in shown(live) if ANSWER in text]
        assert len(answers) == 1, shown(live)
        assert answers[0].startswith(f"{ANSWER}\n\n{line}")
        assert sum(NOTE in text for text in shown(live)) == 1


async def test_yes_in_the_chat_confirms_no_question_that_was_added_by_an_edit(home: Path) -> None:
    async with living(home, "unclear") as (live, _):
        live.tells_telegram(TYPED)
        await live.until(lambda: any(QUESTION in text for text in telegram(live)))
        live.tells_telegram("yes")
        await live.until(lambda: any("your yes is for" in text for text in telegram(live)))
        assert live.query("SELECT COUNT(*) FROM note_changes") == [(0,)]
        assert live.query("SELECT COUNT(*) FROM pending_notes") == [(1,)]


def note_of(number: int) -> str:
    """The end of the note that the model takes of a message with a number."""
    return f"the railway, line {number}."


@pytest.mark.parametrize(
    ("verdict", "line", "notice", "step"),
    [
        pytest.param("yes", "✓ Noted", "Noted", 1, marks=pytest.mark.sweep),
        pytest.param(
            "no", "Waiting for your tap", "Shall I note this?", 1, marks=pytest.mark.sweep
        ),
    ],
)
async def test_verdict_killed_at_any_write_is_shown_once_in_the_answer(
    home: Path, verdict: str, line: str, notice: str, step: int
) -> None:
    async with living(home, verdict) as (live, judge):
        writes = edits = 0

        def list_shown() -> list[str]:
            return [text for text in telegram(live) if note_of(writes) in text]

        is_killed = True
        while is_killed:
            live.kill_file.write_text(str(writes))
            live.tells_telegram(f"{TYPED} {writes}")
            await live.until(lambda: live.is_gone or bool(list_shown()))
            is_killed = live.is_gone
            if is_killed:
                live.kill_file.unlink()
                await live.kill()
                await live.start()
                await live.until(lambda: bool(list_shown()))
            assert len(list_shown()) == 1, (writes, telegram(live))
            (shown,) = list_shown()
            if shown.startswith(ANSWER):
                edits += 1
                assert line in shown, writes
            else:
                # The kill came before the answer counted as delivered.
                assert shown.startswith(notice), writes
            writes += step
        assert judge.judged > 0
        assert edits > 6 // step
