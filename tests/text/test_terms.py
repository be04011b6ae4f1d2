"""The terms of a text, spaced and unspaced, the names in it, and small talk."""

# ruff: noqa: RUF001
from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.search.results import Highlighter
from core.text.normalize import fold, indexed_words, language_data
from core.text.runs import drop_covered_characters, question_run_terms, run_terms
from core.text.terms import (
    MAX_NAME_CHARS,
    MAX_NAMES,
    asks_when,
    date_terms,
    entity_key,
    entity_keys_in,
    highlight_patterns,
    irregular_forms,
    is_about_self,
    is_smalltalk,
    moment_terms,
    names_in,
    query_terms,
    stem,
    terms_of,
)
from tests.fixtures.tables import each_row


def test_search_terms_drop_stop_words_and_reduce_word_forms_to_one_stem() -> None:
    assert terms_of("We DECIDED to take the ferries, didn't we?") == terms_of("decide taking ferry")
    assert query_terms("What did we decide about the ferry, the ferry?") == ["decid", "ferri"]
    assert query_terms("who are you") == []


def test_search_terms_ignore_accents_and_character_width() -> None:
    assert terms_of("Café Résumé") == terms_of("cafe resume")
    assert terms_of("\uff32edis") == terms_of("redis")


@each_row(
    ("written", "term"),
    [
        ("#holiday!", "u23holiday"),
        ("in C++17", "cu2bu2b"),
        ("(C#)", "cu23"),
        ("uses .NET", "u2enet"),
        ("我用C++写", "cu2bu2b"),
    ],
)
def test_emoji_or_symbol_attached_to_a_word_becomes_a_search_term_of_its_own(
    written: str, term: str
) -> None:
    assert term in terms_of(written)
    assert term in indexed_words(written)
    assert terms_of(written)[0] in ("holidai", "c", "us", "net")


@each_row(
    "written",
    ["# title", "a.b", "...and", "x += 1", "site/#top", "&#39;", "2 + + 3", "end.", "3 .5"],
)
def test_sign_outside_of_a_word_makes_no_search_term(written: str) -> None:
    assert not [term for term in terms_of(written) if "u2" in term]


def test_unspaced_scripts_count_by_pairs_and_emoji_by_themselves() -> None:
    assert terms_of("修改youer 👍") == [*terms_of("youer"), "修改", "修", "改", "u1f44d"]
    assert terms_of("数据库 缓") == ["数据", "据库", "数", "据", "库", "缓"]


def test_questions_in_unspaced_scripts_lose_their_question_words() -> None:
    assert query_terms("Redis缓存什么时候过期？") == [
        *terms_of("redis"),
        "缓存",
        "过期",
        "缓",
        "存",
        "期",
    ]
    assert query_terms("什么时候？") == terms_of("什么时候？")
    assert len(query_terms("北京上海广州深圳" * 20 + "去")) <= 64
    assert all(len(term) == 2 for term in query_terms("甲乙丙丁戊己庚辛" * 20)[:8])


def test_search_terms_of_a_date_equal_those_of_its_written_words() -> None:
    assert date_terms(date(2023, 5, 8)) == tuple(terms_of("monday 8 may 2023"))


def test_question_about_a_time_is_recognised_in_each_script() -> None:
    assert asks_when("When did she go?")
    assert asks_when("On what date was it, and how long?")
    assert not asks_when("What did she do whenever?")
    assert all(map(asks_when, ("什麼時候？", "フェリーはいつ", "언제였지?", "เมื่อไหร่", "９月何日")))
    assert not asks_when("猫在哪里？")
    assert {"yesterdai", "mondai", "月", "요일"} <= moment_terms()


@each_row(
    "text",
    ["what did i say?", "Is my dentist open?", "Wann habe ich den Termin?", "Où est-ce que j'ai vu le film ?",
     "¿Cuándo fue mi cita?", "Benim doktorum kim, ne zaman?", "Когда у меня встреча?",
     "我什麼時候去北京？", "私の猫はどこ", "내 고양이 어디"],
)  # fmt: skip
def test_question_about_the_person_is_recognized_as_such(text: str) -> None:
    assert is_about_self(text)


@each_row(
    "text",
    ["When did Ana go?", "Quali sono i libri che ha letto Anna?", "¿Dónde vive la tía de Ana?", "Kto to jest?",
     "Wo wohnt Mia?", "Когда встреча?", "他什么时候去北京", "언제 했나", "Who is Ben?", "",
     "Who was ill?", "iPhone im Angebot?", "컴퓨터에 무슨 문제가 있었어?", "누나의 생일은?", "自我介绍",
     "私立学校", "ร้านตัดผม"],
)  # fmt: skip
def test_question_about_others_is_not_about_the_person(text: str) -> None:
    assert not is_about_self(text)


