"""The published Agent Skills format: a folder with a SKILL.md, whose front matter is YAML between two lines of three
dashes, with Markdown below it; files of any kind beside it. A skill is read from such a folder, written into one, and
taken out of a folder or zip archive from elsewhere.

A file is bounded before it is read and front matter before it is parsed; values are taken as the texts that stand
there. Everything is confined: a path is a plain one below its skill, and no link is followed. Nothing is ever run. All
functions block: they are called in a thread.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import unicodedata
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from config.files import leftovers, read_file, replace_file
from core.errors import Refused
from core.guard.guard import marked_name, mixed_word
from core.types import LOCAL, Scope

SKILL_FILE, SCRIPTS = "SKILL.md", "scripts"
FOLDERS = ("references", "templates", SCRIPTS, "assets")
NAME_CHARS, DESCRIPTION_CHARS, FRONT_CHARS, DEPTH = 64, 1024, 16_000, 8
NAME_FORM = f"small letters of one alphabet, digits and single hyphens, at most {NAME_CHARS}, such as tidy-inbox"
LOOKED_AT = 1_000
"""Folders of one place, in the order of their names: nobody has a list of more to read. Of twice as many the front
matter is not parsed again while it stays as it is."""
FILE_BYTES, FILES_MOST, BYTES_MOST = 200_000, 200, 5_000_000
"""Of a text that is read; of one skill."""
SOURCE_FILES, SOURCE_BYTES = 2_000, 20_000_000
"""Of what is added, unpacked."""
REMOVED = ".removed"

_NAME = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_FRONT = re.compile(r"---[ \t]*\n(?P<front>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_UNQUOTED = re.compile(r"(?m)^(?P<key>[A-Za-z][\w-]*):[ \t]+(?P<value>[^\s\"'\[{|>&*!#%@`][^#\n]*:[ \t][^#\n]*)$")
_PATTERN = re.compile(r"(?m)^([A-Za-z][\w-]*:|[ \t]*-)[ \t]+(\*[^\w\n][^\n]*|\{[^{}\n]*\}[^\s,}][^\n]*)$")
_PART = r"(?!\.)[\w .()+,@&'~=-]{1,100}(?<![ .])"
_PATH = re.compile(rf"{_PART}(?:/{_PART}){{0,5}}")
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError)
"""Also of a password, and of a compression that is not known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """What the `front` matter says, all of it as it stands there, and where it lies: a `folder` of `scope`, which can
    be changed if it `is_own`, with these `files` and their bytes. `used_at`: last, of `uses`."""

    name: str
    description: str
    category: str = ""
    front: Mapping[Any, Any] = field(default_factory=dict)
    folder: Path = Path()
    files: Mapping[str, int] = field(default_factory=dict)
    changed_at: datetime | None = None
    scope: Scope = LOCAL
    is_own: bool = True
    uses: int = 0
    used_at: datetime | None = None
    is_disabled: bool = False

    @property
    def needs_shell(self) -> bool:
        has_scripts = any(path.startswith(f"{SCRIPTS}/") for path in self.files)
        return has_scripts or "bash" in str(self.front.get("allowed-tools")).lower()

    def known(self, key: str) -> str:
        """A value outside of `metadata`, else in it, else in a table of a program's own in it; a list with commas."""
        metadata = self.front.get("metadata")
        inner = metadata if isinstance(metadata, dict) else {}
        tables = (table for table in inner.values() if isinstance(table, dict))
        value = next((table[key] for table in (self.front, inner, *tables) if key in table), "")
        return ", ".join(filter(None, map(_text, value if isinstance(value, list) else [value])))

    def has(self, words: str) -> bool:
        """Whether all of these words stand in what the list shows."""
        shown = " ".join((self.name, self.description, self.category, self.known("tags"))).casefold()
        return all(word in shown for word in words.casefold().split())


