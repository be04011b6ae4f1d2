"""Store the limits of models that Mneme has learned: missing features, window sizes and outages.

This module also stores the helper models that people choose for conversations.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast, get_args

from config.model_options import Ability, Effort
from core.errors import PAYLOAD_ERRORS, Sentence
from core.store.engine import Connection, Database
from core.store.incognito import IncognitoRegistry
from core.store.rows import get_meta, set_meta
from core.types import Request, Session

ABILITIES: tuple[Ability, ...] = get_args(Ability)
# The helper model of a conversation has this key in `state_meta`, followed by its root session.
HELPER_PREFIX = "helper_model:"
UNCOUNTED_PREFIX = "model_uncounted:"
_SELECT_UNCOUNTED = f"SELECT key FROM state_meta WHERE key LIKE '{UNCOUNTED_PREFIX}%'"
_SELECT_HELPERS = f"""
SELECT state_meta.key, state_meta.value, sessions.id AS session FROM state_meta
LEFT JOIN sessions ON state_meta.key = '{HELPER_PREFIX}' || sessions.id
WHERE state_meta.key LIKE '{HELPER_PREFIX}%'
"""
OUTAGES_KEY = "model_outages"
# The fallbacks of this many turns are remembered.
MAX_REMEMBERED_TURNS = 100
# Refusals in this many conversations are remembered.
MAX_REMEMBERED_REFUSALS = 100
_SELECT_ROOT = "SELECT COALESCE(root_id, id) AS root FROM sessions WHERE id = :session"


class ModelLimits:
    """Limits of models that their servers have reported.

    Each limit is a row of `state_meta`, with the model's full name in its key. Missing features are
    a list such as ``"tools pictures"``.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_lacks(self, model: str) -> frozenset[Ability]:
        """Return the features that the server of a model has refused."""
        names = await self._database.read(lambda connection: _read(connection, _lacks_key(model)))
        return frozenset(ability for ability in ABILITIES if ability in names.split())

    async def save_lack(self, model: str, ability: Ability) -> None:
        """Record that a model doesn't support a feature."""

        def write(connection: Connection) -> None:
            names = {*_read(connection, _lacks_key(model)).split(), ability}
            set_meta(connection, _lacks_key(model), " ".join(sorted(names)))

        await self._database.write(write)

    async def forget_lacks(self, model: str) -> None:
        """Delete a model's missing features, so that Mneme tries each again."""
        statement = "DELETE FROM state_meta WHERE key = :key"
        await self._database.execute(statement, {"key": _lacks_key(model)})

    async def load_effort(self, model: str, effort: Effort) -> Effort:
        """Return the thinking level that replaces `effort` if the model has refused `effort`.

        Otherwise return `effort`.
        """
        key = _effort_key(model, effort)
        level = await self._database.read(lambda connection: get_meta(connection, key))
        return effort if level is None else cast(Effort, level)

    async def save_effort(self, model: str, effort: Effort, other: Effort) -> None:
        """Record that a model refuses the thinking level `effort`, and that `other` replaces it."""
        key = _effort_key(model, effort)
        await self._database.write(lambda connection: set_meta(connection, key, str(other)))

    async def load_uncounted(self) -> frozenset[str]:
        """Return the models whose servers don't report tokens. Mneme estimates their usage."""
        rows = await self._database.fetch_all(_SELECT_UNCOUNTED)
        return frozenset(row["key"].removeprefix(UNCOUNTED_PREFIX) for row in rows)

    async def save_uncounted(self, model: str) -> None:
        """Record that a model's server doesn't report tokens."""
        key = f"{UNCOUNTED_PREFIX}{model}"
        await self._database.write(lambda connection: set_meta(connection, key, "1"))

    async def load_window(self, model: str) -> int | None:
        """Return a model's context window in tokens, or None if no error has mentioned it."""
        tokens = await self._database.read(lambda connection: _read(connection, _window_key(model)))
        return int(tokens) if tokens.isdecimal() else None

    async def save_window(self, model: str, tokens: int) -> None:
        """Record a model's context window, in tokens."""

        def write(connection: Connection) -> None:
            set_meta(connection, _window_key(model), str(tokens))

        await self._database.write(write)


