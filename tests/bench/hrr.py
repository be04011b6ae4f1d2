"""Holographic reduced representations: a fact as one vector of phases, from which its parts can be asked again. Pure.

After T. A. Plate, "Holographic Reduced Representations" (IEEE Transactions on Neural Networks 6, 1995), in the circular
form: a symbol is a vector of random phases, binding adds phases, bundling is the phase of the sum of unit phasors.
Symbols come from a hash of their name, so that every process makes the same ones. A part of a fact is found only by a
query bound to the same role; unbound it is noise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

PHASES = 1024
TERM, NAME = "role:term", "role:name"

Phasors: TypeAlias = npt.NDArray[np.complex64]
"""PHASES complex numbers of length 1."""


@lru_cache(maxsize=4096)
def symbol(name: str) -> Phasors:
    seed = int.from_bytes(hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    phases = np.random.default_rng(seed).uniform(-np.pi, np.pi, PHASES)
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
    parts = ((TERM, terms), (NAME, names))
    return bundle(symbol(role) * symbol(one) for role, held in parts for one in held)
