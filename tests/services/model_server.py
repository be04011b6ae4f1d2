"""What real engines ask: a loopback server as OpenAI's, with embeddings by words and a model that answers by rule.

Texts that share words lie near each other, which is good enough to see who is told what.
"""

from __future__ import annotations

import base64
import json
import math
import re
import struct
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tests.services.doubles.double import words

Rule = Callable[[dict[str, Any]], str]
"""The text that a chat is answered with, of its body."""


def nothing(body: dict[str, Any]) -> str:
    return "{}"


def mem0_facts(body: dict[str, Any]) -> str:
    """Of each new message of a person one memory, as mem0's library asks for it."""
    (new,) = re.findall(r"## New Messages\n(.*?)\n\n## ", body["messages"][-1]["content"], re.DOTALL)
    said = re.findall(r"user: (.*)", new)
    facts = [{"id": str(number), "text": text, "attributed_to": "user"} for number, text in enumerate(said)]
    return json.dumps({"memory": facts})


def embedded(text: str, dimensions: int) -> list[float]:
    vector = [0.0] * dimensions
    for word in words(text):
        vector[zlib.crc32(word.encode()) % dimensions] += 1.0
    length = math.sqrt(sum(part * part for part in vector))
    return [part / length for part in vector] if length else [1.0, *vector[1:]]


@asynccontextmanager
async def model_server(rule: Rule = nothing, dimensions: int = 1536) -> AsyncIterator[str]:
    """Its address, with /v1."""

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "stub", "object": "model"}]})

    async def embeddings(request: web.Request) -> web.Response:
        body = await request.json()
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = [embedded(str(text), body.get("dimensions") or dimensions) for text in texts]
        if body.get("encoding_format") == "base64":
            packed: list[Any] = [base64.b64encode(struct.pack(f"<{len(one)}f", *one)).decode() for one in vectors]
        else:
            packed = vectors
        data = [{"object": "embedding", "index": place, "embedding": one} for place, one in enumerate(packed)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return web.json_response({"object": "list", "data": data, "model": body.get("model"), "usage": usage})

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        message = {"role": "assistant", "content": rule(body)}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        named = {"id": "1", "object": "chat.completion", "created": 1, "model": body.get("model")}
        return web.json_response({**named, "choices": [choice], "usage": usage})

    app = web.Application(client_max_size=50_000_000)
    routes = [web.get("/v1/models", models), web.post("/v1/embeddings", embeddings)]
    app.add_routes([*routes, web.post("/v1/chat/completions", chat)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()
