"""Store buttons and yes/no questions, so that people can answer them even after a restart.

Each has an id, a command and an expiry time. The command runs when the person presses the button or
answers the question with yes. The gateway compares the scope and the account to decide who may
press a button.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core.ports import Clock
from core.store import rows
from core.store.engine import Connection, Database, Row, contains_item, in_list
from core.store.incognito import AskedQuestion, IncognitoRegistry
from core.store.visibility import encode_list
from core.types import Account, Address, Command, ErasureEpoch, Message, Scope

QUESTION_LIFETIME = timedelta(minutes=10)
YES_TO_MODEL = Command(name="yes", arguments="to the model")
"""Stands for the question at the end of the model's answer. The model itself gets the "yes"."""
YES_TO_REPETITION = Command(name="yes", arguments="to a repetition")
"""Stands for a question that repeats foreign text. The model gets the "yes", which confirms
nothing. The foreign text may be edited later, so the stored answer remembers the repetition."""
YES_TO_SEVERAL = Command(name="yes", arguments="to several")
"""The command that runs if a "yes" could answer several questions."""
YES_LIFETIME = timedelta(days=7)
"""How long a "yes" is taken for an answer to one of these commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ButtonAction:
    """A button, or a yes/no question, that runs `command` in `scope` until it expires."""

    id: str
    scope: Scope
    account: Account | None
    command: Command
    expires_at: datetime
    # Where the question was asked, or None for a button. The account's first press or message at
    # this address claims the question, so no other event can answer it.
    address: Address | None = None
    # Key of the outbox item that delivers the question. People can't answer it before its delivery.
    outbox_item: str | None = None
    # The event that caused the question. If the event is handled again, a new question replaces
    # this one.
    origin: str | None = None


def build_question(
    command: Command,
    account: Account,
    scope: Scope,
    address: Address,
    origin: str,
    now: datetime,
) -> ButtonAction:
    """Build a question. `command` runs if the account says yes or presses the button."""
    return ButtonAction(
        id=secrets.token_urlsafe(12),
        scope=scope,
        account=account,
        command=command,
        expires_at=now + QUESTION_LIFETIME,
        address=address,
        origin=origin,
    )


def build_yes(
    command: Command,
    account: Account,
    scope: Scope,
    address: Address,
    outbox_item: str,
    now: datetime,
) -> ButtonAction:
    """Build the row that says what a "yes" to an outbox item means: one of the constants above."""
    action = build_question(command, account, scope, address, outbox_item, now)
    return replace(action, outbox_item=outbox_item, expires_at=now + YES_LIFETIME)


_SELECT_ACTIONS = """
SELECT actions.*, scopes.key AS scope_key FROM actions JOIN scopes ON scopes.id = actions.scope_id
"""
_SELECT_BUTTON = f"""
{_SELECT_ACTIONS}
WHERE actions.id = :id AND actions.expires_at > :now AND actions.address IS NULL
"""
_SELECT_QUESTIONS = f"""
{_SELECT_ACTIONS}
WHERE actions.address = :address AND actions.account = :account AND actions.expires_at > :now
    AND (actions.taker IS NULL OR actions.taker = :taker)
    AND (actions.outbox_key IS NULL OR EXISTS (
        SELECT 1 FROM outbox
        WHERE outbox.key = actions.outbox_key
            AND (outbox.done_at IS NOT NULL OR outbox.posted <> '[]')
    ))
ORDER BY actions.taker IS NULL, actions.expires_at DESC
"""
"""Selects the questions that an account has received at an address and hasn't answered yet.

Questions that ``:taker`` has already taken come first, then the latest ones.
"""
_SELECT_COMMANDS = f"SELECT 1 FROM ({_SELECT_QUESTIONS}) AS questions WHERE command <> 'yes'"
_SELECT_QUESTION_OF_MESSAGE = f"""
{_SELECT_ACTIONS} JOIN outbox ON outbox.key = COALESCE(
    actions.outbox_key,
    'turn:' || actions.address || ':message:' || substr(actions.origin, instr(origin, '#') + 1)
)
WHERE (actions.address = :chat OR substr(actions.address, 1, length(:chat) + 1) = :chat || '/')
    AND actions.account = :account AND actions.expires_at > :now AND actions.taker IS NULL
    AND actions.command <> 'yes' AND {contains_item("outbox.posted", "message_id")}
