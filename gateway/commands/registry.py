"""All slash commands as one: announces them, says who gives one and where, finds it in the groups, keeps the buttons of
its answer, and asks before what cannot be undone.

Questions that wait for a yes are rows for the account and address that was asked, for ten minutes. A yes, or the
button, runs the command of `Answer.confirm`; anything else cancels it and is handled as usual.
"""

from __future__ import annotations

import difflib
import re
import secrets
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pydantic import TypeAdapter

from core.agent.turn import BADGE
from core.errors import Refused
from core.ports import Clock
from core.store.actions import Actions, ButtonAction, question
from core.store.erasure import ErasureRequest
from core.store.notes import Author
from core.text.normalize import language_data, on_one_line
from core.types import Account, Answer, Button, Command, CommandSpec, ErasureEpoch, Inbound, Option, Scope, Session
from gateway import texts

if TYPE_CHECKING:
    from gateway.commands.skills import SkillCommands

YES = Command(name="yes")
"""What a terminal shows for the button, and takes for a yes."""
UNCLEAR = Command(name="yes", arguments="to several")
"""What a yes runs that may mean several questions."""
SUGGESTIONS = frozenset({"remind", "cron"})
"""Commands that suggest what was probably meant: "ok" is enough for them, but not for what cannot be undone."""
_LONGEST_CHARS = 40
BUTTON_LIFE = timedelta(days=7)
_SECRET_ARGUMENTS = frozenset({"approve", "forget", "link"})
"""Commands whose arguments are never kept."""
_INCOGNITO = frozenset({"incognito", "new", "stop", "undo", "retry", "compress", "link", "unlink"})
"""Of those that change something, the ones that write nothing of an incognito conversation down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """`scopes` is all that may be seen, as of `epoch`; `scope` is what is written to, `session` the open one.
    `is_stopped`: a turn was running and has been stopped for this /stop. `has_asked`: an earlier process had begun the
    turn that this command asks for. `is_shell`: typed as `mneme …`, not in a chat."""

    inbound: Inbound
    scope: Scope
    scopes: frozenset[Scope]
    session: Session
    is_owner: bool
    is_stopped: bool = False
    has_asked: bool = False
    is_shell: bool = False
    epoch: ErasureEpoch | None = None

    @property
    def account(self) -> Account:
        return self.inbound.account

    @property
    def is_public(self) -> bool:
        """Whether others read the answer: in a room, unless the platform shows it to this person alone."""
        return not self.inbound.is_direct and not self.inbound.is_interaction

    @property
    def is_member(self) -> bool:
        """Whether somebody speaks in a room who is not the owner: what is kept there is not theirs to decide."""
        return self.scope.is_room and not self.is_owner

    def may_change(self, account: Account | None) -> bool:
        """Whether what `account` had kept may be changed: in a room only by that account and the owner."""
        return not self.is_member or account == self.account

    @property
    def origin(self) -> str:
        """A stable key of the command's message or button: what it makes is made once."""
        press = self.inbound.kind == "action"
        return f"{self.inbound.address.key}#{self.inbound.text if press else self.inbound.message_id}"

    @property
    def author(self) -> Author:
        """Who changes something with this command, and with which message, if that can be opened again."""
        is_message = self.inbound.kind == "message" and not self.inbound.is_interaction and not self.is_shell
        return Author(
            account=self.account,
            address=None if self.is_shell else self.inbound.address,
            external_id=self.inbound.message_id if is_message else None,
            origin="member" if self.is_member else "typed",
            reason="in a room the owner decides what stands in its notes",
            epoch=self.epoch,
        )

    @property
    def erasure_request(self) -> ErasureRequest:
        return ErasureRequest(
            account=self.account,
            scope=self.scope,
            scopes=self.scopes,
            address=self.inbound.address,
            is_owner=self.is_owner,
            epoch=self.epoch,
        )


def button(label: str, name: str, arguments: str) -> Button:
    return Button(label=label, command=Command(name=name, arguments=arguments))


def with_ids(buttons: Sequence[Button]) -> tuple[Button, ...]:
    return tuple(replace(one, id=secrets.token_urlsafe(12)) for one in buttons)


def actions_of(buttons: Sequence[Button], scope: Scope, account: Account | None, now: datetime) -> list[ButtonAction]:
    """The rows of buttons in a place; `account`: who alone may press them."""
    until = now + BUTTON_LIFE
    return [
        ButtonAction(id=one.id, scope=scope, account=account, command=one.command, expires_at=until) for one in buttons
    ]


