"""Forgetting over a real state.db, and what is left of a word in its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.forgetting import Forgetting
from core.keeper import Keeper
from core.memory.notebook import Notebook
from core.records import Claim
from core.store.compaction import Compaction
from core.store.database import Database
from core.store.erasure import Erasure
from core.store.notes import Notes
from core.types import Account, Address, Scope
from gateway.papers import Papers
from tests.doubles.annals import ANA
from tests.doubles.clock import SteadyClock

HERE = Address(platform="telegram", chat_id="1")


def claim_of(*scopes: Scope, is_owner: bool = False, who: str = "1", where: Scope | None = None) -> Claim:
    """Ana asks in her direct chat, unless it is said otherwise."""
    seen = scopes or (ANA,)
    return Claim(
        account=Account(platform=seen[0].key.split(":")[1], user_id=who),
        scope=where or seen[0],
        scopes=frozenset(seen),
        address=HERE,
        is_owner=is_owner,
    )


def forgetting_of(database: Database, clock: SteadyClock, keepers: Sequence[Keeper] = ()) -> Forgetting:
    """Everything real, with its files beside the database."""
    home = database.path.parent
    notebook = Notebook(home, Notes(database), clock, {"memory": 2_200, "user": 1_375})
    papers = Papers(home)
    return Forgetting(Erasure(database, clock), Compaction(database), notebook, papers, clock, "UTC", keepers)


async def forget(forgetting: Forgetting, text: str, claim: Claim) -> dict[str, int]:
    """Asks and says yes; what went, by kind."""
    traces = await forgetting.look(text, claim)
    if traces is None:
        return {}
    receipt = await forgetting.erase(traces.token, claim)
    assert receipt.is_clean
    return dict(receipt.counts)


def left_of(word: str, path: Path) -> list[str]:
    """The files of a database in which a word stands, in any case."""
    found = []
    for name in (path, path.with_name(f"{path.name}-wal")):
        content = name.read_bytes().lower() if name.exists() else b""
        if word.lower().encode() in content:
            found.append(name.name)
    return found
