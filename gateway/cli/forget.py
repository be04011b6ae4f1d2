"""`mneme forget`: erases from the command line, beside a running gateway or without it."""

from __future__ import annotations

import sys
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from core.markup.render import to_plain
from core.store.erasure import ErasureRequest
from core.types import Account
from gateway.cli.runtime import HERE, OWN, AsJson, InScope, joined, say, say_json, scope_of, seen, tell, visit
from gateway.commands.forget import receipt_text, traces_text
from gateway.services import Services


def add_forget(app: typer.Typer) -> None:
    """Puts the command on the command line."""
    app.command("forget")(_forget)


def _forget(
    what: Annotated[list[str], typer.Argument(help="As for mneme recall: words, a phrase in quotes, filters.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """Erase what was said about something, and all that was made of it, for good."""

    async def work(services: Services) -> None:
        claim = ErasureRequest(
            account=Account(platform=HERE.platform, user_id="local"),
            scope=scope_of(scope) if scope else OWN,
            scopes=await seen(services, scope),
            address=HERE,
            is_owner=True,
        )
        zone = ZoneInfo(services.settings.general.zone)
        traces = await services.forgetting.look(joined(what), claim)
        if traces is None:
            say_json({"forgotten": {}}) if as_json else say("There is nothing with all of these words.")
            return
        if not yes:
            if not as_json:
                tell(to_plain(traces_text(traces, zone)))
            if as_json or not sys.stdin.isatty():
                raise typer.BadParameter("nothing was erased: add --yes when this is what you mean", param_hint="--yes")
            typer.confirm("Erase it for good?", abort=True)
        receipt = await services.forgetting.erase(traces.token, claim)
        if as_json:
            say_json(
                {
                    "forgotten": dict(receipt.counts),
                    "derived": receipt.derived,
                    "is_clean": receipt.is_clean,
                    "pending": receipt.pending,
                }
            )
        else:
            tell(to_plain(receipt_text(receipt)))

    visit(work)
