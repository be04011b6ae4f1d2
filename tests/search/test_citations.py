"""What an answer cites: marks become numbers, and marks of messages that weren't given go."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from core.guard.origin_and_fence import hide_citations
from core.search.citations import MAX_CITED, add_search_results, number_citations
from core.types import Json, Message

AT = datetime(2026, 5, 3, 9, 0, tzinfo=UTC)


def search_result(*message_ids: int, tool: str = "session_search") -> Message:
    """A stored result of a search that returned these messages."""
    messages = [
        {"message_id": number, "at": AT.isoformat(), "snippet": f"the >>>tent<<< number {number}"}
        for number in message_ids
    ]
    text = json.dumps({"sessions": [{"matches": messages}]})
    return Message(role="tool", text=text, session_id=1, created_at=AT, tool_name=tool)


def test_marks_of_returned_messages_become_numbers_in_the_order_of_use() -> None:
    rows = [search_result(412, 7)]
    text, cited = number_citations("Blue [message 7], big [message 412] [message 7].", rows)
    assert text == "Blue [1], big [2] [1]."
    assert [message.message_id for message in cited] == [7, 412]
    assert cited[0].text == "the tent number 7"
    assert cited[0].at == AT


def test_mark_of_a_message_that_no_search_returned_is_removed_with_its_space() -> None:
    text, cited = number_citations("Blue [message 9].", [search_result(412)])
    assert (text, cited) == ("Blue.", [])


def test_result_of_another_tool_gives_nothing_to_cite() -> None:
    text, cited = number_citations("Blue [message 7].", [search_result(7, tool="web_fetch")])
    assert (text, cited) == ("Blue.", [])


def test_failed_search_gives_nothing_to_cite() -> None:
    failed = Message(
        role="tool",
        text="The history can't be searched right now.",
        session_id=1,
        created_at=AT,
        tool_name="session_search",
    )
    assert number_citations("Blue [message 7].", [failed]) == ("Blue.", [])


def test_answer_cites_at_most_five_messages() -> None:
    numbers = range(1, MAX_CITED + 3)
    answer = " ".join(f"a [message {number}]" for number in numbers)
    text, cited = number_citations(answer, [search_result(*numbers)])
    assert text == "a [1] a [2] a [3] a [4] a [5] a a"
    assert len(cited) == MAX_CITED


@pytest.mark.parametrize("code", ["x[m412]", "[message]", "rows[0]", "[message x]", "[ ]"])
def test_brackets_that_are_no_citations_stay_as_they_are(code: str) -> None:
    assert number_citations(code, [search_result(412)]) == (code, [])
    assert hide_citations(code) == code


@pytest.mark.parametrize("length", range(1, len(" [message 412]") + 1))
def test_unfinished_mark_at_the_end_of_a_growing_answer_is_hidden(length: int) -> None:
    shown = hide_citations("Blue" + " [message 412]"[:length], is_finished=False)
    assert shown.rstrip() == "Blue"


def history(result: Message) -> list[Json]:
    """The messages of a request: a question, a search and its result."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "session_search", "input": {}}
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": result.text}
    return [
        {"role": "user", "content": [{"type": "text", "text": "Which tent?"}]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [block]},
    ]


def test_result_of_a_search_becomes_blocks_that_a_model_can_cite() -> None:
    messages = history(search_result(412))
    ((converted,),) = [message["content"] for message in add_search_results(messages)[2:]]
    metadata, block = converted["content"]
    assert "tent" not in metadata["text"]
    assert '"message_id": 412' in metadata["text"]
    assert block["source"] == "message 412"
    assert block["content"] == [{"type": "text", "text": "the >>>tent<<< number 412"}]
    assert block["citations"] == {"enabled": True}
    assert add_search_results(messages) == add_search_results(messages)


def test_result_without_messages_and_results_of_other_tools_stay() -> None:
    empty = history(search_result())
    other = history(search_result(412))
    other[1]["content"][0]["name"] = "web_search"
    assert add_search_results(empty) == empty
    assert add_search_results(other) == other
