"""Which known fact a message ends or corrects, in ten languages."""

# ruff: noqa: RUF001

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from core.facts.claims import extract_claims, fact_from_claim
from core.facts.endings_and_corrections import find_successor
from core.store.facts.rows import Fact
from core.types import Message, Scope, Sender
from tests.fixtures.tables import each_row

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ZONE = ZoneInfo("Europe/Lisbon")
ANA = Scope.account("telegram", "1")
ENDS = """
I drive a grey Skoda | I sold the Skoda
I work at Siemens | I quit Siemens last week
I'm vegan | I'm not vegan any more
Ich fahre einen Golf | Den Golf hab ich verkauft
Ich arbeite bei Bosch | Bei Bosch hab ich gekündigt
Ich bin mit Petra verheiratet | Petra und ich haben uns getrennt
Je travaille chez Renault | J'ai quitté Renault
Vivo en Madrid | Ya no vivo en Madrid
Trabalho na Petrobras | Saí da Petrobras
я работаю в Яндексе | я уволился из Яндекса
我在华为工作 | 我从华为辞职了
トヨタで働いています | トヨタを辞めました
"""
KEEPS = """
I drive a grey Skoda | I nearly sold the Skoda
I drive a grey Skoda | my brother sold his Skoda
I work at Siemens | If I quit Siemens, I'd sleep more
I work at Siemens | the Siemens dishwasher died
I live in Porto | we left Porto at nine
I'm vegan | are you not vegan any more?
I drive a grey Skoda | "I sold the Skoda", he read
My locker code is 4471 | no, at 11
My locker code is 4471 | sorry, 11 o'clock
My locker code is 4471 | nein, um 11 Uhr
"""
CORRECTS = """
My birthday is on 3 May | no wait, I meant 4 May | me|birthday | 4.5
Mein Geburtstag ist am 3. Mai | Nein, ich meinte den 4. Mai | me|birthday | 4.5
私の誕生日は5月3日です | ごめん、間違えた、5月4日です | me|birthday | 4.5
My locker code is 4471 | sorry, not 4471, it's 4477 | me|locker code | 4477
My doctor is Dr Amin | sorry, not Amin, it's Dr Amir | me|doctor|dr amir | dr amir
My sister is called Freja | it's Freya, not Freja, sorry | me|sister|freya | freya
Meine Tochter heißt Marlen | ah nein, sie heißt Marleen | me|daughter|marleen | marleen
Ma sœur s'appelle Julie | pardon, elle s'appelle Juliette | me|sister|juliette | juliette
Mi hermana se llama Marta | perdona, se llama Martina | me|sister|martina | martina
Mi cumpleaños es el 4 de julio | digo, el 14 de julio | me|birthday | 14.7
Minha irmã se chama Paula | desculpa, é Paola | me|sister|paola | paola
Meu aniversário é 5 de maio | não, pera, 6 de maio | me|birthday | 6.5
Мою сестру зовут Ольга | ой, не Ольга, а Олеся | me|sister|олеся | олеся
Мой день рождения 5 июня | ой нет, 6 июня | me|birthday | 6.6
我的生日是5月3日 | 说错了,是5月4日 | me|birthday | 4.5
"""


def message(text: str, number: int) -> Message:
    at = NOW + timedelta(minutes=number)
    sender = Sender(id="1", name="Ana")
    return Message(id=number, role="user", text=text, session_id=1, created_at=at, sender=sender)


def learn(text: str) -> list[Fact]:
    source = message(text, 1)
    claims = extract_claims(text, source.created_at, ZONE)
    assert claims, text
    return [fact_from_claim(claim, "rule", ANA, "telegram", source) for claim in claims]


@each_row("line", ENDS.strip().splitlines())
def test_message_that_ends_a_fact_becomes_its_successor(line: str) -> None:
    told, ended = line.split(" | ")
    (fact,) = learn(told)
    successor = find_successor(message(ended, 2), [fact], [1], ZONE)
    assert successor is not None
    claim = successor.claim
    assert claim.attribute == fact.attribute
    assert claim.content == ended


@each_row("line", KEEPS.strip().splitlines())
def test_unrelated_message_does_not_replace_an_earlier_fact(line: str) -> None:
    told, said = line.split(" | ")
    assert find_successor(message(said, 2), learn(told), [1], ZONE) is None


@each_row("line", CORRECTS.strip().splitlines())
def test_a_correction_in_the_next_message_gives_the_new_value(line: str) -> None:
    told, correction, attribute, value = line.rsplit(" | ", 3)
    facts = learn(told)
    successor = find_successor(message(correction, 2), facts, [1], ZONE)
    assert successor is not None
    claim = successor.claim
    assert (claim.attribute, claim.value) == (attribute, value)


def test_a_correction_that_names_its_subject_corrects_a_fact_of_days_ago() -> None:
    facts = learn("My locker code is 4471")
    correction = message("I mixed something up: the locker code is 4477, not 4471", 9)
    successor = find_successor(correction, facts, [8, 7, 6, 1], ZONE)
    assert successor is not None
    assert successor.claim.content == "My locker code is 4477"


def test_correction_many_messages_after_a_fact_does_not_replace_it() -> None:
    facts = learn("My birthday is on 3 May")
    correction = message("no wait, I meant 4 May", 9)
    assert find_successor(correction, facts, [8, 7, 6, 1], ZONE) is None
