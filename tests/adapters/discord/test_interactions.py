"""Application commands and buttons end to end: quick, deferred, ephemeral, expired; nothing private
in public."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.discord.adapter import Discord
from core.errors import StoreError
from core.menus.command_specs import CommandSpec, Option
from core.ports import Reply
from core.store.mailbox import Inbox
from core.types import Answer, Button, Command, File, Inbound, Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.discord_setup import checked, listening, make
from tests.fixtures.fake_router import FakeRouter

pytestmark = pytest.mark.slow

EPHEMERAL, LOADING = 64, 128
NEVER_S = 3600.0
SPECS = (
    CommandSpec(name="help", description="What I can do"),
    CommandSpec(name="memory", description="What I keep in mind", is_private=True),
    CommandSpec(
        name="skill",
        description="Do it",
        options=(Option(name="name", description="Which", suggests="skills"),),
    ),
    CommandSpec(
        name="remind",
        description="Set a reminder",
        joiner=" | ",
        options=(
            Option(name="every", description="How often", choices=("day", "week")),
            Option(name="when", description="The time", is_required=True),
            Option(name="text", description="What to say", is_required=True),
        ),
    ),
)


@pytest.fixture
async def api(clock: SteadyClock) -> AsyncIterator[DiscordApi]:
    async with checked(DiscordApi(clock)) as double:
        yield double


@pytest.fixture
def adapter(api: DiscordApi, clock: SteadyClock, inbox: Inbox) -> Discord:
    """An adapter that defers no interaction by itself, however busy the machine is."""
    adapter = make(api, inbox, clock)
    adapter.events.defer_after_s = NEVER_S
    return adapter


@pytest.fixture
def quick_deferral(adapter: Discord) -> None:
    """The adapter defers an interaction that isn't answered at once."""
    adapter.events.defer_after_s = 0.05


@pytest.fixture
async def router(api: DiscordApi, adapter: Discord) -> AsyncIterator[FakeRouter]:
    """A desk that Discord events come to, commands registered."""
    router = FakeRouter()
    async with listening(adapter, router, api, SPECS):
        await api.wait_for(lambda: api.commands)
        yield router


def slow(api: DiscordApi, router: FakeRouter, *answers: Answer) -> None:
    """Answers come only once the interaction has been deferred."""

    async def handle(inbound: Inbound, reply: Reply) -> None:
        router.begin(inbound, reply)
        await api.wait_for(lambda: api.interactions.calls[inbound.message_id].callbacks)
        for answer in answers:
            await reply.finish(answer)

    router.handler = handle


