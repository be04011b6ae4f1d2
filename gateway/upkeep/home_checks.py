"""Checks settings, files, backups and the installation for `mneme check`, without the store.

Each check returns a `CheckResult`.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from config.secrets_file import SECRETS_FILE
from config.settings import ENVIRONMENT, SETTINGS_FILE, Settings, find_home
from core.errors import Sentence, StoreError
from core.store.sqlite import opening as sqlite
from gateway.installation import find_repair_command, list_unreadable_files
from gateway.local.manager import find_closed_folder
from gateway.local.ports import list_served_ports
from gateway.services import STATE_FILE
from gateway.sharing.home_lock import is_running
from gateway.supervisor import WallClock
from gateway.texts.catalog import Texts
from gateway.texts.settings_problems import word_problem, word_settings_advice
from gateway.upkeep.backups import delete_expired, describe_backups, is_damaged
from gateway.upkeep.catalog import (
    BackupCatalog,
    BackupRecord,
    CatalogState,
    backup_folder,
    find_backup_fault,
)
from gateway.upkeep.mending import (
    find_editor_command,
    find_newer_python_command,
    find_removal_command,
    find_space_command,
    has_little_space,
)
from gateway.upkeep.restoring import list_backups_with_forgotten_texts


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result for one subject, such as "model" or "state.db"."""

    subject: str
    # "off" means that the subject isn't set up.
    state: Literal["right", "wrong", "off"]
    text: str
    # Names what the text says, for programs, such as "program_missing". Never changes.
    key: str
    # The values in the text, such as the option and the program.
    values: Mapping[str, object] = field(default_factory=dict)
    # What to do; may be empty.
    advice: str = ""
    # The path, option or service that is wrong, if it isn't the subject itself.
    where: str = ""
    # The command that solves the problem, or "" if no command does.
    command: str = ""


def build_result(
    subject: str,
    problems: Sequence[str],
    advice: str,
    right: str,
    *,
    keys: tuple[str, str],
    values: Mapping[str, object],
    command: str = "",
) -> CheckResult:
    """Build the result of a check.

    If there are `problems`, it lists them and gives `advice`; otherwise, its text is `right`.
    `keys` are the result's key with problems, and without. If the `values` have a path, it's what
    is wrong.
    """
    wrong_key, right_key = keys
    if not problems:
        return CheckResult(subject=subject, state="right", text=right, key=right_key, values=values)
    return CheckResult(
        subject=subject,
        state="wrong",
        text=" ".join(problems),
        key=wrong_key,
        values=values,
        advice=advice,
        where=str(values.get("path", "")),
        command=command,
    )


def describe_settings_problem(texts: Texts, problem: str) -> CheckResult:
    """Return a result for a problem such as "model.tries: should be a whole number"."""
    name = problem.partition(":")[0]
    token = ENVIRONMENT.get(f"{name.partition('.')[0]}_token", "")
    advice, command = texts.compose("correct_settings"), "mneme config edit"
    if name == ENVIRONMENT["home"]:
        advice, command = texts.compose("set_variable", name=name), ""
    elif name in ENVIRONMENT.values():
        command = f"mneme config set {name}"
        advice = texts.compose("set_token", name=name)
    elif token and token in problem:
        command = f"mneme config set {token}"
        advice = texts.compose("set_token", name=token)
    elif name in (SECRETS_FILE, SETTINGS_FILE):
        command = _find_file_command(find_home() / name)
        advice = texts.compose("run", command=command)
    return CheckResult(
        subject="settings",
        state="wrong",
        text=word_problem(texts, problem),
        key="settings_wrong",
        values={"option": name},
        advice=advice,
        where=name,
        command=command,
    )


def _find_file_command(path: Path) -> str:
    """Return the command for a file that can't be read. A folder in its place is moved away."""
    if path.is_dir():
        return find_removal_command(path)
    return "mneme config edit" if path.name == SETTINGS_FILE else find_editor_command(path)


def check_home(texts: Texts, settings: Settings) -> list[CheckResult]:
    """Check that the programs of the settings exist, and that the files of the home are safe.

    No other user may be able to read or replace these files.
    """
    text = texts.compose("settings_complete", home=settings.home)
    return [
        CheckResult(
            subject="settings",
            state="right",
            text=text,
            key="settings_complete",
            values={"home": settings.home},
            advice=word_settings_advice(texts, settings.advice),
        ),
        *_find_missing_programs(texts, settings),
        *_find_unusable_folders(texts, settings.home),
        *_find_readable_files(texts, settings.home),
        *_find_replaceable_files(texts, settings.home),
    ]


def _find_missing_programs(texts: Texts, settings: Settings) -> Iterator[CheckResult]:
    """Yield a result for each program for speech, or MCP server, that isn't installed."""
    programs: list[tuple[str, str, str | None]] = []
    for name, options in (
        ("transcriber", settings.media.transcriber),
        ("speaker", settings.media.speaker),
    ):
        programs += [(f"media.{name}.command", program, None) for program in options.command[:1]]
    for name, server in settings.mcp.items():
        if server.enabled and server.command:
            programs.append((f"mcp.{name}.command", server.command, server.env.get("PATH")))
    for option, program, path in programs:
        if shutil.which(program, path=path) is None:
            yield CheckResult(
                subject="settings",
                state="wrong",
                text=texts.compose("program_missing", option=option, program=program),
                key="program_missing",
                values={"option": option, "program": program},
                advice=texts.compose("correct_settings"),
                where=option,
                command="mneme config edit",
            )


