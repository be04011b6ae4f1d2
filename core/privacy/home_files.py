"""Erases texts from files in Mneme's home folder, and writes the journal of erasures.

Texts are erased from the terminal history and the log. Other files are only searched for a phrase.
The journal is next to the home. It lists all erasures, so that a restored backup can repeat the
erasures made after it.
"""

from __future__ import annotations

import contextlib
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

from config.operating_system import sync_file
from core.privacy.quotes import QuoteMatcher
from core.text.normalize import to_normal_form
from core.types import LOCAL_SCOPE, Scope

HISTORY_FILE = "terminal_history"
LOG_FILE = "mneme.log"
READ_BYTES = 1 << 20
# Suffixes of files that people write. These files are also searched for the words of a query.
_TEXT_SUFFIXES = (".md", ".py", ".toml")
# An entry of the history begins with a blank line, followed by a line such as
# "# 2026-05-08 14:05:00".
_ENTRY_START = re.compile(r"(?m)^(?=\n# )")


class HomeFiles:
    """Searches and erases the files of an existing home folder."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._journal = home.with_name(f"{home.name}.erasures")

    def list_typed_entries(self, scopes: frozenset[Scope]) -> list[str]:
        """Return the texts that were typed in the terminal.

        The list is empty if the terminal's scope isn't among `scopes`.
        """
        if LOCAL_SCOPE not in scopes:
            return []
        texts = [_typed_text(entry) for entry in self._read_history()]
        return [text for text in texts if text]

    def erase(self, scopes: frozenset[Scope], matcher: QuoteMatcher) -> list[str]:
        """Erase matching lines from the log, and matching entries from the terminal history.

        The history is changed only if the terminal's scope is among `scopes`. Returns the names of
        the files that couldn't be written.
        """
        is_owner = LOCAL_SCOPE in scopes
        contents: dict[Path, str] = {}
        for path in self._home.glob(f"{LOG_FILE}*"):
            lines = _read_text(path).splitlines(keepends=True)
            contents[path] = "".join(
                line for line in lines if not _is_log_line_erased(line, matcher, is_owner)
            )
        if is_owner:
            remaining_entries = []
            for entry in self._read_history():
                text = _typed_text(entry)
                if not (matcher.has_words(text) or matcher.has_copy(text)):
                    remaining_entries.append(entry)
            contents[self._home / HISTORY_FILE] = "".join(remaining_entries)

        unwritable_names = []
        for path, content in sorted(contents.items()):
            if not _try_rewrite(path, content):
                unwritable_names.append(path.name)
        return unwritable_names

    def find_files_containing(self, phrase: str, has_words: Callable[[str], bool]) -> list[str]:
        """Return the paths, relative to the home, of the files that contain the phrase.

        The bytes of all files are searched for the phrase in its usual encodings. A file that
        people write is also returned if `has_words` is true for one of its paragraphs. If the
        write-ahead log of a database matches, the path of the database is returned.
        """
        encodings = encode_phrase(phrase)
        if not encodings:
            return []
        installed_programs = self._home / "engines" / "hindsight" / "environment"
        names = []
        for path in sorted(self._home.rglob("*")):
            if path.is_relative_to(installed_programs):
                continue
            if _file_contains(path, encodings, has_words):
                name = _public_path(path.relative_to(self._home))
                names.append(name.removesuffix("-wal"))
        # Without duplicates, in the same order.
        return list(dict.fromkeys(names))

    def append_to_journal(self, line: str) -> bool:
        """Append a line to the journal, and wait until the line is on the disk.

        Returns False if the journal can't be written.
        """
        with contextlib.suppress(OSError):
            self._journal.touch(0o600)
            with self._journal.open("a", encoding="utf-8") as file:
                # A full disk may have cut off the last line. The first line break ends that line.
                file.write(f"\n{line}\n")
                file.flush()
                sync_file(file.fileno())
            return True
        return False

    def read_journal(self) -> str:
        return _read_text(self._journal)

    def _read_history(self) -> list[str]:
        """Return the entries of the terminal history, which prompt_toolkit writes.

        An entry consists of a blank line, a line with "#" and the time, and the lines of the text,
        each after a "+".
        """
        return _ENTRY_START.split(_read_text(self._home / HISTORY_FILE))


def encode_phrase(phrase: str) -> frozenset[bytes]:
    """Return the byte strings in which a file may contain a phrase.

    The encodings cover upper and lower case, the Unicode normal forms, and the ways in which text,
    JSON, HTML and URLs write the phrase. Their ASCII letters are lower case, so convert the bytes
    of a file with `bytes.lower` before the search.
    """
    phrase = phrase.strip()
    variants = set()
    for change_case in (str, str.casefold, str.lower, str.upper, str.title):
        variant = change_case(phrase)
        if variant:
            variants |= {
                variant,
                to_normal_form("NFC", variant),
                to_normal_form("NFD", variant),
            }
    encodings = set()
    for variant in variants:
        encodings |= {encode(variant) for encode in (str, html.escape, quote, quote_plus)}
        encodings.add(json.dumps(variant))
        encodings.add(variant.encode("ascii", "xmlcharrefreplace").decode())
    return frozenset(
        encoding.strip('"').encode("utf-8", "replace").lower() for encoding in encodings
    )


def _is_log_line_erased(line: str, matcher: QuoteMatcher, is_owner: bool) -> bool:
    """Return whether to erase a line of the log.

    A line is erased if it repeats a passage of the erased messages. If the owner asks, a line that
    contains the words is erased, too. For other people the words aren't enough, because an ordinary
    log line may contain a word by chance.
    """
    return matcher.has_passage(line) or (is_owner and matcher.has_words(line))


def _public_path(path: Path) -> str:
    """Return a path relative to the home as text, without the names of people's skills.

    For example, "memories/<scope>/skills/taxes/SKILL.md" becomes "memories/<scope>/skills".
    """
    is_in_skill = path.parts[:1] == ("memories",) and path.parts[2:3] == ("skills",)
    return "/".join(path.parts[:3] if is_in_skill else path.parts)


def _file_contains(
    path: Path, encodings: frozenset[bytes], has_words: Callable[[str], bool]
) -> bool:
    """Return whether a file contains one of the encodings.

    An encoding also matches inside a longer word, because a database doesn't separate its texts.
    For files that people write, the result is also True if `has_words` is true for a paragraph. The
    result is False if the file can't be read.
    """
    # The last bytes of a chunk are searched again with the next chunk, because a match may be cut.
    overlap_bytes = max(map(len, encodings))
    tail = b""
    with contextlib.suppress(OSError):
        # Reading a named pipe could block forever.
        if not path.is_file():
            return False
        with path.open("rb") as file:
            if path.suffix in _TEXT_SUFFIXES:
                paragraphs = _read_text(path).split("\n\n")
                if any(has_words(paragraph) for paragraph in paragraphs):
                    return True
            while chunk := file.read(READ_BYTES):
                tail = tail[-overlap_bytes:] + chunk.lower()
                if any(encoding in tail for encoding in encodings):
                    return True
    return False


def _typed_text(entry: str) -> str:
    """Return the typed text of an entry of the terminal history."""
    lines = entry.splitlines(keepends=True)
    return "".join(line[1:] for line in lines if line.startswith("+")).strip()


def _read_text(path: Path) -> str:
    """Return the content of a file, or an empty string if the file can't be read."""
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


def _try_rewrite(path: Path, text: str) -> bool:
    """Replace the content of a file with a shorter text. Returns False if that isn't possible.

    The file is overwritten in place, because another process may have opened it to append to it.
    """
    content = text.encode("utf-8", "replace")
    with contextlib.suppress(OSError):
        # If the size is the same, nothing was erased.
        if path.is_file() and path.stat().st_size != len(content):
            with path.open("r+b") as file:
                file.write(content)
                file.truncate()
                file.flush()
                sync_file(file.fileno())
        return True
    return False
