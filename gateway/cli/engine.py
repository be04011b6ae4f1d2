"""Installs, starts and stops Hindsight's server on this machine, with a separate PostgreSQL.

Both listen on the loopback interface only. A lock on the pid file shows that the server is running.
The server inherits the open, locked file, so the system releases the lock even if the server is
killed. A second process writes the server's output to a log of limited size. That process runs this
module as a program.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import pwd
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
from typing import IO, Any, NamedTuple
from urllib.request import ProxyHandler, build_opener

from config.files import Secret
from config.masking import mask_secrets
from config.operating_system import measure_memory_mb
from core.errors import ConfigError
from gateway.texts.catalog import SHELL as texts

PACKAGE = "hindsight-api-slim[embedded-db]==1.1.0"
DEFAULT_EMBEDDING_MODEL = "text-embedding-3-small"
HOST = "127.0.0.1"
MAX_LOG_BYTES = 1_000_000
# A longer line of output is split.
MAX_LOG_LINE_CHARS = 10_000
MAX_RESPONSE_BYTES = 1_000_000
# The start fails if the server doesn't answer within this time. A slow machine needs minutes.
START_S = 600.0
# The server must end within this time after each signal.
END_S = 30.0
REQUEST_TIMEOUT_S = 2.0
POLL_S = 0.1
FIXED_SETTINGS = {
    "EMBEDDINGS_PROVIDER": "openai",
    "RERANKER_PROVIDER": "rrf",
    "LOG_LEVEL": "warning",
    "MCP_ENABLED": "false",
    "WORKER_ID": "mneme",
}
# With these settings, the server requires a key from its clients.
AUTHENTICATION_SETTINGS = {
    "TENANT_EXTENSION": "hindsight_api.extensions.builtin.tenant:ApiKeyTenantExtension"
}
# fsync protects the data if the machine crashes. Logs are kept for a week, in a file for each
# weekday. Statements aren't logged, because they contain what people said.
POSTGRES_SETTINGS = (
    "fsync=on",
    "log_filename=postgresql-%a.log",
    "log_truncate_on_rotation=on",
    "log_min_error_statement=panic",
)
# The user and the database in PostgreSQL.
POSTGRES_NAME = "hindsight"
# The name of the PostgreSQL instance in the program pg0.
POSTGRES_INSTANCE = "engine"


def _describe_option(help_text: str, variable: str = "") -> dict[str, str]:
    """Return the metadata of an option: its help and, if it has one, the server's variable."""
    return {"help": help_text, "variable": variable}


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    llm_url: str = field(
        metadata=_describe_option(
            "the URL of an OpenAI-compatible server for its model", "LLM_BASE_URL"
        )
    )
    llm_model: str = field(metadata=_describe_option("the model on that server", "LLM_MODEL"))
    llm_key: Secret = field(
        default=Secret("none"), metadata=_describe_option("the key of that server", "LLM_API_KEY")
    )
    llm_provider: str = field(
        default="openai",
        metadata=_describe_option("hindsight's name for this kind of server", "LLM_PROVIDER"),
    )
    embedder_url: str = field(
        metadata=_describe_option(
            "the URL of an OpenAI-compatible server for embeddings", "EMBEDDINGS_OPENAI_BASE_URL"
        )
    )
    embedder_model: str = field(
        default=DEFAULT_EMBEDDING_MODEL,
        metadata=_describe_option("the model on that server", "EMBEDDINGS_OPENAI_MODEL"),
    )
    embedder_key: Secret = field(
        default=Secret("none"),
        metadata=_describe_option("the key of that server", "EMBEDDINGS_OPENAI_API_KEY"),
    )
    key: Secret = field(
        default=Secret(""),
        metadata=_describe_option("the key that clients must send", "TENANT_API_KEY"),
    )
    port: int = field(default=8888, metadata=_describe_option("the port on 127.0.0.1"))
    program: str = field(
        default="",
        metadata=_describe_option("the path of hindsight-api, if it's already installed"),
    )
    data: str = field(
        default="", metadata=_describe_option("a folder for PostgreSQL outside of the home")
    )

    def environment_variables(self) -> dict[str, str]:
        """Return the environment variables that pass the options to the server."""
        values: dict[str, str] = {}
        for option in fields(self):
            variable = option.metadata["variable"]
            if variable:
                value = getattr(self, option.name)
                values[variable] = value.value if isinstance(value, Secret) else value
        values |= FIXED_SETTINGS
        if self.key.value:
            values |= AUTHENTICATION_SETTINGS
        return {f"HINDSIGHT_API_{name}": value for name, value in values.items() if value}


