"""Prints or installs the completion script for bash, zsh or fish: `mneme completion`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer._click.shell_completion import add_completion_class, split_arg_string
from typer._completion_classes import BashComplete, FishComplete, ZshComplete
from typer._completion_shared import get_completion_script

from config.files import replace_file
from config.variables import select_variables
from core.text.normalize import strip_controls
from gateway.cli import shell
from gateway.texts.catalog import SHELL as texts

ShellName = Literal["bash", "zsh", "fish"]
# The place where each shell looks for the completion of a user, below the user's folder.
_PLACES = {
    "bash": ".local/share/bash-completion/completions/mneme",
    "zsh": ".zfunc/_mneme",
    "fish": ".config/fish/completions/mneme.fish",
}
COMPLETE_VARIABLE = "_MNEME_COMPLETE"
"""The variable with which a shell asks for completions."""
# The line that is being completed, up to the cursor. Scripts of older versions don't set it.
_LINE_VARIABLE = "_MNEME_WORDS"
# The characters at which bash splits words, such as the colon of an account.
_BREAKS_VARIABLE = "_MNEME_BREAKS"
# typer's script would lose the colons, and expand what it gets. The shell of macOS has no mapfile.
_BASH_SCRIPT = f"""\
_mneme_completion() {{
  local item
  COMPREPLY=()
  while IFS= read -r item; do
    COMPREPLY+=("$item")
  done < <(env {_LINE_VARIABLE}="${{COMP_LINE:0:COMP_POINT}}" \\
    {_BREAKS_VARIABLE}="$COMP_WORDBREAKS" {COMPLETE_VARIABLE}=complete_bash "$1")
}}

complete -o default -F _mneme_completion mneme"""
# typer's script would evaluate what it gets, which may contain a text of another person.
_ZSH_SCRIPT = f"""\
#compdef mneme

_mneme_completion() {{
  local lines
  local -a items
  lines="$(env {_LINE_VARIABLE}="${{words[1,$CURRENT]}}" {COMPLETE_VARIABLE}=complete_zsh mneme)"
  if [[ -z $lines ]]; then
    _files
    return
  fi
  items=("${{(@f)lines}}")
  _describe mneme items
}}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _mneme_completion "$@"
else
  compdef _mneme_completion mneme
fi"""
# The characters that have a meaning in a command line, by the quotation mark around them.
_SPECIAL = {
    "": re.compile(r"[^\w./:=@%+,-]"),
    '"': re.compile(r'[$`"\\]'),
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
    script = _write_script(shell_name)
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


def _write_script(shell_name: ShellName) -> str:
    if shell_name == "bash":
        return _BASH_SCRIPT
    if shell_name == "zsh":
        return _ZSH_SCRIPT
    return get_completion_script(
        prog_name="mneme", complete_var=COMPLETE_VARIABLE, shell=shell_name
    )


def register_shells() -> None:
    """Make typer print completions so that no shell runs a part of them as a command."""
    add_completion_class(_BashCompletion, "bash")
    add_completion_class(_ZshCompletion, "zsh")
    add_completion_class(_FishCompletion, "fish")


class _BashCompletion(BashComplete):
    """Prints one value per line. Bash adds it to the command line without quoting it."""

    def get_completion_args(self) -> tuple[list[str], str]:
        line = _get_line()
        return _split_line(line) if line else super().get_completion_args()

    def complete(self) -> str:
        """Return the lines: of each value, the part that bash replaces.

        In `people remove telegram:4`, that's only the part after the colon.
        """
        args, incomplete = self.get_completion_args()
        quote = _find_open_quote(_get_line())
        start = "" if quote else _find_finished_part(incomplete)
        return "\n".join(
            _quote_value(_make_line(item.value).removeprefix(start), quote)
            for item in self.get_completions(args, incomplete)
        )


def _get_line() -> str:
    return select_variables([_LINE_VARIABLE]).get(_LINE_VARIABLE, "")


def _split_line(line: str) -> tuple[list[str], str]:
    """Return the words of a line after the name of the program, and the incomplete last word."""
    words = split_arg_string(line)[1:]
    incomplete = words.pop() if words and not line.endswith(" ") else ""
    return words, incomplete


def _find_open_quote(line: str) -> str:
    """Return the quotation mark that is open at the end of a line, or ""."""
    quote = ""
    characters = iter(line)
    for character in characters:
        if character == "\\" and quote != "'":
            next(characters, "")
        elif character == quote:
            quote = ""
        elif not quote and character in "\"'":
            quote = character
    return quote


def _find_finished_part(word: str) -> str:
    """Return the part of a word that bash keeps, up to the last character that splits words."""
    breaks = select_variables([_BREAKS_VARIABLE]).get(_BREAKS_VARIABLE, "")
    ends = [word.rfind(character) + 1 for character in breaks if not character.isspace()]
    return word[: max(ends, default=0)]


def _quote_value(value: str, quote: str) -> str:
    if quote == "'":
        return value.replace("'", r"'\''")
    return _SPECIAL[quote].sub(r"\\\g<0>", value)


class _ZshCompletion(ZshComplete):
    """Prints lines for `_describe`: a value, a colon and a description."""

    def get_completion_args(self) -> tuple[list[str], str]:
        return _split_line(_get_line())

    def format_completion(self, item: Any) -> str:
        value = re.sub(r"[\\:]", r"\\\g<0>", _make_line(item.value))
        return f"{value}:{_make_line(item.help)}" if item.help else value

    def complete(self) -> str:
        """Return the lines. A script of an older version gets the files instead."""
        if not _get_line():
            return "_files"
        args, incomplete = self.get_completion_args()
        items = self.get_completions(args, incomplete)
        return "\n".join(self.format_completion(item) for item in items)


class _FishCompletion(FishComplete):
    """Prints lines with a value, a tab and a description."""

    def format_completion(self, item: Any) -> str:
        value = _make_line(item.value)
        return f"{value}\t{_make_line(item.help)}" if item.help else value


def _make_line(text: str) -> str:
    """Return a text on one line, without control characters."""
    return " ".join(strip_controls(text).split())
