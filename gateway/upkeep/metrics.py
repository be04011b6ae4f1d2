"""Serves metrics of the running process in the text format of Prometheus, on loopback only.

Most metrics are read on request. Only the delays of the event loop are measured continuously.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from core.errors import StoreError
from core.ports import Clock
from core.store.engine import Row
from core.store.rows import to_datetime
from core.store.sync import PLATFORM as MEMORY
from gateway.local.ports import METRICS_HOST as HOST
from gateway.local.ports import ServedPort
from gateway.supervisor import CONNECTED

if TYPE_CHECKING:
    from core.memory.manager import MemoryManager
    from core.models.wrappers import ModelTally
    from gateway.services import Services
    from gateway.turns import TurnDispatcher

# How long a request for the metrics waits for the event loop.
ANSWER_S = 5.0
# The event loop is measured this often. If it's late by more than `STALL_S`, this counts as a
# stall.
TICK_S = 0.1
STALL_S = 0.05
# Reminders that were delivered within this time count for the lateness.
LATENESS_PERIOD = timedelta(hours=1)
_COUNT_MESSAGES = "SELECT role, COUNT(*) AS number FROM messages WHERE id > :last GROUP BY role"
_LAST_MESSAGE = "SELECT COALESCE(MAX(id), 0) FROM messages"
_COUNT_INBOX = "SELECT COUNT(*) FROM inbox"
_SUM_ATTEMPTS = """
SELECT COALESCE(SUM(attempts), 0) FROM outbox WHERE done_at IS NULL AND dead_at IS NULL
"""
_DELIVERED_REMINDERS = """
SELECT key, done_at FROM outbox WHERE done_at > :since AND key GLOB 'job:*:*'
"""
_log = structlog.get_logger("metrics")


class Metrics(Collector):
    """Collects metrics of the gateway and serves them until cancelled."""

    def __init__(
        self,
        services: Services,
        turns: TurnDispatcher,
        memory: MemoryManager,
        tally: ModelTally | None,
        clock: Clock,
        port: int,
    ) -> None:
        self._services = services
        self._turns = turns
        self._memory = memory
        # None without a model.
        self._tally = tally
        self._clock = clock
        self._port = port
        # Whether another program uses the port.
        self.is_port_taken = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._message_counts: Counter[str] = Counter()
        self._last_message_id: int | None = None
        self._stall_count = 0
        self._stall_s = 0.0

    async def run(self) -> None:
        """Serve the metrics, and measure the delays of the event loop."""
        self._loop = asyncio.get_running_loop()
        self._last_message_id = await self._fetch_number(_LAST_MESSAGE)
        registry = CollectorRegistry()
        registry.register(self)
        ProcessCollector(registry=registry)
        try:
            server, thread = start_http_server(self._port, HOST, registry)
        except OSError as error:
            self.is_port_taken = error.errno == errno.EADDRINUSE
            free = ServedPort("metrics.port", HOST, self._port).find_free_number()
            advice = f"mneme config set metrics.port {free}"
            reason = os.strerror(error.errno) if error.errno else str(error)
            _log.error("the metrics can't be served", port=self._port, reason=reason, advice=advice)
            return
        _log.info("the metrics are served", address=f"http://{HOST}:{server.server_port}")
        try:
            await self._measure_loop()
        finally:
            await asyncio.to_thread(server.shutdown)
            server.server_close()
            thread.join()

    async def _measure_loop(self) -> None:
        """Measure how late the event loop wakes up, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            await asyncio.sleep(TICK_S)
            late_s = loop.time() - began_s - TICK_S
            if late_s > STALL_S:
                self._stall_count += 1
                self._stall_s += late_s

    def collect(self) -> Iterable[Metric]:
        """Return all metrics. The server calls this in its own thread."""
        assert self._loop is not None
        future = asyncio.run_coroutine_threadsafe(self._collect(), self._loop)
        try:
            return future.result(ANSWER_S)
        except (TimeoutError, StoreError) as error:
            future.cancel()
            _log.warning("the metrics can't be read", reason=str(error))
            return []

    async def _collect(self) -> list[Metric]:
        metrics: list[Metric] = [
            await self._collect_messages(),
            await self._collect_queues(),
            *await self._collect_delays(),
            *await self._collect_services(),
            _counter("mneme_loop_stalls", "Times the event loop was late.", self._stall_count),
            _counter("mneme_loop_stall_seconds", "How late it was in total.", self._stall_s),
        ]
        if self._tally is not None:
            metrics += _describe_models(self._tally)
        return metrics

    async def _collect_messages(self) -> Metric:
        """Count the messages stored since this process started, by role.

        The assistant's messages are the turns.
        """
        values: dict[str, object] = {"last": self._last_message_id}
        last = await self._fetch_number(_LAST_MESSAGE)
        rows = await self._services.database.fetch_all(_COUNT_MESSAGES, values)
        for row in rows:
            self._message_counts[row["role"]] += row["number"]
        self._last_message_id = max(last, self._last_message_id or 0)
        metric = CounterMetricFamily(
            "mneme_messages",
            "Stored messages since the start; those of the assistant are answers.",
            labels=["role"],
        )
        for role in ("user", "assistant", "tool"):
            metric.add_metric([role], self._message_counts[role])
        return metric

    async def _collect_queues(self) -> Metric:
        counts = await self._services.outbox.count_items()
        lengths = {
            "answers": self._turns.unanswered_count,
            "inbox": await self._fetch_number(_COUNT_INBOX),
            "outbox": counts.due,
            "outbox_held": counts.held,
            "outbox_given_up": counts.dead,
        }
        return _gauges("mneme_queue_length", "Things that wait, by queue.", "queue", lengths)

    async def _collect_delays(self) -> list[Metric]:
        now = self._clock.now()
        values: dict[str, object] = {"since": now - LATENESS_PERIOD}
        rows = await self._services.database.fetch_all(_DELIVERED_REMINDERS, values)
        lateness_s = max((_measure_lateness(row) for row in rows), default=0.0)
        due = await self._services.jobs.list_due(now)
        waits_s = [(now - job.next_at).total_seconds() for job in due if job.next_at is not None]
        attempts = await self._fetch_number(_SUM_ATTEMPTS)
        return [
            _gauge(
                "mneme_job_lateness_seconds", "The latest delivery in the last hour.", lateness_s
            ),
            _gauge(
                "mneme_job_waiting_seconds", "How long a due job waits.", max(waits_s, default=0)
            ),
            _gauge("mneme_delivery_retries", "Failed attempts of waiting deliveries.", attempts),
        ]

    async def _collect_services(self) -> list[Metric]:
        """Return metrics of the platforms, and of items that memory services haven't received."""
        states = await self._services.load_platform_states()
        platforms = {
            name: float(state == CONNECTED)
            for name, state in states.items()
            if not name.startswith(f"{MEMORY} ") and name != "cron"
        }
        memory = self._memory
        waiting = {}
        for name in memory.externals:
            counts = await self._services.outbox.count_items(f"{MEMORY}:{name}:")
            waiting[name] = counts.held + counts.due + counts.dead
        reachable = {name: float(name not in memory.outages) for name in memory.externals}
        return [
            _gauges("mneme_platform_up", "1 if connected.", "platform", platforms),
            _gauges("mneme_service_up", "1 if a memory service answers.", "service", reachable),
            _gauges("mneme_service_waiting", "Unsent messages.", "service", waiting),
        ]

    async def _fetch_number(
        self, statement: str, values: Mapping[str, object] | None = None
    ) -> int:
        row = await self._services.database.fetch_one(statement, dict(values or {}))
        return 0 if row is None else row[0]


