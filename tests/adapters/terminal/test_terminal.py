"""The terminal: a pipe is answered line by line with nothing but answers, a person gets a prompt on
a real tty."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import termios
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from adapters.terminal.adapter import ADDRESS, Terminal, describe_commands
from core.errors import DeliveryError
from core.menus.command_specs import CommandSpec
from core.ports import Reply
from core.types import Address, Answer, Button, Command, File, Inbound, Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.delivery_record import ListRecord

PROMPT = ">\x1b[0m"
SPECS = (
    CommandSpec(name="help", description="What I can do"),
    CommandSpec(name="recall", description="Find"),
)


class Parrot:
    """Fills the role Sink: answers everything with itself, or with what `answer` gives."""

    def __init__(self, answer: Callable[[Inbound, Reply], Awaitable[Answer]] | None = None) -> None:
        self.heard: list[Inbound] = []
        self._replies: list[Reply] = []
        self._answer = answer
        self.serving = 0
        self.has_answered = asyncio.Event()

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        assert self.serving == 0 or inbound.command is not None, (
            "a line was read before the last was answered"
        )
        self.heard.append(inbound)
        self._replies.append(reply)
        return None if inbound.text == "ignored" else len(self.heard) - 1

    async def serve(self, entry_id: int) -> None:
        self.serving += 1
        inbound, reply = self.heard[entry_id], self._replies[entry_id]
        reply.begin(ListRecord())
        reply.show("half an ans")
        await asyncio.sleep(0)
        answer = Answer(text=f"You said **{inbound.text}**.") if self._answer is None else None
        if self._answer is not None:
            answer = await self._answer(inbound, reply)
        assert answer is not None
        with suppress(DeliveryError):
            await reply.finish(answer)
        self.serving -= 1
        self.has_answered.set()

    async def migrate_group(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        raise AssertionError("a terminal never moves")


async def through_pipe(home: Path, raw: bytes, sink: Parrot) -> str:
    """What a program at the other end of two pipes gets for its lines."""
    (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()
    os.write(in_write, raw)
    os.close(in_write)
    with (
        os.fdopen(in_read) as stdin,
        os.fdopen(out_write, "w") as stdout,
        os.fdopen(out_read, "rb") as output,
    ):
        terminal = Terminal(home=home, clock=SteadyClock(), stdin=stdin, stdout=stdout)
        await terminal.open()
        async with asyncio.timeout(10):
            await terminal.listen(sink, SPECS)
        await terminal.close()
        stdout.close()
        return output.read().decode()


@pytest.mark.parametrize(
    ("language", "shell", "description"),
    [
        ("de", "en_GB.UTF-8", "Findet"),
        ("", "pt_PT.UTF-8", "Encontra"),
        ("", "nl_NL.UTF-8", "Find"),
        ("", "C.UTF-8", "Find"),
    ],
)
def test_commands_of_the_prompt_are_described_in_the_language_of_the_person(
    monkeypatch: pytest.MonkeyPatch, language: str, shell: str, description: str
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", shell)
    translations = {"de": "Findet", "pt-BR": "Encontra"}
    spec = CommandSpec(name="recall", description="Find", translations=translations)
    assert describe_commands([spec], language) == {"recall": description}


async def test_piped_terminal_chat_prints_exactly_one_answer_per_input_line(home: Path) -> None:
    sink = Parrot()
    out = await through_pipe(home, b"hello\n\n  \r\nhow are you?\r\nlast without end", sink)
    assert out == "You said hello.\nYou said how are you?.\nYou said last without end.\n"
    first = sink.heard[0]
    assert first.address == ADDRESS
    assert first.address.key == "terminal:local"
    assert first.scope == Scope.account("terminal", "local")
    assert (first.is_direct, first.is_addressed, first.sender.id, first.kind) == (
        True,
        True,
        "local",
        "message",
    )
    assert len({inbound.message_id for inbound in sink.heard}) == 3


async def test_overlong_terminal_line_is_cut_before_it_is_parsed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.terminal.adapter.TEXT_CHARS", 100)
    sink = Parrot()
    await through_pipe(home, b"/recall " + b"a" * 3_000 + b"\nhello\n", sink)
    first, second = sink.heard
    assert (first.text, second.text) == (f"/recall {'a' * 92} […]", "hello")
    assert first.command == Command(name="recall", arguments=f"{'a' * 92} […]")


async def test_piped_terminal_chat_prints_buttons_as_commands_to_type(home: Path) -> None:
    buttons = (
        Button(label="More", command=Command(name="recall", arguments="page:2 ferry\x1b[2J")),
        Button(label="Help", command=Command(name="help")),
    )
    sink = Parrot(
        lambda inbound, reply: _ready(
            Answer(text="| | Title |\n|--|--|\n| 1 | *Trip* |", buttons=buttons)
        )
    )
    out = await through_pipe(home, b"/recall ferry\n", sink)
    assert out.splitlines()[:3] == ["  | Title", "--+------", "1 | Trip"]
    assert out.splitlines()[3].startswith("More: /recall page:2 ferry")
    assert "\x1b" not in out
    assert out.endswith("\nHelp: /help\n")


async def test_terminal_line_that_begins_with_a_slash_and_a_name_is_a_command(home: Path) -> None:
    sink = Parrot()
    await through_pipe(
        home, b"/Recall  Porto  in May \n/new\n/etc/hosts is odd\n/\n// no\n/tmp\n", sink
    )
    commands = [inbound.command for inbound in sink.heard]
    assert commands == [
        Command(name="recall", arguments="Porto  in May"),
        Command(name="new"),
        None,
        None,
        None,
        Command(name="tmp"),
    ]
    assert sink.heard[0].text == "/Recall  Porto  in May "


async def test_quit_command_in_piped_input_leaves_later_lines_unread(home: Path) -> None:
    sink = Parrot()
    assert await through_pipe(home, b"one\n/quit\ntwo\n", sink) == "You said one.\n"
    assert [inbound.text for inbound in sink.heard] == ["one"]


async def test_line_that_is_not_admitted_gets_no_answer_in_the_terminal(home: Path) -> None:
    assert await through_pipe(home, b"ignored\nnext\n", Parrot()) == "You said next.\n"


async def test_broken_bytes_at_the_terminal_become_text(home: Path) -> None:
    sink = Parrot()
    raw = (
        b"\xef\xbb\xbffirst\n\xff\xfe broken\n\xed\xa0\x80 surrogate\nnul \x00 here\n"
        + "grüße 🎉\n".encode()
    )
    out = await through_pipe(home, raw, sink)
    texts = [inbound.text for inbound in sink.heard]
    assert texts[0] == "first"
    assert texts[4] == "grüße 🎉"
    assert all(text.encode() for text in texts)
    assert "You said grüße 🎉." in out


async def test_no_answer_drives_the_terminal_behind_a_pipe(home: Path) -> None:
    out = await through_pipe(home, "a\x1b[2Jb \u202ec\x9b1m\n".encode(), Parrot())
    assert out == "You said a[2Jb c1m.\n"


async def test_terminal_line_of_300_000_characters_is_one_message(home: Path) -> None:
    sink = Parrot()
    (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()
    with os.fdopen(in_read) as stdin, os.fdopen(out_write, "w") as stdout, os.fdopen(out_read):
        terminal = Terminal(home=home, clock=SteadyClock(), stdin=stdin, stdout=stdout)
        sink = Parrot(lambda inbound, reply: _ready(Answer(text="long")))
        await terminal.open()
        listening = asyncio.create_task(terminal.listen(sink, SPECS))
        await asyncio.to_thread(_write_all, in_write, b"x" * 300_000 + b"\n")
        async with asyncio.timeout(10):
            await listening
    assert [len(inbound.text) for inbound in sink.heard] == [300_000]


def _write_all(descriptor: int, raw: bytes) -> None:
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(raw)


async def _ready(answer: Answer) -> Answer:
    return answer


async def test_terminal_chat_reads_from_and_writes_to_regular_files_and_dev_null(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "in").write_text("from a file\n")
    for name, expected in ((tmp_path / "in", "You said from a file.\n"), (Path(os.devnull), "")):
        with name.open() as stdin, (tmp_path / "out").open("w+") as stdout:
            terminal = Terminal(home=home, clock=SteadyClock(), stdin=stdin, stdout=stdout)
            async with asyncio.timeout(10):
                await terminal.open()
                await terminal.listen(Parrot(), SPECS)
            assert (tmp_path / "out").read_text() == expected


async def test_terminal_chat_stops_when_its_output_pipe_is_closed(home: Path) -> None:
    (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()
    os.close(out_read)
    os.write(in_write, b"one\ntwo\n")
    sink = Parrot()
    with os.fdopen(in_read) as stdin, os.fdopen(out_write, "w") as stdout, os.fdopen(in_write, "w"):
        terminal = Terminal(home=home, clock=SteadyClock(), stdin=stdin, stdout=stdout)
        async with asyncio.timeout(10):
            await terminal.open()
            await terminal.listen(sink, SPECS)
    assert [inbound.text for inbound in sink.heard] == ["one"]


async def test_terminal_listening_can_be_cancelled_while_it_waits_for_input(home: Path) -> None:
    (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()
    with (
        os.fdopen(in_read) as stdin,
        os.fdopen(out_write, "w") as stdout,
        os.fdopen(in_write, "w"),
        os.fdopen(out_read),
    ):
        terminal = Terminal(home=home, clock=SteadyClock(), stdin=stdin, stdout=stdout)
        await terminal.open()
        listening = asyncio.create_task(terminal.listen(Parrot(), SPECS))
        await asyncio.sleep(0)
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening


async def test_terminal_chat_saves_files_in_the_home_without_overwriting_any(home: Path) -> None:
    file = File(name="../../evil name.txt", content=b"data")
    sink = Parrot(lambda inbound, reply: _ready(Answer(text="Here.", files=(file,))))
    out = await through_pipe(home, b"a\nb\n", sink)
    kept = sorted((home / "files").iterdir())
    assert len(kept) == 2
    assert all(
        path.read_bytes() == b"data" and path.stat().st_mode & 0o777 == 0o600 for path in kept
    )
    assert all(str(path) in out for path in kept)


@asynccontextmanager
async def screen(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    sink: Parrot,
    is_incognito: Callable[[Address], bool] = lambda _: False,
) -> AsyncIterator[tuple[Tty, Terminal]]:
    """A person at a terminal: what is typed goes into a tty, `Tty.sees` waits for what is
    painted."""
    monkeypatch.setenv("PROMPT_TOOLKIT_NO_CPR", "1")
    monkeypatch.setenv("TERM", "xterm")
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    with os.fdopen(slave, "r+b", buffering=0) as opened:
        stdin, stdout = (
            open(opened.fileno(), closefd=False),  # noqa: ASYNC230, SIM115
            open(opened.fileno(), "w", closefd=False),  # noqa: ASYNC230, SIM115
        )
        terminal = Terminal(
            home=home, clock=SteadyClock(), stdin=stdin, stdout=stdout, is_incognito=is_incognito
        )
        await terminal.open()
        tty = Tty(master)
        await terminal.open()
        listening = asyncio.create_task(terminal.listen(sink, SPECS))
        try:
            async with asyncio.timeout(30):
                yield tty, terminal
                await listening
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            tty.close()


class Tty:
    """The other end of a terminal."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._painted = ""
        self._news = asyncio.Event()
        asyncio.get_running_loop().add_reader(master, self._read)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    async def sees(self, text: str) -> str:
        """Wait until a text has been painted since the last one, and return what is before it."""
        try:
            while text not in self._painted:
                self._news.clear()
                await self._news.wait()
        except asyncio.CancelledError:
            raise AssertionError(f"{text!r} was not painted, but {self._painted!r}") from None
        before, _, self._painted = self._painted.partition(text)
        return before

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._master)

    def _read(self) -> None:
        self._painted += os.read(self._master, 65536).decode(errors="replace")
        self._news.set()