def read(root: Path, title: str, scope: Scope, *, is_own: bool) -> Iterator[tuple[str, Skill | Refused]]:
    """The skills in the folders of a folder, or one deeper, in a folder that is their category, each behind its name,
    and what is wrong with one that is none. People know it as `title`. Clears away what a killed process has left."""
    for left in root.glob(f".*{REMOVED}") if is_own else ():
        shutil.rmtree(left, ignore_errors=True)
    candidates = _candidates(root)
    for folder in islice(candidates, LOOKED_AT):
        inside = folder.relative_to(root)
        try:
            skill = read_skill(folder, f"{title}/{inside.as_posix()}".encode("utf-8", "replace").decode())
            category = skill.known("category") or "".join(inside.parts[:-1])
            yield skill.name, replace(skill, category=category, scope=scope, is_own=is_own)
        except Refused as refusal:
            yield folder.name, refusal
    if next(candidates, None):
        yield f"{title}/", Refused(f"Of {title} only the first {LOOKED_AT:,} folders are looked at.")


def _candidates(root: Path) -> Iterator[Path]:
    """The folders and links in a folder; of a category, the skills in it."""
    for folder in _folders(root):
        below = [] if os.path.lexists(folder / SKILL_FILE) else _folders(folder)
        yield from [one for one in below if os.path.lexists(one / SKILL_FILE)] or [folder]


def _folders(folder: Path) -> list[Path]:
    """None behind a link."""
    with suppress(OSError), os.scandir(folder) as entries:
        shown = (one for one in entries if not one.name.startswith(".") and (one.is_dir() or one.is_symlink()))
        return sorted(Path(one.path) for one in shown if not folder.is_symlink())
    return []


def read_skill(folder: Path, place: str) -> Skill:
    """The skill in a folder, which people know by its `place`. Raises Refused."""
    text = text_of(folder, SKILL_FILE, place)
    if text is None:
        raise Refused(f"{place}: there is no {SKILL_FILE} in it.")
    skill = parse(text, f"{place}/{SKILL_FILE}", unicodedata.normalize("NFC", folder.name))
    with _told(f"{place} cannot be read"):
        changed_at = datetime.fromtimestamp((folder / SKILL_FILE).lstat().st_mtime, UTC)
    return replace(skill, folder=folder, files=files_of(folder), changed_at=changed_at)


@contextmanager
def _told(problem: str) -> Iterator[None]:
    """Raises Refused with what a file or an archive has against it."""
    try:
        yield
    except (*_DAMAGED, OSError) as error:
        raise Refused(f"{problem}: {getattr(error, 'strerror', None) or error}.") from error


def is_name(name: str) -> bool:
    """Whether a skill may be called so; nobody can take it for another name."""
    is_plain = name == unicodedata.normalize("NFKC", name).lower() == marked_name(name)[0]
    return is_plain and len(name) <= NAME_CHARS and bool(_NAME.fullmatch(name)) and mixed_word(name) is None


def parse(text: str, place: str, folder: str | None = None) -> Skill:
    """The skill of a SKILL.md that people know by its `place`; `folder`: the name of its folder. Raises Refused."""
    found = _FRONT.match(text)
    if found is None:
        missing = "second" if text.startswith("---\n") else "first"
        raise Refused(
            f"{place}, line 1: of the two lines of three dashes around front matter the {missing} is missing."
        )
    return _parsed(found["front"], place, folder)


@lru_cache(2 * LOOKED_AT)
def _parsed(front: str, place: str, folder: str | None) -> Skill:
    values, lines = _values(front, place)
    name, description = _text(values.get("name")), _text(values.get("description"))
    size = f"{len(description):,} characters, {DESCRIPTION_CHARS:,} are the most"
    for is_wrong, key, problem in (
        (not name, "name", "it has no name"),
        (not description, "description", "it has no description"),
        (not is_name(name), "name", f"“{marked_name(name)[0]}” is no name for a skill: {NAME_FORM}"),
        (folder not in (None, name), "name", f"it is named {name}, but its folder is {folder}: both must be the same"),
        (len(description) > DESCRIPTION_CHARS, "description", f"its description has {size}"),
    ):
        if is_wrong:
            raise Refused(f"{place}, line {lines.get(key, 1)}: {problem}.")
    return Skill(name=name, description=description, front=values)


