"""`mneme backup` and `mneme restore`, and what became of erased texts in both."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyrage
import pytest
from filelock import FileLock

from core.memory.record import RECORD_FILE, Entry, Record
from core.privacy.home_files import encode_phrase
from gateway.upkeep.backups import LOCK_NAME
from gateway.upkeep.catalog import BackupCatalog
from tests.fixtures.command_line import good, mneme
from tests.fixtures.forked import ROOT, ForkedProcess
from tests.fixtures.sweeps import keep_first

pytestmark = pytest.mark.slow

KILLS = 8
# Runs `mneme` and kills it after a step of the restore. "first rename" is a system that can't
# exchange two folders.
KILLED_RESTORE = """
import os, pathlib, signal, sys
import gateway.upkeep.restoring as restoring

place, name = restoring, sys.argv.pop(1)
if name == "first rename":
    restoring.exchange_paths = lambda new, home: False
    place, name = pathlib.Path, "rename"
step = getattr(place, name)

def kill_after(*arguments):
    step(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(place, name, kill_after)
from gateway.cli.main import main
main()
"""
SAID = "I moved to Zanzibar in May.\nI live by the sea.\n/memory add Zanzibar is warm\n"


@pytest.fixture
def talked(home: Path) -> Path:
    """A home in which the owner has said something."""
    good(home, "chat", stdin=SAID)
    return home


def list_backups(home: Path) -> list[Path]:
    return sorted(home.with_name("home.backups").glob("mneme-*"))


def contents(file: Path) -> Iterator[bytes]:
    with tarfile.open(file) as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None
            yield content.read().lower()


def holds(file: Path, word: str) -> bool:
    return any(form in content for content in contents(file) for form in encode_phrase(word))


def test_backup_command_prints_the_path_of_the_backup_and_that_it_has_no_secrets(
    talked: Path,
) -> None:
    printed = good(talked, "backup")
    (file,) = list_backups(talked)
    assert re.search(rf"The backup is {file} \(\d+ kB, \d files\)\. It was opened", printed)
    assert "It contains no secrets" in printed
    assert file.stat().st_mode & 0o777 == 0o600
    assert holds(file, "Zanzibar")


def test_backup_goes_into_a_named_folder_and_prints_json(talked: Path, tmp_path: Path) -> None:
    result = json.loads(good(talked, "backup", str(tmp_path / "disk" / "mneme"), "--json"))
    path = Path(result["path"])
    assert path.parent == tmp_path / "disk" / "mneme"
    assert path.stat().st_size == result["bytes"]
    assert result["is_encrypted"] is False


def test_older_backup_is_rewritten_without_what_was_forgotten(talked: Path) -> None:
    good(talked, "backup")
    (first,) = list_backups(talked)
    receipt = good(talked, "forget", "Zanzibar", "--yes")
    sentence = f"Backups may still contain it ({first.name}); mneme backup removes it from them."
    assert sentence in receipt
    assert "removed from 1 older backup" in good(talked, "backup")
    assert not any(holds(file, "Zanzibar") for file in list_backups(talked))
    assert all(holds(file, "sea") for file in list_backups(talked))
    assert "still contain" not in good(talked, "forget", "boats and planes", "--yes")


def test_encrypted_backup_is_named_with_the_day_on_which_it_expires(talked: Path) -> None:
    key = pyrage.x25519.Identity.generate()
    (talked / "mneme.toml").write_text(f'[backup]\nencrypt_to = "{key.to_public()}"\n')
    good(talked, "backup")
    (file,) = list_backups(talked)
    assert file.suffix == ".age"
    receipt = good(talked, "forget", "Zanzibar", "--yes")
    pattern = rf"encrypted backup {file.name} may still contain it. It's deleted when .* on \d"
    assert re.search(pattern, receipt)
    good(talked, "backup")
    assert file.exists()


def test_restore_erases_again_what_was_forgotten_since(talked: Path, tmp_path: Path) -> None:
    key = pyrage.x25519.Identity.generate()
    (tmp_path / "key").write_text(f"# made today\n{key}\n")
    (talked / "secrets.env").write_text("KEY=1\n")
    good(talked, "backup", "--encrypt", str(key.to_public()))
    (file,) = list_backups(talked)
    good(talked, "forget", "Zanzibar", "--yes")
    printed = good(talked, "restore", str(file), "--key", str(tmp_path / "key"), "--yes")
    assert "I erased again what was forgotten since then (1 erasure)" in printed
    assert "Zanzibar" not in mneme(talked, "recall", "Zanzibar").stdout.replace("“Zanzibar”", "")
    assert "by the sea" in good(talked, "recall", "sea")
    assert (talked / "secrets.env").read_text() == "KEY=1\n"
    (old_home,) = talked.parent.glob("home.before-restore-*")
    assert str(old_home) in printed
    receipt = good(talked, "forget", "sea", "--yes")
    assert f"has kept may still contain it. Delete it: {old_home}" in receipt


def test_restored_home_finds_its_spaces_in_a_service_that_was_set_up_after_the_backup(
    talked: Path,
) -> None:
    file = talked / "providers" / "letta" / RECORD_FILE
    good(talked, "backup")
    file.parent.mkdir(parents=True)
    record = Record(file)
    record.put(Entry(key="k", space="s", messages=[1]))
    good(talked, "restore", str(list_backups(talked)[0]), "--yes")
    restored = Record(file)
    assert restored.space_prefix == record.space_prefix != ""
    # Message 1 of the restored home may be another message.
    assert restored.find_entries("s", messages=[1]) == []


def test_restore_with_a_passphrase_asks_for_it_and_refuses_a_wrong_one(talked: Path) -> None:
    good(talked, "backup", "--encrypt", "passphrase", stdin="correct horse\n")
    (file,) = list_backups(talked)
    wrong = mneme(talked, "restore", str(file), "--yes", stdin="battery staple\n")
    assert wrong.returncode == 1
    assert "can't be decrypted with this key or passphrase" in wrong.stderr
    printed = good(talked, "restore", str(file), "--yes", stdin="correct horse\n")
    assert "Nothing was forgotten since this backup" in printed


def test_restore_on_another_machine_warns_that_later_erasures_are_unknown_there(
    talked: Path, tmp_path: Path
) -> None:
    good(talked, "backup")
    (file,) = list_backups(talked)
    good(talked, "forget", "Zanzibar", "--yes")
    (tmp_path / "new").mkdir()
    other = tmp_path / "new" / "home"
    # The first command has created a state.db, which knows nothing of the other home's erasures.
    good(other, "sessions")
    printed = good(other, "restore", str(file), "--yes")
    assert "I can't know what you have asked me to forget since that backup" in printed
    assert "moved to" in good(other, "recall", "Zanzibar")
    # The home now continues the backup, but still doesn't know the erasures of the other home.
    again = good(other, "restore", str(file), "--yes")
    assert "I can't know what you have asked me to forget since that backup" in again
    assert "Nothing was forgotten" not in again
    # Nothing is unknown since a backup that was made here.
    own = json.loads(good(other, "backup", "--json"))["path"]
    assert "Nothing was forgotten since this backup" in good(other, "restore", own, "--yes")
    # The record that arrives later is used.
    other.with_name("home.erasures").write_bytes(talked.with_name("home.erasures").read_bytes())
    assert "I erased again" in mneme(other, "recall", "sea").stderr
    assert "moved to" not in good(other, "recall", "Zanzibar")
    assert "can't know" not in good(other, "restore", str(file), "--yes")


def test_restore_into_a_home_with_another_record_warns_that_later_erasures_are_unknown(
    talked: Path, tmp_path: Path
) -> None:
    good(talked, "remember", "My locker code is 4711")
    good(talked, "backup")
    (file,) = list_backups(talked)
    good(talked, "forget", "locker", "--yes")
    (tmp_path / "new").mkdir()
    other = tmp_path / "new" / "home"
    for word in ("apples", "pears"):
        good(other, "remember", f"I like {word}")
        good(other, "forget", word, "--yes")
    printed = good(other, "restore", str(file), "--yes")
    assert "belongs to another home" in printed
    assert "Nothing was forgotten" not in printed
    # The record that arrives later is used, although the other home had more erasures.
    with other.with_name("home.erasures").open("ab") as record:
        record.write(talked.with_name("home.erasures").read_bytes())
    assert "I erased again" in mneme(other, "recall", "sea").stderr
    assert "4711" not in good(other, "facts") + good(other, "memory", "list")


@pytest.mark.parametrize("damage", keep_first(1, ["garbage", "cut line", "cut file", "deleted"]))
def test_restore_with_a_damaged_record_reports_what_it_cannot_erase_again(
    talked: Path, damage: str
) -> None:
    good(talked, "backup")
    (file,) = list_backups(talked)
    good(talked, "forget", "sea", "--yes")
    good(talked, "forget", "Zanzibar", "--yes")
    record = talked.with_name("home.erasures")
    first, second = record.read_text().split()[3::4]
    text = record.read_text()
    damaged_texts = {
        "garbage": "garbage\n",
        "cut line": text[: text.index(second) + 9],
        "cut file": text[: text.index(first) + len(first)],
        "deleted": "",
    }
    record.write_text(damaged_texts[damage])
    printed = good(talked, "restore", str(file), "--yes")
    assert "something was forgotten since that backup that I can't erase again" in printed
    assert "Nothing was forgotten" not in printed
    assert ("I erased again" in printed) == damage.startswith("cut")


def test_restore_of_a_newer_backup_after_an_older_one_reports_no_loss(talked: Path) -> None:
    good(talked, "backup")
    (older,) = list_backups(talked)
    good(talked, "forget", "sea", "--yes")
    good(talked, "forget", "Zanzibar", "--yes")
    good(talked, "remember", "The lighthouse is red")
    newer = Path(json.loads(good(talked, "backup", "--json"))["path"])
    copy = newer.with_name("older.tar.gz")
    copy.write_bytes(older.read_bytes())
    # The older one was rewritten without what was forgotten since.
    printed = good(talked, "restore", str(copy), "--yes")
    assert "Nothing was forgotten since this backup" in printed
    printed = good(talked, "restore", str(newer), "--yes")
    assert "can't" not in printed
    assert "lighthouse" in good(talked, "facts") + good(talked, "memory", "list")


def test_restore_refuses_a_running_home_and_changes_nothing(talked: Path) -> None:
    good(talked, "backup")
    (file,) = list_backups(talked)
    with FileLock(talked / "gateway.lock"):
        refused = mneme(talked, "restore", str(file), "--yes")
    assert refused.returncode == 1
    assert "Mneme is running with the home" in refused.stderr
    assert not list(talked.parent.glob("*restor*"))


def test_restore_without_confirmation_or_from_a_damaged_file_changes_no_file(talked: Path) -> None:
    good(talked, "backup")
    (file,) = list_backups(talked)
    before = sorted(talked.rglob("*"))
    refused = mneme(talked, "restore", str(file))
    assert (refused.returncode, refused.stderr.splitlines()[-1]) == (
        2,
        'Nothing was changed. Answer "y", or add --yes.',
    )
    assert mneme(talked, "restore", str(file), stdin="no\n").returncode == 2
    file.write_bytes(file.read_bytes()[:-100])
    damaged = mneme(talked, "restore", str(file), "--yes")
    assert damaged.returncode == 1
    assert "it is damaged" in damaged.stderr
    assert sorted(talked.rglob("*")) == before
    assert not list(talked.parent.glob("*restor*"))


def test_restore_of_a_folder_asks_for_the_file_of_a_backup(home: Path, tmp_path: Path) -> None:
    refused = mneme(home, "restore", str(tmp_path), "--yes")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"{tmp_path} is a folder. Name the file of a backup" in refused.stderr
    assert "Nothing was changed." in refused.stderr


def test_restore_works_although_the_settings_are_broken(talked: Path) -> None:
    good(talked, "backup")
    (file,) = list_backups(talked)
    (talked / "mneme.toml").write_text("[model\n")
    good(talked, "restore", str(file), "--yes")
    assert "by the sea" in good(talked, "recall", "sea")


def test_only_as_many_backups_are_kept_as_the_settings_say(talked: Path, tmp_path: Path) -> None:
    (talked / "mneme.toml").write_text("[backup]\nkeep = 2\n")
    good(talked, "backup", str(tmp_path / "other"))
    for _ in range(3):
        good(talked, "backup")
    assert len(list_backups(talked)) == 2
    assert len(list((tmp_path / "other").glob("mneme-*"))) == 1


def test_backup_that_cannot_be_recorded_in_the_list_leaves_no_file(talked: Path) -> None:
    """A file that isn't in the list would never be deleted, or cleaned after a /forget."""
    (talked / "backups.json").unlink(missing_ok=True)
    (talked / "backups.json").mkdir()
    done = mneme(talked, "backup")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert list_backups(talked) == []


def test_leftover_of_a_killed_backup_is_removed_by_the_next(talked: Path) -> None:
    leftover = talked.with_name("home.backups") / ".mneme-123.partial"
    leftover.mkdir(parents=True)
    (leftover / "state.db").write_text("half")
    good(talked, "backup")
    assert not leftover.exists()


def test_second_backup_at_the_same_time_is_refused(talked: Path) -> None:
    folder = talked.with_name("home.backups")
    folder.mkdir()
    with FileLock(folder / LOCK_NAME):
        refused = mneme(talked, "backup")
    assert refused.returncode == 1
    assert "Another backup" in refused.stderr


def test_backups_inside_the_home_are_refused_except_in_the_folder_that_they_leave_out(
    talked: Path,
) -> None:
    """Otherwise a backup would contain others, and what was forgotten would stay in it."""
    refused = mneme(talked, "backup", str(talked / "bk"))
    assert refused.returncode == 1
    assert "each backup would contain the earlier ones" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not (talked / "bk").exists()
    good(talked, "backup", str(talked / "backups"))
    with tarfile.open(json.loads(good(talked, "backup", "--json"))["path"]) as archive:
        assert not any("backups/" in name for name in archive.getnames())


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--encrypt", "age1nonsense"), "isn't a key to encrypt to"),
        (("/proc/nowhere",), "can't be created"),
        (("",), "FOLDER is empty."),
        (("--encrypt", ""), "--encrypt is empty."),
        (("--encrypt", "passphrase"), "Use at least 8 characters."),
    ],
)
def test_backup_with_impossible_arguments_is_refused_with_one_sentence(
    talked: Path, arguments: tuple[str, ...], reason: str
) -> None:
    refused = mneme(talked, "backup", *arguments, stdin="short\n")
    assert refused.returncode == 1
    assert reason in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert list_backups(talked) == []


