"""Reads and replaces files safely, and sets the options of services in mneme.toml.

If a crash interrupts the replacement of a file, the file has either its old or its new content.
Setting an option leaves the rest of mneme.toml unchanged. A dataclass describes the options of a
service. Its secrets are read from secrets.env or the environment.
"""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import tempfile
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from pydantic import FiniteFloat, TypeAdapter, ValidationError

from config.operating_system import sync_file

if TYPE_CHECKING:
    import tomlkit

OptionValue = str | int | float | bool
# Keys that a service's table in mneme.toml has now or had in an earlier version.
RESERVED = ("enabled", "mode", "sync_every_turns")
_TEMPORARY_SUFFIX = ".half"
# The name of an environment variable.
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+")


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file atomically and durably. If `path` is a symbolic link, its target is replaced.

    Raises OSError if the file can't be replaced. The temporary file is then removed.
    """
    path = Path(os.path.realpath(path))
    try:
        descriptor, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=_TEMPORARY_SUFFIX
        )
    except OSError as error:
        # The error names the file itself, because people don't know the temporary one.
        error.filename = str(path)
        raise
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            sync_file(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_path(path.parent)


def sync_path(path: Path) -> None:
    """Wait until a file, or the directory entries of a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def read_file(path: Path, limit_bytes: int) -> bytes:
    """Return the content of a regular file. Symbolic links aren't followed.

    Raises ValueError, with a clause, if the file isn't a regular file or if it's too long, and
    OSError if it can't be read.
    """
    # Without O_NONBLOCK, opening a pipe would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it isn't a regular file")
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise ValueError(f"it is over {limit_bytes:,} bytes long")
    return content


class UnsafePermissions(NamedTuple):
    """A path that other users can write to, and the command that ends that."""

    path: Path
    command: str


def find_unsafe_permissions(path: Path) -> UnsafePermissions | None:
    """Return the first path of a plugin that other users can write to.

    The plugin file, the file that it links to, and their folders are checked. Other users are all
    users except root and the user of this process. Returns None if the permissions are safe.
    """
    real_path = path.resolve()
    own_id = os.geteuid()
    for place in (path.parent, real_path.parent, real_path):
        status = place.stat()
        remedies = []
        if status.st_mode & 0o022:
            remedies.append(f"chmod go-w {quote(str(place))}")
        if status.st_uid not in (0, own_id):
            remedies.append(f"chown {own_id} {quote(str(place))}")
        if remedies:
            return UnsafePermissions(place, "; ".join(remedies))
    return None


def find_leftovers(path: Path) -> Iterator[Path]:
    """Yield the temporary files that killed processes left while replacing this file."""
    path = Path(os.path.realpath(path))
    yield from path.parent.glob(f".{path.name}.*{_TEMPORARY_SUFFIX}")


