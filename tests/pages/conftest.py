"""Starts a real Chromium and a gateway whose home has a year of a person's life."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.page_browser import OpenPage, open_page
from tests.fixtures.page_year import fill_year

# `.ci/run` sets this, so that a missing browser is a failure there.
REQUIRED = "MNEME_PAGES_REQUIRED"


def find_chromium() -> str:
    """Return the path of Chromium. Skips the test if there is none, or fails if it's required."""
    problem = ""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or ""
    if not path:
        problem = "There is no Chromium here. On Debian: apt-get install chromium"
    try:
        import playwright  # noqa: F401
    except ImportError:
        problem = "Playwright isn't installed. Run make pages, which installs it."
    if problem and os.environ.get(REQUIRED):
        pytest.fail(problem)
    if problem:
        pytest.skip(problem)
    return path


@asynccontextmanager
async def open_chromium(**options: Any) -> AsyncIterator[Any]:
    """Open a context of a new Chromium. `options` are those of playwright's `new_context`."""
    path = find_chromium()
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        context = await browser.new_context(**options)
        context.set_default_timeout(60_000)
        try:
            yield context
        finally:
            await browser.close()


async def log_in(tab: Any, page: OpenPage) -> None:
    """Open a link with a key, press its button, and wait until the first page is there."""
    await tab.goto(page.server.create_owner_link())
    await tab.click("button")
    await tab.wait_for_url(f"{page.server.address}/")


@pytest.fixture
async def year(home: Path) -> AsyncIterator[OpenPage]:
    """A gateway with its page, and a home with a year of a person's life."""
    find_chromium()
    async with open_page(home, options="people = true") as page:
        await fill_year(page.harness)
        yield page


@pytest.fixture
async def tab(year: OpenPage) -> AsyncIterator[Any]:
    """A tab of Chromium that is logged in. Errors of its scripts and policy fail the test."""
    problems: list[str] = []
    foreign: list[str] = []
    async with open_chromium() as context:
        tab = await context.new_page()
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on(
            "console",
            lambda message: problems.append(message.text) if message.type == "error" else None,
        )
        tab.on(
            "request",
            lambda request: (
                foreign.append(request.url)
                if not request.url.startswith(year.server.address)
                else None
            ),
        )
        await log_in(tab, year)
        yield tab
        assert problems == []
        assert foreign == []
