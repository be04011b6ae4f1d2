"""Reads the journal of erasures: its lines, its damage, and whether it belongs to a backup.

The key of a line is derived from the key of a backup, by one digest for each epoch between them. So
only a backup from before an erasure, of the same state.db, can decrypt the line of that erasure.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import xor

# Matches the epoch, the day, the token of the erasure, and the ciphertext in hexadecimal, e.g. "12
# 2026-11-20 Zk3bQw 9f02c4".
_LINE = re.compile(r"(\d{1,6}) (\S{10}) (\S+) ((?:[0-9a-f]{2})+)")
# A line whose end is damaged or missing.
_START_OF_LINE = re.compile(r"(\d{1,6}) (\d{4}-\d\d-\d\d)\b")
# The name of `address` in the lines of earlier versions.
_EARLIER_ADDRESS = "lane"


@dataclass(frozen=True, slots=True, order=True)
class JournalLine:
    """One erasure, encrypted with the key of its epoch."""

    epoch: int
    # ISO 8601.
    day: str
    token: str
    # In hexadecimal.
    ciphertext: str

    def decrypt(self, key: str) -> dict[str, object]:
        """Return the columns of the erasure. Raises ValueError if the key doesn't fit."""
        content = xor_with_key(key, self.token, bytes.fromhex(self.ciphertext))
        values: dict[str, object] = json.loads(content)
        if _EARLIER_ADDRESS in values:
            values["address"] = values.pop(_EARLIER_ADDRESS)
        return values

    def fits(self, key: str) -> bool:
        """Return whether the key decrypts this line."""
        try:
            self.decrypt(key)
        except ValueError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Journal:
    """The lines of a journal in the order of their epochs, and the damaged lines."""

    lines: Sequence[JournalLine]
    damaged_lines: Sequence[str]

    @classmethod
    def parse(cls, text: str) -> Journal:
        """Read a journal.

        A full disk may cut off a line, and the erasure then writes its line again. Such a line
        isn't damage.
        """
        texts = [line.strip() for line in text.splitlines() if line.strip()]
        matches = [(line, _LINE.fullmatch(line)) for line in texts]
        intact = [match for _, match in matches if match]
        lines = sorted({JournalLine(int(line[1]), line[2], line[3], line[4]) for line in intact})
        tokens = {line.token for line in lines}
        damaged = [
            line for line, match in matches if not match and not tokens & set(line.split(" "))
        ]
        return cls(lines, damaged)

    def find_damaged_days(self, epoch: int) -> Mapping[str, str]:
        """Map the damaged lines of later epochs to their days (ISO 8601).

        Lines whose start is damaged, too, are left out.
        """
        matches = [(line, _START_OF_LINE.match(line)) for line in self.damaged_lines]
        return {line: match[2] for line, match in matches if match and int(match[1]) > epoch}

    def has_erasures_after(self, epoch: int, key: str) -> bool:
        """Return whether a line follows a backup with this epoch and key."""
        for line in [line for line in self.lines if line.epoch > epoch]:
            key, epoch = next_key(key, line.epoch - epoch), line.epoch
            if line.fits(key):
                return True
        return False


def next_key(key: str, count: int = 1) -> str:
    """Return the key that replaces a key after `count` epochs."""
    for _ in range(count):
        key = hashlib.sha256(key.encode()).hexdigest()
    return key


def xor_with_key(key: str, token: str, content: bytes) -> bytes:
    """Encrypt or decrypt the content of a line."""
    stream = hashlib.shake_256(f"{key} {token}".encode()).digest(len(content))
    return bytes(map(xor, content, stream))
