"""The tool for facts: each fact that it adds has a receipt that takes it back, as notes have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.test_attacks import MAIL, OWNER, fact
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says


@pytest.mark.parametrize("mail", ["", MAIL])
async def test_fact_that_the_tool_adds_has_a_receipt_that_takes_it_back(
    home: Path, mail: str
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        if mail:
            model.script = [says("It is a mail.")]
            await harness.say(mail, origin="forwarded")
        content = "User repairs old radios with Sandra"
        model.script = [calls(fact(content, names=["Sandra"])), says("Done.")]
        answer = (await harness.say("I repair old radios with Sandra")).answer
        assert answer is not None
        scopes = frozenset({OWNER})
        (known,) = await harness.services.facts.list_page(scopes, 9)
        assert f"Fact {known.id} stored" in answer.text
        await harness.say(f"/memory undo f{known.id}")
        assert await harness.services.facts.list_page(scopes, 9) == []
