"""Pods with a class on nodes, by label and by WorkloadProfile, as the cluster changes."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.labels import ANNOTATION_SOCKET
from berth.kube.objects import Pod
from berth.scheduling.cache import sockets
from berth.scheduling.cache.pod_record import PodRecord, stated_socket
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.interference.policy import InterferencePolicy
from berth.scheduling.interference.residents import Resident
from tests.support import builders
from tests.support.sockets import asking, classed, owned, status, workload_profile
from tests.support.work import CALL, Work

OURS = {"schedulerName": "berth-scheduler"}


def on(pod: Pod, node: str) -> Pod:
    pod.spec.node_name = node
    return pod


def resident(state: ClusterState, pod: Pod) -> Resident | None:
    seat = state.sockets.seat(pod.metadata.uid)
    return None if seat is None else seat.resident


@pytest.mark.parametrize(
    ("labels", "letter"),
    [
        pytest.param({"berth.dev/interference-class": "B"}, "B", id="label"),
        pytest.param({"category": "catC"}, "C", id="label of others"),
        pytest.param({"category": "backend"}, None, id="label that is somebody else's"),
        pytest.param({"berth.dev/interference-class": "E"}, None, id="no such class"),
        pytest.param({"berth.dev/interference-class": "A", "category": "catB"}, None, id="two classes"),
        pytest.param({}, None, id="none"),
    ],
)
def test_the_class_of_a_label(labels: dict[str, str], letter: str | None) -> None:
    state, pod = asking(), builders.pod("p", on="n1", labels=labels, cpu="1500m", spec=OURS)
    state.update_pod(pod)
    found = resident(state, pod)
    assert (found and (found.workload.name, found.workload.interference_class, found.size)) == (
        letter and ("", letter, 1500)
    )


def test_pods_that_are_alike_share_what_they_are_to_others() -> None:
    state = asking()
    pods = [on(owned(f"p{number}", "web", cpu="1"), f"n{number}") for number in range(3)]
    pods += [on(classed(f"q{number}", "B"), "n1") for number in range(3)]
    state.update_profile(workload_profile("web", "D"))
    for pod in pods:
        state.update_pod(pod)
    assert len({id(resident(state, pod)) for pod in pods}) == 2
    state.update_profile(workload_profile("web", "A"))
    state.update_pod(late := on(owned("late", "web", cpu="1"), "n1"))
    assert {resident(state, pod) for pod in pods[:3]} == {resident(state, late)}
    found = resident(state, late)
    assert found is not None
    assert found.workload.interference_class == "A"


def test_what_they_share_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "RESIDENTS", 3)
    state = asking()
    for number in range(1, 10):
        pod = on(classed(f"p{number}", "B", cpu=str(number)), "n1")
        state.update_pod(pod)
        found = resident(state, pod)
        assert found is not None
        assert found.size == 1000 * number
        assert len(state.sockets._residents) <= 3


def test_a_node_whose_pods_are_on_other_sockets_is_of_the_same_kind() -> None:
    state = asking()
    state.update_node(builders.node("n1", cpu="64"))
    state.sockets.update_node(status("n1"))
    pod = on(classed("p", "D"), "n1")
    state.update_pod(pod)
    state.sockets.kinds.ids(state.node_index, state.size)
    state.sockets.arrangements.ids(state.node_index, state.size)
    state.sockets.assign(pod.metadata.uid, 1)
    assert not state.sockets.kinds._touched
    assert state.sockets.arrangements._touched.keys() == {"n1"}


def test_another_label_may_state_it() -> None:
    state = asking(class_label="noise")
    pod = builders.pod("p", on="n1", labels={"noise": "catD"}, spec=OURS)
    state.update_pod(pod)
    found = resident(state, pod)
    assert found is not None
    assert found.workload.interference_class == "D"


@pytest.mark.parametrize("profile_first", [True, False], ids=["profile first", "pod first"])
def test_a_profile_gives_pods_their_class_and_takes_it_with_it(profile_first: bool) -> None:
    state, pod, profile = asking(), on(owned("p", "web"), "n1"), workload_profile("web", "B")
    if profile_first:
        state.update_profile(profile)
    state.update_pod(pod)
    if not profile_first:
        assert resident(state, pod) is None
        state.update_profile(profile)
    found = resident(state, pod)
    assert found is not None
    assert found.workload[:2] == ("default/web", "B")
    state.delete_profile(profile)
    assert resident(state, pod) is None


def test_a_label_wins_over_the_class_of_a_profile_and_its_measurements_count() -> None:
    state, pod = asking(), on(owned("p", "web", labels={"berth.dev/interference-class": "A"}), "n1")
    state.update_profile(workload_profile("web", "D"))
    state.update_pod(pod)
    found = resident(state, pod)
    assert found is not None
    assert found.workload[:2] == ("default/web", "A")


def test_a_pod_that_is_relabelled_keeps_its_socket() -> None:
    state = asking()
    state.sockets.update_node(status("n1"))
    state.update_pod(classed("p", "A", on="n1", socket="1"))
    state.update_pod(classed("p", "B", on="n1"))
    seat = state.sockets.seat("pod-default-p")
    assert seat is not None
    assert (seat.resident.workload.interference_class, seat.socket) == ("B", 1)


def test_a_pod_that_is_bound_elsewhere_than_assumed_has_no_socket_there() -> None:
    state, pod = asking(), classed("p", "A")
    state.sockets.update_node(status("n1"))
    state.assume(pod, "n1")
    state.sockets.assign(pod.metadata.uid, 1)
    state.update_pod(on(classed("p", "A"), "n2"))
    seat = state.sockets.seat(pod.metadata.uid)
    assert seat is not None
    assert (seat.node, seat.socket) == ("n2", None)


def test_pods_that_are_gone_are_on_no_socket() -> None:
    state, pod = asking(), classed("p", "A", on="n1")
    state.update_pod(pod)
    state.delete_pod(pod.metadata.uid)
    assert state.sockets.seated == 0
    assert state.sockets.seats("n1") == {}


@pytest.mark.parametrize(
    ("text", "socket"),
    [("1", 1), ("0", 0), ("-1", None), ("one", None), ("", None), ("9" * 30, None), ("²", None)],
)
def test_the_annotation_of_a_pod(text: str, socket: int | None) -> None:
    assert stated_socket(classed("p", "A", socket=text)) == socket


def test_nodes_in_slots_of_others_are_of_their_own_kind() -> None:
    state = asking()
    for name in ("n1", "n2"):
        state.update_node(builders.node(name))
    state.sockets.update_node(status("n1"))
    state.sockets.kinds.ids(state.node_index, state.size)
    state.delete_node("n1")
    state.update_node(builders.node("n3"))
    ids = state.sockets.kinds.ids(state.node_index, state.size)
    assert not state.sockets.kinds.kinds[int(ids[state.node_index["n3"]])].layout.capacities
    state.update_node(builders.node("n1"))
    ids = state.sockets.kinds.ids(state.node_index, state.size)
    assert state.sockets.kinds.kinds[int(ids[state.node_index["n1"]])].layout.capacities == (8000, 8000)


@pytest.mark.parametrize(
    "policies",
    [
        pytest.param({}, id="no profile"),
        pytest.param({"berth-scheduler": InterferencePolicy.OFF}, id="Off"),
        pytest.param({"other": InterferencePolicy.LEAST_SLOWDOWN}, id="another profile asks"),
        pytest.param(
            {"berth-scheduler": InterferencePolicy.OFF, "other": InterferencePolicy.GREEDY}, id="Off beside another"
        ),
    ],
)
@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(classed("p", "D", on="n1", socket="1"), id="class by label"),
        pytest.param(on(owned("p", "web"), "n1"), id="class by profile"),
    ],
)
def test_whose_profile_does_not_ask_has_no_seat(policies: dict[str, InterferencePolicy], pod: Pod) -> None:
    state = ClusterState(policies=policies)
    state.update_node(builders.node("n1"))
    state.sockets.update_node(status("n1", assigned={pod.metadata.uid: 0}))
    state.update_pod(pod)
    state.update_profile(workload_profile("web", "D"))
    assert state.sockets.seated == 0
    assert state.sockets.present.total() == 0
    assert state.socket_choice.outlook(pod.metadata.uid) is None


def test_where_nobody_asks_nothing_is_kept_of_nodes() -> None:
    state = ClusterState()
    state.update_node(builders.node("n1"))
    assert not state.sockets.kinds._touched
    assert not state.sockets.arrangements._touched


def test_a_profile_that_comes_after_a_restart_finds_the_socket_that_the_pod_was_bound_with() -> None:
    state, profile = asking(), workload_profile("web", "B")
    state.sockets.update_node(status("n1"))
    pod = on(owned("p", "web"), "n1")
    pod.metadata.annotations[ANNOTATION_SOCKET] = "1"
    state.update_pod(pod)
    for _ in range(2):  # and one that is deleted and made anew
        state.update_profile(profile)
        seat = state.sockets.seat(pod.metadata.uid)
        assert seat is not None
        assert seat.socket == 1
        state.delete_profile(profile)


def test_what_a_waiting_pod_says_of_its_socket_is_its_tenants_word() -> None:
    state, pod = asking(), classed("p", "D", socket="1")
    state.sockets.update_node(status("n1"))
    state.assume(pod, "n1")
    seat = state.sockets.seat(pod.metadata.uid)
    assert seat is not None
    assert seat.socket is None


def test_profiles_that_do_not_count_have_no_pod_looked_at() -> None:
    state, pods, profiles, work = asking(), 100, 200, Work()
    for number in range(pods):
        state.update_pod(on(owned(f"p{number}", "web"), "n1"))
    with work.counting():
        for number in range(profiles):
            state.update_profile(workload_profile(f"a{number:03}", "B", target="web"))
    assert work.seconds / CALL < 60 * (pods + profiles)


class NotAll(dict[str, PodRecord]):
    """Pods that are looked at one by one."""

    def values(self) -> Any:
        raise AssertionError("all pods are looked at")


def test_a_profile_has_pods_of_its_own_workload_looked_at_alone() -> None:
    state, pod = asking(), on(owned("p", "web"), "n1")
    state._records = NotAll()
    state.update_pod(pod)
    state.update_profile(workload_profile("web", "B"))
    assert resident(state, pod) is not None
    state.delete_pod(pod.metadata.uid)
    assert not state._by_owner


def test_a_profile_that_changes_while_a_pod_is_assumed_leaves_those_that_move_for_it() -> None:
    state, pod = asking(), owned("late", "web")
    state.update_profile(workload_profile("web", "B"))
    state.sockets.update_node(status("n1"))
    state.update_pod(classed("there", "A", on="n1", socket="0"))
    state.assume(pod, "n1")
    state.sockets.move("pod-default-there", 1, newcomer=pod.metadata.uid)
    state.update_profile(workload_profile("web", "D"))
    seat = state.sockets.seat("pod-default-there")
    assert seat is not None
    assert (seat.settled, seat.socket) == (0, 1)
