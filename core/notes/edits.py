"""A change of the curated notes while it is worked out: what goes, what comes, and whether it fits in the end.

Works on entries that have been read; never touches a file. Raises Refused with a sentence that says what to do.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import Refused
from core.notes.files import FILES, SEPARATOR, has_separator, with_plain_lines
from core.store.notes import Operation
from core.types import Scope

UNSAID = "Say which note: give a part of its text that no other note has."


class NoteEdit:
    """`held` are the entries of one target, by the scope whose file they stand in; `scope` is where new ones go."""

    def __init__(self, held: dict[Scope, list[str]], scope: Scope, target: str) -> None:
        self.held = {place: list(entries) for place, entries in held.items()}
        self.swaps: list[tuple[str | None, str | None, list[Scope]]] = []
        """What went, what came, and in which files, in order."""
        self._scope = scope
        self._target = target
        self._size_before = size(self.shown)

    @property
    def shown(self) -> list[str]:
        """All entries as they are shown: each once."""
        return list(dict.fromkeys(entry for entries in self.held.values() for entry in entries))

    @property
    def places(self) -> list[Scope]:
        """Whose files are changed."""
        return list(dict.fromkeys(place for _, _, places in self.swaps for place in places))

    def do(self, operation: Operation) -> None:
        """Works out one operation after those before it."""
        if operation.action == "add":
            self.swap(None, cleaned(operation.content), self._scope)
        else:
            content = cleaned(operation.content) if operation.action == "replace" else None
            self.swap(self._one(operation.old_text), content, self._scope)

    def swap(self, before: str | None, after: str | None, scope: Scope) -> None:
        """An entry that goes, goes from every scope that has it: it is shown once, so it must not stay behind under
        another account. One that only comes, comes to `scope`."""
        if before is None and after in self.shown:
            raise Refused(f"That is noted already: “{after}”.")
        places = [scope] if before is None else [place for place, entries in self.held.items() if before in entries]
        for place in places:
            self.held[place] = _changed(self.held[place], before, after)
        self.swaps.append((before, after, places))

    def fit(self, limit: int) -> None:
        """Only the final size counts; and what was too long already may get shorter."""
        used = size(self.shown)
        if used <= limit or used < self._size_before:
            return
        new = {after for _, after, _ in self.swaps}
        others = [entry for entry in self.shown if entry not in new]
        listed = "\n".join(f"- {len(entry)} characters: {entry}" for entry in others)
        left = max(0, limit - size(others) - (len(SEPARATOR) if others else 0))
        raise Refused(
            f"That would make {FILES[self._target]} {used:,} characters, over its limit of {limit:,}; "
            f"{left:,} would fit. Shorten, replace or remove entries first:\n{listed}"
        )

    def _one(self, old_text: str) -> str:
        """The entry that is exactly `old_text`, else the only one of the scope that contains it, else of the others."""
        wanted = old_text.strip()
        if not wanted:
            raise Refused(UNSAID)
        if wanted in self.shown:
            return wanted
        others = [entry for place, entries in self.held.items() if place != self._scope for entry in entries]
        found = containing(self.held[self._scope], wanted) or containing(list(dict.fromkeys(others)), wanted)
        if len(found) == 1:
            return found[0]
        raise Refused(unclear(wanted, found, self.shown))


def cleaned(content: str) -> str:
    """A note as it is kept. Raises Refused when it cannot be one."""
    content = with_plain_lines(content.encode("utf-8", "replace").decode("utf-8")).replace("\0", "").strip()
    if not content:
        raise Refused("There is nothing to note: give the text.")
    if has_separator(content):
        raise Refused("A note cannot contain a line with § alone: that is what separates the notes.")
    return content


def containing(entries: Sequence[str], wanted: str) -> list[str]:
    """Those with `wanted` in them as written; if there are none, in any case."""
    folded = wanted.casefold()
    return [entry for entry in entries if wanted in entry] or [entry for entry in entries if folded in entry.casefold()]


def unclear(wanted: str, found: Sequence[str], shown: Sequence[str]) -> str:
    """Why it cannot be told which note is meant, with the candidates."""
    listed = "\n".join(f"- {entry}" for entry in found or shown) or "(there are no notes yet)"
    reason = f"{len(found)} notes contain" if found else "No note contains"
    return f"{reason} “{wanted}”. The notes are:\n{listed}"


def size(entries: Sequence[str]) -> int:
    """In characters, as they are shown."""
    return len(SEPARATOR.join(entries))


def _changed(entries: Sequence[str], before: str | None, after: str | None) -> list[str]:
    if before is None:
        return [*entries, *([] if after is None else [after])]
    changed = (after if entry == before else entry for entry in entries)
    return list(dict.fromkeys(entry for entry in changed if entry is not None))