def front_matter(text: str, place: str) -> tuple[Mapping[Any, Any], str]:
    """The values of a text's front matter, none where it is empty or not there, and what stands below it. A pattern of
    files, which begins as nothing in YAML does, is taken as it stands. Raises Refused."""
    found = _FRONT.match(text)
    if found is None or not found["front"].strip():
        return {}, split(text)[1]
    quoted = _PATTERN.sub(lambda one: f"{one[1]} {json.dumps(one[2], ensure_ascii=False)}", found["front"])
    return _values(quoted, place)[0], text[found.end() :]


def split(text: str) -> tuple[str, str]:
    """The front matter with its lines of dashes, empty where there is none, and what stands below it."""
    end = found.end() if (found := _FRONT.match(text)) else 0
    return text[:end], text[end:]


def decoded(content: bytes, place: str) -> str:
    """UTF-8, with or without a byte order mark. Raises Refused."""
    try:
        return re.sub(r"\r\n?", "\n", content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Refused(f"{place}, line {line}: it is not UTF-8 text. Save it as UTF-8.") from error


def _walk(folder: Path) -> Iterator[tuple[str, int]]:
    """Path and bytes of the files below a folder, by name; none that is hidden or a link, or lies behind one."""
    for root, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if not _is_hidden(name))
        for path in (Path(root, name) for name in sorted(files) if not _is_hidden(name)):
            with suppress(OSError):
                if stat.S_ISREG((found := path.lstat()).st_mode):
                    yield path.relative_to(folder).as_posix(), found.st_size


def _is_hidden(path: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) and part != ".." for part in path.split("/"))


def files_of(folder: Path) -> dict[str, int]:
    """The first files of a skill, by their path, with their bytes."""
    return {path: size for path, size in islice(_walk(folder), FILES_MOST) if _PATH.fullmatch(path)}


def plain(path: str) -> str:
    """A path below a skill. Raises Refused for what leads out of it."""
    if not _PATH.fullmatch(path):
        raise Refused(f"“{path[:80]}” is no path in a skill: write one such as references/steps.md.")
    return path


def inside(folder: Path, path: str, place: str = "") -> Path:
    """A file of a skill by its path, which people know by its `place`. Raises Refused for what leads out of it."""
    found = folder / plain(path)
    if any(one.is_symlink() for one in (found, *found.parents[: path.count("/") + 1])):
        raise Refused(f"{place or path} is a link, or lies behind one, and none is followed: see skills.folders.")
    return found


def text_of(folder: Path, path: str, place: str = "") -> str | None:
    """What a file of a skill says; None where there is none. Raises Refused where it is no text."""
    place = f"{place or folder.name}/{path}"
    with _told(f"{place} cannot be read"):
        try:
            return decoded(read_file(inside(folder, path, place), FILE_BYTES), place)
        except (FileNotFoundError, NotADirectoryError):
            return None


def texts_of(folder: Path) -> dict[str, str]:
    """The files of a skill that are text."""
    found = {}
    for path in files_of(folder):
        with suppress(Refused):
            if (text := text_of(folder, path)) is not None and "\0" not in text:
                found[path] = text
    return found


def keep(root: Path, folder: Path, files: Mapping[str, bytes | None]) -> None:
    """Writes and removes (None) files of a skill; without its SKILL.md all of it goes. That is written last, so that
    after a crash there is a whole skill or none. Raises Refused."""
    written = {path for path, content in files.items() if content is not None}
    if written and len(written.union(files_of(folder))) > FILES_MOST:
        raise Refused(f"The skill {folder.name} would have more than {FILES_MOST} files, the most there may be.")
    with _told(f"The skill {folder.name} cannot be written"):
        if files.get(SKILL_FILE, b"") is None:
            discard(root, folder)
            return
        for path in sorted(files, key=SKILL_FILE.__eq__):
            rewrite(inside(folder, path), files[path])


def rewrite(path: Path, content: bytes | None) -> None:
    """Raises OSError."""
    for left in leftovers(path):
        left.unlink(missing_ok=True)
    if content is not None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(path, content)
        return
    path.unlink(missing_ok=True)
    with suppress(OSError):
        path.parent.rmdir()


def discard(root: Path, folder: Path) -> None:
    """Removes a skill of a folder at one stroke, and then what was in it. Raises OSError."""
    gone = root / f".{folder.name}{REMOVED}"
    shutil.rmtree(gone, ignore_errors=True)
    folder.rename(gone)
    with suppress(FileNotFoundError):  # another process clears it away as well
        shutil.rmtree(gone)


