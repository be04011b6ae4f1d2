"""Calls the model server for memory services whose library runs in this process.

Such a library needs embeddings, and some libraries need a model's answers in JSON. Mneme calls the
server through a `JsonService`, and the library doesn't call it. So the timeouts, the size limits
and the error messages are the same as for all other services.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from config.files import Secret
from core.errors import ConfigError, DeliveryError, Refused
from core.memory.http import MODEL, SEARCH, CallTimeout, JsonService, objects, text_of
from core.memory.service import ServiceOptions, setup_option
from core.types import Json

# The maximum number of texts in one call for embeddings.
TEXTS_PER_CALL = 64
# A longer text is cut, because embedding models limit the length, often to 8,192 tokens.
EMBEDDED_CHARS = 6_000
# If the server refuses texts that are longer than this, they are cut to this length.
SHORT_CHARS = 1_200


@dataclass(frozen=True, kw_only=True)
class EmbedderOptions(ServiceOptions):
    """The options for embeddings. Setup asks only for `embedder_url`."""

    embedder_url: str = setup_option(
        "", "an OpenAI-compatible server for embeddings", is_web_address=True
    )
    embedder_model: str = field(
        default="text-embedding-3-small", metadata={"help": "the embedding model"}
    )
    embedder_dims: int = field(default=1536, metadata={"help": "how many numbers an embedding has"})
    key: Secret = setup_option(Secret(""), "the key of that server")


class Embedder:
    """Calls the endpoint `/embeddings` of an OpenAI-compatible server."""

    def __init__(self, service: str, options: EmbedderOptions, other_url: str = "") -> None:
        """Check the URL. If the options have none, `other_url` (the `llm_url`) is used.

        `service` is the name of the memory service, for errors. Raises ConfigError if the URL is
        invalid or contains a key.
        """
        self._options = options
        key = options.key.value
        url_option = "embedder_url" if options.embedder_url or not other_url else "llm_url"
        self._http = JsonService(
            f"{service} ({url_option})",
            options.embedder_url or other_url,
            {"Authorization": f"Bearer {key}"} if key else {},
            f"memory.providers.{service}.{url_option}",
        )

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return an embedding for each text, in the same order.

        Long texts are cut first. Raises DeliveryError if the server doesn't return an embedding for
        each text, and ConfigError if the embeddings don't have the configured size.
        """
        embeddings: list[list[float]] = []
        for start in range(0, len(texts), TEXTS_PER_CALL):
            embeddings += await self._embed_batch(texts[start : start + TEXTS_PER_CALL])
        return embeddings

    async def _embed_batch(self, texts: Sequence[str]) -> list[list[float]]:
        cut_texts = [_cut_at_word(text, EMBEDDED_CHARS) for text in texts]
        try:
            return await self._request_embeddings(cut_texts)
        except Refused:
            short_texts = [_cut_at_word(text, SHORT_CHARS) for text in texts]
            if short_texts == cut_texts:
                raise
            return await self._request_embeddings(short_texts)

    async def _request_embeddings(self, texts: Sequence[str]) -> list[list[float]]:
        options = self._options
        request = {
            "model": options.embedder_model,
            "input": [text or " " for text in texts],
            "dimensions": options.embedder_dims,
        }
        answer = await self._http.call(
            "POST", "/embeddings", request, call_timeout=SEARCH, is_repeatable=True
        )
        embeddings = [result.get("embedding") for result in objects(answer, "data")]
        if len(embeddings) != len(texts):
            raise DeliveryError("service_bad_answer", name=self._http.name)
        return [self._check_embedding(embedding) for embedding in embeddings]

    def _check_embedding(self, embedding: Any) -> list[float]:
        """Return an embedding. Raises ConfigError if it doesn't have the configured size."""
        options = self._options
        if not isinstance(embedding, list):
            raise ConfigError("memory_no_embedding", model=options.embedder_model)
        count = len(embedding)
        if count != options.embedder_dims:
            raise ConfigError("memory_dimensions", model=options.embedder_model, count=count)
        return list(embedding)

    async def close(self) -> None:
        await self._http.close()


def _cut_at_word(text: str, limit_chars: int) -> str:
    """Return the beginning of a text, cut after a word if possible."""
    if len(text) <= limit_chars:
        return text
    beginning = text[:limit_chars]
    whole_words = beginning.rsplit(maxsplit=1)[0]
    return whole_words if len(whole_words) > limit_chars // 2 else beginning


class JsonModel:
    """Calls the endpoint `/chat/completions` of an OpenAI-compatible server for answers in JSON."""

    def __init__(self, service: str, url: str, model: str, key: str) -> None:
        """Check the URL. Raises ConfigError if it is invalid or contains a key."""
        self._model = model
        self._http = JsonService(
            f"{service} (llm_url)",
            url,
            {"Authorization": f"Bearer {key}"} if key else {},
            f"memory.providers.{service}.llm_url",
        )

    async def complete(self, messages: Sequence[Json], call_timeout: CallTimeout = MODEL) -> Json:
        """Return the JSON object in the model's answer.

        Raises DeliveryError if the answer isn't a JSON object.
        """
        request = {
            "model": self._model,
            "messages": list(messages),
            "response_format": {"type": "json_object"},
        }
        answer = await self._http.call(
            "POST", "/chat/completions", request, call_timeout=call_timeout, is_repeatable=True
        )
        choices = objects(answer, "choices")
        content = text_of(choices[0].get("message"), "content") if choices else ""
        try:
            result = json.loads(content)
        except ValueError as error:
            raise DeliveryError("service_bad_json", name=self._http.name) from error
        if not isinstance(result, dict):
            raise DeliveryError("service_bad_answer", name=self._http.name)
        return result

    async def close(self) -> None:
        await self._http.close()


def library_version(package: str) -> str | None:
    """Return the version of an installed package, or None if it isn't installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
