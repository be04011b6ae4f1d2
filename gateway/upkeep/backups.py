"""Makes and checks backups, deletes old backups, and removes forgotten texts from the others.

A backup is made in a separate process, so that answers don't wait for it. `BackupScheduler` starts
that process when a backup is due.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import structlog
from filelock import FileLock, Timeout

from config.files import sync_path
from config.settings import Settings
from config.variables import child_environment
from core.errors import ConfigError, MnemeError, Refused, Sentence, StoreError
from core.ports import Clock
from core.transfer.backup import (
    HOME_FOLDER,
    STATE_FILE,
    BackupSource,
    Manifest,
    Progress,
    hash_file,
    unpack_backup,
    verify_backup,
    write_backup,
)
from gateway.texts.catalog import SHELL, Texts
from gateway.texts.catalog import SHELL as texts
from gateway.upkeep.catalog import (
    BackupCatalog,
    BackupRecord,
    backup_folder,
    describe_failure,
    is_in_backups,
    is_late,
    parse_failure,
    require_folder,
)
from gateway.upkeep.restoring import list_backups_with_forgotten_texts

if TYPE_CHECKING:
    from core.transfer.encryption import EncryptionKey
    from gateway.owner_notices import OwnerNotices

LOCK_NAME = ".mneme-backup.lock"
_SCRATCH_PATTERN = ".mneme-*.partial"
# The delay before the next attempt after a failure.
RETRY_AFTER = timedelta(hours=1)
# How often the scheduler looks whether a backup is due.
LOOK_INTERVAL = timedelta(minutes=1)
# The `nice` value of a scheduled backup, so that answers have priority.
NICENESS = 10
# The process that is started for a scheduled backup finds Mneme in this folder.
_ROOT = Path(__file__).parent.parent.parent
_CHILD_PROGRAM = (
    "import sys; sys.path.insert(0, {root!r}); from gateway.cli.main import main; main()"
)
_log = structlog.get_logger("backups")

# A function that opens a home once, which repeats the erasures of the journal next to it. It
# returns the days of the erasures that can't be repeated.
RepeatErasures = Callable[[Settings], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupOrder:
    """The options of a backup: its folder, its key, and its content."""

    folder: Path
    key: EncryptionKey | None = None
    has_secrets: bool = False
    prefix: str = "mneme"
    # Whether the folder and the key are those of the settings. The failures of other backups aren't
    # recorded, because a typing mistake in a command says nothing about the settings.
    is_of_settings: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupResult:
    """A backup that was made and checked, and the changes to older backups."""

    record: BackupRecord
    manifest: Manifest
    bytes: int
    deleted: Sequence[Path] = ()
    # Older backups from which erased texts were removed.
    rewritten: Sequence[Path] = ()
    # Older backups that still contain erased texts, because they couldn't be rewritten.
    unchanged: Sequence[Path] = ()


class BackupMaker:
    """Makes backups of one home."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        repeat_erasures: RepeatErasures | None = None,
        on_progress: Progress = lambda step, share: None,
    ) -> None:
        """Create a maker that also removes erased texts from older backups.

        `repeat_erasures` does this, and None skips it.
        """
        self._settings = settings
        self._clock = clock
        self._repeat_erasures = repeat_erasures
        self._on_progress = on_progress
        self._catalog = BackupCatalog(settings.home)
        home = settings.home
        self._journal = home.with_name(f"{home.name}.erasures")

    async def make(self, order: BackupOrder) -> BackupResult:
        """Make a backup. If one of the settings fails, record the failure for `mneme check`.

        Raises MnemeError or OSError if no backup was made. Older backups then remain unchanged.
        """
        try:
            return await self._make_locked(order)
        except Refused:
            raise
        except (MnemeError, OSError) as error:
            # Recording the failure may also fail, because the home may be full or read-only.
            if order.is_of_settings:
                with contextlib.suppress(OSError):
                    self._catalog.note_failure(self._clock.now(), describe_failure(error))
            raise

    async def _make_locked(self, order: BackupOrder) -> BackupResult:
        """Make a backup while no other process makes one in the same folder."""
        if self._settings.store.url:
            raise StoreError("backup_in_postgres", home=self._settings.home)
        state_file = self._settings.home / STATE_FILE
        if not state_file.exists():
            raise StoreError("backup_no_state", path=state_file)
        if is_in_backups(self._settings.home, order.folder):
            raise ConfigError("backup_inside_home", folder=order.folder)
        require_folder(order.folder, is_of_settings=order.is_of_settings)
        try:
            with FileLock(order.folder / LOCK_NAME).acquire(timeout=0):
                for leftover in order.folder.glob(_SCRATCH_PATTERN):
                    # A process that was killed has left this folder.
                    shutil.rmtree(leftover, ignore_errors=True)
                scratch = order.folder / f".mneme-{os.getpid()}.partial"
                scratch.mkdir(mode=0o700)
                try:
                    return await self._make(order, scratch)
                finally:
                    shutil.rmtree(scratch, ignore_errors=True)
        except Timeout as error:
            raise Refused("backup_busy", folder=order.folder) from error

    async def _make(self, order: BackupOrder, scratch: Path) -> BackupResult:
        """Write the backup, publish it, and update or delete older ones."""
        now = self._clock.now()
        local = now.astimezone(ZoneInfo(self._settings.general.zone))
        manifest, archive = await asyncio.to_thread(self._write, order, scratch, now)
        name = f"{order.prefix}-{local:%Y%m%d-%H%M%S}"
        path = _find_free_path(archive, order.folder, name)
        record = BackupRecord(
            path=path,
            made_at=now,
            copied_at=self._clock.now(),
            epoch=manifest.epoch,
            is_encrypted=order.key is not None,
            digest=await asyncio.to_thread(hash_file, archive),
        )
        # The list names the file before the file exists. If the process is killed in between, every
        # file is still listed, so it will be deleted, and receipts of /forget mention it.
        self._catalog.add(record)
        await asyncio.to_thread(_publish, archive, path)
        size = path.stat().st_size
        deleted = await asyncio.to_thread(self._delete_old, record)
        rewritten, unchanged = await self._rewrite_old(record, scratch)
        return BackupResult(
            record=record,
            manifest=manifest,
            bytes=size,
            deleted=deleted,
            rewritten=rewritten,
            unchanged=unchanged,
        )

    def _write(self, order: BackupOrder, scratch: Path, now: datetime) -> tuple[Manifest, Path]:
        """Write and check an archive in `scratch`, and encrypt it if the order says so."""
        archive = scratch / "archive"
        source = _describe_source(self._settings, has_secrets=order.has_secrets)
        manifest = write_backup(source, archive, scratch, now, self._on_progress)
        self._on_progress("check", 0.0)
        verify_backup(archive, scratch)
        if order.key is None:
            return manifest, archive
        # Imported here because few people encrypt their backups.
        from core.transfer.encryption import encrypt_file

        self._on_progress("encryption", 0.0)
        encrypted = scratch / "encrypted"
        decrypted = scratch / "check"
        encrypt_file(archive, encrypted, order.key, decrypted)
        if hash_file(decrypted) != hash_file(archive):
            raise StoreError("backup_not_decrypted")
        return manifest, encrypted

    def _delete_old(self, new: BackupRecord) -> list[Path]:
        """Delete expired backups, and those that are too many in the folder of a new backup."""
        options = self._settings.backup
        plain = [
            record
            for record in self._catalog.load().records
            if record.kind == "backup"
            and not record.is_encrypted
            and record.path != new.path
            and record.path.parent == new.path.parent
        ]
        kept_plain = options.keep - (not new.is_encrypted)
        deleted = _delete_files(plain[: max(len(plain) - kept_plain, 0)])
        return deleted + delete_expired(self._settings, new.made_at)

    async def _rewrite_old(self, new: BackupRecord, scratch: Path) -> tuple[list[Path], list[Path]]:
        """Remove texts from older unencrypted backups if they were forgotten after the backup.

        Returns the backups that were rewritten, and those that couldn't be, because their erasures
        aren't in the journal or because of an error.
        """
        rewritten: list[Path] = []
        unchanged: list[Path] = []
        if self._repeat_erasures is None:
            return rewritten, unchanged
        unsafe = await asyncio.to_thread(list_backups_with_forgotten_texts, self._settings.home)
        for record in self._catalog.load().holding(new.epoch):
            if record.is_encrypted or record.kind != "backup" or record.state != "there":
                continue
            if record in unsafe:
                unchanged.append(record.path)
                continue
            self._on_progress(record.path.name, 0.0)
            folder = scratch / "rewritten"
            try:
                is_clean = await self._rewrite(record, folder, self._repeat_erasures)
            except (MnemeError, OSError) as error:
                _log.warning("a backup can't be rewritten", name=record.path.name, error=str(error))
                is_clean = False
            finally:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            (rewritten if is_clean else unchanged).append(record.path)
        return rewritten, unchanged

    async def _rewrite(
        self, record: BackupRecord, folder: Path, repeat_erasures: RepeatErasures
    ) -> bool:
        """Unpack a backup, repeat the erasures in it, and replace it with a new archive.

        Returns False and changes nothing if an erasure can't be repeated.
        """
        old = await asyncio.to_thread(unpack_backup, record.path, folder)
        home = folder / HOME_FOLDER
        if self._journal.exists():
            shutil.copyfile(self._journal, home.with_name(f"{home.name}.erasures"))
        if await repeat_erasures(self._settings.model_copy(update={"home": home})):
            return False
        source = BackupSource(
            home=home, journal=self._journal, program=old.program, has_secrets=old.has_secrets
        )
        archive = folder / "archive"

        def write_again() -> BackupRecord:
            manifest = write_backup(source, archive, folder, old.made_at, self._on_progress)
            verify_backup(archive, folder)
            sync_path(archive)
            digest = hash_file(archive)
            archive.replace(record.path)
            return replace(record, epoch=manifest.epoch, digest=digest)

        self._catalog.add(await asyncio.to_thread(write_again))
        return True


