"""Many people at once: everybody is answered, each in order, nobody sees another's words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.storm import answer_all
from tests.fixtures.town import KEY, Town

PEOPLE = 60
ROUNDS = 8


@pytest.mark.timeout(900)
async def test_a_crowd_is_answered(home: Path) -> None:
    people = range(5001, 5001 + PEOPLE)
    listed = ", ".join(f'"telegram:{person}"' for person in people)
    async with Town.open(home, MessagesApi(answer_all, key=KEY), f"[access]\npeople = [{listed}]\n") as town:
        await town.start()
        for number in range(ROUNDS):
            for person in people:
                town.telegram.user_says(person, f"message t{person}q{number} please")

        def answered(person: int) -> list[str]:
            return re.findall(rf"t{person}q\d+", " ".join(town.telegram.texts(person)))

        await town.until(lambda: all(len(answered(person)) >= ROUNDS for person in people), 600.0)
        assert await town.stop() == 0
        for person in people:
            assert answered(person) == [f"t{person}q{number}" for number in range(ROUNDS)]
            assert all(f"t{other}q" not in " ".join(town.telegram.texts(person)) for other in people if other != person)
        assert town.model.refusals == []
        assert town.telegram.violations == []
        assert town.query("PRAGMA integrity_check") == [("ok",)]
