"""Serves the store of `speed.py` over standard input and output, for `proxy.py` in another
interpreter.

A line is a JSON list, the name of a method and its arguments; the answer is a JSON list of the one
result. Ends with the input. The loop runs from the first line to the last, as that of a gateway
does; between two lines nothing is on it."""

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
    """Answers line after line."""
    store = Store()
    for line in sys.stdin.buffer:
        method, *arguments = json.loads(line)
        result = await getattr(store, method)(*arguments) if method in METHODS else None
        sys.stdout.buffer.write(json.dumps([result]).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    asyncio.run(serve())
