"""`mneme setup`: asks what Mneme needs, tests each answer, and writes it to the home.

Each step is written when it is finished, or not at all. If something is set up already, the person
chooses what to change. Scripts use --yes, which asks nothing and writes everything at the end.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from config.draft import SettingsDraft
from config.settings import SettingsError
from core.errors import MnemeError
from core.scheduling.zones import find_zones
from gateway.cli import shell
from gateway.cli.setup import past
from gateway.cli.setup.dialog import Choice, Dialog
from gateway.cli.setup.model import choose_model, set_model_from_options
from gateway.cli.setup.platforms import set_up_discord, set_up_telegram
from gateway.cli.setup.service import find_manager
from gateway.cli.setup.steps import Setup, SetupOptions, StepFailed, find_language
from gateway.services import is_running
from gateway.texts.catalog import list_languages
from gateway.texts.text_files import load_names

StepName = Literal["language", "zone", "model", "telegram", "discord", "past", "backup", "service"]
# Steps that the person is asked about first.
_OPTIONAL_STEPS = ("telegram", "discord", "backup")
_FAILURES = (StepFailed, MnemeError, SettingsError, OSError)


def add_commands(root: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    root.command("setup")(setup_command)


def setup_command(
    step: Annotated[StepName | None, typer.Argument()] = None,
    yes: Annotated[
        bool,
        typer.Option("--yes"),
    ] = False,
    zone: Annotated[str, typer.Option("--zone")] = "",
    model: Annotated[str, typer.Option("--model")] = "",
    url: Annotated[str, typer.Option("--url")] = "",
    owner: Annotated[
        list[str] | None,
        typer.Option("--owner", metavar="ACCOUNT"),
    ] = None,
    import_files: Annotated[
        list[str] | None,
        typer.Option("--import", metavar="FILE"),
    ] = None,
) -> None:
    """Set up Mneme: time zone, model, Telegram, Discord, earlier conversations, backups, service.

    Each answer is tested before it is stored. Options go into mneme.toml, keys and tokens into
    secrets.env. Run it again to change one thing.
    """
    options = SetupOptions(
        zone=zone,
        model=model,
        url=url,
        owners=tuple(owner or ()),
        imports=tuple(import_files or ()),
    )
    with shell.exit_on_error():
        if yes:
            _run_script(_begin(options, is_interactive=False))
            return
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            shell.fail(_begin(options, is_interactive=False).words["no_terminal"].strip())
        run_wizard(step, options)


def _begin(options: SetupOptions, *, is_interactive: bool) -> Setup:
    """Return a setup that speaks the language of the options, the settings or the shell."""
    draft = SettingsDraft()
    setup = Setup(dialog=Dialog(is_interactive=is_interactive), draft=draft, options=options)
    setup.speak(find_language(draft))
    return setup


def is_anything_set_up(draft: SettingsDraft) -> bool:
    """Return whether the home, or the environment, has settings, a key or a token."""
    if draft.text.strip() or draft.secrets:
        return True
    settings = draft.load()
    return settings.has_model or bool(settings.platform_tokens)


def offer_setup() -> None:
    """Before the first start in a terminal, ask whether to set Mneme up, and do so.

    Does nothing without a terminal, or if something is set up already.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or is_anything_set_up(SettingsDraft()):
        return
    try:
        setup = _begin(SetupOptions(), is_interactive=True)
        is_wanted = setup.dialog.confirm(setup.words["offer"], default=True)
    except EOFError:
        return
    if is_wanted:
        run_wizard(None, SetupOptions())


def run_wizard(step: StepName | None, options: SetupOptions) -> None:
    """Ask the questions of one step, of all steps, or of those that the person chooses."""
    setup = _begin(options, is_interactive=True)
    try:
        if is_running(setup.draft.home):
            setup.dialog.tell(setup.words["is_running"])
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
    setup.dialog.tell(setup.words["finished"].format(home=setup.draft.home))


