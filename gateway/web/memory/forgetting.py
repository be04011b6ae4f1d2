"""Shows everything that an erasure would remove, before the person confirms it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.store.erasure.statements import ErasureList
from core.types import Answer, Command
from gateway.commands.privacy import CONFIRMED_PREFIX, render_item, render_repeat
from gateway.web.logins import find_outcome
from gateway.web.views import PageRequest, Values, read_field

MAX_WORDS_CHARS = 1_000
ENTRIES_PER_PAGE = 50
MAX_ENTRY_CHARS = 400


@dataclass(frozen=True, slots=True)
class WholeList:
    """One page of everything that an erasure would remove, as Markdown."""

    # Which words it has, and whether all of them or one of them. Empty if there are no words.
    words: str
    # How many entries all pages have.
    count: int
    items: str
    # Texts that repeat the items.
    repeats: str
    # The position of the first entry on the next and on the previous page, or None.
    next: int | None
    previous: int | None


def find_erasure_token(answer: Answer | None) -> str:
    """Return the token of the list that an answer asks about, or "" if it asks something else."""
    command = None if answer is None else answer.confirm_command
    if command is None or command.name not in ("forget", "memory"):
        return ""
    return command.arguments.partition(CONFIRMED_PREFIX)[2].strip()


async def load_forget(request: PageRequest) -> Values:
    """Return the words that the form begins with, and the whole list if the address asks for it."""
    return {
        "words": request.parameter("words").strip()[:MAX_WORDS_CHARS],
        "whole_list": await _load_whole_list(request),
    }


async def forget_words(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Ask whether to erase what some words find, like `/forget`, and say how they must match."""
    command = Command(name="forget", arguments=read_field(request, form, "words"))
    answer = await request.commands.run(command, request.context)
    erasure_list = await _find_list(request, answer)
    words = "" if erasure_list is None else _describe_words(request, erasure_list.phrase)
    return replace(answer, text=f"{words}\n{answer.text}") if words else answer


async def _find_list(request: PageRequest, answer: Answer | None) -> ErasureList | None:
    """Return the list that an answer asks about, or None if it isn't open or asks another thing."""
    token = find_erasure_token(answer)
    if not token:
        return None
    return await request.services.forgetting.list_all(token, request.context.erasure_request)


async def _load_whole_list(request: PageRequest) -> WholeList | None:
    """Return a page of the list that the answer in the address asks about, or None.

    The token of the list isn't in the address, so a link to this page can't confirm anything.
    """
    outcome = find_outcome(request.login, request.answer_id)
    if outcome is None or not request.parameter("whole"):
        return None
    erasure_list = await _find_list(request, outcome.answer)
    return None if erasure_list is None else _cut_page(request, erasure_list)


def _cut_page(request: PageRequest, erasure_list: ErasureList) -> WholeList:
    """Return the entries of a list from the position in the address on."""
    texts = request.texts
    items, repeats = erasure_list.items, erasure_list.repeats
    count = len(items) + len(repeats)
    start = min(request.number("from"), max(0, count - 1))
    end = start + ENTRIES_PER_PAGE
    shown_items = [
        render_item(texts, item, request.zone, MAX_ENTRY_CHARS) for item in items[start:end]
    ]
    shown_repeats = [
        render_repeat(texts, kind, text, MAX_ENTRY_CHARS)
        for kind, text in repeats[max(0, start - len(items)) : max(0, end - len(items))]
    ]
    return WholeList(
        words=_describe_words(request, erasure_list.phrase),
        count=count,
        items="\n".join(shown_items),
        repeats="\n".join(shown_repeats),
        next=end if end < count else None,
        previous=max(0, start - ENTRIES_PER_PAGE) if start else None,
    )


def _describe_words(request: PageRequest, phrase: str) -> str:
    """Return whether all or any of the words have to match, with the words."""
    if not phrase:
        return ""
    key = "FORGET_ANY_WORD" if "OR" in phrase.split() else "FORGET_ALL_WORDS"
    return request.words[key].format(words=request.texts.quote(phrase))
