"""Adds the owner's instructions and context files to prompts.

Instructions come from mneme.toml and from ``/instructions``. Context files, such as AGENTS.md, come
from the home and from project folders. The owner's own conversations use the home and the folders
listed under `context.folders` in mneme.toml. A chat also uses the folders that `[chats]` sets for
it.

Files are read in a thread when a prompt is written or a rule applies. A context file must be a
regular file of limited size inside its folder. Only `OWNER_FILES` may be links to a file elsewhere.
If a file contains suspicious text, the owner is warned, but the file is still used.
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
from core.errors import Refused, Sentence, to_sentence
from core.guard.guard import clean_text, find_suspicion
from core.guard.origin_and_fence import RULES_LEAD, neutralise
from core.notes.edits import normalize_newlines
from core.notes.notebook import Notebook
from core.skills.format import front_matter
from core.store.notes import INSTRUCTIONS
from core.text.normalize import language_data, to_single_line
from core.types import LOCAL_SCOPE, Address, Message, Scope, ToolContext

FILE_NAMES = (
    "AGENTS.md",
    "CLAUDE.md",
    ".cursorrules",
    "CODEX.md",
    ".github/copilot-instructions.md",
)
# Files of the home that are part of every prompt (`core.agent.prompt`).
OWNER_FILES = ("SOUL.md", "AGENTS.md")
RULES_FOLDER = ".cursor/rules"
# Files above this size aren't read.
MAX_OWNER_FILE_BYTES = 1_000_000
MAX_IMPORT_DEPTH = 5
TOO_DEEP = Sentence("context_too_deep", {"levels": MAX_IMPORT_DEPTH})
# The maximum number of files that a file imports, of rules in a folder, and of globs in a rule.
MAX_FILES = 100
# The limit for all files together is this many times the limit for one file.
TOTAL_LENGTH_FACTOR = 4
DESCRIPTION_CHARS = 300
_prompt_texts = partial(language_data, "prompts", "core.agent")
# A fenced code block, or `code` in a line.
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
# A file that a CLAUDE.md imports: @docs/style.md.
_IMPORT = re.compile(r"(?<![\w@`./])@([\w./~+-]*[\w/])")
# The comma between two globs, but not a comma in braces: "*.py,*.{ts,tsx}" has one.
_BETWEEN_GLOBS = re.compile(r",(?![^{}]*\})")
# The innermost braces of a glob: "{ts,tsx}".
_BRACES = re.compile(r"\{([^{}]*)\}")
# A file that a message names: boats.py or src/boats.py.
_FILE_NAME = re.compile(r"(?<![\w./~@+-])[\w./~@+-]*\.[^\W\d]\w*")

FileState = Literal["read", "offered", "not read"]
WarnCallback = Callable[[str, str, str], Awaitable[None]]
"""Reports suspicious text: the name of a file, the reason, and a digest of its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFile:
    """A context file in one of three states.

    - "not read": `reason` says why. It is a clause such as "it is empty".
    - "offered": a rule with a `description`. The prompt only lists the rule. The text of the rule
      is sent when a message names a file that the rule applies to, or when the model asks for it.
    - "read": the text is part of the prompt.
    """

    path: Path
    text: str = ""
    # The rest of a rule's line in the list: ", for *.py: how we write Python".
    description: str = ""
    # The rule applies to every file whose path matches any glob.
    globs: Sequence[str] = ()
    reason: Sentence | None = None

    @property
    def state(self) -> FileState:
        if self.reason:
            return "not read"
        return "offered" if self.description else "read"

    def applies_to(self, names: Sequence[str]) -> bool:
        """Return whether one of the paths ends with a match of one of this rule's globs."""
        patterns: set[str] = set()
        for glob in self.globs:
            for plain_glob in _expand_braces(glob):
                # "**/" may also match no folder: "src/**/a.py" includes "src/a.py".
                patterns.add(f"*/{plain_glob}")
                patterns.add(f"*/{plain_glob.replace('**/', '')}")
        paths = [f"/{os.path.normpath(name)}" for name in names]
        return any(fnmatchcase(path, pattern) for path in paths for pattern in patterns)


