"""What a message means in a dialogue about reminders."""

# ruff: noqa: RUF001

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from core.dates.recurrence import next_recurrences
from core.dates.requests.parts import Problem
from core.dates.schedule import Schedule
from core.scheduling.dialogue import decide, decide_edit
from core.scheduling.phrases import is_answer, split_command
from core.scheduling.talk.steps import Dialogue, Move, Situation, Step
from core.store.jobs import Job
from core.types import Account, Address, Scope
from tests.fixtures.tables import each_row

ZONE = ZoneInfo("Europe/Madrid")
NOW = datetime(2026, 3, 4, 11, 30, tzinfo=ZONE)
"""A Wednesday."""
CHAT = Address(platform="telegram", chat_id="42")
ANA = Account(platform="telegram", user_id="42")


def job(text: str, at: datetime | None = None, number: int = 7) -> Job:
    due_at = at or datetime(2026, 3, 6, 16, tzinfo=ZONE)
    return Job(
        schedule=Schedule(zone=ZONE.key, at=due_at.astimezone(UTC)),
        text=text,
        target=CHAT,
        scope=Scope.account("telegram", "42"),
        created_at=NOW,
        account=ANA,
        next_at=due_at,
        id=number,
    )


def make_job(step: Step) -> Job:
    """Return the reminder that the gateway sets or changes in a step."""
    reading = step.reading
    assert reading is not None
    if not reading.recurrences:
        return job(reading.task, reading.moment)
    schedule = Schedule(zone=ZONE.key, recurrences=reading.recurrences)
    due_at = next_recurrences(reading.recurrences, NOW, 1)[0]
    return replace(job(reading.task, due_at), schedule=schedule)


def talk(*messages: str, jobs: tuple[Job, ...] = ()) -> Step:
    """Return the step after a dialogue in which every complete request is set."""
    dialogue: Dialogue | None = None
    step = Step(move=Move.NONE)
    for message in messages:
        known = jobs if dialogue is None or dialogue.job is None else (*jobs, dialogue.job)
        situation = Situation(now=NOW, zone=ZONE, jobs=known, dialogue=dialogue)
        step = decide(message, situation)
        dialogue = None
        if step.reading is not None:
            is_set = step.move in (Move.SET, Move.CHANGE)
            set_job = make_job(step) if is_set else step.job
            dialogue = Dialogue(lines=step.lines, asked_at=NOW, job=set_job)
    return step


def moments(step: Step) -> list[str]:
    assert step.reading is not None
    reading = step.reading
    due = [reading.moment] if reading.moment else next_recurrences(reading.recurrences, NOW, 2)
    return [f"{moment.astimezone(ZONE):%Y-%m-%d %H:%M}" for moment in due]


