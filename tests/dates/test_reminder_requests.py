"""Reads requests for reminders in everyday words."""

# ruff: noqa: RUF001

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from core.dates.lexicon import load_lexicon
from core.dates.recurrence import next_recurrences
from core.dates.requests.intents import Intent
from core.dates.requests.parts import Assumption, Missing, Problem
from core.dates.requests.reader import ReminderReading, read_request, revise_reading
from tests.fixtures.tables import each_row

MADRID = ZoneInfo("Europe/Madrid")
NOW = datetime(2026, 3, 4, 11, 30, tzinfo=MADRID)
"""A Wednesday."""


def read(text: str) -> ReminderReading:
    return read_request(text, NOW, MADRID)


def moments_of(reading: ReminderReading, count: int = 3) -> list[str]:
    moments = [reading.moment] if reading.moment else []
    if reading.recurrences:
        moments = [*next_recurrences(reading.recurrences, NOW, count)]
    return [f"{moment.astimezone(MADRID):%Y-%m-%d %H:%M}" for moment in moments]


@each_row(
    ("text", "moment", "task"),
    [
        ("remind me in 25 minutes to check the stove", "2026-03-04 11:55", "check the stove"),
        ("remind me tomorrow at one to ring Olga", "2026-03-05 13:00", "ring Olga"),
        ("Ring Olga tomorrow at noon. Please remind me!", "2026-03-05 12:00", "Ring Olga"),
        ("don't let me forget the keys at half past 5", "2026-03-04 17:30", "the keys"),
        ("ping me a quarter to nine tonight: feed Bella", "2026-03-04 20:45", "feed Bella"),
        ("remind me on the 20th at 8am to pay 300 euros", "2026-03-20 08:00", "pay 300 euros"),
        ("flight at 18:00 on Sunday, remind me 3 hours before", "2026-03-08 15:00", "flight"),
        ("remind me on Halloween at 7pm to buy sweets", "2026-10-31 19:00", "buy sweets"),
        ("remind me at 8, no, 9pm to stretch", "2026-03-04 21:00", "stretch"),
        ("dentist 3rd june 9am, remind me the day before at 6pm", "2026-06-02 18:00", "dentist"),
        ("set a timer for 25 minutes", "2026-03-04 11:55", "alarm"),
        ("need a nudge at 4 to send the form", "2026-03-04 16:00", "send the form"),
        ("set an alarm for 6:45 tomorrow morning", "2026-03-05 06:45", "alarm"),
        ("3 weeks from monday at noon remind me to pay", "2026-03-30 12:00", "pay"),
        ("remind me on the last day of May at 9 to pay", "2026-05-31 09:00", "pay"),
        ("remind me friday 9am Tokyo time to call Ken", "2026-03-06 01:00", "call Ken"),
        ("remind me at 4pm about the 6pm dinner", "2026-03-04 16:00", "the 6pm dinner"),
        ("can I get a reminder at 4ish to ring Olga", "2026-03-04 16:00", "ring Olga"),
        ("pop up a quick reminder on Dec. 3rd at 2pm: rent", "2026-12-03 14:00", "rent"),
        ("remind me thrusday at 10 to pay", "2026-03-05 10:00", "pay"),
        ("remind me to just say hi to Bo at 5pm", "2026-03-04 17:00", "just say hi to Bo"),
        ("remind me at 5pm to dial in", "2026-03-04 17:00", "dial in"),
        ("remnider for friday 9am: laptop", "2026-03-06 09:00", "laptop"),
        ("remind me tonight at 10:30 to lock up", "2026-03-04 22:30", "lock up"),
        (
            "remind me tomorrow at 9 — wait, make that 10 — to ring Olga",
            "2026-03-05 10:00",
            "ring Olga",
        ),
        ("erinnere mich eine Viertelstunde vor 18 Uhr an Olga", "2026-03-04 17:45", "Olga"),
        ("18点前15分钟提醒我出门", "2026-03-04 17:45", "出门"),
        ("remind me Monday week to pay at noon", "2026-03-16 12:00", "pay"),
        ("remind me the week after next on Monday at 9 to pay", "2026-03-16 09:00", "pay"),
        ("remind me on the second at 10am to pay", "2026-04-02 10:00", "pay"),
        ("remind me first thing Friday morning to pay", "2026-03-06 08:00", "pay"),
    ],
)
def test_request_for_one_moment_is_read_with_its_task(text: str, moment: str, task: str) -> None:
    reading = read(text)

    assert reading.is_complete
    assert moments_of(reading) == [moment]
    assert reading.task == task


@each_row(
    ("text", "moments", "task"),
    [
        (
            "remind me every weekday at 7:15 am to pack",
            ["2026-03-05 07:15", "2026-03-06 07:15", "2026-03-09 07:15"],
            "pack",
        ),
        (
            "every 2nd Thursday of the month at 18:00 chess, remind me",
            ["2026-03-12 18:00", "2026-04-09 18:00", "2026-05-14 18:00"],
            "chess",
        ),
        (
            "twice a day at 7am and 9:30pm remind me to take drops",
            ["2026-03-04 21:30", "2026-03-05 07:00", "2026-03-05 21:30"],
            "take drops",
        ),
        (
            "remind me every 40 minutes to look up",
            ["2026-03-04 12:10", "2026-03-04 12:50", "2026-03-04 13:30"],
            "look up",
        ),
        (
            "every 3 hours between 8:00 and 20:00 remind me to drink",
            ["2026-03-04 14:00", "2026-03-04 17:00", "2026-03-04 20:00"],
            "drink",
        ),
        (
            "remind me on the last day of every month at noon to save money",
            ["2026-03-31 12:00", "2026-04-30 12:00", "2026-05-31 12:00"],
            "save money",
        ),
    ],
)
def test_recurring_reminder_request_is_read_as_recurrence_rules_with_its_task(
    text: str, moments: list[str], task: str
) -> None:
    reading = read(text)

    assert reading.is_complete
    assert reading.moment is None
    assert moments_of(reading) == moments
    assert reading.task == task


@each_row(
    ("text", "moments"),
    [
        ("remind me every sunday at 6pm starting in April to call Bo", ["04-05 18:00"]),
        ("erinnere mich ab April jeden Sonntag um 18 Uhr an Oma", ["04-05 18:00"]),
        ("rappelle-moi à partir d'avril chaque dimanche à 18h d'écrire", ["04-05 18:00"]),
        ("recuérdame a partir de abril cada domingo a las 18:00 llamar", ["04-05 18:00"]),
        ("me lembra a partir de abril todo domingo às 18h de ligar", ["04-05 18:00"]),
        ("напоминай с апреля каждое воскресенье в 18:00 звонить", ["04-05 18:00"]),
        ("从4月开始每周日18点提醒我打电话", ["04-05 18:00"]),
        ("4月から毎週日曜18時に電話するようリマインドして", ["04-05 18:00"]),
        ("4월부터 매주 일요일 18시에 전화하라고 알려줘", ["04-05 18:00"]),
        ("nisandan itibaren her pazar 18'de aramamı hatırlat", ["04-05 18:00"]),
        ("remind me every day at 6pm starting next week to read", ["03-09 18:00"]),
        (
            "remind me every 2 hours starting tomorrow at 9 to stretch",
            ["03-05 09:00", "03-05 11:00"],
        ),
    ],
)
def test_recurrence_begins_with_the_named_month_or_week(text: str, moments: list[str]) -> None:
    reading = read(text)

    assert reading.is_complete
    assert moments_of(reading, len(moments)) == [f"2026-{moment}" for moment in moments]