@dataclass
class OwnerFiles:
    """Reads the files in `home` that are part of every prompt.

    `warn` is called with the text of files that look suspicious.
    """

    home: Path
    warn: WarnCallback | None = None

    async def read_text(self, name: str, limit_chars: int) -> str:
        """Return the text of a file without hidden characters, or "" if it can't be read.

        If the text is longer than `limit_chars`, its middle is left out.
        """
        text, _ = await asyncio.to_thread(_read_file, self.home / name)
        return await _check_and_clean(
            self.warn, name, _truncate_middle(text, limit_chars, name), text
        )


@dataclass
class ContextFiles:
    """Writes the sections of prompts with the owner's instructions, context files and rules."""

    home: Path
    options: ContextOptions
    # Options of `[chats]` by chat.
    chats: Mapping[str, ChatOptions]
    notebook: Notebook
    warn: WarnCallback | None = None

    def configured_instructions(self, scope: Scope, address: Address) -> str:
        """Return the instructions for a chat from mneme.toml, or "" if it has none."""
        return self._chat_options(scope, address).instructions.strip()

    async def render_instructions(self, context: ToolContext) -> str:
        """Return the prompt section with the instructions for a chat, or "" if it has none.

        Instructions that a person called wrong are left out.
        """
        address = context.session.address
        settings_text = self.configured_instructions(context.scope, address)
        own_scope = frozenset((context.scope,))
        entries = await self.notebook.entries(own_scope, INSTRUCTIONS)
        if entries:
            verdicts = await self.notebook.load_verdicts(own_scope)
            entries = [each for each in entries if verdicts.get((INSTRUCTIONS, each)) != "wrong"]
        paragraphs = [paragraph for paragraph in (settings_text, *entries) if paragraph]
        text = clean_text("\n\n".join(paragraphs))
        return f"# Instructions for this chat\n{text}" if text else ""

    async def render_files(self, context: ToolContext) -> str:
        """Return the prompt section with the texts of the files and a list of the offered rules.

        Files of the chat's own folders come last. Returns "" if there are no files and no rules.
        """
        files = await self._list_files(context)
        sections = await self._render_texts([file for file in files if file.state == "read"])
        rules = [file for file in files if file.state == "offered"]
        if rules:
            lines = [_prompt_texts()["rules"]]
            for rule in rules:
                lines.append(await self._clean(rule, f"- {rule.path}{rule.description}"))
            sections.append("\n".join(lines))
        if not sections:
            return ""
        return "\n\n".join([_prompt_texts()["files"], *sections])

    async def render_rule_frames(
        self, rows: Sequence[Message], earlier: Sequence[Message], context: ToolContext
    ) -> list[tuple[str, ...]]:
        """Return, for each row, a frame with the rules for the files that it names.

        A row that needs no rule gets (). A rule that is already in this turn or in the `earlier`
        rows isn't repeated. Only the first `MAX_FILES` file names of a row are checked.
        """
        names_by_row = [_FILE_NAME.findall(row.text)[:MAX_FILES] for row in rows]
        rules: list[ContextFile] = []
        if any(names_by_row):
            rules = [file for file in await self._list_files(context) if file.globs]
        earlier_rules = ""
        for row in earlier:
            for block in row.sent_blocks or ():
                text = str(block.get("text", ""))
                if text.startswith(f"[{RULES_LEAD}"):
                    earlier_rules += text
        frames: list[tuple[str, ...]] = []
        for names in names_by_row:
            new_rules = [
                rule
                for rule in rules
                if f"## {rule.path}\n" not in earlier_rules and rule.applies_to(names)
            ]
            texts = await self._render_texts(new_rules)
            if not texts:
                frames.append(())
                continue
            frame = f"[{RULES_LEAD}:]\n" + neutralise("\n\n".join(texts))
            frames.append((frame,))
            earlier_rules += frame
        return frames

    async def read_rule(self, path: str, context: ToolContext) -> str | None:
        """Return the text of the offered rule with this path, or None if there is no such rule."""
        if not path.endswith(".mdc"):
            return None
        for file in await self._list_files(context):
            if file.state == "offered" and str(file.path) == path:
                return await self._clean(file, file.text)
        return None

    async def _render_texts(self, files: Sequence[ContextFile]) -> list[str]:
        """Return a section for each file, in order, except for `OWNER_FILES` of the home.

        The total length of the sections is limited. The last files are the most specific for the
        chat, so they are rendered first.
        """
        remaining_chars = TOTAL_LENGTH_FACTOR * self.options.file_chars
        owner_paths = [self.home / name for name in OWNER_FILES]
        sections: list[str] = []
        for file in reversed(files):
            if file.path in owner_paths:
                continue
            limit_chars = max(0, min(self.options.file_chars, remaining_chars))
            text = _truncate_middle(file.text, limit_chars, file.path.name).strip()
            remaining_chars -= len(text)
            sections.append(f"## {file.path}\n{await self._clean(file, text)}")
        sections.reverse()
        return sections

    async def _clean(self, file: ContextFile, text: str) -> str:
        return await _check_and_clean(self.warn, f"`{file.path}`", text, file.text)

    @property
    def folders(self) -> Sequence[Path]:
        """All configured folders without duplicates, the home first."""
        folders = [self.home, *self.options.folders]
        for chat in self.chats.values():
            folders += chat.folders
        return list(dict.fromkeys(folders))

    async def read_folder(self, folder: Path) -> Sequence[ContextFile]:
        """Return all context files of a folder, including those in the state "not read"."""
        return await asyncio.to_thread(_list_folder, folder, is_home=folder == self.home)

    async def _list_files(self, context: ToolContext) -> Sequence[ContextFile]:
        """Return the files of a conversation's folders. The chat's own folders come last."""
        own_folders = self._chat_options(context.scope, context.session.address).folders
        folders: list[Path] = []
        if LOCAL_SCOPE in context.scopes:
            general_folders = [self.home, *self.options.folders]
            folders = [folder for folder in general_folders if folder not in own_folders]
        files: list[ContextFile] = []
        for folder in (*folders, *own_folders):
            files += await self.read_folder(folder)
        return files

    def _chat_options(self, scope: Scope, address: Address) -> ChatOptions:
        """Return the options for a chat.

        The options of the account or group take precedence over those of the address. The options
        also apply to the chat's threads and to its scheduled questions.
        """
        # "room:telegram:-5#2" (the second generation of a group's scope) -> "telegram:-5"
        _, _, account_or_group = scope.key.partition(":")
        account_or_group, _, _ = account_or_group.partition("#")
        chat = f"{address.platform}:{address.chat_id}"
        return self.chats.get(account_or_group) or self.chats.get(chat) or ChatOptions()