def _measure_lateness(row: Row) -> float:
    """Return how many seconds late a reminder was delivered.

    The key of the row ends with the due time, such as "job:7:2026-11-20T09:00:00+00:00". If it
    doesn't, the result is 0.
    """
    try:
        due_at = datetime.fromisoformat(row["key"].split(":", 2)[2])
    except ValueError:
        return 0.0
    return max((to_datetime(row["done_at"]) - due_at).total_seconds(), 0.0)


def _describe_models(tally: ModelTally) -> list[Metric]:
    """Return metrics of the calls and tokens of all models since the start."""
    calls = CounterMetricFamily(
        "mneme_model_calls", "Calls of models since the start.", labels=["model", "outcome"]
    )
    for (model, outcome), number in sorted(tally.outcomes.items()):
        calls.add_metric([model, outcome], number)
    tokens = CounterMetricFamily("mneme_tokens", "Tokens since the start.", labels=["kind"])
    for kind, number in sorted(tally.tokens.items()):
        tokens.add_metric([kind], number)
    total = sum(number for kind, number in tally.tokens.items() if kind != "output")
    share = tally.tokens["cache_read"] / total if total else 0.0
    return [calls, tokens, _gauge("mneme_cache_share", "Input read from the cache.", share)]


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)


def _gauges(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    metric = GaugeMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        metric.add_metric([key], value)
    return metric
