"""Keeps what models lack and how large their windows are, and the helper models of scopes."""

from __future__ import annotations

from typing import get_args

from config.model_options import Ability
from core.store.rows import Connection, get_meta, set_meta
from core.store.sqlite.database import Database
from core.types import BillingScope, Scope

ABILITIES: tuple[Ability, ...] = get_args(Ability)
# The key of `state_meta` for the helper model of a scope is this and the scope's key.
HELPER_PREFIX = "helper_model:"
_SELECT_HELPERS = f"SELECT key, value FROM state_meta WHERE key LIKE '{HELPER_PREFIX}%'"
_SELECT_SCOPE = """
SELECT scopes.key FROM sessions JOIN scopes ON scopes.id = sessions.scope_id
WHERE sessions.id = :session
"""


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


class HelperChoices:
    """The helper models that people have chosen for their scopes, in memory and in state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # The names of the models, by the keys of scopes. Usually empty.
        self.names: dict[str, str] = {}

    async def load(self) -> None:
        """Read all choices."""
        found_rows = await self._database.fetch_all(_SELECT_HELPERS)
        self.names = {row["key"].removeprefix(HELPER_PREFIX): row["value"] for row in found_rows}

    async def choose(self, scope: Scope, name: str | None) -> None:
        """Set the helper model of a scope. None means the one of the settings."""
        key = f"{HELPER_PREFIX}{scope.key}"
        if name is None:
            self.names.pop(scope.key, None)
            await self._database.execute("DELETE FROM state_meta WHERE key = :key", {"key": key})
            return
        await self._database.write(lambda connection: set_meta(connection, key, name))
        self.names[scope.key] = name

    async def find(self, billing: BillingScope) -> str | None:
        """Return the helper model of the scope that a call is charged to, if one was chosen."""
        if billing.scope is not None:
            return self.names.get(billing.scope.key)
        row = await self._database.fetch_one(_SELECT_SCOPE, {"session": billing.session_id})
        return None if row is None else self.names.get(row["key"])


def _lacks_key(model: str) -> str:
    return f"model_lacks:{model}"


def _window_key(model: str) -> str:
    return f"model_window:{model}"


def _read(connection: Connection, key: str) -> str:
    """Return the value of a key, or "" if it isn't set."""
    return str(get_meta(connection, key) or "")
