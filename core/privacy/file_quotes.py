"""Finds what quotes the files that /forget erases: answers, lines of summaries, and equal files."""

from __future__ import annotations

from collections.abc import Sequence

from core.privacy.quotes import QuoteMatcher, remove_quoting_lines
from core.store.engine import Connection, Row, in_list
from core.store.erasure import statements
from core.store.erasure.statements import ErasureList
from core.store.visibility import encode_list, visible

# An answer quotes a file if it repeats this many words in a row. A long document contains many
# common phrases, so a shorter passage isn't enough.
QUOTE_TOKENS = 8
_SELECT_FILE_TEXTS = f"""
SELECT message_files.id, message_files.name, message_files.message_id, file_parts.text
FROM message_files LEFT JOIN file_parts ON file_parts.hash = message_files.hash
WHERE {in_list("message_files.id", "files")}
"""
"""Selects the files ``:files``, with each part of their texts."""
_SELECT_EQUAL_FILES = f"""
SELECT id, name FROM message_files
WHERE {visible("message_files.scope_id")} AND NOT ({in_list("id", "files")}) AND hash IN (
    SELECT hash FROM message_files AS erased WHERE {in_list("erased.id", "files")}
) ORDER BY id
"""
_SELECT_ANSWERS = f"""
SELECT id, session_id, text, usage FROM messages
WHERE role = 'assistant' AND kind = 'chat' AND text <> '' AND id > :first
    AND session_id IN ({statements.VISIBLE_SESSION_IDS}) ORDER BY id
"""
_SELECT_SESSIONS = f"""
SELECT session_id FROM messages
WHERE {in_list("id", "messages")} AND session_id IN ({statements.VISIBLE_SESSION_IDS})
"""


def add_file_quotes(connection: Connection, erasure_list: ErasureList) -> None:
    """Add the answers and the lines of summaries that quote the files on the list.

    Also notes the equal files of other messages, which stay, and the files that remaining answers
    of a model may describe in other words.
    """
    values = {**erasure_list.parameters, "files": encode_list(erasure_list.ids["files"])}
    file_rows = connection.execute(_SELECT_FILE_TEXTS, values).fetchall()
    if not file_rows:
        return
    equal_files = connection.execute(_SELECT_EQUAL_FILES, values).fetchall()
    erasure_list.equal_files = [(row["id"], row["name"]) for row in equal_files]
    _add_answers(connection, erasure_list, file_rows)
    _shorten_summaries(connection, erasure_list, file_rows)


def _add_answers(
    connection: Connection, erasure_list: ErasureList, file_rows: Sequence[Row]
) -> None:
    """Add the answers that quote the files, and note which files the other answers may describe."""
    matcher = QuoteMatcher((), _list_texts(file_rows), passage_tokens=QUOTE_TOKENS)
    message_ids = {row["message_id"] for row in file_rows if row["message_id"] is not None}
    values = {**erasure_list.parameters, "first": min(message_ids, default=0)}
    session_values = {**values, "messages": encode_list(message_ids)}
    session_rows = connection.execute(_SELECT_SESSIONS, session_values)
    session_ids = {row["session_id"] for row in session_rows.fetchall()}
    erased_ids = {*erasure_list.ids["messages"], *erasure_list.ids["repeats"]}
    may_be_described = False
    for row in connection.execute(_SELECT_ANSWERS, values).fetchall():
        if row["id"] in erased_ids:
            continue
        if matcher.has_passage(row["text"]):
            erasure_list.ids["repeats"].append(row["id"])
            erasure_list.repeats.append(("answer", _find_quoting_line(row["text"], matcher)))
            erasure_list.message_texts.append(row["text"])
        elif row["usage"] is not None and row["session_id"] in session_ids:
            may_be_described = True
    if may_be_described:
        erasure_list.described_files = list(dict.fromkeys(row["name"] for row in file_rows))


def _find_quoting_line(text: str, matcher: QuoteMatcher) -> str:
    """Return the first line that quotes a file, or "" if no line does so alone."""
    return next((line for line in text.splitlines() if matcher.has_passage(line)), "")


def _shorten_summaries(
    connection: Connection, erasure_list: ErasureList, file_rows: Sequence[Row]
) -> None:
    """Add the summaries that quote the files, without the quoting lines."""
    file_ids = {row["id"] for row in file_rows}
    texts = _list_texts(file_rows)
    remaining_texts = dict(erasure_list.ids["summaries"])
    values = erasure_list.parameters
    for row in connection.execute(statements.SELECT_POSSIBLE_REPEATS, values).fetchall():
        if row["kind"] != "summary" or row["id"] in erasure_list.ids["repeats"]:
            continue
        text = remaining_texts.get(row["id"], row["text"])
        remaining_text = remove_quoting_lines(text, texts, file_ids)
        if remaining_text != text:
            remaining_texts[row["id"]] = remaining_text
    erasure_list.ids["summaries"] = list(remaining_texts.items())


def _list_texts(file_rows: Sequence[Row]) -> list[str]:
    return [row["text"] for row in file_rows if row["text"]]
