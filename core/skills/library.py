"""Reads, changes, adds and erases skills, and lists them for the prompt.

Each change is one operation. Mneme checks the operation before it touches a file, writes the files
under a lock, and logs the text of each file before and after the change. A change that a person
didn't type needs confirmation.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from config.files import read_file
from config.settings import SkillOptions
from core.errors import Refused, Report, Sentence, to_sentence
from core.guard.guard import LIMIT_CHARS, clean_text, find_suspicion
from core.notes.locking import FolderLock, run_to_completion
from core.notes.notebook import folder_of
from core.ports import Clock
from core.review.pending import Review, clean_typed_text
from core.skills import folders
from core.skills.format import FOLDERS, SKILL_FILE, Skill, parse_skill, split_front_matter
from core.store.notes import SKILL, Author, NoteChange, Notes, Operation, PendingNote
from core.text.normalize import shorten
from core.types import LOCAL_SCOPE, ErasureEpoch, Scope

# Larger files aren't searched for texts to erase.
MAX_SEARCHED_BYTES = 5_000_000
# Suspicious passages are shorter than this, so one of two overlapping parts contains each of them
# completely.
OVERLAP_CHARS = 2_000
# To shorten the index for the prompt, descriptions are cut to each of these lengths in turn.
DESCRIPTION_LENGTHS = (1024, 300, 200, 120, 60, 0)
LEFT_OUT = "\n({:,} more: skills_list)"
NO_SHELL = "needs a shell, which is not here"
# Erasing removes whole paragraphs from Markdown files, and whole lines from other files.
_PARAGRAPH = re.compile(r".+?(?:\n[ \t]*\n\s*|\Z)", re.DOTALL)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class FileChange:
    """The text of a file before and after a change. None means that the file doesn't exist."""

    before: str | None
    after: str | None


class AddedSkills(NamedTuple):
    """The names of the added skills, and sentences that say why other skills weren't added."""

    names: Sequence[str]
    problems: Sequence[Sentence]


# The changes of one skill, by the path of each file below the skill's folder.
FileChanges = Mapping[str, FileChange]


