"""Claude's conversations.json: text blocks, attachments with their text, the rest counted."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

from core.store.archive import TransferRecord
from core.transfer import claude
from core.transfer.formats import EMPTY, HIDDEN, SHAPELESS, TIMELESS, Choices
from tests.fixtures.exports import claude_conversation, claude_message
from tests.fixtures.import_reading import sorted_out


def read(export: Any) -> tuple[list[TransferRecord], dict[str, int]]:
    return sorted_out(claude.read(io.BytesIO(json.dumps(export).encode()), "conversations.json", Choices()))


def test_a_conversation_is_a_session() -> None:
    taken, skipped = read([claude_conversation([claude_message(1), claude_message(2, "assistant", "Ahoy")])])
    assert not skipped
    assert [(line.role, line.text) for line in taken] == [("user", "hello"), ("assistant", "Ahoy")]
    first = taken[0]
    assert (first.session, first.title, first.id) == ("claude:cc-1", "Sailing", "cm-1")
    assert first.address.key == "claude:cc-1"
    assert first.at == datetime(2026, 5, 3, 12, 1, 0, 123456, tzinfo=UTC)


def test_blocks_that_are_no_text_are_counted_and_placeholders_do_not_appear() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "name": "web_search", "input": {"query": "ferry"}},
        {"type": "tool_result", "name": "web_search", "content": []},
        {"type": "token_budget"},
        "odd",
        {"type": "text", "text": "At noon."},
    ]
    flat = "Let me look.\n```\nThis block is not supported on your current device yet.\n```\nAt noon."
    (line,), skipped = read([claude_conversation([claude_message(1, "assistant", flat, content=blocks)])])
    assert line.text == "Let me look.\nAt noon."
    assert skipped == {HIDDEN: 5}


def test_older_exports_have_only_a_flat_text() -> None:
    message = claude_message(1, text="from 2024")
    del message["content"]
    (line,), _ = read([claude_conversation([message], name="")])
    assert (line.text, line.title) == ("from 2024", None)


def test_attachments_are_named_with_their_text_and_files_by_name() -> None:
    message = claude_message(
        1,
        text="what does it say?",
        attachments=[
            {"file_name": "log.txt", "file_size": 9, "file_type": "txt", "extracted_content": "mast broken"},
            {"file_name": "", "extracted_content": "pasted words"},
            "odd",
        ],
        files=[{"file_name": "log.txt"}, {"file_name": "boat.png"}],
    )
    (line,), _ = read([claude_conversation([message])])
    assert line.text == (
        "[attachment: log.txt]\nmast broken\n[attachment]\npasted words\n[file: boat.png]\nwhat does it say?"
    )


def test_a_book_in_an_attachment_is_cut_and_it_is_said() -> None:
    book = {"file_name": "b.txt", "extracted_content": "x" * (claude.ATTACHMENT_CHARS + 1)}
    (line,), skipped = read([claude_conversation([claude_message(1, attachments=[book])])])
    assert len(line.text) < claude.ATTACHMENT_CHARS + 100
    assert "x […]" in line.text
    assert skipped == {claude.LONG: 1}


def test_odd_shapes_never_break_the_rest() -> None:
    empty = claude_message(2, text="", content=[])
    timeless = claude_conversation([claude_message(3, created_at="once")], created_at=None)
    odd = claude_conversation([5, claude_message(1, "system"), empty, claude_message(4)])
    taken, skipped = read([None, {"chat_messages": 3}, timeless, odd])
    assert [line.id for line in taken] == ["cm-4"]
    assert skipped == {SHAPELESS: 4, EMPTY: 1, TIMELESS: 1}
