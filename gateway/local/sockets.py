"""Says where the sockets of a running gateway are. Only the user of the home can open them.

A socket is in the home, or, if its path would be too long for the operating system, in a folder of
the user in the folder for temporary files.
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
    """Return the path of a socket. Its folder exists afterwards.

    Raises PermissionError if the folder for long paths belongs to another user.
    """
    path = home / f"{name}.sock"
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        return path
    folder = Path(tempfile.gettempdir()) / f"mneme-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    digest = sha256(os.fsencode(home.resolve())).hexdigest()[:DIGEST_CHARS]
    return folder / f"{digest}-{name}.sock"
