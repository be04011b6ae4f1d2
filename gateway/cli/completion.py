"""`mneme completion`: completion for bash, zsh and fish, installed only when asked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer._completion_shared import get_completion_script

from config.files import replace_file
from gateway.cli import shell

ShellName = Literal["bash", "zsh", "fish"]
# Where each shell looks for the completion of a user, below the user's folder.
_PLACES = {
    "bash": ".local/share/bash-completion/completions/mneme",
    "zsh": ".zfunc/_mneme",
    "fish": ".config/fish/completions/mneme.fish",
}
_ZSH_HINT = "~/.zshrc needs this line: fpath=(~/.zfunc $fpath); autoload -U compinit; compinit"


def add_commands(root: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    root.command("completion")(completion_command)


def completion_command(
    shell_name: Annotated[ShellName, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
    install: Annotated[
        bool, typer.Option("--install", help="Write the script where the shell finds it.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Delete the installed script.")] = False,
) -> None:
    """Print the script with which your shell completes commands and options of mneme."""
    if install and remove:
        raise typer.BadParameter("use either --install or --remove", param_hint="--remove")
    script = get_completion_script(
        prog_name="mneme", complete_var="_MNEME_COMPLETE", shell=shell_name
    )
    path = Path.home() / _PLACES[shell_name]
    with shell.exit_on_error():
        if install:
            os.makedirs(path.parent, exist_ok=True)
            replace_file(path, f"{script}\n".encode())
            typer.echo(f"Installed in {path}. It works in the next shell that you open.")
            if shell_name == "zsh":
                typer.echo(_ZSH_HINT)
        elif remove:
            if not path.exists():
                shell.fail(f"There is no {path}, so there is nothing to remove.")
            path.unlink()
            typer.echo(f"Removed {path}.")
        else:
            typer.echo(script)
