"""The comparison of memory services: what is planted can be told apart, and the built-in memory
finds it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.bench.services import (
    BUILT_IN,
    WITH_HRR,
    WITH_MODEL,
    History,
    history,
    measure,
    services_without_engine,
)
from tests.services.engines.engine import Running


@pytest.fixture(scope="module")
def planted() -> History:
    return history()


def test_planted_history_has_the_documented_numbers_of_sessions_texts_and_questions(
    planted: History,
) -> None:
    assert len(planted.sessions) == 200
    assert sum(len(texts) for _, texts in planted.sessions) == 600 == len(planted.values)
    assert len(planted.questions) == 300
    assert sum(bool(question.before) for question in planted.questions) == 60
    assert history() == planted


def test_each_planted_value_is_typed_once_by_its_person_and_after_the_value_it_replaces(
    planted: History,
) -> None:
    places = {
        value: (place, person)
        for place, (person, texts) in enumerate(planted.sessions)
        for text in texts
        for value in planted.values
        if f" {value}" in text
    }
    assert {value: person for value, (_, person) in places.items()} == planted.values
    assert sum(sum(value in one for one in planted.values) for value in planted.values) == len(
        planted.values
    )
    for question in planted.questions:
        assert planted.values[question.value] == question.person
        if question.before:
            assert places[question.before][0] < places[question.value][0]


def test_there_are_no_more_sessions_than_there_are_names() -> None:
    with pytest.raises(ValueError, match="names for 120 facts"):
        history(500)


@pytest.mark.slow
@pytest.mark.parametrize("name", [BUILT_IN, WITH_MODEL, WITH_HRR])
async def test_comparison_measures_the_built_in_memory(tmp_path: Path, name: str) -> None:
    one = await measure(name, tmp_path, Running(options={}), 20)
    assert set(one.found.values()) == {1.0}
    assert (one.foreign, one.untold) == (0, 0)
    assert 0 < one.current <= 1
    assert one.resident_mb > 20


@pytest.mark.slow
async def test_short_history_without_changed_facts_is_measured(tmp_path: Path) -> None:
    one = await measure(BUILT_IN, tmp_path, Running(options={}), 10)
    assert one.found == {"as told": 1.0, "in other words": 1.0}
    assert one.current == 0


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("langgraph") is None, reason="LangGraph is not here: `make services` has it"
)
async def test_an_engine_with_another_name_than_its_service_is_measured(tmp_path: Path) -> None:
    one = await measure("langchain by words", tmp_path, Running(options={}), 20)
    assert set(one.found.values()) == {1.0}
    assert (one.foreign, one.untold) == (0, 0)


def test_services_without_an_engine_are_those_that_have_none_under_any_name() -> None:
    assert services_without_engine() == ["honcho", "retaindb", "supermemory"]
