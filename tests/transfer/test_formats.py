"""What formats share: JSON is built as the standard parser builds it, mended, refused in clear
sentences."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import HistoryError
from core.transfer.json_stream import json_values
from tests.fixtures.tables import each_row

INTEGERS = st.integers(1 - 2**63, 2**63 - 1)
"""Ids and times have no more digits; a longer number is refused."""
JSON = st.recursive(
    st.none()
    | st.booleans()
    | INTEGERS
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


class _Drops:
    """A stream that gives `size` bytes at a time, whatever is asked."""

    def __init__(self, raw: bytes, size: int) -> None:
        self._raw = io.BytesIO(raw)
        self._size = size

    def read(self, _: int = -1) -> bytes:
        return self._raw.read(self._size)


def parsed(raw: bytes, size: int = 1 << 16, place: str = "item") -> list[Any]:
    return [value for _, value in json_values(_Drops(raw, size), "it", {place})]  # type: ignore[arg-type]


@given(st.lists(JSON, max_size=3), st.integers(1, 9))
@pytest.mark.slow
def test_json_stream_returns_the_values_of_the_standard_parser(
    values: list[Any], size: int
) -> None:
    raw = json.dumps(values, ensure_ascii=False).encode(errors="replace")
    assert parsed(raw, size) == json.loads(raw)


@pytest.mark.slow
@given(JSON)
def test_json_stream_skips_values_that_are_not_wanted(value: Any) -> None:
    raw = json.dumps({"other": value, "wanted": {"item": [value, "next"]}}).encode()
    assert parsed(raw, place="wanted.item.item")[-1] == "next"


def test_a_number_of_too_many_digits_is_refused() -> None:
    with pytest.raises(HistoryError, match="more digits than any id or time"):
        parsed(b"[9223372036854775808]")


def test_json_stream_reports_where_each_list_item_begins() -> None:
    raw = b'{"list": [{"name": "a"}, {}, {"name": null}]}'
    found = list(json_values(io.BytesIO(raw), "it", {"list.item.name"}, starts={"list.item"}))
    begins = ("list.item", None)
    assert found == [begins, ("list.item.name", "a"), begins, begins, ("list.item.name", None)]


@each_row("size", range(1, 12))
def test_control_characters_of_telegram_are_mended_wherever_a_buffer_ends(size: int) -> None:
    raw = rb'[{"a": "x\x0By", "b": "\\x0B", "c": "\\\\\x1F\n\"", "d": "\\"}]'
    assert parsed(raw, size) == [{"a": "x\x0by", "b": "\\x0B", "c": '\\\\\x1f\n"', "d": "\\"}]


def test_byte_order_mark_before_json_is_ignored_by_the_import() -> None:
    assert parsed(b'\xef\xbb\xbf{"a": 1}', place="a") == [1]


@each_row(
    ("raw", "sentence"),
    [
        (b"", "breaks off"),
        (b'{"a": [1, 2', "breaks off"),
        (b'{"a": "\\x0', "damaged|breaks off"),
        (b'{"a": NaN}', "not valid JSON"),
        (b'{"a": "\xff"}', "not valid JSON"),
        (b"[1] [2]", "not valid JSON"),
    ],
)
def test_broken_json_in_an_import_is_refused_with_one_sentence(raw: bytes, sentence: str) -> None:
    with pytest.raises(HistoryError, match=sentence):
        parsed(raw)
