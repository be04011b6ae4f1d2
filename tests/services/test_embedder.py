"""What reaches a server for embeddings: texts that its model can take."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from aiohttp import web

from config.files import Secret
from core.errors import Refused
from core.memory.model_server import EMBEDDED_CHARS, Embedder, EmbedderOptions
from tests.services.doubles.double import KEY, Double, body_of, running


class ShortModel(Double):
    """Refuses a text that is longer than `limit_chars`, as a model does."""

    def __init__(self, limit_chars: int) -> None:
        super().__init__()
        self.limit_chars = limit_chars
        self.received: list[str] = []

    def routes(self) -> Sequence[web.RouteDef]:
        return [web.post("/embeddings", self._embed)]

    async def _embed(self, request: web.Request) -> web.Response:
        texts = (await body_of(request))["input"]
        if any(len(text) > self.limit_chars for text in texts):
            return web.json_response({"error": {"message": "too long"}}, status=400)
        self.received = texts
        return web.json_response({"data": [{"embedding": [1.0, 0.0]} for _ in texts]})


async def embed(model: ShortModel, texts: Sequence[str]) -> list[list[float]]:
    options = EmbedderOptions(embedder_url=model.url, embedder_dims=2, key=Secret(KEY))
    embedder = Embedder("langchain", options)
    try:
        return await embedder.embed(texts)
    finally:
        await embedder.close()


@pytest.mark.parametrize("limit_chars", [EMBEDDED_CHARS, 1_500])
async def test_long_text_is_cut_after_a_word(limit_chars: int) -> None:
    text = "Porto harbour " * 2_000
    async with running(model := ShortModel(limit_chars)):
        assert await embed(model, ["short", text]) == [[1.0, 0.0], [1.0, 0.0]]
    short, beginning = model.received
    assert short == "short"
    assert len(beginning) > limit_chars / 2
    assert text.startswith(beginning)
    assert beginning.split()[-1] in ("Porto", "harbour")


async def test_text_without_spaces_is_cut_to_the_limit() -> None:
    async with running(model := ShortModel(EMBEDDED_CHARS)):
        await embed(model, ["港" * 10_000])
    assert model.received == ["港" * EMBEDDED_CHARS]


async def test_short_text_refused_by_the_embedding_model_is_not_sent_again() -> None:
    async with running(model := ShortModel(3)):
        with pytest.raises(Refused):
            await embed(model, ["Porto"])
    assert len(model.asked) == 1
