"""Every model call that was paid for, one row a call, why its prefix was not in the cache, and what it all came to.

`disturb` is for whoever changes what a session's next request begins with, inside the same transaction. What tokens
cost is what the settings say; a model without a price there has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from typing import Literal, TypeVar, get_args
from zoneinfo import ZoneInfo

from config.settings import UsageOptions
from core.store import rows
from core.store.rows import Connection
from core.store.sqlite.database import Database
from core.types import CallKind, Payer, Scope, Usage

MissCause = Literal[
    "first", "length", "rights", "resumed", "forget", "edit", "model", "system", "tools", "messages", "idle", "evicted"
]  # fmt: skip
"""Why a request was not read from the cache as far as it might have been; `system`, `tools` and `messages` stand in
older rows only."""

Key = TypeVar("Key")
MILLION = 1_000_000
MONTHS = 12
_DATE = re.compile(r"-(?:\d{8}|latest)\Z")
WHOLE = 0.99  # a prefix of which this part was read counts as read: servers round


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """`cached_from`: what the server was sent before then it does not keep any more."""

    kind: CallKind
    model: str
    usage: Usage
    at: datetime
    payer: Payer
    cached_from: datetime | None = None


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
    "calls", "scope_id", "session_id", "kind", "model", "at", *_TOKENS.values(), "miss", "missed_tokens"
)
_LAST_CALL = """
SELECT calls.*, disturbances.cause FROM calls LEFT JOIN disturbances ON disturbances.session_id = calls.session_id
WHERE calls.session_id = :session AND calls.kind = 'chat' ORDER BY calls.id DESC LIMIT 1
"""
_ORIGIN = """
SELECT earlier.end_reason AS reason FROM sessions JOIN sessions AS earlier
ON earlier.address_id = sessions.address_id AND earlier.scope_id = sessions.scope_id AND earlier.id < sessions.id
WHERE sessions.id = :session AND earlier.ended_at IS NOT NULL ORDER BY earlier.id DESC LIMIT 1
"""


class UsageLog:
    """`prices` are those of today; months are those of `zone` (an IANA name)."""

    def __init__(self, database: Database, prices: UsageOptions | None = None, zone: str = "UTC") -> None:
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
        sums = [
            UsageSum(**rows.fields_in(row, UsageSum), usage=Usage(**{name: row[one] for name, one in _TOKENS.items()}))
            for row in await self._database.fetch_all(_SUMS, values)
        ]
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


def log_call(connection: Connection, call: ModelCall) -> None:
    """Stores a call, with why its prefix was not in the cache; one of no known scope is left out."""
    scope, session_id = call.payer.scope, call.payer.session_id
    row = connection.execute("SELECT scope_id FROM sessions WHERE id = :id", {"id": session_id}).fetchone()
    if row is not None:
        scope_id = row["scope_id"]
    elif scope is not None:
        # What is incognito is not named.
        scope_id, session_id = rows.ensure_scope(connection, scope), None
    else:
        return
    is_chat = call.kind == "chat" and session_id is not None
    miss, missed = _miss(connection, call, {"session": session_id}) if is_chat else (None, 0)
    values = {**rows.values_of(call), **{column: getattr(call.usage, name) for name, column in _TOKENS.items()}}
    payer = {"scope_id": scope_id, "session_id": session_id}
    connection.execute(_INSERT, {**values, **payer, "miss": miss, "missed_tokens": missed})
    if is_chat:
        connection.execute("DELETE FROM disturbances WHERE session_id = :session", {"session": session_id})


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
    connection.execute(
        "INSERT INTO disturbances (session_id, cause) VALUES (:session, :cause) ON CONFLICT (session_id) DO NOTHING",
        {"session": session_id, "cause": cause},
    )
