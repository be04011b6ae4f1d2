"""Files that people send: kept once, shown to the model, found again and erased with their message.

The real gateway with a scripted model; the files are fetched from a test platform."""

from __future__ import annotations

import asyncio
import base64
import gzip
import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from core.agent.offline import OfflineModel
from core.types import Address, Attachment, Json, Request, Scope
from tests.end_to_end.test_erased import forget
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.media_samples import (
    make_docx,
    make_mixed_pdf,
    make_pdf,
    make_photo,
    make_scan,
    make_zip,
)
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow


def kept_files(home: Path) -> list[str]:
    """The names of the files in the media folder."""
    return sorted(path.name for path in (home / "media").rglob("*") if path.is_file())


def blocks_of(request: Request) -> list[Json]:
    """The blocks of the last message of a request."""
    return list(request.messages[-1]["content"])


def texts_of(request: Request) -> str:
    return "\n".join(str(block.get("text", "")) for block in blocks_of(request))


def pictures_of(request: Request) -> list[Image.Image]:
    pictures = [block for block in blocks_of(request) if block["type"] == "image"]
    return [
        Image.open(io.BytesIO(base64.b64decode(picture["source"]["data"]))) for picture in pictures
    ]


async def test_photo_is_stored_under_its_hash_and_sent_to_the_model(home: Path) -> None:
    model = ScriptedModel(says("A blue picture."))
    async with open_gateway(home, model) as harness:
        photo = make_photo(3000, 2000, has_position=True)
        reply = await harness.send(photo, "photo.jpg", "photo", "What is this?")
        assert reply.text == "A blue picture."
        (picture,) = pictures_of(model.requests[0])
        assert picture.size == (1568, 1045)
        assert not picture.getexif(), "the position stays here"
        assert "[Contents of file 1, “photo.jpg” (jpeg, 3000x2000" in texts_of(model.requests[0])
        (original,) = [name for name in kept_files(home) if not name.endswith(".view")]
        assert (home / "media" / original[:2] / original).read_bytes() == photo


@pytest.mark.parametrize(
    "moving",
    [
        pytest.param(gzip.compress(b'{"v": "5.5.7", "layers": []}'), id="Telegram"),
        pytest.param(b'{"v": "5.5.7", "layers": []}', id="Discord"),
    ],
)
async def test_still_sticker_is_shown_to_the_model_and_a_moving_one_only_named(
    home: Path, moving: bytes
) -> None:
    buffer = io.BytesIO()
    Image.new("RGBA", (512, 512), "navy").save(buffer, "WEBP")
    model = ScriptedModel(says("Blue."), says("It moves."))
    async with open_gateway(home, model) as harness:
        await harness.send(buffer.getvalue(), "🙂 (Fun)", "sticker")
        await harness.send(moving, "🐳 (Fun)", "sticker")
    assert [picture.size for picture in pictures_of(model.requests[0])] == [(512, 512)]
    assert "[attached sticker: 🙂 (Fun)" in texts_of(model.requests[0])
    assert pictures_of(model.requests[1]) == []
    assert "“🐳 (Fun)”" in texts_of(model.requests[1])
    assert "aren't readable" in texts_of(model.requests[1])
    assert "layers" not in texts_of(model.requests[1])


@pytest.mark.parametrize(("language", "text"), [("tr", "dağ"), ("fr", "dað")])
async def test_unsure_encoding_is_decided_by_the_language_of_the_sender(
    home: Path, language: str, text: str
) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        await harness.send(b"da\xf0", "note.txt", language=language)
        (row,) = await harness.services.database.fetch_all("SELECT text FROM file_parts")
        assert row["text"] == text


async def test_same_bytes_in_two_messages_are_kept_once(home: Path) -> None:
    model = ScriptedModel(says("One."), says("Two."))
    async with open_gateway(home, model) as harness:
        await harness.send(make_photo(), "a.jpg", "photo")
        await harness.send(make_photo(), "b.jpg", "photo")
        assert len(kept_files(home)) == 2, "the bytes and their view"
        usage = await harness.services.files.measure_usage()
        assert (usage.files, usage.size) == (2, len(make_photo()))


