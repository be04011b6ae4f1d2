"""An embedding service as its owner meets it: named in mneme.toml, filled beside the talk, checked,
out of order."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from config.settings import Settings, SettingsError
from core.search.embeddings import MAX_BATCH, PASSAGES_TIMEOUT
from core.store.sqlite.database import Database
from gateway.check import run_checks
from gateway.services import create_embeddings
from gateway.upkeep.home_checks import CheckResult
from tests.fixtures.command_line import good
from tests.fixtures.embedding_service import EmbeddingDouble
from tests.fixtures.forked import ForkedProcess
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel
from tests.services.doubles.double import KEY, running

pytestmark = pytest.mark.slow

CAR = "The hatchback broke down beside the bakery"
ASKED = "What happened to my car last week?"


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer for a question than a person waits."""
    monkeypatch.setattr("core.search.embeddings.QUESTION_TIMEOUT", PASSAGES_TIMEOUT)


@pytest.fixture
async def double() -> AsyncIterator[EmbeddingDouble]:
    made = EmbeddingDouble()
    async with running(made):
        yield made


def table(double: EmbeddingDouble) -> str:
    return (
        f'[recall.embeddings]\nurl = "{double.url}/v1"\nmodel = "small"\nkey = "EMBEDDINGS_KEY"\n'
    )


async def checked(home: Path) -> list[CheckResult]:
    found = await run_checks(Settings.load({"MNEME_HOME": str(home), "EMBEDDINGS_KEY": KEY}))
    return [one for one in found if one.subject == "embeddings"]


async def filled(made: GatewayHarness) -> None:
    assert made.services.embeddings is not None
    while await made.services.embeddings.tend():
        pass


async def test_turn_gets_a_semantically_similar_message_that_shares_no_word(
    home: Path, double: EmbeddingDouble
) -> None:
    async with open_gateway(
        home, ScriptedModel(), table(double), variables={"EMBEDDINGS_KEY": KEY}
    ) as made:
        await made.say(CAR)
        await made.say("/new")
        await filled(made)
        await made.say(ASKED)
        assert isinstance(made.model, ScriptedModel)
        assert CAR in str(made.model.requests[-1].messages)
        assert CAR in (await made.say(f"/recall {ASKED}")).text
        assert CAR not in (await made.say(f"/recall {ASKED}", who="43")).text


async def test_incognito_text_is_not_sent_to_the_embedding_service(
    home: Path, double: EmbeddingDouble
) -> None:
    async with open_gateway(
        home, ScriptedModel(), table(double), variables={"EMBEDDINGS_KEY": KEY}
    ) as made:
        await made.say("/incognito on")
        await made.say(CAR)
        await made.say(f"/recall {ASKED}")
        await made.say(f"/sessions {ASKED}")
        await filled(made)
        assert double.embedded == []


async def test_status_and_check_report_the_state_of_the_service_without_its_key(
    home: Path, double: EmbeddingDouble
) -> None:
    async with open_gateway(
        home, ScriptedModel(), table(double), variables={"EMBEDDINGS_KEY": KEY}
    ) as made:
        await made.say(CAR)
        assert "small, messages without a vector: about" in (await made.say("/status")).text
        (found,) = await checked(home)
        assert (found.state, f"vectors have {double.dimensions} dimensions" in found.text) == (
            "right",
            True,
        )
        double.fault = "unauthorized"
        assert made.services.embeddings is not None
        assert not await made.services.embeddings.tend()
        said = (await made.say("/status")).text.replace("\\", "")
        assert "out of order (embeddings: the key is not accepted)" in said
        (found,) = await checked(home)
        assert (found.state, "the key is not accepted" in found.text) == ("wrong", True)
        assert KEY not in said + found.text


async def test_embeddings_without_a_key_send_nothing_and_check_names_the_variable(
    home: Path, double: EmbeddingDouble
) -> None:
    async with open_gateway(home, ScriptedModel(), table(double)) as made:
        await made.say(CAR)
        await filled(made)
        why = "the environment variable EMBEDDINGS_KEY is not set"
        assert f"out of order ({why})" in (await made.say("/status")).text.replace("\\", "")
        (found,) = [
            one for one in await run_checks(made.services.settings) if one.subject == "embeddings"
        ]
        assert (found.state, found.text) == ("wrong", f"It is out of order: {why}.")
        assert double.asked == []


@pytest.mark.slow
async def test_a_process_that_is_killed_while_it_fills_has_lost_nothing(
    home: Path, double: EmbeddingDouble
) -> None:
    (home / "mneme.toml").write_text(table(double))
    lines = (
        json.dumps(
            {
                "session": "cars",
                "role": "user",
                "text": f"car number {number}",
                "at": "2026-05-01T10:00:00Z",
            }
        )
        for number in range(200)
    )
    good(home, "import", "-", stdin="\n".join(lines))
    environ = {"PATH": os.environ["PATH"], "MNEME_HOME": str(home), "EMBEDDINGS_KEY": KEY}
    talk, told = os.pipe()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    process = ForkedProcess(["chat"], environ, home, [talk, nowhere, nowhere])
    async with asyncio.timeout(60):
        await double.is_asked.wait()
        # The first is answered, and the process dies over a later one.
        double.is_asked.clear()
        double.fault = "hanging"
        await double.is_asked.wait()
    process.send_signal(signal.SIGKILL)
    process.wait()
    for end in (talk, told, nowhere):
        os.close(end)
    sent = len(double.embedded)
    assert 0 < sent < 200
    double.fault = "well"
    double.may_go.set()
    async with Database.open(home / "state.db") as database:
        held = await database.fetch_all("SELECT message_id FROM message_vectors")
        made = create_embeddings(Settings.load({**environ}), database)
        assert made is not None
        while await made.tend():
            pass
        await made.close()
        # The service also does at last what the dead process had asked for.
        asked_again = len(double.embedded) - sent - (200 - len(held))
        assert 0 <= asked_again <= MAX_BATCH, "what had a vector is not asked for again"
        (row,) = await database.fetch_all(
            "SELECT COUNT(*), SUM(length(vector) > 0) FROM message_vectors"
        )
        assert tuple(row) == (200, 200)


async def test_gateway_without_an_embeddings_setting_has_no_embeddings(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as made:
        assert made.services.embeddings is None
        assert "embeddings" not in (await made.say("/status")).text
        assert await checked(home) == []


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (
            'url = "localhost:8080"\nmodel = "small"',
            "recall.embeddings.url: isn't an address; write http://host:port",
        ),
        (
            'url = "http://127.0.0.1:9"',
            "recall.embeddings.model: write the name of the model that the server should use",
        ),
        ('key = "sk-1234"', "recall.embeddings.key: "),
    ],
)
def test_wrong_settings_of_embeddings_are_refused_with_a_sentence(
    home: Path, written: str, sentence: str
) -> None:
    (home / "mneme.toml").write_text(f"[recall.embeddings]\n{written}\n")
    with pytest.raises(SettingsError) as raised:
        Settings.load({"MNEME_HOME": str(home)})
    assert sentence in str(raised.value)
    assert "sk-1234" not in str(raised.value)
