"""Renders the tree as Discord's own Markdown: its marks escaped in text, tables as code blocks, nobody mentioned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.markup.parse import MarkupNode, parse
from core.markup.source import Line, MarkdownWriter
from core.markup.telegram import inline_text
from core.markup.text import addresses, table_lines

_ESCAPED = frozenset("*~`|")
_GAP = "\u200b"


def to_discord(markdown: str) -> str:
    """The text to send. Nothing that a person typed is read as a mark of Discord's."""
    blocks = [replace(node, source=None) for node in parse(markdown)]
    return _DiscordWriter().document(blocks).strip("\n").rstrip()


class _DiscordWriter(MarkdownWriter):
    rule = "———"
    bullets = ("- ", "- ")
    dots = (".", ".")

    def is_apart(self, before: MarkupNode, node: MarkupNode, is_tight: bool) -> bool:
        return node.is_apart and not is_tight

    def heading(self, node: MarkupNode) -> str:
        line = self.inlines(node.children).replace("\n", " ")
        return f"{'#' * node.level} {line}" if node.level <= 3 or not line else f"**{line}**"

    def code(self, text: str, language: str) -> list[Line]:
        language = language if language.replace("+", "").replace("-", "").replace("#", "").isalnum() else ""
        text = text.replace("```", f"`{_GAP}`{_GAP}`")
        return [(line, True) for line in (f"```{language}", *text.split("\n"), "```")]

    def table(self, node: MarkupNode) -> list[Line]:
        rows = [[inline_text(cell.children) for cell in row.children] for row in node.children]
        return self.code("\n".join(table_lines(rows, [cell.align for cell in node.children[0].children])), "")

    def paragraph(self, nodes: Sequence[MarkupNode], is_line: bool = False) -> str:
        return "\n".join(map(_line, self.inlines(nodes).split("\n")))

    def text(self, text: str) -> str:
        return "".join(piece if is_url else _escaped(piece) for piece, is_url in addresses(text))

    def code_span(self, text: str) -> str:
        if "`" not in text:
            return f"`{text}`"
        pad = "" if text.strip("`") == text else " "
        return f"``{pad}{text.replace('``', f'`{_GAP}`')}{pad}``"

    def link(self, label: str, url: str) -> str:
        """A masked link where Discord draws one (web addresses under a text that is none), else text and address."""
        if url.lower().startswith(("http://", "https://")) and "://" not in label:
            return f"[{label}](<{url}>)".replace("\n", " ")
        return f"{label} ({url.removeprefix('mailto:').removeprefix('tel:')})"


def _line(line: str) -> str:
    """A line of text that does not begin like a heading, list, quote or small print."""
    stripped = line.lstrip()
    number = stripped[: len(stripped) - len(stripped.lstrip("0123456789"))]
    if stripped[:1] in ("#", ">", "-", "+"):
        return f"\\{stripped}"
    if number and stripped[len(number) : len(number) + 1] in (".", ")"):
        return f"{number}\\{stripped[len(number) :]}"
    return line


def _is_word(character: str) -> bool:
    """As Discord's patterns see it: a letter with an accent is none."""
    return character.isascii() and character.isalnum()


def _escaped(text: str) -> str:
    last_bracket = text.rfind("](")
    pieces = [
        f"\\{character}" if _is_mark(text, index) or (character == "[" and index < last_bracket) else character
        for index, character in enumerate(text)
    ]
    return "".join(pieces).replace("@everyone", f"@{_GAP}everyone").replace("@here", f"@{_GAP}here")


def _is_mark(text: str, index: int) -> bool:
    """Whether Discord would read a character as a mark of its own."""
    character = text[index]
    before, after = text[index - 1] if index else " ", text[index + 1 : index + 2]
    match character:
        case "_":
            return not (_is_word(before) and _is_word(after))
        case "\\":
            return not (_is_word(after) or after.isspace())
        case "<":
            return after != "" and not after.isspace()
        case _:
            return character in _ESCAPED
