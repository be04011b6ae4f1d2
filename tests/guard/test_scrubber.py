"""The scrubber: nothing of an echoed fence reaches a person, however it's nested, left open or cut
into chunks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.guard.origin_and_fence import (
    NOTE,
    OPENING,
    Scrubber,
    fence,
    scrub,
)
from tests.fixtures.growth import assert_linear

pytestmark = pytest.mark.slow

BLOCK = fence("- Ana lives in Porto.\n- Her birthday is on 3 May.")

pieces = st.one_of(
    st.sampled_from(
        [
            BLOCK,
            f"{BLOCK}\n",
            "<memory-context>",
            "</memory-context>",
            "<MEMORY-CONTEXT>\n",
            '<memory-context id="1">',
            "</memory-context >",
            "<memory",
            NOTE,
            "[System note",
            "`",
            "``",
            "```",
            "```py\n",
            "~~~\n",
            "\n",
            "\n\n",
            " ",
            "    ",
            "\\",
            "<",
            "> ",
            "- ",
            "word",
        ]
    ),
    st.text(max_size=5),
)
texts = st.lists(pieces, max_size=16).map("".join)


def streamed(text: str, size: int) -> str:
    scrubber = Scrubber()
    return (
        "".join(scrubber.feed(text[at : at + size]) for at in range(0, len(text), size))
        + scrubber.close()
    )


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"{BLOCK}\nHello", "\nHello"),
        (f"Well.\n\n{BLOCK}\n\nShe lives in Porto.", "Well.\n\n\n\nShe lives in Porto."),
        (f"Sure! {BLOCK} Porto.", "Sure!  Porto."),
        (f"Sure!{BLOCK} Porto.", "Sure! Porto."),
        (f"Sure! {OPENING}\n  {NOTE} and so on", "Sure! "),
        ("Sure. <memory-context>Ana lives in Porto.</memory-context> Yes.", "Sure.  Yes."),
        ("Sure. <memory-context> Ana lives in Porto. </memory-context> Yes.", "Sure.  Yes."),
        (f"Sure. {NOTE} Porto.", "Sure.  Porto."),
        (BLOCK.upper() + "\nHello", "\nHello"),
        ("<memory-context>\nsecret\n</memory-context>\nHello", "\nHello"),
        ("<memory-context>\nsecret that never ends", ""),
        ("Hello\n<memory-context>", "Hello\n"),
        (f"Hello\n{OPENING}   \n{NOTE}", "Hello\n"),
        (f"> {OPENING}\n> {NOTE}", "> "),
        (f"{BLOCK}\n{BLOCK}\nHello", "\n\nHello"),
        (f"an `open tick\n{BLOCK}\nHello", "an `open tick\n\nHello"),
        (f"```xml\n{BLOCK}\n```\nThat is the block.", "```xml\n\n```\nThat is the block."),
        (f"`` ` {OPENING}{NOTE} ``", "`` ` "),
        (f"**{OPENING}** {NOTE} secret", "**"),
        ("Sure <memory-context> secret\nmore secret\n</memory-context> done", "Sure  done"),
        ("text <memory-context>\nsecret", "text "),
        ("Sure <memory-context >secret</memory-context > done", "Sure  done"),
        ('Sure <memory-context id="1">\nsecret\n< / MEMORY-CONTEXT\n> done', "Sure  done"),
        ("Sure < Memory-Context\n>\nsecret\nmore", "Sure "),
        ("Is it <memory-context>? secret\nmore </memory-context> done", "Is it  done"),
        ("an `open tick <memory-context>\nsecret and ` more", "an `open tick "),
        ("a `tick` <memory-context>\nsecret a `tick` more", "a `tick` "),
        ("an \\`escaped <memory-context>\nsecret\\`\nmore", "an \\`escaped "),
        ("`<memory-context> secret </memory-context>` done", "`` done"),
        ("```\na <memory-context> secret\nmore </memory-context>\n```\ndone", "```\na \n```\ndone"),
        ("```\n<memory-context>\nsecret\n```\n", "```\n"),
        ("```\na <memory-context>\nsecret\nmore", "```\na "),
        ("```\na\n```\na <memory-context>\nsecret\nmore", "```\na\n```\na "),
    ],
)
def test_memory_block_in_a_stream_is_removed_at_any_cut(text: str, clean: str) -> None:
    for size in (1, 2, 3, 7, 1000):
        assert streamed(text, size) == clean


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("<memory<memory-context>nested</memory-context>-context>", ""),
        ("<memory<memory-context>nested</memory-context>-context>secret", ""),
        (
            "<mem<mem<memory-context>a</memory-context>ory-context>b</memory-context>ory-context>c",
            "<mem",
        ),
        ("I know: <memory-context> secret walrus plan", "I know: "),
        ("I know: <memory-context secret walrus plan", "I know: "),
        ("The <memory-context> tag. secret\n\nMore.", "The "),
        ("(memory-context)secret walrus plan(/memory-context)", ""),
        ("So (memory-context)\nsecret(/memory-context) done", "So  done"),
        ("So \uff1cmemory-context\uff1esecret\uff1c/memory-context\uff1e done", "So  done"),
        ("a <memory-context>x<memory-context>y</memory-context>z</memory-context> b", "a  b"),
        ("```\n<memory-context>secret\n```\nSo", "```\n"),
        ("It ends with </memory-context>. So", "It ends with . So"),
    ],
)
def test_a_nested_or_unterminated_block_is_removed(text: str, clean: str) -> None:
    for size in (1, 2, 5, 1000):
        assert streamed(text, size) == clean


def test_memory_context_tag_in_inline_code_is_shown_as_plain_words() -> None:
    text = "It begins with `<memory-context>` and ends with `</memory-context>`."
    for size in (1, 2, 5, 1000):
        clean = streamed(text, size)
        assert clean == "It begins with `memory context` and ends with `memory context`."


@pytest.mark.parametrize(
    "text",
    [
        "memory-contexts>\nno tag",
        "(memory context)",
        "(the memory-context idea)",
        "1 < 2",
        "<memory-con",
        "[System note: nothing of ours]",
        "a < b [c]",
        "```\nif a < b:\n    pass\n```",
        "ends in a tick `",
        "ends in a slash \\",
        "",
    ],
)
def test_text_without_a_fence_passes_the_scrubber_unchanged(text: str) -> None:
    for size in (1, 2, 5, 1000):
        assert streamed(text, size) == text


def test_scrubber_holds_text_back_only_where_a_memory_block_may_begin() -> None:
    scrubber = Scrubber()
    assert scrubber.feed("Hello wor") == "Hello wor"
    assert scrubber.feed("ld\n<") == "ld\n"
    assert scrubber.feed("b") == "<b"
    assert scrubber.feed("> `<memory-context>` it") == "> `memory context` it"
    assert scrubber.feed("\n<memory-context>") == "\n"
    assert scrubber.feed(" no") == ""
    assert scrubber.close() == ""


def test_closed_scrubber_can_be_used_again_from_its_initial_state() -> None:
    scrubber = Scrubber()
    scrubber.feed("```\n<memory-context>\n")
    scrubber.close()
    assert scrubber.feed(f"{BLOCK}\nx") == "\nx"


@pytest.mark.parametrize(
    "line",
    [
        "<memory-context>",
        "`<memory-context>` ",
        "<memory-context>x</memory-context> ",
        "<memory-context>\n",
        "`a <memory-context>x</memory-context>b` ",
    ],
)
@pytest.mark.parametrize("opening", ["", "```\n"])
def test_a_hundred_thousand_characters_of_tags_are_shown_in_linear_time(
    line: str, opening: str
) -> None:
    text = opening + line * (100_000 // len(line))
    # A text of tags took seven seconds.
    assert_linear(_feed_in_pieces, text)


def _feed_in_pieces(text: str) -> None:
    scrubber = Scrubber()
    for start in range(0, len(text), 200):
        scrubber.feed(text[start : start + 200])
    scrubber.close()


@given(texts)
def test_scrubber_output_is_the_same_wherever_the_stream_is_cut(text: str) -> None:
    whole = scrub(text)
    for at in range(len(text) + 1):
        scrubber = Scrubber()
        assert scrubber.feed(text[:at]) + scrubber.feed(text[at:]) + scrubber.close() == whole


@given(texts, st.data())
def test_scrubber_output_is_independent_of_how_the_text_is_chunked(
    text: str, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    scrubber = Scrubber()
    shown = ""
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        shown += scrubber.feed(text[begin:end])
    assert shown + scrubber.close() == scrub(text)


NESTED = (
    "<memory-context>",
    "</memory-context>",
    "(memory-context)",
    "(/memory-context)",
    "<memory",
    "-context>",
    "<mem",
    "ory-context>",
    "<memory-context",
    "</memory-context",
    "</",
    "<",
    "(",
    ">",
    ")",
    "`",
    "\n",
    "word",
    NOTE,
)


@given(st.lists(st.sampled_from(NESTED), max_size=24).map("".join))
def test_scrubber_removes_nested_memory_context_tags_completely(text: str) -> None:
    clean = scrub(text).casefold()
    assert "<memory-context" not in clean
    assert "</memory-context" not in clean
    assert "(memory-context)" not in clean
    assert streamed(text, 3) == scrub(text)


@given(
    st.lists(st.sampled_from(NESTED), max_size=6).map("".join),
    st.sampled_from([OPENING, "<Memory-Context >", '<memory-context id="1">']),
)
def test_scrubbed_block_lets_no_content_through(content: str, opening: str) -> None:
    content = content.replace("/", "").replace("`", "")
    assert "secret" not in scrub(f"Well {opening}{content}secret\nsecret")
    assert scrub(f"Well {opening}secret</memory-context> done") == "Well  done"
