"""Asks for the settings that Mneme needs, tests them, and writes them: `mneme setup`.

The changes of a step are written when the step is finished. If some steps are already done, the
person chooses what to change. For scripts, --yes asks no questions and writes all changes at the
end.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import available_timezones

import typer

from config.draft import SettingsDraft
from config.settings import Settings, SettingsError
from core.errors import MnemeError
from core.scheduling.zones import find_zones
from gateway.cli import shell
from gateway.cli.setup import past
from gateway.cli.setup.dialog import Choice, Dialog
from gateway.cli.setup.model import choose_model, set_model_from_options
from gateway.cli.setup.page import set_up_page
from gateway.cli.setup.platforms import set_up_discord, set_up_telegram
from gateway.cli.setup.service import describe_installed
from gateway.cli.setup.steps import Setup, SetupOptions, StepFailed, find_language
from gateway.local.manager import find_closed_folder, find_manager
from gateway.sharing.home_lock import is_running
from gateway.texts.catalog import list_languages
from gateway.texts.text_files import load_names, match_language
from gateway.texts.zone_names import find_native_zones
from gateway.upkeep.catalog import backup_folder, is_in_backups

StepName = Literal[
    "language", "zone", "model", "telegram", "discord", "history", "page", "backup", "service"
]
# Before each of these steps, the person is asked whether to do it.
_OPTIONAL_STEPS = ("telegram", "discord", "page", "backup")
# The secret that a step requires.
_STEP_TOKENS = {"telegram": "TELEGRAM_BOT_TOKEN", "discord": "DISCORD_BOT_TOKEN"}
# The option of each field of `SetupOptions`, and the steps that use it.
_OPTION_STEPS = {
    "language": ("--language", ("language",)),
    "zone": ("--zone", ("zone",)),
    "model": ("--model", ("model",)),
    "url": ("--url", ("model",)),
    "owners": ("--owner", ("telegram", "discord")),
    "imports": ("--import", ("history",)),
    "page": ("--page", ("page",)),
    "backup": ("--backup", ("backup",)),
    "wants_service": ("--service", ("service",)),
}
# The option that a script must set for a step, by its field.
_NEEDED_FIELDS = {"language": "language", "history": "imports"}
# A script that names no step runs these steps only with their options.
_CHOSEN_FIELDS = _NEEDED_FIELDS | {"page": "page", "backup": "backup"}
_FAILURES = (StepFailed, MnemeError, SettingsError, OSError)


def add_commands(root: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    root.command("setup")(setup_command)


def setup_command(  # noqa: PLR0913  Typer reads the options from the signature.
    step: Annotated[StepName | None, typer.Argument()] = None,
    yes: Annotated[
        bool,
        typer.Option("--yes"),
    ] = False,
    language: Annotated[
        str | None, typer.Option("--language", autocompletion=complete_language)
    ] = None,
    zone: Annotated[str | None, typer.Option("--zone", autocompletion=complete_zone)] = None,
    model: Annotated[str | None, typer.Option("--model")] = None,
    url: Annotated[str | None, typer.Option("--url")] = None,
    owner: Annotated[
        list[str] | None,
        typer.Option("--owner", metavar="ACCOUNT"),
    ] = None,
    import_files: Annotated[
        list[str] | None,
        typer.Option("--import", metavar="FILE"),
    ] = None,
    page: Annotated[str | None, typer.Option("--page", metavar="PORT")] = None,
    backup: Annotated[str | None, typer.Option("--backup", metavar="FOLDER")] = None,
    service: Annotated[bool, typer.Option("--service")] = False,
) -> None:
    """Set up Mneme: time zone, model, Telegram, Discord, earlier conversations, page, backups,
    service.

    Each answer is tested before it is stored. Options go into mneme.toml, keys and tokens into
    secrets.env. Run it again to change one thing.
    """
    typed_options: dict[str, Sequence[str | None]] = {
        "language": [language],
        "zone": [zone],
        "model": [model],
        "url": [url],
        "owners": owner or [],
        "imports": import_files or [],
        "page": [page],
        "backup": [backup],
    }
    _refuse_empty_options(typed_options)
    options = SetupOptions(
        language=language or "",
        zone=zone or "",
        model=model or "",
        url=url or "",
        owners=tuple(owner or ()),
        imports=tuple(import_files or ()),
        page=(page or "").strip(),
        backup=backup or "",
        wants_service=service,
    )
    with shell.exit_on_error():
        if yes:
            run_script(_begin(options, is_interactive=False), step)
            return
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            shell.fail(_begin(options, is_interactive=False).words["no_terminal"].strip())
        run_wizard(step, options)


def _refuse_empty_options(typed_options: Mapping[str, Sequence[str | None]]) -> None:
    """Exit with a sentence if an option was given without a text, as from an unset variable."""
    for field, values in typed_options.items():
        option, _ = _OPTION_STEPS[field]
        for value in values:
            shell.refuse_empty(option, value)


def _begin(options: SetupOptions, *, is_interactive: bool) -> Setup:
    """Return a new setup in the language of the options, the settings or the shell."""
    draft = SettingsDraft()
    setup = Setup(dialog=Dialog(is_interactive=is_interactive), draft=draft, options=options)
    setup.speak(match_language(options.language) or find_language(draft))
    return setup


def is_anything_set_up(draft: SettingsDraft) -> bool:
    """Return whether the home has settings or secrets, or the environment has a key or token."""
    if draft.text.strip() or draft.secrets:
        return True
    settings = draft.load()
    return settings.has_model or bool(settings.platform_tokens)


def offer_setup() -> None:
    """Offer the setup before the first start in a terminal, and run it if the person agrees.

    The setup isn't offered if anything is already set up, or if input or output isn't a terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or is_anything_set_up(SettingsDraft()):
        return
    try:
        with shell.show_typing():
            setup = _begin(SetupOptions(), is_interactive=True)
            if setup.dialog.confirm(setup.words["offer"], default=True):
                run_wizard(None, SetupOptions())
    except EOFError:
        return


