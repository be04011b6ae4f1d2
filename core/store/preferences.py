"""Stores a person's settings: a time zone, quiet hours, spoken answers, and the language.

Each row belongs to one account, or to a group, which has only a language. If a person has several
accounts, the settings of the account that asks take precedence over those of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from core.dates.schedule import load_zone, resolve_wall_time
from core.store import rows
from core.store.rows import Connection
from core.store.sqlite.database import Database
from core.store.sqlite.schema import in_list
from core.store.visibility import encode_list
from core.types import Account


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """A person's settings. A setting that is None has its default."""

    # An IANA name.
    zone: str | None = None
    # Wall times in `zone`, such as "22:00". Both are set, or neither.
    quiet_from: str | None = None
    quiet_until: str | None = None
    # "on" if answers are spoken, too. It counts for this account only.
    voice: str | None = None

    def quiet_end(self, now: datetime, default_zone: str) -> datetime | None:
        """Return when the quiet hours end, in UTC, or None if it isn't quiet now.

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
    """Return the next moment, in UTC, at which clocks show `clock_time`."""
    day = local.date()
    if local.time() >= clock_time:
        day += timedelta(days=1)
    return resolve_wall_time(datetime.combine(day, clock_time), zone)


_SELECT = f"SELECT * FROM preferences WHERE {in_list('account', 'accounts')}"
_SAVE = """
INSERT INTO preferences (account, zone, quiet_from, quiet_until, voice)
VALUES (:account, :zone, :quiet_from, :quiet_until, :voice)
ON CONFLICT (account) DO UPDATE SET zone = excluded.zone, quiet_from = excluded.quiet_from,
    quiet_until = excluded.quiet_until, voice = excluded.voice
"""


_SAVE_LANGUAGE = """
INSERT INTO preferences (account, language) VALUES (:key, :language)
ON CONFLICT (account) DO UPDATE SET language = excluded.language
"""


class Preferences:
    """The preferences in state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, accounts: Sequence[Account]) -> Preference:
        """Return a person's settings. The first of the accounts that has a setting decides it."""
        return await self._database.read(lambda connection: _load(connection, accounts))

    async def list_voice_accounts(self) -> list[Account]:
        """Return the accounts whose answers are spoken, too."""
        statement = "SELECT account FROM preferences WHERE voice = 'on'"
        found = await self._database.fetch_all(statement)
        accounts = [rows.parse_account(row["account"]) for row in found]
        return [account for account in accounts if account is not None]

    async def list_languages(self) -> dict[str, str]:
        """Return the languages that people and groups have, by the keys of accounts and groups."""
        statement = "SELECT account, language FROM preferences WHERE language IS NOT NULL"
        found = await self._database.fetch_all(statement)
        return {row["account"]: row["language"] for row in found}

    async def save_language(self, key: str, language: str) -> None:
        """Store the language of an account or a group, which the key names."""
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
    """Return the preference of several accounts: for each setting, the first that is set."""
    values = {"accounts": encode_list(account.key for account in accounts)}
    rows_by_account = {
        row["account"]: row for row in connection.execute(_SELECT, values).fetchall()
    }
    preference = Preference()
    for account in accounts:
        row = rows_by_account.get(account.key)
        if row is None:
            continue
        if preference.zone is None:
            preference = replace(preference, zone=row["zone"])
        if preference.voice is None:
            preference = replace(preference, voice=row["voice"])
        if preference.quiet_from is None:
            preference = replace(
                preference, quiet_from=row["quiet_from"], quiet_until=row["quiet_until"]
            )
    return preference
