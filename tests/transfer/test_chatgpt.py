"""ChatGPT's conversations.json: the path to the current node, what the page shows of it, everything else counted."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

from core.store.archive import TransferRecord
from core.transfer import chatgpt
from core.transfer.formats import EMPTY, HIDDEN, SHAPELESS, TIMELESS, Choices
from tests.fixtures.exports import NOON, chatgpt_conversation, chatgpt_node
from tests.fixtures.import_reading import sorted_out


def read(export: Any) -> tuple[list[TransferRecord], dict[str, int]]:
    return sorted_out(chatgpt.read(io.BytesIO(json.dumps(export).encode()), "conversations.json", Choices()))


def test_the_path_to_the_current_node_is_taken() -> None:
    nodes = [
        chatgpt_node("q", "root", text="When does the ferry leave?"),
        chatgpt_node("a1", "q", "assistant", "At nine."),
        chatgpt_node("a2", "q", "assistant", "At noon."),
        chatgpt_node("thanks", "a2", text="Thanks"),
    ]
    taken, skipped = read([chatgpt_conversation(nodes, "thanks")])
    assert [(line.role, line.text) for line in taken] == [
        ("user", "When does the ferry leave?"),
        ("assistant", "At noon."),
        ("user", "Thanks"),
    ]
    assert not skipped
    first = taken[0]
    assert (first.session, first.title, first.id) == ("chatgpt:c-1", "Ferry to Porto", "m-q")
    assert first.address.key == "chatgpt:c-1"
    assert first.at == datetime(2026, 5, 3, 12, 0, 0, 250_000, tzinfo=UTC)


def test_without_a_current_node_the_last_leaf_counts() -> None:
    nodes = [
        chatgpt_node("q", "root", text="Q"),
        chatgpt_node("a1", "q", "assistant", "earlier"),
        chatgpt_node("a2", "q", "assistant", "later"),
    ]
    for current in (None, "gone"):
        taken, _ = read([chatgpt_conversation(nodes, current)])
        assert [line.text for line in taken] == ["Q", "later"]


def test_a_circle_ends() -> None:
    nodes = [chatgpt_node("a", "b", text="A"), chatgpt_node("b", "a", text="B")]
    taken, _ = read([chatgpt_conversation(nodes, "a")])
    assert [line.text for line in taken] == ["B", "A"]


def test_what_the_page_hides_is_counted() -> None:
    hidden = {"is_visually_hidden_from_conversation": True}
    nodes = [
        chatgpt_node("1", "root", "system", ""),
        chatgpt_node("2", "1", "user", "secret", metadata=hidden),
        chatgpt_node("3", "2", "user", {"content_type": "user_editable_context", "user_profile": "sails"}),
        chatgpt_node("4", "3", "user", "search for it"),
        chatgpt_node("5", "4", "assistant", {"content_type": "code", "text": 'search("x")'}, recipient="browser"),
        chatgpt_node("6", "5", "tool", {"content_type": "tether_browsing_display", "result": "page"}),
        chatgpt_node("7", "6", "assistant", {"content_type": "thoughts", "thoughts": []}),
        chatgpt_node("8", "7", "assistant", {"content_type": "reasoning_recap", "content": "Thought for 3 s"}),
        chatgpt_node("9", "8", "assistant", ""),
        chatgpt_node("10", "9", "assistant", "found"),
    ]
    taken, skipped = read([chatgpt_conversation(nodes, "10")])
    assert [line.text for line in taken] == ["search for it", "found"]
    assert skipped == {HIDDEN: 7, EMPTY: 1}


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
        chatgpt_node("1", "root", "user", multimodal, metadata={"attachments": [{"name": "boat.pdf"}, "odd"]}),
        chatgpt_node("2", "1", "assistant", code, recipient="python"),
        chatgpt_node("3", "2", "assistant", document, recipient="canmore.create_textdoc"),
    ]
    taken, _ = read([chatgpt_conversation(nodes, "3")])
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
    taken, _ = read([chatgpt_conversation(nodes, "3")])
    assert [line.at.timestamp() - NOON for line in taken] == [-1.5, 60, 60]
    taken, skipped = read([chatgpt_conversation(nodes[:1], "1", create_time=None)])
    assert (taken, skipped) == ([], {TIMELESS: 1})


def test_odd_shapes_never_break_the_rest() -> None:
    good = chatgpt_conversation([chatgpt_node("1", "root", text="hello")], "1")
    odd = chatgpt_conversation([], "1", mapping={"1": "x", "2": {"message": {"content": 5, "author": "me"}}})
    taken, skipped = read([5, {}, {"mapping": []}, odd, good])
    assert [line.text for line in taken] == ["hello"]
    assert skipped[SHAPELESS] == 3
