"""What the owner has written for a chat: words in mneme.toml and by /instructions, and the files in the home and in
folders of projects that tell an assistant how to work there.

Files are read in a thread when a prompt is written: plain ones of a bounded size, none outside of its folder. They are
given in the owner's own conversations, and where `[chats]` names folders for a chat. The guard warns of what looks
wrong in one; nothing of the owner's is left out for that.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Literal

from config.settings import ChatOptions, ContextOptions
from core.errors import ToolError
from core.guard.guard import cleaned, suspicion
from core.notes.notebook import OWNER_FILE_BYTES, Notebook
from core.store.notes import INSTRUCTIONS
from core.text.normalize import cut_in_the_middle, on_one_line
from core.types import LOCAL, Address, Json, Scope, Session, Tool, ToolContext

NAMES = ("AGENTS.md", "CLAUDE.md", ".cursorrules", "CODEX.md", ".github/copilot-instructions.md")
OWNER_FILES = ("SOUL.md", "AGENTS.md")
"""Of the home: they stand in everybody's prompts (`core.agent.prompt`)."""
RULES = Path(".cursor", "rules")
IMPORTS_DEEP = 5
FILES_MOST = 100
"""Of the imports, and of the rules, in one folder."""
FILES_LONG = 4
"""How many times the limit of one file all of them together may be long."""
DESCRIPTION_CHARS = 300

RULES_HEADING = "## Rules to read when they apply"
_RULES = (
    f"{RULES_HEADING}\nBefore you answer about a file that one of these patterns names, or about what one of these "
    "rules describes, read it with read_rule."
)
_FILES = (
    "# Files of your owner's projects\nHow to work there, as it was when this conversation began. Where two contradict "
    "each other, the later one counts."
)
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"(?<![\w@`./])@([\w./~+-]*[\w/])")
_FRONT_MATTER = re.compile(r"---[^\S\n]*\n(.*?\n)?---[^\S\n]*(?:\n|$)", re.DOTALL)
_KEY = re.compile(r"(description|globs|alwaysApply):(.*)")