@each_row(
    ("text", "first", "last"),
    [
        ("remind me every day next week at 9 to stretch", "03-09", "03-15"),
        ("remind me every day at 9 this week to stretch", "03-05", "03-08"),
        ("remind me every day in April at 9 to water", "04-01", "04-30"),
        ("nächste Woche jeden Tag um 9 ans Dehnen erinnern", "03-09", "03-15"),
        ("tous les jours de la semaine prochaine à 9h rappelle-moi de lire", "03-09", "03-15"),
        ("recuérdame todos los días de abril a las 9 regar", "04-01", "04-30"),
        ("me lembra todos os dias da semana que vem às 9 de ler", "03-09", "03-15"),
        ("напоминай на следующей неделе каждый день в 9 размяться", "03-09", "03-15"),
        ("下周每天9点提醒我拉伸", "03-09", "03-15"),
        ("来週は毎日9時にストレッチをリマインドして", "03-09", "03-15"),
        ("다음 주에 매일 9시에 스트레칭하라고 알려줘", "03-09", "03-15"),
        ("gelecek hafta her gün 9'da esnememi hatırlat", "03-09", "03-15"),
    ],
)
def test_week_or_month_limits_a_daily_reminder(text: str, first: str, last: str) -> None:
    days = [moment[5:10] for moment in moments_of(read(text), 40)]

    assert (days[0], days[-1]) == (first, last)


@each_row(
    "text",
    [
        "remind me on the last working day of the month at 16:00 to send it",
        "erinnere mich am letzten Werktag des Monats um 16 Uhr an die Rechnung",
        "rappelle-moi le dernier jour ouvré du mois à 16h d'envoyer la facture",
        "recuérdame el último día hábil del mes a las 16:00 enviar la factura",
        "me lembra no último dia útil do mês às 16h de enviar a fatura",
        "напомни в последний рабочий день месяца в 16:00 отправить счёт",
        "每月最后一个工作日16点提醒我发发票",
        "毎月最終営業日の16時に請求書を送るようリマインドして",
        "매달 마지막 영업일 16시에 청구서 보내라고 알려줘",
        "ayın son iş günü saat 16'da faturayı göndermemi hatırlat",
    ],
)
def test_last_working_day_of_the_month_is_read_in_ten_languages(text: str) -> None:
    assert moments_of(read(text)) == ["2026-03-31 16:00", "2026-04-30 16:00", "2026-05-29 16:00"]


@each_row(
    ("text", "moment", "task"),
    [
        ("remind me on the first Monday in May at 9 to pay", "2026-05-04 09:00", "pay"),
        (
            "remind me on the first working day of next month at 9 to pay",
            "2026-04-01 09:00",
            "pay",
        ),
        (
            "remind me tomorrow at 9 to book the hotel in May",
            "2026-03-05 09:00",
            "book the hotel in May",
        ),
    ],
)
def test_month_after_a_complete_time_belongs_to_the_task_of_a_reminder_request(
    text: str, moment: str, task: str
) -> None:
    reading = read(text)

    assert moments_of(reading) == [moment]
    assert reading.task == task


@each_row(
    ("text", "task"),
    [
        ("remind me tomorrow at 8 not to eat", "not to eat"),
        ("remind me never to lend him money tomorrow at 9", "never to lend him money"),
        ("erinnere mich daran, morgen um 8 nicht zu essen", "nicht zu essen"),
        ("rappelle-moi demain à 8h de ne pas manger", "ne pas manger"),
        ("recuérdame no comer mañana a las 8", "no comer"),
        ("me lembra amanhã às 8 de não comer", "não comer"),
        ("напомни мне завтра в 8 не есть", "не есть"),
        ("明天早上八点提醒我不要吃东西", "不要吃东西"),
        ("明日の8時に食べないようにリマインドして", "食べない"),
        ("내일 아침 8시에 먹지 말라고 알려줘", "먹지 말기"),
        ("yarın sabah 8'de yemek yememeyi hatırlat", "yemek yememeyi"),
    ],
)
def test_not_at_the_beginning_of_a_task_is_kept_in_ten_languages(text: str, task: str) -> None:
    assert read(text).task == task


@each_row(
    "text",
    [
        "tell me only if the weather gets bad every day at 9",
        "sag mir jeden Tag um 9 nur Bescheid, wenn es regnet",
        "préviens-moi seulement s'il pleut demain à 8h",
        "avísame solo si llueve mañana a las 8",
        "me avisa só se chover amanhã às 8",
        "сообщи мне только если завтра в 8 будет дождь",
        "每天九点下雨才提醒我",
        "毎日9時に雨が降る場合だけ教えて",
        "매일 9시에 비가 올 때만 알려줘",
        "her gün 9'da yağmur yağarsa haber ver",
    ],
)
def test_wish_to_be_told_only_under_a_condition_is_not_a_reminder(text: str) -> None:
    assert not read(text).is_complete


@each_row(
    "text",
    [
        "let me know if the bitcoin price falls below 50000",
        "sag mir Bescheid, wenn der Bitcoin unter 50000 fällt",
        "préviens-moi si le bitcoin passe sous 50000",
        "avísame si el bitcoin baja de 50000",
        "me avisa quando o dólar cair",
        "сообщи, если биткоин упадёт ниже 50000",
        "比特币跌破50000就提醒我",
        "ビットコインが5万を下回ったら教えて",
        "비트코인이 5만 아래로 떨어지면 알려줘",
        "dolar 30 lira olunca bana haber ver",
    ],
)
def test_wish_to_be_told_when_something_happens_is_a_watch_in_ten_languages(text: str) -> None:
    assert read(text).intent is Intent.WATCH


@each_row(
    ("text", "task"),
    [
        ("remind Anna to pay tomorrow at 9", "remind Anna to pay"),
        ("tomorrow at 9 remind my wife to pay", "remind my wife to pay"),
        ("erinnere Anna morgen um 9 ans Zahlen", "erinnere Anna ans Zahlen"),
        ("rappelle à Anna de payer demain à 9h", "rappelle à Anna de payer"),
        ("recuérdale a Anna mañana a las 9 que pague", "recuérdale a Anna que pague"),
        ("lembra a Ana amanhã às 9 de pagar", "lembra a Ana de pagar"),
        ("напомни Анне завтра в 9 заплатить", "напомни Анне заплатить"),
        ("明天9点提醒妈妈吃药", "提醒妈妈吃药"),
        ("明日の9時にアンナさんにリマインドして", "アンナさんにリマインドして"),
        ("내일 9시에 엄마한테 알려줘", "엄마한테 알려줘"),
        ("yarın 9'da anneme hatırlat", "anneme hatırlat"),
    ],
)
def test_request_to_remind_another_person_keeps_its_verb_in_ten_languages(
    text: str, task: str
) -> None:
    reading = read(text)
    assert (reading.intent, reading.task) == (Intent.OTHER_PERSON, task)
    assert moments_of(reading) == ["2026-03-05 09:00"]