def test_every_form_of_a_searched_word_is_marked() -> None:
    marker = Highlighter(highlight_patterns(query_terms("decide going ferry")))
    text = "She went, they decided: ferries and a ferry"
    assert [text[start:end] for start, end in marker.find_spans(text)] == [
        "went",
        "decided",
        "ferries",
        "ferry",
    ]


def test_single_han_character_is_highlighted_only_outside_of_longer_terms() -> None:
    marks = highlight_patterns(query_terms("家长会是几点，给猫的药"))
    assert {"家长", "长会", "猫", "药"} <= set(marks)
    assert not {"家", "长"} & set(marks)


@pytest.mark.slow
@given(st.text())
def test_terms_of_any_text_are_words_and_bounded(text: str) -> None:
    assert all(term and not any(letter.isspace() for letter in term) for term in terms_of(text))
    assert len(query_terms(text * 50)) <= 64


WORDS = """
caresses ponies ties caress cats feed agreed plastered bled motoring sing conflated troubled sized hopping
tanned falling hissing fizzed failing filing happy sky relational conditional rational valency hesitancy
digitizer radically differently vilely analogously vietnamization predication operator feudalism
decisiveness hopefulness callousness formality sensitivity sensibility triplicate formative formalize
electricity electrical hopeful goodness revival allowance inference airliner gyroscopic adjustable defensible
irritant replacement adjustment dependent adoption communism activate angularity homologous effective
bowdlerize probate rate cease controlling rolling ferries yesterday playing enjoyed crying dying
lying oscillators generalizations ion onion by is us as
"""


def _of_fts5(words: list[str]) -> dict[str, str]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(
            "CREATE VIRTUAL TABLE stems USING fts5(word, tokenize = 'porter unicode61')"
        )
        connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab('stems', 'instance')")
        connection.executemany("INSERT INTO stems (rowid, word) VALUES (?, ?)", enumerate(words))
        return {words[row[1]]: row[0] for row in connection.execute("SELECT term, doc FROM terms")}


def test_stemmer_gives_the_stems_of_porters_algorithm() -> None:
    expected = _of_fts5([word for word in WORDS.split() if word not in irregular_forms()])
    assert len(expected) > 80
    assert {word: stem(word) for word in expected} == expected


def test_irregular_english_forms_have_the_stem_of_their_base_form() -> None:
    assert stem("went") == stem("going") == stem("go")
    assert stem("bought") == stem("buying") == stem("buy")
    assert stem("children") == stem("child")


@pytest.mark.slow
@given(st.text())
def test_stemming_accepts_any_text(word: str) -> None:
    assert isinstance(stem(word), str)


@each_row(
    ("text", "terms"),
    [
        ("猫不吃", ["猫不", "不吃", "猫", "不", "吃"]),
        ("犬が", ["犬が", "犬"]),
        ("フェリー", ["フェ", "ェリ", "リー"]),
        ("猫", ["猫"]),
        # A Korean word of one letter is also indexed without its particle.
        ("배를", ["배를", "배"]),
        ("비밀번호가", ["비밀", "밀번", "번호", "호가"]),
    ],
)
def test_unspaced_text_is_indexed_as_character_pairs_and_single_han_characters(
    text: str, terms: list[str]
) -> None:
    assert run_terms(text) == terms


def test_thai_text_is_indexed_by_pairs_of_syllables() -> None:
    assert run_terms(fold("กะทิ")) == ["กะทิ"]
    assert run_terms(fold("แม่ทำ")) == [fold("แม่ทำ")]
    assert all(term not in ("ไห", "หม") for term in run_terms(fold("เชียงใหม่")))


@each_row(
    ("asked", "terms"),
    [
        ("我们上次决定什么时候去北京", ["决定", "去北", "北京", "决", "定", "北", "京"]),
        ("给猫的药一天吃几次", ["给猫", "药一", "一天", "天吃", "猫", "药", "吃"]),
        ("目的是什么", ["目的", "目"]),
        ("犬の足はどうなった", ["犬", "足"]),
        ("フェリーの予约はいつだった", ["フェ", "ェリ", "リー", "予约", "予", "约"]),
        ("りんごを", ["りん", "んご", "ごを"]),
        ("取り消したか", ["取り", "取", "消"]),
        ("비밀번호는", ["비밀", "밀번", "번호"]),
        ("뭐였지", []),
        ("배를", ["배를", "배"]),
        ("什么时候", []),
        ("อะไร", []),
    ],
)
def test_terms_of_an_unspaced_question_leave_out_the_question_words(
    asked: str, terms: list[str]
) -> None:
    assert list(question_run_terms(asked)) == terms


def test_single_han_character_is_dropped_from_the_terms_only_if_a_longer_han_term_covers_it() -> (
    None
):
    assert drop_covered_characters(["决定", "给猫", "母さ", "决", "猫", "母"]) == [
        "决定",
        "给猫",
        "母さ",
        "猫",
        "母",
    ]