async def _check_and_clean(
    warn: WarnCallback | None, name: str, excerpt: str, whole_text: str
) -> str:
    """Warn if an excerpt of a file looks suspicious, and return the cleaned excerpt.

    Hidden characters and imitations of our markup are removed. The warning includes a digest of the
    whole text, so that each version of a file is reported only once.
    """
    reason = find_suspicion(excerpt) if warn is not None else None
    if warn is not None and reason:
        digest = sha256(whole_text.encode("utf-8", "replace")).hexdigest()
        await warn(name, reason, digest)
    return clean_text(excerpt)


def _list_folder(folder: Path, *, is_home: bool) -> Sequence[ContextFile]:
    """Return the context files of a folder, the files they import, and the folder's rules.

    Each of `FILE_NAMES` is looked up in the folder, then in its parents up to the root of the
    repository, and the first match is used. For the home, neither parents nor rules are looked up.
    """
    if not os.path.isdir(folder):
        return [ContextFile(path=folder, reason=Sentence("context_no_folder"))]
    if is_home:
        return _list_home(folder)
    places = _folders_up_to_repository(folder)
    files: list[ContextFile] = []
    for name in FILE_NAMES:
        base = _find_nearest(places, name)
        if base is not None:
            files += _read_with_imports(base / name, base, files)
    base = _find_nearest(places, RULES_FOLDER)
    if base is not None:
        files += _read_rules(base)
    return files