def test_request_loads_only_the_lexicon_of_its_language() -> None:
    load_lexicon.cache_clear()

    read("erinnere mich morgen um 8 an den Zahnarzt")
    read("what did the dentist say?")

    assert load_lexicon.cache_info().currsize == 1


def test_no_before_a_comma_is_a_correction_and_not_part_of_the_task() -> None:
    assert read("recuérdame mañana a las 8, no, comprar leche").task == "comprar leche"


@each_row(
    ("text", "moment", "task"),
    [
        ("提醒我下午三点半开会", "2026-03-04 15:30", "开会"),
        ("提醒下周五早上九点交房租", "2026-03-13 09:00", "交房租"),
        ("六点提醒我下单", "2026-03-04 18:00", "下单"),
    ],
)
def test_chinese_time_right_after_the_request_is_not_read_as_its_end(
    text: str, moment: str, task: str
) -> None:
    reading = read(text)

    assert moments_of(reading) == [moment]
    assert reading.task == task


def test_word_reminder_inside_a_task_is_kept_in_the_task() -> None:
    text = "in 1 minute see how a reminder looks"

    reading = read_request(text, NOW, MADRID, is_request=True)

    assert reading.task == "see how a reminder looks"


def test_reminder_on_a_weekday_next_month_without_its_number_asks_for_the_date() -> None:
    assert read("remind me on Monday next month at 9 to pay").missing == {Missing.DATE}


@each_row(
    "text",
    [
        "remind me every 6 hours for 3 days to take antibiotics",
        "erinnere mich alle 6 Stunden drei Tage lang an das Antibiotikum",
        "rappelle-moi toutes les 6 heures pendant 3 jours l'antibiotique",
        "recuérdame cada 6 horas durante 3 días el antibiótico",
        "me lembra a cada 6 horas por 3 dias do antibiótico",
        "напоминай каждые 6 часов в течение 3 дней про антибиотик",
        "每6小时提醒我吃抗生素，持续3天",
        "6時間ごとに3日間抗生物質をリマインドして",
        "3일 동안 6시간마다 항생제 먹으라고 알려줘",
        "3 gün boyunca her 6 saatte bir antibiyotiği hatırlat",
    ],
)
def test_duration_of_an_hourly_reminder_ends_it_without_changing_its_interval(text: str) -> None:
    moments = moments_of(read(text), 20)

    assert moments[:2] == ["2026-03-04 17:30", "2026-03-04 23:30"]
    assert moments[-1] == "2026-03-07 11:30"


@each_row(
    ("text", "moment"),
    [
        ("remind me the Wednesday after next at 9 to pay", "2026-03-18 09:00"),
        ("remind me on Christmas Eve 2028 at noon to bake", "2028-12-24 12:00"),
    ],
)
def test_weekday_after_next_and_feast_of_a_year_are_read(text: str, moment: str) -> None:
    assert moments_of(read(text)) == [moment]


def test_list_of_clock_times_that_is_not_understood_is_asked_about() -> None:
    assert not read("每天三次8点14点20点提醒我滴眼药水").is_complete


def test_end_date_before_the_recurrence_is_read_in_japanese_and_korean_reminder_requests() -> None:
    for text in (
        "4月2日まで毎日9時にカレンダーを開けるようリマインドして",
        "4월 2일까지 매일 9시에 달력 열라고 알려줘",
    ):
        assert moments_of(read(text), 40)[-1] == "2026-04-02 09:00"


@each_row(
    ("text", "last"),
    [
        ("remind me every day at 9pm for the next 4 days to read", "2026-03-07 21:00"),
        ("remind me every friday at 9pm until 30 March to read", "2026-03-27 21:00"),
        ("remind me every friday at 9pm to read until the end of April", "2026-04-24 21:00"),
        ("remind me tomorrow at 9am and 5pm to read", "2026-03-05 17:00"),
        ("remind me 3 times every 20 minutes to read", "2026-03-04 12:30"),
    ],
)
def test_reminder_request_with_an_end_date_has_no_recurrence_after_that_date(
    text: str, last: str
) -> None:
    assert moments_of(read(text), 50)[-1] == last


@each_row(
    ("text", "missing", "problem"),
    [
        ("remind me to call Olga", Missing.TIME, None),
        ("remind me later to call Olga", Missing.TIME, Problem.VAGUE),
        ("remind me tomorrow to call Olga", Missing.TIME, None),
        ("remind me at 3 or 4 to call Olga", Missing.TIME, Problem.SEVERAL_TIMES),
        (
            "remind me tomorrow morning to call Olga at 3pm",
            Missing.TIME,
            Problem.SEVERAL_TIMES,
        ),
        ("remind me today at 8am to call Olga", Missing.TIME, Problem.PAST),
        ("remind me someday at 8am to call Olga", Missing.TIME, Problem.VAGUE),
        ("remind me on 31 April at 8am to call Olga", Missing.DATE, Problem.NO_SUCH_DATE),
        ("remind me on the 32nd at 8am to call Olga", Missing.DATE, Problem.NO_SUCH_DATE),
        ("remind me on Monday the 10th at 8am to call Olga", Missing.DATE, Problem.WRONG_WEEKDAY),
    ],
)
def test_unclear_time_is_missing_and_not_guessed(
    text: str, missing: Missing, problem: Problem | None
) -> None:
    reading = read(text)

    assert reading.intent is Intent.SET
    assert reading.missing == {missing}
    assert reading.problem is problem
    assert reading.moment is None
    assert reading.recurrences == ()
    assert reading.task == "call Olga"


@each_row(
    "text",
    [
        "remind me on our moving day at 8am to call Olga",
        "remind me every day at 8am to read until the end of the week",
        "remind me the next full moon at 9pm to go out",
        "remind me the day before my exam at 9 to read",
        "erinnere mich am Tag vor meiner Prüfung um 9 ans Lernen",
        "recuérdame el día antes de mi examen a las 9 estudiar",
        "試験の前日の9時に復習ってリマインドして",
    ],
)
def test_reminder_request_with_unknown_words_for_a_day_is_incomplete(text: str) -> None:
    reading = read(text)

    assert reading.intent is Intent.SET
    assert not reading.is_complete


