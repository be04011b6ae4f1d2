"""The memory of facts over a state.db, as the house puts it together."""

from __future__ import annotations

from core.memory.blend import Blend
from core.memory.extraction import Extraction
from core.memory.heard import Heard
from core.memory.holographic import Holographic
from core.memory.knowledge import Knowledge
from core.memory.reader import Reader
from core.ports import Clock, Model
from core.store.conversations import Conversations
from core.store.database import Database
from core.store.fact_backlog import FactBacklog
from core.store.fact_search import FactSearch
from core.store.facts import Facts

ZONE = "Europe/Lisbon"


def facts_memory(database: Database, clock: Clock, model: Model | None = None) -> Holographic:
    """Facts that `model` reads out of what is said; None: the rules do."""
    facts, search = Facts(database, clock), FactSearch(database)
    backlog = FactBacklog(database, facts)
    return Holographic(
        facts,
        search,
        Knowledge(search, Blend(half_life_days={"project": 180, "episode": 90, "working": 7}), ZONE),
        Reader(Extraction(model, "cheap", ZONE), backlog, clock),
        Heard(Conversations(database, clock), backlog, ZONE),
    )
