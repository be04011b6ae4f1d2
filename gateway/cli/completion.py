"""Prints or installs the completion script for bash, zsh or fish: `mneme completion`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer._completion_shared import get_completion_script

from config.files import replace_file
from gateway.cli import shell
from gateway.texts.catalog import SHELL as texts

ShellName = Literal["bash", "zsh", "fish"]
# The place where each shell looks for the completion of a user, below the user's folder.
_PLACES = {
    "bash": ".local/share/bash-completion/completions/mneme",
    "zsh": ".zfunc/_mneme",
    "fish": ".config/fish/completions/mneme.fish",
}
_ZSH_LINE = "fpath=(~/.zfunc $fpath); autoload -U compinit; compinit"


def add_commands(root: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    root.command("completion")(completion_command)


def completion_command(
    shell_name: Annotated[ShellName, typer.Argument(metavar="SHELL")],
    install: Annotated[bool, typer.Option("--install")] = False,
    remove: Annotated[bool, typer.Option("--remove")] = False,
) -> None:
    """Print a script that lets your shell complete mneme's commands and options."""
    if install and remove:
        raise typer.BadParameter(texts.compose("install_or_remove"), param_hint="--remove")
    script = get_completion_script(
        prog_name="mneme", complete_var="_MNEME_COMPLETE", shell=shell_name
    )
    path = Path.home() / _PLACES[shell_name]
    with shell.exit_on_error():
        if install:
            os.makedirs(path.parent, exist_ok=True)
            replace_file(path, f"{script}\n".encode())
            typer.echo(texts.compose("completion_installed", path=path))
            if shell_name == "zsh":
                typer.echo(texts.compose("zsh_line", line=_ZSH_LINE))
        elif remove:
            if not path.exists():
                shell.fail(texts.compose("completion_missing", path=path))
            path.unlink()
            typer.echo(texts.compose("completion_removed", path=path))
        else:
            typer.echo(script)
