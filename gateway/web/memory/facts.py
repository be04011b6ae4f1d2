"""Shows facts with their sources and changes, and changes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.errors import Refused
from core.markup.markdown import escape
from core.store.facts.history import (
    LAST_ID,
    LoggedFactChange,
    count_changes,
    list_latest_facts,
)
from core.store.facts.rows import Fact, FactChange
from core.types import Answer, Command, Message, Session
from gateway.commands.facts import UNDO_ALL, FactCommands
from gateway.web.conversations import find_message
from gateway.web.memory.history import HistoryEntry, describe_changes
from gateway.web.rendering import count_fitting, measure_html
from gateway.web.views import (
    PageRequest,
    Values,
    check_unchanged,
    read_field,
)

FACTS_PER_PAGE = 50
# The facts of a page have at most so many bytes of HTML, and those that contradict each other half
# of that. A fact has so many besides its text, which is on the page twice.
MAX_FACTS_BYTES = 80_000
FACT_FRAME_BYTES = 1_500
MAX_SOURCES = 4
# The actions that change the words of a fact.
WORDED = frozenset({"correct", "merge"})
# The actions of /memory on a fact that need only its number.
FACT_ACTIONS = ("right", "wrong", "pin", "unpin", "restore", "forget")


def measure_fact(fact: Fact) -> int:
    """Return the approximate size of a fact's HTML in a list, in bytes."""
    return FACT_FRAME_BYTES + 2 * measure_html(fact.content)


async def load_facts(request: PageRequest) -> Values:
    """Return one page of the facts, latest first."""
    before = request.number("before", LAST_ID)
    database = request.services.database
    facts = await list_latest_facts(database, request.scopes, FACTS_PER_PAGE + 1, before)
    count = count_fitting(map(measure_fact, facts[:FACTS_PER_PAGE]), MAX_FACTS_BYTES)
    has_more = len(facts) > count
    facts = facts[:count]
    return {
        "facts": facts,
        "changes_of": await count_changes(database, request.scopes, facts),
        "before": facts[-1].id if has_more else None,
        "is_first": before == LAST_ID,
    }


async def load_fact(request: PageRequest) -> Values | None:
    """Return a fact with its source and history, or None if this person can't see it."""
    facts = request.services.facts
    fact = await facts.find(request.number("fact"), request.scopes)
    if fact is None:
        return None
    changes = await facts.list_changes(fact.id, request.scopes)
    closing = None
    if fact.closed_by is not None:
        closing = await facts.find(fact.closed_by, request.scopes)
    entries = await _describe_history(request, fact, changes)
    return {
        "fact": fact,
        "entries": entries,
        # The change that gave the fact its text, if it has no message.
        "typed": _find_typed_change(entries, changes),
        "previous": (changes[-1].before or "") if changes else "",
        "source": FactCommands(request.services).describe_source(
            request.texts, fact, changes, request.context, request.zone
        ),
        "messages": await _load_sources(request, fact, changes),
        "said_at": changes[0].at if changes else fact.created_at,
        "changes_of": {fact.id: len(changes)},
        "closing": closing,
        "can_change": request.context.can_change(fact.account),
    }


async def _describe_history(
    request: PageRequest, fact: Fact, changes: Sequence[FactChange]
) -> list[HistoryEntry]:
    """Return the changes of a fact, latest first, each with its person and its message."""
    logged = []
    after = fact.content
    for number, change in reversed(list(enumerate(changes, start=1))):
        logged.append(
            LoggedFactChange(
                id=number,
                fact_id=fact.id,
                action=change.action,
                at=change.at,
                reason=change.reason,
                account=change.account,
                message_id=change.message_id,
                before=change.before,
                after=after,
                is_last=number == len(changes),
                total=len(changes),
            )
        )
        after = change.before if change.before is not None else after
    return await describe_changes(request, logged)


def _find_typed_change(
    entries: Sequence[HistoryEntry], changes: Sequence[FactChange]
) -> HistoryEntry | None:
    """Return the last change of a fact's words if a command or the page made it, or None.

    `entries` describe the `changes`, latest first.
    """
    for entry, change in zip(entries, reversed(changes), strict=True):
        if change.action in WORDED:
            return entry if change.message_id is None else None
    return None


async def _load_sources(
    request: PageRequest, fact: Fact, changes: Sequence[FactChange]
) -> list[tuple[str, Session, Message]]:
    """Return the messages that determined the text of a fact, latest first, and what each did."""
    actions = {change.message_id: change.action for change in changes if change.before is None}
    actions |= {change.message_id: change.action for change in changes if change.action in WORDED}
    actions.setdefault(fact.message_id, "learn")
    sources = []
    for message_id, action in sorted(
        ((id_, action) for id_, action in actions.items() if id_ is not None), reverse=True
    )[:MAX_SOURCES]:
        session, message = await find_message(request, message_id)
        if session is not None and message is not None:
            action_name = request.texts.table("FACT_DONE").get(action, action)
            sources.append((action_name, session, message))
    return sources


async def correct_fact(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Correct a fact, like `/memory correct`.

    Raises Refused if it was changed elsewhere after the page was shown.
    """
    number = read_field(request, form, "fact")
    text = read_field(request, form, "text")
    fact = await request.services.facts.find(int(number), request.scopes)
    if fact is not None:
        check_unchanged(request, form, fact.content)
    command = Command(name="memory", arguments=f"correct f{number} {text}")
    return await request.commands.run(command, request.context)


async def undo_fact(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Undo the last change of a fact, like `/memory undo`.

    If the fact was only learned, that deletes it, so the person is asked first. Raises Refused if
    the fact has changed since the page was shown.
    """
    number = read_field(request, form, "fact")
    shown_changes = int(read_field(request, form, "changes"))
    command = Command(name="memory", arguments=f"undo f{number}")
    facts = request.services.facts
    fact = await facts.find(int(number), request.scopes)
    changes = await facts.list_changes(int(number), request.scopes)
    if changes and len(changes) != shown_changes:
        raise Refused(request.words["CHANGED_SINCE"])
    if fact is not None and len(changes) == 1 and request.context.can_change(fact.account):
        question = request.words["UNLEARN_ASK"].format(fact=escape(fact.content))
        return Answer(text=question, confirm_command=command)
    return await request.commands.run(command, request.context)


async def unlearn_fact(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Delete a fact with all its changes, like `/memory undo f12 --all`, after a question.

    Its messages stay. Raises Refused if there is no such fact, or if another person said it.
    """
    number = read_field(request, form, "fact")
    command = Command(name="memory", arguments=f"undo f{number} {UNDO_ALL}")
    fact = await request.services.facts.find(int(number), request.scopes)
    if fact is None or not request.context.can_change(fact.account):
        return await request.commands.run(command, request.context)
    question = request.words["UNLEARN_ALL_ASK"].format(fact=escape(fact.content))
    return Answer(text=question, confirm_command=command)
