"""Read the task of a request: its text without the words of the request and of the time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.dates.lexicon import Lexicon
from core.dates.requests.sentence import ALARM, ASKING, WAKE_UP, Cluster, Sentence
from core.dates.tokenizer import plain_text
from core.dates.tokens import Kind, Token

_REMOVABLE = {Kind.COMMA, Kind.COLON, Kind.POLITE, Kind.AND, Kind.TO, Kind.NO, Kind.FILLER}
"""Tokens that are removed at both ends of a task."""
_ENDS = {Kind.AT, Kind.AT_OR_TO, Kind.ON, Kind.THE, Kind.OF, Kind.IN}
"""Further tokens that are removed at the end of a task."""
MAX_TRIMMED_WORDS = 3
"""At most this many words are removed at each end of a task."""
MAX_EDGE_CHARS = 60
"""The words at an end of a task are looked for in this many characters."""
_END_MARKS = frozenset(".,;:!?¿¡-–—…。！？；\n\"'“”()|")


class TaskReader:
    """Reads the task of a request after its times were found."""

    def __init__(
        self,
        sentence: Sentence,
        selection: Sequence[Cluster],
        kept_index: int | None = None,
        *,
        is_request: bool = False,
    ) -> None:
        """Set `is_request` if the whole message is a request, as after ``/remind``.

        `kept_index` is the index of the token "remind" in "remind Anna to pay", where it stays in
        the task.
        """
        self._kept_index = kept_index
        self._is_request = is_request
        self._sentence = sentence
        self._tokens = sentence.tokens
        self._lexicon = sentence.lexicon
        self._time_indexes = self._find_time_indexes(selection)

    def read(self) -> str:
        """Return the message without the words of the request and the accepted times."""
        texts: list[str] = []
        pieces = self._pieces()
        for index, piece in enumerate(pieces):
            is_joined = self._is_joined_with_next(pieces[index + 1 :])
            text = self._piece_text(piece, is_joined=is_joined)
            if text and not texts and not is_joined:
                # "about" belongs to the task in "call Ana tomorrow about the flat".
                text = _trim_task(text, self._lexicon)
            if text:
                texts.append(text)
        separator = "" if self._lexicon.is_unspaced else " "
        task = _trim_task(separator.join(texts), self._lexicon)
        if _is_placeholder(task, self._lexicon):
            return ""
        return task or self._alarm_task()

    def _find_time_indexes(self, selection: Sequence[Cluster]) -> set[int]:
        """Return the indexes of the tokens of accepted times, and of a "for" before one."""
        indexes: set[int] = set()
        for cluster in selection:
            indexes.update(range(cluster.start, cluster.end))
            before = cluster.start - 1
            if before >= 0 and self._tokens[before].kind is Kind.FOR:
                indexes.add(before)
        return indexes

    def _pieces(self) -> list[list[Token]]:
        """Return the runs of tokens that are neither the request nor an accepted time."""
        has_request = any(
            token.kind is Kind.REQUEST and not self._names_thing(index)
            for index, token in enumerate(self._tokens)
        )
        pieces: list[list[Token]] = [[]]
        for index, token in enumerate(self._tokens):
            is_asking = token.kind is Kind.REQUEST or (
                token.kind is Kind.MENTION and not has_request and not self._is_in_task(index)
            )
            if is_asking and (index == self._kept_index or self._names_thing(index)):
                is_asking = False
            if is_asking or index in self._time_indexes:
                pieces.append([])
            else:
                pieces[-1].append(token)
        return pieces

    def _names_thing(self, index: int) -> bool:
        """Return whether "a reminder" is part of the task: "remind me to send a reminder".

        The word is part of the task if the request comes before it and neither a time nor a colon
        follows it.
        """
        token = self._tokens[index]
        text = self._sentence.text.plain[token.start : token.end].strip()
        if text not in self._lexicon.task_things:
            return False
        follower = index + 1
        if follower < len(self._tokens) and (
            follower in self._time_indexes or self._tokens[follower].kind is Kind.COLON
        ):
            return False
        return any(other.kind in ASKING for other in self._tokens[:index])

    def _is_in_task(self, index: int) -> bool:
        """Return whether a word such as "reminder" is part of the task: "see how a reminder looks".

        The token is part of the task if other words of the task come before and after it. If the
        message is known to be a request, words before it are enough.
        """
        before = index - 1
        while before >= 0 and self._tokens[before].kind in (Kind.ONE, Kind.THE):
            before -= 1
        return self._is_word(before) and (self._is_request or self._is_word(index + 1))

    def _is_word(self, index: int) -> bool:
        """Return whether the token at `index` is a word that may belong to the task."""
        if not 0 <= index < len(self._tokens) or index in self._time_indexes:
            return False
        token = self._tokens[index]
        return token.kind not in _REMOVABLE | ASKING and not self._sentence.is_punctuation(token)

    def _alarm_task(self) -> str:
        """Return the words of a request to wake the person or to set an alarm, as its task."""
        for token in self._tokens:
            if token.kind not in ASKING or token.number not in (WAKE_UP, ALARM):
                continue
            if token.number == ALARM and self._lexicon.alarm:
                return self._lexicon.alarm
            return self._original(token.start, token.end)
        return ""

    def _is_joined_with_next(self, following: Sequence[list[Token]]) -> bool:
        """Return whether a particle at the end of a run belongs to the words after the time.

        In Japanese "アンナに明日9時に電話する", the first に does.
        """
        is_japanese = self._lexicon.is_unspaced and self._lexicon.has_postpositions
        return is_japanese and any(map(self._piece_text, following))

    def _piece_text(self, piece: list[Token], *, is_joined: bool = False) -> str:
        """Return the text of a run of tokens, without polite words and marks at its ends.

        If it's joined with the next run, it keeps the particle at its end.
        """
        kinds = _REMOVABLE
        if self._kept_index is not None and self._kept_index < self._index_of(piece):
            kinds = {Kind.COMMA, Kind.COLON}  # "Remind Anna … to pay".
        while piece and (self._is_removable(piece[0], kinds) or self._is_mark(piece[0])):
            if self._is_negation(piece):
                break
            if piece[0].kind is Kind.TO:
                # "Say" and "just" belong to the task in "to say hi" and "to just breathe".
                kinds = {Kind.COMMA, Kind.COLON, Kind.TO}
            piece = piece[1:]
        is_last = bool(piece) and piece[-1] is self._tokens[-1]
        # "In" and "on" belong to the task at the end of "remind me at 5 to dial in".
        ends = _REMOVABLE | (_ENDS - {Kind.IN, Kind.ON} if is_last else _ENDS)
        if is_joined:
            ends -= {Kind.FILLER}
        while piece and (self._is_removable(piece[-1], ends) or self._is_mark(piece[-1])):
            piece = piece[:-1]
        if not piece:
            return ""
        return self._original(piece[0].start, piece[-1].end)

    def _index_of(self, piece: Sequence[Token]) -> int:
        """Return the index of a piece's first token."""
        return self._tokens.index(piece[0]) if piece else 0

    def _is_negation(self, piece: list[Token]) -> bool:
        """Return whether a piece begins with the "not" of its task: "not to eat".

        In "no, call Ana", the word corrects what precedes it, and a comma follows it.
        """
        text = self._sentence.text.plain[piece[0].start : piece[0].end].strip()
        if text not in self._lexicon.task_negations or len(piece) < 2:
            return False
        has_words = not all(
            self._is_removable(token, _REMOVABLE) or self._is_mark(token) for token in piece[1:]
        )
        is_corrected = piece[1].kind in (Kind.COMMA, Kind.COLON) or self._is_mark(piece[1])
        return has_words and not is_corrected

    def _original(self, start: int, end: int) -> str:
        """Return the original text between two positions in the plain text."""
        text = self._sentence.text
        return text.original[text.locate(start) : text.locate(end - 1) + 1]

    def _is_removable(self, token: Token, kinds: set[Kind]) -> bool:
        """Return whether a token of one of these kinds is a whole word, which may be removed."""
        plain = self._sentence.text.plain
        is_long_vowel = plain[token.start] == "ー" and plain[token.start - 1 : token.start] != " "
        if token.kind not in kinds or (is_long_vowel and token.start > 0):
            return False
        joins_next = token.end < len(plain) and plain[token.end].isalnum()
        is_part = joins_next and plain[token.end - 1].isalnum()
        return self._lexicon.is_unspaced or not is_part

    def _is_mark(self, token: Token) -> bool:
        return self._sentence.text.plain[token.start : token.end] in _END_MARKS


