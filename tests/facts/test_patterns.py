"""Sentences as people chat, in several languages: what the rules take of each, and the many that
they leave alone.

A wrong fact is worse than none: jokes, wishes, questions, other people, letters and figures of
speech teach nothing."""

# ruff: noqa: RUF001

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from core.facts.claims import extract_claims
from core.facts.patterns import ASCII_LANGUAGES, LANGUAGES, compile_pattern, load_patterns

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ZONE = ZoneInfo("Europe/Lisbon")

TOLD = """
Ich habe eine Tochter namens Lea => me|have|daughters=eine
Ich habe einen Hund, der Rex heißt => me|have|dogs=einen
J'ai un chat qui s'appelle Mina => me|have|cats=un
J’ai deux filles qui s’appellent Léa et Zoé => me|have|daughters=deux
Mon anniversaire est le 5 mars => me|birthday=5.3
Je suis née le 1er mars 1990 => me|birthday=1.3.1990
Tengo un gato llamado Mina => me|have|cats=un
Tengo dos hijos que se llaman Ana y Luis => me|have|sons=dos
Mi cumpleaños es el 3 de mayo => me|birthday=3.5
Nací el 3 de marzo de 1990 => me|birthday=3.3.1990
Tenho um gato chamado Mina => me|have|cats=um
Tenho uma filha que se chama Ana => me|have|daughters=uma
O meu aniversário é no dia 1º de junho => me|birthday=1.6
Nasci em 3 de abril de 1990 => me|birthday=3.4.1990
Mina adında bir kedim var => me|have|cats=bir
İki çocuğum var => me|have|kids=iki
3 Mayıs 1990'da doğdum => me|birthday=3.5.1990
I have a cat who's called Mina => me|have|cat=a
Anas Geburtstag ist am 3. Mai => ana|birthday=3.5
Meine Schwester hat am 3. Mai Geburtstag => my sister|birthday=3.5
Der Geburtstag meines Bruders ist am 3. Mai 1990 => my brother|birthday=3.5.1990
L'anniversaire d'Ana est le 1er mai => ana|birthday=1.5
Ma mère est née le 3 mai 1960 => my mother|birthday=3.5.1960
El cumpleaños de mi hermana es el 3 de mayo => my sister|birthday=3.5
Ana cumple años el 3 de mayo => ana|birthday=3.5
O aniversário da Ana é a 3 de maio => ana|birthday=3.5
A minha irmã faz anos no dia 3 de maio => my sister|birthday=3.5
У Анны день рождения 3 мая => анны|birthday=3.5
День рождения моей мамы — 3 мая => my mother|birthday=3.5
У моей сестры Анны день рождения 3 мая => анны|birthday=3.5
安娜的生日是5月3日 => 安娜|birthday=3.5
我妈妈的生日是5月3号 => my mother|birthday=3.5
我妹妹安娜的生日是1990年5月3日 => 安娜|birthday=3.5.1990
アナの誕生日は5月3日です => アナ|birthday=3.5
母の誕生日は5月3日です => my mother|birthday=3.5
妹のアナちゃんの誕生日は5月3日だ => アナ|birthday=3.5
아나 생일은 5월 3일이에요 => 아나|birthday=3.5
우리 엄마 생일은 5월 3일이야 => my mother|birthday=3.5
내 여동생 아나의 생일은 5월 3일이에요 => 아나|birthday=3.5
Ana'nın doğum günü 3 Mayıs => ana|birthday=3.5
Annemin doğum günü 3 Mayıs'ta => my mother|birthday=3.5
Mein Bruder heißt Jonas und arbeitet bei Siemens => jonas|work=siemens ; me|brother|jonas=jonas
Meine Schwester heißt Ana und ich wohne in Köln => me|home=koln ; me|sister|ana=ana
Mon frère s'appelle Luc et travaille chez Airbus => luc|work=airbus ; me|brother|luc=luc
Mi hermana se llama Ana y vive en Oporto => ana|home=oporto ; me|sister|ana=ana
O meu irmão chama-se Rui e trabalha na Galp => me|brother|rui=rui ; rui|work=galp
My brother is called Jonas and works at Siemens => jonas|work=siemens ; me|brother|jonas=jonas
Müdürümün adı Selin => me|boss=selin
Patronumun adı Ali => me|boss=ali
Ben öğretmenim => me|profession=ogretmen
저는 커피를 안 좋아해요 => me|like|커피=dislike
just moved to Leipzig last week, still unpacking => me|home=leipzig
I've been living in Oslo for three years => me|home=oslo
I got a new job at Zalando => me|work=zalando
I'm vegan btw => me|diet=vegan
no, my birthday is on the 4th of May => me|birthday=4.5
my bday is 12 august => me|birthday=12.8
My birthday's the 12th of August => me|birthday=12.8
my sister moved to Porto => my sister|home=porto
My dad lives in Faro and my mom lives in Lisbon => my dad|home=faro ; my mom|home=lisbon
My brother Tom works at Google => me|brother|tom=tom ; tom|work=google
You can call me Al => me|name=al
I love Rome => me|like|rome=like
I like running in the morning => me|like|running in the morning=like
I hate Mondays => me|like|mondays=dislike
I prefer short answers => me|like|short answers=like
I prefer tea to coffee => me|like|tea=like
I'm allergic to penicillin => me|allergy|penicillin=allergic
My son is allergic to penicillin => my son|allergy|penicillin=allergic
our dog is called Rex => me|dog|rex=rex
My cat's name is Miau => me|cat|miau=miau
I have two cats => me|have|cats=two
I've got a brother => me|have|brother=a
My wife is Marta Silva => me|wife=marta silva
My boss is Karen => me|boss=karen
My favorite color is green => me|favourite|color=green
I work as a teacher in Braga => me|profession=teacher
I'm a nurse => me|profession=nurse
I speak German and French => me|language|german and french=speaks
I drive a Skoda => me|car=skoda
I'm married to Marta => me|partner=marta
We decided to buy the red one => =
Remember that I park on level 3 => =
Recuerda que soy vegetariano => me|diet=vegetariano
Merk dir: ich wohne in Köln => me|home=koln
Souviens-toi que j'habite à Lyon => me|home=lyon
记住我对花生过敏 => me|allergy|花生=allergic
запомни: я живу в Москве => me|home=москве
I work at Siemens as an engineer => me|work=siemens
Ich wohne seit 2019 in Köln => me|home=koln
Wir wohnen in Köln => me|home=koln
Ich bin nach Köln gezogen => me|home=koln
Ich arbeite bei Siemens => me|work=siemens
Ich heiße Max => me|name=max
Ich mag keinen Kaffee => me|like|kaffee=dislike
Ich mag Kaffee => me|like|kaffee=like
J'habite à Paris depuis 2020 => me|home=paris
Je vis en France => me|home=france
Je m'appelle Julie => me|name=julie
Je n'aime pas le café => me|like|cafe=dislike
Je suis allergique au gluten => me|allergy|gluten=allergic
Je travaille chez Renault => me|work=renault
Je travaille comme infirmière => me|profession=infirmiere
Vivo en Sevilla => me|home=sevilla
Me mudé a Bilbao en enero => me|home=bilbao
Me llamo Lucía => me|name=lucia
Soy alérgica a los gatos => me|allergy|gatos=allergic
Trabajo en Inditex => me|work=inditex
Moro no Porto => me|home=porto
Moro em Braga com a minha irmã => me|home=braga
Chamo-me Rui => me|name=rui
Gosto de café => me|like|cafe=like
Trabalho na Sonae => me|work=sonae
Max is a teacher => max|profession=teacher
We've decided to call off the wedding => =
my sister Ana, who lives in Rome, is coming => me|sister|ana=ana
I moved from Rome to Oslo => me|home=oslo
i live in porto => me|home=porto
i work at google => me|work=google
im from porto => me|from=porto
im a vegan => me|diet=vegan
im vegan => me|diet=vegan
im allergic to cats => me|allergy|cats=allergic
i cant stand cats => me|like|cats=dislike
i dont eat pork => me|diet|pork=never
Ich bin allergisch gegen Nüsse => me|allergy|nusse=allergic
我在谷歌工作 => me|work=谷歌
Meine Schwester wohnt in Bonn => meine schwester|home=bonn
Ich habe am 3. Mai Geburtstag => me|birthday=3.5
Ich bin am 3. Mai 1990 geboren => me|birthday=3.5.1990
Ich bin Vegetarier => me|diet=vegetarier
Ma sœur habite à Lyon => ma sœur|home=lyon
J'aime bien le café => me|like|cafe=like
J'aime pas le café => me|like|cafe=dislike
Mi hermana vive en Bilbao => mi hermana|home=bilbao
Soy vegetariano => me|diet=vegetariano
A minha irmã mora no Porto => a minha irma|home=porto
Faço anos a 3 de maio => me|birthday=3.5
我住在北京 => me|home=北京
我搬到上海了 => me|home=上海
我叫李明 => me|name=李明
我的生日是5月3日 => me|birthday=3.5
我对花生过敏 => me|allergy|花生=allergic
我不喜欢咖啡 => me|like|咖啡=dislike
東京に住んでいます => me|home=东京
大阪に引っ越しました => me|home=大阪
私の名前は花子です => me|name=花子
誕生日は5月3日です => me|birthday=3.5
緑茶が好きです => me|like|绿茶=like
Я живу в Москве => me|home=москве
Я переехал в Казань => me|home=казань
Моя сестра живёт в Казани => моя сестра|home=казани
Моя сестра Ана живёт в Порту => моя сестра ана|home=порту
Меня зовут Иван => me|name=иван
I'm from Rome originally => me|from=rome
my sister Ana and I live in Rome => me|home=rome ; me|sister|ana=ana
我住在北京。我喜欢绿茶。 => me|home=北京 ; me|like|绿茶=like
Мой день рождения 3 мая => me|birthday=3.5
I have two kids, Leo and Mia => me|have|kids=two
We have three cats named Tom, Rex and Kim => me|have|cats=three
My dentist is Dr. Weiss => me|dentist=dr weiss
My doctor is Dr. Maria Weiss. => me|doctor|dr maria weiss=dr maria weiss
Meine Frau heißt Eva => me|wife=eva
Mein Auto ist ein blauer Skoda => me|car=blauer skoda
The door code is 4711 => me|door code=4711
Our alarm code is 12 34 => me|alarm code=12 34
My locker number is B12 => me|locker number=b12
My shoe size is 42 => me|shoe size=42
Unser Hund heißt Rex => me|dog|rex=rex
Mein Zahnarzt ist Dr. Weiss => me|dentist=dr weiss
Ich bin mit Eva verheiratet => me|partner=eva
Ich habe zwei Kinder, Leo und Mia => me|have|kids=zwei
Ich komme aus Bremen => me|from=bremen
Meine Handynummer ist 0171 1234567 => me|phone=0171 1234567
Meine Lieblingsfarbe ist Blau => me|favourite|farbe=blau
Wir haben beschlossen, nach Porto zu ziehen => =
Ma femme s'appelle Eva => me|wife=eva
Mon chien s'appelle Rex => me|dog|rex=rex
Ma voiture est une Renault bleue => me|car=renault bleue
J'ai deux enfants, Leo et Mia => me|have|kids=deux
Je suis mariée avec Paul => me|partner=paul
Mon numéro de téléphone est le 06 12 34 56 78 => me|phone=06 12 34 56 78
Le code de la porte est 4711 => me|code de la porte=4711
Nous avons décidé de vendre la maison => =
Mi mujer se llama Eva => me|wife=eva
Mi perro se llama Rex => me|dog|rex=rex
Mi coche es un Seat rojo => me|car=seat rojo
Tengo dos hijas, Leo y Mia => me|have|daughters=dos
Estoy casado con Ana => me|partner=ana
Mi número de teléfono es 600 123 456 => me|phone=600 123 456
Hemos decidido vender la casa => =
Minha mulher chama-se Eva => me|wife=eva
O meu cão chama-se Rex => me|dog|rex=rex
O meu carro é um Fiat azul => me|car=fiat azul
Tenho dois filhos, Leo e Mia => me|have|sons=dois
Sou casado com a Ana => me|partner=ana
O meu telemóvel é 912 345 678 => me|phone=912 345 678
Decidimos vender a casa => =
Мою жену зовут Ева => me|wife=ева
Нашу собаку зовут Рекс => me|dog|рекс=рекс
Моя машина — синяя Шкода => me|car=синяя шкода
У меня двое детей => me|have|kids=двое
Мы решили продать дом => =
Мой телефон 8 912 345 67 89 => me|phone=8 912 345 67 89
我妻子叫王芳 => me|wife=王芳
我的狗叫旺财 => me|dog|旺财=旺财
我的车是比亚迪 => me|car=比亚迪
我是一名医生 => me|profession=医生
我的电话是13800138000 => me|phone=13800138000
我们决定卖掉房子 => =
妻の名前は花子です => me|wife=花子
私の犬の名前はポチです => me|dog|ポチ=ポチ
私は医者です => me|profession=医者
電話番号は090-1234-5678です => me|phone=090 1234 5678
ポルトガルに引っ越すことに決めました => =
Remember that the spare key is with Ana => =
Merk dir: der Schlüssel liegt bei Ana => =
""".strip().splitlines()
"""The sentence, and what is learned as ``attribute=value``."""

