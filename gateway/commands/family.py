"""The role of a group of commands: one file each (`*_commands.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from core.types import Answer, Command, CommandSpec
from gateway.commands.context import Caller


class Family(Protocol):
    """Some commands that belong together."""

    @property
    def specs(self) -> Sequence[CommandSpec]:
        """What is announced."""

    def is_reading(self, command: Command) -> bool:
        """Whether the command changes nothing, so that it need not wait for its turn."""

    async def run(self, command: Command, caller: Caller) -> Answer:
        """Does it. Raises Refused with a sentence for the person."""
