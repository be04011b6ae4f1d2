"""Looks at text that is about to become durable for what no honest text has; wordings of attacks are not chased.

Who said a thing decides what becomes of it (see `core.types.Origin`); this is the look at how it is made. Says what is
wrong in a phrase that follows "it contains"; decides nothing. Patterns are in `data/patterns.toml`. Of characters it
finds what the eye does not see or takes for something else; joiners of Persian, Indic scripts and emoji, marks of
Arabic and Hebrew, flags and soft hyphens are left alone. Every check is linear in the length of the text.
"""

from __future__ import annotations

import json
import re
import unicodedata
import zlib
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from copy import deepcopy
from functools import cache
from itertools import groupby
from typing import Any, TypeVar

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from config.masking import masked
from core.errors import ToolError
from core.guard.fence import neutralise
from core.text.normalize import language_data, on_one_line
from core.types import Json, Tool, ToolContext

_DATA = language_data("patterns", "core.guard")
LIMIT_CHARS = 50_000
"""Longer text is not looked at: that is a finding by itself."""
RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
JOINING = f"{RIGHT_TO_LEFT}\u0900-\u0dff\u0e00-\u109f\u1780-\u18af\u1950-\u19df\u1a00-\u1aaf\u1b00-\u1c4f\ua800-\ua9ff"
"""Scripts whose letters join: Arabic, Syriac, N'Ko, those of India, Tibetan, Khmer, Mongolian and their neighbours."""
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df"
"""Thai, Lao, Burmese, Khmer, Tai: a zero-width space is where a line may break."""
EMOJI = "\u00a9\u00ae\u200d\u203c-\u3299\ufe0f\U0001f000-\U0001faff\U000e007f"

_TURNING = "\u202a\u202b\u202d\u202e\u2066-\u2068"
_LETTER = "A-Za-z\u00c0-\u052f\u1e00-\u1fff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
_ALWAYS = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u17b4\u17b5\u180e\u202a\u202b\u202d\u202e\u2060-\u2068\u206a-\u206f"
    "\ufff9-\ufffb\U000e0000-\U000e01ef"
)
_HIDDEN = re.compile(
    # The class stands first, so that the search skips over plain text; what follows looks back at it.
    f"[{_ALWAYS}{_BLANK}\u061c\u200b-\u200f\ufe00-\ufe0f\ufeff](?:(?<=[{_ALWAYS}])"
    # joiners that neither a letter beside them nor an emoji needs
    f"|(?<=[\u200c\u200d])(?<![{JOINING}].)(?<![{JOINING}][\u200c\u200d].)(?![\u200c\u200d]?[{JOINING}])"
    f"(?!(?<=[{EMOJI}].)[{EMOJI}])"
    f"|(?<=\u200b)(?<![{UNSPACED}].)(?![{UNSPACED}])"
    f"|(?<=[\u061c\u200e\u200f])(?:(?<=[{_LETTER}].)(?=[{_LETTER}])|(?=[\u061c\u200e\u200f]{{2}}))"
    f"|(?<=[\ufe00-\ufe0f])(?=[\ufe00-\ufe0f])|(?<=[{_BLANK}])(?=[{_BLANK}])|(?<=.\ufeff))",
    re.DOTALL,
)
_NEEDED = (
    # the flags of Scotland and its like
    re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"),
    # the one sign that chooses among the printed forms of a Han character
    re.compile("(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"),
    # a phone number that address books keep from turning in right-to-left text
    re.compile(f"[{_TURNING}]{{1,4}}[0-9 +()./\u00a0\u2011-]{{3,24}}[\u202c\u2069]{{1,4}}"),
)
_BALANCED = re.compile(
    "([\u2066-\u2068])[^\u2066-\u2069\u202a-\u202e\n]{0,200}\u2069"
    "|([\u202a\u202b])[^\u2066-\u2069\u202a-\u202e\n]{0,200}\u202c"
)
"""A piece that is read in a direction of its own, as right-to-left text needs it; its first sign."""
_RIGHT_TO_LEFT = re.compile(f"[{RIGHT_TO_LEFT}]")

