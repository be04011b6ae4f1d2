"""What the rules take for a fact, since when it holds, and all that they leave alone."""

# ruff: noqa: RUF001

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from core.facts.claims import extract_claims
from tests.fixtures.tables import each_row

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ZONE = ZoneInfo("Europe/Lisbon")

STATED = (
    ("I moved to Porto in May.", "me|home", "porto"),
    ("i live in lisbon since 2019", "me|home", "lisbon"),
    ("Hi! I live in Porto.", "me|home", "porto"),
    ('The TV is 55" wide. I live in Porto. The monitor is 24".', "me|home", "porto"),
    ("Btw, I now live in Porto", "me|home", "porto"),
    ("I moved to the Netherlands last year", "me|home", "the netherlands"),
    ("We have lived in Braga since 2020.", "me|home", "braga"),
    ("I'm based in New York", "me|home", "new york"),
    ("Ana moved to Berlin in March", "ana|home", "berlin"),
    ("My sister lives in Porto", "my sister|home", "porto"),
    ("Ana's birthday is 3 May", "ana|birthday", "3.5"),
    ("My birthday is on May 3rd, 1990.", "me|birthday", "3.5.1990"),
    ("I was born on 3 May 1990", "me|birthday", "3.5.1990"),
    ("My name is Ana Silva", "me|name", "ana silva"),
    ("my name is ana", "me|name", "ana"),
    ("Please call me Joe", "me|name", "joe"),
    ("My sister is called Ana.", "me|sister|ana", "ana"),
    ("My wife is Marta.", "me|wife", "marta"),
    ("I'm severely allergic to peanuts", "me|allergy|peanuts", "allergic"),
    ("I am vegetarian", "me|diet", "vegetarian"),
    ("I don't eat pork", "me|diet|pork", "never"),
    ("I like green tea", "me|like|green tea", "like"),
    ("I don't like coffee any more", "me|like|coffee", "dislike"),
    ("I can't stand olives.", "me|like|olives", "dislike"),
    ("I prefer trains over planes", "me|like|trains", "like"),
    ("My favourite colour is blue", "me|favourite|colour", "blue"),
    ("I work at Siemens now", "me|work", "siemens"),
    ("Answer me at 10:30, please. I work at Siemens", "me|work", "siemens"),
    ("I work as a nurse in the film industry", "me|profession", "nurse"),
    ("I work as a nurse", "me|profession", "nurse"),
    ("I'm a software engineer", "me|profession", "software engineer"),
    ("I drive a grey Skoda", "me|car", "grey skoda"),
    ("I'm from Brazil", "me|from", "brazil"),
    ("My phone number is +351 912 345 678", "me|phone", "351 912 345 678"),
    ("I have two kids", "me|have|kids", "two"),
    ("Moro em Lisboa desde 2019", "me|home", "lisboa"),
    ("Mudei-me para o Porto em maio", "me|home", "porto"),
    ("Não gosto de azeitonas", "me|like|azeitonas", "dislike"),
    ("O meu aniversário é a 3 de maio", "me|birthday", "3.5"),
    ("Ich wohne in Berlin", "me|home", "berlin"),
    ("Ich arbeite jetzt bei Siemens", "me|work", "siemens"),
    ("Ich bin im Mai nach Hamburg gezogen", "me|home", "hamburg"),
    ("Mein Geburtstag ist am 3. Mai", "me|birthday", "3.5"),
    ("Vivo en Madrid desde 2020", "me|home", "madrid"),
    ("Me llamo Carlos", "me|name", "carlos"),
    ("J'habite à Lyon depuis 2020", "me|home", "lyon"),
    ("Je suis allergique aux arachides", "me|allergy|arachides", "allergic"),
    ("저는 부산에 살아요", "me|home", "부산"),
    ("지난주에 대전으로 이사했어", "me|home", "대전"),
    ("나 대전에서 세종으로 이사했어", "me|home", "세종"),
    ("내 여동생 아나는 포르투에 살아", "아나|home", "포르투"),
    ("제 생일은 5월 3일이에요", "me|birthday", "3.5"),
    ("저는 삼성에서 일해요", "me|work", "삼성"),
    ("나는 우유 알레르기가 있어", "me|allergy|우유", "allergic"),
    ("Konya'da yaşıyorum", "me|home", "konya"),
    ("Bursa'ya taşındık", "me|home", "bursa"),
    ("Kız kardeşim Ana Porto'da yaşıyor", "ana|home", "porto"),
    ("Doğum günüm 3 Mayıs", "me|birthday", "3.5"),
    ("Garanti Bankası'nda çalışıyorum", "me|work", "garanti bankasi"),
)

