"""Runs Hermes' session search behind a pipe, for the peers of the recall benchmark.

It runs with the interpreter of an environment that has hermes-agent 0.19.0. Nothing of this project
is on its path, because both projects have packages of the same names. Each line of stdin is a JSON
object, and each is answered by one line: ``{"add": [[session, [[id, role, text, time], …]], …]}``,
``{"search": query, "limit": n}`` and ``{"delete": session}``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Answer the lines of stdin. The argument is a folder for the store."""
    folder = Path(sys.argv[1])
    os.environ["HERMES_HOME"] = str(folder)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # What Hermes prints must not come between the answers.
    os.dup2(2, 1)
    from hermes_state import SessionDB  # type: ignore[import-not-found]

    store = SessionDB(db_path=folder / "state.db")
    names: dict[int, list[str]] = {}
    for line in sys.stdin:
        answers.write(json.dumps(_answer(store, names, json.loads(line))) + "\n")
        answers.flush()
    store.close()


def _answer(store: Any, names: dict[int, list[str]], request: dict[str, Any]) -> Any:
    for session, messages in request.get("add", ()):
        store.create_session(session, "telegram")
        for name, role, text, at in messages:
            row = store.append_message(session, role, text, timestamp=at)
            names[row] = [session, name]
    if "search" in request:
        matches = store.search_messages(
            request["search"],
            role_filter=["user", "assistant"],
            exclude_sources=["subagent", "tool"],
            limit=request["limit"],
        )
        return [names[match["id"]] for match in matches]
    if "delete" in request:
        store.delete_session(request["delete"])
    return []


if __name__ == "__main__":
    main()