@each_row(
    ("text", "intent"),
    [
        ("she reminds me of my teacher", Intent.NONE),
        ("my watch reminds me to stand every hour", Intent.NONE),
        ("My aunt set a reminder for 7am every day", Intent.STORY),
        ("remind my wife at 7pm to call", Intent.OTHER_PERSON),
        ("let's not set a reminder for 8", Intent.STORY),
        ("I forgot to set a reminder for 9am", Intent.STORY),
        ("my aunt told me to set a reminder for 8", Intent.STORY),
        ("would it remind me if I asked at 5am?", Intent.STORY),
        ("do reminders ring at night?", Intent.HOW),
        ("don't remind me about Monday at 9", Intent.STORY),
        ('he wrote "remind me at 9 to call" and left', Intent.STORY),
        ('"remind me at 9 to call" is all he wrote', Intent.STORY),
        ("I set an alarm for 7 on my phone", Intent.STORY),
        ("could Siri remind me at 7 every day?", Intent.STORY),
        ("the alarm at 6 startled me", Intent.STORY),
        ("she always wakes me at 7", Intent.STORY),
        ("how does one set a reminder for 9?", Intent.HOW),
        ("what reminders do I have tomorrow?", Intent.QUESTION_ABOUT_REMINDERS),
        ("how do I set a reminder?", Intent.HOW),
        ("what alarms do I have?", Intent.QUESTION_ABOUT_REMINDERS),
        ("what's the alarm pin?", Intent.STORY),
        ("what is the code of the alarm?", Intent.STORY),
        ("remind me, who painted Guernica?", Intent.NONE),
        ("the bank sent me a reminder for Friday 9am", Intent.STORY),
        ("tomorrow at 9 I meet Olga", Intent.NONE),
    ],
)
def test_message_that_sets_no_reminder_is_recognized(text: str, intent: Intent) -> None:
    assert read(text).intent is intent


def test_assumed_hour_of_a_reminder_request_is_reported() -> None:
    assert Assumption.HOUR in read("remind me tonight to lock up").assumptions
    assert Assumption.HALF_OF_DAY in read("remind me tomorrow at 5 to lock up").assumptions
    assert not read("remind me tomorrow at 17:00 to lock up").assumptions


@each_row(
    ("text", "answer", "moment"),
    [
        ("remind me to call Olga", "tomorrow at 10", "2026-03-05 10:00"),
        ("remind me at 5pm to call Olga", "no, at 6", "2026-03-04 18:00"),
        ("remind me on Monday at 8am to call Olga", "make it Tuesday", "2026-03-10 08:00"),
        ("remind me on 31 April at 8am to call Olga", "oops, 30 April", "2026-04-30 08:00"),
        ("remind me in 10 minutes to call Olga", "actually in an hour", "2026-03-04 12:30"),
    ],
)
def test_answer_changes_only_the_parts_that_it_names(text: str, answer: str, moment: str) -> None:
    reading = revise_reading(read(text), answer, NOW, MADRID)

    assert reading is not None
    assert moments_of(reading) == [moment]
    assert reading.task == "call Olga"


def test_answer_without_a_time_is_not_a_revision() -> None:
    assert revise_reading(read("remind me to call Olga"), "thanks!", NOW, MADRID) is None


def test_recurrence_keeps_its_wall_time_across_a_clock_change() -> None:
    reading = read("remind me every sunday at 9am to call Olga")

    moments = next_recurrences(reading.recurrences, NOW, 5)

    assert [f"{moment.astimezone(MADRID):%H:%M}" for moment in moments] == ["09:00"] * 5
    assert moments[0] == datetime(2026, 3, 8, 8, tzinfo=UTC)
    assert moments[4] == datetime(2026, 4, 5, 7, tzinfo=UTC)


def test_language_of_a_reminder_request_is_the_one_that_parses_most_of_the_line() -> None:
    # "car" without an accent is short for a weekday in Turkish.
    reading = read_request("saturday at 7am load the car", NOW, MADRID, is_request=True)

    assert reading.language == "en"
    assert reading.task == "load the car"


@each_row(
    ("text", "moment", "task"),
    [
        ("remind me the day after Christmas at 10 to return it", "2026-12-26 10:00", "return it"),
        ("remind me in 90 seconds to flip", "2026-03-04 11:31", "flip"),
        ("remind me at 1900 to feed Bella", "2026-03-04 19:00", "feed Bella"),
        ("remind me the night before Christmas at 8 to wrap", "2026-12-24 20:00", "wrap"),
        ("remind me a week on Tuesday at 10 to call", "2026-03-17 10:00", "call"),
        ("remind me the Monday after next at 10 to call", "2026-03-16 10:00", "call"),
        ("wake me up at 6:30 tomorrow", "2026-03-05 06:30", "wake me up"),
        ("remind me first thing tomorrow to call", "2026-03-05 08:00", "call"),
        ("please don't forget to remind me tomorrow at 9 to call", "2026-03-05 09:00", "call"),
        ("remind me next next Tuesday at 9 to call", "2026-03-17 09:00", "call"),
        ("erinnere mich am übernächsten Montag um 9 an Olga", "2026-03-16 09:00", "Olga"),
        ("напомни через вторник в 9 позвонить", "2026-03-17 09:00", "позвонить"),
        ("öbür hafta salı 9'da aramayı hatırlat", "2026-03-17 09:00", "aramayı"),
        ("remind me at 12:30 at night to sleep", "2026-03-05 00:30", "sleep"),
        ("remind me tonight at 12:15 to sleep", "2026-03-05 00:15", "sleep"),
        ("remind me the evening before the exam on Friday at 6pm", "2026-03-05 18:00", "exam"),
        ("erinnere mich am Abend vor dem Test am Freitag um 18 Uhr", "2026-03-05 18:00", "Test"),
        ("remind me 2026-12-01T09:00 to pay", "2026-12-01 09:00", "pay"),
        ("напомни в канун Рождества в 9 позвонить", "2027-01-06 09:00", "позвонить"),
        ("erinnere mich eine Stunde vor dem Treffen morgen um 9", "2026-03-05 08:00", "Treffen"),
        (
            "rappelle-moi une heure avant la réunion de demain à 9h",
            "2026-03-05 08:00",
            "la réunion",
        ),
        (
            "recuérdame una hora antes de la reunión de mañana a las 9",
            "2026-03-05 08:00",
            "la reunión",
        ),
        ("remind me at 21:00, not 22:00, to call", "2026-03-04 21:00", "call"),
        ("erinnere mich um 21 Uhr, nicht um 22 Uhr, an Olga", "2026-03-04 21:00", "Olga"),
        ("rappelle-moi à 21h, pas à 22h, d'appeler", "2026-03-04 21:00", "appeler"),
        ("recuérdame a las 21, no a las 22, llamar", "2026-03-04 21:00", "llamar"),
        ("lembra-me às 21, não às 22, de ligar", "2026-03-04 21:00", "ligar"),
        ("напомни в 21, а не в 22, позвонить", "2026-03-04 21:00", "позвонить"),
    ],
)
def test_unusually_worded_reminder_request_is_read_with_its_time_and_task(
    text: str, moment: str, task: str
) -> None:
    reading = read(text)

    assert moments_of(reading) == [moment]
    assert reading.task == task


@each_row(
    "text",
    [
        "remind me before 5pm to call",
        "remind me in an hour or two to call",
        "remind me in 5 or 10 minutes to call",
        "remind me this weekend to call",
        "remind me wednesday at 9 to call",
        "remind me on tuesday and thursday at 9 to call",
        "remind me every day at 9 until yesterday to call",
    ],
)
def test_time_with_several_meanings_is_asked_for(text: str) -> None:
    reading = read(text)

    assert reading.intent is Intent.SET
    assert not reading.is_complete


