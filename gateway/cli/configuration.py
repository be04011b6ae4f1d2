"""Defines the shell commands `mneme config get`, `set`, `unset`, `list` and `edit`.

Options are in mneme.toml, keys and tokens in secrets.env. Each change is checked before it is
written, and only the changed lines are rewritten. Secrets are never printed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import available_timezones

import typer

from config.draft import SettingsDraft
from config.locating import find_current_path, find_option, list_option_paths, suggest_name
from config.secrets_file import SECRETS_FILE
from config.settings import (
    ENVIRONMENT,
    SETTINGS_FILE,
    SettingsError,
    list_environment_names,
    read_options,
)
from config.variables import list_named_variables, select_variables
from gateway.cli import shell
from gateway.cli.shell import AsJson, print_json, print_text
from gateway.local.control import ask_gateway
from gateway.local.manager import find_closed_folder
from gateway.local.ports import find_taken_port, list_served_ports
from gateway.sharing.home_lock import is_running
from gateway.texts.catalog import SHELL as texts
from gateway.texts.catalog import list_languages
from gateway.texts.settings_problems import word_problem
from gateway.upkeep.catalog import find_fault_of_option

# The name of a variable in secrets.env, such as "OPENAI_API_KEY".
# Where a secret is set if it isn't in secrets.env, for programs.
_ENVIRONMENT = "environment"
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


def complete_key(incomplete: str) -> list[str]:
    """Suggest the options of mneme.toml and the names of secrets.

    Options of a table are suggested once the table's name is typed.
    """
    try:
        draft = SettingsDraft()
        names = [*list_option_paths(_merge_options(draft.text)), *_list_known_variables(draft)]
    except (SettingsError, OSError):
        return []
    most_dots = incomplete.count(".") + 1
    return [name for name in names if name.startswith(incomplete) and name.count(".") <= most_dots]


Key = Annotated[str, typer.Argument(autocompletion=complete_key)]


def complete_value(context: typer.Context, incomplete: str) -> list[str]:
    """Suggest values for an option with few possible values, such as a language or a time zone."""
    key = str(context.params.get("key") or "")
    values: list[str] = []
    if key == "general.language":
        values = ["auto", *list_languages()]
    elif key == "general.zone":
        values = ["auto", *sorted(available_timezones())]
    elif isinstance(find_option(_merge_options(""), key), bool):
        values = ["true", "false"]
    return [value for value in values if value.startswith(incomplete)]


ValueWords = Annotated[list[str] | None, typer.Argument(autocompletion=complete_value)]


def add_commands(root: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    shell.add_group(
        root,
        "config",
        {
            "list": list_command,
            "get": get_command,
            "set": set_command,
            "unset": unset_command,
            "edit": edit_command,
        },
    )


def list_command(
    show_all: Annotated[bool, typer.Option("--all")] = False,
    as_json: AsJson = False,
) -> None:
    """List the options that you have set. Of secrets, only the names are shown."""
    with shell.exit_on_error():
        draft = SettingsDraft()
        options = _merge_options(draft.text) if show_all else draft.own_options
        values = dict(_list_values(options))
        secrets = {name: _locate_secret(draft, name) for name in _list_known_variables(draft)}
        secrets = {name: place for name, place in secrets.items() if place}
        if as_json:
            print_json({"options": values, "secrets": secrets})
            return
        lines = [
            f"{path} = {json.dumps(value, ensure_ascii=False)}" for path, value in values.items()
        ]
        lines += [
            texts.compose("variable_is_set", name=name, place=_name_place(place))
            for name, place in secrets.items()
        ]
        print_text("\n".join(lines) or texts.compose("no_options"))


def get_command(key: Key, as_json: AsJson = False) -> None:
    """Show the value of an option, which may be a default. Secrets aren't shown."""
    with shell.exit_on_error():
        draft = SettingsDraft()
        if _VARIABLE.fullmatch(key):
            place = _locate_secret(draft, key)
            if not place:
                _refuse_similar_variable(key, _list_known_variables(draft))
                shell.fail(texts.compose("variable_missing", name=key))
            if as_json:
                print_json({key: place})
            else:
                print_text(texts.compose("variable_is_set", name=key, place=_name_place(place)))
            return
        options = _merge_options(draft.text)
        value = find_option(options, find_current_path(key))
        if value is None:
            shell.fail(_describe_unknown(key, list(list_option_paths(options))))
        if as_json:
            print_json(value)
        else:
            print_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def set_command(key: Key, value: ValueWords = None) -> None:
    """Set an option or a secret.

    Quotes and brackets may be left out: `mneme config set owner.telegram 42`. A secret is stored in
    secrets.env; without a value you're asked for it, and it isn't shown.
    """
    with shell.exit_on_error():
        draft = SettingsDraft()
        is_secret = _VARIABLE.fullmatch(key) is not None
        if not key.strip(". "):
            shell.fail(texts.compose("option_unknown", name=f'"{key}"'))
        typed = " ".join(value) if value else _ask_for_value(key, is_secret=is_secret)
        if is_secret and not typed.strip():
            shell.fail(texts.compose("value_missing"), exit_code=2)
        if len(typed.strip().splitlines()) > 1:
            shell.fail(f"{texts.compose('value_lines')} {texts.compose('unchanged')}")
        is_used = True
        if is_secret:
            _set_secret(draft, key, typed)
            is_used = key in _list_used_variables(draft)
            result = texts.compose("secret_stored", name=key, path=draft.home / SECRETS_FILE)
            if not is_used:
                result = f"{result} {texts.compose('variable_unused')}"
        else:
            key = find_current_path(key)
            new_value = _set_option(draft, key, typed)
            displayed_value = new_value if isinstance(new_value, str) else json.dumps(new_value)
            result = texts.compose("option_empty", name=key)
            if displayed_value:
                result = texts.compose("option_set", name=key, value=displayed_value)
        _write(draft, result, key, is_used=is_used)


