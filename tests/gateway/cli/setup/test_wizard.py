"""`mneme setup` in a terminal and in scripts, with doubles of Telegram, Discord and both kinds of
model servers."""

from __future__ import annotations

import asyncio
import json
import socket
import tomllib
from pathlib import Path

import pytest

from config.secrets_file import read_secrets
from tests.fixtures.bot_api import BotApi
from tests.fixtures.chat_api import ChatApi
from tests.fixtures.command_line import good
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.page_browser import find_free_port
from tests.fixtures.scripted_terminal import ScriptedTerminal, open_terminal

pytestmark = pytest.mark.slow

PERSON = 4242
STRANGER = 99


def options(home: Path) -> dict[str, object]:
    return tomllib.loads((home / "mneme.toml").read_text(encoding="utf-8"))


def secrets(home: Path) -> dict[str, str]:
    return read_secrets(home / "secrets.env")[0]


async def skip_zone(terminal: ScriptedTerminal) -> None:
    await terminal.answer("Your time zone", "")
    await terminal.expect("The time zone is Europe/Lisbon.")


@pytest.mark.timeout(300)
async def test_setup_wizard_configures_model_platforms_and_owner_in_one_run(home: Path) -> None:
    model = MessagesApi(lambda body: ModelReply.say("Hi"), key="sk-ant-right")
    async with BotApi() as telegram, DiscordApi() as discord, model:
        telegram.person(STRANGER, "Mallory")
        telegram.person(PERSON, "Ana")
        person = discord.user("Ana")
        channel = discord.dm(person)
        environ = {
            "ANTHROPIC_BASE_URL": model.url,
            "MNEME_TELEGRAM_API_URL": telegram.url,
            "MNEME_DISCORD_API_URL": discord.rest_url,
            "MNEME_DISCORD_GATEWAY_URL": discord.gateway_url,
        }
        async with open_terminal(home, "setup", environ=environ) as terminal:
            await skip_zone(terminal)
            await terminal.answer("Number", "1")
            await terminal.answer("(hidden)", "sk-ant-right")
            await terminal.answer("The model's name (claude-sonnet-5-5)", "")
            await terminal.expect("claude-sonnet-5-5 answers, and is now the model.")
            await terminal.expect("costs $2 per million tokens of input and $10 of output")

            await terminal.answer("Use Telegram?", "y")
            await terminal.answer("(hidden)", telegram.token)
            await terminal.expect("Write anything to @mneme_bot now")
            telegram.user_says(STRANGER, "hello bot")
            await terminal.expect("Mallory")
            await terminal.answer("Is that you?", "n")
            telegram.user_says(PERSON, "it's me")
            shown = await terminal.expect("wrote: it's me")
            assert f"id {PERSON}" in shown
            await terminal.answer("Is that you?", "y")
            await terminal.expect(f"telegram:{PERSON} is yours now.")
            assert len(telegram.updates) == 2, "no message is confirmed, so that both are answered"

            await terminal.answer("Use Discord?", "y")
            await terminal.answer("(hidden)", discord.token)
            shown = await terminal.answer("Let Mneme read messages in servers", "n")
            await terminal.expect("Write a direct message to")
            assert (
                "integration_type=0&scope=bot+applications.commands&permissions=274878024704"
                in shown
            )
            assert "integration_type=1&scope=applications.commands" in shown
            assert "▀" in shown, "the invite is also a QR code"
            await discord.wait_connected()
            await discord.user_says(channel, "me again", person)
            await terminal.answer("Is that you?", "y")
            await terminal.expect(f"discord:{person} is yours now.")
            await terminal.expect("No exports of Telegram")
            await terminal.answer("Show what Mneme knows on a page", "y")
            with socket.create_server(("127.0.0.1", 0)) as other_program:
                taken = other_program.getsockname()[1]
                await terminal.answer("The port of the page", str(taken))
                await terminal.expect(f"Port {taken} is in use by another program.")
                await terminal.answer("Try again?", "y")
                port = find_free_port()
                await terminal.answer("The port of the page", str(port))
            await terminal.expect(f"the page is at http://127.0.0.1:{port}.")
            await terminal.answer("Back up every day?", "y")
            await terminal.answer("The folder for backups", "backups")
            await terminal.expect("isn't a whole path")
            await terminal.answer("Try again?", "y")
            await terminal.answer("The folder for backups", str(home.parent / "backups"))
            await terminal.expect("makes a backup every day")
            await terminal.answer("Run Mneme in the background", "n")
            await terminal.expect("Start Mneme with `mneme run`")
            assert await terminal.end() == 0
    assert options(home) == {
        "general": {"language": "en", "zone": "Europe/Lisbon"},
        "model": {"chat": "claude-sonnet-5-5"},
        "owner": {"telegram": [PERSON], "discord": [int(person)]},
        "web": {"port": port, "enabled": True},
        "backup": {"folder": str(home.parent / "backups"), "every": "1d"},
    }
    assert secrets(home) == {
        "ANTHROPIC_API_KEY": "sk-ant-right",
        "TELEGRAM_BOT_TOKEN": telegram.token,
        "DISCORD_BOT_TOKEN": discord.token,
    }
    assert (home / "secrets.env").stat().st_mode & 0o777 == 0o600
    assert "sk-ant-right" not in terminal.transcript
    assert telegram.token not in terminal.transcript
    assert discord.violations == []


