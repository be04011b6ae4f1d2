"""`mneme store copy`: from state.db to a real PostgreSQL server, and back to a new file."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from core.store.engine import Connection
from core.store.postgres.database import GATEWAY_LOCK, WRITE_LOCK
from core.store.rows import COPY_KEY, insert_statement
from core.store.sqlite.copying import list_tables
from core.store.sqlite.database import Database
from core.transfer.store_copy import sort_tables
from gateway.sharing.home_lock import lock_home
from gateway.upkeep import store_copying
from tests.fixtures.command_line import good, mneme
from tests.fixtures.forked import ROOT, ForkedProcess

pytestmark = pytest.mark.slow

SWEEP = pytest.mark.sweep
MESSAGES = 4_000
WAIT_S = 120.0
INDEX_KEYS = ("index_stale", "index_version", "index_cursor", "chunked_until", "facts_version")


LEASE = {
    "scope_id": 1,
    "address_id": 1,
    "external_id": "x1",
    "position": 0,
    "kind": "document",
    "name": "lease.pdf",
    "hash": "ab" * 32,
    "at": 4.25,
}
NEW_LEASE = {**LEASE, "external_id": "x2"}


@pytest.fixture(scope="module")
def filled_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that has rows in the tables that people fill."""
    home = tmp_path_factory.mktemp("filled") / "home"
    home.mkdir()
    lines = (
        "The ferry to Porto leaves at nine.",
        "remember that my dentist is Dr. Silva",
        "/remind in 2 hours call Ana",
        "/cron add every monday at 8:30 stand-up",
    )
    good(home, "chat", stdin="\n".join(lines) + "\n")
    good(home, "facts", "add", "I work at the harbour")
    fill(home / "state.db", add_rows)
    return home


@pytest.fixture
def home(filled_home: Path, tmp_path: Path) -> Path:
    copied = tmp_path / "home"
    shutil.copytree(filled_home, copied)
    return copied


def fill(path: Path, work: Callable[[Connection], Any]) -> Any:
    """Change or read a state.db."""

    async def run() -> Any:
        async with Database.open(path) as database:
            return await database.write(work)

    return asyncio.run(run())


def add_rows(connection: Connection) -> None:
    """Add what a chat in a terminal doesn't create, and messages for several batches."""

    def insert(table: str, **values: object) -> None:
        connection.execute(insert_statement(table, *values), values)

    scope, address, session = connection.execute(
        "SELECT scope_id, address_id, id FROM sessions ORDER BY id LIMIT 1"
    ).fetchone()
    last = connection.execute("SELECT MAX(id) FROM messages").fetchone()[0]
    message = {"session_id": session, "address_id": address, "kind": "chat", "created_at": 1.5}
    for number in range(1, MESSAGES + 1):
        text = f"Line {number} tells of house {number % 97} and boat {number % 89}"
        role = "user" if number % 2 else "assistant"
        insert("messages", id=last + number, role=role, text=text, **message)
    # A gap: no row has the highest id that was ever given away.
    insert("messages", id=last + MESSAGES + 50, role="user", text="a\0b \U0001f600", **message)
    insert("messages", id=last + MESSAGES + 70, role="user", text="gone", **message)
    connection.execute("DELETE FROM messages WHERE text = 'gone'")
    # The parent of a session that was imported may have a higher id.
    for id_, parent in ((900, None), (901, 902), (902, None)):
        insert(
            "sessions",
            id=id_,
            address_id=address,
            scope_id=scope,
            started_at=1.0,
            last_at=2.0,
            ended_at=3.0,
            parent_id=None,
            title=f"Imported {id_}",
        )
        if parent is not None:
            insert("prefix_breaks", session_id=id_, cause="undo")
    connection.execute("UPDATE sessions SET parent_id = 902 WHERE id = 901")
    insert("files", hash="ab" * 32, type="application/pdf", size=2**40, pages=3, duration_s=0.1)
    insert(
        "file_parts", hash="ab" * 32, position=0, label="page 1", text="The lease of the harbour"
    )
    insert("message_files", **LEASE, id=1)
    # Its number was given away, and isn't given away again when it is gone.
    insert("message_files", **NEW_LEASE, id=7)
    insert(
        "links",
        digest="d1",
        platform="telegram",
        user_id="42",
        scope_id=scope,
        address="telegram:42",
        expires_at=5.5,
    )
    insert(
        "model_calls",
        scope_id=scope,
        session_id=session,
        kind="turn",
        model="test",
        at=6.0,
        input_tokens=10,
        output_tokens=5,
        cache_read_tokens=3,
        cache_write_tokens=1,
    )
    insert("message_vectors", message_id=last + 1, model="test", vector=b"\0\x01\xff")
    insert("thumbs", message_id=last + 2, account="terminal:local", verdict=-1, at=7.0)
    insert("tool_calls", session_id=session, call_id="c1", is_waiting=None)
    insert("tool_calls", session_id=session, call_id="c2", is_waiting=True)


