"""Divide the chats between the gateways that share a database.

A gateway works only on the inbox entries and outbox items of its own chats. The front gateway
receives the messages of all platforms. It also works on all items that belong to no other gateway's
chat, such as scheduled questions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from core.types import Address

CHAT_OF_ITEM = "substr(outbox.address, 1, instr(outbox.address || '/', '/') - 1)"
"""The chat of an outbox item, as an SQL expression."""
IS_UNOWNED = f"NOT EXISTS (SELECT 1 FROM chat_owners WHERE chat = {CHAT_OF_ITEM})"
"""The SQL condition for an outbox item whose chat no gateway works on."""


def chat_key(address: Address) -> str:
    """Return the key of the chat that contains an address. Threads of a chat have the same key."""
    return replace(address, thread_id=None).key


@dataclass(eq=False)
class ChatOwnership:
    """Knows which chats this gateway works on.

    `owners` maps chats to the number of the gateway that works on them. The front gateway knows all
    owners. The other gateways know only their own chats.
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
