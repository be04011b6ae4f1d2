"""Without a model, spoken wishes set reminders in each language, and only a tap changes one."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from core.types import Scope
from gateway.texts.catalog import load_offline_texts
from tests.end_to_end.test_media import kept_files
from tests.end_to_end.test_voice import options_for
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.media_samples import make_photo
from tests.fixtures.transcription_service import TranscriptionService

pytestmark = pytest.mark.slow

OWNER = frozenset({Scope.account("telegram", "42")})
# A request for tomorrow at nine in each language, and a word of its task.
WISHES = {
    "en": ("Set a reminder for tomorrow at nine to call Ana", "call Ana"),
    "de": ("Erinnere mich morgen um neun daran, Ana anzurufen", "Ana anzurufen"),
    "es": ("Recuérdame mañana a las nueve llamar a Ana", "llamar a Ana"),
    "fr": ("Rappelle-moi demain à neuf heures d'appeler Ana", "appeler Ana"),
    "pt-BR": ("Me lembre amanhã às nove de ligar para Ana", "ligar para Ana"),
    "ru": ("Напомни мне завтра в девять позвонить Ане", "позвонить Ане"),
    "ja": ("明日の9時にアナに電話するようリマインドして", "アナに電話"),
    "ko": ("내일 아홉 시에 아나에게 전화하라고 알려줘", "아나에게 전화"),
    "tr": ("Yarın saat dokuzda bana Ana'yı aramayı hatırlat", "Ana'yı ara"),  # noqa: RUF001
    "zh": ("明天九点提醒我给安娜打电话", "给安娜打电话"),
}


async def speak(
    harness: GatewayHarness, service: TranscriptionService, words: str, language: str = "en"
) -> KeptReply:
    """Send a voice note with these words."""
    service.segments = [(0.0, words)]
    note = b"OggS" + words.encode()
    return await harness.send(note, "voice.oga", "voice", language=language)


async def test_spoken_wish_sets_a_reminder_and_is_read_back_in_each_language(home: Path) -> None:
    model = OfflineModel("Europe/Lisbon", load_texts=load_offline_texts)
    async with (
        TranscriptionService([]) as service,
        open_gateway(home, model, options_for(service)) as harness,
    ):
        for number, (language, (words, task)) in enumerate(WISHES.items(), start=1):
            reply = await speak(harness, service, words, language)
            assert words in reply.text.partition("\n\n")[0], language
            (job,) = await harness.services.jobs.list_visible(OWNER)
            assert (job.id, task in job.text) == (number, True), (language, job.text)
            assert task in reply.text.partition("\n\n")[2], language
            await harness.say(f"/cron remove {job.id}")


@pytest.mark.parametrize(
    ("words", "label", "after"),
    [
        ("Cancel the dentist reminder", "Remove it", ""),
        ("Move the dentist to 11", "Change: ", "11:00"),
        ("Done", "Mark it as done", ""),
    ],
)
async def test_spoken_change_of_a_reminder_waits_for_a_tap_without_a_model(
    home: Path, words: str, label: str, after: str
) -> None:
    async with (
        TranscriptionService([]) as service,
        open_gateway(home, OfflineModel("Europe/Lisbon"), options_for(service)) as harness,
    ):
        await harness.say("Remind me tomorrow at 9 to go to the dentist")
        before = await harness.services.jobs.list_visible(OWNER)
        reply = await speak(harness, service, words)
        assert await harness.services.jobs.list_visible(OWNER) == before, reply.text
        assert reply.answer is not None
        (button,) = reply.answer.buttons
        assert button.label.startswith(label)
        await harness.say(button.id, kind="action")
        after_tap = await harness.services.jobs.list_visible(OWNER)
        assert after_tap != before
        assert after in (await harness.say("/cron")).text


async def test_photo_with_a_wish_as_its_caption_is_kept_without_a_model(home: Path) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        photo = make_photo()
        caption = "Erinnere mich morgen um 9 daran, das zu bezahlen"
        await harness.send(photo, "bill.jpg", "photo", caption, language="de")
        (job,) = await harness.services.jobs.list_visible(OWNER)
        assert "bezahlen" in job.text
        assert kept_files(home) != []


async def test_spoken_yes_leaves_the_question_open_and_says_so(home: Path) -> None:
    async with (
        TranscriptionService([]) as service,
        open_gateway(home, OfflineModel("Europe/Lisbon"), options_for(service)) as harness,
    ):
        await harness.say("The ferry leaves at nine, says Ben")
        await harness.say("/forget ferry")
        reply = await speak(harness, service, "Yes, please.")
        assert "type **yes**" in reply.text
        assert reply.answer is not None
        await harness.say(reply.answer.buttons[0].id, kind="action")
        assert "Ben" not in (await harness.say("/recall ferry")).text