@dataclass(frozen=True)
class Skills:
    """The skills in all folders.

    The owner's skills are in `home`/skills. The skills of any other scope are next to its notes.
    The setting `skills.folders` lists further folders with skills of the owner, which are
    read-only.
    """

    home: Path
    notes: Notes
    review: Review
    clock: Clock
    options: SkillOptions

    @cached_property
    def _lock(self) -> FolderLock:
        return FolderLock(self.home / "skills", "skills_locked")

    def _root(self, scope: Scope) -> Path:
        """Return the folder for the skills of a scope."""
        if scope == LOCAL_SCOPE:
            return self.home / "skills"
        return folder_of(self.home / "memories", scope) / "skills"

    async def _load(self, scopes: frozenset[Scope]) -> Mapping[str, Skill | Refused]:
        """Return the skills of the scopes by name.

        If a folder isn't a valid skill, the value is the problem. If several skills have the same
        name, the first wins. The owner's skills come first.
        """
        # For each folder with skills: its path, the scope of its skills, and whether Mneme may
        # change them.
        places: list[tuple[Path, Scope, bool]] = []
        if LOCAL_SCOPE in scopes:
            places.append((self._root(LOCAL_SCOPE), LOCAL_SCOPE, True))
        for scope in sorted(scopes - {LOCAL_SCOPE}):
            places.append((self._root(scope), scope, True))
        if LOCAL_SCOPE in scopes:
            places += [(folder, LOCAL_SCOPE, False) for folder in self.options.folders]

        uses = await self.notes.load_skill_uses(scopes)
        skills: dict[str, Skill | Refused] = {}
        for root, scope, is_own in places:
            title = str(root).removeprefix(f"{self.home}{os.sep}")
            candidates = await asyncio.to_thread(
                list, folders.read_skills(root, title, scope, is_own=is_own)
            )
            for name, candidate in candidates:
                if isinstance(skills.get(name), Skill):
                    continue
                if isinstance(candidate, Skill):
                    candidate = replace(candidate, **uses.get((scope, name), {}))
                skills[name] = candidate
        return skills

    async def list_skills(
        self, scopes: frozenset[Scope], words: str = ""
    ) -> tuple[list[Skill], list[Sentence]]:
        """Return the skills that contain all words, and a sentence about each invalid folder.

        The skills are sorted by category and name. Disabled skills are included.
        """
        skills: list[Skill] = []
        problems: list[Sentence] = []
        for candidate in (await self._load(scopes)).values():
            if isinstance(candidate, Refused):
                problems.append(to_sentence(candidate))
            elif candidate.matches_words(words):
                skills.append(candidate)
        skills.sort(key=lambda skill: (skill.category, skill.name))
        return skills, problems

    async def find(self, name: str, scopes: frozenset[Scope]) -> Skill:
        """Return the skill with this name. Underscores in the name count as hyphens.

        Raises Refused if there is no such skill, or if its folder isn't a valid skill.
        """
        skills = await self._load(scopes)
        skill = skills.get(name.strip().lower().replace("_", "-"))
        if not isinstance(skill, Skill):
            raise skill or Refused("no_such_skill", name=name[:80])
        return skill

    async def render_index(self, scopes: frozenset[Scope]) -> str:
        """Return the list of enabled skills for a prompt, by category.

        To stay within the limit, descriptions are shortened first, and then the least used skills
        are left out, pinned ones last. The result is empty if there are no skills.
        """
        skills, _ = await self.list_skills(scopes)
        skills = [skill for skill in skills if not skill.is_disabled]
        for length in DESCRIPTION_LENGTHS:
            index = _format_index(skills, length)
            if len(index) <= self.options.index_chars:
                return index

        # Even without descriptions the index is too long, so the least used skills are left out.
        skills.sort(key=lambda skill: (not skill.is_pinned, -skill.uses, skill.name))
        available = self.options.index_chars - len(LEFT_OUT.format(folders.MAX_FOLDERS))
        index_skills: list[Skill] = []
        for skill in skills:
            available -= len(_format_index([skill], 0)) + 1
            if available < 0:
                break
            index_skills.append(skill)
        index_skills.sort(key=lambda skill: (skill.category, skill.name))
        notice = LEFT_OUT.format(len(skills) - len(index_skills))
        return f"{_format_index(index_skills, 0)}{notice}".strip()

    async def read_text(self, skill: Skill, path: str = "") -> str:
        """Return the text of SKILL.md or of another file.

        Raises Refused if there is no such file or it isn't text.
        """
        text = await asyncio.to_thread(folders.read_text, skill.folder, path or SKILL_FILE)
        if text is None:
            raise Refused(
                "skill_no_such_file", name=skill.name, path=path, files=", ".join(skill.files)
            )
        return text

    async def read_all_texts(self, scopes: frozenset[Scope]) -> list[tuple[str, str, str]]:
        """Return each text file of the skills as (name of the skill, path, text), for an export.

        Skills that Mneme only reads are left out.
        """
        rows = []
        skills, _ = await self.list_skills(scopes)
        for skill in skills:
            if skill.is_own:
                texts = await asyncio.to_thread(folders.read_texts, skill.folder)
                rows += [(skill.name, path, text) for path, text in texts.items()]
        return rows

    async def apply(
        self, scope: Scope, scopes: frozenset[Scope], operation: Operation, author: Author
    ) -> Report:
        """Change a skill, or store the change for confirmation if the author didn't type it.

        Returns a sentence about the result. Raises Refused if the change isn't possible.
        """
        home = LOCAL_SCOPE if LOCAL_SCOPE in scopes else scope
        skill = await self._find_target(home, scopes | {home}, operation)
        if author.origin != "typed":
            # If the change would be impossible after the confirmation, this raises Refused now.
            await asyncio.to_thread(_plan_changes, skill, operation)
            waiting = await self.review.put_aside(home, SKILL, [operation], author, author.reason)
            return Report((Sentence(waiting),))
        content, notice = clean_typed_text(
            operation.content, LIMIT_CHARS, has_anyway=author.is_insisting
        )

        def plan_changes() -> list[NoteChange]:
            files = _plan_changes(skill, replace(operation, content=content))
            return self._build_changes(author, operation.action, skill.scope, skill.folder, files)

        changes = await self._change_files(skill, plan_changes, author)
        key = "skill_removed" if operation.action == "delete" else "skill_kept"
        outcome = Sentence(key, {"name": skill.name})
        undo = Sentence("undo_with", {"change": str(changes[0].id)})
        return Report((outcome, undo) if notice is None else (notice, outcome, undo))

    async def _find_target(
        self, home: Scope, scopes: frozenset[Scope], operation: Operation
    ) -> Skill:
        """Return the skill that an operation changes, or an empty skill in `home` for a new one.

        Raises Refused if the path isn't allowed in a skill, if a skill to create exists already, or
        if a skill to change doesn't exist or is read-only.
        """
        name, _, path = operation.path.partition("/")
        is_file_action = operation.action in ("write_file", "remove_file")
        is_skill_file = path in ("", SKILL_FILE) and not is_file_action
        if not is_skill_file and path.partition("/")[0] not in FOLDERS:
            names = ", ".join(f"{folder}/" for folder in FOLDERS)
            raise Refused("skill_file_misplaced", folders=names)
        if operation.action == "create":
            if isinstance((await self._load(scopes)).get(name), Skill):
                raise Refused("skill_exists", name=name)
            return Skill(name=name, description="", folder=self._root(home) / name, scope=home)
        skill = await self.find(name, scopes)
        if not skill.is_own:
            raise Refused("skill_read_only", name=name, folder=str(skill.folder))
        return skill

    async def approve(
        self, note: PendingNote, scopes: frozenset[Scope], epoch: ErasureEpoch | None = None
    ) -> Report:
        """Apply a change that a person has confirmed, on behalf of its author.

        Returns a sentence about the result. Raises Refused if the change isn't possible any more.
        """
        author = Author(**note.source_values, origin="typed", is_insisting=True, epoch=epoch)
        return await self.apply(note.scope, scopes | {note.scope}, note.operations[0], author)

    async def undo(self, change: NoteChange, author: Author) -> Report:
        """Undo a change. If the change added or deleted a skill, undo the changes of all its files.

        Returns a sentence about the result. Raises Refused if one of the files was changed later.
        """
        folder_path, _ = change.skill or ("", "")
        folder = self._root(change.scope) / folder_path
        skill = Skill(name=folder.name, description="", folder=folder, scope=change.scope)
        group = await self.notes.list_group(frozenset((change.scope,)), change)
        reversals = {}
        for each in group:
            path = each.target.rpartition(":")[2]
            reversals[path] = FileChange(before=each.after, after=each.before)

        def plan_reversals() -> list[NoteChange]:
            """Return changes that restore the earlier texts.

            Raises Refused if a file was changed since.
            """
            for path, reversal in reversals.items():
                if folders.read_text(folder, path) != reversal.before:
                    raise Refused(
                        "skill_changed_since", path=f"{skill.name}/{path}", change=str(change.id)
                    )
            files = _delete_whole_skill(skill, reversals)
            changes = self._build_changes(author, "undo", skill.scope, folder, files)
            return [replace(each, undoes=change.id) for each in changes]

        await self._change_files(skill, plan_reversals, author)
        if change.action == "wrong":
            await self.notes.update_skill(skill.scope, skill.name, is_disabled=False)
        numbers = ", ".join(str(each.id) for each in group)
        undone = Sentence("skill_undone", {"change": numbers, "name": skill.name})
        return Report((undone,))

    async def judge(self, skill: Skill, author: Author, *, is_right: bool) -> None:
        """Record that a person calls a skill right or wrong. A wrong skill is switched off.

        A skill that was called wrong before and is now called right is switched on again. The
        verdict on a read-only skill isn't recorded.
        """
        was_wrong = await self.find_verdict(skill) == "wrong"
        if not is_right or was_wrong:
            await self.notes.update_skill(skill.scope, skill.name, is_disabled=not is_right)
        if skill.is_own:
            text = await self.read_text(skill)
            action = "right" if is_right else "wrong"
            files = {SKILL_FILE: FileChange(text, text)}
            changes = self._build_changes(author, action, skill.scope, skill.folder, files)
            await self.notes.log_changes(*changes)

    async def find_verdict(self, skill: Skill) -> str:
        """Return a person's verdict on the current text of a skill: "right", "wrong" or ""."""
        for change in await self.notes.list_verdicts(frozenset((skill.scope,))):
            if change.skill is not None and self._locate(change) == skill.folder:
                return change.action
        return ""

    def _locate(self, change: NoteChange) -> Path:
        """Return the folder of the skill that a change is about."""
        folder, _ = change.skill or ("", "")
        return self._root(change.scope) / folder

    async def list_history(
        self, skill: Skill, scopes: frozenset[Scope], limit: int
    ) -> list[NoteChange]:
        """Return the latest changes of a skill with their messages, newest first.

        Only the latest `limit` changes of notes and skills in the scopes are searched.
        """
        changes = await self.notes.list_changes(scopes | {skill.scope}, limit)
        return [each for each in changes if each.skill and self._locate(each) == skill.folder]

    async def add(
        self, source: Path, scope: Scope, scopes: frozenset[Scope], author: Author
    ) -> AddedSkills:
        """Add the skills of a folder or zip archive, except those that can't be added.

        A skill can't be added if it's invalid or too large, or if it exists already. A suspicious
        text also prevents it, unless `author.is_insisting`. Raises Refused if no skill is added.
        """
        home = LOCAL_SCOPE if LOCAL_SCOPE in scopes else scope
        root = self._root(home)
        existing = set(await self._load(frozenset((home,))))
        names: list[str] = []
        problems: list[Sentence] = []

        def write_files() -> list[NoteChange]:
            """Write the files of all valid skills, and return the changes to log."""
            changes: list[NoteChange] = []
            for skill in folders.unpack_skills(source):
                try:
                    if isinstance(skill, Refused):
                        raise skill
                    name = _check_new_skill(skill, {*existing, *names}, root, author)
                except Refused as refusal:
                    problems.append(to_sentence(refusal))
                    continue
                folders.write_files(root, root / name, skill.files)
                names.append(name)
                texts = folders.read_texts(root / name)
                new_files = {path: FileChange(None, text) for path, text in texts.items()}
                changes += self._build_changes(author, "add", home, root / name, new_files)
            return changes

        async def write() -> None:
            async with self._lock.hold():
                await self.notes.check_epoch(author.epoch)
                changes = await asyncio.to_thread(write_files)
                if changes:
                    await self.notes.log_changes(*changes)

        await run_to_completion(write())
        if not names:
            joined = reduce(_join_lines, problems)
            raise Refused(joined.key, **joined.values)
        return AddedSkills(names, problems)

    async def erase(
        self,
        scopes: frozenset[Scope],
        is_quoting: Callable[[str], bool],
        *,
        is_trial: bool = False,
    ) -> tuple[list[str], list[str]]:
        """Erase the paragraphs and lines of all skills for which `is_quoting` returns True.

        If `is_quoting` is true for the path or the front matter of a file, the whole file or skill
        is erased. With `is_trial`, nothing is erased. Returns the erased parts, and the names of
        the files that couldn't be written.
        """

        def erase_all() -> tuple[list[str], list[str]]:
            """Erase the matching parts of each file. The caller holds the lock."""
            erased_parts: list[str] = []
            failed_files: list[str] = []
            for root in map(self._root, sorted(scopes)):
                for path in _list_paths(root):
                    try:
                        with suppress(ValueError, FileNotFoundError):
                            erased_parts += _erase_in_file(
                                root, path, is_quoting, is_trial=is_trial
                            )
                    except OSError:
                        failed_files.append(f"skills/{path.relative_to(root).as_posix()}")
            return list(dict.fromkeys(erased_parts)), failed_files

        async with nullcontext() if is_trial else self._lock.hold():
            return await asyncio.to_thread(erase_all)

    def _build_changes(
        self, author: Author, action: str, scope: Scope, folder: Path, changes: FileChanges
    ) -> list[NoteChange]:
        """Build the changes to log. They get the same time, so that `undo` undoes them together."""
        target = f"{SKILL}:{folder.relative_to(self._root(scope)).as_posix()}"
        template = NoteChange(
            **author.source_values, scope=scope, target=target, action=action, at=self.clock.now()
        )
        return [
            replace(template, target=f"{target}:{path}", before=change.before, after=change.after)
            for path, change in changes.items()
        ]

    async def _change_files(
        self, skill: Skill, plan_changes: Callable[[], list[NoteChange]], author: Author
    ) -> list[NoteChange]:
        """Log the changes that `plan_changes` returns, write the files, and return the changes.

        If the files can't be written, the changes are deleted from the log, and Refused is raised.
        """

        def write_files(changes: Sequence[NoteChange]) -> None:
            contents: dict[str, bytes | None] = {}
            for change in changes:
                _, path = change.skill or ("", "")
                contents[path] = None if change.after is None else change.after.encode()
            folders.write_files(self._root(skill.scope), skill.folder, contents)

        async def change_files() -> list[NoteChange]:
            async with self._lock.hold():
                await self.notes.check_epoch(author.epoch)
                planned_changes = await asyncio.to_thread(plan_changes)
                changes = await self.notes.begin_changes(planned_changes, author.call)
                try:
                    await asyncio.to_thread(write_files, changes)
                except Refused:
                    await self.notes.withdraw_changes(changes)
                    raise
                await self.notes.finish_changes(changes)
                return changes

        return await run_to_completion(change_files())

    async def settle_interrupted_writes(self) -> None:
        """Complete or cancel the changes that a killed process was writing.

        If the file was written, the change is marked as complete. Otherwise the change is deleted
        from the log.
        """

        def is_written(change: NoteChange) -> bool:
            folder, path = change.skill or ("", "")
            return folders.read_text(self._root(change.scope) / folder, path) == change.after

        if not await self.notes.list_unfinished():
            return
        async with self._lock.hold():
            changes = [each for each in await self.notes.list_unfinished() if each.skill]
            written_changes = [
                each for each in changes if await asyncio.to_thread(is_written, each)
            ]
            await self.notes.finish_changes(written_changes)
            await self.notes.withdraw_changes(
                [each for each in changes if each not in written_changes]
            )


