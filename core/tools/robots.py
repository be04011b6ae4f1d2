"""Parses robots.txt, in which a host says which pages programs may read (RFC 9309).

The `urllib.robotparser` of Python knows no wildcards and obeys the first matching rule instead of
the longest one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

# Encoded in the same way everywhere, so that "%7E" matches "~". The slash and the signs of patterns
# are kept apart from their encoded forms.
_ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_NAME = re.compile(r"[A-Za-z_-]+")
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class _Rule:
    """A line such as ``Disallow: /private/*.pdf$``."""

    # The parts of the path between the wildcards "*".
    parts: tuple[str, ...]
    # The path must end with the last part.
    is_anchored: bool
    allows: bool
    # The length of the pattern. The longest matching rule decides.
    length: int

    def matches(self, path: str) -> bool:
        """Return whether a path matches. The time grows only linearly with its length."""
        first, *others = self.parts
        if not path.startswith(first):
            return False
        if not others:
            return not self.is_anchored or path == first
        position = len(first)
        *middle, last = others
        for part in middle:
            index = path.find(part, position)
            if index < 0:
                return False
            position = index + len(part)
        if self.is_anchored:
            return path.endswith(last) and len(path) - len(last) >= position
        return path.find(last, position) >= 0


@dataclass(frozen=True, slots=True)
class RobotRules:
    """The rules of a host for one program."""

    rules: Sequence[_Rule] = ()

    def allows(self, path: str) -> bool:
        """Return whether a program may read a path, which may have a query.

        The longest matching rule decides. Of two rules with the same length, "Allow" does.
        """
        path = _normalize(path)
        if path == "/robots.txt":
            return True
        matches = [rule for rule in self.rules if rule.matches(path)]
        if not matches:
            return True
        return max(matches, key=lambda rule: (rule.length, rule.allows)).allows


def parse_robots(text: str, robot: str) -> RobotRules:
    """Return the rules of a robots.txt for a program.

    They are the rules of all groups that name the program or, if there are none, of all groups for
    "*".
    """
    own_rules: list[_Rule] = []
    common_rules: list[_Rule] = []
    has_own_group = False
    names: list[str] = []
    is_in_head = False
    for line in _LINE_END.split(text.removeprefix("\ufeff")):
        key, _, value = line.partition("#")[0].partition(":")
        key, value = key.strip().casefold(), value.strip()
        if key == "user-agent":
            names = [*names, value] if is_in_head else [value]
            is_in_head = True
            has_own_group = has_own_group or _names_robot(value, robot)
        elif key in ("allow", "disallow"):
            is_in_head = False
            if value:
                rule = _parse_rule(value, allows=key == "allow")
                if any(_names_robot(name, robot) for name in names):
                    own_rules.append(rule)
                if "*" in names:
                    common_rules.append(rule)
    return RobotRules(own_rules if has_own_group else common_rules)


def _names_robot(value: str, robot: str) -> bool:
    """Return whether a line "User-agent" names the program, maybe with a version."""
    match = _NAME.match(value)
    return match is not None and match[0].casefold() == robot.casefold()


def _parse_rule(value: str, *, allows: bool) -> _Rule:
    is_anchored = value.endswith("$")
    pattern = _normalize(value.removesuffix("$"))
    if not pattern.startswith(("/", "*")):
        pattern = f"/{pattern}"
    return _Rule(tuple(pattern.split("*")), is_anchored, allows, len(pattern) + is_anchored)


def _normalize(path: str) -> str:
    """Return a path with the same encoding of each character."""
    return quote(_ENCODED.sub(_decode_unreserved, path), safe="/%?&=*$:@!,;+'()~#[]")


def _decode_unreserved(match: re.Match[str]) -> str:
    """Decode letters, digits and signs that need no encoding. Write the others in capitals."""
    characters = (chr(byte) for byte in unquote_to_bytes(match[0]))
    return "".join(
        character if _UNRESERVED.fullmatch(character) else f"%{ord(character):02X}"
        for character in characters
    )
