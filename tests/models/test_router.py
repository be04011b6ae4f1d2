"""What a model can't use is known or learnt from a refusal, and the request goes on without it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from config.model_options import ModelOptions
from config.settings import Settings
from core.errors import ModelError, TurnBudgetSpent
from core.models.abilities import LearnedLimits
from core.models.chat_completions import ChatCompletions
from core.models.wrappers import MeteredModel, ModelRouter
from core.store.model_limits import ModelLimits
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.store.usage_limits import UsageLog
from core.types import BillingScope, Completion, Request, TurnBudget
from tests.fixtures.chat_api import ChatApi
from tests.fixtures.clock import SteadyClock
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.samples import ANA, opened
from tests.models.test_chat_completions import TOOL, build_results, text_block
from tests.models.test_chat_completions import build_request as build_plain_request

pytestmark = pytest.mark.slow

NAME = "own/gpt-6-astra"
PICTURE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
}
CALL = {"type": "tool_use", "id": "call_1", "name": "memory", "input": {"content": "Ana"}}
TOOLS_SENTENCE = f"_{NAME} can't use tools, so this answer comes without them._\n\n"
PICTURES_SENTENCE = f"_{NAME} can't see pictures, so this answer comes without them._\n\n"


def build_request(*turns: Any, session: int = 1, **options: Any) -> Request:
    request = build_plain_request(*turns, model=NAME, **options)
    return replace(request, billing=BillingScope(session_id=session))


def load_options(home: Path, lines: str = "") -> ModelOptions:
    """Return the options of [model] with the server "own"."""
    server = '[model.servers.own]\napi = "chat-completions"\nurl = "http://127.0.0.1:9/v1"\n'
    (home / "mneme.toml").write_text(f'[model]\nchat = "{NAME}"\n{lines}\n{server}')
    return Settings.load({"MNEME_HOME": str(home)}).model


class Asker:
    """Asks a router, and collects the texts that it shows."""

    def __init__(self, router: ModelRouter) -> None:
        self.router = router
        self.texts: list[str] = []

    async def ask(self, request: Request) -> Completion:
        return await self.router.complete(request, self.texts.append, lambda _: None)


@asynccontextmanager
async def asking(
    api: ChatApi, options: ModelOptions, limits: LearnedLimits | None = None, **more: Any
) -> AsyncIterator[Asker]:
    client = ChatCompletions("some-key", api.url, SteadyClock())
    router = ModelRouter({"own": client}, {}, options, limits, **more)
    try:
        yield Asker(router)
    finally:
        await router.close()


async def test_model_without_tool_support_is_asked_without_tools_and_the_person_told_once(
    home: Path,
) -> None:
    async with (
        ChatApi(["One.", "Two.", "Three."], lacks=["tools"]) as api,
        asking(api, load_options(home)) as asker,
    ):
        answers = [await asker.ask(build_request(session=number)) for number in (1, 1, 2)]
    assert [answer.text for answer in answers] == [
        f"{TOOLS_SENTENCE}One.",
        "Two.",
        f"{TOOLS_SENTENCE}Three.",
    ]
    assert answers[0].blocks == (text_block(TOOLS_SENTENCE), text_block("One."))
    assert asker.texts[0].startswith(TOOLS_SENTENCE)
    # It was asked with tools only once.
    assert len(api.refusals) == 1
    assert [bool(body.get("tools")) for body in api.requests] == [True, False, False, False]


async def test_earlier_calls_of_tools_become_texts_for_a_model_without_tools(home: Path) -> None:
    turns = ("Where?", [CALL], build_results([CALL], "In Porto."), "In Porto.", "Sure?")
    async with (
        ChatApi(["Yes."], lacks=["tools"]) as api,
        asking(api, load_options(home)) as asker,
    ):
        await asker.ask(build_request(*turns))
    sent = [message["content"] for message in api.requests[-1]["messages"]]
    assert sent[2:4] == [
        "[I called the tool memory (content: Ana).]",
        "[Result of the tool:]\nIn Porto.",
    ]


@pytest.mark.parametrize("stop_reason", ["tool_calls", "length"])
async def test_repeated_ids_and_invalid_names_in_the_tool_calls_of_a_model_are_replaced(
    home: Path, stop_reason: str
) -> None:
    earlier = {**CALL, "id": "call_0"}
    calls = [
        {"type": "tool_use", "id": "call_0", "name": "Look it up!", "input": {}},
        {"type": "tool_use", "id": "call_0", "name": "facts", "input": {}},
        {"type": "tool_use", "id": "call_7", "name": "n" * 90, "input": {}},
        {"type": "tool_use", "id": f"chatcmpl-tool-{'a' * 32}", "name": "facts", "input": {}},
    ]
    thinking = {"type": "thinking", "thinking": "Hm."}
    reply = ModelReply(blocks=(thinking, *calls), stop_reason=stop_reason)
    async with (
        ChatApi([reply], wants_reasoning=True) as api,
        asking(api, load_options(home)) as asker,
    ):
        request = build_request("Where?", [earlier], build_results([earlier], "In Porto."))
        completion = await asker.ask(request)
    reasoning, *asked = completion.blocks
    assert [call["name"] for call in asked] == ["Look_it_up_", "facts", "n" * 64, "facts"]
    ids = [call["id"] for call in asked]
    assert ids[2] == "call_7"
    assert len({"call_0", *ids}) == 5
    assert max(map(len, ids)) <= 40
    assert set(reasoning["calls"]) == set(ids)


@pytest.mark.parametrize("is_in_result", [False, True])
async def test_model_that_sees_no_pictures_gets_a_note_instead(
    home: Path, is_in_result: bool
) -> None:
    last: list[Mapping[str, Any]] = [text_block("What is this?"), PICTURE]
    turns: tuple[Any, ...] = (last,)
    if is_in_result:
        turns = ("Look.", [CALL], build_results([CALL], [text_block("A file."), PICTURE]))
    async with (
        ChatApi(["A cat?", "Hm."], lacks=["pictures"]) as api,
        asking(api, load_options(home)) as asker,
    ):
        answer = await asker.ask(build_request(*turns))
        later = await asker.ask(build_request(*turns, "A cat?", "Thanks."))
    assert answer.text == f"{PICTURES_SENTENCE}A cat?"
    assert later.text == "Hm."
    assert "A picture that you can't see" in str(api.requests[-1]["messages"])
    assert len(api.refusals) == 1


async def test_effort_setting_refused_by_a_model_is_left_out_silently_from_then_on(
    home: Path,
) -> None:
    async with (
        ChatApi(["One.", "Two."], lacks=["effort"]) as api,
        asking(api, load_options(home, 'effort = "high"')) as asker,
    ):
        assert (await asker.ask(build_request())).text == "One."
        assert (await asker.ask(build_request())).text == "Two."
    assert [body.get("reasoning_effort") for body in api.requests] == ["high", None, None]


OPENAI_LEVELS = (
    "Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model. "
    "Supported values are: 'none', 'low', 'medium', and 'high'."
)


@pytest.mark.parametrize(
    ("words", "level", "others"),
    [
        (OPENAI_LEVELS, "xhigh", ["high"]),
        ("output_config.effort: Input should be 'low', 'medium' or 'high'", "max", ["high"]),
        ("`reasoning_effort` must be one of low, medium, high", "minimal", ["low"]),
        ("reasoning_effort 'medium' isn't allowed, expected 'high'", "medium", ["high"]),
        ("This model does not support effort level 'max'.", "max", ["xhigh"]),
        ("`reasoning_effort` must be one of `none` or `default`", "high", [None]),
        ("Unsupported parameter: 'reasoning_effort' is not supported.", "high", [None]),
    ],
)
async def test_refused_level_of_thinking_is_replaced_by_the_next_one(
    home: Path, database: Database, words: str, level: str, others: list[str | None]
) -> None:
    limits = ModelLimits(database)
    options = load_options(home, f'effort = "{level}"')
    replies: list[Any] = [ModelReply.fail(400, words), "One.", "Two."]
    async with ChatApi(replies) as api:
        for _ in range(2):
            # A restarted process doesn't ask for the refused level again.
            async with asking(api, options, limits) as asker:
                await asker.ask(build_request())
    sent = [body.get("reasoning_effort") for body in api.requests]
    assert sent == [level, *others, *others]


async def test_refused_level_of_thinking_leaves_the_others_of_the_settings(
    home: Path, database: Database
) -> None:
    limits = ModelLimits(database)
    replies: list[Any] = [ModelReply.fail(400, OPENAI_LEVELS), "One.", "Two."]
    async with ChatApi(replies) as api:
        for level in ("xhigh", "low"):
            options = load_options(home, f'effort = "{level}"')
            async with asking(api, options, limits) as asker:
                await asker.ask(build_request())
    assert [body.get("reasoning_effort") for body in api.requests] == ["xhigh", "high", "low"]


async def test_server_that_counts_no_tokens_has_an_estimated_usage(
    home: Path, database: Database
) -> None:
    limits = ModelLimits(database)
    async with (
        ChatApi(["One. " * 100, "Two."], reports_usage=False) as api,
        asking(api, load_options(home), limits) as asker,
    ):
        usage = (await asker.ask(build_request("The ferry leaves at nine. " * 500))).usage
        await asker.ask(build_request([text_block("What?"), PICTURE]))
    # The texts have 13,000 and 500 characters.
    assert 3_500 < usage.input < 4_500
    assert 100 < usage.output < 200
    assert (usage.cache_read, usage.cache_write) == (0, 0)
    assert await limits.load_uncounted() == {"gpt-6-astra"}


async def test_estimated_usage_counts_against_the_budget_of_a_turn_and_is_logged(
    home: Path, database: Database
) -> None:
    session = await opened(Conversations(database, SteadyClock()), "hello")
    budget = TurnBudget(max_calls=5, max_tokens=1_000)
    billing = BillingScope(session_id=session.id, budget=budget)
    usage_log = UsageLog(database)
    async with (
        ChatApi(["One.", "Never."], reports_usage=False) as api,
        asking(api, load_options(home)) as asker,
    ):
        meter = MeteredModel(asker.router, usage_log, SteadyClock())
        asked = replace(build_request("The ferry leaves. " * 300), billing=billing)
        await meter.complete(asked, lambda _: None, lambda _: None)
        with pytest.raises(TurnBudgetSpent):
            await meter.complete(asked, lambda _: None, lambda _: None)
    assert budget.tokens > 1_000
    spending = await usage_log.load_spending(frozenset((ANA,)))
    assert (spending.calls, spending.usage.total_input > 1_000) == (1, True)


async def test_effort_applies_to_answers_and_not_to_titles(home: Path) -> None:
    options = load_options(home, f'effort = "high"\nefforts = {{ "{NAME}" = "low" }}')
    async with ChatApi(["One.", "Two."]) as api, asking(api, options) as asker:
        await asker.ask(build_request())
        await asker.ask(build_request(kind="title"))
    assert [body.get("reasoning_effort") for body in api.requests] == ["low", None]


async def test_lack_named_in_the_settings_is_never_tried(home: Path) -> None:
    options = load_options(home, f'lacks = {{ "{NAME}" = ["tools"] }}')
    async with ChatApi(["One."], lacks=["tools"]) as api, asking(api, options) as asker:
        assert (await asker.ask(build_request())).text == f"{TOOLS_SENTENCE}One."
    assert api.refusals == []


async def test_several_features_a_model_lacks_are_learnt_from_successive_refusals(
    home: Path,
) -> None:
    options = load_options(home, 'effort = "high"')
    async with ChatApi(["One."], lacks=["effort", "tools"]) as api, asking(api, options) as asker:
        assert (await asker.ask(build_request())).text == f"{TOOLS_SENTENCE}One."
    assert len(api.refusals) == 2


async def test_lack_learnt_from_a_refusal_is_known_after_a_restart(
    home: Path, database: Database
) -> None:
    options = load_options(home)
    limits = ModelLimits(database)
    async with ChatApi(["One.", "Two."], lacks=["tools"]) as api:
        for _ in range(2):
            async with asking(api, options, limits) as asker:
                await asker.ask(build_request())
    assert len(api.refusals) == 1
    assert await limits.load_lacks(NAME) == {"tools"}
    assert await limits.load_lacks("own/other") == frozenset()


async def test_window_that_a_refusal_names_is_known_after_a_restart(
    home: Path, database: Database
) -> None:
    options = load_options(home)
    async with (
        ChatApi(["One."], window_tokens=5000) as api,
        asking(api, options, ModelLimits(database)) as asker,
    ):
        with pytest.raises(ModelError, match="too large"):
            await asker.ask(build_request("x" * 100_000))
    async with ChatApi([]) as api, asking(api, options, ModelLimits(database)) as asker:
        assert await asker.router.fetch_window_tokens(NAME) == 5000


@pytest.mark.parametrize(
    ("words", "lines", "successor"),
    [
        ("The model has been deprecated. Use gpt-7-mini instead.", "", "gpt-7-mini"),
        ("The model does not exist.", "", ""),
        ("The model does not exist.", 'successors = { "gpt-6" = "gpt-7" }', "own/gpt-7"),
    ],
)
async def test_retired_model_is_reported_with_its_successor(
    home: Path, words: str, lines: str, successor: str
) -> None:
    reports: list[tuple[str, str]] = []

    async def report(model: str, name: str) -> None:
        reports.append((model, name))

    load_options(home)
    with (home / "mneme.toml").open("a") as file:
        file.write(f"{lines}\n")
    options = Settings.load({"MNEME_HOME": str(home)}).model
    reply = ModelReply.fail(404, words, code="model_not_found")
    async with ChatApi([reply]) as api, asking(api, options, on_retired=report) as asker:
        with pytest.raises(ModelError, match="no model named"):
            await asker.ask(build_request())
    assert reports == [(NAME, successor)]


@pytest.mark.parametrize(
    "words",
    [
        "No endpoints found that support image input",
        "No endpoints found that support tool use. Try another model.",
        "The model gpt-6-astra does not support images",
    ],
)
async def test_refusal_of_pictures_with_404_is_not_reported_as_a_retired_model(
    home: Path, words: str
) -> None:
    reports: list[str] = []

    async def report(model: str, name: str) -> None:
        reports.append(model)

    async with (
        ChatApi([ModelReply.fail(404, words), "A cat."]) as api,
        asking(api, load_options(home), on_retired=report) as asker,
    ):
        answer = await asker.ask(build_request([text_block("What?"), PICTURE], tools=(TOOL,)))
    assert answer.text.endswith("A cat.")
    assert reports == []


async def test_refusal_about_an_invalid_schema_raises_an_error_without_a_retry(home: Path) -> None:
    reply = ModelReply.fail(400, "tools.0.function.parameters: invalid schema")
    async with ChatApi([reply]) as api, asking(api, load_options(home)) as asker:
        with pytest.raises(ModelError, match="invalid schema"):
            await asker.ask(build_request(tools=(TOOL,)))
    assert len(api.requests) == 1


@pytest.mark.parametrize(
    "words",
    [
        "Invalid image: animated images are not supported.",
        "The API does not support images larger than 20 MB.",
        "webp images are not supported",
        "The model does not support images of this size.",
        "Only image/png and image/jpeg are supported.",
        "Invalid parameter: tools[3].function.parameters has an unsupported keyword",
        "1 request validation error: field required (tools.4.function.name)",
        "Invalid type for parameter tools[0].type",
        "This model does not support tools with more than 128 parameters.",
        "The API does not support functions named with a dot.",
    ],
)
async def test_refusal_of_a_single_picture_or_tool_is_not_stored_as_a_limit_of_the_model(
    home: Path, database: Database, words: str
) -> None:
    limits = ModelLimits(database)
    request = build_request([text_block("What?"), PICTURE])
    async with (
        ChatApi([ModelReply.fail(400, words)]) as api,
        asking(api, load_options(home), limits) as asker,
    ):
        with pytest.raises(ModelError, match="refused the request"):
            await asker.ask(request)
    assert await limits.load_lacks(NAME) == frozenset()


@pytest.mark.parametrize(
    ("words", "ability"),
    [
        ("This model does not support images.", "pictures"),
        ("gemma doesn't support image input", "pictures"),
        ("Images are not supported by this model", "pictures"),
        ("image input is not supported - hint: you may need the mmproj", "pictures"),
        ("Invalid content type. image_url is only supported by certain models.", "pictures"),
        ("The model doesn't support vision", "pictures"),
        ("registry.example/library/gemma does not support tools", "tools"),
        ("Unrecognized request argument supplied: tools", "tools"),
        ("Unsupported parameter: 'tools' is not supported with this model.", "tools"),
        ("Tools are not supported for this model", "tools"),
        ("`tool calling` is not supported with this model", "tools"),
        ('"auto" tool choice requires --enable-auto-tool-choice', "tools"),
    ],
)
async def test_refusal_of_all_pictures_or_all_tools_is_learnt(
    home: Path, database: Database, words: str, ability: str
) -> None:
    limits = ModelLimits(database)
    request = build_request([text_block("What?"), PICTURE])
    async with (
        ChatApi([ModelReply.fail(400, words), "One."]) as api,
        asking(api, load_options(home), limits) as asker,
    ):
        assert (await asker.ask(request)).text.endswith("One.")
    assert await limits.load_lacks(NAME) == {ability}


async def test_empty_list_in_the_settings_removes_what_was_learnt(
    home: Path, database: Database
) -> None:
    limits = ModelLimits(database)
    await limits.save_lack(NAME, "tools")
    options = load_options(home, f'lacks = {{ "{NAME}" = [] }}')
    async with ChatApi(["One."]) as api, asking(api, options, limits) as asker:
        assert (await asker.ask(build_request())).text == "One."
    assert api.requests[0]["tools"]
    assert await limits.load_lacks(NAME) == frozenset()
