"""/help, /start, and what an unknown command is answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.text.normalize import language_data
from core.types import Address, Scope
from gateway.commands.menus.specs import describe_command, list_commands
from gateway.commands.registry import load_specs
from gateway.texts.catalog import list_languages, load_texts
from gateway.texts.command_names import find_similar_names
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.tables import each_row

OWNER, BEN = "42", "7"
TERMINAL = {
    "address": Address(platform="terminal", chat_id="local"),
    "scope": Scope.account("terminal", "local"),
}


@pytest.mark.parametrize("command", ["/help", "/start", "/start payload_of-a-link"])
async def test_help_shows_six_lines_and_a_button_for_the_rest(home: Path, command: str) -> None:
    async with open_gateway(home) as harness:
        reply = await harness.say(command)
        assert "just write to me" in reply.text.lower()
        assert reply.text.count("\n- ") == 6
        assert reply.answer is not None
        *steps, button = reply.answer.buttons
        assert len(steps) == (0 if command == "/help" else 3)
        assert button.label == "All commands"
        every = (await harness.say(button.id, kind="action")).text
        assert "`/recall [query]`: Find earlier messages" in every


async def test_help_lists_owners_commands_to_the_owner_only(home: Path) -> None:
    async with open_gateway(home) as harness:
        assert "`/people" in (await harness.say("/help all", OWNER)).text
        listed = (await harness.say("/help all", BEN)).text
        assert "`/recall" in listed
        assert "/people" not in listed
        assert "/approve" not in listed


@pytest.mark.parametrize(
    ("typed", "suggestion"),
    [
        ("/cancel", "Did you mean /stop?"),
        ("/recal", "Did you mean /recall?"),
        ("/search", "Did you mean /recall?"),
        ("/xyzzy", "There is no command /xyzzy. /help all"),
    ],
)
async def test_unknown_command_is_answered_with_the_most_similar_command(
    home: Path, typed: str, suggestion: str
) -> None:
    async with open_gateway(home) as harness:
        assert suggestion in (await harness.say(typed)).text


async def test_unknown_command_is_answered_with_a_similar_name_in_the_persons_language(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        assert "/hilfe?" in (await harness.say("/hilf", "7", language="de")).text
        assert "/帮助" in (await harness.say("/帮住", language="zh")).text


async def test_terminal_suggests_quit_and_chats_do_not(home: Path) -> None:
    async with open_gateway(home) as harness:
        in_terminal = (await harness.say("/quti", "local", **TERMINAL)).text
        assert "Did you mean /quit or /quiet?" in in_terminal
        assert "/quit" not in (await harness.say("/quti")).text.replace("/quti", "")


@each_row("language", list_languages())
def test_help_names_every_option_in_every_language(language: str) -> None:
    texts = load_texts(language)
    specs = load_specs(*language_data("commands", "gateway.commands"))
    assert list_commands(texts, specs).count("\n") == len(specs) - 1
    for spec in specs:
        assert f"/{spec.name}" in describe_command(texts, spec)


@pytest.mark.parametrize(
    ("typed", "names", "similar"),
    [
        ("へルフ", ["ヘルプ", "質問"], ["ヘルプ"]),
        ("помощъ", ["помощь", "стоп"], ["помощь"]),
        ("frueher", ["früher"], ["früher"]),
        ("xyzzy", ["help"], []),
    ],
)
def test_names_are_similar_across_accents_and_the_scripts_of_japanese(
    typed: str, names: list[str], similar: list[str]
) -> None:
    assert find_similar_names(typed, names) == similar
