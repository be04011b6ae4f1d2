"""What is brought to an import is recognised by its content, wherever it lies, and refused in one
sentence."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import HistoryError
from core.store.archive import Archive
from core.store.sqlite.database import Database
from core.transfer import messengers
from core.transfer.formats import ImportOptions
from core.transfer.source import FORMATS, Source
from core.types import Scope
from tests.fixtures.exports import (
    chatgpt_conversation,
    chatgpt_node,
    claude_conversation,
    claude_message,
    discord_package,
    hermes_store,
    telegram_account,
    telegram_chat,
    telegram_message,
    write,
    zipped,
)
from tests.fixtures.import_reading import taken_from

LINE = {"session": "s1", "role": "user", "text": "hello", "at": "2026-05-03"}
SERVICE = {"id": 9, "type": "service", "date_unixtime": "1", "action": "pin_message", "text": ""}


def telegram(path: Path) -> Path:
    return write(path, telegram_chat([telegram_message(1)]))


def account(path: Path) -> Path:
    return write(path, telegram_account([telegram_chat([telegram_message(1)])]))


def chatgpt(path: Path) -> Path:
    return write(path, [chatgpt_conversation([chatgpt_node("1", "root", text="hello")], "1")])


def claude(path: Path) -> Path:
    return write(path, [{"uuid": "empty"}, claude_conversation([claude_message(1)])])


def hermes(path: Path) -> Path:
    return hermes_store(path, [{"id": "s1"}], [{"role": "user", "content": "hello"}])


def lines(path: Path) -> Path:
    path.write_text("not a line\n" + json.dumps(LINE) + "\n")
    return path


def object_lines(path: Path) -> Path:
    path.write_bytes(b"\xef\xbb\xbf" + f"{json.dumps(LINE)}\n{json.dumps(LINE)}\n".encode())
    return path


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (telegram, "telegram"),
        (account, "telegram"),
        (chatgpt, "chatgpt"),
        (claude, "claude"),
        (hermes, "hermes"),
        (lines, "lines"),
        (object_lines, "lines"),
    ],
)
def test_import_recognises_a_format_by_its_content_and_not_by_its_file_name(
    made: Callable[[Path], Path], kind: str, tmp_path: Path
) -> None:
    with Source.open(made(tmp_path / "download (3)"), ImportOptions()) as source:
        assert source.kinds == (kind,)
        assert kind in FORMATS
        assert any(getattr(record, "text", "") == "hello" for record in source.read_records())


def test_import_recognises_a_lines_file_whose_first_line_exceeds_a_megabyte(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(json.dumps({**LINE, "text": "hello " * 300_000}) + "\n")
    with Source.open(path, ImportOptions()) as source:
        assert source.kinds == ("lines",)


def test_export_in_one_line_of_json_is_not_recognised_as_a_lines_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(telegram_chat([telegram_message(1)])))
    assert taken_from(path)[0][0].conversation.name == "telegram:42"


def test_in_folders_and_archives_everything_that_is_history_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    (folder / "chats" / "photos").mkdir(parents=True)
    telegram(folder / "chats" / "result.json")
    chatgpt(folder / "conversations-000.json")
    object_lines(folder / "old.jsonl")
    write(folder / "user.json", {"id": "u", "email": "tom@example.org"})
    write(folder / "shared_conversations.json", [{"id": "x", "conversation_id": "c"}])
    (folder / "chats" / "photos" / "photo.jpg").write_bytes(b"\xff\xd8\xff" + bytes(100))
    (folder / "README.txt").write_text("read me")
    wanted = {"telegram:42", "chatgpt:c-1", "s1"}
    for path in (folder, zipped(tmp_path / "all.zip", folder)):
        assert {line.conversation.name for line in taken_from(path)[0]} == wanted
        with Source.open(path, ImportOptions()) as source:
            assert source.file_names == ["chats/result.json", "conversations-000.json", "old.jsonl"]


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b'{"name": "Ana", "type": "personal_chat", "id": 1, "mess', "breaks off"),
        (b'[{"title": "x", "create', "breaks off"),
        (b'{"colour": "blue"}', "has nothing to import"),
        (b"[1, 2, 3]", "has nothing to import"),
        (b"[]", "has nothing to import"),
        (b"{nonsense}", "not valid JSON"),
        (b"<!DOCTYPE html><html>", "Machine-readable JSON"),
        (
            b"# Mneme\n\nA persistent assistant.\n\n```\nmneme import result.json\n```\n",
            "is a text without messages",
        ),
        (b"date,sender,text\n2026-05-03,Tom,hello\n", "is a text without messages"),
        (
            b"[Mneme](https://example.org) is an assistant\n",
            "has nothing to import|not valid JSON",
        ),
        ("Приве́т, мир".encode(), "is a text without messages"),
        (b"", "is empty"),
        (b"PK\x03\x04 and no archive", "damaged"),
        (b"PK\x05\x06" + bytes(18), "has nothing to import"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF\0\n\n", "has nothing to import"),
        (b"SQLite format 3\0" + bytes(500), "cannot be read"),
    ],
)
def test_source_that_cannot_be_imported_is_refused_with_one_sentence(
    raw: bytes, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(raw)
    with pytest.raises(HistoryError, match=sentence) as raised:
        taken_from(path)
    assert str(path) in str(raised.value)


def test_import_refuses_a_missing_file_and_an_empty_folder_with_one_sentence(
    tmp_path: Path,
) -> None:
    with pytest.raises(FileNotFoundError):
        taken_from(tmp_path / "missing")
    with pytest.raises(HistoryError, match="has nothing to import"):
        taken_from(tmp_path)


def test_import_refuses_a_damaged_archive_with_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("result.json", json.dumps(telegram_chat([telegram_message(1)])))
    raw = bytearray(path.read_bytes())
    raw[60] ^= 0xFF
    path.write_bytes(raw)
    with pytest.raises(HistoryError, match=r"export\.zip/result\.json is damaged"):
        taken_from(path)


async def take(database: Database, path: Path, scope: Scope | None = None) -> dict[str, object]:
    with Source.open(path, ImportOptions(scope=scope) if scope else ImportOptions()) as source:
        report = await Archive(database).import_records(source.read_records(), lambda _: None)
    names = {"taken": "imported_count", "known": "known_count", "broken": "read_error"}
    return {key: getattr(report, name) for key, name in names.items()} | {
        "sessions": len(report.session_ids),
        "skipped": dict(report.skipped_counts),
    }


@pytest.mark.parametrize("made", [telegram, account, chatgpt, claude, hermes, discord_package])
async def test_import_of_the_same_source_twice_adds_nothing(
    made: Callable[[Path], Path], tmp_path: Path, database: Database
) -> None:
    path = made(tmp_path / "export")
    first = await take(database, path)
    again = await take(database, path)
    assert (first["known"], again["taken"], again["known"]) == (0, 0, first["taken"])
    assert first["taken"]
    assert again["sessions"] == first["sessions"]


async def test_a_longer_export_of_the_same_chat_adds_what_is_new(
    tmp_path: Path, database: Database
) -> None:
    path = tmp_path / "result.json"
    await take(database, telegram(path))
    write(path, telegram_chat([telegram_message(1), SERVICE, telegram_message(2, "new")]))
    report = await take(database, path)
    assert (report["taken"], report["known"], report["sessions"]) == (1, 1, 1)
    assert report["skipped"] == {messengers.SERVICE_MESSAGE: 1}


async def test_import_keeps_messages_before_the_break_of_a_truncated_file(
    tmp_path: Path, database: Database
) -> None:
    path = tmp_path / "result.json"
    raw = json.dumps(telegram_chat([telegram_message(number) for number in range(30)]))
    path.write_text(raw[: raw.index('"id": 20,')])
    report = await take(database, path)
    assert report["taken"] == 20
    assert "breaks off" in str(report["broken"])
    path.write_text(raw)
    report = await take(database, path)
    assert (report["taken"], report["known"], report["broken"]) == (10, 20, None)


async def test_history_imported_into_one_scope_is_not_exported_from_another(
    tmp_path: Path, database: Database
) -> None:
    bob = Scope.account("telegram", "7")
    await take(database, object_lines(tmp_path / "a"), bob)
    await take(database, telegram(tmp_path / "b"), bob)
    assert [
        line
        async for line in Archive(database).export(frozenset({Scope.account("terminal", "local")}))
    ] == []
    assert len([line async for line in Archive(database).export(frozenset({bob}))]) == 2
