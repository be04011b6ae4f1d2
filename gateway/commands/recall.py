"""Searches the history, and shows what an answer was based on: /recall and /why.

The query language is described in `core/search/query.py`. Results are rendered by
`core/search/rendering.py`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import tzinfo

from core.errors import Refused
from core.guard.origin_and_fence import FILE_LEAD
from core.markup.markdown import escape
from core.review.pending import is_waiting_result
from core.search.query import split_page, text_for_next_page
from core.search.recall import HistorySearch
from core.search.rendering import list_parts, to_markdown
from core.store.query import (
    MAX_FIRST_MESSAGES,
    FoundSession,
    ModelHelp,
    ResultLimits,
    SearchQuery,
    SearchResults,
)
from core.store.rows import split_turns
from core.store.sessions import Conversations
from core.text.normalize import shorten
from core.types import Answer, BillingScope, Button, Command, Json, Message
from gateway.commands.registry import CommandContext, load_specs, make_button, parse_number
from gateway.texts.catalog import Texts

# All of these switches request the same deep search.
_DEEP_SWITCHES = {"deep", "expand", "rerank"}
_MAX_SESSIONS = 5
_MAX_RESULT_CHARS = 3_000
# If a query is longer than this, it gets no button for the next page.
_MAX_NEXT_PAGE_CHARS = 1_000
_MAX_SESSIONS_WITH_BUTTONS = 3
_MAX_NAME_CHARS = 24
_MAX_TITLE_CHARS = 200
_MAX_RECALLED_CHARS = 160
# A line of recalled background in the sent form of a message: its token and its text.
_RECALLED_LINE = re.compile(r"^- (?:([mf][1-9]\d{0,8}) )?(.+)$", re.MULTILINE)
_FILE_HEADING = re.compile(rf"^\[{FILE_LEAD} (\d+), “([^”\n]*)”")
# A phone turns two hyphens into a dash.
_SWITCH = r"(?:--|[\u2012-\u2015])(summary|deep|expand|rerank)"
# A switch is recognized only before or after the words of the query.
_LEADING_OR_TRAILING_SWITCH = re.compile(
    rf"^\s*{_SWITCH}(?=\s|$)|(?<!\S){_SWITCH}\s*$", re.IGNORECASE
)
# If a query has such a filter, the results of tools aren't searched.
_CHOOSES_SPEAKER = re.compile(r"\b(?:role|from):", re.IGNORECASE)


class RecallCommands:
    """Answers /recall. If a switch requests a model's help, `expanded_recall` is searched.

    If no message matches, results of tools are searched, such as pages that were read.
    """

    specs = load_specs("recall")

    def __init__(self, recall: HistorySearch, expanded_recall: HistorySearch, zone: tzinfo) -> None:
        self._recall = recall
        self._expanded_recall = expanded_recall
        self._zone = zone

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Search the history. Buttons read on, continue a session, or show the next page."""
        texts = context.texts
        text, switches = _split_switches(command.arguments)
        search = self._expanded_recall if switches else self._recall
        results = await search.recall(_build_query(text, switches, context))
        if not results.sessions and not results.files and not _CHOOSES_SPEAKER.search(text):
            text_of_tools = f"{text} role:tool"
            tool_results = await search.recall(_build_query(text_of_tools, switches, context))
            if tool_results.sessions:
                text, results = text_of_tools, tool_results

        buttons = _make_result_buttons(texts, results, context.session.id)
        if len(text) <= _MAX_NEXT_PAGE_CHARS:
            buttons += _make_page_buttons(texts, text, switches, has_more=results.has_more)
        for file in results.files:
            label = texts.FILE_SEND.format(name=shorten(file.name, _MAX_NAME_CHARS))
            buttons.append(make_button(label, "files", f"send {file.file_id}"))
        return Answer(
            text=to_markdown(results, self._zone, texts.result_words),
            buttons=tuple(buttons),
            cards=tuple(list_parts(results, self._zone, texts.result_words)),
            cards_title=f"🔎 **{escape(shorten(text, _MAX_TITLE_CHARS))}**" if text else "🔎",
            is_page=text.lstrip().lower().startswith("page:"),
        )


