"""The servers that Mneme knows, and the page of the documentation about them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from config.settings import MODEL_SERVERS, Settings, SettingsError
from tests.fixtures.tables import each_row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "models.md"
SERVERS: dict[str, dict[str, Any]] = tomllib.loads(MODEL_SERVERS.read_text(encoding="utf-8"))


def read_row(server: str) -> list[str]:
    """Return the cells of a server's row in the documentation, by the line for its chat model."""
    start = "claude-" if server == "anthropic" else f"{server}/"
    (row,) = re.findall(rf'(?m)^\|.*`chat = "{start}.*$', PAGE.read_text(encoding="utf-8"))
    return [cell.strip() for cell in row.strip("|").split("|")]


@each_row("name", SERVERS)
def test_documentation_states_the_address_and_key_name_of_each_server(name: str) -> None:
    server = SERVERS[name]
    prefix = "" if name == "anthropic" else f"{name}/"
    _, key, line, helper, cache = read_row(name)
    page = server.get("key_page")
    assert key == (f"[`{server['key']}`]({page})" if page else "none")
    if "chat" in server:
        assert line == f'`chat = "{prefix}{server["chat"]}"`'
    assert helper == (f"`{prefix}{server['helper']}`" if "helper" in server else "the chat model")
    assert cache == ("yes" if server.get("caches") else "no")


def test_each_listed_internet_model_server_has_a_chat_model_and_a_helper_model() -> None:
    without = [name for name, server in SERVERS.items() if not {"chat", "helper"} <= set(server)]
    assert without == ["ollama", "lmstudio", "llamacpp"]


@pytest.mark.parametrize("name", SERVERS)
def test_documented_settings_line_of_each_model_server_loads_as_valid_settings(
    home: Path, name: str
) -> None:
    line = read_row(name)[2].strip("`")
    (home / "mneme.toml").write_text(f"[model]\n{line}\n", encoding="utf-8")
    key = SERVERS[name].get("key", "UNUSED_KEY")
    settings = Settings.load({"MNEME_HOME": str(home), key: "some-key"})
    assert settings.has_model
    assert settings.model.split_name(settings.model.chat)[0] == name
    assert settings.model.split_name(settings.model.helper)[0] == name


OWN_SERVER = 'chat = "home/qwen"\n[model.servers.home]\napi = "messages"\n'
EFFORTS = (
    'should be "none", "minimal", "low", "medium", "high", "xhigh", "max", or a number of tokens '
    "from 1024 on (line 2)"
)
# What people write by mistake below [model], and what they read.
MISTAKES = {
    "chat = []": 'model.chat: names no model; write one, such as "claude-sonnet-5-5" (line 2)',
    'chat = " "': 'model.chat: names no model; write one, such as "claude-sonnet-5-5" (line 2)',
    'chat = ["claude-opus-5-5", ""]': (
        'model.chat[1]: names no model; write one, such as "claude-sonnet-5-5" (line 2)'
    ),
    'chat = "opnai/gpt-6"': (
        'model.chat: there is no server "opnai"; did you mean openai/gpt-6? (line 2)'
    ),
    'chat = "openai/"': (
        "model.chat: names no model; write the name of a model behind openai/ (line 2)"
    ),
    'efforts = { "opnai/gpt" = "low" }': (
        'model.efforts.opnai/gpt: there is no server "opnai"; did you mean openai/gpt? (line 2)'
    ),
    'lacks = { "olama/gemma4" = ["tools"] }': (
        'model.lacks.olama/gemma4: there is no server "olama"; did you mean ollama/gemma4? (line 2)'
    ),
    'lacks = { "ollama/gemma4" = ["tool"] }': (
        'model.lacks.ollama/gemma4[0]: should be "tools", "pictures" or "effort" (line 2)'
    ),
    'effort = "hi"': f"model.effort: {EFFORTS}",
    "effort = true": f"model.effort: {EFFORTS}",
    'efforts = { "claude-haiku-4-5" = -5 }': f"model.efforts.claude-haiku-4-5: {EFFORTS}",
    'efforts = { "openai/gpt-6-luna" = 4000 }': (
        'model.efforts: openai/gpt-6-luna takes a level such as "low", and no number of tokens '
        "(line 2)"
    ),
    f'{OWN_SERVER}url = "http://me:secret@host/v1"': (
        "model.servers.home.url: has a password in it; leave it out, and name a variable with it "
        "in `key` (line 5)"
    ),
    f'{OWN_SERVER}url = "http://host"\ntoken = "X"': (
        "model.servers.home.token: isn't a known option; config/default.toml lists them all "
        "(line 6)"
    ),
    f'{OWN_SERVER}url = "http://host"\nkeys = "X"': (
        "model.servers.home.keys: isn't a known option; did you mean model.servers.home.key? "
        "(line 6)"
    ),
    '[usage.prices]\nx = { input = 1, output = 1, cache_write = 1, cache_read = 0, date = "Nov" }': (
        "usage.prices.x.date: 'Nov' isn't a month; write it like 2026-11 (line 3)"
    ),
}


@pytest.mark.parametrize("lines", MISTAKES)
def test_mistake_in_the_model_settings_is_reported_with_one_sentence(
    home: Path, lines: str
) -> None:
    (home / "mneme.toml").write_text(f"[model]\n{lines}\n", encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        Settings.load({"MNEME_HOME": str(home)})
    _, *problems = str(caught.value).splitlines()
    assert [problem.strip() for problem in problems] == [MISTAKES[lines]]
    assert "secret" not in str(caught.value)


def test_empty_list_of_helper_models_means_the_default_helper_model(home: Path) -> None:
    (home / "mneme.toml").write_text("[model]\nhelper = []\n", encoding="utf-8")
    assert Settings.load({"MNEME_HOME": str(home)}).model.helper == "claude-haiku-5-5"


@pytest.mark.parametrize(
    ("name", "server"), [("gpt-6-sol", "openai"), ("gemini-flash-latest", "gemini")]
)
def test_model_of_another_server_without_its_name_gets_advice(
    home: Path, name: str, server: str
) -> None:
    (home / "mneme.toml").write_text(f'[model]\nchat = "{name}"\n', encoding="utf-8")
    advice = Settings.load({"MNEME_HOME": str(home)}).advice
    assert f'write chat = "{server}/{name}"' in advice


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


def test_documentation_has_a_block_for_each_setting_of_a_server() -> None:
    text = "\n".join(BLOCKS)
    names = ("chat = [", "choices", "effort", "efforts", "lacks", "month_line", "usage.prices")
    assert [name for name in names if name not in text] == []
    assert "[model.servers.home]" in text
