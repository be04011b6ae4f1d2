"""Periods that sentences name, in many languages, said on Monday 23 November 2026."""

# ruff: noqa: RUF001
from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.dates.mentions import mentioned, month_of

TODAY = date(2026, 11, 23)


def _said(text: str) -> list[str]:
    """``first/last`` of each period; what returns, as it was or will be in 2026."""
    spans = [tuple(map(date.fromordinal, span)) for span in mentioned(text, TODAY)]
    chosen = [span for span in spans if span[0].year == 2026] if len(spans) > 20 else spans
    return [f"{first}/{last}" if first != last else f"{first}" for first, last in chosen]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did I buy in April 2025?", ["2025-04-01/2025-04-30"]),
        ("In April, during lunch", ["2026-04-01/2026-04-30"]),
        ("in early January", ["2026-01-01/2026-01-10"]),
        ("mid-January", ["2026-01-10/2026-01-20"]),
        ("at the end of March", ["2026-03-20/2026-03-31"]),
        ("his weight in mid-to-late July", ["2026-07-10/2026-07-31"]),
        ("in early and late July", ["2026-07-01/2026-07-31"]),
        ("the two weeks after 3 December 2024", ["2024-12-03/2024-12-17"]),
        ("the week before May 3, 2024", ["2024-04-26/2024-05-03"]),
        ("a week before May 3, 2024", ["2024-04-26/2024-05-03"]),
        ("summer 2024", ["2024-06-01/2024-08-31"]),
        ("in the winter of 2024", ["2023-12-01/2024-12-31"]),
        ("on May 8th", ["2026-05-08"]),
        ("on the 8th of May, 2024", ["2024-05-08"]),
        ("on 21.01.2024", ["2024-01-21"]),
        ("on 2024-01-21", ["2024-01-21"]),
        ("on 12/24/2024", ["2024-12-24"]),
        ("29 Dec 2023", ["2023-12-29"]),
        ("from April to June", ["2026-04-01/2026-06-30"]),
        ("the rest of June", ["2026-06-01/2026-06-30"]),
        ("this April", ["2026-04-01/2026-04-30"]),
        ("early Sept 2024", ["2024-09-01/2024-09-10"]),
        ("on Friday, May 8, 2026", ["2026-05-08"]),
        ("from January 9th to 11th", ["2026-01-09/2026-01-11"]),
        ("on July 6th and July 22nd", ["2026-07-06", "2026-07-22"]),
        ("on July 6 and 22, 2024", ["2024-07-06", "2024-07-22"]),
        ("between May 3 and June 5, 2024", ["2024-05-03/2024-06-05"]),
        ("between 3 and 10 May 2023", ["2023-05-03/2023-05-10"]),
        ("entre el 3 y el 10 de mayo de 2023", ["2023-05-03/2023-05-10"]),
        ("du 3 au 8 mai 2023", ["2023-05-03/2023-05-08"]),
        ("dal 3 al 8 maggio 2023", ["2023-05-03/2023-05-08"]),
        ("od 3 do 8 maja 2023", ["2023-05-03/2023-05-08"]),
        ("2023年5月3日から8日まで", ["2023-05-03/2023-05-08"]),
        ("5월 3일부터 8일까지", ["2026-05-03/2026-05-08"]),
        ("2024/5/8", ["2024-05-08"]),
        ("the week of May 8, 2024", ["2024-05-05/2024-05-11"]),
        ("early 2024", ["2024-01-01/2024-04-30"]),
        ("at the end of 2024", ["2024-09-01/2024-12-31"]),
        ("Friday last week", ["2026-11-20"]),
        ("last year in May", ["2025-05-01/2025-05-31"]),
        ("in May last year", ["2025-05-01/2025-05-31"]),
        ("в мае прошлого года", ["2025-05-01/2025-05-31"]),
        ("el lunes pasado", ["2026-11-16"]),
        ("begin januari", ["2026-01-01/2026-01-10"]),
        ("la începutul lui ianuarie", ["2026-01-01/2026-01-10"]),
        ("acum 3 zile", ["2026-11-20"]),
        ("haziranda", ["2026-06-01/2026-06-30"]),
        ("上周五", ["2026-11-20"]),
        ("上周末", ["2026-11-21/2026-11-22"]),
        ("下个星期", ["2026-11-30/2026-12-06"]),
        ("في مارس", ["2026-03-01/2026-03-31"]),
        ("上周", ["2026-11-16/2026-11-22"]),
        ("去年夏天", ["2025-06-01/2025-08-31"]),
        ("지난주 금요일", ["2026-11-20"]),
        ("先週の金曜日", ["2026-11-20"]),
        ("the first and third weeks of June", ["2026-06-01/2026-06-07", "2026-06-15/2026-06-21"]),
        ("the last week of June 2024", ["2024-06-24/2024-06-30"]),
        ("in the first week of 2024", ["2024-01-01/2024-01-07"]),
        ("in the autumn of 2023", ["2023-09-01/2023-11-30"]),
        ("in 2017", ["2017-01-01/2017-12-31"]),
        ("yesterday", ["2026-11-22"]),
        ("last Friday", ["2026-11-20"]),
        ("last Monday", ["2026-11-16"]),
        ("next Friday", ["2026-11-27"]),
        ("last week", ["2026-11-16/2026-11-22"]),
        ("last weekend", ["2026-11-21/2026-11-22"]),
        ("the last two weeks", ["2026-11-09/2026-11-23"]),
        ("three days ago", ["2026-11-20"]),
        ("a month ago", ["2026-10-01/2026-10-31"]),
        ("last May", ["2026-05-01/2026-05-31"]),
        ("last December", ["2025-12-01/2025-12-31"]),
        ("next March", ["2027-03-01/2027-03-31"]),
        ("this summer", ["2026-06-01/2026-08-31"]),
        ("last year", ["2025-01-01/2025-12-31"]),
        ("Was war Anfang Mai?", ["2026-05-01/2026-05-10"]),
        ("vor drei Tagen", ["2026-11-20"]),
        ("zwei Wochen vor dem 3. Mai 2024", ["2024-04-19/2024-05-03"]),
        ("am Freitag, den 3. Mai 2024", ["2024-05-03"]),
        ("am 3. März 2024", ["2024-03-03"]),
        ("am 3. Dez 2024", ["2024-12-03"]),
        ("letzte Woche", ["2026-11-16/2026-11-22"]),
        ("il y a deux semaines", ["2026-11-09/2026-11-15"]),
        ("le 3 mai 2024", ["2024-05-03"]),
        ("début janvier", ["2026-01-01/2026-01-10"]),
        ("mars 2024", ["2024-03-01/2024-03-31"]),
        ("à la fin de mars", ["2026-03-20/2026-03-31"]),
        ("en mars", ["2026-03-01/2026-03-31"]),
        ("l'été 2024", ["2024-06-01/2024-08-31"]),
        ("el 3 de mayo de 2024", ["2024-05-03"]),
        ("a principios de mayo", ["2026-05-01/2026-05-10"]),
        ("a finales de marzo", ["2026-03-20/2026-03-31"]),
        ("hace tres días", ["2026-11-20"]),
        ("inizi di maggio", ["2026-05-01/2026-05-10"]),
        ("tre giorni fa", ["2026-11-20"]),
        ("em fevereiro de 2024", ["2024-02-01/2024-02-29"]),
        ("ontem", ["2026-11-22"]),
        ("eind mei", ["2026-05-20/2026-05-31"]),
        ("drie dagen geleden", ["2026-11-20"]),
        ("na początku maja", ["2026-05-01/2026-05-10"]),
        ("w zeszłym tygodniu", ["2026-11-16/2026-11-22"]),
        ("i början av maj", ["2026-05-01/2026-05-10"]),
        ("în mai 2024", ["2024-05-01/2024-05-31"]),
        ("Ocak başında", ["2026-01-01/2026-01-10"]),
        ("3 Mayıs'ta", ["2026-05-03"]),
        ("üç gün önce", ["2026-11-20"]),
        ("в начале января", ["2026-01-01/2026-01-10"]),
        ("3 марта", ["2026-03-03"]),
        ("3 мая 2024 года", ["2024-05-03"]),
        ("в прошлом месяце", ["2026-10-01/2026-10-31"]),
        ("две недели назад", ["2026-11-09/2026-11-15"]),
        ("у січні", ["2026-01-01/2026-01-31"]),
        ("στις 3 Μαΐου", ["2026-05-03"]),
        ("αρχές Ιανουαρίου", ["2026-01-01/2026-01-10"]),
        ("في أوائل يناير", ["2026-01-01/2026-01-10"]),
        ("٣ مايو ٢٠٢٤", ["2024-05-03"]),
        ("בתחילת ינואר", ["2026-01-01/2026-01-10"]),
        ("मई की शुरुआत में", ["2026-05-01/2026-05-10"]),
        ("3 ngày trước", ["2026-11-20"]),
        ("ngày 3 tháng 5 năm 2024", ["2024-05-03"]),
        ("tháng trước", ["2026-10-01/2026-10-31"]),
        ("tuần trước", ["2026-11-16/2026-11-22"]),
        ("เมื่อวาน", ["2026-11-22"]),
        ("3 พฤษภาคม 2567", ["2024-05-03"]),
        ("我2024年5月3日买了什么", ["2024-05-03"]),
        ("五月初", ["2026-05-01/2026-05-10"]),
        ("十二月", ["2026-12-01/2026-12-31"]),
        ("上个月", ["2026-10-01/2026-10-31"]),
        ("三天前", ["2026-11-20"]),
        ("2024年5月3日后两周", ["2024-05-03/2024-05-17"]),
        ("5月の初め", ["2026-05-01/2026-05-10"]),
        ("3日前", ["2026-11-20"]),
        ("5월 초에", ["2026-05-01/2026-05-10"]),
        ("지난주", ["2026-11-16/2026-11-22"]),
    ],
)
def test_periods(text: str, expected: list[str]) -> None:
    assert _said(text) == expected


