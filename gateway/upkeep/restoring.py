"""Restores a backup: unpacks it next to the home, checks it, and swaps it with the home.

The previous home is kept next to the new one. Texts that were forgotten after the backup are then
erased again. The journal next to the home lists these erasures.

A file describes each swap until it's complete. If the process is killed meanwhile, the next command
completes the swap, so that no file of the previous home is lost.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from config.files import replace_file
from config.operating_system import exchange_paths, sync_file
from config.variables import locate_swap_file
from core.errors import HistoryError, Refused, StoreError
from core.memory.record import RECORD_FILE, continue_record
from core.store.erasure.journal import Journal, next_key
from core.store.sqlite.copying import (
    DatabaseInfo,
    ErasuresSince,
    load_erasures,
    read_database_info,
    verify_copy,
)
from core.transfer.backup import (
    HOME_FOLDER,
    JOURNAL_ENTRY,
    SECRETS_FILE,
    STATE_FILE,
    Manifest,
    is_left_out,
    unpack_backup,
)
from gateway.sharing.home_lock import LOCK_FILE
from gateway.texts.catalog import SHELL as texts
from gateway.upkeep.catalog import BackupCatalog, BackupRecord

# Files of the old home that aren't moved to the new home, because they belong to the old state.db.
_STATE_STARTS = (STATE_FILE, "database-state.created")
_AGE_START = b"age-encryption.org/v1"
_UNPACKED_FOLDER = "unpacked"


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapPlan:
    """The swap of two homes, as a file describes it until the swap is complete."""

    # The path at which the previous home will be kept.
    old_home: Path
    at: datetime
    # The erasure epoch of the previous home, or 0 if its state.db can't be read.
    epoch: int
    # The inode of the previous home, which shows whether the folders have been exchanged.
    inode: int

    def save(self, path: Path) -> None:
        """Write the plan to a file, and wait until it's on the disk."""
        values = {
            "old_home": str(self.old_home),
            "at": self.at.isoformat(),
            "epoch": self.epoch,
            "inode": self.inode,
        }
        replace_file(path, json.dumps(values).encode())

    @classmethod
    def load(cls, path: Path) -> SwapPlan | None:
        """Read a plan. Returns None if there's no plan. Raises OSError if it can't be read."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return cls(
            old_home=Path(values["old_home"]),
            at=datetime.fromisoformat(values["at"]),
            epoch=values["epoch"],
            inode=values["inode"],
        )


# An epoch before all erasures.
ALL_EPOCHS = -1

ErasuresAfter = Literal["none", "listed", "lost", "unknown"]
"""The erasures that were made after a backup.

