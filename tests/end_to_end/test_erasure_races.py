"""Work that is begun anew since something was forgotten: nothing is done a second time, kept by
mistake, or waited for in vain."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from core.errors import StaleReadError
from core.notes import notebook as pages
from core.privacy.home_files import HomeFiles
from core.privacy.quotes import QuoteMatcher
from core.types import Address, Effect, Json, Scope, Tool, ToolContext
from tests.fixtures.forgetting import remains_of
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

ELSEWHERE: dict[str, Any] = {"address": Address(platform="telegram", chat_id="42", thread_id="9")}
"""Another lane of the same person."""


async def forgotten(harness: GatewayHarness, what: str) -> KeptReply:
    await harness.say(f"/forget {what}")
    return await harness.say("yes")


async def begun(
    harness: GatewayHarness, model: ScriptedModel, text: str, **changes: Any
) -> asyncio.Task[KeptReply]:
    """A turn in the other lane whose model has spoken and holds its answer back."""
    model.began.clear()
    model.gate = asyncio.Event()
    task = asyncio.create_task(harness.say(text, **{**ELSEWHERE, **changes}))
    await model.began.wait()
    return task


@pytest.mark.both_engines
async def test_stopped_turn_is_not_restarted_by_an_erasure(home: Path) -> None:
    model = ScriptedModel(says("ok"), says("You live in Zanzibar."))
    async with open_gateway(home, model) as harness:
        await harness.say("I moved to Zanzibar in May.")
        task = await begun(harness, model, "Where do I live?")
        await forgotten(harness, "Zanzibar")
        model.gate = None
        assert (await harness.say("/stop", **ELSEWHERE)).answer is None
        assert (await task).text == "[stopped]"
        assert len(model.requests) == 2, "nobody was asked again"
        assert await remains_of("Zanzibar", harness.services.database) == []


async def test_stop_command_takes_effect_while_an_erasure_is_in_progress(home: Path) -> None:
    async with open_gateway(home, model := ScriptedModel()) as harness:
        await harness.say("I moved to Zanzibar in May.")
        await harness.say("/forget Zanzibar")
        task = await begun(harness, model, "How is Lisbon?")
        model.gate = None
        await harness.services.database.write(
            lambda connection: connection.execute("UPDATE erasures SET started_at = 1")
        )
        stop = asyncio.create_task(harness.say("/stop", **ELSEWHERE))
        lane = harness.queues._queues["telegram:42/9"]
        while lane.timeout is not None:
            await asyncio.wait({stop}, timeout=0.01)
        assert not stop.done(), "what is said of it waits"
        await harness.services.forgetting.maintain()
        assert (await stop).answer is None
        assert "[stopped]" in (await task).text


async def test_a_tool_that_has_done_something_is_not_called_again(home: Path) -> None:
    at_work, may_end, sent = asyncio.Event(), asyncio.Event(), []

    async def send(arguments: Json, context: ToolContext) -> str:
        sent.append(arguments)
        at_work.set()
        await may_end.wait()
        return "Sent: she lives in Zanzibar."

    async def look(arguments: Json, context: ToolContext) -> str:
        return "She lives in Zanzibar."

    model = ScriptedModel(
        says("ok"), calls(("send", {"to": "Ana"}), ("look", {})), says("It is sent.")
    )
    async with open_gateway(home, model) as harness:
        tools = harness.agent.tool_runner.tools
        tools["send"] = Tool(
            name="send",
            description="Sends.",
            schema={"type": "object"},
            effects={"": Effect.SEND},
            run=send,
        )
        tools["look"] = Tool(
            name="look",
            description="Looks.",
            schema={"type": "object"},
            effects={"": Effect.READ},
            run=look,
            is_read_only=True,
        )
        await harness.say("I moved to Zanzibar in May.")
        task = asyncio.create_task(harness.say("Send it to Ana.", **ELSEWHERE))
        await at_work.wait()
        await forgotten(harness, "Zanzibar")
        may_end.set()
        assert (await task).text == "It is sent."
        assert len(sent) == 1
        done, looked = model.requests[-1].messages[-1]["content"]
        assert "Do not call it again for the same purpose" in done["content"]
        assert looked["is_error"], "what only reads may be asked again"
        assert await remains_of("Zanzibar", harness.services.database) == []


async def test_incognito_answer_made_from_forgotten_words_is_dropped_from_the_prompt(
    home: Path,
) -> None:
    searching = calls(("session_search", {"query": "where I live"}))
    model = ScriptedModel(
        says("ok"), searching, says("You live in Zanzibar."), says("I do not know."), says("No.")
    )
    async with open_gateway(home, model) as harness:
        await harness.say("I moved to Zanzibar in May, where I live now.")
        await harness.say("/incognito", **ELSEWHERE)
        task = await begun(harness, model, "Where do I live?")
        asking, model.gate = model.gate, asyncio.Event()
        answering = model.gate
        assert asking is not None
        asking.set()
        while len(model.requests) < 3:
            await asyncio.wait({task}, timeout=0.01)
        assert "Zanzibar" in str(model.requests[-1].messages), "the tool has found it"
        model.gate = None
        await forgotten(harness, "Zanzibar")
        answering.set()
        assert "I do not know." in (await task).text
        assert "Zanzibar" not in str(model.requests[-1])
        await harness.say("And now?", **ELSEWHERE)
        assert "Zanzibar" not in str(model.requests[-1])
        assert str(model.requests[-1].messages).count("I do not know.") == 1


async def test_a_question_that_was_deleted_meanwhile_is_left_unanswered(home: Path) -> None:
    model = ScriptedModel(says("ok"), says("You live in Zanzibar."))
    async with open_gateway(home, model) as harness:
        await harness.say("I moved to Zanzibar in May.")
        task = await begun(harness, model, "Where do I live?", message_id="77")
        gate, model.gate = model.gate, None
        await harness.admission.admit(
            harness.inbound("", **ELSEWHERE, message_id="77", kind="delete"), KeptReply()
        )
        assert await harness.services.inbox.list_waiting() == [], "nor after a crash"
        await forgotten(harness, "Zanzibar")
        assert gate is not None
        gate.set()
        assert "won't answer it" in (await task).text
        assert len(model.requests) == 2


async def test_a_deleted_question_is_not_taken_up_after_a_crash(home: Path) -> None:
    model = ScriptedModel(says("A fine place."))
    async with open_gateway(home, model) as harness:
        task = await begun(harness, model, "How is Lisbon?", message_id="77")
        await harness.admission.admit(
            harness.inbound("", **ELSEWHERE, message_id="77", kind="delete"), KeptReply()
        )
        harness.turns.cancel()
        await asyncio.wait({task})
    async with open_gateway(home, model) as harness:
        assert (
            await harness.admission.resume(harness.platforms["telegram"], timedelta(hours=1)) == []
        )
        assert await harness.services.inbox.list_waiting() == []


async def test_note_command_during_an_erasure_says_at_once_that_notes_are_busy(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.notes.locking.LOCK_TIMEOUT_S", 0.1)
    async with open_gateway(home) as harness:
        await harness.say("I moved to Zanzibar in May.")
        await harness.say("/forget Zanzibar")
        with FileLock(home / "memories" / ".lock"):
            told = (await harness.say("yes")).text
        assert "changed by another program" in told
        assert "I'll try again within a minute" in told
        assert await harness.services.forgetting.resume() == 1
        assert "nothing to forget" in (await harness.say("/forget Zanzibar")).text


async def test_a_question_that_is_put_again_is_one_question(home: Path) -> None:
    async with open_gateway(home) as harness:
        agent, times = harness.agent, 0
        keep = agent.store_command

        async def interrupted(*arguments: Any, **options: Any) -> None:
            nonlocal times
            times += 1
            if times == 1:
                raise StaleReadError("between the question and its answer")
            await keep(*arguments, **options)

        await harness.say("I moved to Zanzibar in May.")
        agent.store_command = interrupted  # type: ignore[method-assign]
        await harness.say("/forget Zanzibar")
        assert times == 2
        assert "Forgotten: 1 message" in (await harness.say("yes")).text


class Sealed(HomeFiles):
    """Files that nobody can write."""

    def erase(self, scopes: frozenset[Scope], quoting: QuoteMatcher) -> list[str]:
        return ["mneme.log"]


async def test_file_that_erasure_cannot_write_is_named_in_the_receipt_and_blocks_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keep(*_: object) -> None:
        raise PermissionError("read-only")

    async with open_gateway(home) as harness:
        await harness.say("/memory add Lives in Zanzibar")
        harness.services.forgetting.files = Sealed(harness.services.settings.home)
        monkeypatch.setattr(pages.NoteFiles, "write", keep)
        receipt = (await forgotten(harness, "Zanzibar")).text
        assert "`mneme.log` can't be changed" in receipt
        assert "`MEMORY.md` can't be changed" in receipt or "`USER.md` can't be changed" in receipt
        assert (await harness.say("hello")).text == "ok"


async def test_erasure_with_an_unusable_folder_is_reported_and_can_be_resumed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def settle() -> None:
        raise PermissionError(13, "Permission denied")

    async with open_gateway(home) as harness:
        await harness.say("I moved to Zanzibar in May.")
        await harness.say("/forget Zanzibar")
        with monkeypatch.context() as patched:
            patched.setattr(harness.services.notebook, "wait_for_writes", settle)
            assert "cannot be used (Permission denied)" in (await harness.say("yes")).text
            assert await harness.services.forgetting.resume() == 1, "and nothing is raised"
        assert await harness.services.forgetting.resume() == 1
        assert "nothing to forget" in (await harness.say("/forget Zanzibar")).text
