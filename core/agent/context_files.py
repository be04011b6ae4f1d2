"""What the owner has written for a chat: words in mneme.toml and by /instructions, and the files in the home and in
folders of projects that tell an assistant how to work there.

Files are read in a thread when a prompt is written: plain ones of a bounded size, none outside of its folder but those
of the home, which may be links. They are given in the owner's own conversations, and where `[chats]` names folders for
a chat. The guard warns of what looks wrong in one; nothing of the owner's is left out for that.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Literal

from config.files import read_file
from config.settings import ChatOptions, ContextOptions
from core.errors import ToolError
from core.guard.guard import cleaned, suspicion
from core.notes.notebook import Notebook
from core.store.notes import INSTRUCTIONS
from core.text.normalize import cut_in_the_middle, language_data, on_one_line
from core.types import LOCAL, Address, Json, Scope, Tool, ToolContext

NAMES = ("AGENTS.md", "CLAUDE.md", ".cursorrules", "CODEX.md", ".github/copilot-instructions.md")
OWNER_FILES = ("SOUL.md", "AGENTS.md")
"""Of the home: they stand in everybody's prompts (`core.agent.prompt`)."""
RULES = Path(".cursor", "rules")
OWNER_FILE_BYTES = 1_000_000
"""A longer file is none for a prompt."""
IMPORTS_DEEP = 5
FILES_MOST = 100
"""Of the imports, and of the rules, in one folder."""
FILES_LONG = 4
"""How many times the limit of one file all of them together may be long."""
DESCRIPTION_CHARS = 300
_told = partial(language_data, "prompts", "core.agent")
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"(?<![\w@`./])@([\w./~+-]*[\w/])")
_FRONT_MATTER = re.compile(r"---[^\S\n]*\n(.*?\n)?---[^\S\n]*(?:\n|$)", re.DOTALL)
_KEY = re.compile(r"^(description|globs|alwaysApply):(.*(?:\n[^\S\n]*- .*)*)", re.MULTILINE)

FileState = Literal["read", "offered", "not read"]
Warn = Callable[[str, str, str], Awaitable[None]]
"""Told of what looks wrong: a file's name, the reason, and a digest of its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFile:
    """One that stands in prompts; that is offered there, with what it is `about`; or that is not read, for a
    `reason`."""

    path: Path
    text: str = ""
    about: str = ""
    reason: str = ""

    @property
    def state(self) -> FileState:
        return "not read" if self.reason else "offered" if self.about else "read"


@dataclass
class OwnerFiles:
    """The files in `home` that stand in every prompt; `warn` is called once for what one says."""

    home: Path
    warn: Warn | None = None

    async def text(self, name: str, limit_chars: int) -> str:
        """The file without hidden characters, cut in the middle where it is too long; empty where there is none."""
        text, _ = await asyncio.to_thread(_text_of, self.home / name)
        shown = cut_in_the_middle(text, limit_chars, name)
        await _warn(self.warn, name, shown, text)
        return cleaned(shown)


@dataclass
class ContextFiles:
    """The sections of prompts that the owner writes for a chat, and the tool that reads a rule."""

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
        found = [file for folder in self._folders(context) for file in await self.read(folder)]
        rules = [cleaned(f"- {file.path}{file.about}") for file in found if file.state == "offered"]
        parts = await self._given([file for file in found if file.state == "read"])
        parts += ["\n".join([_told()["rules"], *rules])] if rules else []
        return "\n\n".join([_told()["files"], *parts]) if parts else ""

    async def _given(self, found: Sequence[ContextFile]) -> list[str]:
        """The files as they are given, in their order; what is nearest has the first claim on the room."""
        left, parts = FILES_LONG * self.options.file_chars, list[str]()
        every = [self.home / name for name in OWNER_FILES]
        for file in reversed([one for one in found if one.path not in every]):
            text = cut_in_the_middle(file.text, min(self.options.file_chars, left), file.path.name) if left > 0 else ""
            left -= len(text)
            parts += [f"## {file.path}\n{cleaned(text)}"] if text else []
            await _warn(self.warn, f"`{file.path}`", text, file.text)
        return parts[::-1]

    def tools(self) -> Sequence[Tool]:
        """None where no folder is named."""
        if len(self.folders) == 1:
            return ()
        path = {"type": "string", "description": "The rule's path, as the list in your prompt has it."}
        schema = {"type": "object", "properties": {"path": path}, "required": ["path"], "additionalProperties": False}
        said = "Read a rule of one of your owner's projects, from the list in your prompt."
        rule = Tool(name="read_rule", description=said, schema=schema, run=self._rule, is_quote=True, is_reading=True)
        return (replace(rule, is_offered=lambda session: _told()["rules"] in session.system_prompt),)

    @property
    def folders(self) -> Sequence[Path]:
        """All there are, each once, the home first."""
        chats = [folder for chat in self.chats.values() for folder in chat.folders]
        return list(dict.fromkeys([self.home, *self.options.folders, *chats]))

    async def read(self, folder: Path) -> Sequence[ContextFile]:
        """What is in a folder, also what is not read; of the home also what stands in everybody's prompts."""
        return await asyncio.to_thread(_Folder(folder, is_home=folder == self.home).read)

    async def _rule(self, arguments: Json, context: ToolContext) -> str:
        path = str(arguments.get("path", "")).strip()
        for folder in self._folders(context):
            for file in await self.read(folder):
                if file.state == "offered" and str(file.path) == path:
                    return cleaned(cut_in_the_middle(file.text, self.options.file_chars, file.path.name))
        raise ToolError(f"There is no rule {path[:200]} here.")

    def _folders(self, context: ToolContext) -> Sequence[Path]:
        own = self._chat(context.scope, context.session.address).folders
        general = [self.home, *self.options.folders] if LOCAL in context.scopes else []
        return [*(folder for folder in general if folder not in own), *own]

    def _chat(self, scope: Scope, address: Address) -> ChatOptions:
        """By whose chat or which room it is, in any thread, and for what is scheduled there."""
        whose = scope.key.partition(":")[2].partition("#")[0]
        found = self.chats.get(whose) or self.chats.get(f"{address.platform}:{address.chat_id}")
        return found or ChatOptions()