@each_row(
    ("text", "moment", "task"),
    [
        ("remind me after 10 tonight to lock up", "2026-03-04 22:00", "lock up"),
        ("remind me not to eat after 10 tonight", "2026-03-04 22:00", "not to eat"),
        ("remind me not before 10 tonight to lock up", "2026-03-04 22:00", "lock up"),
        ("remind me after 5 minutes to stir", "2026-03-04 11:35", "stir"),
        ("erinner mich heute abend nach 10 an Olga", "2026-03-04 22:00", "Olga"),
        ("erinnere mich frühestens um 18 Uhr an Olga", "2026-03-04 18:00", "Olga"),
        ("rappelle-moi ce soir pas avant 22h de fermer", "2026-03-04 22:00", "fermer"),
        ("recuérdame esta noche pasadas las 10 cerrar", "2026-03-04 22:00", "cerrar"),
        ("me lembra hoje à noite depois das 10 de fechar", "2026-03-04 22:00", "fechar"),
        ("напомни сегодня вечером после 10 закрыть", "2026-03-04 22:00", "закрыть"),
        ("今晚十点之后提醒我关灯", "2026-03-04 22:00", "关灯"),
        ("今夜22時以降に電気を消すようリマインドして", "2026-03-04 22:00", "電気を消す"),
        ("오늘 밤 10시 넘어서 불 끄라고 알려줘", "2026-03-04 22:00", "불 끄기"),
        ("bu akşam 10'dan sonra kapatmayı hatırlat", "2026-03-04 22:00", "kapatmayı"),
    ],
)
def test_reminder_for_after_a_clock_time_is_due_at_that_time(
    text: str, moment: str, task: str
) -> None:
    reading = read(text)
    assert moments_of(reading) == [moment]
    assert reading.task == task


@each_row(
    "text",
    [
        "remind me on the second Tuesday of May 2027 at 9 to pay",
        "erinnere mich am zweiten Dienstag im Mai 2027 um 9 an die Miete",
        "rappelle-moi le deuxième mardi de mai 2027 à 9h le loyer",
        "recuérdame el segundo martes de mayo de 2027 a las 9 pagar",
        "me lembra na segunda terça de maio de 2027 às 9h do aluguel",
        "напомни во второй вторник мая 2027 года в 9 про аренду",
        "2027年5月第二个星期二上午9点提醒我交房租",
        "2027年5月の第2火曜日の9時に支払いをリマインドして",
        "2027년 5월 둘째 화요일 오전 9시에 월세 알려줘",
        "2027 mayıs ayının ikinci salısı saat 9'da kirayı hatırlat",
    ],
)
def test_weekday_of_a_month_and_year_is_read_in_ten_languages(text: str) -> None:
    reading = read(text)
    assert moments_of(reading) == ["2027-05-11 09:00"]
    assert reading.task.split()[-1] in text


@each_row(
    ("text", "moments"),
    [
        (
            "el último día de cada mes a las 18 recuérdame la factura",
            ["2026-03-31 18:00", "2026-04-30 18:00"],
        ),
        (
            "no último dia de cada mês às 18h me lembra da fatura",
            ["2026-03-31 18:00", "2026-04-30 18:00"],
        ),
        (
            "rappelle-moi le 15 et le 30 de chaque mois à 9h de payer",
            ["2026-03-15 09:00", "2026-03-30 09:00"],
        ),
        (
            "recuérdame el 15 y el 30 de cada mes a las 9 pagar",
            ["2026-03-15 09:00", "2026-03-30 09:00"],
        ),
    ],
)
def test_last_day_or_two_days_of_every_month_are_read(text: str, moments: list[str]) -> None:
    assert moments_of(read(text), 2) == moments


def test_german_day_number_with_a_point_after_every_is_a_day_of_the_month() -> None:
    reading = read("erinnere mich jeden 15. um 9 an die Miete")
    assert moments_of(reading, 2) == ["2026-03-15 09:00", "2026-04-15 09:00"]


def test_weekday_of_this_month_that_has_passed_means_next_year() -> None:
    reading = read("remind me on the first Monday of March at noon to cook")
    assert moments_of(reading) == ["2027-03-01 12:00"]


def test_eve_of_an_unknown_day_is_asked_about() -> None:
    assert not read("remind me on the eve of my exam at 9 to sleep").is_complete


def test_french_number_of_next_days_is_a_duration_and_no_date() -> None:
    reading = read("les 2 prochains jours à 21h rappelle-moi l'antibiotique")
    assert moments_of(reading) == ["2026-03-04 21:00", "2026-03-05 21:00"]


def test_turkish_date_on_another_weekday_is_asked_about() -> None:
    reading = read("25'i salı günü saat 10'da imzayı hatırlat")
    assert reading.problem is Problem.WRONG_WEEKDAY


def test_number_before_a_weekday_that_is_not_understood_is_asked_about() -> None:
    assert not read("hatırlat bana: balın ikinci salısı saat 9'da kira").is_complete


@each_row(
    "text",
    [
        "remind me before 11 tonight to lock up",
        "remind me tonight between 10 and 11 to lock up",
        "remind me tonight, 10 or later, to lock up",
        "erinnere mich kurz vor 18 Uhr an Olga",
        "me lembra pouco antes das 18h de fechar",
        "下午六点前提醒我关灯",
        "18時前に電気を消すようリマインドして",
        "오후 6시 직전에 불 끄라고 알려줘",
        "akşam 6'dan hemen önce kapatmayı hatırlat",
    ],
)
def test_time_before_or_between_clock_times_is_asked_for(text: str) -> None:
    reading = read(text)
    assert reading.intent is Intent.SET
    assert Missing.TIME in reading.missing


@each_row(
    ("text", "moment"),
    [
        ("erinnere mich um null Uhr dreißig an Olga", "2026-03-05 00:30"),
        ("recuérdame mañana a las doce y cuarto del mediodía llamar", "2026-03-05 12:15"),
        ("me lembra à meia-noite e quinze de conferir", "2026-03-05 00:15"),
        ("밤 12시 30분에 전화하라고 알려줘", "2026-03-05 00:30"),
        ("낮 12시 30분에 전화하라고 알려줘", "2026-03-04 12:30"),
        ("gece yarımda sunucuyu kontrol etmeyi hatırlat", "2026-03-05 00:30"),
        ("rappelle-moi demain à une heure du matin de vérifier", "2026-03-05 01:00"),
    ],
)
def test_reminder_within_an_hour_after_noon_or_midnight_is_read(text: str, moment: str) -> None:
    assert moments_of(read(text)) == [moment]


def test_reminder_at_noon_and_at_midnight_of_one_day_is_due_twice() -> None:
    reading = read("remind me tomorrow at noon and at midnight to take the pills")
    assert moments_of(reading) == ["2026-03-05 12:00", "2026-03-06 00:00"]


