"""A Discord data package: one's own messages by channel, in the order of time, whatever the folders are called."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.transfer import discord as package
from core.transfer.formats import EMPTY, SHAPELESS, TIMELESS
from tests.fixtures.exports import discord_package, write, zipped
from tests.fixtures.import_reading import taken_from


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return discord_package(tmp_path / "package")


def test_channels_become_sessions_of_their_owner(folder: Path) -> None:
    taken, skipped = taken_from(folder)
    assert [(line.session, line.title, line.text) for line in taken] == [
        ("discord:111111111111111111", "general in Harbour", "the ferry is late"),
        ("discord:111111111111111111", "general in Harbour", "[file: boat.png]"),
        ("discord:222222222222222222", "Direct Message with ana", 'two\nlines, and a "quote"'),
        ("discord:222222222222222222", "Direct Message with ana", "42"),
    ]
    assert {(line.role, line.sender) for line in taken} == {("user", "Tom")}
    assert (taken[0].id, taken[0].address.key) == ("1368200000000000001", "discord:111111111111111111")
    assert taken[0].at == datetime(2026, 5, 3, 12, 0, tzinfo=UTC), "package times are UTC and do not say so"
    assert taken[2].at == datetime(2021, 8, 25, 22, 54, 5, 726_000, tzinfo=UTC)
    assert skipped == {EMPTY: 1}


def test_a_channel_that_begins_with_the_newest_is_read_from_the_oldest_on(folder: Path) -> None:
    newest_first = [
        {"ID": 1368200000000000001 + number, "Timestamp": f"2026-05-03 12:{number:02}:00", "Contents": str(number)}
        for number in reversed(range(60))
    ]
    write(folder / "messages" / "c111111111111111111" / "messages.json", newest_first)
    taken = [line.text for line in taken_from(folder)[0] if line.session == "discord:111111111111111111"]
    assert taken == [str(number) for number in range(60)]


def test_the_messages_alone_other_names_and_an_archive_are_known_too(folder: Path, tmp_path: Path) -> None:
    wanted = [line.text for line in taken_from(folder)[0]]
    archive = zipped(tmp_path / "package.zip", folder)
    assert [line.text for line in taken_from(archive)[0]] == wanted
    alone = taken_from(folder / "messages")[0]
    assert [line.text for line in alone] == wanted
    assert {line.sender for line in alone} == {"Tom"}
    (folder / "messages").rename(folder / "Nachrichten")
    assert [line.text for line in taken_from(folder)[0]] == wanted


def test_a_broken_channel_does_not_keep_back_the_others(folder: Path) -> None:
    messages = folder / "messages" / "c111111111111111111" / "messages.json"
    whole = messages.read_text()
    messages.write_text(whole[: whole.index("ferry")])
    taken, skipped = taken_from(folder)
    assert [line.text for line in taken] == ["[file: boat.png]", 'two\nlines, and a "quote"', "42"]
    assert skipped == {package.BROKEN: 1, EMPTY: 1}


def test_names_are_found_elsewhere_when_they_are_missing(folder: Path) -> None:
    (folder / "messages" / "index.json").write_text("not json")
    shutil.rmtree(folder / "account")
    place = folder / "messages" / "c111111111111111111"
    write(
        place / "messages.json",
        [
            {"ID": "175928847299117063", "Timestamp": "2016-04-30", "Contents": "early", "Attachments": None},
            {"ID": 1, "Timestamp": "once", "Contents": "never"},
            {"Contents": "no id"},
            "odd",
        ],
    )
    taken, skipped = taken_from(folder)
    assert (taken[0].title, taken[0].sender) == ("general in Harbour", None)
    assert skipped == {TIMELESS: 1, SHAPELESS: 2}
