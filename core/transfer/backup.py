"""Writes a home into one compressed file, checks such a file, and unpacks it.

The file is a tar archive with gzip: the home's files below "home/", the record of erasures, and
finally `manifest.json` with the size and the SHA-256 of each file. Only files that match the
manifest are used.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any

from config.operating_system import sync_file
from core.errors import HistoryError, StoreError, word_clause
from core.store.sqlite.copying import FILE_START, copy_database, read_database_info, verify_copy

FORMAT = 1
STATE_FILE = "state.db"
SECRETS_FILE = "secrets.env"
CATALOG_FILE = "backups.json"
"""The list of backups of a home. A restored home keeps its own list."""
JOURNAL_ENTRY = "erasures"
MANIFEST_ENTRY = "manifest.json"
HOME_FOLDER = "home"
# The beginnings of the paths in the home that a backup leaves out.
LEFT_OUT_STARTS = (
    f"{STATE_FILE}",
    "database-state.created",
    "mneme.log",
    "backups/",
    CATALOG_FILE,
    "page_logins.json",
    "engines/hindsight/environment/",
    "engines/hindsight/server.",
)
_LEFT_OUT_SUFFIXES = (".lock", ".half", ".sock", ".pyc")
_ENGINE_DATA = "engines/hindsight/postgres/"
# The names of the files that SQLite keeps next to a database.
_LOG_SUFFIXES = ("-wal", "-shm", "-journal")
_COMPRESSION_LEVEL = 6
_READ_BYTES = 1 << 20
_GZIP_START = b"\x1f\x8b"
_AGE_START = b"age-encryption.org/v1"
_MAX_MANIFEST_BYTES = 100_000_000
_DAMAGED_ERRORS = (tarfile.TarError, EOFError, zlib.error, ValueError, KeyError, TypeError)


class _DamagedArchiveError(ValueError):
    """Raised if an archive differs from its manifest. The message is a clause for people."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file in the manifest of a backup."""

    sha256: str
    bytes: int
    is_executable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The list of the files in a backup, with the time and the version of Mneme that wrote it."""

    made_at: datetime
    # The version of Mneme that made the backup.
    program: str
    schema: int
    # The erasure epoch of state.db. Words that were forgotten later are still in the backup.
    epoch: int
    has_secrets: bool = False
    # The files by their paths in the archive.
    files: Mapping[str, FileEntry] = field(default_factory=dict)
    # The files that couldn't be copied, with the reason.
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSource:
    """The files and folders to back up."""

    home: Path
    # The record of erasures next to the home. It may be missing.
    journal: Path
    program: str
    has_secrets: bool = False
    # Whether PostgreSQL of a memory service is running. Its files can't be copied then.
    is_engine_running: bool = False


# Called with a step, such as "state.db", and the share that is done (0 to 1).
Progress = Callable[[str, float], None]


def write_backup(
    source: BackupSource, target: Path, scratch: Path, now: datetime, on_progress: Progress
) -> Manifest:
    """Write a backup of a home to the file `target`.

    Programs may use the home meanwhile. `scratch` is an existing folder for copies. Raises
    StoreError if state.db can't be copied or if its copy is damaged, and OSError if a file can't be
    written.
    """
    state_copy = scratch / STATE_FILE
    copy_database(
        source.home / STATE_FILE,
        state_copy,
        lambda done, total: on_progress(STATE_FILE, done / max(total, 1)),
    )
    info = read_database_info(state_copy)
    files: dict[str, FileEntry] = {}
    with tarfile.open(target, "w:gz", compresslevel=_COMPRESSION_LEVEL) as archive:
        archive.copybufsize = _READ_BYTES  # type: ignore[attr-defined]
        files[f"{HOME_FOLDER}/{STATE_FILE}"] = _add_file(
            archive, state_copy, f"{HOME_FOLDER}/{STATE_FILE}", on_progress
        )
        state_copy.unlink()
        if source.journal.is_file():
            files[JOURNAL_ENTRY] = _copy_and_add(archive, source.journal, JOURNAL_ENTRY, scratch)
        home_files, left_out = _add_home_files(archive, source, scratch, on_progress)
        files |= home_files
        manifest = Manifest(
            made_at=now,
            program=source.program,
            schema=info.schema,
            epoch=info.epoch,
            has_secrets=f"{HOME_FOLDER}/{SECRETS_FILE}" in files,
            files=files,
            left_out=tuple(left_out),
        )
        _add_manifest(archive, manifest)
    return manifest


def _add_home_files(
    archive: tarfile.TarFile, source: BackupSource, scratch: Path, on_progress: Progress
) -> tuple[dict[str, FileEntry], list[str]]:
    """Add the files of the home except state.db. Returns their entries, and the omitted files."""
    files: dict[str, FileEntry] = {}
    left_out: list[str] = []
    for path in _list_files(source, left_out):
        relative_path = path.relative_to(source.home)
        name = f"{HOME_FOLDER}/{relative_path.as_posix()}"
        on_progress(name, 0.0)
        try:
            files[name] = _copy_and_add(archive, path, name, scratch)
        except FileNotFoundError:
            # Another program has deleted the file meanwhile.
            continue
        except PermissionError as error:
            reason = str(error.strerror)
            left_out.append(
                word_clause("left_out_unreadable", path=str(relative_path), reason=reason)
            )
    return files, left_out


def _add_manifest(archive: tarfile.TarFile, manifest: Manifest) -> None:
    content = _format_manifest(manifest)
    entry = tarfile.TarInfo(MANIFEST_ENTRY)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def verify_backup(file: Path, scratch: Path) -> Manifest:
    """Read a whole backup, compare all files with the manifest, and open its state.db.

    Raises HistoryError or StoreError if the backup can't be restored.
    """
    folder = scratch / "verified"
    try:
        manifest = unpack_backup(file, folder, is_trial=True)
        verify_copy(folder / HOME_FOLDER / STATE_FILE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return manifest


def unpack_backup(file: Path, folder: Path, *, is_trial: bool = False) -> Manifest:
    """Unpack a backup into a new folder: the home in "home", the record in "erasures".

    With `is_trial`, only state.db is written, but all files are compared with the manifest. Raises
    HistoryError if the file isn't a backup or is damaged, and OSError.
    """
    folder.mkdir(mode=0o700)
    entries: dict[str, FileEntry] = {}
    manifest: Manifest | None = None
    try:
        with tarfile.open(file, "r|gz") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                if content is None or manifest is not None:
                    raise _DamagedArchiveError(
                        word_clause("archive_entry", entry=repr(member.name[:100]))
                    )
                if member.name == MANIFEST_ENTRY:
                    manifest = _parse_manifest(content.read(_MAX_MANIFEST_BYTES))
                    continue
                is_wanted = not is_trial or member.name == f"{HOME_FOLDER}/{STATE_FILE}"
                target = _safe_path(folder, member.name) if is_wanted else None
                entries[member.name] = _write_member(content, target)
        if manifest is None:
            raise _DamagedArchiveError(word_clause("archive_no_manifest"))
        _compare(entries, manifest)
    except (*_DAMAGED_ERRORS, OSError) as error:
        # gzip reports a damaged file as an OSError without a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = _describe_damage(file, error)
        raise HistoryError("backup_damaged", file=str(file), reason=reason) from error
    if not is_trial:
        _set_modes(folder, manifest)
    return manifest


def _describe_damage(file: Path, error: Exception) -> str:
    """Return a clause about why an archive can't be unpacked."""
    if isinstance(error, _DamagedArchiveError):
        return str(error)
    with file.open("rb") as stream:
        if stream.read(len(_GZIP_START)) != _GZIP_START:
            return word_clause("archive_not_gzip")
    # gzip and tarfile have different errors for this.
    is_cut_off = isinstance(error, EOFError) or str(error) == "unexpected end of data"
    return word_clause("archive_cut_off" if is_cut_off else "archive_broken")