def run_wizard(step: StepName | None, options: SetupOptions) -> None:
    """Ask the questions of one step, of all steps, or of the steps that the person chooses."""
    setup = _begin(options, is_interactive=True)
    is_in_use = _warn_if_running(setup)
    try:
        if step is not None:
            _run_step(setup, step)
        elif setup.draft.text.strip() or setup.draft.secrets:
            _run_chosen_steps(setup)
        else:
            if not find_language(setup.draft):
                _run_step(setup, "language")
            setup.dialog.tell(setup.words["welcome"].strip())
            for name in setup.words["steps"]:
                if name == "language":
                    continue
                setup.dialog.tell(f"\n{setup.words['steps'][name]}")
                if name not in _OPTIONAL_STEPS or _is_wanted(setup, name):
                    _run_step(setup, name)
    except (KeyboardInterrupt, EOFError):
        setup.dialog.tell(f"\n{setup.words['stopped']}")
        raise typer.Exit(130) from None
    _finish(setup, is_in_use=is_in_use)


def _warn_if_running(setup: Setup) -> bool:
    """Return whether a gateway is running. If so, say when it will use the changes."""
    is_in_use = is_running(setup.draft.home)
    if is_in_use:
        setup.dialog.tell(setup.words["is_running"])
    return is_in_use


def _finish(setup: Setup, *, is_in_use: bool) -> None:
    """Print where the settings are and, if Mneme isn't running, how to start it."""
    starts = not is_in_use and not is_running(setup.draft.home)
    sentence = setup.words["finished" if starts else "stored"]
    setup.dialog.tell(sentence.format(home=setup.draft.home))


def _is_wanted(setup: Setup, step: str) -> bool:
    question = setup.words.get(f"use_{step}", setup.words["use"])
    question = question.format(step=setup.words["steps"][step])
    is_wanted = setup.dialog.confirm(question, default=step == "telegram")
    if not is_wanted:
        setup.dialog.tell(setup.words["left_out"].format(step=step))
    return is_wanted