def unset_command(key: Key) -> None:
    """Go back to the default of an option, or delete a secret."""
    with shell.exit_on_error():
        draft = SettingsDraft()
        if _VARIABLE.fullmatch(key):
            if key not in draft.secrets:
                shell.fail(texts.compose("secret_missing", name=key))
            draft.set_secret(key, None)
            result = texts.compose("secret_deleted", name=key)
        else:
            key = find_current_path(key)
            try:
                draft.remove_option(key)
            except KeyError:
                options = _merge_options(draft.text)
                if find_option(options, key) is None:
                    shell.fail(_describe_unknown(key, list(list_option_paths(options))))
                shell.fail(texts.compose("option_is_default", name=key))
            result = texts.compose("option_reset", name=key)
        _write(draft, result, key)


def edit_command() -> None:
    """Open mneme.toml in your editor ($VISUAL or $EDITOR), and keep the changes if they are right.

    Mistakes are listed with their lines, and you can correct them. Until then, nothing is changed.
    """
    with shell.exit_on_error():
        draft = SettingsDraft(is_broken_allowed=True)
        if not sys.stdin.isatty():
            shell.fail(texts.compose("no_editor_terminal"))
        text = draft.text
        while True:
            text = _open_editor(draft.home, text)
            if text == draft.text:
                typer.echo(texts.compose("unchanged"))
                return
            try:
                draft.replace_text(text)
            except SettingsError as error:
                problems = (word_problem(texts, problem) for problem in error.located_problems)
                print_text("\n".join(problems))
                if shell.confirm(texts.compose("correct_it"), default=True):
                    continue
                typer.echo(texts.compose("unchanged"))
                return
            _write(draft, texts.compose("settings_changed"), "")
            return


