"""An answer that a channel of Discord refuses is told in the direct chat of the person who asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fixtures.discord_scene import open_scene
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow


@pytest.mark.both_engines
async def test_answer_that_a_channel_of_discord_refuses_is_told_in_the_direct_chat(
    home: Path,
) -> None:
    model = ScriptedModel(says("Good day."), says("The ferry leaves at nine."))
    async with open_scene(home, model) as scene:
        api, ana = scene.api, scene.ana
        await api.user_says(scene.direct, "hello", ana)
        await scene.said(scene.direct, "Good day.")
        delivery = scene.harness.delivery
        # As the process does once a platform has opened.
        delivery.add_platform("discord", scene.harness.path.adapters["discord"].reply)
        delivering = asyncio.create_task(delivery.run())
        try:
            path = f"/channels/{scene.channel}/messages"
            api.rest.fail("POST", path, 403, 50013, times=9)
            await api.user_says(scene.channel, f"{api.mention()} when?", ana)
            notice = await scene.said(scene.direct, "couldn't deliver")
        finally:
            delivering.cancel()
            await asyncio.wait([delivering])
        [dead_item] = [
            dead
            for dead in await scene.harness.services.outbox.list_dead()
            if dead.item.kind == "answer"
        ]
    assert "“#general” on Discord" in notice
    assert "I may not write there." in notice
    # What belongs to a group stays there.
    assert "ferry" not in notice
    assert (dead_item.cause, dead_item.item.attempts) == ("no_rights", 1)
