"""What memories are told of sessions: that one ends, that the conversation goes on in another."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from core.types import Completion, Request, Usage
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

WATCHER = """
import threading
from core.memory.provider import MemoryProvider

HEARD = []
TOLD = threading.Event()


class Watcher(MemoryProvider):
    name = "watcher"

    async def is_available(self): return True
    async def initialize(self, folder): pass
    async def prefetch(self, text, context): return []

    async def on_pre_compress(self, session, messages):
        return f"Session {session.id} was about {messages[0].text[:20]}. <memory-context>"

    async def on_session_end(self, session, messages):
        reason = session.end.reason if session.end else None
        HEARD.append(("end", session.id, reason, len(messages)))
        TOLD.set()

    async def on_delegation(self, session, task, result):
        HEARD.append(("delegation", session.parent_id, task, result))
        TOLD.set()

    async def on_session_switch(self, new_id, parent_id, reason):
        HEARD.append(("switch", new_id, parent_id, reason))
        TOLD.set()
"""
ON = "[memory.providers.watcher]\n"


def plugged(home: Path) -> None:
    (home / "plugins").mkdir()
    (home / "plugins" / "watcher.py").write_text(WATCHER.replace(". <memory-context>", "."))


async def carried(harness: GatewayHarness, many: int) -> list[tuple[object, ...]]:
    """What the watcher has heard through the outbox, once it is so much."""
    watcher = sys.modules["mneme_plugin_watcher"]
    worker = asyncio.create_task(harness.delivery.run())
    async with asyncio.timeout(10):
        while len(watcher.HEARD) < many:
            watcher.TOLD.clear()
            await asyncio.to_thread(watcher.TOLD.wait, 10)
    worker.cancel()
    await asyncio.wait([worker])
    return list(watcher.HEARD)


async def test_new_conversation_sends_the_session_end_hook_for_the_previous_session(
    home: Path,
) -> None:
    plugged(home)
    async with open_gateway(home, ScriptedModel(), ON) as harness:
        await harness.say("one")
        await harness.say("/new")
        await harness.say("two")
        assert sorted(await carried(harness, 3), key=str) == [
            ("end", 1, "new", 2),
            ("switch", 1, None, "new"),
            ("switch", 2, None, "new"),
        ]


async def test_delegated_task_is_reported_to_memory_with_its_result(home: Path) -> None:
    plugged(home)

    def answer(request: Request) -> Completion:
        return says("The blue one." if request.kind == "delegation" else "[]")

    asked = calls(("delegate", {"task": "Which ferry?", "context": "In Porto."}))
    model, helper = ScriptedModel(asked, says("The blue one.")), ScriptedModel(*[answer] * 9)
    async with open_gateway(home, model, ON, helper) as harness:
        await harness.say("which ferry?")
        told = ("delegation", 1, "Which ferry?\n\nIn Porto.", "The blue one.")
        assert told in await carried(harness, 2)


async def test_changed_instructions_send_no_session_hooks(home: Path) -> None:
    plugged(home)
    async with open_gateway(home, ScriptedModel(), ON) as harness:
        await harness.say("one")
        await harness.say("/instructions set Answer in verse.")
        await harness.say("two")
        await harness.say("/new")
        assert await carried(harness, 2) == [("switch", 1, None, "new"), ("end", 1, "new", 4)]


async def test_resumed_session_is_reported_to_memory_as_a_switch(home: Path) -> None:
    plugged(home)
    async with open_gateway(home, ScriptedModel(), ON) as harness:
        await harness.say("one")
        await harness.say("/new")
        await harness.say("two")
        await harness.say("/sessions 1")
        heard = await carried(harness, 5)
        assert ("end", 2, "resumed", 2) in heard
        assert ("switch", 1, None, "resume") in heard


async def test_summary_includes_the_memory_services_text_about_the_compressed_session(
    home: Path,
) -> None:
    plugged(home)
    full = says("long", usage=Usage(input=7000, output=10))
    model = ScriptedModel(says("ok"), says("ok"), full, says("kept"), says("on"))
    async with open_gateway(home, model, "[model]\nwindow_tokens = 8000\n" + ON) as harness:
        await harness.say("the harbour plans")
        await harness.say("the quay plans")
        await harness.say("more " * 2000)
        await harness.say("go on with the plans")
        heard = await carried(harness, 3)
        assert ("switch", 2, 1, "compression") in heard
        assert ("end", 1, "compression", 6) in heard
        assert "Session 1 was about the harbour plans." in str(model.requests[-1].messages)
