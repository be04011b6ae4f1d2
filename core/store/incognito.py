"""Which conversations are incognito: in this process, and as marks for the next one, which has to say that they are
gone. No word of them is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.ports import Clock
from core.store import rows
from core.store.engine import Connection, Database
from core.store.inbox import close_entries
from core.store.sqlite.erase_bytes import want_pages
from core.types import Address


class IncognitoRegistry:
    """Asked by whoever is about to store what was said."""

    def __init__(self) -> None:
        self._addresses: set[Address] = set()
        self._homes: dict[Address, Address] = {}
        """The first address of a conversation by the new ones of its chat, which has moved."""

    def has(self, address: Address) -> bool:
        """Whether the conversation there is incognito."""
        return self.home(address) in self._addresses

    def home(self, address: Address) -> Address:
        """Where the conversation began that goes on at an address; the address itself unless its chat has moved."""
        return self._homes.get(address, address)

    def addresses(self, address: Address) -> list[Address]:
        """All addresses of the conversation that is held there, the first one first."""
        home = self.home(address)
        return [home, *(new for new, old in self._homes.items() if old == home)]

    def move(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """What is incognito in a chat is so at its new id as well."""
        for address in [*self._addresses, *self._homes]:
            if (address.platform, address.chat_id) == (platform, old_chat_id) and self.has(address):
                self._homes.setdefault(replace(address, chat_id=new_chat_id), self.home(address))

    def add(self, address: Address) -> None:
        """The conversation there is incognito from now on."""
        self._addresses.add(address)

    def remove(self, address: Address) -> None:
        """The conversation there is stored again."""
        for one in self.addresses(address):
            self._addresses.discard(one)
            self._homes.pop(one, None)


ADD = "INSERT INTO veils (address_id, at) VALUES (:address, :now) ON CONFLICT (address_id) DO NOTHING"
EMPTY_INBOX = """
UPDATE inbox SET inbound = json_set(
    inbound, '$.text', '', '$.command', NULL, '$.attachments', json('[]'), '$.reply_to', NULL
) WHERE address_id = :address
"""
ALL = """
SELECT platform, chat_id, thread_id FROM veils JOIN addresses ON addresses.id = veils.address_id
ORDER BY veils.at, addresses.id
"""
WAITING = "SELECT id FROM inbox WHERE address_id IN (SELECT address_id FROM veils)"


class IncognitoMarks:
    """Marks in state.db, one for each address."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, address: Address) -> None:
        """The conversation at an address is incognito; what waits there loses its words in the inbox."""
        now = rows.timestamp(self._clock.now())

        def work(connection: Connection) -> None:
            values = {"address": rows.ensure_address(connection, address), "now": now}
            connection.execute(ADD, values)
            if connection.execute(EMPTY_INBOX, values).rowcount:
                want_pages(connection)

        await self._database.write(work)

    async def remove(self, address: Address) -> None:
        """It is over."""

        def work(connection: Connection) -> None:
            values = {"address": rows.find_address(connection, address)}
            connection.execute("DELETE FROM veils WHERE address_id = :address", values)

        await self._database.write(work)

    async def left_over(self) -> Sequence[Address]:
        """At the start of a process: where the one before it was incognito. What waited there is closed, since its
        words are gone; the marks stay until `remove`."""
        now = self._clock.now()

        def work(connection: Connection) -> Sequence[Address]:
            close_entries(connection, [row["id"] for row in connection.execute(WAITING).fetchall()], now)
            return [rows.address_of(row) for row in connection.execute(ALL)]

        return await self._database.write(work)
