"""The page "Memory": notes and facts, where each comes from, and how it has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.notes.notebook import FILES
from core.store.notes import NoteVersion
from gateway.commands.facts import group_facts
from gateway.web.views import Page, PageRequest, Values, View

FACTS_PER_PAGE = 50
CHANGES_PER_PAGE = 30
MAX_PAGE = 100_000


@dataclass(frozen=True, slots=True)
class NoteFileView:
    """A note file: its notes, each with the change that wrote it, and how full the file is."""

    target: str
    usage: str
    entries: Sequence[tuple[str, NoteVersion | None]]


async def load_memory(request: PageRequest) -> Values:
    """Return the notes, what waits for a yes, and contradictory facts."""
    notebook = request.services.notebook
    files = [await _load_file(request, target) for target in FILES]
    pending = await notebook.review.list_pending(request.scopes)
    conflicts = await request.services.facts.list_conflicts(request.scopes)
    facts = await request.services.facts.list_page(request.scopes, 0, FACTS_PER_PAGE + 1)
    return {
        "files": files,
        "pending_count": len(pending),
        "problems": await notebook.list_problems(request.scopes),
        "conflicts": conflicts,
        "groups": group_facts(request.texts, facts[:FACTS_PER_PAGE]),
        "has_more": len(facts) > FACTS_PER_PAGE,
    }


async def _load_file(request: PageRequest, target: str) -> NoteFileView:
    notebook = request.services.notebook
    entries = await notebook.entries(request.scopes, target)
    versions = {
        version.after: version for version in await notebook.versions(request.scopes, target)
    }
    usage = notebook.heading(target, entries)
    return NoteFileView(target, usage, [(entry, versions.get(entry)) for entry in entries])


async def load_facts(request: PageRequest) -> Values | None:
    """Return one page of the facts, grouped by kind."""
    page = min(request.number("page", 1), MAX_PAGE)
    offset = (max(page, 1) - 1) * FACTS_PER_PAGE
    facts = await request.services.facts.list_page(request.scopes, offset, FACTS_PER_PAGE + 1)
    return {
        "groups": group_facts(request.texts, facts[:FACTS_PER_PAGE]),
        "page": page,
        "has_more": len(facts) > FACTS_PER_PAGE,
    }


async def load_fact(request: PageRequest) -> Values | None:
    """Return a fact with its source and history. None if there is no such fact here."""
    facts = request.services.facts
    fact = await facts.find(request.number("fact"), request.scopes)
    if fact is None:
        return None
    changes = await facts.list_changes(fact.id, request.scopes)
    return {"fact": fact, "changes": changes}


async def load_history(request: PageRequest) -> Values:
    """Return one page of the changes of notes and skills, latest first."""
    page = max(1, min(request.number("page", 1), MAX_PAGE))
    offset = (page - 1) * CHANGES_PER_PAGE
    changes = await request.services.notebook.history(request.scopes, CHANGES_PER_PAGE + 1, offset)
    return {
        "changes": changes[:CHANGES_PER_PAGE],
        "page": page,
        "has_more": len(changes) > CHANGES_PER_PAGE,
    }


PAGE = Page(
    "memory",
    views=(
        View("/memory", "memory.html", load_memory),
        View("/memory/facts", "facts.html", load_facts),
        View("/memory/facts/{fact}", "fact.html", load_fact),
        View("/memory/history", "history.html", load_history),
    ),
)
