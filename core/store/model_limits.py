"""Keeps what models lack, and how large their windows are, as their servers' refusals said."""

from __future__ import annotations

from typing import get_args

from config.model_options import Ability
from core.store.rows import Connection, get_meta, set_meta
from core.store.sqlite.database import Database

ABILITIES: tuple[Ability, ...] = get_args(Ability)


class ModelLimits:
    """The limits in state.db, by the full names of models. One row of `state_meta` for each.

    What a model lacks is a list such as ``"tools pictures"``.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_lacks(self, model: str) -> frozenset[Ability]:
        """Return what the server of a model has refused for it."""
        names = await self._database.read(lambda connection: _read(connection, _lacks_key(model)))
        return frozenset(ability for ability in ABILITIES if ability in names.split())

    async def save_lack(self, model: str, ability: Ability) -> None:
        """Remember that a model can't use something."""

        def write(connection: Connection) -> None:
            names = {*_read(connection, _lacks_key(model)).split(), ability}
            set_meta(connection, _lacks_key(model), " ".join(sorted(names)))

        await self._database.write(write)

    async def load_window(self, model: str) -> int | None:
        """Return the size of a model's window that a refusal named, in tokens, or None."""
        tokens = await self._database.read(lambda connection: _read(connection, _window_key(model)))
        return int(tokens) if tokens.isdecimal() else None

    async def save_window(self, model: str, tokens: int) -> None:
        """Remember the size of a model's window."""

        def write(connection: Connection) -> None:
            set_meta(connection, _window_key(model), str(tokens))

        await self._database.write(write)


def _lacks_key(model: str) -> str:
    return f"model_lacks:{model}"


def _window_key(model: str) -> str:
    return f"model_window:{model}"


def _read(connection: Connection, key: str) -> str:
    """Return the value of a key, or "" if it isn't set."""
    return str(get_meta(connection, key) or "")
