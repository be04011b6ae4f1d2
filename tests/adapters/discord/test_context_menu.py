"""“Remember this” in the menu of a message: announced, chosen, and whose words it then are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest

from adapters.discord.commands import command_payloads
from core.store.mailbox import Inbox
from core.types import Command, Quote
from gateway.commands.facts import FactCommands
from tests.fixtures.clock import SteadyClock
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.discord_schema import DiscordSchema
from tests.fixtures.discord_setup import checked, listening, make
from tests.fixtures.fake_router import FakeRouter

pytestmark = pytest.mark.slow

SPEC, _ = FactCommands.specs
SNAPSHOT: dict[str, Any] = {
    "type": 0, "content": "I live in Rome", "mentions": [], "mention_roles": [], "attachments": [], "embeds": [],
    "timestamp": "2026-11-20T12:00:00+00:00", "edited_timestamp": None, "flags": 0, "components": [],
}  # fmt: skip
PUT = ("PUT", "/applications/{application_id}/commands")


@pytest.fixture
async def api(clock: SteadyClock) -> AsyncIterator[DiscordApi]:
    async with checked(DiscordApi(clock)) as double:
        yield double


@pytest.fixture
async def router(api: DiscordApi, clock: SteadyClock, inbox: Inbox) -> AsyncIterator[FakeRouter]:
    router = FakeRouter()
    async with listening(make(api, inbox, clock), router, api, (SPEC,)):
        await api.wait_for(lambda: api.commands)
        yield router


def test_context_menu_command_matches_discords_schema() -> None:
    assert DiscordSchema().request(*PUT, command_payloads(SPEC)) == {}
    assert [payload["name"] for payload in command_payloads(SPEC)] == ["remember", "Remember this"]


async def test_remember_this_menu_on_the_callers_own_message_passes_its_text_unchanged(
    api: DiscordApi, router: FakeRouter
) -> None:
    assert [(command["type"], command["name"]) for command in api.commands] == [
        (1, "remember"),
        (3, "Remember this"),
    ]
    ana = api.user("Ana")
    channel = await api.channel("general")
    message = await api.user_says(channel, "I live in Porto", ana)
    router.answering("noted")
    await api.choose(channel, ana, message, "Remember this")
    await api.wait_for(lambda: [inbound for inbound in router.seen if inbound.is_interaction])
    inbound = next(inbound for inbound in router.seen if inbound.is_interaction)
    assert inbound.command == Command(name="remember", arguments="I live in Porto")
    assert (inbound.text, inbound.reply_to) == ("/remember I live in Porto", message)
    assert not router.errors


async def test_remember_this_menu_on_another_persons_message_adds_the_authors_name(
    api: DiscordApi, router: FakeRouter
) -> None:
    ana, bo = api.user("Ana"), api.user("Bo")
    channel = await api.channel("general")
    message = await api.user_says(channel, "I live in Faro", bo)
    router.answering("noted")
    await api.choose(channel, ana, message, "Remember this")
    await api.wait_for(lambda: [inbound for inbound in router.seen if inbound.is_interaction])
    inbound = next(inbound for inbound in router.seen if inbound.is_interaction)
    assert inbound.command == Command(name="remember", arguments="Bo: I live in Faro")
    assert inbound.sender.id == ana


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ("", {"message_snapshots": [{"message": SNAPSHOT}]}, "Forwarded: I live in Rome"),
        ("I am a hook", {"webhook_id": "42"}, "Ana: I am a hook"),
        ("Bo has the key <@!999999999999999999>", {}, "Bo has the key <@!999999999999999999>"),
        ("", {}, ""),
    ],
)
async def test_remember_this_menu_marks_text_that_the_caller_did_not_write(
    api: DiscordApi, router: FakeRouter, text: str, more: dict[str, Any], said: str
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    message = await api.user_says(channel, text, ana, is_told=False, **more)
    await api.choose(channel, ana, message, "Remember this")
    await api.wait_for(lambda: router.seen)
    assert router.seen[0].command == Command(name="remember", arguments=said)


async def test_message_remembered_by_the_discord_menu_keeps_its_forward_or_reply_origin(
    api: DiscordApi, router: FakeRouter
) -> None:
    ana = api.user("Ana")
    direct = api.dm(ana)
    where = {"type": 1, "channel_id": direct, "message_id": "1"}
    router.answering("ok")
    snapshots = [{"message": SNAPSHOT}]
    passed = await api.user_says(
        direct, "", ana, message_snapshots=snapshots, message_reference=where
    )
    said = await api.user_says(direct, "I live in Porto", ana)
    ours = await api.wait_for(
        lambda: [m["id"] for m in api.messages(direct) if m["author"]["id"] == api.bot_id]
    )
    for text, answered in (("he does", passed), ("I do", said), ("ok?", ours[0])):
        await api.user_says(direct, text, ana, reply_to=answered)
    await api.wait_for(lambda: len(router.seen) == 5)
    seen = {inbound.text: (inbound.origin, inbound.quote) for inbound in router.seen}
    at = datetime.fromisoformat(SNAPSHOT["timestamp"])
    assert seen["I live in Rome"] == ("forwarded", Quote(kind="forward", at=at)), (
        "Discord does not say whose it was"
    )
    assert seen["I live in Porto"] == ("typed", None)
    answers = {
        text: quoted for text, (_, quoted) in seen.items() if quoted and quoted.kind == "reply"
    }
    assert {
        text: (quoted.text, quoted.name, quoted.is_ours) for text, quoted in answers.items()
    } == {
        "he does": ("I live in Rome", "", False),
        "I do": ("I live in Porto", "Ana", False),
        "ok?": ("ok", "Mneme", True),
    }
    # Not known to the client any more, and not told: its id is.
    await api.user_says(direct, "that?", ana, type=19, message_reference={**where, "type": 0})
    await api.wait_for(lambda: len(router.seen) == 6)
    assert (router.seen[5].reply_to, router.seen[5].quote) == ("1", None)
