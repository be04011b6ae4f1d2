"""Every model call that was paid for, one row a call, why its prefix was not in the cache, and what it all came to.

`UsageLog.check` knows the limits of a day. `disturb` is for whoever changes what a session's next request begins with,
inside the same transaction. What tokens cost is what the settings say; a model without a price there has none.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from typing import Literal, TypeVar, get_args
from zoneinfo import ZoneInfo

from config.settings import DayLimits, Limited, Limits, UsageOptions
from core.errors import LimitReached
from core.store import rows
from core.store.people import LINKED, is_owners
from core.store.rows import Connection, Row
from core.store.sqlite.database import Database
from core.store.sqlite.schema import in_list, list_value
from core.types import CallKind, Payer, Scope, Usage

MissCause = Literal[
    "first", "compression", "length", "rights", "resumed", "forget", "edit", "undo", "model", "system", "tools",
    "messages", "idle", "daily", "branch", "evicted",
]  # fmt: skip
"""Why a request was not read from the cache as far as it might have been; `length`, `system`, `tools` and `messages`
stand in older rows only."""

Key = TypeVar("Key")
MILLION = 1_000_000
MONTHS = 12
_DATE = re.compile(r"-(?:\d{8}|latest)\Z")
WHOLE = 0.99  # a prefix of which this part was read counts as read: servers round


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """`cached_from`: what was sent before then, the server keeps no more. `turns`: 1 for the first call of a turn."""

    kind: CallKind
    model: str
    usage: Usage
    at: datetime
    payer: Payer
    cached_from: datetime | None = None
    turns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSum:
    """The `calls` of one kind to one model that missed for the same cause, or did not miss."""

    kind: CallKind
    model: str
    calls: int
    usage: Usage
    miss: MissCause | None = None
    missed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Some calls, at the `prices` of today."""

    sums: Sequence[UsageSum]
    prices: UsageOptions

    @property
    def calls(self) -> int:
        return sum(one.calls for one in self.sums)

    @property
    def usage(self) -> Usage:
        return sum((one.usage for one in self.sums), Usage())

    @property
    def missed(self) -> int:
        """The tokens that had to be sent anew."""
        return sum(one.missed for one in self.sums)

    @property
    def cached(self) -> float:
        """The part of the input that was read from the cache, 0 to 1."""
        return self.usage.cache_read / self.usage.sent if self.usage.sent else 0.0

    @property
    def cost(self) -> float | None:
        """Without the `unpriced` models; None: no call has a price."""
        return self._cost((one.model, one.usage) for one in self.sums)

    @property
    def plain_cost(self) -> float | None:
        """What it would have cost without a cache."""
        return self._cost((one.model, Usage(input=one.usage.sent, output=one.usage.output)) for one in self.sums)

    def amount(self, cost: float) -> str:
        """``$12.34``, ``$0.042``, ``under $0.0001``."""
        if 0 < cost < 0.0001:
            return f"under {self.prices.currency}0.0001"
        digits = 2 if cost >= 1 or not cost else 3 if cost >= 0.01 else 4
        return f"{self.prices.currency}{cost:,.{digits}f}"

    @property
    def unpriced(self) -> list[str]:
        return list(dict.fromkeys(model for (_, model), part in self.bills if part.cost is None))

    @property
    def kinds(self) -> list[tuple[CallKind, Spending]]:
        """The most calls first."""
        return self._parts(lambda one: one.kind, lambda part: part.calls)

    @property
    def bills(self) -> list[tuple[tuple[CallKind, str], Spending]]:
        """By kind and model, the most tokens first."""
        return self._parts(lambda one: (one.kind, one.model), lambda part: part.usage.sent)

    @property
    def misses(self) -> list[tuple[MissCause, Spending]]:
        """By cause, the most missed tokens first."""
        causes = self._parts(lambda one: one.miss, lambda part: part.missed)
        return [(cause, part) for cause, part in causes if cause is not None]

    def _parts(self, key: Callable[[UsageSum], Key], size: Callable[[Spending], int]) -> list[tuple[Key, Spending]]:
        groups: dict[Key, list[UsageSum]] = {}
        for one in self.sums:
            groups.setdefault(key(one), []).append(one)
        parts = [(name, replace(self, sums=group)) for name, group in groups.items()]
        return sorted(parts, key=lambda part: size(part[1]), reverse=True)

    def _cost(self, used: Iterable[tuple[str, Usage]]) -> float | None:
        """Without the models that have no price; None where none has one."""
        table, total = self.prices.prices, None
        for model, usage in used:
            if price := table.get(model) or table.get(_DATE.sub("", model)):
                hour = price.cache_write if price.cache_write_hour is None else price.cache_write_hour
                tokens = (
                    usage.input * price.input
                    + usage.cache_read * price.cache_read
                    + (usage.cache_write - usage.cache_write_hour) * price.cache_write
                    + usage.cache_write_hour * hour
                    + usage.output * price.output
                )
                total = (total or 0.0) + tokens / MILLION
        return total


