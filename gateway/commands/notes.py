"""What /memory does with the curated notes: changes them, lists and undoes changes, says where one is from,
and what was put aside because it reads like an order.

Says what became of the curated notes: their changes one by one, and where a note comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from core.errors import Refused
from core.guard.guard import suspicion
from core.markup.render import escape
from core.notes.files import FILES
from core.notes.notebook import Notebook
from core.notes.owner_files import NAMES, OwnerFiles
from core.review.review import doubt
from core.store.notes import Author, NoteChange, Operation, PendingNote, Provenance
from core.types import Answer, Button, Command
from gateway.commands.context import CommandContext

Quote = Callable[[str], str]
PAGE = 10
SAID_CHARS = 300

_DONE = {
    "add": "added",
    "replace": "replaced",
    "remove": "removed",
    "edited": "edited in the file",
    "undo": "undone",
    "approve": "approved as it stands in the file",
}


def listed(changes: Sequence[Provenance], zone: ZoneInfo, quote: Quote = escape) -> str:
    """A line a change, with the number that `undo` takes."""
    return "\n".join(f"- {_line(one, one.change, zone, quote)}" for one in changes if one.change is not None)


def explained(found: Provenance, zone: ZoneInfo, quote: Quote = escape) -> str:
    """Who noted it, when, and from which message."""
    entry = quote(found.entry)
    if found.change is None:
        return f"“{entry}” stands in the file; who put it there is not known."
    lines = [f"“{entry}”", _line(found, found.change, zone, quote, is_brief=True)]
    if found.said:
        said = found.said if len(found.said) <= SAID_CHARS else f"{found.said[:SAID_CHARS]} …"
        did = "said" if found.change.message_id is not None else "typed"
        lines.append(f"From what {quote(found.sender or 'the person')} {did}: “{quote(' '.join(said.split()))}”")
    if found.link:
        lines.append(f"The message: {found.link}")
    return "\n\n".join(lines)


def aside(
    waiting: Sequence[PendingNote], zone: ZoneInfo, files: Sequence[tuple[str, str]] = (), quote: Quote = escape
) -> str:
    """What was put aside, with the numbers that `approve` and `reject` take; and the owner's `files` that are left out,
    with the reason."""
    lines = ["These read like orders to me, so they stand in no prompt until you decide:"]
    lines += [f"- {name}, your own file: it contains {reason}. `/memory approve {name}`" for name, reason in files]
    for note in waiting:
        who = "" if note.account is None else f", for {note.account.platform}:{note.account.user_id}"
        where = ", stands in the file" if note.is_written else ""
        lines.append(f"- {note.id}: {_date(note.at, zone)}, {FILES[note.target]}{where}{who}; {note.reason}")
        for one in note.operations:
            content, old_text = quote(one.content), quote(one.old_text)
            old = f" “{old_text}” →" if one.action == "replace" else f" “{old_text}”" if old_text else ""
            done = "by hand" if note.is_written else one.action
            lines.append(f"  {done}{old}{f' “{content}”' if content else ''}")
    if waiting:
        lines += ["", "`/memory approve N` notes it, `/memory reject N` drops it."]
    if any(note.is_written for note in waiting):
        lines[-1] += " What stands in the file stays there when it is approved, and is taken out when it is rejected."
    return "\n".join(lines)


def plainly(sentences: str) -> str:
    """What the notebook says, as Markdown that reads so letter by letter; what it lists stays a list."""
    return "\n".join(
        f"- {escape(line[2:])}" if line.startswith("- ") else escape(line) for line in sentences.split("\n")
    )


def _line(one: Provenance, change: NoteChange, zone: ZoneInfo, quote: Quote, *, is_brief: bool = False) -> str:
    done = _DONE[change.action]
    if change.undoes is not None:
        done = f"change {change.undoes} undone"
    who = "" if change.account is None else f", by {change.account.platform}:{change.account.user_id}"
    how = f", though it reads like an order{_way(change)}" if change.is_insisted else _way(change)
    head = f"{change.id}: {_date(change.at, zone)}, {FILES[change.target]}, {done}{who}{how}"
    before, after = (None if text is None else quote(text) for text in (change.before, change.after))
    if is_brief:
        return f"Change {head}." + (f" Before: “{before}”." if before else "")
    link = f" ({one.link})" if one.link else ""
    if before is None or after is None:
        return f"{head}: {'+' if before is None else '-'} “{before or after}”{link}"
    return f"{head}: “{before}” → “{after}”{link}"


def _way(change: NoteChange) -> str:
    """How it was asked for."""
    if change.message_id is not None:
        return ", from a message"
    if change.address is not None:
        return f", typed in {'a room' if change.scope.is_room else 'a direct chat'}"
    return "" if change.account is None else ", on the command line"


def _date(at: datetime, zone: ZoneInfo) -> str:
    local = at.astimezone(zone)
    return f"{local.day} {local:%B %Y} {local:%H:%M}"


_CHANGING = ("add", "replace", "remove", "undo", "approve", "reject")
_ANYWAY = "--anyway"
_ANYWAYS = (_ANYWAY, "\N{EM DASH}anyway")
"""Telephones make one dash of two."""
NOTE_ACTIONS = (*_CHANGING, "pending", "history", "why")
"""As they are announced."""
_DECISIONS = ("Approve", "Reject")
BUTTONS = 4
"""So many of what waits get buttons."""


class NoteDesk:
    """Answers for /memory what concerns notes; `zone` is for dates. The `charter` concerns the owner alone."""

    def __init__(self, notebook: Notebook, charter: OwnerFiles, zone: str) -> None:
        self._notebook = notebook
        self._charter = charter
        self._zone = ZoneInfo(zone)

    @staticmethod
    def changes_notes(action: str) -> bool:
        """Whether this of /memory changes a note, when it is about notes."""
        return action in _CHANGING

    async def answer(self, action: str, text: str, caller: CommandContext) -> Answer | None:
        """What /memory says to something about notes; None where it is about something else."""
        if action in _CHANGING and (done := await self._notebook.done(_author(caller), caller.scopes)) is not None:
            return Answer(text=plainly(done))
        if action == "history":
            return await self._history(caller, text)
        if action == "why":
            with _legible():
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

    async def _changed(self, action: str, text: str, caller: CommandContext) -> Answer:
        is_insisting, plain = _insisting(text)
        # In a room what others type is read by everybody's model: there the owner decides.
        is_typed = not caller.scope.is_room or caller.is_owner
        author = replace(_author(caller), is_typed=is_typed, is_insisting=is_insisting)
        target, rest = _target(plain)
        old, separator, new = rest.partition("=>") if action == "replace" else (rest, "", rest)
        if action == "replace" and not separator:
            raise Refused("Say what to replace and with what: `/memory replace lives in Lisbon => lives in Porto`.")
        if author.is_typed and not is_insisting and action != "remove" and (reason := suspicion(new.strip())):
            again = Command(name="memory", arguments=f"{action} {_ANYWAY} {plain}")
            return Answer(text=doubt(reason), buttons=(Button(label="Keep it anyway", command=again),))
        if action != "add" and caller.scope.is_room and not caller.is_owner:
            with _legible():
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
        with _legible():
            said = await self._notebook.apply(caller.scope, caller.scopes, target, [operation], author)
        return Answer(text=plainly(said))

    async def waiting(self, caller: CommandContext) -> int:
        """How much is put aside here."""
        return len(await self._notebook.pending(caller.scopes)) + len(await self._left_out(caller))

    async def _left_out(self, caller: CommandContext) -> Sequence[tuple[str, str]]:
        """The owner's files that stand in no prompt."""
        return await self._charter.left_out() if _is_at_home(caller) else ()

    async def _pending(self, caller: CommandContext) -> Answer:
        waiting, files = await self._notebook.pending(caller.scopes), await self._left_out(caller)
        if not waiting and not files:
            return Answer(text="Nothing waits to be looked at.")
        deeds = [(f"Approve {name}", f"approve {name}") for name, _ in files]
        deeds += [(f"{word} {note.id}", f"{word.lower()} {note.id}") for note in waiting for word in _DECISIONS]
        buttons = [
            Button(label=label, command=Command(name="memory", arguments=arguments))
            for label, arguments in deeds[: BUTTONS * len(_DECISIONS)]
        ]
        return Answer(text=aside(waiting, self._zone, files), buttons=tuple(buttons))

    async def _decide(self, text: str, caller: CommandContext, *, is_approved: bool) -> str:
        name = next((name for name in NAMES if name.casefold() == text.casefold()), None)
        if is_approved and name is not None and _is_at_home(caller):
            return await self._charter.approve(name)
        number = text.removeprefix("#")
        if not number.isdecimal():
            raise Refused("Say which by its number, as `/memory pending` shows it: `/memory approve 3`.")
        note = await self._notebook.waiting(caller.scopes, int(number[:18]))
        is_own = not is_approved and note.account == caller.account
        if caller.scope.is_room and not caller.is_owner and not is_own:
            raise Refused("In a room my owner decides about that.")
        with _legible():
            return plainly(await self._notebook.decide(note, caller.scopes, is_approved, _author(caller)))

    async def _undo(self, text: str, caller: CommandContext) -> str:
        number = text.removeprefix("#")
        if number and not number.isdecimal():
            raise Refused("Say which change by its number, as `/memory history` shows it: `/memory undo 12`.")
        change = await self._notebook.change(caller.scopes, int(number[:18]) if number else None)
        if caller.scope.is_room and not caller.is_owner and change.account != caller.account:
            raise Refused("In a room only who made a change, or my owner, undoes it.")
        with _legible():
            return plainly(await self._notebook.undo(change, caller.scope, caller.scopes, _author(caller)))

    async def _history(self, caller: CommandContext, text: str) -> Answer:
        page = max(1, int(text[:6])) if text.isdecimal() else 1
        history = await self._notebook.history(caller.scopes, PAGE + 1, PAGE * (page - 1))
        changes = await self._notebook.sources(caller.scopes, history)
        more = Button(label="Older", command=Command(name="memory", arguments=f"history {page + 1}"))
        if not changes:
            return Answer(text="Nothing was changed yet." if page == 1 else "There is nothing older.")
        shown = f"{listed(changes[:PAGE], self._zone)}\n\n`/memory undo` takes back the last one, or one by its number."
        return Answer(text=shown, buttons=(more,) if len(changes) > PAGE else ())


@contextmanager
def _legible() -> Iterator[None]:
    """A refusal that names notes shows them letter by letter."""
    try:
        yield
    except Refused as refusal:
        raise Refused(plainly(str(refusal))) from refusal


def _is_at_home(caller: CommandContext) -> bool:
    """Whether the owner speaks where nobody else reads."""
    return caller.is_owner and not caller.scope.is_room


def _author(caller: CommandContext) -> Author:
    """Who types a command, and which: a press, or a command that is no message, has nothing that could be opened."""
    inbound = caller.inbound
    is_message = inbound.kind == "message" and not inbound.is_interaction
    external_id = inbound.message_id if is_message else None
    return Author(account=caller.account, address=inbound.address, external_id=external_id)


def _target(text: str) -> tuple[str, str]:
    head, separator, rest = text.partition(":")
    return (head.strip().lower(), rest.strip()) if separator and head.strip().lower() in FILES else ("", text)


def _insisting(text: str) -> tuple[bool, str]:
    """Whether it is to be kept anyway, and the text without that, which stands before or behind the target."""
    target, rest = _target(text)
    word, _, rest = rest.partition(" ")
    if word not in _ANYWAYS:
        return False, text
    return True, f"{target}: {rest.strip()}" if target else rest.strip()