def _join_lines(first: Sentence, second: Sentence) -> Sentence:
    return Sentence("joined_lines", {"first": first, "second": second})


def _plan_changes(skill: Skill, operation: Operation) -> FileChanges:
    """Return the changes of files that an operation causes, without writing them.

    Raises Refused if the operation isn't possible.
    """
    path = operation.path.partition("/")[2] or SKILL_FILE
    place = f"{skill.name}/{path}"
    before = folders.read_text(skill.folder, path)
    after = operation.content
    if before is None:
        if operation.action in ("patch", "remove_file"):
            raise Refused("skill_place_missing", place=place)
    elif operation.action == "create":
        raise Refused("skill_exists", name=skill.name)
    elif operation.action in ("delete", "remove_file"):
        return _delete_whole_skill(skill, {path: FileChange(before, None)})
    elif operation.action == "patch":
        count = before.count(operation.old_text)
        if count != 1:
            raise Refused("skill_old_text", count=count, place=place)
        after = before.replace(operation.old_text, after)
    if not 0 < len(after) <= LIMIT_CHARS:
        raise Refused("skill_length", place=place, chars=len(after), limit=LIMIT_CHARS)
    if path == SKILL_FILE:
        parse_skill(after, place, skill.name)
    return {path: FileChange(before, after)}


