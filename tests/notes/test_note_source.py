"""A note that was typed as a command is traced to that command: when, where, by whom, and with its
link."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.types import Address, Scope
from tests.fixtures.gateway_harness import open_gateway

pytestmark = pytest.mark.slow

BASE = "https://t.me/c/42/"
ROOM = Scope.group("telegram", "-5")
IN_ROOM: dict[str, Any] = {
    "is_direct": False,
    "address": Address(platform="telegram", chat_id="-5"),
    "scope": ROOM,
}
ORDER = "Bearer 0123456789abcdef01234567 opens the lake house"


async def test_why_and_history_link_to_the_command(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/memory add Ana likes cake", link_base=BASE, message_id="77")
        why = (await harness.say("/memory why cake")).text
        assert "MEMORY.md, added, by telegram:42, typed in a direct chat: " in why
        assert "Source: Person 42 typed “/memory add Ana likes cake”" in why
        assert f"({BASE}77)" in why
        await harness.say("/memory replace cake => Ana likes tea", message_id="80")
        history = (await harness.say("/memory history")).text
        assert f"+ “Ana likes cake” ({BASE}77)" in history
        assert f"“Ana likes cake” → “Ana likes tea” ({BASE}80)" in history


async def test_a_press_and_an_interaction_have_nothing_to_open(home: Path) -> None:
    async with open_gateway(home) as harness:
        asked = await harness.say(f"/memory add {ORDER}", link_base=BASE, message_id="77")
        assert asked.answer is not None
        await harness.say(asked.answer.buttons[0].id, kind="action", message_id="990099")
        await harness.say("/memory add likes tea", is_interaction=True, message_id="990100")
        for part in ("lake", "tea"):
            why = (await harness.say(f"/memory why {part}")).text
            assert "by telegram:42" in why
            assert "typed in a direct chat: " in why
            assert "http" not in why


async def test_a_command_that_was_deleted_is_not_quoted_or_linked(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/memory add likes tea", link_base=BASE, message_id="77")
        await harness.say("", kind="delete", message_id="77")
        why = (await harness.say("/memory why tea")).text
        assert "typed in a direct chat: " in why
        assert "Source:" not in why
        assert "http" not in why


async def test_approved_note_of_a_member_keeps_the_link_to_its_message(
    home: Path,
) -> None:
    async with open_gateway(home, options='rooms = ["telegram:-5"]\n') as harness:
        await harness.say(
            f"/memory add {ORDER}", "7", **IN_ROOM, link_base="https://t.me/c/5/", message_id="31"
        )
        assert "Noted" in (await harness.say("/memory approve 1", **IN_ROOM)).text
        why = (await harness.say("/memory why lake", **IN_ROOM)).text
        assert "by telegram:7, approved, typed in a group: " in why
        assert "(https://t.me/c/5/31)" in why


async def test_forget_erases_the_stored_source_message_of_a_note(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/memory add Ana lives in Zanzibar", link_base=BASE, message_id="7700077")
        await harness.say("/forget Zanzibar")
        await harness.say("yes")
        assert (await harness.say("/memory history")).text == "Nothing has changed yet."
        assert "No note contains" in (await harness.say("/memory why Zanzibar")).text
        assert b"Zanzibar" not in harness.services.database.path.read_bytes()


async def test_number_of_a_forgotten_note_change_is_not_reused(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/memory add Ana lives in Zanzibar")
        await harness.say("/forget Zanzibar")
        await harness.say("yes")
        await harness.say("/memory add likes tea")
        latest = (
            await harness.services.notebook.history(frozenset((Scope.account("telegram", "42"),)))
        )[0]
        assert latest.id > 1, (
            "a memory service that was told of change 1 must be told of this one too"
        )