"""
"""Selects the questions that a message on the platform shows, in a chat or one of its topics.

The origin of a command's question contains the id of the message with the command.
"""
_SELECT_OPEN_QUESTIONS = f"""
SELECT DISTINCT address, account FROM actions
WHERE address IS NOT NULL AND expires_at > :now AND {in_list("command", "names")}
"""
_IS_OF_OTHERS = """
SELECT 1 FROM actions
WHERE id = :id AND expires_at > :now AND taker IS NULL AND account IS NOT NULL
    AND account <> :account AND (actions.address = :address
        OR actions.address IS NULL AND scope_id = (SELECT id FROM scopes WHERE key = :scope)
        OR EXISTS (
            SELECT 1 FROM outbox
            WHERE outbox.key = actions.outbox_key AND outbox.address = :address
        )
    )
"""
_SELECT_ACCOUNT = """
SELECT account FROM actions WHERE id = :id AND address = :address AND expires_at > :now
"""
_DELETE_EARLIER = """
DELETE FROM actions
WHERE address = :address AND account = :account AND origin = :origin AND taker IS NULL
"""
_INSERT_ACTION = """
INSERT INTO actions
    (id, scope_id, account, command, arguments, expires_at, address, outbox_key, origin)
VALUES
    (:id, :scope, :account, :name, :arguments, :expires_at, :address, :outbox_item, :origin)
"""
_TAKE = f"UPDATE actions SET taker = :taker WHERE {in_list('id', 'ids')}"
CLAIM_QUESTIONS = f"""
UPDATE actions SET taker = :taker
WHERE taker IS NULL AND id IN (SELECT id FROM ({_SELECT_QUESTIONS}) AS questions)
"""
"""Runs when an event is accepted. It assigns the open questions to the event, so that no later
event can answer them."""


_SELECT_LAST_ANSWER = f"""
SELECT text, kind FROM messages WHERE address_id = ({rows.ADDRESS_ID}) AND role = 'assistant'
ORDER BY id DESC LIMIT 1
"""


class Actions:
    """Stores buttons and questions, and finds the one that a button press or an answer is about."""

    def __init__(
        self, database: Database, clock: Clock, incognito: IncognitoRegistry | None = None
    ) -> None:
        self._database = database
        self._clock = clock
        self._incognito = incognito or IncognitoRegistry()

    async def add(self, actions: Sequence[ButtonAction], epoch: ErasureEpoch | None = None) -> None:
        """Store buttons and questions, and delete expired ones. See `insert_actions`."""
        now = self._clock.now()
        if actions:
            await self._database.write(
                lambda connection: insert_actions(connection, actions, now), epoch
            )

    async def find(self, action_id: str, now: datetime) -> ButtonAction | None:
        """Return a button by its id, or None if it is unknown, expired or a question."""
        row = await self._database.fetch_one(_SELECT_BUTTON, {"id": action_id, "now": now})
        return None if row is None else _read_action(row)

    async def is_of_others(
        self, action_id: str, address: Address, scope: Scope, account: Account
    ) -> bool:
        """Return whether this question or button belongs to another account.

        The result is False for questions at other addresses and for buttons of other scopes, so
        that the answer doesn't reveal that they exist.
        """
        values = {
            "id": action_id,
            "address": address,
            "scope": scope,
            "account": account,
            "now": self._clock.now(),
        }
        return await self._database.fetch_one(_IS_OF_OTHERS, values) is not None

    async def find_account(self, question_id: str, address: Address) -> Account | None:
        """Return the account that must answer a question at this address.

        Returns None if the question doesn't exist or has expired.
        """
        values = {"id": question_id, "address": address, "now": self._clock.now()}
        row = await self._database.fetch_one(_SELECT_ACCOUNT, values)
        return None if row is None else rows.parse_account(row["account"])

    async def has_question(self, address: Address, account: Account) -> bool:
        """Return whether an open question of a command waits for this account at this address."""
        values = {"address": address, "account": account, "taker": "", "now": self._clock.now()}
        return await self._database.fetch_one(_SELECT_COMMANDS, values) is not None

    async def find_question(
        self, address: Address, message_id: str, account: Account
    ) -> ButtonAction | None:
        """Return the open question that a platform message shows, if it is for this account.

        Returns None if the message shows several such questions or none.
        """
        values = {
            "chat": address.key,
            "message_id": message_id,
            "account": account,
            "now": self._clock.now(),
        }
        questions = await self._database.fetch_all(_SELECT_QUESTION_OF_MESSAGE, values)
        return _read_action(questions[0]) if len(questions) == 1 else None

    async def list_open_questions(self, names: Sequence[str]) -> set[tuple[Address, Account]]:
        """Return the address and account of each unexpired question with one of these commands.

        Questions that a message has already claimed are included, because that message may not be
        handled yet.
        """
        values = {"now": self._clock.now(), "names": encode_list(names)}
        questions = set()
        for row in await self._database.fetch_all(_SELECT_OPEN_QUESTIONS, values):
            account = rows.parse_account(row["account"])
            if account is not None:
                questions.add((Address.parse(row["address"]), account))
        return questions

    async def load_last_answer(self, address: Address) -> str:
        """Return the text of the last answer at an address, or "" if no model wrote it."""
        row = await self._database.fetch_one(_SELECT_LAST_ANSWER, rows.address_values(address))
        return row["text"] if row is not None and row["kind"] == "chat" else ""

    async def take(
        self, address: Address, account: Account, taker: str, now: datetime
    ) -> Sequence[ButtonAction]:
        """Claim the questions that wait for this account at this address, latest first.

        `taker` identifies the message or button press that answers them. Only one caller gets a
        given question. A taker that asks again after a crash gets the same questions.
        """
        values = {"address": address, "account": account, "taker": taker, "now": now}

        def take_questions(connection: Connection) -> Sequence[ButtonAction]:
            """Claim the open questions, or return those that this taker has already claimed."""
            questions = connection.execute(_SELECT_QUESTIONS, values).fetchall()
            taken_before = [row for row in questions if row["taker"] is not None]
            if taken_before:
                # This event has already claimed questions before a crash. Later questions stay
                # open, because it can't be their answer.
                return [_read_action(row) for row in taken_before]
            ids = encode_list(row["id"] for row in questions)
            connection.execute(_TAKE, {**values, "ids": ids})
            return [_read_action(row) for row in questions]

        asked = self._take_incognito(address, account, taker, now)
        if await self._database.fetch_one(_SELECT_QUESTIONS, values) is None:
            return tuple(asked)
        return [*asked, *await self._database.write(take_questions)]

    def _take_incognito(
        self, address: Address, account: Account, taker: str, now: datetime
    ) -> list[ButtonAction]:
        """Claim the questions of an incognito conversation. They aren't in state.db."""
        conversation = self._incognito.conversations.get(address)
        if conversation is None or conversation.session is None:
            return []
        scope = conversation.session.scope
        return [
            build_question(
                YES_TO_REPETITION if question.is_repetition else YES_TO_MODEL,
                account,
                scope,
                address,
                taker,
                now,
            )
            for question in conversation.take(account, taker, now)
        ]


