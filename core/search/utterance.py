"""A message as ranking sees it."""

from __future__ import annotations

from typing import NamedTuple


class Utterance(NamedTuple):
    """`terms` are those of the text; `context` those of the speaker's name and the day. `block` numbers the stretch of
    consecutive messages that it belongs to; neighbours are of one stretch. `is_wanted`: it may be an answer; others
    only lend their words to their neighbours."""

    message_id: int
    session_id: int
    block: int
    terms: list[str]
    name: tuple[str, ...]
    day: tuple[str, ...]
    is_question: bool
    is_wanted: bool
