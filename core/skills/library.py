"""Skills as the rest of Mneme has them: who sees which, what becomes of one, the index that stands in the prompt, and
the model's tools.

Each change is one operation, worked out and checked before a file is touched, written under one lock, and logged with
what every file said before and after. Who typed it decides whether it is done or waits for a yes: what the model keeps
waits, unless all that it has read in the conversation was typed by the person or is the person's own.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate, groupby
from pathlib import Path
from typing import Literal

from pydantic import Field

from config.files import read_file
from config.settings import SkillOptions
from core.errors import Refused, ToolError
from core.guard.guard import LIMIT_CHARS, Arguments, cleaned, suspicion, tool_of
from core.notes.notebook import FolderLock, finished, folder_of
from core.ports import Clock
from core.review.pending import Review, doubt, foreign, reason_to_wait, typed
from core.skills import folders
from core.skills.folders import SKILL_FILE, Skill
from core.store.notes import SKILL, Author, NoteChange, Notes, Operation, PendingNote
from core.store.sessions import Conversations
from core.text.normalize import shortened
from core.types import LOCAL, ErasureEpoch, Scope, Tool, ToolContext

SEARCHED_BYTES = 5_000_000
"""A longer file is not looked through for what is forgotten."""
LENGTHS = (1024, 300, 200, 120, 60, 0)
"""To which descriptions are shortened until the index fits."""
LEFT_OUT = "\n({:,} more: skills_list)"
NO_SHELL = "needs a shell, which is not here"
HEADING = "# Skills\nProcedures that you keep. Before you do what one is for, read it with skill_view, and follow it."
SHOWN_CHARS = 20_000
_OWN = ("skills_list", "skill_view", "skill_manage", "memory", "reminder")
"""Tools that tell only what the person has typed or said yes to."""
_PARTS = {".md": re.compile(r".+?(?:\n[ \t]*\n\s*|\Z)", re.DOTALL)}
"""What goes of a file with a word in it, by its suffix: paragraphs of Markdown, else lines."""
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_Texts = Mapping[str, tuple[str | None, str | None]]
"""What files of a skill say before and after a change, by their path."""


@dataclass(frozen=True)
class Skills:
    """Those of the owner lie in `skills` of the home, those of another scope beside its notes, and more, which are the
    owner's too and are only read, in folders of the settings."""

    home: Path
    notes: Notes
    review: Review
    clock: Clock
    options: SkillOptions

    @cached_property
    def _lock(self) -> FolderLock:
        return FolderLock(self.home / "skills", "skills")

    def _root(self, scope: Scope) -> Path:
        """Where skills of a scope are kept."""
        return (self.home if scope == LOCAL else folder_of(self.home / "memories", scope)) / "skills"

    async def _read(self, scopes: frozenset[Scope]) -> Mapping[str, Skill | Refused]:
        """By name what these scopes see, of two skills the first, and what is wrong with a folder that is none."""
        places = [(self._root(scope), scope, True) for scope in sorted(scopes, key=lambda one: (one != LOCAL, one))]
        places += [(folder, LOCAL, False) for folder in self.options.folders if LOCAL in scopes]
        found, kept = dict[str, Skill | Refused](), await self.notes.skills(scopes)
        for root, scope, is_own in places:
            title = str(root).removeprefix(f"{self.home}{os.sep}")
            for name, one in await asyncio.to_thread(list, folders.read(root, title, scope, is_own=is_own)):
                if not isinstance(found.get(name), Skill):
                    found[name] = replace(one, **kept.get((scope, name), {})) if isinstance(one, Skill) else one
        return found

    async def listed(self, scopes: frozenset[Scope], words: str = "") -> tuple[list[Skill], list[str]]:
        """Those with all of the words, also disabled ones; and a sentence on each folder that is no skill."""
        found = (await self._read(scopes)).values()
        skills = [one for one in found if isinstance(one, Skill) and one.has(words)]
        skills.sort(key=lambda skill: (skill.category, skill.name))
        return skills, [str(one) for one in found if isinstance(one, Refused)]

    async def find(self, name: str, scopes: frozenset[Scope]) -> Skill:
        """With underscores for hyphens too. Raises Refused where there is none, or it cannot be read."""
        found = (await self._read(scopes)).get(name.strip().lower().replace("_", "-"))
        if not isinstance(found, Skill):
            raise found or Refused(f"There is no skill “{name[:80]}” here.")
        return found

    async def index(self, scopes: frozenset[Scope]) -> str:
        """The enabled skills by category, for a prompt: within the budget descriptions get shorter, then the least used
        are left out. Empty where there are none."""
        skills = [skill for skill in (await self.listed(scopes))[0] if not skill.is_disabled]
        for length in LENGTHS:
            if len(index := _index(skills, length)) <= self.options.index_chars:
                return index
        skills.sort(key=lambda skill: (-skill.uses, skill.name))
        left = self.options.index_chars - len(LEFT_OUT.format(folders.LOOKED_AT))
        number = sum(size <= left for size in accumulate(len(_index([skill], 0)) + 1 for skill in skills))
        names = sorted(skills[:number], key=lambda skill: (skill.category, skill.name))
        return f"{_index(names, 0)}{LEFT_OUT.format(len(skills) - number)}".strip()

    async def text(self, skill: Skill, path: str = "") -> str:
        """Of its SKILL.md, or another file. Raises Refused where there is no such file, or it is no text."""
        text = await asyncio.to_thread(folders.text_of, skill.folder, path or SKILL_FILE)
        if text is None:
            raise Refused(f"The skill {skill.name} has no file {path}; it has {', '.join(skill.files)}.")
        return text

    async def texts(self, scopes: frozenset[Scope]) -> list[tuple[str, str, str]]:
        """Of all skills kept for these scopes the name, path and text of each file, for an export."""
        own = [skill for skill in (await self.listed(scopes))[0] if skill.is_own]
        files = [(skill, await asyncio.to_thread(folders.texts_of, skill.folder)) for skill in own]
        return [(skill.name, path, text) for skill, texts in files for path, text in texts.items()]

    async def apply(self, scope: Scope, scopes: frozenset[Scope], done: Operation, author: Author) -> str:
        """Does it, or lets it wait where the author has not typed it; a sentence on that. Raises Refused."""
        home = LOCAL if LOCAL in scopes else scope
        skill = await self._meant(home, scopes | {home}, done)
        if author.origin != "typed":
            await asyncio.to_thread(_worked_out, skill, done)
            return await self.review.put_aside(home, SKILL, [done], author, author.reason)
        content, left_out = typed(done.content, LIMIT_CHARS, is_insisting=author.is_insisting)

        def work() -> list[NoteChange]:
            return self._kept(author, done.action, skill, _worked_out(skill, replace(done, content=content)))

        number = (await self._write(work, author))[0]
        state = "removed" if done.action == "delete" else "kept"
        return f"{left_out} The skill {skill.name} is {state}; `/memory undo {number}` takes that back.".strip()

    async def _meant(self, home: Scope, scopes: frozenset[Scope], done: Operation) -> Skill:
        """The skill that is to be changed, or made. Raises Refused where it is not to be."""
        name, _, path = done.path.partition("/")
        is_skill_file = path in ("", SKILL_FILE) and done.action not in ("write_file", "remove_file")
        if not is_skill_file and path.partition("/")[0] not in folders.FOLDERS:
            listed = ", ".join(f"{one}/" for one in folders.FOLDERS)
            raise Refused(f"Beside {SKILL_FILE}, which edit and patch change, a skill has files in {listed} only.")
        if done.action == "create":
            if isinstance((await self._read(scopes)).get(name), Skill):
                raise Refused(f"There is a skill {name} already: patch or edit it.")
            return Skill(name=name, description="", folder=self._root(home) / name, scope=home)
        skill = await self.find(name, scopes)
        if not skill.is_own:
            raise Refused(f"The skill {name} lies in a folder that I only read: {skill.folder}.")
        return skill

    async def approve(self, note: PendingNote, scopes: frozenset[Scope], epoch: ErasureEpoch | None = None) -> str:
        """Does for its author what waited. Raises Refused when it does not fit any more."""
        author = Author(**note.source, origin="typed", is_insisting=True, epoch=epoch)
        return await self.apply(note.scope, scopes | {note.scope}, note.operations[0], author)

    async def undo(self, change: NoteChange, author: Author) -> str:
        """With all that were one with it. Raises Refused where a file was changed since."""
        folder = self._root(change.scope) / (change.skill or ("", ""))[0]
        skill = Skill(name=folder.name, description="", folder=folder, scope=change.scope)
        made = await self.notes.together(frozenset((change.scope,)), change)
        texts = {one.target.rpartition(":")[2]: (one.after, one.before) for one in made}

        def work() -> list[NoteChange]:
            for path, (now, _) in texts.items():
                if folders.text_of(folder, path) != now:
                    raise Refused(f"{skill.name}/{path} was changed since, so change {change.id} cannot be undone.")
            return [replace(one, undoes=change.id) for one in self._kept(author, "undo", skill, texts)]

        await self._write(work, author)
        return f"Undone: change {', '.join(str(one.id) for one in made)} of the skill {skill.name}."

    async def add(self, source: Path, scope: Scope, scopes: frozenset[Scope], author: Author) -> Sequence[str]:
        """Takes over the skills of a folder or a zip archive, if all can be; their names. What looks wrong is asked
        about unless the author insists. Raises Refused."""
        home = LOCAL if LOCAL in scopes else scope
        root, there, found = self._root(home), await self._read(frozenset((home,))), dict[str, dict[str, bytes]]()

        def work() -> list[NoteChange]:
            for files in folders.unpacked(source):
                place = f"{SKILL_FILE} in {source.name}"
                name = folders.parse(folders.decoded(files[SKILL_FILE], place), place).name
                if name in found or name in there or (root / name).exists():
                    raise Refused(f"There is a skill {name} already; remove it first.")
                if not author.is_insisting and (reason := _doubtful(files)):
                    raise Refused(doubt(reason))
                found[name] = files
            changes = list[NoteChange]()
            for name, files in found.items():
                folders.keep(root, root / name, files)
                texts = {path: (None, text) for path, text in folders.texts_of(root / name).items()}
                changes += self._changes(author, "add", home, root / name, texts)
            return changes

        await self._write(work, author)
        return list(found)

    async def erase(
        self, scopes: frozenset[Scope], is_meant: Callable[[str], bool], *, is_trial: bool = False
    ) -> tuple[list[str], list[str]]:
        """Erases the paragraphs that are meant, files and skills whose name or description is, and says which; of a
        trial nothing goes. Also the files that cannot be written."""

        def work() -> tuple[list[str], list[str]]:
            gone, stuck = list[str](), list[str]()
            for root in map(self._root, sorted(scopes)):
                paths = sorted(Path(folder, name) for folder, _, names in os.walk(root) for name in names)
                for path in (one for one in paths if not one.is_symlink()):
                    try:
                        with suppress(ValueError, FileNotFoundError):
                            gone += _erased(root, path, is_meant, is_trial=is_trial)
                    except OSError:
                        stuck.append(f"skills/{path.relative_to(root).as_posix()}")
            return list(dict.fromkeys(gone)), stuck

        async with nullcontext() if is_trial else self._lock.hold():
            return await asyncio.to_thread(work)

    def _kept(self, author: Author, action: str, skill: Skill, texts: _Texts) -> list[NoteChange]:
        """Writes files of a skill, or removes all of it. Raises Refused."""
        if texts.get(SKILL_FILE, ("", ""))[1] is None:
            texts = {path: (text, None) for path, text in folders.texts_of(skill.folder).items()} | dict(texts)
        contents = {path: None if after is None else after.encode() for path, (_, after) in texts.items()}
        folders.keep(self._root(skill.scope), skill.folder, contents)
        return self._changes(author, action, skill.scope, skill.folder, texts)

    def _changes(self, author: Author, action: str, scope: Scope, folder: Path, texts: _Texts) -> list[NoteChange]:
        target = f"{SKILL}:{folder.relative_to(self._root(scope)).as_posix()}"
        change = NoteChange(**author.source, scope=scope, target=target, action=action, at=self.clock.now())
        return [
            replace(change, target=f"{target}:{path}", before=before, after=after)
            for path, (before, after) in texts.items()
        ]

    async def _write(self, work: Callable[[], Sequence[NoteChange]], author: Author) -> list[int]:
        """Logs the changes that were made; their numbers."""

        async def write() -> list[int]:
            async with self._lock.hold():
                await self.notes.check(author.epoch)
                return await self.notes.log(*await asyncio.to_thread(work))

        return await finished(write())


