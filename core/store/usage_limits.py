"""Log model calls with their tokens and cache misses, and check daily limits.

Each call is one row. Prices come from settings, and the cost of a model without a price is unknown.
`UsageLog.check_limits` checks the budget of a person or group. Code that changes the beginning of a
session's next request must call `record_prefix_break` in the same transaction.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, timedelta
from typing import Literal, TypeVar, get_args
from zoneinfo import ZoneInfo

from config.model_options import Price, UsageOptions
from config.settings import DayLimits, LimitedResource, LimitOptions
from core.errors import LimitReached
from core.store import rows
from core.store.engine import Connection, Database, Row, in_list
from core.store.ownership.people import SELECT_LINKED_ACCOUNTS, TERMINAL, is_owner_account
from core.store.visibility import encode_list, scope_parameter, visible
from core.types import LOCAL_SCOPE, BillingScope, CallKind, Scope, Usage

MissCause = Literal[
    # The conversation is new, or the previous session ended for this reason.
    "first",
    "compression",
    "rights",
    "resumed",
    "idle",  # also: the provider dropped the prefix after a pause
    "daily",
    "branch",
    "tools",
    # The beginning of the request changed.
    "forget",
    "edit",
    "undo",
    "model",
    "system",
    # The provider dropped the prefix early.
    "evicted",
    # Only in older rows.
    "length",
    "messages",
]
"""The reason for a cache miss, when the provider didn't read a request's prefix from its cache."""

GroupKey = TypeVar("GroupKey")
MAX_MONTHS = 12
HIT_SHARE = 0.99
"""If at least this share of a prefix was read from the cache, the call counts as a cache hit,
because providers round token counts."""
_DATE_SUFFIX = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)\Z")
"""The end of a model name that names a version, such as ``-20250929`` or ``-2026-08-01``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A model call to log, with its tokens and the scope that pays for it."""

    kind: CallKind
    model: str
    usage: Usage
    at: datetime
    billing: BillingScope
    # The provider's cache no longer contains requests from before this time.
    cached_from: datetime | None = None
    # 1 for the first call of a turn, 0 for the others.
    turns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSum:
    """The total usage of calls with the same kind, model and cause of a cache miss."""

    kind: CallKind
    model: str
    calls: int
    usage: Usage
    # None if the cache was hit.
    miss: MissCause | None = None
    # The number of tokens that a hit would have read from the cache.
    missed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Total usage, with its cost at current prices."""

    sums: Sequence[UsageSum]
    prices: UsageOptions

    @property
    def calls(self) -> int:
        return sum(usage_sum.calls for usage_sum in self.sums)

    @property
    def usage(self) -> Usage:
        return sum((usage_sum.usage for usage_sum in self.sums), Usage())

    @property
    def missed_tokens(self) -> int:
        """The tokens that were sent again because the cache missed."""
        return sum(usage_sum.missed for usage_sum in self.sums)

    @property
    def cached_share(self) -> float:
        """The share of the input that was read from the cache, from 0 to 1."""
        usage = self.usage
        return usage.cache_read / usage.total_input if usage.total_input else 0.0

    @property
    def cost(self) -> float | None:
        """The cost of all models that have a price, or None if no model has one."""
        return self._compute_cost((usage_sum.model, usage_sum.usage) for usage_sum in self.sums)

    @property
    def uncached_cost(self) -> float | None:
        """The cost of the same calls without a cache hit, or None if no model has a price."""
        return self._compute_cost(
            (each.model, Usage(input=each.usage.total_input, output=each.usage.output))
            for each in self.sums
        )

    def format_amount(self, cost: float) -> str:
        """Format a cost as ``$12.34``, ``$0.042`` or ``under $0.0001``.

        Small amounts get more digits.
        """
        if 0 < cost < 0.0001:
            return f"under {self.prices.currency}0.0001"
        if cost == 0 or cost >= 1:
            digits = 2
        elif cost >= 0.01:
            digits = 3
        else:
            digits = 4
        return f"{self.prices.currency}{cost:,.{digits}f}"

    @property
    def by_model(self) -> list[tuple[str, Spending]]:
        """The spending per model, starting with the most input tokens."""
        return self._group(lambda usage_sum: usage_sum.model, lambda part: part.usage.total_input)

    @property
    def price_dates(self) -> list[str]:
        """The months in which the models' prices were looked up, earliest first."""
        dates = {price.date for model, _ in self.by_model if (price := self._find_price(model))}
        return sorted(date for date in dates if date)

    def _find_price(self, model: str) -> Price | None:
        """Return the price of a model. The name may end with a date, as in ``model-20250929``."""
        prices = self.prices.prices
        return prices.get(model) or prices.get(_DATE_SUFFIX.sub("", model))

    @property
    def unpriced_models(self) -> list[str]:
        """The models without a price, each once."""
        models: list[str] = []
        for (_, model), spending in self.by_kind_and_model:
            if spending.cost is None and model not in models:
                models.append(model)
        return models

    @property
    def unpriced_tokens(self) -> int:
        """The number of input and output tokens of the models without a price."""
        models = self.unpriced_models
        return sum(
            usage_sum.usage.total_input + usage_sum.usage.output
            for usage_sum in self.sums
            if usage_sum.model in models
        )

    @property
    def by_kind(self) -> list[tuple[CallKind, Spending]]:
        """The spending per kind of call, starting with the most frequent kind."""
        return self._group(lambda usage_sum: usage_sum.kind, lambda part: part.calls)

    @property
    def by_kind_and_model(self) -> list[tuple[tuple[CallKind, str], Spending]]:
        """The spending per kind and model, starting with the most input tokens."""
        return self._group(
            lambda usage_sum: (usage_sum.kind, usage_sum.model),
            lambda part: part.usage.total_input,
        )

    @property
    def by_miss_cause(self) -> list[tuple[MissCause, Spending]]:
        """The spending per cause of cache misses, starting with the most missed tokens."""
        parts = self._group(lambda usage_sum: usage_sum.miss, lambda part: part.missed_tokens)
        return [(cause, part) for cause, part in parts if cause is not None]

    def _group(
        self, key: Callable[[UsageSum], GroupKey], size: Callable[[Spending], int]
    ) -> list[tuple[GroupKey, Spending]]:
        """Group the sums by `key`, and return the groups, starting with the largest `size`."""
        groups: dict[GroupKey, list[UsageSum]] = {}
        for usage_sum in self.sums:
            groups.setdefault(key(usage_sum), []).append(usage_sum)
        parts = [(name, replace(self, sums=sums)) for name, sums in groups.items()]
        return sorted(parts, key=lambda part: size(part[1]), reverse=True)

    def _compute_cost(self, usage_by_model: Iterable[tuple[str, Usage]]) -> float | None:
        """Add up the cost of all models with a price. Returns None if no model has one."""
        total: float | None = None
        for model, usage in usage_by_model:
            price = self._find_price(model)
            if price is None:
                continue
            hour_price = price.cache_write_hour
            if hour_price is None:
                hour_price = price.cache_write
            price_of_millions = (
                usage.input * price.input
                + usage.cache_read * price.cache_read
                + (usage.cache_write - usage.cache_write_hour) * price.cache_write
                + usage.cache_write_hour * hour_price
                + usage.output * price.output
                + 1_000 * usage.web_searches * price.web_search
            )
            total = (total or 0.0) + price_of_millions / 1_000_000
        return total


