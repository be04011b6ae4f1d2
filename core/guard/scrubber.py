"""Removes an echoed fence from a streamed answer, wherever the chunks are cut.

An echo is an opening tag outside code that stands alone at the beginning of its line, or after which the system note
begins; with all up to the closing tag, or to the end when there is none. A tag in a sentence or in code is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from core.guard.fence import CLOSING, NOTE, OPENING

_NOTE_BEGINS = NOTE[: NOTE.index(":")].lower()
_CLOSING = re.compile(re.escape(CLOSING), re.IGNORECASE | re.ASCII)
_MOST_SPACES = 16
"""So much white space may stand between the tag and the note."""
_CODE_INDENT = 4
_BEFORE_FENCE = frozenset(" \t>-*+.)0123456789")
"""What stands before a code fence inside a list or quote."""


class Scrubber:
    """Feed it chunks; it gives what may be shown, and holds back a few characters only where a tag may begin.

    One pass over the characters; what it decides depends on the text alone, never on the cuts. It knows Markdown's
    code as far as needed: fenced blocks, and spans within one line.
    """

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._begin()

    def feed(self, chunk: str) -> str:
        """What of the text so far may be shown now and was not yet."""
        self._held += chunk
        return self._run(is_end=False)

    def close(self) -> str:
        """The rest. The scrubber is then as new."""
        shown = self._run(is_end=True)
        self._begin()
        return shown

    def _begin(self) -> None:
        self._held = ""
        self._step: Callable[[int, bool], int] = self._in_text
        self._mark = ""
        self._is_alone = False
        self._begin_line()

    def _run(self, *, is_end: bool) -> str:
        at = 0
        while at < len(self._held):
            after = self._step(at, is_end)
            if after == at:
                break
            at = after
        self._held = self._held[at:]
        shown = "".join(self._shown)
        self._shown.clear()
        return shown

    def _begin_line(self) -> None:
        self._indent = 0
        self._is_blank = True
        self._is_fence_possible = True
        self._run_length = 0

    def _show(self, at: int, count: int = 1) -> int:
        """Lets characters through and keeps account of where in the line we are."""
        for character in self._held[at : at + count]:
            self._shown.append(character)
            if character == "\n":
                self._begin_line()
                continue
            if character in " \t" and self._is_blank:
                self._indent += 1 if character == " " else _CODE_INDENT
            else:
                self._is_blank = False
            self._is_fence_possible = self._is_fence_possible and character in _BEFORE_FENCE
        return at + count

    def _ticks(self, at: int, is_end: bool) -> int:
        """How many equal characters stand here; 0 when more may come."""
        end = at
        while end < len(self._held) and self._held[end] == self._held[at]:
            end += 1
        return 0 if end == len(self._held) and not is_end else end - at

    def _in_text(self, at: int, is_end: bool) -> int:
        character = self._held[at]
        if character == "<":
            return self._tag(at, is_end)
        if character == "\\":
            if at + 1 == len(self._held) and not is_end:
                return at
            is_pair = self._held[at + 1 : at + 2] in ("`", "<", "\\", "~")
            return self._show(at, 2 if is_pair else 1)
        if character not in "`~":
            return self._show(at)
        count = self._ticks(at, is_end)
        if not count:
            return at
        mark = character * count
        if count >= 3 and self._is_fence_possible:
            self._mark, self._step = mark, self._in_info
        elif character == "`":
            self._mark, self._step = mark, self._in_span
        return self._show(at, count)

    def _in_span(self, at: int, is_end: bool) -> int:
        """A code span ends with as many backticks as it began with, and here also with its line."""
        if self._held[at] == "\n":
            self._step = self._in_text
        if self._held[at] != "`":
            return self._show(at)
        count = self._ticks(at, is_end)
        if count == len(self._mark):
            self._step = self._in_text
        return self._show(at, count)

    def _in_info(self, at: int, is_end: bool) -> int:
        """The rest of the line that a fence begins; backticks in it make the fence a code span."""
        if self._held[at] == "\n":
            self._step = self._in_block
            return self._show(at)
        if self._mark[0] == "`":
            return self._in_span(at, is_end)
        return self._show(at)

    def _in_block(self, at: int, is_end: bool) -> int:
        """A code block ends with a line of at least as many marks as it began with, and nothing else."""
        character = self._held[at]
        if character == "\n":
            is_closed = self._run_length >= len(self._mark)
            self._step = self._in_text if is_closed else self._in_block
            return self._show(at)
        if character == self._mark[0] and self._run_length >= 0:
            self._run_length += 1
        elif character not in " \t>\r" or 0 < self._run_length < len(self._mark):
            self._run_length = -1
        return self._show(at)

    def _tag(self, at: int, is_end: bool) -> int:
        end = at + len(OPENING)
        seen = self._held[at:end].lower()
        if len(seen) < len(OPENING) and OPENING.startswith(seen) and not is_end:
            return at
        is_alone = self._is_blank and self._indent < _CODE_INDENT
        is_code = self._is_blank and not is_alone
        if seen == OPENING and not is_code:
            is_echo = self._is_echo(end, is_alone, is_end)
            if is_echo is None:
                return at
            if is_echo:
                self._is_alone = is_alone
                self._step = self._in_echo
                return end
        return self._show(at)

    def _is_echo(self, end: int, is_alone: bool, is_end: bool) -> bool | None:
        """Whether what follows the tag makes it an echo; None when more has to be seen."""
        most = end + _MOST_SPACES
        while end < len(self._held) and self._held[end].isspace():
            if self._held[end] == "\n" and is_alone:
                return True
            if end == most:
                return False
            end += 1
        ahead = self._held[end : end + len(_NOTE_BEGINS)].lower()
        if not ahead and is_end:
            return is_alone
        if not is_end and len(ahead) < len(_NOTE_BEGINS) and _NOTE_BEGINS.startswith(ahead):
            return None
        return ahead == _NOTE_BEGINS

    def _in_echo(self, at: int, is_end: bool) -> int:
        match = _CLOSING.search(self._held, at)
        if match is not None:
            self._step = self._after_echo
            return match.end()
        return len(self._held) if is_end else max(at, len(self._held) - len(CLOSING) + 1)

    def _after_echo(self, at: int, is_end: bool) -> int:
        """The rest of the closing tag's line goes with it when the block had its lines for itself."""
        if self._is_alone and self._held[at] in " \t\r":
            return at + 1
        self._step = self._in_text
        return at + 1 if self._is_alone and self._held[at] == "\n" else self._in_text(at, is_end)


def scrub(text: str) -> str:
    """The whole of a text without echoed fences."""
    scrubber = Scrubber()
    return scrubber.feed(text) + scrubber.close()
