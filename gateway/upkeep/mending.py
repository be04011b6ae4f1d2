"""Finds the shell command that mends a fault of the store, its disk, SQLite, a plugin or a skill.

`mneme check` shows the command next to the fault. Where no command can mend a fault, the command
shows what a person must decide, such as which files fill the disk.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from config.operating_system import SYSTEM
from config.settings import Settings
from core.errors import MnemeError, Sentence, StoreError
from core.memory.plugins import SERVICES_FOLDER
from core.skills.format import SKILL_FILE
from gateway.installation import DISTRIBUTION, ROOT, find_update_advice

# A disk with less free space counts as full: an upgrade or an import soon fails on it.
MIN_FREE_BYTES = 20_000_000
_POSTGRES_PACKAGE = "psycopg[binary]>=3.3,<4"
_NEW_PYTHON = "3.13"
_LOCAL_HOSTS = ("", "localhost", "127.0.0.1", "::1")
# The commands for errors of the store that don't depend on the settings, by their keys.
_COMMANDS = {
    "store_newer": "mneme upgrade",
    "pg_newer": "mneme upgrade",
    "pg_url": "mneme config edit",
}


def find_store_command(settings: Settings, error: StoreError) -> str:
    """Return the command for an error of the store, or "" if there is none.

    A damaged or lost state.db isn't included, because a backup replaces it.
    """
    path = settings.home / "state.db"
    if isinstance(error.__cause__, ImportError):
        return find_postgres_package_command()
    match error.key:
        case "store_disk_full" | "store_disk_fault":
            return find_space_command(settings.home)
        case "store_read_only" | "store_unopened":
            return shlex.join(["chmod", "u+rw", str(path)])
        case "store_locked":
            # Names the program that has the file open.
            return shlex.join(["lsof", str(path)])
        case "pg_unreached":
            return _find_server_command(settings.store.url)
        case "pg_no_database":
            return _build_createdb_command(settings.store.url)
        case "pg_password":
            variable = settings.store.password
            return f"mneme config set {variable}" if variable else "mneme config edit"
    return _COMMANDS.get(error.key, "")


def find_editor_command(path: Path) -> str:
    """Return a command that opens a file in the person's editor."""
    return f"${{EDITOR:-vi}} {shlex.quote(str(path))}"


def find_removal_command(path: Path) -> str:
    """Return a command that moves a file or folder out of the way, without deleting it."""
    return shlex.join(["mv", str(path), f"{path}.away"])


def find_plugin_command(error: MnemeError) -> str:
    """Return the command for a plugin that can't be loaded, or "" for any other error."""
    match error.key:
        case "plugin_unsafe":
            return str(error.values["command"])
        case "memory_unknown" | "memory_built_in":
            return "mneme config edit"
        case "memory_provider_count":
            path = Path(str(error.values["path"]))
        case "memory_unusable":
            # The name of a plugin whose code fails is the path of its file.
            path = Path(str(error.values["name"]))
        case _:
            return ""
    is_plugin = path.is_absolute() and path.parent != SERVICES_FOLDER
    return find_editor_command(path) if is_plugin else ""


def find_skill_command(home: Path, problem: Sentence) -> str:
    """Return the command for a folder that isn't a valid skill.

    Places of skills in the home are relative to the home.
    """
    place = problem.values.get("place")
    if place is None:
        return "mneme skills list"
    path = home / str(place)
    match problem.key:
        case "skill_is_link":
            return "mneme config edit"
        case "skill_unreadable":
            return shlex.join(["chmod", "-R", "u+rwX", str(path)])
    return find_editor_command(path if path.name == SKILL_FILE else path / SKILL_FILE)


def has_little_space(home: Path) -> bool:
    """Return whether the disk of the home is nearly full."""
    return shutil.disk_usage(home).free < MIN_FREE_BYTES


def find_space_command(home: Path) -> str:
    """Return a command that lists the largest folders on the disk of the home."""
    place = home
    while not place.exists() or not place.is_mount():
        place = place.parent
    return f"du -xhd2 {shlex.quote(str(place))} 2>/dev/null | sort -h | tail -n 20"


def find_newer_python_command() -> str:
    """Return the command that moves this installation to a Python with its own, newer SQLite."""
    advice = find_update_advice()
    match advice.kind:
        case "uv":
            return f"uv tool upgrade --managed-python --python {_NEW_PYTHON} {DISTRIBUTION}"
        case "pipx":
            return f"pipx reinstall --fetch-missing-python --python {_NEW_PYTHON} {DISTRIBUTION}"
        case "container":
            return advice.command
        case "clone":
            new_environment = (
                f"uv venv --clear --seed --managed-python --python {_NEW_PYTHON} .venv"
            )
            return f"cd {shlex.quote(str(ROOT))} && {new_environment} && ./setup.sh"
    return f"uv tool install --managed-python --python {_NEW_PYTHON} {DISTRIBUTION}"


def find_postgres_package_command() -> str:
    """Return the command that installs the client of PostgreSQL into this environment."""
    package = shlex.quote(_POSTGRES_PACKAGE)
    if find_update_advice().kind == "uv":
        return f"uv pip install --python {shlex.quote(sys.executable)} {package}"
    return f"{shlex.quote(sys.executable)} -m pip install {package}"


def _find_server_command(url: str) -> str:
    """Return the command that starts PostgreSQL here, or asks whether it runs elsewhere."""
    host = urlsplit(url).hostname or ""
    if host not in _LOCAL_HOSTS:
        return shlex.join(["pg_isready", *_list_connection_options(url)])
    if SYSTEM == "macos":
        return "brew services start postgresql"
    return "sudo systemctl start postgresql"


def _build_createdb_command(url: str) -> str:
    parts = urlsplit(url)
    name = unquote(parts.path.lstrip("/")) or unquote(parts.username or "")
    user = ["--username", unquote(parts.username)] if parts.username else []
    return shlex.join(["createdb", *_list_connection_options(url), *user, name])


def _list_connection_options(url: str) -> list[str]:
    """Return the options with which PostgreSQL's programs connect to the server of a URL."""
    parts = urlsplit(url)
    options = ["--host", parts.hostname] if parts.hostname else []
    return [*options, "--port", str(parts.port)] if parts.port else options