LATIN_LIKE = frozenset(_DATA["latin_like"])
"""Letters of Cyrillic, Greek, Armenian and Cherokee that are drawn like Latin ones."""
_LATIN_TWINS = LATIN_LIKE - set("\u0433\u043a\u043f\u0438\u0432\u043c\u0442\u03b1\u03b9\u03ba\u03c1\u03c4\u03c7")
_CYRILLIC_LIKE = frozenset("aceopxyikmtbhnurABCEHKMOPTXY")
_WORD = re.compile(r"[^\W\d_]{3,100}")
_MIXED = re.compile("[A-Za-z][\u0370-\u058f\u13a0-\u13f5]|[\u0370-\u058f\u13a0-\u13f5][A-Za-z]")
_WORD_END = re.compile(r"[)\s]")

REASONS: Mapping[str, str] = _DATA["reasons"]

NAME_CHARS, MARKS_MOST = 64, 3
"""Of a name; on one letter of it: as many as Hebrew, Arabic and Burmese need."""
_UNSEEN = f"[{_BLANK}\u00ad\u034f\u180b\u180c\u180d\u180f\ufeff]|(?<=[^\\W\\d])[\ufe00-\ufe0f]"
_TURNS = "|[\u061c\u200e\u200f]"
"""What a text may have and a name does not need; the latter where nothing is read from right to left."""
_EAST_ASIAN = {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HALFWIDTH", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC"}
_BESIDE = _EAST_ASIAN | {"MODIFIER", "FEMININE", "MASCULINE"}
"""How the names of letters begin that stand beside those of another alphabet in an honest name, and look like none."""


