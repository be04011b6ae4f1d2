"""Reads skills from folders, writes them, and unpacks them from archives and other folders.

A skill is a folder with a SKILL.md and other files. Mneme checks the size of a file before reading
it. Paths can't point outside of a skill, links aren't followed, and scripts are never run.

All functions block, so call them in a thread.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from config.files import find_leftovers, read_file, replace_file
from core.errors import Refused
from core.skills.format import SKILL_FILE, Skill, parse_skill
from core.text.normalize import to_normal_form
from core.types import Scope

# At most this many folders with skills are read, in the order of their names.
MAX_FOLDERS = 1_000
# The maximum size of a text file.
FILE_BYTES = 200_000
# The maximum number of files and bytes in one skill.
MAX_FILES = 200
MAX_SKILL_BYTES = 30_000_000
# The maximum number of files and bytes in a folder or archive from which skills are added.
MAX_SOURCE_FILES = 2_000
MAX_SOURCE_BYTES = 60_000_000
# A folder that is being deleted is renamed so that its name ends with this.
REMOVED = ".removed"

# A name in a path: no dot at the beginning, and no dot or blank at the end.
_PART = r"(?!\.)[\w .()+,@&'~=-]{1,100}(?<![ .])"
_PATH = re.compile(rf"{_PART}(?:/{_PART}){{0,5}}")
# Errors of zipfile for a damaged archive, a password or an unknown compression.
_ARCHIVE_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError)


def read_skills(
    root: Path, title: str, scope: Scope, *, is_own: bool
) -> Iterator[tuple[str, Skill | Refused]]:
    """Yield each skill below `root` with its name, or the problem of an invalid folder.

    A skill may also be one level deeper, in a folder that is named after its category. `title` is
    the name of `root` in problems. With `is_own`, interrupted deletions of skills are finished
    first.
    """
    if is_own:
        for leftover in root.glob(f".*{REMOVED}"):
            shutil.rmtree(leftover, ignore_errors=True)
    folders = _list_skill_folders(root)
    for folder in islice(folders, MAX_FOLDERS):
        path = folder.relative_to(root)
        place = f"{title}/{path.as_posix()}".encode("utf-8", "replace").decode()
        try:
            skill = read_skill(folder, place)
        except Refused as refusal:
            yield folder.name, refusal
            continue
        category = skill.front_value("category") or "".join(path.parts[:-1])
        yield skill.name, replace(skill, category=category, scope=scope, is_own=is_own)
    if next(folders, None):
        yield f"{title}/", Refused("skill_folders_cut", title=title, limit=MAX_FOLDERS)


def _list_skill_folders(root: Path) -> Iterator[Path]:
    """Yield the folders and links in `root`, or the skills in them for categories.

    A category is a folder without a SKILL.md that contains folders with a SKILL.md.
    """
    for folder in _list_folders(root):
        skills = []
        if not os.path.lexists(folder / SKILL_FILE):
            skills = [
                child for child in _list_folders(folder) if os.path.lexists(child / SKILL_FILE)
            ]
        if skills:
            yield from skills
        else:
            yield folder


def _list_folders(folder: Path) -> list[Path]:
    """Return the folders and links in a folder, sorted.

    The list is empty if `folder` is a link or can't be read.
    """
    if folder.is_symlink():
        return []
    with suppress(OSError), os.scandir(folder) as entries:
        paths = []
        for entry in entries:
            is_hidden = entry.name.startswith(".")
            if not is_hidden and (entry.is_dir() or entry.is_symlink()):
                paths.append(Path(entry.path))
        return sorted(paths)
    return []


def read_skill(folder: Path, place: str) -> Skill:
    """Read the skill in a folder. Raises Refused if the folder isn't a valid skill.

    `place` is the name of the folder in the error.
    """
    text = read_text(folder, SKILL_FILE, place)
    if text is None:
        raise Refused("skill_without_file", place=place)
    skill = parse_skill(text, f"{place}/{SKILL_FILE}", to_normal_form("NFC", folder.name))
    with _refuse_errors("skill_unreadable", place=place):
        changed_at = datetime.fromtimestamp((folder / SKILL_FILE).lstat().st_mtime, UTC)
    return replace(skill, folder=folder, files=list_files(folder), changed_at=changed_at)


@contextmanager
def _refuse_errors(key: str, **values: str) -> Iterator[None]:
    """Turn an error with a file or an archive into Refused: `problem`, a colon and the reason."""
    try:
        yield
    except (*_ARCHIVE_ERRORS, OSError) as error:
        reason = str(getattr(error, "strerror", None) or error)
        raise Refused(key, **values, reason=reason) from error


def decode_text(content: bytes, place: str) -> str:
    """Decode UTF-8 with or without a byte order mark, and normalize the line ends.

    Raises Refused with `place` and the line number if the content isn't UTF-8.
    """
    try:
        return re.sub(r"\r\n?", "\n", content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Refused("skill_not_utf8", place=place, line=line) from error


def _walk(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the path and the size of each file below a folder, sorted by folder and name.

    Hidden files, hidden folders and links are left out.
    """
    for root, folder_names, file_names in os.walk(folder):
        # os.walk only enters the folders that remain in its list.
        folder_names[:] = sorted(name for name in folder_names if not _is_hidden(name))
        for name in sorted(file_names):
            if _is_hidden(name):
                continue
            path = Path(root, name)
            with suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    yield path.relative_to(folder).as_posix(), status.st_size


