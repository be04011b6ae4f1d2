"""The process's clock jumps by a day, back, over a clock change, and while the process is stopped or
dead. Each reminder comes once: a single one late with its due time, a recurring one once for all the
times that were missed."""

from __future__ import annotations

import re
import signal
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.fixtures.live_system import PERSON, LiveSystem

pytestmark = pytest.mark.timeout(1800)

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
WAIT_S = 240.0
REMINDER = re.compile(r"⏰ Reminder \d+( \(due [^)]*\))?: (\w+)")


class _FakeClock:
    """The clock of the process, which reads its distance from the real time in a file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "offset"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(LIBRARIES[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            # A suspended machine's monotonic clock stands still, too.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, moment: str) -> None:
        """Show a moment, such as "2027-10-29 11:58:00" in UTC, from now on."""
        target = datetime.fromisoformat(moment).replace(tzinfo=UTC)
        offset = (target - datetime.now(UTC)).total_seconds()
        temporary = self._file.with_suffix(".new")
        temporary.write_text(f"{offset:+.3f}\n")
        temporary.replace(self._file)


class _Person:
    """Writes to the bot on Telegram, and reads the reminders that come."""

    def __init__(self, live: LiveSystem) -> None:
        self._live = live

    async def say(self, text: str) -> None:
        """Send a message, and wait for the answer."""
        shown = len(self._live.telegram.texts(PERSON))
        self._live.telegram.user_says(PERSON, text, user_id=PERSON)
        await self._live.telegram.wait_for(
            lambda: len(self._live.telegram.texts(PERSON)) > shown, WAIT_S
        )

    async def probe(self) -> None:
        """Run the reminder `probe` now, and wait for it: the scheduler has then seen the clock."""
        shown = self._count_all()["probe"]
        await self.say("/cron run 1")
        await self._live.telegram.wait_for(lambda: self._count_all()["probe"] > shown, WAIT_S)

    async def wait_for(self, word: str) -> None:
        shown = self._count_all()[word]
        await self._live.telegram.wait_for(lambda: self._count_all()[word] > shown, WAIT_S)

    def _count_all(self) -> Counter[str]:
        return Counter(word for _, word in self.list_reminders())

    def list_reminders(self) -> list[tuple[str, str]]:
        """Return the reminders that were shown: how late, and the text."""
        texts = self._live.telegram.texts(PERSON)
        return [(match[1] or "", match[2]) for match in map(REMINDER.search, texts) if match]

    def count(self) -> dict[str, int]:
        """Return how often each reminder came, without the probe."""
        return {word: count for word, count in self._count_all().items() if word != "probe"}


@pytest.mark.skipif(not LIBRARIES, reason="libfaketime isn't installed")
async def test_each_reminder_is_delivered_once_across_jumps_of_the_system_clock(
    home: Path, tmp_path: Path
) -> None:
    clock = _FakeClock(tmp_path)
    async with LiveSystem.open(home, is_loop_watched=False) as live:
        person = _Person(live)
        # Lisbon is an hour ahead of UTC until 31 October 2027 at 1:00 UTC.
        clock.set("2027-10-29 11:58:00")
        await live.start(is_fresh=True, **clock.environment)
        for line in (
            "2030-01-01 09:00 | probe",
            "2027-10-29 13:05 | once",
            "every day at 13:10 | daily",
            "every day at 1:30 | night",
            "*/20 * * * * | often",
        ):
            await person.say(f"/remind {line}")
        await person.probe()
        started = person.count()
        assert started.keys() <= {"often"}

        # A day passes at once: the machine was asleep, or its clock was wrong.
        clock.set("2027-10-30 14:01:00")
        await person.probe()
        first = Counter(person.count())
        first.subtract(started)
        assert first == {"once": 1, "daily": 1, "night": 1, "often": 1}
        lateness = {word: late for late, word in person.list_reminders() if late}
        assert "due Friday 29 October 2027 at 13:05" in lateness["once"]
        assert "due 13:10, 1 hour 51 minutes late" in lateness["daily"]

        # Back by three hours, and forward again: what came doesn't come again.
        before = person.count()
        clock.set("2027-10-30 11:05:00")
        await person.probe()
        assert person.count() == before
        clock.set("2027-10-30 14:05:00")
        await person.probe()
        assert person.count() == before

        # 1:30 comes twice in the night of the clock change. The reminder comes at the first one.
        clock.set("2027-10-31 00:29:56")
        await person.wait_for("night")
        clock.set("2027-10-31 01:30:30")
        await person.probe()
        before_pause = person.count()
        assert before_pause["night"] == before["night"] + 1
        assert before_pause["daily"] == before["daily"]

        # The process is stopped for a day and a half, as on a suspended machine.
        assert live.process is not None
        live.process.send_signal(signal.SIGSTOP)
        clock.set("2027-11-01 14:01:00")
        live.process.send_signal(signal.SIGCONT)
        await person.probe()
        after_pause = Counter(person.count())
        after_pause.subtract(before_pause)
        assert after_pause == {"once": 0, "daily": 1, "night": 1, "often": 1}

        # The process is killed, and starts again after a day.
        before_kill = person.count()
        await live.kill()
        clock.set("2027-11-02 14:01:00")
        await live.start(is_fresh=True, **clock.environment)
        await person.probe()
        after_kill = Counter(person.count())
        after_kill.subtract(before_kill)
        assert after_kill == {"once": 0, "daily": 1, "night": 1, "often": 1}

        # 1:30 doesn't exist on 26 March 2028. The reminder comes once in that night, an hour later
        # on the clock, and at 1:30 again in the next one.
        before_spring = person.count()
        clock.set("2028-03-26 00:29:00")
        await person.probe()
        evening = Counter(person.count())
        evening.subtract(before_spring)
        assert evening == {"once": 0, "daily": 1, "night": 1, "often": 1}
        clock.set("2028-03-26 01:29:56")
        await person.wait_for("night")
        clock.set("2028-03-26 02:40:00")
        await person.probe()
        assert person.count()["night"] == before_spring["night"] + 2
        clock.set("2028-03-27 00:29:56")
        await person.wait_for("night")
        assert person.count()["night"] == before_spring["night"] + 3

        doubles = live.query("SELECT key FROM outbox GROUP BY key HAVING COUNT(*) > 1")
        assert doubles == []
        assert await live.stop() == 0