_USAGE_COLUMNS = {field.name: f"{field.name}_tokens" for field in fields(Usage)}
_USAGE_COLUMNS["web_searches"] = "web_searches"
"""The columns of a call, by the fields of `Usage`."""
_SUM_USAGE = ", ".join(f"SUM({name}) AS {name}" for name in _USAGE_COLUMNS.values())
# The index on scope and time finds the rows, so both bounds are always given.
_FROM_VISIBLE_CALLS = f"""
FROM model_calls
WHERE {visible("model_calls.scope_id")} AND model_calls.at >= :since AND model_calls.at < :until
"""
_SELECT_SUMS = f"""
SELECT kind, model, miss, COUNT(*) AS calls, SUM(missed_tokens) AS missed, {_SUM_USAGE}
{_FROM_VISIBLE_CALLS} AND (:session IS NULL OR model_calls.session_id = :session)
GROUP BY kind, model, miss ORDER BY kind, model, miss NULLS FIRST
"""
_SELECT_ACCOUNT_SUMS = f"""
SELECT COALESCE(account, '') AS account, kind, model, miss, COUNT(*) AS calls,
    SUM(missed_tokens) AS missed, {_SUM_USAGE}
{_FROM_VISIBLE_CALLS} GROUP BY 1, kind, model, miss
"""
_SELECT_LATEST_CALL_TIME = f"SELECT MAX(model_calls.at) AS at {_FROM_VISIBLE_CALLS}"
_INSERT_CALL = rows.insert_statement(
    *("model_calls", "scope_id", "session_id", "account", "kind", "model", "at", "turns"),
    *(*_USAGE_COLUMNS.values(), "miss", "missed_tokens"),
)
_SELECT_LAST_CALL = """
SELECT model_calls.*, prefix_breaks.cause
FROM model_calls LEFT JOIN prefix_breaks ON prefix_breaks.session_id = model_calls.session_id
WHERE model_calls.session_id = :session AND kind = 'chat' ORDER BY id DESC LIMIT 1
"""
_SELECT_PREVIOUS_END = """
SELECT earlier.end_reason AS reason FROM sessions JOIN sessions AS earlier
    ON earlier.address_id = sessions.address_id AND earlier.scope_id = sessions.scope_id
    AND earlier.id < sessions.id
WHERE sessions.id = :session AND earlier.ended_at IS NOT NULL AND NOT earlier.is_delegated
ORDER BY earlier.id DESC LIMIT 1
"""
"""Selects the reason why the previous session at the same address ended."""
_INSERT_PREFIX_BREAK = """
INSERT INTO prefix_breaks (session_id, cause) VALUES (:session, :cause)
ON CONFLICT (session_id) DO NOTHING
"""
_DELETE_PREFIX_BREAK = "DELETE FROM prefix_breaks WHERE session_id = :session"