They are "none" if the previous home shows that there were none, "listed" if the journal can repeat
them, "lost" if it can't repeat all of them, and "unknown" if neither the journal nor the previous
home belongs to the backup.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A backup that has become the home."""

    manifest: Manifest
    # The path of the old home. None if there was no home.
    old_home: Path | None
    erasures: ErasuresAfter
    # Whether the erasures are unknown because the journal of the backup's home is missing. They are
    # also unknown, but harmless, if the backup has more of them than the previous home.
    is_journal_missing: bool


class RestoreJob:
    """Restores one backup into one home, in two steps: `prepare` and `swap`.

    As a context manager, it locks the home and finally removes what `prepare` has unpacked.
    """

    def __init__(self, file: Path, home: Path) -> None:
        self._file = file
        self._home = home
        self._plan_file = locate_swap_file(home)
        self._scratch = self._plan_file.parent
        self._unpacked = self._scratch / _UNPACKED_FOLDER
        self._journal = home.with_name(f"{home.name}.erasures")
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> RestoreJob:
        """Complete an earlier swap that was killed, and lock the home.

        Raises Refused if Mneme is running.
        """
        try:
            complete_swap(self._home)
            self._stack.enter_context(FileLock(self._home / LOCK_FILE).acquire(timeout=0))
        except Timeout as error:
            raise Refused(texts.RESTORE_RUNNING.format(home=self._home)) from error
        return self

    def __exit__(self, *details: object) -> None:
        self._stack.close()
        # The folder of an incomplete swap may contain the only copy of the previous home.
        if not self._plan_file.exists():
            shutil.rmtree(self._scratch, ignore_errors=True)

    def prepare(self, load_secret: Callable[[], str]) -> Manifest:
        """Unpack and check the backup without changing the home.

        `load_secret` returns the key or passphrase of an encrypted backup. Raises HistoryError,
        StoreError or OSError if the backup can't be used.
        """
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir(mode=0o700)
        archive = self._file
        with archive.open("rb") as file:
            is_encrypted = file.read(len(_AGE_START)) == _AGE_START
        if is_encrypted:
            # Imported here because few people encrypt their backups.
            from core.transfer.encryption import decrypt_file

            archive = self._scratch / self._file.name
            decrypt_file(self._file, archive, load_secret())
        manifest = unpack_backup(archive, self._unpacked)
        try:
            verify_copy(self._unpacked / HOME_FOLDER / STATE_FILE)
        except StoreError as error:
            raise HistoryError("backup_not_restorable", file=self._file, error=error) from error
        return manifest

    def swap(self, manifest: Manifest, now: datetime) -> Restored:
        """Replace the home with the unpacked one, and keep the previous home next to it."""
        current = self._load_current_state()
        self._merge_journals()
        new = self._unpacked / HOME_FOLDER
        backup = read_database_info(new / STATE_FILE)
        erasures = self._find_erasures(backup, current)
        plan = SwapPlan(
            old_home=_name_old_home(self._home, now),
            at=now,
            epoch=current.epoch if current else 0,
            inode=self._home.lstat().st_ino,
        )
        # The new home is locked, too, so that no other command uses it before the swap is complete.
        self._stack.enter_context(FileLock(new / LOCK_FILE).acquire(timeout=0))
        plan.save(self._plan_file)
        try:
            _swap_folders(new, self._home, plan.old_home)
        except OSError as error:
            if self._home.lstat().st_ino == plan.inode:
                self._plan_file.unlink()
            reason = texts.word_stored(error.strerror or str(error))
            raise Refused(texts.RESTORE_MOUNT.format(home=self._home, reason=reason)) from error
        kept_home = _complete_plan(plan, self._home)
        self._plan_file.unlink()
        return Restored(
            manifest=manifest,
            old_home=kept_home,
            erasures=erasures,
            is_journal_missing=erasures == "unknown" and not _is_ahead(backup, current),
        )

    def _find_erasures(self, backup: DatabaseInfo, current: DatabaseInfo | None) -> ErasuresAfter:
        """Return whether there were erasures after the backup, and whether they can be repeated.

        The keys show whether the previous home has continued the state.db of the backup. Another
        home, for example on a new machine, doesn't know the erasures, and neither does its journal.
        """
        journal = Journal.parse(self._read_journal())
        is_listed = journal.has_erasures_after(backup.epoch, backup.key)
        if current is not None and _continues(backup, current):
            if current.unknown_erasures not in ("", backup.unknown_erasures):
                return "unknown"
            if current.epoch == backup.epoch:
                return "none"
            try:
                since = load_erasures(self._home / STATE_FILE, backup.epoch)
            except StoreError:
                return "lost"
            if journal.damaged_lines or _lacks_erasures(journal, since):
                return "lost"
            if is_listed:
                return "listed"
            advances = current.epoch - backup.epoch - since.detachments
            return "lost" if advances and not since.tokens else "none"
        if is_listed:
            return "lost" if journal.damaged_lines else "listed"
        if _is_ahead(backup, current) and self._has_erasures_of_home():
            return "none"
        return "unknown"

    def _has_erasures_of_home(self) -> bool:
        """Return whether the unpacked backup and the previous home have the same erasures.

        This is so if the backup was rewritten after the last one.
        """
        try:
            rewritten = load_erasures(self._unpacked / HOME_FOLDER / STATE_FILE, ALL_EPOCHS)
            current = load_erasures(self._home / STATE_FILE, ALL_EPOCHS)
        except StoreError:
            return False
        return bool(current.tokens) and rewritten.tokens.keys() == current.tokens.keys()

    def _read_journal(self) -> str:
        """Return the journal, with replacement characters for damaged bytes."""
        if not self._journal.is_file():
            return ""
        return self._journal.read_text(encoding="utf-8", errors="replace")

    def _load_current_state(self) -> DatabaseInfo | None:
        """Return the epoch and the key of the home, or None if it has no readable state.db."""
        path = self._home / STATE_FILE
        try:
            return read_database_info(path) if path.exists() else None
        except StoreError:
            return None

    def _merge_journals(self) -> None:
        """Add the lines of the backup's journal to the journal next to the home."""
        backed_up = self._unpacked / JOURNAL_ENTRY
        if not backed_up.exists():
            return
        known_lines = set(self._read_journal().splitlines())
        lines = backed_up.read_text(encoding="utf-8", errors="replace").splitlines()
        missing = [line for line in lines if line and line not in known_lines]
        if not missing:
            return
        self._journal.touch(0o600)
        with self._journal.open("a", encoding="utf-8") as file:
            file.write("".join(f"\n{line}\n" for line in missing))
            file.flush()
            sync_file(file.fileno())


def _name_old_home(home: Path, now: datetime) -> Path:
    """Return a free path for the previous home, even for two restores in one second."""
    path = home.with_name(f"{home.name}.before-restore-{now:%Y%m%d-%H%M%S}")
    number = 1
    while path.exists():
        number += 1
        path = home.with_name(f"{home.name}.before-restore-{now:%Y%m%d-%H%M%S}-{number}")
    return path


def _continues(backup: DatabaseInfo, current: DatabaseInfo) -> bool:
    """Return whether a home has continued the state.db of a backup."""
    advances = current.epoch - backup.epoch
    return current.key != "" and advances >= 0 and next_key(backup.key, advances) == current.key


def _is_ahead(backup: DatabaseInfo, current: DatabaseInfo | None) -> bool:
    """Return whether a backup has more erasures than the home, as after it was rewritten."""
    return current is not None and backup.epoch > current.epoch and _continues(current, backup)


