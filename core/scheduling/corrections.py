"""Correct the text of a reminder: "sorry, I meant Anna", "not the milk, the bread".

The table `replacement` of `data/dialogue.toml` lists sentences in which people name the wrong and
the right words.
"""

from __future__ import annotations

import difflib
import re
from functools import cache

from core.scheduling.phrases import list_sentences, meant_words, strip_name

# A word can correct another one if they are at least this similar, like "Ana" and "Anna".
_MIN_SIMILARITY = 0.7
_WORD = re.compile(r"[^\W\d_]+")
_MARKS = ",;:.!?、，。！"
_BEGIN = rf"(?:^|.*?[\s{_MARKS}–—-])"
_GROUPS = {
    "{wrong}": rf"(?P<wrong>[^{_MARKS}]{{1,60}}?)",
    "{right}": rf"(?P<right>[^{_MARKS}]{{1,80}}?)",
    ",": rf"\s*[{_MARKS}–—-]+\s*",
    " ": r"\s+",
}
_PIECE = re.compile(r"\{\w+\}|[, ]|[^{}, ]+")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


def correct_task(task: str, text: str) -> str | None:
    """Correct a task with the words of a message, or return None if it corrects no word.

    The message contains the wrong and the right words, or only a word that is similar to a word of
    the task.
    """
    for pattern in _replacement_patterns():
        match = pattern.match(text)
        if match is None:
            continue
        for wrong in (match["wrong"], strip_name(match["wrong"])):
            result = _replace(task, wrong, match["right"].strip())
            if result is not None:
                return result
    return _correct_similar_word(task, text)


@cache
def _replacement_patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(map(_compile, list_sentences("replacement")))


def _compile(sentence: str) -> re.Pattern[str]:
    """Return a pattern for a sentence such as "not {wrong}, {right}".

    In the message, other words may precede the sentence.
    """
    pieces = _PIECE.findall(sentence.replace(", ", ","))
    parts = "".join(_GROUPS.get(piece) or re.escape(piece) for piece in pieces)
    return re.compile(rf"{_BEGIN}{parts}[{_MARKS}\s]*$", re.IGNORECASE)


def _replace(task: str, wrong: str, right: str) -> str | None:
    """Return a task with `right` in place of `wrong`, or None if it doesn't contain `wrong`."""
    words = wrong.split()
    if not words or not right:
        return None
    pattern = r"\s+".join(map(re.escape, words))
    if not _UNSPACED.search(wrong):
        pattern = rf"(?<!\w){pattern}(?!\w)"
    match = re.search(pattern, task, re.IGNORECASE)
    if match is None:
        return None
    before = task[: match.start()]
    # Keep "the" once: "take out the milk", "not the milk, the bread".
    article, _, without_article = right.partition(" ")
    if without_article and before.casefold().endswith(f"{article.casefold()} "):
        right = without_article
    return f"{before}{right}{task[match.end() :]}"


def _correct_similar_word(task: str, text: str) -> str | None:
    """Return "call Anna" for the task "call Ana" and the message "I meant Anna", or None."""
    words = meant_words(text)
    if words is None:
        return None
    best_ratio, result = _MIN_SIMILARITY, None
    for old in _WORD.findall(task):
        for new in _WORD.findall(words):
            ratio = difflib.SequenceMatcher(None, old.casefold(), new.casefold()).ratio()
            if old != new and ratio >= best_ratio:
                best_ratio, result = ratio, task.replace(old, new, 1)
    return result
