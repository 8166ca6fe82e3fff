"""What a Binding says of a pod's socket."""

from __future__ import annotations

from pathlib import Path

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
def test_the_socket_goes_with_the_binding(sockets_desk: Desk, pod: Pod, known: bool, socket: str) -> None:
    for name in ("n1", "n2"):
        sockets_desk.see("nodes", builders.node(name, cpu="16"))
        if known:
            sockets_desk.cache.update_sockets(status(name))
    sockets_desk.pods(pod)
    (item,) = sockets_desk.decide()
    texts = sockets_desk.controller.binding._annotations(item)
    text = texts["decision"]
    assert texts["socket"] == socket
    decision = read_decision(text)
    assert decision.get("socket") == (int(socket) if socket else None)
    assert decision.get("slowdown") == ({"suffered": 1.0, "caused": 0.0} if socket else None)
    assert msgspec.json.decode(text).get("socket") == decision.get("socket")


def test_a_socket_that_does_not_fit_into_full_annotations_is_left_out(sockets_desk: Desk) -> None:
    for name in ("n1", "n2"):
        sockets_desk.see("nodes", builders.node(name, cpu="16"))
        sockets_desk.cache.update_sockets(status(name))
    pod = classed("p", "D")
    pod.metadata.annotations = {"note": "x" * (256 * 1024 - 10)}
    sockets_desk.pods(pod)
    (item,) = sockets_desk.decide()
    assert not any(sockets_desk.controller.binding._annotations(item).values())


@pytest.mark.parametrize("socket", [0, 1], ids=["first", "second"])
def test_a_pod_that_is_judged_again_keeps_its_socket(sockets_desk: Desk, socket: int) -> None:
    """Its Binding has been decided, and names it."""
    sockets_desk.see("nodes", builders.node("n1", cpu="16"))
    sockets_desk.cache.update_sockets(status("n1"))
    pod = classed("p", "D")
    uid, sockets = pod.metadata.uid, sockets_desk.cache.state.sockets
    sockets_desk.cache.assume(pod, "n1")
    sockets.assign(uid, socket)
    with sockets_desk.cache.set_aside(pod):
        assert sockets.seat(uid) is None
    seat = sockets.seat(uid)
    assert seat is not None
    assert (seat.node, seat.socket) == ("n1", socket)


@pytest.mark.parametrize("profiles", ["[{}]", "[{}, {schedulerName: other, interference: LeastSlowdown}]"])
def test_where_its_profile_does_not_ask_a_pod_has_no_socket(tmp_path: Path, profiles: str) -> None:
    """Whatever its label and its annotation say."""
    config = tmp_path / "placement.yaml"
    config.write_text(f"profiles: {profiles}")
    desk = Desk(config)
    for name in ("n1", "n2"):
        desk.see("nodes", builders.node(name, cpu="16"))
        desk.cache.update_sockets(status(name))
    for pod in (classed("p", "D", socket="1"), classed("q", "E")):
        texts = desk.controller.binding._annotations(desk.place(pod))
        assert texts["socket"] == ""
        assert not {"socket", "slowdown"} & msgspec.json.decode(texts["decision"]).keys()
        assert desk.cache.state.sockets.seat(pod.metadata.uid) is None
    assert desk.said.reasons.count("BadInterferenceClass") == 0


@pytest.mark.parametrize(
    ("profiles", "followed"),
    [
        pytest.param("[{}]", False, id="by default"),
        pytest.param("[{interference: Off}]", False, id="Off"),
        pytest.param("[{}, {schedulerName: other, interference: Greedy}]", True, id="one asks"),
    ],
)
def test_sockets_are_followed_where_a_profile_asks(tmp_path: Path, profiles: str, followed: bool) -> None:
    config = tmp_path / "placement.yaml"
    config.write_text(f"profiles: {profiles}")
    controller = Desk(config).controller
    parts = controller._sockets, controller._assignments, controller.cache.state.sockets._changed
    assert [part is not None for part in parts] == [followed] * 3