def _trim_task(text: str, lexicon: Lexicon) -> str:
    """Return a task without words such as "to" and "about" at its ends."""
    text = re.sub(r"[^\S\n]+", " ", text).strip(" \n,;:-–—")
    if _is_placeholder(text, lexicon):
        return ""
    for trim in (_trim_start, _trim_end):
        for _ in range(MAX_TRIMMED_WORDS):
            trimmed = trim(text, lexicon)
            if trimmed == text:
                break
            text = trimmed
    for ending, replacement in lexicon.task_endings:
        if text.endswith(ending):
            return text.removesuffix(ending) + replacement
    return text


def _is_placeholder(task: str, lexicon: Lexicon) -> bool:
    """Return whether a task names nothing: "something"."""
    if len(task) > MAX_EDGE_CHARS:
        return False
    return plain_text(task).plain.strip(" ?!.") in lexicon.task_placeholders


def _trim_start(text: str, lexicon: Lexicon) -> str:
    """Return a task without one word that can't begin a task."""
    plain = plain_text(text[:MAX_EDGE_CHARS])
    for word in lexicon.task_starts:
        if plain.plain.startswith(word) and _is_word_end(plain.plain, len(word), lexicon):
            return text[plain.locate(len(word)) :].lstrip(" ,:")
    return text


def _trim_end(text: str, lexicon: Lexicon) -> str:
    """Return a task without one word that can't end a task."""
    offset = max(0, len(text) - MAX_EDGE_CHARS)
    plain = plain_text(text[offset:])
    for word in lexicon.task_ends:
        begin = len(plain.plain) - len(word)
        is_word = lexicon.is_unspaced or begin <= 0 or not plain.plain[begin - 1].isalnum()
        if plain.plain.endswith(word) and is_word:
            return text[: offset + plain.locate(begin)].rstrip(" ,:")
    return text


def _is_word_end(plain: str, end: int, lexicon: Lexicon) -> bool:
    if lexicon.is_unspaced or end >= len(plain) or not plain[end - 1].isalnum():
        return True
    # Russian "что" is a word, but "что-нибудь" is another one.
    following = plain[end : end + 2].lstrip("-")
    return not following[:1].isalnum()
