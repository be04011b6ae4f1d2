"""`mneme service`: what is written for systemd and launchd, and what happens where neither runs."""

from __future__ import annotations

import json
import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.local.launchd import LABEL, Launchd
from gateway.local.systemd import Systemd
from tests.fixtures.command_line import good, mneme

pytestmark = pytest.mark.slow

PROGRAM = ["/opt/my apps/python", "-m", "gateway.cli.main"]
HARDENING = (
    "ProtectHome=read-only",
    "NoNewPrivileges=true",
    "ProtectSystem=strict",
    "UMask=0077",
    "LockPersonality=true",
)


def test_unit_names_the_home_runs_hardened_and_escapes_what_systemd_reads(tmp_path: Path) -> None:
    home = tmp_path / '100% "mine" \\$HOME' / "home"
    program = ["/opt/my $apps/python", *PROGRAM[1:]]
    unit = Systemd(home, program, tmp_path).render().splitlines()
    assert 'ExecStart="/opt/my $$apps/python" "-m" "gateway.cli.main" "run"' in unit
    escaped = rf"{tmp_path}/100%% \"mine\" \\$HOME/home"
    assert f'Environment="MNEME_HOME={escaped}"' in unit
    assert f'ReadWritePaths="{escaped}" "-{escaped}.erasures" /tmp' in unit
    assert set(HARDENING) <= set(unit)


def test_unit_lets_mneme_write_in_a_backup_folder_elsewhere(home: Path) -> None:
    good(home, "config", "set", "backup.folder", "/mnt/other disk/50%")
    unit = good(home, "service", "install", "--print").splitlines()
    assert f'ReadWritePaths="{home}" "-{home}.erasures" "-/mnt/other disk/50%%" /tmp' in unit


def test_changed_backup_folder_asks_for_a_new_installation_only_of_an_installed_service(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home.parent))
    disk = home.with_name("disk")
    disk.mkdir()
    assert "service install" not in good(home, "config", "set", "backup.folder", str(disk))
    unit = home.parent / ".config" / "systemd" / "user" / "mneme.service"
    unit.parent.mkdir(parents=True)
    unit.write_text(good(home, "service", "install", "--print"))
    other = home.with_name("other")
    other.mkdir()
    changed = good(home, "config", "set", "backup.folder", str(other))
    assert f"Run mneme service install again, so that the service may write in {other}." in changed
    checked = {one["subject"]: one for one in json.loads(mneme(home, "check", "--json").stdout)}
    assert checked["service"]["where"] == str(other)
    assert checked["service"]["command"] == "mneme service install"
    unit.write_text(good(home, "service", "install", "--print"))
    assert "service" not in good(home, "check")
    third = home.with_name("third")
    changed = good(home, "setup", "--yes", "--backup", str(third))
    assert f"so that the service may write in {third}." in changed


@pytest.mark.parametrize("manager", [Systemd, Launchd])
def test_service_of_a_second_home_gets_a_name_of_its_own(
    tmp_path: Path, manager: type[Systemd | Launchd]
) -> None:
    first = manager(tmp_path / "first", PROGRAM, tmp_path)
    first.path.parent.mkdir(parents=True)
    first.path.write_text(first.render())
    second = manager(tmp_path / "second", PROGRAM, tmp_path)
    second.path.write_text(second.render())
    assert first.path != second.path
    assert manager(tmp_path / "first", PROGRAM, tmp_path).path == first.path
    first.path.unlink()
    assert manager(tmp_path / "second", PROGRAM, tmp_path).path == second.path


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_unit_is_accepted_by_systemd_analyze(home: Path, tmp_path: Path) -> None:
    unit = tmp_path / "mneme.service"
    unit.write_text(good(home, "service", "install", "--print"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    complaints = [line for line in done.stderr.splitlines() if "mneme.service" in line]
    assert complaints == []


def test_agent_of_launchd_has_the_home_and_keeps_running(tmp_path: Path) -> None:
    home = tmp_path / "home"
    agent = Launchd(home, PROGRAM, tmp_path)
    content = plistlib.loads(agent.render().encode())
    assert content["Label"] == LABEL
    assert content["ProgramArguments"] == [*PROGRAM, "run"]
    assert content["EnvironmentVariables"] == {"MNEME_HOME": str(home)}
    assert content["KeepAlive"] == {"SuccessfulExit": False}
    assert agent.path == tmp_path / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    (home).mkdir()
    assert "no log yet" in agent.read_log(3)
    (home / "service.log").write_text("one\ntwo\nthree\nfour\n")
    assert agent.read_log(2) == "three\nfour"


@pytest.mark.parametrize("action", ["start", "stop", "uninstall"])
def test_service_that_is_not_installed_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    monkeypatch.setenv("HOME", str(home.parent))
    refused = mneme(home, "service", action)
    assert (refused.returncode, refused.stderr) == (
        1,
        "The service isn't installed. To install it, run mneme service install\n",
    )
    assert "isn't installed" in good(home, "service")


def test_failed_service_manager_leaves_nothing_behind(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `systemctl` that can't reach the user's systemd, as in a container."""
    programs = tmp_path / "bin"
    programs.mkdir()
    fake = programs / "systemctl"
    fake.write_text("#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2\nexit 1\n")
    fake.chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(home.parent))
    refused = mneme(home, "service", "install")
    assert refused.returncode == 1
    assert "Failed to connect to bus" in refused.stderr
    assert "start `mneme run` the way your system starts programs" in refused.stderr
    assert not (home.parent / ".config").exists()


def test_service_that_does_not_start_is_removed_and_the_reason_is_told(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    fake = programs / "systemctl"
    fake.write_text(
        '#!/bin/sh\n[ "$2" = restart ] || exit 0\n'
        "echo 'Created symlink a -> b.' >&2\necho 'Job for mneme.service failed.' >&2\nexit 1\n"
    )
    fake.chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(home.parent))
    refused = mneme(home, "service", "install")
    assert refused.returncode == 1
    assert "failed: Job for mneme.service failed." in refused.stderr
    assert "isn't installed" in good(home, "service")


def test_service_is_installed_started_and_removed_by_systemctl(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    calls = tmp_path / "calls"
    fake = programs / "systemctl"
    fake.write_text(f'#!/bin/sh\necho "$@" >>{calls}\n')
    fake.chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(home.parent))
    installed = good(home, "service", "install")
    assert "whenever you log in" in installed
    assert "enable-linger" in installed
    unit = home.parent / ".config" / "systemd" / "user" / "mneme.service"
    assert str(home) in unit.read_text()
    good(home, "service", "stop")
    good(home, "service", "start")
    assert "not running" in good(home, "service", "status")
    good(home, "service", "uninstall")
    assert not unit.exists()
    assert calls.read_text().splitlines() == [
        "--user show-environment",
        "--user daemon-reload",
        "--user enable mneme.service",
        "--user restart mneme.service",
        "--user stop mneme.service",
        "--user start mneme.service",
        "--user is-active mneme.service",
        "--user disable --now mneme.service",
        "--user daemon-reload",
    ]


def test_status_alive_fails_for_a_home_without_a_running_gateway(home: Path) -> None:
    done = mneme(home, "status", "--alive")
    assert (done.returncode, done.stderr) == (1, "No running Mneme answers for this home.\n")