@each_row(
    ("messages", "moment", "task"),
    [
        (("remind me to water the lawn", "at 6pm"), "2026-03-04 18:00", "water the lawn"),
        (
            ("remind me tomorrow at 7:15", "take out the bins"),
            "2026-03-05 07:15",
            "take out the bins",
        ),
        (("set a reminder", "feed the hens", "friday at 8"), "2026-03-06 08:00", "feed the hens"),
        (("remind me at 3 or 4 to ring Olga", "4pm"), "2026-03-04 16:00", "ring Olga"),
        (("remind me on 31 April at 10 to vote", "30 April"), "2026-04-30 10:00", "vote"),
        (("remind me at 4pm to stretch", "no, at 5"), "2026-03-04 17:00", "stretch"),
        (("remind me on Friday at 9 to pack", "make it Saturday"), "2026-03-07 09:00", "pack"),
        (("remind me at 3pm to ring Jon", "i meant John"), "2026-03-04 15:00", "ring John"),
        (("remind me on Sunday at 9 to bake", "not Sunday, Saturday"), "2026-03-07 09:00", "bake"),
        (
            ("erinner mich Sonntag um 9 an Brot", "nicht Sonntag, sondern Samstag"),
            "2026-03-07 09:00",
            "Brot",
        ),
        (("日曜の9時にパンをリマインドして", "日曜じゃなくて土曜"), "2026-03-07 09:00", "パン"),
        (("can you remind me about something?", "in 15 min, tea"), "2026-03-04 11:45", "tea"),
        (("토요일 오전 10시에 장보기 알려줘", "아니, 일요일"), "2026-03-08 10:00", "장보기"),
        (("remind me in 20 minutes to leave", "30 actually"), "2026-03-04 12:00", "leave"),
        (("remind me in 20 minutes to leave", "30"), "2026-03-04 12:00", "leave"),
        (("每天早上8点提醒我冥想", "只要周末"), "2026-03-07 08:00", "冥想"),
        (("毎日8時に瞑想をリマインドして", "週末だけ"), "2026-03-07 08:00", "瞑想"),
        (("매일 아침 8시에 명상하라고 알려줘", "주말에만"), "2026-03-07 08:00", ""),
        (("remind me in an hour to eat", "no, two hours"), "2026-03-04 13:30", "eat"),
        (("remind me in 45 minutes to eat", "make it an hour"), "2026-03-04 12:30", "eat"),
        (("erinner mich in 45 Minuten an Tee", "mach eine Stunde draus"), "2026-03-04 12:30", ""),
        (("erinner mich morgen um 10 an Lena", "statt 10 lieber 11"), "2026-03-05 11:00", "Lena"),
        (("明天十点提醒我买花", "还是十一点吧"), "2026-03-05 11:00", "买花"),
        (("明天十点提醒我买花", "改成中午"), "2026-03-05 12:00", "买花"),
        (("yarın saat 10'da çiçekleri hatırlat", "dokuz buçuğa kaydır"), "2026-03-05 09:30", ""),
        (("rappelle-moi demain à 10h le pain", "décale à 11h"), "2026-03-05 11:00", "le pain"),
        (("rappelle-moi demain à 10h le pain", "11h30 c'est mieux"), "2026-03-05 11:30", ""),
        (("напомни завтра в 10 утра про хлеб", "пусть будет в 12"), "2026-03-05 12:00", "хлеб"),
        (("내일 오전 10시에 장보기 알려줘", "9시로 수정해줘"), "2026-03-05 09:00", "장보기"),
        (("remind me tomorrow at 10 to pack", "Friday would be better"), "2026-03-06 10:00", ""),
        (("remind me tomorrow at 3pm to pack", "no, at 11"), "2026-03-05 11:00", "pack"),
        (("remind me tomorrow at 10 to pack", "push it back an hour"), "2026-03-05 11:00", "pack"),
        (("remind me tomorrow at 10 to pack", "a day later please"), "2026-03-06 10:00", "pack"),
        (
            ("erinner mich morgen um 10 an Tee", "anderthalb Stunden später reicht"),
            "2026-03-05 11:30",
            "Tee",
        ),
        (("내일 오전 10시에 장보기 알려줘", "30분만 미뤄줘"), "2026-03-05 10:30", "장보기"),
        (("明日の10時に荷造りをリマインドして", "1時間早めて"), "2026-03-05 09:00", "荷造り"),
        (("erinner mich täglich um 8 an Tee", "eine Stunde später"), "2026-03-05 09:00", "Tee"),
        (("remind me tomorrow at 10 to pack", "and half an hour earlier"), "2026-03-05 09:30", ""),
        (("recuérdame mañana a las 10 nadar", "y media hora antes"), "2026-03-05 09:30", ""),
        (("morgen um 10 an Tee erinnern", "und eine halbe Stunde früher"), "2026-03-05 09:30", ""),
        (("remind me in two weeks to book the trip", "no, at 11"), "2026-03-18 11:00", ""),
        (("erinner mich in zwei Wochen um 9 an Tee", "nein, um 11"), "2026-03-18 11:00", ""),
        (("2週間後に旅行の予約をリマインドして", "いや、11時"), "2026-03-18 11:00", ""),
        (("remind me at 5:50 to swim", "no, at 5:50 am"), "2026-03-05 05:50", ""),
        (("remind me at 5:50 to swim", "am"), "2026-03-05 05:50", ""),
        (("remind me at 5:50 to swim", "no, a.m."), "2026-03-05 05:50", ""),
        (("me lembra às 5:50 de nadar", "não, às 5:50 da manhã"), "2026-03-05 05:50", ""),
        (("5:50提醒我游泳", "不，上午5:50"), "2026-03-05 05:50", ""),
        (("stell einen Wecker auf 6:30", "nein, um 18:30 Uhr"), "2026-03-04 18:30", ""),
        (("remind me every Monday at 8 to plan", "and Thursdays too"), "2026-03-05 08:00", "plan"),
        (("every sunday at 6pm remind me to call Bo", "start in April"), "2026-04-05 18:00", ""),
        (("jeden Sonntag um 18 Uhr an Oma erinnern", "erst ab April"), "2026-04-05 18:00", ""),
        (("毎週日曜18時に電話をリマインドして", "4月からにして"), "2026-04-05 18:00", ""),
    ],
)
def test_answer_or_correction_completes_a_reminder_request(
    messages: tuple[str, ...], moment: str, task: str
) -> None:
    step = talk(*messages)

    assert step.move in (Move.SET, Move.CHANGE)
    assert moments(step)[0] == moment
    assert step.reading is not None
    assert step.reading.task == (task or step.reading.task)


@each_row(
    ("text", "moment", "task"),
    [
        ("remind me at 9 to swim. Actually at 10", "2026-03-04 22:00", "swim"),
        ("remind me tomorrow at 9 to swim, no wait, at 10", "2026-03-05 10:00", "swim"),
        ("erinner mich morgen um 9 an Tee. Doch lieber um 10", "2026-03-05 10:00", "Tee"),
        ("rappelle-moi demain à 9h de nager. En fait à 10h", "2026-03-05 10:00", "nager"),
        ("recuérdame mañana a las 9 nadar. Mejor a las 10", "2026-03-05 10:00", "nadar"),
        ("me lembra amanhã às 9 de nadar. Na verdade às 10", "2026-03-05 10:00", "nadar"),
        ("напомни завтра в 9 про бассейн. Нет, в 10", "2026-03-05 10:00", "бассейн"),
        ("明天9点提醒我游泳。不对，10点", "2026-03-05 10:00", "游泳"),
        ("明日9時に水泳をリマインドして。やっぱり10時", "2026-03-05 10:00", "水泳"),
        ("내일 9시에 수영 알려줘 아니 10시에", "2026-03-05 10:00", "수영"),
        ("yarın 9'da yüzmeyi hatırlat. Yok, 10'da", "2026-03-05 10:00", "yüzmeyi"),
    ],
)
def test_correction_in_the_same_message_changes_the_time_and_not_the_task(
    text: str, moment: str, task: str
) -> None:
    step = talk(text)

    assert step.move is Move.SET
    assert moments(step) == [moment]
    assert step.reading is not None
    assert step.reading.task == task


