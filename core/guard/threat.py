"""What the guard found in a text: a name for programs and a phrase for people. Says nothing about what to do."""

from __future__ import annotations

from dataclasses import dataclass

REASONS = {
    "override": "an order to ignore instructions",
    "role": "an attempt to give the assistant another role",
    "forgery": "a forged system message",
    "secrecy": "an order to keep something from the user",
    "disclosure": "an order to give away secrets or instructions",
    "exfiltration": "an order to send secrets away",
    "persistence": "an attempt to gain lasting access",
    "command": "a dangerous command",
    "authority": "an order to obey somebody without asking",
    "deception": "an order to mislead the user",
    "secret": "a key or a link with a secret in it",
    "hidden": "text that the eye does not see",
    "invisible": "invisible characters",
    "direction": "a direction override",
    "blob": "a long piece of encoded text",
    "length": "more text than can be looked at",
}
"""The phrase for each name, as it follows "it contains"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threat:
    """`name` is a key of REASONS; `reason` a noun phrase; `is_disguised` says that it had to be decoded to be seen."""

    name: str
    reason: str
    is_disguised: bool = False

    @classmethod
    def of(cls, name: str, detail: str = "", *, is_disguised: bool = False) -> Threat:
        """The threat of that name; `detail` is set behind its phrase in brackets."""
        reason = f"{REASONS[name]} ({detail})" if detail else REASONS[name]
        return cls(name=name, reason=reason, is_disguised=is_disguised)
