"""The main paths of the page, as a person takes them in a browser."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from gateway.web.pages import PAGES
from tests.fixtures.command_line import good
from tests.fixtures.page_browser import OpenPage, find_free_port, open_page
from tests.gateway.local.running import open_gateway
from tests.gateway.web.test_hostile import MARK, OWNER
from tests.gateway.web.test_hostile import fill as fill_with_hostile_texts
from tests.gateway.web.test_pages import SKILL
from tests.pages.conftest import find_chromium, log_in, open_chromium

# A browser on a busy machine takes minutes for all pages.
pytestmark = [pytest.mark.pages, pytest.mark.slow, pytest.mark.timeout(900)]

PHONE = {"width": 390, "height": 844}


def list_paths() -> list[str]:
    """The addresses of all views that need no number and are whole documents."""
    return [
        view.path
        for page in PAGES
        for view in page.views
        if "{" not in view.path and view.template and not view.path.endswith("/reading")
    ]


async def test_search_is_done_by_keyboard_alone(tab: Any) -> None:
    await tab.goto(tab.url + "today")
    await tab.keyboard.press("/")
    await tab.wait_for_url("**/recall")
    await tab.wait_for_selector("input[type=search]")
    await tab.keyboard.press("/")
    await tab.keyboard.type("ferry timetable")
    await tab.keyboard.press("Enter")
    await tab.wait_for_selector("mark")
    await tab.keyboard.press("/")
    await tab.keyboard.press("ArrowDown")
    await tab.keyboard.press("ArrowDown")
    await tab.keyboard.press("ArrowUp")
    await tab.keyboard.press("Enter")
    anchor = await tab.wait_for_selector(".message.anchor")
    assert await anchor.is_visible()


async def test_wrong_fact_is_corrected_and_taken_back_by_mouse(tab: Any) -> None:
    await tab.click('nav a[href="/memory"]')
    line = tab.locator("li", has_text="I live in Lisbon")
    await line.locator("summary").click()
    await line.locator("textarea").fill("I live in Porto")
    await line.locator("button.main").click()
    await tab.wait_for_selector("section.answer >> text=I live in Porto")
    await tab.locator("li", has_text="I live in Porto").locator("a", has_text="Why?").click()
    await tab.wait_for_selector("ins >> text=Porto")
    await tab.click("button >> text=Undo: back to")
    await tab.wait_for_selector("h1 >> text=I live in Lisbon")


async def test_topic_is_forgotten_after_a_look_at_what_would_go(year: OpenPage, tab: Any) -> None:
    await tab.click('nav a[href="/memory"]')
    await tab.click("text=Forget a topic")
    await tab.fill("#forget-words", "peanuts")
    await tab.click("text=Show what would be erased")
    await tab.wait_for_selector("section.answer >> text=peanuts")
    await tab.click("section.answer button.danger")
    await tab.wait_for_selector("section.answer >> text=Forgotten")
    await tab.goto(f"{year.server.address}/recall?q=peanuts")
    assert await tab.locator("mark").count() == 0


async def test_reminder_is_read_while_it_is_typed_and_then_set(tab: Any) -> None:
    await tab.click('nav a[href="/reminders"]')
    await tab.locator("#line").press_sequentially("every day at 8 water the plants")
    await tab.wait_for_selector("[data-reading-of=line] >> text=every day at 08:00")
    await tab.keyboard.press("Enter")
    await tab.wait_for_selector("section.answer >> text=water the plants")
    # The answer is shown once.
    await tab.wait_for_url("**/reminders")
    await tab.reload()
    assert await tab.locator("section.answer").count() == 0
    await tab.click('.tabs a[href="/reminders/week"]')
    await tab.wait_for_selector(".week a >> text=water the plants")


async def test_query_is_read_while_it_is_typed_with_help_for_its_filters(tab: Any) -> None:
    await tab.click('nav a[href="/recall"]')
    await tab.locator("#q").press_sequentially("ferry since:2026-05-01 fro")
    await tab.wait_for_selector("[data-reading-of=q] >> text=1 May 2026")
    await tab.wait_for_selector("[data-reading-of=q] code >> text=from:ana")


async def test_chart_is_split_by_purpose_with_one_click(tab: Any) -> None:
    await tab.click('nav a[href="/use"]')
    await tab.click("a.chip >> text=Purpose")
    await tab.wait_for_selector("a.chip[aria-current] >> text=Purpose")
    assert await tab.locator("svg.chart rect.c1").count() > 0
    await tab.click("summary >> text=Each day")
    assert await tab.locator("details table tbody tr").first.is_visible()


async def test_answer_is_streamed_into_the_chat_of_the_page(home: Path) -> None:
    find_chromium()
    port = find_free_port()
    options = f"[web]\nenabled = true\nport = {port}\n"
    async with open_gateway(home, options=options), open_chromium() as context:
        link = re.search(r"http://\S+", await asyncio.to_thread(good, home, "web"))
        assert link is not None
        tab = await context.new_page()
        await tab.goto(link[0])
        await tab.click("button")
        await tab.wait_for_url(f"http://127.0.0.1:{port}/")
        await tab.click('nav a[href="/chat"]')
        await tab.fill("#text", "Where is the ferry?")
        await tab.keyboard.press("Enter")
        await tab.wait_for_selector("#talk .assistant >> text=You said: Where is the ferry?")
        assert await tab.input_value("#text") == ""
        # A message that isn't sent, such as after a logout in another tab, stays in its field.
        cookies = await context.cookies()
        await context.clear_cookies()
        await tab.fill("#text", "A long thought")
        await tab.keyboard.press("Enter")
        await tab.wait_for_selector("#state >> text=not logged in")
        assert await tab.input_value("#text") == "A long thought"
        await context.add_cookies(cookies)
        await tab.fill("#text", "Far too long. " * 2_000)
        await tab.keyboard.press("Enter")
        await tab.wait_for_selector("#state .prose")
        assert (await tab.input_value("#text")).startswith("Far too long. ")
        # The page has the conversation after it's loaded again, too.
        await tab.reload()
        await tab.wait_for_selector("#talk .assistant >> text=You said: Where is the ferry?")


async def test_everything_can_be_read_without_scripts_and_reached_by_tab(year: OpenPage) -> None:
    async with open_chromium(java_script_enabled=False) as context:
        tab = await context.new_page()
        await log_in(tab, year)
        for path in list_paths():
            await tab.goto(year.server.address + path)
            assert await tab.locator("h1").is_visible(), path
            # The first stop of the Tab key skips the navigation.
            await tab.keyboard.press("Tab")
            focused = tab.locator(":focus")
            assert await focused.get_attribute("href") == "#content", path
            # Nothing that reacts to a click is left out by the Tab key.
            controls = tab.locator("a[href], button, input, select, textarea, summary")
            skipped = await controls.evaluate_all(
                "all => all.filter(each => each.tabIndex < 0).map(each => each.outerHTML)"
            )
            assert skipped == [], path


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_no_serious_accessibility_fault_on_any_web_page(
    year: OpenPage, home: Path, scheme: str
) -> None:
    (home / "skills" / "tidy-inbox").mkdir(parents=True)
    (home / "skills" / "tidy-inbox" / "SKILL.md").write_text(SKILL)
    async with open_chromium(color_scheme=scheme) as context:
        # The policy of the page forbids scripts of others, so axe is put into the browser itself.
        from axe_playwright_python.base import AXE_FILE_PATH

        await context.add_init_script(path=str(AXE_FILE_PATH))
        tab = await context.new_page()
        await log_in(tab, year)
        conversations = await year.browser.open("/conversations")
        first = conversations.body.partition('class="title" href="')[2].partition('"')[0]
        details = [
            "/login?key=x",
            "/memory/facts/6",
            "/memory/notes/1",
            "/memory/skills/tidy-inbox",
            "/reminders/1",
            "/reminders/2",
            "/recall?q=ferry",
            "/recall?q=has:file",
            "/settings/limits",
            first,
            first.replace("/conversations/", "/chat?session="),
        ]
        for path in [*list_paths(), *details]:
            await tab.goto(year.server.address + path)
            found = await tab.evaluate("axe.run(document)")
            serious = [
                (fault["id"], [node["html"] for node in fault["nodes"]][:3])
                for fault in found["violations"]
                if fault["impact"] in ("serious", "critical")
            ]
            assert serious == [], path


# Long words and many signs: each language breaks lines at other places.
@pytest.mark.parametrize(
    ("width", "language"),
    [(320, "en"), (390, "en"), (1400, "en"), (320, "de"), (320, "ru"), (320, "pt-BR"), (320, "ja")],
)
async def test_no_page_is_wider_than_the_screen(year: OpenPage, width: int, language: str) -> None:
    viewport = {"width": width, "height": 800}
    async with open_chromium(viewport=viewport, locale=language) as context:
        tab = await context.new_page()
        await log_in(tab, year)
        details = [
            "/login?key=x",
            "/memory/facts/6",
            "/memory/notes/1",
            "/reminders/1",
            "/recall?q=ferry",
        ]
        for path in [*list_paths(), *details]:
            await tab.goto(year.server.address + path)
            wide = await tab.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, path


async def test_hostile_texts_run_nothing_and_widen_no_page_in_a_browser(home: Path) -> None:
    find_chromium()
    async with open_page(home) as page, open_chromium(viewport=PHONE) as context:
        await fill_with_hostile_texts(page)
        ran: list[str] = []
        await context.expose_function(MARK, lambda *_: ran.append("ran"))
        tab = await context.new_page()
        tab.on("dialog", lambda dialog: ran.append(dialog.message))
        await log_in(tab, page)
        sessions = await page.harness.services.conversations.list_recent(frozenset({OWNER}), 1)
        for path in [*list_paths(), f"/conversations/{sessions[0].id}", f"/recall?q={MARK}"]:
            await tab.goto(page.server.address + path, wait_until="load")
            assert ran == [], path
            wide = await tab.evaluate("document.documentElement.scrollWidth")
            assert wide <= PHONE["width"], path


async def test_phone_has_a_menu_and_fields_above_long_buttons(year: OpenPage) -> None:
    async with open_chromium(viewport=PHONE, locale="de") as context:
        tab = await context.new_page()
        await log_in(tab, year)
        entry = tab.locator('nav a[href="/reminders"]')
        assert not await entry.is_visible()
        await tab.click("button.menu")
        await entry.click()
        await tab.wait_for_url("**/reminders")
        await tab.goto(year.server.address + "/reminders/1")
        field = await tab.locator("#snooze").bounding_box()
        button = (
            await tab.locator(".row", has=tab.locator("#snooze")).locator("button").bounding_box()
        )
        assert field["width"] >= 0.5 * PHONE["width"]
        assert button["x"] + button["width"] <= PHONE["width"]


async def test_phone_shows_each_row_of_a_table_whole_with_the_labels_of_its_cells(
    year: OpenPage,
) -> None:
    async with open_chromium(viewport=PHONE) as context:
        tab = await context.new_page()
        await log_in(tab, year)
        await tab.goto(year.server.address + "/use")
        for summary in await tab.locator("main summary").all():
            await summary.click()
        for table in await tab.locator(".wide").all():
            assert await table.evaluate("box => box.scrollWidth <= box.clientWidth")
        cell = tab.locator(".wide td:nth-child(4)").first
        label = await cell.evaluate("cell => getComputedStyle(cell, '::before').content")
        assert "Tokens in" in label
        box = await cell.bounding_box()
        assert box["x"] + box["width"] <= PHONE["width"]


async def test_chip_rows_of_a_phone_show_every_chip(year: OpenPage) -> None:
    async with open_chromium(viewport=PHONE) as context:
        tab = await context.new_page()
        await log_in(tab, year)
        await tab.goto(year.server.address + "/recall?q=has:file")
        chips = await tab.locator(".chip").all()
        assert len(chips) > 8
        for chip in chips:
            box = await chip.bounding_box()
            assert box["x"] + box["width"] <= PHONE["width"]


async def test_phone_keeps_the_field_of_the_chat_below_the_last_message(year: OpenPage) -> None:
    listed = await year.browser.open("/conversations")
    number = listed.body.partition('class="title" href="')[2].partition('"')[0].rpartition("/")[2]
    # Without motion, the page is at once where it scrolls to.
    async with open_chromium(viewport=PHONE, reduced_motion="reduce") as context:
        tab = await context.new_page()
        await log_in(tab, year)
        await tab.goto(f"{year.server.address}/chat?session={number}")
        # The conversation has a picture, which is loaded late.
        await tab.wait_for_load_state("networkidle")
        assert await tab.evaluate("scrollY") > 0, "the page is longer than the screen"
        last = await tab.locator("#talk .message").last.bounding_box()
        field = await tab.locator("#text").bounding_box()
        assert last["y"] + last["height"] <= field["y"]
        for place in ("document.body.scrollHeight", "0"):
            await tab.evaluate(f"scrollTo(0, {place})")
            field = await tab.locator("#text").bounding_box()
            assert field["y"] >= 0
            assert field["y"] + field["height"] <= PHONE["height"]