def _worked_out(skill: Skill, done: Operation) -> _Texts:
    """What becomes of which file. Raises Refused."""
    path = done.path.partition("/")[2] or SKILL_FILE
    place = f"{skill.name}/{path}"
    before, after = folders.text_of(skill.folder, path), done.content
    if before is None:
        if done.action in ("patch", "remove_file"):
            raise Refused(f"There is no file {place}.")
    elif done.action == "create":
        raise Refused(f"There is a skill {skill.name} already: patch or edit it.")
    elif done.action in ("delete", "remove_file"):
        return {path: (before, None)}
    elif done.action == "patch":
        if (often := before.count(done.old_text)) != 1:
            raise Refused(f"The old text stands {often} times in {place}; give a part of it that stands there once.")
        after = before.replace(done.old_text, after)
    if not 0 < len(after) <= LIMIT_CHARS:
        raise Refused(f"{place} would have {len(after):,} characters; it may have 1 to {LIMIT_CHARS:,}.")
    if path == SKILL_FILE:
        folders.parse(after, place, skill.name)
    return {path: (before, after)}


def _index(skills: Sequence[Skill], length: int) -> str:
    lines = []
    for category, some in groupby(skills, key=lambda skill: skill.category):
        lines += [f"### {cleaned(category)}"] if category else []
        for skill in some:
            about = f": {shortened(cleaned(skill.description), length)}" if length else ""
            lines.append(f"- {skill.name}{about}{f' ({NO_SHELL})' if skill.needs_shell and length else ''}")
    return "\n".join(lines)


