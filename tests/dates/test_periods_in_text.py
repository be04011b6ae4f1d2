"""Periods that sentences name, in many languages, said on Monday 23 November 2026."""

# ruff: noqa: RUF001
from __future__ import annotations

from datetime import UTC, date, datetime, time
from itertools import product
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.dates.period_name import read_period
from core.dates.period_tokens import settle_sentence
from core.dates.periods_in_text import (
    WEAK_KINDS,
    _parse,
    find_periods,
    month_number,
    months_in,
)
from core.dates.tokens import Token
from tests.fixtures.tables import each_row

TODAY = date(2026, 11, 23)


def _said(text: str) -> list[str]:
    """``first/last`` of each period; what returns, as it was or will be in 2026."""
    spans = [tuple(map(date.fromordinal, span)) for span in find_periods(text, TODAY)]
    chosen = [span for span in spans if span[0].year == 2026] if len(spans) > 20 else spans
    return [f"{first}/{last}" if first != last else f"{first}" for first, last in chosen]


@each_row(
    ("text", "expected"),
    [
        ("What did I buy in April 2025?", ["2025-04-01/2025-04-30"]),
        ("In April, during lunch", ["2026-04-01/2026-04-30"]),
        ("in early January", ["2026-01-01/2026-01-10"]),
        ("What did we eat on Christmas Eve?", ["2025-12-24"]),
        ("Where was I during Easter?", ["2026-04-05"]),
        ("Easter 2024", ["2024-03-31"]),
        ("seit Pfingstmontag", ["2026-05-25/2026-11-23"]),
        ("在春节", ["2026-02-17"]),
        ("our Christmas tree", []),
        ("mid-January", ["2026-01-10/2026-01-20"]),
        ("at the end of March", ["2026-03-20/2026-03-31"]),
        ("his weight in mid-to-late July", ["2026-07-10/2026-07-31"]),
        ("in early and late July", ["2026-07-01/2026-07-31"]),
        ("the two weeks after 3 December 2024", ["2024-12-03/2024-12-17"]),
        ("the week before May 3, 2024", ["2024-04-26/2024-05-03"]),
        ("a week before May 3, 2024", ["2024-04-26/2024-05-03"]),
        ("summer 2024", ["2024-06-01/2024-08-31"]),
        ("in the winter of 2024", ["2023-12-01/2024-02-29", "2024-12-01/2025-02-28"]),
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
        # Before, after, since and until.
        ("asked before May?", ["2025-05-01/2026-04-30"]),
        ("vor dem 3. Mai 2024", ["2023-05-04/2024-05-02"]),
        ("avant mai", ["2025-05-01/2026-04-30"]),
        ("after May", ["2026-06-01/2026-11-23"]),
        ("after 3 May 2024", ["2024-05-04/2026-11-23"]),
        ("nach Mai", ["2026-06-01/2026-11-23"]),
        ("after today's training", ["2026-11-23"]),
        ("What did the plumber repair since March?", ["2026-03-01/2026-11-23"]),
        ("since December", ["2025-12-01/2026-11-23"]),
        ("depuis mai", ["2026-05-01/2026-11-23"]),
        ("since last week", ["2026-11-16/2026-11-23"]),
        ("until May", ["2025-05-01/2026-05-31"]),
        ("bis zum 3. Mai", ["2025-05-03/2026-05-03"]),
        ("до мая", ["2025-05-01/2026-05-31"]),
        ("from May until June", ["2026-05-01/2026-06-30"]),
        ("desde mayo hasta julio", ["2026-05-01/2026-07-31"]),
        ("since 3 May to 10 May", ["2026-05-03/2026-05-10"]),
        ("the Friday before 15 July 2023", ["2023-07-15"]),
        ("shortly before 7 Jan 2024", ["2024-01-07"]),
        ("before and after May", ["2026-05-01/2026-05-31"]),
        # February has 28 days where it has.
        ("in February", ["2026-02-01/2026-02-28"]),
        ("in February 2024", ["2024-02-01/2024-02-29"]),
        ("late February", ["2026-02-20/2026-02-28"]),
        ("this winter", ["2026-12-01/2027-02-28"]),
        # The one before the last.
        ("the week before last", ["2026-11-09/2026-11-15"]),
        ("the weekend before last", ["2026-11-14/2026-11-15"]),
        ("the month before last", ["2026-09-01/2026-09-30"]),
        ("上上周", ["2026-11-09/2026-11-15"]),
        ("上上个月", ["2026-09-01/2026-09-30"]),
        ("大前天", ["2026-11-20"]),
        ("the day after tomorrow", ["2026-11-25"]),
        # Lists.
        ("in May and June", ["2026-05-01/2026-05-31", "2026-06-01/2026-06-30"]),
        (
            "in May, June and July",
            ["2026-05-01/2026-05-31", "2026-06-01/2026-06-30", "2026-07-01/2026-07-31"],
        ),
        ("in May or June", ["2026-05-01/2026-05-31", "2026-06-01/2026-06-30"]),
        ("September and October 2025", ["2025-09-01/2025-09-30", "2025-10-01/2025-10-31"]),
        ("the first of May", ["2026-05-01"]),
        ("on May 11 from 6 PM", ["2026-05-11"]),
        ("on 3 May we met", ["2026-05-03"]),
        ("in Sept. 2024", ["2024-09-01/2024-09-30"]),
        ("in Dec", ["2026-12-01/2026-12-31"]),
        ("5 set 2024", ["2024-09-05"]),
        ("what did I pay in 2026-05?", ["2026-05-01/2026-05-31"]),
        ("in 2000", ["2000-01-01/2000-12-31"]),
        ("over the summer", ["2026-06-01/2026-08-31"]),
        # A table for 4 is no day.
        ("a table for 4 in June", ["2026-06-01/2026-06-30"]),
        ("ein Tisch für 4 im Juni", ["2026-06-01/2026-06-30"]),
        # What needs nothing before it.
        ("летом", ["2026-06-01/2026-08-31"]),
        ("прошлым летом", ["2026-06-01/2026-08-31"]),
        ("vill du vara med i sommar?", ["2026-06-01/2026-08-31"]),
        ("夏に", ["2026-06-01/2026-08-31"]),
        ("in de zomer", ["2026-06-01/2026-08-31"]),
        ("a maggio", ["2026-05-01/2026-05-31"]),
        ("Mart'ta", ["2026-03-01/2026-03-31"]),
        ("เดือนที่แล้ว", ["2026-10-01/2026-10-31"]),
        ("2 สัปดาห์ก่อน", ["2026-11-09/2026-11-15"]),
        ("2年前", ["2024-01-01/2024-12-31"]),
        ("2년 전", ["2024-01-01/2024-12-31"]),
        ("두 달 전", ["2026-09-01/2026-09-30"]),
        ("先々週", ["2026-11-09/2026-11-15"]),
        ("неделю назад", ["2026-11-16/2026-11-22"]),
        ("قبل أسبوعين", ["2026-11-09/2026-11-15"]),
        ("دو هفته پیش", ["2026-11-09/2026-11-15"]),
        ("בשבוע שעבר", ["2026-11-16/2026-11-22"]),
        ("de laatste 3 dagen", ["2026-11-20/2026-11-23"]),
        ("lundi", ["2026-11-23"]),
        ("venerdì", ["2026-11-20"]),
        ("星期三下午3点约了谁", ["2026-11-18"]),
        ("金曜日に", ["2026-11-20"]),
        ("금요일에", ["2026-11-20"]),
        ("в пятницу", ["2026-11-20"]),
        ("ביום שישי", ["2026-11-20"]),
        ("يوم الجمعة", ["2026-11-20"]),
        ("शुक्रवार को", ["2026-11-20"]),
        ("på fredag", ["2026-11-20"]),
        ("cuma günü", ["2026-11-20"]),
        ("bring some on Saturday to show me", ["2026-11-21"]),
        ("gestern Morgen", ["2026-11-22"]),
        ("no ano passado", ["2025-01-01/2025-12-31"]),
        ("im Jahr 2019", ["2019-01-01/2019-12-31"]),
        ("Jan to Mar", ["2026-01-01/2026-03-31"]),
        ("od maja do lipca", ["2026-05-01/2026-07-31"]),
        ("下下周", ["2026-12-07/2026-12-13"]),
        ("half a year ago", ["2026-05-01/2026-05-31"]),
        ("eight weeks ago", ["2026-09-28/2026-10-04"]),
        ("il y a un an", ["2025-01-01/2025-12-31"]),
        ("in Apr", ["2026-04-01/2026-04-30"]),
        ("last Friday in Lisbon", ["2026-11-20"]),
        ("the second Tuesday of October", ["2026-10-13"]),
        ("der letzte Freitag im Oktober", ["2026-10-30"]),
        ("le dernier vendredi d'octobre 2024", ["2024-10-25"]),
        ("el segundo martes de octubre", ["2026-10-13"]),
        ("a segunda terça de outubro", ["2026-10-13"]),
        ("последняя пятница октября", ["2026-10-30"]),
        ("十月的第二个星期二", ["2026-10-13"]),
        ("10月の第2火曜日", ["2026-10-13"]),
        ("10월의 두 번째 화요일", ["2026-10-13"]),
        ("ekim ayının ikinci salısı", ["2026-10-13"]),
        ("ekimin son cuması", ["2026-10-30"]),
        ("sidste uge", ["2026-11-16/2026-11-22"]),
        ("for 3 uker siden", ["2026-11-02/2026-11-08"]),
        ("toukokuussa 2024", ["2024-05-01/2024-05-31"]),
        ("viime viikolla", ["2026-11-16/2026-11-22"]),
        ("májusban", ["2026-05-01/2026-05-31"]),
        ("tegnap", ["2026-11-22"]),
        ("3. května 2024", ["2024-05-03"]),
        ("minulý týden", ["2026-11-16/2026-11-22"]),
        ("el 3 de maig de 2024", ["2024-05-03"]),
        ("la setmana passada", ["2026-11-16/2026-11-22"]),
        ("pada bulan Agustus", ["2026-08-01/2026-08-31"]),
        ("3 hari yang lalu", ["2026-11-20"]),
        ("esta mañana", ["2026-11-23"]),
        ("上礼拜我们说了什么", ["2026-11-16/2026-11-22"]),
        ("礼拜一说的", ["2026-11-23"]),
        ("月曜に何を言った", ["2026-11-23"]),
        ("저번 주에 뭐라고 했지", ["2026-11-16/2026-11-22"]),
        ("was wir am Sonnabend besprochen haben", ["2026-11-21"]),
        ("o que eu disse neste mês", ["2026-11-01/2026-11-30"]),
        ("na sexta feira", ["2026-11-20"]),
        ("geçen perşembeye", ["2026-11-19"]),
        ("в этом месяце", ["2026-11-01/2026-11-30"]),
        ("im Jänner 2025", ["2025-01-01/2025-01-31"]),
    ],
)
def test_period_named_in_a_sentence_is_read_in_each_language(
    text: str, expected: list[str]
) -> None:
    assert _said(text) == expected


