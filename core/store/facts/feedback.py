"""Store people's thumbs on answers, and find the facts that such an answer repeats.

A person has at most one thumb on an answer. The facts that a thumb has judged stay recorded, so
removing and setting the thumb again doesn't count twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from core.ports import Clock
from core.store import messages
from core.store.engine import Connection, Database, sent_text_sql
from core.store.facts.facts import Facts
from core.store.facts.rows import SELECT_VISIBLE, Fact, read_fact
from core.store.rows import address_values
from core.store.visibility import encode_list, scope_parameter, visible
from core.text.terms import terms_of
from core.types import Account, Address, Scopes

Thumb = Literal["up", "down", ""]
"""A thumb up or down. The empty string means that the person has removed the thumb."""
VERDICTS: dict[str, int] = {"up": 1, "down": -1, "": 0}
# A fact counts as repeated if the answer contains at least this share of its words.
MIN_COMMON_SHARE = 0.5
_SELECT_MEMORY = f"""
SELECT {sent_text_sql(of_memory=True)} AS memory FROM messages
WHERE session_id = :session_id AND id < :id AND role = 'user' AND sent IS NOT NULL
ORDER BY id DESC LIMIT 1
"""
"""Selects the text that memory added to the question before an answer."""
_SELECT_MENTIONED = f"""
{SELECT_VISIBLE} AND instr(:text, rtrim(content, ' .')) > 0 ORDER BY last_at DESC, id DESC LIMIT 50
"""
_SELECT_JUDGED = "SELECT facts FROM thumbs WHERE message_id = :id AND account = :account"
_PUT_THUMB = """
INSERT INTO thumbs (message_id, account, verdict, facts, at)
VALUES (:id, :account, :verdict, :facts, :now)
ON CONFLICT (message_id, account) DO UPDATE SET
    verdict = excluded.verdict, facts = excluded.facts, at = excluded.at
"""
_COUNT_THUMBS = f"""
SELECT COUNT(*) FILTER (WHERE verdict > 0) AS up, COUNT(*) FILTER (WHERE verdict < 0) AS down
FROM thumbs JOIN messages ON messages.id = thumbs.message_id
JOIN sessions ON sessions.id = messages.session_id
WHERE {visible()} AND thumbs.at >= :since
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThumbCount:
    """The number of answers with a thumb up, and of those with a thumb down."""

    up: int
    down: int


class AnswerFeedback:
    """Records thumbs on answers, and counts them."""

    def __init__(self, database: Database, facts: Facts, clock: Clock) -> None:
        self._database = database
        self._facts = facts
        self._clock = clock

    async def record(
        self, address: Address, external_id: str, account: Account, thumb: Thumb, scopes: Scopes
    ) -> Sequence[Fact] | None:
        """Store a thumb, and return the facts that the answer repeats.

        Leave out facts that this person has already judged with a thumb on the same answer. Return
        None if the message isn't a stored answer that is visible in these scopes.
        """
        values = {
            **address_values(address),
            "external_id": external_id,
            "scopes": scope_parameter(scopes),
            "account": account.key,
            "verdict": VERDICTS[thumb],
            "now": self._clock.now(),
        }

        def write(connection: Connection) -> Sequence[Fact] | None:
            """Store the thumb, and return the repeated facts that no earlier thumb has judged."""
            answer = connection.execute(messages.SELECT_QUOTED, values).fetchone()
            if answer is None or answer["role"] != "assistant":
                return None
            thumb_values = {**values, "id": answer["id"], "session_id": answer["session_id"]}
            earlier_thumb = connection.execute(_SELECT_JUDGED, thumb_values).fetchone()
            judged_ids = set() if earlier_thumb is None else set(json.loads(earlier_thumb["facts"]))
            new_facts: list[Fact] = []
            if thumb:
                repeated = _find_repeated(connection, answer["text"], thumb_values)
                new_facts = [fact for fact in repeated if fact.id not in judged_ids]
            judged_ids.update(fact.id for fact in new_facts)
            thumb_values["facts"] = encode_list(sorted(judged_ids))
            connection.execute(_PUT_THUMB, thumb_values)
            return new_facts

        return await self._database.write(write)

    async def find_answer(
        self, address: Address, external_id: str, scopes: Scopes
    ) -> tuple[int, int] | None:
        """Return the ids of the message and the session of an answer on a platform.

        Returns None if the answer isn't stored or isn't visible in these scopes.
        """
        values = {
            **address_values(address),
            "external_id": external_id,
            "scopes": scope_parameter(scopes),
        }
        row = await self._database.fetch_one(messages.SELECT_QUOTED, values)
        if row is None or row["role"] != "assistant":
            return None
        return row["id"], row["session_id"]

    async def count(self, scopes: Scopes, since: datetime) -> ThumbCount:
        """Count the thumbs on the answers in these scopes."""
        values = {"scopes": scope_parameter(scopes), "since": since}
        row = await self._database.fetch_one(_COUNT_THUMBS, values)
        return ThumbCount(up=row["up"] if row else 0, down=row["down"] if row else 0)


def _find_repeated(connection: Connection, answer: str, values: dict[str, object]) -> list[Fact]:
    """Return the facts that the answer repeats, among those that the model saw or quoted."""
    row = connection.execute(_SELECT_MEMORY, values).fetchone()
    memory = "" if row is None else row["memory"] or ""
    text = f"{answer}\n{memory}"
    answer_terms = frozenset(terms_of(answer))
    repeated = []
    for fact_row in connection.execute(_SELECT_MENTIONED, {**values, "text": text}):
        fact = read_fact(fact_row)
        terms = frozenset(terms_of(fact.content))
        if terms and len(terms & answer_terms) >= MIN_COMMON_SHARE * len(terms):
            repeated.append(fact)
    return repeated