MODEL_LIMITS = ("answers", "input_tokens", "output_tokens", "money", "tokens")
"""The limits that stop calls to the model."""
NEAR_SHARE = 0.8
"""A limit is reported as nearly reached once at least this share of it is used."""
RAISE_OWNER_LINE = "/usage more"
"""The command that raises the owner's daily budget, in its stored form."""
OWNER_CHECK_INTERVAL = timedelta(minutes=1)
"""The owner's usage is added up again after this time, unless the budget is almost used up."""
_IS_OF_PERSON = in_list("account", "accounts")
_IS_OF_OWNER = f"""
(account = '{TERMINAL.key}' OR account IN (
    SELECT platform || ':' || user_id
    FROM accounts JOIN people ON people.id = accounts.person_id WHERE is_owner
))
"""
# The condition for rows of a group. The owner's rows count only if :owner_counts is set.
_IS_OF_GROUP = """
scope_id = (SELECT id FROM scopes WHERE key = :group) AND (:owner_counts OR account NOT IN (
    SELECT platform || ':' || user_id
    FROM accounts JOIN people ON people.id = accounts.person_id WHERE is_owner
))
"""
_SUM_CALLS_SINCE = f"""
SELECT model, SUM(turns) AS turns, {_SUM_USAGE} FROM model_calls WHERE at >= :since
"""
_COUNT_JOBS_SINCE = """
SELECT COUNT(*) FILTER (WHERE is_prompt) AS scheduled_questions,
    COUNT(*) FILTER (WHERE NOT is_prompt) AS reminders
FROM jobs WHERE created_at >= :since
"""
# The accounts are compared with scope keys without the 8 characters of "account:".
_COUNT_FILES_SINCE = f"""
SELECT COUNT(*) AS files FROM scopes CROSS JOIN sessions ON sessions.scope_id = scopes.id
CROSS JOIN messages ON messages.session_id = sessions.id
WHERE {in_list("substr(scopes.key, 9)", "accounts")} AND sessions.last_at >= :since
    AND messages.kind = 'command' AND messages.text = '/export' AND messages.created_at >= :since
"""
"""Counts exports, which are the only files that people can ask for."""
_COUNT_RAISES_SINCE = f"""
SELECT COUNT(*) AS raises FROM (
    SELECT substr(scopes.key, 9) AS account
    FROM scopes CROSS JOIN sessions ON sessions.scope_id = scopes.id
    CROSS JOIN messages ON messages.session_id = sessions.id
    WHERE sessions.last_at >= :since AND messages.created_at >= :since
        AND messages.kind = 'command' AND messages.text = '{RAISE_OWNER_LINE}'
) AS raises WHERE {_IS_OF_OWNER}
"""
"""Counts how often the owner has raised the daily budget, in direct chats."""