@each_row(
    "text",
    ["last 2 months", "this December", "29 February", "in Dec", "next Friday", "2026-05", "on Friday", "lundi",
     "3 May", "summer 2025", "early May", "in 2025", "3 to 10 May", "1.5.2025", "last weekend", "上上周", "летом",
     "in February"],
)  # fmt: skip
def test_date_filter_reads_the_latest_period_begun_among_those_a_question_mentions(
    text: str,
) -> None:
    """What returns is the last that has begun."""
    spans = find_periods(text, TODAY)
    begun = [span for span in spans if span[0] <= TODAY.toordinal()]
    found = read_period(text, datetime.combine(TODAY, time(12), UTC), ZoneInfo("UTC"))
    assert found is not None
    first, behind = (moment.date().toordinal() for moment in found)
    assert (first, behind - 1) == (begun or spans)[-1]


def test_day_number_without_a_month_means_that_day_of_every_month() -> None:
    days = {date.fromordinal(first) for first, _ in find_periods("on the 5th", TODAY)}
    assert {date(2026, 11, 5), date(2026, 10, 5), date(2020, 2, 5)} <= days
    assert {day.day for day in days} == {5}


def test_date_without_a_year_stands_for_each_recent_year() -> None:
    years = [date.fromordinal(first).year for first, _ in find_periods("on 29 February", TODAY)]
    assert years == [2008, 2012, 2016, 2020, 2024]
    months = {date.fromordinal(first).month for first, _ in find_periods("on the 31st", TODAY)}
    assert months == {1, 3, 5, 7, 8, 10, 12}


