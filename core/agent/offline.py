"""Answers without a model: honest about it, but it keeps, finds, notes and reminds.

Fills the role Model, so that the same turn runs with it: it reads the request as a model would and calls the
same tools. Takes a reminder or a note only where the wording leaves no doubt.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

from core.guard.fence import FRAME, OPENING, TIME_LINE
from core.ports import Tell
from core.search.query import any_of
from core.text.normalize import fold
from core.text.terms import is_smalltalk
from core.types import Completion, Json, Request

MODEL = "offline"
PASSAGES = 3
FOUND = "This is what I found in what was said before:"
KEPT = "I have kept that."
_ATTACHMENT = re.compile(r"\[attached [^:\[\]\n]{1,40}: [^\n]*\]")
"""As `core.agent.prompt.with_attachments` writes it."""
_WORDING: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_AFTER_THE_END = " \t\r\n!！.。…\"'”’»」)"  # what may follow a question mark


def _match(pattern: str, text: str) -> re.Match[str] | None:
    return re.fullmatch(pattern, text.strip(), re.IGNORECASE | re.DOTALL | re.VERBOSE)


class Offline:
    """A Model of rules. `zone`: IANA name; `reason`: why there is no model, said once an answer."""

    def __init__(self, zone: str, reason: str = "No model is configured") -> None:
        self._zone = ZoneInfo(zone)
        self._reason = reason

    async def complete(self, request: Request, on_text: Tell, on_wait: Tell) -> Completion:
        """A tool call for what was said last, or, once its result is there, the answer. Never raises. Nothing is shown
        of it as it grows, since it is there at once."""
        results, text = _results(request.messages), _said(request.messages)
        return self._answer(request.messages, text, results) if results else self._step(text, request)

    def _step(self, text: str, request: Request) -> Completion:
        tools = {tool["name"] for tool in request.tools}
        is_question = _is_question(text)
        written = _ATTACHMENT.sub("", text)
        if "reminder" in tools and (match := _match(_WORDING["remind"], written)):
            return _call(("reminder", {"action": "add", "when": match["what"].strip(), "text": ""}))
        if "memory" in tools and not is_question and (match := _match(_WORDING["remember"], written)):
            what = match["what"].strip()
            return _call(("memory", {"target": "memory", "action": "add", "content": what[:1].upper() + what[1:]}))
        for known in _WORDING["requests"]:
            if _match(known["pattern"], text):
                return _text(known["answer"])
        if "session_search" in tools and (is_question or _match(_WORDING["question"], text)):
            query = {"query": text[:2000], "limit": PASSAGES}
            facts = [("facts", {"mode": "search", **query})] if "facts" in tools else []
            return _call(*facts, ("session_search", query))
        if "memory" not in tools and "session_search" in tools:
            return _text(f"This is incognito, so I keep nothing of it. {self._reason}; I can only look things up.")
        return _text(self._acknowledged(text, request.messages))

    def _acknowledged(self, text: str, messages: Sequence[Json]) -> str:
        has_attachment, is_small = _ATTACHMENT.search(text) is not None, is_smalltalk(text)
        kept = "All right." if is_small else KEPT
        if has_attachment:
            kept = "I have kept that, but not what is attached: I cannot open it."
        answers = (message for message in messages if message["role"] == "assistant")
        if any(self._reason in block.get("text", "") for answer in answers for block in answer["content"]):
            return kept
        can = f"I can find {'again what you tell me' if is_small or has_attachment else 'it again'}"
        return (
            f"{kept} {self._reason}, so I cannot talk about it, but {can}: ask me, or use /recall. "
            "I also take “remember that …” and “remind me tomorrow at 9 to …”."
        )

    def _answer(self, messages: Sequence[Json], text: str, results: Sequence[tuple[str, str, bool]]) -> Completion:
        name, result, is_error = results[-1]
        if name != "session_search" or is_error:
            return _text((result.strip() or "Done.") if not is_error else f"I could not do that: {result}")
        wanted = _terms(text)
        found = [self._passage(session, wanted) for session in json.loads(result)["sessions"]]
        passages = [passage for passage in (_seen(messages, text), *found) if passage][:PASSAGES]
        if passages:
            passages.insert(0, FOUND)
        if known := _known(results):
            passages.insert(0, "\n".join(["This is what I know:\n", *known]))
        if not passages:
            return _text(
                f"I found nothing about that in what was said before. ({self._reason}; I can only look things up.)"
            )
        return _text("\n\n".join([*passages, f"_{self._reason}, so I quote._"]))

    def _passage(self, session: Json, wanted: set[str]) -> str:
        """The best match of a session, quoted."""
        anchor = _telling(session["window"], wanted)
        at = datetime.fromisoformat(anchor["at"]).astimezone(self._zone)
        who = "you" if anchor.get("is_asker") else str(anchor.get("sender") or "somebody")
        origin = str(anchor.get("origin") or "typed").replace("_", " ")
        if anchor["role"] == "assistant":
            who = "I"
        elif origin != "typed":
            who = f"forwarded by {who}" if origin == "forwarded" else f"{who} ({origin})"
        title = session["title"] or ""
        is_telling = title and not anchor["text"].strip().startswith(title.rstrip("…"))
        where = f"{f' in “{title}”' if is_telling else ''} (session {session['session_id']})"
        return f"{_quoted(anchor['text'])}\n\n— {who}, {at:%A} {at.day} {at:%B %Y} at {at:%H:%M}{where}"


def _is_question(text: str) -> bool:
    return text.rstrip(_AFTER_THE_END).endswith(tuple(_WORDING["question_ends"]))


def _terms(text: str) -> set[str]:
    return {term.rstrip("*") for term in any_of(text).terms}


def _share(text: str, wanted: set[str]) -> float:
    folded = fold(text).casefold()
    return sum(term in folded for term in wanted) / max(1, len(wanted))


def _telling(window: Sequence[Json], wanted: set[str]) -> Json:
    """The best match; where that is an earlier question, what a person stated around it, if it fits."""
    anchor = next(item for item in window if item["is_anchor"])
    if not _is_question(anchor["text"]):
        return anchor
    stated = [item for item in window if item["role"] == "user" and not _is_question(item["text"])]
    best = max(stated, key=lambda item: _share(item["text"], wanted), default=anchor)
    return best if _share(best["text"], wanted) >= 0.5 else anchor


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.strip().splitlines()[:12])


def _utterances(message: Json) -> list[tuple[str, str]]:
    """(time line or "", text) of what people said in a user message; nobody's words look like a time line or a fence
    there (`core.guard.fence.neutralise`)."""
    said: list[tuple[str, str]] = []
    time_line = ""
    for text in (block["text"] for block in message["content"] if block.get("type") == "text"):
        if TIME_LINE.fullmatch(text):
            time_line = text
        elif not text.startswith(OPENING) and not FRAME.match(text):
            said.append((time_line, text))
    return said


def _said(messages: Sequence[Json]) -> str:
    for message in reversed(messages):
        if message["role"] == "user" and (said := _utterances(message)):
            return "\n".join(text for _, text in said)
    return ""


def _seen(messages: Sequence[Json], question: str) -> str:
    """The best fit in this very conversation, which recall leaves out because a model would see it. Empty unless at
    least half of the question's words are in it; an earlier question is no answer."""
    wanted = _terms(question)
    asked = question.split("\n")
    best, passage = (0.5, False), ""
    for message in messages:
        for time_line, text in _utterances(message) if message["role"] == "user" else ():
            if not time_line or text == question or (text in asked and _is_question(text)):
                continue
            if (rank := (_share(text, wanted), not _is_question(text))) >= best:
                best = rank
                passage = f"{_quoted(text)}\n\n— earlier in this conversation, {time_line.strip('[]')}"
    return passage