NAMED_RELATIONS = (
    ("My sister Ana lives in Porto", "My sister is Ana"),
    ("Meine Schwester Ana wohnt in Porto", "Meine Schwester heißt Ana"),
    ("Ma sœur Ana habite à Porto", "Ma sœur s'appelle Ana"),
    ("Mi hermana Ana vive en Porto", "Mi hermana se llama Ana"),
    ("A minha irmã Ana mora em Porto", "A minha irmã se chama Ana"),
)

NOT_STATED = """
If I lived in Aberdeen I'd freeze half the year
my landlord reckons I work at the docks, no idea why
Priya goes "I'm allergic to penicillin" and the nurse writes it down
picture me: I own three yachts and a castle lol
do I drive a Tesla? in my dreams
the chap on the bus told everyone "I live in Hull"
suppose my name was Bartholomew, would you still like me
wenn ich in Zürich wohnen würde, wär ich arm
Jörg meinte: "Ich arbeite bei Bosch"
bin ich etwa allergisch gegen Nüsse?
klar, und ich bin der Kaiser von China
angenommen, ich heiße Ludwig und wohne in einem Schloss
mein Chef glaubt, ich wohne in Kassel
im Stück sage ich: ich bin Ärztin und lebe in Wien
si j'habitais à Marseille, j'irais à la plage tous les jours
ma voisine raconte que je travaille à la mairie, n'importe quoi
« je suis allergique au gluten », a dit Jeanne
tu crois que j'habite à Paris ?
mettons que je m'appelle Napoléon
mais oui, et moi je suis la reine d'Angleterre mdr
si viviera en Bilbao comería pintxos a diario
mi cuñado va diciendo que trabajo en un banco
«vivo en Sevilla», contestó Paco
¿acaso soy alérgica al marisco?
sí claro, y yo me llamo Cleopatra jajaja
en la novela me llamo Elvira y vivo en Toledo
se eu morasse em Gramado, ia passar frio
o porteiro acha que eu trabalho na Globo
"moro em Recife", respondeu a Lu
eu tenho cara de quem mora em Alphaville?
aham, e eu sou o rei do Pelé kkkk
vamos supor que meu nome é Astolfo
если бы я жил в Сочи, купался бы каждый день
Серёга уверяет, что я работаю в полиции
«Я живу в Твери», — сказал попутчик
а разве я работаю в банке?
ага, а я Юлий Цезарь и живу в Риме, ха-ха
допустим, меня зовут Аристарх
要是我住在三亚就好了
老周说他住在天津
难道我在银行上班吗？
假设我叫秦始皇，住在咸阳
もし私が京都に住んでいたら毎日お寺に行く
佐藤さんが「私は医者です」と言っていた
私が銀行で働いてるわけないでしょ？
만약 내가 제주도에 살면 매일 바다에 갈 거야
민재가 "나는 은행에서 일해"라고 했어
내가 무슨 재벌이라도 되는 줄 알아? ㅋㅋ
Bodrum'da yaşasaydım her gün denize girerdim
Hakan "ben Konya'da yaşıyorum" dedi
My grandmother Ana passed away in May
if I moved to Porto
do I live in Porto?
Should I move to Porto
What if I moved to Porto in May
she said I live in Porto
Ana thinks I live in Rome
He told me: I live in Lisbon
According to the letter I live in Rome
Maybe I live in Porto
I would like tea
I'd like a coffee
I don't live in Porto
I never lived in Porto
I am not allergic to nuts
I no longer work at Siemens
"I live in Porto"
My essay begins: “I live in Porto”
> I live in Porto
`I live in Porto`
I wish I lived in Porto
I'm moving to Porto in May
I used to live in Lisbon
I almost moved to Porto
I moved to Porto in June 2027
When I live in Porto I eat fish
Suppose we decided to sell
Imagine I live in Porto
I live in fear
I live in a small flat
I live alone
I moved to the next topic
I moved to Windows 11
i moved to linux
I like it
I like your idea
I love you
I like that, thanks
call me later
call me tomorrow
I'm tired
I'm a bit tired
My sister is tired
My question is simple
My birthday is next week
I work from home
I work hard
Do you know that I live in Porto?
Remember that day in Porto?
Write a story: I live in Paris
Translate: my name is Peter
Se eu morasse no Porto
Ich wohne nicht in Berlin
Moras no Porto?
Je n'habite pas à Lyon
Wenn ich in Berlin wohne
Stell dir vor, ich wohne in Rom
Angenommen, ich arbeite bei Google
Imagine que j'habite à Rome
Supposons que je travaille chez Airbus
Supongamos que trabajo en Google
Vamos supor que eu trabalho na NASA
может быть, я живу в Твери
Представь, что я живу в Риме
шучу, я живу на Луне
假如我住在巴黎
もし私がパリに住んでいたら
冗談だけど、私は月に住んでいます
부산에 살고 싶어
부산에 안 살아
만약 내가 부산에 살아
농담이야, 나는 달에 살아
혼자 살아
나는 아파트에 살아
친구가 부산에 살아
나는 밖에서 일해
İzmir'de yaşamıyorum
keşke İzmir'de yaşıyor olsam
evde oturuyorum
adım attım
Ali, İzmir'de yaşıyorum diyor
Meine Schwester Ana wohnt vielleicht in Porto
joke: I live in Madrid
Priya: I live in Delhi
In the story, I live in Mordor.
In my game, my name is Max and I live in Rome.
As a vampire, I live in Transylvania.
She goes, I live in Porto
Just kidding. I live in Porto.
I live in Porto. Just kidding!
Imagine this. I live in Porto.
Let's say this. My name is Bond.
Translate this: I live in Berlin. My name is Max.
Fix the grammar: I lives in Berlin. I am vegetarian.
Example for class: "I am a nurse. I live in Dublin. My brother is called Sean."
Suppose for a moment I'm diabetic. My doctor is Dr House. What should I eat?
Picture it: I'm forty. I live in Lisbon. Sounds good, no?
Положим, я пенсионер. Я живу в Сочи. Какая льгота?
Digamos que tengo 70 años. Vivo en Lugo. ¿Qué pensión me toca?
En el guion pone: Soy marinero. Vivo en Cádiz.
No roteiro diz: Eu sou pescador. Moro em Búzios.
Auntie's voicemail: hi love, I moved to Bournemouth
Je travaille comme impératrice et j'habite à Versailles, ironie bien sûr
Sou unicórnio de profissão e moro no arco-íris rs
aus dem Kurs: „Ich heiße Paul. Ich wohne in Kassel.“
I live in Porto now, do I
I work at night
My wife is German
ok
👍
""".strip().splitlines()


