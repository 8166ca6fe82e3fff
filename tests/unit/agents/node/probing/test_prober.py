"""The prober as a process of its own: orders in, rounds out, and its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from agents.node.probing.messages import Order, decode_output, decode_round, encode_order, encode_user
from agents.node.probing.prober import JITTER, PORT_TAKEN, pause
from agents.node.probing.rounds import Target
from agents.node.probing.user_probes import FoundUser, UserTarget
from tests.support.probing import running_responder

OPTIONS = ("--address=127.0.0.1", "--port=0", "--interval=0.05", "--rate=10000")


@contextmanager
def prober(port: int = 0, *, python: Sequence[str] = (sys.executable,)) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [*python, "-m", "agents.node.probing.prober", *OPTIONS, f"--port={port}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def give(process: subprocess.Popen[bytes], *targets: Target) -> None:
    assert process.stdin is not None
    process.stdin.write(encode_order(Order(targets)))
    process.stdin.flush()


def names_of_next_round(process: subprocess.Popen[bytes]) -> set[str]:
    assert process.stdout is not None
    return set(decode_round(process.stdout.readline()).samples)


def test_orders_are_followed_from_the_next_round_on() -> None:
    with running_responder() as peer, prober() as process:
        give(process, Target("a", "127.0.0.1", peer.port))
        assert names_of_next_round(process) == {"a"}
        give(process, Target("a", "127.0.0.1", peer.port), Target("b", "127.0.0.1", peer.port))
        assert any(names_of_next_round(process) == {"a", "b"} for _ in range(100))


def test_users_are_measured_beside_the_rounds() -> None:
    with prober() as process:
        give(process)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(encode_user(UserTarget("7", "127.0.0.1", 3)))
        process.stdin.flush()
        found = next(line for line in map(decode_output, process.stdout) if isinstance(line, FoundUser))
        assert decode_output(process.stdout.readline())
    assert found.id == "7"
    assert bool(found.refused) != (len(found.microseconds) == 3)


def test_it_answers_and_probes_itself() -> None:
    with prober() as process:
        give(process)
        assert process.stdout is not None
        probes = decode_round(process.stdout.readline()).self_probes
    assert any(value is not None for value in probes)


@pytest.mark.parametrize(
    ("elapsed", "least", "greatest"),
    [
        pytest.param(0.0, 5 * (1 - JITTER), 5 * (1 + JITTER), id="from begin to begin"),
        pytest.param(3.0, 5 * (1 - JITTER) - 3, 5 * (1 + JITTER) - 3, id="less what the round took"),
        pytest.param(60.0, 0.0, 0.0, id="a round that took longer than the interval"),
    ],
)
def test_rounds_do_not_come_at_even_intervals(elapsed: float, least: float, greatest: float) -> None:
    pauses = [pause(5.0, elapsed) for _ in range(200)]
    assert least <= min(pauses) <= max(pauses) <= greatest
    assert max(pauses) - min(pauses) >= (greatest - least) / 2


def test_it_ends_with_its_agent() -> None:
    with prober() as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0


def test_it_ends_with_an_agent_that_is_killed_in_the_middle_of_an_order() -> None:
    with prober() as process:
        assert process.stdin is not None
        process.stdin.write(encode_order(Order((Target("a", "127.0.0.1", 1),)))[:-5])
        process.stdin.close()
        assert process.wait(20) == 1


def test_one_that_is_stopped_ends_with_an_agent_that_is_killed() -> None:
    """It cannot see that there are no orders any more, and would keep the port from the next agent's."""
    code = (
        "import subprocess, sys\n"
        "prober = subprocess.Popen([sys.executable, '-m', 'agents.node.probing.prober', *sys.argv[1:]], stdin=-1)\n"
        "prober.stdin.write(sys.stdin.buffer.readline())\n"
        "prober.stdin.flush()\n"
        "print(prober.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, *OPTIONS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        give(agent)
        assert agent.stdout is not None
        # Whichever writes first; a round says that the prober is at work.
        pid = int(next(line for line in (agent.stdout.readline() for _ in range(1000)) if line.strip().isdigit()))
        assert decode_round(agent.stdout.readline()).self_probes
        os.kill(pid, signal.SIGSTOP)
        try:
            agent.kill()
            agent.communicate(timeout=20)  # the end of what both write to
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_it_ends_with_its_responder() -> None:
    """Without it no round measures anything: it is for the agent to start another."""
    code = "from agents.node.probing import prober; prober.Responder.serve = lambda _: 1 / 0; prober.main()"
    command = [sys.executable, "-c", code, *OPTIONS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as ended:
        try:
            assert ended.wait(20) == 1
            assert ended.stderr is not None
            assert b"ZeroDivisionError" in ended.stderr.read()
        finally:
            ended.kill()


def test_a_taken_port_is_said() -> None:
    with running_responder() as other, prober(other.port) as process:
        assert process.wait(20) == PORT_TAKEN
        assert process.stderr is not None
        assert f"port {other.port}: Address already in use" in process.stderr.read().decode()


def test_its_clock_goes_on_while_the_machine_sleeps() -> None:
    """In a time namespace the two clocks differ by as long as that machine has slept."""
    asleep = ["unshare", "--map-root-user", "--time", "--fork", "--kill-child", "--boottime", "3600", sys.executable]
    if subprocess.run([*asleep, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip("no time namespaces here")
    with running_responder() as peer, prober(python=asleep) as process:
        give(process, Target("a", "127.0.0.1", peer.port))
        assert process.stdout is not None
        (*_, sample) = decode_round(process.stdout.readline()).samples["a"]
    assert sample.time > time.clock_gettime(time.CLOCK_BOOTTIME) + 3000


def test_it_imports_little() -> None:
    """Each node runs one: what it does not import, no node has in memory."""
    code = "import sys, agents.node.probing.prober; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    large = {"aiohttp", "asyncio", "ssl", "kopf", "kubernetes_asyncio", "msgspec", "numpy", "pydantic", "typer"}
    assert not large & {name.partition(".")[0] for name in loaded}
    ours = {name for name in loaded if name.startswith("berth.")}
    small = {"berth.kube", "berth.kube.jitter", "berth.runtime", "berth.runtime.listening", "berth.runtime.tcp_info"}
    assert ours == small
