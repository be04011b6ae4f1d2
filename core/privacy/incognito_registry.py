"""Where nothing is written down at present: addresses of incognito conversations. Known to this process alone."""

from __future__ import annotations

from dataclasses import replace

from core.types import Address


class Veil:
    """Asked by whoever is about to write what was said."""

    def __init__(self) -> None:
        self._covered: set[Address] = set()
        self._homes: dict[Address, Address] = {}
        """For the new address of a chat that has moved, the one where it was covered."""

    def covers(self, address: Address) -> bool:
        """Whether what is said there is not to be written down."""
        return self.home(address) in self._covered

    def home(self, address: Address) -> Address:
        """Where the conversation began that goes on at an address; the address itself unless its chat has moved."""
        return self._homes.get(address, address)

    def places(self, address: Address) -> list[Address]:
        """All addresses of the conversation that is held there, the first one first."""
        home = self.home(address)
        return [home, *(new for new, old in self._homes.items() if old == home)]

    def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """What is covered in a chat is covered at its new id as well."""
        for address in [*self._covered, *self._homes]:
            if (address.platform, address.chat_id) == (platform, old_chat_id) and self.covers(address):
                self._homes.setdefault(replace(address, chat_id=new_chat_id), self.home(address))

    def draw(self, address: Address) -> None:
        """From now on nothing."""
        self._covered.add(address)

    def lift(self, address: Address) -> None:
        """From now on as everywhere."""
        for place in self.places(address):
            self._covered.discard(place)
            self._homes.pop(place, None)
