"""Store the history of notes and skills, and the changes that wait for a confirmation.

Notes and skills are files. Each change to a file is a row here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from typing import Any, Literal

from core.store import rows, tool_calls
from core.store.engine import Connection, Database, Row
from core.store.search.excerpts import PLATFORM_ID, message_link
from core.store.usage_limits import record_prefix_break
from core.store.visibility import check_epoch, current_epoch, scope_parameter, visible
from core.types import Account, Address, ErasureEpoch, Origin, Scope, ToolCallKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The account that made a change, and the message or command that asked for it."""

    account: Account | None = None
    # The message in the conversation that asked for the change.
    message_id: int | None = None
    # For a command: the chat, and the command's id on the platform.
    address: Address | None = None
    external_id: str | None = None

    @property
    def source_values(self) -> dict[str, Any]:
        """The fields of the source as arguments for another record."""
        return {
            "account": self.account,
            "message_id": self.message_id,
            "address": self.address,
            "external_id": self.external_id,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteChange(Source):
    """A change to an entry of a note file, or to a file of a skill."""

    scope: Scope
    # memory, user or instructions. See `SKILL` for the target of a skill's file.
    target: str
    # An action of the tool `skill_manage`, or:
    # - add, replace, remove
    # - edited: changed by hand in the file
    # - approve: accepts an entry that was written into the file by hand
    # - consolidate: one of several changes that belong together
    # - undo: takes back the change `undoes`
    # - right, wrong: a person's verdict on a text, which stays as it is
    action: str
    at: datetime
    before: str | None = None
    after: str | None = None
    undoes: int | None = None
    # Whether a person was asked about the change and confirmed it.
    is_insisted: bool = False
    # The text, sender and link of the source message. They are empty if the message was erased or
    # isn't visible.
    source_text: str = ""
    sender: str = ""
    link: str | None = None
    id: int = 0

    @property
    def skill(self) -> tuple[str, str] | None:
        """The folder of the changed skill and the path of the changed file, or None for a note.

        The folder is relative to the scope's folder, and the path to the skill's folder. For the
        target ``skill:work/tidy-inbox:SKILL.md``, they are "work/tidy-inbox" and "SKILL.md".
        """
        _, _, path_of_file = self.target.partition(f"{SKILL}:")
        folder, _, path = path_of_file.rpartition(":")
        return (folder, path) if path_of_file else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Author(Source):
    """The source of a requested change, and whether a person must confirm the change."""

    # A "typed" change happens at once. Any other change waits for a confirmation.
    origin: Origin = "tool"
    # A clause that says why the change waits.
    reason: str = "no one here has typed that"
    # Whether a person was asked about the change and confirmed it.
    is_insisting: bool = False
    # The helper model decides first whether a person must confirm the change.
    is_proposed: bool = False
    # The erasure epoch at which the words of the change were read.
    epoch: ErasureEpoch | None = None

    @property
    def call(self) -> ToolCallKey | None:
        """The tool call that makes the change, if there is one."""
        return None if self.epoch is None else self.epoch.call


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingNote(Source):
    """A change that waits for a person's confirmation."""

    scope: Scope
    # The name of a note file. For a single operation on something else: SKILL, FACT, REMINDER or
    # QUESTION.
    target: str
    # Either all of these operations are carried out, or none.
    operations: tuple[Operation, ...]
    # A clause that says why the operations wait.
    reason: str
    at: datetime
    # Whether the curator proposed the change. A draft contains whole notes.
    is_draft: bool = False
    # Whether the helper model still has to compare the change with the typed text.
    is_proposed: bool = False
    # The time since which the scope has had at least one pending change. None if this change isn't
    # stored yet.
    began_at: datetime | None = None
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteVersion:
    """A text that a note has had, with the latest change that produced the text."""

    # The text of the note.
    after: str
    id: int
    at: datetime
    # Whether a person has pinned the note.
    is_pinned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A step of a change: an entry to add, replace or remove."""

    # The first three actions are for notes. The next ones are those of the tool `skill_manage`.
    action: Literal[
        "add",
        "replace",
        "remove",
        "create",
        "patch",
        "edit",
        "delete",
        "write_file",
        "remove_file",
        # Changes of jobs and facts, and calls of external tools.
        "pause",
        "resume",
        "doubt",
        "trust",
        "call",
    ]
    # The new text of the note for "add" and "replace".
    content: str = ""
    # A part of the note that is replaced or removed.
    old_text: str = ""
    # The path of the skill, or of a file in it.
    path: str = ""


INSTRUCTIONS = "instructions"
"""Target of a person's instructions for a chat. The other files are `memory` and `user`."""
FACT = "fact"
REMINDER = "remind"
QUESTION = "cron"
JOB_CHANGE = "job"
TOOL_CALL = "tool"
"""Targets that aren't files. A pending reminder or question is stored as its chat command. A
pending call of an external tool is stored with its arguments as JSON."""
SKILL = "skill"
"""Target of a pending change to a skill. The target of a stored change also contains the folder and
file, as in ``skill:work/tidy-inbox:SKILL.md``."""
IS_NOTE_CHANGE = f"note_changes.target NOT LIKE '{SKILL}:%'"
_IS_NO_VERDICT = "note_changes.action NOT IN ('right', 'wrong')"
_GROUPED_NOTE_ACTIONS = ("consolidate",)
_GROUPED_SKILL_ACTIONS = ("consolidate", "add", "delete", "undo")
"""Actions that may consist of several changes."""
UNDO_LOOKBACK = 100
"""How many of the latest changes are searched for a change to undo."""
MAX_PENDING = 50
"""The maximum number of pending changes in a scope, so that a scope can't be flooded."""

_CHANGE_COLUMNS = """
note_changes.*, scopes.key AS scope_key, addresses.platform, addresses.chat_id, addresses.thread_id
"""
_FROM_CHANGES = """
FROM note_changes JOIN scopes ON scopes.id = note_changes.scope_id
LEFT JOIN addresses ON addresses.id = note_changes.address_id
"""
SELECT_CHANGES = f"SELECT {_CHANGE_COLUMNS} {_FROM_CHANGES}"
"""Selects rows for `read_change`."""
_SELECT_UNFINISHED = f"""
{SELECT_CHANGES}
WHERE note_changes.id IN (SELECT note_id FROM unfinished_changes) ORDER BY note_changes.id
"""
_SELECT_VISIBLE = f"""
SELECT {_CHANGE_COLUMNS}, messages.text, messages.sender_name, places.link_base,
    {PLATFORM_ID} AS platform_id
{_FROM_CHANGES}
LEFT JOIN messages ON messages.id = COALESCE(note_changes.message_id, (
    SELECT typed.id FROM messages AS typed
    WHERE typed.address_id = note_changes.address_id
        AND typed.external_id = note_changes.external_id
)) AND messages.kind <> 'undone'
    AND messages.session_id IN (SELECT id FROM sessions WHERE {visible()})
LEFT JOIN addresses AS places ON places.id = messages.address_id
WHERE {visible("note_changes.scope_id")}
"""
"""Selects visible changes with the messages that caused them. The columns of a message are NULL if
the message isn't visible or was undone."""
_SELECT_SINCE = f"""
{_SELECT_VISIBLE} AND {IS_NOTE_CHANGE} AND note_changes.at >= :at
AND (note_changes.message_id IS NULL OR messages.session_id IS NOT :session OR is_insisted)
ORDER BY note_changes.id
"""
_SELECT_BY_COMMAND = f"""
{_SELECT_VISIBLE} AND {IS_NOTE_CHANGE} AND note_changes.external_id = :external
AND addresses.platform = :platform AND addresses.chat_id = :chat_id
AND addresses.thread_id = :thread_id
ORDER BY note_changes.id
"""
_SELECT_UNDOABLE = f"""
{_SELECT_VISIBLE} AND {IS_NOTE_CHANGE} AND note_changes.action <> 'undo' AND {_IS_NO_VERDICT}
AND NOT EXISTS (SELECT 1 FROM note_changes AS undoing WHERE undoing.undoes = note_changes.id)
ORDER BY note_changes.id DESC LIMIT :limit
"""
_SELECT_VERDICTS = f"""
{_SELECT_VISIBLE} AND NOT {_IS_NO_VERDICT} AND NOT EXISTS (
    SELECT 1 FROM note_changes AS later WHERE later.scope_id = note_changes.scope_id
        AND later.id > note_changes.id AND later.target = note_changes.target
        AND note_changes.after IN (later.before, later.after)
)
"""
_SELECT_GROUP = f"""
{_SELECT_VISIBLE} AND note_changes.action = :action AND note_changes.at = :at
AND substr(note_changes.target, 1, length(:group)) = :group
ORDER BY note_changes.id
"""
_IS_OF_SCOPE = "scope_id = (SELECT id FROM scopes WHERE key = :key)"
_SELECT_OPEN_WITH_PROMPT = f"""
SELECT id FROM sessions WHERE {_IS_OF_SCOPE} AND ended_at IS NULL AND system_prompt <> ''
"""
_DELETE_PROMPTS = f"UPDATE sessions SET system_prompt = '' WHERE {_IS_OF_SCOPE}"
# The columns that changes and pending changes have in common.
_COMMON_COLUMNS = ["scope_id", "target", "account", "message_id", "address_id", "external_id", "at"]
_INSERT_CHANGE = rows.insert_statement(
    "note_changes", *_COMMON_COLUMNS, "action", "before", "after", "undoes", "is_insisted"
)
_INSERT_PENDING = rows.insert_statement(
    "pending_notes", *_COMMON_COLUMNS, "operations", "reason", "is_draft", "is_proposed", "began_at"
)
_FROM_PENDING = """
SELECT pending_notes.*, scopes.key AS scope_key, addresses.platform, addresses.chat_id,
    addresses.thread_id
FROM pending_notes JOIN scopes ON scopes.id = pending_notes.scope_id
LEFT JOIN addresses ON addresses.id = pending_notes.address_id
"""
_SELECT_PENDING = f"""
{_FROM_PENDING} WHERE {visible("pending_notes.scope_id")} AND NOT is_written
ORDER BY pending_notes.id
"""
_SELECT_PROPOSED = f"{_FROM_PENDING} WHERE is_proposed AND NOT is_written ORDER BY pending_notes.id"
_SELECT_VERSIONS = f"""
SELECT after, MAX(id) AS id, MAX(at) AS at, COUNT(CASE WHEN is_pinned THEN 1 END) > 0 AS is_pinned
FROM note_changes
WHERE {visible("note_changes.scope_id")} AND target = :target AND after IS NOT NULL
    AND {_IS_NO_VERDICT} GROUP BY after
"""
_SET_PINNED = f"""
UPDATE note_changes SET is_pinned = :is_pinned
WHERE {visible("note_changes.scope_id")} AND target = :target AND after = :entry
"""
_INHERIT_PIN = """
UPDATE note_changes SET is_pinned = TRUE WHERE id = :id AND (
    SELECT old.is_pinned FROM note_changes AS old
    WHERE old.scope_id = :scope_id AND old.target = :target AND old.after = :before AND old.id < :id
    ORDER BY old.id DESC LIMIT 1
)
"""
"""A pinned note stays pinned when it is reworded."""
# Selects the sum of the latest ids of note and fact changes, unless this sum was already reviewed
# or reviews are paused.
_SELECT_UNREVIEWED_MARK = f"""
SELECT latest.mark FROM (
    SELECT MAX(id) + COALESCE(
        (SELECT MAX(id) FROM fact_changes WHERE {visible("fact_changes.scope_id")}), 0
    ) AS mark
    FROM note_changes WHERE {visible("note_changes.scope_id")} AND {IS_NOTE_CHANGE}
) AS latest WHERE latest.mark IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM note_reviews AS seen
    WHERE {visible("seen.scope_id")} AND (seen.paused_until > :now OR seen.watermark = latest.mark)
)
"""
_MARK_REVIEWED = """
INSERT INTO note_reviews (scope_id, watermark, paused_until) VALUES (:scope_id, :mark, :until)
ON CONFLICT (scope_id) DO UPDATE SET paused_until = excluded.paused_until,
    watermark = COALESCE(excluded.watermark, note_reviews.watermark)
"""
_SELECT_SKILLS = f"""
SELECT skills.*, scopes.key AS scope_key FROM skills JOIN scopes ON scopes.id = skills.scope_id
WHERE {visible("skills.scope_id")}
"""
_UPDATE_SKILL = """
INSERT INTO skills (scope_id, name, uses, used_at, is_disabled, is_pinned) VALUES (:scope_id, :name,
    :uses, :used_at, COALESCE(:is_disabled, FALSE), COALESCE(:is_pinned, FALSE))
ON CONFLICT (scope_id, name) DO UPDATE SET
    is_disabled = COALESCE(:is_disabled, skills.is_disabled),
    is_pinned = COALESCE(:is_pinned, skills.is_pinned),
    uses = skills.uses + excluded.uses, used_at = COALESCE(excluded.used_at, skills.used_at)
"""


class Notes:
    """Stores changes to notes and skills, pending changes, and the usage of skills."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def check_epoch(self, epoch: ErasureEpoch | None) -> None:
        """Raise StaleReadError if data that was read at `epoch` has been erased since."""
        await self._database.read(lambda connection: check_epoch(connection, epoch))

    async def log_changes(self, *changes: NoteChange) -> list[int]:
        """Store changes whose files are already written, and return their ids.

        This works even during an erasure. The erasure waits for the note file, and then has to find
        the changes in the store. If instructions change, the system prompts of their scope are
        deleted and later built again.
        """

        def write(connection: Connection) -> list[int]:
            """Insert the changes, and delete system prompts with the old instructions."""
            ids = [_insert_change(connection, change) for change in changes]
            _delete_prompts(connection, changes)
            return ids

        return await self._database.write(write) if changes else []

    async def begin_changes(
        self, changes: Sequence[NoteChange], call: ToolCallKey | None
    ) -> list[NoteChange]:
        """Store changes before their files are written, and return them with their ids.

        `call` is the tool call that makes the changes. Call `finish_changes` when the files are
        written, or `withdraw_changes` if they can't be written.
        """

        def write(connection: Connection) -> list[NoteChange]:
            stored_changes = [
                replace(change, id=_insert_change(connection, change)) for change in changes
            ]
            ids = [change.id for change in stored_changes]
            tool_calls.begin_changes(connection, ids, call)
            return stored_changes

        return await self._database.write(write) if changes else []

    async def finish_changes(self, changes: Sequence[NoteChange]) -> None:
        """Record that the files of these changes are written.

        If instructions change, the system prompts of their scope are deleted and later built again.
        """

        def write(connection: Connection) -> None:
            tool_calls.finish_changes(connection, [change.id for change in changes])
            _delete_prompts(connection, changes)

        if changes:
            await self._database.write(write)

    async def withdraw_changes(self, changes: Sequence[NoteChange]) -> None:
        """Delete changes whose files couldn't be written, and the records of their tool calls."""
        ids = [change.id for change in changes]
        if ids:
            await self._database.write(
                lambda connection: tool_calls.withdraw_changes(connection, ids)
            )

    async def list_unfinished(self) -> list[NoteChange]:
        """List the changes whose files may not have been written, in all scopes, oldest first."""
        return [read_change(row) for row in await self._database.fetch_all(_SELECT_UNFINISHED)]

    async def list_changes(
        self, scopes: frozenset[Scope], limit: int = 20, before: int = 2**62, after: int = 0
    ) -> list[NoteChange]:
        """List the latest changes with an id below `before`, latest first.

        If `after` is given, list the first changes with a higher id than `after` instead, also
        latest first.
        """
        order = "ASC" if after else "DESC"
        statement = f"""{_SELECT_VISIBLE} AND note_changes.id < :before AND note_changes.id > :after
            ORDER BY note_changes.id {order} LIMIT :limit"""
        values = {"limit": max(0, limit), "before": before, "after": after}
        changes = await self._fetch_changes(statement, scopes, **values)
        return changes[::-1] if after else changes

    async def list_changes_since(
        self, scopes: frozenset[Scope], session_id: int, at: datetime
    ) -> list[NoteChange]:
        """List changes since `at` that the session doesn't know about, oldest first."""
        return await self._fetch_changes(_SELECT_SINCE, scopes, session=session_id, at=at)

    async def find(self, scopes: frozenset[Scope], number: int) -> NoteChange | None:
        """Return a change by its id, or None if the change isn't visible."""
        statement = f"{_SELECT_VISIBLE} AND note_changes.id = :id"
        return await self._fetch_change(statement, scopes, id=rows.int64_or_zero(number))

    async def list_changes_by(self, scopes: frozenset[Scope], author: Author) -> list[NoteChange]:
        """List the note changes that an author's command has made, oldest first."""
        if author.address is None or author.external_id is None:
            return []
        return await self._fetch_changes(
            _SELECT_BY_COMMAND,
            scopes,
            external=author.external_id,
            **rows.address_values(author.address),
        )

    async def list_undoable(self, scopes: frozenset[Scope]) -> list[NoteChange]:
        """List the latest note changes that can be undone, latest first."""
        return await self._fetch_changes(_SELECT_UNDOABLE, scopes, limit=UNDO_LOOKBACK)

    async def list_entries(self, scope: Scope, target: str) -> list[str]:
        """List the entries that a note file should contain after all of its logged changes."""
        # A dict, because its keys are unique and keep their order.
        entries: dict[str, None] = {}
        statement = f"{_SELECT_VISIBLE} AND note_changes.target = :target ORDER BY note_changes.id"
        for change in await self._fetch_changes(statement, frozenset((scope,)), target=target):
            if change.before is not None:
                entries.pop(change.before, None)
            if change.after is not None:
                entries[change.after] = None
        return list(entries)

    async def find_origin(self, scopes: frozenset[Scope], entry: str) -> NoteChange | None:
        """Return the latest change that produced this entry, or None."""
        statement = f"{_SELECT_VISIBLE} AND after = :entry AND {_IS_NO_VERDICT}"
        statement += " ORDER BY note_changes.id DESC LIMIT 1"
        return await self._fetch_change(statement, scopes, entry=entry)

    async def list_verdicts(self, scopes: frozenset[Scope]) -> list[NoteChange]:
        """List the verdicts on notes and skills whose text hasn't changed since the verdict."""
        return await self._fetch_changes(_SELECT_VERDICTS, scopes)

    async def load_versions(self, scopes: frozenset[Scope], target: str) -> dict[str, NoteVersion]:
        """Load the latest version of each text that the notes of a file have ever had, by text."""
        values = {"scopes": scope_parameter(scopes), "target": target}
        return {
            row["after"]: NoteVersion(**rows.read_fields(row, NoteVersion))
            for row in await self._database.fetch_all(_SELECT_VERSIONS, values)
        }

    async def pin(
        self, scopes: frozenset[Scope], target: str, entry: str, *, is_pinned: bool
    ) -> None:
        """Pin or unpin an entry of a file."""
        values = {
            "scopes": scope_parameter(scopes),
            "target": target,
            "entry": entry,
            "is_pinned": is_pinned,
        }
        await self._database.execute(_SET_PINNED, values)

    async def list_group(self, scopes: frozenset[Scope], change: NoteChange) -> list[NoteChange]:
        """List the changes that are undone together with this one, oldest first.

        A consolidation changes several notes, and adding or deleting a skill changes several files.
        """
        if change.skill is None:
            actions: Sequence[str] = _GROUPED_NOTE_ACTIONS
            group = change.target
        else:
            actions = _GROUPED_SKILL_ACTIONS
            folder, _ = change.skill
            group = f"{SKILL}:{folder}:"
        if change.action not in actions:
            return [change]
        return await self._fetch_changes(
            _SELECT_GROUP, scopes, at=change.at, action=change.action, group=group
        )

    async def load_skill_uses(
        self, scopes: frozenset[Scope]
    ) -> dict[tuple[Scope, str], dict[str, Any]]:
        """Load how often and when each skill was used, and whether it is off or pinned."""
        uses_by_skill: dict[tuple[Scope, str], dict[str, Any]] = {}
        values = {"scopes": scope_parameter(scopes)}
        for row in await self._database.fetch_all(_SELECT_SKILLS, values):
            uses_by_skill[Scope(key=row["scope_key"]), row["name"]] = {
                "uses": row["uses"],
                "used_at": rows.to_optional_datetime(row["used_at"]),
                **{name: bool(row[name]) for name in ("is_disabled", "is_pinned")},
            }
        return uses_by_skill

    async def update_skill(
        self, scope: Scope, name: str, epoch: ErasureEpoch | None = None, **change: datetime | bool
    ) -> None:
        """Record that a skill was used (`used_at`), is off (`is_disabled`) or is `is_pinned`."""
        uses = int("used_at" in change)
        unchanged = dict.fromkeys(("used_at", "is_disabled", "is_pinned"))
        values = {"name": name, "uses": uses, **unchanged, **change}

        def write(connection: Connection) -> None:
            scope_id = rows.ensure_scope(connection, scope)
            connection.execute(_UPDATE_SKILL, {**values, "scope_id": scope_id})

        await self._database.write(write, epoch)

    async def find_unreviewed_mark(self, scopes: frozenset[Scope], now: datetime) -> int | None:
        """Return the number of the latest change if the curator should review the scopes, or None.

        The number ("mark") grows with each change to a note or fact. Returns None if the curator is
        paused or has already reviewed this mark.
        """
        values = {"scopes": scope_parameter(scopes), "now": rows.to_timestamp(now)}
        row = await self._database.read_inline(
            lambda connection: connection.execute(_SELECT_UNREVIEWED_MARK, values).fetchone()
        )
        return None if row is None else int(row["mark"])

    async def mark_reviewed(self, scope: Scope, until: datetime, mark: int | None = None) -> None:
        """Record that the curator has reviewed `mark`, and pause the curator until `until`.

        Without `mark`, the stored mark stays. The mark 0 makes the curator review everything again.
        """

        def write(connection: Connection) -> None:
            values = {
                "scope_id": rows.ensure_scope(connection, scope),
                "until": rows.to_timestamp(until),
                "mark": mark,
            }
            connection.execute(_MARK_REVIEWED, values)

        await self._database.write(write)

    async def add_pending(
        self, note: PendingNote, epoch: ErasureEpoch | None = None
    ) -> PendingNote | None:
        """Store a change that waits for a confirmation, and return it with its id.

        If the same operations already wait in the scope, no second row is stored. Returns None if
        too many changes wait in the scope, or if this change is a draft and another draft already
        waits.
        """

        def write(connection: Connection) -> PendingNote | None:
            stored_note = insert_pending(connection, note)
            if stored_note is not None and epoch is not None and epoch.call is not None:
                tool_calls.record_waiting_call(connection, epoch.call)
            return stored_note

        return await self._database.write(write, epoch)

    async def list_pending(self, scopes: frozenset[Scope]) -> list[PendingNote]:
        """List the changes that wait for confirmation, oldest first."""
        values = {"scopes": scope_parameter(scopes)}
        pending_rows = await self._database.fetch_all(_SELECT_PENDING, values)
        return [_read_pending(row) for row in pending_rows]

    async def list_proposed(self) -> list[tuple[PendingNote, ErasureEpoch]]:
        """List the changes of all scopes that the helper model must judge, oldest first.

        Each change comes with its scope's current epoch. Changes in a scope with a running erasure
        are left out.
        """

        def read(connection: Connection) -> list[tuple[PendingNote, ErasureEpoch]]:
            proposals = []
            for row in connection.execute(_SELECT_PROPOSED).fetchall():
                note = _read_pending(row)
                epoch = current_epoch(connection, scope_parameter(frozenset((note.scope,))))
                if epoch is not None:
                    proposals.append((note, epoch))
            return proposals

        return await self._database.read(read)

    async def ask_about(self, note_id: int) -> None:
        """Record that a proposed change now waits for a person's confirmation."""
        values = {"id": rows.int64_or_zero(note_id)}
        await self._database.execute(
            "UPDATE pending_notes SET is_proposed = FALSE WHERE id = :id", values
        )

    async def drop(self, note_id: int) -> None:
        """Delete a pending change."""
        values = {"id": rows.int64_or_zero(note_id)}
        await self._database.execute("DELETE FROM pending_notes WHERE id = :id", values)

    async def _fetch_changes(
        self, statement: str, scopes: frozenset[Scope], **values: object
    ) -> list[NoteChange]:
        """Run a statement that extends `_SELECT_VISIBLE`, and return the changes."""
        parameters = {"scopes": scope_parameter(scopes), **values}
        change_rows = await self._database.read_inline(
            lambda connection: connection.execute(statement, parameters).fetchall()
        )
        return [_read_change_with_message(row) for row in change_rows]

    async def _fetch_change(
        self, statement: str, scopes: frozenset[Scope], **values: object
    ) -> NoteChange | None:
        changes = await self._fetch_changes(statement, scopes, **values)
        return changes[0] if changes else None


def read_change(row: Row) -> NoteChange:
    """Convert a row of `SELECT_CHANGES` to a change, without its source message."""
    return NoteChange(**rows.read_fields(row, NoteChange), **_read_scope_and_address(row))


def _read_change_with_message(row: Row) -> NoteChange:
    """Convert a row of `_SELECT_VISIBLE` to a change, with the text of its source message."""
    change = read_change(row)
    if not row["text"]:
        return change
    return replace(
        change,
        source_text=row["text"],
        sender=row["sender_name"] or "",
        link=message_link(row["link_base"], row["platform_id"]),
    )


def _read_pending(row: Row) -> PendingNote:
    """Convert a row of `_SELECT_PENDING` to a pending change."""
    fields = rows.read_fields(row, PendingNote)
    names = ("action", "content", "old_text", "path")
    # Older versions stored no path, so `zip` isn't strict.
    fields["operations"] = tuple(
        Operation(**dict(zip(names, values, strict=False)))
        for values in json.loads(row["operations"])
    )
    return PendingNote(**fields, **_read_scope_and_address(row))


def _read_scope_and_address(row: Row) -> dict[str, Any]:
    address = None if row["platform"] is None else rows.read_address(row)
    return {"scope": Scope(key=row["scope_key"]), "address": address}


def _delete_prompts(connection: Connection, changes: Sequence[NoteChange]) -> None:
    """Delete the system prompts of the scopes whose instructions have changed."""
    for key in {change.scope.key for change in changes if change.target == INSTRUCTIONS}:
        for row in connection.execute(_SELECT_OPEN_WITH_PROMPT, {"key": key}).fetchall():
            record_prefix_break(connection, row["id"], "system")
        connection.execute(_DELETE_PROMPTS, {"key": key})


def _insert_change(connection: Connection, change: NoteChange) -> int:
    """Store a change, and return its id. A pinned note stays pinned when it is reworded."""
    values = _note_values(connection, change)
    change_id = rows.insert(connection, _INSERT_CHANGE, values)
    if change.before is not None and change.after is not None:
        connection.execute(_INHERIT_PIN, {**values, "id": change_id})
    return change_id


def insert_pending(connection: Connection, note: PendingNote) -> PendingNote | None:
    """Store a pending change, and return the same as `Notes.add_pending`."""
    operations = rows.dump_json([astuple(operation) for operation in note.operations])
    values = {**_note_values(connection, note), "operations": operations}
    statement = "SELECT * FROM pending_notes WHERE scope_id = :scope_id AND NOT is_written"
    pending_rows = connection.execute(statement, values).fetchall()
    # All pending changes of a scope share the time at which the first of them was stored.
    began_at = pending_rows[0]["began_at"] if pending_rows else rows.to_timestamp(note.at)
    for row in pending_rows:
        if (row["target"], row["operations"]) == (note.target, operations):
            return replace(note, began_at=rows.to_datetime(began_at), id=row["id"])

    has_other_draft = note.is_draft and any(row["is_draft"] for row in pending_rows)
    if has_other_draft or len(pending_rows) >= MAX_PENDING:
        return None
    note_id = rows.insert(connection, _INSERT_PENDING, {**values, "began_at": began_at})
    return replace(note, began_at=rows.to_datetime(began_at), id=note_id)


def _note_values(connection: Connection, note: NoteChange | PendingNote) -> dict[str, object]:
    """Return a change's fields, and the ids of its scope and address, as parameters."""
    address_id = None
    if note.address is not None:
        address_id = rows.ensure_address(connection, note.address)
    return {
        **rows.field_values(note),
        "scope_id": rows.ensure_scope(connection, note.scope),
        "address_id": address_id,
    }
