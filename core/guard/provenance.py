"""Where a text comes from, as the model is told, and which part of a message its sender has typed.

The rule: typed is what stands before the first blank line or code fence of a message that came as typed, and nothing
where that is longer than people type. All else is pasted. Pure.
"""

from __future__ import annotations

import re
from hashlib import sha256

from core.types import Account, Message

TYPED_CHARS = 600
"""A longer first paragraph is pasted."""
MARK_LETTERS = 4
_PASTED = re.compile(r"\n[^\S\n]*\n|^[^\S\n]{0,3}(?:```|~~~)", re.MULTILINE)
_TOLD = {"forwarded": "forwarded", "via_bot": "sent through a bot", "imported": "imported"}


def typed_part(text: str) -> str:
    """What of a message that came as typed was typed; empty where nothing was."""
    text = text.strip()
    found = _PASTED.search(text)
    typed = (text if found is None else text[: found.start()]).strip()
    return typed if len(typed) <= TYPED_CHARS else ""


def said(message: Message) -> str:
    """What a person has typed of a message; empty for what is forwarded, sent through a bot, imported or a bot's."""
    is_own = message.role == "user" and message.kind == "chat" and not (message.sender and message.sender.is_nobody)
    return typed_part(message.text) if is_own and message.origin == "typed" else ""


def told(message: Message) -> str:
    """The origin of a person's message for the line above it; empty where all of it was typed."""
    if message.origin != "typed":
        return _TOLD.get(message.origin, message.origin)
    return "" if typed_part(message.text) == message.text.strip() else "partly pasted"


def mark(account: Account) -> str:
    """A short name of an account that is always the same, so that two people of one name are two: ``#3fa9``."""
    return f"#{sha256(account.key.encode()).hexdigest()[:MARK_LETTERS]}"
