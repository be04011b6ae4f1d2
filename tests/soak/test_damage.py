"""Damage of state.db of every kind: each page in turn, truncation while Mneme runs, missing and empty
files. Damage is noticed, and costs nothing but what was in the damaged pages.

SQLite has no checksums. So damage that leaves a page well-formed, such as zeros in the last page of a
long text, can't be noticed, and isn't made here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.errors import StoreDamagedError, StoreError
from core.store.sqlite.salvage import find_file_damage, repair
from core.store.sqlite.schema import register_functions
from core.types import Address
from gateway.store_watch import StoreWatch
from tests.end_to_end.test_lost_files import say, stored_texts
from tests.fixtures.clock import SteadyClock
from tests.fixtures.command_line import good, mneme
from tests.fixtures.gateway_harness import GatewayHarness, notices, open_gateway
from tests.fixtures.kill_storm import choose_seed
from tests.fixtures.live_system import PERSON, LiveSystem
from tests.fixtures.populated_home import PopulatedHome

pytestmark = pytest.mark.timeout(2400)

PAGE_BYTES = 4096
NOW = datetime(2026, 11, 24, 1, 0, tzinfo=UTC)
WATCHED_PAGES = 16
"""With so many pages, the gateway and the commands are run, too."""
CUTS = 4
HELD_LOGS = 5
"""How often the log is removed while another program reads."""
WAIT_S = 120.0
DEPENDENT_TABLES = {"facts": ("fact_entities",), "entities": ("fact_entities",)}
"""Tables whose rows say nothing without the row that they refer to."""
_SELECT_PAGES = "SELECT pageno, name, pagetype, ncell FROM dbstat"
_SELECT_TABLES = """
SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
AND sql NOT LIKE 'CREATE VIRTUAL TABLE%' AND name NOT LIKE '%\\_fts\\_%' ESCAPE '\\'
"""


@dataclass(frozen=True)
class Page:
    """A page of the file, and the table or index that it belongs to."""

    number: int
    owner: str
    kind: str
    cell_count: int

    def overwrite(self, path: Path, chance: random.Random) -> str:
        """Fill the page with zeros or noise. Returns a description."""
        is_zeroed = chance.random() < 0.5
        content = bytes(PAGE_BYTES) if is_zeroed else chance.randbytes(PAGE_BYTES)
        with path.open("r+b") as file:
            file.seek((self.number - 1) * PAGE_BYTES)
            file.write(content)
        return f"{self} {'zeroed' if is_zeroed else 'scribbled'}"


def list_pages(path: Path) -> list[Page]:
    with closing(sqlite3.connect(path)) as connection:
        return [Page(*row) for row in connection.execute(_SELECT_PAGES)]


def read_keys(path: Path) -> dict[str, set[object]]:
    """The keys of the rows of each table."""
    keys: dict[str, set[object]] = {}
    with closing(sqlite3.connect(path)) as connection:
        register_functions(connection)
        for (name,) in connection.execute(_SELECT_TABLES).fetchall():
            columns = connection.execute(f'PRAGMA table_info("{name}")').fetchall()
            key = ", ".join(f'"{column[1]}"' for column in columns if column[5]) or "rowid"
            rows = connection.execute(f'SELECT {key} FROM "{name}"').fetchall()
            keys[name] = {tuple(row) for row in rows}
    return keys


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A home in which everything is stored that can be."""
    home = tmp_path / "whole"
    home.mkdir(mode=0o700)
    asyncio.run(PopulatedHome.build(home))
    with closing(sqlite3.connect(home / "state.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return home


def find_wrong(
    page: Page, before: Mapping[str, set[object]], path: Path, chance: random.Random
) -> str:
    """Damage a page of the file, and repair it. Returns what is wrong then, or ""."""
    damage = page.overwrite(path, chance)
    damaged_content = path.read_bytes()
    if not find_file_damage(path):
        return f"{damage} isn't noticed"
    try:
        report = repair(path, NOW)
    except StoreError as error:
        if page.owner == "sqlite_schema" and path.read_bytes() == damaged_content:
            return ""
        return f"{damage} can't be repaired: {error}"
    if report.damaged_path.read_bytes() != damaged_content:
        return f"{damage}: the damaged file wasn't kept"
    if find_file_damage(path):
        return f"{damage} is still there"
    after = read_keys(path)
    for name, keys in before.items():
        lost_count = len(keys - after[name])
        allowed = count_rows_within(page, keys) if name == page.owner else 0
        if name in DEPENDENT_TABLES.get(page.owner, ()):
            allowed = len(keys)
        if lost_count > allowed:
            return f"{damage}: {lost_count} of {len(keys)} rows of {name} are lost"
        reported = report.lost.get(name, 0)
        if reported is not None and lost_count > reported:
            return f"{damage}: {lost_count} rows of {name} are lost, and {reported} are reported"
    return ""


def count_rows_within(page: Page, keys: set[object]) -> int:
    """How many rows of its table may be lost with a page. Rows can't be found without the pages
    that lead to them."""
    if page.kind == "internal":
        return len(keys)
    return 1 if page.kind == "overflow" else page.cell_count


def test_any_damaged_page_is_noticed_and_a_repair_loses_only_its_rows(
    whole: Path, tmp_path: Path
) -> None:
    chance = random.Random(choose_seed())
    before = read_keys(whole / "state.db")
    pages = list_pages(whole / "state.db")
    wrong = []
    for page in pages:
        folder = tmp_path / f"page-{page.number}"
        folder.mkdir()
        shutil.copy(whole / "state.db", folder)
        wrong.append(find_wrong(page, before, folder / "state.db", chance))
        shutil.rmtree(folder)
    wrong = [sentence for sentence in wrong if sentence]
    sys.stdout.write("\n".join([f"{len(pages)} pages", *wrong, ""]))
    assert wrong == []


async def test_owner_is_told_of_a_damaged_database_page_and_commands_skip_it(
    whole: Path, tmp_path: Path
) -> None:
    chance = random.Random(choose_seed())
    line_count = mneme_export(whole)[1]
    pages = [page for page in list_pages(whole / "state.db") if page.owner != "sqlite_schema"]
    for page in chance.sample(pages, WATCHED_PAGES):
        home = tmp_path / f"page-{page.number}"
        shutil.copytree(whole, home)
        damage = page.overwrite(home / "state.db", chance)
        texts, status = await watch_damaged_home(home)
        assert sum("state.db is damaged" in text for text in texts) == 1, damage
        assert "damaged" in status, damage
        checked = mneme(home, "check", "--json")
        results = {result["subject"]: result for result in json.loads(checked.stdout)}
        assert checked.returncode == 1, damage
        assert results["state.db"]["state"] == "wrong", damage
        code, exported_count = mneme_export(home)
        repaired = json.loads(mneme(home, "check", "--repair", "--json").stdout)
        assert {"repair", "right"} <= {
            text for result in repaired for text in (result["subject"], result["state"])
        }, damage
        assert len(list(home.glob("state.db.damaged-*"))) == 1, damage
        repaired_count = mneme_export(home)[1]
        assert repaired_count >= exported_count, damage
        # Whose messages are in a damaged page isn't known, so all are counted.
        assert code == 1 or exported_count == line_count, damage


def mneme_export(home: Path) -> tuple[int, int]:
    """The exit code of an export of everything, and the number of exported messages."""
    exported = mneme(home, "export")
    return exported.returncode, exported.stdout.count("\n")


async def watch_damaged_home(home: Path) -> tuple[list[str], str]:
    """Run a gateway until its checks of a day have ended. Returns what its owner was told, and
    `/status`. If it can't start, both are what it says then.

    It doesn't start if it can't read whom it may answer, or what waits to be sent."""
    try:
        async with open_gateway(home) as harness:
            services, clock = harness.services, SteadyClock()
            watch = StoreWatch(
                services.database,
                services.owner_notices,
                clock,
                services.find_private_chat,
                harness.delivery.notify_unstored,
                Address(platform="telegram", chat_id="42"),
            )
            telegram = harness.platforms["telegram"]
            harness.delivery.add_platform("telegram", telegram.reply)
            await watch.check()
            for _ in range(2):
                while await watch.check_integrity():
                    pass
                clock.advance(days=2)
            texts = []
            # If notices can't be stored, they are sent directly.
            with contextlib.suppress(StoreDamagedError):
                texts += [text for _, text in await notices(harness)]
            texts += [reply.text for _, reply in telegram.replies if reply.answer]
            return texts, await ask_status(harness)
    except StoreDamagedError as error:
        return [str(error)], str(error)
    except ExceptionGroup as group:
        damage, other_errors = group.split(StoreDamagedError)
        assert other_errors is None, other_errors
        assert damage is not None
        return [str(damage.exceptions[0])], str(damage.exceptions[0])


async def ask_status(harness: GatewayHarness) -> str:
    """What the owner reads after `/status`, or why the command can't be stored."""
    try:
        reply = await harness.say("/status")
    except StoreDamagedError as error:
        return str(error)
    return reply.text if reply.answer else "damaged"


async def test_gateway_keeps_running_with_damaged_database_pages_and_tells_the_owner(
    home: Path,
) -> None:
    chance = random.Random(choose_seed())
    async with LiveSystem.open(home, is_loop_watched=False) as live:
        await live.start()
        for number in range(30):
            await say(live, f"The harbour {number} is old.")
        live.change("PRAGMA wal_checkpoint(TRUNCATE)")
        pages = [page for page in list_pages(home / "state.db") if page.owner == "messages"]
        leaves = [page for page in pages if page.kind == "leaf"][:-1]
        for page in chance.sample(leaves, min(2, len(leaves))):
            page.overwrite(home / "state.db", chance)
        live.tells_telegram("/recall harbour")
        live.tells_telegram("/whoami")
        await wait_for_text(live, "my owner")
        assert not live.is_gone
        await live.kill()
        await live.start()
        await wait_for_text(live, "state.db is damaged")
        live.tells_telegram("/status")
        await wait_for_text(live, "; damaged (")
        assert not live.is_gone
        await live.kill()
    assert good(home, "check", "--repair")
    assert find_file_damage(home / "state.db") == ""


def shown(live: LiveSystem) -> list[str]:
    return live.telegram.texts(PERSON)


async def wait_for_text(live: LiveSystem, words: str) -> None:
    """Wait until the person has read these words on Telegram."""
    await live.until(lambda: any(words in text for text in shown(live)), WAIT_S)


async def test_file_that_is_cut_off_anywhere_ends_neither_the_process_nor_a_message(
    home: Path,
) -> None:
    chance = random.Random(choose_seed())
    for number in range(CUTS):
        cut_home = home.with_name(f"cut-{number}")
        cut_home.mkdir(mode=0o700)
        async with LiveSystem.open(cut_home, is_loop_watched=False) as live:
            await live.start()
            await say(live, "The harbour is old.")
            live.change("PRAGMA wal_checkpoint(TRUNCATE)")
            await say(live, "The bakery is closed.")
            kept_bytes = chance.randrange((cut_home / "state.db").stat().st_size)
            os.truncate(cut_home / "state.db", kept_bytes)
            live.tells_telegram("The ferry is new.")
            live.tells_telegram("/recall harbour")
            await wait_for_text(live, "removed, replaced or cut off")
            assert not live.is_gone, kept_bytes
            assert not any("You said: The ferry is new." in text for text in shown(live))
            await live.kill()
            # The message is still there for the next start.
            assert any(
                "The ferry is new." in json.dumps(update) for update in live.telegram.updates
            ), kept_bytes


@pytest.mark.parametrize("missing", [("state.db-wal",), ("state.db-wal", "state.db-shm")])
async def test_write_ahead_log_removed_while_the_gateway_runs_loses_no_message(
    home: Path, missing: tuple[str, ...]
) -> None:
    async with LiveSystem.open(home, is_loop_watched=False) as live:
        await live.start()
        await say(live, "The harbour is old.")
        for name in missing:
            (home / name).unlink()
        await say(live, "The ferry is new.")
        assert not live.is_gone
        await live.kill()
    assert stored_texts(home) == ["The harbour is old.", "The ferry is new."]
    assert find_file_damage(home / "state.db") == ""


@pytest.mark.parametrize("is_stopped", [False, True])
async def test_write_ahead_log_removed_while_another_program_reads_loses_no_message(
    home: Path, is_stopped: bool
) -> None:
    """With `is_stopped`, the turn whose writes wait for the rescue of the log is cancelled."""
    chance = random.Random(choose_seed())
    said = ["The harbour is old."]
    async with LiveSystem.open(home, is_loop_watched=False) as live:
        await live.start()
        await say(live, said[0])
        for number in range(HELD_LOGS):
            with closing(sqlite3.connect(home / "state.db", isolation_level=None)) as reader:
                reader.execute("BEGIN")
                reader.execute("SELECT COUNT(*) FROM messages").fetchone()
                (home / "state.db-wal").unlink()
                said.append(f"The ferry {number} is new.")
                live.tells_telegram(said[-1])
                await asyncio.sleep(chance.random() / 2)
                if is_stopped:
                    live.tells_telegram("/stop")
                await asyncio.sleep(chance.random() * 2)
            said.append(f"The bakery {number} is closed.")
            await say(live, said[-1])
            assert not live.is_gone
        await live.kill()
        await live.start()
        await say(live, "The ship is gone.")
        assert await live.stop() == 0
    stored = [text for text in stored_texts(home) if text != "/stop"]
    assert stored == [*said, "The ship is gone."]
    assert find_file_damage(home / "state.db") == ""


@pytest.mark.parametrize(
    ("removed", "emptied"),
    [
        (("state.db",), ()),
        (("state.db", "state.db-wal"), ()),
        (("state.db", "state.db-wal", "state.db-shm"), ()),
        ((), ("state.db",)),
        (("state.db-wal",), ("state.db",)),
    ],
)
async def test_home_whose_file_is_gone_or_empty_does_not_begin_with_an_empty_memory(
    home: Path, removed: tuple[str, ...], emptied: tuple[str, ...]
) -> None:
    async with LiveSystem.open(home, is_loop_watched=False) as live:
        await live.start()
        await say(live, "The harbour is old.")
        await live.kill()
    for name in removed:
        (home / name).unlink(missing_ok=True)
    for name in emptied:
        (home / name).write_bytes(b"")
    for command in ("run", "chat", "check", "recall"):
        done = mneme(home, command, *(["harbour"] if command == "recall" else []))
        assert done.returncode == 1, command
        assert "this home had a database" in done.stdout + done.stderr, command
    path = home / "state.db"
    assert not path.exists() or path.stat().st_size == 0