async def test_interactive_terminal_shows_a_prompt_and_rendered_answers_and_keeps_no_codes(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    button = Button(label="Go on", command=Command(name="sessions", arguments="3"))
    sink = Parrot(
        lambda inbound, reply: _ready(Answer(text="**Bold** \x1b]0;title\x07", buttons=(button,)))
    )
    async with screen(home, monkeypatch, sink) as (tty, _):
        await tty.sees("/help lists")
        await tty.sees(PROMPT)
        tty.type("hello\r")
        await tty.sees("Bold")
        await tty.sees("Go on: /sessions 3")
        assert "\x1b]0;" not in tty._painted
        await tty.sees(PROMPT)
        tty.type("/approve SECRET99\r")
        await tty.sees("Bold")
        await tty.sees(PROMPT)
        tty.type("\x04")
    assert [inbound.text for inbound in sink.heard] == ["hello", "/approve SECRET99"]
    history = home / "terminal_history"
    assert "hello" in history.read_text()
    assert "SECRET99" not in history.read_text()
    assert history.stat().st_mode & 0o777 == 0o600


async def test_interactive_terminal_shows_addresses_with_data_in_full_and_not_behind_a_word(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "[tea](https://e.example/?q=walrus), ![](https://e.example/?q=plan), <https://e.example/a>."
    )
    sink = Parrot(lambda inbound, reply: _ready(Answer(text=text)))
    async with screen(home, monkeypatch, sink) as (tty, _):
        await tty.sees(PROMPT)
        tty.type("hello\r")
        await tty.sees("tea (https://e.example/?q=walrus)")
        await tty.sees("(https://e.example/?q=plan)")
        await tty.sees("https://e.example/a")
        await tty.sees(PROMPT)
        tty.type("\x04")


async def test_a_line_typed_incognito_is_not_in_the_history(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Parrot()
    async with screen(home, monkeypatch, sink, lambda _: bool(sink.heard)) as (tty, _):
        await tty.sees(PROMPT)
        for line in ("begin", "quetzal"):
            tty.type(f"{line}\r")
            await tty.sees("You said")
            await tty.sees(PROMPT)
        tty.type("\x04")
    assert [inbound.text for inbound in sink.heard] == ["begin", "quetzal"]
    history = (home / "terminal_history").read_text()
    assert "begin" in history
    assert "quetzal" not in history


async def test_pasted_lines_in_the_terminal_become_one_message(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Parrot()
    async with screen(home, monkeypatch, sink) as (tty, _):
        await tty.sees(PROMPT)
        tty.type("\x1b[200~first\nsecond\x1b[201~\r")
        await tty.sees("You said")
        await tty.sees(PROMPT)
        tty.type("/quit\r")
    assert [inbound.text for inbound in sink.heard] == ["first\nsecond"]


async def test_control_c_in_the_terminal_cancels_the_answer_and_keeps_the_typed_text(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = asyncio.Event()

    async def answer(inbound: Inbound, reply: Reply) -> Answer:
        if inbound.command is None and not stopped.is_set():
            await stopped.wait()
            return Answer(text="cut short")
        stopped.set()
        # The stopped answer ends first, and everything that waits for its end goes on.
        await sink.has_answered.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        return Answer(text="done stopping")

    sink = Parrot(answer)
    async with screen(home, monkeypatch, sink) as (tty, _):
        await tty.sees(PROMPT)
        tty.type("tell me everything\r")
        await tty.sees("half an ans")
        tty.type("next\x03")
        await tty.sees("cut short")
        await tty.sees("done stopping")
        await tty.sees("next")
        tty.type("\r")
        await tty.sees(PROMPT)
        tty.type("\x04")
    assert [inbound.text for inbound in sink.heard] == ["tell me everything", "/stop", "next"]


async def test_line_of_the_tool_at_work_is_erased_before_the_answer_is_printed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_seen = asyncio.Event()

    async def answer(inbound: Inbound, reply: Reply) -> Answer:
        terminal.show_tools(["ferry_search"])
        await is_seen.wait()
        return Answer(text="The ferry leaves at nine.")

    async with screen(home, monkeypatch, Parrot(answer)) as (tty, terminal):
        await tty.sees(PROMPT)
        tty.type("when does the ferry leave?\r")
        await tty.sees("using ferry_search")
        is_seen.set()
        before_answer = await tty.sees("The ferry leaves at nine.")
        # The cursor goes up to the line and erases it.
        assert "\x1b[1A\x1b[2K" in before_answer.rpartition("ferry_search")[2]
        assert "ferry_search" not in await tty.sees(PROMPT)
        tty.type("\x04")


async def test_first_interrupt_at_an_empty_prompt_warns_and_the_second_leaves_with_a_word(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with screen(home, monkeypatch, Parrot()) as (tty, _):
        await tty.sees(PROMPT)
        tty.type("\x03")
        await tty.sees("Press Ctrl-C again to leave.")
        await tty.sees(PROMPT)
        tty.type("\x03")
        await tty.sees("See you.")


async def test_a_reminder_is_printed_above_the_prompt(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with screen(home, monkeypatch, Parrot()) as (tty, terminal):
        await tty.sees(PROMPT)
        tty.type("half a li")
        await tty.sees("li")
        reply = terminal.reply(ADDRESS)
        reply.begin(ListRecord())
        await reply.finish(Answer(text="Call Ana"))
        await tty.sees("Call Ana")
        await tty.sees("half a li")
        tty.type("\x03")
        await tty.sees(PROMPT)
        tty.type("\x04")