def _run_chosen_steps(setup: Setup) -> None:
    """Let the person choose and run steps until they're done."""
    choices = [Choice(name, label) for name, label in setup.words["steps"].items()]
    choices.append(Choice("", setup.words["done"]))
    while True:
        name = setup.dialog.choose(setup.words["which_step"], choices, default="")
        if not name:
            return
        _run_step(setup, name)


def _run_step(setup: Setup, name: str) -> None:
    """Run a step until it succeeds or the person gives up.

    The changes of a failed attempt are discarded.
    """
    while True:
        try:
            _STEPS[name](setup)
            setup.draft.write()
            return
        except _FAILURES as error:
            setup.draft = SettingsDraft()
            setup.dialog.warn(setup.describe_failure(error))
            if not setup.dialog.confirm(setup.words["try_again"], default=True):
                setup.dialog.tell(setup.words["left_out"].format(step=name))
                return


def _set_language(setup: Setup) -> None:
    """Ask for the language, and continue in it.

    Raises StepFailed if the option names a language that Mneme has no texts in.
    """
    words = setup.words["language"]
    typed = setup.options.language
    code = match_language(typed) or ""
    if typed and not code:
        codes = ", ".join(list_languages())
        raise StepFailed(words["unknown"].format(language=typed, codes=codes))
    if not code:
        choices = [Choice(code, load_names()[code]) for code in list_languages()]
        code = setup.dialog.choose(words["question"], choices, default=setup.texts.language)
    setup.set_option("general.language", code)
    setup.speak(code)
    result = setup.words["language"]["result"]
    setup.dialog.tell(result.format(language=setup.texts.language_name))


def _set_zone(setup: Setup) -> None:
    """Ask for the time zone, and suggest the machine's.

    This also stores the shell's language, because a background service doesn't have the shell's
    environment.
    """
    language = find_language(setup.draft)
    if language and "language" not in setup.draft.own_options.get("general", {}):
        setup.set_option("general.language", language)
    current = setup.draft.load().general.zone
    zone = setup.options.zone
    if not zone and setup.dialog.is_interactive:
        zone = setup.dialog.ask(setup.words["zone"]["question"], current)
    zone = _find_zone(setup, zone) if zone else current
    setup.set_option("general.zone", zone)
    setup.dialog.tell(setup.words["zone"]["result"].format(zone=zone))


def _find_zone(setup: Setup, name: str) -> str:
    """Return the time zone with this name or city. Raises StepFailed if there is none."""
    zones = [name] if name == "auto" else find_zones(name) or find_native_zones(name)
    if len(zones) != 1:
        raise StepFailed(setup.words["zone"]["unknown"].format(zone=name))
    return zones[0]


def _set_backup_folder(setup: Setup) -> None:
    """Ask for the folder for daily backups, and create it."""
    words = setup.words["backup"]
    current = setup.draft.own_options.get("backup", {}).get("folder", "")
    typed = setup.options.backup or current or f"{setup.draft.home}.backups"
    if setup.dialog.is_interactive:
        typed = setup.dialog.ask(words["question"], typed)
    folder = Path(typed).expanduser()
    if not folder.is_absolute():
        raise StepFailed(words["not_absolute"].format(folder=folder))
    if is_in_backups(setup.draft.home, folder):
        sentence = setup.texts.compose("backup_in_home", folder=folder)
        raise StepFailed(sentence.splitlines()[0])
    os.makedirs(folder, mode=0o700, exist_ok=True)
    setup.set_option("backup.folder", str(folder))
    setup.set_option("backup.every", "1d")
    setup.dialog.tell(words["result"].format(folder=folder))
    closed_folder = find_closed_folder(setup.draft.load())
    if closed_folder is not None:
        setup.dialog.tell(setup.texts.compose("service_is_closed", folder=closed_folder))