def use_server(home: Path, url: str) -> None:
    (home / "mneme.toml").write_text(f'[store]\nurl = "{url}"\n', encoding="utf-8")


def read_everything(path: Path) -> dict[str, list[list[Any]]]:
    """Return all rows that are copied, by table."""

    def read(connection: Connection) -> dict[str, list[list[Any]]]:
        content = {}
        for table in list_tables(connection):
            columns = ", ".join(f'"{column}"' for column in table.columns)
            rows = connection.execute(f"SELECT {columns} FROM {table.name}").fetchall()
            content[table.name] = sorted((list(row) for row in rows), key=repr)
        content["state_meta"] = [
            row for row in content["state_meta"] if row[0] not in (*INDEX_KEYS, COPY_KEY)
        ]
        return content

    content: dict[str, list[list[Any]]] = fill(path, read)
    return content


def export(home: Path) -> str:
    return good(home, "export")


def export_repaired(home: Path) -> str:
    """Return the export of a home as PostgreSQL can store it."""
    return export(home).replace("\\u0000", "\ufffd").replace("\0", "\ufffd")


def copy_there_and_back(home: Path, url: str) -> Path:
    """Copy a home to a server and from there to a new home. Returns the new one."""
    good(home, "store", "copy", "--to", url)
    use_server(home, url)
    back = home.parent / "back"
    good(home, "store", "copy", "--to", str(back))
    return back


def without_nul(content: dict[str, list[list[Any]]]) -> str:
    return json.dumps(content, default=repr, sort_keys=True).replace("\\u0000", "\\ufffd")


def test_store_that_is_copied_to_a_server_and_back_has_the_same_rows_and_exports(
    home: Path, postgres_url: str
) -> None:
    exported = export_repaired(home)
    before = read_everything(home / "state.db")
    printed = good(home, "store", "copy", "--to", postgres_url)
    assert "The number and the checksum of the rows are the same on both sides." in printed
    assert "In 1 texts they were replaced" in printed
    assert f'url = "{postgres_url}"' in printed
    assert "with the same results on both sides: 12 of 12" in printed
    assert read_everything(home / "state.db") == before
    use_server(home, postgres_url)
    assert export(home) == exported
    assert "lease.pdf" in good(home, "media", "list", "harbour")
    assert "The ferry to Porto" in good(home, "recall", "when does the ferry leave")
    back = home.parent / "back"
    good(home, "store", "copy", "--to", str(back))
    assert without_nul(read_everything(back / "state.db")) == without_nul(before)
    assert export(back) == exported
    assert "The ferry to Porto" in good(back, "recall", "when does the ferry leave")
    assert sorted(path.name for path in back.glob("*.part*")) == []


def test_copy_gives_away_no_id_twice(home: Path, postgres_url: str) -> None:
    fill(home / "state.db", lambda opened: opened.execute("DELETE FROM message_files WHERE id = 7"))
    back = copy_there_and_back(home, postgres_url)
    with watch(postgres_url) as connection:
        row = connection.execute("SELECT nextval('message_files_id_seq')").fetchone()
    assert row == (8,)
    insert = insert_statement("message_files", *LEASE)
    new_id = fill(
        back / "state.db",
        lambda opened: opened.execute(f"{insert} RETURNING id", NEW_LEASE).fetchone()[0],
    )
    assert new_id == 8


# --- Copies that are killed ---


def start_copy(home: Path, target: str) -> ForkedProcess:
    """Start the command in a process of its own. Its output goes to `output_of`."""
    environ = {"PATH": os.environ["PATH"], "MNEME_HOME": str(home), "PYTHONPATH": str(ROOT)}
    with Path(os.devnull).open("rb") as nothing, output_of(home).open("wb") as output:
        streams = (nothing.fileno(), output.fileno(), output.fileno())
        return ForkedProcess(("store", "copy", "--to", target), environ, ROOT, streams)


