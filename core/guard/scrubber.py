"""Keeps our `<memory-context>` block out of an answer that repeats it, wherever the stream is cut.

A block goes with all up to its closing tag, or to the end: one whose tag is followed by our note, stands alone on its
line, or is closed on the same line. Any other tag is talked about: it stays, in round brackets.
"""

from __future__ import annotations

import re

from core.guard.fence import CLOSING, NOTE, OPENING

_TAG = re.compile("|".join(map(re.escape, (OPENING, CLOSING, NOTE))), re.IGNORECASE | re.ASCII)
_CLOSING = re.compile(re.escape(CLOSING), re.IGNORECASE | re.ASCII)
_NOTE_BEGINS = NOTE[: NOTE.index(":")].lower()
_MENTION_ENDS = "`\"'”’»“)*_,.;:?!>/|\\"
"""What directly follows a tag that is talked about; nothing of ours begins so."""
_LINE_CHARS = 2_000
"""So far the line of an opening tag is read."""


class Scrubber:
    """Feed it chunks; it gives what may be shown, and holds back only where a block may begin. What it decides depends
    on the text alone, never on the cuts."""

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
        self._held = self._line = ""
        """What may not be shown yet; what of the present line was."""
        self._is_in_block = False

    def _run(self, *, is_end: bool) -> str:
        shown: list[str] = []
        at = 0
        while True:
            found = (_CLOSING if self._is_in_block else _TAG).search(self._held, at)
            if found is None:
                break
            before = self._held[at : found.start()]
            if self._is_in_block:
                before, piece, self._is_in_block = "", "", False
            else:
                piece = "" if found[0].lower() == NOTE.lower() else f"({found[0][1:-1]})"
            if found[0].lower() == OPENING:
                line = (self._line + before).rpartition("\n")[2]
                is_block = _is_block(line, self._held[found.end() : found.end() + _LINE_CHARS], is_end)
                if is_block is None:
                    break
                piece, self._is_in_block = ("" if is_block else piece), is_block
            at = found.end()
            shown.append(self._shown(before + piece))
        end = found.start() if found else len(self._held) if is_end else _tag_may_begin(self._held, at)
        rest, self._held = self._held[at:end], self._held[end:]
        return "".join([*shown, "" if self._is_in_block else self._shown(rest)])

    def _shown(self, text: str) -> str:
        self._line = (self._line + text).rpartition("\n")[2]
        return text


def _tag_may_begin(text: str, at: int) -> int:
    """Where the end of a text may be the beginning of a tag; its end where none may."""
    for place in range(max(at, len(text) - len(NOTE)), len(text)):
        if any(tag.lower().startswith(text[place:].lower()) for tag in (OPENING, CLOSING, NOTE)):
            return place
    return len(text)


def _is_block(before: str, after: str, is_end: bool) -> bool | None:
    """Whether an opening tag with this on its line before it and this behind it begins a block; None when more has to
    be seen."""
    line, newline, _ = after.partition("\n")
    following = after.lstrip().lower()
    is_seen = is_end or len(after) == _LINE_CHARS
    if following.startswith(_NOTE_BEGINS) or (_CLOSING.search(line) and not after.startswith(tuple(_MENTION_ENDS))):
        return True
    if not is_seen and (not newline or _NOTE_BEGINS.startswith(following)):
        return None
    is_alone = not line.strip() and not before.strip(" \t>")
    return is_alone and (bool(newline) or len(after) < _LINE_CHARS)


def scrub(text: str) -> str:
    """The whole of a text without our blocks."""
    scrubber = Scrubber()
    return scrubber.feed(text) + scrubber.close()