@each_row(
    ("first", "second"),
    [
        ("remind me at 15:00 to pay rent", "remind me tomorrow at 9"),
        ("erinner mich um 15:00 an die Miete", "erinner mich morgen um 9"),
        ("rappelle-moi à 15h de payer", "rappelle-moi demain à 9h"),
        ("recuérdame a las 15:00 pagar", "recuérdame mañana a las 9"),
        ("me lembra às 15:00 de pagar", "me lembra amanhã às 9"),
        ("напомни в 15:00 про аренду", "напомни завтра в 9"),
        ("下午3点提醒我交房租", "明天9点提醒我"),
        ("15時に家賃をリマインドして", "明日9時にリマインドして"),
        ("15시에 월세 내라고 알려줘", "내일 9시에 알려줘"),
        ("saat 15'te kirayı hatırlat", "yarın 9'da hatırlat"),
    ],
)
def test_new_request_without_a_task_asks_for_it_and_moves_no_reminder(
    first: str, second: str
) -> None:
    step = talk(first, second)

    assert (step.move, step.job) == (Move.ASK, None)
    assert moments(step) == ["2026-03-05 09:00"]


@each_row(
    "text",
    [
        "remind me again in an hour",
        "remind me of it in an hour",
        "erinner mich in einer Stunde daran",
    ],
)
def test_request_for_the_same_reminder_again_moves_it(text: str) -> None:
    step = talk("remind me at 15:00 to pay rent", text)

    assert step.move is Move.CHANGE
    assert moments(step) == ["2026-03-04 12:30"]


@each_row(
    ("request_text", "correction", "task"),
    [
        (
            "remind me tomorrow at 8 to take out the bins",
            "wait, not the bins, the compost",
            "take out the compost",
        ),
        ("remind me at 4pm to call the vet", "the dentist instead of the vet", "call the dentist"),
        ("erinner mich um 16 Uhr an das Brot", "nicht das Brot, sondern die Milch", "die Milch"),
        ("rappelle-moi à 16h d'acheter du lait", "pas du lait, du pain", "acheter du pain"),
        ("recuérdame a las 16:00 comprar pan", "no pan sino leche", "comprar leche"),
        ("me lembra às 16h de comprar pão", "não pão, leite", "comprar leite"),
        ("напомни в 16:00 купить хлеб", "не хлеб, а молоко", "купить молоко"),
        ("下午4点提醒我买牛奶", "不是牛奶，是面包", "买面包"),
        ("16時にパンを買うようリマインドして", "パンじゃなくて牛乳", "牛乳を買う"),
        ("16시에 빵 사라고 알려줘", "빵 말고 우유", "우유 사기"),
        ("saat 16'da ekmek almamı hatırlat", "ekmek değil süt", "süt almamı"),
    ],
)
def test_correction_names_the_wrong_and_the_right_words(
    request_text: str, correction: str, task: str
) -> None:
    step = talk(request_text, correction)

    assert step.move is Move.CHANGE
    assert step.reading is not None
    assert step.reading.task == task


