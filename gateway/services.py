"""Settings, state.db and everything that stands on it, without platforms and models: what the command line works with.

The client of the model's server, as the settings describe it; none where they name neither key nor server.
The memories that the settings name, made; with a sentence for each that cannot be had.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from config.settings import ProviderOptions, Settings
from core.errors import ConfigError
from core.facts.dictation import Dictation
from core.memory.plugins import Plugins
from core.memory.provider import MemoryProvider
from core.memory.sync import Sync
from core.notes.notebook import Notebook
from core.notes.owner_files import OwnerFiles
from core.ports import Clock
from core.privacy.forgetting import Forgetting, HomeFiles
from core.privacy.incognito import IncognitoConversations
from core.scheduling.appointments import Appointments
from core.search.recall import Recall
from core.store.actions import Actions
from core.store.archive import Archive
from core.store.fact_search import FactSearch
from core.store.facts import Facts
from core.store.inbox import Inbox
from core.store.incognito import IncognitoMarks, IncognitoRegistry
from core.store.jobs import Jobs
from core.store.links import Links
from core.store.notes import Notes, PendingNotes
from core.store.outbox import Outbox
from core.store.people import People
from core.store.personal_data import PersonalData
from core.store.sessions import Transcripts
from core.store.sqlite.database import Database
from core.store.sync import SyncQueue, SyncSource
from core.store.usage import UsageLog
from core.types import Account, Scope
from core.usage.report import Prices, UsageReport

if TYPE_CHECKING:
    from core.models.claude import Claude


STATE = "state.db"


class WallClock:
    """Fills the role Clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Services:
    """Everything that is kept, open."""

    settings: Settings
    clock: WallClock
    database: Database
    conversations: IncognitoConversations
    incognito_marks: IncognitoMarks
    transcripts: Transcripts
    recall: Recall
    people: People
    links: Links
    jobs: Jobs
    notes: Notes
    facts: Facts
    fact_search: FactSearch
    inbox: Inbox
    outbox: Outbox
    actions: Actions
    archive: Archive
    personal_data: PersonalData
    usage_log: UsageLog
    notebook: Notebook
    owner_files: OwnerFiles
    appointments: Appointments
    usage_report: UsageReport
    home_files: HomeFiles
    forgetting: Forgetting

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, on_change: Callable[[], None] = lambda: None) -> AsyncIterator[Services]:
        """Opens state.db in the home, with the owner as the settings name him. `on_change` is called when a job was
        added or changed here. Raises StoreError."""
        clock = WallClock()
        async with Database.open(settings.home / STATE) as database:
            incognito = IncognitoRegistry()
            people = People(database, incognito)
            await people.set_owner(
                [_account(key) for key in settings.owner.accounts],
                [Scope(key=f"room:{key}") for key in settings.owner.rooms],
            )
            jobs, notes = Jobs(database), Notes(database)
            marks = IncognitoMarks(database, clock)
            limits = {"memory": settings.memory.memory_chars, "user": settings.memory.user_chars}
            facts = Facts(database, clock)
            dictation = Dictation(facts, settings.general.zone)
            notebook = Notebook(settings.home, notes, clock, limits, PendingNotes(database), dictation.approve)
            usage_log, home_files = UsageLog(database), HomeFiles(settings.home)
            prices = Prices(settings.usage.prices, settings.usage.currency)
            yield cls(
                settings=settings,
                clock=clock,
                database=database,
                conversations=IncognitoConversations(database, clock, incognito, marks),
                incognito_marks=marks,
                transcripts=Transcripts(database),
                recall=Recall(database, clock, settings.general.zone),
                people=people,
                links=Links(database),
                jobs=jobs,
                notes=notes,
                facts=facts,
                fact_search=FactSearch(database),
                inbox=Inbox(database, clock, incognito),
                outbox=Outbox(database, clock),
                actions=Actions(database, clock),
                archive=Archive(database),
                personal_data=PersonalData(database),
                usage_log=usage_log,
                notebook=notebook,
                owner_files=OwnerFiles(settings.home),
                appointments=Appointments(jobs, clock, settings.general.zone, on_change, settings.cron.max_jobs),
                usage_report=UsageReport(usage_log, prices, clock, settings.general.zone),
                home_files=home_files,
                forgetting=Forgetting(
                    database,
                    notebook,
                    home_files,
                    clock,
                    settings.general.zone,
                    [Sync(SyncQueue(database, clock), SyncSource(database), clock, on_change)],
                ),
            )


def _account(key: str) -> Account:
    platform, _, user_id = key.partition(":")
    return Account(platform=platform, user_id=user_id)


def client(settings: Settings, clock: Clock) -> Claude | None:
    """A client that the caller closes. It serves any model of that server, by the name in the request."""
    if settings.anthropic_api_key is None and settings.anthropic_base_url is None:
        return None
    # The vendor's package takes a second or two to load: only who needs it waits.
    from core.models.claude import Claude

    key = settings.anthropic_api_key
    return Claude(
        api_key=key.get_secret_value() if key else None,
        base_url=settings.anthropic_base_url,
        clock=clock,
        tries=settings.model.tries,
        patience_s=settings.model.patience_s,
    )


def chosen(settings: Settings) -> tuple[list[MemoryProvider], list[str]]:
    """The providers that are on, in the order of mneme.toml, and what is wrong with the others."""
    found, wrong = examined(settings)
    return found, list(wrong.values())


def examined(settings: Settings) -> tuple[list[MemoryProvider], Mapping[str, str]]:
    """The providers that are on, in the order of mneme.toml, and by name what is wrong with the others."""
    plugins = Plugins(settings.home)
    found: list[MemoryProvider] = []
    wrong: dict[str, str] = {}
    for name, table in settings.memory.providers.items():
        if not table.enabled:
            continue
        if len(found) >= settings.memory.max_external:
            wrong[name] = (
                f"The memory {name} is off: no more than {settings.memory.max_external} may be on at a time, and "
                f"{', '.join(one.name for one in found) or 'that is none'} comes first. Set enabled = false for one of "
                "them, or raise memory.max_external."
            )
            continue
        try:
            found.append(_made(plugins, settings, name, table))
        except ConfigError as error:
            wrong[name] = str(error)
    return found, wrong


def _made(plugins: Plugins, settings: Settings, name: str, table: ProviderOptions) -> MemoryProvider:
    variables = {key: secret.get_secret_value() for key, secret in settings.variables.items()}
    provider = plugins.made(name, table.model_extra or {}, variables)
    provider.mode = table.mode
    provider.sync_every_turns = table.sync_every_turns
    return provider