def _doubtful(files: Mapping[str, bytes]) -> str | None:
    texts = ["\n".join(files)]
    for content in files.values():
        with suppress(UnicodeDecodeError):
            texts.append(content.decode("utf-8-sig"))
    return next(filter(None, (suspicion(text) for text in texts if "\0" not in text)), None)


def _erased(root: Path, path: Path, is_meant: Callable[[str], bool], *, is_trial: bool) -> list[str]:
    """What goes of a file, all of a skill for its name or description. Raises OSError, ValueError for what is none."""
    inside, is_skill = path.relative_to(root).as_posix(), path.name == SKILL_FILE and path.parent != root
    text = read_file(path, SEARCHED_BYTES).decode("utf-8", "replace")
    front, body = folders.split(text) if is_skill else ("", text)
    # What is no text goes whole.
    parts = [body] if "\N{REPLACEMENT CHARACTER}" in body else _PARTS.get(path.suffix, _LINE).findall(body)
    gone = [part for part in parts if is_meant(part)]
    left = front + "".join(part for part in parts if part not in gone)
    if is_meant(f"{inside}\n{front}"):
        gone, left = [inside.removesuffix(f"/{SKILL_FILE}")], ""
    if gone and not is_trial:
        folders.discard(root, path.parent) if is_skill and not left else folders.rewrite(path, left.encode() or None)
    return [part.strip() for part in gone]


