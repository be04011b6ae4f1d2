"""What the owner has written for a chat: words in mneme.toml and by /instructions, and the files in the home and in
folders of projects that tell an assistant how to work there.

Files are read in a thread, when a prompt is written or a rule applies: plain ones of a bounded size, none outside of
its folder but those of the home, which may be links. They are given in the owner's own conversations, and where
`[chats]` names folders for a chat. The guard warns of what looks wrong in one; nothing of the owner's is left out for
that.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from config.files import read_file
from config.settings import ChatOptions, ContextOptions
from core.errors import Refused
from core.guard.fence import APPLYING, neutralise
from core.guard.guard import cleaned, suspicion
from core.notes.notebook import Notebook, with_plain_lines
from core.skills.folders import front_matter
from core.store.notes import INSTRUCTIONS
from core.text.normalize import cut_in_the_middle, language_data, on_one_line
from core.types import LOCAL, Address, Message, Scope, ToolContext

NAMES = ("AGENTS.md", "CLAUDE.md", ".cursorrules", "CODEX.md", ".github/copilot-instructions.md")
OWNER_FILES = ("SOUL.md", "AGENTS.md")
"""Of the home: they stand in everybody's prompts (`core.agent.prompt`)."""
RULES = ".cursor/rules"
OWNER_FILE_BYTES = 1_000_000
"""A longer file is none for a prompt."""
IMPORTS_DEEP = 5
TOO_DEEP = f"it is imported more than {IMPORTS_DEEP} deep"
FILES_MOST = 100
"""In one folder, with imports; rules, and their patterns, count by themselves."""
FILES_LONG = 4
"""How many times the limit of one file all of them together may be long."""
DESCRIPTION_CHARS = 300
_told = partial(language_data, "prompts", "core.agent")
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"(?<![\w@`./])@([\w./~+-]*[\w/])")
_BETWEEN_GLOBS = re.compile(r",(?![^{}]*\})")
_BRACES = re.compile(r"\{([^{}]*)\}")
_NAMED = re.compile(r"(?<![\w./~@+-])[\w./~@+-]*\.[^\W\d]\w*")
"""A file in a message: boats.py or src/boats.py."""

