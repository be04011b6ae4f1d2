"""Every parser of what people send, with a million inputs: none raises but what it says, none holds
the event loop."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import discord
import pytest
from telegram import Update, User

from adapters.discord.events import EVENT_ERRORS as DISCORD_ERRORS
from adapters.discord.normalize import DiscordChannel, channel_of, from_message
from adapters.telegram.adapter import UPDATE_ERRORS as TELEGRAM_ERRORS
from adapters.telegram.normalize import group_migration, normalize
from core.dates import parsing, period_name
from core.errors import HistoryError, Refused
from core.facts.claims import extract_claims
from core.guard.guard import clean_text, find_suspicion
from core.guard.origin_and_fence import NOTE, Scrubber, neutralise, scrub, typed_part
from core.markup.discord import to_discord
from core.markup.markdown import StyledText, render, to_plain, utf16_length
from core.markup.splitting import split
from core.search.query import (
    extract_filters,
    plan_any_word,
    plan_inflected,
    plan_typed,
    text_for_next_page,
)
from core.store.archive import SkippedRecord, TransferRecord
from core.store.query import SearchQuery
from core.text.terms import names_in, query_terms, terms_of
from core.transfer.formats import ImportOptions, parse_line
from core.transfer.source import Source
from gateway.commands.registry import parse_number
from tests.fixtures import odd_lines
from tests.fixtures.bot_chats import BotChats
from tests.fixtures.discord_world import DiscordWorld
from tests.transfer.test_odd_exports import Place, chatgpt, claude, places, telegram

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ZONE = ZoneInfo("Europe/Lisbon")
MESSAGE_CHARS = 4096
"""The longest message of Telegram; Discord's are shorter."""
LOOP_S = 0.050
"""Of the thread's own CPU, for one input of the greatest length."""
SEED = int(os.environ.get("MNEME_FUZZ_SEED", "11"))
PART = float(os.environ.get("MNEME_FUZZ_PART", "1"))
"""A smaller part is for a first look."""
PIECES = (
    *odd_lines.WORDS,
    *"\\*_~`|[]()<>{}#+-=.!:;,?/&%$@^\"'\n\t\r\u200b\u200d\ufeff\u2066\u0301\u0336",
    "role:",
    "before:",
    "in:last week",
    "page:999999999999",
    "https://a.b/c?d=[e](f)",
    "a@b.c",
    "1. ",
    "> ",
    "- ",
    "| a | b |\n|---|---|\n",
    "    ",
    "![x](y)",
    "[a]: b",
    "&amp;#x0;",
    "remember that my sister is Ana",
    "ich heiße Eva",
    "二十三点半",
    "明天下午三点",
    "half past 25",
    "29 February",
    "every 0 minutes",
    "* * 31 2 *",
    "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "ﷺ",
    "ก็็็็",
    "\U0010ffff",
)


