"""A hundred hostile texts as message, answer, document and import, and in calls of tools: none
holds the event loop, and another person's `/whoami` is answered soon.

The figures of each text are printed; ``pytest -rP`` shows them."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from core.types import Json
from tests.fixtures import hostile_texts
from tests.fixtures.command_line import process
from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.loop_watch import measure_fixed_work
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

OTHER = 7
WHOAMI_S = 0.300
ANSWER_S = 120.0
NEW_CONVERSATION = ("New conversation.", "This conversation is already new.")
"""Answers to `/new`: the second one if only commands came before."""
PAUSE_S = 0.05
"""Between two questions of the other person."""
WINDOW_TOKENS = 100_000_000
CHUNK_CHARS = 400
OPTIONS = f"""
[access]
people = ["telegram:{OTHER}"]
[limits]
turns_per_minute = 100000
commands_per_minute = 100000
owner_day = {{ money = 0, tokens = 0 }}
"""
MOMENT = "2030-01-07T10:00"
TYPED_TASK = "call mum"
"""A task that the person typed is also compared with their hostile message before, by its signs
and accents."""
GROUPS: Mapping[str, Mapping[str, str]] = {
    "marks": hostile_texts.MARKS_TEXTS,
    "scripts": hostile_texts.SCRIPT_TEXTS,
    "signs": hostile_texts.SIGN_TEXTS,
    "markup": hostile_texts.MARKUP_TEXTS,
    "references": hostile_texts.REFERENCE_TEXTS,
    "brackets": hostile_texts.BRACKET_TEXTS,
    "meanings": hostile_texts.MEANING_TEXTS,
}


class HostileTalk:
    """One person sends hostile texts, another one asks `/whoami` all the time."""

    def __init__(self, live: LiveSystem) -> None:
        self.live = live
        self.replies = [ModelReply.say("Hello")]
        """What the model answers from now on. The last answer is repeated."""
        self.waits_s: list[float] = []
        self._fixed_work_s = min(measure_fixed_work() for _ in range(10))

    def let_model_say(self, text: str, *calls: tuple[str, Json]) -> None:
        """Let the model make these calls of tools, and then answer with `text`."""
        self.replies = [ModelReply.call(call, chunk_chars=CHUNK_CHARS) for call in calls]
        self.replies.append(ModelReply.say(text, chunk_chars=CHUNK_CHARS))

    def answer_as_model(self, body: Json) -> ModelReply | str:
        if not body.get("tools"):
            return "A title"
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    async def send(self, text: str) -> None:
        """Send a text, and wait until the chat has one more finished answer."""
        count = len(self.live.telegram.messages(PERSON))
        self.live.tells_telegram(text)
        await self.live.until(lambda: len(self.live.telegram.messages(PERSON)) > count, ANSWER_S)

    async def tell(self, text: str, end: str) -> None:
        """Send a text, and wait for an answer of the model that ends with `end`."""
        await self._send_until(text, lambda answer: answer.rstrip().endswith(end))

    async def begin_conversation(self) -> None:
        """Send `/new`, and wait for its answer. A late notice may come before the answer."""
        await self._send_until("/new", lambda answer: answer.startswith(NEW_CONVERSATION))

    async def tell_with_calls(self, text: str, words: str) -> None:
        """Send a text, and wait until the model made its calls and an answer has `words`."""
        await self._send_until(text, lambda answer: len(self.replies) == 1 and words in answer)

    async def _send_until(self, text: str, is_awaited: Callable[[str], bool]) -> None:
        """Send a text, and wait for a message of the bot that comes after it."""
        telegram = self.live.telegram
        first_id = max(telegram.history.get(PERSON, {}), default=0) + 1
        self.live.tells_telegram(text)

        def is_answered() -> bool:
            texts = zip(telegram.messages(PERSON), telegram.texts(PERSON), strict=True)
            return any(
                is_awaited(answer) for message, answer in texts if message["message_id"] > first_id
            )

        await self.live.until(is_answered, ANSWER_S)

    async def measure_other_person(self) -> None:
        """Ask `/whoami` as the other person, one after another."""
        while True:
            wall_s, cpu_s = time.monotonic(), self._cpu_s()
            await self._ask_as_other_person()
            # The time says little on a busy machine, and the CPU counts what runs beside it.
            wait_s = min(time.monotonic() - wall_s, self._cpu_s() - cpu_s)
            if wait_s > WHOAMI_S:
                # How much slower the machine works now than at its best.
                wait_s /= max(1.0, measure_fixed_work() / self._fixed_work_s)
            self.waits_s.append(wait_s)
            await asyncio.sleep(PAUSE_S)

    async def _ask_as_other_person(self) -> None:
        telegram = self.live.telegram
        asked = telegram.user_says(OTHER, "/whoami")["message"]["message_id"]
        chat = telegram.history[OTHER]
        # Only the newest message is looked at, because this chat has thousands of them.
        await telegram.wait_for(lambda: next(reversed(chat)) > asked, ANSWER_S)

    def _cpu_s(self) -> float:
        """The CPU seconds of the process until now."""
        assert self.live.process is not None
        fields = Path(f"/proc/{self.live.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def send_as_message(talk: HostileTalk, name: str, text: str) -> None:
    await talk.begin_conversation()
    talk.let_model_say(f"I have read {name}")
    if text.startswith("/"):
        await talk.send(text)
    else:
        await talk.tell(text, name)


async def send_with_tool_calls(talk: HostileTalk, name: str, text: str) -> None:
    """The model sets a reminder that the person typed and a note, and then both with the hostile
    text."""
    await send_as_message(talk, name, text)
    talk.let_model_say(
        f"I have noted {name}",
        ("reminder", {"action": "add", "moment": MOMENT, "task": TYPED_TASK}),
        ("memory", {"target": "memory", "action": "add", "content": f"Mum asked about {name}."}),
        ("reminder", {"action": "add", "moment": MOMENT, "task": text}),
        ("memory", {"target": "memory", "action": "add", "content": text}),
    )
    request = f"Remind me on 7 January 2030 at 10:00 to {TYPED_TASK}."
    await talk.tell_with_calls(request, f"I have noted {name}")


async def send_as_answer(talk: HostileTalk, name: str, text: str) -> None:
    await talk.begin_conversation()
    talk.let_model_say(f"{text}\n\nthis was {name}")
    if "memory fences" in name:
        # The model repeats a memory block that has no end, so all of it is removed.
        await talk.send("Tell me")
    else:
        await talk.tell("Tell me", name)


async def send_as_document(talk: HostileTalk, name: str, text: str) -> None:
    (talk.live.home / "AGENTS.md").write_text(text, encoding="utf-8")
    await talk.begin_conversation()
    talk.let_model_say(f"I have read {name}")
    await talk.tell("Tell me", name)


async def send_as_import(talk: HostileTalk, name: str, text: str) -> None:
    path = talk.live.home / "history.jsonl"
    line = {"session": name, "role": "user", "text": text, "at": "2026-05-03T09:00:00+01:00"}
    path.write_text(json.dumps(line), encoding="utf-8")
    environ = {"MNEME_HOME": str(talk.live.home)}
    result = await asyncio.to_thread(process, talk.live.home, ("import", str(path)), b"", environ)
    if text.isspace():
        assert '"text" is empty' in result.stderr
        return
    assert result.returncode == 0, result.stderr
    talk.let_model_say(f"I have found {name}")
    await talk.tell("When did we speak of the ferry?", name)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(
    "send",
    [send_as_message, send_with_tool_calls, send_as_answer, send_as_document, send_as_import],
)
async def test_hostile_text_of_one_person_does_not_delay_answers_to_others(
    home: Path, group: str, send: Callable[[HostileTalk, str, str], Awaitable[None]]
) -> None:
    model = MessagesApi(
        lambda body: talk.answer_as_model(body), key=KEY, window_tokens=WINDOW_TOKENS
    )
    slow: list[str] = []
    async with LiveSystem.open(home, model, OPTIONS) as live:
        talk = HostileTalk(live)
        await live.start()
        await talk.tell("Hello", "Hello")
        for name, text in GROUPS[group].items():
            talk.waits_s.clear()
            held = live.loop_log.read_text() if live.loop_log.exists() else ""
            asking = asyncio.create_task(talk.measure_other_person())
            try:
                await send(talk, name, text)
            finally:
                asking.cancel()
                await asyncio.wait([asking])
            newly_held = live.loop_log.read_text() if live.loop_log.exists() else ""
            worst_s = max(talk.waits_s, default=0.0)
            figures = f"{name}: whoami {worst_s * 1000:.0f} ms at worst of {len(talk.waits_s)}"
            print(figures, newly_held[len(held) :])  # noqa: T201  The figures are asked for.
            if worst_s > WHOAMI_S:
                slow.append(figures)
        if send is send_with_tool_calls:
            assert live.query(f"SELECT 1 FROM jobs WHERE text = '{TYPED_TASK}'")
        assert await live.stop() == 0
    assert slow == []
