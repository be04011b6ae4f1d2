"""Finds the slash command for an event, runs it, and prepares its answer.

A command can ask for confirmation with `Answer.confirm_command`. The registry then stores a
question for the account and the address, which expires after ten minutes. If the person replies
"yes" or presses the button "Yes", the stored command runs. Any other event cancels the question and
is handled as usual.
"""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Protocol

from pydantic import TypeAdapter

from core.errors import Refused, word_clause
from core.menus.command_specs import CommandSpec
from core.ports import AutocompletingGroup, Clock
from core.scheduling.talk.agenda_questions import PhraseIndex, may_ask_about_period
from core.store.actions import (
    YES_TO_MODEL,
    YES_TO_REPETITION,
    YES_TO_SEVERAL,
    Actions,
    ButtonAction,
    build_question,
)
from core.store.erasure.statements import ErasureRequest
from core.store.incognito import INCOGNITO_BADGE
from core.store.mailbox import OutboxItem
from core.store.notes import Author, PendingNote
from core.text.normalize import (
    language_data,
    to_normal_form,
    to_single_line,
)
from core.types import (
    Account,
    Address,
    Answer,
    Button,
    Command,
    ErasureEpoch,
    Inbound,
    Scope,
    Scopes,
    Session,
)
from gateway.texts.catalog import ENGLISH, Texts, load_texts
from gateway.texts.command_names import find_alias, suggest_commands, translate_action


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """Contains who runs a command, where, and with which rights."""

    inbound: Inbound
    # The command writes to this scope.
    scope: Scope
    # The command may read these scopes, as they were at `epoch`.
    scopes: frozenset[Scope]
    # The open session of the conversation.
    session: Session
    is_owner: bool
    # For /stop: an answer was being written and was stopped.
    has_stopped_turn: bool = False
    # For /retry: an earlier process had already begun to answer the question again.
    has_begun_turn: bool = False
    # The command was given in a shell as `mneme ...`, not in a chat.
    is_shell: bool = False
    epoch: ErasureEpoch | None = None
    # The time zone of the person, as an IANA name. "" means the zone in settings.
    zone: str = ""

    @property
    def account(self) -> Account:
        return self.inbound.account

    @property
    def texts(self) -> Texts:
        """Return the texts in the language of the person or the group."""
        return load_texts(self.inbound.language)

    @property
    def is_typed_command(self) -> bool:
        """Return whether the person typed the command in a chat, so it isn't a confirmation."""
        return not self.is_shell and self.inbound.command not in (None, YES_COMMAND)

    @property
    def is_answer_public(self) -> bool:
        """Return whether others can see the answer: in a group, unless the platform hides it."""
        return not self.inbound.is_direct and not self.inbound.is_interaction

    @property
    def is_member(self) -> bool:
        """Return whether the command comes from a group member who isn't the owner.

        Members may read the notes and facts of the group. Only the owner decides about them.
        """
        return self.scope.is_group and not self.is_owner

    def can_change(self, account: Account | None) -> bool:
        """Return whether this person may change an item of `account`.

        It's None for no author. In a group, only the owner and the author of an item may change it.
        """
        return not self.is_member or account == self.account

    @property
    def idempotency_key(self) -> str:
        """Return a key for creating things once. It's the same if this command runs again."""
        is_press = self.inbound.kind == "action"
        event_id = self.inbound.text if is_press else self.inbound.message_id
        return f"{self.inbound.address.key}#{event_id}"

    @property
    def author(self) -> Author:
        """Return the author of a change.

        The author includes the command's message only if people can open that message.
        """
        is_message = self.inbound.kind == "message" and not self.inbound.is_interaction
        return Author(
            account=self.account,
            address=None if self.is_shell else self.inbound.address,
            external_id=self.inbound.message_id if is_message and not self.is_shell else None,
            origin="member" if self.is_member else "typed",
            reason=word_clause("waits_group_notes"),
            epoch=self.epoch,
        )

    @property
    def erasure_request(self) -> ErasureRequest:
        """Return an erasure request with the identity and scopes of this person."""
        return ErasureRequest(
            account=self.account,
            scope=self.scope,
            scopes=self.scopes,
            address=self.inbound.address,
            is_owner=self.is_owner,
            epoch=self.epoch,
        )


