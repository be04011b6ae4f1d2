"""Translate statements from SQLite's SQL to PostgreSQL's.

The store writes SQL that both engines understand, and this module has one rule for each remaining
difference. Statements are constants, so each one is translated only once.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

LIST_SUFFIX = "__list"
"""The suffix of a parameter that has the items of a JSON list."""
MISSING_SUFFIX = "__missing"
"""The suffix of a parameter that says whether the parameter without the suffix is NULL."""

_TOKEN = re.compile(
    r"""
    (?P<kept>'(?:[^']|'')*' | "[^"]*" | --[^\n]* | ::)
    | (?P<name>:[a-z_]\w*)
    | (?P<mark>\?)
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Matches the parts of a statement that need care: quoted texts, which stay unchanged, and
parameters."""
_IN_LIST = re.compile(
    r"\b(?P<no>NOT )?IN \(SELECT value FROM json_each\(:(?P<name>\w+)\)\)", re.IGNORECASE
)
_IS_NULL = re.compile(r"(?<![\w:]):(?P<name>[a-z_]\w*) IS (?P<no>NOT )?NULL\b", re.IGNORECASE)
_SOURCE = r"(?:\w+(?:\([^()]*\))?(?:\s+AS\s+\w+)?)"
_CROSS_JOIN_ON = re.compile(rf"\bCROSS\s+JOIN(\s+{_SOURCE}\s+ON\b)")
"""SQLite reads the tables of a CROSS JOIN in their order. PostgreSQL chooses the order itself."""
_IN_LIMITED = re.compile(
    r"\bON (\w+\.id) IN \((\s*SELECT (?:(?!\bLIMIT\b).)*LIMIT :\w+)\)", re.DOTALL
)
"""A join with the first rows of a list. PostgreSQL finds rows by their ids only if the ids are an
array."""
_IS_VALUE = re.compile(r"\bIS (NOT )?(?=:\w|\(|'|\w+\.\w)(?!NULL\b)")
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (_IN_LIMITED, r"ON \1 = ANY(ARRAY(\2))"),
    (_CROSS_JOIN_ON, r"JOIN\1"),
    (re.compile(r"\bINDEXED\s+BY\s+\w+"), ""),
    (re.compile(r"\bLIMIT -1\b"), "LIMIT ALL"),
    # A negative limit means no limit in SQLite, but is an error in PostgreSQL.
    (re.compile(r"\bLIMIT (:\w+)"), r"LIMIT NULLIF(GREATEST(\1, -1), -1)"),
    (re.compile(r"(?<=\bAS )INTEGER(?=\))"), "bigint"),
    (re.compile(r"(?<=\bAS )REAL(?=\))"), "double precision"),
)
_GLOB = re.compile(r"\b(?P<no>NOT )?GLOB '(?P<pattern>(?:[^']|'')*)'")
_GLOB_PART = re.compile(r"\*|\?|\[[^\]]*\]|[^*?\[]+")
_EXTREME = re.compile(r"\b(MIN|MAX)\(")
_EXTREMES = {"MIN": "LEAST", "MAX": "GREATEST"}
_INSERT_OR_IGNORE = re.compile(r"\bINSERT OR IGNORE INTO\b", re.IGNORECASE)
_RETURNING = re.compile(r"\s*\bRETURNING\b", re.IGNORECASE)
_INSERT_MESSAGE = re.compile(r"\s*INSERT INTO messages\b", re.IGNORECASE)
_REPLACE_META = re.compile(r"\s*REPLACE INTO state_meta\b", re.IGNORECASE)


class Translated(NamedTuple):
    """A statement in PostgreSQL's SQL, with parameters such as ``%(name)s``."""

    sql: str
    # The parameters with a JSON list. The items are bound under the name with `LIST_SUFFIX`.
    lists: frozenset[str]
    # The parameters that the statement compares with NULL. The server must know the type of a
    # parameter before it has a value, so the results of the comparison are bound with
    # `MISSING_SUFFIX`.
    nullable: frozenset[str]
    # Whether a RETURNING clause was added that returns the inserted row's id.
    returns_id: bool


