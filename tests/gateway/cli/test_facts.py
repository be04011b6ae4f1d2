"""`mneme remember` and `mneme facts`, in this process."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fixtures.command_line import mneme


def test_remembered_fact_is_listed_and_closed_by_a_newer_one(home: Path) -> None:
    assert mneme(home, "facts").stdout == "Nothing yet.\n"
    assert mneme(home, "facts", "--json").stdout == "[]\n"
    first = mneme(home, "remember", "I", "live", "in", "Lisbon")
    assert first.stdout.startswith("I'll remember:\n\n• f1 I live in Lisbon (said on ")
    assert mneme(home, "remember", "I moved to Porto").returncode == 0
    listed = mneme(home, "facts").stdout.splitlines()
    assert listed[0].startswith("f2: I moved to Porto")
    assert "no longer so" in listed[1]
    lines = json.loads(mneme(home, "facts", "--json", "--limit", "1").stdout)
    assert [(line["content"], line["is_current"]) for line in lines] == [("I moved to Porto", True)]
    assert lines[0]["scope"] == "account:terminal:local"


def test_fact_with_a_key_is_not_kept_by_the_shell(home: Path) -> None:
    order = mneme(home, "remember", "Bearer 0123456789abcdef01234567 opens the lake house")
    assert order.returncode == 1
    assert "Not kept yet: it contains a key" in order.stderr
    assert mneme(home, "facts").stdout == "Nothing yet.\n"
