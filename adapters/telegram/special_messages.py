"""Describes messages without text in words: polls, checklists, dice, and unknown kinds.

Unknown kinds are stored as raw JSON, so that their words can be found later. Source: the fields of
the object "Message" in the documentation of the Bot API. The words count as inserted, not as typed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from telegram import Message

from core.guard.origin_and_fence import insertion
from core.text.normalize import shorten

# Kinds of messages whose content bots don't get, or that Mneme doesn't understand.
UNREADABLE_KINDS: Mapping[str, str] = {
    "story": "a story",
    "game": "a game",
    "invoice": "an invoice",
    "gift": "a gift",
    "unique_gift": "a gift",
    "gift_upgrade_sent": "a gift",
    "giveaway": "a giveaway",
    "giveaway_created": "a giveaway",
    "giveaway_winners": "the winners of a giveaway",
    "giveaway_completed": "the end of a giveaway",
    "paid_media": "paid media",
    "successful_payment": "a payment",
    "refunded_payment": "a refund",
    "passport_data": "data of Telegram Passport",
    "web_app_data": "data of a web app",
    "users_shared": "shared contacts",
    "chat_shared": "a shared chat",
}
# The kind was added in a later version of the Bot API.
UNKNOWN_KIND = "something new"
MAX_RAW_CHARS = 1_500


def describe_special_message(message: Message) -> str:
    """Describe a message without text. Returns "" for files and for service messages.

    A kind that is new in the Bot API is described in direct chats only, because in groups it may be
    a service message.
    """
    if message.poll:
        return _describe_poll(message)
    if message.checklist:
        tasks = "; ".join(
            f"{'done' if task.completion_date else 'open'}: {task.text}"
            for task in message.checklist.tasks
        )
        return f"Checklist: {insertion(f'{message.checklist.title}. {tasks}')}"
    if message.dice:
        return f"Dice: {insertion(f'{message.dice.emoji} {message.dice.value}')}"
    for field, name in UNREADABLE_KINDS.items():
        if getattr(message, field, None):
            return _name_unreadable(name, message.to_dict()[field])
    if message.chat.type == "private" and message.api_kwargs:
        return _name_unreadable(UNKNOWN_KIND, dict(message.api_kwargs))
    return ""


def _describe_poll(message: Message) -> str:
    poll = message.poll
    assert poll is not None
    options = [option.text for option in poll.options]
    if poll.is_closed:
        options = [f"{option.text} ({option.voter_count})" for option in poll.options]
    state = "Closed poll" if poll.is_closed else "Poll"
    joined = "; ".join(options)
    return f"{state}: {insertion(f'{poll.question} Options: {joined}')}"


def _name_unreadable(name: str, content: Any) -> str:
    """Return the name of an unknown kind of message, with its raw content."""
    raw = shorten(json.dumps(content, ensure_ascii=False), MAX_RAW_CHARS)
    return f"Message: {insertion(f'{name}, which can be read only in Telegram: {raw}')}"
