"""Decides who gets answers, and how often.

Mneme serves the owner, the people and groups listed in the settings, and everyone the owner has
approved. Everyone else is a stranger, who can only request approval or link an account. Access
depends on numeric ids, never on names. For each stranger, Mneme stores the account, the name and
the pairing code. While the code is valid, Mneme also stores the text of one message, so that it can
answer that message after approval.

Rate limits don't apply to the owner. Their counters are kept in memory, so a restart resets them.
`core/store/usage_limits.py` checks the daily limits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from time import monotonic

from config.settings import LimitOptions
from core.errors import LimitReached, Refused
from core.ports import Clock
from core.store.jobs import Job
from core.store.ownership.pairing import Pairing
from core.store.ownership.people import AccountAccess, EpochGuard, View
from core.store.ownership.removal import REMOVED_KEY
from core.store.preferences import ChatSettings, introduction_key, server_key
from core.store.usage_limits import UsageLog
from core.types import Account, Address, BillingScope, Command, Inbound, Scope
from gateway.chats.admins import ChatAdmins
from gateway.services import Services
from gateway.texts.catalog import load_texts

# The platform name of scheduled questions.
CRON = "cron"
MINUTE_S = 60.0
# After this many turns in a row with one account of a group, Mneme stops answering. This ends an
# endless conversation with another assistant that uses a person's account and so isn't marked as a
# bot. A person who is alone with Mneme in a group can send a command to continue.
MAX_TURNS_IN_A_ROW = 6
# If a group had no message for this long, its consecutive turns are counted from 0 again.
TURNS_RESET_S = 120.0
# In a group, the notice about a reached daily limit is sent again only after this time.
LIMIT_NOTICE_INTERVAL = timedelta(hours=1)
# In a group, at most this many strangers a minute are told that they get no answers.
REFUSALS_PER_MINUTE = 5
# If there are more buckets than this, the full ones are removed.
_MAX_BUCKETS = 1_000


class Verdict(Enum):
    """How Mneme handles an event: it answers, stores, refuses or ignores it."""

    SERVED = "served"
    OVERHEARD = "overheard"  # group talk that isn't meant for Mneme: stored, not answered
    STRANGER = "stranger"  # in a direct chat: may ask to be approved
    OUTSIDER = "outsider"  # in a group that isn't listed: told once that it isn't answered
    ROLELESS = "roleless"  # without a role that the group's admins require
    ANONYMOUS = "anonymous"  # an admin who writes in the name of the group
    IGNORED = "ignored"

    @property
    def is_accepted(self) -> bool:
        """Return whether an event with this verdict is stored."""
        return self in (Verdict.SERVED, Verdict.OVERHEARD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on an event, with the scope of its chat and whether the sender is the owner."""

    verdict: Verdict
    # The scope of the chat. A group keeps its scope when its chat id changes.
    scope: Scope
    is_owner: bool = False
    # Only the owner is answered in the group.
    is_owners_group: bool = False
    # The sender isn't answered, but may run /setup as someone who manages the group.
    may_set_up: bool = False

    @property
    def may_cancel(self) -> bool:
        """Return whether the sender may cancel a question that waits for them."""
        return self.may_set_up or self.verdict is Verdict.SERVED


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """The text that tells a group or server which messages are stored and who can read them."""

    # The key of the group or server.
    place: str
    # Identifies the text in the outbox.
    outbox_key: str
    text: str
    # Whether the text says that all messages are stored.
    stores_all: bool