class CommandGroup(Protocol):
    """A group of related commands. `specs` describes each command."""

    @property
    def specs(self) -> Sequence[CommandSpec]: ...

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Run one command and return its answer.

        Raises Refused with a sentence for the person if the command can't be run.
        """


class ReminderTalk(Protocol):
    """Answers messages about reminders by rules, without a model."""

    # The words that such messages contain; None before `load`.
    triggers: PhraseIndex | None
    # The chats and accounts whose next message may answer a question or correct a reminder.
    open_dialogues: set[tuple[Address, Account]]

    async def load(self) -> None:
        """Load the data of `triggers` and `open_dialogues`."""

    async def answer(self, context: CommandContext) -> TalkAnswer | None:
        """Answer a message, or return None if it doesn't concern reminders."""


class ThumbRecorder(Protocol):
    """Records people's thumb reactions to answers."""

    async def record(self, inbound: Inbound, scope: Scope, scopes: Scopes, is_owner: bool) -> None:
        """Record a thumb, or its removal, by a person who can see `scopes`."""

    async def find_undo(self, inbound: Inbound, scopes: Scopes) -> Command | None:
        """Return the command that undoes an answer's only change after a thumb down, or None."""


class AnswerSpeaker(Protocol):
    """Turns answers into speech for people who switched that on."""

    async def speak(self, inbound: Inbound, outbox_item: OutboxItem, answer: Answer) -> None:
        """Start to turn an answer into speech. The answer is stored as `outbox_item`."""


@dataclass(frozen=True, slots=True)
class TalkAnswer:
    """An answer about reminders, with the rows of its buttons and of its follow-up question."""

    answer: Answer
    actions: Sequence[ButtonAction]
    # A reminder was set, changed or removed.
    is_change: bool = False


# The command of the "Yes" button. In the terminal, people can type it.
YES_COMMAND = Command(name="yes")
# These commands only ask whether they understood a time correctly, so "ok" confirms them.
# Commands that can't be undone need a "yes".
COMMANDS_CONFIRMED_BY_OK = frozenset({"remind", "cron"})
BUTTON_LIFETIME = timedelta(days=7)
# Platforms on which a button can open a form.
PLATFORMS_WITH_FORMS = frozenset({"discord"})
# A longer message is never a "yes".
_MAX_YES_CHARS = 40
# Commands whose arguments are never stored.
_COMMANDS_WITH_SECRETS = frozenset({"approve", "forget", "link"})
# Commands that store no data of an incognito conversation, even if they change settings.
_INCOGNITO_COMMANDS = frozenset(
    {"incognito", "new", "stop", "undo", "retry", "compress", "model", "link", "unlink"}
)
_MAX_NUMBER_DIGITS = 17
# A longer message is never a request about reminders.
MAX_TALK_CHARS = 2000