def made(chance: random.Random) -> str:
    """Pieces behind each other, a piece many times, or characters of any script; one in 200 of the
    greatest length."""
    longest = MESSAGE_CHARS if chance.random() < 0.005 else chance.choice((20, 80, 200))
    kind = chance.random()
    if kind < 0.6:
        glue = chance.choice(("", " ", "\n"))
        text = glue.join(chance.choices(PIECES, k=chance.randint(1, max(2, longest // 8))))
    elif kind < 0.8:
        text = "".join(chance.choices(PIECES, k=chance.randint(1, 3))) * (longest // 4)
    else:
        highest = (0x80, 0x3000, 0x110000)
        text = "".join(
            chr(chance.randrange(chance.choice(highest))) for _ in range(chance.randint(1, longest))
        )
    return text[:longest]


def _streamed(text: str) -> None:
    scrubber = Scrubber()
    shown = "".join(
        [
            *(scrubber.feed(text[start : start + 9]) for start in range(0, len(text), 9)),
            scrubber.close(),
        ]
    )
    assert shown == scrub(text)


def measured(styled: StyledText) -> int:
    return utf16_length(styled.text)


def _rendered(text: str) -> None:
    styled = render(text)
    assert all(measured(part) <= MESSAGE_CHARS for part in split(styled, MESSAGE_CHARS, measured))
    to_discord(styled)


def _grown(text: str) -> None:
    for end in (len(text) // 3, len(text) // 2, len(text)):
        parts = split(render(text[:end]), 200, measured)
    assert parts == split(render(text), 200, lambda part: measured(part))


def _filtered(text: str) -> None:
    extract_filters(SearchQuery(text=text, scopes=frozenset()), NOW, ZONE)
    text_for_next_page(text)


def _planned(text: str) -> None:
    with contextlib.suppress(Refused):
        parsing.parse_schedule(text, NOW, ZONE.key)


def _imported(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse_line(text)
    with contextlib.suppress(ValueError):
        parse_line(
            json.dumps(
                {"content": text, "role": text[:9], "timestamp": text[9:40], "session_id": text}
            )
        )


PARSERS: dict[str, tuple[int, Callable[[str], object]]] = {
    "query": (120_000, plan_typed),
    "question": (60_000, lambda text: (plan_any_word(text), plan_inflected(text))),
    "filters": (
        120_000,
        lambda text: (
            extract_filters(SearchQuery(text=text, scopes=frozenset()), NOW, ZONE),
            text_for_next_page(text),
        ),
    ),
    "terms": (80_000, lambda text: (terms_of(text), query_terms(text), names_in(text))),
    "time": (60_000, _planned),
    "period": (60_000, lambda text: period_name.read_period(text, NOW, ZONE)),
    "number": (40_000, parse_number),
    "markup": (50_000, _rendered),
    "markup that grows": (20_000, _grown),
    "plain text": (50_000, to_plain),
    "fence": (100_000, lambda text: (neutralise(text), typed_part(text))),
    "scrubber": (40_000, _streamed),
    "guard": (60_000, lambda text: (find_suspicion(text), clean_text(text))),
    "facts": (60_000, lambda text: extract_claims(text, NOW, ZONE)),
    "line of an export": (50_000, _imported),
}


SLOWER = {"markup that grows": 0.250}
"""What takes a thread of its own."""


def cpu_s(parser: Callable[[str], object], text: str) -> float:
    began_s = time.thread_time()
    parser(text)
    return time.thread_time() - began_s


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", PARSERS)
def test_random_text_neither_crashes_a_parser_nor_exceeds_its_time_limit(name: str) -> None:
    count, parser = PARSERS[name]
    count = int(count * PART)
    chance, limit_s = random.Random(f"{SEED} {name}"), SLOWER.get(name, LOOP_S)
    parser("Warm up: load the tables of the languages.")
    slowest = (0.0, "")
    for _ in range(count):
        text = made(chance)
        try:
            took_s = cpu_s(parser, text)
            if took_s > limit_s:
                took_s = min(took_s, *(cpu_s(parser, text) for _ in range(3)))
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error} at {text!r}") from error
        slowest = max(slowest, (took_s, text))
    assert slowest[0] <= limit_s, slowest


ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 10**30, 1.5, "", "x\ud800\0y", "9" * 200, "-100", [], ["ferry", None], {},
    {"type": ["x"]}, {"id": {}}, [[[]]],
)  # fmt: skip


def spoilt(chance: random.Random, documents: list[Any], fields: list[tuple[str, Any]]) -> Any:
    """One of the documents with something else, something odd or nothing in up to three places."""
    document = copy.deepcopy(chance.choice(documents))
    for _ in range(chance.randint(1, 3)):
        found = list(places(document))
        *above, key = chance.choice(found)
        inner = document
        for step in above:
            inner = inner[step]
        kind = chance.random()
        if kind < 0.2 and isinstance(inner, dict):
            del inner[key]
        elif kind < 0.5:
            name, value = chance.choice(fields)
            inner[name if isinstance(inner, dict) else key] = copy.deepcopy(value)
        else:
            inner[key] = made(chance) if kind < 0.75 else copy.deepcopy(chance.choice(ODD))
        if not list(places(document)):
            break
    return document


def telegram_updates() -> list[Any]:
    chats = BotChats(username="mneme_bot")
    chats.person(42, "Ana", "ana")
    chats.group(-1001234567890, "Flat", is_forum=True)
    reply = {
        "message_id": 3,
        "date": 1795176000,
        "chat": {"id": 42, "type": "private"},
        "text": "before",
    }
    user = {"id": 7, "is_bot": False, "first_name": "Ben"}
    photo = [{"file_id": "a", "file_unique_id": "b", "width": 1, "height": 1}]
    origin = {"type": "user", "date": 1795176000, "sender_user": user}
    made = [
        chats.user_says(42, "Hello @mneme_bot /recall ferry"),
        chats.user_says(42, "look", photo=photo, forward_origin=origin),
        chats.user_says(
            42,
            "/recall@mneme_bot ferry",
            reply_to_message=reply,
            quote={"text": "before", "position": 0},
        ),
        chats.user_says(
            -1001234567890, "@mneme_bot hi", user_id=42, via_bot={**user, "is_bot": True}
        ),
        chats.user_says(
            -1001234567890, "", user_id=42, document={"file_id": "a", "file_unique_id": "b"}
        ),
        chats.user_edits(42, 1, "Hello again"),
    ]
    pressed = {"id": "1", "from": user, "chat_instance": "42", "message": reply, "data": "abc"}
    return [*made, {"update_id": 99, "callback_query": pressed}]


def telegram_reader() -> Callable[[Any], object]:
    me = User(id=1, first_name="Mneme", is_bot=True, username="mneme_bot")

    def read(raw: Any) -> None:
        with contextlib.suppress(*TELEGRAM_ERRORS):
            update = Update.de_json(dict(raw), None)
            group_migration(update)
            normalize(update, me, NOW)

    return read


def discord_messages() -> list[Any]:
    world = DiscordWorld()
    ana = world.add_user("Ana")
    channel = world.add_direct(ana["id"])["id"]
    first = world.add_post(channel, ana["id"], "Hello <@1> <#2>")
    file = {
        "id": "5",
        "filename": "a.ogg",
        "size": 3,
        "url": "https://x.example/a",
        "proxy_url": "https://x.example/a",
    }
    snapshot = {
        "message": {
            key: first[key] for key in ("content", "timestamp", "attachments", "embeds", "type")
        }
    }
    return [
        first,
        world.add_post(channel, ana["id"], "/recall ferry", attachments=[file]),
        world.add_post(
            channel, ana["id"], "", message_snapshots=[snapshot], message_reference={"type": 1}
        ),
        world.add_post(
            channel,
            ana["id"],
            "yes",
            message_reference={"message_id": first["id"], "channel_id": channel},
        ),
        world.add_post(channel, ana["id"], "hook", webhook_id="77"),
    ]


def discord_reader() -> Callable[[Any], object]:
    state: Any = discord.Client(intents=discord.Intents.default())._connection
    user = {
        "id": "1",
        "username": "mneme",
        "discriminator": "0",
        "avatar": None,
        "global_name": None,
        "bot": True,
    }
    me = discord.ClientUser(state=state, data=user)  # type: ignore[arg-type]
    state.user = me
    private: Any = {"id": "9", "type": 1, "recipients": [{**user, "id": "42"}]}
    channel = discord.DMChannel(me=me, state=state, data=private)
    place = channel_of(channel, 42)
    assert isinstance(place, DiscordChannel)

    def read(raw: Any) -> None:
        with contextlib.suppress(*DISCORD_ERRORS):
            from_message(discord.Message(state=state, channel=channel, data=raw), place, me, {})

    return read


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("documents", "reader", "count"),
    [(telegram_updates, telegram_reader, 60_000), (discord_messages, discord_reader, 50_000)],
)
def test_no_raw_update_raises_what_is_not_set_aside(
    documents: Callable[[], list[Any]], reader: Callable[[], Callable[[Any], object]], count: int
) -> None:
    known, read = documents(), reader()
    chance = random.Random(SEED)
    fields = [
        (str(place[-1]), _at(document, place)) for document in known for place in places(document)
    ]
    for _ in range(int(count * PART)):
        raw = spoilt(chance, known, fields)
        try:
            took_s = cpu_s(read, copy.deepcopy(raw))
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error} at {raw!r}") from error
        assert (
            took_s <= LOOP_S or min(cpu_s(read, copy.deepcopy(raw)) for _ in range(3)) <= LOOP_S
        ), raw


def _at(document: Any, place: Place) -> Any:
    for step in place:
        document = document[step]
    return document


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("made_export", [telegram, chatgpt, claude])
def test_random_export_file_is_imported_or_refused_with_one_sentence_in_time(
    made_export: Callable[[], Any], tmp_path: Path
) -> None:
    path, chance, known = tmp_path / "export.json", random.Random(SEED), [made_export()]
    fields = [(str(place[-1]), _at(known[0], place)) for place in places(known[0])]
    for number in range(int(10_000 * PART)):
        content = json.dumps(spoilt(chance, known, fields)).encode()
        for _ in range(chance.choice((0, 0, 1, 3))):
            at = chance.randrange(len(content))
            content = (
                content[:at]
                + chance.choice((b"", b"\0", b"]", b'"', b"\xff", b"{", b"1e999"))
                + content[at + 1 :]
            )
        path.write_bytes(content)
        began_s = time.thread_time()
        with contextlib.suppress(HistoryError), Source.open(path, ImportOptions()) as source:
            for record in source.read_records():
                assert isinstance(record, TransferRecord | SkippedRecord), number
        assert time.thread_time() - began_s < 1, content


FENCE_PIECES = (
    "<memory-context>",
    "</memory-context>",
    "(memory-context)",
    "(/memory-context)",
    "<memory",
    "-context>",
    "<mem",
    "ory-context>",
    "<memory-context",
    "</memory-context",
    "\uff1cmemory-context\uff1e",
    "</",
    "<",
    "(",
    "/",
    ">",
    ")",
    "`",
    " ",
    "\n",
    "word",
    "[System note",
    NOTE,
)
FENCES = int(100_000 * PART)


@pytest.mark.timeout(1800)
def test_random_nested_memory_tags_are_scrubbed_the_same_when_streamed() -> None:
    rng = random.Random(SEED)
    for _ in range(FENCES):
        text = "".join(rng.choices(FENCE_PIECES, k=rng.randint(1, 14)))
        clean = scrub(text)
        assert not re.search(r"[<\uff1c(]/?memory-context[>\uff1e)]", clean), text
        assert "<memory-context" not in clean, text
        scrubber = Scrubber()
        shown = ""
        start = 0
        while start < len(text):
            size = rng.randint(1, 9)
            shown += scrubber.feed(text[start : start + size])
            start += size
        assert shown + scrubber.close() == clean, text
