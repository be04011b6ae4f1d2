"""Every event once: who is served, what runs beside, what waits, what a restart goes on with, who
sees what."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from core.agent.sessions import Turn
from core.errors import DeliveryError, StoreError
from core.ports import Reply
from core.store.mailbox import OutboxItem
from core.store.sqlite.faults import LockWait
from core.types import Account, Address, Answer, Command, Scope, Sender
from gateway.texts.catalog import ENGLISH as texts
from tests.fixtures.delivery_record import hold
from tests.fixtures.gateway_harness import (
    GatewayHarness,
    KeptPlatform,
    KeptReply,
    notices,
    open_gateway,
)
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

ROOM = Scope.group("telegram", "-100")
ROOM_ADDRESS = Address(platform="telegram", chat_id="-100")


async def in_room(harness: GatewayHarness, text: str, who: str, **changes: object) -> KeptReply:
    told = {"address": ROOM_ADDRESS, "scope": ROOM, "is_direct": False} | changes
    return await harness.say(text, who, **told)


async def count(harness: GatewayHarness, table: str) -> int:
    return await harness.services.database.read(
        lambda connection: int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    )


async def test_redelivered_message_is_not_answered_a_second_time(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("once", message_id="same")
        again = await harness.say("once", message_id="same")
        assert again.answer is None
        assert len(model.requests) == 1
        assert await count(harness, "messages") == 2


async def test_stranger_gets_a_pairing_code_and_none_of_the_strangers_text_is_stored(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        reply = await harness.say("my secret plan", "666")
        assert "the person who runs me" in reply.text
        assert "Until then I keep only your name, your id and your first message" in reply.text
        assert (await harness.say("my secret plan again", "666")).answer is None, "one code an hour"
        due = await harness.services.outbox.list_due(
            harness.services.clock.now() + timedelta(seconds=1), ("telegram",)
        )
        assert due == [], "the owner has no place yet where he could be told"
        code = reply.text.split("`")[1]
        assert len(code) == 8
        for table in ("messages", "inbox", "sessions"):
            assert await count(harness, table) == 0
        assert "Only my owner" in (await harness.say(f"/approve {code}", "7")).text
        listed = (await harness.say("/approve")).text
        assert "**Person 666** (Telegram, id `666`)" in listed
        approved = await harness.say(f"/approve {code.lower()}")
        assert "**Person 666** (Telegram, id `666`) can talk to me now" in approved.text
        assert (await harness.say("hello", "666")).text == "ok"
        stored = await harness.services.database.read(
            lambda connection: "".join(
                str(tuple(row)) for row in connection.execute("SELECT text FROM messages")
            )
        )
        assert code not in stored.upper()


async def test_stranger_in_an_unapproved_group_gets_one_notice_and_no_answers(home: Path) -> None:
    async with open_gateway(home) as harness:
        assert (await in_room(harness, "hello", "666")).text == texts.STRANGER_IN_GROUP
        assert (await in_room(harness, "hello", "666")).answer is None
        assert await count(harness, "pairings") == 0


async def test_members_of_a_listed_room_are_served_there_and_nowhere_else(home: Path) -> None:
    async with open_gateway(home, options='rooms = ["telegram:-100"]\n') as harness:
        assert (await in_room(harness, "hello", "666")).text == "ok"
        assert "I don't know you yet" in (await harness.say("hello", "666")).text
        elsewhere = {
            "address": Address(platform="telegram", chat_id="-200"),
            "scope": Scope.group("telegram", "-200"),
        }
        told = await in_room(harness, "hello", "666", **elsewhere)
        assert told.text == texts.STRANGER_IN_GROUP
        assert (await in_room(harness, "hello", "666", **elsewhere)).answer is None


async def test_anonymous_sender_in_a_group_is_not_served(home: Path) -> None:
    async with open_gateway(home, options='rooms = ["telegram:-100"]\n') as harness:
        ghost = Sender(id="1087968824", name="Group", is_anonymous=True)
        assert (await in_room(harness, "hello", "42", sender=ghost)).answer is None
        assert (
            await harness.say("hello", "42", sender=Sender(id="42", name="x", is_anonymous=True))
        ).answer is None


async def test_unaddressed_group_message_is_stored_only_if_the_group_is_listened_to(
    home: Path,
) -> None:
    options = 'rooms = ["telegram:-100"]\n'
    async with open_gateway(home, options=options) as harness:
        assert (await in_room(harness, "just chatting", "666", is_addressed=False)).answer is None
        assert await count(harness, "messages") == 0
    model = ScriptedModel()
    async with open_gateway(home, model, options=options + "[room]\nlisten = true\n") as harness:
        heard = await in_room(
            harness, "The ferry is at nine", "666", is_addressed=False, message_id="a"
        )
        assert heard.answer is None
        assert (await in_room(harness, "When is it?", "7", message_id="b")).text == "ok"
        sent = model.sent()
        assert "The ferry is at nine" in sent
        assert "from Person 666 #" in sent
        assert "from Person 7 #" in sent


async def test_a_room_of_the_owner_shows_his_history_and_serves_only_him(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("My passport is in the blue drawer.")
        await harness.services.people.set_owner(
            [Account(platform="telegram", user_id="42")], [ROOM]
        )
        assert "blue drawer" in (await in_room(harness, "/recall passport", "42")).text
        assert (await in_room(harness, "/recall passport", "7")).answer is None
        assert (await in_room(harness, "/recall passport", "666")).answer is None


async def test_commands_that_read_answer_while_a_turn_works_and_those_that_write_wait(
    home: Path,
) -> None:
    model = ScriptedModel(says("slow answer"))
    model.gate = asyncio.Event()
    async with open_gateway(home, model) as harness, asyncio.TaskGroup() as tasks:
        turn = tasks.create_task(harness.say("think hard"))
        await model.began.wait()
        assert "just write to me" in (await harness.say("/help")).text.lower()
        title = tasks.create_task(harness.say("/title Ferries"))
        await harness.say("/whoami")
        assert not title.done()
        model.gate.set()
        assert (await turn).text == "slow answer"
        assert "Ferries" in (await title).text


async def test_messages_during_a_turn_are_answered_together_in_order(home: Path) -> None:
    model = ScriptedModel(says("one"), says("two and three"))
    model.gate = asyncio.Event()
    async with open_gateway(home, model) as harness, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(harness.say("first"))
        await model.began.wait()
        later: list[tuple[int, KeptReply]] = []
        for text in ("second", "third"):
            reply = KeptReply()
            number = await harness.admission.admit(harness.inbound(text), reply)
            assert number is not None
            later.append((number, reply))
        model.gate.set()
        await first
        await asyncio.gather(*(harness.admission.serve(number) for number, _ in later))
        assert later[0][1].is_abandoned
        assert later[1][1].text == "two and three"
        assert len(model.requests) == 2
        sent = model.sent()
        assert sent.index("second") < sent.index("third")


async def test_stop_stores_the_partial_answer_marked_as_stopped(home: Path) -> None:
    model = ScriptedModel(says("The beginning of a long story"), says("as you wish"))
    model.gate = asyncio.Event()
    async with open_gateway(home, model) as harness, asyncio.TaskGroup() as tasks:
        assert (await harness.say("/stop")).text == "There is nothing to stop."
        turn = tasks.create_task(harness.say("tell me a story"))
        await model.began.wait()
        assert (await harness.say("/stop")).answer is None, (
            "the answer itself says that it was stopped"
        )
        assert (await turn).text == "The beginning of a long story\n\n[stopped]"
        model.gate = None
        await harness.say("shorter please")
        roles = [
            (turn["role"], turn["content"][-1].get("text")) for turn in model.requests[1].messages
        ]
        assert roles[1] == ("assistant", "The beginning of a long story\n\n[stopped]")


async def test_mark_of_a_stopped_answer_is_in_the_language_of_the_person(home: Path) -> None:
    model = ScriptedModel(says("Es war einmal"))
    model.gate = asyncio.Event()
    async with open_gateway(home, model) as harness, asyncio.TaskGroup() as tasks:
        turn = tasks.create_task(harness.say("Erzähl mir was", language="de"))
        await model.began.wait()
        assert (await harness.say("/stop", language="de")).answer is None
        assert (await turn).text == "Es war einmal\n\n[angehalten]"


async def test_an_answer_that_does_not_arrive_stays_in_the_outbox_and_is_delivered_later(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel(says("important"))) as harness:
        reply = KeptReply(DeliveryError("gone away", retry_after_s=0.0))
        number = await harness.admission.admit(harness.inbound("hello"), reply)
        assert number is not None
        await harness.admission.serve(number)
        assert reply.answer is None
        due = await harness.services.outbox.list_due(
            harness.services.clock.now() + timedelta(hours=1)
        )
        assert [outbox_item.answer.text for outbox_item in due if outbox_item.answer] == [
            "important"
        ]


async def test_permanently_refused_answer_is_counted_as_dead(home: Path) -> None:
    async with open_gateway(home) as harness:
        reply = KeptReply(DeliveryError("blocked", is_permanent=True))
        number = await harness.admission.admit(harness.inbound("hello"), reply)
        assert number is not None
        await harness.admission.serve(number)
        assert (await harness.services.outbox.count_items()).dead == 1


async def test_a_turn_that_fails_is_apologised_for_with_an_incident(home: Path) -> None:
    def broken(request: object) -> object:
        raise RuntimeError("a defect")

    async with open_gateway(home, ScriptedModel(broken, says("fine"))) as harness:  # type: ignore[arg-type]
        reply = await harness.say("hello")
        assert "Something went wrong on my side. Your message is saved." in reply.text
        assert "RuntimeError" not in reply.text
        assert await harness.services.inbox.list_waiting() == []
        assert (await harness.say("again")).text == "fine"


async def test_a_restart_answers_what_was_accepted_once_and_into_the_message_that_was_begun(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        reply = KeptReply()
        inbound = harness.inbound("are you there?")
        number = await harness.admission.admit(inbound, reply)
        assert number is not None
        outbox_item = await hold(
            harness.delivery.outbox, harness.delivery.draft_outbox_item(inbound)
        )
        await harness.services.outbox.set_posted(outbox_item.key, ["31"])
    async with open_gateway(home, ScriptedModel(says("yes"))) as harness:
        platform = harness.platforms["telegram"]
        for number in await harness.admission.resume(platform, timedelta(days=1)):
            await harness.admission.serve(number)
        [(address, late)] = platform.replies
        assert address == inbound.address
        assert late.text == "yes"
        assert late.receipt is not None
        assert list(late.receipt.message_ids) == ["31"]
        assert await harness.admission.resume(platform, timedelta(days=1)) == []


async def test_an_interaction_lost_in_a_restart_is_answered_by_another_way(home: Path) -> None:
    async with open_gateway(home) as harness:
        inbound = harness.inbound("/memory", is_interaction=True)
        await harness.admission.admit(inbound, KeptReply())
    async with open_gateway(home) as harness:
        platform = harness.platforms["telegram"]
        (number,) = await harness.admission.resume(platform, timedelta(days=1))
        await harness.admission.serve(number)
        ((address, reply),) = platform.replies
        assert address == inbound.address
        assert reply.answer is not None
        assert reply.answer.is_private


async def test_undeliverable_private_answer_is_mentioned_with_the_next_answer(home: Path) -> None:
    class ClosedReply(KeptReply):
        async def finish(self, answer: Answer) -> None:
            raise DeliveryError("closed", is_permanent=True)

    async with open_gateway(home) as harness:
        number = await harness.admission.admit(
            harness.inbound("/memory", is_interaction=True), ClosedReply()
        )
        assert number is not None
        await harness.admission.serve(number)
        other = await harness.say("/help", "7", is_interaction=True)
        assert texts.UNSEEN not in other.text
        shown = await harness.say("/help", is_interaction=True)
        assert texts.UNSEEN in shown.text
        assert shown.answer is not None
        assert shown.answer.is_private
        assert texts.UNSEEN not in (await harness.say("/help")).text
        assert (await harness.services.outbox.count_items()).dead == 0


async def test_undeliverable_private_answer_is_mentioned_once_if_the_next_answer_must_wait(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        refusal = DeliveryError("closed", is_permanent=True)
        inbound = harness.inbound("/memory", is_interaction=True)
        number = await harness.admission.admit(inbound, KeptReply(refusal))
        assert number is not None
        await harness.admission.serve(number)
        older_item = OutboxItem(
            key="older",
            kind="reminder",
            address=inbound.address,
            answer=Answer(text="call Bob"),
            next_at=harness.services.clock.now() + timedelta(hours=1),
        )
        await harness.services.outbox.put(older_item)
        waiting = KeptReply()
        number = await harness.admission.admit(harness.inbound("/help"), waiting)
        assert number is not None
        await harness.admission.serve(number)
        assert waiting.answer is None
        await harness.services.outbox.mark_done("older")
        (item,) = await harness.services.outbox.list_due(harness.services.clock.now())
        assert item.answer is not None
        await harness.services.outbox.mark_done(item.key)
        shown = [item.answer.text, (await harness.say("/help", "42", is_interaction=True)).text]
        assert sum(texts.UNSEEN in text for text in shown) == 1


async def test_private_answer_that_was_mentioned_is_done_in_one_transaction_with_that_answer(
    home: Path,
) -> None:
    """After a kill between the two, it would be mentioned twice."""
    async with open_gateway(home) as harness:
        refusal = DeliveryError("closed", is_permanent=True)
        inbound = harness.inbound("/memory", is_interaction=True)
        number = await harness.admission.admit(inbound, KeptReply(refusal))
        assert number is not None
        await harness.admission.serve(number)
        await harness.services.database.execute(
            "CREATE TRIGGER refuse BEFORE UPDATE OF done_at ON outbox WHEN OLD.dead_at NOT NULL "
            "BEGIN SELECT RAISE(ABORT, 'the process was killed'); END"
        )
        assert texts.UNSEEN in (await harness.say("/help", is_interaction=True)).text
        done = "SELECT COUNT(*) AS count FROM outbox WHERE done_at IS NOT NULL"
        row = await harness.services.database.fetch_one(done, {})
        assert row is not None
        assert row["count"] == 0
        await harness.services.database.execute("DROP TRIGGER refuse")
        await harness.delivery._repeat_failed_writes()
        row = await harness.services.database.fetch_one(done, {})
        assert row is not None
        assert row["count"] == 2


async def test_a_button_runs_its_command_for_its_person_in_its_place_only(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("The ferry leaves at nine.")
        await harness.say("/new")
        await harness.say("Something else entirely.")
        shown = await harness.say("/sessions")
        assert shown.answer is not None
        [button] = shown.answer.buttons
        assert button.id
        assert len(button.id) <= 64
        here = harness.inbound("")
        stranger = await harness.say(
            button.id, "7", kind="action", command=None, address=here.address, scope=here.scope
        )
        assert stranger.text == "This button is for someone else, so I did nothing."
        elsewhere = await harness.say(button.id, "7", kind="action", command=None)
        assert elsewhere.text == "This button has expired."
        pressed = await harness.say(button.id, kind="action", command=None)
        assert "Continuing conversation" in pressed.text
        assert (
            await harness.say("no-such-button", kind="action", command=None)
        ).text == "This button has expired."


async def test_edit_and_deletion_on_the_platform_change_the_stored_message(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("The ferry leaves at nine.", message_id="5")
        await harness.say("/title Travel")
        await harness.say("The ferry leaves at ten.", message_id="5", kind="edit")
        found = (await harness.say("/recall ferry")).text
        assert "at ten" in found.replace("**", "")
        assert "at nine" not in found.replace("**", "")
        await harness.say("", message_id="5", kind="delete")
        assert "at ten" not in (await harness.say("/recall ferry")).text.replace("**", "")


async def test_commands_are_stored_but_shown_neither_to_the_model_nor_by_recall(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("/memory add zanzibar is an island")
        await harness.say("hello there")
        assert "zanzibar is an island" in "".join(
            block["text"] for block in model.requests[0].system
        )
        assert "/memory" not in model.sent()
        # Recall shows the note, but not the command with which it was added.
        recalled = await harness.say("/recall zanzibar")
        assert recalled.text == "📝 **From your notes**\n\n> zanzibar is an island"
        kept = await harness.services.database.read(
            lambda connection: [
                row[0]
                for row in connection.execute("SELECT text FROM messages WHERE kind = 'command'")
            ]
        )
        assert "/memory add zanzibar is an island" in kept


async def test_an_unknown_command_gets_the_nearest_names(home: Path) -> None:
    async with open_gateway(home) as harness:
        assert "Did you mean /recall" in (await harness.say("/recal ferry")).text


async def test_no_command_or_tool_shows_a_person_what_another_person_wrote(home: Path) -> None:
    """The wrong person (telegram:7) tries every reading path there is for what the owner said."""
    secret = "The vault code is quetzal."
    model = ScriptedModel(says("Kept."))
    async with open_gateway(home, model) as harness:
        await harness.say(secret)
        await harness.say("/title Vault quetzal")
        await harness.say("/memory add The vault is green quetzal")
        await harness.say("/remind tomorrow at 9 open the quetzal vault")
        session = await harness.services.conversations.find_open(harness.inbound("x").address)
        assert session is not None
        number = session.id
        model.script = [
            calls(
                ("session_search", {"query": "quetzal"}),
                ("session_search", {"query": "vault code"}),
                ("session_search", {}),
                ("session_search", {"session_id": number}),
                ("session_search", {"session_id": number, "around_message_id": 1}),
                ("memory", {"target": "memory", "action": "list"}),
                ("reminder", {"action": "list"}),
            ),
            says("nothing"),
        ]
        replies = [
            await harness.say(text, "7")
            for text in (
                "What is the vault code?",
                "/recall vault",
                "/recall",
                "/sessions",
                "/sessions vault",
                f"/sessions {number}",
                "/memory",
                "/cron",
                "/cron remove 1",
                "/cron pause 1",
                "/title",
                "/status",
                "/usage",
            )
        ]
        assert not any("quetzal" in reply.text.lower() for reply in replies)
        seen = "".join(str(request) for request in model.requests[1:])
        assert "vault code is" not in seen
        assert "green quetzal" not in seen
        assert "open the quetzal" not in seen
        nowhere = (await harness.say("/sessions 99999", "7")).text
        assert (await harness.say(f"/sessions {number}", "7")).text == nowhere.replace(
            "99999", str(number)
        )
        assert "quetzal" in (await harness.say("/recall vault")).text.lower(), (
            "the owner still finds it"
        )
        assert [job.text for job in await harness.services.jobs.list_active()] == [
            "open the quetzal vault"
        ]


async def test_recall_in_a_group_finds_messages_of_the_group_and_no_private_ones(
    home: Path,
) -> None:
    async with open_gateway(home, options='rooms = ["telegram:-100"]\n') as harness:
        await harness.say("In private: the present is a kayak.")
        await in_room(harness, "In public: the party is on Friday.", "42")
        assert "kayak" not in (await in_room(harness, "/recall private present", "42")).text
        assert "Friday" in (await in_room(harness, "/recall party", "666")).text
        assert "Friday" not in (await harness.say("/recall public party", "7")).text


async def test_database_failure_during_a_turn_is_answered_with_its_sentence(home: Path) -> None:
    def full(request: object) -> object:
        raise StoreError("The disk that holds state.db is full.")

    async with open_gateway(home, ScriptedModel(full)) as harness:  # type: ignore[arg-type]
        assert (await harness.say("hello")).text.startswith("The disk that holds state.db is full.")


async def test_person_is_told_once_that_the_store_is_locked_and_answered_afterwards(
    home: Path,
) -> None:
    async with open_gateway(home, lock_wait=LockWait(timeout_s=0.02)) as harness:
        other = sqlite3.connect(harness.services.database.path, isolation_level=None)
        platform = harness.platforms["telegram"]
        for _ in range(2):
            other.execute("BEGIN IMMEDIATE")
            inbounds = [
                harness.inbound("hello"),
                harness.inbound("again"),
                harness.inbound("who are you?", "666"),
            ]
            replies = [KeptReply() for _ in inbounds]
            for inbound, reply in zip(inbounds, replies, strict=True):
                with pytest.raises(StoreError):
                    await harness.admission.admit(inbound, reply)
            other.rollback()
            for inbound, reply in zip(inbounds[:2], replies, strict=False):
                number = await harness.admission.admit(inbound, reply)
                assert number is not None
                await harness.admission.serve(number)
                assert reply.text == "ok"
        other.close()
        told = [(address.chat_id, reply.text) for address, reply in platform.replies]
        assert [chat for chat, _ in told] == ["42", "42"], "once in each outage, and no stranger"
        assert all("I can't save messages right now" in text for _, text in told)


class Picky(KeptPlatform):
    """A platform that cannot reply where the chat has no id."""

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        int(address.chat_id)
        return super().reply(address, reply_to)


async def test_inbox_entry_that_cannot_be_read_becomes_a_dead_letter_at_the_start(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        await harness.say("hello")
        for inbound in (
            harness.inbound("torn"),
            harness.inbound("nowhere", address=Address(platform="telegram", chat_id="")),
            harness.inbound("fine"),
        ):
            await harness.admission.admit(inbound, KeptReply())
        await harness.services.database.execute(
            "UPDATE inbox SET inbound = '{' WHERE inbound LIKE '%torn%'"
        )
    async with open_gateway(home) as harness:
        inbox, platform = harness.services.inbox, Picky("telegram")
        for number in await harness.admission.resume(platform, timedelta(days=1)):
            await harness.admission.serve(number)
        assert [reply.text for _, reply in platform.replies] == ["ok"]
        assert await inbox.list_waiting() == []
        torn, nowhere = await inbox.list_dead_letters()
        assert torn[1:] == ("telegram", "it cannot be read: JSONDecodeError")
        assert nowhere[2] == "ValueError: invalid literal for int() with base 10: ''"
        [(place, told)] = await notices(harness)
        assert place == "telegram:42"
        assert "set it aside" in told, "the owner is told once"
        raws = "SELECT raw FROM raw_updates ORDER BY update_id DESC"
        found = await harness.services.database.fetch_all(raws)
        assert [("nowhere" in row["raw"], row["raw"] == "{") for row in found] == [
            (False, True),
            (True, False),
        ]


async def test_message_without_possible_answer_or_apology_becomes_a_dead_letter(home: Path) -> None:
    def broken(request: object) -> object:
        raise RuntimeError("a defect")

    async def gone(turn: Turn, answer: Answer | None, actions: Sequence[object] = ()) -> None:
        raise RuntimeError("another defect")

    async with open_gateway(home, ScriptedModel(broken, says("ok"))) as harness:  # type: ignore[arg-type]
        agent = harness.agent
        notify, agent.store_notice = agent.store_notice, gone  # type: ignore[method-assign]
        assert (await harness.say("hello")).answer is None
        agent.store_notice = notify  # type: ignore[method-assign]
        assert [error for *_, error in await harness.services.inbox.list_dead_letters()] == [
            "RuntimeError: another defect"
        ]
        assert await harness.services.inbox.list_waiting() == []
        assert (await harness.say("hello again")).text == "ok"


@pytest.mark.parametrize(
    "text",
    ["/", "/ ", "/recall \x00", "/recall " + '"' * 5000, "/title \ud800", "/cron add", "/remind"],
)
async def test_no_command_with_odd_arguments_makes_a_turn_fail(home: Path, text: str) -> None:
    async with open_gateway(home) as harness:
        reply = await harness.say(
            text, command=Command(name=text[1:].split(" ")[0], arguments=text.partition(" ")[2])
        )
        assert "Something went wrong" not in reply.text


async def test_a_scheduled_question_is_asked_only_while_who_planned_it_is_served(
    home: Path,
) -> None:
    model = ScriptedModel(says("News of the day."))
    cron = Address(platform="cron", chat_id="1")
    planned = {"address": cron, "sender": Sender(id="7", name="schedule"), "message_id": "1@2026"}
    async with open_gateway(home, model) as harness:
        reply = await harness.say("what is new?", "7", **planned)
        assert reply.text == "News of the day."
        session = await harness.services.conversations.find_open(cron)
        assert session is not None
        assert session.scope == Scope.account("telegram", "7")
        await harness.say("and now?", "7", **(planned | {"message_id": "1@2027"}))
        later = await harness.services.conversations.find_open(cron)
        assert later is not None
        assert later.id != session.id, "every run is a session of its own"
        gone = planned | {"sender": Sender(id="666", name="schedule"), "message_id": "2@2026"}
        assert (await harness.say("what is new?", "666", **gone)).answer is None
        assert await count(harness, "pairings") == 0


async def test_a_day_of_every_month_repeats_and_is_read_back(home: Path) -> None:
    async with open_gateway(home) as harness:
        done = await harness.say("/remind on the 1st of every month pay rent")
        assert "every month on the 1st at 09:00, next " in done.text
        [job] = await harness.services.jobs.list_active()
        (rule,) = job.schedule.recurrences
        assert rule.endswith("T090000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=1")
        assert job.text == "pay rent"
        asked = await harness.say("/remind tomorrow at 9 take pills daily")
        assert asked.text.startswith("Do you mean")
        assert await harness.services.jobs.list_active() == [job]


async def test_a_doubtful_time_is_asked_back_and_the_button_sets_it(home: Path) -> None:
    async with open_gateway(home) as harness:
        doubt = await harness.say("/remind tomorrow at 5 feed the cat")
        assert doubt.text.startswith("Do you mean")
        assert await harness.services.jobs.list_active() == []
        assert doubt.answer is not None
        [button] = doubt.answer.buttons
        done = await harness.say(button.id, kind="action", command=None)
        assert "feed the cat" in done.text
        [job] = await harness.services.jobs.list_active()
        assert job.text == "feed the cat"
