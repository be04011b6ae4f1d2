"""Meaning without words in common: a second ranked list for recall, by the vectors of an embedding service.

The service speaks the usual form of embeddings (POST /embeddings with `model` and `input`). Messages get their vectors
in the background, a question when it is asked; while the service is slow or out of order recall answers by words alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from time import monotonic

import numpy as np
import numpy.typing as npt
import structlog

from config.masking import masked
from core.errors import DeliveryError, MnemeError, Refused
from core.memory.http import JsonService, Patience, objects
from core.store import vectors
from core.store.query import MessageMatch, SearchQuery
from core.store.rows import Connection
from core.store.sqlite.database import Database
from core.store.sqlite.text_index import TextIndex
from core.text.normalize import clean

QUESTION_CHARS, PASSAGE_CHARS = 1_000, 2_000
"""Of longer texts the beginning: the models read some hundred words."""
BATCH, BATCH_S = 32, 0.5
"""At most so many texts a request, and so few that it takes about so long: a question has to wait for it where a small
server does one thing after the other."""
NEAREST = 100
PROBE = "ferry"
REST_S = 60.0
"""After a failure it is left alone for so long."""
QUESTION, PASSAGES = Patience(0.5, 1.5), Patience(5.0, 120.0)
Vector = npt.NDArray[np.float32]
_log = structlog.get_logger("embeddings")


@dataclass(eq=False)
class EmbeddingRetriever:
    """Fills the role `Retriever`. The prefixes are what a model wants before a text, such as ``query: ``."""

    database: Database
    service: JsonService
    model: str
    query_prefix: str = ""
    passage_prefix: str = ""
    missing: str = ""
    """The environment variable with the key, where there is none: nothing is sent without it."""
    error: str = ""
    """Why it is left alone just now."""

    def __post_init__(self) -> None:
        self._rests_until = 0.0
        self._batch = BATCH
        self._size = 0  # of a vector as it is kept, in bytes, once the service has made one
        self._asked = "", np.zeros(0, np.float32)  # the last question: to put in order what it finds, it is asked twice

    async def retrieve(self, query: SearchQuery) -> Sequence[MessageMatch]:
        if self._rests_until > monotonic() or not (typed := masked(clean(query.text))[:QUESTION_CHARS].strip()):
            return ()
        try:
            last, vector = self._asked
            if last != typed or 2 * len(vector) != self._size:
                (vector,) = await self._embedded([self.query_prefix + typed], QUESTION)
                self._asked = typed, vector
            return await self.database.read(lambda connection: _nearest(connection, query, self.model, vector))
        except Refused:
            # This question alone; a service that refuses everything is known by what `tend` asks it.
            return ()
        except MnemeError as error:
            self._rest(error)
            return ()

    async def tend(self) -> bool:
        """Vectors for the next messages without one; True while there are more."""
        if self._rests_until > monotonic() or not await self.database.has_room(0):
            return False
        taken = await self.database.read(
            lambda connection: vectors.waiting(connection, self.model, self._size, self._batch)
        )
        if taken.last == taken.until:
            return False
        texts = [
            self.passage_prefix + (f"{name}: " if name else "") + masked(clean(text))[:PASSAGE_CHARS]
            for _, text, name in taken.passages
        ]
        began_s = monotonic()
        try:
            found = await self._of_texts(texts)
        except MnemeError as error:
            self._rest(error)
            return False
        if texts:
            fitting = round(len(texts) * BATCH_S / max(monotonic() - began_s, 0.001))
            self._batch = max(1, min(fitting, 2 * self._batch, BATCH))
        await self.database.write(lambda connection: vectors.keep(connection, self.model, self._size, taken, found))
        return True

    async def probe(self) -> str:
        """Raises DeliveryError; else what it answers with. Both are sentences."""
        try:
            (vector,) = await self._embedded([PROBE], PASSAGES)
        except MnemeError as error:
            raise DeliveryError(f"It is out of order: {str(error).rstrip('.')}.") from error
        return f"It makes vectors of {len(vector):,} numbers; {await self.state()}."

    async def state(self) -> str:
        """For the owner, as a clause."""
        many = await self.database.read(lambda connection: vectors.count_waiting(connection, self.model, self._size))
        waits = (
            f"about {many:,} messages wait for a vector of {self.model}" if many else f"{self.model}, all vectors made"
        )
        return f"out of order ({self.error}); {waits}" if self.error else waits

    async def close(self) -> None:
        await self.service.close()

    async def _of_texts(self, texts: Sequence[str]) -> list[bytes]:
        """As they are kept; empty for a text that is refused by itself, by a service that takes another one."""
        if not texts:
            return []
        try:
            return [_kept(vector) for vector in await self._embedded(texts, PASSAGES)]
        except Refused:
            await self._embedded([PROBE], PASSAGES)
            if len(texts) == 1:
                return [b""]
            return [vector for text in texts for vector in await self._of_texts([text])]

    async def _embedded(self, texts: Sequence[str], patience: Patience) -> list[Vector]:
        """Of length 1, in the order of the texts. Raises DeliveryError and Refused."""
        if self.missing:
            raise DeliveryError(f"the environment variable {self.missing} is not set")
        asked = {"model": self.model, "input": list(texts)}
        answer = await self.service.call("POST", "/embeddings", asked, patience=patience, is_repeatable=True)
        try:
            rows = sorted(objects(answer, "data"), key=lambda one: one["index"])
            with np.errstate(over="ignore"):
                found = np.array([one["embedding"] for one in rows], np.float32)
                lengths = np.linalg.norm(found, axis=1, keepdims=True)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DeliveryError("the embedding service answers with something else than vectors") from error
        if found.ndim != 2 or len(found) != len(texts) or not np.isfinite(lengths).all() or not lengths.all():
            raise DeliveryError("the embedding service answers with other vectors than it was asked for")
        self.error = ""
        self._size = 2 * found.shape[1]
        return list(found / lengths)

    def _rest(self, error: MnemeError) -> None:
        self._rests_until = monotonic() + REST_S
        if not self.error:
            _log.warning("the embedding service is out of order, recall goes by words", error=str(error))
        self.error = str(error)


def _kept(vector: Vector) -> bytes:
    return vector.astype(np.float16).tobytes()


def _nearest(connection: Connection, query: SearchQuery, model: str, vector: Vector) -> list[MessageMatch]:
    """By the cosine of the angle, of all messages that the query may see and wants."""
    best: list[MessageMatch] = []
    for matches, kept in TextIndex(connection, query).vectors(model, 2 * len(vector)):
        scores = np.frombuffer(kept, np.float16).reshape(len(matches), -1).astype(np.float32) @ vector
        places = np.argsort(-scores)[:NEAREST].tolist()
        nearest = (matches[place]._replace(score=float(scores[place])) for place in places)
        best = nlargest(NEAREST, [*best, *nearest], key=lambda match: match.score)
    return best