def _open_editor(home: Path, text: str) -> str:
    """Open a text in the person's editor, in a private file, and return the edited text.

    Exits if no editor is found.
    """
    variables = select_variables(("VISUAL", "EDITOR"))
    command = shlex.split(variables.get("VISUAL") or variables.get("EDITOR") or "vi")
    descriptor, name = tempfile.mkstemp(dir=home, prefix=".edit-", suffix=".toml")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            code = subprocess.run([*command, name], check=False).returncode
        except OSError as error:
            reason = texts.word_stored(error.strerror or str(error))
            shell.fail(texts.compose("editor_missing", editor=command[0], reason=reason))
        if code:
            shell.fail(texts.compose("editor_failed", editor=command[0], code=code))
        return Path(name).read_text(encoding="utf-8")
    finally:
        Path(name).unlink(missing_ok=True)


def _ask_for_value(key: str, *, is_secret: bool) -> str:
    if not sys.stdin.isatty():
        typed = sys.stdin.read().strip()
        if not typed:
            shell.fail(texts.compose("value_missing"), exit_code=2)
        return typed
    value: str = typer.prompt(key, hide_input=is_secret)
    return value.strip()


def _set_option(draft: SettingsDraft, key: str, typed: str) -> Any:
    """Set an option and return its new value. Exit with a message if that isn't possible."""
    try:
        value = draft.set_typed_option(key, typed)
        fault = find_fault_of_option(draft, key) or _find_taken_port(draft, key)
        if fault:
            shell.fail(f"{' '.join(fault.splitlines())} {texts.compose('unchanged')}")
        return value
    except SettingsError as error:
        problem = error.problems[0]
        if "isn't a known option" in problem:
            problem = _describe_unknown(key, list(list_option_paths(_merge_options(draft.text))))
        else:
            problem = word_problem(texts, problem)
            if not problem.endswith((".", "?", "。", "？")):
                problem += "."
        shell.fail(f"{problem} {texts.compose('unchanged')}")


def _find_taken_port(draft: SettingsDraft, key: str) -> str:
    """Return a sentence if Mneme would now serve a port that another program uses, or ""."""
    if not key.startswith(("web.", "metrics.")):
        return ""
    try:
        # The ports before the change may be in use by the running gateway.
        own_ports = list_served_ports(SettingsDraft().load())
    except SettingsError:
        own_ports = []
    port = find_taken_port(draft.load(), own_ports)
    return "" if port is None else port.describe_taken(texts)


def _set_secret(draft: SettingsDraft, name: str, value: str) -> None:
    """Set a secret. Exit if its name looks like a typing mistake, or its value can't be right."""
    if name == ENVIRONMENT["home"]:
        shell.fail(texts.compose("home_variable", name=name))
    _refuse_similar_variable(name, _list_known_variables(draft))
    fault = _find_fault_of_secret(draft, name, value)
    if fault:
        shell.fail(f"{fault} {texts.compose('unchanged')}")
    draft.set_secret(name, value)


def _find_fault_of_secret(draft: SettingsDraft, name: str, value: str) -> str:
    """Return a sentence about a value that can't be right, or ""."""
    if name == ENVIRONMENT["telegram_token"]:
        # Imported here because they take a while to load, and few commands need them.
        from gateway.cli.setup.platforms import TELEGRAM_TOKEN

        if not TELEGRAM_TOKEN.fullmatch(value.strip()):
            return str(texts.tables("setup")["telegram"]["no_token"])
    if name.endswith(("_KEY", "_TOKEN")) and len(value.split()) > 1:
        return texts.compose("key_with_blank", name=name)
    if name == find_option(_merge_options(draft.text), "backup.passphrase"):
        from core.transfer.encryption import MIN_PASSPHRASE_CHARS

        if len(value.strip()) < MIN_PASSPHRASE_CHARS:
            return texts.compose("passphrase_short", least=MIN_PASSPHRASE_CHARS)
    return ""


