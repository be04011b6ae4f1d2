"""Skills over the real platforms: called by name in the way that each of them has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.guard.origin_and_fence import SKILL_LEAD
from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.skill_folders import skill_text

pytestmark = pytest.mark.slow
GROUP = -200


def lay(root: Path, name: str) -> None:
    (root / name).mkdir(parents=True)
    (root / name / "SKILL.md").write_text(skill_text(name))


async def test_a_skill_is_called_by_its_name_on_every_platform(home: Path) -> None:
    called = list[str]()

    def answer(body: dict[str, Any]) -> ModelReply:
        if not body.get("tools"):
            return ModelReply.say("A title")
        texts = [str(block.get("text", "")) for block in body["messages"][-1]["content"]]
        called.extend(
            f"{texts[1]} -> {text.split('”')[0]}"
            for text in texts
            if text.startswith(f"[{SKILL_LEAD}")
        )
        return ModelReply.say("Sorted.")

    lay(home / "skills", "tidy-inbox")
    lay(home / "memories" / f"room%3Atelegram%3A{GROUP}" / "skills", "tidy-room")
    rooms = f'[access]\nrooms = ["telegram:{GROUP}"]\n'
    async with LiveSystem.open(home, MessagesApi(answer, key=KEY), rooms) as live:
        live.telegram.group(GROUP)
        await live.start()
        live.tells_telegram("/tidy_inbox only today")
        await live.until(lambda: len(called) == 1)
        live.telegram.user_says(GROUP, "/tidy_room@mneme_bot now", user_id=PERSON)
        await live.until(lambda: len(called) == 2)
        live.telegram.user_says(GROUP, "/tidy_inbox@mneme_bot now", user_id=PERSON)
        await live.until(
            lambda: any(
                "There is no command /tidy_inbox" in text for text in live.telegram.texts(GROUP)
            )
        )
        await live.types("/tidy-inbox at the terminal")
        await live.until(lambda: len(called) == 3)
        await live.discord.slash(
            live.channel, live.discord_person, "skill", name="tidy-inbox", words="on Discord"
        )
        await live.until(lambda: len(called) == 4)
        typed = await live.discord.types(
            live.channel, live.discord_person, "skill", "name", "tidy_"
        )
        await live.until(lambda: bool(live.discord.interactions.calls[typed].callbacks))
        (told,) = live.discord.interactions.calls[typed].callbacks
        assert [choice["value"] for choice in told["data"]["choices"]] == ["tidy-inbox"]
    frame = f"[{SKILL_LEAD} “"
    assert called == [
        f"/tidy_inbox only today -> {frame}tidy-inbox",
        f"/tidy_room@mneme_bot now -> {frame}tidy-room",
        f"/tidy-inbox at the terminal -> {frame}tidy-inbox",
        f"/skill tidy-inbox on Discord -> {frame}tidy-inbox",
    ]
