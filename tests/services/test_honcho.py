"""Tests of honcho: conversations that are sent again without forgotten messages, conclusions, and
its reasoning."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError, ToolError
from core.memory.plugins import Plugins
from core.types import Scope
from tests.fixtures.provider_contract import ASKED, SAID
from tests.fixtures.provider_harness import ANA, BEN, ProviderHarness, harness
from tests.services.doubles.double import running
from tests.services.doubles.honcho import HonchoDouble
from tests.services.registry import SERVICES

HONCHO = SERVICES["honcho"]
TURNS = [
    SAID,
    "My brother Rui lives in Braga.",
    "Our boat is called Molly.",
    "The spare key hangs behind the door.",
]


@pytest.fixture
async def honcho() -> AsyncIterator[HonchoDouble]:
    double = HonchoDouble()
    async with running(double):
        yield double


async def forget(one: ProviderHarness, *texts: str) -> None:
    rows = await one.conversations.load_history(await one.session(), frozenset({ANA}))
    gone = [row.id for row in rows if row.text in texts]
    for number in gone:
        erased = "UPDATE messages SET kind = 'command', text = '' WHERE id = :id"
        await one.database.execute(erased, {"id": number})
    await one.queue.forget(gone)
    one.worker.wake()


def said(honcho: HonchoDouble) -> list[str]:
    """Return the messages of people, in order."""
    return [
        one["content"]
        for one in honcho.messages.values()
        if not one["peer_id"].endswith("-assistant")
    ]


async def test_rest_of_a_conversation_is_sent_to_honcho_again_once(
    honcho: HonchoDouble, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.memory.services.honcho.PAGE_SIZE", 2)
    monkeypatch.setattr("core.memory.services.honcho.BATCH", 2)
    async with harness(home, [HONCHO.made(home, honcho)]) as one, one.working():
        for text in TURNS:
            await one.turn(text)
        await one.carried(4)
        assert len(honcho.sessions) == 1
        honcho.work()
        (place,) = honcho.sessions
        concluded = [key for key, of in honcho.conclusions.items() if "Porto" in of["content"]]
        peer = honcho.conclusions[concluded[0]]["observed_id"]
        derived = honcho.concluded(
            place[0], peer, "Ana has family in Portugal.", None, sources=concluded
        )
        honcho.concluded(place[0], peer, "Ana travels to see them.", None, sources=[derived["id"]])
        honcho.concluded(place[0], peer, "Ana likes boats.", None, sources=["another"])
        honcho.cards[place[0], peer] = ["Has a sister in Porto"]
        before = len(one.ends)
        await forget(one, SAID, TURNS[1])
        await one.carried(before + 3)
        assert place not in honcho.sessions
        assert (
            len(
                [
                    name
                    for name in honcho.asked
                    if name.startswith("DELETE") and "/sessions/" in name
                ]
            )
            == 1
        )
        assert said(honcho) == TURNS[2:]
        assert {of["metadata"]["part"] for of in honcho.messages.values()} == {0, 1}
        kept = " ".join(of["content"] for of in honcho.conclusions.values())
        assert [word for word in ("Porto", "Portugal", "travels", "boats") if word in kept] == [
            "boats"
        ]
        assert honcho.cards[place[0], peer] == []
        await one.turn("The dog is called Rex.")
        await one.carried(before + 4)
        assert len(honcho.sessions) == 1
        assert said(honcho) == [*TURNS[2:], "The dog is called Rex."]


async def test_honcho_session_forgotten_completely_continues_under_another_session_name(
    honcho: HonchoDouble, home: Path
) -> None:
    async with harness(home, [HONCHO.made(home, honcho)]) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        (before,) = honcho.sessions
        rows = await one.conversations.load_history(await one.session(), frozenset({ANA}))
        await forget(one, *[row.text for row in rows])
        await one.carried(3)
        assert honcho.sessions == {}
        await one.turn(TURNS[1])
        await one.carried(4)
        assert said(honcho) == TURNS[1:2]
        assert before not in honcho.sessions


async def test_erasure_counts_as_done_when_honcho_has_deleted_its_conclusions(
    honcho: HonchoDouble, home: Path
) -> None:
    honcho.is_late = True
    async with harness(home, [HONCHO.made(home, honcho)]) as one, one.working():
        await one.turn(SAID)
        await one.turn(TURNS[1])
        await one.carried(2)
        await forget(one, SAID)
        await one.carried(3)
        assert one.ends[-1] == "postponed"
        assert sorted(said(honcho)) == sorted([SAID, TURNS[1], TURNS[1]])
        honcho.work()
        await one.later(seconds=2)
        await one.carried(4)
        assert one.ends[-1] == "done"
        assert said(honcho) == [TURNS[1]]


async def test_interrupted_repetition_leaves_each_message_in_honcho_once(
    honcho: HonchoDouble, home: Path
) -> None:
    async with harness(home, [HONCHO.made(home, honcho)]) as one, one.working():
        for text in TURNS[:2]:
            await one.turn(text)
        await one.carried(2)
        refused = honcho.refused = {"DELETE"}
        await forget(one, SAID)
        await one.carried(3)
        assert sorted(said(honcho)) == sorted([*TURNS[:2], TURNS[1]])
        refused.clear()
        await one.later(seconds=2)
        await one.carried(4)
        assert one.ends[-1] == "done"
        assert said(honcho) == [TURNS[1]]


async def test_message_over_honchos_length_limit_is_sent_in_parts(
    honcho: HonchoDouble, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.memory.services.honcho.MESSAGE_CHARS", 30)
    async with harness(home, [HONCHO.made(home, honcho)]) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        assert said(honcho) == [SAID[:30], SAID[30:]]


async def test_honcho_conclude_tool_adds_and_deletes_only_conclusions_of_its_own_person(
    honcho: HonchoDouble, home: Path
) -> None:
    async with harness(home, [HONCHO.made(home, honcho)]) as one, one.working():
        tools = {tool.name: tool for tool in await one.memory.tools()}
        mine, other, room = [
            await one.context(scope) for scope in (ANA, BEN, Scope.group("telegram", "-5"))
        ]
        conclude = tools["honcho_conclude"]
        await conclude.run({"conclusion": "Ana keeps bees."}, mine)
        (number,) = honcho.conclusions
        assert f"honcho:{number} Ana keeps bees." in await tools["honcho_search"].run(
            {"query": "who keeps bees?"}, mine
        )
        for context, why in ((other, "There is no memory"), (room, "In a group")):
            with pytest.raises(ToolError, match=why):
                await conclude.run({"delete_id": f"honcho:{number}"}, context)
        for asked in ({}, {"conclusion": "x", "delete_id": number}):
            with pytest.raises(ToolError, match="Give either"):
                await conclude.run(asked, mine)
        assert honcho.texts() == ["Ana keeps bees."]
        await conclude.run({"delete_id": f"honcho:{number}"}, mine)
        assert honcho.texts() == []


async def test_honcho_reasons_and_describes_the_person_who_asks(
    honcho: HonchoDouble, home: Path
) -> None:
    async with harness(home, [HONCHO.made(home, honcho, reflect=True)]) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        honcho.work()
        (concluded,) = honcho.conclusions.values()
        honcho.cards[concluded["workspace_id"], concluded["observed_id"]] = [
            "Has a sister in Porto"
        ]
        tools = {tool.name: tool for tool in await one.memory.tools()}
        mine, other = await one.context(ANA), await one.context(BEN)
        for name, asked in (
            ("honcho_reasoning", {"query": ASKED, "reasoning_level": "high"}),
            ("honcho_profile", {}),
            ("honcho_context", {}),
            ("honcho_context", {"query": ASKED}),
        ):
            assert "Porto" in await tools[name].run(asked, mine)
            assert await tools[name].run(asked, other) == "It has nothing to say."
        with pytest.raises(ToolError, match="reasoning_level"):
            await tools["honcho_reasoning"].run(
                {"query": ASKED, "reasoning_level": "extreme"}, mine
            )
        provider = one.memory.externals["honcho"]
        assert "Porto" in str(await provider.call(5, "queue_prefetch", ASKED, mine))
        assert await provider.call(5, "queue_prefetch", ASKED, other) == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "needs the key"),
        (
            {"url": "http://127.0.0.1:8000", "reasoning_level": "extreme"},
            "reasoning_level of honcho should be one of",
        ),
    ],
)
def test_memory_service_options_that_exclude_each_other_are_refused_with_a_sentence(
    home: Path, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        Plugins(home).create_provider("honcho", options, {})
