"""The text renderer: what a person reads on each platform."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.markup import discord
from core.markup.markdown import (
    StyledText,
    escape,
    render,
    to_plain,
    utf16_length,
)
from core.text.normalize import make_well_formed
from tests.fixtures.growth import assert_linear
from tests.fixtures.markdowns import markdowns
from tests.fixtures.sweeps import keep_first
from tests.fixtures.tables import each_row

pytestmark = pytest.mark.slow


def spans(markdown: str) -> list[tuple[str, str]]:
    """Each entity's kind and the text under it; those that are for Discord apart."""
    styled = render(markdown)
    return [
        (entity.kind, styled.text[entity.offset : entity.end])
        for entity in styled.entities
        if entity.kind not in ("heading", "list_marker")
    ]


def to_discord(markdown: str) -> str:
    return discord.to_discord(render(markdown))


def squeezed(text: str) -> str:
    return "".join(text.split())


# --- Telegram
# -------------------------------------------------------------------------------------------------------


@each_row(
    ("markdown", "expected"),
    [
        ("**bold**", [("bold", "bold")]),
        ("*a **b** c*", [("italic", "a b c"), ("bold", "b")]),
        ("~~gone~~", [("strikethrough", "gone")]),
        ("`x = 1`", [("code", "x = 1")]),
        ("# A `b` c", [("bold", "A "), ("code", "b"), ("bold", " c")]),
        ("**a `b` c**", [("bold", "a "), ("code", "b"), ("bold", " c")]),
        ("# **a**", [("bold", "a")]),
        ("😀 **b**", [("bold", "b")]),
        ("中文**粗体**中文", [("bold", "粗体")]),
        ("**\u300c重要\u300d**です", [("bold", "\u300c重要\u300d")]),
        ("**Hyper**T**ext**", [("bold", "Hyper"), ("bold", "ext")]),
        ("> quoted\n> > deeper", [("blockquote", "quoted\n> deeper")]),
    ],
)
def test_markdown_becomes_text_with_entities(
    markdown: str, expected: list[tuple[str, str]]
) -> None:
    assert spans(markdown) == expected


def test_markdown_rendering_keeps_links_and_code_languages() -> None:
    (link,) = render("[the `docs`](https://a.b/c_d)").entities
    assert (link.kind, link.url) == ("text_link", "https://a.b/c_d")
    styled = render("```python\nx = '''a'''\n\n  y\n```")
    (pre,) = styled.entities
    assert (styled.text, pre.kind, pre.language) == ("x = '''a'''\n\n  y", "pre", "python")
    assert render("![a cat](https://a.b/cat.png)").text == "a cat"
    assert render("[here](./local)") == StyledText("here (./local)")
    assert render("[](https://a.b)") == StyledText("https://a.b")


def test_rendered_blocks_of_markdown_keep_their_shape() -> None:
    markdown = "Intro:\n- one\n  - two\n    more\n    ```sh\n    ls -l\n    ```\n- three\n\n7. seven\n8. eight\n\n---\nend"
    assert (
        render(markdown).text
        == "Intro:\n• one\n  • two\n    more\nls -l\n• three\n\n7. seven\n8. eight\n\n———\nend"
    )
    assert render("- loose\n\n- items\n\n  second").text == "• loose\n\n• items\n\n  second"


def test_markdown_table_is_rendered_with_aligned_columns() -> None:
    styled = render("| Name | n |\n|:--|--:|\n| 日本 | 1 |\n| **bo** `x` | 22 |")
    assert [entity.kind for entity in styled.entities] == ["pre"]
    assert styled.text == "Name |  n\n-----+---\n日本 |  1\nbo x | 22"


# --- text that is no markup
# -----------------------------------------------------------------------------------------


