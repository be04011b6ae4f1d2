"""Requests of strangers for access, and codes that approve a stranger or link accounts."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from datetime import datetime

from core.types import Account, Inbound

ALPHABET = "ACDEFGHJKMNPQRTUVWXYZ234679"
"""Letters and digits that people don't confuse with each other."""
CODE_CHARS = 8
MAX_WAITING_CHARS = 4096
"""How many characters of a stranger's message are stored until the owner approves the stranger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A stranger's request for access, which the owner approves by its code."""

    code: str
    account: Account
    name: str
    expires_at: datetime
    # The stranger's first message that isn't a command. It is answered after approval. If the
    # stranger has sent only a command, this is the command without its text.
    inbound: Inbound | None


def generate_code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS))


def normalize_code(code: str) -> str:
    """Convert a typed code to the stored form: capitals without spaces and dashes."""
    return "".join(char for char in code[:100].upper() if char.isalnum())


def limit_waiting_message(inbound: Inbound) -> Inbound:
    """Return a stranger's message with a shorter text (none for a command) and no attachments."""
    text = inbound.text[:MAX_WAITING_CHARS] if inbound.command is None else ""
    return replace(
        inbound,
        kind="message",
        text=text,
        command=None,
        reply_to=None,
        quote=None,
        attachments=(),
    )
