"""A person's time zone and quiet hours, as commands in a chat and as the scheduler sees them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from core.dates.schedule import Schedule, load_zone
from core.scheduling.changes import JobChanges, Snooze
from core.scheduling.zones import find_zones, move_to_zone
from core.store.preferences import Preference
from core.types import Account
from gateway import services
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.scheduler_harness import NOON, lifetime
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.tables import each_row

pytestmark = pytest.mark.slow

LISBON, BERLIN = "Europe/Lisbon", "Europe/Berlin"


@each_row(
    ("words", "zones"),
    [
        ("lisbon", [LISBON]),
        ("Europe/Berlin", [BERLIN]),
        ("São Paulo", ["America/Sao_Paulo"]),
        ("new york", ["America/New_York"]),
        ("Atlantis", []),
    ],
)
def test_zone_is_found_by_the_name_of_a_city(words: str, zones: list[str]) -> None:
    assert find_zones(words) == zones


def test_schedule_moved_to_another_time_zone_keeps_its_clock_times() -> None:
    once = Schedule(zone=LISBON, at=datetime(2026, 11, 21, 9, tzinfo=UTC))
    assert move_to_zone(once, BERLIN).at == datetime(2026, 11, 21, 8, tzinfo=UTC)
    rule = "DTSTART;TZID=Europe/Lisbon:20261123T083000\nRRULE:FREQ=WEEKLY;BYDAY=MO"
    weekly = move_to_zone(Schedule(zone=LISBON, recurrences=(rule,)), BERLIN)
    assert weekly.recurrences == (rule.replace(LISBON, BERLIN),)
    hourly = "DTSTART:20261120T103000Z\nRRULE:FREQ=HOURLY;INTERVAL=2"
    moved = move_to_zone(Schedule(zone=LISBON, recurrences=(hourly,)), BERLIN)
    assert moved.recurrences == (hourly,)


@each_row(
    ("at", "end"),
    [
        ("2026-11-20T21:59", None),
        ("2026-11-20T22:00", "2026-11-21T07:00"),
        ("2026-11-21T06:59", "2026-11-21T07:00"),
        ("2026-11-21T07:00", None),
    ],
)
def test_quiet_hours_that_pass_midnight_end_in_the_morning(at: str, end: str | None) -> None:
    preference = Preference(quiet_from="22:00", quiet_until="07:00")
    now = datetime.fromisoformat(at).replace(tzinfo=UTC)
    expected = None if end is None else datetime.fromisoformat(end).replace(tzinfo=UTC)
    assert preference.quiet_end(now, LISBON) == expected


async def test_new_zone_counts_for_new_times_and_asks_about_existing_reminders(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("/remind 2030-01-15 09:00 | water the lawn")
        asked = await harness.say("/timezone berlin")
        assert "Your time zone is Europe/Berlin now" in asked.text
        assert "You have 1 reminder with a time in another zone" in asked.text
        (job,) = await harness.services.jobs.list_active()
        assert job.next_at == datetime(2030, 1, 15, 9, tzinfo=UTC)
        assert "moved to Europe/Berlin" in (await harness.say("yes")).text
        (job,) = await harness.services.jobs.list_active()
        assert (job.next_at, job.schedule.zone) == (datetime(2030, 1, 15, 8, tzinfo=UTC), BERLIN)
        answer = await harness.say("remind me on 16 January 2030 at 10:00 to mow")
        assert "at 10:00 (Europe/Berlin)" in answer.text
        assert "no city or time zone “Atlantis”" in (await harness.say("/timezone Atlantis")).text
        assert "Europe/Berlin" in (await harness.say("/timezone")).text


async def test_first_reminder_of_a_guest_is_confirmed_with_the_assumed_time_zone(
    home: Path,
) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        first = await harness.say("remind me tomorrow at 9am to call Ana", "7")
        assert "I read your times in Europe/Lisbon." in first.text
        second = await harness.say("remind me tomorrow at 10am to call Bob", "7")
        assert "I read your times" not in second.text


async def test_owner_is_told_the_zone_of_the_machine_once_unless_the_settings_name_one(
    home: Path,
) -> None:
    async with open_gateway(home, OfflineModel("UTC"), zone="auto") as harness:
        zone = harness.services.appointments.zone
        first = await harness.say("remind me tomorrow at 9am to call Ana")
        assert f"I read your times in {zone}." in first.text
        second = await harness.say("/remind tomorrow at 10am | call Bob")
        assert "I read your times" not in second.text
        # The zone of the machine still counts, so a zone in the settings would count later.
        assert not (
            await harness.services.load_preference(Account(platform="telegram", user_id="42"))
        ).zone


async def test_guest_is_told_the_zone_once_also_after_a_command_and_after_the_model(
    home: Path,
) -> None:
    wish = {"action": "add", "moment": "2030-01-15T09:00", "task": "call Ana"}
    model = ScriptedModel(calls(("reminder", wish)), says("Done."))
    async with open_gateway(home, model) as harness:
        by_model = await harness.say("remind me on 15 January 2030 at 9:00 to call Ana", "7")
        assert by_model.text.endswith("`/timezone Lisbon`.")
        by_command = await harness.say("/remind 2030-01-16 09:00 | call Bob", "7")
        assert "I read your times" not in by_command.text
        by_owner = await harness.say("/remind 2030-01-16 09:00 | call Bob")
        assert "I read your times" not in by_owner.text


async def test_snooze_until_a_time_is_meant_in_the_persons_zone(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("/timezone Tokyo")
        await harness.say("/remind 2030-01-15 09:00 | call Ana")
        answer = await harness.say("/snooze 1 2030-01-16 18:00")
        assert "16 January 2030 at 18:00 (Asia/Tokyo)" in answer.text


_SNOOZES = {
    "en": ("2 hours", "18:00", "tomorrow"),
    "de": ("2 Stunden", "18 Uhr", "morgen"),
    "fr": ("2h", "18h", "demain"),
    "es": ("dos horas", "a las 18", "mañana"),
    "pt": ("2 horas", "às 18h", "amanhã"),
    "ru": ("2 часа", "в 18:00", "завтра"),
    "zh": ("两小时", "下午6点", "明天"),
    "ja": ("2時間", "18時", "明日"),
    "ko": ("두 시간", "오후 6시", "내일"),
    "tr": ("2 saat", "saat 18", "yar\u0131n"),
}


_CLOCK_TIMES_IN_HOURS = {
    "fr": "18 heures",
    "pt": "18 horas",
    "es": "18 horas",
    "ru": "18 \u0447\u0430\u0441\u043e\u0432",
}


async def test_snooze_reads_a_length_a_clock_time_and_tomorrow_in_ten_languages(
    home: Path, monkeypatch: pytest.MonkeyPatch, clock: SteadyClock
) -> None:
    monkeypatch.setattr(services, "WallClock", lambda: clock)
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        changes = JobChanges(harness.services.appointments)
        zone = load_zone(harness.services.appointments.zone)
        now = clock.now()
        evening = now.astimezone(zone).replace(hour=18, minute=0, second=0, microsecond=0)
        for language, (length, clock_time, tomorrow) in _SNOOZES.items():
            snoozes = [
                await changes.read_snooze(words, None, (language,))
                for words in (length, clock_time, tomorrow)
            ]
            expected = [Snooze(now + timedelta(hours=2)), Snooze(evening), Snooze()]
            assert snoozes == expected, language
        for language, words in _CLOCK_TIMES_IN_HOURS.items():
            assert await changes.read_snooze(words, None, (language,)) == Snooze(evening), words
        half_past = await changes.read_snooze("18 heures 30", None, ("fr",))
        assert half_past == Snooze(evening + timedelta(minutes=30))
        eighteen_hours = await changes.read_snooze("18 hours", None, ("en",))
        assert eighteen_hours == Snooze(now + timedelta(hours=18))
        # A unit needs a number: "/snooze 10 minutes" doesn't mean reminder 10.
        assert await changes.read_snooze("minutes", None, ("en",)) is None
        portuguese_hour = await changes.read_snooze("uma hora", None, ("pt",))
        assert portuguese_hour == Snooze(now + timedelta(hours=1))


async def test_time_is_shown_in_the_zone_that_the_person_set(
    home: Path,
) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        assert LISBON in (await harness.say("what time is it?")).text
        await harness.say("/timezone Tokyo")
        assert "Asia/Tokyo" in (await harness.say("what time is it?")).text
        assert LISBON in (await harness.say("what time is it?", "7")).text


async def test_time_line_for_the_model_has_the_zone_that_the_person_set(home: Path) -> None:
    model = ScriptedModel(says("Hello."), says("Hello again."))
    async with open_gateway(home, model) as harness:
        await harness.say("hello")
        await harness.say("/timezone Tokyo")
        await harness.say("hello again")
    *_, earlier, last = (
        item["content"][0]["text"] for item in model.requests[-1].messages if item["role"] == "user"
    )
    assert earlier.endswith(f" {LISBON}]"), (
        "what was sent stays, so that the provider's cache holds"
    )
    assert last.endswith(" Asia/Tokyo]")


async def test_quiet_hours_are_set_shown_and_ended(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        assert "You have no quiet hours" in (await harness.say("/quiet")).text
        assert "between 22:00 and 07:00" in (await harness.say("/quiet 22-7")).text
        assert "from 22:00 until 07:00" in (await harness.say("/quiet")).text
        for words in ("22:00 7:00", "von 22 Uhr bis 7 Uhr", "de 22h à 7h", "22時から7時まで"):
            assert "between 22:00 and 07:00" in (await harness.say(f"/quiet {words}")).text
        for words in ("at night", "10 pm to 7 am", "22-22", "25:00-7:00", "99-50", "22:60-7"):
            assert "Write the hours like" in (await harness.say(f"/quiet {words}")).text
        assert "no quiet hours any more" in (await harness.say("/quiet off")).text


async def test_reminder_in_quiet_hours_comes_after_them_unless_it_is_urgent(
    tmp_path: Path,
) -> None:
    quiet_end = NOON + timedelta(hours=1)
    async with lifetime(tmp_path) as life:
        calm = await life.add(text="calm")
        await life.add(text="urgent", is_urgent=True)

        async def find_quiet_end(job: object) -> datetime | None:
            is_urgent = getattr(job, "is_urgent", False)
            return None if is_urgent or life.clock.now() >= quiet_end else quiet_end

        life.cron.find_quiet_end = find_quiet_end
        async with life.listening() as cron:
            (outbox_item,) = await life.woken()
            assert outbox_item.answer is not None
            assert outbox_item.answer.text == "⏰ Reminder 2: urgent"
            waiting = await life.settled(calm)
            assert waiting.next_at == quiet_end
            life.clock.advance(hours=1, seconds=1)
            await cron.reload()
            (outbox_item,) = await life.woken(2)
            assert outbox_item.answer is not None
            assert outbox_item.answer.text == "⏰ Reminder 1: calm"
