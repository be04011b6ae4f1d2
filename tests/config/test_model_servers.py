"""The servers that Mneme knows, and the page of the documentation about them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from config.settings import MODEL_SERVERS, Settings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "models.md"
SERVERS: dict[str, dict[str, Any]] = tomllib.loads(MODEL_SERVERS.read_text(encoding="utf-8"))


def read_row(server: str) -> list[str]:
    """Return the cells of a server's row in the documentation, by the line for its chat model."""
    start = "claude-" if server == "anthropic" else f"{server}/"
    (row,) = re.findall(rf'(?m)^\|.*`chat = "{start}.*$', PAGE.read_text(encoding="utf-8"))
    return [cell.strip() for cell in row.strip("|").split("|")]


@pytest.mark.parametrize("name", SERVERS)
def test_documentation_has_the_data_of_each_server(name: str) -> None:
    server = SERVERS[name]
    prefix = "" if name == "anthropic" else f"{name}/"
    _, key, line, helper, cache = read_row(name)
    page = server.get("key_page")
    assert key == (f"[`{server['key']}`]({page})" if page else "none")
    if "chat" in server:
        assert line == f'`chat = "{prefix}{server["chat"]}"`'
    assert helper == (f"`{prefix}{server['helper']}`" if "helper" in server else "the chat model")
    assert cache == ("yes" if server.get("caches") else "no")


def test_each_server_on_the_internet_has_a_chat_model_and_a_helper() -> None:
    without = [name for name, server in SERVERS.items() if not {"chat", "helper"} <= set(server)]
    assert without == ["ollama", "lmstudio", "llamacpp"]


@pytest.mark.parametrize("name", SERVERS)
def test_line_of_the_documentation_can_be_loaded(home: Path, name: str) -> None:
    line = read_row(name)[2].strip("`")
    (home / "mneme.toml").write_text(f"[model]\n{line}\n", encoding="utf-8")
    key = SERVERS[name].get("key", "UNUSED_KEY")
    settings = Settings.load({"MNEME_HOME": str(home), key: "some-key"})
    assert settings.has_model
    assert settings.model.split_name(settings.model.chat)[0] == name
    assert settings.model.split_name(settings.model.helper)[0] == name


def test_retired_models_have_the_successor_with_the_longest_beginning(home: Path) -> None:
    model = Settings.load({"MNEME_HOME": str(home)}).model
    assert model.find_successor("claude-sonnet-4-5-20250929") == "claude-sonnet-5-5"
    assert model.find_successor("openai/gpt-4o-mini") == "openai/gpt-6-luna"
    assert model.find_successor("claude-sonnet-5-5") == ""
    assert model.find_successor("ollama/gemma") == ""


BLOCKS = re.findall(r"(?ms)^```toml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_each_block_of_the_documentation_can_be_loaded(home: Path, number: int) -> None:
    (home / "mneme.toml").write_text(BLOCKS[number], encoding="utf-8")
    defaults = Settings.load({"MNEME_HOME": str(home.parent / "nowhere")})
    settings = Settings.load({"MNEME_HOME": str(home)})
    assert not settings.advice
    assert (settings.model, settings.usage) != (defaults.model, defaults.usage)


def test_documentation_has_a_block_for_each_thing_to_set() -> None:
    text = "\n".join(BLOCKS)
    names = ("chat = [", "choices", "effort", "efforts", "lacks", "month_line", "usage.prices")
    assert [name for name in names if name not in text] == []
    assert "[model.servers.home]" in text


def test_documentation_names_tests_that_exist() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## How this is tested\n")[2]
    paths = re.findall(r"`(tests/[\w/]+\.py)`", table)
    assert len(paths) > 12
    assert [path for path in paths if not (PAGE.parents[1] / path).is_file()] == []