def _list_home(home: Path) -> Sequence[ContextFile]:
    files: list[ContextFile] = []
    for name in dict.fromkeys((*OWNER_FILES, *FILE_NAMES)):
        if os.path.lexists(home / name):
            # Files of every prompt may be links to a file elsewhere.
            base = None if name in OWNER_FILES else home
            files += _read_with_imports(home / name, base, files)
    return files


def _folders_up_to_repository(folder: Path) -> list[Path]:
    """Return the folder and its parents up to the repository's root.

    Outside of a repository, only the folder itself is returned.
    """
    places = [folder, *folder.parents]
    for index, place in enumerate(places):
        if os.path.exists(place / ".git"):
            return places[: index + 1]
    return [folder]


def _find_nearest(places: Sequence[Path], name: str) -> Path | None:
    for place in places:
        if os.path.lexists(place / name):
            return place
    return None


def _read_with_imports(
    path: Path, base: Path | None, other_files: Sequence[ContextFile]
) -> list[ContextFile]:
    """Return a file, followed by the files that it imports, breadth first.

    Only a CLAUDE.md and the files that it imports may import files. A file gets the state "not
    read" if it has the same text as another file, or if it is outside of `base`.
    """
    files: list[ContextFile] = []
    queue = [path]
    depths = {path: 0} | {file.path: 0 for file in other_files}
    # The queue grows while it is read.
    for queued_path in islice(queue, MAX_FILES):
        depth = depths[queued_path]
        if depth <= MAX_IMPORT_DEPTH:
            text, reason = _read_file(queued_path, base)
        else:
            text, reason = "", TOO_DEEP
        twin = _find_text((*other_files, *files), text)
        if twin is not None:
            text, reason = "", Sentence("context_twin", {"name": twin.path.name})
        files.append(ContextFile(path=queued_path, text=text, reason=reason))
        if depth == 0 and queued_path.name != "CLAUDE.md":
            continue
        for target in _list_imports(text, queued_path):
            if target not in depths and len(queue) <= MAX_FILES:
                depths[target] = depth + 1
                queue.append(target)
    for path_too_many in queue[MAX_FILES:]:
        files.append(ContextFile(path=path_too_many, reason=Sentence("context_too_many")))
    return files


def _find_text(files: Sequence[ContextFile], text: str) -> ContextFile | None:
    """Return the first file with this text, or None if no file has it or the text is empty."""
    if not text:
        return None
    for file in files:
        if file.text == text:
            return file
    return None


def _read_rules(base: Path) -> list[ContextFile]:
    """Return the rules below `base`.

    If some rules are left out, the last item says how many.
    """
    paths = sorted((base / RULES_FOLDER).glob("*.mdc"))
    rules = [_parse_rule(path, *_read_file(path, base)) for path in paths[:MAX_FILES]]
    if len(paths) > MAX_FILES:
        reason = Sentence("context_more_rules", {"count": len(paths) - MAX_FILES})
        rules.append(ContextFile(path=base / RULES_FOLDER, reason=reason))
    return rules


