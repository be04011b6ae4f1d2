"""The table in docs/memory.md that says how each service is tested: each cell follows from the
tests of its row and the services that they run for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from core.memory.provider import Mode
from tests.services import test_conformance, test_setup, test_turn
from tests.services.doubles.double import Fault
from tests.services.engines import test_engines, test_mem0_client, test_talk, test_wrong_settings
from tests.services.engines.engine import ENGINES
from tests.services.oracles import test_oracles
from tests.services.registry import SERVICES

DOCS = Path(__file__).resolve().parents[2] / "docs" / "memory.md"
Test = Callable[..., Any]
ALL_ENGINES = frozenset(engine.name for engine in ENGINES.values())
WITH_CLIENTS = frozenset({SERVICES[name].name for name in test_oracles.CLIENTS.values()} | {"mem0"})
ORACLES = (
    test_oracles.lives,
    test_mem0_client.test_our_mem0_client_sends_the_same_requests_as_the_vendors_client,
)


@dataclass(frozen=True, kw_only=True)
class Proof:
    """The tests of a row: over the doubles, over real engines, and with the vendors' clients."""

    doubles: Collection[Test]
    engines: Collection[Test] = ()
    oracles: Collection[Test] = ()
    # How a service fails in this row. A service that can't fail so has no cell.
    faults: Collection[Fault] = ()
    # The services whose engines the tests run for, if not all.
    only: Collection[str] = ALL_ENGINES

    def cell(self, name: str) -> str:
        """Return what the table must say about a service."""
        never = {
            fault
            for service in SERVICES.values()
            if service.name == name
            for fault in service.never
        }
        if self.faults and never.issuperset(self.faults):
            return "–"
        marks = ["D"]
        if self.engines and name in ALL_ENGINES.intersection(self.only):
            marks.append("R")
        if self.oracles and name in WITH_CLIENTS:
            marks.append("O")
        return " ".join(marks)


_CONTRACT = test_conformance.TestContract
_NOTES = test_conformance.test_memory_service_adds_replaces_and_removes_notes_of_one_person
_WRONG_KEY = (
    test_wrong_settings.test_wrong_setting_of_an_engine_is_a_sentence_in_setup_and_beside_turns
)
_FAILING = (
    test_conformance.test_turn_after_a_passing_fault_is_sent_again_in_order_and_once,
    test_conformance.test_turn_continues_when_the_memory_services_search_hangs_fails_or_is_rate_limited,
)
_REFUSED = (
    test_conformance.test_turn_refused_for_good_is_not_sent_again_and_delays_nothing,
    test_conformance.test_turn_continues_when_the_memory_services_search_hangs_fails_or_is_rate_limited,
)


def _of_both(*tests: Test) -> Mapping[str, Any]:
    """Return the fields of a row whose tests run over doubles and engines alike."""
    return {"doubles": tests, "engines": tests}