def announced(*names: str) -> tuple[CommandSpec, ...]:
    return tuple(_specs()[name] for name in names)


def number_in(words: str) -> int | None:
    """The number of ``3`` or ``#3``."""
    word = words.strip().lstrip("#")
    return int(word) if word.isascii() and word.isdigit() and len(word) < 18 else None


def is_command(name: str) -> bool:
    return name in ("start", "yes") or name in _specs()


@cache
def _specs() -> Mapping[str, CommandSpec]:
    named = {name: {"name": name, **table} for name, table in language_data("commands", "gateway.commands").items()}
    return TypeAdapter(dict[str, CommandSpec]).validate_python(named)


def yes_button(asked: ButtonAction) -> Button:
    return Button(label="Yes", command=YES, id=asked.id)


def may_answer(inbound: Inbound) -> bool:
    """Whether an event may be the answer to a question."""
    return inbound.kind == "action" or is_yes(inbound, is_ok_enough=True)


def is_yes(inbound: Inbound, *, is_ok_enough: bool = False) -> bool:
    """Whether a person says yes, with a please or thanks at most, in any language, case and punctuation; "ok" or a
    thumb up where that is enough."""
    if inbound.attachments or inbound.origin != "typed":
        return False
    if inbound.command is not None:
        return inbound.command == YES
    if len(inbound.text) > _LONGEST_CHARS:
        return False
    folded = unicodedata.normalize("NFKC", inbound.text).casefold()
    said = "".join(sign for sign in folded if unicodedata.category(sign)[0] in "LM" or sign.isspace()).split()
    if not said:
        return is_ok_enough and "👍" in folded
    answers = _words("yes") | _words("ok") if is_ok_enough else _words("yes")
    return " ".join(said) in answers or (said[0] in answers and _words("beside").issuperset(said[1:]))


@cache
def _words(kind: str) -> frozenset[str]:
    return frozenset(language_data("confirmations", "gateway.commands")[kind].split())


