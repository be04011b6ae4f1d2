"""Defines the shell commands `mneme memory providers`, `setup`, `sync` and `engine`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from config.draft import SettingsDraft
from config.files import OptionForm, OptionsError, OptionValue, Secret, set_options
from config.masking import has_url_password
from config.settings import ProviderOptions, Settings, find_home
from core.dates.period_name import read_period
from core.errors import ConfigError
from core.memory.plugins import BUILT_IN, Plugins, join_clauses
from core.memory.provider import MemoryProvider, Mode, sync_hooks_of
from core.store.mailbox import OutboxCounts
from core.store.sync import PLATFORM as MEMORY
from core.store.sync import SyncQueue
from gateway.cli import shell
from gateway.cli.shell import AsJson, Yes
from gateway.commands.registry import CommandContext
from gateway.services import Services, load_providers
from gateway.sharing.home_lock import is_running
from gateway.texts.catalog import SHELL as texts
from gateway.texts.catalog import Texts
from gateway.texts.text_files import load_service_options

if TYPE_CHECKING:
    from gateway.cli.engine import Engine

_SETTINGS_FILE = "mneme.toml"
_PROVIDERS_TABLE = ("memory", "providers")
_ENGINES_TABLE = ("memory", "engines")
# The services that have a server which Mneme can run.
EngineName = Literal["hindsight"]


def add_service_commands(memory: typer.Typer) -> None:
    """Add the commands about memory services to the group `mneme memory`."""
    memory.command("providers")(providers_command)
    memory.command("setup")(setup_command)
    memory.command("sync")(sync_command)
    memory.command("engine")(engine_command)


def providers_command(as_json: AsJson = False) -> None:
    """List the built-in memories and the memory services.

    Services come with the package, or from the folder plugins/ in Mneme's home.
    """

    async def work(services: Services, _: CommandContext) -> object:
        """List the memories, or return them for JSON."""
        providers, problems = load_providers(services.settings)
        states = await _load_provider_states(services, providers)
        warnings = [texts.word(problem) for problem in problems.values()]
        if as_json:
            rows = [{"name": name} | asdict(state) for name, state in states.items()]
            return {"providers": rows, "warnings": warnings}
        lines = [
            texts.pair(name, _describe_provider(name, state)) for name, state in states.items()
        ]
        shell.print_text("\n".join(lines + warnings))
        return None

    shell.run_as_owner(work)


@dataclass(frozen=True, slots=True)
class _ProviderState:
    """The state of a built-in memory or a memory service, for the list of memories."""

    state: Literal["on", "off", "not set up", "broken"]
    is_built_in: bool = False
    mode: str = ""
    # Messages that wait to be sent to a service, and messages that couldn't be sent.
    waiting: int = 0
    undelivered: int = 0
    error: str = ""


async def _load_provider_states(
    services: Services, providers: Sequence[MemoryProvider]
) -> dict[str, _ProviderState]:
    """Return the state of each memory by its name.

    `providers` are the services that are switched on.
    """
    settings = services.settings
    states = dict.fromkeys(BUILT_IN, _ProviderState("on", is_built_in=True))
    plugins = Plugins(settings.home)
    for name in plugins.names():
        states[name] = _ProviderState("off" if name in settings.memory.providers else "not set up")
        try:
            plugins.load_form(name)
        except ConfigError as error:
            states[name] = _ProviderState("broken", error=texts.word(error))
    for provider in providers:
        counts = await services.outbox.count_items(f"{MEMORY}:{provider.name}:")
        states[provider.name] = _ProviderState(
            "on",
            mode=provider.mode,
            waiting=counts.held + counts.due,
            undelivered=counts.dead,
            error=counts.error,
        )
    if not settings.memory.facts:
        states["facts"] = _ProviderState("off", is_built_in=True)
    return states


def _describe_provider(name: str, state: _ProviderState) -> str:
    """Return the state of a memory in words, such as "on, hybrid" or "off"."""
    if state.is_built_in:
        key = "built_in" if state.state == "on" else "built_in_off"
        return texts.table("PROVIDER_STATES")[key]
    text = texts.table("PROVIDER_STATES")[state.state].format(
        name=name, mode=state.mode, error=texts.word_service_error(state.error)
    )
    counts = OutboxCounts(held=0, due=state.waiting, dead=state.undelivered, error=state.error)
    sync_state = texts.describe_sync_state(counts)
    return f"{text}{texts.SEMICOLON}{sync_state}" if sync_state else text


def complete_service(incomplete: str) -> list[str]:
    """Suggest the names of memory services and plugins."""
    return [name for name in Plugins(find_home()).names() if name.startswith(incomplete)]


ServiceName = Annotated[str, typer.Argument(autocompletion=complete_service)]


def sync_command(
    name: ServiceName,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME"),
    ] = None,
) -> None:
    """Send earlier messages to a memory service.

    Messages that it already has aren't sent again. Messages that couldn't be delivered before are
    tried once more. Scheduled, incognito and forgotten messages are never sent.
    """

    async def work(services: Services, _: CommandContext) -> None:
        """Queue the messages that the service doesn't have, and print a report."""
        provider = _find_provider(name, *load_providers(services.settings))
        start = _read_start(services, since)
        queue = SyncQueue(
            services.database,
            services.clock,
            hooks={name: sync_hooks_of(provider)},
            batch_sizes={name: provider.every_turns},
        )
        retried_count = await services.outbox.retry_dead(f"{MEMORY}:{name}:")
        session_count = await queue.catch_up(start)

        sessions = texts.format_count(session_count, "conversation")
        sentences = [texts.compose("sync_queued", conversations=sessions, name=name)]
        if retried_count:
            messages = texts.format_count(retried_count, "message")
            sentences.append(texts.compose("sync_repeated", messages=messages))
        is_started = is_running(services.settings.home)
        sentences.append(texts.compose("sync_starts" if is_started else "sync_waits"))
        shell.print_text(" ".join([*sentences, texts.compose("sync_progress")]))

    shell.run_as_owner(work)


