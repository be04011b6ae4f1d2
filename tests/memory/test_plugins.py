"""Providers found in plugins/ of the home; one that is broken is a sentence."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import struct
from pathlib import Path

import pytest

from config.settings import Settings
from core.errors import ConfigError
from core.memory.plugins import SERVICES_FOLDER, Plugins
from core.types import Address
from gateway.services import load_providers
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.provider_harness import ANA, PLUGINS, harness, plugged
from tests.fixtures.scripted_model import ScriptedModel, calls, says

GOOD = (PLUGINS / "diary.py").read_text(encoding="utf-8")
BROKEN = {
    "def (": "SyntaxError",
    "import not_there": "ModuleNotFoundError No module named 'not_there'",
    "raise SystemExit": "cannot be used: SystemExit",
    "1 / 0": "ZeroDivisionError",
    "x = 1": "should define one subclass of MemoryProvider; it defines 0",
    GOOD: "should be “broken”, like its file",
    GOOD.replace('"diary"', '"broken"').replace("async def prefetch", "async def fetch"): (
        "TypeError Can't instantiate abstract class Diary .*prefetch"
    ),
    GOOD.replace('"diary"', '"broken"').replace(
        "    name", "    options = dict\n    name"
    ): "its options aren't a data",
    "from dataclasses import dataclass\n@dataclass\nclass Odd:\n    def __post_init__(self):\n        1 / 0\n"
    + GOOD.replace('"diary"', '"broken"').replace(
        "    name", "    options = Odd\n    name"
    ): "ZeroDivisionError div",
}
TOOLS = """

def tool(name):
    async def run(arguments, context):
        return "the diary says: " + arguments["day"]
    schema = {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]}
    effects = {"": Effect.READ}
    return Tool(name=name, description="Reads a day.", schema=schema, effects=effects, run=run)
