"""How a change of a note is read from what stands behind /memory add, replace and remove."""

from __future__ import annotations

import pytest

from core.errors import Refused
from core.store.notes import Operation
from gateway.commands.memory import EditRequest
from tests.fixtures.samples import replacing


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("tea => mate", EditRequest(operation=replacing("tea", "mate"))),
        ('"likes tea" likes mate', EditRequest(operation=replacing("likes tea", "likes mate"))),
        ("“likes tea” => likes mate", EditRequest(operation=replacing("likes tea", "likes mate"))),
        ("user: tea => a => b", EditRequest(operation=replacing("tea", "a => b"), target="user")),
    ],
)
def test_what_replaces_what_is_told_apart(text: str, edit: EditRequest) -> None:
    assert EditRequest.parse("replace", text) == edit


@pytest.mark.parametrize("text", ["tea with mate", "", '"tea'])
def test_what_cannot_be_told_apart_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="what to replace and with what"):
        EditRequest.parse("replace", text)


def test_a_note_goes_where_it_is_said_to_go() -> None:
    for text, target, content in (
        ("user: prefers tea", "user", "prefers tea"),
        ("Note: prefers tea", "memory", "Note: prefers tea"),
    ):
        operation = Operation(action="add", content=content)
        assert EditRequest.parse("add", text) == EditRequest(operation=operation, target=target)
    removing = Operation(action="remove", old_text="prefers tea")
    assert EditRequest.parse("remove", "prefers tea") == EditRequest(operation=removing)
