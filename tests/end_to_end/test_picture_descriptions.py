"""The model describes a picture in its answer; people don't see the line, but recall finds it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from core.media.descriptions import MAX_CHARS, find_descriptions
from core.types import Completion
from tests.end_to_end.test_erased import forget
from tests.end_to_end.test_media import kept_files, texts_of
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.media_samples import make_photo
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow

PHOTO = make_photo()
LONG = "The wall is to be grey and the door is to be green. " * 40


def describing(
    text: str, photo: bytes = PHOTO, line: str = "A red boiler in a cellar."
) -> Completion:
    name = hashlib.sha256(photo).hexdigest()[:12]
    return says(f'{text}\n\n<memory-context picture="{name}">{line}</memory-context>')


async def test_description_is_hidden_and_found_by_recall_with_the_picture(home: Path) -> None:
    model = ScriptedModel(describing("Nice."), says("Yes."))
    async with open_gateway(home, model) as harness:
        reply = await harness.send(PHOTO, "IMG_1.jpg", "photo", "What is it?")
        assert reply.text == "Nice."
        assert "cellar" not in "".join(reply.frames)
        assert "end your next answer once with the line" in texts_of(model.requests[0])
        found = await harness.say("/recall cellar")
        assert "📎 **IMG\\_1.jpg**" in found.text
        assert "A red boiler in a cellar" in found.text
        await harness.say("And now?")
        assert "cellar" not in str(model.requests[1].messages), "the line isn't sent again"
        await forget(harness, "cellar")
        assert kept_files(home) == []


async def test_setting_switches_the_descriptions_of_pictures_off(home: Path) -> None:
    model = ScriptedModel(describing("Nice."))
    options = "[media]\ndescribe_pictures = false\n"
    async with open_gateway(home, model, options) as harness:
        assert (await harness.send(PHOTO, "a.jpg", "photo")).text == "Nice."
        assert "end your next answer" not in texts_of(model.requests[0])
        assert "cellar" not in (await harness.say("/recall cellar")).text.replace("“cellar”", "")


async def test_picture_description_for_a_picture_that_was_not_sent_is_ignored(home: Path) -> None:
    model = ScriptedModel(describing("Nice.", make_photo(colour="green")))
    async with open_gateway(home, model) as harness:
        await harness.send(PHOTO, "a.jpg", "photo")
        rows = await harness.services.database.fetch_all("SELECT * FROM file_parts")
        assert rows == []


async def test_description_is_not_shared_with_another_person_who_sends_the_same_picture(
    home: Path,
) -> None:
    model = ScriptedModel(describing("Nice.", line="Ana's secret cellar."), describing("Again."))
    async with open_gateway(home, model) as harness:
        await harness.send(PHOTO, "a.jpg", "photo")
        await harness.send(PHOTO, "b.jpg", "photo", who="7")
        rows = await harness.services.database.fetch_all("SELECT * FROM file_parts")
        assert rows == []
        assert "secret" not in (await harness.say("/recall secret", "7")).text.replace(
            "“secret”", ""
        )


async def test_incognito_picture_is_not_described(home: Path) -> None:
    model = ScriptedModel(describing("Nice."))
    async with open_gateway(home, model) as harness:
        await harness.say("/incognito")
        await harness.send(PHOTO, "a.jpg", "photo")
        rows = await harness.services.database.fetch_all("SELECT * FROM file_parts")
        assert rows == []


async def test_compression_replaces_an_old_picture_in_the_prompt_by_a_line_describing_it(
    home: Path,
) -> None:
    answers = [says("Hello."), describing("Nice."), *(says(f"Part {n}. {LONG}") for n in range(8))]
    model = ScriptedModel(*answers, says("Done."))
    async with open_gateway(home, model) as harness:
        await harness.say("We plan the house.")
        await harness.send(PHOTO, "IMG_1.jpg", "photo", "What is it?")
        for number in range(8):
            await harness.say(f"Part {number}? {LONG}")
        assert "summarized" in (await harness.say("/compress")).text.lower()
        await harness.say("And now?")
        sent = str(model.requests[-1].messages)
        assert "- Picture “IMG_1.jpg” (file 1): A red boiler in a cellar." in sent
        assert "'type': 'image'" not in sent


def test_malformed_picture_description_of_the_model_is_ignored_and_a_long_one_cut() -> None:
    name = "0123456789ab"
    assert find_descriptions(f'<memory-context picture="{name}">no end') == {}
    assert find_descriptions(f'<memory-context picture="{name}"><b>x</b></memory-context>') == {}
    long = find_descriptions(f'<memory-context picture="{name}">{"word " * 300}</memory-context>')
    assert len(long[name]) <= MAX_CHARS + 1
