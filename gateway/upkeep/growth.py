"""Measures the sizes of database, files, logs and backups, and their growth per month.

The running gateway stores the sizes once a day.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from config.settings import Settings
from core.ports import Clock
from core.store.rows import get_meta, set_meta
from core.transfer.backup import STATE_FILE
from gateway.texts.catalog import ENGLISH, Texts
from gateway.upkeep.catalog import BackupCatalog

if TYPE_CHECKING:
    from core.store.engine import Database

# A key in `state_meta` for the sizes of each day in bytes, by day and name.
SIZES_KEY = "sizes"
# How many days are kept, and how far back growth is measured.
KEPT_DAYS = 31
DAYS_PER_MONTH = 30
LOOK_INTERVAL = timedelta(hours=1)
# The names of the sizes, in the order in which they are shown.
NAMES = ("database", "files", "logs", "backups")
Sizes = Mapping[str, int]


class SizeLog:
    """Stores the sizes of a home once a day, and computes their growth."""

    def __init__(self, settings: Settings, database: Database, clock: Clock) -> None:
        self._settings = settings
        self._database = database
        self._clock = clock
        self._looks_at: datetime | None = None

    async def tend(self) -> bool:
        """Store today's sizes if they aren't stored yet.

        Returns False, because there is nothing more to do at once.
        """
        now = self._clock.now()
        if self._looks_at is not None and now < self._looks_at:
            return False
        self._looks_at = now + LOOK_INTERVAL
        days = await self._load()
        today = now.date()
        if today not in days:
            days[today] = await self._measure_sizes()
            recent_sizes = sorted(days)[-KEPT_DAYS:]
            text = json.dumps({day.isoformat(): days[day] for day in recent_sizes})
            await self._database.write(lambda connection: set_meta(connection, SIZES_KEY, text))
        return False

    async def describe(self, texts: Texts = ENGLISH) -> str:
        """Render the sizes, and their growth per month if an earlier day is stored.

        For example: ``database 12.3 MB (+1.2 a month), files 0.4 MB (+0.0)``.
        """
        sizes, growth = await self.measure()
        words = texts.table("DISK")
        parts = []
        for name in NAMES:
            megabytes = texts.format_number(round(sizes[name] / 1e6, 1))
            part = words["size"].format(name=words[name], size=megabytes)
            if growth is not None:
                sign = "" if growth[name] < 0 else "+"
                part += f" ({sign}{texts.format_number(round(growth[name] / 1e6, 1))})"
            parts.append(part)
        text = texts.COMMA.join(parts)
        return text if growth is None else f"{text}{texts.SEMICOLON}{texts.GROWTH_UNIT}"

    async def measure(self) -> tuple[Sizes, Mapping[str, float] | None]:
        """Return the sizes in bytes, and their growth per month if it's known."""
        sizes = await self._measure_sizes()
        days = await self._load()
        return sizes, compute_growth(sizes, self._clock.now().date(), days)

    async def _measure_sizes(self) -> Sizes:
        sizes = await asyncio.to_thread(measure_sizes, self._settings)
        if self._settings.store.url:
            # Imported here because psycopg is an extra.
            from core.store.postgres.schema import measure_bytes

            sizes["database"] = await self._database.read(measure_bytes)
        return sizes

    async def _load(self) -> dict[date, Sizes]:
        text = await self._database.read(lambda connection: get_meta(connection, SIZES_KEY))
        values: dict[str, Sizes] = json.loads(text) if text else {}
        return {date.fromisoformat(day): sizes for day, sizes in values.items()}


def compute_growth(
    sizes: Sizes, today: date, earlier_sizes: Mapping[date, Sizes]
) -> dict[str, float] | None:
    """Return the growth per month since the earliest stored day, or None if no day is stored."""
    days = [day for day in earlier_sizes if day < today]
    if not days:
        return None
    first = min(days)
    months = (today - first).days / DAYS_PER_MONTH
    old_sizes = earlier_sizes[first]
    return {name: (sizes[name] - old_sizes.get(name, 0)) / months for name in NAMES}


def measure_sizes(settings: Settings) -> dict[str, int]:
    """Return the sizes of the parts of a home in bytes.

    Files that disappear meanwhile are ignored.
    """
    sizes = dict.fromkeys(NAMES, 0)
    home = settings.home
    for folder, folder_names, file_names in os.walk(home):
        if Path(folder) == home and "backups" in folder_names:
            # The list of backups counts them.
            folder_names.remove("backups")
        for name in file_names:
            path = Path(folder, name)
            try:
                size = path.lstat().st_size
            except OSError:
                continue
            is_top = path.parent == home
            if is_top and name.startswith(STATE_FILE):
                sizes["database"] += size
            elif is_top and name.startswith("mneme.log"):
                sizes["logs"] += size
            else:
                sizes["files"] += size
    for record in BackupCatalog(home).load().records:
        if record.kind == "backup" and record.state == "there":
            sizes["backups"] += record.path.stat().st_size
    return sizes
