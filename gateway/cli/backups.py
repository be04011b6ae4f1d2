"""Defines the shell commands `mneme backup`, `mneme restore` and `mneme upgrade`, and moves a home.

For a scheduled backup, the gateway runs `mneme backup` in a separate process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO
from zoneinfo import ZoneInfo

import typer
from filelock import Timeout

from config.settings import Settings, SettingsError, find_home
from core.errors import ConfigError, MnemeError, StoreError
from core.store.sqlite.copying import count_rows, read_database_info
from core.store.sqlite.schema import SCHEMA_VERSION
from core.transfer.backup import SECRETS_FILE, STATE_FILE, Manifest, Progress, is_left_out
from gateway import logs
from gateway.cli import shell
from gateway.cli.shell import AsJson, Yes
from gateway.installation import DISTRIBUTION, find_update_advice
from gateway.services import Services
from gateway.supervisor import WallClock
from gateway.texts.catalog import SHELL as texts
from gateway.texts.files import format_size
from gateway.upkeep.backups import (
    NICENESS,
    BackupMaker,
    BackupOrder,
    BackupResult,
    load_key,
    write_checked_archive,
)
from gateway.upkeep.catalog import (
    BackupCatalog,
    backup_folder,
    describe_failure,
    format_failure,
)
from gateway.upkeep.restoring import Restored, RestoreJob, complete_swap

if TYPE_CHECKING:
    from core.transfer.encryption import EncryptionKey

PASSPHRASE = "passphrase"
# The keys of texts for the steps that aren't names of files.
_STEPS = {"check": "checking_backup", "encryption": "encrypting_backup"}
# The keys of texts about how Mneme was installed. Programs such as pip have separate names.
_INSTALLED_FROM = {"clone": "from_clone", "container": "from_container"}


def add_commands(root: typer.Typer) -> None:
    root.command("backup")(backup_command)
    root.command("restore")(restore_command)
    root.command("upgrade")(upgrade_command)


def backup_command(
    folder: Annotated[
        str | None,
        typer.Argument(),
    ] = None,
    encrypt: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
        ),
    ] = None,
    with_secrets: Annotated[bool, typer.Option("--with-secrets")] = False,
    as_json: AsJson = False,
    scheduled: Annotated[bool, typer.Option("--scheduled", hidden=True)] = False,
) -> None:
    """Copy everything into one file, even while Mneme is running.

    It contains your messages and their files, notes, facts, jobs, skills, settings and plugins, and
    secrets only with --with-secrets. It's opened and checked before it counts. Older backups are
    then rewritten without what you have since asked Mneme to forget.
    """
    shell.refuse_empty("FOLDER", folder)
    shell.refuse_empty("--encrypt", encrypt)

    async def work() -> BackupResult:
        settings = Settings.load()
        general = settings.general.model_copy(update={"log_level": "warning"})
        log_settings = settings.model_copy(update={"general": general})
        logs.configure(log_settings, settings.home / shell.LOG_FILE_NAME)
        clock = WallClock()
        is_of_settings = folder is None and encrypt is None
        try:
            key = _load_key(settings, encrypt)
        except ConfigError as error:
            if is_of_settings:
                catalog = BackupCatalog(settings.home)
                catalog.note_failure(clock.now(), describe_failure(error))
            raise
        order = BackupOrder(
            folder=(Path(folder) if folder else backup_folder(settings)).expanduser().absolute(),
            key=key,
            has_secrets=with_secrets,
            is_of_settings=is_of_settings,
        )
        with _show_progress(is_quiet=scheduled or as_json) as on_progress:
            maker = BackupMaker(settings, clock, repeat_erasures, on_progress)
            return await maker.make(order)

    with shell.exit_on_error():
        if scheduled:
            os.nice(NICENESS)
        try:
            result = asyncio.run(work())
        except (MnemeError, OSError) as error:
            if scheduled:
                # The process that has started this one words the reason for its reader.
                shell.print_json(format_failure(describe_failure(error)))
            raise
        if as_json:
            shell.print_json(_to_json(result))
        elif not scheduled:
            shell.print_text(_describe(result))


def complete_backup(incomplete: str) -> list[str]:
    """Suggest the known backups, newest first. The shell itself completes other files."""
    try:
        records = BackupCatalog(find_home()).load().records
    except StoreError:
        return []
    paths = [str(record.path) for record in reversed(records) if record.kind == "backup"]
    return [path for path in paths if path.startswith(incomplete)]


def restore_command(
    file: Annotated[str, typer.Argument(autocompletion=complete_backup)],
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="FILE",
        ),
    ] = None,
    yes: Yes = False,
) -> None:
    """Replace everything with a backup, while Mneme is stopped.

    The backup is checked first. Your current data stays next to the new one until you delete it.
    What you have asked Mneme to forget since the backup is erased again. For that, Mneme needs its
    record of erasures, which is next to the home.
    """
    shell.refuse_empty("FILE", file)
    shell.refuse_empty("--key", key)
    path = Path(file).expanduser()
    with shell.exit_on_error():
        home = find_home()
        if path.is_dir():
            raise ConfigError(texts.RESTORE_FOLDER.format(folder=path))
        _restore(
            path,
            home,
            None if key is None else Path(key),
            lambda backup: "" if yes else _describe_restore(backup, home),
        )


def _restore(
    file: Path,
    home: Path,
    key: Path | None,
    make_question: Callable[[Manifest], str],
    *,
    is_move: bool = False,
) -> None:
    """Replace a home with a backup, and print which erasures were repeated.

    `make_question` returns the question to the person, once the backup is checked. If it returns
    "", nothing is asked.
    """
    now = WallClock().now()
    with RestoreJob(file.expanduser().absolute(), home) as job:
        manifest = job.prepare(lambda: _load_secret(key))
        question = make_question(manifest)
        if question:
            shell.require_yes(question)
        restored = job.swap(manifest, now)
    shell.print_text(_describe_restored(restored, home, is_move=is_move))
    report = asyncio.run(_open_restored(restored, is_move=is_move))
    if not report and restored.erasures == "none" and not is_move:
        report = texts.RESTORE_NOTHING_ERASED
    if report:
        shell.print_text(report)


def complete_restore(home: Path) -> None:
    """Complete a restore that was killed, and print where the previous home is."""
    with shell.exit_on_error(), contextlib.suppress(Timeout):
        old_home = complete_swap(home)
        if old_home is not None:
            typer.echo(texts.RESTORE_COMPLETED.format(path=old_home), err=True)


def write_everything(output: BinaryIO) -> None:
    """Write an archive of the whole home to a stream. Older backups aren't changed."""
    with shell.exit_on_error():
        if output.isatty():
            raise ConfigError(texts.EXPORT_ALL_TERMINAL)
        settings = Settings.load()
        with tempfile.TemporaryDirectory(prefix=".mneme-", dir=settings.home.parent) as scratch:
            archive = write_checked_archive(settings, Path(scratch), WallClock())
            with archive.open("rb") as file:
                shutil.copyfileobj(file, output)
        output.flush()


