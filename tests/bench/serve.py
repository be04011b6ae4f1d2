"""Serves the store of `speed.py` over standard input and output, for `proxy.py` in another interpreter.

A line is a JSON list, the name of a method and its arguments; the answer is a JSON list of the one result. Ends with
the input.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.bench.speed import Mneme

METHODS = ("fill", "filled", "begin", "append", "search", "discover", "scroll", "browse", "size", "close")


def main() -> None:
    """Answers line after line."""
    store = Mneme()
    for line in sys.stdin.buffer:
        method, *arguments = json.loads(line)
        result = None
        if method == "open":
            store.open(Path(arguments[0]))
        elif method in METHODS:
            result = getattr(store, method)(*arguments)
        sys.stdout.buffer.write(json.dumps([result]).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
