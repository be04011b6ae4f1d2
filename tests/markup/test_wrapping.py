"""Texts wrapped to the columns of a terminal."""

from __future__ import annotations

from core.markup.tables import measure_width
from core.markup.wrapping import wrap_columns
from tests.fixtures.tables import each_row

TEXTS = {
    "German": "Alles in eine Datei sichern, auch während Mneme läuft (heute).",
    "Japanese": "Mnemeを設定します：タイムゾーン、モデル、Telegram、Discord、「以前の会話」。",
    "Chinese": "显示模型花了多少钱（也包括缓存）。还显示输入有多少来自缓存。",
    "Korean": "모든 것을 한 파일에 백업해요, Mneme가 실행 중일 때도.",
    "brackets alone": "「「 」」",
}


@each_row("name", TEXTS)
def test_text_in_any_script_is_wrapped_within_the_width_without_losing_a_character(
    name: str,
) -> None:
    text = TEXTS[name]
    lines = wrap_columns(text, 20)
    assert max(map(measure_width, lines)) <= 20
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    for line in lines:
        assert line[0] not in "、。」）：" or set(line) <= set("」")
        assert line[-1] not in "「（" or set(line) <= set("「")


def test_word_wider_than_the_width_has_a_line_of_its_own() -> None:
    assert wrap_columns("a 12345678 b", 4) == ["a", "12345678", "b"]
    assert wrap_columns(" \n ", 4) == []
