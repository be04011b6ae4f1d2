"""What can be said of somebody once only: home, work, birthday, name; and the words in which such things are asked for.

An attribute is ``subject|what``: ``me|home``, ``ana|birthday``; two open facts of one attribute with different values
contradict each other. Pure data and a few functions.
"""

from __future__ import annotations

import re
from functools import lru_cache

from core.text.terms import terms_of

ME = "me"

HINTS = {
    "home": "live lives home house address reside city town country place moved move based stay",
    "work": "work works job employer company office profession occupation career",
    "profession": "work works job profession occupation career do living",
    "birthday": "birthday born birth date age old",
    "name": "name called call",
    "age": "old age birthday years",
    "phone": "phone number telephone mobile call reach",
    "email": "email mail address reach",
    "from": "from origin grew born native country hometown",
    "partner": "partner wife husband married spouse girlfriend boyfriend relationship",
    "car": "car drive drives vehicle",
    "language": "language speak speaks",
    "diet": "eat eats food diet vegetarian vegan meal cook dinner",
    "allergy": "allergic allergy allergies eat food avoid reaction intolerant",
    "like": "like likes prefer prefers favourite favorite love loves enjoy enjoys hate dislike taste preference want",
    "favourite": "favourite favorite like likes best prefer prefers love",
    "decision": "decide decided decision agreed agree chose plan settled choose",
    "sister": "sister sibling family", "brother": "brother sibling family",
    "mother": "mother mom mum parent family", "father": "father dad parent family",
    "daughter": "daughter child kid family", "son": "son child kid family",
    "wife": "wife partner married spouse", "husband": "husband partner married spouse",
    "dog": "dog pet animal", "cat": "cat pet animal", "doctor": "doctor physician appointment health",
    "deadline": "deadline due date when finish",
}  # fmt: skip
"""The words that a question about an attribute has and its answer has not."""


_OWN = re.compile(
    r"\b(?:i|me|my|mine|myself|we|us|our|ours|im|ive|ich|mich|mir|meine?[rnms]?|wir|uns|eu|meu|minha|meus|minhas|yo|mi|mis|"
    r"je|moi|mon|ma|mes|nous|notre|moro|vivo|trabalho|trabajo|я|мой|моя|моё|мое|мои|мою|моего|моей|моему|моих|моим|"
    r"wohne|lebe|heiße|arbeite|habite|soy|sou|tengo|tenho|chamo|llamo|живу|работаю|мне|меня|мной|мы|нас|нам|наш\w*)\b|\bj['’]|我|私|僕|俺|저|나는|내",
    re.IGNORECASE,
)


def is_first_person(text: str) -> bool:
    """Whether somebody speaks of themselves."""
    return _OWN.search(text) is not None


@lru_cache(maxsize=1000)
def hints_of(attribute: str | None) -> tuple[str, ...]:
    """The terms of those words, for ``subject|what`` or ``subject|what|more``; none where nothing is known."""
    what = (attribute or "").split("|")
    return tuple(dict.fromkeys(terms_of(HINTS.get(what[1], "")))) if len(what) > 1 else ()


def attribute_of(subject: str, what: str, more: str = "") -> str:
    """The name of an attribute, in lower case."""
    return "|".join(part for part in (subject or ME, what, more) if part).casefold()
