"""The server of hindsight with a PostgreSQL of its own, on this machine and on loopback: made, started and stopped.

It runs while it holds the lock on its pid file, which the system takes from it however it ends. What it prints goes to
a process beside it, which keeps the last of it. PostgreSQL does not run as root: it is nobody's then.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field, fields
from http.client import HTTPException
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import IO, Any
from urllib.request import ProxyHandler, build_opener

from config.files import Secret
from config.masking import masked
from core.errors import ConfigError

PACKAGE = "hindsight-api-slim[embedded-db]==1.1.0"
EMBEDDING = "text-embedding-3-small"
HOST, LOG_BYTES, LINE_CHARS = "127.0.0.1", 1_000_000, 10_000
START_S, END_S, ASK_S, POLL_S = 180.0, 30.0, 2.0, 0.1
FIXED = {
    "EMBEDDINGS_PROVIDER": "openai",
    "RERANKER_PROVIDER": "rrf",
    "LOG_LEVEL": "warning",
    "MCP_ENABLED": "false",
    "WORKER_ID": "mneme",
}
GUARDED = {"TENANT_EXTENSION": "hindsight_api.extensions.builtin.tenant:ApiKeyTenantExtension"}
# What a crash of the machine must not cost; and what people say is not for a log, of which a week is kept.
POSTGRES = "fsync=on log_filename=postgresql-%a.log log_truncate_on_rotation=on log_min_error_statement=panic"
NOT_AS_ROOT = (
    "PostgreSQL does not run as root, and the user nobody does not see into your home. Run Mneme as a user of its own, "
    "or name a folder that PostgreSQL may have: --set data=/var/lib/mneme-hindsight"
)
_QUIET = subprocess.DEVNULL


def _about(words: str, variable: str = "") -> dict[str, str]:
    return {"help": words, "variable": variable}


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    llm_url: str = field(metadata=_about("an OpenAI-compatible server for its model", "LLM_BASE_URL"))
    llm_model: str = field(metadata=_about("the model there", "LLM_MODEL"))
    llm_key: Secret = field(default=Secret("none"), metadata=_about("the key of that server", "LLM_API_KEY"))
    llm_provider: str = field(default="openai", metadata=_about("what hindsight calls such a server", "LLM_PROVIDER"))
    embedder_url: str = field(metadata=_about("such a server for embeddings", "EMBEDDINGS_OPENAI_BASE_URL"))
    embedder_model: str = field(default=EMBEDDING, metadata=_about("the model there", "EMBEDDINGS_OPENAI_MODEL"))
    embedder_key: Secret = field(default=Secret("none"), metadata=_about("its key", "EMBEDDINGS_OPENAI_API_KEY"))
    key: Secret = field(
        default=Secret(""), metadata=_about("what it asks for: the key of the memory", "TENANT_API_KEY")
    )
    port: int = field(default=8888, metadata=_about("where it listens, on 127.0.0.1"))
    program: str = field(default="", metadata=_about("hindsight-api, if that is here already"))
    data: str = field(default="", metadata=_about("a folder for PostgreSQL, instead of one in the home"))

    def variables(self) -> dict[str, str]:
        """As the server reads them."""
        given = {one.metadata["variable"]: getattr(self, one.name) for one in fields(self) if one.metadata["variable"]}
        words = {name: value.value if isinstance(value, Secret) else value for name, value in given.items()}
        words |= FIXED | (GUARDED if self.key.value else {})
        return {f"HINDSIGHT_API_{name}": word for name, word in words.items() if word}


class Engine:
    """`program` is hindsight-api; without one the environment in the home has it, once it is installed."""

    def __init__(self, home: Path, program: str = "") -> None:
        self._folder = home / "engines" / "hindsight"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file, self._log = self._folder / "server.pid", self._folder / "server.log"
        self.environment = self._folder / "environment"
        self._program = Path(program).expanduser() if program else self.environment / "bin" / "hindsight-api"
        self.is_installed = bool(program) or (self.environment / "ready").exists()

    def install(self) -> None:
        pip = [str(self.environment / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        for command in ([sys.executable, "-m", "venv", "--clear", str(self.environment)], [*pip, PACKAGE]):
            if subprocess.run(command, stdin=_QUIET).returncode:
                raise ConfigError(f"{PACKAGE} could not be installed; the lines above say why.")
        (self.environment / "ready").touch()

    def start(self, options: EngineOptions) -> None:
        """Returns when it answers. Raises ConfigError, OSError."""
        with self._file.open("a+b") as file:
            if not _locks(file):
                raise ConfigError(self.status())
            self._stop_postgres()
            if os.geteuid() == 0 and not options.data:
                raise ConfigError(NOT_AS_ROOT)
            try:
                _free_port(options.port)
            except (OSError, OverflowError) as error:
                raise ConfigError(f"Port {options.port} is not free; name another with --set port=8889.") from error
            data = Path(options.data).expanduser().absolute() if options.data else self._folder / "postgres"
            _write(file, 0, options.port, data)
            try:
                server = self._begin(options, self._start_postgres(data), file)
                _write(file, server.pid, options.port, data)
                self._wait(server, options.port)
            except BaseException:
                self._stop_postgres()
                raise

    def _begin(self, options: EngineOptions, database: str, file: IO[bytes]) -> subprocess.Popen[Any]:
        # It looks for settings of its own in the folders above, up to the first such file.
        (self._folder / ".env").touch()
        keep: Any = {"cwd": self._folder, "start_new_session": True}
        keeper = [sys.executable, "-m", "gateway.cli.engine", str(self._log)]
        command = [str(self._program), "--host", HOST, "--port", str(options.port)]
        variables = _environ(self._folder) | options.variables() | {"HINDSIGHT_API_DATABASE_URL": database}
        reading, out = os.pipe()
        with os.fdopen(reading), os.fdopen(out):
            subprocess.Popen(keeper, stdin=reading, stdout=_QUIET, stderr=_QUIET, **keep)
            streams: Any = {"stdin": _QUIET, "stdout": out, "stderr": out, "pass_fds": [file.fileno()]}
            return subprocess.Popen(command, env=variables, **streams, **keep)

    def _wait(self, server: subprocess.Popen[Any], port: int) -> None:
        """Until it answers; it is ended where it does not, or nobody waits any more."""
        until = time.monotonic() + START_S
        try:
            while _asked(port, "health") is None:
                if server.poll() is not None or time.monotonic() > until:
                    raise ConfigError(f"hindsight did not start; {self._log} says why.")
                time.sleep(POLL_S)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            raise

    def stop(self) -> bool:
        """False where there was nothing of it. Raises ConfigError."""
        pid, *_ = self._state()
        numbers = iter((signal.SIGTERM, signal.SIGKILL))
        until = 0.0
        was_running = is_running = self._is_running()
        while is_running:
            if time.monotonic() > until:
                number = next(numbers, None)
                if number is None or pid == 0:
                    raise ConfigError("hindsight is just being started, or does not end.")
                os.killpg(pid, number)
                until = time.monotonic() + END_S
            time.sleep(POLL_S)
            is_running = self._is_running()
        return self._stop_postgres() or was_running

    def status(self) -> str:
        pid, port, data = self._state()
        if not self._is_running():
            is_left = _postmaster(data) != 0
            return "hindsight does not run" + (", but its PostgreSQL does; stop ends that." if is_left else ".")
        where = f"at http://{HOST}:{port} (process {pid}, log {self._log})"
        if (answer := _asked(port, "version")) is None:
            return f"hindsight runs {where}, but does not answer."
        size = _memory_mb({pid, _postmaster(data)} - {0})
        return f"hindsight {answer.get('api_version')} runs {where}{f' with {size} MB of memory' if size else ''}."

    def _is_running(self) -> bool:
        with self._file.open("a+b") as file:
            return not _locks(file)

    def _state(self) -> tuple[int, int, Path]:
        """Process, port, and folder of PostgreSQL, as they were last."""
        with contextlib.suppress(OSError, ValueError):
            pid, port, data = self._file.read_text().split("\n", 2)
            return int(pid), int(port), Path(data)
        return 0, 0, self._folder / "postgres"

    def _start_postgres(self, data: Path) -> str:
        """Its address, with a password that only this user can read."""
        found = next(self._program.resolve().parent.parent.glob("lib/python3*/site-packages/pg0/bin/pg0"), None)
        if found is None:
            raise ConfigError(f"{self._program} has no PostgreSQL beside it; it takes {PACKAGE} in an environment.")
        data.mkdir(parents=True, exist_ok=True)
        shutil.copy(found, data)
        (data / "pg0").chmod(0o755)
        if os.geteuid() == 0:
            shutil.chown(data, "nobody")
        secret = self._folder / "password"
        if not secret.exists():
            secret.write_text(secrets.token_urlsafe(24))
        password, port = secret.read_text(), _free_port()
        login = ["--username", "hindsight", "--database", "hindsight", "--password", password, "--port", str(port)]
        _pg0(data, "start", *login, *(part for one in POSTGRES.split() for part in ("-c", one)))
        return f"postgresql://hindsight:{password}@{HOST}:{port}/hindsight"

    def _stop_postgres(self) -> bool:
        *_, data = self._state()
        if was_running := _postmaster(data) != 0:
            _pg0(data, "stop")
        return was_running


def _pg0(data: Path, *arguments: str) -> None:
    as_whom: Any = {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        as_whom = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    command = [str(data / "pg0"), *arguments, "--name", "engine"]
    # What it leaves behind would hold a pipe open.
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        streams: Any = {"stdin": _QUIET, "stdout": said, "stderr": said}
        if subprocess.run(command, env=_environ(data), cwd=data, **streams, **as_whom).returncode:
            said.seek(0)
            raise ConfigError(f"PostgreSQL did not {arguments[0]}: {' '.join(said.read().split())[-200:]}")


def _postmaster(data: Path) -> int:
    """Its process; 0 where it does not run."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((data / ".pg0/instances/engine/data/postmaster.pid").read_text().split("\n")[0])
        with contextlib.suppress(PermissionError):
            os.kill(pid, 0)
        return pid
    return 0


