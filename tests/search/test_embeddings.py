"""The second ranked list, by the vectors of an embedding service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from typing import get_args
from zoneinfo import ZoneInfo

import pytest

from core.memory.http import CallTimeout, JsonService
from core.search import embeddings
from core.search.embeddings import PASSAGES_TIMEOUT, EmbeddingRetriever
from core.search.expansion import ExpandedRecall
from core.search.recall import Recall
from core.store.erasure.statements import erase_messages
from core.store.query import MessageMatch, SearchQuery, TextKind
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.types import Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.embedding_service import EmbeddingDouble
from tests.fixtures.forgetting import claim_of, forgetting_of
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.fixtures.search_queries import search_query, with_fields
from tests.fixtures.stored_history import ANA, BEN, ROOM, StoredHistory
from tests.fixtures.sweeps import keep_first
from tests.services.doubles.double import KEY, Fault, running

ASKED = "What happened to my car last week?"
CAR = "The hatchback broke down beside the bakery"


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer for a question than a person waits."""
    monkeypatch.setattr("core.search.embeddings.QUESTION_TIMEOUT", PASSAGES_TIMEOUT)


@pytest.fixture
async def double() -> AsyncIterator[EmbeddingDouble]:
    made = EmbeddingDouble()
    async with running(made):
        yield made


@pytest.fixture
async def retriever(
    database: Database, double: EmbeddingDouble
) -> AsyncIterator[EmbeddingRetriever]:
    made = retriever_of(database, double)
    yield made
    await made.close()


def retriever_of(
    database: Database, double: EmbeddingDouble, model: str = "small"
) -> EmbeddingRetriever:
    service = JsonService("embeddings", f"{double.url}/v1", {"Authorization": f"Bearer {KEY}"})
    return EmbeddingRetriever(database, service, model, "query: ", "passage: ")


async def filled(database: Database, retriever: EmbeddingRetriever) -> Recall:
    recall = Recall(database, SteadyClock(), retriever=retriever)
    while await recall.tend() or await retriever.tend():
        pass
    return recall


async def found(
    recall: Recall, text: str = ASKED, scope: Scope = ANA, **changes: object
) -> list[str]:
    query = with_fields(
        search_query(text=text, scopes=frozenset({scope}), sessions=5, messages=20),
        **changes,
    )
    findings = await recall.recall(query)
    return [hit.snippet.replace(">>>", "").replace("<<<", "") for hit in findings.messages]


async def vectors(database: Database) -> dict[int, int]:
    """By message, how long its vector is, in bytes."""
    rows = await StoredHistory(database).execute(
        "SELECT message_id, length(vector) FROM message_vectors"
    )
    return {int(str(row[0])): int(str(row[1])) for row in rows}


