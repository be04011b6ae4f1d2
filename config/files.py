"""Safe file access, and the options that are written to mneme.toml.

Files are replaced so that a crash leaves either the old or the new content. Options are set without
changing the rest of mneme.toml. The options of a memory service are checked against its dataclass,
and its secrets are taken from the environment.
"""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import FiniteFloat, TypeAdapter, ValidationError

if TYPE_CHECKING:
    import tomlkit

OptionValue = str | int | float | bool
# Keys that the table of every service has or once had.
RESERVED = ("enabled", "mode", "sync_every_turns")
_TEMPORARY_SUFFIX = ".half"
# The name of an environment variable.
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+")


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file atomically and durably. A symbolic link is followed and stays a link.

    If it raises OSError, it leaves no temporary file behind.
    """
    path = Path(os.path.realpath(path))
    descriptor, name = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name}.", suffix=_TEMPORARY_SUFFIX
    )
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
    """Read a regular file without following a symbolic link.

    Raises OSError, and ValueError with a clause if it isn't a regular file or too long.
    """
    # Without O_NONBLOCK, opening a pipe would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no file")
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise ValueError(f"it is over {limit_bytes:,} bytes long")
    return content


def describe_unsafe_permissions(path: Path) -> str:
    """Say which path of a plugin other users can replace, and how to protect it.

    Other users are all except root and the user of this process. Returns an empty text if the
    permissions are safe.
    """
    real_path = path.resolve()
    own_id = os.geteuid()
    for place in (path.parent, real_path.parent, real_path):
        status = place.stat()
        remedies = []
        if status.st_mode & 0o022:
            remedies.append(f"chmod go-w {place}")
        if status.st_uid not in (0, own_id):
            remedies.append(f"chown {own_id} {place}")
        if remedies:
            return (
                f"{place} can be written by others on this machine, and a plugin may do all that "
                "Mneme may, so it is not run: look at what it says, then "
                f"`{'; '.join(remedies)}`."
            )
    return ""


def find_leftovers(path: Path) -> Iterator[Path]:
    """Yield the temporary files that killed processes left while replacing this file."""
    path = Path(os.path.realpath(path))
    yield from path.parent.glob(f".{path.name}.*{_TEMPORARY_SUFFIX}")


def set_options(file: Path, table: Sequence[str], options: Mapping[str, OptionValue]) -> None:
    """Set options in one table of a TOML file and leave everything else as it is.

    `table` has the parts of the table's dotted name. Raises OSError, and ValueError with the lines
    to write by hand if the file can't be changed.
    """
    # Imported here because loading tomlkit takes longer than most commands, and few set an option.
    import tomlkit

    file = file.resolve()
    try:
        text = file.read_text(encoding="utf-8-sig") if file.exists() else ""
        changed_text = _add_options(tomlkit.parse(text), table, options)
    except (tomlkit.exceptions.TOMLKitError, TypeError) as error:
        lines = _add_options(tomlkit.document(), table, options).strip()
        raise ValueError(
            f"{file.name} is laid out in a way that I do not want to touch. "
            f"Write this into it yourself:\n{lines}"
        ) from error
    replace_file(file, changed_text.encode())


def _add_options(
    document: tomlkit.TOMLDocument, table: Sequence[str], options: Mapping[str, OptionValue]
) -> str:
    """Return the document with these options. Raises TypeError if a name isn't a table."""
    import tomlkit

    current: Any = document
    last_index = len(table) - 1
    for index, name in enumerate(table):
        new_table = tomlkit.table(is_super_table=index < last_index)
        inner = current.setdefault(name, new_table)
        if not isinstance(inner, MutableMapping):
            raise TypeError(f"{name} is no table")
        current = inner
    current.update(options)
    return tomlkit.dumps(document)


@dataclasses.dataclass(frozen=True, slots=True)
class Secret:
    """An option whose value comes from an environment variable that mneme.toml names."""

    # Excluded from every repr.
    value: str = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class _OptionType:
    # Tells a person what to write.
    description: str
    adapter: TypeAdapter[Any]


_OPTION_TYPES: Mapping[type[Any], _OptionType] = {
    str: _OptionType("a text", TypeAdapter(str)),
    int: _OptionType("a whole number", TypeAdapter(int)),
    float: _OptionType("a number", TypeAdapter(FiniteFloat)),
    bool: _OptionType("true or false", TypeAdapter(bool)),
    Secret: _OptionType("the name of the environment variable that holds it", TypeAdapter(str)),
}


class OptionForm:
    """The options of a service, read from a dataclass.

    Raises TypeError unless it is a dataclass whose fields are str, int, float, bool or `Secret`.
    None stands for a service without options.
    """

    def __init__(self, options: type[Any] | None) -> None:
        if options is not None and not dataclasses.is_dataclass(options):
            raise TypeError("its options are no dataclass")
        self._options = options
        self.fields: dict[str, dataclasses.Field[Any]] = {}
        self._types: dict[str, Any] = {}
        if options is not None:
            self.fields = {field.name: field for field in dataclasses.fields(options)}
            self._types = get_type_hints(options)
        # Options without a default.
        self.required_names: list[str] = []
        # The defaults of options that a person is asked for nevertheless.
        self.prompted_defaults: dict[str, Any] = {}
        for name, field in self.fields.items():
            if self._types[name] not in _OPTION_TYPES or name in RESERVED:
                raise TypeError(
                    f"its option {name} is reserved, or neither str, int, float, bool nor Secret"
                )
            if field.default is field.default_factory is dataclasses.MISSING:
                self.required_names.append(name)
            if field.metadata.get("ask"):
                self.prompted_defaults[name] = field.default

    def question(self, name: str) -> str:
        """Return the text that asks a person for an option: its help and what to write."""
        help_text = str(self.fields[name].metadata.get("help", "")).rstrip(".")
        description = _OPTION_TYPES[self._types[name]].description
        if help_text:
            description = f"{help_text}, {description}"
        return f"{name}: {description}"

    def parse_value(self, name: str, value: object) -> OptionValue:
        """Return a value as mneme.toml keeps it. Raises ValueError that says what to write."""
        if name not in self.fields:
            raise ValueError(
                f"There is no option {name}; there are {', '.join(self.fields) or 'none'}."
            )
        option_type = _OPTION_TYPES[self._types[name]]
        if self._types[name] is Secret and not _VARIABLE.fullmatch(str(value).strip()):
            raise ValueError(
                f"{name} should be {option_type.description}, such as MY_MEMORY_KEY; "
                "the secret itself stays there."
            )
        try:
            parsed_value: OptionValue = option_type.adapter.validate_python(value)
        except ValidationError as error:
            raise ValueError(f"{name} should be {option_type.description}.") from error
        return parsed_value.strip() if isinstance(parsed_value, str) else parsed_value

    def build_options(self, table: Mapping[str, Any], variables: Mapping[str, str]) -> Any:
        """Make the dataclass from a table of mneme.toml, with secrets from `variables`.

        Raises ValueError that lists everything that is wrong.
        """
        problems = [f"{name} is missing" for name in self.required_names if name not in table]
        options: dict[str, Any] = {}
        for name, value in table.items():
            try:
                options[name] = self.parse_value(name, value)
                if self._types[name] is Secret:
                    options[name] = Secret(variables[options[name]])
            except ValueError as error:
                problems.append(str(error).rstrip("."))
            except KeyError:
                problems.append(f"{name}: the environment variable {options[name]} is not set")
        if problems:
            raise ValueError("; ".join(problems))
        return None if self._options is None else self._options(**options)
