"""Reads and deletes the Markdown files in which `brv` stores memories, and tracks their items."""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from config.files import read_file, replace_file
from core.text.normalize import to_single_line

FILE_BYTES = 1_000_000
# Files that brv generates for each folder, and endings of the files that it generates for each
# file.
GENERATED_NAMES = ("_index.md", "_manifest.json")
GENERATED_ENDINGS = (".overview.md", ".abstract.md")
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_UPDATED_AT = re.compile(r"^updatedAt: '?([\dT:.Z+-]+)", re.MULTILINE)
_HEADING = re.compile(r"^(#+ .*|\*\*[\w ]+:\*\*)$", re.MULTILINE)


class Tree:
    """The files in which brv stores the memories of one space."""

    def __init__(self, home: Path, space: str) -> None:
        # brv is started in this folder.
        self.folder = home / "spaces" / space
        # Everything that brv stores here.
        self.state = self.folder / ".brv"
        # The Markdown files.
        self.root = self.state / "context-tree"
        self.ledger = home / "ledgers" / f"{space}.json"

    @property
    def exists(self) -> bool:
        return self.root.is_dir()

    def hash_files(self) -> dict[str, int]:
        """Return a checksum of each file, by its path below `root`.

        Generated files are left out.
        """
        checksums = {}
        for path in self.root.rglob("*.md"):
            is_generated = path.name in GENERATED_NAMES or path.name.endswith(GENERATED_ENDINGS)
            if path.is_file() and not is_generated:
                checksums[path.relative_to(self.root).as_posix()] = zlib.crc32(path.read_bytes())
        return checksums

    def read_memory(self, path: str) -> tuple[str, str] | None:
        """Return the text of a file on one line, and the date of its last update.

        The date is empty if it's unknown. Returns None if the path below `root` isn't a readable
        file.
        """
        file = self.root / path
        try:
            if ".." in file.parts or not file.resolve().is_relative_to(self.root.resolve()):
                return None
            content = read_file(file, FILE_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError):
            return None
        updated_at = ""
        front_matter = _FRONT_MATTER.match(content)
        if front_matter is not None:
            content = content[front_matter.end() :]
            date = _UPDATED_AT.search(front_matter[1])
            if date is not None:
                updated_at = date[1]
        return to_single_line(_HEADING.sub("", content)), updated_at

    def remove(self, path: str) -> None:
        """Delete a file, all files generated from it, and the folders that become empty."""
        file = self.root / path
        file.unlink(missing_ok=True)
        for ending in GENERATED_ENDINGS:
            file.with_name(file.stem + ending).unlink(missing_ok=True)
        for folder in file.parents:
            for name in GENERATED_NAMES:
                (folder / name).unlink(missing_ok=True)
            if folder == self.root:
                break
            with suppress(OSError):
                folder.rmdir()


class Ledger:
    """Records which items each file of a tree may contain.

    brv doesn't report which files it changes. So the ledger compares the files before and after
    each item:

    * A file that changes while an item is sent belongs to that item.
    * A file that changes at another time belongs to all items, because brv also reorganizes files
      on its own.
    * If a file disappears, brv may have moved its text to another file. So all files that changed
      in the same period also belong to the items of the missing file.
    """

    def __init__(self, tree: Tree) -> None:
        """Load the ledger, and assign the files that changed since the ledger was saved."""
        self.tree = tree
        content = read_object(tree.ledger)
        # The checksums of all files when they were last compared.
        self._checksums: dict[str, int] = content.get("seen", {})
        # The files of each item, by its key.
        self._files: dict[str, list[str]] = content.get("files", {})
        # When sending began for the items that may be unfinished, in milliseconds, by key.
        self.unfinished: dict[str, int] = content.get("begun", {})
        # Changes since the ledger was saved belong to the unfinished items. If no item is
        # unfinished, the changes belong to all items.
        self._assign_changes(list(self.unfinished) or list(self._files))

    def begin(self, key: str) -> None:
        """Record that an item is about to be sent."""
        self._files.setdefault(key, [])
        self.unfinished.setdefault(key, time.time_ns() // 1_000_000)
        self._save()

    def finish(self, key: str) -> None:
        """Record that an item was sent, and assign the changed files to the item."""
        self._files.setdefault(key, [])
        self._assign_changes([key])
        self.unfinished.pop(key, None)
        self._save()

    def files_of(self, key: str) -> Sequence[str]:
        """Return the paths of the files that may contain text of an item."""
        return self._files.get(key, ())

    def take_out(self, key: str) -> None:
        """Delete the files of an item, including files that it shares with other items."""
        removed_paths = set(self._files.pop(key, ()))
        for path in removed_paths:
            self.tree.remove(path)
            self._checksums.pop(path, None)
        for other, files in self._files.items():
            self._files[other] = [path for path in files if path not in removed_paths]
        self.unfinished.pop(key, None)
        self._save()

    def _assign_changes(self, keys: Collection[str]) -> None:
        """Assign the files that changed since the last comparison to the items with these keys.

        The changed files are also assigned to items with a file that is missing now.
        """
        checksums = self.tree.hash_files()
        changed_paths = {
            path for path, checksum in checksums.items() if self._checksums.get(path) != checksum
        }
        missing_paths = set(self._checksums) - set(checksums)
        for key, files in self._files.items():
            item_paths = set(files) - missing_paths
            has_missing_file = not missing_paths.isdisjoint(files)
            if key in keys or has_missing_file:
                item_paths |= changed_paths
            self._files[key] = sorted(item_paths)
        if changed_paths or missing_paths:
            self._checksums = checksums
            self._save()

    def _save(self) -> None:
        self.tree.ledger.parent.mkdir(mode=0o700, exist_ok=True)
        content = {"seen": self._checksums, "files": self._files, "begun": self.unfinished}
        replace_file(self.tree.ledger, json.dumps(content).encode())


def read_object(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file, or an empty object if the file doesn't contain one."""
    with suppress(OSError, ValueError):
        content = json.loads(file.read_bytes())
        if isinstance(content, dict):
            return content
    return {}
