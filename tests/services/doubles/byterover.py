"""ByteRover: a program `brv` that asks the double what to print, and writes files into the folder
tree in which it is started.

The real program starts a background server and asks it. This one asks the double, and fails as the
double answers.

It follows https://docs.byterover.dev."""

from __future__ import annotations

import os
import shutil
import sys
import weakref
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from aiohttp import web

from tests.services.doubles.double import Double, Handler, best

MANY = 50
"""Files, from which on it gives nothing where one of several words stands in none."""
_PROGRAM = """#!{python} -S
import json, os, sys, urllib.error, urllib.request
asked = [one for one in sys.argv[1:] if one not in ("--format", "json")]
text = asked[asked.index("--") + 1] if "--" in asked else ""
asked = asked[: asked.index("--")] if "--" in asked else asked
headers = {{"Authorization": "Bearer " + os.environ.get("OPENAI_COMPATIBLE_API_KEY", ""), "X-Folder": os.getcwd()}}
headers["X-Names"] = " ".join(sorted(os.environ))
headers["X-Data"] = os.environ["BRV_DATA_DIR"]
body = json.dumps({{"words": asked, "text": text}}, ensure_ascii=False).encode("utf-8", "surrogateescape")
request = urllib.request.Request("{url}/brv/" + asked[0], body, headers)
try:
    with urllib.request.urlopen(request) as response:
        while piece := response.read(1 << 16):
            sys.stdout.buffer.write(piece)
except urllib.error.HTTPError as error:
    why = "Incorrect API key provided" if error.code == 401 else error.read().decode()
    data = {{"event": "error", "message": why, "status": "error"}}
    print(json.dumps({{"command": asked[0], "data": data, "success": False}}))
except Exception:
    sys.stdout.flush()
    os.abort()
"""


