"""What every command is told, who gives it and where; and how the commands are announced."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pydantic import TypeAdapter

from core.store.erasure import ErasureRequest
from core.store.notes import Author
from core.types import Account, Address, Button, Command, CommandSpec, ErasureEpoch, Inbound, Scope, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """`scopes` is all that may be seen, as of `epoch`; `scope` is what is written to, `session` the open one.
    `is_stopped`: a turn was running and has been stopped for this /stop. `is_shell`: typed as `mneme …`, not in a chat.
    `target`: where a reminder is delivered, if not here."""

    inbound: Inbound
    scope: Scope
    scopes: frozenset[Scope]
    session: Session
    is_owner: bool
    is_stopped: bool = False
    is_shell: bool = False
    target: Address | None = None
    epoch: ErasureEpoch | None = None

    @property
    def account(self) -> Account:
        return self.inbound.account

    @property
    def is_public(self) -> bool:
        """Whether others read the answer: in a room, unless the platform shows it to this person alone."""
        return not self.inbound.is_direct and not self.inbound.is_interaction

    @property
    def is_wide(self) -> bool:
        """Whether the platform has room for a table."""
        return self.inbound.address.platform == "terminal"

    @property
    def is_member(self) -> bool:
        """Whether somebody speaks in a room who is not the owner: what is kept there is not theirs to decide."""
        return self.scope.is_room and not self.is_owner

    @property
    def origin(self) -> str:
        """A stable key of the command's message or button: what it makes is made once."""
        press = self.inbound.kind == "action"
        return f"{self.inbound.address.key}#{self.inbound.text if press else self.inbound.message_id}"

    @property
    def author(self) -> Author:
        """Who changes something with this command, and with which message, if that can be opened again."""
        is_message = self.inbound.kind == "message" and not self.inbound.is_interaction and not self.is_shell
        return Author(
            account=self.account,
            address=None if self.is_shell else self.inbound.address,
            external_id=self.inbound.message_id if is_message else None,
            origin="member" if self.is_member else "typed",
            reason="in a room the owner decides what stands in its notes",
            epoch=self.epoch,
        )

    @property
    def erasure_request(self) -> ErasureRequest:
        return ErasureRequest(
            account=self.account,
            scope=self.scope,
            scopes=self.scopes,
            address=self.inbound.address,
            is_owner=self.is_owner,
            epoch=self.epoch,
        )


def button(label: str, name: str, arguments: str) -> Button:
    return Button(label=label, command=Command(name=name, arguments=arguments))


def announced(*names: str) -> tuple[CommandSpec, ...]:
    return tuple(_specs()[name] for name in names)


def number_in(words: str) -> int | None:
    """The number of ``3`` or ``#3``."""
    word = words.strip().lstrip("#")
    return int(word) if word.isascii() and word.isdigit() and len(word) < 18 else None


@cache
def _specs() -> Mapping[str, CommandSpec]:
    tables = tomllib.loads(files("gateway.commands").joinpath("commands.toml").read_text(encoding="utf-8"))
    named = {name: {"name": name, **table} for name, table in tables.items()}
    return TypeAdapter(dict[str, CommandSpec]).validate_python(named)
