"""Find time zones by the names of cities, and move schedules to another zone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache
from zoneinfo import available_timezones

from core.dates.lexicon import lexicon_languages, load_lexicon
from core.dates.schedule import DAY_S, Schedule, load_zone, resolve_wall_time
from core.dates.tokens import Kind
from core.scheduling.phrases import plain_words


def find_zones(words: str) -> list[str]:
    """Return the zones that a name may mean: "Lisbon", "sao paulo", "Europe/Lisbon", "Лиссабон"."""
    exact = {zone.casefold(): zone for zone in available_timezones()}.get(words.strip().casefold())
    if exact is not None:
        return [exact]
    return sorted(_zones_by_city().get(plain_words(words), ()))


@cache
def _zones_by_city() -> Mapping[str, frozenset[str]]:
    """Return the zones of each city, by the city's plain names in ten languages."""
    zones: dict[str, set[str]] = {}
    for language in lexicon_languages():
        for phrase, tokens in load_lexicon(language).phrases.items():
            for token in tokens:
                if len(tokens) == 1 and token.kind is Kind.CITY:
                    zones.setdefault(plain_words(phrase), set()).add(token.zone)
    return {city: frozenset(names) for city, names in zones.items()}


def move_to_zone(schedule: Schedule, zone: str) -> Schedule:
    """Move a schedule to another zone, at the same clock times.

    Intervals of minutes and hours don't depend on a zone and are returned unchanged.
    """
    old_zone = schedule.zone
    recurrences = tuple(
        text.replace(f"TZID={old_zone}:", f"TZID={zone}:") for text in schedule.recurrences
    )
    new_schedule = replace(schedule, zone=zone, recurrences=recurrences)
    if schedule.at is not None:
        new_schedule = replace(new_schedule, at=_move_moment(schedule.at, old_zone, zone))
    if schedule.start_at is not None and schedule.every_s and schedule.every_s % DAY_S == 0:
        new_schedule = replace(
            new_schedule, start_at=_move_moment(schedule.start_at, old_zone, zone)
        )
    return new_schedule


def _move_moment(moment: datetime, old_zone: str, zone: str) -> datetime:
    wall_time = moment.astimezone(load_zone(old_zone)).replace(tzinfo=None)
    return resolve_wall_time(wall_time, load_zone(zone))
