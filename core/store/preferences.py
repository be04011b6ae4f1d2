"""Store people's and groups' settings, such as the time zone, quiet hours and language.

Each row belongs to one account or to one group. A group has only a language. If a person has
several accounts, the settings of the account that asks take precedence over those of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from core.dates.schedule import load_zone, resolve_wall_time
from core.store import rows
from core.store.engine import Connection, Database, in_list
from core.store.visibility import encode_list
from core.types import Account, Address, Inbound


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """A person's settings. None means the default."""

    # The time zone, as an IANA name. "" is the machine's zone, about which the owner was told.
    zone: str | None = None
    # Wall times in `zone`, such as "22:00". Either both are set or neither is.
    quiet_from: str | None = None
    quiet_until: str | None = None
    # "on" if answers are also spoken. This setting applies to a single account.
    voice: str | None = None
    # The groups of tools that are switched off, separated by commas: "web,calendar".
    tools_off: str | None = None

    @property
    def switched_off(self) -> frozenset[str]:
        """The groups of tools that the person has switched off."""
        return frozenset(filter(None, (self.tools_off or "").split(",")))

    def quiet_end(self, now: datetime, default_zone: str) -> datetime | None:
        """Return when the current quiet hours end, in UTC, or None if it isn't quiet now.

        Quiet hours may pass midnight, as in "from 22:00 until 7:00".
        """
        if self.quiet_from is None or self.quiet_until is None:
            return None
        zone = load_zone(self.zone or default_zone)
        begin, end = time.fromisoformat(self.quiet_from), time.fromisoformat(self.quiet_until)
        local = now.astimezone(zone)
        clock_time = local.time()
        if begin <= end:
            is_quiet = begin <= clock_time < end
        else:
            is_quiet = clock_time >= begin or clock_time < end
        if not is_quiet:
            return None
        return _next_wall_time(local, end, zone)


def _next_wall_time(local: datetime, clock_time: time, zone: ZoneInfo) -> datetime:
    """Return the next moment, in UTC, at which a clock in the zone shows `clock_time`."""
    day = local.date()
    if local.time() >= clock_time:
        day += timedelta(days=1)
    return resolve_wall_time(datetime.combine(day, clock_time), zone)


_SELECT = f"SELECT * FROM preferences WHERE {in_list('account', 'accounts')}"
_SAVE = """
INSERT INTO preferences (account, zone, quiet_from, quiet_until, voice, tools_off)
VALUES (:account, :zone, :quiet_from, :quiet_until, :voice, :tools_off)
ON CONFLICT (account) DO UPDATE SET zone = excluded.zone, quiet_from = excluded.quiet_from,
    quiet_until = excluded.quiet_until, voice = excluded.voice, tools_off = excluded.tools_off
"""


_SAVE_LANGUAGE = """
INSERT INTO preferences (account, language) VALUES (:key, :language)
ON CONFLICT (account) DO UPDATE SET language = excluded.language
"""


_SELECT_DIRECT_CHATS = """
SELECT DISTINCT addresses.platform, addresses.chat_id, preferences.account
FROM preferences JOIN scopes ON scopes.key = 'account:' || preferences.account
JOIN sessions ON sessions.scope_id = scopes.id
JOIN addresses ON addresses.id = sessions.address_id
WHERE preferences.language IS NOT NULL AND sessions.external_id IS NULL
    AND scopes.key LIKE 'account:' || addresses.platform || ':%'
"""


