"""What a message says about change, in ten languages, and what it is about."""

# ruff: noqa: RUF001

from __future__ import annotations

from datetime import date

from core.facts.changes import languages_of, read_changes, starts_later, topic_query, topics_of
from core.text.normalize import fold, language_data, plain_with_offsets
from tests.fixtures.tables import each_row

LATIN_LANGUAGES = ("english", "german", "french", "spanish", "portuguese", "turkish")

REPLACES = """
We've sold the boat
I switched to decaf in spring
He's no longer my landlord
from today on I start at seven
Wir haben die Katze abgegeben
Ich trinke keinen Kaffee mehr
J'ai vendu mon vélo
Je ne mange plus de pain
Hemos vendido la moto
Ya no fumo
Vendi a bicicleta
Não bebo mais refrigerante
Мы продали дачу
Больше не курю
我把车卖了
我不再喝咖啡了
自転車を売った
コーヒーをやめた
자전거를 팔았어
담배 끊었어
Bisikleti sattım
Artık sigara içmiyorum
"""
HOLDS_NOT = """
temporary | I'm at my aunt's this week
temporary | Diese Woche schlafe ich bei Jonas
temporary | Je suis à Lille jusqu'à vendredi
temporary | Estoy en León hasta el lunes
temporary | Fico em Recife até domingo
temporary | До среды я у бабушки
temporary | 这周我在北京出差
temporary | 今週は実家にいます
temporary | 이번 주는 부산에 있어
temporary | Bu hafta annemdeyim
past | I used to play the trumpet
past | Früher habe ich Geige gespielt
past | Quand j'étais petit, je jouais du piano
past | De niño tocaba la guitarra
past | Antigamente eu tocava violão
past | Раньше я играл на скрипке
past | 我小时候弹钢琴
past | 昔はピアノを弾いていた
past | 예전에는 피아노를 쳤어
past | Eskiden keman çalardım
unreal | The transfer to Leeds is off
unreal | The dentist in Devon had no places
unreal | Aus dem Umzug wird nichts
unreal | Le déménagement a été annulé
unreal | La mudanza se canceló
unreal | A mudança não foi para a frente
unreal | Переезд отменился
unreal | 搬家的事泡汤了
unreal | 転勤の話は立ち消えになった
unreal | 이사는 없던 일이 됐어
unreal | Taşınma işi yattı
unreal | We nearly bought a house in Devon
unreal | Fast hätten wir ein Haus gekauft
unreal | On a failli acheter une maison
unreal | Casi compramos una casa
unreal | Quase compramos uma casa
unreal | Мы чуть не купили дом
unreal | 我们差点买了房子
unreal | 家を買おうか迷ったけどやめた
unreal | 집을 살까 고민했어
unreal | Neredeyse ev alıyorduk
"""
CORRECTS = """
no wait, I meant the blue one
Nein warte, ich meinte Dienstag
pardon, je voulais dire mardi
perdón, quise decir el martes
desculpa, quis dizer terça
ой, я перепутал, во вторник
说错了,是星期二
ごめん、火曜の間違い
아니 화요일이야, 착각했어
pardon, salı demek istedim
"""


@each_row("text", REPLACES.strip().splitlines())
def test_message_about_a_change_is_read_as_replacing_the_earlier_fact(text: str) -> None:
    assert read_changes(text).replaces


@each_row("line", HOLDS_NOT.strip().splitlines())
def test_temporary_past_or_unreal_statement_replaces_nothing(line: str) -> None:
    kind, text = line.split(" | ")
    reading = read_changes(text)
    assert kind in reading.kinds
    assert not reading.replaces


@each_row("text", CORRECTS.strip().splitlines())
def test_text_of_a_correction_is_recognized_as_one(text: str) -> None:
    assert "correction" in read_changes(text).kinds


@each_row(
    "text",
    [
        "The neighbour drives a Volvo",
        "Die Nachbarin spielt jetzt Cello",
        "la voisine a changé de voiture",
        "a Lucía le han dado un piso en Cádiz",
        "a vizinha adotou um gato",
        "여동생은 요가로 바꿨대",
    ],
)
def test_change_statement_that_begins_with_another_person_is_about_that_person(text: str) -> None:
    assert "other" in read_changes(text).kinds


