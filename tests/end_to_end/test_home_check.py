"""A home written by 6540fd2 is healthy once it was opened, whatever the hash seed, and its plugins
load."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.test_home_upgrade import COMMAND, environment, unpacked
from tests.fixtures.command_line import good
from tests.fixtures.forked import ROOT

# The homes of earlier versions have a state.db.
pytestmark = [pytest.mark.slow, pytest.mark.sqlite]


def checked(home: Path, seed: str, *options: str) -> str:
    done = subprocess.run(
        [*COMMAND, "check", *options],
        cwd=ROOT,
        env=environment(home, PYTHONHASHSEED=seed, COLUMNS="400"),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    return done.stdout


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("variant", "seed"),
    [("home", "0"), ("home_wal", "31337")],
)
def test_an_upgraded_home_is_healthy_whatever_the_hash_seed(
    tmp_path: Path, variant: str, seed: str
) -> None:
    home = unpacked(tmp_path, variant)
    wrong = ["flagged for a rebuild"]
    # The indexes are made anew while it runs, and it ends with its input.
    for _ in range(8):
        if any("flagged for a rebuild" in line for line in wrong):
            good(home, "chat", stdin="/status\n")
            wrong = [line for line in checked(home, seed).splitlines() if line.startswith("wrong")]
    # What the version before had not handled is listed once, and what it could not deliver.
    expected = ("memory diary", "an earlier version", "Forbidden: bot was blocked by the user")
    assert [line for line in wrong if not any(text in line for text in expected)] == []


def test_search_index_built_under_one_hash_seed_passes_the_check_under_another(
    tmp_path: Path,
) -> None:
    home = unpacked(tmp_path, "home")
    assert "wrong  search index" not in checked(home, "5", "--repair")
    assert "wrong  search index" not in checked(home, "6")


def test_a_memory_service_written_for_the_version_before_still_works(tmp_path: Path) -> None:
    """The plugin is the whole example of the README of 6540fd2, which people have copied."""
    home = unpacked(tmp_path, "home")
    said = good(home, "memory", "providers")
    assert "diary: on" in said
    assert "cannot be used" not in said


def test_every_option_of_the_version_before_is_understood(tmp_path: Path) -> None:
    home = unpacked(tmp_path, "home")
    assert "right  settings" in checked(home, "0")
    usage = json.loads(good(home, "usage", "--json"))
    assert usage["currency"] == "EUR "
