"""Many people at once: everybody is answered, each in order, nobody sees another's words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fixtures.kill_storm import answer_all
from tests.fixtures.live_system import KEY, LiveSystem
from tests.fixtures.messages_api import MessagesApi

PEOPLE = 60
ROUNDS = 8


@pytest.mark.timeout(900)
async def test_crowd_of_people_at_once_is_answered_completely(home: Path) -> None:
    people = range(5001, 5001 + PEOPLE)
    listed = ", ".join(f'"telegram:{person}"' for person in people)
    async with LiveSystem.open(
        home, MessagesApi(answer_all, key=KEY), f"[access]\npeople = [{listed}]\n"
    ) as live:
        await live.start()
        for number in range(ROUNDS):
            for person in people:
                live.telegram.user_says(person, f"message t{person}q{number} please")

        def answered(person: int) -> list[str]:
            return re.findall(rf"t{person}q\d+", " ".join(live.telegram.texts(person)))

        await live.until(lambda: all(len(answered(person)) >= ROUNDS for person in people), 600.0)
        assert await live.stop() == 0
        for person in people:
            assert answered(person) == [f"t{person}q{number}" for number in range(ROUNDS)]
            assert all(
                f"t{other}q" not in " ".join(live.telegram.texts(person))
                for other in people
                if other != person
            )
        assert live.model.refusals == []
        assert live.telegram.violations == []
        assert live.query("PRAGMA integrity_check") == [("ok",)]
