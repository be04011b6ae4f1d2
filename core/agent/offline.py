"""Answers people by rules when there is no model.

`OfflineModel` implements the protocol `core.ports.Model`, so a turn runs as usual. Like a model, it
reads the request and calls tools to search, to write a note or to set a reminder. It writes a note
or sets a reminder only if the message asks for that unmistakably. `offline.toml` has the patterns.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

from core.guard.origin_and_fence import FRAME_START, OPENING, TIME_LINE
from core.ports import TextCallback
from core.search.query import plan_any_word
from core.text.normalize import fold, plain_with_offsets
from core.text.terms import is_smalltalk
from core.types import Completion, Json, Request

OFFLINE_MODEL = "offline"
# An answer quotes at most this many passages, and lists at most this many facts.
MAX_PASSAGES = 3
MAX_QUOTE_LINES = 12
MAX_QUERY_CHARS = 2000
# A longer message is no greeting and none of the other short messages.
MAX_SMALL_CHARS = 80
# The share of a question's terms that a text must contain to count as an answer.
MIN_TERM_SHARE = 0.5
PASSAGES_HEADING = "I found this in earlier messages:"
FACTS_HEADING = "Here's what I know:\n"
STORED_REPLY = "I've saved that."
# A line of `core.agent.prompt.with_attachments`: "[attached photo: boat.jpg (image/jpeg)]".
_ATTACHMENT = re.compile(r"\[attached [^:\[\]\n]{1,40}: [^\n]*\]")
_WORDING: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
# Characters that may follow a question mark.
_TRAILING_CHARS = " \t\r\n!！.。…\"'”’»」)"


@dataclass(frozen=True, slots=True)
class _Utterance:
    """What a person wrote in one message of a request, without frames and memory."""

    # The line that precedes the text, such as "[Friday 20 November 2026, 12:05 Europe/Lisbon]".
    time_line: str
    text: str


@dataclass(frozen=True, slots=True)
class _ToolResult:
    tool_name: str
    text: str
    is_error: bool


class OfflineModel:
    """A `Model` that answers by rules. `reason` is a clause that says why there is no model."""

    def __init__(self, zone: str, reason: str = "No model is configured") -> None:
        self._zone = ZoneInfo(zone)
        self._reason = reason

    async def complete(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Return tool calls for the last message or, if the request has their results, an answer.

        Never raises an error. The callbacks aren't used, because the answer is ready at once.
        """
        text = _last_message_text(request.messages)
        results = _last_tool_results(request.messages)
        if results:
            return self._answer_from_results(request.messages, text, results)
        return self._answer_message(text, request)

    def _answer_message(self, text: str, request: Request) -> Completion:
        """Return a call of the tool that fits the message, or an answer if no tool is needed.

        The first rule that matches applies: a reminder, a note, one of the requests in
        `offline.toml`, a question to search for. Any other message is only acknowledged.
        """
        tools = {tool["name"] for tool in request.tools}
        is_question = _is_question(text)
        typed_text = _ATTACHMENT.sub("", text)

        match = _match(_WORDING["remind"], typed_text)
        if match and "reminder" in tools:
            when = match["what"].strip()
            return _call_tools(("reminder", {"action": "add", "when": when, "text": ""}))

        match = _match(_WORDING["remember"], typed_text)
        if match and "memory" in tools and not is_question:
            note = match["what"].strip()
            note = note[:1].upper() + note[1:]
            return _call_tools(("memory", {"target": "memory", "action": "add", "content": note}))

        fixed_answer = self._answer_small(text, request.messages) or _find_request_answer(text)
        if fixed_answer is not None:
            return _say(fixed_answer)

        has_search = "session_search" in tools
        if has_search and (is_question or _match(_WORDING["question"], text)):
            query = {"query": text[:MAX_QUERY_CHARS], "limit": MAX_PASSAGES}
            search = ("session_search", query)
            if "facts" in tools:
                return _call_tools(("facts", {"mode": "search", **query}), search)
            return _call_tools(search)
        if has_search and "memory" not in tools:
            return _say(
                "This conversation is incognito, so I don't save it. "
                f"{self._reason}, so I can only search earlier messages."
            )
        return _say(self._acknowledge(text, request.messages))

    def _answer_small(self, text: str, messages: Sequence[Json]) -> str | None:
        """Answer a greeting, thanks, or a short question about the time or about Mneme itself.

        Returns None for any other message. The first greeting also says what works without a model.
        """
        if len(text) > MAX_SMALL_CHARS:
            return None
        kind = _small_phrases().get(_plain_words(text))
        if kind is None:
            return None
        answer = str(_WORDING["small"][kind]["answer"])
        if kind == "time":
            utterances = list(_earlier_utterances(messages))
            return answer.format(time=utterances[-1].time_line.strip("[]")) if utterances else None
        if kind == "greeting" and not self._has_explained(messages):
            return f"{answer} {self._explain()}"
        return answer

    def _explain(self) -> str:
        """Say what works without a model."""
        return (
            f"{self._reason}, so I can't hold a conversation. "
            "Ask me a question or use `/recall`, and I'll find what you told me. "
            "You can also say “remember that …” or “remind me tomorrow at 9 to …”."
        )

    def _acknowledge(self, text: str, messages: Sequence[Json]) -> str:
        """Say that a message was stored. The first reply also says what works without a model."""
        if _ATTACHMENT.search(text):
            reply = "I've saved your message, but I can't open the attachment."
        elif is_smalltalk(text):
            reply = "All right."
        else:
            reply = STORED_REPLY
        if self._has_explained(messages):
            return reply
        return f"{reply} {self._explain()}"

    def _has_explained(self, messages: Sequence[Json]) -> bool:
        """Return True if an earlier answer of the conversation already contains the reason."""
        for message in messages:
            if message["role"] != "assistant":
                continue
            if any(self._reason in block.get("text", "") for block in message["content"]):
                return True
        return False

    def _answer_from_results(
        self, messages: Sequence[Json], question: str, results: Sequence[_ToolResult]
    ) -> Completion:
        """Turn tool results into an answer.

        The answer to a search lists the facts first, then quotes passages. The result of any other
        tool, such as "Reminder 1 is set", is already a text for the person.
        """
        last = results[-1]
        if last.is_error:
            return _say(f"I couldn't do that: {last.text}")
        if last.tool_name != "session_search":
            return _say(last.text.strip() or "Done.")

        terms = _query_terms(question)
        passages = [_quote_conversation(messages, question)]
        for session in json.loads(last.text)["sessions"]:
            passages.append(self._quote_session(session, terms))
        passages = [passage for passage in passages if passage][:MAX_PASSAGES]
        facts = _list_facts(results)
        sections = []
        if facts:
            sections.append("\n".join([FACTS_HEADING, *facts]))
        if passages:
            sections += [PASSAGES_HEADING, *passages]
        if not sections:
            return _say(
                "I found nothing about that in earlier messages. "
                f"({self._reason}, so I can only search.)"
            )
        return _say("\n\n".join([*sections, f"_{self._reason}, so I can only quote._"]))

    def _quote_session(self, session: Json, terms: set[str]) -> str:
        """Quote the best match of a session, and name its speaker, its time and the session."""
        item = _best_item(session["window"], terms)
        at = datetime.fromisoformat(item["at"]).astimezone(self._zone)
        time = f"{at:%A} {at.day} {at:%B %Y} at {at:%H:%M}"
        title = session["title"] or ""
        # A title made of the quoted words would only repeat them.
        if title and not item["text"].strip().startswith(title.rstrip("…")):
            where = f" in “{title}” (session {session['session_id']})"
        else:
            where = f" (session {session['session_id']})"
        return f"{_quote(item['text'])}\n\n— {_speaker(item)}, {time}{where}"