def delete_expired(settings: Settings, now: datetime) -> list[Path]:
    """Delete the encrypted backups that have expired, in every folder that can be reached.

    Returns their paths. The last backup is kept until there's a newer one.
    """
    return _delete_files(BackupCatalog(settings.home).load().expired(settings, now))


def _delete_files(records: Sequence[BackupRecord]) -> list[Path]:
    """Delete backups, except on disks that aren't connected. Returns the deleted ones."""
    deleted = []
    for record in records:
        if record.state != "there":
            continue
        try:
            record.path.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("an old backup can't be deleted", reason=error.strerror)
            continue
        deleted.append(record.path)
    return deleted


def write_checked_archive(settings: Settings, scratch: Path, clock: Clock) -> Path:
    """Write a home into an archive in the folder `scratch`, check it, and return its path.

    The archive isn't added to the list of backups.
    """
    archive = scratch / "archive"
    source = _describe_source(settings)
    write_backup(source, archive, scratch, clock.now(), lambda step, share: None)
    verify_backup(archive, scratch)
    return archive


def _describe_source(settings: Settings, *, has_secrets: bool = False) -> BackupSource:
    home = settings.home
    return BackupSource(
        home=home,
        journal=home.with_name(f"{home.name}.erasures"),
        program=version("mneme-gateway"),
        has_secrets=has_secrets,
        is_engine_running=_is_engine_running(home),
    )


