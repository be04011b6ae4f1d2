"""Use ByteRover, the program `brv` on this machine, which stores memories in Markdown files.

A model that you choose writes the files. Searching them doesn't need the model. Each scope has its
own tree of files, in a folder where Mneme runs `brv`. `brv` has no command to delete anything. So a
`Ledger` records which files may contain text from an item, and Mneme erases the item by deleting
these files.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from config.files import Secret
from config.operating_system import read_command_line
from config.variables import select_variables
from core.errors import ConfigError, DeliveryError, Refused, Sentence
from core.guard.guard import clean_service_text
from core.guard.tool_definitions import ToolArguments, build_tool
from core.memory import http
from core.memory.http import ANSWER_BYTES, SEARCH, objects, text_of
from core.memory.service import (
    PROMPT_PACKAGE,
    Entry,
    ReflectionOptions,
    RemoteMemory,
    RemoteService,
    SyncItem,
    rank_by_words,
    setup_option,
)
from core.memory.services._byterover_tree import Ledger, Tree, read_object
from core.text.normalize import to_single_line, words_of
from core.text.terms import content_words
from core.types import Effect, Tool, ToolContext

# The maximum size of an item in bytes. An item is passed as one argument, and Linux allows 128 KiB.
MAX_TEXT_BYTES = 100_000
# The number of results to ask for, which is the most that brv returns. Mneme ranks the results
# itself, because brv prefers files that it returned before.
MAX_MATCHES = 50
MAX_LOG_ENTRIES = 50
# How long the server of brv may take to end before Mneme kills it.
GRACE_S = 1.5
POLL_S = 0.05
READ_BYTES = 65_536
# How much of a log is read for the reason why brv's server doesn't start, and of that reason.
LOG_BYTES = 20_000
REASON_CHARS = 200
# How much earlier than the clock the time of a file may be.
FILE_TIME_S = 1.0
_START_ERROR = re.compile(r"Fatal startup error: (.+)")
# Variables of our environment that are passed to brv.
PASSED_VARIABLES = ("PATH", "LANG", "TZ", "HTTPS_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS")
# The error of a model server that rejects the key, such as "401 Unauthorized" or "invalid API key".
_WRONG_KEY = re.compile(r"\b40[13]\b|unauthori[sz]ed|api[ _-]?key", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Options(ReflectionOptions):
    url: str = field(metadata={"help": "an OpenAI-compatible server for the model that brv uses"})
    model: str = field(metadata={"help": "the name of that model"})
    key: Secret = setup_option(Secret(""), "the key of that server")
    brv_path: str = field(default="brv", metadata={"help": "the program brv, or its path"})
    account_url: str = field(
        default="", metadata={"help": "the account service that brv calls, if it's another one"}
    )


@dataclass(frozen=True, slots=True)
class _Server:
    """The server process that brv leaves running after a command."""

    pid: int
    # In milliseconds.
    started_at: int


class _ProgramError(DeliveryError):
    """Raised if brv runs but reports a failure."""


class ByteRover(RemoteService):
    name = "byterover"
    options = Options
    search_tool = "brv_search"
    add_tool = "brv_curate"
    ask_tool = "brv_query"

    def __init__(self, options: Options) -> None:
        """Check the options and find the program.

        Raises ConfigError if an option is invalid or the program isn't installed.
        """
        super().__init__(options)
        has_url = options.url.startswith(("http://", "https://"))
        if not has_url or not options.model.strip():
            raise ConfigError("memory_model_server", name=self.name)
        self._account_origin = _read_origin(options.account_url)
        program = shutil.which(os.path.expanduser(options.brv_path))
        if program is None:
            raise ConfigError("memory_needs_program")
        self._program = program
        self._options = options
        self._home: Path | None = None
        # Whether brv was configured to use its model.
        self._is_connected = False
        self._calls: set[asyncio.Task[bytes]] = set()
        # The lock of each space, held while the tree of the space changes.
        self._tree_locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def initialize(self, folder: Path) -> None:
        await super().initialize(folder)
        self._home = folder
        # A server that survived a crash of Mneme may have been started with other options.
        await self._end_server()

    async def shutdown(self) -> None:
        for call in self._calls:
            if not call.cancelling():
                call.cancel()
        if self._calls:
            await asyncio.wait(self._calls, timeout=GRACE_S)
        if self._home is not None:
            await self._end_server()

    async def probe(self) -> Sentence:
        """Return the version of brv and the name of its model.

        Raises DeliveryError if brv can't be connected to the model. A connection made earlier isn't
        checked again. Before `initialize`, brv runs in a temporary home.
        """
        if self._home is not None:
            return await self._describe(self._home)
        with TemporaryDirectory(prefix="mneme-brv-", ignore_cleanup_errors=True) as name:
            self._home = Path(name)
            try:
                return await self._describe(self._home)
            finally:
                await self._end_server()
                self._home = None
                self._is_connected = False

    async def _describe(self, folder: Path) -> Sentence:
        """Run brv in this folder, and return the clause for `probe`.

        Raises DeliveryError if brv doesn't work or doesn't report its version.
        """
        status = await self._run(folder, "status")
        await self._connect(folder)
        if not (version := text_of(status, "cliVersion")):
            raise DeliveryError("service_bad_answer", name="brv")
        return Sentence("probe_byterover", {"version": version, "model": self._options.model})

    async def find(self, space: str, query: str, limit: int) -> Sequence[RemoteMemory]:
        """Search the tree of the space with brv, and rank the matching files by their words."""
        tree = self._tree(space)
        query_text = _format_query(query)
        if not tree.exists or not query_text:
            return []
        answer = await self._run(
            tree.folder,
            "search",
            "--limit",
            str(MAX_MATCHES),
            text=query_text,
            timeout_s=SEARCH.total_s,
        )
        memories = []
        for result in objects(answer, "results"):
            path = text_of(result, "path")
            # brv may still return files that were deleted.
            memory = tree.read_memory(path)
            if memory is not None:
                text, updated_at = memory
                memories.append(RemoteMemory(id=path, text=text, at=updated_at))
        # The order of brv isn't used: brv prefers the files that it returned most often, and every
        # search strengthens that preference.
        return rank_by_words(query, memories)[:limit]

    async def keep(self, space: str, item: SyncItem) -> Sequence[str]:
        """Let brv add an item to its files.

        Returns no ids, because the ledger records the files of each item. An item that arrived in
        an earlier attempt isn't sent again. Raises Refused if the item is too long, and
        DeliveryError if brv fails or doesn't confirm the item.
        """
        if len(item.text.encode()) > MAX_TEXT_BYTES:
            raise Refused("service_text_too_long", name="brv", limit=MAX_TEXT_BYTES)
        async with self._tree_locks[space]:
            tree = self._tree(space)
            tree.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            ledger = Ledger(tree)
            if item.is_retry and await self._has_arrived(ledger, item):
                ledger.finish(item.key)
                return ()
            await self._connect(tree.folder)
            ledger.begin(item.key)
            try:
                answer = await self._run(tree.folder, "curate", text=item.text)
            except _ProgramError:
                # brv has ended, so it won't change any more files for this item.
                ledger.finish(item.key)
                raise
            if text_of(answer, "status") != "completed":
                raise DeliveryError("service_not_confirmed", name="brv")
            ledger.finish(item.key)
        return ()

    async def erase(self, entry: Entry) -> None:
        tree = self._tree(entry.space)
        async with self._tree_locks[entry.space]:
            if tree.folder.is_dir():
                # The server caches files, and may still be working on the last item.
                await self._end_server()
                Ledger(tree).take_out(entry.key)
                self._delete_logs(tree)

    async def holds(self, entry: Entry) -> bool:
        tree = self._tree(entry.space)
        return tree.folder.is_dir() and bool(Ledger(tree).files_of(entry.key))

    async def tools(self) -> Sequence[Tool]:
        status = build_tool(
            "brv_status", ToolArguments, self._run_status, PROMPT_PACKAGE, Effect.READ
        )
        return [*await super().tools(), status]

    async def ask(self, space: str, query: str) -> str:
        """Return the answer of brv's model to a question about the tree of the space."""
        tree = self._tree(space)
        if not tree.exists:
            return ""
        await self._connect(tree.folder)
        return text_of(await self._run(tree.folder, "query", text=query), "result")

    async def _run_status(self, _: ToolArguments, context: ToolContext) -> str:
        """Return the version, the model and the number of files as text for the chat model."""
        count = 0
        for scope in context.scopes:
            count += len(self._tree(self.space(scope)).hash_files())
        about = clean_service_text(self.name, str(await self.probe()))
        return f"{about}. It has {count} files of this conversation's people."

    async def _has_arrived(self, ledger: Ledger, item: SyncItem) -> bool:
        """Return whether an earlier attempt stored the item.

        Even if brv was killed during the attempt, its server may have continued. Raises
        DeliveryError while the server is still working on the item.
        """
        begun_at = ledger.unfinished.get(item.key)
        if begun_at is None:
            return bool(ledger.files_of(item.key))
        folder = ledger.tree.folder
        entries = await self._run(folder, "curate", "view", "--limit", str(MAX_LOG_ENTRIES))
        was_begun = False
        for entry in objects(entries):
            started_at = entry.get("startedAt")
            if not isinstance(started_at, int) or started_at < begun_at:
                continue
            if entry.get("input") != {"context": item.text}:
                continue
            was_begun = True
            if entry.get("status") == "completed":
                return True
            if entry.get("status") == "processing":
                server = self._read_server()
                # A server that was started later doesn't continue the work of an earlier one.
                if server is not None and server.started_at <= started_at:
                    raise DeliveryError("service_still_working", name="brv", retry_after_s=5.0)
        # Files that brv changed meanwhile may be those of another item.
        return was_begun and bool(ledger.files_of(item.key))

    async def _connect(self, folder: Path) -> None:
        """Configure the model server that brv uses, unless an earlier call has done so.

        The key is passed in the environment, because other users can see the arguments of a
        process. Raises DeliveryError if brv can't reach the model server.
        """
        if self._is_connected:
            return
        server = ("--base-url", self._options.url, "--model", self._options.model)
        try:
            await self._run(folder, "providers", "connect", "openai-compatible", *server)
        except _ProgramError as error:
            if error.is_permanent:
                raise
            raise _ProgramError("service_program_no_model") from error
        self._is_connected = True

    def _tree(self, space: str) -> Tree:
        assert self._home is not None
        return Tree(self._home, space)

    def _delete_logs(self, tree: Tree) -> None:
        """Delete the logs of brv, which contain items and questions. brv creates them again."""
        assert self._home is not None
        for path in tree.state.iterdir() if tree.state.is_dir() else ():
            if path not in (tree.root, tree.state / "config.json"):
                _delete(path)

        projects_folder = self._home / "data" / "projects"
        projects = read_object(self._home / "data" / "registry.json").get("projects")
        if not isinstance(projects, dict):
            return
        for folder, project in projects.items():
            storage = Path(text_of(project, "storagePath") or projects_folder)
            is_project_of_tree = Path(folder).name == tree.folder.name
            # The registry might name a folder outside of brv's own.
            if is_project_of_tree and storage.parent == projects_folder:
                _delete(storage)

    async def _run(
        self,
        folder: Path,
        *words: str,
        text: str | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """Run brv in a folder with these arguments, and return the data in its output.

        `text` is passed as the last argument. Raises _ProgramError if brv reports a failure, and
        DeliveryError if brv can't be run or doesn't answer in time.
        """
        timeout_s = timeout_s or http.WRITE.total_s
        begun_at = time.time()
        command = [self._program, *words, "--format", "json"]
        if text is not None:
            command += ["--", text]
        try:
            async with asyncio.timeout(timeout_s):
                call = asyncio.create_task(_run_program(command, folder, self._build_environment()))
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)
                output = await call
        except TimeoutError as error:
            raise self._explain_timeout(timeout_s, begun_at) from error
        except OSError as error:
            raise DeliveryError("service_program_unusable", kind=type(error).__name__) from error
        return _read_data(output)

    def _explain_timeout(self, timeout_s: float, begun_at: float) -> DeliveryError:
        """Return the error for a call of brv that timed out. The call began at `begun_at`.

        If the server of brv can't start, brv itself doesn't say so, but waits.
        """
        if reason := self._read_start_error(begun_at):
            return DeliveryError("service_program_start", reason=reason)
        seconds = f"{timeout_s:g}"
        if self._options.account_url:
            return DeliveryError("service_no_answer", name="brv", seconds=seconds)
        return DeliveryError("service_program_offline", seconds=seconds)

    def _read_start_error(self, begun_at: float) -> str:
        """Return why the server of brv has failed to start since a time, or ""."""
        assert self._home is not None
        for path in (self._home / "data" / "logs").glob("server-*.log"):
            with suppress(OSError):
                if path.stat().st_mtime < begun_at - FILE_TIME_S:
                    continue
                with path.open("rb") as log:
                    match = _START_ERROR.search(log.read(LOG_BYTES).decode("utf-8", "replace"))
                if match is not None:
                    return to_single_line(match[1])[:REASON_CHARS]
        return ""

    def _build_environment(self) -> Mapping[str, str]:
        """Return the environment variables of brv.

        brv gets its own home, the key of the model server, and a few of our variables.
        """
        assert self._home is not None
        variables = {
            "HOME": str(self._home),
            "BRV_DATA_DIR": str(self._home / "data"),
            "BRV_DISABLE_AUTOUPDATE": "1",
            "NO_UPDATE_NOTIFIER": "1",
            "OPENAI_COMPATIBLE_API_KEY": self._options.key.value,
            "BRV_IAM_BASE_URL": self._account_origin,
        }
        set_variables = {name: value for name, value in variables.items() if value}
        return select_variables(PASSED_VARIABLES) | set_variables

    def _read_server(self) -> _Server | None:
        """Return the server that brv left running, as recorded in brv's file, or None."""
        assert self._home is not None
        content = read_object(self._home / "data" / "daemon.json")
        pid = content.get("pid")
        started_at = content.get("startedAt")
        if not isinstance(pid, int) or not isinstance(started_at, int):
            return None
        # A signal to 1 would reach the init process, and one to 0 or less a group of processes.
        return _Server(pid, started_at) if pid > 1 else None

    async def _end_server(self) -> None:
        """Stop brv's server. If it doesn't exit in time, kill its process group."""
        server = self._read_server()
        if server is None or not await _is_brv_server(server.pid):
            return
        with suppress(ProcessLookupError, PermissionError):
            os.kill(server.pid, signal.SIGTERM)
            deadline = time.monotonic() + GRACE_S
            while time.monotonic() < deadline:
                await asyncio.sleep(POLL_S)
                # Signal 0 raises ProcessLookupError when the process has ended.
                os.kill(server.pid, 0)
            # The server leads a process group, which contains its workers.
            os.killpg(server.pid, signal.SIGKILL)