class Pattern:
    """Found where `then` matches behind a match of `first`, in the same line or, where `is_word`, word: two searches
    that take turns keep the time linear. `needs`: without one of these (in small letters) nothing is searched."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        flags = re.MULTILINE if table.get("is_case_sensitive") else re.MULTILINE | re.IGNORECASE
        self.name, self.needs = table["name"], table["needs"]
        self.first = re.compile(table["first"], flags)
        self.then = re.compile(table["then"], flags) if "then" in table else None
        self.is_word = table.get("is_word", False)

    def is_in(self, text: str) -> bool:
        found = self.first.search(text)
        while found is not None and self.then is not None:
            begin = found.end()
            line_end = text.find("\n", begin)
            end = line_end if line_end >= 0 else len(text)
            if self.is_word and (word_end := _WORD_END.search(text, begin, end)):
                end = word_end.start()
            if self.then.search(text, begin, end):
                return True
            found = self.first.search(text, end)
        return found is not None


def suspicion(text: str) -> str | None:
    """The first thing in `text` that no honest text has, as a noun phrase; None when there is nothing."""
    if len(text) > LIMIT_CHARS:
        return REASONS["length"].format(most=LIMIT_CHARS)
    if (place := next(_places(text), None)) is not None:
        sign = text[place]
        kind = "direction" if re.match(f"[{_TURNING}]", sign) else "invisible"
        return f"{REASONS['control' if unicodedata.category(sign) == 'Cc' else kind]} (U+{ord(sign):04X})"
    if neutralise(text) != text:
        return REASONS["forgery"]
    if word := mixed_word(text):
        return f"{REASONS['lookalike']} (“{word[:40]}”)"
    lowered = text.lower()
    for pattern in _patterns():
        if any(one in lowered for one in pattern.needs) and pattern.is_in(text):
            return REASONS[pattern.name]
    return None


def cleaned(text: str) -> str:
    """`text` without hidden characters (what scripts and emoji need stays), and with round brackets around what looks
    like a fence of ours."""
    hidden = set(_places(text))
    return neutralise("".join(sign for place, sign in enumerate(text) if place not in hidden) if hidden else text)


@cache
def _patterns() -> tuple[Pattern, ...]:
    return tuple(map(Pattern, _DATA["pattern"]))


def mixed_word(text: str) -> str | None:
    """The first word in which letters of one alphabet stand for those of another that look the same, as in a forged
    name; None when there is none. An ending in the alphabet of the sentence (Telegram + Cyrillic) is no such word."""
    if text.isascii() or _MIXED.search(text) is None:
        return None
    for found in _WORD.finditer(text):
        if not found[0].isascii() and _is_forged([(run[0], "".join(run[1])) for run in groupby(found[0], _alphabet)]):
            return found[0]
    return None


def marked_name(name: str) -> tuple[str, list[str]]:
    """A name as it is shown where something is decided about who has it: on one short line, with what nobody sees as
    its code point; and, as phrases, why it may be mistaken for another one."""
    whole = unicodedata.normalize("NFC", " ".join(name[: 4 * NAME_CHARS].split()))
    plain, marks = "", 0
    for sign in whole:
        marks = marks + 1 if unicodedata.category(sign) in ("Mn", "Me") else 0
        plain += sign * (marks <= MARKS_MOST)
    unseen = _UNSEEN if _RIGHT_TO_LEFT.search(plain) else _UNSEEN + _TURNS
    hidden = {*_places(plain), *(found.start() for found in re.finditer(unseen, plain))}
    letters = {sign for sign in plain if sign.isalpha()}
    findings = {
        "letters of two alphabets": len(_alphabets(plain)) > 1,
        "letters that look like Latin ones": bool(letters) and letters <= _LATIN_TWINS,
        "invisible characters": bool(hidden),
        "stacked signs": plain != whole,
        "cut": len(plain) > NAME_CHARS or len(name) > 4 * NAME_CHARS,
    }
    signs = [f"\u2039U+{ord(sign):04X}\u203a" if place in hidden else sign for place, sign in enumerate(plain)]
    return "".join(signs[:NAME_CHARS]) + "…" * findings["cut"], [one for one, is_so in findings.items() if is_so]


def _alphabets(name: str) -> set[str]:
    """Of the letters of a name, and of those that they are drawn like where Unicode says so (bold ones, wide ones)."""
    letters = {*name, *unicodedata.normalize("NFKC", name)}
    return {unicodedata.name(one, "").split(" ")[0] for one in letters if one.isalpha()} - _BESIDE


def _places(text: str) -> Iterator[int]:
    """Where the characters stand that hide something or turn the text around."""
    if text.isascii() and text.isprintable():
        return
    needed: set[int] | None = None
    for found in _HIDDEN.finditer(text):
        if needed is None:
            needed = {place for pattern in _NEEDED for one in pattern.finditer(text) for place in range(*one.span())}
            if _RIGHT_TO_LEFT.search(text):
                needed |= {one.start() for one in _BALANCED.finditer(text)}
        if found.start() not in needed:
            yield found.start()


def _alphabet(letter: str) -> str:
    if letter < "\u0370":
        return "latin"
    return "other" if letter < "\u0590" or "\u13a0" <= letter <= "\u13f5" else ""


def _is_forged(runs: list[tuple[str, str]]) -> bool:
    if "" in dict(runs) or len(runs) == 1:
        return False
    like = {"latin": _CYRILLIC_LIKE, "other": LATIN_LIKE}
    # Of each run, whether all its letters are drawn like some of the other alphabet.
    imitations = [like[alphabet].issuperset(letters) for alphabet, letters in runs]
    if len(runs) > 2:
        return any(imitations)
    # One change only: a foreign beginning is forged ("p" of "paypal"), a foreign ending is grammar.
    return imitations[0] and runs[1][1].islower() and len(runs[1][1]) > 2


SERVICE_LINES = 12
SERVICE_LINE_CHARS = 600
SERVICE_TEXT_CHARS = 4_000
_TOKEN = re.compile(r"\S*\d\S* ")
_log = structlog.get_logger("memory")


def service_lines(name: str, found: Any) -> list[str]:
    """Lines of an external provider, cut, without suspicious ones, each with its name before its token."""
    taken = []
    for given in found[:SERVICE_LINES] if isinstance(found, (list, tuple)) else [[found]]:
        if line := " ".join(service_text(name, given, SERVICE_LINE_CHARS).split()):
            # Without a token of its own, its text is: two that begin alike are not the same.
            token = "" if _TOKEN.match(line) else f"{zlib.crc32(line.encode()):08x} "
            taken.append(f"{name}:{token}{line}")
    return taken


def service_text(name: str, given: Any, limit_chars: int = SERVICE_TEXT_CHARS) -> str:
    """The beginning of a text of an external provider, without lone surrogates, which cannot be sent; empty for what is
    suspicious or none."""
    text = given if isinstance(given, str) else ""
    text = text[:limit_chars].encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    reason = suspicion(text) if given is None or isinstance(given, str) else f"it is no text but {type(given).__name__}"
    if reason is not None:
        _log.warning("what a memory says was left out", provider=name, reason=reason)
        return ""
    return neutralise(text.strip())


TOOL_BYTES = 20_000
"""A tool stands in every request."""
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def tool_fault(tool: object, taken: Collection[str] = ()) -> str | None:
    """Why something cannot be offered to a model beside tools of the names `taken`; None when it can."""
    if not isinstance(tool, Tool):
        return "it is no Tool"
    schema = tool.schema if isinstance(tool.schema, dict) else {}
    if not isinstance(tool.name, str) or _TOOL_NAME.fullmatch(tool.name) is None:
        return "its name should be letters, digits, _ and -"
    if tool.name in taken:
        return "the name is taken"
    if not isinstance(tool.description, str) or schema.get("type") != "object":
        return "it should have a description, and a schema of the type object"
    try:
        size = len(json.dumps([tool.description, tool.schema], ensure_ascii=False).encode())
    except (TypeError, ValueError) as error:
        return f"its description or schema cannot be sent: {on_one_line(masked(str(error)))[:200]}"
    return f"it takes {size:,} bytes, more than {TOOL_BYTES:,}" if size > TOOL_BYTES else None


class Arguments(BaseModel):
    """Of a tool."""

    model_config = ConfigDict(extra="forbid")


M = TypeVar("M", bound=Arguments)


def parsed(model: type[M], arguments: Json) -> M:
    """The arguments of a tool as a value of `model`; null means not given. Raises ToolError that names the field."""
    try:
        return model.model_validate({name: value for name, value in arguments.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        raise ToolError(f"{'.'.join(map(str, first['loc'])) or 'arguments'}: {first['msg']}") from error


def tool_of(
    name: str, arguments: type[M], run: Callable[[M, ToolContext], Awaitable[str]], package: str, **marks: Any
) -> Tool:
    """The tool that is described in `data/prompts.toml` of a package, with the arguments of all of its tools and with
    its own; `marks`: the other fields of Tool."""
    description, schema = _told(name, arguments, package)
    schema = deepcopy(schema)  # Who asks for a tool may write into it.

    async def read(given: Json, context: ToolContext) -> str:
        return await run(parsed(arguments, given), context)

    return Tool(name=name, description=description, schema=schema, run=read, **marks)


@cache
def _told(name: str, arguments: type[BaseModel], package: str) -> tuple[str, Json]:
    told = language_data("prompts", package)
    schema = arguments.model_json_schema()
    arguments_told = told.get("arguments", {})
    for key, about in {**arguments_told, **arguments_told.get(name, {})}.items():
        if key in schema["properties"]:
            schema["properties"][key] = dict(sorted({**schema["properties"][key], "description": about}.items()))
    return told[name], schema
