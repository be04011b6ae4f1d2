"""/people: who is served and why, and out again at once: in a chat, in a shell, and by the
settings."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.store.jobs import Job
from core.store.ownership.removal import removal_reason
from core.types import Account, Usage
from tests.fixtures.command_line import good, mneme
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.populated_home import room
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.gateway.commands.test_links import link, notices, on_discord

pytestmark = pytest.mark.slow

GROUP = room("7", "telegram:-100")
LISTED = 'rooms = ["telegram:-100"]\n'


async def done(harness: GatewayHarness, line: str) -> str:
    """What the owner is told, once all have noticed it."""
    answer = (await harness.say(f"/people {line}")).text
    await harness.turns.recheck_access()
    return answer


async def let_in(harness: GatewayHarness, who: str) -> None:
    code = (await harness.say("let me in", who)).text.split("`")[1]
    await harness.say(f"/approve {code}")
    await notices(harness)


def is_stranger(reply: KeptReply) -> bool:
    return "I don't know you" in reply.text


async def jobs(harness: GatewayHarness) -> list[Job]:
    found = await harness.services.database.fetch_all("SELECT id FROM jobs ORDER BY id")
    rows = [await harness.services.jobs.get(row["id"]) for row in found]
    return [row for row in rows if row is not None]


async def accepted(harness: GatewayHarness, count: int) -> None:
    """Returns once so many events wait or are being answered."""
    async with asyncio.timeout(5):
        while len(await harness.services.inbox.list_waiting()) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_people_command_lists_access_with_its_reason_and_date(home: Path) -> None:
    model = ScriptedModel(says("hi", usage=Usage(input=1_000, output=10)))
    prices = "prices = {scripted = {input = 3, output = 15, cache_write = 3, cache_read = 1}}"
    async with open_gateway(home, model, f"{LISTED}[usage]\n{prices}\n") as harness:
        local = harness.services.clock.now().astimezone(harness.services.zone)
        await harness.say("hello", "7")
        await link(harness)
        await let_in(harness, "8")
        harness.access._listed_people = frozenset({"telegram:7"})
        lines = (await harness.say("/people")).text.splitlines()
    owner, member, other, rooms = lines
    assert owner.startswith(
        "- **Person 42** (Telegram, id `42`) and **local** (Terminal, id `local`): yours: the terminal"
    )
    assert "**Person 7** (Telegram, id `7`)" in member
    assert "**Seven** (Discord, id `77`)" in member
    assert "listed under `[access]` in mneme.toml" in member
    assert f"; last seen {local.day} {local:%b %Y}, " in member
    assert member.endswith("1 model call this month ($0.0032)")
    assert other.startswith(
        f"- **Person 8** (Telegram, id `8`): approved by you in a chat on {local.day} {local:%B %Y}"
    )
    assert rooms.startswith("- members of `telegram:-100`, only in that group")


async def test_removed_person_loses_links_jobs_and_buttons_and_may_ask_again(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel(), LISTED) as harness:
        await harness.say("hello", "7")
        await harness.say("/remind tomorrow at 9 water the fern", "7")
        doubt = await harness.say("/remind tomorrow at 5 feed the cat", "7")
        await link(harness)
        await harness.say("/remind tomorrow at 9 water the fern", **on_discord())
        assert doubt.answer is not None
        said = await done(harness, "remove telegram:7")
        assert "**Person 7** (Telegram, id `7`)" in said
        assert "**Seven** (Discord, id `77`)" in said
        assert "mneme.toml still lists `telegram:7`" in said
        for where in ({"who": "7"}, on_discord()):
            assert is_stranger(await harness.say("/recall fern", **where))
        assert (await harness.say("hello", **GROUP)).answer is None, "nor in a listed room"
        assert [job.pause_reason for job in await jobs(harness)] == [
            removal_reason(),
            removal_reason(),
        ]
        shown = (await harness.say("/people")).text
        assert "**Person 7** (Telegram, id `7`): removed on" in shown
        assert shown.count("may ask again") == 2
        # Let in again, alone and with nothing of what was, but for what was planned.
        await notices(harness)
        code = (await harness.services.people.list_pending(harness.services.clock.now()))[0].code
        assert "can talk to me now" in (await harness.say(f"/approve {code}")).text
        assert (await harness.say("hello", "7")).text == "ok"
        assert (
            await harness.say(doubt.answer.buttons[0].id, "7", kind="action")
        ).text == "This button has expired."
        assert "[paused" in (await harness.say("/cron", "7")).text
        assert "[paused" not in (await harness.say("/cron resume 1", "7")).text


async def test_blocked_person_gets_no_answer_until_unblocked(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("hello")
        await harness.say("let me in", "666")
        [(_, notice)] = await notices(harness)
        assert "`/people block telegram:666`" in notice.text
        assert "blocked" in await done(harness, "block telegram:666")
        for line in ("let me in", "/link ABCDEFGH", "/start"):
            assert (await harness.say(line, "666")).answer is None
        assert await notices(harness) == []
        assert await harness.services.people.list_pending(harness.services.clock.now()) == []
        assert "(Telegram, id `666`): blocked on" in (await harness.say("/people")).text
        assert "may ask again" in await done(harness, "remove telegram:666")
        assert is_stranger(await harness.say("let me in", "666"))


async def test_revoked_account_loses_access_and_its_linked_ones_keep_it(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("hello", "7")
        await link(harness)
        await done(harness, "revoke discord:77")
        assert is_stranger(await harness.say("hello", **on_discord()))
        assert (await harness.say("hello", "7")).text == "ok"
        # The one that let both in takes the other along.
        await let_in(harness, "8")
        await link(harness, "8", **on_discord("78"))
        await harness.services.database.execute(
            "UPDATE accounts SET admitted_at = NULL WHERE user_id = '78'"
        )
        await done(harness, "revoke telegram:8")
        assert is_stranger(await harness.say("hello", "8"))
        assert (await harness.say("hello", **on_discord("78"))).answer is None, (
            "it had its code of this hour"
        )


async def test_an_account_of_the_owner_is_revoked_and_no_chat_gives_it_back(home: Path) -> None:
    options = '[general]\nzone = "Europe/Lisbon"\n[owner]\ntelegram = [42]\ndiscord = [9]\n'
    other = on_discord("9", "Mine")
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.services.people.set_owner(
            [Account(platform="telegram", user_id="42"), Account(platform="discord", user_id="9")],
            [],
        )
        await harness.say("the key is under the fern")
        said = (await harness.say("/people revoke telegram:42", **other)).text
        assert "mneme.toml still lists `telegram:42`, under `[owner]`" in said
        stranger = await harness.say("/people")
        assert is_stranger(stranger)
        assert "under the fern" not in (await harness.say("/recall fern", **other)).text
        assert (
            "can talk to me"
            in (await harness.say(f"/approve {stranger.text.split('`')[1]}", **other)).text
        )
        assert "Only my owner" in (await harness.say("/people")).text
    (home / "mneme.toml").write_text(options)
    listed = good(home, "people").splitlines()
    assert listed[0].startswith("• Mine (Discord, id 9)")
    assert listed[1].startswith("• Person 42 (Telegram, id 42): approved by you in a chat on")
    async with open_gateway(home, ScriptedModel()) as harness:
        assert "Only my owner" in (await harness.say("/people", message_id="900")).text


async def test_removal_needs_a_clear_name_and_the_owner(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(), LISTED) as harness:
        await let_in(harness, "8")
        for line in (
            "remove Ana",
            "remove",
            "block bob",
            "revoke",
            "remove telegram:",
            "revoke terminal:local",
        ):
            assert "Name the account" in (await harness.say(f"/people {line}")).text, line
        for line in ("remove telegram:42", "block telegram:42"):
            assert "That's you" in (await harness.say(f"/people {line}")).text
        assert "Use `/people remove`" in (await harness.say("/people admit telegram:8")).text
        for line in ("", "remove telegram:42", "remove telegram:8"):
            assert "Only my owner" in (await harness.say(f"/people {line}".strip(), "8")).text
        assert (await harness.say("hello", "8")).text == "ok"
        owner = room("42", "telegram:-100")
        assert "Ask me in a direct chat" in (await harness.say("/people", **owner)).text


async def test_accounts_are_suggested_to_the_owner_in_a_direct_chat_only(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(), LISTED) as harness:
        await harness.say("hello", "666")
        await let_in(harness, "8")
        complete = harness.admission.autocomplete
        asked = harness.inbound("/people remove ")
        assert await complete(asked, "person 8", "people") == {
            "telegram:8": "telegram:8 (Person 8)"
        }
        assert {*await complete(asked, "", "people")} == {"telegram:42", "telegram:7", "telegram:8"}
        assert await complete(harness.inbound("/people remove ", "8"), "", "people") == {}
        in_group = harness.inbound("/people remove ", **room("42", "telegram:-100"))
        assert await complete(in_group, "", "people") == {}


async def test_answer_under_way_is_not_delivered_to_a_removed_account(home: Path) -> None:
    model = ScriptedModel(says("the secret of the house"))
    model.gate = asyncio.Event()
    async with open_gateway(home, model) as harness, asyncio.TaskGroup() as tasks:
        turn = tasks.create_task(harness.say("tell me", "7"))
        await model.began.wait()
        waiting = tasks.create_task(harness.say("and more", "7"))
        await accepted(harness, 2)
        await done(harness, "remove telegram:7")
        for reply in (await turn, await waiting):
            assert reply.answer is None
            assert reply.is_abandoned
        model.gate.set()
        assert await notices(harness) == []
        assert await harness.services.inbox.list_waiting() == []
        stored = await harness.services.database.fetch_all(
            "SELECT text FROM messages WHERE text LIKE '%secret%'"
        )
        assert stored == []
        assert (await harness.say("hello")).text == "ok"


async def test_removing_one_member_of_a_group_leaves_the_answers_to_others_running(
    home: Path,
) -> None:
    model = ScriptedModel(says("one"), says("two"), says("three"))
    model.gate = asyncio.Event()
    async with open_gateway(home, model, LISTED) as harness, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(harness.say("tell me of the lagoon", **GROUP))
        await model.began.wait()
        mine = tasks.create_task(harness.say("and of the fern", **GROUP))
        other = tasks.create_task(harness.say("and of the ferry", **room("8", "telegram:-100")))
        await accepted(harness, 3)
        await done(harness, "remove telegram:7")
        assert (await first).answer is None
        assert (await mine).answer is None
        model.gate.set()
        assert (await other).text == "two"
        assert "ferry" in model.sent()
        assert "fern" not in model.sent()


async def test_a_tool_that_runs_for_a_removed_person_answers_nobody(home: Path) -> None:
    note = {"target": "memory", "action": "add", "content": "User likes tea"}
    model = ScriptedModel(calls(("memory", note)), says("noted"))
    async with open_gateway(home, model) as harness, asyncio.TaskGroup() as tasks:

        def hold(request: object) -> object:
            model.gate = asyncio.Event()
            model.began.clear()
            return says("noted")

        model.script[1] = hold  # type: ignore[assignment]
        turn = tasks.create_task(harness.say("I like tea", "7"))
        while len(model.requests) < 2:
            model.began.clear()
            await model.began.wait()
        await done(harness, "block telegram:7")
        assert (await turn).answer is None


async def test_a_removal_in_a_shell_counts_at_the_next_event(home: Path) -> None:
    model = ScriptedModel(says("the secret"))
    model.gate = asyncio.Event()
    async with open_gateway(home, model) as harness, asyncio.TaskGroup() as tasks:
        turn = tasks.create_task(harness.say("tell me", "7"))
        await model.began.wait()
        assert "access ended" in good(home, "people", "remove", "telegram:7")
        # Also where nobody has noticed it yet: what was read before is not kept.
        model.gate.set()
        assert (await turn).answer is None
        assert is_stranger(await harness.say("hello", "7"))
        assert mneme(home, "people", "remove", "Ana").returncode == 1


async def test_account_approved_in_the_shell_is_listed_and_removed_there(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        for who, more in (("8", ()), ("9", ("--owner",))):
            code = (await harness.say("let me in", who)).text.split("`")[1]
            good(home, "approve", code, *more)
        assert good(home, "people").count("approved in the shell on") == 2
        assert "Only my owner" in (await harness.say("/people remove telegram:9", "8")).text
        for who in ("8", "9"):
            assert "access ended" in good(home, "people", "revoke", f"telegram:{who}")
            assert is_stranger(await harness.say("/people", who))
        assert "at the command line" not in good(home, "people")


async def test_an_event_that_comes_in_while_somebody_is_removed_is_judged_again(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        accept = harness.services.inbox.accept

        async def removed_meanwhile(*given: object) -> int | None:
            number = await accept(*given)  # type: ignore[arg-type]
            await harness.services.removals.remove(
                [Account(platform="telegram", user_id="7")], harness.services.clock.now()
            )
            await harness.turns.recheck_access()
            return number

        harness.services.inbox.accept = removed_meanwhile  # type: ignore[method-assign, assignment]
        assert (await harness.say("hello", "7")).answer is None