async def back_up_before_migration(settings: Settings, clock: Clock) -> None:
    """Make a backup of a home whose state.db has an older schema.

    Raises StoreError if the backup fails. state.db isn't changed.
    """
    path = settings.home / STATE_FILE
    try:
        order = BackupOrder(
            folder=backup_folder(settings),
            key=load_key(settings),
            prefix="mneme-before-upgrade",
        )
        result = await BackupMaker(settings, clock).make(order)
    except (MnemeError, OSError) as error:
        reason = texts.word(describe_failure(error))
        raise StoreError(texts.UPGRADE_NO_BACKUP.format(path=path, reason=reason)) from error
    _log.info("a backup was made before the upgrade of state.db", path=str(result.record.path))


def load_key(settings: Settings) -> EncryptionKey | None:
    """Return the key that the settings name, or None if backups aren't encrypted.

    Raises ConfigError if the key is invalid or the passphrase is missing.
    """
    options = settings.backup
    if not options.encrypt_to and not options.passphrase:
        return None
    # Imported here because few people encrypt their backups.
    from core.transfer.encryption import EncryptionKey, check_recipient

    if options.encrypt_to:
        return EncryptionKey(recipients=(check_recipient(options.encrypt_to),))
    secret = settings.variables.get(options.passphrase)
    if secret is None:
        raise ConfigError("backup_no_passphrase", variable=options.passphrase)
    return EncryptionKey(passphrase=secret.get_secret_value())


