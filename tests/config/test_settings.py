"""Settings: three sources laid over each other, everything wrong said at once, secrets never
shown."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, ValidationError

from config.field_types import LANGUAGES, MEMORY_PROVIDERS
from config.settings import DEFAULTS, ENVIRONMENT, SOUL, Settings, SettingsError
from core.memory.plugins import Plugins
from gateway.texts.text_files import load_names

HOMES = Path(__file__).resolve().parents[1] / "fixtures" / "homes"


def load(home: Path, toml: str = "", **environ: str) -> Settings:
    if toml:
        (home / "mneme.toml").write_text(toml, encoding="utf-8")
    return Settings.load({"MNEME_HOME": str(home), **environ})


def problems(home: Path, toml: str = "", **environ: str) -> dict[str, str]:
    """What is wrong, by dotted path."""
    with pytest.raises(SettingsError) as caught:
        load(home, toml, **environ)
    return dict(problem.split(": ", 1) for problem in caught.value.problems)


def test_settings_of_an_empty_home_are_the_defaults(home: Path) -> None:
    settings = load(home)
    assert settings.home == home
    assert (settings.model.chat, settings.model.helper) == ("claude-sonnet-5-5", "claude-haiku-5-5")
    assert (settings.model.max_tokens, settings.model.window_tokens, settings.model.max_rounds) == (
        8192,
        200000,
        12,
    )
    assert (settings.memory.memory_chars, settings.memory.user_chars) == (2200, 1375)
    assert settings.owner.accounts == ()
    assert settings.anthropic_api_key is None
    assert settings.platform_tokens == {}
    assert settings.secret_values() == ()


def test_default_toml_and_settings_have_the_same_options() -> None:
    defaults = tomllib.loads(DEFAULTS.read_text(encoding="utf-8"))
    sections = {
        name: field.annotation
        for name, field in Settings.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    }
    tables = {"chats", "mcp", "calendar"}
    assert all(defaults.pop(name) == {} for name in tables), "a person names the tables in them"
    assert {name: set(options) for name, options in defaults.items()} == {
        name: set(section.model_fields) for name, section in sections.items()
    }
    assert set(Settings.model_fields) == set(sections) | set(ENVIRONMENT) | {
        "variables",
        "advice",
        *tables,
    }


def test_every_option_in_the_default_settings_has_a_comment_above_it() -> None:
    lines = DEFAULTS.read_text(encoding="utf-8").splitlines()
    bare = [
        line
        for above, line in pairwise(lines)
        if "=" in line.split("#")[0] and not above.startswith("#") and line != "discord = []"
    ]
    assert bare == []


def test_default_personality_file_exists_and_names_mneme() -> None:
    assert "Mneme" in SOUL.read_text(encoding="utf-8")


def test_settings_file_overrides_defaults_and_replaces_whole_lists(home: Path) -> None:
    settings = load(
        home,
        """
        [general]
        zone = "Europe/Lisbon"
        [model]
        max_tokens = 100
        patience_s = 5
        [owner]
        telegram = [42, "43"]
        discord = [77]
        rooms = ["telegram:-1001"]
        [access]
        people = ["telegram:44"]
        rooms = ["discord:78"]
        """,
    )
    assert settings.general.zone == "Europe/Lisbon"
    assert (settings.model.max_tokens, settings.model.patience_s, settings.model.tries) == (
        100,
        5.0,
        5,
    )
    assert settings.owner.accounts == ("telegram:42", "telegram:43", "discord:77")
    assert settings.owner.rooms == ("telegram:-1001",)
    assert settings.access.people == ("telegram:44",)
    assert settings.access.rooms == ("discord:78",)


def test_the_environment_fills_secrets_and_addresses_only(home: Path) -> None:
    settings = load(
        home,
        ANTHROPIC_API_KEY=" sk-secret \n",
        ANTHROPIC_BASE_URL="http://127.0.0.1:11434/",
        TELEGRAM_BOT_TOKEN="1:secret",
        DISCORD_BOT_TOKEN="",
        MNEME_TELEGRAM_API_URL="http://127.0.0.1:8081",
        MNEME_DISCORD_API_URL="https://example.org/api/v10",
        MNEME_DISCORD_GATEWAY_URL="ws://127.0.0.1:8082",
        MODEL="{}",
        HOME="/nowhere",
        GENERAL="loud",
    )
    assert settings.anthropic_api_key is not None
    assert settings.anthropic_api_key.get_secret_value() == "sk-secret"
    assert settings.anthropic_base_url == "http://127.0.0.1:11434"
    assert settings.discord_gateway_url == "ws://127.0.0.1:8082"
    assert [*settings.platform_tokens] == ["telegram"], "an empty variable is no token"
    assert settings.model.tries == 5
    assert settings.secret_values() == ("sk-secret", "1:secret")


def test_secrets_are_in_no_repr_and_in_no_dump(home: Path) -> None:
    settings = load(
        home, ANTHROPIC_API_KEY="sk-hush", MNEME_TELEGRAM_API_URL="http://me:hush@127.0.0.1:8081"
    )
    for shown in (
        repr(settings),
        str(settings),
        str(settings.model_dump(exclude={"telegram_api_url"})),
    ):
        assert "hush" not in shown


def test_loaded_settings_cannot_be_changed_in_place(home: Path) -> None:
    settings = load(home)
    for value, field in ((settings.model, "tries"), (settings, "home")):
        with pytest.raises(ValidationError):
            setattr(value, field, 7)


def test_a_platform_can_be_switched_off_in_spite_of_its_token(home: Path) -> None:
    settings = load(home, "telegram.enabled = false", TELEGRAM_BOT_TOKEN="1:x")
    assert "telegram" not in settings.platform_tokens


def test_settings_with_several_mistakes_report_all_of_them_with_their_paths(home: Path) -> None:
    found = problems(
        home,
        """
        colour = "blue"
        room = 3
        telegram_token = "1:secret"
        [general]
        zone = "Mars/Olympus"
        log_level = "loud"
        [model]
        max_tokens = "many"
        tries = true
        patience_s = nan
        [telegram]
        enabled = true
        token = "1:secret"
        [owner]
        telegram = [42, "ana", true, -3, 1.5]
        discord = 7
        [access]
        people = ["ana", "telegram:ana", "telegram:-100", "telegarm:42"]
        rooms = ["telegram:5", 7, "discord:-1"]
        [cron]
        max_jobs = 0
        """,
        ANTHROPIC_BASE_URL="secret",
        MNEME_DISCORD_GATEWAY_URL="ws://host:99999999",
    )
    assert set(found) == {
        "colour",
        "room",
        "telegram_token",
        "general.zone",
        "general.log_level",
        "model.max_tokens",
        "model.tries",
        "model.patience_s",
        "telegram.enabled",
        "telegram.token",
        *(f"owner.telegram[{index}]" for index in (1, 2, 3, 4)),
        "owner.discord",
        *(f"access.people[{index}]" for index in (0, 1, 2, 3)),
        *(f"access.rooms[{index}]" for index in (0, 1, 2)),
        "limits.jobs",
        "ANTHROPIC_BASE_URL",
        "MNEME_DISCORD_GATEWAY_URL",
    }
    assert "TELEGRAM_BOT_TOKEN" in found["telegram.enabled"]
    assert "TELEGRAM_BOT_TOKEN" in found["telegram_token"]
    assert found["model.max_tokens"] == "should be a whole number"
    assert "secret" not in str(found).replace("secrets.env", "")


def test_a_missing_token_alone_is_a_problem(home: Path) -> None:
    assert set(problems(home, "discord.enabled = true")) == {"discord.enabled"}


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"[model\n", "isn't valid TOML"),
        (b"x = '\xff'", "isn't UTF-8"),
        (b"a = 1\na = 2", "isn't valid TOML"),
    ],
)
def test_unreadable_settings_file_is_reported_as_one_problem(
    home: Path, content: bytes, part: str
) -> None:
    (home / "mneme.toml").write_bytes(content)
    found = problems(home)
    assert set(found) == {"mneme.toml"}
    assert part in found["mneme.toml"]


def test_new_home_folder_is_accessible_to_its_owner_only(tmp_path: Path) -> None:
    settings = load(tmp_path / "deep" / "home")
    assert settings.home.stat().st_mode & 0o777 == 0o700


def test_a_home_that_cannot_be_made_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert set(problems(tmp_path / "file")) == {"MNEME_HOME"}
    assert set(problems(tmp_path / "file" / "home")) == {"MNEME_HOME"}
    assert set(problems(Path("~nobody-of-that-name/home"))) == {"MNEME_HOME"}


@pytest.mark.parametrize("machine", ["America/Bogota", "Nowhere/Land"])
@pytest.mark.slow
def test_default_time_zone_from_the_machine_is_always_valid(tmp_path: Path, machine: str) -> None:
    script = "from config.settings import Settings; print(Settings.load().general.zone)"
    environ = {
        "TZ": machine,
        "MNEME_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(DEFAULTS.parent.parent),
    }
    done = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True
    )
    zone = ZoneInfo(done.stdout.strip())
    assert (zone.key == machine) == (machine == "America/Bogota")


def test_home_folder_readable_by_others_is_made_private(home: Path) -> None:
    home.chmod(0o755)
    load(home)
    assert home.stat().st_mode & 0o777 == 0o700


def test_home_folder_shared_with_others_keeps_its_permissions(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.chmod(0o755)
    monkeypatch.setenv("HOME", str(home / "somebody"))
    load(home)
    assert home.stat().st_mode & 0o777 == 0o755
    monkeypatch.setenv("HOME", "/nowhere")
    home.chmod(0o1777)
    load(home)
    assert home.stat().st_mode & 0o7777 == 0o1777


def test_folder_in_place_of_the_settings_file_is_reported_as_unreadable(home: Path) -> None:
    (home / "mneme.toml").mkdir()
    assert problems(home)["mneme.toml"] == "can't be read: Is a directory"


def test_problem_of_a_setting_is_named_in_the_spelling_of_toml(home: Path) -> None:
    found = problems(
        home,
        "discord.enabled = 'x'\nusage.prices = 3\nmodel = { chat = '', patience_s = nan, tool_timeout_s = inf }\n",
    )
    assert found["model.chat"].startswith("names no model; write one")
    assert found["usage.prices"] == "should be a table, written [usage.prices]"
    assert found["discord.enabled"] == 'should be "auto", true or false'
    assert (
        found["model.patience_s"]
        == found["model.tool_timeout_s"]
        == "should be a number, not nan or inf"
    )


def test_configured_model_prices_override_the_defaults_field_by_field(home: Path) -> None:
    settings = load(
        home,
        """
        [usage]
        currency = "€"
        [usage.prices]
        claude-sonnet-5-5 = { cache_read = 0.2 }
        llama3 = { input = 0, output = 0, cache_write = 0, cache_read = 0 }
        """,
    )
    sonnet = settings.usage.prices["claude-sonnet-5-5"]
    assert (sonnet.input, sonnet.output, sonnet.cache_read) == (2.0, 10.0, 0.2)
    assert settings.usage.prices["llama3"].output == 0
    assert {settings.model.chat, settings.model.helper} <= set(settings.usage.prices), (
        "the defaults have a price"
    )


def test_incomplete_or_negative_model_price_in_the_settings_is_reported(home: Path) -> None:
    found = problems(
        home, "[usage.prices]\nllama3 = { input = -1 }\n'x' = 3\nfree = { inputs = 1 }\n"
    )
    assert found["usage.prices.llama3.output"] == "is required"
    assert "must be at least 0" in found["usage.prices.llama3.input"]
    assert found["usage.prices.x"] == "should be a table, written [usage.prices.x]"
    assert found["usage.prices.free.inputs"].startswith("isn't a known option")


def test_setting_of_the_cache_lifetime_accepts_only_5m_or_1h(home: Path) -> None:
    assert load(home, "[model]\ncache = '1h'\n").model.cache == "1h"
    assert problems(home, "[model]\ncache = '2h'\n") == {"model.cache": 'should be "5m" or "1h"'}


def test_an_option_of_an_earlier_version_is_understood(home: Path) -> None:
    with tarfile.open(HOMES / "home_6540fd2.tar.xz") as archive:
        file = archive.extractfile("home/mneme.toml")
        assert file is not None
        toml = file.read().decode()
    (home / "plugins").mkdir()
    (home / "plugins" / "diary.py").touch()
    settings = load(home, toml.replace("claude-haiku-5-5", "small"))
    assert settings.model.helper == "small"
    assert settings.advice.startswith(
        "model.cheap is now called model.helper; rename it in mneme.toml."
    )
    assert not load(home, "[model]\nhelper = 'new'\n").advice
    assert load(home, "[model]\nhelper = 'new'\ncheap = 'old'\n").model.helper == "new"
    settings = load(home, "[curator]\nidle_s = 60\n[cron]\nmax_jobs = 7\n")
    assert settings.limits.jobs == 7
    assert settings.advice == "cron.max_jobs is now called limits.jobs; rename it in mneme.toml."
    assert problems(home, "[model]\ncheap = 3\n") == {"model.helper": "should be text in quotes"}


def test_sections_of_the_page_and_of_web_tools_are_understood_by_their_old_names(
    home: Path,
) -> None:
    settings = load(home, "[page]\nport = 9999\npeople = true\n[web]\nmax_calls_per_day = 7\n")
    assert (settings.web.port, settings.web.people) == (9999, True)
    assert settings.web_tools.max_calls_per_day == 7
    assert settings.advice == (
        "[web] is now about the local page; move max_calls_per_day to [web_tools]. "
        "[page] is now called [web]; rename it in mneme.toml."
    )
    both = load(home, "[page]\nport = 9999\nenabled = true\n[web]\nport = 8888\n")
    assert (both.web.port, both.web.enabled) == (8888, True)
    assert problems(home, "[page]\nport = 1\n") == {"web.port": "must be at least 1024"}
    assert not load(home, "[web]\nport = 9999\n[web_tools]\nfetch = false\n").advice


def test_models_without_pictures_of_an_earlier_version_are_understood(home: Path) -> None:
    lacks = '[model.lacks]\n"ollama/a" = ["tools"]\n'
    settings = load(home, f'[media]\nblind_models = ["ollama/a", "ollama/b"]\n{lacks}')
    assert settings.model.known_lacks("ollama/a") == {"tools", "pictures"}
    assert settings.model.known_lacks("ollama/b") == {"pictures"}
    assert settings.advice == (
        "media.blind_models is now part of model.lacks; write "
        'lacks = { "ollama/a" = ["pictures"], "ollama/b" = ["pictures"] } below [model] in '
        "mneme.toml instead."
    )
    assert not load(home, "[media]\nblind_models = []\n").advice
    assert "model.lacks" in problems(home, '[media]\nblind_models = ["a"]\n[model]\nlacks = 3\n')


def test_model_of_another_server_needs_that_servers_key(home: Path) -> None:
    toml = '[model]\nchat = "openai/gpt-6-astra"\n'
    settings = load(home, toml)
    assert not settings.has_model
    assert settings.missing_key("openai") == "OPENAI_API_KEY"
    assert settings.model.helper == "openai/gpt-6-luna"
    groq = load(home, '[model]\nchat = "groq/some-model"\n')
    assert groq.model.helper == "groq/openai/gpt-oss-20b"
    ollama = load(home, '[model]\nchat = "ollama/some-model"\n')
    assert ollama.model.helper == "ollama/some-model", "the server names no small model"
    (home / "mneme.toml").write_text(toml)
    settings = Settings.load({"MNEME_HOME": str(home), "OPENAI_API_KEY": " sk-other\n"})
    assert settings.has_model
    assert settings.secret_values() == ("sk-other",)
    assert "sk-other" not in repr(settings)


@pytest.mark.parametrize(
    ("lines", "helper", "fallbacks"),
    [
        ('chat = ["claude-sonnet-5-5", "openai/gpt-6-sol"]', "claude-haiku", ["openai/gpt-6-luna"]),
        ('chat = ["claude-sonnet-5-5", "claude-opus-5-5"]', "claude-haiku", []),
        ('chat = ["openai/gpt-6-sol", "ollama/qwen4"]', "openai/gpt-6-luna", ["ollama/qwen4"]),
        ('chat = ["claude-opus-5-5", "ollama/q"]\nhelper = "ollama/q"', "ollama/q", []),
        ('helper = ["ollama/q", "openai/gpt-6-luna"]', "ollama/q", ["openai/gpt-6-luna"]),
        ('helper_fallbacks = ["ollama/q"]', "claude-haiku", ["ollama/q"]),
    ],
)
def test_helper_models_follow_the_chat_models_unless_the_settings_name_them(
    home: Path, lines: str, helper: str, fallbacks: list[str]
) -> None:
    model = load(home, f"[model]\n{lines}\n").model
    assert helper in model.helper
    assert list(model.helper_fallbacks) == fallbacks


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("claude-sonnet-5-5", ("anthropic", "claude-sonnet-5-5")),
        ("anthropic/claude-sonnet-5-5", ("anthropic", "claude-sonnet-5-5")),
        ("openrouter/qwen/qwen4-max:free", ("openrouter", "qwen/qwen4-max:free")),
        ("ollama/qwen4:8b", ("ollama", "qwen4:8b")),
        ("nobody/qwen4", ("anthropic", "nobody/qwen4")),
        ("openai/", ("anthropic", "openai/")),
    ],
)
def test_server_of_a_model_is_the_known_name_in_front(
    home: Path, name: str, parts: tuple[str, str]
) -> None:
    assert load(home, "").model.split_name(name) == parts


@pytest.mark.parametrize(
    ("toml", "path", "words"),
    [
        ('chat = "openia/gpt-6-sol"', "chat", 'no server "openia"; did you mean openai/gpt-6-sol?'),
        ('chat = ["claude-opus-5-5", "olama/q"]', "chat[1]", "did you mean ollama/q?"),
        ('fallbacks = ["olama/q"]', "fallbacks[0]", "did you mean ollama/q?"),
        ('helper = ["a", "olama/q"]', "helper[1]", "did you mean ollama/q?"),
        ('choices = ["mistrl/large"]', "choices[0]", "did you mean mistral/large?"),
        ('helper = "grok/x"', "helper", "did you mean groq/x?"),
        ('helper_choices = ["deepsek/x"]', "helper_choices[0]", "did you mean deepseek/x?"),
        ('chat = "Qwen/Qwen4-8B"', "chat", "write anthropic/Qwen/Qwen4-8B"),
        ('chat = "ollama/"', "chat", "write the name of a model behind ollama/"),
    ],
)
def test_model_of_an_unknown_server_is_refused_with_the_similar_server_name(
    home: Path, toml: str, path: str, words: str
) -> None:
    found = problems(home, f"[model]\n{toml}\n")
    assert list(found) == [f"model.{path}"]
    assert words in found[f"model.{path}"]


def test_misspelt_name_of_an_own_server_is_a_mistake_too(home: Path) -> None:
    own = "[model.servers.attic]\napi = 'chat-completions'\nurl = 'http://10.0.0.5:8000/v1'\n"
    found = problems(home, f"[model]\nchat = 'atic/qwen'\n{own}")
    assert found == {"model.chat": 'there is no server "atic"; did you mean attic/qwen?'}
    assert load(home, f"[model]\nchat = 'attic/a/b'\n{own}").model.chat == "attic/a/b"
    assert load(home, "[model]\nchat = 'anthropic/Qwen/Q'\n").model.chat == "anthropic/Qwen/Q"


def test_list_of_chat_models_names_the_fallbacks(home: Path) -> None:
    settings = load(home, "[model]\nchat = ['ollama/qwen4', 'claude-opus-5-5']\n")
    assert settings.model.chat_models == ("ollama/qwen4", "claude-opus-5-5")
    assert settings.model.helper == "ollama/qwen4"
    assert settings.has_model, "Ollama needs no key"
    missing = 'names no model; write one, such as "claude-sonnet-5-5"'
    assert problems(home, "[model]\nchat = []\n") == {"model.chat": missing}
    assert problems(home, "[model]\nchat = ['a', 3]\n") == {
        "model.chat[1]": "should be text in quotes"
    }


def test_model_server_defined_in_the_settings_is_added_to_the_known_servers(home: Path) -> None:
    own = "[model.servers.home]\napi = 'chat-completions'\nurl = 'http://10.0.0.5:8000/v1'\n"
    servers = load(home, own).model.servers
    assert servers["home"].key == ""
    assert servers["openai"].key == "OPENAI_API_KEY"
    found = problems(home, "[model.servers.home]\napi = 'grpc'\nurl = 'x'\nkey = 'sk-123'\n")
    assert found["model.servers.home.api"] == 'should be "messages" or "chat-completions"'
    assert found["model.servers.home.key"].startswith("write the name of an environment variable")
    assert "sk-123" not in str(found)
    assert "Home" in str(problems(home, "[model.servers.Home]\napi = 'messages'\nurl = ''\n"))


def test_http_address_of_a_webhook_is_accepted_with_an_own_bot_api_server(home: Path) -> None:
    address = "http://bot.example.org/telegram"
    environ = {"MNEME_TELEGRAM_API_URL": "http://localhost:8081"}
    assert load(home, f'telegram.webhook_url = "{address}"', **environ).telegram.webhook_url


def test_missing_memory_provider_is_accepted_if_it_is_switched_off(home: Path) -> None:
    settings = load(home, "[memory.providers.mem9]\nenabled = false")
    assert not settings.memory.providers["mem9"].enabled


def test_missing_plugin_does_not_stop_the_start(home: Path) -> None:
    assert load(home, "[memory.providers.diary]").memory.providers["diary"].enabled


def test_plugin_in_the_home_is_accepted_as_a_memory_provider(home: Path) -> None:
    (home / "plugins").mkdir()
    (home / "plugins" / "diary.py").touch()
    assert load(home, "[memory.providers.diary]").memory.providers["diary"].enabled


def test_settings_name_all_memory_services_and_languages_of_the_texts(home: Path) -> None:
    assert list(MEMORY_PROVIDERS) == Plugins(home).names()
    assert set(LANGUAGES) == set(load_names())