def _read_start(services: Services, since: str | None) -> datetime:
    """Return the beginning of the period `since`, or the earliest time if it's None.

    Raises BadParameter if `since` isn't a time.
    """
    if since is None:
        return datetime.fromtimestamp(0, UTC)
    period = read_period(since, services.clock.now(), services.zone)
    if period is None:
        raise typer.BadParameter(texts.compose("wrong_time"), param_hint="--since")
    return period[0]


def _find_provider(
    name: str, providers: Sequence[MemoryProvider], problems: Mapping[str, ConfigError]
) -> MemoryProvider:
    """Return the memory service with this name. If it isn't on, exit with the reason."""
    matches = [provider for provider in providers if provider.name == name]
    if not matches:
        if name in problems:
            shell.fail(texts.word(problems[name]))
        shell.fail(texts.compose("service_off", name=name))
    return matches[0]


def setup_command(
    name: ServiceName,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
        ),
    ] = None,
    mode: Annotated[
        Mode | None,
        typer.Option(
            "--mode",
        ),
    ] = None,
    is_off: Annotated[bool, typer.Option("--off")] = False,
) -> None:
    """Set up a memory service and switch it on, or off with --off.

    It asks for the options that the service needs, and writes them to mneme.toml.
    """
    with shell.exit_on_error():
        if is_off:
            _switch_off(name)
        else:
            _switch_on(name, given or (), mode)


def _switch_off(name: str) -> None:
    """Switch off a memory service in mneme.toml.

    Raises ConfigError if the file can't be changed.
    """
    settings = Settings.load()
    if name not in settings.memory.providers:
        shell.fail(texts.compose("service_not_set_up", name=name))
    try:
        set_options(settings.home / _SETTINGS_FILE, (*_PROVIDERS_TABLE, name), {"enabled": False})
    except ValueError as error:
        raise ConfigError(_word_problem(error)) from error
    typer.echo(texts.compose("service_will_be_off", name=name))


