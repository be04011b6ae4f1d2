"""One person on several platforms: a code, a claim, a yes on both sides; and back at once."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.errors import Refused
from core.types import Account, Address, Answer, Scope, Sender
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel

pytestmark = pytest.mark.slow

MEMBER = Account(platform="telegram", user_id="7")
OTHER = Account(platform="discord", user_id="77")
OWNER = Account(platform="telegram", user_id="42")


def on_discord(user_id: str = "77", name: str = "Seven") -> dict[str, Any]:
    """A direct chat on Discord."""
    return {
        "address": Address(platform="discord", chat_id=f"dm{user_id}"),
        "scope": Scope.account("discord", user_id),
        "sender": Sender(id=user_id, name=name),
    }


async def code_of(harness: GatewayHarness, who: str = "7") -> str:
    return (await harness.say("/link", who)).text.split("`")[1]


async def notices(harness: GatewayHarness) -> list[tuple[Address, Answer]]:
    """What the outbox would bring by now; it is delivered."""
    found = []
    while due := await harness.services.outbox.list_due(harness.services.clock.now()):
        for outbox_item in due:
            assert outbox_item.answer is not None
            found.append((outbox_item.address, outbox_item.answer))
            await harness.services.outbox.mark_done(outbox_item.key)
    return found


async def link(harness: GatewayHarness, who: str = "7", **there: Any) -> KeptReply:
    """The whole way of two who are let in; returns the last answer, in the chat of `who`."""
    there = there or on_discord()
    await let_in(harness, Account(platform=there["address"].platform, user_id=there["sender"].id))
    await harness.say(f"/link {await code_of(harness, who)}", **there)
    await harness.say("yes", **there)
    await notices(harness)
    joined = await harness.say("yes", who)
    await notices(harness)
    return joined


async def test_accounts_are_linked_to_one_person_after_both_have_confirmed(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await let_in(harness, OTHER)
        await harness.say("the boathouse key is under the fern", "7")
        code = await code_of(harness)
        asked = await harness.say(f"/link {code.lower()[:4]} {code[4:]}", **on_discord())
        assert "**Person 7** (Telegram, id `7`)" in asked.text
        assert "it will see everything you said here" in asked.text
        assert asked.answer is not None
        assert asked.answer.is_private
        assert [button.label for button in asked.answer.buttons] == ["Yes"]
        assert "fern" not in (await harness.say("/recall fern", **on_discord())).frames, (
            "nothing is linked yet"
        )

        await harness.say(f"/link {code}", **on_discord())
        assert "I've asked **Person 7**" in (await harness.say("Yes!", **on_discord())).text
        [(address, question)] = await notices(harness)
        assert address == Address(platform="telegram", chat_id="7")
        assert "**Seven** (Discord, id `77`)" in question.text
        assert "it will see everything you said here" in question.text
        assert await harness.services.people.load_visible_scopes(
            Scope.account("discord", "77")
        ) == {Scope.account("discord", "77")}

        assert (
            "Your accounts are linked"
            in (await harness.say(question.buttons[0].id, "7", kind="action")).text
        )
        [(address, told)] = await notices(harness)
        assert address == Address(platform="discord", chat_id="dm77")
        assert "Your accounts are linked" in told.text
        assert "fern" in (await harness.say("/recall boathouse key", **on_discord())).text


async def asked_owner(harness: GatewayHarness) -> Answer:
    """A stranger's link to a member to which both have said yes; returns what the owner is
    asked."""
    await harness.say("hello")
    await harness.say(f"/link {await code_of(harness)}", **on_discord())
    await harness.say("yes", **on_discord())
    await notices(harness)
    assert "my owner must agree too" in (await harness.say("yes", "7")).text
    [(address, asked)] = await notices(harness)
    assert address == Address(platform="telegram", chat_id="42")
    return asked


async def test_a_link_that_lets_somebody_in_waits_for_the_owner(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("the boathouse key is under the fern", "7")
        asked = await asked_owner(harness)
        assert "**Person 7** (Telegram, id `7`)" in asked.text
        assert "**Seven** (Discord, id `77`)" in asked.text
        assert [button.label for button in asked.buttons] == ["Link them", "No"]
        assert asked.text.splitlines()[-1] in (await harness.say("/approve")).text, (
            "also where who waits is listed"
        )

        assert await harness.services.people.load_visible_scopes(
            Scope.account("discord", "77")
        ) == {Scope.account("discord", "77")}
        requests = len(model.requests)
        for text in ("hello", "/recall boathouse", "yes"):
            reply = await harness.say(text, **on_discord())
            assert reply.answer is None or "I don't know you yet" in reply.text
        assert len(model.requests) == requests
        for where in ({"who": "7"}, on_discord()):
            pressed = await harness.say(asked.buttons[0].id, kind="action", **where)
            assert pressed.answer is None or "expired" in pressed.text, (
                "the owner's word alone counts"
            )
        await notices(harness)

        assert "are linked" in (await harness.say(asked.buttons[0].id, kind="action")).text
        told = await notices(harness)
        assert {address.key for address, _ in told} == {"telegram:7", "discord:dm77"}
        assert all("Your accounts are linked" in answer.text for _, answer in told)
        assert "fern" in (await harness.say("/recall boathouse key", **on_discord())).text
        assert "wrong, already used" in (await harness.say(asked.buttons[1].id, kind="action")).text

        await harness.admission.answer_approved([harness.platforms["discord"]], timedelta(days=1))
        await harness.turns.drain(5)
        assert model.sent().endswith("hello"), (
            "what waited is answered, as for whoever shows a code"
        )
        assert (await harness.say("/approve")).text == "No one is waiting for approval."


async def test_owner_is_asked_about_a_link_in_the_owners_language(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("/language de")
        asked = await asked_owner(harness)
        assert "möchten als eine Person verbunden werden" in asked.text
        assert [button.label for button in asked.buttons] == ["Verbinden", "Nein"]


async def test_account_link_is_cancelled_by_the_owners_no(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        asked = await asked_owner(harness)
        assert "stay separate" in (await harness.say(asked.buttons[1].id, kind="action")).text
        told = await notices(harness)
        assert {address.key for address, _ in told} == {"telegram:7", "discord:dm77"}
        assert all("My owner declined this link" in answer.text for _, answer in told)
        assert "wrong, already used" in (await harness.say(asked.buttons[0].id, kind="action")).text
        assert await harness.services.people.load_visible_scopes(
            Scope.account("telegram", "7")
        ) == {Scope.account("telegram", "7")}
        assert (await harness.say("/approve")).text == "No one is waiting for approval."


async def test_approve_command_decides_an_account_link_like_its_buttons(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        for command, outcome in (("no {}", "stay separate"), ("{}", "are linked")):
            code = (await asked_owner(harness)).text.split("`/approve ")[1].split("`")[0]
            assert (
                "Only my owner" in (await harness.say(f"/approve {command.format(code)}", "7")).text
            )
            assert outcome in (await harness.say(f"/approve {command.format(code.lower())}")).text
            await notices(harness)


async def test_linked_account_gets_access_and_loses_it_when_unlinked(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        assert "I don't know you yet" in (await harness.say("hello", **on_discord())).text
        await notices(harness)
        await harness.say((await asked_owner(harness)).buttons[0].id, kind="action")
        assert (await harness.say("hello", **on_discord())).text == "ok"
        assert "Separated" in (await harness.say("/unlink", **on_discord())).text
        refused = await harness.say("let me in", **on_discord())
        assert refused.answer is None or "I don't know you yet" in refused.text
        assert len(model.requests) == 2


async def test_link_command_of_a_stranger_stores_no_message(home: Path) -> None:
    async with open_gateway(home) as harness:
        code = await code_of(harness)
        await harness.say("/link WRONGONE", **on_discord())
        await harness.say(f"/link {code}", **on_discord())
        await harness.say("my diary begins here", **on_discord())

        def work(connection: sqlite3.Connection) -> tuple[int, int]:
            messages = connection.execute(
                "SELECT count(*) FROM messages WHERE sender_id = '77'"
            ).fetchone()[0]
            waiting = connection.execute("SELECT count(*) FROM inbox").fetchone()[0]
            return messages, waiting

        assert await harness.services.database.read(work) == (0, 0)


async def test_stranger_can_use_no_command_but_link(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("the fern is green", "7")
        for text in ("/recall fern", "/memory", "/sessions", "/link", "/unlink", "/status"):
            reply = await harness.say(text, **on_discord())
            assert reply.answer is None or "I don't know you yet" in reply.text
        assert (await harness.say("no-such-button", kind="action", **on_discord())).answer is None


async def test_stranger_links_an_account_with_the_name_of_the_command_in_their_language(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        code = await code_of(harness)
        reply = await harness.say(f"/verbinden {code}", **on_discord(), language="de")
        assert "**ja**" in reply.text


@pytest.mark.parametrize("answer", ["no", "who is that?"])
async def test_answer_other_than_yes_from_either_account_cancels_the_link(
    home: Path, answer: str
) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say(f"/link {await code_of(harness)}", **on_discord())
        await harness.say(answer, **on_discord())
        await harness.say("yes", **on_discord())
        assert all(
            "Discord" not in told.text or "let in" in told.text
            for _, told in await notices(harness)
        )

        await harness.say(f"/link {await code_of(harness)}", **on_discord())
        await harness.say("yes", **on_discord())
        assert len(await notices(harness)) == 1
        await harness.say(answer, "7")
        await harness.say("yes", "7")
        assert (
            len(await harness.services.people.load_visible_scopes(Scope.account("telegram", "7")))
            == 1
        )


async def test_link_code_can_be_used_once_and_by_one_account(home: Path) -> None:
    async with open_gateway(home) as harness:
        code = await code_of(harness)
        await harness.say(f"/link {code}", **on_discord())
        assert (
            "code is wrong, used"
            in (await harness.say(f"/link {code}", **on_discord("78", "Eight"))).text
        )
        assert "Is **Person 7**" in (await harness.say(f"/link {code}", **on_discord())).text, (
            "the same may ask again"
        )
        await link(harness)
        assert (
            "code is wrong, used"
            in (await harness.say(f"/link {code}", **on_discord("78", "Eight"))).text
        )


async def test_typed_confirmation_links_nothing(home: Path) -> None:
    async with open_gateway(home, options="") as harness:
        await harness.say(f"/link {await code_of(harness)}", **on_discord())
        (link_row,) = await harness.services.database.fetch_all("SELECT digest FROM links")
        typed = await harness.say(f"/link yes {link_row['digest']}", **on_discord())
        assert "There is no link to confirm" in typed.text
        assert await notices(harness) == []
        (link_row,) = await harness.services.database.fetch_all("SELECT confirmed_at FROM links")
        assert link_row["confirmed_at"] is None


async def test_link_confirmation_counts_only_from_the_two_accounts_and_in_their_order(
    home: Path,
) -> None:
    async with open_gateway(home, options="") as harness:
        await harness.say(f"/link {await code_of(harness)}", **on_discord())
        (link_row,) = await harness.services.database.fetch_all("SELECT digest FROM links")
        links, now = harness.services.links, harness.services.clock.now()
        outsider = Account(platform="discord", user_id="78")
        for account in (MEMBER, outsider):
            # The account that used the code goes first.
            with pytest.raises(Refused, match="There is no link to confirm"):
                await links.confirm(link_row["digest"], account, now)
        assert not (await links.confirm(link_row["digest"], OTHER, now)).is_joined
        with pytest.raises(Refused, match="There is no link to confirm"):
            await links.confirm(link_row["digest"], outsider, now)
        assert (
            len(await harness.services.people.load_visible_scopes(Scope.account("telegram", "7")))
            == 1
        )


async def test_owners_account_cannot_be_linked_by_code(home: Path) -> None:
    async with open_gateway(home) as harness:
        assert "so it can't be linked here" in (await harness.say("/link")).text
        assert "so it can't be linked here" in (await harness.say("/unlink")).text
        code = await code_of(harness)
        assert "so it can't be linked here" in (await harness.say(f"/link {code}")).text
        await harness.say(f"/link {code}", **on_discord())
        await harness.say("yes", **on_discord())
        await notices(harness)
        await harness.services.people.set_owner([OWNER, OTHER], [])
        assert "so it can't be linked here" in (await harness.say("yes", "7")).text
        assert (
            len(await harness.services.people.load_visible_scopes(Scope.account("telegram", "7")))
            == 1
        )


async def test_link_and_unlink_are_refused_in_a_group(home: Path) -> None:
    room: dict[str, Any] = {
        "address": Address(platform="telegram", chat_id="-100"),
        "scope": Scope.group("telegram", "-100"),
        "is_direct": False,
    }
    async with open_gateway(home, options='rooms = ["telegram:-100"]\n') as harness:
        for text in ("/link", f"/link {await code_of(harness)}", "/unlink"):
            assert "only in a direct chat with me" in (await harness.say(text, "7", **room)).text


def kept_files(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file()]


async def test_link_code_is_stored_neither_in_the_shown_nor_in_the_typed_message(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        codes = [await code_of(harness)]
        await harness.say(f"/link {codes[0]}", **on_discord())
        await harness.say("yes", **on_discord())
        await notices(harness)
        await harness.say("yes", "7")
        await harness.say("/link SECRETXX", **on_discord())
        codes += [await code_of(harness), "SECRETXX"]
        exported = (await harness.say("/export", "7")).answer
        assert exported is not None
        files = [file.content.decode() for file in exported.files]
    files += [path.read_bytes().decode("latin-1") for path in kept_files(home)]
    assert [code for code in codes if any(code in text for text in files)] == []


async def test_unlink_gives_each_account_only_its_own_memory_at_once(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("the boathouse key is under the fern", "7")
        await harness.say("/memory add the fern is in the hall", "7")
        await link(harness)
        await harness.say("/new", **on_discord())
        await harness.say("where is the boathouse key?", **on_discord())
        assert "under the fern" in str(model.requests[-1])
        assert "the fern is in the hall" in str(model.requests[-1]), "the notes of both are shown"

        parted = await harness.say("/unlink", "7")
        assert "Separated. `telegram:7`" in parted.text
        await harness.say("and the boathouse?", **on_discord())
        assert "fern" not in str(model.requests[-1])
        assert "fern" not in (await harness.say("/memory", **on_discord())).text
        assert "under the fern" in (await harness.say("/recall boathouse", "7")).text
        assert "isn't linked to another" in (await harness.say("/unlink", "7")).text


async def let_in(harness: GatewayHarness, account: Account) -> None:
    pairing = await harness.services.people.request_pairing(
        account, "Seven", harness.services.clock.now()
    )
    if pairing is not None:
        await harness.services.people.approve(pairing.code, harness.services.clock.now())


async def test_plain_yes_confirms_only_the_question_that_was_already_delivered(home: Path) -> None:
    async with open_gateway(home) as harness:
        await let_in(harness, OTHER)
        code = await code_of(harness)
        await harness.say("The boat leaves Zanzibar at noon", "7")
        await harness.say("/forget Zanzibar", "7")
        await harness.say(f"/link {code}", **on_discord())
        await harness.say("yes", **on_discord())
        # The question about the link lies in the outbox: nobody has seen it, so it is not what is
        # meant.
        assert "Forgotten" in (await harness.say("yes", "7")).text
        [question] = [told for _, told in await notices(harness)]
        assert (
            len(await harness.services.people.load_visible_scopes(Scope.account("telegram", "7")))
            == 1
        )
        assert "Your accounts are linked" in (await harness.say("yes", "7")).text, (
            "it waits since it has arrived"
        )
        assert "Is **Seven**" in question.text


async def test_plain_yes_confirms_neither_of_two_open_questions(home: Path) -> None:
    async with open_gateway(home) as harness:
        code = await code_of(harness)
        await harness.say("The boat leaves Zanzibar at noon", "7")
        asked = await harness.say("/forget Zanzibar", "7")
        await harness.say(f"/link {code}", **on_discord())
        await harness.say("yes", **on_discord())
        await notices(harness)
        assert "what your yes is for" in (await harness.say("yes", "7")).text
        assert (
            len(await harness.services.people.load_visible_scopes(Scope.account("telegram", "7")))
            == 1
        )
        assert asked.answer is not None
        assert "expired" in (await harness.say(asked.answer.buttons[0].id, "7", kind="action")).text
        assert "boat" in (await harness.say("/recall Zanzibar", "7")).text


async def test_yes_before_the_link_question_arrives_does_not_answer_it(home: Path) -> None:
    async with open_gateway(home) as harness:
        await let_in(harness, OTHER)
        await harness.say(f"/link {await code_of(harness)}", **on_discord())
        await harness.say("yes", **on_discord())
        await harness.say("yes", "7")
        assert (
            len(await harness.services.people.load_visible_scopes(Scope.account("telegram", "7")))
            == 1
        )
        [(_, question)] = await notices(harness)
        assert (
            "Your accounts are linked"
            in (await harness.say(question.buttons[0].id, "7", kind="action")).text
        )


async def test_button_confirms_only_the_question_that_it_belongs_to(home: Path) -> None:
    async with open_gateway(home) as harness:
        code = await code_of(harness)
        await harness.say("The boat leaves Zanzibar at noon", "7")
        asked = await harness.say("/forget Zanzibar", "7")
        await harness.say(f"/link {code}", **on_discord())
        await harness.say("yes", **on_discord())
        assert asked.answer is not None
        assert (
            "Forgotten" in (await harness.say(asked.answer.buttons[0].id, "7", kind="action")).text
        )
        assert (
            len(await harness.services.people.load_visible_scopes(Scope.account("telegram", "7")))
            == 1
        )


async def test_a_third_account_is_named_and_may_be_parted_by_name(home: Path) -> None:
    async with open_gateway(home) as harness:
        await link(harness)
        asked = await harness.say(f"/link {await code_of(harness)}", **on_discord("78", "Eight"))
        assert "It is linked with **Seven** (Discord, id `77`)" in asked.text
        await link(harness, **on_discord("78", "Eight"))
        assert (
            len(await harness.services.people.load_visible_scopes(Scope.account("telegram", "7")))
            == 3
        )
        assert (
            "You have no account by that name"
            in (await harness.say("/unlink telegram:42", "7")).text
        )
        assert "Separated. `discord:78`" in (await harness.say("/unlink discord:78", "7")).text
        assert (
            len(await harness.services.people.load_visible_scopes(Scope.account("discord", "78")))
            == 1
        )
        assert (
            len(await harness.services.people.load_visible_scopes(Scope.account("telegram", "7")))
            == 2
        )


async def test_limit_of_notes_applies_to_the_notes_of_linked_accounts_together(home: Path) -> None:
    async with open_gateway(home, options="[memory]\nmemory_chars = 60\n") as harness:
        await harness.say("/memory add the first account notes forty letters", "7")
        await link(harness)
        assert (
            "limit"
            in (
                await harness.say("/memory add the second account wants as many", **on_discord())
            ).text
        )
        assert "forty letters" in (await harness.say("/memory", **on_discord())).text
