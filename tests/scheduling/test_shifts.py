"""Messages that move a reminder by a length of time, in ten languages."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from core.scheduling.shifts import read_shift
from tests.fixtures.tables import each_row


@each_row(
    ("text", "minutes"),
    [
        ("push it back an hour", 60),
        ("can you delay that by 30 minutes?", 30),
        ("half an hour earlier", -30),
        ("bring it forward two hours", -120),
        ("verschieb das um eine halbe Stunde", 30),
        ("zieh es um 20 Minuten vor", -20),
        ("une heure et demie plus tard", 90),
        ("uma hora e meia mais tarde", 90),
        ("décale d'une heure", 60),
        ("repousse d'un jour", 1440),
        ("adelántalo 20 minutos", -20),
        ("adia uma hora", 60),
        ("на полчаса раньше", -30),
        ("отложи на день", 1440),
        ("推迟一个小时", 60),
        ("提前半小时", -30),
        ("1時間早めて", -60),
        ("一日延期して", 1440),
        ("30분 늦춰줘", 30),
        ("한 시간 앞당겨줘", -60),
        ("bir gün ertele", 1440),
        ("20 dakika öne al", -20),
    ],
)
def test_duration_alone_postpones_the_last_reminder_by_it(text: str, minutes: int) -> None:
    shift = read_shift(text)

    assert shift is not None
    assert shift.name == ""
    noon = datetime(2026, 3, 4, 12, tzinfo=UTC)
    assert (shift.apply(noon, ZoneInfo("Europe/Madrid")) - noon).total_seconds() == 60 * minutes


def test_request_to_postpone_a_reminder_is_read_with_the_name_of_the_reminder() -> None:
    shift = read_shift("verschieb den Klempner um eine Stunde")

    assert shift is not None
    assert shift.name == "klempner"


def test_days_of_a_shift_keep_the_wall_time_across_a_clock_change() -> None:
    zone = ZoneInfo("Europe/Madrid")
    shift = read_shift("a day later")

    assert shift is not None
    moved = shift.apply(datetime(2026, 3, 28, 9, tzinfo=zone), zone)
    assert moved.astimezone(zone) == datetime(2026, 3, 29, 9, tzinfo=zone)


@each_row("text", ["move it to 11", "décale à 11h", "in an hour", "see you later"])
def test_time_of_day_is_not_read_as_a_duration_to_postpone_by(text: str) -> None:
    assert read_shift(text) is None
