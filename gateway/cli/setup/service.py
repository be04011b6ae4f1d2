"""`mneme service`: runs Mneme in the background, as a systemd user unit or a launchd agent."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from config.operating_system import PLATFORM, SYSTEM, System
from config.settings import Settings
from core.errors import ConfigError
from gateway.cli import shell
from gateway.cli.shell import AsJson
from gateway.local import launchd, systemd
from gateway.local.service_manager import ServiceManager
from gateway.services import is_running
from gateway.texts.catalog import SHELL, Texts

Lines = Annotated[int, typer.Option("--lines", min=1, max=10_000)]


def add_commands(root: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    shell.add_group(
        root,
        "service",
        {
            "status": status_command,
            "install": install_command,
            "uninstall": uninstall_command,
            "start": start_command,
            "stop": stop_command,
            "logs": logs_command,
        },
    )


def find_manager(home: Path, system: System = SYSTEM, texts: Texts = SHELL) -> ServiceManager:
    """Return the service manager of this system. Raises ConfigError if there is none."""
    program = [sys.executable, "-m", "gateway.cli.main"]
    if system == "macos":
        return launchd.Launchd(home, program)
    if system == "linux":
        return systemd.Systemd(home, program)
    words = texts.tables("setup")["service"]["no_manager"]
    raise ConfigError(words.format(system=PLATFORM))


def install_command(
    print_only: Annotated[bool, typer.Option("--print")] = False,
) -> None:
    """Install the service for this home, and start it now and at every start of the machine.

    Keys and tokens must be in secrets.env, because a service doesn't have your shell's environment.
    """
    with shell.exit_on_error():
        manager = find_manager(_load_home())
        if print_only:
            typer.echo(manager.render(), nl=False)
            return
        if is_running(manager.home) and not manager.is_active():
            raise ConfigError(SHELL.tables("setup")["service"]["runs_already"])
        path = manager.install()
        typer.echo(SHELL.tables("setup")["service"]["installed"].format(path=path))
        if manager.needs_linger:
            typer.echo(SHELL.tables("setup")["service"]["linger"])


def uninstall_command() -> None:
    """Stop the service and remove it. The home stays."""
    with shell.exit_on_error():
        path = find_manager(_load_home()).uninstall()
        typer.echo(SHELL.tables("setup")["service"]["uninstalled"].format(path=path))


def start_command() -> None:
    """Start the installed service."""
    with shell.exit_on_error():
        find_manager(_load_home()).start()
        typer.echo(SHELL.tables("setup")["service"]["started"])


def stop_command() -> None:
    """Stop the service until it's started again, or the machine is."""
    with shell.exit_on_error():
        find_manager(_load_home()).stop()
        typer.echo(SHELL.tables("setup")["service"]["stopped"])


def status_command(as_json: AsJson = False) -> None:
    """Show whether the service is installed and runs."""
    with shell.exit_on_error():
        manager = find_manager(_load_home())
        is_installed = manager.path.exists()
        if as_json:
            is_active = is_installed and manager.is_active()
            path = str(manager.path)
            shell.print_json({"is_installed": is_installed, "is_active": is_active, "path": path})
            return
        if not is_installed:
            typer.echo(SHELL.tables("setup")["service"]["not_installed"])
            return
        words = SHELL.tables("setup")["service"]
        state = words["running" if manager.is_active() else "not_running"]
        typer.echo(SHELL.tables("setup")["service"]["state"].format(path=manager.path, state=state))


def logs_command(lines: Lines = 50) -> None:
    """Show the last lines of the service's log."""
    with shell.exit_on_error():
        shell.print_text(find_manager(_load_home()).read_log(lines))


def _load_home() -> Path:
    return Settings.load().home
