"""Parses the YAML of a front matter: its values as text, and the line of each key.

This is a separate module because the YAML parser takes a while to load, and few commands need it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from core.errors import Refused, Sentence

FRONT_MATTER_CHARS = 16_000
MAX_DEPTH = 8

# A value with a colon and without the quotes that YAML requires for it: "description: Sorts mail:
# invoices first".
_UNQUOTED_VALUE = re.compile(
    r"(?m)^(?P<key>[A-Za-z][\w-]*):[ \t]+(?P<value>[^\s\"'\[{|>&*!#%@`][^#\n]*:[ \t][^#\n]*)$"
)


class _FrontMatterError(yaml.MarkedYAMLError):
    """Raised if a front matter is valid YAML, but breaks one of our rules."""

    def __init__(self, clause: str, mark: Any = None, **values: object) -> None:
        super().__init__(problem=clause, problem_mark=mark)
        self.sentence = Sentence(clause, values)


def _describe_problem(error: yaml.YAMLError) -> Sentence:
    """Return a clause about an error. The problems of the YAML parser are in English."""
    if isinstance(error, _FrontMatterError):
        return error.sentence
    return Sentence(getattr(error, "problem", None) or "skill_front_invisible")


def parse_yaml(front: str, place: str) -> tuple[Mapping[Any, Any], Mapping[str, int]]:
    """Return the values of a front matter, and the line number of each key in the file.

    A value with a colon needn't be quoted, although YAML requires quotes. Raises Refused with the
    line of the problem if the front matter is invalid.
    """
    try:
        if len(front) > FRONT_MATTER_CHARS:
            raise _FrontMatterError("skill_front_too_long", limit=FRONT_MATTER_CHARS)
        quoted_front = _UNQUOTED_VALUE.sub(
            lambda match: f"{match['key']}: {json.dumps(match['value'], ensure_ascii=False)}", front
        )
        loader = _TextLoader(quoted_front)
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise _FrontMatterError("skill_front_empty")
        lines = _locate_keys(node)
        return loader.construct_mapping(node, deep=True), lines
    except yaml.YAMLError as error:
        # Errors of the YAML parser have a mark with a line. Errors of the YAML reader have only a
        # position.
        mark = getattr(error, "problem_mark", None)
        line = mark.line if mark else front.count("\n", 0, getattr(error, "position", 0))
        problem = _describe_problem(error)
        # `line` counts from 0, and the first line of the file has the dashes.
        raise Refused("skill_line", place=place, line=line + 2, problem=problem) from error


def _locate_keys(node: yaml.MappingNode) -> Mapping[str, int]:
    """Return the line number of each key in the file. Raises MarkedYAMLError for a repeated key."""
    lines: dict[str, int] = {}
    for key, _ in node.value:
        if str(key.value) in lines:
            raise _FrontMatterError("skill_key_twice", key.start_mark, key=str(key.value))
        # YAML counts from 0, and the first line of the file has the dashes.
        lines[str(key.value)] = key.start_mark.line + 2
    return lines


class _TextLoader(yaml.BaseLoader):
    """A YAML loader that reads plain values as text.

    It rejects aliases and deep nesting, because a short document with them could use all memory.
    """

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose the next node.

        Raises MarkedYAMLError for aliases and for nesting that is too deep.
        """
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _FrontMatterError("skill_front_too_deep", event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            raise _FrontMatterError("skill_front_alias", event.start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node