def _lacks_erasures(journal: Journal, since: ErasuresSince) -> bool:
    """Return whether the journal lacks an erasure of the previous home."""
    journaled = {line.token for line in journal.lines}
    return any(
        token not in journaled and not (is_in_group and journaled)
        for token, is_in_group in since.tokens.items()
    )


def list_backups_with_forgotten_texts(home: Path) -> list[BackupRecord]:
    """Return the backups that would bring back what was forgotten after them.

    The record of erasures next to the home is then damaged, or lacks one of these erasures. Backups
    on disks that aren't connected are left out.
    """
    path = home / STATE_FILE
    journal_file = home.with_name(f"{home.name}.erasures")
    try:
        journal = Journal.parse(journal_file.read_text("utf-8", "replace"))
    except OSError:
        journal = Journal((), ())
    try:
        epoch = read_database_info(path).epoch
        older = [
            record
            for record in BackupCatalog(home).load().holding(epoch)
            if record.kind == "backup" and record.state == "there"
        ]
        return [
            record
            for record in older
            if _lacks_erasures(journal, load_erasures(path, record.epoch))
            or journal.find_damaged_days(record.epoch)
        ]
    except StoreError:
        # Another check names the damage of state.db.
        return []


def complete_swap(home: Path) -> Path | None:
    """Complete the swap of a restore that was killed.

    Returns the folder in which the previous home is now, or None if there was nothing to complete.
    Raises Timeout if the restore is still running.
    """
    plan_file = locate_swap_file(home)
    plan = SwapPlan.load(plan_file)
    if plan is None:
        return None
    new = plan_file.parent / _UNPACKED_FOLDER / HOME_FOLDER
    with contextlib.ExitStack() as stack:
        for folder in (new, home):
            if folder.is_dir():
                stack.enter_context(FileLock(folder / LOCK_FILE).acquire(timeout=0))
        if home.is_dir() and home.lstat().st_ino == plan.inode:
            # The process was killed before it exchanged the folders.
            kept_home = None
        else:
            _continue_swap(new, home, plan.old_home)
            kept_home = _complete_plan(plan, home)
        plan_file.unlink()
    shutil.rmtree(plan_file.parent, ignore_errors=True)
    return kept_home


def _swap_folders(new: Path, home: Path, old_home: Path) -> None:
    """Move the folder `home` to `old_home`, and the folder `new` to `home`.

    Most systems exchange two folders in one step. The old home is then briefly at `new`. Other
    systems take two steps. Between them, `home` doesn't exist: the old home is already at
    `old_home`, and the new one is still at `new`. Raises OSError.
    """
    if exchange_paths(new, home):
        try:
            new.rename(old_home)
        except OSError:
            exchange_paths(new, home)
            raise
        return
    home.rename(old_home)
    try:
        new.rename(home)
    except OSError:
        old_home.rename(home)
        raise


def _continue_swap(new: Path, home: Path, old_home: Path) -> None:
    """Move the folders to their places if a killed process has moved only one of them."""
    if not new.exists():
        return
    if not old_home.exists():
        # The folders have been exchanged, so the old home is at `new`.
        new.rename(old_home)
    elif not home.exists() or not _has_content(home):
        shutil.rmtree(home, ignore_errors=True)
        new.rename(home)


def _complete_plan(plan: SwapPlan, home: Path) -> Path | None:
    """Move the files that backups don't contain to the new home, and add the old one to its list.

    Returns the old home, or None if it contained nothing and was deleted.
    """
    _carry_over(plan.old_home, home)
    if not _has_content(plan.old_home):
        shutil.rmtree(plan.old_home, ignore_errors=True)
        return None
    record = BackupRecord(
        path=plan.old_home,
        made_at=plan.at,
        copied_at=plan.at,
        epoch=plan.epoch,
        kind="old_home",
    )
    BackupCatalog(home).add(record)
    return plan.old_home


def _carry_over(old_home: Path, home: Path) -> None:
    """Move files that backups don't contain, such as secrets, from the old home to the new one."""
    for path in sorted(old_home.iterdir()):
        name = f"{path.name}/" if path.is_dir() else path.name
        is_state = path.name.startswith(_STATE_STARTS)
        is_wanted = is_left_out(name) or path.name in (SECRETS_FILE, "engines")
        if is_wanted and not is_state and path.suffix != ".lock":
            target = home / path.name
            if not target.exists():
                path.rename(target)
    _continue_records(old_home, home)


def _continue_records(old_home: Path, home: Path) -> None:
    """Keep the names of the spaces in memory services that were set up after the backup."""
    for old_record in sorted(old_home.glob(f"providers/*/{RECORD_FILE}")):
        record = home / old_record.relative_to(old_home)
        if not record.exists():
            record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            continue_record(old_record, record)


def _has_content(home: Path) -> bool:
    """Return whether a home contains anything but lock files."""
    return any(path.suffix != ".lock" for path in home.rglob("*") if not path.is_dir())