@dataclass(frozen=True, slots=True)
class UsedLimit:
    """The used part of a daily limit. ``str()`` returns English: ``299 of 300 answers``."""

    name: LimitedResource
    used: float
    limit: float
    prices: UsageOptions

    def __str__(self) -> str:
        if self.name == "money":
            spending = Spending(sums=(), prices=self.prices)
            return f"{spending.format_amount(self.used)} of {spending.format_amount(self.limit)}"
        return f"{self.used:,.0f} of {self.limit:,.0f} {self.name.replace('_', ' ')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The daily limits of a person or a group, and their usage today."""

    # The scope of the group, or of one of the person's accounts.
    scope: Scope
    limits: DayLimits
    # The usage today by the name of the limit, e.g. "answers".
    used: Mapping[str, float]
    prices: UsageOptions
    # How far the owner can raise each limit. Set only in the owner's budget, at which Mneme asks.
    step: DayLimits = field(default_factory=dict)

    @property
    def is_owner_line(self) -> bool:
        return bool(self.step)

    @property
    def limited_names(self) -> list[LimitedResource]:
        """The names of the limits that are set."""
        return [name for name, limit in self.limits.items() if limit]

    def list_reached(self, names: Sequence[str], share: float = 1.0) -> list[LimitedResource]:
        """Return the limits among `names` that are used up to at least `share`."""
        return [
            name
            for name in self.limited_names
            if name in names and self.used[name] >= share * self.limits[name]
        ]

    def usage_of(self, name: LimitedResource) -> UsedLimit:
        """Return how much of a limit is used."""
        return UsedLimit(name, self.used[name], self.limits[name], self.prices)


