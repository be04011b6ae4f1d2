"""An export with something odd in any place of it is taken as far as it goes, and never breaks an
import."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.errors import HistoryError
from core.store.archive import Archive, SkippedRecord, TransferRecord
from core.store.sqlite.database import Database
from core.transfer.formats import ImportOptions
from core.transfer.source import Source
from tests.fixtures.exports import (
    chatgpt_conversation,
    chatgpt_node,
    claude_conversation,
    claude_message,
    discord_package,
    telegram_account,
    telegram_chat,
    telegram_message,
)

pytestmark = pytest.mark.slow

ODD: tuple[Any, ...] = (
    None,
    True,
    10**30,
    "x\ud800\0y",
    "9" * 200,
    [["ferry"], None],
    {"type": ["ferry"]},
)
Place = tuple[str | int, ...]


def telegram() -> Any:
    rich = [
        {"type": "bold", "text": "ferry"},
        {"type": "text_link", "text": "here", "href": "https://x.example"},
    ]
    poll = {"question": "When?", "answers": [{"text": "May", "voters": 1}]}
    place = {"latitude": 1.5, "longitude": 2.5}
    card = {"first_name": "Ana", "phone_number": "1"}
    messages = [
        telegram_message(1, rich, forwarded_from="Ben"),
        telegram_message(2, "", poll=poll, photo="photos/a.jpg"),
        telegram_message(
            3, "", location_information=place, place_name="Quay", contact_information=card
        ),
        telegram_message(4, "", file="f.ogg", media_type="audio_file", performer="P", title="T"),
    ]
    return telegram_account(
        [telegram_chat(messages)], [telegram_chat([telegram_message(6)], 43, "public_channel")]
    )


def chatgpt() -> Any:
    pictured = {
        "content_type": "multimodal_text",
        "parts": [{"content_type": "image_asset_pointer"}, "ferry"],
    }
    nodes = [
        chatgpt_node("1", "root", text="hello"),
        chatgpt_node(
            "2", "1", "assistant", {"content_type": "code", "language": "python", "text": "1"}
        ),
        chatgpt_node("3", "2", "user", pictured, metadata={"attachments": [{"name": "a.txt"}]}),
    ]
    return [
        chatgpt_conversation(nodes, "3"),
        chatgpt_conversation([chatgpt_node("1", "root", text="b")], "1", id="b"),
    ]


def claude() -> Any:
    attached = [{"file_name": "a.txt", "extracted_content": "ferry"}]
    messages = [
        claude_message(1, attachments=attached, files=[{"file_name": "b.png"}]),
        claude_message(2, "assistant"),
    ]
    return [claude_conversation(messages), claude_conversation([claude_message(3)], uuid="cc-2")]


def places(value: Any, above: Place = ()) -> Iterator[Place]:
    """Every place in a document but its root."""
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, one in inside:
        yield (*above, key)
        yield from places(one, (*above, key))


def spoilt(document: Any) -> Iterator[tuple[Place, Any]]:
    """The document with each odd value in each place."""
    for place in list(places(document)):
        for odd in ODD:
            changed = copy.deepcopy(document)
            inner = changed
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = odd
            yield place, changed


@pytest.mark.parametrize("made", [telegram, chatgpt, claude])
async def test_odd_value_anywhere_in_an_export_does_not_break_the_import(
    made: Callable[[], Any], tmp_path: Path, database: Database
) -> None:
    path = tmp_path / "export.json"
    taken: list[TransferRecord] = []
    for number, (place, document) in enumerate(spoilt(made())):
        path.write_text(json.dumps(document))
        with contextlib.suppress(HistoryError), Source.open(path, ImportOptions()) as source:
            for record in source.read_records():
                assert isinstance(record, TransferRecord | SkippedRecord), place
                if isinstance(record, TransferRecord) and number % 7 == 0:
                    taken.append(record)
    report = await Archive(database).import_records(iter(taken), lambda _: None)
    assert report.imported_count + report.known_count == len(taken)
    assert report.imported_count


@pytest.mark.parametrize("odd", [json.dumps(odd) for odd in ODD] + ["{", "[1,", "\0"])
@pytest.mark.parametrize("name", ["index.json", "channel.json", "messages.json", "user.json"])
def test_odd_file_in_a_discord_package_does_not_prevent_importing_the_rest(
    name: str, odd: str, tmp_path: Path
) -> None:
    package = discord_package(tmp_path / "package")
    for path in sorted(package.rglob(name))[:1]:
        path.write_text(odd)
    with Source.open(package, ImportOptions()) as source:
        found = list(source.read_records())
    assert any(isinstance(record, TransferRecord) for record in found)