def test_refused_backup_of_a_damaged_database_keeps_the_older_backups(talked: Path) -> None:
    good(talked, "backup")
    with (talked / "state.db").open("r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\xff" * 8192)
    refused = mneme(talked, "backup")
    assert refused.returncode == 1
    assert "damaged" in refused.stderr
    assert len(list_backups(talked)) == 1


def test_backup_of_an_empty_home_is_refused(home: Path) -> None:
    refused = mneme(home, "backup")
    assert refused.returncode == 1
    assert "nothing to back up" in refused.stderr


def start(home: Path, *arguments: str) -> ForkedProcess:
    environment = {"PATH": os.environ["PATH"], "MNEME_HOME": str(home)}
    with Path(os.devnull).open("r+b") as nowhere:
        return ForkedProcess(arguments, environment, ROOT, [nowhere.fileno()] * 3)


@pytest.mark.parametrize(
    ("step", "command"),
    keep_first(
        2,
        [
            ("exchange_paths", "restore"),
            ("_carry_over", "config"),
            ("exchange_paths", "config"),
            ("_swap_folders", "config"),
            ("first rename", "config"),
        ],
    ),
)
def test_next_command_keeps_the_old_home_of_a_killed_restore(
    talked: Path, step: str, command: str
) -> None:
    good(talked, "backup")
    (file,) = list_backups(talked)
    (talked / "secrets.env").write_text("KEY=1\n")
    (talked / "later.txt").write_text("The lighthouse is red")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_RESTORE, step, "restore", str(file), "--yes"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "MNEME_HOME": str(talked)},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL

    arguments = ("restore", str(file), "--yes") if command == "restore" else ("config", "list")
    printed = mneme(talked, *arguments)
    old_home = min(talked.parent.glob("home.before-restore-*"))
    assert f"The data before it is in {old_home}" in printed.stderr
    assert (old_home / "later.txt").read_text() == "The lighthouse is red"
    assert (talked / "secrets.env").read_text() == "KEY=1\n"
    listed = [record.path for record in BackupCatalog(talked).load().records]
    assert {file, old_home} <= set(listed)
    assert not list(talked.parent.glob(".home.restoring"))