def looks_like_backup(head: bytes) -> bool:
    """Return whether a file may be a backup, from its first bytes. It may also be encrypted."""
    return head.startswith((_GZIP_START, _AGE_START))


def is_left_out(name: str) -> bool:
    """Return whether a backup leaves out a file with this path, such as "memories/USER.md"."""
    return name.startswith(LEFT_OUT_STARTS) or name.endswith(_LEFT_OUT_SUFFIXES)


def hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _list_files(source: BackupSource, left_out: list[str]) -> Iterator[Path]:
    """Yield the files to copy. Add files that can't be copied to `left_out`, with the reason."""
    for folder, folder_names, file_names in os.walk(source.home):
        folder_names.sort()
        for name in list(folder_names):
            path = Path(folder, name)
            if path.is_symlink():
                left_out.append(_word_left_out("left_out_link", path, source))
                folder_names.remove(name)
            elif name == "__pycache__" or is_left_out(_relative_name(path, source.home) + "/"):
                folder_names.remove(name)
            elif source.is_engine_running and _is_engine_data(path, source.home):
                left_out.append(_word_left_out("left_out_engine", path, source))
                folder_names.remove(name)
        for name in sorted(file_names):
            path = Path(folder, name)
            reason = _reason_to_leave_out(path, source)
            if reason is None:
                yield path
            elif reason:
                left_out.append(_word_left_out(reason, path, source))


def _word_left_out(reason: str, path: Path, source: BackupSource) -> str:
    return word_clause(reason, path=str(path.relative_to(source.home)))


