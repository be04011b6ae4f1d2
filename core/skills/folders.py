"""Reads skills from folders, writes them, and unpacks them from archives and other folders.

A skill is a folder with a SKILL.md and other files. Sizes are checked before a file is read. Paths
can't lead out of a skill, and links aren't followed. No script is ever run.

All functions block, so they are called in a thread.
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

from config.files import find_leftovers, read_file, replace_file
from core.errors import Refused
from core.skills.format import SKILL_FILE, Skill, parse_skill
from core.text.normalize import to_normal_form
from core.types import Scope

# How many folders of one place are read, in the order of their names.
MAX_FOLDERS = 1_000
# The largest text that is read.
FILE_BYTES = 200_000
# The most that one skill may contain.
MAX_FILES = 200
MAX_SKILL_BYTES = 5_000_000
# The most that a folder or archive may contain from which skills are added.
MAX_SOURCE_FILES = 2_000
MAX_SOURCE_BYTES = 20_000_000
# The ending of a folder that is being deleted.
REMOVED = ".removed"

_PART = r"(?!\.)[\w .()+,@&'~=-]{1,100}(?<![ .])"
_PATH = re.compile(rf"{_PART}(?:/{_PART}){{0,5}}")
# Errors that reading an archive may raise, including for a password or an unknown compression.
_ARCHIVE_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError)


def read_skills(
    root: Path, title: str, scope: Scope, *, is_own: bool
) -> Iterator[tuple[str, Skill | Refused]]:
    """Yield the name of each skill below `root` and the skill, or the problem with its folder.

    A skill may also be one level deeper, in a folder that is named after its category. `title` is
    the name of `root` for people. If `is_own`, interrupted deletions of skills are finished first.
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
        problem = f"Of {title} only the first {MAX_FOLDERS:,} folders are looked at."
        yield f"{title}/", Refused(problem)


def _list_skill_folders(root: Path) -> Iterator[Path]:
    """Yield the folders and links in `root`. A category yields the skills in it instead."""
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
    """Return the folders and links in a folder, sorted. A link to a folder counts as empty."""
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
    """Read the skill in a folder. Raises Refused, with `place` as the name of the folder."""
    text = read_text(folder, SKILL_FILE, place)
    if text is None:
        raise Refused(f"{place}: there is no {SKILL_FILE} in it.")
    skill = parse_skill(text, f"{place}/{SKILL_FILE}", to_normal_form("NFC", folder.name))
    with _refuse_errors(f"{place} cannot be read"):
        changed_at = datetime.fromtimestamp((folder / SKILL_FILE).lstat().st_mtime, UTC)
    return replace(skill, folder=folder, files=list_files(folder), changed_at=changed_at)


@contextmanager
def _refuse_errors(problem: str) -> Iterator[None]:
    """Turn an error of a file or an archive into Refused, with `problem` before its reason."""
    try:
        yield
    except (*_ARCHIVE_ERRORS, OSError) as error:
        raise Refused(f"{problem}: {getattr(error, 'strerror', None) or error}.") from error


