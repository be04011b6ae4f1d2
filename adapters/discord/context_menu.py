"""Entries of the context menu of a message: how a command that has one is announced, and what a call of it says.

The message comes with the call, also where we do not read the channel. Words of others are marked with their name, so
that nothing takes them for the caller's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from core.types import CommandSpec

MESSAGE = 3
"""Kind of application command that stands in the menu of messages."""
LIMIT_ENTRIES = 5
LIMIT_NAME = 32
_MENTION = re.compile(r"<@!?([0-9]{15,20})>")


def entry(spec: CommandSpec) -> dict[str, Any]:
    """The payload of an entry; Discord shows its name as it is, and takes no description."""
    return {
        "type": MESSAGE,
        "name": spec.menu[:LIMIT_NAME],
        "contexts": [0, 1],
        "integration_types": [0],
    }


def chosen(data: Mapping[str, Any], specs: Mapping[str, CommandSpec]) -> CommandSpec | None:
    """The command whose entry was chosen; None where the call is none of a menu."""
    if data.get("type") != MESSAGE:
        return None
    return next((spec for spec in specs.values() if spec.menu and spec.menu[:LIMIT_NAME] == data.get("name")), None)


def said(data: Mapping[str, Any], caller_id: str) -> tuple[str, str]:
    """Text and id of the message that was chosen."""
    message_id = str(data.get("target_id") or "")
    messages = (data.get("resolved") or {}).get("messages") or {}
    message = messages.get(message_id) or {}
    names = {str(user["id"]): _name(user) for user in message.get("mentions") or []}
    forwarded = message.get("message_snapshots") or []
    snapshots = [(snapshot.get("message") or {}).get("content", "") for snapshot in forwarded]
    content = message.get("content") or "\n\n".join(filter(None, snapshots))
    text = _MENTION.sub(lambda match: f"@{names[match[1]]}" if match[1] in names else match[0], content).strip()
    author = message.get("author") or {}
    if text and forwarded:
        return f"Forwarded: {text}", message_id
    is_own = str(author.get("id")) == caller_id and not message.get("webhook_id")
    return (text if is_own or not text else f"{_name(author)}: {text}"), message_id


def _name(user: Mapping[str, Any]) -> str:
    return str(user.get("global_name") or user.get("username") or "somebody")
