"""The tool `remember_this`: it keeps what somebody in the conversation has said, credited to who
has said it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.facts.claims import Claim, fact_from_claim
from core.store.facts.facts import Facts
from core.store.notes import Notes
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.types import Address, CarryOver, Completion, Message, Scope, Sender, Session, ToolContext
from tests.fixtures.clock import SteadyClock
from tests.fixtures.facts_memory import facts_memory
from tests.fixtures.gateway_harness import notices, open_gateway
from tests.fixtures.samples import ANA, NOON, message, session
from tests.fixtures.scripted_model import ScriptedModel, calls, says

ROOM = Scope.group("telegram", "-9")
BEN = Sender(id="7", name="Ben")


class _Talk:
    """A conversation, and the model that keeps something of it."""

    def __init__(self, database: Database, clock: SteadyClock) -> None:
        self.conversations = Conversations(database, clock)
        self.facts = Facts(database, clock)
        self.memory = facts_memory(database, clock)
        self.pending = Notes(database)

    async def begin(self, scope: Scope = ANA, **changes: Any) -> Session:
        address = Address(platform="telegram", chat_id=scope.key.rpartition(":")[2])
        return await self.conversations.create(
            session(**{"scope": scope, "address": address, **changes})
        )

    async def say(self, own: Session, *texts: str, **changes: Any) -> list[Message]:
        return await self.conversations.append([message(own.id, text, **changes) for text in texts])

    async def keep(self, own: Session, content: str, **arguments: Any) -> str:
        """Calls the tool as the model does, in the turn of whom spoke last: Ana."""
        tool = next(tool for tool in await self.memory.tools() if tool.name == "remember_this")
        context = ToolContext(
            session=own,
            scope=own.scope,
            scopes=frozenset((own.scope, ANA)),
            sender=Sender(id="42", name="Ana"),
            now=NOON,
        )
        return await tool.run({"content": content, **arguments}, context)

    async def known(self, *scopes: Scope) -> list[tuple[str, str | None, str | None, int | None]]:
        """Content, attribute, whose it is and from which message, the latest first."""
        found = await self.facts.list_page(frozenset(scopes or (ANA,)))
        return [
            (one.content, one.attribute, one.account.key if one.account else None, one.message_id)
            for one in found
        ]


@pytest.fixture
def talk(database: Database, clock: SteadyClock) -> _Talk:
    return _Talk(database, clock)


async def test_remember_this_stores_the_message_that_states_the_fact_as_its_source(
    talk: _Talk,
) -> None:
    own = await talk.begin()
    said, _ = await talk.say(own, "I was born on the third of May", "what is the weather like?")
    await talk.keep(own, "User's birthday is 3 May", attribute="birthday", value="3 May")
    assert await talk.known() == [
        ("User's birthday is 3 May", "me|birthday", "telegram:42", said.id)
    ]


@pytest.mark.parametrize(
    ("content", "arguments", "unsaid"),
    [
        ("User's birthday is 4 May", {"attribute": "birthday", "value": "4 May"}, "“4”"),
        ("User is a friend of Kessler", {"names": ["Kessler"]}, "“Kessler”"),
        ("User lives in Porto", {"attribute": "home", "value": "Monaco"}, "“Monaco”"),
        ("User is vegetarian", {"attribute": "diet", "value": "vegetarian"}, "“vegetarian”"),
        ("User enjoys long evenings with friends", {}, "no one here has typed that"),
    ],
)
async def test_fact_from_a_guess_or_a_tool_result_waits_for_the_persons_approval(
    talk: _Talk, content: str, arguments: dict[str, Any], unsaid: str
) -> None:
    own = await talk.begin()
    await talk.say(own, "I was born on the third of May, in Porto. What is on my list?")
    await talk.say(own, "Lunch with Kessler, 12:30", role="tool", sender=None)
    await talk.say(
        own,
        "You have lunch with Kessler. You seem to be vegetarian.",
        role="assistant",
        sender=None,
    )
    await talk.say(own, "thanks")
    said = await talk.keep(own, content, **arguments)
    assert said.startswith("Not kept yet: ")
    assert unsaid in said
    assert await talk.known() == []
    (waiting,) = await talk.pending.list_pending(frozenset((ANA,)))
    assert (waiting.target, waiting.operations[0].content) == ("fact", content)


async def test_fact_remembered_in_a_group_is_attributed_to_the_person_who_typed_it(
    talk: _Talk,
) -> None:
    room = await talk.begin(ROOM)
    (his,) = await talk.say(room, "I live in Faro", sender=BEN)
    await talk.say(room, "note where Ben lives, please")
    await talk.keep(room, "Ben lives in Faro", about="Ben", attribute="home", value="Faro")
    assert await talk.known(ROOM) == [
        ("Ben lives in Faro", "telegram:7|home", "telegram:7", his.id)
    ]
    assert "no one here has typed “Porto”" in await talk.keep(
        room, "Ben lives in Porto", about="Ben", attribute="home", value="Porto"
    )


async def test_statement_about_another_person_does_not_replace_the_speakers_own_fact(
    talk: _Talk,
) -> None:
    own = await talk.begin()
    await talk.say(own, "I live in Lisbon", "My sister moved to Porto")
    await talk.keep(own, "User lives in Lisbon", attribute="home", value="Lisbon")
    assert (
        await talk.keep(own, "User moved to Porto", attribute="home", value="Porto")
    ).startswith("Not kept yet")
    await talk.keep(own, "User's sister moved to Porto", attribute="home", value="Porto")
    assert [(content, attribute) for content, attribute, _, _ in await talk.known()] == [
        ("User's sister moved to Porto", "my sister|home"),
        ("User lives in Lisbon", "me|home"),
    ]
    assert all(fact.is_open for fact in await talk.facts.list_page(frozenset((ANA,))))


async def test_fact_typed_before_the_conversation_moved_belongs_to_the_scope_it_was_typed_in(
    talk: _Talk,
) -> None:
    there = Address(platform="discord", chat_id="5")
    discord = Scope.account("discord", "5")
    before = await talk.begin(discord, address=there)
    (said,) = await talk.say(before, "I live in Porto", sender=Sender(id="5", name="Ana"))
    here = await talk.begin(parent_id=before.id, carry_over=CarryOver(parent_from=said.id))
    tool = next(tool for tool in await talk.memory.tools() if tool.name == "remember_this")
    context = ToolContext(
        session=here,
        scope=ANA,
        scopes=frozenset((ANA, discord)),
        sender=Sender(id="42", name="Ana"),
        now=NOON,
    )
    await tool.run(
        {"content": "User lives in Porto", "attribute": "home", "value": "Porto"}, context
    )
    assert await talk.known() == []
    assert await talk.known(discord) == [("User lives in Porto", "me|home", "discord:5", said.id)]


async def test_birthday_written_in_two_ways_is_one_current_fact(talk: _Talk) -> None:
    own = await talk.begin()
    await talk.say(own, "I was born on the third of May", "so my birthday is May 3rd")
    await talk.keep(own, "User was born on the third of May", attribute="birthday", value="3 May")
    await talk.keep(own, "User's birthday is May 3rd", attribute="birthday", value="May 3rd")
    assert [fact.is_open for fact in await talk.facts.list_page(frozenset((ANA,)))] == [True, False]


async def test_remembered_fact_stores_the_date_since_which_it_is_true(talk: _Talk) -> None:
    own = await talk.begin()
    await talk.say(own, "I moved to Porto in May")
    await talk.keep(
        own, "User lives in Porto since May", attribute="home", value="Porto", since="2026-05"
    )
    (fact,) = await talk.facts.list_page(frozenset((ANA,)))
    assert (fact.valid_from is not None and fact.valid_from.month, fact.precision) == (
        4,
        "month",
    ), "April in UTC"


@pytest.mark.parametrize(
    ("text", "since", "year"),
    [
        ("I live in Porto", "2019", None),
        ("I moved to Porto two years ago", "2024", 2024),
        ("I live in Porto", "", None),
    ],
)
async def test_start_date_of_a_remembered_fact_is_stored_only_if_the_person_stated_it(
    talk: _Talk, text: str, since: str, year: int | None
) -> None:
    own = await talk.begin()
    await talk.say(own, text)
    await talk.keep(own, text.replace("I ", "User "), attribute="home", value="Porto", since=since)
    (fact,) = await talk.facts.list_page(frozenset((ANA,)))
    assert (fact.valid_from and fact.valid_from.year) == year


async def test_a_message_that_was_erased_meanwhile_teaches_nothing(talk: _Talk) -> None:
    own = await talk.begin()
    (said,) = await talk.say(own, "I live in Porto", external_id="e1")
    read = fact_from_claim(
        Claim(content="I live in Lisbon", kind="identity"), "rule", ANA, "telegram", said
    )
    known = await talk.facts.learn(read, "I live in Lisbon")
    assert known.id == 0, "the message says something else than what was read"
    await talk.conversations.amend(own.address, "e1", None)
    assert "no one here has typed" in await talk.keep(
        own, "User lives in Porto", attribute="home", value="Porto"
    )
    assert await talk.known() == []


async def test_gateway_tells_the_model_which_part_of_a_fact_nobody_typed_and_asks_approval(
    home: Path,
) -> None:
    def keep(content: str, **more: str) -> Completion:
        return calls(("remember_this", {"content": content, "attribute": "home", **more}))

    guess, fact = (
        keep("User lives in Monaco", value="Monaco"),
        keep("User lives in Porto", value="Porto"),
    )
    model = ScriptedModel(guess, says("I was wrong."), fact, says("Noted."))
    async with open_gateway(home, model) as harness:
        await harness.say("What do you know of me?")
        results = [block for entry in model.requests[1].messages for block in entry["content"]]
        refused = next(block for block in results if block["type"] == "tool_result")
        assert refused["content"] == (
            "Not kept yet: no one here has typed “Monaco”. It waits for the person to say yes (/memory pending). "
            "Do not try it again in other words."
        )
        own = frozenset((Scope.account("telegram", "42"),))
        assert await harness.services.facts.list_page(own) == []
        await notices(harness)
        assert "no one here has typed “Monaco”" in (await harness.say("/memory pending")).text
        assert (
            "Fact 1 is stored: “User lives in Monaco”"
            in (await harness.say("/memory approve 1")).text
        )
        assert "Nothing is waiting" in (await harness.say("/memory pending")).text
        await harness.say("I live in Porto, keep that in mind")
        assert [known.content for known in await harness.services.facts.list_page(own)][:1] == [
            "User lives in Porto"
        ]
