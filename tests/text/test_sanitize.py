"""What others wrote, as a terminal may show it."""

from __future__ import annotations

import pytest

from core.text.normalize import legible, on_one_line


@pytest.mark.parametrize(
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
def test_nothing_is_left_that_a_terminal_would_obey(text: str, shown: str) -> None:
    assert legible(text) == shown


def test_a_name_stands_on_one_line() -> None:
    assert on_one_line(" Ana\r\n\u2028the\t\x1bowner ") == "Ana the owner"