class Access:
    """Decides who is served, based on the settings and the owner's approvals."""

    def __init__(self, services: Services, epoch_guard: EpochGuard, admins: ChatAdmins) -> None:
        settings = services.settings
        self.people = services.people
        # Asks the platforms who manages a group.
        self.admins = admins
        self._languages = services.languages
        self.chat_rules = services.chat_rules
        self._clock = services.clock
        self._owner_notices = services.owner_notices
        self._epoch_guard = epoch_guard
        self._listed_people = frozenset(settings.access.people)
        self._listed_groups = frozenset(settings.access.rooms)
        self._listed_roles = frozenset(settings.access.roles)
        # The roles in each account's last event of a group since the start, by the group's key.
        self._last_roles: dict[tuple[str, Account], tuple[str, ...]] = {}
        self._named_accounts = self._listed_people.union(settings.owner.accounts)
        self._stores_unaddressed = settings.room.listen
        # The name that is stored for each account.
        self._recorded_names: dict[Account, str] = {}
        # Accounts that were served since the start, each with the key of the address.
        self._served: set[tuple[str, Account]] = set()

    async def set_language(self, inbound: Inbound, judgement: Judgement) -> Inbound:
        """Return a copy of the event with `language` set to the language of its answer."""
        if not self._languages.is_loaded:
            await self._languages.load()
        codes = self._languages.codes
        language = self._find_group_language(inbound, judgement)
        own_language = codes.get(inbound.account.key, "en")
        if inbound.language and inbound.account.key not in codes:
            own_language = await self._languages.choose(inbound, judgement.scope)
        language = language or own_language
        return inbound if language == inbound.language else replace(inbound, language=language)

    async def set_group_language(self, inbound: Inbound, judgement: Judgement) -> Inbound:
        """Return a copy of the event with the language of its group or server, if that has one.

        Unlike `set_language`, this stores nothing about the sender.
        """
        if not self._languages.is_loaded:
            await self._languages.load()
        language = self._find_group_language(inbound, judgement)
        return replace(inbound, language=language) if language else inbound

    def set_known_language(self, inbound: Inbound) -> Inbound:
        """Return the event with the language of a notice, without reading or writing the store.

        If no language is known, the event keeps the language that its platform reports.
        """
        codes = self._languages.codes
        for key in (inbound.scope.key, server_key(inbound), inbound.account.key):
            if key in codes:
                return replace(inbound, language=codes[key])
        return inbound

    def _find_group_language(self, inbound: Inbound, judgement: Judgement) -> str:
        """Return the language that was set for a chat or its server, or ""."""
        codes = self._languages.codes
        server_language = codes.get(server_key(inbound), "") if inbound.server_id else ""
        return codes.get(judgement.scope.key, "") or server_language

    async def apply_chat_rules(self, inbound: Inbound) -> Inbound:
        """Return the event with `is_addressed` set according to the settings of its group.

        If the text begins with the group's prefix, the prefix is removed. A question takes the
        files of the message that it replies to. Call this once, before `judge`.
        """
        if inbound.is_direct or inbound.kind not in ("message", "edit"):
            return inbound
        await self.chat_rules.load()
        settings = self.chat_rules.find(inbound)
        if inbound.command is not None:
            return inbound
        if settings != ChatSettings():
            inbound = _apply_listening(inbound, settings)
        files = inbound.replied_files if inbound.is_addressed else ()
        return replace(inbound, attachments=inbound.attachments or files, replied_files=())

    async def judge(self, inbound: Inbound) -> Judgement:
        """Decide whether an event is answered, only stored, ignored, or comes from a stranger."""
        if inbound.kind == "delete":
            # Discord doesn't say who wrote a deleted message, so every deletion is accepted.
            return Judgement(verdict=Verdict.SERVED, scope=inbound.scope)
        is_from_group = _is_from_group(inbound)
        if inbound.sender.is_anonymous and not is_from_group:
            return Judgement(verdict=Verdict.IGNORED, scope=inbound.scope)

        is_scheduled = inbound.address.platform == CRON
        account = inbound.scope.speaker(inbound.sender.id) if is_scheduled else inbound.account
        access = await self.people.load_access(account, inbound.scope)
        if is_from_group:
            return self._judge_group_admin(inbound, access)
        if access.scope.is_group or not inbound.is_direct:
            await self.chat_rules.load()
        verdict = self._find_verdict(inbound, account, access)
        if verdict is Verdict.SERVED:
            self._served.add((inbound.address.key, account))
            if inbound.origin == "via_bot":
                # A message that was sent through a bot is stored, but never answered.
                verdict = Verdict.OVERHEARD
        elif is_scheduled and not verdict.is_accepted:
            verdict = Verdict.IGNORED
        return Judgement(
            verdict=verdict,
            scope=access.scope,
            is_owner=access.is_owner,
            is_owners_group=access.is_owners_group,
            may_set_up=not verdict.is_accepted and _may_set_up(access),
        )

    def _judge_group_admin(self, inbound: Inbound, access: AccountAccess) -> Judgement:
        """Decide on an event of an admin who writes in the name of the group.

        The account of the admin is unknown, so the model doesn't answer. /setup works.
        """
        is_asking = inbound.kind == "message" and (inbound.is_mention or inbound.command)
        verdict = Verdict.ANONYMOUS if is_asking and _may_set_up(access) else Verdict.IGNORED
        return Judgement(verdict=verdict, scope=access.scope, may_set_up=_may_set_up(access))

    async def is_group_served(self, inbound: Inbound, scope: Scope) -> bool:
        """Return whether anyone gets answers in a group.

        This is the case if the settings list the group, or if a person with access has written
        there.
        """
        await self.chat_rules.load()
        place = server_key(inbound) or replace(inbound.address, thread_id=None).key
        is_introduced = self.chat_rules.get(place).introduced_at is not None
        return is_introduced or self.is_listed(scope, inbound.scope)

    def explain_unserved_group(self, inbound: Inbound) -> str:
        """Return a text that says how the owner lets a group in."""
        key = replace(inbound.address, thread_id=None).key
        return load_texts(inbound.language).SETUP_NOT_SERVED.format(key=key)

    async def explain_anonymity(self, inbound: Inbound, scope: Scope) -> str:
        """Return how an admin who writes in the name of the group gets answers, if anyone does."""
        texts = load_texts(inbound.language)
        if not await self.is_group_served(inbound, scope):
            return self.explain_unserved_group(inbound)
        if self.is_listed(scope, inbound.scope):
            return texts.ANONYMOUS_ADMIN
        return f"{texts.ANONYMOUS_ADMIN} {texts.SETUP_APPROVED_ONLY}"

    def _find_verdict(self, inbound: Inbound, account: Account, access: AccountAccess) -> Verdict:
        """Return the verdict on an event, given the access of the account that sent it."""
        if access.scope.is_group:
            self._note_roles(inbound, account, access.scope)
        is_served = self._is_served(account, access, inbound.scope)
        if inbound.is_direct and not access.scope.is_group:
            if is_served:
                return Verdict.SERVED
            return Verdict.IGNORED if access.is_blocked else Verdict.STRANGER
        if not is_served:
            is_asking = inbound.kind in ("message", "arrival") and self._is_meant_for_us(inbound)
            has_lost_access = access.is_removed or access.is_blocked
            if is_asking and not access.is_owners_group and not has_lost_access:
                return Verdict.OUTSIDER
            return Verdict.IGNORED
        return self._find_group_verdict(inbound, account, access)

    def _is_meant_for_us(self, inbound: Inbound) -> bool:
        """Return whether the sender addresses Mneme, and not only `/setup listen always` does."""
        listens = self.chat_rules.find(inbound).listens or ""
        if not inbound.is_addressed or inbound.is_direct or "always" not in listens:
            return inbound.is_addressed
        return inbound.is_mention or inbound.command is not None or _is_reply_to_us(inbound)

    def _find_group_verdict(
        self, inbound: Inbound, account: Account, access: AccountAccess
    ) -> Verdict:
        """Return the verdict on an event in a group where the sender's account is served."""
        settings = self.chat_rules.find(inbound)
        roles = self._last_roles.get((access.scope.key, account), ())
        has_role = not settings.roles or not set(settings.roles).isdisjoint(roles)
        if not (has_role or access.has_access(account, self._listed_people)):
            return Verdict.ROLELESS
        if inbound.is_addressed or inbound.kind == "edit":
            return Verdict.SERVED
        has_content = bool(inbound.text or inbound.attachments)
        is_stored = has_content and self._stores_all(settings)
        return Verdict.OVERHEARD if is_stored else Verdict.IGNORED

    def _is_served(self, account: Account, access: AccountAccess, chat: Scope) -> bool:
        """Return whether an account gets answers in a chat. A removed account never does.

        `chat` contains the chat's current id, and `access.scope` may contain an earlier id of the
        same group. The settings may list a group by either id.
        """
        if access.is_owners_group:
            return access.is_owner
        if access.has_access(account, self._listed_people):
            return True
        is_group_listed = self.is_listed(access.scope, chat)
        is_let_in = self._has_listed_role(access.scope, account)
        return (is_group_listed or is_let_in) and not access.is_removed

    def is_listed(self, *scopes: Scope) -> bool:
        """Return whether the settings list a group by one of its scopes."""
        group_keys = {
            scope.key.removeprefix("room:").partition("#")[0] for scope in scopes if scope.is_group
        }
        return not group_keys.isdisjoint(self._listed_groups)

    def _note_roles(self, inbound: Inbound, account: Account, scope: Scope) -> None:
        """Remember the sender's roles in a group.

        Scheduled questions and removals of reactions contain no roles, so the roles of the person's
        last event still apply to them.
        """
        roles = inbound.sender.roles
        is_without_roles = inbound.kind == "reaction" and not roles
        if is_without_roles or inbound.address.platform == CRON:
            return
        if roles:
            self._last_roles[scope.key, account] = roles
        else:
            self._last_roles.pop((scope.key, account), None)

    def _has_listed_role(self, scope: Scope, account: Account) -> bool:
        """Return whether one of an account's roles in a group gives access to this group."""
        roles = self._last_roles.get((scope.key, account), ())
        keys = {f"{account.platform}:{role}" for role in roles}
        return not keys.isdisjoint(self._listed_roles)

    async def load_job_view(self, job: Job) -> View:
        """Return the scopes that a job may read. Raises Refused if its author has lost access."""
        account = job.scope.speaker(job.account.user_id if job.account else CRON)
        access = await self.people.load_access(account, job.scope)
        if not self._is_served(account, access, job.scope):
            raise Refused(REMOVED_KEY)
        return await self._epoch_guard.view(job.scope)

    async def load_view(
        self, scope: Scope, account: Account, entry_ids: Sequence[int] = ()
    ) -> View:
        """Return the scopes that an account can see, and which inbox entries are still open.

        Waits while an erasure in the scope is running. Raises StoreError if the erasure takes too
        long.
        """
        return await self._epoch_guard.view(scope, account, entry_ids)

    def is_probably_served(self, inbound: Inbound) -> bool:
        """Guess whether a sender is served, without reading the store."""
        if inbound.is_direct and inbound.account.key in self._named_accounts:
            return True
        return inbound.is_addressed and (inbound.address.key, inbound.account) in self._served

    async def record_name(self, inbound: Inbound) -> None:
        """Store the sender's account and name if either has changed since the last message."""
        account = inbound.account
        name = inbound.sender.name
        if inbound.address.platform == CRON or self._recorded_names.get(account) == name:
            return
        await self.people.record_name(account, name)
        self._recorded_names[account] = name

    async def find_introduction(
        self, inbound: Inbound, judgement: Judgement
    ) -> Introduction | None:
        """Return the introduction for a new group or server.

        It's repeated if the settings have changed which messages are stored. Returns None if the
        group or server knows already, and for a group that only the owner uses.
        """
        if inbound.address.platform == CRON:
            return None
        rules = self.chat_rules
        await rules.load()
        key = replace(inbound.address, thread_id=None).key
        server = server_key(inbound)
        if server and rules.get(key).server != server:
            await rules.save(key, server=server)
        if judgement.is_owners_group:
            return None
        place = server or key
        introduced_at = rules.get(place).introduced_at
        stores_all = self._stores_all(rules.find(inbound))
        outbox_key = f"introduction:{place}"
        if introduced_at is not None:
            was_told_all = rules.get(introduction_key(place)).stores == "all"
            # This topic or channel may have a setting of its own, about which it was told.
            is_shared = stores_all == self._stores_all(rules.get(place))
            if stores_all == was_told_all or not is_shared:
                return None
            outbox_key = f"{outbox_key}:{introduced_at.isoformat()}"
        texts = load_texts(inbound.language)
        is_listed = self.is_listed(judgement.scope, inbound.scope)
        text = texts.choose_introduction(stores_all=stores_all, is_listed=is_listed)
        return Introduction(place=place, outbox_key=outbox_key, text=text, stores_all=stores_all)

    async def record_introduction(self, introduction: Introduction) -> None:
        """Record what a group or server was told."""
        rules = self.chat_rules
        key = introduction_key(introduction.place)
        stores = "all" if introduction.stores_all else None
        if rules.get(key).stores != stores:
            await rules.save(key, stores=stores)
        await rules.save(introduction.place, introduced_at=self._clock.now())

    def _stores_all(self, settings: ChatSettings) -> bool:
        """Return whether a group's messages are stored even if they aren't addressed to Mneme."""
        return settings.stores == "all" if settings.stores else self._stores_unaddressed

    async def report_missed(self, address: Address) -> None:
        """Notify the owner that messages sent to an address weren't read."""
        name = await self.admins.load_place_name(address)
        await self._owner_notices.notify_missed(address, name)

    async def create_pairing(self, inbound: Inbound) -> Pairing | None:
        """Create a pairing code for a stranger, notify the owner, and return the pairing.

        Returns None if the stranger already has a code, or if too many strangers are waiting.
        """
        pairing = await self.people.request_pairing(
            inbound.account, inbound.sender.name, self._clock.now(), inbound
        )
        if pairing is None:
            return None
        # The notice doesn't contain the code: the stranger has to pass it on.
        texts = await self._owner_notices.load_texts()
        text = texts.ASKS_TO_BE_LET_IN.format(
            person=texts.format_person(pairing.name, pairing.account), key=pairing.account.key
        )
        notice_key = f"pairing:{pairing.account.key}:{pairing.expires_at.isoformat()}"
        await self._owner_notices.notify(notice_key, text)
        return pairing


