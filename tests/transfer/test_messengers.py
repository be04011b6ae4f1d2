"""Telegram Desktop's result.json: chats at their own addresses, texts whole, media as lines, the
rest counted. A Discord data package: one's own messages by channel, in the order of time, whatever
the folders are called."""

from __future__ import annotations

import io
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from core.store.archive import TransferRecord
from core.transfer import messengers
from core.transfer.formats import NO_TEXT, NO_TIME, UNKNOWN_SHAPE, ImportOptions
from core.types import Scope
from tests.fixtures.exports import (
    NOT_INCLUDED,
    discord_package,
    telegram_account,
    telegram_chat,
    telegram_message,
    write,
    zipped,
)
from tests.fixtures.import_reading import sorted_out, taken_from
from tests.fixtures.tables import each_row


def read(
    export: Any, choices: ImportOptions | None = None
) -> tuple[list[TransferRecord], dict[str, int]]:
    raw = export if isinstance(export, bytes) else json.dumps(export).encode()
    return sorted_out(
        messengers.read_telegram(io.BytesIO(raw), "result.json", choices or ImportOptions())
    )


def test_telegram_chat_is_imported_as_one_session_with_its_senders() -> None:
    taken, skipped = read(
        telegram_chat(
            [
                telegram_message(1),
                telegram_message(2, "hi Tom", **{"from": "Ana", "from_id": "user42"}),
            ]
        )
    )
    assert not skipped
    first, second = taken
    chat = first.conversation
    assert (chat.name, chat.title, chat.address.key) == ("telegram:42", "Ana", "telegram:42")
    assert (first.role, first.sender, first.id, first.text) == ("user", "Tom", "1", "hello")
    assert first.at == datetime(2026, 5, 3, 12, 1, tzinfo=UTC)
    assert (second.role, second.sender) == ("user", "Ana")
    assert chat.scope == Scope.account("terminal", "local")


@each_row(
    ("kind", "number", "address"),
    [
        ("personal_chat", 42, "telegram:42"),
        ("private_group", 42, "telegram:-42"),
        ("private_supergroup", 1234567890, "telegram:-1001234567890"),
        ("public_channel", 9, "telegram:-1000000000009"),
        ("saved_messages", 777, "telegram:777"),
    ],
)
def test_imported_telegram_chat_has_the_address_that_the_bot_api_uses(
    kind: str, number: int, address: str
) -> None:
    (line,), _ = read(telegram_chat([telegram_message(1)], number, kind))
    assert line.conversation.address.key == address
    assert line.conversation.title == ("Saved Messages" if kind == "saved_messages" else "Ana")


def test_export_of_a_whole_telegram_account_is_imported_with_all_its_chats() -> None:
    chats = [
        telegram_chat([telegram_message(1)], 42),
        telegram_chat([telegram_message(1)], 43, name=None),
    ]
    left = [telegram_chat([telegram_message(5)], 44, "private_supergroup", "Old club"), "no chat"]
    taken, _ = read(telegram_account(chats, left))
    assert [(line.conversation.name, line.conversation.title) for line in taken] == [
        ("telegram:42", "Ana"),
        ("telegram:43", "Deleted account"),
        ("telegram:-1000000000044", "Old club"),
    ]


def test_telegram_text_pieces_are_joined_with_their_links_on_import() -> None:
    pieces = [
        "see ",
        {"type": "link", "text": "https://example.org"},
        " and ",
        {"type": "text_link", "text": "this", "href": "https://example.org/timetable"},
        {"type": "bold", "text": "!"},
        7,
    ]
    (line,), _ = read(telegram_chat([telegram_message(1, pieces)]))
    assert line.text == "see https://example.org and this (https://example.org/timetable)!"


def test_telegram_message_without_text_is_imported_from_its_entities() -> None:
    message = telegram_message(1, "kept")
    del message["text"]
    (line,), _ = read(telegram_chat([message]))
    assert line.text == "kept"