@each_row(
    ("messages", "move"),
    [
        (("remind me to water the lawn", "stop"), Move.DROP),
        (("remind me at 4pm to stretch", "stop"), Move.UNKNOWN),
        (("remind me tomorrow at 9 to stretch", "two days earlier"), Move.ASK),
        (("напомни завтра в 10 утра про хлеб", "передвинь на 11 часов"), Move.ASK_CHANGE),
        (("remind me to water the lawn", "never mind"), Move.DROP),
        (("remind me to water the lawn", "The library closes at noon."), Move.NONE),
        (("remind me to water the lawn", "where did I park the car?"), Move.NONE),
        (("remind me at 4pm to stretch", "vergiss es"), Move.REMOVE),
        (("remind me at 4pm to stretch", "never mind, I just did it"), Move.REMOVE),
        (("remind me at 4pm to stretch", "skip it"), Move.REMOVE),
        (("remind me at 4pm to stretch", "oh wait, forget it, I'm off today"), Move.REMOVE),
        (("remind me at 4pm to stretch", "não precisa mais"), Move.REMOVE),
        (("remind me at 4pm to stretch", "ah I don't need this one after all"), Move.REMOVE),
        (("remind me at 4pm to stretch", "不用提醒我了"), Move.REMOVE),
        (("remind me at 9. No wait, forget it",), Move.DROP),
        (("remind me at 9 to swim? just kidding",), Move.DROP),
        (("erinner mich um 9 an Tee. Nur Spaß",), Move.DROP),
        (("remind me tomorrow at 9", "what's the weather like?"), Move.NONE),
        (("recuérdame mañana a las 9", "¿qué tiempo hace?"), Move.NONE),
        (("明天9点提醒我", "天气怎么样"), Move.NONE),
        (("erinner mich morgen um 9", "wie wird das Wetter?"), Move.NONE),
        (("wie alt ist mein Vater?",), Move.NONE),
        (("how can I set the table for 8?",), Move.NONE),
        (("remind me to water the lawn", "I don't know"), Move.ASK),
        (("erinner mich an den Rasen", "keine Ahnung"), Move.ASK),
        (("提醒我浇花", "不知道"), Move.ASK),
        (("remind me to water the lawn", "ok"), Move.ASK),
        (("remind me yesterday at 9 to pay",), Move.ASK),
        (("昨天9点提醒我付钱",), Move.ASK),
        (("erinner mich morgen früh daran, Olga um 15 Uhr anzurufen",), Move.ASK),
        (("rappelle-moi demain matin d'appeler Olga à 15h",), Move.ASK),
        (("明天早上提醒我下午3点给安娜打电话",), Move.ASK),
        (("remind Anna tomorrow at 9 to pay",), Move.OFFER_OWN),
        (("напомни Анне завтра в 9 заплатить",), Move.OFFER_OWN),
        (("remind me if it rains at 9 to close the window",), Move.EXPLAIN_WATCH),
        (("recuérdame cerrar la ventana si llueve",), Move.EXPLAIN_WATCH),
        (("wenn es regnet, bleibe ich zu Hause",), Move.NONE),
        (("remind me about something",), Move.ASK),
        (("напомни что-нибудь",), Move.ASK),
        (("bana bir şey hatırlat",), Move.ASK),
        (("何かリマインドして",), Move.ASK),
        (("妹の誕生日は5月3日だと覚えておいて",), Move.NONE),
        (("delete the note",), Move.NONE),
        (("lösch die Notiz",), Move.NONE),
        (("supprime la note",), Move.NONE),
        (("borra la nota",), Move.NONE),
        (("apaga a nota",), Move.NONE),
        (("удали заметку",), Move.NONE),
        (("删除笔记",), Move.NONE),
        (("メモを削除して",), Move.NONE),
        (("메모 지워줘",), Move.NONE),
        (("notu sil",), Move.NONE),
        (("move it to 11",), Move.UNKNOWN),
        (("how do reminders work?",), Move.EXPLAIN),
        (("comment marchent les rappels ?",), Move.EXPLAIN),
        (("tell me only if it rains, every day at 9",), Move.EXPLAIN_WATCH),
        (("delete all my reminders",), Move.REMOVE_ALL),
        (("lösch alle Erinnerungen",), Move.REMOVE_ALL),
        (("remind me at 4pm to stretch", "d'accord"), Move.CONFIRM),
        (("remind me at 4pm to stretch", "да"), Move.CONFIRM),
        (("remind me at 4pm to stretch", "👍"), Move.CONFIRM),
        (("remind me at 4pm to stretch", "perfect, cheers"), Move.CONFIRM),
        (("remind me at 4pm to stretch", "The library closes at noon."), Move.NONE),
        (("the reminder came too late yesterday",), Move.NONE),
        (("what reminders do I have?",), Move.LIST),
        (("when is my next reminder?",), Move.NEXT),
        (("not now",), Move.SNOOZE),
        (("cancel the subscription at the gym in Porto next year",), Move.NONE),
        (("set the table for 8",), Move.NONE),
        (("make it 11",), Move.UNKNOWN),
        (("good morning",), Move.NONE),
    ],
)
def test_message_without_a_reminder_request_is_classified_by_the_dialogue_before_it(
    messages: tuple[str, ...], move: Move
) -> None:
    assert talk(*messages).move is move


@each_row(
    ("removal", "change"),
    [
        ("cancel the dentist", "move it to 11"),
        ("lösch den Zahnarzt", "verschieb es auf 11"),
        ("annule le dentiste", "déplace-le à 11h"),
        ("cancela el dentista", "muévelo a las 11"),
        ("cancela o dentista", "muda para as 11"),
        ("отмени стоматолога", "перенеси на 11"),
        ("取消牙医", "改到11点"),
        ("歯医者をキャンセルして", "11時に変更して"),
        ("치과 취소해줘", "11시로 바꿔줘"),
        ("dişçiyi iptal et", "11'e al"),
    ],
)
def test_request_to_remove_or_move_what_is_no_reminder_is_recognized(
    removal: str, change: str
) -> None:
    assert talk(removal).move is talk(change).move is Move.UNKNOWN


@each_row(
    ("request", "answer", "move"),
    [
        ("cancel the appointment", "the dentist", Move.REMOVE),
        ("cancel the call", "2", Move.REMOVE),
        ("lösch den Termin", "der um 10", Move.REMOVE),
        ("move the call to 11", "the dentist", Move.CHANGE),
        ("pause the call", "the first one", Move.PAUSE),
        ("stop", "dentist", Move.REMOVE),
        ("cancel the appointment", "The library closes at noon.", Move.NONE),
    ],
)
def test_answer_to_which_reminder_carries_out_the_request(
    request: str, answer: str, move: Move
) -> None:
    dentist = job("call the dentist", datetime(2026, 3, 6, 10, tzinfo=ZONE), number=2)
    jobs = (dentist, job("call the plumber", datetime(2026, 3, 7, 11, tzinfo=ZONE), number=3))
    dialogue = Dialogue(asked_at=NOW, unclear_request=request)
    situation = Situation(now=NOW, zone=ZONE, jobs=jobs, dialogue=dialogue)
    step = decide(answer, situation)
    assert step.move is move
    assert step.job in (None, dentist)


