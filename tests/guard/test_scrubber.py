"""The scrubber: an echoed fence never reaches a person, a mention of it always does, wherever the
stream is cut."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.guard.origin_and_fence import (
    NOTE,
    OPENING,
    Scrubber,
    _find_unfinished_evidence,
    fence,
    scrub,
)

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
def test_a_block_is_removed(text: str, clean: str) -> None:
    for size in (1, 2, 3, 7, 1000):
        assert streamed(text, size) == clean


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (
            "The <memory-context> tag is fine.\n\nMore.",
            "The (memory-context) tag is fine.\n\nMore.",
        ),
        ("the <memory-context> tag", "the (memory-context) tag"),
        ("The <memory-context> tag is closed.\n\n", "The (memory-context) tag is closed.\n\n"),
        ('The <memory-context id="1"> tag', 'The (memory-context id="1") tag'),
        ("It ends with </memory-context >.\nSo", "It ends with (/memory-context ).\nSo"),
        ("Use ``a ` <memory-context>`` here.\nSo", "Use ``a ` (memory-context)`` here.\nSo"),
        ("```\n<memory-context>\n```\nSo", "```\n(memory-context)\n```\nSo"),
        (
            '> ~~~py\n> A = "<memory-context>"\n> b\n> ~~~\nSo',
            '> ~~~py\n> A = "(memory-context)"\n> b\n> ~~~\nSo',
        ),
        ("Use `<memory-context>`\nthere.", "Use `(memory-context)`\nthere."),
        (
            "It begins with `<memory-context>` and ends with `</memory-context>`.",
            "It begins with `(memory-context)` and ends with `(/memory-context)`.",
        ),
        ("What is <memory-context>?", "What is (memory-context)?"),
        ("<memory-context> is what I call it", "(memory-context) is what I call it"),
        ("it is called <Memory-Context>", "it is called (Memory-Context)"),
    ],
)
def test_a_tag_that_is_talked_about_stays_in_round_brackets(text: str, clean: str) -> None:
    for size in (1, 2, 5, 1000):
        assert streamed(text, size) == clean


@pytest.mark.parametrize(
    "text",
    [
        "<memory-contexts>\nno tag",
        "a <memory-context b",
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
def test_all_else_is_left_alone(text: str) -> None:
    for size in (1, 2, 5, 1000):
        assert streamed(text, size) == text


def test_text_is_held_back_only_where_a_block_may_begin() -> None:
    scrubber = Scrubber()
    assert scrubber.feed("Hello wor") == "Hello wor"
    assert scrubber.feed("ld\n<") == "ld\n"
    assert scrubber.feed("b") == "<b"
    assert scrubber.feed("> `<memory-context>` it") == "> `"
    assert scrubber.feed("\n<memory-context>") == "(memory-context)` it\n"
    assert scrubber.feed(" no") == ""
    assert scrubber.feed("thing\n") == ""
    assert scrubber.close() == "(memory-context) nothing\n"


def test_a_closed_scrubber_is_as_new() -> None:
    scrubber = Scrubber()
    scrubber.feed("```\n<memory-context>\n")
    scrubber.close()
    assert scrubber.feed(f"{BLOCK}\nx") == "\nx"


def test_long_text_takes_linear_time() -> None:
    lines = [
        "<memory-context>" + " " * 50_000 + "`" * 50_000,
        "<memory-" * 5_000,
        "`<memory-context>` " * 1_000,
    ]
    for line in lines:
        assert scrub(line) == line.replace("<memory-context>", "(memory-context)")


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
    scrubber = Scrubber()
    began_s = time.thread_time()
    for start in range(0, len(text), 200):
        scrubber.feed(text[start : start + 200])
    scrubber.close()
    # A text of tags took seven seconds.
    assert time.thread_time() - began_s < 1.5


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("words", ""),
        ("<memory-context>\nwords", ""),
        ("words [or so", "[or so"),
        ("words [System note: " + "x" * 200, ""),
        ("a > b </memory-con", "</memory-con"),
        ("a < b [System", "< b [System"),
        ("a <b> [System", "[System"),
    ],
)
def test_text_that_cant_become_evidence_is_searched_once(text: str, rest: str) -> None:
    assert text[_find_unfinished_evidence(text) :] == rest


@given(texts)
def test_a_cut_anywhere_changes_nothing(text: str) -> None:
    whole = scrub(text)
    for at in range(len(text) + 1):
        scrubber = Scrubber()
        assert scrubber.feed(text[:at]) + scrubber.feed(text[at:]) + scrubber.close() == whole


@given(texts, st.data())
def test_the_cuts_do_not_matter(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    scrubber = Scrubber()
    shown = ""
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        shown += scrubber.feed(text[begin:end])
    assert shown + scrubber.close() == scrub(text)


@given(texts.filter(lambda text: set(text).isdisjoint("`~<[\\")))
def test_a_block_on_its_own_lines_never_gets_through(text: str) -> None:
    clean = scrub(f"{text}\n{BLOCK}\n{text}")
    assert clean == f"{text}\n\n{text}"


@given(
    texts,
    texts.filter(lambda text: "/" not in text),
    st.sampled_from([OPENING, "<Memory-Context >", '<memory-context id="1">']),
)
def test_nothing_between_the_tags_gets_through_wherever_they_stand(
    text: str, content: str, opening: str
) -> None:
    assert "secret" not in scrub(
        f"{re.sub('[`~]', '', text)}{opening}{content}secret\nsecret</memory-context> {text}"
    )
