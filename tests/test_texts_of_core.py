"""The texts of core for people: each key that core names exists, with the placeholders it fills.

Core, adapters and config have no other English prose that people read. Errors of a platform are in
English, and the texts have a translation for each. What else is in English is listed with its
readers in `fixtures/english_in_code.toml`: the model, the log, a grammar of dates.
"""

from __future__ import annotations

import ast
import re
import tomllib
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
from gateway.texts.catalog import ENGLISH, Texts, load_catalog, load_offline_texts, load_texts
from gateway.texts.settings_problems import word_problem, word_settings_advice
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

ALLOWED = tomllib.loads((ROOT / "tests/fixtures/english_in_code.toml").read_text("utf-8"))
# Errors that only the model, the log or a developer gets. A sentence with a key is not prose.
INTERNAL_ERRORS = {
    "AssertionError",
    "KeyError",
    "LookupError",
    "NotImplementedError",
    "RuntimeError",
    "ToolError",
    "TypeError",
    "UncertainCallError",
    "ValueError",
}
_SQL = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|PRAGMA|WHERE|FROM|AND|CASE|SET|WHEN|NULL"
    r"|LIKE|CAST|JOIN|ORDER BY|GROUP BY|AS)\b|\w+\.\w+_id\b|json_each"
)
_GRAMMAR = re.compile(r"\(\?|\\[swdbSDnB]|\[[\w ]+\][?*+ ]|\]\+|</|=\"")
_FUNCTION_WORD = re.compile(
    r"(?<![\w*?])(a|an|the|is|are|isn't|aren't|was|were|it|its|it's|you|your|they|their|them|no|not"
    r"|of|to|in|for|with|by|be|can|can't|cannot|has|have|and|or|there|this|that|these|on|from|at|as"
    r"|if|than|more|which|who)(?![\w*?])",
    re.IGNORECASE,
)
# Functions that show their first argument to people.
_SHOWING = re.compile(r"\b(make_button|Button|Choice|status|echo|print|prompt|confirm)$")


def list_keyed_errors() -> Iterator[tuple[str, str, set[str]]]:
    """Yield the place, the key and the names of the values of each error with a key."""
    files = [*(ROOT / "core").rglob("*.py"), *(ROOT / "gateway/upkeep").rglob("*.py")]
    for path in sorted(files):
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
    # The settings and the adapters have no texts of their own. The reason of a failed backup is
    # stored by its key.
    folders = ("config", "core", "adapters", "gateway/upkeep")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
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
    for name in ("agent/answering/answers.py", "tools/agenda.py", "tools/agenda_answers.py"):
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
        if f'"{key}"' not in code and not key.startswith(("kept_", "origin_"))
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


def is_prose(text: str) -> bool:
    """Return whether a string reads like a clause in English, and not like SQL or a grammar."""
    if _SQL.search(text) or _GRAMMAR.search(text):
        return False
    words = [word for word in re.findall(r"[A-Za-z']+", text) if word != "x"]
    has_phrase = re.search(r"[A-Za-z']+ [a-z']+", text) is not None
    return len(words) >= 3 and has_phrase and _FUNCTION_WORD.search(text) is not None


def join_literals(node: ast.AST) -> str:
    """Return a string of the code on one line. "x" stands for each value in an f-string."""
    text = ""
    match node:
        case ast.Constant(value=str(value)):
            text = value
        case ast.JoinedStr(values=parts):
            text = "".join(str(p.value) if isinstance(p, ast.Constant) else "x" for p in parts)
    return " ".join(text.split())


def list_hidden_nodes(tree: ast.AST) -> set[int]:
    """Return the ids of nodes that people don't read: docstrings, log lines, internal errors."""
    hidden: set[int] = set()
    for node in ast.walk(tree):
        children: set[int] = set()
        match node:
            case ast.Expr(value=ast.Constant() as constant):
                hidden.add(id(constant))
            case ast.Assert():
                children = {id(child) for child in ast.walk(node)}
            case ast.Call(func=function):
                name = ast.unparse(function)
                if "log" in name.lower() or name in INTERNAL_ERRORS:
                    children = {id(child) for child in ast.walk(node)}
            case ast.JoinedStr():
                children = {id(child) for child in ast.walk(node) if child is not node}
        hidden |= children
    return hidden


