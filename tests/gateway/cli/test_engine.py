"""`mneme memory engine hindsight` in processes of its own, with a program that serves what
hindsight's does."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gateway.cli import engine
from gateway.cli.engine import MAX_LOG_BYTES, Engine
from tests.fixtures.command_line import good, process

pytestmark = pytest.mark.slow

SERVER = """
import json, os, signal, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

mood = os.environ["HINDSIGHT_API_LLM_MODEL"]
assert os.environ["HINDSIGHT_API_DATABASE_URL"].startswith("postgresql://hindsight:")
if mood == "failing":
    sys.exit("the model cannot be reached with sk-ant-abcdefgh12345678")
if mood == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(30_000 if mood == "talking" else 0):
    print("a line of a hundred letters " * 4, flush=True)

class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        said = json.dumps({"api_version": "9.9", "status": "healthy"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

HTTPServer((sys.argv[2], int(sys.argv[4])), Answers).serve_forever()
"""
POSTGRES = """#!/bin/sh
folder=$HOME/.pg0/instances/engine/data
case $1 in
start) mkdir -p "$folder" && { tail -f /dev/null >/dev/null 2>&1 & echo $! >"$folder/postmaster.pid"; } ;;
stop) kill "$(cat "$folder/postmaster.pid")" && rm "$folder/postmaster.pid" ;;
esac
"""


class Served:
    """A home, and the programs of an engine."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home, self._folder = home, folder
        self.postmaster = folder / "data/.pg0/instances/engine/data/postmaster.pid"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        server, postgres = (
            folder / "bin/hindsight-api",
            folder / "lib/python3/site-packages/pg0/bin/pg0",
        )
        for path, text in ((server, f"#!{sys.executable}\n{SERVER}"), (postgres, POSTGRES)):
            path.parent.mkdir(parents=True)
            path.write_text(text)
            path.chmod(0o755)
        self.options = {
            "llm_url": "http://127.0.0.1:9/v1",
            "llm_model": "well",
            "embedder_url": "http://127.0.0.1:9/v1",
            "data": str(folder / "data"),
            "port": str(self.port),
        }

    def __call__(
        self, action: str, *arguments: str, **options: str
    ) -> subprocess.CompletedProcess[str]:
        given = [part for key, value in options.items() for part in ("--set", f"{key}={value}")]
        command = ("memory", "engine", "hindsight", action, *given, *arguments)
        return process(self.home.parent, command, "", {"MNEME_HOME": str(self.home)})

    def start(self, **options: str) -> subprocess.CompletedProcess[str]:
        return self(
            "start",
            "--program",
            str(self._folder / "bin/hindsight-api"),
            **{**self.options, **options},
        )

    @property
    def said(self) -> str:
        return self("status").stdout.strip()

    @property
    def pid(self) -> int:
        return int((self.home / "engines/hindsight/server.pid").read_text().split("\n")[0])


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    # Not below the folder of the tests, which pytest closes to all others: for root, PostgreSQL is
    # nobody's.
    with TemporaryDirectory(prefix="mneme-engine-") as name:
        Path(name).chmod(0o755)
        one = Served(home, Path(name))
        yield one
        one("stop")


def test_engine_of_hindsight_is_started_shown_and_stopped(served: Served) -> None:
    assert served.said == "hindsight isn't running."
    done = served.start()
    assert done.returncode == 0, done.stderr
    assert (
        f"hindsight 9.9 is running at http://127.0.0.1:{served.port} (process {served.pid}, log {served.home}"
        in done.stdout
    )
    assert served.said == done.stdout.strip() or "MB of memory" in served.said
    first = served.pid
    again = served("start")
    assert (again.returncode, "hindsight 9.9 is running at" in again.stderr, served.pid) == (
        1,
        True,
        first,
    )
    assert served("stop").stdout == "hindsight has stopped.\n"
    assert not served.postmaster.exists()
    assert served.said == "hindsight isn't running."
    assert served("stop").stdout == "hindsight isn't running.\n"
    # What was said once is kept.
    assert "is running at" in served("start").stdout


def test_killed_engine_is_noticed_and_stopped_or_replaced(served: Served) -> None:
    served.start()
    for ending in ("start", "stop"):
        first, postgres = served.pid, served.postmaster.read_text()
        os.kill(first, signal.SIGKILL)
        while "is running at" in served.said:
            pass
        assert served.said == (
            "hindsight isn't running, but its PostgreSQL is. "
            "To stop it: mneme memory engine hindsight stop"
        )
        assert served(ending).returncode == 0
        if ending == "start":
            assert served.pid != first
            assert served.postmaster.read_text() != postgres
    assert not served.postmaster.exists()


def test_stale_process_id_file_of_an_engine_does_not_count_as_running(served: Served) -> None:
    folder = served.home / "engines/hindsight"
    folder.mkdir(parents=True)
    for stale in (f"{os.getpid()}\n{served.port}\n{served.options['data']}", "", "rubbish"):
        (folder / "server.pid").write_text(stale)
        assert served.said == "hindsight isn't running."
        assert served("stop").stdout == "hindsight isn't running.\n"
    assert "is running at" in served.start().stdout
    assert served.pid != os.getpid()


def test_hindsight_start_on_a_used_port_fails_and_names_the_port(served: Served) -> None:
    with socket.create_server(("127.0.0.1", served.port)):
        done = served.start()
    assert (done.returncode, served.postmaster.exists()) == (1, False)
    assert f"Port {served.port} is in use. Choose another with --set port=" in done.stderr


def test_engine_that_does_not_start_leaves_no_process_and_names_its_log(served: Served) -> None:
    done = served.start(llm_model="failing")
    log = served.home / "engines/hindsight/server.log"
    assert (done.returncode, done.stderr) == (
        1,
        f"hindsight didn't start. See {log} for the reason.\n",
    )
    assert not served.postmaster.exists()
    while "the model cannot be reached" not in (log.read_text() if log.exists() else ""):
        pass
    assert "abcdefgh" not in log.read_text()


def test_log_of_an_engine_stays_below_its_limit(served: Served) -> None:
    assert served.start(llm_model="talking").returncode == 0
    logs = sorted((served.home / "engines/hindsight").glob("server.log*"))
    assert len(logs) == 2
    assert all(
        0 < log.stat().st_size <= MAX_LOG_BYTES and not log.stat().st_mode & 0o077 for log in logs
    )


def test_engine_that_ignores_the_end_is_killed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "END_S", 0.3)
    assert served.start(llm_model="stubborn").returncode == 0
    assert Engine(served.home).stop()
    assert served.said == "hindsight isn't running."


def test_engine_is_not_installed_without_a_yes(served: Served) -> None:
    done = served("start", **served.options)
    assert done.returncode == 2
    assert "1.4 GB" in done.stdout
    assert "add --yes" in done.stderr
    assert not (served.home / "engines/hindsight/environment").exists()


def test_engine_command_names_missing_and_wrong_options(served: Served) -> None:
    assert "llm_url: the URL of an OpenAI-compatible server for its model" in served("start").stderr
    assert "the environment variable NO_KEY is not set" in served.start(llm_key="NO_KEY").stderr
    good(served.home, "check")
    done = served("start", "--program", "/nowhere/bin/hindsight-api", llm_key="PATH")
    assert "There is no PostgreSQL next to" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="it is about root")
def test_root_has_to_say_where_postgresql_may_write(served: Served) -> None:
    done = served.start(data="")
    assert (done.returncode, "PostgreSQL doesn't run as root" in done.stderr) == (1, True)
    assert shutil.which("initdb") is None or not served.postmaster.exists()
