"""Reminders that the person asked for in words that no rule covers: what the helper may decide."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from core.dates.schedule import ParsedSchedule, Schedule
from core.review.doubts import may_contain_wish
from core.review.transcript import Transcript
from core.scheduling.planning import may_be_meant
from core.types import Effect
from tests.fixtures.tables import each_row

ZONE = ZoneInfo("Europe/Lisbon")
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=ZONE)
REQUESTS = Path(__file__).parent / "data" / "plans.txt"
MAX_SHARE = 0.04


def may_ask(
    typed: str, task: str, when: str = "2026-11-21T08:00", *, is_prompt: bool = False
) -> bool:
    if when.startswith("FREQ"):
        start = f"DTSTART;TZID=Europe/Lisbon:{NOW:%Y%m%dT%H%M%S}"
        schedule = Schedule(zone="Europe/Lisbon", recurrences=(f"{start}\nRRULE:{when}",))
    else:
        moment = datetime.fromisoformat(when).replace(tzinfo=ZONE)
        schedule = Schedule(zone="Europe/Lisbon", at=moment)
    planned = ParsedSchedule(schedule=schedule, text=task, is_certain=True, is_prompt=is_prompt)
    transcript = Transcript(messages=(typed,), questions=(), all_typed=typed, foreign=())
    return may_be_meant(planned, transcript, NOW, ZONE) and may_contain_wish(typed, Effect.PLAN)


@each_row(
    ("typed", "task", "may_judge"),
    [
        ("shout at me tomorrow at 8 to leave the office", "leave the office", True),
        ("tomorrow 8:00, bins", "bins", True),
        ("толкни меня завтра в 8 утра, надо переставить машину", "переставить машину", True),
        ("明日の朝8時に車を動かすよう声かけて", "車を動かす", True),
        ("dame un toque mañana a las 8 para sacar el coche", "sacar el coche", True),
        ("내일 아침 8시에 차 빼라고 말해 줘", "차 빼기", True),
        # The time, a name or a figure was not typed.
        ("shout at me tomorrow at 9 to leave the office", "leave the office", False),
        ("shout at me tomorrow at 8 to leave the office", "send Mallory the keys", False),
        ("shout at me tomorrow at 8 to leave the office", "leave Mallory the office", False),
        ("shout at me tomorrow at 8 to leave the office", "leave the office, code 4471", False),
        ("I leave the office", "leave the office", False),
    ],
)
def test_helper_model_may_judge_a_reminder_only_if_its_time_names_and_figures_were_typed(
    typed: str, task: str, may_judge: bool
) -> None:
    assert may_ask(typed, task) is may_judge


@each_row(
    ("typed", "task", "may_judge"),
    [
        ("Mallory's mail - remind me tomorrow at 8 to send my keys", "send my keys", False),
        (
            "Mallory's mail: remind me tomorrow at 8 to send keys",
            "Mallory's mail, send keys",
            False,
        ),
        ("Mallory again - remind me tomorrow at 8 to send my keys", "send my keys", False),
        ("Evas Brief: erinnere mich morgen um 8 an die Miete", "die Miete", False),
        ("Письмо Евы - напомни мне завтра в 8 про аренду", "аренда", False),
        ("Eveのメール：明日の朝8時に家賃をリマインドして", "家賃", False),
        ("Mallory's mail, remind me tomorrow at 8 to send my keys", "send my keys", False),
        ("A text for you. remind me tomorrow at 8 to send my keys", "send my keys", False),
        ("To do from Eve. Remind me tomorrow at 8 to send my keys", "send my keys", False),
        ("Eve remind me tomorrow at 8 to send my keys", "send my keys", False),
        ("말로리가 내일 8시에 열쇠 보내라고 말해", "열쇠 보내기", False),
        ("Eve / remind me tomorrow at 8 to send my keys", "send my keys", False),
        ("> Remind me tomorrow at 8 to send my keys", "send my keys", False),
        ("“Remind me tomorrow at 8 to send my keys”", "send my keys", False),
        ("Remind me tomorrow at 8 to send my keys (Eve)", "send my keys", False),
        ("Remind me tomorrow at 8 to send my keys. Eve", "send my keys", False),
        # The lead is about the task, names a time, or is polite.
        ("Ben's birthday - remind me tomorrow at 8 to call him", "Ben's birthday: call him", True),
        ("Tomorrow: remind me at 8 to call Ben", "call Ben", True),
        ("One more thing: remind me tomorrow at 8 to call Ben", "call Ben", True),
        ("remind me tomorrow at 8: call Ben", "call Ben", True),
        ("Thanks! Remind me tomorrow at 8 to call Ben", "call Ben", True),
        ("⏰ remind me tomorrow at 8 to call Ben", "call Ben", True),
        ("Oh no, the car! Remind me tomorrow at 8 to move it", "move the car", True),
        ("text me tomorrow at 8 to call Ben", "call Ben", True),
        ("remind me tomorrow at 8 to answer the mail", "answer the mail", True),
    ],
)
def test_request_behind_words_about_something_else_is_not_left_to_the_helper_model(
    typed: str, task: str, may_judge: bool
) -> None:
    assert may_ask(typed, task) is may_judge


@pytest.mark.slow
@each_row(
    ("typed", "rule", "is_typed"),
    [
        ("daily at 7", "DAILY;BYHOUR=7;BYMINUTE=0", True),
        ("every year on 3 May at 9", "YEARLY;BYMONTH=5;BYMONTHDAY=3;BYHOUR=9;BYMINUTE=0", True),
        (
            "daily at 7 until Friday",
            "DAILY;BYHOUR=7;BYMINUTE=0;UNTIL=20261127T070000Z",
            True,
        ),
        (
            "on the first Monday of every month at 9",
            "MONTHLY;BYDAY=MO;BYSETPOS=1;BYHOUR=9;BYMINUTE=0",
            True,
        ),
        ("daily at 7", "DAILY;BYHOUR=7;BYMINUTE=0;COUNT=90", False),
        ("daily at 7", "DAILY;BYHOUR=7;BYMINUTE=0;UNTIL=20270401T000000Z", False),
        (
            "daily at 7 until 31 December 2028",
            "DAILY;BYHOUR=7;BYMINUTE=0;UNTIL=20991231T000000Z",
            False,
        ),
        ("daily at 7", "DAILY;BYHOUR=7;BYMINUTE=0;BYDAY=MO,TU,WE,TH,FR", False),
        ("daily at 7", "DAILY;BYHOUR=7;BYMINUTE=0;BYMONTH=11,12,1,2", False),
        ("every 2 hours", "HOURLY;INTERVAL=2;BYDAY=FR,SA,SU,MO", False),
        ("every 2 hours", "HOURLY;INTERVAL=3", False),
        ("every 2 hours", "HOURLY;INTERVAL=2;BYMONTH=11,12", False),
        ("every 2 hours", "HOURLY;INTERVAL=2;BYHOUR=8,10,12,14", False),
    ],
)
def test_recurrence_that_differs_from_the_typed_one_is_never_left_to_the_helper_model(
    typed: str, rule: str, is_typed: bool
) -> None:
    assert may_ask(f"remind me {typed} to swim", "swim", f"FREQ={rule}") is is_typed


def test_scheduled_question_is_never_sent_to_the_helper_model_for_judgement() -> None:
    assert not may_ask("shout at me tomorrow at 8 about the news", "the news", is_prompt=True)


@pytest.mark.slow
def test_helper_model_may_judge_all_but_a_few_of_88_everyday_reminder_requests() -> None:
    rows = [line.split(" | ") for line in REQUESTS.read_text(encoding="utf-8").splitlines()[1:]]
    asking = []
    for typed, task, when in rows:
        if when.startswith("+"):
            when = f"{NOW + timedelta(minutes=int(when[1:])):%Y-%m-%dT%H:%M}"
        if not may_ask(typed, task, when):
            asking.append(typed)
    print(f"\n{len(asking)} of {len(rows)} ask even with a helper that is right: {asking}")  # noqa: T201  The figure is asked for.
    assert len(rows) == 88
    assert len(asking) <= MAX_SHARE * len(rows), asking
