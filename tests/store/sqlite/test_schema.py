"""What was stored by earlier versions reads as what it was."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from core.scheduling.due import next_due
from core.store.jobs import Jobs
from core.store.sqlite.database import Database
from core.store.tool_calls import CallOutcome, read_call_outcomes
from tests.fixtures.new_database import version_before, write_earlier

_BEFORE = """
INSERT INTO scopes (id, key) VALUES (1, 'account:telegram:42');
INSERT INTO addresses (id, platform, chat_id) VALUES (1, 'telegram', '42'), (2, 'import', '1');
INSERT INTO sessions (id, address_id, scope_id, started_at, last_at) VALUES (1, 1, 1, 0, 0);
INSERT INTO messages (id, session_id, address_id, role, text, sent, is_forward, created_at) VALUES
    (1, 1, 1, 'user', 'typed', '[{"type":"text","text":"as it was sent"}]', 0, 0),
    (2, 1, 1, 'user', 'passed on', NULL, 1, 0),
    (3, 1, 2, 'user', 'from elsewhere', NULL, 0, 0),
    (4, 1, 2, 'assistant', 'an answer', NULL, 0, 0);
"""


async def test_messages_of_a_home_without_origins_get_theirs_and_keep_their_sent_form(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    write_earlier(path, 1, _BEFORE)
    async with Database.open(path) as database:
        found = await database.read(
            lambda connection: connection.execute(
                "SELECT origin, sent FROM messages ORDER BY id"
            ).fetchall()
        )
    assert [row["origin"] for row in found] == ["typed", "forwarded", "imported", "typed"]
    assert found[0]["sent"] == '[{"type":"text","text":"as it was sent"}]'


_JOBS = """
INSERT INTO scopes (id, key) VALUES (1, 'account:telegram:42');
INSERT INTO addresses (id, platform, chat_id) VALUES (1, 'telegram', '42');
INSERT INTO jobs (id, scope_id, address_id, text, zone, cron, every_s, start_at, at, created_at,
    next_at, ended_at) VALUES
    (1, 1, 1, 'pay', 'Europe/Lisbon', '0 9 1 * 5', NULL, NULL, NULL, 1767225600, 1767344400, NULL),
    (2, 1, 1, 'tea', 'Europe/Lisbon', NULL, 172800, 1767254400, NULL, 1767225600, 1767254400, NULL),
    (3, 1, 1, 'rent', 'Europe/Lisbon', '0 9 L * *', NULL, NULL, NULL, 1767225600, 1769850000, NULL),
    (4, 1, 1, 'once', 'Europe/Lisbon', NULL, NULL, NULL, 1798790400, 1767225600, 1798790400, NULL),
    (5, 1, 1, 'old', 'Europe/Lisbon', '30 7 * * *', NULL, NULL, NULL, 1767225600, NULL, 1767300000),
    (6, 1, 1, 'odd', 'Nowhere/Gone', '30 7 * * *', NULL, NULL, NULL, 1767225600, 1767300000, NULL);
"""


async def test_cron_lines_and_intervals_of_an_old_home_become_recurrences_and_keep_their_next_time(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    write_earlier(path, version_before("job_recurrences"), _JOBS)
    with closing(sqlite3.connect(path)) as connection:
        before = connection.execute("SELECT id, next_at FROM jobs ORDER BY id").fetchall()
    async with Database.open(path) as database:
        after = await database.fetch_all("SELECT id, next_at FROM jobs ORDER BY id", {})
        rows = await database.fetch_all(
            "SELECT recurrences, cron, every_s, start_at FROM jobs ORDER BY id", {}
        )
        job = await Jobs(database).get(1)
    assert [tuple(row) for row in after] == before
    assert [json.loads(row["recurrences"]) for row in rows] == [
        [
            "DTSTART;TZID=Europe/Lisbon:20260101T090000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=1",
            "DTSTART;TZID=Europe/Lisbon:20260101T090000\nRRULE:FREQ=WEEKLY;BYDAY=FR",
        ],
        ["DTSTART;TZID=Europe/Lisbon:20260101T080000\nRRULE:FREQ=DAILY;INTERVAL=2"],
        [],
        [],
        ["DTSTART;TZID=Europe/Lisbon:20260101T073000\nRRULE:FREQ=DAILY"],
        [],
    ]
    assert [row["cron"] for row in rows] == [None, None, "0 9 L * *", None, None, "30 7 * * *"]
    assert [(row["every_s"], row["start_at"]) for row in rows] == [(None, None)] * 6
    assert job is not None
    assert next_due(job.schedule, datetime(2026, 1, 2, 10, tzinfo=UTC)) == datetime(
        2026, 1, 9, 9, tzinfo=UTC
    )


_TOOL_CALL = """
INSERT INTO scopes (id, key) VALUES (1, 'account:telegram:42');
INSERT INTO addresses (id, platform, chat_id) VALUES (1, 'telegram', '42');
INSERT INTO sessions (id, address_id, scope_id, started_at, last_at) VALUES (1, 1, 1, 0, 0);
INSERT INTO tool_calls (session_id, call_id) VALUES (1, 'toolu_1');
"""


async def test_tool_call_that_an_earlier_version_recorded_is_neither_called_done_nor_waiting(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    write_earlier(path, version_before("is_waiting"), _TOOL_CALL)
    async with Database.open(path) as database:
        outcomes = await database.read(lambda connection: read_call_outcomes(connection, 1))
    assert outcomes == {"toolu_1": CallOutcome.DONE_OR_WAITING}
