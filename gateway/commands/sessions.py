"""/new, /stop, /sessions, /title: the conversations themselves."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from core.agent.sessions import SessionTracker
from core.errors import Refused
from core.markup.render import escape
from core.ports import Clock, Conversations
from core.store.sessions import Transcripts
from core.types import Answer, Button, Command, CommandSpec, Option, Session
from gateway.commands.context import CommandContext

_NEW = CommandSpec(name="new", description="Begin a new conversation; the old one stays and can be found")
_STOP = CommandSpec(name="stop", description="Stop the answer that is being written")
_SESSIONS = CommandSpec(
    name="sessions",
    description="Earlier conversations: list, search, or go on with one",
    options=(Option(name="which", description="a number to go on with it, or words to look for in titles"),),
    is_private=True,
)
_TITLE = CommandSpec(
    name="title",
    description="Give this conversation a title",
    options=(Option(name="text", description="the title"),),
)
TITLE_CHARS = 120
LISTED = 10
RESUMABLE = 5
"""How many sessions of a list get a button."""


class SessionCommands:
    """`zone` is the IANA name for the dates that are shown."""

    specs = (_NEW, _STOP, _SESSIONS, _TITLE)

    def __init__(
        self, conversations: Conversations, transcripts: Transcripts, lineage: SessionTracker, clock: Clock, zone: str
    ) -> None:
        self._conversations = conversations
        self._transcripts = transcripts
        self._lineage = lineage
        self._clock = clock
        self._zone = ZoneInfo(zone)

    def is_reading(self, command: Command) -> bool:
        """/stop must not wait for what it stops; a list of sessions changes nothing."""
        return command.name == "stop" or (command.name == "sessions" and _number(command.arguments) is None)

    async def run(self, command: Command, caller: CommandContext) -> Answer:
        """See `gateway.commands.registry`."""
        match command.name:
            case "new":
                return await self._new(caller)
            case "stop":
                return Answer(text="Stopped." if caller.is_stopped else "There is nothing to stop.")
            case "title":
                return await self._title(command, caller)
            case _:
                number = _number(command.arguments)
                if number is None:
                    return await self._list(command.arguments.strip(), caller)
                return await self._resume(number, caller)

    async def _new(self, caller: CommandContext) -> Answer:
        if caller.session.is_incognito:
            if caller.scope.is_room and not caller.is_owner:
                raise Refused("In a room only my owner can end an incognito conversation.")
            await self._lineage.end(caller.session)
            return Answer(text="Incognito is over: what was said is gone. What you write now is kept as before it.")
        if caller.session.messages == 0:
            return Answer(text="This is a new conversation already. What is it about?")
        await self._lineage.end(caller.session)
        title = f" “{escape(caller.session.title)}”" if caller.session.title else ""
        return Answer(
            text=f"A new conversation. The last one{title} is kept as number {caller.session.id}: "
            f"`/sessions {caller.session.id}` goes on with it."
        )

    async def _title(self, command: Command, caller: CommandContext) -> Answer:
        title = " ".join(command.arguments.split())
        if not title:
            present = caller.session.title
            now = f"This conversation is called “{escape(present)}”." if present else "It has no title yet."
            return Answer(text=f"{now} `/title Holidays in May` gives it one.")
        if len(title) > TITLE_CHARS:
            raise Refused(f"A title has at most {TITLE_CHARS} characters; this has {len(title)}.")
        await self._conversations.retitle(caller.session.id, title)
        return Answer(text=f"This conversation is called “{escape(title)}” now.")

    async def _resume(self, number: int, caller: CommandContext) -> Answer:
        session = await self._lineage.resume(number, caller.inbound.address, caller.scope, caller.scopes)
        title = f" “{escape(session.title)}”" if session.title else ""
        if session.id == number:
            return Answer(text=f"We go on with conversation {number}{title}.")
        return Answer(text=f"We go on here with conversation {number}{title}, from its last messages.")

    async def _list(self, text: str, caller: CommandContext) -> Answer:
        sessions = await self._transcripts.recent(caller.scopes, LISTED, text or None)
        if not sessions:
            about = f" with “{text[:60]}” in title or text" if text else ""
            return Answer(text=f"There is no earlier conversation{about}. Whatever you write begins one.")
        lines = [f"- **{session.id}** {self._line(session, caller)}" for session in sessions]
        others = [session for session in sessions if session.id != caller.session.id][:RESUMABLE]
        hint = ["", f"`/sessions {others[0].id}` goes on with number {others[0].id}."] if others else []
        return Answer(
            text="\n".join([*lines, *hint]),
            buttons=tuple(
                Button(label=f"Go on with {session.id}", command=Command(name="sessions", arguments=str(session.id)))
                for session in others
            ),
        )

    def _line(self, session: Session, caller: CommandContext) -> str:
        marks = [self._date(session.last_at or session.started_at), _counted(session.messages)]
        if session.address.platform != caller.inbound.address.platform:
            marks.append(f"on {session.address.platform.title()}")
        if session.id == caller.session.id:
            marks.append("this one")
        return f"{escape(session.title) if session.title else 'Without a title'} ({', '.join(marks)})"

    def _date(self, at: datetime) -> str:
        local = at.astimezone(self._zone)
        return f"{local.day} {local:%b %Y, %H:%M}"


def _counted(messages: int) -> str:
    return "1 message" if messages == 1 else f"{messages:,} messages"


def _number(arguments: str) -> int | None:
    word = arguments.strip().lstrip("#")
    return int(word) if word.isascii() and word.isdigit() and len(word) < 18 else None