# A function that returns True if a message in this scope calls a skill by its name.
SkillCallCheck = Callable[[Inbound, Scope], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedInbound:
    """An event together with the command to run for it, if any."""

    # The event. If it calls a skill, it has no `command`: the model gets it as a message.
    inbound: Inbound
    # The event without command arguments that must not be stored.
    stored_inbound: Inbound
    # The command to run, or None for a message or an expired button.
    command: Command | None
    # The event needn't wait in the conversation's queue, because its command changes nothing or
    # its button has expired.
    is_immediate: bool


class CommandRegistry:
    """Finds and runs the commands of all groups.

    If `is_skill_call` is None, no message is treated as a call of a skill.
    """

    def __init__(
        self,
        groups: Sequence[CommandGroup],
        actions: Actions,
        clock: Clock,
        is_skill_call: SkillCallCheck | None = None,
        talk: ReminderTalk | None = None,
        thumbs: ThumbRecorder | None = None,
        voice: AnswerSpeaker | None = None,
    ) -> None:
        self.actions = actions
        # Records thumbs on answers. If it's None, they aren't recorded.
        self.thumbs = thumbs
        # Turns answers into speech. None if no speaker is configured.
        self.voice = voice
        # None if a model answers messages about reminders.
        self.talk = talk
        self._clock = clock
        self._is_skill_call = is_skill_call
        self._groups = {spec.name: group for group in groups for spec in group.specs}
        self._specs = {spec.name: spec for spec in load_specs("help", "ask", *self._groups)}
        self._completers: dict[str, AutocompletingGroup] = {}
        for group in groups:
            if isinstance(group, AutocompletingGroup):
                self._completers.update(dict.fromkeys(group.suggests, group))

    @property
    def specs(self) -> tuple[CommandSpec, ...]:
        return tuple(self._specs.values())

    async def may_concern_reminders(self, inbound: Inbound) -> bool:
        """Return, after a cheap check, whether a message might be about reminders."""
        is_scheduled = inbound.address.platform == "cron"
        is_too_long = len(inbound.text) > MAX_TALK_CHARS
        is_own = inbound.origin in ("typed", "spoken")
        if self.talk is None or not is_own or is_scheduled or is_too_long:
            return False
        if self.talk.triggers is None:
            await self.talk.load()
        is_open = (inbound.address, inbound.account) in self.talk.open_dialogues
        if is_open or may_ask_about_period(inbound.text):
            return True
        return self.talk.triggers is not None and self.talk.triggers.is_in(inbound.text)

    async def resolve(self, inbound: Inbound, scope: Scope) -> ResolvedInbound:
        """Find the command to run for an event. Call this once, before the event is accepted.

        Like `take_confirmed_command`, this removes the questions that wait for this person in this
        chat.
        """
        inbound = resolve_names(await self.unwrap_question(inbound, scope))
        command = await self.resolve_command(inbound, scope)
        is_immediate = inbound.kind == "action"
        if command is not None:
            is_immediate = self.is_read_only(command)
        return ResolvedInbound(
            inbound=inbound,
            stored_inbound=_remove_secret_arguments(inbound),
            command=command,
            is_immediate=is_immediate,
        )

    async def resolve_command(self, inbound: Inbound, scope: Scope) -> Command | None:
        """Return the command to run for an event, or None.

        The command was typed, confirmed by "yes", or belongs to the pressed button. A button has no
        command if it has expired or belongs to another scope or person. The event confirms or
        cancels the questions that wait for this person in this chat.
        """
        if can_confirm(inbound):
            command = await self.take_confirmed_command(inbound)
            if command is not None:
                return command
        if inbound.kind != "action":
            return inbound.command
        action = await self.actions.find(inbound.text, self._clock.now())
        if action is None or action.scope != scope or action.account not in (None, inbound.account):
            return None
        if not inbound.form_text:
            return action.command
        line = f"{action.command.arguments} {inbound.form_text}"
        return replace(action.command, arguments=line)

    async def take_confirmed_command(self, inbound: Inbound) -> Command | None:
        """Remove this person's questions in this chat, and return the confirmed command.

        Returns None if there's no question or the event doesn't confirm one. Call this for each
        event for which `can_confirm` returns True, before the event is accepted. If the same event
        is handled again after a crash, it gets the same result.
        """
        taker = f"{inbound.kind}:{inbound.message_id}"
        now = self._clock.now()
        questions = await self.actions.take(inbound.address, inbound.account, taker, now)
        if inbound.kind == "action":
            for question in questions:
                if question.id == inbound.text:
                    return question.command
            return None
        if not questions:
            return None
        commands = [question.command for question in questions]
        to_model = (YES_TO_MODEL, YES_TO_REPETITION)
        others = [command for command in commands if command not in to_model]
        is_ok_enough = all(command.name in COMMANDS_CONFIRMED_BY_OK for command in others)
        if not others or not is_yes(inbound, is_ok_enough=is_ok_enough):
            return None
        # Imported here because few messages confirm anything.
        from core.review.pending import choose_command

        return choose_command(commands, await self.actions.load_last_answer(inbound.address))

    async def unwrap_question(self, inbound: Inbound, scope: Scope) -> Inbound:
        """Remove the command from a question to the model. Returns other events unchanged.

        Such a question uses /ask, or calls a skill by /skill or by the skill's own name. /ask and
        /skill may have their names in any language. If a command has the same name as a skill, the
        command runs.
        """
        typed_command = inbound.command
        command = resolve_names(inbound).command
        if typed_command is None or command is None:
            return inbound
        files = inbound.attachments or inbound.replied_files
        inbound = replace(inbound, replied_files=())
        if command.name == "ask" and (command.arguments or files):
            return replace(inbound, command=None, text=command.arguments, attachments=files)
        if self._is_skill_call is None:
            return inbound
        if command.name == "skill":
            inbound = replace(inbound, text=f"/skill {command.arguments}", command=command)
        elif is_command(typed_command.name):
            return inbound
        if await self._is_skill_call(inbound, scope):
            return replace(inbound, command=None, attachments=files)
        return inbound

    def is_read_only(self, command: Command) -> bool:
        """Return whether a command changes nothing, so it can run without waiting in the queue."""
        spec = self._specs.get(command.name)
        if spec is None or spec.changes is None:
            return command != YES_COMMAND
        pattern = rf"(?:{spec.changes})(\s.*)?"
        arguments = command.arguments.strip()
        return re.fullmatch(pattern, arguments, re.IGNORECASE | re.DOTALL) is None

    def render_stored_text(self, command: Command) -> str:
        """Return a command as one line for the history, without arguments that aren't stored."""
        if command.arguments and command.name not in _COMMANDS_WITH_SECRETS:
            return f"/{command.name} {command.arguments}"
        return f"/{command.name}"

    async def autocomplete(
        self, inbound: Inbound, typed: str, source: str, scope: Scope
    ) -> Mapping[str, str]:
        """Return completions for an option of a command. See `AutocompletingGroup`.

        If `source` is empty, `typed` and the completions are whole command lines.
        """

        async def load(source: str, value: str) -> Mapping[str, str]:
            group = self._completers.get(source)
            if group is None:
                return {}
            return await group.autocomplete(source, value, scope, inbound.account)

        spec = self._specs.get(inbound.command.name) if inbound.command is not None else None
        return await load(source, typed) if source or not spec else await spec.complete(typed, load)

    async def answer(
        self, command: Command, context: CommandContext
    ) -> tuple[Answer, Sequence[ButtonAction]]:
        """Run a command, and return its answer and the rows of the answer's buttons.

        The caller stores the rows together with the answer. If the command raises Refused, the
        error's text is the answer. If the command asks for confirmation, the first button is "Yes".
        """
        try:
            answer = await self.run(command, context)
        except Refused as refusal:
            answer = Answer(text=context.texts.word(refusal))
        if context.session.is_incognito:
            # Buttons would be stored, and their commands may contain words of the conversation.
            text = f"{INCOGNITO_BADGE}\n\n{answer.text}"
            answer = replace(answer, text=text, buttons=(), cards=())
        if context.inbound.address.platform not in PLATFORMS_WITH_FORMS:
            answer = replace(answer, buttons=_leave_out_forms(answer.buttons))

        spec = self._specs.get(command.name)
        is_shown_to_one = spec is not None and _is_private_line(spec, command.arguments)
        is_for_one_person = context.inbound.is_direct or is_shown_to_one
        presser = context.account if is_for_one_person else None
        now = self._clock.now()
        buttons = assign_button_ids(answer.buttons)
        actions = make_button_actions(buttons, context.scope, presser, now)
        if answer.confirm_command is not None:
            question = build_question(
                answer.confirm_command,
                context.account,
                context.scope,
                context.inbound.address,
                context.idempotency_key,
                now,
            )
            buttons = (make_yes_button(context.texts, question), *buttons)
            actions.append(question)
            answer = _explain_unheard_answer(answer, context)

        # In a group, a plain message such as "yes" can't be answered privately.
        is_message = context.inbound.kind == "message" and context.inbound.command is None
        is_open = context.is_answer_public and is_message
        is_private_command = spec is None or _is_private_line(spec, command.arguments)
        is_private = not is_open and (answer.is_private or is_private_command)
        return replace(answer, buttons=buttons, is_private=is_private), actions

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Run a command and return its answer. Raises Refused if it can't be run."""
        texts = context.texts
        if command.name == "start":
            # The text after /start is the payload of the opened link, such as t.me/bot?start=x.
            return self._answer_help("", context, is_start=True)
        if command.name == "help":
            return self._answer_help(command.arguments, context)
        if command.name == "ask":
            raise Refused(texts.ASK_USAGE)
        if command == YES_COMMAND:
            return Answer(text=texts.NOTHING_WAITS_FOR_YES, is_private=True)
        if command == YES_TO_SEVERAL:
            raise Refused(texts.SEVERAL_QUESTIONS)
        platform = context.inbound.address.platform
        group = self._groups.get(command.name)
        if group is None:
            return Answer(text=suggest_commands(texts, command.name, self._specs, platform))
        if context.session.is_incognito:
            is_allowed = command.name in _INCOGNITO_COMMANDS or self.is_read_only(command)
            if not is_allowed:
                raise Refused(texts.INCOGNITO_WRITES_NOTHING)
        return await group.run(command, context)

    def _answer_help(
        self, arguments: str, context: CommandContext, *, is_start: bool = False
    ) -> Answer:
        """Explain one command, list all commands ("all"), or give an introduction.

        Telegram sends /start first, so its introduction has buttons with things to try. Raises
        Refused if there is no such command.
        """
        texts = context.texts
        name = arguments.strip().lstrip("/").lower()
        if not name:
            buttons = [make_button(texts.ALL_COMMANDS, "help", "all")]
            if is_start and context.inbound.is_direct:
                buttons = [*make_first_steps(texts), *buttons]
            return Answer(text=texts.HELP, buttons=tuple(buttons))
        # Imported here because only the list of commands and the help of one command need it.
        from gateway.commands.menus.specs import describe_command, list_commands

        if name == "all":
            specs = [spec for spec in self.specs if context.is_owner or not spec.is_for_owner]
            return Answer(text=list_commands(texts, specs))
        spec = self._specs.get(name)
        if spec is None:
            platform = context.inbound.address.platform
            name = to_single_line(name)[:32]
            raise Refused(suggest_commands(texts, name, self._specs, platform))
        return Answer(text=describe_command(texts, spec))


def _explain_unheard_answer(answer: Answer, context: CommandContext) -> Answer:
    """Add how to answer a question if the platform doesn't pass on a typed "yes"."""
    heard = context.inbound.heard_replies
    if heard == "all":
        return answer
    note = context.texts.table("HOW_TO_ANSWER")[heard]
    return replace(answer, text=f"{answer.text}\n\n{note}")


def can_confirm(inbound: Inbound) -> bool:
    """Return whether an event can be the reply to a question."""
    return inbound.kind == "action" or is_yes(inbound, is_ok_enough=True)


def is_yes(inbound: Inbound, *, is_ok_enough: bool = False, kind: str = "yes") -> bool:
    """Return whether a text says "yes" and nothing else, except for a word like "please".

    "Yes" is recognized in many languages. Case and punctuation are ignored. If `is_ok_enough`, "ok"
    and a thumbs-up count, too. With `kind="no"`, return whether it says "no".
    """
    if inbound.attachments or inbound.origin != "typed":
        return False
    if inbound.command is not None:
        return kind == "yes" and inbound.command == YES_COMMAND
    if len(inbound.text) > _MAX_YES_CHARS:
        return False
    text = to_normal_form("NFKC", inbound.text).casefold()
    words = "".join(char for char in text if _is_letter_or_space(char)).split()
    if not words:
        return is_ok_enough and "👍" in text

    answers = _load_confirmation_words(kind)
    if is_ok_enough:
        answers |= _load_confirmation_words("ok")
    if " ".join(words) in answers:
        return True
    return words[0] in answers and _load_confirmation_words("polite").issuperset(words[1:])


def _is_letter_or_space(char: str) -> bool:
    """Return whether a character is a letter, a combining mark or white space."""
    return unicodedata.category(char)[0] in "LM" or char.isspace()


@cache
def _load_confirmation_words(kind: str) -> frozenset[str]:
    return frozenset(language_data("confirmations", "gateway.commands")[kind].split())


def make_button(label: str, name: str, arguments: str) -> Button:
    """Return a button that runs the command `name` with these arguments."""
    return Button(label=label, command=Command(name=name, arguments=arguments))


def make_first_steps(texts: Texts) -> list[Button]:
    """Return buttons for three things that a new user can try."""
    return [
        make_button(texts.TRY_REMIND, "remind", texts.TRY_REMIND_TEXT),
        make_button(texts.TRY_REMEMBER, "remember", texts.TRY_REMEMBER_TEXT),
        make_button(texts.TRY_FACTS, "facts", ""),
    ]


def make_decision_buttons(texts: Texts, note: PendingNote) -> tuple[Button, ...]:
    """Return the buttons that approve or reject a pending note."""
    return (
        make_button(texts.BUTTON_APPROVE.format(id=note.id), "memory", f"approve {note.id}"),
        make_button(texts.BUTTON_REJECT.format(id=note.id), "memory", f"reject {note.id}"),
    )


def make_yes_button(texts: Texts, question: ButtonAction) -> Button:
    return Button(label=texts.BUTTON_YES, command=YES_COMMAND, id=question.id)


def _leave_out_forms(buttons: Sequence[Button]) -> tuple[Button, ...]:
    """Return the buttons that work without a form."""
    return tuple(button for button in buttons if not (button.form and button.form.is_needed))


def assign_button_ids(buttons: Sequence[Button]) -> tuple[Button, ...]:
    """Return the buttons with random ids. The platform sends the id when a button is pressed."""
    return tuple(replace(button, id=secrets.token_urlsafe(12)) for button in buttons)


def make_button_actions(
    buttons: Sequence[Button], scope: Scope, account: Account | None, now: datetime
) -> list[ButtonAction]:
    """Return the rows of buttons in `scope`. If `account` is None, everyone may press them."""
    expires_at = now + BUTTON_LIFETIME
    return [
        ButtonAction(
            id=button.id,
            scope=scope,
            account=account,
            command=button.command,
            expires_at=expires_at,
        )
        for button in buttons
    ]


def parse_number(text: str) -> int | None:
    """Return the number in a text such as ``3`` or ``#3``, or None for any other text."""
    digits = text.strip().lstrip("#")
    if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_NUMBER_DIGITS:
        return int(digits)
    return None


def split_action(arguments: str) -> tuple[str, str]:
    """Split the arguments of a command into the action, in lower case, and the rest."""
    action, _, parameters = arguments.strip().partition(" ")
    return action.lower(), parameters.strip()


def is_command(name: str) -> bool:
    return name in ("start", "yes") or name in list_all_specs()


def load_specs(*names: str) -> tuple[CommandSpec, ...]:
    """Return the specs of all commands, from `data/commands.toml` and the texts."""
    return tuple(list_all_specs()[name] for name in names)


@cache
def list_all_specs() -> Mapping[str, CommandSpec]:
    """Return the specs of all commands, with their English descriptions."""
    specs = {}
    descriptions = ENGLISH.tables("commands")
    for name, table in language_data("commands", "gateway.commands").items():
        words = descriptions[name]
        options = []
        for option in table.get("options", ()):
            options.append({**option, "description": words["options"][option["name"]]})
        actions = []
        for action in table.get("actions", ()):
            own_options = [
                {**option, "description": words["options"][option["name"]]}
                for option in action.get("options", ())
            ]
            text = words["actions"][action["name"]]
            actions.append({**action, "description": text, "options": own_options})
        specs[name] = {"name": name, **table, **words, "options": options, "actions": actions}
    return TypeAdapter(dict[str, CommandSpec]).validate_python(specs)


def _is_private_line(spec: CommandSpec, arguments: str) -> bool:
    return spec.is_private or spec.is_private_action(arguments)


def resolve_names(inbound: Inbound) -> Inbound:
    """Return the event with the English names of its command and of the action."""
    command = inbound.command
    if command is None:
        return inbound
    if not is_command(command.name):
        command = replace(command, name=find_alias(command.name, inbound.language) or command.name)
    spec = list_all_specs().get(command.name)
    if spec is not None and spec.actions:
        command = translate_action(command, spec, inbound.language)
    return inbound if command == inbound.command else replace(inbound, command=command)


def _remove_secret_arguments(inbound: Inbound) -> Inbound:
    """Return the event without arguments of its command that must not be stored."""
    command = inbound.command
    if command is None or not command.arguments or command.name not in _COMMANDS_WITH_SECRETS:
        return inbound
    return replace(inbound, text=f"/{command.name}", command=Command(name=command.name))
