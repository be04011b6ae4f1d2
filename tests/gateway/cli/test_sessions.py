"""`mneme sessions`, `export`, `import` as a person runs them: what is shown, what is said to be
missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fixtures.command_line import good, mneme
from tests.gateway.cli.test_main import ROOT

pytestmark = pytest.mark.slow

ANSWER = "“My sister Ana lives in Porto.”"
TALK = "My sister Ana lives in Porto.\n/new\nWhere does Ana live?\n"


def test_answers_without_a_model_are_shown_and_exported(home: Path, tmp_path: Path) -> None:
    good(home, "chat", stdin=TALK)
    assert "Where does Ana live?" in good(home, "recall", "in:2")
    done = mneme(home, "export")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["role"] for line in lines] == ["user", "assistant"] * 2
    assert ANSWER in lines[3]["text"]
    other = tmp_path / "other"
    assert "Imported 4 messages" in good(other, "import", "-", stdin=done.stdout)
    (found,) = json.loads(good(other, "recall", "Porto", "--json"))["sessions"]
    assert {match["role"] for match in found["matches"]} == {"user"}, (
        "what quotes history is not found beside it"
    )


def test_import_stores_each_line_in_the_scope_that_it_names(home: Path) -> None:
    mine = {"session": "a", "role": "user", "text": "mine", "at": "2026-05-03"}
    lines = [mine, mine | {"session": "b", "scope": "account:telegram:42"}]
    lines += [mine | {"session": "c", "scope": "room:discord:7", "text": text} for text in "xy"]
    file = "\n".join(json.dumps(line) for line in lines)
    good(home, "import", "-", stdin=file)
    assert len(good(home, "export", "--scope", "room:discord:7").splitlines()) == 2


def test_the_documented_example_is_importable_and_found(home: Path) -> None:
    section = (
        (ROOT / "docs" / "operating.md")
        .read_text()
        .partition("### JSON lines")[2]
        .partition("\n## ")[0]
    )
    example = section.partition("```json\n")[2].partition("```")[0]
    lines = [json.loads(line) for line in example.splitlines()]
    report = json.loads(good(home, "import", "-", "--json", stdin=example))
    assert (report["taken"], report["refused"]) == (len(lines), 0)
    (found,) = json.loads(good(home, "recall", "ferry", "--json"))["sessions"]
    assert found["title"] == lines[0]["title"]
    assert len(good(home, "export").splitlines()) == len(lines)


def test_exit_codes_of_commands_are_as_documented(home: Path) -> None:
    assert mneme(home, "export").returncode == 0, "nothing is there"
    assert mneme(home, "recall", "nowhere").returncode == 0
    good_line = json.dumps({"session": "a", "role": "user", "text": "kept", "at": "2026-05-03"})
    partly = mneme(home, "import", "-", stdin=f"{good_line}\nnonsense\n")
    assert partly.returncode == 0
    assert "Rejected 1 line" in partly.stderr
    assert mneme(home, "import", "-", stdin="nonsense\n").returncode == 1
    assert mneme(home, "recall", "in:99").returncode == 1
    for options in ((), ("--json",)):
        missing = mneme(home, "sessions", "in:99", *options)
        assert (missing.returncode, missing.stdout) == (1, "")
        assert missing.stderr == "There is no such conversation here.\n"
    assert mneme(home, "export", "--scope", "everyone").returncode == 2
