"""Where skills lie: in `skills` of the home those of the owner, beside the notes of a scope those of that scope, and in
folders of the settings, which are the owner's too and are only read. A skill is a folder there, or one deeper, in a
folder that is its category.

Everything is confined to these folders: a path is a plain one below its skill, and no link is followed. All functions
block: they are called in a thread.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path, PurePosixPath

from config.files import leftovers, replace_file
from core.errors import Refused
from core.notes.notebook import folder_of
from core.skills.format import FOLDERS, SCRIPTS, SKILL_FILE, Skill, is_name, read_skill, read_text
from core.types import LOCAL, Scope

LOOKED_AT = 1_000
"""Folders of one place, in the order of their names: nobody has a list of more to read."""
FILES_MOST, SKILL_BYTES, PATH_DEPTH = 200, 5_000_000, 6
"""Of one skill."""
SOURCE_BYTES, SOURCE_ENTRIES, RATIO, RATIO_BYTES = 20_000_000, 2_000, 100, 1_000_000
"""What is added may unpack to: so much, and beyond the last only so many times its own size; its entries."""
_PART = re.compile(r"(?!\.)[\w .()+,@&'~=-]{1,100}(?<![ .])")
_IGNORED = ("__MACOSX",)
_DAMAGED = (zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError)


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of skills, called `title` before people. `is_own`: it may be written."""

    root: Path
    scope: Scope
    title: str
    is_own: bool = True


class SkillFolders:
    """`extra`: folders of the settings."""

    def __init__(self, home: Path, extra: Sequence[Path] = ()) -> None:
        self._home = home
        self._extra = extra

    def own(self, scope: Scope) -> Place:
        """Where skills of a scope are kept."""
        if scope == LOCAL:
            return Place(self._home / "skills", scope, "skills")
        root = folder_of(self._home / "memories", scope) / "skills"
        return Place(root, scope, root.relative_to(self._home).as_posix())

    def places(self, scopes: frozenset[Scope]) -> list[Place]:
        """What these scopes see; of two skills of one name the first counts."""
        own = [self.own(scope) for scope in sorted(scopes, key=lambda scope: (scope != LOCAL, scope))]
        extra = self._extra if LOCAL in scopes else ()
        return [*own, *(Place(folder, LOCAL, str(folder), False) for folder in extra)]

    def read(self, scopes: frozenset[Scope]) -> tuple[list[Skill], list[str]]:
        """The skills, and a sentence on each folder that cannot be read as one."""
        found: dict[str, Skill] = {}
        troubles: list[str] = []
        for place in self.places(scopes):
            for folder in _candidates(place, troubles):
                try:
                    skill = self._skill(folder, place)
                except Refused as refusal:
                    troubles.append(str(refusal))
                else:
                    found.setdefault(skill.name, skill)
        return sorted(found.values(), key=lambda skill: (skill.category, skill.name)), troubles

    def find(self, name: str, scopes: frozenset[Scope]) -> Skill | None:
        """Also one that stands behind the first `LOOKED_AT`. Raises Refused where it cannot be read."""
        for place in self.places(scopes) if is_name(name) else ():
            if _has_skill(place.root / name):
                return self._skill(place.root / name, place)
            for category in _folders(place.root, place, []):
                if not _has_skill(category) and _has_skill(category / name):
                    return self._skill(category / name, place)
        return None

    def _skill(self, folder: Path, place: Place) -> Skill:
        inside = folder.relative_to(place.root)
        try:
            skill = read_skill(folder, f"{place.title}/{inside.as_posix()}/{SKILL_FILE}")
            has_scripts = any(entry.is_file(follow_symlinks=False) for entry in _scan(folder / SCRIPTS))
            changed_at = datetime.fromtimestamp((folder / SKILL_FILE).lstat().st_mtime, UTC)
        except OSError as error:
            raise Refused(f"{place.title}/{inside.as_posix()} cannot be read ({error.strerror or error}).") from error
        return replace(
            skill,
            category=skill.category or (inside.parts[0] if len(inside.parts) > 1 else ""),
            folder=folder,
            scope=place.scope,
            is_own=place.is_own,
            has_scripts=has_scripts,
            changed_at=changed_at,
        )


def files_of(folder: Path) -> dict[str, int]:
    """The files of a skill by their path, the first `FILES_MOST`, with their bytes; none that is a link or hidden."""
    looked_at = sorted(islice(folder.rglob("*"), LOOKED_AT))
    files = [path for path in looked_at if path.is_file() and not path.is_symlink()]
    found = {path.relative_to(folder).as_posix(): path.lstat().st_size for path in files}
    return dict(islice(((path, size) for path, size in found.items() if not _is_hidden(path)), FILES_MOST))


def plain(path: str) -> tuple[str, ...]:
    """The parts of a path below a skill. Raises Refused for what leads out of it."""
    parts = PurePosixPath(path).parts
    is_plain = path == "/".join(parts) and 0 < len(parts) <= PATH_DEPTH and all(map(_PART.fullmatch, parts))
    if not is_plain:
        raise Refused(f"“{path[:80]}” is no path in a skill: write one such as references/steps.md.")
    return parts


def inside(folder: Path, path: str) -> Path:
    """A file of a skill by its path. Raises Refused for what leads out of its folder."""
    found = folder
    for part in plain(path):
        found = found / part
        if found.is_symlink():
            raise Refused(f"{path} is a link, or lies behind one, which is not followed.")
    return found


def writable(path: str) -> str:
    """A path that may be written or removed. Raises Refused."""
    plain(path)
    if path != SKILL_FILE and path.partition("/")[0] not in FOLDERS:
        raise Refused(f"Beside {SKILL_FILE} a skill has files in {', '.join(f'{one}/' for one in FOLDERS)} only.")
    return path