class HelperChoices:
    """The helper models that people chose for their conversations.

    They are kept in memory and in state.db. A choice belongs to the root session of a conversation,
    so it survives a compression.
    """

    def __init__(self, database: Database, incognito: IncognitoRegistry) -> None:
        self._database = database
        self._incognito = incognito
        # The names of the models, by the id of the root session. Usually empty.
        self.names: dict[int, str] = {}

    async def load(self) -> None:
        """Read all choices, and delete those of conversations that no longer exist."""
        choices = await self._database.fetch_all(_SELECT_HELPERS)
        for choice in choices:
            if choice["session"] is None:
                await self._delete(choice["key"])
        self.names = {row["session"]: row["value"] for row in choices if row["session"] is not None}

    async def choose(self, session: Session, name: str | None) -> None:
        """Set a conversation's helper model. None means the model from the settings.

        The choice for an incognito conversation is kept only in memory.
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
        """Return the helper model chosen for a session's conversation, or None."""
        if session_id is None or session_id in self.names:
            return self.names.get(session_id or 0)
        conversation = self._incognito.find_by_session(session_id)
        if conversation is not None and conversation.session is not None:
            return self.names.get(conversation.session.root_id or session_id)
        row = await self._database.fetch_one(_SELECT_ROOT, {"session": session_id})
        return None if row is None else self.names.get(row["root"])

    async def _delete(self, key: str) -> None:
        await self._database.execute("DELETE FROM state_meta WHERE key = :key", {"key": key})


@dataclass(slots=True)
class Outage:
    """An outage of a model, and the conversations in which an answer has mentioned it."""

    # A sentence without any text that people wrote.
    reason: Sentence
    # The model that last answered in each conversation that knows about the outage, by root
    # session. Incognito sessions have negative ids.
    answered_by: dict[int, str] = field(default_factory=dict)


