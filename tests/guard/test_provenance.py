"""Which part of a message was typed, what the model is told of the rest, and by what two of one
name are told apart."""

from __future__ import annotations

import pytest

from core.guard.origin_and_fence import (
    WATCH_INSTRUCTION,
    account_mark,
    origin_label,
    typed_part,
    typed_text,
)
from core.text.pastes import TYPED_CHARS
from core.types import Account, Message, Origin, Role, Sender
from tests.fixtures.samples import NOON


def message(
    text: str, origin: Origin = "typed", role: Role = "user", *, is_nobody: bool = False
) -> Message:
    sender = Sender(id="42", name="Ana", is_anonymous=is_nobody)
    return Message(
        role=role, text=text, session_id=1, created_at=NOON, sender=sender, origin=origin
    )


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("I live in Porto", "I live in Porto"),
        ("I live in Porto\nand like tea", "I live in Porto\nand like tea"),
        ("What is this?\n\nI live in Rome", "What is this?"),
        ("What is this?\n \t\nI live in Rome", "What is this?"),
        ("why?\n```\nname = 'Rome'\n```\nI live in Porto", "why?"),
        ("~~~\nI live in Rome\n~~~", ""),
        ("\n\nI live in Porto\n\n", "I live in Porto"),
        ("a" * TYPED_CHARS, "a" * TYPED_CHARS),
        ("a" * (TYPED_CHARS + 1), ""),
        ("say hi\n\n" + "a" * 10_000, "say hi"),
        ("", ""),
    ],
)
def test_typed_part_of_a_message_is_separated_from_pasted_text(text: str, typed: str) -> None:
    assert typed_part(text) == typed
    assert typed_text(message(text)) == typed
    assert origin_label(message(text)) == ("" if typed == text.strip() else "partly pasted")


def test_question_of_a_watch_counts_as_typed_up_to_the_limit_without_its_instruction() -> None:
    question = "Is the ferry late? ".ljust(TYPED_CHARS, "x")
    assert typed_text(message(question + WATCH_INSTRUCTION)) == question
    assert origin_label(message(question + WATCH_INSTRUCTION)) == ""
    assert typed_text(message(f"{question}x{WATCH_INSTRUCTION}")) == ""


@pytest.mark.parametrize(
    ("origin", "words"),
    [("forwarded", "forwarded"), ("via_bot", "sent through a bot"), ("imported", "imported")],
)
def test_text_of_another_origin_is_not_typed_and_gets_a_label(origin: Origin, words: str) -> None:
    assert typed_text(message("I live in Porto", origin)) == ""
    assert origin_label(message("I live in Porto", origin)) == words


def test_message_of_an_anonymous_sender_or_the_assistant_is_not_typed() -> None:
    assert typed_text(message("I live in Porto", is_nobody=True)) == ""
    assert typed_text(message("I live in Porto", role="assistant")) == ""
    assert typed_text(message("I live in Porto", role="tool")) == ""


def test_account_mark_is_deterministic_and_differs_between_accounts() -> None:
    ana, other = (
        Account(platform="telegram", user_id="42"),
        Account(platform="telegram", user_id="43"),
    )
    assert account_mark(ana) == account_mark(Account(platform="telegram", user_id="42"))
    assert account_mark(ana) != account_mark(other)
    assert len(account_mark(ana)) == 5
