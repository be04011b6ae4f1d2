"""Starts, finds and ends conversations: /new, /stop, /sessions, /compress and others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import TYPE_CHECKING

from core.errors import Refused
from core.markup.markdown import escape
from core.search.rendering import describe_no_results
from core.store.mailbox import InboxEntry, OutboxItem
from core.store.query import ResultLimits, SearchQuery
from core.text.normalize import isolate_title, shorten
from core.types import Account, Address, Answer, Button, Command, Json, Scope, Session
from gateway.commands.registry import CommandContext, load_specs, make_button, parse_number
from gateway.services import Services
from gateway.texts.catalog import ENGLISH, Texts

if TYPE_CHECKING:
    from core.agent.compression import Compressor
    from core.agent.sessions import SessionTracker
    from gateway.commands.recall import RecallCommands

MAX_TITLE_CHARS = 120
_MAX_QUERY_CHARS = 60
_MAX_LISTED_SESSIONS = 10
# A list has buttons to continue at most this many sessions.
_MAX_RESUME_BUTTONS = 5
_MAX_COMPLETIONS = 25
_MAX_COMPLETION_CHARS = 70
# The page of a button. It precedes the words.
_PAGE = re.compile(r"page:(\d{1,4})(?:\s+|$)")
# A message, as the sources of answers name it: "m345".
_MESSAGE = re.compile(r"m(\d{1,18})", re.IGNORECASE)


class SessionCommands:
    specs = load_specs("new", "stop", "sessions", "title", "compress", "incognito")
    suggests = ("sessions",)

    def __init__(
        self,
        services: Services,
        tracker: SessionTracker,
        compressor: Compressor,
        recall: RecallCommands,
    ) -> None:
        """Create the commands. `recall` shows a message in its conversation."""
        self._services = services
        self._tracker = tracker
        self._compressor = compressor
        self._recall = recall

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Run one of the commands.

        For /sessions, list conversations, continue one by its number, or show a message with those
        around it.
        """
        texts = context.texts
        arguments = command.arguments.strip()
        match command.name:
            case "new":
                return await self._start_new(context)
            case "stop":
                text = texts.STOPPED if context.has_stopped_turn else texts.NOTHING_TO_STOP
                return Answer(text=text)
            case "title":
                return await self._set_title(arguments, context)
            case "compress":
                return await self._compress(arguments, context)
            case "incognito":
                return await self._switch_incognito(arguments.lower(), context)
        message_number = read_message_number(arguments)
        if message_number is not None:
            command = Command(name="recall", arguments=f"around:{message_number}")
            return await self._recall.run(command, context)
        number = parse_number(arguments)
        if number is None:
            page = _PAGE.match(arguments)
            return await list_sessions(
                self._services,
                context,
                arguments[page.end() :] if page else arguments,
                _MAX_LISTED_SESSIONS,
                int(page[1]) if page else 1,
            )
        return await self._resume(number, context)

    async def autocomplete(
        self, source: str, typed: str, scope: Scope, account: Account | None
    ) -> Mapping[str, str]:
        """Return the numbers of recent conversations whose titles contain `typed`.

        The label of each number is the title and the day of the last message.
        """
        texts = self._services.languages.of_scope(scope)
        zone = await self._services.load_zone(account)
        scopes = await self._services.people.load_visible_scopes(scope)
        sessions = await self._services.conversations.list_recent(scopes, _MAX_COMPLETIONS, typed)
        completions = {}
        for session in sessions:
            title = shorten(texts.name_conversation(session.title), _MAX_COMPLETION_CHARS)
            title = isolate_title(title)
            day = texts.format_day(session.last_at or session.started_at, zone)
            completions[str(session.id)] = texts.annotate(title, day)
        return completions

    async def _resume(self, number: int, context: CommandContext) -> Answer:
        """Continue an earlier conversation in this chat.

        A conversation from another chat continues in a new session of this chat. Raises Refused if
        no conversation with this number is visible here.
        """
        texts = context.texts
        tip = await self._services.conversations.find_tip(number, context.scopes)
        if tip is None or tip.is_delegated:
            raise Refused(texts.NO_CONVERSATION.format(number=number))
        session = await self._tracker.resume(
            tip, context.inbound.address, context.scope, context.scopes, context.epoch
        )
        # If the conversation is from another chat, the tracker opens a child session with its last
        # messages.
        template = texts.RESUMED if session.id == tip.id else texts.RESUMED_HERE
        title = texts.quote_title(session.title)
        return Answer(text=template.format(number=tip.id, title=title))

    async def _start_new(self, context: CommandContext) -> Answer:
        """End the conversation. The next message starts a new one."""
        texts = context.texts
        session = context.session
        if session.is_incognito:
            return await self._switch_incognito("off", context)
        if session.messages == 0:
            await self._drop_models(context)
            return Answer(text=texts.ALREADY_NEW)
        await self._tracker.end(session)
        title = texts.quote_title(session.title)
        return Answer(text=texts.NEW_SESSION.format(number=session.id, title=title))

    async def _drop_models(self, context: CommandContext) -> None:
        """Reset the models of a conversation to those of the settings."""
        session = context.session
        chat = self._services.settings.model.chat
        if session.model != chat:
            await self._services.conversations.set_model(session.id, chat, context.epoch)
        await self._services.helper_choices.choose(session, None)

    async def _set_title(self, arguments: str, context: CommandContext) -> Answer:
        """Set the title of the conversation, or show it if there are no arguments.

        Raises Refused if the title is too long.
        """
        texts = context.texts
        title = " ".join(arguments.split())
        if not title:
            present = context.session.title
            if not present:
                return Answer(text=texts.TITLE_NONE)
            title = texts.quote(texts.name_conversation(present))
            return Answer(text=texts.TITLE_SHOWN.format(title=title))
        return await set_title(self._services, context, context.session, title)

    async def _compress(self, focus: str, context: CommandContext) -> Answer:
        """Replace the earlier part of the conversation with a summary that emphasizes `focus`."""
        # Imported here because a shell that lists conversations needs no agent.
        from core.agent.sessions import Turn

        texts = context.texts
        inbound = context.inbound
        entry = InboxEntry(id=0, inbound=inbound, received_at=self._services.clock.now())
        turn = Turn(
            address=inbound.address,
            scope=context.scope,
            scopes=context.scopes,
            entries=(entry,),
            outbox_item=OutboxItem(
                key=context.idempotency_key, kind="notice", address=inbound.address
            ),
            is_owner=context.is_owner,
            epoch=context.epoch,
        )
        child = await self._compressor.compress_on_request(context.session, turn, focus)
        return Answer(text=texts.CONDENSED_INCOGNITO if child.is_incognito else texts.COMPRESSED)

    async def _switch_incognito(self, state: str, context: CommandContext) -> Answer:
        """Start an incognito conversation, or end it if `state` is "off".

        Raises Refused for members of a group, for any other `state` than "on" and "off", or if
        there is no incognito conversation to end.
        """
        texts = context.texts
        if state not in ("", "on", "off"):
            raise Refused(texts.INCOGNITO_USAGE)
        if context.is_member:
            raise Refused(texts.INCOGNITO_OWNER_ONLY)
        conversations = self._services.conversations
        session = context.session
        if state == "off":
            if not session.is_incognito:
                raise Refused(texts.NOT_INCOGNITO)
            await conversations.end(session.id, "new", self._services.clock.now())
            return Answer(text=texts.INCOGNITO_OVER)
        if session.is_incognito:
            return Answer(text=texts.ALREADY_INCOGNITO)
        await conversations.begin_incognito(context.inbound.address)
        return Answer(text=texts.INCOGNITO)


