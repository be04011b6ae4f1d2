"""What counts of a run of Chinese, Japanese, Korean or Thai."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.normalize import fold, language_data
from core.text.terms import apart, asked_terms, run_terms


def test_a_text_gives_pairs_and_single_han_characters() -> None:
    assert run_terms("猫不吃") == ["猫不", "不吃", "猫", "不", "吃"]
    assert run_terms("犬が") == ["犬が", "犬"]
    assert run_terms("フェリー") == ["フェ", "ェリ", "リー"]
    assert run_terms("猫") == ["猫"]


def test_a_korean_word_of_one_letter_is_found_behind_its_particle() -> None:
    assert run_terms("배를") == ["배를", "배"]
    assert run_terms("비밀번호가") == ["비밀", "밀번", "번호", "호가"]


def test_thai_counts_by_pairs_of_syllables() -> None:
    assert run_terms(fold("กะทิ")) == ["กะทิ"]
    assert run_terms(fold("แม่ทำ")) == [fold("แม่ทำ")]
    assert all(term not in ("ไห", "หม") for term in run_terms(fold("เชียงใหม่")))


@pytest.mark.parametrize(
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
def test_of_a_question_what_is_asked_for_is_left(asked: str, terms: list[str]) -> None:
    assert list(asked_terms(asked)) == terms


def test_a_character_is_apart_from_what_is_no_word() -> None:
    assert apart(["决定", "给猫", "母さ", "决", "猫", "母"]) == ["决定", "给猫", "母さ", "猫", "母"]


@pytest.mark.parametrize("name", list(language_data("cjk")))
def test_the_lists_are_in_folded_form(name: str) -> None:
    text = language_data("cjk")[name]
    assert fold(text) == text


@given(st.text(st.sampled_from("的了什么猫犬のはかたカー가나를뭐เมื่อไห\u0ec4\u1780\u17d2\u1039々"), min_size=1))
def test_any_run_has_terms(run: str) -> None:
    assert run_terms(run)
    assert all(run_terms(run))
    assert all(asked_terms(run))
