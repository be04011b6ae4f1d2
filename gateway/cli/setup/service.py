"""Runs Mneme in the background as a systemd user unit or a launchd agent: `mneme service`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from config.operating_system import SYSTEM
from config.settings import Settings
from core.errors import ConfigError
from gateway.cli import shell
from gateway.cli.shell import AsJson
from gateway.local.manager import load_manager
from gateway.local.service_manager import ServiceManager
from gateway.sharing.home_lock import is_running
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


def describe_installed(manager: ServiceManager, path: Path, texts: Texts = SHELL) -> str:
    """Return sentences that say the service is running and when it starts again."""
    words = texts.tables("setup")["service"]
    if not manager.needs_linger:
        key = "installed_at_login" if SYSTEM == "macos" else "installed"
        return str(words[key].format(path=path))
    return f"{words['installed_at_login'].format(path=path)}\n{words['linger'].strip()}"


def install_command(
    print_only: Annotated[bool, typer.Option("--print")] = False,
) -> None:
    """Install the service for this home, and start it now and whenever you log in.

    Keys and tokens must be in secrets.env, because a service doesn't have your shell's environment.
    """
    with shell.exit_on_error():
        manager = load_manager(Settings.load())
        if print_only:
            typer.echo(manager.render(), nl=False)
            return
        if is_running(manager.home) and not manager.is_active():
            raise ConfigError(SHELL.tables("setup")["service"]["runs_already"])
        path = manager.install()
        typer.echo(describe_installed(manager, path))


def uninstall_command() -> None:
    """Stop the service and remove it. The home stays."""
    with shell.exit_on_error():
        path = load_manager(Settings.load()).uninstall()
        typer.echo(SHELL.tables("setup")["service"]["uninstalled"].format(path=path))


def start_command() -> None:
    """Start the installed service."""
    with shell.exit_on_error():
        load_manager(Settings.load()).start()
        typer.echo(SHELL.tables("setup")["service"]["started"])


def stop_command() -> None:
    """Stop the service until you start it again, or log in again."""
    with shell.exit_on_error():
        load_manager(Settings.load()).stop()
        typer.echo(SHELL.tables("setup")["service"]["stopped"])


def status_command(as_json: AsJson = False) -> None:
    """Show whether the service is installed and running."""
    with shell.exit_on_error():
        manager = load_manager(Settings.load())
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
        shell.print_text(load_manager(Settings.load()).read_log(lines))
