"""A loopback server for real engines, like OpenAI's: embeddings by words, and a model that answers
by rules.

Texts that share words have similar vectors. This is enough to see which person gets which text. The
model may call a tool, and streams its answers on request."""

from __future__ import annotations

import base64
import json
import math
import re
import struct
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.services.doubles.double import words


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a tool by the model."""

    tool: str
    arguments: dict[str, Any]


Rule = Callable[[dict[str, Any]], str | Call]
"""The text or the call that a chat is answered with, of its body."""


def nothing(body: dict[str, Any]) -> str:
    return "{}"


def mem0_facts(body: dict[str, Any]) -> str:
    """Return one memory for each new message of a person, in the form that mem0's library requests."""
    (new,) = re.findall(
        r"## New Messages\n(.*?)\n\n## ", body["messages"][-1]["content"], re.DOTALL
    )
    said = re.findall(r"user: (.*)", new)
    facts = [
        {"id": str(number), "text": text, "attributed_to": "user"}
        for number, text in enumerate(said)
    ]
    return json.dumps({"memory": facts})


def graphiti_facts(body: dict[str, Any]) -> str:
    """Return one fact for each line of a person, in the form that Graphiti requests.

    "moved" ends earlier facts about the person's home.
    """
    asked = str(body["messages"][-1]["content"])
    _, is_asked_for_facts, schema = asked.rpartition("in the following format:")
    if not is_asked_for_facts:
        return json.dumps({"ok": True})
    said = re.search(r"<CURRENT[ _]MESSAGE>\s*(.*?)\s*</CURRENT", asked, re.DOTALL)
    lines = re.findall(r"^user: (.*)", said[1] if said else "", re.MULTILINE)
    match json.loads(schema).get("title"):
        case "ExtractedEntities":
            names = ["user", *lines] if lines else []
            entities = [{"name": name, "entity_type_id": 0} for name in names]
            return json.dumps({"extracted_entities": entities})
        case "ExtractedEdges":
            (at,) = re.findall(r"<REFERENCE_TIME>\s*(\S+)", asked)
            ends = {"source_entity_name": "user", "relation_type": "SAID", "valid_at": at}
            edges = [{**ends, "target_entity_name": line, "fact": line} for line in lines]
            return json.dumps({"edges": edges})
        case "EdgeDuplicate":
            known, _, new = asked.partition("<NEW FACT>")
            _, _, known = known.rpartition("<EXISTING FACTS>")
            facts = re.findall(r"'idx': (\d+), 'fact': (?:'|\")(.*?)(?:'|\")[,}]", known)
            new_fact = new.partition("</NEW FACT>")[0]
            over = [int(idx) for idx, fact in facts if "lives" in fact and "moved" in new_fact]
            return json.dumps({"duplicate_facts": [], "contradicted_facts": over})
        case "NodeResolutions":
            return json.dumps({"entity_resolutions": []})
        case _:
            # Graphiti asks about a person only if there is more to say than the facts.
            told = re.findall(r"user: ([^\n\"\\]*)", asked)
            summary = {"name": "user", "summary": f"The person said: {' '.join(told)}"[:400]}
            return json.dumps({"summaries": [summary]})


def brv_files(body: dict[str, Any]) -> str | Call:
    """Of each thing that brv is told one file with all of it, and what it has found as an answer.
    It shows its model neither, but has it write programs that work on them."""
    asked = "\n".join(str(one["content"]) for one in body["messages"] if one["role"] == "user")
    if body["messages"][-1]["role"] == "tool":
        return "It is done."
    if told := re.search(r"__curate_ctx_(\w+)", asked):
        # Each text gets a separate file, because brv merges files with equal titles.
        return _program(f"""
            const text = {told[0]};
            const change = {{type: "UPSERT", path: "talk/told", title: "told {told[1]}", reason: "it was said"}};
            Object.assign(change, {{summary: text.slice(0, 100), content: {{narrative: {{highlights: text}}}}}});
            console.log(JSON.stringify((await tools.curate([change])).summary));
        """)
    if found := re.search(r"__query_results_\w+", asked):
        return _program(f"setFinalResult(JSON.stringify({found[0]}));")
    return "Nothing more."


def _program(code: str) -> Call:
    return Call(
        tool="code_exec",
        arguments={"code": f"// What it is asked for\n(async () => {{ {code} }})()"},
    )


def embedded(text: str, dimensions: int) -> list[float]:
    vector = [0.0] * dimensions
    for word in words(text):
        vector[zlib.crc32(word.encode()) % dimensions] += 1.0
    length = math.sqrt(sum(part * part for part in vector))
    return [part / length for part in vector] if length else [1.0, *vector[1:]]


@asynccontextmanager
async def model_server(rule: Rule = nothing, dimensions: int = 1536) -> AsyncIterator[str]:
    """Run the server, and return its address with /v1."""

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "stub", "object": "model"}]})

    async def embeddings(request: web.Request) -> web.Response:
        body = await request.json()
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = [embedded(str(text), body.get("dimensions") or dimensions) for text in texts]
        if body.get("encoding_format") == "base64":
            packed: list[Any] = [
                base64.b64encode(struct.pack(f"<{len(one)}f", *one)).decode() for one in vectors
            ]
        else:
            packed = vectors
        data = [
            {"object": "embedding", "index": place, "embedding": one}
            for place, one in enumerate(packed)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return web.json_response(
            {"object": "list", "data": data, "model": body.get("model"), "usage": usage}
        )

    async def chat(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        answer = rule(body)
        if isinstance(answer, Call):
            function = {"name": answer.tool, "arguments": json.dumps(answer.arguments)}
            calls = [{"index": 0, "id": "call_1", "type": "function", "function": function}]
            message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": calls}
        else:
            message = {"role": "assistant", "content": answer}
        reason = "tool_calls" if isinstance(answer, Call) else "stop"
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        named = {"id": "1", "created": 1, "model": body.get("model")}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            return web.json_response(
                {**named, "object": "chat.completion", "choices": [choice], "usage": usage}
            )
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for delta, end in ((message, None), ({}, reason)):
            choice = {"index": 0, "delta": delta, "finish_reason": end}
            piece = {
                **named,
                "object": "chat.completion.chunk",
                "choices": [choice],
                "usage": usage if end else None,
            }
            await response.write(f"data: {json.dumps(piece)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

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