class ByteRoverDouble(Double):
    """Makes one file of each text that it gets."""

    def __init__(self) -> None:
        folder = mkdtemp(prefix="brv-")
        weakref.finalize(self, shutil.rmtree, folder)
        self.program = Path(folder) / "brv"
        self._url = ""
        super().__init__()
        self.options = {"brv_path": str(self.program)}
        self._numbers = count(1)
        self.trees: set[Path] = set()
        self.log: list[dict[str, Any]] = []
        """What it was told, the newest first."""
        self.found: list[dict[str, Any]] | None = None
        """What a search finds, whatever there is."""
        self.names: set[str] = set()
        """The variables that it was given."""
        self.is_done = True
        """Whether what it is told is kept before the answer says so; else it goes on behind."""

    @property
    def url(self) -> str:
        return self._url

    @url.setter
    def url(self, url: str) -> None:
        self._url = url
        if url:
            self.program.write_text(
                _PROGRAM.format(python=sys.executable, url=url), encoding="utf-8"
            )
            self.program.chmod(0o755)

    @web.middleware
    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self.fault == "lost" and request.path == "/brv/providers":
            # This happens before the step whose answer a test can lose.
            return await handler(request)
        return await super().answer(request, handler)

    def routes(self) -> Sequence[web.RouteDef]:
        return [
            web.post("/brv/status", self._status),
            web.post("/brv/providers", self._providers),
            web.post("/brv/search", self._search),
            web.post("/brv/query", self._query),
            web.post("/brv/curate", self._curate),
        ]

    def files(self, tree: Path) -> dict[str, str]:
        found = [
            path for path in sorted(tree.rglob("*.md")) if not path.name.endswith(".overview.md")
        ]
        return {path.relative_to(tree).as_posix(): path.read_text("utf-8") for path in found}

    def texts(self) -> Sequence[str]:
        return [text for tree in sorted(self.trees) for text in self.files(tree).values()]

    async def _status(self, request: web.Request) -> web.Response:
        self.names |= set(request.headers["X-Names"].split())
        return _line("status", {"authStatus": "not_logged_in", "cliVersion": "3.14.0"})

    async def _providers(self, request: web.Request) -> web.Response:
        if self.url not in (await request.json())["words"]:
            # The program asks the server for its models.
            return _line(
                "providers connect",
                {"error": "Could not reach OpenAI-compatible endpoint"},
                is_right=False,
            )
        return _line("providers connect", {"model": "stub", "providerId": "openai-compatible"})

    async def _search(self, request: web.Request) -> web.Response:
        if self.found is not None:
            return _line(
                "search",
                {"results": self.found, "totalFound": len(self.found), "status": "completed"},
            )
        body = await request.json()
        files, limit = (
            self.files(_tree(request)),
            int(body["words"][body["words"].index("--limit") + 1]),
        )
        found = best(body["text"], files, lambda path: files[path], limit)
        asked = [word.casefold() for word in body["text"].split()]
        if len(asked) > 1 and len(files) >= MANY:
            # A long text that no file contains counts as another subject.
            known = "\n".join(files.values()).casefold()
            found = [] if any(len(word) > 3 and word not in known for word in asked) else found
        results = [
            {"path": path, "title": Path(path).stem, "score": score, "excerpt": files[path]}
            for score, path in found
        ]
        return _line(
            "search", {"results": results, "totalFound": len(results), "status": "completed"}
        )

    async def _query(self, request: web.Request) -> web.Response:
        files = self.files(_tree(request))
        found = best((await request.json())["text"], files, lambda path: files[path], 5)
        result = "\n".join(files[path].rpartition("---\n")[2].strip() for _, path in found)
        return _line(
            "query", {"event": "completed", "result": result, "status": "completed", "tier": 2}
        )

    async def _curate(self, request: web.Request) -> web.Response:
        body = await request.json()
        if body["words"] == ["curate"]:
            return self._told(request, body["text"])
        if body["words"][:2] != ["curate", "view"]:
            return _line(
                "curate", {"status": "error", "message": "it has no such option"}, is_right=False
            )
        told = [one["entry"] for one in self.log if one["folder"] == request.headers["X-Folder"]]
        return web.json_response({"command": "curate view", "data": told, "success": True})

    def _told(self, request: web.Request, text: str) -> web.Response:
        tree = _tree(request)
        self.trees.add(tree)
        number = next(self._numbers)
        file = tree / "talk" / f"told_{number}.md"
        if self.is_done:
            file.parent.mkdir(parents=True, exist_ok=True)
            front = f"title: Told {number}\nupdatedAt: '2026-05-03T10:00:00.000Z'"
            file.write_text(f"---\n{front}\n---\n## Narrative\n{text}\n", encoding="utf-8")
            file.with_name(f"{file.stem}.overview.md").touch()
            (tree / "_manifest.json").write_text("{}")
        # The text is also in the log of each task.
        data = Path(request.headers["X-Data"])
        storage = data / "projects" / f"of-{tree.parts[-3]}"
        storage.mkdir(parents=True, exist_ok=True)
        (storage / f"cur-{number}.json").write_text(text, encoding="utf-8")
        projects = {str(tree.parent.parent): {"storagePath": str(storage)}}
        (data / "registry.json").write_text(_json({"projects": projects}))
        entry = {
            "id": f"cur-{number}",
            "input": {"context": text},
            "startedAt": 10**13,
            "status": "completed" if self.is_done else "processing",
        }
        self.log.insert(0, {"folder": request.headers["X-Folder"], "entry": entry})
        first = _json({"command": "curate", "data": {"event": "thinking"}, "success": True})
        changes = {"created": [], "updated": [str(file)]}
        last = {
            "changes": changes,
            "event": "completed",
            "logId": f"cur-{number}",
            "status": "completed",
        }
        return _line("curate", last, first + "\n")


def _tree(request: web.Request) -> Path:
    return Path(os.path.join(request.headers["X-Folder"], ".brv", "context-tree"))


def _json(thing: object) -> str:
    return web.json_response(thing).text or ""


def _line(
    command: str, data: Mapping[str, Any], before: str = "", *, is_right: bool = True
) -> web.Response:
    return web.Response(
        text=before + _json({"command": command, "data": data, "success": is_right}) + "\n"
    )
