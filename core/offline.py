"""Answers without a model: honest about it, but it keeps, finds, notes and reminds.

Fills the role Model, so that the same turn runs with it: it reads the request as a model would and calls the
same tools. Takes a reminder or a note only where the wording leaves no doubt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

from core.fence import OPENING
from core.folding import fold
from core.query import any_of
from core.types import Completion, Json, Request, Usage

MODEL = "offline"
PASSAGES = 3

_TIME_LINE = re.compile(r"\[[^\[\]\n]*\]")
_REMEMBER = re.compile(
    r"(?:please\s+|pls\s+)?(?:remember|note|keep in mind|don'?t forget|do not forget)"
    r"(?:\s*[:,]\s*|\s+that\s+|\s+(?=my\s|i\s|i'm\s|we\s|our\s))(?P<what>.+)",
    re.IGNORECASE | re.DOTALL,
)
_REMIND = re.compile(
    r"(?:please\s+|pls\s+|can you\s+|could you\s+)?remind\s+(?:me|us)\s*(?:[:,]\s*)?(?P<what>.+?)\??\s*$",
    re.IGNORECASE | re.DOTALL,
)
_QUESTION = re.compile(
    r"(?:and\s+|so\s+|but\s+)?(?:what|when|where|who|whom|whose|why|how|which|did|do|does|is|are|was|were|am|can|could|"
    r"should|would|will|have|has|had|tell me|show me|find|search)\b",
    re.IGNORECASE,
)
_QUESTION_ENDS = ("?", "？", "؟", "吗", "呢", "か", "까", "ไหม")


class Offline:
    """A Model of rules. `zone`: wall clock for dates; `reason`: what it says about itself once an answer."""

    name = MODEL

    def __init__(self, zone: str, reason: str = "No model is configured") -> None:
        self._zone = ZoneInfo(zone)
        self._reason = reason

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        """One step: a tool call for what was said last, or, once its result is there, the answer. Never raises."""
        called = _last_call(request.messages)
        text = _said(request.messages)
        if called is not None:
            completion = self._answer(request.messages, text, *called)
        else:
            tools = {tool["name"] for tool in request.tools}
            completion = self._step(text, tools)
        if completion.text:
            on_text(completion.text)
        return completion

    def _step(self, text: str, tools: set[str]) -> Completion:
        is_question = text.rstrip().endswith(_QUESTION_ENDS)
        if "reminder" in tools and (match := _REMIND.fullmatch(text.strip())):
            what = match["what"].strip()
            return _call("reminder", {"action": "add", "when": what, "text": ""})
        if "memory" in tools and not is_question and (match := _REMEMBER.fullmatch(text.strip())):
            return _call("memory", {"target": "memory", "action": "add", "content": _sentence(match["what"])})
        if "session_search" in tools and (is_question or _QUESTION.match(text.strip())):
            return _call("session_search", {"query": text[:2000], "limit": PASSAGES})
        return _text(
            f"I have kept that. {self._reason}, so I cannot talk about it, but I can find it again: ask me, or use "
            "/recall. I also take “remember that …” and “remind me tomorrow at 9 to …”."
        )

    def _answer(self, messages: Sequence[Json], text: str, name: str, result: str, is_error: bool) -> Completion:
        if name != "session_search" or is_error:
            return _text(result if not is_error else f"I could not do that: {result}")
        passages = [*_seen(messages, text), *self._passages(result, is_room=_is_room(messages))][:PASSAGES]
        if not passages:
            return _text(
                f"I found nothing about that in what was said before. ({self._reason}; I can only look things up.)"
            )
        return _text(
            "\n\n".join(["This is what I found in what was said before:", *passages, f"_{self._reason}, so I quote._"])
        )

    def _passages(self, result: str, *, is_room: bool) -> list[str]:
        try:
            sessions = json.loads(result)["sessions"]
        except (ValueError, KeyError, TypeError):
            return []
        return [passage for session in sessions[:PASSAGES] if (passage := self._passage(session, is_room=is_room))]

    def _passage(self, session: dict[str, Any], *, is_room: bool) -> str:
        anchor = next((item for item in session.get("window", ()) if item.get("is_anchor")), None)
        if anchor is None:
            return ""
        at = datetime.fromisoformat(anchor["at"]).astimezone(self._zone)
        quoted = "\n".join(f"> {line}" for line in str(anchor["text"]).strip().splitlines()[:12])
        who = "I" if anchor["role"] == "assistant" else (is_room and anchor.get("sender")) or "you"
        title = session.get("title") or ""
        is_telling = title and not str(anchor["text"]).startswith(title.rstrip("…"))
        title = f" in “{title}”" if is_telling else ""
        return (
            f"{quoted}\n\n— {who}, {at:%A} {at.day} {at:%B %Y} at {at:%H:%M}{title} (session {session['session_id']})"
        )


def _said(messages: Sequence[Json]) -> str:
    """The untouched text of the last thing a person said."""
    for message in reversed(messages):
        if message["role"] != "user":
            continue
        texts = [str(block["text"]) for block in message["content"] if block.get("type") == "text"]
        words = [text for text in texts if not _TIME_LINE.fullmatch(text) and not text.startswith(OPENING)]
        if words:
            return "\n".join(words)
    return ""


def _is_room(messages: Sequence[Json]) -> bool:
    """In a room the time lines name who speaks."""
    texts = (str(block.get("text", "")) for message in messages for block in message["content"])
    return any(", from " in text for text in texts if _TIME_LINE.fullmatch(text))


def _seen(messages: Sequence[Json], question: str) -> list[str]:
    """What fits the question best among the person's words in this very conversation, which recall leaves out because a
    model would see it: quoted with its time line. Empty unless at least half of the question's words are in it."""
    wanted = {term.rstrip("*") for term in any_of(question).terms}
    best, passage = 0.0, ""
    for message in messages:
        if message["role"] != "user":
            continue
        time_line = ""
        for block in message["content"]:
            text = str(block.get("text", ""))
            if _TIME_LINE.fullmatch(text):
                time_line = text
            elif time_line and text != question and not text.startswith(OPENING):
                share = sum(term in fold(text).casefold() for term in wanted) / max(1, len(wanted))
                if share >= max(best, 0.5):
                    quoted = "\n".join(f"> {line}" for line in text.strip().splitlines()[:12])
                    best, passage = share, f"{quoted}\n\n— earlier in this conversation, {time_line.strip('[]')}"
    return [passage] if passage else []


def _last_call(messages: Sequence[Json]) -> tuple[str, str, bool] | None:
    """Name, result and failure of the tool call that the conversation ends with, if it ends with one."""
    if len(messages) < 2:
        return None
    results = [block for block in messages[-1]["content"] if block.get("type") == "tool_result"]
    has_words = any(block.get("type") == "text" for block in messages[-1]["content"])
    if not results or has_words:
        return None
    last = results[-1]
    name = next(
        (
            str(block["name"])
            for block in messages[-2]["content"]
            if block.get("type") == "tool_use" and block["id"] == last["tool_use_id"]
        ),
        "",
    )
    return name, str(last.get("content", "")), bool(last.get("is_error"))


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:]


def _call(name: str, arguments: dict[str, Any]) -> Completion:
    block = {"type": "tool_use", "id": f"toolu_{uuid4().hex[:24]}", "name": name, "input": arguments}
    return Completion(blocks=(block,), text="", stop_reason="tool_use", usage=Usage(), model=MODEL)


def _text(text: str) -> Completion:
    return Completion(
        blocks=({"type": "text", "text": text},), text=text, stop_reason="end_turn", usage=Usage(), model=MODEL
    )