def _reason_to_leave_out(path: Path, source: BackupSource) -> str | None:
    """Return the key of the reason for leaving out a file, or None if it's copied.

    The key is "" if the report needn't mention the file.
    """
    name = _relative_name(path, source.home)
    if is_left_out(name) or (name == SECRETS_FILE and not source.has_secrets):
        return ""
    for suffix in _LOG_SUFFIXES:
        if name.endswith(suffix) and _is_database(path.with_name(path.name.removesuffix(suffix))):
            # The copy of the database contains its log.
            return ""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return ""
    if stat.S_ISLNK(mode):
        return "left_out_link"
    return None if stat.S_ISREG(mode) else ""


def _relative_name(path: Path, home: Path) -> str:
    return path.relative_to(home).as_posix()


def _is_engine_data(path: Path, home: Path) -> bool:
    return f"{_relative_name(path, home)}/" == _ENGINE_DATA


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(FILE_START)) == FILE_START
    except OSError:
        return False


def _copy_and_add(archive: tarfile.TarFile, path: Path, name: str, scratch: Path) -> FileEntry:
    """Copy a file, and add the copy to the archive.

    The copy is needed because other programs may change the file.
    """
    copy = scratch / "copy"
    try:
        is_copied = False
        if _is_database(path):
            try:
                copy_database(path, copy)
                is_copied = True
            except StoreError:
                # If SQLite can't read a database, its file is copied unchanged.
                copy.unlink(missing_ok=True)
        if not is_copied:
            shutil.copyfile(path, copy, follow_symlinks=False)
        copy.chmod(0o700 if path.stat().st_mode & stat.S_IXUSR else 0o600)
        return _add_file(archive, copy, name)
    finally:
        copy.unlink(missing_ok=True)


def _add_file(
    archive: tarfile.TarFile, path: Path, name: str, on_progress: Progress | None = None
) -> FileEntry:
    """Add a file that doesn't change any more to the archive."""
    if on_progress is not None:
        on_progress(name, 0.0)
    status = path.stat()
    entry = tarfile.TarInfo(name)
    entry.size = status.st_size
    entry.mtime = int(status.st_mtime)
    is_executable = bool(status.st_mode & stat.S_IXUSR)
    entry.mode = 0o700 if is_executable else 0o600
    with path.open("rb") as file:
        archive.addfile(entry, file)
    return FileEntry(hash_file(path), status.st_size, is_executable)


def _safe_path(folder: Path, name: str) -> Path:
    """Return the path of an entry below a folder. Raises ValueError if it would be outside."""
    path = PurePosixPath(name)
    is_inside = path.parts[:1] == (HOME_FOLDER,) or name == JOURNAL_ENTRY
    if path.is_absolute() or ".." in path.parts or not is_inside:
        raise _DamagedArchiveError(word_clause("archive_entry", entry=repr(name[:100])))
    target = folder / path
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return target


def _write_member(content: IO[bytes], target: Path | None) -> FileEntry:
    """Read an entry of the archive. If `target` is given, write the entry to this new file."""
    digest = hashlib.sha256()
    size = 0
    descriptor = None
    if target is not None:
        descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        while chunk := content.read(_READ_BYTES):
            digest.update(chunk)
            size += len(chunk)
            if descriptor is not None:
                view = memoryview(chunk)
                while view:
                    view = view[os.write(descriptor, view) :]
        if descriptor is not None:
            sync_file(descriptor)
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return FileEntry(digest.hexdigest(), size)


def _compare(entries: Mapping[str, FileEntry], manifest: Manifest) -> None:
    """Raise ValueError if the files differ from the manifest."""
    if f"{HOME_FOLDER}/{STATE_FILE}" not in entries:
        raise _DamagedArchiveError(word_clause("archive_no_state", file=STATE_FILE))
    if entries.keys() != manifest.files.keys():
        names = sorted(entries.keys() ^ manifest.files.keys())
        raise _DamagedArchiveError(word_clause("archive_disagrees", entry=repr(names[0])))
    for name, entry in entries.items():
        known = manifest.files[name]
        if (entry.sha256, entry.bytes) != (known.sha256, known.bytes):
            raise _DamagedArchiveError(word_clause("archive_checksum", entry=name))


def _set_modes(folder: Path, manifest: Manifest) -> None:
    for name, entry in manifest.files.items():
        if entry.is_executable:
            (folder / name).chmod(0o700)


def _format_manifest(manifest: Manifest) -> bytes:
    values = asdict(manifest) | {"format": FORMAT, "made_at": manifest.made_at.isoformat()}
    return json.dumps(values, indent=1, ensure_ascii=False).encode()


def _parse_manifest(content: bytes) -> Manifest:
    """Parse a manifest. Raises ValueError, KeyError or TypeError if the manifest is invalid."""
    values: dict[str, Any] = json.loads(content)
    if values.pop("format") != FORMAT:
        raise _DamagedArchiveError(word_clause("archive_newer"))
    values["made_at"] = datetime.fromisoformat(values["made_at"])
    values["files"] = {name: FileEntry(**entry) for name, entry in values["files"].items()}
    values["left_out"] = tuple(values["left_out"])
    return Manifest(**values)