def _is_wanted(setup: Setup, step: str) -> bool:
    question = setup.words["use"].format(step=setup.words["steps"][step])
    is_wanted = setup.dialog.confirm(question, default=step == "telegram")
    if not is_wanted:
        setup.dialog.tell(setup.words["left_out"].format(step=step))
    return is_wanted


def _run_chosen_steps(setup: Setup) -> None:
    """Let the person change one thing after the other."""
    choices = [Choice(name, label) for name, label in setup.words["steps"].items()]
    choices.append(Choice("", setup.words["done"]))
    while True:
        name = setup.dialog.choose(setup.words["which_step"], choices, default="")
        if not name:
            return
        _run_step(setup, name)


def _run_step(setup: Setup, name: str) -> None:
    """Run a step until it succeeds or the person gives up. Then its changes are dropped."""
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
    """Ask for the language, with each language by its own name, and go on in it."""
    choices = [Choice(code, load_names()[code]) for code in list_languages()]
    question = setup.words["language"]["question"]
    code = setup.dialog.choose(question, choices, default=setup.texts.language)
    setup.set_option("general.language", code)
    setup.speak(code)
    setup.dialog.tell(setup.words["language"]["result"].format(language=load_names()[code]))


def _set_zone(setup: Setup) -> None:
    """Ask for the time zone. The one of the machine is suggested.

    The language of the shell is kept, too, because a service doesn't have the shell's environment.
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
    """Return the time zone that a person names, also by a city. Raises StepFailed if none is."""
    zones = [name] if name == "auto" else find_zones(name)
    if len(zones) != 1:
        raise StepFailed(setup.words["zone"]["unknown"].format(zone=name))
    return zones[0]


def _set_backup_folder(setup: Setup) -> None:
    """Ask for the folder of daily backups, and create it."""
    words = setup.words["backup"]
    current = setup.draft.own_options.get("backup", {}).get("folder", "")
    default = current or f"{setup.draft.home}.backups"
    folder = Path(setup.dialog.ask(words["question"], default)).expanduser()
    if not folder.is_absolute():
        raise StepFailed(words["not_absolute"].format(folder=folder))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    setup.set_option("backup.folder", str(folder))
    setup.set_option("backup.every", "1d")
    setup.dialog.tell(words["result"].format(folder=folder))


def _install_service(setup: Setup) -> None:
    """Ask whether to run Mneme in the background, and install the service."""
    words = setup.words["service"]
    if not setup.dialog.confirm(words["question"], default=False):
        setup.dialog.tell(setup.words["left_out"].format(step="service"))
        return
    if is_running(setup.draft.home):
        raise StepFailed(words["runs_already"])
    manager = find_manager(setup.draft.home, texts=setup.texts)
    setup.dialog.tell(words["installed"].format(path=manager.install()))
    if manager.needs_linger:
        setup.dialog.tell(words["linger"].strip())


def _run_script(setup: Setup) -> None:
    """Set up everything that the options and the environment name, and write it at the end.

    Exits with a sentence and writes nothing if a part of it doesn't work.
    """
    try:
        past.check_import_options(setup)
        _set_zone(setup)
        set_model_from_options(setup)
        for variable, set_up in (
            ("TELEGRAM_BOT_TOKEN", set_up_telegram),
            ("DISCORD_BOT_TOKEN", set_up_discord),
        ):
            if setup.find_secret(variable):
                set_up(setup)
        for key in setup.options.owners:
            platform, _, user_id = key.partition(":")
            setup.add_owner(platform, user_id)
        setup.draft.write()
        past.import_from_options(setup)
    except _FAILURES as error:
        shell.fail(f"{setup.describe_failure(error)} {setup.words['unchanged']}")
    setup.dialog.tell(setup.words["finished"].format(home=setup.draft.home))


_STEPS: Mapping[str, Callable[[Setup], None]] = {
    "language": _set_language,
    "zone": _set_zone,
    "model": choose_model,
    "telegram": set_up_telegram,
    "discord": set_up_discord,
    "past": past.import_past,
    "backup": _set_backup_folder,
    "service": _install_service,
}
