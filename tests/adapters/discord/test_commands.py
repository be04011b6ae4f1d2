"""How our commands are described to Discord, and how a call's options become a line again."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from adapters.discord.commands import described, joined, option_name
from core.search import filters
from core.store.query import SearchQuery
from core.types import CommandSpec, Option
from gateway.commands.recall import RecallCommands
from tests.fixtures.discord_schema import DiscordSchema

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
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


def test_values_with_a_prefix_are_typed_before_the_words() -> None:
    given = {"query": '3 "night tickets', "from": "Ana Maria", "before": "May", "in": ' "” ', "summary": "true"}
    options = [{"name": name, "type": 3, "value": value} for name, value in given.items()]
    (spec,) = RecallCommands.specs
    line = joined(options, spec)
    assert line == '--summary from:"Ana Maria" before:"May" 3 "night tickets'
    query = filters.read(
        SearchQuery(scopes=frozenset(), text=line.removeprefix("--summary ")), NOW, ZoneInfo("UTC")
    ).query
    assert (query.text.strip(), query.sender) == ('3 "night tickets', "Ana Maria")
    assert query.before == datetime(2026, 5, 1, tzinfo=UTC)
    assert joined([{"name": "summary", "type": 3, "value": "false"}], spec) == ""
    assert joined([{"name": "title", "type": 3, "value": 'a "b" role:tool'}], spec) == 'title:"a b role:tool"'


def test_every_option_of_recall_fits_discords_limits() -> None:
    (spec,) = RecallCommands.specs
    payload = described(spec)
    assert DiscordSchema().request(*PUT, [payload]) == {}
    assert [option["description"] for option in payload["options"]] == [option.description for option in spec.options]
    assert [option["name"] for option in payload["options"] if "choices" in option] == ["role", "summary", "expand"]


def test_names_are_as_discord_wants_them() -> None:
    assert option_name("  Über Alles  ") == "über_alles"
    assert len(option_name("x" * 50)) == 32
