"""Lists what the model was given for an answer: messages, notes, facts, pages, files and look-ups.

The conversation itself isn't listed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from core.guard.origin_and_fence import FILE_LEAD
from core.markup.markdown import escape
from core.notes.provider import list_prompt_notes
from core.review.pending import is_waiting_result
from core.search.citations import CitedMessage, RecalledMessage, list_citable
from core.text.normalize import shorten
from core.types import Json, Message, Scope, Session
from gateway.answers.sources import SourceWriter, list_pages
from gateway.services import Services
from gateway.texts.catalog import Texts

# At most this many messages are listed, this many facts, and so on.
MAX_LINES = 10
MAX_LINE_CHARS = 160
# A line of recalled background in the sent form of a message: its reference and its text. For
# example, m12 is a message, f3 or f3-2c1a is a fact, and n1 is a change of a note. m0123456789 is a
# memory of a service.
_RECALLED_LINE = re.compile(
    r"^- (?:(?P<reference>[mfn]\d+)(?:-[0-9a-f]{4})? )?(?P<text>.+)$", re.MULTILINE
)
_ROW_REFERENCE = re.compile(r"[mf][1-9]\d{0,8}")
# A day or time in ISO 8601, also inside of a longer text.
_ISO_TIME = re.compile(
    r"(?<![\w-])\d{4}-\d\d-\d\d"
    r"(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?![\w-])"
)
_ISO_DAY_CHARS = 10
# The name of an argument that limits the result, such as "limit" and "max_results".
_LIMIT = re.compile(r"(?:limit|max|offset)(?:_|$)")
_FILE_HEADING = re.compile(rf"^\[{FILE_LEAD} (\d+), “([^”\n]*)”")


@dataclass(frozen=True, slots=True)
class ExplanationWriter:
    """Writes the answer of /why. It shows only what a reader of `scopes` may see."""

    services: Services
    texts: Texts
    scopes: frozenset[Scope]
    # The reader's time zone.
    zone: tzinfo

    async def write(self, turn: Sequence[Message], session: Session | None) -> str:
        """Return the explanation of a turn that was answered in `session`.

        `session` is None if the reader may no longer see it.
        """
        citable = list_citable(turn)
        pages = list_pages(turn)
        source_writer = SourceWriter(self.services, self.texts, self.scopes, self.zone)
        messages = _list_recalled(turn, "m")
        facts = _list_recalled(turn, "f")
        notes = None if session is None else self._list_notes(session)
        groups = [
            [self._render_message(number, text) for number, text in messages.items()]
            + await self._list_searched(citable.messages, known_ids=messages),
            [f"- {text}" for text in _list_recalled(turn, "").values()],
            notes or [],
            [self._render_fact(number, text) for number, text in facts.items()]
            + await self._list_facts(citable.fact_ids - facts.keys()),
            [f"- {source_writer.render_page(page)}" for page in pages],
            await self._list_files(turn, citable.file_ids),
            self._list_calls(turn, has_pages=bool(pages)),
        ]
        lines = [line for group in groups for line in self._limit(group)]
        if not lines:
            return self.texts.WHY_NOTHING
        if notes is None:
            lines += ["", self.texts.WHY_NOTES]
        return "\n".join([self.texts.WHY_GIVEN, *lines])

    def _limit(self, lines: Sequence[str]) -> list[str]:
        """Return at most `MAX_LINES` lines, and a line that counts the others."""
        shown = list(lines[:MAX_LINES])
        if len(lines) > MAX_LINES:
            shown.append(self.texts.LIST_MORE.format(count=len(lines) - MAX_LINES))
        return shown

    def _render_message(self, number: int, text: str) -> str:
        return self.texts.WHY_MESSAGE.format(text=text, number=number)

    def _render_fact(self, number: int, text: str) -> str:
        return self.texts.WHY_FACT.format(text=text, fact=f"f{number}")

    async def _list_searched(
        self,
        messages: Mapping[int, CitedMessage | RecalledMessage],
        known_ids: Collection[int],
    ) -> list[str]:
        """Return the messages that a search of the model returned, with their days."""
        new_ids = [
            number
            for number, message in messages.items()
            if isinstance(message, CitedMessage) and number not in known_ids
        ]
        rows = await self.services.conversations.load_messages(new_ids, self.scopes)
        rows.sort(key=lambda row: new_ids.index(row.id))
        return [self._render_message(row.id, self._render_text(row)) for row in rows]

    def _render_text(self, message: Message) -> str:
        """Return the day and the beginning of a message."""
        day = self.texts.format_day(message.created_at, self.zone)
        return self.texts.pair(day, _shorten(self.texts.result_words.word_text(message.text)))

    async def _list_facts(self, ids: Iterable[int]) -> list[str]:
        """Return the facts that the tool `facts` returned and that still exist."""
        lines: list[str] = []
        for fact_id in sorted(ids):
            fact = await self.services.facts.find(fact_id, self.scopes)
            if fact is not None:
                lines.append(self._render_fact(fact.id, _shorten(fact.content)))
        return lines

    def _list_notes(self, session: Session) -> list[str] | None:
        """Return the notes in the prompt of a session.

        Returns None if the session has no prompt, or if the reader may not see all of it.
        """
        prompt = session.prompt
        if not prompt.text or not prompt.visible_scopes <= self.scopes:
            return None
        notes = list_prompt_notes(prompt.text)
        return [self.texts.WHY_NOTE.format(text=_shorten(note)) for note in notes]

    async def _list_files(self, turn: Sequence[Message], ids: Iterable[int]) -> list[str]:
        """Return the files whose contents were sent to the model, or that its tools returned."""
        names: dict[int, str] = {}
        for row in turn:
            for block in row.sent_blocks or ():
                if heading := _FILE_HEADING.match(str(block.get("text", ""))):
                    names[int(heading[1])] = heading[2]
        for file_id in sorted(set(ids) - names.keys()):
            file = await self.services.files.find(file_id, self.scopes)
            if file is not None:
                names[file_id] = file.name
        return [
            self.texts.WHY_FILE.format(number=number, name=_shorten(name))
            for number, name in names.items()
        ]

    def _list_calls(self, turn: Sequence[Message], *, has_pages: bool) -> list[str]:
        """Return the tools that ran in a turn, with their search texts and URLs.

        Calls that failed or wait for approval are left out, because they returned no data to the
        model. So are calls that read a page, if the pages are listed.
        """
        successful_ids = set()
        for row in turn:
            for block in row.blocks or ():
                is_result = block.get("type") == "tool_result" and not block.get("is_error")
                if is_result and not is_waiting_result(row.text):
                    successful_ids.add(block.get("tool_use_id"))
        lines: list[str] = []
        for row in turn:
            for block in row.blocks or ():
                is_call = block.get("type") == "tool_use" and block.get("id") in successful_ids
                if is_call and not (has_pages and block["name"] == "web_fetch"):
                    lines.append(self._render_call(block["name"], block.get("input") or {}))
        return lines

    def _render_call(self, name: str, arguments: Json) -> str:
        """Return a tool and what it was asked for, without limits and empty arguments."""
        values = _shorten(" · ".join(self._word_values(arguments)))
        line = self.texts.WHY_TOOL.format(tool=name, arguments=values)
        return line if values else line.rstrip(" :\u00a0\uff1a")

    def _word_values(self, value: object) -> list[str]:
        """Return the values in an argument as texts, with times as a person writes them."""
        if isinstance(value, Mapping):
            shown = [item for name, item in value.items() if not _LIMIT.match(name)]
            return [text for item in shown for text in self._word_values(item)]
        if isinstance(value, list):
            return [text for item in value for text in self._word_values(item)]
        if isinstance(value, str):
            return [_ISO_TIME.sub(self._word_time, value)] if value else []
        return [] if value is None else [json.dumps(value)]

    def _word_time(self, match: re.Match[str]) -> str:
        """Return an ISO time or day as a person writes it. Impossible days stay as they are."""
        try:
            moment = datetime.fromisoformat(match[0])
        except ValueError:
            return match[0]
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=self.zone)
        if len(match[0]) == _ISO_DAY_CHARS:
            return self.texts.format_day(moment, self.zone)
        return self.texts.format_moment(moment, self.zone)


def _list_recalled(turn: Sequence[Message], kind: str) -> dict[int, str]:
    """Return the recalled lines that were sent with the messages of a turn.

    `kind` is "m" for messages, "f" for facts, or "" for everything else, such as changed notes and
    memories of a service. The keys are the ids of the messages or facts, or consecutive numbers.
    """
    lines: dict[int, str] = {}
    for row in turn:
        for block in row.memory_blocks:
            for match in _RECALLED_LINE.finditer(block["text"]):
                reference = match["reference"] or ""
                is_row = _ROW_REFERENCE.fullmatch(reference) is not None
                if is_row and reference[0] == kind:
                    lines[int(reference[1:])] = _shorten(match["text"])
                elif not is_row and not kind:
                    lines[len(lines)] = _shorten(match["text"])
    return lines


def _shorten(text: str) -> str:
    return escape(shorten(text, MAX_LINE_CHARS))