async def test_message_without_a_word_of_the_question_is_found_by_vectors(
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


async def test_best_match_by_words_stays_before_matches_by_vectors(
    database: Database, retriever: EmbeddingRetriever
) -> None:
    written = StoredHistory(database)
    await written.session(["The ferry to Lisbon leaves at nine", "Noted"])
    await written.session([CAR, "Oh"])
    assert (await found(await filled(database, retriever), "When does the ferry to Lisbon leave?"))[
        0
    ].startswith("The ferry")


async def test_meaning_counts_more_than_words_for_a_remark_but_not_for_a_question(
    database: Database, retriever: EmbeddingRetriever
) -> None:
    written = StoredHistory(database)
    words = "The bakery lane was loud"
    await written.session([words])
    await written.session([CAR])
    recall = await filled(database, retriever)
    remark = "my car was loud at the bakery"
    assert (await found(recall, f"{remark}?", kind=TextKind.TURN))[0] == words
    assert (await found(recall, remark, kind=TextKind.TURN))[0] == CAR


async def test_search_by_vectors_shows_nothing_of_other_scopes(
    database: Database, retriever: EmbeddingRetriever
) -> None:
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
    monkeypatch.setattr(embeddings, "MAX_NEAREST", 2)
    written = StoredHistory(database)
    await written.session(
        [CAR, ("assistant", "Which car?"), ("user", "My car, my vehicle"), ("user", "car car car")]
    )
    recall = await filled(database, retriever)
    assert await found(recall, roles=("assistant",)) == ["Which car?"]
    assert await found(recall, sender="Ben") == []


async def test_erased_edited_and_undone_messages_have_no_vector(
    database: Database, retriever: EmbeddingRetriever
) -> None:
    written = StoredHistory(database)
    _, erased, edited, undone, kept = await written.session(
        ["my car", "a dog", "the doctor", "the bread"]
    )
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


async def test_message_changed_during_embedding_gets_no_vector_of_its_old_text(
    database: Database, retriever: EmbeddingRetriever, double: EmbeddingDouble
) -> None:
    written = StoredHistory(database)
    _, erased, edited, kept, back = await written.session(
        ["my car", "a dog", "the bread", "the doctor"]
    )
    await written.execute("UPDATE messages SET kind = 'undone' WHERE id = :id", id=back)
    double.fault = "hanging"
    step = asyncio.create_task(retriever.tend())
    await double.is_asked.wait()
    await database.write(lambda connection: erase_messages(connection, [erased]))
    await written.execute("UPDATE messages SET text = 'a puppy' WHERE id = :id", id=edited)
    await written.execute("UPDATE messages SET kind = 'chat' WHERE id = :id", id=back)
    double.fault = "well"
    double.may_go.set()
    assert await step
    assert (await vectors(database)).keys() == {kept}
    await filled(database, retriever)
    assert (await vectors(database)).keys() == {edited, kept, back}
    assert double.embedded[-2:] == ["passage: a puppy", "passage: the doctor"]


@pytest.mark.sqlite
async def test_forgetting_leaves_not_a_byte_of_a_vector(
    database: Database, retriever: EmbeddingRetriever
) -> None:
    _, said, *_ = await StoredHistory(database).session(
        ["I moved to Zanzibar", "Oh!", "The bread is good"]
    )
    await filled(database, retriever)
    rows = await database.fetch_all(
        "SELECT vector FROM message_vectors WHERE message_id = :id", {"id": said}
    )
    log = database.path.with_name(f"{database.path.name}-wal")
    assert rows[0][0] in database.path.read_bytes() + log.read_bytes()
    forgetting = forgetting_of(database, SteadyClock())
    asked = await forgetting.prepare("Zanzibar", claim_of())
    await forgetting.erase(asked.token, claim_of())
    while await forgetting.maintain():
        pass
    assert said not in await vectors(database)
    assert rows[0][0] not in database.path.read_bytes() + log.read_bytes()


async def test_keys_and_tokens_are_masked(
    database: Database, retriever: EmbeddingRetriever, double: EmbeddingDouble
) -> None:
    key = "sk-ant-abcdefghijkl0123456789"
    await StoredHistory(database).session([f"The key is {key}"])
    recall = await filled(database, retriever)
    await found(recall, f"Is {key} the key?")
    assert double.embedded == ["passage: Ana: The key is [secret]", "query: Is [secret] the key?"]


async def test_recall_drops_results_of_a_retriever_that_are_foreign_or_deleted(
    database: Database,
) -> None:
    _, *others = await StoredHistory(database).session([CAR, "Oh"], scope=BEN)
    _, deleted = await StoredHistory(database).session([CAR], platform="discord")
    await database.write(lambda connection: erase_messages(connection, [deleted]))

    class Leaking:
        async def retrieve(self, query: SearchQuery) -> list[MessageMatch]:
            return [MessageMatch(id_, 1, 1, 1.0) for id_ in (*others, deleted)]

    assert await found(Recall(database, SteadyClock(), retriever=Leaking())) == []


async def test_slow_embeddings_server_gets_smaller_batches(
    database: Database,
    retriever: EmbeddingRetriever,
    double: EmbeddingDouble,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that a question does not wait behind them."""
    seconds = count(0, 4.0)
    monkeypatch.setattr(embeddings, "monotonic", lambda: next(seconds))
    await StoredHistory(database).session([f"car number {number}" for number in range(60)])
    sizes: list[int] = []
    while await retriever.tend():
        sizes.append(len(double.embedded) - sum(sizes))
    assert sizes[:3] == [32, 4, 1]


async def test_embedding_of_messages_continues_in_a_new_process_after_an_interruption(
    database: Database,
    retriever: EmbeddingRetriever,
    double: EmbeddingDouble,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retriever, "_batch_size", 2)
    _, *ids = await StoredHistory(database).session([f"car number {number}" for number in range(5)])
    assert await retriever.tend()
    assert (await vectors(database)).keys() == set(ids[:2])
    another = retriever_of(database, double)
    while await another.tend():
        pass
    await another.close()
    assert (await vectors(database)).keys() == set(ids)
    assert len(double.embedded) == 5


async def test_text_refused_by_the_embeddings_server_does_not_delay_other_texts(
    database: Database, retriever: EmbeddingRetriever, double: EmbeddingDouble
) -> None:
    double.refused = "too much"
    written = StoredHistory(database)
    session, well, refused = await written.session(["my car", "too much for it"])
    await filled(database, retriever)
    alone = await written.say(session, "too much once more")
    await filled(database, retriever)
    kept = await vectors(database)
    assert (kept[refused], kept[alone], kept[well]) == (0, 0, 2 * double.dimensions)
    assert retriever.error is None


async def test_a_question_that_is_refused_is_not_an_outage(
    database: Database, retriever: EmbeddingRetriever, double: EmbeddingDouble
) -> None:
    written = StoredHistory(database)
    session, _ = await written.session([CAR])
    recall = await filled(database, retriever)
    double.refused = "nobody"
    assert await found(recall, "What may nobody know of a vehicle?") == []
    assert await found(recall) == [CAR]
    await written.say(session, "Another word")
    assert await retriever.tend()
    assert str(await retriever.describe_state()) == "small, all messages are embedded"


async def test_a_service_that_refuses_everything_is_not_believed(
    database: Database, retriever: EmbeddingRetriever, double: EmbeddingDouble
) -> None:
    double.fault = "refusing"
    await StoredHistory(database).session(["my car"])
    assert not await retriever.tend()
    assert await vectors(database) == {}
    assert "refuses it" in str(await retriever.describe_state())


@pytest.mark.parametrize(
    "odd", [[10**400], [1e300], [[1.0, 2.0], [3.0, 4.0]], 1.0, "AAAA"], ids=str
)
async def test_answer_without_valid_vectors_counts_as_an_outage(
    database: Database, retriever: EmbeddingRetriever, double: EmbeddingDouble, odd: object
) -> None:
    double.odd = odd
    query = SearchQuery(text=ASKED, scopes=frozenset({ANA}))
    assert await retriever.retrieve(query) == ()
    assert "vectors" in str(retriever.error)
    await StoredHistory(database).session([CAR])
    another = retriever_of(database, double)
    assert not await another.tend()
    await another.close()
    assert await vectors(database) == {}


async def test_question_is_embedded_once_for_several_searches(
    database: Database, retriever: EmbeddingRetriever, double: EmbeddingDouble
) -> None:
    await StoredHistory(database).session([CAR, "I see", "The bread is good"])
    recall, clock = await filled(database, retriever), SteadyClock()
    model = ScriptedModel(says('{"order": [2, 1], "searches": ["bakery"]}'))
    helped = ExpandedRecall(
        recall, Conversations(database, clock), model, "small", clock, ZoneInfo("UTC")
    )
    query = search_query(text=ASKED, scopes=frozenset({ANA}), is_expanded=True, is_reranked=True)
    asked = len(double.asked)
    assert (await helped.recall(query)).sessions
    await helped.recall(with_fields(query, page=2))
    assert (len(model.requests), len(double.asked) - asked) == (1, 1)


async def test_hint_about_filtered_messages_uses_words_only(
    database: Database, retriever: EmbeddingRetriever, double: EmbeddingDouble
) -> None:
    await StoredHistory(database).session([CAR])
    recall = await filled(database, retriever)
    asked = len(double.asked)
    for word, is_there in (("bakery", True), ("zeppelin", False)):
        query = SearchQuery(
            text=f"Where does the {word} stand? on:discord", scopes=frozenset({ANA})
        )
        note = (await recall.recall(query)).note or ""
        assert ("Without the filters, there are results" in note) == is_there
    assert len(double.asked) - asked == 2


async def test_successful_embedding_of_a_question_ends_the_outage_of_the_embeddings_server(
    database: Database,
    retriever: EmbeddingRetriever,
    double: EmbeddingDouble,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await StoredHistory(database).session([CAR])
    recall = await filled(database, retriever)
    double.fault = "failing"
    await found(recall)
    assert "out of order" in str(await retriever.describe_state())
    double.fault = "well"
    monkeypatch.setattr(embeddings, "monotonic", lambda: 10.0**9)
    monkeypatch.setattr("core.memory.http.monotonic", lambda: 10.0**9)
    assert await found(recall) == [CAR]
    assert str(await retriever.describe_state()) == "small, all messages are embedded"


async def test_changed_embeddings_model_recomputes_all_vectors(
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


@pytest.mark.parametrize("told_by", ["a question", "a message", "the check"])
async def test_changed_vector_size_of_the_embeddings_model_recomputes_all_vectors(
    database: Database, retriever: EmbeddingRetriever, double: EmbeddingDouble, told_by: str
) -> None:
    """The same name, for what the server now does otherwise."""
    double.refused = "too much"
    written = StoredHistory(database)
    session, *ids, refused = await written.session([CAR, "Which?", "too much"])
    await filled(database, retriever)
    double.dimensions = 64
    another = retriever_of(database, double)
    recall = Recall(database, SteadyClock(), retriever=another)
    if told_by == "a question":
        assert CAR not in await found(recall)
    elif told_by == "a message":
        await written.say(session, "my dog")
    else:
        assert "have 64 dimensions; small, messages without a vector: about 3" in str(
            await another.probe()
        )
    await filled(database, another)
    kept = await vectors(database)
    assert ({kept[id_] for id_ in ids}, kept[refused]) == ({2 * 64}, 0)
    assert str(await another.describe_state()) == "small, all messages are embedded"
    assert (await found(recall))[0] == CAR
    embedded = len(double.embedded)
    await filled(database, another)
    assert len(double.embedded) == embedded, "and that once"
    await another.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", keep_first(4, [fault for fault in get_args(Fault) if fault != "well"])
)
async def test_recall_answers_by_words_while_the_service_fails(
    database: Database,
    retriever: EmbeddingRetriever,
    double: EmbeddingDouble,
    fault: Fault,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embeddings, "QUESTION_TIMEOUT", CallTimeout(0.3, 0.3))
    monkeypatch.setattr(embeddings, "PASSAGES_TIMEOUT", CallTimeout(0.3, 0.3))
    written = StoredHistory(database)
    await written.session([CAR, "I see"])
    await written.session(["The ferry to Lisbon leaves at nine", "Noted"])
    recall = await filled(database, retriever)
    double.fault = fault
    assert (await found(recall, "When does the ferry to Lisbon leave?"))[0].startswith("The ferry")
    await written.session(["A message"])
    assert not await retriever.tend()
    asked = len(double.asked)
    assert CAR not in await found(recall)
    assert not await retriever.tend()
    assert len(double.asked) == asked, "it is left alone for a while"
    assert "out of order" in str(await retriever.describe_state())
    assert KEY not in str(await retriever.describe_state())
    double.fault = "well"
    double.may_go.set()
    monkeypatch.setattr(embeddings, "monotonic", lambda: 10.0**9)
    monkeypatch.setattr("core.memory.http.monotonic", lambda: 10.0**9)
    await written.session(["Another word"])
    recall = await filled(database, retriever)
    assert CAR in await found(recall)
    assert "out of order" not in str(await retriever.describe_state())
