"""/model through the real clients of both platforms: its buttons, its suggestions while somebody
types, and who may choose in a group."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from gateway.app import run_gateway
from tests.fixtures.bot_api import BotApi
from tests.fixtures.chat_api import ChatApi
from tests.fixtures.discord_api import DiscordApi

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

OWNER, GUEST = 42, 7
GROUP = -1001234567890
WAIT_S = 90.0


class Brain:
    """Answers with the name of the model, and keeps the names of the helpers that were asked."""

    def __init__(self) -> None:
        self._helpers: list[str] = []
        self._is_asked = asyncio.Event()

    def __call__(self, body: dict[str, Any]) -> str:
        if body.get("tools"):
            return f"It is me, {body['model']}."
        self._helpers.append(body["model"])
        self._is_asked.set()
        return "A trip"

    async def wait_for_helpers(self, *names: str) -> None:
        """Wait until these helpers were asked, in this order."""
        async with asyncio.timeout(WAIT_S):
            while self._helpers != [*names]:
                self._is_asked.clear()
                await self._is_asked.wait()


@contextlib.asynccontextmanager
async def running(
    home: Path, model: ChatApi, access: str, variables: Mapping[str, str]
) -> AsyncIterator[None]:
    """A gateway with two models for answers and two for help, stopped at the end."""
    (home / "mneme.toml").write_text(
        f"{access}\n[memory]\nfacts = false\n[model]\n"
        'chat = "home/big"\nhelper = "home/small"\n'
        'choices = ["home/other"]\nhelper_choices = ["home/tiny"]\n'
        f'[model.servers.home]\napi = "chat-completions"\nurl = "{model.url}"\n'
    )
    settings = Settings.load({"MNEME_HOME": str(home), **variables})
    task = asyncio.create_task(run_gateway(settings, chat_only=False, has_terminal=False))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_model_command_chooses_by_button_and_refuses_guests_on_telegram(home: Path) -> None:
    async with BotApi() as api, ChatApi(brain := Brain(), is_local=True) as model:
        api.person(OWNER, "Ana", "ana")
        api.person(GUEST, "Bo", "bo")
        api.group(GROUP, "Flat")

        async def wait_for(part: str, chat: int = OWNER, count: int = 1) -> dict[str, Any]:
            """Return the newest message with a text, once there are so many of them."""
            await api.wait_for(
                lambda: sum(part in text for text in api.texts(chat)) >= count, WAIT_S
            )
            return [found for found in api.messages(chat) if part in found["text"]][-1]

        access = f'[owner]\ntelegram = [{OWNER}]\n[access]\nrooms = ["telegram:{GROUP}"]'
        variables = {"TELEGRAM_BOT_TOKEN": api.token, "MNEME_TELEGRAM_API_URL": api.url}
        async with running(home, model, access, variables):
            api.user_says(OWNER, "/model")
            shown = await wait_for("home/big answers here.")
            rows = shown["reply_markup"]["inline_keyboard"]
            labels = [button["text"] for row in rows for button in row]
            assert labels == ["home/other", "Helper: home/tiny"]
            api.user_presses(OWNER, shown["message_id"], "home/other")
            await wait_for("From now on, home/other answers in this conversation.")
            api.user_presses(OWNER, shown["message_id"], "Helper: home/tiny")
            await wait_for("From now on, home/tiny helps in this conversation")
            api.user_says(OWNER, "Who are you?")
            await wait_for("It is me, other.")
            await brain.wait_for_helpers("tiny")
            api.user_says(OWNER, "/new")
            api.user_says(OWNER, "Who are you now?")
            await wait_for("It is me, big.")
            await brain.wait_for_helpers("tiny", "small")
            # In a group, everybody may look, and only the owner may choose.
            api.user_says(GROUP, "/model@mneme_bot", user_id=GUEST)
            looked = await wait_for("home/big answers here.", GROUP)
            assert "reply_markup" not in looked
            api.user_says(GROUP, "/model@mneme_bot home/other", user_id=GUEST)
            await wait_for("Only my owner can choose the model of a group.", GROUP)
            api.user_says(GROUP, "/model@mneme_bot home/other", user_id=OWNER)
            await wait_for("From now on, home/other answers", GROUP)
            api.user_says(GROUP, "@mneme_bot who are you?", user_id=GUEST)
            await wait_for("It is me, other.", GROUP)
        assert model.refusals == []
        assert api.violations == []


async def test_model_command_suggests_names_and_chooses_on_discord(home: Path) -> None:
    async with DiscordApi() as api, ChatApi(brain := Brain(), is_local=True) as model:
        ana = api.user("Ana")
        channel = api.dm(ana)
        variables = {
            "DISCORD_BOT_TOKEN": api.token,
            "MNEME_DISCORD_API_URL": api.rest_url,
            "MNEME_DISCORD_GATEWAY_URL": api.gateway_url.rstrip("/"),
        }

        async def read(call: str) -> dict[str, Any]:
            """Return the answer to an interaction."""

            def answers() -> list[dict[str, Any]]:
                return [found for found in api.answers(call) if found["content"]]

            return (await api.wait_for(answers))[-1]

        async def ask(text: str) -> str:
            """Return the answer to a message."""
            known = len(api.said(channel))
            await api.user_says(channel, text, ana)
            await api.wait_for(
                lambda: any("It is me" in said for said in api.said(channel)[known:])
            )
            return api.said(channel)[-1]

        async with running(home, model, f"[owner]\ndiscord = [{ana}]", variables):
            await api.wait_connected()
            shown = await read(await api.slash(channel, ana, "model"))
            assert "`home/big` answers here." in shown["content"]
            labels = [item["label"] for row in shown["components"] for item in row["components"]]
            assert labels == ["home/other", "Helper: home/tiny"]
            typing = await api.types(channel, ana, "model", "name", "ti")
            await api.wait_for(lambda: api.interactions.calls[typing].callbacks)
            (suggested,) = api.interactions.calls[typing].callbacks
            assert [choice["value"] for choice in suggested["data"]["choices"]] == [
                "helper home/tiny"
            ]
            pressed = await read(await api.press(channel, ana, shown["id"], "home/other"))
            assert "From now on, `home/other` answers in this conversation." in pressed["content"]
            chosen = await read(await api.slash(channel, ana, "model", name="helper home/tiny"))
            assert "From now on, `home/tiny` helps in this conversation" in chosen["content"]
            assert await ask("Who are you?") == "It is me, other."
            await brain.wait_for_helpers("tiny")
            await read(await api.slash(channel, ana, "new"))
            assert await ask("Who are you now?") == "It is me, big."
            await brain.wait_for_helpers("tiny", "small")
        assert model.refusals == []
