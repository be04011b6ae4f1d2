"""Searches the history, and shows what an answer was based on: /recall and /why.

The query language is described in `core/search/query.py`. Results are rendered by
`core/search/rendering.py`.
"""

import re
from collections.abc import Sequence
from zoneinfo import ZoneInfo

from core.errors import Refused
from core.markup.markdown import escape
from core.search.query import split_page, text_for_next_page
from core.search.recall import HistorySearch
from core.search.rendering import list_parts, to_markdown
from core.store.messages import find_original
from core.store.query import (
    MAX_FIRST_MESSAGES,
    FoundSession,
    ModelHelp,
    ResultLimits,
    SearchQuery,
    SearchResults,
)
from core.store.rows import split_turns
from core.text.normalize import shorten
from core.types import Address, Answer, BillingScope, Button, Command, Message, Session
from gateway.answers.explanation import ExplanationWriter
from gateway.commands.registry import CommandContext, load_specs, make_button, parse_number
from gateway.services import Services
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
# A phone turns two hyphens into a dash.
_SWITCH = r"(?:--|[\u2012-\u2015])(summary|deep|expand|rerank)"
# A switch is recognized only before or after the words of the query.
_LEADING_OR_TRAILING_SWITCH = re.compile(
    rf"^\s*{_SWITCH}(?=\s|$)|(?<!\S){_SWITCH}\s*$", re.IGNORECASE
)
# The platform of the sessions in which scheduled questions are answered.
CRON_PLATFORM = "cron"
# If a query has such a filter, the results of tools aren't searched.
_CHOOSES_SPEAKER = re.compile(r"\b(?:role|from):", re.IGNORECASE)


