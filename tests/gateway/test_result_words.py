"""Texts that adapters and imports store in English: people read them in their language."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.transfer.formats import ImportOptions
from core.transfer.source import Source
from core.types import Scope
from gateway.texts.catalog import list_languages, load_texts
from gateway.texts.result_words import BabelResultWords
from tests.fixtures.english_words import find_english
from tests.fixtures.exports import telegram_account, telegram_chat, telegram_message
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.scripted_model import ScriptedModel
from tests.fixtures.tables import each_row

LANGUAGES = [language for language in list_languages() if language != "en"]
TYPED = ("Ana, Ben", "Flat 7", "Trips", "Milk", "Bread", "Lisbon", "Noon", "Kayak")
MESSAGES = (
    "Group: {Ana, Ben joined}",
    "Group: {Ana left}",
    "Group: {the new title is “Flat 7”}",
    "Group: {pinned: Milk}",
    "Group: {pinned: a message}",
    "Group: {video chat planned for 20 November 2026 12:00 UTC}",
    "Group: {a video chat began}",
    "Group: {a video chat ended after 25 min}",
    "Group: {the topic “Trips” began}",
    "Group: {the topic is now called “Trips”}",
    "Group: {the topic was closed}",
    "Group: {the topic was opened again}",
    "Checklist: {added: Milk; Bread}",
    "Checklist: {done: Milk. open again: Bread; Flat}",
    "Checklist: {Trips. open: Milk; done: Bread}",
    "Poll: {Noon? Options: Milk; Bread}",
    "Closed poll: {Noon? Options: Milk (3); Bread (1)}",
    "Dice: {🎲 4}",
    "Place: {Lisbon (38.7, -9.1)}",
    "Location: {38.7, -9.1}",
    "Contact: {Ben, +351 900}",
    "Message: {an invoice, which can be read only in Telegram: (Kayak)}",
)


@each_row("language", LANGUAGES)
def test_message_that_a_platform_inserted_is_shown_without_an_english_word(language: str) -> None:
    words = load_texts(language).result_words
    for message in MESSAGES:
        text = words.word_text(f"Lisbon\n{message}")
        assert text.startswith("Lisbon\n")
        assert text != f"Lisbon\n{message}"
        assert find_english(text, language, TYPED) == [], text


@each_row(
    ("stored", "shown"),
    [
        ("Group: {the new title is “Flat 7”}", "Gruppe: der neue Name ist „Flat 7“"),
        ("Group: {>>>Ana<<< joined}", "Gruppe: neu dabei: >>>Ana<<<"),
        ("Group: {Ana >>>joined<<<}", "Gruppe: neu dabei: Ana"),
        (
            "Checklist: {Trip. open: passports; done: tickets}",
            "Checkliste: Trip. offen: passports; erledigt: tickets",
        ),
        (
            "Message: {a gift, which can be read only in Telegram: (1)}",
            "Nachricht: ein Geschenk, nur in Telegram lesbar: (1)",
        ),
        (
            "Group: {video chat planned for 20 November 2026 12:00 UTC}",
            "Gruppe: Videochat geplant für 20. Nov. 2026, 12:00 UTC",
        ),
        ("Group: {pinned: the red gond…", "Gruppe: angeheftet: the red gond…"),
        ("Group: Ana joined", "Group: Ana joined"),
        ("Group: {Ana waved}", "Gruppe: Ana waved"),
        ("My note: {a} and Poll: {b} too", "My note: {a} and Poll: {b} too"),
    ],
)
def test_inserted_message_keeps_names_and_marks_in_german(stored: str, shown: str) -> None:
    assert load_texts("de").result_words.word_text(stored) == shown
    assert load_texts("en").result_words.word_text(stored) == stored


@each_row("language", LANGUAGES)
def test_names_that_an_import_gave_are_shown_in_the_language(language: str) -> None:
    words = load_texts(language).result_words
    assert isinstance(words, BabelResultWords)
    names = ("Saved Messages", "Replies", "Deleted account")
    assert len({words.word_name(name) for name in names} - set(names)) == 3
    assert words.word_name("Nothing found.") == "Nothing found."
    assert words.word_name("Replies to Ana") == "Replies to Ana"


@pytest.mark.slow
async def test_imported_chats_and_service_messages_are_recalled_in_the_language_of_the_reader(
    home: Path, tmp_path: Path
) -> None:
    chats = [
        telegram_chat([telegram_message(1, "the gondola is green")], 777, "saved_messages"),
        telegram_chat(
            [telegram_message(2, "a gondola for two", **{"from": None, "from_id": "user43"})],
            43,
            name=None,
        ),
    ]
    export = tmp_path / "result.json"
    export.write_text(json.dumps(telegram_account(chats)), encoding="utf-8")
    owner = Scope.account("telegram", "42")
    async with open_gateway(home, ScriptedModel()) as harness:
        with Source.open(export, ImportOptions(scope=owner)) as source:
            await harness.services.archive.import_records(source.read_records(), lambda _: None)
        await harness.say("Group: {pinned: the red gondola}")
        english = (await harness.say("/recall gondola")).text
        assert "Saved Messages" in english
        assert "Deleted account" in english
        await harness.say("/language de")
        german = (await harness.say("/recall gondola")).text
        assert "Gespeichertes" in german
        assert "Gelöschtes Konto" in german
        assert "Gruppe: angeheftet: the red **gondola**" in german
        for word in ("Saved Messages", "Deleted account", "pinned"):
            assert word not in german
        assert "Gespeichertes" in (await harness.say("/sessions")).text
        # The English name still finds the chat.
        assert "green" in (await harness.say('/recall title:"Saved Messages" gondola')).text