@pytest.mark.timeout(300)
def test_restore_that_is_killed_leaves_the_old_or_the_new_home(talked: Path) -> None:
    good(talked, "backup")
    (file,) = list_backups(talked)
    good(talked, "remember", "The lighthouse is red")
    good(talked, "forget", "Zanzibar", "--yes")
    whole_s = 0.0
    outcomes = []
    for number in range(KILLS):
        began_s = time.monotonic()
        process = start(talked, "restore", str(file), "--yes")
        if number and process.wait(whole_s * number / KILLS) is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        whole_s = whole_s or time.monotonic() - began_s
        # Whichever home it is, it's whole, and what was forgotten doesn't come back.
        assert "by the sea" in good(talked, "recall", "sea")
        assert "moved to" not in good(talked, "recall", "Zanzibar")
        is_new = "lighthouse" not in good(talked, "memory", "list") + good(talked, "facts")
        outcomes.append(is_new)
        good(talked, "remember", "The lighthouse is red")
    assert any(outcomes)


def test_progress_of_a_backup_in_a_terminal_is_in_the_language_of_the_shell(talked: Path) -> None:
    main, side = pty.openpty()
    environ = {**os.environ, "MNEME_HOME": str(talked), "LC_ALL": "de_DE.UTF-8"}
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway.cli.main", "backup"],
        stdin=side, stdout=side, stderr=side, env=environ,
    )  # fmt: skip
    os.close(side)
    shown = b""
    with contextlib.suppress(OSError):  # The program closed its side.
        while part := os.read(main, 1000):
            shown += part
    os.close(main)
    assert process.wait(60) == 0
    # A fast backup shows only the last of its steps.
    assert re.search("kopiere|prüfe", shown.decode())
    assert not re.search("copying|checking", shown.decode())