async def test_album_is_sent_to_the_model_as_one_message_with_its_pictures_in_order(
    home: Path,
) -> None:
    model = ScriptedModel(says("Three colours."))
    async with open_gateway(home, model) as harness:
        platform = harness.platforms["telegram"]
        attachments = []
        for colour in ("red", "green", "blue"):
            platform.files[colour] = make_photo(colour=colour)
            attachments.append(Attachment(kind="photo", name="p.jpg", reference=colour))
        await harness.say("Which colours?", attachments=tuple(attachments))
        colours = [
            picture.convert("RGB").getpixel((5, 5)) for picture in pictures_of(model.requests[0])
        ]
        strongest = [max(range(3), key=lambda index: colour[index]) for colour in colours]  # type: ignore[index]
        assert strongest == [0, 1, 2]


async def test_photo_that_is_replied_to_later_is_shown_again(home: Path) -> None:
    model = ScriptedModel(says("A picture."), says("Blue."))
    async with open_gateway(home, model) as harness:
        await harness.send(make_photo(), "p.jpg", "photo", message_id="77")
        await harness.say("/new")
        await harness.say("And this?", reply_to="77")
        assert len(pictures_of(model.requests[1])) == 1


async def test_question_about_an_earlier_photo_sends_the_same_bytes_also_after_a_restart(
    home: Path,
) -> None:
    first = ScriptedModel(says("A picture."), says("Still blue."))
    async with open_gateway(home, first) as harness:
        await harness.send(make_photo(2000, 1000), "p.jpg", "photo", "Look")
        await harness.say("Which colour?")
    second = ScriptedModel(says("Blue again."))
    async with open_gateway(home, second) as harness:
        await harness.say("Sure?", message_id="900")
    requests = [*first.requests, *second.requests]
    prefixes = [strip_marks(request) for request in requests]
    for earlier, later in pairwise(prefixes):
        assert later[: len(earlier)] == earlier
    assert sum(block["type"] == "image" for block in prefixes[-1]) == 1


def strip_marks(request: Request) -> list[Json]:
    return [
        {key: value for key, value in block.items() if key != "cache_control"}
        for message in request.messages
        for block in message["content"]
    ]


async def test_document_is_sent_as_text_by_page_and_marked_as_foreign(home: Path) -> None:
    model = ScriptedModel(says("900 euros."))
    async with open_gateway(home, model) as harness:
        await harness.send(make_pdf(), "contract.pdf", text="What is the rent?")
        text = texts_of(model.requests[0])
        assert "“contract.pdf” (pdf, 8 pages, " in text
        assert "— page 7 —\nThe boiler must be serviced" in text
        assert "aren't the words of the person" in text


async def test_long_document_is_sent_as_outline_and_beginning(home: Path) -> None:
    model = ScriptedModel(says("Long."))
    options = "[media]\ndocument_chars = 2000\n"
    async with open_gateway(home, model, options) as harness:
        pages = [f"Page {number} is about topic {number}. " + "x" * 400 for number in range(40)]
        await harness.send(make_pdf(pages), "long.pdf")
        text = texts_of(model.requests[0])
        assert "- page 40: Page 39 is about topic 39." in text
        assert len(text) < 10_000


async def test_person_is_told_which_attachment_was_too_large_or_unavailable_to_store(
    home: Path,
) -> None:
    model = ScriptedModel(*(says("Hm.") for _ in range(3)))
    async with open_gateway(home, model, "[media]\nfile_mb = 0.01\n") as harness:
        reply = await harness.send(bytes(20_000), "film.mp4", "video")
        assert "film.mp4 is too large" in reply.text
        assert "are missing: it is larger than the settings allow" in texts_of(model.requests[0])
        gone = Attachment(kind="photo", name="gone.jpg", reference="nowhere")
        reply = await harness.say("See", attachments=(gone,), message_id="55")
        assert "I couldn't download gone.jpg. Reply to it" in reply.text
        harness.platforms["telegram"].files["nowhere"] = make_photo(64, 64)
        await harness.say("/new")
        await harness.say("Now?", reply_to="55")
        assert len(pictures_of(model.requests[2])) == 1, "it is tried again"
        assert kept_files(home) != []
        listed = await harness.say("/files")
        assert "film.mp4 (video, not kept)" in listed.text
        assert listed.answer is not None
        assert [button.label for button in listed.answer.buttons] == ["Send gone.jpg"]


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("person_mb", "no space left for your files, so I haven't kept b.txt"),
        ("total_mb", "no space left for files, so I haven't kept b.txt"),
    ],
)
async def test_quota_of_a_person_or_of_all_refuses_a_file_with_a_sentence(
    home: Path, option: str, sentence: str
) -> None:
    model = ScriptedModel(says("One."), says("Two."))
    async with open_gateway(home, model, f"[media]\n{option} = 0.02\n") as harness:
        await harness.send(b"a" * 15_000, "a.txt")
        reply = await harness.send(b"b" * 15_000, "b.txt")
        assert sentence in reply.text