def import_everything(file: Path, *, is_confirmed: bool) -> None:
    """Restore an archive of a whole home to the home of these settings.

    If the home has other content, such as settings or reminders, the person is asked first. Exits
    with an error if the home has messages.
    """
    with shell.exit_on_error():
        home = find_home()
        count = count_rows(home / STATE_FILE, "messages")
        if count:
            messages = texts.format_count(count, "message")
            raise ConfigError(texts.IMPORT_ALL_REFUSED.format(home=home, messages=messages))
        content = texts.join_list(_list_content(home))
        question = ""
        if content and not is_confirmed:
            question = texts.IMPORT_ALL_QUESTION.format(home=home, content=content)
        _restore(file, home, None, lambda backup: question, is_move=True)
        typer.echo(texts.IMPORT_ALL_NEXT)


def _list_content(home: Path) -> list[str]:
    """Return what a home without messages has: reminders, and files that an import replaces."""
    names = sorted(
        path.name
        for path in home.iterdir()
        if not is_left_out(f"{path.name}/" if path.is_dir() else path.name)
        and path.name != SECRETS_FILE
        and (not path.is_dir() or any(file.is_file() for file in path.rglob("[!.]*")))
    )
    count = count_rows(home / STATE_FILE, "jobs")
    return [texts.format_count(count, "reminder"), *names] if count else names


