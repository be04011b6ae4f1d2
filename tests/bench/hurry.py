"""Asks the questions of the recall benchmark as people type them in a hurry, at three strengths.

``python -m tests.bench --only hurry``, or this file with the path of the project's shared folder,
measures Mneme at each strength. The questions are read during the run and changed at random. Their
ids are the seeds, so every run asks the same questions.
"""

from __future__ import annotations

import argparse
import importlib
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

STRENGTHS = ("typed", "light", "medium", "heavy", "words")
_NEIGHBOURS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_SHORT: Mapping[str, str] = {
    "you": "u", "your": "ur", "are": "r", "birthday": "bday", "people": "ppl", "before": "b4", "because": "cuz",
    "about": "abt", "with": "w", "and": "n", "for": "4", "please": "pls", "tomorrow": "tmrw", "favorite": "fav",
    "favourite": "fav", "picture": "pic", "pictures": "pics", "photo": "pic", "photos": "pics", "today": "2day",
}  # fmt: skip
_SMALL = """
a an and are at be been by did do does for from had has have he her hers him his in into is it its of on or she that
the their them they this to was were will with would
"""
_LEFT_OUT = frozenset(_SMALL.split())
_ASKING = frozenset({"what", "when", "where", "who", "which", "how", "why", "whose", "whom"})
_ENDINGS = re.compile(r"\b(\w+)'(s|re|t|ve|ll|d|m)\b", re.IGNORECASE)
_FIRST = re.compile(r"\b(what|where|when|who|how) (?:is|was|s)\b")
LONG_LETTERS = 4


def hurried(text: str, seed: str, strength: str) -> str:
    """Return a question as it is typed in a hurry.

    * typed: unchanged
    * light: lower case, without apostrophes and punctuation
    * medium: like light, with a typing error in one word
    * heavy: only keywords, one with a typing error, and abbreviations used in chats
    * words: only keywords, spelled correctly
    """
    chance = random.Random(f"{strength}/{seed}")
    if strength == "typed":
        return text
    plain = " ".join(
        re.sub(r"[^\w\s'\-/]", " ", _ENDINGS.sub(r"\1\2", text)).replace("'", "").lower().split()
    )
    if strength == "light":
        return plain
    if strength == "medium":
        return _add_typo(_FIRST.sub(r"\1s", plain), chance)
    words = [word for word in plain.split() if word not in _LEFT_OUT]
    words = [
        word
        for index, word in enumerate(words)
        if word not in _ASKING or (index == 0 and chance.random() < 0.5)
    ]
    if strength == "words":
        return " ".join(word for word in words if word not in _ASKING)
    slipped = _add_typo(" ".join(words), chance).split()
    if len(slipped) > LONG_LETTERS and chance.random() < 0.5:
        slipped.pop(chance.randrange(len(slipped)))
    return " ".join(_SHORT.get(word, word) for word in slipped)


def _add_typo(text: str, chance: random.Random) -> str:
    """Return the text with a typing error in one of its longer words."""
    words = text.split()
    places = [
        place
        for place, word in enumerate(words)
        if len(word) >= LONG_LETTERS and word.isalpha() and word not in _LEFT_OUT | _ASKING
    ]
    if places:
        place = chance.choice(places)
        words[place] = slip(words[place], chance)
    return " ".join(words)


def slip(word: str, chance: random.Random) -> str:
    """Return a word with a letter dropped, doubled, swapped with the next one, or replaced by a
    letter next to it on the keyboard.
    """
    index = chance.randrange(len(word))
    kind = chance.choice(("dropped", "doubled", "swapped", "mistaken"))
    if kind == "dropped":
        return word[:index] + word[index + 1 :]
    if kind == "doubled":
        return word[:index] + word[index] + word[index:]
    if kind == "swapped":
        index = min(index, len(word) - 2)
        return word[:index] + word[index + 1] + word[index] + word[index + 2 :]
    row = next((row for row in _NEIGHBOURS if word[index] in row), "")
    near = [
        row[place]
        for place in (row.find(word[index]) - 1, row.find(word[index]) + 1)
        if 0 <= place < len(row)
    ]
    return word[:index] + chance.choice(near or ["e"]) + word[index + 1 :]


def scores(
    path: Path, make: Callable[[], Any], strengths: Sequence[str] = STRENGTHS
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each strength with the figures of the shared harness for a searcher."""
    sys.path.insert(0, str(path / "bench" / "recall"))
    data, harness = importlib.import_module("data"), importlib.import_module("harness")
    sessions, queries = data.load(str(path / "data" / "locomo-dev.json"))
    for strength in strengths:
        typed = [{**one, "text": hurried(one["text"], one["id"], strength)} for one in queries]
        yield strength, harness.summary(harness.evaluate(make, sessions, typed))


def main() -> None:
    """Print a table."""
    from tests.bench.locomo import Mneme

    parser = argparse.ArgumentParser(prog="hurry.py")
    parser.add_argument("shared", type=Path, help="the project's shared folder")
    parser.add_argument(
        "--strength", action="append", choices=STRENGTHS, help="this one; may be given again"
    )
    asked = parser.parse_args()
    if not (asked.shared / "bench" / "recall").exists():
        sys.stdout.write(f"left out: there is no {asked.shared / 'bench' / 'recall'}\n")
        return
    columns = ("hit@1", "hit@5", "mrec@10", "empty")
    sys.stdout.write(
        "| as | "
        + " | ".join(columns)
        + " | p50 ms | p95 ms |\n|"
        + "---|" * (len(columns) + 3)
        + "\n"
    )
    for strength, found in scores(asked.shared, Mneme, asked.strength or STRENGTHS):
        shares = " | ".join(f"{100 * found[column]:.1f}" for column in columns)
        sys.stdout.write(
            f"| {strength} | {shares} | {found['p50_ms']:.2f} | {found['p95_ms']:.2f} |\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
