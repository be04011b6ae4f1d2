"""What can be said of somebody: an attribute is ``subject|what``, such as ``me|home`` or ``ana|birthday``, and two open
facts of one attribute with different values contradict each other. The words are in `data/attributes.toml`."""

from __future__ import annotations

import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from core.text.terms import terms_of

ME = "me"


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("data").joinpath("attributes.toml").read_text(encoding="utf-8"))


def hint_words() -> dict[str, str]:
    """By attribute, the words that a question about it has and its answer has not."""
    found: dict[str, str] = _data()["hints"]
    return found


def kin_words() -> tuple[str, ...]:
    """Who belongs to somebody: ``sister``, ``dog``, ``doctor``."""
    return tuple(_data()["kin"]["one"] + _data()["kin"]["several"])


def is_several(kin: str) -> bool:
    """Whether one has several of that kind, as of sisters."""
    return kin in _data()["kin"]["several"]


@lru_cache(maxsize=1000)
def hints_of(attribute: str | None) -> tuple[str, ...]:
    """The terms of the hints of ``subject|what`` or ``subject|what|more``; none where nothing is known."""
    what = (attribute or "").split("|")
    return tuple(dict.fromkeys(terms_of(hint_words().get(what[1], "")))) if len(what) > 1 else ()


def attribute_of(subject: str, what: str, more: str = "") -> str:
    """The name of an attribute, in lower case."""
    return "|".join(part for part in (subject or ME, what, more) if part).casefold()