def test_a_day_of_the_month_is_that_of_each_month() -> None:
    days = {date.fromordinal(first) for first, _ in mentioned("on the 5th", TODAY)}
    assert {date(2026, 11, 5), date(2026, 10, 5), date(2020, 2, 5)} <= days
    assert {day.day for day in days} == {5}


def test_what_has_no_year_returns_each_year() -> None:
    years = [date.fromordinal(first).year for first, _ in mentioned("on 29 February", TODAY)]
    assert years == list(range(2006, 2028))


@pytest.mark.parametrize(
    "text",
    [
        "When did we go to the sea?",
        "May I ask you something?",
        "who may march with us",
        "when may we begin",
        "this may help, and the first may be late",
        "a mar of troubles, set out and sat down",
        "set 5 alarms, 5 out of 10 people",
        "the sun on Mars, about Mars, nobody lives there",
        "what did April say, and what did I hear from June",
        "from Martin, about Marta, by Augusta and Augustine",
        "a jar of mayo",
        "two weeks before the wedding, the week before that, three days before Christmas",
        "the last day of the trip and the next day",
        "who lives on the 3rd floor?",
        "the estate, in the estate, basic spring recipes",
        "haben Sie 2 Hunde, und was gibt es hier?",
        "¿de qué marca es, qué marca compré?",
        "что сказал Мартин, от Марты, в среднем",
        "the colour of the summer sea",
        "村上春樹の本はどうだった？ 星期三下午3点约了谁",
        "من هو الهندي الذي مارس العصيان",
        "I have 3 children and 12 goats",
        "the second of them was late",
        "Wie heißt mein Hund?",
        "Elle est partie sans dire au revoir",
        "他有三个孩子",
        "call 912345678 or 2024",
        "",
    ],
)
def test_what_names_no_time(text: str) -> None:
    assert mentioned(text, TODAY) == ()


@pytest.mark.parametrize(
    ("word", "month"),
    [("May", 5), ("Jan", 1), ("märz", 3), ("février", 2), ("ocakta", 1), ("январю", 1), ("września", 9),
     ("out", None), ("set", None), ("5", None), ("Maya", None), ("", None)],
)  # fmt: skip
def test_the_name_of_a_month(word: str, month: int | None) -> None:
    assert month_of(word) == month


@given(st.text(), st.dates())
def test_any_text_is_read(text: str, today: date) -> None:
    assert all(first <= last for first, last in mentioned(text, today))


WORDS = "may 31 2024 last week of before after two and to 3 years ago summer first"


@given(st.lists(st.sampled_from(WORDS.split())))
def test_any_words_of_time_are_read(words: list[str]) -> None:
    assert all(first <= last for first, last in mentioned(" ".join(words), TODAY))
