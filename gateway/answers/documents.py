"""Sends an answer as a file when the person asks for one."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence
from dataclasses import replace

from core.errors import Refused
from core.markup.markdown import escape
from core.media.outgoing import DOCUMENT_TYPES, has_calendar, make_document
from core.media.tools import SEND_FILE
from core.text.normalize import shorten, to_single_line
from core.types import Account, Answer, File, Json, Message
from gateway.answers.calendars import build_calendar
from gateway.services import Services
from gateway.texts.catalog import Texts

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


async def build_document(
    services: Services, texts: Texts, name: str, text: str, account: Account
) -> File:
    """Return an answer as a file. Without a calendar in the answer, its events become one.

    Raises Refused if a calendar would have no events.
    """
    if not name.endswith(".ics") or has_calendar(text):
        return make_document(name, text)
    zone = await services.appointments.zone_of(account)
    now = services.clock.now()
    languages = (texts.request_language,)
    content = await asyncio.to_thread(build_calendar, text, now, zone, languages)
    if content is None:
        raise Refused(texts.NO_EVENTS_TO_SEND.format(name=escape(name)))
    return File(name=name, content=content, mime=DOCUMENT_TYPES["ics"])


async def attach_documents(
    services: Services, texts: Texts, answer: Answer, names: Sequence[str], account: Account
) -> Answer:
    """Return the answer with its text attached as files with these names.

    If the text is long, the message shows only its beginning. A file that can't be made is named.
    """
    files: list[File] = []
    problems: list[str] = []
    for name in names:
        try:
            files.append(await build_document(services, texts, name, answer.text, account))
        except Refused as refusal:
            problems.append(texts.word(refusal))
    text = answer.text
    if files and len(text) > MAX_SHOWN_CHARS:
        lead = shorten(to_single_line(text.strip().partition("\n\n")[0]), MAX_LEAD_CHARS)
        text = lead if lead.endswith("…") else f"{lead} …"
    text = "\n\n".join(filter(None, (text, *problems)))
    return replace(answer, text=text, files=(*answer.files, *files))
