"""How a change of a note is read from what stands behind /memory add, replace and remove."""

from __future__ import annotations

import pytest

from core.errors import Refused
from gateway.commands.memory import NoteEdit


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("tea => mate", NoteEdit(action="replace", old="tea", new="mate")),
        ('"likes tea" likes mate', NoteEdit(action="replace", old="likes tea", new="likes mate")),
        ("“likes tea” => likes mate", NoteEdit(action="replace", old="likes tea", new="likes mate")),
        ("user: tea => a => b", NoteEdit(action="replace", target="user", old="tea", new="a => b")),
    ],
)
def test_what_replaces_what_is_told_apart(text: str, edit: NoteEdit) -> None:
    assert NoteEdit.parse("replace", text) == edit


@pytest.mark.parametrize("text", ["tea with mate", "", '"tea'])
def test_what_cannot_be_told_apart_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="what to replace and with what"):
        NoteEdit.parse("replace", text)


def test_a_note_goes_where_it_is_said_to_go() -> None:
    assert NoteEdit.parse("add", "user: prefers tea") == NoteEdit(action="add", target="user", new="prefers tea")
    assert NoteEdit.parse("add", "Note: prefers tea") == NoteEdit(
        action="add", target="memory", new="Note: prefers tea"
    )
    assert NoteEdit.parse("remove", "prefers tea") == NoteEdit(action="remove", old="prefers tea")
