"""Holographic reduced representations (T. A. Plate, IEEE Trans. on Neural Networks 6, 1995).

A fact is encoded as a single vector, which is similar to the vector of a question with the same
terms and names. This module uses the circular form: a symbol is a vector of random phases, two
vectors are bound by adding their phases, and a bundle has the phases of the sum of its vectors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core.store.facts.rows import Fact
from core.text.terms import entity_key, terms_of

PHASES = 1024
TERM_ROLE = "role:term"
NAME_ROLE = "role:name"
BYTES_PER_PHASE = 2
_HASH_BLOCKS = BYTES_PER_PHASE * PHASES // hashlib.sha256().digest_size

Phasors: TypeAlias = npt.NDArray[np.complex64]
"""`PHASES` complex numbers of length 1."""


@lru_cache(maxsize=4096)
def make_symbol(name: str) -> Phasors:
    """Return the vector for a name.

    Its phases are derived from a hash, so a name always has the same vector.
    """
    text = name.encode("utf-8", "replace")
    hashes = [
        hashlib.sha256(text + block.to_bytes(4, "big")).digest() for block in range(_HASH_BLOCKS)
    ]
    phases = np.frombuffer(b"".join(hashes), ">u2") * (2 * np.pi / 2**16)
    symbol: Phasors = np.exp(1j * phases).astype(np.complex64)
    symbol.flags.writeable = False
    return symbol


def bundle(parts: Iterable[Phasors]) -> Phasors | None:
    """Return a vector that is similar to each part, or None without parts.

    The similarity is always clear for up to about 32 parts, and usually clear for up to 64.
    """
    vectors = list(parts)
    if not vectors:
        return None
    total = np.sum(vectors, axis=0)
    length = np.abs(total)
    phasors: Phasors = (total / np.where(length > 0, length, 1)).astype(np.complex64)
    return phasors


def similarity(vector: Phasors, other: Phasors) -> float:
    """Return how similar two vectors are: the mean cosine of their phase differences.

    Equal vectors result in 1, and unrelated vectors in about 0.
    """
    return float(np.mean((vector * np.conj(other)).real))


def encode(terms: Sequence[str], names: Sequence[str]) -> Phasors | None:
    """Return the vector of a fact or question, or None if it has neither terms nor names.

    The vector bundles the terms and names, each bound to its role.
    """
    parts = [make_symbol(TERM_ROLE) * make_symbol(term) for term in terms]
    parts += [make_symbol(NAME_ROLE) * make_symbol(name) for name in names]
    return bundle(parts)


def compute_similarities(
    terms: Sequence[str], keys: Sequence[str], facts: Sequence[Fact]
) -> Mapping[int, float]:
    """Return the similarity of each fact to a question, from 0 to 1, by fact id.

    `keys` are the comparison forms of the names in the question. Names that no fact contains are
    ignored.
    """
    names_by_id = {fact.id: [entity_key(name) for name in fact.entities] for fact in facts}
    all_names = set(chain.from_iterable(names_by_id.values()))
    question = encode(terms, sorted(all_names.intersection(keys)))
    if question is None:
        return {}
    similarities: dict[int, float] = {}
    for fact in facts:
        vector = encode(terms_of(fact.content), names_by_id[fact.id])
        if vector is not None:
            similarities[fact.id] = max(0.0, similarity(question, vector))
    return similarities
