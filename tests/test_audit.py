"""make audit: known vulnerabilities of the pinned versions, and a plain word if nothing was checked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.tools import audit


class Database(BaseHTTPRequestHandler):
    """Knows one vulnerability, of aiohttp."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        results = [
            {"vulns": [{"id": "GHSA-1"}]} if query["package"]["name"] == "aiohttp" else {}
            for query in body["queries"]
        ]
        answer = json.dumps({"results": results}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing to the terminal."""


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Database)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
def test_a_vulnerable_version_is_listed_and_fails(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.main(url) == 1
    shown = capsys.readouterr().out
    assert "aiohttp 3." in shown
    assert "GHSA-1" in shown
    assert "1 with vulnerabilities" in shown


def test_audit_without_a_reachable_vulnerability_database_reports_it_and_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert audit.main("http://127.0.0.1:9/") == 2
    assert "Nothing was checked" in capsys.readouterr().out


def test_versions_are_read_without_comments_and_markers() -> None:
    text = "# made by pip freeze\naiohttp==3.14.5\ncolorama==0.4.6 ; sys_platform == 'win32'\n"
    assert audit.read_versions(text) == [("aiohttp", "3.14.5"), ("colorama", "0.4.6")]