FileState = Literal["read", "offered", "not read"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFile:
    """One that stands in prompts; that is offered there, where it `is_rule`; or that is not read, for a `reason`.
    `about`: of a rule, for which files it is and what it describes."""

    path: Path
    text: str = ""
    is_rule: bool = False
    about: str = ""
    reason: str = ""

    @property
    def state(self) -> FileState:
        return "not read" if self.reason else "offered" if self.is_rule else "read"


class ContextFiles:
    """The sections of prompts that the owner writes for a chat, and the tool that reads a rule."""

    def __init__(
        self, home: Path, options: ContextOptions, chats: Mapping[str, ChatOptions], notebook: Notebook
    ) -> None:
        self._home = home
        self._options = options
        self._chats = chats
        self._notebook = notebook
        self.warn: Callable[[str, str, str], Awaitable[None]] | None = None
        """Called with a file's name, the reason, and a digest of its text."""

    def words(self, scope: Scope, address: Address) -> str:
        """What mneme.toml says of a chat."""
        return self._chat(scope, address).instructions.strip()

    async def instructions(self, context: ToolContext) -> str:
        """The words for a chat, as a section."""
        kept = await self._notebook.entries(frozenset((context.scope,)), INSTRUCTIONS)
        words = filter(None, (self.words(context.scope, context.session.address), *kept))
        text = cleaned("\n\n".join(words))
        return f"# Instructions for this chat\n{text}" if text else ""

    async def section(self, context: ToolContext) -> str:
        """The files for a conversation, and the rules that can be read in it; the nearest to the chat last."""
        found = [file for folder in self._folders(context) for file in await self.read(folder)]
        rules = [cleaned(f"- {file.path}{file.about}") for file in found if file.state == "offered"]
        parts = await self._given([file for file in found if file.state == "read"])
        parts += ["\n".join([_RULES, *rules])] if rules else []
        return "\n\n".join([_FILES, *parts]) if parts else ""

    async def _given(self, found: Sequence[ContextFile]) -> list[str]:
        """The files as they are given, in their order; what is nearest has the first claim on the room."""
        left, parts = FILES_LONG * self._options.file_chars, list[str]()
        every = [self._home / name for name in OWNER_FILES]
        for file in reversed([one for one in found if one.path not in every]):
            text = cut_in_the_middle(file.text, min(self._options.file_chars, left), file.path.name) if left > 0 else ""
            left -= len(text)
            parts += [f"## {file.path}\n{cleaned(text)}"] if text else []
            if self.warn is not None and (reason := suspicion(text)):
                await self.warn(f"`{file.path}`", reason, sha256(file.text.encode()).hexdigest())
        return parts[::-1]

    def tools(self) -> Sequence[Tool]:
        """None where no folder is named."""
        if not any((self._options.folders, *(chat.folders for chat in self._chats.values()))):
            return ()
        path = {"type": "string", "description": "The rule's path, as the list in your prompt has it."}
        schema = {"type": "object", "properties": {"path": path}, "required": ["path"], "additionalProperties": False}
        said = "Read a rule of one of your owner's projects, from the list in your prompt."
        rule = Tool(name="read_rule", description=said, schema=schema, run=self._rule, is_quote=True, is_reading=True)
        return (replace(rule, is_offered=_has_rules),)

    @property
    def folders(self) -> Sequence[Path]:
        """All there are, each once, the home first."""
        chats = [folder for chat in self._chats.values() for folder in chat.folders]
        return list(dict.fromkeys([self._home, *self._options.folders, *chats]))

    async def read(self, folder: Path) -> Sequence[ContextFile]:
        """What is in a folder, also what is not read; of the home also what stands in everybody's prompts."""
        is_home = folder == self._home
        names = [*OWNER_FILES, *(name for name in NAMES if name not in OWNER_FILES)] if is_home else NAMES
        return await asyncio.to_thread(lambda: _Folder(folder, is_home=is_home).read(names))

    async def _rule(self, arguments: Json, context: ToolContext) -> str:
        path = str(arguments.get("path", "")).strip()
        for folder in self._folders(context):
            for file in await self.read(folder):
                if file.state == "offered" and str(file.path) == path:
                    return cleaned(cut_in_the_middle(file.text, self._options.file_chars, file.path.name))
        raise ToolError(f"There is no rule {path[:200]} here.")

    def _folders(self, context: ToolContext) -> Sequence[Path]:
        own = self._chat(context.scope, context.session.address).folders
        general = [self._home, *self._options.folders] if LOCAL in context.scopes else []
        return [*(folder for folder in general if folder not in own), *own]

    def _chat(self, scope: Scope, address: Address) -> ChatOptions:
        """By whose chat or which room it is, in any thread, and for what is scheduled there."""
        whose = scope.key.partition(":")[2].partition("#")[0]
        found = self._chats.get(whose) or self._chats.get(f"{address.platform}:{address.chat_id}")
        return found or ChatOptions()


def _has_rules(session: Session) -> bool:
    return f"\n{RULES_HEADING}\n" in session.system_prompt


@dataclass
class _Folder:
    """Reads one folder; of each name the nearest file there, or above it up to the folder of its repository."""

    folder: Path
    is_home: bool = False
    found: list[ContextFile] = field(default_factory=list)

    def read(self, names: Sequence[str]) -> Sequence[ContextFile]:
        if not os.path.isdir(self.folder):
            return [ContextFile(path=self.folder, reason="this folder is not there")]
        places = [self.folder] if self.is_home else _places(self.folder)
        for name in names:
            for base in places:
                if os.path.lexists(base / name):
                    self._add(base / name, base)
                    break
        rules = next((base for base in places if os.path.isdir(base / RULES)), None)
        if rules is not None and not self.is_home:
            for path in sorted(islice((rules / RULES).glob("*.mdc"), FILES_MOST)):
                self.found.append(_rule_of(path, *_text_of(path, rules)))
        return self.found

    def _add(self, path: Path, base: Path, depth: int = 0) -> None:
        """The file and what it imports, which stands behind it."""
        text, reason = _text_of(path, base)
        same = next((one.path for one in self.found if text and one.text == text), None)
        reason = f"it says the same as {same.name}" if same else reason
        self.found.append(ContextFile(path=path, text="" if reason else text, reason=reason))
        if not reason and (path.name == "CLAUDE.md" or depth):
            for name in _imports(text):
                self._import(Path(os.path.normpath(path.parent / os.path.expanduser(name))), name, base, depth + 1)

    def _import(self, path: Path, name: str, base: Path, depth: int) -> None:
        is_path = "." in name or "/" in name or os.path.isfile(path)
        if not is_path or path in [one.path for one in self.found]:
            return
        if depth > IMPORTS_DEEP:
            self.found.append(ContextFile(path=path, reason=f"it is imported more than {IMPORTS_DEEP} deep"))
        elif len(self.found) < FILES_MOST:
            self._add(path, base, depth)


def _places(folder: Path) -> Sequence[Path]:
    above = [folder, *folder.parents]
    top = next((number for number, one in enumerate(above) if os.path.exists(one / ".git")), 0)
    return above[: top + 1]


def _text_of(path: Path, base: Path) -> tuple[str, str]:
    """The text of a file, or why it is not read, as a clause."""
    try:
        real = os.path.realpath(path, strict=True)
        if not Path(real).is_relative_to(os.path.realpath(base)):
            return "", "it is outside of its folder"
        # What is no file might be waited for in vain.
        with open(os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                return "", "it is no file"
            content = file.read(OWNER_FILE_BYTES + 1) if state.st_size <= OWNER_FILE_BYTES else b""
    except FileNotFoundError:
        return "", "it is not there"
    except (OSError, ValueError) as error:
        return "", f"it cannot be read ({getattr(error, 'strerror', None) or error})"
    if state.st_size > OWNER_FILE_BYTES or len(content) > OWNER_FILE_BYTES:
        return "", f"it is over {OWNER_FILE_BYTES:,} bytes long"
    text = content.decode("utf-8-sig", "replace").strip()
    return ("", "it is no text") if "\0" in text else (text, "" if text else "it is empty")


def _imports(text: str) -> Iterator[str]:
    """What a CLAUDE.md names with an @, outside of code."""
    for found in _IMPORT.finditer(_CODE.sub("", text)):
        yield found[1].rstrip(".")


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
    return replace(file, is_rule=True, about=on_one_line(about)[:DESCRIPTION_CHARS])


def _parted(text: str) -> tuple[dict[str, str], str]:
    """The keys of its front matter, which looks like YAML, and is none where a pattern begins with a star; the rest."""
    front = _FRONT_MATTER.match(text)
    if front is None:
        return {}, text
    keys: dict[str, list[str]] = {}
    for line in (front[1] or "").splitlines():
        if found := _KEY.match(line):
            keys[found[1]] = [found[2]]
        elif keys and line.lstrip().startswith("- "):
            next(reversed(keys.values())).append(line.lstrip()[2:])
    plain = {key: [one.strip().strip("[]'\"") for one in values] for key, values in keys.items()}
    return {key: ", ".join(filter(None, values)) for key, values in plain.items()}, text[front.end() :].strip()
