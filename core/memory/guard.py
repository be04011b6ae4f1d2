"""Looks at text that is about to enter the system prompt for what does not belong there.

Notes, SOUL.md and AGENTS.md are read by the model as its own instructions, so text that came from elsewhere must not
give orders there. Says what is wrong; never changes text, never decides what happens then.
"""

from __future__ import annotations

import re
import unicodedata

_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")
"""The flags of Scotland and its like: a black flag with the region's code in tag characters."""

_SOFT_BREAK = re.compile(r"(?<=[^\W_])\n(?=[^\W_])")
"""Where a line was wrapped inside a sentence; a list or a heading begins otherwise."""

# Zero-width joiners are left out on purpose: emoji, Persian and Hindi need them.
_HIDDEN = {
    "\u200b": "a zero-width space",
    "\u2060": "a word joiner",
    "\ufeff": "a byte order mark",
    "\u202a": "a direction override",
    "\u202b": "a direction override",
    "\u202d": "a direction override",
    "\u202e": "a direction override",
    "\u2066": "a direction override",
    "\u2067": "a direction override",
    "\u2068": "a direction override",
}

_ORDERS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (reason, re.compile(pattern, re.IGNORECASE))
    for reason, pattern in (
        (
            "an order to ignore instructions",
            r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:previous|prior|above|earlier|all|your)\b"
            r"[^.\n]{0,30}\b(?:instructions?|rules|prompts?|guidelines)\b",
        ),
        (
            "an attempt to give the assistant another role",
            r"\byou are (?:now|no longer)\b[^.\n]{0,30}"
            r"\b(?:assistant|ai|dan|jailbroken|unrestricted|developer mode|system)\b",
        ),
        ("a forged system message", r"<\s*/?\s*(?:system|assistant|memory-context)\s*>|\[\s*system\s*\]\s*:"),
        (
            "an order to keep something from the user",
            r"\b(?:do not|don['’]?t|never) (?:tell|inform|mention (?:this )?to) the user\b",
        ),
        (
            "an order to send secrets away",
            r"\b(?:curl|wget)\b[^\n]{0,120}(?:\$\{?\w*(?:key|token|secret|password)|\.env\b|id_rsa|/etc/passwd)",
        ),
        ("an attempt to gain lasting access", r"\bauthorized_keys\b|\bcrontab\s+-"),
    )
)


def suspicion(text: str) -> str | None:
    """What makes `text` unfit for the system prompt, as a noun phrase; None when nothing does."""
    for character in _FLAG.sub("", text):
        if character in _HIDDEN:
            return f"{_HIDDEN[character]} (U+{ord(character):04X})"
        if 0xE0000 <= ord(character) <= 0xE007F:
            return "invisible tag characters"
    # What the eye does not see, joiners and soft hyphens among it, must not hide a word from the patterns either.
    visible = "".join(character for character in text if unicodedata.category(character) != "Cf")
    folded = _SOFT_BREAK.sub(" ", unicodedata.normalize("NFKC", visible).replace("\r\n", "\n"))
    for reason, pattern in _ORDERS:
        if pattern.search(folded):
            return reason
    return None
