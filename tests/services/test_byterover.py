"""Tests of byterover: a program that may end while its server continues, and that creates, changes
and merges files on its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError, DeliveryError, Refused
from core.memory.http import CallTimeout
from core.memory.plugins import Plugins
from core.memory.services._byterover_tree import Ledger, Tree
from core.memory.services.byterover import MAX_TEXT_BYTES, ByteRover, Options
from tests.fixtures.provider_contract import ASKED, SAID
from tests.fixtures.provider_harness import ANA, BEN, ProviderHarness, harness
from tests.services.doubles.byterover import MANY, ByteRoverDouble
from tests.services.doubles.double import running
from tests.services.registry import SERVICES
from tests.services.test_setup import set_up

pytestmark = pytest.mark.slow

SERVICE = SERVICES["byterover"]
OPTIONS = Options(url="http://127.0.0.1:9/v1", model="rules", brv_path=sys.executable)
RUI = "My brother Rui lives in Braga."
OTHERWISE = "Which town/city is home to Ines?"
"""Of SAID, mostly in words that it has not."""


@asynccontextmanager
async def rover(home: Path) -> AsyncIterator[tuple[ByteRoverDouble, ByteRover, ProviderHarness]]:
    async with running(double := ByteRoverDouble()):
        assert isinstance(double, ByteRoverDouble)
        provider = SERVICE.made(home, double)
        assert isinstance(provider, ByteRover)
        async with harness(home, [provider]) as one, one.working():
            yield double, provider, one


async def forget(one: ProviderHarness, text: str) -> None:
    """Forget the message with these words, and wait until the service has forgotten it."""
    before = len(one.ends)
    rows = await one.conversations.load_history(await one.session(), frozenset({ANA}))
    gone = [row.id for row in rows if row.text == text]
    for number in gone:
        await one.database.execute(
            "UPDATE messages SET kind = 'command', text = '' WHERE id = :id", {"id": number}
        )
    assert await one.queue.forget(gone)
    one.worker.wake()
    await one.carried(before + 1)


def everything(home: Path) -> str:
    """Return the content of all files in its folder, with their names."""
    files = [path for path in (home / "providers").rglob("*") if path.is_file()]
    return "\n".join(f"{path}\n{path.read_text('utf-8', 'replace')}" for path in files)


async def test_turn_that_byterover_still_processes_after_a_timeout_is_not_sent_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rover(home) as (double, _, one):
        data = home / "providers" / "byterover" / "data"
        monkeypatch.setattr("core.memory.http.WRITE", CallTimeout(5.0, 5.0))
        double.is_done, double.fault = False, "lost"
        await one.turn(SAID)
        await one.carried(1)
        double.fault = "well"
        data.mkdir(exist_ok=True)
        (data / "daemon.json").write_text(json.dumps({"pid": 4_000_000, "startedAt": 1}))
        await one.later(seconds=2)
        await one.carried(2)
        assert one.ends == ["postponed", "postponed"]
        assert "still working on the text" in (await one.outbox.count_items()).error
        double.log[0]["entry"]["status"] = "completed"
        await one.later(seconds=10)
        await one.carried(3)
        assert one.ends[2] == "done"
        assert len(double.log) == 1
        # A program that has ended meanwhile prints nothing more.
        double.fault = "lost"
        await one.turn(RUI)
        await one.carried(4)
        double.fault, double.is_done = "well", True
        (data / "daemon.json").unlink()
        await one.later(seconds=2)
        await one.carried(5)
        assert one.ends[4] == "done"
        assert [RUI in text for text in double.texts()] == [True]


def add_files(provider: ByteRover, count: int = MANY) -> None:
    """Add files to the tree of ANA. In a large tree, brv searches in a different way."""
    folder = provider._tree(provider.space(ANA)).root / "work"
    folder.mkdir(parents=True)
    for number in range(count):
        front = f"title: Invoice {number}\nupdatedAt: '2026-{1 + number // 28:02}-{1 + number % 28:02}T10:00:00.000Z'"
        (folder / f"invoice_{number}.md").write_text(
            f"---\n{front}\n---\nInvoice {number} is paid.\n"
        )


async def test_setup_of_byterover_that_gives_no_answer_says_what_to_do_and_that_it_does_not_work(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(double := SERVICE.double()):
        double.fault = "hanging"
        monkeypatch.setattr("core.memory.http.WRITE", CallTimeout(0.5, 0.5))
        said = await set_up(home, SERVICE, double)
    assert "brv gave no answer within 0.5 s: without internet it needs account_url" in said
    assert "it doesn't work yet" in said
    assert "To switch it off, run mneme memory setup byterover --off" in said
    assert "will be on after the next start. It then gets" not in said


@pytest.mark.parametrize(
    ("url", "origin"),
    [("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434"), ("", None)],
)
async def test_account_address_of_byterover_is_passed_without_its_path(
    home: Path, url: str, origin: str | None
) -> None:
    provider = ByteRover(replace(OPTIONS, account_url=url))
    provider._home = home
    assert provider._build_environment().get("BRV_IAM_BASE_URL") == origin


@pytest.mark.parametrize("url", ["127.0.0.1:11434", "http://", "http://[oops"])
def test_account_address_of_byterover_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="account_url of byterover should be an address"):
        ByteRover(replace(OPTIONS, account_url=url))


async def test_reason_why_byterovers_server_does_not_start_is_told_unless_it_is_an_earlier_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.memory.http.WRITE", CallTimeout(5.0, 5.0))
    program = tmp_path / "brv"
    program.write_text(
        "#!/bin/sh\nmkdir -p $BRV_DATA_DIR/logs\n"
        "echo 'Fatal startup error: no port is free' > $BRV_DATA_DIR/logs/server-2.log\nsleep 60\n"
    )
    program.chmod(0o700)
    provider = ByteRover(replace(OPTIONS, brv_path=str(program)))
    with pytest.raises(DeliveryError, match=r"^brv cannot start: no port is free$"):
        await provider.probe()
    provider._home = home
    log = home / "data" / "logs" / "server-1.log"
    log.parent.mkdir(parents=True)
    log.write_text("Fatal startup error: an earlier one")
    os.utime(log, (1, 1))
    assert str(provider._explain_timeout(0.5, time.time())).startswith(
        "brv gave no answer within 0.5 s"
    )


async def test_byterover_search_finds_a_file_with_any_word_of_the_question_in_a_large_tree(
    home: Path,
) -> None:
    async with rover(home) as (double, provider, one):
        await one.turn(SAID)
        await one.carried(1)
        add_files(provider)
        assert "Porto" in "\n".join(await one.recalled(OTHERWISE))
        asked = double.asked.count("POST /brv/search")
        # The text contains nothing to ask for.
        assert await one.recalled("?!") == []
        assert double.asked.count("POST /brv/search") == asked == 1


async def test_results_of_byterover_are_ordered_by_words_and_newest_first(
    home: Path,
) -> None:
    async with rover(home) as (double, provider, one):
        await one.turn(SAID)
        await one.carried(1)
        tree = provider._tree(provider.space(ANA))
        (own,) = tree.hash_files()
        add_files(provider, 30)
        # The text that it has shown most often.
        shown = sorted({*tree.hash_files()} - {own})
        double.found = [
            {"path": path, "title": "", "score": 1.0, "excerpt": ""} for path in (*shown, own)
        ]
        lines = await one.recalled("Has Ines paid an invoice?")
        assert "Ines" in lines[0]
        assert ["Invoice 29 is" in lines[1], "Invoice 28 is" in lines[2], len(lines)] == [
            True,
            True,
            8,
        ]
        (asked,) = [sent for sent in double.sent if "search" in sent]
        assert json.loads(asked)["words"] == ["search", "--limit", "50"]
        # A file without any of the typed words is returned unchanged.
        assert "Invoice 0 is" in (await one.recalled("Who has a moneybox?"))[0]


async def test_forgotten_words_are_in_no_file_of_byterover(home: Path) -> None:
    async with rover(home) as (_, _, one):
        await one.turn(SAID)
        await one.turn(RUI)
        await one.carried(2)
        assert "Porto" in everything(home)
        await forget(one, SAID)
        assert "Porto" not in everything(home)
        assert "Braga" in "\n".join(await one.recalled("where does my brother live?"))


async def test_byterover_cleanup_ends_its_own_server_and_no_other_process(home: Path) -> None:
    code = "import sys; print(flush=True); sys.stdin.read()"
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, *names, stdin=-1, stdout=-1, start_new_session=True
        )
        for names in (["brv-server.js"], ["brv-server.js"], ["other"])
    ]
    left, own, other = processes
    try:
        for process in processes:
            assert process.stdout is not None
            await process.stdout.readline()
        data = home / "providers" / "byterover" / "data"
        data.mkdir(parents=True)
        (data / "daemon.json").write_text(json.dumps({"pid": left.pid, "startedAt": 1}))
        async with rover(home) as (_, _, one):
            await one.memory.start()
            assert await left.wait() < 0
            (data / "daemon.json").write_text(json.dumps({"pid": own.pid, "startedAt": 1}))
        assert await own.wait() < 0
        (data / "daemon.json").write_text(json.dumps({"pid": other.pid, "startedAt": 1}))
        async with rover(home) as (_, _, one):
            await one.memory.start()
        assert other.returncode is None
        os.kill(other.pid, 0)
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def test_byterover_program_gets_no_secrets_and_its_search_returns_only_its_own_files(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELEGRAM_TOKEN", "1:secret")
    async with rover(home) as (double, provider, one):
        await one.memory.start()
        await asyncio.gather(*one.memory._tasks)
        assert "BRV_DATA_DIR" in double.names
        assert "TELEGRAM_TOKEN" not in double.names
        await one.turn("--files /etc/passwd Ines")
        await one.carried(1)
        assert "--files /etc/passwd Ines" in double.texts()[0]
        own = provider._tree(provider.space(ANA))
        (home / "secret.md").write_text("Porto")
        (own.root / "link.md").symlink_to(home / "secret.md")
        outside = [
            str(home / "secret.md"),
            "../../../../../../secret.md",
            "link.md",
            "gone.md",
            "",
            7,
        ]
        double.found = [{"path": path, "score": 1, "excerpt": "Porto"} for path in outside]
        assert await one.recalled(ASKED) == []


async def test_byterover_query_tool_answers_only_from_files_of_the_person_who_asks(
    home: Path,
) -> None:
    async with rover(home) as (double, _, one):
        await one.turn(SAID)
        await one.carried(1)
        tools = {tool.name: tool for tool in await one.memory.tools()}
        assert list(tools) == ["brv_search", "brv_curate", "brv_query", "brv_status"]
        mine, other = await one.context(ANA), await one.context(BEN)
        assert "Porto" in await tools["brv_query"].run({"query": ASKED}, mine)
        assert await tools["brv_query"].run({"query": ASKED}, other) == "It has nothing to say."
        assert "It has 1 files" in await tools["brv_status"].run({}, mine)
        assert "It has 0 files" in await tools["brv_status"].run({}, other)
        assert [asked for asked in double.asked if "query" in asked] == ["POST /brv/query"]


def test_byterover_file_is_deleted_once_every_turn_it_came_from_is_forgotten(
    tmp_path: Path,
) -> None:
    tree = Tree(tmp_path, "space")
    folder = tree.root / "people"
    folder.mkdir(parents=True)

    def keeps(key: str, changes: Mapping[str, str | None]) -> None:
        ledger = Ledger(tree)
        ledger.begin(key)
        change(changes)
        ledger.finish(key)

    def change(changes: Mapping[str, str | None]) -> None:
        for name, text in changes.items():
            (folder / name).unlink() if text is None else (folder / name).write_text(text)

    def files() -> dict[str, list[str]]:
        ledger = Ledger(tree)
        return {
            key: [path.removeprefix("people/") for path in ledger.files_of(key)] for key in "abcd"
        }

    keeps("a", {"a.md": "a", "a.overview.md": "a", "_index.md": "a"})
    keeps("b", {"b.md": "b"})
    assert files() == {"a": ["a.md"], "b": ["b.md"], "c": [], "d": []}
    # brv adds new text to an existing file.
    keeps("c", {"b.md": "b and c"})
    assert files() == {"a": ["a.md"], "b": ["b.md"], "c": ["b.md"], "d": []}
    # Without a request, brv merges two files.
    change({"a.md": None, "a.overview.md": None, "all.md": "a and more"})
    assert files() == {"a": ["all.md"], "b": ["all.md", "b.md"], "c": ["all.md", "b.md"], "d": []}
    # The process ends in the middle.
    Ledger(tree).begin("d")
    change({"d.md": "d"})
    assert files()["d"] == ["d.md"]
    assert "d.md" not in files()["a"]
    Ledger(tree).take_out("c")
    assert sorted(path.name for path in folder.iterdir()) == ["d.md"]
    assert files() == {"a": [], "b": [], "c": [], "d": ["d.md"]}
    Ledger(tree).take_out("d")
    assert not folder.exists()
    assert json.loads(tree.ledger.read_text()) == {
        "seen": {},
        "files": {"a": [], "b": []},
        "begun": {},
    }


async def test_text_too_long_for_the_program_of_byterover_is_refused(home: Path) -> None:
    async with rover(home) as (double, provider, one):
        await one.memory.start()
        with pytest.raises(Refused, match="over 100,000 bytes"):
            await provider.add("x" * (MAX_TEXT_BYTES + 1), await one.context(ANA))
        assert double.log == []


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"url": "127.0.0.1:11434"}, "needs the url of a model server"),
        ({"model": " "}, "needs the url of a model server, .* and a model"),
        ({"brv_path": "there-is-no-brv"}, "npm install --global byterover-cli"),
    ],
)
def test_invalid_settings_of_a_memory_service_are_refused_with_a_sentence(
    home: Path, table: dict[str, Any], why: str
) -> None:
    good = {"url": "http://127.0.0.1:11434/v1", "model": "m", "brv_path": sys.executable}
    with pytest.raises(ConfigError, match=why):
        Plugins(home).create_provider("byterover", good | table, {})