def text_of(skill_folder: Path, path: str, place: str) -> str | None:
    """None where there is no such file. Raises Refused where it is no text."""
    try:
        return read_text(inside(skill_folder, path), place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Refused(f"{place} cannot be read ({error.strerror or error}).") from error


def keep(folder: Path, files: Mapping[str, bytes | None]) -> None:
    """Writes and removes (None) files of a skill; without its SKILL.md all of it goes. That is written last and removed
    first, so that after a crash there is a whole skill or none. Raises Refused."""
    try:
        if files.get(SKILL_FILE, b"") is None:
            discard(folder)
            return
        for path in sorted(files, key=SKILL_FILE.__eq__):
            rewrite(inside(folder, path), files[path])
    except OSError as error:
        raise Refused(f"The skill {folder.name} cannot be written ({error.strerror or error}).") from error


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


def discard(folder: Path) -> None:
    """Removes a skill. Raises OSError."""
    (folder / SKILL_FILE).unlink(missing_ok=True)
    shutil.rmtree(folder)


def unpacked(source: Path) -> list[dict[str, bytes]]:
    """The files, by path, of each skill in a folder or a zip archive. Raises Refused."""
    files = _files_in(source)
    roots = [PurePosixPath(path).parent for path in files if PurePosixPath(path).name == SKILL_FILE]
    found = list[dict[str, bytes]]()
    for root in (root for root in roots if not any(other in root.parents for other in roots)):
        below = (path for path in files if root in PurePosixPath(path).parents)
        found.append({PurePosixPath(path).relative_to(root).as_posix(): files[path] for path in below})
        if len(found[-1]) > FILES_MOST or sum(map(len, found[-1].values())) > SKILL_BYTES:
            most = f"{FILES_MOST} files and {SKILL_BYTES:,} bytes are the most of a skill"
            raise Refused(f"{root.name or source.name} is too large: {most}.")
    if not found:
        raise Refused(f"There is no {SKILL_FILE} in {source.name}, so it is no skill.")
    return found


def _files_in(source: Path) -> dict[str, bytes]:
    try:
        if source.is_dir():
            paths = [path for path in islice(source.rglob("*"), SOURCE_ENTRIES + 1) if not path.is_symlink()]
            sizes = {path.relative_to(source).as_posix(): path.stat().st_size for path in paths if path.is_file()}
            return _taken(source.name, sizes, SOURCE_BYTES, lambda path: (source / path).read_bytes())
        with zipfile.ZipFile(source) as archive:
            return _unpacked(source, archive)
    except zipfile.BadZipFile as error:
        raise Refused(f"{source.name} is neither a folder nor a whole zip archive.") from error
    except OSError as error:
        raise Refused(f"{source.name} cannot be read ({error.strerror or error}).") from error
    except _DAMAGED as error:
        raise Refused(f"{source.name} cannot be unpacked here ({error}).") from error


def _unpacked(source: Path, archive: zipfile.ZipFile) -> dict[str, bytes]:
    members = {one.filename: one for one in archive.infolist() if not one.is_dir()}
    if link := next((name for name, one in members.items() if stat.S_ISLNK(one.external_attr >> 16)), None):
        raise Refused(f"{link} in {source.name} is a link, so nothing was added.")
    most = min(SOURCE_BYTES, max(RATIO_BYTES, RATIO * source.stat().st_size))
    return _taken(source.name, {name: one.file_size for name, one in members.items()}, most, archive.read)


def _taken(name: str, sizes: Mapping[str, int], most: int, read: Callable[[str], bytes]) -> dict[str, bytes]:
    if len(sizes) > SOURCE_ENTRIES:
        raise Refused(f"{name} has more than {SOURCE_ENTRIES:,} files, so nothing was added.")
    if sum(sizes.values()) > most:
        raise Refused(f"{name} would be over {most:,} bytes when unpacked, so nothing was added.")
    wanted = [path for path in sizes if not _is_hidden(path) and plain(path)]
    return {path: read(path) for path in wanted}


def _is_hidden(path: str) -> bool:
    return any(part in _IGNORED or (part.startswith(".") and part != "..") for part in PurePosixPath(path).parts)


def _candidates(place: Place, troubles: list[str]) -> Iterator[Path]:
    """The folders of a place that have a SKILL.md, also those in its categories."""
    left = LOOKED_AT
    for folder in _folders(place.root, place, troubles):
        below = [] if _has_skill(folder) else [one for one in _folders(folder, place, troubles) if _has_skill(one)]
        left -= max(1, len(below))
        if left < 0:
            troubles.append(f"Of {place.title} only the first {LOOKED_AT:,} folders are looked at.")
            return
        if below:
            yield from below
        elif _has_skill(folder):
            yield folder
        else:
            troubles.append(f"{place.title}/{folder.name}: there is no {SKILL_FILE} in it.")


def _folders(root: Path, place: Place, troubles: list[str]) -> list[Path]:
    found = []
    for entry in sorted(_scan(root), key=lambda entry: entry.name):
        if entry.name.startswith("."):
            continue
        if entry.is_symlink():
            where = Path(entry.path).relative_to(place.root).as_posix()
            troubles.append(f"{place.title}/{where} is a link, not followed; name its folder in skills.folders.")
        elif entry.is_dir():
            found.append(Path(entry.path))
    return found


def _has_skill(folder: Path) -> bool:
    return not folder.is_symlink() and os.path.lexists(folder / SKILL_FILE)


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    """What stands in a folder; nothing where there is none."""
    with suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []
