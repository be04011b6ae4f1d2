"""Reads and changes secrets.env in the home: keys and tokens, one ``NAME=value`` per line.

Only Mneme's user can read the file (mode 0600). Environment variables override it, so a service
manager or a container can still set secrets in its own way. A change leaves comments and all other
lines unchanged.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from config.files import replace_file

SECRETS_FILE = "secrets.env"
# Private to the user: read and write for the owner of the file only.
_MODE = 0o600
_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")
_QUOTES = "\"'"


def read_secrets(file: Path) -> tuple[dict[str, str], list[str]]:
    """Return the variables of a secrets file, and a list of problems.

    Other users lose their access to the file. Problems name the line but never repeat its text,
    because it may be a secret. A missing file has no variables.
    """
    try:
        if not file.exists():
            return {}, []
        _make_private(file)
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        return {}, [f"{file.name}: isn't UTF-8 text; save it as UTF-8"]
    except OSError as error:
        return {}, [f"{file.name}: can't be read: {error.strerror}"]
    secrets: dict[str, str] = {}
    problems = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            problems.append(f"{file.name}: line {number} should be NAME=value, such as MY_KEY=abc")
        elif match[1] == "MNEME_HOME":
            problems.append(
                f"{file.name}: line {number} sets MNEME_HOME, but the file is inside of that home; "
                "set it in the environment"
            )
        else:
            secrets[match[1]] = _strip_quotes(match[2])
    return secrets, problems


def parse_variables(text: str) -> dict[str, str]:
    """Return the variables of a file of another program. Comments and other lines are skipped."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    matches = [match for line in lines if (match := _LINE.fullmatch(line))]
    return {match[1]: _strip_quotes(match[2]) for match in matches if match[2]}


def change_secrets(file: Path, changes: Mapping[str, str | None]) -> None:
    """Set variables in a secrets file. The value None removes a variable.

    The file is private from the moment it's created. Raises ValueError with a sentence if a value
    has several lines, and OSError if the file can't be written. The file is then unchanged.
    """
    for name, value in changes.items():
        if value is not None and (not value.strip() or len(value.splitlines()) != 1):
            raise ValueError(f"{name} should be one line of text that isn't empty.")
    text = file.read_text(encoding="utf-8-sig") if file.exists() else ""
    remaining = dict(changes)
    lines = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        name = match[1] if match and not line.lstrip().startswith("#") else ""
        if name not in changes:
            lines.append(line)
        elif name in remaining:
            value = remaining.pop(name)
            if value is not None:
                lines.append(_format_line(name, value))
    for name, value in remaining.items():
        if value is not None:
            lines.append(_format_line(name, value))
    content = "".join(f"{line}\n" for line in lines)
    # A new file is created with mode 0600; the mode of the temporary file stays after the rename.
    replace_file(file, content.encode())
    _make_private(file)


def _format_line(name: str, value: str) -> str:
    value = value.strip()
    is_quoted = value[0] in _QUOTES and value[-1] == value[0]
    return f'{name}="{value}"' if is_quoted else f"{name}={value}"


def _strip_quotes(value: str) -> str:
    """Remove a pair of quotes around a value."""
    if len(value) >= 2 and value[0] in _QUOTES and value[-1] == value[0]:
        return value[1:-1]
    return value


def _make_private(file: Path) -> None:
    """Remove other users' access to the file if this process's user owns it."""
    with contextlib.suppress(OSError):
        status = file.stat()
        if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) & 0o077:
            file.chmod(_MODE)