def _speaker(item: Json) -> str:
    """Return the speaker of a search result: "I", "you", "Ana", "forwarded by Ana"."""
    if item["role"] == "assistant":
        return "I"
    name = "you" if item.get("is_asker") else str(item.get("sender") or "someone")
    origin = str(item.get("origin") or "typed").replace("_", " ")
    if origin == "typed":
        return name
    if origin == "forwarded":
        return f"forwarded by {name}"
    return f"{name} ({origin})"


def _find_request_answer(text: str) -> str | None:
    """Return the answer to one of the requests in `offline.toml`, or None."""
    for request_rule in _WORDING["requests"]:
        if _match(request_rule["pattern"], text):
            return str(request_rule["answer"])
    return None


def _plain_words(text: str) -> str:
    """Return the words of a text in lower case, without accents and punctuation."""
    plain, _ = plain_with_offsets(text.replace("’", "'"))
    return " ".join(re.sub(r"[^\w']+", " ", plain).split())


@cache
def _small_phrases() -> Mapping[str, str]:
    """Return the kind of each short message in `offline.toml`, by its plain words."""
    kinds: dict[str, str] = {}
    for kind, table in _WORDING["small"].items():
        for phrase in re.split(r"[,\n]", table["phrases"]):
            kinds.setdefault(_plain_words(phrase), kind)
    kinds.pop("", None)
    return kinds


def _match(pattern: str, text: str) -> re.Match[str] | None:
    return re.fullmatch(pattern, text.strip(), re.IGNORECASE | re.DOTALL | re.VERBOSE)


def _is_question(text: str) -> bool:
    return text.rstrip(_TRAILING_CHARS).endswith(tuple(_WORDING["question_ends"]))


def _query_terms(text: str) -> set[str]:
    return {term.rstrip("*") for term in plan_any_word(text).highlights}


def _term_share(text: str, terms: set[str]) -> float:
    """Return the share of `terms` that the text contains, from 0 to 1."""
    folded_text = fold(text).casefold()
    count = sum(term in folded_text for term in terms)
    return count / max(1, len(terms))


