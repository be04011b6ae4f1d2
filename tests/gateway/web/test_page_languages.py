"""Every page in every language: no English word beyond those that the person typed."""

from __future__ import annotations

import ast
import inspect
import re
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path

import pytest
from babel.dates import get_month_names

from gateway.texts.catalog import list_languages, load_texts
from tests.fixtures import page_year
from tests.fixtures.english_words import find_english
from tests.fixtures.page_browser import open_page
from tests.fixtures.page_year import ANSWERS, SENTENCES, SUBJECTS, fill_year
from tests.fixtures.sweeps import list_cases
from tests.gateway.web.test_pages import PATHS

pytestmark = pytest.mark.slow

LANGUAGES = [language for language in list_languages() if language != "en"]
SECTIONS = [
    key.removeprefix("ABOUT_").lower()
    for key in load_texts("en").table("page_settings")
    if key.startswith("ABOUT_")
]
# The words of the person, of the scripted model, and the names of sections in mneme.toml.
TYPED = (*chain(SUBJECTS, *SUBJECTS.values(), SENTENCES, ANSWERS, SECTIONS), "ok", "Person")
# Values of options, as in: "everywhere" or "never".
_VALUE = re.compile(r'"[^"]*"')
# Pages of single things, which are linked on these pages.
DETAILS = (
    ("/conversations", r"/conversations/\d+"),
    ("/memory/facts", r"/memory/facts/\d+"),
    ("/recall?q=ferry", r"/conversations/at/\d+"),
    ("/reminders", r"/reminders/\d+"),
    ("/settings", r"/settings/turn"),
)
# Attributes that people see or hear.
SHOWN_ATTRIBUTES = ("title", "placeholder", "aria-label", "alt")


class _TextReader(HTMLParser):
    """Collects the texts of a page that people see, without scripts, styles and code."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("script", "style", "code", "pre")
        self.texts += [value for name, value in attrs if name in SHOWN_ATTRIBUTES and value]

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style", "code", "pre")

    def handle_data(self, data: str) -> None:
        if not self._hidden and data.strip():
            self.texts.append(" ".join(data.split()))


def list_typed(language: str) -> list[str]:
    """Return what the person of a year types, and the names of months, some of which are words."""
    nodes = ast.walk(ast.parse(inspect.getsource(page_year)))
    strings = [str(node.value) for node in nodes if isinstance(node, ast.Constant)]
    months = get_month_names("abbreviated", locale=load_texts(language).locale)
    return [*TYPED, *strings, *months.values()]


@pytest.mark.parametrize("language", list_cases(LANGUAGES, "ja"))
async def test_pages_show_no_english_word_in_another_language(home: Path, language: str) -> None:
    typed = list_typed(language)
    english = []
    async with open_page(home) as page:
        await page.harness.say(f"/language {language}")
        await fill_year(page.harness, 6)
        # The prompt is shown as the model reads it.
        paths = [path for path in PATHS if path != "/memory/prompt"]
        for path, pattern in DETAILS:
            link = re.search(rf'href="({pattern})"', (await page.browser.open(path)).body)
            assert link is not None, path
            paths.append(link[1])
        for path in paths:
            reader = _TextReader()
            reader.feed((await page.browser.open(path)).body)
            for text in reader.texts:
                words = find_english(_VALUE.sub(" ", text), language, typed)
                if words:
                    english.append((path, words, text[:200]))
    assert english == [], "\n".join(map(str, english))