@lru_cache(maxsize=2_000)
def translate(statement: str) -> Translated:
    """Translate a statement from SQLite's SQL to PostgreSQL's."""
    lists: set[str] = set()
    nullable: set[str] = set()

    def write_list(match: re.Match[str]) -> str:
        lists.add(match["name"])
        comparison = "<> ALL" if match["no"] else "= ANY"
        return f"{comparison}(:{match['name']}{LIST_SUFFIX})"

    def write_missing(match: re.Match[str]) -> str:
        nullable.add(match["name"])
        return f"{match['no'] or ''}:{match['name']}{MISSING_SUFFIX}"

    sql = _IN_LIST.sub(write_list, statement)
    sql = _IS_NULL.sub(write_missing, sql)
    for pattern, replacement in _RULES:
        sql = pattern.sub(replacement, sql)
    sql = _IS_VALUE.sub(_write_distinct, sql)
    sql = _GLOB.sub(_write_pattern, sql)
    sql = _write_extremes(sql)
    if _INSERT_OR_IGNORE.search(sql):
        sql = _append(_INSERT_OR_IGNORE.sub("INSERT INTO", sql), "ON CONFLICT DO NOTHING")
    if _REPLACE_META.match(sql):
        sql = _REPLACE_META.sub("INSERT INTO state_meta", sql)
        sql = _append(sql, "ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value")
    returns_id = bool(_INSERT_MESSAGE.match(sql)) and not _RETURNING.search(sql)
    if returns_id:
        sql = f"{sql.rstrip().rstrip(';')} RETURNING id"
    return Translated(_write_parameters(sql), frozenset(lists), frozenset(nullable), returns_id)


def _write_distinct(match: re.Match[str]) -> str:
    """Translate ``a IS :b``, which is true if both are NULL, to ``a IS NOT DISTINCT FROM :b``."""
    return "IS DISTINCT FROM " if match[1] else "IS NOT DISTINCT FROM "


def _write_pattern(match: re.Match[str]) -> str:
    """Translate a comparison with a pattern such as ``GLOB 'room:*'`` to a regular expression."""
    pattern = ""
    for part in _GLOB_PART.findall(match["pattern"]):
        if part == "*":
            pattern += ".*"
        elif part == "?":
            pattern += "."
        elif part.startswith("["):
            pattern += part.replace("\\", "\\\\")
        else:
            pattern += re.sub(r"[.+(){}|\\^$\]]", r"\\\g<0>", part)
    operator = "!~" if match["no"] else "~"
    return f"{operator} '^(?:{pattern})$'"


def _write_extremes(sql: str) -> str:
    """Translate MIN and MAX with several arguments to LEAST and GREATEST.

    PostgreSQL's MIN and MAX take only one argument.
    """
    for match in reversed(list(_EXTREME.finditer(sql))):
        if _has_several_arguments(sql, match.end()):
            sql = f"{sql[: match.start()]}{_EXTREMES[match[1]]}{sql[match.end() - 1 :]}"
    return sql


def _has_several_arguments(sql: str, start: int) -> bool:
    """Return whether a function call has several arguments. The arguments begin at `start`."""
    depth = 0
    is_quoted = False
    for character in sql[start:]:
        if character == "'":
            is_quoted = not is_quoted
        elif is_quoted:
            continue
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth < 0:
                return False
        elif character == "," and depth == 0:
            return True
    return False


def _append(sql: str, clause: str) -> str:
    """Add a clause to an INSERT statement, before its RETURNING clause."""
    body = sql.rstrip().rstrip(";")
    returning = _RETURNING.search(body)
    if returning is None:
        return f"{body} {clause}"
    return f"{body[: returning.start()]} {clause}{body[returning.start() :]}"


def _write_parameters(sql: str) -> str:
    """Translate ``:name`` to ``%(name)s`` and ``?`` to ``%s``, and double percent signs."""

    def write(match: re.Match[str]) -> str:
        if match["name"]:
            return f"%({match['name'][1:]})s"
        return "%s" if match["mark"] else match[0]

    return _TOKEN.sub(write, sql.replace("%", "%%"))
