"""What people expect of a Telegram bot, with the vendor's client and a double of the Bot API."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from core.agent import tool_runner
from core.types import Completion, Json, Request, ToolContext
from gateway.texts.catalog import ENGLISH as texts
from tests.end_to_end.test_media import pictures_of, texts_of
from tests.end_to_end.test_voice import NOTE, SEGMENTS, options_for
from tests.fixtures.bot_chats import GROUP_ADMIN
from tests.fixtures.gateway_harness import GatewayHarness
from tests.fixtures.media_samples import make_pdf, make_photo
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.telegram_scene import ANA, BO, FORUM, UNLISTED, open_telegram
from tests.fixtures.transcription_service import TranscriptionService
from tests.gateway.test_bursts import SilentModel

pytestmark = pytest.mark.slow

STRANGER = 99
# Messages are gathered for so long that a busy machine doesn't separate them.
PATIENT_S = 4.0


def make_file(file_id: str, content: bytes, **fields: object) -> dict[str, object]:
    return {
        "file_id": file_id,
        "file_unique_id": file_id,
        "file_size": len(content),
        **fields,
    }


async def test_photo_document_sticker_and_voice_message_reach_the_model(home: Path) -> None:
    buffer = io.BytesIO()
    Image.new("RGBA", (512, 512), "navy").save(buffer, "WEBP")
    photo, document, sticker = make_photo(), make_pdf(["The ferry is blue."]), buffer.getvalue()
    model = ScriptedModel(*[says(f"Answer {number}.") for number in range(1, 5)])
    async with (
        TranscriptionService(SEGMENTS) as service,
        open_telegram(home, model, options_for(service)) as scene,
    ):
        contents = {"photo": photo, "pdf": document, "sticker": sticker, "voice": NOTE}
        for file_id, content in contents.items():
            scene.api.server.add(file_id, content)
        size = {"width": 512, "height": 512}
        pdf = make_file("pdf", document, file_name="plan.pdf", mime_type="application/pdf")
        still = {"type": "regular", "is_animated": False, "is_video": False, "emoji": "🙂"}
        voice = make_file("voice", NOTE, duration=50, mime_type="audio/ogg")
        await scene.ask(ANA, "Which?", "Answer 1.", photo=[make_file("photo", photo, **size)])
        await scene.ask(ANA, "And this?", "Answer 2.", document=pdf)
        await scene.ask(
            ANA, "", "Answer 3.", sticker=make_file("sticker", sticker, **size, **still)
        )
        await scene.ask(ANA, "", "Answer 4.", voice=voice)
        pictures = [len(pictures_of(request)) for request in model.requests]
        assert pictures == [1, 0, 1, 0]
        assert "The ferry is blue." in texts_of(model.requests[1])
        assert "The plumber says the boiler leaks." in texts_of(model.requests[3])


async def test_photo_with_a_command_as_its_caption_is_kept_and_the_command_carried_out(
    home: Path,
) -> None:
    async with open_telegram(home) as scene:
        photo = make_photo()
        scene.api.server.add("photo", photo)
        sent = [make_file("photo", photo, width=640, height=480)]
        answer = await scene.ask(ANA, "/memory add Our boiler", "I've kept photo.jpg.", photo=sent)
        assert "Our boiler (file 1)" in answer["text"]
        await scene.ask(ANA, "/files", "1: photo.jpg (jpeg, 640x480")


async def test_album_is_one_question_with_all_its_pictures(home: Path) -> None:
    model = ScriptedModel(says("Three colours."))
    async with open_telegram(home, model) as scene:
        for colour in ("red", "green", "blue"):
            content = make_photo(colour=colour)
            scene.api.server.add(colour, content)
            photo = [make_file(colour, content, width=640, height=480)]
            scene.api.user_says(ANA, "", photo=photo, media_group_id="7")
        await scene.said(ANA, "Three colours.")
        assert [len(pictures_of(request)) for request in model.requests] == [3]


async def test_album_in_a_group_whose_last_picture_mentions_the_bot_shows_all_its_pictures(
    home: Path,
) -> None:
    model = ScriptedModel(says("Three colours."))
    async with open_telegram(home, model) as scene:
        questions = {"red": "", "green": "", "blue": "@mneme_bot which colours are these?"}
        for colour, question in questions.items():
            content = make_photo(colour=colour)
            scene.api.server.add(colour, content)
            photo = [make_file(colour, content, width=640, height=480)]
            scene.api.user_says(FORUM, question, user_id=BO, photo=photo, media_group_id="7")
        other = [make_file("red", make_photo(colour="red"), width=640, height=480)]
        scene.api.user_says(FORUM, "", user_id=ANA, photo=other, media_group_id="8")
        await scene.said(FORUM, "Three colours.")
        await scene.settle()
        assert [len(pictures_of(request)) for request in model.requests] == [3]


async def test_each_kind_of_question_below_a_photo_in_a_group_shows_it_to_the_model(
    home: Path,
) -> None:
    model = ScriptedModel(says("One."), says("Two."), says("Three."), says("Four."))
    async with open_telegram(home, model) as scene:
        content = make_photo()
        scene.api.server.add("p", content)
        photo = [make_file("p", content, width=640, height=480)]
        await scene.ask(FORUM, "/setup prefix mne", "mne", user_id=ANA)
        theirs = scene.api.user_says(FORUM, "", user_id=BO, photo=photo)["message"]["message_id"]
        scene.api.user_says(FORUM, "nice picture", user_id=BO, reply_to=theirs)
        questions = {
            "/ask what is in it?": "One.",
            "mne, what is in it?": "Two.",
            "/ask": "Three.",
            "@mneme_bot what is in it?": "Four.",
        }
        for question, answer in questions.items():
            await scene.ask(FORUM, question, answer, user_id=BO, reply_to=theirs)
            await scene.settle()
        assert [len(pictures_of(request)) for request in model.requests] == [1, 1, 1, 1]


async def test_tool_at_work_is_named_in_the_draft(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_runner, "SLOW_TOOLS_S", 0.0)
    may_end = asyncio.Event()
    search = calls(("session_search", {"query": "ferry"}), text="Let me look.")
    async with open_telegram(home, ScriptedModel(search, says("At nine."))) as scene:
        slow_down(scene.harness, "session_search", may_end)
        scene.api.user_says(ANA, "When does the ferry leave?")
        await scene.api.wait_for(
            lambda: any("At work: session_search" in text for _, text in scene.api.drafts)
        )
        may_end.set()
        answer = await scene.said(ANA, "At nine.")
        assert "At work" not in answer["text"]


def slow_down(harness: GatewayHarness, name: str, may_end: asyncio.Event) -> None:
    """Let a tool wait for an event before it ends."""
    tools = harness.agent.tool_runner.tools
    tool = tools[name]

    async def run(arguments: Json, context: ToolContext) -> str:
        result = await tool.run(arguments, context)
        await may_end.wait()
        return result

    tools[name] = replace(tool, run=run)


async def test_thumb_confirms_a_question_and_counts_as_a_rating(home: Path) -> None:
    model = ScriptedModel(says("Your boat is called Seagull."))
    async with open_telegram(home, model) as scene:
        answer = await scene.ask(ANA, "What is my boat called?", "Seagull")
        await scene.settle()
        scene.api.user_reacts(ANA, answer["message_id"], "👍")
        await scene.settle()
        await scene.ask(ANA, "/usage", "1 up, 0 down")
        question = await scene.ask(ANA, "/forget boat", "I'd forget")
        await scene.settle()
        scene.api.user_reacts(ANA, question["message_id"], "👍")
        await scene.said(ANA, "Forgotten")


async def test_topics_of_a_forum_and_of_a_direct_chat_are_conversations_of_their_own(
    home: Path,
) -> None:
    words = ("heron", "walrus", "otter", "badger")
    model = ScriptedModel(*[says(f"About the {word}.") for word in words])
    async with open_telegram(home, model) as scene:
        topics = [scene.api.topic(FORUM), scene.api.topic(FORUM)]
        own_topics = [scene.api.topic(ANA), scene.api.topic(ANA)]
        places = [(FORUM, topic) for topic in topics] + [(ANA, topic) for topic in own_topics]
        for (chat_id, topic), word in zip(places, words, strict=True):
            text = f"@mneme_bot the {word}"
            await scene.ask(chat_id, text, f"About the {word}.", user_id=ANA, thread_id=topic)
        for request, word in zip(model.requests, words, strict=True):
            sent = str(request.messages)
            assert [other for other in words if f"the {other}" in sent] == [word]


async def test_group_rules_are_set_by_an_admin_and_decide_what_is_answered(home: Path) -> None:
    async with open_telegram(
        home, ScriptedModel(*[says(f"Answer {n}.") for n in range(4)])
    ) as scene:
        await scene.ask(FORUM, "/setup listen always", texts.ADMINS_ONLY, user_id=BO)
        await scene.ask(FORUM, "/setup prefix mne", texts.SETUP_CHANGED, user_id=ANA)
        scene.api.user_says(FORUM, "nothing for you", user_id=BO)
        await scene.ask(FORUM, "Mne, hello", "Answer 0.", user_id=BO)
        await scene.ask(FORUM, "/setup listen reply", "replies to my messages", user_id=ANA)
        answer = await scene.said(FORUM, "Answer 0.")
        scene.api.user_says(FORUM, "@mneme_bot hello", user_id=BO)
        reply_to = answer["message_id"]
        await scene.ask(FORUM, "and then?", "Answer 1.", user_id=BO, reply_to=reply_to)
        await scene.ask(FORUM, "/setup listen always", "every message", user_id=ANA)
        await scene.ask(FORUM, "anyone?", "Answer 2.", user_id=BO)
        await scene.ask(FORUM, "/setup listen commands", "only commands", user_id=ANA)
        scene.api.user_says(FORUM, "@mneme_bot hello", user_id=BO)
        await scene.settle()
        assert not any("Answer 3." in text for text in scene.api.texts(FORUM))


async def test_setup_says_if_telegram_passes_on_only_messages_for_the_bot(home: Path) -> None:
    unheard = texts.SETUP_UNHEARD.replace("`", "")
    async with open_telegram(home, ScriptedModel()) as scene:
        api = scene.api

        async def set_up(command: str) -> str:
            api.user_says(FORUM, command, user_id=ANA)
            await scene.settle()
            heading = texts.SETUP_SHOWN.strip("*")
            return next(text for text in reversed(api.texts(FORUM)) if heading in text)

        assert unheard not in await set_up("/setup prefix mne")
        api.has_group_privacy = True
        assert unheard in await set_up("/setup prefix mneme")
        assert unheard not in await set_up("/setup prefix off")
        assert unheard in await set_up("/setup listen always")
        assert unheard not in await set_up("/setup listen mention")
        assert unheard in await set_up("/setup store all")
        api.admins[FORUM].add(api.bot["id"])
        assert unheard not in await set_up("/setup")


async def test_group_is_introduced_and_each_stranger_of_another_group_is_told_once(
    home: Path,
) -> None:
    async with open_telegram(home, ScriptedModel(says("Hello Bo."))) as scene:
        await scene.ask(FORUM, "@mneme_bot hello", "Hello Bo.", user_id=BO)
        introduction = texts.INTRODUCTION.replace("`", "")
        await scene.said(FORUM, introduction)
        await scene.ask(FORUM, "/setup store all", texts.SETUP_CHANGED, user_id=ANA)
        await scene.said(FORUM, texts.INTRODUCTION_ALL.replace("`", ""))
        for user_id in (STRANGER, STRANGER, STRANGER + 1):
            scene.api.user_says(UNLISTED, "@mneme_bot hello", user_id=user_id)
        await scene.settle()
        assert scene.api.texts(UNLISTED) == [texts.STRANGER_IN_GROUP] * 2
        assert scene.api.texts(FORUM).count(introduction) == 1


@pytest.mark.parametrize(
    ("code", "refusal", "advice"),
    [
        (400, "Bad Request: TOPIC_CLOSED", "Reopen it."),
        (403, "Forbidden: bot was kicked from the supergroup chat", "Add me to it again."),
        (400, "Bad Request: CHAT_ADMIN_REQUIRED", "I may not write there."),
    ],
)
async def test_answer_that_a_group_refuses_is_sent_once_and_told_in_the_direct_chat(
    home: Path, code: int, refusal: str, advice: str
) -> None:
    model = ScriptedModel(says("Good day."), says("Answer 1."), says("At nine."))
    async with open_telegram(home, model) as scene:
        await scene.ask(ANA, "hello", "Good day.")
        await scene.ask(FORUM, "@mneme_bot hello", "Answer 1.", user_id=ANA)
        await scene.said(FORUM, texts.INTRODUCTION.replace("`", ""))
        scene.api.fail(code, refusal, method="sendMessage", chat_id=FORUM, times=9)
        scene.api.user_says(FORUM, "@mneme_bot when?", user_id=ANA)
        notice = await scene.said(ANA, "I couldn't deliver my message to you in “Flat”")
        assert advice in notice["text"]
        assert "nine" not in notice["text"]
        (dead_item,) = await scene.harness.services.outbox.list_dead()
        assert dead_item.item.attempts == 1


async def test_parts_sent_a_fifth_of_a_second_apart_are_one_turn(home: Path) -> None:
    model = ScriptedModel(says("One answer."), says("Another one."))
    async with open_telegram(home, model, "[turn]\ngather_s = 0.3\n") as scene:
        scene.harness.queues._gather_s = PATIENT_S
        for part in ("the first part", "the second part", "the third part"):
            scene.api.user_says(ANA, part)
            await asyncio.sleep(0.2)
        await scene.said(ANA, "One answer.")
        await scene.settle()
        assert len(model.requests) == 1
        assert "the third part" in texts_of(model.requests[0])


async def test_message_interrupts_an_answer_if_the_settings_say_so(home: Path) -> None:
    options = '[turn]\ngather_s = 0.0\nwhile_answering = "interrupt"\n'
    model = SilentModel("The beginning")
    async with open_telegram(home, model, options) as scene:
        scene.api.user_says(ANA, "one")
        await model.began.wait()
        await scene.ask(ANA, "two", "answer 2")
        assert any(text.startswith("The beginning") for text in scene.api.texts(ANA))


@pytest.mark.parametrize(("where", "is_told"), [("direct", [True, False]), ("never", [False] * 2)])
async def test_failure_is_told_only_where_the_settings_allow(
    home: Path, where: str, is_told: list[bool]
) -> None:
    options = f'[turn]\ngather_s = 0.0\nerror_replies = "{where}"\n'
    broken = RuntimeError("a defect")
    async with open_telegram(home, ScriptedModel(broken, broken), options) as scene:
        scene.api.user_says(ANA, "hello")
        await scene.settle()
        scene.api.user_says(FORUM, "@mneme_bot hello", user_id=BO)
        await scene.said(FORUM, texts.INTRODUCTION.replace("`", ""))
        await scene.settle()
        shown = [scene.api.texts(ANA), scene.api.texts(FORUM)[1:]]
        assert [bool(messages) for messages in shown] == is_told


class FailingModel(SilentModel):
    """Fails after it has written the beginning of its answer."""

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        await super().complete(request, on_text, on_wait)
        raise RuntimeError("a defect")


async def test_beginning_of_a_failed_answer_is_deleted_if_failures_are_never_told(
    home: Path,
) -> None:
    options = '[turn]\ngather_s = 0.0\nerror_replies = "never"\n'
    model = FailingModel("The first words of an answer that never ends")
    async with open_telegram(home, model, options) as scene:
        scene.api.user_says(FORUM, "@mneme_bot hello", user_id=BO)
        await scene.said(FORUM, "The first words")
        model.gate.set()
        await scene.said(FORUM, texts.INTRODUCTION.replace("`", ""))
        await scene.settle()
        assert not [text for text in scene.api.texts(FORUM) if text.startswith("The first")]


async def test_button_below_results_is_pressed_and_acknowledged(home: Path) -> None:
    async with open_telegram(home, ScriptedModel(says("Noted."))) as scene:
        await scene.ask(ANA, "The ferry leaves at nine.", "Noted.")
        results = await scene.ask(ANA, "/recall ferry", "The ferry leaves")
        label = results["reply_markup"]["inline_keyboard"][0][0]["text"]
        before = len(scene.api.texts(ANA))
        scene.api.user_presses(ANA, results["message_id"], label)
        await scene.api.wait_for(lambda: len(scene.api.texts(ANA)) > before)
        assert scene.api.presses == set()


async def test_button_whose_message_telegram_no_longer_describes_is_answered_in_its_topic(
    home: Path,
) -> None:
    async with open_telegram(home, ScriptedModel(says("Noted."))) as scene:
        api = scene.api
        topic = api.topic(FORUM)
        place = {"user_id": BO, "thread_id": topic}
        await scene.ask(FORUM, "@mneme_bot The ferry leaves at nine.", "Noted.", **place)
        results = await scene.ask(FORUM, "/recall ferry", "The ferry leaves", **place)
        await scene.settle()
        label = results["reply_markup"]["inline_keyboard"][0][0]["text"]
        shown = len(api.texts(FORUM, topic))
        others = len(api.texts(FORUM)) - shown
        press = api.user_presses(FORUM, results["message_id"], label, user_id=BO)
        message = press["callback_query"]["message"]
        press["callback_query"]["message"] = {
            "chat": message["chat"],
            "message_id": message["message_id"],
            "date": 0,
        }
        await api.wait_for(lambda: len(api.texts(FORUM)) > shown + others)
        assert len(api.texts(FORUM, topic)) == shown + 1


async def test_command_of_another_bot_is_not_answered_in_a_group(home: Path) -> None:
    async with open_telegram(home) as scene:
        api = scene.api
        api.user_says(FORUM, "/weather Lisbon", user_id=BO)
        api.user_says(UNLISTED, "/weather Lisbon", user_id=STRANGER)
        api.user_says(FORUM, "/weather Lisbon", user_id=GROUP_ADMIN, sender_chat=api.chats[FORUM])
        await scene.settle()
        assert api.texts(FORUM) == api.texts(UNLISTED) == []
        await scene.ask(FORUM, "/weather@mneme_bot", "There is no command /weather.", user_id=BO)
        await scene.ask(FORUM, "/remembr", "Did you mean /remember", user_id=BO)
        await scene.ask(ANA, "/weather Lisbon", "There is no command /weather.")
