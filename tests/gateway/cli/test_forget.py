"""Forgetting in real processes: in a pipe, from the command line, and killed in the middle."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.command_line import good, mneme
from tests.fixtures.forgetting import left_of
from tests.gateway.cli.test_main import LINES, ROOT, imported

pytestmark = pytest.mark.slow

TYPED = "I moved to Porto in May.\n/new\nwhere do I live?\n/memory\n/forget Porto\nyes\n"


def test_forget_in_piped_chat_is_confirmed_by_a_typed_yes(home: Path) -> None:
    said = good(home, "chat", stdin=TYPED)
    before, _, after = said.partition("Forgotten: ")
    assert "I moved to Porto in May." in before
    assert "Yes: /yes" in before
    assert "nothing of it is left" in after
    for path in home.rglob("*"):
        assert not path.is_file() or b"porto" not in path.read_bytes().lower(), path
    assert "I moved" not in good(home, "chat", stdin="/recall Porto\nwhere do I live?\n")


def test_forget_on_the_command_line_asks_for_confirmation_before_it_erases(home: Path) -> None:
    lisbon = {
        "session": "trip",
        "role": "user",
        "text": "Then Lisbon.",
        "at": "2026-05-05",
        "id": "m3",
    }
    imported(home, [*LINES, lisbon])
    (home / "history.jsonl").unlink()
    asked = mneme(home, "forget", "Porto")
    assert asked.returncode == 2
    assert "ferry to Porto" in asked.stdout
    assert "--yes" in asked.stderr
    assert "Porto" in good(home, "recall", "Porto")
    assert mneme(home, "forget", "Porto", stdin="no\n").returncode == 2
    assert "Forgotten: 1 message" in good(home, "forget", "Lisbon", stdin="yes\n"), "a pipe is read"
    assert "nothing of it is left" in good(home, "forget", "Porto", "--yes")
    assert left_of("Porto", home / "state.db") == []
    assert "nothing with all of these words" in good(home, "forget", "Porto", "--yes")
    assert "Ana likes soup" in good(home, "recall", "soup")


@pytest.mark.slow
def test_erasure_interrupted_by_a_kill_is_finished_at_the_next_start(home: Path) -> None:
    lines = [
        {
            "session": f"s{n // 50}",
            "role": "user",
            "text": f"Porto is nice, number {n}",
            "at": "2026-05-03",
            "id": f"m{n}",
        }
        for n in range(1_200)
    ]
    imported(home, lines)
    (home / "history.jsonl").unlink()
    variables = {**os.environ, "MNEME_HOME": str(home), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway.cli.main", "forget", "Porto", "--yes"],
        env=variables,
        stdout=subprocess.DEVNULL,
    )
    with sqlite3.connect(home / "state.db") as looking:
        while process.poll() is None:
            if looking.execute("SELECT 1 FROM messages WHERE text = '' LIMIT 1").fetchone():
                process.send_signal(signal.SIGKILL)
                break
        process.wait()
        left = looking.execute("SELECT COUNT(*) FROM messages WHERE text <> ''").fetchone()[0]
    looking.close()
    assert 0 < left < 1_200, "it was in the middle"
    good(home, "chat", stdin="/status\n")
    assert "nothing with all of these words" in good(home, "forget", "Porto", "--yes")
    assert left_of("porto is nice", home / "state.db") == []