@each_row(
    ("text", "move"),
    [
        ("stop reminding me about the pills", Move.REMOVE),
        ("stop reminding me", Move.UNKNOWN),
        ("hör auf mich zu erinnern", Move.UNKNOWN),
        ("别再提醒我了", Move.UNKNOWN),
        ("pause my pills reminder", Move.PAUSE),
        ("cancel the first one", Move.REMOVE),
        ("skip the next one", Move.SKIP),
        ("skip tomorrow", Move.SKIP),
        ("salta mañana", Move.SKIP),
        ("saute demain", Move.SKIP),
        ("pula amanhã", Move.SKIP),
        ("пропусти завтра", Move.SKIP),
        ("跳过明天", Move.SKIP),
        ("明日はスキップ", Move.SKIP),
        ("내일은 건너뛰어", Move.SKIP),
    ],
)
def test_existing_reminder_is_stopped_paused_or_skipped_in_plain_words(
    text: str, move: Move
) -> None:
    rule = "DTSTART:20260302T160000\nRRULE:FREQ=DAILY"
    due_at = datetime(2026, 3, 5, 16, tzinfo=ZONE)
    pills = job("take the pills", due_at, number=1)
    pills = replace(pills, schedule=Schedule(zone=ZONE.key, recurrences=(rule,)))
    hens = job("feed the hens", number=2)

    step = talk(text, jobs=(pills, hens))

    assert step.move is move
    assert step.job == (None if move is Move.UNKNOWN else pills)


@each_row("text", ["skip it once", "diesmal nicht", "saute le prochain", "跳过一次"])
def test_skip_leaves_out_one_time_of_a_recurring_reminder(text: str) -> None:
    weekly = replace(
        job("plan the week"),
        schedule=Schedule(
            zone=ZONE.key, recurrences=("DTSTART:20260302T080000\nRRULE:FREQ=WEEKLY",)
        ),
    )
    dialogue = Dialogue(asked_at=NOW, job=weekly)
    situation = Situation(now=NOW, zone=ZONE, jobs=[weekly], dialogue=dialogue)

    assert decide(text, situation).move is Move.SKIP


def test_skip_without_a_dialogue_changes_no_reminder() -> None:
    assert talk("not this time", jobs=(job("pay the rent"),)).move is Move.NONE
    assert talk("skip the rent", jobs=(job("pay the rent"),)).move is Move.REMOVE


def test_message_that_is_only_the_word_stop_removes_no_reminder() -> None:
    only = job("pay the rent")

    assert talk("stop", jobs=(only,)).move is Move.UNKNOWN
    assert talk("stop").move is Move.NONE
    assert talk("stop the rent reminder", jobs=(only,)).job == only


def test_delivered_reminder_is_snoozed_by_a_length() -> None:
    delivered = replace(job("pack", at=NOW), next_at=None, ended_at=NOW)
    dialogue = Dialogue(asked_at=NOW, job=delivered)
    situation = Situation(now=NOW, zone=ZONE, dialogue=dialogue)

    step = decide("отложи на 15 минут", situation)
    assert (step.move, step.words) == (Move.SNOOZE, "15 minutes")
    step = decide("recuérdamelo otra vez en una hora", situation)
    assert moments(step) == ["2026-03-04 12:30"]
    assert step.job == delivered


@each_row(
    ("language", "text"),
    [
        ("en", "Snooze for two hours"),
        ("en", "snooze it for 2 hours"),
        ("de", "schlummern für zwei Stunden"),
        ("fr", "reporte de deux heures"),
        ("es", "posponer durante dos horas"),
        ("pt", "soneca de duas horas"),
        ("ru", "отложи на два часа"),
        ("zh", "推迟两个小时"),
        ("ja", "2時間スヌーズ"),
        ("ko", "두 시간 스누즈"),
        ("tr", "iki saat ertele"),
    ],
)
def test_snooze_for_a_length_is_no_time_of_day(language: str, text: str) -> None:
    pending = job("pack", at=NOW + timedelta(hours=4))
    delivered = replace(job("pack", at=NOW), next_at=None, ended_at=NOW)
    situation = Situation(now=NOW, zone=ZONE, languages=(language,))

    step = decide(text, replace(situation, dialogue=Dialogue(asked_at=NOW, job=pending)))
    if step.move is Move.CHANGE:
        # Words such as "postpone" count from the time of the reminder.
        assert moments(step) == ["2026-03-04 17:30"]
    else:
        assert (step.move, step.job, step.words) == (Move.SNOOZE, pending, "120 minutes")
    step = decide(text, replace(situation, dialogue=Dialogue(asked_at=NOW, job=delivered)))
    assert (step.move, step.job, step.words) == (Move.SNOOZE, delivered, "120 minutes")
    step = decide(text, situation)
    assert (step.move, step.job, step.words) == (Move.SNOOZE, None, "120 minutes")


def test_reminder_to_delete_is_found_by_the_time_that_the_person_names() -> None:
    ten, noon = (datetime(2026, 3, 5, hour, tzinfo=ZONE) for hour in (10, 12))
    jobs = (job("call Olga", ten, number=1), job("feed the hens", noon, number=2))

    assert talk("delete the one at 10", jobs=jobs).job == jobs[0]
    assert talk("annule celui de midi", jobs=jobs).job == jobs[1]
    assert talk("delete the one at 11", jobs=jobs).job is None
    assert talk("I don't want to be out at 10", jobs=jobs).job is None
    assert talk("sag Olga ab", jobs=jobs).job == jobs[0]


