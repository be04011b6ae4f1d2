"""What a person decides about an import, where the file cannot say it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, tzinfo

from core.transfer.record import HOME
from core.types import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """`scope`: whose the history is. `zone`: where local times without a zone were written (old Telegram exports have
    only those). `assistants`: names or ids of senders who are the assistant, not a person; compared without case."""

    scope: Scope = HOME
    zone: tzinfo = UTC
    assistants: frozenset[str] = frozenset()

    def is_assistant(self, *names: str | None) -> bool:
        """Whether a sender with any of these names and ids was named as the assistant."""
        known = {name.casefold() for name in self.assistants}
        return any(name is not None and name.casefold() in known for name in names)