class Preferences:
    """Stores and loads the settings of people, and the languages of groups."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, accounts: Sequence[Account]) -> Preference:
        """Return a person's settings.

        Each setting comes from the first of the accounts that has set it.
        """
        return await self._database.read(lambda connection: _load(connection, accounts))

    async def list_voice_accounts(self) -> list[Account]:
        """Return the accounts that also get spoken answers."""
        statement = "SELECT account FROM preferences WHERE voice = 'on'"
        accounts = []
        for row in await self._database.fetch_all(statement):
            account = rows.parse_account(row["account"])
            if account is not None:
                accounts.append(account)
        return accounts

    async def list_languages(self) -> dict[str, str]:
        """Return the languages that people and groups have set, by account or group key."""
        statement = "SELECT account, language FROM preferences WHERE language IS NOT NULL"
        language_rows = await self._database.fetch_all(statement)
        return {row["account"]: row["language"] for row in language_rows}

    async def list_direct_chats(self) -> dict[tuple[str, str], Account]:
        """Return the accounts that have set a language, by platform and direct chat id."""
        chats = {}
        for row in await self._database.fetch_all(_SELECT_DIRECT_CHATS):
            account = rows.parse_account(row["account"])
            if account is not None:
                chats[row["platform"], row["chat_id"]] = account
        return chats

    async def save_language(self, key: str, language: str | None) -> None:
        """Store the language of the account or group with this key. None clears it."""
        await self._database.write(
            lambda connection: connection.execute(
                _SAVE_LANGUAGE, {"key": key, "language": language}
            )
        )

    async def save(self, account: Account, **changes: str | None) -> None:
        """Change some settings of an account, and keep the others."""

        def write(connection: Connection) -> None:
            preference = replace(_load(connection, [account]), **changes)
            values = {**rows.field_values(preference), "account": account}
            connection.execute(_SAVE, values)

        await self._database.write(write)


def _load(connection: Connection, accounts: Sequence[Account]) -> Preference:
    """Return the settings of several accounts, each from the first account that has set it."""
    values = {"accounts": encode_list(account.key for account in accounts)}
    rows_by_account = {
        row["account"]: row for row in connection.execute(_SELECT, values).fetchall()
    }
    preference = Preference()
    for account in accounts:
        row = rows_by_account.get(account.key)
        if row is None:
            continue
        if not preference.zone and row["zone"] is not None:
            preference = replace(preference, zone=row["zone"])
        if preference.voice is None:
            preference = replace(preference, voice=row["voice"])
        if preference.tools_off is None:
            preference = replace(preference, tools_off=row["tools_off"])
        if preference.quiet_from is None:
            preference = replace(
                preference, quiet_from=row["quiet_from"], quiet_until=row["quiet_until"]
            )
    return preference


# --- Groups ---

Listening = Literal["mention", "reply", "always", "commands"]
LISTENING: tuple[Listening, ...] = ("mention", "reply", "always", "commands")
"""The kinds of group messages that can be meant for the assistant. Commands and messages with the
prefix always are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    """The settings that admins chose for a topic, a group or a server.

    None means that the setting of the enclosing group or server applies, or else the default.
    """

    # Words of `LISTENING`. The default is "mention reply".
    listens: str | None = None
    # A message that begins with this text is for the assistant. "" turns this off.
    prefix: str | None = None
    # "all" if messages that aren't for the assistant are stored as well, otherwise "addressed".
    stores: str | None = None
    # The roles whose members get answers. Empty for all members.
    roles: tuple[str, ...] = ()
    retention_days: int | None = None
    # The key of the server that a channel belongs to.
    server: str | None = None
    # When the assistant explained what it stores.
    introduced_at: datetime | None = None
    # When a stranger was told that the assistant doesn't answer them. See `stranger_key`.
    refused_at: datetime | None = None

    def fill_gaps(self, larger: ChatSettings) -> ChatSettings:
        """Return these settings, completed with those of the enclosing group or server."""
        return replace(
            self,
            listens=self.listens or larger.listens,
            prefix=larger.prefix if self.prefix is None else self.prefix,
            stores=self.stores or larger.stores,
            roles=self.roles or larger.roles,
        )

    @property
    def has_rules(self) -> bool:
        """Whether any setting says what Mneme answers and stores, or for how long."""
        has_words = bool(self.listens or self.stores or self.roles)
        return has_words or self.prefix is not None or self.retention_days is not None

    def take_over(self, earlier: ChatSettings) -> ChatSettings:
        """Return these settings.

        Unset ones are taken from the settings under the chat's earlier id.
        """
        gaps: dict[str, Any] = {
            name: rows.field_values(earlier)[name]
            for name, value in rows.field_values(self).items()
            if value in (None, ())
        }
        return replace(self, **gaps)


def server_key(inbound: Inbound) -> str:
    """Return the key of the server that contains the event's channel, or ""."""
    server_id = inbound.server_id
    return f"{inbound.address.platform}:server:{server_id}" if server_id else ""


def stranger_key(inbound: Inbound) -> str:
    """Return the key that records whether a stranger was told that they get no answers.

    There is one for each person in a group or a whole server: ``"telegram:-5/stranger:42"``.
    """
    place = server_key(inbound) or replace(inbound.address, thread_id=None).key
    return f"{place}/stranger:{inbound.sender.id}"


def introduction_key(place: str) -> str:
    """Return the key under which `stores` is what a group or server was last told.

    `place` is the key of the group or server: ``"telegram:-5/introduction"``.
    """
    return f"{place}/introduction"