def test_reminder_to_delete_is_found_by_words_of_its_text() -> None:
    jobs = (job("call the dentist", number=1), job("feed the hens", number=2))

    removal = talk("cancel the dentist", jobs=jobs)
    assert (removal.move, removal.job) == (Move.REMOVE, jobs[0])

    change = talk("move the hens to 9", jobs=jobs)
    assert (change.move, change.job) == (Move.CHANGE, jobs[1])
    assert moments(change) == ["2026-03-06 21:00"]

    assert talk("cancel the plumber reminder", jobs=jobs).move is Move.UNKNOWN
    assert talk("cancel it", jobs=jobs).move is Move.UNKNOWN
    assert talk("cancel it", jobs=jobs[:1]).job == jobs[0]


@each_row(
    "text",
    [
        "delete the reminder with Olga",
        "lösch die Erinnerung wegen Olga",
        "supprime le rappel avec Olga",
        "borra el recordatorio con Olga",
        "apaga o lembrete com a Olga",
    ],
)
def test_reminder_to_delete_is_found_by_a_person_with_a_preposition(text: str) -> None:
    jobs = (job("call Olga", number=1), job("feed the hens", number=2))

    assert talk(text, jobs=jobs).job == jobs[0]


def test_german_push_verb_moves_the_last_reminder() -> None:
    only = job("call Olga", datetime(2026, 3, 5, 8, tzinfo=ZONE))

    assert moments(talk("schieb sie auf 9 Uhr", jobs=(only,))) == ["2026-03-05 09:00"]


@each_row(
    ("words", "moment", "task"),
    [
        ("10:00", "2026-03-06 10:00", "pack"),
        ("monday", "2026-03-09 16:00", "pack"),
        ("pack the tent", "2026-03-06 16:00", "pack the tent"),
        ("saturday at 7am load the boat", "2026-03-07 07:00", "load the boat"),
    ],
)
def test_reminder_edit_changes_only_the_time_or_text_that_the_person_names(
    words: str, moment: str, task: str
) -> None:
    step = decide_edit(words, job("pack"), Situation(now=NOW, zone=ZONE))

    assert step.move is Move.CHANGE
    assert step.reading is not None
    due_at = step.reading.moment or job("pack").next_at
    assert due_at is not None
    assert f"{due_at.astimezone(ZONE):%Y-%m-%d %H:%M}" == moment
    assert step.reading.task == task


@each_row(
    ("kind", "text"),
    [
        ("yes", "Sí, perfecto, gracias"),
        ("yes", "네 좋아요"),
        ("done", "erledigt!"),
        ("snooze", "稍后提醒"),
    ],
)
def test_short_answer_is_known_in_its_language(kind: str, text: str) -> None:
    assert is_answer(kind, text)
    assert not is_answer(kind, f"{text} Lissabon")


def test_removal_request_is_split_into_its_command_and_the_reminder_it_names() -> None:
    assert split_command("remove", "Please cancel the dentist!") == "the dentist"
    assert split_command("remove", "歯医者をキャンセルして") == "齿医者を"
    assert split_command("remove", "diş hekimini iptal et") == "dis hekimini"
    assert split_command("remove", "the cancelled flight") is None


SUNDAY_AT_TEN = [
    ("en", "remind me on sunday at 10 to call ana", "could we do 11?"),
    ("de", "erinner mich sonntag um 10 an ana", "kannst du 11 Uhr draus machen?"),
    ("fr", "rappelle-moi dimanche à 10h d'appeler ana", "on peut dire 11h ?"),
    ("es", "recuérdame el domingo a las 10 llamar a ana", "¿puede ser a las 11?"),
    ("pt", "me lembra domingo às 10h de ligar pra ana", "pode ser às 11?"),
    ("ru", "напомни в воскресенье в 10 позвонить ане", "а можно в 11?"),
    ("zh", "星期天上午十点提醒我打给安娜", "改到11点可以吗？"),
    ("ja", "日曜の10時にアナに電話をリマインドして", "11時にできますか？"),
    ("ko", "일요일 오전 10시에 아나한테 전화하라고 알려줘", "11시로 바꿔줄래?"),
    ("tr", "pazar günü saat 10'da ana'yı aramayı hatırlat", "11 olur mu?"),
]
QUESTIONS = {
    "en": ["What's on Saturday?", "does it rain on saturday?", "who comes tomorrow?", "Am I free on Saturday?"],
    "de": ["Was steht am Samstag an?", "regnet es samstag?", "Was war letzte Woche?", "hat der laden um 8 offen?"],
    "fr": ["Qu'est-ce que j'ai demain ?", "il pleut demain ?", "qui vient samedi ?", "Suis-je libre samedi ?"],
    "es": ["¿Qué tengo mañana?", "llueve mañana?", "quién viene mañana?", "¿Qué tuve ayer?"],
    "pt": ["O que eu tenho amanhã?", "chove amanhã?", "quem vem amanhã?", "Estou livre no sábado?"],
    "ru": ["Завтра что у меня?", "завтра дождь?", "кто придёт завтра?", "что было вчера?"],
    "zh": ["明天有什么安排?", "明天下雨吗？", "谁明天来？", "我星期六有空吗？"],
    "ja": ["明日の予定は?", "明日は雨？", "明日は誰が来る？", "昨日は何があった？"],
    "ko": ["내일 일정 뭐야?", "내일 비 와?", "내일 누가 와?", "토요일에 시간 있어?"],
    "tr": ["Yarın neyim var?", "yarın yağmur var mı?", "yarın kim geliyor?", "Cumartesi boş muyum?"],
}  # fmt: skip
ASKED = [
    (request, question)
    for language, request, _ in SUNDAY_AT_TEN
    for question in QUESTIONS[language]
]