def _find_unusable_folders(texts: Texts, home: Path) -> Iterator[CheckResult]:
    """Yield a result for each path in the home that should be a folder of texts, but is a file."""
    for name in ("memories", "skills", "media"):
        path = home / name
        if path.exists() and not path.is_dir():
            reason = os.strerror(errno.ENOTDIR)
            problem = texts.word(StoreError("folder_unusable", folder=name, reason=reason))
            command = find_removal_command(path)
            yield CheckResult(
                subject=name,
                state="wrong",
                text=problem,
                key="folder_unusable",
                values={"folder": name, "reason": reason},
                advice=texts.compose("run", command=command),
                where=str(path),
                command=command,
            )


def _find_readable_files(texts: Texts, home: Path) -> Iterator[CheckResult]:
    """Yield a result for each path in the home that other users can read."""
    if not _is_readable_by_others(home):
        # Other users can't reach any file inside the home.
        return
    for path, mode in ((home, 0o700), (home / SETTINGS_FILE, 0o600), (home / SECRETS_FILE, 0o600)):
        if path.exists() and _is_readable_by_others(path):
            command = ["chmod", f"{mode:o}", str(path)]
            yield _describe_unsafe_path(texts, "readable_by_others", {"path": path}, command)


def _is_readable_by_others(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o077)


def _find_replaceable_files(texts: Texts, home: Path) -> Iterator[CheckResult]:
    """Yield a result for each symbolic link and each file of another user."""
    own_id = os.geteuid()
    plugins = home / "plugins"
    folders = [path.parent for path in sorted(plugins.glob("*/__init__.py"))]
    for path in (home, home / STATE_FILE, plugins, *folders, *sorted(plugins.rglob("*.py"))):
        if path.is_symlink():
            yield _describe_link(texts, path)
        elif path.exists() and path.stat().st_uid != own_id:
            values = {"path": path, "user": path.stat().st_uid}
            command = ["chown", str(own_id), str(path)]
            yield _describe_unsafe_path(texts, "of_another_user", values, command)


def _describe_link(texts: Texts, path: Path) -> CheckResult:
    target = path.resolve()
    quoted_path, quoted_target = shlex.quote(str(path)), shlex.quote(str(target))
    return CheckResult(
        subject="privacy",
        state="wrong",
        text=texts.compose("is_link", path=path, target=target),
        key="is_link",
        values={"path": path, "target": target},
        advice=texts.NO_LINK.format(path=quoted_path, target=quoted_target),
        where=str(path),
        command=f"rm {quoted_path} && mv {quoted_target} {quoted_path}",
    )


def _describe_unsafe_path(
    texts: Texts, key: str, values: Mapping[str, object], command: Sequence[str]
) -> CheckResult:
    """Return a result for a path that other users can read or replace."""
    line = shlex.join(command)
    return CheckResult(
        subject="privacy",
        state="wrong",
        text=texts.compose(key, **values),
        key=key,
        values=values,
        advice=texts.compose("run", command=line),
        where=str(values["path"]),
        command=line,
    )


def check_backups(texts: Texts, settings: Settings) -> CheckResult:
    """Check that the latest valid backup is recent enough for the settings."""
    if settings.store.url:
        text = texts.word(Sentence("backup_in_postgres", {"home": settings.home}))
        return CheckResult(subject="backups", state="off", text=text, key="backups_on_server")
    now = WallClock().now()
    delete_expired(settings, now)
    sentence, problem = describe_backups(settings, now, texts)
    option, fault = find_backup_fault(settings, texts)
    state = BackupCatalog(settings.home).load()
    last = state.last_backup
    values = {"path": last.path, "made_at": last.made_at} if last else {}
    if fault:
        text, _, advice = fault.partition("\n")
        # A passphrase is set by the name of its variable.
        name = settings.backup.passphrase if option == "backup.passphrase" else option
        return CheckResult(
            subject="backups",
            state="wrong",
            text=" ".join(filter(None, (sentence, problem, text))),
            key="backup_option_wrong",
            values={**values, "option": option},
            advice=advice,
            where=option,
            command=f"mneme config set {name}",
        )
    if problem:
        return _describe_late_backup(texts, settings, f"{sentence} {problem}", state)
    if last is not None and last.state == "there" and is_damaged(last):
        return CheckResult(
            subject="backups",
            state="wrong",
            text=f"{sentence} {texts.BACKUP_DAMAGED}",
            key="backup_damaged",
            values=values,
            advice=texts.BACKUP_ADVICE,
            where=str(last.path),
            command="mneme backup",
        )
    unsafe = list_backups_with_forgotten_texts(settings.home)
    if unsafe:
        return _describe_unsafe_backups(texts, settings.home, unsafe)
    if sentence == texts.BACKUP_NONE:
        return CheckResult(
            subject="backups",
            state="off",
            text=sentence,
            key="backup_none",
            advice=texts.BACKUP_SET_UP,
            command="mneme backup",
        )
    return CheckResult(
        subject="backups", state="right", text=sentence, key="backup_recent", values=values
    )


