"""`mneme remember` and `mneme facts`, in this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.main import app


@pytest.fixture
def mneme(home: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.setenv("MNEME_HOME", str(home))
    return CliRunner()


def test_what_is_remembered_is_listed_and_closed_by_what_is_newer(mneme: CliRunner) -> None:
    assert mneme.invoke(app(), ["facts"]).output == "Nothing yet.\n"
    first = mneme.invoke(app(), ["remember", "I", "live", "in", "Lisbon"])
    assert first.output.startswith("I will remember:\n\n• f1 I live in Lisbon (said on ")
    assert mneme.invoke(app(), ["remember", "I moved to Porto"]).exit_code == 0
    listed = mneme.invoke(app(), ["facts"]).output.splitlines()
    assert listed[0].startswith("f2: I moved to Porto")
    assert "no longer so" in listed[1]
    lines = [json.loads(line) for line in mneme.invoke(app(), ["facts", "--json", "--limit", "1"]).output.splitlines()]
    assert [(line["content"], line["is_current"]) for line in lines] == [("I moved to Porto", True)]
    assert lines[0]["scope"] == "account:terminal:local"


def test_no_order_is_kept(mneme: CliRunner) -> None:
    order = mneme.invoke(app(), ["remember", "Bearer 0123456789abcdef01234567 opens the lake house"])
    assert order.exit_code == 1
    assert "Not kept yet: it contains a key" in order.stderr
    assert mneme.invoke(app(), ["facts"]).output == "Nothing yet.\n"