@each_row(
    ("values", "text"),
    [
        (
            {"photo": "photos/photo_1@03-05-2026.jpg", "width": 10},
            "[photo: photo_1@03-05-2026.jpg]\nlook",
        ),
        ({"photo": NOT_INCLUDED}, "[photo]\nlook"),
        ({"file": "files/a.pdf", "mime_type": "application/pdf"}, "[file: a.pdf]\nlook"),
        ({"file": NOT_INCLUDED, "file_name": "plan.odt"}, "[file: plan.odt]\nlook"),
        (
            {"file": "stickers/s.webp", "media_type": "sticker", "sticker_emoji": "🎉"},
            "[sticker: 🎉]\nlook",
        ),
        (
            {"file": "v.mp3", "media_type": "audio_file", "performer": "Amália", "title": "Barco"},
            "[audio: Amália – Barco]\nlook",
        ),
        (
            {"file": NOT_INCLUDED, "media_type": "voice_message", "duration_seconds": 3},
            "[voice message]\nlook",
        ),
        (
            {
                "contact_information": {
                    "first_name": "Rui",
                    "last_name": "",
                    "phone_number": "+351 1",
                }
            },
            "[contact: Rui +351 1]\nlook",
        ),
        (
            {
                "place_name": "Pier",
                "address": "Rua 1",
                "location_information": {"latitude": 41.15, "longitude": -8.6},
            },
            "[location: Pier, Rua 1, 41.15, -8.6]\nlook",
        ),
        (
            {"poll": {"question": "When?", "answers": [{"text": "noon"}, {"text": "nine"}]}},
            "[poll: When? — noon / nine]\nlook",
        ),
        ({"forwarded_from": "Rui"}, "[forwarded from Rui]\nlook"),
    ],
)
def test_attachment_in_a_telegram_export_becomes_a_line(values: dict[str, Any], text: str) -> None:
    (line,), _ = read(telegram_chat([telegram_message(1, "look", **values)]))
    assert line.text == text


def test_a_picture_alone_is_taken_and_an_empty_message_is_not() -> None:
    messages = [
        telegram_message(1, "", photo=NOT_INCLUDED),
        telegram_message(2, ""),
        telegram_message(3, "", forwarded_from="Rui"),
    ]
    (line,), skipped = read(telegram_chat(messages))
    assert line.text == "[photo]"
    assert skipped == {NO_TEXT: 2}


def test_import_counts_skipped_telegram_messages_by_reason() -> None:
    timeless = telegram_message(9)
    del timeless["date_unixtime"]
    timeless["date"] = "once"
    odd: list[Any] = [
        {
            "id": 1,
            "type": "service",
            "date_unixtime": "1",
            "actor": "Ana",
            "action": "pin_message",
            "text": "",
        },
        {"id": 2, "type": "service", "date_unixtime": "1", "action": "phone_call", "text": ""},
        {"id": 3, "type": "unsupported"},
        timeless,
        "nothing",
        {"id": "x"},
        telegram_message(10, date_unixtime="9" * 400, date="2026-05-03T13:00:00"),
    ]
    taken, skipped = read(telegram_chat(odd))
    assert [line.id for line in taken] == ["10"]
    assert skipped == {
        messengers.SERVICE_MESSAGE: 3,
        NO_TIME: 1,
        UNKNOWN_SHAPE: 2,
    }


def test_local_times_of_old_exports_are_of_the_persons_zone() -> None:
    message = telegram_message(1)
    del message["date_unixtime"]
    (line,), _ = read(telegram_chat([message]), ImportOptions(zone=ZoneInfo("Europe/Lisbon")))
    assert line.at == datetime(2026, 5, 3, 12, 1, tzinfo=UTC)


def test_the_bot_of_a_chat_is_the_assistant_and_others_by_name_or_id() -> None:
    def roles(kind: str, **choices: Any) -> list[str]:
        messages = [
            telegram_message(1),
            telegram_message(2, **{"from": "Helper", "from_id": "user42"}),
            telegram_message(3, **{"from": None, "from_id": "user9"}),
        ]
        return [
            line.role
            for line in read(telegram_chat(messages, 42, kind), ImportOptions(**choices))[0]
        ]

    assert roles("bot_chat") == ["user", "assistant", "user"]
    assert roles("private_group") == ["user", "user", "user"]
    assert roles("private_group", assistant_names=frozenset({"helper"})) == [
        "user",
        "assistant",
        "user",
    ]
    assert roles("private_group", assistant_names=frozenset({"9"})) == ["user", "user", "assistant"]