def _delete_whole_skill(skill: Skill, changes: FileChanges) -> FileChanges:
    """Return the changes, extended by the deletion of all files if they delete SKILL.md."""
    skill_file = changes.get(SKILL_FILE)
    if skill_file is None or skill_file.after is not None:
        return changes
    texts = folders.read_texts(skill.folder)
    deletions = {path: FileChange(text, None) for path, text in texts.items()}
    return {**deletions, **changes}


def _format_index(skills: Sequence[Skill], description_chars: int) -> str:
    """Return a list of skills with a heading for each category.

    `skills` must be sorted by category. Descriptions are cut to `description_chars`. If that is 0,
    the list contains only names.
    """
    lines = []
    for category, group in groupby(skills, key=lambda skill: skill.category):
        if category:
            lines.append(f"### {clean_text(category)}")
        for skill in group:
            line = f"- {skill.name}"
            if description_chars:
                line += f": {shorten(clean_text(skill.description), description_chars)}"
                if skill.needs_shell:
                    line += f" ({NO_SHELL})"
            lines.append(line)
    return "\n".join(lines)


def _check_new_skill(
    skill: folders.UnpackedSkill, taken_names: Container[str], root: Path, author: Author
) -> str:
    """Return the name of a skill that can be added to `root`. Raises Refused if it can't."""
    place = f"{skill.title}/{SKILL_FILE}"
    name = parse_skill(folders.decode_text(skill.files[SKILL_FILE], place), place).name
    if name in taken_names or (root / name).exists():
        raise Refused("skill_exists_already", name=name)
    reason = None if author.is_insisting else _find_suspicious_text(skill.files)
    if reason:
        sentence = Sentence("ask_to_reword", {"suspicion": reason})
        raise Refused("skill_refused", name=name, reason=sentence)
    return name


