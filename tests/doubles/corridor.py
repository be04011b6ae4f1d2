"""The real corridor with a scripted model and no platform: what is said goes in here, what is answered comes out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from config.settings import Settings
from core.errors import DeliveryError
from core.memory.memory import Memory
from core.ports import Model, Receipt, Reply, Sink
from core.types import Address, Answer, Command, CommandSpec, Inbound, InboundKind, Scope, Sender
from gateway.app import corridor
from gateway.commands import Commands
from gateway.house import House
from gateway.incognito_commands import tell_of_restart
from gateway.post import Post
from gateway.report import Report
from gateway.router import Router
from tests.doubles.scripted_model import ScriptedModel


class KeptReply:
    """Fills the role Reply; keeps frames and the last word. `failures` are raised by `finish`, one a call."""

    def __init__(self, *failures: DeliveryError) -> None:
        self.frames: list[str] = []
        self.answer: Answer | None = None
        self.receipt: Receipt | None = None
        self.failures = list(failures)
        self.is_abandoned = False

    def begin(self, receipt: Receipt) -> None:
        assert self.receipt is None, "a reply begins once"
        self.receipt = receipt

    def show(self, text: str) -> None:
        assert self.receipt is not None
        self.frames.append(text)

    async def finish(self, answer: Answer) -> None:
        assert self.receipt is not None
        assert self.answer is None, "a reply finishes once"
        if self.failures:
            raise self.failures.pop(0)
        if not self.receipt.posted:
            await self.receipt.record(f"p{id(self)}")
        self.answer = answer

    async def abandon(self) -> None:
        self.is_abandoned = True

    @property
    def text(self) -> str:
        """What the person reads in the end."""
        assert self.answer is not None, "there was no answer"
        return self.answer.text


class KeptPlatform:
    """Fills the role Adapter for deliveries without an event beside them."""

    hint = "Test platform: plain words."

    def __init__(self, platform: str) -> None:
        self.platform = platform
        self.replies: list[tuple[Address, KeptReply]] = []

    async def open(self) -> None:
        return None

    async def listen(self, sink: Sink, commands: Sequence[CommandSpec]) -> None:
        return None

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        reply = KeptReply()
        self.replies.append((address, reply))
        return reply

    async def close(self) -> None:
        return None


@dataclass(kw_only=True)
class Corridor:
    """`say` is one person's message from arrival to answer; `admit` only brings it in."""

    house: House
    router: Router
    commands: Commands
    post: Post
    model: Model
    platforms: dict[str, KeptPlatform]
    memory: Memory
    _ids: count[int] = field(default_factory=lambda: count(1))

    async def say(self, text: str, who: str = "42", **changes: object) -> KeptReply:
        """Answers `text` from telegram:`who` in a direct chat, unless `changes` of the Inbound say otherwise."""
        reply = KeptReply()
        number = await self.router.admit(self.inbound(text, who, **changes), reply)
        if number is not None:
            await self.router.serve(number)
        return reply

    def inbound(self, text: str, who: str = "42", **changes: object) -> Inbound:
        """The event of `text`; a line that begins with / is a command."""
        command = None
        if text.startswith("/"):
            name, _, arguments = text[1:].partition(" ")
            command = Command(name=name, arguments=arguments)
        kind: InboundKind = "message"
        inbound = Inbound(
            kind=kind,
            address=Address(platform="telegram", chat_id=who),
            scope=Scope.account("telegram", who),
            sender=Sender(id=who, name=f"Person {who}"),
            text=text,
            message_id=str(next(self._ids)),
            sent_at=self.house.clock.now(),
            is_direct=True,
            command=command,
        )
        return replace(inbound, **changes)  # type: ignore[arg-type]


@asynccontextmanager
async def open_corridor(
    home: Path, model: Model | None = None, options: str = "", titles: Model | None = None
) -> AsyncIterator[Corridor]:
    """A corridor in `home`; the account telegram:42 is the owner's, telegram:7 is let in. `options` is more TOML."""
    (home / "mneme.toml").write_text(
        f'[general]\nzone = "Europe/Lisbon"\n[owner]\ntelegram = [42]\n[access]\npeople = ["telegram:7"]\n{options}'
    )
    settings = Settings.load({"MNEME_HOME": str(home)})
    async with House.open(settings) as house, asyncio.TaskGroup() as tasks:
        await house.outbox.recover(house.clock.now())
        await tell_of_restart(house.veils, house.outbox, house.clock)
        post = Post(house.inbox, house.outbox, house.clock)
        chosen = model or ScriptedModel()
        router, commands, memory = await corridor(house, chosen, titles, post, Report(house, chosen.name), lambda: None)
        platforms = {name: KeptPlatform(name) for name in ("telegram", "discord", "terminal")}
        router.connect(platforms, tasks)
        try:
            yield Corridor(
                house=house,
                router=router,
                commands=commands,
                post=post,
                model=chosen,
                platforms=platforms,
                memory=memory,
            )
        finally:
            await memory.shutdown()