async def test_wrong_key_is_refused_before_a_model_is_chosen(home: Path) -> None:
    async with MessagesApi(key="sk-ant-right") as model:
        environ = {"ANTHROPIC_BASE_URL": model.url}
        async with open_terminal(home, "setup", "model", environ=environ) as terminal:
            await terminal.answer("Number", "1")
            await terminal.answer("(hidden)", "sk-ant-wrong")
            shown = await terminal.expect("does not accept the key")
    assert "The server has" not in shown
    assert "The model's name" not in shown
    assert model.requests == []


async def test_wrong_name_of_a_model_is_asked_again_without_the_key(home: Path) -> None:
    key = "sk-ant-right"
    async with MessagesApi(lambda body: ModelReply.say("Hi"), key=key) as model:
        environ = {"ANTHROPIC_BASE_URL": model.url}
        async with open_terminal(home, "setup", "model", environ=environ) as terminal:
            await terminal.answer("Number", "1")
            await terminal.answer("(hidden)", key)
            await terminal.answer("The model's name", "claude-none")
            await terminal.expect("has no model named claude-none")
            await terminal.answer("The model's name", "claude-haiku-5-5")
            shown = await terminal.expect("claude-haiku-5-5 answers, and is now the model.")
            assert "(hidden)" not in shown
            assert await terminal.end() == 0
    assert options(home)["model"] == {"chat": "claude-haiku-5-5"}


async def test_setup_wizard_run_again_changes_one_setting_and_keeps_the_others(home: Path) -> None:
    text = '# mine\n[general]\nzone = "Europe/Lisbon"\n[model]\ntries = 3 # enough\n'
    (home / "mneme.toml").write_text(text)
    async with (
        ChatApi(lambda body: ModelReply.say("Hi"), key="sk-own-key") as model,
        open_terminal(home, "setup") as terminal,
    ):
        await terminal.expect("What would you like to change?")
        await terminal.answer("Number", "2")
        await terminal.expect("Which model should answer?")
        await terminal.answer("Number", "11")
        await terminal.answer("The address of your server", model.url)
        await terminal.answer("(hidden)", "sk-own-key")
        await terminal.expect("The server has 2 models: gpt-6, gpt-6-astra.")
        await terminal.answer("The model's name", "gpt-6-astra")
        await terminal.expect("is now the model.")
        await terminal.answer("Number", "10")
        assert await terminal.end() == 0
    assert (home / "mneme.toml").read_text().startswith(text.rstrip("\n"))
    assert options(home)["model"] == {
        "tries": 3,
        "servers": {"own": {"api": "chat-completions", "url": model.url, "key": "OWN_MODEL_KEY"}},
        "chat": "own/gpt-6-astra",
    }
    assert secrets(home) == {"OWN_MODEL_KEY": "sk-own-key"}


async def test_export_found_on_the_disk_is_imported_with_progress(home: Path) -> None:
    folder = home.parent / "Downloads" / "ChatExport_2026-11-30"
    folder.mkdir(parents=True)
    messages = [
        {
            "id": number,
            "type": "message",
            "date": "2024-05-01T10:00:00",
            "date_unixtime": str(1714550000 + number),
            "from": "Ana",
            "from_id": "user4242",
            "text": f"The ferry number {number} leaves from quay {number}.",
        }
        for number in range(1, 1501)
    ]
    chat = {"name": "Ana", "type": "personal_chat", "id": 77, "messages": messages}
    (folder / "result.json").write_text(json.dumps(chat))
    (home.parent / "Downloads" / "broken.zip").write_text("not an archive")
    async with open_terminal(home, "setup", "history") as terminal:
        await terminal.answer(f"Import {folder}/result.json (Telegram, 0.", "y")
        await terminal.expect("indexing")
        await terminal.expect("This is a Telegram export.")
        await terminal.expect("Imported 1,500 messages.")
        assert await terminal.end() == 0
    results = await asyncio.to_thread(good, home, "recall", "quay 1234", "--json")
    assert "1234" in json.loads(results)["sessions"][0]["matches"][0]["snippet"]


