"""The texts beside the code: each that is named exists, and each that exists is named."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from gateway import texts

GATEWAY = Path(texts.__file__).parent


def test_the_texts_that_the_code_names_are_those_there_are() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in GATEWAY.rglob("*.py"))
    named = set(re.findall(r"""\btexts\.(?:table\(["'])?([A-Z][A-Z_]+)""", code))
    assert (
        named == tomllib.loads((GATEWAY / "data" / "texts.toml").read_text(encoding="utf-8")).keys()
    )


def test_an_unknown_text_is_an_error() -> None:
    with pytest.raises(AttributeError):
        texts.NO_SUCH_TEXT  # noqa: B018
    assert texts.table("FACT_SOURCES")["rule"] == "said it"
