"""What is forgotten is found by nothing, and stands in no byte of state.db; what was not meant
stays."""

from __future__ import annotations

import gzip
import json
import sqlite3

import pytest

from core.errors import Refused
from core.search.recall import Recall
from core.store.engine import Database
from core.store.erasure.statements import erase_messages
from core.store.mailbox import Outbox, OutboxItem
from core.store.rows import load_answer
from core.store.sqlite.database import Database as SqliteDatabase
from core.store.sync import SyncQueue, SyncTask
from core.types import Address, Answer, File
from tests.fixtures.clock import SteadyClock
from tests.fixtures.forgetting import claim_of, forget, forgetting_of, remains_of
from tests.fixtures.search_queries import search_query
from tests.fixtures.stored_history import ANA, BEN, ROOM, StoredHistory
from tests.store.conftest import OpenStore

pytestmark = pytest.mark.slow


async def texts(database: Database) -> list[str]:
    return await database.read(
        lambda connection: [
            row[0] for row in connection.execute("SELECT text FROM messages ORDER BY id")
        ]
    )


async def found(database: Database, clock: SteadyClock, text: str) -> int:
    findings = await Recall(database, clock).recall(
        search_query(text=text, scopes=frozenset({ANA, BEN, ROOM}), messages=100)
    )
    return len(findings.messages)


async def tended(database: Database, clock: SteadyClock) -> None:
    recall = Recall(database, clock)
    while await recall.tend():
        pass


@pytest.mark.parametrize(
    ("lines", "what", "word"),
    [
        (["I moved to Zanzibar in May.", "Zanzibar is far away!"], "Zanzibar", "Zanzibar"),
        (["我们搬到了波尔图附近的海边", "好的"], "波尔图", "波尔图"),
        (["ของฉันอยู่ที่ปอร์โต", "ok"], "ปอร์โต", "ปอร์โต"),
        (["The key lies in the blue drawer", "Noted."], '"blue drawer"', "blue drawer"),
        (["Mein Zimmer in Königsbrück", "ja"], "konigsbruck", "Königsbrück"),
    ],
)
async def test_forgotten_words_are_left_nowhere_in_the_database_files(
    database: Database, clock: SteadyClock, lines: list[str], what: str, word: str
) -> None:
    written = StoredHistory(database)
    for number in range(12):
        await written.session(
            [
                f"Talk {number} about ferries and trains",
                "They leave at nine",
                *lines,
                f"Good {number}",
            ]
        )
    await tended(database, clock)
    assert await remains_of(word, database)
    counts = await forget(forgetting_of(database, clock), what, claim_of())
    assert counts["message"] >= 12
    assert await remains_of(word, database) == []
    assert await found(database, clock, what) == 0
    await tended(database, clock)
    assert await remains_of(word, database) == [], "indexing again does not bring it back"
    assert await found(database, clock, "ferries") == 12
    assert await Recall(database, clock).verify() == []


@pytest.mark.parametrize("open_store", ["sqlite"], indirect=True)
async def test_forgotten_words_are_not_left_in_free_database_pages(
    database: Database, clock: SteadyClock
) -> None:
    written = StoredHistory(database)
    ids = await written.session(["We talk about boats", "Yes"])
    long = "The Zanzibar plan. " * 3_000
    for _ in range(5):
        await written.say(ids[0], long, kind="quote", role="tool")
    await written.execute("DELETE FROM messages WHERE kind = 'quote'")
    assert await remains_of("Zanzibar", database)
    await written.say(ids[0], "Zanzibar it is")
    assert await forget(forgetting_of(database, clock), "Zanzibar", claim_of()) == {"message": 1}
    assert await remains_of("Zanzibar", database) == []


