"""Builds the documentation as a site: ``python -m tests.tools.build_site [FOLDER]``.

The pages are copied to a temporary folder, because a site needs all its pages in one place while
README.md and SECURITY.md belong in the root of the repository. Links between pages are adapted;
links to other files of the repository become plain text. A broken link stops the build.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    **{f"docs/{page.name}": page.name for page in sorted((ROOT / "docs").glob("*.md"))},
}
CONFIGURATION = '[project]\nsite_name = "Mneme"\nsite_description = "An assistant that remembers"\n'
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")


def adapt_links(text: str, page: str) -> str:
    """Point links to other pages at their names in the site, and drop links to other files."""

    def adapt(match: re.Match[str]) -> str:
        words, target = match.groups()
        path, _, anchor = target.partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return match[0]
        file = (ROOT / page).parent.joinpath(path).resolve().relative_to(ROOT).as_posix()
        if file not in PAGES:
            return words
        return f"[{words}]({PAGES[file]}{'#' + anchor if anchor else ''})"

    return LINK.sub(adapt, text)


def build(target: Path) -> int:
    """Build the site into `target`; return the exit code of the generator."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        (source / "docs").mkdir()
        (source / "zensical.toml").write_text(CONFIGURATION, encoding="utf-8")
        for page, name in PAGES.items():
            text = adapt_links((ROOT / page).read_text(encoding="utf-8"), page)
            # The README shows its picture by its path in the repository.
            text = text.replace("](docs/", "](")
            (source / "docs" / name).write_text(text, encoding="utf-8")
        for picture in [*(ROOT / "docs").glob("*.svg"), *(ROOT / "docs").glob("*.png")]:
            shutil.copy(picture, source / "docs")
        generator = [sys.executable, "-m", "zensical", "build", "--strict"]
        done = subprocess.run(generator, cwd=source, check=False)
        if done.returncode == 0:
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source / "site", target)
        return done.returncode


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "site")))
