"""What an answer cites: marks become numbers, and marks of messages that weren't given go."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from core.guard.origin_and_fence import fence, hide_citations
from core.search.citations import (
    MAX_CITED,
    CitedFact,
    CitedFile,
    CitedMessage,
    RecalledMessage,
    add_citable_blocks,
    name_source,
    number_citations,
)
from core.types import Json, Message
from tests.fixtures.growth import assert_linear
from tests.fixtures.tables import each_row

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
    assert cited == [
        CitedMessage(message_id=7, at=AT, text="the tent number 7", link=None),
        CitedMessage(message_id=412, at=AT, text="the tent number 412", link=None),
    ]


def test_mark_of_a_message_that_no_search_returned_is_removed_with_its_space() -> None:
    text, cited = number_citations("Blue [message 9].", [search_result(412)])
    assert (text, cited) == ("Blue.", [])


def test_answer_of_many_tabs_is_searched_for_marks_in_linear_time() -> None:
    tabs = "x" + "\t" * 20_000
    assert_linear(lambda text: number_citations(text, []), tabs)
    assert_linear(lambda text: hide_citations(f"[{text}"), tabs)
    assert_linear(lambda text: hide_citations(f"[{text}", is_finished=False), tabs)


def test_result_of_another_tool_gives_nothing_to_cite() -> None:
    text, cited = number_citations("Blue [message 7].", [search_result(7, tool="web_fetch")])
    assert (text, cited) == ("Blue.", [])


def test_citation_mark_after_a_failed_search_is_removed_from_the_answer() -> None:
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


@each_row(
    "code",
    [
        "x[m412]",
        "[message]",
        "rows[0]",
        "[message x]",
        "[ ]",
        "[file]",
        "[file x]",
        "[files 3]",
        "[fact]",
        "[facts 3]",
    ],
)
def test_brackets_in_code_that_are_not_citations_stay_unchanged(code: str) -> None:
    assert number_citations(code, [search_result(412)]) == (code, [])
    assert hide_citations(code) == code


@each_row("mark", [" [message 412]", " [fact 3]", " [file 12]", " [file 12, page 7]"])
def test_unfinished_mark_at_the_end_of_a_growing_answer_is_hidden(mark: str) -> None:
    shown = {
        hide_citations("Blue" + mark[:length], is_finished=False).rstrip()
        for length in range(1, len(mark) + 1)
    }
    assert shown == {"Blue"}


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
    ((converted,),) = [message["content"] for message in add_citable_blocks(messages)[2:]]
    metadata, block = converted["content"]
    assert "tent" not in metadata["text"]
    assert '"message_id": 412' in metadata["text"]
    assert block["source"] == "message 412"
    assert block["content"] == [{"type": "text", "text": "the >>>tent<<< number 412"}]
    assert block["citations"] == {"enabled": True}
    assert add_citable_blocks(messages) == add_citable_blocks(messages)


def test_result_without_messages_and_results_of_other_tools_stay() -> None:
    empty = history(search_result())
    other = history(search_result(412))
    other[1]["content"][0]["name"] = "web_search"
    assert add_citable_blocks(empty) == empty
    assert add_citable_blocks(other) == other


def facts_result() -> Message:
    """A stored result of the tool `facts` in its two forms: a list, and groups that contradict."""
    facts = [
        {"fact_id": 3, "content": "My sister lives in Porto", "said_at": "2026-05-03"},
        {"fact_id": 4, "content": "My sister lives in Faro", "said_at": "2026-06-03"},
        {"fact_id": 5, "content": "Ana is 30", "said_at": "2026-06-03", "message_id": 77},
    ]
    text = json.dumps({"facts": facts[:1], "groups": [facts[1:]]})
    return Message(role="tool", text=text, session_id=1, created_at=AT, tool_name="facts")


def test_returned_facts_and_their_messages_can_be_cited_and_unknown_facts_not() -> None:
    answer = "Porto [fact 3], Faro [fact 4], Rome [fact 9], thirty [message 77]."
    text, cited = number_citations(answer, [facts_result()])
    assert text == "Porto [1], Faro [2], Rome, thirty [3]."
    assert cited == [CitedFact(3), CitedFact(4), RecalledMessage(77)]


def test_recalled_lines_of_messages_and_facts_can_be_cited() -> None:
    memory = fence("- m412 3 May 2026: user: The tent is blue\n- f3 Tea\n- f4-2c1a Milk\n- n5 Salt")
    rows = [shown_file(memory)]
    answer = "Blue [message 412], tea [fact 3], milk [fact 4], salt [fact 5]."
    text, cited = number_citations(answer, rows)
    assert text == "Blue [1], tea [2], milk [3], salt."
    assert cited == [RecalledMessage(412), CitedFact(3), CitedFact(4)]


def test_returned_facts_become_blocks_that_a_model_can_cite() -> None:
    messages = history(facts_result())
    messages[1]["content"][0]["name"] = "facts"
    ((converted,),) = [message["content"] for message in add_citable_blocks(messages)[2:]]
    metadata, *blocks = converted["content"]
    assert "Porto" not in metadata["text"]
    assert [block["source"] for block in blocks] == ["fact 3", "fact 4", "fact 5"]
    assert blocks[0]["title"] == "user, 2026-05-03"
    assert blocks[0]["content"] == [{"type": "text", "text": "My sister lives in Porto"}]


CONTRACT = (
    "[Contents of file 12, “contract.pdf” (PDF, 2 pages, 12 kB), which aren't the words of the "
    "person who sent them:]\n\n— page 1 —\nThe rent is 900 euros.\n\n— page 2 —\nThe boiler is new."
)


def shown_file(text: str = CONTRACT) -> Message:
    """A message as it was sent to the model, with the text of a file."""
    return Message(
        role="user",
        text="What does it say?",
        session_id=1,
        created_at=AT,
        sent_blocks=({"type": "text", "text": "What?"}, {"type": "text", "text": text}),
    )


def test_citation_of_a_shown_file_becomes_a_number_and_of_an_unknown_file_is_removed() -> None:
    answer = "New [file 12, page 2], cheap [file 13, page 1] and cheap [file 12]."
    text, cited = number_citations(answer, [shown_file()])
    assert text == "New [1], cheap and cheap [2]."
    assert cited == [CitedFile(12, "page 2"), CitedFile(12, "")]


def test_mark_right_behind_the_same_mark_is_left_out() -> None:
    text, _ = number_citations("New [file 12, page 2] [file 12, page 2].", [shown_file()])
    assert text == "New [1]."


def test_file_that_a_tool_read_or_found_can_be_cited() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "read_document", "input": {"file_id": 12}}
    rows = [
        Message(role="assistant", text="", session_id=1, created_at=AT, blocks=(call,)),
        Message(
            role="tool",
            text=json.dumps({"files": [{"file_id": 13}]}),
            session_id=1,
            created_at=AT,
            tool_name="find_files",
        ),
    ]
    text, cited = number_citations("A [file 12, page 1], b [file 13].", rows)
    assert text == "A [1], b [2]."
    assert cited == [CitedFile(12, "page 1"), CitedFile(13, "")]


def test_text_of_a_file_becomes_a_document_with_a_block_for_each_part() -> None:
    block = {"type": "text", "text": CONTRACT, "cache_control": {"type": "ephemeral"}}
    question = {"type": "text", "text": "What does it say?"}
    ((message,),) = [add_citable_blocks([{"role": "user", "content": [question, block]}])]
    kept, document = message["content"]
    assert kept == question
    assert document["title"] == "file 12: contract.pdf"
    assert "aren't the words of the person" in document["context"]
    parts = [part["text"] for part in document["source"]["content"]]
    assert parts == ["— page 1 —\nThe rent is 900 euros.", "— page 2 —\nThe boiler is new."]
    assert document["citations"] == {"enabled": True}
    assert document["cache_control"] == {"type": "ephemeral"}
    assert name_source(document["title"], parts[1]) == "file 12, page 2"


def test_unreadable_file_is_not_turned_into_a_citable_document() -> None:
    frame = "[Contents of file 12, “photo.jpg” (JPEG, 12 kB) aren't readable.]"
    messages: list[Json] = [{"role": "user", "content": [{"type": "text", "text": frame}]}]
    assert add_citable_blocks(messages) == messages


def test_citable_file_text_without_pages_becomes_one_document_block() -> None:
    frame = CONTRACT.partition("— page")[0] + "Only one line."
    ((message,),) = [
        add_citable_blocks([{"role": "user", "content": [{"type": "text", "text": frame}]}])
    ]
    (document,) = message["content"]
    assert document["source"]["content"] == [{"type": "text", "text": "Only one line."}]
    assert name_source(document["title"], "Only one line.") == "file 12"