def _is_hidden(path: str) -> bool:
    """Return whether a part of the path begins with a dot or is a folder made by macOS."""
    return any(part.startswith((".", "__MACOSX")) and part != ".." for part in path.split("/"))


def list_files(folder: Path) -> dict[str, int]:
    """Return the sizes in bytes of the first `MAX_FILES` files of a skill, by path."""
    return {path: size for path, size in islice(_walk(folder), MAX_FILES) if _PATH.fullmatch(path)}


def check_path(path: str) -> str:
    """Return a path unchanged.

    Raises Refused if the path isn't relative, leads out of the skill or isn't in plain form.
    """
    if not _PATH.fullmatch(path):
        raise Refused("skill_path_invalid", path=path[:80])
    return path


def resolve_file(folder: Path, path: str, place: str = "") -> Path:
    """Return the location of a file of a skill.

    Raises Refused if the path points outside of the skill, or if the file or one of its parent
    folders is a link. `place` is the name of the file in the error.
    """
    file = folder / check_path(path)
    # The file, its folders and the folder of the skill.
    steps = (file, *file.parents[: path.count("/") + 1])
    if any(step.is_symlink() for step in steps):
        raise Refused("skill_is_link", place=place or path)
    return file


def read_text(folder: Path, path: str, place: str = "") -> str | None:
    """Return the text of a file of a skill, or None if there is no such file.

    Raises Refused if the file can't be read or isn't text.
    """
    place = f"{place or folder.name}/{path}"
    with _refuse_errors("skill_unreadable", place=place):
        try:
            return decode_text(read_file(resolve_file(folder, path, place), FILE_BYTES), place)
        except (FileNotFoundError, NotADirectoryError):
            return None


def read_texts(folder: Path) -> dict[str, str]:
    """Return the texts of the files of a skill, by path.

    Files that aren't text, can't be read or are too long are left out.
    """
    texts = {}
    for path in list_files(folder):
        with suppress(Refused):
            text = read_text(folder, path)
            if text is not None and "\0" not in text:
                texts[path] = text
    return texts


def write_files(root: Path, folder: Path, files: Mapping[str, bytes | None]) -> None:
    """Write files of a skill, and delete each file whose content is None.

    If the content of SKILL.md is None, the whole skill is deleted. Otherwise SKILL.md is written
    last, so that a crash doesn't leave an incomplete skill with a SKILL.md. Raises Refused if the
    skill would have too many files or can't be written.
    """
    new_paths = {path for path, content in files.items() if content is not None}
    if new_paths and len(new_paths.union(list_files(folder))) > MAX_FILES:
        raise Refused("skill_too_many_files", name=folder.name, limit=MAX_FILES)
    with _refuse_errors("skill_unwritable", name=folder.name):
        if SKILL_FILE in files and files[SKILL_FILE] is None:
            remove_skill(root, folder)
            return
        for path, content in files.items():
            if path != SKILL_FILE:
                write_or_remove(resolve_file(folder, path), content)
        if SKILL_FILE in files:
            write_or_remove(resolve_file(folder, SKILL_FILE), files[SKILL_FILE])


def write_or_remove(path: Path, content: bytes | None) -> None:
    """Write a file. If `content` is None, delete the file, and its folder if it becomes empty.

    Raises OSError if the file can't be written or deleted.
    """
    for leftover in find_leftovers(path):
        leftover.unlink(missing_ok=True)
    if content is not None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(path, content)
        return
    path.unlink(missing_ok=True)
    with suppress(OSError):
        path.parent.rmdir()


