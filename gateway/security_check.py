"""Checks for `mneme check --security` who gets answers, what runs, and who could read the data.

The checks change no data and call no server. A finding is `fix` if it should be corrected, `look`
if only the owner can say whether it's intended, and `ok` otherwise.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from config.settings import ENVIRONMENT, LimitedResource, Settings
from core.errors import StoreError
from core.store.ownership.people import TERMINAL, KnownAccount
from gateway.services import STATE_FILE, Services, load_persons
from gateway.texts.catalog import SHELL as texts

# Opens mneme.toml in an editor.
_EDIT_COMMAND = "mneme config edit"
# Schemes that send keys and texts unencrypted.
_PLAIN_SCHEMES = ("http", "ws")
_SCRIPT_SUFFIXES = (".py", ".sh", ".bash", ".js", ".ts", ".rb", ".pl", ".ps1", ".bat")
# The reasons why an account has access. Each has a text in [ACCESS_REASONS].
_REASONS = frozenset(("settings", "listed", "cli", "chat", "code"))
# The limits for the costs that other people can cause.
_COST_LIMITS: tuple[LimitedResource, ...] = ("answers", "input_tokens", "output_tokens", "money")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One result of the security check, and what to do about it."""

    subject: str
    level: Literal["ok", "look", "fix"]
    text: str
    # Names what the text says, for programs, such as "group_members". Never changes.
    key: str
    # The values in the text, such as the accounts of a person.
    values: Mapping[str, object] = field(default_factory=dict)
    advice: str = ""
    # The path or option that the finding is about, if there is one.
    where: str = ""
    # The command that corrects it or shows more, or "" if no command does.
    command: str = ""


async def list_findings(settings: Settings) -> list[Finding]:
    """Return all findings, those to fix first."""
    findings = [
        *await _check_people(settings),
        *_check_groups(settings),
        *_check_limits(settings),
        *_check_addresses(settings),
        *_check_page(settings),
        *_check_plugins(settings),
        *_check_skills(settings),
        *_check_rights(settings),
    ]
    order = ("fix", "look", "ok")
    return sorted(findings, key=lambda finding: order.index(finding.level))


async def _check_people(settings: Settings) -> list[Finding]:
    """List everyone who gets answers, with the reason: the settings or an approval."""
    listed = dict.fromkeys((*settings.owner.accounts, *settings.access.people))
    try:
        async with Services.open(settings) as services:
            persons = await load_persons(services.people, listed)
            pending = await services.people.list_pending(services.clock.now())
    except StoreError as error:
        text = texts.compose("people_unreadable", reason=texts.word(error))
        where = str(settings.home / STATE_FILE)
        return [
            Finding(
                subject="people",
                level="fix",
                text=text,
                key="people_unreadable",
                values={"path": where},
                where=where,
                command="mneme check",
            )
        ]
    served = [[account for account in accounts if account.why in _REASONS] for accounts in persons]
    owner_keys = _list_owner_keys(served, settings)
    findings = [_describe_person(accounts, owner_keys) for accounts in served if accounts]
    if pending:
        findings.append(
            Finding(
                subject="people",
                level="look",
                text=texts.compose("people_ask", count=len(pending)),
                key="people_waiting",
                values={"count": len(pending)},
                advice=texts.compose("people_ask_advice"),
                command="mneme approve",
            )
        )
    if owner_keys == {TERMINAL.key}:
        text = texts.compose("no_owner")
        advice = texts.compose("no_owner_advice")
        findings.append(
            Finding(
                subject="people",
                level="look",
                text=text,
                key="no_owner",
                advice=advice,
                where="owner",
                command=_EDIT_COMMAND,
            )
        )
    text = texts.compose("only_you")
    return findings or [Finding(subject="people", level="ok", text=text, key="only_owner")]


def _list_owner_keys(persons: Sequence[Sequence[KnownAccount]], settings: Settings) -> set[str]:
    """Return the owner's accounts: the terminal, those in the settings, and approved ones."""
    keys = {TERMINAL.key, *settings.owner.accounts}
    for accounts in persons:
        person_keys = {account.account.key for account in accounts}
        if TERMINAL.key in person_keys:
            keys |= person_keys
    return keys


def _describe_person(accounts: Sequence[KnownAccount], owner_keys: Collection[str]) -> Finding:
    """Describe the accounts of one person."""
    parts = [
        texts.annotate(
            account.account.key,
            texts.COMMA.join(
                (
                    account.name or texts.compose("no_name"),
                    texts.table("ACCESS_REASONS")[account.why],
                )
            ),
        )
        for account in accounts
    ]
    text = texts.compose("talks", accounts=texts.COMMA.join(parts))
    values = {
        "accounts": [
            {"account": account.account.key, "name": account.name, "access": account.why}
            for account in accounts
        ]
    }
    if any(account.account.key in owner_keys for account in accounts):
        text = f"{text} {texts.compose('thats_you')}"
        return Finding(subject="people", level="ok", text=text, key="owner", values=values)
    return Finding(
        subject="people",
        level="look",
        text=text,
        key="person",
        values=values,
        advice=texts.compose("remove_unknown"),
        where=accounts[0].account.key,
        command=shlex.join(["mneme", "people", "remove", accounts[0].account.key]),
    )