async def _warn(warn: Warn | None, name: str, shown: str, text: str) -> None:
    if warn is not None and (reason := suspicion(shown)):
        await warn(name, reason, sha256(text.encode("utf-8", "replace")).hexdigest())


@dataclass
class _Folder:
    """Reads one folder; of each name the nearest file there, or above it up to the folder of its repository."""

    folder: Path
    is_home: bool
    found: list[ContextFile] = field(default_factory=list)

    def read(self) -> Sequence[ContextFile]:
        if not os.path.isdir(self.folder):
            return [ContextFile(path=self.folder, reason="this folder is not there")]
        places = [self.folder] if self.is_home else _places(self.folder)
        for name in dict.fromkeys((*OWNER_FILES, *NAMES) if self.is_home else NAMES):
            base = next((one for one in places if os.path.lexists(one / name)), None)
            if base is not None:
                self._add(base / name, None if self.is_home and name in OWNER_FILES else base)
        base = next((one for one in places if os.path.isdir(one / RULES)), None)
        if base is not None and not self.is_home:
            rules = sorted(islice((base / RULES).glob("*.mdc"), FILES_MOST))
            self.found += [_rule_of(path, *_text_of(path, base)) for path in rules]
        return self.found

    def _add(self, path: Path, base: Path | None, depth: int = 0) -> None:
        """The file and, behind it, what it imports."""
        text, reason = _text_of(path, base)
        same = next((one.path for one in self.found if text and one.text == text), None)
        reason = f"it says the same as {same.name}" if same else reason
        self.found.append(ContextFile(path=path, text="" if reason else text, reason=reason))
        for target in _imports(text, path) if not reason and (path.name == "CLAUDE.md" or depth) else ():
            if target in [one.path for one in self.found] or len(self.found) >= FILES_MOST:
                continue
            if depth < IMPORTS_DEEP:
                self._add(target, base, depth + 1)
            else:
                reason = f"it is imported more than {IMPORTS_DEEP} deep"
                self.found.append(ContextFile(path=target, reason=reason))


def _places(folder: Path) -> Sequence[Path]:
    above = [folder, *folder.parents]
    top = next((number for number, one in enumerate(above) if os.path.exists(one / ".git")), 0)
    return above[: top + 1]


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
    text = content.decode("utf-8-sig", "replace").strip()
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
    keys, body = _parted(text)
    file = ContextFile(path=path, text=body, reason=reason or ("" if body else "it is empty"))
    if file.reason or keys.get("alwaysApply", "").lower() == "true":
        return file
    what, globs = keys.get("description"), keys.get("globs")
    if not what and not globs:
        return replace(file, text="", reason="it says neither when it applies nor what it describes")
    about = "".join([f", for {globs}" if globs else "", f": {what}" if what else ""])
    return replace(file, about=on_one_line(about)[:DESCRIPTION_CHARS])


def _parted(text: str) -> tuple[dict[str, str], str]:
    """The keys of its front matter, which looks like YAML, and is none where a pattern begins with a star; the rest."""
    front = _FRONT_MATTER.match(text)
    if front is None:
        return {}, text
    keys = {}
    for name, value in _KEY.findall(front[1] or ""):
        parts = (one.strip().removeprefix("- ").strip("[]'\" ") for one in value.splitlines())
        keys[name] = ", ".join(filter(None, parts))
    return keys, text[front.end() :].strip()
