"""The second ranked list, by the vectors of an embedding service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import get_args

import pytest

from core.memory.http import JsonService, Patience
from core.search import embeddings
from core.search.embeddings import EmbeddingRetriever
from core.search.recall import Recall
from core.store.erasure import erase_messages
from core.store.query import SearchQuery
from core.store.sqlite.database import Database
from core.types import Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.embedding_service import EmbeddingDouble
from tests.fixtures.stored_history import ANA, BEN, ROOM, StoredHistory
from tests.services.doubles.double import KEY, Fault, running

ASKED = "What happened to my car last week?"
CAR = "The hatchback broke down beside the bakery"


@pytest.fixture
async def double() -> AsyncIterator[EmbeddingDouble]:
    made = EmbeddingDouble()
    async with running(made):
        yield made


@pytest.fixture
async def retriever(database: Database, double: EmbeddingDouble) -> AsyncIterator[EmbeddingRetriever]:
    made = retriever_of(database, double)
    yield made
    await made.close()


def retriever_of(database: Database, double: EmbeddingDouble, model: str = "small") -> EmbeddingRetriever:
    service = JsonService("embeddings", f"{double.url}/v1", {"Authorization": f"Bearer {KEY}"})
    return EmbeddingRetriever(database, service, model, "query: ", "passage: ")


async def filled(database: Database, retriever: EmbeddingRetriever) -> Recall:
    recall = Recall(database, SteadyClock(), retriever=retriever)
    while await recall.tend() or await retriever.tend():
        pass
    return recall


async def found(recall: Recall, text: str = ASKED, scope: Scope = ANA, **changes: object) -> list[str]:
    query = replace(SearchQuery(text=text, scopes=frozenset({scope}), limit=5, messages=20), **changes)  # type: ignore[arg-type]
    findings = await recall.recall(query)
    return [hit.snippet.replace(">>>", "").replace("<<<", "") for hit in findings.messages]


async def vectors(database: Database) -> dict[int, int]:
    """By message, how long its vector is, in bytes."""
    rows = await StoredHistory(database).execute("SELECT message_id, length(vector) FROM message_vectors")
    return {int(str(row[0])): int(str(row[1])) for row in rows}


async def test_what_shares_no_word_with_the_question_is_found(
    database: Database, retriever: EmbeddingRetriever, double: EmbeddingDouble
) -> None:
    written = StoredHistory(database)
    await written.session([CAR, "I am sorry to hear that"])
    await written.session(["We planted tomatoes in the garden", "Good"])
    recall = await filled(database, retriever)
    assert CAR not in await found(Recall(database, SteadyClock()))
    assert (await found(recall))[0] == CAR
    assert f"passage: Ana: {CAR}" in double.embedded
    assert f"query: {ASKED}" in double.embedded


async def test_what_the_words_find_first_stays_first(database: Database, retriever: EmbeddingRetriever) -> None:
    written = StoredHistory(database)
    await written.session(["The ferry to Lisbon leaves at nine", "Noted"])
    await written.session([CAR, "Oh"])
    assert (await found(await filled(database, retriever), "When does the ferry to Lisbon leave?"))[0].startswith(
        "The ferry"
    )


async def test_nobody_is_shown_what_is_not_theirs(database: Database, retriever: EmbeddingRetriever) -> None:
    written = StoredHistory(database)
    for scope in (BEN, ROOM):
        await written.session([CAR, "I see"], scope=scope)
    await written.session(["A vehicle costs money"], scope=ANA)
    recall = await filled(database, retriever)
    assert await found(recall) == ["A vehicle costs money"]
    assert await found(recall, scope=Scope.account("telegram", "3")) == []
    matches = await retriever.retrieve(SearchQuery(text=ASKED, scopes=frozenset({ANA})))
    assert len(matches) == 1


async def test_filters_hold_before_the_nearest_are_taken(
    database: Database, retriever: EmbeddingRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "NEAREST", 2)
    written = StoredHistory(database)
    await written.session([CAR, ("assistant", "Which car?"), ("user", "My car, my vehicle"), ("user", "car car car")])
    recall = await filled(database, retriever)
    assert await found(recall, roles=("assistant",)) == ["Which car?"]
    assert await found(recall, sender="Ben") == []


async def test_erased_edited_and_undone_messages_have_no_vector(
    database: Database, retriever: EmbeddingRetriever
) -> None:
    written = StoredHistory(database)
    _, erased, edited, undone, kept = await written.session(["my car", "a dog", "the doctor", "the bread"])
    await filled(database, retriever)
    assert (await vectors(database)).keys() == {erased, edited, undone, kept}
    await database.write(lambda connection: erase_messages(connection, [erased]))
    await written.execute("UPDATE messages SET text = 'a puppy' WHERE id = :id", id=edited)
    await written.execute("UPDATE messages SET kind = 'undone' WHERE id = :id", id=undone)
    assert (await vectors(database)).keys() == {kept}
    await filled(database, retriever)
    assert (await vectors(database)).keys() == {edited, kept}
    await written.execute("UPDATE messages SET kind = 'chat' WHERE id = :id", id=undone)
    await filled(database, retriever)
    assert (await vectors(database)).keys() == {edited, undone, kept}


async def test_what_changes_while_the_service_is_asked_gets_no_vector_of_what_it_was(
    database: Database, retriever: EmbeddingRetriever, double: EmbeddingDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = StoredHistory(database)
    _, message = await written.session(["my car"])
    embedded = retriever._embedded

    async def meanwhile(texts: list[str], patience: Patience) -> object:
        await written.execute("UPDATE messages SET text = 'my dog' WHERE id = :id", id=message)
        return await embedded(texts, patience)

    monkeypatch.setattr(retriever, "_embedded", meanwhile)
    await retriever.tend()
    assert await vectors(database) == {}
    monkeypatch.undo()
    while await retriever.tend():
        pass
    assert double.embedded[-1] == "passage: Ana: my dog"
    assert (await vectors(database)).keys() == {message}


async def test_a_process_that_ended_in_the_middle_is_followed_by_one_that_goes_on(
    database: Database, retriever: EmbeddingRetriever, double: EmbeddingDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "BATCH", 2)
    _, *ids = await StoredHistory(database).session([f"car number {number}" for number in range(5)])
    assert await retriever.tend()
    assert (await vectors(database)).keys() == set(ids[:2])
    another = retriever_of(database, double)
    while await another.tend():
        pass
    await another.close()
    assert (await vectors(database)).keys() == set(ids)
    assert len(double.embedded) == 5


async def test_a_text_that_is_refused_does_not_hold_up_the_others(
    database: Database, retriever: EmbeddingRetriever, double: EmbeddingDouble
) -> None:
    double.refused = "too much"
    _, well, refused = await StoredHistory(database).session(["my car", "too much for it"])
    await filled(database, retriever)
    kept = await vectors(database)
    assert (kept[refused], kept[well]) == (0, 2 * double.dimensions)


async def test_another_model_makes_all_vectors_anew(
    database: Database, retriever: EmbeddingRetriever, double: EmbeddingDouble
) -> None:
    await StoredHistory(database).session(["my car", "Which?"])
    await filled(database, retriever)
    double.dimensions = 64
    other = retriever_of(database, double, "other")
    recall = await filled(database, other)
    assert set((await vectors(database)).values()) == {2 * 64}
    assert "my car" in await found(recall, "Is there a vehicle anywhere?")
    await other.close()


@pytest.mark.parametrize("fault", [fault for fault in get_args(Fault) if fault != "well"])
async def test_recall_answers_by_words_while_the_service_fails(
    database: Database,
    retriever: EmbeddingRetriever,
    double: EmbeddingDouble,
    fault: Fault,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embeddings, "QUESTION", Patience(0.3, 0.3))
    monkeypatch.setattr(embeddings, "PASSAGES", Patience(0.3, 0.3))
    written = StoredHistory(database)
    await written.session([CAR, "I see"])
    await written.session(["The ferry to Lisbon leaves at nine", "Noted"])
    recall = await filled(database, retriever)
    double.fault = fault
    assert (await found(recall, "When does the ferry to Lisbon leave?"))[0].startswith("The ferry")
    asked = len(double.asked)
    assert CAR not in await found(recall)
    assert len(double.asked) == asked, "it is left alone for a while"
    assert not await retriever.tend()
    assert "out of order" in await retriever.state()
    assert KEY not in await retriever.state()
    double.fault = "well"
    double.may_go.set()
    monkeypatch.setattr(embeddings, "monotonic", lambda: 10.0**9)
    monkeypatch.setattr("core.memory.http.monotonic", lambda: 10.0**9)
    await written.session(["Another word"])
    recall = await filled(database, retriever)
    assert CAR in await found(recall)
    assert "out of order" not in await retriever.state()
