"""A backup that is put back repeats what was erased since, or says that it cannot."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest

from core.privacy.home_files import encode_phrase
from core.store.erasure import epoch
from core.store.erasure.statements import ErasureRequest
from core.store.sqlite.database import Database
from core.types import Account, Address, Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.command_line import good, mneme
from tests.fixtures.forgetting import forgetting_of
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says

# Backups contain state.db. A database on a server is restored with pg_restore.
pytestmark = [pytest.mark.slow, pytest.mark.sqlite]

SAID = "I moved to Zanzibar in May.\nI live by the sea.\n/memory add Zanzibar is warm\n"
FORGET = "/forget Zanzibar\nyes\n"
SEVEN = ErasureRequest(
    account=Account(platform="telegram", user_id="7"),
    scope=Scope.account("telegram", "7"),
    scopes=frozenset({Scope.account("telegram", "7")}),
    address=Address(platform="telegram", chat_id="7"),
    is_owner=False,
)


def backed_up(home: Path) -> Path:
    """A copy as docs/operating.md makes it: state.db with SQLite's own means, the rest as it is."""
    copy = home.with_name("backup")
    shutil.copytree(home, copy, ignore=shutil.ignore_patterns("state.db*"))
    with sqlite3.connect(home / "state.db") as source, sqlite3.connect(copy / "state.db") as target:
        source.backup(target)
    source.close()
    target.close()
    return copy


def put_back(copy: Path, home: Path) -> None:
    shutil.rmtree(home)
    shutil.copytree(copy, home)


