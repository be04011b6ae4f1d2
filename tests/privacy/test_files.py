"""Files beside state.db lose what is forgotten, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.privacy.home_files import HomeFiles
from core.privacy.quotes import QuoteMatcher
from core.types import Scope

TERMINAL = Scope.account("terminal", "local")
HISTORY = (
    "\n# 2026-11-20 12:00:00\n+My flat is in Porto\n\n# 2026-11-20 12:01:00\n+/recall\n+two lines\n"
)


def test_forgotten_words_are_erased_from_the_terminal_history_and_the_log(home: Path) -> None:
    (home / "terminal_history").write_text(HISTORY)
    (home / "mneme.log").write_text(
        "started\nbad row: my flat is in Porto near the river\nstopped\n"
    )
    (home / "mneme.log.1").write_text("fine\n")
    said = ["My flat is in Porto", "Here my flat is in Porto near the sea"]
    HomeFiles(home).erase(frozenset({Scope.account("telegram", "7")}), QuoteMatcher((), said))
    assert (home / "terminal_history").read_text() == HISTORY, "nobody else typed there"
    assert (home / "mneme.log").read_text() == "started\nstopped\n"
    HomeFiles(home).erase(frozenset({TERMINAL}), QuoteMatcher((), said))
    assert (
        home / "terminal_history"
    ).read_text() == "\n# 2026-11-20 12:01:00\n+/recall\n+two lines\n"
    assert (home / "mneme.log.1").read_text() == "fine\n"


def test_terminal_history_loses_forgotten_words_and_commands_that_contain_them(home: Path) -> None:
    path = home / "terminal_history"
    typed = "\n# 2026-11-20 12:00:00\n+/recall Porto\n\n# 2026-11-20 12:01:00\n+tea\n\n# 2026-11-20 12:02:00\n+Porto!\n"
    path.write_text(typed)
    papers, words, mine = HomeFiles(home), QuoteMatcher(("porto",)), frozenset({TERMINAL})
    assert papers.list_typed_entries(frozenset({Scope.account("telegram", "7")})) == []
    papers.erase(mine, words)
    assert papers.list_typed_entries(mine) == ["tea"]
    assert papers.list_typed_entries(frozenset()) == []


def test_erasure_in_a_home_without_history_and_log_files_creates_none(home: Path) -> None:
    HomeFiles(home).erase(frozenset({TERMINAL}), QuoteMatcher((), ["Lives in Porto"]))
    assert list(home.iterdir()) == []


def test_a_file_that_cannot_be_changed_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    def locked(path: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if mode != "r":
            raise PermissionError("not ours")
        return opened(path, mode, *rest, **more)

    (home / "mneme.log").write_text("bad row: I moved to Porto in May of last year\n")
    (home / "terminal_history").write_text(HISTORY)
    monkeypatch.setattr(Path, "open", locked)
    said = ["Lives in Porto", "My flat is in Porto", "I moved to Porto in May of last year"]
    stuck = HomeFiles(home).erase(frozenset({TERMINAL}), QuoteMatcher((), said))
    assert stuck == ["mneme.log", "terminal_history"]


def test_erasure_skips_the_installed_programs_of_an_engine(home: Path) -> None:
    installed, kept = home / "engines/hindsight/environment", home / "engines/hindsight/postgres"
    for folder in (installed, kept):
        folder.mkdir(parents=True)
        (folder / "16384").write_text("My flat is in Porto")
    assert HomeFiles(home).find_files_containing("flat is in Porto", lambda text: False) == [
        "engines/hindsight/postgres/16384"
    ]
