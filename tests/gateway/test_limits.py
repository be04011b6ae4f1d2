"""What a person and a room may use in a day: told at 80 %, refused in one sentence at the limit.

The model is the real client over the loopback Messages API.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, get_args

import pytest

from config.settings import LimitedResource, Settings, SettingsError
from core.models.claude import Claude
from core.types import Address, Scope
from gateway import services
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, notices, open_gateway
from tests.fixtures.messages_api import Brain, MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.gateway.commands.test_links import link, on_discord

pytestmark = pytest.mark.slow

IDS = count()
KEY = "sk-ant-limits"
ROOM = Scope.group("telegram", "-100")
HERE = Address(platform="telegram", chat_id="-100")
LISTED = 'rooms = ["telegram:-100"]\n'
ANSWER = "That sounds good."
FOR_YOU = (
    "Your limit for today is reached (2 of 2 answers). It resets at midnight (Europe/Lisbon). "
    "Everything else still works, such as `/recall` and `/memory`."
)
FOR_ALL = FOR_YOU.replace("Your limit for today", "Today's limit for this group")


def person(**limits: object) -> str:
    return _limits("day", limits)


def room(**limits: object) -> str:
    return _limits("room_day", limits)


def _limits(whose: str, limits: dict[str, object]) -> str:
    return f"[limits.{whose}]\n" + "".join(f"{name} = {value}\n" for name, value in limits.items())


def brain(body: dict[str, Any]) -> str:
    return ANSWER if body.get("tools") else "[]"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SteadyClock:
    clock = SteadyClock()
    monkeypatch.setattr(services, "WallClock", lambda: clock)
    return clock


@asynccontextmanager
async def gateway(
    home: Path, options: str, answers: Brain = brain, *, has_helper: bool = False
) -> AsyncIterator[tuple[GatewayHarness, MessagesApi]]:
    async with MessagesApi(answers, key=KEY) as api:
        claude = Claude(api_key=KEY, base_url=api.url, clock=services.WallClock(), tries=1)  # type: ignore[attr-defined]
        try:
            async with open_gateway(
                home, claude, options, claude if has_helper else None
            ) as harness:
                yield harness, api
        finally:
            await claude.close()


async def said(harness: GatewayHarness, text: str, who: str = "7", **changes: Any) -> str:
    return (await harness.say(text, who, **{"message_id": f"m{next(IDS)}", **changes})).text


async def in_room(harness: GatewayHarness, text: str, who: str = "7") -> KeptReply:
    return await harness.say(text, who, address=HERE, scope=ROOM, is_direct=False)


async def _served(harness: GatewayHarness, number: int) -> None:
    await harness.admission.serve(number)


def _has_gone(api: MessagesApi, number: int) -> bool:
    return api.disconnects == number


def chats(api: MessagesApi) -> int:
    return sum(1 for body in api.requests if body.get("tools"))


async def test_daily_limit_stops_model_answers_with_one_sentence_but_not_commands(
    home: Path, clock: SteadyClock
) -> None:
    async with gateway(home, person(answers=2)) as (harness, api):
        assert [await said(harness, "The ferry leaves at nine.") for _ in range(4)] == [
            ANSWER,
            ANSWER,
            FOR_YOU,
            FOR_YOU,
        ]
        assert chats(api) == 2
        assert "ferry" in await said(harness, "/recall ferry")
        assert "Reminder 1 is set" in await said(harness, "/remind tomorrow at 9 call Ana")
        assert "**Your limits today**: 2 of 2 answers, " in await said(harness, "/usage")


async def test_daily_limit_of_answers_is_reset_at_the_next_day(
    home: Path, clock: SteadyClock
) -> None:
    clock.moment = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)
    async with gateway(home, person(answers=1)) as (harness, _):
        assert await said(harness, "One") == ANSWER
        clock.advance(minutes=29)
        assert await said(harness, "Two") != ANSWER
        clock.advance(minutes=1)
        assert await said(harness, "Three") == ANSWER


async def test_daily_limit_lasts_a_whole_day_of_25_hours(home: Path, clock: SteadyClock) -> None:
    clock.moment = datetime(2026, 10, 24, 23, 30, tzinfo=UTC)  # half past midnight in summer time
    async with gateway(home, person(answers=1)) as (harness, _):
        assert await said(harness, "One") == ANSWER
        clock.advance(hours=24, minutes=15)
        assert await said(harness, "Two") != ANSWER
        clock.advance(minutes=15)
        assert await said(harness, "Three") == ANSWER


async def test_person_is_warned_once_at_80_percent_of_the_daily_limit_even_across_restarts(
    home: Path, clock: SteadyClock
) -> None:
    told = []
    for _ in range(3):
        async with gateway(home, person(answers=5)) as (harness, _):
            answers = [await said(harness, "The ferry") for _ in range(2)]
            told += await notices(harness)
    assert answers == [ANSWER, FOR_YOU.replace("2 of 2", "5 of 5")]
    [(where, text)] = told
    assert where == "telegram:7"
    assert text.startswith("Your limit for today is nearly reached (4 of 5 answers).")


async def test_person_near_a_limit_gets_a_notice_for_each_limit(
    home: Path, clock: SteadyClock
) -> None:
    async with gateway(home, person(answers=5, reminders=5)) as (harness, _):
        for _ in range(5):
            await said(harness, "/remind tomorrow at 9 call Ana")
        for _ in range(5):
            await said(harness, "Hello")
        told = [text.partition("(")[2].partition(")")[0] for _, text in await notices(harness)]
        assert told == ["4 of 5 reminders", "4 of 5 answers"]


async def test_daily_limits_apply_to_the_owner_only_if_the_settings_say_so(
    home: Path, clock: SteadyClock
) -> None:
    async with gateway(home, person(answers=1)) as (harness, _):
        assert {await said(harness, "Hello", "42") for _ in range(3)} == {ANSWER}
        assert "limits today" not in await said(harness, "/usage", "42")
    async with gateway(home, f"[limits]\nday_for_owner = true\n{person(answers=1)}") as (
        harness,
        _,
    ):
        assert (await said(harness, "Hello", "42")).startswith("Your limit for today")


async def test_daily_limit_of_tokens_and_money_refuses_the_next_message(
    home: Path, clock: SteadyClock
) -> None:
    for limit, most in (
        ("input_tokens", "of 3 input tokens"),
        ("output_tokens", "of 3 output tokens"),
    ):
        clock.advance(days=1)
        async with gateway(home, person(**{limit: 3})) as (harness, _):
            assert await said(harness, "Hello") == ANSWER
            assert most in await said(harness, "Hello")
    clock.advance(days=1)
    async with gateway(home, person(money=0.0001)) as (harness, _):
        assert await said(harness, "Hello") == ANSWER
        assert "of $0.0001)" in await said(harness, "Hello")
        assert "of $0.0001" in await said(harness, "/usage")


async def test_model_without_a_price_counts_towards_the_token_limit_but_not_the_money_limit(
    home: Path, clock: SteadyClock
) -> None:
    unpriced = '[model]\nchat = "claude-opus-4-8"\n'
    async with gateway(home, unpriced + person(money=0.000001)) as (harness, _):
        assert {await said(harness, "Hello") for _ in range(3)} == {ANSWER}
    async with gateway(home, unpriced + person(money=0.000001, output_tokens=3)) as (harness, _):
        assert "of 3 output tokens" in await said(harness, "Hello")


async def test_group_and_each_of_its_members_have_separate_daily_limits(
    home: Path, clock: SteadyClock
) -> None:
    async with gateway(home, LISTED + person(answers=2) + room(answers=3)) as (harness, api):
        assert [(await in_room(harness, "Hello", "42")).text for _ in range(3)] == [
            ANSWER
        ] * 3  # the owner: nobody's
        assert [(await in_room(harness, "Hello", "7")).text for _ in range(2)] == [ANSWER] * 2
        assert (await in_room(harness, "Hello", "7")).text == FOR_YOU
        assert await said(harness, "Hello", "7") == FOR_YOU
        assert (await in_room(harness, "Hello", "8")).text == ANSWER
        assert (await in_room(harness, "Hello", "8")).text == FOR_ALL.replace("2 of 2", "3 of 3")
        assert (await in_room(harness, "Hello", "42")).text == ANSWER
        usage = (await in_room(harness, "/usage", "8")).text
        assert "**Your limits today**: 1 of 2 answers, " in usage
        assert "**Today in this group**: 3 of 3 answers, " in usage
        assert chats(api) == 7


async def test_limit_warning_of_a_group_goes_to_the_owner_and_a_members_to_the_member(
    home: Path, clock: SteadyClock
) -> None:
    async with gateway(home, LISTED + person(answers=5) + room(answers=5)) as (harness, _):
        await said(harness, "Hello", "42")
        await said(harness, "Hello", "7")
        for _ in range(4):
            await in_room(harness, "Hello")
        told = await notices(harness)
        introduction, *told = told
        assert introduction[0] == "telegram:-100"
        assert [where for where, _ in told] == ["telegram:7"]
        await in_room(harness, "Hello", "8")
        [(where, text)] = await notices(harness)
        assert where == "telegram:42"
        assert text.startswith(
            "Today's limit for the group `room:telegram:-100` is nearly reached (4 of 5 answers)."
        )


async def test_reached_limit_is_announced_in_a_group_once_an_hour_and_its_messages_are_stored(
    home: Path, clock: SteadyClock
) -> None:
    async with gateway(home, LISTED + person(answers=1)) as (harness, _):
        await in_room(harness, "Hello")
        assert (await in_room(harness, "Hello")).answer is not None
        silent = await in_room(harness, "The ferry leaves at nine.")
        assert silent.answer is None
        assert silent.is_abandoned
        assert "ferry" in (await in_room(harness, "/recall ferry")).text
        await in_room(harness, "Hello", "8")
        assert (await in_room(harness, "Hello", "8")).answer is not None
        clock.advance(hours=1)
        assert (await in_room(harness, "Hello")).answer is not None


async def test_member_over_the_limit_does_not_block_others_of_the_same_turn(
    home: Path, clock: SteadyClock
) -> None:
    """Messages that waited together are one turn: of those who may still ask."""
    gate = asyncio.Event()

    def held(body: dict[str, Any]) -> ModelReply:
        return ModelReply.say(ANSWER, hold=None if gate.is_set() else gate, after_events=2)

    async with gateway(home, LISTED + person(answers=1), held) as (harness, api):
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(in_room(harness, "One", "7"))
            await api.until(lambda: api.held == 1)
            others = [KeptReply(), KeptReply()]
            for who, reply in zip(("8", "7"), others, strict=True):
                inbound = harness.inbound("Two", who, address=HERE, scope=ROOM, is_direct=False)
                number = await harness.admission.admit(inbound, reply)
                assert number is not None
                tasks.create_task(_served(harness, number))
            gate.set()
        assert first.result().text == ANSWER
        assert [reply.text for reply in others] == [ANSWER, FOR_YOU.replace("2 of 2", "1 of 1")]
        assert chats(api) == 2


async def test_linked_accounts_share_one_daily_limit_of_answers(
    home: Path, clock: SteadyClock
) -> None:
    async with gateway(home, person(answers=2)) as (harness, _):
        await said(harness, "Hello")
        await link(harness)
        assert (await harness.say("Hello", **on_discord())).text == ANSWER
        assert (await harness.say("Hello", **on_discord())).text == FOR_YOU
        assert await said(harness, "Hello") == FOR_YOU


async def test_helper_model_calls_count_towards_the_daily_limit_and_are_not_made_beyond_it(
    home: Path, clock: SteadyClock
) -> None:
    """Titles, facts, summaries: paid by who asked; at the limit the first words are the title,
    rules find facts."""
    async with gateway(home, person(output_tokens=1), has_helper=True) as (harness, api):
        await said(harness, "I live in Porto and my sister is called Clara.")
        assert [body["model"] for body in api.requests] == ["claude-sonnet-5-5"]
        clock.advance(hours=1)
        await harness.memory.tend()
        found = await said(harness, "/recall --summary Porto")
        assert "I couldn't summarize the results: Your limit for today is reached" in found.replace(
            "\\", ""
        )
        assert len(api.requests) == 1
        assert "Porto" in await said(harness, "/memory facts")


async def test_helper_model_calls_in_a_group_are_charged_to_the_person_who_caused_them(
    home: Path, clock: SteadyClock
) -> None:
    async with gateway(home, LISTED, has_helper=True) as (harness, _):
        await in_room(harness, "I live in Porto and my sister is called Clara.")
        await in_room(harness, "/recall --summary Porto", "8")
        clock.advance(hours=1)
        await harness.memory.tend()
        rows = await harness.services.database.fetch_all(
            "SELECT DISTINCT kind, account FROM model_calls ORDER BY kind"
        )
        assert {(row["kind"], row["account"]) for row in rows} == {
            ("chat", "telegram:7"),
            ("title", "telegram:7"),
            ("facts", "telegram:7"),
            ("summary", "telegram:8"),
        }


async def test_scheduled_question_counts_towards_the_daily_limit_and_is_refused_once_an_hour(
    home: Path, clock: SteadyClock
) -> None:
    cron = Address(platform="cron", chat_id="1")
    async with gateway(home, person(answers=2)) as (harness, _):
        answers = [await harness.say("How is the weather?", "7", address=cron) for _ in range(4)]
        assert [one.answer.text if one.answer else None for one in answers] == [
            ANSWER,
            ANSWER,
            FOR_YOU,
            None,
        ]
        assert await said(harness, "Hello") == FOR_YOU


async def test_reminders_and_scheduled_questions_of_a_day_are_limited(
    home: Path, clock: SteadyClock
) -> None:
    options = person(reminders=2, scheduled_questions=1)
    async with gateway(home, options) as (harness, _):
        set_, removed = "/remind tomorrow at 9 call Ana", "/cron remove 2"
        for line in (set_, set_, removed):
            await said(harness, line)
        assert await said(harness, set_) == FOR_YOU.replace("answers", "reminders")
        assert "is set" in await said(harness, set_, "42")
        assert "is set" in await said(harness, "/cron add daily at 8 | what is on my list?")
        assert "(1 of 1 scheduled questions)" in await said(
            harness, "/cron add daily at 9 | what is on my list?"
        )
        assert await said(harness, "Hello") == ANSWER
        clock.advance(days=1)
        assert "is set" in await said(harness, set_)


async def files(harness: GatewayHarness, who: str = "7") -> int:
    reply = await harness.say("/export", who, message_id=f"m{next(IDS)}")
    assert reply.answer is not None
    return len(reply.answer.files)


async def test_sent_and_exported_files_of_a_day_are_limited(home: Path, clock: SteadyClock) -> None:
    async with gateway(home, person(files=2)) as (harness, _):
        assert "0 of 2 files" in await said(harness, "/usage")
        for _ in range(2):
            assert await files(harness)
        assert "2 of 2 files" in await said(harness, "/usage")
        assert await said(harness, "/export") == FOR_YOU.replace("answers", "files")
        assert await files(harness, "42"), "the owner's"
        assert await said(harness, "Hello") == ANSWER
        clock.advance(days=1)
        assert await files(harness)


async def test_simultaneous_turns_exceed_the_daily_limit_by_at_most_their_own_number(
    home: Path, clock: SteadyClock
) -> None:
    gate = asyncio.Event()

    def held(body: dict[str, Any]) -> ModelReply:
        return ModelReply.say(ANSWER, hold=gate, after_events=2)

    async with gateway(home, person(answers=2), held) as (harness, api):
        topics = [
            Address(platform="telegram", chat_id="7", thread_id=str(number)) for number in range(4)
        ]
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(said(harness, "Hello", address=topic)) for topic in topics]
            await api.until(lambda: api.held == 4)
            gate.set()
        assert {one.result() for one in asked} == {ANSWER}
        assert {await said(harness, "Hello", address=topic) for topic in topics} == {
            FOR_YOU.replace("2 of 2", "4 of 2")
        }
        assert chats(api) == 4


async def test_an_answer_that_was_stopped_is_paid_for_too(home: Path, clock: SteadyClock) -> None:
    def held(body: dict[str, Any]) -> ModelReply:
        return ModelReply.say(ANSWER, hold=asyncio.Event(), after_events=4)

    async with gateway(home, person(answers=2), held) as (harness, api):
        for number in (1, 2):
            asked = asyncio.create_task(said(harness, "Hello"))
            await api.until(lambda: api.held == 1)
            await harness.say("/stop", "7")
            assert "[stopped]" in await asked
            await api.until(partial(_has_gone, api, number))
        assert await said(harness, "Hello") == FOR_YOU
        [row] = await harness.services.database.fetch_all(
            "SELECT SUM(input_tokens) AS tokens, SUM(turns) FROM model_calls"
        )
        assert row["tokens"] > 1000


async def test_an_answer_that_was_begun_anew_is_paid_for_too(
    home: Path, clock: SteadyClock
) -> None:
    def answers(body: dict[str, Any]) -> ModelReply:
        is_first = "More" not in str(body["messages"])
        return (
            ModelReply.say(ANSWER, hold=asyncio.Event(), after_events=0)
            if is_first
            else ModelReply.say(ANSWER)
        )

    async with gateway(home, "", answers) as (harness, api):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(harness.say("Hello", "7"))
            await api.until(lambda: api.held == 1)
            assert await said(harness, "More") == ANSWER
        calls = await harness.services.database.fetch_all(
            "SELECT turns, input_tokens FROM model_calls ORDER BY id"
        )
        assert [row["turns"] for row in calls] == [0, 1]
        assert calls[0]["input_tokens"] > 500


async def test_limit_that_is_off_or_zero_does_not_limit(home: Path, clock: SteadyClock) -> None:
    names = get_args(LimitedResource)
    off = {name: '"off"' if number % 2 else 0 for number, name in enumerate(names)}
    async with gateway(home, person(**off)) as (harness, _):
        assert {await said(harness, "Hello") for _ in range(3)} == {ANSWER}
        assert "limits today" not in await said(harness, "/usage")


def test_wrong_limits_in_the_settings_are_named(home: Path) -> None:
    (home / "mneme.toml").write_text(
        '[limits.day]\nanswers = -1\nmoney = "no"\n[limits.room_day]\nwords = 3\n'
    )
    with pytest.raises(SettingsError) as raised:
        Settings.load({"MNEME_HOME": str(home)})
    assert [problem.partition(":")[0] for problem in raised.value.problems] == [
        "limits.day.answers",
        "limits.day.money",
        "limits.room_day.words",
    ]
