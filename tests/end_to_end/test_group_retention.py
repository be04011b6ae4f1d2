"""The admins of a group limit how long Mneme keeps its messages, while the owner keeps everything."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

GROUP = -200
ADMIN = 77
RULES = f'[access]\nrooms = ["telegram:{GROUP}"]\n'
ANNOUNCEMENT = "SELECT value FROM state_meta WHERE key = 'retention_announced'"
FERRIES = "SELECT text FROM messages WHERE role = 'user' AND text LIKE '%ferry%' ORDER BY id"


def move_announcement_back(live: LiveSystem) -> None:
    """Let the day pass after which the announced messages may be erased."""
    ((value,),) = live.query(ANNOUNCEMENT)
    announced = json.loads(str(value))
    entry = announced["chats"][f"telegram:{GROUP}"]
    entry["at"] = (datetime.fromisoformat(entry["at"]) - timedelta(days=2)).isoformat()
    live.change(
        f"UPDATE state_meta SET value = '{json.dumps(announced)}' WHERE key = 'retention_announced'"
    )


async def test_messages_of_a_group_expire_as_its_admins_say_though_the_owner_keeps_everything(
    home: Path,
) -> None:
    model = MessagesApi(lambda body: ModelReply.say("Good to know."), key=KEY)
    async with LiveSystem.open(home, model, RULES, is_loop_watched=False) as live:
        live.telegram.group(GROUP)
        live.telegram.admins[GROUP] = {ADMIN}
        await live.start()
        live.tells_telegram("my own ferry is green")
        await live.until(lambda: len(live.telegram.texts(PERSON)) > 0)
        live.telegram.user_says(GROUP, "@mneme_bot the ferry is blue", user_id=ADMIN)
        await live.until(lambda: "Good to know." in live.telegram.texts(GROUP))
        live.telegram.user_says(GROUP, "/setup retention 30", user_id=ADMIN)
        await live.until(lambda: any("30" in text for text in live.telegram.texts(GROUP)))
        await live.stop()

        live.change("UPDATE messages SET created_at = created_at - 40 * 86400")
        await live.start()
        notice = f"in telegram:{GROUP}, because the admins there"
        await live.until(lambda: any(notice in text for text in live.telegram.texts(PERSON)))
        assert len(live.query(FERRIES)) == 2
        await live.stop()

        move_announcement_back(live)
        await live.start()
        await live.until(lambda: live.query(FERRIES) == [("my own ferry is green",)])