"""


@pytest.mark.parametrize("text", BROKEN, ids=list(BROKEN.values()))
def test_broken_plugin_is_refused_with_a_sentence(home: Path, text: str) -> None:
    plugins = Plugins(home)
    (home / "plugins").mkdir()
    (home / "plugins" / "broken.py").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=BROKEN[text]):
        plugins.create_provider("broken", {}, {})


@pytest.mark.parametrize("name", ["../diary", "Diary", "", "x" * 50, "x" * 300, "a/b", "nobody"])
def test_name_that_is_no_provider_is_refused_with_a_sentence(home: Path, name: str) -> None:
    plugged(home, "diary")
    with pytest.raises(
        ConfigError, match=r"isn't the name of a memory provider|There is no memory provider"
    ):
        Plugins(home).create_provider(name, {}, {})


@pytest.mark.parametrize("mode", [0o020, 0o002])
@pytest.mark.parametrize("name", ["plugins", "plugins/diary.py"])
def test_a_plugin_that_others_can_write_is_refused_and_not_run(
    home: Path, name: str, mode: int
) -> None:
    plugged(home, "diary")
    (home / "plugins" / "diary.py").write_text(f"1 / 0\n{GOOD}", encoding="utf-8")
    (home / name).chmod((home / name).stat().st_mode | mode)
    with pytest.raises(ConfigError) as refused:
        Plugins(home).create_provider("diary", {}, {})
    assert str(refused.value) == (
        f"{home / name} can be written by others on this machine, so the plugin isn't run: it could do anything "
        f"that Mneme can do. Check its content, then run `chmod go-w {home / name}`."
    )


def test_a_plugin_behind_a_link_or_of_another_user_is_refused_as_well(
    home: Path, tmp_path: Path
) -> None:
    plugged(home, "diary")
    plugin, elsewhere = home / "plugins" / "diary.py", tmp_path / "elsewhere.py"
    plugin.rename(elsewhere)
    plugin.symlink_to(elsewhere)
    assert Plugins(home).create_provider("diary", {}, {}).name == "diary"
    elsewhere.chmod(0o646)
    with pytest.raises(ConfigError, match=r"elsewhere\.py can be written by others"):
        Plugins(home).create_provider("diary", {}, {})
    elsewhere.chmod(0o644)
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(elsewhere, 4711, -1)
    with pytest.raises(ConfigError, match=r"elsewhere\.py can be written by others .* `chown 0 "):
        Plugins(home).create_provider("diary", {}, {})


def test_plugin_runs_its_file_and_no_compiled_copy(home: Path) -> None:
    plugged(home, "diary")
    plugin, planted = home / "plugins" / "diary.py", home / "planted.py"
    planted.write_text(f"1 / 0\n{GOOD}", encoding="utf-8")
    cached = Path(importlib.util.cache_from_source(str(plugin)))
    cached.parent.mkdir(exist_ok=True)
    py_compile.compile(str(planted), str(cached))
    found = plugin.stat()
    header = [struct.pack("<I", value) for value in (0, int(found.st_mtime), found.st_size)]
    cached.write_bytes(b"".join([cached.read_bytes()[:4], *header, cached.read_bytes()[16:]]))
    assert Plugins(home).create_provider("diary", {}, {}).name == "diary"


async def test_gateway_runs_without_a_refused_plugin_and_status_names_the_reason(
    home: Path,
) -> None:
    plugged(home, "diary")
    (home / "plugins").chmod(0o777)
    async with open_gateway(
        home, ScriptedModel(says("Here.")), "[memory.providers.diary]"
    ) as harness:
        assert (await harness.say("hello")).text == "Here."
        assert "plugins can be written by others" in (await harness.say("/status")).text


def test_plugins_are_listed_without_running_them(home: Path) -> None:
    plugged(home, "diary")
    (home / "plugins" / "ends.py").write_text("raise SystemExit")
    (home / "plugins" / "notes.py").write_text("")
    names = Plugins(home).names()
    assert names == sorted(names)
    assert {*names} - {path.stem for path in SERVICES_FOLDER.glob("*.py")} == {"diary", "ends"}


@pytest.mark.parametrize("name", ["notes", "history", "facts", "memory"])
def test_name_of_a_built_in_memory_is_no_plugin(home: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="built in"):
        Plugins(home).load_form(name)


def settings(home: Path, text: str, **environ: str) -> Settings:
    (home / "mneme.toml").write_text(text)
    return Settings.load({"MNEME_HOME": str(home), **environ})


def test_second_memory_service_is_refused_with_a_sentence(home: Path) -> None:
    plugged(home, "diary")
    plugged(home, "jotter")
    both = "[memory.providers.diary]\nmode = 'context'\nsync_every_turns = 4\n"
    both += "[memory.providers.jotter]\nurl = 'http://x'\nkey = 'JOT'\n"
    found, warnings = load_providers(settings(home, both, JOT="k"))
    assert [(one.name, one.mode) for one in found] == [("diary", "context")]
    assert list(map(str, warnings.values())) == [
        "The memory service jotter is off, because memory.max_external allows only 1 at a time. Set enabled = false for another service, or "
        "raise this limit. To switch diary off, run mneme memory setup diary --off"
    ]
    found, warnings = load_providers(settings(home, "[memory]\nmax_external = 2\n" + both, JOT="k"))
    assert [one.name for one in found] == ["diary", "jotter"]
    assert not warnings
    found, warnings = load_providers(
        settings(home, both.replace("mode = 'context'", "enabled = false"), JOT="k")
    )
    assert [one.name for one in found] == ["jotter"]


def test_a_secret_comes_from_the_environment_and_stays_out_of_sight(home: Path) -> None:
    plugged(home, "jotter")
    text = "[memory.providers.jotter]\nurl = 'http://x'\nkey = 'JOT_KEY'\n"
    _, warnings = load_providers(settings(home, text))
    assert list(map(str, warnings.values())) == [
        "The memory jotter is off: key: the environment variable JOT_KEY is not set "
        "(`mneme config set JOT_KEY` stores it)."
    ]
    loaded = settings(home, text, JOT_KEY="hush-hush")
    found, _ = load_providers(loaded)
    assert getattr(found[0], "key") == "hush-hush"  # noqa: B009
    assert "hush-hush" not in repr(loaded)
    assert "hush-hush" in loaded.secret_values()


async def test_gateway_runs_without_a_plugin_that_fails_to_load_and_status_names_the_error(
    home: Path,
) -> None:
    (home / "plugins").mkdir()
    (home / "plugins" / "broken.py").write_text("1 / 0")
    async with open_gateway(
        home, ScriptedModel(says("hello")), "[memory.providers.broken]\n"
    ) as harness:
        assert (await harness.say("good morning Mneme")).text == "hello"
        status = (await harness.say("/status")).text
    assert "broken.py cannot be used: ZeroDivisionError" in status.replace("\\", "")
    assert "**memory**: notes (works), history (works), facts (works)" in status


async def test_the_owner_is_told_once_that_a_memory_is_out_of_order(home: Path) -> None:
    plugged(home, "diary")
    file = home / "plugins" / "diary.py"
    file.write_text(
        file.read_text().replace("        words = {", "        1 / 0\n        words = {")
    )
    async with open_gateway(home, ScriptedModel(), "[memory.providers.diary]\n") as harness:
        for number in range(5):
            await harness.say(f"what of harbour {number}?")
        await harness.memory.shutdown()
        services = harness.services
        notices = await services.database.read(
            lambda connection: [
                row[0]
                for row in connection.execute("SELECT payload FROM outbox WHERE kind = 'notice'")
            ]
        )
        assert len(notices) == 1
        assert (
            "The memory service “diary” isn't working (ZeroDivisionError division by zero)"
            in notices[0]
        )
        assert harness.memory.states["diary"].startswith("out of order")


async def test_plugin_tools_are_offered_to_the_model_unless_their_name_is_taken(home: Path) -> None:
    plugged(home, "diary")
    file = home / "plugins" / "diary.py"
    text = file.read_text().replace("Session, ToolContext", "Effect, Session, Tool, ToolContext")
    hook = "\n    async def tools(self):\n        return [tool('read_day'), tool('session_search'), tool('memory')]\n"
    file.write_text(text + hook + TOOLS)
    model = ScriptedModel(calls(("read_day", {"day": "Monday"})), says("done"))
    async with open_gateway(home, model, "[memory.providers.diary]\n") as harness:
        await harness.say("read my Monday")
        names = [tool["name"] for tool in model.requests[0].tools]
        assert len(names) == len(set(names))
        assert "read_day" in names
        assert "the diary says: Monday" in str(model.requests[1].messages)
        assert list(map(str, harness.memory.warnings)) == [
            f"The tool {name} of the memory diary is left out: the name is taken."
            for name in ("session_search", "memory")
        ]


def test_memory_plugin_may_define_its_name_as_a_property_that_equals_its_file_name(
    home: Path,
) -> None:
    (home / "plugins").mkdir()
    file = home / "plugins" / "diary.py"
    file.write_text(
        GOOD.replace(
            '    name = "diary"', '    @property\n    def name(self):\n        return "diary"'
        )
    )
    assert Plugins(home).create_provider("diary", {}, {}).name == "diary"
    file.write_text(
        GOOD.replace(
            '    name = "diary"',
            '    @property\n    def name(self):\n        return "something_else"',
        )
    )
    with pytest.raises(ConfigError, match="should be “diary”, like its file"):
        Plugins(home).create_provider("diary", {}, {})


async def test_memory_plugin_hooks_may_be_plain_functions_instead_of_coroutines(home: Path) -> None:
    (home / "plugins").mkdir()
    hook = "\n    def tools(self):\n        return [tool('read_day')]\n"
    text = GOOD.replace("Session, ToolContext", "Effect, Session, Tool, ToolContext") + hook + TOOLS
    text = text.replace("async def", "def").replace(
        "        words", "        self.thread = current_thread()\n        words"
    )
    (home / "plugins" / "diary.py").write_text(f"from threading import current_thread\n{text}")
    provider = Plugins(home).create_provider("diary", {}, {})
    async with harness(home, [provider]) as one, one.working():
        await one.turn("My dog is called Rex.")
        await one.carried(1)
        assert await one.recalled("what of the dog called Rex?") == [
            "diary:d1 'My dog is called Rex.'"
        ]
        assert getattr(provider, "thread").name == "memory diary"  # noqa: B009
        (tool,) = await one.memory.tools()
        assert await tool.run({"day": "Monday"}, await one.context(ANA)) == "the diary says: Monday"


def test_plugin_file_with_two_memory_providers_is_refused(home: Path) -> None:
    (home / "plugins").mkdir()
    (home / "plugins" / "diary.py").write_text(f"{GOOD}\n\nclass Second(Diary):\n    pass\n")
    with pytest.raises(ConfigError, match="one subclass of MemoryProvider; it defines 2"):
        Plugins(home).create_provider("diary", {}, {})


async def test_status_shows_how_many_messages_wait_to_be_sent_to_a_memory_service(
    home: Path,
) -> None:
    plugged(home, "diary")
    async with open_gateway(
        home, ScriptedModel(says("k"), says("k")), "[memory.providers.diary]\n"
    ) as harness:
        await harness.say("the boat is called Molly")
        status = (await harness.say("/status")).text
        assert "diary: works; 1 message waits to be sent to it" in status.replace("\\", "")


async def test_scheduled_question_gets_no_tools_of_a_plugin(home: Path) -> None:
    plugged(home, "diary")
    file = home / "plugins" / "diary.py"
    hook = "\n    async def tools(self):\n        return [tool('read_day')]\n"
    file.write_text(
        file.read_text().replace("Session, ToolContext", "Effect, Session, Tool, ToolContext")
        + hook
        + TOOLS
    )
    model = ScriptedModel(says("k"), calls(("read_day", {"day": "Monday"})), says("done"))
    async with open_gateway(home, model, "[memory.providers.diary]\n") as harness:
        await harness.say("read my Monday")
        due = Address(platform="cron", chat_id="1")
        await harness.say("what is on?", address=due, message_id="1@2")
        ours, *scheduled = [[tool["name"] for tool in request.tools] for request in model.requests]
        assert "read_day" in ours
        assert [name for name in ours if name != "read_day"] == scheduled[0] == scheduled[1]
        assert "calls an external service, which this conversation may not do" in str(
            model.requests[-1].messages
        )


FOLDER = {
    "__init__.py": "from .book.diary import Diary as Diary\n",
    "book/__init__.py": "",
    "book/diary.py": "from ..words import long\n"
    + GOOD.replace("if len(word) > 3", "if long(word)"),
    "words.py": "def long(word):\n    from .limit import LIMIT\n    return len(word) > LIMIT\n",
    "limit.py": "LIMIT = 3\n",
}


def foldered(home: Path, **changed: str) -> Path:
    """The diary as a folder of several files."""
    folder = home / "plugins" / "diary"
    for name, text in (FOLDER | changed).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


async def test_memory_plugin_may_be_a_folder_of_several_files(home: Path) -> None:
    folder = foldered(home)
    assert "diary" in Plugins(home).names()
    async with (
        harness(home, [Plugins(home).create_provider("diary", {}, {})]) as one,
        one.working(),
    ):
        await one.turn("My dog is called Rex.")
        await one.carried(1)
        assert await one.recalled("what of the dog called Rex?") == [
            "diary:d1 'My dog is called Rex.'"
        ]
    assert not list(folder.rglob("__pycache__"))
    # What is changed is taken anew, of all its files.
    (folder / "words.py").write_text("1 / 0")
    with pytest.raises(ConfigError, match="ZeroDivisionError"):
        Plugins(home).create_provider("diary", {}, {})


@pytest.mark.parametrize(
    "name", ["", "__init__.py", "book", "book/diary.py", "words.py", "notes.txt"]
)
def test_a_folder_in_which_others_can_write_anything_is_refused_and_not_run(
    home: Path, name: str
) -> None:
    folder = foldered(home, **{"__init__.py": "1 / 0", "notes.txt": ""})
    (folder / name).chmod((folder / name).stat().st_mode | 0o002)
    with pytest.raises(ConfigError, match="can be written by others"):
        Plugins(home).create_provider("diary", {}, {})


def test_a_folder_behind_a_link_is_looked_at_as_well(home: Path, tmp_path: Path) -> None:
    folder = foldered(home)
    (folder / "book").rename(tmp_path / "book")
    (folder / "book").symlink_to(tmp_path / "book")
    (tmp_path / "book" / "again").symlink_to(tmp_path / "book")
    assert Plugins(home).create_provider("diary", {}, {}).name == "diary"
    (tmp_path / "book" / "diary.py").chmod(0o646)
    with pytest.raises(ConfigError, match=r"diary\.py can be written by others"):
        Plugins(home).create_provider("diary", {}, {})


def test_plugin_folder_is_run_from_its_sources_and_not_from_compiled_files(home: Path) -> None:
    folder = foldered(home)
    planted = home / "planted.py"
    planted.write_text("1 / 0")
    cached = Path(importlib.util.cache_from_source(str(folder / "words.py")))
    cached.parent.mkdir()
    py_compile.compile(str(planted), str(cached))
    found = (folder / "words.py").stat()
    header = [struct.pack("<I", value) for value in (0, int(found.st_mtime), found.st_size)]
    cached.write_bytes(b"".join([cached.read_bytes()[:4], *header, cached.read_bytes()[16:]]))
    assert Plugins(home).create_provider("diary", {}, {}).name == "diary"