def _find_suspicious_text(files: Mapping[str, bytes]) -> str | None:
    """Return a phrase about a suspicious name or text in the files, or None.

    Files that aren't text are skipped. Long texts are checked in overlapping parts.
    """
    texts = ["\n".join(files)]
    for content in files.values():
        with suppress(UnicodeDecodeError):
            texts.append(content.decode("utf-8-sig"))
    for text in texts:
        if "\0" in text:
            continue
        for start in range(0, max(1, len(text)), LIMIT_CHARS - OVERLAP_CHARS):
            if reason := find_suspicion(text[start : start + LIMIT_CHARS]):
                return reason
    return None


def _list_paths(root: Path) -> Iterator[Path]:
    """Yield the paths of all files below a folder, sorted. Links are left out."""
    paths = [Path(folder, name) for folder, _, names in os.walk(root) for name in names]
    for path in sorted(paths):
        if not path.is_symlink():
            yield path


def _erase_in_file(
    root: Path, path: Path, is_quoting: Callable[[str], bool], *, is_trial: bool
) -> list[str]:
    """Erase the parts of a file for which `is_quoting` returns True, and return these parts.

    If `is_quoting` is true for the path together with the front matter, the whole file is erased
    or, for a SKILL.md, the whole skill. A file that isn't text counts as one part. With `is_trial`,
    nothing is erased. Raises OSError if the file can't be written, and ValueError if it's too large
    or not a regular file.
    """
    relative_path = path.relative_to(root).as_posix()
    is_skill = path.name == SKILL_FILE and path.parent != root
    text = read_file(path, MAX_SEARCHED_BYTES).decode("utf-8", "replace")
    front, body = split_front_matter(text) if is_skill else ("", text)
    parts = _split_parts(path, body)
    erased_parts = [part for part in parts if is_quoting(part)]
    remaining = front + "".join(part for part in parts if part not in erased_parts)
    if is_quoting(f"{relative_path}\n{front}"):
        erased_parts = [relative_path.removesuffix(f"/{SKILL_FILE}")]
        remaining = ""
    if erased_parts and not is_trial:
        if is_skill and not remaining:
            folders.remove_skill(root, path.parent)
        else:
            folders.write_or_remove(path, remaining.encode() or None)
    return [part.strip() for part in erased_parts]


def _split_parts(path: Path, text: str) -> list[str]:
    """Split Markdown into paragraphs, and other text into lines. No characters are lost.

    A file that isn't UTF-8 text is one part.
    """
    if "\N{REPLACEMENT CHARACTER}" in text:
        return [text]
    pattern = _PARAGRAPH if path.suffix == ".md" else _LINE
    return pattern.findall(text)
