"""The texts beside the code: each that is named exists, and each that exists is named."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from gateway.texts import catalog
from gateway.texts.catalog import ENGLISH as texts

CATALOG = Path(catalog.__file__)
GATEWAY = CATALOG.parent.parent


def test_the_texts_that_the_code_names_are_those_there_are() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in GATEWAY.rglob("*.py"))
    named = set(
        re.findall(r"""\b(?:texts|load_texts\([\w.]+\))\.(?:table\(["'])?([A-Z][A-Z_]+)""", code)
    )
    named |= set(
        re.findall(r"""\bself\.(?:table\(["'])?([A-Z][A-Z_]+)""", CATALOG.read_text("utf-8"))
    )
    english = tomllib.loads((GATEWAY / "texts" / "en.toml").read_text(encoding="utf-8"))
    # Some keys are the values of a table, such as the texts of assumptions.
    named |= {key for key in english if f'"{key}"' in code}
    assert {key for key in named if key.isupper()} == {key for key in english if key.isupper()}


def test_unknown_text_key_raises_an_error() -> None:
    with pytest.raises(AttributeError):
        texts.NO_SUCH_TEXT  # noqa: B018
    assert texts.table("FACT_SOURCES")["you_rule"] == "You said it"