class BackupScheduler:
    """Starts a backup when one is due, and notifies the owner if it fails.

    It also deletes encrypted backups that have expired, even if no backups are scheduled.
    """

    def __init__(self, settings: Settings, clock: Clock, notices: OwnerNotices) -> None:
        self._settings = settings
        self._clock = clock
        self._notices = notices
        self._catalog = BackupCatalog(settings.home)
        self._looks_at: datetime | None = None

    async def tend(self) -> bool:
        """Make a backup if one is due.

        Returns False, because a second backup is never due at once.
        """
        now = self._clock.now()
        if self._looks_at is not None and now < self._looks_at:
            return False
        self._looks_at = now + LOOK_INTERVAL
        await asyncio.to_thread(delete_expired, self._settings, now)
        if not await asyncio.to_thread(self._is_due, now):
            return False
        failure = await run_backup(self._settings)
        if failure is not None:
            _log.error("the backup failed", reason=str(failure))
            self._looks_at = now + RETRY_AFTER
            folder = backup_folder(self._settings)
            texts = await self._notices.load_texts()
            text = texts.BACKUP_FAILED.format(reason=texts.word(failure), folder=folder)
            await self._notices.notify(f"backup:{now.date()}", text)
        return False

    def _is_due(self, now: datetime) -> bool:
        """Return whether enough time has passed since the last backup and the last failure.

        Times that are far in the future are ignored, because the clock was wrong then.
        """
        every = self._settings.backup.every
        state = self._catalog.load()
        if not every:
            return False
        if state.failed_at is not None and abs(now - state.failed_at) < RETRY_AFTER:
            return False
        last = state.find_last_backup(now + every)
        return last is None or now - last.made_at >= every


