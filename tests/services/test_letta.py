"""What only Letta has: a core block that mirrors the notes, and the embedding model of archives."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.errors import ConfigError
from core.memory.plugins import Plugins
from core.store.notes import NoteChange
from tests.fixtures.provider_contract import SAID
from tests.fixtures.provider_harness import ANA, ProviderHarness, harness
from tests.services.doubles.double import running
from tests.services.doubles.letta import LettaDouble
from tests.services.registry import SERVICES

pytestmark = pytest.mark.slow
LETTA = SERVICES["letta"]
TEA, MATE, BEES = "Ana likes green tea.", "Ana likes bitter mate.", "Ana keeps bees."


@pytest.fixture
async def letta() -> AsyncIterator[LettaDouble]:
    async with running(double := LettaDouble()):
        yield double


async def note(one: ProviderHarness, before: str | None, after: str | None) -> None:
    action = "add" if before is None else "remove" if after is None else "replace"
    await one.notes.log_changes(
        NoteChange(
            scope=ANA,
            target="user",
            action=action,
            before=before,
            after=after,
            at=one.clock.now(),
        )
    )
    count = len(one.ends)
    await one.memory.on_memory_write()
    await one.carried(count + 1)


async def test_core_block_mirrors_the_notes_of_its_scope(letta: LettaDouble, home: Path) -> None:
    async with harness(home, [LETTA.made(home, letta)]) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        assert letta.blocks == {}
        for before, after, value in (
            (None, TEA, TEA),
            (None, BEES, f"{TEA}\n{BEES}"),
            (TEA, MATE, f"{BEES}\n{MATE}"),
            (BEES, None, MATE),
            (MATE, None, ""),
        ):
            await note(one, before, after)
            (block,) = letta.blocks.values()
            assert block["value"] == value
        (archive,) = letta.archives.values()
        assert block["label"] == archive["name"]
        assert TEA not in str(block)
        assert letta.texts() == [f"user: {SAID}\nassistant: Noted."]


async def test_core_block_says_how_many_notes_do_not_fit(
    letta: LettaDouble, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.memory.services.letta.BLOCK_CHARS", 75)
    async with harness(home, [LETTA.made(home, letta)]) as one, one.working():
        for text in (TEA, MATE, BEES):
            await note(one, None, text)
        (block,) = letta.blocks.values()
        assert block["value"] == f"{TEA}\n(2 more notes are too long for this block.)"
        assert len(block["value"]) <= 75
        await note(one, TEA, None)
        (block,) = letta.blocks.values()
        assert block["value"].startswith(MATE)


async def test_note_that_was_stored_halfway_is_in_the_block_once(
    letta: LettaDouble, home: Path
) -> None:
    async with harness(home, [LETTA.made(home, letta)]) as one, one.working():
        letta.fault = "lost"
        await note(one, None, TEA)
        letta.fault = "well"
        await one.later(seconds=2)
        await one.carried(2)
        (block,) = letta.blocks.values()
        assert (block["value"], letta.texts()) == (TEA, [TEA])


async def test_embedding_model_is_named_when_an_archive_is_made(
    letta: LettaDouble, home: Path
) -> None:
    provider = LETTA.made(home, letta, embedding="openai/text-embedding-3-small")
    async with harness(home, [provider]) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
    (body,) = [
        body for method, path, _, body in letta.calls if (method, path) == ("POST", "/v1/archives/")
    ]
    assert '"embedding": "openai/text-embedding-3-small"' in body


async def test_archive_that_vanished_on_the_server_is_created_again(
    letta: LettaDouble, home: Path
) -> None:
    async with harness(home, [LETTA.made(home, letta)]) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        letta.archives.clear()
        letta.passages.clear()
        await one.turn("Our boat is called Molly.")
        await one.carried(2)
        assert one.ends == ["done", "done"]
        assert letta.texts() == ["user: Our boat is called Molly.\nassistant: Noted."]
        assert "Molly" in "\n".join(await one.recalled("What is our boat called?"))


def test_letta_cloud_without_a_key_is_refused_with_a_sentence(home: Path) -> None:
    with pytest.raises(ConfigError, match="needs the key of its cloud, or the url of your server"):
        Plugins(home).create_provider("letta", {}, {})
