"""The compared form of text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.folding import SCOPE, fold, plain, spaced_words, unspaced_pairs, unspaced_runs


def test_words_and_runs_are_kept_apart() -> None:
    assert spaced_words("修改youer服务端").split() == ["youer"]
    assert unspaced_runs("修改youer服务端", None, "ﾃｽﾄ") == "修改 服务端 テスト"
    assert unspaced_pairs("数据库 👍", "x") == "数据 据库 数 据 库 u1f44d"
    assert unspaced_runs("plain words") == unspaced_pairs("plain words") == ""


def test_marks_that_are_optional_in_writing_do_not_count() -> None:
    assert fold("كِتَاب") == "كتاب"
    assert fold("שָׁלוֹם") == "שלום"


def test_nobody_can_write_the_word_of_a_scope() -> None:
    assert fold(f"{SCOPE}7") == "7"


def test_thai_keeps_its_vowels() -> None:
    assert unspaced_runs("ที่ทำงาน at 9") == fold("ที่ทำงาน")


@given(st.text())
def test_plain_knows_where_each_character_came_from(text: str) -> None:
    compared, origins = plain(text)
    places = list(range(len(text))) if origins is None else origins
    assert len(places) == len(compared)
    assert all(0 <= place < len(text) for place in places)
    assert places == sorted(places)
