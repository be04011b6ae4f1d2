"""Settings, state.db and everything that stands on it, without platforms: what the command line works with too."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from config.settings import Settings
from core.errors import ConfigError, Refused
from core.memory.plugins import Plugins
from core.memory.provider import MemoryProvider
from core.notes.notebook import ALL_FILES, Notebook
from core.ports import Clock
from core.privacy.forgetting import Forgetting
from core.privacy.home_files import HomeFiles
from core.scheduling.appointments import Appointments
from core.search.recall import Recall
from core.skills.library import Skills
from core.store.actions import Actions
from core.store.archive import Archive
from core.store.epoch import EpochGuard
from core.store.facts import Facts
from core.store.incognito import IncognitoRegistry
from core.store.jobs import JobMessages, Jobs
from core.store.links import Links
from core.store.mailbox import Inbox, Outbox
from core.store.notes import FACT, SKILL, Notes, PendingNote
from core.store.people import TERMINAL, People
from core.store.removal import Removals
from core.store.rows import account_of, meta, set_meta
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.store.sync import SyncQueue
from core.store.usage import UsageLog
from core.types import LOCAL, Account, Address, ErasureEpoch, Scope
from gateway import texts

if TYPE_CHECKING:
    from core.models.claude import Claude
    from core.search.embeddings import EmbeddingRetriever


STATE = "state.db"
LOCK = "gateway.lock"
PLATFORMS = "platforms"
"""Key of `state_meta`: how the platforms of the running gateway stand."""


class WallClock:
    """Fills the role Clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class Services:
    """Everything that is kept. `on_change` is called when the scheduler or the outbox has something new from here.
    `restored`: what there is to say of a backup that was put back; empty where there is none."""

    def __init__(self, settings: Settings, database: Database, on_change: Callable[[], None]) -> None:
        clock, zone = WallClock(), settings.general.zone
        registry = IncognitoRegistry()
        limits = {"memory": settings.memory.memory_chars, "user": settings.memory.user_chars}
        self.settings = settings
        self.on_change = on_change
        self.restored = ""
        self.zone = ZoneInfo(zone)
        self.clock = clock
        self.database = database
        self.conversations = Conversations(database, clock, registry)
        self.embeddings = embeddings(settings, database)
        self.recall = Recall(database, clock, zone, self.embeddings)
        self.people = People(database, registry)
        self.links = Links(database, settings.access.people)
        self.removals = Removals(database)
        self.jobs = Jobs(database, settings.limits.jobs, settings.limits.scheduled_questions)
        self.usage_log = UsageLog(database, settings.usage, zone, settings.limits)
        self.appointments = Appointments(self.jobs, clock, zone, on_change, self._question_every_s)
        self.appointments.usage_log = self.usage_log
        self.facts = Facts(database, clock)
        self.notes = Notes(database)
        self.notebook = Notebook(settings.home, self.notes, clock, limits)
        self.home_files = HomeFiles(settings.home)
        self.inbox = Inbox(database, clock, registry)
        kept = JobMessages(clock=clock, incognito=registry, model=settings.model.chat)
        self.outbox = Outbox(database, clock, kept.keep)
        self.actions = Actions(database, clock)
        self.archive = Archive(database)
        self.sync_queue = SyncQueue(database, clock, on_change)
        self.skills = Skills(settings.home, self.notes, self.notebook.review, clock, settings.skills)
        forget_copies = self.sync_queue.forget
        self.forgetting = Forgetting(database, self.notebook, self.home_files, clock, zone, forget_copies, self.skills)
        self.epoch_guard = EpochGuard(database)

    async def _question_every_s(self, account: Account | None) -> float | None:
        if account is None:
            return None
        standing = await self.people.standing(account, Scope.account(account.platform, account.user_id))
        if standing.is_owner:
            return 0.0
        settings = self.settings
        may_ask = settings.limits.room_questions or standing.is_let_in(account, settings.access.people)
        return settings.limits.question_every_s if may_ask else None

    async def approve(self, note: PendingNote, scopes: frozenset[Scope], epoch: ErasureEpoch | None = None) -> str:
        """Keeps what has waited for a yes; a sentence on it. Raises Refused when it does not fit any more."""
        if note.is_draft and await self.notebook.is_stale(note, scopes):
            await self.notes.drop(note.id)
            await self.notes.reviewed(note.scope, self.clock.now(), mark=0)
            raise Refused(texts.DRAFT_STALE)
        if note.target in ALL_FILES:
            said = await self.notebook.approve(note, scopes, epoch)
        elif note.target == SKILL:
            said = await self.skills.approve(note, scopes, epoch)
        elif note.target != FACT:
            said = await self.appointments.approve(note, epoch)
        else:
            # Its rules take a while to load, which few commands need.
            from core.facts.claims import Dictation

            said = await Dictation(self.facts, self.zone).approve(note, epoch)
        await self.notes.drop(note.id)
        return said

    async def private_place(self, scope: Scope, not_on: str = "") -> tuple[Address, Scope] | None:
        """Where the person of `scope`, of a room the owner, last talked to me in private: on a platform that is
        connected, other than `not_on`, else at the terminal."""
        platforms = {*self.settings.platforms, TERMINAL.platform} - {not_on}
        found = await self.people.private(LOCAL if scope.is_room else scope)
        return next((place for place in found if place[0].platform in platforms), None)

    async def note_platforms(self, states: Mapping[str, str]) -> None:
        """Keeps what /status says of the platforms and of memories that are out of order; so do commands of a shell."""
        await self.database.write(lambda connection: set_meta(connection, PLATFORMS, json.dumps(dict(states))))

    async def platforms(self) -> Mapping[str, str]:
        """What the running gateway has noted last; empty where none runs."""
        noted = await self.database.read(lambda connection: meta(connection, PLATFORMS))
        return json.loads(noted or "{}") if is_running(self.settings.home) else {}

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, on_change: Callable[[], None] = lambda: None) -> AsyncIterator[Services]:
        """Opens state.db in the home, with the owner that the settings name. Raises StoreError."""
        async with Database.open(settings.home / STATE) as database:
            services = cls(settings, database, on_change)
            accounts = filter(None, map(account_of, settings.owner.accounts))
            await services.people.set_owner([*accounts], [Scope(key=f"room:{key}") for key in settings.owner.rooms])
            repeated, lost = await services.forgetting.repeat()
            said = [texts.REPEATED.format(erasures=texts.counted(repeated, "erasure"))] if repeated else []
            said += [texts.NOT_REPEATED.format(days=texts.listed(lost))] if lost else []
            services.restored = " ".join(said)
            try:
                yield services
            finally:
                if services.embeddings is not None:
                    await services.embeddings.close()


