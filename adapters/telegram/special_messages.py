"""Describes messages without text in words: polls, checklists, dice, and unknown kinds.

Unknown kinds are stored as raw JSON, so that their words can be found later. Source: the fields of
the object "Message" in the documentation of the Bot API. The words count as inserted, not as typed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from telegram import ChecklistTask, Message

from core.errors import word_clause
from core.guard.origin_and_fence import insertion
from core.text.normalize import shorten

# Kinds of messages whose content bots don't get, or that Mneme doesn't understand, with the keys
# of their names in `core/errors.toml`.
UNREADABLE_KINDS: Mapping[str, str] = {
    "story": "unreadable_story",
    "game": "unreadable_game",
    "invoice": "unreadable_invoice",
    "gift": "unreadable_gift",
    "unique_gift": "unreadable_gift",
    "gift_upgrade_sent": "unreadable_gift",
    "giveaway": "unreadable_giveaway",
    "giveaway_created": "unreadable_giveaway",
    "giveaway_winners": "unreadable_winners",
    "giveaway_completed": "unreadable_giveaway_end",
    "paid_media": "unreadable_paid_media",
    "successful_payment": "unreadable_payment",
    "refunded_payment": "unreadable_refund",
    "passport_data": "unreadable_passport",
    "web_app_data": "unreadable_web_app",
    "users_shared": "unreadable_contacts",
    "chat_shared": "unreadable_chat",
}
# The kind was added in a later version of the Bot API.
UNKNOWN_KIND = "unreadable_new"
MAX_RAW_CHARS = 1_500


def describe_special_message(message: Message) -> str:
    """Describe a message without text. Returns "" for files and for service messages.

    A kind that is new in the Bot API is described in direct chats only, because in groups it may be
    a service message.
    """
    if message.poll:
        return _describe_poll(message)
    if message.checklist:
        tasks = "; ".join(map(_describe_task, message.checklist.tasks))
        content = insertion(f"{message.checklist.title}. {tasks}")
        return word_clause("inserted_checklist", content=content)
    if message.dice:
        content = insertion(f"{message.dice.emoji} {message.dice.value}")
        return word_clause("inserted_dice", content=content)
    for field, key in UNREADABLE_KINDS.items():
        if getattr(message, field, None):
            return _describe_unreadable(key, message.to_dict()[field])
    if message.chat.type == "private" and message.api_kwargs:
        return _describe_unreadable(UNKNOWN_KIND, dict(message.api_kwargs))
    return ""


def _describe_poll(message: Message) -> str:
    poll = message.poll
    assert poll is not None
    options = [option.text for option in poll.options]
    if poll.is_closed:
        options = [f"{option.text} ({option.voter_count})" for option in poll.options]
    content = word_clause("event_poll", question=poll.question, options="; ".join(options))
    key = "inserted_closed_poll" if poll.is_closed else "inserted_poll"
    return word_clause(key, content=insertion(content))


def _describe_task(task: ChecklistTask) -> str:
    if task.completion_date:
        return word_clause("event_tasks_done", tasks=task.text)
    return word_clause("event_task_open", task=task.text)


def _describe_unreadable(key: str, content: Any) -> str:
    """Return the name of a kind of message that can't be read, with the raw content."""
    raw = shorten(json.dumps(content, ensure_ascii=False), MAX_RAW_CHARS)
    text = word_clause("event_unreadable", kind=word_clause(key), platform="Telegram", raw=raw)
    return word_clause("inserted_message", content=insertion(text))
