"""Skills as the rest of Mneme has them: who sees which, what becomes of one, and the index that stands in the prompt.

Each change is one operation, worked out and checked before a file is touched, written under one lock, and logged with
what every file said before and after. Who typed it decides whether it is done or waits for a yes. Nothing is ever run.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from pathlib import Path

from config.settings import SkillOptions
from core.errors import Refused
from core.guard.guard import LIMIT_CHARS, cleaned, suspicion
from core.notes.notebook import FolderLock, finished
from core.ports import Clock
from core.review.pending import Review, doubt, typed
from core.skills import folders
from core.skills.folders import LOOKED_AT, SkillFolders
from core.skills.format import SKILL_FILE, Skill, decoded, is_name, parse, split
from core.store.notes import Author, Operation, PendingNote
from core.store.skills import SKILL, Files, SkillChange, SkillRecords
from core.text.normalize import shortened
from core.types import LOCAL, ErasureEpoch, Scope

KEPT_CHARS = 1_000_000
"""Of a skill that is deleted: of a longer one no version is kept."""
SEARCHED_BYTES = 5_000_000
"""A longer file is not looked through for what is forgotten."""
LENGTHS = (1024, 300, 200, 120, 60, 0)
"""To which descriptions are shortened until the index fits."""
LEFT_OUT = "\n({:,} more: skills_list)"
SCRIPTED = "has scripts, which are not run here"
_PARAGRAPH = re.compile(r".+?(?:\n[ \t]*\n\s*|\Z)", re.DOTALL)


class Skills:
    def __init__(self, home: Path, records: SkillRecords, review: Review, clock: Clock, options: SkillOptions) -> None:
        self._folders = SkillFolders(home, options.folders)
        self._lock = FolderLock(home / "skills", "skills")
        self._records = records
        self.review = review
        self._clock = clock
        self._index_chars = options.index_chars

    @staticmethod
    def home_of(scope: Scope, scopes: frozenset[Scope]) -> Scope:
        """Where a skill of this conversation is kept: the owner's are one collection, wherever the owner talks."""
        return LOCAL if LOCAL in scopes else scope

    async def listed(self, scopes: frozenset[Scope], words: str = "") -> tuple[list[Skill], list[str]]:
        """Those with all of the words, by category and name, also the disabled ones; and a sentence on each folder that
        cannot be read as a skill."""
        found, troubles = await asyncio.to_thread(self._folders.read, scopes)
        return [skill for skill in await self._known(found, scopes) if skill.has(words)], troubles

    async def find(self, name: str, scopes: frozenset[Scope]) -> Skill:
        """Raises Refused where there is none, or it cannot be read."""
        found = await asyncio.to_thread(self._folders.find, name, scopes)
        if found is None:
            raise Refused(f"There is no skill “{name[:80]}” here.")
        (skill,) = await self._known([found], scopes)
        return skill

    async def unused(self, scopes: frozenset[Scope], since: datetime) -> list[Skill]:
        """Enabled ones that can be removed and were neither used nor changed since."""
        found, _ = await self.listed(scopes)
        return [
            skill
            for skill in found
            if skill.is_own and not skill.is_disabled and max(skill.used_at or since, skill.changed_at) <= since
        ]

    async def index(self, scopes: frozenset[Scope]) -> str:
        """The enabled skills by category, for a prompt: within the budget descriptions get shorter, then the least used
        are left out. Empty where there are none."""
        skills = [skill for skill in (await self.listed(scopes))[0] if not skill.is_disabled]
        for length in LENGTHS:
            if len(index := _index(skills, length)) <= self._index_chars:
                return index
        chosen = sorted(skills, key=lambda skill: (-skill.uses, skill.name))
        names, left = list[Skill](), self._index_chars - len(LEFT_OUT.format(LOOKED_AT))
        for skill in chosen:
            left -= len(_index([skill], 0)) + 1
            if left < 0:
                break
            names.append(skill)
        names.sort(key=lambda skill: (skill.category, skill.name))
        return f"{_index(names, 0)}{LEFT_OUT.format(len(skills) - len(names))}".strip()

    async def files(self, skill: Skill) -> Mapping[str, int]:
        """Path and bytes of each, without the SKILL.md."""
        found = await asyncio.to_thread(folders.files_of, skill.folder)
        return {path: size for path, size in found.items() if path != SKILL_FILE}

    async def text(self, skill: Skill, path: str = SKILL_FILE) -> str:
        """Raises Refused where there is no such file, or it is no text."""
        text = await asyncio.to_thread(folders.text_of, skill.folder, path or SKILL_FILE, f"{skill.name}/{path}")
        if text is None:
            listed = ", ".join(await self.files(skill)) or "none beside its SKILL.md"
            raise Refused(f"The skill {skill.name} has no file {path}; it has {listed}.")
        return text

    async def texts(self, scopes: frozenset[Scope]) -> list[tuple[str, str, str]]:
        """Of all skills kept for these scopes the name, path and text of each file, for an export."""

        def work() -> list[tuple[str, str, str]]:
            read = [skill for skill in self._folders.read(scopes)[0] if skill.is_own]
            return [(skill.name, path, text) for skill in read for path, text in _texts(skill.folder).items()]

        return await asyncio.to_thread(work)

    async def used(self, skill: Skill, epoch: ErasureEpoch | None = None) -> None:
        """Counts it."""
        await self._records.count(skill.scope, skill.name, self._clock.now(), epoch)

    async def switch(self, name: str, scopes: frozenset[Scope], *, is_disabled: bool) -> Skill:
        """A disabled one is in no index, and the model cannot read it. Raises Refused."""
        skill = await self.find(name, scopes)
        await self._records.switch(skill.scope, skill.name, is_disabled=is_disabled)
        return replace(skill, is_disabled=is_disabled)

    async def apply(self, scope: Scope, scopes: frozenset[Scope], done: Operation, author: Author) -> str:
        """Does what `done` says (see `SKILL`); what the author has not typed waits for a yes. Returns what was done;
        raises Refused with what to do."""
        home = self.home_of(scope, scopes)
        if author.origin != "typed":
            await asyncio.to_thread(self._worked_out, home, scopes, done, author)
            return await self.review.put_aside(home, SKILL, [done], author, author.reason)
        content, left_out = typed(done.content, LIMIT_CHARS, is_insisting=author.is_insisting)
        meant = replace(done, content=content)
        change = await self._write(lambda: self._worked_out(home, scopes, meant, author), author)
        said = f"The skill {change.name} is {'removed' if change.action == 'delete' else 'kept'} (change {change.id})."
        return " ".join(filter(None, (left_out, said, "" if change.files else "Nothing can bring it back.")))

    async def approve(self, note: PendingNote, scopes: frozenset[Scope], epoch: ErasureEpoch | None = None) -> str:
        """Does for its author what waited. Raises Refused when it does not fit any more."""
        author = Author(**note.source, origin="typed", is_insisting=True, epoch=epoch)
        (done,) = note.operations
        return await self.apply(note.scope, scopes | {note.scope}, done, author)

    async def history(self, scopes: frozenset[Scope], name: str = "", limit: int = 20) -> list[SkillChange]:
        """The latest changes, newest first."""
        return await self._records.changes(scopes, name, limit)

    async def undo(self, scopes: frozenset[Scope], number: int | None, author: Author) -> str:
        """Takes back a change, else the last one that can be. Raises Refused where the files were changed since."""
        found = self._records.last(scopes) if number is None else self._records.find(scopes, number)
        change = await found
        if change is None or not change.files:
            raise Refused("There is nothing to undo." if number is None else f"Change {number} cannot be undone.")

        def work() -> tuple[SkillChange, Path]:
            there = self._folders.find(change.name, frozenset((change.scope,)))
            folder = there.folder if there and there.is_own else self._folders.own(change.scope).root / change.name
            for path, (_, after) in change.files.items():
                if folders.text_of(folder, path, f"{change.name}/{path}") != after:
                    raise Refused(f"{change.name}/{path} was changed since, so change {change.id} cannot be undone.")
            files = {path: (after, before) for path, (before, after) in change.files.items()}
            return self._change(author, change.scope, change.name, "undo", files, change.id), folder

        await self._write(work, author)
        return f"Undone: change {change.id} of the skill {change.name}."

    async def add(self, source: Path, scope: Scope, scopes: frozenset[Scope], author: Author) -> Sequence[str]:
        """Takes over the skills of a folder or a zip archive, all or none; their names. What looks wrong is asked about
        unless the author insists. Raises Refused."""
        home = self.home_of(scope, scopes)

        def read() -> dict[str, dict[str, bytes]]:
            try:
                given = folders.unpacked(source)
            except OSError as error:
                raise Refused(f"{source.name} cannot be read ({error.strerror or error}).") from error
            found = {}
            for files in given:
                place = f"{SKILL_FILE} in {source.name}"
                text = decoded(files[SKILL_FILE], place)
                skill = parse(text, place)
                if skill.name in found or self._folders.find(skill.name, frozenset((home,))) is not None:
                    raise Refused(f"There is a skill {skill.name} already; remove it first.")
                if not author.is_insisting and (reason := _doubtful(files)):
                    raise Refused(doubt(reason))
                found[skill.name] = files
            return found

        async def write() -> Sequence[str]:
            async with self._lock.hold():
                await self._records.check(author.epoch)
                found = await asyncio.to_thread(read)
                for name, files in found.items():
                    folder = self._folders.own(home).root / name
                    try:
                        await asyncio.to_thread(folders.install, folder, files)
                    except OSError as error:
                        raise Refused(f"{name} cannot be written ({error.strerror or error}).") from error
                    await self._records.log(self._change(author, home, name, "add", {}))
                return list(found)

        return await finished(write())

    async def erase(
        self, scopes: frozenset[Scope], is_meant: Callable[[str], bool], *, is_trial: bool = False
    ) -> tuple[list[str], list[str]]:
        """Erases the paragraphs that are meant, files and skills whose name or description is, and says which; of a
        trial nothing goes. Also the files that cannot be written."""

        def work() -> tuple[list[str], list[str]]:
            found, stuck = list[str](), list[str]()
            for root in (self._folders.own(scope).root for scope in sorted(scopes)):
                for path in sorted(root.rglob("*")):
                    try:
                        if path.is_symlink() or not path.is_file() or path.stat().st_size > SEARCHED_BYTES:
                            continue
                        text = path.read_bytes().decode("utf-8", "replace")
                        gone, left = _sifted(path.relative_to(root), text, is_meant)
                        found += gone
                        if gone and not is_trial:
                            is_whole = left is None and path.name == SKILL_FILE and path.parent != root
                            folders.discard(path.parent) if is_whole else folders.rewrite(path, left)
                    except OSError:
                        stuck.append(f"skills/{path.relative_to(root).as_posix()}")
            return list(dict.fromkeys(found)), stuck

        async with AsyncExitStack() as stack:
            if not is_trial:
                await stack.enter_async_context(self._lock.hold())
            return await asyncio.to_thread(work)

    async def _known(self, skills: Sequence[Skill], scopes: frozenset[Scope]) -> list[Skill]:
        """With what is kept of them."""
        kept = await self._records.records(scopes)
        return [replace(skill, **kept.get((skill.scope, skill.name), {})) for skill in skills]

    def _worked_out(
        self, home: Scope, scopes: frozenset[Scope], done: Operation, author: Author
    ) -> tuple[SkillChange, Path]:
        """The change, and the folder that it is made in. Raises Refused."""
        place, _, old = done.old_text.partition("\n")
        name, _, path = place.partition("/")
        if not is_name(name):
            raise Refused(f"“{name[:80]}” is no name for a skill: small letters, digits and single hyphens.")
        skill = self._folders.find(name, scopes | {home})
        is_new = done.action == "add" and path == SKILL_FILE
        if skill is None and not is_new:
            raise Refused(f"There is no skill {name} here; create it first.")
        if skill is not None and is_new:
            raise Refused(f"There is a skill {name} already: patch or edit it.")
        if skill is not None and not skill.is_own:
            raise Refused(f"The skill {name} lies in a folder that I only read: {skill.folder}.")
        scope, folder = (skill.scope, skill.folder) if skill else (home, self._folders.own(home).root / name)
        files = _changed(folder, path, old, done) if path else _deleted(folder)
        return self._change(author, scope, name, _action(done, path, old), files), folder

    def _change(
        self, author: Author, scope: Scope, name: str, action: str, files: Files, undoes: int | None = None
    ) -> SkillChange:
        at, source = self._clock.now(), author.source
        return SkillChange(**source, scope=scope, name=name, action=action, at=at, files=files, undoes=undoes)

    async def _write(self, work: Callable[[], tuple[SkillChange, Path]], author: Author) -> SkillChange:
        async def write() -> SkillChange:
            async with self._lock.hold():
                await self._records.check(author.epoch)
                change, folder = await asyncio.to_thread(work)
                files = {path: after for path, (_, after) in change.files.items()} or {SKILL_FILE: None}
                await asyncio.to_thread(folders.keep, folder, files)
                return await self._records.log(change)

        return await finished(write())


