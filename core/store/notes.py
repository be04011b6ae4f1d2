"""The history of notes and skills (which are files), one row a change of one, and what waits for a person's yes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from core.store import rows
from core.store.epoch import check
from core.store.rows import Connection, Row, scope_parameter, visible
from core.store.sqlite.database import Database
from core.store.sqlite.passages import PLATFORM_ID, link
from core.store.usage import disturb
from core.types import Account, Address, ErasureEpoch, Origin, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Who, with which message: `message_id` of the conversation; of a command `address` and `external_id`."""

    account: Account | None = None
    message_id: int | None = None
    address: Address | None = None
    external_id: str | None = None

    @property
    def source(self) -> dict[str, Any]:
        """These fields, for another of the same source."""
        return {name: getattr(self, name) for name in ("account", "message_id", "address", "external_id")}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteChange(Source):
    """One version of a note file. `target`: memory, user or instructions, or the file of a skill, see `skill`.
    `action`: add, replace, remove, edited (by hand), approve (what stands in the file by hand), consolidate (one of
    several that are one), an action of skill_manage, or undo of the change `undoes`. `is_insisted`: a person was asked,
    and said yes. The message behind it, as far as it may be seen and was not erased: its text `said`, `sender` and
    `link`."""

    scope: Scope
    target: str
    action: str
    at: datetime
    before: str | None = None
    after: str | None = None
    undoes: int | None = None
    is_insisted: bool = False
    said: str = ""
    sender: str = ""
    link: str | None = None
    id: int = 0

    @property
    def skill(self) -> tuple[str, str] | None:
        """Of a change of a skill its folder, below that of its scope, and the path of the file in it."""
        _, _, place = self.target.partition(f"{SKILL}:")
        folder, _, path = place.rpartition(":")
        return (folder, path) if place else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Author(Source):
    """Who changes a note, with words read as of `epoch`. `origin` typed: by whoever may decide what is kept; anything
    else waits for a yes, with `reason` (a clause). `is_insisting`: a person was asked and means it."""

    origin: Origin = "tool"
    reason: str = "nobody has typed it"
    is_insisting: bool = False
    epoch: ErasureEpoch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingNote(Source):
    """`operations` are done together or not at all; `reason` is a clause on why they wait. `target`: that of a file,
    or for one operation on something else SKILL, FACT, REMINDER or QUESTION. `is_draft`: the curator drew it up, of
    whole notes. Since `began_at` something has waited in the scope without a break; None: it is not stored yet."""

    scope: Scope
    target: str
    operations: tuple[Operation, ...]
    reason: str
    at: datetime
    is_draft: bool = False
    began_at: datetime | None = None
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteVersion:
    """What is known of a note as it stands: its text, the last change that made it, and whether a person has pinned
    it."""

    after: str
    id: int
    at: datetime
    is_pinned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """`content`: the note of an add or a replace; `old_text`: a part of the one that is replaced or removed. The other
    actions are those of skill_manage, on the skill, or the file in it, that `path` names."""

    action: Literal["add", "replace", "remove", "create", "patch", "edit", "delete", "write_file", "remove_file"]
    content: str = ""
    old_text: str = ""
    path: str = ""


INSTRUCTIONS = "instructions"
"""The target of what a person wants to hold in a chat; the others that are files are memory and user."""
FACT, REMINDER, QUESTION = "fact", "remind", "cron"
"""Targets that are no files; the last two wait as the line of the chat command of that name."""
SKILL = "skill"
"""Of one that waits; a change has the file behind it, as in ``skill:work/tidy-inbox:SKILL.md``."""
OF_NOTES = f"notes.target NOT LIKE '{SKILL}:%'"
_AT_ONCE = ("consolidate", "add", "delete", "undo")
"""What may change several files of a skill; a consolidation changes several notes."""
UNDOABLE = 100
"""Latest changes that are looked through for one to undo."""
PENDING_LIMIT = 50
"""Most that wait in a scope: nobody can flood it."""