class WhyCommand:
    """Answers /why: shows which data, besides the conversation, the model got for an answer."""

    specs = load_specs("why")

    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """List the recalled lines, look-ups and files of the last answer, or of an earlier one.

        The argument counts answers from the end. Raises Refused if there is no such answer.
        """
        texts = context.texts
        number = parse_number(command.arguments.strip() or "1")
        if not number:
            raise Refused(texts.WHY_USAGE)
        rows = await self._conversations.load_history(context.session, context.scopes)
        turns = [turn for turn in split_turns(rows) if any(row.role == "assistant" for row in turn)]
        if number > len(turns):
            raise Refused(texts.WHY_NO_ANSWER)
        turn = turns[-number]
        lines = [*_list_recalled(texts, turn), *_list_files(texts, turn), *_list_calls(texts, turn)]
        if not lines:
            return Answer(text=texts.WHY_NOTHING)
        return Answer(text="\n".join([texts.WHY_GIVEN, *lines, "", texts.WHY_NOTES]))


def _build_query(text: str, switches: Sequence[str], context: CommandContext) -> SearchQuery:
    """Return the query of a person, with the model's help that the switches request."""
    is_deep = not _DEEP_SWITCHES.isdisjoint(switches)
    model_help = ModelHelp(
        is_summarized="summary" in switches,
        is_expanded=is_deep,
        is_reranked=is_deep,
        billing=BillingScope(
            session_id=context.session.id, scope=context.scope, user_id=context.inbound.sender.id
        ),
    )
    return SearchQuery(
        text=text,
        scopes=context.scopes,
        asker=context.account,
        limits=ResultLimits(sessions=_MAX_SESSIONS, budget_chars=_MAX_RESULT_CHARS),
        help=model_help,
        is_incognito=context.session.is_incognito,
    )


def _list_recalled(texts: Texts, turn: Sequence[Message]) -> Iterator[str]:
    """Yield the recalled lines that were sent with the messages of a turn, as list items.

    Each line begins with a reference. For example, m12 is a message, f3 a fact and n1 a note.
    """
    for row in turn:
        for block in row.memory_blocks:
            for token, text in _RECALLED_LINE.findall(block["text"]):
                text = escape(shorten(text, _MAX_RECALLED_CHARS))
                if token.startswith("m"):
                    yield texts.WHY_MESSAGE.format(text=text, number=token[1:])
                elif token:
                    yield texts.WHY_FACT.format(text=text, fact=token)
                else:
                    yield f"- {text}"


def _list_files(texts: Texts, turn: Sequence[Message]) -> Iterator[str]:
    """Yield the files whose contents were sent with the messages of a turn."""
    for row in turn:
        for block in row.sent_blocks or ():
            if heading := _FILE_HEADING.match(str(block.get("text", ""))):
                name = escape(shorten(heading[2], _MAX_RECALLED_CHARS))
                yield texts.WHY_FILE.format(number=heading[1], name=name)


def _list_calls(texts: Texts, turn: Sequence[Message]) -> Iterator[str]:
    """Yield the tools that ran in a turn, with their search texts and URLs.

    Calls that failed or wait for approval are left out, because they returned no data to the model.
    """
    successful_ids = set()
    for row in turn:
        for block in row.blocks or ():
            is_result = block.get("type") == "tool_result" and not block.get("is_error")
            if is_result and not is_waiting_result(row.text):
                successful_ids.add(block.get("tool_use_id"))
    for row in turn:
        for block in row.blocks or ():
            if block.get("type") == "tool_use" and block.get("id") in successful_ids:
                arguments = _render_arguments(block.get("input") or {})
                yield texts.WHY_TOOL.format(tool=block["name"], arguments=arguments)


