"""The published Agent Skills format: a folder with a SKILL.md, whose front matter is YAML between two lines of three
dashes, with Markdown below it; files of any kind beside it.

A file is bounded before it is read and front matter before it is parsed; values are taken as the texts that stand
there. What cannot be read is Refused with its file and line. Nothing here writes or runs anything.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from config.files import read_file
from core.errors import Refused
from core.types import LOCAL, Scope

SKILL_FILE = "SKILL.md"
SCRIPTS = "scripts"
FOLDERS = ("references", "templates", SCRIPTS, "assets")
NAME_CHARS, DESCRIPTION_CHARS = 64, 1024
FILE_BYTES = 200_000
"""A longer file is not read."""
FRONT_CHARS, DEPTH = 16_000, 8
"""Of the front matter: a person reads it in the list."""
READ_AGAIN = 2_000
"""So many files are not parsed again while they stay as they are."""

_NAME = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_FRONT = re.compile(r"---[ \t]*\n(?P<front>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_UNQUOTED = re.compile(r"(?m)^(?P<key>[A-Za-z][\w-]*):[ \t]+(?P<value>[^\s\"'\[{|>&*!#%@`\n][^\n]*:[ \t][^\n]*)$")
_KNOWN = ("name", "description", "version", "tags", "platforms", "category")


NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """What the front matter says, with all `other` keys (license, compatibility, allowed-tools …) as they stand there,
    and where it lies: a `folder` of `scope`, which can be changed if it `is_own`. `used_at`: last, of `uses`."""

    name: str
    description: str
    version: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    other: Mapping[str, Any]
    folder: Path = Path()
    scope: Scope = LOCAL
    is_own: bool = False
    has_scripts: bool = False
    changed_at: datetime = NEVER
    uses: int = 0
    used_at: datetime | None = None
    is_disabled: bool = False

    def has(self, words: str) -> bool:
        """Whether all of these words stand in what the list shows."""
        shown = " ".join((self.name, self.description, self.category, *self.tags)).casefold()
        return all(word in shown for word in words.casefold().split())


def is_name(name: str) -> bool:
    is_plain = name == unicodedata.normalize("NFKC", name).lower()
    return len(name) <= NAME_CHARS and is_plain and _NAME.fullmatch(name) is not None


def parse(text: str, place: str, folder: str | None = None) -> Skill:
    """The skill of a SKILL.md, known to people by its `place`, in a folder of this name, if in any yet. Raises
    Refused."""
    front, _ = split(text)
    if not front:
        opened = text.startswith("---\n")
        missing = "no line of three dashes ends it" if opened else "it does not begin with a line of three dashes"
        raise Refused(f"{place}, line 1: there is no front matter with a name and a description: {missing}.")
    front = front.partition("\n")[2].rstrip().removesuffix("---")
    if len(front) > FRONT_CHARS:
        raise Refused(f"{place}, line 2: the front matter is longer than {FRONT_CHARS:,} characters.")
    values, lines = _read(front, place)

    def wrong(key: str, problem: str) -> Refused:
        return Refused(f"{place}, line {lines.get(key, 1)}: {problem}.")

    name, description = (values.get(key) for key in ("name", "description"))
    for key, value in (("name", name), ("description", description)):
        if not isinstance(value, str) or not value.strip():
            raise wrong(key, f"it has no {key}" if value in (None, "") else f"its {key} is no text")
    name, description = str(name).strip(), " ".join(str(description).split())
    if not is_name(name):
        form = f"small letters, digits and single hyphens, at most {NAME_CHARS}, such as tidy-inbox"
        raise wrong("name", f"“{name[:80]}” is no name for a skill: {form}")
    if folder is not None and unicodedata.normalize("NFC", folder) != unicodedata.normalize("NFC", name):
        raise wrong("name", f"it is named {name}, but its folder is {folder}: both must be the same")
    if len(description) > DESCRIPTION_CHARS:
        most = f"{DESCRIPTION_CHARS:,} are the most"
        raise wrong("description", f"its description has {len(description):,} characters; {most}")
    return Skill(
        name=name,
        description=description,
        version=_text(_known(values, "version")),
        category=_text(_known(values, "category")),
        tags=_items(_known(values, "tags"), ","),
        platforms=_items(_known(values, "platforms"), r"[,\s]+"),
        other={key: value for key, value in values.items() if key not in _KNOWN},
    )


def split(text: str) -> tuple[str, str]:
    """The front matter with its lines of dashes, empty where there is none, and what stands below it."""
    found = _FRONT.match(text)
    return (found[0], text[found.end() :]) if found else ("", text)


def read_text(path: Path, place: str) -> str:
    """A file as text with plain line ends, never through a link. Raises Refused with its `place`, OSError."""
    try:
        return decoded(read_file(path, FILE_BYTES), place)
    except ValueError as error:
        raise Refused(f"{place} is not read: {error}.") from error


def decoded(content: bytes, place: str) -> str:
    """UTF-8, with or without a byte order mark. Raises Refused."""
    try:
        return re.sub(r"\r\n?", "\n", content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Refused(
            f"{place}, line {line}: it is not UTF-8 text (byte {error.start + 1:,}). Save it as UTF-8."
        ) from error


def read_skill(folder: Path, place: str) -> Skill:
    """The skill in a folder. Raises Refused, OSError."""
    path = folder / SKILL_FILE
    found = path.lstat()
    return _parsed(path, place, (found.st_mtime_ns, found.st_size, found.st_ino))


@lru_cache(READ_AGAIN)
def _parsed(path: Path, place: str, state: tuple[int, ...]) -> Skill:
    return parse(read_text(path, place), place, path.parent.name)


class _Loader(yaml.SafeLoader):
    """Takes plain values as texts (version 1.10 is not 1.1), and nothing that can grow: no alias, tag or depth."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self._depth += 1
        problem = "an alias (*) is not read here" if isinstance(event, yaml.AliasEvent) else ""
        problem = problem or ("a tag (!) is not read here" if getattr(event, "tag", None) else "")
        problem = problem or ("it is nested too deeply" if self._depth > DEPTH else "")
        if problem:
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _read(front: str, place: str) -> tuple[Mapping[str, Any], Mapping[str, int]]:
    """The values, and the lines of the file that their keys stand in. A value with a colon, which YAML wants in quotes
    and many write without, is taken as it was meant. Raises Refused."""
    try:
        return _composed(front, place)
    except yaml.YAMLError as error:
        meant = _UNQUOTED.sub(lambda found: f"{found['key']}: {json.dumps(found['value'].rstrip())}", front)
        try:
            if meant != front:
                return _composed(meant, place)
        except yaml.YAMLError:
            pass
        line, problem = 1, "this cannot be read"
        if isinstance(error, yaml.MarkedYAMLError):
            mark = error.problem_mark or error.context_mark
            line, problem = (mark.line + 2 if mark else 2), error.problem or problem
        elif isinstance(error, yaml.reader.ReaderError):
            line, problem = front.count("\n", 0, error.position) + 2, "it has a character that nobody can see"
        raise Refused(f"{place}, line {line}: {problem}.") from error


def _composed(front: str, place: str) -> tuple[Mapping[str, Any], Mapping[str, int]]:
    loader = _Loader(front)
    node = loader.get_single_node()
    if not isinstance(node, yaml.MappingNode):
        raise Refused(f"{place}, line 2: the front matter has no lines such as `name: tidy-inbox`.")
    lines = {str(key.value): key.start_mark.line + 2 for key, _ in node.value}
    return {str(key): value for key, value in loader.construct_mapping(node, deep=True).items()}, lines


def _known(values: Mapping[str, Any], key: str) -> object:
    """A value outside of `metadata`, else in it, else in a table of a program's own in it."""
    metadata = values.get("metadata")
    inside = metadata if isinstance(metadata, dict) else {}
    tables = (table for table in inside.values() if isinstance(table, dict))
    return next((table[key] for table in (values, inside, *tables) if key in table), None)


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _items(value: object, between: str) -> tuple[str, ...]:
    given = re.split(between, value) if isinstance(value, str) else value if isinstance(value, list) else ()
    return tuple(filter(None, (one.strip() for one in given if isinstance(one, str))))