async def run_backup(settings: Settings) -> Sentence | None:
    """Run `mneme backup` in another process. Returns the reason if it failed, otherwise None."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _CHILD_PROGRAM.format(root=str(_ROOT)),
        "backup",
        "--scheduled",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=child_environment(settings.home),
    )
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 0:
        return None
    with contextlib.suppress(ValueError, LookupError, TypeError):
        failure = parse_failure(json.loads(output))
        if failure is not None:
            return failure
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    if lines:
        return Sentence(lines[-1])
    return Sentence("backup_ended", {"code": str(process.returncode)})


def describe_backups(settings: Settings, now: datetime, texts: Texts = SHELL) -> tuple[str, str]:
    """Return a sentence about the last backup, and its problem or "".

    The content of the backup isn't read (see `is_damaged`).
    """
    state = BackupCatalog(settings.home).load()
    last = state.last_backup
    zone = ZoneInfo(settings.general.zone)
    sentence = texts.BACKUP_NONE
    if last is not None:
        moment = texts.format_moment(last.made_at, zone)
        sentence = texts.BACKUP_LAST.format(path=last.path, moment=moment)
    if state.failed_at is not None and (last is None or state.failed_at > last.made_at):
        moment = texts.format_moment(state.failed_at, zone)
        failure = texts.word(state.failure).rstrip(".。") if state.failure else ""
        return sentence, texts.BACKUP_FAILED_AT.format(moment=moment, reason=failure)
    if is_late(settings, state, now):
        return sentence, texts.BACKUP_LATE if last is not None else texts.BACKUP_NEVER
    if last is None or last.state != "out_of_reach":
        return sentence, ""
    if last.path.parent == backup_folder(settings):
        return sentence, texts.BACKUP_UNREACHABLE
    # A person may have taken the disk away that they named in a command.
    return f"{sentence} {texts.BACKUP_UNREACHABLE}", ""


def is_damaged(backup: BackupRecord) -> bool:
    """Return whether the file of a backup has changed since it was checked. Reads the whole file.

    An unencrypted backup with other bytes is read like a restore reads it: a process that was
    killed while it removed forgotten texts may have replaced the file, but not the digest.
    """
    try:
        if backup.digest in (None, hash_file(backup.path)):
            return backup.path.stat().st_size == 0
        if backup.is_encrypted:
            return True
        with TemporaryDirectory() as scratch:
            verify_backup(backup.path, Path(scratch))
    except (MnemeError, OSError):
        return True
    return False


def find_restorable(settings: Settings) -> BackupRecord | None:
    """Return the last backup that isn't damaged, or None if there's none.

    Backups on a disk that isn't connected can't be read, so they come last.
    """
    records = BackupCatalog(settings.home).load().records
    backups = [record for record in records if record.kind == "backup"][::-1]
    for backup in backups:
        if backup.state == "there" and not is_damaged(backup):
            return backup
    for backup in backups:
        if backup.state == "out_of_reach":
            return backup
    return None


def describe_restore(
    settings: Settings, backup: BackupRecord | None, texts: Texts = SHELL, *, is_lost: bool = False
) -> str:
    """Return advice for a damaged or lost state.db, which names the last valid `backup`.

    From a lost state.db, nothing can be repaired.
    """
    if backup is None:
        # The error of a lost state.db says what to do without a backup.
        return "" if is_lost else texts.RESTORE
    moment = texts.format_moment(backup.made_at, ZoneInfo(settings.general.zone))
    advice = texts.RESTORE_LOST if is_lost else texts.RESTORE_LAST
    return advice.format(path=shlex.quote(str(backup.path)), moment=moment)


def find_restore_command(backup: BackupRecord | None, *, is_lost: bool = False) -> str:
    """Return the command that repairs or replaces a damaged or lost state.db.

    The command restores the last valid `backup`, if there is one. Without a backup, it's "" for a
    lost state.db, because nothing can be repaired.
    """
    if backup is not None:
        return shlex.join(["mneme", "restore", str(backup.path)])
    return "" if is_lost else "mneme check --repair"


def describe_remaining_copies(
    texts: Texts,
    settings: Settings,
    epoch: int,
    *,
    now: datetime,
    first_said_at: datetime | None = None,
    is_owner: bool,
) -> list[str]:
    """Return sentences about backups that may still contain forgotten texts, for a receipt.

    Backups from before `first_said_at` can't contain them. Expired backups are deleted first. Only
    the owner's sentences name files.
    """
    sentences = [texts.COPIES_ON_SERVER] if settings.store.url else []
    delete_expired(settings, now)
    state = BackupCatalog(settings.home).load()
    records = [record for record in state.holding(epoch) if record.may_contain(first_said_at)]
    if not records:
        return sentences
    if not is_owner:
        return [*sentences, texts.COPIES_IN_BACKUPS]
    old_homes = [f"`{record.path}`" for record in records if record.kind == "old_home"]
    plain = [
        f"`{record.path.name}`"
        for record in records
        if record.kind == "backup" and not record.is_encrypted
    ]
    if plain:
        when = _describe_rewriting(texts, settings)
        sentences.append(texts.COPIES_PLAIN.format(names=texts.join_list(plain), when=when))
    for record in records:
        if record.is_encrypted:
            is_last = record == state.last_backup
            sentences.append(_describe_encrypted(texts, settings, record, now, is_last=is_last))
    if old_homes:
        sentences.append(texts.COPIES_OLD_HOME.format(names=texts.join_list(old_homes)))
    return sentences


def _describe_rewriting(texts: Texts, settings: Settings) -> str:
    """Return a clause about when forgotten texts are removed from unencrypted backups."""
    if settings.store.url:
        # Backups were made before the move to the server, and no backup rewrites them.
        return texts.BACKUP_TO_DELETE
    return texts.BACKUP_NEXT if settings.backup.every else texts.BACKUP_BY_HAND


def _describe_encrypted(
    texts: Texts, settings: Settings, record: BackupRecord, now: datetime, *, is_last: bool
) -> str:
    """Return a sentence about an encrypted backup that says when it will be deleted."""
    expires_at = record.made_at + timedelta(days=settings.backup.keep_days)
    day = texts.format_day(max(expires_at, now), ZoneInfo(settings.general.zone))
    sentence = texts.COPIES_ENCRYPTED_LAST if is_last else texts.COPIES_ENCRYPTED
    return sentence.format(name=record.path.name, day=day)


def _find_free_path(archive: Path, folder: Path, name: str) -> Path:
    """Return a path in the backup folder that isn't in use yet."""
    with archive.open("rb") as file:
        is_encrypted = file.read(2) != b"\x1f\x8b"
    suffix = ".tar.gz.age" if is_encrypted else ".tar.gz"
    path = folder / f"{name}{suffix}"
    number = 1
    while path.exists():
        number += 1
        path = folder / f"{name}-{number}{suffix}"
    return path


def _publish(archive: Path, path: Path) -> None:
    """Move a finished archive to its path, and wait until the change is on the disk."""
    sync_path(archive)
    archive.chmod(0o600)
    archive.replace(path)
    sync_path(path.parent)


def _is_engine_running(home: Path) -> bool:
    """Return whether a memory service's PostgreSQL server runs in the home, or was killed there."""
    data = home / "engines" / "hindsight" / "postgres"
    return any(data.rglob("postmaster.pid")) if data.exists() else False
