"""What waits for a yes: one way for every command, once, for who was asked, where he was asked, for
ten minutes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from core.agent.offline import OfflineModel
from core.menus.command_specs import CommandSpec
from core.store.actions import Actions, build_question
from core.store.sqlite.database import Database
from core.types import Account, Address, Answer, Attachment, Command, Origin, Scope
from gateway.commands.registry import CommandContext, CommandRegistry, is_yes
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.samples import ANA, CHAT, inbound
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.fixtures.tables import each_row

pytestmark = pytest.mark.slow

ROOM = Scope.group("telegram", "-100")
IN_ROOM = {
    "address": Address(platform="telegram", chat_id="-100"),
    "scope": ROOM,
    "is_direct": False,
}


class Bomb:
    """A family with one command that asks before it goes off."""

    def __init__(self, name: str = "bomb") -> None:
        self.name = name
        self.specs: Sequence[CommandSpec] = (
            CommandSpec(name=name, description="Blow up", changes=".*"),
        )
        self.blown: list[str] = []
        self.error: Exception | None = None

    async def run(self, command: Command, caller: CommandContext) -> Answer:
        if not command.arguments.startswith("now "):
            return Answer(
                text="Sure?",
                confirm_command=Command(name=self.name, arguments=f"now {command.arguments}"),
            )
        if self.error is not None:
            raise self.error
        self.blown.append(command.arguments)
        return Answer(text="Boom.")


def armed(harness: GatewayHarness) -> Bomb:
    bomb = Bomb()
    harness.commands._groups["bomb"] = bomb
    harness.commands._specs["bomb"] = bomb.specs[0]
    return bomb


async def test_yes_runs_the_command_that_waits_for_confirmation_exactly_once(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        bomb = armed(harness)
        asked = await harness.say("/bomb 7")
        assert asked.answer is not None
        assert [button.label for button in asked.answer.buttons] == ["Yes"]
        assert (await harness.say("Yes!")).text == "Boom."
        assert bomb.blown == ["now 7"]
        assert model.requests == []
        assert (await harness.say("yes")).text == "ok", (
            "nothing waits any more: it is a message like others"
        )
        assert bomb.blown == ["now 7"]


@pytest.mark.parametrize("other", ["no", "yes please do not", "/whoami", "/title Trip"])
async def test_message_other_than_yes_cancels_the_confirmation_and_is_handled_normally(
    home: Path, other: str
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        bomb = armed(harness)
        asked = await harness.say("/bomb 7")
        assert asked.answer is not None
        assert (await harness.say(other)).answer is not None
        assert len(model.requests) == (0 if other.startswith("/") else 1)
        await harness.say("yes")
        pressed = await harness.say(asked.answer.buttons[0].id, kind="action")
        assert "expired" in pressed.text
        assert bomb.blown == []


async def test_confirmation_button_runs_the_waiting_command_once_for_its_person_only(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        bomb = armed(harness)
        asked = await harness.say("/bomb 7")
        assert asked.answer is not None
        press = asked.answer.buttons[0].id
        assert asked.answer.buttons[0].command == Command(name="yes"), (
            "what it does is told to no platform"
        )
        here = Address(platform="telegram", chat_id="42")
        stranger = await harness.say(press, "7", kind="action", address=here)
        assert "someone else" in stranger.text
        assert (await harness.say(press, kind="action")).text == "Boom."
        assert "expired" in (await harness.say(press, kind="action")).text
        assert bomb.blown == ["now 7"]


@pytest.mark.parametrize("origin", ["forwarded", "via_bot"])
@pytest.mark.parametrize("text", ["yes", "/yes", "/bomb now 7"])
async def test_forwarded_text_confirms_nothing_and_runs_no_command(
    home: Path, origin: Origin, text: str
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        bomb = armed(harness)
        await harness.say("/bomb 7")
        said = await harness.say(text, origin=origin)
        assert bomb.blown == []
        assert len(model.requests) == (said.answer is not None) == (origin == "forwarded")


async def test_pressing_an_unrelated_button_cancels_the_waiting_confirmation(home: Path) -> None:
    async with open_gateway(home) as harness:
        bomb = armed(harness)
        await harness.say("Porto is where we go.")
        await harness.say("/new")
        found = await harness.say("/recall Porto")
        assert found.answer is not None
        await harness.say("/bomb 7")
        assert "Porto" in (await harness.say(found.answer.buttons[0].id, kind="action")).text
        assert (await harness.say("yes")).text == "ok"
        assert bomb.blown == []


async def test_yes_in_a_group_counts_only_from_the_account_that_gave_the_command(
    home: Path,
) -> None:
    async with open_gateway(home, options='rooms = ["telegram:-100"]\n') as harness:
        bomb = armed(harness)
        await harness.say("/bomb 7", "42", **IN_ROOM)
        assert (await harness.say("yes", "7", **IN_ROOM)).text == "ok"
        assert (await harness.say("yes", "42")).text == "ok", "he was asked in the room"
        assert bomb.blown == []
        assert (await harness.say("yes", "42", **IN_ROOM)).text == "Boom."


async def test_a_question_waits_ten_minutes_and_survives_a_restart(
    database: Database, clock: SteadyClock
) -> None:
    command = Command(name="bomb", arguments="now 7")
    ana = Account(platform="telegram", user_id="42")
    await Actions(database, clock).add([build_question(command, ana, ANA, CHAT, "1", clock.now())])
    second = CommandRegistry((), Actions(database, clock), clock)
    yes = inbound("2", text="yes")
    assert await second.take_confirmed_command(yes) == command
    assert await second.take_confirmed_command(yes) == command, (
        "the same message again, after a crash"
    )
    assert await second.take_confirmed_command(replace(yes, message_id="3")) is None
    await second.actions.add([build_question(command, ana, ANA, CHAT, "1", clock.now())])
    clock.advance(minutes=10)
    assert await second.take_confirmed_command(replace(yes, message_id="4")) is None


async def test_second_confirmation_question_replaces_the_first(home: Path) -> None:
    async with open_gateway(home) as harness:
        bomb = armed(harness)
        first = await harness.say("/bomb 1")
        assert first.answer is not None
        await harness.say("/bomb 2")
        assert "expired" in (await harness.say(first.answer.buttons[0].id, kind="action")).text
        await harness.say("/bomb 3")
        assert (await harness.say("/yes")).text == "Boom."
        assert bomb.blown == ["now 3"]
        assert "There's nothing to confirm" in (await harness.say("/yes")).text


async def test_failure_of_a_confirmed_command_is_reported_to_the_person(home: Path) -> None:
    async with open_gateway(home) as harness:
        armed(harness).error = RuntimeError("wet powder")
        await harness.say("/bomb 7")
        assert "went wrong" in (await harness.say("yes")).text


@each_row(
    "text",
    [
        "yes",
        "Yes.",
        " YES!! ",
        "y",
        "ja",
        "sim",
        "Oui",
        "sí",
        "SI",
        "да",
        "はい。",
        "はい、お願いします。",
        "好的，谢谢",
        "네, 부탁해요",
        "Да, пожалуйста",
        "是",
        "예",
        "evet, lütfen",
        "ouais",
        "نعم",
        "yes 👍",
        "yes please",
        "Yes, do that.",
        "sí, claro",
    ],
)
def test_yes_in_its_usual_spellings_is_read_as_a_confirmation(text: str) -> None:
    assert is_yes(inbound(text=text))


@each_row(
    "text",
    ["", "no", "yes but not the second", "yes?no", "yesterday", "nein", "не", "👍", "y" * 50],
)
def test_message_with_more_than_a_yes_is_not_a_confirmation(text: str) -> None:
    assert not is_yes(inbound(text=text))
    assert not is_yes(inbound(text="yes", attachments=(Attachment(kind="photo", name="a.jpg"),)))
    assert not is_yes(inbound(text="yes", command=Command(name="yes", arguments="or no")))


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "Yes!",
        "ok",
        "OK.",
        "ok thanks",
        "👍",
        "ja",
        "sí",
        "да",
        "好",
        "d'accord",
        "オーケー",
        "tamam",
    ],
)
async def test_a_yes_to_a_suggested_time_sets_the_reminder(home: Path, text: str) -> None:
    async with open_gateway(home) as harness:
        asked = await harness.say("/remind tomorrow at 5 feed the cat")
        assert asked.text.startswith("Do you mean")
        assert "Reminder 1 is set" in (await harness.say(text)).text
        [job] = await harness.services.jobs.list_active()
        assert (job.text, job.next_at is not None and job.next_at.hour) == ("feed the cat", 17)


async def test_without_a_model_plain_words_set_the_likely_time_and_read_it_back(
    home: Path,
) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        answer = await harness.say("remind me tomorrow at 5 to feed the cat")
        assert "at 17:00 (Europe/Lisbon): “feed the cat”" in answer.text
        assert "Yes, it's set" in (await harness.say("ok")).text
        photo = (Attachment(kind="photo", name="cat.jpg"),)
        await harness.say("remind me tomorrow at 9:00 to feed the cat", attachments=photo)
        assert [job.text for job in await harness.services.jobs.list_active()] == [
            "feed the cat"
        ] * 2


@pytest.mark.parametrize("text", ["no", "ok then make it 6", "okay?no"])
async def test_answer_other_than_yes_sets_no_scheduled_question(home: Path, text: str) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/cron add tomorrow at 5 | what is open?")
        await harness.say(text)
        assert await harness.services.jobs.list_active() == []


async def test_ok_does_not_confirm_an_irreversible_command(home: Path) -> None:
    async with open_gateway(home) as harness:
        bomb = armed(harness)
        await harness.say("/bomb 7")
        await harness.say("ok")
        assert bomb.blown == []


async def test_yes_sent_before_the_question_or_edited_since_is_not_a_confirmation(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("I moved to Zanzibar in May.")
        replies = [KeptReply(), KeptReply()]
        numbers = [
            await harness.admission.admit(harness.inbound(text), reply)
            for text, reply in zip(("/forget Zanzibar", "yes"), replies, strict=True)
        ]
        for number in numbers:
            assert number is not None
            await harness.admission.serve(number)
        assert "Answer **yes**" in replies[0].text
        assert replies[1].text == "ok", "the model answers it"
        await harness.say("/forget Zanzibar")
        reworded = KeptReply()
        number = await harness.admission.admit(harness.inbound("yes", message_id="901"), reworded)
        assert number is not None
        await harness.admission.admit(
            harness.inbound("no, wait", kind="edit", message_id="901"), KeptReply()
        )
        await harness.admission.serve(number)
        assert reworded.text == "ok"
        assert "I moved to" in (await harness.say("/recall Zanzibar")).text


@pytest.mark.parametrize("kind", ["message", "action"])
async def test_redelivered_yes_neither_confirms_nor_cancels_a_later_question(
    home: Path, kind: Literal["message", "action"]
) -> None:
    async with open_gateway(home) as harness:
        bomb = armed(harness)
        said = harness.inbound("yes", kind=kind)
        for reply in (KeptReply(), KeptReply()):
            number = await harness.admission.admit(said, reply)
            if number is not None:
                await harness.admission.serve(number)
                await harness.say("/bomb 7")
        assert bomb.blown == []
        assert (await harness.say("yes")).text == "Boom."


@pytest.mark.parametrize("is_incognito", [False, True])
async def test_yes_that_could_answer_the_model_or_a_command_runs_no_command(
    home: Path, is_incognito: bool
) -> None:
    model = ScriptedModel(says("Shall I tell you about the boat?"))
    async with open_gateway(home, model) as harness:
        # Few commands may run in an incognito conversation. The bomb takes the place of one.
        bomb = Bomb("compress")
        harness.commands._groups["compress"] = bomb
        harness.commands._specs["compress"] = bomb.specs[0]
        if is_incognito:
            await harness.say("/incognito on")
        model.gate, model.began = asyncio.Event(), asyncio.Event()
        asking = asyncio.create_task(harness.say("What is new?"))
        await model.began.wait()
        # The command is accepted before the question is shown.
        command = await harness.admission.admit(harness.inbound("/compress 7"), KeptReply())
        assert command is not None
        model.gate.set()
        await asking
        model.gate = None
        await harness.admission.serve(command)
        assert "what your yes is for" in (await harness.say("yes")).text
        assert bomb.blown == []


async def test_yes_to_the_only_question_of_an_incognito_conversation_goes_to_the_model(
    home: Path,
) -> None:
    model = ScriptedModel(says("Shall I tell you about the boat?"), says("It is blue."))
    async with open_gateway(home, model) as harness:
        await harness.say("/incognito on")
        await harness.say("What is new?")
        assert (await harness.say("yes")).text.endswith("It is blue.")
        statement = "SELECT count(*) AS count FROM actions"
        row = await harness.services.database.fetch_one(statement)
        assert row is not None
        assert row["count"] == 0, "nothing of the conversation is stored"
