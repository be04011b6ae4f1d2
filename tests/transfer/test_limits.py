"""What is no history but an attack, or an accident, ends an import in one sentence; what was fine
before it is kept."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import tempfile
import time
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from core.errors import HistoryError
from core.store.archive import Archive, ImportReport
from core.store.sqlite.database import Database
from core.transfer import json_stream, source
from core.transfer.formats import ImportOptions
from core.transfer.source import Source
from tests.fixtures.exports import hermes_store, telegram_chat, telegram_message, write

LINE = json.dumps({"session": "s1", "role": "user", "text": "hello", "at": "2026-05-03"})
FINE = json.dumps(telegram_chat([telegram_message(number) for number in range(3)]))
HEAD = FINE.removesuffix("]}")
GIANT = 100_000_000


async def imported(database: Database, path: Path) -> ImportReport:
    """Twice, since a second time may neither add nor lose anything."""
    with Source.open(path, ImportOptions()) as opened:
        report = await Archive(database).import_records(opened.read_records(), lambda _: None)
    with Source.open(path, ImportOptions()) as opened:
        repeated = await Archive(database).import_records(opened.read_records(), lambda _: None)
    assert (repeated.imported_count, repeated.known_count, repeated.read_error) == (
        0,
        report.imported_count,
        report.read_error,
    )
    return report


def refused(path: Path) -> str:
    with pytest.raises(HistoryError) as raised, Source.open(path, ImportOptions()):
        pass
    return sentence(str(raised.value))


def sentence(text: str) -> str:
    assert "\n" not in text
    assert len(text) < 500
    return text


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (',{"id": ' + "9" * 100_000 + "}]}", "a number with more digits"),
        (',{"id": -' + "9" * 5_000 + "}]}", "a number with more digits"),
        (',{"id": 1e99999999999999999999}]}', "a number with more digits"),
        (
            ',{"id": 7, "text": ' + "[" * 300_000 + "]" * 300_000 + "}]}",
            "nested more than 100 levels",
        ),
        ("," + '{"a":' * 100_000, "nested more than 100 levels"),
        (
            ',{"id": 7, "text": "' + "a" * 1_100_000 + '"}]}',
            "a value of more than 1,000,000 bytes",
        ),
        ("," + " " * 1_100_000 + "]}", "a value of more than 1,000,000 bytes"),
    ],
    ids=["digits", "negative", "exponent", "depth", "objects", "text", "blanks"],
)
async def test_import_keeps_messages_before_an_oversized_or_hostile_value_in_a_document(
    rest: str, said: str, tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "MAX_VALUE_BYTES", 1_000_000)
    path = tmp_path / "result.json"
    path.write_text(HEAD + rest)
    report = await imported(database, path)
    assert report.imported_count == 3
    assert said in sentence(report.read_error or "")


async def test_import_refuses_an_entry_with_too_many_parts(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "MAX_ENTRY_EVENTS", 1_000)
    path = tmp_path / "result.json"
    path.write_text(HEAD + ',{"id": 7, "text": [' + "1," * 1_000 + "1]}]}")
    report = await imported(database, path)
    assert report.imported_count == 3
    assert "an entry with more parts" in sentence(report.read_error or "")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (LINE.replace('"hello"', "9" * 100_000), "is not JSON"),
        (LINE.replace('"hello"', "[" * 100_000), "is not JSON"),
        (LINE.replace("2026-05-03", "9" * 1_000), "is not a moment"),
    ],
    ids=["digits", "depth", "time"],
)
async def test_import_line_with_a_giant_number_depth_or_date_is_refused_and_others_imported(
    raw: str, said: str, tmp_path: Path, database: Database
) -> None:
    path = tmp_path / "lines"
    path.write_text(f"{LINE}\n{raw}\n{LINE.replace('hello', 'later')}\n")
    report = await imported(database, path)
    assert (report.imported_count, report.refused_count) == (2, 1)
    assert report.reasons[0].startswith("line 2: ")
    assert said in sentence(report.reasons[0])


@pytest.mark.slow
async def test_a_line_of_100_megabytes_is_refused(tmp_path: Path, database: Database) -> None:
    path = tmp_path / "lines"
    with path.open("wb") as file:
        file.writelines(
            [f"{LINE}\n".encode(), b"a" * GIANT, f"\n{LINE.replace('hello', 'later')}\n".encode()]
        )
    report = await imported(database, path)
    assert (report.imported_count, report.reasons) == (
        2,
        ["line 2: is longer than 10,000,000 bytes"],
    )


def zipped(path: Path, entries: dict[str, bytes | str], kind: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", kind, compresslevel=1) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def test_zip_bomb_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "ALWAYS_ALLOWED_BYTES", 1_000_000)
    bomb = zipped(tmp_path / "export.zip", {"result.json": FINE, "more.json": b"[" * 5_000_000})
    monkeypatch.setattr(zipfile.ZipFile, "extract", None)
    assert "would be 5,000,6" in refused(bomb)
    assert "bytes when unpacked; Mneme unpacks at most 2," in refused(bomb)
    assert "Unpack it yourself and import the folder." in refused(bomb)


def test_no_archive_unpacks_to_more_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_UNPACKED_BYTES", 1_000)
    stored = zipped(tmp_path / "export.zip", {"a": "a" * 600, "b": "b" * 600}, zipfile.ZIP_STORED)
    assert "1,200 bytes when unpacked; Mneme unpacks at most 1,000" in refused(stored)


async def test_endless_standard_input_is_read_up_to_the_limit(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = LINE.encode() + b"\n"
    monkeypatch.setattr(source, "MAX_UNPACKED_BYTES", 2 * len(whole) + 5)
    with Source.open(io.BytesIO(whole * 3), ImportOptions()) as opened:
        report = await Archive(database).import_records(opened.read_records(), lambda _: None)
    assert report.imported_count + report.known_count == 2
    assert "came on stdin, and the rest was not read" in sentence(report.read_error or "")
    monkeypatch.setattr(source, "MAX_UNPACKED_BYTES", 3 * len(whole))
    with Source.open(io.BytesIO(whole * 3), ImportOptions()) as opened:
        report = await Archive(database).import_records(opened.read_records(), lambda _: None)
    assert not report.read_error


async def test_archive_entry_larger_than_its_stated_size_is_reported_and_not_read(
    tmp_path: Path, database: Database
) -> None:
    path = zipped(tmp_path / "export.zip", {"a/result.json": FINE, "lie.json": b"[" * 5_000_000})
    raw = path.read_bytes()
    path.write_bytes(raw.replace((5_000_000).to_bytes(4, "little"), (50).to_bytes(4, "little")))
    report = await imported(database, path)
    assert report.imported_count == 3
    assert "lie.json is damaged" in sentence(report.read_error or "")


@pytest.mark.parametrize("inner", ["result.json", "inner.zip"])
def test_an_archive_in_an_archive_is_left_unchanged(inner: str, tmp_path: Path) -> None:
    nested = zipped(tmp_path / "inner.zip", {inner: FINE})
    assert "has nothing to import" in refused(
        zipped(tmp_path / "o.zip", {"inner.zip": nested.read_bytes()})
    )


def test_archive_with_too_many_entries_is_refused_before_unpacking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_ENTRIES", 3)
    assert "4 entries; Mneme unpacks at most 3" in refused(
        zipped(tmp_path / "a.zip", {str(number): "" for number in range(4)})
    )


@pytest.mark.parametrize(
    "name",
    [
        "../../outside.json", "/outside.json", "C:\\outside.json", "..\\outside.json", "a\0b", "CON", "nul.json", "-rf",
        "\x1b[2Jgone\n", "\u202egnp.exe", "~/.ssh/authorized_keys", "a/../../b",
    ],
)  # fmt: skip
async def test_archive_entry_names_cannot_write_outside_of_the_folder(
    name: str, tmp_path: Path, database: Database
) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    before = os.listdir(tmp_path)
    report = await imported(database, zipped(inside / "export.zip", {name: FINE}))
    assert (report.imported_count, report.read_error) == (3, None)
    assert os.listdir(tmp_path) == before
    with Source.open(inside / "export.zip", ImportOptions()) as opened:
        assert all(file.isprintable() for file in opened.file_names)


@pytest.mark.parametrize("name", ["a" * 300, "a/" * 3_000 + "b", "result.json/below"])
async def test_archive_entry_with_an_unwritable_file_name_is_reported_with_one_sentence(
    name: str, tmp_path: Path, database: Database
) -> None:
    path = zipped(tmp_path / "export.zip", {"result.json": FINE, name: FINE})
    report = await imported(database, path)
    assert report.imported_count == 3
    assert "cannot be unpacked here" in sentence(report.read_error or "")


def test_archive_entry_whose_name_is_not_valid_text_is_refused_as_damaged(tmp_path: Path) -> None:
    path = zipped(tmp_path / "export.zip", {"é.json": FINE})
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\xff\xff"))
    assert "damaged" in refused(path)


async def test_import_of_a_folder_does_not_follow_links(tmp_path: Path, database: Database) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "private.jsonl").write_text(LINE)
    (folder / "link.jsonl").symlink_to(tmp_path / "private.jsonl")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    assert "has nothing to import" in refused(folder)
    entry = zipfile.ZipInfo("link.jsonl")
    entry.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(entry, str(tmp_path / "private.jsonl"))
        archive.writestr("result.json", FINE)
    assert (await imported(database, tmp_path / "a.zip")).imported_count == 3


def test_folder_with_too_many_files_is_refused_before_any_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_FOLDER_ENTRIES", 6)
    folder = tmp_path / "export"
    for name in ("a", "a/b"):
        (folder / name).mkdir(parents=True)
    for name in ("result.json", "a/result.json", "a/b/one", "a/b/two"):
        (folder / name).write_text(FINE)
    with Source.open(folder, ImportOptions()) as opened:
        assert opened.kinds == ("telegram",)
    (folder / "a/b/three").write_text(FINE)
    monkeypatch.setattr(Path, "open", None)
    assert refused(folder) == (
        f"{folder} has more than 6 files and folders. Name the folder or the file of the export "
        "itself."
    )


def test_folder_with_too_many_levels_is_refused(tmp_path: Path) -> None:
    deepest = tmp_path.joinpath(*["a"] * source.MAX_FOLDER_DEPTH)
    deepest.mkdir(parents=True)
    (deepest / "result.json").write_text(FINE)
    with Source.open(tmp_path, ImportOptions()) as opened:
        assert opened.kinds == ("telegram",)
    (deepest / "a").mkdir()
    assert "has folders more than 32 levels deep" in refused(tmp_path)


def test_only_texts_and_databases_count_for_the_size_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_FOLDER_BYTES", 10_000)
    (tmp_path / "result.json").write_text(FINE)
    (tmp_path / "video.mp4").write_bytes(b"\0" * 20_000)
    with Source.open(tmp_path, ImportOptions()) as opened:
        assert opened.file_names == ["result.json"]
    # It takes no space on the disk.
    with (tmp_path / "huge.jsonl").open("wb") as file:
        file.write(f"{LINE}\n".encode() * 100)
        file.truncate(10**13)
    monkeypatch.setattr(source, "MAX_FOLDER_BYTES", 20_000_000_000)
    assert "has more than 20 GB of texts and databases" in refused(tmp_path)


async def test_unreadable_subfolder_is_reported_after_the_rest_is_imported(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "result.json").write_text(FINE)
    (tmp_path / "closed").mkdir()
    list_folder = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return list_folder(path)

    monkeypatch.setattr(os, "scandir", refuse)
    report = await imported(database, tmp_path)
    assert report.imported_count == 3
    assert "closed cannot be read: Permission denied." in sentence(report.read_error or "")
    assert "closed cannot be read: Permission denied." in refused(tmp_path / "closed")


def test_document_without_history_is_given_up_when_its_recognition_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.json"
    path.write_text('{"more": [' + "1," * 100_000 + "1]}")
    moments = iter(range(10**9))
    monkeypatch.setattr(time, "monotonic", lambda: next(moments))
    assert "300 seconds without finding a message" in refused(path)


async def test_broken_archive_entry_is_reported_and_earlier_entries_are_imported(
    tmp_path: Path, database: Database
) -> None:
    path = zipped(
        tmp_path / "export.zip", {"a.json": FINE, "b.json": FINE.replace("hello", "other")}
    )
    raw = bytearray(path.read_bytes())
    raw[raw.rindex(b"b.json", 0, raw.index(b"PK\x01\x02")) + 20] ^= 0xFF
    path.write_bytes(raw)
    report = await imported(database, path)
    assert report.imported_count == 3
    assert "b.json is damaged" in sentence(report.read_error or "")


def test_import_of_a_single_file_creates_no_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "TemporaryDirectory", None)
    with Source.open(write(tmp_path / "result.json", json.loads(FINE)), ImportOptions()) as opened:
        assert opened.kinds == ("telegram",)


async def test_import_gives_up_a_file_that_yields_nothing_for_long(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text(HEAD + '], "more": [' + "1," * 100_000 + "1]}")
    moments = iter(range(10**9))
    monkeypatch.setattr(time, "monotonic", lambda: next(moments))
    report = await imported(database, path)
    assert "300 seconds without finding a message" in sentence(report.read_error or "")
    assert report.imported_count == 3


async def test_hermes_database_with_a_giant_value_or_a_view_is_refused_with_one_sentence(
    tmp_path: Path, database: Database
) -> None:
    path = hermes_store(
        tmp_path / "hermes.db", [{"id": "s1"}], [{"role": "user", "content": "hello"}]
    )
    with closing(sqlite3.connect(path)) as store, store:
        store.execute("UPDATE sessions SET source = CAST(zeroblob(11000000) AS TEXT)")
    assert "cannot be read" in sentence((await imported(database, path)).read_error or "")
    with closing(sqlite3.connect(path)) as store, store:
        store.execute("ALTER TABLE sessions RENAME TO hidden")
        store.execute("CREATE VIEW sessions AS SELECT * FROM hidden")
    assert "not one of Hermes" in refused(path)


def test_import_size_limit_of_one_value_is_below_the_limits_of_a_whole_source() -> None:
    assert json_stream.MAX_VALUE_BYTES < source.ALWAYS_ALLOWED_BYTES < source.MAX_UNPACKED_BYTES
