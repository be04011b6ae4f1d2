"""`mneme remember` and `mneme facts`: what is known, from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from core.types import Message, Sender
from gateway.cli.runtime import (
    HERE,
    AsJson,
    InScope,
    fail,
    is_somebodys,
    joined,
    say_json,
    scope_of,
    seen,
    tell,
    visit,
)
from gateway.services import Services

if TYPE_CHECKING:
    from core.facts.ranking import KnownFacts

SPEAKER = Sender(id="local", name="Owner")
"""Whoever sits here."""
LISTED = 50


def add_facts(app: typer.Typer) -> None:
    """Puts the commands on the command line."""
    app.command("remember")(_remember)
    app.command("facts")(_facts)


def _remember(
    what: Annotated[list[str], typer.Argument(help="A sentence: Ana's birthday is on 3 May.")], scope: InScope = None
) -> None:
    """Remember a fact for good."""
    # Its rules take a while to load, for which no other command should wait.
    from core.facts.dictation import Dictation

    async def work(services: Services) -> None:
        if not await is_somebodys(services, scope_of(scope)):
            fail(f"Nobody has the scope {scope}: who was let in or has written to me has one; /whoami tells it.")
        zone = services.settings.general.zone
        said = Message(role="user", text=joined(what), session_id=0, created_at=services.clock.now(), sender=SPEAKER)
        for fact in await Dictation(services.facts, zone).take(said, scope_of(scope), HERE.platform):
            tell(f"f{fact.id}: {_knowledge(services).told(fact)}")

    visit(work)


def _facts(
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many, the latest first.")] = LISTED,
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """List what is known."""

    async def work(services: Services) -> None:
        knowledge = _knowledge(services)
        facts = await services.facts.page(await seen(services, scope), 0, limit)
        if as_json:
            for fact in facts:
                say_json(
                    {
                        "id": fact.id,
                        "scope": fact.scope.key,
                        "kind": fact.kind,
                        "content": fact.content,
                        "is_current": fact.is_open,
                        "is_pinned": fact.is_pinned,
                        "trust": round(fact.trust, 2),
                        "valid_from": fact.valid_from,
                        "valid_to": fact.valid_to,
                        "message_id": fact.message_id,
                    }
                )
            return
        tell("\n".join(f"f{fact.id}: {knowledge.told(fact)}" for fact in facts) or "Nothing yet.")

    visit(work)


def _knowledge(services: Services) -> KnownFacts:
    from core.facts.ranking import FactRanking, KnownFacts

    return KnownFacts(services.fact_search, FactRanking(), services.settings.general.zone)
