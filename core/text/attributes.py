"""What can be said of somebody: an attribute is ``subject|what``, such as ``me|home`` or ``ana|birthday``, and two open
facts of one attribute with different values contradict each other. The words are in `data/attributes.toml`."""

from __future__ import annotations

from functools import lru_cache

from core.text.normalize import language_data
from core.text.terms import terms_of

ME = "me"


def hint_words() -> dict[str, str]:
    """By attribute, the words that a question about it has and its answer has not."""
    found: dict[str, str] = language_data("attributes")["hints"]
    return found


def kin_words() -> tuple[str, ...]:
    """Who belongs to somebody: ``sister``, ``dog``, ``doctor``."""
    return tuple(language_data("attributes")["kin"]["one"] + language_data("attributes")["kin"]["several"])


def is_several(kin: str) -> bool:
    """Whether one has several of that kind, as of sisters."""
    return kin in language_data("attributes")["kin"]["several"]


@lru_cache(maxsize=1000)
def hints_of(attribute: str | None) -> tuple[str, ...]:
    """The terms of the hints of ``subject|what`` or ``subject|what|more``; none where nothing is known."""
    what = (attribute or "").split("|")
    return tuple(dict.fromkeys(terms_of(hint_words().get(what[1], "")))) if len(what) > 1 else ()


def attribute_of(subject: str, what: str, more: str = "") -> str:
    """The name of an attribute, in lower case."""
    return "|".join(part for part in (subject or ME, what, more) if part).casefold()