def _changed(folder: Path, path: str, old: str, done: Operation) -> Files:
    """What one file of a skill says before and after. Raises Refused."""
    place = f"{folder.name}/{folders.writable(path)}"
    before = folders.text_of(folder, path, place)
    after = _after(before, old, done, place)
    if path == SKILL_FILE:
        parse(after or "", place, folder.name)
    elif before is None and len(folders.files_of(folder)) >= folders.FILES_MOST:
        raise Refused(f"The skill {folder.name} has {folders.FILES_MOST} files, the most there may be.")
    return {path: (before, after)}


def _deleted(folder: Path) -> Files:
    """Nothing where there is more than text, or too much, for a version to keep."""
    texts = _texts(folder)
    is_kept = len(texts) == len(folders.files_of(folder)) and sum(map(len, texts.values())) <= KEPT_CHARS
    return {path: (text, None) for path, text in texts.items()} if is_kept else {}


def _after(before: str | None, old: str, done: Operation, place: str) -> str | None:
    """What a file says after an operation. Raises Refused."""
    if done.action == "add":
        return done.content
    if before is None:
        raise Refused(f"There is no file {place}.")
    if done.action == "remove":
        return None
    if old and before.count(old) != 1:
        often = "is not" if old not in before else f"stands {before.count(old)} times"
        raise Refused(f"The old text {often} in {place}; give a part of it that stands there once.")
    text = before.replace(old, done.content) if old else done.content
    if len(text) > LIMIT_CHARS:
        raise Refused(f"{place} would have {len(text):,} characters, over its limit of {LIMIT_CHARS:,}.")
    return text