def _known(results: Sequence[tuple[str, str, bool]]) -> list[str]:
    found = [json.loads(result)["facts"] for name, result, is_error in results if name == "facts" and not is_error]
    lines = []
    for fact in chain(*found):
        who = f"{fact['who']}: " if fact.get("who") else ""
        when = fact["when"] or f"said on {fact['said_on']}"
        lines.append(f"- {who}{fact['content'].rstrip(' .')} ({when})")
    return lines[:PASSAGES]


def _results(messages: Sequence[Json]) -> list[tuple[str, str, bool]]:
    """Name, result and failure of each tool call that the conversation ends with."""
    last = messages[-1]["content"]
    if len(messages) < 2 or last[-1].get("type") != "tool_result":
        return []
    names = {block["id"]: str(block["name"]) for block in messages[-2]["content"] if block.get("type") == "tool_use"}
    return [
        (names.get(block["tool_use_id"], ""), str(block.get("content", "")), bool(block.get("is_error")))
        for block in last
        if block.get("type") == "tool_result"
    ]


def _call(*named: tuple[str, dict[str, Any]]) -> Completion:
    blocks = tuple(
        {"type": "tool_use", "id": f"toolu_{uuid4().hex[:24]}", "name": name, "input": arguments}
        for name, arguments in named
    )
    return Completion(blocks=blocks, text="", stop_reason="tool_use", model=MODEL)


def _text(text: str) -> Completion:
    return Completion(blocks=({"type": "text", "text": text},), text=text, stop_reason="end_turn", model=MODEL)
