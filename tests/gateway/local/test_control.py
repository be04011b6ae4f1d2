"""What other commands learn from a running gateway, and which settings it takes up."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from gateway.local.control import ask_gateway, list_changes
from gateway.local.sockets import find_socket
from tests.fixtures.command_line import good, mneme
from tests.gateway.local.running import PERSON, open_gateway

pytestmark = pytest.mark.slow


def load(home: Path, toml: str) -> Settings:
    return Settings.load({"MNEME_HOME": str(home)}, own_text=toml)


def test_changed_settings_are_listed_by_their_paths(home: Path) -> None:
    old = load(home, "")
    new = load(home, '[owner]\ntelegram = [42]\n[limits.day]\nanswers = 5\n[general]\nzone="UTC"\n')
    changes = set(list_changes(old, new))
    assert {"owner.telegram", "limits.day.answers"} <= changes
    assert changes <= {"owner.telegram", "limits.day.answers", "general.zone"}


def test_control_socket_request_without_a_running_gateway_returns_nothing(home: Path) -> None:
    assert ask_gateway(home, "state") is None
    assert "not running" in good(home, "status")


def test_people_and_approve_commands_print_json(home: Path) -> None:
    (home / "mneme.toml").write_text("[owner]\ntelegram = [42]\n")
    people = json.loads(good(home, "people", "--json"))
    assert ("telegram:42", "settings") in [(one["account"], one["access"]) for one in people]
    assert json.loads(good(home, "approve", "--json")) == []
    refused = mneme(home, "people", "remove", "telegram:42", "--json")
    assert refused.returncode == 2


async def test_shell_commands_ask_the_running_gateway_for_its_actual_state(home: Path) -> None:
    """The shell has neither the token nor the key of the running process."""
    async with open_gateway(home) as gateway:
        assert find_socket(home, "control").stat().st_mode & 0o777 == 0o600
        status = ""
        while "telegram: connected" not in status:
            status = await asyncio.to_thread(good, home, "status")
        assert "reports the states below" in status.splitlines()[0]
        assert "model: claude-sonnet-5-5" in status
        checked = await asyncio.to_thread(mneme, home, "check", "--json")
        results: dict[str, Any] = {one["subject"]: one for one in json.loads(checked.stdout)}
        assert results["telegram"]["state"] == "right"
        assert "The running process says: connected." in results["telegram"]["text"]
        assert "claude-sonnet-5-5" in results["model"]["text"]
        assert results["discord"]["state"] == "off"
        assert "It reports" in results["process"]["text"]

        told = await asyncio.to_thread(good, home, "config", "set", "general.log_level", "debug")
        assert "uses it from now on" in told
        told = await asyncio.to_thread(good, home, "config", "set", "limits.owner_day.money", "5")
        assert "uses it from now on" in told
        told = await asyncio.to_thread(good, home, "config", "set", "model.tries", "3")
        assert "uses model.tries after its next start" in told

        gateway.telegram.user_says(77, "hello")
        await gateway.telegram.wait_for(lambda: len(gateway.telegram.texts(77)) == 1)
        assert len(gateway.telegram.texts(77)[0].split()) < 45
        owners = f"{PERSON}, 77"
        told = await asyncio.to_thread(good, home, "config", "set", "owner.telegram", owners)
        assert "uses it from now on" in told
        assert "model.tries" not in told
        gateway.telegram.user_says(77, "/whoami")
        await gateway.telegram.wait_for(lambda: len(gateway.telegram.texts(77)) == 2)
        assert "owner" in gateway.telegram.texts(77)[1]