_TOKENS = {field.name: f"{field.name}_tokens" for field in fields(Usage)}
"""The columns of a call, by field."""
_SPENT = f"FROM calls WHERE {rows.visible('calls.scope_id')} AND (:until IS NULL OR calls.at < :until)"
_SUMS = f"""
SELECT calls.kind, calls.model, calls.miss, COUNT(*) AS calls, SUM(calls.missed_tokens) AS missed,
    {", ".join(f"SUM(calls.{name}) AS {name}" for name in _TOKENS.values())}
{_SPENT} AND (:since IS NULL OR calls.at >= :since) AND (:session IS NULL OR calls.session_id = :session)
GROUP BY calls.kind, calls.model, calls.miss ORDER BY calls.kind, calls.model, calls.miss
"""
_LATEST = f"SELECT MAX(calls.at) AS at {_SPENT}"
_INSERT = rows.insertion(
    *("calls", "scope_id", "session_id", "account", "kind", "model", "at", "turns"),
    *(*_TOKENS.values(), "miss", "missed_tokens"),
)
_LAST_CALL = """
SELECT calls.*, disturbances.cause FROM calls LEFT JOIN disturbances ON disturbances.session_id = calls.session_id
WHERE calls.session_id = :session AND calls.kind = 'chat' ORDER BY calls.id DESC LIMIT 1
"""
_ORIGIN = """
SELECT earlier.end_reason AS reason FROM sessions JOIN sessions AS earlier
ON earlier.address_id = sessions.address_id AND earlier.scope_id = sessions.scope_id AND earlier.id < sessions.id
WHERE sessions.id = :session AND earlier.ended_at IS NOT NULL AND NOT earlier.is_delegated
ORDER BY earlier.id DESC LIMIT 1
"""


ASKED = ("answers", "input_tokens", "output_tokens", "money")  # limits of what models are asked
NEAR = 0.8
_REACHED = (
    "Today's limit for {whose} is reached ({used}): it begins anew at midnight ({zone}), and until then everything "
    "else goes on as always, like `/recall` and `/memory`."
)
_OF_PERSON = in_list("account", "accounts")
_OF_ROOM = """
scope_id = (SELECT id FROM scopes WHERE key = :room) AND (:owner OR account NOT IN (
    SELECT platform || ':' || user_id FROM accounts JOIN people ON people.id = accounts.person_id WHERE is_owner
))
"""
_CALLED = f"""
SELECT model, SUM(turns) AS turns, {", ".join(f"SUM({name}) AS {name}" for name in _TOKENS.values())}
FROM calls WHERE at >= :since AND """
_SET = """
SELECT COALESCE(SUM(is_prompt), 0) AS scheduled_questions, COALESCE(SUM(NOT is_prompt), 0) AS reminders
FROM jobs WHERE created_at >= :since AND """
_FILES = f"""
SELECT COUNT(*) AS files FROM sessions JOIN scopes ON scopes.id = sessions.scope_id
CROSS JOIN messages ON messages.session_id = sessions.id
WHERE {in_list("substr(scopes.key, 9)", "accounts")} AND sessions.last_at >= :since
    AND messages.kind = 'command' AND messages.text = '/export' AND messages.created_at >= :since
"""
"""What was asked for that is made as a file: exports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What the person of `scope`, or that room, has `used` today of what they may, by the names of `limits`."""

    scope: Scope
    limits: DayLimits
    used: Mapping[str, float]
    prices: UsageOptions

    @property
    def limited(self) -> list[Limited]:
        return [name for name, most in self.limits.items() if most]

    def reached(self, names: Sequence[str], share: float = 1.0) -> list[Limited]:
        """Those of these limits of which so much is used."""
        return [name for name in self.limited if name in names and self.used[name] >= share * self.limits[name]]

    def said(self, name: Limited) -> str:
        """``299 of 300 answers``, ``$9.12 of $10.00``."""
        amount = Spending(sums=(), prices=self.prices).amount if name == "money" else "{:,.0f}".format
        noun = "" if name == "money" else f" {name.replace('_', ' ')}"
        return f"{amount(self.used[name])} of {amount(self.limits[name])}{noun}"


