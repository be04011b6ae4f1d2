"""Every noun of the store fills its role, and nothing but its role."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from core import ports
from core.review.review import Versions
from core.store.actions import Actions
from core.store.inbox import Inbox
from core.store.jobs import Jobs
from core.store.notes import Notes
from core.store.outbox import Outbox
from core.store.people import People
from core.store.sessions import Conversations, Transcripts
from core.store.sqlite.database import Database
from tests.fixtures.clock import SteadyClock

NOUNS = (Actions, Conversations, Inbox, Jobs, Notes, Outbox, People, Transcripts)


def _methods(noun: type) -> dict[str, Any]:
    return {name: value for name, value in vars(noun).items() if inspect.isfunction(value) and not name.startswith("_")}


@pytest.mark.parametrize("noun", NOUNS)
def test_a_noun_has_the_methods_of_its_role_with_the_same_parameters(noun: type) -> None:
    role = _methods(Versions if noun is Notes else getattr(ports, noun.__name__))
    assert {name: list(inspect.signature(method).parameters.values()) for name, method in _methods(noun).items()} == {
        name: list(inspect.signature(method).parameters.values()) for name, method in role.items()
    }


def test_the_type_checker_agrees(database: Database, clock: SteadyClock) -> None:
    actions: ports.Actions = Actions(database, clock)
    conversations: ports.Conversations = Conversations(database, clock)
    inbox: ports.Inbox = Inbox(database, clock)
    jobs: ports.Jobs = Jobs(database)
    notes: Versions = Notes(database)
    outbox: ports.Outbox = Outbox(database, clock)
    people: ports.People = People(database)
    transcripts: ports.Transcripts = Transcripts(database)
    filled = (actions, conversations, inbox, jobs, notes, outbox, people, transcripts)
    assert tuple(type(noun) for noun in filled) == NOUNS
