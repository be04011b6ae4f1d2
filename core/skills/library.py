"""Skills as the rest of Mneme has them: who sees which, what becomes of one, and the index that stands in the prompt.

Each change is one operation, worked out and checked before a file is touched, written under one lock, and logged with
what every file said before and after. Who typed it decides whether it is done or waits for a yes. Nothing is ever run.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import datetime
from itertools import accumulate, groupby
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
from core.store.notes import SKILL, Author, NoteChange, Notes, Operation, PendingNote
from core.text.normalize import shortened
from core.types import LOCAL, ErasureEpoch, Scope

SEARCHED_BYTES = 5_000_000
"""A longer file is not looked through for what is forgotten."""
LENGTHS = (1024, 300, 200, 120, 60, 0)
"""To which descriptions are shortened until the index fits."""
LEFT_OUT = "\n({:,} more: skills_list)"
SCRIPTED = "has scripts, which are not run here"
_PARAGRAPH = re.compile(r".+?(?:\n[ \t]*\n\s*|\Z)", re.DOTALL)


class Skills:
    def __init__(self, home: Path, notes: Notes, review: Review, clock: Clock, options: SkillOptions) -> None:
        self._folders = SkillFolders(home, options.folders)
        self._lock = FolderLock(home / "skills", "skills")
        self._notes = notes
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
        left = self._index_chars - len(LEFT_OUT.format(LOOKED_AT))
        sizes = accumulate(len(_index([skill], 0)) + 1 for skill in chosen)
        names = [skill for skill, size in zip(chosen, sizes, strict=True) if size <= left]
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
        await self._notes.note_skill(skill.scope, skill.name, epoch, used_at=self._clock.now())

    async def switch(self, name: str, scopes: frozenset[Scope], *, is_disabled: bool) -> Skill:
        """A disabled one is in no index, and the model cannot read it. Raises Refused."""
        skill = await self.find(name, scopes)
        await self._notes.note_skill(skill.scope, skill.name, is_disabled=is_disabled)
        return replace(skill, is_disabled=is_disabled)

    async def apply(self, scope: Scope, scopes: frozenset[Scope], done: Operation, author: Author) -> str:
        """Does what `done` says; what the author has not typed waits for a yes. Returns what was done;
        raises Refused with what to do."""
        home = self.home_of(scope, scopes)
        if author.origin != "typed":
            await asyncio.to_thread(self._worked_out, home, scopes, done, author)
            return await self.review.put_aside(home, SKILL, [done], author, author.reason)
        content, left_out = typed(done.content, LIMIT_CHARS, is_insisting=author.is_insisting)
        meant = replace(done, content=content)
        number = (await self._write(lambda: self._kept(self._worked_out(home, scopes, meant, author)), author))[0]
        state = "removed" if done.action == "delete" else "kept"
        way_back = f"`/memory undo {number}` brings its texts back" if done.action == "delete" else f"change {number}"
        said = f"The skill {done.path.partition('/')[0]} is {state} ({way_back})."
        return f"{left_out} {said}".strip()

    async def approve(self, note: PendingNote, scopes: frozenset[Scope], epoch: ErasureEpoch | None = None) -> str:
        """Does for its author what waited. Raises Refused when it does not fit any more."""
        author = Author(**note.source, origin="typed", is_insisting=True, epoch=epoch)
        (done,) = note.operations
        return await self.apply(note.scope, scopes | {note.scope}, done, author)

    async def undo(self, change: NoteChange, author: Author) -> str:
        """With all that were one with it. Raises Refused where a file was changed since."""
        made = await self._notes.together(frozenset((change.scope,)), change)

        def work() -> list[NoteChange]:
            for one in made:
                folder, path = self._place(one)
                if folders.text_of(folder, path, f"{folder.name}/{path}") != one.after:
                    raise Refused(f"{folder.name}/{path} was changed since, so change {one.id} cannot be undone.")
            wanted = self._change(author, change.scope, "undo")
            return self._kept(
                [replace(wanted, target=one.target, before=one.after, after=one.before, undoes=one.id) for one in made]
            )

        await self._write(work, author)
        numbers = ", ".join(str(one.id) for one in made)
        return f"Undone: change {numbers} of the skill {self._place(change)[0].name}."

    async def add(self, source: Path, scope: Scope, scopes: frozenset[Scope], author: Author) -> Sequence[str]:
        """Takes over the skills of a folder or a zip archive, all or none; their names. What looks wrong is asked about
        unless the author insists. Raises Refused."""
        home = self.home_of(scope, scopes)
        root, found = self._folders.own(home).root, dict[str, Mapping[str, bytes]]()

        def work() -> list[NoteChange]:
            for files in folders.unpacked(source):
                place = f"{SKILL_FILE} in {source.name}"
                name = parse(decoded(files[SKILL_FILE], place), place).name
                if name in found or self._folders.find(name, frozenset((home,))) is not None:
                    raise Refused(f"There is a skill {name} already; remove it first.")
                if not author.is_insisting and (reason := _doubtful(files)):
                    raise Refused(doubt(reason))
                found[name] = files
            added, changes = self._change(author, home, "add"), list[NoteChange]()
            for name, contents in found.items():
                folders.keep(root / name, contents)
                texts = _texts(root / name)
                changes += self._changes(added, root / name, {path: (None, text) for path, text in texts.items()})
            return changes

        await self._write(work, author)
        return list(found)

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

        async with nullcontext() if is_trial else self._lock.hold():
            return await asyncio.to_thread(work)

    async def _known(self, skills: Sequence[Skill], scopes: frozenset[Scope]) -> list[Skill]:
        """With what is kept of them."""
        kept = await self._notes.skills(scopes)
        return [replace(skill, **kept.get((skill.scope, skill.name), {})) for skill in skills]

    def _worked_out(self, home: Scope, scopes: frozenset[Scope], done: Operation, author: Author) -> list[NoteChange]:
        """What becomes of which file. Raises Refused."""
        name, _, path = done.path.partition("/")
        path = folders.writable(path or SKILL_FILE)
        scope, folder = self._meant(name, home, scopes, is_new=done.action == "create")
        place = f"{name}/{path}"
        before = folders.text_of(folder, path, place)
        after = _after(before, done, path, place)
        if after is not None and path == SKILL_FILE:
            parse(after, place, name)
        elif before is None and len(folders.files_of(folder)) >= folders.FILES_MOST:
            raise Refused(f"The skill {name} has {folders.FILES_MOST} files, the most there may be.")
        changed = {path: (before, after)}
        if done.action == "delete":
            changed |= {path: (text, None) for path, text in _texts(folder).items()}
        return self._changes(self._change(author, scope, done.action), folder, changed)

    def _meant(self, name: str, home: Scope, scopes: frozenset[Scope], *, is_new: bool) -> tuple[Scope, Path]:
        """Whose a skill is, and its folder. Raises Refused where it is not to be changed."""
        if not is_name(name):
            raise Refused(f"“{name[:80]}” is no name for a skill: small letters, digits and single hyphens.")
        skill = self._folders.find(name, scopes | {home})
        if skill is None and not is_new:
            raise Refused(f"There is no skill {name} here; create it first.")
        if skill is not None and is_new:
            raise Refused(f"There is a skill {name} already: patch or edit it.")
        if skill is not None and not skill.is_own:
            raise Refused(f"The skill {name} lies in a folder that I only read: {skill.folder}.")
        return (skill.scope, skill.folder) if skill else (home, self._folders.own(home).root / name)

    def _change(self, author: Author, scope: Scope, action: str) -> NoteChange:
        return NoteChange(**author.source, scope=scope, target=SKILL, action=action, at=self._clock.now())

    def _changes(
        self, wanted: NoteChange, folder: Path, files: Mapping[str, tuple[str | None, str | None]]
    ) -> list[NoteChange]:
        """One for each file, by what it says before and after."""
        place = folder.relative_to(self._folders.own(wanted.scope).root).as_posix()
        return [
            replace(wanted, target=f"{SKILL}:{place}:{path}", before=before, after=after)
            for path, (before, after) in files.items()
        ]

    def _place(self, change: NoteChange) -> tuple[Path, str]:
        """The folder of the skill, and the path of the file in it."""
        folder, path = change.skill or ("", "")
        return self._folders.own(change.scope).root / folder, path

    def _kept(self, changes: list[NoteChange]) -> list[NoteChange]:
        """Makes the changes of one skill. Raises Refused."""
        texts = {self._place(one)[1]: one.after for one in changes}
        contents = {path: None if text is None else text.encode() for path, text in texts.items()}
        folders.keep(self._place(changes[0])[0], contents)
        return changes

    async def _write(self, work: Callable[[], list[NoteChange]], author: Author) -> list[int]:
        """Logs the changes that were made; their numbers."""

        async def write() -> list[int]:
            async with self._lock.hold():
                await self._notes.check(author.epoch)
                return await self._notes.log(*await asyncio.to_thread(work))

        return await finished(write())


def _after(before: str | None, done: Operation, path: str, place: str) -> str | None:
    """What a file says after an operation; None: it is gone. Raises Refused."""
    if path == SKILL_FILE and done.action in ("write_file", "remove_file"):
        raise Refused(f"Give the path of a file beside {SKILL_FILE}; that one is changed with edit or patch.")
    if before is None and done.action in ("patch", "remove_file"):
        raise Refused(f"There is no file {place}.")
    text = done.content
    match done.action:
        case "delete" | "remove_file":
            return None
        case "patch" if before is not None:
            if not done.old_text.strip():
                raise Refused("Give old_text: a part that stands there once.")
            if (often := before.count(done.old_text)) != 1:
                said = f"stands {often} times" if often else "is not"
                raise Refused(f"The old text {said} in {place}; give a part of it that stands there once.")
            text = before.replace(done.old_text, text)
        case _ if not text:
            raise Refused("Give the content.")
    if len(text) > LIMIT_CHARS:
        raise Refused(f"{place} would have {len(text):,} characters, over its limit of {LIMIT_CHARS:,}.")
    return text


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


def _sifted(inside: Path, text: str, is_meant: Callable[[str], bool]) -> tuple[list[str], bytes | None]:
    """What goes of a file, all of a skill for its name or description, and what stays; None: nothing."""
    is_skill = inside.name == SKILL_FILE
    front, body = split(text) if is_skill else ("", text)
    if is_meant(f"{inside.as_posix()}\n{front}"):
        return [(inside.parent if is_skill else inside).as_posix()], None
    pieces = _PARAGRAPH.findall(body) if inside.suffix == ".md" else body.splitlines(keepends=True)
    # What is no text goes whole.
    pieces = [text] if "\N{REPLACEMENT CHARACTER}" in text else pieces
    gone = [piece for piece in pieces if is_meant(piece)]
    left = front + "".join(piece for piece in pieces if piece not in gone)
    return [piece.strip() for piece in gone], left.encode() or None
