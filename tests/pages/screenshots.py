"""Draws each page in light and dark and at the width of a phone: `make screenshots`.

The pictures go into `site/pages/`, or into the folder that is given as an argument.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from gateway.sharing.home_lock import lock_home
from tests.fixtures.page_browser import open_page
from tests.fixtures.page_year import fill_year
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.gateway.web.test_pages import SKILL
from tests.pages.conftest import log_in, open_chromium
from tests.pages.test_paths import list_paths

FORMS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1100, "height": 760}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1100, "height": 760}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}
OPTIONS = """people = true
[usage.prices]
scripted = { input = 1.0, output = 5.0, cache_write = 1.0, cache_read = 0.1 }
"""
# The browser of a second login, which the page "Logins" then lists.
HOTEL = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:151.0) Gecko/20100101 Firefox/151.0"
# Pages that need a number or words, with the text of a link to open.
MORE = {
    "search": "/recall?q=ferry timetable",
    "search-files": "/recall?q=has:file",
    "login": "/login?key=x",
    "fact": "/memory/facts/6",
    "note": "/memory/notes/1",
    "reminder": "/reminders/1",
    "skill": "/memory/skills/tidy-inbox",
    "settings-limits": "/settings/limits",
}


async def draw(folder: Path, home: Path) -> None:
    """Write a picture of each page in each form."""
    model = ScriptedModel()
    async with open_page(home, model, options=OPTIONS) as page:
        await fill_year(page.harness)
        await page.harness.say("/instructions set Answer briefly, and in Portuguese on Mondays.")
        note = {"action": "add", "target": "memory", "content": "The plumber comes on Fridays."}
        model.script = [calls(("memory", note)), says("I noted that the plumber comes on Fridays.")]
        await page.harness.say("What does the letter of the landlord say?")
        await page.harness.say("/new")
        skill = {"action": "create", "name": "tidy-inbox", "content": SKILL}
        model.script = [calls(("skill_manage", skill)), says("I keep that as a skill.")]
        await page.harness.say("Make a skill that tidies my inbox")
        # A person who is served, and one who asks for access.
        await page.harness.say("When does the ferry leave?", who="7")
        await page.harness.say("Hello, may I write to you?", who="99")
        settings = await page.browser.open("/settings")
        await page.browser.send(settings.form("/do/back-up"))
        listed = await page.browser.open("/conversations")
        first = listed.body.partition('class="title" href="')[2].partition('"')[0]
        paths = {(path.strip("/").replace("/", "-") or "recall"): path for path in list_paths()}
        number = first.rpartition("/")[2]
        paths |= MORE | {"conversation": first, "chat-go-on": f"/chat?session={number}"}
        async with open_chromium(user_agent=HOTEL) as context:
            await log_in(await context.new_page(), page)
        for form, options in FORMS.items():
            async with open_chromium(**options) as context:
                tab = await context.new_page()
                await log_in(tab, page)
                for name, path in paths.items():
                    await tab.goto(page.server.address + path)
                    # Pictures further down are loaded when they come into sight.
                    await tab.evaluate("window.scrollTo(0, document.body.scrollHeight)")
                    await tab.wait_for_load_state("networkidle")
                    await tab.evaluate("window.scrollTo(0, 0)")
                    await tab.screenshot(full_page=True, path=folder / f"{name}-{form}.png")
                # The question that comes before something is forgotten.
                await tab.goto(f"{page.server.address}/memory/forget?words=landlord lease")
                await tab.click("form[action='/do/forget-words'] button")
                picture = folder / f"memory-forget-question-{form}.png"
                await tab.screenshot(full_page=True, path=picture)
        sys.stdout.write(f"{(len(paths) + 1) * len(FORMS)} pictures are in {folder}\n")


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "site/pages")
    folder.mkdir(parents=True, exist_ok=True)
    # With the lock, the page says that Mneme runs.
    with tempfile.TemporaryDirectory() as home, lock_home(Path(home)):
        asyncio.run(draw(folder, Path(home)))


if __name__ == "__main__":
    main()
