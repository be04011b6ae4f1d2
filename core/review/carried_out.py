"""Remembers which things the wishes of the latest messages have ended.

A wish such as "delete that one" ends one thing. Without this record, the model could remove one
thing after another for it, because each call by itself is a call that the person asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from core.review.phrases import SENTENCE_END, find_languages, joint_pattern, to_plain
from core.review.wishes import mentions_several
from core.types import Subject

MAX_MESSAGES = 200
"""The record keeps the wishes of this many messages."""


@dataclass(eq=False)
class CarriedOutWishes:
    """The things that were removed or weakened for each of the latest messages."""

    _things: OrderedDict[int, set[str]] = field(default_factory=OrderedDict)

    def take(self, message_id: int, subjects: Sequence[Subject], typed: Sequence[str]) -> bool:
        """Record that a message's wish ends some things, and return whether it may.

        A wish for one thing may end the same thing again, but no second one.
        """
        things = self._things.setdefault(message_id, set())
        self._things.move_to_end(message_id)
        if len(self._things) > MAX_MESSAGES:
            self._things.popitem(last=False)
        wanted = things | {f"{subject.label}\n{subject.text}" for subject in subjects}
        if len(wanted) > 1 and not may_want_several(typed):
            return False
        things |= wanted
        return True


def may_want_several(typed: Collection[str]) -> bool:
    """Return whether messages may ask for several things.

    They may if there are several sentences or clauses, a list, or words such as "both" and "all".
    """
    if len(typed) != 1:
        return True
    (text,) = typed
    text = text.strip()
    if "," in text or "\n" in text or len(SENTENCE_END.split(text)) > 1:
        return True
    plain, languages = to_plain(text), find_languages(text)
    return joint_pattern(languages).search(plain) is not None or mentions_several(plain, languages)
