"""Answers people by rules when no model is available.

`OfflineModel` implements the protocol `core.ports.Model`, so a turn runs as usual. Like a model, it
reads the request and calls tools to search, to write a note or to set a reminder. It writes a note
or sets a reminder only if the message clearly asks for that. `offline.toml` contains the patterns
and the English answers. Answers in other languages are passed in.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from zoneinfo import ZoneInfo

from core.agent.answering.request_reading import list_notes, parse_time_line, zone_of
from core.guard.origin_and_fence import FILE_LEAD, FRAME_START, OPENING, TIME_LINE
from core.ports import TextCallback
from core.review.pending import is_waiting_result
from core.text.normalize import join_sentences
from core.text.terms import find_short_message, is_smalltalk
from core.types import Completion, Json, Request

if TYPE_CHECKING:
    from core.agent.answering.quotes import Quote
    from core.scheduling.talk.agenda_questions import AgendaQuestion

OFFLINE_MODEL = "offline"
NO_MODEL = "no_model"
OUT_OF_REACH = "out_of_reach"
# A search returns at most this many conversations and facts.
MAX_SESSIONS = 5
MAX_FACTS = 10
# A search also returns this many messages before and after each match (see `widen_window`).
WINDOW_MESSAGES = 12
RESULT_CHARS = 30_000
MAX_QUERY_CHARS = 2000
MAX_OPEN_QUESTION_CHARS = 80
"""A longer message without a question mark isn't a question."""
# A line of `prompt.with_attachments`: "[attached photo: boat.jpg (image/jpeg)]".
_ATTACHMENT = re.compile(r"\[attached [^:\[\]\n]{1,40}: [^\n]*\]")
# The line after the words of a voice message, which is stored with them. Without the words, a frame
# describes the file.
_HEARD_VOICE = re.compile(r"(?<=\S)\s*\[attached voice: [^\n]*\]")
# A message of a kind that the adapter can't read, such as "[unsupported: …]".
_UNREADABLE = re.compile(r"^Message: \{[^}]*, which can be read only in \w+(?:: [^}]*)?\}$")
# The frame of a stored file: its name, type and size.
_FILE_FRAME = re.compile(rf"\[{FILE_LEAD}(?: (\d+))?, “([^”]*)” \(([^)]*)\)")
_WORDING: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
OfflineTexts = Mapping[str, str]
"""The answers in one language, by the keys of `[texts]` in `offline.toml`."""
ENGLISH_TEXTS: OfflineTexts = _WORDING["texts"]
STORED_REPLY = ENGLISH_TEXTS["saved"]
# Characters that may follow a question mark.
_TRAILING_CHARS = " \t\r\n!！.。…\"'”’»」)"


@dataclass(frozen=True, slots=True)
class _Utterance:
    """The text of a person in one message of a request, without frames and recalled memory."""

    # The line that precedes the text, such as "[Friday 20 November 2026, 12:05 Europe/Lisbon]".
    time_line: str
    text: str


@dataclass(frozen=True, slots=True)
class _ToolResult:
    tool_name: str
    # The query of a search.
    query: str
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class _File:
    """A stored file of the person's last message."""

    number: str
    name: str
    # The type and size of the file.
    details: str
    # The text of the file follows in the request.
    has_text: bool
    # The gateway says below the answer why.
    is_unreadable: bool


