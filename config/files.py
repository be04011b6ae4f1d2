"""Writes files so that a crash leaves the old one or the new one, and tells whether others can; sets options in
mneme.toml, where all else stays, and reads those of a memory service, with secrets from the environment.
"""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import FiniteFloat, TypeAdapter, ValidationError

_MARK = ".half"
Value = str | int | float | bool
RESERVED = ("enabled", "mode", "sync_every_turns")
"""Keys of every service's table, or once so."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+")


def replace_file(path: Path, content: bytes) -> None:
    """Replaces a file atomically and durably; a link stays one. Raises OSError, and leaves nothing behind."""
    path = Path(os.path.realpath(path))
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_MARK)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_file(path: Path, limit_bytes: int) -> bytes:
    """Never through a link. Raises ValueError, with a clause, for what is no file or too long, OSError."""
    # What is no file may be waited for in vain.
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no file")
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise ValueError(f"it is over {limit_bytes:,} bytes long")
    return content


def others_can_write(path: Path) -> str:
    """A sentence on who else than root and this user can exchange what a program says; empty where nobody can."""
    real, own = path.resolve(), os.geteuid()
    for place in (path.parent, real.parent, real):
        found = place.stat()
        remedies = [f"chmod go-w {place}"] if found.st_mode & 0o022 else []
        remedies += [f"chown {own} {place}"] if found.st_uid not in (0, own) else []
        if remedies:
            return (
                f"{place} can be written by others on this machine, and a plugin may do all that Mneme may, so it is "
                f"not run: look at what it says, then `{'; '.join(remedies)}`."
            )
    return ""


def leftovers(path: Path) -> Iterator[Path]:
    """Half-written files of processes that were killed."""
    path = Path(os.path.realpath(path))
    yield from path.parent.glob(f".{path.name}.*{_MARK}")


def keep_options(file: Path, table: Sequence[str], options: Mapping[str, Value]) -> None:
    """Sets `options` in the table of this dotted name; all else stays. Raises ValueError, with what to write by hand,
    where a part of the name is no table; OSError."""
    # It takes longer to load than most commands take, and few set an option.
    import tomlkit

    def with_options(document: tomlkit.TOMLDocument) -> str:
        place: Any = document
        for number, name in enumerate(table, 1):
            inner = place.setdefault(name, tomlkit.table(is_super_table=number < len(table)))
            if not isinstance(inner, MutableMapping):
                raise TypeError(f"{name} is no table")
            place = inner
        place.update(options)
        return tomlkit.dumps(document)

    file = file.resolve()
    try:
        text = with_options(tomlkit.parse(file.read_text(encoding="utf-8-sig") if file.exists() else ""))
    except (tomlkit.exceptions.TOMLKitError, TypeError) as error:
        raise ValueError(
            f"{file.name} is laid out in a way that I do not want to touch. Write this into it yourself:\n"
            + with_options(tomlkit.document()).strip()
        ) from error
    replace_file(file, text.encode())


@dataclasses.dataclass(frozen=True, slots=True)
class Secret:
    """An option from an environment variable, whose name stands in mneme.toml; kept out of every repr."""

    value: str = dataclasses.field(repr=False)


_KINDS: Mapping[type[Any], tuple[str, TypeAdapter[Any]]] = {
    str: ("a text", TypeAdapter(str)),
    int: ("a whole number", TypeAdapter(int)),
    float: ("a number", TypeAdapter(FiniteFloat)),
    bool: ("true or false", TypeAdapter(bool)),
    Secret: ("the name of the environment variable that holds it", TypeAdapter(str)),
}


class OptionForm:
    """What may be written into each option of a service. Raises TypeError for what is no dataclass of str, int, float,
    bool and `Secret`."""

    def __init__(self, options: type[Any] | None) -> None:
        if options is not None and not dataclasses.is_dataclass(options):
            raise TypeError("its options are no dataclass")
        self._options = options
        self.fields = {one.name: one for one in dataclasses.fields(options)} if options else {}
        self._kinds = get_type_hints(options) if options else {}
        missing = dataclasses.MISSING
        self.required = [name for name, one in self.fields.items() if one.default is one.default_factory is missing]
        self.asked = {name: one.default for name, one in self.fields.items() if one.metadata.get("ask")}
        """Asked for although there is a default."""
        if odd := [name for name in self.fields if self._kinds[name] not in _KINDS or name in RESERVED]:
            raise TypeError(f"its option {odd[0]} is reserved, or neither str, int, float, bool nor Secret")

    def question(self, name: str) -> str:
        about = str(self.fields[name].metadata.get("help", "")).rstrip(".")
        return f"{name}: {about + ', ' if about else ''}{_KINDS[self._kinds[name]][0]}"

    def read(self, name: str, given: object) -> Value:
        """The value for mneme.toml. Raises ValueError with what to write instead."""
        if name not in self.fields:
            raise ValueError(f"There is no option {name}; there are {', '.join(self.fields) or 'none'}.")
        about, adapter = _KINDS[self._kinds[name]]
        if self._kinds[name] is Secret and not _VARIABLE.fullmatch(str(given).strip()):
            raise ValueError(f"{name} should be {about}, such as MY_MEMORY_KEY; the secret itself stays there.")
        try:
            value: Value = adapter.validate_python(given)
        except ValidationError as error:
            raise ValueError(f"{name} should be {about}.") from error
        return value.strip() if isinstance(value, str) else value

    def filled(self, table: Mapping[str, Any], variables: Mapping[str, str]) -> Any:
        """Options from a table of mneme.toml, secrets from `variables`. Raises ValueError with all that is wrong."""
        wrong = [f"{name} is missing" for name in self.required if name not in table]
        values: dict[str, Any] = {}
        for name, given in table.items():
            try:
                values[name] = self.read(name, given)
                if self._kinds[name] is Secret:
                    values[name] = Secret(variables[values[name]])
            except ValueError as error:
                wrong.append(str(error).rstrip("."))
            except KeyError:
                wrong.append(f"{name}: the environment variable {values[name]} is not set")
        if wrong:
            raise ValueError("; ".join(wrong))
        return None if self._options is None else self._options(**values)
