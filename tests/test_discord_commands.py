"""How our commands are described to Discord, and how a call's options become a line again."""

from __future__ import annotations

from adapters.discord_commands import described, joined, option_name
from core.types import CommandSpec, Option
from tests.doubles.discord_schema import DiscordSchema

PUT = ("PUT", "/applications/{application_id}/commands")
SPEC = CommandSpec(
    name="Remind",
    description="words " * 40,
    options=(
        Option(name="How Often", description="", choices=tuple(f"every {n} days" for n in range(30))),
        Option(name="when", description="The time", is_required=True),
    ),
    joiner="; ",
)


def test_what_is_described_fits_discords_limits() -> None:
    payload = described(SPEC)
    assert DiscordSchema().request(*PUT, [payload]) == {}
    assert payload["name"] == "remind"
    assert len(payload["description"]) == 100
    assert [option["name"] for option in payload["options"]] == ["when", "how_often"]
    assert payload["options"][1]["description"] == "How Often"
    assert len(payload["options"][1]["choices"]) == 25


def test_values_are_joined_in_the_order_of_the_command() -> None:
    given = [{"name": "when", "type": 3, "value": " noon "}, {"name": "how_often", "type": 3, "value": "every 2 days"}]
    assert joined(given, SPEC) == "every 2 days;  noon"
    assert joined(given[:1], SPEC) == "noon"
    assert joined(given, None) == "noon  every 2 days"
    assert joined(None, SPEC) == ""


def test_names_are_as_discord_wants_them() -> None:
    assert option_name("  Über Alles  ") == "über_alles"
    assert len(option_name("x" * 50)) == 32