async def test_slow_download_is_not_waited_for_and_is_there_later(home: Path) -> None:
    model = ScriptedModel(says("I see nothing yet."))
    async with open_gateway(home, model, "[media]\nwait_s = 0.2\n") as harness:
        platform = harness.platforms["telegram"]
        arrived = asyncio.Event()
        fetch = platform.fetch_file

        async def fetch_slowly(*arguments: object) -> bytes:
            await arrived.wait()
            return await fetch(*arguments)  # type: ignore[arg-type]

        platform.fetch_file = fetch_slowly  # type: ignore[method-assign, assignment]
        reply = await harness.send(make_photo(), "slow.jpg", "photo", message_id="60")
        assert "slow.jpg is still being downloaded" in reply.text
        arrived.set()
        assert harness.agent.media is not None
        downloads = harness.agent.media._downloads.values()
        await asyncio.gather(*(download.task for download in downloads))
        await harness.say("What is on it?")
        shown = json.dumps(model.requests[1].messages)
        assert shown.count('"type": "image"') == 1
        assert "still being downloaded" not in shown
        await harness.say("/new")
        await harness.say("Now?", reply_to="60")
        assert len(pictures_of(model.requests[2])) == 1


async def test_forget_deletes_the_bytes_of_a_file_with_its_message(home: Path) -> None:
    model = ScriptedModel(says("A photo."), says("A contract."))
    async with open_gateway(home, model) as harness:
        await harness.send(make_photo(), "p.jpg", "photo", "The old mill")
        await harness.send(make_pdf(), "contract.pdf", text="For the house")
        receipt = await forget(harness, "mill")
        assert "Forgotten: 1 message" in receipt
        files = kept_files(home)
        assert len(files) == 1, "the contract stays"
        receipt = await forget(harness, "boiler")
        assert "1 file" in receipt, receipt
        assert kept_files(home) == []


async def test_file_of_two_messages_stays_until_both_are_erased(home: Path) -> None:
    model = ScriptedModel(says("One."), says("Two."))
    async with open_gateway(home, model) as harness:
        await harness.send(make_photo(), "p.jpg", "photo", "The old mill")
        await harness.send(make_photo(), "p.jpg", "photo", "The quay")
        await forget(harness, "mill")
        assert len(kept_files(home)) == 2
        await forget(harness, "quay")
        assert kept_files(home) == []


async def test_message_deleted_on_its_platform_takes_its_file_along(home: Path) -> None:
    model = ScriptedModel(says("One."))
    async with open_gateway(home, model) as harness:
        await harness.send(make_photo(), "p.jpg", "photo", message_id="81")
        deletion = harness.inbound("", message_id="81", kind="delete")
        await harness.turns.edits.amend(deletion, Scope.account("telegram", "42"))
        await harness.services.forgetting.maintain()
        assert kept_files(home) == []


async def test_incognito_file_is_available_for_its_turn_only_and_then_deleted(home: Path) -> None:
    model = ScriptedModel(says("Blue."), says("Gone."))
    async with open_gateway(home, model) as harness:
        await harness.say("/incognito")
        await harness.send(make_photo(), "secret.jpg", "photo")
        assert len(pictures_of(model.requests[0])) == 1
        assert kept_files(home) == []
        assert (await harness.services.files.measure_usage()).files == 0
        await harness.say("And now?")
        everything = [
            block for message in model.requests[1].messages for block in message["content"]
        ]
        assert all(block["type"] != "image" for block in everything)


async def test_incognito_document_without_a_model_is_not_said_to_be_found_later(home: Path) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        await harness.say("/incognito")
        reply = await harness.send(make_pdf(), "secret.pdf")
        assert "I keep nothing of secret.pdf" in reply.text
        assert "/recall" not in reply.text


async def test_attachment_without_a_model_is_confirmed_as_stored_but_unread(home: Path) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        reply = await harness.send(make_pdf(), "contract.pdf", text="What is in this contract?")
        assert reply.text.startswith("I've kept contract.pdf (pdf, 8 pages, ")
        assert "No model is configured, so I can't tell you what is in it." in reply.text
        reply = await harness.send(make_photo(), "p.jpg", "photo")
        assert "I've kept p.jpg (jpeg, 640x480" in reply.text
        reply = await harness.send(make_docx(), "letter.docx")
        assert "I've kept letter.docx (docx, " in reply.text
        reply = await harness.send(make_zip({"a": "b"}), "photos.zip")
        unread = "I've kept photos.zip, but can't read files of this type."
        assert reply.text == f"I've saved that.\n\n{unread}"


