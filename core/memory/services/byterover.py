"""ByteRover: its program `brv` on this machine, which makes Markdown files of what it is told, by a model you choose.

Each scope has a tree of its own, in a folder that `brv` is started in; it searches there without a model. Which files
came of what stands in a `Ledger`, since `brv` has no command that deletes: what is forgotten is taken out of the tree.
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
from dataclasses import dataclass, field, replace
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from config.files import Secret
from config.settings import passed_on
from core.errors import ConfigError, DeliveryError, Refused
from core.guard.guard import Arguments, service_text, tool_of
from core.memory import http
from core.memory.http import ANSWER_BYTES, SEARCH, objects, text_of
from core.memory.service import PROMPTS, AskedOptions, Entry, Found, RemoteService, Told
from core.memory.services._byterover_tree import Ledger, Tree, read_object
from core.text.normalize import words_of
from core.text.terms import query_terms, telling_words, terms_of
from core.types import Tool, ToolContext

TOLD_BYTES = 100_000
"""Of one argument of a program; Linux takes 128 KiB."""
MOST_FOUND = 50
"""As brv gives at most; of fewer, what it has shown often leaves nothing else."""
LOG_ENTRIES = 50
GRACE_S = 1.5
"""For its server to end by itself."""
PASSED_ON = ("PATH", "LANG", "TZ", "HTTPS_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS")
_WRONG_KEY = re.compile(r"\b40[13]\b|unauthori[sz]ed|api[ _-]?key", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Options(AskedOptions):
    url: str = field(metadata={"help": "an OpenAI-compatible server for the model that brv keeps things by"})
    model: str = field(metadata={"help": "that model"})
    key: Secret = field(default=Secret(""), metadata={"help": "the key of that server", "ask": True})
    brv_path: str = field(default="brv", metadata={"help": "the program, or where it lies"})
    account_url: str = field(default="", metadata={"help": "where brv looks for its account service, if elsewhere"})


class ByteRover(RemoteService):
    name = "byterover"
    options = Options
    search_tool, add_tool, ask_tool = "brv_search", "brv_curate", "brv_query"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        if not options.url.startswith(("http://", "https://")) or not options.model.strip():
            raise ConfigError("byterover needs the url of a model server, like http://127.0.0.1:11434/v1, and a model.")
        found = shutil.which(os.path.expanduser(options.brv_path))
        if found is None:
            raise ConfigError(
                "byterover needs its program brv: `npm install --global byterover-cli` (Node.js 20 or later), or set "
                "brv_path to where it lies."
            )
        self._brv, self._options = found, options
        self._home: Path | None = None
        self._is_connected = False
        self._calls: set[asyncio.Task[bytes]] = set()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def initialize(self, folder: Path) -> None:
        await super().initialize(folder)
        self._home = folder
        # One that a crash has left knows the options of then.
        await self._end_server()

    async def shutdown(self) -> None:
        for call in self._calls:
            if not call.cancelling():
                call.cancel()
        if self._calls:
            await asyncio.wait(self._calls, timeout=GRACE_S)
        if self._home is not None:
            await self._end_server()

    async def probe(self) -> str:
        if self._home is not None:
            return await self._about(self._home)
        with TemporaryDirectory(prefix="mneme-brv-", ignore_cleanup_errors=True) as name:
            self._home = Path(name)
            try:
                return await self._about(self._home)
            finally:
                await self._end_server()
                self._home, self._is_connected = None, False

    async def _about(self, folder: Path) -> str:
        status = await self._run(folder, "status")
        await self._connect(folder)
        if not (version := text_of(status, "cliVersion")):
            raise DeliveryError("brv does not say which version it is")
        return f"byterover {version}, brv on this machine; search without a model, files by {self._options.model}"

    async def find(self, space: str, query: str, limit: int) -> Sequence[Found]:
        tree, asked = self._tree(space), _any_of(query)
        if not tree.is_there or not asked:
            return []
        answer = await self._run(tree.folder, "search", "--limit", str(MOST_FOUND), text=asked, limit_s=SEARCH.total_s)
        found = []
        for one in objects(answer, "results"):
            # What it has in mind may be gone from the tree.
            path = text_of(one, "path")
            if (said := tree.said(path)) is not None:
                found.append(Found(id=path, text=said[0], at=said[1]))
        return _ranked(query, found)[:limit]

    async def keep(self, space: str, told: Told) -> Sequence[str]:
        if len(told.text.encode()) > TOLD_BYTES:
            raise Refused(f"what brv is to be told is over {TOLD_BYTES:,} bytes long")
        async with self._locks[space]:
            tree = self._tree(space)
            tree.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            ledger = Ledger(tree)
            if told.is_again and await self._arrived(ledger, told):
                ledger.finish(told.key)
                return ()
            await self._connect(tree.folder)
            ledger.begin(told.key)
            try:
                answer = await self._run(tree.folder, "curate", text=told.text)
            except _Failed:
                # It has ended, so that nothing more comes of it.
                ledger.finish(told.key)
                raise
            if text_of(answer, "status") != "completed":
                raise DeliveryError("brv does not say that it has kept it")
            ledger.finish(told.key)
        return ()

    async def erase(self, entry: Entry) -> None:
        tree = self._tree(entry.space)
        async with self._locks[entry.space]:
            if tree.folder.is_dir():
                # It holds what it has read, and may still be at what it was told last.
                await self._end_server()
                Ledger(tree).take_out(entry.key)
                self._drop_history(tree)

    async def holds(self, entry: Entry) -> bool:
        tree = self._tree(entry.space)
        return tree.folder.is_dir() and bool(Ledger(tree).files_of(entry.key))

    async def tools(self) -> Sequence[Tool]:
        return [*await super().tools(), tool_of("brv_status", Arguments, self._status, PROMPTS)]

    async def ask(self, space: str, query: str) -> str:
        """What its model answers, out of the tree of the space."""
        tree = self._tree(space)
        if not tree.is_there:
            return ""
        await self._connect(tree.folder)
        return text_of(await self._run(tree.folder, "query", text=query), "result")

    async def _status(self, _: Arguments, context: ToolContext) -> str:
        kept = sum(len(self._tree(self.space(scope)).marks()) for scope in context.scopes)
        return f"{service_text(self.name, await self.probe())}. It has {kept} files of this conversation's people."

    async def _arrived(self, ledger: Ledger, told: Told) -> bool:
        """Whether an earlier try has; its program may have been ended while its server went on."""
        if (since := ledger.begun.get(told.key)) is not None:
            entries = await self._run(ledger.tree.folder, "curate", "view", "--limit", str(LOG_ENTRIES))
            for one in objects(entries):
                started = one.get("startedAt")
                if not isinstance(started, int) or started < since or one.get("input") != {"context": told.text}:
                    continue
                if one.get("status") == "processing" and 0 < self._server()[1] <= started:
                    raise DeliveryError("brv is still at it", retry_after_s=5.0)
                if one.get("status") == "completed":
                    return True
        return bool(ledger.files_of(told.key))

    async def _connect(self, folder: Path) -> None:
        """Tells brv its model, whose server it asks. The key goes by the environment, where nobody else sees it."""
        if not self._is_connected:
            server = ("openai-compatible", "--base-url", self._options.url, "--model", self._options.model)
            try:
                await self._run(folder, "providers", "connect", *server)
            except _Failed as error:
                if error.is_permanent:
                    raise
                raise _Failed("brv cannot reach its model: does its server run, and is its url right?") from error
            self._is_connected = True

    def _tree(self, space: str) -> Tree:
        assert self._home is not None
        return Tree(self._home, space)

    def _drop_history(self, tree: Tree) -> None:
        """What brv was told and asked also stands in its logs; it makes them anew."""
        assert self._home is not None
        for path in tree.state.iterdir() if tree.state.is_dir() else ():
            if path not in (tree.root, tree.state / "config.json"):
                _remove(path)
        projects = self._home / "data" / "projects"
        known = read_object(self._home / "data" / "registry.json").get("projects")
        for folder, project in known.items() if isinstance(known, dict) else ():
            storage = Path(text_of(project, "storagePath") or projects)
            if Path(folder).name == tree.folder.name and storage.parent == projects:
                _remove(storage)

    async def _run(self, folder: Path, *words: str, text: str | None = None, limit_s: float | None = None) -> Any:
        """The data of its last line. Raises DeliveryError."""
        limit_s = limit_s or http.WRITE.total_s
        command = [self._brv, *words, "--format", "json", *(() if text is None else ("--", text))]
        try:
            async with asyncio.timeout(limit_s):
                call = asyncio.create_task(_output(command, folder, self._environ()))
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)
                output = await call
        except TimeoutError as error:
            more = "" if self._options.account_url else ": without internet it needs account_url"
            raise DeliveryError(f"brv gave no answer within {limit_s:g} s{more}") from error
        except OSError as error:
            raise DeliveryError(f"brv cannot be run ({type(error).__name__})") from error
        answer = _decoded(output)
        data = answer.get("data")
        if answer.get("success") is not True:
            is_key = bool(_WRONG_KEY.search(text_of(data, "error", "message")))
            raise _Failed("byterover: the key is not accepted" if is_key else "brv has failed", is_permanent=is_key)
        return data

    def _environ(self) -> Mapping[str, str]:
        assert self._home is not None
        ours = {
            "HOME": str(self._home),
            "BRV_DATA_DIR": str(self._home / "data"),
            "BRV_DISABLE_AUTOUPDATE": "1",
            "NO_UPDATE_NOTIFIER": "1",
            "OPENAI_COMPATIBLE_API_KEY": self._options.key.value,
            "BRV_IAM_BASE_URL": self._options.account_url,
        }
        return passed_on(PASSED_ON) | {name: value for name, value in ours.items() if value}

    def _server(self) -> tuple[int, int]:
        """Number of the process that brv leaves behind, and since when it runs, in ms; 0 where there is none."""
        assert self._home is not None
        told = read_object(self._home / "data" / "daemon.json")
        pid, since = told.get("pid"), told.get("startedAt")
        return (pid, since) if isinstance(pid, int) and pid > 1 and isinstance(since, int) else (0, 0)

    async def _end_server(self) -> None:
        pid, _ = self._server()
        if not pid or not await _is_server(pid):
            return
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)
            until = time.monotonic() + GRACE_S
            while time.monotonic() < until:
                await asyncio.sleep(0.05)
                os.kill(pid, 0)
            # It leads a group of its own, with what works for it.
            os.killpg(pid, signal.SIGKILL)


def _any_of(question: str) -> str:
    """Its words as brv finds files with any of them. Words with spaces between them should all stand in one file: from
    fifty files on it gives nothing for a question of which one, with its question mark, stands in none."""
    words = words_of(question.lower())
    return ",".join(telling_words(words) or words)


def _ranked(question: str, found: Sequence[Found]) -> Sequence[Found]:
    """By the terms of a question that they have, the rarer the better; of two alike the newer first. brv itself puts
    first what it has shown most often, which with each search crowds out what fits."""
    terms = [frozenset(terms_of(one.text)) for one in found]
    known = {term: sum(term in one for one in terms) for term in query_terms(question)}
    weights = {term: log(1 + len(found) / count) for term, count in known.items() if count}
    if not weights:
        return found
    scores = [sum(weights[term] for term in weights.keys() & one) for one in terms]
    scored = [replace(one, score=score) for one, score in zip(found, scores, strict=True)]
    return sorted(scored, key=lambda one: (one.score, one.at), reverse=True)


class _Failed(DeliveryError):
    """brv says itself that it has failed."""


async def _output(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> bytes:
    """What a program prints. It is ended with all that it has started and not sent away when nobody waits any more."""
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *command, cwd=folder, env=environ, stdin=nothing, stdout=pipe, stderr=nothing, start_new_session=True
        )
    )
    output = bytearray()
    try:
        # One that is cancelled while it starts would be lost.
        process = await asyncio.shield(starting)
        assert process.stdout is not None
        while piece := await process.stdout.read(65_536):
            output += piece
            if len(output) > ANSWER_BYTES:
                raise DeliveryError(f"brv answers with over {ANSWER_BYTES:,} bytes")
        await process.wait()
    finally:
        process = await starting
        if process.returncode is None and process.stdout is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            # What it had printed keeps the pipe open.
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_S):
                    while await process.stdout.read(65_536):
                        pass
        # Whoever it has started may hold the pipe still, and asyncio has no other way to let go of it.
        process._transport.close()  # type: ignore[attr-defined]
    return bytes(output)


def _decoded(output: bytes) -> Mapping[str, Any]:
    """It prints one object, or one for each step in a line of its own."""
    lines = output.strip().splitlines()
    for text in (output, lines[-1] if lines else b""):
        with suppress(ValueError, RecursionError):
            if isinstance(answer := json.loads(text), dict):
                return answer
    raise DeliveryError("brv answers with something else than JSON")


async def _is_server(pid: int) -> bool:
    """Whether it is brv's: numbers of processes come again."""
    if (command := _command(pid)) is None and (ps := shutil.which("ps")):
        command = await _output([ps, "-o", "args=", "-p", str(pid)], Path("/"), {})
    return b"brv-server" in (command or b"")


def _command(pid: int) -> bytes | None:
    """How a process was started; None where the system does not show it as Linux does."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b"" if Path("/proc/self").exists() else None


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