def _environ(home: Path) -> dict[str, str]:
    return {"PATH": os.defpath, "HOME": str(home), "LANG": "C.UTF-8"}


def _free_port(wanted: int = 0) -> int:
    """Raises OSError, OverflowError."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, wanted))
        return int(probe.getsockname()[1])


def _locks(file: IO[bytes]) -> bool:
    """For as long as it is open, here or in a process that was given it; False where another has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(file: IO[bytes], pid: int, port: int, data: Path) -> None:
    file.truncate(0)
    file.write(f"{pid}\n{port}\n{data}".encode())
    file.flush()


def _asked(port: int, path: str) -> dict[str, Any] | None:
    """What it answers with; None where it does not, or not well."""
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(f"http://{HOST}:{port}/{path}", timeout=ASK_S) as answer:
            return dict(json.loads(answer.read(LOG_BYTES)))
    except (OSError, HTTPException, ValueError, TypeError):
        return None


def _memory_mb(pids: set[int]) -> int:
    """Of these processes and all below them, each shared page once; 0 where the system does not say."""
    parents, size = dict[int, int](), 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(file.parent.name)] = int(file.read_text().rpartition(")")[2].split()[1])
    while below := {pid for pid, parent in parents.items() if parent in pids} - pids:
        pids |= below
    for pid in pids:
        with contextlib.suppress(OSError):
            size += sum(map(int, re.findall(r"(?m)^Pss: +(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text())))
    return size // 1024


def _keep(log: Path) -> None:
    """The last of what comes in, until nothing comes any more."""
    logging.raiseExceptions = False
    logger = logging.getLogger("hindsight")
    logger.addHandler(RotatingFileHandler(log, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8", errors="replace"))
    with open(sys.stdin.fileno(), encoding="utf-8", errors="replace", closefd=False) as printed:
        while line := printed.readline(LINE_CHARS):
            logger.warning("%s", masked(line.rstrip("\n")))


if __name__ == "__main__":
    _keep(Path(sys.argv[1]))
