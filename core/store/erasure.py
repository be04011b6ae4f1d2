"""Erases what a person wants to be forgotten, and everything that was derived from it, from the rows of state.db.

What is to go is a list of ids that is kept before the person is asked, begun when he says yes, and worked off in small
transactions; whatever stops it, it is not begun or it is finished after the next start. The bytes are
`compaction.py`'s, the files `core/privacy/forgetting.py`'s.
"""

from __future__ import annotations

import json
import sqlite3
import time
from datetime import datetime, timedelta

from core.errors import Refused
from core.ports import Clock
from core.privacy import erasure_search
from core.privacy.erasure_search import listed, widen
from core.privacy.quoting import Quoting, digest
from core.store import epoch, messages, rows
from core.store.epoch import ErasureEpoch
from core.store.erasure_list import ErasureItem, ErasureList, ErasureRequest
from core.store.inbox import close_entries
from core.store.query import SearchQuery
from core.store.rows import visible
from core.store.sqlite import index_maintenance
from core.store.sqlite.database import Database
from core.store.sqlite.erase_bytes import want, want_pages
from core.store.sqlite.stale import write_text
from core.store.usage import disturb

STEP_S = 0.05
"""How long a transaction takes about, in which nobody else can write."""
ASKED_FOR = timedelta(minutes=15)
"""How long a list waits that nobody has confirmed; a little longer than the question."""
KNOWN_FOR = timedelta(days=30)
"""How long it is known that one was worked off, for a yes that comes again after a crash."""