def insert_actions(connection: Connection, actions: Sequence[ButtonAction], now: datetime) -> None:
    """Store buttons and questions, and delete expired ones.

    A new question replaces the open questions with the same address, account and origin.
    """
    connection.execute("DELETE FROM actions WHERE expires_at <= :now", {"now": now})
    for action in actions:
        if action.address is not None:
            connection.execute(_DELETE_EARLIER, rows.field_values(action))
    for action in actions:
        values = {
            **rows.field_values(action),
            **rows.field_values(action.command),
            "scope": rows.ensure_scope(connection, action.scope),
        }
        connection.execute(_INSERT_ACTION, values)


def keep_questions(
    incognito: IncognitoRegistry, messages: list[Message], actions: Sequence[ButtonAction]
) -> list[Message]:
    """Keep what a "yes" to an incognito answer, the last message, means. Return the messages."""
    for action in actions:
        conversation = incognito.find_by_session(messages[-1].session_id)
        if action.command.name != "yes" or action.account is None or conversation is None:
            continue
        question = AskedQuestion(
            answer_id=messages[-1].id,
            account=action.account,
            expires_at=action.expires_at,
            is_repetition=action.command == YES_TO_REPETITION,
        )
        conversation.asked.append(question)
    return messages


def _read_action(row: Row) -> ButtonAction:
    fields = rows.read_fields(row, ButtonAction)
    fields["command"] = Command(name=row["command"], arguments=row["arguments"])
    fields["outbox_item"] = row["outbox_key"]
    return ButtonAction(**fields, scope=Scope(key=row["scope_key"]))
