"""Finds characters that the eye does not see or that turn the direction of reading, where no script needs them.

Joiners of emoji, Persian and the scripts of India, marks of Arabic and Hebrew, phone numbers as address books copy
them, flags and soft hyphens are left in peace. Reads characters only, never words.
"""

from __future__ import annotations

import re

from core.guard.threat import Threat

_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")
"""The flags of Scotland and its like: a black flag with the region's code in tag characters."""

_VARIANT = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff][\U000e0100-\U000e01ef]")
"""A Han character and the one sign that chooses among its printed forms."""

_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df"
"""Thai, Lao, Burmese, Khmer, Tai: a zero-width space is where a line may break."""

_NEEDED = re.compile(
    f"(?<=[{_UNSPACED}])\u200b|\u200b(?=[{_UNSPACED}])"
    "|[\u202a\u202b\u202d\u2066-\u2068]{1,4}[0-9 +()./\u00a0\u2011-]{3,24}[\u202c\u2069]{1,4}"
)
"""A possible line break, and a phone number kept from turning in right-to-left text."""

_ISOLATED = re.compile(f"[{_RIGHT_TO_LEFT}]")
_ISOLATE = re.compile("[\u2066-\u2068]([^\u2066-\u2069\u202a-\u202e\n]{0,200})\u2069")
_EMBEDDED = re.compile("[\u202a\u202b]([^\u2066-\u2069\u202a-\u202e\n]{0,200})\u202c")

_FINDS: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (name, detail, re.compile(pattern))
    for name, detail, pattern in (
        ("invisible", "tag characters", "[\U000e0000-\U000e007f]"),
        ("invisible", "zero-width space, U+200B", "\u200b"),
        ("invisible", "word joiner, U+2060", "\u2060"),
        ("invisible", "byte order mark, U+FEFF", "(?<!^)\ufeff"),
        ("direction", "", "[\u202a\u202b\u202d\u202e\u2066-\u2068]"),
        (
            "invisible",
            "a joiner inside a word",
            "(?<=[A-Za-z\u0400-\u04ff])[\u200c-\u200f\u061c]+(?=[A-Za-z\u0400-\u04ff])",
        ),
        ("invisible", "a row of joiners", "[\u200b-\u200f\u2060-\u2064\ufeff]{3}"),
        ("invisible", "variation selectors", "[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2}|[\U000e0100-\U000e01ef]"),
        ("invisible", "invisible operators", "[\u2061-\u2065\u206a-\u206f]"),
        ("invisible", "blank letters", "[\u115f\u1160\u3164\uffa0\u2800]{2}|[\u17b4\u17b5\u180e\ufff9-\ufffb]"),
        ("invisible", "control characters", "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]"),
    )
)


def unseen(text: str) -> Threat | None:
    """The first character that hides something or turns the text around; None when there is none."""
    if text.isascii() and text.isprintable():
        return None
    rest = _NEEDED.sub("", _VARIANT.sub("", _FLAG.sub("", text)))
    if _ISOLATED.search(rest):
        rest = _EMBEDDED.sub(r"\1", _ISOLATE.sub(r"\1", rest))
    for name, detail, pattern in _FINDS:
        if found := pattern.search(rest):
            return Threat.of(name, detail or f"U+{ord(found[0]):04X}")
    return None
