"""What a group refuses to a member: the owner's decisions, and other people's notes and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.texts.catalog import ENGLISH as texts
from tests.fixtures.media_samples import make_photo
from tests.gateway.chats.test_setup import ADMIN, GROUP, MEMBER, gateway, say

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("who", [ADMIN, "7"])
async def test_note_of_a_group_is_changed_only_by_its_author_and_the_owner(
    home: Path, who: str
) -> None:
    async with gateway(home) as harness:
        await say(harness, "/memory add The rehearsal is on Monday", MEMBER)
        await say(harness, "/memory approve 1", "42")
        for command in ("remove rehearsal", "replace rehearsal => The rehearsal is on Friday"):
            assert await say(harness, f"/memory {command}", who) == texts.AUTHOR_CHANGES
        assert await say(harness, "/memory undo", who) == texts.AUTHOR_UNDOES
        assert await say(harness, "/memory pin rehearsal", who) == texts.OWNER_DECIDES
        assert "on Monday" in await say(harness, "/memory", MEMBER)
        await say(harness, "/memory remove rehearsal", MEMBER)
        assert "on Monday" not in await say(harness, "/memory", MEMBER)


async def test_waiting_note_of_a_group_is_approved_only_by_the_owner(home: Path) -> None:
    async with gateway(home) as harness:
        await say(harness, "/memory add The rehearsal is on Monday", MEMBER)
        assert await say(harness, "/memory approve 1", MEMBER) == texts.OWNER_DECIDES
        assert await say(harness, "/memory reject 1", ADMIN) == texts.OWNER_DECIDES


async def test_file_of_a_group_is_removed_only_by_its_sender_and_the_owner(home: Path) -> None:
    async with gateway(home, "A picture.", "Another.") as harness:
        for _ in range(2):
            await harness.send(make_photo(), "p.jpg", "photo", "Look", who=MEMBER, **GROUP)
        assert await say(harness, "/files remove 1", ADMIN) == texts.FILES_OF_OTHERS
        assert "is removed" in await say(harness, "/files remove 1", MEMBER)
        assert "is removed" in await say(harness, "/files remove 2", "42")
        assert (await harness.services.files.measure_usage()).files == 0


async def test_calendar_of_the_owner_is_shown_to_no_group(home: Path) -> None:
    async with gateway(home) as harness:
        for who in (MEMBER, ADMIN, "42"):
            assert await say(harness, "/agenda", who) == texts.AGENDA_OWNER_ONLY