def _switch_on(name: str, assignments: Sequence[str], mode: Mode | None) -> None:
    """Write the options of a memory service to mneme.toml, and test whether the service answers.

    `assignments` are options in the form KEY=VALUE. At a terminal, the person is asked for missing
    options. Raises typer.BadParameter if an assignment is invalid, and ConfigError if an option is
    missing or mneme.toml can't be changed. Exits with code 1 if the service can't be switched on,
    for example because its key isn't set.
    """
    settings = Settings.load()
    try:
        form = Plugins(settings.home).load_form(name)
        existing = settings.memory.providers.get(name) or ProviderOptions()
        options: dict[str, OptionValue] = {"enabled": True, "mode": mode or existing.mode}
        options |= ask_for_options(form, name, assignments, existing.model_extra or {})
        set_options(settings.home / _SETTINGS_FILE, (*_PROVIDERS_TABLE, name), options)
        _ask_for_secrets(form, Settings.load().memory.providers[name].model_extra or {})
    except ValueError as error:
        raise ConfigError(_word_problem(error)) from error

    providers, problems = load_providers(Settings.load())
    if problem := problems.get(name):
        shell.print_text(texts.SERVICE_IS_OFF.format(name=name, problem=texts.word(problem)))
    elif _probe(_find_provider(name, providers, problems)):
        typer.echo(texts.compose("service_will_be_on", name=name))
    else:
        typer.echo(texts.compose("service_does_not_work", name=name))
    for other_name, warning in problems.items():
        if other_name != name:
            shell.print_text(texts.word(warning))
    if name in problems:
        raise typer.Exit(1)


def _probe(provider: MemoryProvider) -> bool:
    """Call a memory service once, and print its answer or the problem.

    Returns whether it works.
    """
    from gateway.check import probe_provider, run_probe

    result = asyncio.run(run_probe(provider.name, probe_provider(provider)))
    if result.state == "wrong":
        reason = f"{result.text} {result.advice}".strip()
        shell.print_text(texts.compose("service_answers_wrong", reason=reason))
    elif result.text:
        typer.echo(texts.compose("service_found", text=result.text))
    return result.state != "wrong"


def engine_command(
    name: Annotated[EngineName, typer.Argument()],
    action: Annotated[Literal["start", "stop", "status"], typer.Argument()] = "status",
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
        ),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option("--program"),
    ] = None,
    yes: Yes = False,
) -> None:
    """Run the server of a memory service on this machine.

    Only hindsight has such a server, with its own PostgreSQL. "start" asks for the options that the
    server needs, and whether to install it. `mneme run` neither starts nor stops the server.
    """
    from gateway.cli.engine import Engine

    with shell.exit_on_error():
        settings = Settings.load()
        engine = Engine(settings.home)
        match action:
            case "start":
                assignments = list(given or ())
                if program:
                    assignments.append(f"program={program}")
                engine = _start_engine(settings, name, assignments, is_confirmed=yes)
                shell.print_text(engine.status())
            case "stop":
                was_running = engine.stop()
                shell.print_text(
                    texts.compose("engine_stopped" if was_running else "engine_not_running")
                )
            case "status":
                shell.print_text(engine.status())


def _start_engine(
    settings: Settings, name: EngineName, assignments: Sequence[str], *, is_confirmed: bool
) -> Engine:
    """Write the options of the server to mneme.toml, install it if it's missing, and start it.

    The person is asked before the installation unless `is_confirmed`. Raises ConfigError if an
    option is invalid, or if the installation or the start fails.
    """
    from gateway.cli.engine import Engine, EngineOptions

    form = OptionForm(EngineOptions)
    try:
        existing = settings.memory.engines.get(name, {})
        new_options = ask_for_options(form, f"engine_{name}", assignments, existing)
        if new_options:
            set_options(settings.home / _SETTINGS_FILE, (*_ENGINES_TABLE, name), new_options)
        _ask_for_secrets(form, Settings.load().memory.engines[name])
        settings = Settings.load()
        variables = {key: secret.get_secret_value() for key, secret in settings.variables.items()}
        options = form.build_options(settings.memory.engines[name], variables)
    except ValueError as error:
        raise ConfigError(_word_problem(error)) from error

    engine = Engine(settings.home, options.program)
    if not engine.is_installed:
        if not is_confirmed:
            shell.require_yes(texts.compose("engine_install", folder=engine.environment))
        engine.install()
    engine.start(options)
    return engine


