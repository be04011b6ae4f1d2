"""Reads the language files. This module imports nothing of core, so that `--help` is fast.

Other modules use `gateway/texts/catalog.py`.
"""

from __future__ import annotations

import errno
import os
import re
import threading
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from config.operating_system import LANGUAGE_VARIABLES
from config.operating_system import find_shell_language as find_language_of
from config.variables import select_variables
from gateway.installation import find_repair_command

FOLDER = files("gateway.texts")
ENGLISH_CODE = "en"
# Patterns for the values in texts that are recognized by their English form. Other values may be
# any text.
_REASON_VALUES = {
    "code": r"\S+",
    "file": r"\S+",
    "host": r"\S+",
    "root": r"\S+",
    "seconds": r"\d+",
    "server": r"[^:]+|Telegram \(\S+\)",
    "number": r"\d+",
    "status": r"\d+",
    "variable": r"[A-Z_]+",
}
# The first text of a file is the language's own name.
NAME_KEY = "LANGUAGE_NAME"
_NAME = re.compile(rf'^{NAME_KEY} = "([^"\n]+)"$', re.MULTILINE)
_NAME_WITHIN_CHARS = 2000
# The header of a table, such as "[commands.help]". The group is the name of the outermost table.
_HEADER = re.compile(rb"^\[(\w+)[.\]]", re.MULTILINE)


@cache
def load_names() -> Mapping[str, str]:
    """Return each language that has a file, with its name in that language. English is first."""
    names = {}
    for path in FOLDER.iterdir():
        if path.name.endswith(".toml"):
            with path.open(encoding="utf-8") as file:
                match = _NAME.search(file.read(_NAME_WITHIN_CHARS))
            code = path.name.removesuffix(".toml")
            names[code] = match[1] if match is not None else code
    return dict(sorted(names.items(), key=lambda item: (item[0] != ENGLISH_CODE, item[0])))


class LanguageFile(Mapping[str, Any]):
    """The content of a language's file. Each table is parsed when it's used for the first time.

    A whole file takes about 40 ms, and a process needs a small part of it. The texts before the
    first table count as one table.
    """

    def __init__(self, source: bytes) -> None:
        # Several threads may use a language.
        self._lock = threading.Lock()
        self._parsed: dict[str, Any] = {}
        headers = list(_HEADER.finditer(source))
        ends = [*(header.start() for header in headers), len(source)]
        # The lines before the first table, until they are parsed.
        self._head = source[: ends[0]]
        # The lines of each table and of the tables in it, until they are parsed.
        self._tables: dict[str, bytes] = {}
        for header, end in zip(headers, ends[1:], strict=True):
            name = header[1].decode()
            self._tables[name] = self._tables.get(name, b"") + source[header.start() : end]

    def __getitem__(self, name: str) -> Any:
        if name not in self._parsed:
            with self._lock:
                if name in self._tables:
                    self._parsed |= tomllib.loads(self._tables.pop(name).decode())
                else:
                    self._parse_head()
        return self._parsed[name]

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            self._parse_head()
            return iter([*self._parsed, *self._tables])

    def __len__(self) -> int:
        with self._lock:
            self._parse_head()
            return len(self._parsed) + len(self._tables)

    def _parse_head(self) -> None:
        self._parsed |= tomllib.loads(self._head.decode())
        self._head = b""


class FilledTexts(Mapping[str, Any]):
    """The texts of a language by their keys. English texts fill the gaps.

    Texts and tables are read when they are used for the first time.
    """

    def __init__(self, file: Mapping[str, Any], english: Mapping[str, Any]) -> None:
        self._file = file
        self._english = english
        self._filled: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if key not in self._filled:
            own = {key: self._file[key]} if key in self._file else {}
            english = {key: self._english[key]} if key in self._english else {}
            self._filled |= _fill_gaps(own, english)
        return self._filled[key]

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._english), **dict.fromkeys(self._file)})

    def __len__(self) -> int:
        return len(self._english.keys() | self._file.keys())


