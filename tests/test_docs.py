"""What the documents say is true: their commands run, their links and paths exist, their examples
work."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from core.dates.lexicon import build_lexicon
from core.dates.period_lexicon import add_day_names, new_period_words
from core.dates.recurrence import next_recurrences
from core.dates.requests.reader import read_in_language
from core.dates.tokens import Kind
from core.errors import ToolError
from core.memory.plugins import SERVICES_FOLDER, Plugins
from core.ports import Adapter, Reply
from core.skills.folders import read_skill
from core.store.archive import TransferRecord
from core.transfer.formats import ImportOptions
from core.types import Answer, Inbound, ToolContext
from gateway.cli.main import app
from tests.fixtures.command_line import mneme
from tests.fixtures.skill_folders import skill_text

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
        *(ROOT / "docs").glob("*.md"),
    ]
)
HISTORY = [
    {"session": "trip", "title": "Trip to Porto", "role": "user", "sender": "Ana", "id": "17"}
    | {"text": "When does the ferry to Lisbon leave?", "at": "2026-05-03T09:00:00+01:00"},
    {
        "session": "trip",
        "role": "assistant",
        "text": "At nine, from the north quay.",
        "at": "2026-05-03T09:00:05+01:00",
    },
]
"""The file trip.jsonl that the documents import."""


def commands(document: Path) -> list[list[str]]:
    """The arguments of each line ``$ mneme …`` in the console blocks of a document, in order."""
    return [
        shlex.split(line.removeprefix("$ mneme"), comments=True)
        for block in _blocks(document, "console")
        for line in block.splitlines()
        if line.startswith("$ mneme")
    ]


def _blocks(document: Path, language: str) -> Iterator[str]:
    text = document.read_text(encoding="utf-8")
    yield from re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "document", [one for one in DOCUMENTS if commands(one)], ids=lambda path: path.name
)
def test_every_mneme_command_in_the_docs_runs_successfully(document: Path, home: Path) -> None:
    lines = "".join(json.dumps(line) + "\n" for line in HISTORY)
    (home.parent / "trip.jsonl").write_text(lines, encoding="utf-8")
    (home.parent / "tidy-inbox").mkdir()
    (home.parent / "tidy-inbox" / "SKILL.md").write_text(skill_text("tidy-inbox"), encoding="utf-8")
    for given in (["import", "trip.jsonl"], ["remember", "Ana", "lives", "in", "Zanzibar"]):
        assert mneme(home, *given).returncode == 0
    for arguments in commands(document):
        output = None
        if ">" in arguments:
            output, arguments = (
                arguments[arguments.index(">") + 1],
                arguments[: arguments.index(">")],
            )
        done = mneme(home, *arguments)
        assert done.returncode == 0, f"mneme {shlex.join(arguments)}: {done.stderr}"
        assert done.stdout, f"mneme {shlex.join(arguments)} says nothing"
        if output:
            (home.parent / output).write_text(done.stdout, encoding="utf-8")


def list_service_setups() -> list[list[str]]:
    """The arguments behind `mneme memory setup` in all documents, split as a shell does."""
    texts = [document.read_text(encoding="utf-8").replace("\\\n", " ") for document in DOCUMENTS]
    return [
        shlex.split(line)
        for text in texts
        for line in re.findall(r"mneme memory setup ([a-z0-9]+ --set [^`|\n]+)", text)
    ]


def test_documented_service_setups_name_options_of_the_service_and_all_required_ones(
    home: Path,
) -> None:
    setups = list_service_setups()
    for name, *arguments in setups:
        form = Plugins(home).load_form(name)
        assert arguments[::2] == ["--set"] * (len(arguments) // 2)
        values = dict(part.split("=", 1) for part in arguments[1::2])
        for key, value in values.items():
            form.parse_value(key, value)
        assert set(form.required_names) <= set(values), name
    services = {path.stem for path in SERVICES_FOLDER.glob("[a-z]*.py")}
    assert {name for name, *_ in setups} == services


FAULTS = (
    "can't be reached, for any length of time",
    "The write-ahead log stays small",
    "interrupts an answer to a Telegram group",
    "refuses the token",
    "each write of a tool, happens once",
    "Discord can't be reached, and people write",
    "in the order in which they were due",
    "`state.db` is missing or empty",
    "removes, replaces or cuts off `state.db`",
    "part of `state.db` is damaged",
    "removes `state.db-wal`",
    "locks `state.db`",
    "disk is full",
    "files may be open",
    "costly to read",
    "200 people write for half an hour",
)
"""Words of the guarantees against faults that once lost messages, or that no one noticed."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_paths_in_the_docs_exist(document: Path) -> None:
    text = re.sub(
        r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if path.startswith("http"):
            continue
        file = (document.parent / path).resolve() if path else document
        assert file.exists(), target
        if anchor:
            assert anchor in _anchors(file), target
    for path in re.findall(r"`((?:config|core|adapters|gateway|tests)/[\w/]*(?:\.\w+)?)`", text):
        assert (ROOT / path).exists(), f"{document.name} speaks of {path}"


def _anchors(document: Path) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.casefold()).replace(" ", "-") for heading in headings}


