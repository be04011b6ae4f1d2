"""The model chooses one link per website, conversation and day, also after a restart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from core.review.carried_out import LinkChoices
from core.review.searches import list_joined_sites
from core.store.engine import Database
from core.types import Address, Scope, Sender, Session, ToolContext

HOST = "https://a.example"
SCOPE = Scope.account("telegram", "42")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def context_of(
    session_id: int, message_id: int, root_id: int | None = None, now: datetime = NOW
) -> ToolContext:
    session = Session(
        id=session_id,
        root_id=root_id,
        address=Address(platform="telegram", chat_id="42"),
        scope=SCOPE,
        started_at=NOW,
    )
    return ToolContext(
        session=session,
        scope=SCOPE,
        scopes=frozenset((SCOPE,)),
        sender=Sender(id="42", name="Ana"),
        now=now,
        message_id=message_id,
    )


@dataclass(frozen=True)
class Chooser:
    """Chooses links as the gate does."""

    database: Database

    async def take(
        self, url: str, context: ToolContext, requests: Sequence[tuple[str, str]] = ()
    ) -> bool:
        sites = list_joined_sites(url, requests)
        return await LinkChoices(self.database).take(url, sites, context)


@pytest.fixture
def choices(database: Database) -> Chooser:
    return Chooser(database)


async def test_only_one_link_of_a_site_is_chosen_in_a_conversation(choices: Chooser) -> None:
    assert await choices.take(f"{HOST}/x", context_of(1, 7))
    assert await choices.take(f"{HOST}/x", context_of(1, 7))
    assert not await choices.take(f"{HOST}/y", context_of(1, 7))
    assert not await choices.take("https://A.example/x", context_of(1, 8))
    assert not await choices.take("https://s1.a.example:8080/x", context_of(1, 8))
    assert await choices.take("https://b.example/y", context_of(1, 8))
    assert await choices.take(f"{HOST}/y", context_of(2, 9))


async def test_redirect_to_another_site_gives_no_further_choice_of_a_link(
    choices: Chooser,
) -> None:
    """Page one is on a.example. Its chosen link redirects to b.example, which has three links."""
    assert await choices.take(f"{HOST}/1", context_of(1, 7))
    requests = [(f"{HOST}/1", "https://b.example/"), ("https://b.example/", "https://c.example/")]
    assert not await choices.take("https://b.example/2", context_of(1, 7), requests)
    assert not await choices.take("https://c.example/2", context_of(1, 8), requests)
    assert await choices.take("https://d.example/2", context_of(1, 8), requests)
    assert await choices.take("https://b.example/2", context_of(2, 7), requests)


async def test_chosen_link_is_remembered_after_a_restart_and_a_compression(
    database: Database,
) -> None:
    assert await Chooser(database).take(f"{HOST}/1", context_of(1, 7))
    # After a restart, the record is read from the store. A compression begins session 2.
    restarted = Chooser(database)
    assert not await restarted.take(f"{HOST}/2", context_of(1, 8))
    assert not await restarted.take(f"{HOST}/2", context_of(2, 9, root_id=1))
    assert await restarted.take(f"{HOST}/1", context_of(2, 7, root_id=1))


async def test_record_of_a_chosen_link_is_deleted_after_a_day_and_names_no_address(
    choices: Chooser, database: Database
) -> None:
    assert await choices.take(f"{HOST}/1", context_of(1, 7))
    assert await choices.take("https://b.example/1", context_of(1, 7))
    rows = await database.fetch_all("SELECT key, value FROM state_meta WHERE key LIKE 'link%'")
    assert len(rows) == 2
    assert "example" not in str([tuple(row) for row in rows])

    later = NOW + timedelta(hours=23)
    assert not await choices.take(f"{HOST}/2", context_of(1, 8, now=later))
    later = NOW + timedelta(hours=25)
    assert await choices.take(f"{HOST}/2", context_of(1, 9, now=later))
    rows = await database.fetch_all("SELECT key FROM state_meta WHERE key LIKE 'link%'")
    assert len(rows) == 1
