"""`mneme chat` beside a running gateway, over its socket."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from gateway.local.sockets import MAX_PATH_BYTES, find_socket
from tests.fixtures.command_line import good, process
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.scripted_terminal import open_terminal
from tests.fixtures.skill_folders import skill_text
from tests.gateway.local.running import KEY, PERSON, open_gateway

pytestmark = pytest.mark.slow


def use_model(model: MessagesApi) -> dict[str, str]:
    return {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": model.url}


async def test_chat_beside_the_gateway_is_a_conversation_of_its_own_and_greets(home: Path) -> None:
    async with open_gateway(home) as gateway:
        gateway.telegram.user_says(PERSON, "hello from the phone")
        await gateway.telegram.wait_for(lambda: len(gateway.telegram.texts(PERSON)) == 1)
        socket = find_socket(home, "chat")
        assert socket.stat().st_mode & 0o777 == 0o600
        async with open_terminal(home, "chat", environ=gateway.environ) as terminal:
            await terminal.expect("claude-sonnet-5-5 answers. This is a new conversation.")
            await terminal.expect(">")
            terminal.type("hello from the desk")
            await terminal.expect("You said: hello from the desk")
            await terminal.expect(">")
            terminal.type("/quit")
            assert await terminal.end() == 0
        async with open_terminal(home, "chat", environ=gateway.environ) as terminal:
            await terminal.expect("This is conversation 2")
        assert gateway.telegram.texts(PERSON) == ["You said: hello from the phone"]


async def test_chat_beside_a_gateway_with_a_terminal_is_another_conversation(home: Path) -> None:
    async with (
        MessagesApi(key=KEY) as model,
        open_terminal(home, "run", "--terminal", environ=use_model(model)) as first,
    ):
        await first.expect(">")
        first.type("hello from the first")
        await first.expect("You said: hello from the first")
        await first.expect(">")
        async with open_terminal(home, "chat", environ=use_model(model)) as second:
            await second.expect("This is a new conversation.")
            second.type("hello from the second")
            await second.expect("You said: hello from the second")
            await second.expect(">")
            second.type("/remind in 1 second stretch")
            await second.expect("Done: /cron done 1")
            await second.expect(">")
            second.type("/quit")
            assert await second.end() == 0
        assert "stretch" not in first.transcript
        first.type("/sessions")
        await first.expect("hello from the second")
        await first.expect(">")
        first.type("and again")
        await first.expect("You said: and again")
        sessions = json.loads(await asyncio.to_thread(good, home, "sessions", "--json"))
        assert len(sessions) == 2


async def test_two_chats_of_one_gateway_are_two_conversations_also_after_a_restart(
    home: Path,
) -> None:
    async with (
        open_gateway(home) as gateway,
        open_terminal(home, "chat", environ=gateway.environ) as first,
    ):
        await first.expect("This is a new conversation.")
        await first.expect(">")
        first.type("apples")
        await first.expect("You said: apples")
        async with open_terminal(home, "chat", environ=gateway.environ) as second:
            await second.expect("This is a new conversation.")
            await second.expect(">")
            second.type("pears")
            await second.expect("You said: pears")
            await gateway.stop()
            await first.expect("Mneme has stopped.")
            await second.expect("Mneme has stopped.")
            await gateway.start()
            await first.expect("Mneme is back.")
            await second.expect("Mneme is back.")
            second.type("more pears")
            await second.expect("You said: more pears")
            first.type("more apples")
            await first.expect("You said: more apples")
        assert "pears" not in first.transcript
        sessions = json.loads(await asyncio.to_thread(good, home, "sessions", "--json"))
        assert [session["messages"] for session in sessions] == [4, 4]
        async with open_terminal(home, "chat", environ=gateway.environ) as third:
            await third.expect("This is conversation")
            await third.expect("pears")


async def test_chat_whose_conversation_got_another_terminal_says_that_it_has_a_new_one(
    home: Path,
) -> None:
    async with (
        open_gateway(home) as gateway,
        open_terminal(home, "chat", environ=gateway.environ) as chat,
    ):
        await chat.expect("This is a new conversation.")
        await chat.expect(">")
        chat.type("apples")
        await chat.expect("You said: apples")
        await gateway.stop()
        await chat.expect("Mneme has stopped.")
        async with open_terminal(home, "run", "--terminal", environ=gateway.environ) as first:
            await first.expect("apples")
            await chat.expect("Mneme is back.")
            await chat.expect("This is a new conversation.")
            chat.type("pears")
            await chat.expect("You said: pears")
            first.type("more apples")
            await first.expect("You said: more apples")
        sessions = json.loads(await asyncio.to_thread(good, home, "sessions", "--json"))
        assert sorted(session["messages"] for session in sessions) == [2, 4]


async def test_piped_chat_command_talks_to_the_running_gateway(home: Path) -> None:
    async with open_gateway(home) as gateway:
        done = await asyncio.to_thread(
            process, home.parent, ("chat",), "one\n/title Trip\ntwo\n", dict(gateway.environ)
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[0] == "You said: one"
        assert done.stdout.splitlines()[-1] == "You said: two"


async def test_chat_waits_while_the_gateway_restarts_and_then_goes_on(home: Path) -> None:
    async with (
        open_gateway(home) as gateway,
        open_terminal(home, "chat", environ=gateway.environ) as terminal,
    ):
        await terminal.expect(">")
        await gateway.stop()
        await terminal.expect("Mneme has stopped.")
        await gateway.start()
        await terminal.expect("Mneme is back.")
        terminal.type("still there?")
        await terminal.expect("You said: still there?")


async def test_answer_that_is_cut_off_by_a_kill_is_shown_after_the_restart(home: Path) -> None:
    may_answer = asyncio.Event()

    def brain(body: dict[str, Any]) -> ModelReply:
        return ModelReply.say("Here it is.", hold=may_answer)

    async with (
        open_gateway(home, MessagesApi(brain, key=KEY)) as gateway,
        open_terminal(home, "chat", environ=gateway.environ) as terminal,
    ):
        await terminal.expect(">")
        terminal.type("a question")
        await terminal.expect("thinking")
        await gateway.stop(signal.SIGKILL)
        await terminal.expect("Mneme has stopped.")
        may_answer.set()
        await gateway.start()
        await terminal.expect("Here it is.")


async def test_reminder_of_the_shell_reaches_the_chat_that_connects_later(home: Path) -> None:
    async with open_gateway(home) as gateway:
        async with open_terminal(home, "chat", environ=gateway.environ) as terminal:
            await terminal.expect(">")
            terminal.type("hello")
            await terminal.expect("You said: hello")
            await terminal.expect(">")
            terminal.press("\x04")
            assert await terminal.end() == 0
        await asyncio.to_thread(good, home, "remind", "in 1 second stretch")
        async with open_terminal(home, "chat", environ=gateway.environ) as terminal:
            await terminal.expect("stretch")


async def test_ctrl_c_in_the_local_chat_cancels_the_answer_and_twice_leaves_the_chat(
    home: Path,
) -> None:
    held = asyncio.Event()
    replies = iter([ModelReply.say("Long one.", hold=held)])

    def brain(body: dict[str, Any]) -> ModelReply:
        return next(replies, None) or ModelReply.say("Short one.")

    async with (
        open_gateway(home, MessagesApi(brain, key=KEY)) as gateway,
        open_terminal(home, "chat", environ=gateway.environ) as terminal,
    ):
        await terminal.expect(">")
        terminal.type("go on")
        await terminal.expect("thinking")
        terminal.press("\x03")
        await terminal.expect("[stopped]")
        await terminal.expect(">")
        terminal.type("again")
        await terminal.expect("Short one.")
        replies = iter([ModelReply.say("Third.", hold=held)])
        await terminal.expect(">")
        terminal.type("once more")
        await terminal.expect("thinking")
        terminal.press("\x03\x03")
        await terminal.expect("You left before the answer was complete.")
        assert await terminal.end() == 0


async def test_tool_at_work_is_shown_and_arguments_are_completed(home: Path) -> None:
    held = asyncio.Event()

    def brain(body: dict[str, Any]) -> ModelReply:
        last = body["messages"][-1]["content"]
        if any(block["type"] == "tool_result" for block in last):
            return ModelReply.say("Nothing found.", hold=held)
        if not body.get("tools"):
            return ModelReply.say("[]")
        return ModelReply.call(("session_search", {"query": "ferry"}))

    async with (
        open_gateway(home, MessagesApi(brain, key=KEY)) as gateway,
        open_terminal(home, "chat", environ=gateway.environ) as terminal,
    ):
        await terminal.expect(">")
        terminal.type("look it up")
        await terminal.expect("using session_search")
        held.set()
        await terminal.expect("Nothing found.")
        await terminal.expect(">")
        terminal.type("/title Trip to Porto")
        await terminal.expect("Trip to Porto")
        await terminal.expect(">")
        terminal.press("/sessions Po")
        await terminal.expect("Trip to Porto")


async def test_actions_notes_and_skills_are_completed_in_the_chat_beside_the_gateway(
    home: Path,
) -> None:
    good(home, "memory", "add", "Ana likes green tea")
    (home / "skills" / "tidy-inbox").mkdir(parents=True)
    (home / "skills" / "tidy-inbox" / "SKILL.md").write_text(skill_text("tidy-inbox"))
    async with (
        open_gateway(home) as gateway,
        open_terminal(home, "chat", environ=gateway.environ) as terminal,
    ):
        await terminal.expect(">")
        terminal.press("/memory rem")
        await terminal.expect("remove")
        terminal.press("ove gree")
        await terminal.expect("Ana likes green tea")
        terminal.press("\x15/skill inb")
        await terminal.expect("tidy-inbox")


def test_socket_of_a_home_with_a_long_path_is_in_a_private_folder(tmp_path: Path) -> None:
    short = find_socket(Path("/srv/mneme"), "chat")
    assert short == Path("/srv/mneme/chat.sock")
    long = find_socket(tmp_path / ("long" * 30), "chat")
    assert len(str(long)) <= MAX_PATH_BYTES
    assert long != find_socket(tmp_path / ("Long" * 30), "chat")
    assert long.parent.stat().st_mode & 0o777 == 0o700