class OfflineModel:
    """A `Model` that answers by rules.

    `reason` says why no model is available: a clause, or the key of a clause in `offline.toml`. The
    first answer of a conversation contains the clause. `load_texts` returns the answers in a
    language. `word_details` translates details of a file, such as "PDF, 8 pages", into a language.
    """

    # Offline answers cost nothing, so daily limits aren't checked.
    is_free = True

    def __init__(
        self,
        zone: str,
        reason: str = NO_MODEL,
        load_texts: Callable[[str], OfflineTexts] = lambda language: ENGLISH_TEXTS,
        word_details: Callable[[str, str], str] = lambda details, language: details,
    ) -> None:
        self._zone = ZoneInfo(zone)
        self._reason = reason
        self._load_texts = load_texts
        self._word_details = word_details

    async def complete(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Return tool calls for the last message, or an answer if the tools have already run.

        Never raises an error. The callbacks aren't used, because the answer is complete at once.
        """
        texts = self._load_texts(request.language)
        reason = texts.get(self._reason, self._reason)
        answerer = _Answerer(
            self._zone,
            reason,
            texts,
            request.language,
            self._word_details,
            lambda: list_notes(request),
        )
        return answerer.answer(request)


@dataclass(frozen=True, slots=True)
class _Answerer:
    """Answers one request of `OfflineModel`."""

    zone: ZoneInfo
    # A clause such as "No model is configured".
    reason: str
    texts: OfflineTexts
    language: str
    # Translates the details of a file into a language.
    word_details: Callable[[str, str], str]
    # Returns the notes that the request shows.
    list_notes: Callable[[], Sequence[str]]

    def answer(self, request: Request) -> Completion:
        """Return tool calls for the last message, or an answer if the tools have already run."""
        text = _last_message_text(request.messages)
        results = _last_tool_results(request.messages)
        files = _list_last_files(request.messages)
        if files and not results:
            answer = self._answer_about_files(text, files)
            if answer is not None:
                return answer
        if results:
            return self._answer_from_results(request.messages, text, results)
        return self._answer_message(text, request)

    def _answer_message(self, text: str, request: Request) -> Completion:
        """Return a call of the tool that fits the message, or an answer if no tool is needed.

        The first matching rule applies: a reminder, a note, one of the requests in `offline.toml`,
        a question about the calendar, a question that needs a search. Any other message is only
        acknowledged.
        """
        tools = {tool["name"] for tool in request.tools}
        is_question = _is_question(text)
        typed_text = _ATTACHMENT.sub("", text)

        match = _match(_WORDING["remind"], typed_text)
        if match and "reminder" in tools:
            return _call_tools(("reminder", {"action": "add", "task": match["what"].strip()}))

        match = _match_any(_WORDING["remember"], typed_text)
        if match and "memory" in tools and not is_question:
            note = match["what"].strip()
            note = note[:1].upper() + note[1:]
            return _call_tools(("memory", {"target": "memory", "action": "add", "content": note}))

        fixed_answer = self._answer_small_talk(text, request.messages) or self._answer_request(text)
        if fixed_answer is not None:
            return _get_text(fixed_answer)

        calls = self._ask_calendar(typed_text, request.messages, tools)
        if calls is not None:
            return calls

        has_search = "session_search" in tools
        if has_search and (is_question or _match(_WORDING["question"], text)):
            return _call_searches(text[:MAX_QUERY_CHARS], has_facts="facts" in tools)
        if has_search and "memory" not in tools:
            return self._get_text("incognito")
        return _get_text(self._acknowledge(text, request.messages))

    def _ask_calendar(
        self, text: str, messages: Sequence[Json], tools: Collection[str]
    ) -> Completion | None:
        """Return the tool calls for a question about the calendar, or None for other messages.

        The calls also search the messages, because the person may have mentioned the time of an
        event, or what they did.
        """
        if "calendar" not in tools:
            return None
        question = self._read_agenda_question(messages, text)
        if question is None:
            return None
        # Without a zone, so that the tool reads them in the person's zone.
        start, end = (at.replace(tzinfo=None) for at in (question.start, question.end))
        arguments = {"start": start.isoformat(), "end": end.isoformat(), "text": question.what}
        calls: list[tuple[str, dict[str, Any]]] = [("calendar", arguments)]
        if (question.what or question.is_past) and "session_search" in tools:
            calls += _list_searches(text[:MAX_QUERY_CHARS], has_facts="facts" in tools)
        return _call_tools(*calls)

    def _answer_from_calendar(
        self, messages: Sequence[Json], text: str, result: _ToolResult
    ) -> Completion | None:
        """Return the events that a question asks for, or None if the calendar doesn't answer it."""
        from core.tools.agenda_answers import list_problems, select_events

        question = self._read_agenda_question(messages, text)
        if question is None or result.is_error:
            return None
        lines = select_events(result.text, question, self.texts)
        problems = list_problems(result.text, self.texts)
        if lines:
            lines.insert(0, self.texts["in_calendar"])
        elif question.what or question.is_past:
            return None
        elif not problems:
            lines = [self.texts["no_events"]]
        return _get_text("\n".join([*lines, *problems]))

    def _answer_about_files(self, text: str, files: Sequence[_File]) -> Completion | None:
        """Say which files of a message are stored, and how to find them again.

        Returns None if the message asks for a reminder or a note, because such a request is
        answered first.
        """
        typed_text = _ATTACHMENT.sub("", text)
        if _match_any((_WORDING["remind"], *_WORDING["remember"]), typed_text):
            return None
        is_stored = bool(files[0].number)
        if is_stored and all(file.is_unreadable for file in files):
            return self._get_text("saved")
        details = [self.word_details(file.details, self.language) for file in files]
        *names, last = [f"{file.name} ({line})" for file, line in zip(files, details, strict=True)]
        listed = last
        if names:
            listed = self.texts["and"].format(first=", ".join(names), last=last)
        key = "kept_file" if is_stored else "kept_no_file"
        if names:
            key += "s"
        answer = self.texts[key].format(files=listed, reason=self.reason)
        if is_stored and any(file.has_text for file in files):
            answer = join_sentences((answer, self.texts["find_page"]))
        return _get_text(answer)

    def _answer_small_talk(self, text: str, messages: Sequence[Json]) -> str | None:
        """Answer a greeting, thanks, or a short question about the time or about Mneme itself.

        Returns None for any other message. The answer to the first greeting also explains how to
        use Mneme without a model.
        """
        kind = find_short_message(text)
        if kind is None:
            return None
        answer = self.texts[kind]
        if kind == "time":
            return self._tell_time(answer, messages)
        if kind == "greeting" and not self._has_explained(messages):
            return join_sentences((answer, self._explain_usage()))
        return answer

    def _answer_request(self, text: str) -> str | None:
        """Return the answer to one of the requests in `offline.toml`, or None."""
        for request_rule in _WORDING["requests"]:
            if _match_any(request_rule["patterns"], text):
                return self.texts[request_rule["answer"]]
        return None

    def _tell_time(self, answer: str, messages: Sequence[Json]) -> str | None:
        """Fill the day and time of the last message into an answer.

        Returns None if it has no time.
        """
        utterances = list(_earlier_utterances(messages))
        if not utterances:
            return None
        line = utterances[-1].time_line
        at = parse_time_line(line, self.zone)
        return answer.format(
            weekday=_pick_name(self.texts["weekdays"], at.weekday()),
            day=at.day,
            month=_pick_name(self.texts["months"], at.month - 1),
            year=at.year,
            clock=f"{at:%H:%M}",
            zone=at.tzinfo,
        )

    def _get_text(self, key: str) -> Completion:
        """Return the answer with this key."""
        return _get_text(self.texts[key].format(reason=self.reason))

    def _explain_usage(self) -> str:
        """Return sentences that explain how to use Mneme without a model."""
        return self.texts["explanation"].format(reason=self.reason)

    def _acknowledge(self, text: str, messages: Sequence[Json]) -> str:
        """Return a reply that confirms that the message is stored.

        The first reply of a conversation also explains how to use Mneme without a model.
        """
        if _ATTACHMENT.search(_HEARD_VOICE.sub("", text)):
            key = "saved_without_attachment"
        elif _UNREADABLE.search(text):
            key = "saved_unreadable"
        elif is_smalltalk(text):
            key = "acknowledged"
        else:
            key = "saved"
        reply = self.texts[key]
        if self._has_explained(messages):
            return reply
        return join_sentences((reply, self._explain_usage()))

    def _has_explained(self, messages: Sequence[Json]) -> bool:
        """Return whether an earlier answer in the conversation has explained the missing model."""
        for message in messages:
            if message["role"] != "assistant":
                continue
            if any(self.reason in block.get("text", "") for block in message["content"]):
                return True
        return False

    def _answer_from_results(
        self, messages: Sequence[Json], question: str, results: Sequence[_ToolResult]
    ) -> Completion:
        """Turn tool results into an answer.

        The answer to a search lists the facts first and the messages after them. After other tools
        the answer is short, because the gateway's receipt describes the change.
        """
        calendar = [result for result in results if result.tool_name == "calendar"]
        others = [result for result in results if result.tool_name != "calendar"]
        events = self._answer_from_calendar(messages, question, calendar[0]) if calendar else None
        asked = self._read_agenda_question(messages, question) if others else None
        if events is not None and (asked is None or not asked.is_past):
            return events
        if not others:
            return _call_searches(question[:MAX_QUERY_CHARS], has_facts=False)
        answer = self._answer_from_searches(messages, question, others)
        if answer.stop_reason != "end_turn" or not calendar:
            return answer
        if events is None:
            return _get_text("\n\n".join([answer.text, *self._list_problems(calendar[0])]))
        if self.texts["nothing_found"] in answer.text:
            return events
        return _get_text(f"{events.text}\n\n{answer.text}")

    def _read_agenda_question(self, messages: Sequence[Json], text: str) -> AgendaQuestion | None:
        # Imported here because it takes a while to load.
        from core.scheduling.talk.agenda_questions import read_question

        asked_at = _time_of_last_message(messages, self.zone)
        return read_question(text, asked_at, zone_of(asked_at))

    def _list_problems(self, result: _ToolResult) -> list[str]:
        """Return a sentence for each calendar that couldn't be read, as it may have the answer."""
        from core.tools.agenda_answers import list_problems

        return list_problems(result.text, self.texts)

    def _answer_from_searches(
        self, messages: Sequence[Json], question: str, results: Sequence[_ToolResult]
    ) -> Completion:
        """Turn the results of searches, or of a tool that changed something, into an answer."""
        last_result = results[-1]
        if last_result.is_error and _lacks_time(last_result):
            return _get_text(self.texts["set_nothing"])
        if last_result.is_error:
            return _get_text(self.texts["failed"].format(reason=last_result.text))
        if last_result.tool_name != "session_search":
            is_waiting = is_waiting_result(last_result.text)
            return _get_text(self.texts["acknowledged" if is_waiting else "done"])

        # Imported here because only questions need it.
        from core.agent.answering.answers import (
            choose_follow_up,
            drop_excluded,
            rank_quotes,
            render_files,
            render_quotes,
            widen_window,
        )
        from core.agent.answering.quotes import AskedQuestion

        asked_question = AskedQuestion(question, _time_of_last_message(messages, self.zone))
        collected = self._collect_quotes(messages, question, results)
        quotes = rank_quotes(asked_question, drop_excluded(question, collected))
        searches = [result for result in results if result.tool_name == "session_search"]
        queries = [search.query for search in searches]
        is_first_round = queries[-1] in (question, _topics(question))
        follow_up = choose_follow_up(quotes, queries, is_first_round=is_first_round)
        if follow_up:
            window = widen_window(WINDOW_MESSAGES, MAX_SESSIONS, _parse_results(searches))
            return _call_tools(_search(follow_up, window))
        files = render_files(_list_found_files(question, searches), self.texts)
        if not quotes and not files:
            answer = self.texts["nothing_found"]
            if not self._has_explained(messages):
                answer += self.texts["only_search"].format(reason=self.reason)
            return _get_text(answer)
        zone = zone_of(asked_question.now)
        lists = (render_quotes(asked_question, quotes, zone, self.texts), files)
        answer = "\n".join(filter(None, lists))
        if not self._has_explained(messages):
            answer += "\n\n" + self.texts["only_quote"].format(reason=self.reason)
        return _get_text(answer)

    def _collect_quotes(
        self, messages: Sequence[Json], question: str, results: Sequence[_ToolResult]
    ) -> list[Quote]:
        """Return the search results, the notes, and the statements of this conversation.

        What says the same is returned once.
        """
        from core.agent.answering.answers import add_facts, add_notes
        from core.agent.answering.quotes import Quote

        quotes: dict[object, Quote] = {}
        question_lines = question.split("\n")
        for utterance in _earlier_utterances(messages):
            text = _ATTACHMENT.sub("", utterance.text).strip()
            is_new = bool(text) and utterance.text not in (question, *question_lines)
            if is_new and not _is_question(text):
                at = parse_time_line(utterance.time_line, self.zone)
                quotes[text] = Quote(text, at, self.texts["speaker_you"], is_askers=True)
        for result in results:
            if result.tool_name == "session_search" and not result.is_error:
                _add_messages(
                    quotes,
                    json.loads(result.text),
                    self.texts,
                    is_ranked=result.query == question,
                )
        for result in results:
            if result.tool_name == "facts" and not result.is_error:
                answer = json.loads(result.text)
                add_facts(quotes, answer["facts"], answer.get("replaced", ()), self.texts)
        add_notes(quotes, self.list_notes(), self.texts)
        return list(quotes.values())


def _parse_results(searches: Sequence[_ToolResult]) -> list[Json]:
    return [json.loads(search.text) for search in searches if not search.is_error]


def _list_found_files(question: str, searches: Sequence[_ToolResult]) -> Sequence[Json]:
    """Return the files that the search for the question itself found, best first."""
    for search in searches:
        if search.query == question and not search.is_error:
            files: Sequence[Json] = json.loads(search.text).get("files", ())
            return files
    return ()


def _topics(question: str) -> str:
    from core.facts.changes import topic_query

    return topic_query(question)


def _search(query: str, window: int = WINDOW_MESSAGES) -> tuple[str, dict[str, Any]]:
    return (
        "session_search",
        {
            "query": query,
            "limit": MAX_SESSIONS,
            "window": window,
            "budget_chars": RESULT_CHARS,
        },
    )


def _call_searches(question: str, *, has_facts: bool) -> Completion:
    """Return calls that search facts and messages for a question and for synonyms of its topics."""
    return _call_tools(*_list_searches(question, has_facts=has_facts))


def _list_searches(question: str, *, has_facts: bool) -> list[tuple[str, dict[str, Any]]]:
    calls = [_search(question)]
    if has_facts:
        calls.insert(0, ("facts", {"mode": "search", "query": question, "limit": MAX_FACTS}))
    if topics := _topics(question):
        calls.append(_search(topics))
    return calls


def _add_messages(
    quotes: dict[object, Quote], result: Json, texts: OfflineTexts, *, is_ranked: bool
) -> None:
    """Add the messages of a search result to the quotes, except for the asker's own questions.

    Without `is_ranked`, only the asker's statements are added.
    """
    from core.agent.answering.answers import name_speaker, rank_matches
    from core.agent.answering.quotes import Quote

    ranks = rank_matches(result) if is_ranked else {}
    for session in result["sessions"]:
        bookends = [*session.get("bookend_start", ()), *session.get("bookend_end", ())]
        for item in (*session["window"], *bookends):
            key = item["message_id"]
            text = _ATTACHMENT.sub("", item["text"]).strip()
            is_typed = item.get("origin", "typed") == "typed" and item["role"] == "user"
            is_askers = is_typed and bool(item.get("is_asker"))
            if not text or key in quotes or (is_askers and _is_question(text)):
                continue
            if is_askers or key in ranks:
                at = datetime.fromisoformat(item["at"])
                quotes[key] = Quote(
                    text,
                    at,
                    name_speaker(item, texts),
                    is_askers,
                    session["session_id"],
                    key,
                    ranks.get(key),
                )


def _pick_name(names: str, index: int) -> str:
    """Return one of the names in a list that is separated by commas."""
    return names.split(", ")[index]


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL | re.VERBOSE)


