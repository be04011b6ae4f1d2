"""A question that is edited before anything followed gets a new answer; others don't."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.agent.offline import OfflineModel
from core.store.media.files import AttachedFile
from core.store.message_ids import load_question
from core.types import Address, Answer, Attachment, Json, Request
from gateway.access_and_rates import MAX_TURNS_IN_A_ROW
from gateway.texts.catalog import load_texts
from tests.end_to_end.test_media import pictures_of, texts_of
from tests.end_to_end.test_voice import NOTE, SEGMENTS, options_for
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.media_samples import make_photo
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.skill_folders import skill_text
from tests.fixtures.transcription_service import TranscriptionService
from tests.gateway.chats.test_setup import GROUP
from tests.gateway.commands.test_links import notices
from tests.gateway.test_receipts import deliver_reminder

pytestmark = pytest.mark.slow

LISTENING = 'rooms = ["telegram:-5"]\n[room]\nlisten = true\n'
en = load_texts("en")
CHAT = Address(platform="telegram", chat_id="42")


def running_downloads(harness: GatewayHarness) -> list[asyncio.Task[AttachedFile]]:
    media = harness.agent.media
    assert media is not None
    return [download.task for download in media._downloads.values()]


def strongest_colours(request: Request) -> list[str]:
    """Return the strongest colour of each picture in the last message of a request."""
    names = ("red", "green", "blue")
    colours = []
    for picture in pictures_of(request):
        strengths: list[Any] = [
            channel.getpixel((5, 5)) for channel in picture.convert("RGB").split()
        ]
        colours.append(names[strengths.index(max(strengths))])
    return colours


def content_of(request: Request) -> list[Json]:
    """Return the blocks of all messages of a request."""
    return [block for message in request.messages for block in message["content"]]


async def edit(
    harness: GatewayHarness, message_id: str, text: str, who: str = "42", **changes: Any
) -> str:
    """Edit a message, and return the new answer, or "" if there is none."""
    reply: KeptReply = await harness.say(
        text, who, kind="edit", message_id=message_id, command=None, **changes
    )
    return "" if reply.answer is None else reply.text


async def test_edited_question_gets_a_new_answer_that_replaces_the_old_one(home: Path) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."), says("You are welcome."))
    async with open_gateway(home, model) as harness:
        await harness.say("When does the boat to Capri leave?", message_id="100")
        answer = await edit(harness, "100", "When does the boat to Ischia leave?")
        assert answer == "At ten."
        sent = str(model.requests[1].messages)
        assert "Ischia" in sent
        assert "Capri" not in sent
        assert "At nine." not in sent
        await harness.say("thank you")
        sent = str(model.requests[2].messages)
        assert "At ten." in sent
        assert "At nine." not in sent


async def test_edit_after_a_reminder_replaces_the_answer_and_not_the_reminder(home: Path) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."))
    async with open_gateway(home, model) as harness:
        database = harness.services.database
        await harness.say("When does the boat to Capri leave?", message_id="100")
        await deliver_reminder(harness, "Call mum.")
        posted = [
            tuple(json.loads(row["posted"]))
            for row in await database.fetch_all("SELECT posted FROM outbox ORDER BY id")
        ]
        question = await load_question(database, CHAT, "100")
        assert question is not None
        assert len(set(posted)) == 2
        assert question.answer_ids == posted[0]
        assert await edit(harness, "100", "When does the boat to Ischia leave?") == "At ten."


async def test_edit_that_is_delivered_again_after_a_restart_is_answered_once(home: Path) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."))
    async with open_gateway(home, model) as harness:
        sent_at = harness.services.clock.now()
        await harness.say("to Capri?", message_id="100")
        assert await edit(harness, "100", "to Ischia?", sent_at=sent_at) == "At ten."
    async with open_gateway(home, ScriptedModel()) as harness:
        assert await edit(harness, "100", "to Ischia?", sent_at=sent_at) == ""


@pytest.mark.parametrize("place", [{}, GROUP], ids=["direct", "group"])
async def test_question_whose_answer_failed_is_answered_after_an_edit(
    home: Path, place: dict[str, Any]
) -> None:
    model = ScriptedModel(says("Hello."), RuntimeError("broken"), says("At ten."))
    async with open_gateway(home, model, LISTENING) as harness:
        await harness.say("hello", "42", message_id="99", **place)
        await harness.say("to Capri?", "42", message_id="100", **place)
        assert await edit(harness, "100", "to Ischia?", "42", **place) == "At ten."
        sent = str(model.requests[2].messages)
        assert "Hello." in sent
        assert "Capri" not in sent


async def test_question_whose_answer_was_stopped_is_answered_after_an_edit(home: Path) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."))
    async with open_gateway(home, model) as harness:
        model.gate = asyncio.Event()
        asking = asyncio.create_task(harness.say("to Capri?", message_id="100"))
        await model.began.wait()
        await harness.say("/stop")
        await asking
        model.gate = None
        assert await edit(harness, "100", "to Ischia?") == "At ten."


async def test_two_edits_within_one_second_are_both_answered(home: Path) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."), says("At eleven."))
    async with open_gateway(home, model) as harness:
        sent_at = harness.services.clock.now().replace(microsecond=0)
        await harness.say("to Capri?", message_id="100")
        assert await edit(harness, "100", "to Ischia?", sent_at=sent_at) == "At ten."
        assert await edit(harness, "100", "to Procida?", sent_at=sent_at) == "At eleven."


async def test_question_that_something_followed_is_only_reworded(home: Path) -> None:
    model = ScriptedModel(says("At nine."), says("You are welcome."))
    async with open_gateway(home, model) as harness:
        await harness.say("to Capri?", message_id="100")
        await harness.say("thank you")
        assert await edit(harness, "100", "to Ischia?") == ""
        assert "Ischia" in (await harness.say("/recall Ischia")).text


async def test_edit_that_comes_too_late_is_explained_once_in_each_chat(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(*[says("Yes.")] * 4), LISTENING) as harness:
        for place in ({}, GROUP):
            await harness.say("to Capri?", "42", message_id="100", **place)
            await harness.say("thank you", "42", **place)
            await edit(harness, "100", "to Capri?", "42", **place)
            await edit(harness, "100", "to Ischia?", "42", **place)
            await edit(harness, "100", "to Procida?", "42", **place)
        texts = [answer.text for _, answer in await notices(harness)]
        assert texts.count(en.EDIT_TOO_LATE) == 2
        assert "Procida" in (await harness.say("/recall Procida")).text


async def test_each_person_of_a_group_is_told_that_their_edit_comes_too_late(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(*[says("Yes.")] * 3), LISTENING) as harness:
        for number, who in enumerate(("42", "9")):
            await harness.say("to Capri?", who, message_id=f"10{number}", **GROUP)
        await harness.say("thank you", "42", **GROUP)
        for number, who in enumerate(("42", "9")):
            for text in ("to Ischia?", "to Procida?"):
                await edit(harness, f"10{number}", text, who, **GROUP)
        texts = [answer.text for _, answer in await notices(harness)]
        assert texts.count(en.EDIT_TOO_LATE) == 2


async def test_question_after_a_command_is_only_reworded(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("At nine."))) as harness:
        await harness.say("to Capri?", message_id="100")
        await harness.say("/title Boats")
        assert await edit(harness, "100", "to Ischia?") == ""


async def test_outcome_of_a_poll_is_no_edit_that_is_explained(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("A poll."), says("Yes."))) as harness:
        await harness.say("Poll: {Which day? Options: Monday; Friday}", message_id="100")
        await harness.say("thank you")
        await edit(harness, "100", "Closed poll: {Which day? Options: Monday (2); Friday (1)}")
        assert await notices(harness) == []


@pytest.mark.parametrize("command", ["/help", "/why", "/recall Capri"])
async def test_question_after_a_command_that_changed_nothing_is_answered_again(
    home: Path, command: str
) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."))
    async with open_gateway(home, model) as harness:
        first = await harness.say("to Capri?", message_id="100")
        await harness.say(command)
        assert await edit(harness, "100", "to Ischia?") == "At ten."
        assert first.text == "At nine."
        assert "At nine." not in str(model.requests[1].messages)


async def test_question_after_the_private_command_of_another_member_is_answered_again(
    home: Path,
) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."))
    async with open_gateway(home, model, LISTENING) as harness:
        await harness.say("to Capri?", "9", message_id="100", **GROUP)
        await harness.say("/facts", "8", **{**GROUP, "is_interaction": True})
        assert await edit(harness, "100", "to Ischia?", "9", **GROUP) == "At ten."


async def test_edit_that_leaves_the_text_unchanged_starts_no_new_answer(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("At nine."))) as harness:
        await harness.say("to Capri?", message_id="100")
        assert await edit(harness, "100", "to Capri?") == ""


async def test_answer_that_changed_something_is_not_repeated(home: Path) -> None:
    add = {"action": "add", "target": "memory", "content": "Ana likes boats"}
    model = ScriptedModel(calls(("memory", add)), says("Noted."))
    async with open_gateway(home, model) as harness:
        await harness.say("Remember that Ana likes boats", message_id="100")
        assert await edit(harness, "100", "Remember that Ana likes the boats") == ""
        assert await edit(harness, "100", "Remember that Ana likes all boats") == ""
        assert await notices(harness) == [(CHAT, Answer(text=en.EDIT_AFTER_CHANGE))]
        model.script.append(says("All boats."))
        assert (await harness.say("/retry")).text == "All boats."
        assert "likes all boats" in str(model.requests[2].messages)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("facts", {"mode": "search", "query": "car"}),
        ("reminder", {"action": "list"}),
        ("web_fetch", {"url": "https://example.com/"}),
    ],
)
async def test_answer_that_only_looked_something_up_is_written_again_after_an_edit(
    home: Path, tool: str, arguments: dict[str, Any]
) -> None:
    model = ScriptedModel(calls((tool, arguments)), says("Red."), says("Blue."))
    async with open_gateway(home, model) as harness:
        await harness.say("What colour is Bo's car?", message_id="100")
        assert await edit(harness, "100", "What colour is Ana's car?") == "Blue."


async def test_answer_that_read_and_then_changed_something_is_not_repeated(home: Path) -> None:
    add = {"action": "add", "target": "memory", "content": "Ana likes boats"}
    listing = calls(("reminder", {"action": "list"}), ("memory", add))
    async with open_gateway(home, ScriptedModel(listing, says("Noted."))) as harness:
        await harness.say("Remember that Ana likes boats", message_id="100")
        assert await edit(harness, "100", "Remember that Ana likes the boats") == ""


async def test_question_of_a_member_in_a_group_where_others_spoke_before_is_answered_again(
    home: Path,
) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."))
    async with open_gateway(home, model, LISTENING) as harness:
        await harness.say("I like boats", "8", **{**GROUP, "is_addressed": False})
        await harness.say("to Capri?", "9", message_id="100", **GROUP)
        assert await edit(harness, "100", "to Ischia?", "9", **GROUP) == "At ten."
        assert "I like boats" in str(model.requests[1].messages)


async def test_question_in_a_group_that_others_followed_is_only_reworded(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("At nine.")), LISTENING) as harness:
        await harness.say("to Capri?", "9", message_id="100", **GROUP)
        await harness.say("I like boats", "8", **{**GROUP, "is_addressed": False})
        assert await edit(harness, "100", "to Ischia?", "9", **GROUP) == ""


async def test_message_in_a_group_is_answered_once_an_edit_adds_the_mention(home: Path) -> None:
    model = ScriptedModel(says("At nine."))
    async with open_gateway(home, model, LISTENING) as harness:
        await harness.say("I like boats", "8", **{**GROUP, "is_addressed": False})
        overheard = {**GROUP, "is_addressed": False}
        await harness.say("to Capri?", "9", message_id="100", **overheard)
        assert await edit(harness, "100", "To Capri?", "9", **overheard) == ""
        mention = {**GROUP, "is_mention": True}
        assert await edit(harness, "100", "To Capri?", "9", **mention) == "At nine."
        assert await edit(harness, "100", "To Capri?", "9", **mention) == ""
        assert "To Capri?" in str(model.requests[0].messages)


async def test_message_that_a_group_did_not_keep_is_answered_once_an_edit_adds_the_mention(
    home: Path,
) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."))
    overheard = {**GROUP, "is_addressed": False}
    mention = {**GROUP, "is_mention": True}
    async with open_gateway(home, model, 'rooms = ["telegram:-5"]\n') as harness:
        await harness.say("to Capri?", "9", message_id="100", **overheard)
        assert await edit(harness, "100", "To Capri?", "9", **overheard) == ""
        assert await edit(harness, "100", "To Capri?", "9", **mention) == "At nine."
        assert await edit(harness, "100", "To Capri?", "9", **mention) == ""
        assert await edit(harness, "100", "To Ischia?", "9", **mention) == "At ten."
        assert await edit(harness, "101", "/help", "9", **mention) == ""
        assert len(model.requests) == 2
        await harness.say("/undo", "9", **GROUP)
        answer = await edit(harness, "100", "To Procida?", "9", **mention)
        assert answer == ""
        assert len(model.requests) == 2


async def test_mention_that_is_added_after_others_wrote_starts_no_answer(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(), LISTENING) as harness:
        overheard = {**GROUP, "is_addressed": False}
        await harness.say("to Capri?", "9", message_id="100", **overheard)
        await harness.say("I like boats", "8", **overheard)
        mention = {**GROUP, "is_mention": True}
        assert await edit(harness, "100", "@bot to Capri?", "9", **mention) == ""


async def test_message_over_the_limit_of_turns_in_a_row_is_not_answered_after_an_edit(
    home: Path,
) -> None:
    model = ScriptedModel(*[says("At nine.")] * MAX_TURNS_IN_A_ROW)
    async with open_gateway(home, model, LISTENING) as harness:
        for number in range(MAX_TURNS_IN_A_ROW + 1):
            await harness.say("to Capri?", "9", message_id=str(100 + number), **GROUP)
        last_id = str(100 + MAX_TURNS_IN_A_ROW)
        assert await edit(harness, last_id, "to Ischia?", "9", **GROUP) == ""
        assert len(model.requests) == MAX_TURNS_IN_A_ROW


async def test_photo_with_an_edited_caption_is_looked_at_again(home: Path) -> None:
    model = ScriptedModel(says("Blue."), says("Square."))
    async with open_gateway(home, model) as harness:
        await harness.send(make_photo(), "p.jpg", "photo", "What colour?", message_id="100")
        (photo,) = await harness.services.files.load_of_messages(CHAT, ["100"])
        attachment = Attachment(
            kind="photo", name="p.jpg", size_bytes=photo.size, reference=photo.reference
        )
        answer = await edit(harness, "100", "What shape?", attachments=(attachment,))
        assert answer == "Square."
        sent = str(model.requests[1].messages)
        assert "What shape?" in sent
        assert "What colour?" not in sent
        assert len(pictures_of(model.requests[1])) == 1
        assert harness.platforms["telegram"].fetched == [photo.reference]


async def test_photo_that_replaces_another_in_a_question_is_looked_at(home: Path) -> None:
    model = ScriptedModel(says("Blue."), says("Red."))
    async with open_gateway(home, model) as harness:
        await harness.send(make_photo(), "p.jpg", "photo", "Which colour?", message_id="100")
        red = make_photo(colour="red")
        assert len(red) == len(make_photo())
        harness.platforms["telegram"].files["other"] = red
        attachment = Attachment(kind="photo", name="p.jpg", size_bytes=len(red), reference="other")
        answer = await edit(harness, "100", "Which colour?", attachments=(attachment,))
        assert answer == "Red."
        assert strongest_colours(model.requests[1]) == ["red"]
        assert (await harness.services.files.measure_usage()).files == 1


async def test_replaced_photo_of_a_message_that_others_followed_is_kept_instead_of_the_first(
    home: Path,
) -> None:
    model = ScriptedModel(says("Blue."), says("You are welcome."), says("Red."))
    async with open_gateway(home, model) as harness:
        await harness.send(make_photo(), "p.jpg", "photo", "Which colour?", message_id="100")
        await harness.say("thank you")
        harness.platforms["telegram"].files["other"] = make_photo(colour="red")
        attachment = Attachment(kind="photo", name="new.jpg", reference="other")
        assert await edit(harness, "100", "Which colour?", attachments=(attachment,)) == ""
        await asyncio.gather(*running_downloads(harness))
        (photo,) = await harness.services.files.load_of_messages(CHAT, ["100"])
        assert (photo.name, photo.reference) == ("new.jpg", "other")


async def test_edited_caption_of_an_album_is_answered_again(home: Path) -> None:
    model = ScriptedModel(says("Blue and red."), says("Two squares."))
    async with open_gateway(home, model) as harness:
        platform = harness.platforms["telegram"]
        events = []
        for number, colour in enumerate(("blue", "red")):
            platform.files[colour] = make_photo(colour=colour)
            photo = Attachment(kind="photo", name="p.jpg", reference=colour)
            caption = "" if number else "Which colours?"
            events.append(
                harness.inbound(
                    caption, message_id=str(100 + number), attachments=(photo,), group_id="album"
                )
            )
        numbers = [await harness.admission.admit(event, KeptReply()) for event in events]
        await asyncio.gather(*(harness.admission.serve(number) for number in numbers if number))
        assert len(model.requests) == 1
        attachments = events[0].attachments
        answer = await edit(harness, "100", "Which shapes?", attachments=attachments)
        assert answer == "Two squares."
        sent = model.requests[1]
        assert "Which shapes?" in str(sent.messages)
        assert sum(block["type"] == "image" for block in content_of(sent)) == 2
        assert sorted(platform.fetched) == ["blue", "red"]


async def test_voice_message_with_an_edited_caption_keeps_its_words(home: Path) -> None:
    model = ScriptedModel(says("I see."), says("The plumber."))
    async with (
        TranscriptionService(SEGMENTS) as service,
        open_gateway(home, model, options_for(service)) as harness,
    ):
        await harness.send(NOTE, "voice.oga", "voice", "Listen", message_id="100")
        voice = Attachment(kind="voice", name="voice.oga", size_bytes=len(NOTE), reference="file-1")
        assert await edit(harness, "100", "Listen", attachments=(voice,)) == ""
        answer = await edit(harness, "100", "Who speaks?", attachments=(voice,))
        assert answer.endswith("The plumber.")
        assert "Who speaks?\nHello, it's me. The plumber" in texts_of(model.requests[1])


async def test_reminder_that_was_set_without_a_model_is_not_set_again_by_an_edit(
    home: Path,
) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        await harness.say("Remind me tomorrow at 9 to call Ana", message_id="100")
        assert await edit(harness, "100", "Remind me tomorrow at 10 to call Ana") == ""
        (job,) = await harness.services.jobs.list_visible(frozenset({harness.inbound("").scope}))
        assert job.text == "call Ana"


async def test_list_of_reminders_that_was_written_without_a_model_is_answered_again(
    home: Path,
) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        listed = await harness.say("List my reminders", message_id="100")
        assert listed.text == en.NO_REMINDERS_YET
        assert await edit(harness, "100", "Which note mentions Capri?") != ""


async def test_edited_message_of_a_stranger_gets_no_answer(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        assert await edit(harness, "100", "to Ischia?", "99") == ""


@pytest.mark.parametrize("text", ["/title Ships", "/help", "/help@mneme_bot all"])
async def test_question_that_an_edit_makes_a_command_is_not_answered(home: Path, text: str) -> None:
    model = ScriptedModel(says("At nine."), says("Wrong."))
    async with open_gateway(home, model) as harness:
        await harness.say("to Capri?", message_id="100")
        assert await edit(harness, "100", text) == ""
        assert await notices(harness) == [(CHAT, Answer(text=en.EDIT_OF_COMMAND))]
        assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("first", "text"),
    [
        ("/ask to Capri?", "/ask to Ischia?"),
        ("/ask to Capri?", "to Ischia?"),
        ("to Capri?", "/frage to Ischia?"),
        ("/skill tidy-inbox to Capri?", "/skill tidy-inbox to Ischia?"),
    ],
)
async def test_edited_question_in_a_command_for_questions_is_answered_again(
    home: Path, first: str, text: str
) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."))
    folder = home / "skills" / "tidy-inbox"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill_text("tidy-inbox"))
    async with open_gateway(home, model) as harness:
        await harness.say(first, message_id="100")
        assert await edit(harness, "100", text) == "At ten."
        sent = str(model.requests[1].messages)
        assert "to Ischia?" in sent
        assert "Capri" not in sent
        assert "/ask" not in sent
        assert ("tidy-inbox" in sent) == ("tidy-inbox" in text)


async def test_edit_of_a_forgotten_question_is_explained_and_not_stored(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("At nine."))) as harness:
        await harness.say("to Capri?", message_id="100")
        await harness.say("/forget Capri")
        await harness.say("yes")
        assert await edit(harness, "100", "to Ischia?") == ""
        assert await notices(harness) == [(CHAT, Answer(text=en.EDIT_TAKEN_BACK))]
        rows = await harness.services.database.fetch_all("SELECT text FROM messages")
        assert not any("Ischia" in row["text"] for row in rows)


async def test_edited_command_message_is_not_run_again(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("/title Boats", message_id="100")
        assert await edit(harness, "100", "/title Ships") == ""
        assert await notices(harness) == [(CHAT, Answer(text=en.EDIT_OF_COMMAND))]


async def edit_waiting(
    harness: GatewayHarness, model: ScriptedModel, first: str, text: str, **changes: Any
) -> KeptReply:
    """Edit message 101 while message 100 is being answered. Return the reply to message 101."""
    model.gate = asyncio.Event()
    asking = asyncio.create_task(harness.say("to Capri?", message_id="100"))
    await model.began.wait()
    reply = KeptReply()
    number = await harness.admission.admit(harness.inbound(first, message_id="101"), reply)
    assert number is not None
    serving = harness.admission.serve(number)
    await edit(harness, "101", text, **changes)
    model.gate.set()
    await asking
    await serving
    return reply


@pytest.mark.parametrize("text", ["/title Ships", "/hilfe"])
async def test_waiting_question_that_an_edit_makes_a_command_is_neither_run_nor_answered(
    home: Path, text: str
) -> None:
    model = ScriptedModel(says("At nine."), says("Wrong."))
    async with open_gateway(home, model, "[turn]\nwhile_answering = 'queue'\n") as harness:
        reply = await edit_waiting(harness, model, "to Ischia?", text, language="de")
        assert reply.answer is None
        assert reply.is_abandoned
        assert len(model.requests) == 1
        (notice,) = [answer.text for _, answer in await notices(harness)]
        assert notice == load_texts("de").EDIT_OF_COMMAND


async def test_edit_of_a_waiting_command_is_explained_and_the_command_runs_as_it_was_sent(
    home: Path,
) -> None:
    model = ScriptedModel(says("At nine."))
    async with open_gateway(home, model) as harness:
        reply = await edit_waiting(harness, model, "/title Boats", "/title Ships")
        assert "Boats" in reply.text
        assert await notices(harness) == [(CHAT, Answer(text=en.EDIT_OF_COMMAND))]


async def test_question_edited_while_it_is_answered_and_another_waits_comes_too_late(
    home: Path,
) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."))
    async with open_gateway(home, model, "[turn]\nwhile_answering = 'queue'\n") as harness:
        model.gate = asyncio.Event()
        asking = asyncio.create_task(harness.say("to Capri?", message_id="100"))
        await model.began.wait()
        number = await harness.admission.admit(harness.inbound("thank you"), KeptReply())
        assert number is not None
        serving = harness.admission.serve(number)
        assert await edit(harness, "100", "to Ischia?") == ""
        model.gate.set()
        await asking
        await serving
        assert await notices(harness) == [(CHAT, Answer(text=en.EDIT_TOO_LATE))]


@pytest.mark.parametrize("is_incognito", [False, True], ids=["stored", "incognito"])
async def test_edit_of_a_question_that_was_taken_back_is_explained(
    home: Path, is_incognito: bool
) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."))
    async with open_gateway(home, model) as harness:
        if is_incognito:
            await harness.say("/incognito")
        await harness.say("to Capri?", message_id="100")
        await harness.say("/undo")
        assert await edit(harness, "100", "to Ischia?") == ""
        assert await notices(harness) == [(CHAT, Answer(text=en.EDIT_TAKEN_BACK))]
        assert len(model.requests) == 1


async def test_edited_question_in_an_incognito_chat_is_answered_again_without_a_trace(
    home: Path,
) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."), says("You are welcome."))
    async with open_gateway(home, model) as harness:
        await harness.say("/incognito")
        await harness.say("to Capri?", message_id="100")
        assert (await edit(harness, "100", "to Ischia?")).endswith("At ten.")
        sent = str(model.requests[1].messages)
        assert "Ischia" in sent
        assert "Capri" not in sent
        assert "At nine." not in sent
        await harness.say("thank you")
        assert await edit(harness, "100", "to Procida?") == ""
        assert await notices(harness) == [(CHAT, Answer(text=en.EDIT_TOO_LATE))]
        for table in ("messages", "inbox", "outbox"):
            rows = await harness.services.database.fetch_all(f"SELECT * FROM {table}")
            stored = str([tuple(row) for row in rows])
            assert "Ischia" not in stored
            assert "Procida" not in stored
            assert "At ten" not in stored


async def edit_while_answering(
    harness: GatewayHarness, model: ScriptedModel, *new_texts: str, question: str = "to Capri?"
) -> list[str]:
    """Edit a question while its answer is being written. Return the texts of all answers."""
    model.gate = asyncio.Event()
    asking = asyncio.create_task(harness.say(question, message_id="100"))
    await model.began.wait()
    replies = []
    numbers = []
    for seconds, text in enumerate(new_texts):
        at = harness.services.clock.now() + timedelta(seconds=seconds)
        event = harness.inbound(text, kind="edit", message_id="100", command=None, sent_at=at)
        replies.append(KeptReply())
        numbers.append(await harness.admission.admit(event, replies[-1]))
    model.gate.set()
    answers = [(await asking).text]
    for number, reply in zip(numbers, replies, strict=True):
        if number is not None:
            await harness.admission.serve(number)
        answers.append("" if reply.answer is None else reply.text)
    return answers


async def test_question_edited_while_it_is_answered_is_answered_again_afterwards(
    home: Path,
) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."))
    async with open_gateway(home, model) as harness:
        answers = await edit_while_answering(harness, model, "to Ischia?", "to Procida?")
        assert answers == ["At nine.", "At ten.", ""]
        sent = str(model.requests[1].messages)
        assert "Procida" in sent
        assert "Capri" not in sent
        assert "At nine." not in sent


async def test_photo_that_is_replaced_while_the_answer_is_being_written_is_looked_at_afterwards(
    home: Path,
) -> None:
    model = ScriptedModel(says("Blue."), says("Red."))
    async with open_gateway(home, model) as harness:
        harness.platforms["telegram"].files["other"] = make_photo(colour="red")
        model.gate = asyncio.Event()
        asking = asyncio.create_task(
            harness.send(make_photo(), "p.jpg", "photo", "Which colour?", message_id="100")
        )
        await model.began.wait()
        other = Attachment(kind="photo", name="new.jpg", reference="other")
        event = harness.inbound("And now?", kind="edit", message_id="100", attachments=(other,))
        reply = KeptReply()
        number = await harness.admission.admit(event, reply)
        model.gate.set()
        assert (await asking).text == "Blue."
        assert number is not None
        await harness.admission.serve(number)
        assert reply.text == "Red."
        assert "And now?" in str(model.requests[1].messages)
        assert strongest_colours(model.requests[1]) == ["red"]


async def test_question_edited_while_its_answer_changes_something_is_not_repeated(
    home: Path,
) -> None:
    add = {"action": "add", "target": "memory", "content": "Ana likes boats"}
    model = ScriptedModel(calls(("memory", add)), says("Noted."))
    async with open_gateway(home, model) as harness:
        question = "Remember that Ana likes boats"
        answers = await edit_while_answering(
            harness, model, "Remember that Ana likes the boats", question=question
        )
        assert answers[1] == ""
        assert await notices(harness) == [(CHAT, Answer(text=en.EDIT_AFTER_CHANGE))]
        assert len(model.requests) == 2
        waiting = await harness.services.database.fetch_all("SELECT * FROM inbox")
        assert waiting == []