def _best_item(window: Sequence[Json], terms: set[str]) -> Json:
    """Return the message of a search result to quote, given the messages around the match.

    Usually, this is the match itself. If the match is a question, a statement next to it is quoted
    instead, provided that the statement contains at least `MIN_TERM_SHARE` of the terms.
    """
    match = next(item for item in window if item["is_anchor"])
    if not _is_question(match["text"]):
        return match
    statements = [
        item for item in window if item["role"] == "user" and not _is_question(item["text"])
    ]
    best = max(statements, key=lambda item: _term_share(item["text"], terms), default=match)
    return best if _term_share(best["text"], terms) >= MIN_TERM_SHARE else match


def _quote(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.strip().splitlines()[:MAX_QUOTE_LINES])


def _list_utterances(message: Json) -> list[_Utterance]:
    """Return what people wrote in a user message of a request.

    Time lines, frames and memory fences are recognized by how a block begins. People can't imitate
    them, because their texts are neutralised (`core.guard.origin_and_fence`).
    """
    utterances: list[_Utterance] = []
    time_line = ""
    for block in message["content"]:
        if block.get("type") != "text":
            continue
        text = block["text"]
        if TIME_LINE.fullmatch(text):
            time_line = text
        elif not text.startswith(OPENING) and not FRAME_START.match(text):
            utterances.append(_Utterance(time_line, text))
    return utterances


def _last_message_text(messages: Sequence[Json]) -> str:
    """Return the text of the last user message in which a person says something."""
    for message in reversed(messages):
        utterances = _list_utterances(message) if message["role"] == "user" else []
        if utterances:
            return "\n".join(utterance.text for utterance in utterances)
    return ""


def _quote_conversation(messages: Sequence[Json], question: str) -> str:
    """Quote the message of the present conversation that answers a question best.

    Recall doesn't search this conversation, because a model reads it anyway. The message with the
    most terms of the question wins; among equals, a statement comes before a question, and a later
    message before an earlier one. Returns "" if no message contains `MIN_TERM_SHARE` of the terms.
    """
    terms = _query_terms(question)
    question_lines = question.split("\n")
    best_rank = (MIN_TERM_SHARE, False)
    passage = ""
    for utterance in _earlier_utterances(messages):
        text = utterance.text
        is_question = _is_question(text)
        # Skip the question itself, which may consist of several messages, one on each line.
        if text == question or (text in question_lines and is_question):
            continue
        rank = (_term_share(text, terms), not is_question)
        if rank >= best_rank:
            best_rank = rank
            time = utterance.time_line.strip("[]")
            passage = f"{_quote(text)}\n\n— earlier in this conversation, {time}"
    return passage


def _earlier_utterances(messages: Sequence[Json]) -> Iterator[_Utterance]:
    """Yield all utterances of a request that have a time line, oldest first."""
    for message in messages:
        if message["role"] != "user":
            continue
        for utterance in _list_utterances(message):
            if utterance.time_line:
                yield utterance


def _list_facts(results: Sequence[_ToolResult]) -> list[str]:
    """Return a line for each of the first facts that the tool ``facts`` has found.

    For example: ``- Ana's birthday is on 3 May (said on 23 November 2026)``.
    """
    lines: list[str] = []
    for result in results:
        if result.tool_name != "facts" or result.is_error:
            continue
        for fact in json.loads(result.text)["facts"]:
            who = f"{fact['who']}: " if fact.get("who") else ""
            when = fact["when"] or f"said on {fact['said_on']}"
            lines.append(f"- {who}{fact['content'].rstrip(' .')} ({when})")
    return lines[:MAX_PASSAGES]


def _last_tool_results(messages: Sequence[Json]) -> list[_ToolResult]:
    """Return the tool results at the end of the conversation, or [] if it ends with a message."""
    last_blocks = messages[-1]["content"]
    if len(messages) < 2 or last_blocks[-1].get("type") != "tool_result":
        return []
    names = {
        block["id"]: str(block["name"])
        for block in messages[-2]["content"]
        if block.get("type") == "tool_use"
    }
    return [
        _ToolResult(
            tool_name=names.get(block["tool_use_id"], ""),
            text=str(block.get("content", "")),
            is_error=bool(block.get("is_error")),
        )
        for block in last_blocks
        if block.get("type") == "tool_result"
    ]


def _call_tools(*calls: tuple[str, dict[str, Any]]) -> Completion:
    """Return a completion that calls tools. Each call is a pair: a name and its arguments."""
    blocks = tuple(
        {"type": "tool_use", "id": f"toolu_{uuid4().hex[:24]}", "name": name, "input": arguments}
        for name, arguments in calls
    )
    return Completion(blocks=blocks, text="", stop_reason="tool_use", model=OFFLINE_MODEL)


def _say(text: str) -> Completion:
    block = {"type": "text", "text": text}
    return Completion(blocks=(block,), text=text, stop_reason="end_turn", model=OFFLINE_MODEL)
