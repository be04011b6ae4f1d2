"""The numbers that a text holds, however they are written: in figures, in words, as a month, in Han figures. Pure.

Generous: a word that may be a number counts as one.
"""

from __future__ import annotations

import re
from functools import lru_cache

from core.facts import speech
from core.text.normalize import plain


def figures_of(compared: str) -> frozenset[int]:
    """All numbers of a text, also those in words, of months, and in Han figures."""
    found = {int(figure) for figure in re.findall(r"\d+", compared)}
    for word in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)?", compared):
        number = speech.numbers().get(word) or month_of(word)
        found |= {number} if number else set()
    found |= {int(hour) % 12 for hour in re.findall(r"\b(1[3-9]|2[0-3])[:.h]?\d?", compared)}
    found |= {minutes for word, minutes in speech.PARTS_OF_AN_HOUR.items() if word in compared}
    for run in re.findall(r"[〇一二三四五六七八九十]+", compared):
        found.add(_han(run))
    return frozenset(found)


def _han(run: str) -> int:
    """``二十三`` is 23, ``二〇二六`` 2026."""
    if "十" not in run:
        return int("".join(str(speech.HAN_DIGITS.index(digit)) for digit in run))
    tens, _, ones = run.partition("十")
    units = speech.HAN_DIGITS.find(ones[:1]) if ones else 0
    return (speech.HAN_DIGITS.find(tens[-1]) if tens else 1) * 10 + max(0, units)


@lru_cache(maxsize=10_000)
def month_of(word: str) -> int:
    """1 for January, in a few languages, short or in full; 0 for what is no month."""
    for number, beginnings in enumerate(speech.months(), 1):
        if any(word == one[:3] and word.isascii() for one in beginnings[:1]):
            return number
        if any(word == plain(one)[0] or (not one.isascii() and word.startswith(one)) for one in beginnings):
            return number
    return 0
