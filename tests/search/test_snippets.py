"""The part of a text that matters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.search.query import plan_any_word, plan_typed
from core.search.results import Highlighter, find_excerpt, make_snippet


def _shown(typed: str, text: str, width_chars: int = 200) -> str:
    return make_snippet(text, Highlighter(plan_typed(typed).highlights), width_chars)


def test_matches_are_marked_as_they_are_written() -> None:
    assert _shown(
        'resume ferr* "night train"', "My Résumé, the FERRIES and a night\ntrain; presume"
    ) == ("My >>>Résumé<<<, the >>>FERRIES<<< and a >>>night train<<<; presume")
    assert _shown("ﾃｽﾄ", "これはテストです") == "これは>>>テスト<<<です"
    assert _shown("youer", "修改youer服务端") == "修改>>>youer<<<服务端"


def test_a_long_text_is_cut_at_words_around_the_densest_place() -> None:
    text = "ferry " + "word " * 100 + "the ferry to Porto leaves " + "word " * 100
    shown = _shown("ferry porto", text, 80)
    assert ">>>ferry<<< to >>>Porto<<<" in shown
    assert shown.startswith("…word")
    assert shown.endswith("word…")
    assert len(shown) <= 80 + 14


def test_without_a_match_the_beginning_is_shown() -> None:
    assert _shown("absent", "word " * 100, 20) == "word word word word…"
    assert make_snippet("short", Highlighter(())) == "short"


@given(st.text(max_size=300), st.text(max_size=30), st.integers(min_value=1, max_value=120))
def test_snippet_of_any_text_and_query_stays_within_its_width(
    text: str, typed: str, width_chars: int
) -> None:
    for plan in (plan_typed(typed), plan_any_word(typed)):
        marker = Highlighter(plan.highlights)
        spans = marker.find_spans(text)
        assert all(0 <= start < end <= len(text) for start, end in spans)
        start, end = find_excerpt(text, spans, width_chars)
        assert 0 <= start <= end <= len(text)
        assert end - start <= max(width_chars, 1)
        make_snippet(text, marker, width_chars)


def test_words_and_beginnings_are_found_at_the_limits_of_words_only() -> None:
    text = "Ana, banana, ANA_x anas ferr-y xferry Ferries é éa"
    spans = Highlighter(["ana", "ferr*", "é"]).find_spans(text)
    assert [text[start:end] for start, end in spans] == ["Ana", "ANA", "ferr", "Ferries", "é"]
