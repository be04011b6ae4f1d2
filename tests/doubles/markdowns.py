"""Markdown as hypothesis writes it: everything that means something, put together at random; and two measures of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from core.markup import to_discord, to_telegram, utf16_length

BRICKS = (
    "*", "**", "_", "__", "~~", "`", "``", "```\n", "```py\n", "~~~\n", "# ", "> ", "- ", "1. ", "+ ", "2.", "  ",
    "    ", "\n", "\n\n", "[", "](", ")", "![", "<", ">", "|", "| a | b |\n|---|---|\n", "|-|-|\n", "\\", "&amp;",
    "&#32;", "&#10;", "a", "word ", "中文", "\u3002", "😀", "é", "e\u0301", "https://a.b/c_d*e* ", "http://", "(", "=",
    "===\n", "---\n", "\t", ":-", "[x](http://y.z)", "`c`", "**b**", "@everyone", "!", "#", "\u200d", "🇩🇪", "\xa0",
    "\ud83d", "\0",
)  # fmt: skip
markdowns = st.lists(st.one_of(*[st.sampled_from(BRICKS)] * 3, st.text(max_size=8)), max_size=50).map("".join)


def telegram_length(markdown: str) -> int:
    return utf16_length(to_telegram(markdown)[0])


def discord_length(markdown: str) -> int:
    return len(to_discord(markdown))


MEASURES: Sequence[Callable[[str], int]] = (telegram_length, discord_length)
