"""Plain questions about a person's time in ten languages, and messages that are none."""

# ruff: noqa: RUF001

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from core.scheduling.talk.agenda_questions import may_ask_about_period, read_question
from tests.fixtures.tables import each_row

ZONE = ZoneInfo("Europe/Lisbon")
NOW = datetime(2026, 11, 20, 10, 0, tzinfo=ZONE)
"""A Friday."""
TOMORROW = [
    "What do I have tomorrow?", "what's on my calendar tomorrow", "Do I have anything tomorrow?",
    "What's on Saturday?", "what does my saturday look like?", "and what's up tomorrow? 🙂",
    "Was habe ich morgen?", "Was steht am Samstag an?", "Was habe ich morgen vor?", "hab ich morgen was vor",
    "¿Qué tengo mañana?", "que tengo para mañana", "tengo algo el sábado?",
    "Qu'est-ce que j'ai demain ?", "j’ai quoi demain", "c'est quoi le programme demain ?",
    "O que eu tenho amanhã?", "tenho alguma coisa amanhã?", "Что у меня завтра?", "Завтра что у меня?",
    "Есть ли у меня что-нибудь завтра?",
    "какие планы на завтра?", "我明天有什么安排？", "明天有事吗？", "明天要做什么",
    "明日の予定は？", "明日何がある？", "明日の予定を教えて", "내일 일정 뭐야?", "내일 뭐 있어?", "내일 약속 있어?",
    "Yarın neyim var?", "yarın planım ne", "yarın bir şeyim var mı?",
]  # fmt: skip
FREE_SATURDAY = [
    "Am I free on Saturday?", "Bin ich am Samstag frei?", "¿Estoy libre el sábado?", "Suis-je libre samedi ?",
    "Estou livre no sábado?", "Я свободен в субботу?", "我星期六有空吗？", "土曜日は空いてる？",
    "토요일에 시간 있어?", "Cumartesi boş muyum?", "Habe ich am Samstag Zeit?", "is saturday free",
]  # fmt: skip
WEEKEND = [
    "what's on this weekend?", "Was steht am Wochenende an?", "qué tengo el fin de semana",
    "qu'est-ce que j'ai ce week-end ?", "o que eu tenho no fim de semana?", "что у меня на выходных?",
    "周末有什么安排？", "週末の予定は？", "주말에 뭐 있어?", "hafta sonu neyim var?",
]  # fmt: skip
YESTERDAY = [
    "What did I have yesterday?", "Was hatte ich gestern?", "was habe ich gestern gemacht?", "¿Qué tuve ayer?",
    "Qu'est-ce que j'avais hier ?", "O que eu tive ontem?", "Что у меня было вчера?", "昨天有什么安排？",
    "我昨天做了什么", "昨日は何があった？", "어제 뭐 있었어?", "Dün neyim vardı?",
]  # fmt: skip
LAST_WEEK = [
    "what happened last week?", "Was war letzte Woche?", "qué hice la semana pasada",
    "que s'est-il passé la semaine dernière ?", "o que aconteceu semana passada?", "что было на прошлой неделе?",
    "上周发生了什么？", "先週は何をした？", "지난주에 뭐 했어?", "geçen hafta ne oldu?",
]  # fmt: skip
EVENTS = [
    ("When is the dentist?", "dentist"), ("Wann ist der Zahnarzt?", "Zahnarzt"),
    ("¿Cuándo es el dentista?", "dentista"), ("Quand est le dentiste ?", "dentiste"),
    ("Quando é o dentista?", "dentista"), ("Когда стоматолог?", "стоматолог"),
    ("牙医是什么时候？", "牙医"), ("歯医者はいつですか？", "歯医者"), ("치과가 언제야?", "치과"),
    ("Dişçi ne zaman?", "Dişçi"),
    ("When is my dentist appointment?", "dentist"), ("when's my appointment with Ana", "Ana"),
    ("When is my next appointment?", "appointment"), ("Wann ist mein Termin beim Zahnarzt?", "Zahnarzt"),
    ("¿Cuándo es mi cita con el dentista?", "dentista"), ("C'est quand mon rendez-vous chez le dentiste ?", "dentiste"),
    ("Quando é a minha consulta com o dentista?", "dentista"), ("Когда у меня приём у стоматолога?", "стоматолога"),
    ("我的牙医预约是什么时候？", "牙医"), ("歯医者の予約はいつ？", "歯医者"), ("치과 예약이 언제야?", "치과"),
    ("Dişçi randevum ne zaman?", "Dişçi"),
]  # fmt: skip
OTHERS = [
    "What is the password?", "What do I have to buy?", "Tomorrow I fly", "Was ist Kyudo?", "what about 11?",
    "how about saturday?", "can you make it tomorrow?", "wie wäre es am Samstag?", "mejor el sábado",
    "土曜日にして", "予定を11時に変更して", "내일 11시에 약속 알려줘", "cumartesi olsun", "morgen ist frei",
    "estoy libre el sábado", "tengo algo mañana", "je suis libre samedi", "我明天有空", "明日は忙しい", "내일 한가해",
    "я свободен в субботу", "cumartesi boş",
]  # fmt: skip


def period_of(text: str) -> tuple[str, str, bool]:
    assert may_ask_about_period(text)
    question = read_question(text, NOW, ZONE)
    assert question is not None
    assert question.what == ""
    return f"{question.start:%m-%d}", f"{question.end:%m-%d}", question.is_past


@each_row("text", [*TOMORROW, *FREE_SATURDAY])
def test_question_about_a_day_is_read_in_ten_languages(text: str) -> None:
    assert period_of(text) == ("11-21", "11-22", False)


@each_row("text", WEEKEND)
def test_question_about_the_weekend_is_read_in_ten_languages(text: str) -> None:
    assert period_of(text) == ("11-21", "11-23", False)


@each_row("text", YESTERDAY)
def test_question_about_yesterday_is_not_read_as_one_about_next_week(text: str) -> None:
    assert period_of(text) == ("11-19", "11-20", True)


@each_row("text", LAST_WEEK)
def test_question_about_last_week_is_read_in_ten_languages(text: str) -> None:
    assert period_of(text) == ("11-09", "11-16", True)


def test_weekday_without_a_week_is_in_the_past_if_the_question_is() -> None:
    assert period_of("what did i do on saturday") == ("11-14", "11-15", True)


@each_row(("text", "what"), EVENTS)
def test_question_for_the_time_of_an_event_is_read_in_ten_languages(text: str, what: str) -> None:
    question = read_question(text, NOW, ZONE)
    assert question is not None
    assert (question.start, question.what) == (NOW, what)


@each_row("text", OTHERS)
def test_message_about_something_else_asks_for_no_period(text: str) -> None:
    question = read_question(text, NOW, ZONE)
    assert question is None or question.what
