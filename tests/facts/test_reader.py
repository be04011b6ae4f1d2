"""Each message is read for facts once: after a crash, an outage of the model, an edit in the midst
of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from core.errors import ModelError
from core.facts.provider import FactsProvider
from core.store.facts.facts import DUE_MESSAGES, MAX_DUE_SESSIONS, Facts
from core.store.notes import Notes
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.types import Address, Completion, Message, Scope, Session
from tests.fixtures.clock import SteadyClock
from tests.fixtures.facts_memory import facts_memory
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.live_system import KEY, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.samples import ANA, CHAT, message, session
from tests.fixtures.scripted_model import ScriptedModel, says

SCOPES = frozenset((ANA,))


def told(*contents: str, place: str = "Porto") -> Completion:
    """What a model gives: each sentence as a fact of the first message."""
    return says(
        json.dumps(
            [{"message": 1, "content": one, "kind": "identity", "value": place} for one in contents]
        )
    )


class _House:
    """One life of the memory over a file."""

    def __init__(
        self, database: Database, clock: SteadyClock, model: ScriptedModel | None = None
    ) -> None:
        self.clock = clock
        self.conversations = Conversations(database, clock)
        self.facts = Facts(database, clock)
        self.memory: FactsProvider = facts_memory(database, clock, model)

    async def say(self, own: Session, *texts: str) -> list[Message]:
        return await self.conversations.append(
            [message(own.id, text, external_id=f"{own.id}.{text}") for text in texts]
        )

    async def rest(self) -> None:
        """Nothing is said for a while."""
        self.clock.advance(minutes=1)
        await self.memory.catch_up()

    async def known(self) -> list[str]:
        """The facts, the first learned first."""
        return [
            fact.content
            for fact in sorted(await self.facts.list_page(SCOPES), key=lambda fact: fact.id)
        ]


async def test_message_unread_by_a_killed_process_is_read_for_facts_at_the_next_start(
    database: Database, clock: SteadyClock
) -> None:
    first = _House(database, clock)
    own = await first.conversations.create(session())
    await first.say(own, "I moved to Porto in May")
    other = await first.conversations.create(
        session(address=Address(platform="telegram", chat_id="43"))
    )
    await first.say(other, "I like green tea")
    await first.conversations.end(other.id, "new", clock.now())
    second = _House(database, clock)
    await second.rest()
    assert await second.known() == ["I moved to Porto in May", "I like green tea"]
    await second.rest()
    await second.memory.on_session_end(own, ())
    assert [fact.mention_count for fact in await second.facts.list_page(SCOPES)] == [1, 1], (
        "twice is once"
    )


async def test_facts_found_by_rules_are_stored_at_once_when_there_is_no_model(
    database: Database, clock: SteadyClock
) -> None:
    house = _House(database, clock)
    own = await house.conversations.create(session())
    said = await house.say(own, "I live in Porto")
    await house.memory.sync_turn(own, said, "1")
    assert await house.known() == ["I live in Porto"]
    said = await house.say(own, "The ferry leaves at nine")
    await house.memory.sync_turn(own, said, "2")
    assert len((await house.facts.load_unread(own))[1]) == 1, "nothing is written for it"
    await house.rest()
    assert (await house.facts.load_unread(own))[1] == []


async def test_undone_fact_is_not_learned_again(database: Database, clock: SteadyClock) -> None:
    house = _House(database, clock)
    own = await house.conversations.create(session())
    await house.say(own, "I live in Porto")
    await house.rest()
    await house.facts.undo(1, SCOPES)
    await house.rest()
    assert await house.known() == []


async def test_old_scheduled_and_imported_conversations_are_left_unchanged(
    database: Database, clock: SteadyClock
) -> None:
    house = _House(database, clock)
    old = await house.conversations.create(session())
    await house.say(old, "I live in Porto")
    cron = await house.conversations.create(session(address=Address(platform="cron", chat_id="1")))
    await house.say(cron, "I live in Rome")
    taken = await house.conversations.create(
        session(address=Address(platform="telegram", chat_id="44"))
    )
    await house.say(taken, "I live in Oslo")
    await house.conversations.end(taken.id, "import", clock.now())
    clock.advance(days=4)
    new = await house.conversations.create(
        session(address=Address(platform="telegram", chat_id="45"))
    )
    await house.conversations.append([message(new.id, "I live in Faro", created_at=clock.now())])
    await house.rest()
    assert await house.known() == ["I live in Faro"]


async def test_while_the_model_is_out_of_reach_nothing_is_lost(
    database: Database, clock: SteadyClock
) -> None:
    gone, refused = ModelError("out of reach", is_retryable=True), ModelError("too odd", status=400)
    model = ScriptedModel(
        gone, told("I moved to Porto"), refused, told("I like green tea", place="green tea")
    )
    house = _House(database, clock, model)
    own = await house.conversations.create(session())
    await house.say(own, "I moved to Porto, you know")
    await house.rest()
    await house.rest()
    assert (len(model.requests), await house.known()) == (1, []), "it is left alone for a while"
    await house.rest()
    assert await house.known() == ["I moved to Porto"]
    await house.say(own, "My sister is Ana", "something that the server refuses to read")
    await house.memory.on_session_end(own, ())
    await house.say(own, "I like green tea, and nothing else")
    await house.memory.on_session_end(own, ())
    assert "refuses to read" not in model.sent(), "what is refused for good is not asked again"
    assert await house.known() == ["I moved to Porto", "My sister is Ana", "I like green tea"]


async def test_reworded_fact_waits_for_approval_except_in_a_group(
    database: Database, clock: SteadyClock
) -> None:
    meant = {
        "message": 1,
        "content": "I live in Porto",
        "kind": "identity",
        "value": "Porto",
        "quote": "live in Porto",
    }
    model = ScriptedModel(says(json.dumps([meant])), says(json.dumps([meant])))
    house = _House(database, clock, model)
    own = await house.conversations.create(session())
    await house.say(own, "I want to live in Porto one day")
    room = Scope.group("telegram", "-9")
    there = await house.conversations.create(
        session(scope=room, address=Address(platform="telegram", chat_id="-9"))
    )
    await house.say(there, "I want to live in Porto one day")
    await house.rest()
    (waiting,) = await Notes(database).list_pending(SCOPES | {room})
    assert (waiting.scope, waiting.target, waiting.operations[0].content) == (
        ANA,
        "fact",
        "I live in Porto",
    )
    assert waiting.reason == "no one here has typed that"
    assert await house.known() == []


async def test_a_model_reads_several_messages_together(
    database: Database, clock: SteadyClock
) -> None:
    model = ScriptedModel(told("I moved to Porto"), told("I like green tea", place="green tea"))
    house = _House(database, clock, model)
    own = await house.conversations.create(session())
    for number in range(DUE_MESSAGES):
        assert model.requests == []
        await house.say(own, f"I moved to Porto, into house {number}")
        await house.memory.sync_turn(own, (), str(number))
        await house.memory.catch_up()
    assert (len(model.requests), await house.known()) == (1, ["I moved to Porto"])
    await house.say(own, "I like green tea best")
    await house.memory.sync_turn(own, (), "last")
    await house.memory.catch_up()
    assert len(model.requests) == 1, "somebody may go on"
    await house.rest()
    assert await house.known() == ["I moved to Porto", "I like green tea"]


async def test_due_sessions_are_all_read_with_only_a_few_in_memory(
    database: Database, clock: SteadyClock
) -> None:
    house = _House(database, clock)
    for number in range(2 * MAX_DUE_SESSIONS + 1):
        own = await house.conversations.create(session())
        await house.say(own, f"The harbour has {number} piers")
    clock.advance(minutes=1)
    assert len(await house.facts.list_due_sessions()) == MAX_DUE_SESSIONS
    await house.memory.catch_up()
    assert await house.facts.list_due_sessions() == []


async def test_turns_that_end_together_are_read_once_each(
    database: Database, clock: SteadyClock
) -> None:
    model = ScriptedModel(told("I moved to Porto"), told("My flat is in Porto"))
    house = _House(database, clock, model)
    own = await house.conversations.create(session())
    await house.say(own, "I moved to Porto, into a flat")
    async with asyncio.TaskGroup() as tasks:
        for _ in range(3):
            tasks.create_task(house.memory.on_session_end(own, ()))
    assert (len(model.requests), await house.known()) == (1, ["I moved to Porto"])


@pytest.mark.parametrize("text", ["I moved to Faro, you know", None])
async def test_facts_of_a_message_edited_while_it_is_read_come_from_its_new_text(
    database: Database, clock: SteadyClock, text: str | None
) -> None:
    model = ScriptedModel(told("I moved to Porto"), told("I moved to Faro", place="Faro"))
    house = _House(database, clock, model)
    own = await house.conversations.create(session())
    (said,) = await house.say(own, "I moved to Porto, you know")
    model.gate = asyncio.Event()
    reading = asyncio.create_task(house.memory.on_session_end(own, ()))
    await model.began.wait()
    assert await house.conversations.amend(CHAT, str(said.external_id), text)
    model.gate.set()
    await reading
    assert await house.known() == ([] if text is None else ["I moved to Faro"])
    assert len(model.requests) == (1 if text is None else 2)


async def test_two_processes_that_read_at_once_learn_once(
    database: Database, clock: SteadyClock
) -> None:
    one = _House(database, clock, ScriptedModel(told("I moved to Porto")))
    other = _House(database, clock, ScriptedModel(told("User moved to Porto")))
    own = await one.conversations.create(session())
    await one.say(own, "I moved to Porto, you know")
    await asyncio.gather(one.memory.on_session_end(own, ()), other.rest())
    assert len(await one.known()) == 1


async def test_edited_message_is_read_again_for_facts(
    database: Database, clock: SteadyClock
) -> None:
    house = _House(database, clock)
    own = await house.conversations.create(session())
    said, _ = await house.say(own, "I live in Porto", "I like green tea")
    await house.rest()
    await house.conversations.amend(CHAT, str(said.external_id), "I live in Faro")
    assert await house.known() == ["I like green tea"]
    await house.rest()
    assert await house.known() == ["I like green tea", "I live in Faro"]


async def test_edited_message_about_a_replaced_fact_does_not_make_that_fact_current_again(
    database: Database, clock: SteadyClock
) -> None:
    house = _House(database, clock)
    own = await house.conversations.create(session())
    (said,) = await house.say(own, "I live in Lisbon")
    clock.advance(minutes=1)
    (later,) = await house.conversations.append(
        [message(own.id, "I live in Porto", external_id="later", created_at=clock.now())]
    )
    await house.rest()
    await house.conversations.amend(CHAT, str(said.external_id), "I live in Braga")
    await house.rest()
    found = await house.facts.list_page(SCOPES)
    assert [(fact.value, fact.is_open) for fact in found] == [("porto", True), ("braga", False)]
    assert found[0].message_id == later.id


async def test_overheard_messages_are_read_for_facts_when_the_conversation_ends(home: Path) -> None:
    room = Scope.group("telegram", "-9")
    async with open_gateway(
        home, OfflineModel("Europe/Lisbon"), "[room]\nlisten = true\n"
    ) as harness:
        there = {
            "address": Address(platform="telegram", chat_id="-9"),
            "scope": room,
            "is_direct": False,
        }
        await harness.say("I live in Faro", "7", is_addressed=False, **there)
        await harness.say("/new", "42", **there)
        await asyncio.gather(*harness.memory._tasks)
        facts = await harness.services.facts.list_page(frozenset((room,)))
        assert [(fact.content, fact.speaker) for fact in facts] == [("I live in Faro", "Person 7")]


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_process_killed_before_storing_its_facts_stores_them_once_after_a_restart(
    home: Path,
) -> None:
    never = asyncio.Event()
    is_killed = False

    def brain(body: dict[str, object]) -> ModelReply | str:
        if "durable facts" not in json.dumps(body):
            return "Noted."
        return ModelReply.say(told("I moved to Porto").text, hold=None if is_killed else never)

    async with LiveSystem.open(home, MessagesApi(brain, key=KEY)) as town:
        await town.start()
        await town.types("I moved to Porto, you know")
        await town.types("/new")
        await town.until(
            lambda: any("durable facts" in json.dumps(body) for body in town.model.requests)
        )
        assert any("Noted." in line for line in town.printed), "the answer was given"
        await town.kill()
        assert town.query("SELECT COUNT(*) FROM facts") == [(0,)]
        is_killed = True
        await town.start()
        await town.until(lambda: town.query("SELECT content FROM facts") == [("I moved to Porto",)])
        assert await town.stop() == 0
        assert town.query("SELECT content, mention_count FROM facts") == [("I moved to Porto", 1)]