def unpacked(source: Path) -> list[dict[str, bytes]]:
    """The files, by path, of the skills in a folder or zip archive, without links and all beside. Raises Refused."""
    with _told(f"{source.name} cannot be read"):
        if source.is_dir():
            found = dict(islice(_walk(source), SOURCE_FILES + 1))
            return _taken(source.name, found, lambda path: read_file(source / path, BYTES_MOST))
        _bounded(source.name, [source.stat().st_size], SOURCE_FILES, SOURCE_BYTES)
        with zipfile.ZipFile(source) as archive:
            files = (one for one in archive.infolist() if not one.is_dir() and not _is_hidden(one.filename))
            found = {one.filename: one.file_size for one in files if not stat.S_ISLNK(one.external_attr >> 16)}
            return _taken(source.name, found, archive.read)


def _taken(title: str, sizes: Mapping[str, int], read: Callable[[str], bytes]) -> list[dict[str, bytes]]:
    _bounded(title, sizes.values(), SOURCE_FILES, SOURCE_BYTES)
    roots = {PurePosixPath(path).parent for path in sizes if PurePosixPath(path).name == SKILL_FILE}
    if not roots:
        raise Refused(f"There is no {SKILL_FILE} in {title}, so it is no skill.")
    skills = defaultdict[PurePosixPath, dict[str, str]](dict)
    for path in sizes:
        for root in [one for one in reversed(PurePosixPath(path).parents) if one in roots][:1]:
            skills[root][PurePosixPath(path).relative_to(root).as_posix()] = path
    for root, paths in skills.items():
        _bounded(root.name or title, [sizes[path] for path in paths.values()], FILES_MOST, BYTES_MOST)
        if len(set(map(str.casefold, map(plain, paths)))) < len(paths):
            raise Refused(f"{root.name or title} has two files whose names differ in nothing but capitals.")
    return [{path: read(source) for path, source in paths.items()} for paths in skills.values()]


def _bounded(title: str, sizes: Collection[int], files_most: int, bytes_most: int) -> None:
    if len(sizes) > files_most or sum(sizes) > bytes_most:
        raise Refused(f"{title} is too large: {files_most:,} files and {bytes_most:,} bytes are the most.")


class _Loader(yaml.BaseLoader):
    """Takes plain values as texts (version 1.10 is not 1.1), and nothing that can grow: no alias, no depth."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self._depth += 1
        if self._depth > DEPTH or isinstance(event, yaml.AliasEvent):
            problem = "it is nested too deeply" if self._depth > DEPTH else "an alias (*) is not read here"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _values(front: str, place: str) -> tuple[Mapping[Any, Any], Mapping[str, int]]:
    """The values, and the lines of the file that their keys stand in. A value with a colon, which YAML wants in quotes
    and many write without, is taken as it was meant. Raises Refused."""
    try:
        if len(front) > FRONT_CHARS:
            raise yaml.MarkedYAMLError(problem=f"the front matter is longer than {FRONT_CHARS:,} characters")
        quoted = _UNQUOTED.sub(lambda one: f"{one['key']}: {json.dumps(one['value'], ensure_ascii=False)}", front)
        loader = _Loader(quoted)
        node, lines = loader.get_single_node(), dict[str, int]()
        if not isinstance(node, yaml.MappingNode):
            raise yaml.MarkedYAMLError(problem="the front matter has no lines such as `name: tidy-inbox`")
        for key, _ in node.value:
            if str(key.value) in lines:
                raise yaml.MarkedYAMLError(problem=f"{key.value} stands there twice", problem_mark=key.start_mark)
            lines[str(key.value)] = key.start_mark.line + 2
        return loader.construct_mapping(node, deep=True), lines
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line if mark else front.count("\n", 0, getattr(error, "position", 0))
        problem = getattr(error, "problem", None) or "it has a character that nobody can see"
        raise Refused(f"{place}, line {line + 2}: {problem}.") from error


def _text(value: object) -> str:
    return " ".join(value.encode("utf-8", "replace").decode().split()) if isinstance(value, str) else ""
