"""The file of a backup: what it contains, and which files are refused."""

from __future__ import annotations

import io
import json
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyrage
import pytest

from core.errors import HistoryError, StoreError
from core.transfer.backup import BackupSource, Manifest, unpack_backup, verify_backup, write_backup
from core.transfer.encryption import EncryptionKey, decrypt_file, encrypt_file
from tests.fixtures.samples import NOON


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a small state.db and a file of each kind."""
    home = tmp_path / "home"
    home.mkdir()
    with closing(sqlite3.connect(home / "state.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT)")
        connection.execute("INSERT INTO state_meta VALUES ('erasures', '3')")
    for name, text in {
        "memories/MEMORY.md": "The ferry leaves at nine.",
        "media/ab/abcd": "a file",
        "skills/boats/run.sh": "#!/bin/sh\n",
        "plugins/boats/__init__.py": "BOATS = 1\n",
        "secrets.env": "KEY=hunter2",
        "mneme.log": "a line",
        "gateway.lock": "",
    }.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (home / "skills/boats/run.sh").chmod(0o700)
    (home / "link").symlink_to("/etc/hostname")
    home.with_name("home.erasures").write_text("\n1 2026-11-20 token aa\n")
    return home


def back_up(home: Path, *, has_secrets: bool = False) -> tuple[Path, Manifest]:
    target = home.with_name("backup.tar.gz")
    scratch = home.with_name("scratch")
    scratch.mkdir(exist_ok=True)
    journal = home.with_name("home.erasures")
    source = BackupSource(home=home, journal=journal, program="1", has_secrets=has_secrets)
    return target, write_backup(source, target, scratch, NOON, lambda step, share: None)


def change_archive(file: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    """Rewrite an archive after `change` has changed its entries."""
    with tarfile.open(file) as archive:
        entries = {
            member.name: content.read()
            for member in archive
            if (content := archive.extractfile(member)) is not None
        }
    change(entries)
    with tarfile.open(file, "w:gz") as archive:
        for name, data in entries.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def test_backup_has_everything_but_secrets_links_logs_and_locks(home: Path, tmp_path: Path) -> None:
    file, manifest = back_up(home)
    assert sorted(manifest.files) == [
        "erasures",
        "home/media/ab/abcd",
        "home/memories/MEMORY.md",
        "home/plugins/boats/__init__.py",
        "home/skills/boats/run.sh",
        "home/state.db",
    ]
    assert manifest.epoch == 3
    assert manifest.left_out == ("link (a link)",)
    unpack_backup(file, tmp_path / "unpacked")
    unpacked = tmp_path / "unpacked" / "home"
    assert (unpacked / "memories/MEMORY.md").read_text() == "The ferry leaves at nine."
    assert (unpacked / "skills/boats/run.sh").stat().st_mode & 0o777 == 0o700
    assert (unpacked / "state.db").stat().st_mode & 0o777 == 0o600
    assert not (unpacked / "state.db-wal").exists()


def test_secrets_are_copied_only_on_request(home: Path) -> None:
    _, manifest = back_up(home, has_secrets=True)
    assert manifest.has_secrets
    assert "home/secrets.env" in manifest.files


def test_database_of_a_service_is_copied_with_its_log(home: Path, tmp_path: Path) -> None:
    path = home / "providers" / "boats.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE boats (name TEXT)")
        connection.execute("INSERT INTO boats VALUES ('Ariel')")
        assert Path(f"{path}-wal").stat().st_size
        file, manifest = back_up(home)
    assert "home/providers/boats.db-wal" not in manifest.files
    unpack_backup(file, tmp_path / "unpacked")
    with closing(sqlite3.connect(tmp_path / "unpacked/home/providers/boats.db")) as connection:
        assert connection.execute("SELECT name FROM boats").fetchone() == ("Ariel",)


@pytest.mark.slow
def test_row_that_is_written_during_the_copy_isn_t_in_it(home: Path, tmp_path: Path) -> None:
    """Another program writes after each step of the copy, which doesn't begin again."""
    with closing(sqlite3.connect(home / "state.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE boats (name TEXT)")
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
            "INSERT INTO boats SELECT hex(randomblob(3000)) FROM n"
        )
        steps: list[str] = []

        def write(step: str, share: float) -> None:
            steps.append(step)
            connection.execute("INSERT INTO boats VALUES ('late')")

        scratch = tmp_path / "scratch"
        scratch.mkdir()
        source = BackupSource(home=home, journal=tmp_path / "none", program="1")
        write_backup(source, tmp_path / "backup.tar.gz", scratch, NOON, write)
    assert steps.count("state.db") > 2
    unpack_backup(tmp_path / "backup.tar.gz", tmp_path / "unpacked")
    with closing(sqlite3.connect(tmp_path / "unpacked/home/state.db")) as connection:
        assert connection.execute("SELECT COUNT(*) FROM boats").fetchone() == (3000,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_backup_of_a_damaged_database_is_refused(home: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(home / "state.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE boats (name TEXT)")
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) "
            "INSERT INTO boats SELECT hex(randomblob(900)) FROM n"
        )
    with (home / "state.db").open("r+b") as file:
        file.seek(20 * 4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(StoreError, match="damaged"):
        verify_backup(back_up(home)[0], tmp_path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda entries: entries.update({"home/memories/MEMORY.md": b"x"}), "checksum"),
        (lambda entries: entries.pop("home/memories/MEMORY.md"), "doesn't agree"),
        (lambda entries: entries.pop("manifest.json"), "no manifest"),
        (lambda entries: entries.pop("home/state.db"), "no state.db"),
        (lambda entries: entries.update({"late": b"x"}), "unexpected entry"),
        (
            lambda entries: entries.update(
                {"home/../../evil": b"x", "manifest.json": entries.pop("manifest.json")}
            ),
            "unexpected entry",
        ),
        (
            lambda entries: entries.update({"manifest.json": json.dumps({"format": 99}).encode()}),
            "newer version",
        ),
        (lambda entries: entries.update({"manifest.json": b"[]"}), "isn't a backup"),
    ],
)
def test_changed_backup_is_refused_with_a_sentence(
    home: Path, tmp_path: Path, change: Callable[[dict[str, bytes]], None], reason: str
) -> None:
    file, _ = back_up(home)
    change_archive(file, change)
    with pytest.raises(HistoryError, match=reason):
        unpack_backup(file, tmp_path / "unpacked")
    assert not (tmp_path / "evil").exists()


