"""Copies the configured store to a PostgreSQL server, or from there to a new file."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from config.settings import Settings
from core.errors import Refused, StoreError
from core.store.engine import Database
from core.store.sqlite import copying as sqlite
from core.store.sqlite.database import Database as SqliteDatabase
from core.transfer.store_copy import CopyReport, CopySide, Progress, StoreCopy, forget_position
from gateway.services import STATE_FILE
from gateway.sharing.home_lock import lock_home
from gateway.supervisor import WallClock
from gateway.texts.catalog import SHELL as texts

if TYPE_CHECKING:
    from core.store.postgres.database import Database as PostgresDatabase

# How long the server may take to notice that a gateway or another copy has ended.
RELEASE_TIMEOUT_S = 5.0
PART_SUFFIX = ".part"
"""The suffix of a file to which a store is being copied."""
_ADDRESS_MARK = "://"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyResult:
    """The result of a copy: the copied rows, and the target."""

    report: CopyReport
    # An address without user and password, or a path.
    target: str
    is_on_server: bool


async def copy_store(settings: Settings, target: str, on_progress: Progress) -> CopyResult:
    """Copy the configured store to a PostgreSQL URL, a new file or a new home.

    Both stores are locked during the copy. The settings don't change, and the source keeps all its
    rows. Raises Refused, ConfigError or StoreError with one sentence.
    """
    is_on_server = _ADDRESS_MARK in target
    if is_on_server and settings.store.url:
        raise Refused(texts.compose("copy_between_servers"))
    if not is_on_server and not settings.store.url:
        raise Refused(texts.compose("copy_between_files"))
    if is_on_server:
        return await _copy_to_server(settings, target, on_progress)
    return await _copy_to_file(settings, _find_file(target), on_progress)


async def _copy_to_server(settings: Settings, url: str, on_progress: Progress) -> CopyResult:
    """Copy state.db to a PostgreSQL server."""
    path = settings.home / STATE_FILE
    try:
        settings.store.check_url(url)
    except ValueError as error:
        raise Refused(texts.compose("copy_address", problem=error)) from error
    if not path.exists():
        raise Refused(texts.compose("copy_nothing", path=path))
    if sqlite.needs_migration(path):
        raise Refused(texts.compose("copy_old_schema", path=path))
    with lock_home(settings.home):
        async with (
            SqliteDatabase.open(path) as source,
            _open_server(settings, url) as target,
        ):
            report = await _copy(source, target, source, target, on_progress)
            await forget_position(target)
            return CopyResult(report=report, target=target.name, is_on_server=True)


async def _copy_to_file(settings: Settings, path: Path, on_progress: Progress) -> CopyResult:
    """Copy the store on the PostgreSQL server to a new file."""
    part = _prepare_part(path)
    with lock_home(path.parent):
        async with (
            _open_server(settings, settings.store.url) as source,
            SqliteDatabase.open(part) as target,
        ):
            report = await _copy(source, target, target, source, on_progress)
        sqlite.publish_copy(part, path)
        async with SqliteDatabase.open(path) as complete:
            await forget_position(complete)
    return CopyResult(report=report, target=str(path), is_on_server=False)


def _prepare_part(path: Path) -> Path:
    """Create the folder of a new file. Returns the path to write to until the file is complete."""
    if path.exists():
        raise Refused(texts.compose("copy_file_exists", path=path))
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f"{path.name}{PART_SUFFIX}")


async def _copy(
    source: Database,
    target: Database,
    file: Database,
    server: Database,
    on_progress: Progress,
) -> CopyReport:
    """Copy all rows from the source to the target. One is a file, the other on a server."""
    from core.store.postgres import copying as postgres

    tables = await file.read(sqlite.list_tables)
    truths = await server.read(postgres.list_truths)
    sides = {id(file): sqlite, id(server): postgres}
    copy = StoreCopy(
        CopySide(database=source, tools=sides[id(source)]),
        CopySide(database=target, tools=sides[id(target)]),
        tables,
        truths,
        on_progress,
    )
    return await copy.run(WallClock())


@contextlib.asynccontextmanager
async def _open_server(settings: Settings, url: str) -> AsyncIterator[PostgresDatabase]:
    """Connect to a database that no gateway uses. It may contain an unfinished copy."""
    try:
        # Imported here because psycopg is an extra.
        from core.store.postgres.database import Database as PostgresDatabase
    except ImportError as error:
        raise StoreError(texts.POSTGRES_IS_MISSING) from error
    password = settings.variables.get(settings.store.password)
    secret = "" if password is None else password.get_secret_value()
    is_target = url != settings.store.url
    async with PostgresDatabase.open(url, secret, may_be_part=is_target) as database:
        await database.claim_for_gateway(RELEASE_TIMEOUT_S)
        yield database


def _find_file(target: str) -> Path:
    """Return the path of the new file. A target that doesn't end in .db is a home."""
    path = Path(target).expanduser().absolute()
    return path if path.suffix == ".db" else path / STATE_FILE