def _describe_unsafe_backups(
    texts: Texts, home: Path, backups: Sequence[BackupRecord]
) -> CheckResult:
    """Return a result for backups that would bring back what was forgotten after them."""
    journal = home.with_name(f"{home.name}.erasures")
    paths = [str(backup.path) for backup in backups]
    names = texts.COMMA.join(backup.path.name for backup in backups)
    command = f"mneme backup && {shlex.join(['rm', *paths])}"
    return CheckResult(
        subject="backups",
        state="wrong",
        text=texts.BACKUP_UNSAFE.format(journal=journal, names=names),
        key="backup_unsafe",
        values={"path": str(journal), "backups": paths},
        advice=texts.BACKUP_UNSAFE_ADVICE.format(command=command),
        where=str(journal),
        command=command,
    )


def _describe_late_backup(
    texts: Texts, settings: Settings, text: str, state: CatalogState
) -> CheckResult:
    """Return a result for a backup that failed, is too old, or is on a disk that isn't there."""
    last = state.last_backup
    values: dict[str, object] = {"path": last.path, "made_at": last.made_at} if last else {}
    key, advice = "backup_late", texts.BACKUP_ADVICE
    if state.failed_at is not None:
        key, advice = "backup_failed", texts.compose("backup_again")
        values["failed_at"] = state.failed_at
    elif last is not None and last.state == "out_of_reach":
        key, advice = "backup_out_of_reach", texts.BACKUP_CONNECT
    return CheckResult(
        subject="backups",
        state="wrong",
        text=text,
        key=key,
        values=values,
        advice=advice,
        where=str(backup_folder(settings)),
        command="mneme backup",
    )


def check_service(texts: Texts, settings: Settings) -> list[CheckResult]:
    """Check that the installed service may write in the folders of the settings."""
    folder = find_closed_folder(settings)
    if folder is None:
        return []
    return [
        CheckResult(
            subject="service",
            state="wrong",
            text=texts.compose("service_closes", folder=folder),
            key="service_closes",
            values={"folder": folder},
            advice=texts.compose("run", command="mneme service install"),
            where=str(folder),
            command="mneme service install",
        )
    ]


def check_ports(
    texts: Texts, settings: Settings, live: Mapping[str, Any] | None
) -> Iterator[CheckResult]:
    """Yield a result for each port of the page and the metrics that another program uses.

    A running gateway reports which of its ports are in use. `live` is its report, or None.
    """
    for port in list_served_ports(settings):
        if live is not None:
            is_taken = port.option in live.get("taken_ports", ())
        else:
            is_taken = not is_running(settings.home) and not port.is_free()
        if is_taken:
            command = f"mneme config set {port.option} {port.find_free_number()}"
            yield CheckResult(
                subject="settings",
                state="wrong",
                text=texts.compose("port_taken", port=port.number),
                key="port_taken",
                values={"option": port.option, "port": port.number},
                advice=texts.compose("run", command=command),
                where=port.option,
                command=command,
            )


def check_installation(texts: Texts) -> CheckResult:
    problems = []
    unreadable = list_unreadable_files()
    if unreadable:
        problems.append(texts.compose("unreadable_files", names=", ".join(unreadable)))
    right = texts.compose("installed_version", version=version("mneme-gateway"))
    command = find_repair_command(unreadable) if unreadable else ""
    advice = texts.compose("install_again", command=command)
    return build_result(
        "installation",
        problems,
        advice,
        right,
        keys=("unreadable_files", "installed_version"),
        values={"version": version("mneme-gateway"), "files": unreadable},
        command=command,
    )


def check_sqlite(texts: Texts) -> CheckResult:
    problems = []
    version_text = ".".join(map(str, sqlite.SQLITE_VERSION))
    if sqlite.SQLITE_VERSION < sqlite.MIN_SQLITE_VERSION:
        oldest = ".".join(map(str, sqlite.MIN_SQLITE_VERSION))
        problems.append(texts.compose("sqlite_old", version=version_text, oldest=oldest))
    right = texts.compose("sqlite_version", version=version_text)
    command = find_newer_python_command()
    advice = f"{texts.compose('sqlite_advice')} {texts.compose('run', command=command)}"
    return build_result(
        "sqlite",
        problems,
        advice,
        right,
        keys=("sqlite_old", "sqlite_version"),
        values={"version": version_text},
        command=command,
    )


def check_disk(texts: Texts, home: Path) -> list[CheckResult]:
    """Check that the disk of the home isn't nearly full. Reports only a problem."""
    if not has_little_space(home):
        return []
    command = find_space_command(home)
    return [
        CheckResult(
            subject="disk",
            state="wrong",
            text=texts.compose("little_space", home=home),
            key="little_space",
            values={"home": home},
            advice=texts.compose("space_advice", command=command),
            where=str(home),
            command=command,
        )
    ]
