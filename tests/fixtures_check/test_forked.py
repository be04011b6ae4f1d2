"""Processes of tests end with their test process."""

from __future__ import annotations

import os
import signal
import subprocess

from tests.fixtures.forked import _Children, _is_read


def test_children_of_a_nursery_are_killed_with_it() -> None:
    reading, writing = os.pipe()
    children = _Children()
    with subprocess.Popen(["sleep", "600"]) as process:
        children.add(process.pid, writing)
        children.kill()
        assert process.wait(60) == -signal.SIGKILL
    children.close_pipes()
    os.close(reading)


def test_pipe_is_read_until_its_reader_closes_it() -> None:
    reading, writing = os.pipe()
    assert _is_read(writing)
    os.close(reading)
    assert not _is_read(writing)
    os.close(writing)