def test_each_guarantee_names_tests_that_exist() -> None:
    text = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    section = text.partition("\n## What Mneme guarantees\n")[2].partition("\n### ")[0]
    _, _, *guarantees = re.findall(r"^\|(.+)\|$", section, re.MULTILINE)
    assert len(guarantees) >= len(FAULTS)
    for guarantee in guarantees:
        _, _, tests = guarantee.split(" | ")
        paths = re.findall(r"`(tests/[\w/]+\.py)`", tests)
        assert paths, guarantee
        for path in paths:
            assert "def test_" in (ROOT / path).read_text(encoding="utf-8"), path
    for fault in FAULTS:
        assert any(fault in guarantee for guarantee in guarantees), fault


@pytest.mark.parametrize(
    ("page", "heading", "count"),
    [
        ("architecture", "Files that people send", 50),
        ("architecture", "Tools, the web and the calendar", 24),
        ("architecture", "Faults", 16),
        ("models", "How this is tested", 30),
        ("languages", "How this is tested", 18),
    ],
)
def test_each_documented_capability_cites_existing_tests(
    page: str, heading: str, count: int
) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][2:]
    assert len(rows) >= count
    for row in rows:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert tests, row
        for path, name in tests:
            source = (ROOT / path).read_text(encoding="utf-8")
            assert re.search(rf"^(async )?def {name}\(", source, re.M), (path, name)


@pytest.mark.parametrize("page", ["architecture", "models", "languages", "operating"])
def test_tests_that_a_page_cites_exist(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    for path, name in set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)):
        source = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^(async )?def {name}\(", source, re.M), (path, name)


def test_each_promise_in_security_md_cites_a_test_and_its_exclusions_are_listed() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    promised, refused, report = text.split("\n## ")[1:]
    for promise in promised.split("\n\n**")[1:]:
        assert "(`tests/" in promise, promise
    for what in ("person types", "plugin does", "provider that runs the model", "platforms"):
        assert what in refused
    assert "Report a vulnerability" in report
    assert "SECURITY.md" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["diary", "shelf", "vectors"])
def test_example_provider_in_the_docs_equals_the_tested_file(name: str) -> None:
    example = (ROOT / "tests" / "fixtures" / "plugins" / f"{name}.py").read_text(encoding="utf-8")
    assert example in list(_blocks(ROOT / "docs" / "extending.md", "python"))


async def test_example_tool_of_the_docs_counts_days() -> None:
    tool = _example("days_until")["days_until"]()
    context = cast(ToolContext, SimpleNamespace(now=datetime(2026, 12, 20, tzinfo=UTC)))
    assert await tool.run({"day": "2026-12-24"}, context) == "4 days"
    with pytest.raises(ToolError, match="isn't a date"):
        await tool.run({"day": "Christmas"}, context)