class Erasure:
    """Lists and their work, over state.db."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._left: dict[str, list[int]] = {}
        """By token: the messages that this process has yet to erase; a list that it takes up it begins with again."""

    async def look(self, query: SearchQuery, claim: ErasureRequest) -> tuple[ErasureList, list[ErasureItem], Quoting]:
        """What `query` (its filters taken out of the text) means for `claim`, what of it a person should see, and what
        tells that something repeats it.
        Raises Refused while the text indexes cannot be asked: nothing may be overlooked."""

        def work(connection: sqlite3.Connection) -> tuple[ErasureList, list[ErasureItem], Quoting]:
            if index_maintenance.is_stale(connection):
                raise Refused("The search index is being built anew, so something could be overlooked. Try again soon.")
            return listed(connection, query, claim)

        return await self._database.read(work)

    async def keep(self, token: str, found: ErasureList, claim: ErasureRequest) -> None:
        """Keeps a list for a yes of the claim's account at its address; an empty one is not kept. What he typed is in
        no row, but may be in the log of the database, which is cut for it."""
        now = self._clock.now()
        values = {
            "id": token,
            "lane": rows.clean(claim.address.key),
            "account": rows.account_key(claim.account),
            "scopes": json.dumps(found.scopes),
            "list": found.dump(),
            "now": rows.timestamp(now),
            "unasked": rows.timestamp(now - ASKED_FOR),
            "old": rows.timestamp(now - KNOWN_FOR),
        }

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "DELETE FROM erasures WHERE begun_at IS NULL AND made_at < :unasked OR done_at < :old", values
            )
            if found.is_empty:
                want_pages(connection)
                return
            connection.execute(
                """
                INSERT INTO erasures (id, lane, account, scopes, list, made_at)
                VALUES (:id, :lane, :account, :scopes, :list, :now)
                """,
                values,
            )
            want_pages(connection)

        await self._database.write(work)

    async def begin(self, token: str, claim: ErasureRequest) -> ErasureList | None:
        """Begins to work off a list, for good; None when there is none of this name that is his, here. The question
        itself and what was shown with it go along, and from here on nothing is written that was made before. Again: the
        same list, which may be worked off by now."""
        now = self._clock.now()
        values = {
            "id": rows.clean(token),
            "lane": rows.clean(claim.address.key),
            "account": rows.account_key(claim.account),
            "now": rows.timestamp(now),
        }

        def work(connection: sqlite3.Connection) -> ErasureList | None:
            row = connection.execute(
                "SELECT list, begun_at FROM erasures WHERE id = :id AND lane = :lane AND account = :account", values
            ).fetchone()
            if row is None:
                return None
            found = ErasureList.load(row["list"])
            if row["begun_at"] is None:
                if not {scope.key for scope in claim.scopes}.issuperset(found.scopes):
                    # His accounts were parted since: not all of it is his any more.
                    return None
                asked = connection.execute(
                    f"""
                    SELECT messages.id FROM messages JOIN sessions ON sessions.id = messages.session_id
                    WHERE messages.id > :upto AND messages.kind = 'command' AND {visible()}
                        AND messages.address_id = :address
                        AND (messages.role <> 'user' OR messages.sender_id = :sender)
                    """,
                    {
                        "sender": rows.clean(claim.account.user_id),
                        "upto": found.upto,
                        "scopes": json.dumps(found.scopes),
                        "address": rows.find_address(connection, claim.address),
                    },
                )
                found.asked = [one[0] for one in asked]
                entries, said = erasure_search.rows_of(connection, found)
                found.unread -= len(set(said) - set(found.messages))
                found.messages = sorted({*found.messages, *said})
                close_entries(connection, entries, now)
                connection.execute(
                    "UPDATE erasures SET begun_at = :now, list = :list WHERE id = :id", {**values, "list": found.dump()}
                )
                epoch.count(connection)
            return found

        return await self._database.write(work)

    async def widen(self, token: str, words: Quoting) -> ErasureList | None:
        """Puts on a list that was begun what was made of it since it was shown; None when it is worked off. Nobody can
        write more of it meanwhile. `words`: see `erasure_search.widen`."""

        def read(connection: sqlite3.Connection) -> ErasureList | None:
            row = _begun(connection, token)
            if row is None:
                return None
            found = ErasureList.load(row["list"])
            account = rows.account_of(row["account"])
            if account is not None:
                widen(connection, found, account, words)
            return found

        found = await self._database.read(read)
        if found is not None:
            values = {"id": token, "list": found.dump()}
            await self._database.write(
                lambda connection: connection.execute(
                    "UPDATE erasures SET list = :list WHERE id = :id AND done_at IS NULL", values
                ).close()
            )
        return found

    async def begun(self, before: datetime | None = None) -> list[str]:
        """The lists that were begun, before a moment, and are not finished."""
        values = {"before": rows.maybe_timestamp(before)}

        def work(connection: sqlite3.Connection) -> list[str]:
            found = connection.execute(
                """
                SELECT id FROM erasures
                WHERE begun_at NOT NULL AND done_at IS NULL AND (:before IS NULL OR begun_at < :before)
                """,
                values,
            )
            return [row["id"] for row in found]

        return await self._database.read(work)

    async def renewed(self, held: ErasureEpoch) -> ErasureEpoch:
        """The vantage from which work goes on that has erased something itself."""
        return await self._database.read(lambda connection: epoch.taken(connection, held.scopes)) or held

    async def texts(self, found: ErasureList) -> list[str]:
        """What the rows still say that are to go: for what is kept outside of state.db."""
        values = {"ids": json.dumps([*found.messages, *found.repeats])}

        def work(connection: sqlite3.Connection) -> list[str]:
            said = connection.execute(
                "SELECT text FROM messages WHERE id IN (SELECT value FROM json_each(:ids)) AND text <> ''", values
            )
            return [row[0] for row in said]

        return await self._database.read(work)

    async def step(self, token: str) -> bool:
        """One transaction of the work; False when the list is worked off."""

        left = self._left.get(token)

        def work(connection: sqlite3.Connection) -> list[int] | None:
            row = _begun(connection, token)
            if row is None:
                return None
            if left:
                want(connection)
                return _erase(connection, left)
            found = ErasureList.load(row["list"])
            if left is None:
                return [*found.asked, *found.repeats, *found.messages]
            self._rest(connection, found)
            done = ErasureList(
                messages=found.messages, unread=found.unread, notes=found.notes, facts=found.facts, jobs=found.jobs
            )
            connection.execute(
                "UPDATE erasures SET done_at = :now, number = :number, list = :list WHERE id = :id",
                {
                    "id": token,
                    "now": rows.timestamp(self._clock.now()),
                    "number": epoch.count(connection),
                    "list": done.dump(),
                },
            )
            want(connection)
            return None

        rest = await write_text(self._database, work)
        if rest is None:
            self._left.pop(token, None)
            return False
        self._left[token] = rest
        return True

    def _rest(self, connection: sqlite3.Connection, found: ErasureList) -> None:
        """All that is no message, in one transaction."""
        values = {"now": rows.timestamp(self._clock.now())}
        for statement, ids in (
            ("UPDATE sessions SET title = NULL WHERE id IN", found.titles),
            ("UPDATE sessions SET system_prompt = '' WHERE id IN", found.prompts),
            ("UPDATE sessions SET external_id = NULL WHERE id IN", found.sources),
            ("UPDATE messages SET external_id = NULL WHERE id IN", found.names),
            ("DELETE FROM facts WHERE id IN", found.facts),
            ("DELETE FROM fact_changes WHERE id IN", found.fact_changes),
            ("DELETE FROM notes WHERE id IN", found.note_changes),
            ("DELETE FROM pending_notes WHERE id IN", found.pending_notes),
            (
                "UPDATE jobs SET text = '', next_at = NULL, ended_at = COALESCE(ended_at, :now) WHERE id IN",
                found.jobs,
            ),
            (
                "UPDATE outbox SET payload = NULL, next_at = NULL, dead_at = COALESCE(dead_at, :now), "
                "error = 'forgotten' WHERE done_at IS NULL AND id IN",
                found.parcels,
            ),
            ("DELETE FROM actions WHERE id IN", found.actions),
            ("DELETE FROM raw_updates WHERE failed_at NOT NULL AND update_id IN", found.updates),
        ):
            connection.execute(f"{statement} (SELECT value FROM json_each(:ids))", {**values, "ids": json.dumps(ids)})
        _bare_fences(connection, found)
        _forget_versions(connection, found)
        _rebuild_prompts(connection, found)


def _begun(connection: sqlite3.Connection, token: str) -> sqlite3.Row | None:
    found: sqlite3.Row | None = connection.execute(
        "SELECT list, account FROM erasures WHERE id = :id AND begun_at NOT NULL AND done_at IS NULL", {"id": token}
    ).fetchone()
    return found


def _erase(connection: sqlite3.Connection, ids: list[int]) -> list[int]:
    """Erases messages from the end of a list, for as long as a transaction may take; returns those that are left."""
    ends_at = time.monotonic() + STEP_S
    count = 0
    while count < len(ids) and time.monotonic() < ends_at:
        count += 1
        row = connection.execute(
            "SELECT id, session_id, kind, text FROM messages WHERE id = :id", {"id": ids[-count]}
        ).fetchone()
        if row is not None:
            messages.erase(connection, row)
    return ids[:-count]


def _bare_fences(connection: sqlite3.Connection, found: ErasureList) -> None:
    """Of what was sent beside a question only the time line and the question stay."""
    sent = connection.execute(
        "SELECT id, sent FROM messages WHERE id IN (SELECT value FROM json_each(:ids)) AND sent NOT NULL",
        {"ids": json.dumps(found.fences)},
    ).fetchall()
    for row in sent:
        connection.execute(
            "UPDATE messages SET sent = :sent WHERE id = :id",
            {"id": row["id"], "sent": rows.dump(json.loads(row["sent"])[:2])},
        )


def _forget_versions(connection: sqlite3.Connection, found: ErasureList) -> None:
    """Versions that came since the list was made: taking a note out of its file is logged like any change."""
    gone = set(found.entries)

    def is_gone(row: sqlite3.Row) -> bool:
        return any(text and digest(text) in gone for text in (row["before"], row["after"]))

    if gone:
        versions = connection.execute(
            f"SELECT id, before, after FROM notes WHERE {visible('notes.scope_id')}",
            {"scopes": json.dumps(found.scopes)},
        ).fetchall()
        ids = json.dumps([row["id"] for row in versions if is_gone(row)])
        connection.execute("DELETE FROM notes WHERE id IN (SELECT value FROM json_each(:ids))", {"ids": ids})


def _rebuild_prompts(connection: sqlite3.Connection, found: ErasureList) -> None:
    """Running sessions whose prefix had a part of it get a new prompt at their next turn."""
    running = connection.execute(
        """
        SELECT id FROM sessions WHERE ended_at IS NULL AND COALESCE(root_id, id) IN (
            SELECT COALESCE(touched.root_id, touched.id) FROM sessions AS touched
            WHERE touched.id IN (SELECT value FROM json_each(:ids))
        )
        """,
        {"ids": json.dumps([*found.touched, *found.prompts])},
    ).fetchall()
    for row in running:
        connection.execute("UPDATE sessions SET system_prompt = '' WHERE id = :id", {"id": row["id"]})
        disturb(connection, row["id"], "forget")
