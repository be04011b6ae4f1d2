"""Limits the number of open connections, so that the process can always open its files.

`ulimit -n` limits files and sockets together. A process that reaches the limit can no longer open
notes, SQLite's temporary files or new connections. Therefore, the size of each pool of connections
depends on this limit, and a call that finds no free connection waits for one.
"""

from __future__ import annotations

import resource

# The number of files, locks and sockets that stay open or are opened for a moment.
RESERVED_FILES = 27
# The number of connection pools that share the rest: Telegram, Discord, the model and a memory
# service.
POOLS = 4
# A pool has at least this many connections. A platform keeps one connection open to wait for
# updates, so it needs another one to send messages.
MIN_CONNECTIONS = 2


def bound_connections(wanted: int) -> int:
    """Return the size of a connection pool: at least `MIN_CONNECTIONS`, at most `wanted`.

    If the number of files is unlimited, `wanted` is returned.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return wanted
    return max(MIN_CONNECTIONS, min(wanted, (limit - RESERVED_FILES) // POOLS))
