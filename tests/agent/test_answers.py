"""What stands first in an answer without a model: what holds now, then what it replaced."""

# ruff: noqa: RUF001

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from core.agent.answering.answers import (
    add_facts,
    follow_up_query,
    rank_quotes,
    render_files,
    render_quotes,
)
from core.agent.answering.quotes import AskedQuestion, Quote
from core.agent.offline import ENGLISH_TEXTS
from gateway.texts.catalog import load_offline_texts
from tests.fixtures.tables import each_row

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


def ask(question: str, *statements: str, days: int = 60, session: int | None = None) -> list[str]:
    """Tell the statements, a month between each, and return the lines of the answer."""
    asked = AskedQuestion(question, START + timedelta(days=30 * (len(statements) - 1) + days))
    quotes = [
        Quote(text, START + timedelta(days=30 * number), "You", is_askers=True, session_id=session)
        for number, text in enumerate(statements)
    ]
    return render_quotes(asked, rank_quotes(asked, quotes), UTC, ENGLISH_TEXTS).splitlines()


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
what do I pay for parking? | parking is 60 a month | they put parking up to 75 a month | 75
do I still have the parrot? | my parrot is called Rio | we found Rio a new home | new home
am I allergic to nuts? | I'm allergic to nuts | the tests say I'm not allergic to nuts after all | after all
when is band practice? | band practice is on Tuesdays | they moved band practice to Friday | Friday
wann ist das Treffen? | das Treffen ist am 3. Mai | äh nein, das Treffen ist am 4. Mai | 4. Mai
wie hoch ist die Pacht? | die Pacht ist 300 Euro | die Pacht liegt bei 340 Euro | 340
qui est mon dentiste ? | mon dentiste c'est le docteur Roy | le docteur Roy est à la retraite, c'est la docteure Bel | Bel
¿soy vegano? | soy vegano | he vuelto a comer carne | carne
quanto é o estacionamento? | o estacionamento é 90 reais | o estacionamento foi pra 110 reais | 110
сколько я плачу за гараж? | гараж стоит 3 тысячи | гараж подняли до 4 тысяч | 4 тысяч
钢琴课什么时候? | 钢琴课在周六上午 | 钢琴课改到周日上午 | 周日
薬は何mg? | 薬は5mgです | 薬が10mgに増えた | 10mg
우리 아직 나비 키워? | 고양이 나비를 키워 | 나비가 무지개다리를 건넜어 | 무지개
otopark ne kadar? | otopark 200 lira | otopark 250 liraya çıktı | 250
¿adónde vamos en agosto? | en agosto vamos a Menorca | al final no vamos a Menorca, vamos a Asturias | Asturias
aonde vamos em agosto? | em agosto vamos pra Natal | no fim não vamos pra Natal, vamos pra Recife | Recife
where are we going on holiday? | we booked a cabin in Alta for our holiday | swapped Alta for a week in Bodø | Bodø
which code opens the shed? | the shed code is 2040 | the gardenshed lock is reset to 7171 | 7171
wann ist der Werkstatttermin? | der Werkstatttermin ist am 3. Mai | Werkstatt hat angerufen, Termin erst am 9. Mai | 9. Mai
黄金周我们去哪? | 黄金周我们去桂林 | 桂林不去了,改去三亚 | 三亚
내 최애 과자 뭐야? | 내 최애 과자는 새우깡이야 | 요즘은 꼬깔콘이 최애야 | 꼬깔콘
資源ごみの日はいつ? | 資源ごみの日は火曜 | 今週から資源ごみの日は木曜に変わった | 木曜
quando viajo pra Natal? | viajo pra Natal dia 2 de maio | remarquei Natal pro dia 9 de maio | 9 de maio
which e-reader do I have? | reading everything on my Kobo | the Kobo's screen cracked, the kids got me a Paperwhite | Paperwhite
who's our electricity supplier? | we're with Octopus for the electricity | electricity is E.ON as of this month | E.ON
what's the baby called? | the baby's going to be called Rufus | she's here! so Rufus is out, meet Ottilie | Ottilie
how many sets of squats should I do? | physio says two sets of squats a day | physio says three sets from here | three
how do I get to work? | I get to work on an old Raleigh | someone nicked the Raleigh so I take the 47 bus | 47
¿en qué barrio vivo? | comparto piso en Lavapiés | por fin sola, en un estudio en Carabanchel | Carabanchel
wie ist die Nummer vom Vermieter? | unser Vermieter heißt Herr Krause, Telefon 0351 445566 | Herr Krause hat eine neue Nummer, 0351 998877 | 998877
wann ist der Zahnarzttermin? | der Zahnarzttermin ist am 3. Februar | der Zahnarzt hat abgesagt, neuer Termin am 17. Februar | 17.
when does Asha swim? | swimming for Asha is Thursdays at 4:30 | swimming moved to Tuesdays | Tuesdays
どっちを使ってる、ギターとベース? | ギターを使ってる | ギターはやめて、今はベースにしてる | ベース
"""
STAYS = """
where do I live? | I live in Cork | my colleague Sean moved to Galway | Cork
where do I live? | I live in Cork | staying in Dublin for a week | Cork
which instrument do I play? | I play the violin | I used to play the drums | violin
where do we live? | we live in Jena | we nearly moved to Gera | Jena
does Tom take karate? | Ida and Tom both do karate | Ida quit karate | Tom
what am I allergic to? | I'm allergic to penicillin | turns out my flatmate is allergic to latex | penicillin
what's my daughter's name? | my daughter Asha is 7 | we have a cat called Mango | Asha
¿dónde vivo? | vivo en Sevilla con mi pareja Nuria | nos han subido el alquiler a 760 | Sevilla
where do I live? | I live in Leeds | they put the rent up to 900 | Leeds
나 어디 살아? | 나는 대전에 살아 | 남동생 민호는 부산에 살아 | 대전
who lives in Coventry? | my mum lives in Coventry and comes every second Friday | we moved to York last weekend! | Coventry
wo wohnt Lena? | meine Schwester Lena wohnt in Chemnitz | ich bin Jana und wohne jetzt mit Micha in Dresden | Lena
when does Finn have piano? | Finn has piano on Mondays | Jonas has piano on Tuesdays now | Finn
does Ella go to scouts? | Sam and Ella both go to scouts | Sam dropped scouts for judo | Ella
where's my desk? | my desk is on the third floor | first night in Hastings! mattress on the floor, no curtains | desk
wann ist der TÜV? | der TÜV ist am 12. um neun | Nachbar hat sich einen Tesla gekauft | TÜV
who do I bank with? | I bank with Triodos | thought about going to Monzo but can't be bothered | Triodos
what's my rent? | my rent is 850 | Gemma's rent went up to 990 | 850
how do I get to work? | I take the 12 tram to work | by the way, my flatmate cycles to work now | tram
wie komm ich zur Arbeit? | ich fahre mit der S3 zur Arbeit | Jonas fährt jetzt mit dem Rad zur Arbeit | S3
où j'habite ? | j'habite à Metz | je suis à Toulouse jusqu'à vendredi | Metz
¿cuánta insulina tomo? | tomo insulina, 10 unidades | a mi padre le han subido la insulina a 20 unidades | 10
kahveyi nasıl içerim? | kahveyi şekersiz içerim | ablam kahveyi artık sütlü içiyor | şekersiz
我的银行是哪个? | 我的银行是招商银行 | 想换工商银行,后来还是没换 | 招商
どこに住んでいますか? | 名古屋に住んでいます | 健太は大阪に引っ越した | 名古屋
나 무슨 폰 써? | 나는 갤럭시 폰 써 | 아이폰으로 바꿀까 고민하다가 안 바꿨어 | 갤럭시
where does Jake live? | Jake is crashing in Oslo with Mia | I live in Bristol with my partner Jo | Oslo
who do I bank with? | I bank with Triodos | Chase keep emailing me to switch, no chance | Triodos
我养猫吗? | 我养了一只猫 | 王芳把她的猫送人了 | 我养了
"""


def test_question_about_children_is_answered_with_each_child() -> None:
    lines = ask(
        "what are my children called?", "my son Ole is in year two", "my daughter Ida sings"
    )
    assert len(lines) == 2
    assert "no longer so" not in "".join(lines)


def test_second_allergy_is_answered_together_with_the_first() -> None:
    question = "what is Pia allergic to?"
    lines = ask(question, "Pia is allergic to eggs", "turns out Pia can't have soy either")
    assert len(lines) == 2
    assert "no longer so" not in "".join(lines)


def test_neighbouring_messages_are_quoted_together_below_the_best_match() -> None:
    asked = AskedQuestion("which book did Ben like?", START + timedelta(days=60))
    texts = {
        10: "Ben: I liked a book about whales",
        40: "the book fair is in May",
        11: "Moby-Dick",
        9: "which book did you like?",
    }
    quotes = [
        Quote(text, START, "Ben", session_id=7, message_id=key, rank=rank)
        for rank, (key, text) in enumerate(texts.items())
    ]
    lines = render_quotes(asked, rank_quotes(asked, quotes), UTC, ENGLISH_TEXTS).splitlines()
    assert lines == [
        f"- Ben said on 2 March: “{texts[10]}” (session 7)",
        f"- Ben: “{texts[9]}”",
        f"- Ben: “{texts[11]}”",
        f"- Ben said on 2 March: “{texts[40]}” (session 7)",
    ]


@each_row(
    ("statement", "word"),
    [
        ("wir haben nen Schrebergarten am Kanal", "garten"),
        ("die Lesebrille liegt in der Küche", "brille"),
        ("我们去桂林玩", "桂林"),
        ("I work at Delaney's", "delaney"),
    ],
)
def test_follow_up_search_of_a_statement_uses_its_words_and_parts_of_compounds(
    statement: str, word: str
) -> None:
    query = follow_up_query(Quote(statement, START, "You", is_askers=True))
    assert word in query.rstrip("?").split()


@each_row("line", CHANGES.strip().splitlines())
def test_offline_answer_begins_with_the_current_statement_not_the_replaced_one(line: str) -> None:
    question, old, new, now = line.split(" | ")
    first, *rest = ask(question, old, new)
    assert now in first
    assert "no longer so" not in first
    assert all("“" + old + "”" not in other or "said on 2 March" in other for other in rest)


@each_row("line", STAYS.strip().splitlines())
def test_statement_that_replaces_nothing_ranks_below_the_current_one_in_the_answer(
    line: str,
) -> None:
    question, first, second, now = line.split(" | ")
    assert now in ask(question, first, second)[0]


def test_replaced_statement_is_quoted_with_the_month_until_which_it_was_true() -> None:
    lines = ask("what bike do I ride?", "my bike is a Brompton", "sold the Brompton, now a Gazelle")
    assert lines == [
        "- You said on 1 April: “sold the Brompton, now a Gazelle”",
        "- You said on 2 March: “my bike is a Brompton” (until April 2026, no longer so)",
    ]


def test_answer_about_a_fact_changed_several_times_begins_with_the_latest() -> None:
    lines = ask(
        "which shift am I on?", "I'm on the late shift", "now the early shift", "back to late shift"
    )
    assert "back to late" in lines[0]
    assert "no longer so" in lines[1]
    assert "no longer so" in lines[2]


def test_second_cat_does_not_mark_the_first_cat_as_outdated_in_the_answer() -> None:
    lines = ask("what cats do I have?", "I have a cat called Misty", "we got a second cat, Pip")
    assert len(lines) == 2
    assert not any("no longer so" in line for line in lines)


def test_correction_in_the_next_message_marks_the_first_statement_as_outdated() -> None:
    lines = ask("when does my train leave?", "my train leaves at 7:10", "oops, 7:40", session=3)
    assert "7:40" in lines[0]
    assert "7:10” (until April 2026, no longer so" in lines[1]


def test_fact_with_a_future_start_is_current_only_from_that_day() -> None:
    said = ("I work at Lidl", "from 1 June I work at Aldi")
    assert "Lidl" in ask("where do I work?", *said, days=5)[0]
    assert "Aldi" in ask("where do I work?", *said, days=90)[0]


def test_fact_and_its_source_message_are_quoted_once_in_the_answer() -> None:
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
    add_facts(quotes, [fact], (), ENGLISH_TEXTS)
    assert list(quotes.values()) == [quote]
    assert quote.end == "until May 2026, no longer so"


def test_former_fact_whose_successor_is_about_another_person_stands_after_it() -> None:
    question = AskedQuestion("¿mi madre sigue teniendo perro?", START + timedelta(days=9))
    poodle = Quote("mi madre tiene un caniche, Pancho", START, "You", is_askers=True, message_id=1)
    death = Quote(
        "Pancho se murió, mi madre está fatal",
        START + timedelta(days=3),
        "You",
        is_askers=True,
        message_id=2,
    )
    quotes: dict[object, Quote] = {1: poodle, 2: death}
    former = {
        "fact_id": 5,
        "content": "Mi madre tiene un caniche",
        "message_id": 1,
        "is_current": False,
        "ended": "until March 2026, no longer so",
        "replaced_by": 6,
        "said_at": START.isoformat(),
    }
    current = {
        "fact_id": 6,
        "content": "Pancho se murió",
        "message_id": 2,
        "is_current": True,
        "said_at": death.at.isoformat(),
    }

    add_facts(quotes, [former, current], (), ENGLISH_TEXTS)

    assert poodle.replaced_by is death
    assert rank_quotes(question, quotes.values())[:2] == [death, poodle]


def test_long_message_is_quoted_around_its_best_matching_sentence() -> None:
    filler = "The weather was grey and nothing else happened here. " * 8
    (line,) = ask("what colour is the boat?", f"{filler}The boat is green. {filler}")
    assert "The boat is green." in line
    assert len(line) < 420


LIFE = (
    "I live in Truro with my partner Jo",
    "my sister Ana lives in Porto",
    "I work as a nurse at the hospice",
    "Jo works at the town library",
    "my locker code at the gym is 4471",
    "my dentist is Dr Patel on Mill Road",
    "I play badminton on Thursdays at 7",
    "Jake moved in next door",
    "my boss is called Ingrid",
    "we pay 950 rent",
)


@each_row(
    ("question", "answer"),
    [
        ("where does Ana live?", "Porto"),
        ("where do I work?", "nurse"),
        ("who is my dentist?", "Patel"),
        ("who is my boss?", "Ingrid"),
        ("what's my gym locker code?", "4471"),
        ("when do I play badminton?", "Thursdays"),
        ("how much is the rent?", "950"),
        ("where does Jake live?", "Jake"),
    ],
)
def test_statement_that_answers_the_question_ranks_before_others_of_its_topic(
    question: str, answer: str
) -> None:
    lines = ask(question, *LIFE)

    assert answer in lines[0]
    assert not [line for line in lines if "no longer so" in line]


def test_answer_leaves_out_statements_unrelated_to_the_question() -> None:
    lines = ask("where does Ana live?", *LIFE)

    assert not [line for line in lines if "Truro" in line or "rent" in line]


def test_at_most_two_statements_of_the_same_topic_stand_below_the_answer() -> None:
    lines = ask("who is my boss?", *LIFE)

    assert len([line for line in lines if line.startswith("- ")]) <= 3


@each_row(
    ("question", "own", "somebody_elses"),
    [
        ("where do I live?", "I live in Truro", "Jake moved to Bath"),
        ("Wo wohne ich?", "Ich wohne in Jena", "Jonas ist nach Gera gezogen"),
        ("Où est-ce que j'habite ?", "J'habite à Metz", "Marc a déménagé à Nancy"),
        ("¿Dónde vivo?", "Vivo en Gijón", "Marcos se mudó a Lugo"),
        ("Onde moro?", "Moro em Braga", "o Marcos mudou-se para Viseu"),
        ("Где я живу?", "Я живу в Туле", "Марк переехал в Рязань"),
        ("我住在哪里？", "我住在苏州", "小杰搬到杭州了"),
        ("私はどこに住んでいますか？", "札幌に住んでいます", "健太が小樽に引っ越した"),
        ("나 어디 살아?", "나는 대전에 살아", "준이가 세종으로 이사했어"),
        ("Nerede oturuyorum?", "Bursa'da oturuyorum", "Kerem Konya'ya taşındı"),
        ("where do I work?", "I work at Aldi", "my boss has moved to Lidl"),
        ("我在哪里工作？", "我在工商银行上班", "我老板跳槽去招商银行了"),
        ("Wie heißt meine Katze?", "Meine Katze heißt Mimi", "die Katze meiner Oma heißt Flocke"),
        ("qui est mon dentiste ?", "mon dentiste c'est Roy", "le dentiste de ma soeur est Bel"),
        ("¿quién es mi médico?", "mi médico es Salas", "el médico de mi hermana ahora es Rey"),
        ("quem é minha dentista?", "minha dentista é Lívia", "o dentista do meu irmão é Breno"),
        ("кто мой врач?", "Мой врач — Орлова", "у мамы теперь новый врач, Громов"),
        (
            "내 주치의가 누구야?",
            "제 주치의는 박 선생님이에요",
            "엄마 주치의는 이제 최 선생님이에요",
        ),
        ("kedimin adı ne?", "Kedimin adı Pamuk", "komşunun yeni kedisinin adı Zeytin"),
    ],
)
def test_change_of_another_person_does_not_outdate_the_askers_own_statement(
    question: str, own: str, somebody_elses: str
) -> None:
    lines = ask(question, own, somebody_elses)

    assert own in lines[0]
    assert "no longer so" not in lines[0]


@each_row(
    ("question", "own", "quotation"),
    [
        (
            "what's my email?",
            "my email is sam@posteo.net",
            "Priya replied “my email is p@posteo.net”",
        ),
        ("who is my boss?", "my boss is Ingrid", 'mail from Petra: "my new boss is called Lorcan"'),
        (
            "Wer ist mein Hausarzt?",
            "Mein Hausarzt ist Dr. Lenz",
            "Miriam: „Mein neuer ist Dr. Vogt“",
        ),
        (
            "Welches Auto fahre ich?",
            "Ich fahre einen Polo",
            'Jens: "Golf verkauft, fahre jetzt Tesla"',
        ),
        (
            "Où est-ce que je travaille ?",
            "Je travaille à la mairie",
            "Hugo : « je travaille chez Thales »",
        ),
        ("¿Dónde vivo?", "Vivo en Soria", 'Mi prima me puso: "ya me he mudado, vivo en Vigo"'),
        ("Onde eu moro?", "Moro em Belém", 'A Júlia escreveu: "me mudei, agora moro em Natal"'),
        ("Где я работаю?", "Я работаю в школе", "Костя написал: «теперь работаю в банке»"),
        ("我在哪里工作？", "我在学校工作", "小陈说：“我现在在银行工作了”"),
        ("私はどこに住んでいますか？", "名古屋に住んでいます", "妹からLINE「札幌に引っ越したよ」"),
        ("나는 어디에서 일해?", "도서관에서 일해", '지훈이 문자: "나 이제 은행에서 일해"'),
        (
            "Nerede çalışıyorum?",
            "Kütüphanede çalışıyorum",
            'Selin yazdı: "artık bankada çalışıyorum"',
        ),
        ("where do I live?", "I live in Hull", "Auntie's voicemail: hi love, I moved to Bath"),
        (
            "Wo wohne ich?",
            "Ich wohne in Gera",
            "Sprachnachricht von Gerda: ich bin nach Ulm gezogen",
        ),
        ("Où j'habite ?", "J'habite à Metz", "Vocal de tata : j'ai déménagé à Brest"),
    ],
)
def test_quoted_words_of_another_person_never_outdate_the_askers_own_statement(
    question: str, own: str, quotation: str
) -> None:
    lines = ask(question, own, quotation)

    assert own in lines[0]
    assert "no longer so" not in lines[0]


@each_row(
    ("question", "first", "own", "quotation"),
    [
        (
            "what's Nadia's number?",
            "222",
            "my number is 111",
            'Nadia\'s text: "my new number is 222 33"',
        ),
        ("where do I work?", "Lidl", "I work at Aldi", 'I told mum "I\'ve got a new job at Lidl"'),
        ("what's our wifi called?", "Badger", "our wifi is Maple", 'our wifi is now "Badger"'),
        (
            "where do I live?",
            "Goole",
            "I live in Hull",
            "long day.\n\nanyway, we've moved to Goole now",
        ),
    ],
)
def test_quoted_words_count_if_the_question_names_their_speaker_or_the_asker_said_them(
    question: str, first: str, own: str, quotation: str
) -> None:
    assert first in ask(question, own, quotation)[0]


@each_row(
    ("question", "own", "not_meant"),
    [
        (
            "where do I work?",
            "I'm a nurse at Whitegate",
            "I quit for the circus. not really, though",
        ),
        (
            "Wo arbeite ich?",
            "Ich arbeite im Tierheim",
            "Hab gekündigt, werde Astronaut, kleiner Witz",
        ),
        ("Wo wohne ich?", "Ich wohne in Fulda", "Bin auf den Mars gezogen, Spaß"),
        ("Quelle voiture je conduis ?", "Je conduis une Clio", "J'aurais dû vendre la Clio"),
        ("¿Qué coche conduzco?", "Conduzco un León", "Habría vendido el León si pudiera"),
        ("Onde eu moro?", "Moro em Olinda", "me mudei pra Marte, zoeira"),
        ("Где я живу?", "Я живу в Пскове", "переехал на Марс, разыгрываю тебя"),
        ("我住在哪里？", "我住在苏州", "早知道就搬到厦门了"),
        ("私はどこで働いていますか？", "病院で働いています", "銀行に転職していれば楽だったのに"),
        ("나는 어디에 살아?", "수원에 살아", "제주도로 이사했더라면 좋았을 텐데"),
        ("Kedimin adı ne?", "Kedimin adı Pamuk", "Kedinin adı Paşa oldu, dalga geçiyorum"),
        ("where do I live?", "I live in Hull", "If my sister moves to Oslo, she'll be lonely"),
        ("where do I live?", "I live in Hull", "If money were no object I'd live in Maine"),
    ],
)
def test_joke_or_imagined_change_never_outdates_the_askers_statement(
    question: str, own: str, not_meant: str
) -> None:
    lines = ask(question, own, not_meant)

    assert own in lines[0]
    assert "no longer so" not in lines[0]


@each_row(
    ("question", "first", "statements"),
    [
        # A later change of something else, and a person who appears in both statements.
        ("where do I live?", "Plover", ("we live in 5 Plover Mews", "choir's moved to Thursdays")),
        (
            "where do I live?",
            "Court",
            ("moved to 27 Quay Court", "rent's 875, goes out on the 1st"),
        ),
        (
            "Wo wohne ich?",
            "Lübeck",
            ("ich wohne in Lübeck mit Ole", "Ole hat das Zelt zurückgegeben"),
        ),
        (
            "am I allergic to anything?",
            "shellfish",
            (
                "can't do shellfish, my throat closes up",
                "doctor bumped the sertraline up to 100",
            ),
        ),
        ("アレルギーはある？", "そば", ("そばアレルギーがあるんだ", "薬は10mgに増えた")),
        (
            "私の車は何？",
            "ヤリス",
            ("ジムニー売って、ヤリスにした", "自転車置き場の暗証番号は5519"),
        ),
        (
            "where do I work?",
            "Calder",
            (
                "I started at Calder Joinery this week",
                "my shift pattern: 7 till 3, Fridays off",
            ),
        ),
        (
            "who's my vet?",
            "Northgate",
            (
                "the vet for Pip is Northgate, she's a whippet",
                "Orla's got a new teacher, Mr Pascoe",
            ),
        ),
        # Words that the topics lacked.
        (
            "Was vertrage ich nicht?",
            "Haselnüsse",
            (
                "Haselnüsse gehen bei mir gar nicht",
                "der Arzt hat die Dosis erhöht",
            ),
        ),
        (
            "Wo arbeite ich?",
            "Stadtgärtnerei",
            (
                "seit Montag bin ich bei der Stadtgärtnerei",
                "Malte und ich sind ein Paar, er ist Arzt",
            ),
        ),
        (
            "which days do I go to the gym?",
            "Wednesdays",
            (
                "gym on Tuesdays and Fridays",
                "gym's Wednesdays now instead of Tuesdays",
            ),
        ),
        (
            "what days do I have off?",
            "Fridays",
            ("my shift is 7 till 3, Fridays off", "I like tea"),
        ),
        (
            "Was ist Malte von Beruf?",
            "Physiotherapeut",
            (
                "Malte und ich sind ein Paar, er ist Physiotherapeut",
                "seit Montag bin ich bei der Stadtgärtnerei",
            ),
        ),
        # A change of the person leaves the time as it was.
        (
            "when's my physio?",
            "Mondays",
            (
                "physio is Mondays 5pm with Ewan",
                "Ewan's gone, so physio's with Becca now",
            ),
        ),
    ],
)
def test_first_line_is_the_statement_about_what_is_asked_and_still_holds(
    question: str, first: str, statements: tuple[str, ...]
) -> None:
    line = ask(question, *statements, session=1)[0]

    assert first in line
    assert "no longer so" not in line


@each_row(
    ("question", "now", "statements"),
    [
        ("do I still owe Danny money?", "paid", ("I owe Danny 60 quid", "paid Danny back today")),
        (
            "Schulde ich Jochen noch Geld?",
            "gegeben",
            (
                "dem Jochen schulde ich 40 Euro",
                "Jochen hab ich sein Geld gegeben",
            ),
        ),
        ("健太にまだ借りてる？", "返した", ("健太に五千円借りてる", "健太にお金返した")),
        ("血圧の薬は何mg？", "10mg", ("血圧の薬は5mgを飲んでる", "薬は10mgに増えた")),
        (
            "Wo ist meine Oma?",
            "wieder",
            ("meine Oma liegt im Krankenhaus", "Oma ist wieder zu Hause"),
        ),
    ],
)
def test_statement_in_other_words_ends_the_one_about_the_same_thing(
    question: str, now: str, statements: tuple[str, ...]
) -> None:
    lines = ask(question, *statements, session=1)

    assert now in lines[0]
    assert "no longer so" in lines[1]


def test_question_about_a_person_is_answered_with_another_word_for_that_person() -> None:
    lines = ask("who is my manager?", "I work at Aldi", "my boss is Ingrid")

    assert "Ingrid" in lines[0]


@each_row(
    ("question", "first", "statements"),
    [
        (
            "彩はどこに住んでいる？",
            "仙台",
            ("姉の彩は仙台に住んでいる", "美咲と札幌に住んでいます"),
        ),
        (
            "私はどこで働いていますか？",
            "病院",
            ("病院で看護師をしています", "美咲は図書館で働いている"),
        ),
        ("나 어디 살아?", "대전", ("나는 대전에 살아", "내 상사는 박 부장님이야")),
    ],
)
def test_subject_of_a_statement_is_recognized_by_its_particle(
    question: str, first: str, statements: tuple[str, ...]
) -> None:
    assert first in ask(question, *statements)[0]


@each_row(
    ("question", "somebody_elses", "own"),
    [
        ("where do I live?", "Jake moved to Bath", "we moved to Truro"),
        ("Wo wohne ich?", "Jonas ist nach Gera gezogen", "ich bin nach Jena gezogen"),
        ("Onde moro?", "o Marcos mudou-se para Viseu", "mudei-me para Braga"),
        ("나 어디 살아?", "준이가 세종으로 이사했어", "우리 대전으로 이사했어"),
    ],
)
def test_own_move_does_not_end_the_move_of_another_person(
    question: str, somebody_elses: str, own: str
) -> None:
    lines = ask(question, somebody_elses, own)

    assert own in lines[0]
    assert not [line for line in lines if "no longer so" in line]


def test_found_files_are_listed_with_their_place_in_the_readers_language() -> None:
    files = [
        {"file_id": 1, "kind": "document", "name": "v.pdf", "place": "page 7", "snippet": "Kessel"},
        {"file_id": 2, "kind": "voice", "name": "v.ogg", "place": "0:42", "snippet": "Er leckt."},
    ]
    assert render_files(files, load_offline_texts("de")) == (
        "- v.pdf, Seite 7: „Kessel“ (`/files send 1`)\n"
        "- Sprachnachricht, 0:42: „Er leckt.“ (`/files send 2`)"
    )
