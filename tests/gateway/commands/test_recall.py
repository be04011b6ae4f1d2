"""/recall for people: cards, links, pages, buttons and what they do; what it may not show it does
not name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from core.types import Address, Answer, Button, Scope
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow

GROUP = Address(platform="telegram", chat_id="-1001234567890")
GUILD = Address(platform="discord", chat_id="77")
LINKS = {GROUP: "https://t.me/c/1234567890/", GUILD: "https://discord.com/channels/5/77/"}
ROOMS = 'rooms = ["telegram:-1001234567890", "discord:77"]'


def place(address: Address) -> dict[str, Any]:
    """What an Inbound says about a room."""
    scope = Scope.group(address.platform, address.chat_id)
    return {"address": address, "scope": scope, "is_direct": False, "link_base": LINKS[address]}


async def talk(harness: GatewayHarness, count: int, about: str = "ferry", **where: Any) -> None:
    """So many sessions of one turn each."""
    for number in range(count):
        await harness.say(f"The {about} number {number} leaves", **where)
        await harness.say("/new", **where)


def button(answer: Answer | None, label: str) -> Button:
    assert answer is not None
    return next(button for button in answer.buttons if button.label == label)


def labels(reply: KeptReply) -> list[str]:
    assert reply.answer is not None
    return [button.label for button in reply.answer.buttons]


async def press(
    harness: GatewayHarness, reply: KeptReply, label: str, who: str = "42", **where: Any
) -> KeptReply:
    return await harness.say(button(reply.answer, label).id, who, kind="action", **where)


async def test_recall_card_shows_text_time_and_place_and_has_buttons_for_next_steps(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel(says("It sails from the north quay."))) as harness:
        await harness.say("When does the *night* ferry leave?")
        await harness.say("/title Trip to Porto")
        await harness.say("/new")
        reply = await harness.say("/recall night ferry")
        head, quoted = reply.text.splitlines()
        assert head.startswith("**1. Trip to Porto** · ")
        assert head.endswith(" · telegram · session 1")
        assert quoted == "> When does the \\***night**\\* **ferry** leave?"
        assert labels(reply) == ["Around 1", "Continue 1"]
        around = await press(harness, reply, "Around 1")
        _, anchor, answer = around.text.splitlines()
        assert re.fullmatch(
            r"- \*\*\d\d:\d\d Person 42: When does the \\\*night\\\* ferry leave\?\*\*", anchor
        )
        assert re.fullmatch(r"- \d\d:\d\d Mneme: It sails from the north quay\.", answer)
        assert labels(around) == ["Continue it"]
        resumed = await press(harness, around, "Continue it")
        assert resumed.text == "Continuing conversation 1 “Trip to Porto”."
        again = await harness.say("/recall night ferry")
        assert labels(again) == ["Around 1"], "one is in that session already"


async def test_pages_of_recall_together_list_every_result_exactly_once(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await talk(harness, 12)
        reply, shown = await harness.say("/recall leaves before:2099"), []
        back: list[str] = []
        while True:
            shown += [
                line.rpartition(" ")[2] for line in reply.text.splitlines() if "session" in line
            ]
            if "More" not in labels(reply):
                break
            assert labels(reply) == [
                *(f"Around {n}" for n in "123"),
                *(f"Continue {n}" for n in "123"),
                *back,
                "More",
            ]
            reply, back = await press(harness, reply, "More"), ["Back"]
        assert sorted(map(int, shown)) == list(range(1, 13))
        assert "on page 4" in (await harness.say("/recall page:4 leaves")).text


async def test_recall_without_words_lists_recent_sessions_that_can_be_read_and_scrolled(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        for number in range(20):
            await harness.say(f"line {number}")
        await harness.say("/new")
        browsed = await harness.say("/recall")
        assert labels(browsed) == ["Read 1", "Continue 1"]
        read = await press(harness, browsed, "Read 1")
        assert "(10 more in between)" in read.text
        assert labels(read) == ["Later", "Continue it"]
        later = await press(harness, read, "Later")
        assert "line 9" in later.text
        assert "line 12" in later.text
        assert labels(later) == ["Earlier", "Later", "Continue it"]
        earlier = await press(harness, later, "Earlier")
        assert "line 5" in earlier.text
        assert "line 12" not in earlier.text


async def test_recall_answer_with_long_messages_stays_within_one_message_of_the_platform(
    home: Path,
) -> None:
    async with open_gateway(
        home, ScriptedModel(*(says("word " * 300) for _ in range(6)))
    ) as harness:
        for number in range(6):
            await harness.say(f"ferry {number} " + "long " * 700)
        for line in ("/recall ferry", "/recall around:6", "/recall in:1"):
            reply = await harness.say(line)
            assert 300 < len(reply.text) < 4_000, line


@pytest.mark.parametrize("address", LINKS, ids=["telegram", "discord"])
async def test_recall_in_a_group_links_its_messages_and_its_buttons_work_for_the_caller_only(
    home: Path, address: Address
) -> None:
    where = place(address)
    async with open_gateway(home, ScriptedModel(), ROOMS) as harness:
        await harness.say("The ferry leaves at nine", "42", message_id="1009", **where)
        asked = where | {"is_interaction": address == GUILD}
        reply = await harness.say("/recall ferry", "42", message_id="2001", **asked)
        assert f"[open]({where['link_base']}1009)" in reply.text
        assert reply.answer is not None
        assert reply.answer.is_private
        around = await press(harness, reply, "Around 1", "42", message_id="3001", **asked)
        assert f"[open]({where['link_base']}1009)" in around.text
        for who, elsewhere in (
            ("7", asked),
            ("42", asked | {"scope": Scope.group("telegram", "-5")}),
        ):
            pressed = await press(
                harness, reply, "Around 1", who, message_id=f"4{who}", **elsewhere
            )
            assert pressed.answer is None or pressed.text in (
                "This button has expired.",
                "This button is for someone else, so I did nothing.",
            )


async def test_recall_button_for_a_message_erased_since_reports_that_it_was_erased(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("my secret ferry", message_id="500")
        reply = await harness.say("/recall secret")
        await harness.admission.admit(
            harness.inbound("", kind="delete", message_id="500"), KeptReply()
        )
        around = await press(harness, reply, "Around 1")
        assert around.text == "There is no such message here. It may have been erased."
        assert around.text == (await harness.say("/recall around:123456")).text, (
            "as what never existed"
        )
        assert around.text == (await harness.say("/recall around:1", "7")).text, (
            "as what is somebody else's"
        )
        assert labels(around) == []


async def test_recall_switches_are_read_before_or_after_the_search_words(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await talk(harness, 6)
        plain = await harness.say("/recall ferry leaves")
        for line in (
            "--summary ferry leaves",
            "ferry leaves —summary",
            "–SUMMARY ferry leaves --summary",
        ):
            reply = await harness.say(f"/recall {line}")
            assert "needs a model" in reply.text, line
            assert plain.text.splitlines()[0].partition(" ·")[0] in reply.text
            assert button(reply.answer, "More").command.arguments == "--summary page:2 ferry leaves"
        both = await harness.say("/recall --expand ferry leaves --summary")
        assert (
            button(both.answer, "More").command.arguments
            == "--expand --summary page:2 ferry leaves"
        )
        for line in ('"--summary" ferry', "ferry --summary leaves", "ferry--summary"):
            assert "needs a model" not in (await harness.say(f"/recall {line}")).text, line


async def test_recall_in_the_terminal_finds_messages_from_other_platforms(home: Path) -> None:
    local = {
        "address": Address(platform="terminal", chat_id="local"),
        "scope": Scope.account("terminal", "local"),
    }
    async with open_gateway(home, ScriptedModel()) as harness:
        await talk(harness, 2)
        reply = await harness.say("/recall ferry", "local", **local)
        first, second = reply.text.split("\n\n")
        head, said = first.splitlines()
        assert head.startswith("**1. The ferry number 1 leaves** · ")
        assert head.endswith(" · telegram · session 2")
        assert said == "> The **ferry** number 1 leaves"
        assert second.startswith("**2. ")
        assert labels(reply) == ["Around 1", "Around 2", "Continue 1", "Continue 2"]


async def test_help_of_recall_explains_every_filter(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        lines = (await harness.say("/help recall")).text.splitlines()
        assert lines[0] == "`/recall [query]`: Find earlier messages."
        assert "- `from:` who said it: a name, me, or you (the assistant)" in lines
        assert "- `role:` said by people, the assistant, or tools (user, assistant, tool)" in lines
        assert lines[-4].startswith("- `--summary`: sum up the conversations")
        assert lines[-3].startswith("- `--deep`: let the model add searches")
        assert lines[-2].startswith("- `--expand`: the same as --deep")
        assert lines[-1].startswith("- `--rerank`: the same as --deep")
        assert "`/recall [query]`: Find" in (await harness.say("/help all")).text


async def test_recall_with_overlong_arguments_offers_no_next_page_button(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await talk(harness, 6)
        reply = await harness.say("/recall ferry OR " + "x" * 2_000)
        assert "session" in reply.text
        assert "More" not in labels(reply)