def _lacks_time(result: _ToolResult) -> bool:
    """Return whether a result says that the request for a reminder has no readable time."""
    # Imported here because only requests for reminders need it.
    from core.scheduling.tool import NEEDS_TIME

    return result.tool_name == "reminder" and NEEDS_TIME in result.text


def _match(pattern: str, text: str) -> re.Match[str] | None:
    return _compile(pattern).fullmatch(text.strip())


def _match_any(patterns: Iterable[str], text: str) -> re.Match[str] | None:
    """Return the match of the first pattern that matches the whole text, or None."""
    return next(filter(None, (_match(pattern, text) for pattern in patterns)), None)


@lru_cache(maxsize=500)
def _is_question(text: str) -> bool:
    """Return whether a text ends like a question, or is a short question without a question mark.

    "wo wohne ich" is one, but "wo ich wohne, ist es laut" isn't.
    """
    if text.rstrip(_TRAILING_CHARS).endswith(tuple(_WORDING["question_ends"])):
        return True
    is_short = len(text) <= MAX_OPEN_QUESTION_CHARS and "\n" not in text.strip()
    return is_short and _match_any(_WORDING["open_questions"], text) is not None


def _time_of_last_message(messages: Sequence[Json], zone: ZoneInfo) -> datetime:
    line = ""
    for utterance in _earlier_utterances(messages):
        line = utterance.time_line
    return parse_time_line(line, zone)