class UsageLog:
    """Logs model calls, and checks the budgets of people and groups.

    Costs are calculated with current prices. Months and days begin at midnight in `zone`, an IANA
    name.
    """

    def __init__(
        self,
        database: Database,
        prices: UsageOptions | None = None,
        zone: str = "UTC",
        limits: LimitOptions | None = None,
        on_near: Callable[[Budget, LimitedResource], Awaitable[None]] | None = None,
    ) -> None:
        # Called once a day for each limit whose usage reaches `NEAR_SHARE`.
        self.on_near = on_near
        self.limits = limits
        self._reported: set[tuple[Scope, LimitedResource, float, date]] = set()
        # When the owner's budget was last far from used up, by the scope and account that pays.
        self._owner_checked_at: dict[BillingScope, datetime] = {}
        self._database = database
        self.prices = prices or UsageOptions(prices={}, currency="$")
        self._zone = ZoneInfo(zone)

    def set_options(self, prices: UsageOptions, limits: LimitOptions) -> None:
        """Replace the prices and the daily limits from now on."""
        self.prices, self.limits = prices, limits
        self._owner_checked_at = {}

    async def log(self, call: ModelCall) -> None:
        """Store a call. See `log_call`."""
        await self._database.write(lambda connection: log_call(connection, call))

    async def load_spending(
        self,
        scopes: frozenset[Scope],
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        session_id: int | None = None,
    ) -> Spending:
        """Sum up the calls charged to these scopes, from `since` until just before `until`."""
        values = _bind_span(scopes, since, until)
        values["session"] = None if session_id is None else rows.int64_or_zero(session_id)
        sums = [
            UsageSum(**rows.read_fields(row, UsageSum), usage=_read_usage(row))
            for row in await self._database.fetch_all(_SELECT_SUMS, values)
        ]
        return Spending(sums=sums, prices=self.prices)

    async def load_month(self, scopes: frozenset[Scope], now: datetime) -> tuple[Spending, float]:
        """Return the spending of this month, and the share of the month that has passed."""
        start = self._start_of_day(now).replace(day=1)
        end = self._start_of_day(start + timedelta(days=32)).replace(day=1)
        return await self.load_spending(scopes, since=start), (now - start) / (end - start)

    async def list_months(self, scopes: frozenset[Scope]) -> list[tuple[date, Spending]]:
        """List the spending of the last `MAX_MONTHS` months with model calls, latest first.

        Each item is the first day of a month and the spending in that month.
        """
        until: datetime | None = None
        months: list[tuple[date, Spending]] = []
        while len(months) < MAX_MONTHS:
            values = _bind_span(scopes, until=until)
            row = await self._database.fetch_one(_SELECT_LATEST_CALL_TIME, values)
            latest = None if row is None else rows.to_optional_datetime(row["at"])
            if latest is None:
                break
            start = self._start_of_day(latest).replace(day=1)
            spending = await self.load_spending(scopes, since=start, until=until)
            months.append((start.date(), spending))
            until = start
        return months

    async def list_accounts(
        self, scopes: frozenset[Scope], since: datetime, until: datetime | None = None
    ) -> dict[str, Spending]:
        """Return the spending per account key in a time span. Unknown accounts have the key ""."""
        values = _bind_span(scopes, since, until)
        sums: dict[str, list[UsageSum]] = {}
        for row in await self._database.fetch_all(_SELECT_ACCOUNT_SUMS, values):
            usage_sum = UsageSum(**rows.read_fields(row, UsageSum), usage=_read_usage(row))
            sums.setdefault(row["account"], []).append(usage_sum)
        return {key: Spending(sums=each, prices=self.prices) for key, each in sums.items()}

    async def load_budgets(
        self,
        billing: BillingScope,
        now: datetime,
        names: Sequence[str] = get_args(LimitedResource),
    ) -> list[Budget]:
        """Load today's budgets of a person with all linked accounts and, in a group, of the group.

        Files are counted only if "files" is one of `names`. The owner has one budget (`owner_day`).
        Mneme asks when it is reached, unless settings limit the owner like everyone else.
        """
        limits = self.limits
        if limits is None:
            return []
        midnight = self._start_of_day(now)

        def load(connection: Connection) -> list[Budget]:
            return self._load_budgets(connection, billing, limits, midnight, names)

        return await self._database.read_inline(load)

    def _load_budgets(
        self,
        connection: Connection,
        billing: BillingScope,
        limits: LimitOptions,
        midnight: datetime,
        names: Sequence[str],
    ) -> list[Budget]:
        """Load the budgets that `load_budgets` returns. `midnight` is the beginning of the day."""
        scope, _ = _resolve_billing(connection, billing)
        if scope is None:
            return []
        account = scope.speaker(billing.user_id)
        if is_owner_account(connection, account) and not limits.day_for_owner:
            return self._load_owner_line(connection, limits, midnight)
        linked_rows = connection.execute(SELECT_LINKED_ACCOUNTS, rows.field_values(account))
        keys = sorted({account.key, *(rows.read_account(row).key for row in linked_rows)})
        values = {
            "since": midnight,
            "accounts": encode_list(keys),
            "group": scope,
            "owner_counts": limits.day_for_owner,
        }
        person = Scope(key=f"account:{keys[0]}")
        budgets = [
            Budget(
                scope=person,
                limits=limits.day,
                used=self._load_used(connection, _IS_OF_PERSON, values, has_files="files" in names),
                prices=self.prices,
            )
        ]
        if scope.is_group:
            group_budget = Budget(
                scope=scope,
                limits=limits.room_day,
                used=self._load_used(connection, _IS_OF_GROUP, values, has_files=False),
                prices=self.prices,
            )
            budgets.append(group_budget)
        return budgets

    def _load_owner_line(
        self, connection: Connection, limits: LimitOptions, midnight: datetime
    ) -> list[Budget]:
        """Load the owner's budget for the day, with the raises that the owner asked for."""
        if not any(limits.owner_day.values()):
            return []
        values = {"since": midnight, "owner_counts": True}
        raises = connection.execute(_COUNT_RAISES_SINCE, values).fetchone()["raises"]
        budget = Budget(
            scope=LOCAL_SCOPE,
            limits={name: limit * (1 + raises) for name, limit in limits.owner_day.items()},
            used=self._load_used(connection, _IS_OF_OWNER, values, has_files=False),
            prices=self.prices,
            step=dict(limits.owner_day.items()),
        )
        return [budget]

    def _load_used(
        self,
        connection: Connection,
        condition: str,
        values: Mapping[str, object],
        *,
        has_files: bool,
    ) -> dict[str, float]:
        """Return the usage of each limit, from the rows that meet an SQL condition."""
        calls = connection.execute(
            f"{_SUM_CALLS_SINCE} AND {condition} GROUP BY model", values
        ).fetchall()
        sums = [
            UsageSum(kind="chat", model=row["model"], calls=row["turns"], usage=_read_usage(row))
            for row in calls
        ]
        spending = Spending(sums=sums, prices=self.prices)
        jobs = connection.execute(f"{_COUNT_JOBS_SINCE} AND {condition}", values).fetchone()
        files = 0
        if has_files:
            files = connection.execute(_COUNT_FILES_SINCE, values).fetchone()["files"]
        return {
            "answers": spending.calls,
            "money": spending.cost or 0.0,
            "tokens": spending.unpriced_tokens,
            "input_tokens": spending.usage.total_input,
            "output_tokens": spending.usage.output,
            "scheduled_questions": jobs["scheduled_questions"],
            "reminders": jobs["reminders"],
            "files": files,
        }

    async def check_limits(
        self, billing: BillingScope, now: datetime, *names: LimitedResource
    ) -> None:
        """Raise LimitReached if one of the limits `names` is reached today.

        Without `names`, check `MODEL_LIMITS`. Nearly reached limits are reported to `on_near`.
        """
        checked_names = names or MODEL_LIMITS
        payer = replace(billing, session_id=None)
        checked_at = self._owner_checked_at.get(payer)
        if checked_at is not None and now - checked_at < OWNER_CHECK_INTERVAL:
            return
        for budget in await self.load_budgets(billing, now, names):
            for name in budget.list_reached(checked_names):
                raise self._explain_reached(budget, name)
            near_names = budget.list_reached(checked_names, NEAR_SHARE)
            if budget.is_owner_line and not names and not near_names:
                self._owner_checked_at = {payer: now}
            for name in near_names:
                day = now.astimezone(self._zone).date()
                report = (budget.scope, name, budget.limits[name], day)
                if self.on_near is not None and report not in self._reported:
                    self._reported.add(report)
                    await self.on_near(budget, name)

    def _explain_reached(self, budget: Budget, name: LimitedResource) -> LimitReached:
        """Return the error that describes a reached limit."""
        used = budget.usage_of(name)
        if budget.is_owner_line:
            return LimitReached("owner_line", can_be_raised=True, used=used, zone=self._zone.key)
        key = "group_limit" if budget.scope.is_group else "person_limit"
        return LimitReached(key, used=used, zone=self._zone.key)

    def _start_of_day(self, at: datetime) -> datetime:
        """Return the beginning of the day, in the zone of the log."""
        return at.astimezone(self._zone).replace(hour=0, minute=0, second=0, microsecond=0)


