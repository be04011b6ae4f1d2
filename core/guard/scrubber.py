"""Keeps our `<memory-context>` block out of an answer that repeats it, in any position, wherever the stream is cut.

A tag begins a block if its closing tag or our note follows, or if it ends its line, as ours does, and more follows or
nothing stood before it; the block goes up to its closing tag or the end. In Markdown code only the same code counts,
and a line end only behind a tag alone on its line. Any other tag is talked about: it stays, in round brackets.
"""

from __future__ import annotations

import re

from core.guard.fence import NOTE, OPENING

_NAME = OPENING[1:-1]
_NAME_TO_END = rf"(?i:{_NAME})(?:[\s/][^<>]*)?>"
_TAG = re.compile(rf"<\s*(/\s*|){_NAME_TO_END}|\[(?i:{re.escape(NOTE[1:])})", re.ASCII)
_TAG_BEGINS = re.compile(r"<\s*(?:/\s*)?([^\s/<>]*)([\s/][^<>]*)?", re.ASCII)
_ECHO = re.compile(rf"<\s*/\s*{_NAME_TO_END}|\[(?i:{re.escape(NOTE[1 : NOTE.index(':')])})", re.ASCII)
_QUOTED = " \t>"
_CODE_FENCE = re.compile(rf"[{_QUOTED}]*(~{{3,}}|`{{3,}}(?=[^`]*$))")
_INLINE_CODE = re.compile(r"(`(?<![`\\].)`*)(?!`).+?(?<!`)\1(?!`)")


class Scrubber:
    """Feed it chunks; it gives what may be shown, and holds back only what may become a block. What it decides depends
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
        self._held = self._line = self._code_fence = ""
        """What may not be shown yet; what of the present line was; what opened the code block that it is in."""
        self._is_in_block = False

    def _run(self, *, is_end: bool) -> str:
        shown: list[str] = []
        at = 0
        while found := _TAG.search(self._held, at):
            is_block: bool | None = not found[1]
            if not self._is_in_block:
                shown.append(self._show(self._held[at : found.start()]))
                at = found.start()
                is_block = found[1] == "" and self._is_block(found, is_end)
                if is_block is None:
                    break
                if not is_block and found[1] is not None:
                    shown.append(self._show(f"({found[0][1:-1]})"))
            self._is_in_block, at = bool(is_block), found.end()
        end = at if found else len(self._held) if is_end else _tag_may_begin(self._held, at)
        rest, self._held = self._held[at:end], self._held[end:]
        return "".join([*shown, "" if self._is_in_block else self._show(rest)])

    def _show(self, text: str) -> str:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            if not self._code_fence:
                self._code_fence = opened[1] if (opened := _CODE_FENCE.match(line)) else ""
            elif line.lstrip(_QUOTED).startswith(self._code_fence):
                self._code_fence = ""
        return text

    def _is_block(self, tag: re.Match[str], is_end: bool) -> bool | None:
        """Whether this opening tag begins a block; None when more has to be seen."""
        after = self._held[tag.end() :]
        line, newline, _ = after.partition("\n")
        if not newline and not is_end:
            return None
        is_alone = not line.strip() and not self._line.strip(_QUOTED)
        code = self._code_after(tag[0], after)
        following = after if code is None else code
        goes_on = not line.strip() and bool(following.partition("\n")[2].strip())
        if _ECHO.search(following) or (goes_on and code is None and (is_end or not self._code_fence)):
            return True
        if code is not None:
            return is_alone and goes_on
        return is_alone if is_end else None

    def _code_after(self, tag: str, after: str) -> str | None:
        """The rest of the Markdown code that the tag is in; None where it is in none, or in one with no end yet."""
        if self._code_fence:
            closed = re.search(rf"\n[{_QUOTED}]*{self._code_fence}", after)
            return after[: closed.start()] if closed else None
        begin = len(self._line)
        for code in _INLINE_CODE.finditer(self._line + tag + after.partition("\n")[0]):
            if code.start() < begin < code.end():
                return after[: code.end() - begin - len(tag)]
        return None


def _tag_may_begin(text: str, at: int) -> int:
    """Where the end of a text may be the beginning of a tag; its end where none may."""
    tag, note = text.rfind("<", at), text.rfind("[", at)
    begun = _TAG_BEGINS.fullmatch(text, tag) if tag >= 0 else None
    if begun and (begun[1].lower() == _NAME if begun[2] else _NAME.startswith(begun[1].lower())):
        return tag
    return note if note >= 0 and NOTE.lower().startswith(text[note:].lower()) else len(text)


def scrub(text: str) -> str:
    """The whole of a text without our blocks."""
    scrubber = Scrubber()
    return scrubber.feed(text) + scrubber.close()
