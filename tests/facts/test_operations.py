"""What a helper model may do with the facts that are held: add, replace, end, repeat."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.models.claude import Claude
from core.store.facts.facts import Facts
from core.store.facts.rows import Fact
from core.store.notes import Notes
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.types import Address, Scope, Sender, Session
from tests.fixtures.clock import SteadyClock
from tests.fixtures.facts_memory import facts_memory
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.samples import ANA, message, session
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow

SCOPES = frozenset((ANA,))
Operation = dict[str, Any]


class _Talk:
    """A conversation whose messages a scripted helper reads, one batch per message."""

    def __init__(self, database: Database, clock: SteadyClock, *answers: object) -> None:
        self.clock = clock
        self.model = ScriptedModel(*(says(json.dumps(answer)) for answer in answers))
        self.conversations = Conversations(database, clock)
        self.facts = Facts(database, clock)
        self.notes = Notes(database)
        self.memory = facts_memory(database, clock, self.model)
        self.session: Session | None = None

    async def say(self, *texts: str, **changes: Any) -> None:
        if self.session is None:
            self.session = await self.conversations.create(session())
        await self.conversations.append(
            [
                message(self.session.id, text, created_at=self.clock.now(), **changes)
                for text in texts
            ]
        )
        self.clock.advance(days=1)
        await self.memory.on_session_end(self.session, ())

    async def list_facts(self) -> list[Fact]:
        return sorted(await self.facts.list_page(SCOPES), key=lambda fact: fact.id)

    async def list_states(self) -> list[tuple[str, bool, int | None]]:
        return [(fact.content, fact.is_open, fact.closed_by) for fact in await self.list_facts()]


def operation(content: str, op: str = "add", **fields: Any) -> Operation:
    return {"op": op, "message": 1, "content": content, "kind": "identity", "quote": "", **fields}


async def test_replacing_a_fact_without_attribute_closes_it_and_links_both(
    database: Database, clock: SteadyClock
) -> None:
    talk = _Talk(
        database,
        clock,
        [operation("choir is on Wednesdays at 7")],
        [operation("choir practice is Mondays at 8 from now on", "replace", fact=1)],
    )
    await talk.say("choir is on Wednesdays at 7")
    await talk.say("choir practice got shifted, it's Mondays at 8 from now on")
    assert await talk.list_states() == [
        ("choir is on Wednesdays at 7", False, 2),
        ("choir practice is Mondays at 8 from now on", True, None),
    ]
    held, read = talk.model.requests[-1].messages[-1]["content"]
    assert '"fact": 1, "content": "choir is on Wednesdays at 7"' in held["text"]
    assert '"message": 1' in read["text"]
    assert "Wednesdays" not in talk.model.sent(0).split('"message"')[0], "nothing was held yet"


async def test_fact_is_closed_by_the_message_that_states_its_end(
    database: Database, clock: SteadyClock
) -> None:
    talk = _Talk(
        database,
        clock,
        [operation("I work at Siemens", attribute="work", value="Siemens")],
        [operation("I quit my job at Siemens", "end", fact=1)],
    )
    await talk.say("I work at Siemens, did I mention that?")
    await talk.say("I quit my job at Siemens yesterday")
    old, new = await talk.list_facts()
    assert (old.is_open, old.closed_by, old.valid_to) == (False, new.id, new.created_at)
    assert (new.attribute, new.value) == ("me|work", "i quit my job at siemens")


async def test_repeated_fact_increases_the_mention_count_and_keeps_its_first_wording(
    database: Database, clock: SteadyClock
) -> None:
    talk = _Talk(
        database,
        clock,
        [operation("I like green tea")],
        [operation("green tea is what I like", "same", fact=1)],
    )
    await talk.say("I like green tea")
    await talk.say("as I said, green tea is what I like")
    (fact,) = await talk.list_facts()
    assert (fact.content, fact.mention_count) == ("I like green tea", 2)


async def test_correction_takes_its_words_from_the_fact_and_its_figure_from_the_message(
    database: Database, clock: SteadyClock
) -> None:
    talk = _Talk(
        database,
        clock,
        [operation("my flight lands at 16:40")],
        [operation("my flight lands at 18:40", "replace", fact=1)],
        [operation("my flight lands at 21:15", "replace", fact=2)],
    )
    await talk.say("my flight lands at 16:40")
    await talk.say("oops I misread that, 18:40")
    await talk.say("oops I misread that again, the board is broken")
    assert await talk.list_states() == [
        ("my flight lands at 16:40", False, 2),
        ("my flight lands at 18:40", True, None),
    ]


async def test_correction_in_the_same_batch_takes_its_words_from_the_message_before(
    database: Database, clock: SteadyClock
) -> None:
    talk = _Talk(database, clock, [operation("my flight lands at 18:40", message=2)])
    await talk.say("my flight lands at 16:40", "oops I misread that, 18:40")
    assert await talk.list_states() == [("my flight lands at 18:40", True, None)]


async def test_change_of_someone_else_only_adds_a_fact(
    database: Database, clock: SteadyClock
) -> None:
    talk = _Talk(
        database,
        clock,
        [operation("I work at Siemens", attribute="work", value="Siemens")],
        [
            operation(
                "my cousin Ray works at Airbus",
                "replace",
                fact=1,
                about="Ray",
                attribute="work",
                value="Airbus",
            )
        ],
    )
    await talk.say("I work at Siemens")
    await talk.say("my cousin Ray works at Airbus now")
    states = await talk.list_states()
    assert ("I work at Siemens", True, None) in states
    assert ("my cousin Ray works at Airbus", True, None) in states


async def test_fact_that_begins_later_leaves_the_present_one_open(
    database: Database, clock: SteadyClock
) -> None:
    talk = _Talk(
        database,
        clock,
        [operation("I work at Siemens", attribute="work", value="Siemens")],
        [
            operation(
                "from 1 April I'll be at the library",
                "replace",
                fact=1,
                attribute="work",
                value="the library",
                since=f"{clock.now().year + 1}-04-01",
            )
        ],
    )
    await talk.say("I work at Siemens")
    await talk.say("from 1 April I'll be at the library")
    old, new = await talk.list_facts()
    assert (old.is_open, new.is_open, new.attribute) == (True, True, None)


@pytest.mark.parametrize("number", [7, 0, -1])
async def test_operation_on_an_unknown_fact_changes_nothing_else(
    database: Database, clock: SteadyClock, number: int
) -> None:
    talk = _Talk(
        database,
        clock,
        [operation("I like green tea")],
        [operation("I prefer black tea", "replace", fact=number)],
    )
    await talk.say("I like green tea")
    await talk.say("I prefer black tea these days")
    assert await talk.list_states() == [
        ("I like green tea", True, None),
        ("I prefer black tea", True, None),
    ]


async def test_pinned_or_unsupported_change_waits_for_approval(
    database: Database, clock: SteadyClock
) -> None:
    talk = _Talk(
        database,
        clock,
        [operation("I like green tea"), operation("I drive a Golf", message=2)],
        [
            operation("I prefer black tea", "replace", fact=1),
            operation("I drive a Volvo", "replace", fact=2, message=2, quote="the Golf is history"),
        ],
    )
    await talk.say("I like green tea", "I drive a Golf")
    await talk.facts.pin(1, SCOPES)
    await talk.say("I prefer black tea these days", "ah well, the Golf is history")
    assert [is_open for _, is_open, _ in await talk.list_states()] == [True, True]
    waiting = await talk.notes.list_pending(SCOPES)
    assert [
        (note.operations[0].action, note.operations[0].path, note.reason) for note in waiting
    ] == [
        ("replace", "f1", "fact 1 is pinned"),
        ("replace", "f2", "no one here has typed “Volvo”"),
    ]


async def test_fact_of_another_member_stays_in_a_group(
    database: Database, clock: SteadyClock
) -> None:
    room = Scope.group("telegram", "-9")
    talk = _Talk(
        database,
        clock,
        [operation("I like green tea")],
        [operation("I prefer black tea", "replace", fact=1)],
    )
    talk.session = await talk.conversations.create(
        session(scope=room, address=Address(platform="telegram", chat_id="-9"))
    )
    await talk.say("I like green tea")
    await talk.say("I prefer black tea these days", sender=Sender(id="77", name="Ben"))
    facts = await talk.facts.list_page(frozenset((room,)))
    assert {fact.content: fact.is_open for fact in facts} == {
        "I like green tea": True,
        "I prefer black tea": True,
    }
    assert "green tea" not in talk.model.sent(), "what others said isn't held on Ben"


async def test_operation_that_names_no_fact_cannot_be_read(
    database: Database, clock: SteadyClock
) -> None:
    talk = _Talk(database, clock, [operation("I moved to Porto", "replace")])
    await talk.say("I moved to Porto in May")
    (fact,) = await talk.list_facts()
    assert (fact.origin, fact.value) == ("rule", "porto")
    assert len(talk.model.requests) == 1


async def test_fact_operations_of_the_model_are_applied_through_the_real_api_client(
    database: Database, clock: SteadyClock
) -> None:
    answers = [
        json.dumps([operation("I drive a Golf")]),
        json.dumps([operation("I sold the Golf", "end", fact=1)]),
    ]
    async with MessagesApi(answers, key="sk-ant-test") as api:
        claude = Claude(api_key="sk-ant-test", base_url=api.url, clock=clock)
        talk = _Talk(database, clock)
        talk.memory = facts_memory(database, clock, claude)
        talk.memory.reader.model_name = "claude-haiku-5-5"
        try:
            await talk.say("I drive a Golf")
            await talk.say("I sold the Golf last week")
        finally:
            await claude.close()
    assert api.refusals == []
    assert await talk.list_states() == [
        ("I drive a Golf", False, 2),
        ("I sold the Golf", True, None),
    ]