def read_message_number(arguments: str) -> int | None:
    """Return the number of a message such as "m345", or None for other arguments."""
    match = _MESSAGE.fullmatch(arguments.strip())
    return None if match is None else int(match[1])


async def set_title(
    services: Services, context: CommandContext, session: Session, title: str
) -> Answer:
    """Set the title of a conversation. Raises Refused if it's too long."""
    texts = context.texts
    if len(title) > MAX_TITLE_CHARS:
        raise Refused(texts.TITLE_TOO_LONG.format(most=MAX_TITLE_CHARS, chars=len(title)))
    await services.conversations.retitle(session.id, title, context.epoch)
    return Answer(text=texts.TITLE_SET.format(title=texts.quote(title)))


async def find_sessions(
    services: Services, scopes: frozenset[Scope], text: str, limit: int, texts: Texts = ENGLISH
) -> list[Session]:
    """Return the latest conversations, or those that match `text`.

    Raises Refused if `text` names a conversation that doesn't exist, such as ``in:99``.

    Conversations with `text` in their title come first. Conversations whose messages match follow,
    best match first. A conversation with several sessions appears once, as its latest session.
    """
    sessions = await services.conversations.list_recent(scopes, limit, text or None)
    if not text:
        return sessions[:limit]
    limits = ResultLimits(sessions=limit)
    query = SearchQuery(text=text, scopes=scopes, limits=limits, is_incognito=True)
    results = await services.recall.recall(query)
    if results.shape == "read" and not results.sessions:
        raise Refused(describe_no_results(results, texts.result_words))
    # The ranks of the matching conversations, by the id of their first session.
    ranks: dict[int, int] = {}
    for rank, matching_session in enumerate(results.sessions):
        ranks.setdefault(matching_session.root_id, rank)
    for session in sessions:
        ranks.pop(_find_root_id(session), None)
    others = await services.conversations.list_recent(scopes, limit, roots=list(ranks))
    others = sorted(others, key=lambda session: ranks[_find_root_id(session)])
    return [*sessions, *others][:limit]