def _render_arguments(arguments: Json) -> str:
    values = [
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for value in arguments.values()
        if value not in ("", None, [])
    ]
    return escape(shorten(" · ".join(values), _MAX_RECALLED_CHARS))


def _split_switches(arguments: str) -> tuple[str, Sequence[str]]:
    """Split the arguments into the query and its switches, without duplicates.

    For example: ``--summary ferry --rerank`` -> ``("ferry", ["summary", "rerank"])``.
    """
    text = arguments
    switches: list[str] = []
    while match := _LEADING_OR_TRAILING_SWITCH.search(text):
        switch = (match[1] or match[2]).lower()
        if switch not in switches:
            switches.append(switch)
        text = text[: match.start()] + text[match.end() :]
    return text.strip(), switches


def _make_result_buttons(
    texts: Texts, results: SearchResults, current_session_id: int
) -> list[Button]:
    """Return buttons to read on in the results and to continue their sessions.

    The person's current session gets no button to continue. Only the first
    `_MAX_SESSIONS_WITH_BUTTONS` sessions get buttons.
    """
    if results.shape in ("scroll", "read"):
        buttons = []
        for result in results.sessions:
            buttons += _make_scroll_buttons(texts, result, is_scroll=results.shape == "scroll")
            if result.session.id != current_session_id:
                buttons.append(_make_resume_button(texts.BUTTON_CONTINUE_IT, result))
        return buttons

    look_buttons = []
    resume_buttons = []
    for number, result in enumerate(results.sessions[:_MAX_SESSIONS_WITH_BUTTONS], start=1):
        if result.matches:
            message_id = result.matches[0].message_id
            label = texts.BUTTON_AROUND.format(number=number)
            look_buttons.append(make_button(label, "recall", f"around:{message_id}"))
        else:
            label = texts.BUTTON_READ.format(number=number)
            look_buttons.append(make_button(label, "recall", f"in:{result.session.id}"))
        if result.session.id != current_session_id:
            label = texts.BUTTON_CONTINUE.format(number=number)
            resume_buttons.append(_make_resume_button(label, result))
    return look_buttons + resume_buttons


def _make_page_buttons(
    texts: Texts, text: str, switches: Sequence[str], *, has_more: bool
) -> list[Button]:
    """Return the buttons that show the previous and the next page of the results."""
    typed_switches = [f"--{switch}" for switch in switches]
    page, words = split_page(text)
    buttons = []
    if page > 1:
        arguments = " ".join([*typed_switches, f"page:{page - 1} {words}".rstrip()])
        buttons.append(make_button(texts.BUTTON_BACK, "recall", arguments))
    if has_more:
        arguments = " ".join([*typed_switches, text_for_next_page(text)])
        buttons.append(make_button(texts.BUTTON_MORE, "recall", arguments))
    return buttons


def _make_scroll_buttons(texts: Texts, result: FoundSession, *, is_scroll: bool) -> list[Button]:
    """Return the buttons "Earlier" and "Later" for messages before and after the shown ones.

    While scrolling, "Later" continues after the last message shown. Otherwise, the first and the
    last messages of a session are shown, and "Later" continues after the first ones.
    """
    buttons: list[Button] = []
    if not result.window:
        return buttons
    if result.messages_before:
        buttons.append(
            make_button(texts.BUTTON_EARLIER, "recall", f"around:{result.window[0].message_id}")
        )
    if result.messages_after:
        last = result.window[-1] if is_scroll else result.window[MAX_FIRST_MESSAGES - 1]
        buttons.append(make_button(texts.BUTTON_LATER, "recall", f"around:{last.message_id}"))
    return buttons


def _make_resume_button(label: str, result: FoundSession) -> Button:
    return make_button(label, "sessions", str(result.session.id))
