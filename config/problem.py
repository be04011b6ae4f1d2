"""What is wrong with a setting, in the words of somebody who edits TOML: ``dotted.path: sentence``.

Values are left out, because they may be secrets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_EXPECTED: Mapping[str, str] = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a number, neither nan nor inf",
    "string_type": "a text in quotes",
    "tuple_type": "a list in brackets",
    "missing": "there too",
}
"""What pydantic's kinds of error ask for, in the words of somebody who edits TOML."""


def problem(detail: Any, variables: Mapping[str, str]) -> str:
    """One pydantic finding as a line; `variables` names the environment variable of a field that has one."""
    first, *rest = detail["loc"]
    path = variables.get(first, first) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)
    kind = detail["type"]
    if kind == "extra_forbidden":
        return f"{path}: is not an option; config/default.toml has them all"
    if kind == "value_error":
        return f"{path}: {detail['ctx']['error']}"
    if kind in ("model_type", "model_attributes_type"):
        return f"{path}: should be a table, written [{path}]"
    if kind == "literal_error":
        listed = str(detail["ctx"]["expected"]).replace("'", '"')
        return f"{path}: should be {re.sub('True|False', lambda found: found[0].lower(), listed)}"
    expected = _EXPECTED.get(kind)
    return f"{path}: should be {expected}" if expected else f"{path}: {str(detail['msg']).removeprefix('Input ')}"
