"""The conversations.json of ChatGPT (the path to the current node) and of Claude (text blocks,
attachments): what their pages show, and everything else counted."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

from core.store.archive import TransferRecord
from core.transfer import assistants
from core.transfer.formats import HIDDEN, NO_TEXT, NO_TIME, UNKNOWN_SHAPE, ImportOptions
from tests.fixtures.exports import (
    NOON,
    chatgpt_conversation,
    chatgpt_node,
    claude_conversation,
    claude_message,
)
from tests.fixtures.import_reading import sorted_out


def chatgpt(export: Any) -> tuple[list[TransferRecord], dict[str, int]]:
    return sorted_out(
        assistants.read_chatgpt(
            io.BytesIO(json.dumps(export).encode()), "conversations.json", ImportOptions()
        )
    )


def test_chatgpt_import_follows_the_branch_to_the_current_node() -> None:
    nodes = [
        chatgpt_node("q", "root", text="When does the ferry leave?"),
        chatgpt_node("a1", "q", "assistant", "At nine."),
        chatgpt_node("a2", "q", "assistant", "At noon."),
        chatgpt_node("thanks", "a2", text="Thanks"),
    ]
    taken, skipped = chatgpt([chatgpt_conversation(nodes, "thanks")])
    assert [(line.role, line.text) for line in taken] == [
        ("user", "When does the ferry leave?"),
        ("assistant", "At noon."),
        ("user", "Thanks"),
    ]
    assert not skipped
    first = taken[0]
    assert (first.conversation.name, first.conversation.title, first.id) == (
        "chatgpt:c-1",
        "Ferry to Porto",
        "m-q",
    )
    assert first.conversation.address.key == "chatgpt:c-1"
    assert first.at == datetime(2026, 5, 3, 12, 0, 0, 250_000, tzinfo=UTC)


def test_chatgpt_import_without_a_current_node_follows_the_last_branch() -> None:
    nodes = [
        chatgpt_node("q", "root", text="Q"),
        chatgpt_node("a1", "q", "assistant", "earlier"),
        chatgpt_node("a2", "q", "assistant", "later"),
    ]
    for current in (None, "gone"):
        taken, _ = chatgpt([chatgpt_conversation(nodes, current)])
        assert [line.text for line in taken] == ["Q", "later"]


def test_import_of_a_conversation_in_a_circle_ends() -> None:
    nodes = [chatgpt_node("a", "b", text="A"), chatgpt_node("b", "a", text="B")]
    taken, _ = chatgpt([chatgpt_conversation(nodes, "a")])
    assert [line.text for line in taken] == ["B", "A"]


def test_import_counts_messages_that_the_page_hides() -> None:
    hidden = {"is_visually_hidden_from_conversation": True}
    nodes = [
        chatgpt_node("1", "root", "system", ""),
        chatgpt_node("2", "1", "user", "secret", metadata=hidden),
        chatgpt_node(
            "3", "2", "user", {"content_type": "user_editable_context", "user_profile": "sails"}
        ),
        chatgpt_node("4", "3", "user", "search for it"),
        chatgpt_node(
            "5",
            "4",
            "assistant",
            {"content_type": "code", "text": 'search("x")'},
            recipient="browser",
        ),
        chatgpt_node(
            "6", "5", "tool", {"content_type": "tether_browsing_display", "result": "page"}
        ),
        chatgpt_node("7", "6", "assistant", {"content_type": "thoughts", "thoughts": []}),
        chatgpt_node(
            "8", "7", "assistant", {"content_type": "reasoning_recap", "content": "Thought for 3 s"}
        ),
        chatgpt_node("9", "8", "assistant", ""),
        chatgpt_node("10", "9", "assistant", "found"),
    ]
    taken, skipped = chatgpt([chatgpt_conversation(nodes, "10")])
    assert [line.text for line in taken] == ["search for it", "found"]
    assert skipped == {HIDDEN: 7, NO_TEXT: 1}


def test_code_documents_and_parts_are_kept_as_text() -> None:
    multimodal = {
        "content_type": "multimodal_text",
        "parts": [
            {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1"},
            {"content_type": "audio_transcription", "text": "spoken words", "direction": "in"},
            "what is this?",
        ],
    }
    code = {"content_type": "code", "language": "python", "text": "print(1)"}
    document = {"content_type": "code", "language": "json", "text": '{"name": "plan"}'}
    nodes = [
        chatgpt_node(
            "1", "root", "user", multimodal, metadata={"attachments": [{"name": "boat.pdf"}, "odd"]}
        ),
        chatgpt_node("2", "1", "assistant", code, recipient="python"),
        chatgpt_node("3", "2", "assistant", document, recipient="canmore.create_textdoc"),
    ]
    taken, _ = chatgpt([chatgpt_conversation(nodes, "3")])
    assert [line.text for line in taken] == [
        "[file: boat.pdf]\n[image]\nspoken words\nwhat is this?",
        "```python\nprint(1)\n```",
        '{"name": "plan"}',
    ]


def test_a_message_without_a_time_has_that_of_the_one_before() -> None:
    nodes = [
        chatgpt_node("1", "root", text="first", create_time=None),
        chatgpt_node("2", "1", text="second", create_time=NOON + 60),
        chatgpt_node("3", "2", text="third", create_time=None),
    ]
    taken, _ = chatgpt([chatgpt_conversation(nodes, "3")])
    assert [line.at.timestamp() - NOON for line in taken] == [-1.5, 60, 60]
    taken, skipped = chatgpt([chatgpt_conversation(nodes[:1], "1", create_time=None)])
    assert (taken, skipped) == ([], {NO_TIME: 1})


def test_oddly_shaped_chatgpt_conversations_do_not_prevent_importing_the_rest() -> None:
    good = chatgpt_conversation([chatgpt_node("1", "root", text="hello")], "1")
    odd = chatgpt_conversation(
        [], "1", mapping={"1": "x", "2": {"message": {"content": 5, "author": "me"}}}
    )
    taken, skipped = chatgpt([5, {}, {"mapping": []}, odd, good])
    assert [line.text for line in taken] == ["hello"]
    assert skipped[UNKNOWN_SHAPE] == 3


def claude(export: Any) -> tuple[list[TransferRecord], dict[str, int]]:
    return sorted_out(
        assistants.read_claude(
            io.BytesIO(json.dumps(export).encode()), "conversations.json", ImportOptions()
        )
    )


def test_claude_conversation_is_imported_as_one_session_with_its_title() -> None:
    taken, skipped = claude(
        [claude_conversation([claude_message(1), claude_message(2, "assistant", "Ahoy")])]
    )
    assert not skipped
    assert [(line.role, line.text) for line in taken] == [("user", "hello"), ("assistant", "Ahoy")]
    first = taken[0]
    assert (first.conversation.name, first.conversation.title, first.id) == (
        "claude:cc-1",
        "Sailing",
        "cm-1",
    )
    assert first.conversation.address.key == "claude:cc-1"
    assert first.at == datetime(2026, 5, 3, 12, 1, 0, 123456, tzinfo=UTC)


def test_blocks_that_are_not_text_are_counted_and_placeholders_do_not_appear() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "name": "web_search", "input": {"query": "ferry"}},
        {"type": "tool_result", "name": "web_search", "content": []},
        {"type": "token_budget"},
        "odd",
        {"type": "text", "text": "At noon."},
    ]
    flat = (
        "Let me look.\n```\nThis block is not supported on your current device yet.\n```\nAt noon."
    )
    (line,), skipped = claude(
        [claude_conversation([claude_message(1, "assistant", flat, content=blocks)])]
    )
    assert line.text == "Let me look.\nAt noon."
    assert skipped == {HIDDEN: 5}


def test_older_exports_have_only_a_flat_text() -> None:
    message = claude_message(1, text="from 2024")
    del message["content"]
    (line,), _ = claude([claude_conversation([message], name="")])
    assert (line.text, line.conversation.title) == ("from 2024", None)


def test_attachments_are_named_with_their_text_and_files_by_name() -> None:
    message = claude_message(
        1,
        text="what does it say?",
        attachments=[
            {
                "file_name": "log.txt",
                "file_size": 9,
                "file_type": "txt",
                "extracted_content": "mast broken",
            },
            {"file_name": "", "extracted_content": "pasted words"},
            "odd",
        ],
        files=[{"file_name": "log.txt"}, {"file_name": "boat.png"}],
    )
    (line,), _ = claude([claude_conversation([message])])
    assert line.text == (
        "[attachment: log.txt]\nmast broken\n[attachment]\npasted words\n[file: boat.png]\nwhat does it say?"
    )


def test_overlong_attachment_in_a_claude_export_is_cut_and_reported() -> None:
    book = {"file_name": "b.txt", "extracted_content": "x" * (assistants.ATTACHMENT_CHARS + 1)}
    (line,), skipped = claude([claude_conversation([claude_message(1, attachments=[book])])])
    assert len(line.text) < assistants.ATTACHMENT_CHARS + 100
    assert "x […]" in line.text
    assert skipped == {assistants.LONG_ATTACHMENT: 1}


def test_oddly_shaped_claude_conversations_do_not_prevent_importing_the_rest() -> None:
    empty = claude_message(2, text="", content=[])
    timeless = claude_conversation([claude_message(3, created_at="once")], created_at=None)
    odd = claude_conversation([5, claude_message(1, "system"), empty, claude_message(4)])
    taken, skipped = claude([None, {"chat_messages": 3}, timeless, odd])
    assert [line.id for line in taken] == ["cm-4"]
    assert skipped == {UNKNOWN_SHAPE: 4, NO_TEXT: 1, NO_TIME: 1}
