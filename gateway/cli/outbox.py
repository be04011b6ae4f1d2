"""Lists, resends or deletes messages that couldn't be delivered: `mneme outbox`.

Such a message is an answer, a reminder or a notice that a platform has rejected permanently. If a
platform can't be reached, its messages aren't listed, because they are sent later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from core.store.mailbox import DeadItem
from core.text.normalize import shorten
from core.types import LOCAL_SCOPE
from gateway.cli import shell
from gateway.cli.shell import AsJson
from gateway.commands.registry import CommandContext
from gateway.services import Services
from gateway.sharing.home_lock import is_running
from gateway.texts.catalog import SHELL as texts

# The list quotes this many characters of a message to the owner.
_EXCERPT_CHARS = 60
# Stands for the numbers of all messages.
_ALL = "all"
Numbers = Annotated[list[str], typer.Argument(show_default=False)]


def add_commands(root: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    shell.add_group(
        root,
        "outbox",
        {"list": list_command, "retry": retry_command, "drop": drop_command},
    )


def list_command(as_json: AsJson = False) -> None:
    """List the messages that couldn't be delivered: number, recipient, time, reason and advice.

    Only messages to you are quoted.
    """

    async def work(services: Services, context: CommandContext) -> object:
        """Print the list of undeliverable messages, or return it for JSON."""
        dead_items = await services.outbox.list_dead()
        if as_json:
            return [_dead_item_to_json(dead_item) for dead_item in dead_items]
        own_chats = await services.people.list_private_chats(LOCAL_SCOPE)
        own_addresses = {address for address, _ in own_chats}
        zone = services.zone_of(context.zone)
        lines = []
        for dead_item in dead_items:
            line = texts.describe_dead_item(dead_item, zone)
            answer = dead_item.item.answer
            if answer is not None and dead_item.item.address in own_addresses:
                line += f"\n   “{shorten(answer.text, _EXCERPT_CHARS)}”"
            if dead_item.cause:
                line += f"\n   {texts.table('UNDELIVERED_CAUSES')[dead_item.cause]}"
            lines.append(line)
        if lines:
            lines.append(texts.UNDELIVERED_ADVICE)
        shell.print_text("\n".join(lines) or texts.NO_UNDELIVERED)
        return None

    shell.run_as_owner(work)


def retry_command(numbers: Numbers) -> None:
    """Send undeliverable messages again."""

    async def work(services: Services, _: CommandContext) -> None:
        """Make the messages due now, and print when they will be sent."""
        ids = await _find_ids(services, numbers)
        is_sent_now = is_running(services.settings.home)
        text = texts.SENT_AGAIN if is_sent_now else texts.SENT_AGAIN_LATER
        _print_count(text, await services.outbox.revive(ids))

    shell.run_as_owner(work)


def drop_command(numbers: Numbers) -> None:
    """Delete undeliverable messages."""

    async def work(services: Services, _: CommandContext) -> None:
        """Delete the messages, and print how many were deleted."""
        ids = await _find_ids(services, numbers)
        _print_count(texts.DROPPED, await services.outbox.drop(ids))

    shell.run_as_owner(work)


async def _find_ids(services: Services, numbers: Sequence[str]) -> list[int]:
    """Return the ids of undeliverable messages from their numbers in the list.

    Raises BadParameter if a number isn't in the list, or if numbers stand beside `all`.
    """
    if _ALL in numbers and set(numbers) != {_ALL}:
        raise typer.BadParameter(shell.render_plain(texts.NUMBERS_OR_ALL))
    known_ids = {str(dead_item.item.id) for dead_item in await services.outbox.list_dead()}
    named_ids = known_ids if _ALL in numbers else set(numbers)
    unknown_ids = named_ids - known_ids
    if unknown_ids:
        text = texts.UNKNOWN_UNDELIVERED.format(numbers=", ".join(sorted(unknown_ids)))
        raise typer.BadParameter(shell.render_plain(text))
    return sorted(int(number) for number in named_ids)


def _print_count(text: str, count: int) -> None:
    """Print `text` with the number of messages, or a notice if the number is 0."""
    messages = texts.format_count(count, "message")
    shell.print_text(text.format(messages=messages) if count else texts.NO_UNDELIVERED)


def _dead_item_to_json(dead_item: DeadItem) -> dict[str, object]:
    """Return the fields of an undeliverable message for the JSON output."""
    item = dead_item.item
    return {
        "number": item.id,
        "kind": item.kind,
        "address": item.address.key,
        "at": dead_item.dead_at.isoformat(),
        "error": dead_item.error,
        "cause": dead_item.cause,
    }
