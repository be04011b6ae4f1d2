"""A command about notes that is done again: after a crash, or since something was forgotten while
it was under way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.store.notes import Author, Notes
from core.types import Account, Address, ErasureEpoch, Scope
from tests.fixtures.forgetting import left_of
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.note_edits import add_note
from tests.fixtures.samples import replacing

pytestmark = pytest.mark.slow

OWNER = Scope.account("telegram", "42")
OWNERS = frozenset((OWNER,))


def typed(message_id: str) -> Author:
    """The owner, with a command of that name in his direct chat."""
    address = Address(platform="telegram", chat_id="42")
    return Author(
        origin="typed",
        account=Account(platform="telegram", user_id="42"),
        address=address,
        external_id=message_id,
    )


async def test_repeated_note_command_after_a_crash_says_that_it_is_noted(home: Path) -> None:
    async with open_gateway(home) as harness:
        notebook = harness.services.notebook
        await add_note(notebook, OWNER, OWNERS, "memory", "likes tea", typed("77"))
        said = (await harness.say("/memory add likes tea", message_id="77")).text
        assert said == "Noted: “likes tea”. MEMORY.md is 0 % full, 9/2,200 characters."
        await notebook.apply(OWNER, OWNERS, "memory", [replacing("tea", "likes mate")], typed("78"))
        said = (await harness.say("/memory replace tea => likes mate", message_id="78")).text
        assert said.startswith("Now noted: “likes mate”.")
        assert (
            "noted already" in (await harness.say("/memory add likes mate", message_id="79")).text
        )
        assert len(await notebook.history(OWNERS)) == 2


async def test_redelivered_undo_of_a_note_change_is_not_applied_twice(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/memory add likes tea")
        await harness.say("/memory add likes mate")
        change = await harness.services.notebook.find_change(OWNERS)
        await harness.services.notebook.undo(change, OWNER, OWNERS, typed("80"))
        said = (await harness.say("/memory undo", message_id="80")).text
        assert said.startswith(f"Undone: change {change.id}. Removed: “likes mate”.")
        assert await harness.services.notebook.entries(OWNERS, "memory") == ["likes tea"]
        assert "Removed: “likes tea”" in (await harness.say("/memory undo", message_id="81")).text


class _Crossed(Notes):
    """Something is being erased as soon as it has been looked whether something is."""

    def __init__(self, harness: GatewayHarness) -> None:
        super().__init__(harness.services.database)
        self._corridor = harness
        self.erasing: asyncio.Task[KeptReply] | None = None

    async def check_epoch(self, epoch: ErasureEpoch | None) -> None:
        await super().check_epoch(epoch)
        if self.erasing is None:
            self.erasing = asyncio.create_task(self._corridor.say("yes"))
            while not await self._corridor.services.forgetting.erasures.list_unfinished():
                await asyncio.wait({self.erasing}, timeout=0.01)


async def test_note_added_during_an_erasure_is_logged_under_its_account_and_confirmed(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I moved to Zanzibar in May.")
        await harness.say("/forget Zanzibar")
        notes = harness.services.notebook._notes = _Crossed(harness)
        elsewhere = Address(platform="telegram", chat_id="42", thread_id="9")
        said = (await harness.say("/memory add likes tea", address=elsewhere)).text
        assert said.startswith("Noted: “likes tea”.")
        assert notes.erasing is not None
        assert "nothing of it is left" in (await notes.erasing).text
        (change,) = await harness.services.notebook.history(OWNERS)
        assert (change.action, change.account, change.address) == (
            "add",
            typed("1").account,
            elsewhere,
        )
        assert left_of("Zanzibar", harness.services.database.path) == []
