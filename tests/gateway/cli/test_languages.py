"""The command line in the language of the shell."""

from __future__ import annotations

import errno
import io
import json
import os
from pathlib import Path
from unittest.mock import patch

import pytest
from rich.console import Console

from config.settings import Settings, SettingsError
from core.errors import HistoryError, StoreError
from core.markup.tables import measure_width
from core.transfer.formats import ImportOptions
from core.transfer.source import Source
from gateway.cli.setup.dialog import Dialog
from gateway.cli.shell import confirm, describe_error, read_yes_or_no
from gateway.texts.catalog import SHELL, Texts
from gateway.texts.settings_problems import word_problem
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
    assert "lately|months> " in shown
    assert "[Vorgabe: lately]" in shown
    assert "--scope BEREICH" in shown
    english = mneme(home, "usage", "--help", LC_ALL="C").stdout
    assert english.startswith("Usage: mneme usage")
    assert "The last 30 days" in english


def test_help_in_japanese_fits_the_columns_of_a_terminal(home: Path) -> None:
    help_text = mneme(home, "setup", "--help", LC_ALL="ja_JP.UTF-8").stdout
    lines = help_text.splitlines()
    assert lines[0] == "使い方：mneme setup [オプション] [手順]"
    assert "引数：" in lines
    assert max(map(measure_width, lines)) <= 80
    # A sentence without spaces goes on in the next line.
    assert any(measure_width(line) > 70 for line in lines)


@pytest.mark.parametrize(
    "line",
    [
        'sessions.daily_at = "25:00"',
        'backup.passphrase = "bad name"',
        'owner.rooms = ["x"]',
        'access.people = ["x"]',
        'web.bind = "x"',
        'web.bind = "0.0.0.0"',
        'store.url = "mysql://x"',
        'calendar.x.url = "ftp://x"',
        'chats.x.folders = ["/nowhere"]',
        'telegram.webhook_listen = "x"',
        'backup.every = "2m"',
        'model.chat = "foo/"',
        'general.language = "xx"',
        'telegram.webhook_url = "http://bot.example.org"',
        "delegation.max_rounds = 1000",
        "[memory.providers.mem9]",
    ],
)
def test_rare_mistake_in_the_settings_is_in_the_language_of_the_shell(
    home: Path, line: str
) -> None:
    (home / "mneme.toml").write_text(line)
    with pytest.raises(SettingsError) as raised:
        Settings.load({"MNEME_HOME": str(home)})
    (problem,) = raised.value.located_problems
    assert problem.endswith(" (line 1)")
    english, german = (word_problem(Texts(code), problem) for code in ("en", "de"))
    assert german.partition(" (Zeile")[0] != english.partition(" (line")[0]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("recall", "--limit", "x"), "Falscher Wert für '--limit': eine ganze Zahl wird gebraucht"),
        (("recall", "--limit", "0"), "Falscher Wert für '--limit': mindestens 1"),
        (("recal", "x"), "Einen Befehl 'recal' gibt es nicht. Meintest du 'recall'?"),
        (("status", "--foo"), "Eine Option --foo gibt es nicht"),
        (("import",), "'DATEI' fehlt."),
        (("recall", "--limit"), "Die Option '--limit' braucht einen Wert."),
        (("status", "--json=3"), "Die Option '--json' hat keinen Wert."),
        (("status", "now"), "Damit kann der Befehl nichts anfangen: now"),
        (("usage", "foo"), "'foo' ist nicht dabei; möglich sind 'lately', 'months'."),
        (("people", "x", "--json"), "Falscher Wert für --json: nur die Liste gibt es als JSON"),
        (("--install-completion",), "Eine Option --install-completion gibt es nicht"),
    ],
)
def test_wrong_usage_is_reported_in_the_language_of_the_shell(
    home: Path, arguments: tuple[str, ...], problem: str
) -> None:
    done = mneme(home, *arguments, LC_ALL="de_AT.UTF-8")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("Fehler: ")
    assert done.stderr.splitlines()[-1].endswith(problem)