def upgrade_command(as_json: AsJson = False) -> None:
    """Show how Mneme was installed and how to update it.

    Nothing is changed. The first start of a newer version makes a backup before it changes
    state.db.
    """
    with shell.exit_on_error():
        home = find_home()
        advice = find_update_advice()
        path = home / STATE_FILE
        schema = read_database_info(path).schema if path.exists() else None
        if as_json:
            shell.print_json(
                {
                    "version": version(DISTRIBUTION),
                    "installed_with": advice.kind,
                    "command": advice.command,
                    "schema": schema,
                    "latest_schema": SCHEMA_VERSION,
                }
            )
            return
        key = _INSTALLED_FROM.get(advice.kind, "installed_with")
        kind = texts.compose(key, program=advice.kind)
        lines = [
            texts.UPGRADE.format(
                version=version(DISTRIBUTION),
                kind=kind,
                command=advice.command,
            )
        ]
        if schema is not None and schema > SCHEMA_VERSION:
            lines.append(texts.UPGRADE_NEEDED.format(path=path))
        else:
            lines.append(texts.UPGRADE_BACKUP)
        shell.print_text("\n".join(lines))


async def _open_restored(restored: Restored, *, is_move: bool) -> str:
    """Open the restored home, and return a sentence about the erasures that were repeated.

    Also notes in the home if later erasures are unknown.

    Raises SettingsError if the restored settings are invalid. The erasures are then repeated at the
    next start.
    """
    settings = Settings.load()
    logs.configure(settings, settings.home / shell.LOG_FILE_NAME)
    async with Services.open(settings, makes_backup=False) as services:
        await services.forgetting.resume()
        if restored.is_journal_missing and not is_move:
            await services.forgetting.note_unknown_erasures()
        return shell.render_plain(services.restore_report)


def _load_secret(key: Path | None) -> str:
    """Return the key or passphrase of a backup.

    It comes from the file `key`, the settings or a prompt.
    """
    if key is not None:
        return key.expanduser().read_text(encoding="utf-8")
    with contextlib.suppress(SettingsError):
        settings = Settings.load()
        secret = settings.variables.get(settings.backup.passphrase)
        if secret is not None:
            return secret.get_secret_value()
    if sys.stdin.isatty():
        return str(typer.prompt(texts.compose("passphrase"), hide_input=True))
    passphrase = sys.stdin.readline().rstrip("\r\n")
    if not passphrase:
        raise ConfigError(texts.RESTORE_NEEDS_KEY)
    return passphrase


def _describe_restore(manifest: Manifest, home: Path) -> str:
    moment = _format_moment(manifest.made_at)
    files = texts.format_count(len(manifest.files), "file")
    return texts.RESTORE_QUESTION.format(home=home, moment=moment, files=files)


def _format_moment(moment: datetime) -> str:
    """Return a moment in the time zone of the settings, or of the machine if they're invalid."""
    try:
        zone: tzinfo = ZoneInfo(Settings.load().general.zone)
    except SettingsError:
        zone = moment.astimezone().tzinfo or UTC
    return texts.format_moment(moment, zone)


def _describe_restored(restored: Restored, home: Path, *, is_move: bool) -> str:
    manifest = restored.manifest
    moment = _format_moment(manifest.made_at)
    sentences = [texts.RESTORED.format(home=home, moment=moment)]
    if restored.old_home is not None:
        sentences.append(texts.RESTORE_OLD_HOME.format(path=restored.old_home))
    journal = f"{home}.erasures"
    if restored.erasures == "lost":
        sentences.append(texts.RESTORE_INCOMPLETE.format(journal=journal))
    elif restored.erasures == "unknown" and not is_move:
        sentences.append(texts.RESTORE_UNKNOWN.format(journal=journal))
    return "\n".join(sentences)


