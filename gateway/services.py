"""Creates the stores of state.db and classes built on them, for the gateway and shell commands.

None of these needs a connected platform.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from itertools import groupby
from typing import TYPE_CHECKING, cast
from zoneinfo import ZoneInfo

from config.model_options import DEFAULT_SERVER
from config.settings import LimitedResource, Settings
from core.errors import ConfigError, Refused, StoreError
from core.media.decoding import Decoder
from core.media.folder import MediaFolder
from core.media.intake import MediaIntake
from core.media.leftovers import remove_erased_files
from core.memory.plugins import Plugins
from core.memory.provider import MemoryProvider
from core.models.abilities import LearnedLimits, ModelClient
from core.models.failures import ServerNames
from core.models.wrappers import ModelRouter
from core.notes.notebook import ALL_FILES, Notebook
from core.ports import Clock
from core.privacy.file_removal import FileRemoval
from core.privacy.forgetting import Forgetting
from core.privacy.home_files import HomeFiles
from core.review.pending import Review
from core.scheduling.appointments import Appointments
from core.search.citations import add_citable_blocks, name_source
from core.search.recall import Recall
from core.skills.library import Skills
from core.store.actions import Actions
from core.store.archive import Archive
from core.store.facts.facts import Facts
from core.store.facts.feedback import AnswerFeedback
from core.store.incognito import IncognitoRegistry
from core.store.jobs import Job, JobMessages, Jobs
from core.store.mailbox import Inbox, Notice, Outbox
from core.store.media.files import Files
from core.store.media.unfinished import UnfinishedFiles
from core.store.model_limits import HelperChoices, ModelLimits, ModelOutages
from core.store.notes import FACT, SKILL, Notes, PendingNote
from core.store.ownership.links import Links
from core.store.ownership.people import TERMINAL, KnownAccount, People
from core.store.ownership.removal import Removals
from core.store.preferences import ChatRules, Preference, Preferences
from core.store.rows import get_meta, parse_account, set_meta
from core.store.sessions import Conversations
from core.store.sqlite.copying import needs_migration
from core.store.sqlite.database import Database
from core.store.sqlite.faults import LockWait
from core.store.sync import SyncQueue
from core.store.usage_limits import Budget, UsageLog
from core.types import LOCAL_SCOPE, Account, Address, ErasureEpoch, File, Scope, ToolContext
from gateway.assembly.optional_services import (
    create_calendars,
    create_mcp,
    create_speaker,
    create_transcriber,
    create_web,
)
from gateway.owner_notices import OwnerNotices
from gateway.sharing.home_lock import is_running
from gateway.sharing.membership import Membership
from gateway.supervisor import WallClock
from gateway.texts.catalog import ENGLISH, SHELL, Texts, word_sentence
from gateway.texts.languages import Languages
from gateway.web.logins import Logins

if TYPE_CHECKING:
    from core.search.embeddings import EmbeddingRetriever
    from core.store.postgres.database import Database as PostgresDatabase
    from core.tools.web import WebAccess


STATE_FILE = "state.db"
# The key in `state_meta` of the platform states that the running gateway has saved.
PLATFORM_STATES_KEY = "platforms"


class Services:
    """The stores, and the services that depend only on the stores and the settings.

    `on_change` is called after a change of notes, the outbox or the jobs. If `notifies_owner` is
    true, the services send notices about problems to the owner. Shell commands don't send such
    notices.
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        on_change: Callable[[], None],
        *,
        notifies_owner: bool = False,
        membership: Membership | None = None,
    ) -> None:
        self.settings = settings
        self.on_change = on_change
        self.zone = ZoneInfo(settings.general.zone)
        self.clock = WallClock()
        self.database = database
        # The registration of this gateway among others. None for state.db, and for shell commands.
        self.membership = membership
        # A sentence about the erasures that were repeated after a backup was restored. Empty if
        # there were none.
        self.restore_report = ""
        # The days of erasures (ISO 8601) that couldn't be repeated after a restore.
        self.unrepeated_days: Sequence[str] = ()

        incognito = IncognitoRegistry()
        self._create_people(incognito)
        callbacks = self._create_notices(incognito, notifies_owner=notifies_owner)
        self._create_conversations(incognito, callbacks)
        self._create_jobs_and_usage(callbacks)
        self._create_memory(callbacks)
        self._create_files()
        self._create_erasure()

    def _create_people(self, incognito: IncognitoRegistry) -> None:
        settings, database = self.settings, self.database
        self.people = People(database, incognito)
        self.links = Links(database, settings.access.people)
        self.removals = Removals(database)
        self.preferences = Preferences(database)
        self.languages = Languages(self.preferences)
        self.chat_rules = ChatRules(database)
        self.page_logins = Logins(self.clock, settings.home)

    def _create_notices(
        self, incognito: IncognitoRegistry, *, notifies_owner: bool
    ) -> _NoticeCallbacks:
        """Create the outbox and the notices. Returns the functions that send notices."""
        clock, model = self.clock, self.settings.model.chat
        self.actions = Actions(self.database, clock, incognito)
        job_messages = JobMessages(clock=clock, incognito=incognito, model=model)
        ownership = None if self.membership is None else self.membership.ownership
        self.outbox = Outbox(self.database, clock, job_messages.store_delivery, ownership)
        self.owner_notices = OwnerNotices(
            self.find_private_chat,
            self.outbox,
            clock,
            self.zone,
            self.on_change,
            self.languages,
        )
        if not notifies_owner:
            return _NoticeCallbacks()
        return _NoticeCallbacks(
            prepare_dead_letter=self.owner_notices.prepare_dead_letter,
            on_near=self.owner_notices.notify_budget,
            on_pending=self.owner_notices.notify_pending,
            on_warning=self.owner_notices.warn_about_note,
        )

    def _create_conversations(
        self, incognito: IncognitoRegistry, callbacks: _NoticeCallbacks
    ) -> None:
        settings, database, clock = self.settings, self.database, self.clock
        self.inbox = Inbox(
            database, clock, incognito, callbacks.prepare_dead_letter, self.on_change
        )
        self.conversations = Conversations(database, clock, incognito)
        self.embeddings = create_embeddings(settings, database)
        self.recall = Recall(database, clock, settings.general.zone, self.embeddings)
        self.archive = Archive(database)
        self.mcp = create_mcp(settings, partial(is_owner, self.people), self.keep_file)
        self.calendars = create_calendars(settings)
        self.model_limits = ModelLimits(database)
        self.model_outages = ModelOutages(database)
        self.helper_choices = HelperChoices(database, incognito)

    def _create_jobs_and_usage(self, callbacks: _NoticeCallbacks) -> None:
        limits, zone = self.settings.limits, self.settings.general.zone
        self.jobs = Jobs(self.database, limits.jobs, limits.scheduled_questions)
        self.usage_log = UsageLog(
            self.database, self.settings.usage, zone, limits, callbacks.on_near
        )
        self.appointments = Appointments(
            self.jobs,
            self.clock,
            zone,
            self.on_change,
            self._question_interval_s,
            self.usage_log,
            self.load_preference,
            limits.planned_question_every_s,
        )

    def _create_memory(self, callbacks: _NoticeCallbacks) -> None:
        settings, clock = self.settings, self.clock
        self.facts = Facts(self.database, clock)
        self.feedback = AnswerFeedback(self.database, self.facts, clock)
        self.notes = Notes(self.database)
        review = Review(self.notes, clock, callbacks.on_pending, callbacks.on_warning)
        limits = {"memory": settings.memory.memory_chars, "user": settings.memory.user_chars}
        self.notebook = Notebook(settings.home, self.notes, clock, limits, review, self.on_change)
        self.skills = Skills(settings.home, self.notes, review, clock, settings.skills)
        self.sync_queue = SyncQueue(self.database, clock, self.on_change)

    def _create_files(self) -> None:
        settings = self.settings
        self.home_files = HomeFiles(settings.home)
        self.files = Files(self.database)
        self.unfinished_files = UnfinishedFiles(self.database)
        self.media_folder = MediaFolder(settings.home)
        self.decoder = Decoder(
            settings.media.decode_s,
            settings.media.decode_memory_mb,
            scratch_path=self.media_folder.scratch_path,
        )
        self.transcriber = create_transcriber(settings, self.decoder)
        # The intakes of this process, whose downloads an erasure stops.
        self._intakes: list[MediaIntake] = []
        self.speaker = create_speaker(settings, self.decoder)

    def _create_erasure(self) -> None:
        self.forgetting = Forgetting(
            self.database,
            self.notebook,
            self.home_files,
            self.clock,
            self.settings.general.zone,
            self.sync_queue,
            self.skills,
            self._remove_erased_files,
        )
        self.file_removal = FileRemoval(self.database, self.files, self.forgetting)

    async def _remove_erased_files(self, now: datetime) -> Sequence[str]:
        """Stop the downloads of erased messages, and delete bytes that no message has any more.

        Returns the paths in the home that couldn't be deleted.
        """
        for intake in self._intakes:
            await intake.cancel_erased()
        return await remove_erased_files(self.files, self.media_folder, now)

    @cached_property
    def web(self) -> WebAccess | None:
        """Return the tools for the web.

        They are created on first use, because few shell commands need them.
        """
        return create_web(self.settings, self.decoder)

    def is_ours(self, address: Address) -> bool:
        """Return whether this process works on the chat of an address, not another gateway."""
        return self.membership is None or self.membership.ownership.is_ours(address)

    async def load_preference(self, account: Account | None) -> Preference:
        """Return a person's preferences, which may have been set with any of their accounts."""
        if account is None:
            return Preference()
        linked_accounts = await self.links.list_accounts(account)
        others = [entry.account for entry in linked_accounts if entry.account != account]
        return await self.preferences.load([account, *others])

    def zone_of(self, name: str) -> ZoneInfo:
        """Return the time zone with this IANA name, or that of the settings if the name is ""."""
        return ZoneInfo(name) if name else self.zone

    async def load_zone(self, account: Account | None) -> ZoneInfo:
        """Return the time zone that a person chose, or that of the settings."""
        return ZoneInfo(await self.appointments.zone_of(account))

    async def find_quiet_end(self, job: Job) -> datetime | None:
        """Return when the quiet hours of a job's author end, or None if the job needn't wait."""
        if job.is_urgent or job.account is None:
            return None
        preference = await self.load_preference(job.account)
        return preference.quiet_end(self.clock.now(), self.settings.general.zone)

    async def _question_interval_s(self, account: Account | None) -> float | None:
        """Return the shortest allowed interval of an account's scheduled questions, in seconds.

        0 means no limit, as for the owner. None means that the account may not schedule questions.
        """
        if account is None:
            return None
        settings = self.settings
        direct_chat = Scope.account(account.platform, account.user_id)
        access = await self.people.load_access(account, direct_chat)
        if access.is_owner:
            return 0.0
        has_access = access.has_access(account, settings.access.people)
        if has_access or settings.limits.room_questions:
            return settings.limits.question_every_s
        return None

    async def approve_pending(
        self,
        note: PendingNote,
        scopes: frozenset[Scope],
        epoch: ErasureEpoch | None = None,
        texts: Texts = ENGLISH,
    ) -> str:
        """Apply a pending change, and return a sentence about the result.

        Raises Refused if it can no longer be applied.
        """
        if note.is_draft and await self.notebook.is_stale(note, scopes):
            await self.notes.drop(note.id)
            await self.notes.mark_reviewed(note.scope, self.clock.now(), mark=0)
            raise Refused(texts.DRAFT_STALE)
        if note.target in ALL_FILES:
            result = texts.word_report(await self.notebook.approve(note, scopes, epoch))
        elif note.target == SKILL:
            result = texts.word_report(await self.skills.approve(note, scopes, epoch))
        elif note.target == FACT:
            # Imported here because the rules take a while to load, and few commands need them.
            from core.facts.editor import FactEditor

            editor = FactEditor(self.facts, self.zone)
            result = texts.word_report(await editor.approve(note, epoch))
        else:
            result = await self.appointments.approve(note, epoch, texts.schedule_words)
        await self.notes.drop(note.id)
        return result

    def create_intake(self, sources: Mapping[str, object]) -> MediaIntake:
        """Create the intake, which downloads and stores files.

        `sources` maps platforms to adapters.
        """
        intake = MediaIntake(
            self.files,
            self.unfinished_files,
            self.media_folder,
            self.decoder,
            self.clock,
            self.settings.media,
            self.inbox.is_incognito,
            self.settings.model.known_lacks,
            sources,
            self.transcriber,
        )
        self._intakes.append(intake)
        return intake

    async def load_file(self, file_id: int, scopes: frozenset[Scope]) -> File | None:
        """Return a stored file for sending, without the location data of its metadata.

        Returns None if there is no such file in these scopes, or if its bytes are gone. Raises
        Refused if the location can't be removed.
        """
        # Imported here because few answers have files.
        from core.media.outgoing import load_outgoing

        file = await self.files.find(file_id, scopes)
        if file is None:
            return None
        return await load_outgoing(file, self.media_folder, self.decoder)

    async def keep_file(self, file: File, context: ToolContext) -> int | None:
        """Store a file that a tool made. Returns its number, or None if it isn't stored."""
        stored_file = await self.create_intake({}).keep_file(file, context)
        return None if stored_file is None else stored_file.id

    async def find_private_chat(
        self, scope: Scope, excluded_platform: str = ""
    ) -> tuple[Address, Scope] | None:
        """Return the private chat in which the person of `scope` last wrote, or None.

        For a group, this is the owner's private chat. Only the terminal, platforms with a token,
        and platforms of a running gateway are considered, except for `excluded_platform`. A program
        that runs next to the gateway, such as `mneme mcp serve`, may not have the tokens.
        """
        platforms = {*self.settings.platform_tokens, TERMINAL.platform}
        platforms.update(await self.load_platform_states())
        platforms.discard(excluded_platform)
        person_scope = LOCAL_SCOPE if scope.is_group else scope
        for address, chat_scope in await self.people.list_private_chats(person_scope):
            if address.platform in platforms:
                return address, chat_scope
        return None

    async def save_platform_states(self, states: Mapping[str, str]) -> None:
        """Save the states of platforms and memory providers for `/status` and the command line."""
        text = json.dumps(dict(states))
        await self.database.write(
            lambda connection: set_meta(connection, PLATFORM_STATES_KEY, text)
        )

    async def load_platform_states(self) -> Mapping[str, str]:
        """Return the states last saved by the running gateway, or none if it isn't running."""
        text = await self.database.read(
            lambda connection: get_meta(connection, PLATFORM_STATES_KEY)
        )
        if not text or not is_running(self.settings.home):
            return {}
        states: Mapping[str, str] = json.loads(text)
        return states

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        settings: Settings,
        on_change: Callable[[], None] = lambda: None,
        *,
        notifies_owner: bool = False,
        lock_wait: LockWait | None = None,
        makes_backup: bool = True,
        joins: bool = False,
    ) -> AsyncIterator[Services]:
        """Open state.db in the home, and store the owner's accounts from the settings.

        If `makes_backup`, a backup is made before state.db is upgraded. If `joins` and the store is
        on a server, this process becomes one of the gateways of the database.

        After a backup was restored, the erasures that were made since that backup are repeated.
        Raises StoreError if state.db can't be used.
        """
        if makes_backup and not settings.store.url and needs_migration(settings.home / STATE_FILE):
            # Imported here because upgrades are rare.
            from gateway.upkeep.upgrading import upgrade_home

            await upgrade_home(settings, WallClock())
        async with open_database(settings, lock_wait) as database:
            membership = None
            if joins and settings.store.url:
                membership = await Membership.join(cast("PostgresDatabase", database))
            services = cls(
                settings,
                database,
                on_change,
                notifies_owner=notifies_owner,
                membership=membership,
            )
            await services.store_owner(settings)
            await services._repeat_erasures()
            try:
                yield services
            finally:
                await services._close()

    async def _close(self) -> None:
        """Close the connections to services."""
        if self.embeddings is not None:
            await self.embeddings.close()
        # If the process has made no look-ups, there are no connections to close.
        web = vars(self).get("web")
        if web is not None:
            await web.close()
        if self.mcp is not None:
            await self.mcp.close()

    async def store_owner(self, settings: Settings) -> None:
        """Store the owner's accounts and groups from the settings."""
        parsed_accounts = map(parse_account, settings.owner.accounts)
        accounts = [account for account in parsed_accounts if account is not None]
        groups = [Scope(key=f"room:{key}") for key in settings.owner.rooms]
        await self.people.set_owner(accounts, groups)

    async def _repeat_erasures(self) -> None:
        """Repeat the erasures that were made since a restored backup, and set `restore_report`."""
        texts = SHELL
        repeated_count, unreadable_days = await self.forgetting.replay_journal()
        self.unrepeated_days = unreadable_days
        sentences = []
        if repeated_count:
            erasures = texts.format_count(repeated_count, "erasure")
            sentences.append(texts.REPEATED.format(erasures=erasures))
        if unreadable_days:
            sentences.append(texts.NOT_REPEATED.format(days=texts.join_list(unreadable_days)))
        self.restore_report = " ".join(sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoticeCallbacks:
    """Functions that the stores call to notify the owner or another person."""

    # Called with the platform before an event that can't be handled is set aside.
    prepare_dead_letter: Callable[[str], Awaitable[Notice | None]] | None = None
    # Called if a daily limit is nearly reached.
    on_near: Callable[[Budget, LimitedResource], Awaitable[None]] | None = None
    # Called when a change starts to wait for approval.
    on_pending: Callable[[PendingNote], Awaitable[None]] | None = None
    # Called with scope, target, reason and text if a person has written a note into the file that
    # looks suspicious.
    on_warning: Callable[[Scope, str, str, str], Awaitable[None]] | None = None


async def load_persons(people: People, listed: Collection[str]) -> list[list[KnownAccount]]:
    """Return the accounts of each person, starting with the owner.

    `listed` has the keys of the accounts that settings give access to. Those that haven't written
    yet come last.
    """
    accounts = await people.list_accounts(listed)
    persons = [list(group) for _, group in groupby(accounts, key=lambda account: account.person_id)]
    known = {account.account for account in accounts}
    for account in map(parse_account, listed):
        if account is not None and account not in known:
            persons.append([_describe_listed_account(account)])
    return persons


def _describe_listed_account(account: Account) -> KnownAccount:
    """Return an account to which the settings give access, and which hasn't written yet."""
    return KnownAccount(account=account, name="", person_id=0, why="listed", at=None, seen_at=None)


def create_model_client(
    settings: Settings,
    clock: Clock,
    limits: LearnedLimits | None = None,
    on_retired: Callable[[str, str], Awaitable[None]] | None = None,
) -> ModelRouter | None:
    """Create a client for the configured models, or return None if no chat model is configured.

    For `limits` and `on_retired`, see `ModelRouter`. The caller closes the client.
    """
    if not settings.has_model:
        return None
    options = settings.model
    names = (*options.offered_models, *options.offered_helpers, *options.helper_fallbacks)
    servers = {options.split_name(name)[0] for name in names}
    missing_keys = {name: settings.missing_key(name) for name in sorted(servers)}
    clients = {
        name: connect_model_server(settings, clock, name)
        for name, missing_key in missing_keys.items()
        if not missing_key
    }
    return ModelRouter(clients, missing_keys, options, limits, on_retired, word_sentence)


def connect_model_server(settings: Settings, clock: Clock, name: str) -> ModelClient:
    """Create the client for one of the servers in [model.servers]."""
    options = settings.model
    server = options.servers[name]
    secret = settings.variables.get(server.key)
    key = secret.get_secret_value() if secret else None
    url = server.url
    key_setting, address = f"model.servers.{name}.key", f"model.servers.{name}.url"
    if name == DEFAULT_SERVER:
        url = settings.anthropic_base_url or url
        address = "ANTHROPIC_BASE_URL"
        if settings.anthropic_api_key:
            key = settings.anthropic_api_key.get_secret_value()
    # Imported here because a vendor's package takes a second or two to load.
    if server.api == "messages":
        from core.models.claude import CitableBlocks, Claude

        names = ServerNames(key=server.key, key_setting=key_setting, address=address)
        client = Claude(
            key, url, clock, options.tries, options.patience_s, word=word_sentence, names=names
        )
        if client.is_official:
            client.citable = CitableBlocks(add_citable_blocks, name_source)
        return client
    from core.models.chat_completions import ChatCompletions

    names = ServerNames(
        key=server.key, key_setting=key_setting, address=address, api="Chat Completions API"
    )
    return ChatCompletions(
        key,
        url,
        clock,
        options.tries,
        options.patience_s,
        word=word_sentence,
        names=names,
        marked_models=server.cache_breakpoints,
    )


async def is_owner(people: People, context: ToolContext) -> bool:
    """Return whether a tool runs on behalf of the owner."""
    return (await people.load_access(context.asker, context.scope)).is_owner


def open_database(
    settings: Settings, lock_wait: LockWait | None = None
) -> AbstractAsyncContextManager[Database]:
    """Open the configured store: state.db, or a database on a PostgreSQL server.

    The return type is the class for state.db. A database on a server offers only the methods of
    `core.store.engine.Database`, so code that needs others checks the class first.
    """
    if not settings.store.url:
        return Database.open(settings.home / STATE_FILE, lock_wait)
    try:
        # Imported here because psycopg is an extra.
        from core.store.postgres.database import Database as PostgresDatabase
    except ImportError as error:
        raise StoreError(SHELL.POSTGRES_IS_MISSING) from error
    password = settings.variables.get(settings.store.password)
    secret = "" if password is None else password.get_secret_value()
    opening = PostgresDatabase.open(settings.store.url, secret)
    return cast(AbstractAsyncContextManager[Database], opening)


def create_embeddings(settings: Settings, database: Database) -> EmbeddingRetriever | None:
    """Create a retriever for the configured embeddings server, or return None if there is none."""
    options = settings.recall.embeddings
    if not options.url:
        return None
    # Imported here because this loads an HTTP client.
    from core.memory.http import JsonService
    from core.search.embeddings import EmbeddingRetriever

    headers = {}
    missing_key = options.key
    secret = settings.variables.get(options.key)
    if secret:
        headers["Authorization"] = f"Bearer {secret.get_secret_value()}"
        missing_key = ""
    return EmbeddingRetriever(
        database,
        JsonService("embeddings", options.url, headers, "recall.embeddings.url"),
        options.model,
        options.query_prefix,
        options.passage_prefix,
        missing_key,
    )


def load_providers(settings: Settings) -> tuple[list[MemoryProvider], Mapping[str, ConfigError]]:
    """Load the external memory providers that are switched on, in the order of mneme.toml.

    Also returns the problem of each provider that can't be loaded, by its name.
    """
    plugins = Plugins(settings.home)
    variables = {key: secret.get_secret_value() for key, secret in settings.variables.items()}
    limit = settings.memory.max_external
    providers: list[MemoryProvider] = []
    problems: dict[str, ConfigError] = {}
    for name, options in settings.memory.providers.items():
        if not options.enabled:
            continue
        if len(providers) >= limit:
            problem = SHELL.compose("too_many_services", name=name, limit=limit)
            if providers:
                remedy = SHELL.compose("switch_service_off", name=providers[-1].name)
                problem += f" {remedy}"
            problems[name] = ConfigError(problem)
            continue
        try:
            provider = plugins.create_provider(name, options.model_extra or {}, variables)
        except ConfigError as error:
            problems[name] = error
        else:
            provider.mode = options.mode
            providers.append(provider)
    return providers, problems
