"""Erased means erased: the receipt of /forget says what a look through everything has found
afterwards."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core.agent.offline import OfflineModel
from core.privacy.home_files import encode_phrase
from core.search.recall import Recall
from core.store.archive import Archive, TransferConversation, TransferRecord
from core.store.erasure.personal_data import SCAN_STATEMENTS
from core.store.sqlite.database import Database
from core.types import Address, Scope, Sender
from tests.fixtures.clock import SteadyClock
from tests.fixtures.command_line import good
from tests.fixtures.forgetting import claim_of, forgetting_of, remains_of
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.fixtures.stored_history import ANA
from tests.fixtures.stores import list_tables_with
from tests.fixtures.sweeps import keep_first
from tests.gateway.cli.test_main import imported

pytestmark = pytest.mark.slow

ROOM: dict[str, Any] = {
    "address": Address(platform="telegram", chat_id="-100"),
    "scope": Scope.group("telegram", "-100"),
    "is_direct": False,
}
OPEN_ROOM = 'rooms = ["telegram:-100"]\n'
NOTHING = "I checked again: nothing of it is left here"
CLEAN = "No file in Mneme's home contains it"
WAYS = {
    "as is": "Zürich Nord",
    "small": "zürich nord",
    "large": "ZÜRICH NORD",
    "decomposed": unicodedata.normalize("NFD", "Zürich Nord"),
    "JSON": json.dumps({"at": "Zürich Nord"}),
    "HTML": "Z&#252;rich Nord",
    "HTML by name": "Z&uuml;rich Nord",
    "URL": "https://maps.example/?q=Z%C3%BCrich%20Nord&z=3",
    "form": "q=Z%c3%bcrich+Nord",
    "markup": "**Zü**rich ~~No~~rd",
}


async def forget(harness: GatewayHarness, what: str, who: str = "42", **changes: object) -> str:
    await harness.say(f"/forget {what}", who, **changes)
    return (await harness.say("yes", who, **changes)).text


def having(home: Path, *phrases: str) -> list[str]:
    """Whose bytes have one of the phrases in any of its encodings, of all files in the home and
    beside it."""
    wanted = frozenset().union(*map(encode_phrase, phrases))
    files = [path for path in home.parent.rglob("*") if path.is_file()]
    names = [path.name for path in files if any(one in path.read_bytes().lower() for one in wanted)]
    return names + ["state.db"] * any(list_tables_with(home, phrase) for phrase in phrases)


def exported(reply: KeptReply) -> str:
    assert reply.answer is not None
    assert reply.answer.files
    return "".join(file.content.decode() for file in reply.answer.files)


@pytest.mark.parametrize("way", keep_first(4, WAYS))
async def test_encoded_word_is_found_and_erased_by_forget(home: Path, way: str) -> None:
    async with open_gateway(home, ScriptedModel(says("Fine."), says("Good."))) as harness:
        await harness.say(f"Look: {WAYS[way]}")
        await harness.say("The weather is fine in Bern")
        receipt = await forget(harness, "Zürich Nord")
        assert "Forgotten: 1 message" in receipt
        assert NOTHING in receipt
        assert CLEAN in receipt
        assert having(home, "Zürich Nord") == []
        said = exported(await harness.say("/export"))
        assert "rich" not in said
        assert "Bern" in said


LINES = [
    {
        "session": "zanzibar-2026",
        "title": "Off to the sea",
        "chat": "zanzibar/beach",
        "role": "user",
        "sender": "Captain Zanzibar",
        "text": "The boat is late",
        "at": "2026-05-03",
        "id": "zanzibar.1",
    },
    {
        "session": "ferries",
        "title": "To Zanzibar",
        "role": "user",
        "sender": "Ben",
        "text": "When does it leave?",
        "at": "2026-05-04",
        "id": "m1",
    },
]


def test_forget_erases_names_in_imported_sessions_chats_and_senders(home: Path) -> None:
    """Of sessions, chats, senders, messages; titles."""
    imported(home, LINES)
    (home / "history.jsonl").unlink()
    assert having(home, "Zanzibar") == ["state.db"]
    receipt = good(home, "forget", "Zanzibar", "--yes")
    assert NOTHING in receipt
    assert CLEAN in receipt
    assert having(home, "Zanzibar") == []
    left = [json.loads(line) for line in good(home, "export").splitlines()]
    assert [line["text"] for line in left] == ["The boat is late", "When does it leave?"]
    assert "sender" not in left[0]
    assert left[1]["sender"] == "Ben"
    assert left[1]["session"] == "ferries"
    imported(home, [{**LINES[0], "text": "The boat is here", "id": "m2"}])
    assert "The boat is here" in good(home, "export"), (
        "a place that was renamed stands in nobody's way"
    )


def test_forget_erases_an_imported_chat_named_by_a_number(home: Path) -> None:
    imported(home, [{**LINES[1], "session": "555123", "chat": "555123"}])
    (home / "history.jsonl").unlink()
    assert CLEAN in good(home, "forget", "555123", "--yes")
    assert "555123" not in good(home, "export")


async def test_forget_finds_a_sharp_s_typed_as_double_s(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("Fine."))) as harness:
        await harness.say("In der Langen Straße")
        receipt = await forget(harness, "strasse")
        assert NOTHING in receipt
        assert having(home, "Straße") == []


@pytest.mark.parametrize(
    "text", ["It is in the blue\ndrawer.", "There are Blue Drawers", "**Blue** dräwer"]
)
async def test_instructions_that_have_the_words_in_other_forms_are_named(
    home: Path, text: str
) -> None:
    async with open_gateway(home, ScriptedModel(says("Fine."))) as harness:
        await harness.say("I like the blue drawer")
        (home / "AGENTS.md").write_text(f"Be kind.\n\n{text}\n")
        assert "still contain it: `AGENTS.md`." in await forget(harness, "blue drawer")
        (home / "AGENTS.md").write_text("Be blue.\n\nHave a drawer.\n")
        await harness.say("I like the blue drawer")
        assert CLEAN in await forget(harness, "blue drawer")


@pytest.mark.sqlite
def test_forget_in_the_shell_lists_files_and_people_that_still_have_the_words(home: Path) -> None:
    mine = {"session": "a", "role": "user", "text": "Off to Zanzibar", "at": "2026-05-03"}
    theirs = {**mine, "scope": "account:telegram:7", "text": "From Zanzibar"}
    imported(home, [mine, theirs])
    (home / "history.jsonl").unlink()
    receipt = good(home, "forget", "Zanzibar", "--yes")
    assert NOTHING in receipt
    assert (
        "These files in Mneme's home still contain it: state.db. state.db still contains it in a name"
        in receipt
    )
    assert CLEAN in good(home, "forget", "Zanzibar", "--yes", "--scope", "account:telegram:7")
    assert having(home, "Zanzibar") == []


async def test_forget_removes_a_senders_name_from_the_search_index(
    database: Database, clock: SteadyClock
) -> None:
    """Names stand in the terms of chunks, which are compared with what they were made of."""
    archive, recall, at = Archive(database), Recall(database, clock), clock.now()
    talk = TransferConversation(
        name="crew", address=Address(platform="terminal", chat_id="crew"), scope=ANA
    )
    lines = [
        TransferRecord(
            conversation=talk, role="user", text=f"Ship {n}", at=at, sender=who, id=f"{who} {n}"
        )
        for n in range(50)
        for who in ("Captain Zanzibar", "Ben")
    ]
    await archive.import_records(lines, lambda _: None)
    while await recall.tend():
        pass
    forgetting = forgetting_of(database, clock)
    asked = await forgetting.prepare("Zanzibar", claim_of())
    receipt = await forgetting.erase(asked.token, claim_of())
    assert (receipt.derived, receipt.remaining_counts) == (51, Counter())
    while await recall.tend():
        pass
    assert await recall.verify() == []
    assert await remains_of("Zanzibar", database) == []
    assert {line.sender async for line in archive.export(frozenset({ANA}))} == {None, "Ben"}


async def test_forget_also_erases_titles_reminders_and_error_records(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("Hm."))) as harness:
        await harness.say("Hello there")
        await harness.say("/title Zanzibar plans")
        await harness.say("/remind tomorrow at 9 pack for Zanzibar")
        await harness.say("/cron add every monday at 8:30 what is new in Zanzibar?")
        for key, error in (
            ("memory:honcho:1:1:sync_turn", "400: cannot keep 'Zanzibar'"),
            ("k", "no Zan\\u007aibar"),
        ):
            await harness.services.database.execute(
                "INSERT INTO outbox (key, address, kind, created_at, dead_at, error) "
                "VALUES (:key, 'memory:honcho/1', 'memory', 1, 1, :error)",
                {"key": key, "error": error},
            )
        (home / "mneme.log").write_text("started\nhoncho: 400 Zanzibar\n")
        receipt = await forget(harness, "Zanzibar")
        assert "2 reminders" in receipt
        assert NOTHING in receipt
        assert CLEAN in receipt
        assert having(home, "Zanzibar") == []
        assert "Zanzibar" not in exported(await harness.say("/export"))


@pytest.mark.sqlite
async def test_forget_receipt_mentions_names_that_a_platform_supplies(home: Path) -> None:
    named: dict[str, Any] = {"sender": Sender(id="42", name="Zanzibar Ana")}
    async with open_gateway(home, ScriptedModel(says("Hm."))) as harness:
        await harness.say("I am from Zanzibar", **named)
        receipt = await forget(harness, "Zanzibar", **named)
        assert NOTHING in receipt
        assert "Names that a platform gives people remain" in receipt
        assert "`state.db` still contains it in a name" in receipt
        nothing = (await harness.say("/forget Zanzibar", **named)).text
        assert "nothing to forget" in nothing
        assert "Names that a platform gives people remain" in nothing


@pytest.mark.sqlite
async def test_erasure_shows_nobody_the_words_of_another(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("Hm."), says("So."))) as harness:
        await harness.say("My sister moved to Zanzibar", "42")
        await harness.say("I moved to Zanzibar", "7")
        (home / "AGENTS.md").write_text("Speak of zanzibar.")
        receipt = await forget(harness, "Zanzibar", "7")
        assert NOTHING in receipt
        for secret in ("home", "state.db", "AGENTS", "others"):
            assert secret not in receipt
        await harness.say("And I moved to Zanzibar again", "7")
        receipt = await forget(harness, "Zanzibar", "42")
        assert NOTHING not in receipt
        assert "I moved" not in receipt
        assert (
            "These files in Mneme's home still contain it: `AGENTS.md` and `state.db`." in receipt
        )
        assert "I moved" in (await harness.say("/recall Zanzibar", "7")).text


async def test_forget_in_a_group_reports_messages_of_others_left_there_but_no_files_of_the_home(
    home: Path,
) -> None:
    async with open_gateway(home, options=OPEN_ROOM) as harness:
        await harness.say("Zanzibar is mine", "7", **ROOM)
        await harness.say("Zanzibar is ours", "8", **ROOM)
        await harness.say("Zanzibar is my secret", "7")
        receipt = await forget(harness, "Zanzibar", "7", **ROOM)
        assert "It is still here in 1 message from other people" in receipt
        (home / "AGENTS.md").write_text("Speak of Zanzibar.")
        receipt = await forget(harness, "Zanzibar", "42", **ROOM)
        assert NOTHING in receipt
        assert "home" not in receipt, "the owner asks where others read"


async def test_persons_own_group_messages_are_erased_by_forget_in_a_direct_chat_only(
    home: Path,
) -> None:
    """Own words only, wherever they are; nobody else hears of it."""
    options = 'rooms = ["telegram:-100", "telegram:-200"]\n'
    other = {
        **ROOM,
        "address": Address(platform="telegram", chat_id="-200"),
        "scope": Scope.group("telegram", "-200"),
    }
    async with open_gateway(home, ScriptedModel(says("Hm.")), options=options) as harness:
        await harness.say("I moved to Zanzibar", "7")
        await harness.say("Zanzibar is mine", "7", **ROOM)
        for command in (
            "remind tomorrow at 9 pack for",
            "cron add every monday at 8 go to",
            "remember I love",
            "memory add",
        ):
            await harness.say(f"/{command} Zanzibar", "7", **ROOM)
        await harness.say("Zanzibar is ours", "8", **ROOM)
        await harness.say("I miss ZANZIBAR", "7", **other)
        await harness.say("Lisbon is mine", "7", **ROOM)
        await harness.say("Lisbon is nice", "7")
        await harness.say("/forget Lisbon", "8", **ROOM)
        question = (await harness.say("/forget Zanzibar", "7")).text
        assert "1 message, 1 fact and 5 things of yours in groups" in question
        assert "Zanzibar is mine" in question
        assert "Zanzibar is ours" not in question
        receipt = (await harness.say("yes", "7")).text
        assert "Forgotten: 1 message, 1 fact and 5 things of yours in groups" in receipt
        assert NOTHING in receipt
        said = exported(await harness.say("/export", "7"))
        assert "anzibar" not in said
        assert "Lisbon is mine" in said
        theirs = (await harness.say("/recall Zanzibar", "8", **ROOM)).text
        assert "is ours" in theirs
        assert "is mine" not in theirs
        await forget(harness, "Lisbon", "7", **ROOM)
        assert "Lisbon is nice" in exported(await harness.say("/export", "7")), (
            "others read what he is answered there"
        )


async def test_forget_also_erases_the_persons_messages_in_groups_no_longer_open_to_them(
    home: Path,
) -> None:
    async with open_gateway(home, options=OPEN_ROOM) as harness:
        await harness.say("Zanzibar is mine", "7", **ROOM)
        await harness.say("Zanzibar is ours", "8", **ROOM)
        assert (
            "nothing to forget" in (await harness.say("/forget Zanzibar role:assistant", "7")).text
        )
        await harness.services.database.execute(
            "UPDATE scopes SET key = 'room:telegram:-100#2' WHERE key GLOB 'room*'"
        )
        assert "1 thing of yours in groups" in (await harness.say("/forget Zanzibar", "7")).text
    async with open_gateway(home) as harness:
        assert "Forgotten: 1 thing of yours in groups" in (await harness.say("yes", "7")).text
        assert "Zanzibar" not in exported(await harness.say("/export", "7"))
        texts = await harness.services.database.fetch_all(
            "SELECT text FROM messages WHERE text GLOB 'Zanzibar*'"
        )
        assert [row["text"] for row in texts] == ["Zanzibar is ours"]


async def test_forget_in_the_shell_erases_the_owners_messages_in_groups(home: Path) -> None:
    async with open_gateway(home, options=OPEN_ROOM) as harness:
        await harness.say("Zanzibar is mine", "42", **ROOM)
        await harness.say("Zanzibar is ours", "8", **ROOM)
    assert "Forgotten: 1 thing of yours in groups" in good(home, "forget", "Zanzibar", "--yes")
    assert "Zanzibar is mine" not in good(
        home, "recall", "Zanzibar", "--scope", "room:telegram:-100"
    )
    assert "Zanzibar is ours" in good(home, "recall", "Zanzibar", "--scope", "room:telegram:-100")


async def test_receipt_of_a_filtered_erasure_counts_the_messages_left_out_by_the_filters(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel(says("Zanzibar!"))) as harness:
        await harness.say("I moved to Zanzibar")
        receipt = await forget(harness, "Zanzibar role:user")
        assert "It is still in 1 message that your filters leave out." in receipt


async def test_forget_by_filters_alone_erases_the_messages_and_checks_them_again(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel(says("Hm."), says("So."))) as harness:
        await harness.say("I moved to Zanzibar")
        await harness.say("And then to Madeira")
        receipt = await forget(harness, "role:user")
        assert "Forgotten: 2 messages" in receipt
        assert NOTHING in receipt
        assert "home" not in receipt, "there is no phrase to look for in files"
        assert having(home, "Zanzibar", "Madeira") == []


@pytest.mark.sqlite
async def test_search_index_after_forget_equals_an_index_rebuilt_without_the_message(
    home: Path,
) -> None:
    """What it holds is what a rebuild makes of the rows that are left."""

    async def terms(harness: GatewayHarness) -> Sequence[object]:
        def work(connection: Any) -> list[object]:
            found: list[object] = []
            for index in ("messages_fts", "chunks_fts", "facts_fts"):
                connection.execute(
                    f"CREATE VIRTUAL TABLE temp.words USING fts5vocab('main', '{index}', 'instance')"
                )
                found += map(
                    tuple, connection.execute("SELECT * FROM temp.words ORDER BY 1, 2, 3, 4")
                )
                connection.execute("DROP TABLE temp.words")
            return found

        return await harness.services.database.write(work)

    async with open_gateway(home, ScriptedModel(says("Hm."), says("So."))) as harness:
        await harness.say("I moved to Zanzibar in May")
        await harness.say("My dentist is Dr. Weiss")
        while await harness.services.recall.tend():
            pass
        before = await terms(harness)
        await forget(harness, "Zanzibar")
        while await harness.services.recall.tend():
            pass
        erased = await terms(harness)
        await harness.services.recall.rebuild()
        while await harness.services.recall.tend():
            pass
        assert erased == await terms(harness)
        assert "zanzibar" in str(before)
        assert "zanzibar" not in str(erased)


WORDLESS = {
    "state_meta": "keys, and how platforms stand, which is written anew all the time",
    "group_scopes owner_groups people scope_detachments incognito_addresses": "numbers of accounts and rooms",
    "answered_events sync_watermarks fact_watermarks fact_rereads chunks chunk_counts prefix_breaks fact_entities undone_messages": "ids",
    "tool_calls unfinished_changes": "ids",
    "history_changes": "how often messages of a session were changed",
    "model_calls": "tokens",
    "message_vectors": "numbers that a trigger takes away with their message",
    "files file_removals": "hashes, types and sizes",
    "preferences": "the name of a time zone, and hours",
    "chat_settings": "switches, a prefix of commands, ids of roles and times that admins chose for a group",
    "thumbs": "numbers of an answer and of facts, which a trigger takes away with the answer",
    "note_reviews": "numbers of changes, and a time",
    "memory_reviews": "the number of a message, a time, and digests of what was rejected",
    "links": "codes, good for an hour at most",
    "erasures": "lists that nobody has confirmed; the others have no words",
}


@pytest.mark.sqlite
async def test_every_database_table_is_searched_for_forgotten_words_or_listed_as_wordless(
    database: Database,
) -> None:
    def work(connection: Any) -> set[str]:
        made = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL"
        )
        return {row[0] for row in made if not re.search("_fts|_vocabulary|^sqlite_", row[0])}

    looked_through = set(
        re.findall(r"FROM (\w+)", " ".join(statement for _, statement in SCAN_STATEMENTS))
    )
    assert await database.read(work) - looked_through == {
        name for names in WORDLESS for name in names.split()
    }


async def test_request_behind_a_reminder_that_was_set_in_words_is_erased_with_it(
    home: Path,
) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        await harness.say("Remind me tomorrow at nine to call the plumber.")
        receipt = await forget(harness, "plumber")
        assert NOTHING in receipt
        assert "still contain" not in receipt
    assert having(home, "plumber") == []