def list_prose(code: str) -> Iterator[str]:
    """Yield the strings of a module that read like English prose and that people may read."""
    tree = ast.parse(code)
    hidden = list_hidden_nodes(tree)
    for node in ast.walk(tree):
        text = "" if id(node) in hidden else join_literals(node)
        if is_prose(text):
            yield text


def is_worded(text: str) -> bool:
    """Return whether the texts translate a reason of a platform or a problem of the settings."""
    texts = load_texts("de")
    # A value may be a word, a number or the name of a variable.
    for value in ("x", "5", "KEY"):
        reason = re.sub(r"\bx\b", value, text)
        problem = reason if ": " in reason else f"x: 5 {reason}"
        is_problem = word_problem(texts, problem) != problem
        is_advice = word_settings_advice(texts, reason) != reason
        if is_problem or is_advice or texts.word_reason(reason) != reason:
            return True
    return False


def list_shown_words(code: str) -> Iterator[str]:
    """Yield the words of code that a button, a choice, a question or a print shows as they are."""
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call) or not _SHOWING.search(ast.unparse(node.func)):
            continue
        labels = [keyword.value for keyword in node.keywords if keyword.arg in ("label", "text")]
        for argument in [*node.args[:1], *labels]:
            text = join_literals(argument)
            # "x" stands for a value. Commands and paths are the same in every language.
            if re.search(r"(?<![\w`/.-])[A-Za-z]{2,}(?![\w`/.-])", text):
                yield text


@pytest.mark.slow
def test_code_of_core_adapters_and_config_has_only_the_listed_english_prose() -> None:
    wrong = {}
    for folder in ("core", "adapters", "config"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            prose = [text for text in list_prose(path.read_text("utf-8")) if not is_worded(text)]
            if len(prose) != ALLOWED.get(name, {}).get("count", 0):
                wrong[name] = prose
    assert wrong == {}, (
        "give a sentence for people a key in core/errors.toml and its translations; "
        "list what only the model or the log reads in tests/fixtures/english_in_code.toml"
    )


def test_each_module_of_the_list_exists_and_says_who_reads_its_english() -> None:
    assert [name for name in ALLOWED if not (ROOT / name).is_file()] == []
    assert all(entry["readers"] for entry in ALLOWED.values())


@pytest.mark.slow
def test_no_button_choice_or_question_has_an_english_label_in_code() -> None:
    labels = {
        path.relative_to(ROOT).as_posix(): words
        for folder in ("adapters", "gateway")
        for path in (ROOT / folder).rglob("*.py")
        if (words := list(list_shown_words(path.read_text("utf-8"))))
    }
    # The name and the version of the program.
    assert labels == {"gateway/cli/main.py": ["mneme x"]}


@each_row(
    "code",
    [
        'return f"{name} cannot be read: {reason}."',
        'reason = "no person typed it"',
        'left_out.append(f"{path} (its server is running)")',
        'NO_TIME = "messages without a time"',
        'raise StoreError("The file is damaged.")',
        'TEXTS = {"a": "a webhook takes the updates"}',
    ],
)
def test_returned_english_is_noticed(code: str) -> None:
    assert len(list(list_prose(f"def work():\n    {code}\n"))) == 1


@each_row(
    "code",
    [
        '"""A docstring is for developers."""',
        '_log.warning("the file is damaged")',
        'raise ToolError("There is no such tool here.")',
        'return word_clause("waits_pinned", label=label)',
        'query = "SELECT a FROM b WHERE c IS NOT NULL"',
        'pattern = r"(?:the )?[month number] of"',
    ],
)
def test_english_that_people_do_not_read_is_not_noticed(code: str) -> None:
    assert list(list_prose(f"def work():\n    {code}\n")) == []


@each_row(
    "code",
    [
        'make_button("Link them", "approve", "a")',
        'console.status("copying")',
        'Button(label="No", command=command)',
        'typer.echo(f"{count} files")',
    ],
)
def test_english_label_in_code_is_noticed(code: str) -> None:
    assert len(list(list_shown_words(code))) == 1
