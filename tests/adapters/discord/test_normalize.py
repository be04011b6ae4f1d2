"""How our commands are described to Discord, and how a call's options become a line again."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from adapters.discord.commands import command_payloads, join_options
from core.menus.command_specs import Action, CommandSpec, Option
from core.search.query import extract_filters
from core.store.query import SearchQuery
from core.text.normalize import language_data
from gateway.commands.menus.specs import translate_specs
from gateway.commands.recall import RecallCommands
from gateway.commands.registry import load_specs
from tests.fixtures.discord_schema import DiscordSchema
from tests.fixtures.tables import each_row

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


@each_row("spec", SPECS)
def test_every_command_meets_discords_limits_of_length_and_count(spec: CommandSpec) -> None:
    assert DiscordSchema().request(*PUT, command_payloads(spec)) == {}
    options = [*spec.options, *(option for action in spec.actions for option in action.options)]
    assert len(spec.actions) <= 25
    assert all(len(spec.list_options(action.name)) <= 25 for action in spec.actions)
    assert not (spec.actions and spec.options)
    described: list[CommandSpec | Action | Option] = [spec, *spec.actions, *options]
    assert all(re.fullmatch("[a-z_]{1,32}", item.name) for item in described)
    for item in described:
        for text in (item.description, *item.translations.values()):
            assert 1 <= len(text) <= 100, text
    assert all(1 <= len(choice) <= 100 for option in options for choice in option.choices)
    assert all(len(option.choices) <= 25 for option in options)
    # Discord counts the names, descriptions and values of a command, in its longest language.
    lengths = {
        language: sum(
            len(item.name) + len(item.translations.get(language, item.description))
            for item in described
        )
        for language in spec.translations
    }
    choices = sum(2 * len(choice) for option in options for choice in option.choices)
    assert max(lengths.values()) + choices <= 8000


def test_number_of_commands_and_menus_stays_within_discords_limits() -> None:
    assert len(SPECS) <= 100
    assert len([spec for spec in SPECS if spec.menu]) <= 5
    for spec in SPECS:
        assert all(len(menu) <= 32 for menu in (spec.menu, *spec.menu_translations.values()))


def test_required_options_of_a_command_come_before_optional_ones() -> None:
    assert [option["name"] for option in command_payloads(SPEC)[0]["options"]] == [
        "when",
        "how_often",
    ]


def test_discord_option_values_are_joined_in_the_commands_order() -> None:
    given = [
        {"name": "when", "type": 3, "value": " noon "},
        {"name": "how_often", "type": 3, "value": "every 2 days"},
    ]
    assert join_options(given, SPEC) == "every 2 days;  noon"
    assert join_options(given[:1], SPEC) == "noon"
    assert join_options(given, None) == "noon  every 2 days"
    assert join_options(None, SPEC) == ""


def test_discord_filter_options_are_written_before_the_search_words() -> None:
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
    assert join_options([{"name": "summary", "type": 3, "value": False}], spec) == ""
    assert (
        join_options([{"name": "title", "type": 3, "value": 'a "b" role:tool'}], spec)
        == 'title:"a b role:tool"'
    )


def test_discord_command_has_names_and_descriptions_in_other_languages() -> None:
    spec = replace(
        SPEC,
        translations={"de": "Stellt eine Erinnerung", "es": "Crea un aviso"},
        name_translations={"de": "erinnere"},
    )
    (command,) = command_payloads(spec)
    assert command["name_localizations"] == {"de": "erinnere"}
    assert command["description_localizations"] == {
        "de": "Stellt eine Erinnerung",
        "es-ES": "Crea un aviso",
        "es-419": "Crea un aviso",
    }


def test_values_of_an_action_follow_its_name() -> None:
    (memory,) = load_specs("memory")
    values = [
        {"type": 3, "name": "text", "value": "tea"},
        {"type": 3, "name": "note", "value": "mate"},
    ]
    options = [{"type": 1, "name": "replace", "options": values}]
    assert join_options(options, memory) == "replace mate => tea"
    assert join_options([{"type": 1, "name": "pending"}], memory) == "pending"
    assert join_options(options, None) == "replace tea mate"


def test_discord_command_options_have_the_type_of_their_values() -> None:
    recall, why, ask = load_specs("recall", "why", "ask")
    types = {
        option["name"]: option["type"]
        for spec in (recall, why, ask)
        for option in command_payloads(spec)[0]["options"]
    }
    assert (types["query"], types["number"], types["summary"], types["file"]) == (3, 4, 5, 11)