async def test_erasure_includes_rows_that_repeat_the_message(
    database: Database, clock: SteadyClock
) -> None:
    written = StoredHistory(database)
    first = await written.session(
        ["I moved to Zanzibar with my cat Tibby in the month of May", "How nice!"],
        title="I moved to Zanzibar…",
    )
    later = await written.session(["Where do I live?", "Let me see"], title="Homes")
    await written.say(
        later[0], "I found this: > I moved to Zanzibar", role="assistant", kind="quote"
    )
    await written.say(later[0], json.dumps({"text": "said\nZanzibar"}), role="tool", kind="quote")
    await written.say(later[0], "/recall Zanzibar", kind="command")
    kept = await written.say(
        first[0], "You came with your cat Tibby in the month of May.", role="assistant"
    )
    fence = f"<memory-context>\n- m{first[1]} 3 May: Ana: moved to Zanzibar\n</memory-context>"
    blocks = [{"type": "text", "text": text} for text in ("[time]", "Where do I live?", fence)]
    await written.execute(
        "UPDATE messages SET sent = :sent WHERE id = :id", id=later[1], sent=json.dumps(blocks)
    )
    quotes = [
        json.dumps({"kind": "reply", "text": "my cat", "message_id": id_})
        for id_ in (first[1], first[2])
    ]
    for text, quoted in zip(("What about her?", "What do you mean?"), quotes, strict=True):
        id_ = await written.say(later[0], text)
        await written.execute(
            "UPDATE messages SET quoted = :quoted WHERE id = :id", id=id_, quoted=quoted
        )
    await written.execute("UPDATE sessions SET system_prompt = 'You know: lives in Zanzibar'")
    assert await forget(forgetting_of(database, clock), "Zanzibar", claim_of()) == {"message": 1}
    assert await remains_of("Zanzibar", database) == []
    said = await texts(database)
    assert said.count("") == 5
    assert said[kept - 1] == "", "a longer stretch is a quotation, whatever was looked for"
    assert "How nice!" in said
    titles = await written.execute("SELECT title, system_prompt FROM sessions ORDER BY id")
    assert titles == [(None, ""), ("Homes", "")]
    (sent,) = (await written.execute("SELECT sent FROM messages WHERE id = :id", id=later[1]))[0]
    assert sent is None, "it is made anew without memory"
    (asked, answered) = await written.execute(
        "SELECT quoted FROM messages WHERE text LIKE 'What %' ORDER BY id"
    )
    assert asked == (None,), "what answers it was said of it, whatever it quotes"
    assert answered == (quotes[1],)
    causes = await written.execute(
        "SELECT session_id, cause FROM prefix_breaks ORDER BY session_id"
    )
    assert causes == [(first[0], "forget"), (later[0], "forget")]


async def test_session_title_is_erased_only_with_the_messages_it_was_made_from(
    database: Database, clock: SteadyClock
) -> None:
    written = StoredHistory(database)
    await written.session(
        ["My passport is in the blue drawer", "Fine"], title="Where important papers are kept"
    )
    await written.session(
        ["We go by train", "Fine", "The blue drawer it is", "Yes"], title="Travels"
    )
    await forget(forgetting_of(database, clock), '"blue drawer"', claim_of())
    assert await written.execute("SELECT title FROM sessions ORDER BY id") == [
        (None,),
        ("Travels",),
    ]


async def test_erasure_includes_jobs_note_versions_buttons_and_deliveries_with_the_word(
    database: Database, clock: SteadyClock
) -> None:
    written = StoredHistory(database)
    await written.session(["Zanzibar is where we go", "Fine"])
    statements = (
        "INSERT INTO jobs (scope_id, address_id, text, zone, created_at, next_at) "
        "VALUES (1, 1, 'book Zanzibar', 'UTC', 0, 5)",
        "INSERT INTO note_changes (scope_id, target, action, after, at) VALUES (1, 'memory', 'add', 'Goes to Zanzibar', 0)",
        "INSERT INTO actions (id, scope_id, command, arguments, expires_at) "
        "VALUES ('a', 1, 'recall', 'page:2 Zanzibar', 9e9)",
        "INSERT INTO outbox (key, address, kind, payload, created_at, next_at) "
        "VALUES ('k', 'telegram:1', 'reminder', '{\"text\":\"book Zanzibar\"}', 0, 5)",
        "INSERT INTO outbox (key, address, kind, payload, created_at, next_at) "
        "VALUES ('other', 'telegram:2', 'reminder', '{\"text\":\"book Zanzibar\"}', 0, 5)",
    )
    for statement in statements:
        await written.execute(statement)
    counts = await forget(forgetting_of(database, clock), "Zanzibar", claim_of())
    assert counts == {"message": 1, "job": 1}
    assert await written.execute("SELECT text, next_at, ended_at IS NULL FROM jobs") == [
        ("", None, 0)
    ]
    assert await written.execute("SELECT COUNT(*) FROM note_changes") == [(0,)]
    assert await written.execute("SELECT COUNT(*) FROM actions") == [(0,)]
    left = await written.execute(
        "SELECT key, payload IS NULL, dead_at IS NULL FROM outbox ORDER BY key"
    )
    assert left == [("k", 1, 0), ("other", 0, 1)], "another's parcel is not his"


