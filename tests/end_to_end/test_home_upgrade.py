"""A home written by an earlier version opens with all that is in it, also when the process is
killed while it does.

See tests/fixtures/homes/README.md. It all goes through the command line in a process of its own, or
is read with SQL."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import signal
import sqlite3
import sys
import tarfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from core.store.sqlite.schema import SCHEMA_VERSION
from tests.fixtures.bot_api import BotApi
from tests.fixtures.command_line import good, mneme
from tests.fixtures.forked import ROOT, ForkedProcess

# The homes of earlier versions have a state.db.
pytestmark = [pytest.mark.slow, pytest.mark.sqlite]

HOMES = ROOT / "tests" / "fixtures" / "homes"
EXPECTED: dict[str, Any] = json.loads((HOMES / "home_6540fd2.json").read_text(encoding="utf-8"))
COMMAND = (sys.executable, "-m", "gateway.cli.main")
REBUILD = ("check", "--repair")
KILLS = 3
OWNER, MEMBER, OTHER = 42, 7, 8
NOT_COUNTED = {"state_meta", "zeros", "chunks", "chunk_counts", "runs", "link_tries", "pasts"}
"""Tables of the store's own upkeep, and those that were dropped because nobody was shown them."""
TABLES_TODAY = {
    "answered": "answered_events",
    "calls": "model_calls",
    "disturbances": "prefix_breaks",
    "fact_marks": "fact_watermarks",
    "notes": "note_changes",
    "own_rooms": "owner_groups",
    "partings": "scope_detachments",
    "rooms": "group_scopes",
    "told": "sync_watermarks",
    "undone": "undone_messages",
    "veils": "incognito_addresses",
}
"""Tables that have another name than in the home."""
ERASED = {309, 311}
"""The messages of the erasure that the home's last process had begun when it was killed.

Both contain EXPECTED["gone_after_resume"]. Whoever asked for the erasure said yes to it, so whatever
opens the home finishes it before it shows anything. All that it does not concern is kept."""
ERASURE_PARCELS = (
    "memory:diary:28:forgotten.7477909a:on_forget",
    "memory:diary:28:309.7477909a:sync_turn",
    "memory:diary:28:311.7477909a:sync_turn",
)
"""With these the erasure asks the memory service to erase its copies."""


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "MNEME_HOME": str(home), **more}


def found(home: Path, queries: list[str], scope: str = "owner") -> dict[str, int | None]:
    """The best message of each query, by its id, in what a scope sees."""
    within = () if scope == "owner" else ("--scope", scope)
    lines = good(
        home, "recall", "-", "--messages", "1", "--json", *within, stdin="\n".join(queries)
    ).splitlines()
    messages = [json.loads(line).get("messages") for line in lines]
    return {
        query: best[0]["message_id"] if best else None
        for query, best in zip(queries, messages, strict=True)
    }


def rows(home: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(home / "state.db")) as connection:
        return [tuple(row) for row in connection.execute(sql)]


def digests(home: Path, sql: str) -> dict[str, str]:
    """The texts that a statement gives by id, each as the start of its SHA-256."""
    return {str(id): hashlib.sha256(text.encode()).hexdigest()[:16] for id, text in rows(home, sql)}


def message_texts(home: Path) -> dict[int, str]:
    return dict(rows(home, "SELECT id, text FROM messages"))


