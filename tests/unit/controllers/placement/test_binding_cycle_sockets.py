"""What a Binding says of a pod's socket."""

from __future__ import annotations

import msgspec
import pytest

from berth.kube.objects import Pod
from berth.scheduling.annotations import read_decision
from tests.support import builders
from tests.support.desk import Desk
from tests.support.placement import lone
from tests.support.sockets import classed, status


@pytest.mark.parametrize(
    ("pod", "known", "socket"),
    [
        pytest.param(classed("p", "D"), True, "0", id="with a class"),
        pytest.param(lone("p"), True, "", id="without class"),
        pytest.param(classed("p", "D"), False, "", id="no sockets known"),
    ],
)
def test_the_socket_goes_with_the_binding(desk: Desk, pod: Pod, known: bool, socket: str) -> None:
    for name in ("n1", "n2"):
        desk.see("nodes", builders.node(name, cpu="16"))
        if known:
            desk.cache.update_sockets(status(name))
    desk.pods(pod)
    (item,) = desk.decide()
    _, found, text = desk.controller.binding._annotations(item)
    assert found == socket
    decision = read_decision(text)
    assert decision.get("socket") == (int(socket) if socket else None)
    assert decision.get("slowdown") == ({"suffered": 1.0, "caused": 0.0} if socket else None)
    assert msgspec.json.decode(text).get("socket") == decision.get("socket")


def test_a_socket_that_does_not_fit_into_full_annotations_is_left_out(desk: Desk) -> None:
    for name in ("n1", "n2"):
        desk.see("nodes", builders.node(name, cpu="16"))
        desk.cache.update_sockets(status(name))
    pod = classed("p", "D")
    pod.metadata.annotations = {"note": "x" * (256 * 1024 - 10)}
    desk.pods(pod)
    (item,) = desk.decide()
    assert desk.controller.binding._annotations(item) == ("", "", "")


@pytest.mark.parametrize("socket", [0, 1], ids=["first", "second"])
def test_a_pod_that_is_judged_again_keeps_its_socket(desk: Desk, socket: int) -> None:
    """Its Binding has been decided, and names it."""
    desk.see("nodes", builders.node("n1", cpu="16"))
    desk.cache.update_sockets(status("n1"))
    pod = classed("p", "D")
    uid, sockets = pod.metadata.uid, desk.cache.state.sockets
    desk.cache.assume(pod, "n1")
    sockets.assign(uid, socket)
    with desk.cache.set_aside(pod):
        assert sockets.seat(uid) is None
    seat = sockets.seat(uid)
    assert seat is not None
    assert (seat.node, seat.socket) == ("n1", socket)