def _fill_gaps(texts: Mapping[str, Any], english: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts, with English ones for missing keys, but never for missing plural forms."""
    filled = dict(english)
    for key, text in texts.items():
        is_table = isinstance(text, dict) and isinstance(english.get(key), dict)
        filled[key] = _fill_gaps(text, english[key]) if is_table and "other" not in text else text
    return filled


def read_file(language: str) -> Mapping[str, Any]:
    """Read a language's file. If it doesn't exist, the result is empty."""
    path = FOLDER.joinpath(f"{language}.toml")
    return LanguageFile(path.read_bytes() if path.is_file() else b"")


@cache
def load_file(language: str) -> Mapping[str, Any]:
    """Return the content of a language's file and keep it in memory. See `read_file`."""
    return read_file(language)


@cache
def load_option_reasons(language: str) -> Mapping[str, str]:
    """Return the purpose of each option of the settings, by its dotted path.

    For English, the result is empty, because these sentences are comments in config/default.toml.
    """
    path = FOLDER.joinpath("options", f"{language}.toml")
    sections = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    return dict(_flatten(sections))


@cache
def load_service_options(language: str, service: str) -> Mapping[str, str]:
    """Return the purpose of each option of a memory service in a language, by the option's name.

    For English and for plugins, the result is empty, because the options contain these texts.
    """
    path = FOLDER.joinpath("services", f"{language}.toml")
    tables = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    return {**tables["shared"], **tables[service]} if service in tables else {}


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def match_language(code: str) -> str | None:
    """Return Mneme's language for a code such as ``de-AT``, ``pt_PT`` or ``zh-hans``, or None."""
    main = code.replace("_", "-").split("-")[0].lower()
    for language in load_names():
        if main == language.split("-")[0]:
            return language
    return None


def find_shell_language() -> str:
    """Return the language of the shell, or English if Mneme has no texts in that language."""
    return match_language(find_language_of(select_variables(LANGUAGE_VARIABLES))) or ENGLISH_CODE


def load_shell_table(name: str) -> Mapping[str, Any]:
    """Return a table in the language of the shell. English texts fill its gaps."""
    return _TableWithGaps(load_file(find_shell_language()).get(name, {}), (name,))


def describe_unreadable_files(problems: Sequence[str]) -> str:
    """Return a sentence with the data files that can't be read, and the command that repairs them.

    If the texts themselves can't be read, only the files and the command are named. `problems` are
    those of `list_unreadable_files`.
    """
    names, command = ", ".join(problems), find_repair_command(problems)
    try:
        table = load_shell_table("CLI")
        named = table["unreadable_files"].format(names=names)
        return f"{named} {table['install_again'].format(command=command)}"
    except (OSError, ValueError, KeyError):
        return f"{names}: {command}"


class _TableWithGaps(dict[str, Any]):
    """A table of a language that reads the English file only for a key that it lacks."""

    def __init__(self, table: Mapping[str, Any], path: tuple[str, ...]) -> None:
        super().__init__(table)
        # The names of the table and of those around it, from the outermost.
        self._path = path
        for key, value in table.items():
            if isinstance(value, dict):
                self[key] = _TableWithGaps(value, (*path, key))

    def __missing__(self, key: str) -> Any:
        english: Any = load_file(ENGLISH_CODE)
        for name in self._path:
            english = english[name]
        return english[key]

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default


def word_system_error(reason: str, words: Mapping[str, str]) -> str:
    """Return an explanation of the operating system, such as "File exists", in other words.

    `words` has the translations by the names of errors, such as "EEXIST". A text without a
    translation isn't changed.
    """
    return words.get(_load_system_errors().get(reason, ""), reason)


@cache
def _load_system_errors() -> Mapping[str, str]:
    """Return the names of errors, by the English text that this operating system has for them."""
    return {os.strerror(number): name for number, name in errno.errorcode.items()}


@cache
def list_patterns(table: str) -> list[tuple[str, re.Pattern[str]]]:
    """Return a pattern for each English text of a table by its key, in the order of the file."""
    texts = load_file(ENGLISH_CODE)[table]
    return [(key, compile_template(english)) for key, english in texts.items()]


@cache
def compile_template(english: str) -> re.Pattern[str]:
    """Return a pattern that matches an English text with any values.

    Each value is a group with the name of its placeholder.
    """
    pattern = re.escape(english)
    for name in re.findall(r"\{(\w+)\}", english):
        value = _REASON_VALUES.get(name, ".*")
        pattern = pattern.replace(rf"\{{{name}\}}", f"(?P<{name}>{value})", 1)
    return re.compile(pattern, re.DOTALL)