def chat_keys(inbound: Inbound) -> list[str]:
    """Return the keys whose settings apply to an event: topic or thread, chat and server.

    The topic "General" of a forum has no number, so its key has a word: ``"telegram:-5/general"``.
    """
    address = inbound.address
    general = f"{address.key}/general" if inbound.is_in_general else ""
    keys = [general, address.key, replace(address, thread_id=None).key, server_key(inbound)]
    return list(dict.fromkeys(key for key in keys if key))


_SAVE_CHAT = """
INSERT INTO chat_settings (
    key, listens, prefix, stores, roles, retention_days, server, introduced_at, refused_at
) VALUES (
    :key, :listens, :prefix, :stores, :roles, :retention_days, :server, :introduced_at, :refused_at
) ON CONFLICT (key) DO UPDATE SET listens = excluded.listens, prefix = excluded.prefix,
    stores = excluded.stores, roles = excluded.roles, retention_days = excluded.retention_days,
    server = excluded.server, introduced_at = excluded.introduced_at,
    refused_at = excluded.refused_at
"""


class ChatRules:
    """The settings of all groups, kept in memory because there are few.

    Call `load` before any method that looks up settings. Otherwise, a limit that admins set
    wouldn't apply after a restart.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._settings: dict[str, ChatSettings] = {}
        self._is_loaded = False

    async def load(self) -> None:
        """Read all settings from state.db, unless they were already read."""
        if not self._is_loaded:
            await self.reload()

    async def reload(self) -> None:
        """Read all settings from the store again, because another gateway may have changed them."""
        self._settings = {
            row["key"]: ChatSettings(**rows.read_fields(row, ChatSettings))
            for row in await self._database.fetch_all("SELECT * FROM chat_settings")
        }
        self._is_loaded = True

    def get(self, key: str) -> ChatSettings:
        """Return the settings of this key alone.

        Settings of the enclosing group or server aren't included.
        """
        self._require_loaded()
        return self._settings.get(key, ChatSettings())

    def find(self, inbound: Inbound) -> ChatSettings:
        """Return the settings that apply to an event.

        A topic's settings take precedence over its chat's, and the chat's over the server's.
        """
        self._require_loaded()
        settings = ChatSettings()
        if self._settings:
            for key in chat_keys(inbound):
                settings = settings.fill_gaps(self.get(key))
        return settings

    def find_at(self, address: Address) -> ChatSettings:
        """Return the settings that apply at an address, with those of its server if it is known."""
        chat_key = replace(address, thread_id=None).key
        settings = ChatSettings()
        for key in dict.fromkeys((address.key, chat_key, self.get(chat_key).server)):
            if key:
                settings = settings.fill_gaps(self.get(key))
        return settings

    def find_retention(self, key: str) -> int | None:
        """Return how many days a chat keeps its messages, or None if its admins set none."""
        settings = self.get(key)
        if settings.retention_days is None and settings.server:
            return self.get(settings.server).retention_days
        return settings.retention_days

    def list_chats(self, server: str) -> list[str]:
        """Return the keys of the chats that belong to a server."""
        self._require_loaded()
        return [key for key, settings in self._settings.items() if settings.server == server]

    def list_retention(self) -> dict[str, int]:
        """Return how many days messages are kept, by the key of each chat with a setting."""
        self._require_loaded()
        return {
            key: settings.retention_days
            for key, settings in sorted(self._settings.items())
            if settings.retention_days is not None
        }

    async def save(self, key: str, **changes: Any) -> None:
        """Change some settings of a topic, group or server."""
        await self.load()
        settings = replace(self.get(key), **changes)
        values = {**rows.field_values(settings), "roles": rows.dump_json(list(settings.roles))}
        await self._database.write(
            lambda connection: connection.execute(_SAVE_CHAT, {**values, "key": key})
        )
        self._settings[key] = settings

    async def migrate_group(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """Copy the settings of a group and its topics to the group's new id.

        Settings that the new id already has stay. The old rows stay, too, because the retention is
        looked up by the group's first id, which is part of its scope.
        """
        await self.load()
        old, new = (f"{platform}:{chat_id}" for chat_id in (old_chat_id, new_chat_id))
        keys = [key for key in self._settings if key.partition("/")[0] == old]
        for key in keys:
            new_key = new + key.removeprefix(old)
            settings = self.get(new_key).take_over(self.get(key))
            if settings != self.get(new_key):
                await self.save(new_key, **rows.field_values(settings))

    def _require_loaded(self) -> None:
        assert self._is_loaded, "load() must come before the first look-up"