def _is_from_group(inbound: Inbound) -> bool:
    """Return whether an admin of the group wrote in its name."""
    is_anonymous = inbound.sender.is_anonymous and not inbound.is_direct
    return is_anonymous and inbound.sender.id == inbound.address.chat_id


def _may_set_up(access: AccountAccess) -> bool:
    """Return whether an account may run /setup in a group if it manages the group.

    No one else may in a group that only the owner uses.
    """
    has_lost_access = access.is_removed or access.is_blocked
    return access.scope.is_group and not (access.is_owners_group or has_lost_access)


def _apply_listening(inbound: Inbound, settings: ChatSettings) -> Inbound:
    """Set `is_addressed` of a message by its group's settings, and remove the prefix."""
    text_after_prefix = _remove_prefix(inbound.text, settings.prefix or "")
    if text_after_prefix is not None:
        return replace(inbound, text=text_after_prefix or inbound.text, is_addressed=True)
    words = set((settings.listens or "mention reply").split())
    if {"mention", "reply"} <= words:
        return inbound
    if "always" in words:
        # A command with an unknown name is for another bot, unless the message mentions this bot.
        is_for_us = inbound.is_addressed or not inbound.text.startswith("/")
        return replace(inbound, is_addressed=is_for_us)
    is_wanted = "mention" in words and inbound.is_mention
    is_wanted = is_wanted or ("reply" in words and _is_reply_to_us(inbound))
    return replace(inbound, is_addressed=inbound.is_addressed and is_wanted)


