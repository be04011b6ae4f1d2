"""The reasons of options of settings and memory services in each language: complete, and with the
values that people type."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from config.files import OptionForm
from core.memory.plugins import Plugins
from gateway.cli.engine import EngineOptions
from gateway.cli.memory_services import word_question
from gateway.texts.catalog import ENGLISH, load_texts
from gateway.texts.text_files import FOLDER, load_names, load_option_reasons, load_service_options
from gateway.web.owner.settings import list_described_options
from tests.fixtures.tables import each_row

LANGUAGES = [language for language in load_names() if language != "en"]
REASONS = {option.path: option.reason for option in list_described_options()}
# These have examples in the person's own language.
LOCAL_EXAMPLES = frozenset(
    {
        "discord.presence",
        "general.zone",
        "media.file_mb",
        "media.show_transcript",
        "media.speaker.command",
        "memory.providers",
    }
)
# What a person types or looks up: values in quotation marks, commands, and names of options.
_TYPED = re.compile(r'"[^"]*"|`[^`]*`|\b[a-z]+_[a-z_]+\b|https?://\S+\b')


def test_every_option_has_an_english_reason() -> None:
    assert [path for path, reason in REASONS.items() if not reason] == []


@each_row("language", LANGUAGES)
def test_every_option_has_its_reason_in_each_language(language: str) -> None:
    reasons = load_option_reasons(language)
    assert set(reasons) == set(REASONS)
    repeated = [path for path, reason in reasons.items() if reason == REASONS[path]]
    assert repeated == [], "these are English"


@each_row("language", LANGUAGES)
def test_translated_reason_names_the_same_values_and_commands(language: str) -> None:
    missing = {}
    for path, reason in load_option_reasons(language).items():
        typed = set(_TYPED.findall(REASONS[path]))
        lost = {value for value in typed if value not in reason}
        if lost and path not in LOCAL_EXAMPLES:
            missing[path] = lost
    assert missing == {}


def list_service_forms() -> Mapping[str, OptionForm]:
    """The forms of the memory services, and of the server that Mneme runs, by their tables."""
    plugins = Plugins(Path("nowhere"))
    forms = {name: plugins.load_form(name) for name in plugins.names()}
    return {**forms, "engine_hindsight": OptionForm(EngineOptions)}


# Values of options, addresses, numbers, and names of programs.
_VALUES = re.compile(
    r"\w+://\S*\w|\b(?:world|experience|observation|low|mid|high|minimal|medium|max|ns|v4|"
    r"hybrid|dynamic|instant|platform|self_hosted|embedded|cloud|graphiti|brv)\b|\b\d+\b"
)


@each_row("language", LANGUAGES)
def test_every_option_of_a_memory_service_is_asked_for_in_each_language(language: str) -> None:
    texts = load_texts(language)
    for service, form in list_service_forms().items():
        purposes = load_service_options(language, service)
        for name in form.fields:
            english = form.describe(name)
            question = word_question(form, service, name, texts)
            assert purposes[name] in question != word_question(form, service, name, ENGLISH)
            # With an article, "the cloud" and "the platform" are words, not values.
            words = english.replace("the cloud", "").replace("the platform", "")
            values = set(_VALUES.findall(words))
            missing = {value for value in values if value not in purposes[name]}
            assert missing == set(), (service, name)


@each_row("language", LANGUAGES)
def test_translated_options_of_memory_services_are_those_that_exist(language: str) -> None:
    tables = tomllib.loads(FOLDER.joinpath("services", f"{language}.toml").read_text("utf-8"))
    shared = set(tables.pop("shared"))
    forms = list_service_forms()
    assert set(tables) == set(forms)
    for service, table in tables.items():
        assert set(table) <= set(forms[service].fields), service
    assert shared <= {name for form in forms.values() for name in form.fields}


def test_option_of_a_plugin_is_asked_for_in_its_own_words() -> None:
    @dataclass
    class Options:
        key: str = field(default="", metadata={"help": "what it knows us by"})

    question = word_question(OptionForm(Options), "jotter", "key", load_texts("de"))
    assert question == "key: what it knows us by (ein Text)"
