"""Values to text and back: the JSON in which state.db keeps events, answers, content blocks and token counts.

Every text that goes to SQLite passes `clean`, so that nothing a platform sends can fail to be stored. Knows no table.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from core.types import Address, Answer, Attachment, Button, Command, File, Inbound, Json, Scope, Sender, Usage


def clean(text: str) -> str:
    """`text` as valid Unicode: surrogate pairs are joined, a lone surrogate becomes U+FFFD; all else is unchanged."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def maybe_clean(text: str | None) -> str | None:
    """`clean` for what may be absent; absent and empty stay two things."""
    return None if text is None else clean(text)


def dump(value: object) -> str:
    """Compact JSON; the order of keys is kept, because the model's cached prefix is compared by bytes."""
    return clean(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain))


def dump_blocks(blocks: Sequence[Json], plain: Sequence[Json]) -> str | None:
    """Content blocks as JSON, or None where they say the same as `plain` and need not be stored."""
    encoded = dump([dict(block) for block in blocks])
    if len(blocks) == len(plain) and json.loads(encoded) == json.loads(dump([dict(block) for block in plain])):
        return None
    return encoded


def load_blocks(encoded: str | None) -> tuple[Json, ...] | None:
    """The reverse of `dump_blocks`; None stays None."""
    return None if encoded is None else tuple(json.loads(encoded))


def text_block(text: str) -> tuple[Json, ...]:
    """The block list of a message that is nothing but its text."""
    return ({"type": "text", "text": text},)


def dump_usage(usage: Usage | None) -> str | None:
    """Token counts as an object that SQL can sum with json_extract."""
    if usage is None:
        return None
    return dump(
        {
            "input": usage.input,
            "output": usage.output,
            "cache_read": usage.cache_read,
            "cache_write": usage.cache_write,
            "cache_write_hour": usage.cache_write_hour,
        }
    )


def load_usage(encoded: str | None) -> Usage | None:
    """The reverse of `dump_usage`."""
    return None if encoded is None else Usage(**json.loads(encoded))


def dump_inbound(inbound: Inbound) -> str:
    """An event as JSON; `sent_at` in ISO 8601 with microseconds, UTC."""
    return dump(
        {
            "kind": inbound.kind,
            "address": {
                "platform": inbound.address.platform,
                "chat_id": inbound.address.chat_id,
                "thread_id": inbound.address.thread_id,
            },
            "scope": inbound.scope.key,
            "sender": {"id": inbound.sender.id, "name": inbound.sender.name, "is_nobody": inbound.sender.is_nobody},
            "text": inbound.text,
            "message_id": inbound.message_id,
            "sent_at": inbound.sent_at.astimezone(UTC).isoformat(),
            "is_direct": inbound.is_direct,
            "is_addressed": inbound.is_addressed,
            "command": None if inbound.command is None else _command(inbound.command),
            "reply_to": inbound.reply_to,
            "is_interaction": inbound.is_interaction,
            "is_forward": inbound.is_forward,
            "link_base": inbound.link_base,
            "attachments": [
                {
                    "kind": attachment.kind,
                    "name": attachment.name,
                    "mime": attachment.mime,
                    "size_bytes": attachment.size_bytes,
                    "reference": attachment.reference,
                }
                for attachment in inbound.attachments
            ],
        }
    )


def load_inbound(encoded: str) -> Inbound:
    """The reverse of `dump_inbound`."""
    value = json.loads(encoded)
    return Inbound(
        kind=value["kind"],
        address=Address(**value["address"]),
        scope=Scope(key=value["scope"]),
        sender=Sender(**value["sender"]),
        text=value["text"],
        message_id=value["message_id"],
        sent_at=datetime.fromisoformat(value["sent_at"]),
        is_direct=value["is_direct"],
        is_addressed=value["is_addressed"],
        command=None if value["command"] is None else Command(**value["command"]),
        reply_to=value["reply_to"],
        is_interaction=value["is_interaction"],
        is_forward=value["is_forward"],
        link_base=value["link_base"],
        attachments=tuple(Attachment(**attachment) for attachment in value["attachments"]),
    )


def dump_answer(answer: Answer | None) -> str | None:
    """An answer as JSON, files in base64; None for a parcel whose turn is still at work."""
    if answer is None:
        return None
    return dump(
        {
            "text": answer.text,
            "buttons": [
                {"label": button.label, "command": _command(button.command), "id": button.id}
                for button in answer.buttons
            ],
            "files": [
                {"name": file.name, "content": base64.b64encode(file.content).decode(), "mime": file.mime}
                for file in answer.files
            ],
            "is_private": answer.is_private,
        }
    )


def load_answer(encoded: str | None) -> Answer | None:
    """The reverse of `dump_answer`."""
    if encoded is None:
        return None
    value = json.loads(encoded)
    return Answer(
        text=value["text"],
        buttons=tuple(
            Button(label=button["label"], command=Command(**button["command"]), id=button["id"])
            for button in value["buttons"]
        ),
        files=tuple(
            File(name=file["name"], content=base64.b64decode(file["content"]), mime=file["mime"])
            for file in value["files"]
        ),
        is_private=value["is_private"],
    )


def _command(command: Command) -> dict[str, str]:
    return {"name": command.name, "arguments": command.arguments}


def _plain(value: object) -> Any:
    """Blocks are mappings, not always dicts."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be stored in state.db")