def _read_file(path: Path, base: Path | None = None) -> tuple[str, Sentence | None]:
    """Return the text of a file and None, or "" and the reason why it isn't read.

    A file outside of `base` isn't read.
    """
    try:
        real_path = Path(os.path.realpath(path, strict=True))
        if base is not None and not real_path.is_relative_to(os.path.realpath(base)):
            return "", Sentence("context_outside")
        content = read_file(real_path, MAX_OWNER_FILE_BYTES)
    except FileNotFoundError:
        return "", Sentence("context_missing")
    except ValueError:
        if not real_path.is_file():
            return "", Sentence("context_no_file")
        return "", Sentence("context_too_large", {"limit": MAX_OWNER_FILE_BYTES})
    except OSError as error:
        return "", Sentence("context_unreadable", {"reason": error.strerror or str(error)})
    text = normalize_newlines(content.decode("utf-8-sig", "replace")).strip()
    if "\0" in text:
        return "", Sentence("context_no_text")
    if not text:
        return "", Sentence("context_empty")
    return text, None


def _list_imports(text: str, path: Path) -> Iterator[Path]:
    """Yield the files that a text imports with an @, such as @docs/style.md. Code is ignored.

    A bare word such as @ana counts only if a file with that name exists.
    """
    for match in _IMPORT.finditer(_CODE.sub("", text)):
        name = match[1].rstrip(".")
        target = Path(os.path.normpath(path.parent / os.path.expanduser(name)))
        if "." in name or "/" in name or os.path.isfile(target):
            yield target


def _parse_rule(path: Path, text: str, reason: Sentence | None) -> ContextFile:
    """Parse a rule in Cursor's format: front matter with ``description`` and ``globs``, then text.

    A rule with ``alwaysApply: true`` gets the state "read", so it's part of the prompt.
    """
    keys: Mapping[Any, Any] = {}
    try:
        keys, text = front_matter(text, path.name)
    except Refused as refusal:
        reason = to_sentence(refusal)
    text = text.strip()
    if not reason and not text:
        reason = Sentence("context_empty")
    file = ContextFile(path=path, text=text, reason=reason)
    if file.reason or str(keys.get("alwaysApply")).lower() == "true":
        return file

    description = keys.get("description") or ""
    globs = _parse_globs(keys.get("globs") or "")
    if not description and not globs:
        return replace(file, reason=Sentence("context_no_description"))
    line = f", for {', '.join(globs)}" if globs else ""
    if description:
        line += f": {description}"
    return replace(file, description=to_single_line(line)[:DESCRIPTION_CHARS], globs=globs)


def _truncate_middle(text: str, limit_chars: int, name: str) -> str:
    """Return the text, or its beginning and end if it's too long.

    The beginning takes 70 % of the limit, and the end 20 %. A mark between them says how many
    characters of `name`, such as a file, are left out.
    """
    if len(text) <= limit_chars:
        return text
    head = limit_chars * 7 // 10
    tail = limit_chars // 5
    mark = f"[{name} is cut here: {len(text) - head - tail:,} characters are left out]"
    return f"{text[:head]}\n{mark}\n{text[len(text) - tail :]}"


def _parse_globs(value: Any) -> tuple[str, ...]:
    """Return the globs of a rule.

    `value` is a list of globs, or a text with globs separated by commas.
    """
    items = _BETWEEN_GLOBS.split(value) if isinstance(value, str) else value
    globs = (str(item).strip() for item in items)
    return tuple(glob for glob in globs if glob)


def _expand_braces(glob: str) -> Iterator[str]:
    """Yield the globs that a glob with braces means: ``*.{ts,tsx}`` -> ``*.ts``, ``*.tsx``.

    At most `MAX_FILES` globs are yielded.
    """
    queue = [glob]
    # The queue grows while it is read.
    for pattern in queue:
        braces = _BRACES.search(pattern)
        if braces is None:
            yield pattern
        elif len(queue) < MAX_FILES:
            before, after = pattern[: braces.start()], pattern[braces.end() :]
            for choice in braces[1].split(",")[:MAX_FILES]:
                queue.append(f"{before}{choice}{after}")
