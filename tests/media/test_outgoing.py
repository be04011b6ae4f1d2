"""Answers that are sent as files: their names, types and contents."""

from __future__ import annotations

import pytest

from core.media.outgoing import clean_document_name, make_document

ANSWER = "Here it is:\n\n```csv\nday,price\nMonday,40\n```\n\nAnything else?"


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("plan.md", "plan.md"),
        ("Plan for May", "Plan for May.md"),
        ("costs.CSV", "costs.csv"),
        ("run.exe", "run.md"),
        ("page.html", "page.md"),
        ("../../etc/passwd", "_.md"),
        ("..\\a\nb.py", "_a b.py"),
        (" . ", "answer.md"),
        (".md", "md.md"),
    ],
)
def test_name_of_an_answer_as_a_file_is_safe_and_has_a_known_ending(
    name: str, cleaned: str
) -> None:
    assert clean_document_name(name) == cleaned


def test_table_has_only_the_code_block_and_a_text_the_whole_answer() -> None:
    table = make_document("costs.csv", ANSWER)
    assert (table.content, table.mime) == (b"day,price\nMonday,40\n", "text/csv")
    assert make_document("plan.md", ANSWER).content == ANSWER.encode()


def test_file_of_an_answer_with_no_or_several_code_blocks_has_the_whole_answer() -> None:
    assert make_document("a.py", "No code.").content == b"No code."
    assert make_document("a.csv", ANSWER * 2).content == (ANSWER * 2).encode()


def test_calendar_file_has_the_line_breaks_of_its_standard() -> None:
    answer = "```\nBEGIN:VCALENDAR\nEND:VCALENDAR\n```"
    assert make_document("trip.ics", answer).content == b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"
