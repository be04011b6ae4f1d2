"""Where nothing is written down at present: addresses of incognito conversations. Known to this process alone."""

from __future__ import annotations

from core.types import Address


class Veil:
    """Asked by whoever is about to write what was said."""

    def __init__(self) -> None:
        self._covered: set[Address] = set()

    def covers(self, address: Address) -> bool:
        """Whether what is said there is not to be written down."""
        return address in self._covered

    def draw(self, address: Address) -> None:
        """From now on nothing."""
        self._covered.add(address)

    def lift(self, address: Address) -> None:
        """From now on as everywhere."""
        self._covered.discard(address)