FileState = Literal["read", "offered", "not read"]
Warn = Callable[[str, str, str], Awaitable[None]]
"""Told of what looks wrong: a file's name, the reason, and a digest of its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFile:
    """One that stands in prompts; that is offered there, with what it is `about`, and applies to files that fit one of
    its `globs`; or that is not read, for a `reason`."""

    path: Path
    text: str = ""
    about: str = ""
    globs: Sequence[str] = ()
    reason: str = ""

    @property
    def state(self) -> FileState:
        return "not read" if self.reason else "offered" if self.about else "read"

    def is_for(self, names: Sequence[str]) -> bool:
        """Whether it applies to one of some files, by the ends of their paths."""
        globs = [one for glob in self.globs for one in _without_braces(glob)]
        # Two stars and a slash are any folders, or none.
        patterns = {f"*/{one}" for glob in globs for one in (glob, glob.replace("**/", ""))}
        return any(fnmatchcase(f"/{os.path.normpath(name)}", pattern) for name in names for pattern in patterns)


@dataclass
class OwnerFiles:
    """The files in `home` that stand in every prompt; `warn` is called once for what one says."""

    home: Path
    warn: Warn | None = None

    async def text(self, name: str, limit_chars: int) -> str:
        """The file without hidden characters, cut in the middle where it is too long; empty where there is none."""
        text, _ = await asyncio.to_thread(_text_of, self.home / name)
        return await _looked_at(self.warn, name, cut_in_the_middle(text, limit_chars, name), text)


@dataclass
class ContextFiles:
    """The sections of prompts that the owner writes for a chat, and the rules that are read when they apply."""

    home: Path
    options: ContextOptions
    chats: Mapping[str, ChatOptions]
    notebook: Notebook
    warn: Warn | None = None

    def words(self, scope: Scope, address: Address) -> str:
        """What mneme.toml says of a chat."""
        return self._chat(scope, address).instructions.strip()

    async def instructions(self, context: ToolContext) -> str:
        """The words for a chat, as a section."""
        kept = await self.notebook.entries(frozenset((context.scope,)), INSTRUCTIONS)
        words = filter(None, (self.words(context.scope, context.session.address), *kept))
        text = cleaned("\n\n".join(words))
        return f"# Instructions for this chat\n{text}" if text else ""

    async def section(self, context: ToolContext) -> str:
        """The files for a conversation, and the rules that can be read in it; the nearest to the chat last."""
        found = await self._found(context)
        parts = await self._given([file for file in found if file.state == "read"])
        if rules := [file for file in found if file.state == "offered"]:
            listed = [await self._shown(file, f"- {file.path}{file.about}") for file in rules]
            parts.append("\n".join([_told()["rules"], *listed]))
        return "\n\n".join([_told()["files"], *parts]) if parts else ""

    async def frames(
        self, rows: Sequence[Message], earlier: Sequence[Message], context: ToolContext
    ) -> list[tuple[str, ...]]:
        """What goes along with each of the rows: the rules for files that it names, once in what the model reads."""
        names = [_NAMED.findall(row.text)[:FILES_MOST] for row in rows]
        rules = [file for file in await self._found(context) if file.globs] if any(names) else []
        sent = (str(block.get("text", "")) for row in earlier for block in row.sent or ())
        known, framed = "".join(text for text in sent if text.startswith(f"[{APPLYING}")), list[tuple[str, ...]]()
        for named in names:
            parts = await self._given([one for one in rules if f"## {one.path}\n" not in known and one.is_for(named)])
            framed.append((f"[{APPLYING}:]\n" + neutralise("\n\n".join(parts)),) if parts else ())
            known += "".join(framed[-1])
        return framed

    async def rule(self, path: str, context: ToolContext) -> str | None:
        """An offered rule by its path; None where it is none."""
        found = await self._found(context) if path.endswith(".mdc") else ()
        rule = next((file for file in found if file.state == "offered" and str(file.path) == path), None)
        return None if rule is None else await self._shown(rule, rule.text)

    async def _given(self, found: Sequence[ContextFile]) -> list[str]:
        """The files as they are given, in their order; what is nearest has the first claim on the room."""
        left, parts = FILES_LONG * self.options.file_chars, list[str]()
        every = [self.home / name for name in OWNER_FILES]
        for file in reversed([one for one in found if one.path not in every]):
            limit_chars = max(0, min(self.options.file_chars, left))
            text = cut_in_the_middle(file.text, limit_chars, file.path.name).strip()
            left -= len(text)
            parts.append(f"## {file.path}\n{await self._shown(file, text)}")
        return parts[::-1]

    async def _shown(self, file: ContextFile, text: str) -> str:
        return await _looked_at(self.warn, f"`{file.path}`", text, file.text)

    @property
    def folders(self) -> Sequence[Path]:
        """All there are, each once, the home first."""
        chats = [folder for chat in self.chats.values() for folder in chat.folders]
        return list(dict.fromkeys([self.home, *self.options.folders, *chats]))

    async def read(self, folder: Path) -> Sequence[ContextFile]:
        """What is in a folder, also what is not read; of the home also what stands in everybody's prompts."""
        return await asyncio.to_thread(_files_in, folder, is_home=folder == self.home)

    async def _found(self, context: ToolContext) -> Sequence[ContextFile]:
        """In the folders of a conversation."""
        own = self._chat(context.scope, context.session.address).folders
        general = [self.home, *self.options.folders] if LOCAL in context.scopes else []
        folders = [*(folder for folder in general if folder not in own), *own]
        return [file for folder in folders for file in await self.read(folder)]

    def _chat(self, scope: Scope, address: Address) -> ChatOptions:
        """By whose chat or which room it is, in any thread, and for what is scheduled there."""
        whose = scope.key.partition(":")[2].partition("#")[0]
        found = self.chats.get(whose) or self.chats.get(f"{address.platform}:{address.chat_id}")
        return found or ChatOptions()


async def _looked_at(warn: Warn | None, name: str, shown: str, text: str) -> str:
    """What is shown of a text, cleaned; the owner is warned of what looks wrong in it."""
    if warn is not None and (reason := suspicion(shown)):
        await warn(name, reason, sha256(text.encode("utf-8", "replace")).hexdigest())
    return cleaned(shown)


def _files_in(folder: Path, *, is_home: bool) -> Sequence[ContextFile]:
    """Of each name the nearest file there, or above it up to the folder of its repository; and the rules."""
    if not os.path.isdir(folder):
        return [ContextFile(path=folder, reason="this folder is not there")]
    above, found = [folder, *folder.parents], list[ContextFile]()
    top = next((number for number, one in enumerate(above) if os.path.exists(one / ".git")), 0)
    places = above[: 1 if is_home else top + 1]
    for name in dict.fromkeys((*OWNER_FILES, *NAMES) if is_home else NAMES):
        if (base := _nearest(places, name)) is not None:
            found += _with_imports(base / name, None if is_home and name in OWNER_FILES else base, found)
    base = None if is_home else _nearest(places, RULES)
    return found if base is None else [*found, *_rules_in(base)]


