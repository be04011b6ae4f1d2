"""A stranger is let in, in a chat or by the shell, and is answered: with the real process, on both
platforms."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from core.ports import Clock
from core.types import Account, Quote
from gateway.texts.catalog import ENGLISH as texts
from tests.fixtures.command_line import good
from tests.fixtures.forgetting import remains_of
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.scripted_model import ScriptedModel

pytestmark = pytest.mark.slow

STRANGER = 99


@dataclass
class LaterClock:
    """An hour from now."""

    clock: Clock

    def now(self) -> datetime:
        return self.clock.now() + timedelta(hours=1)


DAY = timedelta(days=1)
Read = Callable[[], list[str]]
T = TypeVar("T")
ADMITTED = texts.ADMITTED.replace("`", "")


def read(texts_of: Callable[[T], list[str]], place: T) -> list[str]:
    """What somebody reads in a chat; on Discord commands are shown by their Markdown."""
    return [text.replace("`", "") for text in texts_of(place)]


def code_in(said: Sequence[str]) -> Any:
    return re.findall("\n([A-Z0-9]{8})\n", said[0])[0]


async def two_strangers(live: LiveSystem) -> tuple[Read, Read, str, str]:
    """Somebody on each platform writes; what they read there, and their codes."""
    boris = live.discord.user("B\u043eris")
    channel = live.discord.dm(boris)
    live.telegram.user_says(STRANGER, "/start")
    live.telegram.user_says(STRANGER, "Is the ferry at nine?")
    live.telegram.user_says(STRANGER, "Hello?")
    await live.discord.user_says(channel, "Where is the kayak?", boris)
    telegram, discord = (
        partial(read, live.telegram.texts, STRANGER),
        partial(read, live.discord.said, channel),
    )
    await live.until(lambda: bool(telegram() and discord()) and not live.telegram.updates)
    return telegram, discord, code_in(telegram()), code_in(discord())


async def test_stranger_approved_while_mneme_runs_is_told_and_answered(home: Path) -> None:
    async with LiveSystem.open(home) as live:
        await live.start()
        live.tells_telegram("hello")
        await live.until(lambda: "You said: hello" in live.telegram.texts(PERSON))
        live.telegram.person(STRANGER, "Ana\u202e")
        telegram, discord, code, other = await two_strangers(live)
        assert "the person who runs me" in telegram()[0]
        marked = (
            "Ana\u2039U+202E\u203a (⚠ invisible characters;",
            "B\u043eris (⚠ letters of two alphabets;",
        )
        await live.until(lambda: all(one in str(live.telegram.texts(PERSON)) for one in marked))
        live.tells_telegram(f"/approve {code}")
        await live.until(lambda: telegram()[1:] == [ADMITTED, "You said: Is the ferry at nine?"])
        await asyncio.to_thread(good, home, "approve", other)
        await live.until(lambda: discord()[1:] == [ADMITTED, "You said: Where is the kayak?"])
        live.telegram.user_says(STRANGER, "Thank you")
        await live.until(lambda: telegram()[3:] == ["You said: Thank you"])
        assert live.query("SELECT * FROM pairings") == []


async def test_stranger_approved_while_mneme_is_down_is_answered_once_despite_kills(
    home: Path,
) -> None:
    may_answer = asyncio.Event()

    def answer(body: dict[str, Any]) -> ModelReply:
        return ModelReply.say("At nine, in the shed.", hold=may_answer)

    async with LiveSystem.open(home, MessagesApi(answer, key=KEY)) as live:
        await live.start()
        telegram, discord, code, other = await two_strangers(live)
        await live.kill()
        await asyncio.to_thread(good, home, "approve", code)
        await asyncio.to_thread(good, home, "approve", other)
        await live.start()
        await live.until(lambda: telegram()[1:2] == discord()[1:2] == [ADMITTED])
        # What was sent and is not known to be there yet is sent again, with a mark that says so.
        told = "SELECT count(*) FROM outbox WHERE key LIKE 'admitted:%' AND done_at IS NOT NULL"
        await live.until(
            lambda: live.query(told) == [(2,)] and live.query("SELECT * FROM pairings") == []
        )
        await live.kill()
        await live.start()
        may_answer.set()
        expected = [ADMITTED, "At nine, in the shed."]
        await live.until(lambda: telegram()[1:] == discord()[1:] == expected)
        unfinished = "SELECT count(*) FROM outbox WHERE done_at IS NULL"
        await live.until(lambda: live.query(unfinished) == [(0,)])
        await live.kill()
        await live.start()
        live.telegram.user_says(STRANGER, "/whoami")
        await live.until(lambda: len(telegram()) == 4)
        assert (telegram()[1:3], discord()[1:]) == (expected, expected)


async def test_start_prints_how_to_connect_until_the_owner_has_an_account(home: Path) -> None:
    async with LiveSystem.open(home) as live:
        (home / "mneme.toml").write_text(f"[owner]\ndiscord = [{live.discord_person}]\n")
        await live.start()
        live.tells_telegram("hello")
        await live.until(lambda: bool(live.telegram.texts(PERSON)))
        said = live.log()
        assert "https://t.me/mneme_bot" in said
        assert "`mneme approve CODE --owner`" in said
        assert "discord.com/users" not in said, "there somebody is named"
        code = code_in(live.telegram.texts(PERSON))
        await asyncio.to_thread(good, home, "approve", code, "--owner")
        await live.until(lambda: live.telegram.texts(PERSON)[1:] == [ADMITTED, "You said: hello"])
        await live.kill()
        (home / "mneme.toml").write_text("")
        await live.start()
        assert live.log().count("https://t.me/mneme_bot") == 1, (
            "an account approved at the command line stays"
        )
        assert live.log().count("https://discord.com/users/") == 1


async def stored(harness: GatewayHarness) -> str:
    """What state.db has of the requests to be let in."""
    return await harness.services.database.read(
        lambda connection: str([tuple(row) for row in connection.execute("SELECT * FROM pairings")])
    )


async def admitted(harness: GatewayHarness, code: str) -> list[str]:
    """What somebody reads once they are approved."""
    await harness.say(f"/approve {code}")
    await harness.admission.answer_approved([harness.platforms["telegram"]], DAY)
    await harness.turns.drain(5)
    told = []
    while due := await harness.services.outbox.list_due(harness.services.clock.now()):
        told += [
            item.answer.text
            for item in due
            if item.answer is not None and item.address.chat_id == "666"
        ]
        await asyncio.gather(*(harness.services.outbox.mark_done(item.key) for item in due))
    return told


async def test_account_named_in_the_settings_needs_no_pairing_code(home: Path) -> None:
    async with open_gateway(home) as harness:
        assert (await harness.say("hello")).text == "ok", "the owner's first message"
        assert (await harness.say("hello", "7")).text == "ok", "that of access.people"
        assert await stored(harness) == "[]"


async def test_waiting_message_of_a_stranger_older_than_a_day_is_refused_with_a_sentence(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        long_ago = harness.services.clock.now() - timedelta(days=3)
        code = (await harness.say("Is it Sunday?", "666", sent_at=long_ago)).text.split("`")[1]
        [told] = await admitted(harness, code)
        assert told == f"{texts.ADMITTED}\n\n{texts.away_notice(timedelta(days=3))}"
        assert model.requests == []
        assert await stored(harness) == "[]"


async def test_waiting_message_of_a_stranger_is_its_last_edit_and_no_command(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        code = (await harness.say("/remind me of the vault", "666")).text.split("`")[1]
        assert "vault" not in await stored(harness)
        answered = Quote(kind="reply", text="the vault of somebody else", name="Cy", user_id="9")
        await harness.say(
            "the ferry leaves at nine " * 1000, "666", message_id="5", quote=answered, reply_to="4"
        )
        assert len(await stored(harness)) < 6000
        assert "vault" not in await stored(harness), "only what the stranger said"
        await harness.say("and the kayak is blue", "666", message_id="6")
        assert "kayak" not in await stored(harness)
        edit = replace(
            harness.inbound("the ferry leaves at ten", "666"), kind="edit", message_id="5"
        )
        await harness.admission.admit(edit, KeptReply())
        assert await admitted(harness, code) == [texts.ADMITTED, "ok"]
        assert model.sent().count("the ferry leaves at") == 1
        assert "the ferry leaves at ten" in model.sent()


async def test_deleted_message_of_a_stranger_is_not_answered_after_approval(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        code = (await harness.say("my password is hunter2", "666", message_id="5")).text.split("`")[
            1
        ]
        gone = replace(harness.inbound("", "666"), kind="delete", message_id="5")
        await harness.admission.admit(gone, KeptReply())
        assert "hunter2" not in await stored(harness)
        assert await admitted(harness, code) == [texts.ADMITTED]


@pytest.mark.parametrize("is_removed", [False, True])
async def test_stranger_messages_are_erased_completely_when_their_pairing_expires_or_is_removed(
    home: Path, is_removed: bool
) -> None:
    async with open_gateway(home) as harness:
        services = harness.services
        await harness.say("my secret plan", "666")
        assert "secret plan" in await stored(harness)
        await services.forgetting.maintain()
        assert "secret plan" in await stored(harness)
        if is_removed:
            await services.removals.remove(
                [Account(platform="telegram", user_id="666")], services.clock.now()
            )
        else:
            services.forgetting.erasures._clock = LaterClock(services.clock)
        while await services.forgetting.maintain():
            pass
        assert await remains_of("secret plan", services.database) == []
        assert await stored(harness) == "[]"


async def test_forget_erases_messages_of_strangers_that_wait_for_the_owner(home: Path) -> None:
    async with open_gateway(home) as harness:
        code = (await harness.say("meet me in Zanzibar", "666")).text.split("`")[1]
        asked = await harness.say("/forget Zanzibar", "7")
        assert "Zanzibar" in await stored(harness), "nobody else's"
        assert asked.answer is not None
        assert asked.answer.confirm_command is None
        await harness.say("/forget Zanzibar")
        await harness.say("yes")
        assert "Zanzibar" not in await stored(harness)
        assert await admitted(harness, code) == [texts.ADMITTED]
