"""What goes to state.db as JSON comes back as it was."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.store import rows
from core.types import Address, Answer, Attachment, Button, Command, File, Inbound, Scope, Sender
from tests.fixtures.tables import each_row

pytestmark = pytest.mark.slow

text = st.text()
maybe = st.none() | text
moments = st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
command = st.builds(Command, name=text, arguments=text)
inbounds = st.builds(
    Inbound,
    kind=st.sampled_from(("message", "edit", "delete", "action")),
    address=st.builds(Address, platform=text, chat_id=text, thread_id=maybe),
    scope=st.builds(Scope, key=text),
    sender=st.builds(Sender, id=text, name=text, is_anonymous=st.booleans()),
    text=text,
    message_id=text,
    sent_at=moments,
    is_direct=st.booleans(),
    is_addressed=st.booleans(),
    command=st.none() | command,
    reply_to=maybe,
    attachments=st.lists(
        st.builds(
            Attachment,
            kind=text,
            name=text,
            mime=maybe,
            size_bytes=st.none() | st.integers(0, 2**53),
            reference=maybe,
        ),
        max_size=3,
    ).map(tuple),
    is_interaction=st.booleans(),
)
answers = st.builds(
    Answer,
    text=text,
    buttons=st.lists(st.builds(Button, label=text, command=command, id=text), max_size=3).map(
        tuple
    ),
    files=st.lists(st.builds(File, name=text, content=st.binary(), mime=text), max_size=3).map(
        tuple
    ),
    is_private=st.booleans(),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
block_lists = st.lists(st.dictionaries(text, json_values, max_size=4), max_size=3)


@given(inbounds)
def test_event_is_the_same_after_dump_and_load(inbound: Inbound) -> None:
    assert rows.load_inbound(rows.dump_inbound(inbound)) == inbound


@each_row(("is_forward", "origin"), [(True, "forwarded"), (False, "typed")])
def test_an_event_that_was_stored_before_there_were_origins_is_read(
    is_forward: bool, origin: str
) -> None:
    stored = {
        "kind": "message",
        "address": {"platform": "telegram", "chat_id": "42", "thread_id": None},
        "scope": "account:telegram:42",
        "sender": {"id": "42", "name": "Ana", "is_nobody": False},
        "text": "the ferry",
        "message_id": "7",
        "sent_at": "2026-05-03T08:00:00+00:00",
        "is_direct": True,
        "is_addressed": True,
        "command": None,
        "reply_to": None,
        "is_interaction": False,
        "is_forward": is_forward,
        "link_base": None,
        "attachments": [],
    }
    inbound = rows.load_inbound(json.dumps(stored))
    assert (inbound.origin, inbound.scope) == (origin, Scope(key="account:telegram:42"))


@given(st.none() | answers)
def test_answer_is_the_same_after_dump_and_load(answer: Answer | None) -> None:
    assert rows.load_answer(rows.dump_answer(answer)) == answer


@given(block_lists)
def test_blocks_round_trip_with_the_order_of_their_keys(blocks: list[dict[str, object]]) -> None:
    loaded = rows.load_blocks(rows.dump_blocks(blocks, "\0 never equal"))
    assert loaded == tuple(blocks)
    assert json.dumps(loaded) == json.dumps(blocks)


def test_missing_message_blocks_and_an_empty_list_are_stored_differently() -> None:
    assert rows.load_blocks(None) is None
    assert rows.load_blocks(rows.dump_blocks([], "hello")) == ()


def test_blocks_equal_to_the_text_are_not_stored() -> None:
    assert rows.dump_blocks([{"text": "hello", "type": "text"}], "hello") is None
    assert rows.dump_blocks([{"type": "text", "text": "hello "}], "hello") is not None
    marked = {"type": "text", "text": "hello", "citations": None}
    assert rows.dump_blocks([marked], "hello") is not None


def test_stored_message_blocks_may_be_any_mapping_type() -> None:
    inner = MappingProxyType({"query": "ferry"})
    block = MappingProxyType({"type": "tool_use", "input": inner})
    assert rows.load_blocks(rows.dump_blocks([block], "")) == (
        {"type": "tool_use", "input": {"query": "ferry"}},
    )
    with pytest.raises(TypeError, match="object cannot be stored"):
        rows.dump_json({"input": object()})


@given(
    st.text(st.characters(), max_size=20)
    | st.text(st.sampled_from("a\ud83d\ude00\udfff\ufeff\0"), max_size=8)
)
def test_any_text_can_be_stored_after_cleaning(value: str) -> None:
    cleaned = rows.clean(value)
    connection = sqlite3.connect(":memory:")
    assert connection.execute("SELECT ?", (cleaned,)).fetchone()[0] == cleaned
    connection.close()
    if not any("\ud800" <= sign <= "\udfff" for sign in value):
        assert cleaned == value


@each_row(
    ("value", "expected"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\udc00", "\ufffd"),
        ("a\ud83d", "a\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ufeffx\0y", "\ufeffx\0y"),
    ],
)
def test_lone_surrogates_are_replaced_and_pairs_joined(value: str, expected: str) -> None:
    assert rows.clean(value) == expected
    assert rows.load_blocks(rows.dump_blocks([{"t": value}], "")) == ({"t": expected},)


@given(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_a_moment_round_trips_to_the_microsecond(at: datetime) -> None:
    assert rows.to_datetime(rows.to_timestamp(at)) == at


def test_times_of_other_zones_are_stored_as_utc_and_naive_times_refused() -> None:
    lisbon = datetime(2026, 5, 3, 9, 0, tzinfo=timezone(timedelta(hours=1)))
    assert rows.to_datetime(rows.to_timestamp(lisbon)) == datetime(2026, 5, 3, 8, 0, tzinfo=UTC)
    with pytest.raises(ValueError, match="time zone"):
        rows.to_timestamp(datetime(2026, 5, 3))  # noqa: DTZ001


def test_number_beyond_64_bits_is_mapped_to_an_id_that_does_not_exist() -> None:
    assert [rows.int64_or_zero(number) for number in (7, -7, 10**30, -(10**30))] == [7, -7, 0, 0]
