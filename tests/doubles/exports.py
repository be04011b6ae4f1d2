"""Small truthful exports of other systems, as their documented shapes have them, to be imported by tests."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

NOT_INCLUDED = "(File not included. Change data exporting settings to download.)"
NOON = 1_777_809_600
"""3 May 2026, 12:00 UTC."""
OWNER = "user777"


def telegram_message(number: int, text: Any = "hello", **values: Any) -> dict[str, Any]:
    """A message as Telegram Desktop writes it: minute `number` after noon, by the owner of the export."""
    at = NOON + 60 * number
    return {
        "id": number,
        "type": "message",
        "date": f"2026-05-03T{13 + number // 60:02}:{number % 60:02}:00",
        "date_unixtime": str(at),
        "from": "Tom",
        "from_id": OWNER,
        "text": text,
        "text_entities": [{"type": "plain", "text": text}] if isinstance(text, str) and text else [],
        **values,
    }


def telegram_chat(
    messages: Iterable[Any], number: int = 42, kind: str = "personal_chat", name: str | None = "Ana"
) -> dict[str, Any]:
    """A `result.json` of one chat."""
    head = {} if kind == "saved_messages" else {"name": name}
    return {**head, "type": kind, "id": number, "messages": list(messages)}


def telegram_account(chats: Iterable[Any], left: Iterable[Any] = ()) -> dict[str, Any]:
    """A `result.json` of everything."""
    return {
        "about": "Here is the data you requested.",
        "personal_information": {"user_id": 777, "first_name": "Tom", "last_name": "", "bio": "sails"},
        "contacts": {"about": "", "list": [{"user_id": 42, "first_name": "Ana", "date": "2020-01-01T00:00:00"}]},
        "frequent_contacts": {"about": "", "list": []},
        "chats": {"about": "This page lists all chats.", "list": list(chats)},
        "left_chats": {"about": "", "list": list(left)},
    }


def chatgpt_node(
    key: str, parent: str | None, role: str = "user", text: str | Mapping[str, Any] = "", **values: Any
) -> dict[str, Any]:
    """A node of the mapping. `text` is the text, or the whole content object."""
    content = {"content_type": "text", "parts": [text]} if isinstance(text, str) else dict(text)
    message = {
        "id": f"m-{key}",
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": NOON + 0.25,
        "update_time": None,
        "content": content,
        "status": "finished_successfully",
        "end_turn": True,
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
        "channel": None,
    }
    return {"id": key, "message": message | values, "parent": parent, "children": []}


def chatgpt_conversation(nodes: Iterable[dict[str, Any]], current: str | None, **values: Any) -> dict[str, Any]:
    """A conversation with a root that has no message, as each has."""
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    for node in nodes:
        mapping[node["id"]] = node
        if node["parent"] in mapping:
            mapping[node["parent"]]["children"].append(node["id"])
    return {
        "title": "Ferry to Porto",
        "create_time": NOON - 1.5,
        "update_time": NOON + 100.0,
        "mapping": mapping,
        "moderation_results": [],
        "current_node": current,
        "conversation_id": "c-1",
        "id": "c-1",
        **values,
    }


def claude_message(number: int, sender: str = "human", text: str = "hello", **values: Any) -> dict[str, Any]:
    """A message as Claude's export has it, with one text block."""
    at = f"2026-05-03T12:{number:02}:00.123456Z"
    block = {"start_timestamp": at, "stop_timestamp": at, "type": "text", "text": text, "citations": []}
    return {
        "uuid": f"cm-{number}",
        "text": text,
        "content": [block],
        "sender": sender,
        "created_at": at,
        "updated_at": at,
        "attachments": [],
        "files": [],
        **values,
    }