async def test_forget_deletes_an_export_file_that_waits_for_delivery(
    database: Database, clock: SteadyClock
) -> None:
    written = StoredHistory(database)
    await written.session(["Zanzibar is where we go", "Fine"])
    file = File(name="said.jsonl.gz", content=gzip.compress(b"{}"), mime="application/gzip")
    outbox = Outbox(database, clock)
    for key, files in {"export": (file,), "other": ()}.items():
        place, answer = (
            Address(platform="telegram", chat_id="1"),
            Answer(text="All of it.", files=files),
        )
        await outbox.put(
            OutboxItem(key=key, kind="answer", address=place, answer=answer, next_at=clock.now())
        )
    await forget(forgetting_of(database, clock), "Zanzibar", claim_of())
    left = await written.execute("SELECT key FROM outbox WHERE payload IS NOT NULL")
    assert left == [("other",)], "what is in the file is not looked for"


async def test_erasure_deletes_failed_platform_updates_even_with_escaped_letters(
    database: Database, clock: SteadyClock
) -> None:
    written = StoredHistory(database)
    await written.session(["Пароль сезам", "Хорошо"])
    raw = json.dumps({"update_id": 5, "message": {"text": "Пароль сезам"}})
    for number, text in ((5, raw), (6, "{}")):
        await written.execute(
            f"INSERT INTO raw_updates (platform, update_id, raw, failed_at) VALUES ('telegram', {number}, '{text}', 0)"
        )
    await forget(forgetting_of(database, clock), "сезам", claim_of(is_owner=True))
    assert await written.execute("SELECT update_id FROM raw_updates") == [(6,)]


async def test_forget_deletes_failed_platform_updates_of_the_person_only(
    database: Database, clock: SteadyClock
) -> None:
    written = StoredHistory(database)
    await written.session(["Zanzibar is where we go", "Fine"])
    ours = (
        {"update_id": 1, "message": {"from": {"id": 1}, "text": "Zanzibar"}},
        {"update_id": 2, "edited_message": {"from": {"id": 1}, "text": "Zanzibar"}},
        {"update_id": 3, "callback_query": {"from": {"id": 1}, "data": "Zanzibar"}},
    )
    theirs: tuple[dict[str, object], ...] = (
        {"update_id": 4, "message": {"from": {"id": 2}, "text": "Zanzibar"}},
        {"update_id": 5, "message": {"from": {"id": 1}, "text": "Lisbon"}},
        {"update_id": 6, "message": "Zanzibar"},
    )
    for update in (*ours, *theirs):
        await written.execute(
            "INSERT INTO raw_updates VALUES ('telegram', :id, :raw, 'odd', 1)",
            id=update["update_id"],
            raw=json.dumps(update),
        )
    await written.execute("INSERT INTO raw_updates VALUES ('telegram', 7, 'Zanzibar {', 'odd', 1)")
    await forget(forgetting_of(database, clock), "Zanzibar", claim_of())
    assert await written.execute("SELECT update_id FROM raw_updates") == [(4,), (5,), (6,), (7,)]
    await written.say(1, "Zanzibar again")
    await forget(forgetting_of(database, clock), "Zanzibar", claim_of(is_owner=True))
    assert await written.execute("SELECT update_id FROM raw_updates") == [(5,)], (
        "the owner answers for what is nobody's"
    )


