"""The house without its doors to the world: settings, state.db and what stands on it. The command line lives in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from config.settings import Settings
from core.memory.sync_forget import Copies
from core.notes.notebook import Notebook
from core.notes.owner_files import Charter
from core.privacy.files import Papers
from core.privacy.forgetting import Forgetting
from core.privacy.incognito import Incognito
from core.privacy.incognito_registry import Veil
from core.scheduling.appointments import Appointments
from core.search.recall import Recall
from core.store.actions import Actions
from core.store.approvals import Approvals
from core.store.erasure import Erasure
from core.store.fact_search import FactSearch
from core.store.facts import Facts
from core.store.inbox import Inbox
from core.store.incognito import Veils
from core.store.jobs import Jobs
from core.store.links import Links
from core.store.notes import Notes
from core.store.outbox import Outbox
from core.store.pending_notes import PendingNotes
from core.store.people import People
from core.store.personal_data import Holdings
from core.store.sessions import Conversations
from core.store.sqlite.compaction import Compaction
from core.store.sqlite.database import Database
from core.store.sync_queue import Errands
from core.store.sync_source import Turns
from core.store.transcripts import Transcripts
from core.store.usage import Calls
from core.transfer.archive import Archive
from core.types import Account, Scope
from core.usage.prices import Prices
from core.usage.report import Books

STATE = "state.db"


class _WallClock:
    """Fills the role Clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class House:
    """Everything that is kept, open."""

    settings: Settings
    clock: _WallClock
    database: Database
    conversations: Conversations
    incognito: Incognito
    veils: Veils
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
    holdings: Holdings
    calls: Calls
    notebook: Notebook
    charter: Charter
    appointments: Appointments
    books: Books
    papers: Papers
    forgetting: Forgetting

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, on_change: Callable[[], None] = lambda: None) -> AsyncIterator[House]:
        """Opens state.db in the home, with the owner as the settings name him. `on_change` is called when a job was
        added or changed through this house. Raises StoreError."""
        clock = _WallClock()
        async with Database.open(settings.home / STATE) as database:
            veil = Veil()
            people = People(database, veil)
            await people.set_owner(
                [_account(key) for key in settings.owner.accounts],
                [Scope(key=f"room:{key}") for key in settings.owner.rooms],
            )
            jobs, notes = Jobs(database), Notes(database)
            veils, conversations = Veils(database, clock), Conversations(database, clock)
            limits = {"memory": settings.memory.memory_chars, "user": settings.memory.user_chars}
            notebook = Notebook(settings.home, notes, clock, limits, PendingNotes(database))
            calls, papers = Calls(database), Papers(settings.home)
            prices = Prices(settings.usage.prices, settings.usage.currency)
            yield cls(
                settings=settings,
                clock=clock,
                database=database,
                conversations=conversations,
                incognito=Incognito(conversations, veil, veils),
                veils=veils,
                transcripts=Transcripts(database),
                recall=Recall(database, clock, settings.general.zone),
                people=people,
                links=Links(database),
                jobs=jobs,
                notes=notes,
                facts=Facts(database, clock),
                fact_search=FactSearch(database),
                inbox=Inbox(database, clock, veil),
                outbox=Outbox(database, clock),
                actions=Actions(database, clock),
                archive=Archive(database),
                holdings=Holdings(database),
                calls=calls,
                notebook=notebook,
                charter=Charter(settings.home, Approvals(database)),
                appointments=Appointments(jobs, clock, settings.general.zone, on_change, settings.cron.max_jobs),
                books=Books(calls, prices, clock, settings.general.zone),
                papers=papers,
                forgetting=Forgetting(
                    Erasure(database, clock),
                    Compaction(database),
                    notebook,
                    papers,
                    clock,
                    settings.general.zone,
                    [Copies(Errands(database, clock), Turns(database), clock, on_change)],
                ),
            )


def _account(key: str) -> Account:
    platform, _, user_id = key.partition(":")
    return Account(platform=platform, user_id=user_id)