def _nearest(places: Sequence[Path], name: str) -> Path | None:
    return next((one for one in places if os.path.lexists(one / name)), None)


def _with_imports(path: Path, base: Path | None, before: Sequence[ContextFile]) -> list[ContextFile]:
    """The file and, behind it, what it imports, level by level."""
    found, due = list[ContextFile](), [path]
    depths = {path: 0} | {one.path: 0 for one in before}
    for one in islice(due, FILES_MOST):
        text, reason = _text_of(one, base) if depths[one] <= IMPORTS_DEEP else ("", TOO_DEEP)
        if same := next((file.path.name for file in (*before, *found) if text and file.text == text), None):
            text, reason = "", f"it says the same as {same}"
        found.append(ContextFile(path=one, text=text, reason=reason))
        for target in _imports(text, one) if depths[one] or one.name == "CLAUDE.md" else ():
            if target not in depths and len(due) <= FILES_MOST:
                depths[target] = depths[one] + 1
                due.append(target)
    return [*found, *(ContextFile(path=one, reason="too many files are imported") for one in due[FILES_MOST:])]


def _rules_in(base: Path) -> list[ContextFile]:
    paths = sorted((base / RULES).glob("*.mdc"))
    rules = [_rule_of(path, *_text_of(path, base)) for path in paths[:FILES_MOST]]
    left = [ContextFile(path=base / RULES, reason=f"there are {len(paths) - FILES_MOST:,} more rules")]
    return [*rules, *(left if len(paths) > FILES_MOST else ())]


def _text_of(path: Path, base: Path | None = None) -> tuple[str, str]:
    """The text of a file, or why it is not read, as a clause. Nothing outside of `base` is read."""
    try:
        real = Path(os.path.realpath(path, strict=True))
        if base is not None and not real.is_relative_to(os.path.realpath(base)):
            return "", "it is outside of its folder"
        content = read_file(real, OWNER_FILE_BYTES)
    except FileNotFoundError:
        return "", "it is not there"
    except ValueError as error:
        return "", str(error)
    except OSError as error:
        return "", f"it cannot be read ({error.strerror or error})"
    text = with_plain_lines(content.decode("utf-8-sig", "replace")).strip()
    return ("", "it is no text") if "\0" in text else (text, "" if text else "it is empty")


def _imports(text: str, path: Path) -> Iterator[Path]:
    """The files that a CLAUDE.md names with an @, outside of code."""
    for found in _IMPORT.finditer(_CODE.sub("", text)):
        name = found[1].rstrip(".")
        target = Path(os.path.normpath(path.parent / os.path.expanduser(name)))
        if "." in name or "/" in name or os.path.isfile(target):
            yield target


def _rule_of(path: Path, text: str, reason: str) -> ContextFile:
    """A rule of Cursor."""
    keys: Mapping[Any, Any] = {}
    try:
        keys, text = front_matter(text, path.name)
    except Refused as refusal:
        reason = str(refusal).rstrip(".")
    file = ContextFile(path=path, text=text.strip(), reason=reason or ("" if text.strip() else "it is empty"))
    if file.reason or str(keys.get("alwaysApply")).lower() == "true":
        return file
    what, given = (keys.get(key) or "" for key in ("description", "globs"))
    listed = _BETWEEN_GLOBS.split(given) if isinstance(given, str) else given
    globs = tuple(filter(None, (str(one).strip() for one in listed)))
    if not what and not globs:
        return replace(file, reason="it says neither when it applies nor what it describes")
    about = f"{', for ' if globs else ''}{', '.join(globs)}{': ' if what else ''}{what}"
    return replace(file, about=on_one_line(about)[:DESCRIPTION_CHARS], globs=globs)


def _without_braces(glob: str) -> Iterator[str]:
    """*.{ts,tsx} is *.ts and *.tsx."""
    due = [glob]
    for one in due:
        found = _BRACES.search(one)
        if found is None:
            yield one
        elif len(due) < FILES_MOST:
            choices = found[1].split(",")[:FILES_MOST]
            due += [f"{one[: found.start()]}{choice}{one[found.end() :]}" for choice in choices]
