"""The real process on Telegram: few calls, no bubble without words, and nothing that makes it
deaf."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from gateway.texts.catalog import ENGLISH as texts
from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.media_samples import make_photo
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

pytestmark = pytest.mark.slow

WORDS = " ".join(f"word{number}" for number in range(40))
UNCOUNTED = {"getUpdates", "getMe", "setMyCommands", "sendMessageDraft"}
GROUP = -200


def calls(live: LiveSystem) -> list[str]:
    return [name for name, _ in live.telegram.calls if name not in UNCOUNTED]


async def test_streamed_telegram_answer_makes_few_calls_and_no_empty_message(home: Path) -> None:
    may_end = asyncio.Event()

    def answer(body: dict[str, Any]) -> ModelReply:
        if not body.get("tools"):
            return ModelReply.say("A title")
        return ModelReply.say(WORDS, after_events=12, hold=may_end)

    rooms = f'[access]\nrooms = ["telegram:{GROUP}"]\n'
    async with LiveSystem.open(home, MessagesApi(answer, key=KEY), rooms) as live:
        telegram = live.telegram
        telegram.group(GROUP)
        await live.start()
        live.tells_telegram("/whoami")
        await live.until(lambda: len(telegram.texts(PERSON)) == 1)
        assert calls(live) == ["sendMessage"]

        live.tells_telegram("Tell me")
        await live.until(lambda: bool(telegram.drafts))
        may_end.set()
        await live.until(lambda: WORDS in telegram.texts(PERSON))
        assert calls(live).count("sendMessage") == 2, "the draft became the only message"
        assert len(calls(live)) <= 1 + 4

        before = len(calls(live))
        introduction = texts.INTRODUCTION.replace("`", "")
        may_end.clear()
        telegram.user_says(GROUP, "@mneme_bot tell me", user_id=PERSON)
        await live.until(lambda: len(telegram.texts(GROUP)) == 2)
        may_end.set()
        await live.until(lambda: WORDS in telegram.texts(GROUP))
        assert {WORDS, introduction} == set(telegram.texts(GROUP))
        assert len(calls(live)) - before <= 4 + 1, "the introduction is one call"
        shown = [text for _, text in telegram.drafts]
        shown += [
            call["text"]
            for name in ("sendMessage", "editMessageText")
            for call in telegram.called(name)[1:]
            if call["text"] != introduction
        ]
        assert all(WORDS.startswith(text) for text in shown), shown


async def test_an_update_without_a_chat_makes_it_neither_deaf_nor_unable_to_start(
    home: Path,
) -> None:
    async with LiveSystem.open(home) as live:
        strange = live.telegram.user_says(PERSON, "from nowhere")
        strange["message"]["chat"] = {**strange["message"]["chat"], "id": ""}
        for word in ("one", "two"):
            await live.start()
            live.tells_telegram(word)
            await live.until(lambda word=word: f"You said: {word}" in live.telegram.texts(PERSON))  # type: ignore[misc]
            await live.until(lambda: not live.telegram.updates)
            await live.kill()
        assert live.query("SELECT count(*) FROM raw_updates WHERE error LIKE 'ValueError%'") == [
            (1,)
        ]


async def test_answer_to_an_edited_question_replaces_the_first_answer_on_the_screen(
    home: Path,
) -> None:
    def answer(body: dict[str, Any]) -> ModelReply:
        is_chat = bool(body.get("tools"))
        return ModelReply.say(
            "At ten." if "Ischia" in str(body) else "At nine." if is_chat else "A"
        )

    async with LiveSystem.open(home, MessagesApi(answer, key=KEY)) as live:
        telegram = live.telegram
        await live.start()
        update = telegram.user_says(PERSON, "boat to Capri?")
        await live.until(lambda: telegram.texts(PERSON) == ["At nine."])
        telegram.user_edits(PERSON, update["message"]["message_id"], "boat to Ischia?")
        await live.until(lambda: telegram.texts(PERSON) == ["At ten."])
        assert len(telegram.called("sendMessage")) == 1
        assert telegram.called("deleteMessage") == []


async def test_question_about_a_photo_is_answered_again_after_each_edit(home: Path) -> None:
    bodies: list[str] = []

    def answer(body: dict[str, Any]) -> ModelReply:
        if not body.get("tools"):
            return ModelReply.say("A title")
        bodies.append(json.dumps(body))
        return ModelReply.say(f"Answer {len(bodies)}.")

    async with LiveSystem.open(home, MessagesApi(answer, key=KEY)) as live:
        telegram = live.telegram
        await live.start()
        blue, red = make_photo(), make_photo(colour="red")
        for file_id, content in (("blue", blue), ("red", red)):
            telegram.server.add(file_id, content)
        update = telegram.user_says(PERSON, "Which colour?", photo=make_sizes("blue", blue))
        message_id = update["message"]["message_id"]
        await live.until(lambda: telegram.texts(PERSON) == ["Answer 1."])
        telegram.user_edits(PERSON, message_id, "Which shape?")
        await live.until(lambda: telegram.texts(PERSON) == ["Answer 2."])
        telegram.user_edits(PERSON, message_id, "Which shape?", photo=make_sizes("red", red))
        await live.until(lambda: telegram.texts(PERSON) == ["Answer 3."])
        telegram.user_edits(PERSON, message_id, "")
        await live.until(lambda: telegram.texts(PERSON) == ["Answer 4."])
        assert ["Which colour?" in body for body in bodies] == [True, False, False, False]
        assert ["Which shape?" in body for body in bodies] == [False, True, True, False]
        pictures = [re.findall(r'"data": "([^"]+)"', body) for body in bodies]
        assert pictures[0] == pictures[1] != pictures[2] == pictures[3]
        assert [len(names) for names in pictures] == [1, 1, 1, 1]
        assert len(telegram.called("sendMessage")) == 1


def make_sizes(file_id: str, content: bytes) -> list[dict[str, Any]]:
    """Return the sizes of a photo, of which the double has one."""
    size = {"width": 640, "height": 480, "file_size": len(content)}
    return [{"file_id": file_id, "file_unique_id": file_id, **size}]


async def test_general_and_a_group_with_a_new_id_have_the_rules_that_were_set(home: Path) -> None:
    forum, moved = -1001234567890, -100555
    rooms = f'[access]\nrooms = ["telegram:{GROUP}", "telegram:{forum}"]\n'
    async with LiveSystem.open(home, options=rooms) as live:
        telegram = live.telegram
        telegram.group(GROUP)
        telegram.group(forum, "Flat", is_forum=True)
        topic = telegram.topic(forum)
        await live.start()

        async def set_up(chat_id: int) -> str:
            telegram.user_says(chat_id, "/setup listen always", user_id=PERSON)
            await live.until(lambda: any(texts.SETUP_CHANGED in text for text in shown(chat_id)))
            return next(text for text in shown(chat_id) if texts.SETUP_CHANGED in text)

        def shown(chat_id: int) -> list[str]:
            return telegram.texts(chat_id)

        places = texts.table("SETUP_PLACES")
        assert places["general"] in await set_up(forum)
        assert places["group"] in await set_up(GROUP)
        telegram.user_says(forum, "in a topic", user_id=PERSON, thread_id=topic)
        telegram.user_says(forum, "in General", user_id=PERSON)
        await live.until(lambda: "You said: in General" in shown(forum))
        assert "You said: in a topic" not in shown(forum)

        telegram.migrate(GROUP, moved)
        telegram.user_says(moved, "still here", user_id=PERSON)
        await live.until(lambda: "You said: still here" in shown(moved))