def log_call(connection: Connection, call: ModelCall) -> None:
    """Store a call and, if its prefix wasn't read from the cache, the cause.

    A call without a known scope isn't stored.
    """
    scope, session_id = _resolve_billing(connection, call.billing)
    if scope is None:
        return
    miss: MissCause | None = None
    missed_tokens = 0
    if call.kind == "chat" and session_id is not None:
        miss, missed_tokens = _explain_miss(connection, call, session_id)
        connection.execute(_DELETE_PREFIX_BREAK, {"session": session_id})
    account = scope.speaker(call.billing.user_id)
    values = {
        **rows.field_values(call),
        **{column: getattr(call.usage, name) for name, column in _USAGE_COLUMNS.items()},
        "scope_id": rows.ensure_scope(connection, scope),
        "session_id": session_id,
        "account": account.key if account.user_id else None,
        "miss": miss,
        "missed_tokens": missed_tokens,
    }
    connection.execute(_INSERT_CALL, values)


def record_prefix_break(connection: Connection, session_id: int, cause: MissCause) -> None:
    """Record why a session's next request won't begin with its last one.

    Only the first cause since the last request is stored.
    """
    connection.execute(_INSERT_PREFIX_BREAK, {"session": session_id, "cause": cause})


def _resolve_billing(
    connection: Connection, billing: BillingScope
) -> tuple[Scope | None, int | None]:
    """Return the scope that pays for a call, and the id of its session.

    The id is None for an incognito session, which isn't in state.db.
    """
    statement = """
    SELECT key FROM sessions JOIN scopes ON scopes.id = sessions.scope_id WHERE sessions.id = :id
    """
    row = connection.execute(statement, {"id": billing.session_id}).fetchone()
    if row is None:
        return billing.scope, None
    return Scope(key=row["key"]), billing.session_id


