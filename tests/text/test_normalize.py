"""Text as it is compared, and as a terminal may show it."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable
from typing import SupportsIndex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text import normalize
from core.text.languages import script_form
from core.text.normalize import (
    SCOPE_MARKER,
    NormalForm,
    comparison_form,
    end_sentence,
    fold,
    folding_replacements,
    indexed_words,
    is_unspaced,
    isolate_right_to_left,
    isolate_title,
    join_sentences,
    make_stream_safe,
    plain_with_offsets,
    quote_at_end,
    split_unspaced,
    strip_controls,
    to_normal_form,
    to_single_line,
    words_of,
)
from core.text.terms import terms_of
from tests.fixtures.growth import assert_linear
from tests.fixtures.tables import each_row

HAN = {one: simplified for one, simplified in folding_replacements()[1].items() if one >= "\u2e80"}


def test_words_and_unspaced_character_runs_are_indexed_separately() -> None:
    assert indexed_words("修改youer服务端").split() == [
        "youer",
        "修改",
        "修",
        "改",
        "服务",
        "务端",
        "服",
        "务",
        "端",
    ]
    assert indexed_words("ﾃｽﾄ").split() == ["テス", "スト", "テ", "ス", "ト"]
    assert indexed_words("数据库 👍").split() == ["数据", "据库", "数", "据", "库", "u1f44d"]
    assert indexed_words("plain words") == "plain words"
    assert indexed_words(None) == ""


def test_optional_arabic_and_hebrew_vowel_marks_are_removed_by_folding() -> None:
    assert fold("كِتَاب") == "كتاب"
    assert fold("שָׁלוֹם") == "שלום"


def test_traditional_and_japanese_forms_count_as_simplified() -> None:
    assert fold("資料庫裡的圖書館，後來發現頭髮") == "资料库里的图书馆,后来发现头发"
    assert fold("図書館") == fold("圖書館") == fold("图书馆")
    assert fold("駅と気と桜と渋谷") == "驿と气と樱と涩谷"
    assert fold("帳號") == fold("账号")
    assert fold("計畫") == fold("計劃") == fold("计划")
    assert fold("働く込む畑欠弁才沪") == "働く込む畑欠弁才沪"


def test_each_traditional_han_character_maps_to_one_simplified_character() -> None:
    assert len(HAN) > 3_000
    assert not HAN.keys() & set(HAN.values())
    assert all(unicodedata.normalize("NFKC", one) == one for pair in HAN.items() for one in pair)


@each_row("text", ["，？！：\u3000；（）\uff21\uff11", "ﾊﾟｽﾜｰﾄﾞ", "ﬁne ½", "한글", "\uff1a\u0338"])
def test_full_width_characters_fold_to_their_unicode_nfkc_form(text: str) -> None:
    assert fold(text) == unicodedata.normalize("NFKC", text)


@given(
    st.text(st.sampled_from("".join(a + b for a, b in HAN.items()) + "，？aあ가ﾊﾞ゛\u0651\u200d"))
)
@pytest.mark.slow
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


def test_character_of_several_signs_is_compared_as_one() -> None:
    assert plain_with_offsets("ﾊﾟｽﾜｰﾄﾞを") == ("パスワードを", [0, 2, 3, 4, 5, 7])
    assert plain_with_offsets(unicodedata.normalize("NFD", "비밀 가")) == ("비밀 가", [0, 2, 5, 6])
    assert plain_with_offsets("資料庫") == ("资料库", None)
    assert plain_with_offsets("OK 我 ของฉัน") == ("ok 我 ของฉัน", None)
    assert plain_with_offsets("ทำ") == ("ทํา", [0, 1, 1])


def test_scope_marker_in_a_text_is_removed() -> None:
    assert fold(f"{SCOPE_MARKER}7") == "7"


def test_thai_words_keep_their_vowels_when_indexed() -> None:
    assert "".join(indexed_words("ที่ทำงาน at 9").split()[-len(fold("ที่ทำงาน")) :]) == fold("ที่ทำงาน")


@pytest.mark.slow
@given(st.text())
def test_plain_text_offsets_point_to_the_original_position_of_each_character(text: str) -> None:
    compared, origins = plain_with_offsets(text)
    places = list(range(len(text))) if origins is None else origins
    assert len(places) == len(compared)
    assert all(0 <= place < len(text) for place in places)
    assert places == sorted(places)


@each_row(
    ("written", "typed"),
    [
        ("Ёлка", "Елка"),
        ("θάλασσα", "θαλασσα"),
        ("أحمد إلى", "احمد الي"),
        ("کتاب", "كتاب"),
        ("Đà", "Dà"),
        ("Łódź", "Lódź"),
    ],
)
def test_letters_often_typed_without_their_sign_are_folded_together(
    written: str, typed: str
) -> None:
    assert fold(written) == fold(typed)


def test_a_word_of_an_indian_script_is_not_cut_at_its_vowels() -> None:
    assert words_of(fold("हम दिल्ली कब जाएंगे? தமிழ்")) == ["हम", "दिल्ली", "कब", "जाएंगे", "தமிழ்"]


@each_row(
    ("text", "shown"),
    [
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("windows\r\nlines", "windows\nlines"),
        ("\x1b]0;owned\x07title\x1b[2J", "]0;ownedtitle[2J"),
        ("over\rwritten\x08\x7f\x9b1m", "overwritten1m"),
        ("file\u202egpj.exe\u2066\u2069", "filegpj.exe"),
        ("👩‍👩‍👧 שלום ‏", "👩‍👩‍👧 שלום ‏"),
    ],
)
def test_control_sequences_are_stripped_from_text_for_the_terminal(text: str, shown: str) -> None:
    assert strip_controls(text) == shown


def test_name_with_line_breaks_and_control_characters_becomes_a_single_line() -> None:
    assert to_single_line(" Ana\r\n\u2028the\t\x1bowner ") == "Ana the owner"


def test_every_character_without_spaces_is_cut_out_of_the_words() -> None:
    apart = [character for character in map(chr, range(0xFFFF)) if is_unspaced(character)]
    assert len(apart) > 40_000
    assert [
        character
        for character in apart
        if not split_unspaced(character)[1] and fold(character) == character
    ] == []


def test_plain_text_of_arabic_with_vowel_signs_keeps_character_positions() -> None:
    text = "مُحَمَّد"
    compared, places = plain_with_offsets(text)
    assert compared == fold(text)
    assert places is not None
    assert "".join(text[place] for place in places) == compared


# --- Long runs of combining marks ---

MARKS = "\u0301\u0336\u0323\u0344\u0f73\u3099\uff9e\U0001d167"
ZALGO = "a" + "\u0301\u0336" * 90_000


def longest_run(text: str) -> int:
    """The most combining marks that follow each other in the decomposed text."""
    longest = run = 0
    for sign in unicodedata.normalize("NFKD", text):
        run = run + 1 if unicodedata.combining(sign) else 0
        longest = max(longest, run)
    return longest


@pytest.mark.slow
@given(st.text(st.sampled_from(f"aᾂé{MARKS} 𐌰数"), max_size=200))
def test_no_run_of_marks_in_a_stream_safe_text_is_longer_than_30(text: str) -> None:
    safe_text = make_stream_safe(text)
    assert longest_run(safe_text) <= 30
    if longest_run(text) <= 30:
        assert safe_text == text
    bare_text = safe_text.replace("\u034f", "")
    assert unicodedata.normalize("NFD", bare_text) == unicodedata.normalize("NFD", text)


def test_letters_and_marks_before_the_31st_mark_stay_together() -> None:
    thirty = "\u0301" * 30
    assert make_stream_safe(f"a{thirty}b") == f"a{thirty}b"
    assert make_stream_safe(f"a{thirty}\u0301b") == f"a{thirty}\u034f\u0301b"
    # The letter itself brings two marks.
    assert make_stream_safe(f"ᾲ{thirty}") == f"ᾲ{thirty[:28]}\u034f{thirty[28:]}"


def test_character_that_decomposes_to_a_combining_mark_counts_as_a_combining_mark() -> None:
    for code in range(sys.maxunicode + 1):
        sign = chr(code)
        first = unicodedata.normalize("NFKD", sign)[0]
        if unicodedata.combining(first):
            assert make_stream_safe(sign * 31) != sign * 31, hex(code)


@pytest.mark.parametrize("form", [fold, comparison_form, indexed_words, terms_of, script_form])
@pytest.mark.slow
def test_180_000_marks_behind_a_letter_are_compared_in_linear_time(
    form: Callable[[str], object],
) -> None:
    # Sorting the marks of one run took 24 seconds.
    assert_linear(form, ZALGO)


class CopiedText(str):
    """A text that counts the characters of all slices that are taken from it."""

    copied_chars = 0

    def __getitem__(self, place: SupportsIndex | slice) -> str:
        part = super().__getitem__(place)
        self.copied_chars += len(part)
        return part


def test_text_with_many_runs_of_marks_is_copied_only_once() -> None:
    texts = [CopiedText(("a" + "\u0301\u0336" * 20) * count) for count in (100, 400)]
    for text in texts:
        assert len(make_stream_safe(text)) > len(text)
    copied, copied_of_four = (text.copied_chars for text in texts)
    assert copied_of_four <= 5 * copied


def test_a_word_under_too_many_marks_is_the_same_word() -> None:
    struck_out = "f" + "\u0336\u0301" * 40 + "erry"
    assert terms_of(struck_out) == terms_of("ferry")
    assert comparison_form(struck_out) == "ferry"


@each_row(
    ("text", "quoted"), [("likes tea", "“likes tea”."), ("Likes tea.", "“Likes tea.”"), ("", "“”.")]
)
def test_quotation_at_the_end_of_a_sentence_has_only_one_full_stop(text: str, quoted: str) -> None:
    assert quote_at_end(text) == quoted


@each_row(
    ("text", "ended"),
    [
        ("no answer", "no answer."),
        ("Really?", "Really?"),
        ("连接中断", "连接中断。"),
        ("끊겼어요", "끊겼어요."),
        ("", ""),
    ],
)
def test_text_without_an_end_gets_the_full_stop_of_its_script(text: str, ended: str) -> None:
    assert end_sentence(text) == ended


@pytest.mark.slow
@given(
    text=st.text(st.sampled_from("aé\u0301\u0336\u1112\u1161\u11ab한カ\uff9e\u0f73\ufdfa漢，ﬁ "))
)
def test_text_that_is_normalized_in_pieces_is_the_same_as_in_one(text: str) -> None:
    forms: tuple[NormalForm, ...] = ("NFC", "NFD", "NFKC", "NFKD")
    whole = [fold(text), *(to_normal_form(form, text) for form in forms)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalize, "NORMALIZED_PIECE_CHARS", 2)
        assert [fold(text), *(to_normal_form(form, text) for form in forms)] == whole


def test_text_is_never_cut_before_a_character_that_combines_with_the_previous_one() -> None:
    for code in range(sys.maxunicode + 1):
        pair = unicodedata.decomposition(chr(code)).split()
        if len(pair) == 2 and not pair[0].startswith("<"):
            assert not normalize._never_combines(chr(int(pair[1], 16)))


@each_row(
    ("text", "shown"),
    [
        ("12: ברכה (3 May)", "12: \u2068ברכה\u2069 (3 May)"),
        ("- Ana: شكر، 3 May", "- Ana: \u2068شكر،\u2069 3 May"),
        ("“ברכה” · 7 · “אדם”", "“\u2068ברכה\u2069” · 7 · “\u2068אדם\u2069”"),
        ("ברכה, 3 May", "ברכה, 3 May"),
        ("ポルト 12, เที่ยว", "ポルト 12, เที่ยว"),
        ("Porto\nברכה", "Porto\nברכה"),
    ],
)
def test_right_to_left_words_are_isolated_by_unicode_marks_in_left_to_right_text(
    text: str, shown: str
) -> None:
    assert isolate_right_to_left(text) == shown


def test_title_with_right_to_left_words_is_isolated_as_a_whole() -> None:
    assert isolate_title("ברכה 12") == "\u2068ברכה 12\u2069"
    assert isolate_title("Fähre 12") == "Fähre 12"


def test_sentences_are_joined_with_spaces_but_not_after_full_width_marks() -> None:
    assert join_sentences(["One.", "", "Two."]) == "One. Two."
    assert join_sentences(["已忘记。", "我又查了一遍：什么都没留下。"]) == (
        "已忘记。我又查了一遍：什么都没留下。"
    )
    assert join_sentences(["確認してください：mneme check", "もう一度。"]) == (
        "確認してください：mneme check もう一度。"
    )
