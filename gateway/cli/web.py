"""Prints a link to the local page, and serves the page if necessary: `mneme web`."""

from __future__ import annotations

import asyncio

import typer

from config.settings import Settings
from gateway.cli import shell
from gateway.commands.registry import CommandContext, CommandGroup, CommandRegistry
from gateway.local.control import ask_gateway
from gateway.services import Services
from gateway.texts.catalog import SHELL as texts


def add_commands(root: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    root.command("web")(web_command)


def web_command() -> None:
    """Open what Mneme knows in your browser, for this machine only.

    The link opens the page once. If a running gateway serves the page, this prints a new link.
    Otherwise the page is served until Ctrl-C, also while Mneme runs.
    """
    with shell.exit_on_error():
        answer = ask_gateway(Settings.load().home, "web")
    if answer and "link" in answer:
        typer.echo(texts.PAGE_OPEN.format(link=answer["link"]))
        return
    shell.run_as_owner(_serve, notifies_owner=True)


async def _serve(services: Services, _: CommandContext) -> None:
    """Serve the page until Ctrl-C. Raises ConfigError if its port is in use."""
    # Imported here because loading a web server takes a while.
    from gateway.web.server import PageServer

    server = PageServer(services, create_commands(services))
    async with server.serve():
        typer.echo(texts.PAGE_OPEN.format(link=server.create_owner_link()))
        typer.echo(texts.PAGE_UNTIL)
        await asyncio.Future()


def create_commands(services: Services) -> CommandRegistry:
    """Create the commands that work without a running gateway."""
    # Imported here because a link to a running page doesn't need them.
    from core.agent.context_files import ContextFiles
    from gateway.commands.export import ExportCommands
    from gateway.commands.facts import FactCommands
    from gateway.commands.files import FileCommands
    from gateway.commands.instructions import InstructionCommands
    from gateway.commands.language import LanguageCommands
    from gateway.commands.memory import MemoryCommands
    from gateway.commands.privacy import ForgetCommands
    from gateway.commands.recall import RecallCommands
    from gateway.commands.reminders import ReminderCommands
    from gateway.commands.skills import SkillCommands
    from gateway.commands.status import StatusCommands, UsageCommands
    from gateway.commands.stranger_approvals_and_links import AccountCommands
    from gateway.commands.time_settings import TimeCommands

    settings = services.settings
    context_files = ContextFiles(
        settings.home,
        settings.context,
        settings.chats,
        services.notebook,
        services.owner_notices.warn_about_file,
    )
    groups: list[CommandGroup] = [
        RecallCommands(services, services.recall, services.recall),
        FactCommands(services),
        MemoryCommands(services),
        InstructionCommands(services, context_files),
        SkillCommands(services, context_files.read_rule),
        ForgetCommands(services),
        ReminderCommands(services),
        TimeCommands(services),
        LanguageCommands(services),
        AccountCommands(services),
        StatusCommands(services, None),
        ExportCommands(services),
        FileCommands(services),
        UsageCommands(services),
    ]
    return CommandRegistry(groups, services.actions, services.clock)