@each_row(
    ("text", "moment", "task"),
    [
        ("remind me at seven-thirty tonight to pay", "2026-03-04 19:30", "pay"),
        ("remind me at 7 30 tonight to pay", "2026-03-04 19:30", "pay"),
        ("rappelle-moi à 7h et quart du soir de payer", "2026-03-04 19:15", "payer"),
        ("me lembra às 7 e quinze da noite de pagar", "2026-03-04 19:15", "pagar"),
        ("akşam 19:45 gibi kirayı hatırlat", "2026-03-04 19:45", "kirayı"),
    ],
)
def test_minutes_of_an_oddly_written_clock_time_are_read(text: str, moment: str, task: str) -> None:
    reading = read(text)
    assert moments_of(reading) == [moment]
    assert reading.task == task


@each_row(
    "text",
    [
        "du brauchst mich morgen um 9 nicht zu erinnern",
        "j'ai dit à Siri de me rappeler à 7h et rien",
        "falei pra Alexa me lembrar às 7 e nada",
        "я сказал Алисе напомнить мне в 7, а она нет",
    ],
)
def test_story_about_another_assistant_or_a_reminder_that_is_not_needed_sets_nothing(
    text: str,
) -> None:
    assert read(text).intent is Intent.STORY


@each_row(
    "text",
    [
        "remind me next Tuesday, no, the one after, at 9 to call",
        "erinner mich nächsten Dienstag nicht, den darauf um 9 an Anna",
        "rappelle-moi mardi prochain non, le suivant, à 9h d'appeler",
        "recuérdame el martes que viene no, el otro, a las 9 llamar",
        "me lembra na terça que vem não, na outra, às 9 de ligar",
        "напомни в следующий вторник нет, через один, в 9 позвонить",
        "下周二，不对，之后那个，上午9点提醒我打电话",
        "火曜日、いや、その次の火曜日の9時に電話するとリマインドして",
        "화요일 아니고 다음 화요일 9시에 전화하라고 알려줘",
        "salı günü, yok, ondan sonraki salı saat 9'da aramayı hatırlat",
        "recuérdame el martes de la otra semana a las 9 llamar",
        "me lembra na terça da outra semana às 9 de ligar",
    ],
)
def test_day_that_another_one_replaces_is_asked_about_in_ten_languages(text: str) -> None:
    reading = read(text)
    assert (reading.intent, reading.moment) == (Intent.SET, None)
    assert reading.missing == {Missing.TIME}


@each_row(
    ("text", "task"),
    [
        ("remind me not next Tuesday but the one after at 9 to call", "call"),
        ("remind me not this tuesday, the next one at 9 to call", "call"),
        ("erinner mich nicht nächsten Dienstag, sondern den danach um 9 an Anna", "Anna"),
        ("erinner mich nicht diesen Dienstag, sondern nächsten um 9 an Anna", "Anna"),
        ("rappelle-moi pas mardi prochain mais celui d'après à 9h d'appeler", "appeler"),
        ("rappelle-moi pas ce mardi, l'autre d'après, à 9h d'appeler", "appeler"),
        ("recuérdame no el próximo martes, sino el siguiente, a las 9 llamar", "llamar"),
        ("recuérdame no este martes sino el otro a las 9 llamar", "llamar"),
        ("me lembra não na próxima terça, mas na seguinte, às 9 de ligar", "ligar"),
        ("me lembra não nessa terça, na outra, às 9 de ligar", "ligar"),
        ("напомни не в следующий вторник, а через один, в 9 позвонить", "позвонить"),
        ("напомни не в этот вторник, а в следующий в 9 позвонить", "позвонить"),
        ("不是下周二，是再下一个周二上午9点提醒我打电话", "打电话"),
        ("来週の火曜日じゃなくて、その次の火曜日の9時に電話するとリマインドして", "電話する"),
        ("다음 주 화요일 말고 그 다음 주 화요일 9시에 전화하라고 알려줘", "전화하기"),
        ("gelecek salı değil, ondan sonraki salı saat 9'da aramayı hatırlat", "aramayı"),
    ],
)
def test_week_after_the_next_one_is_read_in_ten_languages(text: str, task: str) -> None:
    reading = read(text)
    assert (reading.task, reading.missing) == (task, frozenset())
    assert moments_of(reading) == ["2026-03-17 09:00"]


@each_row(
    ("text", "task"),
    [
        ("remind me in two tuesdays at 9 to call", "call"),
        ("remind me two tuesdays from now at 9 to call", "call"),
        ("erinnere mich in zwei Dienstagen um 9 an Anna", "Anna"),
        ("rappelle-moi dans deux mardis à 9h d'appeler", "appeler"),
        ("recuérdame dentro de dos martes a las 9 llamar", "llamar"),
        ("me lembra daqui a duas terças às 9 de ligar", "ligar"),
        ("напомни через два вторника в 9 позвонить", "позвонить"),
    ],
)
def test_number_of_weekdays_from_now_is_the_last_of_them(text: str, task: str) -> None:
    reading = read(text)
    assert (reading.task, moments_of(reading)) == (task, ["2026-03-17 09:00"])


@each_row(
    ("text", "moments"),
    [
        (
            "14'ten 22'ye kadar 3 saatte bir su içmemi hatırlat",
            ["2026-03-04 14:00", "2026-03-04 17:00", "2026-03-04 20:00"],
        ),
        (
            "sabah 9'dan akşam 6'ya kadar 3 saatte bir su içmemi hatırlat",
            ["2026-03-04 12:00", "2026-03-04 15:00", "2026-03-04 18:00"],
        ),
        (
            "her gün 9'da cuma gününe kadar ilaç almamı hatırlat",
            ["2026-03-05 09:00", "2026-03-06 09:00"],
        ),
        ("gece yarısından bir saat önce kapıyı kilitlememi hatırlat", ["2026-03-04 23:00"]),
        ("напомни за час до полуночи запереть дверь", ["2026-03-04 23:00"]),
    ],
)
def test_window_and_midnight_with_an_ending_are_read(text: str, moments: list[str]) -> None:
    assert moments_of(read(text)) == moments


@each_row(
    ("text", "moment", "task"),
    [
        ("set a reminder for the 5th at 5 to call", "2026-03-05 17:00", "call"),
        ("stell eine Erinnerung für den 5. um 17 Uhr: anrufen", "2026-03-05 17:00", "anrufen"),
        ("mets un rappel pour le 5 à 17h : appeler", "2026-03-05 17:00", "appeler"),
        ("pon un recordatorio para el 5 a las 17: llamar", "2026-03-05 17:00", "llamar"),
        ("cria um lembrete pro dia 5 às 17h: ligar", "2026-03-05 17:00", "ligar"),
        ("поставь напоминание на 5-е число в 17:00: звонок", "2026-03-05 17:00", "звонок"),
        ("设一个5号17点的提醒：打电话", "2026-03-05 17:00", "打电话"),
        ("5日の17時に電話するリマインダーを設定して", "2026-03-05 17:00", "電話する"),
        ("5일 17시에 전화하라고 알림 설정해줘", "2026-03-05 17:00", "전화하기"),
        ("ayın 5'i için saat 17'ye hatırlatıcı kur: ara", "2026-03-05 17:00", "ara"),
        ("remind me for the 5th time to call at 5 pm", "2026-03-04 17:00", "the 5th time to call"),
        ("three days from now at noon remind me to call", "2026-03-07 12:00", "call"),
        ("remind me no later than 5pm to call", "2026-03-04 17:00", "call"),
        ("remind me tomorrow at 2:30 to call", "2026-03-05 14:30", "call"),
        ("remind me tomorrow at 02:30 to call", "2026-03-05 02:30", "call"),
        ("最晚17点提醒我交表", "2026-03-04 17:00", "交表"),
        ("遅くとも17時までに電話するようリマインドして", "2026-03-04 17:00", "電話する"),
    ],
)
def test_day_of_the_month_and_latest_time_belong_to_the_time(
    text: str, moment: str, task: str
) -> None:
    reading = read(text)
    assert (moments_of(reading), reading.task) == ([moment], task)