def _explain_miss(
    connection: Connection, call: ModelCall, session_id: int
) -> tuple[MissCause | None, int]:
    """Return why a call's prefix wasn't read from the cache, and how many tokens were missed.

    The cause is None if the cache was hit, or if the provider has no cache.
    """
    values = {"session": session_id}
    usage = call.usage
    last_call = connection.execute(_SELECT_LAST_CALL, values).fetchone()
    if last_call is None:
        if not usage.cache_write:
            return None, 0
        previous = connection.execute(_SELECT_PREVIOUS_END, values).fetchone()
        is_known = previous is not None and previous["reason"] in get_args(MissCause)
        cause: MissCause = previous["reason"] if is_known else "first"
        return cause, usage.total_input - usage.cache_read

    previous_tokens = last_call["cache_read_tokens"] + last_call["cache_write_tokens"]
    if usage.cache_read >= HIT_SHARE * previous_tokens:
        return None, 0
    missed_tokens = previous_tokens - usage.cache_read
    if last_call["cause"] is not None:
        return last_call["cause"], missed_tokens
    if last_call["model"] != call.model:
        return "model", missed_tokens
    last_at = rows.to_datetime(last_call["at"])
    if call.cached_from is not None and last_at < call.cached_from:
        return "idle", missed_tokens
    return "evicted", missed_tokens


def _bind_span(
    scopes: frozenset[Scope], since: datetime | None = None, until: datetime | None = None
) -> dict[str, object]:
    """Return the parameters of `_FROM_VISIBLE_CALLS`. An end that is None has no limit."""
    return {"scopes": scope_parameter(scopes), "since": since or 0.0, "until": until or 1e12}


def _read_usage(row: Row) -> Usage:
    return Usage(**{name: row[column] for name, column in _USAGE_COLUMNS.items()})
