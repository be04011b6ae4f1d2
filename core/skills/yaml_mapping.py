"""Parses the YAML of a front matter: its values as text, and the line of each key.

This is a separate module because the YAML parser takes a while to load, and few commands need it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from core.errors import Refused

FRONT_MATTER_CHARS = 16_000
MAX_DEPTH = 8

# A value with a colon and without the quotes that YAML requires for it: "description: Sorts mail:
# invoices first".
_UNQUOTED_VALUE = re.compile(
    r"(?m)^(?P<key>[A-Za-z][\w-]*):[ \t]+(?P<value>[^\s\"'\[{|>&*!#%@`][^#\n]*:[ \t][^#\n]*)$"
)


def parse_yaml(front: str, place: str) -> tuple[Mapping[Any, Any], Mapping[str, int]]:
    """Return the values of a front matter, and the line number of each key in the file.

    A value with a colon needn't be quoted, although YAML requires quotes. Raises Refused with the
    line of the problem if the front matter is invalid.
    """
    try:
        if len(front) > FRONT_MATTER_CHARS:
            raise yaml.MarkedYAMLError(
                problem=f"the front matter is longer than {FRONT_MATTER_CHARS:,} characters"
            )
        quoted_front = _UNQUOTED_VALUE.sub(
            lambda match: f"{match['key']}: {json.dumps(match['value'], ensure_ascii=False)}", front
        )
        loader = _TextLoader(quoted_front)
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise yaml.MarkedYAMLError(
                problem="the front matter has no lines such as `name: tidy-inbox`"
            )
        lines = _locate_keys(node)
        return loader.construct_mapping(node, deep=True), lines
    except yaml.YAMLError as error:
        # Errors of the YAML parser have a mark with a line. Errors of the YAML reader have only a
        # position.
        mark = getattr(error, "problem_mark", None)
        line = mark.line if mark else front.count("\n", 0, getattr(error, "position", 0))
        problem = getattr(error, "problem", None) or "it has an invisible character"
        # `line` counts from 0, and the first line of the file has the dashes.
        raise Refused(f"{place}, line {line + 2}: {problem}.") from error


def _locate_keys(node: yaml.MappingNode) -> Mapping[str, int]:
    """Return the line number of each key in the file. Raises MarkedYAMLError for a repeated key."""
    lines: dict[str, int] = {}
    for key, _ in node.value:
        if str(key.value) in lines:
            raise yaml.MarkedYAMLError(
                problem=f"{key.value} stands there twice", problem_mark=key.start_mark
            )
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
        problem = ""
        if self._depth > MAX_DEPTH:
            problem = "it is nested too deeply"
        elif isinstance(event, yaml.AliasEvent):
            problem = "an alias (*) is not read here"
        if problem:
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node
