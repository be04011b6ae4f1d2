"""The figures of a running process, as Prometheus reads them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.local.control import ask_gateway
from tests.fixtures.live_system import PERSON, LiveSystem

pytestmark = pytest.mark.slow


def find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def read_metrics(port: int) -> Mapping[tuple[str, ...], float]:
    """The samples by name and values of their labels."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
        text = response.read().decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_running_process_serves_its_figures_on_loopback(home: Path) -> None:
    port = find_free_port()
    options = f"[metrics]\nenabled = true\nport = {port}\n"
    async with LiveSystem.open(home, options=options, is_loop_watched=False) as live:
        await live.start()
        live.tells_telegram("The ferry leaves at nine")
        await live.until(lambda: bool(live.model.requests) and bool(live.telegram.texts(PERSON)))
        await live.until(lambda: "the metrics are served" in live.log())

        async def samples_with_answer() -> Mapping[tuple[str, ...], float]:
            """The samples, once the answer, its usage and the state of the platform are stored."""
            awaited = {
                ("mneme_messages_total", "assistant"),
                ("mneme_model_calls_total", "claude-sonnet-5-5", "answered"),
                ("mneme_tokens_total", "input"),
                ("mneme_platform_up", "telegram"),
            }
            while True:
                samples = await asyncio.to_thread(read_metrics, port)
                if all(samples.get(name) for name in awaited):
                    return samples
                await asyncio.sleep(0.1)

        async with asyncio.timeout(60):
            samples = await samples_with_answer()
        assert samples["mneme_messages_total", "user"] == 1
        assert samples["mneme_model_calls_total", "claude-sonnet-5-5", "answered"] >= 1
        assert samples["mneme_tokens_total", "input"] > 0
        assert 0 <= samples["mneme_cache_share",] <= 1
        assert samples["mneme_queue_length", "outbox_given_up"] == 0
        assert samples["mneme_platform_up", "telegram"] == 1
        assert samples["mneme_job_lateness_seconds",] == 0
        assert samples["mneme_delivery_retries",] == 0
        assert samples["mneme_loop_stalls_total",] >= 0
        assert samples["process_open_fds",] > 0
        assert f"http://127.0.0.1:{port}" in live.log()
        assert await live.stop() == 0
    with pytest.raises(URLError):
        await asyncio.to_thread(read_metrics, port)


async def test_taken_port_is_logged_and_people_are_answered(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = "".join(
            f"[{table}]\nenabled = true\nport = {port}\n" for table in ("metrics", "web")
        )
        async with LiveSystem.open(home, options=options, is_loop_watched=False) as live:
            await live.start()
            await live.until(lambda: "the metrics can't be served" in live.log())
            assert "mneme config set metrics.port" in live.log()
            await live.until(lambda: f"Port {port} is in use, so the page" in live.log())
            state = await asyncio.to_thread(ask_gateway, home, "state")
            assert state is not None
            assert state["taken_ports"] == ["web.port", "metrics.port"]
            live.tells_telegram("hello")
            await live.until(lambda: bool(live.telegram.texts(PERSON)))
            assert await live.stop() == 0
