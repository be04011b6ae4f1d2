"""A file whose caption is a command is kept like any other, and the command is carried out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from core.types import Attachment
from gateway.media.command_files import list_job_files
from tests.end_to_end.test_erased import forget
from tests.end_to_end.test_media import kept_files, pictures_of
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.media_samples import make_pdf, make_photo
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.gateway.commands.test_jobs import deliver_due

pytestmark = pytest.mark.slow


async def list_names(harness: GatewayHarness) -> list[str]:
    rows = await harness.services.database.fetch_all(
        "SELECT name FROM message_files WHERE hash IS NOT NULL AND message_id IS NOT NULL"
    )
    return [row["name"] for row in rows]


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("/remind tomorrow at 9 pay this", "Reminder 1 is set for"),
        ("/memory add Our boiler", "Noted: “Our boiler (file 1)”"),
        ("/remember The blue heron nests here", "I'll remember"),
        ("/recall heron", "Nothing found"),
        ("/nonsense x", "There is no command /nonsense"),
        ("/files", "1: contract.pdf"),
    ],
)
async def test_file_with_a_command_as_its_caption_is_kept_and_the_command_carried_out(
    home: Path, caption: str, expected: str
) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        reply = await harness.send(make_pdf(), "contract.pdf", text=caption)
        assert reply.text.startswith("I've kept contract.pdf.\n\n")
        assert expected in reply.text
        assert await list_names(harness) == ["contract.pdf"]
        assert "contract.pdf" in (await harness.say("/recall boiler")).text


async def test_file_of_a_command_is_shown_when_it_is_replied_to_and_erased_with_its_message(
    home: Path,
) -> None:
    model = ScriptedModel(says("A blue picture."))
    async with open_gateway(home, model) as harness:
        await harness.send(
            make_photo(), "p.jpg", "photo", "/memory add Our boiler", message_id="70"
        )
        await harness.say("What is it?", reply_to="70")
        assert len(pictures_of(model.requests[0])) == 1
        await forget(harness, "boiler")
        assert kept_files(home) == []


async def test_question_before_a_yes_still_ends_the_answer_to_a_command_with_a_file(
    home: Path,
) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        await harness.say("/remember The blue heron nests here")
        reply = await harness.send(make_photo(), "p.jpg", "photo", "/forget heron")
        assert reply.text.startswith("I've kept p.jpg.\n\n")
        assert reply.text.endswith("Any other answer keeps it.")


async def test_file_of_a_command_in_an_incognito_conversation_is_not_kept(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("/incognito on")
        reply = await harness.send(make_photo(), "p.jpg", "photo", "/recall heron")
        assert "This is incognito, so I haven't kept p.jpg." in reply.text
        assert kept_files(home) == []
        assert harness.platforms["telegram"].fetched == []


async def test_file_of_a_command_that_cannot_be_fetched_is_named_and_the_command_carried_out(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        attachment = Attachment(kind="document", name="bird.pdf", reference="gone")
        reply = await harness.say("/memory add Our birds", attachments=(attachment,))
        assert reply.text.startswith("I couldn't download bird.pdf.")
        assert "Noted: “Our birds”" in reply.text


@pytest.mark.parametrize("text", ["/remind in 1 day pay this", "remind me in 1 day to pay this"])
async def test_reminder_with_a_file_offers_to_send_the_file_when_it_is_due(
    home: Path, text: str
) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        await harness.send(make_photo(), "bill.jpg", "photo", text)
        await harness.say("/cron run 1")
        (reminder,) = await deliver_due(harness)
        (button,) = [button for button in reminder.buttons if button.command.name == "files"]
        assert button.label == "Send bill.jpg"
        pressed = await harness.say(button.id, kind="action", command=None)
        assert pressed.answer is not None
        assert [file.name for file in pressed.answer.files] == ["bill.jpg"]


async def test_reminder_of_the_model_offers_the_file_of_its_message_until_it_is_removed(
    home: Path,
) -> None:
    model = ScriptedModel(
        calls(("reminder", {"action": "add", "task": "in 1 day pay this"})), says("I will.")
    )
    async with open_gateway(home, model) as harness:
        await harness.send(make_photo(), "bill.jpg", "photo", "remind me in 1 day to pay this")
        (job,) = await harness.services.jobs.list_active()
        files = await list_job_files(harness.services.files, job)
        assert [file.name for file in files] == ["bill.jpg"]
        await harness.say("/files remove 1")
        assert await list_job_files(harness.services.files, job) == []


@pytest.mark.parametrize("position", [0, 1, 2])
async def test_command_as_the_caption_of_an_album_takes_all_its_files(
    home: Path, position: int
) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        platform = harness.platforms["telegram"]
        numbers: list[int | None] = []
        replies = [KeptReply() for _ in range(3)]
        for index, reply in enumerate(replies):
            platform.files[f"p{index}"] = make_photo(100 + index)
            attachment = Attachment(kind="photo", name=f"p{index}.jpg", reference=f"p{index}")
            caption = "/remind in 1 day pay these" if index == position else ""
            inbound = harness.inbound(caption, attachments=(attachment,), group_id="g")
            numbers.append(await harness.admission.admit(inbound, reply))
        await asyncio.gather(*(harness.admission.serve(number) for number in numbers if number))
        names = ["p0.jpg", "p1.jpg", "p2.jpg"]
        assert "I've kept p0.jpg, p1.jpg and p2.jpg." in replies[position].text
        assert sum(reply.answer is None for reply in replies) == 2
        assert sorted(await list_names(harness)) == names
        (job,) = await harness.services.jobs.list_active()
        files = await list_job_files(harness.services.files, job)
        assert [file.name for file in files] == names
        assert await harness.services.inbox.list_waiting() == []