VERSIONS = """
SELECT notes.*, scopes.key AS scope_key, addresses.platform, addresses.chat_id, addresses.thread_id
FROM notes JOIN scopes ON scopes.id = notes.scope_id LEFT JOIN addresses ON addresses.id = notes.address_id
"""
"""For `change_of`."""
VISIBLE = f"""
SELECT notes.*, scopes.key AS scope_key, addresses.platform, addresses.chat_id, addresses.thread_id,
    messages.text, messages.sender_name, places.link_base, {PLATFORM_ID} AS platform_id
FROM notes JOIN scopes ON scopes.id = notes.scope_id LEFT JOIN addresses ON addresses.id = notes.address_id
LEFT JOIN messages ON messages.id = COALESCE(notes.message_id, (
    SELECT typed.id FROM messages AS typed
    WHERE typed.address_id = notes.address_id AND typed.external_id = notes.external_id
)) AND messages.kind <> 'undone' AND messages.session_id IN (SELECT id FROM sessions WHERE {visible()})
LEFT JOIN addresses AS places ON places.id = messages.address_id
WHERE {visible("notes.scope_id")}
"""
"""With the message behind each, where it may be seen."""
SINCE = f"""
{VISIBLE} AND {OF_NOTES} AND notes.at >= :at
AND (notes.message_id IS NULL OR messages.session_id IS NOT :session OR notes.is_insisted) ORDER BY notes.id
"""
MADE_BY = f"""
{VISIBLE} AND {OF_NOTES} AND notes.external_id = :external
AND addresses.platform = :platform AND addresses.chat_id = :chat_id AND addresses.thread_id = :thread_id
ORDER BY notes.id
"""
NOT_UNDONE = f"""
{VISIBLE} AND {OF_NOTES} AND notes.action <> 'undo'
AND NOT EXISTS (SELECT 1 FROM notes AS undoing WHERE undoing.undoes = notes.id)
ORDER BY notes.id DESC LIMIT :limit
"""
OF_FILE = f"{VISIBLE} AND notes.target = :target ORDER BY notes.id"
_OF_SCOPE = "scope_id = (SELECT id FROM scopes WHERE key = :key)"
WITH_PROMPT = f"SELECT id FROM sessions WHERE {_OF_SCOPE} AND ended_at IS NULL AND system_prompt <> ''"
DROP_PROMPTS = f"UPDATE sessions SET system_prompt = '' WHERE {_OF_SCOPE}"
_SHARED = ("scope_id", "target", "account", "message_id", "address_id", "external_id", "at")
INSERT = rows.insertion("notes", *_SHARED, "action", "before", "after", "undoes", "is_insisted")
PENDING = f"""
SELECT pending_notes.*, scopes.key AS scope_key, addresses.platform, addresses.chat_id, addresses.thread_id
FROM pending_notes JOIN scopes ON scopes.id = pending_notes.scope_id
LEFT JOIN addresses ON addresses.id = pending_notes.address_id
WHERE {visible("pending_notes.scope_id")} AND NOT is_written ORDER BY pending_notes.id
"""
INSERT_PENDING = rows.insertion("pending_notes", *_SHARED, "operations", "reason", "is_draft", "began_at")
CURRENT = f"""
SELECT after, MAX(id) AS id, MAX(at) AS at, MAX(is_pinned) AS is_pinned FROM notes
WHERE {visible("notes.scope_id")} AND target = :target AND after IS NOT NULL GROUP BY after
"""
_PIN = f"""
UPDATE notes SET is_pinned = :is_pinned WHERE {visible("notes.scope_id")} AND target = :target AND after = :entry
"""
_STAYS_PINNED = """
UPDATE notes SET is_pinned = 1 WHERE id = :id AND (
    SELECT old.is_pinned FROM notes AS old
    WHERE old.scope_id = :scope_id AND old.target = :target AND old.after = :before AND old.id < :id
    ORDER BY old.id DESC LIMIT 1
)
"""
"""A note that is put into other words stays pinned."""
_TOGETHER = f"""
{VISIBLE} AND notes.action = :action AND notes.at = :at AND substr(notes.target, 1, length(:group)) = :group
ORDER BY notes.id
"""
_UNREVIEWED = f"""
SELECT latest.mark FROM (
    SELECT MAX(id) + COALESCE((SELECT MAX(id) FROM fact_changes WHERE {visible("fact_changes.scope_id")}), 0) AS mark
    FROM notes WHERE {visible("notes.scope_id")} AND {OF_NOTES}
) AS latest WHERE latest.mark IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM note_reviews AS seen
    WHERE {visible("seen.scope_id")} AND (seen.rests_until > :now OR seen.mark = latest.mark)
)
"""
_REVIEWED = """
INSERT INTO note_reviews (scope_id, mark, rests_until) VALUES (:scope_id, :mark, :until)
ON CONFLICT (scope_id) DO UPDATE SET mark = COALESCE(excluded.mark, mark), rests_until = excluded.rests_until
"""


_SKILLS = f"""
SELECT skills.*, scopes.key AS scope_key FROM skills JOIN scopes ON scopes.id = skills.scope_id
WHERE {visible("skills.scope_id")}
"""
_NOTE_SKILL = """
INSERT INTO skills (scope_id, name, uses, used_at, is_disabled)
VALUES (:scope_id, :name, :used_at IS NOT NULL, :used_at, COALESCE(:is_disabled, 0))
ON CONFLICT (scope_id, name) DO UPDATE SET uses = uses + excluded.uses,
    used_at = COALESCE(excluded.used_at, used_at), is_disabled = COALESCE(:is_disabled, is_disabled)
"""