def _list_utterances(message: Json) -> list[_Utterance]:
    """Return the texts that people wrote in a user message of a request.

    A time line belongs to the texts after it. Blocks with frames and memory fences are skipped.
    All of these are recognized by how they begin. People can't imitate them, because
    `core.guard.origin_and_fence` changes such beginnings in their texts.
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
    """Return the text of the last user message that contains a person's words."""
    for message in reversed(messages):
        utterances = _list_utterances(message) if message["role"] == "user" else []
        if utterances:
            return "\n".join(utterance.text for utterance in utterances)
    return ""


def _list_last_files(messages: Sequence[Json]) -> list[_File]:
    """Return the files of the last user message of a request."""
    files: list[_File] = []
    if not messages or messages[-1]["role"] != "user":
        return files
    for block in messages[-1]["content"]:
        match = _FILE_FRAME.match(str(block.get("text", "")))
        if match:
            has_text = "\n\n" in block["text"]
            is_unreadable = block["text"].startswith(f"{match[0]} aren't readable")
            # The part after the semicolon is for a model: "3 pictures of it follow".
            details = match[3].partition(";")[0]
            files.append(_File(match[1] or "", match[2], details, has_text, is_unreadable))
    return files


def _earlier_utterances(messages: Sequence[Json]) -> Iterator[_Utterance]:
    """Yield the messages of a request that have a time line, oldest first."""
    for message in messages:
        if message["role"] != "user":
            continue
        for utterance in _list_utterances(message):
            if utterance.time_line:
                yield utterance