def _action(done: Operation, path: str, old: str) -> str:
    """What people call an operation."""
    is_whole = path in ("", SKILL_FILE)
    match done.action:
        case "add":
            return "create" if is_whole else "write_file"
        case "remove":
            return "delete" if not path else "remove_file"
    return "patch" if old else "edit"


def _index(skills: Sequence[Skill], length: int) -> str:
    blocks = []
    for category, some in groupby(skills, key=lambda skill: skill.category):
        lines = [f"### {cleaned(category)}"] if category else []
        blocks.append("\n".join([*lines, *(_line(skill, length) for skill in some)]))
    return "\n".join(blocks)


def _line(skill: Skill, length: int) -> str:
    about = f": {shortened(cleaned(skill.description), length)}" if length else ""
    return f"- {skill.name}{about}{f' ({SCRIPTED})' if skill.has_scripts and length else ''}"


def _texts(folder: Path) -> dict[str, str]:
    """The files of a skill that are text."""
    found = {}
    for path in folders.files_of(folder):
        with suppress(Refused):
            if (text := folders.text_of(folder, path, path)) is not None and "\0" not in text:
                found[path] = text
    return found


def _doubtful(files: Mapping[str, bytes]) -> str | None:
    for content in files.values():
        with suppress(UnicodeDecodeError):
            text = content.decode("utf-8-sig")
            if "\0" not in text and (reason := suspicion(text)):
                return reason
    return None


def _sifted(inside: Path, text: str, is_meant: Callable[[str], bool]) -> tuple[list[str], str | None]:
    """What goes of a file, all of a skill for its name or description, and what stays; None: nothing."""
    is_skill = inside.name == SKILL_FILE
    front, body = split(text) if is_skill else ("", text)
    if is_meant(f"{inside.as_posix()}\n{front}"):
        return [(inside.parent if is_skill else inside).as_posix()], None
    pieces = _PARAGRAPH.findall(body) if inside.suffix == ".md" else body.splitlines(keepends=True)
    # What is no text goes whole.
    pieces = [text] if "\N{REPLACEMENT CHARACTER}" in text else pieces
    gone = [piece for piece in pieces if is_meant(piece)]
    return [piece.strip() for piece in gone], front + "".join(piece for piece in pieces if piece not in gone) or None
