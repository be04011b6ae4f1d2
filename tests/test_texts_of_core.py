"""The texts of core for people: each key that core names exists, with the placeholders it fills."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest

from core.agent.offline import ENGLISH_TEXTS, OfflineModel
from core.errors import LimitReached, MnemeError, Refused, StoreError, load_sentences
from core.text.normalize import language_data
from core.text.terms import ShortMessage
from core.types import Request
from gateway.texts.catalog import ENGLISH, Texts, load_catalog, load_offline_texts
from gateway.texts.text_files import load_names
from tests.fixtures.tables import each_row

ROOT = Path(__file__).parent.parent
# Arguments of errors that aren't values of the sentence.
SETTINGS = {
    "can_be_raised",
    "is_missing",
    "is_permanent",
    "is_retryable",
    "is_uncertain",
    "is_unreachable",
    "retry_after_s",
    "status",
    "words",
}


def list_keyed_errors() -> Iterator[tuple[str, str, set[str]]]:
    """Yield the place, the key and the names of the values of each error with a key."""
    for path in sorted((ROOT / "core").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            is_error = node.func.id.endswith(("Error", "Refused", "LimitReached"))
            message = node.args[0] if is_error and node.args else None
            key = message.value if isinstance(message, ast.Constant) else None
            if isinstance(key, str) and " " not in key and node.func.id != "ModelFailure":
                names = {keyword.arg or "" for keyword in node.keywords}
                yield f"{path.relative_to(ROOT)}:{node.lineno}", key, names - SETTINGS


def list_sentences_with_values() -> Iterator[tuple[str, str, set[str]]]:
    """Yield the place, the key and the names of the values of each `Sentence` written with both."""
    for path in sorted((ROOT / "core").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Name(id="Sentence"),
                    args=[ast.Constant(value=str(key)), ast.Dict(keys=keys)],
                ):
                    names = {ast.literal_eval(name) for name in keys if name}
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", key, names


def placeholders(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}


@pytest.mark.slow
def test_each_key_that_core_raises_has_a_sentence_with_its_values() -> None:
    errors = [error for error in list_keyed_errors() if "_" in error[1]]
    assert len(errors) > 60
    for place, key, names in errors:
        assert key in load_sentences(), place
        assert placeholders(load_sentences()[key]) == names, place


def test_each_sentence_that_core_builds_exists_with_its_values() -> None:
    sentences = list(list_sentences_with_values())
    assert len(sentences) > 20
    for place, key, names in sentences:
        assert key in load_sentences(), place
        assert placeholders(load_sentences()[key]) == names, place


def test_each_error_sentence_of_core_is_used_in_the_code() -> None:
    # The settings and the adapters have no texts of their own.
    files = [
        path for floor in ("config", "core", "adapters") for path in (ROOT / floor).rglob("*.py")
    ]
    code = "".join(path.read_text("utf-8") for path in files)
    statuses = language_data("failures", "core.models")["kinds"]["statuses"]
    failures = {f"model_{status}" for status in statuses}
    # ModelFailure builds its key from a kind.
    failures |= {f"model_{kind}" for kind in re.findall(r'"(\w+)"', code)}
    unused = [key for key in load_sentences() if f'"{key}"' not in code and key not in failures]
    assert unused == []


@each_row("language", [name for name in load_names() if name != "en"])
def test_sentences_of_a_language_have_the_placeholders_of_the_english_ones(language: str) -> None:
    for key, sentence in load_catalog(language)["errors"].items():
        assert placeholders(sentence) == placeholders(load_sentences()[key]), key


def test_an_error_with_a_key_reads_as_english_and_is_worded_from_its_values() -> None:
    error = Refused("reminder_too_long", limit=2000, chars=12345)
    sentence = "A reminder can have 2,000 characters; this one has 12,345."
    assert str(error) == sentence
    assert ENGLISH.word(error) == sentence
    assert "12.345" in Texts("de").word(error)


def test_an_error_in_an_error_is_worded_too() -> None:
    error = Refused("operation_refused", number=2, reason=Refused("nothing_to_note"))
    assert str(error) == (
        "Nothing was changed. Operation 2: There is nothing to note: give the text."
    )
    assert ENGLISH.word(error) == str(error)


def test_error_with_a_plain_sentence_is_worded_unchanged() -> None:
    assert str(MnemeError("state.db has {braces}.")) == "state.db has {braces}."
    assert ENGLISH.word(StoreError("state.db is full.")) == "state.db is full."


def test_secrets_in_values_are_masked_except_in_refusals() -> None:
    secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
    error = MnemeError("not_a_calendar_file", reason=secret)
    assert secret not in str(error)
    assert secret not in ENGLISH.word(error)
    assert secret in ENGLISH.word(Refused("not_a_calendar_file", reason=secret))


def test_limit_error_names_whose_limit_was_reached() -> None:
    error = LimitReached("group_limit", used="9 of 9 answers", zone="UTC")
    assert str(error).startswith("Today's limit for this group is reached (9 of 9 answers).")
    assert not error.is_retryable


def test_answers_without_a_model_are_worded_by_keys_that_exist() -> None:
    code = (ROOT / "core/agent/offline.py").read_text("utf-8")
    for name in ("agent/answers.py", "tools/agenda.py", "tools/agenda_questions.py"):
        code += (ROOT / "core" / name).read_text("utf-8")
    data = (ROOT / "core/agent/offline.toml").read_text("utf-8")
    named = set(re.findall(r"""texts\[["'](\w+)["']\]""", code)) | set(
        re.findall(r'answer = "(\w+)"', data)
    )
    named |= set(get_args(ShortMessage))
    assert named <= ENGLISH_TEXTS.keys()
    unnamed = [
        key
        for key in ENGLISH_TEXTS.keys() - named
        if f'"{key}"' not in code and not key.startswith("kept_")
    ]
    assert unnamed == []


@each_row("language", [name for name in load_names() if name != "en"])
def test_answers_without_a_model_have_the_placeholders_of_the_english_ones(language: str) -> None:
    english_texts = load_offline_texts("en")
    for key, text in load_offline_texts(language).items():
        assert placeholders(text) <= placeholders(english_texts[key]), key
    assert len(load_offline_texts(language)["months"].split(", ")) == 12
    assert len(load_offline_texts(language)["weekdays"].split(", ")) == 7


async def test_the_offline_model_answers_in_the_language_of_the_request() -> None:
    block = {"type": "text", "text": "I like the old harbour."}
    german = {**ENGLISH_TEXTS, "saved": "Gespeichert.", "no_model": "Es ist kein Modell da"}
    german["explanation"] = "{reason}."
    model = OfflineModel("UTC", load_texts=lambda code: german if code == "de" else ENGLISH_TEXTS)
    for language, text in {"de": "Gespeichert. Es ist kein Modell da.", "": "I've saved"}.items():
        messages = ({"role": "user", "content": [block]},)
        request = Request(system=(), messages=messages, language=language)
        completion = await model.complete(request, print, print)
        assert completion.text.startswith(text)
