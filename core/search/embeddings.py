"""Find messages that mean the same as a question, with the vectors of an embedding service.

Recall fuses these messages with the messages that contain the question's words. The service must
accept POST requests to /embeddings with the fields `model` and `input`. Messages are embedded in
the background, and questions when they are asked. While the service is slow or fails, recall
searches only by words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from time import monotonic

import numpy as np
import numpy.typing as npt
import structlog

from config.masking import mask_secrets
from core.errors import DeliveryError, MnemeError, Refused, Sentence, to_sentence
from core.memory.http import CallTimeout, JsonService, objects
from core.store.engine import Connection, Database
from core.store.query import MessageMatch, SearchQuery
from core.store.search import vectors
from core.store.search.text_search import TextSearch
from core.text.normalize import clean_query

QUESTION_CHARS = 1_000
"""A question is cut to this length, because embedding models read only a few hundred words."""
PASSAGE_CHARS = 2_000
"""A message is cut to this length."""
MAX_BATCH = 32
"""A request contains at most this many texts."""
BATCH_S = 0.5
"""The number of texts in a request is chosen so that the request takes about this long.

A small server handles one request at a time, so a question has to wait for the request before it.
"""
MAX_NEAREST = 100
"""A question finds at most this many messages by meaning."""
PROBE = "ferry"
"""A harmless word that is embedded to test the service."""
PAUSE_S = 60.0
"""After a failure, the service isn't called for this long."""
QUESTION_TIMEOUT = CallTimeout(0.5, 1.5)
PASSAGES_TIMEOUT = CallTimeout(5.0, 120.0)
FLOAT16_BYTES = 2
REFUSED_VECTOR = b""
"""The value that is stored instead of a vector if the service refuses a text."""
Vector = npt.NDArray[np.float32]
_log = structlog.get_logger("embeddings")


