"""The record of a tool call is written in the transaction that carries the call out."""

from __future__ import annotations

import pytest

from core.store.engine import Connection, Database
from core.store.rows import set_meta
from core.store.sessions import Conversations
from core.store.tool_calls import CallOutcome, read_call_outcomes
from core.types import ErasureEpoch, ToolCallKey
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import opened


@pytest.fixture
async def epoch(database: Database, clock: SteadyClock) -> ErasureEpoch:
    """The epoch of a tool call in a new session."""
    session = await opened(Conversations(database, clock), "Hello")
    return ErasureEpoch("[]", 0, ToolCallKey(session.id, "call-1"))


async def list_outcomes(database: Database, epoch: ErasureEpoch) -> dict[str, CallOutcome]:
    assert epoch.call is not None
    session_id = epoch.call.session_id
    return await database.read(lambda connection: read_call_outcomes(connection, session_id))


@pytest.mark.parametrize("is_short", [True, False])
async def test_write_of_a_tool_call_records_the_call(
    database: Database, epoch: ErasureEpoch, is_short: bool
) -> None:
    await database.write(
        lambda connection: set_meta(connection, "a", "1"), epoch, is_short=is_short
    )
    assert await list_outcomes(database, epoch) == {"call-1": CallOutcome.DONE}


async def test_write_of_a_tool_call_that_changes_nothing_records_no_call(
    database: Database, epoch: ErasureEpoch
) -> None:
    await database.write(lambda connection: connection.execute("SELECT 1").fetchone(), epoch)
    assert await list_outcomes(database, epoch) == {}


async def test_write_of_a_tool_call_that_fails_records_no_call(
    database: Database, epoch: ErasureEpoch
) -> None:
    def fail(connection: Connection) -> None:
        set_meta(connection, "a", "1")
        raise LookupError

    with pytest.raises(LookupError):
        await database.write(fail, epoch)
    assert await list_outcomes(database, epoch) == {}
