"""The cutting of long texts: nothing lost, nothing doubled, each part a text of its own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.markup.discord import to_discord
from core.markup.markdown import StyledText, render
from core.markup.splitting import grapheme_ends, split
from tests.fixtures.markdowns import MEASURES, discord_length, markdowns, telegram_length

pytestmark = pytest.mark.slow


def parts_of(markdown: str, limit: int) -> list[str]:
    return [part.text for part in split(render(markdown), limit, telegram_length)]


@given(markdowns, st.integers(40, 90), st.sampled_from(MEASURES))
def test_split_message_parts_keep_all_words_and_stay_within_the_length_limit(
    markdown: str, limit: int, measure: Callable[[StyledText], int]
) -> None:
    styled = render(markdown)
    parts = split(styled, limit, measure)
    for part in parts:
        assert measure(part) <= limit
        assert part.text.strip()
        assert all(0 <= entity.offset < entity.end <= len(part.text) for entity in part.entities)
    assert "".join("".join(part.text.split()) for part in parts) == "".join(styled.text.split())


def test_text_within_the_length_limit_is_not_split() -> None:
    styled = render("# A\n\n- *b*")
    assert split(styled, 4096, telegram_length) == [styled]
    assert split(render("  \n\n "), 4096, telegram_length) == []


def test_split_text_has_parts_that_end_between_blocks() -> None:
    blocks = [f"Paragraph {number} with bold text." for number in range(10)]
    parts = parts_of("\n\n".join(blocks), 100)
    assert len(parts) > 1
    assert "\n\n".join(parts).split("\n\n") == blocks


def test_heading_is_split_into_the_same_message_part_as_the_text_below_it() -> None:
    parts = parts_of(f"{'word ' * 15}\n\n## Next\n\n{'more ' * 15}", 100)
    assert parts[1].startswith("Next")


def test_code_is_closed_and_opened_again_with_its_language() -> None:
    lines = [f"line_{number} = {number}" for number in range(40)]
    styled = render("Look:\n\n```python\n" + "\n".join(lines) + "\n```\n\nDone.")
    parts = split(styled, 120, discord_length)
    code = [(part, entity) for part in parts for entity in part.entities if entity.kind == "pre"]
    assert len(code) > 2
    assert {entity.language for _, entity in code} == {"python"}
    assert (
        "\n".join(part.text[entity.offset : entity.end] for part, entity in code).split("\n")
        == lines
    )
    assert all(to_discord(part).count("```") in (0, 2) for part in parts)


def test_code_split_between_messages_keeps_its_indentation() -> None:
    code = "\n".join("    " * (number % 4) + f"f{number}()" for number in range(30))
    assert "\n".join(parts_of(f"```\n{code}\n```", 60)) == code


def test_long_list_is_split_between_its_items() -> None:
    parts = parts_of("\n".join(f"{number}. item {number}" for number in range(1, 31)), 60)
    assert len(parts) > 3
    assert "\n".join(parts).split("\n") == [f"{number}. item {number}" for number in range(1, 31)]


def test_long_paragraphs_are_cut_after_sentences() -> None:
    text = " ".join(f"This is the sentence with number {number}." for number in range(30))
    parts = parts_of(text, 120)
    assert all(part.endswith(".") for part in parts)
    assert " ".join(parts) == text


def test_style_of_a_split_text_continues_in_the_next_part() -> None:
    parts = split(render("**" + "bold words " * 30 + "end**"), 100, telegram_length)
    assert len(parts) > 2
    for part in parts:
        assert [(entity.kind, entity.length) for entity in part.entities] == [
            ("bold", len(part.text))
        ]


def test_link_longer_than_a_message_is_split_into_its_words_without_the_address() -> None:
    parts = split(render(f"See [the docs](https://a.b/{'c' * 300}) today."), 60, discord_length)
    assert " ".join(part.text for part in parts) == "See the docs today."


def test_a_giant_word_is_cut_between_graphemes() -> None:
    assert grapheme_ends("ae\u0301b") == [1, 3, 4]
    family, accent, flag = "👩\u200d👩\u200d👧", "e\u0301", "🇩🇪"
    for cluster in (family, accent, flag, "👍🏽", "\u1112\u1161\u11ab"):
        parts = parts_of(cluster * 60, 50)
        assert "".join(parts) == cluster * 60
        assert all(len(part) % len(cluster) == 0 for part in parts)


def test_a_grapheme_longer_than_a_message_is_cut_all_the_same() -> None:
    parts = parts_of("a" + "\u0301" * 200, 50)
    assert "".join(parts) == "a" + "\u0301" * 200
    assert all(len(part) <= 50 for part in parts)


def test_completed_message_parts_do_not_change_while_the_streamed_text_grows() -> None:
    text = "\n\n".join(f"## Part {n}\n\n{'Some words here. ' * 6}\n\n- a\n- b" for n in range(12))
    changes = 0
    for before, after in pairwise(parts_of(text[:end], 400) for end in range(40, len(text), 40)):
        changes += sum(1 for old, new in zip(before[:-2], after, strict=False) if old != new)
    assert changes == 0


@given(
    markdowns,
    st.lists(st.integers(0, 300), max_size=8),
    st.integers(30, 60),
    st.sampled_from(MEASURES),
)
def test_streamed_text_is_split_like_the_same_text_at_once(
    markdown: str, ends: list[int], limit: int, measure: Callable[[StyledText], int]
) -> None:
    for end in sorted(ends):
        split(render(markdown[:end]), limit, measure)
    grown = split(render(markdown), limit, measure)
    assert grown == split(render(markdown), limit, lambda part: measure(part))


def test_finished_part_of_a_growing_text_is_not_cut_again() -> None:
    markdown = "".join(f"- item {number} of a **long** list\n" for number in range(300))
    seen: list[StyledText] = []

    def measure(part: StyledText) -> int:
        seen.append(part)
        return len(part.text)

    for end in range(1_000, len(markdown), 1_000):
        split(render(markdown[:end]), 1_000, measure)
    seen.clear()
    assert split(render(markdown), 1_000, measure) == split(
        render(markdown), 1_000, lambda part: len(part.text)
    )
    assert len(seen) < 30


def test_text_of_many_links_is_cut_without_looking_far_ahead() -> None:
    text = render("[x](http://a.b) " * 2_000)
    measured: list[int] = []

    def measure(part: StyledText) -> int:
        measured.append(len(part.entities))
        return max(len(part.text), 40 * len(part.entities))

    parts = split(text, 4_096, measure)
    assert [len(part.entities) for part in parts] == [102] * 19 + [62]
    # Not all that 8,192 characters contain.
    assert max(measured) <= 1_024
