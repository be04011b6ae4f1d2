"""The files that `brv` makes of what it is told, in a folder for each space, and what each of them came of."""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from config.files import read_file, replace_file
from core.text.normalize import on_one_line

FILE_BYTES = 1_000_000
GENERATED = ("_index.md", "_manifest.json")
DERIVED = (".overview.md", ".abstract.md")
"""What brv makes of the files of a tree, and makes anew."""
_FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_UPDATED = re.compile(r"^updatedAt: '?([\dT:.Z+-]+)", re.MULTILINE)
_HEADING = re.compile(r"^(#+ .*|\*\*[\w ]+:\*\*)$", re.MULTILINE)


class Tree:
    """What brv keeps for a space: Markdown files in folders."""

    def __init__(self, home: Path, space: str) -> None:
        self.folder = home / "spaces" / space
        self.state = self.folder / ".brv"
        self.root = self.state / "context-tree"
        self.ledger = home / "ledgers" / f"{space}.json"

    @property
    def is_there(self) -> bool:
        return self.root.is_dir()

    def marks(self) -> dict[str, int]:
        """Of each file, without those that brv makes of the others, what changes with it."""
        return {
            path.relative_to(self.root).as_posix(): zlib.crc32(path.read_bytes())
            for path in self.root.rglob("*.md")
            if path.is_file() and path.name not in GENERATED and not path.name.endswith(DERIVED)
        }

    def said(self, path: str) -> tuple[str, str] | None:
        """The text of a file, and since when; None for what is no file of the tree."""
        file = self.root / path
        try:
            if ".." in file.parts or not file.resolve().is_relative_to(self.root.resolve()):
                return None
            content = read_file(file, FILE_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError):
            return None
        front = _FRONT.match(content)
        since = _UPDATED.search(front[1]) if front else None
        return on_one_line(_HEADING.sub("", content[front.end() if front else 0 :])), since[1] if since else ""

    def remove(self, path: str) -> None:
        """A file, what brv has made of it, and the folders that hold nothing else."""
        file = self.root / path
        for one in (file, *(file.with_name(file.stem + ending) for ending in DERIVED)):
            one.unlink(missing_ok=True)
        for folder in file.parents:
            for name in GENERATED:
                (folder / name).unlink(missing_ok=True)
            if folder == self.root:
                break
            with suppress(OSError):
                folder.rmdir()


class Ledger:
    """Which files of a tree came of which entry. What is changed while one is told is of that one; what is changed at
    another time, since brv also works by itself, is of all. What goes meanwhile has gone into what is changed."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        kept = read_object(tree.ledger)
        self._seen: dict[str, int] = kept.get("seen", {})
        self._files: dict[str, list[str]] = kept.get("files", {})
        self.begun: dict[str, int] = kept.get("begun", {})
        """Since when, in ms, what is not known to have come to an end."""
        self._settle(list(self.begun) or list(self._files))

    def begin(self, key: str) -> None:
        self._files.setdefault(key, [])
        self.begun.setdefault(key, time.time_ns() // 1_000_000)
        self._save()

    def finish(self, key: str) -> None:
        self._files.setdefault(key, [])
        self._settle([key])
        self.begun.pop(key, None)
        self._save()

    def files_of(self, key: str) -> Sequence[str]:
        return self._files.get(key, ())

    def take_out(self, key: str) -> None:
        """A file that came of several goes as a whole."""
        gone = set(self._files.pop(key, ()))
        for path in gone:
            self.tree.remove(path)
            self._seen.pop(path, None)
        self._files = {other: [path for path in files if path not in gone] for other, files in self._files.items()}
        self.begun.pop(key, None)
        self._save()

    def _settle(self, keys: Iterable[str]) -> None:
        now = self.tree.marks()
        changed = {path for path, mark in now.items() if self._seen.get(path) != mark}
        gone = {*self._seen} - {*now}
        for key, files in self._files.items():
            gained = changed if key in keys or not gone.isdisjoint(files) else set()
            self._files[key] = sorted(gained | {*files} - gone)
        if changed or gone:
            self._seen = now
            self._save()

    def _save(self) -> None:
        self.tree.ledger.parent.mkdir(mode=0o700, exist_ok=True)
        kept = {"seen": self._seen, "files": self._files, "begun": self.begun}
        replace_file(self.tree.ledger, json.dumps(kept).encode())


def read_object(file: Path) -> dict[str, Any]:
    """An object that a file holds; an empty one for what is none."""
    with suppress(OSError, ValueError):
        if isinstance(found := json.loads(file.read_bytes()), dict):
            return found
    return {}
