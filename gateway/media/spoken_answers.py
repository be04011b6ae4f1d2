"""Answers a spoken "yes", which confirms nothing because speech is easily misheard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from core.store.actions import ButtonAction, build_question
from core.types import Answer, Inbound, Scope
from gateway.commands.registry import CommandRegistry, is_yes, make_yes_button
from gateway.texts.catalog import load_texts


async def answer_spoken_yes(
    inbound: Inbound, scope: Scope, commands: CommandRegistry, now: datetime
) -> tuple[Answer, Sequence[ButtonAction]] | None:
    """Ask for a tap if a voice note only says "yes" and answers a question.

    Returns an answer with the button of the question, and the question, which stays open. Returns
    None for other messages.
    """
    typed = replace(inbound, origin="typed", attachments=())
    if inbound.origin != "spoken" or not is_yes(typed, is_ok_enough=True):
        return None
    taker = f"{inbound.kind}:{inbound.message_id}"
    questions = await commands.actions.take(inbound.address, inbound.account, taker, now)
    origin = f"{inbound.address.key}#{inbound.message_id}"
    repeated_questions = [
        build_question(
            question.command, inbound.account, scope, inbound.address, f"{origin}/{number}", now
        )
        for number, question in enumerate(questions)
        if question.command.name != "yes"
    ]
    if not repeated_questions:
        return None
    texts = load_texts(inbound.language)
    buttons = [make_yes_button(texts, question) for question in repeated_questions[:1]]
    return Answer(text=texts.SPOKEN_YES, buttons=tuple(buttons)), repeated_questions[:1]
