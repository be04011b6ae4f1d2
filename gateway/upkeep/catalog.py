"""Stores the list of a home's backups, in the file `backups.json` in the home.

The list isn't in state.db, because it's needed when state.db is damaged. It shows which backups
still contain forgotten texts, and whether the last backup is recent enough.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from config.draft import SettingsDraft
from config.files import replace_file
from config.settings import Settings, SettingsError
from core.errors import ConfigError, MnemeError, Sentence, StoreError, to_sentence
from core.transfer.backup import CATALOG_FILE, is_left_out
from gateway.texts.catalog import SHELL, Texts

# A backup counts as late after this much of the interval.
LATE_FACTOR = 1.5
# How much the clocks of chat platforms may differ from the clock of this machine.
CLOCK_DIFFERENCE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupRecord:
    """A backup, or an old home that a restore has kept."""

    path: Path
    made_at: datetime
    # The erasure epoch of the content. Texts that were forgotten after it are still in the backup.
    epoch: int
    is_encrypted: bool = False
    # When state.db had been copied. None for backups of earlier versions.
    copied_at: datetime | None = None
    # The SHA-256 of the file when it was checked. None for backups of earlier versions.
    digest: str | None = None
    kind: Literal["backup", "old_home"] = "backup"

    @property
    def state(self) -> Literal["there", "gone", "out_of_reach"]:
        """Whether the file exists. It's out of reach if its disk isn't connected."""
        if self.path.exists():
            return "there"
        return "gone" if self.path.parent.exists() else "out_of_reach"

    def may_contain(self, first_said_at: datetime | None) -> bool:
        """Return whether the content may include texts that were first said at this time.

        Without a time, the texts may be older than the backup.
        """
        if first_said_at is None or self.copied_at is None:
            return True
        return first_said_at <= self.copied_at + CLOCK_DIFFERENCE

    def goes_at(self, settings: Settings) -> datetime | None:
        """Return when an encrypted backup expires, or None if it isn't encrypted.

        The last backup is kept until there's a newer one.
        """
        if not self.is_encrypted:
            return None
        return self.made_at + timedelta(days=settings.backup.keep_days)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogState:
    """The content of the list: its records and the last failure."""

    # The oldest backup is first. Deleted backups aren't included.
    records: Sequence[BackupRecord] = ()
    # When and why the last backup failed. None if it succeeded.
    failed_at: datetime | None = None
    failure: Sentence | None = None

    @property
    def last_backup(self) -> BackupRecord | None:
        """Return the last backup that exists. Backups on disconnected disks count as existing.

        Returns None if there is none.
        """
        backups = [record for record in self.records if record.kind == "backup"]
        return backups[-1] if backups else None

    def find_last_backup(self, latest: datetime) -> BackupRecord | None:
        """Return the last backup that exists and was made until `latest`.

        Later ones were made while the clock was wrong.
        """
        backups = [record for record in self.records if record.kind == "backup"]
        backups = [record for record in backups if record.made_at <= latest]
        return backups[-1] if backups else None

    def holding(self, epoch: int) -> list[BackupRecord]:
        """Return the records whose content is older than an erasure epoch."""
        return [record for record in self.records if record.epoch < epoch]

    def expired(self, settings: Settings, now: datetime) -> list[BackupRecord]:
        """Return the encrypted backups that are due to be deleted."""
        expired = []
        for record in self.records:
            goes_at = record.goes_at(settings)
            if goes_at is not None and goes_at <= now and record != self.last_backup:
                expired.append(record)
        return expired


class BackupCatalog:
    """Reads and changes the backup list of one home."""

    def __init__(self, home: Path) -> None:
        self._path = home / CATALOG_FILE

    def load(self) -> CatalogState:
        """Return the list. If the file can't be read, the list is empty."""
        try:
            values = json.loads(self._path.read_text(encoding="utf-8"))
            records = [_parse_record(entry) for entry in values["records"]]
            failed_at = values.get("failed_at")
            state = CatalogState(
                records=sorted(records, key=lambda record: record.made_at),
                failed_at=datetime.fromisoformat(failed_at) if failed_at else None,
                failure=parse_failure(values.get("failure")),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return CatalogState()
        present = [record for record in state.records if record.state != "gone"]
        return replace(state, records=present)

    def add(self, record: BackupRecord) -> None:
        """Add a record, or replace the one with the same path. This clears an earlier failure."""
        state = self.load()
        others = [other for other in state.records if other.path != record.path]
        self._save(CatalogState(records=[*others, record]))

    def note_failure(self, at: datetime, reason: Sentence) -> None:
        """Record that a backup failed."""
        self._save(replace(self.load(), failed_at=at, failure=reason))

    def _save(self, state: CatalogState) -> None:
        records = [_format_record(record) for record in state.records]
        values = {
            "records": records,
            "failed_at": state.failed_at.isoformat() if state.failed_at else None,
            "failure": format_failure(state.failure) if state.failure else None,
        }
        replace_file(self._path, json.dumps(values, indent=1, ensure_ascii=False).encode())


def backup_folder(settings: Settings) -> Path:
    """Return the folder for backups: the folder in the settings, or a folder next to the home.

    If no folder can be created next to the home, as in some containers, the folder is in the home.
    """
    if settings.backup.folder is not None:
        return settings.backup.folder
    home = settings.home
    folder = home.with_name(f"{home.name}.backups")
    if folder.exists() or os.access(home.parent, os.W_OK):
        return folder
    return home / "backups"


def is_late(settings: Settings, state: CatalogState, now: datetime) -> bool:
    """Return whether the last valid backup is older than the settings allow."""
    every = settings.backup.every
    if not every:
        return False
    last = state.find_last_backup(now + every)
    return last is None or now - last.made_at > every * LATE_FACTOR


def is_in_backups(home: Path, folder: Path) -> bool:
    """Return whether a folder is in the part of the home that backups contain."""
    try:
        path = folder.resolve().relative_to(home.resolve())
    except ValueError:
        return False
    return not is_left_out(f"{path.as_posix()}/")


def require_folder(folder: Path, *, is_of_settings: bool) -> None:
    """Create a folder for backups if it doesn't exist. Raises StoreError if that isn't possible."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        key = "backup_folder_of_settings" if is_of_settings else "backup_folder_unusable"
        raise StoreError(key, folder=folder, reason=error.strerror) from error


def describe_failure(error: MnemeError | OSError) -> Sentence:
    """Return a sentence about why a backup failed, which can be worded in any language."""
    if isinstance(error, MnemeError):
        return to_sentence(error)
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return Sentence("backup_input_failed", {"reason": reason})
    path = os.fsdecode(error.filename)
    return Sentence("backup_file_unusable", {"path": path, "reason": reason})


def format_failure(failure: Sentence) -> dict[str, object]:
    """Return a sentence in a form that JSON can represent."""
    values = {
        name: value if isinstance(value, int | list) else str(value)
        for name, value in failure.values.items()
    }
    return {"key": failure.key, "values": values}


def parse_failure(value: object) -> Sentence | None:
    """Return a sentence from its JSON form. Earlier versions stored the text itself."""
    if isinstance(value, dict):
        return Sentence(str(value["key"]), dict(value["values"]))
    return Sentence(str(value)) if value else None


def find_backup_fault(settings: Settings, texts: Texts = SHELL) -> tuple[str, str]:
    """Return the option that prevents backups, and a sentence about it, or two "" if there's none.

    The sentence names the option and the command that fixes it.
    """
    options = settings.backup
    if options.encrypt_to:
        # Imported here because few people encrypt their backups.
        from core.transfer.encryption import check_recipient

        try:
            check_recipient(options.encrypt_to)
        except ConfigError:
            sentence = texts.compose("backup_key_wrong", value=options.encrypt_to[:40])
            return "backup.encrypt_to", sentence
    elif options.passphrase and options.passphrase not in settings.variables:
        sentence = texts.compose("backup_passphrase_missing", name=options.passphrase)
        return "backup.passphrase", sentence
    if options.folder is not None and is_in_backups(settings.home, options.folder):
        return "backup.folder", texts.compose("backup_in_home", folder=options.folder)
    place = options.folder
    while place is not None and not place.exists() and place != place.parent:
        place = place.parent
    if place is not None and not _can_create_in(place):
        sentence = texts.compose("backup_folder_wrong", folder=options.folder, place=place)
        return "backup.folder", sentence
    return "", ""


def _can_create_in(folder: Path) -> bool:
    """Return whether folders can be created in a folder. In /proc, only trying shows that."""
    try:
        Path(tempfile.mkdtemp(prefix=".mneme-", dir=folder)).rmdir()
    except OSError:
        return False
    return True


def find_fault_of_option(draft: SettingsDraft, option: str, texts: Texts = SHELL) -> str:
    """Return why backups would fail with an option that was just set in a draft.

    Returns "" if they would work or the option has nothing to do with backups.
    """
    if not option.startswith("backup."):
        return ""
    try:
        settings = draft.load()
    except SettingsError:
        # Another option was wrong before.
        return ""
    faulty_option, sentence = find_backup_fault(settings, texts)
    return sentence if faulty_option == option else ""


def _format_record(record: BackupRecord) -> dict[str, Any]:
    copied_at = record.copied_at
    return asdict(record) | {
        "path": str(record.path),
        "made_at": record.made_at.isoformat(),
        "copied_at": copied_at.isoformat() if copied_at else None,
    }


def _parse_record(entry: dict[str, Any]) -> BackupRecord:
    """Return a record from its JSON form. Fields of a later version are ignored."""
    names = {field.name for field in fields(BackupRecord)}
    copied_at = entry.get("copied_at")
    values = {name: value for name, value in entry.items() if name in names} | {
        "path": Path(entry["path"]),
        "made_at": datetime.fromisoformat(entry["made_at"]),
        "copied_at": datetime.fromisoformat(copied_at) if copied_at else None,
    }
    return BackupRecord(**values)