@each_row(
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
        "村上春樹の本はどうだった？ 下午3点约了谁",
        "من هو الهندي الذي مارس العصيان",
        "I have 3 children and 12 goats",
        "the second of them was late",
        "Wie heißt mein Hund?",
        "Elle est partie sans dire au revoir",
        "他有三个孩子",
        "call 912345678 or 2024",
        "the last may be wrong, these 3 may be late, we may 2 of us, I may go, 5 of us may",
        "during the march we sang, the next march on London",
        "I am 5th, on 5th avenue, on 2nd thought, am 1. Platz",
        "over 1900 euros, about 2000 people, of the 2000 users, in 2000 steps, bottles from the 1980s",
        "in the 1990s, the last Sunday of May",
        "what do you know about April, everything about May, what did I hear from June and April",
        "Herr August, from Augustus, the Aprilia, у Марты с Мартой, سيارة نيسان",
        "gen 2, AirPods gen 3, ran out 3, lip 5, lug 4, sie 3, I have 4 set",
        "Ce mai faci, آب خوردم, آب 3 لیتر, مه غلیظ",
        "目前天气怎么样，以前天天，之前天气，晚上月亮，马上月底，楼下周围",
        "por la mañana, am Morgen, jeden Morgen",
        "was gibt es hier, bread from the other day, pazara gittim, в среде разработки, na quinta vez",
        "окружающая среда, в среде, субботник, Пятницкая, 五月天乐队, 일요일마다",
        "every Friday, chaque lundi, 每周五, 毎週金曜日, по пятницам, 周一到周五",
        "part TC-2025-09, living/2021-03/x.jpg",
        "before the Spring Festival, before winter",
        "قبل عام, years ago, anni fa",
        "ett besök, Julius, Patek Philippe, New Year's Eve, my Passat 3 years",
        "",
    ],
)
def test_text_that_names_no_time_has_no_period(text: str) -> None:
    assert find_periods(text, TODAY) == ()


