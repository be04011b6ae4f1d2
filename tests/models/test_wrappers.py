"""When the first model is asked, and when the second answers at once, over the real client and a
server that fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from core.agent.offline import OfflineModel
from core.errors import ModelError
from core.models.failures import ModelFailure
from core.models.wrappers import FallbackModel, HelperModel
from core.store.incognito import IncognitoRegistry
from core.store.model_limits import HelperChoices, ModelOutages
from core.store.rows import set_meta
from core.store.sqlite.database import Database
from core.types import BillingScope, Completion, Request
from gateway.texts.catalog import load_texts, word_sentence
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.scripted_model import says
from tests.models.test_claude import Caller, calling, request

pytestmark = pytest.mark.slow

SECOND = "offline"


class Conversation:
    """Asks as turns do, by number."""

    def __init__(self, caller: Caller) -> None:
        self.clock = caller.clock
        self.model = FallbackModel(
            caller.claude, OfflineModel("UTC", "The model is out of reach"), caller.clock
        )
        self.texts: list[str] = []

    async def say(self, turn: str) -> Completion:
        asked = replace(request("The ferry leaves at nine."), turn_key=turn)
        return await self.model.complete(asked, self.texts.append, self.texts.append)


async def test_failed_turn_with_all_its_tries_does_not_silence_the_model_for_others() -> None:
    async with calling([*[ModelReply.fail(529)] * 5, "Here."]) as (api, caller):
        talk = Conversation(caller)
        failed = await talk.say("1")
        assert (failed.model, len(api.requests)) == (SECOND, 5)
        assert failed.text.startswith("_The model is overloaded._")
        assert (await talk.say("1")).model == SECOND, "the rest of the turn goes on without it"
        assert len(api.requests) == 5
        assert (await talk.say("2")).text == "Here."


async def test_after_failures_of_two_turns_one_call_at_a_time_tries_whether_it_is_back() -> None:
    held = asyncio.Event()
    replies: list[Any] = [ModelReply.fail(503)] * 11 + [
        ModelReply.say("Here.", hold=held),
        "And here.",
    ]
    async with calling(replies) as (api, caller):
        talk = Conversation(caller)
        for turn in ("1", "2"):
            assert (await talk.say(turn)).model == SECOND
        assert len(api.requests) == 10
        assert (await talk.say("3")).text.startswith("_The model's server is out of service._")
        assert len(api.requests) == 10, "for five seconds nobody waits for it"
        talk.clock.advance(seconds=5)
        assert (await talk.say("4")).model == SECOND
        assert len(api.requests) == 11, "a trial is one try"
        talk.clock.advance(seconds=5)
        async with asyncio.TaskGroup() as tasks:
            trial = tasks.create_task(talk.say("5"))
            await api.until(lambda: api.held > 0)
            assert (await talk.say("6")).model == SECOND
            held.set()
        assert trial.result().text == "Here."
        assert (await talk.say("7")).text == "And here."


async def test_error_text_that_repeats_a_message_is_shown_to_no_one_else() -> None:
    async with calling(
        [ModelReply.fail(418, "no: The ferry leaves at nine", x_should_retry="true")] * 10
    ) as (
        _,
        caller,
    ):
        talk = Conversation(caller)
        for turn in ("1", "2"):
            assert "ferry leaves" in (await talk.say(turn)).text.partition("\n")[0]
        shown = (await talk.say("3")).text
        assert shown.startswith("_The model's server refused the request (418)._")


async def test_refused_requests_go_to_the_second_model_but_do_not_count_as_an_outage() -> None:
    async with calling([*[ModelReply.fail(400, "bad")] * 3, "Here."]) as (_, caller):
        talk = Conversation(caller)
        for turn in ("1", "2", "3"):
            assert (await talk.say(turn)).model == SECOND
        assert (await talk.say("4")).text == "Here."


FIRST = "claude-sonnet-5-5"
OTHER = "other/gpt-6-astra"
LINE = f"_{FIRST} is out of reach, so {OTHER} answers._"


class SomeDown:
    """A model that answers "NAME answers." unless its name is in `down`."""

    def __init__(self, *down: str) -> None:
        self.down = set(down)
        self.asked: list[str] = []
        self.single_attempts: list[bool] = []

    async def complete(self, request: Request, on_text: Any, on_wait: Any) -> Completion:
        self.asked.append(request.model)
        self.single_attempts.append(request.is_single_attempt)
        if request.model in self.down:
            if request.language:
                raise ModelFailure("no_key", status=401, model=request.model)
            raise ModelError("It is out of credit.", status=402, is_retryable=False)
        return replace(says(f"{request.model} answers."), model=request.model)


async def ask(
    model: FallbackModel, turn: str, session: int, root: int | None = None, language: str = ""
) -> Completion:
    """Ask as a turn in a session does. `root` is the first session of a compressed one."""
    billing = BillingScope(session_id=session, root_id=root)
    asked = replace(
        request("Hello"), turn_key=turn, billing=billing, model=FIRST, language=language
    )
    return await model.complete(asked, lambda _: None, lambda _: None)


async def restart(
    model: SomeDown, database: Database, clock: Any
) -> tuple[FallbackModel, ModelOutages]:
    """Build the model as a new process does."""
    outages = ModelOutages(database)
    await outages.load()
    offline = OfflineModel("UTC", "The model is out of reach")
    return FallbackModel(model, offline, clock, (FIRST, OTHER), outages, word_sentence), outages


async def test_notice_about_a_second_model_is_not_repeated_after_a_compression(
    database: Database, clock: Any
) -> None:
    model, _ = await restart(SomeDown(FIRST), database, clock)
    texts = [
        (await ask(model, "1", 7)).text,
        (await ask(model, "2", 8, root=7)).text,
        (await ask(model, "3", 9)).text,
    ]
    assert [text.startswith(LINE) for text in texts] == [True, False, True]


async def test_model_outage_continues_after_a_restart_without_a_second_notice_to_the_person(
    database: Database, clock: Any
) -> None:
    router = SomeDown(FIRST)
    model, _ = await restart(router, database, clock)
    assert (await ask(model, "1", 7)).text.startswith(LINE)
    model, outages = await restart(router, database, clock)
    router.asked.clear()
    router.single_attempts.clear()
    assert (await ask(model, "2", 7)).text == f"{OTHER} answers."
    assert (router.asked, router.single_attempts) == ([FIRST, OTHER], [True, False])
    assert str(outages.by_model[FIRST].reason) == "It is out of credit."
    router.down.clear()
    clock.advance(seconds=5)
    assert (await ask(model, "3", 7)).text == f"{FIRST} answers."
    model, outages = await restart(router, database, clock)
    assert outages.by_model == {}
    router.down.add(FIRST)
    assert (await ask(model, "4", 7)).text.startswith(LINE), "this is another outage"


async def test_outage_of_an_earlier_version_is_read_and_an_unknown_sentence_is_forgotten(
    database: Database, clock: Any
) -> None:
    saved = {
        "turns": {},
        "outages": {
            FIRST: {"reason": "The model is overloaded.", "answered_by": {"7": OTHER}},
            OTHER: {"reason": "model_gone", "values": {"x": 1}, "answered_by": {}},
        },
    }
    await database.write(lambda writer: set_meta(writer, "model_outages", json.dumps(saved)))
    router = SomeDown(FIRST)
    model, outages = await restart(router, database, clock)
    assert {name: str(outage.reason) for name, outage in outages.by_model.items()} == {
        FIRST: "The model is overloaded."
    }
    assert (await ask(model, "1", 7)).text == f"{OTHER} answers."


@pytest.mark.parametrize("saved", ["not JSON", "[]", '{"turns": {}, "outages": {"m": 1}}'])
async def test_unreadable_stored_model_outages_are_discarded(
    database: Database, clock: Any, saved: str
) -> None:
    await database.write(lambda writer: set_meta(writer, "model_outages", saved))
    model, outages = await restart(SomeDown(FIRST), database, clock)
    assert (outages.by_model, outages.turns) == ({}, {})
    assert (await ask(model, "1", 7)).text.startswith(LINE)


class OneAtATime:
    """A model whose calls wait until the test lets each of them answer or fail."""

    def __init__(self) -> None:
        self.calls: list[asyncio.Future[str]] = []
        self.begun: asyncio.Queue[asyncio.Future[str]] = asyncio.Queue()

    async def complete(self, request: Request, on_text: Any, on_wait: Any) -> Completion:
        call: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.calls.append(call)
        self.begun.put_nowait(call)
        return says(await call)

    def fail(self, index: int) -> None:
        error = ModelError("It is out of credit.", status=402, is_retryable=False)
        self.calls[index].set_exception(error)


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_end_of_an_earlier_model_call_starts_no_second_trial_during_an_outage(
    clock: Any, is_cancelled: bool
) -> None:
    server = OneAtATime()
    model = FallbackModel(server, OfflineModel("UTC"), clock)
    slow = asyncio.create_task(ask(model, "0", 7))
    await server.begun.get()
    for index in (1, 2):
        failing = asyncio.create_task(ask(model, str(index), 7))
        await server.begun.get()
        server.fail(index)
        await failing
    clock.advance(seconds=5)
    trial = asyncio.create_task(ask(model, "3", 7))
    await server.begun.get()
    if is_cancelled:
        slow.cancel()
    else:
        server.fail(0)
    await asyncio.wait([slow])
    clock.advance(seconds=5)
    assert (await ask(model, "4", 7)).model == SECOND
    assert len(server.calls) == 4, "the trial still runs"
    server.calls[3].set_result("Here.")
    assert (await trial).text == "Here."


class Refusing(SomeDown):
    """Refuses single requests of the models in `down`."""

    async def complete(self, request: Request, on_text: Any, on_wait: Any) -> Completion:
        if request.model in self.down:
            self.asked.append(request.model)
            raise ModelFailure("refused", status=400, is_retryable=False, number=400, words="Ana")
        return await super().complete(request, on_text, on_wait)


REFUSAL_LINE = f"_{FIRST} refused this request, so {OTHER} answers._"


async def test_refused_request_is_announced_as_a_refusal_and_begins_no_outage_of_the_model(
    database: Database, clock: Any
) -> None:
    router = Refusing(FIRST)
    model, outages = await restart(router, database, clock)
    texts = [(await ask(model, turn, session)).text for turn, session in (("1", 7), ("2", 7))]
    assert [text.startswith(REFUSAL_LINE) for text in texts] == [True, False]
    # Even after several refusals, each turn asks the model at once, with all its attempts.
    assert (router.asked, outages.by_model) == ([FIRST, OTHER] * 2, {})
    refusal = outages.find(FIRST, 7)
    assert refusal is not None
    assert str(refusal.reason) == "The model's server refused the request (400)."
    assert outages.find(FIRST, 8) is None
    model, outages = await restart(router, database, clock)
    assert (await ask(model, "3", 7)).text == f"{OTHER} answers."
    router.down.clear()
    assert (await ask(model, "4", 7)).text == f"{FIRST} answers."
    assert outages.find(FIRST, 7) is None
    router.down.add(FIRST)
    assert (await ask(model, "5", 7)).text.startswith(REFUSAL_LINE), "this is another refusal"


async def test_turn_killed_after_a_model_refusal_shows_the_refusal_notice_after_the_restart(
    database: Database, clock: Any
) -> None:
    class Calling(Refusing):
        async def complete(self, request: Request, on_text: Any, on_wait: Any) -> Completion:
            completion = await super().complete(request, on_text, on_wait)
            return replace(completion, text="", blocks=())

    model, _ = await restart(Calling(FIRST), database, clock)
    await ask(model, "1", 7)
    model, _ = await restart(Refusing(FIRST), database, clock)
    assert (await ask(model, "1", 7)).text.startswith(REFUSAL_LINE)
    assert (await ask(model, "1", 7)).text == f"{OTHER} answers."


async def test_refused_trial_request_during_a_model_outage_is_not_repeated_at_once(
    clock: Any,
) -> None:
    router = SomeDown(FIRST)
    model = FallbackModel(router, OfflineModel("UTC"), clock, (FIRST, OTHER))
    for turn in ("1", "2"):
        await ask(model, turn, 7)
    clock.advance(seconds=5)
    refusing = Refusing(FIRST)
    router.complete = refusing.complete  # type: ignore[method-assign]
    for turn in ("3", "4"):
        await ask(model, turn, 7)
    assert refusing.asked == [FIRST, OTHER, OTHER]


async def test_first_model_is_used_again_from_the_next_turn_after_its_outage_ends(
    database: Database, clock: Any
) -> None:
    router = SomeDown(FIRST)
    model, _ = await restart(router, database, clock)
    for turn in ("1", "2"):
        await ask(model, turn, 7)
    router.down.clear()
    router.asked.clear()
    # The turn that has begun stays with the fallback.
    assert (await ask(model, "2", 7)).text == f"{OTHER} answers."
    clock.advance(seconds=5)
    texts = [(await ask(model, turn, 7)).text for turn in ("3", "3", "4")]
    assert texts == [f"{FIRST} answers."] * 3
    assert router.asked == [OTHER, FIRST, FIRST, FIRST]


FAILURES: dict[str, list[Any]] = {
    "out of reach": [ModelReply.fail(529)] * 2,
    "out of credit": [ModelReply.fail(402, "pay")],
    "out of credit, as Anthropic says it": [
        ModelReply.fail(400, "Your credit balance is too low to access the API.")
    ],
    "retired": [ModelReply.fail(404, f"model: {FIRST}")],
    "without a valid key": [ModelReply.fail(401, "invalid x-api-key")],
}


class FirstOverHttp(SomeDown):
    """The first model is a real client, and the other one answers."""

    def __init__(self, client: Any) -> None:
        super().__init__()
        self._client = client

    async def complete(self, request: Request, on_text: Any, on_wait: Any) -> Completion:
        if request.model == FIRST:
            completion: Completion = await self._client.complete(request, on_text, on_wait)
            return completion
        return await super().complete(request, on_text, on_wait)


@pytest.mark.parametrize("reason", FAILURES)
async def test_fallback_answers_and_the_breaker_opens_whatever_is_wrong_with_the_first_model(
    reason: str,
) -> None:
    replies = [*FAILURES[reason] * 2, "Back."]
    async with calling(replies, tries=2) as (api, caller):
        router = FirstOverHttp(caller.claude)
        model = FallbackModel(router, OfflineModel("UTC"), caller.clock, (FIRST, OTHER))
        texts = [(await ask(model, turn, 7)).text for turn in ("1", "2", "3")]
        assert texts[0] == f"{LINE}\n\n{OTHER} answers."
        assert texts[1:] == [f"{OTHER} answers."] * 2
        assert len(api.requests) == 2 * len(FAILURES[reason]), "the third turn doesn't wait for it"
        caller.clock.advance(seconds=5)
        assert (await ask(model, "4", 7)).text == "Back."


async def test_sentences_about_a_failure_are_worded_in_the_language_of_the_request(
    database: Database, clock: Any
) -> None:
    router = SomeDown(FIRST)
    model, _ = await restart(router, database, clock)
    text = (await ask(model, "1", 7, language="de")).text
    assert text.startswith(f"_{FIRST} ist nicht erreichbar, deshalb antwortet {OTHER}._")
    router.down.add(OTHER)
    model, outages = await restart(router, database, clock)
    text = (await ask(model, "2", 7, language="de")).text
    assert text.startswith("_Der Schlüssel für claude-sonnet-5-5 fehlt. Setz ANTHROPIC_API_KEY._")
    reason = outages.by_model[FIRST].reason
    assert load_texts("ja").word(reason).startswith("claude-sonnet-5-5のキーがありません。")


async def test_turn_that_a_fallback_has_begun_stays_with_it_after_a_restart(
    database: Database, clock: Any
) -> None:
    router = SomeDown(FIRST)
    model, _ = await restart(router, database, clock)
    await ask(model, "1", 7)
    router.down.clear()
    model, _ = await restart(router, database, clock)
    assert (await ask(model, "1", 7)).text == f"{OTHER} answers."
    assert (await ask(model, "2", 7)).text == f"{FIRST} answers."


async def test_outage_in_incognito_leaves_no_trace_in_the_database(
    database: Database, clock: Any
) -> None:
    model, outages = await restart(SomeDown(FIRST), database, clock)
    await ask(model, "secret-turn", -5)
    await ask(model, "1", 7)
    assert set(outages.by_model[FIRST].answered_by) == {-5, 7}
    rows = await database.fetch_all("SELECT value FROM state_meta WHERE key = 'model_outages'")
    assert len(rows) == 1
    assert '"-5"' not in rows[0]["value"]
    assert "secret-turn" not in rows[0]["value"]


def build_helper(
    home: Path, model: SomeDown, database: Database, clock: Any, helpers: Sequence[str]
) -> HelperModel:
    (home / "mneme.toml").write_text(f"[model]\nhelper = {list(helpers)}\n")
    options = Settings.load({"MNEME_HOME": str(home)}).model
    return HelperModel(model, options, HelperChoices(database, IncognitoRegistry()), clock)


async def ask_helper(helper: HelperModel, model: str) -> str:
    completion = await helper.complete(
        replace(request("A title?"), model=model, kind="title"), lambda _: None, lambda _: None
    )
    return completion.text


async def test_helper_model_that_fails_is_replaced_by_the_second_and_used_again_once_it_recovers(
    home: Path, database: Database, clock: Any
) -> None:
    small, second = "claude-haiku-5-5", "openai/gpt-6-luna"
    router = SomeDown(small)
    helper = build_helper(home, router, database, clock, (small, second))
    for _ in range(3):
        assert await ask_helper(helper, small) == f"{second} answers."
    # After two failed calls, the helper isn't asked for five seconds.
    assert router.asked == [small, second, small, second, second]
    clock.advance(seconds=5)
    router.down.clear()
    assert await ask_helper(helper, small) == f"{small} answers."
    assert await ask_helper(helper, small) == f"{small} answers."


async def test_failing_helper_model_without_a_fallback_is_called_again_each_time(
    home: Path, database: Database, clock: Any
) -> None:
    router = SomeDown("claude-haiku-5-5")
    helper = build_helper(home, router, database, clock, ("claude-haiku-5-5",))
    for _ in range(3):
        with pytest.raises(ModelError, match="out of credit"):
            await ask_helper(helper, "claude-haiku-5-5")
    assert len(router.asked) == 3