def output_of(home: Path) -> Path:
    """The file with what the last copy of a home has printed."""
    return home.parent / "copy.log"


def kill(home: Path, process: ForkedProcess) -> str:
    """Kill a copy, and return its output."""
    process.send_signal(signal.SIGKILL)
    process.wait(WAIT_S)
    return output_of(home).read_text(encoding="utf-8")


def wait_until(condition: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < ends_at
        time.sleep(0.01)


@contextmanager
def watch(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url, autocommit=True, application_name="test") as connection:
        connection.execute("SET search_path TO mneme")
        yield connection


def has_no_client(connection: psycopg.Connection) -> bool:
    """Whether the server has noticed that a killed process is gone."""
    row = connection.execute(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE application_name = 'mneme' AND datname = current_database()"
    ).fetchone()
    return row == (0,)


def kill_after(connection: psycopg.Connection, home: Path, url: str, steps: int) -> bool:
    """Start a copy and kill it after so many write transactions. Returns False if it had ended."""
    with watch(url) as other, ThreadPoolExecutor(1) as thread:
        holder, next_holder = connection, other
        holder.execute("SELECT pg_advisory_lock(%s)", (WRITE_LOCK,))
        process = start_copy(home, url)
        for _ in range(steps):
            wait_until(partial(is_stopped_or_waiting, holder, process))
            # The server grants a lock in the order of the requests. So the copy gets it for one
            # transaction, and waits for the next holder before the following one.
            request = thread.submit(
                next_holder.execute, "SELECT pg_advisory_lock(%s)", (WRITE_LOCK,)
            )
            wait_until(partial(is_stopped_or_waiting, holder, process, waiter_count=2))
            holder.execute("SELECT pg_advisory_unlock(%s)", (WRITE_LOCK,))
            request.result(WAIT_S)
            holder, next_holder = next_holder, holder
        output = kill(home, process)
    connection.execute("SELECT pg_advisory_unlock_all()")
    wait_until(partial(has_no_client, connection))
    # The last kill may have come after the last transaction, so that the copy was complete.
    had_ended = process.returncode == 0 or "already has messages" in output
    assert had_ended or process.returncode == -signal.SIGKILL, output
    return not had_ended


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("early_kills", "steps", "kills_at_least"), [(0, 18, 3), pytest.param(20, 8, 24, marks=SWEEP)]
)
@pytest.mark.sweep
def test_copy_to_a_server_that_is_killed_again_and_again_is_the_same_in_the_end(
    home: Path, postgres_url: str, early_kills: int, steps: int, kills_at_least: int
) -> None:
    exported = export_repaired(home)
    before = read_everything(home / "state.db")
    kills = 0
    with watch(postgres_url) as connection:
        # The end of a copy takes more than three transactions, so the later kills leave it more.
        while kill_after(connection, home, postgres_url, 3 if kills < early_kills else steps):
            kills += 1
            if kills == 1:
                use_server(home, postgres_url)
                refused = mneme(home, "recall", "ferry")
                assert refused.returncode == 1
                assert "Run `mneme store copy` again until it finishes" in refused.stderr
                (home / "mneme.toml").unlink()
    assert kills >= kills_at_least
    use_server(home, postgres_url)
    assert export(home) == exported
    back = home.parent / "back"
    good(home, "store", "copy", "--to", str(back))
    assert without_nul(read_everything(back / "state.db")) == without_nul(before)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("tables", "kill_count"), [pytest.param(16, 3, marks=SWEEP), pytest.param(2, 20, marks=SWEEP)]
)
def test_copy_to_a_file_that_is_killed_again_and_again_is_the_same_in_the_end(
    home: Path, postgres_url: str, tables: int, kill_count: int
) -> None:
    exported = export_repaired(home)
    before = read_everything(home / "state.db")
    good(home, "store", "copy", "--to", postgres_url)
    use_server(home, postgres_url)
    back = home.parent / "back"
    names = [table["name"] for table in fill(home / "state.db", list_copied_tables)]
    with watch(postgres_url) as connection:
        killed_at = names[5::tables][:kill_count]
        assert len(killed_at) == kill_count
        for name in killed_at:
            # The copy can't read this table, so it has stored all tables before it.
            with connection.transaction():
                connection.execute(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")
                process = start_copy(home, str(back))
                wait_until(partial(is_stopped_or_waiting, connection, process))
                output = kill(home, process)
                assert process.returncode == -signal.SIGKILL, output
            wait_until(partial(has_no_client, connection))
            assert not (back / "state.db").exists()
    assert mneme(home, "store", "copy", "--to", str(back)).returncode == 0
    assert without_nul(read_everything(back / "state.db")) == without_nul(before)
    assert export(back) == exported


def list_copied_tables(connection: Connection) -> list[dict[str, str]]:
    return [{"name": table.name} for table in sort_tables(list_tables(connection))]


def is_stopped_or_waiting(
    connection: psycopg.Connection, process: ForkedProcess, waiter_count: int = 1
) -> bool:
    """Whether a process has ended, or so many requests wait for a lock on the server."""
    row = connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
    assert row is not None
    return process.poll() is not None or row[0] >= waiter_count


# --- Copies that are refused ---


def refuse(home: Path, target: str) -> str:
    """Return the sentence with which a copy is refused."""
    result = mneme(home, "store", "copy", "--to", target)
    assert result.returncode == 1, result.stdout
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_copy_to_a_database_with_messages_or_with_a_part_of_another_store_is_refused(
    home: Path, postgres_url: str
) -> None:
    with watch(postgres_url) as connection:
        part = json.dumps({"source": "another", "table": "messages"})
        statement = "INSERT INTO state_meta (key, value) VALUES (%s, %s)"
        connection.execute(statement, (COPY_KEY, part))
        assert "the unfinished copy of another store" in refuse(home, postgres_url)
        connection.execute("DELETE FROM state_meta WHERE key = %s", (COPY_KEY,))
    good(home, "store", "copy", "--to", postgres_url)
    assert "already has messages, facts or reminders" in refuse(home, postgres_url)


def test_copy_waits_until_the_server_notices_that_a_gateway_has_ended(
    home: Path, postgres_url: str
) -> None:
    with watch(postgres_url) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (GATEWAY_LOCK,))
        release = threading.Timer(1.0, connection.close)
        release.start()
        good(home, "store", "copy", "--to", postgres_url)
        release.join()


