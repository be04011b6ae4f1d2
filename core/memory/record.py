"""Record the items that were sent to a memory service.

For each item, the record maps our ids of messages and notes to the service's ids, so that the item
can be erased later. The record never contains a person's words. A crash at any point leaves the
record intact. `/forget` removes entries from it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from config.files import replace_file
from config.operating_system import sync_file

RECORD_FILE = "told.jsonl"
"""The name of the file in the folder of a service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An item that was sent to a service. The field names are the keys of the file."""

    # The key of the `SyncItem`.
    key: str
    space: str
    # The ids of the messages that the item was made from.
    messages: Sequence[int] = ()
    # The ids of the note changes that the item was made from.
    notes: Sequence[int] = ()
    # A hash of the note's text. Empty for other items.
    mark: str = ""
    # The service's ids for the item. None until the service has confirmed the item.
    remote: Sequence[str] | None = None


class Record:
    """The entries of one service, stored in a file with one JSON line per change.

    A line that a crash has cut off is ignored.
    """

    def __init__(self, file: Path) -> None:
        """Load the file, and rewrite it if it has outdated lines. Begin it if it doesn't exist."""
        self._file = file
        self._entries: dict[str, Entry] = {}
        # A random id of this record. Because of it, two homes derive different names.
        self._origin = ""
        # Whether the id is also part of the names of spaces. It isn't in a record that an earlier
        # version began, because the service has its memories under the names without the id.
        self._has_own_spaces = False

        if not file.exists():
            _begin_record(file)
        lines = file.read_bytes().splitlines()
        for line in lines:
            self._apply_line(line)
        # A compact file has one line with the id of the record and one line per entry.
        has_stale_lines = len(lines) != len(self._entries) + 1
        if not self._origin:
            self._origin = secrets.token_hex(8)
            self._has_own_spaces = not self._entries
            has_stale_lines = True
        if has_stale_lines:
            self.compact()

    @property
    def space_prefix(self) -> str:
        """The id that distinguishes the spaces of this home from those of others on one server.

        Empty in a record that an earlier version began.
        """
        return self._origin if self._has_own_spaces else ""

    @property
    def first_space(self) -> str:
        """The space of the oldest entry, or an empty string if the record is empty."""
        for entry in self._entries.values():
            return entry.space
        return ""

    def derive_name(self, *words: str) -> str:
        """Return a hash of the words, for use as a name in the service, such as that of a note.

        Within this record, the same words always give the same name. The records of other homes
        give other names.
        """
        return hashlib.sha256("\n".join((self._origin, *words)).encode()).hexdigest()[:32]

    def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def find_entries(
        self,
        space: str,
        messages: Collection[int] = (),
        notes: Collection[int] = (),
        mark: str | None = None,
    ) -> list[Entry]:
        """Return the entries of a space that match any of the conditions.

        An entry matches if it was made from one of the `messages` or note changes (`notes`), or if
        it has this `mark`.
        """
        message_ids, note_ids = set(messages), set(notes)
        entries = []
        for entry in self._entries.values():
            if entry.space != space:
                continue
            has_message = not message_ids.isdisjoint(entry.messages)
            has_note = not note_ids.isdisjoint(entry.notes)
            if has_message or has_note or entry.mark == mark:
                entries.append(entry)
        return entries

    def put(self, entry: Entry) -> None:
        """Add or replace an entry. When this method returns, the entry is on disk."""
        self._entries[entry.key] = entry
        self._append(asdict(entry))

    def drop(self, key: str) -> None:
        """Remove an entry. Its old line stays in the file until the next `compact`."""
        if self._entries.pop(key, None) is not None:
            self._append({"gone": key})

    def compact(self) -> None:
        """Rewrite the file with the current entries only."""
        lines = [
            {"origin": self._origin, "has_own_spaces": self._has_own_spaces},
            *map(asdict, self._entries.values()),
        ]
        replace_file(self._file, "".join(f"{json.dumps(line)}\n" for line in lines).encode())

    def _append(self, line: object) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line)}\n")
            file.flush()
            sync_file(file.fileno())

    def _apply_line(self, line: bytes) -> None:
        """Apply a line that `put`, `drop` or `compact` wrote. An unreadable line is ignored."""
        try:
            change = json.loads(line)
            if "origin" in change:
                self._origin = str(change["origin"])
                self._has_own_spaces = change.get("has_own_spaces") is True
            elif "gone" in change:
                self._entries.pop(change["gone"], None)
            else:
                # JSON has lists where an entry has tuples.
                tuples = {
                    name: tuple(value) for name, value in change.items() if isinstance(value, list)
                }
                entry = Entry(**{**change, **tuples})
                self._entries[entry.key] = entry
        except (ValueError, TypeError):
            return


def _begin_record(file: Path) -> None:
    """Write a record without entries, unless another gateway of the home does so meanwhile."""
    header = {"origin": secrets.token_hex(8), "has_own_spaces": True}
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}.half")
    replace_file(draft, f"{json.dumps(header)}\n".encode())
    try:
        # A link is never created over an existing file.
        file.hardlink_to(draft)
    except FileExistsError:
        pass
    except OSError:
        # The file system has no hard links.
        draft.rename(file)
    finally:
        draft.unlink(missing_ok=True)


def continue_record(source: Path, target: Path) -> None:
    """Begin a record in the file `target` that derives the same names as the record `source`.

    The new record has no entries. If `source` can't be read, no file is written.
    """
    first_line = source.read_bytes().partition(b"\n")[0]
    if b'"origin"' in first_line:
        replace_file(target, first_line + b"\n")