class CommandGroup(Protocol):
    """Some commands that belong together; `specs` announces them."""

    @property
    def specs(self) -> Sequence[CommandSpec]: ...

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Does it. Raises Refused with a sentence for the person."""


@runtime_checkable
class SuggestingGroup(Protocol):
    """A group that knows what an option may be."""

    async def suggest(self, typed: str, scope: Scope) -> Mapping[str, str]:
        """Values for what is typed, best first, and how each is shown."""


class Commands:
    def __init__(
        self, groups: Sequence[CommandGroup], actions: Actions, clock: Clock, skills: SkillCommands | None = None
    ) -> None:
        self._skills = skills
        self._groups = {spec.name: group for group in groups for spec in group.specs}
        self._specs = {spec.name: spec for spec in announced("help", *self._groups)}
        self.actions = actions
        self._clock = clock

    @property
    def specs(self) -> tuple[CommandSpec, ...]:
        return tuple(self._specs.values())

    def is_reading(self, command: Command) -> bool:
        """Whether the command changes nothing, so that it runs beside the conversation's queue."""
        spec = self._specs.get(command.name)
        if spec is None or spec.changes is None:
            return command != YES
        return re.fullmatch(rf"(?:{spec.changes})(\s.*)?", command.arguments.strip(), re.I | re.S) is None

    def kept(self, command: Command) -> str:
        is_secret = command.name in _SECRET_ARGUMENTS
        return f"/{command.name}" + (f" {command.arguments}" if command.arguments and not is_secret else "")

    async def as_said(self, inbound: Inbound, scope: Scope) -> Inbound:
        """The event; without its command where that calls a skill."""
        command, skills = inbound.command, self._skills
        if command is None or skills is None or (command.name != "skill" and is_command(command.name)):
            return inbound
        return replace(inbound, command=None) if await skills.is_call(inbound, scope) else inbound

    async def suggest(self, name: str, typed: str, scope: Scope) -> Mapping[str, str]:
        group = self._groups.get(name)
        return await group.suggest(typed, scope) if isinstance(group, SuggestingGroup) else {}

    def discreet(self, inbound: Inbound) -> Inbound:
        """The event as it is written down: without arguments that are never kept."""
        command = inbound.command
        if command is None or command.name not in _SECRET_ARGUMENTS or not command.arguments:
            return inbound
        return replace(inbound, text=f"/{command.name}", command=Command(name=command.name))

    async def answer(self, command: Command, context: CommandContext) -> tuple[Answer, Sequence[ButtonAction]]:
        """What is said to a command, also where it is refused, private if the command is, and the rows of its buttons,
        which the caller stores with it; a question gets its own in front."""
        try:
            answer = await self._run(command, context)
        except Refused as refusal:
            answer = Answer(text=str(refusal))
        spec = self._specs.get(command.name)
        if context.session.is_incognito:
            # A button is a row, and what it does may be words.
            answer = replace(answer, text=f"{BADGE}\n\n{answer.text}", buttons=())
        buttons = with_ids(answer.buttons)
        account = context.account if context.inbound.is_direct or (spec and spec.is_private) else None
        now, scope = self._clock.now(), context.scope
        actions = actions_of(buttons, scope, account, now)
        if answer.confirm is not None:
            asked = question(answer.confirm, context.account, scope, context.inbound.address, context.origin, now)
            buttons = (yes_button(asked), *buttons)
            actions.append(asked)
        # A yes or a sentence said where others read it is answered there: there is no other way to that person.
        is_open = context.is_public and context.inbound.kind == "message" and context.inbound.command is None
        is_private = not is_open and (answer.is_private or spec is None or spec.is_private)
        return replace(answer, buttons=buttons, is_private=is_private), actions

    async def _run(self, command: Command, context: CommandContext) -> Answer:
        if command.name in ("help", "start"):
            return Answer(text=self._help(command))
        if command == YES:
            return Answer(text=texts.NOTHING_WAITS_FOR_YES, is_private=True)
        if command == UNCLEAR:
            raise Refused(texts.SEVERAL_QUESTIONS)
        group = self._groups.get(command.name)
        if group is None:
            near = difflib.get_close_matches(command.name, self._specs, n=3, cutoff=0.5)
            guess = f" Did you mean {' or '.join(f'/{one}' for one in near)}?" if near else ""
            return Answer(text=f"There is no command /{command.name[:40]}.{guess} /help lists them all.")
        if context.session.is_incognito and not self.is_reading(command) and command.name not in _INCOGNITO:
            raise Refused(texts.INCOGNITO_WRITES_NOTHING)
        return await group.run(command, context)

    async def confirmed(self, inbound: Inbound) -> Command | None:
        """The command that an event confirms; None when nothing waited, or the event is no yes and what waited is over.
        Must see every press and all that may be a yes before it is accepted."""
        taker = f"{inbound.kind}:{inbound.message_id}"
        waiting = await self.actions.take(inbound.address, inbound.account, taker, self._clock.now())
        if inbound.kind == "action":
            return next((action.command for action in waiting if inbound.text == action.id), None)
        asked = [action.command for action in waiting]
        if not asked or not is_yes(inbound, is_ok_enough=all(one.name in SUGGESTIONS for one in asked)):
            return None
        # One of several may have come from elsewhere and not be seen yet: a bare yes does not say which is meant.
        return asked[0] if len(asked) == 1 else UNCLEAR

    async def given(self, inbound: Inbound, scope: Scope) -> Command | None:
        """The command of an event: typed, of the question that it says yes to, or of a pressed button unless that has
        expired, or is not for this place or person. What was asked before is over as any event is accepted."""
        confirmed = await self.confirmed(inbound) if may_answer(inbound) else None
        if confirmed is not None or inbound.kind != "action":
            return confirmed or inbound.command
        action = await self.actions.find(inbound.text, self._clock.now())
        if action is None or action.scope != scope or action.account not in (None, inbound.account):
            return None
        return action.command

    def _help(self, command: Command) -> str:
        name = command.arguments.strip().lstrip("/").lower()
        wanted = self._specs.get(name)
        if name and wanted is None:
            raise Refused(f"There is no command /{on_one_line(name)[:32]}. `/help` lists them all.")
        if wanted is not None:
            return "\n".join([f"`{_usage(wanted)}`: {wanted.description}.", *map(_described, wanted.options)])
        return "\n".join([texts.HELP, "", *(f"- `{_usage(spec)}`: {spec.description}" for spec in self.specs)])


def _usage(spec: CommandSpec) -> str:
    """What is typed, without options that have a prefix and may stand anywhere."""
    plain = [option for option in spec.options if not option.prefix]
    words = [f"<{option.name}>" if option.is_required else f"[{option.name}]" for option in plain]
    return " ".join([f"/{spec.name}", *words])


def _described(option: Option) -> str:
    name = f"`{option.prefix}`" if option.prefix else f"*{option.name}*"
    colon = "" if option.prefix.endswith(":") else ":"
    choices = f" ({', '.join(option.choices)})" if option.choices and not option.is_switch else ""
    return f"- {name}{colon} {option.description}{choices}"