class RecallCommands:
    """Answers /recall. If a switch requests a model's help, `expanded_recall` is searched.

    If no message matches, results of tools are searched, such as pages that were read. The notes
    that match are shown, too.
    """

    specs = load_specs("recall")

    def __init__(
        self, services: Services, recall: HistorySearch, expanded_recall: HistorySearch
    ) -> None:
        self._services = services
        self._recall = recall
        self._expanded_recall = expanded_recall

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Search the history. Buttons read on, continue a session, or show the next page."""
        texts = context.texts
        text, switches = _split_switches(command.arguments)
        search = self._expanded_recall if switches else self._recall
        zone = ZoneInfo(context.zone) if context.zone else self._services.zone
        query = _build_query(text, switches, context, zone)
        results = await search.recall(query)
        if not results.sessions and not results.files and not _CHOOSES_SPEAKER.search(text):
            text_of_tools = f"{text} role:tool"
            tool_results = await search.recall(_build_query(text_of_tools, switches, context, zone))
            if tool_results.sessions:
                text, results = text_of_tools, tool_results

        if self._services.notebook.has_files(context.scopes):
            # Imported here because most people have few notes or none.
            from core.search.note_search import add_notes

            results = await add_notes(results, self._services.notebook, query)

        buttons = _make_result_buttons(texts, results, context.session.id)
        if len(text) <= _MAX_NEXT_PAGE_CHARS:
            buttons += _make_page_buttons(texts, text, switches, has_more=results.has_more)
        for file in results.files:
            label = texts.FILE_SEND.format(name=shorten(file.name, _MAX_NAME_CHARS))
            buttons.append(make_button(label, "files", f"send {file.file_id}"))
        return Answer(
            text=to_markdown(results, zone, texts.result_words),
            buttons=tuple(buttons),
            cards=tuple(list_parts(results, zone, texts.result_words)),
            cards_title=f"🔎 **{escape(shorten(text, _MAX_TITLE_CHARS))}**" if text else "🔎",
            is_page=text.lstrip().lower().startswith("page:"),
        )


class WhyCommand:
    """Answers /why: shows which data, besides the conversation, the model got for an answer."""

    specs = load_specs("why")

    def __init__(self, services: Services) -> None:
        self._services = services

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """List the messages, notes, facts, pages, files and look-ups of an answer.

        The argument counts answers from the end. A reply to an answer, or to its question, explains
        that answer. Answers to scheduled questions are explained by a reply, or if they are the
        last message. Raises Refused if there is no such answer.
        """
        texts = context.texts
        arguments = command.arguments.strip()
        if context.inbound.reply_to is not None and not arguments:
            session, turn = await self._find_replied(context)
        else:
            number = parse_number(arguments or "1")
            if not number:
                raise Refused(texts.WHY_USAGE)
            session, turn = await self._find_by_number(number, context)
        zone = self._services.zone_of(context.zone)
        writer = ExplanationWriter(self._services, texts, context.scopes, zone)
        return Answer(
            text=await writer.write(turn, await self._find_asking(turn, session, context))
        )

    async def _find_by_number(
        self, number: int, context: CommandContext
    ) -> tuple[Session, Sequence[Message]]:
        """Return the turn of an answer, counted from the end, and its session.

        Raises Refused if there is none.
        """
        session = context.session
        rows = await self._services.conversations.load_history(session, context.scopes)
        if number == 1 and rows:
            scheduled = await self._find_scheduled(rows[-1], context)
            if scheduled is not None:
                return scheduled
        turns = _list_answered(rows)
        if number > len(turns):
            raise Refused(context.texts.WHY_NO_ANSWER)
        return session, turns[-number]

    async def _find_scheduled(
        self, delivery: Message, context: CommandContext
    ) -> tuple[Session, Sequence[Message]] | None:
        """Return the turn of a delivered answer to a scheduled question, and its session.

        The question is answered in a session of its own. Returns None for all other messages, such
        as reminders.
        """
        question_id = (delivery.external_id or "").removeprefix("job:")
        if delivery.origin != "job" or not question_id:
            return None
        address = Address(platform=CRON_PLATFORM, chat_id=question_id.partition("@")[0])
        services = self._services
        question = await find_original(services.database, address, question_id, context.scopes)
        if question is None:
            return None
        session = await services.conversations.find_by_message(question.id, context.scopes)
        if session is None:
            return None
        for turn in await self._list_turns(session, context):
            if any(row.id == question.id for row in turn):
                return session, turn
        return None

    async def _find_replied(self, context: CommandContext) -> tuple[Session, Sequence[Message]]:
        """Return the turn that contains the message that the command replies to, and its session.

        Raises Refused if the message is unknown or belongs to no answer, such as a reminder.
        """
        conversations = self._services.conversations
        quote = await conversations.resolve_quote(context.inbound, context.scopes)
        message_id = None if quote is None else quote.message_id
        session: Session | None = context.session
        if message_id is not None and not context.session.is_incognito:
            session = await conversations.find_by_message(message_id, context.scopes)
        if message_id is not None and session is not None:
            for row in await conversations.load_messages([message_id], context.scopes):
                scheduled = await self._find_scheduled(row, context)
                if scheduled is not None:
                    return scheduled
            for turn in await self._list_turns(session, context):
                if any(row.id == message_id and row.origin != "job" for row in turn):
                    return session, turn
        raise Refused(context.texts.WHY_NOT_AN_ANSWER)

    async def _list_turns(
        self, session: Session, context: CommandContext
    ) -> list[Sequence[Message]]:
        """Return the turns of a session that have an answer, oldest first."""
        rows = await self._services.conversations.load_history(session, context.scopes)
        return _list_answered(rows)

    async def _find_asking(
        self, turn: Sequence[Message], session: Session, context: CommandContext
    ) -> Session | None:
        """Return the session in which a turn was answered, which may be a parent of `session`."""
        session_id = turn[-1].session_id
        if session_id == session.id:
            return session
        return await self._services.conversations.find(session_id, context.scopes)


def _list_answered(rows: Sequence[Message]) -> list[Sequence[Message]]:
    """Return the turns that have an answer, oldest first. A reminder is no answer."""
    return [
        turn
        for turn in split_turns(rows)
        if any(row.role == "assistant" and row.origin != "job" for row in turn)
    ]


def _build_query(
    text: str, switches: Sequence[str], context: CommandContext, zone: ZoneInfo
) -> SearchQuery:
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
        zone=zone,
        limits=ResultLimits(sessions=_MAX_SESSIONS, budget_chars=_MAX_RESULT_CHARS),
        help=model_help,
        is_incognito=context.session.is_incognito,
    )


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