class UsageLog:
    """`prices` are those of today; months and days are those of `zone` (an IANA name). `on_near` is told, once a day of
    a person or room, of each limit of which 80 % are used."""

    def __init__(
        self, database: Database, prices: UsageOptions | None = None, zone: str = "UTC", limits: Limits | None = None
    ) -> None:
        self.on_near: Callable[[Budget, Limited], Awaitable[None]] | None = None
        self._limits = limits
        self._near: set[tuple[Scope, Limited, date]] = set()
        self._database = database
        self._prices = prices or UsageOptions(prices={}, currency="$")
        self._zone = ZoneInfo(zone)

    async def keep(self, call: ModelCall) -> None:
        await self._database.write(lambda connection: log_call(connection, call))

    async def spent(
        self,
        scopes: frozenset[Scope],
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        session_id: int | None = None,
    ) -> Spending:
        """From `since` on and before `until`."""
        session = None if session_id is None else rows.bounded(session_id)
        values = {"scopes": rows.scope_parameter(scopes), "since": since, "until": until, "session": session}
        found = await self._database.fetch_all(_SUMS, values)
        sums = [UsageSum(**rows.fields_in(row, UsageSum), usage=_usage(row)) for row in found]
        return Spending(sums=sums, prices=self._prices)

    async def months(self, scopes: frozenset[Scope]) -> list[tuple[date, Spending]]:
        """The last twelve months with any spending, by first day, latest first."""
        until: datetime | None = None
        found: list[tuple[date, Spending]] = []
        while len(found) < MONTHS:
            row = await self._database.fetch_one(_LATEST, {"scopes": rows.scope_parameter(scopes), "until": until})
            if row is None or (latest := rows.maybe_moment(row["at"])) is None:
                break
            start = latest.astimezone(self._zone).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
            found.append((start.date(), await self.spent(scopes, since=start, until=until)))
            until = start
        return found

    async def budgets(self, payer: Payer, now: datetime, names: Sequence[str] = get_args(Limited)) -> list[Budget]:
        """That of the person, with all linked accounts, and of the room, as far as these limits go; none of the owner,
        who is exempt unless the limits say otherwise."""
        limits, midnight = self._limits, now.astimezone(self._zone).replace(hour=0, minute=0, second=0, microsecond=0)

        def work(connection: Connection) -> list[Budget]:
            scope, _ = _payer(connection, payer)
            if scope is None or limits is None:
                return []
            account = scope.speaker(payer.user_id)
            if is_owners(connection, account) and not limits.day_for_owner:
                return []
            linked = connection.execute(LINKED, rows.values_of(account)).fetchall()
            keys = sorted({account.key, *(rows.account_in(row).key for row in linked)})
            values = {"since": midnight, "accounts": list_value(keys), "room": scope, "owner": limits.day_for_owner}
            whose = [Scope(key=f"account:{keys[0]}"), *([scope] if scope.is_room else [])]
            return [self._budget(connection, one, limits, values, names) for one in whose]

        return await self._database.glance(work)

    def _budget(
        self, connection: Connection, scope: Scope, limits: Limits, values: Mapping[str, object], names: Sequence[str]
    ) -> Budget:
        whose, most = (_OF_ROOM, limits.room_day) if scope.is_room else (_OF_PERSON, limits.day)
        calls = connection.execute(f"{_CALLED} {whose} GROUP BY model", values).fetchall()
        sums = [UsageSum(kind="chat", model=row["model"], calls=row["turns"], usage=_usage(row)) for row in calls]
        spent = Spending(sums=sums, prices=self._prices)
        used: dict[str, float] = {"answers": spent.calls, "money": spent.cost or 0.0}
        used |= {"input_tokens": spent.usage.sent, "output_tokens": spent.usage.output}
        used |= dict(connection.execute(f"{_SET} {whose}", values).fetchone())
        is_made = "files" in names and not scope.is_room
        used["files"] = connection.execute(_FILES, values).fetchone()["files"] if is_made else 0
        return Budget(scope=scope, limits=most, used=used, prices=self._prices)

    async def check(self, payer: Payer, now: datetime, *names: Limited) -> None:
        """Raises LimitReached where one of these limits is reached for `payer` today; of none, those of models."""
        for one in await self.budgets(payer, now, names):
            for name in one.reached(names or ASKED):
                whose, zone = "this room" if one.scope.is_room else "you", self._zone.key
                raise LimitReached(_REACHED.format(whose=whose, used=one.said(name), zone=zone))
            for name in one.reached(names or ASKED, NEAR):
                told = (one.scope, name, now.astimezone(self._zone).date())
                if self.on_near is not None and told not in self._near:
                    self._near.add(told)
                    await self.on_near(one, name)


