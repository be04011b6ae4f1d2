"""Questions about a whole life without a model: a change belongs to one statement of many."""

# ruff: noqa: RUF001

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.agent.answering.answers import rank_quotes, render_quotes
from core.agent.answering.quotes import AskedQuestion, Quote
from core.agent.offline import ENGLISH_TEXTS
from tests.fixtures.sweeps import keep_first

START = datetime(2026, 2, 2, 18, tzinfo=UTC)
DAYS_UNTIL_ASKED = 30
# Statements with their day, then questions with a word of the right first line.
LIVES = {
    "en": """
0 | finally moved in, we're at 14 Harlow Street now, flat 3
0 | my partner's name is Dilip and he's a nurse at St Mary's
0 | our landlord is called Mr Okafor, he's nice enough
0 | rent is 1150 a month, due on the 28th
1 | started at Brightwell Pharma on Monday, I'm in the regulatory team
1 | my boss is Helen Strand
1 | the wifi password is on the fridge, the network is called Maple
3 | I'm training for the Brighton half, it's on 26 April
3 | my knee hurts whenever I run more than 10k
3 | the physio is called Tomasz, he's on Ferry Road
5 | mum's birthday is the 9th of June, she'll be 67
5 | my brother Sam lives in Cardiff with his two kids, Elsie and Bram
5 | Elsie is allergic to sesame
8 | we got a cat from the shelter, she's called Pickle
8 | Pickle's vet is Dr Nwosu at Greenside
10 | the car is a grey Skoda Fabia, plate KX19 OPL
10 | the MOT is due in August
12 | I take levothyroxine, 75 micrograms, in the morning
12 | I can't stand coriander
15 | book club reads Middlemarch this time
15 | book club meets every second Thursday at Jo's
20 | bins go out on Tuesday night
20 | recycling is on alternate Fridays
22 | my locker at the gym is 118
25 | the boiler man said the pressure should be at 1.5 bar
25 | our wedding is planned for 12 September in Whitby
27 | Dilip's parents are coming in May, they live in Pune
30 | my shoe size is 41
30 | I'm reading The Overstory before bed
33 | passport number is on the scan, it expires in March 2028
40 | had to switch physio, I go to Anna Blythe now
45 | they put the rent up, it's 1225 from now on
50 | Helen left, Marcus Webb is running our team now
55 | Pickle passed away last night
60 | we sold the Skoda, got a secondhand Leaf instead
66 | dose went up to 100 micrograms
70 | book club is at Priya's from now on
72 | the wedding's off for September, we're doing it on 3 October instead
80 | Sam and the kids have moved to Bristol
85 | no more gym, I cancelled my membership
90 | I've left Brightwell, I'm at the MHRA since Monday
where do I live? | Harlow
what's my address? | Harlow
what does Dilip do? | nurse
who is my landlord? | Okafor
how much is my rent? | 1225
where do I work? | MHRA
what's our wifi called? | Maple
when's the half marathon? | 26 April
what's wrong with my knee? | knee
who is my physio? | Anna Blythe
when is mum's birthday? | 9th of June
where does Sam live? | Bristol
what is Elsie allergic to? | sesame
what's our cat called? | Pickle
do we still have a cat? | passed
what car do I drive? | Leaf
when is the MOT? | August
how much levothyroxine do I take? | 100
what food do I hate? | coriander
where does book club meet? | Priya
when do the bins go out? | Tuesday
when is recycling collected? | Friday
what's my locker number? | 118
what pressure should the boiler have? | 1.5
when is our wedding? | 3 October
where do Dilip's parents live? | Pune
what is my shoe size? | 41
when does my passport expire? | 2028
am I still a member of the gym? | cancelled
""",
    "fr": """
0 | on vient d'emménager au 8 rue des Lilas à Dijon, troisième étage
0 | mon mari s'appelle Thibault, il est prof de maths
0 | le loyer est de 890 euros par mois
0 | je bosse chez Legrand, au service achats
1 | ma cheffe s'appelle Nadine Morel
1 | le code de la porte d'en bas c'est 48B21
3 | notre fille Zoé a 7 ans, elle est en CE1
3 | Zoé est allergique aux noisettes
3 | l'anniversaire de Zoé c'est le 14 novembre
5 | ma mère habite à Beaune avec son chien Filou
5 | mon frère Luc travaille à la SNCF
8 | je prends du Levothyrox, 50 microgrammes le matin
8 | notre médecin c'est le docteur Perrin, rue Monge
10 | on a une Clio bleue
10 | le contrôle technique est à faire en juin
12 | le cours de danse de Zoé est le mercredi à 15 h
12 | je déteste les champignons
15 | on part en Corse du 3 au 17 août
20 | les poubelles jaunes c'est le jeudi soir
20 | mon casier à la piscine est le 27
22 | je lis un roman de Modiano en ce moment
40 | le loyer passe à 920 euros
45 | Nadine est partie à la retraite, c'est Karim Benali qui la remplace
50 | le docteur Perrin a fermé son cabinet, maintenant on va chez la docteure Vidal
60 | on a revendu la Clio, on roule en e-208
65 | le cours de danse de Zoé a été déplacé au vendredi
70 | finalement on ne va pas en Corse, on va en Bretagne
75 | Luc a quitté la SNCF, il est chez Keolis
80 | Filou est mort dimanche
où est-ce que j'habite ? | Lilas
comment s'appelle mon mari ? | Thibault
que fait mon mari ? | prof
combien je paie de loyer ? | 920
où est-ce que je travaille ? | Legrand
qui est ma cheffe ? | Karim
c'est quoi le code de la porte ? | 48B21
quel âge a Zoé ? | 7 ans
à quoi Zoé est-elle allergique ? | noisettes
c'est quand l'anniversaire de Zoé ? | 14 novembre
où travaille Luc ? | Keolis
quelle dose de Levothyrox je prends ? | 50
qui est notre médecin ? | Vidal
on a quelle voiture ? | e-208
c'est quand le contrôle technique ? | juin
quand est le cours de danse de Zoé ? | vendredi
qu'est-ce que je n'aime pas manger ? | champignons
où est-ce qu'on part en vacances ? | Bretagne
quand sort-on les poubelles jaunes ? | jeudi
quel est mon casier à la piscine ? | 27
qu'est-ce que je lis en ce moment ? | Modiano
ma mère a-t-elle encore un chien ? | mort
""",
    "ru": """
0 | мы переехали на улицу Гагарина, дом 12, квартира 45
0 | моего мужа зовут Игорь, он инженер
0 | за квартиру платим 32 тысячи в месяц
0 | я работаю бухгалтером в Ростелекоме
1 | моя начальница — Ольга Петровна
1 | код домофона 45К1290
3 | нашего сына зовут Миша, ему 6 лет
3 | у Миши аллергия на арахис
3 | день рождения Миши 14 ноября
5 | мама живёт в Туле с котом Барсиком
5 | мой брат Костя работает в Яндексе
8 | я пью эутирокс, 50 мкг по утрам
8 | наш педиатр — доктор Смирнова
10 | у нас серая Лада Веста
10 | техосмотр надо пройти в июне
12 | у Миши плавание по средам в 17:00
12 | терпеть не могу оливки
15 | в августе едем в Сочи
20 | мусор вывозят по вторникам
20 | мой шкафчик в бассейне 27
22 | сейчас читаю "Лавр" Водолазкина
40 | аренду подняли, теперь 35 тысяч
45 | Ольга Петровна ушла, теперь начальник Дмитрий Сергеевич
50 | перешли к другому педиатру, к доктору Беловой
60 | Ладу продали, купили Киа Рио
65 | плавание у Миши перенесли на пятницу
70 | в Сочи не едем, едем в Калининград
75 | Костя уволился из Яндекса, теперь в Сбере
80 | Барсик умер в воскресенье
85 | дозу эутирокса увеличили до 75
где я живу? | Гагарина
как зовут моего мужа? | Игорь
кем работает мой муж? | инженер
сколько мы платим за квартиру? | 35
где я работаю? | Ростелеком
кто мой начальник? | Дмитрий
какой код домофона? | 45К1290
сколько лет Мише? | 6 лет
на что у Миши аллергия? | арахис
когда день рождения Миши? | 14 ноября
где живёт мама? | Тул
где работает Костя? | Сбер
сколько эутирокса я пью? | 75
кто наш педиатр? | Белов
какая у нас машина? | Киа
когда техосмотр? | июн
когда у Миши плавание? | пятниц
что я не люблю есть? | оливки
куда мы едем в августе? | Калининград
когда вывозят мусор? | вторник
какой у меня шкафчик в бассейне? | 27
что я сейчас читаю? | Лавр
у мамы ещё есть кот? | умер
""",
    "ko": """
0 | 지난주에 이사했어, 이제 마포구 성산동에 살아
0 | 남편 이름은 민수고 간호사야
0 | 월세는 80만원이야
0 | 나 카카오에서 디자이너로 일해
1 | 팀장님은 박지영님이야
1 | 현관 비밀번호는 4821이야
3 | 딸 이름은 서연이고 7살이야
3 | 서연이는 땅콩 알레르기가 있어
3 | 서연이 생일은 11월 14일이야
5 | 엄마는 대전에 사셔
5 | 오빠는 삼성에서 일해
8 | 나 씬지로이드 50마이크로그램 먹어
8 | 우리 소아과 선생님은 김 선생님이야
10 | 우리 차는 파란색 아반떼야
12 | 서연이 발레는 수요일 4시야
12 | 나 버섯 진짜 싫어해
15 | 8월에 제주도 가기로 했어
20 | 분리수거는 목요일 밤이야
20 | 헬스장 사물함은 27번이야
22 | 요즘 채식주의자 읽고 있어
40 | 월세가 85만원으로 올랐어
45 | 팀장님 바뀌었어, 이제 이현우님이야
60 | 아반떼 팔고 아이오닉 샀어
65 | 서연이 발레 금요일로 바뀌었어
70 | 제주도 취소하고 부산 가기로 했어
75 | 오빠 삼성 그만두고 LG 다녀
80 | 약이 75마이크로그램으로 늘었어
나 어디 살아? | 성산동
남편 이름이 뭐야? | 민수
남편 직업이 뭐야? | 간호사
월세 얼마야? | 85만
나 어디서 일해? | 카카오
팀장님 누구야? | 이현우
현관 비밀번호 뭐야? | 4821
서연이 몇 살이야? | 7살
서연이 알레르기가 뭐야? | 땅콩
서연이 생일 언제야? | 11월 14일
엄마 어디 사셔? | 대전
오빠 어디서 일해? | LG
나 씬지로이드 얼마나 먹어? | 75
소아과 선생님 누구야? | 김 선생님
우리 차 뭐야? | 아이오닉
서연이 발레 언제야? | 금요일
8월에 어디 가? | 부산
분리수거 언제야? | 목요일
헬스장 사물함 몇 번이야? | 27
나 요즘 뭐 읽어? | 채식주의자
""",
}


