"""The command line in the language of the shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli.shell import describe_error
from gateway.texts.catalog import SHELL
from tests.fixtures.command_line import mneme


def test_command_line_prints_help_and_errors_in_the_language_of_the_shell(home: Path) -> None:
    german = {"LC_ALL": "de_AT.UTF-8"}
    refusal = mneme(home, "config", "set", "model.chatt", "x", **german)
    assert refusal.stderr == "Eine Option model.chatt gibt es nicht. Meintest du model.chat?" + (
        " Nichts wurde geändert.\n"
    )
    shown = mneme(home, "usage", "--help", **german).stdout
    assert shown.startswith("Aufruf: mneme usage")
    assert "Die letzten 30 Tage" in shown
    english = mneme(home, "usage", "--help", LC_ALL="C").stdout
    assert english.startswith("Usage: mneme usage")
    assert "The last 30 days" in english


@pytest.mark.parametrize(("code", "text"), [("fr_FR", "inutilisable"), ("nl_NL", "cannot be used")])
def test_error_of_a_file_is_in_the_language_of_the_shell(
    monkeypatch: pytest.MonkeyPatch, code: str, text: str
) -> None:
    monkeypatch.setenv("LC_ALL", code)
    assert text in describe_error(OSError(13, "Permission denied", "notes.md"))
    assert SHELL.language == ("fr" if code == "fr_FR" else "en")