@each_row(
    ("word", "month"),
    [("May", 5), ("Jan", 1), ("märz", 3), ("février", 2), ("ocakta", 1), ("январю", 1), ("września", 9),
     ("out", None), ("set", None), ("5", None), ("Maya", None), ("", None)],
)  # fmt: skip
def test_month_name_in_any_language_is_read_as_its_number_and_other_words_as_none(
    word: str, month: int | None
) -> None:
    assert month_number(word) == month


def test_months_that_are_asked_for_are_not_those_before_or_after_which() -> None:
    assert months_in("im Mai und Juni, seit März") == {3, 5, 6}
    assert not months_in("vor Mai, nach dem Juni, hat sie 3 Kinder?")


@pytest.mark.slow
@given(st.text(), st.dates())
def test_period_of_any_text_begins_before_it_ends(text: str, today: date) -> None:
    assert all(first <= last for first, last in find_periods(text, today))


WORDS = "may 31 2024 last week of before after since until two and to 3 years ago summer first 2000 friday 2026-05 ,"


@pytest.mark.slow
@given(st.lists(st.sampled_from(WORDS.split())))
def test_any_sequence_of_time_words_gives_only_valid_periods(words: list[str]) -> None:
    assert all(first <= last for first, last in find_periods(" ".join(words), TODAY))


def test_tokens_of_weak_kinds_alone_name_no_period() -> None:
    for length in range(1, 5):
        for kinds in product(WEAK_KINDS, repeat=length):
            tokens = settle_sentence([Token(kind, 5) for kind in kinds])
            assert _parse(tokens, TODAY) == []