def unpacked(folder: Path, variant: str) -> Path:
    with tarfile.open(HOMES / "home_6540fd2.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / variant


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the earlier version says is in its home, without what its own begun erasure takes.

    An erasure takes the messages on its list. Where the person sees their messages, it also takes
    the system prompts, and what was sent with more than a time line and the text, because these may
    repeat erased words. An open session of those whose prompt is made anew is disturbed."""
    home = unpacked(tmp_path_factory.mktemp("earlier"), "home")
    ((listed, scopes),) = rows(
        home, "SELECT list ->> '$.messages', scopes FROM erasures WHERE done_at IS NULL"
    )
    assert set(json.loads(listed)) == ERASED
    seen = f"""
        scope_id IN (SELECT id FROM scopes WHERE key IN (SELECT value FROM json_each('{scopes}')))
    """
    extended = f"""
        SELECT messages.id FROM messages JOIN sessions ON sessions.id = session_id
        WHERE {seen} AND json_array_length(sent) > 2
    """
    prompts = f"SELECT id FROM sessions WHERE {seen} AND system_prompt <> ''"
    disturbed = rows(
        home, f"{prompts} AND ended_at IS NULL UNION SELECT session_id FROM disturbances"
    )
    without_sent = {str(id) for (id,) in rows(home, extended)} | {str(id) for id in ERASED}
    without_prompt = {str(id) for (id,) in rows(home, prompts)}
    outbox = EXPECTED["counts"]["outbox"] + len(ERASURE_PARCELS)
    nothing = hashlib.sha256(b"").hexdigest()[:16]
    return EXPECTED | {
        "counts": EXPECTED["counts"] | {"outbox": outbox, "disturbances": len(disturbed)},
        "texts": EXPECTED["texts"] | {str(id): nothing for id in ERASED},
        "sent": {id: sent for id, sent in EXPECTED["sent"].items() if id not in without_sent},
        "prompts": {
            id: prompt for id, prompt in EXPECTED["prompts"].items() if id not in without_prompt
        },
    }


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home after it was opened once; tests only read it."""
    home = unpacked(tmp_path_factory.mktemp("upgraded"), "home_wal")
    good(home, "sessions")
    return home


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The home as the earlier version left it."""
    return unpacked(tmp_path, "home_wal")


def assert_rows_kept(home: Path, expected: dict[str, Any], without: str = "") -> None:
    """Every row that a person could miss is there, byte for byte where the cached prefix depends on
    it."""
    counts = {
        table: number
        for table, number in expected["counts"].items()
        if table not in {*NOT_COUNTED, without}
    }
    names = {table: TABLES_TODAY.get(table, table) for table in counts}
    assert {
        table: rows(home, f"SELECT COUNT(*) FROM {name}")[0][0] for table, name in names.items()
    } == counts
    assert digests(home, "SELECT id, text FROM messages") == expected["texts"]
    assert digests(home, "SELECT id, sent FROM messages WHERE sent IS NOT NULL") == expected["sent"]
    assert (
        digests(home, "SELECT id, blocks FROM messages WHERE blocks IS NOT NULL")
        == expected["blocks"]
    )
    assert (
        digests(home, "SELECT id, system_prompt FROM sessions WHERE system_prompt <> ''")
        == expected["prompts"]
    )
    lineage = rows(
        home, "SELECT id, parent_id, root_id, parent_from, end_reason FROM sessions ORDER BY id"
    )
    assert lineage == [tuple(row) for row in expected["lineage"]]
    closed = rows(home, "SELECT content FROM facts WHERE closed_at IS NOT NULL ORDER BY id")
    assert [content for (content,) in closed] == expected["closed_facts"]
    people = rows(
        home,
        "SELECT group_concat(platform || ':' || user_id, ' ') FROM accounts GROUP BY person_id",
    )
    assert sorted(sorted(keys.split()) for (keys,) in people) == sorted(expected["people"])


def test_upgraded_database_keeps_every_row_and_its_integrity(
    upgraded: Path, expected: dict[str, Any]
) -> None:
    assert_rows_kept(upgraded, expected)
    assert rows(upgraded, "PRAGMA quick_check") == [("ok",)]
    assert rows(upgraded, "PRAGMA foreign_key_check") == []


def test_upgraded_home_without_a_write_ahead_log_keeps_every_row(
    tmp_path: Path, expected: dict[str, Any]
) -> None:
    home = unpacked(tmp_path, "home")
    good(home, "sessions")
    assert_rows_kept(home, expected)


def test_upgraded_home_keeps_waiting_messages_deliveries_and_erasures(upgraded: Path) -> None:
    waiting = rows(upgraded, "SELECT json_extract(inbound, '$.text') FROM inbox ORDER BY id")
    assert [text for (text,) in waiting] == EXPECTED["inbox"]
    updates = rows(
        upgraded, "SELECT platform, update_id, error FROM raw_updates ORDER BY update_id"
    )
    assert updates == [
        (platform, number, error or "an earlier version had not handled it")
        for platform, number, error in EXPECTED["raw_updates"]
    ]
    items = rows(
        upgraded,
        """
        SELECT key, json_extract(payload, '$.text'), posted, next_at, attempts, dead_at IS NOT NULL
        FROM outbox WHERE done_at IS NULL ORDER BY id
        """,
    )
    wanted = {item["key"]: item for item in EXPECTED["outbox"]}
    # Those of the erasure, which was under way too and is finished, come last.
    assert [key for key, *_ in items] == [*wanted, *ERASURE_PARCELS]
    for key, text, posted, next_at, attempts, is_dead in items[: len(wanted)]:
        item = wanted[key]
        assert (json.loads(posted), attempts, bool(is_dead)) == (
            item["posted"],
            item["attempts"],
            item["is_dead"],
        )
        assert next_at == item["next_at"]
        assert item["text"] is None or text == item["text"]
    erasures = rows(
        upgraded,
        "SELECT started_at IS NOT NULL, done_at IS NOT NULL FROM erasures ORDER BY made_at",
    )
    assert EXPECTED["erasures"] == [[1, 1], [1, 0]]
    assert erasures == [(1, 1), (1, 1)]
    assert rows(
        upgraded, "SELECT provider, subject, last_id FROM sync_watermarks ORDER BY 1, 2"
    ) == [tuple(row) for row in EXPECTED["told"]]


def test_recall_after_an_upgrade_finds_the_same_messages_in_every_script(upgraded: Path) -> None:
    texts = message_texts(upgraded)
    best = found(upgraded, [case["query"] for case in EXPECTED["recall"]])
    shown = {query: texts[number] if number else None for query, number in best.items()}
    assert shown == {case["query"]: case["text"] for case in EXPECTED["recall"]}
    assert [best[case["query"]] for case in EXPECTED["recall"]] == [
        case["message_id"] for case in EXPECTED["recall"]
    ]


@pytest.mark.parametrize("scope", ["owner", *EXPECTED["scopes"]])
def test_upgraded_home_shows_each_scope_what_it_saw_before(upgraded: Path, scope: str) -> None:
    texts = message_texts(upgraded)
    seen = found(upgraded, list(EXPECTED["visible"]), scope)
    # For a word that nobody said there, what is near it is looked for ("bon sai" for bonsai).
    best = {query: texts[number] for query, number in seen.items() if number}
    said = {
        query: text
        for query, text in best.items()
        if query.split()[0].casefold() in text.casefold()
    }
    assert said == {
        query: shown[scope] for query, shown in EXPECTED["visible"].items() if scope in shown
    }


def test_sessions_are_listed_with_their_titles(upgraded: Path) -> None:
    listed = json.loads(good(upgraded, "sessions", "list", "--limit", "1000", "--json"))
    roots = dict(rows(upgraded, "SELECT id, COALESCE(root_id, id) FROM sessions"))
    latest = {roots[number]: number for number in reversed(EXPECTED["owner_sessions"])}
    # A conversation of several parts is listed once, as the last of them.
    wanted = [number for number in EXPECTED["owner_sessions"] if latest[roots[number]] == number]
    assert [session["session_id"] for session in listed] == wanted
    known = {
        row["session_id"]: dict(row)
        for sessions in EXPECTED["sessions"].values()
        for row in sessions
    }
    # Both messages of the finished erasure were in this one.
    known[28]["messages"] -= len(ERASED)
    for session in listed:
        number = session["session_id"]
        parts = [part for part in EXPECTED["owner_sessions"] if roots[part] == roots[number]]
        whole = known[number] | {"messages": sum(known[part]["messages"] for part in parts)}
        assert {key: session[key] for key in whole} == whole
    (shown,) = json.loads(good(upgraded, "recall", "in:1", "--json"))["sessions"]
    parts = [part for part in EXPECTED["owner_sessions"] if roots[part] == roots[1]]
    assert len(shown["window"]) + shown["messages_after"] == sum(
        known[part]["messages"] for part in parts
    )


def test_notes_keep_their_text_and_their_history(upgraded: Path) -> None:
    for scope, notes in EXPECTED["notes"].items():
        assert json.loads(good(upgraded, "memory", "list", "--scope", scope, "--json")) == notes
    actions = {action for (action,) in rows(upgraded, "SELECT DISTINCT action FROM note_changes")}
    assert actions >= {"add", "replace", "remove", "undo", "edited"}
    assert "undo" in good(upgraded, "memory", "history", "--json")
    pending = good(upgraded, "memory", "pending")
    assert "eve@example.com" in pending
    assert "Mallory" in pending


def test_upgraded_home_keeps_the_facts_of_each_scope(upgraded: Path) -> None:
    for scope, facts in EXPECTED["facts"].items():
        listed = good(upgraded, "facts", "--limit", "1000", "--scope", scope, "--json")
        known = {fact["id"]: fact for fact in json.loads(listed)}
        assert {id: (fact["content"], fact["is_pinned"]) for id, fact in known.items()} == {
            fact["id"]: (fact["content"], fact["is_pinned"]) for fact in facts
        }


def test_jobs_of_an_upgraded_home_keep_their_times(upgraded: Path) -> None:
    for scope, jobs in EXPECTED["jobs"].items():
        listed = json.loads(good(upgraded, "cron", "list", "--scope", scope, "--json"))
        for job in listed + jobs:
            # The next time of what repeats by the hour depends on today.
            job["when"] = job["when"].partition(", next")[0]
        assert [{key: job[key] for key in jobs[0]} for job in listed] == jobs
    ended = rows(upgraded, "SELECT id, text FROM jobs WHERE ended_at IS NOT NULL ORDER BY id")
    assert ended == [tuple(row) for row in EXPECTED["ended_jobs"]]


def test_upgraded_home_assigns_model_calls_to_accounts_except_in_groups(upgraded: Path) -> None:
    """Those in rooms are nobody's: who asked there was not noted."""
    found = rows(
        upgraded,
        "SELECT DISTINCT key, account FROM model_calls JOIN scopes ON scopes.id = model_calls.scope_id",
    )
    assert {key.partition(":")[0] for key, _ in found} == {"account", "room"}
    assert all(
        account == (key[8:] if key.startswith("account:") else None) for key, account in found
    )


def test_upgraded_home_keeps_past_erasures_and_finishes_an_interrupted_one(old: Path) -> None:
    said = good(old, "chat", stdin="/recall marmalade cat\n")
    assert "marmalade cat on the sofa" in said
    assert rows(old, "SELECT COUNT(*) FROM erasures WHERE done_at IS NULL") == [(0,)]
    everything = " ".join(text for (text,) in rows(old, "SELECT text FROM messages"))
    for word in (*EXPECTED["gone"], *EXPECTED["gone_after_resume"]):
        assert word not in everything
    assert rows(old, "SELECT COUNT(*) FROM incognito_addresses") == [(0,)]


@asynccontextmanager
async def gateway(home: Path, api: BotApi) -> AsyncIterator[None]:
    """The running gateway, connected to Telegram."""
    variables = environment(home, TELEGRAM_BOT_TOKEN=api.token, MNEME_TELEGRAM_API_URL=api.url)
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "run",
        cwd=ROOT,
        env=variables,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def test_upgraded_gateway_answers_messages_left_by_the_killed_earlier_version(
    old: Path,
) -> None:
    async with BotApi() as api:

        def told(chat: int, words: str) -> bool:
            return any(words in text for text in api.texts(chat))

        # Two accounts of one person see what either said, and others do not.
        for chat, command in (
            (MEMBER, "/recall bonsai"),
            (OTHER, "/recall bonsai"),
            (OWNER, "/cron"),
        ):
            api.user_says(chat, command)
        async with gateway(old, api):
            await api.wait_for(lambda: told(OWNER, "Due now: the second, behind it"), 30)
            await api.wait_for(lambda: told(OWNER, "renew the mooring licence"), 30)
            # While the index is made anew not everything is found, and the answer does not repeat
            # the question.
            for _ in range(10):
                with contextlib.suppress(TimeoutError):
                    await api.wait_for(lambda: told(MEMBER, "forty years old"), 3)
                    break
                api.user_says(MEMBER, "/recall bonsai")
            assert told(MEMBER, "forty years old")
            await api.wait_for(lambda: told(OTHER, "bonsai") or told(OTHER, "Nothing found"), 30)
        # A reminder that is sent late says so in a paragraph of its own.
        texts = [text.partition("\n\n")[0] for text in api.texts(OWNER)]
        assert texts.index("Due now: the first parcel ⏰") < texts.index(
            "Due now: the second, behind it"
        )
        assert sum("Due now" in text for text in texts) == 2
        assert not told(OTHER, "forty years old")
    waiting = "SELECT platform FROM inbox JOIN addresses ON addresses.id = address_id"
    assert rows(old, waiting) == [("discord",)]


def rebuilding(home: Path) -> ForkedProcess:
    """A process that makes the text indexes anew."""
    with Path(os.devnull).open("r+b") as nowhere:
        return ForkedProcess(REBUILD, environment(home), ROOT, [nowhere.fileno()] * 3)


@pytest.mark.sweep
@pytest.mark.timeout(300)
def test_a_kill_at_any_point_of_the_upgrade_loses_nothing(
    old: Path, tmp_path: Path, expected: dict[str, Any]
) -> None:
    whole_s = 0.0
    for name in ("first", "whole"):
        # The first process also waits until everything is loaded.
        shutil.copytree(old, tmp_path / name)
        begun_at = time.monotonic()
        rebuilding(tmp_path / name).wait()
        whole_s = time.monotonic() - begun_at
    killed = 0
    for number in range(KILLS):
        home = tmp_path / f"killed{number}"
        shutil.copytree(old, home)
        # Two kills one after the other: the second process finds what the first has left.
        for share in (0.3 + 0.7 * number / KILLS, 0.5 + 0.5 * number / KILLS):
            process = rebuilding(home)
            if process.wait(share * whole_s) is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed += 1
            else:
                # A busy machine was slower when the time was taken.
                whole_s *= 0.7
        # Whether a memory service can be had is another matter.
        assert "matches the messages" in mneme(home, *REBUILD).stdout
        # A repair drops what was set aside.
        assert_rows_kept(home, expected, without="raw_updates")
        best = found(home, [case["query"] for case in EXPECTED["recall"]])
        assert best == {case["query"]: case["message_id"] for case in EXPECTED["recall"]}
    assert killed >= KILLS, "most of the processes must be killed before they are done"


def test_backup_is_made_before_the_upgrade_and_brings_the_old_home_back(old: Path) -> None:
    schema = rows(old, "PRAGMA user_version")
    texts = message_texts(old)
    good(old, "sessions")
    (file,) = old.with_name("home_wal.backups").glob("mneme-before-upgrade-*")
    assert rows(old, "PRAGMA user_version") == [(SCHEMA_VERSION,)]
    with tarfile.open(file) as archive:
        archive.extract("home/state.db", old.with_name("unpacked"), filter="data")
    assert rows(old.with_name("unpacked") / "home", "PRAGMA user_version") == schema
    good(old, "sessions")
    assert len(list(old.with_name("home_wal.backups").glob("mneme-*"))) == 1
    good(old, "restore", str(file), "--yes")
    # The restore also finishes an erasure that had begun.
    assert message_texts(old).keys() == texts.keys()


def test_upgrade_without_a_possible_backup_is_refused_and_keeps_the_schema(old: Path) -> None:
    schema = rows(old, "PRAGMA user_version")
    old.with_name("home_wal.backups").write_text("a file is in the way")
    refused = mneme(old, "sessions")
    assert refused.returncode == 1
    assert "must be upgraded, but the backup before that failed" in refused.stderr
    assert rows(old, "PRAGMA user_version") == schema


def test_upgrade_command_prints_the_update_command_and_detects_a_newer_home(old: Path) -> None:
    printed = good(old, "upgrade")
    assert "To update it, type:" in printed
    assert "it makes a backup first" in printed
    with closing(sqlite3.connect(old / "state.db")) as connection:
        connection.execute("PRAGMA user_version = 9999")
    assert "newer version of Mneme" in good(old, "upgrade")
    newer = mneme(old, "sessions")
    assert newer.returncode == 1
    assert "was written by a newer version of Mneme" in newer.stderr
