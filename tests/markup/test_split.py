"""The cutting of long texts: nothing lost, nothing doubled, each part a text of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.markup.parse import MarkupNode, parse
from core.markup.source import escape, visible
from core.markup.split import split
from core.markup.telegram import to_telegram
from tests.fixtures.markdowns import MEASURES, markdowns, telegram_length

pytestmark = pytest.mark.slow


def walk(nodes: Sequence[MarkupNode]) -> Iterator[MarkupNode]:
    for node in nodes:
        yield node
        yield from walk(node.children)


@settings(max_examples=300, deadline=None)
@given(markdowns, st.integers(20, 90), st.sampled_from(MEASURES))
def test_nothing_is_lost_and_the_limit_holds(markdown: str, limit: int, measure: Callable[[str], int]) -> None:
    parts = split(markdown, limit, measure)
    for part in parts:
        assert measure(part) <= limit
        assert part.strip()
    if not any(node.kind == "table" for node in walk(parse(markdown))):
        assert "".join(visible(parse(part)) for part in parts) == visible(parse(markdown))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.text("abé 日*_`", max_size=12), min_size=2, max_size=2), min_size=1, max_size=12))
def test_table_rows_stay_whole_under_a_repeated_head(rows: list[list[str]]) -> None:
    cells = [[escape(cell.strip()) or "-" for cell in row] for row in rows]
    table = "| H | I |\n|---|---|\n" + "\n".join(f"| {left} | {right} |" for left, right in cells)
    found: list[str] = []
    for part in split(table, 160, telegram_length):
        (node,) = parse(part)
        assert node.kind == "table"
        assert visible(node.children[:1]) == "HI"
        found.extend(visible(row.children) for row in node.children[1:])
    assert found == [visible(row.children) for row in parse(table)[0].children[1:]]


def test_a_text_that_fits_comes_back_as_it_is() -> None:
    assert split("# A\n\n- *b*", 4096, telegram_length) == ["# A\n\n- *b*"]
    assert split("  \n\n ", 4096, telegram_length) == []


def test_parts_end_between_blocks() -> None:
    blocks = [f"Paragraph {number} with **bold** text." for number in range(10)]
    parts = split("\n\n".join(blocks), 100, telegram_length)
    assert len(parts) > 1
    assert "\n\n".join(parts).split("\n\n") == blocks


def test_a_heading_goes_with_what_follows() -> None:
    parts = split(f"{'word ' * 15}\n\n## Next\n\n{'more ' * 15}", 100, telegram_length)
    assert parts[1].startswith("## Next")


def test_code_is_closed_and_opened_again_with_its_language() -> None:
    lines = [f"line_{number} = {number}" for number in range(40)]
    parts = split("Look:\n\n```python\n" + "\n".join(lines) + "\n```\n\nDone.", 120, telegram_length)
    code = [node for part in parts for node in parse(part) if node.kind == "code"]
    assert len(code) > 2
    assert {node.language for node in code} == {"python"}
    assert "\n".join(node.text for node in code).split("\n") == lines
    assert all(part.count("```") in (0, 2) for part in parts)


def test_indentation_survives_a_cut_in_code() -> None:
    code = "\n".join("    " * (number % 4) + f"f{number}()" for number in range(30))
    parts = split(f"```\n{code}\n```", 60, telegram_length)
    assert "\n".join(node.text for part in parts for node in parse(part)) == code


def test_lists_are_cut_between_items_and_go_on_counting() -> None:
    parts = split("\n".join(f"{number}. item {number}" for number in range(1, 31)), 60, telegram_length)
    assert len(parts) > 3
    shown = "\n".join(to_telegram(part)[0] for part in parts)
    assert shown.split("\n") == [f"{number}. item {number}" for number in range(1, 31)]


def test_long_paragraphs_are_cut_after_sentences() -> None:
    text = " ".join(f"This is the sentence with number {number}." for number in range(30))
    parts = split(text, 120, telegram_length)
    assert all(part.endswith(".") for part in parts)
    assert " ".join(parts) == text


def test_styles_go_on_in_the_next_part() -> None:
    parts = split("**" + "bold words " * 30 + "end**", 100, telegram_length)
    assert len(parts) > 2
    for part in parts:
        text, entities = to_telegram(part)
        assert [(span.kind, span.length) for span in entities] == [("bold", len(text))]


def test_a_giant_word_is_cut_between_graphemes() -> None:
    family, accent, flag = "👩\u200d👩\u200d👧", "e\u0301", "🇩🇪"
    for cluster in (family, accent, flag, "👍🏽", "\u1112\u1161\u11ab"):
        parts = split(cluster * 60, 50, telegram_length)
        assert "".join(parts) == cluster * 60
        assert all(len(part) % len(cluster) == 0 for part in parts)


def test_a_grapheme_longer_than_a_message_is_cut_all_the_same() -> None:
    parts = split("a" + "\u0301" * 200, 50, telegram_length)
    assert "".join(parts) == "a" + "\u0301" * 200
    assert all(telegram_length(part) <= 50 for part in parts)


def test_full_parts_stay_as_they_are_while_a_text_grows() -> None:
    text = "\n\n".join(f"## Part {n}\n\n{'Some words here. ' * 6}\n\n- a\n- b" for n in range(12))
    changes = 0
    for before, after in pairwise(split(text[:end], 400, telegram_length) for end in range(40, len(text), 40)):
        changes += sum(1 for old, new in zip(before[:-2], after, strict=False) if old != new)
    assert changes == 0
