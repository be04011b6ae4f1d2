"""A group is told once what is kept and who reads it, and its strangers that they aren't answered."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.types import Account, Address, Scope
from gateway.access_and_rates import REFUSALS_PER_MINUTE
from gateway.texts.catalog import ENGLISH as texts
from gateway.texts.catalog import list_languages, load_texts
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.gateway.chats.test_setup import (
    ADMIN,
    CHANNEL,
    GROUP,
    MEMBER,
    OVERHEARD,
    TOPIC,
    gateway,
    say,
)
from tests.gateway.commands.test_links import notices

pytestmark = pytest.mark.slow

UNLISTED: dict[str, Any] = {
    "address": Address(platform="telegram", chat_id="-6"),
    "scope": Scope.group("telegram", "-6"),
    "is_direct": False,
}


async def test_group_gets_one_introduction_on_what_is_stored_and_who_can_read_it(
    home: Path,
) -> None:
    async with gateway(home, "one", "two") as harness:
        await say(harness, "hello", MEMBER)
        [(address, introduction)] = await notices(harness)
        assert address == GROUP["address"]
        assert introduction.text == texts.INTRODUCTION
        await say(harness, "hello again", MEMBER)
        assert await notices(harness) == []
    async with gateway(home, "three") as harness:
        assert await say(harness, "hello", MEMBER, message_id="70") == "three"
        assert await notices(harness) == []


@pytest.mark.parametrize("step", ["put", "save"])
async def test_introduction_that_a_crash_interrupts_is_sent_once_by_the_next_process(
    home: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    async with gateway(home) as harness:
        rules, outbox = harness.access.chat_rules, harness.delivery.outbox
        await rules.load()

        async def crash(*_: object, **__: object) -> None:
            raise RuntimeError("the process was killed")

        with monkeypatch.context() as patch:
            patch.setattr(*((outbox, "put", crash) if step == "put" else (rules, "save", crash)))
            with pytest.raises(RuntimeError):
                await say(harness, "hello", MEMBER)
    async with gateway(home, "one") as harness:
        await say(harness, "hello again", MEMBER, message_id="71")
        [(_, introduction)] = await notices(harness)
        assert introduction.text == texts.INTRODUCTION


async def test_group_whose_messages_are_all_stored_is_told_before_anyone_addresses_the_bot(
    home: Path,
) -> None:
    options = 'rooms = ["telegram:-5"]\n[room]\nlisten = true\n'
    async with open_gateway(home, options=options) as harness:
        await say(harness, "hello everyone", MEMBER, **OVERHEARD)
        [(_, introduction)] = await notices(harness)
        assert introduction.text == texts.INTRODUCTION_ALL


async def test_discord_server_gets_one_introduction_for_all_of_its_channels(home: Path) -> None:
    other = {
        **CHANNEL,
        "address": Address(platform="discord", chat_id="901"),
        "scope": Scope.group("discord", "901"),
    }
    options = 'rooms = ["discord:900", "discord:901"]\n'
    async with open_gateway(home, ScriptedModel(says("one"), says("two")), options) as harness:
        assert await say(harness, "hello", MEMBER, **CHANNEL) == "one"
        assert await say(harness, "hello", MEMBER, **other) == "two"
        [(address, introduction)] = await notices(harness)
        assert address == CHANNEL["address"]
        assert introduction.text == texts.INTRODUCTION


async def test_server_where_the_owner_wrote_first_in_their_own_channel_is_introduced_later(
    home: Path,
) -> None:
    own = {
        **CHANNEL,
        "address": Address(platform="discord", chat_id="901"),
        "scope": Scope.group("discord", "901"),
    }
    options = 'rooms = ["discord:900"]\n'
    model = ScriptedModel(says("one"), says("two"))
    async with open_gateway(home, model, options, discord_owner="42") as harness:
        owner = Account(platform="telegram", user_id="42")
        discord_owner = Account(platform="discord", user_id="42")
        await harness.services.people.set_owner([owner, discord_owner], [own["scope"]])
        assert await say(harness, "hello", "42", **own) == "one"
        assert await notices(harness) == []
        assert await say(harness, "hello", MEMBER, **CHANNEL) == "two"
        [(address, introduction)] = await notices(harness)
        assert (address, introduction.text) == (CHANNEL["address"], texts.INTRODUCTION)


async def test_group_is_introduced_again_when_the_settings_change_what_is_stored(
    home: Path,
) -> None:
    listed = 'rooms = ["telegram:-5"]\n'
    listening = f"{listed}[room]\nlisten = true\n"
    steps = [
        (listed, texts.INTRODUCTION),
        (listening, texts.INTRODUCTION_ALL),
        (listening, None),
        (listed, texts.INTRODUCTION),
    ]
    for number, (options, expected) in enumerate(steps):
        async with open_gateway(home, ScriptedModel(says("hi")), options) as harness:
            await say(harness, "hello", MEMBER, message_id=f"7{number}")
            told = [answer.text for _, answer in await notices(harness)]
            assert told == ([] if expected is None else [expected])


async def test_topic_with_a_setting_of_its_own_is_not_told_what_the_group_stores(
    home: Path,
) -> None:
    listed = 'rooms = ["telegram:-5"]\n'
    async with open_gateway(home, ScriptedModel(), listed) as harness:
        await say(harness, "/setup store addressed", ADMIN, **TOPIC)
        await notices(harness)
    options = f"{listed}[room]\nlisten = true\n"
    async with open_gateway(home, ScriptedModel(says("a"), says("b")), options) as harness:
        await say(harness, "hello", MEMBER, **TOPIC, message_id="71")
        assert await notices(harness) == []
        await say(harness, "hello", MEMBER, message_id="72")
        [(address, introduction)] = await notices(harness)
        assert (address, introduction.text) == (GROUP["address"], texts.INTRODUCTION_ALL)


async def test_introduction_for_a_mention_that_begins_a_thread_goes_to_the_channel(
    home: Path,
) -> None:
    thread = replace(CHANNEL["address"], thread_id="70")
    async with open_gateway(home, options='rooms = ["discord:900"]\n') as harness:
        await say(harness, "hello", MEMBER, **{**CHANNEL, "address": thread}, message_id="70")
        [(address, _)] = await notices(harness)
        assert address == CHANNEL["address"]


async def test_direct_chat_gets_no_group_introduction(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("hello", "7")
        assert await notices(harness) == []


@pytest.mark.parametrize("language", list_languages())
def test_introduction_has_two_sentences_and_the_word_to_strangers_has_one(language: str) -> None:
    texts = load_texts(language)
    sentence_end = re.compile(r"[.!?](?=\s|$)|。")
    counts = [
        len(sentence_end.findall(text))
        for text in (texts.INTRODUCTION, texts.INTRODUCTION_ALL, texts.STRANGER_IN_GROUP)
    ]
    assert counts == [2, 2, 1]


async def test_each_stranger_of_an_unlisted_group_is_told_once(home: Path) -> None:
    async with gateway(home) as harness:
        for who in ("99", "98"):
            reply = await harness.say("hello", who, **UNLISTED)
            assert reply.text == texts.STRANGER_IN_GROUP
            assert (await harness.say("hello?", who, **UNLISTED)).answer is None
        await harness.admission.migrate_group("telegram", "-6", "-106")
    moved = {**UNLISTED, "address": Address(platform="telegram", chat_id="-106")}
    async with gateway(home) as harness:
        for place in (UNLISTED, moved):
            reply = await harness.say("hello", "98", message_id="70", **place)
            assert reply.answer is None


async def test_stranger_in_several_channels_of_a_server_is_told_once(home: Path) -> None:
    channels = [
        {
            **UNLISTED,
            "address": Address(platform="discord", chat_id=channel),
            "scope": Scope.group("discord", channel),
            "server_id": server,
        }
        for channel, server in (("910", "56"), ("911", "56"), ("920", "57"))
    ]
    async with gateway(home) as harness:
        replies = [await harness.say("hello", "99", **channel) for channel in channels]
        told = [reply.answer is not None for reply in replies]
        assert told == [True, False, True]


async def test_crowd_of_strangers_is_told_a_few_times_a_minute(home: Path) -> None:
    async with gateway(home) as harness:
        replies = [
            await harness.say("hello", str(number), **UNLISTED) for number in range(900, 920)
        ]
        told = [reply for reply in replies if reply.answer is not None]
        assert REFUSALS_PER_MINUTE <= len(told) < len(replies)


async def test_each_slash_command_of_a_stranger_is_refused_to_that_person_alone(
    home: Path,
) -> None:
    async with gateway(home) as harness:
        for who in ("99", "99", "98"):
            reply = await harness.say("/ask hello", who, **UNLISTED, is_interaction=True)
            assert reply.text == texts.STRANGER_IN_GROUP
            assert reply.answer is not None
            assert reply.answer.is_private
        # The person hasn't been told in the group yet.
        assert (await harness.say("hello", "98", **UNLISTED)).text == texts.STRANGER_IN_GROUP


async def test_stranger_in_a_group_who_does_not_address_the_bot_gets_no_answer(home: Path) -> None:
    async with gateway(home) as harness:
        reply = await harness.say("hello all", "99", **{**UNLISTED, "is_addressed": False})
        assert reply.answer is None


async def test_message_of_a_stranger_in_an_unlisted_group_is_not_stored(home: Path) -> None:
    async with gateway(home) as harness:
        await harness.say("my secret is quince", "99", **UNLISTED)
        rows = await harness.services.database.fetch_all("SELECT * FROM inbox")
        assert rows == []
        names = await harness.services.database.fetch_all(
            "SELECT * FROM accounts WHERE user_id = '99'"
        )
        assert names == []


async def add(harness: GatewayHarness, who: str, place: dict[str, Any]) -> str:
    """Add the bot to a group, and return what the group reads at once, or ""."""
    reply = KeptReply()
    arrival = harness.inbound("", who, kind="arrival", message_id="", **place)
    assert await harness.admission.admit(arrival, reply) is None
    return reply.text if reply.answer else ""


async def test_group_is_introduced_when_the_bot_is_added_and_not_again_at_the_first_message(
    home: Path,
) -> None:
    async with gateway(home, "one") as harness:
        assert await add(harness, MEMBER, GROUP) == ""
        [(address, introduction)] = await notices(harness)
        assert (address, introduction.text) == (GROUP["address"], texts.INTRODUCTION)
        assert await say(harness, "hello", MEMBER) == "one"
        assert await notices(harness) == []


async def test_stranger_who_adds_the_bot_reads_once_that_strangers_are_not_answered(
    home: Path,
) -> None:
    async with gateway(home) as harness:
        assert await add(harness, "99", UNLISTED) == texts.STRANGER_IN_GROUP
        assert await add(harness, "99", UNLISTED) == ""
        assert (await harness.say("hello", "99", **UNLISTED)).answer is None
        assert await notices(harness) == []
