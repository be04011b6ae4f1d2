"""The tests here name the engine of each store themselves."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def store_engine() -> str:
    """The engine of the stores for which a test names none."""
    return "sqlite"