PROOFS: Mapping[str, Proof] = {
    "available": Proof(
        **_of_both(_CONTRACT.test_memory_provider_has_a_valid_name_and_lists_its_tools_stably)
    ),
    "initialized, and the same after a restart": Proof(
        **_of_both(
            _CONTRACT.test_memory_provider_keeps_its_memories_over_a_restart_without_a_second_sync
        )
    ),
    "stores a turn": Proof(
        **_of_both(_CONTRACT.test_memory_provider_recalls_a_stored_turn_as_lines_with_unique_ids),
        oracles=ORACLES,
    ),
    "finds it": Proof(
        **_of_both(_CONTRACT.test_memory_provider_recalls_a_stored_turn_as_lines_with_unique_ids),
        oracles=ORACLES,
    ),
    "another scope sees nothing": Proof(
        **_of_both(_CONTRACT.test_memory_provider_returns_nothing_to_another_scope)
    ),
    "linked accounts see both": Proof(
        **_of_both(_CONTRACT.test_memory_provider_returns_nothing_to_another_scope)
    ),
    "a note is replaced": Proof(**_of_both(_NOTES), oracles=ORACLES),
    "a note is removed": Proof(**_of_both(_NOTES), oracles=ORACLES),
    "`/forget`": Proof(
        **_of_both(
            _CONTRACT.test_forgotten_message_is_erased_from_the_memory_provider_and_others_stay
        ),
        oracles=ORACLES,
    ),
    "a crash while all turns wait": Proof(
        doubles=[
            test_conformance.test_turn_waiting_at_the_end_of_the_process_is_sent_once_by_the_next
        ],
        engines=[test_talk.test_turn_that_waits_at_a_crash_is_sent_to_the_engine_once],
    ),
    "three turns, with SIGKILL after each of the first two": Proof(
        doubles=[test_setup.test_a_talk_of_three_turns_with_a_kill_after_each_is_known_to_it_once],
        engines=[test_talk.test_a_talk_of_three_turns_with_a_kill_after_each_is_known_to_it_once],
    ),
    "sent twice, stored once": Proof(
        doubles=[
            test_conformance.test_turn_waiting_at_the_end_of_the_process_is_sent_once_by_the_next
        ],
        engines=[test_engines.test_engine_stores_a_repeated_turn_once_and_erases_it_as_a_whole],
        oracles=ORACLES,
    ),
    "401: wrong key": Proof(
        doubles=_REFUSED,
        faults=["unauthorized"],
        engines=[_WRONG_KEY],
        only=test_wrong_settings.SERVERS,
    ),
    "422: refused": Proof(doubles=_REFUSED, faults=["refusing"]),
    "429: too many calls": Proof(doubles=_FAILING, faults=["limited"]),
    "500": Proof(doubles=_FAILING, faults=["failing"]),
    "no answer": Proof(doubles=_FAILING, faults=["hanging"]),
    "a slow answer": Proof(doubles=_FAILING, faults=["slow"]),
    "an answer with another shape": Proof(doubles=_FAILING, faults=["babbling", "malformed"]),
    "an answer that is too long": Proof(doubles=_FAILING, faults=["oversized"]),
    "a connection that breaks": Proof(doubles=_FAILING, faults=["broken", "lost"]),
    "circuit breaker": Proof(
        doubles=[
            test_conformance.test_memory_service_is_not_called_for_a_minute_after_three_failures
        ]
    ),
    "modes hybrid, context, tools": Proof(
        doubles=[
            test_turn.test_each_memory_mode_gives_the_model_only_the_context_or_tools_that_it_names
        ]
    ),
}


def read_table() -> Mapping[str, Mapping[str, str]]:
    """Return the cells by case and service."""
    text = DOCS.read_text(encoding="utf-8").partition("### How each service is tested\n")[2]
    text = text.partition("\n### ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    head, _, *rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


@pytest.mark.parametrize("case", PROOFS)
def test_documented_table_cells_of_memory_services_follow_from_their_tests(case: str) -> None:
    names = dict.fromkeys(service.name for service in SERVICES.values() if not service.is_plugin)
    expected = {name: PROOFS[case].cell(name) for name in names}
    assert read_table()[case] == expected


def test_table_has_a_row_for_each_case_and_each_fault_and_mode() -> None:
    assert list(read_table()) == list(PROOFS)
    faults = {fault for proof in PROOFS.values() for fault in proof.faults}
    # A redirect is refused like a connection that breaks; "well" is no fault.
    assert faults == set(get_args(Fault)) - {"well", "astray"}
    assert set(get_args(Mode)) == {"hybrid", "context", "tools"}


@pytest.mark.parametrize("case", [case for case in PROOFS if PROOFS[case].faults])
def test_each_test_of_a_row_runs_with_the_faults_of_the_row(case: str) -> None:
    for test in PROOFS[case].doubles:
        (values,) = [
            mark.args[1]
            for mark in test.pytestmark  # type: ignore[attr-defined]
            if mark.name == "parametrize" and mark.args[0] == "fault"
        ]
        assert set(PROOFS[case].faults) <= set(values)


def test_real_memory_engines_run_the_same_tests_as_the_doubles() -> None:
    for name in test_engines.__all__:
        assert getattr(test_engines, name) is getattr(test_conformance, name)
