"""The house without its doors to the world: settings, state.db and what stands on it. The command line lives in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from config.settings import Settings
from core.appointments import Appointments
from core.memory.notebook import Notebook
from core.store.actions import Actions
from core.store.archive import Archive
from core.store.conversations import Conversations
from core.store.database import Database
from core.store.inbox import Inbox
from core.store.jobs import Jobs
from core.store.notes import Notes
from core.store.outbox import Outbox
from core.store.people import People
from core.store.recall import Recall
from core.store.transcripts import Transcripts
from core.types import Account, Scope

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
    transcripts: Transcripts
    recall: Recall
    people: People
    jobs: Jobs
    notes: Notes
    inbox: Inbox
    outbox: Outbox
    actions: Actions
    archive: Archive
    notebook: Notebook
    appointments: Appointments

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, on_change: Callable[[], None] = lambda: None) -> AsyncIterator[House]:
        """Opens state.db in the home, with the owner as the settings name him. `on_change` is called when a job was
        added or changed through this house. Raises StoreError."""
        clock = _WallClock()
        async with Database.open(settings.home / STATE) as database:
            people = People(database)
            await people.set_owner(
                [_account(key) for key in settings.owner.accounts],
                [Scope(key=f"room:{key}") for key in settings.owner.rooms],
            )
            jobs, notes = Jobs(database), Notes(database)
            limits = {"memory": settings.memory.memory_chars, "user": settings.memory.user_chars}
            yield cls(
                settings=settings,
                clock=clock,
                database=database,
                conversations=Conversations(database, clock),
                transcripts=Transcripts(database),
                recall=Recall(database, clock, settings.general.zone),
                people=people,
                jobs=jobs,
                notes=notes,
                inbox=Inbox(database, clock),
                outbox=Outbox(database, clock),
                actions=Actions(database, clock),
                archive=Archive(database),
                notebook=Notebook(settings.home, notes, clock, limits),
                appointments=Appointments(jobs, clock, settings.general.zone, on_change, settings.cron.max_jobs),
            )


def _account(key: str) -> Account:
    platform, _, user_id = key.partition(":")
    return Account(platform=platform, user_id=user_id)