async def test_erasure_of_a_word_includes_its_plural_and_case_forms(
    database: Database, clock: SteadyClock
) -> None:
    written = StoredHistory(database)
    await written.session(
        [
            "Two ferries leave",
            "ok",
            "The ferry is late",
            "ok",
            "Fairy tales",
            "я в Москве",
            "Москва!",
        ]
    )
    await written.execute(
        "INSERT INTO note_changes (scope_id, target, action, after, at) VALUES (1, 'memory', 'add', 'likes ferries', 0)"
    )
    assert await forget(forgetting_of(database, clock), "ferry", claim_of()) == {"message": 2}
    assert await written.execute("SELECT COUNT(*) FROM note_changes") == [(0,)]
    assert await forget(forgetting_of(database, clock), '"москва"', claim_of()) == {"message": 1}
    assert await forget(forgetting_of(database, clock), "москва", claim_of()) == {"message": 1}
    assert [text for text in await texts(database) if text] == ["ok", "ok", "Fairy tales"]


async def test_erasure_leaves_the_same_words_in_other_peoples_scopes(
    database: Database, clock: SteadyClock
) -> None:
    written = StoredHistory(database)
    await written.session(["Zanzibar for me", "Yes"])
    await written.session(["Zanzibar for Ben", "Yes"], scope=BEN)
    forgetting = forgetting_of(database, clock)
    assert not (await forgetting.prepare("Zanzibar", claim_of(ROOM))).token
    traces = await forgetting.prepare("Zanzibar", claim_of())
    with pytest.raises(Refused, match="nothing was erased"):
        await forgetting.erase(traces.token, claim_of(BEN, who="2"))
    await forgetting.erase(traces.token, claim_of())
    assert await texts(database) == ["", "Yes", "Zanzibar for Ben", "Yes"]


async def test_erasure_by_a_group_member_covers_only_the_members_own_messages(
    database: Database, clock: SteadyClock
) -> None:
    written = StoredHistory(database)
    room = await written.session(scope=ROOM, platform="discord")
    await written.say(room[0], "I like Zanzibar and its long white beaches a lot", sender="1")
    await written.say(room[0], "Zanzibar bores me", sender="2")
    await written.say(
        room[0], "One of you likes Zanzibar and its long white beaches.", role="assistant"
    )
    await written.say(room[0], "Zanzibar is an island.", role="assistant")
    await written.execute(
        "INSERT INTO note_changes (scope_id, target, action, after, account, at) VALUES "
        "(1, 'memory', 'add', 'Zanzibar one', 'discord:2', 0), "
        "(1, 'memory', 'add', 'Likes Zanzibar and its long white beaches', 'discord:1', 0)"
    )
    forgetting = forgetting_of(database, clock)
    assert await forget(forgetting, "Zanzibar", claim_of(ROOM)) == {"message": 1}
    assert await texts(database) == ["", "Zanzibar bores me", "", "Zanzibar is an island."]
    assert await written.execute("SELECT after FROM note_changes") == [("Zanzibar one",)]
    assert await forget(forgetting, "Zanzibar", claim_of(ROOM, is_owner=True, who="9")) == {
        "message": 2
    }
    assert await remains_of("Zanzibar", database) == []