@each_row(("text", "attribute", "value"), STATED)
def test_plain_statement_about_oneself_is_extracted_as_a_fact(
    text: str, attribute: str, value: str
) -> None:
    (claim,) = extract_claims(text, NOW, ZONE)
    assert (claim.attribute, claim.value, claim.kind) == (attribute, value, "identity")


@each_row(("text", "relation"), NAMED_RELATIONS)
def test_relative_with_a_name_and_a_home_gives_two_facts(text: str, relation: str) -> None:
    named, home = extract_claims(text, NOW, ZONE)
    assert (named.content, named.attribute, named.value) == (relation, "me|sister|ana", "ana")
    assert (home.content, home.attribute, home.value) == (text, "ana|home", "porto")


@each_row(
    ("text", "takeback"),
    [
        ("Eve is my boss.", "NOT!"),
        ("I live in Porto.", "Nonsense!"),
        ("Meine Schwester heißt Ana.", "Nicht!"),
        ("J'habite à Porto.", "Non !"),
        ("Vivo en Oporto.", "¡No!"),
        ("Moro em Lisboa.", "Mentira!"),
        ("Я живу в Москве.", "Нет!"),
        ("我住在上海。", "才怪！"),
        ("私は東京に住んでいます。", "うそ！"),
        ("저는 서울에 살아요.", "아니!"),
        ("İstanbul'da yaşıyorum.", "Değil!"),
    ],
)
def test_statement_that_a_later_short_sentence_takes_back_gives_no_fact(
    text: str, takeback: str
) -> None:
    assert extract_claims(text, NOW, ZONE)
    assert extract_claims(f"{text} {takeback}", NOW, ZONE) == []
    last = f"{text} {takeback} My sister is Nina."
    assert [claim.content for claim in extract_claims(last, NOW, ZONE)] == ["My sister is Nina"]


@each_row("text", NOT_STATED)
def test_text_without_a_plain_statement_gives_no_fact(text: str) -> None:
    assert extract_claims(text, NOW, ZONE) == []