async def test_local_server_with_the_messages_api_is_recognised_without_a_list(home: Path) -> None:
    async with (
        MessagesApi(lambda body: ModelReply.say("Hi"), is_local=True) as model,
        open_terminal(home, "setup", "model") as terminal,
    ):
        await terminal.answer("Number", "11")
        await terminal.answer("The address of your server", model.url)
        await terminal.answer("(hidden)", "")
        await terminal.answer("The model's name", "qwen4")
        await terminal.expect("qwen4 answers, and is now the model.")
        assert await terminal.end() == 0
    assert options(home)["model"] == {
        "servers": {"own": {"api": "messages", "url": model.url}},
        "chat": "own/qwen4",
    }


async def test_setup_offered_at_the_first_run_keeps_finished_steps_after_ctrl_c(
    home: Path,
) -> None:
    async with open_terminal(home, "run") as terminal:
        await terminal.answer("Set it up now?", "y")
        await skip_zone(terminal)
        await terminal.expect("Number")
        terminal.interrupt()
        await terminal.expect("Setup has stopped.")
        assert await terminal.end() == 130
    assert options(home) == {"general": {"language": "en", "zone": "Europe/Lisbon"}}


async def test_setup_wizard_uses_the_language_of_the_shell_and_stores_it(home: Path) -> None:
    async with open_terminal(home, "setup", environ={"LANG": "de_AT.UTF-8"}) as terminal:
        await terminal.expect("Mneme stellt ein paar Fragen")
        await terminal.answer("Deine Zeitzone", "Lissabun")
        await terminal.answer("Noch einmal versuchen? [j/n] (j)", "vielleicht")
        await terminal.answer("Schreib j oder n.", "")
        await terminal.answer("Deine Zeitzone", "")
        await terminal.expect("Die Zeitzone ist Europe/Lisbon.")
        await terminal.answer("Nummer", "99")
        await terminal.answer("Schreib eine der Nummern.", "12")
        await terminal.answer("Telegram benutzen?", "y")
        await terminal.answer("(verdeckt)", "")
        await terminal.answer("Das darf nicht leer sein.", "no token")
        await terminal.answer("Noch einmal versuchen?", "n")
        await terminal.expect("Ausgelassen. `mneme setup telegram` holt es nach.")
        await terminal.answer("Discord benutzen?", "n")
        await terminal.expect("Frühere Gespräche")
        await terminal.answer("Auf einer Seite im Browser zeigen", "n")
        await terminal.answer("Jeden Tag eine Sicherung machen?", "n")
        await terminal.answer("Soll Mneme ab jetzt im Hintergrund laufen", "n")
        await terminal.expect("Starte Mneme mit `mneme run`")
        assert await terminal.end() == 0
    assert options(home)["general"] == {"language": "de", "zone": "Europe/Lisbon"}


@pytest.mark.parametrize("shell", ["C.UTF-8", "nl_NL.UTF-8"])
async def test_setup_wizard_asks_for_the_language_if_that_of_the_shell_is_unsupported(
    home: Path, shell: str
) -> None:
    async with open_terminal(home, "setup", environ={"LANG": shell}) as terminal:
        await terminal.answer("Your language (Sprache, idioma,", "4")
        await terminal.expect("nous parlons français")
        await terminal.expect("Ton fuseau horaire")
        terminal.interrupt()
        assert await terminal.end() == 130
    async with open_terminal(home, "setup", environ={"LANG": shell}) as terminal:
        await terminal.expect("Que veux-tu changer")
        await terminal.answer("Numéro", "9")
        await terminal.answer("Numéro", "8")
        await terminal.expect("`mneme setup language` меняет это.")
        await terminal.answer("Номер", "10")
        assert await terminal.end() == 0
    assert options(home)["general"] == {"language": "ru"}
