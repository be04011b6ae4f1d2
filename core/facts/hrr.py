"""Holographic reduced representations (T. A. Plate, IEEE Trans. on Neural Networks 6, 1995).

A fact is one vector, which is similar to the vectors of questions with the same terms and names.
In the circular form used here a symbol is a vector of random phases, binding adds phases, and a
bundle is the phase of the sum of unit phasors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core.store.fact_rows import Fact
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
    """Return the symbol of a name, made from its hash: every process makes the same one."""
    text = name.encode("utf-8", "replace")
    hashes = [
        hashlib.sha256(text + block.to_bytes(4, "big")).digest() for block in range(_HASH_BLOCKS)
    ]
    phases = np.frombuffer(b"".join(hashes), ">u2") * (2 * np.pi / 2**16)
    symbol: Phasors = np.exp(1j * phases).astype(np.complex64)
    symbol.flags.writeable = False
    return symbol


def bundle(parts: Iterable[Phasors]) -> Phasors | None:
    """Return a vector that is similar to each part; None without parts.

    The similarity is clear for up to about 32 parts, and mostly for up to 64.
    """
    vectors = list(parts)
    if not vectors:
        return None
    total = np.sum(vectors, axis=0)
    length = np.abs(total)
    phasors: Phasors = (total / np.where(length > 0, length, 1)).astype(np.complex64)
    return phasors


def similarity(one: Phasors, other: Phasors) -> float:
    """Return the mean cosine of the phase differences: 1 if equal, about 0 if unrelated."""
    return float(np.mean((one * np.conj(other)).real))


def encode(terms: Sequence[str], names: Sequence[str]) -> Phasors | None:
    """Return the vector of a fact or a question: its terms and names, each bound to its role."""
    parts = [make_symbol(TERM_ROLE) * make_symbol(term) for term in terms]
    parts += [make_symbol(NAME_ROLE) * make_symbol(name) for name in names]
    return bundle(parts)


def compute_similarities(
    terms: Sequence[str], keys: Sequence[str], facts: Sequence[Fact]
) -> Mapping[int, float]:
    """Return how similar each fact is to a question, from 0 to 1, by the ids of the facts.

    `keys` are the names in the question. Those that no fact has are ignored.
    """
    names = {fact.id: [entity_key(name) for name in fact.entities] for fact in facts}
    known_names = {name for fact_names in names.values() for name in fact_names}
    question = encode(terms, sorted(known_names.intersection(keys)))
    if question is None:
        return {}
    similarities: dict[int, float] = {}
    for fact in facts:
        vector = encode(terms_of(fact.content), names[fact.id])
        if vector is not None:
            similarities[fact.id] = max(0.0, similarity(question, vector))
    return similarities