def read_life(life: str) -> tuple[list[Quote], list[tuple[str, str]]]:
    """Return the statements of a life, and its questions with a word of the right first line."""
    quotes: list[Quote] = []
    questions: list[tuple[str, str]] = []
    for line in life.strip().splitlines():
        first, last = line.split(" | ")
        if first.isdecimal():
            at = START + timedelta(days=int(first), minutes=len(quotes))
            quotes.append(Quote(last, at, "You", is_askers=True, session_id=int(first)))
        else:
            questions.append((first, last))
    return quotes, questions


@pytest.mark.parametrize("language", keep_first(1, LIVES))
def test_first_line_about_a_life_of_many_statements_answers_and_still_holds(language: str) -> None:
    statements, questions = read_life(LIVES[language])
    now = statements[-1].at + timedelta(days=DAYS_UNTIL_ASKED)
    wrong = []
    for text, word in questions:
        asked = AskedQuestion(text, now)
        quotes = [replace(quote) for quote in statements]
        answer = render_quotes(asked, rank_quotes(asked, quotes), UTC, ENGLISH_TEXTS)
        first_line = answer.split("\n")[0]
        if word not in first_line or "no longer so" in first_line:
            wrong.append((text, word, answer.splitlines()[:3]))
    assert wrong == []


def read_talked_lives() -> dict[str, tuple[list[Quote], list[tuple[str, str]]]]:
    """Return the statements and the questions of the lives in `data/talked_lives.txt`.

    All statements of a life belong to one conversation. After a question stand the words of which
    the right first line has one.
    """
    lives: dict[str, tuple[list[Quote], list[tuple[str, str]]]] = {}
    text = (Path(__file__).parent / "data" / "talked_lives.txt").read_text("utf-8")
    for line in text.splitlines():
        first, *rest = line.split(" | ")
        if line.startswith("# "):
            quotes, questions = lives.setdefault(line[2:], ([], []))
        elif line.startswith("? "):
            questions.append((first[2:], rest[0]))
        else:
            at = START + timedelta(days=int(first), minutes=len(quotes))
            quotes.append(Quote(rest[0], at, "You", is_askers=True, session_id=1))
    return lives


TALKED_LIVES = read_talked_lives()


@pytest.mark.parametrize("language", keep_first(4, TALKED_LIVES))
def test_first_line_about_a_life_told_in_one_conversation_answers_and_still_holds(
    language: str,
) -> None:
    statements, questions = TALKED_LIVES[language]
    now = statements[-1].at + timedelta(days=5)
    wrong = []
    for text, words in questions:
        asked = AskedQuestion(text, now)
        best = rank_quotes(asked, [replace(quote) for quote in statements])[0]
        if best.is_over or not any(word in best.text for word in words.split(",")):
            wrong.append((text, words, best.text))
    assert wrong == []
