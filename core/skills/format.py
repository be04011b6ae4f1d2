"""Parses the published Agent Skills format: SKILL.md with YAML front matter and Markdown.

The front matter is enclosed in two lines of three dashes. Mneme checks its size before parsing it.
Plain values are read as text, so the version 1.10 doesn't become the number 1.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.errors import Refused, Sentence
from core.guard.guard import find_mixed_word, inspect_name
from core.text.normalize import to_normal_form
from core.types import LOCAL_SCOPE, Scope

SKILL_FILE = "SKILL.md"
SCRIPTS = "scripts"
# The folders of a skill that may contain files.
FOLDERS = ("references", "templates", SCRIPTS, "assets")
NAME_CHARS = 64
DESCRIPTION_CHARS = 1024
# How many parsed front matters are cached, so that unchanged files aren't parsed again.
MAX_CACHED_SKILLS = 2_000

# Words with single hyphens between them: "tidy-inbox".
_NAME = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
# A line of dashes, the front matter, and another line of dashes.
_FRONT_MATTER = re.compile(
    r"---[ \t]*\n(?P<front>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
# A line with a file pattern but without the quotes that YAML requires: "globs: *.py",
# "- {a,b}.py".
_UNQUOTED_PATTERN = re.compile(
    r"(?m)^([A-Za-z][\w-]*:|[ \t]*-)[ \t]+(\*[^\w\n][^\n]*|\{[^{}\n]*\}[^\s,}][^\n]*)$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill: its front matter, its files and its usage."""

    name: str
    description: str
    category: str = ""
    # The values of the front matter, by key.
    front: Mapping[Any, Any] = field(default_factory=dict)
    folder: Path = Path()
    # The size in bytes of each file, by its path below `folder`.
    files: Mapping[str, int] = field(default_factory=dict)
    changed_at: datetime | None = None
    scope: Scope = LOCAL_SCOPE
    # Whether Mneme may change the skill. Skills in the folders listed in `skills.folders` are
    # read-only.
    is_own: bool = True
    uses: int = 0
    # The time of the last use.
    used_at: datetime | None = None
    is_disabled: bool = False
    # Whether a person has pinned the skill. Then the assistant never changes it without a tap.
    is_pinned: bool = False

    @property
    def needs_shell(self) -> bool:
        """Whether the skill has scripts or asks for the tool Bash, which Mneme doesn't have."""
        has_scripts = any(path.startswith(f"{SCRIPTS}/") for path in self.files)
        return has_scripts or "bash" in str(self.front.get("allowed-tools")).lower()

    def front_value(self, key: str) -> str:
        """Return a value of the front matter as text, or "" if there is no such value.

        The items of a list are joined with commas. The value may also be in the table `metadata`,
        or in a table inside `metadata` that belongs to a program.
        """
        for table in self._tables():
            if key in table:
                value = table[key]
                texts = map(_to_text, value if isinstance(value, list) else [value])
                return ", ".join(filter(None, texts))
        return ""

    def _tables(self) -> Iterator[Mapping[Any, Any]]:
        """Yield the front matter, its table `metadata`, and the tables inside `metadata`."""
        yield self.front
        metadata = self.front.get("metadata")
        if isinstance(metadata, dict):
            yield metadata
            for value in metadata.values():
                if isinstance(value, dict):
                    yield value

    def matches_words(self, words: str) -> bool:
        """Return whether the name, description, category and tags together contain all words."""
        parts = (self.name, self.description, self.category, self.front_value("tags"))
        text = " ".join(parts).casefold()
        return all(word in text for word in words.casefold().split())


def is_name(name: str) -> bool:
    """Return whether a skill may have this name.

    A name must not look like another name, so it can't contain capitals, hidden characters or
    letters of two alphabets.
    """
    if name != to_normal_form("NFKC", name).lower() or name != inspect_name(name)[0]:
        return False
    if len(name) > NAME_CHARS or not _NAME.fullmatch(name):
        return False
    return find_mixed_word(name) is None


def parse_skill(text: str, place: str, folder: str | None = None) -> Skill:
    """Parse a SKILL.md, and return a skill with its name, description and front matter.

    `place` is the name of the file in errors. If `folder`, the name of the file's folder, is given,
    the skill must have the same name. Raises Refused with the line of the problem if the file is
    invalid.
    """
    match = _FRONT_MATTER.match(text)
    if match is None:
        if text.startswith("---\n"):
            raise Refused("skill_front_not_closed", place=place)
        raise Refused("skill_front_not_opened", place=place)
    return _parse_front_matter(match["front"], place, folder)


@lru_cache(MAX_CACHED_SKILLS)
def _parse_front_matter(front: str, place: str, folder: str | None) -> Skill:
    """Return the skill that the front matter describes. Raises Refused for the first problem."""
    # Imported here because the YAML parser takes a while to load.
    from core.skills.yaml_mapping import parse_yaml

    values, lines = parse_yaml(front, place)
    name = _to_text(values.get("name"))
    description = _to_text(values.get("description"))

    def check(key: str, is_valid: bool, problem: str, **values: object) -> None:
        """Raise Refused with the line of the key unless the value is valid."""
        if not is_valid:
            clause = Sentence(problem, values)
            raise Refused("skill_line", place=place, line=lines.get(key, 1), problem=clause)

    check("name", bool(name), "skill_no_name")
    check("description", bool(description), "skill_no_description")
    label = inspect_name(name)[0]
    check("name", is_name(name), "skill_name_invalid", name=label, limit=NAME_CHARS)
    check(
        "name",
        folder is None or folder == name,
        "skill_name_differs",
        name=name,
        folder=folder,
    )
    check(
        "description",
        len(description) <= DESCRIPTION_CHARS,
        "skill_description_too_long",
        chars=len(description),
        limit=DESCRIPTION_CHARS,
    )
    return Skill(name=name, description=description, front=values)


def front_matter(text: str, place: str) -> tuple[Mapping[Any, Any], str]:
    """Return the values of the front matter of a text, and the text below the front matter.

    Without front matter, there are no values. File patterns such as *.py needn't be quoted,
    although YAML requires quotes. Raises Refused if the front matter is invalid.
    """
    match = _FRONT_MATTER.match(text)
    if match is None or not match["front"].strip():
        return {}, split_front_matter(text)[1]
    # Imported here because the YAML parser takes a while to load.
    from core.skills.yaml_mapping import parse_yaml

    front = _UNQUOTED_PATTERN.sub(
        lambda pattern: f"{pattern[1]} {json.dumps(pattern[2], ensure_ascii=False)}",
        match["front"],
    )
    return parse_yaml(front, place)[0], text[match.end() :]


def split_front_matter(text: str) -> tuple[str, str]:
    """Split a text into its front matter, including the lines of dashes, and the text below.

    Without front matter, the first part is empty.
    """
    match = _FRONT_MATTER.match(text)
    end = match.end() if match else 0
    return text[:end], text[end:]


def _to_text(value: object) -> str:
    """Return a text on one line, or an empty string if the value isn't a text."""
    if not isinstance(value, str):
        return ""
    return " ".join(value.encode("utf-8", "replace").decode().split())