class _List(Arguments):
    words: str = ""
    line: int = Field(default=1, ge=1)


class _View(Arguments):
    name: str
    path: str = ""
    line: int = Field(default=1, ge=1)


class _Manage(Arguments):
    action: Literal["create", "patch", "edit", "delete", "write_file", "remove_file"]
    name: str
    content: str = ""
    old_text: str = ""
    path: str = ""


@dataclass
class SkillTools:
    """`rule` reads one of the owner's projects, which is offered as a skill is, by its path."""

    skills: Skills
    conversations: Conversations
    rule: Callable[[str, ToolContext], Awaitable[str | None]] | None = None

    @property
    def all(self) -> Sequence[Tool]:
        of_skills = partial(tool_of, package="core.skills", is_quote=True)
        return (
            of_skills("skills_list", _List, self._list, is_reading=True),
            of_skills("skill_view", _View, self._view, is_reading=True),
            of_skills("skill_manage", _Manage, self._manage),
        )

    async def section(self, context: ToolContext) -> str:
        """Of the prompt of a session; empty where there are no skills."""
        index = await self.skills.index(context.scopes)
        return f"{HEADING}\n{index}" if index else ""

    async def _list(self, asked: _List, context: ToolContext) -> str:
        found, troubles = await self.skills.listed(context.scopes, asked.words)
        lines = [*map(described, found), *(f"({trouble})" for trouble in troubles)]
        return _from("\n".join(lines) or "There are no such skills.", asked.line)

    async def _view(self, asked: _View, context: ToolContext) -> str:
        if self.rule is not None and (rule := await self.rule(asked.name, context)) is not None:
            return _from(rule, asked.line)
        skill = await self.skills.find(asked.name, context.scopes)
        if skill.is_disabled:
            raise ToolError(f"The skill {skill.name} is switched off; the person can switch it on with /skills.")
        if asked.path not in ("", SKILL_FILE):
            return _from(cleaned(await self.skills.text(skill, asked.path)), asked.line)
        return await self.shown(skill, context, asked.line)

    async def shown(self, skill: Skill, context: ToolContext, line: int = 1) -> str:
        """Its SKILL.md from a line on, and which files it has; counts it as used."""
        text = _from(cleaned(await self.skills.text(skill)), line)
        if not context.session.is_incognito:
            await self.skills.notes.note_skill(skill.scope, skill.name, context.epoch, used_at=context.now)
        files = files_of(skill)
        return "\n".join([text.rstrip(), *(["", "Its files, for skill_view with a path:", *files] if files else [])])

    async def _manage(self, asked: _Manage, context: ToolContext) -> str:
        if not context.session.is_remembered:
            raise ToolError("Nothing is kept in this conversation; read skills only.")
        is_of_file = asked.action in ("patch", "write_file", "remove_file")
        path = "/".join(filter(None, (asked.name, asked.path))) if is_of_file else asked.name
        content = asked.content.encode("utf-8", "replace").decode()
        done = Operation(action=asked.action, content=content, old_text=asked.old_text, path=path)
        author = Author(account=context.account, message_id=context.message_id, epoch=context.epoch)
        if context.scope.is_room and context.scopes == {context.scope}:
            reason: str | None = "in a room the owner decides which skills there are"
            author = replace(author, origin="member")
        else:
            reason = reason_to_wait([done]) or await self._foreign(context)
        author = replace(author, origin="typed") if reason is None else replace(author, reason=reason)
        return await self.skills.apply(context.scope, context.scopes, done, author)

    async def _foreign(self, context: ToolContext) -> str | None:
        """Why what the model writes may be somebody else's, as a clause."""
        rows = await self.conversations.history(context.session, context.scopes)
        return foreign(rows, context.sender, _OWN)