def _is_reply_to_us(inbound: Inbound) -> bool:
    """Return whether a message is a reply to one of Mneme's messages."""
    quote = inbound.quote
    return quote is not None and quote.is_ours and quote.kind != "forward"


def _remove_prefix(text: str, prefix: str) -> str | None:
    """Return the text after the prefix, or None if the text doesn't begin with the prefix."""
    if not prefix or not text.casefold().startswith(prefix.casefold()):
        return None
    remainder = text[len(prefix) :]
    if prefix[-1].isalnum() and remainder[:1].isalnum():
        # "mne" isn't the prefix of "mnemonic".
        return None
    return remainder.lstrip(" \t\n,:;")


class TokenBuckets:
    """Token buckets for rate limits: one bucket of `capacity` tokens per key.

    An empty bucket is full again after a minute.
    """

    def __init__(self, capacity: int) -> None:
        self._token_interval_s = MINUTE_S / capacity
        # When each bucket will be full again. A missing bucket is full.
        self._full_at: dict[Account | Scope, float] = {}

    def wait_s(self, key: Account | Scope) -> float:
        """Return how many seconds to wait for the next token, or 0 if one is available."""
        full_at = self._full_at.get(key, 0.0)
        # An empty bucket is full again after a minute, and a bucket with one token one interval
        # earlier. So there is a token if the bucket will be full within a minute minus one
        # interval.
        return max(0.0, full_at - monotonic() - MINUTE_S + self._token_interval_s)

    def take(self, key: Account | Scope) -> None:
        """Take a token from the bucket of `key`. Call this only when `wait_s` returns 0."""
        now = monotonic()
        if len(self._full_at) >= _MAX_BUCKETS:
            self._full_at = {
                other: full_at for other, full_at in self._full_at.items() if full_at > now
            }
        self._full_at[key] = max(self._full_at.get(key, 0.0), now) + self._token_interval_s


