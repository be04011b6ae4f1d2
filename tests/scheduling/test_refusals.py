"""Messages that cancel a reminder in everyday words, in ten languages."""

# ruff: noqa: RUF001

from __future__ import annotations

from core.scheduling.refusals import find_reason, is_cancellation, list_cancelled_names
from tests.fixtures.tables import each_row


@each_row(
    "text",
    [
        "hm, scratch that",
        "on second thoughts leave it",
        "I won't need it",
        "that reminder can go",
        "you can take that reminder out again",
        "brauch ich doch nicht",
        "nimm das wieder raus",
        "das muss nicht mehr sein",
        "je n'en ai plus besoin",
        "ça ne sert plus à rien",
        "ya no hace falta que me avises",
        "se canceló, olvídalo",
        "não vou precisar",
        "não me lembre disso",
        "мне это больше не нужно",
        "нет, отмени это",
        "我不需要这个提醒了",
        "把它删了",
        "それはもういらない",
        "もうしなくていいよ",
        "알려주지 않아도 괜찮아",
        "그거 취소해줘",
        "artık hatırlatmana gerek yok",
        "ihtiyacım kalmadı",
    ],
)
def test_message_of_only_cancelling_words_is_read_as_a_cancellation(text: str) -> None:
    assert is_cancellation(text)


@each_row(
    "text",
    [
        "don't cancel it",
        "no, I need it",
        "you don't need to cancel it",
        "keep it",
        "lösch das bloß nicht",
        "das brauche ich",
        "ne l'annule pas",
        "j'en ai besoin",
        "no lo canceles",
        "no, lo necesito",
        "não esquece",
        "не удаляй",
        "мне это нужно",
        "别取消",
        "我需要这个",
        "消さないで",
        "忘れないで",
        "취소하지 마",
        "취소하지마",
        "iptal etme",
        "bana lazım",
        "I'm out at 9",
        "ab morgen",
        "The library closes at noon",
        "",
    ],
)
def test_message_that_asks_to_keep_a_reminder_is_not_read_as_its_cancellation(text: str) -> None:
    assert find_reason(text) is None


def test_reason_may_follow_or_precede_a_cancellation() -> None:
    assert find_reason("oh wait, forget it, my train is late") == "my train is late"
    assert find_reason("Der Zug ist weg, vergiss es") == "Der Zug ist weg"
    assert find_reason("もう買ったから消しておいて") == "もう買ったから"
    assert find_reason("The shop said so, forget it, and it rains today") is None


@each_row(
    ("text", "name"),
    [
        ("I don't need the plumber anymore", "plumber"),
        ("sag den Klempner ab", "klempner"),
        ("den Klempner kannst du löschen", "klempner"),
        ("把水管工那个取消掉", "水管工"),
        ("配管工のリマインダーはもういらない", "配管工"),
        ("배관공 알림은 필요 없어", "배관공"),
    ],
)
def test_name_of_the_cancelled_item_is_read_from_a_cancellation(text: str, name: str) -> None:
    assert name in list_cancelled_names(text)
