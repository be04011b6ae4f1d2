"""Time zones are found by the names of cities and countries in every language of Mneme."""

from __future__ import annotations

from gateway.texts.zone_names import find_native_zones, search_native_zones
from tests.fixtures.tables import each_row


@each_row(
    ("words", "zones"),
    [
        ("東京", ["Asia/Tokyo"]),
        ("大阪", ["Asia/Tokyo"]),
        ("北京", ["Asia/Shanghai"]),
        ("서울", ["Asia/Seoul"]),
        ("Москва", ["Europe/Moscow"]),
        ("санкт-петербург", ["Europe/Moscow"]),
        ("İSTANBUL", ["Europe/Istanbul"]),
        ("Varşova", ["Europe/Warsaw"]),
        ("日本", ["Asia/Tokyo"]),
        ("Schweiz", ["Europe/Zurich"]),
        ("東", []),
        ("", []),
    ],
)
def test_name_of_a_city_or_country_in_its_language_names_its_zone(
    words: str, zones: list[str]
) -> None:
    assert find_native_zones(words) == zones


def test_beginning_of_a_name_finds_the_zone_with_the_name_as_it_is_written() -> None:
    assert search_native_zones("Моск") == {"Europe/Moscow": "Москва (Europe/Moscow)"}
    assert next(iter(search_native_zones("大阪"))) == "Asia/Tokyo"
    assert next(iter(search_native_zones("Mun").values())) == "Munich (Europe/Berlin)"
    assert search_native_zones("xyzzy") == {}
    assert search_native_zones(" ") == {}