def _usage(row: Row) -> Usage:
    return Usage(**{name: row[column] for name, column in _TOKENS.items()})


def log_call(connection: Connection, call: ModelCall) -> None:
    """Stores a call, with why its prefix was not in the cache; one of no known scope is left out."""
    scope, session_id = _payer(connection, call.payer)
    if scope is None:
        return
    is_chat = call.kind == "chat" and session_id is not None
    miss, missed = _miss(connection, call, {"session": session_id}) if is_chat else (None, 0)
    values = {**rows.values_of(call), **{column: getattr(call.usage, name) for name, column in _TOKENS.items()}}
    payer = {"scope_id": rows.ensure_scope(connection, scope), "session_id": session_id}
    account = scope.speaker(call.payer.user_id)
    values["account"] = account.key if account.user_id else None
    connection.execute(_INSERT, {**values, **payer, "miss": miss, "missed_tokens": missed})
    if is_chat:
        connection.execute("DELETE FROM disturbances WHERE session_id = :session", {"session": session_id})


def _payer(connection: Connection, payer: Payer) -> tuple[Scope | None, int | None]:
    """Whose a call is, and in which session; what is incognito is not named."""
    found = "SELECT key FROM sessions JOIN scopes ON scopes.id = sessions.scope_id WHERE sessions.id = :id"
    row = connection.execute(found, {"id": payer.session_id}).fetchone()
    return (payer.scope, None) if row is None else (Scope(key=row["key"]), payer.session_id)


def _miss(connection: Connection, call: ModelCall, values: dict[str, int | None]) -> tuple[MissCause | None, int]:
    """Why not all of the session's previous request was read from the cache, and how many tokens were not."""
    used, last = call.usage, connection.execute(_LAST_CALL, values).fetchone()
    if last is None and not used.cache_write:
        return None, 0
    if last is None:
        origin = connection.execute(_ORIGIN, values).fetchone()
        is_known = origin is not None and origin["reason"] in get_args(MissCause)
        return origin["reason"] if is_known else "first", used.sent - used.cache_read
    missed = last["cache_read_tokens"] + last["cache_write_tokens"] - used.cache_read
    if used.cache_read >= WHOLE * (missed + used.cache_read):
        return None, 0
    if last["cause"] is not None:
        return last["cause"], missed
    if last["model"] != call.model:
        return "model", missed
    is_idle = call.cached_from is not None and rows.moment(last["at"]) < call.cached_from
    return "idle" if is_idle else "evicted", missed


def disturb(connection: Connection, session_id: int, cause: MissCause) -> None:
    """Notes why the next request of a session will not extend its last one; only the first cause since a request
    counts."""
    noted = "INSERT INTO disturbances (session_id, cause) VALUES (:session, :cause) ON CONFLICT (session_id) DO NOTHING"
    connection.execute(noted, {"session": session_id, "cause": cause})
