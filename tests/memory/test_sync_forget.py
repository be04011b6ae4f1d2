"""What was erased, edited or deleted here goes from the memory services as well, whoever runs and
whatever fails."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from core.memory.provider import Forgotten, MemoryProvider
from core.store.engine import Connection
from core.store.erasure.statements import erase_messages
from core.store.mailbox import OutboxCounts
from core.store.notes import NoteChange
from core.store.rows import load_answer
from core.store.sync import SyncTask
from core.types import Message, Session, ToolContext
from gateway.delivery import Delivery, create_memory_reply
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.memory_service import KEY, MemoryService, memory_service
from tests.fixtures.provider_harness import ANA, BEN, ProviderHarness, harness, plugged, provider
from tests.fixtures.scripted_model import ScriptedModel
from tests.fixtures.stored_history import StoredHistory

pytestmark = pytest.mark.slow


@pytest.fixture
async def service() -> AsyncIterator[MemoryService]:
    async with memory_service() as opened:
        yield opened


def life(home: Path, service: MemoryService) -> AbstractAsyncContextManager[ProviderHarness]:
    jotter = provider(
        home, "jotter", {"url": service.url, "key": "JOTTER_KEY"}, {"JOTTER_KEY": KEY}
    )
    return harness(home, [jotter])


async def ids(one: ProviderHarness, *texts: str) -> list[int]:
    rows = await one.conversations.load_history(await one.session(), frozenset({ANA}))
    return [row.id for row in rows if row.text in texts]


async def erase(one: ProviderHarness, *texts: str) -> Sequence[str]:
    """As /forget does it: the rows go, and the services are asked in the same transaction."""
    gone = await ids(one, *texts)

    def erase_rows(connection: Connection) -> Sequence[str]:
        names = one.queue.queue_erasure(gone, [], connection)
        erase_messages(connection, gone)
        return names

    return await one.database.write(erase_rows)


async def queued(one: ProviderHarness) -> Sequence[SyncTask]:
    """The tasks in the outbox, as they are read back."""
    tasks = []
    for key, payload in await StoredHistory(one.database).execute(
        "SELECT key, payload FROM outbox ORDER BY id"
    ):
        answer = load_answer(str(payload))
        assert answer is not None
        task = SyncTask.parse(str(key), answer.text)
        assert task is not None
        tasks.append(task)
    return tasks


async def amend(one: ProviderHarness, external_id: str, text: str | None) -> None:
    """As the platform tells it: reworded, or erased (None)."""
    message_id = await one.conversations.amend((await one.session()).address, external_id, text)
    assert message_id is not None
    await one.memory.resync_messages(message_id)


async def test_erasure_for_a_service_is_queued_by_ids_and_read_back(home: Path) -> None:
    async with harness(home, [Scribe()]) as one:
        await one.turn("my secret is blue")
        gone = await ids(one, "my secret is blue")
        assert await one.queue.forget(gone) == await one.queue.forget(gone) == ["scribe"]
        _, forgetting, again = await queued(one)
        assert (forgetting.hook, forgetting.scope, list(forgetting.ids)) == ("on_forget", ANA, gone)
        assert again == replace(forgetting, turn=again.turn, hook="sync_turn"), (
            "asked twice they are the same"
        )
        await one.queue.forget(gone, stamp="later")
        assert len({task.key for task in await queued(one)}) == 5


async def test_erasure_asks_no_service_that_received_nothing(home: Path) -> None:
    async with harness(home) as one:
        await one.turn("a secret")
        assert await erase(one, "a secret") == []
        assert await one.outbox.count_items() == OutboxCounts(held=0, due=0, dead=0)


async def test_erased_message_is_deleted_from_a_memory_service_and_others_of_its_turn_stay(
    home: Path, service: MemoryService
) -> None:
    async with life(home, service) as one, one.working():
        await one.turn("my secret is blue", "my dog is Rex")
        await one.carried(1)
        assert len(service.held) == 1
        assert await erase(one, "my secret is blue") == ["jotter"]
        one.worker.wake()
        await one.carried(3)
        assert one.ends == ["done"] * 3
        assert ["secret" in text for _, text in service.held.values()] == [False]
        assert "my dog is Rex" in str(service.held)


async def test_erasure_reaches_a_service_later_if_nobody_runs_or_it_fails(
    home: Path, service: MemoryService
) -> None:
    async with life(home, service) as one, one.working():
        await one.turn("my secret is blue")
        await one.carried(1)
    async with harness(home) as one:
        assert await erase(one, "my secret is blue"), (
            "from the command line, say: no service is loaded there"
        )
        items = await StoredHistory(one.database).execute(
            "SELECT key, payload FROM outbox WHERE payload NOT NULL"
        )
        assert len(items) == 2
        assert "secret" not in str(items)
    async with life(home, service) as one, one.working():
        service.mood = "failing"
        one.worker.wake()
        await one.carried(1)
        service.mood = "well"
        await one.later(seconds=2)
        await one.carried(2)
        await one.watch.until(lambda: service.held == {})


async def test_edited_message_is_sent_to_a_memory_service_again_and_a_deleted_one_erased(
    home: Path, service: MemoryService
) -> None:
    async with life(home, service) as one, one.working():
        session = await one.session()
        for number, text in (("8", "the key is red"), ("9", "the cat is Tom")):
            said = Message(
                role="user",
                text=text,
                session_id=session.id,
                created_at=one.clock.now(),
                external_id=number,
            )
            answer = Message(
                role="assistant", text="k", session_id=session.id, created_at=one.clock.now()
            )
            await one.conversations.append([said, answer])
            await one.over(session)
        await one.carried(2)
        await amend(one, "8", "the key is green")
        await one.carried(4)
        assert sorted(text.split("\n")[0] for _, text in service.held.values()) == [
            "user: the cat is Tom",
            "user: the key is green",
        ]
        await amend(one, "9", None)
        await one.carried(6)
        assert [text.split("\n")[0] for _, text in service.held.values()] == [
            "user: the key is green"
        ]


async def test_unsent_message_needs_no_erasure_and_no_turn_is_sent_twice(
    home: Path, service: MemoryService
) -> None:
    async with life(home, service) as one, one.working():
        await one.turn("the boat is Molly")
        await one.carried(1)
        session = await one.session()
        said = Message(
            role="user",
            text="the cat is Tom",
            session_id=session.id,
            created_at=one.clock.now(),
            external_id="9",
        )
        await one.conversations.append([said])
        for text in ("the cat is Max", None):
            await amend(one, "9", text)
        assert await erase(one, "the cat is Tom") == []
        assert await one.outbox.count_items("memory:jotter:") == OutboxCounts(held=0, due=0, dead=0)
        assert len(service.told) == 1


class Scribe(MemoryProvider):
    """Writes down what it is to forget."""

    name = "scribe"

    def __init__(self) -> None:
        self.told: list[str] = []
        self.noted: list[int] = []
        self.forgotten: list[Forgotten] = []

    async def is_available(self) -> bool:
        return True

    async def initialize(self, folder: Path) -> None:
        return None

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        return ()

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        self.told += [row.text for row in messages if row.role == "user"]

    async def on_memory_write(self, change: NoteChange) -> None:
        self.noted.append(change.id)

    async def on_forget(self, forgotten: Forgotten) -> None:
        self.forgotten.append(forgotten)


async def test_changes_of_notes_are_forgotten_by_their_names(home: Path) -> None:
    scribe = Scribe()
    async with harness(home, [scribe]) as one, one.working():
        for scope in (ANA, BEN):
            change = NoteChange(
                scope=scope,
                target="user",
                action="add",
                before=None,
                after="tea",
                at=one.clock.now(),
            )
            await one.notes.log_changes(change)
        await one.memory.on_memory_write()
        await one.carried(2)
        assert await one.queue.forget([], scribe.noted)
        one.worker.wake()
        await one.carried(4)
    assert scribe.forgotten == [
        Forgotten(scope=ANA, notes=(scribe.noted[0],)),
        Forgotten(scope=BEN, notes=(scribe.noted[1],)),
    ]


class Keeper(Scribe):
    """Has no way to forget."""

    on_forget = MemoryProvider.on_forget


async def test_service_that_cannot_forget_is_reported_to_the_owner_once(home: Path) -> None:
    async with harness(home, [Keeper()]) as one, one.working():
        await one.turn("my secret is blue")
        await one.turn("my secret is red")
        await one.carried(2)
        await erase(one, "my secret is blue")
        await erase(one, "my secret is red")
        one.worker.wake()
        await one.watch.until(lambda: len(one.ends) >= 4)
        assert "buried" in one.ends
        assert set(one.notices) == {("keeps", "scribe", "")}
        counts = await one.outbox.count_items("memory:scribe:")
        assert "can't erase what it received" in counts.error


@pytest.mark.parametrize(
    ("kind", "told"), [(Keeper, ["the dog is Rex"]), (Scribe, ["the dog is Rex"] * 2)]
)
async def test_rest_of_an_erased_turn_is_sent_again_only_to_a_service_that_forgets(
    home: Path, kind: type[Scribe], told: list[str]
) -> None:
    scribe = kind()
    async with harness(home, [scribe]) as one, one.working():
        await one.turn("good morning")
        await one.turn("my secret is blue", "the dog is Rex")
        await one.carried(2)
        await StoredHistory(one.database).execute("DELETE FROM outbox")
        await erase(one, "my secret is blue")
        one.worker.wake()
        await one.carried(4)
    assert scribe.told == ["good morning", "my secret is blue", *told]


async def delivered(harness: GatewayHarness) -> None:
    """All that waits for a memory is brought to it."""
    services = harness.services
    post = Delivery(services.inbox, services.outbox, services.clock, {})
    while items := await services.outbox.list_due(services.clock.now(), ["memory"]):
        for outbox_item in items:
            assert outbox_item.answer is not None
            reply = create_memory_reply(harness.memory)
            post.begin(outbox_item, reply)
            assert await post.deliver(outbox_item, reply, outbox_item.answer)


async def test_memory_service_that_is_quicker_than_the_erasure_does_not_get_the_words_again(
    home: Path,
) -> None:
    """The journal is a pipe without a reader: the erasure waits there, after everything outside of
    state.db is erased and before the rows are."""
    plugged(home, "diary")
    (home / "mneme.log").write_text("The drawer opens with zanzibar.\n")
    journal = home.with_name(f"{home.name}.erasures")
    async with open_gateway(home, ScriptedModel(), "[memory.providers.diary]\n") as harness:
        await harness.say("The drawer opens with zanzibar.")
        await delivered(harness)
        os.mkfifo(journal)
        await harness.say("/forget zanzibar")
        receipt = asyncio.create_task(harness.say("yes"))
        async with asyncio.timeout(30):
            while (home / "mneme.log").stat().st_size:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await delivered(harness)
        reader = os.open(journal, os.O_RDONLY | os.O_NONBLOCK)
        assert "diary may have stored it, too" in (await receipt).text
        os.close(reader)
        await delivered(harness)
        assert (
            "zanzibar"
            not in (home / "providers" / "diary" / "account%3Atelegram%3A42.txt").read_text()
        )


async def test_forget_and_edits_reach_the_files_of_a_plugin(home: Path) -> None:
    plugged(home, "diary")
    async with open_gateway(home, ScriptedModel(), "[memory.providers.diary]\n") as harness:
        await harness.say("The drawer opens with zanzibar.")
        rex = await harness.say("My dog is called Rex.")
        await delivered(harness)
        file = home / "providers" / "diary" / "account%3Atelegram%3A42.txt"
        assert "zanzibar" in file.read_text()
        await harness.say("/forget zanzibar")
        receipt = (await harness.say("yes")).text
        assert "diary may have stored it, too" in receipt
        await delivered(harness)
        assert "zanzibar" not in file.read_text()
        assert "Rex" in file.read_text()
        assert rex.receipt is not None
        edited = harness.inbound(
            "My dog is called Max.", kind="edit", message_id=rex.receipt.key.rpartition(":")[2]
        )
        await harness.admission.admit(edited, KeptReply())
        await delivered(harness)
        assert "Rex" not in file.read_text()
        assert "Max" in file.read_text()