class EngineState(NamedTuple):
    """The content of the pid file: facts about the server that was started last."""

    # The process id. It's 0 while the server is being started, and before the first start.
    pid: int
    port: int
    # The folder of PostgreSQL.
    data: Path


class Engine:
    """Manages the Hindsight server in a home.

    `program` is the path of hindsight-api. If it's empty, the program that `install` installs into
    the folder `environment` is used.
    """

    def __init__(self, home: Path, program: str = "") -> None:
        self._folder = home / "engines" / "hindsight"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._pid_file = self._folder / "server.pid"
        self._log = self._folder / "server.log"
        self.environment = self._folder / "environment"
        if program:
            self._program = Path(program).expanduser()
            self.is_installed = True
        else:
            self._program = self.environment / "bin" / "hindsight-api"
            self.is_installed = (self.environment / "ready").exists()

    def install(self) -> None:
        """Install hindsight into a virtual environment in the home.

        Raises ConfigError if a step fails.
        """
        create_environment = [sys.executable, "-m", "venv", "--clear", str(self.environment)]
        python = str(self.environment / "bin" / "python")
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        for command in (create_environment, [*pip, PACKAGE]):
            if subprocess.run(command, stdin=subprocess.DEVNULL).returncode != 0:
                raise ConfigError(texts.compose("engine_not_installed", package=PACKAGE))
        (self.environment / "ready").touch()

    def start(self, options: EngineOptions) -> None:
        """Start PostgreSQL and the server, and wait until the server answers.

        Raises ConfigError if the server is already running or can't be started, and OSError if a
        file can't be used.
        """
        with self._pid_file.open("a+b") as pid_file:
            if not _try_lock(pid_file):
                raise ConfigError(self.status())
            # If the server was killed, its PostgreSQL may still be running.
            Postgres(self._load_state().data).stop()
            if os.geteuid() == 0 and not options.data:
                raise ConfigError(texts.compose("engine_as_root"))
            try:
                _find_free_port(options.port)
            except (OSError, OverflowError) as error:
                raise ConfigError(texts.compose("engine_port", port=options.port)) from error

            data = self._folder / "postgres"
            if options.data:
                data = Path(options.data).expanduser().absolute()
            postgres = Postgres(data)
            _write_state(pid_file, EngineState(0, options.port, data))
            try:
                database_url = postgres.start(self._find_pg0(), self._load_password())
                server = self._start_server(options, database_url, pid_file)
                _write_state(pid_file, EngineState(server.pid, options.port, data))
                self._wait_until_ready(server, options.port)
            except BaseException:
                postgres.stop()
                raise

    def stop(self) -> bool:
        """Stop the server and PostgreSQL. Returns False if neither was running.

        Raises ConfigError if the server doesn't stop in time.
        """
        state = self._load_state()
        was_running = self._is_running()
        if was_running:
            self._end_server(state.pid)
        had_postgres = Postgres(self._load_state().data).stop()
        return had_postgres or was_running

    def status(self) -> str:
        """Return a sentence about the server's state, its address and the memory it uses in MB."""
        state = self._load_state()
        postgres_pid = Postgres(state.data).find_pid()
        if not self._is_running():
            if postgres_pid is not None:
                return texts.compose("engine_only_postgres")
            return texts.compose("engine_not_running")
        place = {"address": f"http://{HOST}:{state.port}", "process": state.pid, "log": self._log}
        version = _request_json(state.port, "version")
        if version is None:
            return texts.compose("engine_silent", **place)
        pids = {pid for pid in (state.pid, postgres_pid) if pid}
        memory_mb = measure_memory_mb(pids)
        report = texts.compose("engine_runs", version=version.get("api_version"), **place)
        if memory_mb:
            report += f" {texts.compose('engine_memory', megabytes=memory_mb)}"
        return report

    def _start_server(
        self, options: EngineOptions, database_url: str, pid_file: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Start the server, and the process that writes its output to the log."""
        # The server searches its folder and the folders above for a file .env with settings. This
        # empty file ends the search.
        (self._folder / ".env").touch()
        log_command = [sys.executable, "-m", "gateway.cli.engine", str(self._log)]
        command = [str(self._program), "--host", HOST, "--port", str(options.port)]
        variables = _build_environment(self._folder) | options.environment_variables()
        variables["HINDSIGHT_API_DATABASE_URL"] = database_url
        read_end, write_end = os.pipe()
        with os.fdopen(read_end), os.fdopen(write_end):
            subprocess.Popen(
                log_command,
                stdin=read_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self._folder,
                start_new_session=True,
            )
            return subprocess.Popen(
                command,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=write_end,
                stderr=write_end,
                # With the open file, the server inherits the lock on the pid file.
                pass_fds=[pid_file.fileno()],
                cwd=self._folder,
                start_new_session=True,
            )

    def _wait_until_ready(self, server: subprocess.Popen[bytes], port: int) -> None:
        """Wait until the server answers.

        If the server exits or doesn't answer in time, it's killed and ConfigError is raised. It's
        also killed if the wait is interrupted.
        """
        deadline = time.monotonic() + START_S
        try:
            while _request_json(port, "health") is None:
                if server.poll() is not None or time.monotonic() > deadline:
                    raise ConfigError(texts.compose("engine_not_started", path=self._log))
                time.sleep(POLL_S)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            raise

    def _end_server(self, pid: int) -> None:
        """Stop the server with SIGTERM or, if that fails, with SIGKILL.

        Raises ConfigError if the server is still running after that, or if its process id isn't
        known.
        """
        if pid != 0:
            for signal_number in (signal.SIGTERM, signal.SIGKILL):
                os.killpg(pid, signal_number)
                deadline = time.monotonic() + END_S
                while time.monotonic() <= deadline:
                    time.sleep(POLL_S)
                    if not self._is_running():
                        return
        raise ConfigError(texts.compose("engine_not_stopped"))

    def _is_running(self) -> bool:
        """Return whether a server holds the lock on the pid file."""
        with self._pid_file.open("a+b") as pid_file:
            return not _try_lock(pid_file)

    def _load_state(self) -> EngineState:
        """Read the pid file. Returns a state with the pid 0 if the file is empty or missing."""
        with contextlib.suppress(OSError, ValueError):
            pid, port, data = self._pid_file.read_text().split("\n", 2)
            return EngineState(int(pid), int(port), Path(data))
        return EngineState(0, 0, self._folder / "postgres")

    def _find_pg0(self) -> Path:
        """Return the path of pg0, the program that runs PostgreSQL and comes with hindsight.

        Raises ConfigError if it's missing.
        """
        # environment/bin/hindsight-api -> environment
        environment = self._program.resolve().parent.parent
        for path in environment.glob("lib/python3*/site-packages/pg0/bin/pg0"):
            return path
        raise ConfigError(
            texts.compose("engine_no_postgres", program=self._program, package=PACKAGE)
        )

    def _load_password(self) -> str:
        """Return the password for PostgreSQL. The first call creates it."""
        file = self._folder / "password"
        if not file.exists():
            file.write_text(secrets.token_urlsafe(24))
        return file.read_text()


class Postgres:
    """Runs PostgreSQL in a separate folder, with the program pg0.

    PostgreSQL refuses to run as root. If Mneme runs as root, PostgreSQL runs as the user nobody.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, pg0: Path, password: str) -> str:
        """Start PostgreSQL on a free port, and return its URL. `pg0` is copied into the folder.

        Raises ConfigError if PostgreSQL doesn't start.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(pg0, self._folder)
        (self._folder / "pg0").chmod(0o755)
        if os.geteuid() == 0:
            shutil.chown(self._folder, "nobody")
        port = _find_free_port()
        login = ["--username", POSTGRES_NAME, "--database", POSTGRES_NAME, "--password", password]
        arguments = [*login, "--port", str(port)]
        for setting in POSTGRES_SETTINGS:
            arguments += ["-c", setting]
        self._run_pg0("start", *arguments)
        return f"postgresql://{POSTGRES_NAME}:{password}@{HOST}:{port}/{POSTGRES_NAME}"

    def stop(self) -> bool:
        """Stop PostgreSQL. Returns False if it wasn't running."""
        if self.find_pid() is None:
            return False
        self._run_pg0("stop")
        return True

    def find_pid(self) -> int | None:
        """Return the process id of PostgreSQL, or None if it isn't running."""
        file = self._folder / f".pg0/instances/{POSTGRES_INSTANCE}/data/postmaster.pid"
        try:
            pid = int(file.read_text().split("\n")[0])
        except (OSError, ValueError):
            return None
        try:
            # Signal 0 does nothing; the call fails if the process doesn't exist.
            os.kill(pid, 0)
        except PermissionError:
            # The process exists, and belongs to another user.
            return pid
        except OSError:
            return None
        return pid

    def _run_pg0(self, action: str, *arguments: str) -> None:
        """Run pg0. If it fails, raise ConfigError with the end of its output."""
        user: Any = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        program = str(self._folder / "pg0")
        command = [program, action, *arguments, "--name", POSTGRES_INSTANCE]
        # The output goes to a file. PostgreSQL inherits it and would keep a pipe open, so reading
        # the pipe wouldn't end together with pg0.
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            process = subprocess.run(
                command,
                env=_build_environment(self._folder),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                **user,
            )
            if process.returncode != 0:
                output.seek(0)
                last_words = " ".join(output.read().split())[-200:]
                raise ConfigError(
                    texts.compose("postgres_failed", action=action, reason=last_words)
                )