EVERY_20_MINUTES = ["2026-03-04 11:50", "2026-03-04 12:10", "2026-03-04 12:30"]


@each_row(
    ("text", "task"),
    [
        ("remind me three times, 20 minutes apart, to stir", "stir"),
        ("remind me three times at 20 minute intervals to stir", "stir"),
        ("dreimal im Abstand von 20 Minuten erinnern: umrühren", "umrühren"),
        ("erinnere mich dreimal alle 20 Minuten an den Topf", "den Topf"),
        ("erinnere mich alle 20 Minuten 3 Mal an den Topf", "den Topf"),
        ("rappelle-moi trois fois à 20 minutes d'intervalle de remuer", "remuer"),
        ("recuérdame tres veces con 20 minutos de intervalo remover", "remover"),
        ("me faz lembrar três vezes em intervalos de 20 minutos de mexer", "mexer"),
        ("напомни три раза с интервалом в 20 минут помешать", "помешать"),
        ("间隔20分钟提醒我三次搅拌", "搅拌"),
        ("20分間隔で3回混ぜるようリマインドして", "混ぜる"),
        ("20분 간격으로 세 번 섞으라고 알려줘", "섞기"),
        ("20 dakika arayla üç kez karıştırmamı hatırlat", "karıştırmamı"),
    ],
)
def test_several_times_at_an_interval_end_after_the_last_of_them(text: str, task: str) -> None:
    reading = read(text)
    assert (moments_of(reading, 9), reading.task) == (EVERY_20_MINUTES, task)


@each_row(
    ("text", "task"),
    [
        ("dis-moi demain à 9h de payer le loyer", "payer le loyer"),
        ("dime mañana a las 9 que pague el alquiler", "pague el alquiler"),
        ("明日9時に鍵を返すリマインダーがほしい", "鍵を返す"),
        ("明日9時にシダに水やりとリマインドして", "シダに水やり"),
        ("내일 9시에 열쇠 반납하라는 알림이 필요해", "열쇠 반납하기"),
        ("yarın saat 9'da anahtarları vermem için bir hatırlatma lazım", "anahtarları vermem"),
    ],
)
def test_request_in_other_everyday_words_is_read(text: str, task: str) -> None:
    reading = read(text)
    assert (moments_of(reading), reading.task) == (["2026-03-05 09:00"], task)


@each_row(
    "text",
    [
        "dis-moi l'heure du train de demain",
        "dis-moi demain sera quel jour",
        "dime qué hora es mañana en Tokio",
        "dime el nombre de la película de ayer",
    ],
)
def test_question_that_begins_like_a_request_sets_nothing(text: str) -> None:
    assert not read(text).is_complete


FIRST_AND_15TH = ["2026-03-15 12:00", "2026-04-01 12:00", "2026-04-15 12:00"]


@each_row(
    ("text", "task"),
    [
        ("remind me every 1st and 15th at noon to pay", "pay"),
        ("erinnere mich jeden 1. und 15. um 12 an die Miete", "die Miete"),
        ("rappelle-moi tous les 1er et 15 à midi le loyer", "le loyer"),
        ("recuérdame cada día 1 y 15 a mediodía pagar", "pagar"),
        ("me lembra todo dia 1 e 15 ao meio-dia de pagar", "pagar"),
        ("напоминай каждое 1-е и 15-е число в полдень заплатить", "заплатить"),
        ("напоминай 1-го и 15-го числа каждого месяца в полдень заплатить", "заплатить"),
        ("每月1号和15号中午提醒我交房租", "交房租"),
        ("毎月1日と15日の正午に家賃をリマインドして", "家賃"),
        ("매월 1일과 15일 정오에 월세 내라고 알려줘", "월세 내기"),
        ("her ayın 1 ve 15'inde saat 12'de kirayı hatırlat", "kirayı"),
    ],
)
def test_two_days_of_every_month_are_read_in_ten_languages(text: str, task: str) -> None:
    reading = read(text)
    assert (moments_of(reading)[:3], reading.task) == (FIRST_AND_15TH, task)


@each_row(
    "text",
    [
        "remind me on the 1st and 15th at noon to pay",
        "remind me on the 1st and 15th of december at noon to pay",
        "remind me on december 1st and 15th at noon to pay",
        "erinnere mich am 1. und 15. um 12 an die Miete",
        "rappelle-moi le 1er et le 15 à midi de payer",
        "recuérdame los días 1 y 15 a las 9 pagar",
        "me lembra dia 1 e 15 ao meio-dia de pagar",
        "напомни 1 и 15 числа в полдень заплатить",
        "1号和15号中午提醒我交房租",
        "1日と15日の正午に家賃をリマインドして",
        "1일과 15일 정오에 월세 내라고 알려줘",
    ],
)
def test_two_dates_of_one_request_are_asked_about(text: str) -> None:
    assert Missing.TIME in read(text).missing


@each_row(
    ("text", "task"),
    [
        ("remind me on the first and third Monday of each month at 9 to clean", "clean"),
        ("remind me every 1st and 3rd Monday at 9 to clean", "clean"),
        ("erinnere mich am 1. und 3. Montag im Monat um 9 an den Müll", "den Müll"),
        ("erinnere mich jeden ersten und dritten Montag um 9 an den Müll", "den Müll"),
        ("rappelle-moi le premier et le troisième lundi du mois à 9h de nettoyer", "nettoyer"),
        ("recuérdame el primer y tercer lunes de cada mes a las 9 limpiar", "limpiar"),
        ("me lembra na primeira e terceira segunda do mês às 9 de limpar", "limpar"),
        ("напоминай в первый и третий понедельник месяца в 9 убирать", "убирать"),
        ("每月第一个和第三个周一9点提醒我打扫", "打扫"),
        ("毎月第1・第3月曜日の9時に掃除をリマインドして", "掃除"),
        ("매월 첫째와 셋째 월요일 9시에 청소하라고 알려줘", "청소하기"),
        ("her ayın birinci ve üçüncü pazartesisi 9'da temizliği hatırlat", "temizliği"),
    ],
)
def test_two_weekdays_of_every_month_are_read_in_ten_languages(text: str, task: str) -> None:
    reading = read(text)
    assert moments_of(reading)[:3] == ["2026-03-16 09:00", "2026-04-06 09:00", "2026-04-20 09:00"]
    assert reading.task == task


@each_row(
    "text", ["remind me in 3 paydays at 9 to save", "erinnere mich in zwei Vollmonden um 9 an Anna"]
)
def test_number_of_unknown_things_from_now_is_asked_about(text: str) -> None:
    assert read(text).missing == {Missing.TIME}


