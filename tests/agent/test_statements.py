"""What summaries by rules keep: the latest decision, and how a person always wants to be answered."""

# ruff: noqa: RUF001

from __future__ import annotations

from zoneinfo import ZoneInfo

from core.agent.summary import summarize_by_rules
from tests.fixtures.samples import message
from tests.fixtures.tables import each_row

ZONE = ZoneInfo("Europe/Lisbon")
LIMIT_CHARS = 3_000

DECISIONS = """
We decided to use PostgreSQL | We changed our mind: SQLite instead | Always answer me briefly
Wir haben uns für PostgreSQL entschieden | Wir haben es uns anders überlegt: SQLite | Antworte mir ab jetzt immer kurz
On a décidé de prendre PostgreSQL | On a changé d'avis : SQLite | Réponds-moi toujours brièvement
Decidimos usar PostgreSQL | Cambiamos de idea: SQLite | Responde siempre breve
Decidimos usar PostgreSQL | Mudamos de ideia: SQLite | Responda sempre curto
Мы решили взять PostgreSQL | Мы передумали: SQLite | Всегда отвечай коротко
我们决定用PostgreSQL | 我们改主意了:用SQLite | 以后回答我要简短
PostgreSQLに決めました | 気が変わった、SQLiteにする | これからはいつも短く答えて
PostgreSQL을 쓰기로 결정했어 | 마음이 바뀌었어, SQLite로 해 | 앞으로 항상 짧게 대답해 줘
PostgreSQL kullanmaya karar verdik | Fikrimizi değiştirdik: SQLite | Bana her zaman kısa cevap ver
"""


def compress(*conversations: list[str]) -> str:
    """Compress each part of a conversation, and return the statements of the last summary."""
    summary = ""
    number = 0
    for texts in conversations:
        rows = []
        for text in texts:
            number += 1
            rows.append(message(1, text, id=number))
        summary = summarize_by_rules(rows, summary, ZONE, LIMIT_CHARS)
    return summary.partition("## Done")[0]


@each_row("line", DECISIONS.strip().splitlines())
def test_the_latest_decision_and_a_standing_wish_survive_five_compressions(line: str) -> None:
    decision, turn, wish = line.split(" | ")
    statements = compress([wish], [decision], [turn], ["Is it late?"], ["It rains"])
    assert turn in statements
    assert wish in statements
    assert decision not in statements


def test_standing_request_stays_in_the_summary_after_many_later_statements() -> None:
    many = [[f"We decided to paint room {number} green" for number in range(20)]] * 4
    statements = compress(["Always answer me briefly"], *many)
    assert "- Always answer me briefly (" in statements
    assert len(statements) <= LIMIT_CHARS


def test_compressed_statements_keep_the_new_home_and_drop_only_the_previous_home() -> None:
    statements = compress(["I live in Leeds", "My sister is Ana"], ["I live in York"])
    assert "Leeds" not in statements
    assert "York" in statements
    assert "My sister is Ana" in statements


def test_reversed_decision_is_dropped_from_the_summary_and_other_decisions_stay() -> None:
    statements = compress(
        ["We decided to use PostgreSQL", "We decided to host at Hetzner"],
        ["We changed our mind: no PostgreSQL"],
    )
    assert "Hetzner" in statements
    assert "We decided to use PostgreSQL" not in statements