def test_copy_while_a_gateway_uses_either_side_is_refused(
    home: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_copying, "RELEASE_TIMEOUT_S", 0.1)
    with lock_home(home):
        assert "is already" in refuse(home, postgres_url)
    with watch(postgres_url) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (GATEWAY_LOCK,))
        assert "Another gateway uses the database" in refuse(home, postgres_url)
        use_server(home, postgres_url)
        assert "Another gateway uses the database" in refuse(home, str(home.parent / "back"))


def test_copy_to_a_place_that_is_no_good_is_refused(home: Path, postgres_url: str) -> None:
    with watch(postgres_url) as connection:
        connection.execute("UPDATE schema_version SET version = version + 1")
        assert "written by a newer version of Mneme" in refuse(home, postgres_url)
        connection.execute("UPDATE schema_version SET version = version - 1")
    assert "can't be reached" in refuse(home, "postgresql://mneme@127.0.0.1:1/mneme")
    assert "leave the password out" in refuse(home, "postgresql://mneme:hush@localhost/mneme")
    assert "write an address such as" in refuse(home, "mysql://localhost/mneme")
    assert "The store is already a file" in refuse(home, str(home.parent / "back"))
    use_server(home, postgres_url)
    assert "already on a PostgreSQL server" in refuse(home, postgres_url)
    assert "exists already" in refuse(home, str(home))


def test_copy_of_a_home_without_a_store_is_refused(tmp_path: Path, postgres_url: str) -> None:
    assert "there is nothing to copy" in refuse(tmp_path / "empty", postgres_url)


@pytest.mark.sweep
def test_source_that_changes_during_the_copy_makes_it_fail_and_the_next_one_is_right(
    home: Path, postgres_url: str
) -> None:
    with watch(postgres_url) as connection:
        assert kill_after(connection, home, postgres_url, steps=45)
        fill(
            home / "state.db",
            lambda opened: opened.execute("UPDATE scopes SET key = key || 'x' WHERE id = 1"),
        )
        assert "so the copy was discarded" in refuse(home, postgres_url)
    printed = good(home, "store", "copy", "--to", postgres_url)
    assert "the same on both sides" in printed
