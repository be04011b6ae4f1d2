"""Sends an answer as a file when the person asks for one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import replace

from core.media.outgoing import make_document
from core.media.tools import SEND_FILE
from core.text.normalize import shorten, to_single_line
from core.types import Answer, Json, Message

# If an answer that is sent as a file is longer than this, its message shows only the beginning.
MAX_SHOWN_CHARS = 1_200
MAX_LEAD_CHARS = 400


def list_documents(rows: Sequence[Message]) -> list[Json]:
    """Return the results of the tool calls that send this turn's answer as a file.

    If several calls use the same file name, only the last of them is returned.
    """
    results: dict[str, Json] = {}
    for row in rows:
        if row.role == "tool" and row.tool_name == SEND_FILE:
            with contextlib.suppress(ValueError):
                result = json.loads(row.text)
                if isinstance(result, dict) and "file_id" not in result:
                    results[str(result["name"])] = result
    return list(results.values())


def attach_document(answer: Answer, name: str) -> Answer:
    """Return the answer with its text attached as a file.

    If the text is long, the message shows only its beginning.
    """
    text = answer.text
    if len(text) > MAX_SHOWN_CHARS:
        lead = shorten(to_single_line(text.strip().partition("\n\n")[0]), MAX_LEAD_CHARS)
        text = lead if lead.endswith("…") else f"{lead} …"
    return replace(answer, text=text, files=(*answer.files, make_document(name, answer.text)))