async def test_forget_erases_facts_extracted_from_the_forgotten_message(
    database: Database, clock: SteadyClock
) -> None:
    written = StoredHistory(database)
    ids = await written.session(["I moved to Zanzibar", "Fine"])
    await written.execute(
        "INSERT INTO facts (scope_id, content, comparison_form, kind, trust, created_at, last_at, message_id, origin) VALUES "
        "(1, 'Lives far away', 'lives far away', 'identity', 0.6, 0, 0, :id, 'rule'), "
        "(1, 'Zanzibar is home', 'zanzibar is home', 'identity', 0.6, 0, 0, NULL, 'rule'), "
        "(1, 'Likes tea', 'likes tea', 'identity', 0.6, 0, 0, NULL, 'rule')",
        id=ids[1],
    )
    await written.execute(
        "INSERT INTO fact_changes (scope_id, fact_id, action, reason, at) VALUES (1, 3, 'close', 'Zanzibar is home', 0)"
    )
    assert await forget(forgetting_of(database, clock), "Zanzibar", claim_of()) == {
        "message": 1,
        "fact": 2,
    }
    assert await written.execute("SELECT content FROM facts") == [("Likes tea",)]
    assert await written.execute("SELECT COUNT(*) FROM fact_changes") == [(0,)]
    assert await remains_of("Zanzibar", database) == []


@pytest.mark.parametrize("what", ["?!", "Atlantis", "zanzi", '"moved Zanzibar"', "before:2020"])
async def test_forget_finds_nothing_for_a_word_that_no_message_contains(
    database: Database, clock: SteadyClock, what: str
) -> None:
    await StoredHistory(database).session(["I moved to Zanzibar", "Fine"])
    assert not (await forgetting_of(database, clock).prepare(what, claim_of())).token
    with pytest.raises(Refused, match="/forget Porto"):
        await forgetting_of(database, clock).prepare("  ", claim_of())


@pytest.mark.parametrize("what", ["a", "them?", "it and the", "what did I say"])
async def test_forget_with_only_stop_words_is_refused_unless_they_are_quoted(
    database: Database, clock: SteadyClock, what: str
) -> None:
    await StoredHistory(database).session(["It was a day with them", "What did I say? And the?"])
    with pytest.raises(Refused, match="Name what it is about"):
        await forgetting_of(database, clock).prepare(what, claim_of())
    found = await forgetting_of(database, clock).prepare(f'"{what}"', claim_of())
    assert found.token or what == "it and the"


async def test_forget_accepts_search_filters_and_operators(
    database: Database, clock: SteadyClock
) -> None:
    written = StoredHistory(database)
    await written.session(
        ["ferry to Lisbon", "ferry it is", "train to Lisbon", "fine", "a boat", "fine"]
    )
    forgetting = forgetting_of(database, clock)
    assert await forget(forgetting, "ferry role:assistant", claim_of()) == {"message": 1}
    assert await forget(forgetting, "lisbon -train", claim_of()) == {"message": 1}
    assert await forget(forgetting, "what did I say about the boat?", claim_of()) == {"message": 1}
    assert await texts(database) == ["", "", "train to Lisbon", "fine", "", "fine"]


async def test_erasure_is_refused_while_the_search_index_is_being_rebuilt(
    database: Database, clock: SteadyClock
) -> None:
    written = StoredHistory(database)
    await written.session(["I moved to Zanzibar", "Fine"])
    await written.execute("INSERT INTO state_meta (key, value) VALUES ('index_stale', '1')")
    with pytest.raises(Refused, match="being rebuilt"):
        await forgetting_of(database, clock).prepare("Zanzibar", claim_of())


@pytest.mark.parametrize("open_store", ["sqlite"], indirect=True)
async def test_an_open_reader_keeps_the_bytes_until_it_is_done(
    database: SqliteDatabase, clock: SteadyClock
) -> None:
    await StoredHistory(database).session(["I moved to Zanzibar", "Fine"])
    await database.checkpoint()
    reader = sqlite3.connect(database.path, isolation_level=None)
    try:
        reader.execute("PRAGMA busy_timeout = 0")
        reader.execute("BEGIN")
        assert reader.execute("SELECT COUNT(*) FROM state_meta").fetchone()
        forgetting = forgetting_of(database, clock)
        traces = await forgetting.prepare("Zanzibar", claim_of())
        assert traces is not None
        receipt = await forgetting.erase(traces.token, claim_of())
        assert not receipt.is_clean
        assert await found(database, clock, "Zanzibar") == 0
    finally:
        reader.close()
    while await forgetting.maintain():
        pass
    assert await remains_of("Zanzibar", database) == []