class Notes:
    """The versions of curated notes and skills in state.db, how skills were used, and what waits for a yes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def check(self, epoch: ErasureEpoch | None) -> None:
        """Raises StaleReadError when something was erased since that was read as of `epoch`."""
        await self._database.read(lambda connection: check(connection, epoch))

    async def log(self, *changes: NoteChange) -> list[int]:
        """Stores versions, also when an erasure has begun meanwhile: it waits for the file and must find them here.
        Where instructions changed, the prompts of that scope are written anew. Returns their numbers."""
        numbers = list[int]()

        def work(connection: Connection) -> None:
            numbers.clear()
            for change in changes:
                values = _values(connection, change)
                made = rows.insert(connection, INSERT, values)
                numbers.append(made)
                if change.before is not None and change.after is not None:
                    connection.execute(_STAYS_PINNED, {**values, "id": made})
            for key in {change.scope.key for change in changes if change.target == INSTRUCTIONS}:
                for row in connection.execute(WITH_PROMPT, {"key": key}).fetchall():
                    disturb(connection, row["id"], "system")
                connection.execute(DROP_PROMPTS, {"key": key})

        if changes:
            await self._database.write(work)
        return numbers

    async def changes(self, scopes: frozenset[Scope], limit: int = 20, offset: int = 0) -> list[NoteChange]:
        """The latest versions with their messages, newest first, without the first `offset` of them."""
        limit, offset = (rows.bounded(max(0, number)) for number in (limit, offset))
        latest = f"{VISIBLE} ORDER BY notes.id DESC LIMIT :limit OFFSET :offset"
        return await self._read(latest, scopes, limit=limit, offset=offset)

    async def since(self, scopes: frozenset[Scope], session_id: int, at: datetime) -> list[NoteChange]:
        """What was changed since, oldest first, by other sessions, or by this one after a person's yes."""
        return await self._read(SINCE, scopes, session=session_id, at=at)

    async def find(self, scopes: frozenset[Scope], number: int) -> NoteChange | None:
        return next(iter(await self._read(f"{VISIBLE} AND notes.id = :id", scopes, id=rows.bounded(number))), None)

    async def made(self, scopes: frozenset[Scope], author: Author) -> list[NoteChange]:
        """What the command of `author` has changed, oldest first; nothing for one without an external id."""
        if author.address is None or author.external_id is None:
            return []
        return await self._read(MADE_BY, scopes, external=author.external_id, **rows.place(author.address))

    async def undoable(self, scopes: frozenset[Scope]) -> list[NoteChange]:
        """The latest changes that are no undo and were not undone, newest first."""
        return await self._read(NOT_UNDONE, scopes, limit=UNDOABLE)

    async def standing(self, scope: Scope, target: str) -> list[str]:
        """The entries of a file, as its changes leave them."""
        entries: dict[str, None] = {}
        for change in await self._read(OF_FILE, frozenset((scope,)), target=target):
            if change.before is not None:
                entries.pop(change.before, None)
            if change.after is not None:
                entries[change.after] = None
        return list(entries)

    async def origin(self, scopes: frozenset[Scope], entry: str) -> NoteChange | None:
        """The last change that made an entry, with its message."""
        last = f"{VISIBLE} AND notes.after = :entry ORDER BY notes.id DESC LIMIT 1"
        return next(iter(await self._read(last, scopes, entry=entry)), None)

    async def current(self, scopes: frozenset[Scope], target: str) -> dict[str, NoteVersion]:
        """What was ever noted, by its text."""
        found = await self._database.fetch_all(CURRENT, {"scopes": scope_parameter(scopes), "target": target})
        return {row["after"]: NoteVersion(**rows.fields_in(row, NoteVersion)) for row in found}

    async def pin(self, scopes: frozenset[Scope], target: str, entry: str, *, is_pinned: bool) -> None:
        values = {"scopes": scope_parameter(scopes), "target": target, "entry": entry, "is_pinned": is_pinned}
        await self._database.execute(_PIN, values)

    async def together(self, scopes: frozenset[Scope], change: NoteChange) -> list[NoteChange]:
        """The changes of one consolidation, and the files that were added to a skill or removed with it, oldest first;
        of any other change that alone."""
        if change.action not in (_AT_ONCE if change.skill else _AT_ONCE[:1]):
            return [change]
        group = f"{SKILL}:{change.skill[0]}:" if change.skill else change.target
        return await self._read(_TOGETHER, scopes, at=change.at, action=change.action, group=group)

    async def skills(self, scopes: frozenset[Scope]) -> dict[tuple[Scope, str], dict[str, Any]]:
        """By scope and name what is kept of each: uses, used_at, is_disabled."""
        return {
            (Scope(key=row["scope_key"]), row["name"]): {
                "uses": row["uses"],
                "used_at": rows.maybe_moment(row["used_at"]),
                "is_disabled": bool(row["is_disabled"]),
            }
            for row in await self._database.fetch_all(_SKILLS, {"scopes": scope_parameter(scopes)})
        }

    async def note_skill(
        self, scope: Scope, name: str, epoch: ErasureEpoch | None = None, **change: datetime | bool
    ) -> None:
        """Counts a use (`used_at`), or switches it on or off (`is_disabled`)."""
        values = {"name": name, "used_at": None, "is_disabled": None, **change}

        def work(connection: Connection) -> None:
            connection.execute(_NOTE_SKILL, {**values, "scope_id": rows.ensure_scope(connection, scope)})

        await self._database.write(work, epoch)

    async def unreviewed(self, scopes: frozenset[Scope], now: datetime) -> int | None:
        """The mark of what the curator has to look at: another one whenever a note or a fact has changed. None where it
        has looked at that, or rests."""
        values = {"scopes": scope_parameter(scopes), "now": rows.timestamp(now)}
        found = await self._database.glance(lambda connection: connection.execute(_UNREVIEWED, values).fetchone())
        return None if found is None else int(found["mark"])

    async def reviewed(self, scope: Scope, until: datetime, mark: int | None = None) -> None:
        """It has looked at that, and rests until then; with the mark 0 it looks anew."""

        def work(connection: Connection) -> None:
            scope_id = rows.ensure_scope(connection, scope)
            connection.execute(_REVIEWED, {"scope_id": scope_id, "until": rows.timestamp(until), "mark": mark})

        await self._database.write(work)

    async def _read(self, statement: str, scopes: frozenset[Scope], **values: object) -> list[NoteChange]:
        everything = {"scopes": scope_parameter(scopes), **values}
        found = await self._database.glance(lambda connection: connection.execute(statement, everything).fetchall())
        return [_with_message(row) for row in found]

    async def put_aside(self, note: PendingNote, epoch: ErasureEpoch | None = None) -> PendingNote | None:
        """Stores it, once for the same operations in a scope; None when too many wait already, or another draft."""
        operations = rows.dump([[one.action, one.content, one.old_text, one.path] for one in note.operations])

        def work(connection: Connection) -> PendingNote | None:
            values = _values(connection, note) | {"operations": operations}
            waiting = "SELECT * FROM pending_notes WHERE scope_id = :scope_id AND NOT is_written"
            there = connection.execute(waiting, values).fetchall()
            began_at = there[0]["began_at"] if there else rows.timestamp(note.at)
            same = [row["id"] for row in there if (row["target"], row["operations"]) == (note.target, operations)]
            if not same:
                if len(there) >= PENDING_LIMIT or (note.is_draft and any(row["is_draft"] for row in there)):
                    return None
                same = [rows.insert(connection, INSERT_PENDING, values | {"began_at": began_at})]
            return replace(note, began_at=rows.moment(began_at), id=same[0])

        return await self._database.write(work, epoch)

    async def waiting(self, scopes: frozenset[Scope]) -> list[PendingNote]:
        found = await self._database.fetch_all(PENDING, {"scopes": scope_parameter(scopes)})
        return [_pending(row) for row in found]

    async def drop(self, note_id: int) -> None:
        await self._database.execute("DELETE FROM pending_notes WHERE id = :id", {"id": rows.bounded(note_id)})


def change_of(row: Row) -> NoteChange:
    """A row of `VERSIONS`."""
    return NoteChange(**rows.fields_in(row, NoteChange), **_place(row))


def _with_message(row: Row) -> NoteChange:
    if not row["text"]:
        return change_of(row)
    link_to = link(row["link_base"], row["platform_id"])
    return replace(change_of(row), said=row["text"], sender=row["sender_name"] or "", link=link_to)


def _pending(row: Row) -> PendingNote:
    names = ("action", "content", "old_text", "path")
    # One of an older version has no path.
    operations = tuple(Operation(**dict(zip(names, values, strict=False))) for values in json.loads(row["operations"]))
    return PendingNote(**rows.fields_in(row, PendingNote) | {"operations": operations}, **_place(row))


def _place(row: Row) -> dict[str, Any]:
    address = None if row["platform"] is None else rows.address_of(row)
    return {"scope": Scope(key=row["scope_key"]), "address": address}


def _values(connection: Connection, note: NoteChange | PendingNote) -> dict[str, object]:
    return {
        **rows.values_of(note),
        "scope_id": rows.ensure_scope(connection, note.scope),
        "address_id": None if note.address is None else rows.ensure_address(connection, note.address),
    }