def _check_groups(settings: Settings) -> Iterator[Finding]:
    """Yield a finding for each allowed group, and for group settings that deserve a look."""
    for group in settings.access.rooms:
        yield Finding(
            subject="groups",
            level="look",
            text=texts.compose("group_writes", group=group),
            key="group_members",
            values={"group": group},
            advice=texts.compose("group_advice"),
            where="access.rooms",
            command=_EDIT_COMMAND,
        )
    for group in settings.owner.rooms:
        text = texts.compose("group_own", group=group)
        values = {"group": group}
        yield Finding(subject="groups", level="ok", text=text, key="group_own", values=values)
    if settings.room.listen and settings.access.rooms:
        yield Finding(
            subject="groups",
            level="look",
            text=texts.compose("group_listens"),
            key="group_listens",
            advice=texts.compose("group_listens_advice"),
            where="room.listen",
            command="mneme config set room.listen false",
        )
    if settings.limits.room_questions:
        yield Finding(
            subject="groups",
            level="look",
            text=texts.compose("group_questions"),
            key="group_questions",
            advice=texts.compose("group_questions_advice"),
            where="limits.room_questions",
            command="mneme config set limits.room_questions false",
        )


def _format_amount(amount: float) -> str:
    return texts.format_number(int(amount) if amount == int(amount) else amount)


def _check_limits(settings: Settings) -> Iterator[Finding]:
    """List the daily limits that are switched off."""
    limits = settings.limits
    tables = (
        ("limits.day", limits.day, "limit_open_person"),
        ("limits.room_day", limits.room_day, "limit_open_group"),
    )
    for name, values, key in tables:
        missing = [limit for limit in _COST_LIMITS if not values.get(limit)]
        if missing:
            yield Finding(
                subject="limits",
                level="fix",
                text=texts.compose(key, table=name, limits=", ".join(missing)),
                key="limits_off",
                values={"table": name, "limits": missing},
                advice=texts.compose("limit_advice", table=name),
                where=name,
                command=_EDIT_COMMAND,
            )
        else:
            amounts = [f"{limit} {_format_amount(values[limit])}" for limit in _COST_LIMITS]
            text = texts.pair(name, texts.COMMA.join(amounts))
            yield Finding(
                subject="limits",
                level="ok",
                text=f"{text}.",
                key="limits_set",
                values={"table": name, "limits": {limit: values[limit] for limit in _COST_LIMITS}},
            )
    if not any(limits.owner_day.values()):
        yield Finding(
            subject="limits",
            level="look",
            text=texts.compose("no_owner_line"),
            key="no_owner_limit",
            advice=texts.compose("no_owner_line_advice"),
            where="limits.owner_day",
            command=_EDIT_COMMAND,
        )


def _check_addresses(settings: Settings) -> Iterator[Finding]:
    """List the servers that get keys or texts over unencrypted connections."""
    findings = False
    for name, address in _list_plain_addresses(settings.model_dump(), ""):
        parts = urlsplit(address)
        if parts.scheme not in _PLAIN_SCHEMES or _is_loopback(parts.hostname or ""):
            continue
        findings = True
        server = f"{parts.scheme}://{parts.hostname}"
        yield Finding(
            subject="servers",
            level="fix",
            text=texts.compose("unencrypted", name=name, address=server),
            key="unencrypted",
            values={"option": name, "address": server},
            advice=texts.compose("unencrypted_advice", scheme=f"{parts.scheme}s://"),
            where=ENVIRONMENT.get(name, name),
            command=_EDIT_COMMAND,
        )
    if not findings:
        text = texts.compose("all_encrypted")
        yield Finding(subject="servers", level="ok", text=text, key="all_encrypted")


def _check_page(settings: Settings) -> Iterator[Finding]:
    """Describe who can reach the local page."""
    page = settings.web
    if not page.enabled:
        return
    if page.is_local and not page.url:
        sentence = texts.PAGE_LOCAL.format(address=page.address)
        values = {"address": page.address}
        yield Finding(subject="page", level="ok", text=sentence, key="page_local", values=values)
        return
    is_encrypted = page.url.startswith("https:")
    sentence = texts.PAGE_REACHED.format(bind=page.bind, port=page.port, address=page.address)
    advice = texts.PAGE_PROTECTED if is_encrypted else texts.PAGE_UNENCRYPTED
    yield Finding(
        subject="page",
        level="look" if is_encrypted else "fix",
        text=sentence,
        key="page_exposed" if is_encrypted else "page_unencrypted",
        values={"bind": page.bind, "port": page.port, "address": page.address},
        advice=advice,
        where="web.bind",
        command=_EDIT_COMMAND,
    )


