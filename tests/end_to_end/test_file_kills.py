"""A file that is being sent when the process is killed arrives once, like a text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.bot_api import HANGS
from tests.fixtures.live_system import PERSON, LiveSystem

pytestmark = [pytest.mark.slow, pytest.mark.timeout(280)]


def list_files(live: LiveSystem) -> list[object]:
    return [message for message in live.telegram.messages(PERSON) if "document" in message]


@pytest.mark.parametrize("has_arrived", [True, False])
async def test_file_is_sent_once_on_telegram_if_the_process_is_killed_meanwhile(
    home: Path, has_arrived: bool
) -> None:
    async with LiveSystem.open(home, is_loop_watched=False) as live:
        await live.start()
        if has_arrived:
            live.telegram.lose(HANGS, method="sendDocument")
        else:
            live.telegram.hang(method="sendDocument")
        live.telegram.user_says(PERSON, "/export")
        await live.telegram.wait_for(lambda: live.telegram.called("sendDocument"), 60.0)
        assert len(list_files(live)) == (1 if has_arrived else 0)
        await live.kill()
        await live.start()
        await live.telegram.wait_for(
            lambda: live.query("SELECT count(*) FROM outbox WHERE done_at IS NULL") == [(0,)], 90.0
        )
        assert await live.stop() == 0
        assert len(list_files(live)) == 1
