"""How a change of a note is read from what stands behind /memory add, replace and remove."""

from __future__ import annotations

import pytest

from core.errors import Refused
from core.store.notes import Operation
from gateway.commands.memory import parse_edit
from gateway.texts.catalog import ENGLISH
from tests.fixtures.samples import replacing
from tests.fixtures.tables import each_row


@each_row(
    ("text", "edit"),
    [
        ("tea => mate", (replacing("tea", "mate"), "", False)),
        ('"likes tea" likes mate', (replacing("likes tea", "likes mate"), "", False)),
        ("“likes tea” => likes mate", (replacing("likes tea", "likes mate"), "", False)),
        ("user: tea => a => b", (replacing("tea", "a => b"), "user", False)),
    ],
)
def test_replacement_of_a_note_is_read_in_each_spelling(
    text: str, edit: tuple[Operation, str, bool]
) -> None:
    assert parse_edit(ENGLISH, "replace", text) == edit


@each_row("text", ["tea with mate", "", '"tea'])
def test_replacement_without_two_parts_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="what to replace and with what"):
        parse_edit(ENGLISH, "replace", text)


def test_memory_add_stores_a_note_in_the_file_named_by_its_prefix() -> None:
    for text, target, content in (
        ("user: prefers tea", "user", "prefers tea"),
        ("Note: prefers tea", "memory", "Note: prefers tea"),
    ):
        operation = Operation(action="add", content=content)
        assert parse_edit(ENGLISH, "add", text) == (operation, target, False)
    removing = Operation(action="remove", old_text="prefers tea")
    assert parse_edit(ENGLISH, "remove", "prefers tea") == (removing, "", False)
