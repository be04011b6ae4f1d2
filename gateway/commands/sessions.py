"""/new, /stop, /sessions, /title, /compress, /incognito: the conversations themselves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING

from core.agent.sessions import Turn
from core.errors import Refused
from core.markup.markdown import escape
from core.store.mailbox import InboxEntry, OutboxItem
from core.store.query import SearchQuery
from core.text.normalize import shortened
from core.types import Answer, Command, Scope, Session
from gateway import texts
from gateway.commands.registry import CommandContext, announced, button, number_in
from gateway.services import Services

if TYPE_CHECKING:
    from core.agent.compression import Compressor
    from core.agent.sessions import SessionTracker

TITLE_CHARS = 120
LISTED, RESUMABLE, SUGGESTED, SHOWN_CHARS = 10, 5, 25, 70
UNTITLED = "Without a title"


class SessionCommands:
    """Over the conversations of `services`; `tracker` ends and resumes sessions, `compressor` condenses them."""

    specs = announced("new", "stop", "sessions", "title", "compress", "incognito")

    def __init__(self, services: Services, tracker: SessionTracker, compressor: Compressor) -> None:
        self._services = services
        self._tracker = tracker
        self._compressor = compressor

    async def run(self, command: Command, context: CommandContext) -> Answer:
        match command.name:
            case "new":
                return await self._new(context)
            case "stop":
                return Answer(text=texts.STOPPED if context.is_stopped else texts.NOTHING_TO_STOP)
            case "title":
                return await self._title(command, context)
            case "compress":
                return await self._compress(command.arguments.strip(), context)
            case "incognito":
                return await self._incognito(command.arguments.strip().lower(), context)
            case _:
                number = number_in(command.arguments)
                if number is None:
                    return await list_sessions(self._services, context, command.arguments.strip(), LISTED)
                here, scope, scopes = context.inbound.address, context.scope, context.scopes
                tip = await self._services.conversations.tip(number, scopes)
                if tip is None or tip.is_delegated:
                    raise Refused(f"There is no session {number} here. /sessions lists those there are.")
                session = await self._tracker.resume(tip, here, scope, scopes, context.epoch)
                # One of another place is copied: its last messages are carried here.
                resumed = texts.RESUMED if session.id == tip.id else texts.RESUMED_HERE
                return Answer(text=resumed.format(number=tip.id, title=texts.titled(session.title)))

    async def suggest(self, typed: str, scope: Scope) -> Mapping[str, str]:
        """Numbers of conversations by their titles."""
        scopes, zone = await self._services.people.scopes(scope), self._services.zone
        found = await self._services.conversations.recent(scopes, SUGGESTED, typed)
        days = (texts.day(session.last_at or session.started_at, zone) for session in found)
        titles = (shortened(session.title or UNTITLED, SHOWN_CHARS) for session in found)
        return {str(one.id): f"{title} ({day})" for one, title, day in zip(found, titles, days, strict=True)}

    async def _new(self, context: CommandContext) -> Answer:
        session = context.session
        if session.is_incognito:
            return await self._incognito("off", context)
        if session.messages == 0:
            return Answer(text=texts.ALREADY_NEW)
        await self._tracker.end(session)
        return Answer(text=texts.NEW_SESSION.format(number=session.id, title=texts.titled(session.title)))

    async def _title(self, command: Command, context: CommandContext) -> Answer:
        title, present = " ".join(command.arguments.split()), context.session.title
        if not title:
            now = f"is called{texts.titled(present)}" if present else "has no title yet"
            return Answer(text=f"This conversation {now}. `/title Holidays in May` gives it a title.")
        if len(title) > TITLE_CHARS:
            raise Refused(texts.TITLE_TOO_LONG.format(most=TITLE_CHARS, chars=len(title)))
        await self._services.conversations.retitle(context.session.id, title, context.epoch)
        return Answer(text=f"This conversation is called{texts.titled(title)} now.")

    async def _compress(self, focus: str, context: CommandContext) -> Answer:
        now, inbound = self._services.clock.now(), context.inbound
        turn = Turn(
            address=inbound.address,
            scope=context.scope,
            scopes=context.scopes,
            entries=(InboxEntry(id=0, inbound=inbound, received_at=now),),
            outbox_item=OutboxItem(key=context.origin, kind="notice", address=inbound.address),
            is_owner=context.is_owner,
            epoch=context.epoch,
        )
        child = await self._compressor.by_hand(context.session, turn, focus)
        return Answer(text=texts.CONDENSED_INCOGNITO if child.is_incognito else texts.COMPRESSED)

    async def _incognito(self, state: str, context: CommandContext) -> Answer:
        if state not in ("", "on", "off"):
            raise Refused(texts.INCOGNITO_USAGE)
        if context.is_member:
            raise Refused(texts.INCOGNITO_OWNER_ONLY)
        conversations, session = self._services.conversations, context.session
        if state != "off":
            if session.is_incognito:
                return Answer(text=texts.ALREADY_INCOGNITO)
            await conversations.begin_incognito(context.inbound.address)
            return Answer(text=texts.INCOGNITO)
        if not session.is_incognito:
            raise Refused(texts.NOT_INCOGNITO)
        await conversations.end(session.id, "new", self._services.clock.now())
        return Answer(text=texts.INCOGNITO_OVER)


async def find_sessions(services: Services, scopes: frozenset[Scope], text: str, limit: int) -> list[Session]:
    """The latest conversations; with `text` those that have it in their title, then those in which it was said, best
    first. Each once, as its latest part."""
    sessions = await services.conversations.recent(scopes, limit, text or None)
    if text:
        results = await services.recall.recall(SearchQuery(text=text, scopes=scopes, limit=limit, is_incognito=True))
        roots = dict.fromkeys(found.root_id for found in results.sessions)
        for session in sessions:
            roots.pop(session.root_id or session.id, None)
        others = await services.conversations.recent(scopes, limit, roots=roots)
        order = [*roots]
        sessions += sorted(others, key=lambda session: order.index(session.root_id or session.id))
    return sessions[:limit]


async def list_sessions(services: Services, context: CommandContext, text: str, limit: int) -> Answer:
    """The latest sessions, or those with `text`; in a chat with buttons to go on."""
    sessions = await find_sessions(services, context.scopes, text, limit)
    if not sessions:
        about = f" with “{text[:60]}”" if text else ""
        return Answer(text=texts.NO_SESSIONS.format(about=about))
    lines = [f"- **{session.id}** {_line(session, context, services.zone)}" for session in sessions]
    others = [session for session in sessions if session.id != context.session.id][:RESUMABLE]
    if others and not context.is_shell:
        lines += ["", f"`/sessions {others[0].id}` goes on with number {others[0].id}."]
    buttons = [button(f"Go on with {session.id}", "sessions", str(session.id)) for session in others]
    return Answer(text="\n".join(lines), buttons=tuple(buttons))


def _line(session: Session, context: CommandContext, zone: tzinfo) -> str:
    at = texts.moment(session.last_at or session.started_at, zone)
    notes = [at, texts.counted(session.messages, "message")]
    if session.address.platform != context.inbound.address.platform:
        notes.append(f"on {session.address.platform.title()}")
    if session.id == context.session.id:
        notes.append("this one")
    return f"{escape(session.title or UNTITLED)} ({', '.join(notes)})"


async def tell_of_restart(services: Services) -> None:
    """At the start of a process: says where an incognito conversation ended with the one before."""
    for address in await services.conversations.left_over():
        now = services.clock.now()
        key = f"incognito:{address.key}:{now.isoformat()}"
        lost = Answer(text=texts.INCOGNITO_LOST)
        await services.outbox.put(OutboxItem(key=key, kind="notice", address=address, answer=lost, next_at=now))
        await services.conversations.unmark(address)