@each_row(
    "text",
    [
        "2*3*4",
        "2**3**4 = 8",
        "snake_case_name and __init__.py",
        "a * b * c",
        "C:\\path\\to",
        "<b>raw</b> <br> </p>",
        "<memory-context> & more",
        "if a < b and c > d",
        "[1]: https://example.org/note",
        "see [1] and [x][y]",
        "https://a.b/_c_*d*/e_f_(g)?h=[i]",
        "(https://a.b/c)",
        "100% ~ approx ~ |x| ||y||",
        "# not#a#heading"[2:],
        "[x](javascript:alert)",
        "half **open and `open",
    ],
)
def test_plain_text_is_rendered_unchanged(text: str) -> None:
    assert render(text) == StyledText(text)
    assert to_plain(text) == text


@each_row("markdown", ["```py\nx = 1", "Text\n\n```py\nx = 1\n``", "- a\n  ```py\n  x = 1"])
def test_unclosed_code_fence_is_rendered_as_code(markdown: str) -> None:
    ((kind, text),) = [span for span in spans(markdown) if span[0] == "pre"]
    assert kind == "pre"
    assert text.startswith("x = 1")
    assert to_discord(markdown).count("```") == 2


def test_dashes_under_a_paragraph_are_a_ruled_line() -> None:
    assert render("A paragraph\n---\nnext") == StyledText("A paragraph\n———\nnext")
    assert spans("Title\n===\ntext") == [("bold", "Title")]


# --- Discord
# --------------------------------------------------------------------------------------------------------


@each_row(
    ("markdown", "expected"),
    [
        ("**b** *i* ~~s~~ `c`", "**b** *i* ~~s~~ `c`"),
        ("# H\n#### deep", "# H\n**deep**"),
        ("2*3*4", "2\\*3\\*4"),
        ("snake_case \\_x\\_", "snake_case \\_x\\_"),
        ("é_x_é", "é\\_x\\_é"),
        ("\\é", "\\\\é"),
        ("||spoiler||", "\\|\\|spoiler\\|\\|"),
        ("\\# no heading", "\\# no heading"),
        ("1\\. no list", "1\\. no list"),
        ("<@123> <#1>", "\\<@123> \\<#1>"),
        ("[l](https://a.b/c_d)", "[l](<https://a.b/c_d>)"),
        ("[https://good.org](https://evil.org)", "<https://good.org> (<https://evil.org>)"),
        ("https://a.b/_c_", "<https://a.b/_c_>"),
        ("[tea](https://a.b/tea)", "[tea](<https://a.b/tea>)"),
        ("[tea](https://a.b/?q=my+secret)", "tea (<https://a.b/?q=my+secret>)"),
        ("\u770bhttps://a.b/?q=1\u3002", "\u770b<https://a.b/?q=1>\u3002"),
        ("\ubcf4\uae30https://a.b/?q=1", "\ubcf4\uae30<https://a.b/?q=1>"),
        ("xhttps://a.b/?q=1", "xhttps:\u200b//a.b/?q=1"),
        ("- a\n  - b\n1. c", "- a\n  - b\n1. c"),
        ("> a\n> b", "> a\n> b"),
        ("```py\nx\n```", "```py\nx\n```"),
        ("C:\\path", "C:\\path"),
        # Discord has no tables.
        ("| a | b |\n|---|---|\n| 1 | `2` |", "```\na | b\n--+--\n1 | 2\n```"),
    ],
)
def test_markdown_becomes_the_marks_of_discord(markdown: str, expected: str) -> None:
    assert to_discord(markdown) == expected


def test_mention_of_everyone_notifies_nobody_on_discord() -> None:
    shown = to_discord("@everyone and @here")
    assert "@everyone" not in shown
    assert "@here" not in shown
    assert shown.replace("\u200b", "") == "@everyone and @here"


@pytest.mark.parametrize("ticks", [3, 4, 5, 6])
def test_code_on_discord_cannot_end_early(ticks: int) -> None:
    run = "`" * ticks
    shown = to_discord(f"`{run}\n{run}\ninner\n{run}\n`{run}")
    assert shown.count("```") == 2
    assert "inner" in shown
    span = to_discord(f"`` a{run}https://a.b/?q=1 ``")
    assert span.startswith("``a`")
    assert "``" not in span[2:-2]