def test_example_skill_of_the_docs_is_a_valid_skill(tmp_path: Path) -> None:
    (text,) = _blocks(ROOT / "docs" / "extending.md", "markdown")
    (tmp_path / "plan-a-trip").mkdir()
    (tmp_path / "plan-a-trip" / "SKILL.md").write_text(text, encoding="utf-8")
    skill = read_skill(tmp_path / "plan-a-trip", "skills/plan-a-trip")
    assert skill.description.startswith("Plans a trip by train: use it when")
    assert (skill.front["license"], skill.front_value("version"), skill.front_value("tags")) == (
        "MIT",
        "1.2",
        "travel, trains",
    )


def test_example_import_format_of_the_docs_reads_a_chat_log() -> None:
    stream = io.BytesIO(
        b"2026-05-03 09:00 <ana> hello\n* bob has joined\n2026-05-03 09:01 <mneme> hi Ana\n"
    )
    records = list(
        _example("IRC logs")["read"](
            stream, "#porto", ImportOptions(assistant_names=frozenset({"mneme"}))
        )
    )
    assert [
        (one.role, one.text) if isinstance(one, TransferRecord) else one.reason for one in records
    ] == [
        ("user", "hello"),
        "lines without a message",
        ("assistant", "hi Ana"),
    ]


async def test_the_documented_platform_takes_a_line_and_answers_it() -> None:
    lines = _example("class Lines")["Lines"]()
    platform: Adapter = lines
    await platform.open()
    listening = asyncio.create_task(platform.listen(EchoSink(), ()))
    await lines.listening.wait()
    reader, writer = await asyncio.open_connection("127.0.0.1", lines.port)
    writer.write(b"ana\nIs the ferry late?\n")
    assert await reader.readline() == b"You said: Is the ferry late?\n"
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    await platform.close()
    writer.close()


