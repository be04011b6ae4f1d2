"""The table in docs/memory.md that says how each service is tested."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.services.engines.engine import ENGINES
from tests.services.oracles.test_oracles import CLIENTS
from tests.services.registry import SERVICES

DOCS = Path(__file__).resolve().parents[2] / "docs" / "memory.md"


def table() -> Mapping[str, Mapping[str, str]]:
    """The cells by case and service."""
    text = DOCS.read_text(encoding="utf-8").partition("### How each service is tested\n")[2]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    head, _, *rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines[:21]]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def test_table_names_every_service_and_its_proofs() -> None:
    rows = table()
    engines = {engine.name for engine in ENGINES.values()}
    # mem0's client is called in tests/services/engines/test_mem0_client.py.
    clients = {SERVICES[name].name for name in CLIENTS.values()} | {"mem0"}
    for case, services in rows.items():
        assert set(services) == {one.name for one in SERVICES.values() if not one.is_plugin}, case
    for name, proofs in rows["stores a turn"].items():
        assert ("R" in proofs, "O" in proofs) == (name in engines, name in clients), name
    for name, proofs in rows["429: too many calls"].items():
        never = next(one.never for one in SERVICES.values() if one.name == name)
        assert (proofs == "–") == ("limited" in never), name
