"""Vendors put into their errors what they were sent. The real house at its most talkative: no
secret and no word of a person gets out by an error, a notice, a status, a check, an export or the
log."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.command_line import mneme
from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

pytestmark = pytest.mark.slow

PLAIN = "correct horse battery staple"
"""A secret without the shape of one: it is known from the environment alone."""
FOREIGN = {
    "key": "sk-ant-api03-Zm9yZWlnbi1rZXk5",
    "password": "hunter2hunter2",
    "bearer": "c29tZS1iZWFyZXIt90d",
    "query": "q7w8e9r0t1",
}
"""Secrets of others, known by their shape."""
LEAK = (
    f"rejected https://me:{FOREIGN['password']}@proxy.test/v1?api_key={FOREIGN['query']} "
    f"(Authorization: Bearer {FOREIGN['bearer']}, x-api-key: {FOREIGN['key']})"
)
CODED = b64encode(f"me:{KEY}".encode()).decode()
"""As a header has it, whose name an error may leave out."""
PLUGIN = '''
from dataclasses import dataclass
from core.memory.provider import MemoryProvider, Secret

@dataclass(frozen=True)
class Options:
    key: Secret

class Leaky(MemoryProvider):
    """Fails with all that it knows."""
    name = "leaky"
    options = Options

    def __init__(self, options):
        self.key = options.key.value

    async def is_available(self):
        return True

    async def initialize(self, folder):
        pass

    async def prefetch(self, text, context):
        try:
            raise ValueError(self.key)
        except ValueError as error:
            raise RuntimeError(f"{text} {self.key} {LEAK}") from error

    async def sync_turn(self, session, messages, key):
        raise RuntimeError(f"{messages[0].text} {self.key} {LEAK}")
'''
MARK = "zanzibarine"
"""A word that people say and the log must not have."""


async def test_logs_and_outputs_contain_no_secret_and_logs_no_message_text(home: Path) -> None:
    (home / "plugins").mkdir()
    (home / "plugins" / "leaky.py").write_text(PLUGIN.replace("{LEAK}", LEAK))
    options = 'log_level = "debug"\n[memory.providers.leaky]\nkey = "LEAKY_KEY"\n'

    def brain(body: Mapping[str, Any]) -> ModelReply | str:
        said = str(body["messages"][-1])
        return (
            ModelReply.fail(400, f"{KEY} {CODED} {LEAK} {MARK}")
            if "break" in said
            else "It is kept."
        )

    async with LiveSystem.open(home, MessagesApi(brain, key=KEY), options) as live:
        await live.start(LEAKY_KEY=PLAIN)
        telegram, discord = live.telegram, live.discord
        secrets = [KEY, CODED[8:-8], PLAIN, telegram.token, discord.token, *FOREIGN.values()]
        live.tells_telegram(f"{MARK} on the telephone")
        await live.tells_discord(f"{MARK} on the computer")
        await live.types(f"{MARK} on the keyboard")
        await live.types(f"/remember I like {MARK} tea")
        await live.types(f"/remind tomorrow at 9 {MARK}")
        await live.until(lambda: "It is kept." in telegram.texts(PERSON))
        await live.until(lambda: "It is kept." in discord.said(live.channel))
        await live.until(lambda: "It is kept." in live.printed)
        await live.until(lambda: any("Reminder 1 is set" in line for line in live.printed))

        # The model, Telegram and Discord fail with what they were sent.
        await live.types(f"break, {MARK}")
        await live.until(lambda: any("refused the request" in line for line in live.printed))
        leak = f"Forbidden: https://api.telegram.org/bot{telegram.token}/sendMessage {LEAK}"
        telegram.fail(403, leak, method="sendMessage", times=9)
        discord.rest.fail("POST", "/messages", 403, message=f"Bot {discord.token} {LEAK}", times=9)
        live.tells_telegram(f"/recall {MARK}")
        await live.tells_discord(f"again, {MARK}")
        dead = "SELECT count(DISTINCT address) FROM outbox WHERE dead_at IS NOT NULL AND kind = 'answer'"
        await live.until(lambda: live.query(dead) == [(2,)])
        errors = live.query("SELECT error FROM outbox WHERE error IS NOT NULL")
        assert len(errors) >= 3
        telegram.fail(401, f"Unauthorized: {leak}", method="getUpdates", times=9)

        await live.types("/status")
        await live.until(lambda: any("leaky" in line for line in live.printed))
        await live.types("/export")
        await live.until(lambda: any("held-" in line for line in live.printed))
        environ = {
            "ANTHROPIC_API_KEY": "sk-ant-of-another",
            "ANTHROPIC_BASE_URL": live.model.url,
            "LEAKY_KEY": PLAIN,
        }
        checked = await asyncio.to_thread(mneme, home, "check", **environ)
        shown = {
            "the outbox": str(errors),
            "Telegram": str(telegram.called("sendMessage")),
            "Discord": str(discord.said(live.channel)),
            "the terminal": "\n".join(live.printed),
            "the check": checked.stdout,
            "the export": "".join(path.read_text() for path in (home / "files").glob("*.jsonl")),
        }
        assert await live.stop() == 0
        shown["the log"] = live.log()
        assert all("leaky" in shown[place] for place in ("the terminal", "the check", "the log"))
        found = [
            (place, secret) for place, text in shown.items() for secret in secrets if secret in text
        ]
        assert found == []
        assert MARK not in live.log().casefold()
        assert MARK in shown["the export"]
