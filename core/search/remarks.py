"""What recall says about how it searched, in sentences for people and for the model. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

LOOSE = "No message has all of that; these have some of the words, best first."
PARTLY = "Few messages have all of that, they come first; the others have some of the words."
UNTYPED = "That could not be searched as typed; these have some of the words, best first."
WITHOUT = "That says only what to leave out, so these are the newest without it; in quotes it is searched for."
LAST_PAGE = "There are more, but this is the last page: add words or filters."
WORDLESS = "There is no letter, digit or emoji in that to search for."
DAMAGED = "The search index is being rebuilt; until then this is a plain scan, and less well ordered."
WEAK = "Even the best of them matches weakly, so it may be about something else."
WEAK_BELOW = 0.6
"""A session's score, as a share of the weight of all words asked for, below which it is called weak. On LoCoMo (dev)
the first session is wrong in 52 % of the questions below it (47 % where each conversation is a store of its own); 4 %
(16 %) of all questions are below it, and 76 % of those asked of a store without the conversation they are about."""
JUDGED_CHUNKS = 16
"""In a smaller store the weights of words say too little to call anything weak."""
_WORDS_SHOWN, _CHARS_SHOWN = 6, 60


def nothing(words: Sequence[str], limits: Sequence[str], *, is_typed: bool, is_wider: bool) -> str:
    """What was tried where nothing was found. `words`: any of them was enough; `limits`: what narrowed the search;
    `is_typed`: all of them were tried first; `is_wider`: without the limits something is found."""
    listed = ", ".join(_shown(word.rstrip("*")) for word in words[:_WORDS_SHOWN]) + (
        "…" if len(words) > _WORDS_SHOWN else ""
    )
    asked = f"any of its words ({listed})" if len(words) != 1 else f"“{listed}”"
    told = f"I looked for it as typed and for {asked}" if is_typed and len(words) > 1 else f"I looked for {asked}"
    if not words:
        told = "I looked through the latest conversations"
    within = f", {', '.join(limits)}" if limits else ""
    return f"{told}{within}." + (" Without these limits there is something." if is_wider else "")


def respelled(words: Mapping[str, str]) -> str | None:
    """Which words were never said, and which were taken instead."""
    if not words:
        return None
    return " ".join(f"“{_shown(typed)}” was never said; I looked for “{known}” too." for typed, known in words.items())


def joined(sentences: Iterable[str | None]) -> str | None:
    """All of them in order, each once; None where there are none."""
    return " ".join(dict.fromkeys(sentence for sentence in sentences if sentence)) or None


def _shown(word: str) -> str:
    return word if len(word) <= _CHARS_SHOWN else word[: _CHARS_SHOWN - 1] + "…"
