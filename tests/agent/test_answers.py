"""What stands first in an answer without a model: what holds now, then what it replaced."""

# ruff: noqa: RUF001

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.agent.answers import AskedQuestion, Quote, add_facts, rank_quotes, render_quotes

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


def ask(question: str, *statements: str, days: int = 60, session: int | None = None) -> list[str]:
    """Tell the statements, a month between each, and return the lines of the answer."""
    asked = AskedQuestion(question, START + timedelta(days=30 * (len(statements) - 1) + days))
    quotes = [
        Quote(text, START + timedelta(days=30 * number), "You", is_askers=True, session_id=session)
        for number, text in enumerate(statements)
    ]
    return render_quotes(asked, rank_quotes(asked, quotes), UTC).splitlines()


CHANGES = """
where do I live? | I live in Leeds | I live in York | York
what's my locker code? | locker code 4471 | locker code 9902 | 9902
what bike do I ride? | my bike is a red Brompton | sold the Brompton, riding a Gazelle | Gazelle
welches Rad fahre ich? | mein Rad ist ein Diamant | das Diamant ist verkauft, hab ein Kalkhoff | Kalkhoff
Où est-ce que j'habite ? | J'habite à Nantes. | J'ai déménagé à Rennes. | Rennes
¿dónde vivo? | vivo en Lugo | ya no vivo en Lugo, ahora en Vigo | Vigo
onde eu moro? | moro em Natal | mudei para Recife | Recife
где я живу? | я живу в Омске | переехали в Пермь | Пермь
我住在哪里? | 我住在成都 | 上个月搬到了重庆 | 重庆
どこに住んでいますか? | 札幌に住んでいます | 先月、函館に引っ越しました | 函館
나 어디 살아? | 나 대구 살아 | 지난달에 광주로 이사했어 | 광주
nerede oturuyorum? | Bursa'da oturuyorum | Konya'ya taşındık | Konya
"""
STAYS = """
where do I live? | I live in Cork | my colleague Sean moved to Galway | Cork
where do I live? | I live in Cork | staying in Dublin for a week | Cork
which instrument do I play? | I play the violin | I used to play the drums | violin
where do we live? | we live in Jena | we nearly moved to Gera | Jena
does Tom take karate? | Ida and Tom both do karate | Ida quit karate | Tom
where does Jake live? | Jake is crashing in Oslo with Mia | I live in Bristol with my partner Jo | Oslo
"""


@pytest.mark.parametrize("line", CHANGES.strip().splitlines())
def test_what_holds_now_stands_first(line: str) -> None:
    question, old, new, now = line.split(" | ")
    first, *rest = ask(question, old, new)
    assert now in first
    assert "no longer so" not in first
    assert all("“" + old + "”" not in other or "said on 2 March" in other for other in rest)


@pytest.mark.parametrize("line", STAYS.strip().splitlines())
def test_what_changes_nothing_stands_below(line: str) -> None:
    question, first, second, now = line.split(" | ")
    assert now in ask(question, first, second)[0]


def test_what_was_replaced_says_until_when_it_held() -> None:
    lines = ask("what bike do I ride?", "my bike is a Brompton", "sold the Brompton, now a Gazelle")
    assert lines == [
        "- You said on 1 April: “sold the Brompton, now a Gazelle”",
        "- You said on 2 March: “my bike is a Brompton” (until April 2026, no longer so)",
    ]


def test_several_changes_show_the_last_first() -> None:
    lines = ask(
        "which shift am I on?", "I'm on the late shift", "now the early shift", "back to late shift"
    )
    assert "back to late" in lines[0]
    assert "no longer so" in lines[1]
    assert "no longer so" in lines[2]


def test_a_second_thing_stands_beside_the_first() -> None:
    lines = ask("what cats do I have?", "I have a cat called Misty", "we got a second cat, Pip")
    assert len(lines) == 2
    assert not any("no longer so" in line for line in lines)


def test_a_correction_in_the_next_message_replaces_what_was_said() -> None:
    lines = ask("when does my train leave?", "my train leaves at 7:10", "oops, 7:40", session=3)
    assert "7:40" in lines[0]
    assert "7:10” (until April 2026, no longer so" in lines[1]


def test_a_future_start_holds_from_its_day_on() -> None:
    said = ("I work at Lidl", "from 1 June I work at Aldi")
    assert "Lidl" in ask("where do I work?", *said, days=5)[0]
    assert "Aldi" in ask("where do I work?", *said, days=90)[0]


def test_a_fact_and_its_message_are_shown_once() -> None:
    quote = Quote("I live in Leeds and like tea.", START, "You", is_askers=True, message_id=4)
    quotes: dict[object, Quote] = {4: quote}
    fact = {
        "fact_id": 1,
        "message_id": 4,
        "content": "I live in Leeds",
        "is_current": False,
        "ended": "until May 2026, no longer so",
        "said_at": START.isoformat(),
    }
    add_facts(quotes, [fact])
    assert list(quotes.values()) == [quote]
    assert quote.end == "until May 2026, no longer so"


def test_a_long_message_is_cut_around_its_best_sentence() -> None:
    filler = "The weather was grey and nothing else happened here. " * 8
    (line,) = ask("what colour is the boat?", f"{filler}The boat is green. {filler}")
    assert "The boat is green." in line
    assert len(line) < 420