def _from(text: str, line: int) -> str:
    """What stands from a line on, as much as is shown at a time."""
    rest = "".join(text.splitlines(keepends=True)[line - 1 :])
    if len(rest) <= SHOWN_CHARS:
        return rest
    shown = rest[:SHOWN_CHARS].rpartition("\n")[0] or rest[:SHOWN_CHARS]
    return f"{shown}\n[cut: it goes on with line={line + shown.count(chr(10)) + 1}]"


def files_of(skill: Skill) -> list[str]:
    """The files beside its SKILL.md, as lines of a list."""
    return [f"- {path} ({size:,} bytes)" for path, size in skill.files.items() if path != SKILL_FILE]


def described(skill: Skill, most: int = folders.DESCRIPTION_CHARS) -> str:
    """A skill as one line of a list."""
    about = {"category": skill.category} | {name: skill.known(name) for name in ("version", "platforms", "tags")}
    marks = [f"{name} {cleaned(shortened(value, 100))}" for name, value in about.items() if value]
    marks += [NO_SHELL] * skill.needs_shell + ["switched off"] * skill.is_disabled
    marks += [f"uses: {skill.uses:,}, last on {skill.used_at:%Y-%m-%d}"] if skill.used_at else []
    more = f" ({'; '.join(marks)})" if marks else ""
    return f"- {skill.name}: {cleaned(shortened(skill.description, most))}{more}"
