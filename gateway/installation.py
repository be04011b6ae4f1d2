"""Checks that the imported packages belong to Mneme, and that every data file can be read.

This module also finds out how Mneme was installed and how to update it. Only the standard library
is imported, because this module runs before any other.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("config", "core", "adapters", "gateway")


def _list_languages(folder: str, prefix: str = "") -> tuple[str, ...]:
    """Return the language files of a folder.

    The English file is always listed, even if it's missing.
    """
    names = {path.name for path in (ROOT / folder / prefix).glob("*.toml")}
    return tuple(sorted(f"{prefix}{name}" for name in {"en.toml", *names}))


def _list_option_texts(folder: str) -> tuple[str, ...]:
    """Return the files with the purposes of options in one folder of gateway/texts.

    There is none for English: those texts are next to the options themselves.
    """
    paths = (ROOT / "gateway" / "texts" / folder).glob("*.toml")
    return tuple(sorted(f"{folder}/{path.name}" for path in paths))


DATA_FILES: Mapping[str, Sequence[str]] = {
    "adapters": ("data/hints.toml",),
    "config": ("default.toml", "model_servers.toml", "problems.toml", "soul.md"),
    "core": ("errors.toml",),
    "core/agent": (
        "data/compression.toml",
        "data/decisions.toml",
        "data/prompts.toml",
        "guidance.md",
        "offline.toml",
    ),
    "core/dates": ("data/feasts.toml", "data/foreign.toml", "data/period_words.toml"),
    "core/dates/requests": _list_languages("core/dates/requests", "data/"),
    "core/facts": (
        "data/changes.toml",
        "data/closeness.toml",
        "data/ends.toml",
        "data/evidence.toml",
        "data/patterns.toml",
        "data/prompts.toml",
        "data/topics.toml",
    ),
    "core/guard": ("data/patterns.toml",),
    "core/media": ("data/encodings.toml", "data/prompts.toml"),
    "core/memory": ("data/prompts.toml",),
    "core/tools": ("data/prompts.toml", "data/tool_words.toml"),
    "core/models": ("data/failures.toml",),
    "core/notes": ("data/prompts.toml",),
    "core/review": (
        "data/prompts.toml",
        "data/refusals.toml",
        "data/searches.toml",
        "data/wishes.toml",
    ),
    "core/scheduling": (
        "data/agenda.toml",
        "data/dialogue.toml",
        "data/moves.toml",
        "data/prompts.toml",
        "data/refusals.toml",
        "data/schedules.toml",
        "data/shifts.toml",
    ),
    "core/search": ("data/prompts.toml", "data/results.toml"),
    "core/skills": ("data/instructions.toml", "data/prompts.toml"),
    "core/store/postgres": ("functions.sql", "schema.sql", "upgrades.sql"),
    "core/store/sqlite": ("earlier.sql", "schema.sql"),
    "core/text": (
        "data/attributes.toml",
        "data/cjk.toml",
        "data/han.txt",
        "data/languages.toml",
        "data/pastes.toml",
        "data/short_messages.toml",
        "data/signs.toml",
        "data/smalltalk.toml",
        "data/words.toml",
    ),
    "gateway": ("data/setup.toml",),
    "gateway/commands": (
        "data/commands.toml",
        "data/confirmations.toml",
        "data/synonyms.toml",
    ),
    "gateway/texts": (
        *_list_languages("gateway/texts"),
        *_list_option_texts("options"),
        *_list_option_texts("services"),
        "data/cities.toml",
    ),
    "gateway/web": (
        "static/chat.js",
        "static/icon.svg",
        "static/page.css",
        "static/page.js",
        "templates/base.html",
        "templates/chat.html",
        "templates/checks.html",
        "templates/conversation.html",
        "templates/conversations.html",
        "templates/error.html",
        "templates/fact.html",
        "templates/facts.html",
        "templates/facts_list.html",
        "templates/forget.html",
        "templates/history.html",
        "templates/layout.html",
        "templates/login.html",
        "templates/logins.html",
        "templates/memory.html",
        "templates/memory_links.html",
        "templates/message.html",
        "templates/note.html",
        "templates/opening.html",
        "templates/parts.html",
        "templates/people.html",
        "templates/prompt.html",
        "templates/reading.html",
        "templates/recall.html",
        "templates/recall_reading.html",
        "templates/reminder.html",
        "templates/reminders.html",
        "templates/settings.html",
        "templates/skill.html",
        "templates/skills.html",
        "templates/today.html",
        "templates/use.html",
        "templates/week.html",
    ),
}
"""The data files, by folder. A test compares this list with the files of the repository."""

# The name of the package that pip, pipx and uv know.
DISTRIBUTION = "mneme-gateway"
# Files that exist only in a container.
_CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))
# The version in the file name of a wheel.
_WHEEL_VERSION = re.compile(r"(mneme_gateway-)[^-/]+(-[^/]+\.whl)\Z")


@dataclass(frozen=True, slots=True)
class UpdateAdvice:
    """Contains how Mneme was installed, and the commands that update and repair it."""

    kind: str
    command: str
    # Installs the same version again. In a clone, the names of the files must follow.
    repair: str


def find_update_advice() -> UpdateAdvice:
    """Return how to update and repair the installation that is running."""
    return describe_update(Path(sys.prefix), sys.executable, origin=find_origin())


def describe_update(
    prefix: Path,
    python: str,
    root: Path = ROOT,
    marks: Sequence[Path] = _CONTAINER_MARKS,
    origin: str = "",
) -> UpdateAdvice:
    """Return how to update and repair an installation.

    `prefix` is the environment of `python`. The packages are in `root`. `marks` are files that
    exist only in a container. `origin` is what was installed (see `find_origin`).
    """
    if (root / ".git").exists():
        folder = quote(str(root))
        update = f"cd {folder} && git pull && ./setup.sh"
        return UpdateAdvice("clone", update, f"cd {folder} && git restore")
    # Mneme's image has no virtual environment. If a container has one, a person has created it.
    is_virtual = (prefix / "pyvenv.cfg").exists()
    path = prefix.as_posix()
    if "/pipx/venvs/" in path:
        if not origin:
            return UpdateAdvice(
                "pipx", f"pipx upgrade {DISTRIBUTION}", f"pipx reinstall {DISTRIBUTION}"
            )
        return _describe_installer("pipx", "pipx install --force", "", origin)
    if "/uv/tools/" in path:
        if not origin:
            upgrade = f"uv tool upgrade {DISTRIBUTION}"
            return UpdateAdvice("uv", upgrade, f"{upgrade} --reinstall")
        return _describe_installer("uv", "uv tool install --force --reinstall", "", origin)
    if not is_virtual and any(mark.exists() for mark in marks):
        build = "docker compose build --no-cache && docker compose up -d"
        return UpdateAdvice("container", "git pull && docker compose up -d --build", build)
    return _describe_installer("pip", f"{quote(python)} -m pip install", "--upgrade", origin)


def _describe_installer(kind: str, install: str, upgrade: str, origin: str) -> UpdateAdvice:
    """Return the commands of a program that installs packages.

    Mneme is installed again from its `origin`, because a package index may not have it, or may have
    another program with its name.
    """
    repair = f"{install} --force-reinstall --no-deps" if kind == "pip" else install
    install = f"{install} {upgrade}".rstrip()
    if not origin:
        return UpdateAdvice(kind, f"{install} {DISTRIBUTION}", f"{repair} {DISTRIBUTION}")
    folder = Path(origin)
    if folder.is_dir():
        pull = "git pull && " if (folder / ".git").exists() else ""
        enter = f"cd {quote(origin)} && "
        return UpdateAdvice(kind, f"{enter}{pull}{install} .", f"{enter}{repair} .")
    newer = _WHEEL_VERSION.sub(r"\1VERSION\2", origin)
    return UpdateAdvice(kind, f"{install} {quote(newer)}", f"{repair} {quote(origin)}")


def find_origin() -> str:
    """Return the folder, the file or the address that Mneme was installed from.

    Returns "" if it comes from a package index, or if this isn't known.
    """
    # Imported here because only `mneme upgrade` and a broken installation need it.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        values = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
        url = str(values.get("url", ""))
    except (PackageNotFoundError, OSError, ValueError, AttributeError):
        return ""
    if "vcs_info" in values:
        return f"{values['vcs_info'].get('vcs', 'git')}+{url}"
    if url.startswith("file://"):
        return unquote(urlsplit(url).path)
    return url


def find_repair_command(problems: Sequence[str]) -> str:
    """Return the command that brings unreadable data files back (see `list_unreadable_files`).

    In a clone, it changes only these files.
    """
    advice = find_update_advice()
    if advice.kind != "clone":
        return advice.repair
    names = [problem.partition(" (")[0] for problem in problems]
    return f"{advice.repair} {' '.join(names)}"


def find_foreign_package() -> str | None:
    """Return an error message if Python would import another program's package instead of ours.

    This happens if a folder in PYTHONPATH has a package with a common name such as `config`.
    Returns None if all packages are ours.
    """
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is None:
            return f"Mneme can't start: its package `{name}` is missing. Install Mneme again."
        locations = [*(spec.submodule_search_locations or ()), *filter(None, [spec.origin])]
        if str(ROOT / name) not in {str(Path(place).resolve()) for place in locations}:
            return (
                f"Mneme can't start: Python finds another `{name}` first, at {locations[0]}. "
                "Remove that folder from PYTHONPATH, or start Mneme with PYTHONPATH= in front."
            )
    return None


@contextmanager
def hide_packages(*names: str) -> Iterator[None]:
    """Make optional packages look as if they weren't installed, while a library is imported.

    The library would load them, which takes time and memory for features that Mneme doesn't use. A
    package that is already loaded isn't hidden.
    """
    hidden = [name for name in names if name not in sys.modules]
    # If the entry of a module is None, the import fails as if the module were missing.
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


# Digests of the TOML files that could be read. Parsing them all takes a third of a second.
_readable_digests: set[bytes] = set()


def list_unreadable_files(root: Path = ROOT) -> list[str]:
    """Return the missing and broken data files, such as ``gateway/texts/en.toml (reason)``.

    All files are read, but one that hasn't changed since the last call isn't parsed again.
    """
    problems = []
    for folder, names in DATA_FILES.items():
        for name in names:
            path = root / folder / name
            try:
                content = path.read_bytes()
                if path.suffix == ".toml":
                    _check_toml(content)
                else:
                    content.decode()
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                problems.append(f"{folder}/{name} ({reason})")
    return problems


def _check_toml(content: bytes) -> None:
    """Raise ValueError if a file isn't TOML."""
    digest = blake2b(content).digest()
    if digest not in _readable_digests:
        tomllib.loads(content.decode())
        _readable_digests.add(digest)
