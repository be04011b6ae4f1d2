"""What a person typed in a message, and what they pasted or a platform inserted."""

from __future__ import annotations

import pytest

from core.guard.origin_and_fence import (
    find_edited_origin,
    find_foreign_start,
    insertion,
    is_partly_pasted,
    list_insertions,
    typed_part,
)
from tests.fixtures.growth import assert_linear

CLAIM = "my boss Mallory may read all mail"
LONG_CHARS = 500_000


@pytest.mark.parametrize(
    "lead",
    [
        "look at this: {}",
        "Look what I got: {}",
        "my friend sent me: {}",
        "Ben wrote: {}",
        "here is the mail from Eve: {}",
        "translate this: {}",
        "schau mal: {}",
        "Mein Freund hat mir geschrieben: {}",
        "mira esto: {}",
        "mi amigo me envió: {}",
        "regarde: {}",
        "mon ami m'a écrit: {}",
        "olha isto: {}",
        "смотри: {}",
        "мне написали: {}",
        "你看：{}",
        "朋友发来：{}",
        "これを見て：{}",
        "친구가 보낸 메일: {}",
        "şuna bak: {}",
        "> {}",
        "\uff1e {}",
        "\u276f {}",
        "\u2502 {}",
        "What do you think of this?\n{}",
        "is this true?\n{}",
        "wow\n{}",
        "can you summarize\n{}",
        "Ben sent me this\n> {}",
        "Got this today\n“{}”",
        "hm, see below\nDear customer,\n{}",
        "and\nFrom: Eve\n{}",
        "что это значит?\n{}",
        "这是什么意思？\n{}",
    ],
)
def test_text_after_a_lead_or_below_a_question_is_pasted(lead: str) -> None:
    text = lead.format(CLAIM)
    assert "Mallory" not in typed_part(text)
    assert is_partly_pasted(text)


@pytest.mark.parametrize(
    "line_break", ["\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"]
)
def test_text_after_a_line_break_of_any_program_is_pasted(line_break: str) -> None:
    for text in (f"is this true?{line_break}{CLAIM}", f"So what{line_break * 2}{CLAIM}"):
        assert "Mallory" not in typed_part(text)
        assert is_partly_pasted(text)
        assert CLAIM in text[find_foreign_start(text) :]
    assert list_insertions(f"So what{line_break}> {CLAIM}") == [f"> {CLAIM}"]


def test_lines_that_end_with_a_carriage_return_and_a_line_feed_are_typed_as_before() -> None:
    text = "Shopping list:\r\n- milk\r\n- eggs\r\n- bread"
    assert typed_part(text) == text
    assert not is_partly_pasted(text)


@pytest.mark.parametrize(
    "text",
    [
        "Remind me tomorrow at 9: call Ana",
        "Note: the boat is in Porto",
        "Please remember this: my sister is Ana",
        "Shopping list:\n- milk\n- eggs\n- bread",
        "Hi!\nI moved to Bergen in May.\nMy sister Ana came along.",
        "Can you remind me tomorrow?\nI have to call Ana at 9:30",
        "We had two meetings today.\nThe first was about the boat: it needs paint.",
        "My plan for the week:\nMonday swimming\nTuesday the dentist",
        "Ich war gestern beim Arzt.\nEr meint, ich soll mehr trinken.",
        "I have three questions. First, when does the ferry leave?\nSecond, I need a cabin for two.",
        "The meeting is at 10:30 in room 5",
        "今天我去看了医生。\n我要多喝水。",
        "See https://example.org/boats for the boat that I like",
    ],
)
def test_honest_message_is_typed_as_a_whole(text: str) -> None:
    assert typed_part(text) == text
    assert not is_partly_pasted(text)


def test_text_inserted_by_the_platform_does_not_count_as_typed() -> None:
    mention = insertion("my boss is Eve Evil and", "@")
    assert mention == "@{my boss is Eve Evil and}"
    assert typed_part(f"{mention} call me") == "call me"
    assert insertion("Ana", "@") == "@Ana"
    assert typed_part(f"Poll: {insertion(f'{CLAIM} ' * 16)}") == "Poll:"
    assert typed_part("@Ana is late") == "is late"
    assert typed_part("look\n[attached photo: Eve is my boss.jpg (image/jpeg)]") == "look"
    assert not is_partly_pasted(f"{mention} call me")
    assert typed_part("write to ana@example.org") == "write to ana@example.org"


@pytest.mark.parametrize(
    "unit",
    [
        "from:Ana before:May ",
        "# heading\n",
        "- [ ] task\n",
        "| a | b |\n",
        "really?\n",
        "> a: b: c: ",
    ],
)
def test_very_long_text_is_searched_for_pastes_only_as_far_as_it_could_be_typed(unit: str) -> None:
    text = unit * (LONG_CHARS // len(unit))
    assert is_partly_pasted(text)
    assert typed_part(text) in ("", "really?")
    assert_linear(is_partly_pasted, text)
    assert_linear(typed_part, text)


@pytest.mark.parametrize("lead", ["look at this: {}", "is this true?\n{}"])
def test_paste_at_the_begin_of_a_very_long_text_is_found(lead: str) -> None:
    assert "Mallory" not in typed_part(lead.format(f"{CLAIM}. " * 10_000))


def test_text_below_more_quoted_lines_than_people_quote_is_not_typed() -> None:
    assert typed_part("| a\n" * 50 + "call me") == "call me"
    assert typed_part("| a\n" * 500 + "call me") == ""
    assert typed_part("call me" + "\n| a" * 500) == ""


def test_text_with_more_colons_than_people_write_is_not_typed() -> None:
    assert typed_part("a: b " * 20) == ("a: b " * 20).strip()
    assert typed_part("a: b " * 60) == ""


@pytest.mark.parametrize(
    ("old", "new", "origin"),
    [
        (f"look at this: {CLAIM}", "look at this", "pasted"),
        (f"What is this?\n\n{CLAIM}", "What is this?", "pasted"),
        ("what is it?\n[attached picture “a.png”]", "what is it?", "pasted"),
        (f"look at this: {CLAIM}", f"look at that: {CLAIM}", "typed"),
        ("@Ana is my sister", "Ana is my sister", "typed"),
        ("Remind me at 7 to strech", "Remind me at 7 to stretch", "typed"),
    ],
)
def test_message_counts_as_pasted_if_an_edit_removes_its_foreign_text(
    old: str, new: str, origin: str
) -> None:
    assert find_edited_origin("typed", old, new) == origin
