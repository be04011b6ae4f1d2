"""English prose in the code of core, adapters and config: only what people don't read as it is.

Core returns keys and values, and the gateway words them. Errors of a platform are in English, and
the texts have a translation for each. What else is in English is listed with its readers in
`fixtures/english_in_code.toml`: the model, the log, a grammar of dates.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.texts.catalog import load_texts
from gateway.texts.settings_problems import word_problem, word_settings_advice
from tests.fixtures.tables import each_row

ROOT = Path(__file__).parent.parent
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


def is_prose(text: str) -> bool:
    """Return whether a string reads like a clause in English, and not like SQL or a grammar."""
    if _SQL.search(text) or _GRAMMAR.search(text):
        return False
    words = re.findall(r"[A-Za-z']+", text)
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
