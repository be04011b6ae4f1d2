"""The reasons of options in each language: complete, and with the values that people type."""

from __future__ import annotations

import re

from gateway.texts.text_files import load_names, load_option_reasons
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