def _install_service(setup: Setup) -> None:
    """Ask whether to run Mneme in the background, and install the service."""
    words = setup.words["service"]
    is_asked = setup.dialog.is_interactive
    if is_asked and not setup.dialog.confirm(words["question"], default=False):
        setup.dialog.tell(setup.words["left_out"].format(step="service"))
        return
    if is_running(setup.draft.home):
        raise StepFailed(words["runs_already"])
    folder = backup_folder(Settings.load())
    manager = find_manager(setup.draft.home, texts=setup.texts, other_folders=[folder])
    setup.dialog.tell(describe_installed(manager, manager.install(), setup.texts))


def run_script(setup: Setup, step: StepName | None) -> None:
    """Set up one step, or all steps that the options and the environment cover, without questions.

    If one step fails, exits with a sentence and writes nothing.
    """
    is_in_use = _warn_if_running(setup)
    # If the setup is refused, none of its results is true.
    setup.dialog.held_texts = []
    try:
        _refuse_options_of_other_steps(setup, step)
        past.check_import_options(setup)
        for name in _STEPS if step is None else (step,):
            if step is not None or _is_in_script(setup, name):
                _run_script_step(setup, name, is_named=step is not None)
        for key in setup.options.owners:
            platform, _, user_id = key.partition(":")
            setup.add_owner(platform, user_id)
        setup.draft.write()
    except _FAILURES as error:
        shell.fail(f"{setup.describe_failure(error)} {setup.words['unchanged']}")
    setup.dialog.print_held()
    past.import_from_options(setup)
    if setup.options.wants_service or step == "service":
        try:
            _install_service(setup)
        except _FAILURES as error:
            shell.fail(setup.describe_failure(error))
    _finish(setup, is_in_use=is_in_use)


def _refuse_options_of_other_steps(setup: Setup, step: StepName | None) -> None:
    """Raise StepFailed if an option belongs to a step that the script doesn't name."""
    for field, (option, steps) in _OPTION_STEPS.items():
        if step is not None and step not in steps and getattr(setup.options, field):
            words = setup.words["other_step"]
            raise StepFailed(words.format(option=option, step=steps[0]))


def _is_in_script(setup: Setup, step: str) -> bool:
    """Return whether a script that names no step runs this step."""
    if step in _STEP_TOKENS:
        return bool(setup.find_secret(_STEP_TOKENS[step]))
    field = _CHOSEN_FIELDS.get(step)
    return not field or bool(getattr(setup.options, field))


def _run_script_step(setup: Setup, step: str, *, is_named: bool) -> None:
    """Run one step without questions. Raises StepFailed if an option it needs is missing.

    `is_named` means that the script asks for this step, so it must not be skipped.
    """
    field = _NEEDED_FIELDS.get(step, "")
    if field and not getattr(setup.options, field):
        option, _ = _OPTION_STEPS[field]
        raise StepFailed(setup.words["option_missing"].format(option=option))
    token = _STEP_TOKENS.get(step, "")
    if token and not setup.find_secret(token):
        raise StepFailed(setup.words["not_set"].format(name=token))
    if step == "model":
        set_model_from_options(setup, is_needed=is_named)
    elif step not in ("history", "service"):
        # Both follow when the settings are written.
        _STEPS[step](setup)


def complete_zone(incomplete: str) -> list[str]:
    """Suggest time zones for shell completion."""
    return [zone for zone in sorted(available_timezones()) if zone.startswith(incomplete)]


def complete_language(incomplete: str) -> list[str]:
    """Suggest Mneme's languages for shell completion."""
    return [code for code in list_languages() if code.startswith(incomplete)]


_STEPS: Mapping[str, Callable[[Setup], None]] = {
    "language": _set_language,
    "zone": _set_zone,
    "model": choose_model,
    "telegram": set_up_telegram,
    "discord": set_up_discord,
    "history": past.import_past,
    "page": set_up_page,
    "backup": _set_backup_folder,
    "service": _install_service,
}