class ModelOutages:
    """The current outages of models, and the turns that a fallback model has begun.

    Both are kept in memory and in state.db, so that a restarted process doesn't mention an outage
    again and finishes a turn with the same model. Without a database, they are kept only in memory.
    """

    def __init__(self, database: Database | None = None) -> None:
        self._database = database
        self.by_model: dict[str, Outage] = {}
        # The refusals of a conversation's latest request, by the model's name and the root session,
        # oldest first. The model may still answer in other conversations.
        self.refusals: dict[tuple[str, int], Outage] = {}
        # The fallback model that answers each of the latest turns, by the turn's key, oldest first.
        self.turns: dict[str, str] = {}
        # The turns of incognito conversations, which aren't saved.
        self._unsaved_turns: set[str] = set()

    async def load(self) -> None:
        """Read the outages that the previous process stored. Drop the unreadable ones."""
        if self._database is None:
            return
        saved = await self._database.read(lambda connection: _read(connection, OUTAGES_KEY))
        if not saved:
            return
        with suppress(*PAYLOAD_ERRORS):
            value = json.loads(saved)
            for name, outage in value["outages"].items():
                with suppress(*PAYLOAD_ERRORS):
                    self.by_model[name] = _read_outage(outage)
            for entry in value.get("refusals", ()):
                with suppress(*PAYLOAD_ERRORS):
                    key = (str(entry["model"]), int(entry["conversation"]))
                    self.refusals[key] = _read_outage(entry)
            self.turns = {str(key): str(model) for key, model in value["turns"].items()}

    def list_reasons(self) -> Mapping[str, Sentence]:
        """Return the reason of each outage by the name of the model."""
        return {name: outage.reason for name, outage in self.by_model.items()}

    def find(self, model: str, conversation_id: int) -> Outage | None:
        """Return why a model doesn't answer in a conversation, or None.

        The reason is an outage, or the model's refusal of this conversation's last request.
        """
        return self.by_model.get(model) or self.refusals.get((model, conversation_id))

    def is_known_in(self, request: Request) -> bool:
        """Return whether an answer in this conversation has already mentioned the outage."""
        conversation_id = _conversation_of(request)
        outage = self.find(request.model, conversation_id)
        return outage is not None and conversation_id in outage.answered_by

    def is_refused(self, request: Request) -> bool:
        """Return whether the model has refused this conversation's latest request."""
        outage = self.find(request.model, _conversation_of(request))
        return outage is not None and outage is not self.by_model.get(request.model)

    def note_refusal(self, request: Request, reason: Sentence) -> None:
        """Record that a model has refused a single request."""
        key = (request.model, _conversation_of(request))
        refusal = self.refusals.setdefault(key, Outage(reason))
        refusal.reason = reason
        while len(self.refusals) > MAX_REMEMBERED_REFUSALS:
            del self.refusals[next(iter(self.refusals))]

    async def forget_refusal(self, request: Request) -> None:
        """Record that a model answers again in a conversation."""
        refusal = self.refusals.pop((request.model, _conversation_of(request)), None)
        if refusal is not None and refusal.answered_by:
            await self._save()

    async def begin(self, model: str, reason: Sentence) -> None:
        """Record that a model doesn't answer."""
        outage = self.by_model.setdefault(model, Outage(reason))
        outage.reason = reason

    async def note_answer(self, request: Request, fallback: str, *, has_notice: bool) -> None:
        """Record that a fallback model has answered, and whether it mentioned the outage."""
        conversation_id = _conversation_of(request)
        # The outage may be over before the turn is.
        outage = self.find(request.model, conversation_id) or Outage(Sentence(""))
        before = (outage.answered_by.get(conversation_id), self.turns.get(request.turn_key))
        if has_notice:
            outage.answered_by[conversation_id] = fallback
        if request.turn_key:
            self.turns[request.turn_key] = fallback
            while len(self.turns) > MAX_REMEMBERED_TURNS:
                del self.turns[next(iter(self.turns))]
        if conversation_id < 0:
            self._unsaved_turns = {*self._unsaved_turns, request.turn_key} & {*self.turns}
        elif before != (outage.answered_by.get(conversation_id), fallback):
            await self._save()

    async def end(self, model: str) -> None:
        """Record that a model answers again."""
        outage = self.by_model.pop(model)
        if outage.answered_by:
            await self._save()

    async def _save(self) -> None:
        """Write the outages to state.db, except those of incognito conversations."""
        if self._database is None:
            return
        outages = {
            name: {
                "reason": outage.reason.key,
                "values": dict(outage.reason.values),
                "answered_by": {
                    root: model for root, model in outage.answered_by.items() if root >= 0
                },
            }
            for name, outage in self.by_model.items()
        }
        refusals = [
            {
                "model": model,
                "conversation": root,
                "reason": refusal.reason.key,
                "values": dict(refusal.reason.values),
                "answered_by": refusal.answered_by,
            }
            for (model, root), refusal in self.refusals.items()
            if root >= 0
        ]
        turns = {key: name for key, name in self.turns.items() if key not in self._unsaved_turns}
        value = json.dumps({"outages": outages, "refusals": refusals, "turns": turns})
        await self._database.write(lambda connection: set_meta(connection, OUTAGES_KEY, value))


def _read_outage(value: Any) -> Outage:
    """Decode a stored outage. Raises one of PAYLOAD_ERRORS if this version can't describe it."""
    reason = Sentence(value["reason"], value.get("values", {}))
    str(reason)
    return Outage(reason, {int(root): str(model) for root, model in value["answered_by"].items()})


def _conversation_of(request: Request) -> int:
    """Return the id of a request's root session, which stays the same after a compression."""
    return request.billing.root_id or request.billing.session_id or 0


def _lacks_key(model: str) -> str:
    return f"model_lacks:{model}"


def _effort_key(model: str, effort: Effort) -> str:
    return f"model_effort:{model}:{effort}"


def _window_key(model: str) -> str:
    return f"model_window:{model}"


def _read(connection: Connection, key: str) -> str:
    """Return the value of a key, or "" if it isn't set."""
    return str(get_meta(connection, key) or "")
