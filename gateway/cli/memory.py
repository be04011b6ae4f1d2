"""`mneme memory`, `remember`, `facts`, `forget` and `skills`: what is kept for good, with the words that a chat has for
it; and the memory services of one's choice."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

import typer

from config.files import OptionForm, Secret, Value, keep_options
from config.settings import ProviderOptions, Settings
from core.dates.periods import read as read_period
from core.errors import ConfigError
from core.memory.manager import hooks_of
from core.memory.plugins import BUILT_IN, Plugins
from core.memory.provider import MemoryProvider, Mode
from core.notes.notebook import FILES
from core.review.pending import ANYWAY
from core.store.sync import PLATFORM as MEMORY
from core.store.sync import SyncQueue
from core.types import Scope
from gateway import texts
from gateway.cli import shell
from gateway.cli.shell import AsJson, InScope, Limit, Words, Yes
from gateway.commands.registry import CommandContext
from gateway.services import Services, chosen, is_running

MEMORY_COMMANDS, SKILL_COMMANDS = "memory.MemoryCommands", "skills.SkillCommands"
SKILL_FIELDS = ("name", "description", "category", "front", "is_disabled", "needs_shell", "uses", "used_at")
FACT_FIELDS = ("id", "kind", "content", "is_pinned", "valid_from", "valid_to", "message_id")
Anyway = Annotated[bool, typer.Option("--anyway", help="Keep it although it looks like a secret or the like.")]


def add_commands(app: typer.Typer) -> None:
    memory = _as_in_chat(MEMORY_COMMANDS, "memory", _list, "What is noted and known for good, and what became of it.")
    memory.command("providers")(_providers)
    memory.command("setup")(_setup)
    memory.command("sync")(_sync)
    memory.command("engine")(_engine)
    app.add_typer(memory, name="memory")
    about = "Procedures that the assistant follows: folders with a SKILL.md."
    app.add_typer(_as_in_chat(SKILL_COMMANDS, "skills", _list_skills, about), name="skills")
    app.command("remember")(_remember)
    app.command("facts")(_list_facts)
    app.command("forget")(_forget)


def _as_in_chat(group: str, name: str, listing: Callable[..., None], about: str) -> typer.Typer:
    """A group of shell commands for what /`name` does."""

    def as_in_chat(action: str) -> Callable[..., None]:
        def run(words: Words = None, scope: InScope = None, anyway: Anyway = False, yes: Yes = False) -> None:
            said = list(words or ())
            if action == "replace" and said and "=>" not in " ".join(said):
                said.insert(1, "=>")
            shell.chat(group, name, [action, *([ANYWAY] if anyway else []), *said], scope, yes=yes)

        return run

    commands = typer.Typer(cls=shell.Group, help=about)
    commands.command("list")(listing)
    helps = texts.table("SKILLS_ACTIONS") if name == "skills" else texts.table("MEMORY_ACTIONS")
    for action, help_text in helps.items():
        commands.command(action, help=help_text)(as_in_chat(action))
    return commands


def _list(words: Words = None, scope: InScope = None, as_json: AsJson = False) -> None:
    """List the notes and what is known; "memory" (what I learned) or "user" (who you are): these notes alone."""

    async def objects(services: Services, scopes: frozenset[Scope]) -> object:
        wanted = [name for name in FILES if not words or name in words]
        return {name: await services.notebook.entries(scopes, name) for name in wanted}

    shell.chat(MEMORY_COMMANDS, "memory", ["list", *(words or ())], scope, objects=objects if as_json else None)


def _list_skills(words: Words = None, scope: InScope = None, as_json: AsJson = False) -> None:
    """List the skills, those with these words, and what was not used for long."""

    async def objects(services: Services, scopes: frozenset[Scope]) -> object:
        found, troubles = await services.skills.listed(scopes, " ".join(words or ()))
        shown = [{name: getattr(one, name) for name in SKILL_FIELDS} | {"scope": one.scope.key} for one in found]
        return {"skills": shown, "troubles": troubles}

    shell.chat(SKILL_COMMANDS, "skills", ["list", *(words or ())], scope, objects=objects if as_json else None)


def _remember(words: Words = None, scope: InScope = None) -> None:
    """Remember a fact for good: "Ana's birthday is on 3 May"."""
    shell.chat("facts.FactCommands", "remember", words, scope)


def _list_facts(words: Words = None, limit: Limit = 50, scope: InScope = None, as_json: AsJson = False) -> None:
    """What I know, the latest first; with words, what has to do with them, best first."""

    async def work(services: Services, context: CommandContext) -> None:
        from gateway.commands.facts import FactCommands

        commands = FactCommands(services)
        text = " ".join(words or ())
        facts = await commands.find(text, context, limit)
        if not facts and not as_json:
            shell.tell(f"I know nothing about “{text}”." if words else texts.NOTHING_YET)
        for fact in facts:
            if not as_json:
                shell.tell(f"f{fact.id}: {commands.known.line_of(fact)}")
                continue
            shown = {name: getattr(fact, name) for name in FACT_FIELDS}
            shell.say_json(shown | {"scope": fact.scope.key, "is_current": fact.is_open, "trust": round(fact.trust, 2)})

    shell.visit(work, scope)


def _forget(words: Words = None, yes: Yes = False, scope: InScope = None) -> None:
    """Erase what was said about something (words, a phrase in quotes, filters, as for `mneme recall`), and all that I
    made of it."""
    shell.chat("privacy.ForgetCommands", "forget", words, scope, yes=yes)


def _providers(as_json: AsJson = False) -> None:
    """List the memories there are: what is built in, and services, in the package and in plugins/ of the home."""

    async def work(services: Services, _: CommandContext) -> object:
        settings = services.settings
        found, wrong = chosen(settings)
        plugins = Plugins(settings.home)
        rows = dict.fromkeys(BUILT_IN, "built in, always on")
        for name in plugins.names():
            is_known = name in settings.memory.providers
            rows[name] = "off" if is_known else f"not set up; mneme memory setup {name} does it"
            try:
                plugins.form(name)
            except ConfigError as error:
                rows[name] = f"broken: {error}"
        for one in found:
            sync = texts.sync_state(await services.outbox.counts(f"{MEMORY}:{one.name}:"))
            rows[one.name] = f"on, {one.mode}" + (f"; {sync}" if sync else "")
        if not settings.memory.facts:
            rows["facts"] = "built in, switched off by memory.facts"
        if as_json:
            return {"providers": rows, "warnings": list(wrong.values())}
        shell.tell("\n".join([*(f"{name}: {state}" for name, state in rows.items()), *wrong.values()]))
        return None

    shell.visit(work)


def _sync(
    name: Annotated[str, typer.Argument(help="A service that is on.")],
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only what was said in this time or later.")
    ] = None,
) -> None:
    """Tell a memory service what was said before it was there, and once more what was given up.

    What it was told already is not told again; what was scheduled, incognito or forgotten is told to nobody.
    """

    async def work(services: Services, _: CommandContext) -> None:
        found, wrong = chosen(services.settings)
        provider = next((one for one in found if one.name == name), None)
        if provider is None:
            shell.fail(wrong.get(name) or f"The memory {name} is not on; `mneme memory setup {name}` sets it up.")
        begins = datetime.fromtimestamp(0, UTC)
        if since is not None:
            period = read_period(since, services.clock.now(), services.zone)
            if period is None:
                raise typer.BadParameter("write a time like 2026-05-01, May or last week", param_hint="--since")
            begins = period[0]
        hooks, every = {name: hooks_of(provider)}, {name: provider.every_turns}
        queue = SyncQueue(services.database, services.clock, hooks=hooks, every=every)
        again = await services.outbox.retry_dead(f"{MEMORY}:{name}:")
        sessions = await queue.catch_up(begins)
        more = f", and once more of what was given up ({texts.counted(again, 'message')})" if again else ""
        when = ", as it does now" if is_running(services.settings.home) else ": start it"
        shell.tell(
            f"{name} is told of {texts.counted(sessions, 'conversation')} that it does not know{more}. That happens "
            f"while Mneme runs{when}; `mneme memory providers` says how far it is."
        )

    shell.visit(work)


def _setup(
    name: Annotated[str, typer.Argument(help="The provider, as `mneme memory providers` lists it.")],
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="An option, instead of being asked for it, or to change it; repeatable."
        ),
    ] = None,
    mode: Annotated[
        Mode | None,
        typer.Option("--mode", help="hybrid: asked before a turn, and tools for the model; or only one of them."),
    ] = None,
    is_off: Annotated[bool, typer.Option("--off", help="Switch it off; its options stay.")] = False,
) -> None:
    """Switch a memory service on: asks for the options that it needs and writes them to mneme.toml."""
    with shell.leaving():
        settings, options = Settings.load(), dict[str, Value](enabled=not is_off)
        present = settings.memory.providers.get(name)
        if is_off and present is None:
            shell.fail(f"The memory {name} is not set up, so it is off.")
        try:
            if not is_off:
                form, present = Plugins(settings.home).form(name), present or ProviderOptions()
                options |= {"mode": mode or present.mode, **_answers(form, given or (), present.model_extra or {})}
            keep_options(settings.home / "mneme.toml", ("memory", "providers", name), options)
        except ValueError as error:
            raise ConfigError(str(error)) from error
        if is_off:
            typer.echo(f"The memory {name} is off, from the next start on. What it was told stays with it.")
            return
        found, wrong = chosen(Settings.load())
        if name in wrong:
            typer.echo(f"The memory {name} is set up.")
        else:
            _try(next(one for one in found if one.name == name))
            typer.echo(
                f"The memory {name} is on, from the next start on, and is told of the conversations of the last day.\n"
                f"What was said earlier stays here, unless you want it to know: mneme memory sync {name}"
            )
        for warning in wrong.values():
            shell.tell(warning)


def _try(provider: MemoryProvider) -> None:
    """Says what answers there."""
    from gateway.check import ask, probed

    result = asyncio.run(ask(provider.name, probed(provider)))
    if result.state == "wrong":
        shell.tell(f"It does not answer as it should: {result.text} {result.advice}".strip())
    elif result.text:
        typer.echo(f"Found {result.text}.")


def _engine(
    name: Annotated[Literal["hindsight"], typer.Argument(help="The service whose server this is about.")],
    action: Annotated[Literal["start", "stop", "status"], typer.Argument(help="What to do.")] = "status",
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="With start: an option, which is kept; repeatable."),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option("--program", help="With start: hindsight-api, if it is here; instead of installing it."),
    ] = None,
    yes: Yes = False,
) -> None:
    """Start, stop or look at the server of a memory service on this machine: hindsight's, with its own PostgreSQL.

    The first start asks for what it needs, and for a yes to install it. `mneme run` neither starts nor stops it.
    """
    from gateway.cli.engine import Engine, EngineOptions

    with shell.leaving():
        settings = Settings.load()
        engine, known = Engine(settings.home), settings.memory.engines.get(name, {})
        if action == "start":
            form, said = OptionForm(EngineOptions), [*(given or ()), *([f"program={program}"] if program else ())]
            try:
                if new := _answers(form, said, known):
                    keep_options(settings.home / "mneme.toml", ("memory", "engines", name), new)
                    settings = Settings.load()
                variables = {key: secret.get_secret_value() for key, secret in settings.variables.items()}
                options = form.filled(settings.memory.engines[name], variables)
            except ValueError as error:
                raise ConfigError(str(error)) from error
            engine = Engine(settings.home, options.program)
            if not engine.is_installed:
                if not yes:
                    shell.ask_for_yes(f"The server is to be installed into {engine.environment}: 1.4 GB, some minutes.")
                engine.install()
            engine.start(options)
        elif action == "stop":
            shell.tell("hindsight has stopped." if engine.stop() else "hindsight did not run.")
            return
        shell.tell(engine.status())


def _answers(form: OptionForm, given: Sequence[str], known: Mapping[str, object]) -> dict[str, Value]:
    """The options as given, and what else must be known as a person at the terminal says."""
    values = {}
    for option in given:
        key, sign, written = option.partition("=")
        if not sign or not key.strip():
            raise typer.BadParameter(f"write {option or 'key'}=value", param_hint="--set")
        values[key.strip()] = form.read(key.strip(), written)
    missing = [key for key in form.required if key not in values and key not in known]
    if missing and not sys.stdin.isatty():
        raise ConfigError("Give what is missing with --set KEY=VALUE:\n" + "\n".join(map(form.question, missing)))
    # Who gives options does not want to be asked for others.
    asked = [key for key in form.asked if key not in known] if sys.stdin.isatty() and not given else []
    for key in dict.fromkeys([*missing, *asked]):
        values |= _said(form, key)
    return values


def _said(form: OptionForm, key: str) -> dict[str, Value]:
    """An option as a person at the terminal says it; nothing where that is its default."""
    default = form.asked.get(key)
    shown = None if key not in form.asked else "" if isinstance(default, Secret) else str(default)
    while True:
        said = typer.prompt(form.question(key), shown)
        if said == shown:
            return {}
        try:
            return {key: form.read(key, said)}
        except ValueError as error:
            shell.tell(str(error))
