"""`mneme memory providers` and `mneme memory setup` as a program sees them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.doubles.remembrance import plugged
from tests.test_cli import good, mneme

pytestmark = pytest.mark.slow


def test_a_service_is_set_up_listed_and_switched_off(home: Path) -> None:
    plugged(home, "jotter")
    (home / "mneme.toml").write_text("# mine\n[general]\nzone = 'UTC'\n")
    assert "jotter: not set up; mneme memory setup jotter does it" in good(home, "memory", "providers")
    lacking = mneme(home, "memory", "setup", "jotter", "--set", "url=http://127.0.0.1:1")
    assert lacking.returncode == 1
    assert "key: what it knows us by, the name of the environment variable that holds it" in lacking.stderr
    said = good(home, "memory", "setup", "jotter", "--set", "url=http://x", "--set", "key=JOT_KEY", "--mode", "context")
    assert "is on, from the next start on" in said
    assert "the environment variable JOT_KEY is not set" in said
    text = (home / "mneme.toml").read_text()
    assert text.startswith("# mine\n[general]\nzone = 'UTC'\n")
    expected = {"enabled": True, "mode": "context", "sync_every_turns": 1, "url": "http://x", "key": "JOT_KEY"}
    assert tomllib.loads(text)["memory"]["providers"]["jotter"] == expected
    listed = mneme(home, "memory", "providers", "--json", JOT_KEY="k")
    assert json.loads(listed.stdout) == {
        "providers": {
            "notes": "built in, always on",
            "history": "built in, always on",
            "facts": "built in, always on",
            "jotter": "on, context",
        },
        "warnings": [],
    }
    good(home, "memory", "setup", "jotter", "--set", "url=http://y", "--every", "3")
    assert tomllib.loads((home / "mneme.toml").read_text())["memory"]["providers"]["jotter"] == expected | {
        "url": "http://y",
        "sync_every_turns": 3,
    }
    good(home, "memory", "setup", "jotter", "--off")
    assert "jotter: off" in good(home, "memory", "providers")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["nobody"], 1, "There is no memory provider nobody"),
        (["jotter", "--off"], 1, "is not set up, so it is off"),
        (["jotter", "--set", "colour=red"], 1, "There is no option colour; there are url, key"),
        (["jotter", "--set", "mode=tools"], 1, "mode has an option of its own"),
        (["jotter", "--set", "url"], 2, "write url=value"),
        (["jotter", "--set", "key=sk-1234"], 1, "the secret itself stays there"),
    ],
)
def test_what_cannot_be_set_up_is_a_sentence(home: Path, arguments: list[str], code: int, sentence: str) -> None:
    plugged(home, "jotter")
    done = mneme(home, "memory", "setup", *arguments)
    assert done.returncode == code
    assert sentence in " ".join(done.stderr.split())
    assert not (home / "mneme.toml").exists()