async def test_model_without_picture_support_is_told_of_the_picture_and_the_person_informed(
    home: Path,
) -> None:
    model = ScriptedModel(says("I can't see it."))
    options = '[model]\nlacks = { "claude-sonnet-5-5" = ["pictures"] }\n'
    async with open_gateway(home, model, options) as harness:
        reply = await harness.send(make_photo(), "p.jpg", "photo")
        assert "You can't see this picture" in texts_of(model.requests[0])
        assert "p.jpg is kept, but my model can't see pictures." in reply.text


async def test_scanned_pdf_is_announced_as_a_scan_and_its_page_shown_to_the_model(
    home: Path,
) -> None:
    model = ScriptedModel(says("An empty page."))
    async with open_gateway(home, model) as harness:
        reply = await harness.send(make_scan(), "scan.pdf")
        assert "scan.pdf is a scan" in reply.text
        assert len(pictures_of(model.requests[0])) == 1


async def test_scanned_pages_of_a_pdf_with_text_are_named_and_shown_up_to_the_limit(
    home: Path,
) -> None:
    model = ScriptedModel(says("Two pages of pictures."))
    async with open_gateway(home, model, "[media]\nscan_pages = 2\n") as harness:
        reply = await harness.send(make_mixed_pdf(), "mixed.pdf")
        assert (
            "can't search the text of these pages, because they're pictures: 2–3, 5." in reply.text
        )
        text = texts_of(model.requests[0])
        assert "Pages that are scans, pictures without text: 2–3, 5." in text
        assert "The pictures that follow show, in this order, page 2, 3." in text
        assert "— page 4 —\nThe last page" in text
        greys = [picture.getpixel((50, 50)) for picture in pictures_of(model.requests[0])]
        assert greys == [(255,) * 3, (235,) * 3]


async def test_first_pages_of_a_scan_are_shown_in_order_up_to_the_limit(home: Path) -> None:
    model = ScriptedModel(says("White pages."))
    async with open_gateway(home, model, "[media]\nscan_pages = 3\n") as harness:
        await harness.send(make_scan(5), "scan.pdf")
        greys = [picture.getpixel((50, 50)) for picture in pictures_of(model.requests[0])]
        assert greys == [(255,) * 3, (235,) * 3, (215,) * 3]


async def file_rows(harness: GatewayHarness) -> int:
    rows = await harness.services.database.fetch_all("SELECT id FROM message_files")
    return len(rows)


async def test_export_lists_files_with_their_text(home: Path) -> None:
    model = ScriptedModel(says("Kept."))
    async with open_gateway(home, model) as harness:
        await harness.send(make_pdf(), "contract.pdf")
        reply = await harness.say("/export")
        assert reply.answer is not None
        exported = "".join(file.content.decode() for file in reply.answer.files)
        assert '"name": "contract.pdf"' in exported
        assert "The boiler must be serviced" in exported
        assert await file_rows(harness) == 1


async def test_file_of_overheard_group_talk_is_kept_and_shown_when_it_is_asked_about(
    home: Path,
) -> None:
    place: dict[str, Any] = {
        "address": Address(platform="telegram", chat_id="-5"),
        "scope": Scope.group("telegram", "-5"),
        "is_direct": False,
    }
    options = "[room]\nlisten = true\n"
    model = ScriptedModel(says("A blue picture."))
    async with open_gateway(home, model, options) as harness:
        await harness.send(
            make_photo(), "p.jpg", "photo", "look", is_addressed=False, message_id="70", **place
        )
        assert model.requests == []
        assert len(kept_files(home)) == 2, "the bytes and their view"
        await harness.say("What is it?", reply_to="70", **place)
        assert len(pictures_of(model.requests[0])) == 1


async def test_files_of_unaddressed_group_messages_are_not_stored_if_turned_off(home: Path) -> None:
    options = "[room]\nlisten = true\n[media]\ngroup_talk = false\n"
    async with open_gateway(home, ScriptedModel(), options) as harness:
        await harness.send(
            make_photo(),
            "p.jpg",
            "photo",
            "look",
            is_addressed=False,
            address=Address(platform="telegram", chat_id="-5"),
            scope=Scope.group("telegram", "-5"),
            is_direct=False,
        )
        assert kept_files(home) == []