def set_options(file: Path, table: Sequence[str], options: Mapping[str, OptionValue]) -> None:
    """Set options in one table of a TOML file. Everything else in the file stays unchanged.

    `table` has the parts of the table's dotted name. Raises OSError if the file can't be read or
    written. Raises ValueError, with the lines to add by hand, if the file can't be parsed.
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
            f"{file.name} can't be changed automatically. Add these lines yourself:\n{lines}"
        ) from error
    replace_file(file, changed_text.encode())


def remove_option(text: str, path: Sequence[str]) -> str:
    """Return the text of a TOML file without one option. The rest is unchanged.

    Tables that become empty are removed, too. Raises KeyError if the option isn't set.
    """
    import tomlkit

    document = tomlkit.parse(text)
    tables: list[Any] = [document]
    for name in path[:-1]:
        inner = tables[-1][name]
        if not isinstance(inner, MutableMapping):
            raise KeyError(name)
        tables.append(inner)
    del tables[-1][path[-1]]
    for depth in range(len(path) - 2, -1, -1):
        if not tables[depth + 1]:
            del tables[depth][path[depth]]
    return tomlkit.dumps(document)


def add_options(text: str, table: Sequence[str], options: Mapping[str, Any]) -> str:
    """Return the text of a TOML file with options set in one table. The rest is unchanged.

    Raises ValueError if a part of the table's name isn't a table.
    """
    import tomlkit

    try:
        return _add_options(tomlkit.parse(text), table, options)
    except (tomlkit.exceptions.TOMLKitError, TypeError) as error:
        raise ValueError(str(error)) from error


def _add_options(
    document: tomlkit.TOMLDocument, table: Sequence[str], options: Mapping[str, Any]
) -> str:
    """Return the text of the document with these options.

    Raises TypeError if a part of the table's name isn't a table.
    """
    import tomlkit

    current: Any = document
    last_index = len(table) - 1
    for index, name in enumerate(table):
        new_table = tomlkit.table(is_super_table=index < last_index)
        inner = current.setdefault(name, new_table)
        if not isinstance(inner, MutableMapping):
            raise TypeError(f"{name} isn't a table")
        current = inner
    current.update(options)
    return tomlkit.dumps(document)


@dataclasses.dataclass(frozen=True, slots=True)
class Secret:
    """An option whose value comes from an environment variable that mneme.toml names."""

    # Left out of the repr.
    value: str = dataclasses.field(repr=False)


class OptionProblem(NamedTuple):
    """A problem with an option: a key of `core/errors.toml`, and the values of its sentence."""

    key: str
    values: Mapping[str, str]


class OptionsError(ValueError):
    """Raised if options of a service are missing or invalid."""

    def __init__(self, problems: Sequence[OptionProblem]) -> None:
        super().__init__("; ".join(f"{problem.key} {problem.values}" for problem in problems))
        self.problems = problems


@dataclasses.dataclass(frozen=True, slots=True)
class _OptionType:
    # What the option takes, such as "whole_number".
    kind: str
    # The key in `core/errors.toml` of the problem with a value of another type.
    problem_key: str
    adapter: TypeAdapter[Any]


_OPTION_TYPES: Mapping[type[Any], _OptionType] = {
    str: _OptionType("text", "option_needs_text", TypeAdapter(str)),
    int: _OptionType("whole_number", "option_needs_whole_number", TypeAdapter(int)),
    float: _OptionType("number", "option_needs_number", TypeAdapter(FiniteFloat)),
    bool: _OptionType("switch", "option_needs_switch", TypeAdapter(bool)),
    Secret: _OptionType(
        "secret",
        "option_names_variable",
        TypeAdapter(str),
    ),
}


class OptionForm:
    """Describes and checks the options of a service, which are the fields of a dataclass.

    `options` is None for a service without options. Raises TypeError if `options` isn't a
    dataclass, or if a field isn't a str, int, float, bool or `Secret`.
    """

    def __init__(self, options: type[Any] | None) -> None:
        if options is not None and not dataclasses.is_dataclass(options):
            raise TypeError("its options aren't a dataclass")
        self._options = options
        self.fields: dict[str, dataclasses.Field[Any]] = {}
        self._types: dict[str, Any] = {}
        if options is not None:
            self.fields = {field.name: field for field in dataclasses.fields(options)}
            self._types = get_type_hints(options)
        # Options without a default.
        self.required_names: list[str] = []
        # The defaults of options that aren't required, but that a person is asked for.
        self.prompted_defaults: dict[str, Any] = {}
        for name, field in self.fields.items():
            if self._types[name] not in _OPTION_TYPES or name in RESERVED:
                raise TypeError(
                    f"its option {name} is reserved, or neither str, int, float, bool nor Secret"
                )
            has_default = field.default is not dataclasses.MISSING
            has_default_factory = field.default_factory is not dataclasses.MISSING
            if not has_default and not has_default_factory:
                self.required_names.append(name)
            if field.metadata.get("ask"):
                self.prompted_defaults[name] = field.default

    def sort_prompts(self, names: Collection[str]) -> Sequence[str]:
        """Return the names in the order in which a person is asked for the options.

        Secrets come after the other options. An option that needs another one comes right after it.
        """
        ordered: list[str] = []

        def add(name: str) -> None:
            if name in names:
                ordered.append(name)
            for other in by_kind:
                if self._split_need(other)[0] == name:
                    add(other)

        by_kind = sorted(self.fields, key=self.is_secret)
        for name in by_kind:
            if not self._split_need(name)[0]:
                add(name)
        return ordered

    def is_needed(self, name: str, values: Mapping[str, object]) -> bool:
        """Return whether an option has an effect with these values of other options.

        Options that aren't in `values` have their defaults.
        """
        other, expected = self._split_need(name)
        if not other:
            return True
        value = str(values.get(other, self.prompted_defaults.get(other, "")))
        return value == expected if expected else bool(value)

    def _split_need(self, name: str) -> tuple[str, str]:
        """Return the option that an option needs and the value it must have, or empty texts."""
        other, _, expected = self.fields[name].metadata.get("needs", "").partition("=")
        return other, expected

    def is_secret(self, name: str) -> bool:
        return self._types[name] is Secret

    def describe(self, name: str) -> str:
        """Return the English purpose of an option, or "" if the form has none."""
        return str(self.fields[name].metadata.get("help", "")).rstrip(".")

    def kind(self, name: str) -> str:
        """Return what an option takes: "text", "whole_number", "number", "switch" or "secret"."""
        return _OPTION_TYPES[self._types[name]].kind

    def parse_value(self, name: str, value: object) -> OptionValue:
        """Return a value in the form for mneme.toml.

        Raises OptionsError if the value is invalid.
        """
        if name not in self.fields:
            if not self.fields:
                raise OptionsError([OptionProblem("option_no_options", {"name": name})])
            values = {"name": name, "names": ", ".join(self.fields)}
            raise OptionsError([OptionProblem("option_unknown", values)])
        option_type = _OPTION_TYPES[self._types[name]]
        text = str(value).strip()
        if self._types[name] is Secret and not _VARIABLE.fullmatch(text):
            raise OptionsError([OptionProblem(option_type.problem_key, {"name": name})])
        is_web_address = self.fields[name].metadata.get("is_web_address")
        if is_web_address and text and not text.startswith(("http://", "https://")):
            raise OptionsError([OptionProblem("option_needs_address", {"name": name})])
        try:
            parsed_value: OptionValue = option_type.adapter.validate_python(value)
        except ValidationError as error:
            problem = OptionProblem(option_type.problem_key, {"name": name})
            raise OptionsError([problem]) from error
        return parsed_value.strip() if isinstance(parsed_value, str) else parsed_value

    def build_options(self, table: Mapping[str, Any], variables: Mapping[str, str]) -> Any:
        """Create the dataclass from a table of mneme.toml, with the secrets from `variables`.

        Raises OptionsError with all problems.
        """
        problems = [
            OptionProblem("option_is_missing", {"name": name})
            for name in self.required_names
            if name not in table
        ]
        options: dict[str, Any] = {}
        for name, value in table.items():
            try:
                options[name] = self.parse_value(name, value)
                if self._types[name] is Secret:
                    options[name] = Secret(variables[options[name]])
            except OptionsError as error:
                problems += error.problems
            except KeyError:
                # `variables` doesn't have the variable that the option names.
                variable = options[name]
                values = {"name": name, "variable": variable}
                problems.append(OptionProblem("option_variable_unset", values))
        if problems:
            raise OptionsError(problems)
        return None if self._options is None else self._options(**options)