@dataclass(eq=False)
class EmbeddingRetriever:
    """A `Retriever` that finds messages by meaning."""

    database: Database
    service: JsonService
    model: str
    # Prefixes that the model expects before a text, such as ``query: ``.
    query_prefix: str = ""
    passage_prefix: str = ""
    # The name of the environment variable for the API key, if the variable isn't set. Without the
    # key, nothing is sent.
    missing_variable: str = ""
    # The last failure of the service. None while the service works.
    error: Sentence | None = None

    def __post_init__(self) -> None:
        self._paused_until_s = 0.0
        self._batch_size = MAX_BATCH
        # The size of a stored vector in bytes, or 0 until the service has returned one.
        self._vector_bytes = 0
        # The last question and its vector, because reranking searches for the same question twice.
        self._last_question = ""
        self._last_vector: Vector = np.zeros(0, np.float32)

    async def retrieve(self, query: SearchQuery) -> Sequence[MessageMatch]:
        """Return the messages that are most similar to the query's text, best first.

        Messages that the query's scopes and filters exclude are left out. The result is empty if
        the service fails, or during the pause after a failure.
        """
        question = mask_secrets(clean_query(query.text))[:QUESTION_CHARS].strip()
        if self._is_paused() or not question:
            return ()
        try:
            vector = await self._embed_question(question)
            return await self.database.read(
                lambda connection: _find_nearest(connection, query, self.model, vector)
            )
        except Refused:
            # The service may refuse only this question. `tend` notices if it refuses everything.
            return ()
        except MnemeError as error:
            self._pause(error)
            return ()

    async def tend(self) -> bool:
        """Store vectors for the next batch of messages without one.

        Returns True if more messages may need a vector. Returns False if no message needs one, or
        if the service or the database isn't ready.
        """
        if self._is_paused() or not await self.database.wait_for_log_space(0):
            return False
        batch = await self.database.read(
            lambda connection: vectors.load_batch(
                connection, self.model, self._vector_bytes, self._batch_size
            )
        )
        if batch.last_id == batch.after_id:
            return False
        texts = [self._render_passage(message) for message in batch.passages]
        started_s = monotonic()
        try:
            new_vectors = await self._embed_passages(texts)
        except MnemeError as error:
            self._pause(error)
            return False
        if texts:
            self._adapt_batch_size(len(texts), monotonic() - started_s)
        await self.database.write(
            lambda connection: vectors.store_vectors(
                connection, self.model, self._vector_bytes, batch, new_vectors
            )
        )
        return True

    def _render_passage(self, message: vectors.UnembeddedMessage) -> str:
        """Return the text that is sent for a message: its sender and its shortened text."""
        sender = f"{message.name}: " if message.name else ""
        text = mask_secrets(clean_query(message.text))[:PASSAGE_CHARS]
        return self.passage_prefix + sender + text

    def _adapt_batch_size(self, text_count: int, duration_s: float) -> None:
        """Set the batch to the number of texts that take `BATCH_S`, but at most double it."""
        texts_per_s = text_count / max(duration_s, 0.001)
        fitting_count = round(BATCH_S * texts_per_s)
        self._batch_size = max(1, min(fitting_count, 2 * self._batch_size, MAX_BATCH))

    async def probe(self) -> Sentence:
        """Send one word to the service, and return a sentence about its answer.

        Raises DeliveryError with a sentence about the failure.
        """
        try:
            (vector,) = await self._embed([PROBE], PASSAGES_TIMEOUT)
        except MnemeError as error:
            raise DeliveryError("probe_embeddings_failed", reason=to_sentence(error)) from error
        state = await self.describe_state()
        return Sentence("probe_embeddings", {"count": len(vector), "state": state})

    async def describe_state(self) -> Sentence:
        """Return a clause for the owner about the service and the messages without a vector."""
        count = await self.database.read(
            lambda connection: vectors.count_unembedded(connection, self.model, self._vector_bytes)
        )
        state = Sentence("embeddings_complete", {"model": self.model})
        if count:
            state = Sentence("embeddings_incomplete", {"model": self.model, "count": count})
        if self.error is None:
            return state
        return Sentence("embeddings_out_of_order", {"reason": self.error, "state": state})

    async def close(self) -> None:
        await self.service.close()

    async def _embed_question(self, question: str) -> Vector:
        """Return the vector of a question.

        If the question is the same as the last one, its vector is reused, unless the service now
        returns vectors of another size.
        """
        is_same_size = FLOAT16_BYTES * len(self._last_vector) == self._vector_bytes
        if question != self._last_question or not is_same_size:
            (vector,) = await self._embed([self.query_prefix + question], QUESTION_TIMEOUT)
            self._last_question = question
            self._last_vector = vector
        return self._last_vector

    async def _embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vectors of texts as bytes to store.

        If the service refuses the whole batch, each text is sent alone, and a text that is refused
        alone gets `REFUSED_VECTOR`. Raises Refused if the service refuses even a harmless word, and
        DeliveryError if it fails.
        """
        if not texts:
            return []
        try:
            text_vectors = await self._embed(texts, PASSAGES_TIMEOUT)
        except Refused:
            # Raises Refused if the service refuses every text.
            await self._embed([PROBE], PASSAGES_TIMEOUT)
            if len(texts) == 1:
                return [REFUSED_VECTOR]
            separate: list[bytes] = []
            for text in texts:
                separate += await self._embed_passages([text])
            return separate
        return [vector.astype(np.float16).tobytes() for vector in text_vectors]

    async def _embed(self, texts: Sequence[str], call_timeout: CallTimeout) -> list[Vector]:
        """Return a vector of length 1 for each text.

        Raises Refused if the service refuses the texts, and DeliveryError if the request fails.
        """
        if self.missing_variable:
            raise DeliveryError("embeddings_no_key", variable=self.missing_variable)
        body = {"model": self.model, "input": list(texts)}
        answer = await self.service.call(
            "POST", "/embeddings", body, call_timeout=call_timeout, is_repeatable=True
        )
        try:
            entries = sorted(objects(answer, "data"), key=lambda entry: entry["index"])
            with np.errstate(over="ignore"):
                matrix = np.array([entry["embedding"] for entry in entries], np.float32)
                lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DeliveryError("embeddings_no_vectors") from error
        is_complete = matrix.ndim == 2 and len(matrix) == len(texts)
        if not is_complete or not np.isfinite(lengths).all() or not lengths.all():
            raise DeliveryError("embeddings_bad_vectors")
        self.error = None
        self._vector_bytes = FLOAT16_BYTES * matrix.shape[1]
        return list(matrix / lengths)

    def _is_paused(self) -> bool:
        return self._paused_until_s > monotonic()

    def _pause(self, error: MnemeError) -> None:
        self._paused_until_s = monotonic() + PAUSE_S
        if not self.error:
            _log.warning(
                "the embedding service is out of order, recall searches by words only",
                error=str(error),
            )
        self.error = to_sentence(error)


def _find_nearest(
    connection: Connection, query: SearchQuery, model: str, vector: Vector
) -> list[MessageMatch]:
    """Return the messages with the highest cosine similarity to a vector, best first."""
    nearest: list[MessageMatch] = []
    vector_bytes = FLOAT16_BYTES * len(vector)
    for matches, data in TextSearch(connection, query).iter_vectors(model, vector_bytes):
        matrix = np.frombuffer(data, np.float16).reshape(len(matches), -1)
        scores = matrix.astype(np.float32) @ vector
        rows = np.argsort(-scores)[:MAX_NEAREST].tolist()
        candidates = [matches[row]._replace(score=float(scores[row])) for row in rows]
        nearest = nlargest(MAX_NEAREST, [*nearest, *candidates], key=lambda match: match.score)
    return nearest
