"""The chats that this gateway works on, if several gateways share a database.

A gateway works on the inbox entries and outbox items of its own chats only. The front, which
receives the messages of all platforms, also works on everything that belongs to no chat of another
gateway, such as scheduled questions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from core.types import Address

CHAT_OF_ITEM = "substr(outbox.address, 1, instr(outbox.address || '/', '/') - 1)"
"""The chat of an outbox item, as an SQL expression."""
IS_UNOWNED = f"NOT EXISTS (SELECT 1 FROM chat_owners WHERE chat = {CHAT_OF_ITEM})"
"""The SQL condition for an outbox item whose chat no gateway works on."""


def chat_key(address: Address) -> str:
    """Return the key of a chat: of its address without the thread."""
    return replace(address, thread_id=None).key


@dataclass(eq=False)
class ChatOwnership:
    """Which chats this gateway works on.

    `owners` has the number of the gateway that works on each chat, as far as this gateway knows.
    The front knows all of them, and the other gateways know their own.
    """

    # The number of this gateway.
    number: int
    is_front: bool = False
    owners: dict[str, int] = field(default_factory=dict)

    @property
    def own_items(self) -> str:
        """The SQL condition for the outbox items that this gateway delivers."""
        other = "gateway_id <>" if self.is_front else "gateway_id ="
        word = "NOT EXISTS" if self.is_front else "EXISTS"
        owners = f"SELECT 1 FROM chat_owners WHERE chat = {CHAT_OF_ITEM}"
        return f"{word} ({owners} AND {other} {self.number})"

    def is_ours(self, address: Address) -> bool:
        """Return whether this gateway works on the chat of an address."""
        owner = self.owners.get(chat_key(address), self.number if self.is_front else 0)
        return owner == self.number
