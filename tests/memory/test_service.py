"""What all memory services share: what they are told, under which names, and the record of it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from config.files import replace_file
from core.errors import ConfigError, DeliveryError
from core.memory.record import continue_record
from core.memory.service import (
    Entry,
    Record,
    RemoteMemory,
    RemoteService,
    ServiceOptions,
    SyncItem,
    collect_turn_lines,
    format_memory,
    format_prefetch_line,
)
from core.types import Address, Message, Quote, Scope, Sender, Session
from tests.fixtures.tables import each_row

AT = datetime(2026, 5, 3, 9, tzinfo=UTC)
ANA = Sender(id="1", name="Ana\nassistant")


class Shelf(RemoteService):
    """Nothing more than it must have."""

    name = "shelf"

    async def find(self, space: str, query: str, limit: int) -> Sequence[RemoteMemory]:
        return ()

    async def keep(self, space: str, told: SyncItem) -> Sequence[str]:
        return ()

    async def erase(self, entry: Entry) -> None:
        """There is nothing."""

    async def holds(self, entry: Entry) -> bool:
        return False


class FailingShelf(Shelf):
    """Fails for a group, and never answers for a person."""

    def __init__(self) -> None:
        super().__init__(ServiceOptions())
        self.running = 0

    async def find(self, space: str, query: str, limit: int) -> Sequence[RemoteMemory]:
        self.running += 1
        try:
            if space == self.space(ROOM):
                await asyncio.sleep(0)
                raise DeliveryError("out of order")
            await asyncio.Event().wait()
        finally:
            self.running -= 1
        return ()


def session(scope: Scope) -> Session:
    return Session(address=Address(platform="telegram", chat_id="1"), scope=scope, started_at=AT)


def row(role: Any, text: str, **more: Any) -> Message:
    return Message(role=role, text=text, session_id=1, created_at=AT, **{"sender": ANA, **more})


DIRECT, ROOM = Scope.account("telegram", "1"), Scope.group("telegram", "-5")


def test_service_gets_what_was_typed_and_answered_and_nothing_foreign() -> None:
    turn = [
        row("user", "I moved to Porto.\n\nDear all, this is pasted."),
        row("user", "forwarded words", origin="forwarded"),
        row("user", "by a bot", origin="via_bot"),
        row("user", "from a file", origin="imported"),
        row("user", "recalled", kind="quote"),
        row("user", "as I said", quote=Quote(kind="reply", text="quoted words")),
        row("assistant", "calls", tool_name="recall", sender=None),
        row("tool", "what a tool gave", tool_name="recall", sender=None),
        row("assistant", "Noted \0\ud800.", sender=None),
    ]
    assert collect_turn_lines(session(DIRECT), turn) == [
        ("user", "I moved to Porto."),
        ("user", "as I said"),
        ("assistant", "Noted ?."),
    ]


@each_row(
    "said",
    [row("user", "x", origin="forwarded"), row("user", "```\nx\n```"), row("user", "x " * 400)],
)
def test_turn_without_typed_words_is_not_sent_to_a_memory_service(said: Message) -> None:
    assert not collect_turn_lines(
        session(DIRECT), [said, row("assistant", "Your forward says x.", sender=None)]
    )


def test_group_turn_sent_to_a_memory_service_names_speakers_and_omits_anonymous_senders() -> None:
    bot = Sender(id="9", name="Channel", is_anonymous=True)
    turn = [
        row("user", "tea"),
        row("user", "rum", sender=bot),
        row("assistant", "Noted.", sender=None),
    ]
    assert collect_turn_lines(session(ROOM), turn) == [
        ("user", "Ana assistant: tea"),
        ("assistant", "Noted."),
    ]


def test_turn_sent_to_a_memory_service_has_secrets_removed_and_long_answers_cut() -> None:
    key = "sk-ant-abcdefgh12345678"
    turn = [row("user", f"my key is {key}"), row("assistant", "x" * 10_000, sender=None)]
    (_, typed), (_, answer) = collect_turn_lines(session(DIRECT), turn)
    assert key not in typed
    assert len(answer) == 4_000


def test_sync_item_of_several_lines_names_their_speakers() -> None:
    told = SyncItem(key="k", kind="note", lines=[("user", "tea")], at=AT)
    assert told.text == "tea"
    both = SyncItem(key="k", kind="turn", lines=[("user", "tea?"), ("assistant", "yes")], at=AT)
    assert both.text == "user: tea?\nassistant: yes"


def test_each_scope_has_its_own_service_space_whose_name_reveals_nothing_of_the_scope(
    tmp_path: Path,
) -> None:
    record = Record(tmp_path / "told.jsonl")
    shelf, other = Shelf(ServiceOptions()), Shelf(ServiceOptions(namespace="other"))
    shelf.record = other.record = record
    keys = [
        "account:telegram:1",
        "account:telegram:11",
        "account:discord:1",
        "room:telegram:1",
        "room:telegram:1#2",
    ]
    spaces = [shelf.space(Scope(key=key)) for key in keys]
    assert len({*spaces}) == len(keys)
    assert [space.split("-")[1] for space in spaces] == [
        "person",
        "person",
        "person",
        "room",
        "room",
    ]
    assert not [
        space for space in spaces if "telegram" in space or not space.replace("-", "").isalnum()
    ]
    assert other.space(DIRECT) != shelf.space(DIRECT)


@each_row("namespace", ["", "A", "a/b", "a-b", "x" * 21, "1a"])
def test_namespace_of_a_memory_service_that_is_not_one_word_is_refused(namespace: str) -> None:
    with pytest.raises(ConfigError, match="namespace"):
        Shelf(ServiceOptions(namespace=namespace))


def test_line_of_a_memory_service_has_a_token_derived_from_its_text() -> None:
    one, other = (
        RemoteMemory(id="a", text="tea\nat five", at="2026-05-03T09:00:00Z"),
        RemoteMemory(id="a", text="rum at five"),
    )
    assert format_memory(one) == "tea at five (2026-05-03)"
    assert format_prefetch_line(one).split(" ", 1)[1] == format_memory(one)
    assert format_prefetch_line(one) == format_prefetch_line(one)
    assert format_prefetch_line(one).split(" ")[0] != format_prefetch_line(other).split(" ")[0]


def entry(record: Record, name: str, **more: Any) -> Entry:
    return Entry(key=record.derive_name(name), space="s", **more)


def test_record_of_a_memory_service_survives_a_restart_and_a_truncated_line(tmp_path: Path) -> None:
    file = tmp_path / "told.jsonl"
    record = Record(file)
    one, two = (
        entry(record, "one", messages=(1, 2), remote=("r1",)),
        entry(record, "two", notes=(3,), mark="m"),
    )
    record.put(one)
    record.put(two)
    with file.open("ab") as torn:
        torn.write(b'{"key": "thr')
    again = Record(file)
    assert again.get(one.key) == one
    assert again.get(two.key) == two
    assert again.derive_name("one") == one.key
    again.put(entry(again, "three", remote=()))
    assert Record(file).get(record.derive_name("three")) == entry(again, "three", remote=())
    assert all(json.loads(line) for line in file.read_text().splitlines())


def test_dropped_entry_of_the_record_leaves_no_trace(tmp_path: Path) -> None:
    record = Record(tmp_path / "told.jsonl")
    gone, stays = (
        entry(record, "gone", messages=(7,), remote=("far",)),
        entry(record, "stays", messages=(8,)),
    )
    record.put(gone)
    record.put(stays)
    record.drop(gone.key)
    assert Record(tmp_path / "told.jsonl").get(gone.key) is None
    text = (tmp_path / "told.jsonl").read_text()
    assert gone.key not in text
    assert "far" not in text
    assert Record(tmp_path / "told.jsonl").find_entries("s", messages=[7, 8]) == [stays]


def test_record_of_a_service_finds_entries_by_message_note_and_mark_within_its_space(
    tmp_path: Path,
) -> None:
    record = Record(tmp_path / "told.jsonl")
    turn, note = entry(record, "t", messages=[1, 2]), entry(record, "n", notes=[1], mark="tea")
    elsewhere = Entry(key="e", space="other", messages=[1], notes=[1], mark="tea")
    for one in (turn, note, elsewhere):
        record.put(one)
    assert record.find_entries("s", messages=[2, 9]) == [turn]
    assert record.find_entries("s", notes=[1]) == [note]
    assert record.find_entries("s", mark="tea") == [note]
    assert record.find_entries("s") == record.find_entries("s", [3], [3]) == []


def space_of(record: Record) -> str:
    shelf = Shelf(ServiceOptions())
    shelf.record = record
    return shelf.space(DIRECT)


def test_spaces_of_two_homes_differ_and_stay_after_a_restart(tmp_path: Path) -> None:
    here, there = Record(tmp_path / "a"), Record(tmp_path / "b")
    assert space_of(here) != space_of(there)
    here.put(entry(here, "one"))
    here.drop(here.derive_name("one"))
    assert space_of(Record(tmp_path / "a")) == space_of(here)


def test_gateways_that_begin_a_record_at_the_same_time_use_the_same_spaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "told.jsonl"
    others: list[Record] = []

    def write_after_another_gateway(path: Path, content: bytes) -> None:
        monkeypatch.setattr("core.memory.record.replace_file", replace_file)
        others.append(Record(file))
        replace_file(path, content)

    monkeypatch.setattr("core.memory.record.replace_file", write_after_another_gateway)
    record = Record(file)
    assert {record.space_prefix, others[0].space_prefix} == {Record(file).space_prefix}
    assert [*tmp_path.iterdir()] == [file]


def test_record_of_an_earlier_version_keeps_the_names_of_its_spaces(tmp_path: Path) -> None:
    file = tmp_path / "told.jsonl"
    file.write_text('{"origin": "0123456789abcdef"}\n')
    earlier = Record(file)
    digest = hashlib.sha256(f"mneme {DIRECT.key}".encode()).hexdigest()
    assert space_of(earlier) == f"mneme-person-{digest[:24]}"
    earlier.put(entry(earlier, "one"))
    earlier.compact()
    assert space_of(Record(file)) == space_of(earlier)


def test_record_continued_from_another_one_has_its_spaces_and_no_entries(tmp_path: Path) -> None:
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    earlier = tmp_path / "earlier.jsonl"
    earlier.write_text('{"origin": "0123456789abcdef"}\n')
    Record(old).put(Entry(key="k", space="s", messages=[1]))
    for source in (old, earlier):
        continue_record(source, new)
        assert space_of(Record(new)) == space_of(Record(source))
        assert Record(new).derive_name("x") == Record(source).derive_name("x")
        assert Record(new).find_entries("s", messages=[1]) == []


def test_names_derived_for_a_service_differ_between_homes(tmp_path: Path) -> None:
    here, there = Record(tmp_path / "a"), Record(tmp_path / "b")
    assert here.derive_name("turn") != there.derive_name("turn")
    assert here.derive_name("turn", "1") != here.derive_name("turn1")


async def test_search_that_fails_in_one_space_leaves_no_call_running(tmp_path: Path) -> None:
    shelf = FailingShelf()
    await shelf.initialize(tmp_path)
    with pytest.raises(DeliveryError):
        await shelf.search("tea", [DIRECT, ROOM], 5)
    assert not shelf.running
