"""No message makes Discord fetch an address, whichever call sends it, and addresses with data are
shown in full."""

from __future__ import annotations

import ast
import inspect
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import discord
import pytest

import adapters.discord
from adapters.discord.adapter import Discord
from core.menus.command_specs import CommandSpec
from core.ports import Reply
from core.store.mailbox import Inbox
from core.types import Answer, Button, Command, File, Inbound
from tests.fixtures.clock import SteadyClock
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.discord_setup import checked, listening, make
from tests.fixtures.fake_router import FakeRouter

pytestmark = pytest.mark.slow

NEVER_S = 3600.0
SECRET = "https://evil.example/?q=walrus"
# A bare address, one directly after a letter and behind a backslash, and one behind a word.
TEXT = f"{SECRET} \u770b{SECRET} \\\\{SECRET} x{SECRET} [this](https://evil.example/?q=plan)"
LONG = f"{TEXT}\n\n{'x' * 2_000}"
BUTTON = Button(label="Next", command=Command(name="recall", arguments="2"), id="abc")
PAGE = Answer(text=TEXT, buttons=(BUTTON,), is_page=True)
RESPONDING = "InteractionResponse.send_message"
REPLACING = "InteractionResponse.edit_message"
CLASSES = (
    discord.abc.Messageable,
    discord.PartialMessage,
    discord.InteractionResponse,
    discord.Interaction,
    discord.Webhook,
)
# The calls of the library with which the adapter sends or changes a text.
SENDING = {
    "Messageable.send",
    "PartialMessage.edit",
    RESPONDING,
    REPLACING,
    "Interaction.edit_original_response",
    "Webhook.send",
    "Webhook.edit_message",
}