def _read_origin(url: str) -> str:
    """Return an address without its path, because brv doesn't start with a path.

    Raises ConfigError if the address is invalid.
    """
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ConfigError("memory_account_url", name="byterover")
    return f"{parts.scheme}://{parts.netloc}"


def _format_query(question: str) -> str:
    """Return the content words of a question, separated by commas.

    brv then finds files that contain any of the words. With spaces between the words, a file must
    contain all of them, so a single unknown word would prevent every match.
    """
    words = words_of(question.lower())
    return ",".join(content_words(words) or words)


async def _run_program(
    command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> bytes:
    """Run a program and return its output.

    If the caller is cancelled, the program's whole process group is killed. Raises DeliveryError if
    the output is too long, and OSError if the program can't be started.
    """
    start = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    )
    output = bytearray()
    try:
        # If this task is cancelled during the start, the shield lets the start finish. `finally`
        # then kills the process.
        process = await asyncio.shield(start)
        assert process.stdout is not None
        while chunk := await process.stdout.read(READ_BYTES):
            output += chunk
            if len(output) > ANSWER_BYTES:
                raise DeliveryError("service_answer_too_long", name="brv", limit=ANSWER_BYTES)
        await process.wait()
    finally:
        await _kill(await start)
    return bytes(output)


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill the process group of a program that is still running, and close the output pipe."""
    try:
        if process.returncode is None and process.stdout is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            # asyncio closes the pipe only after all output was read.
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_S):
                    while await process.stdout.read(READ_BYTES):
                        pass
    finally:
        # Another process that the program started may still have the pipe open, so the reading
        # above may have timed out, or the caller may have been cancelled again. asyncio has no
        # public method to close the pipe.
        process._transport.close()  # type: ignore[attr-defined]


def _read_data(output: bytes) -> Any:
    """Return the data in the output of brv. Raises _ProgramError if brv reports a failure."""
    answer = _decode_output(output)
    data = answer.get("data")
    if answer.get("success") is True:
        return data
    if _WRONG_KEY.search(text_of(data, "error", "message")):
        raise _ProgramError("service_key_refused", name="byterover", is_permanent=True)
    raise _ProgramError("service_program_failed")


def _decode_output(output: bytes) -> Mapping[str, Any]:
    """Return the JSON object in the output of brv, or the last object if there are several.

    brv prints one object, or a line with an object for each step. Raises DeliveryError if the
    output contains neither.
    """
    lines = output.strip().splitlines()
    for text in (output, lines[-1] if lines else b""):
        with suppress(ValueError, RecursionError):
            answer = json.loads(text)
            if isinstance(answer, dict):
                return answer
    raise DeliveryError("service_bad_json", name="brv")


async def _is_brv_server(pid: int) -> bool:
    """Return whether the process with this id is a server of brv.

    If the server has ended, the system may have given its id to another process.
    """
    return "brv-server" in await asyncio.to_thread(read_command_line, pid)


def _delete(path: Path) -> None:
    """Delete a file, a link, or a folder with everything in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
