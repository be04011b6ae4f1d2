"""Keeps what models lack, how large their windows are, and the helper models of conversations."""

from __future__ import annotations

from typing import get_args

from config.model_options import Ability
from core.store.rows import Connection, get_meta, set_meta
from core.store.sqlite.database import Database
from core.types import Session

ABILITIES: tuple[Ability, ...] = get_args(Ability)
# The key of `state_meta` for the helper model of a conversation is this and its root session.
HELPER_PREFIX = "helper_model:"
_SELECT_HELPERS = f"""
SELECT state_meta.key, state_meta.value, sessions.id AS session FROM state_meta
LEFT JOIN sessions ON state_meta.key = '{HELPER_PREFIX}' || sessions.id
WHERE state_meta.key LIKE '{HELPER_PREFIX}%'
"""
_SELECT_ROOT = "SELECT COALESCE(root_id, id) AS root FROM sessions WHERE id = :session"


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

    async def forget_lacks(self, model: str) -> None:
        """Forget what a model can't use, so that it is asked for everything again."""
        statement = "DELETE FROM state_meta WHERE key = :key"
        await self._database.execute(statement, {"key": _lacks_key(model)})

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
    """The helper models that people have chosen for conversations, in memory and in state.db.

    A choice belongs to the root session of a conversation, so it also holds after a compression.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        # The names of the models, by the ids of root sessions. Usually empty.
        self.names: dict[int, str] = {}

    async def load(self) -> None:
        """Read all choices. Those of conversations that no longer exist are removed."""
        choices = await self._database.fetch_all(_SELECT_HELPERS)
        for choice in choices:
            if choice["session"] is None:
                await self._delete(choice["key"])
        self.names = {row["session"]: row["value"] for row in choices if row["session"] is not None}

    async def choose(self, session: Session, name: str | None) -> None:
        """Set the helper model of a conversation. None means the one of the settings.

        The choice for an incognito conversation is kept in memory only.
        """
        root = session.root_id or session.id
        key = f"{HELPER_PREFIX}{root}"
        if name is None:
            self.names.pop(root, None)
            await self._delete(key)
            return
        if not session.is_incognito:
            await self._database.write(lambda connection: set_meta(connection, key, name))
        self.names[root] = name

    async def find(self, session_id: int | None) -> str | None:
        """Return the helper model that was chosen for the conversation of a session, if any."""
        if session_id is None or session_id in self.names:
            return self.names.get(session_id or 0)
        row = await self._database.fetch_one(_SELECT_ROOT, {"session": session_id})
        return None if row is None else self.names.get(row["root"])

    async def _delete(self, key: str) -> None:
        await self._database.execute("DELETE FROM state_meta WHERE key = :key", {"key": key})


def _lacks_key(model: str) -> str:
    return f"model_lacks:{model}"


def _window_key(model: str) -> str:
    return f"model_window:{model}"


def _read(connection: Connection, key: str) -> str:
    """Return the value of a key, or "" if it isn't set."""
    return str(get_meta(connection, key) or "")
