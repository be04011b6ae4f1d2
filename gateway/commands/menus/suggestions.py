"""Suggests values for command options while a person types, such as facts or time zones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from zoneinfo import available_timezones

from core.menus.command_specs import CommandSpec
from core.notes.notebook import FILES
from core.scheduling.due import next_due
from core.scheduling.zones import find_zones
from core.store.media.files import FileFilter
from core.store.ownership.people import TERMINAL
from core.text.normalize import plain_with_offsets, shorten
from core.types import LOCAL_SCOPE, Account, Answer, Command, Scope, Scopes
from gateway.commands.registry import CommandContext, list_all_specs, parse_number
from gateway.services import Services
from gateway.texts.text_files import load_names
from gateway.texts.zone_names import search_native_zones

# Platforms show at most 25 suggestions of at most 100 characters.
_MAX_SUGGESTIONS = 25
_MAX_CHARS = 100
# The maximum number of facts and files that are searched.
_MAX_FACTS = 500
_MAX_FILES = 100


class Suggestions:
    """Completes options that several commands share. This command group has no commands."""

    specs: tuple[CommandSpec, ...] = ()
    suggests = (
        "facts",
        "notes",
        "entries",
        "jobs",
        "ended_jobs",
        "job_chats",
        "accounts",
        "people",
        "zones",
        "languages",
        "commands",
        "files",
    )

    def __init__(self, services: Services) -> None:
        self._services = services

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Raise an error: this group has no commands, so this method is never called."""
        raise NotImplementedError(command.name)

    async def autocomplete(
        self, source: str, typed: str, scope: Scope, account: Account | None
    ) -> Mapping[str, str]:
        """Return the labels of the values that contain all typed words, by value."""
        scopes = await self._services.people.load_visible_scopes(scope)
        match source:
            case "facts":
                labels = await self._list_facts(scopes)
            case "notes":
                labels = await self._list_notes(scopes)
            case "entries":
                labels = {**await self._list_facts(scopes), **await self._list_notes(scopes)}
            case "jobs":
                labels = await self._list_jobs(scope, scopes)
            case "ended_jobs":
                labels = await self._list_ended_jobs(scope, scopes)
            case "job_chats":
                number, _, typed = typed.partition(" ")
                labels = await self._list_job_chats(number, scopes)
            case "accounts":
                labels = await self._list_own_accounts(scope)
            case "people":
                labels = await self._list_people(scope, scopes)
            case "files":
                labels = await self._list_files(scopes)
            case "zones":
                labels = await _list_zones(typed)
            case "languages":
                labels = self._list_languages(scope)
            case _:
                labels = self._list_commands(scope)
        return filter_labels(labels, "" if source == "zones" else typed)

    async def _list_facts(self, scopes: Scopes) -> dict[str, str]:
        facts = await self._services.facts.list_page(scopes, _MAX_FACTS)
        return {f"f{fact.id}": fact.content for fact in facts}

    async def _list_notes(self, scopes: Scopes) -> dict[str, str]:
        """Return the beginning of each note's first line, by the text that names the note."""
        labels = {}
        for target in FILES:
            for entry in await self._services.notebook.entries(scopes, target):
                line = entry.partition("\n")[0]
                labels[line[:_MAX_CHARS].strip()] = line
        return labels

    async def _list_jobs(self, scope: Scope, scopes: Scopes) -> dict[str, str]:
        texts = self._services.languages.of_scope(scope)
        appointments = self._services.appointments
        jobs = await appointments.jobs.list_visible(scopes)
        return {str(job.id): texts.describe_job(appointments, job) for job in jobs}

    async def _list_ended_jobs(self, scope: Scope, scopes: Scopes) -> dict[str, str]:
        """Return the ended jobs that have a time in the future and so can be restored."""
        texts = self._services.languages.of_scope(scope)
        appointments = self._services.appointments
        now = self._services.clock.now()
        return {
            str(job.id): texts.describe_job(appointments, job)
            for job in await appointments.jobs.list_ended(scopes)
            if next_due(job.schedule, now) is not None
        }

    async def _list_job_chats(self, number: str, scopes: Scopes) -> dict[str, str]:
        """Return the keys of the chats in which the job with this number may be delivered."""
        jobs = self._services.appointments.jobs
        job = await jobs.find(parse_number(number) or 0, scopes)
        if job is None:
            return {}
        keys = [target.key for target in await jobs.list_targets(job.scope)]
        return {key: key for key in ("here", *keys)}

    async def _list_own_accounts(self, scope: Scope) -> dict[str, str]:
        """Return the other accounts of the person whose direct chat this is, with their names."""
        if scope.is_group:
            return {}
        account = scope.speaker("")
        texts = self._services.languages.of_scope(scope)
        labels = {}
        for named in await self._services.links.list_accounts(account):
            key = named.account.key
            if named.account != account:
                labels[key] = texts.annotate(key, named.name) if named.name else key
        return labels

    async def _list_people(self, scope: Scope, scopes: Scopes) -> dict[str, str]:
        """Return the accounts with their names. Only the owner sees them."""
        if LOCAL_SCOPE not in scopes:
            return {}
        texts = self._services.languages.of_scope(scope)
        listed = self._services.settings.access.people
        labels = {key: key for key in listed}
        for known in await self._services.people.list_accounts(listed):
            key = known.account.key
            if known.why and known.account != TERMINAL:
                labels[key] = texts.annotate(key, known.name) if known.name else key
        return labels

    async def _list_files(self, scopes: Scopes) -> dict[str, str]:
        matches = await self._services.files.search("", scopes, FileFilter(), _MAX_FILES)
        return {str(match.file.id): f"{match.file.id}: {match.file.name}" for match in matches}

    def _list_languages(self, scope: Scope) -> dict[str, str]:
        """Return each language's native name, with its name in the language of the chat."""
        texts = self._services.languages.of_scope(scope)
        translations = texts.table("LANGUAGE_NAMES")
        return {
            name: texts.annotate(name, translations[code]) for code, name in load_names().items()
        }

    def _list_commands(self, scope: Scope) -> dict[str, str]:
        texts = self._services.languages.of_scope(scope)
        words = texts.tables("commands")
        return {
            name: texts.pair(f"/{name}", words[name]["description"])
            for name, spec in list_all_specs().items()
            if not spec.is_for_owner
        }


async def _list_zones(typed: str) -> dict[str, str]:
    """Return the time zones of a typed city, then the zones whose names contain the text.

    The city or its beginning may be typed in any of Mneme's languages.
    """
    part = "_".join(typed.lower().split())
    names = [*find_zones(typed)] if typed.strip() else []
    names += sorted(name for name in available_timezones() if part in name.lower())
    labels = {name: name for name in names}
    return labels or await asyncio.to_thread(search_native_zones, typed)


def filter_labels(labels: Mapping[str, str], typed: str) -> dict[str, str]:
    """Return the entries whose value or label contains all typed words."""
    words = _to_plain(typed).split()
    matches = {}
    for value, label in labels.items():
        plain = _to_plain(f"{value} {label}")
        if all(word in plain for word in words):
            matches[value] = shorten(label, _MAX_CHARS - 2)
        if len(matches) == _MAX_SUGGESTIONS:
            break
    return matches


def _to_plain(text: str) -> str:
    plain, _ = plain_with_offsets(text)
    return plain
