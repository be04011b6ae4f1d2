"""Holographic reduced representations: a fact as one vector of phases, like whatever shares terms and names with it.

After T. A. Plate, "Holographic Reduced Representations" (IEEE Transactions on Neural Networks 6, 1995), in the circular
form: a symbol is a vector of random phases, binding adds phases, bundling is the phase of the sum of unit phasors.
Symbols come from a hash of their name, so that every process makes the same ones. A part of a fact is found only by a
query bound to the same role; unbound it is noise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core.store.facts import Fact
from core.text.terms import entity_key, terms_of

PHASES = 1024
TERM, NAME = "role:term", "role:name"
_BLOCKS = 2 * PHASES // hashlib.sha256().digest_size  # two bytes of a hash a phase

Phasors: TypeAlias = npt.NDArray[np.complex64]
"""PHASES complex numbers of length 1."""


@lru_cache(maxsize=4096)
def symbol(name: str) -> Phasors:
    text = name.encode("utf-8", "replace")
    hashed = b"".join(hashlib.sha256(text + block.to_bytes(4, "big")).digest() for block in range(_BLOCKS))
    phases = np.frombuffer(hashed, ">u2") * (2 * np.pi / 2**16)
    made: Phasors = np.exp(1j * phases).astype(np.complex64)
    made.flags.writeable = False
    return made


def bundle(parts: Iterable[Phasors]) -> Phasors | None:
    """Like each of the parts, up to about 32 well, up to 64 mostly; None of nothing."""
    together = list(parts)
    if not together:
        return None
    total = np.sum(together, axis=0)
    length = np.abs(total)
    made: Phasors = (total / np.where(length > 0, length, 1)).astype(np.complex64)
    return made


def similarity(one: Phasors, other: Phasors) -> float:
    """The mean cosine of the differences of phases: 1 for the same, about 0 for strangers."""
    return float(np.mean((one * np.conj(other)).real))


def encoded(terms: Sequence[str], names: Sequence[str]) -> Phasors | None:
    """A fact or a question: each of its terms and each of its names in its role, bundled."""
    return bundle(symbol(role) * symbol(one) for role, held in ((TERM, terms), (NAME, names)) for one in held)


def nearness(terms: Sequence[str], keys: Sequence[str], facts: Sequence[Fact]) -> Mapping[int, float]:
    """By the id of each fact how like a question it is, from 0 to 1; of its `keys` those count that any fact names."""
    names = {fact.id: [entity_key(name) for name in fact.entities] for fact in facts}
    known = {name for held in names.values() for name in held}
    asked = encoded(terms, sorted(known.intersection(keys)))
    if asked is None:
        return {}
    told = ((fact.id, encoded(terms_of(fact.content), names[fact.id])) for fact in facts)
    return {fact_id: max(0.0, similarity(asked, one)) for fact_id, one in told if one is not None}
