"""`mneme service` under a real systemd of the user, which runs in namespaces of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.bot_api import BotApi
from tests.fixtures.forked import ROOT

pytestmark = pytest.mark.slow

SCRIPT = ROOT / "tests" / "fixtures" / "user_systemd.sh"
CONTROL_GROUPS = Path("/sys/fs/cgroup")
PERSON = 4242
# Says what each step printed. The service is killed once, and must come back. A step that doesn't
# come to its end is named, long before the test itself runs out of time.
STEPS = """
set -eu
systemctl --user set-environment MNEME_TELEGRAM_API_URL="$TELEGRAM_URL" PYTHONPATH="$PYTHONPATH"
mneme() { timeout 60 "$PYTHON" -m gateway.cli.main "$@"; }
state() { mneme service status --json; }
main_process() { systemctl --user show mneme.service -p ExecMainPID --value; }
was_restarted() { [ "$(systemctl --user show mneme.service -p NRestarts --value)" = 1 ]; }
wait_until() {
    end=$(($(date +%s) + 80))
    until "$@"; do
        [ "$(date +%s)" -lt "$end" ] || { echo "waited too long: $*"; exit 1; }
        sleep 0.2
    done
}
can_write() { nsenter -t "$(main_process)" -m touch "$1" 2>/dev/null && echo "writable: $1"; }
mneme service install
wait_until mneme status --alive
state
can_write "$MNEME_HOME/new"
can_write "$MNEME_HOME.erasures"
can_write "$MNEME_HOME.backups/new"
! can_write "$HOME/new"
mneme service stop
state
mneme service start
wait_until mneme status --alive
kill -9 "$(main_process)"
wait_until was_restarted
wait_until mneme status --alive
mneme service uninstall
state
"""


def can_run_systemd() -> bool:
    """Whether this machine lets us run a systemd of our own."""
    programs = ("systemd", "systemctl", "unshare")
    if os.geteuid() != 0 or not all(shutil.which(program) for program in programs):
        return False
    arguments = ["unshare", "-mpf", "--mount-proc", "mount", "-t", "tmpfs", "tmpfs", "/run"]
    try:
        subprocess.run(arguments, capture_output=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return False
    trees = (CONTROL_GROUPS, CONTROL_GROUPS / "systemd", CONTROL_GROUPS / "unified")
    return any(os.access(tree / "cgroup.procs", os.W_OK) for tree in trees)


@pytest.fixture
def control_group() -> Iterator[str]:
    """The name of a control group, which is removed at the end with all below it."""
    name = f"mneme-test-{uuid.uuid4().hex[:8]}"
    yield name
    for tree in (CONTROL_GROUPS, *CONTROL_GROUPS.glob("*")):
        folders = sorted((tree / name).rglob("*"), reverse=True) if tree.is_dir() else []
        for folder in (*folders, tree / name):
            with contextlib.suppress(OSError):
                folder.rmdir()


@pytest.fixture
def home() -> Iterator[Path]:
    """A home in a user's folder outside of /tmp and /dev, in which a service may write anyway.

    Its name has characters with a meaning for systemd.
    """
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        home = Path(folder) / 'my 50% "home" \\ $x'
        home.mkdir(mode=0o700)
        yield home


@pytest.mark.sweep
@pytest.mark.timeout(400)
@pytest.mark.skipif(not can_run_systemd(), reason="needs root, systemd and control groups")
async def test_service_runs_under_systemd_and_comes_back_after_a_kill(
    home: Path, control_group: str
) -> None:
    async with BotApi() as telegram:
        telegram.person(PERSON, "Ana")
        (home / "mneme.toml").write_text(f"[owner]\ntelegram = [{PERSON}]\n")
        (home / "secrets.env").write_text(f"TELEGRAM_BOT_TOKEN={telegram.token}\n")
        (home / "secrets.env").chmod(0o600)
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(home.parent),
            "MNEME_HOME": str(home),
            "TELEGRAM_URL": telegram.url,
            "PYTHON": str(ROOT / ".venv" / "bin" / "python"),
            "PYTHONPATH": str(ROOT),
            "CONTROL_GROUP": control_group,
        }
        arguments = ["unshare", "-mpf", "--mount-proc", "--kill-child", "sh", str(SCRIPT)]
        telegram.user_says(PERSON, "hello")
        done = await asyncio.to_thread(
            subprocess.run,
            [*arguments, "sh", "-c", STEPS],
            env=environ,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        log = home.parent / "systemd.log"
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{log.read_text()[-2000:]}"
        states = [line for line in done.stdout.splitlines() if line.startswith("{")]
        assert ['"is_active": true' in state for state in states] == [True, False, False]
        assert ['"is_installed": true' in state for state in states] == [True, True, False]
        # In the user's folder, the service writes only what belongs to its home.
        assert [line for line in done.stdout.splitlines() if line.startswith("writable")] == [
            f"writable: {home}/new",
            f"writable: {home}.erasures",
            f"writable: {home}.backups/new",
        ]
        assert any("Ask me a question" in text for text in telegram.texts(PERSON))