@dataclass(frozen=True, slots=True)
class _TurnsInARow:
    """The number of consecutive turns in a group that one account started."""

    account: Account | None = None
    count: int = 0
    # When the last message arrived, on the monotonic clock.
    last_at: float = 0.0


@dataclass(frozen=True, slots=True)
class LimitRefusal:
    """The reply to a message that isn't answered because a daily limit was reached."""

    text: str
    # A notice was sent within the last hour, so this message gets no reply.
    is_silent: bool
    # The owner may allow more for this day.
    can_be_raised: bool = False


class RateLimiter:
    """Applies the rate limits and daily limits to accounts and groups.

    `check_daily_limits` raises LimitReached if a person or group is over a daily limit. If
    `is_free`, the model costs nothing, so the limits of `owner_day` don't apply.
    """

    def __init__(
        self,
        limits: LimitOptions,
        clock: Clock,
        usage_log: UsageLog,
        check_daily_limits: Callable[[BillingScope], Awaitable[None]],
        *,
        is_free: bool = False,
    ) -> None:
        self._turns = TokenBuckets(limits.turns_per_minute)
        self._group_turns = TokenBuckets(limits.room_turns_per_minute)
        self._commands = TokenBuckets(limits.commands_per_minute)
        self._refusals = TokenBuckets(REFUSALS_PER_MINUTE)
        self._turns_in_a_row: dict[Scope, _TurnsInARow] = {}
        # It has the current daily limits, which may change while Mneme runs.
        self._usage_log = usage_log
        self._is_free = is_free
        self._clock = clock
        self._check_daily_limits = check_daily_limits
        self._limit_notice_at: dict[BillingScope, datetime] = {}

    @property
    def limits_owner(self) -> bool:
        """Whether the daily limits apply to the owner, too."""
        limits = self._usage_log.limits
        if limits is None:
            return False
        has_owner_line = not self._is_free and any(limits.owner_day.values())
        return limits.day_for_owner or has_owner_line

    def acquire_turn(self, inbound: Inbound) -> float:
        """Count a turn and return 0, or return how many seconds to wait if a limit is reached.

        A turn that has to wait isn't counted.
        """
        wait_s = self._turns.wait_s(inbound.account)
        if inbound.scope.is_group:
            wait_s = max(wait_s, self._group_turns.wait_s(inbound.scope))
        if wait_s == 0:
            self._turns.take(inbound.account)
            self._group_turns.take(inbound.scope)
        return wait_s

    def acquire_command(self, inbound: Inbound, command: Command | None) -> bool:
        """Count a command or a button press. Returns False if the sender is over the limit.

        For an ordinary message, this returns True without counting. A counted command resets the
        group's consecutive turns.
        """
        if command is None and inbound.kind == "message":
            return True
        if self._commands.wait_s(inbound.account):
            return False
        self._commands.take(inbound.account)
        self._turns_in_a_row.pop(inbound.scope, None)
        return True

    def acquire_refusal(self, inbound: Inbound) -> bool:
        """Count a reply to a stranger in a group. Returns False if the group had too many."""
        if self._refusals.wait_s(inbound.scope):
            return False
        self._refusals.take(inbound.scope)
        return True

    def count_turns_in_a_row(self, inbound: Inbound, *, is_turn: bool) -> int:
        """Return how many consecutive turns the sender has had in a group, including this one.

        If `is_turn` is false, the message isn't counted, but it ends the run of another sender.
        Returns 0 for direct chats and scheduled questions.
        """
        if not inbound.scope.is_group or inbound.address.platform == CRON:
            return 0
        now = monotonic()
        previous = self._turns_in_a_row.get(inbound.scope, _TurnsInARow())
        count = 0
        if previous.account == inbound.account and now - previous.last_at <= TURNS_RESET_S:
            count = previous.count
        if is_turn:
            count += 1
        self._turns_in_a_row[inbound.scope] = _TurnsInARow(inbound.account, count, now)
        return count

    def has_too_many_turns(self, inbound: Inbound) -> bool:
        """Return whether the sender's last message in a group was over the limit of turns."""
        previous = self._turns_in_a_row.get(inbound.scope, _TurnsInARow())
        is_recent = monotonic() - previous.last_at <= TURNS_RESET_S
        is_over_limit = previous.count > MAX_TURNS_IN_A_ROW
        return previous.account == inbound.account and is_recent and is_over_limit

    async def find_daily_refusal(self, inbound: Inbound, scope: Scope) -> LimitRefusal | None:
        """Return a refusal if the sender is over a daily limit, or None if the model may answer.

        In groups and for scheduled questions, a refusal within an hour of the last notice is
        silent.
        """
        billing = BillingScope(scope=scope, user_id=inbound.sender.id)
        try:
            await self._check_daily_limits(billing)
            return None
        except LimitReached as error:
            reason = load_texts(inbound.language).word(error)
            can_be_raised = error.can_be_raised

        now = self._clock.now()
        is_private_chat = inbound.is_direct and inbound.address.platform != CRON
        noticed_at = self._limit_notice_at.get(billing)
        is_recent = noticed_at is not None and now - noticed_at < LIMIT_NOTICE_INTERVAL
        is_silent = is_recent and not is_private_chat
        if not is_silent:
            self._limit_notice_at[billing] = now
        return LimitRefusal(reason, is_silent, can_be_raised)