def remove_skill(root: Path, folder: Path) -> None:
    """Delete a skill. Its folder is renamed first, so that the skill disappears at once.

    Raises OSError if the folder can't be renamed or deleted.
    """
    trash_folder = root / f".{folder.name}{REMOVED}"
    shutil.rmtree(trash_folder, ignore_errors=True)
    folder.rename(trash_folder)
    # Another process may be deleting the same folder (`read_skills`).
    with suppress(FileNotFoundError):
        shutil.rmtree(trash_folder)


class UnpackedSkill(NamedTuple):
    """The files of a skill by path, with the name of the skill's folder in the source."""

    title: str
    files: Mapping[str, bytes]


def unpack_skills(source: Path) -> list[UnpackedSkill | Refused]:
    """Unpack each skill in a folder or zip archive, or return the problem if it can't be added.

    Links, hidden files and files outside of skills are left out. Raises Refused if the source can't
    be read, is too large or contains no skill.
    """
    with _refuse_errors("skill_unreadable", place=str(source)):
        if source.is_dir():
            sizes = dict(islice(_walk(source), MAX_SOURCE_FILES + 1))
            return _unpack(
                source.name, sizes, lambda path: read_file(source / path, MAX_SKILL_BYTES)
            )
        _check_limits(source.name, [source.stat().st_size], MAX_SOURCE_FILES, MAX_SOURCE_BYTES)
        with zipfile.ZipFile(source) as archive:
            sizes = {}
            for entry in archive.infolist():
                # The upper 16 bits are the Unix mode of the file.
                is_link = stat.S_ISLNK(entry.external_attr >> 16)
                if not entry.is_dir() and not is_link and not _is_hidden(entry.filename):
                    sizes[entry.filename] = entry.file_size
            return _unpack(source.name, sizes, archive.read)


def _unpack(
    title: str, sizes: Mapping[str, int], read: Callable[[str], bytes]
) -> list[UnpackedSkill | Refused]:
    """Return the files of each skill in a source, or the problem with the skill.

    `sizes` contains the size of each file by its path, and `read` returns the content of a
    file. Raises Refused if the source contains no skill or is too large.
    """
    _check_limits(title, sizes.values(), MAX_SOURCE_FILES, MAX_SOURCE_BYTES)
    roots = {PurePosixPath(path).parent for path in sizes if PurePosixPath(path).name == SKILL_FILE}
    if not roots:
        raise Refused("skill_source_empty", title=title)
    # For each skill folder: the path of each file in the source, by its path in the skill.
    skills = defaultdict[PurePosixPath, dict[str, str]](dict)
    for path in sizes:
        root = _find_root(PurePosixPath(path), roots)
        if root is not None:
            skills[root][PurePosixPath(path).relative_to(root).as_posix()] = path
    results: list[UnpackedSkill | Refused] = []
    for root, paths in skills.items():
        name = root.name or title
        try:
            _check_files(name, paths, [sizes[path] for path in paths.values()])
        except Refused as refusal:
            results.append(refusal)
        else:
            files = {path: read(source_path) for path, source_path in paths.items()}
            results.append(UnpackedSkill(name, files))
    return results


def _check_files(title: str, paths: Collection[str], sizes: Collection[int]) -> None:
    """Raise Refused if the files of a skill are too many or too large, or have an invalid path."""
    _check_limits(title, sizes, MAX_FILES, MAX_SKILL_BYTES)
    lowercase_paths = {check_path(path).casefold() for path in paths}
    if len(lowercase_paths) < len(paths):
        raise Refused("skill_names_collide", title=title)


def _find_root(path: PurePosixPath, roots: Collection[PurePosixPath]) -> PurePosixPath | None:
    """Return the outermost of the skill folders `roots` that contains a file, or None.

    A SKILL.md deeper inside a skill is an ordinary file.
    """
    # `parents` begins with the innermost folder.
    for folder in reversed(path.parents):
        if folder in roots:
            return folder
    return None


def _check_limits(title: str, sizes: Collection[int], max_files: int, max_bytes: int) -> None:
    """Raise Refused if there are too many files or they are too large together."""
    if len(sizes) > max_files or sum(sizes) > max_bytes:
        raise Refused("skill_source_too_large", title=title, files=max_files, bytes=max_bytes)
