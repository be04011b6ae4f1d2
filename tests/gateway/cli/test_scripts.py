"""Texts in scripts that run from right to left, and in wide characters, in the terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from io import StringIO

import pytest
from rich.cells import cell_len

from gateway.cli.run import _print_rows
from gateway.cli.shell import print_markdown

TITLES = {
    "Arabic": "رحلة إلى بورتو",
    "Hebrew": "דגל אדם, 2026",
    "Japanese": "ポルトへの旅行",
    "Thai": "เที่ยวปอร์โต",
    "emoji": "⛴️ Porto 👩‍👩‍👧",
}
RIGHT_TO_LEFT = ("Arabic", "Hebrew")


class Screen(StringIO):
    """A terminal that keeps what it shows."""

    def isatty(self) -> bool:
        return True


def show(monkeypatch: pytest.MonkeyPatch, write: Callable[[], None]) -> str:
    """Return what a function shows in a terminal."""
    with monkeypatch.context() as patch:
        screen = Screen()
        patch.setattr(sys, "stdout", screen)
        patch.setenv("COLUMNS", "120")
        write()
    return screen.getvalue()


@pytest.mark.parametrize("script", TITLES)
def test_title_in_any_script_stays_between_its_columns_in_a_printed_list(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `mneme sessions` and the results of `mneme recall` print it."""
    title = TITLES[script]
    line = f"- 12 (3 May 2026, 7 messages): “{title}” · Ana"
    shown = " ".join(show(monkeypatch, lambda: print_markdown(line)).split())
    isolated = re.findall("\u2068(.+?)\u2069", shown)
    assert isolated == (["דגל אדם" if script == "Hebrew" else title] * (script in RIGHT_TO_LEFT))
    plain = shown.replace("\u2068", "").replace("\u2069", "")
    assert f"12 (3 May 2026, 7 messages): “{title}” · Ana" in plain


def test_line_that_begins_right_to_left_is_printed_unchanged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = "ברכה Ana, בשעה 9:30"
    assert show(monkeypatch, lambda: print_markdown(line)).strip() == line


def test_printed_link_with_data_shows_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "See [tea](https://evil.example/?q=walrus)"
    shown = show(monkeypatch, lambda: print_markdown(line))
    assert "tea (https://evil.example/?q=walrus)" in shown


def test_rows_of_a_check_are_aligned_in_columns_in_every_script(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ["正常", "異常", "なし", "ok"]
    subjects = ["検索の索引", "state.db", "อัตรา", "設定"]
    rows = [
        (key, word, subject, "TEXT")
        for key, word, subject in zip(["right", "wrong", "off", "ok"], words, subjects, strict=True)
    ]
    shown = show(monkeypatch, lambda: _print_rows(rows))
    lines = re.sub(r"\x1b\[\d*m", "", shown).splitlines()
    starts = {cell_len(line[: line.index("TEXT")]) for line in lines}
    assert len(lines) == 4
    assert len(starts) == 1