PIECES = (
    "https://a.b/?q=1",
    "HTTP://a.b/c",
    *("[", "](", ")", "<", ">", "\\", "**", "_", "~~", "`", "``", "```", "\n", "\n\n", "> ", "- "),
    *("x", "\u770b", "\ubcf4", "\u3002", "!", "|", " ", "&lt;", "&#58;", "\u200b", "//", "https:"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
def test_discord_finds_no_address_outside_of_angle_brackets_and_code(markdown: str) -> None:
    shown = re.sub(r"```.*?```", " ", to_discord(markdown), flags=re.DOTALL)
    shown = re.sub(r"(?<![`\\])(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)", " ", shown, flags=re.DOTALL)
    shown = re.sub(r"<https?:[^\s<>]+>", " ", shown, flags=re.IGNORECASE)
    assert re.search(r"https?://[^\s<>]", shown, re.IGNORECASE) is None


# --- escaping
# -------------------------------------------------------------------------------------------------------


def as_discord_reads(shown: str) -> str:
    """Discord takes the backslash off every character that is neither a letter, a digit nor white
    space, and shows an address in <> without these."""
    shown = re.sub(r"<(https?://[^\s<>]+)>", r"\1", shown, flags=re.IGNORECASE)
    read: list[str] = []
    index = 0
    while index < len(shown):
        after = shown[index + 1 : index + 2]
        if (
            shown[index] == "\\"
            and after
            and not after.isspace()
            and not (after.isascii() and after.isalnum())
        ):
            index += 1
        read.append(shown[index])
        index += 1
    return "".join(read).replace("\u200b", "")


@given(markdowns)
def test_escaped_markdown_is_rendered_as_the_original_text(text: str) -> None:
    wanted = squeezed(make_well_formed(text))
    shown = render(escape(text))
    assert squeezed(shown.text) == wanted
    assert shown.entities == ()
    assert squeezed(as_discord_reads(to_discord(escape(text)))) == wanted.replace("\u200b", "")


@given(markdowns)
def test_rendered_markdown_entities_lie_within_the_text_and_nest(markdown: str) -> None:
    styled = render(markdown)
    assert list(styled.entities) == sorted(
        styled.entities, key=lambda span: (span.offset, -span.length)
    )
    for span in styled.entities:
        assert span.length > 0
        assert 0 <= span.offset <= span.end <= len(styled.text)
    for first in styled.entities:
        for second in styled.entities:
            begin, end = max(first.offset, second.offset), min(first.end, second.end)
            if first is not second and begin < end:
                assert end - begin == min(first.length, second.length), "entities cross"
                assert first.kind != second.kind
                kinds = {first.kind, second.kind}
                assert not kinds & {"code", "pre"} or kinds & {"blockquote", "heading"}
    assert to_plain(markdown) is not None
    assert to_discord(markdown) is not None


# --- plain text and lengths
# -----------------------------------------------------------------------------------------


def test_plain_text_of_markdown_shows_addresses_of_links() -> None:
    markdown = "**See** [docs](https://a.b):\n\n> q\n\n```\n  c\n```"
    assert to_plain(markdown) == "See docs (https://a.b):\n\n> q\n\n  c"


def test_length_of_a_text_counts_utf16_units() -> None:
    assert utf16_length("a😀é日") == 5


@pytest.mark.parametrize(
    "brick",
    keep_first(
        4,
        ["[", "*", ">", "`", "> ", "- ", "![", "[a](", "*_", "<", "|", "\\", "~~", "#", "&", "_a"],
    ),
)
def test_hostile_markdown_is_rendered_in_linear_time(brick: str) -> None:
    text = brick * (20_000 // len(brick))
    assert_linear(render, text)
    assert_linear(to_discord, text)


@each_row("depth", [5, 50, 5000])
def test_markdown_nested_too_deep_stays_plain_text(depth: int) -> None:
    for markdown in (
        ">" * depth + " deep",
        "- " * depth + "deep",
        "**a " * depth + "deep" + "**" * depth,
    ):
        assert "deep" in render(markdown).text
        assert "deep" in to_discord(markdown)
        assert "deep" in to_plain(markdown)
