"""Parses and writes the text of a note file, and changes its notes in memory.

`core.notes.notebook` reads and writes the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from core.errors import Refused
from core.store.notes import NoteChange, Operation
from core.types import Scope

SEPARATOR = "\n§\n"
# A separator that a person wrote may have blanks around it.
_SEPARATOR_LINE = re.compile(r"^[^\S\n]*§[^\S\n]*$", re.MULTILINE)
# The notes in the files of one target, by the scope of the file.
EntriesByScope = dict[Scope, list[str]]


class NoteEdit:
    """Changes the notes of one target in memory, and records the changes.

    `template` contains the author, the time and the scope for new notes. All methods raise Refused
    with advice if a change isn't possible.
    """

    def __init__(self, entries: EntriesByScope, template: NoteChange) -> None:
        self.entries = dict(entries)
        self.changes: list[NoteChange] = []
        self._template = template
        self._size_before = measure(merge_entries(entries))

    def apply(self, operation: Operation) -> None:
        """Add, replace or remove a note.

        The old note is looked up in the template's scope first, and then in all scopes.
        """
        scope = self._template.scope
        before = None
        if operation.action != "add":
            visible = merge_entries(self.entries)
            before = find_entry(operation.old_text, self.entries[scope], visible)
        after = None
        if operation.action != "remove":
            after = _check_content(operation.content)
        self._replace_note(operation.action, before, after, scope)

    def consolidate(self, operations: Sequence[Operation]) -> None:
        """Apply a draft of the curator, in which `old_text` is always a whole note.

        Raises Refused if one of these notes no longer exists.
        """
        for operation in operations:
            if operation.old_text not in merge_entries(self.entries):
                raise Refused("note_gone", note=operation.old_text)
            after = None
            if operation.action == "replace":
                after = _check_content(operation.content)
            self._replace_note("consolidate", operation.old_text, after, self._template.scope)

    def undo(self, change: NoteChange) -> None:
        """Restore the note that a change replaced or removed, or remove the note that it added.

        Raises Refused if the note that the change wrote no longer exists.
        """
        if change.after is not None and change.after not in merge_entries(self.entries):
            raise Refused("note_gone_before_undo", note=change.after, change=change.id)
        self._replace_note("undo", change.after, change.before, change.scope, change.id)

    def _replace_note(
        self,
        action: str,
        before: str | None,
        after: str | None,
        scope: Scope,
        undoes: int | None = None,
    ) -> None:
        """Replace the note `before` with `after`, and record the change.

        If `before` is None, `after` is added to `scope`. If `after` is None, `before` is removed. A
        note in several scopes is shown only once, so it changes in all of them. Raises Refused if
        the new note exists already.
        """
        if before is None and after in merge_entries(self.entries):
            raise Refused("noted_already", note=after)
        changed_scopes = [scope]
        if before is not None:
            changed_scopes = [each for each, entries in self.entries.items() if before in entries]
        change = replace(self._template, action=action, before=before, after=after, undoes=undoes)
        for changed_scope in changed_scopes:
            new_entries: list[str | None] = [*self.entries[changed_scope]]
            if before is None:
                new_entries.append(after)
            else:
                new_entries = [after if entry == before else entry for entry in new_entries]
            # A file contains each note once.
            self.entries[changed_scope] = list(
                dict.fromkeys(entry for entry in new_entries if entry is not None)
            )
            self.changes.append(replace(change, scope=changed_scope))

    def check_size(self, limit_chars: int, file_name: str) -> None:
        """Raise Refused if the notes exceed the limit, unless the edit made them shorter."""
        visible = merge_entries(self.entries)
        size = measure(visible)
        if size <= limit_chars or size < self._size_before:
            return
        new_entries = {change.after for change in self.changes}
        others = [entry for entry in visible if entry not in new_entries]
        if not others:
            raise Refused("note_too_long", chars=size, limit=limit_chars)
        available = limit_chars - measure(others) - len(SEPARATOR)
        raise Refused(
            "note_over_limit",
            file=file_name,
            chars=size,
            limit=limit_chars,
            free=max(0, available),
            sizes=list_sizes(others),
        )


def parse_entries(text: str) -> list[str]:
    """Return the notes in the text of a file, without duplicates."""
    entries = map(str.strip, _SEPARATOR_LINE.split(normalize_newlines(text)))
    return list(dict.fromkeys(filter(None, entries)))


def format_entries(entries: Sequence[str]) -> str:
    """Return the text of a file with these notes."""
    return SEPARATOR.join(entries) + "\n" if entries else ""


def merge_entries(entries: Mapping[Scope, Sequence[str]]) -> list[str]:
    """Return the notes of all scopes without duplicates, in the form that people see."""
    return list(dict.fromkeys(chain.from_iterable(entries.values())))


def measure(entries: Sequence[str]) -> int:
    """Return the length of a file with these notes in characters, including the separators."""
    return len(SEPARATOR.join(entries))


def list_sizes(entries: Sequence[str]) -> str:
    """Return the notes as a list, each with its length in characters in front."""
    return "\n".join(f"- ({len(entry)}) {entry}" for entry in entries)


def find_entry(text: str, *lists: Sequence[str]) -> str:
    """Return the note that is identified by part of its text.

    A note that equals `text` is preferred. Otherwise, the first of `lists` with a match is used,
    and exactly one of its notes must contain `text`. Within a list, case is ignored only if no note
    matches exactly. Raises Refused with the candidates if no note or more than one matches.
    """
    text = text.strip()
    if not text:
        raise Refused("which_note")
    visible = list(dict.fromkeys(chain.from_iterable(lists)))
    if text in visible:
        return text
    matches = _find_matches(text, lists)
    if len(matches) == 1:
        return matches[0]
    if not visible:
        raise Refused("no_notes_yet", text=text)
    candidates = "\n".join(f"- {entry}" for entry in matches or visible)
    if not matches:
        raise Refused("no_note_contains", text=text, notes=candidates)
    raise Refused("several_notes_contain", count=len(matches), text=text, notes=candidates)


def _find_matches(text: str, lists: Iterable[Sequence[str]]) -> list[str]:
    """Return the notes that contain `text`, from the first list with a match.

    Case is ignored only in a list without an exact match.
    """
    lowercase = text.casefold()
    for entries in lists:
        matches = [entry for entry in entries if text in entry]
        if not matches:
            matches = [entry for entry in entries if lowercase in entry.casefold()]
        if matches:
            return matches
    return []


def _check_content(content: str) -> str:
    """Return the cleaned text of a new note. Raises Refused if the text can't be a single note."""
    content = content.encode("utf-8", "replace").decode("utf-8")
    content = normalize_newlines(content).replace("\0", "").strip()
    if not content:
        raise Refused("nothing_to_note")
    if _SEPARATOR_LINE.search(content):
        raise Refused("note_has_separator")
    return content


def normalize_newlines(text: str) -> str:
    """Replace the line ends of Windows and old Macs with newlines."""
    return re.sub(r"\r\n?", "\n", text)
