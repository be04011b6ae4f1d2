"""How many connections may be open, so that they and all files fit into the process's limit.

`ulimit -n` limits files and sockets together. A process that reaches the limit can't open notes,
temporary files of SQLite or new connections any more. So the pools of connections are made small
enough, and calls that don't fit wait for a free connection.
"""

from __future__ import annotations

import resource

# Files, locks and sockets that stay open, and some that are opened for a moment.
RESERVED_FILES = 27
# Pools of connections that share the rest: Telegram, Discord, the model and a memory service.
POOLS = 4
# One connection of a platform waits for updates most of the time, so one is too few.
MIN_CONNECTIONS = 2


def bound_connections(wanted: int) -> int:
    """Return how many connections a pool may have, at most `wanted`."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return wanted
    return max(MIN_CONNECTIONS, min(wanted, (limit - RESERVED_FILES) // POOLS))
