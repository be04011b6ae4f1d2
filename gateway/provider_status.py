"""How a memory service stands with what it is to be told, in one sentence: for /status, `mneme check` and
`mneme memory providers`."""

from __future__ import annotations

from core.memory.backfill import Past
from core.memory.backlog_counts import Arrears
from core.memory.sync_queue import Satchel


async def standing(satchel: Satchel, name: str) -> str:
    """What waits for a service, what was given up, how much of the past is told; empty when all is told."""
    arrears, past = await satchel.arrears(name), await satchel.past(name)
    return "; ".join(filter(None, (waiting(arrears), given_up(arrears), _past(past))))


def waiting(arrears: Arrears) -> str:
    """``3 messages wait (the last try: …)``; empty for none."""
    if not arrears.waiting:
        return ""
    tried = f" (the last try: {arrears.reason})" if arrears.reason and not arrears.dead else ""
    return f"{_counted(arrears.waiting)} wait{'s' * (arrears.waiting == 1)} to be delivered{tried}"


def given_up(arrears: Arrears) -> str:
    """``1 message was given up (…)``; empty for none."""
    if not arrears.dead:
        return ""
    return f"{_counted(arrears.dead)} {'was' if arrears.dead == 1 else 'were'} given up ({arrears.reason})"


def _past(past: Past | None) -> str:
    if past is None:
        return ""
    return f"of the past {(past.next_id - 1) * 100 // max(past.last_id, 1)} % is on its way"


def _counted(number: int) -> str:
    return f"{number:,} message{'' if number == 1 else 's'} to it"
