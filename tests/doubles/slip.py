"""A receipt that tests can look into."""

from __future__ import annotations


class Slip:
    """Fills the role Receipt in memory. `posted`: messages that an earlier process has made."""

    def __init__(self, *posted: str, key: str = "turn:1") -> None:
        self.key = key
        self.posted = [*posted]

    async def record(self, message_id: str) -> None:
        self.posted.append(message_id)
