"""What /memory does with the curated notes: changes them, lists and undoes changes, says where one is from,
and what was put aside because it reads like an order."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from core.errors import Refused
from core.memory.guard import suspicion
from core.memory.notebook import Notebook, doubt
from core.memory.operation import Operation
from core.memory.pages import FILES
from core.records import Author
from core.types import Answer, Button, Command
from gateway.caller import Caller
from gateway.note_history import PAGE, aside, explained, listed

_CHANGING = ("add", "replace", "remove", "undo", "approve", "reject")
_ANYWAY = "--anyway"
_ANYWAYS = (_ANYWAY, "\N{EM DASH}anyway")
"""Telephones make one dash of two."""
NOTE_ACTIONS = (*_CHANGING, "pending", "history", "why")
"""As they are announced."""
BUTTONS = 4
"""So many of what waits get buttons."""


class NoteDesk:
    """Answers for /memory what concerns notes; `zone` is for dates."""

    def __init__(self, notebook: Notebook, zone: str) -> None:
        self._notebook = notebook
        self._zone = ZoneInfo(zone)

    @staticmethod
    def changes_notes(action: str) -> bool:
        """Whether this of /memory changes a note, when it is about notes."""
        return action in _CHANGING

    async def answer(self, action: str, text: str, caller: Caller) -> Answer | None:
        """What /memory says to something about notes; None where it is about something else."""
        if action == "history":
            return await self._history(caller, text)
        if action == "why":
            return Answer(text=explained(await self._notebook.origin(caller.scopes, text), self._zone))
        if action == "undo":
            return Answer(text=await self._undo(text, caller))
        if action == "pending":
            return await self._pending(caller)
        if action in ("approve", "reject"):
            return Answer(text=await self._decide(text, caller, is_approved=action == "approve"))
        if action in _CHANGING:
            return await self._changed(action, text, caller)
        return None

    async def _changed(self, action: str, text: str, caller: Caller) -> Answer:
        is_insisting, plain = _insisting(text)
        # In a room what others type is read by everybody's model: there the owner decides.
        author = Author(
            account=caller.account, is_typed=not caller.scope.is_room or caller.is_owner, is_insisting=is_insisting
        )
        target, rest = _target(plain)
        old, separator, new = rest.partition("=>") if action == "replace" else (rest, "", rest)
        if action == "replace" and not separator:
            raise Refused("Say what to replace and with what: `/memory replace lives in Lisbon => lives in Porto`.")
        if author.is_typed and not is_insisting and action != "remove" and (reason := suspicion(new.strip())):
            again = Command(name="memory", arguments=f"{action} {_ANYWAY} {plain}")
            return Answer(text=doubt(reason), buttons=(Button(label="Keep it anyway", command=again),))
        if action != "add" and caller.scope.is_room and not caller.is_owner:
            noted = (await self._notebook.origin(caller.scopes, old)).change
            if noted is None or noted.account != caller.account:
                raise Refused("In a room only who noted something, or my owner, changes it.")
        if action == "add":
            operation = Operation(action="add", content=new)
            target = target or "memory"
        else:
            target = target or await self._notebook.target_of(caller.scopes, old)
            operation = (
                Operation(action="replace", content=new, old_text=old)
                if action == "replace"
                else Operation(action="remove", old_text=old)
            )
        return Answer(text=await self._notebook.apply(caller.scope, caller.scopes, target, [operation], author))

    async def _pending(self, caller: Caller) -> Answer:
        waiting = await self._notebook.pending(caller.scopes)
        if not waiting:
            return Answer(text="Nothing waits to be looked at.")
        buttons = [
            Button(label=f"{label} {note.id}", command=Command(name="memory", arguments=f"{label.lower()} {note.id}"))
            for note in waiting[:BUTTONS]
            for label in ("Approve", "Reject")
        ]
        return Answer(text=aside(waiting, self._zone), buttons=tuple(buttons))

    async def _decide(self, text: str, caller: Caller, *, is_approved: bool) -> str:
        number = text.removeprefix("#")
        if not number.isdecimal():
            raise Refused("Say which by its number, as `/memory pending` shows it: `/memory approve 3`.")
        note = await self._notebook.waiting(caller.scopes, int(number[:18]))
        is_own = not is_approved and note.account == caller.account
        if caller.scope.is_room and not caller.is_owner and not is_own:
            raise Refused("In a room my owner decides about that.")
        return await self._notebook.decide(note, caller.scopes, is_approved)

    async def _undo(self, text: str, caller: Caller) -> str:
        number = text.removeprefix("#")
        if number and not number.isdecimal():
            raise Refused("Say which change by its number, as `/memory history` shows it: `/memory undo 12`.")
        change = await self._notebook.change(caller.scopes, int(number[:18]) if number else None)
        if caller.scope.is_room and not caller.is_owner and change.account != caller.account:
            raise Refused("In a room only who made a change, or my owner, undoes it.")
        return await self._notebook.undo(change, caller.scope, caller.scopes, Author(account=caller.account))

    async def _history(self, caller: Caller, text: str) -> Answer:
        page = max(1, int(text[:6])) if text.isdecimal() else 1
        changes = await self._notebook.history(caller.scopes, PAGE + 1, PAGE * (page - 1))
        more = Button(label="Older", command=Command(name="memory", arguments=f"history {page + 1}"))
        if not changes:
            return Answer(text="Nothing was changed yet." if page == 1 else "There is nothing older.")
        shown = f"{listed(changes[:PAGE], self._zone)}\n\n`/memory undo` takes back the last one, or one by its number."
        return Answer(text=shown, buttons=(more,) if len(changes) > PAGE else ())


def _target(text: str) -> tuple[str, str]:
    head, separator, rest = text.partition(":")
    return (head.strip().lower(), rest.strip()) if separator and head.strip().lower() in FILES else ("", text)


def _insisting(text: str) -> tuple[bool, str]:
    """Whether it is to be kept anyway, and the text without that."""
    word, _, rest = text.partition(" ")
    return (True, rest.strip()) if word in _ANYWAYS else (False, text)
