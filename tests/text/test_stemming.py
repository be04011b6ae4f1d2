"""Porter's algorithm agrees with the one inside FTS5, and irregular forms meet their base."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from core.text.terms import irregular_forms, stem

WORDS = """
caresses ponies ties caress cats feed agreed plastered bled motoring sing conflated troubled sized hopping
tanned falling hissing fizzed failing filing happy sky relational conditional rational valency hesitancy
digitizer radically differently vilely analogously vietnamization predication operator feudalism
decisiveness hopefulness callousness formality sensitivity sensibility triplicate formative formalize
electricity electrical hopeful goodness revival allowance inference airliner gyroscopic adjustable defensible
irritant replacement adjustment dependent adoption communism activate angularity homologous effective
bowdlerize probate rate cease controlling rolling ferries yesterday playing enjoyed crying dying
lying oscillators generalizations ion onion by is us as
"""


def _of_fts5(words: list[str]) -> dict[str, str]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE stems USING fts5(word, tokenize = 'porter unicode61')")
        connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab('stems', 'instance')")
        connection.executemany("INSERT INTO stems (rowid, word) VALUES (?, ?)", enumerate(words))
        return {words[row[1]]: row[0] for row in connection.execute("SELECT term, doc FROM terms")}


def test_it_is_porters_algorithm() -> None:
    expected = _of_fts5([word for word in WORDS.split() if word not in irregular_forms()])
    assert len(expected) > 80
    assert {word: stem(word) for word in expected} == expected


def test_irregular_forms_meet_their_base() -> None:
    assert stem("went") == stem("going") == stem("go")
    assert stem("bought") == stem("buying") == stem("buy")
    assert stem("children") == stem("child")


@given(st.text())
def test_any_text_has_a_stem(word: str) -> None:
    assert isinstance(stem(word), str)