def decode_text(content: bytes, place: str) -> str:
    """Decode UTF-8, with or without a byte order mark. Raises Refused, with the line."""
    try:
        return re.sub(r"\r\n?", "\n", content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Refused(f"{place}, line {line}: it is not UTF-8 text. Save it as UTF-8.") from error


def _walk(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the path and the bytes of each file below a folder, sorted by folder and name.

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
    return any(part.startswith((".", "__MACOSX")) and part != ".." for part in path.split("/"))


def list_files(folder: Path) -> dict[str, int]:
    """Return the size in bytes of each file of a skill, by path, for at most `MAX_FILES` files."""
    return {path: size for path, size in islice(_walk(folder), MAX_FILES) if _PATH.fullmatch(path)}


def check_path(path: str) -> str:
    """Return a path below a skill. Raises Refused if it leads out of the skill or is unusual."""
    if not _PATH.fullmatch(path):
        raise Refused(
            f"“{path[:80]}” is no path in a skill: write one such as references/steps.md."
        )
    return path


def resolve_file(folder: Path, path: str, place: str = "") -> Path:
    """Return the file at a path below a skill.

    Raises Refused if the path leads out of the skill or contains a link. `place` is the name of the
    file in the error.
    """
    file = folder / check_path(path)
    # The file, its folders and the folder of the skill.
    steps = (file, *file.parents[: path.count("/") + 1])
    if any(step.is_symlink() for step in steps):
        raise Refused(
            f"{place or path} is a link, or lies behind one, and none is followed: see "
            "skills.folders."
        )
    return file


def read_text(folder: Path, path: str, place: str = "") -> str | None:
    """Return the text of a file of a skill, or None if there is no such file.

    Raises Refused if the file can't be read or isn't text.
    """
    place = f"{place or folder.name}/{path}"
    with _refuse_errors(f"{place} cannot be read"):
        try:
            return decode_text(read_file(resolve_file(folder, path, place), FILE_BYTES), place)
        except (FileNotFoundError, NotADirectoryError):
            return None


def read_texts(folder: Path) -> dict[str, str]:
    """Return the texts of all files of a skill that are text, by path."""
    texts = {}
    for path in list_files(folder):
        with suppress(Refused):
            text = read_text(folder, path)
            if text is not None and "\0" not in text:
                texts[path] = text
    return texts


def write_files(root: Path, folder: Path, files: Mapping[str, bytes | None]) -> None:
    """Write files of a skill, and delete each file whose content is None.

    Deleting SKILL.md deletes the whole skill. Otherwise SKILL.md is written last, so that a crash
    leaves no folder that looks like a complete skill. Raises Refused if the skill would have too
    many files or can't be written.
    """
    new_paths = {path for path, content in files.items() if content is not None}
    if new_paths and len(new_paths.union(list_files(folder))) > MAX_FILES:
        raise Refused(
            f"The skill {folder.name} would have more than {MAX_FILES} files, the most there may "
            "be."
        )
    with _refuse_errors(f"The skill {folder.name} cannot be written"):
        if SKILL_FILE in files and files[SKILL_FILE] is None:
            remove_skill(root, folder)
            return
        for path, content in files.items():
            if path != SKILL_FILE:
                write_or_remove(resolve_file(folder, path), content)
        if SKILL_FILE in files:
            write_or_remove(resolve_file(folder, SKILL_FILE), files[SKILL_FILE])


def write_or_remove(path: Path, content: bytes | None) -> None:
    """Write a file. Without content, delete it and its folder if that is empty. Raises OSError."""
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
    """Delete a skill. It is renamed first, so that it disappears at once.

    Raises OSError.
    """
    trash_folder = root / f".{folder.name}{REMOVED}"
    shutil.rmtree(trash_folder, ignore_errors=True)
    folder.rename(trash_folder)
    # Another process may delete the rest at the same time (`read_skills`).
    with suppress(FileNotFoundError):
        shutil.rmtree(trash_folder)


def unpack_skills(source: Path) -> list[dict[str, bytes]]:
    """Return the files of each skill in a folder or zip archive, by path.

    Links, hidden files and files outside of skills are left out. Raises Refused if the source can't
    be read, is too large or contains no skill.
    """
    with _refuse_errors(f"{source.name} cannot be read"):
        if source.is_dir():
            sizes = dict(islice(_walk(source), MAX_SOURCE_FILES + 1))
            return _unpack(
                source.name, sizes, lambda path: read_file(source / path, MAX_SKILL_BYTES)
            )
        _check_limits(source.name, [source.stat().st_size], MAX_SOURCE_FILES, MAX_SOURCE_BYTES)
        with zipfile.ZipFile(source) as archive:
            sizes = {}
            for entry in archive.infolist():
                is_link = stat.S_ISLNK(entry.external_attr >> 16)
                if not entry.is_dir() and not is_link and not _is_hidden(entry.filename):
                    sizes[entry.filename] = entry.file_size
            return _unpack(source.name, sizes, archive.read)


def _unpack(
    title: str, sizes: Mapping[str, int], read: Callable[[str], bytes]
) -> list[dict[str, bytes]]:
    """Check all files of a source by path and size, then read the files of its skills."""
    _check_limits(title, sizes.values(), MAX_SOURCE_FILES, MAX_SOURCE_BYTES)
    roots = {PurePosixPath(path).parent for path in sizes if PurePosixPath(path).name == SKILL_FILE}
    if not roots:
        raise Refused(f"There is no {SKILL_FILE} in {title}, so it is no skill.")
    # For each skill: its files' paths in the source, by their paths in the skill.
    skills = defaultdict[PurePosixPath, dict[str, str]](dict)
    for path in sizes:
        root = _find_root(PurePosixPath(path), roots)
        if root is not None:
            skills[root][PurePosixPath(path).relative_to(root).as_posix()] = path
    for root, paths in skills.items():
        name = root.name or title
        _check_limits(name, [sizes[path] for path in paths.values()], MAX_FILES, MAX_SKILL_BYTES)
        lowercase_paths = {check_path(path).casefold() for path in paths}
        if len(lowercase_paths) < len(paths):
            raise Refused(f"{name} has two files whose names differ in nothing but capitals.")
    return [
        {path: read(source_path) for path, source_path in paths.items()}
        for paths in skills.values()
    ]


def _find_root(path: PurePosixPath, roots: Collection[PurePosixPath]) -> PurePosixPath | None:
    """Return the outermost skill folder that contains a file, or None. Skills don't nest."""
    for folder in reversed(path.parents):
        if folder in roots:
            return folder
    return None


def _check_limits(title: str, sizes: Collection[int], max_files: int, max_bytes: int) -> None:
    if len(sizes) > max_files or sum(sizes) > max_bytes:
        raise Refused(
            f"{title} is too large: {max_files:,} files and {max_bytes:,} bytes are the most."
        )
