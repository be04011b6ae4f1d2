"""A home that moves to another machine answers like the first one."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from config.settings import Settings
from core.types import Account, Scope
from gateway.services import Services
from tests.end_to_end.test_home_upgrade import unpacked
from tests.fixtures.command_line import good, mneme
from tests.fixtures.forked import ROOT
from tests.fixtures.gateway_harness import open_gateway

pytestmark = pytest.mark.slow

OWNER = Account(platform="telegram", user_id="4242")
OWNER_SCOPE = Scope.account(OWNER.platform, OWNER.user_id)
DRAWER = "The passports are in the blue drawer"
# Commands that read everything a person can ask for.
QUESTIONS = (
    ("sessions", "--limit", "1000", "--json"),
    ("recall", "blue drawer", "--json"),
    ("recall", "bonsai", "--json"),
    ("recall", "mooring licence", "--json"),
    ("facts", "--json"),
    ("memory", "list", "--json"),
    ("memory", "why", "f1"),
    ("memory", "history", "--json"),
    ("memory", "pending"),
    ("cron", "--json"),
    ("skills", "--json"),
    ("people",),
    ("usage", "months", "--json"),
    ("export",),
    ("export", "--scope", "account:telegram:7"),
)


async def approve_owner(home: Path) -> None:
    """Make an account the owner's with a code, as a person does who set nothing in mneme.toml."""
    async with Services.open(Settings.load({"MNEME_HOME": str(home)})) as services:
        pairing = await services.people.request_pairing(OWNER, "Ana", services.clock.now())
        assert pairing is not None
        # The home was killed during an erasure, which a restore finishes, too.
        await services.forgetting.resume()
    await asyncio.to_thread(good, home, "approve", pairing.code, "--owner")


async def talk_as_owner(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say(DRAWER, OWNER.user_id)
        await harness.say("/remind tomorrow at 9 water the bonsai", OWNER.user_id)
        await harness.say("/memory add Ana lives in Porto", OWNER.user_id)


def write_everything(home: Path) -> Path:
    """The file of `mneme export --all`, which isn't text."""
    file = home.with_name("mneme.tar.gz")
    with file.open("wb") as output:
        subprocess.run(
            [sys.executable, "-m", "gateway.cli.main", "export", "--all"],
            stdout=output,
            env={**os.environ, "MNEME_HOME": str(home), "PYTHONPATH": str(ROOT)},
            check=True,
        )
    return file


def answer(home: Path, question: tuple[str, ...]) -> str:
    """What a command prints, without the time that it took."""
    done = mneme(home, *question)
    assert done.returncode == 0, done.stderr
    return re.sub(r'"took_ms": [0-9.]+', "", done.stdout)


# The home was written by an earlier version, so it has a state.db.
@pytest.mark.sqlite
async def test_moved_home_answers_every_question_like_the_first(tmp_path: Path) -> None:
    home = unpacked(tmp_path, "home_wal")
    await asyncio.to_thread(good, home, "sessions")
    await approve_owner(home)
    line = {"session": "ana", "role": "user", "text": DRAWER, "at": "2026-05-03T09:00:00Z"}
    own = {"platform": "telegram", "chat": "4242", "scope": OWNER_SCOPE.key}
    (tmp_path / "said.jsonl").write_text(json.dumps(line | own))
    await asyncio.to_thread(good, home, "import", str(tmp_path / "said.jsonl"))
    await asyncio.to_thread(good, home, "remind", "tomorrow at 9 water the bonsai")
    # The first export gives the home its name in exports.
    await asyncio.to_thread(good, home, "export")
    file = await asyncio.to_thread(write_everything, home)
    (tmp_path / "machine").mkdir()
    other = tmp_path / "machine" / "home"
    printed = good(other, "import", str(file))
    assert "Don't run the old home any longer" in printed
    for question in QUESTIONS:
        first, second = answer(home, question), answer(other, question)
        assert first == second, question
        assert len(first) > 20, question
    assert DRAWER in answer(other, ("recall", "blue drawer", "--json"))
    # The owner's account is still the owner's, without any setting.
    async with Services.open(Settings.load({"MNEME_HOME": str(other)})) as services:
        access = await services.people.load_access(OWNER, OWNER_SCOPE)
        assert access.is_owner


# The archive with everything contains state.db.
@pytest.mark.sqlite
async def test_everything_isn_t_imported_into_a_home_with_messages(tmp_path: Path) -> None:
    home = tmp_path / "home"
    good(home, "chat", stdin="hello\n")
    file = await asyncio.to_thread(write_everything, home)
    refused = mneme(home, "import", str(file))
    assert refused.returncode == 1
    assert "already has" in refused.stderr
    assert "mneme restore FILE" in refused.stderr


@pytest.mark.sqlite
async def test_everything_replaces_settings_and_reminders_only_after_a_yes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    good(home, "sessions")
    file = await asyncio.to_thread(write_everything, home)
    other = tmp_path / "other"
    good(other, "remind", "tomorrow at 9 water the bonsai")
    good(other, "config", "set", "limits.jobs", "7")
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(file.read_bytes()[:2000])
    refused = mneme(other, "import", str(broken))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "its end is missing" in refused.stderr
    refused = mneme(other, "import", str(file))
    assert refused.returncode == 2
    assert f"{other} already has 1 reminder and mneme.toml" in refused.stdout
    assert "bonsai" in good(other, "cron")
    printed = good(other, "import", "-", "--yes", stdin=file.read_bytes())
    assert "Nothing was forgotten" not in printed
    assert "bonsai" not in good(other, "cron")
    assert good(other, "config", "get", "limits.jobs") == "100\n"


async def test_export_of_an_owner_approved_by_code_is_the_owner_s_in_a_new_home(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "mneme.toml").write_text("")
    await approve_owner(home)
    await talk_as_owner(home)
    exported = await asyncio.to_thread(good, home, "export")
    lines = map(json.loads, exported.splitlines())
    (line,) = [one for one in lines if one["text"] == DRAWER]
    assert (line["scope"], line["whose"]) == ("account:telegram:4242", "owner")
    (tmp_path / "history.jsonl").write_text(exported)
    other = tmp_path / "new" / "home"
    other.mkdir(parents=True)
    for taken in (len(exported.splitlines()), 0):
        report = json.loads(good(other, "import", str(tmp_path / "history.jsonl"), "--json"))
        assert report["taken"] == taken
    assert DRAWER in good(other, "recall", "blue drawer")
    assert re.search(r"\d", good(other, "sessions"))
    # In the first home, nothing is imported a second time.
    report = json.loads(good(home, "import", str(tmp_path / "history.jsonl"), "--json"))
    assert report["taken"] == 0


async def test_export_of_a_member_isn_t_the_owner_s(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with open_gateway(home) as harness:
        await harness.say("I keep bees", "7")
    exported = await asyncio.to_thread(good, home, "export", "--scope", "account:telegram:7")
    assert "bees" in exported
    assert "whose" not in exported
