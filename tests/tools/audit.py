"""Asks the public vulnerability database OSV about each version in constraints.txt.

``python -m tests.tools.audit [URL]``. The result is 0 if no vulnerability is known, 1 if there are
some, and 2 if the database can't be reached, so that nothing was checked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[2]
URL = "https://api.osv.dev/v1/querybatch"
TIMEOUT_S = 30.0


def read_versions(constraints: str) -> list[tuple[str, str]]:
    """Return the name and the version of each line such as ``aiohttp==3.14.5``."""
    versions = []
    for line in constraints.splitlines():
        name, separator, rest = line.partition("==")
        if separator and not line.startswith("#"):
            versions.append((name.strip(), rest.split(";")[0].strip()))
    return versions


def find_vulnerabilities(versions: Sequence[tuple[str, str]], url: str = URL) -> list[str]:
    """Return a line for each version with known vulnerabilities. Raises httpx.HTTPError."""
    queries = [
        {"package": {"name": name, "ecosystem": "PyPI"}, "version": version}
        for name, version in versions
    ]
    response = httpx.post(url, json={"queries": queries}, timeout=TIMEOUT_S)
    response.raise_for_status()
    lines = []
    for (name, version), result in zip(versions, response.json()["results"], strict=True):
        ids = [str(vulnerability["id"]) for vulnerability in result.get("vulns", ())]
        if ids:
            lines.append(f"{name} {version}: {', '.join(ids)}")
    return lines


def main(url: str = URL) -> int:
    versions = read_versions((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    try:
        lines = find_vulnerabilities(versions, url)
    except (httpx.HTTPError, ValueError, KeyError) as error:
        sys.stdout.write(
            f"Nothing was checked: the vulnerability database can't be reached ({error}).\n"
        )
        return 2
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{len(versions)} packages checked, {len(lines)} with vulnerabilities.\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
