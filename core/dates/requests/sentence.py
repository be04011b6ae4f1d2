"""Hold a message that may be a request, split into tokens and times."""

from __future__ import annotations

from typing import NamedTuple

from core.dates.lexicon import Lexicon
from core.dates.requests.parts import TimeParts
from core.dates.tokenizer import Text
from core.dates.tokens import Kind, Token

GLUE = {
    Kind.COMMA,
    Kind.COLON,
    Kind.AT,
    Kind.AT_OR_TO,
    Kind.ON,
    Kind.THE,
    Kind.AND,
    Kind.OF,
    Kind.FILLER,
    Kind.START_AFTER,
    Kind.IN,
    Kind.OCLOCK,
    Kind.DAY_PREFIX,
}
"""Tokens that may be between two parts of a time."""
ASKING = {Kind.REQUEST, Kind.MENTION}
"""Tokens that ask for a reminder."""
WAKE_UP = 1
"""The number of a REQUEST that asks to wake the person."""
ALARM = 2
"""The number of a REQUEST or MENTION that asks for an alarm or a timer."""


class Cluster(NamedTuple):
    """Adjacent parts of a time, with their combined meaning."""

    start: int
    end: int
    parts: TimeParts


class Sentence:
    """A message, split into the tokens of one language."""

    def __init__(self, text: Text, lexicon: Lexicon, tokens: list[Token]) -> None:
        self.text = text
        self.lexicon = lexicon
        self.tokens = tokens

    def neighbour(self, index: int, step: int) -> Kind | None:
        """Return the kind of the next token that isn't in a cluster, or None at the end."""
        skipped_kinds = GLUE | {Kind.POLITE}
        index = index - 1 if step < 0 else index
        while 0 <= index < len(self.tokens):
            token = self.tokens[index]
            if token.kind not in skipped_kinds and not self.is_punctuation(token):
                return token.kind
            index += step
        return None

    def is_punctuation(self, token: Token) -> bool:
        piece = self.text.plain[token.start : token.end]
        return token.kind in (Kind.OTHER, Kind.POINT) and not any(map(str.isalnum, piece))
