"""A pod moves while whoever leads stands still, and wakes when another has gone on: one move, as if nobody had slept.

Unlike one that is killed (test_latency_recovery.py), it still has in its hands what it was about to do. Left out: the
Lease itself (test_kube_lease.py).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.integration.test_latency_placement import ONE_POLICY, far_away, let_move
from tests.integration.test_latency_recovery import EVICTION, STEPS
from tests.support.faults import Fault, FaultProxy
from tests.support.latency_stand import LatencyStand

LEASE = "10"
"""Seconds that a Lease lasts; without an answer for two thirds of them, as of 4 on a busy machine, its holder ends."""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """What ends with the test."""
    with ExitStack() as made:
        yield made


class Replicas:
    """Replicas of one controller that compete for its Lease: one that leads, and one that waits."""

    def __init__(self, stack: ExitStack, controller: str, proxy: FaultProxy, directory: Path, *arguments: str) -> None:
        """Start both; `stack` ends all that were started."""
        self._stack, self._controller, self._proxy, self._directory = stack, controller, proxy, directory
        self._arguments = ["--lease-duration", LEASE, "--lease-namespace", "default", *arguments]
        self.leads = self._start().wait_leader()
        self.waits = self._start()

    def _start(self) -> ControllerProcess:
        process = ControllerProcess.start(
            [self._controller],
            kubeconfig=self._proxy.kubeconfig,
            directory=self._directory,
            arguments=self._arguments,
        )
        return self._stack.enter_context(process)

    def sleep(self) -> ControllerProcess:
        """Have the one that leads stand still until the other leads; returns it, and one more waits."""
        slept = self.leads
        os.kill(slept.pid, signal.SIGSTOP)
        self._stack.callback(_wake, slept)
        self.leads, self.waits = self.waits.wait_leader(), self._start()
        return slept


def _wake(process: ControllerProcess) -> None:
    if process.running:
        os.kill(process.pid, signal.SIGCONT)


def wake(process: ControllerProcess) -> None:
    """Wake one that does not lead any more, and wait for its end."""
    _wake(process)
    assert process.process.wait(timeout=120) == 1
    assert list(process.records("leadership lost, exiting so that a fresh process can compete"))


@pytest.mark.timeout(1200)
def test_one_move_is_made_by_leaders_that_stand_still_at_each_write(
    lively: LocalCluster, tmp_path: Path, stack: ExitStack
) -> None:
    """Each wakes in the middle of what the next one does, whose own write is under way."""
    stand = stack.enter_context(LatencyStand(lively, {"a": 120, "b": 60, "c": 20}))
    proxy = stack.enter_context(FaultProxy(lively, directory=tmp_path))
    replicas = Replicas(stack, "latency", proxy, tmp_path, "--latency-listen", "127.0.0.1", "--latency-port", "0")
    stand.deploy()
    stand.want(hardMaxLatency=80, softMaxLatency=30, exploration=[])
    stand.know(c=20)
    slept: ControllerProcess | None = None
    rule = proxy.add(Fault.HANG_AFTER, times=1, **STEPS[0])
    for following in (*STEPS[1:], None):
        proxy.wait_hits(rule, timeout=180)
        # Before another leads, who may be as far at once.
        if following is not None:
            rule = proxy.add(Fault.HANG_AFTER, times=1, **following)
        if following is EVICTION:
            # One without a node is what a ReplicaSet deletes first; of ready ones it may delete either.
            stand.places_pods = False
        if slept is not None:
            wake(slept)
        slept = replicas.sleep()
    assert slept is not None
    wake(slept)
    eventually(stand.outcomes, accept=["Confirmed"].__eq__, timeout=150, what="gain")
    stand.places_pods = True
    stand.wait_settled("c")
    assert stand.status().surge is None
    assert (max(stand.serving), stand.least()) == (2, 1)


@pytest.mark.usefixtures("latency_process")
@pytest.mark.parametrize(
    "step",
    [
        pytest.param({"method": "GET", "path": ONE_POLICY}, id="the policy is read"),
        pytest.param({}, id="the pod is bound"),
    ],
)
def test_a_pod_that_moves_is_placed_by_the_next_while_who_placed_it_stands_still(
    lively: LocalCluster, tmp_path: Path, stack: ExitStack, step: dict[str, str]
) -> None:
    """What was under way arrives when the next one has placed it."""
    proxy = stack.enter_context(FaultProxy(lively, directory=tmp_path))
    stand = stack.enter_context(far_away(lively))
    replicas = Replicas(stack, "placement", proxy, tmp_path)
    stand.deploy()
    stand.wait_settled("a")
    held = proxy.add(Fault.HOLD, times=1, **step)
    let_move(stand)
    proxy.wait_hits(held, timeout=120)
    slept = replicas.sleep()
    eventually(stand.outcomes, accept=["Moved"].__eq__, timeout=120, what="a move")
    proxy.release(held)
    wake(slept)
    stand.wait_settled("c")
    eventually(stand.outcomes, accept=["Confirmed"].__eq__, what="gain")
    assert (max(stand.serving), stand.least()) == (2, 1)
