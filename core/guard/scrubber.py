"""Keeps our `<memory-context>` block out of an answer that repeats it, wherever the stream is cut.

A block goes with all up to its closing tag, or to the end: one whose tag is followed by our note or by a list, stands
alone on its line, or is closed on the same line. Any other tag is talked about: it stays, in round brackets.
"""

from __future__ import annotations

import re

from core.guard.fence import CLOSING, NOTE, OPENING

_NOTE = NOTE.lower()
_NOTE_BEGINS = _NOTE[: _NOTE.index(":")]
_CANDIDATE = re.compile(r"[<\[]")
_CLOSING = re.compile(re.escape(CLOSING), re.IGNORECASE | re.ASCII)
_BLANKS = re.compile(r"\s{0,64}")
"""So much white space may stand between the tag and what begins the block."""
_MENTION_ENDS = "`\"'”’»“)*_,.;:?!>/|\\"
"""What directly follows a tag that is talked about; nothing of ours begins so."""
_LINE_CHARS = 2_000
"""So far a closing tag is looked for on the line of a bare opening one."""


class Scrubber:
    """Feed it chunks; it gives what may be shown, and holds back a few characters only where a block may begin. What it
    decides depends on the text alone, never on the cuts."""

    def __init__(self) -> None:
        self._begin()

    def feed(self, chunk: str) -> str:
        """What may be shown now and was not yet."""
        self._held += chunk
        return self._run(is_end=False)

    def close(self) -> str:
        """The rest; the scrubber is then as new."""
        shown = self._run(is_end=True)
        self._begin()
        return shown

    def _begin(self) -> None:
        self._held = ""
        self._line = ""
        """What of the present line was shown."""
        self._is_in_block = self._is_after_block = False

    def _run(self, *, is_end: bool) -> str:
        shown: list[str] = []
        at = 0
        while at < len(self._held):
            after, piece = self._step(at, is_end)
            if after == at:
                break
            shown.append(piece)
            self._line = (self._line + piece).rpartition("\n")[2]
            at = after
        self._held = self._held[at:]
        return "".join(shown)

    def _step(self, at: int, is_end: bool) -> tuple[int, str]:
        """Where to go on, and what is shown of what lies before; `at` itself when more has to be seen."""
        if self._is_in_block:
            return self._skip_block(at, is_end), ""
        if self._is_after_block:
            is_alone = not self._line.strip()
            if self._held[at] in " \t\r" and (is_alone or self._line[-1].isspace()):
                return at + 1, ""
            self._is_after_block = False
            if self._held[at] == "\n" and is_alone:
                return at + 1, ""
        found = _CANDIDATE.search(self._held, at)
        start = found.start() if found else len(self._held)
        return (start, self._held[at:start]) if start > at else self._take_tag(at, is_end)

    def _skip_block(self, at: int, is_end: bool) -> int:
        match = _CLOSING.search(self._held, at)
        if match is None:
            return len(self._held) if is_end else max(at, len(self._held) - len(CLOSING) + 1)
        self._is_in_block, self._is_after_block = False, True
        return match.end()

    def _take_tag(self, at: int, is_end: bool) -> tuple[int, str]:
        ahead = self._held[at : at + len(_NOTE)].lower()
        for tag in (OPENING, CLOSING, _NOTE):
            if ahead.startswith(tag):
                break
            if not is_end and tag.startswith(ahead):
                return at, ""
        else:
            return at + 1, self._held[at]
        end = at + len(tag)
        if tag == _NOTE:
            return end, ""
        if tag == OPENING:
            is_block = self._is_block(end, is_end)
            if is_block is None:
                return at, ""
            self._is_in_block = is_block
            if is_block:
                return end, ""
        return end, f"({self._held[at + 1 : end - 1]})"

    def _is_block(self, at: int, is_end: bool) -> bool | None:
        """Whether what follows an opening tag makes it a block; None when more has to be seen."""
        begin = _BLANKS.match(self._held, at).end()  # type: ignore[union-attr]
        has_line_end = "\n" in self._held[at:begin]
        is_alone = not self._line.strip(" \t>")
        ahead = self._held[begin : begin + len(_NOTE_BEGINS)].lower()
        if ahead == _NOTE_BEGINS or (has_line_end and (is_alone or ahead.startswith("- "))):
            return True
        if not is_end and (_NOTE_BEGINS.startswith(ahead) or (has_line_end and ahead == "-")):
            return None
        if has_line_end or self._held[at : at + 1] in tuple(_MENTION_ENDS):
            return False
        return self._is_block_on_line(at, is_end, is_bare=is_alone and not ahead)

    def _is_block_on_line(self, at: int, is_end: bool, *, is_bare: bool) -> bool | None:
        line, has_more, _ = self._held[at : at + _LINE_CHARS].partition("\n")
        if _CLOSING.search(line):
            return True
        if not is_end and not has_more and len(line) < _LINE_CHARS:
            return None
        return is_bare


def scrub(text: str) -> str:
    """The whole of a text without our blocks."""
    scrubber = Scrubber()
    return scrubber.feed(text) + scrubber.close()
