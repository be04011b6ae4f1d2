"""The life of one reminder on Telegram, without a model, through the whole gateway.

The clock of the gateway is moved; everything else runs as it does for people.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from icalendar import Calendar

from config.settings import Settings
from gateway.app import run_gateway
from gateway.scheduler import Scheduler
from gateway.supervisor import WallClock
from tests.fixtures.bot_api import BotApi

pytestmark = pytest.mark.slow

PERSON = 4242
LISBON = ZoneInfo("Europe/Lisbon")


class _Life:
    """A person on Telegram, and the gateway that answers them at a moved time."""

    def __init__(self, home: Path, api: BotApi) -> None:
        self.api = api
        self.offset = timedelta()
        (home / "mneme.toml").write_text(
            f'[owner]\ntelegram = [{PERSON}]\n[general]\nzone = "Europe/Lisbon"\n'
        )
        variables = {"TELEGRAM_BOT_TOKEN": api.token, "MNEME_TELEGRAM_API_URL": api.url}
        self._settings = Settings.load({"MNEME_HOME": str(home), **variables})

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def travel_to(self, moment: datetime) -> None:
        self.offset = moment - datetime.now(UTC)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        polls = len(self.api.called("getUpdates"))
        running = asyncio.create_task(
            run_gateway(self._settings, chat_only=False, has_terminal=False)
        )
        try:
            await self.api.wait_for(
                lambda: len(self.api.called("getUpdates")) > polls or running.done()
            )
            yield
        finally:
            running.cancel()
            await asyncio.wait([running])

    async def say(self, text: str) -> str:
        """Write a message, and return the answer."""
        count = len(self.api.texts(PERSON))
        self.api.user_says(PERSON, text)
        await self.api.wait_for(lambda: len(self.api.texts(PERSON)) > count)
        return self.api.texts(PERSON)[-1]

    async def receive(self, beginning: str) -> int:
        """Wait for a message that begins like this, and return its id."""
        await self.api.wait_for(lambda: bool(self.find(beginning)))
        return self.find(beginning)[-1]

    def calendars(self) -> list[bytes]:
        """Return the calendar files that were sent."""
        return [content for name, content in self.api.files.items() if name.endswith(".ics")]

    def find(self, beginning: str) -> list[int]:
        return [
            message["message_id"]
            for message in self.api.messages(PERSON)
            if message.get("text", "").startswith(beginning)
        ]


@pytest.mark.both_engines
async def test_german_reminder_is_asked_moved_delivered_snoozed_recalled_and_exported(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with BotApi() as api:
        life = _Life(home, api)
        api.person(PERSON)["language_code"] = "de"
        monkeypatch.setattr(WallClock, "now", lambda _: life.now())
        monkeypatch.setattr(Scheduler, "poll_interval_s", 0.2)
        life.travel_to(datetime(2027, 3, 1, 18, 0, tzinfo=LISBON))
        tuesday = datetime(2027, 3, 2, tzinfo=LISBON)

        async with life.running():
            asked = await life.say("Erinner mich an den Zahnarzt")
            assert asked.startswith("Wann soll ich dich an „den Zahnarzt“ erinnern?")
            answer = await life.say("morgen um 10")
            assert "Dienstag, 2. März 2027" in answer
            assert "10:00" in answer
            assert "Zahnarzt" in answer
            assert "11:00" in await life.say("nein, um 11")

        # The buttons survive a restart between delivery and press.
        async with life.running():
            life.travel_to(tuesday.replace(hour=11, second=1))
            reminder = await life.receive("⏰ Erinnerung 1: ")
        async with life.running():
            api.user_presses(PERSON, reminder, "10 Min.")
            await life.receive("Ich erinnere dich noch einmal")
            life.travel_to(tuesday.replace(hour=11, minute=12))
            await api.wait_for(lambda: len(life.find("⏰ Erinnerung 1")) == 2)

            life.travel_to(datetime(2027, 3, 3, 9, tzinfo=LISBON))
            assert "Zahnarzt" in await life.say("/recall Zahnarzt")

            await life.say("erinnere mich jeden Montag um 8 an den Müll")
            api.user_says(PERSON, "/export")
            await api.wait_for(lambda: bool(life.calendars()))
            (event,) = Calendar.from_ical(life.calendars()[-1]).walk("VEVENT")
            assert "Müll" in str(event["SUMMARY"])
            assert b"RRULE:FREQ=WEEKLY;BYDAY=MO\r\n" in event.to_ical()
