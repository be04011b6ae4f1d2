"""Plain questions about the calendar in ten languages, and messages that are none."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from core.tools.agenda_questions import AgendaQuestion, read_question, select_events
from tests.fixtures.tables import each_row

ZONE = ZoneInfo("Europe/Lisbon")
NOW = datetime(2026, 11, 24, 9, 0, tzinfo=ZONE)
TOMORROW = [
    "What do I have tomorrow?", "what's on my calendar tomorrow", "Do I have anything tomorrow?",
    "Was habe ich morgen?", "Was steht morgen an?", "¿Qué tengo mañana?", "Qu'est-ce que j'ai demain ?",
    "O que eu tenho amanhã?", "Что у меня завтра?", "我明天有什么安排？", "明日の予定は？",  # noqa: RUF001
    "내일 일정 뭐야?", "Yarın neyim var?",  # noqa: RUF001
]  # fmt: skip
DENTIST = [
    ("When is the dentist?", "dentist"), ("Wann ist der Zahnarzt?", "Zahnarzt"),
    ("¿Cuándo es el dentista?", "dentista"), ("Quand est le dentiste ?", "dentiste"),
    ("Quando é o dentista?", "dentista"), ("Когда стоматолог?", "стоматолог"),
    ("牙医是什么时候？", "牙医"), ("歯医者はいつですか？", "歯医者"), ("치과가 언제야?", "치과"),
    ("Dişçi ne zaman?", "Dişçi"),
]  # fmt: skip
OTHERS = ["What is the password?", "What do I have to buy?", "Tomorrow I fly", "Was ist Kyudo?"]
RESULT = (
    "[Events of the calendar.]\n- Wed 25 Nov 2026 10:00 to 11:00 Dentist *Silva* (Rua 1)\n"
    "- Thu 26 Nov 2026 all day: Fair"
)


@each_row("text", TOMORROW)
def test_question_for_the_events_of_a_day_is_read_in_ten_languages(text: str) -> None:
    question = read_question(text, NOW, ZONE)
    assert question is not None
    assert (question.start.isoformat(), question.what) == ("2026-11-25T00:00:00+00:00", "")
    assert question.end.isoformat() == "2026-11-26T00:00:00+00:00"


@each_row(("text", "what"), DENTIST)
def test_question_for_the_time_of_an_event_is_read_in_ten_languages(text: str, what: str) -> None:
    question = read_question(text, NOW, ZONE)
    assert question is not None
    assert (question.start, question.what) == (NOW, what)


@each_row("text", OTHERS)
def test_question_about_something_else_is_not_a_question_about_the_calendar(text: str) -> None:
    assert read_question(text, NOW, ZONE) is None


def test_lines_of_the_event_that_is_asked_for_are_chosen_and_escaped() -> None:
    one = AgendaQuestion(NOW, NOW, "dentist")
    dentist = r"- Wed 25 Nov 2026 10:00 to 11:00 Dentist \*Silva\* (Rua 1)"
    assert select_events(RESULT, one) == [dentist]
    assert len(select_events(RESULT, AgendaQuestion(NOW, NOW))) == 2
    assert select_events(RESULT, AgendaQuestion(NOW, NOW, "plumber")) == []