def claude_conversation(messages: Iterable[Any], **values: Any) -> dict[str, Any]:
    return {
        "uuid": "cc-1",
        "name": "Sailing",
        "summary": "",
        "created_at": "2026-05-03T12:00:00.000000Z",
        "updated_at": "2026-05-03T13:00:00.000000Z",
        "account": {"uuid": "a-1"},
        "chat_messages": list(messages),
        **values,
    }


def discord_package(folder: Path) -> Path:
    """A data package with a server's channel in JSON and a direct message in CSV, as older packages have it."""
    general, direct = folder / "messages" / "c111111111111111111", folder / "messages" / "c222222222222222222"
    for place in (general, direct, folder / "account", folder / "activity"):
        place.mkdir(parents=True)
    write(folder / "account" / "user.json", {"id": "777", "username": "tom", "global_name": "Tom"})
    (folder / "activity" / "events.json").write_text('{"event_type": "session_start"}\n')
    index = {
        "111111111111111111": "general in Harbour",
        "222222222222222222": "Direct Message with ana#0",
    }
    write(folder / "messages" / "index.json", index)
    guild = {"id": "999", "name": "Harbour"}
    write(
        general / "channel.json",
        {"id": "111111111111111111", "type": "GUILD_TEXT", "name": "general", "guild": guild},
    )
    write(
        general / "messages.json",
        [
            {"ID": 1368200000000000001, "Timestamp": "2026-05-03 12:00:00", "Contents": "the ferry is late"},
            {
                "ID": 1368200000000000002,
                "Timestamp": "2026-05-03 12:01:00",
                "Contents": "",
                "Attachments": "https://cdn.discordapp.com/attachments/1/2/boat.png?ex=1&hm=2",
            },
            {"ID": 1368200000000000003, "Timestamp": "2026-05-03 12:02:00", "Contents": "", "Attachments": ""},
        ],
    )
    write(direct / "channel.json", {"id": "222222222222222222", "type": 1, "recipients": ["777", "888"]})
    (direct / "messages.csv").write_text(
        "ID,Timestamp,Contents,Attachments\r\n"
        '7,2021-08-25 22:54:05.726000+00:00,"two\nlines, and a ""quote""",\r\n'
        "8,2021-08-25 22:55:05+00:00,42,\r\n",
        encoding="utf-8",
    )
    return folder


HERMES_TABLES = """
CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version VALUES (22);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, session_key TEXT, chat_id TEXT, chat_type TEXT,
    thread_id TEXT, display_name TEXT, model TEXT, system_prompt TEXT, parent_session_id TEXT,
    started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, message_count INTEGER DEFAULT 0, title TEXT,
    rewind_count INTEGER NOT NULL DEFAULT 0, archived INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
    content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, token_count INTEGER,
    finish_reason TEXT, platform_message_id TEXT, observed INTEGER DEFAULT 0, active INTEGER NOT NULL DEFAULT 1,
    compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT
);
"""
"""The tables of hermes-agent 0.19.0, without the columns that only count tokens and money."""


def hermes_store(
    path: Path,
    sessions: Iterable[Mapping[str, Any]],
    messages: Iterable[Mapping[str, Any]],
    tables: str = HERMES_TABLES,
) -> Path:
    """A closed state.db of Hermes. Sessions and messages are rows by column."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(tables)
        fill(connection, sessions, messages)
    return path


def fill(
    connection: sqlite3.Connection, sessions: Iterable[Mapping[str, Any]], messages: Iterable[Mapping[str, Any]]
) -> None:
    """Adds rows to a state.db of Hermes."""
    rows = [("sessions", {"source": "cli", "started_at": NOON, **row}) for row in sessions]
    rows += [("messages", {"session_id": "s1", "timestamp": NOON, **row}) for row in messages]
    for table, row in rows:
        names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
        connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", row)
    connection.commit()


def write(path: Path, value: Any) -> Path:
    """A JSON file as exporters write them."""
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")
    return path


def zipped(path: Path, folder: Path) -> Path:
    """A zip archive of everything in a folder."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder))
    return path
