"""Scheduled backups, and what `mneme check` says about them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pyrage
import pytest

from config.settings import Settings
from config.upkeep_options import StoreOptions
from core.errors import Sentence
from gateway.check import run_checks
from gateway.services import Services
from gateway.supervisor import WallClock
from gateway.texts.catalog import ENGLISH, load_texts
from gateway.upkeep.backups import BackupScheduler, describe_remaining_copies, run_backup
from gateway.upkeep.catalog import BackupCatalog, BackupRecord, backup_folder
from gateway.upkeep.home_checks import CheckResult
from tests.fixtures.clock import SteadyClock
from tests.fixtures.command_line import good, mneme

pytestmark = pytest.mark.slow


def load(home: Path, options: str = 'every = "1d"') -> Settings:
    (home / "mneme.toml").write_text(f"[backup]\n{options}\n")
    return Settings.load({"MNEME_HOME": str(home)})


def count_backups(settings: Settings) -> int:
    return len(list(backup_folder(settings).glob("mneme-*")))


async def test_scheduled_backup_is_made_when_it_is_due(home: Path) -> None:
    settings = load(home)
    async with Services.open(settings) as services:
        clock = SteadyClock(services.clock.now())
        scheduler = BackupScheduler(settings, clock, services.owner_notices)
        await scheduler.tend()
        assert count_backups(settings) == 1
        clock.advance(hours=23)
        await scheduler.tend()
        assert count_backups(settings) == 1
        clock.advance(hours=2)
        await scheduler.tend()
        assert count_backups(settings) == 2


@pytest.mark.parametrize("has_failed", [False, True])
async def test_scheduled_backups_continue_after_the_clock_was_years_ahead(
    home: Path, has_failed: bool
) -> None:
    settings = load(home)
    catalog = BackupCatalog(home)
    async with Services.open(settings) as services:
        clock = SteadyClock(services.clock.now())
        scheduler = BackupScheduler(settings, clock, services.owner_notices)
        await scheduler.tend()
        (record,) = catalog.load().records
        catalog.add(replace(record, made_at=record.made_at + timedelta(days=3650)))
        if has_failed:
            at = record.made_at + timedelta(days=3650)
            catalog.note_failure(at, Sentence("store_disk_full", {"path": "x"}))
        clock.advance(hours=2)
        await scheduler.tend()
        assert count_backups(settings) == 2
        clock.advance(hours=2)
        await scheduler.tend()
        assert count_backups(settings) == 2


async def test_owner_is_told_once_a_day_if_a_backup_fails(home: Path) -> None:
    good(home, "chat", stdin="hello\n")
    (home.parent / "file").write_text("in the way")
    settings = load(home, f'every = "1d"\nfolder = "{home.parent}/file"')
    async with Services.open(settings) as services:
        # A day is one of the calendar: the three attempts must not go past midnight.
        clock = SteadyClock(services.clock.now().replace(hour=12))
        scheduler = BackupScheduler(settings, clock, services.owner_notices)
        for _ in range(3):
            await scheduler.tend()
            clock.advance(minutes=50)
        rows = await services.database.fetch_all(
            "SELECT payload FROM outbox WHERE kind = 'notice' AND key LIKE 'backup:%'"
        )
        assert len(rows) == 1
        assert "The backup failed: The folder" in str(tuple(rows[0]))
    (result,) = [one for one in await run_checks(settings) if one.subject == "backups"]
    assert result.state == "wrong"
    assert "can't be created" in result.text
    assert "mneme config set backup.folder FOLDER" in result.advice


async def check_backups(settings: Settings, language: str = "en") -> CheckResult:
    """Return the result of `mneme check` about backups."""
    (result,) = [
        result
        for result in await run_checks(settings, texts=load_texts(language))
        if result.subject == "backups"
    ]
    return result


@pytest.mark.parametrize("typed", [("/proc/nowhere",), ("--encrypt", "age1nonsense")])
async def test_mistyped_backup_leaves_the_check_green_and_the_schedule_on_time(
    home: Path, typed: tuple[str, ...]
) -> None:
    settings = load(home)
    good(home, "sessions")
    good(home, "backup")
    refused = mneme(home, "backup", *typed)
    assert refused.returncode == 1
    assert "mneme.toml" not in refused.stderr
    assert (await check_backups(settings)).state == "right"
    async with Services.open(settings) as services:
        clock = SteadyClock(services.clock.now() + timedelta(days=1, minutes=1))
        await BackupScheduler(settings, clock, services.owner_notices).tend()
    assert count_backups(settings) == 2


def find_last_backup(home: Path) -> BackupRecord:
    last = BackupCatalog(home).load().last_backup
    assert last is not None
    return last


@pytest.mark.parametrize(
    ("is_encrypted", "content"),
    [(False, b""), (False, b"\x1f\x8b nothing that can be unpacked"), (True, b"age")],
)
async def test_check_says_that_the_last_backup_is_damaged(
    home: Path, content: bytes, *, is_encrypted: bool
) -> None:
    good(home, "sessions")
    key = str(pyrage.x25519.Identity.generate().to_public())
    good(home, "backup", *(("--encrypt", key) if is_encrypted else ()))
    settings = Settings.load({"MNEME_HOME": str(home)})
    assert (await check_backups(settings)).state == "right"
    last = find_last_backup(home)
    last.path.write_bytes(content)
    result = await check_backups(settings)
    assert (result.state, result.key) == ("wrong", "backup_damaged")
    assert result.text.startswith(f"The last one is {last.path} of ")
    assert result.text.endswith("It's damaged, so it can't be restored.")
    assert (result.advice, result.command) == ("Make one now: mneme backup.", "mneme backup")


async def test_check_says_that_the_folder_of_backups_is_gone(home: Path) -> None:
    good(home, "sessions")
    good(home, "backup")
    settings = Settings.load({"MNEME_HOME": str(home)})
    shutil.rmtree(backup_folder(settings))
    result = await check_backups(settings)
    assert (result.state, result.key) == ("wrong", "backup_out_of_reach")
    assert result.text.endswith("Its folder isn't there now.")
    assert result.advice == "Connect its disk, or make a new backup: mneme backup."
    assert result.command == "mneme backup"


async def test_backup_on_a_disk_that_a_command_named_may_be_taken_away(home: Path) -> None:
    good(home, "sessions")
    good(home, "backup", str(home.parent / "stick"))
    shutil.rmtree(home.parent / "stick")
    result = await check_backups(Settings.load({"MNEME_HOME": str(home)}))
    assert result.state == "right"
    assert result.text.endswith("Its folder isn't there now.")


async def test_check_offers_the_last_backup_that_is_undamaged_for_a_damaged_state_db(
    home: Path,
) -> None:
    good(home, "remember", "Ana lives in Lisbon")
    good(home, "backup")
    older = find_last_backup(home)
    good(home, "backup", str(home.parent / "disk"))
    newer = find_last_backup(home)
    newer.path.write_bytes(newer.path.read_bytes()[:-100])
    (home / "state.db").write_bytes(b"\xff" * 30_000)
    results = await run_checks(Settings.load({"MNEME_HOME": str(home)}))
    (result,) = [result for result in results if result.subject == "state.db"]
    assert result.command == f"mneme restore {older.path}"
    assert result.command in result.advice
    older.path.write_bytes(b"")
    results = await run_checks(Settings.load({"MNEME_HOME": str(home)}))
    (result,) = [result for result in results if result.subject == "state.db"]
    assert result.command == "mneme check --repair"


async def test_backup_that_was_replaced_right_before_a_kill_counts_as_undamaged(home: Path) -> None:
    """A process that rewrote the backup without forgotten texts could no longer list its digest."""
    good(home, "sessions")
    good(home, "backup")
    BackupCatalog(home).add(replace(find_last_backup(home), digest="0" * 64))
    assert (await check_backups(Settings.load({"MNEME_HOME": str(home)}))).state == "right"


async def test_backup_that_a_later_version_listed_with_more_fields_is_read(home: Path) -> None:
    good(home, "sessions")
    good(home, "backup")
    catalog = home / "backups.json"
    content = json.loads(catalog.read_text())
    content["records"][0]["colour"] = "green"
    del content["records"][0]["digest"]
    catalog.write_text(json.dumps(content))
    assert (await check_backups(Settings.load({"MNEME_HOME": str(home)}))).state == "right"


@pytest.mark.parametrize("damage", ["cut line", "garbage", "deleted"])
async def test_check_names_backups_that_would_bring_back_what_was_forgotten(
    home: Path, damage: str
) -> None:
    settings = Settings.load({"MNEME_HOME": str(home)})
    good(home, "remember", "Ana lives in Lisbon")
    good(home, "backup")
    old = find_last_backup(home).path
    good(home, "forget", "Lisbon", "--yes")
    assert (await check_backups(settings)).state == "right"
    journal = home.with_name("home.erasures")
    text = journal.read_text()
    journal.write_text({"cut line": text[:-40], "garbage": "garbage\n", "deleted": ""}[damage])
    result = await check_backups(settings)
    assert (result.state, result.key, result.where) == ("wrong", "backup_unsafe", str(journal))
    assert f"({journal}) is damaged or incomplete" in result.text
    assert result.text.endswith(f": {old.name}.")
    assert result.command == f"mneme backup && rm {old}"
    assert result.command in result.advice
    # The command mends it.
    good(home, "backup")
    old.unlink()
    assert (await check_backups(settings)).state == "right"


@pytest.mark.parametrize("journal", ["garbage\n", ""])
def test_backup_that_cannot_be_rewritten_without_the_record_is_named_as_unchanged(
    home: Path, journal: str
) -> None:
    good(home, "remember", "Ana lives in Lisbon")
    good(home, "backup")
    old = find_last_backup(home)
    content = old.path.read_bytes()
    good(home, "forget", "Lisbon", "--yes")
    home.with_name("home.erasures").write_text(journal)
    said = good(home, "backup")
    assert f"What you have since asked me to forget is still in {old.path.name}" in said
    assert "was removed from" not in said
    assert old.path.read_bytes() == content


async def test_reason_of_a_failed_backup_is_told_in_the_language_of_its_reader(home: Path) -> None:
    settings = load(home, f'folder = "{home.parent}/file"')
    (home.parent / "file").write_text("in the way")
    good(home, "sessions")
    assert mneme(home, "backup", LANG="de_DE.UTF-8").returncode == 1
    text = (await check_backups(settings)).text
    assert f"The folder {home.parent}/file for backups can't be created (File exists)" in text
    text = (await check_backups(settings, "fr")).text
    assert (
        f"Le dossier {home.parent}/file des sauvegardes ne peut pas être créé (existe déjà" in text
    )
    failure = await run_backup(settings)
    assert failure is not None
    assert "existiert bereits" not in ENGLISH.word(failure)
    assert load_texts("de").word(failure).startswith(f"Der Ordner {home.parent}/file")


async def test_check_warns_if_the_last_backup_is_older_than_set(home: Path) -> None:
    settings = load(home)
    good(home, "sessions")
    good(home, "backup")
    (result,) = [one for one in await run_checks(settings) if one.subject == "backups"]
    assert result.state == "right"
    catalog = BackupCatalog(home)
    (record,) = catalog.load().records
    old = BackupRecord(
        path=record.path, made_at=record.made_at - timedelta(days=2), epoch=record.epoch
    )
    catalog.add(old)
    (result,) = [one for one in await run_checks(settings) if one.subject == "backups"]
    assert result.state == "wrong"
    assert "older than backup.every" in result.text
    record.path.unlink()
    (result,) = [one for one in await run_checks(settings) if one.subject == "backups"]
    assert "There is no backup" in result.text


async def test_receipt_names_files_only_to_the_owner(home: Path) -> None:
    settings = load(home)
    good(home, "sessions")
    good(home, "backup")
    now = WallClock().now()
    (sentence,) = describe_remaining_copies(ENGLISH, settings, 2, now=now, is_owner=True)
    assert "mneme-" in sentence
    assert "the next backup removes it" in sentence
    (sentence,) = describe_remaining_copies(ENGLISH, settings, 2, now=now, is_owner=False)
    assert "mneme-" not in sentence
    assert describe_remaining_copies(ENGLISH, settings, 0, now=now, is_owner=True) == []

    store = StoreOptions(url="postgresql://localhost/mneme", password="")
    moved = settings.model_copy(update={"store": store})
    sentence = describe_remaining_copies(ENGLISH, moved, 2, now=now, is_owner=True)[-1]
    assert "delete them if you no longer need them" in sentence


async def test_expired_encrypted_backup_is_deleted_when_the_next_backup_is_made(home: Path) -> None:
    # A passphrase would take a second of computing each time.
    key = pyrage.x25519.Identity.generate().to_public()
    settings = load(home, f'keep_days = 30\nencrypt_to = "{key}"')
    good(home, "sessions")
    good(home, "backup")
    catalog = BackupCatalog(home)
    (record,) = catalog.load().records
    assert record.is_encrypted
    catalog.add(
        BackupRecord(
            path=record.path,
            made_at=record.made_at - timedelta(days=31),
            epoch=0,
            is_encrypted=True,
        )
    )
    good(home, "backup")
    assert not record.path.exists()
    assert count_backups(settings) == 1


def add_record(home: Path, name: str, made_at: datetime) -> BackupRecord:
    """Add an encrypted backup to the list, in a folder of its own."""
    path = home.parent / name / "mneme-old.tar.gz.age"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"age")
    record = BackupRecord(path=path, made_at=made_at, copied_at=made_at, epoch=0, is_encrypted=True)
    BackupCatalog(home).add(record)
    return record


@pytest.mark.parametrize("work", ["gateway", "check", "receipt", "backup"])
async def test_expired_encrypted_backups_are_deleted_in_every_folder(home: Path, work: str) -> None:
    settings = load(home, "keep_days = 30")
    good(home, "sessions")
    now = WallClock().now()
    expired = add_record(home, "first", now - timedelta(days=31))
    unplugged = add_record(home, "unplugged", now - timedelta(days=31))
    kept = add_record(home, "second", now - timedelta(days=29))
    expired.path.with_name("other").touch()
    unplugged.path.unlink()
    unplugged.path.parent.rmdir()

    if work == "gateway":
        async with Services.open(settings) as services:
            clock = SteadyClock(now)
            await BackupScheduler(settings, clock, services.owner_notices).tend()
    elif work == "check":
        await run_checks(settings)
    elif work == "receipt":
        describe_remaining_copies(ENGLISH, settings, 2, now=now, is_owner=True)
    else:
        good(home, "backup")

    assert not expired.path.exists()
    assert kept.path.exists()
    # The list keeps backups on disks that aren't connected, and deletes them later.
    assert unplugged in BackupCatalog(home).load().records


async def test_last_backup_outlives_its_day_and_the_receipt_says_so(home: Path) -> None:
    settings = load(home, "keep_days = 30")
    now = WallClock().now()
    record = add_record(home, "first", now - timedelta(days=31))
    (sentence,) = describe_remaining_copies(ENGLISH, settings, 2, now=now, is_owner=True)
    assert "It's deleted when there's a newer backup" in sentence
    assert record.path.exists()


async def test_receipt_omits_backups_from_before_the_text_was_said(home: Path) -> None:
    settings = load(home)
    now = WallClock().now()
    add_record(home, "first", now - timedelta(days=2))
    for first_said_at, count in ((now - timedelta(days=1), 0), (now - timedelta(days=3), 1)):
        sentences = describe_remaining_copies(
            ENGLISH, settings, 2, now=now, first_said_at=first_said_at, is_owner=True
        )
        assert len(sentences) == count


@pytest.mark.parametrize("fault", ["damaged", "missing"])
async def test_check_of_a_broken_state_offers_the_last_good_backup(home: Path, fault: str) -> None:
    settings = load(home)
    good(home, "sessions")
    good(home, "backup")
    (record,) = BackupCatalog(home).load().records
    if fault == "missing":
        (home / "state.db").unlink()
    else:
        (home / "state.db").write_bytes(b"no database" * 1000)
    (result,) = [one for one in await run_checks(settings) if one.subject == "state.db"]
    assert result.state == "wrong"
    assert f"mneme restore {record.path}" in result.advice
    good(home, "restore", str(record.path), "--yes")
    (result,) = [one for one in await run_checks(settings) if one.subject == "state.db"]
    assert result.state == "right"
