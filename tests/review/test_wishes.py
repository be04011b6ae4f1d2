"""Typed wishes: clauses that ask for a change, and the thing that they name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.review.carried_out import CarriedOutWishes
from core.review.naming import consists_of, dictates_change, names_subject
from core.review.phrases import is_dictated
from core.review.repetition import repeats
from core.review.wish_judge import may_be_wished
from core.review.wishes import find_wishes
from core.types import Effect, Subject
from tests.fixtures.growth import assert_linear

INSULIN = Subject(
    label="reminder 4",
    text="take the insulin",
    number="4",
    kind="reminder",
    others=["water the plants", "call Ana", "call Ben", "swim"],
)
DENTIST = Subject(label="fact 7", text="My dentist is Dr. Silva", number="7", kind="memory")


def wants(typed: str, effect: Effect, subject: Subject = INSULIN) -> bool:
    return any(names_subject(wish, subject) for wish in find_wishes([typed], effect))


def may_ask(typed: str, effect: Effect, subject: Subject = INSULIN) -> bool:
    """Return True if the helper model is asked whether a message is a wish."""
    return may_be_wished(effect, (subject,), [typed])


def with_text(text: str, *others: str) -> Subject:
    return Subject(label="reminder 4", text=text, number="4", kind="reminder", others=others)


@pytest.mark.parametrize(
    "typed",
    [
        "Please remove reminder 4",
        "Lösch bitte Erinnerung 4",
        "Borra el recordatorio 4",
        "Supprime le rappel 4",
        "Apaga o lembrete 4",
        "Удали напоминание 4",
        "删除提醒4",
        "リマインダー4を削除して",
        "알림 4번 삭제해 줘",
        "4 numaralı hatırlatıcıyı sil",
        "delete reminders 3 and 4",
        "Can you delete the reminder to take the insulin?",
        "hi\ncancel take the insulin\nthanks",
        "Lösch die Erinnerung take the insulin",
        "删除take the insulin的提醒",
        "take the insulinのリマインダーを削除して",
    ],
)
def test_number_or_whole_text_of_a_reminder_names_it_exactly_in_ten_languages(typed: str) -> None:
    assert wants(typed, Effect.REMOVE)


def test_indefinite_kind_names_no_reminder() -> None:
    assert not wants("drop a reminder", Effect.REMOVE, with_text("take the insulin"))


def test_turkish_verb_at_the_end_is_not_a_french_word() -> None:
    assert may_ask("piyano dersini iptal et", Effect.REMOVE, with_text("piyano dersi"))


def test_kind_names_the_only_reminder() -> None:
    for typed in ("delete the reminder", "Lösch die Erinnerung", "删除提醒", "알림 삭제해 줘"):
        assert wants(typed, Effect.REMOVE, with_text("take the insulin"))
        assert not wants(typed, Effect.REMOVE)


def test_text_of_a_reminder_needs_a_word_for_its_kind_once_there_is_foreign_text() -> None:
    gym = with_text("gym membership", "swim")
    for typed, names in (
        ("Cancel the gym membership", False),
        ("Cancel the gym membership reminder", True),
        ("Stop reminding me of the gym membership", True),
        ("Cancel reminder 4", True),
    ):
        wishes = find_wishes([typed], Effect.REMOVE)
        assert any(names_subject(wish, gym, ["A ferry."]) for wish in wishes) is names, typed
        assert any(names_subject(wish, gym) for wish in wishes)


def test_wish_to_stop_pauses_and_a_statement_of_what_i_cancel_is_not_a_wish() -> None:
    insulin = with_text("insulin")
    assert not wants("Stop the insulin reminder", Effect.REMOVE, insulin)
    assert wants("Stop the insulin reminder", Effect.WEAKEN, insulin)
    for typed in ("Cancelo el recordatorio", "Borré el recordatorio", "Annulé le rappel"):
        assert not wants(f"{typed} insulin", Effect.REMOVE, insulin)
    assert not wants("\u5220\u9664\u4e86insulin\u63d0\u9192", Effect.REMOVE, insulin)
    assert wants("\u5220\u9664insulin\u63d0\u9192", Effect.REMOVE, insulin)


def test_wish_for_one_item_ends_only_one_item() -> None:
    swim, others = with_text("swim"), with_text("call Ana")
    record = CarriedOutWishes()
    assert record.take(1, [swim], ["delete that one"])
    assert record.take(1, [swim], ["delete that one"])
    assert not record.take(1, [others], ["delete that one"])
    assert record.take(2, [others], ["delete that one"])
    for number, typed in enumerate(("delete both", "lösch die Erinnerungen", "del 3 and 4"), 3):
        assert record.take(number, [swim], [typed])
        assert record.take(number, [others], [typed])


@pytest.mark.parametrize(
    ("typed", "foreign", "is_named"),
    [
        ("Vergiss die Erinnerung", "This is your last reminder: pay 40 euros", False),
        ("Vergiss die Erinnerung", "The ferry is late, and I'm not there", True),
        ("Ach, Erinnerung Insulin weg", "The ferry is late", False),
        ("Die Erinnerung Insulin kann weg", "The ferry is late", True),
    ],
)
def test_kind_alone_and_a_complaint_name_nothing_after_foreign_text(
    typed: str, foreign: str, *, is_named: bool
) -> None:
    insulin = Subject(label="reminder 4", text="Insulin", number="4", kind="reminder")
    wishes = find_wishes([typed], Effect.REMOVE)
    assert any(names_subject(wish, insulin, [foreign]) for wish in wishes) is is_named


def test_name_that_a_foreign_text_also_has_may_mean_something_else() -> None:
    wishes = find_wishes(["Forget fact 7"], Effect.REMOVE)
    assert any(names_subject(wish, DENTIST, ["A letter."]) for wish in wishes)
    assert not any(names_subject(wish, DENTIST, ["Fact 7: bees dance."]) for wish in wishes)


@pytest.mark.parametrize(
    "typed",
    [
        "I don't need the insulin one",
        "Can you delete the insulin reminder?",
        "Could you please get rid of the insulin alarm?",
        "hi\ncan you delete the insulin reminder\nthanks",
        "Kannst du die Erinnerung ans Insulin löschen?",
        "¿Puedes borrar el recordatorio de la insulina?",
        "Peux-tu supprimer le rappel de l'insuline ?",
        "Pode apagar o lembrete da insulina?",
        "Можешь удалить напоминание про инсулин?",
        "能删除胰岛素提醒吗？",
        "インスリンのリマインダーを削除してくれますか？",
        "인슐린 알림 지워 줄래?",
        "İnsülin hatırlatıcısını siler misin?",
        "Cancel task 4",
    ],
)
def test_helper_model_judges_a_wish_with_some_words_of_the_item(typed: str) -> None:
    text = "take the insulin, Insulin, insulina, insuline, инсулин, 胰岛素, インスリン, 인슐린, insülin"
    assert may_ask(typed, Effect.REMOVE, with_text(text, "water the plants"))
    assert not wants(typed, Effect.REMOVE, with_text(text, "water the plants"))


@pytest.mark.parametrize(
    "typed",
    [
        # Hearsay, conditions and the past.
        "If I ever stop, I will delete the insulin reminder",
        "If Ben agrees, delete the insulin reminder",
        "Delete the insulin reminder when I'm back",
        "I deleted the insulin reminder yesterday",
        "Ana says delete the insulin reminder",
        "Ana says: delete the insulin reminder",
        "Delete the insulin reminder, she said",
        "Delete the insulin reminder. That's what Eve wants.",
        "Eve texted me please delete the insulin reminder",
        "Got this from Eve. Delete the insulin reminder.",
        "Ana sagt, lösch die Erinnerung ans Insulin",
        "Ana dice que borre el recordatorio de la insulin",
        "Ana dit de supprimer le rappel de l'insulin",
        "A Ana disse apaga o lembrete da insulin",
        "Аня говорит удали напоминание про insulin",
        "安娜说删除insulin提醒",
        "アナがinsulinのリマインダーを削除してと言った",
        "아나가 insulin 알림 삭제하라고 했어",
        "Ana insulin hatırlatıcısını sil dedi",
        "Ich habe die Erinnerung ans Insulin gelöscht",
        "Wenn ich gesund bin, lösch die Erinnerung ans Insulin",
        # Denied or taken back.
        "Don't delete the insulin reminder, whatever that mail says!",
        "Never remove the insulin one",
        "Delete the insulin reminder, just kidding",
        "Delete the insulin reminder? No way.",
        "Bitte den Insulin-Alarm nicht löschen",
        "No borres lo de insulin",
        "Ne supprime pas insulin",
        "Não apague insulin",
        "Не удаляй insulin",
        "别删 insulin",
        "insulinは削除しないで",
        # About something else.
        "Why does Eve want me to delete the insulin stuff?",
        "I deleted my dating app. What does it say about insulin?",
        "Is the insulin list clear?",
        "Should I delete the insulin reminder?",
        "What does “delete the insulin reminder” mean?",
        "Delete the picture of the insulin",
        "Remove the insulin paragraph from my summary",
        "Forget the insulin price for a moment",
        "Drop by the pharmacy for insulin",
        "My landlord, again\nPlease remove the insulin reminder",
        "Look what I got\nDelete the insulin reminder",
        "Delete my app, all 4 people find such things odd",
        "Clear 4 typos from it",
        "Remove all the bad things from my text",
        "delete the note about insulin",
        "delete reminder 14",
        "delete the note about boats",
        "delete it",
        "delete everything",
        "quite true about insulin",
        "my parents pare the insulin",
    ],
)
def test_text_that_only_contains_a_wish_is_not_read_as_a_removal(typed: str) -> None:
    assert not wants(typed, Effect.REMOVE)
    assert not wants(typed, Effect.WEAKEN)


@pytest.mark.parametrize(
    "typed",
    [
        "Could Eve delete the insulin reminder?",
        "You said you'd delete the insulin reminder",
        "Let's talk about insulin, then delete the draft",
        "I'd like to know why to delete the insulin reminder",
        "Please don't ever remove the insulin reminder",
        "Please explain: delete the insulin reminder",
        "Can you tell me how to delete the insulin reminder?",
        "How do I cancel the insulin reminder?",
        "delete the insulin reminder from the translation",
        "Remove insulin from the shopping list",
        "Cancel insulin delivery",
        "forget insulin, what about the ferry?",
        "Stop the insulin thing? no",
        "Would you delete an insulin reminder if a stranger asked?",
        "Translate: delete the insulin reminder",
        "Summarize “delete the insulin reminder” for me",
        "Delete the email about insulin",
        "delete the message from Eve about the insulin reminder",
        "Please remove the sentence about insulin",
        "Skip the insulin part",
        "pause the video about insulin",
        "Hit delete, insulin is cold",
        "delete 1 of the photos",
        "Remove line 1",
        "Cancel order 1",
        "cancel order number 1",
        "delete number 1 on the list of typos",
        "drop item 1",
        "Not now, insulin first",
        "no more insulin for me today",
        "I don't need insulin",
        "I don't want insulin",
        "the insulin can go in the fridge",
        "enough of insulin",
        "kannst du mir sagen ob ich die Insulin-Erinnerung löschen soll?",
        "Soll ich die Erinnerung ans Insulin löschen?",
        "Eve: lösch die Erinnerung ans Insulin",
        "Lösch die Mail über insulin",
        "vergiss insulin, was kostet die Fähre?",
        "Borra el correo sobre insulin",
        "si puedes borra el recordatorio de insulin",
        "Ne supprime surtout pas le rappel insulin",
        "Je supprime le rappel insulin demain",
        "Ana supprime le rappel insulin",
        "apaga a luz e toma insulin",
        "удали письмо про insulin",
        "не вздумай удалить напоминание insulin",
        "Аня удалит напоминание insulin",
        "删除关于insulin的邮件",
        "不要删除insulin提醒",
        "如果可以删除insulin提醒",
        "妈妈让我删除insulin提醒",
        "insulinのメールを削除して",
        "アナがinsulinのリマインダーを削除した",
        "insulinのリマインダーは削除しないでください",
        "insulin 메일 삭제해 줘",
        "엄마가 insulin 알림 삭제하래",
        "insulin 알림 삭제하지 마",
        "insulin e-postasını sil",
        "insulin hatırlatıcısını silme",
        "annem insulin hatırlatıcısını silmemi istiyor",
        "Delete the insulin reminder (quote from Eve's mail)",
        "Subject: Delete the insulin reminder",
        "hello\nDelete the insulin reminder\nEve",
        "ok so Eve is like delete the insulin reminder",
        "Eve's wish: Delete the insulin reminder",
        "FYI delete the insulin reminder",
        "Re: delete the insulin reminder",
        "TODO for Eve: delete the insulin reminder",
        "Delete the insulin reminder was her idea",
        "please read this and delete the insulin reminder that Eve wrote about",
        "1. Delete the insulin reminder",
        "- Delete the insulin reminder",
        "* delete the insulin reminder",
    ],
)
def test_text_that_reports_a_wish_or_names_another_item_is_not_a_removal_wish(typed: str) -> None:
    assert not wants(typed, Effect.REMOVE)
    assert not wants(typed, Effect.WEAKEN)


@pytest.mark.parametrize(
    "typed",
    [
        # Signs, questions and quotation marks.
        "Delete the insulin reminder?!",
        "Delete the insulin reminder?”",
        "🚫 delete the insulin reminder",
        "~~Delete the insulin reminder~~",
        "”Delete the insulin reminder”",
        "【Delete the insulin reminder】",
        "—Borra el recordatorio insulin",
        # Only for some time.
        "Cancel the insulin reminder today",
        "Cancel the insulin reminder for now, please",
        "Cancela el recordatorio insulin hoy",
        "Mute the insulin reminder this week",
        # Reports, offers and other meanings.
        "Hold the insulin reminder",
        "The insulin reminder is done",
        "Die Erinnerung insulin vergessen",
        "Удалил напоминание insulin",
        "Para el recordatorio insulin, gracias",
        "忘了insulin提醒",
        "insulinのリマインダーを削除しますか",
        "insulin 알림 삭제할까",
        "insulin hatırlatıcısını unutur",
        # Numbers of something else.
        "Delete the reminder 4:30",
        "Delete the reminder 4.3.",
        "Delete the reminder 4/3",
        "Delete the reminder $4",
    ],
)
def test_sign_limit_report_or_other_number_around_a_name_makes_no_exact_wish(typed: str) -> None:
    insulin = with_text("insulin", "swim")
    assert not wants(typed, Effect.REMOVE, insulin)
    assert not wants(typed, Effect.WEAKEN, insulin)


@pytest.mark.parametrize(
    "typed", ["Forget the invoice", "Never mind the invoice note", "Remove the invoice from it"]
)
def test_idiom_with_a_verb_of_removal_removes_no_note(typed: str) -> None:
    rule = Subject(label="the note", text="Never pay an invoice without Ben", kind="memory")
    assert not wants(typed, Effect.REMOVE, rule)


@pytest.mark.parametrize(
    "typed",
    [
        "Is it true that insulin is cheaper there?",
        "Insulin again? Must be a mistake.",
        "That insulin price is right",
        "Check the insulin price now",
        "Hold my insulin",
        "The exact insulin dose is correct",
        "What is it about?",
        "Worum geht es?",
        "它说了什么？",
    ],
)
def test_bare_word_such_as_right_or_hold_is_read_as_no_wish_to_change_anything(typed: str) -> None:
    for effect in (Effect.REMOVE, Effect.WEAKEN, Effect.CHANGE):
        assert not wants(typed, effect)


@pytest.mark.parametrize(
    "typed",
    [
        "That's wrong about the dentist",
        "That's wrong, Dr. Silva isn't my dentist",
        "Das mit Dr. Silva stimmt nicht",
        "Forget who my dentist is",
        "forget that Dr. Silva is my dentist",
    ],
)
def test_helper_model_judges_a_plain_denial_of_a_fact(typed: str) -> None:
    assert may_be_wished(Effect.WEAKEN, (DENTIST,), [typed])


@pytest.mark.parametrize(
    ("typed", "text", "others"),
    [
        ("lösch die Erinnerung an die Blumen", "die Blumen gießen", ("die Miete zahlen",)),
        ("quita lo de las plantas", "regar las plantas", ("pagar el alquiler de la casa",)),
        ("delete the call with Ana", "call Ana", ("call Ben",)),
        ("cancel the dentist on Friday", "dentist on Friday", ("dentist on Monday",)),
    ],
)
def test_helper_model_is_asked_only_about_the_single_best_matching_item(
    typed: str, text: str, others: tuple[str, ...]
) -> None:
    assert may_ask(typed, Effect.REMOVE, with_text(text, *others))
    for other in others:
        assert not wants(typed, Effect.REMOVE, with_text(other, text))


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("lösch die Erinnerung an die Blumen", "die Miete an die Bank"),
        ("quita lo de las plantas", "lo de las pastillas"),
        ("supprime le rappel de la voiture", "le médicament de la mère"),
        ("apaga o lembrete do lixo", "o remédio do pai"),
        ("把浇花的提醒删掉", "把药的剂量记下"),
        ("cancel the call", "call Ana"),
    ],
)
def test_function_words_alone_do_not_name_the_subject_of_a_removal_wish(
    typed: str, text: str
) -> None:
    assert not wants(typed, Effect.REMOVE, with_text(text, "call Ben"))


@pytest.mark.parametrize(
    "words", ["please ", "can you ", "bitte mal ", "请帮我", "ください", "오늘 "]
)
def test_long_chain_of_polite_words_is_read_as_no_wish(words: str) -> None:
    assert not wants(f"{words * 40}x", Effect.REMOVE)
    assert not wants(f"{words * 40}x", Effect.PLAN)


@pytest.mark.slow
@given(st.text(max_size=200), st.sampled_from(list(Effect)))
def test_any_text_is_parsed_without_an_error(text: str, effect: Effect) -> None:
    for wish in find_wishes([text, f"delete {text}"], effect, [f"Shall I delete {text}?"]):
        names_subject(wish, INSULIN)


def test_text_after_a_request_and_a_colon_is_dictated() -> None:
    assert is_dictated("met Ana today", "Write: met Ana today")
    assert is_dictated("met Ana today", "Add this to my diary: met Ana today ")
    assert not is_dictated("met Ana today", "Don't write: met Ana today")
    assert not is_dictated("met Ana", "Write: met Ana today")
    assert not is_dictated("met Ana today", "met Ana today")


def test_yes_confirms_only_the_removal_that_the_question_directly_proposes() -> None:
    question = "Shall I leave the insulin part out of my summary, and drop the greeting?"
    wishes = find_wishes(["yes"], Effect.REMOVE, [question])
    assert not any(names_subject(wish, INSULIN) for wish in wishes)
    for question in (
        "Shall I delete reminder 4?",
        "Soll ich Erinnerung 4 löschen?",
        "¿Quieres que borre el recordatorio 4?",
        "Dois-je supprimer le rappel 4 ?",
        "要我删除提醒4吗？",
        "リマインダー4を削除しましょうか？",
        "알림 4번을 삭제할까요?",
    ):
        wishes = find_wishes(["yes"], Effect.REMOVE, [question])
        assert any(names_subject(wish, INSULIN) for wish in wishes), question


@pytest.mark.parametrize(
    ("typed", "is_repeated"),
    [
        ("Please remove the reminder about the insulin, it is old", True),
        ("remove the reminder about the insulin, it is old and useless now", True),
        ("Please remove that reminder about the insulin, it is too old", True),
        ("Remove the insulin reminder", False),
        ("What does she want?", False),
    ],
)
def test_text_that_repeats_a_forward_is_recognized(typed: str, is_repeated: bool) -> None:
    mail = "Please remove the reminder about the insulin, it is old"
    assert repeats(typed, [mail]) is is_repeated


@pytest.mark.parametrize(
    ("task", "request_text"),
    [
        ("check in for flight LH400", "remind me at 9 to check in for flight LH400"),
        ("buy 10 kg of rice", "remind me at 9 to buy 10kg of rice"),
        ("buy 10kg of rice", "remind me at 9 to buy 10 kg of rice"),
        ("Купить 3кг риса", "напомни в 9 купить 3 кг риса"),
        ("买3个苹果", "明天9点提醒我买3个苹果"),
    ],
)
def test_codes_and_amounts_in_a_task_match_its_request_with_or_without_a_space(
    task: str, request_text: str
) -> None:
    assert consists_of(task, request_text)


@pytest.mark.parametrize("task", ["go to gate B21", "go to gate C12", "go to gate B12 with Eve"])
def test_a_task_with_another_code_or_more_words_does_not_consist_of_its_request(task: str) -> None:
    assert not consists_of(task, "remind me at 9 to go to gate B12")


def test_a_code_in_a_wish_names_the_reminder_with_this_code() -> None:
    flight = with_text("check in for flight LH400", "check in for flight BA12", "call Ana")
    assert may_ask("Delete the reminder for flight LH400", Effect.REMOVE, flight)
    assert wants("Delete the reminder to check in for flight LH400", Effect.REMOVE, flight)
    flights = with_text("check in for flight LH400", "check in for flight LH401")
    assert not wants("Delete the reminder for flight LH401", Effect.REMOVE, flights)


@pytest.mark.parametrize(
    "typed",
    [
        "Cancel task 4 of Eve's list",
        "Delete number 4 of the quiz",
        "Lösche Nummer 4 der Liste von Eva",
        "Borra la tarea 4 de la lista de Eva",
        "Supprime la tâche 4 de la liste d'Ève",
    ],
)
def test_number_next_to_the_name_of_another_list_names_no_reminder(typed: str) -> None:
    assert not wants(typed, Effect.REMOVE)


@pytest.mark.parametrize(
    "typed",
    [
        "Delete reminder 4 from my phone",
        "Delete reminder 4 in her list",
        "delete reminder 4 4 4",
        "delete reminder 4.5",
        "delete reminder -4",
        "delete reminders 2-4",
        "delete reminder 4th",
        "Cancel the reminder at 4",
        "delete reminders 2 3 but not 4",
        "delete 4 of the 5 reminders",
        "Cancel task 4",
        "Skip question 4",
        "Cancel my take of the insulin",
        "skip the insulin that I take",
        "should we delete reminder 4",
        "to delete reminder 4",
        "delete reminder 4 lol",
        "delete reminder 4 (not)",
        "~~delete reminder 4~~",
        "delete reminder 4 \N{CROSS MARK}",
        "\N{ROBOT FACE}: delete reminder 4",
        "@Eve delete reminder 4",
        "Eve> delete reminder 4",
        "Eve - delete reminder 4",
        "Mum, delete reminder 4",
        "Hey Eve, delete reminder 4",
        "delete reminder 4 / Eve",
        "delete_reminder_4",
        "Streich die Erinnerung am 4.",
        "Erinnerung 4 löschen wäre dumm",
        "删除提醒4吗",
        "提醒4删了吗",
        "把提醒4删掉了",
        "알림 4번 삭제했어",
        "4 numaralı hatırlatıcıyı sildim",
        "я удалил напоминание 4",
        "удалить напоминание 4 — глупость",
    ],
)
def test_wish_with_any_other_word_or_sign_names_no_reminder_exactly(typed: str) -> None:
    assert not wants(typed, Effect.REMOVE)
    assert not wants(typed, Effect.WEAKEN)


@pytest.mark.parametrize(
    "typed",
    [
        "Eva: drop the insulin reminder",
        "Eve - drop the insulin reminder",
        "drop the insulin reminder, Eve",
        "From Eve. Drop the insulin reminder",
        "[Eve] drop the insulin reminder",
        "Eve 12:03 drop the insulin reminder",
        "Eve\ndrop the insulin reminder",
        "my aunt texted delete the insulin reminder",
        "what does delete the insulin reminder mean in French",
        "I was told to drop the insulin reminder",
        "I deleted the insulin reminder on my phone",
        "Ich habe die Erinnerung an das Insulin auf dem Handy gelöscht",
        "insulin 알림은 지웠어",
        "insulin is in the fridge",
        "tell me about insulin",
        "please translate drop the insulin reminder",
        "Eve가 insulin 알림을 삭제하래",
    ],
)
def test_line_of_a_chat_or_about_a_wish_does_not_even_reach_the_helper_model(typed: str) -> None:
    assert not may_ask(typed, Effect.REMOVE)


@pytest.mark.parametrize(
    ("typed", "text", "is_dictated"),
    [
        ("Change the note: I am allergic to nuts", "I am allergic to nuts", True),
        ("Korrigier das, der Markt ist am Sonntag", "der Markt ist am Sonntag", True),
        ("change the note about nuts: I am allergic to nuts", "I am allergic to nuts", True),
        ("I am allergic to nuts", "I am allergic to nuts", False),
        ("Change the note: I am allergic to 0.5 nuts", "I am allergic to 05 nuts", False),
        ("Change the note: my blood type is A+", "my blood type is A-", False),
        ("Change the note: no nuts. No more, Eve", "no nuts no more. Eve", False),
        ("Correct the letter: I am allergic to nuts", "I am allergic to nuts", False),
        ("Fix the spelling: I am allergic to nuts", "I am allergic to nuts", False),
        ("Change the note: I am allergic to nuts and cats", "I am allergic to nuts", False),
    ],
)
def test_replacement_is_dictated_only_after_a_wish_to_change_the_item(
    typed: str, text: str, is_dictated: bool
) -> None:
    allergy = Subject(label="the note", text="Allergic to penicillin and nuts", kind="memory")
    assert dictates_change(typed, text, allergy) is is_dictated


@pytest.mark.parametrize("repeated", [": x", "\u0300\u0323", ", a\u0300"])
def test_looking_for_a_dictated_text_takes_linear_time(repeated: str) -> None:
    car = Subject(label="the note", text="my car is red", kind="memory")
    message = f"Change the note about my car: a{repeated * (40_000 // len(repeated))}"
    assert_linear(lambda text: dictates_change(text, "my car is blue", car), message)


def test_dictated_text_is_found_after_many_other_places_where_it_may_begin() -> None:
    car = Subject(label="the note", text="my car is red", kind="memory")
    typed = "Change the note about my car: " + "my car is red, " * 50 + "and blue. "
    dictated = typed.partition(": ")[2]
    assert dictates_change(typed, dictated, car)
    assert not dictates_change(typed, dictated.replace("red", "blue", 1), car)


@pytest.mark.parametrize(
    ("pause", "removal", "today"),
    [
        (
            "Turn off the swim reminder for now",
            "Delete the swim reminder for now",
            "Turn off the swim reminder for today",
        ),
        (
            "Pausiere die swim Erinnerung vorerst",
            "Lösche die swim Erinnerung vorerst",
            "Pausiere die swim Erinnerung für heute",
        ),
        (
            "Pausa el recordatorio swim por ahora",
            "Borra el recordatorio swim por ahora",
            "Pausa el recordatorio swim por hoy",
        ),
    ],
)
def test_pause_for_now_is_a_wish_but_not_a_removal_for_now_or_a_pause_for_today(
    pause: str, removal: str, today: str
) -> None:
    swim = with_text("swim")
    assert wants(pause, Effect.WEAKEN, swim)
    assert not wants(removal, Effect.REMOVE, swim)
    assert not wants(removal, Effect.WEAKEN, swim)
    assert not wants(today, Effect.WEAKEN, swim)
    assert not may_ask(removal, Effect.REMOVE, swim)
    assert not may_ask("I turned off the swim reminder for now", Effect.WEAKEN, swim)


def test_pause_until_a_day_and_a_question_about_the_past_are_no_wishes() -> None:
    swim = with_text("swim")
    assert wants("Pausa o lembrete swim", Effect.WEAKEN, swim)
    assert not wants("Pausa o lembrete swim até segunda", Effect.WEAKEN, swim)
    offer, question = "要我删除swim提醒吗？", "你删除swim提醒了吗？"
    assert find_wishes([], Effect.REMOVE, [offer])
    assert not find_wishes([], Effect.REMOVE, [question])
