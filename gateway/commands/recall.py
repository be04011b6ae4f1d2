"""/recall: what was said, for people to read, with buttons for what they may want next.

The query language is in `core/search/query.py`, how results look in `core/search/results.py`.
"""

import re
from dataclasses import replace
from datetime import tzinfo

from core.search.query import next_page
from core.search.recall import HistorySearch
from core.search.results import to_markdown
from core.store.query import READ_FIRST, FoundSession, SearchQuery, SearchResults
from core.types import Answer, Button, Command, Payer
from gateway.commands.registry import CommandContext, announced, button

LIMIT = 5
BUBBLE_CHARS = 3_000
CARRIED_CHARS = 1_000
"""Longer arguments are not carried on to a next page."""
SHOWN_WITH_BUTTONS = 3
_SWITCH = r"(?:--|[\u2012-\u2015])(summary|expand|rerank)"
"""A phone makes one dash of two hyphens."""
_SWITCHES = re.compile(rf"^\s*{_SWITCH}(?=\s|$)|(?<!\S){_SWITCH}\s*$", re.IGNORECASE)


class RecallCommands:
    specs = announced("recall")

    def __init__(self, recall: HistorySearch, expanded: HistorySearch, zone: tzinfo) -> None:
        self._recall = recall
        self._expanded = expanded
        self._zone = zone

    async def run(self, command: Command, context: CommandContext) -> Answer:
        # The switches before and behind the words, each once.
        switches, text = dict[str, None](), command.arguments
        while (found := _SWITCHES.search(text)) is not None:
            switches[(found[1] or found[2]).lower()] = None
            text = text[: found.start()] + text[found.end() :]
        text = text.strip()
        search = self._expanded if switches else self._recall
        payer = Payer(session_id=context.session.id, scope=context.scope, user_id=context.inbound.sender.id)
        query = SearchQuery(text=text, scopes=context.scopes, asker=context.account, limit=LIMIT, payer=payer)
        query = replace(
            query,
            budget_chars=BUBBLE_CHARS,
            is_summarized="summary" in switches,
            is_expanded="expand" in switches,
            is_reranked="rerank" in switches,
            is_incognito=context.session.is_incognito,
        )
        results = await search.recall(query)
        buttons = _next(results, context.session.id)
        if results.has_more and len(text) <= CARRIED_CHARS:
            arguments = " ".join([*(f"--{switch}" for switch in switches), next_page(text)])
            buttons.append(button("More", "recall", arguments))
        return Answer(text=to_markdown(results, self._zone), buttons=tuple(buttons))


def _next(results: SearchResults, present_id: int) -> list[Button]:
    """Buttons for what is shown, by its numbers; `present_id` is the session one is in already."""
    if results.shape in ("scroll", "read"):
        return [way for found in results.sessions for way in _beyond(found, results.shape == "scroll", present_id)]
    shown = list(enumerate(results.sessions[:SHOWN_WITH_BUTTONS], 1))
    looks = [
        button(f"Around {number}", "recall", f"around:{found.matches[0].message_id}")
        if found.matches
        else button(f"Read {number}", "recall", f"in:{found.session.id}")
        for number, found in shown
    ]
    return looks + [_go_on(str(number), found) for number, found in shown if found.session.id != present_id]


def _beyond(found: FoundSession, is_scroll: bool, present_id: int) -> list[Button]:
    buttons = []
    if found.messages_before and found.window:
        buttons.append(button("Earlier", "recall", f"around:{found.window[0].message_id}"))
    if found.messages_after and found.window:
        last = found.window[-1 if is_scroll else READ_FIRST - 1]
        buttons.append(button("Later", "recall", f"around:{last.message_id}"))
    return buttons if found.session.id == present_id else [*buttons, _go_on("it", found)]


def _go_on(name: str, found: FoundSession) -> Button:
    return button(f"Go on with {name}", "sessions", str(found.session.id))