async def test_quick_answer_to_a_discord_command_is_the_interaction_response_itself(
    api: DiscordApi, router: FakeRouter
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    router.answering("I *can* help")
    call = await api.slash(channel, ana, "help")
    await api.wait_for(lambda: router.served)
    assert [callback["type"] for callback in api.interactions.calls[call].callbacks] == [4]
    assert api.said(channel) == ["I *can* help"]
    inbound = router.seen[0]
    assert inbound.command == Command(name="help")
    assert (inbound.kind, inbound.text, inbound.message_id) == ("message", "/help", call)
    assert inbound.scope == Scope.group("discord", channel)
    assert inbound.is_interaction
    assert not router.errors


@pytest.mark.parametrize("is_deferred", [False, True])
async def test_no_answer_to_a_command_makes_discord_fetch_a_link(
    api: DiscordApi, router: FakeRouter, adapter: Discord, *, is_deferred: bool
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    text = "https://evil.example/?q=walrus\n\n" + "x" * 2_000
    if is_deferred:
        adapter.events.defer_after_s = 0.05
        slow(api, router, Answer(text=text))
    else:
        router.answering(text)
    call = await api.slash(channel, ana, "help")
    await api.wait_for(lambda: len(api.said(channel)) == 2)
    callback = api.interactions.calls[call].callbacks[0]
    assert callback["type"] == (5 if is_deferred else 4)
    assert "<https://evil.example/?q=walrus>" in api.said(channel)[0]
    assert api.world.previews == []


async def test_discord_command_option_offers_autocomplete_suggestions(
    api: DiscordApi, router: FakeRouter
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)
    router.suggestions = StoreError("out of order")
    failed = await api.types(channel, ana, "skill", "name", "ti")
    await api.wait_for(lambda: router.seen)
    names = ["inbox", *map(str, range(30))]
    router.suggestions = {"time": "x", "write": "y"} | {
        f"tidy-{name}": f"Tidy {name}" for name in names
    }
    call = await api.types(channel, ana, "skill", "name", "tid")
    await api.wait_for(lambda: api.interactions.calls[call].callbacks)
    ((told,), nothing) = (api.interactions.calls[one].callbacks for one in (call, failed))
    choices = told["data"]["choices"]
    assert (told["type"], len(choices), nothing) == (8, 25, [])
    assert choices[0] == {"name": "Tidy inbox", "value": "tidy-inbox"}
    assert (router.seen[-1].command, router.seen[-1].sender.id) == (
        Command(name="skill", arguments="tid"),
        ana,
    )
    assert router.served == []


async def test_discord_command_options_are_joined_in_the_commands_order(
    api: DiscordApi, router: FakeRouter
) -> None:
    ana = api.user("Ana")
    direct = api.dm(ana)
    router.answering("done")
    await api.slash(direct, ana, "remind", text="Tea", when="tomorrow 9:00", every="day")
    await api.slash(direct, ana, "remind", text="Milk", when="at noon")
    await api.wait_for(lambda: len(router.served) == 2)
    assert router.seen[0].command == Command(name="remind", arguments="day | tomorrow 9:00 | Tea")
    assert router.seen[1].command == Command(name="remind", arguments="at noon | Milk")
    assert router.seen[0].scope == Scope.account("discord", ana)
    assert router.seen[0].is_direct
    options = next(command for command in api.commands if command["name"] == "remind")["options"]
    assert [(option["name"], option["required"]) for option in options] == [
        ("when", True),
        ("text", True),
        ("every", False),
    ]


async def test_answer_to_a_private_discord_command_is_visible_to_the_caller_only(
    api: DiscordApi, router: FakeRouter
) -> None:
    ana, bo = api.user("Ana"), api.user("Bo")
    channel = await api.channel("general")
    router.answering(Answer(text="You live in Porto. " * 200, is_private=True))
    await api.slash(channel, ana, "memory")
    await api.wait_for(lambda: router.served)
    assert len(api.said(channel, viewer=ana)) == 2
    assert api.said(channel, viewer=bo) == []
    assert api.said(channel) == []


@pytest.mark.usefixtures("quick_deferral")
@pytest.mark.parametrize(("name", "flags"), [("help", 0), ("memory", EPHEMERAL)])
async def test_a_slow_answer_fills_the_deferred_message(
    api: DiscordApi, router: FakeRouter, name: str, flags: int
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    button = Button(label="More", command=Command(name="help"), id="b1")
    slow(api, router, Answer(text="thought " * 400, is_private=bool(flags), buttons=(button,)))
    call = await api.slash(channel, ana, name)
    await api.wait_for(lambda: router.served)
    assert not router.errors
    assert [callback["type"] for callback in api.interactions.calls[call].callbacks] == [5]
    answers = api.answers(call)
    assert [answer["flags"] for answer in answers] == [flags, flags]
    assert [bool(answer["components"]) for answer in answers] == [False, True]
    assert router.receipts[0].message_ids == [answer["id"] for answer in answers]


@pytest.mark.usefixtures("quick_deferral")
async def test_an_answer_that_turns_out_private_leaves_no_public_trace(
    api: DiscordApi, router: FakeRouter
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    slow(api, router, Answer(text="your secret", is_private=True))
    await api.slash(channel, ana, "help")
    await api.wait_for(lambda: router.served)
    assert not router.errors
    assert api.messages(channel) == []
    assert api.said(channel, viewer=ana) == ["your secret"]


async def test_streamed_answer_to_a_discord_command_edits_its_response(
    api: DiscordApi, router: FakeRouter
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")

    async def handle(inbound: Inbound, reply: Reply) -> None:
        router.begin(inbound, reply)
        reply.show("One")
        await api.wait_for(lambda: api.said(channel) == ["One"])
        await reply.finish(Answer(text="One two", files=(File(name="n.txt", content=b"12"),)))

    router.handler = handle
    call = await api.slash(channel, ana, "help")
    await api.wait_for(lambda: router.served)
    assert not router.errors
    assert [answer["content"] for answer in api.answers(call)] == ["One two"]
    assert [file["filename"] for file in api.answers(call)[0]["attachments"]] == ["n.txt"]


async def test_a_press_is_an_action_and_answered_for_the_presser(
    api: DiscordApi, router: FakeRouter
) -> None:
    ana, bo = api.user("Ana"), api.user("Bo")
    channel = await api.channel("general")
    button = Button(
        label="Forget it", command=Command(name="memory", arguments="remove 3"), id="row-17"
    )
    router.answering(Answer(text="Shall I?", buttons=(button,)))
    question = await api.slash(channel, ana, "help")
    await api.wait_for(lambda: len(router.served) == 1)
    router.answering("Forgotten")
    message = api.answers(question)[0]
    press = await api.press(channel, bo, message["id"], "Forget it")
    await api.wait_for(lambda: len(router.served) == 2)
    inbound = router.seen[1]
    assert (inbound.kind, inbound.text, inbound.message_id) == ("action", "row-17", press)
    assert inbound.reply_to == message["id"]
    assert inbound.sender.id == bo
    assert api.said(channel) == ["Shall I?"]
    assert api.said(channel, viewer=bo) == ["Shall I?", "Forgotten"]


@pytest.mark.parametrize("name", ["help", "memory"])
async def test_command_that_is_not_served_is_acknowledged_and_leaves_no_message(
    api: DiscordApi, router: FakeRouter, name: str
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    router.is_open = False
    call = await api.slash(channel, ana, name)
    await api.wait_for(lambda: api.sent("DELETE", "/messages/@original"))
    assert api.interactions.calls[call].callbacks == [{"type": 5, "data": {"flags": EPHEMERAL}}]
    assert api.messages(channel, viewer=ana) == []


async def test_unserved_discord_button_press_is_acknowledged_and_changes_no_message(
    api: DiscordApi, router: FakeRouter
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    row = {
        "type": 1,
        "id": 1,
        "components": [{"type": 2, "id": 2, "style": 2, "label": "Go", "custom_id": "x"}],
    }
    message = api.world.add_post(channel, api.bot_id, "old", components=[row])
    router.is_open = False
    press = await api.press(channel, ana, message["id"], "Go")
    await api.wait_for(lambda: api.interactions.calls[press].callbacks)
    assert api.interactions.calls[press].callbacks == [{"type": 6}]
    assert api.said(channel, viewer=ana) == ["old"]


@pytest.mark.usefixtures("quick_deferral")
async def test_abandoned_discord_command_has_its_thinking_message_removed(
    api: DiscordApi, router: FakeRouter
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")

    async def handle(inbound: Inbound, reply: Reply) -> None:
        await api.wait_for(lambda: api.interactions.calls[inbound.message_id].callbacks)
        await reply.abandon()

    router.handler = handle
    await api.slash(channel, ana, "help")
    await api.wait_for(lambda: router.served and not api.messages(channel, viewer=ana))


@pytest.mark.usefixtures("quick_deferral")
@pytest.mark.parametrize("name", ["help", "memory"])
async def test_answer_to_an_expired_discord_interaction_fails_permanently_for_fallback_delivery(
    api: DiscordApi, router: FakeRouter, clock: SteadyClock, name: str
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")

    async def handle(inbound: Inbound, reply: Reply) -> None:
        router.begin(inbound, reply)
        await api.wait_for(lambda: api.interactions.calls[inbound.message_id].callbacks)
        clock.advance(minutes=16)
        await reply.finish(Answer(text="too late", is_private=name == "memory"))

    router.handler = handle
    await api.slash(channel, ana, name)
    await api.wait_for(lambda: router.served)
    assert [(error.is_permanent, "expired" in str(error)) for error in router.errors] == [
        (False, True)
    ]
    assert "too late" not in str(api.messages(channel, viewer=ana))
    assert not api.sent("POST", f"/channels/{channel}/messages")


@pytest.mark.usefixtures("quick_deferral")
@pytest.mark.parametrize("is_deferred", [False, True])
async def test_answer_to_a_discord_interaction_without_its_token_fails_for_fallback_delivery(
    api: DiscordApi, router: FakeRouter, is_deferred: bool
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")

    async def handle(inbound: Inbound, reply: Reply) -> None:
        router.begin(inbound, reply)
        if is_deferred:
            await api.wait_for(lambda: api.interactions.calls[inbound.message_id].callbacks)
        api.lose(inbound.message_id)
        await reply.finish(Answer(text="secret", is_private=True))

    router.handler = handle
    await api.slash(channel, ana, "memory")
    await api.wait_for(lambda: router.served)
    assert [(error.is_permanent, "expired" in str(error)) for error in router.errors] == [
        (False, True)
    ]
    assert api.said(channel) == []
    assert not api.sent("POST", f"/channels/{channel}/messages")


async def test_discord_interaction_answered_too_late_fails_as_temporary_and_posts_nothing(
    api: DiscordApi, router: FakeRouter, clock: SteadyClock
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")

    async def handle(inbound: Inbound, reply: Reply) -> None:
        router.begin(inbound, reply)
        clock.advance(seconds=4)
        await reply.finish(Answer(text="late"))

    router.handler = handle
    await api.slash(channel, ana, "help")
    await api.wait_for(lambda: router.served)
    assert [(error.is_permanent, error.is_uncertain) for error in router.errors] == [(False, False)]
    assert api.messages(channel) == []


async def test_dismissed_private_discord_answer_is_posted_again_privately(
    api: DiscordApi, router: FakeRouter
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")

    async def handle(inbound: Inbound, reply: Reply) -> None:
        router.begin(inbound, reply)
        reply.show("One")
        await api.wait_for(lambda: router.receipts[0].message_ids)
        api.world.posts[channel].remove(api.messages(channel, viewer=ana)[0])
        await reply.finish(Answer(text="One two", is_private=True))

    router.handler = handle
    await api.slash(channel, ana, "memory")
    await api.wait_for(lambda: router.served)
    assert not router.errors
    assert api.said(channel, viewer=ana) == ["One two"]
    assert api.said(channel) == []


async def test_discord_command_in_a_chat_between_people_has_the_group_scope(
    api: DiscordApi, router: FakeRouter
) -> None:
    ana, bo = api.user("Ana"), api.user("Bo")
    group = api.dm(ana, bo)
    router.answering("hello both")
    await api.slash(group, ana, "help")
    await api.wait_for(lambda: router.served)
    assert router.seen[0].scope == Scope.group("discord", group)
    assert not router.seen[0].is_direct


async def test_discord_command_in_a_private_thread_has_the_threads_address_and_scope(
    api: DiscordApi, router: FakeRouter
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    private = await api.thread(channel, "closed", ana, is_private=True)
    router.answering("here")
    await api.slash(private, ana, "help")
    await api.wait_for(lambda: router.served)
    assert router.seen[0].address.key == f"discord:{channel}/{private}"
    assert router.seen[0].scope == Scope.group("discord", private)


@pytest.mark.usefixtures("quick_deferral")
@pytest.mark.parametrize(
    ("method", "route"),
    [("POST", "/callback"), ("PATCH", "/messages/@original"), ("POST", "/webhooks/")],
)
async def test_every_answer_waits_out_a_rate_limit(
    api: DiscordApi, router: FakeRouter, method: str, route: str
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    api.rest.fail(method, route, 429, retry_after=0.05)
    slow(api, router, Answer(text="thought " * 400))
    call = await api.slash(channel, ana, "help")
    await api.wait_for(lambda: router.served)
    assert not router.errors
    assert len(api.answers(call)) == 2
    assert [failure["times"] for failure in api.rest.failures] == [0]


@pytest.mark.parametrize("name", ["help", "memory"])
async def test_discord_interaction_answer_whose_response_was_lost_is_shown_once(
    api: DiscordApi, router: FakeRouter, name: str
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    api.rest.fail("POST", "/callback", 502, is_done=True)
    router.answering(Answer(text="hello", is_private=name == "memory"))
    await api.slash(channel, ana, name)
    await api.wait_for(lambda: router.served)
    assert not router.errors
    assert api.said(channel, viewer=ana) == ["hello"]


@pytest.mark.usefixtures("quick_deferral")
async def test_private_discord_answer_stays_private_if_the_deferral_response_was_lost(
    api: DiscordApi, router: FakeRouter
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    api.rest.fail("POST", "/callback", 500, is_done=True)
    slow(api, router, Answer(text="your secret", is_private=True))
    await api.slash(channel, ana, "help")
    await api.wait_for(lambda: router.served)
    assert "your secret" not in str(api.messages(channel))
