"""Makes, checks and sends backups on the page "Settings"."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from core.errors import MnemeError, Refused
from core.transfer.backup import verify_backup
from core.types import Answer
from gateway.upkeep.backups import describe_backups, run_backup
from gateway.upkeep.catalog import BackupCatalog, BackupRecord, describe_failure
from gateway.web.views import (
    PageRequest,
    read_field,
)

MAX_BACKUPS = 20


def describe_backup_state(request: PageRequest) -> tuple[str, str]:
    """Return a sentence about the last backup, and its problem or ""."""
    services = request.services
    return describe_backups(services.settings, services.clock.now(), request.texts)


def list_backups(request: PageRequest) -> list[BackupRecord]:
    """Return the backups that exist, latest first."""
    records = BackupCatalog(request.services.settings.home).load().records
    backups = [record for record in records if record.kind == "backup" and record.state == "there"]
    return backups[::-1][:MAX_BACKUPS]


def build_restore_command(record: BackupRecord) -> str:
    """Return the command for a shell that restores a backup."""
    return f"mneme restore {shlex.quote(str(record.path))}"


def _find_backup(request: PageRequest, name: str) -> BackupRecord | None:
    return next((record for record in list_backups(request) if record.path.name == name), None)


async def load_backup(request: PageRequest) -> Path | None:
    """Return the file of a backup for download, or None if it doesn't exist."""
    record = _find_backup(request, request.parameter("backup"))
    return None if record is None else record.path


async def back_up(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Make a backup in the configured folder. Raises Refused if it fails."""
    failure = await run_backup(request.services.settings)
    if failure is not None:
        raise Refused(request.texts.word(failure))
    sentence, problem = describe_backup_state(request)
    return Answer(text=problem or sentence)


async def check_backup(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Read a whole backup, and return whether it could be restored. Nothing is restored."""
    name = read_field(request, form, "backup")
    record = _find_backup(request, name)
    if record is None:
        raise Refused(request.words["NOT_FOUND"])
    if record.is_encrypted:
        raise Refused(request.words["BACKUP_ENCRYPTED"])

    def check() -> None:
        with TemporaryDirectory() as scratch:
            verify_backup(record.path, Path(scratch))

    try:
        await asyncio.to_thread(check)
    except OSError as error:
        raise Refused(request.texts.word(describe_failure(error))) from error
    except MnemeError as error:
        raise Refused(request.texts.word(error)) from error
    return Answer(text=request.words["BACKUP_RIGHT"].format(name=name))