async def list_sessions(
    services: Services, context: CommandContext, text: str, limit: int, page: int = 1
) -> Answer:
    """List the latest sessions, or those that match `text`, with buttons to continue them.

    A page has `limit` sessions, and buttons for the previous and the next page.
    """
    texts = context.texts
    matches = await find_sessions(services, context.scopes, text, page * limit + 1, texts)
    sessions = matches[(page - 1) * limit : page * limit]
    if not sessions:
        if not text:
            return Answer(text=texts.NO_SESSIONS)
        words = texts.quote(shorten(text, _MAX_QUERY_CHARS))
        return Answer(text=texts.NO_SESSIONS_ABOUT.format(words=words))
    zone = services.zone_of(context.zone)
    lines = []
    for session in sessions:
        lines.append(f"- **{session.id}** {_describe_session(session, context, zone)}")
    others = [session for session in sessions if session.id != context.session.id]
    others = others[:_MAX_RESUME_BUTTONS]
    if others and not context.is_shell:
        lines += ["", texts.SESSION_CONTINUES.format(number=others[0].id)]
    buttons = [_make_continue_button(texts, session) for session in others]
    if page > 1:
        back = f"page:{page - 1} {text}".rstrip()
        buttons.append(make_button(texts.BUTTON_BACK, "sessions", back))
    if len(matches) > page * limit:
        more = f"page:{page + 1} {text}".rstrip()
        buttons.append(make_button(texts.BUTTON_MORE, "sessions", more))
    return Answer(text="\n".join(lines), buttons=tuple(buttons), is_page=True)


def _make_continue_button(texts: Texts, session: Session) -> Button:
    label = texts.BUTTON_CONTINUE.format(number=session.id)
    button = make_button(label, "sessions", str(session.id))
    title = texts.name_conversation(session.title)
    return replace(button, menu=texts.CHOOSE_SESSION, details=title)


def session_to_json(session: Session) -> Json:
    """Return a conversation as a JSON object."""
    return {
        "session_id": session.id,
        "external_session": session.external_id,
        "title": session.title,
        "platform": session.address.platform,
        "address": session.address.key,
        "scope": session.scope.key,
        "started_at": session.started_at.isoformat(),
        "last_at": session.last_at.isoformat() if session.last_at else None,
        "ended_at": session.end.at.isoformat() if session.end else None,
        "messages": session.messages,
    }


async def notify_lost_incognito(services: Services, addresses: Sequence[Address]) -> None:
    """Notify the chats whose incognito conversations were lost with their process."""
    for address in addresses:
        now = services.clock.now()
        texts = services.languages.of_address(address)
        item = OutboxItem(
            key=f"incognito:{address.key}:{now.isoformat()}",
            kind="notice",
            address=address,
            answer=Answer(text=texts.INCOGNITO_LOST),
            next_at=now,
        )
        await services.outbox.put(item)
        await services.conversations.unmark_incognito(address)


def _find_root_id(session: Session) -> int:
    """Return the id of the first session of a conversation, which may have several sessions."""
    return session.root_id or session.id


def _describe_session(session: Session, context: CommandContext, zone: tzinfo) -> str:
    """Render a session's title, time and message count.

    The platform is included if it isn't the current one.
    """
    texts = context.texts
    details = [
        texts.format_moment(session.last_at or session.started_at, zone),
        texts.format_count(session.messages, "message"),
    ]
    if session.address.platform != context.inbound.address.platform:
        platform = texts.name_platform(session.address.platform)
        details.append(texts.SESSION_ON.format(platform=platform))
    if session.id == context.session.id:
        details.append(texts.SESSION_IS_THIS)
    title = escape(isolate_title(texts.name_conversation(session.title)))
    return texts.annotate(title, texts.COMMA.join(details))
