"""The line about the progress of an upgrade, on a terminal and elsewhere."""

from __future__ import annotations

from io import StringIO

from core.store.sqlite.upgrade import UpgradeProgress, UpgradeStage
from gateway.upkeep.upgrading import ProgressLine


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_long_database_upgrade_shows_one_progress_line_that_is_removed_at_its_end() -> None:
    terminal = Terminal()
    line = ProgressLine(terminal, show_after_s=0.0)
    line.show(UpgradeProgress(UpgradeStage.COPY, 50, 200))
    line.show(UpgradeProgress(UpgradeStage.CHANGE, 38, 38))
    line.clear()
    first, second, empty, rest = terminal.getvalue().removeprefix("\r").split("\r")
    assert first == "Copying state.db before its upgrade: 25 %"
    assert second.rstrip() == "Upgrading state.db: step 38 of 38"
    assert (len(second), empty.strip(), rest) == (len(first), "", "")


def test_short_database_upgrade_shows_no_progress_line() -> None:
    terminal = Terminal()
    line = ProgressLine(terminal, show_after_s=3600.0)
    line.show(UpgradeProgress(UpgradeStage.CHECK, 0, 1))
    line.clear()
    assert terminal.getvalue() == ""


def test_upgrade_without_a_terminal_shows_no_line() -> None:
    output = StringIO()
    line = ProgressLine(output, show_after_s=0.0)
    line.show(UpgradeProgress(UpgradeStage.CHECK, 0, 1))
    line.clear()
    assert output.getvalue() == ""