def test_backup_that_is_cut_off_anywhere_is_refused(home: Path, tmp_path: Path) -> None:
    file, _ = back_up(home)
    content = file.read_bytes()
    for number, size in enumerate(range(0, len(content) - 8, 97)):
        file.write_bytes(content[:size])
        with pytest.raises(HistoryError):
            unpack_backup(file, tmp_path / f"unpacked{number}", is_trial=True)


def test_backup_with_far_more_work_than_this_machine_can_do_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.transfer.encryption._PAUSE_S", 0.0)
    source = tmp_path / "mneme.tar.gz.age"
    salt, key, mac = "A" * 22, "A" * 43, "A" * 43
    header = f"age-encryption.org/v1\n-> scrypt {salt} 40\n{key}\n--- {mac}\n"
    source.write_bytes(header.encode() + bytes(32))
    with pytest.raises(HistoryError, match="Try again while nothing else runs here"):
        decrypt_file(source, tmp_path / "plain", "correct horse")


def test_backup_is_checked_again_if_a_busy_machine_refuses_to_decrypt_it_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library measures the machine for milliseconds, in which another process may run."""
    refusals = [pyrage.DecryptError("Excessive work parameter")] * 3
    decrypt = pyrage.passphrase.decrypt

    def decrypt_on_a_busy_machine(content: bytes, passphrase: str) -> bytes:
        if refusals:
            raise refusals.pop()
        return bytes(decrypt(content, passphrase))

    monkeypatch.setattr("core.transfer.encryption._PAUSE_S", 0.0)
    monkeypatch.setattr(pyrage.passphrase, "decrypt", decrypt_on_a_busy_machine)
    plain = tmp_path / "plain"
    plain.write_bytes(b"content")
    key = EncryptionKey(passphrase="correct horse")
    encrypt_file(plain, tmp_path / "encrypted", key, tmp_path / "check")
    assert (tmp_path / "check").read_bytes() == b"content"
    refusals += [pyrage.DecryptError("Excessive work parameter")] * 99
    with pytest.raises(HistoryError, match="too busy to check the encrypted backup"):
        encrypt_file(plain, tmp_path / "encrypted", key, tmp_path / "check")
