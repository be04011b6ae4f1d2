"""Messages that are older than the settings allow are erased, after the owner was told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from core.store.rows import set_meta
from core.store.sqlite.copying import copy_database
from core.types import Address, Scope
from gateway.upkeep.retention import ANNOUNCED_KEY, NOTICE_PERIOD, RetentionKeeper
from tests.end_to_end.test_media import kept_files
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.media_samples import make_photo

pytestmark = pytest.mark.slow

OPTIONS = "[retention]\ndays = 30\n"
LONG_NOTE = "The ferry to the northern islands is painted green and white every spring"
GROUP = {
    "address": Address(platform="telegram", chat_id="-5"),
    "scope": Scope.group("telegram", "-5"),
}


@asynccontextmanager
async def talked(home: Path, options: str = OPTIONS) -> AsyncIterator[GatewayHarness]:
    """A home with old and new messages, whose clock can be moved."""
    async with open_gateway(home, options=f'rooms = ["telegram:-5"]\n{options}') as harness:
        await harness.say("The old ferry left at nine")
        await harness.say("/memory add The ferry is green")
        await harness.say("/remind every day at 9 feed the albatross")
        await harness.say("The member keeps bees", "7")
        await harness.say("The group likes tea", "7", is_direct=False, **GROUP)
        yield harness


def keeper_of(harness: GatewayHarness, days: float) -> tuple[RetentionKeeper, SteadyClock]:
    """The keeper of a gateway whose messages were said so many days ago."""
    clock = SteadyClock(harness.services.clock.now() + timedelta(days=days))
    return RetentionKeeper(harness.services, clock), clock


async def run(keeper: RetentionKeeper) -> None:
    while await keeper.tend():
        pass


async def texts_of(harness: GatewayHarness) -> str:
    rows = await harness.services.database.fetch_all(
        "SELECT text FROM messages UNION ALL SELECT text FROM jobs UNION ALL "
        "SELECT content FROM facts UNION ALL SELECT COALESCE(after, '') FROM note_changes",
        {},
    )
    return "\n".join(row[0] for row in rows)


async def notices_of(harness: GatewayHarness) -> list[str]:
    rows = await harness.services.database.fetch_all(
        "SELECT payload FROM outbox WHERE key LIKE 'retention:%'", {}
    )
    return [row[0] for row in rows]


async def test_owner_is_told_a_day_before_the_first_run(home: Path) -> None:
    async with talked(home) as harness:
        keeper, clock = keeper_of(harness, days=31)
        await run(keeper)
        (notice,) = await notices_of(harness)
        assert "I erase messages that are older" in notice
        assert "old ferry" in await texts_of(harness)
        clock.advance(hours=23)
        await run(keeper)
        assert "old ferry" in await texts_of(harness)
        clock.advance(hours=2)
        await run(keeper)
        texts = await texts_of(harness)
        assert "old ferry" not in texts
        assert "bees" not in texts
        assert "tea" not in texts
        assert len(await notices_of(harness)) == 1


async def test_time_of_the_announcement_is_in_the_zone_of_the_owner(home: Path) -> None:
    async with talked(home) as harness:
        await harness.say("/timezone Tokyo")
        keeper, clock = keeper_of(harness, days=31)
        await run(keeper)
        (notice,) = await notices_of(harness)
        moment = (clock.now() + NOTICE_PERIOD).astimezone(ZoneInfo("Asia/Tokyo"))
        assert f"{moment:%H:%M}" in notice


async def test_retention_neither_tells_nor_erases_while_all_messages_are_new(home: Path) -> None:
    async with talked(home) as harness:
        keeper, clock = keeper_of(harness, days=10)
        for _ in range(3):
            await run(keeper)
            clock.advance(days=2)
        assert await notices_of(harness) == []
        assert "old ferry" in await texts_of(harness)


async def test_period_of_a_group_is_announced_with_its_name_and_does_not_delay_others(
    home: Path,
) -> None:
    async with talked(home) as harness:
        keeper, clock = keeper_of(harness, days=31)
        await run(keeper)
        clock.advance(hours=20)
        await harness.services.chat_rules.save("telegram:-5", retention_days=5)
        await run(keeper)
        _, notice = await notices_of(harness)
        assert "`telegram:-5`" in notice
        assert "mneme.toml" not in notice
        clock.advance(hours=5)
        await run(keeper)
        texts = await texts_of(harness)
        assert "old ferry" not in texts
        assert "tea" in texts
        clock.advance(days=1)
        await run(keeper)
        assert "tea" not in await texts_of(harness)


async def test_announcement_by_an_earlier_version_still_counts(home: Path) -> None:
    async with talked(home) as harness:
        keeper, clock = keeper_of(harness, days=31)
        await harness.services.chat_rules.save("telegram:-5", retention_days=5)
        at = clock.now() - timedelta(days=2)
        options = {"days": 30, "scopes": {}, "chats": {"telegram:-5": 5}}
        value = json.dumps({"options": options, "at": at.isoformat()})
        await harness.services.database.write(
            lambda connection: set_meta(connection, ANNOUNCED_KEY, value)
        )
        await run(keeper)
        texts = await texts_of(harness)
        assert "old ferry" not in texts
        assert "tea" not in texts
        assert await notices_of(harness) == []


async def expire_all(harness: GatewayHarness, days: float = 31) -> None:
    """Let the messages expire, after the notice."""
    keeper, clock = keeper_of(harness, days)
    await run(keeper)
    clock.advance(days=2)
    await run(keeper)


async def test_active_reminders_and_pinned_notes_and_facts_stay(home: Path) -> None:
    async with talked(home) as harness:
        await harness.say("My name is Ana Albatross")
        await harness.say("/memory pin The ferry is green")
        services = harness.services
        facts = await services.database.fetch_all("SELECT id, content FROM facts", {})
        await services.database.execute("UPDATE facts SET is_pinned = 1")
        await expire_all(harness)
        texts = await texts_of(harness)
        assert "old ferry" not in texts
        assert "feed the albatross" in texts
        assert "The ferry is green" in texts
        remaining = await services.database.fetch_all("SELECT id, content FROM facts", {})
        assert facts
        assert [tuple(row) for row in remaining] == [tuple(row) for row in facts]
        notes = await services.notebook.entries(
            frozenset({Scope.account("telegram", "42")}), "memory"
        )
        assert list(notes) == ["The ferry is green"]


async def test_instructions_expire_unless_they_are_pinned_also_after_a_change(home: Path) -> None:
    async with talked(home) as harness:
        scopes = frozenset({Scope.account("telegram", "42")})
        notebook = harness.services.notebook
        await harness.say(f"/instructions set {LONG_NOTE}")
        await expire_all(harness)
        assert await notebook.entries(scopes, "instructions") == []
        await harness.say(f"/instructions set {LONG_NOTE}")
        await harness.say("/instructions pin")
        await harness.say(f"/instructions set {LONG_NOTE} Always.")
        (version,) = await notebook.versions(scopes, "instructions")
        assert version.is_pinned
        await expire_all(harness)
        assert await notebook.entries(scopes, "instructions") == [f"{LONG_NOTE} Always."]


async def test_note_and_fact_that_came_from_expired_messages_go_unless_pinned(home: Path) -> None:
    async with talked(home) as harness:
        await harness.say("My name is Ana Albatross")
        await harness.say(f"/memory add {LONG_NOTE}")
        services = harness.services
        assert await services.database.fetch_all("SELECT id FROM facts", {})
        await expire_all(harness)
        assert LONG_NOTE not in await texts_of(harness)
        assert await services.database.fetch_all("SELECT id FROM facts", {}) == []


async def test_file_of_an_expired_message_is_deleted_with_it(home: Path) -> None:
    async with talked(home) as harness:
        await harness.send(make_photo(), "mill.jpg", "photo", "The old mill")
        assert kept_files(home)
        await expire_all(harness)
    assert kept_files(home) == []


async def test_only_the_scopes_that_the_settings_name_expire(home: Path) -> None:
    options = '[retention.scopes]\n"room:telegram:-5" = 30\nowner = 0\n'
    async with talked(home, options) as harness:
        await expire_all(harness)
        texts = await texts_of(harness)
        assert "tea" not in texts
        assert "old ferry" in texts
        assert "bees" in texts


async def test_newer_message_that_repeats_an_expired_one_stays(home: Path) -> None:
    async with talked(home) as harness:
        services = harness.services
        await services.database.execute(
            "UPDATE messages SET created_at = created_at - 40 * 86400 "
            "WHERE text = 'The old ferry left at nine'"
        )
        await harness.say("The old ferry left at nine")
        await expire_all(harness, days=0)
        rows = await services.database.fetch_all(
            "SELECT id FROM messages WHERE text = 'The old ferry left at nine'", {}
        )
        assert len(rows) == 1


def put_back(copy: Path, home: Path) -> None:
    for suffix in ("-wal", "-shm"):
        Path(f"{home}/state.db{suffix}").unlink(missing_ok=True)
    copy.replace(home / "state.db")


async def test_restored_backup_expires_again_what_had_expired(home: Path) -> None:
    copy = home.with_name("copy.db")
    async with talked(home) as harness:
        copy_database(home / "state.db", copy)
        await expire_all(harness)
        assert "old ferry" not in await texts_of(harness)
    put_back(copy, home)
    async with open_gateway(home, options=OPTIONS) as harness:
        assert "I erased again" in harness.services.restore_report
        assert "old ferry" not in await texts_of(harness)