def _list_plain_addresses(value: object, name: str) -> Iterator[tuple[str, str]]:
    """Yield the dotted path and the URL of each unencrypted address in the settings."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _list_plain_addresses(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _list_plain_addresses(item, name)
    elif isinstance(value, str) and value.startswith(
        tuple(f"{scheme}://" for scheme in _PLAIN_SCHEMES)
    ):
        yield name, value


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _check_plugins(settings: Settings) -> Iterator[Finding]:
    """List the plugins in the home."""
    folder = settings.home / "plugins"
    paths = sorted(
        path
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    )
    for path in paths:
        name = path.stem
        options = settings.memory.providers.get(name)
        is_on = options is not None and options.enabled
        state = texts.compose("switched_on" if is_on else "switched_off")
        yield Finding(
            subject="plugins",
            level="look",
            text=texts.compose("plugin", name=name, state=state),
            key="plugin",
            values={"name": name, "is_on": is_on},
            advice=texts.compose("plugin_advice"),
            where=str(path),
        )
    if not paths:
        text = texts.compose("no_plugins")
        yield Finding(subject="plugins", level="ok", text=text, key="no_plugins")


def _check_skills(settings: Settings) -> Iterator[Finding]:
    """List the skills that contain scripts."""
    findings = False
    for root in (settings.home / "skills", *map(Path, settings.skills.folders)):
        for file in sorted(root.expanduser().rglob("SKILL.md")):
            scripts = [path for path in file.parent.rglob("*") if _is_script(path)]
            if not scripts:
                continue
            findings = True
            names = [str(path.relative_to(file.parent)) for path in scripts]
            skill = file.parent.name
            yield Finding(
                subject="skills",
                level="look",
                text=texts.compose("skill_scripts", name=skill, count=len(names), example=names[0]),
                key="skill_scripts",
                values={"name": skill, "scripts": names},
                advice=texts.compose("skill_scripts_advice"),
                where=str(file.parent),
            )
    if not findings:
        text = texts.compose("no_skill_scripts")
        yield Finding(subject="skills", level="ok", text=text, key="no_skill_scripts")


def _is_script(path: Path) -> bool:
    if not path.is_file():
        return False
    is_executable = bool(path.stat().st_mode & stat.S_IXUSR)
    return path.suffix.lower() in _SCRIPT_SUFFIXES or is_executable


def _check_rights(settings: Settings) -> Iterator[Finding]:
    """List the files and folders that other users of this machine can read or write."""
    home = settings.home
    findings: list[Finding] = []
    everyone_else = stat.S_IRWXG | stat.S_IRWXO
    if settings.home.stat().st_mode & everyone_else:
        # Other users can't reach anything inside of a home that is closed to them.
        for path in (home, *(home / name for name in ("mneme.toml", ".env", STATE_FILE))):
            findings += _check_path(path, everyone_else, "others_read")
    folders = [*settings.skills.folders, *settings.context.folders]
    for chat in settings.chats.values():
        folders += chat.folders
    for folder in folders:
        # The files in these folders become part of prompts.
        path = Path(folder).expanduser()
        findings += _check_path(path, stat.S_IWGRP | stat.S_IWOTH, "others_write")
    yield from findings
    if not findings:
        text = texts.compose("rights_right", home=home)
        values = {"home": home}
        yield Finding(subject="rights", level="ok", text=text, key="rights_right", values=values)


def _check_path(path: Path, mask: int, key: str) -> Iterator[Finding]:
    """Yield a finding if another user has rights to a path, or owns it."""
    if not path.exists():
        return
    status = path.stat()
    if status.st_uid not in (os.getuid(), 0):
        text = texts.compose("of_other", path=path, user=status.st_uid)
        yield Finding(
            subject="rights",
            level="fix",
            text=text,
            key="of_another_user",
            values={"path": path, "user": status.st_uid},
            advice=texts.compose("of_other_advice", path=path),
            where=str(path),
            command=shlex.join(["sudo", "chown", str(os.getuid()), str(path)]),
        )
    elif status.st_mode & mask:
        permissions = "go-w" if key == "others_write" else "go="
        command = shlex.join(["chmod", permissions, str(path)])
        yield Finding(
            subject="rights",
            level="fix",
            text=texts.compose(key, path=path),
            key=key,
            values={"path": path},
            advice=texts.compose("run", command=command),
            where=str(path),
            command=command,
        )