@each_row(("request_", "question"), ASKED)
def test_question_after_a_reminder_was_set_does_not_move_it(request_: str, question: str) -> None:
    assert talk(request_).move is Move.SET
    step = talk(request_, question)
    assert step.move in (Move.LIST_PERIOD, Move.NONE)


@each_row(("language", "request_", "proposal"), SUNDAY_AT_TEN)
def test_question_that_only_proposes_a_time_moves_the_reminder(
    language: str, request_: str, proposal: str
) -> None:
    step = talk(request_, proposal)
    assert step.move is Move.CHANGE
    assert moments(step) == ["2026-03-08 11:00"]


def test_question_about_a_day_asks_for_its_reminders_and_keeps_the_dialogue() -> None:
    step = talk("remind me on sunday at 10 to call ana", "what do i have on saturday?")
    assert step.move is Move.LIST_PERIOD
    assert step.period is not None
    assert [f"{at.astimezone(ZONE):%m-%d}" for at in step.period] == ["03-07", "03-08"]
    assert step.job is not None
    assert step.lines == ("remind me on sunday at 10 to call ana",)


def test_question_about_a_day_is_no_answer_to_the_question_for_a_time() -> None:
    step = talk("remind me to call ana", "what do i have on saturday?")
    assert step.move is Move.LIST_PERIOD


ALARMS = [
    ("remind me on sunday at 10 to call ana", "set my alarm for 7"),
    ("erinner mich sonntag um 10 an ana", "stell meinen wecker auf 7"),
    ("rappelle-moi dimanche à 10h d'appeler ana", "règle mon réveil sur 7h"),
    ("recuérdame el domingo a las 10 llamar a ana", "pon mi alarma a las 7"),
    ("me lembra domingo às 10h de ligar pra ana", "coloca meu alarme pras 7"),
    ("напомни в воскресенье в 10 позвонить ане", "поставь мой будильник на 7"),
    ("星期天上午十点提醒我打给安娜", "把我的闹钟设到7点"),
    ("日曜の10時にアナに電話をリマインドして", "目覚ましを7時にして"),
    ("일요일 오전 10시에 아나한테 전화하라고 알려줘", "내 알람을 7시로 맞춰줘"),
    ("pazar günü saat 10'da ana'yı aramayı hatırlat", "alarmımı 7'ye kur"),
]


@each_row(("first", "alarm"), ALARMS)
def test_alarm_after_another_reminder_is_set_as_a_new_one(first: str, alarm: str) -> None:
    step = talk(first, alarm)
    assert step.move is Move.SET
    assert moments(step) == ["2026-03-05 07:00"]


def test_alarm_after_an_alarm_moves_it() -> None:
    step = talk("set an alarm for 6", "set my alarm for 7")
    assert step.move is Move.CHANGE


@each_row(
    ("request_", "answer", "moment"),
    [
        ("remind me tomorrow at 5 pm to swim", "make that half past", "17:30"),
        ("remind me tomorrow at 5 pm to swim", "no, quarter to", "16:45"),
        ("remind me tomorrow at 5 pm to swim", "sorry, am", "05:00"),
        ("erinner mich morgen um 17 Uhr ans Schwimmen", "nein, viertel nach", "17:15"),
        ("rappelle-moi demain à 17h de nager", "non, et demie", "17:30"),
        ("recuérdame mañana a las 17 nadar", "no, y media", "17:30"),
        ("me lembra amanhã às 17 de nadar", "não, e meia", "17:30"),
        ("напомни завтра в 17 поплавать", "нет, с половиной", "17:30"),
        ("明天17点提醒我游泳", "不对，半", "17:30"),
        ("明日の17時に泳ぐのをリマインドして", "いや、半で", "17:30"),
        ("내일 17시에 수영하라고 알려줘", "아니, 반에", "17:30"),
        ("yarın saat 17'de yüzmeyi hatırlat", "hayır, buçukta", "17:30"),
    ],
)
def test_minutes_or_half_of_the_day_alone_correct_the_hour_named_before(
    request_: str, answer: str, moment: str
) -> None:
    step = talk(request_, answer)
    assert step.move is Move.CHANGE
    assert moments(step) == [f"2026-03-05 {moment}"]


@each_row(
    ("request_", "answer"),
    [
        ("remind me tomorrow at 9 to call Bo", "also on sunday"),
        ("remind me tomorrow at 9 to call Bo", "and on sunday too"),
        ("erinner mich morgen um 9 an Bo", "und auch am Sonntag"),
        ("rappelle-moi demain à 9h d'appeler Bo", "dimanche aussi"),
        ("recuérdame mañana a las 9 llamar a Bo", "también el domingo"),
        ("me lembra amanhã às 9 de ligar pro Bo", "no domingo também"),
        ("напомни завтра в 9 позвонить Бо", "и в воскресенье тоже"),
        ("明天9点提醒我打给小波", "还有周日"),
        ("明日9時に電話するのをリマインドして", "日曜にもお願い"),
        ("내일 9시에 전화하라고 알려줘", "추가로 일요일에"),
        ("yarın 9'da aramayı hatırlat", "ayrıca pazar günü"),
    ],
)
def test_further_time_of_a_single_reminder_sets_a_second_one(request_: str, answer: str) -> None:
    step = talk(request_, answer)
    assert (step.move, step.job) == (Move.SET, None)
    assert moments(step) == ["2026-03-08 09:00"]