@each_row(
    ("text", "moment", "task"),
    [
        ("remind me at half past five pm to leave", "2026-03-04 17:30", "leave"),
        ("remind me tomorrow at quarter to one pm to leave", "2026-03-05 12:45", "leave"),
        ("remind me at quarter past twelve am to leave", "2026-03-05 00:15", "leave"),
        ("напомни завтра в четверть пятого дня выйти", "2026-03-05 16:15", "выйти"),
        ("напомни завтра в половине пятого дня выйти", "2026-03-05 16:30", "выйти"),
        ("напомни завтра без десяти пять дня выйти", "2026-03-05 16:50", "выйти"),
    ],
)
def test_half_of_the_day_after_a_spoken_clock_time_belongs_to_it(
    text: str, moment: str, task: str
) -> None:
    reading = read(text)
    assert (moments_of(reading), reading.task) == ([moment], task)


@each_row(
    ("text", "moments", "task"),
    [
        (
            "gib mir am 6. März um Viertel nach vier nachmittags Bescheid wegen der Heizung",
            ["2026-03-06 16:15"],
            "der Heizung",
        ),
        ("bir saat sonra çamaşırı almamı söyle", ["2026-03-04 12:30"], "çamaşırı almamı"),
        (
            "jeden Morgen um 8 bis Freitag erinnere mich an die Tablette",
            ["2026-03-05 08:00", "2026-03-06 08:00"],
            "die Tablette",
        ),
        (
            "jueves sí, jueves no, a las 18:30 recuérdame correr",
            ["2026-03-05 18:30", "2026-03-19 18:30", "2026-04-02 18:30"],
            "correr",
        ),
    ],
)
def test_everyday_wording_of_one_language_is_read(text: str, moments: list[str], task: str) -> None:
    reading = read(text)
    assert (moments_of(reading)[:3], reading.task) == (moments, task)


@each_row(
    ("text", "task"),
    [
        ("remind me every Monday at 9 and every Tuesday at 10 to run", "run"),
        ("erinnere mich jeden Montag um 9 und jeden Dienstag um 10 an Sport", "Sport"),
        ("rappelle-moi tous les lundis à 9h et tous les mardis à 10h de courir", "courir"),
        ("recuérdame cada lunes a las 9 y cada martes a las 10 correr", "correr"),
        ("me lembra toda segunda às 9 e toda terça às 10 de correr", "correr"),
        ("напоминай каждый понедельник в 9 и каждый вторник в 10 бегать", "бегать"),
        ("每周一9点和每周二10点提醒我跑步", "跑步"),
        ("毎週月曜9時と毎週火曜10時に走るとリマインドして", "走る"),
        ("매주 월요일 9시와 매주 화요일 10시에 운동하라고 알려줘", "운동하기"),
        ("her pazartesi 9'da ve her salı 10'da koşmayı hatırlat", "koşmayı"),
    ],
)
def test_two_rhythms_with_their_own_hours_become_two_rules(text: str, task: str) -> None:
    reading = read(text)
    assert reading.missing == frozenset()
    assert moments_of(reading)[:3] == ["2026-03-09 09:00", "2026-03-10 10:00", "2026-03-16 09:00"]
    assert reading.task == task


@each_row(
    "text",
    [
        "remind me every Monday at 9 and every Tuesday to run",
        "remind me every Monday at 9 and every Tuesday at 10 until June to run",
        "remind me every day at 9 except on the 1st to drink",
        "remind me to call at 10, to eat at 12",
    ],
)
def test_times_that_do_not_fit_together_are_asked_about(text: str) -> None:
    reading = read(text)
    assert (reading.intent, reading.moment, reading.recurrences) == (Intent.SET, None, ())
    assert Missing.TIME in reading.missing


@each_row(
    ("text", "moment"),
    [
        ("gece yarım'da ilacı hatırlat", "2026-03-05 00:30"),
        ("2027 Mayıs'ın ikinci salısı saat 9'da dişçiyi hatırlat", "2027-05-11 09:00"),
        ("напомни без двадцати семь позвонить", "2026-03-04 18:40"),
        ("remind me every day starting at 8 to drink", "2026-03-05 08:00"),
    ],
)
def test_rarely_written_time_is_read(text: str, moment: str) -> None:
    assert moments_of(read(text))[0] == moment


def test_date_that_does_not_exist_and_remark_about_reminders_set_nothing() -> None:
    reading = read("remind me on 2026-13-01 to call")
    assert reading.missing == {Missing.DATE}
    assert reading.problem is Problem.NO_SUCH_DATE
    assert read("reminder emails at 9 annoy me").intent is Intent.STORY


@each_row("text", ["明天9点提醒Anna付钱", "明天9点提醒我妈吃药"])
def test_chinese_request_to_remind_another_person_is_recognized_by_the_name(text: str) -> None:
    assert read(text).intent is Intent.OTHER_PERSON
    assert read("明天9点提醒我给Anna打电话").intent is Intent.SET


@each_row(
    ("text", "task"),
    [
        ("remind me every weekday 7.45 to take the bus", "take the bus"),
        ("remind me weekday 7.45 to take the bus", "take the bus"),
        ("erinnere mich jeden Werktag 7.45 an den Bus", "den Bus"),
    ],
)
def test_dotted_time_after_a_group_of_days_is_a_clock_time(text: str, task: str) -> None:
    reading = read(text)
    moments = ["2026-03-05 07:45", "2026-03-06 07:45", "2026-03-09 07:45"]
    assert (moments_of(reading), reading.task) == (moments, task)


@each_row(
    "text",
    [
        "remind anna tomorrow at 9 about her pills",
        "erinnere anna morgen um 9 an die pillen",
        "lembra a ana amanhã às 9 de comer",
        "напомни анне завтра в 9 поесть",
        "завтра в 9 напомни лене про таблетки",
        "напомни маше завтра в 9 про таблетки",
        "annaya yarın saat 9'da ilacını hatırlat",
        "mehmete yarın 9'da toplantıyı hatırlat",
        "明天9点提醒安娜吃药",
        "提醒大卫明天9点开会",
        "提醒王老师明天9点开会",
    ],
)
def test_other_person_is_recognized_by_a_lower_case_or_transliterated_name(text: str) -> None:
    reading = read(text)
    assert reading.intent is Intent.OTHER_PERSON
    assert moments_of(reading) == ["2026-03-05 09:00"]


@each_row(
    "text",
    [
        "remind me tomorrow at 9 to call anna",
        "remind anna's birthday tomorrow at 9",
        "remind Anna's birthday tomorrow at 9",
        "напомни завтра в 9 позвонить анне",
        "yarın 9'da annaya para göndermemi hatırlat",
        "明天9点提醒安装空调",
        "明天9点提醒我给大卫打电话",
        "明天9点提醒周总结",
    ],
)
def test_request_with_a_name_or_a_similar_word_in_its_task_is_set(text: str) -> None:
    reading = read(text)
    assert reading.intent is Intent.SET
    assert moments_of(reading) == ["2026-03-05 09:00"]
