"""What is kept of skills (which are folders) in state.db: their versions, how often each was used, and whether it is
switched off."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from core.store import rows
from core.store.epoch import check
from core.store.notes import Source
from core.store.rows import Connection, Row, scope_parameter, visible
from core.store.sqlite.database import Database
from core.types import ErasureEpoch, Scope

SKILL = "skill"
"""The target of what waits for a yes: an add, replace or remove of the file that the first line of `old_text` names."""
Files = Mapping[str, tuple[str | None, str | None]]
"""What each file said before and after; None: it was not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillChange(Source):
    """One version of the skill `name`. `action`: create, patch, edit, write_file, remove_file, delete, add (from
    elsewhere), undo of the change `undoes`. Without `files` it cannot be undone."""

    scope: Scope
    name: str
    action: str
    at: datetime
    files: Files = field(default_factory=dict)
    undoes: int | None = None
    id: int = 0


CHANGES = f"""
SELECT skill_changes.*, scopes.key AS scope_key, addresses.platform, addresses.chat_id, addresses.thread_id
FROM skill_changes JOIN scopes ON scopes.id = skill_changes.scope_id
LEFT JOIN addresses ON addresses.id = skill_changes.address_id
WHERE {visible("skill_changes.scope_id")}
"""
_SHARED = ("scope_id", "name", "account", "message_id", "address_id", "external_id", "at")
INSERT = rows.insertion("skill_changes", *_SHARED, "action", "files", "undoes")
RECORDS = f"""
SELECT skills.*, scopes.key AS scope_key FROM skills JOIN scopes ON scopes.id = skills.scope_id
WHERE {visible("skills.scope_id")}
"""
COUNT = """
INSERT INTO skills (scope_id, name, uses, used_at) VALUES (:scope_id, :name, 1, :at)
ON CONFLICT (scope_id, name) DO UPDATE SET uses = uses + 1, used_at = excluded.used_at
"""
SWITCH = """
INSERT INTO skills (scope_id, name, is_disabled) VALUES (:scope_id, :name, :is_disabled)
ON CONFLICT (scope_id, name) DO UPDATE SET is_disabled = excluded.is_disabled
"""


class SkillRecords:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def check(self, epoch: ErasureEpoch | None) -> None:
        """Raises StaleReadError when something was erased since that was read as of `epoch`."""
        await self._database.read(lambda connection: check(connection, epoch))

    async def log(self, change: SkillChange) -> SkillChange:
        """With its id. Also when an erasure has begun meanwhile: it waits for the files and must find this here."""

        def work(connection: Connection) -> SkillChange:
            address_id = None if change.address is None else rows.ensure_address(connection, change.address)
            values = {**rows.values_of(change), "files": rows.dump(change.files), "address_id": address_id}
            values["scope_id"] = rows.ensure_scope(connection, change.scope)
            return replace(change, id=rows.insert(connection, INSERT, values))

        return await self._database.write(work)

    async def changes(self, scopes: frozenset[Scope], name: str = "", limit: int = 20) -> list[SkillChange]:
        """The latest versions, of one skill or of all, newest first."""
        latest = f"{CHANGES} AND (:name = '' OR name = :name) ORDER BY skill_changes.id DESC LIMIT :limit"
        return await self._changes(latest, scopes, name=name, limit=rows.bounded(max(0, limit)))

    async def find(self, scopes: frozenset[Scope], number: int) -> SkillChange | None:
        one = f"{CHANGES} AND skill_changes.id = :id"
        return next(iter(await self._changes(one, scopes, id=rows.bounded(number))), None)

    async def last(self, scopes: frozenset[Scope]) -> SkillChange | None:
        """The latest change that is no undo and was not undone."""
        last = f"""
            {CHANGES} AND action <> 'undo' AND files <> '{{}}'
            AND skill_changes.id NOT IN (SELECT undoes FROM skill_changes WHERE undoes IS NOT NULL)
            ORDER BY skill_changes.id DESC LIMIT 1
        """
        return next(iter(await self._changes(last, scopes)), None)

    async def records(self, scopes: frozenset[Scope]) -> dict[tuple[Scope, str], dict[str, Any]]:
        """By scope and name what is kept: uses, used_at, is_disabled."""
        return {
            (Scope(key=row["scope_key"]), row["name"]): {
                "uses": row["uses"],
                "used_at": rows.maybe_moment(row["used_at"]),
                "is_disabled": bool(row["is_disabled"]),
            }
            for row in await self._database.fetch_all(RECORDS, {"scopes": scope_parameter(scopes)})
        }

    async def count(self, scope: Scope, name: str, at: datetime, epoch: ErasureEpoch | None = None) -> None:
        """The skill was used once more."""
        await self._keep(COUNT, scope, epoch, name=name, at=at)

    async def switch(self, scope: Scope, name: str, *, is_disabled: bool) -> None:
        await self._keep(SWITCH, scope, None, name=name, is_disabled=is_disabled)

    async def _keep(self, statement: str, scope: Scope, epoch: ErasureEpoch | None, **values: object) -> None:
        def work(connection: Connection) -> None:
            connection.execute(statement, {**values, "scope_id": rows.ensure_scope(connection, scope)})

        await self._database.write(work, epoch)

    async def _changes(self, statement: str, scopes: frozenset[Scope], **values: object) -> list[SkillChange]:
        found = await self._database.fetch_all(statement, {"scopes": scope_parameter(scopes), **values})
        return [_change_of(row) for row in found]


def _change_of(row: Row) -> SkillChange:
    address = None if row["platform"] is None else rows.address_of(row)
    files = {path: (before, after) for path, (before, after) in json.loads(row["files"]).items()}
    values = {**rows.fields_in(row, SkillChange), "files": files, "address": address}
    return SkillChange(**values, scope=Scope(key=row["scope_key"]))
