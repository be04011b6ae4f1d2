"""An incognito conversation: answered like others, and nothing of it on the disk."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.streaming import StreamedReply
from core.agent.offline import OfflineModel
from core.errors import DeliveryError, ModelError
from core.store.mailbox import OutboxItem
from core.types import Address, Answer, Scope, Usage
from tests.fixtures.delivery_record import hold
from tests.fixtures.fake_chat import FakeChat
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.stores import list_tables_with

pytestmark = pytest.mark.slow

BADGE = "🕶 _incognito_"
ROOM: dict[str, Any] = {
    "address": Address(platform="telegram", chat_id="-100"),
    "scope": Scope.group("telegram", "-100"),
    "is_direct": False,
}
LISTED = 'rooms = ["telegram:-100"]\n'


def on_disk(home: Path, words: str) -> list[str]:
    """The files under the home, and tables on a server, that hold these words."""
    files = [
        str(path)
        for path in home.rglob("*")
        if path.is_file() and words.encode() in path.read_bytes()
    ]
    return files + list_tables_with(home, words)


async def told(harness: GatewayHarness) -> list[Answer]:
    """What waits to be delivered."""
    due = await harness.services.outbox.list_due(harness.services.clock.now())
    return [outbox_item.answer for outbox_item in due if outbox_item.answer is not None]


async def test_incognito_conversation_leaves_no_word_on_disk(home: Path) -> None:
    script = [
        says("first"),
        calls(("session_search", {"query": "xylophone lessons"})),
        says("zanzibar it is"),
        says("second"),
    ]
    model = ScriptedModel(*script)
    async with open_gateway(home, model) as harness:
        await harness.say("an ordinary message")
        assert "in memory only" in (await harness.say("/incognito")).text
        assert (
            await harness.say("my xylophone is at Dr. Quetzal's")
        ).text == f"{BADGE}\n\nzanzibar it is"
        assert "xylophone" in str(model.requests[-1])
        assert (await harness.say("and the second kazoo")).text == f"{BADGE}\n\nsecond"
        assert "my xylophone" in str(model.requests[-1]), "it goes on from turn to turn"
        assert "ordinary" not in str(model.requests[-1].messages)
        await harness.say("/recall xylophone")
        await harness.say("/title Quetzal and zanzibar")
        for words in ("xylophone", "Quetzal", "zanzibar", "second kazoo"):
            assert on_disk(home, words) == []
        await harness.say("/incognito off")
        assert (await harness.say("an ordinary one again")).text == "ok"
        assert "ordinary message" in str(model.requests[-1]), "we are where we were before"
        assert "xylophone" not in str(model.requests[-1])
    for words in ("xylophone", "Quetzal", "zanzibar", "second kazoo"):
        assert on_disk(home, words) == []
    assert on_disk(home, "ordinary one again")


async def test_every_answer_and_streamed_text_in_an_incognito_chat_has_a_badge(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("/incognito on")
        reply = await harness.say("hello")
        assert all(frame.startswith(BADGE) for frame in (*reply.frames, reply.text))
        for command in (
            "/status",
            "/usage",
            "/help",
            "/recall hello",
            "/sessions",
            "/memory",
            "/title x",
            "/nonsense",
        ):
            assert (await harness.say(command)).text.startswith(BADGE), command
        assert not (await harness.say("/incognito off")).text.startswith("we")
        assert (await harness.say("hello")).text == "ok"


async def test_model_has_no_writing_tools_in_an_incognito_chat(home: Path) -> None:
    note = {"target": "memory", "action": "add", "content": "quetzal likes tea"}
    model = ScriptedModel(calls(("memory", note)), says("noted?"))
    async with open_gateway(home, model) as harness:
        await harness.say("/incognito")
        await harness.say("remember that quetzal likes tea")
        assert {tool["name"] for tool in model.requests[0].tools} == {
            "session_search",
            "read_document",
            "find_files",
            "skills_list",
            "skill_view",
        }
        assert "incognito" in model.requests[0].system[0]["text"]
        assert "incognito, so memory does nothing here" in str(model.requests[-1].messages)
        scopes = frozenset((Scope.account("telegram", "42"),))
        assert await harness.services.notebook.entries(scopes, "memory") == []
        assert await harness.services.facts.list_page(scopes) == []


@pytest.mark.parametrize(
    "command", ["/memory add x", "/remind tomorrow at 9 x", "/sessions 1", "/forget x"]
)
async def test_writing_commands_in_incognito_are_refused_with_how_to_turn_it_off(
    home: Path, command: str
) -> None:
    async with open_gateway(home) as harness:
        await harness.say("hello")
        await harness.say("/incognito")
        answer = (await harness.say(command)).text
        assert answer.startswith(BADGE)
        assert "`/incognito off`" in answer


async def test_incognito_chat_without_a_model_states_that_messages_are_not_saved(
    home: Path,
) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        await harness.say("/incognito")
        assert "so I don't save it" in (await harness.say("my quetzal is green")).text
        assert "so I don't save it" in (await harness.say("remember that my quetzal is green")).text
        assert "my quetzal is green" in (await harness.say("what colour is my quetzal?")).text
    assert on_disk(home, "quetzal") == []


async def test_new_command_turns_incognito_off(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/incognito")
        await harness.say("quetzal")
        assert "Incognito is off" in (await harness.say("/new")).text
        assert (await harness.say("The pelican is grey")).text == "ok"
        assert "The pelican is grey" in (await harness.say("/sessions")).text
    async with open_gateway(home) as harness:
        assert await told(harness) == [], "it was over before the restart"


async def test_restart_turns_incognito_off_and_the_person_is_told_once(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/incognito")
        await harness.say("quetzal")
        await harness.admission.admit(harness.inbound("the last words: quetzal"), KeptReply())
    assert on_disk(home, "quetzal") == []
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        [answer] = await told(harness)
        assert "ended our incognito conversation" in answer.text
        assert (
            await harness.admission.resume(harness.platforms["telegram"], timedelta(days=1)) == []
        )
        [outbox_item] = await harness.services.outbox.list_due(harness.services.clock.now())
        await harness.services.outbox.mark_done(outbox_item.key)
        assert (await harness.say("hello", message_id="900")).text == "ok"
        assert "quetzal" not in str(model.requests)
    async with open_gateway(home) as harness:
        assert await told(harness) == [], "once"


async def test_redelivered_message_of_an_incognito_chat_is_not_answered_again(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("/incognito")
        await harness.say("quetzal", message_id="900")
        assert (await harness.say("quetzal", message_id="900")).answer is None
        assert len(model.requests) == 1
    async with open_gateway(home, model) as harness:
        assert (await harness.say("quetzal", message_id="900")).answer is None


async def test_waiting_message_leaves_the_inbox_when_incognito_begins(home: Path) -> None:
    model = ScriptedModel()
    model.gate = asyncio.Event()
    async with open_gateway(home, model) as harness, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(harness.say("hello"))
        await model.began.wait()
        waiting = []
        for text in ("/incognito", "quetzal"):
            reply = KeptReply()
            number = await harness.admission.admit(harness.inbound(text), reply)
            assert number is not None
            waiting.append((asyncio.ensure_future(harness.admission.serve(number)), reply))
        assert "quetzal" in str(await harness.services.inbox.list_waiting())
        model.gate.set()
        await asyncio.wait([first, *(task for task, _ in waiting)])
        assert waiting[1][1].text == f"{BADGE}\n\nok"
        kept = await harness.services.database.read(
            lambda connection: connection.execute(
                "SELECT count(*) FROM messages WHERE text = 'quetzal'"
            ).fetchone()[0]
        )
        assert kept == 0
        while await harness.services.forgetting.maintain():
            pass
        assert on_disk(home, "quetzal") == []


async def test_incognito_answer_whose_last_edit_failed_is_delivered_completely(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/incognito")
        chat = FakeChat()
        reply, outbox_item = (
            StreamedReply(chat, first_words_s=0),
            harness.delivery.draft_outbox_item(harness.inbound("quetzal")),
        )
        harness.delivery.begin(outbox_item, reply)
        reply.show("It is in Zan")
        await chat.until_shown("It is in Zan")
        chat.refusals.append(DeliveryError("the connection broke"))
        assert await harness.delivery.deliver(outbox_item, reply, Answer(text="It is in Zanzibar."))
        assert chat.shown == ["It is in Zanzibar."]


@pytest.mark.parametrize(
    "failures",
    [[DeliveryError("the platform is away")] * 9, [DeliveryError("blocked", is_permanent=True)]],
)
async def test_an_answer_that_does_not_arrive_is_never_written_down(
    home: Path, failures: list[DeliveryError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.delivery.INCOGNITO_RETRY_DELAYS_S", (0.0, 0.0))
    async with open_gateway(home, ScriptedModel(says("zanzibar"))) as harness:
        await harness.say("/incognito")
        reply = KeptReply(*failures)
        number = await harness.admission.admit(harness.inbound("quetzal"), reply)
        assert number is not None
        await harness.admission.serve(number)
        assert reply.answer is None
        assert await told(harness) == []
        assert on_disk(home, "zanzibar") == []


async def test_reminder_is_delivered_during_an_incognito_conversation(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/incognito")
        address = harness.inbound("x").address
        outbox_item = OutboxItem(
            key="job:1", kind="reminder", address=address, answer=Answer(text="tea")
        )
        await hold(harness.delivery.outbox, outbox_item)
        await harness.services.outbox.put(replace(outbox_item, answer=Answer(text="tea")))
        reply = KeptReply(DeliveryError("away"))
        harness.delivery.begin(outbox_item, reply)
        assert not await harness.delivery.deliver(outbox_item, reply, Answer(text="tea"))
        assert await harness.services.outbox.find_next_due() is not None, "it is tried again"


async def test_failed_turn_in_an_incognito_chat_states_that_the_message_is_not_saved(
    home: Path,
) -> None:
    model = ScriptedModel(ModelError("no"))
    async with open_gateway(home, model) as harness:
        await harness.say("/incognito")
        assert "your message is not saved" in (await harness.say("quetzal")).text
        assert on_disk(home, "quetzal") == []


async def test_edit_and_deletion_apply_to_messages_of_an_incognito_chat(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("/incognito")
        await harness.say("the quetzal", message_id="905")
        await harness.say("the kiwi", message_id="906")
        said = replace(harness.inbound("the emu"), message_id="905", kind="edit")
        assert await harness.admission.admit(said, KeptReply()) is None
        gone = replace(harness.inbound(""), message_id="906", kind="delete")
        assert await harness.admission.admit(gone, KeptReply()) is None
        await harness.say("go on")
        sent = str(model.requests[-1].messages)
        assert "emu" in sent
        assert "quetzal" not in sent
        assert "kiwi" not in sent
        assert on_disk(home, "emu") == []


async def test_incognito_conversation_that_grows_too_long_goes_on_in_a_child(home: Path) -> None:
    model = ScriptedModel(says("ok"), says("ok"), says("ok", usage=Usage(input=7000, output=5)))
    async with open_gateway(home, model, options="[model]\nwindow_tokens = 8000\n") as harness:
        await harness.say("/incognito")
        for number in range(4):
            reply = await harness.say(f"line {number} " + "quetzal " * 300)
            assert reply.text.startswith(f"{BADGE}\n\nok")
        assert "only the summary remains" in reply.text
        assert "condensed" not in (await harness.say("and now?")).text
        sent = str(model.requests[-1].messages)
        assert "quetzal " * 300 in sent
        assert sent.count("quetzal " * 300) == 3, "lines 1 to 3"
        assert "## Done" in sent
    assert on_disk(home, "quetzal") == []


async def test_incognito_in_a_group_is_turned_on_and_off_by_the_owner_only(home: Path) -> None:
    async with open_gateway(home, options=LISTED) as harness:
        assert "only my owner" in (await harness.say("/incognito", "7", **ROOM)).text
        await harness.say("/incognito", "42", **ROOM)
        assert (await harness.say("quetzal", "7", **ROOM)).text.startswith(BADGE)
        for command in ("/incognito off", "/new"):
            assert "only my owner" in (await harness.say(command, "7", **ROOM)).text
        assert (await harness.say("hello", "7")).text == "ok", "elsewhere all is as always"
        await harness.say("/incognito off", "42", **ROOM)
        assert (await harness.say("hello", "7", **ROOM)).text == "ok"


async def test_incognito_message_is_not_found_in_another_chat(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/incognito")
        await harness.say("the quetzal is in the attic")
        elsewhere: dict[str, Any] = {
            "address": Address(platform="terminal", chat_id="local"),
            "scope": Scope.account("terminal", "local"),
        }
        sender = replace(harness.inbound("x").sender, id="local")
        assert (
            "attic" not in (await harness.say("/recall quetzal", sender=sender, **elsewhere)).text
        )
        assert "quetzal" not in (await harness.say("/sessions", sender=sender, **elsewhere)).text


async def test_incognito_conversation_continues_after_its_group_changes_its_chat_id(
    home: Path,
) -> None:
    there = ROOM | {
        "address": Address(platform="telegram", chat_id="-200"),
        "scope": Scope.group("telegram", "-200"),
    }
    model = ScriptedModel()
    async with open_gateway(home, model, LISTED) as harness:
        await harness.say("/incognito", **ROOM)
        await harness.say("the plan is xylophone", **ROOM)
        for _ in range(2):
            await harness.admission.migrate_group("telegram", "-100", "-200")
        reply = await harness.say("go on about the xylophone", **there)
        assert BADGE in reply.text
        assert "the plan is xylophone" in str(model.requests[-1].messages)
        assert on_disk(home, "xylophone") == []
        await harness.say("/incognito off", **there)
        assert BADGE not in (await harness.say("and now a trumpet", **there)).text
        assert on_disk(home, "trumpet")
        assert BADGE not in (await harness.say("at the old place", **ROOM)).text
        await harness.say("/incognito", **there)
        await harness.admission.migrate_group("telegram", "-200", "-300")
    async with open_gateway(home, model, LISTED) as harness:
        due = await harness.services.outbox.list_due(harness.services.clock.now())
        # The group was introduced at its first message.
        introductions = [item for item in due if item.key.startswith("introduction:")]
        assert [item.address.chat_id for item in introductions] == ["-100"]
        due = [item for item in due if item not in introductions]
        assert [outbox_item.address.chat_id for outbox_item in due] == ["-300"], (
            "told once, where the chat is now"
        )
