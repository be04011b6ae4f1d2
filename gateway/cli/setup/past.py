"""Finds exports of other programs and imports them: the step "history" of `mneme setup`."""

from __future__ import annotations

import shlex
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import typer

from gateway.cli.setup.steps import Setup, StepFailed
from gateway.texts.catalog import Texts

MAX_FILES = 20
# If a folder has more entries, only this many are searched.
MAX_ENTRIES = 5_000
# The kind of an export, and the program that wrote it (a text of `[setup.past]`).
KINDS: Mapping[str, str] = {
    "result.json": "telegram",
    "conversations.json": "assistant",
    "messages/index.json": "discord",
    "Messages/index.json": "discord",
}


@dataclass(frozen=True, slots=True)
class Export:
    """A file or folder that looks like an export that `mneme import` can read."""

    path: Path
    # A key of the texts in `[past]`.
    kind: str
    size: int

    def describe(self, texts: Texts) -> str:
        words = texts.tables("setup")["past"]
        size = f"{texts.format_number(round(self.size / 1e6, 1))} MB"
        return str(words["item"].format(path=self.path, kind=words[self.kind], size=size))


def import_past(setup: Setup) -> None:
    """Offer each export that is found on the disk, and import it if the person agrees."""
    words = setup.words["past"]
    exports = list(find_exports(_list_folders(Path.home())))[:MAX_FILES]
    if not exports:
        setup.dialog.tell(words["nothing"])
    for export in exports:
        if setup.dialog.confirm(
            words["question"].format(item=export.describe(setup.texts)), default=False
        ):
            _import(export.path)


def check_import_options(setup: Setup) -> None:
    """Check the files and folders that the options name, before anything is written.

    Raises StepFailed if one doesn't exist, or if it's a calendar or a whole home, whose import asks
    for a confirmation. Raises HistoryError if one has no history, or exceeds a limit.
    """
    if not setup.options.imports:
        return
    # Imported here because few setups import files.
    from core.transfer.formats import ImportOptions
    from core.transfer.source import Source
    from gateway.cli.history import is_archive_of_home

    words = setup.words["past"]
    for name in setup.options.imports:
        path = Path(name).expanduser()
        if not path.exists():
            raise StepFailed(words["missing"].format(path=path))
        if path.suffix.lower() == ".ics" or is_archive_of_home(path):
            argument = shlex.quote(str(path))
            raise StepFailed(words["no_history"].format(path=path, argument=argument))
        with Source.open(path, ImportOptions()):
            # Opening it finds the history.
            pass


def import_from_options(setup: Setup) -> None:
    """Import the files that the options name. Exits with an error at the first that fails."""
    # Imported here because few setups import files.
    from gateway.cli.history import import_command

    for name in setup.options.imports:
        import_command(str(Path(name).expanduser()))


def _import(path: Path) -> None:
    """Import a file, and print progress and a report. A failed import doesn't end the setup."""
    from gateway.cli.history import import_command

    try:
        import_command(str(path))
    except typer.Exit:
        # The import has already printed the problem.
        return


def _list_folders(user_folder: Path) -> list[Path]:
    names = ("Downloads", "Desktop", "Documents", ".hermes")
    return [user_folder / name for name in names if (user_folder / name).is_dir()]


def find_exports(folders: list[Path]) -> Iterator[Export]:
    """Yield the exports in these folders and in their direct subfolders, without duplicates."""
    for folder in folders:
        for path in _list_entries(folder):
            if path.is_dir() and not path.is_symlink():
                yield from filter(None, map(_recognise, _list_entries(path)))
            export = _recognise(path)
            if export is not None:
                yield export


def _list_entries(folder: Path) -> list[Path]:
    try:
        entries = [path for _, path in zip(range(MAX_ENTRIES), folder.iterdir(), strict=False)]
    except OSError:
        # A folder that can't be read has nothing that can be imported.
        return []
    return sorted(entries)


def _recognise(path: Path) -> Export | None:
    """Return the export at a path, or None. Only file names are checked, not the contents."""
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                names = set(archive.namelist())
            kinds = [kind for name, kind in KINDS.items() if _contains_file(names, name)]
            return Export(path, kinds[0], path.stat().st_size) if kinds else None
        if path.name in KINDS and path.is_file():
            return Export(path, KINDS[path.name], path.stat().st_size)
        if path.name == "state.db" and path.parent.name == ".hermes":
            return Export(path.parent, "hermes", path.stat().st_size)
    except (OSError, zipfile.BadZipFile, NotImplementedError):
        # Not an archive, or one that can't be read.
        return None
    return None


def _contains_file(paths: set[str], file_name: str) -> bool:
    return any(path == file_name or path.endswith(f"/{file_name}") for path in paths)
