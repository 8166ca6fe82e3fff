"""``berth-agent throughput``: what it prints, and its exit status."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from agents.node.throughput.receiver import Receiver
from berth.cli.agent import app
from tests.support.probing import free_port


@contextmanager
def receiving(limit: int) -> Iterator[int]:
    """Port of a receiver in a thread of its own."""
    receiver, loop = Receiver("127.0.0.1", 0, limit), asyncio.new_event_loop()
    work = loop.create_task(receiver.run())

    def run() -> None:
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(work)
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield receiver.port
    finally:
        loop.call_soon_threadsafe(work.cancel)
        thread.join(10)


def test_a_line_for_people() -> None:
    with receiving(10**9) as port:
        result = CliRunner().invoke(app, ["throughput", f"127.0.0.1:{port}", "--megabytes", "2"])
    assert result.exit_code == 0, result.output
    host, rate, unit, carried, *_ = result.stdout.split()
    assert (host, unit, carried) == (f"127.0.0.1:{port}", "Mbit/s", "(2.0")
    assert int(rate) > 0


def test_json_for_programs() -> None:
    with receiving(10**9) as port:
        result = CliRunner().invoke(
            app, ["throughput", "127.0.0.1", "--port", str(port), "--megabytes", "2", "-o", "json"]
        )
    found = json.loads(result.stdout)
    assert (found["address"], found["bytes"]) == ("127.0.0.1", 2_000_000)
    assert found["bitsPerSecond"] == pytest.approx(8 * found["bytes"] / found["seconds"], rel=0.05)


def test_an_agent_that_allows_none_is_told() -> None:
    with receiving(0) as port:
        result = CliRunner().invoke(app, ["throughput", f"127.0.0.1:{port}"])
    assert result.exit_code == 3
    assert "it is busy, or has had its share of this hour" in result.stderr


@pytest.mark.parametrize(
    ("host", "status", "text"),
    [
        pytest.param(f"127.0.0.1:{free_port()}", 3, "connection refused; no agent there allows", id="nobody listens"),
        pytest.param("no such host", 2, "no address found", id="no address"),
    ],
)
def test_what_cannot_be_reached(host: str, status: int, text: str) -> None:
    result = CliRunner().invoke(app, ["throughput", host])
    assert result.exit_code == status
    assert text in result.stderr
