"""Finds the sockets of a running gateway. Only the user of the home can open them.

A socket is in the home. If its path would be too long for the operating system, it's in the user's
own folder for temporary files.
"""

from __future__ import annotations

import os
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Literal

# macOS allows 103 bytes, Linux 107.
MAX_PATH_BYTES = 100
DIGEST_CHARS = 16
# "chat" is for conversations, "control" for questions about the process.
SocketName = Literal["chat", "control"]


def find_socket(home: Path, name: SocketName) -> Path:
    """Return the path of a socket, and create its folder if necessary.

    Raises PermissionError if the folder for temporary files belongs to another user.
    """
    return _find_path(home, name)


def find_gateway_socket(home: Path, number: int) -> Path:
    """Return the path of the socket on which a gateway gets events from another gateway.

    Raises PermissionError. See `find_socket`.
    """
    return _find_path(home, f"gateway-{number}")


def _find_path(home: Path, name: str) -> Path:
    path = home / f"{name}.sock"
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        return path
    folder = Path(tempfile.gettempdir()) / f"mneme-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    digest = sha256(os.fsencode(home.resolve())).hexdigest()[:DIGEST_CHARS]
    return folder / f"{digest}-{name}.sock"