NOT_TOLD = """
Sie hat am 3. Mai Geburtstag
Wer hat am 3. Mai Geburtstag
Ana hat vielleicht am 3. Mai Geburtstag
Elle est née le 3 mai
У неё день рождения 3 мая
他的生日是5月3日
彼女の誕生日は5月3日です
この子の誕生日は5月3日です
그녀 생일은 5월 3일이에요
O'nun doğum günü 3 Mayıs
安娜的生日是周末
I left Siemens last month
I no longer live in Berlin
I don't work there anymore
I'm not vegetarian anymore
actually I'm not allergic to nuts, that was my brother
no, it's Tuesday
Sorry, I meant 4 May, not 3 May
I turn 40 in June
My sister's moving to Porto
my sister said she'd move to Porto
Tom said he lives in Rome
Tom: I live in Rome
Ben wrote "I live in Rome"
He lives in Rome
They moved to Rome
Do you think I live in Rome?
Where do I live, in Rome?
I might live in Rome next year
I'd live in Rome if I could
I'm going to move to Rome
I'm moving to Rome
I was living in Rome
I lived in Rome for two years
I used to work at Siemens
I wish my name was Max
My name is not Max
call me maybe
this is Max speaking
It's Joana here
I'm hungry
I'm in Rome this week
I love it here
I love that song
I love how you explain things
I like to run
I like it when you write short answers
I hate to say it
I prefer not to say
I drink my coffee black
I'm allergic to your jokes
I have a question
my wife is pregnant
My wife's Marta
my boss is an idiot
My favorite thing about Rome is the food
My favourite is the second one
I work for myself
I work on weekends
I'm a big fan of Porto
I'm a bit of a nurse today
I'm not a nurse
I study at Porto
I speak only for myself
I drive a hard bargain
I'm married
I'm dating someone new
We haven't decided to buy it
remember me?
记得买牛奶
Remember when I lived in Rome?
Don't forget the milk
If my name was Max, would you laugh?
Imagine my name is Max
Pretend I live on Mars
Let's play a game: you are a wizard and I am a knight
As a knight, I live in Camelot
lol I live in Mordor
haha my name is Batman
/s I love Mondays
"My name is Luka, I live on the second floor"
the song goes my name is Luka
Ich ziehe nach Köln
Ich wohne nicht mehr in Köln
Ich wohnte in Köln
Ich arbeite nicht bei Siemens
Ich mag dich
Ich liebe es
Ich mag das nicht
Wohne ich in Köln?
Wenn ich in Köln wohne, brauche ich ein Auto
Meine Mutter sagt, ich wohne in Köln
Je n'habite plus à Paris
J'ai habité à Paris
J'habiterais à Paris si je pouvais
Est-ce que j'habite à Paris ?
Elle s'appelle Julie
Ya no vivo en Sevilla
Vivía en Sevilla
Me gustaría vivir en Bilbao
Me encantas
¿Vivo en Bilbao?
Trabajo en casa
Já não moro no Porto
Não moro no Porto
Gosto disso
Gosto de ti
Gostava de morar no Porto
Trabalho na segunda
Eu morava em Braga
Será que moro em Braga?
我不住在北京
如果我住在北京
他说我住在北京
我住在哪里？
我住在北京吗
東京に住んでいません
東京に住みたい
東京に住んでいますか
Я не живу в Москве
Я бы жил в Казани
You live in Rome
We live in a society
We live in hope
I live in Tom's flat
I live for football
I moved to a bigger flat
I moved to Plan B
I moved to Chapter 3
I moved my car to Porto
I moved Ana to the top of the list
just moved to the next chapter
Everyone lives in Rome
This works for Siemens
Nobody likes Rome
Python works for me
Tuesday works for me
Monday is my birthday
Ana's birthday was fun
Ana's birthday is in May
Ana's birthday is tomorrow
My birthday is next Friday
I got a job interview at Google
I have got a job for you
I'm a doctor's son
I'm not just a teacher
I am almost a teacher
You're a teacher
I like that you remember things
I like turtles 😂
I like option B
I like the idea of moving
I prefer it short
we decided
We decided nothing
my phone number is in the signature
my hobby is none of your business
my doctor is on holiday
my dentist is in Porto
my dog is called lunch lol
my brother is Superman, haha
Ana and Ben live in Rome
Ana said her birthday is 3 May
According to Ana my birthday is 3 May
My horoscope says I am a lion
The form says: name: Max
Name: Max Mustermann
Dear team, I live in Rome. Best, Max
Hi, I'm writing to say my name is Max.
> my name is Max
* I live in Rome
1. I live in Rome
test: I live in Rome
e.g. I live in Rome
For instance I live in Rome
Say I live in Rome
Let's assume I live in Rome
Should I tell her I live in Rome
I told her I live in Rome
I lied: I live in Rome
I never said I live in Rome
It's not true that I live in Rome
I dreamed I live in Rome
When I was 10 I lived in Rome
I moved out of Rome
I moved away from Rome
I moved to Rome temporarily
i live in fear
i work at night
im max
im from the future
Ich wohne im Hotel
Ich wohne in einer WG
Ich wohne in der Nähe von Köln
Ich lebe in Angst
Ich lebe in Scheidung
Ich bin nach Hause gezogen
Ich liebe dich
Ich mag, wie du schreibst
Ich heiße alle willkommen
Ich arbeite für zwei
Ich arbeite als ob
Mein Bruder wohnt nicht in Bonn
Mein Kollege sagt, mein Bruder wohnt in Bonn
Je vis dans la peur
J'aime ça
J'aime pas trop
J'aime bien ta réponse
Je m'appelle comment ?
Vivo en paz
Me gusta que respondas rápido
Me gustas
Me llamo como mi padre
Trabajo en equipo
Vivo com medo
Gosto de como escreves
Trabalho no duro
我住在附近
我住在你家
我住在一个小镇
我搬到新家了
我叫你
我叫外卖
我叫了出租车
我喜欢你
我喜欢他说的
我以为我喜欢茶
我妈说我喜欢茶
我在工作
我在家工作
我没住在北京
我想住在北京
我打算搬到北京
我明年搬到北京
彼は東京に住んでいます
ここに住んでいます
来月大阪に引っ越します
大阪に引っ越したいです
大阪に引っ越しましたか？
誕生日は来週です
何が好きですか
あなたが好きです
肉が好きではありません
彼女が好きです
Я живу в надежде
Я живу в общежитии
Он живёт в Москве
Я люблю тебя
Я люблю, когда тихо
Я жил в Москве
Если я живу в Москве
Я работаю в офисе
Меня зовут на ужин
我妹妹住在上海
妹は東京に住んでいます
Meine Frau heißt das nicht gut
Meine Schwester ist Ärztin
Mein Auto ist kaputt
Meine Frau ist müde
Ich habe zwei Fragen
Ich habe zwei Kinderbücher gekauft
Ma femme s'appelle comment ?
Ma voiture est en panne
J'ai deux questions
Mi mujer no se llama Eva
Mi coche es rápido
Tengo dos preguntas
O meu carro é novo
Tenho duas perguntas
The code is 42 lines long
The error code is 404
The issue number is 12
Our number is up
My number is in the signature
У меня двое суток
Моя машина сломалась
我妻子叫我回家
我的车是新的
私は医者ではありません
妻の名前は何ですか
We have two options, A and B
We have two questions, Leo
I'm allergic to mornings lol
My dog Rex died yesterday
Je suis né le matin
Nací el mismo día que Ana
Nasci em Lisboa
1990 doğumluyum
Bir kedim vardı
Bir arkadaşım var
J'ai une fille de dix ans
""".strip().splitlines()


