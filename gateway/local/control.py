"""Reports the state of a running gateway on a socket, and reloads changed settings.

A client sends a question as one line and gets a JSON object as one line. Only the user of the home
can open the socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import structlog

from config.settings import ENVIRONMENT, Settings, SettingsError
from gateway.local.sockets import find_socket
from gateway.logs import set_level

if TYPE_CHECKING:
    from gateway.services import Services

Json = dict[str, Any]
Question = Literal["state", "reload", "web"]
Handler = Callable[[], Awaitable[Json]]
ANSWER_TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 1_000_000
# Options that a running gateway can reload. All others need a restart.
LIVE_LIMITS = ("day", "day_for_owner", "owner_day", "room_day")
LIVE_OPTIONS = (
    "general.log_level",
    "owner.",
    "usage.",
    *(f"limits.{name}" for name in LIVE_LIMITS),
)
# Fields of `Settings` that no person sets.
_DERIVED_FIELDS = ("home", "advice")
_log = structlog.get_logger("control")


class ControlServer:
    """Answers questions of other commands about the running process."""

    def __init__(self, path: Path, handlers: Mapping[str, Handler]) -> None:
        self._path = path
        self._handlers = handlers

    async def run(self) -> None:
        """Answer questions until cancelled."""
        # The gateway holds the lock of the home, so an old socket belongs to no process.
        self._path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._answer, self._path)
        os.chmod(self._path, 0o600)
        try:
            await asyncio.Future()
        finally:
            server.close()
            self._path.unlink(missing_ok=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the question of one client, and close the connection."""
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                question = (await reader.readline()).decode("utf-8", "replace").strip()
                handler = self._handlers.get(question)
                answer = {} if handler is None else await handler()
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError, TimeoutError) as error:
            _log.warning("a question wasn't answered", error=type(error).__name__)
        finally:
            with contextlib.suppress(OSError):
                writer.close()


def ask_gateway(home: Path, question: Question) -> Json | None:
    """Send a question to the gateway of this home.

    Returns None if no gateway runs or if it doesn't answer.
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_TIMEOUT_S)
            connection.connect(os.fspath(find_socket(home, "control")))
            connection.sendall(f"{question}\n".encode())
            content = b""
            while not content.endswith(b"\n") and len(content) < MAX_ANSWER_BYTES:
                chunk = connection.recv(65536)
                if not chunk:
                    break
                content += chunk
        answer: Json = json.loads(content)
        return answer
    except (OSError, ValueError):
        return None


class LiveState:
    """Describes a running gateway, and applies settings that may change while it runs."""

    def __init__(
        self,
        services: Services,
        load_states: Callable[[], Mapping[str, str]],
        count_unanswered: Callable[[], int],
        count_gateways: Callable[[], int] = lambda: 1,
        list_taken_ports: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._list_taken_ports = list_taken_ports
        self._count_gateways = count_gateways
        self._services = services
        self._load_states = load_states
        self._count_unanswered = count_unanswered
        self._started_at: datetime = services.clock.now()
        # The settings that the process uses, including reloaded ones.
        self._settings = services.settings

    async def describe(self) -> Json:
        """Return facts about the gateway that only its process knows."""
        settings = self._services.settings
        return {
            "process": os.getpid(),
            "version": version("mneme-gateway"),
            "started_at": self._started_at.isoformat(),
            "platforms": dict(self._load_states()),
            "model": settings.model.chat if settings.has_model else None,
            "unanswered": self._count_unanswered(),
            # How many gateways work on the chats of this home.
            "gateways": self._count_gateways(),
            # The options of ports that another program uses, such as "web.port".
            "taken_ports": list(self._list_taken_ports()),
        }

    async def reload(self) -> Json:
        """Apply changed settings. Returns which options were applied, and which need a restart.

        If the settings are invalid, nothing changes, and the result contains the problems.
        """
        try:
            settings = Settings.load()
        except SettingsError as error:
            return {"problems": list(error.located_problems)}
        changes = list_changes(self._settings, settings)
        live = [path for path in changes if path.startswith(LIVE_OPTIONS)]
        self._settings = self._settings.model_copy(
            update={
                "general": self._settings.general.model_copy(
                    update={"log_level": settings.general.log_level}
                ),
                "owner": settings.owner,
                "usage": settings.usage,
                "limits": self._settings.limits.model_copy(
                    update={name: getattr(settings.limits, name) for name in LIVE_LIMITS}
                ),
            }
        )
        set_level(settings.general.log_level)
        self._services.usage_log.set_options(settings.usage, self._settings.limits)
        await self._services.store_owner(settings)
        self._services.on_change()
        return {"applied": live, "restart": [path for path in changes if path not in live]}


def list_changes(old: Settings, new: Settings) -> list[str]:
    """Return the dotted paths of the options that differ. Secrets are listed by name only."""
    old_values = dict(_flatten(old.model_dump()))
    new_values = dict(_flatten(new.model_dump()))
    paths = dict.fromkeys((*old_values, *new_values))
    return [
        ENVIRONMENT.get(path, path)
        for path in paths
        if old_values.get(path) != new_values.get(path)
    ]


def _flatten(options: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return the dotted path and the value of each option."""
    values: list[tuple[str, Any]] = []
    for name, value in options.items():
        if not prefix and name in _DERIVED_FIELDS:
            continue
        if isinstance(value, Mapping):
            values += _flatten(value, f"{prefix}{name}.")
        else:
            values.append((f"{prefix}{name}", value))
    return values