def _build_environment(home: Path) -> dict[str, str]:
    """Return a minimal environment, without the variables of this process."""
    return {"PATH": os.defpath, "HOME": str(home), "LANG": "C.UTF-8"}


def _find_free_port(port: int = 0) -> int:
    """Check that a port of the loopback interface is free, and return its number.

    Port 0 means any free port. Raises OSError if the port is in use, and OverflowError if the
    number is too large.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))
        return int(probe.getsockname()[1])


def _try_lock(file: IO[bytes]) -> bool:
    """Lock a file, and return whether that succeeded. It fails if another process has the lock.

    The file stays locked until this process and all processes that inherited the file have closed
    it.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_state(pid_file: IO[bytes], state: EngineState) -> None:
    pid_file.truncate(0)
    pid_file.write(f"{state.pid}\n{state.port}\n{state.data}".encode())
    pid_file.flush()


def _request_json(port: int, path: str) -> dict[str, Any] | None:
    """Request a JSON object from the server. Returns None if the server doesn't send any."""
    opener = build_opener(ProxyHandler({}))
    try:
        url = f"http://{HOST}:{port}/{path}"
        with opener.open(url, timeout=REQUEST_TIMEOUT_S) as response:
            return dict(json.loads(response.read(MAX_RESPONSE_BYTES)))
    except (OSError, HTTPException, ValueError, TypeError):
        return None


def _write_log(log: Path) -> None:
    """Write standard input to a log of limited size, with secrets masked, until the input ends."""
    logging.raiseExceptions = False
    handler = RotatingFileHandler(
        log, maxBytes=MAX_LOG_BYTES, backupCount=1, encoding="utf-8", errors="replace"
    )
    logger = logging.getLogger("hindsight")
    logger.addHandler(handler)
    with open(sys.stdin.fileno(), encoding="utf-8", errors="replace", closefd=False) as output:
        while line := output.readline(MAX_LOG_LINE_CHARS):
            logger.warning("%s", mask_secrets(line.rstrip("\n")))


if __name__ == "__main__":
    _write_log(Path(sys.argv[1]))