def having(word: str, folder: Path) -> Sequence[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(
        path.name
        for path in files
        if any(one in path.read_bytes().lower() for one in encode_phrase(word))
    )


def test_restored_backup_repeats_the_erasures_made_since(home: Path) -> None:
    good(home, "chat", stdin=SAID)
    copy = backed_up(home)
    assert "If you restore a backup here, I erase this again" in good(home, "chat", stdin=FORGET)
    assert having("Zanzibar", home) == []
    journal = home.with_name("home.erasures")
    assert journal.stat().st_mode & 0o777 == 0o600
    put_back(copy, home)
    assert "MEMORY.md" in having("Zanzibar", home)
    done = mneme(home, "recall", "Zanzibar")
    assert "I erased again what was forgotten since then (1 erasure)" in done.stderr
    assert "moved" not in done.stdout
    assert having("Zanzibar", home) == []
    assert "by the sea" in good(home, "recall", "sea")
    assert mneme(home, "recall", "sea").stderr == "", "it is said once"


async def test_erasure_that_a_kill_interrupts_after_a_restore_is_finished_by_the_next_command(
    home: Path,
) -> None:
    good(home, "remember", "I moved to Zanzibar in May")
    copy = backed_up(home)
    good(home, "forget", "Zanzibar", "--yes")
    put_back(copy, home)
    async with Database.open(home / "state.db") as database:
        # The process dies when it has begun the erasure.
        forgetting = forgetting_of(database, SteadyClock(datetime.now(UTC)))
        assert (await forgetting.begin_replay())[0] == 1
    assert having("Zanzibar", home)
    assert "moved" not in good(home, "facts")
    assert having("Zanzibar", home) == []


def test_run_and_check_report_that_a_restored_backup_was_erased_again(home: Path) -> None:
    good(home, "chat", stdin=SAID)
    copy = backed_up(home)
    good(home, "forget", "Zanzibar", "--yes")
    put_back(copy, home)
    assert "I erased again" in mneme(home, "check").stdout
    assert having("Zanzibar", home) == []
    put_back(copy, home)
    done = mneme(home, "chat", stdin="hello\n")
    assert "what was forgotten since then (1 erasure)" in done.stderr
    assert "I erased again" in done.stdout
    assert having("Zanzibar", home) == [], "as often as it is put back"


async def test_restored_backup_repeats_the_erasure_of_own_words_in_groups(home: Path) -> None:
    room = {
        "address": Address(platform="telegram", chat_id="-5"),
        "scope": Scope.group("telegram", "-5"),
    }
    async with open_gateway(home, options='rooms = ["telegram:-5"]\n') as harness:
        await harness.say("Zanzibar is mine", "7", is_direct=False, **room)
        await harness.say("I said nothing of it here", "7")
    copy = backed_up(home)
    async with open_gateway(home, options='rooms = ["telegram:-5"]\n') as harness:
        asked = await harness.services.forgetting.prepare("Zanzibar", SEVEN)
        # And with the yes the process dies.
        assert await harness.services.forgetting.erasures.begin(asked.token, SEVEN)
    async with open_gateway(home) as harness:
        assert await harness.services.forgetting.resume() == 1
        while await harness.services.forgetting.maintain():
            pass
    assert having("Zanzibar", home) == []
    put_back(copy, home)
    assert "what was forgotten since then (1 erasure)" in mneme(home, "check").stdout
    assert having("Zanzibar", home) == []


def test_erasure_journal_reveals_the_forgotten_words_only_with_the_key_in_a_backup(
    home: Path,
) -> None:
    """Whoever has the home and the journal beside it does not learn the words."""
    good(home, "chat", stdin=SAID)
    with sqlite3.connect(home / "state.db") as looking:
        (key,) = looking.execute(
            "SELECT value FROM state_meta WHERE key = ?", (epoch.JOURNAL_META_KEY,)
        ).fetchone()
    looking.close()
    good(home, "forget", "Zanzibar", "--yes")
    assert having("Zanzibar", home.parent) == []
    assert having(key, home.parent) == [], "not even the key is left that could read it"


def test_restored_backup_too_old_to_repeat_erasures_is_reported_once(home: Path) -> None:
    good(home, "chat", stdin=SAID)
    copy = backed_up(home)
    with sqlite3.connect(copy / "state.db") as older:
        # As a version without keys leaves it, and its migration makes one.
        older.execute(
            "UPDATE state_meta SET value = 'another' WHERE key = ?", (epoch.JOURNAL_META_KEY,)
        )
    older.close()
    good(home, "forget", "Zanzibar", "--yes")
    put_back(copy, home)
    said = mneme(home, "status").stderr
    assert "too old for me to repeat that" in said
    assert "mneme forget it again" in said
    assert "moved" in good(home, "recall", "Zanzibar")
    assert mneme(home, "status").stderr == ""


def test_new_home_in_place_of_a_deleted_one_repeats_no_erasures(home: Path) -> None:
    good(home, "chat", stdin=f"{SAID}{FORGET}")
    shutil.rmtree(home)
    home.mkdir()
    assert mneme(home, "status").stderr == ""
    assert "moved" in good(home, "chat", stdin=f"{SAID}/recall Zanzibar\n")


def test_forget_receipt_warns_if_the_erasure_journal_cannot_be_written(home: Path) -> None:
    good(home, "chat", stdin=SAID)
    home.with_name("home.erasures").mkdir()
    assert "a restored backup brings this back" in good(home, "chat", stdin=FORGET)


def test_truncated_lines_of_the_erasure_journal_do_not_hide_the_others_and_are_reported_once(
    home: Path,
) -> None:
    good(home, "chat", stdin=SAID)
    copy = backed_up(home)
    home.with_name("home.erasures").write_text("1 2026-11-22 0123456789abcdef 0")
    good(home, "forget", "Zanzibar", "--yes")
    with home.with_name("home.erasures").open("a") as journal:
        journal.write("99 2026-11-22 0123456789abcdef 0\n\n99 2026-11-22 0123")
    put_back(copy, home)
    printed = mneme(home, "status").stderr
    assert "I erased again" in printed
    assert "forgotten on 2026-11-22" in printed
    assert mneme(home, "status").stderr == ""


async def test_restored_backup_repeats_each_erasure_only_for_its_asker(home: Path) -> None:
    """And nothing else: what another one said with the same words stays, as does what was said
    there since."""
    room = Scope.group("telegram", "-100")
    place = Address(platform="telegram", chat_id="-100")
    options = 'rooms = ["telegram:-100"]\n'
    async with open_gateway(home, ScriptedModel(says("Hm."), says("So.")), options) as harness:
        await harness.say("I moved to Zanzibar", "42")
        await harness.say("Zanzibar is mine", "7", address=place, scope=room, is_direct=False)
        await harness.say("Zanzibar is ours", "8", address=place, scope=room, is_direct=False)
        await harness.services.database.checkpoint()
        copy = backed_up(home)
        for line in ("/forget Zanzibar", "yes"):
            await harness.say(line, "7", address=place, scope=room, is_direct=False)
    put_back(copy, home)
    async with open_gateway(home, ScriptedModel(), options) as harness:
        harness._ids = count(100)
        assert "1 erasure" in harness.services.restore_report
        assert "I moved" in (await harness.say("/recall Zanzibar", "42")).text
        found = (
            await harness.say("/recall Zanzibar", "8", address=place, scope=room, is_direct=False)
        ).text
        assert "ours" in found
        assert "mine" not in found