class EchoSink:
    """Answers every event with what it said."""

    def __init__(self) -> None:
        self._admitted: list[tuple[Inbound, Reply]] = []

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        self._admitted.append((inbound, reply))
        return len(self._admitted)

    async def serve(self, entry_id: int) -> None:
        inbound, reply = self._admitted[entry_id - 1]
        await reply.finish(Answer(text=f"You said: {inbound.text}"))

    async def migrate_group(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        raise AssertionError("nothing moves here")


def _example(mark: str) -> dict[str, Any]:
    """The names that the example with this in its text defines."""
    (code,) = (
        block for block in _blocks(ROOT / "docs" / "extending.md", "python") if mark in block
    )
    module = ModuleType("example")
    sys.modules["example"] = module
    exec(compile(code, "docs/extending.md", "exec"), module.__dict__)
    return module.__dict__


def test_every_chat_command_is_documented_in_using() -> None:
    text = (ROOT / "docs" / "using.md").read_text(encoding="utf-8")
    chat = tomllib.loads(
        (ROOT / "gateway" / "commands" / "data" / "commands.toml").read_text(encoding="utf-8")
    )
    assert [name for name in chat if f"`/{name}" not in text] == []
    shell = [command.name for command in app().registered_commands] + [
        group.name for group in app().registered_groups
    ]
    assert [name for name in shell if f"mneme {name}" not in text and name != "run"] == []


@pytest.mark.slow
def test_the_documented_language_works_with_its_file(tmp_path: Path) -> None:
    _, example = _blocks(ROOT / "docs" / "extending.md", "toml")
    for package in ("config", "core", "adapters", "gateway"):
        shutil.copytree(ROOT / package, tmp_path / package)
    texts = tmp_path / "gateway" / "texts"
    (texts / "it.toml").write_text(example, encoding="utf-8")

    shown = subprocess.run(
        [sys.executable, "-c", _ITALIAN], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.splitlines()

    assert shown == [
        "Non hai promemoria. Creane uno con `/remind domani alle 9 chiamare Ana`.",
        "Qui non c'è il promemoria 7.",
        "2 messaggi",
        "domenica 3 maggio 2026 alle 10:30",
        "ogni lunedì alle 08:30",
        "help",
        # What the file lacks is in English.
        "Done.",
        "Italiano",
    ]
    environment = {**os.environ, "LC_ALL": "it_IT.UTF-8", "MNEME_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "gateway.cli.main"]
    for arguments in (["--help"], ["recall", "--help"], ["recal"], ["status"]):
        done = subprocess.run(
            [*command, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        output = done.stdout + done.stderr
        assert done.returncode == (2 if arguments == ["recal"] else 0), output
        assert "Traceback" not in output
        assert {"--help": "Opzioni:", "recal": "Errore: "}.get(arguments[-1], "") in output


# Shows texts of the documented language, in a copy of the code that has it.
_ITALIAN = """
from datetime import UTC, datetime
from core.errors import Refused
from core.scheduling.recurrence_words import describe_recurrences
from gateway.texts.catalog import load_texts
from gateway.texts.command_names import find_alias
from gateway.texts.text_files import load_names
texts = load_texts("it-IT")
print(texts.NO_REMINDERS)
print(texts.word(Refused("no_such_reminder", id=7)))
print(texts.format_count(2, "message"))
print(texts.schedule_words.format_moment(datetime(2026, 5, 3, 10, 30, tzinfo=UTC)))
rule = "DTSTART;TZID=Europe/Rome:20261123T083000\\nRRULE:FREQ=WEEKLY;BYDAY=MO"
print(describe_recurrences((rule,), "Europe/Rome", texts.schedule_words))
print(find_alias("aiuto", "it"))
print(texts.JOB_FINISHED_LAST)
print(load_names()[texts.language])
"""


def test_the_documented_lexicon_also_names_days_for_recall() -> None:
    example, _ = _blocks(ROOT / "docs" / "extending.md", "toml")
    lexicons = new_period_words()

    add_day_names(lexicons, tomllib.loads(example))

    kinds = {phrase: tokens[0].kind for phrase, tokens in lexicons.words.phrases.items()}
    assert kinds["pasquetta"] is Kind.FEAST
    assert kinds["maggio"] is Kind.MONTH
    assert kinds["domani"] is Kind.RELATIVE
    assert "ogni" not in kinds
    assert "oggi" in lexicons.short_names.phrases


@pytest.mark.parametrize(
    ("text", "moments", "task"),
    [
        ("ricordami domani alle otto e mezza di chiamare Ana", ["05 08:30"], "chiamare Ana"),
        ("tra venti minuti ricordami il forno", ["04 11:50"], "il forno"),
        ("ogni lunedì alle 9 ricordami la spazzatura", ["09 09:00", "16 09:00"], "la spazzatura"),
        ("ricordami più tardi di chiamare Ana", [], "chiamare Ana"),
        ("a pasquetta alle 8 ricordami di chiamare Ana", ["06 08:00"], "chiamare Ana"),
        ("metti una sveglia per le otto e mezza domani", ["05 08:30"], "sveglia"),
    ],
)
def test_example_lexicon_of_the_docs_reads_reminder_requests(
    text: str, moments: list[str], task: str
) -> None:
    zone = ZoneInfo("Europe/Rome")
    now = datetime(2026, 3, 4, 11, 30, tzinfo=zone)
    example, _ = _blocks(ROOT / "docs" / "extending.md", "toml")
    lexicon = build_lexicon("it", tomllib.loads(example))

    reading = read_in_language(text, lexicon, now, zone)

    due = [reading.moment] if reading.moment else next_recurrences(reading.recurrences, now, 2)
    assert [f"{moment.astimezone(zone):%d %H:%M}" for moment in due] == moments
    assert reading.task == task
