"""A circuit breaker, by a clock that stands still."""

from __future__ import annotations

from core.memory.manager import FAILURES_TO_OPEN, MAX_REST, CircuitBreaker
from tests.fixtures.clock import SteadyClock


def opened(clock: SteadyClock, reasons: list[str]) -> CircuitBreaker:
    breaker = CircuitBreaker(clock, reasons.append)
    for _ in range(FAILURES_TO_OPEN):
        assert reasons == []
        breaker.fail("no")
    assert reasons == ["no"]
    return breaker


def test_breaker_stays_closed_while_some_calls_succeed(clock: SteadyClock) -> None:
    reasons: list[str] = []
    breaker = CircuitBreaker(clock, reasons.append)
    for _ in range(10):
        breaker.fail("no")
        assert breaker.state == "failed once: no"
        assert breaker.rest_s == 0
        breaker.succeed()
    assert breaker.state == "works"
    assert not breaker.is_open
    assert reasons == []


def test_breaker_opens_and_is_closed_by_a_call_after_its_rest(clock: SteadyClock) -> None:
    reasons: list[str] = []
    breaker = opened(clock, reasons)
    assert breaker.is_open
    assert breaker.rest_s == 30
    clock.advance(seconds=30)
    assert breaker.is_open
    assert breaker.rest_s == 0
    breaker.succeed()
    assert not breaker.is_open


def test_each_failed_trial_doubles_the_circuit_breakers_pause_up_to_an_hour(
    clock: SteadyClock,
) -> None:
    reasons: list[str] = []
    breaker = opened(clock, reasons)
    rests = []
    for _ in range(9):
        clock.advance(seconds=breaker.rest_s)
        breaker.fail("still no")
        assert reasons == ["no"], "it is told once only"
        rests.append(breaker.rest_s)
    assert rests[:3] == [60, 120, 240]
    assert rests[-1] == MAX_REST.total_seconds()


def test_late_failure_does_not_lengthen_the_rest_of_an_open_breaker(clock: SteadyClock) -> None:
    reasons: list[str] = []
    breaker = opened(clock, reasons)
    breaker.fail("began before it opened")
    assert breaker.rest_s == 30