def list_calls_with_text() -> dict[str, Callable[..., Any]]:
    """Return all methods of the library that take the text of a message, by their name."""
    calls: dict[str, Callable[..., Any]] = {}
    for owner in CLASSES:
        for name, method in vars(owner).items():
            is_call = inspect.iscoroutinefunction(method)
            if is_call and "content" in inspect.signature(method).parameters:
                calls[f"{owner.__name__}.{name}"] = method
    return calls


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the sending calls that a test has made."""
    names: set[str] = set()

    def watch(label: str, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*arguments: Any, **options: Any) -> Any:
            names.add(label)
            return await method(*arguments, **options)

        return call

    for owner in CLASSES:
        for label, method in list_calls_with_text().items():
            owner_name, _, name = label.partition(".")
            if owner_name == owner.__name__:
                monkeypatch.setattr(owner, name, watch(label, method))
    return names


@pytest.fixture
async def api(clock: SteadyClock) -> AsyncIterator[DiscordApi]:
    async with checked(DiscordApi(clock)) as double:
        yield double


@pytest.fixture
def adapter(api: DiscordApi, clock: SteadyClock, inbox: Inbox) -> Discord:
    adapter = make(api, inbox, clock)
    adapter.events.defer_after_s = NEVER_S
    return adapter


@pytest.fixture
async def router(api: DiscordApi, adapter: Discord) -> AsyncIterator[FakeRouter]:
    router = FakeRouter()
    commands = (CommandSpec(name="help", description="What I can do"),)
    async with listening(adapter, router, api, commands):
        await api.wait_for(lambda: api.commands)
        yield router


def test_adapter_uses_no_sending_call_of_the_library_that_the_tests_below_lack() -> None:
    known = {label.partition(".")[2] for label in list_calls_with_text()}
    assert set(list_calls_with_text()) >= SENDING
    used: set[str] = set()
    for path in Path(adapters.discord.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            call = node.value if isinstance(node, ast.Await) else None
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                used.add(call.func.attr)
    assert used & known == {label.partition(".")[2] for label in SENDING}


async def wait_served(api: DiscordApi, router: FakeRouter, count: int) -> None:
    await api.wait_for(lambda: len(router.served) == count)


async def stream(api: DiscordApi, router: FakeRouter, inbound: Inbound, reply: Reply) -> None:
    """Answer with a draft, which becomes a longer answer."""
    router.begin(inbound, reply)
    channel = inbound.address.chat_id
    reply.show(TEXT)
    await api.wait_for(lambda: SECRET in "".join(api.said(channel, viewer=inbound.sender.id)))
    await reply.finish(Answer(text=f"More: {LONG}"))


def check(api: DiscordApi, router: FakeRouter, channel: str, viewer: str) -> None:
    """Check that no address was fetched, and that those with data are shown in full."""
    assert router.errors == []
    assert api.world.previews == []
    texts = [text for text in api.said(channel, viewer=viewer) if "walrus" in text]
    assert texts
    assert all("this (<https://evil.example/?q=plan>)" in text for text in texts)


async def test_no_message_of_a_chat_makes_discord_fetch_an_address(
    api: DiscordApi, router: FakeRouter, made: set[str]
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)

    async def handle(inbound: Inbound, reply: Reply) -> None:
        await stream(api, router, inbound, reply)

    router.handler = handle
    await api.user_says(channel, "stream", ana)
    await api.wait_for(lambda: len(router.served) == 1)
    file = File(name="chat.txt", content=b"hello")
    cards = Answer(text=TEXT, cards=(TEXT, TEXT), cards_title="2 results")
    answers = (Answer(text=TEXT, files=(file,)), Answer(text=LONG, buttons=(BUTTON,)), cards)
    for count, answer in enumerate(answers, 2):
        router.answering(answer)
        await api.user_says(channel, "go", ana)
        await wait_served(api, router, count)
    assert made == {"Messageable.send", "PartialMessage.edit"}
    assert len(api.messages(channel)[-1]["embeds"]) == 2
    check(api, router, channel, ana)


@pytest.mark.parametrize("is_deferred", [False, True])
async def test_no_replaced_page_makes_discord_fetch_an_address(
    api: DiscordApi, router: FakeRouter, adapter: Discord, made: set[str], *, is_deferred: bool
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)
    router.answering(PAGE)
    await api.user_says(channel, "go", ana)
    await api.wait_for(lambda: router.served)
    page = api.messages(channel)[-1]["id"]
    card_page = replace(PAGE, cards=(TEXT,), cards_title="1 result")
    adapter.events.defer_after_s = 0.05 if is_deferred else NEVER_S
    for count, answer in enumerate((PAGE, card_page, PAGE), 2):

        async def handle(inbound: Inbound, reply: Reply, answer: Answer = answer) -> None:
            if is_deferred:
                calls = api.interactions.calls
                await api.wait_for(lambda: bool(calls[inbound.message_id].callbacks))
            router.begin(inbound, reply)
            await reply.finish(answer)

        router.handler = handle
        await api.press(channel, ana, page, "Next")
        await wait_served(api, router, count)
        shown = api.messages(channel, viewer=ana)[-1]
        assert len(shown["embeds"]) == len(answer.cards)
    replacing = "Interaction.edit_original_response" if is_deferred else REPLACING
    assert made == {"Messageable.send", replacing}
    check(api, router, channel, ana)


@pytest.mark.parametrize("is_deferred", [False, True])
async def test_no_answer_to_a_command_makes_discord_fetch_an_address_even_if_it_is_streamed(
    api: DiscordApi, router: FakeRouter, adapter: Discord, made: set[str], *, is_deferred: bool
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    adapter.events.defer_after_s = 0.05 if is_deferred else NEVER_S

    async def handle(inbound: Inbound, reply: Reply) -> None:
        if is_deferred:
            calls = api.interactions.calls
            await api.wait_for(lambda: bool(calls[inbound.message_id].callbacks))
        await stream(api, router, inbound, reply)

    router.handler = handle
    await api.slash(channel, ana, "help")
    await api.wait_for(lambda: router.served)
    first = "Interaction.edit_original_response" if is_deferred else RESPONDING
    assert made == {first, "Webhook.send", "Webhook.edit_message"}
    check(api, router, channel, ana)