def test_plain_statement_in_each_language_is_learned() -> None:
    told = [line.partition(" => ")[::2] for line in TOLD]
    learned = [
        (
            text,
            " ; ".join(
                sorted(
                    f"{claim.attribute or ''}={claim.value}"
                    for claim in extract_claims(text, NOW, ZONE)
                )
            ),
        )
        for text, _ in told
    ]
    assert learned == told


def test_sentence_without_a_plain_statement_is_not_learned() -> None:
    assert {text: found for text in NOT_TOLD if (found := extract_claims(text, NOW, ZONE))} == {}


def test_clause_in_ascii_is_compared_with_all_languages_that_may_match_it() -> None:
    parser: Any = importlib.import_module("re._parser")
    for language in set(LANGUAGES) - set(ASCII_LANGUAGES):
        for pattern in load_patterns(language):
            text = compile_pattern(pattern.text).pattern
            assert _needs_other_letter(parser.parse(text, re.IGNORECASE | re.DOTALL)), text
    assert {"english", "turkish"} <= set(ASCII_LANGUAGES) < set(LANGUAGES)


def _needs_other_letter(parts: Iterable[tuple[Any, Any]]) -> bool:
    """Return whether each match of a parsed expression contains a character outside of ASCII."""
    return any(_is_other_letter(str(kind), value) for kind, value in parts)


def _is_other_letter(kind: str, value: Any) -> bool:
    if kind == "LITERAL":
        return bool(value > 127)
    if kind == "RANGE":
        return bool(value[0] > 127)
    if kind == "IN":
        return all(_is_other_letter(str(inner), argument) for inner, argument in value)
    if kind == "SUBPATTERN":
        return _needs_other_letter(value[3])
    if kind in ("MAX_REPEAT", "MIN_REPEAT"):
        return value[0] > 0 and _needs_other_letter(value[2])
    if kind == "BRANCH":
        return all(_needs_other_letter(branch) for branch in value[1])
    return False