def test_reason_of_the_operating_system_is_in_the_language_of_the_shell(home: Path) -> None:
    missing = mneme(home, "import", "/nowhere", LC_ALL="de_AT.UTF-8")
    assert missing.stderr == "/nowhere gibt es nicht.\n"
    folder = mneme(home, "import", "/dev/null/x", LC_ALL="de_AT.UTF-8")
    assert folder.stderr == "/dev/null/x ist nicht benutzbar: kein Ordner.\n"
    broken = home / "broken.tar.gz"
    broken.write_bytes(b"hello")
    refused = mneme(home, "restore", str(broken), "--yes", LC_ALL="de_AT.UTF-8")
    assert "beschädigt (sie ist nicht mit gzip gepackt)" in refused.stderr
    problem = f"MNEME_HOME: the folder /x can't be created ({os.strerror(errno.EEXIST)}); choose"
    assert "gibt es schon" in word_problem(Texts("de"), f"{problem} another folder")
    unopened = StoreError("store_unopened", path="state.db", reason=os.strerror(errno.EACCES))
    assert Texts("de").word(unopened) == (
        "state.db lässt sich nicht zum Schreiben öffnen: keine Berechtigung. "
        "Prüf die Rechte des Ordners."
    )


@pytest.mark.parametrize(("code", "text"), [("fr_FR", "inutilisable"), ("nl_NL", "cannot be used")])
def test_error_of_a_file_is_in_the_language_of_the_shell(
    monkeypatch: pytest.MonkeyPatch, code: str, text: str
) -> None:
    monkeypatch.setenv("LC_ALL", code)
    assert text in describe_error(OSError(13, "Permission denied", "notes.md"))
    assert SHELL.language == ("fr" if code == "fr_FR" else "en")


def test_wrong_line_of_the_secrets_file_is_named_in_the_language_of_the_shell(home: Path) -> None:
    (home / "secrets.env").write_text("A=1\nno equals sign\n")
    with pytest.raises(SettingsError) as raised:
        Settings.load({"MNEME_HOME": str(home)})
    (problem,) = raised.value.located_problems
    sentence = "secrets.env: Zeile 2 sollte NAME=Wert lauten, zum Beispiel MY_KEY=abc"
    assert word_problem(Texts("de"), problem) == sentence


def test_question_is_asked_until_the_answer_is_yes_or_no_in_the_language_of_the_shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gateway.cli.shell.texts", Texts("de"))
    monkeypatch.setattr("sys.stdin", io.StringIO("vielleicht\nja\nn\n\n"))
    assert confirm("Ja?", default=False)
    assert not confirm("Ja?", default=True)
    assert confirm("Ja?", default=True)
    output = capsys.readouterr().out
    assert "Ja? [j/N]: Schreib j oder n.\n" in output
    assert "Ja? [J/n]: " in output


@pytest.mark.parametrize(
    ("language", "answer", "is_yes"),
    [
        ("de", " Ja ", True),
        ("es", "si", True),
        ("es", "sí", True),
        ("pt-BR", "nao", False),
        ("ko", "네", True),
        ("ko", "예", True),
        ("ja", "いいえ", False),
        ("tr", "h", False),
        ("tr", "HAYIR", False),
        ("fr", "yes", True),
        ("fr", "peut-être", None),
    ],
)
def test_setup_and_other_commands_read_yes_and_no_with_or_without_accents(
    language: str, answer: str, is_yes: bool | None
) -> None:
    texts = Texts(language)
    assert read_yes_or_no(answer, texts) is is_yes
    if is_yes is not None:
        dialog = Dialog(is_interactive=True, texts=texts, console=Console(file=io.StringIO()))
        with patch("builtins.input", return_value=answer):
            assert dialog.confirm("?", default=not is_yes) is is_yes


@pytest.mark.parametrize("name", ["empty.json", "page.html", "cut.json", "damaged.zip"])
def test_file_that_cannot_be_imported_is_refused_in_the_language_of_the_shell(
    home: Path, tmp_path: Path, name: str
) -> None:
    contents = {
        "empty.json": b"",
        "page.html": b"<html>",
        "cut.json": b'{"chats": {"list": [',
        "damaged.zip": b"PK\x03\x04 damaged",
    }
    file = tmp_path / name
    file.write_bytes(contents[name])
    with pytest.raises(HistoryError) as raised, Source.open(file, ImportOptions()) as source:
        list(source.read_records())
    assert Texts("de").word(raised.value) != str(raised.value)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ("[memory.providers.mem0]\n", "Das Gedächtnis mem0 ist aus: deployment fehlt."),
        (
            "[memory.providers.mem0]\ndeployment = 'x'\n",
            "deployment von mem0 muss eines davon sein: platform, self_hosted, embedded.",
        ),
        (
            "[memory.providers.honcho]\nurl = 'https://api.honcho.dev'\n",
            "honcho braucht den Schlüssel seiner Cloud",
        ),
        (
            "[memory.providers.honcho]\nurl = 'http://127.0.0.1:9'\nlimit = 'many'\n",
            "Das Gedächtnis honcho ist aus: limit muss eine ganze Zahl sein.",
        ),
        (
            "[memory.providers.honcho]\nurl = 'http://127.0.0.1:9'\n",
            "honcho ist nicht erreichbar (ConnectError): Läuft es, und stimmt die url?",
        ),
        ("[memory.providers.broken]\n", "Das Gedächtnis"),
    ],
)
@pytest.mark.slow
def test_problem_of_a_memory_service_is_in_the_language_of_the_shell(
    home: Path, settings: str, problem: str
) -> None:
    (home / "plugins").mkdir(mode=0o700)
    (home / "plugins" / "broken.py").write_text("raise ValueError('odd')\n")
    (home / "mneme.toml").write_text(settings)
    done = mneme(home, "check", "--json", LC_ALL="de_DE.UTF-8")
    texts = {result["subject"]: result["text"] for result in json.loads(done.stdout)}
    (text,) = [text for subject, text in texts.items() if subject.startswith("memory ")]
    assert text.startswith(problem)