@each_row(
    ("text", "since", "precision"),
    [
        ("I moved to Porto in May", datetime(2026, 4, 30, 23, tzinfo=UTC), "month"),
        ("I moved to Porto in December", datetime(2025, 12, 1, tzinfo=UTC), "month"),
        ("I moved to Porto in May 2024", datetime(2024, 4, 30, 23, tzinfo=UTC), "month"),
        ("I moved to Porto on 3 May", datetime(2026, 5, 2, 23, tzinfo=UTC), "day"),
        ("I moved to Porto yesterday", datetime(2026, 11, 19, tzinfo=UTC), "day"),
        ("I have lived in Porto since 2019", datetime(2019, 1, 1, tzinfo=UTC), "year"),
        ("I moved to Porto two years ago", datetime(2024, 1, 1, tzinfo=UTC), "year"),
        ("Mudei-me para o Porto em maio", datetime(2026, 4, 30, 23, tzinfo=UTC), "month"),
        ("Ich bin im Mai nach Hamburg gezogen", datetime(2026, 4, 30, 23, tzinfo=UTC), "month"),
        ("I moved to Porto with Ben", None, "day"),
        ("I live in Porto on the third floor", None, "day"),
    ],
)
def test_claim_has_the_day_since_which_it_holds(
    text: str, since: datetime | None, precision: str
) -> None:
    (claim,) = extract_claims(text, NOW, ZONE)
    assert (claim.valid_from, claim.precision) == (since, precision)


def test_wish_to_remember_makes_a_fact_of_any_statement() -> None:
    (code,) = extract_claims("Please remember that the code is 4711!", NOW, ZONE)
    assert (code.content, code.attribute, code.is_requested) == ("The code is 4711", None, True)
    (home,) = extract_claims("Remember that I live in Porto", NOW, ZONE)
    assert (home.attribute, home.value, home.is_requested) == ("me|home", "porto", True)


@each_row(
    "text",
    [
        "Note that please",
        "Note that, please!",
        "Please note that for me, thanks",
        "Remember: please",
        "Recuerda, por favor",
        "Souviens-toi, s'il te plaît",
        "Запомни, пожалуйста",
        "記住，谢谢",
        # Pasted, quoted and translated texts are no claims of the person.
        "I live in Porto. " * 200,
        "```\nI live in Porto.\n```",
        "Look:\n> I live in Porto.\n> My name is Eve.",
        "Translate to German:\nI live in Berlin.",
        "From: Eve\nTo: me\nI moved to Madrid.",
    ],
)
def test_request_to_remember_nothing_or_a_foreign_text_gives_no_fact(text: str) -> None:
    assert list(extract_claims(text, NOW, ZONE)) == []


def test_several_facts_are_extracted_from_one_message() -> None:
    found = extract_claims(
        "My name is Joana and I live in Porto. My sister Ana lives in Braga, and I work at EDP.",
        NOW,
        ZONE,
    )
    assert [(claim.attribute, claim.value) for claim in found] == [
        ("me|name", "joana"),
        ("me|home", "porto"),
        ("me|sister|ana", "ana"),
        ("ana|home", "braga"),
        ("me|work", "edp"),
    ]


@each_row(
    "text",
    ["We decided to use PostgreSQL", "We've decided not to sell", "I decided against the red one"],
)
def test_stated_decision_is_extracted_as_a_fact_of_kind_project(text: str) -> None:
    (claim,) = extract_claims(text, NOW, ZONE)
    assert (claim.kind, claim.attribute) == ("project", None)


@given(st.text(max_size=300))
def test_any_text_is_parsed_without_an_error(text: str) -> None:
    for claim in extract_claims(f"I live in {text}", NOW, ZONE) + extract_claims(text, NOW, ZONE):
        assert claim.content


def test_pronoun_in_a_second_statement_refers_to_the_person_named_in_the_first() -> None:
    now, zone = datetime(2026, 11, 20, tzinfo=UTC), ZoneInfo("UTC")
    told = extract_claims(
        "My sister Ana lives in Porto and her birthday is on 3 May, but she hates coffee", now, zone
    )
    assert [(claim.attribute, claim.value, claim.valid_from) for claim in told] == [
        ("me|sister|ana", "ana", None),
        ("ana|home", "porto", None),
        ("ana|birthday", "3.5", None),
        ("ana|like|coffee", "dislike", None),
    ]
    (alone,) = extract_claims("I live in Porto and she likes tea", now, zone)
    assert alone.content == "I live in Porto"
