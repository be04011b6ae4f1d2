"""A life in German and Japanese without a model: two moves, a new job, a divorce and a corrected
birthday. A year later, the answers say what holds, and `/memory why` shows what it replaced."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from gateway.supervisor import WallClock
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway

pytestmark = pytest.mark.slow

START = datetime(2026, 2, 2, 18, tzinfo=UTC)
GERMAN = (
    (0, "Ich wohne in Kassel"),
    (0, "Ich arbeite bei Bosch"),
    (0, "Ich bin mit Petra verheiratet"),
    (0, "Mein Geburtstag ist am 3. Mai"),
    (0, "Nein, ich meinte den 4. Mai"),
    (60, "Ich bin nach Hamburg gezogen"),
    (90, "Petra und ich haben uns scheiden lassen"),
    (120, "Ich arbeite jetzt bei Siemens"),
    (200, "Ich bin nach Leipzig gezogen"),
)
JAPANESE = (
    (0, "札幌に住んでいます"),
    (0, "私はトヨタで働いています"),
    (0, "花子と結婚しています"),
    (0, "私の誕生日は5月3日です"),
    (0, "ごめん、間違えた、5月4日です"),
    (60, "仙台に引っ越しました"),
    (90, "花子と離婚しました"),
    (120, "私はホンダで働いています"),
    (200, "福岡に引っ越しました"),
)


async def live(
    harness: GatewayHarness, told: tuple[tuple[int, str], ...], clock: list[datetime]
) -> None:
    """Say each message on its day, a conversation a day."""
    last_day = -1
    for day, text in told:
        if day != last_day:
            clock[0] = START + timedelta(days=day)
            await harness.say("/new")
            last_day = day
        clock[0] += timedelta(minutes=1)
        await harness.say(text)
    clock[0] = START + timedelta(days=565)


async def first_line(harness: GatewayHarness, question: str) -> str:
    await harness.say("/new")
    return (await harness.say(question)).text.splitlines()[0]


async def chain(harness: GatewayHarness, words: str) -> list[str]:
    """The contents of a fact and of those that followed it, each found by `/memory why`."""
    listed = (await harness.say(f"/memory facts {words}")).text
    line = next(line for line in listed.splitlines() if words in line)
    number = re.search(r"\bf(\d+)\b", line)
    contents: list[str] = []
    while number is not None:
        why = (await harness.say(f"/memory why f{number[1]}")).text
        contents.append(why.splitlines()[0])
        number = re.search(r"\bf(\d+)\b(?!\*\*)", why)
    return contents


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    moment = [START]
    monkeypatch.setattr(WallClock, "now", lambda _: moment[0])
    return moment


async def test_facts_of_a_long_life_are_recalled_in_german(
    home: Path, clock: list[datetime]
) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await live(harness, GERMAN, clock)
        assert "Leipzig" in await first_line(harness, "Wo wohne ich?")
        assert "Siemens" in await first_line(harness, "Wo arbeite ich?")
        assert "scheiden" in await first_line(harness, "Bin ich noch mit Petra verheiratet?")
        assert "4. Mai" in await first_line(harness, "Wann ist mein Geburtstag?")
        homes = await chain(harness, "Kassel")
        assert ["Kassel" in homes[0], "Hamburg" in homes[1], "Leipzig" in homes[2]] == [True] * 3
        works = await chain(harness, "Bosch")
        assert ["Bosch" in works[0], "Siemens" in works[1]] == [True] * 2
        birthdays = await chain(harness, "3. Mai")
        assert ["3. Mai" in birthdays[0], "4. Mai" in birthdays[1]] == [True] * 2


async def test_facts_of_a_long_life_are_recalled_in_japanese(
    home: Path, clock: list[datetime]
) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await live(harness, JAPANESE, clock)
        assert "福岡" in await first_line(harness, "どこに住んでいますか?")
        assert "ホンダ" in await first_line(harness, "どこで働いていますか?")
        assert "離婚" in await first_line(harness, "まだ花子と結婚していますか?")
        assert "5月4日" in await first_line(harness, "私の誕生日はいつですか?")
        homes = await chain(harness, "札幌")
        assert ["札幌" in homes[0], "仙台" in homes[1], "福岡" in homes[2]] == [True] * 3
        works = await chain(harness, "トヨタ")
        assert ["トヨタ" in works[0], "ホンダ" in works[1]] == [True] * 2