def test_report_of_an_import_is_in_the_language_of_the_shell(home: Path, tmp_path: Path) -> None:
    export = {
        "chats": {
            "list": [
                {
                    "type": "personal_chat",
                    "id": 7,
                    "name": "Kim",
                    "messages": [
                        {"id": 1, "type": "service", "date": "2026-05-03T10:00:00", "text": ""},
                        {"id": 2, "type": "message", "date": "2026-05-03T10:00:00", "text": ""},
                    ],
                }
            ]
        }
    }
    (tmp_path / "result.json").write_text(json.dumps(export))
    done = mneme(home, "import", str(tmp_path / "result.json"), LC_ALL="de_DE.UTF-8")
    assert "Format der Datei: Export von Telegram." in done.stdout
    assert "Nachrichten ohne Text und Medien: 1" in done.stdout
    assert "Systemmeldungen (beigetreten, angeheftet, angerufen, …): 1" in done.stdout
    (tmp_path / "lines.jsonl").write_text('{"session": "a", "role": "user", "text": "x"}\n')
    done = mneme(home, "import", str(tmp_path / "lines.jsonl"), LC_ALL="de_DE.UTF-8")
    assert "Zeile 1: „at“ fehlt oder ist leer" in done.stderr


def test_files_left_out_of_a_backup_are_in_the_language_of_the_shell(
    home: Path, tmp_path: Path
) -> None:
    mneme(home, "remember", "Ana lives in Lisbon")
    (home / "skills").mkdir(exist_ok=True)
    (home / "skills" / "there").symlink_to(tmp_path)
    done = mneme(home, "backup", str(tmp_path / "backups"), LC_ALL="de_DE.UTF-8")
    assert "Nicht dabei: skills/there (ein Link)." in done.stdout


def test_unreadable_notes_and_renamed_settings_are_worded_in_the_language_of_the_shell(
    home: Path,
) -> None:
    german = {"LC_ALL": "de_DE.UTF-8"}
    (home / "memories").write_text("a file where a folder should be")
    (home / "mneme.toml").write_text("[cron]\nmax_jobs = 3\n")
    assert "ist nicht lesbar (" in mneme(home, "memory", "list", **german).stdout
    checked = json.loads(mneme(home, "check", "--json", **german).stdout)
    (settings,) = [result for result in checked if result["subject"] == "settings"]
    assert settings["advice"] == (
        "cron.max_jobs heißt jetzt limits.jobs; benenn es in mneme.toml um."
    )


def test_refusals_of_imports_and_skills_are_in_the_language_of_the_shell(
    home: Path, tmp_path: Path
) -> None:
    german = {"LC_ALL": "de_DE.UTF-8"}
    mneme(home, "remember", "Ana lives in Lisbon")
    own = mneme(home, "import", str(home / "state.db"), **german)
    assert "state.db ist eine state.db von Mneme selbst." in own.stderr
    (tmp_path / "deep.json").write_text('{"a":' * 200)
    deep = mneme(home, "import", str(tmp_path / "deep.json"), **german)
    assert "mehr als 100 Ebenen tief verschachtelt" in deep.stderr
    skill = tmp_path / "tidy"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: Tidy Up\ndescription: x\n---\n")
    refused = mneme(home, "skills", "add", str(skill), **german)
    assert "Zeile 2: „Tidy Up“ kann kein Name einer Fähigkeit sein" in refused.stderr
