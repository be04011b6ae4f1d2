"""How our commands are described to Discord, and how a call's options become a line again."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from adapters.discord.normalize import command_payloads, join_options
from core.command_specs import CommandSpec, Option
from core.search.query import extract_filters
from core.store.query import SearchQuery
from core.text.normalize import language_data
from gateway.commands.recall import RecallCommands
from gateway.commands.registry import load_specs, translate_specs
from tests.fixtures.discord_schema import DiscordSchema

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PUT = ("PUT", "/applications/{application_id}/commands")
SPECS = translate_specs(load_specs(*language_data("commands", "gateway.commands")))
SPEC = CommandSpec(
    name="remind",
    description="Set a reminder",
    options=(
        Option(name="how_often", description="How often", choices=("every 2 days", "every 3 days")),
        Option(name="when", description="The time", is_required=True),
    ),
    joiner="; ",
)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_command_fits_discords_limits(spec: CommandSpec) -> None:
    assert DiscordSchema().request(*PUT, command_payloads(spec)) == {}
    assert 1 <= len(spec.description) <= 100
    assert len(spec.options) <= 25
    assert all(
        re.fullmatch("[a-z_]{1,32}", name)
        for name in (spec.name, *(option.name for option in spec.options))
    )
    assert all(
        1 <= len(option.description) <= 100 and len(option.choices) <= 25 for option in spec.options
    )
    assert all(1 <= len(choice) <= 100 for option in spec.options for choice in option.choices)


def test_there_are_not_too_many_commands() -> None:
    assert len(SPECS) <= 100
    assert len([spec for spec in SPECS if spec.menu]) <= 5
    assert all(len(spec.menu) <= 32 for spec in SPECS)


def test_required_options_come_first() -> None:
    assert [option["name"] for option in command_payloads(SPEC)[0]["options"]] == [
        "when",
        "how_often",
    ]


def test_values_are_joined_in_the_order_of_the_command() -> None:
    given = [
        {"name": "when", "type": 3, "value": " noon "},
        {"name": "how_often", "type": 3, "value": "every 2 days"},
    ]
    assert join_options(given, SPEC) == "every 2 days;  noon"
    assert join_options(given[:1], SPEC) == "noon"
    assert join_options(given, None) == "noon  every 2 days"
    assert join_options(None, SPEC) == ""


def test_values_with_a_prefix_are_typed_before_the_words() -> None:
    given = {
        "query": '3 "night tickets',
        "from": "Ana Maria",
        "before": "May",
        "in": ' "” ',
        "summary": "true",
    }
    options = [{"name": name, "type": 3, "value": value} for name, value in given.items()]
    (spec,) = RecallCommands.specs
    line = join_options(options, spec)
    assert line == '--summary from:"Ana Maria" before:"May" 3 "night tickets'
    query = extract_filters(
        SearchQuery(scopes=frozenset(), text=line.removeprefix("--summary ")), NOW, ZoneInfo("UTC")
    ).query
    assert (query.text.strip(), query.filters.sender) == ('3 "night tickets', "Ana Maria")
    assert query.filters.before == datetime(2026, 5, 1, tzinfo=UTC)
    assert join_options([{"name": "summary", "type": 3, "value": "false"}], spec) == ""
    assert (
        join_options([{"name": "title", "type": 3, "value": 'a "b" role:tool'}], spec)
        == 'title:"a b role:tool"'
    )


def test_a_command_is_described_in_other_languages() -> None:
    spec = replace(SPEC, translations={"de": "Stellt eine Erinnerung", "es": "Crea un aviso"})
    (command,) = command_payloads(spec)
    assert command["description_localizations"] == {
        "de": "Stellt eine Erinnerung",
        "es-ES": "Crea un aviso",
    }
