"""What servers' refusals mean: a retired or unknown model, an account's setting, a key, or credit.

Each body is the one that the server's documentation or its users show. A real server sends it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from core.models.connections import ServerConnection
from core.models.failures import ErrorResponse, ModelFailure, ServerNames, build_refusal
from tests.fixtures.tables import each_row

pytestmark = pytest.mark.slow

MODEL = "acme/small-2.5:free"
KEY = "sk-secret-0123456789"


async def refuse(status: int, body: Any) -> ModelFailure:
    """Return the failure of a request that a server answers with this status and body."""
    async with serving(status, body) as connection:
        with pytest.raises(ModelFailure) as caught:
            await connection.stream(
                "/chat/completions", b"{}", MODEL, 20.0, lambda _: "", lambda _: None
            )
        return caught.value


@asynccontextmanager
async def serving(status: int, body: Any) -> AsyncIterator[ServerConnection]:
    """Yield a connection to a server that answers each request with this status and body."""

    async def answer(request: web.Request) -> web.Response:
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(text=text, status=status, content_type="application/json")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    connection = ServerConnection(f"http://{host}:{port}", "some-key", ServerNames(), 20.0)
    try:
        yield connection
    finally:
        await connection.close()
        await runner.cleanup()


def error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


RETIRED = {
    "anthropic": (
        404,
        {"type": "error", **error(f"model: {MODEL}", type="not_found_error")},
    ),
    "openai": (
        404,
        error(
            f"The model `{MODEL}` does not exist or you do not have access to it.",
            type="invalid_request_error",
            code="model_not_found",
        ),
    ),
    "openai, deprecated": (
        404,
        error(
            f"The model `{MODEL}` has been deprecated, learn more here: https://platform.example/docs",
            code="model_not_found",
        ),
    ),
    "openai, without access": (
        403,
        error(f"Project `p` does not have access to model `{MODEL}`", code="model_not_found"),
    ),
    "openai, not for chats": (
        404,
        error(
            "This is not a chat model and thus not supported in the v1/chat/completions endpoint."
        ),
    ),
    "azure": (
        410,
        error(
            "The model associated with the deployment is deprecated and no longer available for use.",
            code="ModelDeprecated",
        ),
    ),
    "openrouter, unknown": (400, error(f"{MODEL} is not a valid model ID", code=400)),
    "openrouter, gone": (404, error(f"No endpoints found for {MODEL}.", code=404)),
    "mistral": (
        400,
        {
            "object": "error",
            "message": f"Invalid model: {MODEL}",
            "type": "invalid_model",
            "param": None,
            "code": "1500",
        },
    ),
    "gemini": (
        404,
        [
            {
                "error": {
                    "code": 404,
                    "message": f"models/{MODEL} is not found for API version v1main, or is not "
                    "supported for generateContent. Call ListModels to see the available models.",
                    "status": "NOT_FOUND",
                }
            }
        ],
    ),
    "gemini, without a name": (
        404,
        [{"error": {"code": 404, "message": "Requested entity was not found."}}],
    ),
    "ollama": (404, {"error": f"model '{MODEL}' not found, try pulling it first"}),
    "ollama, chat completions": (
        404,
        error(f"model '{MODEL}' not found", type="not_found_error", param=None, code=None),
    ),
    "llama.cpp": (400, error("model not found", code=400, type="invalid_request_error")),
    "llama.cpp, named": (
        400,
        error(f"model '{MODEL}' not found", code=400, type="invalid_request_error"),
    ),
    "vllm": (
        404,
        error(
            f"The model `{MODEL}` does not exist.", type="NotFoundError", param="model", code=404
        ),
    ),
    "vllm, old": (
        404,
        {"object": "error", "message": f"The model `{MODEL}` does not exist.", "code": 404},
    ),
    "lm studio": (
        404,
        error(
            f'Model "{MODEL}" not found. Please check the list of models.',
            type="invalid_request_error",
            code="model_not_found",
        ),
    ),
    "groq": (
        400,
        error(
            f"The model `{MODEL}` has been decommissioned and is no longer supported.",
            code="model_decommissioned",
        ),
    ),
    "deepseek": (400, error("Model Not Exist", code="invalid_request_error")),
    "nvidia": (
        410,
        {
            "title": "Gone",
            "status": 410,
            "detail": f"The model '{MODEL}' has reached its end of life on 2026-08-07T09:00:00Z "
            "and is no longer available.",
        },
    ),
    "hugging face": (
        400,
        error(
            f"The requested model '{MODEL}' is not supported by any provider you have enabled.",
            code="model_not_supported",
        ),
    ),
    "github": (400, error(f"Unknown model: {MODEL}", code="unknown_model")),
}


@pytest.mark.parametrize("server", RETIRED)
async def test_refusal_because_a_model_is_unknown_or_retired_is_classified_as_no_model(
    server: str,
) -> None:
    failure = await refuse(*RETIRED[server])
    assert (failure.kind, failure.status, failure.is_retryable) == ("no_model", 404, False)
    assert str(failure).startswith(f"The server has no model named {MODEL}.")


OTHERS: dict[str, tuple[int, Any, str]] = {
    "openrouter, tools": (404, error("No endpoints found that support tool use."), "no_api"),
    "openrouter, policy": (
        404,
        error("No endpoints found matching your data policy. Configure: https://x/privacy"),
        "refused",
    ),
    "openrouter, providers": (
        404,
        error("No allowed providers are available for the selected model."),
        "refused",
    ),
    "model without tools": (400, error(f"{MODEL} does not support tools"), "refused"),
    "model in a region": (
        400,
        error(f"The model {MODEL} is not available in your region."),
        "refused",
    ),
    "lm studio, nothing loaded": (
        400,
        error("No models loaded. Please load a model in the developer page."),
        "refused",
    ),
    "one parameter": (400, error(f"Invalid value for {MODEL}: tools.0.name"), "refused"),
    "a field called model": (400, error("model: Input should be a valid string"), "refused"),
    "tool not found": (400, error("The model called a tool that was not found"), "refused"),
    "gemini, key": (
        400,
        [{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}],
        "401",
    ),
    "openrouter, moderation": (
        403,
        error(f"{MODEL} requires moderation. Your input was flagged for violence."),
        "refused",
    ),
    "anthropic, credit": (400, error("Your credit balance is too low to use the API."), "402"),
    "moonshot, credit": (429, error("Your account has insufficient balance"), "402"),
    "deepseek, credit": (402, error("Insufficient Balance"), "402"),
    "gemini, rate": (
        429,
        [{"error": {"code": 429, "message": "You exceeded your current quota, check your plan."}}],
        "429",
    ),
    "vllm, too long": (
        400,
        {"object": "error", "message": "This model's maximum context length is 8192 tokens."},
        "413",
    ),
    "llama.cpp, too long": (
        400,
        error(
            "the request exceeds the available context size, try increasing it",
            type="exceed_context_size_error",
            n_ctx=8192,
        ),
        "413",
    ),
    "llama.cpp, starting": (503, error("Loading model", type="unavailable_error"), "503"),
    "a web page": (404, "<html>404</html>", "no_api"),
    "a wrong path": (404, {"detail": "Not Found"}, "no_api"),
    "a path that is gone": (410, "", "no_api"),
}


@pytest.mark.parametrize("case", OTHERS)
async def test_refusal_of_something_else_does_not_count_as_a_retired_model(case: str) -> None:
    status, body, kind = OTHERS[case]
    assert (await refuse(status, body)).kind == kind


LLAMA_MODELS = {
    "object": "list",
    "data": [{"id": "tiny.gguf", "owned_by": "llamacpp", "meta": {"n_ctx": 61_440}}],
}
OTHER_MODELS = {"data": ["odd", {"id": "big", "meta": 1}, {"id": MODEL, "max_model_len": 9_000}]}


@pytest.mark.parametrize(
    ("body", "tokens"), [(LLAMA_MODELS, 61_440), (OTHER_MODELS, 9_000), ({"data": 1}, None)]
)
async def test_window_is_read_from_the_list_of_models(body: Any, tokens: int | None) -> None:
    async with serving(200, body) as connection:
        assert await connection.fetch_window_tokens("/models", MODEL) == tokens


async def test_picture_and_length_that_llama_cpp_refuses_are_recognised() -> None:
    failure = await refuse(500, error("image input is not supported - hint: provide the mmproj"))
    assert failure.refused_abilities == ("pictures",)
    assert not failure.is_retryable
    words = "request (70019 tokens) exceeds the available context size (61440 tokens)"
    failure = await refuse(400, error(words, type="exceed_context_size_error"))
    assert (failure.status, failure.window_tokens) == (413, 61_440)


async def test_log_of_a_model_failure_has_our_sentence_without_text_from_the_model_server() -> None:
    failure = await refuse(402, error("pay"))
    assert failure.log_message == str(failure)
    failure = await refuse(400, error("no: The ferry leaves at nine"))
    assert failure.log_message == "The model's server refused the request (400)."


@each_row("key", ["x", "1", "none"])
def test_placeholder_for_a_key_does_not_hide_words_of_a_refusal(key: str) -> None:
    body = {"error": {"message": "This model's maximum context length is 8192 tokens."}}
    response = ErrorResponse(status=400, body=body, headers={}, model="m")
    failure = build_refusal(response, ServerNames(), key)
    assert (failure.status, failure.window_tokens) == (413, 8192)


def test_server_that_wants_a_key_where_none_is_set_names_the_setting_for_it() -> None:
    response = ErrorResponse(status=401, body=error("no key"), headers={}, model="m")
    names = ServerNames(key="", key_setting="model.servers.home.key")
    failure = build_refusal(response, names, "")
    assert (failure.kind, failure.is_retryable) == ("401", False)
    assert "model.servers.home.key is empty" in str(failure.public_sentence) == str(failure)


@each_row(
    ("message", "abilities"),
    [
        (
            "The `content[].thinking` in the thinking mode must be passed back to the API.",
            ["thinking"],
        ),
        ("messages.1.content.0.thinking.signature: Field required", ["thinking"]),
        ("Failed to deserialize: unknown variant `image_url`, expected `text`", ["pictures"]),
        ("'messages.0.content' : value must be a string", ["pictures"]),
        ("This model does not support thinking.", ["effort"]),
    ],
)
def test_refusal_names_the_features_that_the_model_cannot_use(
    message: str, abilities: list[str]
) -> None:
    response = ErrorResponse(
        status=400, body={"error": {"message": message}}, headers={}, model="m"
    )
    failure = build_refusal(response, ServerNames(), KEY)
    assert list(failure.refused_abilities) == abilities


OPENAI_RATE = (
    "Rate limit reached for gpt-6 on tokens per min. Please try again in {}. Visit https://x."
)
DATES = {"date": "Sun, 29 Nov 2026 12:00:00 GMT", "retry-after": "Sun, 29 Nov 2026 12:00:30 GMT"}


@each_row(
    ("headers", "words", "pause_s"),
    [
        ({"retry-after": "7"}, "", 7.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, "", 1.5),
        (DATES, "", 30.0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "-3"}, "", 0.0),
        ({}, OPENAI_RATE.format("1.242s"), 1.242),
        ({}, OPENAI_RATE.format("6m0s"), 360.0),
        ({}, OPENAI_RATE.format("1h2m3s"), 3723.0),
        ({}, OPENAI_RATE.format("250ms"), 0.25),
        ({}, "x " * 300 + "Please retry in 34.07s.", 34.07),
        ({}, "Please try again in a moment.", None),
        ({"x-ratelimit-reset-requests": "1s"}, "Slow down.", None),
    ],
)
def test_pause_that_a_server_requests_is_read_from_headers_or_words(
    headers: dict[str, str], words: str, pause_s: float | None
) -> None:
    response = ErrorResponse(
        status=429, body={"error": {"message": words}}, headers=headers, model=MODEL
    )
    assert build_refusal(response, ServerNames(), KEY).retry_after_s == pytest.approx(pause_s)
