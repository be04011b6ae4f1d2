"""Each double says which page of the vendor's documentation it follows."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.fixtures.tables import each_row

TESTS = Path(__file__).resolve().parents[1]
DOUBLES = (
    *(TESTS / "fixtures").glob("bot_*.py"),
    *(TESTS / "fixtures").glob("messages_*.py"),
    *(TESTS / "fixtures").glob("*_service.py"),
    *(TESTS / "services" / "doubles").glob("[!_]*.py"),
    *(
        TESTS / "fixtures" / f"{name}.py"
        for name in (
            "chat_api",
            "chat_rules",
            "discord_api",
            "discord_gateway",
            "discord_interactions",
            "discord_refusal",
            "discord_rest",
            "discord_schema",
            "discord_world",
            "file_server",
            "mcp_server",
            "prefix_cache",
            "search_engines",
            "thinking_rules",
            "web_pages",
        )
    ),
)
# Doubles of our own interfaces, and what doubles share.
OURS = {"double", "memory_service", "shelf"}
SOURCES = ("https://", "RFC ", "public source of")


@each_row("path", DOUBLES)
def test_docstring_of_each_double_names_the_page_that_it_follows(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    assert path.stem in OURS or any(source in text for source in SOURCES)