def _last_tool_results(messages: Sequence[Json]) -> list[_ToolResult]:
    """Return the tool results since the person's last message, oldest first.

    Returns [] if the conversation ends with a person's message.
    """
    if messages[-1]["content"][-1].get("type") != "tool_result":
        return []
    calls: dict[str, Json] = {}
    results: list[_ToolResult] = []
    for message in messages:
        blocks = message["content"]
        if message["role"] == "user" and _list_utterances(message):
            results = []
        for block in blocks:
            if block.get("type") == "tool_use":
                calls[block["id"]] = block
            if block.get("type") == "tool_result":
                call = calls.get(block["tool_use_id"], {})
                results.append(
                    _ToolResult(
                        tool_name=str(call.get("name", "")),
                        query=str(call.get("input", {}).get("query", "")),
                        text=str(block.get("content", "")),
                        is_error=bool(block.get("is_error")),
                    )
                )
    return results


def _call_tools(*calls: tuple[str, dict[str, Any]]) -> Completion:
    """Return a completion that calls tools.

    Each argument is a pair of a tool's name and its arguments.
    """
    blocks = tuple(
        {"type": "tool_use", "id": f"toolu_{uuid4().hex[:24]}", "name": name, "input": arguments}
        for name, arguments in calls
    )
    return Completion(blocks=blocks, text="", stop_reason="tool_use", model=OFFLINE_MODEL)


def _get_text(text: str) -> Completion:
    block = {"type": "text", "text": text}
    return Completion(blocks=(block,), text=text, stop_reason="end_turn", model=OFFLINE_MODEL)