def test_korean_city_name_that_ends_like_the_word_before_is_not_read_as_past() -> None:
    assert "past" not in read_changes("나는 대전에 살아").kinds


def test_plain_statement_is_not_read_as_replacing_an_earlier_fact() -> None:
    for text in ("The ferry leaves at nine.", "Ich mag Käse", "我喜欢茶", "お茶が好きです"):
        assert not read_changes(text).replaces


def test_change_words_of_other_languages_are_not_matched() -> None:
    """In Spanish, "he" is no person, and in German, "fast" doesn't mean quick."""
    assert "other" not in read_changes("he cambiado de banco, ahora es el azul").kinds
    assert "unreal" not in read_changes("I run fast and I like it").kinds


@each_row(
    ("text", "topic"),
    [
        ("we rent a flat in York", "home"),
        ("wo wohnst du?", "home"),
        ("你住在哪里", "home"),
        ("どこで働いていますか", "work"),
        ("나 결혼했어", "partner"),
        ("yeni telefon numaram 0532 111 22 33", "phone"),
        ("write to ana@example.org", "email"),
    ],
)
def test_the_topic_of_a_text_is_recognized(text: str, topic: str) -> None:
    assert topic in topics_of(text)


def test_a_topic_is_searched_in_the_language_of_the_question() -> None:
    words = topic_query("En qué piso vivo ahora y con quién").split(" OR ")
    assert "mudanza" in words
    assert "rent" not in words
    assert topic_query("the weather is fine") == ""


def test_fact_from_a_future_day_counts_as_future_only_until_that_day() -> None:
    text = "from 1 May I'm at the bakery"
    assert starts_later(text, date(2026, 2, 3), date(2026, 4, 30))
    assert not starts_later(text, date(2026, 2, 3), date(2026, 5, 1))
    assert not starts_later("I'm at the bakery", date(2026, 2, 3), date(2026, 4, 30))
    assert not starts_later("living in Leith as of last night", date(2026, 2, 3), date(2026, 2, 6))


def test_swap_for_a_short_period_is_read_as_a_change_and_not_as_temporary() -> None:
    kinds = read_changes("swapped Alta for a week in Bodø").kinds
    assert {"swap", "change"} <= kinds
    assert "temporary" not in kinds
    assert "temporary" in read_changes("staying in Alta for a week").kinds


@each_row(
    ("text", "language"),
    [
        ("le judo de Nino passe au mercredi", "french"),
        ("nos cobran 620 de alquiler", "spanish"),
        ("o médico subiu a losartana pra 100", "portuguese"),
        ("kocam Serkan tesisatçı", "turkish"),
        ("ich nehme morgens 5 mg Ramipril", "german"),
        ("mum has a spaniel called Biscuit", "english"),
    ],
)
def test_short_text_in_latin_letters_has_the_language_with_most_signs(
    text: str, language: str
) -> None:
    assert languages_of(text) == (language,)


@each_row(
    ("text", "topics"),
    [
        ("we've a Fabia on lease", {"car"}),
        ("the lease on the flat runs out", {"home"}),
        ("my youngest, Freddie, turned six last week", {"age"}),
        ("unsere Große ist jetzt acht", {"age"}),
        ("Leo cumplió nueve en enero", {"age"}),
    ],
)
def test_topics_of_a_text_follow_its_unambiguous_words(text: str, topics: set[str]) -> None:
    assert topics_of(text) == topics


def test_name_inside_of_a_question_is_not_a_verb_of_its_writer() -> None:
    assert "speaker" not in read_changes("¿cuántos años tiene Leo?").kinds


def test_expressions_have_only_letters_that_remain_in_a_compared_text() -> None:
    # Texts are compared without accents and with "ss" for "ß", so "heißt" would never be found.
    lists = language_data("changes", "core.facts")
    for language in (*LATIN_LANGUAGES, "russian"):
        for kind, expressions in lists[language].items():
            for character in set("".join(expressions)) - {"’"}:
                compared = plain_with_offsets(fold(character))[0].casefold()
                assert not character.isalpha() or compared.casefold() == character.casefold(), (
                    f"{character!r} in {kind} of {language}"
                )