async def test_interrupted_erasure_is_finished_after_a_restart(
    database: Database, open_store: OpenStore, clock: SteadyClock
) -> None:
    written = StoredHistory(database)
    for _ in range(60):
        await written.session(["I moved to Zanzibar", "Zanzibar!", "x", "y"])
    forgetting = forgetting_of(database, clock)
    asked = await forgetting.prepare("Zanzibar", claim_of())
    found = await forgetting.erasures.begin(asked.token, claim_of())
    assert found is not None
    await database.write(lambda connection: erase_messages(connection, found.ids["messages"][:70]))
    async with open_store() as again:
        after = forgetting_of(again, clock)
        assert await after.resume() == 1
        assert await after.resume() == 0
        while await after.maintain():
            pass
        receipt = await after.erase(asked.token, claim_of())
        assert dict(receipt.counts) == {"message": 120}, (
            "the same yes once more is answered the same"
        )
    assert await remains_of("Zanzibar", database) == []
    lists = await written.execute("SELECT list FROM erasures")
    assert "Zanzibar" not in str(lists)


async def test_erasure_by_a_group_member_includes_their_commands_and_results_about_them(
    database: Database, clock: SteadyClock
) -> None:
    written = StoredHistory(database)
    room = await written.session(scope=ROOM, platform="discord")
    await written.say(room[0], "Zanzibar is mine", sender="1")
    for who in ("1", "2"):
        await written.say(room[0], "/recall Zanzibar", kind="command", sender=who)
    await written.say(room[0], "> **Zanzibar** is mine", kind="command", role="assistant")
    await written.say(room[0], "> **Zanzibar** is ours", kind="command", role="assistant")
    assert await forget(forgetting_of(database, clock), "Zanzibar", claim_of(ROOM)) == {
        "message": 1
    }
    assert await texts(database) == ["", "", "/recall Zanzibar", "", "> **Zanzibar** is ours"]


async def test_receipt_names_memory_services_that_were_asked_to_erase(
    database: Database, clock: SteadyClock
) -> None:
    ids = await StoredHistory(database).session(["I moved to Zanzibar", "Fine"])
    await database.execute(
        "INSERT INTO sync_watermarks (provider, subject, last_id) VALUES ('honcho', '1', :id)",
        {"id": ids[2]},
    )
    forgetting = forgetting_of(database, clock, SyncQueue(database, clock))
    waiting = "SELECT key, payload FROM outbox WHERE key LIKE 'memory:honcho:%:on_forget'"
    traces = await forgetting.prepare("Zanzibar", claim_of())
    assert await database.fetch_all(waiting) == [], "nobody has said yes yet"
    receipt = await forgetting.erase(traces.token, claim_of())
    assert receipt.services == ("honcho",)
    ((key, payload),) = await database.fetch_all(waiting)
    task = SyncTask.parse(key, (load_answer(payload) or Answer(text="")).text)
    assert task is not None
    assert task.ids == (ids[1],)


async def test_a_list_that_an_earlier_version_began_is_finished(
    database: Database, clock: SteadyClock
) -> None:
    ids = await StoredHistory(database).session(["I moved to Zanzibar", "Fine"])
    stored = {
        "messages": [ids[1]],
        "scopes": [ANA.key],
        "notes": 0,
        "upto": ids[2],
        "where": ANA.key,
        "is_owner": True,
    }
    await database.execute(
        "INSERT INTO erasures (id, address, account, scopes, list, made_at, started_at) "
        "VALUES ('old', 'telegram:1', 'telegram:1', :scopes, :list, 1, 1)",
        {"scopes": json.dumps([ANA.key]), "list": json.dumps(stored)},
    )
    forgetting = forgetting_of(database, clock)
    assert await forgetting.resume() == 1
    while await forgetting.maintain():
        pass
    assert await remains_of("Zanzibar", database) == []
    assert await texts(database) == ["", "Fine"]