@each_row("name", list(language_data("cjk")))
def test_word_lists_for_unspaced_scripts_are_stored_in_folded_form(name: str) -> None:
    text = language_data("cjk")[name]
    assert fold(text) == text


@pytest.mark.slow
@given(
    st.text(
        st.sampled_from("的了什么猫犬のはかたカー가나를뭐เมื่อไห\u0ec4\u1780\u17d2\u1039々"),
        min_size=1,
    )
)
def test_run_of_eastern_text_has_search_terms(run: str) -> None:
    assert run_terms(run)
    assert all(run_terms(run))
    assert all(question_run_terms(run))


@each_row(
    ("text", "names"),
    [
        ("My sister Ana lives in Porto", ("Ana", "Porto")),
        ("Ana's birthday is on 3 May", ("Ana",)),
        ("I met Dr Moreira in New York on Monday", ("Moreira", "New York")),
        ("We decided to use PostgreSQL", ("PostgreSQL",)),
        ("Ana, Ben and Ana", ("Ana", "Ben")),
        ("nothing here", ()),
        ("I am", ()),
        ("", ()),
    ],
)
def test_names_in_a_text_are_recognised_by_their_capitals(
    text: str, names: tuple[str, ...]
) -> None:
    assert names_in(text) == names


@each_row(
    ("one", "other"),
    [("Ana", "ana"), ("Ana's", "ANA"), ("São Paulo", "sao  paulo"), ("O’Brien", "o'brien")],
)
def test_different_spellings_of_one_name_have_the_same_entity_key(one: str, other: str) -> None:
    assert entity_key(one) == entity_key(other) != ""


def test_entity_keys_of_a_question_include_names_but_no_ordinary_words() -> None:
    keys = entity_keys_in("What does ana silva do?")
    assert "ana silva" in keys
    assert "ana" in keys
    assert "what" not in keys
    assert entity_keys_in("") == ()


@pytest.mark.slow
@given(st.text(max_size=500))
def test_every_name_in_a_text_is_found_by_asking_with_that_text(text: str) -> None:
    names = names_in(text)
    assert len(names) <= MAX_NAMES
    assert all(0 < len(name) <= MAX_NAME_CHARS for name in names)
    assert len(entity_keys_in(text)) <= 240


SMALL = """
ok|OK!|Okay, thanks a lot!!|thx|👍|👍🏽❤️|lol|danke|Vielen Dank!|¡Gracias!|merci beaucoup|да, спасибо|ありがとう
ありがとうございます！|はい|谢谢你！|好的，谢谢|감사합니다|شكراً|धन्यवाद|ขอบคุณครับ|Obrigada|grazie mille
teşekkürler|...|good morning|hahahaha|yesss|okkk|thaaanks|sounds good 👍|will do|You’re welcome|danke dir
alles klar, danke|D’accord merci|ça marche|muchísimas gracias|tá bom, valeu|va bene, grazie
хорошо, спасибо|понял, спс|ахахаха
好的谢谢|哈哈哈哈哈|嗯嗯嗯|了解しました、ありがとう|ㅋㅋㅋㅋ|네 감사합니다|شكرا جزيلا|cảm ơn bạn|terima kasih banyak
ขอบคุณมากครับ|köszönöm szépen|ok bye, see you later|ok, no problem, thanks
gute Nacht|au revoir|hasta pronto|até mais|до встречи|明天见|さようなら|잘 자|iyi geceler|hoşça kal
"""
ABOUT = """
where is the key?|key|Porto|ok, where is it|thanks for the soup|42|danke für die Suppe|где ключ|鍵はどこ|钥匙在哪里
the good harbour|why|what did I say yesterday?|/x|Ana|はいからさん
why?|Rex?|东京?|how?|when|Will?|May|港口|東京は？|好吃吗|谢谢餐厅在哪|why not?|and then?|PIN?|Tom|где?|почему?|wann|où ?
なぜ？|什么时候|対馬|早稲田|了解事项|哈尔滨|行李|对马|tomorrow?|大阪|안경|왜?|لماذا|क्यों|ทำไม|1984|k8s|笑点|will it do?
"""


@each_row("text", [*SMALL.strip().replace("\n", "|").split("|"), "", "  "])
def test_small_talk_is_recognised_in_each_language(text: str) -> None:
    assert is_smalltalk(text)


@each_row("text", ABOUT.strip().replace("\n", "|").split("|"))
def test_question_about_the_past_is_not_smalltalk(text: str) -> None:
    assert not is_smalltalk(text)


def test_long_repetition_does_not_count_as_small_talk() -> None:
    assert is_smalltalk("ok " * 20)
    assert not is_smalltalk("ok " * 100)