MONDAY_AND_TUESDAY = "remind me every monday at 9 and every tuesday at 10 to plan"


@each_row(
    ("answer", "moments_after"),
    [
        ("monday", ["2026-03-09 11:00", "2026-03-10 10:00"]),
        ("the one at 10", ["2026-03-09 09:00", "2026-03-10 11:00"]),
        ("both", ["2026-03-09 11:00", "2026-03-10 11:00"]),
        ("no, at 11", ["2026-03-09 11:00", "2026-03-10 11:00"]),
    ],
)
def test_answer_to_which_of_the_times_applies_the_correction_before_it(
    answer: str, moments_after: list[str]
) -> None:
    asked = talk(MONDAY_AND_TUESDAY, "no, at 11")
    assert asked.move is Move.ASK
    step = talk(MONDAY_AND_TUESDAY, "no, at 11", answer)
    assert step.move is Move.CHANGE
    assert moments(step) == moments_after


def test_hour_after_which_of_the_times_asks_for_the_day_that_is_still_unknown() -> None:
    request = "remind me tomorrow at 9 and on friday at 10 to call"
    step = talk(request, "no, at 11")
    assert step.move is Move.ASK
    assert step.reading is not None
    assert step.reading.problem is Problem.NO_DAY
    step = talk(request, "no, at 11", "friday")
    assert moments(step) == ["2026-03-06 11:00"]


@each_row(
    ("request_", "task"),
    [
        ("アンナに明日9時に薬をリマインドして", "アンナに薬をリマインドして"),
        ("さくらに明日9時に知らせて", "さくらに知らせて"),
        ("Anna에게 내일 9시에 약 먹으라고 알려줘", "Anna에게 약 먹으라고 알려줘"),
        ("민수한테 내일 9시에 회의라고 알려줘", "민수한테 회의라고 알려줘"),
        ("Anna'ya yarın saat 9'da ilacını hatırlat", "Anna'ya ilacını hatırlat"),
        ("提醒小明明天9点吃药", "提醒小明吃药"),
        ("remind anna tomorrow at 9 to eat", "remind anna to eat"),
        ("erinnere Anna morgen um 9 an die Pillen", "erinnere Anna an die Pillen"),
        ("rappelle à Anna demain à 9h de manger", "rappelle à Anna de manger"),
        ("recuérdale a Ana mañana a las 9 comer", "recuérdale a Ana comer"),
        ("lembra a Ana amanhã às 9 de comer", "lembra a Ana de comer"),
        ("напомни Анне завтра в 9 поесть", "напомни Анне поесть"),
    ],
)
def test_request_to_remind_another_person_is_offered_to_the_asker(request_: str, task: str) -> None:
    step = talk(request_)
    assert step.move is Move.OFFER_OWN
    assert step.reading is not None
    assert step.reading.task == task


@each_row(
    ("request_", "task"),
    [
        ("アンナに電話するのを明日9時にリマインドして", "アンナに電話する"),
        ("アンナに明日9時に電話するようリマインドして", "アンナに電話する"),
        ("明日9時に歯医者にリマインドして", "歯医者"),
        ("明日9時にリマインドして、トイレットペーパー", "トイレットペーパー"),
        ("내일 9시에 민수에게 선물 주라고 알려줘", "민수에게 선물 주기"),
        ("나한테 내일 9시에 약 먹으라고 알려줘", "약 먹기"),
        ("erinner mich morgen früh um 9 an den Tüv", "den Tüv"),
        ("i keep forgetting to drink, remind me tomorrow at 9", "keep forgetting to drink"),
    ],
)
def test_request_that_names_a_person_or_thing_in_its_task_is_set(request_: str, task: str) -> None:
    step = talk(request_)
    assert step.move is Move.SET
    assert step.reading is not None
    assert task in step.reading.task
    assert moments(step) == ["2026-03-05 09:00"]


@each_row(
    ("messages", "moment"),
    [
        (("remind me on friday fortnight at 9 to call",), "2026-03-20 09:00"),
        (("erinner mich Montag in acht Tagen um 9 an Tee",), "2026-03-16 09:00"),
        (("erinner mich morgen früh um 8 an Tee",), "2026-03-05 08:00"),
        (
            ("erinner mich nicht nächsten Dienstag, sondern den danach um 9 an Tee",),
            "2026-03-17 09:00",
        ),
        (("remind me not next tuesday, the one after at 9 to call",), "2026-03-17 09:00"),
        (("rappelle-moi dans 3 quarts d'heure le gâteau",), "2026-03-04 12:15"),
        (("me lembra amanhã às 9 de pagar", "opa, 9 não, 11"), "2026-03-05 11:00"),
    ],
)
def test_everyday_time_is_read_as_people_write_it(messages: tuple[str, ...], moment: str) -> None:
    assert moments(talk(*messages)) == [moment]