def test_control_characters_as_telegram_writes_them_are_read() -> None:
    raw = json.dumps(
        telegram_chat([telegram_message(1, "a?b \\x0B c"), telegram_message(2, "end")])
    ).encode()
    taken, _ = read(raw.replace(b'"a?b', b'"a\\x0Bb'))
    assert [line.text for line in taken] == ["a\x0bb \\x0B c", "end"]


def test_telegram_import_with_a_scope_option_uses_that_scope() -> None:
    scope = Scope.account("telegram", "777")
    (line,), _ = read(telegram_chat([telegram_message(1)]), ImportOptions(scope=scope))
    assert line.conversation.scope == scope


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return discord_package(tmp_path / "package")


def test_channels_of_a_discord_package_are_imported_as_sessions_of_the_importing_person(
    folder: Path,
) -> None:
    taken, skipped = taken_from(folder)
    assert [(line.conversation.name, line.conversation.title, line.text) for line in taken] == [
        ("discord:111111111111111111", "general in Harbour", "the ferry is late"),
        ("discord:111111111111111111", "general in Harbour", "[file: boat.png]"),
        ("discord:222222222222222222", "Direct Message with ana", 'two\nlines, and a "quote"'),
        ("discord:222222222222222222", "Direct Message with ana", "42"),
    ]
    assert {(line.role, line.sender) for line in taken} == {("user", "Tom")}
    assert (taken[0].id, taken[0].conversation.address.key) == (
        "1368200000000000001",
        "discord:111111111111111111",
    )
    assert taken[0].at == datetime(2026, 5, 3, 12, 0, tzinfo=UTC), (
        "package times are UTC and do not say so"
    )
    assert taken[2].at == datetime(2021, 8, 25, 22, 54, 5, 726_000, tzinfo=UTC)
    assert skipped == {NO_TEXT: 1}


def test_a_channel_that_begins_with_the_newest_is_read_from_the_oldest_on(folder: Path) -> None:
    newest_first = [
        {
            "ID": 1368200000000000001 + number,
            "Timestamp": f"2026-05-03 12:{number:02}:00",
            "Contents": str(number),
        }
        for number in reversed(range(60))
    ]
    write(folder / "messages" / "c111111111111111111" / "messages.json", newest_first)
    taken = [
        line.text
        for line in taken_from(folder)[0]
        if line.conversation.name == "discord:111111111111111111"
    ]
    assert taken == [str(number) for number in range(60)]


def test_discord_messages_alone_renamed_or_in_an_archive_are_recognised(
    folder: Path, tmp_path: Path
) -> None:
    wanted = [line.text for line in taken_from(folder)[0]]
    archive = zipped(tmp_path / "package.zip", folder)
    assert [line.text for line in taken_from(archive)[0]] == wanted
    alone = taken_from(folder / "messages")[0]
    assert [line.text for line in alone] == wanted
    assert {line.sender for line in alone} == {"Tom"}
    (folder / "messages").rename(folder / "Nachrichten")
    assert [line.text for line in taken_from(folder)[0]] == wanted


def test_broken_channel_of_a_discord_package_does_not_prevent_importing_the_others(
    folder: Path,
) -> None:
    messages = folder / "messages" / "c111111111111111111" / "messages.json"
    whole = messages.read_text()
    messages.write_text(whole[: whole.index("ferry")])
    taken, skipped = taken_from(folder)
    assert [line.text for line in taken] == ["[file: boat.png]", 'two\nlines, and a "quote"', "42"]
    assert skipped == {messengers.BROKEN_CHANNEL: 1, NO_TEXT: 1}


def test_discord_import_finds_channel_names_without_the_index_file(folder: Path) -> None:
    (folder / "messages" / "index.json").write_text("not json")
    shutil.rmtree(folder / "account")
    place = folder / "messages" / "c111111111111111111"
    write(
        place / "messages.json",
        [
            {
                "ID": "175928847299117063",
                "Timestamp": "2016-04-30",
                "Contents": "early",
                "Attachments": None,
            },
            {"ID": 1, "Timestamp": "once", "Contents": "never"},
            {"Contents": "no id"},
            "odd",
        ],
    )
    taken, skipped = taken_from(folder)
    assert (taken[0].conversation.title, taken[0].sender) == ("general in Harbour", None)
    assert skipped == {NO_TIME: 1, UNKNOWN_SHAPE: 2}
