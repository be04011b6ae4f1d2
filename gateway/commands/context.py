"""Who gives a command, and where: what every command is told."""

from __future__ import annotations

from dataclasses import dataclass

from core.types import Account, Inbound, Scope, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """`scopes` is all he may see, `scope` where he writes, `session` the open one; `is_stopped`: a turn was running
    and has been stopped for this /stop. `said_id`: the stored message whose words the command was given."""

    inbound: Inbound
    scope: Scope
    scopes: frozenset[Scope]
    session: Session
    is_owner: bool
    is_stopped: bool = False
    said_id: int | None = None

    @property
    def account(self) -> Account:
        """The account that speaks."""
        return Account(platform=self.inbound.address.platform, user_id=self.inbound.sender.id)

    @property
    def is_overlooked(self) -> bool:
        """Whether others read the answer: in a room, unless the platform shows it to the caller alone."""
        return not self.inbound.is_direct and not self.inbound.is_interaction

    @property
    def origin(self) -> str:
        """Names the command's own message, or the button it came from, for ever: what it makes is made once."""
        press = self.inbound.kind == "action"
        return f"{self.inbound.address.key}#{self.inbound.text if press else self.inbound.message_id}"