async def repeat_erasures(settings: Settings) -> Sequence[str]:
    """Open a home, and repeat the erasures in the journal next to it.

    Returns the days whose erasures can't be repeated.
    """
    async with Services.open(settings, makes_backup=False) as services:
        await services.forgetting.resume()
        while await services.forgetting.maintain():
            pass
        return services.unrepeated_days


def _load_key(settings: Settings, encrypt: str | None) -> EncryptionKey | None:
    """Return the key that the option or the settings name, or None if backups aren't encrypted.

    Raises ConfigError if the key is invalid or the passphrase is missing.
    """
    if encrypt is None:
        return load_key(settings)
    # Imported here because few people encrypt their backups.
    from core.transfer.encryption import EncryptionKey, check_recipient

    if encrypt == PASSPHRASE:
        return EncryptionKey(passphrase=_ask_new_passphrase())
    return EncryptionKey(recipients=(check_recipient(encrypt),))


def _ask_new_passphrase() -> str:
    """Ask for a new passphrase twice or, if stdin isn't a terminal, read it from one line.

    Raises ConfigError if the passphrase is too short, or if the two inputs differ.
    """
    # Imported here because few people encrypt their backups.
    from core.transfer.encryption import MIN_PASSPHRASE_CHARS

    if sys.stdin.isatty():
        passphrase: str = typer.prompt(texts.compose("passphrase"), hide_input=True)
        if typer.prompt(texts.compose("passphrase_again"), hide_input=True) != passphrase:
            raise ConfigError(texts.compose("passphrases_differ"))
    else:
        passphrase = sys.stdin.readline().rstrip("\r\n")
    if not passphrase:
        raise ConfigError(texts.BACKUP_EMPTY_PASSPHRASE)
    if len(passphrase) < MIN_PASSPHRASE_CHARS:
        raise ConfigError(texts.compose("passphrase_short", least=MIN_PASSPHRASE_CHARS))
    return passphrase


@contextmanager
def _show_progress(*, is_quiet: bool) -> Iterator[Progress]:
    """Show the current step if stderr is a terminal."""
    if is_quiet or not sys.stderr.isatty():
        yield lambda step, share: None
        return
    from rich.console import Console

    with Console(stderr=True).status(texts.compose("copying")) as status:

        def show_step(step: str, share: float) -> None:
            name = texts.compose(_STEPS[step]) if step in _STEPS else step
            status.update(f"{name} {share:.0%}" if share else name)

        yield show_step


def _describe(result: BackupResult) -> str:
    """Return sentences about the new backup, its contents and the changes to older backups."""
    manifest = result.manifest
    files = texts.format_count(len(manifest.files), "file")
    size = format_size(texts, result.bytes)
    sentences = [texts.BACKUP_MADE.format(path=result.record.path, size=size, files=files)]
    sentences.append(texts.BACKUP_SECRETS if manifest.has_secrets else texts.BACKUP_NO_SECRETS)
    if manifest.left_out:
        names = texts.join_list([texts.word_stored(name) for name in manifest.left_out])
        sentences.append(texts.BACKUP_LEFT_OUT.format(names=names))
    if result.rewritten:
        backups = texts.format_count(len(result.rewritten), "older backup")
        sentences.append(texts.BACKUP_REWRITTEN.format(backups=backups))
    if result.unchanged:
        names = texts.join_list([path.name for path in result.unchanged])
        sentences.append(texts.BACKUP_UNCHANGED.format(names=names))
    if result.deleted:
        backups = texts.format_count(len(result.deleted), "old backup")
        sentences.append(texts.BACKUP_DELETED.format(backups=backups))
    return "\n".join(sentences)


def _to_json(result: BackupResult) -> dict[str, object]:
    return {
        "path": str(result.record.path),
        "made_at": result.record.made_at.isoformat(),
        "bytes": result.bytes,
        "files": len(result.manifest.files),
        "is_encrypted": result.record.is_encrypted,
        "has_secrets": result.manifest.has_secrets,
        "left_out": result.manifest.left_out,
        "rewritten": [str(path) for path in result.rewritten],
        "unchanged": [str(path) for path in result.unchanged],
        "deleted": [str(path) for path in result.deleted],
    }
