"""Keep the ids of messages and events, and the menus that a bot already has.

When an adapter starts, it uses the newest ids to fetch the messages that were written since the
last run, or to look for a message that the last run may have sent. It sends only the menus that
have changed. The ids of closed inbox entries are kept, so that no event is accepted twice.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from core.store.engine import Database, contains_item, in_list
from core.store.rows import ADDRESS_ID, address_values, get_meta, load_blocks, set_meta
from core.types import Address, Json, Scope

# The beginning of keys in `state_meta`. The rest is the key of an address, and the value is the id
# of a message that was written during setup.
_FIRST_MESSAGE = "first_message:"
# The beginning of keys in `state_meta`. The rest is the key of a bot, and the value is a JSON list
# with the fingerprints of its menus.
_SENT_MENUS = "sent_menus:"

# The beginning of keys in `state_meta`. The rest is a platform and a channel, and the value is the
# id after which messages of the channel may be missing.
_UNREAD = "unread_after:"

RETENTION = timedelta(days=30)
"""How long these rows are kept:

- ids of events that left no message (platforms redeliver events for a day at most)
- dead letters, which may contain a stranger's message
- keys of delivered outbox items (turns aren't repeated after that time)
"""

# Stores the ids of the events of closed entries, unless the event is stored as a message.
REMEMBER_IDS = f"""
INSERT INTO answered_events (address_id, external_id, at)
SELECT address_id, external_id, :now FROM inbox
WHERE {in_list("id", "ids")} AND NOT EXISTS (
    SELECT 1 FROM messages
    WHERE messages.address_id = inbox.address_id AND messages.external_id = inbox.external_id
)
ON CONFLICT (address_id, external_id) DO NOTHING
"""
SELECT_KNOWN = " UNION ALL ".join(
    f"SELECT 1 FROM {table} WHERE address_id = ({ADDRESS_ID}) AND external_id = :external"
    for table in ("inbox", "messages", "answered_events")
)
_SELECT_META = "SELECT key, value FROM state_meta WHERE substr(key, 1, length(:start)) = :start"
_SELECT_LAST_IDS = """
SELECT chat_id, thread_id, MAX(
    COALESCE((
        SELECT MAX(external_id) FROM messages WHERE address_id = addresses.id AND external_id < ':'
    ), ''),
    COALESCE((
        SELECT MAX(external_id) FROM answered_events
        WHERE address_id = addresses.id AND external_id < ':'
    ), '')
) AS last_id
FROM addresses WHERE platform = :platform
"""
"""Selects the latest message id of each address. Only ids that are numbers are compared: ids of
edits begin with a letter, and letters sort after the colon."""
_SELECT_POSTED_ADDRESS = f"""
SELECT address FROM outbox
WHERE (address = :chat OR substr(address, 1, length(:chat) + 1) = :chat || '/')
    AND {contains_item("posted", "message_id")}
ORDER BY id DESC LIMIT 1
"""
"""Selects the chat or topic in which a message was posted, if it was posted in the last days."""
RECENT_MESSAGES = 2000
_SELECT_NEWEST_IDS = """
SELECT chat_id, newest_id FROM (
    SELECT chat_id, CAST(given_id AS BIGINT) AS newest_id,
        ROW_NUMBER() OVER (PARTITION BY chat_id ORDER BY recent.id DESC) AS place
    FROM (
        SELECT id, session_id, address_id, CASE
            WHEN external_id NOT GLOB '*[^0-9]*' THEN external_id ELSE posted_id
        END AS given_id
        FROM messages ORDER BY id DESC LIMIT :limit
    ) AS recent
    JOIN addresses ON addresses.id = recent.address_id
    JOIN sessions ON sessions.id = recent.session_id
    WHERE platform = :platform AND given_id <> '' AND given_id NOT GLOB '*[^0-9]*'
        AND end_reason IS NOT 'import'
) AS ranked WHERE place = 1
"""
"""Selects the id of the newest message of each chat, among a limited number of messages.

The newest row counts and not the highest id, because a group that gets a new chat id begins with
low ids. Imported messages have the ids of another account.
"""

SET_POSTED_ID = """
UPDATE messages SET posted_id =
    CASE WHEN outbox.posted NOT LIKE '["?%' THEN json_extract(outbox.posted, '$[0]') END
FROM outbox WHERE outbox.key = :key AND messages.id = outbox.message_id AND key NOT LIKE 'voice:%'
"""
"""Gives the message in the conversation the platform id of the first part of an answer."""
_SELECT_POSTED = """
SELECT posted FROM outbox WHERE posted <> '[]' AND (
    :chat IS NULL OR address = :chat OR substr(address, 1, length(:chat) + 1) = :chat || '/'
    OR reply_to LIKE '@%' OR key LIKE 'turn:cron:%'
)
ORDER BY id DESC LIMIT 1000
"""
"""Selects what was posted in a chat and its threads. Answers to interactions and to scheduled
questions are selected for every chat, because their address doesn't say where they were posted."""
_SELECT_AUTHOR = """
SELECT scopes.key, (
    SELECT sender_id FROM messages WHERE address_id = addresses.id AND external_id = :external
) AS sender_id
FROM addresses JOIN sessions ON sessions.address_id = addresses.id
JOIN scopes ON scopes.id = sessions.scope_id
WHERE platform = :platform AND chat_id = :chat_id AND thread_id = :thread_id
ORDER BY sessions.last_at DESC, sessions.id DESC LIMIT 1
"""
"""Selects the scope of the latest session at an address, and the author of a message there."""


async def load_author(database: Database, address: Address, external_id: str) -> Scope | None:
    """Return the private scope of the person who wrote a message, or None if the author is unknown.

    In a group, the author is the sender of the message.
    """
    values = {**address_values(address), "external": external_id}
    row = await database.fetch_one(_SELECT_AUTHOR, values)
    if row is None:
        return None
    scope = Scope(key=row["key"])
    if not scope.is_group:
        return scope
    return Scope.account(address.platform, row["sender_id"]) if row["sender_id"] else None


_SELECT_LATEST_QUESTION = """
SELECT question.text, (
    SELECT json_group_array(tool_name) FROM messages
    WHERE session_id = question.session_id AND id >= question.id
        AND (role = 'tool' OR role = 'user' AND tool_name IS NOT NULL)
) AS tool_names, (
    SELECT json_group_array(blocks) FROM messages
    WHERE session_id = question.session_id AND id > question.id
        AND role = 'assistant' AND tool_name IS NOT NULL AND blocks IS NOT NULL
) AS completions, (
    SELECT json_group_array(text) FROM messages AS later
    WHERE session_id = question.session_id AND role = 'user' AND kind = 'command' AND EXISTS (
        SELECT 1 FROM messages
        WHERE session_id = question.session_id AND id > question.id AND id < later.id
            AND role = 'assistant' AND kind <> 'command'
    )
) AS commands, EXISTS (
    SELECT 1 FROM messages WHERE session_id = question.session_id AND id > question.id
        AND role = 'assistant' AND kind NOT IN ('undone', 'command') AND origin <> 'job'
) AS is_answered, (
    SELECT posted FROM outbox
    WHERE done_at IS NOT NULL AND key NOT LIKE 'voice:%' AND message_id IN (
        SELECT id FROM messages
        WHERE session_id = question.session_id AND id > question.id AND kind <> 'command'
            AND origin <> 'job'
    )
    ORDER BY outbox.id DESC LIMIT 1
) AS posted FROM messages AS question
JOIN addresses ON addresses.id = question.address_id
JOIN sessions ON sessions.id = question.session_id
WHERE platform = :platform AND chat_id = :chat_id AND thread_id = :thread_id
    AND question.external_id = :external AND question.role = 'user' AND question.kind = 'chat'
    AND sessions.ended_at IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM messages AS later
        WHERE session_id = question.session_id AND id > question.id
            AND role = 'user' AND kind <> 'command' AND (
                sender_id IS NULL OR sender_id <> question.sender_id
                OR EXISTS (
                    SELECT 1 FROM messages
                    WHERE session_id = question.session_id AND id > question.id AND id < later.id
                        AND role = 'assistant' AND kind <> 'command' AND origin <> 'job'
                )
            )
    )
"""
"""Selects a question if only its answer or a notice, commands and results of jobs follow.

Also selects the tools, their calls and the platform messages of the answer, and the commands that
follow the answer. Between the question and its answer, there may be further messages of the same
person that were answered together with it, such as the other photos of an album."""


_SELECT_OTHER = """
SELECT text, kind FROM messages JOIN addresses ON addresses.id = messages.address_id
WHERE platform = :platform AND chat_id = :chat_id AND thread_id = :thread_id
    AND external_id = :external AND role = 'user' AND kind IN ('chat', 'command', 'undone')
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredQuestion:
    """A stored question or command of a person.

    If something else followed it, or if it's a command or was taken back, only its text is known.
    """

    text: str
    is_command: bool = False
    # It was taken back or forgotten.
    is_undone: bool = False
    # Another message followed the answer, or the conversation has ended.
    is_followed: bool = False
    # The question has an answer, or a notice that says why not.
    is_answered: bool = True
    # The tools that ran for the answer, or whose work rules did without a model.
    tool_names: Sequence[str] = ()
    # The calls of these tools that are still stored.
    calls: Sequence[Json] = ()
    # The commands after the answer, with their slashes and arguments.
    commands: Sequence[str] = ()
    # The platform messages that show the answer. Empty if one of them isn't known.
    answer_ids: tuple[str, ...] = ()


async def load_question(
    database: Database, address: Address, external_id: str
) -> StoredQuestion | None:
    """Return the question or command with a message id, and the known parts of its answer.

    Returns None if the message isn't stored.
    """
    values = {**address_values(address), "external": external_id}
    row = await database.fetch_one(_SELECT_LATEST_QUESTION, values)
    if row is None:
        row = await database.fetch_one(_SELECT_OTHER, values)
        if row is None:
            return None
        # An erased message is stored as a command without a text.
        is_undone = row["kind"] == "undone" or not row["text"]
        is_command = row["kind"] == "command" and not is_undone
        return StoredQuestion(
            text=row["text"], is_command=is_command, is_undone=is_undone, is_followed=True
        )
    answer_ids: list[str] = json.loads(row["posted"] or "[]")
    # An entry with the `INTENT_MARK` of the outbox stands for a message whose id isn't known.
    are_known = not any(answer_id.startswith("?") for answer_id in answer_ids)
    return StoredQuestion(
        text=row["text"],
        is_answered=bool(row["is_answered"]),
        tool_names=json.loads(row["tool_names"]),
        calls=[
            block
            for blocks in json.loads(row["completions"])
            for block in load_blocks(blocks) or ()
            if block.get("type") == "tool_use"
        ],
        commands=json.loads(row["commands"]),
        answer_ids=tuple(answer_ids) if are_known else (),
    )


async def load_last_message_ids(database: Database, platform: str) -> dict[Address, str]:
    """Return the latest message id at each address of a platform.

    The platform's ids must be growing numbers of equal length.
    """
    last_ids: dict[Address, str] = {}
    for row in await database.fetch_all(_SELECT_LAST_IDS, {"platform": platform}):
        address = Address(
            platform=platform, chat_id=row["chat_id"], thread_id=row["thread_id"] or None
        )
        if row["last_id"]:
            last_ids[address] = row["last_id"]
    for address, first_id in (await _load_first_messages(database, platform)).items():
        # The first message itself must still be fetched.
        last_ids.setdefault(address, str(int(first_id) - 1))
    return last_ids


async def note_first_message(database: Database, address: Address, message_id: str) -> None:
    """Record a message from before Mneme first ran, so that the first start fetches it."""
    key = f"{_FIRST_MESSAGE}{address.key}"
    await database.write(lambda connection: set_meta(connection, key, message_id))


async def _load_first_messages(database: Database, platform: str) -> dict[Address, str]:
    """Return the recorded first message of each address of a platform."""
    rows = await database.fetch_all(_SELECT_META, {"start": f"{_FIRST_MESSAGE}{platform}:"})
    messages = {}
    for row in rows:
        chat_id = row["key"].removeprefix(f"{_FIRST_MESSAGE}{platform}:")
        messages[Address(platform=platform, chat_id=chat_id)] = row["value"]
    return messages


class ChatMessages:
    """Finds the messages of people and of Mneme in the chats of a platform."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_newest_ids(self, platform: str) -> dict[str, int]:
        """Return the id of the newest stored message in each recently active chat of a platform.

        Messages of people and of Mneme in all threads of the chat count.
        """
        values = {"platform": platform, "limit": RECENT_MESSAGES}
        rows = await self._database.fetch_all(_SELECT_NEWEST_IDS, values)
        return {row["chat_id"]: row["newest_id"] for row in rows}

    async def find_posted_address(self, chat: Address, message_id: str) -> Address | None:
        """Return the chat or topic in which Mneme has posted a message of a chat, or None."""
        values = {"chat": chat.key, "message_id": message_id}
        row = await self._database.fetch_one(_SELECT_POSTED_ADDRESS, values)
        return None if row is None else Address.parse(row["address"])


class UnreadBounds:
    """Stores, for each channel that a catch-up couldn't read yet, after which id it must read.

    A later message of the channel doesn't change this bound.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        # The bounds in the store, by platform and channel.
        self._bounds: dict[tuple[str, str], int] = {}

    async def load(self, platform: str) -> dict[str, int]:
        """Return the bound of each channel of a platform that wasn't read to its end."""
        start = f"{_UNREAD}{platform}:"
        rows = await self._database.fetch_all(_SELECT_META, {"start": start})
        bounds = {row["key"].removeprefix(start): int(row["value"]) for row in rows}
        self._bounds |= {(platform, channel): bound for channel, bound in bounds.items()}
        return bounds

    async def lower(self, platform: str, channel: str, after_id: int) -> int:
        """Store a bound, unless a lower one is stored, and return the one that is stored now."""
        stored_id = self._bounds.get((platform, channel))
        if stored_id is not None and stored_id <= after_id:
            return stored_id
        key = f"{_UNREAD}{platform}:{channel}"
        await self._database.write(lambda connection: set_meta(connection, key, str(after_id)))
        self._bounds[platform, channel] = after_id
        return after_id

    async def delete(self, platform: str, channel: str) -> None:
        """Delete the bound of a channel that was read to its end, if there is one."""
        if (platform, channel) in self._bounds:
            key = f"{_UNREAD}{platform}:{channel}"
            await self._database.execute("DELETE FROM state_meta WHERE key = :key", {"key": key})
            self._bounds.pop((platform, channel), None)


class SentMenus:
    """Stores, for each bot, which menus of commands the platform has accepted.

    Menus are stored as fingerprints.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, bot_key: str) -> set[str]:
        """Return the fingerprints of the menus that a bot has."""
        key = f"{_SENT_MENUS}{bot_key}"
        value = await self._database.read(lambda connection: get_meta(connection, key))
        return set(json.loads(value or "[]"))

    async def save(self, bot_key: str, fingerprints: Collection[str]) -> None:
        """Replace the fingerprints of the menus that a bot has."""
        key = f"{_SENT_MENUS}{bot_key}"
        value = json.dumps(sorted(fingerprints))
        await self._database.write(lambda connection: set_meta(connection, key, value))


async def load_posted_ids(database: Database, chat: str | None) -> set[str]:
    """Return the ids of the messages that were last posted in a chat, or in all chats."""
    posted_ids: set[str] = set()
    for row in await database.fetch_all(_SELECT_POSTED, {"chat": chat}):
        posted_ids.update(json.loads(row["posted"]))
    return posted_ids
