"""Serves the store of `speed.py` over standard input and output, for `proxy.py` in another
interpreter.

Each line is a JSON list: the name of a method and its arguments. The answer is a JSON list with the
result. The event loop runs from the first line to the last, as in a gateway, and is idle between
two lines.
"""

from __future__ import annotations

import asyncio
import json
import sys

from tests.bench.speed import Store

METHODS = (
    "open",
    "fill",
    "filled",
    "begin",
    "append",
    "search",
    "discover",
    "scroll",
    "browse",
    "size",
    "close",
)


async def serve() -> None:
    """Answer line after line, until the input ends."""
    store = Store()
    for line in sys.stdin.buffer:
        method, *arguments = json.loads(line)
        result = await getattr(store, method)(*arguments) if method in METHODS else None
        sys.stdout.buffer.write(json.dumps([result]).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    asyncio.run(serve())
