"""Exchanges of pods whose writes meet those of others, or whose answers are lost.

Left out: watches that are cut (test_operator.py, test_networktopology_recovery.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.faults import Fault, FaultProxy, Rule
from tests.support.placing import Stage
from tests.support.socket_stand import SocketStand

SPEC = r"/apis/berth.dev/v1alpha1/socketstatuses/[^/]+"
"""Path of what is written by pass; the status has another one."""


@pytest.fixture
def node(own_cluster: LocalCluster) -> Iterator[SocketStand]:
    """A node of two sockets with two pods that disturb each other on the first."""
    stand = SocketStand(Stage(own_cluster))
    stand.place(["one-d", "two-d"])
    yield stand
    stand.close()


@pytest.fixture
def proxy(own_cluster: LocalCluster, tmp_path: Path) -> Iterator[FaultProxy]:
    with FaultProxy(own_cluster, directory=tmp_path) as running:
        yield running


@pytest.fixture
def start(proxy: FaultProxy, tmp_path: Path) -> Iterator[Callable[[], ControllerProcess]]:
    """Start the controller behind the proxy."""
    running: list[ControllerProcess] = []

    def begin() -> ControllerProcess:
        arguments = ["--no-leader-elect"]
        running.append(
            ControllerProcess.start(
                ["socketstatus"], kubeconfig=proxy.kubeconfig, directory=tmp_path, arguments=arguments
            )
        )
        return running[-1].wait_ready()

    yield begin
    for process in running:
        process.stop(check=False)


def test_who_has_written_in_between_wins(
    node: SocketStand, proxy: FaultProxy, start: Callable[[], ControllerProcess]
) -> None:
    held = proxy.add(Fault.HOLD, method="PATCH", path=SPEC, times=1)
    controller = start()
    proxy.wait_hits(held)
    node.edit("one-d", 1)
    node.edit("two-d", 1)
    proxy.release(held)
    node.wait_condition("False", "Disturbed", "stay where somebody has assigned them")
    assert node.assigned() == {"one-d": 1, "two-d": 1}
    assert controller.metric("berth_socketstatus_moved_pods_total") == 0


@pytest.mark.parametrize(
    ("fault", "fields"),
    [
        pytest.param(Fault.RESET_AFTER, {}, id="its answer is lost"),
        pytest.param(Fault.ANSWER_AFTER, {"status": 503}, id="something on the way fails after it"),
        pytest.param(Fault.ANSWER, {"status": 503}, id="something on the way fails before it"),
        pytest.param(Fault.ANSWER, {"status": 422}, id="it is refused"),
    ],
)
def test_a_write_of_unknown_outcome_is_looked_at_again(
    node: SocketStand,
    proxy: FaultProxy,
    start: Callable[[], ControllerProcess],
    fault: Fault,
    fields: dict[str, int],
) -> None:
    rule: Rule = proxy.add(fault, method="PATCH", path=SPEC, times=1, **fields)
    controller = start()
    proxy.wait_hits(rule)
    node.wait_assigned(["one-d"], ["two-d"])
    node.wait_condition("True", "Paired")
    after = node.get()["spec"]
    controller.kill()
    with ControllerProcess.start(
        ["socketstatus"],
        kubeconfig=proxy.kubeconfig,
        directory=controller.log.parent,
        arguments=["--no-leader-elect", "--socketstatus-cool-down", "0"],
    ) as successor:
        successor.wait_ready()
        eventually(lambda: successor.metric("berth_socketstatus_reconcile_seconds_count"), what="a look")
        assert node.get()["spec"] == after
