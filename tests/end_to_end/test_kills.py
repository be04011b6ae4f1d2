"""Three kills in the middle of traffic, eight in `make sweep`, and one in the middle of a delegated
task; a thousand are in tests/soak."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.kill_storm import MARK, KillStorm, answer_all
from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

pytestmark = pytest.mark.slow


@pytest.mark.both_engines
@pytest.mark.timeout(280)
@pytest.mark.parametrize("kills", [3, pytest.param(8, marks=pytest.mark.sweep)])
async def test_message_is_neither_lost_nor_answered_twice_when_the_process_is_killed(
    home: Path, kills: int
) -> None:
    async with LiveSystem.open(home, MessagesApi(answer_all, key=KEY)) as live:
        storm = KillStorm(live=live, seed=11)
        await storm.blow(kills)
        assert await storm.damage() == []
        assert len(storm.said["t"]) > kills


class Delegating:
    """Hands on what it is asked, and waits in the middle of the answer to that."""

    def __init__(self) -> None:
        self.hold = asyncio.Event()

    def __call__(self, body: dict[str, Any]) -> ModelReply:
        if "You work on one task" in json.dumps(body["system"]):
            return replace(
                ModelReply.say("The blue one sails.", chunk_chars=3), hold=self.hold, after_events=4
            )
        if not body.get("tools"):
            return ModelReply.say("A title")
        has_result = body["messages"][-1]["content"][0]["type"] == "tool_result"
        return (
            ModelReply.say("I cannot tell.")
            if has_result
            else ModelReply.call(("delegate", {"task": "Which ferry?"}))
        )


@pytest.mark.timeout(90)
async def test_a_kill_in_the_middle_of_a_delegated_task_leaves_the_conversation_whole(
    home: Path,
) -> None:
    async with LiveSystem.open(home, MessagesApi(Delegating(), key=KEY)) as live:
        await live.start()
        await live.types("which ferry sails?")
        await live.until(lambda: live.model.held == 1)
        await live.kill()
        await live.start()
        await live.until(lambda: any("I cannot tell." in line for line in live.printed))
        assert await live.stop() == 0
        rows = live.query(
            "SELECT is_delegated, role, text FROM messages JOIN sessions ON sessions.id = session_id"
        )
        assert [row for row in rows if row[0]] == [(1, "user", "Which ferry?")], (
            "it is not begun again"
        )
        assert [row[1] for row in rows if not row[0]] == ["user", "assistant", "tool", "assistant"]
        assert live.query("SELECT count(*) FROM sessions WHERE ended_at IS NULL") == [(1,)]
        assert live.model.refusals == []


class Noting:
    """Notes what it is asked to, and waits before it says so."""

    def __init__(self) -> None:
        self.hold = asyncio.Event()
        self.calls = 0

    def __call__(self, body: dict[str, Any]) -> ModelReply:
        if not body.get("tools"):
            return ModelReply.say("A title")
        if "tool_result" in json.dumps(body["messages"]):
            return ModelReply.say("Noted.", hold=self.hold)
        self.calls += 1
        arguments = {"target": "memory", "action": "add", "content": "Ana likes tea"}
        return ModelReply.call(("memory", arguments))


@pytest.mark.timeout(90)
async def test_scheduled_question_that_a_kill_interrupts_goes_on_after_its_tools(
    home: Path,
) -> None:
    model = Noting()
    async with LiveSystem.open(home, MessagesApi(model, key=KEY)) as live:
        await live.start()
        live.tells_telegram("/cron add in 1 second | note that Ana likes tea")
        await live.until(lambda: live.model.held == 1)
        await live.kill()
        await live.start()
        await live.until(lambda: live.model.held > 0)
        model.hold.set()
        await live.until(lambda: any("Noted." in text for text in live.telegram.texts(PERSON)))
        assert await live.stop() == 0
        assert model.calls == 1
        asked = "SELECT count(*) FROM messages WHERE text = 'note that Ana likes tea'"
        assert live.query(asked) == [(1,)]
        assert live.query("SELECT count(*) FROM sessions WHERE ended_at IS NULL") == [(2,)]
        assert live.model.refusals == []


@pytest.mark.timeout(90)
async def test_note_before_a_kill_has_its_receipt_and_one_undo_in_the_joint_answer_with_the_next_message(
    home: Path,
) -> None:
    model = Noting()
    async with LiveSystem.open(home, MessagesApi(model, key=KEY)) as live:
        await live.start()
        live.tells_telegram("Note that Ana likes tea")
        await live.until(lambda: live.model.held == 1)
        await live.kill()
        live.tells_telegram("And how are you?")
        await live.start()
        await live.until(lambda: "how are you" in json.dumps(live.model.requests[-1]["messages"]))
        model.hold.set()
        await live.until(lambda: any("Noted." in text for text in live.telegram.texts(PERSON)))
        (answer,) = (text for text in live.telegram.texts(PERSON) if "Noted." in text)
        assert "Noted: " in answer.replace("Noted.", "")
        answer_count = len(live.telegram.texts(PERSON))
        live.tells_telegram("/undo")
        await live.until(lambda: len(live.telegram.texts(PERSON)) > answer_count)
        assert await live.stop() == 0
        undone = live.telegram.texts(PERSON)[-1]
        assert "Note that Ana likes tea" in undone
        assert "Noted: " in undone


@pytest.mark.timeout(90)
async def test_question_whose_tools_ran_before_a_kill_is_answered_together_with_the_next_message(
    home: Path,
) -> None:
    hold = asyncio.Event()

    def answer_later(body: dict[str, Any]) -> ModelReply:
        return replace(answer_all(body), hold=hold if "tool_result" in json.dumps(body) else None)

    async with LiveSystem.open(home, MessagesApi(answer_later, key=KEY)) as live:
        await live.start()
        live.tells_telegram("message t1q3 please")
        await live.until(lambda: live.model.held == 1)
        await live.kill()
        live.tells_telegram("message t1q4 please")
        await live.start()
        await live.until(lambda: "t1q4" in json.dumps(live.model.requests[-1]["messages"]))
        hold.set()
        answer = "Answer to t1q3 t1q4."
        await live.until(lambda: live.telegram.texts(PERSON).count(answer) == 1)
        assert await live.stop() == 0
        roles = live.query("SELECT role FROM messages ORDER BY id")
        assert [role for (role,) in roles] == ["user", "assistant", "tool", "user", "assistant"]
        assert live.model.refusals == []


@pytest.mark.timeout(90)
async def test_first_message_after_a_start_that_a_kill_leaves_unconfirmed_is_shown_once(
    home: Path,
) -> None:
    """Nothing was seen in the chat since the start, so the place to look for it is a stored id."""
    async with LiveSystem.open(home, MessagesApi(answer_all, key=KEY)) as live:

        def list_reminders() -> list[str]:
            return [text for text in live.telegram.texts(PERSON) if "⏰" in text]

        await live.start()
        live.tells_telegram("/remind in 4 seconds tea")
        done_items = "SELECT 1 FROM outbox WHERE done_at IS NOT NULL"
        await live.until(lambda: live.query(done_items) != [])
        await live.kill()
        live.telegram.reply_delay_s = 60
        await live.start()
        await live.until(lambda: len(list_reminders()) == 1)
        await live.kill()
        live.telegram.reply_delay_s = 0
        await live.start()
        open_items = "SELECT 1 FROM outbox WHERE done_at IS NULL"
        await live.until(lambda: live.query(open_items) == [])
        assert await live.stop() == 0
        (reminder,) = list_reminders()
        assert MARK not in reminder