def is_running(home: Path) -> bool:
    """Whether a gateway or a chat uses this home now."""
    if not (home / LOCK).exists():
        return False
    from filelock import FileLock, Timeout

    try:
        with FileLock(home / LOCK).acquire(timeout=0):
            return False
    except Timeout:
        return True


def client(settings: Settings, clock: Clock) -> Claude | None:
    """A client for any model of the configured server; the caller closes it."""
    if not settings.has_model:
        return None
    # The vendor's package takes a second or two to load: only who needs it waits.
    from core.models.claude import Claude

    key, options = settings.anthropic_api_key, settings.model
    secret = key.get_secret_value() if key else None
    return Claude(secret, settings.anthropic_base_url, clock, options.tries, options.patience_s)


def embeddings(settings: Settings, database: Database) -> EmbeddingRetriever | None:
    """Where mneme.toml names a server of embeddings."""
    options = settings.recall.embeddings
    if not options.url:
        return None
    # Only who needs it loads an HTTP client.
    from core.memory.http import JsonService
    from core.search.embeddings import EmbeddingRetriever

    secret = settings.variables.get(options.key)
    headers = {"Authorization": f"Bearer {secret.get_secret_value()}"} if secret else {}
    service = JsonService("embeddings", options.url, headers)
    missing = "" if secret else options.key
    return EmbeddingRetriever(database, service, options.model, options.query_prefix, options.passage_prefix, missing)


def chosen(settings: Settings) -> tuple[list[MemoryProvider], Mapping[str, str]]:
    """The providers that are on, in the order of mneme.toml, and by name what is wrong with the others."""
    plugins = Plugins(settings.home)
    variables = {key: secret.get_secret_value() for key, secret in settings.variables.items()}
    limit = settings.memory.max_external
    found: list[MemoryProvider] = []
    wrong: dict[str, str] = {}
    for name, table in [one for one in settings.memory.providers.items() if one[1].enabled]:
        if len(found) >= limit:
            off = f"The memory {name} is off: memory.max_external lets {limit} be on at a time."
            wrong[name] = f"{off} Set enabled = false for another one, or raise it."
            continue
        try:
            found.append(plugins.made(name, table.model_extra or {}, variables))
            found[-1].mode = table.mode
        except ConfigError as error:
            wrong[name] = str(error)
    return found, wrong
