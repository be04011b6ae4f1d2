"""Traffic from all platforms while the process is killed again and again; then the count of what became of it all."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from core.store.database import Database
from core.store.recall import Recall
from tests.doubles.clock import SteadyClock
from tests.doubles.echo_brain import FENCE
from tests.doubles.model_reply import ModelReply
from tests.doubles.town import PERSON, Town

TOKEN = re.compile(r"\b[tdx]\d+q\d+\b")
SETTLE_S = 90.0


def answer_all(body: dict[str, Any]) -> ModelReply:
    """Names every token of the last user message, so that messages answered together are all seen to be answered; a
    few of them by way of a tool."""
    blocks = body["messages"][-1]["content"]
    texts = [block["text"] for block in blocks if block["type"] == "text" and not block["text"].startswith(FENCE)]
    tokens = TOKEN.findall(" ".join(texts))
    if not body.get("tools"):
        return ModelReply.say("A title")
    if tokens and tokens[0].endswith("3") and not any(block["type"] == "tool_result" for block in blocks):
        return ModelReply.call(("session_search", {"query": tokens[0]}))
    return ModelReply.say("Answer to " + (" ".join(tokens) or " ".join(_open_tokens(body))) + ".", chunk_chars=7)


def _open_tokens(body: dict[str, Any]) -> list[str]:
    """After a tool: the tokens that the person said last."""
    for message in reversed(body["messages"]):
        if message["role"] == "user":
            texts = [b["text"] for b in message["content"] if b["type"] == "text" and not b["text"].startswith(FENCE)]
            if tokens := TOKEN.findall(" ".join(texts)):
                return tokens
    return []


@dataclass(kw_only=True)
class Storm:
    """`blow` runs it; `damage` says everything that should not be, one sentence each."""

    town: Town
    seed: int
    said: dict[str, list[str]] = field(default_factory=lambda: {"t": [], "d": [], "x": []})
    kills: int = 0

    async def blow(self, kills: int) -> None:
        """Kills the process `kills` times, each time at another point of its work, and lets it settle in the end."""
        chance = random.Random(self.seed)
        for number in range(kills):
            await self.town.start()
            await self._talk(number, chance)
            events = self._events() + chance.randint(1, 30)
            await self.town.until(lambda events=events: self._events() >= events or self._is_settled())  # type: ignore[misc]
            await self.town.kill()
            self.kills += 1
        await self.town.start()
        await self.town.until(self._is_settled, SETTLE_S)
        assert await self.town.stop() == 0

    async def damage(self) -> list[str]:
        """What is not as it should be after the storm; empty when nothing was lost, doubled or broken."""
        town = self.town
        rows = town.query("SELECT role, kind, text FROM messages")
        stored = Counter(token for role, _, text in rows if role == "user" for token in TOKEN.findall(str(text)))
        answered = Counter(
            token
            for role, kind, text in rows
            if role == "assistant" and kind == "chat"
            for token in set(TOKEN.findall(str(text)))
        )
        seen = {
            "t": TOKEN.findall(" ".join(town.telegram.texts(PERSON))),
            "d": TOKEN.findall(" ".join(town.discord.said(town.channel))),
            "x": TOKEN.findall(" ".join(town.printed)),
        }
        wrong = [f"{token} on Telegram was lost" for token in self.said["t"] if token not in stored]
        wrong += [f"{token} is stored {count} times" for token, count in stored.items() if count != 1]
        wrong += [f"{token} is answered {answered[token]} times" for token in stored if answered[token] != 1]
        wrong += [f"{token} was never shown" for token in stored if token not in seen[token[0]]]
        shown_twice = sum(count - 1 for tokens in seen.values() for count in Counter(tokens).values())
        buried = town.query("SELECT key, error FROM outbox WHERE dead_at IS NOT NULL")
        wrong += [f"{key} was buried: {error}" for key, error in buried]
        if shown_twice > self.kills:
            wrong.append(f"{shown_twice} answers were shown again after {self.kills} kills")
        if town.query("PRAGMA integrity_check") != [("ok",)]:
            wrong.append("state.db is damaged")
        async with Database.open(town.home / "state.db") as database:
            wrong += await Recall(database, SteadyClock()).verify()
        return wrong + town.model.refusals + town.telegram.violations + town.discord.violations

    async def _talk(self, number: int, chance: random.Random) -> None:
        for index in range(chance.randint(1, 3)):
            self.town.tells_telegram(self._token("t", number, index))
        for index in range(chance.randint(0, 2)):
            await self.town.tells_discord(self._token("d", number, index))
        for index in range(chance.randint(0, 2)):
            await self.town.types(self._token("x", number, index))

    def _token(self, platform: str, number: int, index: int) -> str:
        token = f"{platform}{number}q{index}"
        self.said[platform].append(token)
        return f"message {token} please"

    def _events(self) -> int:
        town = self.town
        return len(town.telegram.calls) + len(town.discord.requests) + len(town.model.requests)

    def _is_settled(self) -> bool:
        waiting = self.town.query(
            "SELECT (SELECT count(*) FROM inbox) + (SELECT count(*) FROM raw_updates) + "
            "(SELECT count(*) FROM outbox WHERE done_at IS NULL AND dead_at IS NULL)"
        )
        return waiting == [(0,)] and not self.town.telegram.updates