def ask_for_options(
    form: OptionForm, service: str, assignments: Sequence[str], existing: Mapping[str, object]
) -> dict[str, OptionValue]:
    """Return new values for the options of a form, by name.

    The values come from `assignments` (KEY=VALUE). At a terminal, the person is then asked for
    missing required options and, if there are no assignments, for some optional ones. Options in
    `existing` already have a value. Raises ConfigError if a required option is missing and there
    is no terminal.
    """
    values = _parse_assignments(form, assignments)
    missing = [key for key in form.required_names if key not in values and key not in existing]
    if not sys.stdin.isatty():
        if missing:
            questions = [word_question(form, service, key, texts) for key in missing]
            raise ConfigError("\n".join([texts.compose("options_missing"), *questions]))
        return values
    prompts = list(missing)
    if not assignments:
        prompts += [key for key in form.prompted_defaults if key not in existing]
    for key in form.sort_prompts(prompts):
        if key in missing or form.is_needed(key, {**existing, **values}):
            value = _prompt_for_option(form, service, key)
            if value is not None:
                values[key] = value
    return values


def _parse_assignments(form: OptionForm, assignments: Sequence[str]) -> dict[str, OptionValue]:
    """Parse options of the form KEY=VALUE.

    Raises BadParameter if an option doesn't have that form, and ValueError for an invalid value.
    """
    values = {}
    for assignment in assignments:
        key, separator, text = assignment.partition("=")
        key = key.strip()
        if not separator or not key:
            example = f"{assignment or 'key'}=value"
            raise typer.BadParameter(
                texts.compose("wrong_assignment", example=example), param_hint="--set"
            )
        values[key] = _parse_value(form, key, text)
    return values


def _parse_value(form: OptionForm, key: str, text: str) -> OptionValue:
    """Parse the value of an option. Raises ValueError if it's invalid or contains a password."""
    value = form.parse_value(key, text)
    if isinstance(value, str) and has_url_password(value):
        secret_names = [name for name in form.fields if form.is_secret(name)]
        place = texts.SECRET_PLACE.format(key=secret_names[-1]) if secret_names else ""
        raise ValueError(f"{texts.compose('password_in_option', name=key)}{place}")
    return value


def _prompt_for_option(form: OptionForm, service: str, key: str) -> OptionValue | None:
    """Ask for the value of an option until it's valid. Returns None to use the default."""
    shown_default = None
    if key in form.prompted_defaults:
        default = form.prompted_defaults[key]
        shown_default = "" if isinstance(default, Secret) else str(default)
    while True:
        text = typer.prompt(word_question(form, service, key, texts), shown_default)
        if text == shown_default:
            return None
        try:
            return _parse_value(form, key, text)
        except ValueError as error:
            shell.print_text(_word_problem(error))


def word_question(form: OptionForm, service: str, key: str, texts: Texts) -> str:
    """Return the question for an option, such as "port: the port on 127.0.0.1 (a whole number)"."""
    words = texts.table("SERVICE_OPTIONS")
    purposes = load_service_options(texts.language, service)
    purpose = purposes.get(key) or form.describe(key)
    kind = words[form.kind(key)]
    if not purpose:
        return texts.pair(key, kind)
    return words["question"].format(name=key, help=purpose, kind=kind)


def _word_problem(error: ValueError) -> str:
    """Return the problem with the options of a service in the shell's language."""
    if isinstance(error, OptionsError):
        return texts.word(join_clauses(error))
    return str(error)


def _ask_for_secrets(form: OptionForm, options: Mapping[str, object]) -> None:
    """Ask for the value of each variable that an option names and that isn't set.

    The values are stored in secrets.env. Without a terminal, nothing is asked. Raises
    ValueError if a value isn't a single line.
    """
    if not sys.stdin.isatty():
        return
    draft = SettingsDraft()
    variables = draft.load().variables
    for key in filter(form.is_secret, form.fields):
        name = options.get(key)
        if not isinstance(name, str) or not name or name in variables:
            continue
        question = texts.compose("secret_question", name=name)
        value = typer.prompt(question, default="", hide_input=True, show_default=False)
        if value.strip():
            draft.set_secret(name, value)
    draft.write()
