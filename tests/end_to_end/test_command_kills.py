"""The process is killed before each write of a command that changes the last turns; done again
after the next start, it has changed them once."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.echo_model import said
from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WRITES = 30
"""More than a command has."""
SPREAD = 3
"""`make test` kills before every third write, and `make sweep` before each."""
WAITING = (
    "SELECT (SELECT count(*) FROM inbox) + (SELECT count(*) FROM outbox WHERE done_at IS NULL)"
)
SHOWN = (
    "SELECT text FROM messages WHERE kind = 'chat' AND role <> 'tool' AND text <> '' ORDER BY id"
)
UNDONE = "SELECT text FROM messages WHERE kind = 'undone' ORDER BY id"


class Brain:
    """Says for the how manieth time it answers a question; what it is to note it notes from the
    second time on."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()

    def __call__(self, body: dict[str, Any]) -> ModelReply:
        if not body.get("tools"):
            return ModelReply.say("A title")
        last = body["messages"][-1]["content"]
        if last[0]["type"] == "tool_result":
            return ModelReply.say("Noted.")
        text = said(last)
        self._asked[text] += 1
        if text.startswith("note") and self._asked[text] > 1:
            return ModelReply.call(
                ("memory", {"target": "memory", "action": "add", "content": text})
            )
        return ModelReply.say(f"{text}: answer {self._asked[text]}")


@asynccontextmanager
async def running(home: Path) -> AsyncIterator[LiveSystem]:
    async with LiveSystem.open(home, MessagesApi(Brain(), key=KEY)) as live:
        await live.start()
        yield live
        assert live.model.refusals == []


async def kills(
    live: LiveSystem,
    line: str,
    *earlier: str,
    before: str = "",
    tries: int = 0,
    first: int = 0,
    step: int = 1,
) -> AsyncIterator[int]:
    """Say `line` again and again, and kill the process `step` writes later each time.

    The first kill comes before the write number `first`. The tries end with the one that isn't
    killed. Each time, the lines `earlier` are said and state.db is changed with the statement
    `before`. ``{}`` in a line becomes the number of the try, from `tries`. Yields the number of
    tries so far, each time when all is answered.
    """
    for number, writes in enumerate(range(first, WRITES, step), tries):
        for text in earlier:
            await _said(live, text.format(number))
        live.change(before)
        live.kill_file.write_text(str(writes))
        is_killed = await _said(live, line.format(number))
        yield number + 1
        if not is_killed:
            return
    raise AssertionError("it has no end")


async def _said(live: LiveSystem, line: str) -> bool:
    """Whether the process was killed before all was answered; if so it is started again, and
    answers."""
    answers = len(live.telegram.texts(PERSON)) + 1

    def is_over() -> bool:
        # A late notice of an earlier line may come before this one is even fetched.
        is_stored = not live.telegram.updates
        is_answered = len(live.telegram.texts(PERSON)) >= answers
        return is_stored and is_answered and live.query(WAITING) == [(0,)]

    live.tells_telegram(line)
    await live.until(lambda: live.is_gone or is_over())
    is_killed = live.is_gone
    if is_killed:
        live.kill_file.unlink()
        await live.kill()
        await live.start()
        await live.until(is_over)
    return is_killed


@pytest.mark.sweep
async def test_undo_command_killed_at_any_point_undoes_exactly_one_exchange(home: Path) -> None:
    async with running(home) as live:
        async for many in kills(live, "/undo", "first {}", "second {}"):
            assert column(live, SHOWN)[-2:] == [f"first {many - 1}", f"first {many - 1}: answer 1"]
            assert column(live, UNDONE)[-2:] == [
                f"second {many - 1}",
                f"second {many - 1}: answer 1",
            ]
            assert len(column(live, UNDONE)) == 2 * many
        assert many > 3


@pytest.mark.sweep
async def test_undo_back_puts_the_earlier_answer_in_the_place_of_the_later(home: Path) -> None:
    async with running(home) as live:
        async for many in kills(live, "/undo back", "first {}", "/retry"):
            assert column(live, SHOWN)[-2:] == [f"first {many - 1}", f"first {many - 1}: answer 1"]
            assert column(live, UNDONE)[-1] == f"first {many - 1}: answer 2"
            assert len(column(live, UNDONE)) == many
        assert many > 3


@pytest.mark.sweep
async def test_retry_command_killed_at_any_point_answers_the_last_question_once_more(
    home: Path,
) -> None:
    async with running(home) as live:
        async for many in kills(live, "/retry", "first {}", "second {}"):
            assert column(live, SHOWN)[-3] == f"first {many - 1}: answer 1"
            assert column(live, SHOWN)[-2] == f"second {many - 1}"
            assert len(column(live, SHOWN)) == 4 * many
            assert column(live, UNDONE)[-1] == f"second {many - 1}: answer 1"
            assert len(column(live, UNDONE)) == many
        assert many > 3


@pytest.mark.sweep
async def test_retry_asks_a_question_anew_that_its_platform_does_not_name(home: Path) -> None:
    without = "UPDATE messages SET external_id = NULL WHERE id = (SELECT MAX(id) FROM messages WHERE role = 'user')"
    async with running(home) as live:
        async for many in kills(live, "/retry", "first {}", "second {}", before=without):
            assert column(live, SHOWN)[-3] == f"first {many - 1}: answer 1"
            assert column(live, SHOWN)[-2] == f"second {many - 1}"
            assert len(column(live, SHOWN)) == 4 * many
            assert column(live, UNDONE)[-2:] == [
                f"second {many - 1}",
                f"second {many - 1}: answer 1",
            ]
            assert len(column(live, UNDONE)) == 2 * many
        assert many > 3


@pytest.mark.parametrize("step", [SPREAD, pytest.param(1, marks=pytest.mark.sweep)])
async def test_retry_killed_at_any_write_runs_its_tools_once(home: Path, step: int) -> None:
    unanswered = "UPDATE messages SET kind = 'notice' WHERE id = (SELECT MAX(id) FROM messages)"
    async with running(home) as live:
        async for many in kills(live, "/retry", "note {}", before=unanswered, step=step):
            assert column(live, SHOWN)[-2:] == [f"note {many - 1}", "Noted."]
            assert column(live, UNDONE) == []
            assert column(
                live, "SELECT count(*) FROM messages WHERE tool_name = 'memory' AND role <> 'tool'"
            ) == [many]
        assert many > 3


@pytest.mark.sweep
async def test_branch_killed_at_any_write_opens_one_session(home: Path) -> None:
    async with running(home) as live:
        async for many in kills(live, "/branch", "first {}"):
            sessions = live.query(
                "SELECT id, parent_id, end_reason, system_prompt FROM sessions ORDER BY id"
            )
            # PostgreSQL leaves out the id of a session whose transaction was killed.
            numbers = {id_: number for number, (id_, *_) in enumerate(sessions, 1)}
            opened = [
                (number or None, "branch" if number < many else None) for number in range(many + 1)
            ]
            assert [(numbers.get(parent), end) for _, parent, end, _ in sessions] == opened
            assert len({prompt for *_, prompt in sessions}) == 1
        assert many > 3


def column(live: LiveSystem, sql: str) -> list[object]:
    return [row[0] for row in live.query(sql)]