def _refuse_similar_variable(name: str, known_names: list[str]) -> None:
    """Exit with a suggestion if a name is unknown but similar to a known name."""
    suggestion = suggest_name(name, known_names)
    if name not in known_names and suggestion:
        shell.fail(texts.compose("no_variable", name=name, suggestion=suggestion))


def _list_used_variables(draft: SettingsDraft) -> list[str]:
    """Return the names of the variables that the settings refer to."""
    names = [name for name in ENVIRONMENT.values() if name != ENVIRONMENT["home"]]
    return [*names, *list_named_variables(_merge_options(draft.text))]


def _list_known_variables(draft: SettingsDraft) -> list[str]:
    """Return the names of the variables that the settings refer to or secrets.env sets."""
    return list(dict.fromkeys([*_list_used_variables(draft), *draft.secrets]))


def _locate_secret(draft: SettingsDraft, name: str) -> str:
    """Return where a secret is set, or "" if it isn't set.

    The environment takes precedence over secrets.env.
    """
    if list_environment_names([name]):
        return _ENVIRONMENT
    return SECRETS_FILE if draft.secrets.get(name) else ""


def _name_place(place: str) -> str:
    """Return where a secret is set in the person's language."""
    return texts.compose("the_environment") if place == _ENVIRONMENT else place


def _merge_options(text: str) -> dict[str, Any]:
    options, _ = read_options(SETTINGS_FILE, text)
    options.pop("advice", None)
    return options


def _list_values(options: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted paths and values of all options that aren't tables."""
    for name, value in options.items():
        part = name if re.fullmatch(r"[\w-]+", name) else f'"{name}"'
        if isinstance(value, dict) and value:
            yield from _list_values(value, f"{prefix}{part}.")
        else:
            yield f"{prefix}{part}", value


def _describe_unknown(key: str, known: list[str]) -> str:
    suggestion = suggest_name(key, known)
    if key.upper() in ENVIRONMENT.values():
        suggestion = key.upper()
    if suggestion:
        return texts.compose("option_unknown_similar", name=key, suggestion=suggestion)
    return texts.compose("option_unknown", name=key)


def _write(draft: SettingsDraft, result: str, key: str, *, is_used: bool = True) -> None:
    """Write the draft, and print what changed and when it takes effect.

    A secret that no setting uses takes no effect.
    """
    if not draft.is_changed:
        print_text(texts.compose("already_so"))
        return
    draft.write()
    sentences = [result]
    if list_environment_names([key]):
        sentences.append(texts.compose("environment_overrides", name=key))
    elif is_used and is_running(draft.home):
        sentences.append(describe_effect(ask_gateway(draft.home, "reload"), key))
    folder = _find_closed_folder(draft)
    if folder is not None:
        sentences.append(texts.compose("service_is_closed", folder=folder))
    print_text(" ".join(sentences))


def _find_closed_folder(draft: SettingsDraft) -> Path | None:
    """Return a folder of the draft in which the installed service may not write, or None.

    Also returns None if the draft is invalid.
    """
    try:
        return find_closed_folder(draft.load())
    except SettingsError:
        return None


def describe_effect(report: Mapping[str, Any] | None, key: str) -> str:
    """Return a sentence that says when the gateway uses a changed option.

    If `key` is "", this covers all options. Options that were changed earlier may also wait for the
    next start.
    """
    if report is None or report.get("problems"):
        return texts.compose("used_after_start")
    waiting = [path for path in report["restart"] if _is_about_option(path, key)]
    if waiting:
        names = ", ".join(path.removeprefix("variables.") for path in waiting)
        return texts.compose("options_used_after_start", options=names)
    return texts.compose("used_now")


def _is_about_option(path: str, key: str) -> bool:
    """Return whether `path` is the option `key`, in its table, or a secret of that name."""
    name = key.replace('"', "")
    return not name or path in (name, f"variables.{name}") or path.startswith(f"{name}.")
