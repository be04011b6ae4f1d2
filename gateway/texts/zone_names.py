"""Finds time zones by the names of cities and countries in Mneme's languages.

Babel knows the main city of each zone and the zones of each country. `data/cities.toml` adds large
cities. All names together take about 0.3 seconds and 16 MB to load, so they are loaded only for a
name that isn't part of a time zone's own name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from unicodedata import combining
from zoneinfo import available_timezones

from core.text.normalize import read_language_data, to_normal_form
from gateway.texts.text_files import load_names

MAX_NAME_CHARS = 100


def find_native_zones(words: str) -> list[str]:
    """Return the zones of a city or country, such as "東京", "Москва" or "日本"."""
    return sorted(_load_zones().get(_fold(words), ()))


def search_native_zones(beginning: str) -> dict[str, str]:
    """Return the zones of cities and countries that begin with a text, with their names.

    The label of ``Asia/Tokyo`` is ``東京 (Asia/Tokyo)``. The shortest names come first.
    """
    folded = _fold(beginning)
    if not folded:
        return {}
    matches = []
    for name, labels in _load_zones().items():
        if name.startswith(folded):
            matches += [(len(name), label, zone) for zone, label in labels.items()]
    zones: dict[str, str] = {}
    for _, label, zone in sorted(matches):
        zones.setdefault(zone, f"{label} ({zone})")
    return zones


@cache
def _load_zones() -> Mapping[str, Mapping[str, str]]:
    """Return the zones of each folded name, each with the name as people write it."""
    known_zones = {zone for zone in available_timezones() if not zone.startswith("Etc/")}
    zones: dict[str, dict[str, str]] = {}
    for zone, name in _list_names():
        if zone in known_zones and "/" in zone:
            zones.setdefault(_fold(name), {}).setdefault(zone, name)
    return zones


def _list_names() -> Iterator[tuple[str, str]]:
    """Yield each zone with the name of a city or country, in each language."""
    # Imported here because few messages name a city.
    from babel import Locale
    from babel.core import get_global

    for zone, names in read_language_data("cities", "gateway.texts").items():
        for name in names.split(","):
            yield zone, name.strip()
    country_zones = get_global("territory_zones")
    for code in load_names():
        locale = Locale.parse(code, sep="-")
        for zone, data in locale.time_zones.items():
            if "city" in data:
                yield zone, data["city"]
        for country, name in locale.territories.items():
            # Continents have numbers.
            if country.isalpha():
                for zone in country_zones.get(country, ()):
                    yield zone, name


def _fold(name: str) -> str:
    """Return a name in lower case, without accents and with single spaces."""
    letters = to_normal_form("NFKD", name[:MAX_NAME_CHARS].casefold())
    return " ".join("".join(char for char in letters if not combining(char)).split())
